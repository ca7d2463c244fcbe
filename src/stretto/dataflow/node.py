"""What nodes of plans have in common, and the loops (FFP paper, sections 2 and 3.2).

A plan is a directed graph of temporal operators, as values: a node names its inputs, and a :class:`Recursion` names the loop that it
is fed by, which closes the cycle. Two nodes are the same only if they are one object: a stream that is used twice is multicast.

Each operator is one file of :mod:`stretto.dataflow.operators`: a node answers all that is asked of operators, from what may lie on a
cycle to its JSON, and the methods here are the answers of an operator about which there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

import pyarrow as pa

from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.run.values import Strings
from stretto.errors import OptionError, hinted
from stretto.query.typing import kind_of

Row = Mapping[str, pa.DataType]
Pairs = tuple[tuple[str, str], ...]

#: The columns on which two streams agree, as users say them.
On = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Node:
    """An operator with the stream that it makes."""

    schema: Row  #: name and Arrow type of each column of the payload, in order

    #: Whether its result is no sum over its rows, so that a loop with it turns level by level.
    by_level: ClassVar[bool] = False
    #: Why a loop with it ends; empty: that does not follow from it. Rows that are derived again do not pass it again.
    ending: ClassVar[str] = ""
    #: Whether it gives events with starts of their own, which windows move.
    starts: ClassVar[bool] = False
    #: How Graphviz draws it.
    shape: ClassVar[str] = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes whose streams it reads, port by port."""
        return ()

    @property
    def given(self) -> tuple[Node, ...]:
        """The nodes that its writer named: the inputs, but where it puts a node of its own before itself."""
        return self.inputs

    @property
    def label(self) -> str:
        """What it does, in a line, in the paper's words."""
        return type(self).__name__

    @property
    def shown(self) -> str:
        """The label in drawings."""
        return self.label

    # -- columns ------------------------------------------------------------------------------------------------------

    def origins(self, column: str) -> list[tuple[Node, str]]:
        """The columns of other nodes from which the values of a column are made."""
        return [(self.inputs[0], column)]

    def copies(self, column: str) -> bool:
        """Whether the values of a column are those of its origins."""
        return True

    @property
    def decides(self) -> list[tuple[Node, str]]:
        """The columns whose values decide which rows there are."""
        return []

    @property
    def chosen(self) -> tuple[str, ...]:
        """The columns whose values are chosen among rows, so that they are revised when better ones come."""
        return ()

    # -- loops --------------------------------------------------------------------------------------------------------

    @property
    def takes_back(self) -> bool:
        """Whether it may take back what it gave although nothing was taken from it."""
        return False

    @property
    def creates(self) -> str | None:
        """Why there may be ever new rows on a loop through it; ``None``: there are not."""
        return None

    def problem(self, inside: set[int]) -> str | None:
        """Why it must not lie on a cycle, of nodes with these ids; ``None``: it may."""
        return None

    # -- other forms --------------------------------------------------------------------------------------------------

    def operator(self, strings: Strings) -> Operator:
        """The running operator."""
        raise AssertionError(self)

    @property
    def behind(self) -> Node | None:
        """A selection that is part of it, which runs behind its operator."""
        return None

    def written(self) -> dict[str, Any]:
        """What JSON text has of it, beside its name and the numbers of its inputs."""
        return {}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Any]) -> Self:
        """The node that was written, over its inputs."""
        return cls(inputs[0].schema, *inputs)

    def keyed(self, groups: Groups) -> Node:
        """The node that does the same for every group of rows by itself; asked of what an input reaches."""
        raise AssertionError(self)


class Groups(Protocol):
    """What a node asks about the plan by groups that it becomes part of (:mod:`stretto.dataflow.stream`)."""

    @property
    def keys(self) -> dict[str, pa.DataType]:
        """The columns of the key."""

    @property
    def pairs(self) -> Pairs:
        """The columns of the key, as what both sides of a join agree on."""

    def has_key(self, node: Node) -> bool:
        """Whether the stream of a node has the key; else it is the same in every group."""

    def made(self, node: Node) -> Node:
        """The node that another one has become."""

    def with_key(self, node: Node) -> Node:
        """The same with the key; rows that are in every group once for each."""

    def ordered(self, made: Node, before: Node) -> Node:
        """A stream with its columns in the order that they had, and the key behind them."""


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """An operator on one stream."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def keyed(self, groups: Groups) -> Node:
        made = groups.made(self.input)
        return replace(self, schema=made.schema, input=made)


@dataclass(frozen=True, eq=False)
class Binary(Node):
    """An operator on two streams, which agree on keys."""

    left: Node
    right: Node
    on: Pairs  #: a column of the left and the column of the right that must be equal

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def agreement(self) -> str:
        """The keys as a condition."""
        return " AND ".join(f"{left} = {right}" for left, right in self.on)


# -- loops ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Loop:
    """Recursive relations that are defined together: ``r = Q(external, r)``.

    Attributes
    ----------
    name
        For errors and drawings.
    bound
        The greatest level (definition of section 3.2) that a row may have; ``None``: none is needed.
    variables
        The streams headed around the loop, which the bodies read.
    bodies
        ``Q`` for each variable; set once, when it is known.
    fixpoints
        The flying fixed point of each variable, which feeds it.
    ends
        Why the loop ends, where that is known to who wrote it (``None``: it has to follow from the plan).
    """

    name: str
    bound: int | None = None
    variables: tuple[Recursion, ...] = ()
    bodies: tuple[Node, ...] = ()
    fixpoints: tuple[Fixpoint, ...] = ()
    ends: str | None = None


@dataclass(frozen=True, eq=False)
class _Turning(Node):
    """One of the relations of a loop."""

    loop: Loop
    index: int

    @property
    def relation(self) -> str:
        """The relation's name."""
        names = self.loop.name.split(", ")
        return names[self.index] if len(names) == len(self.loop.variables) else f"{self.loop.name} {self.index}"

    def origins(self, column: str) -> list[tuple[Node, str]]:
        return [(self.loop.bodies[self.index], column)]


@dataclass(frozen=True, eq=False)
class Recursion(_Turning):
    """The recursive input of a loop: port O_R of its flying fixed point."""

    @property
    def label(self) -> str:
        return f"Recursion {self.loop.name}"

    @property
    def shown(self) -> str:
        return f"Recursion {self.relation}"


@dataclass(frozen=True, eq=False)
class Fixpoint(_Turning):
    """The flying fixed point of one of a loop's relations: its external output O_E."""

    shape = "doubleoctagon"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.loop.bodies[self.index],)

    @property
    def label(self) -> str:
        return f"FFP {self.loop.name}"

    @property
    def shown(self) -> str:
        return f"FFP {self.relation}"


# -- streams ----------------------------------------------------------------------------------------------------------


class Relation:
    """A changing relation.

    Attributes
    ----------
    node
        The plan that makes it (:mod:`stretto.dataflow.plan`).
    """

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def schema(self) -> dict[str, pa.DataType]:
        """Name and Arrow type of each column of the payload, in order."""
        return dict(self.node.schema)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}: {kind}' for name, kind in self.schema.items())})"

    def of(self, node: Node) -> Self:
        """The stream of a node."""
        return type(self)(node)


#: A kind of streams: methods give streams of the class that they were called on.
S = TypeVar("S", bound=Relation)

_KEPT = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string()}


def payload_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that a column of a type has in a payload, integers and floats in 64 bits; ``None``: it cannot be in one."""
    family = kind_of(kind)
    if family in ("decimal", "other") or kind == pa.uint64():
        return None
    return _KEPT.get(family, kind)


def column_of(schema: Row, name: str) -> str:
    """A column's name, if there is one."""
    if name not in schema:
        raise OptionError(hinted(f"the stream has no column {name!r}", name, schema, kind="column"))
    return name


def keys_of(stream: Relation, other: Relation, on: On) -> Pairs:
    """The columns on which two streams agree."""
    if not isinstance(other, Relation):
        raise OptionError(f"a stream is needed here, not {type(other).__name__}")
    if isinstance(on, str):
        on = [on]
    pairs = on.items() if isinstance(on, Mapping) else ((name, name) for name in on)
    keys = tuple((column_of(stream.schema, left), column_of(other.schema, right)) for left, right in pairs)
    for left, right in keys:
        mine, its = stream.schema[left], other.schema[right]
        if mine != its:
            raise OptionError(f"'{left}' is {mine} and '{right}' is {its}: keys must have one type")
    return keys


def check_same(given: Row, wanted: Row, what: str) -> None:
    """Refuse columns that are not the wanted ones, in whatever order."""
    if dict(given) != dict(wanted):
        shown = (", ".join(f"{name}: {kind}" for name, kind in one.items()) for one in (wanted, given))
        raise OptionError(f"{what} must have the same columns: {' and '.join(f'({one})' for one in shown)} differ")
