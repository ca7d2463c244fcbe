"""Buckets of a dataflow over streams: what comes out sums up to the history of a batch, whatever the micro-batches and restarts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pytest

from stretto.dataflow import Dataflow, Stream, constant, fixpoint, stream
from stretto.dataflow.plan_json import to_json
from stretto.dataflow.stream import keyed
from stretto.errors import DataError, SnapshotError
from stretto.spark.dataflows import groups as of_batches
from stretto.spark.dataflows.group_bucket import GroupBucket
from stretto.spark.dataflows.groups import INPUT, OUTPUT, Groups, run_groups
from stretto.spark.streaming.keeping import Settings
from stretto.spark.streaming.packing import write_table
from tests.conftest import cases

LINKS = stream("links", {"src": str, "dst": str})
REACH = fixpoint(
    lambda r: LINKS.union(LINKS.join(r, on={"dst": "src"}).project(src="src", dst="dst_right")).distinct(),
    schema=LINKS,
)
ROW = pa.schema(
    [
        ("net", pa.string()),
        ("src", pa.string()),
        ("dst", pa.string()),
        *((t, pa.int64()) for t in ("vs", "ve", "ve_new")),
    ],
    metadata={INPUT: b"links"},
)
Rows = list[dict[str, Any]]
SECOND = 10**6


def groups(made: Stream = REACH, time: pa.DataType | None = None) -> Groups:
    kind = time or pa.int64()
    row = pa.schema([("net", pa.string()), *made.schema.items(), *((t, kind) for t in ("vs", "ve", "ve_new"))])
    parts = (pa.schema([("net", pa.string())]), pa.schema([("vs", kind)]), row)
    keys, times, kinds = (one.serialize().to_pybytes() for one in parts)
    return Groups(to_json({OUTPUT: made}), keys, times, tuple(row.names), kinds, "vs")


def bucket(late: str = "drop", made: Stream = REACH, **changes: Any) -> GroupBucket:
    settings = {
        "time": "vs",
        "sequence": None,
        "time_unit": "s",
        "late": late,
        "event_id": None,
        "delay": 0,
        "buckets": 8,
    }
    return GroupBucket(groups(made), Settings(**settings | changes))  # type: ignore[arg-type]


def packed(rows: Rows, schema: pa.Schema = ROW) -> list[tuple[int, int, bytes]]:
    return [(0, 0, write_table(pa.Table.from_pylist(rows, schema=schema)))]


def call(one: GroupBucket, rows: Rows, watermark: int | None, schema: pa.Schema = ROW) -> Rows:
    """A micro-batch; the watermark is in seconds."""
    one.receive(packed(rows, schema) if rows else [], None if watermark is None else watermark * SECOND)
    return [row for table in one.advance(watermark) for row in table.to_pylist()]


def events(seed: int) -> list[tuple[int, dict[str, Any]]]:
    """Rows with the times at which they come: retractions behind what they take back."""
    choose = random.Random(seed)
    found = []
    for at in range(60):
        row = {
            "net": choose.choice("xy"),
            "src": choose.choice("abcd"),
            "dst": choose.choice("abcd"),
            "vs": at,
            "ve_new": None,
        }
        row["ve"] = None if choose.random() < 0.1 else at + choose.randint(1, 15)
        found.append((at, row))
        if choose.random() < 0.4:
            now = at + choose.randint(0, 6)
            if row["ve"] is None or now < row["ve"]:
                found.append((now, {**row, "ve_new": now}))
    return sorted(found, key=lambda pair: pair[0])


def history(changes: Rows) -> Counter[str]:
    """What insertions and retractions come to, by seconds."""
    found: Counter[str] = Counter()
    for row in changes:
        payload = str([one for name, one in row.items() if name not in ("vs", "ve", "ve_new")])
        ve = 200 if row["ve"] is None else row["ve"]
        begin, sign = (row["vs"], 1) if row["ve_new"] is None else (row["ve_new"], -1)
        for at in range(begin, ve):
            found[f"{payload} {at}"] += sign
    assert all(count >= 0 for count in found.values())
    return Counter({key: count for key, count in found.items() if count})


def wanted(rows: Rows, made: Stream = REACH) -> Counter[str]:
    flow = Dataflow(result=keyed({"r": made}, {"net": pa.string()})["r"])
    flow.push("links", pa.Table.from_pylist(rows, schema=ROW))
    flow.finish()
    flow.run_until_idle()
    names = ["net", *made.schema, "vs", "ve"]
    return history([{**row, "ve_new": None} for row in flow.history("result").select(names).to_pylist()])


@pytest.mark.parametrize("seed", range(6))
def test_micro_batches_and_restarts_give_the_history_of_a_batch(seed: int) -> None:
    arriving = events(seed)
    for size in (1, 7, len(arriving)):
        one, out = bucket(), []
        for begin in range(0, len(arriving), size):
            part = arriving[begin : begin + size]
            out += call(one, [row for _, row in part], part[0][0] - 1 if begin else None)
            state = one.dump()
            one = bucket()
            one.load(state)
            assert one.dump() == state
        assert history(out) == wanted([row for _, row in arriving])
        assert one.counts.late == 0


def test_the_order_inside_a_micro_batch_does_not_matter() -> None:
    rows = [row for _, row in events(9)]
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        found.append(history(call(bucket(), rows, None)))
    assert found[0] == found[1] == found[2] == wanted([row for _, row in events(9)])


def link(src: str, dst: str, vs: int | None, ve: int | None = None, ve_new: int | None = None) -> dict[str, Any]:
    return {"net": "x", "src": src, "dst": dst, "vs": vs, "ve": ve, "ve_new": ve_new}


def test_a_bucket_in_which_nothing_lives_has_no_state_and_a_timer_until_then() -> None:
    one = bucket()
    assert one.idle
    assert one.wakes_at() is None
    call(one, [link("a", "b", 10, 20), link("b", "c", 12, 30)], 9)
    assert not one.idle
    assert one.wakes_at() == 30_001
    assert call(one, [], 29) == []
    assert not one.idle
    assert call(one, [], 30) == []
    assert one.idle
    call(one, [link("a", "b", 31)], 30)
    assert one.wakes_at() is None  # it has no end
    assert not one.idle
    after = call(one, [link("a", "b", 31, None, 40)], 35)
    assert [(row["vs"], row["ve"], row["ve_new"]) for row in after] == [(31, None, 40)]
    assert one.wakes_at() == 40_001


def test_events_without_end_are_forgotten_behind_their_window_unless_they_may_be_retracted() -> None:
    for insert_only in (True, False):
        links = stream("links", {"src": str, "dst": str}, insert_only=insert_only)
        one = bucket(made=links.window(5).aggregate("src", most="count()"))
        assert len(call(one, [link("a", "b", 10), link("b", "c", 12)], 9)) == 2
        assert one.wakes_at() == (17_001 if insert_only else None)
        call(one, [], 17)
        assert one.idle is insert_only


def test_late_rows_go_by_the_policy() -> None:
    rows = [link("a", "b", 19), link("a", "c", 20), link("c", "d", 3, 90, 19), link("d", "e", None)]
    dropped = bucket()
    assert len(call(dropped, rows, 20)) == 1
    assert (dropped.counts.late, dropped.counts.no_time, dropped.counts.released) == (2, 1, 1)
    aside = bucket("side")
    call(aside, rows, 20)
    shown = [row for table in aside.set_aside for row in table.to_pylist()]
    assert [(row["source"], row["links"]["dst"]) for row in shown] == [("links", "b"), ("links", "d"), ("links", "e")]
    with pytest.raises(
        DataError, match="source 'links': 2 late rows, which begin or end at 19, and the watermark has passed 20"
    ):
        call(bucket("error"), rows[:3], 20)
    with pytest.raises(DataError, match="source 'links': column 'vs' \\(vs\\) is NULL in 1"):
        call(bucket("error"), rows[3:], 20)


def test_a_retraction_of_what_is_not_there_goes_the_same_way() -> None:
    rows = [link("a", "b", 1, 50, 30), link("a", "c", 21, 50), link("a", "c", 21, 50, 40), link("a", "c", 21, 50, 40)]
    one = bucket("side")
    assert history(call(one, rows, 20)) == history([{**link("a", "c", 21, 40)}])
    assert one.counts.late == 2
    shown = [(row["links"]["dst"], row["links"]["ve_new"]) for table in one.set_aside for row in table.to_pylist()]
    assert sorted(shown) == [("b", 30), ("c", 40)]
    with pytest.raises(
        DataError, match="a retraction of \\(src='a', dst='c', net='x'\\) \\[21, 50\\), which is not there"
    ):
        call(bucket("error"), rows, 20)


def test_what_a_matcher_finds_waits_for_the_watermark() -> None:
    flights = stream("links", {"src": str, "dst": str})
    made = flights.recognize("SELECT * FROM links WHERE a AS x ; b AS y WITHIN 10 [vs]", type="src")
    one = bucket(made=made)
    rows = [link("a", "1", 10, 11), link("b", "2", 12, 13)]
    assert call(one, rows, 9) == []
    assert one.wakes_at() == 9_001
    assert call(one, [], 12) == []
    assert [row["vs"] for row in call(one, [], 13)] == [12]
    state = one.dump()
    one = bucket(made=made)
    one.load(state)
    call(one, [link("c", "3", 40)], 39)
    call(one, [], 60)
    assert not call(one, [], 61)


def test_a_state_of_another_plan_or_other_settings_is_refused() -> None:
    one = bucket()
    call(one, [link("a", "b", 1)], None)
    state = one.dump()
    with pytest.raises(SnapshotError, match="state of another query"):
        bucket(made=LINKS.distinct()).load(state)
    with pytest.raises(
        SnapshotError, match="the checkpoint was written with buckets=8, and the query now has buckets=9"
    ):
        bucket(buckets=9).load(state)
    with pytest.raises(SnapshotError, match="damaged: its checksum does not match"):
        one.load(state[:-6] + bytes([state[-6] ^ 1]) + state[-5:])


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us")])
def test_times_that_are_timestamps(kind: pa.DataType) -> None:
    schema = pa.schema(
        [(field.name, kind if field.name in ("vs", "ve", "ve_new") else field.type) for field in ROW],
        metadata=ROW.metadata,
    )
    base = {
        "time": "vs",
        "sequence": None,
        "time_unit": None,
        "late": "drop",
        "event_id": None,
        "delay": 0,
        "buckets": 8,
    }
    one = GroupBucket(groups(time=kind), Settings(**base))  # type: ignore[arg-type]
    out: Sequence[dict[str, Any]] = []
    for second, rows in (
        (None, [link("a", "b", 10, 20)]),
        (12, [link("b", "c", 15, None)]),
        (14, [link("z", "z", 13, None)]),
    ):
        times = ("vs", "ve", "ve_new")
        ticks = [{n: v * SECOND if n in times and v is not None else v for n, v in row.items()} for row in rows]
        table = pa.Table.from_pylist(ticks, schema=ROW).cast(schema)
        one.receive(
            [(0, 0, write_table(table.replace_schema_metadata(ROW.metadata)))],
            None if second is None else second * SECOND,
        )
        for found in one.advance(None):
            assert found.schema.field("vs").type == kind
            out = [*out, *found.to_pylist()]
        state = one.dump()
        one = GroupBucket(groups(time=kind), Settings(**base))  # type: ignore[arg-type]
        one.load(state)
    assert [(row["src"], row["dst"], row["vs"].second) for row in out] == [
        ("a", "b", 10),
        ("b", "c", 15),
        ("a", "c", 15),
    ]


@pytest.mark.parametrize("seed", range(cases(200)))
def test_a_batch_takes_groups_a_share_at_a_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random_ = random.Random(f"shares {seed}")
    sources = stream("sources", {"dst": str})
    both = REACH.join(sources, on={"dst": "dst"}).project(src="src", dst="dst")
    made = random_.choice([REACH, both, both.union(constant([{"src": "c", "dst": "d"}]))])

    def rows(columns: Sequence[str], number: int) -> pa.Table:
        row = {"net": "xyzuvw", "src": "abc", "dst": "abc"}
        drawn = [{name: random_.choice(row[name]) for name in columns} for _ in range(number)]
        table = pa.Table.from_pylist([{**one, "vs": random_.randrange(9)} for one in drawn], schema=None)
        return table.replace_schema_metadata({INPUT: b"sources" if "src" not in columns else b"links"})

    tables = [rows(("net", "src", "dst"), random_.randint(1, 30))]
    if made is not REACH:
        tables.append(rows(("net", "dst"), random_.randint(1, 10)))
    packed = pa.record_batch({"bucket": [0] * len(tables), "data": [write_table(one) for one in tables]})
    # Those of a stream have `ve_new` as well.
    whole = groups(made)
    kinds = whole.schema.remove(len(whole.schema) - 1)
    task = asdict(whole) | {"result": whole.result[:-1], "kinds": kinds.serialize().to_pybytes()}

    def found(most: int) -> list[dict[str, Any]]:
        monkeypatch.setattr(of_batches, "ROWS", most)
        out = pa.Table.from_batches(run_groups(iter([packed]), task=task), kinds)
        return sorted(out.to_pylist(), key=repr)

    assert found(random_.randint(1, 12)) == found(10**9)
    assert made is both or found(10**9)
