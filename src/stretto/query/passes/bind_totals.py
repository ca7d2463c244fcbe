"""Binding what is asked of all matches: values get types, groups their columns, and windows the unit of what they measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal

import pyarrow as pa

from stretto.errors import LimitError, QueryError, Span
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.totals import Asked, Best, Extent, Function, GroupKey, Sample, Scope, Total, Totals
from stretto.query.typing import Clock, kind_of, type_of_operand, typed_operand
from stretto.query.windows import BoundWindow

#: Wide enough for all numbers that a query may have.
_EXACT = Context(prec=1_000)

MOST_PANES = 4_096
"""Into how many panes a window may fall, each of which costs an event something."""


@dataclass(frozen=True)
class BoundTotal:
    """``SUM(b[volume])`` over a schema.

    ``value`` is typed, and ``kind`` the type of what it gives (both ``None`` for ``COUNT(*)``); ``type`` is that of the column.
    Decimals are added up exactly where ``value`` is an attribute; computed ones are doubles.
    """

    function: Function
    variable: str | None
    value: p.Operand | None
    kind: pa.DataType | None
    name: str
    type: pa.DataType
    floating: bool


@dataclass(frozen=True)
class BoundGroup:
    """A column of groups: a key of the partition where ``variable`` is ``None``, else of the event that the variable holds."""

    variable: str | None
    attribute: str
    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Panes:
    """The windows ``[k · slide, k · slide + size)``, which are made of panes of ``width``, in the unit of what they measure.

    ``attribute`` is what they measure; ``None``: positions, those of the partition where there is one.
    """

    attribute: str | None
    size: int
    slide: int

    @property
    def width(self) -> int:
        """The greatest common divisor, so that each window is made of whole panes."""
        return math.gcd(self.size, self.slide)

    @property
    def count(self) -> int:
        """Of how many panes a window is made."""
        return self.size // self.width


@dataclass(frozen=True)
class BoundScope:
    """Over which matches a row, or a choice of matches, is. ``panes`` are there where ``extent`` is ``WINDOW``."""

    extent: Extent
    panes: Panes | None
    groups: tuple[BoundGroup, ...]


@dataclass(frozen=True)
class BoundTotals:
    """Counts and sums over all matches."""

    items: tuple[BoundTotal, ...]
    scope: BoundScope

    @property
    def variables(self) -> frozenset[str]:
        """The variables of which it matters what they hold."""
        return _named(self.items, self.scope)


@dataclass(frozen=True)
class BoundBest:
    """The ``most`` matches with the greatest or least score.

    Where ``exact``, scores are integers: those of decimal values are over their unscaled integers, which ``factors`` take into
    account. Else they are doubles.
    """

    score: tuple[BoundTotal, ...]
    factors: tuple[int | float, ...]
    exact: bool
    descending: bool
    most: int
    scope: BoundScope

    @property
    def variables(self) -> frozenset[str]:
        """The variables of which it matters what they hold."""
        return _named(self.score, self.scope)


@dataclass(frozen=True)
class BoundSample:
    """So many matches, drawn at random."""

    most: int
    seed: int
    scope: BoundScope

    @property
    def variables(self) -> frozenset[str]:
        """The variables of which it matters what they hold."""
        return _named((), self.scope)


def _named(items: Sequence[BoundTotal], scope: BoundScope) -> frozenset[str]:
    own = (*(one.variable for one in items), *(one.variable for one in scope.groups))
    return frozenset(name for name in own if name is not None)


BoundAsked = BoundTotals | BoundBest | BoundSample


def bind_asked(
    asked: Asked | None,
    schema: Schema,
    keys: Mapping[str, str],
    window: BoundWindow | None,
    slide: BoundWindow | None,
) -> BoundAsked | None:
    """Check what is asked of all matches against a schema.

    Parameters
    ----------
    asked, schema
        What is checked, and against what.
    keys
        The attributes of the partition, with what results call them.
    window, slide
        WITHIN, and the slide of EVERY, bound.

    Raises
    ------
    QueryError
        An attribute is unknown, or of a type that the function does not take; or nothing whole measures the windows.
    LimitError
        The windows fall into too many panes.
    """
    if asked is None:
        return None
    scope = _scope(asked.scope, schema, keys, window, slide)
    match asked:
        case Totals(items):
            return BoundTotals(tuple(_total(one, schema) for one in items), scope)
        case Best(score, factors, descending, most):
            terms = tuple(_total(one, schema) for one in score)
            exact, scaled = _factors(terms, factors, score[0].span)
            return BoundBest(terms, scaled, exact, descending, most, scope)
        case Sample(most, seed):
            return BoundSample(most, seed, scope)


# ---- Values

#: The kinds of values that a function takes.
_TAKES = {
    Function.SUM: ("int", "float", "decimal", "duration"),
    Function.AVG: ("int", "float", "decimal"),
    Function.MIN: ("int", "float", "decimal", "time", "duration"),
    Function.MAX: ("int", "float", "decimal", "time", "duration"),
}
_NAMES = {"SUM": "numbers or durations", "AVG": "numbers", "MIN": "numbers or times", "MAX": "numbers or times"}


def _kind(data_type: pa.DataType) -> str:
    return "duration" if pa.types.is_duration(data_type) else kind_of(data_type)


def _total(total: Total, schema: Schema) -> BoundTotal:
    if total.value is None:
        counted = pa.float64() if total.floating else pa.int64()
        return BoundTotal(total.function, None, None, None, total.name, counted, total.floating)
    value = typed_operand(total.value, schema.attributes, clock=Clock.of(schema))
    source = type_of_operand(value, schema.attributes)
    kind = _kind(source)
    if kind not in _TAKES.get(total.function, (kind,)):
        raise QueryError(
            f"{total.function} needs {_NAMES[total.function]}, and '{total.value}' is {source}",
            span=total.span,
            hint="COUNT(…) counts values of any kind",
        )
    wide = pa.types.is_decimal(source) and source.precision > 18
    if wide and total.function is not Function.COUNT and not total.floating:
        if total.function is not Function.SUM:
            raise QueryError(
                f"'{total.value}' is {source}, whose digits do not all fit into 64 bits", span=total.span, hint=_CAST
            )
        hint = f"CAST({total.function}(…) AS DOUBLE) adds it up in floating point, or make it a decimal of 18 digits before"
        raise QueryError(
            f"'{total.value}' is {source}, whose digits do not all fit into 64 bits", span=total.span, hint=hint
        )
    return BoundTotal(
        total.function, total.variable, value, source, total.name, _type(total, source, kind), total.floating
    )


_CAST = "make it a decimal of 18 digits, or a double, before"


def _type(total: Total, source: pa.DataType, kind: str) -> pa.DataType:
    """The type of the column."""
    match total.function:
        case Function.COUNT:
            return pa.float64() if total.floating else pa.int64()
        case Function.AVG:
            return pa.float64()
        case Function.MIN | Function.MAX:
            return source.value_type if pa.types.is_dictionary(source) else source
        case _ if total.floating and kind != "duration":
            return pa.float64()
    if kind == "decimal":
        return pa.decimal128(38, source.scale)
    return {"int": pa.int64(), "float": pa.float64()}.get(kind, source)


def _factors(
    terms: Sequence[BoundTotal], factors: Sequence[int | Decimal], span: Span | None
) -> tuple[bool, tuple[int | float, ...]]:
    """Whether a score is exact, and the factors of what is then added up."""
    scales = [_scale(one) for one in terms]
    places = [max(0, -_exponent(factor)) for factor in factors]
    most = max(scale + place for scale, place in zip(scales, places, strict=True))
    scaled = [Decimal(factor).scaleb(most - scale, _EXACT) for scale, factor in zip(scales, factors, strict=True)]
    if any(abs(factor) >= 1 << 63 for factor in scaled):
        raise QueryError(
            "a score is of numbers of 64 bits, and a factor of this one has more digits", span=span, hint="round it"
        )
    if any(map(_is_real, terms)):
        return False, tuple(map(float, factors))
    return True, tuple(map(int, scaled))


def _is_real(term: BoundTotal) -> bool:
    """Whether what is added up are doubles."""
    summed = term.function is Function.SUM and term.kind is not None
    return term.floating or (summed and pa.types.is_floating(term.kind))


def _scale(term: BoundTotal) -> int:
    counts = term.function is Function.COUNT or term.kind is None or not pa.types.is_decimal(term.kind)
    return 0 if counts else int(term.kind.scale)  # type: ignore[union-attr]


def _exponent(factor: int | Decimal) -> int:
    exponent = Decimal(factor).as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


# ---- Scope


def _scope(
    scope: Scope,
    schema: Schema,
    keys: Mapping[str, str],
    window: BoundWindow | None,
    slide: BoundWindow | None,
) -> BoundScope:
    asked = scope.group_by
    if asked is None:
        asked = tuple(GroupKey(None, attribute, name) for attribute, name in keys.items())
    groups = tuple(_group(one, schema) for one in asked)
    if scope.extent is not Extent.WINDOW:
        return BoundScope(scope.extent, None, groups)
    assert window is not None
    assert slide is not None
    return BoundScope(scope.extent, _panes(scope, window, slide, schema), groups)


def _group(one: GroupKey, schema: Schema) -> BoundGroup:
    typed_operand(p.Attribute(one.attribute, one.span), schema.attributes)  # an unknown attribute is an error
    kind = schema.attributes[one.attribute]
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(plain):
        raise QueryError(
            f"cannot group by '{one.attribute}' ({kind})",
            span=one.span,
            hint="group by numbers, strings, booleans, dates or timestamps",
        )
    return BoundGroup(one.variable, one.attribute, one.name, kind)


def _panes(scope: Scope, window: BoundWindow, slide: BoundWindow, schema: Schema) -> Panes:
    span = None if scope.slide is None else scope.slide.span
    if window.attribute is not None and pa.types.is_floating(schema.attributes[window.attribute]):
        kind = schema.attributes[window.attribute]
        raise QueryError(
            f"windows begin at whole numbers of '{window.attribute}', which is {kind}",
            span=span,
            hint="windows need an integer, decimal or timestamp",
        )
    size, apart = int(window.size), int(slide.size)
    if apart < 1 or size < 1:
        what = "WITHIN" if size < 1 else "EVERY"
        raise QueryError(
            f"{what} is shorter than the unit of '{window.attribute}' ({schema.attributes[window.attribute or '']})"
            if window.attribute
            else f"{what} is of no event",
            span=span,
        )
    if not (window.whole and slide.whole):
        kind = schema.attributes[window.attribute or ""]
        raise QueryError(
            f"{'EVERY' if window.whole else 'WITHIN'} is no whole number of units of '{window.attribute}' ({kind})",
            span=span,
            hint="windows begin and end at such units: say whole ones, or make the column a finer one before",
        )
    panes = Panes(window.attribute, size, apart)
    if panes.count > MOST_PANES:
        raise LimitError(
            f"windows of {size} that begin every {apart} are made of {panes.count:,} panes of {panes.width}, and at most "
            f"{MOST_PANES:,} are kept\nhint: let EVERY divide WITHIN, or begin windows less often"
        )
    return panes
