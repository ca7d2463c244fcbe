"""A ``MATCH_RECOGNIZE`` clause as a value: row pattern, references to rows of the match, conditions and measures.

ISO/IEC 9075-2 (R010) and its technical report 19075-5. A condition or a measure is an expression of
:mod:`stretto.query.predicate` whose attributes are *references*, as those of SASE+ are: ``PREV(A.price)`` is an ``Attribute`` of that
name, and :attr:`RowQuery.references` says which row and column it means. SQL's three values are gone before: a condition asks whether
it *is true* (:func:`is_true` of the language's lowering), so that ``NOT`` stands before single comparisons only, which also ask for
values that are known. A condition as a measure, or as an argument of an aggregate, is a ``CASE`` that gives TRUE, FALSE or NULL.

>>> nested = Navigation("A", Side.LAST, 2, shift=-1, attribute="price")
>>> str(nested), str(Navigation("", Side.LAST, attribute="price")), str(Quantified(Variable("A"), 0, None, reluctant=True))
('PREV(RUNNING LAST(A.price, 2), 1)', 'RUNNING LAST(price)', 'A*?')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import UnionType
from typing import ClassVar

import pyarrow as pa

from stretto.errors import Span
from stretto.query import predicate as p
from stretto.query.windows import Window


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


# ---- The pattern


@dataclass(frozen=True)
class Variable:
    """A primary row pattern variable; the same name may stand in several places."""

    name: str
    span: Span | None = _span()

    def __str__(self) -> str:
        return identifier(self.name)


@dataclass(frozen=True)
class Empty:
    """``()``: no row."""

    span: Span | None = _span()

    def __str__(self) -> str:
        return "()"


@dataclass(frozen=True)
class Anchor:
    """``^``, before the first row of a partition; ``$``, after the last one."""

    start: bool
    span: Span | None = _span()

    def __str__(self) -> str:
        return "^" if self.start else "$"


@dataclass(frozen=True)
class Concatenation:
    """Parts one after the other."""

    parts: tuple[RowPattern, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return " ".join(_inside(one, Alternation | Concatenation) for one in self.parts)


@dataclass(frozen=True)
class Alternation:
    """One of some parts; the earlier is preferred."""

    parts: tuple[RowPattern, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return " | ".join(_inside(one, Alternation) for one in self.parts)


@dataclass(frozen=True)
class Permutation:
    """``PERMUTE(A, B, C)``: all parts in any order; the order of the list is preferred, then lexicographically."""

    parts: tuple[RowPattern, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"PERMUTE({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Quantified:
    """``part{least,most}``: greedy prefers more rounds, reluctant fewer; ``most`` None: any number."""

    part: RowPattern
    least: int
    most: int | None
    reluctant: bool = False
    span: Span | None = _span()

    def __str__(self) -> str:
        sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((self.least, self.most))
        inside = f"({self.part})" if isinstance(self.part, Concatenation | Alternation | Quantified) else str(self.part)
        return f"{inside}{p.counted(self.least, self.most) if sign is None else sign}{'?' * self.reluctant}"


@dataclass(frozen=True)
class Excluded:
    """``{- part -}``: its rows belong to the match, but ALL ROWS PER MATCH does not show them."""

    part: RowPattern
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"


RowPattern = Variable | Empty | Anchor | Concatenation | Alternation | Permutation | Quantified | Excluded


def _inside(part: RowPattern, kinds: type | UnionType) -> str:
    """Write a part of a part, in parentheses where it is of some kinds."""
    return f"({part})" if isinstance(part, kinds) else str(part)


def parts_of(pattern: RowPattern) -> Iterator[RowPattern]:
    """All parts of a pattern, parents first, in the order of the text."""
    stack: list[RowPattern] = [pattern]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Concatenation(parts) | Alternation(parts) | Permutation(parts):
                stack.extend(reversed(parts))
            case Quantified(part=part) | Excluded(part=part):
                stack.append(part)
            case _:
                pass


def identifier(name: str) -> str:
    """Write a name as SQL reads it: bare where capital letters say it, else in double quotes."""
    bare = name.isascii() and name.replace("_", "A").isalnum() and not name[:1].isdigit() and name == name.upper()
    return name if bare else '"' + name.replace('"', '""') + '"'


# ---- References


class Side(StrEnum):
    """From which end of the match rows are counted."""

    FIRST = "FIRST"
    LAST = "LAST"


@dataclass(frozen=True)
class Navigation:
    """A column, or the classifier, of one row: ``PREV(FINAL FIRST(A.price, 2), 3)``.

    Of the rows that the variable holds (``""``: all rows of the match), it is the one ``skip`` after the first or before the last;
    then the one ``shift`` rows further in the partition (before it where negative), whether that belongs to the match or not. Where
    there is no such row the value is NULL. The classifier of a row outside of the match, or behind the current row while running,
    is NULL.
    """

    variable: str
    side: Side = Side.LAST
    skip: int = 0
    final: bool = False  #: over the whole match; else over its rows up to the current one
    shift: int = 0
    attribute: str | None = None  #: ``None``: CLASSIFIER

    def __str__(self) -> str:
        if self.attribute is None:
            what = f"CLASSIFIER({identifier(self.variable) if self.variable else ''})"
        else:
            what = (f"{identifier(self.variable)}." if self.variable else "") + str(p.Attribute(self.attribute))
        skip = f", {self.skip}" if self.skip else ""
        inner = f"{'FINAL' if self.final else 'RUNNING'} {self.side}({what}{skip})"
        return inner if not self.shift else f"{'NEXT' if self.shift > 0 else 'PREV'}({inner}, {abs(self.shift)})"


@dataclass(frozen=True)
class Aggregated:
    """``sum(A.price * 2)`` over the rows that the variable holds; ``count(*)`` and ``count(A.*)`` have no arguments.

    Arguments are over a row's own columns; where they read its classifier or the number of the match, these are attributes by
    the names of :class:`Classifier` and :class:`MatchNumber`.
    """

    function: str  #: in small letters
    variable: str
    arguments: tuple[p.Operand, ...] = ()
    distinct: bool = False
    final: bool = False

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.arguments)) or "*"
        of = f" OF {identifier(self.variable)}" if self.variable else ""
        return f"{'FINAL' if self.final else 'RUNNING'} {self.function}({'DISTINCT ' * self.distinct}{inside}{of})"


@dataclass(frozen=True)
class MatchNumber:
    """``MATCH_NUMBER()``: matches are numbered in each partition, from 1, empty ones too."""

    def __str__(self) -> str:
        return "MATCH_NUMBER()"


@dataclass(frozen=True)
class Classifier:
    """The classifier of the row that an aggregate looks at."""

    def __str__(self) -> str:
        return "CLASSIFIER()"


RowReference = Navigation | Aggregated | MatchNumber | Classifier


# ---- The clause


@dataclass(frozen=True)
class OrderItem:
    """A column of ORDER BY. Where nothing is said, NULLs come last (as in Trino)."""

    column: str
    descending: bool = False
    nulls_first: bool = False
    span: Span | None = _span()


@dataclass(frozen=True)
class Measure:
    """``expression AS name``."""

    value: p.Operand
    name: str
    span: Span | None = _span()


class RowsPerMatch(StrEnum):
    """What a match gives."""

    ONE = "ONE ROW PER MATCH"
    SHOW_EMPTY = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"
    OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    WITH_UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"
    WINDOW = "ROWS BETWEEN CURRENT ROW AND …"  #: in a WINDOW clause: one row for each row


class AfterMatch(StrEnum):
    """Where the next match may begin."""

    PAST = "PAST LAST ROW"
    NEXT = "TO NEXT ROW"
    FIRST = "TO FIRST"
    LAST = "TO LAST"


@dataclass(frozen=True)
class Frame:
    """In a WINDOW clause: the rows from the current one on among which its match is sought, and which it may read."""

    following: int | None = None  #: how many rows follow the current one; ``None``: all
    seeks: bool = False  #: the match may begin at a later row; else it begins at the current one
    span: Span | None = _span()


@dataclass(frozen=True)
class RowQuery:
    """A clause as it was read: names of variables in capital letters unless they were quoted, columns as the text has them."""

    text: str
    pattern: RowPattern
    define: Mapping[str, p.Predicate]  #: by variable: when it is true; a variable without a condition is always
    measures: tuple[Measure, ...] = ()
    partition_by: tuple[str, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    rows: RowsPerMatch = RowsPerMatch.ONE
    after: AfterMatch = AfterMatch.PAST
    after_variable: str | None = None
    frame: Frame | None = None  #: of a WINDOW clause
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    within: Window | None = None  #: Flink's WITHIN: the last row's time is less than the first one's plus this
    references: Mapping[str, RowReference] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)  #: of what errors point at later
    time_unit: str | None = field(default=None, compare=False)  #: of the first column of ORDER BY, where it is a number
    language: ClassVar = "match_recognize"

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def variables(self) -> tuple[str, ...]:
        """The primary variables, in the order of the pattern."""
        return tuple(dict.fromkeys(one.name for one in parts_of(self.pattern) if isinstance(one, Variable)))

    def holds(self, variable: str) -> frozenset[str]:
        """The primary variables that a name of a variable, of a subset, or of all rows (``""``) stands for."""
        if not variable:
            return frozenset(self.variables)
        return frozenset(self.subsets.get(variable, (variable,)))


@dataclass(frozen=True)
class BoundMeasure:
    """A measure with its type."""

    value: p.Operand
    name: str
    type: pa.DataType


@dataclass(frozen=True)
class BoundRows:
    """A clause over rows of a schema: every column is there, under the schema's own name, and every expression has a type."""

    parsed: RowQuery  #: over the schema's own names
    schema: pa.Schema  #: of the rows
    columns: pa.Schema  #: what expressions read: the rows' columns, and behind them fields of structs, by their paths
    conditions: Mapping[str, p.Predicate]  #: typed, by variable
    measures: tuple[BoundMeasure, ...]
    types: Mapping[str, pa.DataType]  #: of each reference, by its name
    output: pa.Schema  #: of the result, in Trino's order

    @property
    def read(self) -> tuple[str, ...]:
        """The columns, and fields of structs, that matching and measures read, those of the clause's keys and order first."""
        asked = [one.attribute for one in self.parsed.references.values() if isinstance(one, Navigation)]
        for one in self.parsed.references.values():
            if isinstance(one, Aggregated):
                asked += [name for part in one.arguments for name in p.attributes(part) if name in self.columns.names]
        keys = (*self.parsed.partition_by, *(item.column for item in self.parsed.order_by))
        return tuple(dict.fromkeys((*keys, *(name for name in asked if name is not None))))

    @property
    def roots(self) -> list[str]:
        """The rows' own columns in which all that is read stands."""
        names = self.schema.names
        return list(dict.fromkeys(name if name in names else name.partition(".")[0] for name in self.read))
