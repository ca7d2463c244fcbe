"""The logical plan of a query: one form for all languages, which what asks about a query reads.

A plan is a formula of :mod:`~stretto.query.algebra` whose leaves are *positions*: what the events of one place have to be. What
relates several events stands beside the formula. CEQL, SASE+ and EQL are lowered to it (``passes/plan_*.py``); equal plans have
equal digests, in whatever language the query was written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from stretto.errors import Span
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.algebra import (
    Atom,
    Not,
    Or,
    Pattern,
    Repeat,
    children,
    is_contiguous,
    least_events,
    spans_of,
    walk,
)
from stretto.query.guard import Guard
from stretto.query.query import AnyQuery, Strategy
from stretto.query.windows import BoundWindow


class Of(StrEnum):
    """Which events of a position a condition is asked of."""

    EACH = ""
    FIRST = "[1]"
    FURTHER = "[i]"  #: those behind the first one


@dataclass(frozen=True)
class Conjunct:
    """A part of what a query asks: as it is written, as a typed condition, and where it stands."""

    text: str
    condition: p.Predicate
    span: Span | None = field(default=None, compare=False, repr=False)
    of: Of = Of.EACH


@dataclass(frozen=True)
class Key:
    """A field that is equal in all events of a match; an ``optional`` one may be NULL, which is a key as well."""

    name: str
    optional: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{'?' * self.optional}{self.name}"

    @property
    def there(self) -> Conjunct:
        """That an event has it."""
        return Conjunct(self.name, p.Not(p.IsNull(p.Attribute(self.name))), self.span)


def keys_of(query: AnyQuery, schema: Schema) -> tuple[Key, ...]:
    """The keys of all events of a match."""
    spans = dict(zip(query.partition_by, query.partition_spans, strict=False))
    return tuple(Key(name, False, spans.get(name)) for name in query.partition_by if name in schema.attributes)


@dataclass(frozen=True)
class Position(Atom):
    """A leaf of a plan's formula: an event of one of some types (none: any), which the variables of ``labels`` hold."""

    types: tuple[str, ...] = ()
    labels: frozenset[str] = frozenset()
    asked: tuple[Conjunct, ...] = ()
    keys: tuple[Key, ...] = ()

    def __str__(self) -> str:
        types = "any" if not self.types else "|".join(str(Atom(one, self.stream)) for one in self.types)
        names = "".join(f" {one}" for one in sorted(self.labels))
        asked = " AND ".join(f"{one.of}{'.' * bool(one.of)}{one.condition}" for one in self.asked)
        by = f" BY {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"{types}{names}{f'[{asked}]' if asked else ''}{by}"

    def sure(self, rounds: int) -> tuple[Conjunct, ...]:
        """What some event of it fulfils in each match that has so many of them: of its first one or of a further one, not of both."""
        known = [one for one in self.asked if not p.calls(one.condition) and not p.moves(one.condition)]
        further = rounds > 1 and all(one.of is not Of.FIRST for one in known)
        return tuple(one for one in known if further or one.of is not Of.FURTHER)

    @property
    def condition(self) -> p.Predicate:
        """What each of its events fulfils."""
        return p.And(tuple(one.condition for one in self.asked if one.of is Of.EACH))

    def guards(self) -> Iterator[Guard]:
        """What its events are asked one by one: a guard for each type, and for its first and its further events where they differ."""
        kinds = {one.of for one in self.asked}
        for of in (Of.FIRST, Of.FURTHER) if kinds - {Of.EACH} else (Of.EACH,):
            conditions = tuple(dict.fromkeys(one.condition for one in self.asked if one.of in (Of.EACH, of)))
            yield from (Guard(kind, self.stream, conditions) for kind in self.types)


@dataclass(frozen=True)
class Ending:
    """What ends the repetition of a variable, or all partial matches of its key (``""``); ``only``: it has to come."""

    of: str
    by: Position
    only: bool = False

    def __str__(self) -> str:
        return f"{self.of or 'all'} until {'only ' * self.only}{self.by}"


@dataclass(frozen=True)
class Requirement:
    """What every match has an event of: one of some types (none: any) that fulfils all conditions and has all keys.

    ``stream`` is ``None`` where the event may come from any of the query's streams.
    """

    types: tuple[str, ...]
    stream: str | None
    asked: tuple[Conjunct, ...]
    keys: tuple[Conjunct, ...]


@dataclass(frozen=True)
class PatternPlan:
    """What a bound query asks.

    ``between`` are the conditions that relate events. ``ordered``: events come in the order of the formula.

    >>> import pyarrow as pa, stretto
    >>> text = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.x > 5 } WITHIN 3 EVENTS"
    >>> print(stretto.compile(text, {"type": pa.string(), "x": pa.int64()}).bound.plan)
    (A a[x > 5] ; (B b+))
    window: 3
    selection: skip_till_any_match
    """

    formula: Pattern
    selection: str
    window: BoundWindow | None = None
    partition_by: tuple[str, ...] = ()
    between: tuple[Conjunct, ...] = ()
    endings: tuple[Ending, ...] = ()
    ordered: bool = True
    chosen: tuple[str, ...] = ()  #: what is done with the matches, one thing after the other

    def __str__(self) -> str:
        window = self.window
        measured = "" if window is None or window.attribute is None else f" [{window.attribute}]"
        lines = [str(self.formula)]
        lines += [] if window is None else [f"window: {window.size}{measured}"]
        lines += [f"partition: {', '.join(self.partition_by)}"] * bool(self.partition_by)
        lines += [f"between: {one.text}" for one in self.between]
        lines += [f"ending: {one}" for one in self.endings]
        lines.append(f"selection: {self.selection}")
        return "\n".join([*lines, *(f"then: {one}" for one in self.chosen)])

    @cached_property
    def digest(self) -> str:
        """The plan in short: that of an equal plan is the same."""
        return hashlib.sha256(str(self).encode()).hexdigest()

    @cached_property
    def positions(self) -> tuple[Position, ...]:
        """All positions in the order of the text, those of events that must not come, and those of endings, too."""
        own = (node for node in walk(self.formula) if isinstance(node, Position))
        return (*own, *(one.by for one in self.endings))

    @property
    def held(self) -> Iterator[Position]:
        """The positions of events that a match holds."""
        return (node for node in walk(self.formula, absent=False) if isinstance(node, Position))

    @property
    def negates(self) -> bool:
        """Whether it says of events that they must not come."""
        return any(isinstance(node, Not) for node in walk(self.formula))

    @property
    def least(self) -> int:
        """How many events each match has at least."""
        return least_events(self.formula) if self.ordered else 1

    @property
    def looks_between(self) -> bool:
        """Whether it matters what lies between two events of a match: they are neighbours, or so many events apart."""
        windows = () if self.window is None else (self.window.attribute,)
        counted = None in windows or any(one.events is not None for one in spans_of(self.formula))
        nodes = walk(self.formula)
        return self.selection == f"SELECT {Strategy.STRICT}" or counted or any(map(is_contiguous, nodes))

    @cached_property
    def requirements(self) -> tuple[Requirement, ...]:
        """What a match needs of single events; nothing of what may be missing, nor of what must not come.

        Alternatives of which one will do, with the same conditions, stand together. Functions of the user are called in kernels only,
        and left out.

        >>> import pyarrow as pa, stretto
        >>> text = "SELECT * FROM S WHERE A ; B AS b ; NOT C ; D FILTER b[x > 5 AND x < 7]"
        >>> plan = stretto.compile(text, {"type": pa.string(), "x": pa.int64()}).bound.plan
        >>> [(one.types, [str(asked.text) for asked in one.asked]) for one in plan.requirements]
        [(('A',), []), (('B',), ['b[x > 5]', 'b[x < 7]']), (('D',), [])]
        """
        types: dict[tuple[int, str | None, tuple[Conjunct, ...], tuple[Conjunct, ...]], list[str]] = {}
        todo: list[tuple[Pattern, int | None, int]] = [(self.formula, None, 1)]
        while todo:
            node, choice, rounds = todo.pop()
            if isinstance(node, Position):
                own = len(types) if choice is None else -choice
                keys = tuple(key.there for key in node.keys if not key.optional)
                types.setdefault((own, node.stream, node.sure(rounds), keys), []).extend(node.types)
            elif not isinstance(node, Not) and not (isinstance(node, Repeat) and not node.least):
                if isinstance(node, Or) and choice is None:
                    choice = len(types) + 1
                rounds = node.least if isinstance(node, Repeat) else 1
                todo += [(child, choice, rounds) for child in reversed(children(node))]
        return tuple(
            Requirement(tuple(dict.fromkeys(own)), stream, asked, keys)
            for (_, stream, asked, keys), own in types.items()
        )
