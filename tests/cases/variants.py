"""SASE+ with options, groups, strategies of single steps and UNTIL: random queries and streams, checked as those of ``sase``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stretto.automata.nfab import build
from stretto.errors import LimitError, QueryError
from stretto.events import Schema
from stretto.languages import sase
from stretto.query.sase import Component, Group, Part, SaseQuery, components_of
from tests.cases import keeping
from tests.cases.choices import Choices, Seeded
from tests.cases.sase.engines import check as _check
from tests.cases.sase.queries import SaseCase, events_for, relation

__all__ = ["MOST_VARIANTS", "case", "check", "parts_of", "ways"]

_STRATEGIES = (
    "skip_till_next_match",
    "skip_till_next_match",
    "skip_till_any_match",
    "partition_contiguity",
    "strict_contiguity",
)
_OFTEN = ((0, 1), (0, 1), (0, None), (1, None), (1, None), (2, 2), (1, 2), (2, 3), (0, 2), (2, None))
#: A case has no more.
MOST_VARIANTS = 5_000
_ENDS = ("u.v > 1", "u.v <= K[1].v", "u.v != K[K.LEN].v", "K.LEN >= 2", "u.name = K[i].name", "u.v > avg(K[].v)")
#: P and Q hold one event in each round, P before Q.
_ROUNDS = (
    "Q[i].v >= P[i].v",
    "P[i].v != Q[i-1].v",
    "P[i].v >= Q[i-1].v",
    "Q[i].name = P[i].name",
    "Q[i].v + P[i].v <= 4",
)
#: S stands for one event, K for those of a Kleene plus or of a group that repeats.
_FUNCTIONS = (
    "abs(K[i].v - K[i-1].v) <= 1", "coalesce(K[i].v, 9) > K[1].v", "upper(K[i].name) = 'A'", "round(avg(K[].v)) >= 1",
    "length(K[i].name) = 1", "abs(S.v - 2) < 2", "round(S.w) != 2", "lower(S.name) || S.type != 'aA'", "floor(S.w) <= S.v",
    "coalesce(S.w, S.v) < 2.5", "ceil(S.w) > 1", "S.ts + 1 second > '1970-01-01 00:00:02'", "K[i].ts - K[1].ts <= 1500 ms",
)  # fmt: skip
_RETURNS = (
    "K[].v", "K[].name", "count(DISTINCT K[].name)", "count(K[])", "K.LEN * 2", "max(K[].name)", "avg(K[].w)",
    "K[K.LEN].ts - K[1].ts", "CASE WHEN K.LEN > 1 THEN K[1].v ELSE 7 END", "S.v", "S.name || 'x'",
    "coalesce(S.v, 7)", "abs(S.v - 2)", "upper(S.name)",
    "CASE WHEN S.v > 1 THEN 'more' ELSE S.name END", "S.ts + 1 second", "round(S.w, 1)",
)  # fmt: skip


def case(seed: int) -> SaseCase:
    """A case from a seed."""
    choose = Seeded(seed)
    while True:
        try:
            found = _case(choose)
            if sum(ways(found.query.parts, found.events.num_rows)) > MOST_VARIANTS:
                continue  # the reference lists them
            build(found.bound)
        except (QueryError, LimitError):
            continue  # it says what has no one meaning: drawn again
        return found


def check(one: SaseCase, seed: int = 0) -> int:
    """Raise an AssertionError unless all engines agree with the definition; how many matches the case has."""
    if one.query.keep is not None:
        return keeping.check(keeping.Case(one.query.text, one.schema, one.events), seed)
    return _check(one, seed)


def _case(choose: Choices) -> SaseCase:
    names = list("abcde"[: choose.integer(2, 5)])
    parts = parts_of(choose, names)
    window = choose.one_of(["", "", f"\nWITHIN {choose.integer(1, 8)} EVENTS", f"\nWITHIN {choose.integer(3, 9)} [t]"])
    written = [str(part) for part in parts]
    if choose.chance(25) and (len(written) > 1 or "[t]" in window):
        at = choose.integer(0 if "[t]" in window else 1, len(written) - (0 if "[t]" in window else 1))
        written.insert(at, f"~({choose.one_of('ABCD')} n)")
    keys = choose.one_of(["", "", "[k]", "[name]", "[k] and [name]"])
    conditions = _conditions(choose, parts, written)
    asked = " and ".join(filter(None, [keys, *conditions]))
    text = f"PATTERN SEQ({', '.join(written)})\nWHERE {_strategies(choose, parts)} {{ {asked} }}"
    text += window
    if choose.chance(25):
        text += f"\nRETURN {', '.join(f'{_filled(choose, _RETURNS, parts)} AS r{at}' for at in range(choose.integer(1, 3)))}"
    if not conditions and choose.chance(10):
        text += "\nOUTPUT non_overlap"
    elif choose.chance(10):
        text += f"\nLIMIT {choose.integer(1, 3)}"
    elif choose.chance(10):
        keep = choose.one_of(["KEEP LONGEST", "KEEP SHORTEST"])
        text += f"\n{keep} AFTER MATCH SKIP {choose.one_of(['PAST LAST EVENT', 'TO NEXT EVENT', 'TO LAST a'])}"
    query: SaseQuery = sase.parse(text)
    events = events_for(choose, query).slice(0, 9)
    return SaseCase(query, Schema.of(events, time=choose.one_of(["t", "ts"]) if "[t]" not in window else "t"), events)


def parts_of(choose: Choices, names: list[str], depth: int = 0, *, ends: bool = True) -> list[Part]:
    """Parts that use up the names; ``ends``: with UNTIL, too."""
    found: list[Part] = []
    while names:
        if len(names) > 1 and depth < 2 and choose.chance(45):
            inside = [names.pop(0) for _ in range(choose.integer(1, len(names)))]
            least, most = choose.one_of([*_OFTEN, (1, 1)])
            parts = parts_of(choose, inside, depth + 1, ends=ends)
            found.append(Group(tuple(parts), least, most, choice=len(parts) > 1 and choose.chance(15)))
            continue
        variable = names.pop(0)
        types = tuple(sorted({choose.one_of("ABC") for _ in range(choose.one_of([1, 1, 1, 2]))}))
        kleene = choose.chance(35)
        least, most = (
            choose.one_of([*_OFTEN, (1, None), (1, None)]) if kleene else choose.one_of([(1, None), (0, None)])
        )
        until = None
        if ends and kleene and variable == "a" and choose.chance(40):
            until = Component((choose.one_of("ABCD"),), "u")
        found.append(Component(types, variable, kleene, least=least, most=most, until=until, only=choose.chance(50)))
    return found


def _strategies(choose: Choices, parts: Sequence[Part]) -> str:
    whole = choose.one_of(_STRATEGIES)
    said = [whole]
    for one in components_of(parts):
        for name in [one.variable, *[f"{one.variable}[]"] * one.kleene]:
            if choose.chance(12):
                said.append(f"{choose.one_of(_STRATEGIES)}({name})")
    return ", ".join(said)


def _conditions(choose: Choices, parts: Sequence[Part], written: Sequence[str]) -> list[str]:
    """Parts of a condition: variables that may come several times are written as a Kleene plus."""
    several = _several(parts)
    inner = {one.variable for one in components_of(parts)}
    shown = [Component(one.types, one.variable, one.kleene or one.variable in several) for one in components_of(parts)]
    found = []
    for _ in range(choose.one_of([0, 1, 1, 2, 2, 3])):
        kind = choose.integer(0, 9)
        if kind == 0 and len(several) > 1:
            p, q = sorted(choose.one_of(sorted(several)) for _ in range(2))
            text = choose.one_of(_ROUNDS).replace("P", p).replace("Q", q)
        elif kind == 1 and any("~" in one for one in written):
            text = choose.one_of(
                ["n.v > 1", f"n.v != {choose.one_of(sorted(inner - several))}.v" if inner - several else "n.v > 0"]
            )
        elif kind == 2:
            text = _filled(choose, _FUNCTIONS, parts)
        else:
            text = relation(choose, shown, None)
        found.append(f"({text} or {relation(choose, shown, None)})" if choose.chance(15) else f"({text})")
    if any("UNTIL" in one for one in written) and choose.chance(60):
        found.append(choose.one_of(_ENDS).replace("K", "a"))
    return found


def ways(parts: Sequence[Part], room: int) -> list[int]:
    """How many variants there are of so many components, each counted as often as it can be read."""
    found = [1] + [0] * room
    for part in parts:
        once = [0, 1] + [0] * room
        if isinstance(part, Group):
            every = [ways([one], room) for one in part.parts] if part.choice else [ways(part.parts, room)]
            once = [sum(column) for column in zip(*every, strict=True)]
        elif part.negated:
            once = [1] + [0] * room
        least, most = part.least, part.least + room if part.most is None else part.most
        if isinstance(part, Component):  # a Kleene plus is one component of a variant
            least, most = min(least, 1), 1
        so_far, own = [1] + [0] * room, [0] * (room + 1)
        for count in range(most + 1):
            if count >= least:
                own = [a + b for a, b in zip(own, so_far, strict=True)]
            so_far = _product(so_far, once, room)
        found = _product(found, own, room)
    return found


def _product(one: Sequence[int], other: Sequence[int], room: int) -> list[int]:
    return [sum(one[at] * other[size - at] for at in range(size + 1)) for size in range(room + 1)]


def _several(parts: Sequence[Part], again: bool = False) -> set[str]:
    """The variables in groups that repeat."""
    found = set()
    for part in parts:
        if isinstance(part, Group):
            found |= _several(part.parts, again or part.most != 1)
        elif again:
            found.add(part.variable)
    return found


def _filled(choose: Choices, templates: Sequence[str], parts: Sequence[Part]) -> str:
    """A template about one variable, which holds several events where it says K."""
    one = choose.one_of(list(components_of(parts)))
    letter = "K" if one.kleene or one.variable in _several(parts) else "S"
    return re.sub(
        r"\b[KS]\b", one.variable, choose.one_of([text for text in templates if re.search(rf"\b{letter}\b", text)])
    )
