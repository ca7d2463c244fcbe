"""Time slices: the same matches as one pass, wherever the stream is cut.

The first half needs no Spark: it cuts a table as :mod:`stretto.spark.batch.run` cuts a DataFrame, and runs what the workers run.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.columns.measured import values_of
from stretto.errors import DataError, OptionError
from stretto.spark.batch import plan, slices, survey
from stretto.spark.batch.slices import ROWS_A_SLICE, Cells, Slices, cut, cut_for, unsliceable
from stretto.spark.batch.worker import CONTEXT, REACHES, Context, run_partition
from tests.conftest import cases, seeds
from tests.spark.test_batch import bag, found_by_spark

needs_spark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("seq", pa.int64()),
        ("key", pa.string()),
        ("x", pa.int64()),
        ("odometer", pa.int64()),
    ]
)

QUERIES = {
    "time": "SELECT * FROM S WHERE A ; B ; C WITHIN 8 seconds",
    "contiguous": "SELECT a, c FROM S WHERE A AS a : B ; C AS c WITHIN 5 seconds",
    "kleene": "SELECT * FROM S WHERE A ; B+ ; C WITHIN 4 seconds",
    "max": "SELECT MAX b FROM S WHERE A ; B+ AS b ; C WITHIN 4 seconds",
    "next": "SELECT NEXT * FROM S WHERE A ; B ; C WITHIN 10 seconds",
    "last": "SELECT LAST * FROM S WHERE A ; (B OR C)+ ; D WITHIN 3 seconds",
    "strict": "SELECT STRICT * FROM S WHERE A ; B+ ; C WITHIN 10 seconds",
    "limit": "SELECT * FROM S WHERE A ; B+ ; C WITHIN 6 seconds LIMIT 2",
    "no time": "SELECT * FROM S WHERE A ; B WITHIN 0 seconds",
    "all time": "SELECT * FROM S WHERE A ; B ; C FILTER C[x > 4] WITHIN 1 day",
    "counted": "SELECT * FROM S WHERE A ; B ; C WITHIN 6 EVENTS",
    "counted and contiguous": "SELECT * FROM S WHERE A : B ; C WITHIN 9 EVENTS",
    "counted, filtered": "SELECT * FROM S WHERE A ; B FILTER A[x > 2] AND B[x < 4] WITHIN 5 EVENTS",
    "nothing counted": "SELECT * FROM S WHERE A WITHIN 0 EVENTS",
    "measured": "SELECT * FROM S WHERE A ; B WITHIN 30 [odometer]",
    "measured, filtered": "SELECT * FROM S WHERE A ; B FILTER B[x > 3] WITHIN 7 [odometer]",
}


def events(seed: int, rows: int) -> pa.Table:
    """Events in the order of the stream, with ties in time and an attribute that does not decrease."""
    rng = random.Random(seed)
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    seconds = sorted(rng.randrange(max(1, rows // 2)) for _ in range(rows))
    odometer = 0
    found = []
    for seq, second in enumerate(seconds):
        odometer += rng.choice([0, 0, 1, 5])
        found.append(
            {
                "type": rng.choice("ABCD"),
                "ts": start + dt.timedelta(seconds=second),
                "seq": seq,
                "key": rng.choice([None, "a", "a", "a", "a", "a", "b"]),
                "x": rng.choice([None, *range(6)]),
                "odometer": odometer,
            }
        )
    return pa.Table.from_pylist(found, schema=SCHEMA)


def cells_of(table: pa.Table, query: stretto.Query, cells: int) -> Cells:
    """What a survey finds out with Spark."""
    times = values_of(table.column("ts"), "ts", 0)
    found = Cells.of_times(times, cells, times.size)
    window = query.bound.window
    assert window is not None
    if window.attribute == "ts":
        return found
    numbers, rows = np.unique(np.searchsorted(found.edges, times, side="right"), return_counts=True)
    if window.attribute is None:
        return found.counted(numbers, rows)
    values = values_of(table.column(window.attribute), window.attribute, 0)
    ends = np.cumsum(rows)
    return found.counted(numbers, rows, values[ends - rows], values[ends - 1])


def in_slices(table: pa.Table, query: stretto.Query, slices: Slices, output: str) -> pa.Table:
    """Every slice through a worker of its own."""
    times = values_of(table.column("ts"), "ts", 0)
    begins, lows = [None, *slices.begins], [None, *slices.lows]
    roles = ("type", "ts", None, None)
    parts = []
    for number, begin in enumerate(begins):
        read = np.ones(times.size, np.bool_)
        if lows[number] is not None:
            read &= times >= lows[number]
        if number + 1 < len(begins):
            read &= times < begins[number + 1]
        marks = np.where(times < begin, CONTEXT, 0) if begin is not None else np.zeros(times.size, np.int64)
        if lows[number] is not None:
            marks |= REACHES
        marked = table.append_column("mark", pa.array(marks)).filter(pa.array(read)).combine_chunks()
        parts += run_partition(
            iter(marked.to_batches(max_chunksize=7)),
            text=query.text,
            schema=table.schema.serialize().to_pybytes(),
            roles=roles,
            output=output,
            valuations=False,
            language="ceql",
            marked=True,
        )
    return pa.Table.from_batches(parts, schema=query.output_schema(output, positions=False))


@pytest.mark.parametrize("name", QUERIES)
def test_any_cut_gives_the_same_matches(name: str) -> None:
    text = QUERIES[name]
    query = stretto.compile(text, SCHEMA, time="ts")
    matches = 0
    for seed in range(12):
        rng = random.Random(seed)
        rows = rng.choice([1, 2, 9, 40, 80])
        table = events(seed, rows)
        for count in (2, 3, rng.randrange(4, 12), rows):
            slices = cut(cells_of(table, query, rng.choice([count, 8 * count, 64 * count])), count, query)
            if slices is None:
                continue
            output = rng.choice(["positions", "summary"] if query.limit else ["events", "positions", "summary"])
            expected = stretto.match(query, table, output=output)
            found = in_slices(table, query, slices, output)
            matches += expected.num_rows
            assert bag(found) == bag(expected), f"{name}: seed {seed}, {rows} rows, {slices}, {output}"
    assert matches > 0


def test_one_event_a_slice() -> None:
    query = stretto.compile(QUERIES["counted"], SCHEMA, time="ts")
    table = events(5, 60)
    table = table.set_column(1, "ts", pa.array(range(60), pa.int64()).cast(SCHEMA.field("ts").type))
    slices = cut(cells_of(table, query, 64 * 60), 60, query)
    assert slices is not None
    assert slices.own == (1,) * 60
    assert slices.context == tuple(min(number, 6) for number in range(60))
    assert bag(in_slices(table, query, slices, "events")) == bag(stretto.match(query, table))


# -- borders -----------------------------------------------------------------------------------------------------------


def test_limit_is_cut_only_where_ties_do_not_show() -> None:
    query = stretto.compile(QUERIES["limit"], SCHEMA, time="ts")
    assert "LIMIT" in str(unsliceable(query))
    assert unsliceable(query, shows_events=False) is None


def compiled(within: str, time: pa.DataType | None = None, more: str = "") -> stretto.Query:
    schema = {"type": "string", "t": time or "int64", "m": "double", "k": "double"}
    return stretto.compile(f"SELECT * FROM S WHERE A ; B {more} WITHIN {within}", schema, time="t", time_unit="s")


def even(rows: int) -> Cells:
    """Times 0 … rows − 1, a cell each."""
    return Cells(np.arange(1, rows), np.ones(rows, np.int64))


def test_slices_by_time() -> None:
    slices = cut(even(100), 4, compiled("10 seconds"))
    assert slices == Slices((25, 50, 75), (15, 40, 65), (25, 25, 25, 25), (0, 10, 10, 10))
    assert slices.overlap == pytest.approx(0.3)
    assert slices.cost(2) == pytest.approx(0.65)
    assert slices.cost(4) == pytest.approx(0.35)


def test_slices_by_count_take_whole_cells() -> None:
    cells = Cells(np.array([10, 20, 30, 40]), np.array([5, 5, 5, 5, 5]))
    slices = cut(cells, 2, compiled("6 EVENTS"))
    assert slices == Slices((20,), (None,), (10, 15), (0, 10)) or slices == Slices((30,), (10,), (15, 10), (0, 10))
    assert cut(cells, 5, compiled("5 EVENTS")) == Slices(
        (10, 20, 30, 40), (None, 10, 20, 30), (5,) * 5, (0, 5, 5, 5, 5)
    )


def test_slices_by_another_attribute_reach_beyond_the_window() -> None:
    cells = Cells(np.array([10, 20, 30]), np.full(4, 5), np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 9.0]))
    # The window of what begins at 3.0 reaches to 2.0; a cell that begins before that is needed.
    assert cut(cells, 4, compiled("1 [m]")) == Slices((10, 20, 30), (None, None, 10), (5,) * 4, (0, 5, 10, 10))
    falling = Cells(cells.edges, cells.rows, cells.least, np.array([1.0, 5.0, 3.0, 9.0]))
    assert cut(falling, 4, compiled("1 [m]")) is None


def test_ties_are_not_cut() -> None:
    same = Cells.of_times(np.full(50, 7), 64, 1000)
    assert cut(same, 4, compiled("10 seconds")) is None
    two = Cells.of_times(np.repeat([9, 7], 25), 64, 1000)
    assert cut(two, 4, compiled("1 seconds")) == Slices((9,), (8,), (500, 500), (0, 500))


def test_real_times_reach_back_a_little_further() -> None:
    rng = np.random.default_rng(1)
    size = 0.1
    query = compiled(f"{size} seconds", pa.float64())
    for begin in (*rng.uniform(0, 1e9, 50), *rng.uniform(0, 1e-9, 50), 1.6e9):
        slices = cut(Cells(np.array([begin]), np.array([1, 1])), 2, query)
        assert slices is not None
        (low,) = slices.lows
        assert low is not None
        start = begin - size
        while begin - np.nextafter(start, -np.inf) <= size:  # the first time that the engine takes
            start = np.nextafter(start, -np.inf)
        assert low <= start


def test_as_many_slices_as_pay() -> None:
    many = Cells(np.arange(1, 1000), np.full(1000, ROWS_A_SLICE // 50))  # 20 slices' worth of rows
    found = cut_for(many, 4, compiled("1 seconds"))
    assert found is not None
    assert found.count in (4, 8, 12)
    assert found.cost(4) < 0.3
    assert cut_for(many, 4, compiled("800 seconds")) is None  # nearly all would be context
    assert cut_for(many, 1, compiled("1 seconds")) is None
    few = Cells(np.arange(1, 1000), np.full(1000, ROWS_A_SLICE // 1000))
    assert cut_for(few, 4, compiled("1 seconds")) is None


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM S WHERE A ; B", "without WITHIN"),
        ("SELECT * FROM S WHERE A ; B WITHIN 5 seconds CONSUME BY ANY", "CONSUME BY ANY"),
        ("SELECT * FROM S WHERE A ; B WITHIN 5 seconds CONSUME BY PARTITION", "CONSUME BY PARTITION"),
        ("SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 5 seconds CONSUME BY PARTITION", "CONSUME BY PARTITION"),
        ("SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 5 EVENTS", "of each key on its own"),
        ("SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 5 [m]", "measured by 'm'"),
    ],
)
def test_what_is_not_cut(query: str, reason: str) -> None:
    schema = {"type": "string", "t": "int64", "m": "double", "k": "double"}
    found = unsliceable(stretto.compile(query, schema, time="t", time_unit="s"))
    assert found is not None
    assert reason in found


def test_short_context_is_an_error() -> None:
    """The events changed after they were counted."""
    for within, short, enough in (("3 EVENTS", 2, 3), ("2 [m]", 2, 3)):
        query = compiled(within)
        for count in (short, enough):
            table = pa.table({"type": ["A"] * (count + 1), "t": range(count + 1), "m": np.arange(count + 1.0)})
            marks = pa.chunked_array([pa.array([CONTEXT | REACHES] * count + [REACHES])])
            context = Context(query.bound)
            if count == short:
                with pytest.raises(DataError, match="not the same as when slices were planned"):
                    context.split(table, marks)
            else:
                before, own = context.split(table, marks)
                assert (before.num_rows, own.num_rows) == (count, 1)


def test_priming_lists_no_matches() -> None:
    text = "SELECT * FROM S WHERE A+"  # of 60 events 2^60 matches
    matcher = stretto.Matcher(text, output="summary")
    matcher.prime([{"type": "A"}] * 60)
    assert matcher.stats["triggers"] == 0
    assert matcher.position == 60
    consuming = stretto.Matcher("SELECT * FROM S WHERE A ; B CONSUME BY ANY")
    with pytest.raises(OptionError, match="CONSUME BY ANY"):
        consuming.prime([{"type": "A"}])


@pytest.mark.parametrize("seed", range(cases(20)))
def test_priming_then_pushing(seed: int) -> None:
    """What is pushed after priming gives what it gives in one run."""
    rng = random.Random(seed)
    table = events(seed, 60)
    query = rng.choice(list(QUERIES.values()))
    at = rng.randrange(60)
    matcher = stretto.Matcher(query, SCHEMA, time="ts", capacity=1)
    matcher.prime(table.slice(0, at))
    found = matcher.push(table.slice(at))
    whole = stretto.match(query, table, time="ts")
    expected = whole.filter(pa.array(np.asarray(whole.column("end")) >= at))
    print(f"seed {seed}: {query}, {at}, {expected.num_rows} matches")
    assert found.to_pylist() == expected.to_pylist()


# -- on Spark ----------------------------------------------------------------------------------------------------------


def of_kind(spark: Any, kind: str, seed: int, rows: int = 48) -> Any:
    """Events whose time ``t`` has a type, with ties; NULL nowhere."""
    rng = random.Random(seed)
    times = {
        "timestamp": lambda n: dt.datetime(2024, 3, 31, 0, 59, 50) + dt.timedelta(seconds=n / 2),
        "timestamp_ntz": lambda n: dt.datetime(1969, 12, 31, 23, 59, 55) + dt.timedelta(seconds=n / 2),
        "date": lambda n: dt.date(1969, 12, 28) + dt.timedelta(days=n),
        "decimal(12,3)": lambda n: Decimal(n - 6) / 8,
        "double": lambda n: (n - 6) / 10,
        "float": lambda n: (n - 6) / 10,
        "smallint": lambda n: n - 6,
        "bigint": lambda n: (n - 6) * 10**15,
    }
    found = [(rng.choice("ABC"), times[kind](rng.randrange(rows * 3 // 4)), seq) for seq in range(rows)]
    rng.shuffle(found)
    return spark.createDataFrame(found, f"type string, t {kind}, seq int").repartition(2)


@needs_spark
@pytest.mark.parametrize(
    ("kind", "window"),
    [
        ("timestamp", "2.5 [t]"),
        ("date", "4 days [t]"),
        ("decimal(12,3)", "0.625 [t]"),
        *seeds(
            ("double", "0.3 [t]"),
            ("timestamp_ntz", "2.5 [t]"),
            ("float", "0.3 [t]"),
            ("smallint", "4 [t]"),
            ("bigint", "4000000000000000 [t]"),
            ("timestamp", "5 EVENTS"),
        ),
    ],
)
def test_time_of_any_kind(spark: Any, kind: str, window: str) -> None:
    df = of_kind(spark, kind, seed=7)
    query = f"SELECT * FROM S WHERE A ; B ; C WITHIN {window}"
    expected = stretto.match(query, df.toArrow(), time="t", sequence="seq")
    assert expected.num_rows > 0
    found = found_by_spark(df, query, time="t", sequence="seq", slices=6)
    assert bag(found) == bag(expected)
    assert "cut into" in stretto.spark.explain(df, query, time="t", sequence="seq", slices=6)


@pytest.mark.usefixtures("two_partitions")
@needs_spark
@pytest.mark.parametrize(
    ("name", "count", "output"), [("kleene", 2, "events"), ("strict", 9, "summary"), ("limit", 3, "positions")]
)
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_same_matches_on_spark(spark: Any, name: str, count: int, output: str, seed: int) -> None:
    table = events(seed, 80)
    expected = stretto.match(QUERIES[name], table, time="ts", sequence="seq", output=output)
    assert expected.num_rows > 0
    df = spark.createDataFrame(table).repartition(3)
    found = found_by_spark(df, QUERIES[name], time="ts", sequence="seq", output=output, slices=count)
    assert bag(found) == bag(expected)


@needs_spark
@pytest.mark.parametrize("window", seeds("7 seconds", "9 EVENTS", "12 [odometer]"))
def test_one_event_a_slice_on_spark(spark: Any, window: str) -> None:
    table = events(11, 12)
    table = table.set_column(
        1, "ts", pa.array(range(12), pa.int64()).cast(pa.timestamp("s")).cast(SCHEMA.field("ts").type)
    )
    df = spark.createDataFrame(table).repartition(3)
    query = f"SELECT * FROM S WHERE A ; B ; (C OR D) WITHIN {window}"
    expected = stretto.match(query, table, time="ts")
    assert expected.num_rows > 0
    matches = stretto.spark.match(df, query, time="ts", slices=12)
    assert bag(matches.toArrow()) == bag(expected)
    assert matches.select().mapInArrow(_one_row_a_partition, "n int").count() == 12


def _one_row_a_partition(batches: Any) -> Any:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"n": pa.array([1], pa.int32())})


@needs_spark
def test_awkward_columns_and_streams(spark: Any) -> None:
    rng = random.Random(3)
    rows = [(rng.choice(["NEW", "OLD"]), at // 2, at, rng.randrange(9)) for at in range(40)]
    named = "`my.type` string, `the ``time` int, `_own` int, `a.b` int"
    orders, other = (spark.createDataFrame(rows[first::2], named) for first in (0, 1))
    query = "SELECT n[a.b], o FROM orders, other WHERE orders>NEW AS n ; other>OLD AS o WITHIN 6 EVENTS"
    query = query.replace("a.b", "_own")
    options: dict[str, Any] = {"type": "my.type", "time": "the `time", "sequence": "_own"}
    tables = {"orders": orders.toArrow(), "other": other.toArrow()}
    expected = stretto.match(query, tables, **options)
    assert expected.num_rows > 0
    found = found_by_spark({"orders": orders, "other": other}, query, **options, slices=5)
    assert bag(found) == bag(expected)


@needs_spark
@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_events_to_cut(spark: Any, rows: int) -> None:
    df = spark.createDataFrame([("A", 1)][:rows], "type string, t int")
    for query in ("SELECT * FROM S WHERE A WITHIN 3 [t]", "SELECT * FROM S WHERE A WITHIN 3 EVENTS"):
        assert stretto.spark.match(df, query, time="t", slices=4).count() == rows
    keyed = "SELECT * FROM S WHERE A PARTITION BY [t] WITHIN 3 [t]"
    assert stretto.spark.match(df, keyed, time="t", slices=4).count() == rows


@needs_spark
def test_bad_times_are_errors_in_slices_too(spark: Any) -> None:
    times = spark.createDataFrame([("A", n, n) for n in range(8)], "type string, t int, m int")
    null = times.union(spark.createDataFrame([("A", None, 3)], times.schema))
    query = "SELECT * FROM S WHERE A ; A WITHIN 2 [t]"
    with pytest.raises(Exception, match=r"'t' \(time\) is NULL in 1 or more rows"):
        stretto.spark.match(null, query, time="t", slices=3).count()
    falls = times.union(spark.createDataFrame([("A", 9, 2)], times.schema))
    with pytest.raises(Exception, match="'m' decreases from 7 to 2"):
        stretto.spark.match(falls, "SELECT * FROM S WHERE A ; A WITHIN 1 [m]", time="t", slices=3).count()
    odd = times.selectExpr("type", "if(t = 3, double('nan'), double(t)) AS t")
    with pytest.raises(Exception, match="'t' orders or windows the stream and is NaN"):
        stretto.spark.match(odd, query, time="t", slices=3).count()


# -- frequent keys -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_partitions")
@needs_spark
@pytest.mark.parametrize("seed", seeds(1, 2))
@pytest.mark.parametrize("partitions", [None, 3])
def test_a_key_with_most_of_the_events(spark: Any, seed: int, partitions: int | None) -> None:
    rng = random.Random(seed)
    table = events(seed, 200)
    keys = [rng.choice([None, "b", "c", *["a"] * 27]) for _ in range(200)]
    table = table.set_column(3, "key", pa.array(keys, pa.string()))
    query = "SELECT * FROM S WHERE A ; B+ ; C PARTITION BY [key] WITHIN 5 seconds"
    expected = stretto.match(query, table, time="ts", sequence="seq")
    df = spark.createDataFrame(table).repartition(3)
    options: dict[str, Any] = {"time": "ts", "sequence": "seq", "slices": 4, "partitions": partitions}
    text = stretto.spark.explain(df, query, **options)
    assert '{"key":"a"}, with about 9' in text
    assert "cut into 4 time slices" in text
    assert '"b"' not in text
    assert bag(found_by_spark(df, query, **options)) == bag(expected)


@needs_spark
def test_keys_that_floats_make_equal(spark: Any) -> None:
    """NaN is one key, and so are the two zeros: here, in the hash, and in the engine."""
    keys = [float("nan"), 0.0, -0.0, -float("nan"), 1.5]
    rows = [("AB"[at // 5 % 2], at, keys[at % 5]) for at in range(60)]
    df = spark.createDataFrame(rows, "type string, t int, k double").repartition(3)
    query = "SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 9 [t]"
    expected = stretto.match(query, df.toArrow(), time="t")
    assert expected.num_rows > 50
    assert stretto.spark.match(df, query, time="t", slices=5).count() == expected.num_rows
    assert "NaN" in stretto.spark.explain(df, query, time="t", slices=5)


# -- what is chosen, and what is said ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_partitions")
@needs_spark
def test_slices_are_chosen_where_they_pay(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundredth of the events that pay."""
    for module in (slices, plan):
        monkeypatch.setattr(module, "ROWS_A_SLICE", ROWS_A_SLICE // 100)
    monkeypatch.setattr(survey, "SMALL", survey.SMALL // 100)
    made = spark.range(21_000).selectExpr(
        "if(id % 50 = 0, 'A', 'B') AS type", "id AS t", "id % 7 AS k", "uuid() AS more"
    )
    made.write.option("maxRecordsPerFile", 3_000).parquet(str(tmp_path / "many"))
    many = spark.read.parquet(str(tmp_path / "many"))
    query = "SELECT * FROM S WHERE A ; B WITHIN 3 [t]"
    text = stretto.spark.explain(many, query, time="t")
    assert "cut into 4 time slices; each reads one window before it as context" in text
    assert "columns    type, t" in text.replace(", k, more", "")
    assert stretto.spark.match(many, query, time="t", output="summary").count() == 21_000 // 50 * 3
    assert "not cut in time: slices=1" in stretto.spark.explain(many, query, time="t", slices=1)
    long = stretto.spark.explain(many, "SELECT * FROM S WHERE A ; B WITHIN 19000 [t]", time="t")
    assert "the window reaches over too many of the events" in long
    few = stretto.spark.explain(many.limit(5), query, time="t")
    assert "not cut in time: the events are few" in few
    even = stretto.spark.explain(many, "SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 3 [t]", time="t")
    assert "no key is cut in time: none holds more than 25% of the events" in even


@needs_spark
def test_what_does_not_scale_is_said(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    df = spark.createDataFrame([("A", 1, 1)], "type string, t int, k int")
    said = {
        "SELECT * FROM S WHERE A ; B": "without WITHIN a match may begin with the first event. Add PARTITION BY, or add WITHIN",
        "SELECT * FROM S WHERE A ; B WITHIN 5 [t] CONSUME BY ANY": "Add PARTITION BY, or leave out CONSUME BY",
        "SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 5 [t] CONSUME BY ANY": "Let it CONSUME BY PARTITION",
        "SELECT * FROM S WHERE A ; B WITHIN 5 [t] LIMIT 2": "ask for output='positions' or 'summary'",
        "SELECT * FROM S WHERE A ; B PARTITION BY [k]": "a frequent key cannot be cut in time",
        "SELECT * FROM S WHERE A ; B WITHIN 5 [t]": None,
        "SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 5 EVENTS": None,
    }
    for query, expected in said.items():
        caplog.clear()
        stretto.spark.match(df, query, time="t")
        warnings = [record.getMessage() for record in caplog.records if record.name == "stretto"]
        assert [expected in one for one in warnings] == [True] if expected else not warnings, query


@needs_spark
@pytest.mark.parametrize("slices", [0, -1, 1.5, True, 5000])
def test_numbers_of_slices_that_cannot_be(spark: Any, slices: Any) -> None:
    df = spark.createDataFrame([("A", 1)], "type string, t int")
    for call in (stretto.spark.match, stretto.spark.explain):
        with pytest.raises(OptionError, match="slices="):
            call(df, "SELECT * FROM S WHERE A WITHIN 3 [t]", time="t", slices=slices)
