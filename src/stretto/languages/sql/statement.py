"""A statement with ``MATCH_RECOGNIZE`` clauses, and windows with patterns: each with what it reads, and the WITH queries for that.

The text stays the user's. A clause and its operand are replaced by the name of a table with the clause's result, and a caret
points at the place in the text as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from stretto.errors import QueryError, Span
from stretto.languages.match_recognize import parse
from stretto.languages.sql.tokens import Token, tokens
from stretto.languages.sql.windows import Part, Rewritten, is_window, read_window
from stretto.query.row_pattern import RowQuery

#: Tables before which an operand begins.
_BEFORE = ("FROM", "JOIN", ",", "LATERAL", "APPLY")


@dataclass(frozen=True, eq=False)
class Clause:
    """``operand MATCH_RECOGNIZE ( … )``, or ``operand WINDOW w AS ( … )``; places are those of the whole statement."""

    operand: Span
    body: Span  #: ``MATCH_RECOGNIZE ( … )``
    scopes: tuple[tuple[str, Span], ...]  #: each WITH around it, outermost first, and its queries before the operand
    parsed: RowQuery  #: with places of ``body``, or of ``written``
    written: Rewritten | None = None  #: of a window: the clause that it means
    calls: tuple[tuple[Span, str], ...] = ()  #: … what is called over it, and what stands there for it
    alias: str = ""  #: … what the SELECT calls its table

    @property
    def whole(self) -> Span:
        """From the operand to the closing bracket."""
        return self.operand | self.body


@dataclass(frozen=True)
class Statement:
    """A text, and the clauses in it, in the order in which they can be computed."""

    text: str
    clauses: tuple[Clause, ...]
    only: str | None  #: the table, where the statement is ``SELECT * FROM table MATCH_RECOGNIZE ( … )``
    names: frozenset[str]  #: in small letters, all names that stand in the text

    def operand(self, clause: Clause, called: Mapping[Clause, str]) -> Rewritten:
        """The query for the rows that a clause reads; ``called`` has the tables of the clauses before it."""
        at = clause.operand
        parts = [Part("SELECT * FROM ", at), *self._between(at, called)]
        for depth, (scope, span) in enumerate(reversed(clause.scopes)):
            inner = [Part("SELECT * FROM (", at), *parts, Part(")", at)] if depth else parts
            parts = [Part(f"{scope} ", at), *self._between(span, called), Part(" ", at), *inner]
        return Rewritten(tuple(parts))

    def rest(self, called: Mapping[Clause, str]) -> Rewritten:
        """The statement with tables in place of its clauses."""
        return Rewritten(tuple(self._between(Span(0, len(self.text)), called)))

    def place(self, part: str) -> Span | None:
        """Where a part of the text stands, if that is at one place."""
        found = list(re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", self.text))
        return Span(*found[0].span()) if len(found) == 1 else None

    def _between(self, span: Span, called: Mapping[Clause, str]) -> Iterator[Part]:
        at = span.start
        places: list[tuple[Span, Clause | None, str]] = []
        for clause in self.clauses:
            places.append((clause.whole, clause, f" AS {clause.alias}" if clause.alias else ""))
            places += [(place, None, text) for place, text in clause.calls]
        for place, replaced, text in sorted(places, key=lambda one: (one[0].start, -one[0].end)):
            if at <= place.start and place.end <= span.end:
                yield Part(self.text[at : place.start], Span(at, place.start), verbatim=True)
                if replaced is not None:
                    yield Part(called[replaced], place)
                yield Part(text, place)
                at = place.end
        yield Part(self.text[at : span.end], Span(at, span.end), verbatim=True)

    @contextmanager
    def placing(self, clause: Clause) -> Iterator[None]:
        """Give mistakes in a clause, which are raised inside, their places in the whole text."""
        with _placed_in(self.text, clause.body, clause.written):
            yield


def read_statement(text: str, *, spark: bool = False, time_unit: str | None = None) -> Statement:
    """Find the clauses of a statement, and read them; the SQL around them is not checked.

    Parameters
    ----------
    text
        One statement, with any number of clauses.
    spark
        Strings are those of Spark SQL, in single or double quotes, with backslashes.
    time_unit
        What numbers count by which clauses order their rows.

    Raises
    ------
    QueryError
        A clause is wrong, a bracket or quote is not closed, or there are several statements.

    Examples
    --------
    >>> found = read_statement("SELECT x FROM t MATCH_RECOGNIZE (MEASURES A.x AS x PATTERN (A) DEFINE A AS x > 1) AS m")
    >>> str(found.rest({found.clauses[0]: "result"}))
    'SELECT x FROM result AS m'
    """
    parts = tokens(text, spark=spark)
    while parts and parts[-1].says(";"):
        parts.pop()
    for part in parts:
        if part.says(";"):
            raise QueryError("there are several statements", text=text, span=_span(part), hint="give them one by one")
    closed = _brackets(text, parts)
    around = _levels(parts, closed)
    names = frozenset(part.name.casefold() for part in parts if part.kind == "name")
    found: list[Clause] = []
    bodies: list[tuple[int, int]] = []
    at = 0
    while at < len(parts) - 1:
        if is_window(parts, at, closed, around):
            found.append(_window(text, parts, at, closed, around, names, spark))
            at = closed[at + 3] + 1
            continue
        if not (parts[at].says("MATCH_RECOGNIZE") and parts[at + 1].says("(")):
            at += 1
            continue
        end = closed[at + 1]
        found.append(_clause(text, parts, at, closed, around))
        bodies.append((at, end))
        at = end + 1
    if found:
        _refuse_views(text, parts)
    if time_unit is not None:
        found = [replace(one, parsed=replace(one.parsed, time_unit=time_unit)) for one in found]
    return Statement(text, tuple(found), _only(parts, bodies) if len(found) == len(bodies) else None, names)


def _span(first: Token, last: Token | None = None) -> Span:
    return Span(first.start, (last or first).end)


def _brackets(text: str, parts: Sequence[Token]) -> dict[int, int]:
    """The closing bracket of each opening one, and the other way round."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for at, part in enumerate(parts):
        if part.says("("):
            opened.append(at)
        elif part.says(")"):
            if not opened:
                raise QueryError("there is no '(' for this ')'", text=text, span=_span(part))
            found[at] = opened[-1]
            found[opened.pop()] = at
    if opened:
        raise QueryError("this '(' is not closed", text=text, span=_span(parts[_unclosed(parts, opened[-1])]))
    return found


def _unclosed(parts: Sequence[Token], last: int) -> int:
    """The bracket that is not closed: one in which a section of a clause begins, as if it were the clause; else the last one."""
    opened: list[int] = []
    for at, part in enumerate(parts):
        if part.says("("):
            opened.append(at)
        elif part.says(")") and opened:
            opened.pop()
        elif opened and _begins_section(parts, at) and not parts[opened[-1] - 1].says("MATCH_RECOGNIZE", "AS"):
            return opened[-1]
    return last


def _begins_section(parts: Sequence[Token], at: int) -> bool:
    """Whether ``PATTERN (`` stands at a token, or ``DEFINE name AS``."""
    if parts[at].says("PATTERN"):
        return at + 1 < len(parts) and parts[at + 1].says("(")
    return parts[at].says("DEFINE") and at + 2 < len(parts) and parts[at + 2].says("AS")


def _levels(parts: Sequence[Token], closed: dict[int, int]) -> list[int]:
    """For each token the bracket in which it stands; −1: in none."""
    found, level = [], [-1]
    for at, part in enumerate(parts):
        if part.says(")"):
            level.pop()
        found.append(level[-1])
        if part.says("(") and at in closed:
            level.append(at)
    return found


def _clause(text: str, parts: Sequence[Token], at: int, closed: dict[int, int], around: Sequence[int]) -> Clause:
    """The clause whose keyword is token ``at``."""
    body = _span(parts[at], parts[closed[at + 1]])
    first = at
    while first - 1 > around[at] and not parts[first - 1].says(*_BEFORE):
        first = closed[first - 1] if parts[first - 1].says(")") else first - 1
    if first == at:
        hint = "FROM ticker MATCH_RECOGNIZE ( … )"
        raise QueryError(
            "MATCH_RECOGNIZE stands behind a table, and there is none", text=text, span=_span(parts[at]), hint=hint
        )
    operand = _span(parts[first], parts[at - 1])
    if first and parts[first - 1].says("LATERAL", "APPLY"):
        hint = "join the tables in a subquery, and put MATCH_RECOGNIZE behind that"
        raise QueryError("MATCH_RECOGNIZE cannot read a LATERAL table", text=text, span=operand, hint=hint)
    with _placed_in(text, body):
        parsed = parse(text[body.start : body.end])
    return Clause(operand, body, _all_scopes(parts, at, first, closed, around), parsed)


def _window(
    text: str,
    parts: Sequence[Token],
    at: int,
    closed: dict[int, int],
    around: Sequence[int],
    names: frozenset[str],
    spark: bool,
) -> Clause:
    """The window with a pattern that is defined at token ``at``, as a clause."""
    found = read_window(text, parts, at, closed, around, names, spark=spark)
    with _placed_in(text, found.body, found.text):
        parsed = parse(str(found.text), window=True)
    scopes = _all_scopes(parts, at, found.first, closed, around)
    return Clause(found.operand, found.body, scopes, parsed, found.text, found.calls, found.alias)


def _all_scopes(
    parts: Sequence[Token], at: int, before: int, closed: dict[int, int], around: Sequence[int]
) -> tuple[tuple[str, Span], ...]:
    """Each WITH around a token, outermost first, and its queries that end before another one."""
    scopes: list[tuple[str, Span]] = []
    level = at
    while level >= 0:
        level = around[level]
        scopes = [*_scopes(parts, level, before, closed, around), *scopes]
    return tuple(scopes)


def _scopes(
    parts: Sequence[Token], level: int, before: int, closed: dict[int, int], around: Sequence[int]
) -> Iterator[tuple[str, Span]]:
    """The WITH of a level, and its queries that end before a token."""
    for at in range(level + 1, before):
        if around[at] != level or not parts[at].says("WITH"):
            continue
        recursive = parts[at + 1].says("RECURSIVE")
        first = at + 1 + recursive
        last = None
        begin = first
        while (end := _query_end(parts, begin, closed)) is not None and end < before:
            last = end
            if end + 1 >= len(parts) or not parts[end + 1].says(","):
                break
            begin = end + 2
        if last is not None:
            yield "WITH RECURSIVE" if recursive else "WITH", _span(parts[first], parts[last])


def _query_end(parts: Sequence[Token], at: int, closed: dict[int, int]) -> int | None:
    """The last token of ``name [(columns)] AS [[NOT] MATERIALIZED] ( … )``, if that stands here."""
    if at + 1 >= len(parts) or parts[at].kind != "name":
        return None
    at += 1
    if parts[at].says("("):
        at = closed[at] + 1
    while at < len(parts) and parts[at].says("AS", "NOT", "MATERIALIZED"):
        at += 1
    return closed[at] if at < len(parts) and parts[at].says("(") and not parts[at - 1].says(")") else None


def _refuse_views(text: str, parts: Sequence[Token]) -> None:
    """A view is computed later, when the results of clauses are no longer there."""
    for at, part in enumerate(parts[:6]):
        if parts[0].says("CREATE") and part.says("VIEW"):
            hint = "CREATE TABLE … AS SELECT …"
            raise QueryError("a view cannot hold MATCH_RECOGNIZE", text=text, span=_span(parts[at]), hint=hint)


def _only(parts: Sequence[Token], bodies: Sequence[tuple[int, int]]) -> str | None:
    """The table, where the statement is one clause over one table: ``SELECT * FROM table MATCH_RECOGNIZE ( … ) [AS] name``."""
    if len(bodies) != 1 or bodies[0][0] != 4:
        return None
    select, star, origin, table = parts[:4]
    after = parts[bodies[0][1] + 1 :]
    plain = len(after) == 0 or (len(after) == 1 + after[0].says("AS") and after[-1].kind == "name")
    if select.says("SELECT") and star.says("*") and origin.says("FROM") and table.kind == "name" and plain:
        return table.name
    return None


@contextmanager
def _placed_in(text: str, part: Span, written: Rewritten | None = None) -> Iterator[None]:
    """Mistakes in a part of a text, or in what was written for it, get their places in the whole."""
    try:
        yield
    except QueryError as error:
        if written is not None and error.text in (None, str(written)):
            begin, end = (error.span.start, error.span.end) if error.span else (0, 1)
            error.text, error.span = text, written.place(begin) | written.place(max(begin, end - 1))
        elif error.text in (None, text[part.start : part.end]):
            span = error.span or Span(0, len("MATCH_RECOGNIZE"))
            error.text, error.span = text, Span(part.start + span.start, part.start + span.end)
        raise
