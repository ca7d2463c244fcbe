"""What people write first that is wrong here: the error says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, OptionError, QueryError, StrettoError

LOG = [{"event": kind, "user": user, "t": t} for t, (kind, user) in enumerate(zip("LLOL", "abca", strict=True))]
SCHEMA = {"event": "string", "user": "string", "t": "int64"}
PAIR = "SELECT * FROM S WHERE L ; O"


def told(call: Callable[[], Any], kind: type[StrettoError]) -> str:
    with pytest.raises(kind) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize(
    "query",
    [PAIR, "PATTERN SEQ(L a, O b) WHERE skip_till_next_match { [user] }", "sequence [L where true] [O where true]"],
)
def test_no_column_of_types(query: str) -> None:
    language = "eql" if query.startswith("sequence") else None
    calls = [
        lambda: stretto.match(query, LOG, time="t", language=language),
        lambda: stretto.explain(query, LOG, time="t", language=language),
        lambda: stretto.why_not(query, LOG, time="t", language=language),
    ]
    for call in calls:
        words = told(call, DataError)
        assert "type='event' ('L', 'O')" in words, words
        assert "type=None" in words, words
    words = told(lambda: stretto.Matcher(query, SCHEMA, time="t", language=language), OptionError)
    assert "type='event' or type='user'" in words, words
    assert "type=None" in words, words
    assert stretto.match(query, LOG, type="event", time="t", language=language).num_rows >= 0


def test_texts_that_differ_in_every_row_tell_no_types() -> None:
    events = pa.table({"name": ["a", "b", "c"], "n": [1, 2, 3]})
    assert "type='…' (known columns: name, n)" in told(lambda: stretto.match(PAIR, events), DataError)


@pytest.mark.parametrize(
    ("formula", "hint"),
    [
        ("event = 'L'", "a[event = 'L']; or WHERE L, if the column 'event' tells the types of events (type='event')"),
        ("event = 'L' AND user = 'a'", "a[event = 'L']"),
        ("price > 5", "a[price > 5]"),
        ("price >= 5", "a[price >= 5]"),
        ("event LIKE 'L%'", "a[event LIKE 'L%']"),
        ("a[x = 5]", "WHERE A AS a FILTER a[x = 5]"),
        ("(A AS a ; B AS b) AND a.x = 5", "FILTER a[price > 5] AND b[price < 3]"),
    ],
)
def test_conditions_in_where(formula: str, hint: str) -> None:
    words = told(lambda: stretto.compile(f"SELECT * FROM S WHERE {formula}"), QueryError)
    assert "conditions on their attributes stand in FILTER" in words
    assert hint in words


@pytest.mark.parametrize("arrow", ["->", "=>", "→", ">>", "|>", "THEN", "followed by", "FOLLOWED_BY", "followedBy"])
def test_an_arrow(arrow: str) -> None:
    for formula in (f"A {arrow} B", f"A AS a {arrow} B AS b"):
        assert f"unexpected '{arrow}'; one event after another is A ; B" in told(
            lambda formula=formula: stretto.compile(f"SELECT * FROM S WHERE {formula}"), QueryError
        )
    sase = f"PATTERN SEQ(A a {arrow} B b) WHERE skip_till_next_match {{ [k] }}"
    assert "write SEQ(A a, B b)" in told(lambda: stretto.compile(sase), QueryError)
    eql = f"sequence [A where true] {arrow} [B where true]"
    assert "write sequence [A where true] [B where true]" in told(
        lambda: stretto.compile(eql, language="eql"), QueryError
    )
    if arrow.isascii() and arrow[0].isalpha():
        return  # a name of a variable there, as any other word
    clause = f"SELECT * FROM e MATCH_RECOGNIZE (PATTERN (A {arrow} B) DEFINE A AS x = 1)"
    assert "write PATTERN (A B)" in told(lambda: stretto.compile_sql(clause), QueryError)


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("SELECT * FROM S WHERE L ; O", None),
        ("PATTERN SEQ(L a, O b) WHERE skip_till_next_match { [user] }", None),
        ("sequence [L where true] [O where true]", "eql"),
        ("SELECT COUNT(*) FROM S WHERE L ; O", None),
        ("SELECT * FROM S WHERE L ; O WITHIN 5 [t]", None),
    ],
)
def test_an_event_behind_advance_is_late(query: str, language: str | None) -> None:
    unit = "s" if language else None
    matcher = stretto.Matcher(query, SCHEMA, type="event", time="t", language=language, time_unit=unit)
    matcher.push(LOG)
    matcher.advance(9)
    words = told(lambda: matcher.push([{"event": "O", "user": "a", "t": 5}]), DataError)
    assert "row 4 is late: 't' is 5" in words, words
    assert "sort" not in words, words


def test_an_event_out_of_order_is_late_for_rules() -> None:
    """Rules have no argument ``late=``."""
    pieces = [[{"event": "L", "user": "a", "t": t}] for t in (9, 5)]
    rules = stretto.read_rules([{"id": "pair", "query": PAIR}])
    words = told(lambda: rules.match(map(pa.Table.from_pylist, pieces), type="event", time="t"), DataError)
    assert "the event is late; events come in the order of time" in words
    assert "late=" not in words


def test_an_event_behind_advance_is_late_for_a_set() -> None:
    patterns = stretto.PatternSet(SCHEMA, type="event", time="t")
    patterns.change([stretto.Change("pair", PAIR)])
    patterns.push(LOG)
    patterns.advance(9)
    assert "the event is late" in told(lambda: patterns.push([{"event": "O", "user": "a", "t": 5}]), DataError)


@pytest.mark.parametrize(
    "condition", ["COUNT(a) > 1", "count(DISTINCT a[x]) > 1", "a[count(DISTINCT x) > 1]", "a[count(x) > 1]"]
)
def test_conditions_on_counts_in_ceql(condition: str) -> None:
    query = f"SELECT * FROM S WHERE A+ AS a ; B AS b FILTER {condition}"
    words = told(lambda: stretto.compile(query, {"type": "string", "x": "int64"}), QueryError)
    assert "by itself" in words, words
    assert "count(a[]) > 1" in words, words
    assert "did you mean" not in words, words


@pytest.mark.parametrize(
    "condition", ["count(distinct x) > 2", "count(x) > 2", "count() > 2", "cardinality(x) > 2", "sum(x) > 2"]
)
def test_conditions_on_counts_in_eql(condition: str) -> None:
    for query in (f"sequence [A where {condition}] [B where true]", f"any where true | filter {condition}"):
        words = told(
            lambda query=query: stretto.compile(query, {"type": "string", "x": "int64"}, language="eql"), QueryError
        )
        assert "EQL asks each event by itself" in words, words
        assert "COUNT(DISTINCT A.x)" in words, words
        assert "did you mean" not in words, words


def test_distinct_values_are_not_counted_as_events() -> None:
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { count(DISTINCT a[].x) > 1 }"
    words = told(lambda: stretto.compile(query), QueryError)
    assert "RETURN count(DISTINCT a[].x) AS n" in words
    assert "another number" in words


@pytest.mark.parametrize(("number", "rows"), [(2**60, 1), (5, 0), (-(2**62), 0)])
def test_keys_of_integers_and_of_floating_point(number: int, rows: int) -> None:
    table = pa.table(
        {
            "type": ["A", "B"],
            "t": [0, 1],
            "x": pa.array([float(2**60), None], pa.float64()),
            "k": pa.array([None, number], pa.int64()),
        }
    )
    query = "sequence [A where true] by x [B where true] by k"
    found = stretto.match(query, table, time="t", time_unit="s", language="eql")
    assert found.num_rows == rows


def test_an_integer_that_no_floating_point_number_equals() -> None:
    query = "sequence [A where true] by x [B where true] by k"
    columns = {"x": pa.array([1.0, None], pa.float64()), "k": pa.array([None, 2**53 + 1], pa.int64())}
    table = pa.table({"type": ["A", "B"], "t": [0, 1], **columns})
    words = told(lambda: stretto.match(query, table, time="t", time_unit="s", language="eql"), DataError)
    assert "9007199254740993" in words


def test_sums_that_are_not_known_as_events_come() -> None:
    query = "SELECT SUM(v[y]) FROM S WHERE A AS v OR (A : C)"
    events = [{"type": "A", "y": 1}, {"type": "C", "y": 2}]
    assert "one way to a match has one of them in v and another has not" in told(
        lambda: stretto.match(query, events), QueryError
    )
    assert stretto.match(query, events, valuations=True).to_pylist() == [{"sum_v_y": 1}]
