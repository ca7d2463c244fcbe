"""Where streams begin, and loops; what can be made of a stream are its methods (:class:`~stretto.dataflow.plan.Stream`).

A plan for every group of rows by itself: the columns of the group's key go along with each row.

Nothing of one group ever meets anything of another, as if each had a dataflow of its own, and yet it is one dataflow, in which the
rows of many groups share batches: joins and differences also compare the key, aggregates also group by it, matchers are also
partitioned by it, and the rest carries it.

>>> from stretto.dataflow import Dataflow, stream
>>> costs = stream("costs", {"cost": int})
>>> per_user = keyed({"total": costs.aggregate(total="sum(cost)")}, {"user": pa.string()})
>>> flow = Dataflow(**per_user)
>>> flow.push("costs", [{"user": "a", "cost": 3, "vs": 0}, {"user": "b", "cost": 4, "vs": 0}, {"user": "a", "cost": 5, "vs": 0}])
>>> flow.run_until_idle()
>>> sorted(map(tuple, (row.values() for row in flow.output("total").select(["user", "total"]).to_pylist())))
[('a', 8), ('b', 4)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.dataflow import plan
from stretto.dataflow.cycles import loops_of, ordered_with_loops
from stretto.dataflow.node import check_same, payload_type
from stretto.dataflow.operators.project import in_order
from stretto.dataflow.plan import Stream
from stretto.errors import OptionError
from stretto.events import Schema, as_table

#: The input that names the groups, for plans with constant rows: one event for each key, which begins at the first time.
GROUPS = "the groups"


def keyed(outputs: Mapping[str, Stream], keys: Mapping[str, pa.DataType]) -> dict[str, Stream]:
    """Streams that hold for each group of rows what the given ones hold for the rows of that group alone.

    Parameters
    ----------
    outputs
        Streams by name.
    keys
        The columns of the key; every input gets them. The plan must have no columns of these names.

    Returns
    -------
    dict
        The same streams with the key's columns behind the others. Where constant rows are in a stream by themselves, and not
        only joined to rows of an input, there is one more input, :data:`GROUPS`: they are in every group.

    Raises
    ------
    OptionError
        A matcher relates events whatever their partition (``CONSUME BY ANY``, strict contiguity), or is an AFA.
    """
    lift = _Lift([output.node for output in outputs.values()], keys)
    return {name: Stream(lift.ordered(lift.with_key(output.node), output.node)) for name, output in outputs.items()}


class _Lift:
    def __init__(self, outputs: list[plan.Node], keys: Mapping[str, pa.DataType]) -> None:
        self.keys = dict(keys)
        self.pairs = tuple((name, name) for name in keys)
        nodes = ordered_with_loops(outputs)
        loops = loops_of(nodes)
        self._has_key = _fed(nodes)
        self._groups = plan.Source(self.keys, GROUPS, insert_only=True)
        self._made: dict[int, plan.Node] = {}
        for loop in loops:
            if id(loop.fixpoints[0]) in self._has_key:
                self._declare(loop)
        for node in nodes:
            if id(node) not in self._made:
                self._made[id(node)] = node.keyed(self) if id(node) in self._has_key else node
        for loop in loops:
            if id(loop.fixpoints[0]) in self._has_key:
                bodies = [self.ordered(self.with_key(body), body) for body in loop.bodies]
                self._made[id(loop.fixpoints[0])].loop.bodies = tuple(bodies)  # type: ignore[attr-defined]

    def _declare(self, loop: plan.Loop) -> None:
        """A loop of the same relations with keys; its bodies are not known yet."""
        made = plan.Loop(loop.name, loop.bound, ends=loop.ends)
        rows = [{**variable.schema, **self.keys} for variable in loop.variables]
        made.variables = tuple(plan.Recursion(row, made, at) for at, row in enumerate(rows))
        made.fixpoints = tuple(plan.Fixpoint(row, made, at) for at, row in enumerate(rows))
        for before, after in zip((*loop.variables, *loop.fixpoints), (*made.variables, *made.fixpoints), strict=True):
            self._made[id(before)] = after

    def has_key(self, node: plan.Node) -> bool:
        """Whether an input reaches the node."""
        return id(node) in self._has_key

    def made(self, node: plan.Node) -> plan.Node:
        """The node that another one has become."""
        return self._made[id(node)]

    def with_key(self, node: plan.Node) -> plan.Node:
        """The stream with the key; rows that are in every group once for each."""
        made = self._made[id(node)]
        if id(node) in self._has_key:
            return made
        names = tuple((name, name) for name in made.schema)
        return plan.Join({**self.keys, **made.schema}, self._groups, made, (), names)

    def ordered(self, made: plan.Node, before: plan.Node) -> plan.Node:
        """The stream with its columns in the order that they had, and the key behind them."""
        return in_order(made, {**before.schema, **self.keys})


def carries(node: plan.Node, column: str, source_column: str) -> bool:
    """Whether a column has nothing but the values of the inputs' columns of one name, in rows of one group the group's own.

    >>> from stretto.dataflow import stream
    >>> links = stream("links", {"net": str, "src": str})
    >>> carries(links.rename(net="network").node, "network", "net"), carries(links.rename(src="net", net="n").node, "net", "net")
    (True, False)
    """
    seen: set[tuple[int, str]] = set()
    waiting = [(node, column)]
    while waiting:
        at, name = waiting.pop()
        if (id(at), name) in seen:
            continue
        seen.add((id(at), name))
        if isinstance(at, plan.Source):
            if name != source_column:
                return False
        elif not at.copies(name):
            return False
        else:
            waiting += at.origins(name)
    return True


def _fed(nodes: list[plan.Node]) -> set[int]:
    """The nodes that an input reaches; a loop's relations all together."""
    found = {id(node) for node in nodes if isinstance(node, plan.Source)}
    while True:
        more = {id(node) for node in nodes if id(node) not in found and any(id(one) in found for one in _read(node))}
        if not more:
            return found
        found |= more


def _read(node: plan.Node) -> tuple[plan.Node, ...]:
    return node.loop.bodies if isinstance(node, plan.Recursion | plan.Fixpoint) else node.inputs


@check_arguments
def stream(name: str, schema: Any, *, insert_only: bool = False) -> Stream:
    """Declare an external input of a dataflow.

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


@check_arguments
def constant(rows: Any) -> Stream:
    """Make a stream of rows that hold at all times.

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


# -- loops ------------------------------------------------------------------------------------------------------------


@check_arguments
def fixpoint(query: Callable[[Stream], Stream], schema: Any, *, bound: int | None = None, name: str = "r") -> Stream:
    """Solve a query that reads its own result: the fixed point of ``r = Q(external, r)``.

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


@check_arguments
def fixpoints(
    query: Callable[..., Sequence[Stream]], schemas: Mapping[str, Any], *, bound: int | None = None
) -> tuple[Stream, ...]:
    """Solve several relations that are defined by each other.

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
    if not schemas:
        raise OptionError("fixpoints(query, schemas={}): name at least one relation, with its columns")
    loop = plan.Loop(", ".join(schemas), bound)
    loop.variables = tuple(plan.Recursion(_row(schema), loop, at) for at, schema in enumerate(schemas.values()))
    made = tuple(query(*map(Stream, loop.variables)))
    if len(made) != len(loop.variables) or not all(isinstance(one, Stream) for one in made):
        given = ", ".join(type(one).__name__ for one in made) or "nothing"
        wanted = "a stream" if len(loop.variables) == 1 else f"{len(loop.variables)} streams"
        raise OptionError(f"the query of '{loop.name}' must give {wanted}, not {given}")
    bodies = []
    for name, variable, one in zip(schemas, loop.variables, made, strict=True):
        check_same(one.schema, variable.schema, f"the relation '{name}' and its query")
        bodies.append(in_order(one.node, variable.schema))
    loop.bodies = tuple(bodies)
    loop.fixpoints = tuple(plan.Fixpoint(one.schema, loop, at) for at, one in enumerate(loop.variables))
    return tuple(map(Stream, loop.fixpoints))
