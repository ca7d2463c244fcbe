"""A Datalog program as values that print as Datalog.

Operands are those of all languages (:mod:`stretto.query.predicate`); an attribute is a variable, and ``_`` is one that
stands for any value, at each place for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import get_args

from stretto.errors import Span
from stretto.query import predicate as p

ANY = "_"
"""The anonymous variable."""


def shown(value: p.Operand | p.Comparison) -> str:
    """Write a value or a comparison as Datalog does.

    >>> shown(p.Comparison("=", p.Attribute("X"), p.Constant(True)))
    'X = true'
    """
    return str(_SHOWN.visit(value))


class _Shown(p.Visitor):
    """Variables have no backticks, truth values are small, and what stands for itself has no brackets around it."""

    takes = (*get_args(p.Operand), p.Comparison)

    def attribute(self, node: p.Attribute) -> str:
        return node.name

    def constant(self, node: p.Constant) -> str:
        return str(node).lower() if isinstance(node.value, bool) else str(node)

    def arithmetic(self, node: p.Arithmetic) -> str:
        return f"({self.visit(node.left)} {node.op} {self.visit(node.right)})"

    def negative(self, node: p.Negative) -> str:
        return f"(- {self.visit(node.operand)})"

    def call(self, node: p.Call | p.Function) -> str:
        return f"{node.name}({', '.join(map(bare, node.arguments))})"

    function = call

    def case(self, node: p.Case) -> str:
        raise AssertionError(node)  # a program has none

    def ticks(self, node: p.Ticks) -> str:
        return str(self.visit(node.operand))

    def comparison(self, node: p.Comparison) -> str:
        return f"{bare(node.left)} {node.op} {bare(node.right)}"


_SHOWN = _Shown()


def bare(value: p.Operand) -> str:
    """Write a value without brackets around the whole of it."""
    text = shown(value)
    return text[1:-1] if isinstance(value, p.Arithmetic | p.Negative) else text


def variables(*values: p.Operand | p.Comparison) -> dict[str, Span | None]:
    """Find the variables with a name, in order of writing, each with its first place."""
    found: dict[str, Span | None] = {}
    for value in values:
        for name, span in p.attributes(value).items():
            if name != ANY:
                found.setdefault(name, span)
    return found


@dataclass(frozen=True)
class Aggregate:
    """``min<C>`` in a head, over the groups of the head's other arguments; ``value`` is ``None`` in ``count<*>``."""

    function: str
    value: p.Operand | None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.function}<{'*' if self.value is None else bare(self.value)}>"


@dataclass(frozen=True)
class Atom:
    """A relation with its arguments: ``link(X, 'a')``."""

    name: str
    arguments: tuple[p.Operand, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(bare, self.arguments))})"


@dataclass(frozen=True)
class Literal:
    """An atom in a body, or its negation."""

    atom: Atom
    negated: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"not {self.atom}" if self.negated else str(self.atom)


Goal = Literal | p.Comparison


@dataclass(frozen=True)
class Head:
    """The head of a rule: what it derives."""

    name: str
    arguments: tuple[p.Operand | Aggregate, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    name_span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def aggregates(self) -> tuple[tuple[int, Aggregate], ...]:
        """The aggregates with their columns."""
        return tuple((at, one) for at, one in enumerate(self.arguments) if isinstance(one, Aggregate))

    def __str__(self) -> str:
        arguments = (str(one) if isinstance(one, Aggregate) else bare(one) for one in self.arguments)
        return f"{self.name}({', '.join(arguments)})"


@dataclass(frozen=True)
class Rule:
    """``head :- body.``; a fact has no body."""

    head: Head
    body: tuple[Goal, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def values(self) -> Iterator[p.Operand]:
        """The values of the head, aggregated or not."""
        for one in self.head.arguments:
            value = one.value if isinstance(one, Aggregate) else one
            if value is not None:
                yield value

    def __str__(self) -> str:
        goals = (shown(goal) if isinstance(goal, p.Comparison) else str(goal) for goal in self.body)
        return f"{self.head} :- {', '.join(goals)}." if self.body else f"{self.head}."


@dataclass(frozen=True)
class Program:
    """Rules, in the order in which they are written."""

    rules: tuple[Rule, ...]
    text: str = field(default="", compare=False, repr=False)

    def line(self, rule: Rule) -> int:
        """The line in which a rule begins, from 1."""
        return 1 + self.text.count("\n", 0, rule.span.start if rule.span else 0)

    def __str__(self) -> str:
        return "\n".join(map(str, self.rules))
