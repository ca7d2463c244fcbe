"""Files as events, and matches as files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto.errors import DataError, OptionError

pytestmark = [pytest.mark.spark]

SCHEMA = "type string, ts bigint, price double"


def names(rows: list[Any], *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in rows)


def test_json(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    (tmp_path / "a.json").write_text('{"type":"A","ts":1}\n\n{"type":"B","ts":"x"}\r\n{"type":"B","ts":2}\n{"ts":3}')
    events = files.read(
        spark, tmp_path / "a.json", schema=SCHEMA, time="ts", columns={"source": "file.file_name", "late": "ts > 1"}
    )
    assert names(events.good.collect(), "type", "ts", "source", "late") == [
        ("A", 1, "a.json", False),
        ("B", 2, "a.json", True),
    ]
    bad = events.bad.collect()
    assert names(bad, "raw", "reason") == [
        ('{"ts":3}', "attribute 'type' is missing or NULL"),
        ('{"type":"B","ts":"x"}', "not one JSON object of type string, ts bigint, price double"),
    ]
    assert all(row.source.endswith("a.json") and row.arrived is not None for row in bad)
    assert events.roles == {"type": "type", "time": "ts", "sequence": None}


def test_an_error_shows_file_and_record(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    (tmp_path / "a.jsonl").write_text('{"type":"A","ts":1}\n')
    (tmp_path / "b.jsonl").write_text('{"type":"A","ts":2}\n{"type":"B","ts":"x"%s}\n' % (" " * 1_000))
    events = files.read(spark, tmp_path, format="json", schema=SCHEMA, time="ts", bad_records="error", name="trades")
    with pytest.raises(Exception, match="trades: a record is no event") as caught:
        events.good.collect()
    told = re.search("trades: a record is no event.*", str(caught.value))
    assert told is not None
    found = re.match(
        r"trades: a record is no event \(file:\S+/b\.jsonl, block at 0\): "
        r'not one JSON object of type string, ts bigint, price double: (\{"type":"B","ts":"x" +…)',
        told[0],
    )
    assert found is not None, told[0]
    assert len(found[1]) == 300


@pytest.mark.parametrize("line", ["nonsense", '{"type":"B","t', '{"type":"C","ts":"x","k":"x"}', '{"ts":3}', "[1]"])
def test_an_error_does_not_depend_on_the_query(spark: Any, tmp_path: Path, line: str) -> None:
    """Records that could be in no match, such as those without a type or a key, are no events either."""
    from stretto.connectors import files

    events = f'{{"type":"A","ts":1,"k":"x"}}\n{line}\n{{"type":"B","ts":2,"k":"x"}}\n'
    (tmp_path / "a.jsonl").write_text(events)
    schema = "type string, ts bigint, k string"
    read = files.read(spark, tmp_path, format="json", schema=schema, time="ts", bad_records="error")
    query = "SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 5 [ts]"
    with pytest.raises(Exception, match="a record is no event"):
        stretto.spark.match(read.good, query, **read.roles).collect()


CSV = 'type,ts,price\nA,1,2.5\nA,x,3\nB,2\nC,3,4,5\n"D\nE",4,1\n\nF,,1\n"A""B",5,\nG,7,zz\n'


def test_csv(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    (tmp_path / "a.csv").write_text(CSV)
    events = files.read(spark, tmp_path, format="csv", schema=SCHEMA, time="ts", options={"multiLine": True})
    assert names(events.good.collect(), "ts", "type", "price") == [(1, "A", 2.5), (4, "D\nE", 1.0), (5, 'A"B', None)]
    assert sorted(row.raw.strip() for row in events.bad.collect()) == ["A,x,3", "B,2", "C,3,4,5", "F,,1.0", "G,7,zz"]
    # Which columns are read changes nothing about which records are bad.
    assert events.good.select("ts").count() == 3
    assert events.good.count() == 3
    assert events.bad.count() == 5
    assert events.bad.select("place").count() == 5


def test_a_csv_header_that_is_another(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    (tmp_path / "a.csv").write_text("type,price,ts\nA,1,2\n")
    with pytest.raises(Exception, match="CSV header does not conform to the schema"):
        files.read(spark, tmp_path / "a.csv", schema="type string, ts int, price int", time="ts").good.collect()


def test_parquet_is_filtered_as_it_is_read(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    rows = [("A", 1, 1.0), ("B", None, 2.0), (None, 3, 3.0), ("B", 4, 4.0)]
    spark.createDataFrame(rows, SCHEMA).write.parquet(str(tmp_path / "a.parquet"))
    events = files.read(spark, tmp_path / "a.parquet", time="ts")
    assert names(events.good.collect(), "ts", "type") == [(1, "A"), (4, "B")]
    assert names(events.bad.collect(), "raw", "reason") == [
        ('{"ts":3,"price":3.0}', "attribute 'type' is missing or NULL"),
        ('{"type":"B","price":2.0}', "attribute 'ts' is missing or NULL"),
    ]
    plan = events.good.filter("price > 3").select("ts")._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThan(price,3.0)" in plan, plan


def test_arguments(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    with pytest.raises(OptionError, match="its ending does not tell"):
        files.read(spark, "events", time="ts")
    with pytest.raises(OptionError, match="name the schema of the json files"):
        files.read(spark, "a.jsonl.gz", time="ts")
    with pytest.raises(OptionError, match="name the schema of the parquet files"):
        files.read(spark, "a.parquet", time="ts", streaming=True)
    with pytest.raises(OptionError, match="format='orc': expected one of"):
        files.read(spark, "a", format="orc", time="ts")
    with pytest.raises(OptionError, match="a streaming source reads one path"):
        files.read(spark, ["a.json", "b.json"], schema=SCHEMA, time="ts", streaming=True)
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(DataError, match=r"no column 'tss' \(time\); did you mean 'ts'"):
        files.read(spark, tmp_path / "a.json", schema=SCHEMA, time="tss")
    with pytest.raises(OptionError, match="files=0"):
        files.writer("x", files=0)


def run(df: Any, write: Any, checkpoint: Path) -> Any:
    """Write all that is there now; the query, or its error."""
    query = df.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    started = query.start()
    started.awaitTermination()
    return started


def test_streaming_counts_what_is_bad(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    source = tmp_path / "in"
    source.mkdir()
    (source / "a.json").write_text('{"type":"A","ts":1}\nnonsense\n{"type":"B","ts":2}\n')
    events = files.read(
        spark,
        source,
        format="json",
        schema=SCHEMA,
        time="ts",
        streaming=True,
        options={"maxFilesPerTrigger": 1},
        name="in",
    )
    write = files.writer(tmp_path / "out", "json")
    query = run(events.good, write, tmp_path / "checkpoint")
    assert events.metrics == "records:in"
    counts = [progress.observedMetrics["records:in"] for progress in query.recentProgress if progress.numInputRows]
    assert [(row.records, row.bad) for row in counts] == [(3, 1)]
    run(events.bad, files.writer(tmp_path / "bad"), tmp_path / "checkpoint-bad")
    assert [row.raw for row in spark.read.parquet(str(tmp_path / "bad")).collect()] == ["nonsense"]

    # Another batch, in a directory of its own; a stream that has nothing new writes nothing.
    (source / "b.json").write_text('{"type":"C","ts":3}\n')
    run(events.good, write, tmp_path / "checkpoint")
    run(events.good, write, tmp_path / "checkpoint")
    assert names(spark.read.json(str(tmp_path / "out")).collect(), "ts", "batch") == [(1, 0), (2, 0), (3, 1)]


def test_a_batch_again_replaces_itself(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    write = files.writer(tmp_path, "csv")
    rows = spark.createDataFrame([(1, [("x", 1.5)])], "ts int, found array<struct<name: string, price: double>>")
    for _ in range(2):
        write(rows, 7)
    write(rows.filter("ts > 1"), 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["batch=7"]
    found = spark.read.csv(str(tmp_path), header=True, escape='"').collect()
    assert [tuple(row) for row in found] == [("1", '[{"name":"x","price":1.5}]', 7)]


def test_another_query_does_not_replace_batches(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import files

    source = tmp_path / "in"
    source.mkdir()
    (source / "a.json").write_text('{"type":"A","ts":1}')
    events = files.read(spark, source, format="json", schema=SCHEMA, time="ts", streaming=True)
    write = files.writer(tmp_path / "out")
    run(events.good, write, tmp_path / "one")
    with pytest.raises(Exception, match="holds the batches of another query"):
        run(events.good, write, tmp_path / "two")
    assert spark.read.parquet(str(tmp_path / "out")).count() == 1
