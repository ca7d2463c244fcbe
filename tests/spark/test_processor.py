"""The stateful operator by Spark's own tester, without a JVM: timers, states that come and go, states that are damaged."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from stretto.errors import SnapshotError
from stretto.frame import arrow_table

pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="needs PySpark 4.2 or newer")

from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from stretto.spark.streaming import STATE
from stretto.spark.streaming.keeping import Settings
from stretto.spark.streaming.packing import arrived, write_table
from stretto.spark.streaming.processor import Buckets
from stretto.spark.streaming.state import Owner

SCHEMA = pa.schema([("type", pa.string()), ("t", pa.int64()), ("k", pa.string())])
TEXT = "SELECT b[t] FROM S WHERE A ; B AS b PARTITION BY [k] WITHIN 10 seconds"


def operator(**changes: Any) -> TwsTester:
    task = {
        "text": TEXT,
        "schema": SCHEMA.serialize().to_pybytes(),
        "roles": ("type", "t", None, "s"),
        "output": "events",
        "valuations": False,
        "language": "ceql",
        "budget": None,
    }
    settings: dict[str, Any] = {"time": "t", "sequence": None, "time_unit": "s", "late": "side", "event_id": None}
    settings |= {"delay": 0, "buckets": 8}
    made = Buckets(task | changes, Settings(**settings))
    return TwsTester(made, timeMode="EventTime", eventTimeExtractor=lambda row: 2**60)


def rows(*events: tuple[str, int, str]) -> list[Row]:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, event, strict=True)) for event in events], schema=SCHEMA)
    return [Row(bucket=3, source=0, number=0, data=write_table(table))]


def shown(out: list[Row]) -> list[tuple[int, int]]:
    tables = [arrow_table(row.data) for row in out if row.data is not None]
    return [(row["start_time"], row["end_time"]) for table in tables for row in table.to_pylist()]


def test_a_timer_releases_what_is_held_and_frees_the_state() -> None:
    tws = operator()
    assert shown(tws.test(3, rows(("B", 12, "x"), ("A", 10, "x"), ("A", 11, "y")))) == []
    assert tws.peekValueState(STATE, 3) is not None
    assert shown(tws.setWatermark(12_000)) == []  # 12 itself is not passed yet
    assert list(tws.handle.listTimers()) == [12_001]
    assert shown(tws.setWatermark(12_001)) == [(10, 12)]
    assert tws.peekValueState(STATE, 3) is not None  # the window of the last event is open until 22
    tws.setWatermark(40_000)
    assert tws.peekValueState(STATE, 3) is None
    assert list(tws.handle.listTimers()) == []


def test_bucket_0_keeps_its_header() -> None:
    tws = operator()
    assert shown(tws.test(0, [Row(bucket=0, source=0, number=0, data=b"")])) == []
    assert tws.peekValueState(STATE, 0) is not None
    tws.test(3, [Row(bucket=3, source=0, number=0, data=b"")])
    assert tws.peekValueState(STATE, 3) is None


def test_a_state_that_does_not_fit_is_refused() -> None:
    tws = operator()
    tws.test(3, rows(("A", 10, "x")))
    state = bytes(tws.peekValueState(STATE, 3)[0])
    damaged = bytearray(state)
    damaged[len(state) // 2] ^= 4
    tws.updateValueState(STATE, 3, (bytes(damaged),))
    with pytest.raises(SnapshotError, match="damaged: its checksum does not match"):
        tws.test(3, rows(("B", 11, "x")))
    other = operator(text=TEXT.replace("10", "11"))
    other.updateValueState(STATE, 3, (state,))
    with pytest.raises(SnapshotError, match="state of another query"):
        other.test(3, rows(("B", 11, "x")))


def test_a_query_in_other_words_goes_on() -> None:
    tws = operator()
    tws.test(3, rows(("A", 10, "x")))
    state = bytes(tws.peekValueState(STATE, 3)[0])
    same = operator(text=f"-- the same\n{TEXT.replace('SELECT', 'select').replace(' ', '  ')}")
    same.updateValueState(STATE, 3, (state,))
    assert shown(same.test(3, rows(("B", 11, "x")))) == []
    assert same.peekValueState(STATE, 3) is not None
    other = operator(text=TEXT.replace("10", "11"))
    other.updateValueState(STATE, 3, (state,))
    with pytest.raises(SnapshotError, match=r"changed:    its WITHIN was 10.*, is 11"):
        other.test(3, rows(("B", 11, "x")))


def patterns_owner(*texts: str, late: str = "drop", **columns: str) -> Owner:
    query = [[f"p{at}", text, "ceql", None] for at, text in enumerate(texts)]
    return Owner(query, {"t": "int64", **columns}, {"patterns": str(hash(texts))}, late)


def test_patterns_are_compared_one_by_one() -> None:
    first, second = "SELECT * FROM S WHERE A ; B WITHIN 10 [t]", "SELECT * FROM S WHERE A ; C WITHIN 10 [t]"
    before = patterns_owner(first, second)
    patterns_owner(
        first.replace(" ; ", " /* then */ ;\n"), second.lower().replace(" a ; c", " A ; C").replace("from s", "FROM S")
    ).check(before.header)
    with pytest.raises(SnapshotError, match=r"changed:    pattern 'p1': its WITHIN was 10 \[t\], is 20 \[t\]"):
        patterns_owner(first, second.replace("10", "20")).check(before.header)
    with pytest.raises(SnapshotError, match="changed:    pattern 'p1' is gone"):
        patterns_owner(first).check(before.header)
    with pytest.raises(SnapshotError, match="with late='drop', and the query now has late='side'"):
        patterns_owner(first, second, late="side", x="int64").check(before.header)
    with pytest.raises(SnapshotError, match="'x' was missing, is int64"):
        patterns_owner(first, second, x="int64").check(before.header)


def test_automata_are_compared_by_what_they_mean() -> None:
    """Their texts may leave the events' attributes to the columns."""
    text = 'final = ["q1"]\narcs = [{ source = "q0", target = "q1", when = "e.x > 3 AND NOT e.t < 2" }]'

    def owner(text: str) -> Owner:
        columns = {"t": "int64", "x": "int64", "of": "struct<a: int64>"}
        return Owner([["a", text, "afa", None]], columns, {"patterns": str(hash(text))}, "drop")

    before = owner(text)
    owner(f"# the same\n{text.replace('e.x > 3 AND NOT', '(e.x>3)  and not')}").check(before.header)
    with pytest.raises(SnapshotError, match="changed:    pattern 'a': what it asks"):
        owner(text.replace("> 3", "> 4")).check(before.header)


def test_what_an_earlier_version_wrote_of_patterns_is_read() -> None:
    """It had a line a pattern, and a digest of all."""
    own = patterns_owner("SELECT * FROM S WHERE A ; B")
    old = {**own.header, "query": "p0 from the beginning: SELECT * FROM S WHERE A ; B"}
    del old["late"]
    own.check(old)
    with pytest.raises(SnapshotError, match="another query"):
        patterns_owner("SELECT * FROM S WHERE A ; C").check(old)
    with pytest.raises(SnapshotError, match="other patterns"):
        own.check({**old, "settings": {"patterns": "another"}})


def test_late_events_are_a_row_of_their_own() -> None:
    tws = operator()
    tws.setWatermark(20_000)
    out = tws.test(3, rows(("A", 10, "x"), ("A", 20, "x")))
    assert [arrow_table(row.late_data).to_pylist() for row in out if row.late_data is not None] == [
        [{"type": "A", "t": 10, "k": "x"}]
    ]
    assert [(row.late, row.held) for row in out][-1] == (1, 1)


def test_what_arrives_has_an_order_that_the_shuffle_does_not_change() -> None:
    tables = [pa.table({"n": [n]}) for n in range(4)]
    packed = [(1, 0, write_table(tables[2])), (0, 1, write_table(tables[1])), (1, 1, write_table(tables[3]))]
    packed += [(0, 0, write_table(tables[0])), (7, 0, b"")]
    for order in (packed, packed[::-1]):
        got, changes = arrived(order)
        assert changes is None
        assert got is not None
        assert got.column("n").to_pylist() == [0, 1, 2, 3]
    assert arrived([(0, 0, b"")]) == (None, None)


def test_a_dataflow_has_the_same_operator() -> None:
    from stretto.dataflow import stream
    from stretto.dataflow.plan_json import to_json
    from stretto.spark.dataflows.groups import INPUT, OUTPUT

    costs = stream("costs", {"cost": int}, insert_only=True)
    row = [("k", pa.string()), ("most", pa.int64()), *((name, pa.int64()) for name in ("vs", "ve", "ve_new"))]
    schemas = {"keys": row[:1], "time": row[2:3], "kinds": row}
    task = {name: pa.schema(one).serialize().to_pybytes() for name, one in schemas.items()} | {
        "plan": to_json({OUTPUT: costs.window(5).aggregate(most="max(cost)")}),
        "result": tuple(name for name, _ in row),
        "vs": "vs",
    }
    settings = Settings("vs", None, "s", "drop", None, 0, 8)
    tws = TwsTester(Buckets(task, settings), timeMode="EventTime", eventTimeExtractor=lambda row: 2**60)

    def arrive(*events: tuple[str, int, int]) -> list[tuple[int, int, int | None]]:
        made = pa.table([list(column) for column in zip(*events, strict=True)], names=["k", "cost", "vs"])
        packed = Row(bucket=3, source=0, number=0, data=write_table(made.replace_schema_metadata({INPUT: b"costs"})))
        tables = [arrow_table(out.data) for out in tws.test(3, [packed]) if out.data is not None]
        return sorted((one["most"], one["vs"], one["ve_new"]) for table in tables for one in table.to_pylist())

    assert arrive(("x", 4, 10), ("y", 9, 10)) == [(4, 10, None), (9, 10, None)]
    assert arrive(("x", 5, 12)) == [(4, 10, 12), (5, 12, None), (5, 15, None)]
    assert list(tws.handle.listTimers()) == [17_001]
    tws.setWatermark(17_001)
    assert tws.peekValueState(STATE, 3) is None
    assert list(tws.handle.listTimers()) == []
    assert arrive(("x", 1, 12)) == []  # late
