"""stretto.Cleanse: what passes, what waits, and what is late."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, SnapshotError
from tests.cases import agree, reorder
from tests.conftest import cases

SCHEMA = pa.schema([("t", pa.int64()), ("s", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("sign", pa.int8())])


def test_what_passes_and_what_waits() -> None:
    """Any split, with snapshots; a failure names its seed."""
    seeds = cases(500)
    assert sum(agree(reorder, range(seeds))) > seeds


# ---- What people see


def test_invariant() -> None:
    """Below punctuation + speculation events pass as they come; others wait, in order."""
    cleanse = stretto.Cleanse(time="t", speculation=5)
    assert cleanse.push([{"t": 7}, {"t": 1}]).num_rows == 0
    assert cleanse.punctuation is None
    assert cleanse.advance(1).column("t").to_pylist() == [1]
    assert cleanse.push([{"t": 5}, {"t": 2}, {"t": 6}, {"t": 5}]).column("t").to_pylist() == [5, 2, 5]
    assert cleanse.advance(3).column("t").to_pylist() == [6, 7]
    assert cleanse.punctuation == 3
    assert cleanse.stats == {
        "rows": 6,
        "late": 0,
        "released": 6,
        "annihilated": 0,
        "buffered": 0,
        "peak": 2,
        "bytes": 0,
    }
    assert cleanse.finish().num_rows == 0
    with pytest.raises(OptionError, match="finished"):
        cleanse.push([{"t": 9}])


def test_late_events() -> None:
    for late in ("error", "drop", "side"):
        cleanse = stretto.Cleanse(time="t", disorder=2, late=late)
        cleanse.push([{"t": 1, "x": "a"}, {"t": 9, "x": "b"}])
        late_rows = [{"t": 7, "x": "on time"}, {"t": 6, "x": "late"}]
        if late == "error":
            with pytest.raises(DataError, match="row 3 is late: its time is 6, and the punctuation stands at 7"):
                cleanse.push(late_rows)
            assert cleanse.position == 2
        else:
            cleanse.push(late_rows)
            assert cleanse.late == 1
            assert cleanse.late_events().column("x").to_pylist() == (["late"] if late == "side" else [])
            assert cleanse.late_events().num_rows == 0
    plain = stretto.Cleanse(SCHEMA, time="t")
    plain.advance(5)
    with pytest.raises(DataError, match="goes back from 5 to 4"):
        plain.advance(4)


def test_retractions_annihilate_with_what_waits() -> None:
    cleanse = stretto.Cleanse(time="t", sign="sign", late="error")
    rows = [{"t": 5, "x": 1, "sign": 1}, {"t": 4, "x": 2, "sign": 1}, {"t": 5, "x": 1, "sign": -1}]
    assert cleanse.push(rows).num_rows == 0
    assert cleanse.buffered == 1
    with pytest.raises(
        DataError, match="row 3 retracts an event that is not there: none that waits has its time and payload"
    ):
        cleanse.push(rows[2:])
    assert cleanse.finish().column("x").to_pylist() == [2]
    assert cleanse.stats["annihilated"] == 2


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.float64(), pa.date32(), pa.date64(), pa.timestamp("ns"), pa.timestamp("s", "UTC")]
)
def test_types_of_time(kind: pa.DataType) -> None:
    day = 86_400_000 if pa.types.is_date64(kind) else 1
    ticks = pa.array([5 * day, 1 * day, 3 * day], pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    cleanse = stretto.Cleanse(time="t", disorder=2 * day)
    found = [cleanse.push(pa.table({"t": ticks.slice(i, 1)})) for i in (1, 2, 0)]
    assert pa.concat_tables(found).column("t").combine_chunks().equals(ticks.take([1]))
    again = stretto.Cleanse(time="t", disorder=2 * day).restore(cleanse.snapshot())
    assert again.punctuation == cleanse.punctuation == ticks[2].as_py()
    assert again.finish().column("t").combine_chunks().equals(ticks.take([2, 0]))


def test_spans() -> None:
    second = pa.table({"t": pa.array([dt.datetime(2024, 1, 1, 0, 0, s) for s in (9, 4, 1)])})
    for span in ("5 seconds", dt.timedelta(seconds=5), 5_000_000):
        assert stretto.Cleanse(time="t", disorder=span, late="drop").push(second).num_rows == 0
        cleanse = stretto.Cleanse(time="t", speculation=span)
        cleanse.push(second)
        assert cleanse.advance(dt.datetime(2024, 1, 1)).column("t").to_pylist() == [
            second["t"][i].as_py() for i in (2, 1)
        ]
    cleanse = stretto.Cleanse(time="t", disorder="1 minute", time_unit="s")
    assert cleanse.push([{"t": 1}, {"t": 62}]).num_rows == 1
    for options, words in [
        ({"disorder": -1}, "not negative"),
        ({"speculation": "soon"}, "expected ticks"),
        ({"speculation": True}, "expected ticks"),
        ({"late": "never"}, "late='never'"),
    ]:
        with pytest.raises(OptionError, match=words):
            stretto.Cleanse(time="t", **options)
    for options, words in [
        ({"disorder": "5 seconds"}, "unit is not known"),
        ({"disorder": 1.5}, "whole ticks"),
        ({"disorder": "0.5 ms", "time_unit": "ms"}, "no whole number"),
    ]:
        with pytest.raises(OptionError, match=words):
            stretto.Cleanse(SCHEMA, time="t", **options)
    with pytest.raises(OptionError, match="counts days"):
        stretto.Cleanse({"t": pa.date32()}, time="t", disorder="1 hour")


def test_wrong_events() -> None:
    with pytest.raises(DataError, match="no column 'time'"):
        stretto.Cleanse(time="time").push([{"times": 1}])
    with pytest.raises(DataError, match="NULL at row 1"):
        stretto.Cleanse(time="t").push([{"t": 1}, {"t": None}])
    with pytest.raises(DataError, match=r"'sign' \(sign\) is 0 at row 0"):
        stretto.Cleanse(time="t", sign="sign").push([{"t": 1, "sign": 0}])
    with pytest.raises(DataError, match=r"'s' \(sequence\) is NULL at row 0"):
        stretto.Cleanse(SCHEMA, time="t", sequence="s").push([{"t": 1, "s": None, "k": "a", "v": 1, "sign": 1}])
    cleanse = stretto.Cleanse(SCHEMA, time="t", partition_by=["k"])
    cleanse.push([{"t": 1, "s": 1, "k": None, "v": 1, "sign": 1}])
    assert cleanse.finish().num_rows == 0


def test_snapshots_are_of_the_same_options() -> None:
    snapshot = stretto.Cleanse(SCHEMA, time="t", disorder=3).snapshot()
    with pytest.raises(SnapshotError, match="disorder is 3 there, 4 here"):
        stretto.Cleanse(SCHEMA, time="t", disorder=4).restore(snapshot)
    with pytest.raises(SnapshotError, match="other columns"):
        stretto.Cleanse({"t": int}, time="t", disorder=3).restore(snapshot)
    with pytest.raises(SnapshotError, match="not of a Cleanse"):
        stretto.Cleanse(SCHEMA, time="t").restore(stretto.Matcher("SELECT * FROM S WHERE A").snapshot())
    early = stretto.Cleanse(time="t")
    early.advance(7)
    again = stretto.Cleanse(time="t").restore(early.snapshot())
    assert again.punctuation == 7
    with pytest.raises(DataError, match="late"):
        again.push([{"t": 6}])


def test_many_rows_in_pieces_of_every_size() -> None:
    rows = 200_000
    choose = np.random.default_rng(7)
    time = np.arange(rows) // 3
    order = np.argsort(time + choose.integers(0, 400, rows) * (choose.random(rows) < 0.05), kind="stable")
    events = pa.table({"t": time, "n": np.arange(rows)}).take(order)
    right = events.take(pa.array(np.argsort(events["t"].to_numpy(), kind="stable")))
    for step in (rows, 70_000, 999):
        cleanse = stretto.Cleanse(time="t", disorder=400)
        tables = [cleanse.push(events.slice(at, step)) for at in range(0, rows, step)]
        assert pa.concat_tables([*tables, cleanse.finish()]).combine_chunks().equals(right.combine_chunks()), step
        assert cleanse.stats["peak"] < 1300
