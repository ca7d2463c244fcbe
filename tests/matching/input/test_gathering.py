"""Rows of tables in chunks: the same as from a table in one piece, whatever the chunks and types, at the cost of what is taken."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.columns import gathering
from stretto.columns.gathering import Gatherer
from stretto.matching.output.match_table import History
from tests.conftest import cases

KINDS: dict[pa.DataType, list[Any]] = {
    pa.int8(): [1, -2, None],
    pa.uint64(): [0, 2**64 - 1],
    pa.int64(): [5, None, -(2**63)],
    pa.float32(): [0.5, None],
    pa.float64(): [1.5, float("inf"), -0.0],
    pa.bool_(): [True, False, None],
    pa.string(): ["", "é", "a longer text", None],
    pa.large_string(): ["x", "y"],
    pa.binary(): [b"", b"\0", None],
    pa.timestamp("us", "UTC"): [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None],
    pa.date32(): [dt.date(2024, 1, 1), None],
    pa.date64(): [dt.date(2024, 1, 1), None],
    pa.duration("ms"): [dt.timedelta(seconds=1), None],
    pa.time64("us"): [dt.time(1, 2), None],
    pa.decimal128(9, 2): [Decimal("1.25"), None],
    pa.month_day_nano_interval(): [(1, 2, 3), None],
    pa.null(): [None],
    pa.list_(pa.string()): [[], ["a", None], None],
    pa.struct([("a", pa.int64()), ("b", pa.string())]): [{"a": 1, "b": "x"}, None, {"a": None, "b": None}],
    pa.dictionary(pa.int32(), pa.string()): ["p", "q", None, "r"],
    pa.dictionary(pa.int8(), pa.int64()): [7, 8, None],
    pa.list_(pa.dictionary(pa.int32(), pa.string())): [["p"], ["q", "p"], None],
}


def chunked(rng: random.Random, kind: pa.DataType) -> pa.ChunkedArray:
    """Chunks of any length, some slices of longer ones, each with a dictionary of its own."""
    chunks = []
    for _ in range(rng.randint(1, 6)):
        values = rng.choices(KINDS[kind], k=rng.randint(0, 9))
        if rng.random() < 0.5:
            values = [value for value in values if value is not None]
        chunk = pa.array(values, kind)
        if rng.random() < 0.5:
            begin = rng.randint(0, len(chunk))
            chunk = chunk.slice(begin, rng.randint(0, len(chunk) - begin))
        chunks.append(chunk)
    return pa.chunked_array(chunks, kind)


def same(found: pa.Table, expected: pa.Table) -> None:
    found.validate(full=True)
    assert found.schema == expected.schema
    assert found.to_pylist() == expected.to_pylist()


def test_taking_is_that_of_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(cases(1500)):
        rng = random.Random(seed)
        monkeypatch.setattr(gathering, "SMALL", rng.choice([0, 0, 4]))
        columns = [chunked(rng, rng.choice(list(KINDS))) for _ in range(rng.randint(1, 4))]
        rows = min(len(column) for column in columns)
        table = pa.table({str(i): column.slice(0, rows) for i, column in enumerate(columns)})
        gatherer = Gatherer(table)
        for _ in range(3):
            chosen = np.array(rng.choices(range(rows), k=rng.randint(0, 12)) if rows else [], np.int64)
            if rng.random() < 0.3:
                chosen.sort()
            names = rng.sample(table.column_names, rng.randint(1, len(columns)))
            expected = pa.table({name: table[name].combine_chunks() for name in names}).take(pa.array(chosen))
            try:
                same(gatherer.take(chosen, names), expected)
            except AssertionError:
                pytest.fail(f"seed {seed}: rows {chosen} of {table}")


def test_a_history_with_gaps_takes_by_position() -> None:
    history = History(["x"])
    history.append(np.array([2, 5]), pa.table({"x": ["a", "b"]}))
    history.append(np.array([7, 8, 9]), pa.table({"x": ["c", "d", "e"]}))
    assert history.take(np.array([9, 2, 7]), ["x"])["x"].to_pylist() == ["e", "a", "c"]
    history.forget(7)
    assert history.take(np.array([9, 8]), ["x"])["x"].to_pylist() == ["e", "d"]


def test_a_history_takes_by_position_whatever_was_let_go() -> None:
    """Rows are added, with gaps and without, the old ones are forgotten, or only some are kept; each is its position."""
    for seed in range(200):
        rng = random.Random(seed)
        history, known, end = History(["x"]), np.zeros(0, np.int64), 0
        for _ in range(8):
            match rng.choice(["append", "append", "append", "forget", "retain"]):
                case "append":
                    end += rng.choice([0, 0, 3])
                    fresh = np.arange(end, end := end + rng.randint(1, 5))
                    fresh = fresh[:: rng.choice([1, 1, 2])]
                    history.append(fresh, pa.table({"x": fresh}))
                    known = np.concatenate([known, fresh])
                case "forget":
                    oldest = rng.randint(0, end)
                    history.forget(oldest)
                    known = known[known >= oldest]
                case _:
                    known = np.array([one for one in known if rng.random() < 0.4], np.int64)
                    history.retain(known)
                    history.kept = history.rows
            asked = np.array(rng.choices(known, k=6) if known.size else [], np.int64)
            if asked.size:
                assert history.take(asked, ["x"])["x"].to_pylist() == asked.tolist(), f"seed {seed}"


def test_rows_that_are_not_there_are_refused() -> None:
    gatherer = Gatherer(pa.table({"x": [1, 2]}))
    for rows in ([2], [-1, 0]):
        with pytest.raises(IndexError):
            gatherer.take(np.array(rows), ["x"])


def test_a_call_takes_from_the_chunks_where_matches_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """``pyarrow``'s ``take`` on chunks costs the whole table, once a piece of matches."""
    monkeypatch.setattr(gathering, "SMALL", 0)
    chunk = pa.table({"type": ["A", "B"], "n": [1, 2]})
    touched: list[int] = []
    placed = Gatherer._place

    def noted(self: Gatherer, rows: Any) -> Any:
        place = placed(self, rows)
        touched.append(len(place.chunks))
        return place

    monkeypatch.setattr(Gatherer, "_place", noted)
    found = stretto.match("SELECT * FROM S WHERE A AS a : B AS b", pa.concat_tables([chunk] * 50))
    assert found.num_rows == 50
    assert set(touched) == {1}
