"""From parsed clauses to a :class:`SaseQuery`: every reference must suit the pattern.

What is refused here is what one comparison cannot mean. Where WHERE's conditions are placed, and what an OR of several
comparisons needs for that, is decided when the query's automaton is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stretto.errors import Span, suggestion
from stretto.languages.expressions.clauses import kept
from stretto.languages.expressions.tokens import Mistake, Name
from stretto.languages.expressions.transformer import predicate_of, value_of
from stretto.languages.sase.draft import Argument, Draft, Item, Strategy, Where
from stretto.languages.sase.references import is_several
from stretto.languages.sase.totals import asked_of_all
from stretto.query import predicate as p
from stretto.query.query import Keep
from stretto.query.sase import (
    DISTINCT,
    Aggregate,
    Component,
    Element,
    Index,
    Length,
    MovingElement,
    Part,
    Range,
    Reference,
    Referred,
    ReturnItem,
    SaseQuery,
    Selection,
    are_paired,
    components_of,
    counting,
    may_lack,
)
from stretto.query.totals import Best


def lower(text: str, draft: Draft) -> SaseQuery:
    """Make the query a value; raise a :class:`Mistake` where a reference does not suit the pattern."""
    pattern = _pattern(draft.parts)
    selection, steps, loops = _strategies(draft.where.strategies, pattern)
    condition, equal = _condition(draft.where)
    _check_neighbours(draft.where.strategies, selection, keyed=bool(equal))
    condition = _with_counts(condition, pattern.components)
    uses: list[Referred] = []
    for predicate in _predicates(condition):
        own = _uses(predicate, pattern)
        _check_together(own, pattern)
        uses += own
    returns = None
    if draft.clauses.items is not None:
        returns, more = _returns(draft.clauses.items, pattern)
        uses += more
    wanted = asked_of_all(draft.clauses, pattern.known, [name.text for name in equal])
    return SaseQuery(
        text=text,
        components=pattern.components,
        selection=selection,
        references={use.name: use.reference for use in uses if use.reference is not None},
        condition=condition,
        partition_by=tuple(name.text for name in equal),
        window=draft.clauses.window,
        returns=returns,
        non_overlap=draft.clauses.output.non_overlap,
        compressed=draft.clauses.output.compressed,
        limit=None if isinstance(wanted, Best) else draft.clauses.limit,
        keep=_kept(draft, pattern),
        asked=wanted,
        moving=tuple(use.reference.aggregate for use in uses if isinstance(use.reference, MovingElement)),
        pattern=None if all(isinstance(one, Component) and one.least for one in pattern.parts) else pattern.parts,
        steps=steps,
        loops=loops,
        partition_spans=tuple(name.span for name in equal),
    )


def _kept(draft: Draft, pattern: _Pattern) -> Keep | None:
    """What KEEP and AFTER MATCH say; OUTPUT must say nothing else."""
    keep = kept(draft.clauses, [one.variable for one in pattern.components if not one.negated])
    output = draft.clauses.output
    if keep is not None and (output.non_overlap or output.compressed):
        raise Mistake(
            "OUTPUT chooses among matches, or hands them over unlisted, and KEEP and AFTER MATCH look at each",
            draft.clauses.seen["OUTPUT"],
            "leave out OUTPUT",
        )
    return keep


# ---- PATTERN


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The parts, their components, and where each variable is among these; what ends a repetition stands behind it."""

    parts: tuple[Part, ...]
    components: tuple[Component, ...]
    places: Mapping[str, int]
    known: Mapping[str, Component]

    def of(self, name: str) -> Component:
        return self.known[name]


def _pattern(written: Sequence[Part]) -> _Pattern:
    parts = tuple(map(_marked, written))
    components = tuple(components_of(parts))
    places: dict[str, int] = {}
    known: dict[str, Component] = {}
    for number, component in enumerate(components):
        for one in (component, component.until):
            if one is None:
                continue
            if one.variable in places:
                raise Mistake(f"the pattern has the variable '{one.variable}' twice", one.place)
            places[one.variable] = number
            known[one.variable] = one
    first, last = parts[0].span, parts[-1].span
    assert first is not None
    assert last is not None
    if all(component.negated for component in components):
        raise Mistake("a pattern needs a component that is not negated", first | last, "SEQ(A a, ~(B b))")
    if all(map(may_lack, parts)):
        raise Mistake(
            "the pattern may hold no event at all",
            first | last,
            "a match has at least one event: take the '?' or '*' from a part, or count from 1",
        )
    return _Pattern(parts, components, places, known)


def _marked(part: Part, again: bool = False) -> Part:
    """A part whose components know whether they stand in a group that repeats."""
    if isinstance(part, Component):
        return replace(part, again=again and not part.negated)
    return replace(part, parts=tuple(_marked(one, again or part.most != 1) for one in part.parts))


def _strategies(
    said: Sequence[Strategy], pattern: _Pattern
) -> tuple[Selection, dict[str, Selection], dict[str, Selection]]:
    """The strategy of the whole, and those of single steps and of single repetitions."""
    for one in said:
        _check_arguments(one.arguments, pattern)
    whole = [one for one in said if not one.arguments]
    if len(whole) > 1:
        raise Mistake(
            "two strategies for the whole pattern",
            whole[1].span,
            f"say for which steps one of them holds: {whole[1].selection}(b, c[])",
        )
    chosen = whole[0] if whole else said[0] if said else Strategy(Selection.NEXT, (), Span(0, 0))
    steps: dict[str, Selection] = {}
    loops: dict[str, Selection] = {}
    for one in said:
        for argument in () if one is chosen else one.arguments:
            name, found = argument.name.text, loops if argument.kleene else steps
            if name in found:
                raise Mistake(f"two strategies for '{name}{'[]' * argument.kleene}'", argument.span)
            if pattern.of(name).negated or name not in {one.variable for one in pattern.components}:
                raise Mistake(f"'{name}' is in no match, so that there is no step to it", argument.span)
            found[name] = one.selection
    first = next(one for one in pattern.components if not one.negated)
    if first.variable in steps and not first.again:
        place = next(a.span for one in said for a in one.arguments if a.name.text == first.variable and not a.kleene)
        hint = f"write {first.variable}[] for its repetition" if first.kleene else None
        raise Mistake(f"there is no step to '{first.variable}', which begins a match", place, hint)
    steps, loops = ({k: v for k, v in known.items() if v is not chosen.selection} for known in (steps, loops))
    return chosen.selection, steps, loops


def _check_neighbours(said: Sequence[Strategy], whole: Selection, *, keyed: bool) -> None:
    """Neighbours of a step are those that the whole pattern counts: of the partition, or of the stream."""
    other = {Selection.STRICT: Selection.PARTITION, Selection.PARTITION: Selection.STRICT}
    stream = whole is Selection.STRICT
    for one in said if keyed else ():
        if one.arguments and one.selection is (Selection.PARTITION if stream else Selection.STRICT) is not whole:
            raise Mistake(
                f"{one.selection} for single steps beside {whole} and an equivalence test",
                one.span,
                f"events are counted in {'the stream' if stream else 'their partition'}: write {other[one.selection]}",
            )


def _check_arguments(arguments: Iterable[Argument], pattern: _Pattern) -> None:
    """A strategy's arguments name variables."""
    seen: set[tuple[str, bool]] = set()
    for argument in arguments:
        name = argument.name.text
        _check_known(name, argument.name.span, pattern)
        if argument.kleene and not pattern.of(name).kleene:
            raise Mistake(f"'{name}' is one event", argument.span, f"write {name}, without brackets")
        if (name, argument.kleene) in seen:
            raise Mistake(f"the strategy lists the variable '{name}' twice", argument.span)
        seen.add((name, argument.kleene))


def _check_known(name: str, span: Span | None, pattern: _Pattern) -> None:
    if name not in pattern.places:
        raise Mistake(f"unknown variable '{name}'", span, suggestion(name, pattern.places, kind="variable"))


# ---- WHERE


#: What to do where a condition asks for a number of distinct values.
_DISTINCT = (
    "give it back, RETURN count(DISTINCT a[].x) AS n, and keep the rows that have enough; count(a[]) is how many events there are, "
    "which is another number. MATCH_RECOGNIZE has COUNT(DISTINCT A.x) in DEFINE"
)


def _condition(where: Where) -> tuple[p.Predicate | None, tuple[Name, ...]]:
    """The conditions, and the attributes of the equivalence tests, each once."""
    body = where.body
    if body is None:
        return None, ()
    equal: dict[str, Name] = {}
    for name in body.equal:
        equal.setdefault(name.text, name)
    alone = body.expression is None and not body.is_null
    return None if alone else predicate_of(replace(body, equal=())), tuple(equal.values())


def _with_counts(condition: p.Predicate | None, components: Iterable[Component]) -> p.Predicate | None:
    """``A{n,m} a[]`` is ``A+ a[]`` with ``a.LEN >= n``, and takes an event while ``count(a[..i]) <= m``."""
    counts = counting(components)
    return p.joined((*p.conjuncts(condition), *counts)) if counts else condition


def _predicates(condition: p.Predicate | None) -> list[p.Predicate]:
    """The comparisons and the like of a condition, left to right."""
    if condition is None:
        return []
    inside = (node for node in p.walk(condition) if isinstance(node, p.Predicate))
    return [node for node in inside if not isinstance(node, p.And | p.Or | p.Not)]


def _uses(expression: p.Expression, pattern: _Pattern, *, whole: bool = False) -> list[Referred]:
    """The references of an expression, each of which suits its variable; ``whole``: of a match that is complete."""
    uses = [node for node in p.walk(expression) if isinstance(node, Referred)]
    for use in uses:
        if use.reference is None:
            raise _bare(use, pattern, whole)
        _check_known(use.reference.variable, use.variable_span, pattern)
        if is_several(use) and not (whole and use is expression):
            raise _several(use, use.reference)
        if not whole and getattr(use.reference, "function", None) == DISTINCT:
            raise Mistake(f"{use.name} stands in RETURN only", use.span, _DISTINCT)
        _check_form(use, use.reference, pattern.of(use.reference.variable), whole)
    return uses


def _several(use: Referred, reference: Reference) -> Mistake:
    """``a[].x`` where one value is needed."""
    assert isinstance(reference, Aggregate)
    shown = f"{reference.variable}{reference.range}"
    return Mistake(
        f"{shown} is any number of events, not one", use.span, f"aggregate them: avg({shown}.{reference.attribute})"
    )


def _bare(use: Referred, pattern: _Pattern, whole: bool) -> Mistake:
    """A name without an attribute, or an attribute without a variable."""
    name = use.name
    if name in pattern.places:
        kind = "several events" if pattern.of(name).many else "an event"
        hint = f"name an attribute: {_forms(pattern.of(name), 'x', whole)}"
        return Mistake(f"'{name}' is {kind}, not a value", use.span, hint)
    first = next(component for component in pattern.components if not component.negated)
    return Mistake(f"'{name}' of which event?", use.span, f"name the variable: {_forms(first, name, whole)}")


def _forms(component: Component, attribute: str, whole: bool) -> str:
    """How an attribute of a component's events is written; a complete match has no ``a[i]``."""
    name = component.variable
    if not component.many:
        return f"{name}.{attribute}"
    further = "" if whole else f"{name}[i].{attribute}, "
    return f"{name}[1].{attribute}, {further}{name}[{name}.LEN].{attribute} or avg({name}[].{attribute})"


def _check_form(use: Referred, reference: Reference, component: Component, whole: bool) -> None:
    """Indexes and aggregates are for a Kleene plus, and a Kleene plus needs them."""
    name = component.variable
    if component.many:
        if isinstance(reference, Element) and reference.index is Index.ONLY:
            hint = _forms(component, reference.attribute, whole)
            raise Mistake(f"'{name}' holds several events; which of them?", use.span, hint)
        return
    if isinstance(reference, Element) and reference.index is Index.ONLY:
        return
    if isinstance(reference, Length):
        hint = f"LEN counts the events of a Kleene plus; an attribute of that name is {name}.`LEN`"
    elif reference.attribute is None:
        hint = f"{reference.function} goes over the events of a Kleene plus"
    else:
        hint = f"write {name}.{reference.attribute}"
    kind = "is negated and stands for one event" if component.negated else "is one event"
    raise Mistake(f"'{name}' {kind}, not several", use.span, hint)


# ---- What one comparison relates


def _check_together(uses: Sequence[Referred], pattern: _Pattern) -> None:
    """References that no moment, or no one reading of i, brings together."""
    _check_negated(uses, pattern)
    moving = [use for use in uses if _moves(use.reference)]
    if are_paired([use.reference for use in moving if use.reference is not None], pattern.parts):
        return
    for use in moving[1:]:
        if _variable(use) != _variable(moving[0]):
            raise Mistake(
                f"{moving[0].name} and {use.name} in one comparison: which i of '{_variable(moving[0])}' goes with which "
                f"of '{_variable(use)}'?",
                use.span,
                f"say which event of '{_variable(use)}': {_fixed(use)}",
            )
    passing = next((use for use in moving if not _is_each(use.reference)), None)
    if passing is not None:
        _check_passing(passing, uses, pattern)


def _check_negated(uses: Iterable[Referred], pattern: _Pattern) -> None:
    first: str | None = None
    for use in uses:
        name = _variable(use)
        if not pattern.of(name).negated:
            continue
        if first is not None and name != first:
            raise Mistake(
                f"'{first}' and '{name}' are both negated: no event of one is there to compare with the other",
                use.span,
                "compare each with a component that is not negated",
            )
        first = name


def _check_passing(use: Referred, uses: Iterable[Referred], pattern: _Pattern) -> None:
    """``a[i-1]`` and aggregates so far have a value only while ``a[i]`` is selected."""
    own = pattern.places[_variable(use)]
    for other in uses:
        place = pattern.places[_variable(other)]
        complete = place == own and _whole(other.reference)
        if place > own or pattern.components[place].negated or complete:
            when = f"{other.name} is known" if complete else f"'{_variable(other)}' comes"
            raise Mistake(f"{use.name} has no one value when {when}", use.span, f"say {_fixed(use)}")


def _variable(use: Referred) -> str:
    assert use.reference is not None
    return use.reference.variable


def _moves(reference: Reference | None) -> bool:
    """Whether a reference depends on i."""
    if isinstance(reference, Element):
        return reference.index in (Index.EACH, Index.BEFORE)
    return isinstance(reference, Aggregate) and reference.range is not Range.ALL


def _is_each(reference: Reference | None) -> bool:
    return isinstance(reference, Element) and reference.index is Index.EACH


def _whole(reference: Reference | None) -> bool:
    """Whether a reference is known only once its Kleene plus is complete."""
    if isinstance(reference, Element):
        return reference.index is Index.LAST
    return isinstance(reference, Length) or (isinstance(reference, Aggregate) and reference.range is Range.ALL)


def _fixed(use: Referred) -> str:
    """What to write instead of a reference that depends on i."""
    reference = use.reference
    assert reference is not None
    name = reference.variable
    if isinstance(reference, Aggregate):
        return str(Aggregate(reference.function, name, Range.ALL, reference.attribute))
    assert isinstance(reference, Element)
    first, last = (Element(name, index, reference.attribute) for index in (Index.FIRST, Index.LAST))
    return f"{first}, {last} or {Aggregate('avg', name, Range.ALL, reference.attribute)}"


# ---- RETURN


def _returns(items: Sequence[Item], pattern: _Pattern) -> tuple[tuple[ReturnItem, ...], list[Referred]]:
    found: dict[str, ReturnItem] = {}
    uses: list[Referred] = []
    for item in items:
        value = value_of(item.value)
        own = _uses(value, pattern, whole=True)
        if calls := p.calls(value):
            raise Mistake("registered functions are for conditions, not for RETURN", calls[0].span)
        for use in own:
            _check_returned(use, pattern)
        uses += own
        name = item.name.text if item.name else _name(value)
        if name is None:
            raise Mistake("a computed item needs a name", item.span, "write … AS name")
        if name in found:
            raise Mistake(
                f"RETURN has the name '{name}' twice",
                item.name.span if item.name else item.span,
                "give one of them another name with AS",
            )
        found[name] = ReturnItem(name, value, item.span)
    return tuple(found.values()), uses


def _check_returned(use: Referred, pattern: _Pattern) -> None:
    """A whole match knows its events, not the steps that led to it."""
    name = _variable(use)
    if pattern.of(name).negated:
        raise Mistake(f"'{name}' is negated: a match has no such event", use.span)
    if isinstance(use.reference, MovingElement):
        raise Mistake("a moving aggregate stands in WHERE, where it decides which events match", use.span)
    if _moves(use.reference):
        raise Mistake(f"{use.name} has no one value in a whole match", use.span, f"say {_fixed(use)}")


def _name(value: p.Operand) -> str | None:
    """The name of an item without AS."""
    reference = value.reference if isinstance(value, Referred) else None
    match reference:
        case Element(variable, index, attribute):
            place = {Index.FIRST: "_1", Index.LAST: "_last"}.get(index, "")
            return f"{variable}{place}_{attribute.replace('.', '_')}"
        case Length(variable):
            return f"{variable}_len"
        case Aggregate(function, variable, _, attribute):
            parts = (function.replace(" ", "_"), variable, attribute and attribute.replace(".", "_"))
            return "_".join(part for part in parts if part)
        case _:
            return None
