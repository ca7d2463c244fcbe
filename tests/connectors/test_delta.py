"""Delta tables: written exactly once whatever fails, read as they are and as they grow."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stretto.errors import DataError, OptionError
from tests.connectors.test_files import names, run

pytestmark = [pytest.mark.spark, pytest.mark.delta]

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'stretto[delta]'")

SCHEMA = "type string, ts bigint, price double"


def rows_of(path: Path) -> list[int]:
    return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table()["ts"].to_pylist())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.json").write_text(
            "".join(f'{{"type":"A","ts":{10 * number + i},"price":0.5}}\n' for i in range(3))
        )
    return folder


def stream(spark: Any, source: Path) -> Any:
    """A batch for each file."""
    from stretto.connectors import files

    return files.read(
        spark, source, format="json", schema=SCHEMA, time="ts", streaming=True, options={"maxFilesPerTrigger": 1}
    ).good


ALL = [10 * number + i for number in range(4) for i in range(3)]


def test_all_types(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import delta

    df = spark.sql(
        """SELECT 1 AS ts, 'a' AS s, 1.5D AS d, DECIMAL('1.25') AS m, DATE'2024-01-02' AS day, X'00ff' AS b, true AS flag,
        TIMESTAMP'2024-01-02 03:04:05.000006' AS at, TIMESTAMP_NTZ'2024-01-02 03:04:05' AS wall,
        array(named_struct('x', 1, 'at', TIMESTAMP'2024-01-02 03:04:05')) AS found, map('k', 1L) AS m2,
        CAST(NULL AS int) AS nothing"""
    )
    delta.writer(tmp_path / "t", "types")(df, 0)
    again = delta.read(spark, tmp_path / "t", time="ts", type=None).good
    assert again.schema.simpleString() == df.schema.simpleString()
    assert again.collect() == df.collect()


def test_a_batch_is_written_once(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import delta

    write = delta.writer(tmp_path / "t", "app", files=2)
    rows = spark.range(10).selectExpr("id AS ts")
    for batch in (0, 0, 1, 1, 0):
        write(rows.selectExpr(f"ts + {100 * batch} AS ts"), batch)
    write(rows.filter("ts > 100"), 2)
    assert rows_of(tmp_path / "t") == [*range(10), *range(100, 110)]
    table = deltalake.DeltaTable(str(tmp_path / "t"))
    assert (table.version(), table.transaction_version("app")) == (2, 1)
    assert table.count() == 20
    # Another query has batches of its own.
    delta.writer(tmp_path / "t", "other")(rows.selectExpr("ts + 1000 AS ts"), 0)
    assert len(rows_of(tmp_path / "t")) == 30


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_the_commit(
    spark: Any, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    from stretto.connectors import delta

    commit = deltalake.DeltaTable.create_write_transaction
    calls = []

    def failing(self: Any, *arguments: Any, **named: Any) -> None:
        calls.append(self)
        if len(calls) == 2 and when == "before":
            raise RuntimeError("injected")
        commit(self, *arguments, **named)
        if len(calls) == 2:
            raise RuntimeError("injected")

    write = delta.writer(tmp_path / "t", "app")
    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", failing)
    with pytest.raises(Exception, match="injected"):
        run(stream(spark, source), write, tmp_path / "checkpoint")
    assert len(rows_of(tmp_path / "t")) == (3 if when == "before" else 6)
    run(stream(spark, source), write, tmp_path / "checkpoint")
    assert rows_of(tmp_path / "t") == ALL


def test_several_sinks_that_fail_in_turn(spark: Any, tmp_path: Path, source: Path) -> None:
    """Each of the four batches fails in another sink, before or after it wrote: nothing is lost or doubled anywhere."""
    from stretto import connectors

    places = [(0, "before"), (1, "after"), (2, "before"), (0, "after")]
    failed: set[int] = set()

    def flaky(write: connectors.Writer, number: int) -> connectors.Writer:
        def again(df: Any, batch_id: int) -> None:
            sink, when = places[batch_id]
            fails = sink == number and batch_id not in failed
            if fails:
                failed.add(batch_id)
            if not fails or when == "after":
                write(df, batch_id)
            if fails:
                raise RuntimeError("injected")

        return again

    sinks = [
        connectors.files.writer(tmp_path / "parquet"),
        connectors.delta.writer(tmp_path / "a", "app"),
        connectors.delta.writer(tmp_path / "b", "app"),
    ]
    write = connectors.together(*[flaky(sink, number) for number, sink in enumerate(sinks)])
    for _ in places:
        with pytest.raises(Exception, match="injected"):
            run(stream(spark, source), write, tmp_path / "checkpoint")
    run(stream(spark, source), write, tmp_path / "checkpoint")
    assert names(spark.read.parquet(str(tmp_path / "parquet")).collect(), "ts") == [(ts,) for ts in ALL]
    assert rows_of(tmp_path / "a") == rows_of(tmp_path / "b") == ALL


def test_another_checkpoint_needs_another_app_id(spark: Any, tmp_path: Path, source: Path) -> None:
    from stretto.connectors import delta

    run(stream(spark, source), delta.writer(tmp_path / "t", "app"), tmp_path / "one")
    with pytest.raises(Exception, match="batches up to 3 of another query with app_id='app'"):
        run(stream(spark, source), delta.writer(tmp_path / "t", "app"), tmp_path / "two")
    assert rows_of(tmp_path / "t") == ALL


def test_a_table_that_does_not_fit(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import delta

    write = delta.writer(tmp_path / "t", "app")
    write(spark.sql("SELECT 1L AS ts, 1.5D AS price"), 0)
    with pytest.raises(DataError, match="the table has no column 'prize'; did you mean 'price'"):
        write(spark.sql("SELECT 1L AS ts, 1.5D AS prize"), 1)
    with pytest.raises(DataError, match="column 'ts' is int32, and in the table it is int64"):
        write(spark.sql("SELECT 1 AS ts, 1.5D AS price"), 1)
    with pytest.raises(DataError, match="has a column 'price', and the matches have not"):
        write(spark.sql("SELECT 1L AS ts"), 1)
    deltalake.write_deltalake(str(tmp_path / "p"), pa.table({"ts": [1], "day": ["x"]}), partition_by=["day"])
    with pytest.raises(OptionError, match="is partitioned by day"):
        delta.writer(tmp_path / "p", "app")(spark.sql("SELECT 1L AS ts, 'x' AS day"), 0)
    with pytest.raises(DataError, match="is not a Delta table"):
        delta.read(spark, tmp_path / "none", time="ts")
    with pytest.raises(OptionError, match="app_id"):
        delta.writer(tmp_path / "t", "")


def test_partitions_and_versions(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import delta

    path = str(tmp_path / "t")
    first = {"ts": [1, 2, 3, None], "day": ["x y/z", None, "ü", "q"], "type": ["A", "A", "B", "B"]}
    deltalake.write_deltalake(path, pa.table(first), partition_by=["day"])
    deltalake.write_deltalake(path, pa.table({"ts": [4], "day": ["q"], "type": ["C"]}), mode="append")
    events = delta.read(spark, path, time="ts", columns={"place": "file.file_path"})
    expected = [("A", 1, "x y/z"), ("A", 2, None), ("B", 3, "ü"), ("C", 4, "q")]
    assert sorted((row.type, row.ts, row.day) for row in events.good.collect()) == expected
    assert [row.raw for row in events.bad.collect()] == ['{"day":"q","type":"B"}']
    assert delta.read(spark, path, time="ts", version=0).good.count() == 3
    deltalake.DeltaTable(path).delete()
    assert delta.read(spark, path, time="ts").good.count() == 0


def test_a_table_as_a_stream(spark: Any, tmp_path: Path) -> None:
    from stretto.connectors import delta, files

    path = str(tmp_path / "t")

    def append(*times: int | None) -> None:
        at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        table = pa.table({"type": ["A"] * len(times), "ts": pa.array(times, pa.int64()), "day": ["ü/ y"] * len(times)})
        deltalake.write_deltalake(
            path, table.append_column("at", pa.array([at] * len(times))), mode="append", partition_by=["day"]
        )

    def seen() -> list[int]:
        write = files.writer(tmp_path / "out")
        query = run(delta.read(spark, path, time="ts", streaming=True).good, write, tmp_path / "checkpoint")
        counts.extend(
            (row.records, row.bad)
            for row in (progress.observedMetrics.get(f"records:{path}") for progress in query.recentProgress)
            if row is not None and row.records
        )
        found = spark.read.parquet(str(tmp_path / "out"))
        assert {(row.day, row["at"].year) for row in found.collect()} == {("ü/ y", 2024)}
        return sorted(row.ts for row in found.collect())

    counts: list[tuple[int, int]] = []
    append(1, 2)
    append(3)
    assert seen() == [1, 2, 3]
    append(4, None)
    # Rows in other files are no new rows.
    deltalake.DeltaTable(path).optimize.compact()
    append(5)
    assert seen() == [1, 2, 3, 4, 5]
    assert counts == [(3, 0), (3, 1)]
    deltalake.DeltaTable(path).delete("ts = 1")
    with pytest.raises(Exception, match="removes or changes rows"):
        seen()
