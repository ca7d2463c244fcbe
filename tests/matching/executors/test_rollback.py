"""Rows that overflow are left out by going back to a state that is copied now and then, not at each push."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.engines.nfab.runner import NfabRunner
from stretto.matching import lifecycle as retries
from stretto.matching.executors import in_order as ordered

QUERY = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.v < b.v } WITHIN 100000 RETURN a.v + b.v AS total"
SCHEMA = pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64())])


class Clock:
    """Copying takes a hundred times as long as reading a row."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many copies were taken."""
    clock, copies = Clock(), [0]
    copied, advance = ordered.InOrderExecutor._copied, ordered.InOrderExecutor._advance

    def copying(self: Any) -> Any:
        copies[0] += 1
        clock.now += 100
        return copied(self)

    def reading(self: Any, *given: Any, **named: Any) -> Any:
        clock.now += 1
        return advance(self, *given, **named)

    monkeypatch.setattr(retries, "clock", clock)
    monkeypatch.setattr(ordered.InOrderExecutor, "_copied", copying)
    monkeypatch.setattr(ordered.InOrderExecutor, "_advance", reading)
    return copies


def rows(*given: tuple[str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, one, strict=True)) for one in given], SCHEMA)


def test_a_state_is_not_copied_at_each_push(counted: list[int]) -> None:
    matcher = stretto.Matcher(QUERY, SCHEMA, time="t", disorder=0)
    matcher.push(rows(*(("A", at, at) for at in range(50))))
    for at in range(50, 1050):
        matcher.push(rows(("C", at, 0)))
    assert counted[0] <= 2 + 1050 / (100 * retries.SHARE)


@pytest.mark.parametrize("share", [0, 4, 1e9])
def test_a_row_is_left_out_however_long_ago_the_copy_was(
    share: float, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "SHARE", share)
    matcher = stretto.Matcher(QUERY, SCHEMA, time="t", disorder=0, positions=False)
    right = stretto.Matcher(QUERY, SCHEMA, time="t", disorder=0, positions=False)
    found, wanted, refused = [], [], []
    for at in range(60):
        good = rows(("AB"[at % 3 % 2], 2 * at, at))
        wrong = [("B", 2 * at, (1 << 63) - 1)] if at % 7 == 5 else []
        wanted += right.push(good).to_pylist()
        try:
            found += matcher.push(pa.concat_tables([rows(*wrong), good])).to_pylist()
        except stretto.DataError as error:
            refused.append(str(error))
    found += matcher.finish().to_pylist()
    wanted += right.finish().to_pylist()
    assert ["the row was left out; all others were taken" in one for one in refused] == [True] * 8
    assert [(row["start_time"], row["end_time"], row["total"]) for row in found] == [
        (row["start_time"], row["end_time"], row["total"]) for row in wanted
    ]
    assert matcher.snapshot()


def test_punctuations_without_events_are_counted_once_and_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(retries, "clock", clock)
    copied, reach = ordered.InOrderExecutor._copied, NfabRunner.reach

    def copying(self: Any) -> Any:
        clock.now += 100
        return copied(self)

    def reaching(self: Any, value: Any) -> Any:
        clock.now += 1
        return reach(self, value)

    monkeypatch.setattr(ordered.InOrderExecutor, "_copied", copying)
    monkeypatch.setattr(NfabRunner, "reach", reaching)
    matcher = stretto.Matcher(QUERY, SCHEMA, time="t", disorder=0)
    matcher.push(rows(("A", 0, 1)))
    kept: retries.Retries[Any] = matcher._executor._retries
    for at in range(1, 1001):
        clock.now += 7  # what the caller does in between is no reading
        matcher.advance(at)
        assert kept._reading <= at
        assert len(kept._since) <= 100 * retries.SHARE + 2
    matcher.push(rows(("B", 1001, 2)))
    assert matcher.finish()["total"].to_pylist() == [3]


def test_sums_of_doubles_are_there_after_a_row_was_left_out() -> None:
    query = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.v * 4 < b[i].v * 4 } RETURN TOTAL sum(b[].w), min(b[].w)"
    matcher = stretto.Matcher(query, time="t", disorder=2)
    rows = [("A", 0, 0.0), ("B", 1, 1.5), ("B", 1, 2.5), ("B", 1 << 62, 1.0), ("B", 1, 4.0), ("C", 0, 0.0)]
    with pytest.raises(stretto.DataError, match="row 3"):
        matcher.push([{"type": kind, "t": 3 * at, "v": v, "w": w} for at, (kind, v, w) in enumerate(rows)])
    assert matcher.finish().to_pylist() == [{"sum_b_w": 32.0, "min_b_w": 1.5}]
