"""Conditions that are equalities between events as keys: what is split by them, and what is not; in files, streams and snapshots."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.query.passes.bind_sase import BoundSase

KINDS = {
    "type": "string", "t": "int64", "id": "int64", "ref": "int32", "s": "string", "w": "double", "v": "int64", "region": "string",
    "day": "date32", "at": "timestamp[us]", "of": pa.struct([("id", pa.int64())]), "u": "uint64",
}  # fmt: skip

ANY, NEXT = "skip_till_any_match", "skip_till_next_match"


def keys(
    pattern: str, where: str, strategy: str = NEXT, rest: str = "", kinds: dict[str, object] | None = None
) -> tuple[str, ...]:
    """The keys that the conditions of a query say."""
    text = f"PATTERN SEQ({pattern}) WHERE {strategy} {{ {where} }} {rest}"
    split = stretto.compile(text, {**KINDS, **(kinds or {})}, time="t").split
    assert isinstance(split, BoundSase)
    return split.parsed.implied


@pytest.mark.parametrize(
    ("pattern", "where", "expected"),
    [
        ("A a, B b", "a.id = b.id", ("id",)),
        ("A a, B b", "b.id = a.id AND a.s = b.s AND a.v < b.v", ("id", "s")),
        ("A a, B b", "a.id = b.ref", ("A[id] = B[ref]",)),
        ("A a, B b", "a.of.id = b.ref", ("A[of.id] = B[ref]",)),
        ("A a, B b, C c", "a.id = b.ref AND b.ref = c.id", ("A[id] = B[ref] = C[id]",)),
        ("A a, (B|C) b", "a.id = b.ref", ("A[id] = B[ref] = C[ref]",)),
        ("A+ a[], B b", "a[i].id = a[i-1].id AND b.id = a[a.LEN].id", ("id",)),
        ("A+ a[], B b", "a[i].id = a[1].id AND b.id = a[i].id", ("id",)),
        ("A a, B+ b[]", "b[1].id = a.id AND b[i].id = b[i-1].id", ("id",)),
        ("A a, ~(N n), B b", "a.id = b.id AND n.ref = b.id", ("A[id] = N[ref] = B[id]",)),
        ("A a, B b", "[region] AND a.id = b.id", ("id",)),
        ("A a, B b", "a.at = b.at AND a.day = b.day", ("at", "day")),
    ],
)
def test_what_is_split(pattern: str, where: str, expected: tuple[str, ...]) -> None:
    assert keys(pattern, where) == keys(pattern, where, ANY) == expected


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("A a, B b", "a.id > b.id"),
        ("A a, B b", "a.id = b.id OR a.v = 1"),
        ("A a, B b", "NOT (a.id = b.id)"),
        ("A a, B b", "a.w = b.w"),  # −0.0 and NaN
        ("A a, B b", "a.id = b.w"),
        ("A a, B b", "a.id = b.u"),  # no integers hold both
        ("A a, B b", "a.day = b.at"),
        ("A a, B b", "a.id = b.id AND a.id + b.v < 9"),  # an overflow is asked of other events then
        ("A a, A b", "a.id = b.ref"),  # an A may be either
        ("A a, B b, C c", "a.id = b.id"),
        ("A a, B b, C c", "a.id = b.id AND b.ref = c.ref"),
        ("A a, ~(N n), B b", "a.id = b.id"),
        ("A+ a[]", "a[i].id = a[i-1].id"),  # of one event nothing is asked
        ("A+ a[], B b", "b.id = a[a.LEN].id"),
        ("A a, B+ b[]", "b[i].id = a.id"),  # nothing is asked of b[1]
        ("A a, B? b, C c", "a.id = c.id AND b.id = c.id"),
        ("A a, B b", "a.id = b.id AND b.id = b.ref AND a.ref = b.id"),
    ],
)
def test_what_is_not(pattern: str, where: str) -> None:
    assert keys(pattern, where) == keys(pattern, where, ANY) == ()


def test_what_the_strategy_and_the_rest_say() -> None:
    assert keys("A+ a[], B b", "a[i].id = b.id", ANY) == ("id",)
    assert keys("A+ a[], B b", "a[i].id = b.id", NEXT) == ()
    assert keys("A a, B b, C c", "a.id = c.id AND b.id = c.id", ANY) == ("id",)
    assert keys("A a, B b, C c", "a.id = c.id AND b.id = c.id", NEXT) == ()
    for strategy in ("strict_contiguity", "partition_contiguity"):
        assert keys("A a, B b", "a.id = b.id", strategy) == ()
    assert keys("A a, B b", "a.id = b.id", ANY, "WITHIN 5") == ("id",)
    for rest in ("WITHIN 5 EVENTS", "LIMIT 1", "OUTPUT non_overlap", "KEEP LONGEST"):
        assert keys("A a, B b", "a.id = b.id", ANY, rest) == ()
    assert keys("A a, B b", "a.id = b.ref", kinds={"A[id] = B[ref]": "int64"}) == ()  # a column is called so


def test_explain_says_so() -> None:
    text = f"PATTERN SEQ(A a, B b) WHERE {ANY} {{ a.id = b.ref AND [region] }} WITHIN 5"
    shown = stretto.compile(text, KINDS, time="t").explain()
    by = "by A[id] = B[ref], as the conditions ask for equal ones, and by region; no column of results"
    assert f"partition  {by}\n" in shown
    assert "engine     tecs: conditions relate events only by equal region, A[id] = B[ref] (equalities): " in shown


TEXT = f"PATTERN SEQ(A a, B b) WHERE {ANY} {{ a.id = b.ref }}"
EVENTS = pa.table(
    {
        "type": ["A", "A", "X", "B", "A", "B", "B"],
        "t": [1, 2, 3, 4, 5, 6, 7],
        "id": [1, 2, 1, 2, None, None, 7],
        "ref": pa.array([None, None, 1, 1, 3, 2, None], pa.int32()),
    }
)
FOUND = [[0, 3], [1, 5]]


def test_results_show_no_key() -> None:
    found = stretto.match(TEXT, EVENTS, time="t")
    assert found["positions"].to_pylist() == FOUND
    assert found.column_names == ["start", "end", "positions", "start_time", "end_time", "a", "b"]
    assert found["a"].type.value_type.names == EVENTS.column_names
    assert stretto.match(TEXT, EVENTS, time="t", output="summary")["matches"].to_pylist() == [1, 1]
    assert [len(one) for one in stretto.match_sets(TEXT, EVENTS, time="t")] == [1, 1]


def test_files_and_streams(tmp_path: Path) -> None:
    pq.write_table(EVENTS, tmp_path / "all.parquet", row_group_size=2)
    assert stretto.match(TEXT, tmp_path / "all.parquet", time="t")["positions"].to_pylist() == FOUND
    mixed = pq.read_table(tmp_path / "all.parquet").take([6, 5, 4, 3, 2, 1, 0])
    pq.write_table(mixed, tmp_path / "mixed.parquet")
    assert stretto.match(TEXT, tmp_path / "mixed.parquet", time="t")["positions"].to_pylist() == [[3, 6], [1, 5]]
    names = {"A": ["type", "t", "id"], "B": ["type", "t", "ref"]}
    tables = {kind: EVENTS.filter(pc.equal(EVENTS["type"], kind)).select(own) for kind, own in names.items()}
    for kind, table in tables.items():
        pq.write_table(table, tmp_path / f"{kind}.parquet")
    files = {kind: tmp_path / f"{kind}.parquet" for kind in tables}
    for given in (tables, files):
        found = stretto.match(TEXT, given, time="t")
        assert found.select(["start_time", "end_time"]).to_pylist() == [
            {"start_time": 1, "end_time": 4},
            {"start_time": 2, "end_time": 6},
        ]
    untyped = {kind: table.drop_columns(["type"]) for kind, table in tables.items()}
    assert stretto.match(TEXT, untyped, time="t", type=None).num_rows == 2


@pytest.mark.parametrize("schema", [None, EVENTS.schema])
def test_a_matcher_at_any_cut(schema: pa.Schema | None) -> None:
    for cut in range(EVENTS.num_rows + 1):
        matcher = stretto.Matcher(TEXT, schema, time="t")
        rows = matcher.push(EVENTS.slice(0, cut)).to_pylist()
        resumed = stretto.Matcher(TEXT, schema, time="t").restore(matcher.snapshot())
        rows += resumed.push(EVENTS.slice(cut)).to_pylist() + resumed.finish().to_pylist()
        assert [row["positions"] for row in rows] == FOUND
    sorts = stretto.Matcher(TEXT, EVENTS.schema, time="t", disorder=9)
    found = sorts.push(EVENTS.take([3, 1, 0, 2, 6, 5, 4])).to_pylist() + sorts.finish().to_pylist()
    assert [row["start_time"] for row in found] == [1, 2]


def test_a_late_event_is_late_for_all_keys() -> None:
    """An event without a key moves time, though it can be in no match."""
    rows = [
        {"type": "X", "t": 9},
        {"type": "A", "t": 3, "id": 1},
        {"type": "A", "t": 9, "id": 1},
        {"type": "B", "t": 10, "ref": 1},
    ]
    events = pa.Table.from_pylist(rows, EVENTS.schema)
    matcher = stretto.Matcher(TEXT, EVENTS.schema, time="t", late="drop")
    assert matcher.push(events)["positions"].to_pylist() == [[2, 3]]
    assert matcher.late == 1
    with pytest.raises(stretto.DataError, match="'t' decreases from 9 to 3 at row 1"):
        stretto.Matcher(TEXT, EVENTS.schema, time="t").push(events)


def test_types_that_come_later() -> None:
    """What nobody knew is a key as soon as it is there; the type of one that is known stays."""
    matcher = stretto.Matcher(TEXT, time="t")
    assert matcher.push([{"type": "A", "t": 1, "id": None, "ref": None}]).num_rows == 0
    assert matcher.push([{"type": "A", "t": 2, "id": 5, "ref": 4}]).num_rows == 0
    resumed = stretto.Matcher(TEXT, time="t").restore(matcher.snapshot())
    for one in (matcher, resumed):
        assert one.push([{"type": "B", "t": 3, "id": 4, "ref": 5}])["positions"].to_pylist() == [[1, 2]]
    keyed = stretto.Matcher(TEXT, time="t")
    keyed.push([{"type": "A", "t": 1, "id": 1, "ref": 1}])
    with pytest.raises(stretto.DataError, match="column 'id' is double, and batches before had int64"):
        keyed.push([{"type": "A", "t": 2, "id": 1.5, "ref": 1}])


def test_a_state_of_before_goes_on_without_keys() -> None:
    before = stretto.Matcher(TEXT, EVENTS.schema, time="t")
    before._executor.split = False  # type: ignore[attr-defined]
    before._executor.start()  # type: ignore[attr-defined]
    rows = before.push(EVENTS.slice(0, 3)).to_pylist()
    resumed = stretto.Matcher(TEXT, EVENTS.schema, time="t").restore(before.snapshot())
    assert resumed.stats["partitions"] == 1
    rows += resumed.push(EVENTS.slice(3)).to_pylist() + resumed.finish().to_pylist()
    assert [row["positions"] for row in rows] == FOUND
