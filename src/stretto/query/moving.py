"""Moving aggregates: what the latest events of a step add up to, ``count(DISTINCT user) OVER 1 minute``.

Such a value is one of the event at hand, so that conditions, joins of conditions and every engine take it as any other attribute. It
goes over the events that the step takes *without* its conditions on moving aggregates, of the same key, in the window that ends with
the event, which counts. Neither paper has this; the window is that of CORE's ``WITHIN`` (inclusive).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import pyarrow as pa

from stretto.errors import QueryError, Span
from stretto.query import predicate as p
from stretto.query.guard import Guard
from stretto.query.windows import Window

#: The functions, with what they take: any column, numbers to add up, or numbers to compare.
FUNCTIONS = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True)
class MovingAggregate:
    """``function(argument) OVER window`` of the events of a variable; ``count(*)`` has no argument.

    >>> from decimal import Decimal
    >>> minute = Window(seconds=Decimal(60))
    >>> print(MovingAggregate("f", "count", True, p.Attribute("user"), minute).name)
    count(DISTINCT user) OVER 60 seconds of f
    """

    variable: str
    function: str
    distinct: bool
    argument: p.Operand | None
    window: Window
    shown: str = ""  #: the variable as the query has it, where its automaton has another name for it
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        argument = "*" if self.argument is None else f"{'DISTINCT ' * self.distinct}{self.argument}"
        return f"{self.function}({argument}) OVER {self.window}"

    @property
    def name(self) -> str:
        """The column that has its values."""
        return f"{self} of {self.shown or self.variable}"


@dataclass(frozen=True)
class Moving(p.Attribute):
    """A moving aggregate inside a condition: the attribute of its name."""

    moves: ClassVar = True
    aggregate: MovingAggregate | None = None

    def __str__(self) -> str:
        return str(self.aggregate)


class BoundMoving(NamedTuple):
    """A moving aggregate whose types are known.

    ``guards``: an event counts if it satisfies one of them. ``kind`` is the type of the argument, ``size`` that of the window in the
    unit of ``time``, which orders the stream.
    """

    name: str
    aggregate: MovingAggregate
    guards: tuple[Guard, ...]
    argument: p.Operand | None
    kind: pa.DataType
    type: pa.DataType
    time: str
    size: int | float

    @property
    def reads(self) -> Iterator[str]:
        """The attributes that it reads."""
        yield self.time
        operands: list[p.Expression] = [] if self.argument is None else [self.argument]
        for expression in (*operands, *(condition for guard in self.guards for condition in guard.conditions)):
            yield from p.attributes(expression)


def moving_in(expressions: Iterable[p.Expression]) -> tuple[MovingAggregate, ...]:
    """The moving aggregates of some conditions, each once."""
    nodes = (node for one in expressions for node in p.walk(one))
    return tuple(dict.fromkeys(node.aggregate for node in nodes if isinstance(node, Moving) and node.aggregate))


def made_moving(aggregate: MovingAggregate) -> Moving:
    """The attribute that a moving aggregate is."""
    return Moving(aggregate.name, aggregate.span, aggregate)


def marked(condition: p.Predicate, moving: Iterable[MovingAggregate]) -> p.Predicate:
    """A condition in which columns of moving aggregates are told from others."""
    nodes = {one.name: made_moving(one) for one in moving}
    return p.substituted(condition, nodes) if nodes else condition


def of_variable(condition: p.Predicate, variable: str) -> p.Predicate:
    """A condition whose moving aggregates are of a variable."""
    own = {one.name: made_moving(replace(one, variable=variable)) for one in moving_in([condition])}
    return p.substituted(condition, own) if own else condition


def refuse_moving(moving: Iterable[MovingAggregate]) -> None:
    """Raise a :class:`QueryError` for what needs events in order, where they may be out of it."""
    for one in moving:
        raise QueryError(
            f"{one} goes over events in the order of time, and speculation= and sign= take answers back",
            span=one.span,
            hint="leave them out; disorder= sorts events that come late",
        )
