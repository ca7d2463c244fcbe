"""An EQL query as a value: steps, each with its condition on one event and its keys.

EQL relates events by keys and time only. Its sequences are not those of SASE+: see ``docs/semantics.md``, EQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, cast

from stretto.errors import Span
from stretto.query import predicate as p
from stretto.query.sase import Component, SaseQuery

if TYPE_CHECKING:
    import pyarrow as pa


class Mode(StrEnum):
    """What an EQL query looks for."""

    EVENT = "event"  #: single events
    SEQUENCE = "sequence"  #: events one after the other
    SAMPLE = "sample"  #: events in any order, once for each key


@dataclass(frozen=True)
class MaybeMissing(p.Attribute):
    """``?name``: an attribute that is NULL where events have none of that name.

    >>> str(MaybeMissing("process.name"))
    '?`process.name`'
    """

    def __str__(self) -> str:
        return f"?{super().__str__()}"


@dataclass(frozen=True)
class Key:
    """A field of ``by``; an ``optional`` one may be NULL, which is a key as well."""

    name: str
    optional: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{'?' * self.optional}{self.name}"


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

    @property
    def component(self) -> Component:
        """The step as SASE+ has it, without what it asks; of any type it names none."""
        types = () if self.category is None else (self.category,)
        spans = (self.place,) if types and self.place else ()
        return Component(types, self.variable, negated=self.missing, span=self.span, type_spans=spans)


@dataclass(frozen=True)
class Pipe:
    """``| head n`` or ``| tail n``: of the matches, in the order of their ends, the first or the last ones."""

    name: str
    most: int


def shared_keys(steps: Sequence[Step]) -> tuple[str, ...]:
    """The keys that all steps call by one name, and that may not be NULL."""
    columns = zip(*(one.keys for one in steps), strict=True)
    shared = [keys[0].name for keys in columns if len({one.name for one in keys}) == 1 and not keys[0].optional]
    return tuple(dict.fromkeys(shared))


@dataclass(frozen=True)
class EqlQuery(SaseQuery):
    """An EQL query after parsing: what SASE+ queries have, where steps take the place of components and conditions.

    ``equal`` are the keys that all steps have by one name, and that may not be NULL.
    """

    mode: Mode = Mode.EVENT
    stages: tuple[Step, ...] = ()
    until: Step | None = None
    pipes: tuple[Pipe, ...] = ()

    @property
    def whole(self) -> tuple[Step, ...]:
        """All steps, that of ``until`` last."""
        return (*self.stages, *(() if self.until is None else (self.until,)))

    @property
    def plain(self) -> bool:
        """Never: its conditions are not those of SASE+, from which keys could be read."""
        return False

    @property
    def conditions(self) -> tuple[p.Expression, ...]:
        return tuple(one.condition for one in self.whole)

    @property
    def attributes(self) -> tuple[str, ...]:
        asked = [name for one in self.conditions for name in p.attributes(one)]
        return (*asked, *(key.name for one in self.whole for key in one.keys))

    @cached_property
    def may_lack(self) -> frozenset[str]:
        """The attributes that events need not have: those that stand behind a question mark only."""
        nodes = [node for one in self.conditions for node in p.walk(one) if isinstance(node, p.Attribute)]
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

        until = None if self.until is None else own(self.until)
        return replace(self, stages=tuple(map(own, self.stages)), until=until)


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
