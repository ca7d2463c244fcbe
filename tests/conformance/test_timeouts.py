"""Vectors of timed-out partial matches (``timeouts/*.toml``): the definition, ``match``, and a ``Matcher`` in random pieces."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.query.passes.bind_sase import BoundSase
from tests.conformance.vectors import table
from tests.reference.ceql import evaluate
from tests.reference.sase import evaluate_sase
from tests.reference.timeouts import evaluate_timeouts

FOLDER = Path(__file__).parent / "timeouts"
CASES = [
    one for path in sorted(FOLDER.glob("*.toml")) for one in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]


def query_of(case: dict[str, Any]) -> str:
    """The query, in CEQL or SASE+."""
    return str(case["ceql"] if "ceql" in case else case["sase"])


def split(rows: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Rows of a result as those of a vector: what timed out, and matches."""
    timeouts = [
        [row["start"], row["reached"], row.get("expired", -1), row["positions"]] for row in rows if row["reached"]
    ]
    return timeouts, sorted([row["start"], row["end"], row["positions"]] for row in rows if not row["reached"])


def pushed(case: dict[str, Any], events: pa.Table, seed: int) -> list[dict[str, Any]]:
    """The rows of a matcher that is fed in random pieces, and goes through a snapshot between two."""
    choose = random.Random(seed)

    def made() -> stretto.Matcher:
        return stretto.Matcher(query_of(case), events.schema, time="t", timeouts=True, output="positions", capacity=1)

    matcher, rows, low = made(), [], 0
    while low < events.num_rows:
        size = choose.choice([1, 1, 2, 5])
        rows += matcher.push(events.slice(low, size)).to_pylist()
        matcher = made().restore(matcher.snapshot()) if choose.random() < 0.5 else matcher
        low += size
    if "advance" in case:
        rows += matcher.advance(case["advance"]).to_pylist()
    return rows + matcher.finish().to_pylist()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vectors(case: dict[str, Any]) -> None:
    events = table(case["events"]).drop_columns(["sign"])
    wanted = case["rows"], sorted(case["matches"])
    query = stretto.compile(query_of(case), events.schema, time="t").bound
    defined = [
        [one.start, one.reached, -1 if one.expired is None else one.expired, list(one.positions)]
        for one in evaluate_timeouts(query, events, case.get("advance"))
    ]
    found = evaluate_sase(query, events) if isinstance(query, BoundSase) else evaluate(query, events)
    matches = sorted([one.start, one.end, sorted(one.positions)] for one in found)
    assert (defined, matches) == wanted
    for seed in range(4):
        assert split(pushed(case, events, seed)) == wanted
    if "advance" not in case:
        rows = stretto.match(query_of(case), events, time="t", timeouts=True, output="positions").to_pylist()
        assert split(rows) == wanted
