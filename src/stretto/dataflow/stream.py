"""Writing queries: streams and what can be made of them, in the operators of the temporal algebra.

A :class:`Stream` is a changing relation: a bag of rows at every time. Its methods give new streams, and nothing runs before a
:class:`~stretto.dataflow.Dataflow` is made of those that are wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from stretto.dataflow import plan
from stretto.errors import OptionError, suggestion
from stretto.events import Schema, as_table
from stretto.languages.relational import read_condition, read_value
from stretto.query import predicate as p
from stretto.query.typing import kind_of, type_of_operand
from stretto.times import MOST

__all__ = ["Stream", "constant", "fixpoint", "fixpoints", "payload_type", "stream"]


On = str | Sequence[str] | Mapping[str, str]

#: What an aggregate may compute, and of which kinds of columns.
_FUNCTIONS = {
    "count": (),
    "sum": ("int", "float"),
    "avg": ("int", "float"),
    "min": ("int", "float", "time", "bool"),
    "max": ("int", "float", "time", "bool"),
}

_ITEM = re.compile(r"\s*(\w+)\s*\(\s*(\*|[^()]*?)\s*\)\s*")


def stream(name: str, schema: Any, *, insert_only: bool = False) -> Stream:
    """An external input of a dataflow.

    Parameters
    ----------
    name
        What :meth:`Dataflow.push <stretto.dataflow.Dataflow.push>` calls it.
    schema
        The columns of the payload: a mapping of names to Arrow or Python types, a ``pyarrow.Schema``, or a table. Numbers, strings,
        truth values and times.
    insert_only
        Whether events are never retracted. Then the dataflow need not remember them to check retractions.

    Raises
    ------
    OptionError
        A column cannot be part of a payload, or has a name that lifetimes have; or the input has no name.

    Examples
    --------
    >>> stream("links", {"src": str, "dst": str})
    Stream(src: string, dst: string)
    """
    if not isinstance(name, str) or not name:
        raise OptionError(f"an input needs a name: stream('links', …), not {name!r}")
    return Stream(plan.Source(_row(schema), name, insert_only))


def constant(rows: Any) -> Stream:
    """Rows that hold at all times.

    Parameters
    ----------
    rows
        Anything tabular: payloads, without lifetimes.

    Raises
    ------
    OptionError
        A column cannot be part of a payload, or a value is NULL.

    Examples
    --------
    >>> constant([{"kind": "truck", "wheels": 6}, {"kind": "car", "wheels": 4}])
    Stream(kind: string, wheels: int64)
    """
    table = as_table(rows)
    row = _row(table.schema)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise OptionError(f"column '{name}' has NULL; a payload has a value in every column")
    columns = [column.cast(kind).to_pylist() for column, kind in zip(table.columns, row.values(), strict=True)]
    return Stream(plan.Constant(row, tuple(zip(*columns, strict=True))))


_TIMES = ("vs", "ve", "ve_new")


def _row(schema: Any) -> dict[str, pa.DataType]:
    """The payload's columns, integers and floats in 64 bits."""
    if isinstance(schema, Stream):
        return dict(schema.schema)
    found: dict[str, pa.DataType] = {}
    for name, kind in Schema.of(schema, type=None).attributes.items():
        if name in _TIMES:
            raise OptionError(f"column '{name}': events have their lifetimes beside the payload; leave it out")
        kept = payload_type(kind)
        if kept is None:
            raise OptionError(
                f"column '{name}' is {kind}: a payload has integers, floats, strings, truth values, times"
            )
        found[name] = kept
    return found


def payload_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that a column of a type has in a payload; ``None``: it cannot be in one."""
    family = kind_of(kind)
    if family in ("decimal", "other") or kind == pa.uint64():
        return None
    return {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string()}.get(family, kind)


class Stream:
    """A changing relation, and what can be made of it.

    Attributes
    ----------
    node
        The plan that makes it (:mod:`stretto.dataflow.plan`).
    """

    def __init__(self, node: plan.Node) -> None:
        self.node = node

    @property
    def schema(self) -> dict[str, pa.DataType]:
        """Name and Arrow type of each column of the payload, in order."""
        return dict(self.node.schema)

    def __repr__(self) -> str:
        return f"Stream({', '.join(f'{name}: {kind}' for name, kind in self.schema.items())})"

    # -- operators on one stream --------------------------------------------------------------------------------------

    def where(self, condition: str) -> Stream:
        """Select: the rows for which a condition holds.

        Raises
        ------
        QueryError
            The text is no condition over the columns, with the place.

        Examples
        --------
        >>> stream("roads", {"src": str, "dst": str, "cost": int}).where("cost < 10 AND src != dst")
        Stream(src: string, dst: string, cost: int64)
        """
        return Stream(plan.Where(self.node.schema, self.node, read_condition(condition, self.node.schema)))

    def project(self, *kept: str, **computed: Any) -> Stream:
        """Columns computed from each row by itself.

        Parameters
        ----------
        kept
            Columns that stay as they are.
        computed
            Names of columns with their values: text over the columns, or a constant that is no text.

        Examples
        --------
        >>> stream("roads", {"src": str, "dst": str, "cost": int}).project("dst", far="cost * 2", hops=1)
        Stream(dst: string, far: int64, hops: int64)
        """
        values = {name: p.Attribute(self._column(name)) for name in kept} | {
            name: read_value(value, self.node.schema) if isinstance(value, str) else _constant(name, value)
            for name, value in computed.items()
        }
        if not values:
            raise OptionError("project() needs a column: name one, or compute one (far='cost * 2')")
        return self._projected(values)

    def _projected(self, values: Mapping[str, p.Operand]) -> Stream:
        row = {name: _kept_type(name, value, self.node.schema) for name, value in values.items()}
        return Stream(plan.Project(row, self.node, tuple(values.items())))

    def rename(self, **names: str) -> Stream:
        """The same rows with other names: ``old="new"``.

        Examples
        --------
        >>> stream("links", {"src": str, "dst": str}).rename(src="from_")
        Stream(from_: string, dst: string)
        """
        for name in names:
            self._column(name)
        made = [names.get(name, name) for name in self.schema]
        if len(set(made)) < len(made):
            raise OptionError(f"two columns would be named '{max(made, key=made.count)}'")
        return self._projected({names.get(name, name): p.Attribute(name) for name in self.schema})

    def distinct(self) -> Stream:
        """Each row once, wherever it occurs at all. In a loop it stops what is derived again from going around again."""
        return Stream(plan.Distinct(self.node.schema, self.node))

    def window(self, duration: int | None, *, every: int | None = None) -> Stream:
        """Alter-lifetime: an event lives for ``duration`` from its start.

        It applies to events of the inputs, before joins and loops: what operators derive has lifetimes, but is no event with a start
        of its own, and moving starts is not always forward (section 5).

        Parameters
        ----------
        duration
            In units of the time; ``None``: without end.
        every
            A hop: both ends move up to multiples of it, so that the relation changes only there.

        Raises
        ------
        OptionError
            A number is not positive, or the stream has no events of its own.
        """
        for name, value in (("duration", duration), ("every", every)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise OptionError(f"{name} must be a positive integer, in units of the time, not {value!r}")
            if value is not None and value > MOST:
                raise OptionError(
                    f"{name}={value} units of the time, and the greatest is 2^62 ({MOST}); None is without end"
                )
        at = self.node
        while isinstance(at, plan.Where | plan.Project):
            at = at.input
        if not isinstance(at, plan.Source | plan.Recognize | plan.Union | plan.Lifetime):
            raise OptionError(
                f"a window applies to events of an input, and this stream comes from {at.label}: window the inputs first"
            )
        if isinstance(at, plan.Union):
            raise OptionError("window the streams before their union")
        return Stream(plan.Lifetime(self.node.schema, self.node, duration, every))

    def aggregate(self, by: str | Sequence[str] = (), /, **items: str) -> Stream:
        """Group-and-apply: for each group that is not empty its columns, and its aggregates.

        Results are speculative: they are revised whenever a group changes.

        Parameters
        ----------
        by
            The columns of the groups; none: all rows are one group.
        items
            Names with ``count()``, ``sum(column)``, ``avg(column)``, ``min(column)`` or ``max(column)``.

        Examples
        --------
        >>> stream("roads", {"src": str, "cost": int}).aggregate("src", least="min(cost)", roads="count()")
        Stream(src: string, least: int64, roads: int64)
        """
        groups = [by] if isinstance(by, str) else list(by)
        row = {self._column(name): self.node.schema[name] for name in groups}
        found = [self._item(name, text) for name, text in items.items()]
        if not found:
            raise OptionError(
                "aggregate() needs an aggregate: total='sum(cost)'; for groups alone: project().distinct()"
            )
        for item in found:
            if item.name in row:
                raise OptionError(f"'{item.name}' is a column of the groups; give the aggregate another name")
            row[item.name] = self._aggregate_type(item)
        return Stream(plan.Aggregate(row, self.node, tuple(groups), tuple(found)))

    def _item(self, name: str, text: str) -> plan.Item:
        match = _ITEM.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise OptionError(f"'{name}' is {text!r}: write {name}='sum(column)' or {name}='count()'")
        function, column = match[1].lower(), match[2]
        if function not in _FUNCTIONS:
            hint = suggestion(function, _FUNCTIONS, kind="function")
            raise OptionError(f"'{name}' uses '{match[1]}', which is no aggregate; {hint}")
        if function == "count":
            if column not in ("", "*"):
                raise OptionError(f"'{name}': count() counts rows, and columns are never NULL: leave out '{column}'")
            return plan.Item(name, function)
        if column in ("", "*"):
            raise OptionError(f"'{name}': {function}() needs a column: {name}='{function}(cost)'")
        kind = self.node.schema[self._column(column)]
        if kind_of(kind) not in _FUNCTIONS[function]:
            raise OptionError(f"'{name}': {function}({column}) is not defined, as {column} is {kind}")
        return plan.Item(name, function, column)

    def _aggregate_type(self, item: plan.Item) -> pa.DataType:
        if item.column is None:
            return pa.int64()
        return pa.float64() if item.function == "avg" else self.node.schema[item.column]

    # -- operators on several -----------------------------------------------------------------------------------------

    def union(self, *others: Stream) -> Stream:
        """All rows of all streams, each as often as it occurs; columns are matched by name.

        Raises
        ------
        OptionError
            The columns are not the same.
        """
        parts: list[plan.Node] = []
        for one in (self, *others):
            if not isinstance(one, Stream):
                raise OptionError(f"union() takes streams, not {type(one).__name__}")
            _check_same(one.schema, self.schema, "the streams of a union")
            ordered = one if list(one.schema) == list(self.schema) else one.project(*self.schema)
            parts += ordered.node.parts if isinstance(ordered.node, plan.Union) else (ordered.node,)
        return Stream(plan.Union(self.node.schema, tuple(parts)))

    def join(self, other: Stream, on: On = (), *, where: str | None = None, suffix: str = "_right") -> Stream:
        """Pairs of rows that agree on the keys and satisfy a condition, living where both live.

        Parameters
        ----------
        other
            The right side.
        on
            A column that both have, a list of them, or ``{left: right}``. A column of one name in ``on`` occurs once in the result.
        where
            A condition over the result's columns.
        suffix
            What a column of the right gets whose name the left has, too.

        Raises
        ------
        OptionError, QueryError
            A column is unknown, keys have different kinds, two columns have one name, or the condition is wrong.

        Examples
        --------
        >>> links = stream("links", {"src": str, "dst": str})
        >>> links.join(links, on={"dst": "src"}, where="src != dst_right")
        Stream(src: string, dst: string, src_right: string, dst_right: string)
        """
        keys = self._keys(other, on)
        shared = {right for left, right in keys if left == right}
        row = dict(self.node.schema)
        names = []
        for name, kind in other.schema.items():
            if name in shared:
                continue
            called = name + suffix if name in row else name
            if called in row:
                raise OptionError(
                    f"two columns of the join are named '{called}': rename() one, or choose another suffix"
                )
            row[called] = kind
            names.append((name, called))
        condition = read_condition(where, row) if where is not None else None
        return Stream(plan.Join(row, self.node, other.node, keys, tuple(names), condition))

    def difference(self, other: Stream, on: On | None = None) -> Stream:
        """Anti-join: rows of this stream at the times when no row of the other agrees with it on the keys.

        Parameters
        ----------
        other
            What must not be there.
        on
            As for :meth:`join`; ``None``: all columns, which both must have.
        """
        if on is None:
            _check_same(other.schema, self.schema, "the streams of a difference on all columns")
            on = list(self.schema)
        keys = self._keys(other, on)
        if not keys:
            raise OptionError("difference() needs a key: difference(other, on='id')")
        return Stream(plan.Difference(self.node.schema, self.node, other.node, keys))

    def recognize(self, pattern: Any, **options: Any) -> Stream:
        """A matcher in the plan: its matches as a stream.

        Parameters
        ----------
        pattern
            A CEQL or SASE+ query (text or compiled), or an AFA. The event's start is its time: the column ``vs``.
        options
            As for :class:`~stretto.Matcher`.
        """
        from stretto.dataflow.operators.recognize import recognized

        return Stream(recognized(self.node, pattern, options))

    # -- names --------------------------------------------------------------------------------------------------------

    def _column(self, name: str) -> str:
        if name not in self.node.schema:
            hint = suggestion(str(name), self.node.schema, kind="column")
            raise OptionError(f"the stream has no column {name!r}" + (f"; {hint}" if hint else ""))
        return name

    def _keys(self, other: Stream, on: On) -> tuple[tuple[str, str], ...]:
        if not isinstance(other, Stream):
            raise OptionError(f"a stream is needed here, not {type(other).__name__}")
        if isinstance(on, str):
            on = [on]
        pairs = on.items() if isinstance(on, Mapping) else ((name, name) for name in on)
        keys = tuple((self._column(left), other._column(right)) for left, right in pairs)
        for left, right in keys:
            mine, its = self.schema[left], other.schema[right]
            if mine != its:
                raise OptionError(f"'{left}' is {mine} and '{right}' is {its}: keys must have one type")
        return keys


def _check_same(found: Mapping[str, pa.DataType], wanted: Mapping[str, pa.DataType], what: str) -> None:
    if dict(found) != dict(wanted):
        shown = (", ".join(f"{name}: {kind}" for name, kind in one.items()) for one in (wanted, found))
        raise OptionError(f"{what} must have the same columns: {' and '.join(f'({one})' for one in shown)} differ")


def _constant(name: str, value: Any) -> p.Constant:
    if isinstance(value, bool | int | float):
        return p.Constant(value)
    raise OptionError(f"'{name}' is computed by text over the columns or a number, not by {type(value).__name__}")


def _kept_type(name: str, value: p.Operand, row: Mapping[str, pa.DataType]) -> pa.DataType:
    kind = type_of_operand(value, row)
    family = kind_of(kind)
    if isinstance(value, p.Constant) and family == "time":
        raise OptionError(f"'{name}' is a constant time: take it from a column")
    return {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string()}.get(family, kind)


# -- loops ------------------------------------------------------------------------------------------------------------


def fixpoint(query: Callable[[Stream], Stream], schema: Any, *, bound: int | None = None, name: str = "r") -> Stream:
    """The fixed point of a query that reads its own result: ``r = Q(external, r)``.

    Parameters
    ----------
    query
        Takes the recursive relation as a stream and gives ``Q`` of it.
    schema
        The relation's columns: as for :func:`stream`, or another stream with the same ones.
    bound
        The greatest number of times that anything may go around the loop. Needed where termination does not follow from the
        plan: without ``distinct()``, ``min`` or ``max`` in the loop, or with values that are computed in it.
    name
        What errors and drawings call the relation.

    Raises
    ------
    OptionError
        The query's columns are not those of the relation, or the loop is one that cannot be run (see docs/dataflow.md).

    Examples
    --------
    >>> links = stream("links", {"src": int, "dst": int})
    >>> fixpoint(
    ...     lambda r: links.union(links.join(r, on={"dst": "src"}).project(src="src", dst="dst_right")).distinct(),
    ...     schema=links,
    ... )
    Stream(src: int64, dst: int64)
    """
    return fixpoints(lambda only: (query(only),), {name: schema}, bound=bound)[0]


def fixpoints(
    query: Callable[..., Sequence[Stream]], schemas: Mapping[str, Any], *, bound: int | None = None
) -> tuple[Stream, ...]:
    """Several relations that are defined by each other.

    Parameters
    ----------
    query
        Takes the relations as streams and gives ``Q`` of each, in the same order.
    schemas
        Their names with their columns.
    bound
        As for :func:`fixpoint`.
    """
    if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 1):
        raise OptionError(f"bound must be a positive integer, not {bound!r}")
    loop = plan.Loop(", ".join(schemas), bound)
    loop.variables = tuple(plan.Recursion(_row(schema), loop, at) for at, schema in enumerate(schemas.values()))
    made = tuple(query(*map(Stream, loop.variables)))
    if len(made) != len(loop.variables) or not all(isinstance(one, Stream) for one in made):
        given = ", ".join(type(one).__name__ for one in made) or "nothing"
        wanted = "a stream" if len(loop.variables) == 1 else f"{len(loop.variables)} streams"
        raise OptionError(f"the query of '{loop.name}' must give {wanted}, not {given}")
    ordered = []
    for name, variable, one in zip(schemas, loop.variables, made, strict=True):
        _check_same(one.schema, variable.schema, f"the relation '{name}' and its query")
        ordered.append(one if list(one.schema) == list(variable.schema) else one.project(*variable.schema))
    loop.bodies = tuple(one.node for one in ordered)
    loop.fixpoints = tuple(plan.Fixpoint(one.schema, loop, at) for at, one in enumerate(loop.variables))
    return tuple(map(Stream, loop.fixpoints))
