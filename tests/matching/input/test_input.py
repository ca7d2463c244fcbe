"""What comes in: layouts of strings, columns of NULLs, types that widen, and what is no table of events."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, stream

AB = "SELECT * FROM S WHERE A AS a ; B AS b"
SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.v = b.v }"

# ---- Views of strings


VIEW = pa.string_view()

#: Columns that no query names, with views inside.
NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "struct": (pa.struct([("s", VIEW)]), [{"s": "x"}, {"s": "y"}]),
    "list": (pa.list_(VIEW), [["x"], None]),
    "large list": (pa.large_list(pa.struct([("q", pa.list_(VIEW))])), [[{"q": ["x"]}], []]),
    "fixed list": (pa.list_(VIEW, 1), [["x"], ["y"]]),
    "map": (pa.map_(VIEW, VIEW), [[("k", "v")], []]),
    "bytes": (pa.binary_view(), [b"x", b"y"]),
}

FLAT = pa.table({"type": pa.array(["A", "B"], VIEW), "t": [1, 2], "v": pa.array(["x", "x"], VIEW)})


def viewed() -> pa.Table:
    table = FLAT
    for name, (kind, values) in NESTED.items():
        table = table.append_column(name, pa.array(values, kind))
    return table


def patterns(schema: Any, events: Any) -> pa.Table:
    made = stretto.PatternSet(schema, time="t")
    made.change([stretto.Change("ab", AB)])
    return made.push(events)


def restored(query: str, schema: Any, events: pa.Table) -> pa.Table:
    """The second event after a snapshot behind the first."""
    matcher = stretto.Matcher(query, schema, time="t")
    matcher.push(events.slice(0, 1))
    return stretto.Matcher(query, schema, time="t").restore(matcher.snapshot()).push(events.slice(1))


def sorted_(query: str, schema: Any, events: Any) -> pa.Table:
    matcher = stretto.Matcher(query, schema, time="t", disorder=1)
    matcher.push(events)
    return matcher.finish()


def speculated(schema: Any, events: Any) -> pa.Table:
    return stretto.Matcher(SASE, schema, time="t", speculation=math.inf).push(events)


def cleansed(schema: Any, events: Any) -> pa.Table:
    made = stretto.Cleanse(schema, time="t")
    made.push(events)
    return made.finish().slice(1)


def automaton(text: Any) -> stretto.AFA:
    made = stretto.AFA({"type": text, "v": text}, {"w": text}, initial={"w": ""})
    made = made.arc("q0", "q1", when="e.type = 'A'", then={"w": "e.v"})
    return made.arc("q1", "q2", when="e.type = 'B' AND e.v = r.w").final("q2")


#: Whatever reads events of a schema, and gives one row.
READERS: dict[str, Callable[[Any, Any], pa.Table]] = {
    "match": lambda schema, events: stretto.match(stretto.compile(AB, schema, time="t"), events),
    "match sase": lambda schema, events: stretto.match(stretto.compile(SASE, schema, time="t"), events),
    "ceql": lambda schema, events: stretto.Matcher(AB, schema, time="t").push(events),
    "sase": lambda schema, events: stretto.Matcher(SASE, schema, time="t").push(events),
    "sorting": lambda schema, events: sorted_(AB, schema, events),
    "restored": lambda schema, events: restored(AB, schema, events),
    "restored sase": lambda schema, events: restored(SASE, schema, events),
    "speculating": speculated,
    "patterns": patterns,
    "cleanse": cleansed,
    "afa": lambda schema, events: stretto.match(automaton(VIEW), events, time="t"),
    "afa matcher": lambda schema, events: stretto.Matcher(automaton(VIEW), schema, time="t").push(events),
}


@pytest.mark.parametrize("name", READERS)
def test_views_of_strings(name: str) -> None:
    """As polars exports them: in the events, in the schema given before, or in both; also inside of other columns."""
    read, whole = READERS[name], viewed()
    plain = pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.string())])
    for schema, events in ((whole.schema, whole), (FLAT.schema, FLAT), (FLAT.schema, FLAT.cast(plain)), (plain, whole)):
        assert read(schema, events).num_rows == 1


def test_what_is_shown_of_views() -> None:
    row = stretto.match(f"SELECT b FROM S WHERE {AB.partition('WHERE')[2]}", viewed(), time="t").to_pylist()[0]["b"][0]
    assert {name: row[name] for name in NESTED} == {name: values[1] for name, (_, values) in NESTED.items()}


def test_views_in_a_dataflow() -> None:
    flow = Dataflow(out=stream("in", {"s": VIEW}).where("s = 'x'"))
    flow.push("in", pa.table({"s": pa.array(["x", "y"], VIEW), "vs": [1, 2]}))
    flow.run_until_idle()
    assert flow.output("out").column("s").to_pylist() == ["x"]


def test_another_layout_in_a_later_batch() -> None:
    """Strings inside of structs and lists may change their layout as strings of their own do."""
    matcher = stretto.Matcher(AB, time="t")
    first = [{"type": "A", "t": 1, "v": "x", "struct": {"s": "x"}, "list": ["x"]}]
    matcher.push(first)
    second = viewed().select(["type", "t", "v", "struct", "list"]).slice(1)
    assert matcher.push(second).num_rows == 1


# ---- What is no table of events, and what to do


def lazy() -> Any:
    return pytest.importorskip("polars").LazyFrame({"type": ["A"]})


#: As PySpark names its class; a session is not needed for its name.
SPARK = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe", "__arrow_c_stream__": None})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lazy, "a polars LazyFrame is a plan and has no events yet: give lazy_frame.collect()"),
        (
            SPARK,
            "a Spark DataFrame is matched on Spark: stretto.spark.match(df, query, time='…'); to have its events in this process, "
            "give df.toArrow()",
        ),
    ],
)
def test_plans_of_tables(given: Callable[[], Any], message: str) -> None:
    events = given()
    for read in (
        lambda: stretto.match(AB, events),
        lambda: stretto.match("SELECT * FROM S, T WHERE A", {"S": events, "T": events}, time="t"),
        lambda: stretto.Matcher(AB).push(events),
        lambda: stretto.match(automaton(str), events, time="t"),
        lambda: stretto.Cleanse(time="t").push(events),
    ):
        with pytest.raises(stretto.DataError) as caught:
            read()
        assert str(caught.value) == message


TEXTS = pa.table({"type": ["A", "B"], "v": ["x", "x"], "t": ["2024-01-01", "2024-01-02"]})
OF_TEXTS = (
    "; make times of its texts first: df['t'] = pd.to_datetime(df['t']), cast('timestamp') on Spark, or in Arrow a cast to "
    "timestamp('us')"
)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: stretto.match(AB, TEXTS, time="t"), "time='t' is string, not a number, timestamp or date" + OF_TEXTS),
        (lambda: stretto.PatternSet(TEXTS, time="t"), "time='t' is string, not a number, timestamp or date" + OF_TEXTS),
        (
            lambda: stretto.match(automaton(str), TEXTS, time="t"),
            "'t' is string: a time is an integer, a date or a timestamp here" + OF_TEXTS,
        ),
        (
            lambda: stretto.Cleanse(time="t").push(TEXTS),
            "'t' is string: a time is an integer, a date or a timestamp here" + OF_TEXTS,
        ),
        (
            lambda: Dataflow(out=stream("in", {"v": str})).push(
                "in", TEXTS.select(["v", "t"]).rename_columns(["v", "vs"])
            ),
            "input 'in': column 'vs' is string; times are integers or timestamps" + OF_TEXTS.replace("'t'", "'vs'"),
        ),
        (
            lambda: stretto.match(AB + " WITHIN 5 [t]", TEXTS),
            "line 1, column 49: cannot measure a window by 't' (string)\n"
            "  SELECT * FROM S WHERE A AS a ; B AS b WITHIN 5 [t]\n"
            "                                                  ^\n"
            "hint: a window needs an integer, decimal or timestamp attribute" + OF_TEXTS,
        ),
        (
            lambda: stretto.match(AB, pa.table({"type": [1, 2]})),
            "type='type' is int64, not text; make texts of its numbers first: df['type'] = df['type'].astype(str), and name a type "
            "in backticks: `3`",
        ),
        (
            lambda: stretto.match(AB, pa.table({"type": ["A"], "s": [1.5]}), stream="s"),
            "stream='s' is double, not text; make texts of it first",
        ),
    ],
)
def test_columns_that_cannot_play_their_role(read: Callable[[], object], message: str) -> None:
    with pytest.raises(stretto.StrettoError) as caught:
        read()
    assert str(caught.value) == message


def test_a_type_that_is_a_number() -> None:
    """As the hint says it."""
    events = pa.table({"type": pa.array([3, 4]).cast(pa.string())})
    assert stretto.match("SELECT * FROM S WHERE `3` AS a ; `4` AS b", events).num_rows == 1


# ---- Columns of NULLs


NULLS = [{"type": "A", "t": 1, "v": None, "k": None, "w": 3}, {"type": "B", "t": 2, "v": None, "k": None, "w": 4}]
CONDITIONS = {
    "v > 3": 0,
    "v = 'x'": 0,
    "v = TRUE": 0,
    "v = '2024-01-01'": 0,
    "v IN (1, 2.5)": 0,
    "v BETWEEN 1 AND 2": 0,
    "v LIKE 'a%'": 0,
    "v + 1 > w": 0,
    "v = k": 0,
    "v > w": 0,
    "NOT (v = 3)": 1,
    "v IS NULL OR v > 2.5": 1,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_columns_of_nulls_in_conditions(condition: str) -> None:
    """Nobody has said of what type they are: of the type that the query takes them for."""
    rows = CONDITIONS[condition]
    query = f"{AB} FILTER a[{condition}]"
    assert stretto.match(query, NULLS, time="t").num_rows == rows
    assert stretto.match(query, pytest.importorskip("pandas").DataFrame(NULLS), time="t").num_rows == rows
    assert stretto.Matcher(query, time="t").push(NULLS).num_rows == rows
    made = stretto.PatternSet(NULLS, time="t")
    made.change([stretto.Change("ab", query)])
    assert made.push(NULLS).num_rows == rows


@pytest.mark.parametrize(
    ("condition", "rows"),
    [("a.v < b.v", 0), ("a.v + b.w > 3", 0), ("a.v = 'x'", 0), ("[k]", 0), ("a.v IS NULL", 1), ("a.v < b.w", 0)],
)
def test_columns_of_nulls_between_events(condition: str, rows: int) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {condition} }}"
    assert stretto.match(query, NULLS, time="t").num_rows == rows
    assert stretto.Matcher(query, time="t", speculation=math.inf).push(NULLS).num_rows == rows


@pytest.mark.parametrize(
    ("condition", "rows"),
    [("sum(b[].v) > 2", 0), ("min(b[].v) < 3", 0), ("count(b[].v) = 0", 1), ("min(b[].v) < a.t", 0)],
)
def test_columns_of_nulls_in_aggregates(condition: str, rows: int) -> None:
    query = f"PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match {{ {condition} }}"
    assert stretto.match(query, NULLS, time="t").num_rows == rows


def test_columns_of_nulls_as_keys_and_ends() -> None:
    keyed = f"{AB} PARTITION BY [k]"
    assert stretto.match(keyed, NULLS, time="t").num_rows == 0
    made = stretto.PatternSet(NULLS, time="t", by=["k"])
    made.change([stretto.Change("ab", keyed)])
    assert made.push(NULLS).num_rows == 0
    matcher = stretto.Matcher(automaton(str), time="t", until="k")
    matcher.push([NULLS[0] | {"v": "x"}])
    assert matcher.push([{"type": "B", "t": 3, "v": "x", "k": 9}]).column("until").to_pylist() == [9]


# ---- Batches that contradict each other

FIRST = NULLS[0]
SECOND = {"type": "B", "t": 2, "v": 1.5, "k": "z", "w": 3}
ANY_MATCH = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { %s }"


def in_turn(query: str, second: dict[str, Any], first: dict[str, Any] = FIRST, **options: Any) -> pa.Table:
    matcher = stretto.Matcher(query, time="t", **options)
    matcher.push([first])
    return pa.concat_tables([matcher.push([second]), matcher.finish()])


@pytest.mark.parametrize(
    ("query", "second"),
    [
        (AB, SECOND),
        (f"{AB} FILTER b[v > 1.2] AND a[v IS NULL]", SECOND),
        (f"{AB} FILTER b[v = 'x']", SECOND | {"v": "x"}),
        (AB, SECOND | {"w": 3.5}),
        (f"{AB} FILTER a[w = 3] AND b[w > 3.2]", SECOND | {"w": 3.5}),
        (AB, SECOND | {"w": Decimal("3.5")}),
        (ANY_MATCH % "b.v > 1", SECOND),
        (ANY_MATCH % "a.w <= b.v + 2", SECOND),
        (ANY_MATCH % "a.v IS NULL AND a.w = b.w", SECOND),
        (ANY_MATCH % "a.type != b.k", SECOND),
    ],
)
def test_a_later_batch_tells_more(query: str, second: dict[str, Any]) -> None:
    """A first batch of NULLs or of integers does not fix the type; what both batches together say is what counts."""
    whole = stretto.match(query, [FIRST, second], time="t")
    assert whole.num_rows == 1
    for options in ({}, {"disorder": 1}):
        found = in_turn(query, second, **options)
        assert found.to_pylist() == whole.to_pylist()
    matcher = stretto.Matcher(query, time="t")
    matcher.push([FIRST])
    again = stretto.Matcher(query, time="t").restore(matcher.snapshot())
    if second["w"] == FIRST["w"]:  # a schema of a snapshot is a schema: only NULLs are open
        assert again.push([second]).to_pylist() == whole.to_pylist()


def test_sets_and_sorters_take_wider_types() -> None:
    matcher = stretto.Matcher(ANY_MATCH % "b.v > 1", time="t", sets=True)
    assert list(matcher.push_sets([FIRST])) == []
    assert [len(found) for found in matcher.push_sets([SECOND])] == [1]
    cleanse = stretto.Cleanse(time="t")
    cleanse.push([FIRST])
    cleanse.push([SECOND | {"w": 2.5}])
    assert cleanse.finish().to_pylist() == [FIRST, SECOND | {"w": 2.5}]


DECLARE = "; say what the columns are before the first batch, with schema=…"


@pytest.mark.parametrize(
    ("query", "first", "second", "message"),
    [
        (AB, FIRST, SECOND | {"w": "x"}, "column 'w' is string, and batches before had int64"),
        (
            AB,
            FIRST | {"w": 2**60 + 1},
            SECOND | {"w": 0.5},
            "column 'w' is double, and batches before had int64: column 'w' is int64, and it becomes double: Integer value "
            "1152921504606846977 not in range: -9007199254740992 to 9007199254740992",
        ),
        (
            f"{AB} PARTITION BY [w]",
            FIRST,
            SECOND | {"w": 3.5},
            "column 'w' is double, and batches before had int64: Float value 3.500000 was truncated converting to int64",
        ),
        (
            ANY_MATCH % "a.w <= b.w",
            FIRST,
            SECOND | {"w": 3.5},
            "column 'w' is double, and batches before had int64: what is kept of them depends on it",
        ),
        (
            AB,
            FIRST,
            SECOND | {"t": 3.5},
            "column 't' is double, and batches before had int64: Float value 3.500000 was truncated converting to int64",
        ),
    ],
)
def test_batches_that_contradict(query: str, first: dict[str, Any], second: dict[str, Any], message: str) -> None:
    matcher = stretto.Matcher(query, time="t")
    matcher.push([first])
    with pytest.raises(stretto.DataError) as caught:
        matcher.push([second])
    assert str(caught.value) == message + DECLARE
    assert matcher.push([SECOND | {"w": first["w"]}]).num_rows == 1  # nothing has changed


def test_a_schema_that_was_given_is_not_widened() -> None:
    matcher = stretto.Matcher(AB, {"type": str, "t": int, "v": int, "k": str, "w": int}, time="t")
    matcher.push([FIRST])
    with pytest.raises(stretto.DataError) as caught:
        matcher.push([SECOND])
    assert str(caught.value) == (
        "column 'v' is double, and the query was compiled for int64: Float value 1.500000 was truncated converting to int64"
    )


def test_values_of_dicts() -> None:
    query = "SELECT * FROM S WHERE A"
    assert stretto.match(query, [{"type": "A", "v": 2**63}, {"type": "A", "v": 1}]).num_rows == 2
    for values, message in (
        ([2**70], "attribute 'v' has an integer that does not fit into 64 bits"),
        (
            [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
            "attribute 'v' has times with a time zone and times without one: give all with one, or all without",
        ),
    ):
        with pytest.raises(stretto.DataError) as caught:
            stretto.match(query, [{"type": "A", "v": value} for value in values])
        assert str(caught.value) == message


# ---- A dict of streams

BOTH = "SELECT * FROM S, T WHERE A AS a ; B AS b"


def streams(one: Any, other: Any) -> dict[str, pa.Table]:
    """Two streams with a column ``v``, or a time ``t``, of different types."""
    return {
        "S": pa.table({"type": ["A"], "t": [1], "v": one}),
        "T": pa.table({"type": ["B"], "t": [2], "v": other}),
    }


ZONED = pa.timestamp("s", tz="UTC")
DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (pa.array([1], pa.int32()), pa.array([2**40]), pa.int64()),
        (pa.array([1]), pa.array([2.5]), pa.float64()),
        (pa.array(["x"]).dictionary_encode(), pa.array(["y"]), pa.string()),
        (pa.array(["x"], pa.large_string()), pa.array(["y"]), pa.large_string()),
        (pa.nulls(1), pa.array(["y"]), pa.string()),
        (pa.array([DAY], ZONED), pa.array([DAY], pa.timestamp("us", tz="Europe/Athens")), pa.timestamp("us", tz="UTC")),
    ],
)
def test_columns_of_streams_have_one_type(one: pa.Array, other: pa.Array, kind: pa.DataType) -> None:
    query = f"{BOTH} FILTER b[v IS NOT NULL]"
    found = stretto.match(query, streams(one, other), time="t")
    assert found.schema.field("a").type.value_type.field("v").type == kind
    row = found.to_pylist()[0]
    assert (row["a"][0]["v"], row["b"][0]["v"]) == (one[0].as_py(), other[0].as_py())


@pytest.mark.parametrize(
    "query", [f"{BOTH} FILTER b[v > 1]", "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.v > 1 }"]
)
def test_columns_of_streams_that_do_not_fit_are_refused_where_they_are_read(query: str) -> None:
    given = streams(pa.array(["x"]), pa.array([2]))
    with pytest.raises(stretto.DataError) as caught:
        stretto.match(query, given, time="t")
    assert str(caught.value) == (
        "column 'v' is string in stream 'S', and int64 in stream 'T', and the query reads it; make them one type, or rename one"
    )
    with pytest.warns(stretto.StrettoWarning) as told:
        row = stretto.match(BOTH, given, time="t").to_pylist()[0]
    assert [str(one.message) for one in told] == [
        "column 'v' is string in stream 'S', and int64 in stream 'T': it is left out; make them one type, or rename one"
    ]
    assert row["b"] == [{"type": "B", "t": 2, "stream": "T"}]


def test_times_of_streams_with_and_without_zones() -> None:
    given = {
        "S": pa.table({"type": ["A"], "t": pa.array([DAY], ZONED)}),
        "T": pa.table({"type": ["B"], "t": pa.array([DAY.replace(tzinfo=None)], pa.timestamp("s"))}),
    }
    with pytest.raises(stretto.DataError) as caught:
        stretto.match(BOTH, given, time="t")
    assert str(caught.value) == (
        "column 't' is timestamp[s, tz=UTC] in stream 'S', and timestamp[s] in stream 'T', and the query reads it; make them one "
        "type, or rename one"
    )
