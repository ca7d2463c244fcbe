"""A plan for every group of rows by itself: the columns of the group's key go along with each row.

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

from collections.abc import Mapping

import pyarrow as pa

from stretto.dataflow import plan
from stretto.dataflow.cycles import loops_of, ordered_with_loops
from stretto.dataflow.operators.project import in_order
from stretto.dataflow.plan import Stream

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
