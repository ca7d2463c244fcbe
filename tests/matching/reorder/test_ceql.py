"""CEQL that answers ahead of what is certain: what is left in the end are the matches of one ordered pass."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import StrettoError
from tests.conftest import cases

QUERIES = [
    "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 6 [t]",
    "SELECT a FROM S WHERE A AS a ; B+ AS b ; C AS c FILTER b[v > 1] WITHIN 6 [t]",
    "SELECT * FROM S WHERE A : B : C PARTITION BY [k] WITHIN 9 [t]",
    "SELECT * FROM S WHERE A ; (B OR C)+ AS x ; D PARTITION BY [k] WITHIN 5 [t]",
    "SELECT b FROM S WHERE A AS a ; B AS b WITHIN 6 [t]",
    "SELECT * FROM S WHERE A AS a : B:+ AS b ; A PARTITION BY [k]",
    "SELECT * FROM S WHERE (A OR B) AS x : (B OR D) AS y FILTER x[v >= 2] WITHIN 4 [t]",
    "SELECT * FROM S WHERE A+ WITHIN 3 [t]",
    "SELECT * FROM S WHERE (A ; B) AS z FILTER z[v > 1] WITHIN 9 [t]",
    "SELECT * FROM S WHERE A ; A ; A WITHIN 4 [t]",
    "SELECT b FROM S WHERE A ; A ; B AS b WITHIN 5 [t]",
    "SELECT * FROM S WHERE A ; NOT B ; C PARTITION BY [k] WITHIN 9 [t]",
    "SELECT * FROM S WHERE A ; NOT (B AS b FILTER b[v > 1]) ; NOT C ; A+ ; D WITHIN 9 [t]",
    "SELECT * FROM S WHERE A{2} AS a ; B? ; C WITHIN 9 [t]",
    "SELECT * FROM S WHERE A? ; B PARTITION BY [k] WITHIN 9 [t]",
    "SELECT * FROM S WHERE A : (B OR C):* : A{2} WITHIN 9 [t]",
    "SELECT * FROM S WHERE A{1,3} AS a ; B FILTER a[v > 1] WITHIN 9 [t]",
    "SELECT b FROM S WHERE A{2,3} AS a ; B AS b WITHIN 6 [t]",
]
SCHEMA = pa.schema([("type", pa.string()), *((name, pa.int64()) for name in ("t", "k", "v", "n"))])


def shown(row: dict[str, Any]) -> str:
    return repr({name: row[name] for name in sorted(row) if name not in ("sign", "start", "end", "positions")})


@pytest.mark.filterwarnings("ignore:no event has the type")
@pytest.mark.parametrize("query", QUERIES)
def test_what_is_left_is_what_one_pass_gives(query: str) -> None:
    for seed in range(cases(60, compiled=20)):
        rng = random.Random(seed)
        count = rng.randrange(1, 22)
        rows = [
            {"type": rng.choice("ABCD"), "t": i + rng.randrange(-6, 6), "k": rng.choice([1, 2, None])}
            | {"v": rng.choice([None, 0, 1, 2, 3]), "n": i}
            for i in range(count)
        ]
        table = pa.Table.from_pylist(rows, SCHEMA)
        matcher = stretto.Matcher(query, SCHEMA, time="t", sequence="n", speculation=math.inf)
        found: Counter[str] = Counter()
        at = 0
        while at < count:
            size = rng.randrange(1, 5)
            for row in matcher.push(table.slice(at, size)).to_pylist():
                found[shown(row)] += row["sign"]
            at += size
            matcher = stretto.Matcher(query, SCHEMA, time="t", sequence="n", speculation=math.inf).restore(
                matcher.snapshot()
            )
        ordered = table.sort_by([("t", "ascending"), ("n", "ascending")])
        wanted = Counter(map(shown, stretto.match(query, ordered, time="t").to_pylist()))
        assert {one: number for one, number in found.items() if number} == wanted, f"seed {seed}"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM S WHERE A? ; A? ; B", "the same events in several ways"),
        ("SELECT * FROM S WHERE (A ; B){2}", "the same events in several ways"),
        ("SELECT * FROM S WHERE A+ ; B+", "the same events in several ways"),
        ("SELECT * FROM S WHERE (A ; B)+", "the same events in several ways"),
        ("SELECT * FROM S WHERE (A ; B) OR C", "the same events in several ways"),
        ("SELECT * FROM S WHERE (A AS x OR A AS y) ; B", "the same events in several ways"),
        ("SELECT MAX * FROM S WHERE A ; B", "SELECT MAX chooses among matches"),
        ("SELECT * FROM S WHERE A ; B LIMIT 3", "LIMIT chooses among matches"),
        ("SELECT * FROM S WHERE A ; B CONSUME BY ANY", "CONSUME BY ANY chooses among matches"),
        ("SELECT * FROM S WHERE A ; B WITHIN 3 EVENTS", "each late event moves those behind it"),
    ],
)
def test_what_cannot_answer_ahead(query: str, message: str) -> None:
    with pytest.raises(StrettoError, match=message):
        stretto.Matcher(query, SCHEMA, time="t", speculation=math.inf)
