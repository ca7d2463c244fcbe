"""``WINDOW w AS ( … PATTERN … )``: what a window with a row pattern reads, and what is called over it.

The window becomes a clause over the rows of its ``SELECT``, which gives each of them its measures. What is called ``OVER w``
becomes a measure, whose column stands in its place.

Texts for other engines, made of parts of the user's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stretto.errors import QueryError, Span, suggestion
from stretto.languages.sql.tokens import Token


class Part(NamedTuple):
    """A piece of a text for another engine, and what of the user's text it stands for."""

    text: str
    span: Span
    verbatim: bool = False


@dataclass(frozen=True)
class Rewritten:
    """A text for another engine, in parts."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "".join(part.text for part in self.parts)

    def place(self, offset: int) -> Span:
        """The place in the user's text: of a character, or of the clause whose result is named there."""
        begin = 0
        for text, span, verbatim in self.parts:
            if offset < begin + len(text):
                return Span(span.start + offset - begin, span.start + offset - begin + 1) if verbatim else span
            begin += len(text)
        end = self.parts[-1].span.end
        return Span(max(0, end - 1), end)


#: What the rows of a window's SELECT cannot come from, and what cannot stand behind them.
_REFUSED = ("GROUP", "HAVING", "JOIN", "UNION", "EXCEPT", "INTERSECT", "LATERAL", "MATCH_RECOGNIZE", "TABLESAMPLE")

_AGGREGATES = re.compile(
    "count|count_if|sum|avg|min|max|min_by|max_by|array_agg|stddev|stddev_samp|stddev_pop|variance|var_samp|var_pop|bool_and|bool_or"
    "|every|any_value|arbitrary",
    re.IGNORECASE,
)

#: Functions of a frame's rows as navigations.
_VALUES = {"first_value": "FIRST", "last_value": "LAST"}


class Window(NamedTuple):
    """A window with a pattern, as a clause."""

    first: int  #: the first token of the table that it reads
    operand: Span  #: the table, and the conditions on its rows
    body: Span  #: from WINDOW to the closing parenthesis
    text: Rewritten  #: of a clause with all that is called over the window as measures
    calls: tuple[tuple[Span, str], ...]  #: what is called over the window, and what stands there for it
    alias: str  #: what the SELECT calls the table; empty: nothing


def is_window(parts: Sequence[Token], at: int, closed: dict[int, int], around: Sequence[int]) -> bool:
    """Whether a window with a pattern is defined at a token."""
    if at + 3 >= len(parts) or not parts[at].says("WINDOW") or not parts[at + 2].says("AS"):
        return False
    opening = at + 3
    inside = range(opening, closed.get(opening, opening))
    return any(around[i] == opening and parts[i].says("PATTERN") and parts[i + 1].says("(") for i in inside)


def read_window(
    text: str,
    parts: Sequence[Token],
    at: int,
    closed: dict[int, int],
    around: Sequence[int],
    taken: frozenset[str],
    *,
    spark: bool,
) -> Window:
    """Read the window that is defined at a token; ``taken``: names that stand in the text; ``spark``: Spark runs what is around it.

    Raises
    ------
    QueryError
        The SELECT is not over one table, the window has no frame, or something is called over it that is no measure and no aggregate.
    """
    return _Reader(text, parts, at, closed, around, taken, spark).window()


class _Reader:
    def __init__(
        self,
        text: str,
        parts: Sequence[Token],
        at: int,
        closed: dict[int, int],
        around: Sequence[int],
        taken: frozenset[str],
        spark: bool,
    ) -> None:
        self.text, self.parts, self.at, self.closed, self.around = text, parts, at, closed, around
        self.name = parts[at + 1].name
        self.opening = at + 3
        self.end = closed[self.opening]
        self.level = [i for i in range(len(parts)) if around[i] == around[at]]
        self.added: list[Part] = []  #: measures for what is called
        self.columns = set(taken)
        self.made: list[str] = []  #: the columns of measures
        self.without = "EXCEPT" if spark else "EXCLUDE"  #: how a star leaves columns out
        frame = self._section("ROWS")
        self.named = [
            i + 1
            for i in range(self._section("MEASURES"), frame)
            if self.parts[i].says("AS") and around[i] == self.opening
        ]
        self.measures: dict[str, str] = {}  #: the columns of measures, by their names in small letters
        for i in self.named:
            name = parts[i].name.casefold()
            if name in self.measures:
                raise self.mistake(f"the window has two measures '{parts[i].name}'", parts[i])
            self.measures[name] = self._column(name)

    def mistake(self, message: str, token: Token, hint: str | None = None) -> QueryError:
        return QueryError(message, text=self.text, span=Span(token.start, token.end), hint=hint)

    def window(self) -> Window:
        select = self._last("SELECT", self.at)
        origin = (
            None
            if select is None
            else next((i for i in self.level if select < i < self.at and self.parts[i].says("FROM")), None)
        )
        if select is None or origin is None:
            raise self.mistake("WINDOW stands behind SELECT … FROM …, and there is none", self.parts[self.at])
        alias = self._table(origin + 1)
        if self._section("ROWS") == self.end:
            hint = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING, before AFTER MATCH and PATTERN"
            raise self.mistake("a window with a PATTERN has a frame of ROWS", self.parts[self.at], hint)
        if self.end + 1 < len(self.parts) and self.parts[self.end + 1].says(","):
            hint = "define the others in a SELECT around this one, which is a subquery then"
            raise self.mistake(
                "a window with a PATTERN stands alone in its WINDOW clause", self.parts[self.end + 1], hint
            )
        calls = (*self._calls(select, origin, alias), *self._stars(select, origin))
        body = Span(self.parts[self.at].start, self.parts[self.end].end)
        operand = Span(self.parts[origin + 1].start, self.parts[self.at - 1].end)
        return Window(origin + 1, operand, body, self._clause(), calls, alias)

    def _last(self, word: str, before: int) -> int | None:
        return next((i for i in reversed(self.level) if i < before and self.parts[i].says(word)), None)

    # -- the table ----------------------------------------------------------------------------------------------------

    def _table(self, first: int) -> str:
        """What the SELECT calls the one table that it reads."""
        for i in self.level:
            if first <= i < self.at and self.parts[i].says(*_REFUSED):
                hint = "put that into a subquery: SELECT …, m OVER w FROM (SELECT …) AS t WINDOW w AS …"
                raise self.mistake(
                    f"a window with a PATTERN reads one table, without {self.parts[i].text.upper()}",
                    self.parts[i],
                    hint,
                )
        at, name = first, ""
        if self.parts[at].says("("):
            at = self.closed[at] + 1
        else:
            at += 1
            while self.parts[at].says("."):
                at += 2
            name = self.parts[at - 1].text
        at += self.parts[at].says("AS")
        if self.parts[at].kind == "name" and not self.parts[at].says("WHERE", "WINDOW"):
            name = self.parts[at].text
            at += 1
            at = self.closed[at] + 1 if self.parts[at].says("(") else at
        if not self.parts[at].says("WHERE", "WINDOW"):
            hint = "put them into a subquery: FROM (SELECT …) AS t WINDOW …"
            raise self.mistake(
                "a window with a PATTERN reads one table, and WHERE says which of its rows", self.parts[at], hint
            )
        return name

    # -- what is called -----------------------------------------------------------------------------------------------

    def _calls(self, select: int, origin: int, alias: str) -> Iterator[tuple[Span, str]]:
        """What is called over the window, in the list of the SELECT and behind the window."""
        behind = self.end + 1
        while behind < len(self.parts) and not self._leaves(behind):
            behind += 1
        for i in (*range(select, origin), *range(self.end + 1, behind)):
            part = self.parts[i]
            if not part.says("OVER") or i + 1 == len(self.parts):
                continue
            if self.parts[i + 1].says("("):
                inside = range(i + 1, self.closed[i + 1])
                if any(self.parts[j].says("PATTERN") and self.parts[j + 1].says("(") for j in inside):
                    raise self.mistake("a window with a PATTERN has a name", part, "OVER w … WINDOW w AS (… PATTERN …)")
            elif self.parts[i + 1].name.casefold() == self.name.casefold():
                yield self._call(i, origin, alias)

    def _leaves(self, at: int) -> bool:
        """Whether the SELECT has ended before a token behind its window."""
        closes = self.parts[at].says(")") and self.closed[at] == self.around[self.at]
        sets = self.parts[at].says("UNION", "EXCEPT", "INTERSECT") and self.around[at] == self.around[self.at]
        return closes or sets

    def _stars(self, select: int, origin: int) -> Iterator[tuple[Span, str]]:
        """Stars in the list, which are the columns of the table, without those of measures."""
        for i in range(select, origin):
            star = self.parts[i]
            listed = self.around[i] == self.around[select] and self.parts[i - 1].says("SELECT", "DISTINCT", ",", ".")
            if not (star.says("*") and listed):
                continue
            if not self.parts[i + 1].says(",", "FROM"):
                hint = "name the columns in place of *"
                told = f"beside what is called over a window with a PATTERN, * stands without {self.parts[i + 1].text}"
                raise self.mistake(told, star, hint)
            if self.made:
                yield Span(star.start, star.end), f"* {self.without} ({', '.join(self.made)})"

    def _call(self, over: int, origin: int, alias: str) -> tuple[Span, str]:
        last = self.parts[over - 1]
        first = over - 1
        if last.kind == "name" and not self.parts[over - 2].says("."):
            shown, found = last.text, self._measure(last)
        elif last.says(")") and self.parts[self.closed[over - 1] - 1].kind == "name":
            first = self.closed[over - 1] - 1
            shown, found = self.parts[first].text, self._function(first, over - 1, alias)
        else:
            raise self.mistake(
                "OVER stands behind a measure, or a function", self.parts[over], f"count(*) OVER {self.name}"
            )
        span = Span(self.parts[first].start, self.parts[over + 1].end)
        listed = over < origin and self.around[over] == self.around[origin]
        alone = (
            listed and self.parts[first - 1].says("SELECT", "DISTINCT", ",") and self.parts[over + 2].says(",", "FROM")
        )
        return span, f"{found} AS {shown}" if alone else found

    def _measure(self, name: Token) -> str:
        if name.name.casefold() not in self.measures:
            hint = suggestion(name.name, self.measures, kind="measure") or f"{name.text} is defined in MEASURES"
            raise self.mistake(f"the window '{self.name}' has no measure '{name.name}'", name, hint)
        return self.measures[name.name.casefold()]

    def _function(self, name: int, end: int, alias: str) -> str:
        """A function of the matched rows: the column of a measure that is added."""
        called = self.parts[name].text.lower()
        own = alias.casefold().strip('"`')
        words = []
        at = name + 2
        while at < end:
            if self.parts[at].name.casefold() == own and self.parts[at + 1].says("."):
                at += 2
            words.append(self.parts[at].text)
            at += 1
        inside = " ".join(words)
        if called in _VALUES:
            written = f"{_VALUES[called]}({inside})"
        elif _AGGREGATES.fullmatch(called):
            written = f"{called}({inside})"
        else:
            hint = "aggregates, first_value and last_value are; others go around, in a SELECT from this one"
            raise self.mistake(f"'{called}' is not computed over a window with a PATTERN", self.parts[name], hint)
        column = self._column(called)
        span = Span(self.parts[name].start, self.parts[end].end)
        self.added.append(Part(f"{written} AS {column}", span))
        return f"coalesce({column}, 0)" if called in ("count", "count_if") else column

    def _column(self, name: str) -> str:
        """A name for a column that no other one has."""
        found = base = re.sub(r"\W", "_", f"{name}_over_{self.name}".lower())
        number = 1
        while found in self.columns:
            number += 1
            found = f"{base}_{number}"
        self.columns.add(found)
        self.made.append(found)
        return found

    # -- the clause ---------------------------------------------------------------------------------------------------

    def _section(self, word: str) -> int:
        """The token with which a section of the window begins; the end of the window, if there is none."""
        inside = (i for i in range(self.opening, self.end) if self.around[i] == self.opening)
        return next((i for i in inside if self.parts[i].says(word)), self.end)

    def _clause(self) -> Rewritten:
        """The window as a clause: its measures have names of their own, and what is called is further ones."""
        frame = self._section("ROWS")
        at, begin = self.parts[self.opening].end, self.parts[self.at].start
        head = Span(begin, at)
        found = [Part("MATCH_RECOGNIZE (", head)]
        for i in self.named:
            name = self.parts[i]
            found.append(Part(self.text[at : name.start], Span(at, name.start), verbatim=True))
            found.append(Part(self.measures[name.name.casefold()], Span(name.start, name.end)))
            at = name.end
        middle, end = self.parts[frame].start, self.parts[self.end].end
        found.append(Part(self.text[at:middle], Span(at, middle), verbatim=True))
        for number, added in enumerate(self.added):
            found += [Part(", " if self.named or number else "MEASURES ", head), added]
        found.append(Part(" ", head))
        found.append(Part(self.text[middle:end], Span(middle, end), verbatim=True))
        return Rewritten(tuple(found))
