"""Plans: directed graphs of temporal operators, as values (FFP paper, sections 2 and 3.2).

A node names its inputs; a :class:`Recursion` names the loop that it is fed by, which closes the cycle. Two nodes are the same
only if they are one object: a stream that is used twice is multicast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from stretto.query import predicate as p

__all__ = [
    "Aggregate",
    "Constant",
    "Difference",
    "Distinct",
    "Fixpoint",
    "Item",
    "Join",
    "Lifetime",
    "Loop",
    "Node",
    "Project",
    "Recognize",
    "Recursion",
    "Source",
    "Union",
    "Where",
]

Row = Mapping[str, pa.DataType]


@dataclass(frozen=True, eq=False)
class Node:
    """An operator with the stream that it makes."""

    schema: Row  #: name and Arrow type of each column of the payload, in order

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes whose streams it reads, port by port."""
        return ()

    @property
    def label(self) -> str:
        """What it does, in a line, in the paper's words."""
        return type(self).__name__


@dataclass(frozen=True, eq=False)
class Source(Node):
    """An external input."""

    name: str
    insert_only: bool = False  #: no event is ever retracted, so that none needs to be remembered

    @property
    def label(self) -> str:
        return f"Source {self.name}"


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """Rows that hold at all times: they begin at the first one, and have no end."""

    rows: tuple[tuple[Any, ...], ...]

    @property
    def label(self) -> str:
        shown = [f"({', '.join(str(p.Constant(value)) for value in row)})" for row in self.rows[:3]]
        return f"Constant {', '.join(shown)}{', …' if len(self.rows) > 3 else ''}"


@dataclass(frozen=True, eq=False)
class Lifetime(Node):
    """Alter-lifetime: ``[Vs, Ve)`` becomes ``[Vs, Vs + duration)``; with ``every``, both ends move up to multiples of it."""

    input: Node
    duration: int | None  #: ticks; ``None``: without end
    every: int | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def label(self) -> str:
        hop = f" every {self.every}" if self.every else ""
        return f"AlterLifetime {'∞' if self.duration is None else self.duration}{hop}"


@dataclass(frozen=True, eq=False)
class Where(Node):
    """Select: the rows for which a condition holds."""

    input: Node
    condition: p.Predicate

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def label(self) -> str:
        return f"Select {self.condition}"


@dataclass(frozen=True, eq=False)
class Project(Node):
    """Columns computed from each row by itself."""

    input: Node
    values: tuple[tuple[str, p.Operand], ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def label(self) -> str:
        shown = [name if str(value) == name else f"{name} := {value}" for name, value in self.values]
        return f"Project {', '.join(shown)}"


@dataclass(frozen=True, eq=False)
class Join(Node):
    """Pairs of rows that agree on the keys and satisfy a condition, where both lifetimes hold."""

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]  #: a column of the left and the column of the right that must be equal
    names: tuple[tuple[str, str], ...]  #: columns taken over from the right, and what they are called
    where: p.Predicate | None = None  #: over the columns of the result

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def label(self) -> str:
        keys = " AND ".join(f"{left} = {right}" for left, right in self.on) or "TRUE"
        return f"Join {keys}" + (f" AND {self.where}" if self.where is not None else "")


@dataclass(frozen=True, eq=False)
class Union(Node):
    """All rows of all inputs, each as often as it occurs."""

    parts: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, eq=False)
class Distinct(Node):
    """Each row once, wherever it occurs at all."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Item:
    """An aggregate of a group: ``function(column)`` under a name; ``count`` has no column."""

    name: str
    function: str
    column: str | None = None

    def __str__(self) -> str:
        return f"{self.name} := {self.function}({self.column or '*'})"


@dataclass(frozen=True, eq=False)
class Aggregate(Node):
    """Group-and-apply: for each group that is not empty, its columns and its aggregates."""

    input: Node
    by: tuple[str, ...]
    items: tuple[Item, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def label(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"Aggregate{by}: {', '.join(map(str, self.items))}"


@dataclass(frozen=True, eq=False)
class Difference(Node):
    """Anti-join: rows of the left, where no row of the right agrees on the keys."""

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def label(self) -> str:
        return "Difference " + " AND ".join(f"{left} = {right}" for left, right in self.on)


@dataclass(frozen=True, eq=False)
class Recognize(Node):
    """A matcher in the plan: a match lives from its last event to the end of its window."""

    input: Node
    pattern: Any  #: a :class:`~stretto.Query` or a frozen AFA
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def label(self) -> str:
        return "Recognize " + " ".join(str(getattr(self.pattern, "text", "") or "AFA").split())


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
class Recursion(Node):
    """The recursive input of a loop: port O_R of its flying fixed point."""

    loop: Loop
    index: int

    @property
    def label(self) -> str:
        return f"Recursion {self.loop.name}"


@dataclass(frozen=True, eq=False)
class Fixpoint(Node):
    """The flying fixed point of one of a loop's relations: its external output O_E."""

    loop: Loop
    index: int

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.loop.bodies[self.index],)

    @property
    def label(self) -> str:
        return f"FFP {self.loop.name}"
