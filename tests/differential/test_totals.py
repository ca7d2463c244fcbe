"""Counts and sums beside what listing gives, where there are more events than the definition can take."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import LimitError
from tests.cases import totals
from tests.conftest import blocks, cases
from tests.reference.totals import Listed, parts_of, rows_of

#: Formulas with the variables that hold events of a match, and whether each holds one.
FORMULAS = (
    ("A AS a ; B+ AS b ; C AS c", {"a": True, "b": False, "c": True}),
    ("A AS a ; B AS b ; C AS c", {"a": True, "b": True, "c": True}),
    ("A AS a ; (B OR C)+ AS b", {"a": True, "b": False}),
    ("A AS a ; NOT C ; B AS b", {"a": True, "b": True}),
    ("A AS a : B AS b", {"a": True, "b": True}),
    ("A:+ AS a ; B AS b", {"a": False, "b": True}),
    ("(A AS a ; B AS b) OR (C AS c ; A AS d)", {"a": True, "b": True, "c": True, "d": True}),
    ("A AS a ; B? AS b ; C AS c", {"a": True, "b": True, "c": True}),
    ("A{2,3} AS a ; C AS c", {"a": False, "c": True}),
    ("(A AS a ; B AS b)+ ; C AS c", {"a": False, "b": False, "c": True}),
)
ITEMS = ("COUNT({})", "COUNT({}[v])", "SUM({}[v])", "AVG({}[v])", "MIN({}[w])", "MAX({}[v])", "SUM({}[w])")


def case(seed: int) -> tuple[str, str, pa.Table]:
    """A query that lists, the same with what it asks of all matches, and events."""
    choose = random.Random(seed)
    formula, variables = choose.choice(FORMULAS)
    strategy = choose.choice(["", "", "MAX ", "NEXT ", "LAST "])
    key = choose.choice(["", " PARTITION BY [k]", " PARTITION BY [k], [g]"])
    scope = choose.choice(["", " EVERY EVENT", f" EVERY {choose.randint(1, 9)}"])
    size = choose.choice([3, 6, 10, 15])
    window = f" WITHIN {size} [t]" if "+" in formula or scope[7:].isdigit() or choose.random() < 0.7 else ""
    groups = [f"{name}[g]" for name, one in variables.items() if one and choose.random() < 0.3]
    grouped = f" GROUP BY {', '.join(groups)}" if groups and choose.random() < 0.4 else ""
    items = [choose.choice(ITEMS).format(choose.choice(list(variables))) for _ in range(choose.randint(0, 3))]
    named = ", ".join(f"{item} AS n{number}" for number, item in enumerate(["COUNT(*)", *items]))
    where = f"FROM S WHERE {formula}"
    listing = f"SELECT {strategy}* {where}{key}{window}"
    return listing, f"SELECT {strategy}{named} {where}{key}{window}{grouped}{scope}", _events(choose)


def _events(choose: random.Random) -> pa.Table:
    now, rows = 0, []
    for number in range(choose.choice([20, 60, 150])):
        now += choose.choice([0, 1, 1, 2, 7])
        rows.append(
            {
                "type": choose.choice("AABBCX"),
                "t": now,
                "k": choose.choice([1, 1, 2, 3, None]),
                "g": choose.choice(["x", "y", "é"]),
                "v": choose.choice([None, -3, 1, 5, 1 << 40]),
                "w": choose.choice([None, 0.5, -2.0, float("nan")]),
                "n": number,
            }
        )
    return pa.Table.from_pylist(rows)


def check(seed: int) -> int:
    """Assert that totals are those of what is listed; how many rows, and −1 where too many would be listed."""
    listing, query, events = case(seed)
    compiled = stretto.compile(query, events.schema, time="t")
    try:
        matches = stretto.match(listing, events, time="t", budget=4_000).to_pylist()
    except LimitError:
        return -1
    rows = events.to_pylist()
    found = [_listed(row) for row in matches]
    right = rows_of(compiled.bound, parts_of(compiled.bound, found, rows), rows)
    one = totals.Case(query, compiled.bound.schema, events)
    choose = random.Random(seed)
    size = events.num_rows
    for cuts in ([], sorted(choose.sample(range(1, size), 3)), sorted(choose.sample(range(1, size), size // 2))):
        table = totals.fed(
            compiled, one, cuts, [*cuts, one.events.num_rows] if cuts and choose.random() < 0.5 else [], capacity=1
        )
        totals.assert_rows(one, table, right)
    return len(right)


def _listed(row: dict[str, Any]) -> Listed:
    held = {name: frozenset(one["n"] for one in value) for name, value in row.items() if _is_variable(value)}
    return Listed(row["start"], row["end"], tuple(row["positions"]), lambda name: held.get(name, frozenset()))


def _is_variable(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


@pytest.mark.parametrize("seeds", blocks(cases(300)), ids=str)
def test_totals(seeds: range) -> None:
    found = []
    for seed in seeds:
        try:
            found.append(check(seed))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    assert sum(one > 0 for one in found) > len(found) / 3


@pytest.mark.parametrize("items", ["COUNT(*) AS n", "SUM(b[v]) AS n"])
def test_keys_of_rows_of_events_are_forgotten(items: str) -> None:
    """Each key has a partial match for a moment; what is said of events, there is nothing to number anew of."""
    text = f"SELECT {items} FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 2 [t] GROUP BY [k] EVERY EVENT"
    matcher = stretto.Matcher(text, time="t")
    found = []
    for at in range(10):
        pair = [{"type": kind, "k": at, "t": at, "v": 1} for kind in "AB"]
        found += matcher.push(pair).to_pylist()
        matcher.advance(at)
    assert matcher.stats["partitions"] < 8
    assert [(row["k"], row["n"]) for row in found] == [(at, 1) for at in range(10)]
    last = matcher.push([{"type": "B", "k": 9, "t": 11, "v": 2}]).to_pylist()
    assert [(row["k"], row["n"]) for row in last] == [(9, 2 if "SUM" in items else 1)]
