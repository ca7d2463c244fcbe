"""SASE+ on disordered streams: the automaton, and matches that come and go."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.automata.sase_afa import sase_afa
from stretto.errors import OptionError, QueryError, SnapshotError
from stretto.query import functions

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("t", pa.int64()),
        ("k", pa.int64()),
        ("v", pa.int64()),
        ("w", pa.float64()),
        ("name", pa.string()),
        ("d", pa.decimal128(8, 2)),
    ]
)


def events(text: str) -> pa.Table:
    """``A1 B- C3``: types with their v (− is NULL), one a tick."""
    rows = []
    for at, one in enumerate(text.split()):
        v = None if one[1:] in ("", "-") else int(one[1:])
        rows.append({"type": one[0], "t": at, "k": 0, "v": v, "w": v, "name": None if v is None else f"n{v}", "d": v})
    return pa.Table.from_pylist(rows, SCHEMA)


def agree(query: str, text: str, *, window: str = "WITHIN 100") -> int:
    """Raise an AssertionError unless each order of arrival gives the matches in order; how many there are."""
    table = events(text)
    full = f"{query} {window}"
    wanted = Counter(map(repr, stretto.match(full, table, time="t", output="positions").to_pylist()))
    for step in (1, 3, 7, -1):
        order = sorted(range(table.num_rows), key=lambda at: (at * step) % (table.num_rows + 1))
        matcher = stretto.Matcher(full, SCHEMA, time="t", speculation=math.inf, output="positions", sequence="t")
        total: Counter[str] = Counter()
        for row in matcher.push(table.take(order)).to_pylist():
            sign = row.pop("sign")
            for name in ("start", "end"):
                row[name] = order[row[name]]
            row["positions"] = sorted(order[one] for one in row["positions"])
            total[repr(row)] += sign
        assert +total == wanted, (step, +total - wanted, wanted - total)
    return sum(wanted.values())


CASES = [
    # The paper's queries.
    ("PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_next_match { [k] }", "A1 B2 A3 C1 B4 A1 A2 B9"),
    (
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.v < 9 and b[1].v = a.v and b[i].v = b[i-1].v + 1 }",
        "A1 B1 B2 B3 A2 B2 B3 B4",
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [k] and a[1].v > 3 and a[i].v > avg(a[..i-1].v) and "
        "b.v < 80% * a[a.LEN].v }",
        "A4 A5 A1 A6 B5 A9 B2 A- A7 B3",
    ),
    # Aggregates, with and without NULLs.
    ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { b.v > min(a[].v) and b.v < max(a[].v) }", "A3 A- A5 B4 A1 B2"),
    ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { sum(a[..i].v) <= 6 and avg(a[].w) < 2.5 }", "A1 A2 A- A4 B1"),
    ("PATTERN SEQ(A+ a[]) WHERE skip_till_next_match { count(a[].v) = a.LEN and a.LEN <= 3 }", "A1 A2 A- A3 A4 A5"),
    ("PATTERN SEQ(A+ a[]) WHERE skip_till_next_match { max(a[].v) - min(a[].v) < 3 }", "A4 A5 A3 A9 A4"),
    # Kleene in the middle and last; step 6.
    ("PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { b[i].v >= a.v and c.v > b.LEN }", "A1 B2 C1 B1 C9 B0 C3"),
    ("PATTERN SEQ(A a, B+ b[], C+ c[]) WHERE skip_till_any_match { c[1].v > sum(b[].v) }", "A1 B2 B3 C3 C6 C9"),
    ("PATTERN SEQ((A|B)+ a[], B b) WHERE skip_till_next_match { b.v > a[a.LEN].v }", "A1 B2 B1 A0 B3"),
    # Every a[i].
    ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { b.v > a[i].v }", "A3 A5 B4 A- B9 A1 B2"),
    ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { not b.v > a[i].v }", "A3 A5 B4 A- B2 A1"),
    ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i].name = b.name }", "A3 A3 B3 A- A4 B3 B4"),
    ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i].v + b.v <= 7 or b.name = 'n9' }", "A3 A5 B4 B9 B2"),
    ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.v > 3 or a[i].name LIKE 'n%' }", "A3 A- B2 B4"),
    # What came before: NULL, decimals, text.
    ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.v IS NULL or b.v > a.v }", "A- A3 B1 A1 B3"),
    ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.d > 2.5 or b.name = a.name }", "A1 A3 B1 B2 A- B5"),
    ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.name LIKE '%3' or b.v > 4 }", "A1 A3 B1 A- B5"),
    # Negation in between.
    ("PATTERN SEQ(A+ a[], ~(C n), B b) WHERE skip_till_any_match { n.v > a[a.LEN].v }", "A1 A2 C2 A3 B1 C9 B2"),
    ("PATTERN SEQ(A+ a[], ~(C n), B b) WHERE skip_till_next_match { a[i].v > 0 }", "A1 C2 A0 B1 A3 B1 C9 B2"),
    ("PATTERN SEQ(A a, ~(C m), ~(D n), B b) WHERE skip_till_any_match { m.v = a.v }", "A1 C2 B1 A2 C2 B2 A3 D1 B3 A4 B4"),
    ("PATTERN SEQ(A a, ~(B n), B b) WHERE skip_till_any_match { n.v > 3 }", "A1 B2 B4 B1"),
    # Contiguity.
    ("PATTERN SEQ(A+ a[], ~(C n), B b) WHERE partition_contiguity { [k] and a[i].v > a[i-1].v }", "A1 A2 B1 A3 C1 B2 A4 B1"),
    ("PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { [w] }", "A1 A1 B1 A2 B1 A3 B3"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "text"), CASES)
def test_forms(query: str, text: str) -> None:
    assert agree(query, text)
    agree(query, text, window="WITHIN 3")


def test_each_window_end_is_included() -> None:
    assert agree("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { }", "A1 C1 B1", window="WITHIN 2") == 1
    assert agree("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { }", "A1 C1 B1", window="WITHIN 1") == 0


def test_dates_and_timestamps() -> None:
    kinds = [pa.date32(), pa.date64(), pa.timestamp("ms"), pa.timestamp("us", tz="UTC")]
    for kind in kinds:
        days = pa.array([0, 1, 2], pa.int32()).cast(pa.date32()).cast(kind)
        table = pa.table({"type": ["A", "B", "B"], "t": days})
        query = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.t > a.t } WITHIN 1 day"
        matcher = stretto.Matcher(query, time="t", speculation=math.inf)
        got = matcher.push(table.take([2, 0, 1]))
        assert got.column("positions").to_pylist() == [[1, 2]]
        assert got.schema.field("start_time").type == kind


def test_revisions_show_the_new_event() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 10 RETURN a.v AS was, b.v AS became"
    matcher = stretto.Matcher(query, time="t", sequence="t", sign="sign", speculation=math.inf)
    rows = [("A", 0, 1, 1), ("B", 1, 2, 1), ("B", 1, 2, -1), ("B", 1, 3, 1)]
    table = pa.table(dict(zip(("type", "t", "v", "sign"), map(list, zip(*rows, strict=True)), strict=True)))
    shown = ["sign", "end", "was", "became"]
    assert matcher.push(table).select(shown).to_pylist() == [
        {"sign": 1, "end": 1, "was": 1, "became": 2},
        {"sign": -1, "end": 1, "was": 1, "became": 2},
        {"sign": 1, "end": 3, "was": 1, "became": 3},
    ]


def test_what_is_not_selected_changes_nothing() -> None:
    matcher = stretto.Matcher(
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] }", SCHEMA, time="t", sign="sign", speculation=math.inf
    )
    table = events("A1 C1 B1").append_column("sign", pa.array([1, 1, 1], pa.int8()))
    assert matcher.push(table).num_rows == 1
    gone = table.slice(1, 1).set_column(table.num_columns - 1, "sign", pa.array([-1], pa.int8()))
    assert not matcher.push(gone).num_rows


def test_events_are_kept_as_long_as_they_may_be_shown() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 10"
    matcher = stretto.Matcher(query, time="t", speculation=math.inf)
    size = 40_000
    for begin in range(0, 5 * size, size):
        matcher.push(pa.table({"type": ["A", "C"] * (size // 2), "t": range(begin, begin + size)}))
        matcher.advance(begin + size - 5)
    assert matcher.stats["kept"] < 2 * size
    (row,) = matcher.push([{"type": "B", "t": 5 * size - 4}]).to_pylist()[-1:]
    assert row["a"][0]["t"] in range(5 * size - 14, 5 * size)


def test_snapshots() -> None:
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.v > a[i].v } WITHIN 100"
    table = events("A1 A2 B3 A1 B2 B9")
    order = [0, 2, 5, 1, 4, 3]

    def rows(cut: bool) -> list[Any]:
        matcher = stretto.Matcher(query, SCHEMA, time="t", speculation=math.inf)
        found = []
        for at in order:
            found += matcher.push(table.slice(at, 1)).to_pylist()
            if cut:
                saved = matcher.snapshot()
                matcher = stretto.Matcher(query, SCHEMA, time="t", speculation=math.inf).restore(saved)
        return found

    assert rows(True) == rows(False)
    saved = stretto.Matcher(query, SCHEMA, time="t", speculation=math.inf).snapshot()
    with pytest.raises(SnapshotError, match="another query"):
        stretto.Matcher(query + "0", SCHEMA, time="t", speculation=math.inf).restore(saved)
    with pytest.raises(SnapshotError, match="not of a query"):
        stretto.Matcher(query, SCHEMA, time="t", speculation=math.inf).restore(
            stretto.Matcher(query, SCHEMA, time="t").snapshot()
        )


def test_snapshots_hold_what_windows_reach() -> None:
    query = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { } WITHIN 20"
    sizes, saved = [], None
    for round in range(12):
        matcher = stretto.Matcher(query, SCHEMA, time="t", speculation=math.inf)
        if saved is not None:
            matcher.restore(saved)
        some = events("A1 B2 B3 C4 " * 20)
        matcher.push(some.set_column(1, "t", pa.array(range(80 * round, 80 * (round + 1)))))
        matcher.advance(80 * (round + 1) - 10)
        saved = matcher.snapshot()
        sizes.append(len(saved))
    assert max(sizes[4:]) <= 1.1 * min(sizes[2:4])


def test_late_events() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { }"
    matcher = stretto.Matcher(query, time="t", speculation=math.inf, late="side")
    matcher.push([{"type": "A", "t": 5}])
    matcher.advance(4)
    matcher.push([{"type": "A", "t": 3}, {"type": "B", "t": 6}])
    assert matcher.late == 1
    assert matcher.late_events().to_pylist() == [{"type": "A", "t": 3}]
    assert matcher.punctuation == 4
    strict = stretto.Matcher(query, time="t", speculation=math.inf)
    strict.push([{"type": "A", "t": 5}])
    strict.advance(4)
    with pytest.raises(stretto.DataError, match="row 1 is late"):
        strict.push([{"type": "A", "t": 3}, {"type": "B", "t": 6}])
    assert strict.push([{"type": "B", "t": 6}]).to_pylist()[0]["b"] == [{"type": "B", "t": 6}]


REFUSED = [
    ("SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 3 EVENTS", "late event moves"),
    ("SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 3 [v]", "measures 'v'"),
    ("SEQ(A a, B b) WHERE skip_till_next_match { } LIMIT 2", "LIMIT chooses"),
    ("SEQ(A a, B b) WHERE skip_till_next_match { } OUTPUT non_overlap", "non_overlap chooses"),
    ("SEQ(A a, B b) WHERE skip_till_next_match { } OUTPUT compressed", "as sets"),
    ("SEQ(~(C n), A a) WHERE skip_till_next_match { } WITHIN 3", "at an end"),
    ("SEQ(A a, ~(C n)) WHERE skip_till_next_match { } WITHIN 3", "at an end"),
    ("SEQ(A a, ~(C n), B b) WHERE skip_till_next_match { n.v > b.v }", "b.v is not known yet"),
    ("SEQ(A a, B b) WHERE skip_till_next_match { a.name < b.name }", "strings of different events"),
    ("SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].v != b.v }", "differ from something"),
    ("SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].v * 2 < b.v }", "inside of arithmetic"),
    ("SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].v < b.v or a[i].w > b.w }", "two of its alternatives"),
    ("SEQ(A a, B b) WHERE strict_contiguity { [d] }", "no register can keep"),
]


@pytest.mark.parametrize(("query", "why"), REFUSED)
def test_what_is_refused(query: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        stretto.Matcher(f"PATTERN {query}", SCHEMA, time="t", speculation=math.inf)


def test_options() -> None:
    query = "PATTERN SEQ(A a) WHERE skip_till_next_match { }"
    with pytest.raises(OptionError, match="late='no'"):
        stretto.Matcher(query, speculation=math.inf, late="no")
    with pytest.raises(OptionError, match="summary"):
        stretto.Matcher(query, speculation=math.inf, output="summary")
    with pytest.raises(QueryError, match="none is named"):
        stretto.Matcher(query, SCHEMA, speculation=math.inf)
    with pytest.raises(QueryError, match="'w' is double"):
        stretto.Matcher(query, SCHEMA, time="w", speculation=math.inf)
    assert stretto.Matcher(query, time="t", speculation=math.inf).push([]).num_rows == 0
    with pytest.raises(OptionError, match="no schema yet"):
        stretto.Matcher(query, time="t", speculation=math.inf).advance(3)


def test_the_automaton_can_be_read() -> None:
    query = "PATTERN SEQ(A+ a[], ~(C n), B b) WHERE skip_till_next_match { a[1].v > 0 and b.v > avg(a[].v) } WITHIN 9"
    matcher = stretto.Matcher(query, SCHEMA, time="t", speculation=math.inf)
    text = matcher.explain()
    assert "a_sum_v int64 = 0" in text
    assert "a[i], n" in text
    assert "match" in str(matcher.draw())
    assert matcher.afa.window == 10
    assert "engine     afa: answers go ahead of what is certain" in text
    assert "not nfab: it reads events in order" in text
    assert "not timed: it reads events in order" in text


def test_functions_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_KNOWN", {})

    @stretto.function
    def near(old, new):  # type: ignore[no-untyped-def]
        return abs(new - old) < 2

    assert agree("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { near(a.v, b.v) }", "A1 B2 B5 A- B1") == 2


def test_afas_of_queries_are_values() -> None:
    query = stretto.compile("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.v > a.v } WITHIN 5", SCHEMA, time="t")
    assert sase_afa(query.bound) == sase_afa(query.bound)  # type: ignore[arg-type]
