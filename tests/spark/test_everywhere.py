"""What must give the same rows wherever Spark runs: with any version of PySpark, and on workers that share nothing with the driver.

``make test-cluster`` runs this file on ``local-cluster`` (:mod:`tests.spark.cluster`), ``make test-versions`` with each PySpark of
``tests/spark/versions``. Where PySpark has everything and workers are the driver's own, the other files of this folder say more.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest

import stretto
from stretto.dataflow import stream
from stretto.errors import OptionError, SnapshotError
from stretto.spark.compat import to_arrow
from tests.spark import cluster
from tests.spark.streams import add_file, bag, read_stream, run

pytestmark = [pytest.mark.spark, pytest.mark.everywhere]

VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))
STREAMS = pytest.mark.skipif(VERSION < (4, 0), reason="continuous queries need PySpark 4.0")
CLUSTER = pytest.mark.skipif(not cluster.MASTER, reason="on a cluster only: make test-cluster")

QUERIES = {
    "keyed": "SELECT * FROM S WHERE A AS a ; B+ AS b ; C PARTITION BY [k] WITHIN 20 seconds",
    "one task": "SELECT a FROM S WHERE A AS a ; B CONSUME BY ANY",
    "slices": "SELECT a, c FROM S WHERE A AS a ; (B FILTER B[v > 2]) ; C AS c WITHIN 6 seconds",
    "SASE+": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [k] and b[i].v >= b[i-1].v } WITHIN 20",
}
COLUMNS: dict[str, Any] = {"time": "t", "sequence": "n", "time_unit": "s"}


def events(seed: int, rows: int = 600) -> pa.Table:
    """Events in any order that is wrong by less than 5 s, and one at the end that moves the watermark past them all."""
    rng = random.Random(seed)
    found = [
        {
            "type": rng.choice("ABCD"),
            "t": i // 4 + rng.randrange(4),
            "n": i,
            "k": rng.choice([None, *"abcdefgh", "ü"]),
            "v": rng.choice([None, *range(6)]),
        }
        for i in range(rows)
    ]
    return pa.Table.from_pylist([*found, {"type": "Z", "t": 9_999, "n": rows, "k": "z", "v": 0}])


@pytest.fixture(scope="module")
def far(spark: Any) -> Any:
    """The session; on a cluster its workers have nothing but what is sent to them."""
    cluster.send(spark)
    return spark


@pytest.mark.parametrize("name", QUERIES)
def test_batch(far: Any, name: str) -> None:
    table = events(1)
    df = far.createDataFrame(table.to_pandas(), "type string, t bigint, n bigint, k string, v double").repartition(3)
    df = df.selectExpr("type", "t", "n", "k", "int(v) v")
    expected = stretto.match(QUERIES[name], to_arrow(df), **COLUMNS)
    found = stretto.spark.match(df, QUERIES[name], **COLUMNS, slices=3 if name == "slices" else None)
    assert expected.num_rows > 0
    assert bag(to_arrow(found)) == bag(expected)


def test_patterns_and_a_dataflow(far: Any) -> None:
    rows = [("A", 1, "x", 1), ("B", 2, "x", 2), ("A", 3, "y", 3), ("C", 4, "y", 4)]
    df = far.createDataFrame(rows, "type string, t int, k string, v int")
    patterns = {name: f"SELECT * FROM S WHERE A ; {name} PARTITION BY [k]" for name in "BC"}
    found = stretto.spark.match_patterns(df, patterns, by=["k"], time="t")
    assert sorted((row.pattern, row.k) for row in found.collect()) == [("B", "x"), ("C", "y")]
    counted = stream("S", {"v": int}, insert_only=True).aggregate(n="count()", most="max(v)")
    found = stretto.spark.dataflow(df.drop("type"), counted, by="k", vs="t")
    last = {row.k: (row.n, row.most) for row in found.where("ve IS NULL").collect()}
    assert last == {"x": (2, 2), "y": (2, 4)}


@pytest.mark.skipif(VERSION < (4, 1), reason="table functions need PySpark 4.1")
def test_sql(far: Any) -> None:
    far.createDataFrame([("A", 1), ("B", 2)], "type string, t int").createOrReplaceTempView("events")
    stretto.spark.register(far)
    text = "SELECT * FROM stretto_query(TABLE(events), 'SELECT * FROM S WHERE A ; B', time => 't')"
    assert [(row.start_time, row.end_time) for row in far.sql(text).collect()] == [(1, 2)]


@STREAMS
@pytest.mark.parametrize("name", [name for name in QUERIES if name != "one task"])
def test_streams_that_start_again(far: Any, tmp_path: Path, name: str) -> None:
    table = events(2)
    for number, at in enumerate(range(0, 601, 300)):
        add_file(tmp_path / "in", table.slice(at, 300), number)
        events_now = read_stream(far, tmp_path / "in")
        found = stretto.spark.match(events_now, QUERIES[name], **COLUMNS, disorder="5 seconds", buckets=3)
        run(found, tmp_path / "checkpoint", tmp_path / "out")
    expected = stretto.match(QUERIES[name], table, **COLUMNS)
    assert bag(to_arrow(far.read.parquet(str(tmp_path / "out")))) == bag(expected)
    other = QUERIES["SASE+" if name == "keyed" else "keyed"]
    found = stretto.spark.match(events_now, other, **COLUMNS, disorder="5 seconds", buckets=3)
    with pytest.raises(SnapshotError, match="the checkpoint holds the state of another query"):
        run(found, tmp_path / "checkpoint", tmp_path / "out")


@STREAMS
def test_a_stream_of_a_dataflow(far: Any, tmp_path: Path) -> None:
    add_file(tmp_path / "in", pa.table({"t": [1, 2, 3, 99], "k": ["x", "y", "x", "z"]}), 0)
    counted = stream("S", {}, insert_only=True).window(10).aggregate(n="count()")
    rows = read_stream(far, tmp_path / "in")
    found = stretto.spark.dataflow(rows, counted, by="k", vs="t", time_unit="s", disorder="1 second", buckets=2)
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    assert far.read.parquet(str(tmp_path / "out")).where("k = 'x' AND n = 2").count() == 1


@pytest.mark.skipif(VERSION >= (4, 0), reason="this PySpark has all of it")
def test_what_is_missing_is_said(far: Any, tmp_path: Path) -> None:
    rows = far.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type")
    with pytest.raises(OptionError, match=r"a continuous query needs PySpark 4\.0 or newer, and 3\.5"):
        stretto.spark.match(rows, "SELECT * FROM S WHERE A", time="ts", disorder="1 second")
    with pytest.raises(OptionError, match=r"a query as a table function of SQL needs PySpark 4\.1"):
        stretto.spark.register(far)


def seen_by_workers(far: Any) -> list[Any]:
    """From where workers import stretto, the files of code in their caches, and those that they were sent, each once a task."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pathlib import Path

        import stretto.spark
        from stretto import _jit
        from stretto.spark.compat import worker_files
        from stretto.spark.kernels import NAME, receive

        def code(folder: Path) -> list[str]:
            return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in (".nbc", ".lock")]

        for _ in batches:
            pass
        receive()
        cache, unpacked = Path(_jit.CACHE_DIRECTORY), worker_files()
        assert unpacked is not None
        sent = [file for archive in unpacked.glob(f"{NAME}-*") for file in code(archive / cache.name)]
        kind = pa.list_(pa.string())
        columns = {"package": [stretto.__file__], "cache": [str(cache.resolve())]}
        yield pa.RecordBatch.from_pydict(
            columns | {"files": pa.array([code(cache)], kind), "sent": pa.array([sent], kind)}
        )

    kinds = "package string, cache string, files array<string>, sent array<string>"
    found = far.range(8, numPartitions=8).mapInArrow(look, kinds)
    return list(found.collect())


@CLUSTER
def test_workers_have_only_what_is_sent(far: Any) -> None:
    from stretto import _jit

    df = far.createDataFrame([("A", 1)], "type string, t int")
    assert stretto.spark.match(df, "SELECT * FROM S WHERE A", time="t").count() == 1  # which sends the kernels
    seen = seen_by_workers(far)
    assert all(f"{cluster.ARCHIVE}/stretto/__init__.py" in row.package for row in seen)
    assert len({row.cache for row in seen}) > 1
    assert all(Path(row.cache) != Path(_jit.CACHE_DIRECTORY).resolve() for row in seen)


@CLUSTER
@pytest.mark.skipif(not cluster.COMPILED, reason="kernels run as Python")
def test_workers_compile_nothing(far: Any) -> None:
    """They have the code that was sent and no other, and none has looked for somebody who compiles: that leaves a lock."""
    from stretto import _jit

    df = far.createDataFrame(events(5).to_pandas(), "type string, t bigint, n bigint, k string, v double").repartition(
        4
    )
    for query in (
        *QUERIES.values(),
        "SELECT * FROM S WHERE A ; B+ GAP 5 [t] ; NOT C PARTITION BY [k] WITHIN 10 [t]",
        "SELECT COUNT(*), SUM(B[v]) FROM S WHERE A ; B+ PARTITION BY [k] WITHIN 5 [t] EVERY 5 [t]",
        "SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 5 [t] ORDER BY SUM(B[v]) LIMIT 1",
    ):
        stretto.spark.match(df, query, **COLUMNS).count()
    sequence = "sequence by k with maxspan=5s [A where true] [B where v > 1]"
    stretto.spark.match(df, sequence, language="eql", **COLUMNS).count()
    patterns = {
        "above": "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.v > 2 * a.v + 1 } WITHIN 5",
        "more": QUERIES["SASE+"],
    }
    stretto.spark.match_patterns(df, patterns, time="t", time_unit="s").count()
    afa = stretto.AFA({"type": "string", "t": "int64", "v": "double"}, register={"x": "double"}, window=5)
    afa.arc("q0", "q1", when="e.type = 'A' AND e.v IS NOT NULL", then="x = 3 * e.v").arc(
        "q1", "q2", when="e.v > r.x"
    ).final("q2")
    stretto.spark.match(df, afa, time="t").count()
    doubled = stream("S", {"v": float}, insert_only=True).where("v * 3 > 1.5")
    stretto.spark.dataflow(df.select("t", "v").dropna(), doubled, vs="t").count()
    for row in seen_by_workers(far):
        conditions = {file for file in row.sent if file.startswith(_jit.CONDITIONS)}
        # Of a query, which is a pattern, too; of another pattern, an automaton, and a dataflow.
        assert len(conditions) == 4
        assert len(row.sent) - len(conditions) > 80
        assert sorted(row.files) == sorted(row.sent), row.cache


@CLUSTER
def test_a_worker_dies_in_a_batch(far: Any, tmp_path: Path) -> None:
    rows = 1_200_000
    df = far.range(rows, numPartitions=8).selectExpr(
        "id % 5000 AS k", "id AS t", "if((id div 5000) % 2 = 0, 'A', 'B') AS type"
    )
    found = stretto.spark.match(df, "SELECT * FROM S WHERE A : B PARTITION BY [k]", time="t", partitions=12)
    job = threading.Thread(target=found.write.parquet, args=(str(tmp_path / "out"),))
    job.start()
    tracker = far.sparkContext.statusTracker()
    infos: list[Any] = []
    while job.is_alive() and not any(0 < one.numCompletedTasks < one.numTasks == 12 for one in infos):
        infos = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
        time.sleep(0.02)
    assert job.is_alive()
    cluster.kill_executor(far, 0)
    job.join(600)
    written = far.read.parquet(str(tmp_path / "out"))
    assert written.count() == rows // 2
    assert written.distinct().count() == rows // 2


@CLUSTER
@pytest.mark.parametrize("name", ["keyed", "SASE+"])
def test_workers_die_in_a_stream(far: Any, tmp_path: Path, name: str) -> None:
    table = events(3, 2_000)
    for number, at in enumerate(range(0, 2_001, 250)):
        add_file(tmp_path / "in", table.slice(at, 250), number)
    found = stretto.spark.match(
        read_stream(far, tmp_path / "in"), QUERIES[name], **COLUMNS, disorder="5 seconds", buckets=6
    )
    query = (
        found.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    rng, killed = random.Random(4), 0
    for batch in (1, 4):
        while query.isActive and (query.lastProgress is None or query.lastProgress["batchId"] < batch):
            time.sleep(0.02)
        time.sleep(rng.random() / 2)
        if query.isActive:
            cluster.kill_executor(far, killed)
            killed += 1
    assert query.awaitTermination(600)
    assert killed == 2
    assert bag(to_arrow(far.read.parquet(str(tmp_path / "out")))) == bag(stretto.match(QUERIES[name], table, **COLUMNS))
