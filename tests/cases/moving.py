"""Moving aggregates: a query with one finds what the same query finds that reads a column of its values, made by the definition."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stretto.matching.api.match import match
from stretto.matching.api.matcher import Matcher
from stretto.matching.pattern_set.changes import Change
from stretto.matching.pattern_set.pattern_set import PatternSet
from tests.cases.choices import Seeded
from tests.reference.moving import aggregate

__all__ = ["Case", "case", "check"]

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("t", pa.int64()),
        ("k", pa.string()),
        ("x", pa.int64()),
        ("d", pa.float64()),
        ("u", pa.string()),
    ]
)

#: ``{f}`` is where conditions on the step f stand. Behind a ``|``: what of the events f may hold, beside its conditions.
SHAPES = [
    "SELECT * FROM S WHERE F AS f ; A AS a FILTER f[{f}] {by} {within}|F",
    "SELECT * FROM S WHERE F+ AS f ; A AS a FILTER f[{f}] {by} {within}|F",
    "SELECT * FROM S WHERE F AS f : A AS a FILTER f[{f}] {by}|F",
    "SELECT * FROM S WHERE A AS a ; (F OR G) AS f FILTER f[{f}] AND a[x > 1] {by} {within}|FG",
    "SELECT * FROM S WHERE A AS a ; NOT (F AS f FILTER f[{f}]) ; A AS b {by} {within}|F",
    "SELECT * FROM S WHERE A AS a ; F+ AS f GAP 3 [t] ; A FILTER f[{f}] {by} {within}|F",
    "SELECT * FROM S WHERE A ; NOT (F AS f FILTER f[{f}]) {by} {within}|F",
    "SELECT NEXT * FROM S WHERE F AS f ; A+ FILTER f[{f}] {by} {within}|F",
    "SELECT * FROM S WHERE F+ AS f GAP 3 [t] FILTER f[{f}] {by} KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT|F",
    "SELECT COUNT(*) AS n, SUM(f[x]) AS s FROM S WHERE F AS f ; A AS a FILTER f[{f}] {by} {within} EVERY EVENT|F",
    "PATTERN SEQ(F f, A a) WHERE skip_till_any_match {{ {key}{f} }} {within}|F",
    "PATTERN SEQ(F f, A a) WHERE skip_till_next_match {{ {key}{f} AND a.x > f.x }} {within}|F",
    "PATTERN SEQ(F f, A+ a[]) WHERE skip_till_next_match {{ {key}{f} AND a[i].x >= f.x }} {within}|F",
    "PATTERN SEQ(A a, (F|G) f) WHERE skip_till_any_match {{ {key}{f} }} {within}|FG",
    "PATTERN SEQ(A a, ~(F f), A b) WHERE skip_till_any_match {{ {key}{f} }} {within}|F",
    "PATTERN SEQ(A a, F? f, A b) WHERE skip_till_next_match {{ {key}{f} }} {within}|F",
]

#: A condition that tells which events count, and what it asks.
PLAIN: list[tuple[str, Any]] = [
    ("{f}x > 1", lambda event: event["x"] is not None and event["x"] > 1),
    ("{f}u = 'p'", lambda event: event["u"] == "p"),
    ("({f}d IS NULL OR {f}x = 3)", lambda event: event["d"] is None or event["x"] == 3),
]
AGGREGATES = [
    ("count", False, None),
    ("count", True, "u"),
    ("count", True, "x"),
    ("count", False, "d"),
    ("sum", False, "x"),
    ("sum", False, "d"),
    ("avg", False, "x"),
    ("avg", False, "d"),
    ("min", False, "x"),
    ("max", False, "x"),
    ("min", False, "d"),
    ("max", False, "d"),
]


@dataclass(frozen=True)
class Case:
    """A query, the same over columns ``m0``, ``m1`` …, and events, with these columns."""

    query: str
    plain: str
    events: pa.Table

    def __repr__(self) -> str:
        return "\n  ".join([self.query, *map(str, self.events.to_pylist())])


def case(seed: int) -> Case:
    """A case from a seed.

    >>> " OVER " in case(3).query
    True
    """
    choose = Seeded(seed)
    shape, _, types = choose.one_of(SHAPES).rpartition("|")
    sase, keyed = shape.startswith("PATTERN"), choose.chance(70)
    events, time = list[dict[str, Any]](), 0
    for _ in range(choose.one_of([3, 8, 14])):
        time += choose.one_of([0, 0, 1, 1, 2, 5])
        row = {"type": choose.one_of(list("FFFGAA")), "t": time, "k": choose.one_of(["a", "a", "b", None])}
        row |= {"x": choose.one_of([None, 1, 2, 3, -4]), "d": choose.one_of([None, 0.5, 1.25, -3.0])}
        events.append(row | {"u": choose.one_of(["p", "q", "r", None])})
    chosen = [one for one in PLAIN if choose.chance(35)]
    before = "f." if sase else ""
    asked, plain = [text.format(f=before) for text, _ in chosen], [text.format(f=before) for text, _ in chosen]

    def counts(event: dict[str, Any]) -> bool:
        there = event["type"] in types and not (keyed and event["k"] is None)
        return there and all(test(event) for _, test in chosen)

    columns: list[list[Any]] = []
    for number in range(choose.one_of([1, 1, 2])):
        function, distinct, argument = choose.one_of(AGGREGATES)
        size, sign, bound = (
            choose.one_of([1, 2, 4, 20]),
            choose.one_of([">=", "=", "<"]),
            choose.one_of([-1, 1, 2, 0.75]),
        )
        shown = "DISTINCT " * distinct + (f"f.{argument}" if argument else "f") if sase else ""
        shown = shown or ("DISTINCT " * distinct + (argument or "*"))
        window = f"{size}" if sase and choose.chance(50) else f"{size} [t]"
        condition = choose.one_of(["{} {} {}", "NOT ({} {} {})", f"({before}x = 2 OR {{}} {{}} {{}})"])
        asked.append(condition.format(f"{function}({shown}) OVER {window}", sign, bound))
        plain.append(condition.format(f"{before}m{number}", sign, bound))
        columns.append(
            [
                None
                if not counts(event)
                else aggregate(
                    function,
                    distinct,
                    [
                        1 if argument is None else other[argument]
                        for other in events[: place + 1]
                        if counts(other) and event["t"] - other["t"] <= size and (not keyed or event["k"] == other["k"])
                    ],
                )
                for place, event in enumerate(events)
            ]
        )
    table = pa.Table.from_pylist(events, SCHEMA)
    for number, column in enumerate(columns):
        table = table.append_column(f"m{number}", pa.array(column, pa.float64()))
    by, key = ("PARTITION BY [k]" if keyed else ""), ("[k] AND " if keyed else "")
    rest = {"by": by, "key": key, "within": choose.one_of(["WITHIN 3 [t]", "WITHIN 9 [t]"])}
    texts = [shape.format(f=" AND ".join(conditions), **rest) for conditions in (asked, plain)]
    return Case(texts[0], texts[1], table)


def check(one: Case, seed: int = 0) -> int:
    """Assert that both queries find the same, in whatever pieces, saved between them or not, alone and in a set; how much."""
    choose, size = random.Random(seed), one.events.num_rows
    events = one.events.select(SCHEMA.names)
    output = "events" if "COUNT(*)" in one.query else "positions"
    right = list(map(repr, match(one.plain, one.events, time="t", output=output).to_pylist()))
    found = list(map(repr, match(one.query, events, time="t", output=output).to_pylist()))
    assert sorted(found) == sorted(right), f"\n{one!r}\nexpected {right}\nfound    {found}"
    for saved in (False, True):
        cuts = sorted(choose.sample(range(size + 1), choose.choice([1, 2]))) if not saved else list(range(1, size))
        assert sorted(_fed(one.query, events, cuts, output, saved)) == sorted(right), f"\n{one!r}\n{cuts} {saved}"
    if "KEEP" not in one.query and output == "positions":
        patterns = PatternSet(SCHEMA, time="t", output="positions", positions=True)
        patterns.change(
            [Change("mine", one.query), Change("other", "SELECT * FROM S WHERE F AS f ; A PARTITION BY [k]")]
        )
        rows = [
            *patterns.push(events.slice(0, size // 2)).to_pylist(),
            *patterns.push(events.slice(size // 2)).to_pylist(),
        ]
        rows += patterns.finish().to_pylist()
        mine = sorted(row["positions"] for row in rows if row["pattern"] == "mine")
        assert mine == sorted(match(one.query, events, time="t", output="positions")["positions"].to_pylist()), (
            f"\n{one!r}"
        )
    return len(right)


def _fed(query: str, events: pa.Table, cuts: Sequence[int], output: str, saved: bool) -> list[str]:
    options: dict[str, Any] = {"time": "t", "output": output, "capacity": 1, "warn_after": None}
    matcher, rows = Matcher(query, SCHEMA, **options), list[Any]()
    for begin, end in zip([0, *cuts], [*cuts, events.num_rows], strict=True):
        rows += matcher.push(events.slice(begin, end - begin)).to_pylist()
        if saved:
            matcher = Matcher(query, SCHEMA, **options).restore(matcher.snapshot())
    return list(map(repr, rows + matcher.finish().to_pylist()))
