"""From parsed clauses to a :class:`ParsedQuery`: FILTER joins the formula, and every name must be bound.

The CORE paper has FILTER both as a clause and as an operator of CEL, and reads the clause as the operator
(section 2.2, footnote 1): ``φ FILTER f AND g`` is ``(φ FILTER f) FILTER g``, and ``φ FILTER f OR g`` is
``(φ FILTER f) OR (φ FILTER g)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from stretto.errors import Span, suggestion
from stretto.languages.ceql.formulas import Condition, Conditions, PatternPart, bounded
from stretto.languages.expressions.clauses import kept
from stretto.languages.expressions.tokens import Mistake, Name, unique
from stretto.languages.expressions.totals import Item, Order, Variables, asked
from stretto.query import algebra as a
from stretto.query import predicate as p
from stretto.query.moving import moving_in
from stretto.query.query import Consume, JoinedKey, Keep, ParsedQuery, SelectItem, Strategy
from stretto.query.totals import Asked, Best, Extent, GroupKey, Totals
from stretto.query.windows import Window

#: What to do where conditions relate events.
RELATES = "SASE+ has them: PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.price > a.price }"

MOST_COPIES = 1_024
"""How often FILTER … OR may write out the formula."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The SELECT clause: ``items`` is ``None`` for ``*``, and ``totals`` where matches are listed.

    ``groups`` stand beside totals: keys, and attributes of variables.
    """

    strategy: Strategy
    items: tuple[SelectItem, ...] | None
    totals: tuple[Item, ...] | None = None
    groups: tuple[tuple[Name | None, Name], ...] = ()


@dataclass(slots=True)
class Clauses:
    """The clauses after WHERE, each at most once; ``where`` says which were seen and at what place."""

    conditions: Conditions | None = None
    partition_by: tuple[Name | JoinedKey, ...] = ()
    window: Window | None = None
    consume: Consume = Consume.NONE
    limit: int | None = None
    extent: bool | None = None
    skip: Keep | None = None
    group_by: tuple[tuple[Name | None, Name], ...] | None = None
    every: Window | None = None
    order: Order | None = None
    sample: tuple[int, int] | None = None
    seen: dict[str, Span] = field(default_factory=dict)


def lower(
    text: str, selection: Selection, streams: Sequence[Name], formula: PatternPart, clauses: Clauses
) -> ParsedQuery:
    """Make the query a value; raise a :class:`Mistake` when a name is not bound or is listed twice."""
    unique(streams, "stream", "FROM")
    _check_streams(formula.qualified, [stream.text for stream in streams])
    joined = tuple(key for key in clauses.partition_by if isinstance(key, JoinedKey))
    for key in joined:
        _check_key(key, [stream.text for stream in streams])
    _check_selection(selection.items or (), formula.bound)
    if a.nullable(formula.pattern):
        raise Mistake(
            "the formula may hold no event at all",
            formula.span,
            "one step must be there: leave out a '?', or write '+' in place of '*'",
        )
    if any(a.ends(formula.pattern)):
        _check_ends(formula, clauses)
    if clauses.conditions is not None:
        formula = filtered(formula, clauses.conditions)
    chosen = None if selection.items is None else [item.variable for item in selection.items]
    wanted = _asked(selection, clauses, formula, chosen)
    items = selection.items
    if isinstance(wanted, Totals) and wanted.distinct is not None:
        items = tuple(map(SelectItem, wanted.distinct))
    return ParsedQuery(
        text=text,
        strategy=selection.strategy,
        items=items,
        streams=tuple(stream.text for stream in streams),
        pattern=formula.pattern,
        partition_by=tuple(key.name if isinstance(key, JoinedKey) else key.text for key in clauses.partition_by),
        window=clauses.window,
        consume=clauses.consume,
        limit=None if isinstance(wanted, Best) else clauses.limit,
        keep=kept(clauses, formula.bound if chosen is None else chosen),
        asked=wanted,
        moving=moving_in(node.predicate for node in a.walk(formula.pattern) if isinstance(node, a.Filter)),
        joined=joined,
        partition_spans=tuple(key.span for key in clauses.partition_by),
        stream_spans=tuple(stream.span for stream in streams),
    )


def _asked(selection: Selection, clauses: Clauses, formula: PatternPart, shown: Sequence[str] | None) -> Asked | None:
    """What is asked of all matches together, which must suit the formula."""
    several = a.holding_several(formula.pattern)
    variables = Variables(formula.bound, several, formula.absent - formula.bound)
    keys = {
        key.shown if isinstance(key, JoinedKey) else key.text: key.name if isinstance(key, JoinedKey) else key.text
        for key in clauses.partition_by
    }
    found = asked(selection.totals, clauses, variables, shown, keys)
    if selection.groups:
        assert found is not None
        by = found.scope.group_by
        _check_groups(selection, [*keys] if by is None else [_as_selected(one) for one in by])
    if found is not None and found.scope.extent is Extent.WINDOW:
        _check_windows(formula, clauses)
    return found


def _check_groups(selection: Selection, groups: Sequence[str]) -> None:
    """SELECT may name the groups as SQL does, if it names them as the columns of the result are."""
    assert selection.totals is not None
    written = []
    for variable, column in selection.groups:
        shown = column.text if variable is None else f"{variable.text}[{column.text}]"
        if shown not in groups:
            raise Mistake(
                f"counts and sums are of all matches of a group, and '{shown}' is no group",
                column.span,
                "a column for each key, or group: PARTITION BY [user], GROUP BY a[region]"
                if variable is None
                else f"add GROUP BY {shown}",
            )
        written.append(shown)
    last = selection.groups[-1][1].span
    if written != [*groups] or last.start > selection.totals[0].span.start:
        raise Mistake(
            "SELECT names all groups in their order, or none, and then what is counted",
            last,
            f"SELECT {', '.join(groups)}, …",
        )


def _as_selected(group: GroupKey) -> str:
    """What SELECT calls a group."""
    return group.name if group.variable is None else str(group)


def _check_windows(formula: PatternPart, clauses: Clauses) -> None:
    """Where WITHIN is the size of windows, nothing else may ask how long a match has been."""
    if clauses.consume is not Consume.NONE:
        raise Mistake(
            "CONSUME BY forgets partial matches after each match, and windows that overlap share them",
            clauses.seen["CONSUME BY"],
            "leave out CONSUME BY, or write EVERY EVENT",
        )
    for nots in a.ends(formula.pattern):
        if nots:
            raise Mistake(
                "NOT at an end lasts as long as WITHIN says, which with EVERY is the size of windows",
                nots[0].span,
                "write EVERY EVENT, or leave out EVERY",
            )


def _check_ends(formula: PatternPart, clauses: Clauses) -> None:
    """What must not come at an end must not come in a window of time; a match may wait for the end of its window."""
    first = sum(a.ends(formula.pattern), ())[0]
    if clauses.window is None or clauses.window.events is not None:
        raise Mistake(
            "NOT at an end needs a window of time, which says for how long nothing may come",
            first.span if clauses.window is None else clauses.window.span,
            "add WITHIN 10 minutes",
        )
    limited = clauses.limit and clauses.order is None
    chosen = "LIMIT" if limited else "CONSUME BY" if clauses.consume is not Consume.NONE else None
    if chosen is not None and a.ends(formula.pattern)[1]:
        raise Mistake(
            f"{chosen} looks at what an event completes, and NOT at the end is completed by time", clauses.seen[chosen]
        )


def _check_streams(atoms: Iterable[a.Atom], streams: Sequence[str]) -> None:
    for atom in atoms:
        if atom.stream is not None and atom.stream not in streams and atom.span is not None:
            raise Mistake(
                f"FROM does not list the stream '{atom.stream}'",
                atom.span,
                suggestion(atom.stream, streams, kind="stream"),
            )


def _check_key(key: JoinedKey, streams: Sequence[str]) -> None:
    """A key with names by stream says what it is called in every stream of FROM, and in no other."""
    named = [stream for stream, _ in key.parts]
    for stream, span in zip(named, key.spans, strict=True):
        if stream not in streams:
            hint = suggestion(stream, streams, kind="stream")
            raise Mistake(f"FROM does not list the stream '{stream}'", span, hint)
    for stream in streams:
        if stream not in named:
            hint = f"{key.name} = {stream}[its name there]"
            raise Mistake(f"the key does not say what it is called in the stream '{stream}'", key.span, hint)


def _check_selection(items: Iterable[SelectItem], bound: frozenset[str]) -> None:
    seen: set[str] = set()
    for item in items:
        assert item.span is not None
        if item.variable not in bound:
            raise Mistake(
                f"SELECT names the variable '{item.variable}', which WHERE never binds",
                item.span,
                _known(item.variable, bound),
            )
        if item.variable in seen:
            raise Mistake(f"SELECT lists the variable '{item.variable}' twice", item.span)
        seen.add(item.variable)


def _known(name: str, bound: frozenset[str]) -> str | None:
    return suggestion(name, sorted(bound), kind="variable")


def filtered(formula: PatternPart, conditions: Conditions) -> PatternPart:
    """Write out ``φ FILTER f`` with the AND and OR of f."""
    copies = formula.copies * conditions.copies
    if copies > MOST_COPIES:
        raise Mistake(
            f"OR in FILTER writes the formula out once for each choice, here {_count(copies)} times",
            conditions.span,
            "put the OR inside the brackets where it is about one variable: x[p OR q]",
        )
    result = _apply(formula, conditions)
    return replace(bounded(result), span=formula.span | conditions.span, copies=copies)


def _count(number: int) -> str:
    return str(number) if number < 10**9 else "more than a thousand million"


def _apply(formula: PatternPart, conditions: Conditions) -> PatternPart:
    """One step for each level of the FILTER's brackets; every copy shares the formula itself."""
    if isinstance(conditions, Condition):
        return _apply_one(formula, conditions)
    if conditions.every:
        for part in conditions.parts:
            formula = _apply(formula, part)
        return formula
    choices: list[PatternPart] = []  # a loop, since a comprehension costs a frame more on each level
    for part in conditions.parts:
        choices.append(_apply(formula, part))
    return replace(
        formula,
        pattern=a.Or(tuple(choice.pattern for choice in choices)),
        height=1 + max(choice.height for choice in choices),
        size=1 + sum(choice.size for choice in choices),
    )


def _apply_one(formula: PatternPart, condition: Condition) -> PatternPart:
    name = condition.variable
    if name not in formula.bound:
        inside = f"a condition on what must not come stands with it: NOT (T AS {name} FILTER {name}[…])"
        raise Mistake(
            f"FILTER names the variable '{name}', which its formula never binds",
            condition.variable_span,
            inside if name in formula.absent else _known(name, formula.bound),
        )
    for attribute, span in p.attributes(condition.predicate).items():
        if attribute.partition(".")[0] in formula.bound and "." in attribute:
            raise Mistake("CEQL has no conditions between events", span, RELATES)
    return replace(
        formula,
        pattern=a.Filter(formula.pattern, condition.variable, condition.predicate, condition.span),
        size=formula.size + 1,
    )
