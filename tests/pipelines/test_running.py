"""Pipelines that run: what is in their sinks, what they tell, how they end."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import stretto
from stretto.cli import main
from stretto.errors import EngineError, OptionError
from stretto.pipelines import PipelineError, Update, load, run
from stretto.pipelines.sinks import Route, stream_writer
from stretto.pipelines.updates import reason
from tests.pipelines.conftest import TRADES

pytestmark = [pytest.mark.spark]

PAIRS = "SELECT sold[price], bought[price] FROM trades WHERE SELL AS sold ; BUY AS bought PARTITION BY [name] WITHIN 5 seconds"

BATCH = f'''
[source]
kind = "csv"
path = "trades.csv"
columns = {{ type = "string", ts = "timestamp", name = "string", price = "double" }}

[events]
time = "ts"

[[query]]
name = "pairs"
text = "{PAIRS}"
sinks = ["parquet", "json", "csv", "shown"]

[[sink]]
name = "parquet"
kind = "parquet"
path = "out/parquet"

[[sink]]
name = "json"
kind = "json"
path = "out/json"

[[sink]]
name = "csv"
kind = "csv"
path = "out/csv"

[[sink]]
name = "shown"
kind = "console"
rows = 1
'''


def spoilt(text: str, *pieces: tuple[str, str]) -> Path:
    for old, new in pieces:
        assert old in text, old
        text = text.replace(old, new, 1)
    Path("pipeline.toml").write_text(text, encoding="utf-8")
    return Path("pipeline.toml")


def expected() -> list[dict[str, Any]]:
    """The matches of one pass over the trades, without positions."""
    table = csv.read_csv(Path("trades.csv"))
    found = stretto.match(PAIRS, table, time="ts").drop_columns(["start", "end", "positions"])
    return found.select(["name", "sold", "bought"]).to_pylist()


def lines(folder: str) -> list[dict[str, Any]]:
    """The JSON lines of all files below a folder."""
    texts = [path.read_text("utf-8") for path in sorted(Path(folder).rglob("*.json"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def by_name(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({key: row[key] for key in ("name", "sold", "bought")} for row in rows), key=lambda row: row["name"])


def test_batch(spark: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four sinks, from the command line; then again, where the sinks are there already."""
    assert len(expected()) == 2
    path = spoilt(BATCH)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(path)])
    shown = capsys.readouterr()
    assert ended.value.code in (0, None)
    assert by_name(pq.read_table("out/parquet").to_pylist()) == by_name(expected())
    assert by_name(lines("out/json")) == by_name(expected())
    table = [row for file in Path("out/csv").glob("*.csv") for row in csv.read_csv(file).to_pylist()]
    assert by_name(
        [{**row, "sold": json.loads(row["sold"]), "bought": json.loads(row["bought"])} for row in table]
    ) == (by_name(expected()))
    printed = [json.loads(line) for line in shown.out.splitlines()]
    assert len(printed) == 1
    assert by_name(printed)[0] in by_name(expected())
    told = [line[9:] for line in shown.err.splitlines()]
    assert told[-2:] == ["… 1 more rows"[9:], "pairs: done, 2 matches to parquet, json, csv, shown"]
    assert told[0] == "Spark: starting"

    with pytest.raises(SystemExit) as ended:
        main(["run", str(path)])
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    assert 'pipeline.toml, line 18, column 8: [[sink]] path = "out/parquet" is there already' in shown.err
    assert 'hint: mode = "append" adds to it, mode = "overwrite" replaces it' in shown.err


def test_jobs_of_a_stream_say_which_sink_they_write(spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, name = spark.sparkContext, "spark.job.description"
    told: list[str] = []
    noting = lambda *_, **__: lambda df, batch: told.append(context.getLocalProperty(name))  # noqa: E731
    monkeypatch.setattr("stretto.connectors.files.writer", noting)
    plan = load(spoilt(BATCH))
    context.setLocalProperty(name, "batch = 3")
    try:
        stream_writer(Route(plan, plan.sink("parquet"), "pairs"))(spark.range(1), 3)
        assert context.getLocalProperty(name) == "batch = 3"
    finally:
        context.setLocalProperty(name, None)
    assert told == ["batch = 3: writing to parquet"]


def test_batch_with_timeouts(spark: Any, folder: Path) -> None:
    text, _, _ = BATCH.replace("5 seconds", "2 seconds").partition('[[sink]]\nname = "json"')
    run(load(spoilt(text, ('["parquet", "json", "csv", "shown"]', '["parquet"]\ntimeouts = true'))))
    query = PAIRS.replace("5 seconds", "2 seconds")
    wanted = stretto.match(query, csv.read_csv(Path("trades.csv")), time="ts", timeouts=True)
    assert sorted(wanted.column("reached").to_pylist(), key=str) == [None, "sold"]
    columns = ["name", "sold", "bought", "reached"]
    found = pq.read_table("out/parquet")
    assert sorted(map(repr, found.select(columns).to_pylist())) == sorted(map(repr, wanted.select(columns).to_pylist()))


def test_batch_that_adds_up(spark: Any, folder: Path) -> None:
    items = "COUNT(*) AS n, MAX(bought[price]) AS paid"
    query = PAIRS.replace("sold[price], bought[price]", items) + " EVERY 5 seconds"
    run(load(spoilt(BATCH, (PAIRS, query))))
    found = stretto.match(query, csv.read_csv(Path("trades.csv")), time="ts").select(["name", "n", "paid"]).to_pylist()
    written = pq.read_table("out/parquet").select(["name", "n", "paid"]).to_pylist()
    assert sorted(written, key=repr) == sorted(found, key=repr)
    assert found


def test_batch_that_appends_and_replaces(spark: Any, folder: Path) -> None:
    """One parquet source with a derived time; bad records counted; a query that only Spark can check."""
    table = pa.Table.from_pylist([*csv.read_csv(Path("trades.csv")).to_pylist(), {"type": "BUY", "name": "INTC"}])
    table = table.set_column(1, "at", table.column("ts").cast(pa.timestamp("us", tz="UTC"))).drop_columns(["price"])
    pq.write_table(table, "trades.parquet")
    text = f'''
[source]
kind = "parquet"
path = "trades.parquet"
derived = {{ ts = "at + interval 1 hour", price = "cast(length(name) as double)" }}

[events]
time = "ts"
bad_records = "drop"

[[query]]
name = "pairs"
text = "{PAIRS}"
sinks = ["out"]

[[query]]
name = "rises"
language = "afa"
text = """
partition_by = ["name"]
register = {{ low = "double" }}
final = ["q2"]
arcs = [
    {{ source = "q0", target = "q1", then = "low = e.price" }},
    {{ source = "q1", target = "q2", when = "e.price >= r.low" }},
]
"""
sinks = ["rises"]

[[query]]
name = "lower"
language = "sql"
text = """
SELECT name, n FROM events MATCH_RECOGNIZE (
    PARTITION BY name ORDER BY ts MEASURES count(*) AS n PATTERN (A+) DEFINE A AS price > 1
)
"""
sinks = ["lower"]

[[sink]]
name = "out"
kind = "parquet"
path = "out"
mode = "append"

[[sink]]
name = "rises"
kind = "parquet"
path = "rises"
mode = "append"

[[sink]]
name = "lower"
kind = "parquet"
path = "lower"
mode = "append"
'''
    told: list[Update] = []
    for _ in range(2):
        run(load(spoilt(text)), report=told.append)
    rows = pq.read_table("out").to_pylist()
    assert sorted((row["start_time"].hour, row["start_time"].second, row["name"]) for row in rows) == [
        *[(1, 1, "INTC")] * 2,
        *[(1, 2, "MSFT")] * 2,
    ]
    assert [u.line for u in told if u.name == "bad records of events" and u.state == "done"] == ["1 dropped"] * 2
    rises = [(row["name"], row["register"]["low"]) for row in pq.read_table("rises").to_pylist()]
    assert sorted(rises) == [("INTC", 4.0)] * 4 + [("MSFT", 4.0)] * 2
    lower = [(row["name"], row["n"]) for row in pq.read_table("lower").to_pylist()]
    assert sorted(lower) == [("INTC", 3)] * 2 + [("MSFT", 2)] * 2
    run(load(spoilt(text, ("append", "overwrite"))))
    assert pq.read_table("out").num_rows == 2

    with pytest.raises(PipelineError) as caught:
        run(load(spoilt(text, ("sold[price]", "sold[prize]"))))
    assert caught.value.in_queries
    assert str(caught.value).startswith("pipeline.toml, line 13, column 21: query 'pairs': unknown attribute 'prize'")
    with pytest.raises(PipelineError, match=r"pipeline.toml, line 3[0-9], .*: query 'lower': unknown column 'prize'"):
        run(load(spoilt(text, ("price > 1", "prize > 1"))))
    with pytest.raises(
        PipelineError, match=r"pipeline.toml, line 25, .*: query 'rises': the event has no attribute 'prize'"
    ):
        run(load(spoilt(text, ("e.price >=", "e.prize >="))))


def test_batch_stops_at_a_bad_record(spark: Any, folder: Path) -> None:
    with Path("trades.csv").open("a") as stream:
        stream.write("BUY,when,INTC,85.0\n")
    told: list[Update] = []
    with pytest.raises(
        EngineError, match=r"^pipeline.toml, line \d+: pairs: .*a record is no event .*BUY,when,INTC,85.0"
    ):
        run(load(spoilt(BATCH)), report=told.append)
    assert told[-1].state == "failed"
    assert not list(Path("out").glob("*/part*"))


def test_several_streams_and_a_shared_console(spark: Any, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("orders.json").write_text('{"type":"NEW","ts":1,"number":7}\n{"type":"NEW","ts":2,"number":8}\n')
    Path("payments.json").write_text('{"type":"PAID","ts":3,"number":7}\n{"type":"PAID"}\n')
    columns = 'columns = { type = "string", ts = "bigint", number = "int" }'
    text = "".join(
        f'[[source]]\nname = "{n}"\nkind = "json"\npath = "{n}.json"\n{columns}\n' for n in ("orders", "payments")
    )
    text += """
[events]
time = "ts"
time_unit = "s"
bad_records = "side"
bad_records_sink = "shown"

[[query]]
name = "paid"
text = "SELECT * FROM orders, payments WHERE orders>NEW ; payments>PAID PARTITION BY [number]"
output = "positions"

[[query]]
name = "new"
text = "SELECT NONE FROM orders WHERE NEW PARTITION BY [number]"
sinks = "shown"

[[sink]]
name = "shown"
kind = "console"
"""
    run(load(spoilt(text, ('output = "positions"', 'output = "positions"\nsinks = "shown"'))))
    printed = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [row for row in printed if row.get("query") == "paid"] == [
        {"query": "paid", "start_time": 1, "end_time": 3, "number": 7}
    ]
    assert sorted(row["number"] for row in printed if row.get("query") == "new") == [7, 8]
    assert [(row["stream"], row["raw"]) for row in printed if "raw" in row] == [("payments", '{"type":"PAID"}')]


STREAMING = f'''
[pipeline]
name = "trades"
mode = "streaming"
checkpoint = "state"

[source]
kind = "json"
path = "in"
columns = {{ type = "string", ts = "timestamp", name = "string", price = "double" }}
options = {{ maxFilesPerTrigger = 1 }}

[events]
time = "ts"
disorder = "5 seconds"
late = "side"
late_sink = "late"
bad_records = "side"
bad_records_sink = "bad"

[[query]]
name = "pairs"
text = "{PAIRS}"
sinks = ["out", "table"]
buckets = 2

[[sink]]
name = "out"
kind = "parquet"
path = "out"

[[sink]]
name = "table"
kind = "delta"
path = "table"

[[sink]]
name = "late"
kind = "json"
path = "late"

[[sink]]
name = "bad"
kind = "json"
path = "bad"

[spark]
sql.shuffle.partitions = 2
'''


def arrive(number: int, events: list[tuple[str, str, str, float]], *more: str) -> None:
    """A file of a stream; files are read in the order of their times."""
    Path("in").mkdir(exist_ok=True)
    rows = [json.dumps({"type": t, "ts": f"2024-01-01T{ts}Z", "name": n, "price": p}) for t, ts, n, p in events]
    file = Path(f"in/{number}.json")
    file.write_text("".join(f"{row}\n" for row in (*rows, *more)), encoding="utf-8")
    os.utime(file, (1_600_000_000 + number,) * 2)


def trades() -> list[tuple[str, str, str, float]]:
    rows = [row.split(",") for row in TRADES.splitlines()[1:]]
    return [(kind, ts[11:19], name, float(price)) for kind, ts, name, price in rows]


def test_streaming(spark: Any, folder: Path) -> None:
    """All that is there, then what is new, with late events and bad records aside; then another query's folder."""
    arrive(1, trades(), '{"type":"SELL"', '{"type":"SELL","ts":null}')
    arrive(2, [("SELL", "00:01:40", "end", 1.0)])
    arrive(3, [("BUY", "00:00:04", "INTC", 1.0), ("SELL", "00:50:00", "end", 1.0)])
    told: list[Update] = []
    run(load(spoilt(STREAMING)), once=True, report=told.append)
    assert by_name(pq.read_table("out", partitioning=None).to_pylist()) == by_name(expected())
    assert by_name(delta("table")) == by_name(expected())
    late = {"type": "BUY", "ts": "2024-01-01T00:00:04.000Z", "name": "INTC", "price": 1.0}
    assert lines("late") == [late]
    assert list(Path("late").glob("query=pairs/batch=*/*.json"))
    assert [row["raw"] for row in lines("bad")] == ['{"type":"SELL"', '{"type":"SELL","ts":null}']
    done = {update.name: update.line for update in told if update.state == "done"}
    assert done["pairs"].startswith("3 batches, 8 events, 2 matches, 1 late")
    assert done["pairs"].endswith(", 2 bad records")
    assert done["bad records of events"] == "3 batches, 2 bad records"

    arrive(4, [("SELL", "00:51:00", "NEW", 5.0), ("BUY", "00:51:02", "NEW", 6.0), ("SELL", "01:00:00", "end", 1.0)])
    run(load(spoilt(STREAMING)), once=True)
    names = sorted(row["name"] for row in pq.read_table("out", partitioning=None).to_pylist())
    assert names == sorted(row["name"] for row in delta("table")) == ["INTC", "MSFT", "NEW"]

    told.clear()
    with pytest.raises(
        EngineError, match=r"(?s)^pipeline.toml(, line \d+)?: (pairs|bad records of events): .*of another query"
    ):
        run(load(spoilt(STREAMING, ('"state"', '"elsewhere"'))), once=True, report=told.append)
    assert not spark.streams.active
    assert {update.state for update in told[-2:]} <= {"failed", "stopped", "done"}
    assert sorted(row["name"] for row in delta("table")) == names


def delta(path: str) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    return pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist()


CLAUSE = """
SELECT name, sold, bought FROM events MATCH_RECOGNIZE (
    PARTITION BY name ORDER BY ts MEASURES S.price AS sold, B.price AS bought
    PATTERN (S B) DEFINE S AS type = 'SELL', B AS type = 'BUY'
)
"""


def test_a_clause_over_a_stream(spark: Any, folder: Path) -> None:
    arrive(1, trades())
    arrive(2, [("SELL", "00:01:40", "INTC", 1.0)])
    arrive(3, [("BUY", "00:01:41", "INTC", 2.0), ("BUY", "00:00:04", "INTC", 9.0)])
    arrive(4, [("SELL", "00:50:00", "end", 1.0)])
    changes = [
        ('late = "side"\nlate_sink = "late"\n', ""),
        ('bad_records = "side"\nbad_records_sink = "bad"\n', ""),
        (f'text = "{PAIRS}"', f"language = 'sql'\ntext = '''{CLAUSE}'''"),
        ("buckets = 2\n", ""),
        ('[[sink]]\nname = "late"\nkind = "json"\npath = "late"\n', ""),
        ('[[sink]]\nname = "bad"\nkind = "json"\npath = "bad"\n', ""),
        ('sinks = ["out", "table"]', 'sinks = ["out"]'),
        ('[[sink]]\nname = "table"\nkind = "delta"\npath = "table"\n', ""),
    ]
    told: list[Update] = []
    run(load(spoilt(STREAMING, *changes)), once=True, report=told.append)
    columns = {"type": "string", "ts": "timestamp[us]", "name": "string", "price": "double"}
    matcher = stretto.Matcher(CLAUSE.partition("events")[2].strip(), schema=columns, disorder=math.inf)
    rows = [
        {"type": kind, "ts": dt.datetime.fromisoformat(f"2024-01-01T{ts}"), "name": name, "price": price}
        for kind, ts, name, price in [*trades(), ("SELL", "00:01:40", "INTC", 1.0), ("BUY", "00:01:41", "INTC", 2.0)]
    ]
    matcher.push(rows)
    wanted = matcher.finish().to_pylist()
    found = pq.read_table("out", partitioning=None).to_pylist()
    assert {"name": "INTC", "sold": 1.0, "bought": 2.0} in found
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    done = {update.name: update.line for update in told if update.state == "done"}
    assert "1 late" in done["pairs"]


def test_an_interrupt_stops_a_stream(spark: Any, folder: Path) -> None:
    arrive(1, trades())
    states = []

    def interrupt(update: Update) -> None:
        states.append((update.name, update.state))
        if update.line.startswith("batch 0:"):
            raise KeyboardInterrupt

    short = STREAMING.replace('"out", "table"]', '"out"]')
    start, end = short.index('[[sink]]\nname = "table"'), short.index('[[sink]]\nname = "late"')
    run(
        load(spoilt(short[:start] + short[end:], ('kind = "parquet"', 'kind = "console"'), ('path = "out"\n', ""))),
        report=interrupt,
    )
    assert states[-1][1] == "stopped"
    assert not spark.streams.active


def test_once_is_for_streams(folder: Path) -> None:
    with pytest.raises(OptionError, match=r'^once is for streaming pipelines, and this one has mode = "batch"'):
        run(load(spoilt(BATCH)), once=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Job aborted.\n\tat org.apache.spark", "Job aborted."),
        (
            "An error occurred while calling o5.save.\n: java.io.IOException: full\n\tat org",
            "java.io.IOException: full",
        ),
        (
            '[X] no. Reason: Traceback (most recent call last):\n  File "a.py", line 1\n    raise\n'
            "stretto.errors.DataError: no column 'x'; did you mean 'y'?\n SQLSTATE: 39000\n\tat org.apache",
            "no column 'x'; did you mean 'y'?",
        ),
        (
            'Traceback (most recent call last):\n  File "a.py"\nValueError: two\nlines\n\n\tat py4j',
            "ValueError: two\nlines",
        ),
        ("", "ValueError"),
    ],
)
def test_why_spark_failed(text: str, why: str) -> None:
    assert reason(ValueError(text)) == why
