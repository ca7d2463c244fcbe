"""A SASE+ query as a plan: components are positions of a formula; a conjunct of WHERE goes to the position that it is about."""

from __future__ import annotations

from collections.abc import Collection

from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.algebra import Not, Or, Pattern, Plus, Repeat, Sequence, least_events
from stretto.query.moving import marked
from stretto.query.plan import Conjunct, Ending, Key, Of, PatternPlan, Position, keys_of
from stretto.query.sase import Component, Element, Group, Index, Part, SaseQuery, Selection, counting
from stretto.query.windows import BoundWindow

#: Of which events of a component a reference reads, where it reads one event that the component itself takes.
_OF = {Index.ONLY: Of.EACH, Index.FIRST: Of.FIRST, Index.EACH: Of.FURTHER}

_NEIGHBOURS = (Selection.STRICT, Selection.PARTITION)


def plan_of(
    parsed: SaseQuery, schema: Schema, condition: p.Predicate | None, window: BoundWindow | None
) -> PatternPlan:
    """The plan of a query; ``condition`` is that of WHERE, with its types."""
    alone: dict[str, list[Conjunct]] = {}
    between, counts = list[Conjunct](), counting(parsed.positive)
    for one in p.conjuncts(condition):
        found = _alone(one, parsed)
        if found is not None:
            alone.setdefault(found[0], []).append(found[1])
        elif one not in counts:
            between.append(Conjunct(str(one), one, getattr(one, "span", None)))
    lowering = _Lowering(parsed, alone, keys_of(parsed, schema))
    formula = lowering.sequence(parsed.parts)
    if (
        parsed.selection is Selection.STRICT and least_events(formula) < 2
    ):  # there is nothing that a key could differ from
        formula = _Lowering(parsed, alone, ()).sequence(parsed.parts)
    modes = [f"{mode} of {name}" for own in (parsed.steps, parsed.loops) for name, mode in own.items()]
    return PatternPlan(
        formula=formula,
        selection=", ".join([parsed.selection, *modes]),
        window=window,
        partition_by=parsed.partition_by,
        between=tuple(between),
        endings=tuple(
            Ending(one.variable, lowering.position(one.until), one.only) for one in parsed.components if one.until
        ),
        chosen=parsed.choosers,
    )


def _alone(condition: p.Predicate, parsed: SaseQuery) -> tuple[str, Conjunct] | None:
    """The variable whose events a conjunct asks, one by one, and the conjunct over their attributes; ``None``: it relates events."""
    references = {name: parsed.references[name] for name in p.attributes(condition)}
    elements = [one for one in references.values() if isinstance(one, Element)]
    places = {(one.variable, one.index) for one in elements}
    if len(elements) < len(references) or len(places) != 1:
        return None
    ((variable, index),) = places
    if index not in _OF:
        return None
    plain = p.renamed(condition, {name: one.attribute for name, one in zip(references, elements, strict=True)})
    plain = marked(plain, parsed.moving)
    return variable, Conjunct(str(condition), plain, getattr(condition, "span", None), _OF[index])


class _Lowering:
    """Makes the formula of a pattern."""

    def __init__(self, parsed: SaseQuery, alone: dict[str, list[Conjunct]], keys: tuple[Key, ...]) -> None:
        self._parsed, self._alone, self._keys = parsed, alone, keys

    def position(self, one: Component) -> Position:
        """The position of a component's events."""
        asked = tuple(self._alone.get(one.variable, ()))
        names = frozenset({one.variable})
        return Position("|".join(one.types), None, one.span, one.types, names, asked, self._keys)

    def sequence(self, parts: Collection[Part]) -> Pattern:
        """Parts one after the other."""
        found = tuple(map(self._part, parts))
        joints = tuple(self._mode(one) in _NEIGHBOURS for one in parts)[1:]
        return Sequence(found, joints) if len(found) > 1 else found[0]

    def _part(self, part: Part) -> Pattern:
        if isinstance(part, Group):
            body = Or(tuple(map(self._part, part.parts))) if part.choice else self.sequence(part.parts)
            return _repeated(body, part.least, part.most, self._mode(part) in _NEIGHBOURS)
        own = self.position(part)
        if part.negated:
            return Not(own)
        mode = self._parsed.loops.get(part.variable, self._parsed.selection)
        return _repeated(own, part.least, part.most if part.kleene else 1, mode in _NEIGHBOURS)

    def _mode(self, part: Part) -> Selection:
        """How the first event of a part is selected."""
        while isinstance(part, Group):
            part = part.parts[0]
        return self._parsed.steps.get(part.variable, self._parsed.selection)


def _repeated(body: Pattern, least: int, most: int | None, contiguous: bool) -> Pattern:
    if (least, most) == (1, 1):
        return body
    return Plus(body, contiguous) if (least, most) == (1, None) else Repeat(body, least, most, contiguous and most != 1)
