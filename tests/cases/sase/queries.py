"""SASE+ queries for tests: a short way to write one as a value, its text, and random cases from a seed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from stretto.errors import QueryError, Span
from stretto.events import Schema
from stretto.languages import ceql
from stretto.query import predicate as p
from stretto.query.algebra import Filter
from stretto.query.passes.bind_sase import BoundSase, bind_sase
from stretto.query.passes.cnf import conjuncts
from stretto.query.query import Window
from stretto.query.sase import (
    DISTINCT,
    LIST,
    Aggregate,
    Component,
    Element,
    Index,
    Length,
    Part,
    Range,
    Reference,
    ReturnItem,
    SaseQuery,
    Selection,
)
from tests.cases.choices import Choices, Seeded
from tests.reference.sase import SaseMatch, evaluate_sase

__all__ = [
    "SaseCase",
    "case",
    "component",
    "condition",
    "events_for",
    "operand",
    "reference",
    "relation",
    "sase",
    "text_of",
]

# ---- Queries in short

_REFERENCE = re.compile(
    r"\b(?:count|sum|avg|min|max)\((?:DISTINCT )?\w+\[(?:\.\.i-1|\.\.i|)\](?:\.\w+)?\)"  # avg(a[..i-1].v), count(a[])
    r"|\b[a-z]\w*(?:\[(?:1|i|i-1|\w+\.LEN)?\])?\.[A-Za-z]\w*"  # a[1].v, a[i].v, a[i-1].v, a[a.LEN].v, b.v, a.LEN
)


def reference(name: str) -> Reference:
    """What a name in a condition refers to.

    >>> reference("avg(a[..i-1].price)")
    Aggregate(function='avg', variable='a', range=<Range.BEFORE: '[..i-1]'>, attribute='price')
    """
    if "(" in name:
        function, inner = name[:-1].split("(")
        function = DISTINCT if inner.startswith("DISTINCT ") else function
        inner = inner.removeprefix("DISTINCT ")
        variable, rest = inner.split("[")
        over, attribute = rest.split("]")
        return Aggregate(function, variable, Range(f"[{over}]"), attribute.removeprefix(".") or None)
    variable, attribute = name.rsplit(".", 1)
    if attribute == "LEN":
        return Length(variable)
    variable, several, index = variable.partition("[")
    if several and index == "]":
        return Aggregate(LIST, variable, Range.ALL, attribute)
    return Element(variable, Index.LAST if "LEN" in index else Index(index and f"[{index}"), attribute)


def component(text: str) -> Component:
    """``A a``, ``(A|B)+ a[]`` or ``~(A n)`` as a value.

    >>> component("(A|B)+ a[]")
    Component(types=('A', 'B'), variable='a', kleene=True, negated=False)
    """
    negated = text.startswith("~")
    types, variable = (text[2:-1] if negated else text).split()
    kleene = types.endswith("+")
    names = tuple(types.removesuffix("+").strip("()").split("|"))
    return Component(names, variable.removesuffix("[]"), kleene, negated)


def condition(text: str) -> p.Predicate:
    """A condition as a value, read as CEQL reads one with the references as attributes.

    >>> print(condition("b.v < 2 * a[1].v and b.name = 'x.y'"))
    `b.v` < (2 * `a[1].v`) AND `b.name` = 'x.y'
    """
    parts = re.split(r"('(?:[^']|'')*')", text)
    parts[::2] = [_REFERENCE.sub(lambda found: f"`{found[0]}`", part) for part in parts[::2]]
    pattern = ceql.parse(f"SELECT * FROM S WHERE A FILTER A[{''.join(parts)}]").pattern
    assert isinstance(pattern, Filter)
    found: p.Predicate = _placeless(pattern.predicate)
    return found


def operand(text: str) -> p.Operand:
    """A value, read as one side of a condition."""
    found = condition(f"{text} = other")
    assert isinstance(found, p.Comparison)
    return found.left


def _placeless(node: Any) -> Any:
    """An expression without its places, which are those of another text."""
    if isinstance(node, Span):
        return None
    if isinstance(node, tuple):
        return tuple(_placeless(one) for one in node)
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return node
    return replace(node, **{one.name: _placeless(getattr(node, one.name)) for one in dataclasses.fields(node)})


def sase(
    components: Iterable[str],
    where: str | p.Predicate | None = None,
    selection: Selection = Selection.NEXT,
    *,
    returns: Sequence[tuple[str, str]] | None = None,
    **more: Any,
) -> SaseQuery:
    """A query as a value, with its text; ``returns`` pairs names and values, ``more`` are fields of :class:`SaseQuery`.

    >>> print(sase(["A+ a[]", "~(C n)", "B b"], "a[i].v > a[i-1].v and b.v < 3", partition_by=("k",)).text)
    PATTERN SEQ(A+ a[], ~(C n), B b)
    WHERE skip_till_next_match { [k] and a[i].v > a[i-1].v and b.v < 3 }
    """
    holds = condition(where) if isinstance(where, str) else where
    items = None if returns is None else tuple(ReturnItem(name, operand(text)) for name, text in returns)
    trees: list[p.Expression] = [] if holds is None else [holds]
    names = [name for tree in [*trees, *(item.value for item in items or ())] for name in p.attributes(tree)]
    query = SaseQuery(
        text="",
        components=tuple(map(component, components)),
        selection=selection,
        references={name: reference(name) for name in names},
        condition=holds,
        returns=items,
        **more,
    )
    return replace(query, text=text_of(query))


# ---- Text


def text_of(query: SaseQuery) -> str:
    """A query as SASE+ text; read again, it is the same query."""
    if not query.plain:
        return query.text
    lines = [f"PATTERN SEQ({', '.join(map(str, query.components))})"]
    parts = [f"[{name}]" for name in query.partition_by]
    if query.condition is not None:
        alone = not parts
        parts.append(_written(query.condition, query, "or" if alone else "and"))
    lines.append(f"WHERE {query.selection} {{ {' and '.join(parts)} }}" if parts else f"WHERE {query.selection} {{ }}")
    if query.window is not None:
        lines.append(f"WITHIN {_window(query.window)}")
    if query.returns is not None:
        items = (f"{_written(item.value, query)} AS {item.name}" for item in query.returns)
        lines.append(f"RETURN {', '.join(items)}")
    if query.non_overlap:
        lines.append("OUTPUT non_overlap")
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit}")
    return "\n".join(lines)


def _window(window: Window) -> str:
    where = "" if window.attribute is None else f" [{window.attribute}]"
    if window.events is not None:
        return f"{window.events} EVENTS"
    return f"{window.seconds} seconds{where}" if window.seconds is not None else f"{window.number}{where}"


def _written(node: p.Expression, query: SaseQuery, place: str = "") -> str:  # noqa: PLR0911 - one case after the other
    """An expression; ``place`` is ``or`` where an OR can stand bare, ``and`` where an AND can."""

    def below(one: p.Expression, place: str = "") -> str:
        return _written(one, query, place)

    match node:
        case p.Attribute(name):
            return str(query.references[name])
        case p.And(parts):
            text = " and ".join(map(below, parts))
            return text if place in ("and", "or") else f"({text})"
        case p.Or(parts):
            text = " or ".join(below(part, "and") for part in parts)
            return text if place == "or" else f"({text})"
        case p.Not(part):
            return f"not ({below(part, 'or')})"
        case p.Comparison(op, left, right):
            return f"{below(left)} {op} {below(right)}"
        case p.Arithmetic(op, left, right):
            return f"({below(left)} {op} {below(right)})"
        case p.Negative(inner):
            return f"(-{below(inner)})"
        case p.In(inner, values):
            return f"{below(inner)} IN ({', '.join(map(str, values))})"
        case p.Between(inner, low, high):
            return f"{below(inner)} BETWEEN {below(low)} AND {below(high)}"
        case p.Rlike(inner, pattern):
            return f"{below(inner)} RLIKE {p.Constant(pattern)}"
        case p.Case(conditions, values):
            arms = zip(map(below, conditions), map(below, values), strict=False)
            return f"CASE {' '.join(f'WHEN {one} THEN {value}' for one, value in arms)} ELSE {below(values[-1])} END"
        case p.Like(inner, pattern):
            return f"{below(inner)} LIKE {p.Constant(pattern)}"
        case p.IsNull(inner):
            return f"{below(inner)} IS NULL"
        case _:
            return str(node)


# ---- Random cases


@dataclass(frozen=True)
class SaseCase:
    """A query, the schema it is bound to, and events in stream order."""

    query: SaseQuery
    schema: Schema
    events: pa.Table

    @property
    def bound(self) -> BoundSase:
        return bind_sase(self.query, self.schema)

    def matches(self) -> list[SaseMatch]:
        """The reference evaluator's answer."""
        return evaluate_sase(self.bound, self.events)

    def __repr__(self) -> str:
        rows = "\n".join(f"  {i}: {row}" for i, row in enumerate(self.events.to_pylist()))
        return f"{self.query.text}\n  time={self.schema.time} type={self.schema.type}\n{rows}"


TYPES = ("A", "B", "C")


def case(seed: int) -> SaseCase:
    """A case from a seed.

    >>> print(case(7).query.text)  # doctest: +ELLIPSIS
    PATTERN SEQ(...
    """
    choose = Seeded(seed)
    while True:
        one = _case(choose)
        try:
            bound = one.bound
        except QueryError:
            continue  # a comparison of different kinds: drawn again
        if bound.condition is None or all(_means_one(bound, part) for part in conjuncts(bound.condition)):
            return one


def _case(choose: Choices) -> SaseCase:
    positive = _positive(choose)
    selection = choose.one_of([Selection.NEXT, Selection.NEXT, Selection.ANY, Selection.PARTITION, Selection.STRICT])
    window = _window_of(choose)
    timed = window is not None and window.events is None
    non_overlap = choose.chance(20)
    # A negation at the end needs time to pass, which non-overlap output cannot wait for.
    components = _with_negations(choose, positive, at_start=timed, at_end=timed and not non_overlap)
    where = _condition(choose, components)
    returns = _returns(choose, positive) if choose.chance(25) else None
    query = sase(
        map(str, components),
        where,
        selection,
        returns=returns,
        partition_by=choose.one_of([(), (), ("k",), ("k",), ("name",), ("k", "name"), ("w",), ("flag",)]),
        window=window,
        non_overlap=non_overlap,
        limit=choose.integer(1, 3) if choose.chance(15) and not components[-1].negated else None,
    )
    events = events_for(choose, query)
    time = choose.one_of(
        ["t", "ts"] if window is not None and window.number and not window.attribute else [None, "t", "ts"]
    )
    return SaseCase(query, Schema.of(events, time=time), events)


def _positive(choose: Choices) -> list[Component]:
    """One to four components that hold events."""
    found = []
    for variable in "abcd"[: choose.one_of([1, 2, 2, 2, 2, 3, 3, 3, 4])]:
        types: tuple[str, ...] = (choose.one_of(TYPES),)
        if choose.chance(15):
            types = tuple(sorted({*types, choose.one_of(TYPES), "D"}))
        found.append(Component(types, variable, kleene=choose.chance(45)))
    return found


def _with_negations(choose: Choices, positive: Sequence[Component], *, at_start: bool, at_end: bool) -> list[Component]:
    """The components with up to two negated ones among them."""
    found = list(positive)
    for variable in "mn"[: choose.one_of([0, 0, 0, 1, 1, 2])]:
        places = range(0 if at_start else 1, len(found) + (1 if at_end else 0))
        if places:
            types = (choose.one_of(["A", "B", "C", "C", "D"]),)
            found.insert(choose.one_of(places), Component(types, variable, negated=True))
    return found


def _window_of(choose: Choices) -> Window | None:
    kind = choose.integer(0, 9)
    if kind <= 2:
        return None
    if kind <= 4:
        return Window(events=choose.integer(1, 8))
    if kind <= 6:
        return Window(number=choose.integer(3, 9))
    if kind <= 8:
        return Window(number=choose.integer(2, 9), attribute="t")
    return Window(seconds=Decimal(choose.integer(2, 5)), attribute="ts")


#: K and L stand for variables of Kleene plus components, K before L; S and T for others, S before T; U and V for constants.
_KLEENE = (
    "K[1].v <= V", "K[1].name = 'a'", "K[1].v % 2 = U", "K[i].v >= U", "K[i].v != U", "K[i].v >= K[i-1].v",
    "K[i].v > K[i-1].v", "K[i].name = K[i-1].name", "K[i].v >= avg(K[..i-1].v)", "K[i].v <= max(K[..i-1].v)",
    "K[i].v > min(K[..i-1].v)", "K[i].v <= sum(K[..i-1].v)", "sum(K[..i].v) <= 5", "avg(K[..i].v) < 2.5",
    "count(K[..i]) <= 3", "count(K[..i-1].v) <= V", "min(K[..i].v) >= U", "K.LEN <= V", "K.LEN % 2 = 1", "K.LEN > U",
    "K[K.LEN].v >= K[1].v", "K[K.LEN].v != U", "avg(K[].v) > 0.5", "min(K[].v) < V", "count(K[].v) > U", "count(K[]) < V",
    "sum(K[].v) <= 6", "max(K[].v) >= avg(K[].v)", "K[i].v / K[i-1].v >= 0.5", "K[i].t - K[i-1].t <= 2",
    "K[i].v - K[1].v < V", "K[i].flag = TRUE", "K[i].v IS NOT NULL", "K[i].v IN (0, U, V)", "K[i].v BETWEEN K[1].v AND V",
    "K[i].name LIKE '%a%'", "K[i].v != K.LEN", "K[i].v <= avg(K[].v)", "K[i].v <= K[K.LEN].v", "K[i-1].v <= V",
    "K[i].ts > K[i-1].ts", "K[i].d >= K[1].d", "K[i].v % K[i-1].v = 0", "max(K[].ts) > K[1].ts", "-K[i].v < U",
    "K[i].v + K[1].v * 2 >= K[i-1].v", "count(K[..i].v) >= U", "count(K[].v) = K.LEN", "count(K[..i].v) = count(K[..i])",
    "count(K[..i-1].v) > U", "K[i].v <= avg(K[..i-1].v) + 1", "K[i].v < sum(K[..i-1].v) + K[i-1].v", "sum(K[].d) > 0.3",
    "sum(K[..i].d) <= 0.3", "avg(K[].d) * 3 > 0.6", "max(K[].w) >= 1", "min(K[..i-1].w) <= 1", "avg(K[..i].w) != 1",
    "K[i].v = K[1].v", "K[i].name != K[1].name", "K[i].name >= min(K[..i-1].name)", "max(K[..i].name) < 'é'",
    "min(K[].name) = 'a'", "max(K[].name) != K[1].name", "K[i].name RLIKE '^[aé]'",
    "CASE WHEN K[i].v > U THEN K[i].name ELSE K[1].name END = 'a'",
)  # fmt: skip
_SINGLE = (
    "S.v <= V", "S.v >= U", "S.v = U", "S.name = 'a'", "S.w > 0.5", "S.d >= 1", "S.flag = TRUE", "S.flag != FALSE",
    "S.v % 2 = 0", "S.v IS NULL", "-S.v <= U", "S.type = 'A'", "S.name LIKE '_é%'", "S.v / S.w >= 0.5", "S.w = S.w",
    "S.name IN ('a', 'ß')", "S.v + S.d < 4", "S.ts > '1970-01-01 00:00:01'", "TRUE", "S.v BETWEEN U AND V", "S.name RLIKE 'a|ß'",
    "CASE WHEN S.v > U THEN S.w ELSE S.v END > 0.5",
)  # fmt: skip
_PAIR = (
    "T.v >= S.v", "T.v > S.v", "T.name = S.name", "T.name != S.name", "S.v + T.v <= 4", "T.d < S.d + 1", "S.w = T.v",
    "T.t - S.t <= 3", "T.flag = S.flag", "T.v % 2 = S.v % 2", "S.v IS NULL or T.v >= S.v", "T.v / S.v > 0.5",
    "not T.v < S.v", "T.w < 2 * S.w", "S.name < T.name",
    "CASE WHEN S.v > U THEN T.v ELSE S.v END >= V",
)  # fmt: skip
_KLEENE_SINGLE = (
    "S.v >= K[i].v", "S.v <= K[i].v", "S.v != K[i].v", "K[i].name = S.name", "S.v > K[1].v", "S.v <= K[1].v",
    "S.v < K[K.LEN].v", "S.v <= K.LEN", "S.v = K.LEN", "S.w >= avg(K[].v)", "S.v <= max(K[].v)", "count(K[]) > S.v",
    "sum(K[].v) >= S.v", "S.name = K[1].name", "S.d < K[K.LEN].d", "K[i].v + S.v <= V", "K[i].flag = S.flag",
    "S.v > K[i].v or S.name = 'a'", "S.t - K[i].t <= 4", "S.v < 80 * K[K.LEN].v / 100", "not S.v = K[i].v",
    "K[i].v < 2 or K[1].v = S.v", "S.name >= max(K[].name)", "min(K[].name) = S.name",
    "CASE S.v WHEN U THEN K[1].v ELSE K[K.LEN].v END < V",
)  # fmt: skip
_KLEENES = (
    "L[i].v >= K[1].v", "L[1].v >= K[K.LEN].v", "L[i].v <= sum(K[].v)", "L.LEN >= K.LEN", "L[1].v >= K[i].v",
    "L[i].v <= L[i-1].v + K[1].v", "L[1].name = K[i].name", "avg(L[].v) > min(K[].v)", "sum(L[..i].v) <= sum(K[].v)",
    "L[L.LEN].v != K[i].v", "count(L[..i-1]) < K.LEN",
)  # fmt: skip


def _condition(choose: Choices, components: Sequence[Component]) -> str | None:
    """A condition over the variables of a query; one part relates at most one negated event."""
    parts: list[str] = []
    for _ in range(choose.one_of([0, 1, 1, 2, 2, 3])):
        parts.append(_part(choose, components))
    for one in components:
        if one.negated and choose.chance(60):
            near = [other for other in components if not other.negated or other is one]
            parts.append(_part(choose, near, must=one.variable))
    return " and ".join(f"({part})" if " or " in part else part for part in parts) or None


def _part(choose: Choices, components: Sequence[Component], must: str | None = None) -> str:
    """One part of a condition: a relation, or a few of them under OR and NOT."""
    allowed = [one for one in components if not one.negated or one.variable == must]
    kind = choose.integer(0, 19)
    first = relation(choose, allowed, must)
    if kind <= 12:
        return first
    if kind <= 14:
        return f"not ({first})"
    second = relation(choose, allowed, None)
    if kind <= 17:
        return f"{first} or {second}"
    if kind == 18:
        return f"not ({first} or {second})"
    return f"{first} or ({second} and {relation(choose, allowed, None)})"


def relation(choose: Choices, components: Sequence[Component], must: str | None) -> str:
    """A relation from the lists above, with names for its letters."""
    groups = {_KLEENE: "K", _SINGLE: "S", _PAIR: "ST", _KLEENE_SINGLE: "KS", _KLEENES: "KL"}
    while True:
        templates = choose.one_of([_KLEENE, _KLEENE, *groups, _KLEENE_SINGLE])
        names = _names(choose, components, groups[templates])
        if names is None or (must is not None and must not in names.values()):
            continue
        text = choose.one_of(templates)
        if "%" not in text and "IN" not in text and choose.chance(30):
            text = text.replace(".v", choose.one_of([".w", ".d"]))
        return _filled(text, names | {"U": str(choose.integer(0, 1)), "V": str(choose.integer(2, 4))})


def _filled(template: str, names: Mapping[str, str]) -> str:
    """A template with its letters replaced; those inside words are none."""
    return re.sub(r"\b[KLSTUV]\b", lambda found: names[found[0]], template)


def _names(choose: Choices, components: Sequence[Component], letters: str) -> dict[str, str] | None:
    """A variable for each letter, or ``None`` where there are not enough."""
    pools = {
        "K": [one.variable for one in components if one.kleene],
        "S": [one.variable for one in components if not one.kleene],
    }
    pools |= {"L": pools["K"], "T": pools["S"]}
    same = len(set(letters) - set("KL")) in (0, 2)  # both letters are of one pool
    needed = len(letters) if same else 1
    if any(len(pools[letter]) < needed for letter in letters):
        return None
    while True:
        chosen = [choose.one_of(pools[letter]) for letter in letters]
        if len(set(chosen)) == len(chosen) and (not same or chosen == sorted(chosen, key=pools[letters[0]].index)):
            return dict(zip(letters, chosen, strict=True))


def _means_one(query: BoundSase, part: p.Predicate) -> bool:
    """Whether the language takes a conjunct: of what is tested later, only one ``a[i]`` may mean every event."""
    references = [query.parsed.references[name] for name in p.attributes(part)]
    order = {one.variable: i for i, one in enumerate(query.parsed.positive)}

    def stage(one: Reference) -> int:
        if isinstance(one, Length) or (isinstance(one, Aggregate) and one.range is Range.ALL):
            return 2
        if isinstance(one, Element):
            return {Index.EACH: 1, Index.BEFORE: 1, Index.LAST: 2}.get(one.index, 0)
        return 1

    last = max(((order.get(one.variable, len(order)), stage(one)) for one in references), default=(0, 0))
    taken = query.parsed.positive[last[0]].variable if last[1] == 1 else None
    every = [one for one in references if stage(one) == 1 and one.variable != taken]
    return len({one.variable for one in every}) <= 1 and all(
        isinstance(one, Element) and one.index is Index.EACH for one in every
    )


_RETURNS = {
    True: ("K[1].v", "K[K.LEN].v", "K.LEN", "avg(K[].v)", "sum(K[].d)", "min(K[].d)", "max(K[].w)", "count(K[].v)",
           "count(K[])", "sum(K[].v) / K.LEN", "K[K.LEN].v - K[1].v", "K[1].name", "max(K[].ts)", "-avg(K[].w)",
           "K[].name", "K[].d", "count(DISTINCT K[].v)", "count(DISTINCT K[].name)", "min(K[].name)", "max(K[].name)",
           "CASE WHEN K.LEN > 1 THEN K[1].v ELSE K[K.LEN].w END"),
    False: ("S.v", "S.name", "S.w * 2", "S.v + S.d", "S.d + 1", "S.flag", "S.ts", "S.v % 2"),
}  # fmt: skip


def _returns(choose: Choices, positive: Sequence[Component]) -> list[tuple[str, str]]:
    items = []
    for number in range(choose.integer(1, 3)):
        one = choose.one_of(positive)
        items.append((f"r{number}", _filled(choose.one_of(_RETURNS[one.kleene]), dict.fromkeys("KS", one.variable))))
    return items


def events_for(choose: Choices, query: SaseQuery) -> pa.Table:
    """Events among which matches are likely: types mostly follow the pattern."""
    kleene = sum(one.kleene for one in query.positive)
    most = {0: 14, 1: 12}.get(kleene, 9) if query.selection is Selection.ANY else 14
    follow = 90 if query.selection in (Selection.STRICT, Selection.PARTITION) else 65
    noise = [*TYPES, *(one for part in query.components for one in part.types), "D", None]
    easy = choose.chance(60)  # few NULLs and one partition: conditions hold more often
    # Tenths are what floats cannot hold: sums of decimals are sums of floats.
    amounts = [Decimal(one) for one in choose.one_of([("0.50", "1.00", "1.25", "2.00"), ("0.10", "0.20", "1.00")])]
    script: list[str] = []
    now = 0
    rows = []
    for _ in range(choose.integer(4, most)):
        now += choose.one_of([0, 0, 1, 1, 1, 2, 3])
        if not script:
            script = _script(choose, query.parts)
        kind = script.pop(0) if choose.chance(follow) else choose.one_of(noise)
        rows.append(
            {
                "type": kind,
                "t": now,
                "ts": now * 500,
                "k": choose.one_of([0, 0, 0, 0, 0, 0, 1] if easy else [0, 0, 0, 1, 1, None]),
                "name": choose.one_of(["a", "a", "a", "a", "bé"] if easy else ["a", "a", "a", "bé", "ß", None]),
                "v": choose.one_of([0, 1, 1, 2, 2, 3] if easy else [0, 1, 2, 3, None]),
                "w": choose.one_of([0.5, 1.0, 1.0, 1.0, 2.5] if easy else [0.0, 1.0, 1.0, 2.5, float("nan"), None]),
                "d": choose.one_of([*amounts, *[None] * (not easy)]),
                "flag": choose.one_of([True, True, False] if easy else [True, True, False, None]),
            }
        )
    kinds = {
        "type": choose.one_of([pa.string(), pa.dictionary(pa.int8(), pa.string())]),
        "t": choose.one_of([pa.int64(), pa.int64(), pa.int32(), pa.float64()]),
        "ts": pa.timestamp("ms"),
        "k": choose.one_of([pa.int64(), pa.int16()]),
        "name": choose.one_of([pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.large_string()]),
        "v": choose.one_of([pa.int64(), pa.int64(), pa.int32()]),
        "w": pa.float64(),
        "d": pa.decimal128(10, 2),
        "flag": pa.bool_(),
    }
    return pa.table({column: pa.array([row[column] for row in rows], kind) for column, kind in kinds.items()})


def _script(choose: Choices, parts: Sequence[Part]) -> list[str]:
    """The types of the events of a match."""
    found: list[str] = []
    for part in parts:
        if isinstance(part, Component) and part.negated:
            continue
        rounds = _repeats(choose, part) if isinstance(part, Component) else choose.one_of([1, 2, part.least or 1])
        for _ in range(rounds if part.least or choose.chance(60) else 0):
            if isinstance(part, Component):
                found.append(choose.one_of(part.types))
            else:
                found += _script(choose, [choose.one_of(part.parts)] if part.choice else part.parts)
        if isinstance(part, Component) and part.until is not None:
            found += part.until.types[:1]
    return found


def _repeats(choose: Choices, one: Component) -> int:
    return choose.one_of([1, 2, 2, 3]) if one.kleene else 1
