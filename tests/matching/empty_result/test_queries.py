"""Warnings of what keeps a result empty: conditions and keys that no event has, windows that are too short."""

from __future__ import annotations

import datetime as dt
import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.matching.empty_result import queries as dry
from stretto.matching.empty_result import unsatisfied as looking

EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B", "C"],
        "x": [1, 2, 3, 4, None],
        "y": ["foo", "bar", "foo", "baz", "q"],
        "none": pa.nulls(5, pa.int64()),
        "row": [1, 2, 3, 4, 5],
        "k": [1, 1, 2, 2, 2],
        "t": [0, 100, 200, 300, 400],
    }
)
ANY = "skip_till_any_match"


def told(query: Any, events: Any = EVENTS, **options: Any) -> list[str]:
    """The warnings of a result without rows, without the words with which each begins."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert stretto.match(query, events, **({"time": "t"} | options)).num_rows == 0
    assert all(one.category is stretto.StrettoWarning and one.filename == __file__ for one in caught)
    messages = [str(one.message) for one in caught]
    assert all(one.startswith("no match: ") for one in messages)
    return [one.removeprefix("no match: ") for one in messages]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT * FROM S WHERE A ; B AS b FILTER b[x > 5]",
            "of 2 events of type 'B' none fulfils b[x > 5] (line 1, column 43): x is from 2 to 4",
        ),
        (
            "SELECT * FROM S\nWHERE C AS c FILTER c[x > 3]",
            "of 1 event of type 'C' none fulfils c[x > 3] (line 2, column 23): x is always NULL",
        ),
        (
            "SELECT * FROM S WHERE A ; (B OR C) AS b FILTER b[y = 'bazz']",
            "of 3 events of type 'B' or 'C' none fulfils b[y = 'bazz'] (line 1, column 50): y is never 'bazz'; did you mean 'baz'?",
        ),
        (
            "SELECT * FROM S WHERE A AS a FILTER a[y LIKE 'b%']",
            "of 2 events of type 'A' none fulfils a[y LIKE 'b%'] (line 1, column 39): y is 'foo'",
        ),
        (
            "SELECT * FROM S WHERE B AS b FILTER b[x > 3 AND y = 'bar']",
            "of 2 events of type 'B' none fulfils all of these together, though some fulfil each: b[x > 3], b[y = 'bar']",
        ),
        (
            "SELECT * FROM S WHERE A ; B PARTITION BY [none]",
            "of 4 events of type 'A' or 'B' none has the key 'none' (line 1, column 43): it is NULL, and events without a key are in "
            "no match",
        ),
        (
            "SELECT * FROM S WHERE A ; B PARTITION BY [row]",
            "of 4 events of the types that the query names no 2 have the same 'row', as the query asks",
        ),
        (
            "SELECT * FROM S WHERE A ; B ; C PARTITION BY [k] WITHIN 99 [t]",
            "of 5 events of the types that the query names no 3 with the same 'k' are as near as WITHIN 99 [t] (line 1, column 57) "
            "asks: they last 200 of 't' at least",
        ),
        (
            "SELECT * FROM S WHERE A{2} ; B? ; C WITHIN 1 EVENTS",
            "a match has at least 3 events, and WITHIN 1 EVENTS (line 1, column 44) holds 2 events",
        ),
        (
            f"PATTERN SEQ(A a, ~(B n), B+ b[]) WHERE {ANY} {{ a.x > 3 AND n.x > 99 AND b[i].x > 99 }}",
            "of 2 events of type 'A' none fulfils a.x > 3 (line 1, column 62): x is from 1 to 3",
        ),
        (
            f"PATTERN SEQ(A a, B{{2,3}} b[]) WHERE {ANY} {{ b[i].x < 2 }}",
            "of 2 events of type 'B' none fulfils b[i].x < 2 (line 1, column 58): x is from 2 to 4",
        ),
        (
            f"PATTERN SEQ(A a, B b) WHERE {ANY} {{ [k] }} WITHIN 99",
            "of 4 events of the types that the query names no 2 with the same 'k' are as near as WITHIN 99 (line 1, column 64) asks: "
            "they last 100 of 't' at least",
        ),
    ],
)
def test_words(query: str, expected: str) -> None:
    assert told(query) == [expected]
    coded = EVENTS.set_column(0, "type", EVENTS["type"].dictionary_encode())
    coded = coded.set_column(2, "y", EVENTS["y"].dictionary_encode())
    assert told(query, coded) == [expected]
    assert told(query, pa.concat_tables([EVENTS.slice(0, 3), EVENTS.slice(3)])) == [expected]


def test_words_of_eql() -> None:
    query = 'sequence with maxspan=30s [A where x > 3 and y == "bla"] [any where true]'
    assert told(query, language="eql", time_unit="s") == [
        "of 2 events of type 'A' none fulfils e1[x > 3] (line 1, column 36): x is from 1 to 3",
        "of 2 events of type 'A' none fulfils e1[y = 'bla'] (line 1, column 46): y is 'foo'",
        "of 5 events no 2 are as near as maxspan 30 seconds (line 1, column 23) asks: they last 1 min 40 s at least",
    ]
    assert told("sequence [A where true] by none [B where true] by k", language="eql") == [
        "of 2 events of type 'A' none has the key 'none' (line 1, column 28): it is NULL, and events without a key are in no match"
    ]
    assert told("sequence by ?none [B where x > 2] [A where true]", language="eql") == []


def test_times_are_told_in_words() -> None:
    times = pa.array([dt.datetime(2026, 1, 1, hour) for hour in range(5)], pa.timestamp("us"))
    events = EVENTS.set_column(6, "t", times)
    assert told("SELECT * FROM S WHERE A ; B WITHIN 90 seconds", events)[0].endswith("asks: they last 1 h at least")
    dates = EVENTS.set_column(6, "t", pa.array([dt.date(2026, 1, day) for day in (1, 3, 5, 7, 9)]))
    assert told("SELECT * FROM S WHERE A ; B WITHIN 1 day", dates)[0].endswith("asks: they last 2 d at least")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM S WHERE B ; A ; A",  # nothing but their order is in the way
        "SELECT * FROM S WHERE C ; (A AS a)? ; NOT B ; B FILTER a[x > 99]",
        "SELECT * FROM S WHERE B ; A ; C PARTITION BY [k] WITHIN 200 [t]",  # near enough, in another order
        f"PATTERN SEQ(C c, A* a[], B b) WHERE {ANY} {{ a[1].x > 99 AND a[i].x > 99 }}",
        f"PATTERN SEQ(B b, A a) WHERE {ANY} {{ a.x > b.x + 99 }}",
    ],
)
def test_nothing_is_told_of_what_may_be_missing(query: str) -> None:
    assert told(query) == []


def test_files_are_read_once_more(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(EVENTS, path, row_group_size=2)
    query = "SELECT * FROM S WHERE A ; B AS b FILTER b[x > 5] WITHIN 10 [t]"
    found = [
        "of 2 events of type 'B' none fulfils b[x > 5] (line 1, column 43): x is from 2 to 4",
        "of 4 events of the types that the query names no 2 are as near as WITHIN 10 [t] (line 1, column 57) asks: they "
        "last 100 of 't' at least",
    ]
    assert told(query, path) == told(query) == found


def test_nothing_is_read_where_there_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "pieces", None)
    monkeypatch.setattr(dry, "pieces", None)
    monkeypatch.setattr(dry, "looked_of", None)
    assert stretto.match("SELECT * FROM S WHERE A ; B WITHIN 100 [t]", EVENTS, time="t").num_rows == 2


def test_only_a_piece_is_read_where_nothing_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "FIRST", 5)
    monkeypatch.setattr(looking, "PIECE", 5)
    read = list[int]()
    whole = looking.Looked.look

    def look(self: looking.Looked, piece: pa.Table, choose: looking.Choice) -> None:
        read.append(piece.num_rows)
        whole(self, piece, choose)

    monkeypatch.setattr(looking.Looked, "look", look)
    events = pa.concat_tables([EVENTS] * 4)
    assert dry.findings(stretto.compile("SELECT * FROM S WHERE A AS a FILTER a[x > 2]", EVENTS.schema), events) == []
    assert read == [5]
    late = pa.concat_tables([EVENTS.slice(0, 2)] * 5 + [EVENTS])
    assert dry.findings(stretto.compile("SELECT * FROM S WHERE A AS a FILTER a[x > 2]", EVENTS.schema), late) == []
    assert read == [5, 5, 5, 5]


def test_distances_by_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """How near events of two keys come, also over pieces of files; beyond a number of rows nothing is said."""
    monkeypatch.setattr(looking, "FIRST", 3)
    monkeypatch.setattr(looking, "PIECE", 4)
    for seed in range(200):
        choose = random.Random(seed)
        rows: list[Any] = [
            {
                "type": choose.choice("AB"),
                "k": choose.choice([0, 1, None]),
                "j": choose.choice("uv"),
                "t": choose.randint(0, 60),
            }
            for _ in range(choose.randint(1, 12))
        ]
        table = pa.Table.from_pylist(
            rows, pa.schema([("type", pa.string()), ("k", pa.int64()), ("j", pa.string()), ("t", pa.int64())])
        )
        size = choose.randint(0, 20)
        query = stretto.compile(
            f"SELECT * FROM S WHERE A ; A ; A PARTITION BY [k], [j] WITHIN {size} [t]", table.schema
        )
        lasts = []
        for key in {(row["k"], row["j"]) for row in rows if row["k"] is not None}:
            times = sorted(row["t"] for row in rows if (row["k"], row["j"]) == key and row["type"] == "A")
            lasts += [last - first for first, last in zip(times, times[2:], strict=False)]
        keyed = sum(row["k"] is not None and row["type"] == "A" for row in rows)
        found = [one for one in dry.findings(query, table) if " no 3 " in one]
        if keyed < 3 or (lasts and min(lasts) <= size):
            assert found == [], (seed, rows)
        elif lasts:
            assert found[0].startswith(f"of {keyed} events "), (seed, found)
            assert found[0].endswith(f"they last {min(lasts)} of 't' at least"), (seed, found)
        else:
            assert found[0].endswith("no 3 have the same 'k' and 'j', as the query asks"), (seed, found)
    monkeypatch.setattr(dry, "MOST_APART", 4)
    assert told("SELECT * FROM S WHERE A ; B ; C WITHIN 50 [t]") == []


def test_rows_of_sql() -> None:
    table = pa.table({"t": [1, 2, 3], "x": [5, 6, 7], "k": ["a", "b", "a"]})

    def warned(clause: str) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            text = f"SELECT * FROM T MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS n {clause})"
            assert stretto.sql(text, T=table).num_rows == 0
        return [str(one.message).removeprefix("no match: ") for one in caught]

    assert warned("PATTERN (A B+) DEFINE B AS x < PREV(x)") == ["of 3 rows none fulfils B AS x < PREV(x)"]
    assert warned("PATTERN (A B*) DEFINE A AS k = 'A', B AS x > 9") == [
        "of 3 rows none fulfils A AS k = 'A': k is never 'A'; did you mean 'a'?"
    ]
    assert warned("PATTERN ((A | B) C) DEFINE B AS x > 10, C AS x > 20") == [
        "of 3 rows none fulfils C AS x > 20: x is from 5 to 7"
    ]
    assert warned("PATTERN (A B) DEFINE A AS x = 5, B AS x > 3 * A.x") == []
    assert warned("PATTERN (A A) DEFINE A AS x > 6") == []


def test_arcs_of_automata() -> None:
    afa = stretto.AFA({"y": str, "x": int}, window=10)
    afa = afa.arc("q0", "q1", when="e.y = 'foo'").arc("q1", "q2", when="e.y = 'Bar' AND e.x > 2").final("q2")
    expected = "of 5 events none fulfils e.y = 'Bar' of the arc a1 (q1 -> q2): y is never 'Bar'; did you mean 'bar'?"
    assert told(afa) == [expected]
    assert told(afa, EVENTS.set_column(1, "x", EVENTS["x"].cast(pa.int32()))) == [expected]
    around = afa.arc("q1", "q2", when="e.y = 'q'")  # it only comes too late
    assert told(around) == []
    counting = (
        stretto.AFA({"x": int}, register={"n": int}, window=10).arc("q0", "q1", when="e.x > r.n + 99").final("q1")
    )
    assert told(counting) == []
