"""The benchmark of what users run, at toy size: all sides find the same, and a wrong count fails."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.compared import Row
from benchmarks.users import sides
from benchmarks.users.suite import CASES, PEERS, clicks


@pytest.mark.parametrize("name", CASES["cases"])
def test_all_sides_find_the_expected_count(name: str, tmp_path: Path) -> None:
    case = CASES["cases"][name]
    events = tmp_path / "toy.parquet"
    pq.write_table(clicks(**CASES["streams"]["toy"]), events)
    found = {}
    for side in ("stretto", *(peer for peer in PEERS if peer in case)):
        job = {**case, "side": side, "events": str(events), "output": "events", "repeat": 1}
        found[side] = sides.work(job)
    expected = case["expected"]["toy"]
    assert {side: one["count"] for side, one in found.items() if "missing" not in one} == {
        side: expected for side, one in found.items() if "missing" not in one
    }
    assert "missing" not in found["stretto"]


def test_a_wrong_count_fails_and_a_peer_that_is_missing_is_said_to_be() -> None:
    row = Row("funnel", "toy", 10, 3, {"stretto": {"count": 4, "processor": [1.0]}, "chdb": {"missing": "chdb"}})
    row.check("keys")
    assert row.wrong == ["stretto finds 4 keys, expected 3"]
    assert row.ratio(*PEERS) is None
    row.sides["polars"] = {"count": 3, "processor": [2.0, 3.0]}
    assert row.ratio(*PEERS) == 2.0
