"""What a ``MATCH_RECOGNIZE`` clause asks, and the clause without some of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from stretto.query import predicate as p
from stretto.query import row_pattern as r
from stretto.query.constraints.model import Constraint, Dropped, Kind, Step, places_of, span_of
from stretto.query.sase import Referred
from stretto.query.windows import Window

#: Alternatives of a whole pattern of which each is asked by itself.
MOST_ALTERNATIVES = 8


@dataclass(frozen=True)
class RowsChain:
    """A clause as a sequence of parts of its pattern, with the conditions of their variables.

    What chooses among matches, and what is shown of them, is left out.
    """

    parsed: r.RowQuery

    @classmethod
    def of(cls, parsed: r.RowQuery) -> Iterator[RowsChain]:
        """The clause, or each alternative of its pattern, if all hold rows."""
        pattern = parsed.pattern
        alternatives = pattern.parts if isinstance(pattern, r.Alternation) else ()
        if 0 < len(alternatives) <= MOST_ALTERNATIVES and all(map(_variables, alternatives)):
            for one in alternatives:
                yield from cls.of(replace(parsed, pattern=one))
        else:
            yield cls(parsed)

    @cached_property
    def _parts(self) -> tuple[r.RowPattern, ...]:
        pattern = self.parsed.pattern
        return pattern.parts if isinstance(pattern, r.Concatenation) else (pattern,)

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        """The parts that hold rows; a pattern of anchors alone is one."""
        return tuple(at for at, part in enumerate(self._parts) if _variables(part)) or (len(self._parts) - 1,)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps that hold rows, in order."""
        return tuple(
            Step(str(part), _variables(part), (), _may_lack(part)) for part in (self._parts[at] for at in self._numbers)
        )

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints: conditions of DEFINE by variable, then those of the pattern, then the window."""
        parsed, found = self.parsed, list[Constraint]()
        there = [name for part in self._parts for name in _variables(part)]
        for name in dict.fromkeys(there):
            for number, part in enumerate(p.conjuncts(parsed.define.get(name))):
                text = f"{r.identifier(name)} AS {self._written(part)}"
                found.append(Constraint(Kind.CONDITION, text, (name,), span_of(part), part, ("define", name, number)))
        for at, whole in enumerate(self._parts):
            for number, node in enumerate(r.parts_of(whole)):
                if isinstance(node, r.Anchor):
                    found.append(Constraint(Kind.ANCHOR, str(node), (), node.span, node, (at, number)))
                elif isinstance(node, r.Quantified) and (node.least > 1 or node.most not in (None, 1)):
                    bounds = node.least, node.most
                    found.append(
                        Constraint(
                            Kind.COUNT,
                            str(node),
                            _variables(node),
                            node.span,
                            _round(node.part),
                            (at, number),
                            bounds=bounds,
                        )
                    )
        if parsed.within is not None:
            text = f"WITHIN {parsed.within}"
            found.append(Constraint(Kind.WINDOW, text, (), parsed.within.span, parsed.within, ("window",)))
        return tuple(found)

    def _written(self, condition: p.Predicate) -> str:
        """A condition with references as people write them."""
        names = {name: Referred(short(self.parsed.references[name])) for name in p.attributes(condition)}
        return str(p.substituted(condition, names))

    def _prefix(self, steps: int) -> range:
        """The numbers of the parts up to a step; an anchor at the end belongs to the whole."""
        return range(len(self._parts) if steps == len(self.steps) else self._numbers[steps - 1] + 1)

    def asks(self, steps: int) -> tuple[Constraint, ...]:
        """The constraints that the first so many steps ask."""
        parts = self._prefix(steps)
        there = {name for at in parts for name in _variables(self._parts[at])}

        def asked(one: Constraint) -> bool:
            match one.place:
                case ("define", name, _):
                    return name in there
                case (int() as at, _):
                    return at in parts
                case _:
                    return True

        return tuple(filter(asked, self.constraints))

    def relaxed(self, steps: int, dropped: Collection[Constraint]) -> r.RowQuery | None:
        """The clause of the first so many steps without some constraints; ``None``: it would match no row."""
        found = self._relaxed(self._prefix(steps), dropped)
        return None if steps < len(self.steps) and _may_lack(found.pattern) else found

    def alone(self, step: int) -> r.RowQuery | None:
        """The clause of one step by itself, counted from 1, with what it asks of its own rows; ``None``: it may have none."""
        apart = [one for one in self.constraints if one.kind is Kind.WINDOW]
        found = self._relaxed((self._numbers[step - 1],), apart)
        return None if _may_lack(found.pattern) else found

    def only(self, one: Constraint) -> r.RowQuery | None:
        """A row of the variable that a condition is about, with nothing else asked; ``None``: there may be none in a match.

        The condition must read nothing but rows at a fixed distance, so that the rest of the match says nothing about it.
        """
        if one.kind is not Kind.CONDITION or not any(one.variables[0] in _needed(part) for part in self._parts):
            return None
        for name in p.attributes(one.what):
            reference = self.parsed.references[name]
            if not isinstance(reference, r.Navigation) or reference.attribute is None:
                return None
            if reference.variable not in ("", one.variables[0]) or reference.skip or reference.side is r.Side.FIRST:
                return None
        return self._query(r.Variable(one.variables[0]), {one.variables[0]: one.what}, None)

    def _relaxed(self, numbers: Collection[int], dropped: Collection[Constraint]) -> r.RowQuery:
        """The clause of some parts without some constraints."""
        places = places_of(dropped)
        # A repetition whose condition is dropped would take all rows that it can, and one without a window may last long.
        free = {name for one in dropped if one.kind is Kind.CONDITION for name in one.variables}
        if ("window",) in places:
            free = {name for part in self._parts for name in _variables(part)}
        parts = tuple(_without(self._parts[at], at, places, free) for at in numbers)
        pattern = parts[0] if len(parts) == 1 else r.Concatenation(parts)
        define: dict[str, p.Predicate] = {}
        for name in _variables(pattern):
            every = enumerate(p.conjuncts(self.parsed.define.get(name)))
            kept = p.joined(part for number, part in every if ("define", name, number) not in places)
            if kept is not None:
                define[name] = kept
        return self._query(pattern, define, None if ("window",) in places else self.parsed.within)

    def _query(self, pattern: r.RowPattern, define: dict[str, p.Predicate], within: Window | None) -> r.RowQuery:
        return replace(
            self.parsed,
            pattern=pattern,
            define=define,
            measures=(),
            rows=r.RowsPerMatch.ONE,
            after=r.AfterMatch.NEXT,
            after_variable=None,
            within=within,
        )


def as_written(parsed: r.RowQuery, whole: r.RowQuery) -> r.RowQuery:
    """A relaxed clause whose repetitions take as many rows as those of the whole one do."""
    few = [
        set(_variables(node)) for node in r.parts_of(whole.pattern) if isinstance(node, r.Quantified) and node.reluctant
    ]

    def visit(node: r.RowPattern) -> r.RowPattern:
        match node:
            case r.Quantified(inner):
                return replace(node, part=visit(inner), reluctant=set(_variables(inner)) in few)
            case r.Excluded(inner):
                return replace(node, part=visit(inner))
            case r.Concatenation(parts) | r.Alternation(parts) | r.Permutation(parts):
                return replace(node, parts=tuple(map(visit, parts)))
            case _:
                return node

    return replace(parsed, pattern=visit(parsed.pattern))


def short(reference: r.RowReference) -> str:
    """A reference as people write it.

    >>> short(r.Navigation("A", shift=-1, attribute="price")), short(r.Navigation("", r.Side.FIRST, attribute="price"))
    ('PREV(A.price)', 'FIRST(price)')
    """
    text = str(reference).replace("RUNNING ", "").replace("FINAL ", "")
    if not isinstance(reference, r.Navigation) or reference.attribute is None:
        return text
    inner = str(replace(reference, shift=0, final=False)).removeprefix("RUNNING ")
    if reference.side is r.Side.LAST and not reference.skip:
        inner = inner.removeprefix("LAST(").removesuffix(")")
    if not reference.shift:
        return inner
    far = "" if abs(reference.shift) == 1 else f", {abs(reference.shift)}"
    return f"{'NEXT' if reference.shift > 0 else 'PREV'}({inner}{far})"


def _variables(part: r.RowPattern) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.name for one in r.parts_of(part) if isinstance(one, r.Variable)))


def _may_lack(part: r.RowPattern) -> bool:
    """Whether a part may hold no row."""
    match part:
        case r.Variable():
            return False
        case r.Concatenation(parts) | r.Permutation(parts):
            return all(map(_may_lack, parts))
        case r.Alternation(parts):
            return any(map(_may_lack, parts))
        case r.Quantified(inner, least):
            return least == 0 or _may_lack(inner)
        case r.Excluded(inner):
            return _may_lack(inner)
        case _:
            return True


def _needed(part: r.RowPattern) -> set[str]:
    """The variables without which there is no match of a part."""
    match part:
        case r.Variable(name):
            return {name}
        case r.Concatenation(parts) | r.Permutation(parts):
            return set().union(*map(_needed, parts))
        case r.Quantified(inner, least) if least > 0:
            return _needed(inner)
        case r.Excluded(inner):
            return _needed(inner)
        case _:
            return set()


def _round(part: r.RowPattern) -> int | None:
    """How many rows a round of a repetition has; ``None``: not always so many."""
    nodes = list(r.parts_of(part))
    if any(isinstance(node, r.Alternation | r.Quantified) for node in nodes):
        return None
    return sum(isinstance(node, r.Variable) for node in nodes)


def _without(part: r.RowPattern, at: int, places: Dropped, free: set[str]) -> r.RowPattern:
    """A part of the pattern without what stands at some places; repetitions of some variables take as few rows as they can."""
    number = -1

    def visit(node: r.RowPattern) -> r.RowPattern:
        nonlocal number
        number += 1
        left = places.get((at, number))
        match node:
            case r.Anchor() if left is not None:
                return r.Empty()
            case r.Quantified(inner, least, most):
                few = node.reluctant or not free.isdisjoint(_variables(inner))
                inner = visit(inner)
                if left is not None:
                    least, most = min(least, left[0]), left[1]
                return r.Quantified(inner, least, most, few, node.span)
            case r.Excluded(inner):
                return replace(node, part=visit(inner))
            case r.Concatenation(parts) | r.Alternation(parts) | r.Permutation(parts):
                return replace(node, parts=tuple(map(visit, parts)))
            case _:
                return node

    return visit(part)
