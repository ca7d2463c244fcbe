"""What ``RETURN`` of SASE+ computes of the matches of a set: the column ``measures``, of alerts of rules, too."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto import Change, PatternSet
from stretto.errors import DataError
from tests.conftest import cases

SCHEMA = {"type": "string", "t": "int64", "k": "string", "v": "int64"}
ITEMS = ["a.v AS first", "b.v - a.v AS rise", "a.v * 2 AS twice", "a.k AS key", "b.t AS at"]


def query(rng: random.Random) -> str:
    related = rng.choice(["", " AND a.v < b.v"])
    items = ", ".join(rng.sample(ITEMS, rng.randint(1, 3)))
    steps = rng.choice(["A a, B b", "A a, C c, B b"])
    return (
        f"PATTERN SEQ({steps}) WHERE skip_till_any_match {{ [k]{related} }} WITHIN {rng.randint(2, 9)} RETURN {items}"
    )


def texts(row: dict[str, Any], names: list[str]) -> list[tuple[str, str | None]]:
    return [(name, None if row[name] is None else str(row[name])) for name in names]


@pytest.mark.parametrize("output", ["events", "positions"])
def test_random_queries_compute_what_match_computes(output: str) -> None:
    """Those that run together, and those on other engines, in batches, with a snapshot between two of them."""
    rows = 0
    for seed in range(cases(60, compiled=10)):
        rng = random.Random(seed)
        queries = {f"p{at}": query(rng) for at in range(4)}
        events = [
            {"type": rng.choice("AABBC"), "t": t, "k": rng.choice("xy"), "v": rng.choice([None, 1, 5, 9])}
            for t in range(16)
        ]
        patterns = PatternSet(SCHEMA, time="t", output=output, positions=True, measures=True)
        patterns.change([Change(name, one) for name, one in queries.items()])
        patterns.change(Change("plain", "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 5 [t]"))
        cut = rng.randint(0, 16)
        found = [patterns.push(pa.Table.from_pylist(events[:cut], patterns_schema(patterns)))]
        again = PatternSet(SCHEMA, time="t", output=output, positions=True, measures=True).restore(patterns.snapshot())
        found.append(again.push(pa.Table.from_pylist(events[cut:], patterns_schema(patterns))))
        table = pa.concat_tables(found).to_pylist()
        assert all(row["measures"] is None for row in table if row["pattern"] == "plain"), seed
        for name, one in queries.items():
            alone = stretto.match(one, pa.Table.from_pylist(events, patterns_schema(patterns)), time="t")
            names = alone.column_names[alone.column_names.index("k") + 1 :]
            expected = [(row["positions"], texts(row, names)) for row in alone.to_pylist()]
            mine = [(row["positions"], row["measures"]) for row in table if row["pattern"] == name]
            assert mine == expected, (seed, one, events)
            rows += len(mine)
    assert rows > cases(60, compiled=10)


def patterns_schema(patterns: PatternSet) -> pa.Schema:
    return pa.schema(list(patterns.schema.attributes.items()))


def test_lists_are_json_and_without_measures_nothing_is_computed() -> None:
    text = "PATTERN SEQ(A a, B+ b[]) WHERE strict_contiguity { } RETURN sum(b[].v) AS total, b[].k AS names"
    clause = "MATCH_RECOGNIZE (MEASURES array_agg(v) AS vs PATTERN (A B) DEFINE A AS type = 'A', B AS type = 'B')"
    events = [{"type": kind, "t": t, "k": "xé"[t % 2], "v": 2**62} for t, kind in enumerate("AB")]
    patterns = PatternSet(SCHEMA, time="t", measures=True)
    patterns.change([Change("returns", text), Change("clause", clause)])
    found = {row["pattern"]: dict(row["measures"]) for row in patterns.push(events).to_pylist()}
    assert found == {
        "returns": {"total": str(2**62), "names": '["é"]'},
        "clause": {"vs": f"[{2**62}, {2**62}]"},
    }
    with pytest.raises(DataError, match=r"pattern 'returns': .*64 bits in the match that ends at row 4"):
        patterns.push([one | {"t": 5 + at} for at, one in enumerate([events[0], events[1], events[1]])])
    plain = PatternSet(SCHEMA, time="t")
    plain.change(Change("returns", text))
    assert plain.push([*events, events[1] | {"t": 2}]).num_rows > 0


def test_alerts_of_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(
        """
[events]
time = "t"

[[rule]]
id = "rise"
query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] } RETURN b.v - a.v AS rise"

[[rule]]
id = "pair"
query = "MATCH_RECOGNIZE (MEASURES LAST(v) AS high PATTERN (A B) DEFINE A AS type = 'A', B AS type = 'B')"
"""
    )
    events = [{"type": "AB"[t], "t": t, "k": "x", "v": 3 + t} for t in range(2)]
    found = stretto.read_rules(tmp_path).match(events).matches
    assert {row["rule"]: row["measures"] for row in found.to_pylist()} == {
        "rise": [("rise", "1")],
        "pair": [("high", "4")],
    }
