"""Random cases of changing patterns, and what they must give: each version of a pattern on the events of its time alone."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa

import stretto
from stretto.matching.executors.row_pattern import read_clause
from stretto.query.passes.bind_totals import BoundTotals
from stretto.query.row_pattern import RowQuery
from stretto.query.totals import Extent
from tests.cases import ceql, rows
from tests.cases.ceql import Case
from tests.cases.choices import Seeded

__all__ = [
    "PatternCase",
    "adding",
    "alike",
    "case",
    "check",
    "check_ahead",
    "clauses",
    "crowd",
    "expected",
    "found",
    "keeping",
    "mixture",
    "one_by_one",
    "relating",
]

Row = dict[str, Any]
#: ``("change", [changes])``, ``("push", low, high)``, ``("advance", time)``, ``("snapshot",)`` or ``("finish",)``.
Action = tuple[Any, ...]


@dataclass(frozen=True)
class PatternCase:
    """Events, the options of a set of patterns, and what is done with it in which order."""

    events: pa.Table
    options: dict[str, Any]
    actions: list[Action]

    def __repr__(self) -> str:
        rows = [*map(str, self.actions), str(self.options), *map(str, self.events.to_pylist())]
        return "\n  ".join(["", *rows])


def case(seed: int) -> PatternCase:
    """A case from a seed."""
    choose = Seeded(seed)
    base = _case(choose, lambda one: one.events.num_rows > 0 or choose.chance(5))
    time = choose.one_of(["t", "ts"])
    by = choose.one_of([(), (), ("k",), ("name",), ("name", "k")])
    queries = [
        _case(
            choose, lambda one: (base.stream or not one.stream) and all(f"[{name}]" in one.query for name in by)
        ).query
        for _ in range(choose.integer(1, 4))
    ]
    options = {
        "time": time,
        "stream": base.stream,
        "by": by,
        "valuations": choose.chance(20),
        "positions": True,
        "output": choose.one_of(["events", "events", "positions"]),
        "capacity": choose.one_of([1, 1, 1 << 10]),
    }
    return PatternCase(base.events, options, _actions(choose, base.events, time, queries))


#: Queries that the tECS engine does not run, in three languages, and some that it does. ``{w}`` is a window, ``{n}`` a small number.
OTHERS = [
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {k}a.v < b.v }} {w}",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match {{ {k}a.v <= b[i].v }} {w}",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ {k}sum(a[].v) > b.v }} {w}",
    "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_any_match {{ {k}n.v >= a.v }} {w}",
    "PATTERN SEQ(~(C n), A a, B b) WHERE skip_till_next_match {{ {k}a.v >= {n} }} WITHIN {n}",
    "PATTERN SEQ(A a, B b, ~(C n)) WHERE skip_till_any_match {{ {k}b.v >= 0 }} WITHIN {n}",
    "PATTERN SEQ(A a, ~(C n)) WHERE skip_till_next_match {{ {k}n.v <= a.v }} WITHIN {n}",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity {{ a.v <= b.v }}",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity {{ {k}a.v <= b.v }}",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match {{ a.name = b.name AND b.name = c.name }} {w}",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {k}a.v < b.v }} WITHIN 4 EVENTS",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {k}a.v <= b.v }} LIMIT 1",
    "SELECT * FROM S WHERE A AS x ; B AS y AFTER {n} [t]{p} WITHIN 9 [t]",
    "SELECT * FROM S WHERE A+ GAP 2 [t]{p} WITHIN 5 [t]",
    "SELECT * FROM S WHERE (A ; B) WITHIN 2 [t] ; C{p} WITHIN 6 [t]",
    "SELECT * FROM S WHERE A ; NOT B{p} WITHIN {n} [t]",
    "SELECT * FROM S WHERE NOT C ; A AS x ; B AS y ; NOT C{p} WITHIN {n} [t]",
    "SELECT * FROM S WHERE A : B ; NOT C{p} WITHIN {n} [t]",
    "sequence{b} [A where v >= {n}] [B where true]",
    "sequence{b} with maxspan={n}s [A where true] [B where v > 0] [C where true]",
    "sequence{b} with maxspan={n}s [A where true] ![C where true]",
    "sequence{b} with maxspan={n}s ![C where true] [A where true] [B where true]",
    "sequence{b} with maxspan={n}s [A where true] ![C where v > 0] [B where true] until [C where v == 0]",
    "sequence [A where v != null] by v [B where true] by k",
    "sequence{b} [any where v == 0] [any where v > 0] with runs=2",
    "sample by name [A where true] [B where true]",
    "join [A where v != null] by v [B where true] by k",
    "join{b} [A where v >= {n}] [B where true] [any where v == 0] until [C where v == 1]",
    "A where v >= {n}",
]

#: Queries of which some matches stay; ``{q}`` says which.
KEPT = [
    "SELECT * FROM S WHERE A+ AS x GAP {n} [t]{p}{q}",
    "SELECT * FROM S WHERE A+ AS x GAP {n} [t]{p} WITHIN {m} [t]{q}",
    "SELECT * FROM S WHERE A AS x ; B AS y AFTER 1 [t] WITHIN {m} [t]{p}{q}",
    "SELECT * FROM S WHERE A AS x ; B+ AS y{p}{w}{q}",
    "SELECT * FROM S WHERE A+ AS x ; B AS y{p}{w}{q}",
    "SELECT NEXT * FROM S WHERE A AS x ; (B AS y OR A AS y) ; B AS y{p}{w}{q}",
    "SELECT * FROM S WHERE A AS x : B AS y{p}{w}{q}",
    "SELECT * FROM S WHERE A AS x ; NOT C ; B AS y{p}{w}{q}",
    "SELECT * FROM S WHERE A AS x ; B+ AS y GAP 2 EVENTS{p}{w}{q}",
    "SELECT LAST * FROM S WHERE A AS x ; B+ AS y{p}{w}{q}",
    "SELECT STRICT * FROM S WHERE A AS x ; B AS y{p}{w}{q}",
    "SELECT x, y FROM S WHERE A AS x ; C ; B AS y{p}{w}{q}",
    "SELECT * FROM S WHERE (A AS x ; B AS y) WITHIN 2 [t] ; C{p} WITHIN {m} [t]{q}",
    "SELECT * FROM S WHERE A AS x ; B AS y ; NOT C{p} WITHIN {n} [t]{q}",
    "SELECT * FROM S WHERE NOT C ; A AS x ; B+ AS y{p} WITHIN {n} [t]{q}",
    "PATTERN SEQ(A x, B y) WHERE skip_till_next_match {{ {k}x.v < y.v }}{w}{q}",
    "PATTERN SEQ(A x, B+ y[]) WHERE skip_till_any_match {{ {k}x.v <= y[i].v }}{w}{q}",
    "PATTERN SEQ(A+ x[], B y) WHERE skip_till_next_match {{ {k}sum(x[].v) > y.v }}{w}{q}",
    "PATTERN SEQ(A x, B y) WHERE strict_contiguity {{ x.v <= y.v }}{w}{q}",
    "PATTERN SEQ(A+ x[], B y) WHERE partition_contiguity {{ [k] AND x[i].v >= 0 }}{w}{q}",
    "PATTERN SEQ(A x, A y) WHERE skip_till_any_match {{ {k}x.v >= 0 }}{w}{q}",
    "PATTERN SEQ(A x, B y, ~(C n)) WHERE skip_till_any_match {{ {k}y.v >= 0 }} WITHIN {n}{q}",
]  # fmt: skip

#: Queries that count and add up over all of their matches.
ADDING = [
    "SELECT COUNT(*) AS n, SUM(y[v]) AS s FROM S WHERE A AS x ; B+ AS y{p}{g}",
    "SELECT COUNT(*) AS n, MAX(y[w]) AS m FROM S WHERE A AS x ; B AS y{p} WITHIN {n} [t]{g}",
    "SELECT COUNT(*) AS n, MIN(x[t]) AS m FROM S WHERE A AS x : B AS y{p}{g}",
    "SELECT COUNT(*) AS n FROM S WHERE A AS x ; NOT C ; B AS y{p} WITHIN 3 EVENTS{g}",
    "SELECT COUNT(*) AS n, MIN(y[v]) AS m FROM S WHERE A+ AS x ; B AS y{p} WITHIN {m} [t]{g} EVERY {n}",
    "SELECT COUNT(*) AS n, AVG(y[v]) AS m FROM S WHERE A AS x ; B AS y{p} WITHIN {n} [t]{g} EVERY {m}",
    "SELECT COUNT(*) AS n, SUM(y[v]) AS s FROM S WHERE A+ AS x ; B AS y{p} WITHIN {m} [t]{g} EVERY EVENT",
    "PATTERN SEQ(A x, B+ y[]) WHERE skip_till_any_match {{ {k}x.v > 0 }} WITHIN {m} RETURN TOTAL count(*) AS n, sum(y[].v) AS s{g}",
    "PATTERN SEQ(A x, B+ y[]) WHERE skip_till_any_match {{ {k}x.v > 0 }} WITHIN {m} RETURN TOTAL count(*) AS n EVERY {n}",
]


#: Patterns that count and add up, of which many differ in what they ask and add up only.
ALIKE = [
    "{how}{i} FROM S WHERE A AS x ; B+ AS y FILTER x[{0}] AND y[{1}]",
    "{i} FROM S WHERE A AS x ; B+ AS y ; C AS z FILTER x[{0}] AND y[{1}]",
    "{how}{i} FROM S WHERE A+ AS x ; B AS y FILTER x[{0}] AND y[{1}]",
    "{i} FROM S WHERE A AS x ; NOT C ; B AS y FILTER x[{0}] AND y[{1}]",
    "{i} FROM S WHERE (A AS x ; B AS y) OR (A AS x ; C AS z) FILTER x[{0}] AND y[{1}]",
    "{i} FROM S WHERE A AS x ; A+ AS z ; B AS y FILTER x[{0}] AND y[{1}]",
]
ITEMS = [
    "COUNT(*) AS n", "COUNT(*) AS n", "COUNT(*) AS n, SUM(y[v]) AS s", "SUM(y[v]) AS s", "MIN(y[w]) AS n, MAX(y[v]) AS s",
    "AVG(y[v]) AS n, COUNT(y) AS s", "CAST(COUNT(*) AS DOUBLE) AS n, SUM(y[v + 1]) AS s", "SUM(y[w]) AS s, MAX(x[w]) AS n",
]  # fmt: skip


#: What arcs of automata ask, where there is a register and where there is none; and what they give it.
FENCES = ["e.type = 'A'", "e.type = 'B'", "e.type != 'C'", "e.v >= 1", "e.name = 'a' OR e.flag", "e.v + e.k > 2", None]
OF_REGISTER = ["e.v > r.n", "r.n < 3 AND e.type != 'B'", "e.name = r.s", "e.v + r.n > 2"]
TRANSFERS = [
    ("n = r.n + 1", ""),
    ("n = e.v", "e.v IS NOT NULL"),
    ("s = e.name", "e.name IS NOT NULL"),
    ("n = 0, s = 'b'", ""),
]
ENDING = ["r.n > 1", "r.s = 'a'", None]


def automaton(number: int) -> dict[str, Any]:
    """An automaton as a table; those of few numbers compile few functions."""
    choose = Seeded(number * 7_919 + 5)
    states = [f"q{n}" for n in range(choose.integer(2, 4))]
    held = choose.chance(60)
    arcs = [_arc(choose, one, other, held) for one, other in pairwise(states)]
    for _ in range(choose.integer(0, 3)):
        arcs.append(_arc(choose, choose.one_of(states), choose.one_of(states[1:]), held))
    if choose.chance(60):
        state = choose.one_of(states[1:])
        arcs.append({"source": state, "kind": "ignore", "when": choose.one_of([*FENCES, *OF_REGISTER * held])})
    if choose.chance(25):
        arcs.append(
            {
                "source": states[-2],
                "target": states[-1],
                "kind": "epsilon",
                "when": choose.one_of(ENDING * held or [None]),
            }
        )
    finals = {states[-1]: choose.one_of(["every", "on_enter"])} | {
        one: "every" for one in states[1:] if choose.chance(15)
    }
    made = {
        "final": finals,
        "arcs": [{name: value for name, value in arc.items() if value is not None} for arc in arcs],
    }
    return made | ({"register": {"n": "int64", "s": "string"}} if held else {})


def _arc(choose: Seeded, source: str, target: str, held: bool) -> dict[str, Any]:
    when, then = choose.one_of([*FENCES, *OF_REGISTER * held]), None
    if held and choose.chance(50):
        then, needed = choose.one_of(TRANSFERS)
        when = " AND ".join(f"({one})" for one in (when, needed) if one) or None
    return {"source": source, "target": target, "when": when, "then": then}


def _automaton(choose: Seeded, by: tuple[str, ...], most: int) -> str:
    """An automaton as text."""
    made = automaton(choose.integer(0, most))
    window, keys = choose.one_of([None, 1, 3, 5, "4 seconds"]), by or choose.one_of([(), ("k",), ("name", "k")])
    return json.dumps(made | ({"window": window} if window else {}) | ({"partition_by": keys} if keys else {}))


#: What clauses ask of a row, some of the match so far, and what they measure.
ROWS = [
    "type = 'A'", "type = 'B'", "type <> 'C'", "v >= {n}", "w > 0.5", "name = 'a' OR flag", "v > PREV(v)", "PREV(type) = 'A'",
    "v >= FIRST(v)", "count(*) < 4", "sum(v) > {n}", "v <= 2 * avg(w)", "MATCH_NUMBER() < 3", "type <> FIRST(type)",
]  # fmt: skip
AHEAD = [
    "NEXT(v) > v",
    "type <> NEXT(type)",
    "v >= {n} AND NEXT(v, 2) IS NOT NULL",
    "NEXT(w) > FIRST(w) AND type = 'A'",
]
MEASURED = [
    "count(*)", "LAST(v)", "sum(w)", "avg(v)", "MATCH_NUMBER()", "CLASSIFIER()", "FIRST(type)", "PREV(FIRST(v))", "NEXT(v)",
    "LAST(ts) - FIRST(ts)", "max(name)", "flag",
]  # fmt: skip


def clause(choose: Seeded, by: tuple[str, ...], time: str, *, ahead: bool = False) -> str:
    """A clause over the events of a mixture; ``ahead``: some of its conditions read the rows behind theirs."""
    pattern = rows.pattern_of(choose, choose.integer(1, 3), excludes=False)
    variables = [one for one in rows.VARIABLES if one in pattern.replace("PERMUTE", "")]
    if not variables:
        pattern, variables = f"A? {pattern}", ["A"]
    keys = by or choose.one_of([(), (), ("k",), ("name", "k")])
    asked = {
        one: choose.one_of(AHEAD if ahead and choose.chance(50) else ROWS) for one in variables if choose.chance(80)
    }
    define = [f"{one} AS {asked[one].format(n=choose.integer(0, 3))}" for one in asked]
    measures = [f"{choose.one_of(MEASURED)} AS m{at}" for at in range(choose.integer(0, 3))]
    parts = [
        f"PARTITION BY {', '.join(keys)}" if keys else "",
        choose.one_of([f"ORDER BY {time}", f"ORDER BY {time}", ""]),
        f"MEASURES {', '.join(measures)}" if measures else "",
        "ONE ROW PER MATCH",
        choose.one_of(["", "AFTER MATCH SKIP PAST LAST ROW", "AFTER MATCH SKIP TO NEXT ROW"]),
        f"PATTERN ({pattern})",
        f"DEFINE {', '.join(define)}" if define else "",
    ]
    if time == "ts" and parts[1] and choose.chance(60):
        parts[-2] += f" WITHIN INTERVAL '{choose.integer(1, 6)}' SECOND"
    return f"MATCH_RECOGNIZE ({' '.join(one for one in parts if one)})"


def clauses(seed: int, *, ahead: bool = False) -> PatternCase:
    """A case of clauses beside some patterns in CEQL, with windows on the time that advances end; ``ahead``: as of :func:`clause`."""
    choose = Seeded(seed)
    events = _many_events(choose)
    by: tuple[str, ...] = choose.one_of([(), (), ("k",)])
    options = {
        "time": "ts",
        "stream": None,
        "by": by,
        "positions": True,
        "output": choose.one_of(["events", "events", "positions"]),
        "valuations": False,
        "measures": choose.chance(70),
        "capacity": choose.one_of([1, 1, 1 << 10]),
    }
    queries = [clause(choose, by, "ts", ahead=ahead) for _ in range(choose.integer(1, 4))]
    queries += [_family(choose, None, by)() for _ in range(choose.integer(0, 2))]
    actions = _actions(choose, events, "ts", queries, "pqrs", 9)
    if ahead or choose.chance(70):
        actions.append(("finish",))
    return PatternCase(events, options, actions)


def one_by_one(one: PatternCase) -> PatternCase:
    """The same with a push for each event, and without snapshots."""
    actions: list[Action] = []
    for action in one.actions:
        if action[0] == "push":
            actions += [("push", event, event + 1) for event in range(action[1], action[2])]
        elif action[0] != "snapshot":
            actions.append(action)
    return PatternCase(one.events, one.options, actions)


def check_ahead(one: PatternCase) -> int:
    """Assert that a set of clauses that read rows to come gives all rows, in an order that no cut changes; tells how many."""
    rows = found(one)
    assert list(map(repr, rows)) == list(map(repr, found(one_by_one(one)))), one
    shown = _by_variable(rows, _queries(one))
    assert sorted(map(repr, shown)) == sorted(map(repr, expected(one))), one
    return len(rows)


def adding(seed: int) -> PatternCase:
    """A case of patterns of which some count and add up over all of their matches, beside others."""
    return mixture(seed, totals=100)


def alike(seed: int) -> PatternCase:
    """A case of many patterns that count and add up over the matches of few automata, some of which hold from the same times on."""
    choose = Seeded(seed)
    events = _many_events(choose)
    by: tuple[str, ...] = choose.one_of([(), (), ("k",)])
    queries: list[str] = []
    for _ in range(choose.integer(1, 3)):
        make = _alike(choose, by)
        queries += [make() for _ in range(choose.one_of([2, 3, 5]))]
    options = {
        "time": "t",
        "stream": None,
        "by": by,
        "positions": True,
        "output": "positions",
        "valuations": choose.chance(20),
        "totals": True,
        "capacity": choose.one_of([1, 1, 1 << 10]),
    }
    times = events.column("t")
    moments = [None, None, *(choose.one_of([*times]) for _ in range(choose.integer(0, 2)))]
    actions = _actions(choose, events, "t", queries, [f"p{n}" for n in range(9)], 20, moments)
    if choose.chance(70):
        actions.append(("finish",))
    return PatternCase(events, options, actions)


def _alike(choose: Seeded, by: tuple[str, ...]) -> Callable[[], str]:
    """What makes queries that count and add up over matches of one automaton."""
    shape, keyed = choose.one_of(ALIKE), bool(by) or choose.chance(50)
    how = choose.one_of(["", "", "", "MAX ", "NEXT ", "LAST "])
    groups = ["", *([] if by else [" GROUP BY ()"]), *([" GROUP BY [k]"] if keyed else [])]
    window = choose.one_of(["", " WITHIN {n} [t]", " WITHIN {m} [t]", "every", "every"])
    group = choose.one_of(groups)
    tail = f" WITHIN {{m}} [t]{group} EVERY {{n}}" if window == "every" else window + group
    tail = (" PARTITION BY [k]" * keyed + tail).format(n=choose.integer(1, 4), m=choose.integer(3, 7))

    def asked() -> str:
        return choose.one_of(CONDITIONS).format(n=choose.integer(0, 3), s=choose.one_of(["a", "b", "c"]))

    return lambda: f"SELECT {shape.format(asked(), asked(), i=choose.one_of(ITEMS), how=how)}{tail}"


def _options(choose: Seeded, by: tuple[str, ...]) -> dict[str, Any]:
    """The options of a set whose patterns are in several languages."""
    return {
        "time": "t",
        "stream": None,
        "by": by,
        "positions": True,
        "output": choose.one_of(["events", "events", "positions"]),
        "valuations": False,
        "capacity": choose.one_of([1, 1, 1 << 10]),
        "time_unit": "s",
    }


def mixture(seed: int, *, totals: int = 40) -> PatternCase:
    """A case of patterns in all languages, of which some wait for time to pass; the stream may be finished at the end.

    ``totals``: in how many of a hundred cases some patterns count and add up.
    """
    choose = Seeded(seed)
    events = _many_events(choose)
    by: tuple[str, ...] = choose.one_of([(), (), ("k",)])
    options = _options(choose, by)
    queries = [_other(choose, by, max(9, seed % 10_000 // 20)) for _ in range(choose.integer(2, 8))]
    if choose.chance(50):
        queries += [clause(choose, by, "t") for _ in range(choose.integer(1, 3))]
        options["measures"] = choose.chance(50)
    if choose.chance(totals):
        options["totals"] = True
        queries += [_adding(choose, by) for _ in range(choose.integer(1, 6))]
    actions = _actions(choose, events, "t", queries, [f"p{n}" for n in range(9)], 15)
    if choose.chance(70):
        actions.append(("finish",))
    return PatternCase(events, options, actions)


def keeping(seed: int) -> PatternCase:
    """A case of patterns with KEEP and AFTER MATCH beside others, which wait for events or for time."""
    choose = Seeded(seed)
    events = _many_events(choose)
    by: tuple[str, ...] = choose.one_of([(), (), ("k",)])
    options = _options(choose, by)
    queries = [_kept(choose, by) for _ in range(choose.integer(2, 6))]
    queries += [_other(choose, by, 9) for _ in range(choose.integer(0, 2))]
    actions = _actions(choose, events, "t", queries, [f"p{n}" for n in range(9)], 12)
    if choose.chance(70):
        actions.append(("finish",))
    return PatternCase(events, options, actions)


def _kept(choose: Seeded, by: tuple[str, ...]) -> str:
    shape = choose.one_of([one for one in KEPT if not by or "{p}" in one or "[k]" in one or "{k}" in one])
    keyed = bool(by) or choose.chance(50)
    measured = " [t]" if shape.startswith("SELECT") else ""
    windows = ["", f" WITHIN {choose.integer(1, 6)}{measured}", f" WITHIN {choose.integer(1, 6)}{measured}"]
    windows += [] if "partition_contiguity" in shape else [f" WITHIN {choose.integer(2, 5)} EVENTS"]
    names = [
        name for name in "xy" if f"AS {name}" in shape or f" {name}" in shape.partition("WHERE")[0].replace(",", "")
    ]
    skips = ["PAST LAST EVENT", "PAST LAST EVENT", "TO NEXT EVENT"]
    skips += [f"TO {end} {name}" for name in names for end in ("FIRST", "LAST")]
    return shape.format(
        n=choose.integer(1, 4),
        m=choose.integer(3, 7),
        w=choose.one_of(windows),
        k="[k] AND " if keyed else "",
        p=" PARTITION BY [k]" if keyed else "",
        q=f"{choose.one_of([' KEEP LONGEST', ' KEEP SHORTEST', ''])} AFTER MATCH SKIP {choose.one_of(skips)}",
    )


def _other(choose: Seeded, by: tuple[str, ...], automata: int) -> str:
    if choose.chance(15):
        return _family(choose, None, by)()
    if choose.chance(25):
        return _automaton(choose, by, automata)
    while True:
        shape = choose.one_of(OTHERS)
        if not by or any(part in shape for part in ("{k}", "{p}", "{b}")):
            break
    keyed = bool(by) or choose.chance(40)
    window = choose.one_of(["", "WITHIN {n}", "WITHIN 9"]).format(n=choose.integer(1, 5))
    return shape.format(
        n=choose.integer(1, 4),
        w=window,
        k="[k] AND " if keyed else "",
        p=" PARTITION BY [k]" if keyed else "",
        b=" by k" if keyed else "",
    )


def _adding(choose: Seeded, by: tuple[str, ...]) -> str:
    shape = choose.one_of(ADDING)
    keyed = bool(by) or choose.chance(40)
    single = "x.v" if shape.startswith("PATTERN") else "x[v]"
    groups = ["", "", f" GROUP BY {single}" + ", [k]" * keyed]
    groups += [] if by else [" GROUP BY ()"]
    return shape.format(
        n=choose.integer(1, 4),
        m=choose.integer(3, 7),
        k="[k] AND " if keyed else "",
        p=" PARTITION BY [k]" if keyed else "",
        g=choose.one_of(groups if "A+ AS x" not in shape else [one for one in groups if single not in one]),
    )


#: Patterns of a crowd: whose constants differ, and whose automata are a few. They read the events of a case of CEQL.
SHAPES = [
    "SELECT {how}* FROM {streams} WHERE A AS x ; B AS y FILTER x[{0}] AND y[{1}]",
    "SELECT {how}* FROM {streams} WHERE A AS x ; (B OR C) AS y ; A AS z FILTER x[{0}] AND z[{1}]",
    "SELECT {how}y FROM {streams} WHERE A+ AS x ; B AS y FILTER x[{0}] AND y[{1}]",
    "SELECT * FROM {streams} WHERE A+ AS x ; A+ AS y FILTER x[{0}] AND y[{1}]",
    "SELECT * FROM {streams} WHERE A AS x ; NOT C ; B AS y FILTER x[{0}] AND y[{1}]",
    "SELECT * FROM {streams} WHERE A AS x : B AS y FILTER x[{0}]",
    "SELECT {how}* FROM {streams} WHERE A AS x ; A AS z ; A AS y FILTER x[{0}] AND y[{1}]",
    "SELECT {how}* FROM {streams} WHERE A+ AS x ; A+ AS z ; (A AS y OR B AS z) FILTER x[{0}] AND y[{1}]",
    "SELECT {how}* FROM {streams} WHERE (A AS x ; B AS z) OR (A AS z ; NOT C ; A AS y) FILTER x[{0}] AND y[{1}]",
]
SASE_SHAPE = "PATTERN SEQ(A x, B+ y[]) WHERE skip_till_any_match {{ {0} }}"
TAILS = ["", "WITHIN {n} [t]", "WITHIN {n} [ts]", "WITHIN {n} EVENTS"]
ENDS = ["", "", "", " CONSUME BY ANY", " CONSUME BY PARTITION", " LIMIT 1", " LIMIT 2"]
CONDITIONS = [
    "v = {n}", "v > {n}", "v != {n}", "v >= 0", "v >= 0", "v <= {n} OR name = '{s}'", "name = '{s}'", "w > {n}.5",
    "name = '{s}' AND v > {n}", "flag = true", "name IN ('{s}', 'b')", "NOT (name = '{s}' AND v = {n})", "v + {n} > 2",
    "name LIKE '{s}%'", "v = 1 AND w < {n}", "k = {n} OR k = 2",
]  # fmt: skip


def crowd(seed: int) -> PatternCase:
    """A case of many patterns that are much alike."""
    choose = Seeded(seed)
    stream = choose.one_of([None, None, "stream"])
    events = _many_events(choose)
    by: tuple[str, ...] = choose.one_of([(), (), ("k",)])
    queries: list[str] = []
    for _ in range(choose.integer(2, 6)):
        make = _family(choose, stream, by)
        queries += [make() for _ in range(choose.one_of([1, 1, 2, 4]))]
    options = {
        "time": choose.one_of(["t", "ts"]),
        "stream": stream,
        "by": by,
        "positions": True,
        "output": choose.one_of(["events", "events", "positions"]),
        "valuations": choose.chance(10),
        "capacity": choose.one_of([1, 1, 1 << 10]),
    }
    actions = _actions(choose, events, options["time"], queries, [f"p{n}" for n in range(15)], 30)
    return PatternCase(events, options, actions)


#: Patterns whose conditions between events compare and compute with constants: ``{n}`` and ``{m}`` integers, ``{r}`` a float.
RELATING = [
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {k}b.v - a.v >= {n} AND b.w < a.w * {r} }} {w}",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match {{ {k}b[i].v + {n} > b[i-1].v AND sum(b[].w) < a.w + {r} }} {w}",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ {k}avg(a[].v) * {r} <= b.w + {n} }} {w}",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {k}(a.name = b.name OR b.v - a.v BETWEEN {n} AND {m}) }} {w}",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {k}coalesce(a.name, '{s}') = b.name AND coalesce(b.v, {n}) >= a.v }} {w}",
    "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_any_match {{ {k}n.v * {n} >= a.v + {m} AND b.v IN ({n}, {m}) }} {w}",
    "PATTERN SEQ(A a, B? b, C+ c[]) WHERE skip_till_any_match {{ {k}c[i].v + a.v IN ({n}, {m}, -1) AND b.w - a.w > -{r} }} {w}",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {k}(b.v + {n}) % 3 = a.v % 3 AND b.ts - a.ts > {n} seconds }} {w}",
    "PATTERN SEQ(A a, B+ b[]) WHERE partition_contiguity {{ {k}min(b[..i].w) + {r} > a.w AND b[b.LEN].v / {m} < a.v }} {w}",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {k}round(b.w / {r}, 1) >= a.w AND a.v + b.v < 12345678901234567890 }} {w}",
]

#: Automata that do so; how they begin and end is the same.
OF_TWO = [
    ("e.v >= r.v + {n} AND e.w < r.w * {r}", None),
    ("e.name = r.s OR e.name = '{s}' AND e.v + {n} > r.v", "v = r.v * {n}, s = '{s}', w = r.w - {r}, v2 = {m}"),
    ("e.ts > r.at AND e.v <= r.v + {m}", "at = '2020-01-0{m}', v = r.v + {n}"),
]


def relating(seed: int) -> PatternCase:
    """A case of patterns with conditions between events, many of which differ in constants only."""
    choose = Seeded(seed)
    events = _many_events(choose)
    by: tuple[str, ...] = choose.one_of([(), (), ("k",)])
    queries = []
    for shape in [choose.one_of(RELATING) for _ in range(choose.integer(1, 3))]:
        queries += [_relating(choose, shape, by) for _ in range(choose.one_of([1, 3, 5]))]
    if choose.chance(50):
        when, then = choose.one_of(OF_TWO)
        queries += [_of_two(choose, when, then, by) for _ in range(choose.integer(1, 4))]
    options = {
        "time": choose.one_of(["t", "ts"]),
        "stream": None,
        "by": by,
        "positions": True,
        "output": choose.one_of(["events", "events", "positions"]),
        "valuations": False,
        "capacity": choose.one_of([1, 1, 1 << 10]),
        "time_unit": "s",
    }
    actions = _actions(choose, events, options["time"], queries, [f"p{n}" for n in range(9)], 20)
    return PatternCase(events, options, actions)


def _constants(choose: Seeded) -> dict[str, Any]:
    low = choose.integer(1, 2)
    return {
        "n": low,
        "m": low + choose.integer(1, 3),
        "r": choose.one_of([0.5, 0.75, 1.5, 2.0]),
        "s": choose.one_of("abc"),
    }


def _relating(choose: Seeded, shape: str, by: tuple[str, ...]) -> str:
    keyed = bool(by) or "partition_contiguity" in shape or choose.chance(40)
    window = choose.one_of(["", "WITHIN 4 seconds", *([] if keyed else ["WITHIN 5 EVENTS"])])
    return shape.format(k="[k] AND " if keyed else "", w=window, **_constants(choose))


def _of_two(choose: Seeded, when: str, then: str | None, by: tuple[str, ...]) -> str:
    known = "e.v IS NOT NULL AND e.w IS NOT NULL AND e.name IS NOT NULL"
    constants = _constants(choose)
    beginning = f"e.type = 'A' AND {known}"
    arcs = [
        {"source": "q0", "target": "q1", "when": beginning, "then": "v = e.v, w = e.w, s = e.name"},
        {"source": "q1", "target": "q1", "when": when.format(**constants)}
        | ({} if then is None else {"then": then.format(**constants)}),
        {"source": "q1", "kind": "ignore", "when": "e.type = 'C'"},
        {"source": "q1", "target": "q2", "when": "e.type = 'B' AND e.v > r.v"},
    ]
    register = {"v": "int64", "v2": "int64", "w": "double", "s": "string", "at": "timestamp[ms]"}
    made = {"final": {"q2": "every"}, "arcs": arcs, "register": register, "window": choose.one_of([5, 9])}
    return json.dumps(made | ({"partition_by": by} if by else {}))


def _many_events(choose: Seeded) -> pa.Table:
    now = 0
    rows = []
    for _ in range(choose.integer(5, 25)):
        now += choose.one_of([0, 1, 1, 2])
        row = {"type": choose.one_of("AABBC"), "stream": choose.one_of(["S1", "S1", "S2"]), "t": now, "ts": 1000 * now}
        row |= {"k": choose.one_of([1, 2, None]), "name": choose.one_of(["a", "b", "c", None])}
        row |= {"v": choose.one_of([0, 1, 2, 3, None]), "w": choose.integer(0, 4) / 2, "flag": choose.chance(50)}
        rows.append(row)
    integer, text = pa.int64(), pa.string()
    kinds = {"type": text, "stream": text, "t": integer, "ts": pa.timestamp("ms"), "k": integer, "name": text}
    schema = pa.schema([*kinds.items(), ("v", integer), ("w", pa.float64()), ("flag", pa.bool_())])
    return pa.Table.from_pylist(rows, schema=schema)


def _family(choose: Seeded, stream: str | None, by: tuple[str, ...]) -> Callable[[], str]:
    """What makes queries that differ at most in what their last step asks."""

    def asked() -> str:
        return choose.one_of(CONDITIONS).format(n=choose.integer(0, 3), s=choose.one_of(["a", "b", "c"]))

    keys = by or choose.one_of([(), (), ("k",), ("name",)])
    window = choose.one_of(TAILS).format(n=choose.integer(3, 5))
    window = window.replace("[ts]", "seconds [ts]")
    if stream is None and choose.chance(15):
        listed = "".join(f"[{name}] AND " for name in keys)
        return lambda: f"{SASE_SHAPE.format(f'{listed}x.v > {choose.integer(0, 2)}')} {window}"
    streams = "S1, S2" if stream is not None and choose.chance(30) else "S1"
    how = choose.one_of(["", "", "", "MAX ", "NEXT ", "LAST ", "STRICT "])
    shape, first = choose.one_of(SHAPES), asked()
    partition = f" PARTITION BY {', '.join(f'[{name}]' for name in keys)}" if keys else ""
    end = choose.one_of(ENDS)
    return lambda: f"{shape.format(first, asked(), how=how, streams=streams)}{partition} {window}{end}"


def _case(choose: Seeded, fits: Any) -> Case:
    while True:
        one = ceql.case(choose.integer(0, 10**9))
        if fits(one):
            return one


def _actions(
    choose: Seeded,
    events: pa.Table,
    time: str,
    queries: list[str],
    names: Sequence[str] = "pqr",
    most: int = 7,
    moments: Sequence[Any] | None = None,
) -> list[Action]:
    times = events.column(time)
    numbers = events.column("ts").cast(pa.int64()).to_pylist()
    changes = []
    for _ in range(choose.integer(1, most)):
        since = choose.one_of([None, None, None, *times] if moments is None else moments)
        query = None if choose.chance(15) else choose.one_of(queries)
        number = None if since is None else since.cast(times.type)
        change = {"id": choose.one_of(names), "query": query, "since": number}
        if query is not None and language_of(query) in ("eql", "afa"):
            change["language"] = language_of(query)
        changes.append((change, _first(times, since)))
    actions: list[Action] = []
    begin = 0
    for at in range(events.num_rows + 1):
        due = [one for one in changes if one[1] <= at or choose.chance(15)]
        changes = [one for one in changes if one not in due]
        if due:
            if begin < at:
                actions.append(("push", begin, at))
            begin = at
            actions.append(("change", [one for one, _ in due]))
        if choose.chance(25):
            if begin < at:
                actions.append(("push", begin, at))
            begin = at
            if choose.chance(50):
                actions.append(("snapshot",))
            if choose.chance(40) and 0 < at < events.num_rows and all(deadline >= at for _, deadline in changes):
                actions.append(("advance", times[choose.one_of([at - 1, at])]))
                changes = [one for one in changes if _on_time(one[0]["since"], actions[-1][1])]
    assert numbers == sorted(numbers)
    if begin < events.num_rows:
        actions.append(("push", begin, events.num_rows))
    return actions


def language_of(query: str) -> str:
    """The language of a query of a case."""
    first = query.split(maxsplit=1)[0]
    if first.startswith("{"):
        return "afa"
    if first == "MATCH_RECOGNIZE":
        return "match_recognize"
    return {"SELECT": "ceql", "PATTERN": "sase"}.get(first, "eql")


def _on_time(since: Any, punctuation: Any) -> bool:
    return since is not None and since.as_py() >= punctuation.as_py()


def _first(times: pa.ChunkedArray, since: Any) -> int:
    """The row before which a change must be given: the first that is not before it."""
    if since is None:
        return 0
    return sum(time.as_py() < since.as_py() for time in times)


def expected(one: PatternCase) -> list[Row]:
    """Rows of :func:`stretto.match` for each version on the events of its time, in the order of a set of patterns."""
    options = one.options
    lines: dict[str, dict[Any, Any]] = defaultdict(dict)
    for action in one.actions:
        if action[0] == "change":
            for change in action[1]:
                lines[change["id"]][change["since"]] = change["query"]
    times = one.events.column(options["time"])
    rows = []
    for name, line in lines.items():
        ordered = sorted(line, key=lambda since: (since is not None, since.as_py() if since is not None else 0))
        for since, until in zip(ordered, [*ordered[1:], None], strict=True):
            if line[since] is None:
                continue
            inside = [
                (since is None or since.as_py() <= time.as_py()) and (until is None or time.as_py() < until.as_py())
                for time in times
            ]
            if language_of(line[since]) == "match_recognize":
                rows += _recognized(one, name, line[since], inside, since, until)
                continue
            events = one.events.filter(pa.array(inside, pa.bool_()))
            first = inside.index(True) if any(inside) else 0
            if language_of(line[since]) == "afa":
                rows += _told(
                    one, _given_by_automaton(name, since, line[since], events, first, options), None, since, until
                )
                continue
            query = _compiled(line[since], events.schema, options)
            if isinstance(query.bound.asked, BoundTotals):
                rows += _added_up(one, name, query, events, first, since, until)
                continue
            if query.parsed.keep is not None:
                rows += _decided(one, name, query, inside, first, since, until)
                continue
            found = _matched(name, since, line[since], events, first, options)
            rows += _told(one, found, _compiled(line[since], one.events.schema, options), since, until)
    # Rows of one place are those of groups, which are in no order.
    return [row for _, row in sorted(rows, key=lambda one: (one[0], _added(one[1])))]


def _added(row: Row) -> str:
    """What orders rows of counts and sums that differ in their groups only; of matches: nothing does."""
    return repr(row) if row.get("totals") is not None else ""


def _added_up(
    one: PatternCase, name: str, query: stretto.Query, events: pa.Table, first: int, since: Any, until: Any
) -> list[tuple[tuple[Any, ...], Row]]:
    """The rows of counts and sums that come, with when they come."""
    assert isinstance(query.bound.asked, BoundTotals)
    scope, by = query.bound.asked.scope, one.options["by"]
    names = [item.name for item in query.bound.asked.items]
    found = []
    order = -math.inf if since is None else since.as_py()
    for row in stretto.match(query, events, valuations=one.options["valuations"]).to_pylist():
        start, end = (row[at] + first if at in row else None for at in ("start", "end"))
        made = {
            "pattern": name,
            "since": None if since is None else since.as_py(),
            "start": start,
            "end": end,
            "positions": None,
            "start_time": row.get("start_time"),
            "end_time": row.get("end_time"),
            **{key: row[key] for key in by},
            "keys": [(group.name, _as_text(row[group.name])) for group in scope.groups if group.name not in by],
            **({"events": None} if one.options["output"] == "events" else {}),
            **({"measures": None} if one.options.get("measures") else {}),
            "window_start": row.get("window_start"),
            "window_end": row.get("window_end"),
            "totals": [(item, _as_text(row[item])) for item in names],
        }
        if scope.extent is Extent.EVENT:
            at = next(n for n, action in enumerate(one.actions) if action[0] == "push" and made["end"] < action[2])
            found.append(((at, 1, made["end"], 1, name, order), made))
        elif events.num_rows and (place := _ending(one, row.get("window_end"), until)) is not None:
            found.append(((*place, name, order, row.get("window_start", 0)), made))
    return found


def _as_text(value: Any) -> str | None:
    return None if value is None else pa.array([value]).cast(pa.string())[0].as_py()


def _ending(one: PatternCase, due: Any, until: Any) -> tuple[Any, ...] | None:
    """When a row is given of a window that is over at ``due``, or of all that a pattern sees, which ends at ``until``."""
    times = one.events.column(one.options["time"]).to_pylist()
    end = None if until is None else until.as_py()
    for at, action in enumerate(one.actions):
        if action[0] == "push":
            for event in range(action[1], action[2]):
                if end is not None and times[event] >= end:
                    return (at, 1, event, 0)
                if due is not None and times[event] >= due:
                    return (at, 1, event, 1)
        elif action[0] == "finish":
            return (at, 1, 0, 0)
        elif action[0] == "advance":
            now = action[1].as_py()
            if (due is not None and now >= due) or (end is not None and now > end):
                return (at, 1, 0, 0)
    return None


def _told(
    one: PatternCase, rows: list[Row], query: stretto.Query | None, since: Any, until: Any
) -> list[tuple[tuple[Any, ...], Row]]:
    """The rows that come, with when they come: in which call, at which event, of which pattern."""
    found = []
    times = one.events.column(one.options["time"]).to_pylist()
    for row in rows:
        if query is None or not query.waits:
            at = next(n for n, action in enumerate(one.actions) if action[0] == "push" and row["end"] < action[2])
            found.append(((at, 1, row["end"], 1, row["pattern"]), row))
            continue
        assert query.bound.window is not None
        due = row["start_time"] + query.bound.window.size
        if until is not None and until.as_py() <= due and _reached(one, until.as_py()):
            continue
        place = _place(one, times, due, None if until is None else until.as_py())
        if place is not None:
            order = -math.inf if since is None else since.as_py()
            found.append(((*place, row["pattern"], order), row))
    return found


def _reached(one: PatternCase, time: Any) -> bool:
    """Whether the stream comes to a time."""
    last = [one.events.column("t")[action[2] - 1].as_py() for action in one.actions if action[0] == "push"]
    return any(at >= time for at in [*last, *(action[1].as_py() for action in one.actions if action[0] == "advance")])


def _place(one: PatternCase, times: list[Any], due: Any, until: Any) -> tuple[Any, ...] | None:
    """When a match is given that waits until time has passed ``due``: the call, the event, whether its pattern still holds."""
    for at, action in enumerate(one.actions):
        if action[0] == "push":
            for event in range(action[1], action[2]):
                if times[event] > due:
                    ended = until is not None and times[event] >= until
                    return (at, 1, event, 0 if ended else 1)
        elif action[0] == "finish" or (action[0] == "advance" and action[1].as_py() > due):
            return (at, 1, 0, 0)
    return None


def _compiled(text: str, schema: pa.Schema, options: dict[str, Any]) -> stretto.Query:
    roles = {name: options.get(name) for name in ("time", "stream", "time_unit")}
    return stretto.compile(text, schema, language=language_of(text), **roles)


def _decided(
    one: PatternCase, name: str, query: stretto.Query, inside: list[bool], first: int, since: Any, until: Any
) -> list[tuple[tuple[Any, ...], Row]]:
    """The matches that stay, with when they are decided: a matcher of its own is given the events of its time one by one."""
    times = one.events.column(one.options["time"])
    begin, end = (None if at is None else at.as_py() for at in (since, until))
    matcher = stretto.Matcher(query, output=one.options["output"], capacity=1)
    order = -math.inf if begin is None else begin
    events = one.events.slice(first)
    found: list[tuple[tuple[Any, ...], Row]] = []
    ended = False

    def take(place: tuple[Any, ...], given: pa.Table) -> None:
        rows = _as_rows(given, name, since, query, events, first, one.options)
        found.extend(((*place, name, order, row["start"]), row) for row in rows)

    for at, action in enumerate(one.actions):
        if action[0] == "push":
            for event in range(action[1], action[2]):
                now = times[event]
                if end is not None and not ended and now.as_py() >= end:
                    take((at, 1, event, 0), matcher.advance(until))
                    ended = True
                if inside[event]:
                    take((at, 1, event, 1), matcher.advance(now))
                    take((at, 1, event, 1), matcher.push(one.events.slice(event, 1)))
        elif action[0] == "advance" and not ended:
            ended = end is not None and action[1].as_py() > end
            if begin is None or begin < action[1].as_py():
                take((at, 1, 0, 0), matcher.advance(until if ended else action[1]))
        elif action[0] == "finish" and not ended:
            take((at, 1, 0, 0), matcher.finish())
    return found


def _matched(name: str, since: Any, text: str, events: pa.Table, first: int, options: dict[str, Any]) -> list[Row]:
    query = _compiled(text, events.schema, options)
    found = stretto.match(query, events, output=options["output"], valuations=options["valuations"])
    return _as_rows(found, name, since, query, events, first, options)


def _as_rows(
    found: pa.Table,
    name: str,
    since: Any,
    query: stretto.Query,
    events: pa.Table,
    first: int,
    options: dict[str, Any],
) -> list[Row]:
    """Matches as rows of a set."""
    told = query.parsed.told_keys
    keys = dict.fromkeys(key for key in (*query.partition_by, *told) if key not in options["by"])
    rows, held = [], events.to_pylist()
    for row in found.to_pylist():
        made = {
            "pattern": name,
            "since": None if since is None else since.as_py(),
            "start": row["start"] + first,
            "end": row["end"] + first,
            "positions": [position + first for position in row["positions"]],
            "start_time": row["start_time"],
            "end_time": row["end_time"],
            **{key: row[key] for key in options["by"]},
            "keys": [(key, str(held[row["end"]][key])) for key in keys],
        }
        if options["output"] == "events":
            made["events"] = {variable: row[variable] for variable in query.variables}
        if options.get("measures"):
            made["measures"] = None
        if options.get("totals"):
            made |= dict.fromkeys(("window_start", "window_end", "totals"))
        rows.append(made)
    return rows


def _given_by_automaton(
    name: str, since: Any, text: str, events: pa.Table, first: int, options: dict[str, Any]
) -> list[Row]:
    said = json.loads(text)
    if isinstance(said.get("window"), str):  # times are integers, and their unit is for sets
        said["window"] = int(said["window"].split()[0])
    afa = stretto.read_afa(json.dumps(said), events.schema)
    rows, held = [], events.to_pylist()
    for row in stretto.match(afa, events, time=options["time"], provenance=True).to_pylist():
        made = {
            "pattern": name,
            "since": None if since is None else since.as_py(),
            "start": row["start"] + first,
            "end": row["end"] + first,
            "positions": [position + first for position in row["positions"]],
            "start_time": row["start_time"],
            "end_time": row["end_time"],
            **{key: row[key] for key in options["by"]},
            "keys": [(key, str(row[key])) for key in afa.partition_by if key not in options["by"]],
        }
        if options["output"] == "events":
            made["events"] = {None: [held[position] for position in row["positions"]]}
        if options.get("measures"):
            made["measures"] = None
        if options.get("totals"):
            made |= dict.fromkeys(("window_start", "window_end", "totals"))
        rows.append(made)
    return rows


def _variables(text: str) -> tuple[str | None, ...]:
    """The variables of a query."""
    language = language_of(text)
    if language == "match_recognize":
        return read_clause(text).variables
    return (None,) if language == "afa" else stretto.compile(text, language=language).variables


def _recognized(
    one: PatternCase, name: str, text: str, inside: list[bool], since: Any, until: Any
) -> list[tuple[tuple[Any, ...], Row]]:
    """The rows of a clause, with when they come: a matcher of its own is given the events of its time, one by one."""
    parsed = read_clause(text)
    table = one.events.append_column("at_", pa.array(range(one.events.num_rows)))
    times = table.column(one.options["time"]).to_pylist()
    keyed = [all(row[key] is not None for key in one.options["by"]) for row in table.to_pylist()]
    begin, end = (None if at is None else at.as_py() for at in (since, until))
    matcher = stretto.Matcher(_with_all_rows(text, one.options["time"]), table.schema, capacity=1)
    found: list[tuple[tuple[Any, ...], Row]] = []
    ended = False

    def take(place: tuple[Any, ...], given: pa.Table) -> None:
        number = _texts(given, [measure.name for measure in parsed.measures]).to_pylist()
        for _, match in groupby(number, lambda row: (row["number_"], *(row[key] for key in parsed.partition_by))):
            order = -math.inf if begin is None else begin
            row = _of_clause(one, name, begin, list(match), parsed)
            # What an event completes comes as a matcher orders it; what time or the end does, by first events.
            found.append(((*place, name, order, 0 if place[3] else row["start"]), row))

    for at, action in enumerate(one.actions):
        now = action[1].as_py() if action[0] == "advance" else None
        if action[0] == "push":
            for event in range(action[1], action[2]):
                if end is not None and not ended and times[event] >= end:
                    take((at, 1, event, 0), matcher.finish())
                    ended = True
                if inside[event] and keyed[event]:
                    take((at, 1, event, 1), matcher.push(table.slice(event, 1)))
        elif now is not None and end is not None and not ended and now > end:
            take((at, 1, 0, 0), matcher.finish())
            ended = True
        elif now is not None and not ended and (begin is None or begin < now):
            take((at, 1, 0, 0), matcher.advance(now))
        elif action[0] == "finish" and not ended:
            take((at, 1, 0, 0), matcher.finish())
    return found


def _with_all_rows(text: str, time: str) -> str:
    """A clause that shows all rows of its matches, each with its variable and the number of its match."""
    if "ORDER BY" not in text:
        begin = "MEASURES" if "MEASURES" in text else "ONE ROW"
        text = text.replace(begin, f"ORDER BY {time} {begin}")
    told = "MEASURES MATCH_NUMBER() AS number_, CLASSIFIER() AS variable_"
    text = text.replace("MEASURES", f"{told},") if "MEASURES" in text else text.replace("ONE ROW", f"{told} ONE ROW")
    return text.replace("ONE ROW PER MATCH", "ALL ROWS PER MATCH SHOW EMPTY MATCHES")


def _texts(given: pa.Table, names: Sequence[str]) -> pa.Table:
    """Rows with some columns as texts."""
    for name in names:
        column = given.column(name)
        plain = column.cast(pa.int64()) if pa.types.is_duration(column.type) else column
        given = given.set_column(given.column_names.index(name), name, plain.cast(pa.string()))
    return given


def _of_clause(one: PatternCase, name: str, since: Any, match: list[Row], parsed: RowQuery) -> Row:
    """A match of a clause, of which all rows are there, as a row of a set; an empty one has the row at which it was found."""
    events = [row for row in match if row["variable_"] is not None]
    time, by = one.options["time"], one.options["by"]
    made: Row = {
        "pattern": name,
        "since": since,
        "start": match[0]["at_"],
        "end": match[-1]["at_"],
        "positions": [row["at_"] for row in events],
        "start_time": match[0][time],
        "end_time": match[-1][time],
        **{key: match[0][key] for key in by},
        "keys": [(key, _as_text(match[0][key])) for key in parsed.partition_by if key not in by],
    }
    if one.options["output"] == "events":
        held = one.events.to_pylist()
        made["events"] = {
            variable: [held[row["at_"]] for row in events if row["variable_"] == variable]
            for variable in parsed.variables
        }
    if one.options.get("measures"):
        made["measures"] = [(measure.name, match[-1][measure.name]) for measure in parsed.measures]
    if one.options.get("totals"):
        made |= dict.fromkeys(("window_start", "window_end", "totals"))
    return made


def found(one: PatternCase) -> list[Row]:
    """What a set of patterns gives."""
    patterns = stretto.PatternSet(one.events.schema, **one.options)
    rows: list[Row] = []
    for action in one.actions:
        match action:
            case ("change", changes):
                patterns.change(changes)
            case ("push", low, high):
                table = patterns.push(one.events.slice(low, high - low))
                table.validate(full=True)
                assert table.schema == patterns.output_schema
                rows += table.to_pylist()
            case ("advance", time):
                rows += patterns.advance(time).to_pylist()
            case ("finish",):
                rows += patterns.finish().to_pylist()
            case _:
                patterns = stretto.PatternSet(one.events.schema, **one.options).restore(patterns.snapshot())
    return rows


def _by_variable(rows: list[Row], queries: dict[tuple[str, Any], str]) -> list[Row]:
    """The events of rows by variable, as :func:`stretto.match` shows them."""
    for row in rows:
        if row.get("events") is not None:
            text = queries[row["pattern"], repr(row["since"])]
            shown: dict[str | None, list[Any]] = {variable: [] for variable in _variables(text)}
            for entry in row["events"]:
                shown[entry["variable"]].append(entry["event"])
            row["events"] = shown
    return rows


def in_order(rows: list[Row]) -> list[Row]:
    """Rows of counts and sums that come next to each other, and differ in their groups only, in one order."""

    def place(row: Row) -> tuple[Any, ...]:
        return _added(row) == "", row["pattern"], row["since"], row["end"], row.get("window_end")

    return [row for _, same in groupby(rows, place) for row in sorted(same, key=_added)]


def _queries(one: PatternCase) -> dict[tuple[str, Any], str]:
    """The query of each version."""
    changes = [change for action in one.actions if action[0] == "change" for change in action[1]]
    return {(one["id"], repr(None if one["since"] is None else one["since"].as_py())): one["query"] for one in changes}


def check(one: PatternCase, seed: int = 0) -> int:
    """Assert that a set of patterns gives exactly the rows that it must; tells how many."""
    right, shown = expected(one), in_order(_by_variable(found(one), _queries(one)))
    assert list(map(repr, shown)) == list(map(repr, right)), f"{one}\nexpected {right}\nfound    {shown}"
    return len(right)
