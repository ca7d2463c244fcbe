"""The functions of the language, in every language (random conditions with them: tests/columns/test_exact.py)."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import ROUND_HALF_UP, Decimal

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, stream
from stretto.query.scalar_functions import rounded

EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B"],
        "s": ["straße", "STRASSE", "é", None],
        "d": pa.array([Decimal("0.125"), None, Decimal("-2.5"), Decimal("0.1")], pa.decimal128(9, 3)),
        "n": [1, -2, None, 4],
        "l": [[1, 2], [], None, [4, None]],
        "m": [None, ["x", "y"], ["x"], []],
        "t": range(4),
    }
)


def test_halves_as_they_are_written() -> None:
    """Up to 15 digits, as Spark rounds: the decimal that a double is written as."""
    rng = random.Random(1)
    for _ in range(20_000):
        number = rng.choice([1, -1]) * round(rng.uniform(0, 10 ** rng.randint(0, 6)), rng.randint(0, 6))
        digits = rng.randint(0, 7)
        expected = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
        assert rounded(number, digits) == float(expected), (number, digits)
    assert math.isnan(rounded(math.nan, 2))


CONDITIONS: list[tuple[str, list[list[int]] | str]] = [
    ("upper(a.s) = b.s", [[0, 1]]),
    ("Lower(b.s) != a.s", [[0, 1]]),
    ("coalesce(b.s, a.s) = a.s", [[0, 3], [2, 3]]),
    ("coalesce(b.s, 'é') = a.s", [[2, 3]]),
    ("a.s || b.s = 'x'", "concat(a.s, b.s) is computed of strings that a kernel does not see"),
    ("round(a.d, 2) = 0.13", [[0, 1], [0, 3]]),
    ("abs(a.d - coalesce(b.d, 0)) > 2", [[2, 3]]),
    ("floor(a.d) = -3 AND ceil(b.d) = 1", [[2, 3]]),
    ("abs(coalesce(a.n, b.n)) = 4", [[2, 3]]),
    ("a.n > round(0.95, 1) AND b.n < floor(1e19)", []),
    ("a.n > round(0.94, 1) AND b.n < 1e19", [[0, 1], [0, 3]]),
    ("uper(a.s) = 'A'", "unknown function 'uper'"),
    ("upper(a.n) = 'A'", "'upper' takes strings, not a.n (int64)"),
    ("abs(a.n, b.n) = 1", "abs(x) does not take 2 arguments"),
    ("round(a.d, 16) = 1", "round takes digits from 0 to 15"),
    ("coalesce(a.s, b.n) = 1", "'coalesce' takes values of one type, not a.s (string) and b.n (int64)"),
    ("CASE WHEN a.n > 0 THEN a.n ELSE 0 END < b.n", [[0, 3], [2, 3]]),
    ("CASE a.s WHEN 'straße' THEN upper(a.s) ELSE 'q' END = b.s", [[0, 1]]),
    ("NOT (CASE WHEN b.n < 0 THEN a.n WHEN a.n > 3 THEN 7 ELSE 1.5 END > 1)", [[0, 1]]),
    ("CASE WHEN a.n > 0 THEN NULL ELSE b.d END IS NULL", [[0, 1], [0, 3]]),
    ("CASE WHEN a.n IS NULL THEN TRUE ELSE FALSE END", [[2, 3]]),
    ("a.s RLIKE 'ß' AND b.s REGEXP '^S.*E$'", [[0, 1]]),
    ("a.n IN a.l AND b.s NOT IN b.m", [[0, 1], [0, 3]]),
    ("array_contains(b.m, 'x') OR 2.0 IN a.l", [[0, 1], [0, 3]]),
    ("CASE WHEN a.n > 0 THEN a.s ELSE b.n END = 1", "cannot compare a.s (string) with a number"),
    ("CASE WHEN a.n > 0 THEN NULL END + 1 = b.n", []),
    ("a.s RLIKE 'a('", "'a(' is no regular expression: missing ): a("),
    ("(a.s || b.s) RLIKE 'a'", "RLIKE tests an attribute of one event"),
    ("a.n IN b.l", "IN asks for a value in a list of the same event"),
    ("a.n IN a.s", "IN needs a list, not a.s (string)"),
]

TIMES = pa.table(
    {
        "type": list("ABAB"),
        "ms": pa.array([0, 300_000, 360_000, 1_200_000], pa.timestamp("ms")),
        "us": pa.array([1_000_000, 302_000_000, None, 1_200_000_000], pa.timestamp("us")),
        "zone": pa.array([0, 60, 120, 180], pa.timestamp("s", "UTC")),
        "day": pa.array([0, 1, 0, 2], pa.date32()),
        "t": range(4),
    }
)


ON_TIMES: list[tuple[str, list[list[int]] | str]] = [
    ("b.ms - a.ms > 5 minutes", [[0, 3], [2, 3]]),
    ("b.ms >= a.ms + 5 minutes AND b.ms - 14m <= a.ms", [[0, 1], [2, 3]]),
    ("b.us - a.ms > 301 s 999 ms 999us", [[0, 1], [0, 3], [2, 3]]),
    ("abs(a.ms - b.us) BETWEEN 5 minutes AND 10 minutes", [[0, 1]]),
    ("b.zone = a.zone + 1 minute", [[0, 1], [2, 3]]),
    ("b.day - a.day = 1 day OR a.ms - a.day = 6 minutes", [[0, 1], [2, 3]]),
    ("(b.ms - a.ms) / 1 minute = 5", [[0, 1]]),
    ("coalesce(b.us - a.us, 1 s) * 2 = 2 s", [[2, 3]]),
    ("b.ms - 5 minutes >= '1970-01-01 00:15'", [[0, 3], [2, 3]]),
    ("b.zone - a.ms > 1 s", "only one has a time zone"),
    ("b.ms + a.ms > 1 s", "cannot compute b.ms (timestamp[ms]) + a.ms (timestamp[ms])"),
    ("b.ms - a.ms > 5", "cannot compare a computed duration with a number"),
]


@pytest.mark.parametrize(
    ("events", "condition", "expected"),
    [(EVENTS, *one) for one in CONDITIONS] + [(TIMES, *one) for one in ON_TIMES],
    ids=[condition for condition, _ in CONDITIONS + ON_TIMES],
)
def test_between_events(events: pa.Table, condition: str, expected: list[list[int]] | str) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {condition} }} WITHIN 9"
    if isinstance(expected, str):
        with pytest.raises(stretto.QueryError) as caught:
            stretto.match(query, events, time="t")
        assert expected in str(caught.value)
        return
    found = stretto.match(query, events, time="t", output="positions")
    assert sorted(found.column("positions").to_pylist()) == expected
    late = stretto.Matcher(query, time="t", speculation=math.inf, schema=events.schema, output="positions")
    rows = [*late.push(events.take([3, 0, 2, 1])).to_pylist(), *late.finish().to_pylist()]
    assert sorted([row["start_time"], row["end_time"]] for row in rows) == expected


def test_times_that_64_bits_do_not_hold() -> None:
    events = pa.table({"type": ["A"], "t": pa.array([dt.datetime(9999, 1, 1)], pa.timestamp("us"))})
    query = "SELECT * FROM S WHERE A AS a FILTER a[t - {} < '2024-01-01']"
    assert not stretto.match(query.format("1 day"), events).num_rows
    with pytest.raises(stretto.DataError, match=r"integer overflow in t at row 0: 9999.* is beyond 64 bits"):
        stretto.match(query.format("1 ns"), events)


def test_times_in_results_and_automata() -> None:
    query = """PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.ms - a.ms < 6 minutes }
        RETURN b.ms - a.ms AS gap, b.zone - 1 hour AS earlier, b.day - a.day AS days"""
    found = stretto.match(query, TIMES)
    assert [found.schema.field(name).type for name in ("gap", "days")] == [pa.duration("us")] * 2
    assert found.to_pylist()[0]["gap"] == dt.timedelta(minutes=5)
    assert found.to_pylist()[0]["earlier"] == dt.datetime(1969, 12, 31, 23, 1, tzinfo=dt.UTC)
    assert found.to_pylist()[0]["days"] == dt.timedelta(days=1)
    kinds = {"type": pa.string(), "ms": pa.timestamp("ms")}
    afa = stretto.AFA(kinds, {"since": pa.timestamp("ms")}, window=9)
    afa.arc("q0", "q1", when="e.type = 'A'", then="since = e.ms")
    afa.arc("q1", "q2", when="e.ms - r.since <= 5 minutes").final("q2")
    assert stretto.match(afa, TIMES, time="t").num_rows == 1
    with pytest.raises(stretto.QueryError, match="cannot take a computed time"):
        afa.arc("q1", "q1", then="since = e.ms + 1 s")


def test_times_in_dataflows() -> None:
    made = stream("s", {"u": pa.timestamp("us"), "v": pa.timestamp("us")}).where("v - u > 1 minute")
    flow = Dataflow(out=made.project(later="v + 1 hour"))
    moments = [dt.datetime(2024, 1, 1, 0, minute) for minute in (0, 1, 2)]
    rows = [{"u": moments[0], "v": moment, "vs": 1, "ve": None} for moment in moments]
    flow.push("s", rows, punctuation=5)
    flow.run_until_idle()
    assert [row["later"] for row in flow.output("out").to_pylist()] == [dt.datetime(2024, 1, 1, 1, 2)]


def test_returned() -> None:
    query = """PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.n IS NOT NULL }
        RETURN a.s || '-' || b.s AS joined, round(a.d, 1) AS r, coalesce(b.d, a.d) AS d, length(b.s) AS l,
            CASE WHEN b.d IS NULL THEN a.n ELSE b.d END AS c, CASE WHEN a.n > 5 THEN a.s WHEN 'y' IN b.m THEN b.s END AS t,
            CASE WHEN a.n > 5 THEN 1 END AS none"""
    (row,) = stretto.match(query, EVENTS).to_pylist()
    with pytest.raises(stretto.QueryError, match="this CASE gives nothing but NULL"):
        stretto.match(query + ", CASE WHEN a.n > 5 THEN NULL END AS nothing", EVENTS)
    shown = {"joined": "straße-STRASSE", "r": 0.1, "d": 0.125, "l": 7, "c": 1.0, "t": "STRASSE", "none": None}
    assert {name: row[name] for name in shown} == shown


def test_automata() -> None:
    afa = stretto.AFA({"type": pa.string(), "s": pa.string(), "n": pa.int64()}, {"s": str, "n": int}, window=9)
    afa.arc(
        "q0", "q1", when="abs(e.n) = 1", then="s = upper(e.s), n = CASE WHEN e.n > 0 THEN length(e.s || '!') ELSE 1 END"
    )
    afa.arc("q1", "q2", when="upper(e.s) = r.s AND abs(r.n - e.n) > 8").final("q2")
    (row,) = stretto.match(afa, EVENTS, time="t").to_pylist()
    assert row["register"] == {"s": "STRASSE", "n": 7}
    with pytest.raises(stretto.QueryError, match="computed of strings that a kernel does not see"):
        stretto.match(afa.arc("q1", "q1", when="upper(r.s) = e.s"), EVENTS, time="t")


def test_dataflows() -> None:
    made = stream("s", {"s": pa.string(), "n": pa.int64()}).where("upper(s) = 'AB' OR length(s) > 2")
    flow = Dataflow(
        out=made.project(s="lower(upper(s))", n="CASE WHEN s RLIKE '^[A-Z]' THEN n ELSE -n END + length(s)")
    )
    rows = [("ab", -3), ("Abc", 1), ("x", 1)]
    flow.push("s", [{"s": text, "n": number, "vs": 1, "ve": None} for text, number in rows], punctuation=5)
    flow.run_until_idle()
    assert sorted((row["s"], row["n"]) for row in flow.output("out").to_pylist()) == [("ab", 5), ("abc", 4)]
    with pytest.raises(stretto.QueryError, match="concat"):
        Dataflow(out=made.project(s="s || 'x'", n="n"))


def test_a_function_of_the_user_goes_first() -> None:
    stretto.function(lambda a: a + 100, name="floor")
    try:
        query = "PATTERN SEQ(A a) WHERE skip_till_any_match { floor(a.n) = 101 }"
        assert stretto.match(query, EVENTS).num_rows == 1
        with pytest.raises(stretto.QueryError, match="'floor' is a registered function, which CEQL does not call"):
            stretto.compile("SELECT * FROM S WHERE A AS a FILTER a[floor(n) = 1]", EVENTS.schema)
    finally:
        stretto.query.functions._KNOWN.pop("floor")
