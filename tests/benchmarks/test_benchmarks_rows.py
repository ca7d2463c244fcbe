"""The benchmark of row patterns, at toy size: all sides find the same, and a wrong count fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks import compared
from benchmarks.rows import sides, suite
from benchmarks.rows.suite import CASES, prices


@pytest.mark.parametrize("name", CASES["cases"])
def test_all_sides_find_the_expected_count(name: str, tmp_path: Path) -> None:
    case = CASES["cases"][name]
    events = tmp_path / "toy.parquet"
    pq.write_table(prices(**CASES["streams"]["toy"]), events)
    asked = ["stretto", *(["ceql"] if "ceql" in case else []), *(["peer"] if case.get("peer", True) else [])]
    found = {side: sides.work({**case, "side": side, "events": str(events), "repeat": 1}) for side in asked}
    assert {one["count"] for one in found.values() if "missing" not in one} == {case["expected"]["toy"]}
    assert not {"stretto", "ceql"} & {side for side, one in found.items() if "missing" in one}


def test_moves_compare_neighbours_of_a_key() -> None:
    table = prices(1_000, 7)
    before: dict[int, int] = {}
    for row in table.to_pylist():
        assert row["move"] == np.sign(row["price"] - before.get(row["k"], row["price"]))
        before[row["k"]] = row["price"]


def test_a_wrong_count_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        compared, "run_worker", lambda module, job: {"count": 3, "processor": [1.0], "side": job["side"]}
    )
    (row,) = suite.run(tmp_path, "toy", ["dead"])
    assert row.wrong == ["stretto finds 3 matches, expected 0"]
    assert row.ratio("peer") is None
