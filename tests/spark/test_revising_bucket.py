"""Answers ahead of what is certain without Spark: any cut into micro-batches, restored after each, comes to the same in the end."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, SnapshotError
from stretto.frame import arrow_bytes
from stretto.spark.revised import Revised
from stretto.spark.streaming.bucket import Bucket, microseconds, netted
from stretto.spark.streaming.keeping import Settings
from stretto.spark.streaming.operator import RevisingBucket
from stretto.spark.streaming.packing import write_table
from stretto.spark.streaming.runs import OneQuery
from tests.conftest import cases
from tests.spark.test_bucket import cut, events

DELAY = 4_000_000

SASE = "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [key] AND b.x >= a.x } WITHIN 8"


def afa(**options: Any) -> stretto.AFA:
    made = stretto.AFA(
        {"type": str, "key": str, "x": int}, {"n": int, "top": int}, window=8, partition_by="key", **options
    )
    made.arc("q0", "q1", when="e.type = 'A'", then="top = e.x", id="first")
    made.arc("q1", "q1", when="e.type = 'C' AND e.x <= r.top", then="n = r.n + 1", id="more")
    made.arc("q1", "q2", when="e.type = 'B'", id="last")
    return made.final("q2")


def revised(language: str, table: pa.Table, ahead: float, **changes: Any) -> Revised:
    """What runs over the columns of a table of seconds."""
    columns = (
        table.schema.remove(table.schema.get_field_index("sign")) if "sign" in table.column_names else table.schema
    )
    text = changes.pop("text", stretto.write_afa(afa()) if language == "afa" else SASE)
    options = {"sign": "sign"} if "sign" in table.column_names else {}
    own = {"sequence": "seq", "output": "events", "ahead": ahead, "options": options}
    roles = (None if language == "afa" else "type", "ts", None, "s")
    return Revised(text, language, columns.serialize().to_pybytes(), roles, **(own | changes))


def make(run: Revised, **changes: Any) -> RevisingBucket:
    settings = {"time": "ts", "sequence": "seq", "time_unit": "s", "event_id": None, "delay": DELAY, "buckets": 1}
    own = {"late": "drop", "sign": run.options.get("sign")}
    return RevisingBucket(run, Settings(**(settings | own | changes)))


def through(bucket: RevisingBucket, parts: Iterable[pa.Table]) -> tuple[list[pa.Table], RevisingBucket]:
    """What comes of micro-batches, with the state restored after each; at last all is certain."""
    found, greatest = [], None
    for part in parts:
        watermark = None if greatest is None else greatest - DELAY
        bucket.take(part, watermark)
        found += list(bucket.advance(watermark))
        greatest = max(greatest or 0, int(microseconds(part.column("ts"), "s").max()))
        fresh = RevisingBucket(bucket.run, bucket.settings)
        if not bucket.idle:
            fresh.load(bucket.dump())
        bucket = fresh
    found += list(bucket.advance((greatest or 0) + 100_000_000))
    return found, bucket


def net(found: list[pa.Table]) -> list[str]:
    """What is given and not taken back."""
    total: Counter[str] = Counter()
    for row in (row for table in found for row in table.to_pylist()):
        total[repr({name: value for name, value in row.items() if name != "sign"})] += row.get("sign", 1)
    assert all(count >= 0 for count in total.values())
    return sorted(total.elements())


def expected(run: Revised, table: pa.Table) -> list[str]:
    """Of one pass over all events."""
    query = afa() if run.language == "afa" else SASE
    found = stretto.match(
        query, table, time="ts", sequence="seq", **({} if run.language == "afa" else {"time_unit": "s"})
    )
    return net([found.drop_columns([one for one in ("start", "end", "positions") if one in found.column_names])])


@pytest.mark.parametrize("language", ["afa", "sase"])
def test_any_micro_batches_come_to_what_one_pass_gives(language: str) -> None:
    revisions = 0
    for seed in range(cases(60)):
        rng = random.Random(seed)
        table = events(rng, rng.randrange(1, 60), "seconds")
        run = revised(language, table, [math.inf, 2, 0][seed % 3] if language == "afa" else [math.inf, 2][seed % 2])
        found, bucket = through(make(run), cut(rng, table))
        assert net(found) == expected(run, table), f"seed {seed}"
        assert bucket.idle
        if run.ahead:
            revisions += sum(table.column("sign").to_pylist().count(-1) for table in found)
        else:
            assert all("sign" not in table.column_names for table in found)
    assert revisions


TOTALS = (
    "SELECT COUNT(*), SUM(b[x]), AVG(b[x]) FROM S WHERE A AS a ; B+ AS b PARTITION BY [key] GROUP BY [key], a[x] "
    "WITHIN 8 [ts] EVERY 3 [ts]",
    "SELECT COUNT(*), MAX(b[x]) FROM S WHERE A ; B+ AS b PARTITION BY [key] WITHIN 8 [ts] EVERY EVENT",
    "SELECT COUNT(*), MIN(b[x]) FROM S WHERE A ; B AS b AFTER 2 [ts] PARTITION BY [key] WITHIN 8 [ts] EVERY EVENT",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [key] AND b[i].x >= a.x } WITHIN 8 RETURN TOTAL count(*), sum(b[].x) "
    "EVERY 4 seconds",
    "SELECT * FROM S WHERE A ; B+ AS b PARTITION BY [key] WITHIN 8 [ts] EVERY EVENT ORDER BY SUM(b[x]) DESC LIMIT 2",
)


@pytest.mark.parametrize("text", TOTALS)
def test_counts_sums_and_the_best(text: str) -> None:
    """Of any micro-batches there is left what one pass gives, and nothing is held then."""
    revisions = 0
    for seed in range(cases(40)):
        rng = random.Random(seed)
        table = events(rng, rng.randrange(1, 50), "seconds")
        language = "ceql" if text.startswith("SELECT") else "sase"
        run = revised(language, table, [math.inf, 2][seed % 2], text=text)
        found, bucket = through(make(run), cut(rng, table))
        right = stretto.match(text, table, time="ts", sequence="seq", time_unit="s")
        right = right.drop_columns([one for one in ("start", "end", "positions") if one in right.column_names])
        assert net(found) == net([right]), f"seed {seed}"
        assert bucket.idle
        assert bucket.wakes_at() is None
        revisions += sum(one.column("sign").to_pylist().count(-1) for one in found)
    assert revisions or "EVENT" in text  # of events only those that are late revise anything


@pytest.mark.parametrize("language", ["afa", "sase"])
def test_corrected_events(language: str) -> None:
    """Some events are taken back, and some come anew, in any order inside a micro-batch."""
    for seed in range(cases(40)):
        rng = random.Random(seed)
        table = events(rng, rng.randrange(2, 50), "seconds")
        rows: list[list[dict[str, Any]]] = []
        stays = []
        for row in table.to_pylist():
            rows.append([row | {"sign": 1}])
            draw = rng.random()
            if draw < 0.3:
                back = [row | {"sign": -1}]
                if draw < 0.2:
                    stays.append(row | {"type": rng.choice("ABC"), "x": rng.randrange(6)})
                    back.append(stays[-1] | {"sign": 1})
                rows.append(back)
            else:
                stays.append(row)
        schema = table.schema.append(pa.field("sign", pa.int8()))
        parts = []
        while rows:  # a revision is in one micro-batch
            size = rng.randrange(1, 6)
            together = [row for group in rows[:size] for row in group]
            rng.shuffle(together)
            parts.append(pa.Table.from_pylist(together, schema))
            del rows[:size]
        run = revised(language, parts[0], math.inf)
        found, bucket = through(make(run), parts)
        assert not bucket.counts.late
        assert net(found) == expected(run, pa.Table.from_pylist(stays, table.schema)), f"seed {seed}"


def test_what_cancels_out_never_was() -> None:
    table = pa.table(
        {"t": [1, 1, 2, None, None], "s": [[{"a": 1}], [{"a": 1}], None, None, None], "op": [-1, 1, -1, 1, 1]}
    )
    assert netted(table, "op").to_pylist() == [
        {"t": 2, "s": None, "op": -1},
        {"t": None, "s": None, "op": 1},
        {"t": None, "s": None, "op": 1},
    ]
    for wrong in ([1, 0], [1, None], ["+", "-"]):
        with pytest.raises(DataError, match=r"column 'op' \(sign\) says 1 of an event that comes"):
            netted(pa.table({"op": wrong}), "op")


def signed(*rows: tuple[str, int, int, int]) -> pa.Table:
    names = ("type", "ts", "seq", "sign")
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) | {"key": "a", "x": 1} for row in rows])
    return table.set_column(3, "sign", table.column("sign").cast(pa.int8()))


@pytest.mark.parametrize("language", ["afa", "sase"])
def test_a_retraction_of_what_never_was(language: str) -> None:
    table = signed(("A", 10, 0, 1), ("B", 12, 1, 1), ("C", 11, 7, -1))
    bucket = make(revised(language, table, math.inf))
    bucket.take(table, None)
    assert len(net(list(bucket.advance(None)))) == 1
    assert bucket.counts.late == 1
    aside = make(revised(language, table, math.inf), late="side")
    aside.take(table, None)
    list(aside.advance(None))
    assert [row["ts"] for late in aside.set_aside for row in late.to_pylist()] == [11]
    wrong = make(revised(language, table, math.inf), late="error")
    wrong.take(table, None)
    with pytest.raises(DataError, match=r"1 retractions of events that are not there: the first has 'ts' = 11"):
        list(wrong.advance(None))


def test_final_answers_of_corrected_events() -> None:
    """A bucket that holds its events until the watermark takes back what it holds."""
    table = signed(("A", 10, 0, 1), ("B", 12, 1, 1), ("C", 11, 7, 1), ("C", 11, 7, -1), ("C", 11, 8, -1))
    text = "SELECT * FROM S WHERE A : B"
    plain = table.drop_columns(["sign"])
    run = OneQuery(stretto.compile(text, plain, time="ts", time_unit="s"))
    settings = Settings("ts", "seq", "s", "side", None, DELAY, 1, "sign")
    bucket = Bucket(run, settings)
    bucket.take(table.slice(0, 3), None)
    fresh = Bucket(run, settings)
    fresh.load(bucket.dump())
    fresh.take(table.slice(3), 1_000_000)
    found = list(fresh.advance(20_000_000))
    assert sum(one.num_rows for one in found) == 1
    assert fresh.counts.late == 1
    assert pa.concat_tables(fresh.set_aside).column("seq").to_pylist() == [8]
    fresh.take(table.slice(3, 1), 20_000_000)
    assert fresh.counts.late == 2
    strict = Bucket(run, Settings("ts", "seq", "s", "error", None, DELAY, 1, "sign"))
    strict.take(table, None)
    with pytest.raises(DataError, match=r"1 retractions of events that are not there: the first has 'ts' = 11"):
        list(strict.advance(20_000_000))
    with pytest.raises(SnapshotError, match="sign"):
        Bucket(run, Settings("ts", "seq", "s", "side", None, DELAY, 1, "x")).load(fresh.dump())


def changes(*rows: dict[str, Any]) -> pa.Table:
    names = ("action", "id", "source", "target", "when", "then", "kind", "final")
    schema = pa.schema([*((name, pa.string()) for name in names), ("since", pa.int64()), ("until", pa.int64())])
    return pa.Table.from_pylist(list(rows), schema)


CHANGES = changes(
    {"action": "retire", "id": "more", "until": 9},
    {"action": "add", "id": "again", "source": "q1", "target": "q1", "when": "e.type = 'D'", "since": 6, "until": 14},
)


@pytest.mark.parametrize("ahead", [math.inf, 0])
def test_arcs_that_change(ahead: float) -> None:
    """What is found depends on the lifetimes of arcs alone, not on the micro-batch that brings a change in time."""
    nothing = bytes(arrow_bytes(CHANGES.slice(0, 0)))
    for seed in range(cases(30)):
        rng = random.Random(seed)
        table = events(rng, rng.randrange(10, 60), "seconds")
        whole = stretto.Matcher(afa(), time="ts", sequence="seq", dynamic="explicit")
        whole.push(table.schema.empty_table(), arcs=CHANGES)
        wanted = whole.push(table).drop_columns(["start", "end"])
        run = revised("afa", table, ahead, changes=nothing)
        bucket = make(run)
        found, greatest = [], None
        at = rng.choice([0, 1])
        for number, part in enumerate(cut(rng, table)):
            watermark = None if greatest is None else greatest - DELAY
            rows = [(0, number, write_table(part))]
            if number == at:
                rows.append((-1, 0, write_table(CHANGES)))
            bucket.receive(rows, watermark)
            found += list(bucket.advance(watermark))
            greatest = max(greatest or 0, int(microseconds(part.column("ts"), "s").max()))
            fresh = RevisingBucket(run, bucket.settings)
            fresh.load(bucket.dump())
            late, bucket = bucket.counts.late_changes, fresh
            if late:
                break
        else:
            found += list(bucket.advance(greatest + 100_000_000))
            assert net(found) == net([wanted]), f"seed {seed}"
            assert not bucket.idle  # the arcs are kept


def test_wrong_and_late_changes_of_arcs() -> None:
    table = events(random.Random(1), 5, "seconds")
    run = revised("afa", table, math.inf, changes=bytes(arrow_bytes(CHANGES.slice(0, 0))))
    bad = changes(
        {"action": "add", "id": "x", "source": "q1", "target": "q1", "when": "e.nothing > 3", "since": 20},
        {"action": "retire", "id": "unknown", "until": 20},
        {"action": "add", "id": "y", "source": "q1", "target": "q1", "since": 5},
        {"action": "retire", "id": "more"},
    )
    bucket = make(run)
    bucket.change(bad, 10_000_000)
    assert (bucket.counts.bad_changes, bucket.counts.late_changes) == (2, 2)
    assert not bucket.changed
    strict = make(revised("afa", table, math.inf, changes=run.changes), late="error")
    with pytest.raises(DataError, match=r"a change of arcs is wrong: .*nothing"):
        strict.change(bad.slice(0, 1), None)
    with pytest.raises(DataError, match="arc 'y': the change holds from 5 on, and the watermark has passed"):
        strict.change(bad.slice(2, 1), 10_000_000)


def test_how_long_answers_wait() -> None:
    """Behind the last event of a match, in the stream's time."""
    table = pa.table({"type": ["A", "B"], "ts": [10, 12], "seq": [0, 1], "key": ["a", "a"], "x": [1, 1]})
    later = pa.table({"type": ["Z"], "ts": [20], "seq": [2], "key": ["a"], "x": [1]})
    for ahead, waited in ((math.inf, 0), (0, 8000)):
        bucket = make(revised("afa", table, ahead))
        for part, watermark in ((table, None), (later, 8_000_000), (None, 16_000_000)):
            if part is not None:
                bucket.take(part, watermark)
            list(bucket.advance(watermark))
        assert (bucket.counts.matches, bucket.counts.revisions, bucket.counts.waited_ms) == (1, 0, waited)


@pytest.mark.parametrize("name", ["sign", "end_time"])
def test_attributes_with_names_of_the_result(name: str) -> None:
    table = pa.table({"type": ["A", "B"], "ts": [10, 12], "seq": [0, 1], name: ["a", "a"]})
    query = stretto.compile(f"SELECT * FROM S WHERE A : B PARTITION BY [{name}]", table, time="ts", time_unit="s")
    bucket = Bucket(OneQuery(query), Settings("ts", "seq", "s", "drop", None, DELAY, 1))
    bucket.take(table, None)
    list(bucket.advance(20_000_000))
    assert (bucket.counts.matches, bucket.counts.revisions) == (1, 0)


def test_late_events_and_another_state() -> None:
    table = events(random.Random(3), 20, "seconds")
    run = revised("afa", table, math.inf)
    bucket = make(run)
    bucket.take(table, 4_000_000)
    list(bucket.advance(4_000_000))
    assert bucket.counts.late == sum(one < 4 for one in table.column("ts").to_pylist())
    make(run, late="error").load(bucket.dump())
    for other in (
        revised("sase", table, math.inf),
        revised("afa", table, 5),
        revised("afa", table, math.inf, options={"bag": True}),
    ):
        with pytest.raises(SnapshotError, match="nothing has been consumed"):
            make(other).load(bucket.dump())
