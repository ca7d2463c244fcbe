"""The parts of the Spark benchmarks on which their numbers rest: streams, queries that correspond, and hand-written rivals."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import stretto
from benchmarks.spark import byhand, queries
from benchmarks.spark.outcome import Comparison, Side
from benchmarks.spark.streams import Stream

ROWS = 20_000
KEYS = 50


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return pa.Table.from_batches(Stream(ROWS, KEYS).batches())


def test_moves_compare_an_accounts_neighbours(events: pa.Table) -> None:
    last: dict[int, float] = {}
    for row in events.select(["account", "price", "move"]).to_pylist():
        before = last.get(row["account"], row["price"])
        wanted = "DOWN" if row["price"] < before else "UP" if row["price"] > before else "SAME"
        assert row["move"] == wanted
        last[row["account"]] = row["price"]


def test_files_hold_the_stream_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: pa.Table) -> None:
    monkeypatch.setenv("STRETTO_BENCHMARK_CACHE", str(tmp_path))
    folder = Stream(ROWS, KEYS, file_rows=3_000).folder()
    paths = sorted(folder.glob("*.parquet"))
    assert len(paths) == 7
    assert sorted(paths, key=lambda path: path.stat().st_mtime) == paths
    assert pa.concat_tables([parquet.read_table(path) for path in paths]).equals(events)
    assert Stream(ROWS, KEYS, file_rows=3_000).folder() == folder
    assert not [path for path in folder.parent.iterdir() if path != folder]


def test_a_fall_is_one_match(events: pa.Table) -> None:
    falls = 0
    moves: dict[int, list[str]] = {}
    for row in events.select(["account", "move"]).to_pylist():
        moves.setdefault(row["account"], []).append(row["move"])
    for of_account in moves.values():
        falls += sum(pair == ("DOWN", "UP") for pair in zip(of_account, of_account[1:], strict=False))
    assert stretto.match(queries.V_SHAPE, events, time="millis", output="positions").num_rows == falls > 1000
    assert stretto.sql(f"SELECT * FROM events {queries.v_shape_clause('millis')}", events=events).num_rows == falls
    of_prices = f"SELECT * FROM events {queries.v_shape_of_prices_clause('millis')}"
    assert stretto.sql(of_prices, events=events).num_rows == falls


@pytest.mark.parametrize("length", [3, 6])
def test_the_python_function_finds_the_same_sequences(events: pa.Table, length: int) -> None:
    window = 100 * KEYS * 10
    query = queries.sequence(length, window, keyed=True)
    counted = 0
    for account in range(3):
        rows = [row for row in events.to_pylist() if row["account"] == account]
        counted += byhand.count_sequences(rows, list(queries.STEPS[:length]), window)
    found = stretto.match(query, events, time="millis", output="positions")
    assert counted == sum(account < 3 for account in found.column("account").to_pylist()) > 0


def test_different_counts_are_wrong() -> None:
    found = Comparison("b", "c", [Side("x", 10, [2.0], matches=3), Side("y", 10, [4.0], matches=3)], of="x", to=("y",))
    found.same_matches()
    assert (found.wrong, found.ratio) == ("", 2.0)
    found.sides[1].matches = 4
    found.same_matches()
    assert found.wrong == "matches differ: x 3, y 4"
