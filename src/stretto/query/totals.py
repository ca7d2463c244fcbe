"""What is asked of all matches together, as values: counts and sums, the best ones, and a sample.

SEMANTICS: counts and sums over all matches. ``SELECT COUNT(*), SUM(b[volume]) AS traded`` of CEQL and ``RETURN TOTAL count(*),
sum(b[].volume) AS traded`` of SASE+ are both a :class:`Totals`; ``ORDER BY`` with ``LIMIT`` is a :class:`Best`, ``SAMPLE`` a
:class:`Sample`. What all three have in common is over which matches a row speaks: their :class:`Scope`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from stretto.errors import QueryError, Span
from stretto.query import predicate as p
from stretto.query.windows import Window


class Function(StrEnum):
    """What is made of the values that all matches together have."""

    COUNT = "COUNT"  #: how many matches, or how many values that are not NULL
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"


@dataclass(frozen=True)
class Total:
    """``SUM(b[volume])``: over all matches, and in each of them over the events of a variable.

    ``COUNT(*)`` has neither variable nor value; the value of ``COUNT(b)``, how many events, is a constant.
    """

    function: Function
    variable: str | None
    value: p.Operand | None  #: over the attributes of one event
    name: str  #: the column of the result
    floating: bool = False  #: ``CAST(… AS DOUBLE)``: in floating point from the start, so that nothing overflows
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        inside = "*" if self.variable is None else self.variable
        if self.value is not None and not isinstance(self.value, p.Constant):
            inside += f"[{self.value}]"
        shown = f"{self.function}({inside})"
        return f"CAST({shown} AS DOUBLE)" if self.floating else shown


@dataclass(frozen=True)
class GroupKey:
    """``[name]``, a key of the partition, or ``a[region]``, an attribute of the one event of a variable."""

    variable: str | None
    attribute: str
    name: str  #: the column of the result
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.variable or ''}[{self.name if self.variable is None else self.attribute}]"


class Extent(StrEnum):
    """Which matches a row is about."""

    TABLE = "TABLE"  #: all of them
    EVENT = "EVENT"  #: those that one event completes
    WINDOW = "WINDOW"  #: those that lie wholly inside one of the windows that begin every so often


@dataclass(frozen=True)
class Scope:
    """``GROUP BY a[region] EVERY 1 minute``: of which matches a row is made."""

    extent: Extent = Extent.TABLE
    slide: Window | None = None  #: how far apart windows begin; their size is that of WITHIN
    group_by: tuple[GroupKey, ...] | None = None  #: ``None``: the keys of PARTITION BY; ``()``: all together
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Totals:
    """``SELECT COUNT(*), SUM(b[volume])``: one row for all matches of the scope, by group."""

    items: tuple[Total, ...]
    scope: Scope = Scope()
    distinct: tuple[str, ...] | None = None  #: ``COUNT(DISTINCT a, b)``: over the complex events of ``SELECT a, b``


@dataclass(frozen=True)
class Best:
    """``ORDER BY SUM(b[volume]) DESC LIMIT 3``: the matches with the greatest or least score in the scope, by group.

    The score is added up over the events of a match; events without a value (NULL) add nothing.
    """

    score: tuple[Total, ...]  #: sums and counts, each with the sign of its factor
    factors: tuple[int | Decimal, ...]
    descending: bool
    most: int
    scope: Scope = Scope()


@dataclass(frozen=True)
class Sample:
    """``SAMPLE 100 SEED 7``: so many matches of the scope, by group, each set of so many as likely as any other."""

    most: int
    seed: int = 0
    scope: Scope = Scope()


#: What a query asks of all its matches together.
Asked = Totals | Best | Sample


def totals(asked: Asked | None) -> tuple[Total, ...]:
    """What is counted and added up, for rows or for scores."""
    if isinstance(asked, Totals):
        return asked.items
    return asked.score if isinstance(asked, Best) else ()


def attributes(asked: Asked | None) -> tuple[str, ...]:
    """The attributes of events that are counted, added up or grouped by.

    >>> attributes(Totals((Total(Function.SUM, "b", p.Attribute("volume"), "traded"),)))
    ('volume',)
    """
    if asked is None:
        return ()
    read = [name for one in totals(asked) if one.value is not None for name in p.attributes(one.value)]
    grouped = [one.attribute for one in asked.scope.group_by or () if one.variable is not None]
    return tuple(dict.fromkeys((*read, *grouped)))


def undecided(variables: Iterable[str]) -> QueryError:
    """The error where runs of one complex event disagree on which events some variables hold."""
    names = " or ".join(sorted(variables))
    return QueryError(
        f"after the same events one way to a match has one of them in {names} and another has not, so that what they add up to is "
        "not known as they come",
        hint="valuations=True takes each way by itself; or give the variables conditions that tell them apart",
    )
