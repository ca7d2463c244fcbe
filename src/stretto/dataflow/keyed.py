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
from dataclasses import replace

import pyarrow as pa

from stretto.dataflow import plan
from stretto.dataflow.checking import loops_of, ordered_with_loops
from stretto.dataflow.operators.recognize import recognized
from stretto.dataflow.stream import Stream
from stretto.errors import OptionError
from stretto.matching.compiled import Query
from stretto.query import predicate as p
from stretto.query.query import Consume
from stretto.query.sase import SaseQuery, Selection

__all__ = ["GROUPS", "carries", "keyed"]

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
    lift = _Lift([one.node for one in outputs.values()], keys)
    return {name: Stream(lift.ordered(lift.with_key(one.node), one.node)) for name, one in outputs.items()}


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
                self._made[id(node)] = self._lifted(node) if id(node) in self._has_key else node
        for loop in loops:
            if id(loop.fixpoints[0]) in self._has_key:
                bodies = [self.ordered(self.with_key(body), body) for body in loop.bodies]
                self._made[id(loop.fixpoints[0])].loop.bodies = tuple(bodies)  # type: ignore[attr-defined]

    def _declare(self, loop: plan.Loop) -> None:
        """A loop of the same relations with keys; its bodies are not known yet."""
        made = plan.Loop(loop.name, loop.bound, ends=loop.ends)
        rows = [{**one.schema, **self.keys} for one in loop.variables]
        made.variables = tuple(plan.Recursion(row, made, at) for at, row in enumerate(rows))
        made.fixpoints = tuple(plan.Fixpoint(row, made, at) for at, row in enumerate(rows))
        for before, after in zip((*loop.variables, *loop.fixpoints), (*made.variables, *made.fixpoints), strict=True):
            self._made[id(before)] = after

    def with_key(self, node: plan.Node) -> plan.Node:
        """The stream with the key; rows that are in every group once for each."""
        made = self._made[id(node)]
        if id(node) in self._has_key:
            return made
        names = tuple((name, name) for name in made.schema)
        return plan.Join({**self.keys, **made.schema}, self._groups, made, (), names)

    def ordered(self, made: plan.Node, before: plan.Node) -> plan.Node:
        """The stream with its columns in the order that they had, and the key behind them."""
        row = {**before.schema, **self.keys}
        if list(made.schema) == list(row):
            return made
        return plan.Project(row, made, tuple((name, p.Attribute(name)) for name in row))

    def _lifted(self, node: plan.Node) -> plan.Node:
        made = [self._made[id(one)] for one in node.inputs]
        row = made[0].schema if made else {}
        match node:
            case plan.Source():
                return plan.Source({**node.schema, **self.keys}, node.name, node.insert_only)
            case plan.Lifetime():
                return plan.Lifetime(row, made[0], node.duration, node.every)
            case plan.Where():
                return plan.Where(row, made[0], node.condition)
            case plan.Distinct():
                return plan.Distinct(row, made[0])
            case plan.Project():
                values = (*node.values, *((name, p.Attribute(name)) for name in self.keys))
                return plan.Project({**node.schema, **self.keys}, made[0], values)
            case plan.Union():
                parts = tuple(self.ordered(self.with_key(one), one) for one in node.parts)
                return plan.Union(parts[0].schema, parts)
            case plan.Aggregate():
                by = {name: node.schema[name] for name in node.by}
                items = {item.name: node.schema[item.name] for item in node.items}
                return plan.Aggregate({**by, **self.keys, **items}, made[0], (*node.by, *self.keys), node.items)
            case plan.Join():
                return self._join(node)
            case plan.Difference():
                left = self.with_key(node.left)
                on = (*node.on, *self.pairs) if id(node.right) in self._has_key else node.on
                return plan.Difference(left.schema, left, self._made[id(node.right)], on)
            case plan.Recognize():
                # The window before a matcher is its own, and it makes it again.
                return recognized(self._made[id(node.input.inputs[0])], self._partitioned(node), node.options)
        raise AssertionError(node)

    def _join(self, node: plan.Join) -> plan.Join:
        left, right = self._made[id(node.left)], self._made[id(node.right)]
        row = {**left.schema, **{called: right.schema[name] for name, called in node.names}}
        if id(node.right) not in self._has_key:
            return plan.Join(row, left, right, node.on, node.names, node.where)
        if id(node.left) in self._has_key:
            return plan.Join(row, left, right, (*node.on, *self.pairs), node.names, node.where)
        return plan.Join({**row, **self.keys}, left, right, node.on, (*node.names, *self.pairs), node.where)

    def _partitioned(self, node: plan.Recognize) -> Query:
        """The matcher's query, partitioned by the key as well."""
        if not isinstance(node.pattern, Query):
            raise OptionError(
                f"{node.label}: an AFA cannot run by groups: give it partition_by, and make the key part of the plan"
            )
        own, names = node.pattern.parsed, tuple(self.keys)
        # Compiled queries are known by their text.
        text = f"{own.text}\n-- by {', '.join(names)}"
        if isinstance(own, SaseQuery):
            if own.selection is Selection.STRICT and own.equal:
                raise OptionError(
                    f"{node.label}: strict contiguity counts all events of the stream, and by groups there are only those of the "
                    "group; write partition_contiguity"
                )
            selection = Selection.PARTITION if own.selection is Selection.STRICT else own.selection
            return Query(replace(own, text=text, selection=selection, equal=(*own.equal, *names), equal_spans=()))
        if own.consume is Consume.ANY and own.partition_by:
            raise OptionError(
                f"{node.label}: CONSUME BY ANY goes over partitions, which by groups it must not: CONSUME BY PARTITION"
            )
        consume = Consume.PARTITION if own.consume is Consume.ANY else own.consume
        return Query(
            replace(own, text=text, consume=consume, partition_by=(*own.partition_by, *names), partition_spans=())
        )


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
        match at:
            case plan.Source():
                if name != source_column:
                    return False
            case plan.Project():
                value = dict(at.values)[name]
                if not isinstance(value, p.Attribute):
                    return False
                waiting.append((at.input, value.name))
            case plan.Join() if name not in at.left.schema:
                waiting.append((at.right, next(own for own, called in at.names if called == name)))
            case plan.Aggregate() if name not in at.by:
                return False
            case plan.Constant() | plan.Recognize():
                return False
            case plan.Union():
                waiting += [(part, name) for part in at.parts]
            case plan.Recursion() | plan.Fixpoint():
                body = at.loop.bodies[at.index]
                waiting.append((body, name))
            case _:
                waiting.append((at.inputs[0], name))
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
