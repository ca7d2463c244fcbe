"""The public surface: what goes in, what comes out, and what a query is as a value."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import stretto

QUERY = "SELECT x, y FROM S WHERE A AS x; B AS y FILTER y[v > 1] WITHIN 2 EVENTS"
COLUMNS: dict[str, list[Any]] = {
    "type": ["A", "B", "B", "A", "B"],
    "v": [1, 1, 3, 4, 5],
    "name": ["é", "b", None, "d", "e"],
}
TABLE = pa.table(COLUMNS)


def e(position: int) -> dict[str, Any]:
    return {name: values[position] for name, values in COLUMNS.items()}


ROWS = [
    {"start": 0, "end": 2, "positions": [0, 2], "x": [e(0)], "y": [e(2)]},
    {"start": 3, "end": 4, "positions": [3, 4], "x": [e(3)], "y": [e(4)]},
]


# ---- What goes in


def pandas_frame() -> Any:
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def polars_frame() -> Any:
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def duckdb_relation() -> Any:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("events", TABLE)
    return connection.sql("SELECT * FROM events")


FORMS: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "chunks": lambda: pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)]),
    "record batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "dicts": TABLE.to_pylist,
    "generator of dicts": lambda: (row for row in TABLE.to_pylist()),
    "columns": lambda: COLUMNS,
    "columns of arrays": lambda: {name: TABLE.column(name) for name in TABLE.column_names},
    "pandas": pandas_frame,
    "polars": polars_frame,
    "duckdb": duckdb_relation,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_events(form: str) -> None:
    assert stretto.match(QUERY, FORMS[form]()).to_pylist() == ROWS
    assert stretto.Matcher(QUERY).push(FORMS[form]()).to_pylist() == ROWS


@pytest.mark.parametrize("form", ["table", "columns", "pandas", "polars", "duckdb", "dicts"])
def test_forms_as_schema(form: str) -> None:
    query = stretto.compile(QUERY, FORMS[form]())
    assert query.schema is not None
    assert list(query.schema.attributes) == ["type", "v", "name"]
    assert stretto.match(query, TABLE).to_pylist() == ROWS
    assert stretto.match(query, FORMS[form]()).to_pylist() == ROWS


@pytest.mark.parametrize(
    "schema",
    [
        TABLE.schema,
        {"type": "string", "v": "int64", "name": "string"},
        {"type": str, "v": int, "name": str},
        stretto.Schema({"type": pa.string(), "v": pa.int64(), "name": pa.string()}),
    ],
    ids=["arrow", "names", "python", "Schema"],
)
def test_schemas(schema: Any) -> None:
    assert stretto.match(stretto.compile(QUERY, schema), TABLE).to_pylist() == ROWS
    assert stretto.Matcher(QUERY, schema).push(TABLE).to_pylist() == ROWS


def test_a_narrower_input_than_the_schema() -> None:
    query = stretto.compile(QUERY, {"type": "string", "v": "int64", "name": "string"})
    narrow = TABLE.set_column(1, "v", TABLE.column("v").cast(pa.int8()))
    assert stretto.match(query, narrow).to_pylist() == ROWS
    assert stretto.Matcher(query).push(narrow).to_pylist() == ROWS


def test_missing_keys_of_dicts_are_null() -> None:
    rows = stretto.match("SELECT * FROM S WHERE A; B FILTER A[v IS NULL]", [{"type": "A"}, {"type": "B", "v": 1}])
    assert rows.to_pylist()[0]["A"] == [{"type": "A", "v": None}]


# ---- Order


def test_unsorted_time() -> None:
    """Rows of the input as it was given; positions ascend, and select the match's events."""
    table = pa.table({"type": ["C", "A", "B", "A"], "t": [9, 3, 5, 1]})
    found = stretto.match("SELECT * FROM S WHERE A+; B; C", table, time="t")
    rows = found.to_pylist()
    by_positions = {tuple(row["positions"]): row for row in rows}
    assert len(rows) == 3
    assert sorted(by_positions) == [(0, 1, 2), (0, 1, 2, 3), (0, 2, 3)]
    assert {p: (row["start"], row["end"]) for p, row in by_positions.items()} == {
        (0, 1, 2, 3): (3, 0),
        (0, 2, 3): (3, 0),
        (0, 1, 2): (1, 0),
    }
    assert by_positions[0, 1, 2]["start_time"] == 3
    assert by_positions[0, 2, 3]["start_time"] == 1
    assert {row["end_time"] for row in rows} == {9}
    assert [event["t"] for event in by_positions[0, 1, 2, 3]["A"]] == [1, 3]
    for row, positions in zip(rows, found.column("positions"), strict=True):
        taken = sorted(table.take(positions.values).column("t").to_pylist())
        assert taken == sorted(event["t"] for name in "ABC" for event in row[name])


def test_sorting_is_stable_and_sequence_breaks_ties() -> None:
    table = pa.table({"type": ["B", "A", "C"], "t": [5, 5, 5], "n": [3, 1, 2]})
    query = "SELECT * FROM S WHERE A; C; B"
    assert stretto.match("SELECT * FROM S WHERE B; A; C", table, time="t").num_rows == 1
    assert stretto.match(query, table, time="t").num_rows == 0
    found = stretto.match(query, table, time="t", sequence="n").to_pylist()
    assert [(row["start"], row["end"], row["positions"]) for row in found] == [(1, 0, [0, 1, 2])]
    # A sequence alone orders as well; then no time is known.
    found = stretto.match(query, table, sequence="n").to_pylist()
    assert [row["positions"] for row in found] == [[0, 1, 2]]
    assert "start_time" not in found[0]


def test_contiguity_counts_positions_of_the_sorted_stream() -> None:
    table = pa.table({"type": ["B", "X", "A"], "t": [2, 3, 1]})
    assert stretto.match("SELECT * FROM S WHERE A : B", table).num_rows == 0
    rows = stretto.match("SELECT * FROM S WHERE A : B WITHIN 1 EVENTS", table, time="t").to_pylist()
    assert [(row["start"], row["end"], row["positions"]) for row in rows] == [(2, 0, [0, 2])]


# ---- Types and streams


def test_no_type_column() -> None:
    table = pa.table({"v": [1, 5, 2]})
    rows = stretto.match("SELECT * FROM Ticks WHERE Ticks AS a; Ticks AS b FILTER b[v = 2]", table, type=None)
    assert rows.column("positions").to_pylist() == [[1, 2], [0, 2]]
    assert rows.to_pylist()[0]["a"] == [{"v": 5}]


def test_another_type_column() -> None:
    table = pa.table({"type": [1, 2], "kind": ["A", "B"]})
    assert stretto.match("SELECT * FROM S WHERE A; B", table, type="kind").num_rows == 1


STREAMS = {
    "Orders": pa.table({"type": ["NEW", "NEW"], "t": [1, 4], "id": [7, 8]}),
    "Parcels": pa.table({"type": ["SENT", "NEW"], "t": [3, 2], "id": [7, 7]}),
    "Other": pa.table({"type": ["NEW"], "t": [0], "id": [7]}),
}


def test_several_streams() -> None:
    """Merged by time; positions count the streams one after the other, in the order of FROM."""
    query = "SELECT * FROM Orders, Parcels WHERE Orders>NEW AS o; SENT AS s PARTITION BY [id]"
    rows = stretto.match(query, STREAMS, time="t").to_pylist()
    o = {"type": "NEW", "t": 1, "id": 7, "stream": "Orders"}
    s = {"type": "SENT", "t": 3, "id": 7, "stream": "Parcels"}
    times = {"start_time": 1, "end_time": 3}
    assert rows == [{"start": 0, "end": 2, "positions": [0, 2], **times, "id": 7, "o": [o], "s": [s]}]
    both = stretto.match("SELECT * FROM Orders, Parcels WHERE NEW AS o; SENT AS s PARTITION BY [id]", STREAMS, time="t")
    assert both.column("positions").to_pylist() == [[2, 3], [0, 2]]


def test_streams_in_one_table() -> None:
    parts = [table.append_column("from", pa.array([name] * table.num_rows)) for name, table in STREAMS.items()]
    table = pa.concat_tables(parts)
    query = "SELECT * FROM Orders, Parcels WHERE NEW; SENT PARTITION BY [id]"
    rows = stretto.match(query, table, time="t", stream="from", output="positions").to_pylist()
    assert [row["positions"] for row in rows] == [[2, 3], [0, 2]]
    one = stretto.match("SELECT * FROM Other WHERE NEW", table, time="t", stream="from", output="positions")
    assert one.column("positions").to_pylist() == [[4]]


def test_streams_without_types() -> None:
    """With type=None the name of its stream is an event's type."""
    streams = {name: table.drop_columns(["type"]) for name, table in STREAMS.items()}
    found = stretto.match(
        "SELECT * FROM Orders, Parcels WHERE Orders; Parcels", streams, type=None, time="t", output="positions"
    )
    assert sorted(found.column("positions").to_pylist()) == [[0, 2], [0, 3]]


# ---- What comes out


def test_the_columns_of_a_result() -> None:
    table = TABLE.append_column("t", pa.array([1, 2, 3, 4, 5], pa.timestamp("ms", "UTC")))
    table = table.append_column("k", pa.array(["u"] * 5, pa.large_string()))
    found = stretto.match(f"{QUERY.replace(' WITHIN', ' PARTITION BY [k] WITHIN')}", table, time="t")
    event = pa.struct([pa.field(f.name, f.type) for f in table.schema])
    assert found.schema == pa.schema(
        [
            ("start", pa.int64()),
            ("end", pa.int64()),
            ("positions", pa.list_(pa.int64())),
            ("start_time", pa.timestamp("ms", "UTC")),
            ("end_time", pa.timestamp("ms", "UTC")),
            ("k", pa.large_string()),
            ("x", pa.list_(event)),
            ("y", pa.list_(event)),
        ]
    )
    query = stretto.compile(f"{QUERY.replace(' WITHIN', ' PARTITION BY [k] WITHIN')}", table, time="t")
    assert query.output_schema() == found.schema
    bare = stretto.match(query, table, output="positions")
    assert bare.schema.names == ["start", "end", "positions", "start_time", "end_time", "k"]
    assert bare.schema == query.output_schema("positions")
    assert query.output_schema("events", positions=False).names == ["start_time", "end_time", "k", "x", "y"]
    assert bare.equals(found.select(bare.schema.names))
    matcher = stretto.Matcher(query, positions=False)
    assert matcher.push(table).equals(found.select(["start_time", "end_time", "k", "x", "y"]))


def test_the_window_attribute_is_the_time_where_none_is_named() -> None:
    rows = stretto.match("SELECT NONE FROM S WHERE A; B WITHIN 1 [v]", TABLE.slice(3)).to_pylist()
    assert rows == [{"start": 0, "end": 1, "positions": [], "start_time": 4, "end_time": 5}]


@pytest.mark.parametrize("name", ["start", "end", "positions", "k"])
def test_a_variable_with_the_name_of_a_column(name: str) -> None:
    table = TABLE.append_column("k", pa.array([1] * 5))
    found = stretto.match(f"SELECT * FROM S WHERE A AS {name}; B AS {name}_ PARTITION BY [k] LIMIT 1", table)
    assert found.schema.names == ["start", "end", "positions", "k", f"{name}_", f"{name}__"]
    row = found.to_pylist()[0]
    assert (row[f"{name}_"][0]["v"], row[f"{name}__"][0]["v"]) == (1, 1)
    assert (row[f"{name}_"][0]["type"], row[f"{name}__"][0]["type"]) == ("A", "B")


def test_select_attributes() -> None:
    found = stretto.match("SELECT x[name, v], y[v] FROM S WHERE A AS x; B AS y LIMIT 1", TABLE)
    assert found.schema.field("x").type == pa.list_(pa.struct([("name", pa.string()), ("v", pa.int64())]))
    assert found.to_pylist()[0] == {
        "start": 0,
        "end": 1,
        "positions": [0, 1],
        "x": [{"name": "é", "v": 1}],
        "y": [{"v": 1}],
    }


def test_select_some_none_and_types() -> None:
    text = "SELECT {} FROM S WHERE A AS x; B+ AS y WITHIN 2 EVENTS"
    rows = stretto.match(text.format("y"), TABLE).to_pylist()
    assert [(row["start"], row["end"], row["positions"]) for row in rows] == [
        (0, 1, [1]),
        (0, 2, [1, 2]),
        (0, 2, [2]),
        (3, 4, [4]),
    ]
    assert all(set(row) == {"start", "end", "positions", "y"} for row in rows)
    rows = stretto.match(text.format("B"), TABLE).to_pylist()
    assert [event["v"] for event in rows[1]["B"]] == [1, 3]
    rows = stretto.match(text.format("NONE"), TABLE).to_pylist()
    assert rows == [{"start": s, "end": e, "positions": []} for s, e in [(0, 1), (0, 2), (3, 4)]]


def test_projection_makes_complex_events_equal() -> None:
    """Which B was taken is not told any more: one row."""
    rows = stretto.match("SELECT A, C FROM S WHERE A; B; C", pa.table({"type": list("ABBC")}), output="positions")
    assert rows.to_pylist() == [{"start": 0, "end": 3, "positions": [0, 3]}]


def test_valuations() -> None:
    table = pa.table({"type": list("AAA"), "n": [0, 1, 2]})
    query = "SELECT * FROM S WHERE A+ AS a; A+ AS b"
    events = stretto.match(query, table, output="positions")
    assert events.column("positions").to_pylist().count([0, 1, 2]) == 1
    rows = stretto.match(query, table, valuations=True).to_pylist()
    shown = sorted(([a["n"] for a in row["a"]], [b["n"] for b in row["b"]]) for row in rows)
    assert shown == [([0], [1]), ([0], [1, 2]), ([0], [2]), ([0, 1], [2]), ([1], [2])]
    # Without: iterations are greedy.
    one = next(row for row in stretto.match(query, table).to_pylist() if row["positions"] == [0, 1, 2])
    assert ([a["n"] for a in one["a"]], [b["n"] for b in one["b"]]) == ([0, 1], [2])


def test_limit_keeps_the_latest_starts_of_each_event() -> None:
    table = pa.table({"type": list("AAABAB")})
    rows = stretto.match("SELECT * FROM S WHERE A; B LIMIT 2", table, output="positions").to_pylist()
    assert [(row["start"], row["end"]) for row in rows] == [(2, 3), (1, 3), (4, 5), (2, 5)]


def test_rows_are_ordered_by_the_event_that_completes_them() -> None:
    table = pa.table({"type": list("AABAB")})
    rows = stretto.match("SELECT * FROM S WHERE A; B", table, output="positions").to_pylist()
    assert [row["end"] for row in rows] == [2, 2, 4, 4, 4]


def test_a_matcher_tells_its_counts() -> None:
    matcher = stretto.Matcher(QUERY)
    assert matcher.stats == dict.fromkeys(matcher.stats, 0)
    assert matcher.query.schema is None
    matcher.push(TABLE)
    assert matcher.query.schema is not None
    assert (matcher.position, matcher.late) == (5, 0)
    stats = matcher.stats
    assert (stats["events"], stats["triggers"], stats["partitions"]) == (5, 2, 1)
    assert stats["bytes"] > 0
    assert matcher.finish().num_rows == 0


# ---- Figure 1 of the paper

Q1 = """SELECT * FROM Stock
WHERE SELL as msft; SELL as intel; SELL as amzn
FILTER msft[name="MSFT"] AND msft[price > 100]
   AND intel[name="INTC"]
   AND amzn[name="AMZN"] AND amzn[price < 2000]"""

Q2 = """SELECT b FROM Stock
WHERE (BUY or SELL) as s;
      (BUY or SELL) as b
PARTITION BY [name], [volume]
WITHIN 1 minute"""

Q3 = """SELECT MAX * FROM Stock
WHERE (BUY OR SELL) as low; (BUY OR SELL)+ as mid; (BUY OR SELL as) high
FILTER low[price < 100] AND mid[price >= 100]
   AND mid[price <= 2000] AND high[price > 2000]
PARTITION BY [name]"""


def stock(*rows: tuple[str, str, float, int, int]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(
        {
            "type": columns[0],
            "name": columns[1],
            "price": columns[2],
            "volume": columns[3],
            "time": pa.array(columns[4], pa.timestamp("s")),
        }
    )


def test_q1_on_the_stream_of_figure_3() -> None:
    """The stream that the paper draws runs on: six complex events."""
    table = stock(
        ("SELL", "MSFT", 101, 1, 0),
        ("SELL", "MSFT", 102, 1, 1),
        ("SELL", "INTC", 80, 1, 2),
        ("BUY", "INTC", 80, 1, 3),
        ("SELL", "AMZN", 1900, 1, 4),
        ("SELL", "INTC", 81, 1, 5),
        ("SELL", "AMZN", 1920, 1, 6),
        ("SELL", "AMZN", 2000, 1, 7),
    )
    rows = stretto.match(Q1, table).to_pylist()
    expected = [[0, 2, 4], [1, 2, 4], [0, 2, 6], [1, 2, 6], [0, 5, 6], [1, 5, 6]]
    assert sorted(row["positions"] for row in rows) == sorted(expected)
    assert [row["end"] for row in rows] == [4, 4, 6, 6, 6, 6]
    for row in rows:
        assert (row["start"], row["end"]) == (row["positions"][0], row["positions"][2])
        assert [row[name][0]["name"] for name in ("msft", "intel", "amzn")] == ["MSFT", "INTC", "AMZN"]


def test_q2() -> None:
    table = stock(
        ("BUY", "A", 10, 5, 0),
        ("SELL", "A", 11, 5, 60),
        ("SELL", "A", 11, 6, 60),
        ("SELL", "B", 11, 5, 61),
        ("BUY", "A", 12, 5, 61),
        ("HOLD", "B", 11, 5, 62),
        ("BUY", "B", 11, 5, 121),
    )
    rows = stretto.match(Q2, table, time="time").to_pylist()
    assert [(row["start"], row["positions"], row["name"], row["volume"]) for row in rows] == [
        (0, [1], "A", 5),
        (1, [4], "A", 5),
        (3, [6], "B", 5),
    ]
    assert rows[2]["b"][0]["type"] == "BUY"
    assert (rows[0]["end_time"] - rows[0]["start_time"]) == dt.timedelta(minutes=1)


def test_q3() -> None:
    table = stock(
        ("BUY", "A", 90, 1, 0),
        ("SELL", "A", 95, 1, 1),
        ("SELL", "A", 150, 1, 2),
        ("SELL", "B", 150, 1, 3),
        ("BUY", "A", 2000, 1, 4),
        ("BUY", "A", 99, 1, 5),
        ("SELL", "A", 2001, 1, 6),
        ("BUY", "B", 2001, 1, 7),
    )
    rows = stretto.match(Q3, table).to_pylist()
    assert [row["positions"] for row in sorted(rows, key=lambda row: row["start"])] == [[0, 2, 4, 6], [1, 2, 4, 6]]
    assert [row["mid"][1]["price"] for row in rows] == [2000, 2000]
    # Without MAX, mid is any part of the trend.
    assert stretto.match(Q3.replace("MAX ", ""), table).num_rows == 6


# ---- A query as a value


def test_properties() -> None:
    query = stretto.compile(
        "SELECT NEXT x[v], B FROM S1, S2 WHERE S1>A AS x; B PARTITION BY [k] WITHIN 1 minute CONSUME BY ANY LIMIT 3"
    )
    assert query.streams == ("S1", "S2")
    assert query.variables == ("x", "B")
    assert query.partition_by == ("k",)
    assert str(query.strategy) == "NEXT"
    assert str(query.consume) == "ANY"
    assert query.limit == 3
    assert query.language == "ceql"
    assert query.window is not None
    assert query.window.seconds == 60
    assert query.schema is None
    for call in (lambda: query.bound, lambda: query.columns, query.output_schema, query.program):
        with pytest.raises(stretto.OptionError, match="no schema yet"):
            call()


def test_defaults() -> None:
    query = stretto.compile("SELECT * FROM S WHERE A AS x; B; (C AS y OR D)+ AS z")
    assert query.variables == ("x", "B", "z", "y")
    assert (query.window, query.limit, query.partition_by) == (None, None, ())
    assert (str(query.strategy), str(query.consume)) == ("ALL", "NONE")


def test_columns_are_what_is_read() -> None:
    query = stretto.compile(
        "SELECT * FROM S WHERE A; B FILTER A[v > w] PARTITION BY [k] WITHIN 3 [t]",
        {"unused": str, "type": str, "k": int, "v": int, "t": int, "w": float},
    )
    assert query.columns == ("type", "k", "v", "t", "w")


def test_text_and_representation() -> None:
    query = stretto.compile(QUERY)
    assert str(query) == query.text == QUERY
    assert repr(query) == f"<stretto.Query {QUERY!r}>"
    assert repr(query.bind(TABLE.schema)) == repr(query)


def test_binding_makes_another_query() -> None:
    query = stretto.compile(QUERY)
    bound = query.bind(TABLE.schema)
    assert query.schema is None
    assert bound.schema is not None
    assert stretto.compile(bound) is bound
    assert stretto.match(bound, TABLE).to_pylist() == stretto.match(query, TABLE).to_pylist() == ROWS
    # Another schema, afterwards: the query adapts to the events of each call.
    floats = TABLE.set_column(1, "v", TABLE.column("v").cast(pa.float64()))
    found = stretto.match(query, floats)
    assert found.column("positions").to_pylist() == [row["positions"] for row in ROWS]
    assert found.schema.field("x").type.value_type.field("v").type == pa.float64()
    with pytest.raises(stretto.QueryError, match="unknown attribute 'v'"):
        query.bind({"type": str, "w": int})


def test_a_bound_query_keeps_its_roles() -> None:
    table = pa.table({"kind": ["B", "A"], "t": [2, 1]})
    query = stretto.compile("SELECT * FROM S WHERE A; B", table.schema, type="kind", time="t")
    assert stretto.match(query, table).column("positions").to_pylist() == [[0, 1]]
    assert stretto.Matcher(query).push(table.take([1, 0])).column("end_time").to_pylist() == [2]


@pytest.mark.parametrize("bound", [False, True])
def test_a_query_is_not_changed_by_use(bound: bool) -> None:
    query = stretto.compile(QUERY, TABLE.schema if bound else None)
    before = (query.text, query.variables, query.explain(), str(query.draw()), query.schema)
    for size in (5, 2, 0, 5):
        stretto.match(query, TABLE.slice(0, size))
    matchers = [stretto.Matcher(query) for _ in range(3)]
    assert [m.push(TABLE).to_pylist() for m in matchers] == [ROWS] * 3
    assert (query.text, query.variables, query.schema) == (before[0], before[1], before[4])
    assert str(query.draw()) == before[3]
    with pytest.raises(AttributeError):
        query.text = "SELECT"  # type: ignore[misc]


@pytest.mark.parametrize("roles", [None, {"time": "v"}])
def test_pickling(roles: dict[str, str] | None) -> None:
    query = stretto.compile(QUERY) if roles is None else stretto.compile(QUERY, TABLE.schema, **roles)
    again = pickle.loads(pickle.dumps(query))
    assert again.text == query.text
    assert again.schema == query.schema
    assert stretto.match(again, TABLE).equals(stretto.match(query, TABLE))


def test_one_query_from_many_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    query = stretto.compile("SELECT * FROM S WHERE A AS x; (B AS y OR C AS z)+; A WITHIN 6 EVENTS", TABLE.schema)
    tables = [pa.table(COLUMNS | {"type": list(word)}) for word in ("ABCAB", "AABCA", "ACCBA", "BBACA", "AAAAA")] * 8
    right = [stretto.match(query.text, table) for table in tables]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda table: stretto.match(query, table), tables))
    assert all(a.equals(b) for a, b in zip(found, right, strict=True))


def test_importing_is_light() -> None:
    """No Spark, no pandas, no plotting, until asked for."""
    code = (
        "import sys, stretto; "
        "print([m for m in ('pyspark', 'pandas', 'polars', 'matplotlib', 'hypothesis') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names() -> None:
    for name in stretto.__all__:
        if name != "spark":
            assert getattr(stretto, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = stretto.nothing
    for error in ("DataError", "EngineError", "LimitError", "OptionError", "QueryError", "SnapshotError"):
        assert issubclass(getattr(stretto, error), stretto.StrettoError)
