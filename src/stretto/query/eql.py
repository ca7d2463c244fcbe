"""An EQL query as a value: steps, each with its condition on one event and its keys.

EQL relates events by keys and time only. Its sequences are not those of SASE+: see ``docs/semantics.md``, EQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self, cast

from stretto.errors import OptionError, Span
from stretto.query import predicate as p
from stretto.query.plan import Key
from stretto.query.query import AnyQuery
from stretto.query.sase import Selection

if TYPE_CHECKING:
    import pyarrow as pa


class Mode(StrEnum):
    """What an EQL query looks for."""

    EVENT = "event"  #: single events
    SEQUENCE = "sequence"  #: events one after the other
    SAMPLE = "sample"  #: events in any order, once for each key
    JOIN = "join"  #: events in any order, again and again for each key


@dataclass(frozen=True)
class MaybeMissing(p.Attribute):
    """``?name``: an attribute that is NULL where events have none of that name.

    >>> str(MaybeMissing("process.name"))
    '?`process.name`'
    """

    def __str__(self) -> str:
        return f"?{super().__str__()}"


@dataclass(frozen=True)
class OfEvent(p.Attribute):
    """``events[number].field`` in a pipe: an attribute of one of the events of a match, which are counted from 0.

    >>> str(OfEvent("events[1].pid", number=1, field="pid"))
    'events[1].pid'
    """

    number: int = 0
    field: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Step:
    """``[category where condition] by keys``, or with ``missing`` ``![…]``: an event that must not come."""

    variable: str
    category: str | None  #: ``None``: any
    condition: p.Predicate
    keys: tuple[Key, ...] = ()
    missing: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)
    place: Span | None = field(default=None, compare=False, repr=False)  #: of the category

    def __str__(self) -> str:
        asked = "" if self.condition == p.And(()) else f"[{self.condition}]"
        return f"{'!' * self.missing}{self.category or 'any'} {self.variable}{asked}"


@dataclass(frozen=True)
class Pipe:
    """What becomes of the matches, in the order of their ends.

    ``head`` and ``tail`` leave the first or the last ones, ``most`` of them; ``filter`` those that fulfil ``condition``; ``unique``
    the first with each of the values of ``fields``; ``sort`` orders them by these. A plain attribute is of the first event.
    """

    name: str
    most: int = 0
    condition: p.Predicate | None = None
    fields: tuple[p.Attribute, ...] = ()

    def __str__(self) -> str:
        told = self.condition or ", ".join(map(str, self.fields)) or self.most
        return f"{self.name} {told}"

    @property
    def reads(self) -> dict[str, tuple[int, p.Attribute]]:
        """The attributes that it reads, by what they are called: of which event, and the attribute."""
        nodes = (*self.fields, *(() if self.condition is None else p.walk(self.condition)))
        return {one.name: _place(one) for one in nodes if isinstance(one, p.Attribute)}


def _place(node: p.Attribute) -> tuple[int, p.Attribute]:
    return (node.number, p.Attribute(node.field, node.span)) if isinstance(node, OfEvent) else (0, node)


def shared_keys(steps: Sequence[Step]) -> tuple[str, ...]:
    """The keys that all steps call by one name, and that may not be NULL."""
    columns = zip(*(one.keys for one in steps), strict=True)
    shared = [keys[0].name for keys in columns if len({one.name for one in keys}) == 1 and not keys[0].optional]
    return tuple(dict.fromkeys(shared))


@dataclass(frozen=True)
class EqlQuery(AnyQuery):
    """An EQL query after parsing; ``partition_by`` are the keys that all steps have by one name, and that may not be NULL."""

    mode: Mode
    stages: tuple[Step, ...]
    until: Step | None = None
    pipes: tuple[Pipe, ...] = ()
    language: str = field(default="eql", kw_only=True)
    strategy: ClassVar[Selection] = Selection.LATEST
    streams: ClassVar[tuple[str, ...]] = ("",)
    words: ClassVar[Mapping[str, str]] = {"partition_by": "key"}
    within: ClassVar[str] = "maxspan"
    no_sets: ClassVar[str] = (
        "sets of matches are for SASE+ queries; an event completes one match of EQL at most: use match()"
    )
    no_partial_matches: ClassVar[str] = (
        "partial_matches() is not there for EQL: why_not() shows what is under way of a sequence, and held() counts it"
    )
    not_followed: ClassVar[str] = "and a sample or a join has none"

    def by_groups(self, keys: Iterable[str]) -> Self:
        raise OptionError("a query of EQL has its own keys, and does not run by groups")

    @property
    def followed(self) -> bool:
        return self.mode is Mode.SEQUENCE

    @property
    def whole(self) -> tuple[Step, ...]:
        """All steps, that of ``until`` last."""
        return (*self.stages, *(() if self.until is None else (self.until,)))

    @property
    def told_keys(self) -> tuple[str, ...]:
        """The fields that tell the key at the last event of a match: those by which the last step that must come is joined.

        Any step of a sample or a join may come last, so that these are the fields that all of its steps call by one name.
        """
        *others, last = (one.keys for one in self.positive)
        if self.mode in (Mode.SAMPLE, Mode.JOIN):
            last = tuple(
                key for key, *rest in zip(last, *others, strict=True) if {one.name for one in rest} <= {key.name}
            )
        return tuple(dict.fromkeys(key.name for key in last))

    @property
    def positive(self) -> tuple[Step, ...]:
        """The steps that hold events."""
        return tuple(one for one in self.stages if not one.missing)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that a result reports, in order."""
        return tuple(one.variable for one in self.positive)

    @property
    def last_negation(self) -> Step | None:
        """What must not come at the end, which time completes."""
        return self.stages[-1] if self.stages[-1].missing else None

    @property
    def wanted(self) -> tuple[str, ...]:
        """The categories that it names, but those of what must not come."""
        return tuple(dict.fromkeys(one.category for one in self.positive if one.category is not None))

    @property
    def conditions(self) -> tuple[p.Expression, ...]:
        """What it asks of events."""
        return tuple(one.condition for one in self.whole)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that its conditions, keys and pipes name."""
        asked = [name for one in self.conditions for name in p.attributes(one)]
        shown = [one.name for pipe in self.pipes for _, one in pipe.reads.values()]
        return (*asked, *(key.name for one in self.whole for key in one.keys), *shown)

    @cached_property
    def may_lack(self) -> frozenset[str]:
        """The attributes that events need not have: those that stand behind a question mark only."""
        nodes = [node for one in self.conditions for node in p.walk(one) if isinstance(node, p.Attribute)]
        nodes += [node for pipe in self.pipes for _, node in pipe.reads.values()]
        keys = [key for one in self.whole for key in one.keys]
        maybe = {one.name for one in nodes if isinstance(one, MaybeMissing)} | {
            key.name for key in keys if key.optional
        }
        sure = {one.name for one in nodes if not isinstance(one, MaybeMissing)}
        return frozenset(maybe - sure - {key.name for key in keys if not key.optional})

    def fitted(self, attributes: Mapping[str, pa.DataType]) -> EqlQuery:
        """The query over events that have some attributes only: what may be missing is NULL where it is."""

        def own(step: Step) -> Step:
            return replace(step, condition=_fitted(step.condition, attributes))

        def piped(pipe: Pipe) -> Pipe:
            lacking = {one.name for one in pipe.fields if isinstance(one, MaybeMissing) and one.name not in attributes}
            fields = tuple(one for one in pipe.fields if one.name not in lacking)
            condition = None if pipe.condition is None else _fitted(pipe.condition, attributes)
            return replace(pipe, condition=condition, fields=fields)

        until = None if self.until is None else own(self.until)
        return replace(self, stages=tuple(map(own, self.stages)), until=until, pipes=tuple(map(piped, self.pipes)))


def _fitted(node: p.Predicate, attributes: Mapping[str, pa.DataType]) -> p.Predicate:
    if isinstance(node, p.And | p.Or | p.Not):
        return p.rebuilt(node, lambda part: _fitted(part, attributes))
    lacking = {one.name for one in p.walk(node) if isinstance(one, MaybeMissing) and one.name not in attributes}
    left = p.with_nulls(node, lacking)
    if left is None:
        return p.And(()) if isinstance(node, p.IsNull) else p.Or(())
    return cast(p.Predicate, _sure(left))


def _sure(node: p.Expression) -> p.Expression:
    if isinstance(node, MaybeMissing):
        return p.Attribute(node.name, node.span)
    return p.rebuilt(node, _sure)
