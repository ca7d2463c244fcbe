"""What a CEQL query asks, and the query without some of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from stretto.query import algebra as a
from stretto.query import predicate as p
from stretto.query.constraints.model import TOGETHER, Constraint, Dropped, Kind, Step, places_of, span_of
from stretto.query.query import Consume, ParsedQuery, SelectItem, Strategy
from stretto.query.windows import Window

#: A part of a sequence that is left out.
_GONE = a.Atom("")

#: Alternatives of a whole formula of which each is asked by itself.
MOST_ALTERNATIVES = 8


@dataclass(frozen=True)
class CeqlChain:
    """A CEQL query as a sequence of parts, with the names, conditions and windows around all of it.

    A constraint's place begins with the number of its part, or with ``around``.
    """

    parsed: ParsedQuery

    @classmethod
    def of(cls, parsed: ParsedQuery) -> Iterator[CeqlChain]:
        """The query, or each alternative of its formula."""
        if isinstance(parsed.pattern, a.Or) and len(parsed.pattern.alternatives) <= MOST_ALTERNATIVES:
            for one in parsed.pattern.alternatives:
                yield from cls.of(replace(parsed, pattern=one))
        else:
            yield cls(parsed)

    @cached_property
    def _around(self) -> tuple[a.Pattern, ...]:
        """The names, conditions and windows of the whole, the outermost first; behind them what they are around."""
        found = [self.parsed.pattern]
        while isinstance(found[-1], a.As | a.Filter | a.Within | a.Project):
            found.append(found[-1].body)
        return tuple(found)

    @cached_property
    def _sequence(self) -> tuple[tuple[a.Pattern, ...], tuple[bool, ...]]:
        """The parts, and whether each joins the one before without a gap."""
        inner = self._around[-1]
        if isinstance(inner, a.Sequence):
            return inner.parts, (False, *inner.contiguous)
        return (inner,), (False,)

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        """The parts that hold events."""
        return tuple(at for at, part in enumerate(self._sequence[0]) if not isinstance(part, a.Not))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps that hold events, in order."""
        found = tuple(_step(self._sequence[0][at]) for at in self._numbers)
        names = tuple(node.variable for node in self._around if isinstance(node, a.As))
        if len(found) > 1 or not names:
            return found
        return (replace(found[0], text=_bare(self.parsed.pattern), variables=(*names, *found[0].variables)),)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints, in the order of the text."""
        parsed, found = self.parsed, list[Constraint]()
        parts, contiguous = self._sequence
        for at, (part, joint) in enumerate(zip(parts, contiguous, strict=True)):
            if joint:
                sides = (*a.variables(parts[at - 1]), *a.variables(part))
                text = f"{parts[at - 1]} : {part}"
                found.append(Constraint(Kind.CONTIGUITY, text, sides, what=(parts[at - 1], part), place=(at, "joint")))
            found += _of_part(part, at)
        for number, node in enumerate(self._around[:-1]):
            found += _of_node(node, ("around", number))
        for number, name in enumerate(parsed.partition_by):
            span = parsed.partition_spans[number] if parsed.partition_spans else None
            found.append(Constraint(Kind.KEY, f"PARTITION BY [{name}]", (), span, name, ("key", name)))
        if (window := parsed.window) is not None:
            found.append(Constraint(Kind.WINDOW, f"WITHIN {window}", (), window.span, window, ("window",)))
        if parsed.strategy is Strategy.STRICT:
            found.append(Constraint(Kind.CONTIGUITY, "SELECT STRICT", place=("strict",)))
        return tuple(found)

    def asks(self, steps: int) -> tuple[Constraint, ...]:
        """The constraints that the first so many steps ask."""
        parts = self._prefix(steps)
        there = {name for at in parts for name in a.variables(self._sequence[0][at])}
        whole = steps == len(self.steps)

        def asked(one: Constraint) -> bool:
            match one.place:
                case (int() as at, "joint"):
                    return at in parts and at != parts[0]
                case (int() as at, *_):
                    return at in parts
                case ("around", number, *_):
                    node = self._around[number]
                    return not isinstance(node, a.Filter) or self._names(number) & there != set()
                case ("strict",):
                    return whole or self.parsed.items is None
                case _:
                    return True

        return tuple(filter(asked, self.constraints))

    def _names(self, number: int) -> set[str]:
        """The variables of the parts whose events a condition around them asks, also by a name that stands around them."""
        node = self._around[number]
        assert isinstance(node, a.Filter)
        named = {one.variable for one in self._around[number:-1] if isinstance(one, a.As)}
        return set(a.variables(self._around[-1])) if node.variable in named else {node.variable}

    def _prefix(self, steps: int) -> tuple[int, ...]:
        """The numbers of the parts up to a step; what must not come at an end belongs to the whole."""
        parts = self._sequence[0]
        if steps == len(self.steps):
            return tuple(range(len(parts)))
        return tuple(range(self._numbers[0], self._numbers[steps - 1] + 1))

    def relaxed(self, steps: int, dropped: Collection[Constraint]) -> ParsedQuery | None:
        """The query of the first so many steps without some constraints; ``None``: that is no query."""
        return self._relaxed(self._prefix(steps), dropped, whole=steps == len(self.steps))

    def alone(self, step: int) -> ParsedQuery | None:
        """The query of one step by itself, counted from 1, with what it asks of its own events; ``None``: that is no query."""
        apart = [one for one in self.constraints if one.kind in TOGETHER or one.place == ("strict",)]
        return self._relaxed((self._numbers[step - 1],), apart, whole=False)

    def only(self, one: Constraint) -> ParsedQuery | None:
        """The step that a condition is about by itself, with nothing else asked; ``None``: it is about none that must come."""
        if one.kind is not Kind.CONDITION:
            return None
        for number, step in zip(self._numbers, self.steps, strict=True):
            there = one.place[0] in ("around", number) and set(one.variables) <= set(step.variables)
            if there and not step.optional:
                return self._relaxed((number,), [other for other in self.constraints if other != one], whole=False)
        return None

    def _relaxed(self, numbers: Collection[int], dropped: Collection[Constraint], *, whole: bool) -> ParsedQuery | None:
        """The query of some parts without some constraints."""
        places = places_of(dropped)
        parts, contiguous = self._sequence
        chosen: list[tuple[a.Pattern, bool]] = []
        for at in numbers:
            part = _without(parts[at], (at,), places)
            joint = contiguous[at] and (at, "joint") not in places
            if part is not _GONE:
                chosen.append((part, joint))
        pattern = _sequence_of(chosen)
        if a.nullable(pattern):
            return None
        there = set(a.variables(pattern))
        for number in reversed(range(len(self._around) - 1)):
            node = self._around[number]
            if isinstance(node, a.Filter) and not self._names(number) & there:
                continue
            assert isinstance(node, a.As | a.Filter | a.Within | a.Project)
            pattern = _stripped(replace(node, body=pattern), ("around", number), places)
        return self._query(pattern, places, whole=whole)

    def _query(self, pattern: a.Pattern, places: Dropped, *, whole: bool) -> ParsedQuery | None:
        parsed = self.parsed
        strict = parsed.strategy is Strategy.STRICT and ("strict",) not in places
        items = tuple(SelectItem(name) for name in a.variables(pattern))
        if strict and parsed.items is not None:  # it asks the events of the variables that are selected
            if not whole:
                strict = False
            else:
                items = tuple(SelectItem(one.variable) for one in parsed.items)
        window = None if ("window",) in places else parsed.window
        ends = any(a.ends(pattern))
        if ends and window is None:
            return None
        keys = tuple(name for name in parsed.partition_by if ("key", name) not in places)
        return replace(
            parsed,
            strategy=Strategy.STRICT if strict else Strategy.ALL,
            items=items,
            pattern=pattern,
            partition_by=keys,
            joined=tuple(one for one in parsed.joined if one.name in keys),
            partition_spans=(),
            window=window,
            consume=Consume.NONE,
            limit=None if ends else 1,
            keep=None,
            asked=None,
        )


def _sequence_of(chosen: list[tuple[a.Pattern, bool]]) -> a.Pattern:
    if len(chosen) == 1:
        return chosen[0][0]
    return a.Sequence(tuple(part for part, _ in chosen), tuple(joint for _, joint in chosen[1:]))


def _step(part: a.Pattern) -> Step:
    types = dict.fromkeys(node.type for node in a.walk(part, absent=False) if isinstance(node, a.Atom))
    composed = any(isinstance(node, a.Sequence | a.Repeat) for node in a.walk(part, absent=False))
    return Step(_bare(part), tuple(a.variables(part)), tuple(types), a.nullable(part), composed=composed)


def _bare(part: a.Pattern) -> str:
    """A part without brackets around the whole of it."""
    text, depth = str(part), 0
    if not isinstance(part, a.As | a.Filter) or not text.startswith("("):
        return text
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return text[1:-1] if at == len(text) - 1 else text
    return text


def _numbered(part: a.Pattern) -> Iterator[tuple[int, a.Pattern]]:
    """The nodes of a part with their numbers, children first, without those of what must not come."""
    nodes: list[a.Pattern] = []
    hidden: set[int] = set()

    def visit(node: a.Pattern) -> a.Pattern:
        if isinstance(node, a.Not):
            hidden.update(range(len(nodes) - sum(1 for _ in a.walk(node.body)), len(nodes)))
        nodes.append(node)
        return node

    a.fold(part, visit, rebuild=False)
    return ((number, node) for number, node in enumerate(nodes) if number not in hidden)


def _of_part(part: a.Pattern, at: int) -> Iterator[Constraint]:
    for number, node in _numbered(part):
        for one in _of_node(node, (at, number)):
            yield replace(one, step=part)


def _of_node(node: a.Pattern, place: tuple[int | str, ...]) -> Iterator[Constraint]:
    """What a node asks by itself."""
    names = tuple(a.variables(node))
    match node:
        case a.Filter(_, variable, predicate):
            for number, part in enumerate(p.conjuncts(predicate)):
                text = f"{a.quote(variable) if '>' not in variable else variable}[{part}]"
                yield Constraint(Kind.CONDITION, text, (variable,), span_of(part), part, (*place, number))
        case a.Not(body):
            yield Constraint(Kind.NEGATION, str(node), tuple(a.variables(body)), node.span, body, (*place, "not"))
        case a.Within(_, window):
            yield Constraint(Kind.GAP, f"WITHIN {window}", names, window.span, (None, window), (*place, "within"))
        case a.After(_, least, most):
            yield Constraint(Kind.GAP, f"AFTER {least}", names, least.span, (least, None), (*place, "least"))
            if most is not None:
                text = f"AFTER {least} WITHIN {most}"
                yield Constraint(Kind.GAP, text, names, most.span, (None, most), (*place, "most"))
        case a.Plus() | a.Repeat():
            if (
                isinstance(node, a.Repeat)
                and (node.least > 1 or node.most is not None)
                and (node.least, node.most) != (0, 1)
            ):
                bounds = node.least, node.most
                yield Constraint(
                    Kind.COUNT, str(node), names, None, _round(node.body), (*place, "count"), bounds=bounds
                )
            if node.contiguous:
                yield Constraint(Kind.CONTIGUITY, str(node), names, None, (node, node), (*place, "joint"))
            if node.gap is not None:
                text, span = f"GAP {node.gap}", node.gap.span
                yield Constraint(Kind.GAP, text, names, span, (None, node.gap), (*place, "gap"))
        case a.Sequence(parts, contiguous):
            for number, joint in enumerate(contiguous):
                if joint:
                    sides = parts[number], parts[number + 1]
                    own = tuple(name for side in sides for name in a.variables(side))
                    text = f"{sides[0]} : {sides[1]}"
                    yield Constraint(Kind.CONTIGUITY, text, own, None, sides, (*place, "joint", number))


def _round(body: a.Pattern) -> int | None:
    """How many events a round of a repetition has; ``None``: not always so many."""
    nodes = list(a.walk(body, absent=False))
    if any(isinstance(node, a.Or | a.Plus | a.Repeat) for node in nodes):
        return None
    return sum(isinstance(node, a.Atom) for node in nodes)


def _without(part: a.Pattern, place: tuple[int | str, ...], places: Dropped) -> a.Pattern:
    """A part without what stands at some places; ``_GONE``: nothing is left."""
    number = -1

    def visit(node: a.Pattern) -> a.Pattern:
        nonlocal number
        number += 1
        return _stripped(node, (*place, number), places)

    return a.fold(part, visit)


def _stripped(node: a.Pattern, place: tuple[int | str, ...], places: Dropped) -> a.Pattern:
    match node:
        case a.Filter(body, variable, predicate):
            parts = list(p.conjuncts(predicate))
            kept = [part for number, part in enumerate(parts) if (*place, number) not in places]
            left = p.joined(kept)
            return (
                node if len(kept) == len(parts) else body if left is None else a.Filter(body, variable, left, node.span)
            )
        case a.Not() if (*place, "not") in places:
            return _GONE
        case a.Within(body) if (*place, "within") in places:
            return body
        case a.After(body, least, most):
            if (*place, "most") in places:
                most = None
            if (*place, "least") in places:
                # At least nothing: an event comes behind the one before it anyway.
                return body if most is None else a.After(body, _nothing(least), most)
            return a.After(body, least, most)
        case a.Plus() | a.Repeat():
            if isinstance(node, a.Repeat) and (*place, "count") in places:
                fewest, at_most = places[*place, "count"]
                node = replace(node, least=min(node.least, fewest), most=at_most)
            if (*place, "joint") in places:
                node = replace(node, contiguous=False)
            return replace(node, gap=None) if (*place, "gap") in places else node
        case a.Sequence(parts, contiguous):
            joints = [joint and (*place, "joint", at) not in places for at, joint in enumerate((*contiguous,))]
            chosen = [pair for pair in zip(parts, [False, *joints], strict=True) if pair[0] is not _GONE]
            return _sequence_of(chosen)
        case _:
            return node


def _nothing(window: Window) -> Window:
    """No time, measured as a window is."""
    if window.events is not None:
        return replace(window, events=0)
    return replace(window, seconds=window.seconds and window.seconds * 0, number=None if window.number is None else 0)
