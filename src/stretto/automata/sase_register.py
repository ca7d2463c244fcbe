"""The value vector V of a SASE+ query as the register of an AFA (SASE+ paper, section 5.2.1; AFA paper, definition 1).

A field keeps what conditions read of the events selected so far: an attribute of a component's first or last event, their number,
or a running count, sum, minimum or maximum. Fields are never NULL. So a value that may be NULL has a truth value beside it
(``…_known``), an aggregate its count, and conditions ask for these: where a reference has several *cases*, a comparison becomes an
OR over them. What a field becomes with a selected event has cases as well; each combination of them is an arc.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

import pyarrow as pa

from stretto.automata.nfab import Kind, Nfab, own_index
from stretto.errors import LimitError, QueryError
from stretto.query import predicate as p
from stretto.query.afa import Field
from stretto.query.sase import Aggregate, Element, Index, Kept, Length, Range, Reference, kept
from stretto.query.scalar_functions import FUNCTIONS
from stretto.query.typing import kind_of

#: A move with more cases than this is refused: each of them is an arc.
MOST_CASES = 64

_E = TypeVar("_E", bound=p.Expression)

TRUE, FALSE = p.Constant(True), p.Constant(False)

#: A value with what must hold for it; ``None``: NULL.
Cases = list[tuple[tuple[p.Predicate, ...], p.Operand | None]]

#: What a field becomes, with the truth of questions that must be so.
Decisions = list[tuple[tuple[tuple[p.Predicate, bool], ...], p.Operand]]


@dataclass(frozen=True)
class Every:
    """Whether a condition on one event, over its attributes' own names, holds for every event of a Kleene plus."""

    variable: str
    condition: p.Predicate


@dataclass(frozen=True)
class Same:
    """Whether an attribute is known and the same in all events of a Kleene plus."""

    variable: str
    attribute: str


Read = Reference | Every | Same


@dataclass(frozen=True)
class Slot:
    """A field: ``attribute`` of a component's events, or the ``truth`` of a condition on one; ``known``: whether it is not NULL."""

    component: int
    what: Kept
    attribute: str | None = None
    truth: str | None = None
    known: bool = False


@dataclass(frozen=True)
class Moment:
    """When a condition is tested: with an event that component ``component`` begins with or takes, or before any (``move`` None).

    Then conditions know that event as one of the component's. ``variable`` names the event of a negated component.
    """

    component: int
    move: Kind | None = None
    variable: str | None = None


class ValueRegister:
    """The fields that conditions ask for, how conditions read them, and what they become.

    Parameters
    ----------
    nfab
        The automaton of the query.
    """

    def __init__(self, nfab: Nfab) -> None:
        self.nfab = nfab
        self.query = nfab.query
        self.attributes = dict(nfab.query.schema.attributes)
        #: What is computed of an event's strings, by the attribute that it is taken for.
        self.values: dict[str, p.Function] = {}
        self.numbers = {pair.component.variable: at for at, pair in enumerate(nfab.pairs)}
        self.slots: dict[Slot, str] = {}
        self.truths: dict[str, p.Predicate] = {}
        self._known: dict[tuple[int, Kind], frozenset[str]] = {}

    # -- fields -------------------------------------------------------------------------------------------------------

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Name and type of each field."""
        return {name: self._type(slot) for slot, name in self.slots.items()}

    @property
    def initial(self) -> tuple[Any, ...]:
        """The first value of each field."""
        return tuple(_first_value(kind) for kind in self.types.values())

    def field(self, slot: Slot) -> p.Attribute:
        """Give a field that is read, with those that it needs itself."""
        if slot not in self.slots:
            attribute = slot.attribute
            if attribute is not None and not slot.known and slot.what not in (Kept.COUNT, Kept.SAME):
                self._type(slot)  # raises where no field can hold it
            self.slots[slot] = self._name(slot)
            if slot.what in (Kept.MIN, Kept.MAX) and attribute is not None and not self._begins_known(slot):
                self.count(slot.component, attribute)
            if slot.what is Kept.SAME:
                self.field(Slot(slot.component, Kept.FIRST, attribute))
        return Field(f"r.{self.slots[slot]}")

    def count(self, component: int, attribute: str) -> p.Attribute:
        """Count the events of a component that know an attribute: all, where none of them may lack it."""
        if all(attribute in self.known(component, kind) for kind in self._moves(component)):
            return self.field(Slot(component, Kept.LENGTH))
        return self.field(Slot(component, Kept.COUNT, attribute))

    def _name(self, slot: Slot) -> str:
        variable = self.nfab.pairs[slot.component].component.variable
        kleene = self.nfab.pairs[slot.component].component.kleene
        parts = [variable]
        if kleene or slot.what is not Kept.FIRST:
            parts.append(str(slot.what))
        if slot.attribute is not None:
            parts.append(slot.attribute)
        if slot.truth is not None:
            parts.append(f"test{list(self.truths).index(slot.truth) + 1}")
        if slot.known:
            parts.append("known")
        found = "_".join(parts)
        while found in self.slots.values():
            found += "_"
        return found

    def _type(self, slot: Slot) -> pa.DataType:
        if slot.known or slot.truth is not None or slot.what is Kept.SAME:
            return pa.bool_()
        if slot.what in (Kept.LENGTH, Kept.COUNT):
            return pa.int64()
        assert slot.attribute is not None
        own = self.attributes[slot.attribute]
        family = kind_of(own)
        if family in ("float", "decimal"):
            return pa.float64()
        if family == "time":
            return own
        plain = {"int": pa.int64(), "bool": pa.bool_(), "string": pa.string()}
        if family not in plain:
            raise QueryError(f"'{slot.attribute}' is {own}, which no register can keep")
        return plain[family]

    # -- what is never NULL -------------------------------------------------------------------------------------------

    def _moves(self, component: int) -> tuple[Kind, ...]:
        return (Kind.BEGIN, Kind.TAKE) if self.nfab.pairs[component].component.kleene else (Kind.BEGIN,)

    def known(self, component: int, move: Kind) -> frozenset[str]:
        """Find the attributes that an event must have which a component begins with, or takes: a comparison with NULL is false."""
        if (component, move) not in self._known:
            pair = self.nfab.pairs[component]
            edge = pair.begin if move is Kind.BEGIN else pair.take
            assert edge is not None
            found = {name for name in (self.query.time, self.query.schema.type) if name is not None}
            found |= set(self.query.partition_by)
            own = own_index(move, pair.component)
            for conjunct in (*edge.alone, *edge.related):
                if isinstance(conjunct, p.Comparison | p.In | p.Between | p.Like):
                    for name in p.needed(conjunct):
                        one = self.query.parsed.references[name]
                        if (
                            isinstance(one, Element)
                            and (one.variable, one.index) == (pair.component.variable, own)
                            and not p.calls(conjunct)
                        ):
                            found.add(one.attribute)
            self._known[component, move] = frozenset(found)
        return self._known[component, move]

    def _begins_known(self, slot: Slot) -> bool:
        return slot.attribute in self.known(slot.component, Kind.BEGIN)

    def _may_be_null(self, slot: Slot) -> bool:
        moves = (Kind.BEGIN,) if slot.what is Kept.FIRST else self._moves(slot.component)
        return any(slot.attribute not in self.known(slot.component, move) for move in moves)

    # -- reading ------------------------------------------------------------------------------------------------------

    def condition(self, node: p.Predicate, moment: Moment, references: Mapping[str, Read]) -> p.Predicate:
        """Turn a condition over references into one over the event and the register.

        Raises
        ------
        QueryError
            A register cannot tell it.
        """
        match node:
            case p.And(parts):
                return all_of([self.condition(part, moment, references) for part in parts])
            case p.Or(parts):
                return any_of([self.condition(part, moment, references) for part in parts])
            case p.Not(part):
                return p.Not(self.condition(part, moment, references))
        return self._leaf(node, moment, references)

    def _leaf(self, node: p.Predicate, moment: Moment, references: Mapping[str, Read]) -> p.Predicate:
        names = list(p.attributes(node))
        if not names:
            return node
        used = {name: references[name] for name in names}
        if all(self._is_at_hand(one, moment) for one in used.values()):
            return of_event(p.renamed(node, {name: str(getattr(one, "attribute", name)) for name, one in used.items()}))
        remembered = self._remembered(node, used, moment)
        if remembered is not None:
            return remembered
        node = self._with_values(node, used, moment)
        names = list(p.attributes(node))
        used = {name: used[name] for name in names}
        self._refuse_order_of_strings(node, used)
        found = []
        for chosen in product(*(self.read(one, moment) for one in used.values())):
            values = dict(zip(names, (value for _, value in chosen), strict=True))
            tests = [test for own, _ in chosen for test in own]
            told = p.with_nulls(node, [name for name, value in values.items() if value is None])
            if told is not None:
                found.append(all_of([*tests, p.substituted(told, values)]))  # type: ignore[arg-type]
            elif isinstance(node, p.IsNull):
                found.append(all_of(tests))
        return any_of(found)

    def _with_values(self, node: p.Predicate, used: dict[str, Read], moment: Moment) -> p.Predicate:
        """A condition in which what is computed of strings of an earlier event is a value of that event, which is kept."""

        def change(part: p.Expression) -> p.Expression:
            elements = [one for name in p.attributes(part) if isinstance(one := used[name], Element)]
            if not isinstance(part, p.Function) or not p.reads_strings(part) or not elements:
                return p.rebuilt(part, change)
            first, names = elements[0], p.attributes(part)
            alike = all((one.variable, one.index) == (first.variable, first.index) for one in elements)
            if len(elements) < len(names) or not alike or self._is_at_hand(first, moment):
                return p.rebuilt(part, change)
            plain = p.renamed(part, {name: one.attribute for name, one in zip(names, elements, strict=True)})
            kept_as = replace(first, attribute=self._value(plain))
            used[str(kept_as)] = kept_as
            return p.Attribute(str(kept_as), next(iter(names.values())))

        found: p.Predicate = change(node)  # type: ignore[assignment]
        return found

    def _value(self, plain: p.Function) -> str:
        """The attribute that something computed of an event's strings is taken for."""
        for name, value in self.values.items():
            if value == plain:
                return name
        name = f"value{len(self.values) + 1}"
        while name in self.attributes:
            name += "_"
        self.values[name] = plain
        self.attributes[name] = pa.int64() if FUNCTIONS[plain.name].gives == "int" else pa.string()
        return name

    def here(self, attribute: str) -> p.Operand:
        """An attribute of the event at hand."""
        return of_event(self.values[attribute]) if attribute in self.values else Field(f"e.{attribute}")

    def _is_at_hand(self, one: Read, moment: Moment) -> bool:
        """Whether a reference is to the event at hand."""
        if not isinstance(one, Element):
            return False
        if one.variable == moment.variable:
            return True
        if moment.move is None or self.numbers.get(one.variable) != moment.component:
            return False
        return moment.move is Kind.BEGIN or one.index in (Index.EACH, Index.LAST)

    def _remembered(self, node: p.Predicate, used: Mapping[str, Read], moment: Moment) -> p.Predicate | None:
        """A condition on one event that came before, where words of the register cannot tell it: its truth is kept."""
        elements = [one for one in used.values() if isinstance(one, Element) and not self._is_at_hand(one, moment)]
        ends = {(one.variable, kept(one)[0]) for one in elements}
        if len(elements) < len(used) or len(ends) != 1 or p.calls(node):
            return None
        kinds = {kind_of(self.attributes[one.attribute]) for one in elements}
        ordered = isinstance(node, p.Comparison) and node.op not in ("=", "!=")
        told = "string" in kinds and (isinstance(node, p.Like | p.Between) or ordered)
        if not told and not kinds & {"decimal", "other"} and not p.reads_strings(node):
            return None
        (variable, end), *_ = ends
        plain = p.renamed(node, {name: one.attribute for name, one in zip(used, elements, strict=True)})
        return p.Comparison("=", self.field(Slot(self.numbers[variable], end, truth=self._truth(plain))), TRUE)

    def _truth(self, plain: p.Predicate) -> str:
        self.truths.setdefault(repr(plain), plain)
        return repr(plain)

    def _refuse_order_of_strings(self, node: p.Predicate, used: Mapping[str, Read]) -> None:
        texts = [
            name
            for name, one in used.items()
            if not isinstance(one, Length | Every | Same)
            and one.attribute is not None
            and not (isinstance(one, Aggregate) and one.function == "count")
            and kind_of(self.attributes[one.attribute]) == "string"
        ]
        plain = isinstance(node, p.In | p.IsNull) or (isinstance(node, p.Comparison) and node.op in ("=", "!="))
        if texts and not plain:
            raise QueryError(
                "strings of different events are compared with = and != only on a disordered stream",
                span=p.attributes(node)[texts[-1]],
            )

    def read(self, one: Read, moment: Moment) -> Cases:
        """What a reference stands for."""
        match one:
            case Element():
                return self._element(one, moment)
            case Length(variable):
                return [((), self._length(self.numbers[variable], moment, own=True))]
            case Aggregate():
                return self._aggregate(one, moment)
            case Every(variable, condition):
                return self._every(self.numbers[variable], condition, moment)
            case Same(variable, attribute):
                return self._same(self.numbers[variable], attribute, moment)

    def _move(self, component: int, moment: Moment) -> Kind | None:
        return moment.move if component == moment.component else None

    def _element(self, one: Element, moment: Moment) -> Cases:
        if self._is_at_hand(one, moment):
            return [((), Field(f"e.{one.attribute}"))]
        slot = Slot(self.numbers[one.variable], kept(one)[0], one.attribute)
        value = self.field(slot)
        if not self._may_be_null(slot):
            return [((), value)]
        known = p.Comparison("=", self.field(Slot(slot.component, slot.what, slot.attribute, known=True)), TRUE)
        return [((known,), value), ((p.Not(known),), None)]

    def _length(self, component: int, moment: Moment, *, own: bool) -> p.Operand:
        move = self._move(component, moment)
        if move is Kind.BEGIN:
            return p.Constant(1)
        length = self.field(Slot(component, Kept.LENGTH))
        return _plus(length, p.Constant(1)) if move is Kind.TAKE and own else length

    def _aggregate(self, one: Aggregate, moment: Moment) -> Cases:
        component = self.numbers[one.variable]
        if one.function in ("min", "max") and kind_of(self.attributes[one.attribute or ""]) == "string":
            raise QueryError(
                f"{one}: strings of different events are compared with = and != only on a disordered stream"
            )
        own = one.range is not Range.BEFORE
        if one.attribute is None:
            return [((), self._length(component, moment, own=own))]
        move = self._move(component, moment)
        here = Field(f"e.{one.attribute}")
        if move is Kind.BEGIN:
            return self._of_one(one, component, here)
        if move is None or not own:
            return self._so_far(one, component)
        return self._with_own(one, component, here)

    def _of_one(self, one: Aggregate, component: int, here: p.Attribute) -> Cases:
        """An aggregate over the event at hand, which is the first."""
        if one.function == "count":
            missing: p.Predicate = p.IsNull(here)
            if here.name.removeprefix("e.") in self.known(component, Kind.BEGIN):
                return [((), p.Constant(1))]
            return [((missing,), p.Constant(0)), ((p.Not(missing),), p.Constant(1))]
        return [((), p.Arithmetic("/", here, p.Constant(1)) if one.function == "avg" else here)]

    def _so_far(self, one: Aggregate, component: int) -> Cases:
        """An aggregate over the events so far."""
        assert one.attribute is not None
        if one.function == "count":
            return [((), self.count(component, one.attribute))]
        if one.function == "avg":
            total = self.field(Slot(component, Kept.SUM, one.attribute))
            value: p.Operand = p.Arithmetic("/", total, self.count(component, one.attribute))
        else:
            value = self.field(Slot(component, Kept(one.function), one.attribute))
        if one.attribute in self.known(component, Kind.BEGIN):
            return [((), value)]
        none = p.Comparison("=", self.count(component, one.attribute), p.Constant(0))
        return [((p.Not(none),), value), ((none,), None)]

    def _with_own(self, one: Aggregate, component: int, here: p.Attribute) -> Cases:
        """An aggregate over the events so far and the one at hand, which is taken."""
        assert one.attribute is not None
        missing: p.Predicate = p.IsNull(here)
        before = self._so_far(one, component)
        if one.attribute in self.known(component, Kind.TAKE):
            missing = NEVER
        if one.function in ("min", "max"):
            better = self._better(Slot(component, Kept(one.function), one.attribute))
            return [((better,), here), *(((p.Not(better), *tests), value) for tests, value in before)]
        count = self.count(component, one.attribute)
        if one.function == "count":
            value: p.Operand = _plus(count, p.Constant(1))
        else:
            value = _plus(self.field(Slot(component, Kept.SUM, one.attribute)), here)
            if one.function == "avg":
                value = p.Arithmetic("/", value, _plus(count, p.Constant(1)))
        if missing is NEVER:
            return [((), value)]
        return [((p.Not(missing),), value), *(((missing, *tests), old) for tests, old in before)]

    def _better(self, slot: Slot) -> p.Predicate:
        """Whether the event at hand gives a new minimum or maximum; NaN does, and stays."""
        assert slot.attribute is not None
        here = self.here(slot.attribute)
        tests: list[p.Predicate] = [p.Comparison("<" if slot.what is Kept.MIN else ">", here, self.field(slot))]
        if kind_of(self.attributes[slot.attribute]) == "float":
            tests.append(p.Comparison("!=", here, here))
        if not self._begins_known(slot):
            none = p.Comparison("=", self.count(slot.component, slot.attribute), p.Constant(0))
            tests.append(all_of([none, p.Not(p.IsNull(here))]))
        return any_of(tests)

    def _every(self, component: int, condition: p.Predicate, moment: Moment) -> Cases:
        slot = Slot(component, Kept.EVERY, truth=self._truth(condition))
        value = self.field(slot)
        move = self._move(component, moment)
        if move is None:
            return [((), value)]
        here = of_event(condition)
        return [((here,), TRUE if move is Kind.BEGIN else value), ((p.Not(here),), FALSE)]

    def _same(self, component: int, attribute: str, moment: Moment) -> Cases:
        value = self.field(Slot(component, Kept.SAME, attribute))
        move = self._move(component, moment)
        if move is None:
            return [((), value)]
        here = self._is_same(component, attribute, move)
        return [((here,), TRUE if move is Kind.BEGIN else value), ((p.Not(here),), FALSE)]

    def _is_same(self, component: int, attribute: str, move: Kind) -> p.Predicate:
        here = Field(f"e.{attribute}")
        if move is Kind.BEGIN:
            return p.Not(p.IsNull(here))
        return p.Comparison("=", here, self.field(Slot(component, Kept.FIRST, attribute)))

    # -- updates ------------------------------------------------------------------------------------------------------

    def updates(self, component: int, move: Kind) -> list[tuple[tuple[p.Predicate, ...], tuple[p.Operand, ...] | None]]:
        """What the register becomes with an event that a component begins with or takes: tests, and a value for each field.

        The tests of different cases exclude each other, and one of them holds.
        """
        fields = {slot: Field(f"r.{name}") for slot, name in self.slots.items()}
        found: list[tuple[dict[str, tuple[p.Predicate, bool]], dict[Slot, p.Operand]]] = [({}, {})]
        for slot in fields:
            if slot.component != component:
                continue
            decisions = self._decisions(slot, move)
            if decisions is None:
                continue
            more = []
            for asked, values in found:
                for questions, value in decisions:
                    joined = dict(asked)
                    for question, holds in questions:
                        joined.setdefault(repr(question), (question, holds))
                    if all(joined[repr(question)][1] is holds for question, holds in questions):
                        more.append((joined, {**values, slot: value}))
            found = more
            if len(found) > MOST_CASES:
                variable = self.nfab.pairs[component].component.variable
                raise LimitError(
                    f"what the conditions remember of '{variable}' has more than {MOST_CASES} cases, each an arc: remember less, or "
                    "compare attributes that are not NULL"
                )
        return [
            (
                tuple(question if holds else p.Not(question) for question, holds in asked.values()),
                tuple(values.get(slot, own) for slot, own in fields.items()) if values else None,
            )
            for asked, values in found
        ]

    def _decisions(self, slot: Slot, move: Kind) -> Decisions | None:
        """What a field becomes; ``None``: it stays."""
        begins = move is Kind.BEGIN
        if slot.what is Kept.FIRST and not begins:
            return None
        own = self.field(slot)
        if slot.what is Kept.LENGTH:
            return [((), p.Constant(1) if begins else _plus(own, p.Constant(1)))]
        if slot.truth is not None:
            question = of_event(self.truths[slot.truth])
            held = own if slot.what is Kept.EVERY and not begins else TRUE
            return [(((question, True),), held), (((question, False),), FALSE)]
        assert slot.attribute is not None
        here = self.here(slot.attribute)
        if slot.what is Kept.SAME:
            question = self._is_same(slot.component, slot.attribute, move)
            if isinstance(question, p.Not):
                question, yes = question.part, False
            else:
                yes = True
            return [(((question, yes),), TRUE if begins else own), (((question, not yes),), FALSE)]
        if slot.what in (Kept.MIN, Kept.MAX) and not begins:
            question = self._better(slot)
            return [(((question, True),), here), (((question, False),), own)]
        values: dict[Kept, p.Operand] = {
            Kept.COUNT: p.Constant(1) if begins else _plus(own, p.Constant(1)),
            Kept.SUM: here if begins else _plus(own, here),
        }
        value = TRUE if slot.known else values.get(slot.what, here)
        if slot.attribute in self.known(slot.component, move):
            return [((), value)]
        missing = p.IsNull(here)
        return [(((missing, False),), value), (((missing, True),), FALSE if slot.known else own)]


# ---- Expressions

#: A condition that never holds.
NEVER: p.Predicate = p.Or(())


def all_of(parts: Iterable[p.Predicate]) -> p.Predicate:
    """Join conditions by AND, flat."""
    flat = [one for part in parts for one in (part.parts if isinstance(part, p.And) else (part,))]
    if any(one == NEVER for one in flat):
        return NEVER
    return flat[0] if len(flat) == 1 else p.And(tuple(flat))


def any_of(parts: Iterable[p.Predicate]) -> p.Predicate:
    """Join conditions by OR, flat."""
    flat = [one for part in parts for one in (part.parts if isinstance(part, p.Or) else (part,))]
    if any(one == p.And(()) for one in flat):
        return p.And(())
    return flat[0] if len(flat) == 1 else p.Or(tuple(flat))


def negation_of(part: p.Predicate) -> p.Predicate:
    """Negate a condition, without a second ``NOT``."""
    if part == NEVER:
        return p.And(())
    if part == p.And(()):
        return NEVER
    return part.part if isinstance(part, p.Not) else p.Not(part)


def of_event(plain: _E) -> _E:
    """Turn an expression over attributes' own names into one of the event at hand."""
    found: _E = p.substituted(plain, {name: Field(f"e.{name}") for name in p.attributes(plain)})
    return found


def _plus(left: p.Operand, right: p.Operand) -> p.Operand:
    return p.Arithmetic("+", left, right)


def _first_value(kind: pa.DataType) -> Any:
    family = kind_of(kind)
    if family == "time":
        zone = dt.UTC if getattr(kind, "tz", None) else None
        moment = dt.datetime(1970, 1, 1, tzinfo=zone)
        return moment if pa.types.is_timestamp(kind) else moment.date()
    return {"int": 0, "float": 0.0, "bool": False, "string": ""}[family]
