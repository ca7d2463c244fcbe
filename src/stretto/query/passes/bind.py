"""Binding: a parsed query meets a schema, and everything that does not fit is an error with its place."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from stretto.column_types import field_types, fields_among, text_hint, time_hint, unified
from stretto.errors import LimitError, OptionError, QueryError, Span, placed, suggestion
from stretto.events import Schema, without_types
from stretto.query import predicate as p
from stretto.query.algebra import Atom, Filter, Pattern, Project, fold, spans_of, walk
from stretto.query.moving import BoundMoving, MovingAggregate
from stretto.query.passes import plan_ceql, rewrite
from stretto.query.passes.bind_totals import BoundAsked, bind_asked
from stretto.query.plan import Conjunct, PatternPlan
from stretto.query.query import AnyQuery, JoinedKey, ParsedQuery
from stretto.query.totals import Totals, attributes
from stretto.query.typing import Clock, kind_of, type_of_operand, typed, typed_operand
from stretto.query.windows import BoundWindow, Window
from stretto.times import MOST, PER_SECOND, spoken


@dataclass(frozen=True)
class Measure:
    """How an attribute of a column type is read as a number along the stream.

    ``unit`` is how many of them make a second (``None``: no fixed relation); ``scale`` is the decimal scale; ``real`` says
    that the values are floats.
    """

    unit: int | None = None
    scale: int = 0
    real: bool = False


@dataclass(frozen=True)
class AnyBound:
    """A query of any language that fits its schema: what is left is to run it."""

    parsed: AnyQuery
    schema: Schema
    window: BoundWindow | None
    time: str | None
    _: KW_ONLY
    asked: BoundAsked | None = None
    returns: tuple[Any, ...] | None = None  #: the computed columns of the result

    if TYPE_CHECKING:  # what each language has as a property

        @property
        def plan(self) -> PatternPlan: ...
        @property
        def conditions(self) -> tuple[p.Predicate, ...]: ...
        @property
        def selected(self) -> tuple[tuple[str, tuple[str, ...]], ...]: ...

        def typed(self, condition: p.Predicate) -> p.Predicate:
            """A condition of the query with the types of what it reads."""

    @property
    def pipes(self) -> tuple[Any, ...]:
        """What becomes of the matches, one thing after the other."""
        return ()

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self.parsed.partition_by

    @property
    def returned(self) -> set[str]:
        """The attributes that RETURN reads."""
        return set()

    @property
    def computes_matches(self) -> bool:
        """Whether something is computed over the events of a match."""
        return False

    @property
    def computes(self) -> bool:
        """Whether a condition has arithmetic, which can fail on the events of a batch."""
        return any(map(p.computes, self.conditions))

    @property
    def reads(self) -> Iterable[str | None]:
        """The attributes that conditions, keys and windows inside the pattern read."""
        return (name for one in self.conditions for name in p.attributes(one))

    @cached_property
    def tested(self) -> tuple[str, ...]:
        """The attributes that conditions, windows, order, partitions and totals read, in the schema's order."""
        used = {*placing(self), *attributes(self.parsed.asked), *self.reads}
        for one in self.moving:
            used |= {*one.reads}
        used -= {one.name for one in self.moving}
        return tuple(name for name in self.schema.attributes if name in used)

    @cached_property
    def moving(self) -> tuple[BoundMoving, ...]:
        """The moving aggregates of its conditions."""
        return bound_moving(self) if self.parsed.moving else ()


@dataclass(frozen=True)
class BoundQuery(AnyBound):
    """A CEQL query that fits its schema.

    ``pattern`` is typed, rewritten and projected to the SELECT list; ``selected`` are the variables to report, in order,
    each with the attributes of its events.
    """

    parsed: ParsedQuery
    pattern: Pattern
    selected: tuple[tuple[str, tuple[str, ...]], ...]

    @cached_property
    def plan(self) -> PatternPlan:
        """The query as all languages have it."""
        written = self.parsed.pattern
        if written is not self.pattern:
            written = fold(written, lambda node: typed_filter(node, self.schema))
        return plan_ceql.plan_of(self.parsed, self.schema, written, self.window)

    def typed(self, condition: p.Predicate) -> p.Predicate:
        return typed(condition, self.schema.attributes, clock=Clock.of(self.schema))

    @property
    def conditions(self) -> tuple[p.Predicate, ...]:
        """The conditions on single events, with their types."""
        return tuple(node.predicate for node in walk(self.pattern) if isinstance(node, Filter))

    @cached_property
    def clock(self) -> str | None:
        """The attribute that windows and gaps inside the pattern measure; ``None``: positions, or there are none."""
        return next((bind_window(one, self.schema).attribute for one in spans_of(self.pattern)), None)

    def size(self, window: Window) -> int | float:
        """A window or gap inside the pattern in the unit of what it measures."""
        return bind_window(window, self.schema).size

    @property
    def reads(self) -> Iterable[str | None]:
        return (self.clock, *super().reads)


def placing(bound: AnyBound) -> set[str]:
    """The attributes that say where an event belongs: its partition, stream and type, its time, and its window."""
    own = bound.schema
    window = None if bound.window is None else bound.window.attribute
    return {*bound.partition_by} | {name for name in (own.type, own.stream, own.time, bound.time, window) if name}


def bind(query: ParsedQuery, schema: Schema) -> BoundQuery:
    """Check ``query`` against ``schema``.

    Raises
    ------
    QueryError
        An unknown attribute, type or stream; a comparison of different kinds; a window on an attribute that is no number or
        time, or on a time that is not named.
    OptionError
        A role of the schema names a column that is not there.
    """
    with placed(query.text):
        check_size(query.pattern)
        check_roles(schema)
        schema = with_moving(query, schema)
        _check_streams(query, schema)
        _check_types(query, schema)
        for key in query.joined:
            _check_joined(key, schema)
        check_names(query.partition_by, query.partition_spans, schema, "PARTITION BY")
        check_keys(query.partition_by, query.partition_spans, schema)
        window = bind_window(query.window, schema)
        _check_spans(query, schema)
        pattern = fold(query.pattern, lambda node: typed_filter(node, schema))
        if query.items is not None:
            pattern = Project(pattern, frozenset(item.variable for item in query.items))
        return BoundQuery(
            parsed=query,
            schema=schema,
            pattern=rewrite(pattern),
            window=window,
            selected=_selected(query, schema),
            time=schema.time or (window.attribute if window else None),
            asked=bound_asked(query, schema, window),
        )


def bound_asked(query: AnyQuery, schema: Schema, window: BoundWindow | None) -> BoundAsked | None:
    """What a query asks of all its matches together, checked against a schema."""
    if query.asked is None:
        return None
    shown = {key.name: key.shown for key in query.joined}
    keys = {name: shown.get(name, name) for name in query.partition_by}
    return bind_asked(query.asked, schema, keys, window, bind_window(query.asked.scope.slide, schema))


def _check_spans(query: ParsedQuery, schema: Schema) -> None:
    """Windows and gaps inside a pattern are compared with each other's events, by one clock."""
    first: str | None = None
    for number, one in enumerate(spans_of(query.pattern)):
        found = bind_window(one, schema).attribute
        if number and found != first:
            names = " and ".join("events" if name is None else f"'{name}'" for name in (first, found))
            raise QueryError(
                f"the gaps and windows inside the formula are measured by {names}: by one of them", span=one.span
            )
        first = found


def measure(data_type: pa.DataType) -> Measure | None:
    """Tell how a column type measures a stream; ``None``: it does not."""
    types = pa.types
    if types.is_integer(data_type):
        return Measure()
    if types.is_floating(data_type):
        return Measure(real=True)
    if types.is_timestamp(data_type):
        return Measure(unit=PER_SECOND[data_type.unit])
    if types.is_date32(data_type):
        return Measure(unit=1)
    if types.is_date64(data_type):
        return Measure(unit=10**3)
    if types.is_decimal(data_type):
        return Measure(scale=data_type.scale)
    return None


def number(value: Any, query: AnyBound, attribute: str) -> int | float:
    """An attribute's value in the units of a bound window that measures it."""
    how = measure(query.schema.attributes[attribute])
    assert how is not None
    if isinstance(value, dt.datetime):
        zero = dt.datetime(1970, 1, 1, tzinfo=value.tzinfo and dt.UTC)
        return (value - zero) // dt.timedelta(microseconds=1) * (how.unit or 1) // 10**6
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days * 86_400 * (how.unit or 1)
    if how.scale:
        return int(value.scaleb(how.scale))
    return value if how.real else int(value)


def check_roles(schema: Schema) -> None:
    """Raise an :class:`OptionError` unless the columns that play a role are there and of a type that fits."""
    for role, name in (("type", schema.type), ("time", schema.time), ("stream", schema.stream)):
        if name is not None and name not in schema.attributes:
            hint = suggestion(name, schema.attributes, kind="column")
            more = f"; {without_types(schema.attributes)}" if role == "type" else ""
            raise OptionError(f"{role}='{name}': there is no such column" + (f" ({hint})" if hint else "") + more)
    for role, name in (("type", schema.type), ("stream", schema.stream)):
        if (
            name is not None
            and kind_of(schema.attributes[name]) != "string"
            and not pa.types.is_null(schema.attributes[name])
        ):
            kind = schema.attributes[name]
            raise OptionError(f"{role}='{name}' is {kind}, not text{text_hint(name, kind)}")
    if schema.time is not None and measure(schema.attributes[schema.time]) is None:
        kind = schema.attributes[schema.time]
        raise OptionError(
            f"time='{schema.time}' is {kind}, not a number, timestamp or date{time_hint(schema.time, kind)}"
        )
    check_unit(schema.time_unit)


def check_unit(time_unit: str | None) -> None:
    """Raise an :class:`OptionError` unless a unit of times is one."""
    if time_unit not in (None, *PER_SECOND):
        raise OptionError(f"time_unit={time_unit!r}: expected 's', 'ms', 'us' or 'ns'")


def _check_streams(query: ParsedQuery, schema: Schema) -> None:
    if not schema.streams:
        return
    spans = query.stream_spans or (None,) * len(query.streams)
    for name, span in zip(query.streams, spans, strict=True):
        if name not in schema.streams:
            raise QueryError(
                f"unknown stream '{name}'",
                span=span,
                hint=suggestion(name, schema.streams, kind="stream"),
            )


def _check_types(query: ParsedQuery, schema: Schema) -> None:
    if schema.types is None:
        return
    for node in walk(query.pattern):
        if isinstance(node, Atom) and node.type not in schema.types:
            raise QueryError(
                f"no stream declares the event type '{node.type}'",
                span=node.span,
                hint=suggestion(node.type, sorted(schema.types), kind="type"),
            )


def check_names(names: Sequence[str], spans: Sequence[Span], schema: Schema, where: str) -> None:
    """Raise a :class:`QueryError` unless the schema has all the attributes."""
    for number, name in enumerate(names):
        if name not in schema.attributes:
            raise QueryError(
                f"unknown attribute '{name}' in {where}",
                span=spans[number] if spans else None,
                hint=suggestion(name, schema.attributes, kind="attribute"),
            )


def _check_joined(key: JoinedKey, schema: Schema) -> None:
    """Raise a :class:`QueryError` unless the streams' attributes make one."""
    if key.name in schema.attributes:
        return
    names = [attribute for _, attribute in key.parts]
    schema = with_types_at(names, schema)
    check_names(names, key.spans, schema, "PARTITION BY")
    told = " and ".join(f"{stream}[{name}] is {schema.attributes[name]}" for stream, name in key.parts)
    raise QueryError(f"{told}: they make no key", span=key.span, hint="make them one type")


def check_keys(names: Sequence[str], spans: Sequence[Span], schema: Schema) -> None:
    """Raise a :class:`QueryError` unless attributes can tell partitions apart."""
    for name, span in zip(names, spans or (None,) * len(names), strict=True):
        if not is_key(schema.attributes[name]):
            raise QueryError(
                f"cannot partition by '{name}' ({schema.attributes[name]})",
                span=span,
                hint="partition by numbers, strings, booleans, dates or timestamps",
            )


def is_key(data_type: pa.DataType) -> bool:
    """Tell whether values of a type are told apart."""
    types = pa.types
    if types.is_dictionary(data_type):
        return is_key(data_type.value_type)
    return bool(
        types.is_integer(data_type)
        or types.is_floating(data_type)
        or types.is_boolean(data_type)
        or (types.is_temporal(data_type) and not types.is_interval(data_type))
        or types.is_decimal(data_type)
        or types.is_string(data_type)
        or types.is_large_string(data_type)
        or types.is_string_view(data_type)
        or types.is_binary(data_type)
        or types.is_large_binary(data_type)
        or types.is_fixed_size_binary(data_type)
    )


def typed_filter(node: Pattern, schema: Schema) -> Pattern:
    """The same node, and a filter's condition with its types."""
    if not isinstance(node, Filter):
        return node
    predicate = typed(node.predicate, schema.attributes, clock=Clock.of(schema))
    return Filter(node.body, node.variable, predicate, node.span)


def in_words(size: int | float, attribute: str | None, schema: Schema) -> str:
    """A distance between two events in the words of the attribute that measures it; ``None``: of positions.

    >>> schema = Schema({"t": pa.timestamp("ms"), "n": pa.int64()})
    >>> in_words(90_000, "t", schema), in_words(90_000, "n", schema), in_words(1, None, schema)
    ('1 min 30 s', "90,000 of 'n'", '1 event')
    """
    if attribute is None:
        return f"{size:,} event{'' if size == 1 else 's'}"
    how = measure(schema.attributes[attribute])
    unit = None if how is None else how.unit
    if unit is None and attribute == schema.time and schema.time_unit is not None:
        unit = PER_SECOND[schema.time_unit]
    return f"{size:,} of '{attribute}'" if unit is None else spoken(size / unit)


@overload
def bind_window(window: Window, schema: Schema) -> BoundWindow: ...


@overload
def bind_window(window: Window | None, schema: Schema) -> BoundWindow | None: ...


def bind_window(window: Window | None, schema: Schema) -> BoundWindow | None:
    """Give a window in the unit of what it measures."""
    if window is None:
        return None
    if window.events is not None:
        return BoundWindow(_fitting(window, window.events, "events"), None)
    name = window.attribute
    if name is None:
        name = schema.time
        if name is None:
            raise QueryError(
                "the window measures the stream's time, and no time column is named",
                span=window.span,
                hint="pass time='…', or name the attribute: WITHIN … [attribute]",
            )
    elif name not in schema.attributes:
        raise QueryError(
            f"unknown attribute '{name}' in WITHIN",
            span=window.attribute_span,
            hint=suggestion(name, schema.attributes, kind="attribute"),
        )
    how = measure(schema.attributes[name])
    if how is None:
        raise QueryError(
            f"cannot measure a window by '{name}' ({schema.attributes[name]})",
            span=window.attribute_span or window.span,
            hint="a window needs an integer, decimal or timestamp attribute" + time_hint(name, schema.attributes[name]),
        )
    size, whole = _window_size(window, name, how, schema)
    return BoundWindow(size, name, whole)


def _window_size(window: Window, name: str, how: Measure, schema: Schema) -> tuple[int | float, bool]:
    """The size in units of the attribute, cut to whole ones where it is no float, and whether nothing was cut off."""
    per_second = how.unit
    if per_second is None and name == schema.time and schema.time_unit is not None:
        per_second = PER_SECOND[schema.time_unit]
    if window.seconds is not None:
        if per_second is None:
            raise QueryError(
                f"'{name}' is a plain number ({schema.attributes[name]}); what is a second of it?",
                span=window.span,
                hint="pass time_unit='s' (or 'ms', 'us', 'ns') with time='"
                + name
                + "', or write WITHIN n ["
                + name
                + "]",
            )
        amount = window.seconds * per_second
    else:
        assert window.number is not None
        # A bare number on a timestamp counts seconds (CORE, appendix F: 10000 [dropoff_datetime] is 2.7 hours).
        amount = Decimal(window.number) * (how.unit or 1)
    if how.real:
        return float(amount), True
    exact = amount * 10**how.scale
    scaled = exact.to_integral_value(ROUND_FLOOR)
    if scaled < 0:
        raise QueryError("a window cannot be negative", span=window.span)
    return _fitting(window, int(scaled), f"units of '{name}' ({schema.attributes[name]})"), scaled == exact


def _fitting(window: Window, size: int, of_what: str) -> int:
    """The size of a window, if differences to it fit into 64 bits."""
    if size > MOST:
        raise QueryError(
            f"the window is {size} {of_what}, and the greatest is 2^62 ({MOST})",
            span=window.span,
            hint="without WITHIN there is no window",
        )
    return size


def with_field_types(query: AnyQuery, schema: Schema) -> Schema:
    """The schema with attributes for fields inside of structs that the query names, and for keys that streams call differently."""
    found = with_types_at(query.read, schema)
    made = {}
    for key in query.joined:
        known = with_types_at((name for _, name in key.parts), schema).attributes
        kinds = [known[name] for _, name in key.parts if name in known]
        kind = unified(kinds) if len(kinds) == len(key.parts) else None
        if key.name not in schema.attributes and kind is not None:
            made[key.name] = kind
    return replace(found, attributes={**found.attributes, **made}) if made else found


def with_types_at(paths: Iterable[str | None], schema: Schema) -> Schema:
    """The schema with attributes for those paths that lead to fields inside of structs."""
    found = field_types(schema.attributes, paths)
    return replace(schema, attributes={**schema.attributes, **found}) if found else schema


def shown(query: AnyQuery, schema: Schema) -> tuple[str, ...]:
    """All attributes but those that are fields of other ones, or keys made of them."""
    left_out = {key.name for key in query.joined} | fields_among(schema.attributes) | {one.name for one in query.moving}
    return tuple(name for name in schema.attributes if name not in left_out)


def whole_events(bound: AnyBound) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """All variables, each with all attributes of its events."""
    everything = shown(bound.parsed, bound.schema)
    return tuple((name, everything) for name in bound.parsed.variables)


def _selected(query: ParsedQuery, schema: Schema) -> tuple[tuple[str, tuple[str, ...]], ...]:
    everything = shown(query, schema)
    if isinstance(query.asked, Totals):
        return ()
    if query.items is None:
        return tuple((name, everything) for name in query.variables)
    chosen = []
    for item in query.items:
        if item.attributes is not None:
            check_names(item.attributes, item.attribute_spans, schema, f"SELECT {item.variable}[…]")
        chosen.append((item.variable, everything if item.attributes is None else item.attributes))
    return tuple(chosen)


def check_size(pattern: Pattern, most: int = 200_000) -> None:
    """Refuse a pattern with more than ``most`` nodes, which no machine could hold."""
    for count, _ in enumerate(walk(pattern)):
        if count > most:
            raise LimitError(f"the pattern has more than {most:,} parts; FILTER … OR … doubles it at every OR")


def with_moving(query: AnyQuery, schema: Schema) -> Schema:
    """The schema with an attribute for each moving aggregate of a query.

    Raises
    ------
    QueryError
        An aggregate goes over what it does not take, or its window does not measure the stream's time.
    """
    if not query.moving:
        return schema
    own = {one.name for one in query.moving}
    attributes = {name: kind for name, kind in schema.attributes.items() if name not in own}
    plain = replace(schema, attributes=attributes)
    return replace(schema, attributes=attributes | {one.name: _types(one, plain)[1] for one in query.moving})


def bound_moving(bound: AnyBound) -> tuple[BoundMoving, ...]:
    """The moving aggregates of a bound query, each with what its events are asked."""
    schema, made = bound.schema, []
    for one in bound.parsed.moving:
        places = [position for position in bound.plan.positions if one.variable in position.labels]
        alone = [replace(position, asked=tuple(filter(_stands_still, position.asked))) for position in places]
        guards = dict.fromkeys(guard for position in alone for guard in position.guards())
        argument = None
        if one.argument is not None:
            argument = typed_operand(one.argument, schema.attributes, clock=Clock.of(schema))
        window = bind_window(one.window, schema)
        assert window.attribute is not None
        kinds = _types(one, schema)
        made.append(BoundMoving(one.name, one, tuple(guards), argument, *kinds, window.attribute, window.size))
    return tuple(dict.fromkeys(made))


def _stands_still(conjunct: Conjunct) -> bool:
    return not p.moves(conjunct.condition)


def _types(one: MovingAggregate, schema: Schema) -> tuple[pa.DataType, pa.DataType]:
    """The types of what an aggregate goes over, and of its value."""
    window = bind_window(one.window, schema)
    if schema.time is not None and window.attribute != schema.time:
        raise QueryError(
            f"OVER measures the time that orders the stream, which is '{schema.time}', and not '{window.attribute}'",
            span=one.window.span,
            hint=f"leave [{window.attribute}] out, or pass time='{window.attribute}'",
        )
    if one.argument is None:
        return pa.int64(), pa.int64()
    operand = typed_operand(one.argument, schema.attributes, clock=Clock.of(schema))
    kind = type_of_operand(operand, schema.attributes)
    if one.function == "count":
        if one.distinct and not (is_key(kind) or pa.types.is_null(kind)):
            raise QueryError(f"values of {kind} are not told apart: {one.argument}", span=one.span)
        return kind, pa.int64()
    if kind_of(kind) not in ("int", "float") or pa.types.is_uint64(kind):
        raise QueryError(
            f"{one.function} … OVER goes over whole numbers of 64 bits and doubles, and {one.argument} is {kind}",
            span=one.span,
            hint="count goes over all kinds of values",
        )
    whole = kind_of(kind) == "int" and one.function != "avg"
    return kind, pa.int64() if whole else pa.float64()
