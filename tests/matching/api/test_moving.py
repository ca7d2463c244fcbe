"""Moving aggregates, as users meet them: thresholds of bursts, their errors, and what is held for them."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.errors import DataError, OptionError, QueryError

SPRAY = "SELECT * FROM S WHERE F AS f ; A FILTER f[count(DISTINCT user) OVER 9 [t] >= 3] PARTITION BY [ip] WITHIN 5 [t]"
IN_SASE = "PATTERN SEQ(F f, A a) WHERE skip_till_any_match { [ip] AND count(DISTINCT f.user) OVER 9 >= 3 } WITHIN 5"


def events(count: int = 120, seed: int = 4) -> pa.Table:
    choose = random.Random(seed)
    times = sorted(choose.randrange(count) for _ in range(count))
    rows = [
        {"type": choose.choice("FFFFA"), "t": t, "ip": choose.choice("xyz"), "user": f"u{choose.randrange(4)}", "x": n}
        for n, t in enumerate(times)
    ]
    return pa.Table.from_pylist(rows)


def places(query: str, table: Any, **options: Any) -> list[list[int]]:
    found: list[list[int]] = stretto.match(query, table, output="positions", **options)["positions"].to_pylist()
    return found


@pytest.mark.parametrize("query", [SPRAY, IN_SASE])
def test_files_disorder_and_sets_find_what_match_finds(query: str, tmp_path: Path) -> None:
    table = events()
    right = places(query, table, time="t")
    assert right
    path = tmp_path / "events.parquet"
    pq.write_table(table, path, row_group_size=7)
    assert places(query, str(path), time="t") == right
    late = stretto.Matcher(query, table.schema, time="t", disorder=9, sequence="x", output="summary")
    order = sorted(range(table.num_rows), key=lambda n: table["t"][n].as_py() + random.Random(n).randrange(9))
    ends = [row["end"] for n in order for row in late.push(table.slice(n, 1)).to_pylist()]
    ends += [row["end"] for row in late.finish().to_pylist()]
    assert sorted(order[end] for end in ends) == sorted({end for *_, end in right})
    patterns = stretto.PatternSet(table.schema, time="t", output="positions", positions=True)
    patterns.change(
        [stretto.Change("spray", query), stretto.Change("other", SPRAY.replace("count(DISTINCT user)", "sum(x)"))]
    )
    rows = [*patterns.push(table).to_pylist(), *patterns.finish().to_pylist()]
    assert [row["positions"] for row in rows if row["pattern"] == "spray"] == right


def test_why_not_says_the_value() -> None:
    table = {"type": ["F", "F", "A"], "t": [1, 2, 3], "ip": ["x"] * 3, "user": ["a", "b", "c"]}
    said = str(stretto.why_not(SPRAY, table, time="t"))
    assert (
        "f[count(DISTINCT user) OVER 9 [t] >= 3] does not hold: count(DISTINCT user) OVER 9 [t] of f is 2 in row 1"
        in said
    )


def test_no_warning_of_a_condition_that_depends_on_events_before() -> None:
    table = {"type": ["F", "A"], "t": [1, 2], "ip": ["x", "x"], "user": ["a", "b"]}
    assert places(SPRAY, table, time="t") == []


def test_a_dropped_event_counts_nowhere() -> None:
    query = "SELECT * FROM S WHERE F AS f FILTER f[count(*) OVER 5 [t] >= 2]"
    matcher = stretto.Matcher(query, {"type": "string", "t": "int64"}, time="t", late="drop", output="positions")
    found = matcher.push({"type": ["F", "F", "F"], "t": [10, 8, 12]}).to_pylist()
    assert [row["positions"] for row in found] == [[2]]
    assert matcher.late == 1


def test_doubles_that_have_left_are_not_felt() -> None:
    table = {"type": ["F"] * 5, "t": [0, 1, 2, 10, 11], "d": [1e300, math.nan, 1.0, 2.0, 3.0]}
    assert places("SELECT * FROM S WHERE F AS f FILTER f[sum(d) OVER 5 [t] <= 5]", table, time="t") == [[3], [4]]
    assert places("SELECT * FROM S WHERE F AS f FILTER f[max(d) OVER 5 [t] >= 3]", table, time="t") == [[0], [4]]


def test_sums_of_integers_are_exact_or_an_error() -> None:
    great = 1 << 62
    table = {"type": ["F"] * 4, "t": [0, 1, 2, 3], "n": [great, great - 1, -great, great]}
    query = f"SELECT * FROM S WHERE F AS f FILTER f[sum(n) OVER 9 [t] = {2 * great - 1}]"
    assert places(query, table, time="t") == [[1], [3]]
    with pytest.raises(DataError, match=r"row 2: sum\(n\) OVER 9 \[t\] leaves 64 bits"):
        stretto.match(query, table | {"n": [great, great - 1, great, 0]}, time="t")


def test_a_sum_that_leaves_64_bits_in_a_stream() -> None:
    """The windows have moved by then: no answer is given that could be wrong."""
    query, schema = (
        "SELECT * FROM S WHERE F AS f FILTER f[sum(n) OVER 9 [t] > 0]",
        {"type": "string", "t": "int64", "n": "int64"},
    )
    matcher = stretto.Matcher(query, schema, time="t", output="positions")
    matcher.push({"type": ["F"], "t": [0], "n": [1 << 62]})
    with pytest.raises(DataError, match="row 1: sum"):
        matcher.push({"type": ["F"], "t": [1], "n": [1 << 62]})
    with pytest.raises(stretto.StrettoError, match="stopped in the middle of a batch"):
        matcher.push({"type": ["F"], "t": [2], "n": [1]})


def test_the_error_of_an_argument_names_the_row_and_changes_nothing() -> None:
    query = "SELECT * FROM S WHERE F AS f FILTER f[sum(n * n) OVER 9 [t] >= 5]"
    matcher = stretto.Matcher(query, {"type": "string", "t": "int64", "n": "int64"}, time="t", output="positions")
    matcher.push({"type": ["F"], "t": [0], "n": [1]})
    with pytest.raises(DataError, match="row 2"):
        matcher.push({"type": ["F", "F"], "t": [1, 2], "n": [2, 1 << 40]})
    assert matcher.push({"type": ["F"], "t": [2], "n": [2]})["positions"].to_pylist() == [[1]]


def test_an_order_that_nobody_else_looks_at() -> None:
    query = "SELECT * FROM S WHERE F AS f FILTER f[count(*) OVER 5 [t] >= 2]"
    assert places(query, {"type": ["F", "F"], "t": [1, 2]}) == [[1]]
    with pytest.raises(DataError, match="'t' decreases from 2 to 1 at row 1; OVER needs an attribute that does not"):
        stretto.match(query, {"type": ["F", "F"], "t": [2, 1]})


@pytest.mark.parametrize("aggregate", ["count(*)", "count(DISTINCT n)", "max(d)"])
def test_memory_is_that_of_the_window(aggregate: str) -> None:
    """Of each piece all keys and values are new."""
    query = f"SELECT * FROM S WHERE F AS f FILTER f[{aggregate} OVER 50 [t] < 0] PARTITION BY [k]"
    schema = {"type": "string", "t": "int64", "k": "int64", "n": "int64", "d": "double"}
    matcher, size = stretto.Matcher(query, schema, time="t", warn_after=None), 20_000
    most = []
    for piece in range(12):
        numbers = list(range(piece * size, piece * size + size))
        times = [piece * 1_000 + n // 20 for n in range(size)]
        columns = {"type": ["F"] * size, "t": times, "k": numbers, "n": numbers, "d": [float(n) for n in numbers]}
        matcher.push(columns)
        most.append(matcher.stats["bytes"])
    assert max(most[6:]) <= 1.05 * max(most[:6]), most
    assert not matcher.idle
    matcher.advance(20_000)
    assert matcher.idle


def test_when_a_window_ends_that_holds_no_match() -> None:
    query = "SELECT * FROM S WHERE F AS f FILTER f[count(*) OVER 5 [t] >= 2]"
    matcher = stretto.Matcher(query, {"type": "string", "t": "int64"}, time="t")
    matcher.push({"type": ["F"], "t": [3]})
    assert matcher.expires == 8


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("median(x) OVER 9 [t] > 3", "median(…) OVER … is no moving aggregate"),
        ("sum(*) OVER 9 [t] > 3", "sum(*) has nothing to go over"),
        ("sum(DISTINCT x) OVER 9 [t] > 3", "DISTINCT is for count, not for sum"),
        ("sum(5) OVER 9 [t] > 3", "sum of a constant"),
        ("count(*) OVER 9 EVENTS > 3", "OVER goes back in time, by more than none"),
        ("count(*) OVER 0 [t] > 3", "OVER goes back in time, by more than none"),
        ("sum(user) OVER 9 [t] > 3", "sum … OVER goes over whole numbers of 64 bits and doubles, and user is string"),
        ("count(*) OVER 9 [x] > 3", "OVER measures the time that orders the stream, which is 't', and not 'x'"),
        ("count(nobody) OVER 9 [t] > 3", "unknown attribute 'nobody'"),
        ("sum(count(*) OVER 9 [t]) OVER 9 [t] > 3", "a moving aggregate goes over attributes, not over another one"),
        ("count(*) OVER 1 minute > 3", "'t' is a plain number (int64); what is a second of it?"),
    ],
)
def test_mistakes(condition: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        stretto.match(f"SELECT * FROM S WHERE F AS f ; A FILTER f[{condition}]", events(), time="t")
    assert message in str(raised.value)
    assert "^" in str(raised.value)


def test_mistakes_in_sase() -> None:
    with pytest.raises(QueryError, match="a moving aggregate is of a component that holds one event"):
        stretto.compile("PATTERN SEQ(F+ f[], A a) WHERE skip_till_any_match { count(f[i].x) OVER 9 > 3 }")


@pytest.mark.parametrize("query", [SPRAY, IN_SASE])
def test_answers_that_are_taken_back_have_none(query: str) -> None:
    with pytest.raises((OptionError, QueryError), match="goes over events in the order of time"):
        stretto.Matcher(query, events().schema, time="t", disorder=5, speculation=5)


def test_results_show_no_column_of_it() -> None:
    found = stretto.match(SPRAY, events(), time="t")
    assert not any(" OVER " in name for name in found.column_names)
    assert list(found["f"][0].as_py()[0]) == events().column_names
