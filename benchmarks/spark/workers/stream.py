"""One continuous query over replayed files, or over an endless generated stream, with what Spark reports of each batch."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.spark import counting
from benchmarks.spark.memory import Watch, processor, resident
from benchmarks.workers import core

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def matched(events: Any, job: dict[str, Any]) -> Any:
    """stretto's continuous query."""
    import math

    import stretto.spark

    own = {"language": "afa"} if job.get("automaton") else {"output": "positions"}
    return stretto.spark.match(
        events,
        job["query"],
        time="ts",
        sequence="id",
        disorder=job.get("disorder", "0 seconds"),
        speculation=math.inf if job.get("ahead") else 0,
        buckets=job["buckets"],
        **own,
    )


def patterned(events: Any, job: dict[str, Any]) -> Any:
    """stretto's patterns, which change."""
    import stretto.spark

    reader = events.sparkSession.readStream.schema("id string, query string, since timestamp")
    return stretto.spark.match_patterns(
        events.select(*job["columns"]),
        reader.option("maxFilesPerTrigger", 1).json(job["changes"]),
        by=[job["keys"]],
        time="ts",
        sequence="id",
        disorder="0 seconds",
        output="positions",
        buckets=job["buckets"],
    )


def _bucketed(events: Any, job: dict[str, Any]) -> tuple[Any, bytes]:
    """The columns and rows that stretto's query takes, with the bucket, and their Arrow schema."""
    from pyspark.sql import functions as F

    import stretto
    from stretto.spark.columns import relevant
    from stretto.spark.frames import arrow_fields

    kinds = {name: kind for name, kind in arrow_fields(events).items() if name in job["columns"]}
    schema = pa.schema(list(kinds.items()))
    useful = (
        None if job.get("automaton") or not job["query"] else relevant(stretto.compile(job["query"], schema, time="ts"))
    )
    kept = events if useful is None else events.filter(useful)
    bucket = F.pmod(F.xxhash64(job.get("keys", "account")), F.lit(job["buckets"] or 64).cast("bigint"))
    return kept.select(*kinds, bucket.alias("bucket")), schema.serialize().to_pybytes()


def packed(events: Any, job: dict[str, Any]) -> Any:
    """Events packed by bucket as Arrow bytes before the exchange; the state counts them."""
    from pyspark.sql import functions as F

    from stretto.spark.streaming.packing import PACKED, pack

    rows, schema = _bucketed(events, job)
    wide = rows.mapInArrow(partial(pack, schema=schema), PACKED)
    counted = wide.groupBy("bucket").transformWithState(
        counting.CountPacked(job["state_size"]), "rows bigint", outputMode="append", timeMode="None"
    )
    return counted.observe("count", F.sum("rows").alias("rows"))


def packed_frames(events: Any, job: dict[str, Any]) -> Any:
    """As :func:`packed`, in the pandas form."""
    from pyspark.sql import functions as F

    from stretto.spark.streaming.packing import PACKED, pack

    rows, schema = _bucketed(events, job)
    wide = rows.mapInArrow(partial(pack, schema=schema), PACKED)
    counted = wide.groupBy("bucket").transformWithStateInPandas(
        counting.CountPackedFrames(job["state_size"]), "rows bigint", outputMode="append", timeMode="None"
    )
    return counted.observe("count", F.sum("rows").alias("rows"))


def frames(events: Any, job: dict[str, Any]) -> Any:
    """Events as they are, handed to the buckets' states in pandas frames, which count them."""
    from pyspark.sql import functions as F

    rows, _ = _bucketed(events, job)
    counted = rows.groupBy("bucket").transformWithStateInPandas(
        counting.CountFrames(job["state_size"]), "rows bigint", outputMode="append", timeMode="None"
    )
    return counted.observe("count", F.sum("rows").alias("rows"))


KINDS = {"match": matched, "patterns": patterned, "packed": packed, "packed, pandas": packed_frames, "frames": frames}


def generated(spark: Any, job: dict[str, Any]) -> Any:
    """An endless stream: ``batch_rows`` events a micro-batch, a hundred a second of event time."""
    source = spark.readStream.format("rate-micro-batch")
    rows = source.option("rowsPerBatch", job["batch_rows"]).option("numPartitions", job["cores"]).load()
    return derived(rows.withColumnRenamed("value", "id"), job["keys"])


def derived(rows: Any, keys: int) -> Any:
    """Stock events from their numbers (``id``): each column is a hash of the number."""
    from pyspark.sql import functions as F

    from benchmarks.data import MILLISECONDS_APART, STOCK_NAMES

    def pick(seed: int, count: int) -> Any:
        return F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(count))

    names = F.array(*map(F.lit, STOCK_NAMES))
    return rows.select(
        "id",
        F.when(pick(1, 2) == 0, "BUY").otherwise("SELL").alias("type"),
        names[pick(2, len(STOCK_NAMES)).cast("int")].alias("name"),
        pick(3, keys).alias("account"),
        F.timestamp_millis(F.col("id") * MILLISECONDS_APART).alias("ts"),
        F.element_at(F.array(F.lit("SAME"), F.lit("DOWN"), F.lit("UP")), (pick(4, 3) + 1).cast("int")).alias("move"),
    )


def session(job: dict[str, Any]) -> Any:
    """A session that keeps its state in RocksDB and the progress of all batches."""
    import stretto.spark

    conf = {
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        "spark.sql.shuffle.partitions": str(job["cores"]),
    }
    return stretto.spark.session("benchmarks", cores=job["cores"], driver__memory=job["driver_memory"], **conf)


def describe(progress: Any) -> dict[str, Any]:
    """What matters of a batch's progress."""
    report = json.loads(progress.json)
    found: dict[str, Any] = {
        "rows": report["numInputRows"],
        "seconds": report.get("durationMs", {}).get("triggerExecution", 0) / 1000,
        "metrics": {},
    }
    for values in (report.get("observedMetrics") or {}).values():
        for name, value in values.items():
            if not isinstance(value, list):  # what is told bucket by bucket is no number
                found["metrics"][name] = found["metrics"].get(name, 0) + (value or 0)
    # Beside events a query may read changes of patterns.
    found["rows"] = found["metrics"].get("events", found["rows"])
    for state in report.get("stateOperators", []):
        custom = state.get("customMetrics", {})
        found["state_keys"] = state.get("numRowsTotal", 0)
        found["state_memory"] = state.get("memoryUsedBytes", 0)
        found["state_files"] = custom.get("rocksdbSstFileSize", 0)
        found["commit_seconds"] = state.get("commitTimeMs", 0) / 1000
    return found


def replay(spark: Any, job: dict[str, Any], checkpoint: str) -> list[dict[str, Any]]:
    """Every file once, ``files`` a micro-batch."""
    schema = spark.read.parquet(job["events"]).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", job["files"])
    results = KINDS[job["kind"]](source.parquet(job["events"]), job)
    taken = _processor_times(spark)
    query = _start(results, checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    reports = query.recentProgress
    end = time.monotonic() + 10
    while reports[-1].batchId not in taken and time.monotonic() < end:  # the listener hears of the last ones later
        time.sleep(0.1)
    return [describe(progress) | {"processor": taken.get(progress.batchId)} for progress in reports]


def _processor_times(spark: Any) -> dict[int, float]:
    """The processor time that everything had taken at the end of each batch, from now on."""
    from pyspark.sql.streaming import StreamingQueryListener

    found: dict[int, float] = {}

    class Times(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            found[-1] = processor()

        def onQueryProgress(self, event: Any) -> None:
            found[event.progress.batchId] = processor()

        def onQueryTerminated(self, event: Any) -> None:
            """The last batch has been reported."""

    spark.streams.addListener(Times())
    return found


def soak(spark: Any, job: dict[str, Any], checkpoint: str) -> list[dict[str, Any]]:
    """The generated stream at full speed for ``seconds``, with the memory after each batch."""
    query = _start(matched(generated(spark, job), job), checkpoint).trigger(processingTime="0 seconds").start()
    end = time.monotonic() + job["seconds"]
    batches: dict[int, dict[str, Any]] = {}
    while time.monotonic() < end and query.isActive:
        time.sleep(0.25)
        last = query.lastProgress
        if last is not None and last.batchId not in batches:
            batches[last.batchId] = {"memory": resident()}
    if query.exception() is not None:
        raise query.exception()
    query.stop()
    reports = {progress.batchId: describe(progress) for progress in query.recentProgress}
    return [report | batches.get(number, {}) for number, report in sorted(reports.items())]


def expected(spark: Any, job: dict[str, Any], rows: int) -> int:
    """The matches of the first ``rows`` generated events, less those that end with the last, by the batch call."""
    from pyspark.sql import functions as F

    import stretto.spark

    events = derived(spark.range(rows), job["keys"]).localCheckpoint()
    found = stretto.spark.match(events, job["query"], time="ts", sequence="id", output="positions")
    last = events.agg(F.max("ts")).first()[0]
    return int(found.filter(F.col("end_time") < last).count())


def _start(results: Any, checkpoint: str) -> Any:
    return results.writeStream.format("noop").outputMode("append").option("checkpointLocation", checkpoint)


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Run the query of the job."""
    spark = session(job)
    checkpoint = tempfile.mkdtemp(prefix="stretto-checkpoint-")
    result: dict[str, Any] = {}
    try:
        start = time.perf_counter()
        with Watch() as watch:
            batches = soak(spark, job, checkpoint) if job["kind"] == "soak" else replay(spark, job, checkpoint)
        result = {
            "wall": time.perf_counter() - start,
            "batches": batches,
            "resident_peak": watch.peak,
            "checkpoint_bytes": sum(path.stat().st_size for path in Path(checkpoint).rglob("*") if path.is_file()),
        }
        if job["kind"] == "soak":
            first = max(min(job["check_rows"] // job["batch_rows"], len(batches) - 1), 0)
            result["checked_batches"] = first
            result["expected"] = expected(spark, job, first * job["batch_rows"]) if first else 0
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
        spark.stop()
    return result


if __name__ == "__main__":
    core.main(work, one_core=False)
