"""One stream, many ways to feed it: batches, snapshots, fresh processes, capacities, partitions. All give the same rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from tests.cases.ceql import Case, case
from tests.conftest import COMPILED, cases, size

Row = dict[str, Any]


def seeds(first: int, most: int) -> Iterator[tuple[int, Case]]:
    for seed in range(first, first + cases(most)):
        yield seed, case(seed)


def same(right: list[Row], shown: list[Row], *where: object) -> None:
    """Equal rows in the same order; NaN equals itself."""
    assert list(map(repr, shown)) == list(map(repr, right)), where


def options_of(one: Case) -> dict[str, Any]:
    return {"time": one.time, "stream": one.stream, "valuations": one.valuations}


def fed(matcher: stretto.Matcher, events: pa.Table, cuts: list[int]) -> list[Row]:
    rows: list[Row] = []
    edges = [0, *cuts, events.num_rows]
    for low, high in zip(edges, edges[1:], strict=False):
        rows += matcher.push(events.slice(low, high - low)).to_pylist()
    return rows + matcher.finish().to_pylist()


def through_snapshots(make: Callable[[], stretto.Matcher], events: pa.Table) -> list[Row]:
    rows: list[Row] = []
    matcher = make()
    for position in range(events.num_rows):
        rows += matcher.push(events.slice(position, 1)).to_pylist()
        matcher = make().restore(matcher.snapshot())
    return rows


# ---- Batches


@pytest.mark.parametrize("output", ["events", "positions"])
def test_any_split_gives_the_rows_of_match(output: str) -> None:
    """One cut at every place, every event alone, and everything at once."""
    found = 0
    for seed, one in seeds(10_000, 100):
        options = options_of(one) | {"output": output}
        right = stretto.match(one.query, one.events, **options).to_pylist()
        found += len(right)
        rows = one.events.num_rows
        query = stretto.compile(one.query, one.events.schema, time=one.time, stream=one.stream)
        more = {"output": output, "valuations": one.valuations}
        for cuts in [[], *([at] for at in range(1, rows)), list(range(1, rows)), [0, 0, rows, rows]]:
            same(right, fed(stretto.Matcher(query, **more), one.events, cuts), seed, cuts, one)
    assert found > cases(100) // 5


def test_chunks_of_the_input_do_not_matter() -> None:
    for seed, one in seeds(20_000, 100):
        pieces = [one.events.slice(i, 1) for i in range(one.events.num_rows)] or [one.events]
        chunked = pa.concat_tables(pieces)
        right = stretto.match(one.query, one.events, **options_of(one)).to_pylist()
        same(right, stretto.match(one.query, chunked, **options_of(one)).to_pylist(), seed, one)


def test_iter_matches_gives_the_rows_of_match() -> None:
    for seed, one in seeds(30_000, 100):
        right = stretto.match(one.query, one.events, **options_of(one)).to_pylist()
        pieces = stretto.iter_matches(one.query, one.events, **options_of(one))
        same(right, [row for piece in pieces for row in piece.to_pylist()], seed, one)


def test_many_rows_in_batches_of_every_size() -> None:
    """The chunk of the matcher, of match, and batches across them."""
    rows = size(150_000, 2_000)
    random = np.random.default_rng(5)
    events = pa.table(
        {
            "type": pa.array(np.array(["A", "B", "C", "D"])[random.integers(0, 4, rows)]),
            "k": pa.array(random.integers(0, 50, rows)),
            "v": pa.array(random.integers(0, 5, rows)),
        }
    )
    text = "SELECT * FROM S WHERE A AS x; B AS y; C AS z FILTER y[v > 3] PARTITION BY [k] WITHIN 10 EVENTS"
    right = stretto.match(text, events)
    assert right.num_rows > rows // 100
    for step in (rows, rows // 3 + 1, 997):
        matcher = stretto.Matcher(text)
        tables = [matcher.push(events.slice(at, step)) for at in range(0, rows, step)]
        assert pa.concat_tables(tables).equals(right), step
        assert matcher.position == rows


def test_a_second_run_gives_an_equal_table() -> None:
    for seed, one in seeds(40_000, 200):
        query = stretto.compile(one.query, one.events.schema, time=one.time, stream=one.stream)
        first = stretto.match(query, one.events, valuations=one.valuations)
        again = stretto.match(query, one.events, valuations=one.valuations)
        same(first.to_pylist(), again.to_pylist(), seed, one)
        assert first.schema == again.schema, seed
        # A program that other events have warmed up, and a new one.
        stretto.match(query, one.events.slice(one.events.num_rows // 2), valuations=one.valuations)
        later = stretto.match(query, one.events, valuations=one.valuations)
        same(first.to_pylist(), later.to_pylist(), seed, one)
        fresh = stretto.match(one.query, one.events, **options_of(one))
        same(first.to_pylist(), fresh.to_pylist(), seed, one)


# ---- Snapshots


def test_restoring_after_every_event() -> None:
    for seed, one in seeds(50_000, 150):
        query = stretto.compile(one.query, one.events.schema, time=one.time, stream=one.stream)
        right = stretto.match(query, one.events, valuations=one.valuations).to_pylist()
        more: dict[str, Any] = {"valuations": one.valuations, "capacity": one.capacity}
        same(right, through_snapshots(lambda: stretto.Matcher(query, **more), one.events), seed, one)  # noqa: B023


KINDS = {
    "partition": "SELECT * FROM S WHERE A AS x; B+ AS y; C AS z PARTITION BY [k] WITHIN 20 EVENTS",
    "string key": "SELECT * FROM S WHERE A AS x; B AS y PARTITION BY [name] WITHIN 30 [t]",
    "several keys": "SELECT * FROM S WHERE A AS x; B+ AS y PARTITION BY [name], [k], [d] WITHIN 40 [t]",
    "window on time": "SELECT * FROM S WHERE A AS x; B AS y; C AS z WITHIN 2 seconds [ts]",
    "window on floats": "SELECT * FROM S WHERE A AS x; B AS y WITHIN 3 [f]",
    "no window": "SELECT * FROM S WHERE A AS x; C AS y FILTER x[v = 0] AND y[v = 4] LIMIT 3",
    "no window, keys": "SELECT * FROM S WHERE A AS x; C AS z FILTER x[v < 3] PARTITION BY [k], [name] LIMIT 2",
    "max": "SELECT MAX * FROM S WHERE A; (B OR C)+; A WITHIN 8 EVENTS",
    "last": "SELECT LAST * FROM S WHERE (A AS x OR A AS y)+; B WITHIN 8 EVENTS",
    "next": "SELECT NEXT * FROM S WHERE A; B+; C PARTITION BY [k] WITHIN 8 EVENTS",
    "strict": "SELECT STRICT * FROM S WHERE (A OR B)+; C WITHIN 8 EVENTS",
    "consume any": "SELECT * FROM S WHERE A; B; C PARTITION BY [k] WITHIN 30 EVENTS CONSUME BY ANY",
    "consume partition": "SELECT * FROM S WHERE A; B; C PARTITION BY [k] WITHIN 30 EVENTS CONSUME BY PARTITION",
    "limit": "SELECT * FROM S WHERE A+; C WITHIN 12 EVENTS LIMIT 2",
    "ambiguous": "SELECT * FROM S WHERE (A AS x OR (A AS y FILTER y[v > 1]))+; (B AS x OR B AS y); C WITHIN 7 EVENTS",
    "contiguous": "SELECT x, z FROM S WHERE (A AS x):+ : B AS y : C AS z PARTITION BY [k]",
}


#: How many events a kind of query with much output gets.
MANY = {"partition": 2_000, "no window": 1_000, "several keys": 4_000}


def stream(rows: int, seed: int = 3) -> pa.Table:
    random = np.random.default_rng(seed)
    names = ["a", "bé", "日本", "", "\U0001f600 e\u0301", None]
    t = np.cumsum(random.integers(0, 4, rows))
    return pa.table(
        {
            "type": pa.array(np.array(["A", "B", "C", "D"])[random.integers(0, 4, rows)]),
            "t": pa.array(t),
            "ts": pa.array(t * 100_000, pa.timestamp("us", "Europe/Vienna")),
            "f": pa.array(t / 4),
            "k": pa.array(random.integers(0, 4, rows), pa.int32()),
            "d": pa.array([[None, 1, 2][i] for i in random.integers(0, 3, rows)], pa.date32()),
            "name": pa.array([names[i] for i in random.integers(0, len(names), rows)]),
            "v": pa.array(random.integers(0, 5, rows)),
        }
    )


@pytest.mark.parametrize("valuations", [False, True], ids=["", "valuations"])
@pytest.mark.parametrize("kind", KINDS)
def test_restoring_after_every_event_by_kind_of_query(kind: str, valuations: bool) -> None:
    events = stream(80)
    right = stretto.match(KINDS[kind], events, valuations=valuations).to_pylist()
    assert right, "the test needs matches"

    def make() -> stretto.Matcher:
        return stretto.Matcher(KINDS[kind], events.schema, valuations=valuations)

    same(right, through_snapshots(make, events), kind)


def test_a_snapshot_outlives_the_state_that_it_was_taken_of() -> None:
    """One snapshot serves many times, and its matcher goes on undisturbed."""
    events = stream(200)
    text = KINDS["partition"]
    right = stretto.match(text, events).to_pylist()
    matcher = stretto.Matcher(text)
    head = matcher.push(events.slice(0, 90)).to_pylist()
    snapshot = matcher.snapshot()
    assert snapshot == matcher.snapshot()
    tail = matcher.push(events.slice(90)).to_pylist()
    same(right, head + tail)
    for _ in range(2):
        same(right, head + stretto.Matcher(text).restore(snapshot).push(events.slice(90)).to_pylist())
        same(right, head + matcher.restore(snapshot).push(events.slice(90)).to_pylist())


def test_a_snapshot_is_as_small_as_the_state() -> None:
    text = "SELECT * FROM S WHERE A; B WITHIN 10 EVENTS"
    matcher = stretto.Matcher(text)
    events = stream(size(20_000, 2_000))
    matcher.push(events.slice(0, 100))
    early = len(matcher.snapshot())
    matcher.push(events.slice(100))
    assert len(matcher.snapshot()) < 2 * early + 2_000


FRESH = """
import sys
import pyarrow as pa
import stretto

text, folder = sys.argv[1:]
events = pa.ipc.open_file(folder + "/events.arrow").read_all()
snapshot = open(folder + "/snapshot", "rb").read()
matcher = stretto.Matcher(text).restore(snapshot)
# Another program first, so that numbers of states and classes differ between the processes.
stretto.match(text, events.slice(events.num_rows // 2))
rows = matcher.push(events)
with pa.ipc.new_file(folder + "/rows.arrow", rows.schema) as out:
    out.write_table(rows)
"""


@pytest.mark.parametrize("kind", ["several keys", "no window", "last", "ambiguous"])
def test_restoring_in_a_fresh_process(kind: str, tmp_path: Any) -> None:
    text, events = KINDS[kind], stream(120, seed=8)
    matcher = stretto.Matcher(text)
    matcher.push(events.slice(0, 60))
    (tmp_path / "snapshot").write_bytes(matcher.snapshot())
    with pa.ipc.new_file(tmp_path / "events.arrow", events.schema) as out:
        out.write_table(events.slice(60))
    done = subprocess.run(
        [sys.executable, "-c", FRESH, text, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    right = matcher.push(events.slice(60))
    assert right.num_rows
    assert pa.ipc.open_file(tmp_path / "rows.arrow").read_all().equals(right)


def test_a_snapshot_before_the_first_event() -> None:
    events = stream(50)
    text = KINDS["limit"]
    empty = stretto.Matcher(text).snapshot()
    matcher = stretto.Matcher(text).restore(empty)
    right = stretto.match(text, events).to_pylist()
    same(right, matcher.push(events).to_pylist())
    # Back to the start, although events went by.
    same(right, matcher.restore(empty).push(events).to_pylist())


# ---- Capacity


def test_growing_from_one() -> None:
    for seed, one in seeds(60_000, 200):
        query = stretto.compile(one.query, one.events.schema, time=one.time, stream=one.stream)
        more: dict[str, Any] = {"valuations": one.valuations}
        right = stretto.Matcher(query, **more).push(one.events).to_pylist()
        same(right, stretto.Matcher(query, capacity=1, **more).push(one.events).to_pylist(), seed, one)


@pytest.mark.parametrize("kind", KINDS)
def test_growing_from_one_over_many_events(kind: str) -> None:
    """The first events with all columns, and more with positions only: small buffers mean many small tables."""
    for rows, output in ((size(600, 100), "events"), (size(MANY.get(kind, 10_000), 300), "positions")):
        events = stream(rows, seed=17)
        right = stretto.Matcher(KINDS[kind], output=output).push(events)
        assert right.num_rows
        assert stretto.Matcher(KINDS[kind], output=output, capacity=1).push(events).equals(right)


# ---- Partitions

PARTITIONED = [
    "SELECT {0} FROM S WHERE A AS x; B+ AS y; C AS z {1} WITHIN 6 EVENTS",
    "SELECT {0} FROM S WHERE A AS x; B AS y; C AS z {1} WITHIN 400 [t] LIMIT 3",
    "SELECT {0} FROM S WHERE A AS x : (B OR C) AS y {1}",
    "SELECT {0} FROM S WHERE (A AS x):+; C AS z {1} CONSUME BY PARTITION",
    "SELECT {0} FROM S WHERE A AS x; B AS y {1} WITHIN 20 EVENTS LIMIT 2",
    "SELECT MAX {0} FROM S WHERE A AS x; (B OR C)+ AS y {1} WITHIN 6 EVENTS",
    "SELECT LAST {0} FROM S WHERE A AS x; (B OR C)+ AS y {1} WITHIN 6 EVENTS",
    "SELECT NEXT {0} FROM S WHERE A AS x; (B OR C)+ AS y {1} WITHIN 6 EVENTS",
    "SELECT STRICT {0} FROM S WHERE A AS x; (B OR C)+ AS y {1} WITHIN 6 EVENTS",
]


@pytest.mark.parametrize("keys", [["k"], ["name"], ["k", "name"], ["d", "k", "f2"]], ids="-".join)
@pytest.mark.parametrize("number", range(len(PARTITIONED)))
def test_a_partitioned_query_is_the_union_over_the_substreams(number: int, keys: list[str]) -> None:
    events = stream(size(600, 250), seed=number)
    floats = np.random.default_rng(1).choice([0.0, -0.0, np.nan, 1.5], events.num_rows)
    events = events.append_column("f2", pa.array(floats))
    rows = events.to_pylist()
    substreams: dict[Any, list[int]] = {}
    for position, row in enumerate(rows):
        key = tuple("NaN" if row[name] != row[name] else row[name] for name in keys)
        if None not in key:
            substreams.setdefault(key, []).append(position)
    expected = []
    plain = PARTITIONED[number].format("*", "")
    for positions in substreams.values():
        for row in stretto.match(plain, events.take(positions)).to_pylist():
            moved = {
                "start": positions[row["start"]],
                "end": positions[row["end"]],
                "positions": [positions[p] for p in row["positions"]],
            }
            attributes = {name: rows[moved["end"]][name] for name in keys}
            expected.append(row | moved | attributes)
    clause = "PARTITION BY " + ", ".join(f"[{name}]" for name in keys)
    found = stretto.match(PARTITIONED[number].format("*", clause), events).to_pylist()
    assert len(found) > 5, "the test needs matches"
    # Within one end the order is that of the substream; ends are distinct between substreams.
    expected.sort(key=lambda row: row["end"])
    same([{name: row[name] for name in found[0]} for row in expected], found, number, keys)


# ---- Memory


def bytes_of(matcher: stretto.Matcher) -> int:
    return matcher.stats["bytes"]


def test_no_window_over_a_long_stream_keeps_what_is_live() -> None:
    """A thousand starts, each of which a consuming output forgets, between events that start nothing."""
    rows = size(200_000, 20_000)
    random = np.random.default_rng(2)
    names = np.where(random.random(rows) < 0.01, "A", "D")
    names[100::1000] = "B"
    events = pa.table({"type": pa.array(names), "n": pa.array(np.arange(rows))})
    text = "SELECT * FROM S WHERE A AS x; B AS y CONSUME BY ANY"
    matcher = stretto.Matcher(text, capacity=16)
    found, peak = [], 0
    step = rows // 20
    for at in range(0, rows, step):
        found += matcher.push(events.slice(at, step)).to_pylist()
        peak = max(peak, bytes_of(matcher))
    expected, open_starts = [], []
    for position, name in enumerate(names):
        if name == "A":
            open_starts.append(position)
        elif name == "B":
            expected += [(start, position) for start in reversed(open_starts)]
            open_starts = []
    assert sorted((row["start"], row["end"]) for row in found) == sorted(expected)
    assert all(row["x"][0]["n"] == row["start"] for row in found)
    assert peak < size(4_000_000, 600_000), peak


def test_no_window_without_consuming_keeps_partial_matches_only() -> None:
    rows = size(200_000, 20_000)
    types = np.full(rows, "D")
    types[5] = "A"
    types[rows // 2] = "B"
    types[rows - 1] = "C"
    events = pa.table({"type": pa.array(types), "text": pa.array(["x" * 50] * rows)})
    matcher = stretto.Matcher("SELECT * FROM S WHERE A AS x; B AS y; C AS z", warn_after=None)
    found, after = [], []
    for at in range(0, rows, rows // 20):
        found += matcher.push(events.slice(at, rows // 20)).to_pylist()
        after.append(bytes_of(matcher))
    assert [row["positions"] for row in found] == [[5, rows // 2, rows - 1]]
    assert found[0]["x"] == [{"type": "A", "text": "x" * 50}]
    if COMPILED:
        assert max(after) < events.nbytes


def test_idle_partitions_are_freed() -> None:
    """Every key lives a short while: what the window has left behind costs nothing."""
    keys, each = size(100_000, 1_500), 4
    rows = keys * each
    number = np.arange(rows)
    key = number // each
    random = np.random.default_rng(9)
    names = np.array(["A", "B", "C"])[random.integers(0, 3, rows)]
    # Neighbouring keys overlap.
    order = np.argsort(number + random.integers(0, 40, rows), kind="stable")
    key, names = key[order], names[order]
    events = pa.table({"type": pa.array(names), "k": pa.array(key), "t": pa.array(np.arange(rows))})
    text = "SELECT * FROM S WHERE A; B; C PARTITION BY [k] WITHIN 100 [t]"
    matcher = stretto.Matcher(text, time="t")
    pieces, held, partitions = [], [], []
    step = rows // 16
    for at in range(0, rows, step):
        pieces.append(matcher.push(events.slice(at, step)))
        held.append(bytes_of(matcher))
        partitions.append(matcher.stats["partitions"])
    found = pa.concat_tables(pieces)
    if COMPILED:
        assert max(partitions) < keys, partitions
        assert max(held[8:]) <= 2 * max(held[:8]), held
    matcher.advance(rows + 1_000)
    assert matcher.stats["partitions"] < 1_000
    assert bytes_of(matcher) <= min(held[-1], 12_000_000)

    sampled = set(random.integers(0, keys, 300).tolist())
    mine = np.flatnonzero(np.isin(key, list(sampled)))
    expected = []
    for a in mine:
        for b in mine[(mine > a) & (mine <= a + 100) & (key[mine] == key[a])]:
            for c in mine[(mine > b) & (mine <= a + 100) & (key[mine] == key[a])]:
                if (names[a], names[b], names[c]) == ("A", "B", "C"):
                    expected.append([int(a), int(b), int(c)])
    shown = [row["positions"] for row in found.select(["k", "positions"]).to_pylist() if row["k"] in sampled]
    assert len(expected) > 10
    assert sorted(shown) == sorted(expected)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 20 [t]",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] AND b.v > a.v } WITHIN 20 [t]",
        "SELECT * FROM S WHERE A ; B AFTER 1 [t] WITHIN 9 [t] PARTITION BY [k] WITHIN 20 [t]",
    ],
    ids=["tecs", "nfab", "timed"],
)
def test_keys_that_never_come_again_are_forgotten(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.engines.shared.intake.SWEEP_AT_LEAST", 50)
    matcher = stretto.Matcher(text, time="t", output="positions")
    partitions = []
    for at in range(0, 2_000, 50):
        number = pa.array(range(at, at + 50))
        matcher.push(pa.table({"type": ["A"] * 50, "k": number, "t": number, "v": number}))
        partitions.append(matcher.stats["partitions"])
    assert max(partitions) <= 50 + 50 + 2 * 20, partitions


# ---- Time


def test_advance_frees_what_no_window_reaches() -> None:
    rows = 2_000
    events = pa.table(
        {"type": ["A"] * rows, "t": pa.array(range(rows)), "k": pa.array([f"key {i}" for i in range(rows)])}
    )
    matcher = stretto.Matcher("SELECT * FROM S WHERE A AS x; B AS y PARTITION BY [k] WITHIN 5000 [t]", time="t")
    matcher.push(events)
    assert matcher.stats["partitions"] == rows
    before, snapshot = bytes_of(matcher), len(matcher.snapshot())
    assert matcher.advance(4_000).num_rows == 0
    assert matcher.stats["partitions"] == rows
    matcher.advance(6_990)
    assert matcher.stats["partitions"] < rows / 2
    assert bytes_of(matcher) < before
    assert len(matcher.snapshot()) < snapshot / 10
    # What the window still reaches is there.
    last = pa.table({"type": ["B"] * 11, "t": [6_990] * 11, "k": [f"key {i}" for i in range(rows - 11, rows)]})
    assert [row["k"] for row in matcher.push(last).to_pylist()] == [f"key {i}" for i in range(rows - 10, rows)]


def test_after_advance_earlier_events_are_late() -> None:
    text = "SELECT * FROM S WHERE A AS x; B AS y WITHIN 10 [t]"
    matcher = stretto.Matcher(text, time="t")
    matcher.push([{"type": "A", "t": 1}])
    matcher.advance(5)
    with pytest.raises(
        stretto.DataError, match=r"row 1 is late: 't' is 4, and advance\(\) has said that nothing before 5 comes"
    ):
        matcher.push([{"type": "B", "t": 4}])
    assert matcher.position == 1
    found = matcher.push([{"type": "B", "t": 5}]).to_pylist()
    assert [(row["start_time"], row["end_time"]) for row in found] == [(1, 5)]
    # Time does not go back.
    matcher.advance(2)
    with pytest.raises(stretto.DataError, match="decreases from 5 to 3"):
        matcher.push([{"type": "B", "t": 3}])


def test_late_events_are_dropped_and_counted() -> None:
    text = "SELECT * FROM S WHERE A AS x; B AS y WITHIN 10 [t]"
    matcher = stretto.Matcher(text, time="t", late="drop")
    rows = [("A", 10), ("B", 9), ("B", 12), ("A", 11), ("A", 12), ("B", 12), ("B", 3)]
    found = matcher.push([{"type": kind, "t": t} for kind, t in rows]).to_pylist()
    assert [row["positions"] for row in found] == [[0, 2], [4, 5], [0, 5]]
    assert (matcher.late, matcher.stats["late"], matcher.position) == (3, 3, 7)
    matcher.advance(20)
    again = matcher.push([{"type": "B", "t": 19}, {"type": "B", "t": 20}]).to_pylist()
    assert [row["positions"] for row in again] == [[4, 8], [0, 8]]
    assert matcher.late == 4
    restored = stretto.Matcher(text, time="t", late="drop").restore(matcher.snapshot())
    assert restored.late == 4
    assert restored.push([{"type": "B", "t": 21}]).to_pylist()[0]["positions"] == [4, 9]


def test_dropping_the_late_leaves_the_others_as_they_were() -> None:
    """Any split: the rows of the stream without its late events, under the numbers of the whole."""
    random = np.random.default_rng(4)
    rows = 300
    t = np.arange(rows) + random.integers(-3, 4, rows)
    names = np.array(["A", "B", "C"])[random.integers(0, 3, rows)]
    events = pa.table({"type": pa.array(names), "t": pa.array(t)})
    kept = np.flatnonzero(t == np.maximum.accumulate(t))
    text = "SELECT * FROM S WHERE A; B; C WITHIN 8 [t]"
    right = stretto.match(text, events.take(kept), time="t", output="positions").to_pylist()
    expected = [[int(kept[p]) for p in row["positions"]] for row in right]
    for step in (1, 7, rows):
        matcher = stretto.Matcher(text, time="t", late="drop", output="positions")
        found = [row for at in range(0, rows, step) for row in matcher.push(events.slice(at, step)).to_pylist()]
        assert [row["positions"] for row in found] == expected, step
        assert matcher.late == rows - kept.size
