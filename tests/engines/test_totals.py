"""The engine of counts and sums: what 64 bits hold, what it keeps, windows over streams."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.columns.overflow import IntegerOverflow
from stretto.errors import DataError, LimitError, OptionError, QueryError, StrettoError
from tests.conftest import size


def events(kinds: str, **columns: Any) -> pa.Table:
    """Events a second apart, of types of one letter."""
    return pa.table({"type": list(kinds), "ts": pa.array(range(len(kinds)), pa.timestamp("s")), **columns})


def rows(query: str, given: pa.Table, **options: Any) -> list[dict[str, Any]]:
    return stretto.match(query, given, time="ts", **options).to_pylist()


def counts(query: str, given: pa.Table, **options: Any) -> list[int]:
    return [row["count"] for row in rows(query, given, **options)]


# -- 64 bits --------------------------------------------------------------------------------------------------------------


def test_counts_are_exact_up_to_the_last_bit() -> None:
    assert counts("SELECT COUNT(*) FROM S WHERE A+", events("A" * 63)) == [2**63 - 1]
    with pytest.raises(
        IntegerOverflow, match=r"COUNT\(\*\) of all matches leaves 64 bits at row 63: write CAST\(COUNT"
    ):
        counts("SELECT COUNT(*) FROM S WHERE A+", events("A" * 64))


def test_an_error_names_the_event_and_its_key() -> None:
    given = events("B" + "A" * 64, k=["x"] * 65)
    with pytest.raises(IntegerOverflow, match="of k = 'x' leaves 64 bits at row 64"):
        counts("SELECT COUNT(*) FROM S WHERE A+ PARTITION BY [k]", given)


def test_floating_counts_go_on() -> None:
    (row,) = rows("SELECT CAST(COUNT(*) AS DOUBLE) AS n FROM S WHERE A+", events("A" * 100))
    assert row == {"n": pytest.approx(2.0**100)}


def test_what_no_match_has_may_be_beyond() -> None:
    given = events("A" * 70 + "C" + "A" + "B")
    assert counts("SELECT COUNT(*) FROM S WHERE A+; B WITHIN 1 second", given) == [1]
    assert counts("SELECT COUNT(*) FROM S WHERE A+; C; B WITHIN 1 second", given) == [0]
    with pytest.raises(IntegerOverflow):
        counts("SELECT COUNT(*) FROM S WHERE A+; C; B", given)


def test_sums_are_exact_up_to_the_last_bit() -> None:
    least = -(2**63)
    given = events("AB", v=pa.array([2**62, 2**62 - 1], pa.int64()))
    assert rows("SELECT SUM(x[v]) AS s FROM S WHERE (A; B) AS x", given) == [{"s": 2**63 - 1}]
    given = events("AB", v=pa.array([-(2**62), -(2**62) + 1], pa.int64()))
    assert rows("SELECT SUM(x[v]) AS s FROM S WHERE (A; B) AS x", given) == [{"s": least + 1}]
    given = events("ABB", v=pa.array([2**62, 2**62, -1], pa.int64()))
    with pytest.raises(IntegerOverflow, match=r"SUM\(x\[v\]\) of all matches leaves 64 bits"):
        rows("SELECT SUM(x[v]) AS s FROM S WHERE (A; B) AS x", given)
    (row,) = rows("SELECT CAST(SUM(x[v]) AS DOUBLE) AS s FROM S WHERE (A; B) AS x", given)
    assert row == {"s": pytest.approx(3 * 2.0**62)}


def test_a_value_that_leaves_64_bits_matters_where_a_match_has_it() -> None:
    query = "SELECT COUNT(*), SUM(b[v * 4]) AS s FROM S WHERE A; B AS b"
    given = events("BAB", v=pa.array([2**62, 0, 5], pa.int64()))
    assert rows(query, given) == [{"count": 1, "s": 20}]
    given = events("AB", v=pa.array([0, 2**62], pa.int64()))
    with pytest.raises(IntegerOverflow, match=r"\(v \* 4\) leaves 64 bits in a match at row 1: compute with floats"):
        rows(query, given)
    assert rows(query.replace("v * 4", "v * 4.0"), given) == [{"count": 1, "s": 2.0**64}]


def test_unsigned_integers() -> None:
    given = events("AB", v=pa.array([2**64 - 1, 7], pa.uint64()))
    assert rows("SELECT MAX(b[v]) AS m FROM S WHERE A AS a; B AS b", given) == [{"m": 7}]
    with pytest.raises(IntegerOverflow):
        rows("SELECT MAX(a[v]) AS m FROM S WHERE A AS a; B AS b", given)


def test_what_is_not_finite_counts_only_in_matches() -> None:
    given = events("BABB", v=[np.inf, 1.0, 2.0, np.nan])
    (row,) = rows("SELECT SUM(b[v]) AS s, MIN(b[v]) AS m FROM S WHERE A; B AS b WITHIN 1 second", given)
    assert row == {"s": 2.0, "m": 2.0}
    (row,) = rows("SELECT SUM(b[v]) AS s, MIN(b[v]) AS m, COUNT(b[v]) AS n FROM S WHERE A; B AS b", given)
    assert np.isnan(row["s"])
    assert np.isnan(row["m"])
    assert row["n"] == 2


# -- types ----------------------------------------------------------------------------------------------------------------


DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.int8(), -3, 9),
        (pa.uint32(), 3, 2**32 - 1),
        (pa.float32(), -1.5, 0.25),
        (pa.decimal128(9, 2), Decimal("-0.05"), Decimal("1234567.89")),
        (pa.date32(), DAY, DAY + dt.timedelta(days=1)),
        (pa.date64(), DAY, DAY + dt.timedelta(days=1)),
        (pa.duration("ms"), dt.timedelta(seconds=-1), dt.timedelta(days=3)),
        (pa.timestamp("us", "UTC"), NOON, NOON + dt.timedelta(microseconds=1)),
    ],
    ids=str,
)
def test_extremes_have_the_type_of_the_values(kind: pa.DataType, low: Any, high: Any) -> None:
    given = events("BBB", v=pa.array([high, None, low], kind))
    found = stretto.match("SELECT MIN(b[v]) AS low, MAX(b[v]) AS high FROM S WHERE B+ AS b", given, time="ts")
    assert found.schema.types == [kind, kind]
    assert found.to_pylist() == [{"low": low, "high": high}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int8(), -3),
        (pa.float32(), 0.25),
        (pa.decimal128(4, 2), Decimal("-1.25")),
        (pa.decimal128(38, 2), Decimal("12345678901234567890.25")),
        (pa.date64(), DAY),
        (pa.duration("ms"), dt.timedelta(seconds=-1)),
        (pa.timestamp("us", "UTC"), NOON),
        (pa.bool_(), True),
        (pa.string(), "x"),
    ],
    ids=str,
)
def test_null_is_a_group_of_values_of_every_type(kind: pa.DataType, value: Any) -> None:
    given = events("AAA", v=pa.array([value, None, value], kind))
    found = stretto.match("SELECT COUNT(*) FROM S WHERE A AS a GROUP BY a[v]", given, time="ts")
    assert found.schema.field("a_v").type == kind
    assert {row["a_v"]: row["count"] for row in found.to_pylist()} == {value: 2, None: 1}


@pytest.mark.parametrize("gap", ["", " AFTER 0 seconds"], ids=["all", "gaps"])
@pytest.mark.parametrize("scope", ["", "EVERY EVENT", "WITHIN 9 seconds EVERY 9 seconds"])
@pytest.mark.parametrize("function", ["SUM", "MIN", "MAX", "AVG", "COUNT"])
def test_columns_that_turn_out_to_be_wider(function: str, scope: str, gap: str) -> None:
    """A matcher without a schema goes on where its numbers mean the same, and else says so; it has taken nothing then."""
    query = f"SELECT {function}(v[x]) AS n FROM S WHERE (A+ ; B{gap}) AS v {scope}"
    first, second = events("AABB")[:2], events("AABB")[2:]
    for before, after, fits in (
        (pa.array([7, -5], pa.int8()), pa.array([2**40, 3], pa.int64()), True),
        (pa.array([7, -5], pa.int64()), pa.array([6.5, 3.5], pa.float64()), function in ("AVG", "COUNT")),
        (pa.nulls(2), pa.array([6, 3], pa.int64()), True),
        (pa.nulls(2), pa.array([6.5, 3.5], pa.float64()), True),
        (pa.nulls(2), pa.array([Decimal("6.25"), None], pa.decimal128(9, 2)), True),
    ):
        matcher = stretto.Matcher(query, time="ts")
        found = matcher.push(first.append_column("x", before)).to_pylist()
        if fits:
            found += matcher.push(second.append_column("x", after)).to_pylist() + matcher.finish().to_pylist()
            column = pa.array([*before.to_pylist(), *after.to_pylist()], after.type)
            assert found == stretto.match(query, events("AABB", x=column), time="ts").to_pylist()
        else:
            with pytest.raises(DataError, match="column 'x' is double, and batches before had"):
                matcher.push(second.append_column("x", after))
            assert matcher.finish().num_rows == (not scope)


# -- windows --------------------------------------------------------------------------------------------------------------


def test_windows_come_when_time_has_passed_them() -> None:
    matcher = stretto.Matcher("SELECT COUNT(*) FROM S WHERE A; B WITHIN 4 seconds EVERY 2 seconds", time="ts")
    assert matcher.push(events("AABB")).num_rows == 0  # [−2, 2) has no match, and [0, 4) is open
    kind = pa.timestamp("s")
    found = matcher.advance(pa.scalar(4, kind).as_py())
    assert found.to_pylist() == [
        {"window_start": pa.scalar(0, kind).as_py(), "window_end": pa.scalar(4, kind).as_py(), "count": 4}
    ]
    assert matcher.finish().num_rows == 0


def test_windows_that_time_closes_come_with_the_batch() -> None:
    matcher = stretto.Matcher("SELECT COUNT(*) FROM S WHERE A; B WITHIN 2 seconds EVERY 2 seconds", time="ts")
    found = [matcher.push(events("ABXABX").slice(at, 1)).num_rows for at in range(6)]
    assert found == [0, 0, 1, 0, 0, 0]
    assert matcher.finish().num_rows == 0


def test_windows_apart_leave_events_out() -> None:
    query = "SELECT COUNT(*) FROM S WHERE A; A WITHIN 2 seconds EVERY 5 seconds"
    assert [(row["window_start"].second, row["count"]) for row in rows(query, events("A" * 12))] == [
        (0, 1),
        (5, 1),
        (10, 1),
    ]


def test_windows_of_the_events_of_each_key() -> None:
    """They are over one key at a time, with whatever event comes next; what no engine holds by window is refused."""
    query = "SELECT COUNT(*) FROM S WHERE A; B PARTITION BY [k] WITHIN 2 EVENTS EVERY 2 EVENTS"
    table = events("AABXBX", k=["x", "y", "x", "x", "y", "y"])
    matcher = stretto.Matcher(query, capacity=1)
    found = [matcher.push(table.slice(at, 1)).select(["window_start", "k", "count"]).to_pylist() for at in range(6)]
    assert found[3] == [{"window_start": 0, "k": "x", "count": 1}]
    assert found[5] == [{"window_start": 0, "k": "y", "count": 1}]
    assert not any(found[at] for at in (0, 1, 2, 4))
    assert not matcher.finish().num_rows
    for other, why in (
        (query.replace("WITHIN", "GROUP BY () WITHIN"), "leave GROUP BY out, so that each key is a group"),
        (query.replace("A; B", "A; B AFTER 1 EVENTS"), "write windows of time, or EVERY EVENT"),
    ):
        with pytest.raises(OptionError, match=why):
            rows(other, table)


# -- what it keeps --------------------------------------------------------------------------------------------------------


def test_a_stream_of_new_keys_stays_small() -> None:
    count = size(200_000, 16_000)
    query = "SELECT COUNT(*) FROM S WHERE A; B+ PARTITION BY [k] WITHIN 10 [t] EVERY 5 [t]"
    matcher = stretto.Matcher(query, time="t", capacity=1 << 10)
    at, kept = np.arange(count), []
    for piece in range(8):
        time = at + piece * count
        kinds = pa.DictionaryArray.from_arrays(pa.array((at % 4 > 0).astype(np.int8)), pa.array(["A", "B"]))
        found = matcher.push(pa.table({"type": kinds, "t": time, "k": time // 4}))
        assert pa.compute.sum(found["count"]).as_py() > count
        kept.append(matcher.stats["bytes"])
    assert kept[-1] <= 2 * kept[2]


def test_a_budget_bounds_what_is_kept() -> None:
    query = "SELECT COUNT(*) FROM S WHERE A; B PARTITION BY [k] EVERY EVENT WITHIN 1000000 EVENTS"
    count = size(1 << 19, 4_000)
    given = pa.table({"type": ["A"] * count, "k": np.zeros(count, np.int64)})
    with pytest.raises(LimitError, match="each partition has one for each state and each start in its window"):
        stretto.match(query, given, budget=f"{count // 1024} KiB")


def test_events_that_may_be_of_several_variables_are_refused() -> None:
    query = "SELECT SUM(a[v]) AS s FROM S WHERE (A AS a; B AS b) OR (A AS b; B AS a)"
    given = events("AB", v=[1, 2])
    with pytest.raises(QueryError, match="valuations=True takes each way by itself"):
        rows(query, given)
    assert rows(query, given, valuations=True) == [{"s": 3}]
    assert counts(query.replace("SUM(a[v]) AS s", "COUNT(*)"), given) == [1]


@pytest.mark.parametrize(
    "choice",
    ["SELECT SUM(a[v]) FROM S WHERE (A OR A AS a)", "SELECT * FROM S WHERE (A OR A AS a) ORDER BY SUM(a[v]) LIMIT 1"],
)
def test_what_is_refused_is_refused_again(choice: str) -> None:
    """Also by another run of the same query, and over other events, though the query's automaton is built once."""
    for kinds in ("A", "AA", "BA", "A"):
        with pytest.raises(QueryError, match="what they add up to is not known"):
            rows(choice, events(kinds, v=list(range(len(kinds)))))
    assert len(rows(choice, events("B", v=[1]))) == ("SUM(a[v]) FROM" in choice)


@pytest.mark.parametrize("options", [{"output": "summary"}, {"timeouts": True}], ids=str)
def test_options_of_listed_matches_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(StrettoError):
        rows("SELECT COUNT(*) FROM S WHERE A; B WITHIN 5 seconds", events("AB"), **options)


def test_late_events_are_left_out_and_sorted() -> None:
    given = pa.table({"type": ["B", "A", "B", "A"], "ts": [3, 1, 4, 0]})
    query = "SELECT COUNT(*) FROM S WHERE A; B WITHIN 4 [ts] EVERY 4 [ts]"
    matcher = stretto.Matcher(query, given.schema, time="ts", disorder=2, late="drop")
    found = [matcher.push(given.slice(at, 1)) for at in range(4)]
    assert [one.num_rows for one in found] == [0, 0, 0, 0]
    assert matcher.late == 1
    assert matcher.advance(4).to_pylist() == [{"window_start": 0, "window_end": 4, "count": 1}]
    assert matcher.finish().num_rows == 0
