"""What a SASE+ query asks, and the query without some of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from stretto.query import predicate as p
from stretto.query.constraints.model import TOGETHER, Bounds, Constraint, Dropped, Kind, Step, places_of, span_of
from stretto.query.sase import (
    Aggregate,
    Component,
    Group,
    Length,
    Part,
    Range,
    SaseQuery,
    Selection,
    components_of,
    may_lack,
)


@dataclass(frozen=True)
class SaseChain:
    """A SASE+ query as a chain of components and groups."""

    parsed: SaseQuery

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        """The parts that hold events."""
        return tuple(at for at, part in enumerate(self.parsed.parts) if _positive(part))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps that hold events, in order."""
        return tuple(_step(self.parsed.parts[at]) for at in self._numbers)

    @cached_property
    def _conditions(self) -> tuple[p.Predicate, ...]:
        return tuple(p.conjuncts(self.parsed.condition))

    def _named(self, condition: p.Predicate) -> tuple[str, ...]:
        """The variables that a condition names, in the order of the pattern."""
        named = {self.parsed.references[name].variable for name in p.attributes(condition)}
        every = [one.variable for one in (*self.parsed.components, *self.parsed.endings)]
        return tuple(name for name in every if name in named)

    def _counted(self, condition: p.Predicate) -> str | None:
        """The variable of a repetition whose bounds a condition says; ``None``: it stands in the text by itself."""
        if span_of(condition) is not None or not isinstance(condition, p.Comparison):
            return None
        return next(
            (
                one.variable
                for one in self.parsed.components
                if _bounded(one) and self._named(condition) == (one.variable,)
            ),
            None,
        )

    def _counting(self, condition: p.Predicate) -> tuple[p.Operand, Bounds] | None:
        """How a condition writes the number of events of a repetition, and its bounds; ``None``: it says something else."""
        if not isinstance(condition, p.Comparison):
            return None
        counted, bound, op = condition.left, condition.right, condition.op
        if isinstance(counted, p.Constant):
            counted, bound, op = bound, counted, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
        if not isinstance(counted, p.Attribute) or not isinstance(bound, p.Constant) or type(bound.value) is not int:
            return None
        number = bound.value
        every: dict[str, Bounds] = {
            ">=": (number, None),
            ">": (number + 1, None),
            "=": (number, number),
            "<=": (1, number),
            "<": (1, number - 1),
        }
        match self.parsed.references[counted.name]:
            case Length() | Aggregate("count", _, Range.ALL, None):
                pass
            case Aggregate("count", _, Range.UP_TO, None) if op == "<=":
                pass
            case _:
                return None
        return (counted, every[op]) if op in every else None

    def _left(self, condition: p.Predicate, number: int, dropped: Dropped) -> Iterator[p.Predicate]:
        """A condition, or what is left of it where it is dropped."""
        places = ("condition", number), ("count", self._counted(condition))
        place = next((one for one in places if one in dropped), None)
        if place is None:
            yield condition
        elif (counting := self._counting(condition)) is not None:
            (counted, (least, most)), (fewer, more) = counting, dropped[place]
            if 1 < fewer <= least:
                yield p.Comparison(">=", counted, p.Constant(fewer))
            if most is not None and more is not None:
                yield p.Comparison("<=", counted, p.Constant(more))

    @cached_property
    def _apart(self) -> frozenset[str]:
        """The variables that hold no event of a match: of negated components, and of those that end a repetition."""
        negated = [one.variable for one in self.parsed.components if one.negated]
        return frozenset((*negated, *(one.variable for one in self.parsed.endings)))

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints, in the order of the text."""
        parsed, found = self.parsed, list[Constraint]()
        for number, condition in enumerate(self._conditions):
            names = self._named(condition)
            if not self._apart.intersection(names) and self._counted(condition) is None:
                text = str(condition)
                found.append(
                    Constraint(
                        Kind.CONDITION,
                        text,
                        names,
                        span_of(condition),
                        condition,
                        ("condition", number),
                        bounds=None if (counting := self._counting(condition)) is None else counting[1],
                    )
                )
        for one in parsed.components:
            found += _of_component(one)
        for number, group in enumerate(_groups(parsed.parts)):
            if (group.least > 1 or group.most not in (1, None)) and not group.choice:
                names = tuple(one.variable for one in components_of(group.parts))
                bounds = group.least, group.most
                found.append(
                    Constraint(
                        Kind.COUNT, str(group), names, group.span, _round(group), ("group", number), bounds=bounds
                    )
                )
        for number, name in enumerate(parsed.partition_by):
            span = parsed.partition_spans[number] if parsed.partition_spans else None
            found.append(Constraint(Kind.KEY, f"[{name}]", (), span, name, ("key", name)))
        if (window := parsed.window) is not None:
            found.append(Constraint(Kind.WINDOW, f"WITHIN {window}", (), window.span, window, ("window",)))
        if parsed.selection is not Selection.ANY:
            found.append(Constraint(Kind.STRATEGY, str(parsed.selection), (), None, parsed.selection, ("selection",)))
        for what, modes in (("step", parsed.steps), ("loop", parsed.loops)):
            for name, mode in modes.items():
                if mode is not Selection.ANY:
                    text = f"{mode} of {name}"
                    found.append(Constraint(Kind.STRATEGY, text, (name,), None, mode, (what, name)))
        return tuple(found)

    def _prefix(self, steps: int) -> tuple[Part, ...]:
        """The parts up to a step; what must not come at an end belongs to the whole."""
        if steps == len(self.steps):
            return self.parsed.parts
        return self.parsed.parts[self._numbers[0] : self._numbers[steps - 1] + 1]

    def asks(self, steps: int) -> tuple[Constraint, ...]:
        """The constraints that the first so many steps ask."""
        there = _variables(self._prefix(steps))

        def asked(one: Constraint) -> bool:
            if one.kind is Kind.NEGATION or one.place[0] == "group":
                return there.issuperset(one.variables)
            if one.place == ("selection",):
                return steps > 1
            return there.issuperset(one.variables) or (one.kind is Kind.UNTIL and one.variables[0] in there)

        return tuple(filter(asked, self.constraints))

    def relaxed(self, steps: int, dropped: Collection[Constraint]) -> SaseQuery | None:
        """The query of the first so many steps without some constraints; ``None``: that is no query."""
        return self._relaxed(self._prefix(steps), dropped)

    def alone(self, step: int) -> SaseQuery | None:
        """The query of one step by itself, counted from 1, with what it asks of its own events; ``None``: that is no query."""
        # One that skips to the next event stays: it takes no other events by itself, and has fewer partial matches.
        apart = [one for one in self.constraints if one.kind in TOGETHER and one.what is not Selection.NEXT]
        return self._relaxed((self.parsed.parts[self._numbers[step - 1]],), apart)

    def only(self, one: Constraint) -> SaseQuery | None:
        """The step that a condition is about by itself, with nothing else asked; ``None``: it is about none that must come."""
        if one.kind is not Kind.CONDITION or len(one.variables) != 1:
            return None
        for part in self.parsed.parts:
            # How a repetition goes on may depend on the constraints that are left out.
            if (
                isinstance(part, Component)
                and part.variable == one.variables[0]
                and not part.kleene
                and not may_lack(part)
            ):
                return self._relaxed((part,), [other for other in self.constraints if other != one])
        return None

    def _relaxed(self, chosen: Collection[Part], dropped: Collection[Constraint]) -> SaseQuery | None:
        """The query of some parts without some constraints."""
        parsed, places = self.parsed, places_of(dropped)
        groups = {id(group): number for number, group in enumerate(_groups(parsed.parts))}
        parts = tuple(part for one in chosen for part in _without(one, places, groups))
        if all(map(may_lack, parts)):
            return None
        components = tuple(components_of(parts))
        endings = [one.until.variable for one in components if one.until is not None]
        there = {one.variable for one in components}.union(endings)
        kept = [
            part
            for number, condition in enumerate(self._conditions)
            if there.issuperset(self._named(condition))
            for part in self._left(condition, number, places)
        ]
        condition = p.joined(kept)
        window = None if ("window",) in places else parsed.window
        ends = components[0].negated or components[-1].negated
        if window is None and ends:
            return None
        selection = _skipping(parsed.selection) if ("selection",) in places else parsed.selection
        names = () if condition is None else p.attributes(condition)
        return replace(
            parsed,
            components=components,
            pattern=None if parsed.pattern is None else parts,
            references={name: parsed.references[name] for name in names},
            condition=condition,
            partition_by=tuple(name for name in parsed.partition_by if ("key", name) not in places),
            partition_spans=(),
            window=window,
            selection=selection,
            steps=_kept(parsed.steps, "step", there, places),
            loops=_kept(parsed.loops, "loop", there, places),
            returns=None,
            non_overlap=False,
            compressed=False,
            limit=None if components[-1].negated else 1,
            keep=None,
            asked=None,
        )


def _kept(modes: object, what: str, there: Collection[str], places: Dropped) -> dict[str, Selection]:
    """The strategies of single steps that are left."""
    assert isinstance(modes, dict)
    return {name: _skipping(mode) if (what, name) in places else mode for name, mode in modes.items() if name in there}


def _skipping(mode: Selection) -> Selection:
    """A strategy that skips more: with all that it selects, and fewer partial matches than one that skips anything."""
    return Selection.ANY if mode is Selection.NEXT else Selection.NEXT


def _variables(parts: Collection[Part]) -> set[str]:
    return {one.variable for one in components_of(parts)}


def _groups(parts: Collection[Part]) -> Iterator[Group]:
    for part in parts:
        if isinstance(part, Group):
            yield part
            yield from _groups(part.parts)


def _positive(part: Part) -> bool:
    return isinstance(part, Group) or not part.negated


def _step(part: Part) -> Step:
    inside = [one for one in components_of((part,)) if not one.negated]
    types = dict.fromkeys(name for one in inside for name in one.types)
    least, composed = (1, True) if isinstance(part, Group) else (part.least, part.only)
    return Step(str(part), tuple(one.variable for one in inside), tuple(types), may_lack(part), least, composed)


def _bounded(one: Component) -> bool:
    """Whether it says how often it repeats."""
    return one.kleene and (one.least > 1 or one.most is not None)


def _of_component(one: Component) -> Iterator[Constraint]:
    name = one.variable
    if one.negated:
        yield Constraint(Kind.NEGATION, str(one), (name,), one.span, one, ("negation", name))
    if _bounded(one):
        text, bounds = str(replace(one, until=None)), (one.least, one.most)
        yield Constraint(Kind.COUNT, text, (name,), one.span, 1, ("count", name), bounds=bounds)
    if one.until is not None:
        text = f"UNTIL ({one.until}){' ONLY' * one.only}"
        yield Constraint(Kind.UNTIL, text, (name, one.until.variable), one.until.span, one, ("until", name))


def _round(group: Group) -> int | None:
    """How many events a round of a group has; ``None``: not always so many."""
    held = [part for part in group.parts if _positive(part)]
    if group.choice or any(isinstance(part, Group) or part.kleene or may_lack(part) for part in held):
        return None
    return len(held)


def _without(part: Part, places: Dropped, groups: dict[int, int]) -> Iterator[Part]:
    """A part without what stands at some places; nothing, if it is a negation that does."""
    if isinstance(part, Component):
        if part.negated and ("negation", part.variable) in places:
            return
        if ("count", part.variable) in places:
            least, most = places["count", part.variable]
            part = replace(part, least=min(part.least, least), most=most)
        if ("until", part.variable) in places:
            part = replace(part, until=None, only=False)
        yield part
        return
    inside = tuple(one for inner in part.parts for one in _without(inner, places, groups))
    if ("group", groups[id(part)]) in places:
        least, most = places["group", groups[id(part)]]
        part = replace(part, least=min(part.least, least), most=most)
    yield replace(part, parts=inside)
