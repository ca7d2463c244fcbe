"""Equalities between the events of a match as keys: ``a.id = b.order_id AND b.order_id = c.id`` splits the stream by orders.

docs/semantics.md (SASE+, keys that conditions say) has the argument; what it does not cover stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from stretto.column_types import unified
from stretto.query import predicate as p
from stretto.query.passes.bind_sase import BoundSase, bind_sase
from stretto.query.query import JoinedKey
from stretto.query.sase import Component, Element, Index, SaseQuery, Selection
from stretto.query.typing import may_overflow


@dataclass(frozen=True)
class _Tie:
    """An equality that is asked of ``own``, the event that a move selects, and of ``other``, one that the run knows by then."""

    condition: p.Predicate
    own: Element
    other: Element

    @property
    def further(self) -> bool:
        """Whether it is asked of each further event of a Kleene plus, and not of its first one."""
        return self.own.index is Index.EACH

    @property
    def inside(self) -> bool:
        """Whether it relates the events of one Kleene plus."""
        return self.own.variable == self.other.variable


def split_by_equalities(query: BoundSase) -> BoundSase:
    """The same query, split by those keys that its conditions say; the query itself where they say none.

    Its ``partition_by`` has these keys beside those of equivalence tests, and its conditions lack the equalities that they replace.
    """
    parsed = query.parsed
    if not _may_be_split(query):
        return query
    conditions = list(p.conjuncts(parsed.condition))
    ties = [tie for one in conditions if (tie := _tie(one, parsed)) is not None]
    names, joined, told = [], [], []
    for attributes in _candidates(ties):
        own = [
            tie for tie in ties if all(attributes.get(one.variable) == one.attribute for one in (tie.own, tie.other))
        ]
        key = _key(attributes, query)
        if key is None or not _are_tied(parsed, own):
            continue
        told += [id(tie.condition) for tie in own]
        names.append(key if isinstance(key, str) else key.name)
        joined += [] if isinstance(key, str) else [key]
    if not names:
        return query
    rest = tuple(one for one in conditions if id(one) not in told)
    made = {key.name: _kind(dict(key.parts).values(), query) for key in joined}
    split = replace(
        parsed,
        partition_by=tuple(dict.fromkeys((*parsed.partition_by, *names))),
        condition=p.And(rest) if len(rest) > 1 else rest[0] if rest else None,
        joined=tuple(joined),
        implied=tuple(name for name in names if name not in parsed.partition_by),
        partition_spans=(),
    )
    # Groups are those of the keys that the query names.
    return replace(
        bind_sase(split, replace(query.schema, attributes={**query.schema.attributes, **made})), asked=query.asked
    )


def _may_be_split(query: BoundSase) -> bool:
    """Whether the matches of one key depend on its events only, and the row of each on nothing else."""
    parsed = query.parsed
    counts = parsed.window is not None and parsed.window.events is not None
    chooses = parsed.non_overlap or parsed.limit is not None or parsed.keep is not None
    if parsed.condition is None or query.condition is None or counts or chooses or len(parsed.positive) < 2:
        return False
    if not parsed.plain or parsed.selection not in (Selection.ANY, Selection.NEXT):
        return False
    # Where the events of other keys are not looked at, what fails on one of them is asked of more events, or of fewer.
    return not may_overflow(query.condition, query.compared) and not p.calls(query.condition)


def _tie(condition: p.Predicate, query: SaseQuery) -> _Tie | None:
    """An equality of two events of a match, or of a negated event and one of a match."""
    if not (isinstance(condition, p.Comparison) and condition.op == "="):
        return None
    found = []
    for side in (condition.left, condition.right):
        one = query.references.get(side.name) if isinstance(side, p.Attribute) else None
        if not isinstance(one, Element):
            return None
        found.append(one)
    order = {one.variable: (one.negated, at) for at, one in enumerate(query.components)}
    ranks = {Index.ONLY: 0, Index.FIRST: 0, Index.BEFORE: 1, Index.EACH: 2, Index.LAST: 3}
    other, own = sorted(found, key=lambda one: (order[one.variable], ranks[one.index]))
    inside = own.variable == other.variable
    if own.index in (Index.BEFORE, Index.LAST) or (inside and own.index is other.index):
        return None
    if order[other.variable][0] or (other.index is Index.BEFORE and not inside):
        return None  # a mistake, which the automaton tells
    return _Tie(condition, own, other)


def _candidates(ties: Sequence[_Tie]) -> Iterator[Mapping[str, str]]:
    """The attributes that equalities relate, one of each variable."""
    groups: list[set[tuple[str, str]]] = []
    for tie in ties:
        pair = {(one.variable, one.attribute) for one in (tie.own, tie.other)}
        met = [group for group in groups if group & pair]
        groups = [group for group in groups if not group & pair] + [pair.union(*met)]
    for group in groups:
        found = dict(group)
        if len(found) == len(group):
            yield found


def _key(attributes: Mapping[str, str], query: BoundSase) -> str | JoinedKey | None:
    """The key by an attribute of each variable; ``None``: some event may have two, or they compare otherwise than keys do."""
    parts: dict[str, str] = {}
    for component in query.parsed.components:
        own = attributes.get(component.variable)
        if own is None or any(parts.setdefault(kind, own) != own for kind in component.types):
            return None
    names = set(parts.values())
    if _kind(names, query) is None:
        return None
    if len(names) == 1:
        return names.pop()
    key = JoinedKey(tuple(parts.items()))
    return None if key.name in query.schema.attributes else key


def _kind(names: Iterable[str], query: BoundSase) -> pa.DataType | None:
    """The type of a key that is equal where its attributes are; ``None``: they are compared otherwise, as floats are."""
    types = pa.types
    kinds = [query.schema.attributes[name] for name in names]
    plain = {kind.value_type if types.is_dictionary(kind) else kind for kind in kinds}
    found = unified(kinds)
    if found is None or types.is_floating(found):
        return None
    if all(map(types.is_integer, plain)):
        same = types.is_integer(found) and (pa.uint64() not in plain or found == pa.uint64())
    elif all(types.is_string(kind) or types.is_large_string(kind) for kind in plain):
        same = True
    else:
        (*others, kind) = plain
        ordered = types.is_date(kind) or types.is_timestamp(kind) or types.is_decimal(kind)
        same = not others and (types.is_boolean(kind) or ordered)
    return found if same else None


def _are_tied(query: SaseQuery, ties: Sequence[_Tie]) -> bool:
    """Whether the equalities make the key the same in all events of a match, and in those that must not come."""
    negated = {one.variable for one in query.components if one.negated}  # each in an equality of its own
    positive = [tie for tie in ties if tie.own.variable not in negated]
    asked = {(tie.own.variable, tie.further) for tie in positive}
    steps = [(one.variable, False) for one in query.positive[1:]] + [
        (one.variable, True) for one in query.positive if one.kleene
    ]
    if asked.issuperset(steps):
        return True
    return query.selection is Selection.ANY and _all_alike(query.positive, positive)


def _all_alike(components: Sequence[Component], ties: Sequence[_Tie]) -> bool:
    """Whether in each complete match all events have the key of the first one, in whatever order equalities are asked."""
    chained = {tie.own.variable for tie in ties if tie.further and tie.inside}  # each with the events before it
    alone = {one.variable for one in components if not one.kleene}

    def is_one(end: Element) -> bool:
        return end.index is not Index.LAST or end.variable in chained | alone

    known = [tie for tie in ties if not tie.inside and is_one(tie.other)]
    further = chained | {tie.own.variable for tie in known if tie.further}
    further |= {tie.other.variable for tie in known if tie.other.index is Index.EACH and not tie.further}
    reached = {components[0].variable}
    while True:  # by what is asked of first events, which are in every match
        pairs = [{tie.own.variable, tie.other.variable} for tie in known if not tie.further]
        more = {name for pair in pairs if pair & reached for name in pair} - reached
        if not more:
            break
        reached |= more
    return all(one.variable in reached and (not one.kleene or one.variable in further) for one in components)
