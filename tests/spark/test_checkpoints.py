"""A checkpoint belongs to the query that has made it: another one is refused when it starts, and consumes nothing in any case."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import stretto
from stretto.dataflow import stream
from stretto.errors import EngineError, SnapshotError
from stretto.spark import starting
from tests.spark.streams import add_file, read_stream, run

pytestmark = [pytest.mark.spark]

OPTIONS: dict[str, Any] = {"time": "t", "time_unit": "s", "disorder": "0 seconds", "buckets": 4}
PAIRS = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 1000 seconds"
OTHERS = PAIRS.replace("A AS", "C AS").replace("B AS", "D AS")


def add(folder: Path, number: int, *events: tuple[str, int, str]) -> None:
    add_file(folder, pa.table(dict(zip(("type", "t", "k"), zip(*events, strict=True), strict=True))), number)


def planned(checkpoint: Path) -> list[str]:
    """The micro-batches that were begun, and those that were committed."""
    return sorted(
        f"{part}/{file.name}" for part in ("offsets", "commits") for file in (checkpoint / part).glob("[0-9]*")
    )


class Test:
    @pytest.fixture
    def events(self, spark: Any, tmp_path: Path) -> Callable[[], Any]:
        """The stream, of which one file is there."""
        add(tmp_path / "in", 0, ("A", 10, "x"), ("B", 11, "x"))
        return lambda: read_stream(spark, tmp_path / "in")

    def test_an_event_between_two_starts(self, spark: Any, tmp_path: Path, events: Callable[[], Any]) -> None:
        """The other query has no use for the event; the right one must have it."""
        checkpoint = tmp_path / "checkpoint"
        run(stretto.spark.match(events(), PAIRS, **OPTIONS), checkpoint, tmp_path / "out")
        before = planned(checkpoint)
        others = stretto.spark.match(events(), OTHERS, **OPTIONS)
        told = (
            "another query, and nothing has been consumed\n  checkpoint: .*A AS a.*\n  query:      .*C AS a.*\n"
            "  changed:    its pattern was .*\nhint: "
        )
        with pytest.raises(SnapshotError, match=told):  # without new events
            run(others, checkpoint, tmp_path / "out")
        add(tmp_path / "in", 1, ("A", 20, "k"))
        for found in (others, others.select("k", "end_time").where("k > ''")):
            writer = found.writeStream.foreachBatch(lambda rows, number: rows.count()).trigger(availableNow=True)
            with pytest.raises(SnapshotError, match="another query"):
                writer.start(checkpointLocation=str(checkpoint))
            with pytest.raises(SnapshotError, match="another query"):
                writer.options(CheckpointLocation=str(checkpoint)).toTable("nowhere")
        assert planned(checkpoint) == before
        add(tmp_path / "in", 2, ("B", 30, "k"), ("Z", 5000, "k"))
        run(stretto.spark.match(events(), PAIRS, **OPTIONS), checkpoint, tmp_path / "out")
        rows = spark.read.parquet(str(tmp_path / "out")).collect()
        assert sorted((row.start_time, row.end_time) for row in rows) == [(10, 11), (20, 30)]

    def test_no_micro_batch_of_another_query_is_committed(
        self, spark: Any, tmp_path: Path, events: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is not started from Python is not compared at its start."""
        from pyspark.errors import StreamingQueryException

        monkeypatch.setattr(starting, "compare", lambda *_: None)
        checkpoint = tmp_path / "checkpoint"
        run(stretto.spark.match(events(), PAIRS, **OPTIONS), checkpoint, tmp_path / "out")
        committed = {one for one in planned(checkpoint) if one.startswith("commits")}
        add(tmp_path / "in", 1, ("A", 20, "k"))  # of no use to the other query
        for _ in range(2):
            with pytest.raises(StreamingQueryException, match="another query"):
                run(stretto.spark.match(events(), OTHERS, **OPTIONS), checkpoint, tmp_path / "out")
            assert {one for one in planned(checkpoint) if one.startswith("commits")} == committed
        add(tmp_path / "in", 2, ("B", 30, "k"), ("Z", 5000, "k"))
        run(stretto.spark.match(events(), PAIRS, **OPTIONS), checkpoint, tmp_path / "out")
        rows = spark.read.parquet(str(tmp_path / "out")).collect()
        assert sorted((row.start_time, row.end_time) for row in rows) == [(10, 11), (20, 30)]

    def test_every_kind_of_call(self, spark: Any, tmp_path: Path, events: Callable[[], Any]) -> None:
        source = stream("S", {"type": str}, insert_only=True)
        flow = {"by": "k", "vs": "t", "time_unit": "s", "disorder": "0 seconds", "buckets": 4}
        kinds: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
            "one ordered state": (
                lambda: stretto.spark.match(events(), "SELECT * FROM S WHERE A ; B WITHIN 9 seconds", **OPTIONS),
                lambda: stretto.spark.match(events(), "SELECT * FROM S WHERE A ; B WITHIN 8 seconds", **OPTIONS),
                "another query",
            ),
            "options": (
                lambda: stretto.spark.match(events(), PAIRS, **OPTIONS),
                lambda: stretto.spark.match(events(), PAIRS, **(OPTIONS | {"buckets": 5})),
                "written with buckets=4, and the query now has buckets=5",
            ),
            "columns": (
                lambda: stretto.spark.match(events(), PAIRS, **OPTIONS),
                lambda: stretto.spark.match(events().selectExpr("type", "int(t) AS t", "k"), PAIRS, **OPTIONS),
                "other columns: 't' was int64, is int32",
            ),
            "patterns": (
                lambda: stretto.spark.match_patterns(events(), {"p": PAIRS}, by=["k"], **OPTIONS),
                lambda: stretto.spark.match_patterns(events(), {"p": OTHERS}, by=["k"], **OPTIONS),
                "another query",
            ),
            "dataflow": (
                lambda: stretto.spark.dataflow(events(), source.window(10).aggregate("type", n="count()"), **flow),
                lambda: stretto.spark.dataflow(events(), source.window(11).aggregate("type", n="count()"), **flow),
                "another query",
            ),
        }
        for name, (made, other, message) in kinds.items():
            checkpoint = tmp_path / name
            run(made(), checkpoint, tmp_path / f"{name} out")
            before = planned(checkpoint)
            assert before, name
            with pytest.raises(SnapshotError, match=message):
                run(other(), checkpoint, tmp_path / f"{name} out")
            assert planned(checkpoint) == before, name

    def test_a_checkpoint_by_the_name_of_the_query(self, spark: Any, tmp_path: Path, events: Callable[[], Any]) -> None:
        spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "all"))
        try:
            for text, fits in ((PAIRS, True), (OTHERS, False)):
                found = stretto.spark.match(events(), text, **OPTIONS)
                writer = found.writeStream.format("noop").trigger(availableNow=True).queryName("pairs")
                if fits:
                    writer.start().awaitTermination(300)
                    continue
                with pytest.raises(SnapshotError, match="another query"):
                    writer.start()
                with pytest.raises(SnapshotError, match="another query"):
                    found.writeStream.format("noop").trigger(availableNow=True).start(queryName="pairs")
        finally:
            spark.conf.unset("spark.sql.streaming.checkpointLocation")
        assert sorted(part.name for part in (tmp_path / "all").iterdir()) == ["pairs"]


def test_a_pipeline_whose_constant_has_changed(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``stretto run --once`` must not end well where nothing is new."""
    from stretto.pipelines import load
    from stretto.pipelines import run as run_pipeline

    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/1.json").write_text('{"type":"A","t":1,"k":"x"}\n{"type":"B","t":2,"k":"x"}\n')
    text = f'''
[pipeline]
name = "pairs"
mode = "streaming"
checkpoint = "state"

[source]
kind = "json"
path = "in"
columns = {{ type = "string", t = "bigint", k = "string" }}

[events]
time = "t"
time_unit = "s"
disorder = "0 seconds"

[[query]]
name = "pairs"
text = "{PAIRS}"

[[sink]]
name = "out"
kind = "parquet"
path = "out"
'''
    for constant, fits in (("1000", True), ("999", False), ("1000", True)):
        Path("pipeline.toml").write_text(text.replace("1000", constant))
        if fits:
            run_pipeline(load("pipeline.toml"), once=True)
        else:
            with pytest.raises(EngineError, match="pairs: the checkpoint holds the state of another query"):
                run_pipeline(load("pipeline.toml"), once=True)
    assert not spark.streams.active


def test_a_checkpoint_of_before_the_journal(spark: Any, tmp_path: Path) -> None:
    """It was left by PySpark 4.3 and states of version 1, after the events that are in the comment."""
    pyspark = pytest.importorskip("pyspark")
    if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3):
        pytest.skip("an older PySpark does not read it")
    with tarfile.open(Path(__file__).with_name("kept") / "v1.tar.gz") as kept:
        kept.extractall(tmp_path, filter="data")
    schemas = tmp_path / "checkpoint" / "state" / "0" / "_metadata" / "v2" / "0"  # it names files by where they were
    schemas.write_text(schemas.read_text().replace("/tmp/stretto-kept", str(tmp_path)))
    # ("A", 10, "x"), ("B", 11, "x"), ("A", 12, "y"), ("A", 13, "z")
    add(tmp_path / "in", 1, ("B", 20, "y"), ("A", 21, "x"), ("A", 21, "w"))
    add(tmp_path / "in", 2, ("B", 30, "x"), ("B", 31, "z"), ("B", 32, "w"), ("Z", 5000, "x"))
    found = stretto.spark.match(read_stream(spark, tmp_path / "in"), PAIRS, **OPTIONS)
    query = run(found, tmp_path / "checkpoint", tmp_path / "out")
    assert sum(stretto.spark.metrics(progress)["state_written"] for progress in query.recentProgress) > 0
    rows = [row for file in (tmp_path / "out").glob("*.parquet") for row in parquet.read_table(file).to_pylist()]
    times = sorted((row["k"], row["start_time"], row["end_time"]) for row in rows)
    assert times == [("w", 21, 32), ("x", 10, 30), ("x", 21, 30), ("y", 12, 20), ("z", 13, 31)]
    shutil.rmtree(tmp_path / "checkpoint" / "stretto")  # then the state says whose it is
    with pytest.raises(SnapshotError, match="another query"):
        run(
            stretto.spark.match(read_stream(spark, tmp_path / "in"), OTHERS, **OPTIONS),
            tmp_path / "checkpoint",
            tmp_path,
        )


def test_files_that_are_not_there_are_not_read(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark logs a trace of what it does not find."""
    monkeypatch.setattr(type(spark), "read", property(lambda _: pytest.fail("Spark reads what is not there")))
    assert starting._lines(spark, f"{tmp_path}/none/commits") == []
    monkeypatch.undo()
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}\n")
    assert starting._lines(spark, f"{tmp_path}/commits") == ["v1", "{}"]
