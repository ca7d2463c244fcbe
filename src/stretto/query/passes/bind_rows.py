"""Binding a ``MATCH_RECOGNIZE`` clause: columns are found in the schema, references and measures get types.

A column is found by its exact name, else by the one name that is the same but for capital letters. Types are Trino's where the
library has them: ``count`` and the ``sum`` of integers are int64, that of decimals is a decimal of 38 digits, averages and
deviations are doubles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from stretto.column_types import without_views
from stretto.errors import QueryError, Span, nearest, placed, suggestion
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.passes.bind import check_unit, is_key
from stretto.query.row_pattern import (
    Aggregated,
    BoundMeasure,
    BoundRows,
    Classifier,
    MatchNumber,
    Measure,
    Navigation,
    OrderItem,
    RowQuery,
    RowReference,
    RowsPerMatch,
)
from stretto.query.sase import Referred
from stretto.query.typing import Clock, kind_of, kind_of_operand, type_of_operand, typed, typed_operand
from stretto.query.windows import Window

#: What an aggregate may see of a row besides its columns.
_OF_ROWS = {str(Classifier()): pa.string(), str(MatchNumber()): pa.int64()}

_NUMBERS = ("int", "float", "decimal")
_ORDERED = (*_NUMBERS, "time", "string", "bool")

#: What aggregates take, where it is not everything.
_TAKES: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("sum", "avg", "stddev_samp", "stddev_pop", "var_samp", "var_pop"), _NUMBERS
)
_TAKES |= dict.fromkeys(("bool_and", "bool_or", "count_if"), ("bool",))
_TAKES |= dict.fromkeys(("min", "max"), _ORDERED)

#: A clause by itself: nobody says what a number counts.
_WITHOUT_UNIT = Clock(
    hint="intervals stand beside times; a number has its own unit: write B.t - A.t > 5, or give stretto.sql time_unit='s'"
)

_SHOWN = {_NUMBERS: "numbers", ("bool",): "truth values", _ORDERED: "values that are ordered"}


def bind(parsed: RowQuery, schema: pa.Schema, clock: Clock | None = None) -> BoundRows:
    """Check a clause against the schema of its rows.

    Parameters
    ----------
    parsed, schema
        The clause, and the columns of its rows.
    clock
        The column that counts the time of the rows, where it is a number and somebody has said its unit. ``None``: the first of
        ``ORDER BY``, where the clause itself has been told a unit.

    Raises
    ------
    QueryError
        A column is unknown or stands for several, a value has a type that its function does not take, two columns of the result
        have one name, or the window has no time.
    """
    with placed(parsed.text):
        binder = _Binder(schema, (*parsed.variables, *parsed.subsets), clock or _WITHOUT_UNIT)
        partition_by = tuple(
            binder.column(name, parsed.spans.get(f"PARTITION BY {name}"), "PARTITION BY")
            for name in parsed.partition_by
        )
        order_by = tuple(
            replace(item, column=binder.column(item.column, item.span, "ORDER BY")) for item in parsed.order_by
        )
        _check_keys(binder.columns, partition_by, parsed)
        _check_order(binder.columns, order_by)
        if clock is None:
            binder.clock = _own_clock(parsed, binder.columns, order_by)
        measures = [replace(one, value=binder.bound(one.value, parsed.references)) for one in parsed.measures]
        define = {name: binder.bound(one, parsed.references) for name, one in parsed.define.items()}
        conditions = {name: typed(one, binder.types, clock=binder.counts) for name, one in define.items()}
        values = [_bound(one, binder.types, binder.counts) for one in measures]
        query = replace(
            parsed,
            partition_by=partition_by,
            order_by=order_by,
            measures=tuple(measures),
            define=define,
            references=binder.references,
        )
        query = replace(query, within=_bound_window(query, binder.columns, binder.clock))
        output = _output(query, schema, binder.columns, values)
        return BoundRows(query, schema, binder.columns, conditions, tuple(values), binder.types, output)


@dataclass
class _Binder:
    """Puts the schema's own names in place of those of the text, and finds the types of references."""

    schema: pa.Schema
    variables: tuple[str, ...] = ()  #: those of the pattern, and subsets
    clock: Clock = _WITHOUT_UNIT  #: by columns
    references: dict[str, RowReference] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    columns: pa.Schema = field(init=False)  #: those of the schema, and fields of structs that are read

    def __post_init__(self) -> None:
        self.columns = self.schema

    @property
    def counts(self) -> Clock:
        """The clock, by the references that read it."""
        columns = {p.Attribute(name) for name in self.clock.names}
        names = {
            name
            for name, one in self.references.items()
            if (isinstance(one, Navigation) and one.attribute in self.clock.names)
            or (isinstance(one, Aggregated) and one.function in ("min", "max") and columns.issuperset(one.arguments))
        }
        return replace(self.clock, names=frozenset(names))

    def column(self, name: str, span: Span | None, where: str | None = None) -> str:
        """The schema's own name of a column, or the path of a field inside of one."""
        names: list[str] = self.schema.names
        found = _own_name(name, names, "column", span)
        if found is not None:
            return found
        root, *fields = name.split(".")
        own = _own_name(root, names, "column", span) if fields else None
        if own is not None:
            return self._field(own, fields, span)
        message, meant = f"unknown column '{name}'", None
        if fields:
            message = f"'{root}' is no variable of the pattern, and no column"
            meant = nearest(root.upper(), self.variables)
        sought = root if not fields or nearest(root, names) else fields[-1]
        hint = suggestion(sought, names, kind="column") if meant is None else f"did you mean '{meant}'?"
        raise QueryError(message + (f" in {where}" if where else ""), span=span, hint=hint)

    def _field(self, path: str, names: Sequence[str], span: Span | None) -> str:
        """The path of a field by the schema's own names; it is a column from now on."""
        kind = self.schema.field(path).type
        for name in names:
            if not pa.types.is_struct(kind):
                raise QueryError(f"'{path}' is {kind}, which has no field '{name}'", span=span)
            known = [one.name for one in kind]
            own = _own_name(name, known, "field", span)
            if own is None:
                hint = suggestion(name, known, kind="field")
                raise QueryError(f"'{path}' has no field '{name}'", span=span, hint=hint)
            path, kind = f"{path}.{own}", kind.field(known.index(own)).type
        if path not in self.columns.names:
            self.columns = self.columns.append(pa.field(path, without_views(kind)))
        return path

    def bound(self, expression: Any, given: Mapping[str, RowReference]) -> Any:
        """An expression over references to the schema's columns."""
        if isinstance(expression, p.Attribute):
            reference = self._reference(given[expression.name], expression.span)
            name = str(reference)
            if name not in self.references:
                self.references[name] = reference
                self.types[name] = self._type(reference, expression.span)
            return Referred(name, expression.span)
        return _divided(p.rebuilt(expression, lambda part: self.bound(part, given)), self.types, self.counts)

    def _reference(self, reference: RowReference, span: Span | None) -> RowReference:
        match reference:
            case Navigation(attribute=str() as name):
                return replace(reference, attribute=self.column(name, span))
            case Aggregated(arguments=arguments):
                return replace(reference, arguments=tuple(self._argument(one) for one in arguments))
            case _:
                return reference

    def _argument(self, expression: p.Operand) -> p.Operand:
        """An argument of an aggregate over the columns of a row; its durations beside numbers of the clock are numbers, too."""
        argument: p.Operand = self._of_row(expression)
        if self.clock.per_second is None or not any(isinstance(node, p.Duration) for node in p.walk(argument)):
            return argument
        return typed_operand(argument, row_types(self.columns), clock=self.clock)

    def _of_row(self, expression: Any) -> Any:
        """An expression over the columns of a row, for an aggregate."""
        if isinstance(expression, p.Attribute):
            return (
                expression
                if expression.name in _OF_ROWS
                else p.Attribute(self.column(expression.name, expression.span), expression.span)
            )
        return _divided(p.rebuilt(expression, self._of_row), row_types(self.columns), self.clock)

    def _type(self, reference: RowReference, span: Span | None) -> pa.DataType:
        match reference:
            case Navigation(attribute=None):
                return pa.string()
            case Navigation(attribute=str() as name):
                return self.columns.field(name).type
            case Aggregated():
                return self._aggregated(reference, span)
            case _:
                return pa.int64()

    def _aggregated(self, reference: Aggregated, span: Span | None) -> pa.DataType:
        """The type of an aggregate; its arguments stay as they are written, :func:`typed_arguments` gives them types."""
        function = reference.function
        kinds = [type_of_operand(one, row_types(self.columns)) for one in typed_arguments(reference, self.columns)]
        self._check_argument(reference, kinds, span)
        if function in ("count", "count_if"):
            return pa.int64()
        plain = kinds[0].value_type if pa.types.is_dictionary(kinds[0]) else kinds[0]
        if function in ("min", "max", "min_by", "max_by", "any_value"):
            return plain
        if function == "array_agg":
            return pa.list_(plain)
        if function == "sum":
            kind = kind_of(plain)
            return (
                pa.decimal128(38, plain.scale) if kind == "decimal" else pa.int64() if kind == "int" else pa.float64()
            )
        return pa.bool_() if function in ("bool_and", "bool_or") else pa.float64()

    def _check_argument(self, reference: Aggregated, kinds: Sequence[pa.DataType], span: Span | None) -> None:
        if not kinds:
            return
        function = reference.function
        judged = kinds[-1] if function in ("min_by", "max_by") else kinds[0]
        takes = _ORDERED if function in ("min_by", "max_by") else _TAKES.get(function)
        if takes is not None and kind_of(judged) not in takes:
            raise QueryError(
                f"{function} takes {_SHOWN[takes]}, not {judged}", span=span, hint="count counts values of any type"
            )
        if function == "sum" and pa.types.is_decimal(judged) and judged.precision > 38:
            hint = "write sum(CAST(x AS double))"
            raise QueryError(f"sum takes decimals of up to 38 digits, not {judged}", span=span, hint=hint)
        if reference.distinct and not is_key(judged):
            raise QueryError(f"values of {judged} are not told apart", span=span, hint="leave out DISTINCT")


def _own_name(name: str, known: Sequence[str], what: str, span: Span | None) -> str | None:
    """The one of some names that is meant: the same, else the only one that differs in capital letters; ``None``: there is none."""
    found = [name] if name in known else [one for one in known if one.casefold() == name.casefold()]
    if not found:
        return None
    if known.count(found[0]) > 1:
        raise QueryError(f"the rows have two {what}s '{found[0]}'", span=span, hint="give one another name before")
    if len(found) > 1:
        raise QueryError(
            f"'{name}' stands for the {what}s {' and '.join(map(repr, found))}",
            span=span,
            hint="write one of them as it is, in double quotes",
        )
    return found[0]


def _divided(node: Any, types: Mapping[str, pa.DataType], clock: Clock) -> Any:
    """Where two integers are divided the quotient is an integer."""
    if not (isinstance(node, p.Arithmetic) and node.op == "/"):
        return node
    kinds = {kind_of_operand(one, types, clock) for one in (node.left, node.right)}
    return replace(node, op="div") if kinds == {"int"} else node


def row_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The types of what an aggregate's arguments may read: columns of its row, its classifier, the number of the match."""
    return dict(zip(schema.names, schema.types, strict=True)) | _OF_ROWS


def typed_arguments(reference: Aggregated, schema: pa.Schema) -> tuple[p.Operand, ...]:
    """The arguments of an aggregate, checked against the types of a row."""
    types = row_types(schema)
    return tuple(typed_operand(one, types) for one in reference.arguments)


def _bound(measure: Measure, types: Mapping[str, pa.DataType], clock: Clock) -> BoundMeasure:
    value = typed_operand(measure.value, types, clock=clock)
    return BoundMeasure(value, measure.name, type_of_operand(value, types))


def _check_keys(schema: pa.Schema, names: Sequence[str], parsed: RowQuery) -> None:
    for name, written in zip(names, parsed.partition_by, strict=True):
        span = parsed.spans.get(f"PARTITION BY {written}")
        if names.count(name) > 1:
            raise QueryError(f"PARTITION BY has the column '{name}' twice", span=span)
        if not is_key(schema.field(name).type):
            raise QueryError(f"rows are not partitioned by '{name}', which is {schema.field(name).type}", span=span)


def _check_order(schema: pa.Schema, items: Sequence[Any]) -> None:
    for item in items:
        kind = schema.field(item.column).type
        if kind_of(kind) not in _ORDERED:
            raise QueryError(f"rows are not ordered by '{item.column}', which is {kind}", span=item.span)


def _own_clock(parsed: RowQuery, schema: pa.Schema, order_by: Sequence[OrderItem]) -> Clock:
    """The clock of a clause by itself: what its rows are ordered by, in the unit that it has been told."""
    check_unit(parsed.time_unit)
    if parsed.time_unit is None or not order_by:
        return _WITHOUT_UNIT
    time = order_by[0].column
    return Clock.of(Schema({time: schema.field(time).type}, type=None, time=time, time_unit=parsed.time_unit))


def _bound_window(query: RowQuery, schema: pa.Schema, clock: Clock) -> Window | None:
    """The window in seconds of a column of times, or in units of an integer one that counts the time."""
    window = query.within
    if window is None:
        return None
    name = query.order_by[0].column
    kind = schema.field(name).type
    if kind_of(kind) == "time" or window.number is not None:
        return window
    counts = name in clock.names and kind_of(kind) == "int"
    if counts and clock.per_second is not None and window.seconds is not None:
        return Window(number=window.seconds * clock.per_second, span=window.span)
    raise QueryError(
        f"WITHIN measures time, and the rows are ordered by '{name}', which is {kind}",
        span=window.span,
        hint=clock.hint if counts else "ORDER BY a column of times first",
    )


def _output(query: RowQuery, schema: pa.Schema, columns: pa.Schema, measures: Sequence[BoundMeasure]) -> pa.Schema:
    """The columns of the result: keys, order, measures, the rest; with ONE ROW PER MATCH keys and measures."""
    before = list(query.partition_by)
    after: list[str] = []
    if query.rows is RowsPerMatch.WINDOW:
        before = schema.names
    elif query.rows is not RowsPerMatch.ONE:
        before += dict.fromkeys(item.column for item in query.order_by if item.column not in before)
        after = [name for name in schema.names if name not in before]
    for measure, written in zip(measures, query.measures, strict=True):
        if measure.name in (*before, *after):
            raise QueryError(
                f"the measure '{measure.name}' has the name of a column of the result",
                span=written.span,
                hint="give it another name",
            )
    fields = [columns.field(name) for name in before]
    fields += [pa.field(one.name, one.type) for one in measures]
    return pa.schema([*fields, *(schema.field(name) for name in after)])
