"""The error tree, and errors that point at the place they mean.

::

    StrettoError
    ├── QueryError      the text of a query is wrong, or does not fit the schema
    ├── DataError       the events are not what the query or the caller declared
    ├── OptionError     a call was given an argument it cannot take
    ├── LimitError      a stated bound was reached (states, classes, nesting)
    ├── EngineError     the matcher cannot go on (it was interrupted, or is closed)
    └── SnapshotError   bytes that are not a snapshot, or one of another query or version

    StrettoWarning      a result that is right, and perhaps not what was meant

A :class:`QueryError` keeps the text and the :class:`Span` of the mistake and draws them with a caret::

    line 1, column 24: unknown attribute 'prize'
      SELECT * FROM S WHERE A[prize > 3]
                              ^^^^^
    hint: did you mean 'price'?
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range ``[start, end)`` of character offsets in a query's text."""

    start: int
    end: int

    def __or__(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))


class StrettoError(Exception):
    """The root of every error that stretto raises on purpose."""


class QueryError(StrettoError, ValueError):
    """A query that cannot be understood or that does not fit its schema.

    Parameters
    ----------
    message
        What is wrong, in one line.
    text
        The whole query.
    span
        Where in ``text``; ``None`` when the mistake has no one place.
    hint
        What to try instead.
    """

    def __init__(self, message: str, *, text: str | None = None, span: Span | None = None, hint: str | None = None):
        self.message = message
        self.text = text
        self.span = span
        self.hint = hint
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:  # travels between Spark's processes with its place
        return _rebuild_query_error, (self.message, self.text, self.span, self.hint)

    @property
    def line(self) -> int | None:
        """1-based line of the mistake."""
        if self.text is None or self.span is None:
            return None
        return self.text.count("\n", 0, self.span.start) + 1

    @property
    def column(self) -> int | None:
        """1-based column of the mistake, in characters."""
        if self.text is None or self.span is None:
            return None
        return self.span.start - (self.text.rfind("\n", 0, self.span.start) + 1) + 1

    def __str__(self) -> str:
        lines = [self.message]
        if self.text is not None and self.span is not None:
            lines[0] = f"line {self.line}, column {self.column}: {self.message}"
            lines += _draw(self.text, self.span)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def _rebuild_query_error(message: str, text: str | None, span: Span | None, hint: str | None) -> QueryError:
    return QueryError(message, text=text, span=span, hint=hint)


@contextmanager
def placed(text: str | None) -> Iterator[None]:
    """Give the mistakes that are raised inside the text in which their places are, unless they have one."""
    try:
        yield
    except QueryError as error:
        if error.text is None:
            error.text = text
        raise


class DataError(StrettoError, ValueError):
    """Events that are not what the query or the caller declared."""


class OptionError(StrettoError, ValueError):
    """An argument that the call cannot take."""


class LimitError(StrettoError):
    """A stated bound was reached; the message names it and what drives it."""


class EngineError(StrettoError, RuntimeError):
    """A matcher that cannot go on."""


class SnapshotError(StrettoError, ValueError):
    """Bytes that are not a snapshot of this query, options and version."""


class StrettoWarning(UserWarning):
    """A result that is right, and perhaps not what was meant; ``warnings.filterwarnings`` makes an error of it, or nothing."""


def warn(message: str, category: type[Warning] = StrettoWarning) -> None:
    """Warn at the line of the caller's code that has called stretto."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_PACKAGE = str(Path(__file__).parent)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``name`` (case ignored), or ``None`` when none is near.

    >>> nearest("prize", ["price", "volume"])
    'price'
    """
    known = [one for one in candidates if isinstance(one, str)]
    folded = {candidate.casefold(): candidate for candidate in reversed(known)}
    if name.casefold() in folded:
        return folded[name.casefold()]
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def suggestion(name: str, candidates: Iterable[str], *, kind: str = "") -> str | None:
    """A hint that names the nearest candidate, or else lists the first few."""
    known = [one for one in candidates if isinstance(one, str)]
    best = nearest(name, known)
    if best is not None:
        return f"did you mean '{best}'?"
    if not known:
        return None
    shown = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return f"known {kind + 's' if kind else 'names'}: {shown}"


def hinted(message: str, name: object, candidates: Iterable[str], *, kind: str = "") -> str:
    """A message about a name that is not known, with a hint behind it where there is one."""
    hint = suggestion(str(name), candidates, kind=kind)
    return f"{message}; {hint}" if hint else message


_WIDEST = 100


def _draw(text: str, span: Span) -> list[str]:
    """The line of the mistake with carets below, cut around the place when it is long."""
    begin = text.rfind("\n", 0, span.start) + 1
    stop = text.find("\n", span.start)
    stop = len(text) if stop < 0 else stop
    line = text[begin:stop].rstrip("\r")
    left = span.start - begin
    width = max(1, min(span.end, stop) - span.start)
    if len(line) > _WIDEST:
        cut = max(0, min(left - _WIDEST // 2, len(line) - _WIDEST))
        line, left = line[cut : cut + _WIDEST], left - cut
        width = min(width, _WIDEST - left) or 1
    # Tabs keep their width, so that the caret stands under its character in every terminal.
    pad = "".join("\t" if character == "\t" else " " for character in line[:left])
    return [f"  {line}", f"  {pad}{'^' * width}"]
