"""Slices that read their own part of the files: the same matches as one pass, without a shuffle, where files lie along the time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.spark.batch import survey
from stretto.spark.batch.slices import Pieces, Slices
from tests.spark.test_batch import bag, found_by_spark
from tests.spark.test_slices import QUERIES, events

#: How Spark writes timestamps to Parquet; its default, INT96, has no extremes.
TIMES = "spark.sql.parquet.outputTimestampType"
MICROS = "TIMESTAMP_MICROS"
QUERY = "SELECT * FROM S WHERE A ; B ; C WITHIN 4 seconds"


def written(spark: Any, table: pa.Table, folder: Path, files: int, form: str = "parquet", times: str = MICROS) -> Any:
    """Events in files of about as many rows each, in the order of the table."""
    step = -(-table.num_rows // files)
    before = spark.conf.get(TIMES)
    spark.conf.set(TIMES, times)
    try:
        spark.createDataFrame(table).coalesce(1).write.option("maxRecordsPerFile", step).format(form).save(str(folder))
    finally:
        spark.conf.set(TIMES, before)
    return spark.read.format(form).load(str(folder))


def test_how_much_slices_read() -> None:
    slices = Slices((100, 200), (90, 190), (10, 10, 10), (0, 1, 1))
    along = Pieces(np.array([0, 100, 200]), np.array([99, 199, 299]), np.array([10, 10, 10]))
    assert slices.reading(along) == pytest.approx(5 / 3)  # the second and third slice also read what is before them
    apart = Pieces(np.array([0, 0, 0]), np.array([299, 299, 299]), np.array([10, 10, 10]))
    assert slices.reading(apart) == 3


@pytest.mark.spark
class TestOnSpark:
    @pytest.mark.parametrize(
        ("name", "form"), [("kleene", "parquet"), ("kleene", "orc"), ("counted", "parquet"), ("measured", "parquet")]
    )
    def test_same_matches(self, spark: Any, tmp_path: Path, name: str, form: str) -> None:
        seed = random.randrange(1 << 30)
        print(f"seed {seed}")
        table = events(seed, 90)
        df = written(spark, table, tmp_path / "events", files=9, form=form)
        expected = stretto.match(QUERIES[name], table, time="ts", sequence="seq")
        options: dict[str, Any] = {"time": "ts", "sequence": "seq", "slices": 3}
        assert bag(found_by_spark(df, QUERIES[name], **options)) == bag(expected)

    def test_no_shuffle_and_a_task_a_slice(self, spark: Any, tmp_path: Path) -> None:
        # Not with any seed: where slices begin near the ends of files, too much would be read twice, and they are shuffled.
        df = written(spark, events(3, 90), tmp_path / "events", files=9)
        options: dict[str, Any] = {"time": "ts", "sequence": "seq", "slices": 3}
        assert "each reads its own part of the files" in stretto.spark.explain(df, QUERIES["kleene"], **options)
        matches = stretto.spark.match(df, QUERY, time="ts", sequence="seq", slices=3)
        assert "Exchange" not in str(matches._jdf.queryExecution().executedPlan())
        assert matches.rdd.getNumPartitions() == 3

    def test_files_that_do_not_lie_along_the_time_are_shuffled(self, spark: Any, tmp_path: Path) -> None:
        table = events(5, 90)
        mixed = table.take(np.random.default_rng(5).permutation(90))
        df = written(spark, mixed, tmp_path / "events", files=9)
        options: dict[str, Any] = {"time": "ts", "sequence": "seq", "slices": 3}
        assert "shuffled by slice" in stretto.spark.explain(df, QUERY, **options)
        expected = stretto.match(QUERY, table, time="ts", sequence="seq")
        assert bag(found_by_spark(df, QUERY, **options)) == bag(expected)

    def test_times_without_extremes_are_seen(self, spark: Any, tmp_path: Path) -> None:
        df = written(spark, events(5, 90), tmp_path / "events", files=9, times="INT96")
        assert survey.can_skip(df, "ts")
        text = stretto.spark.explain(df, QUERY, time="ts", sequence="seq", slices=3)
        assert "shuffled by slice" in text

    def test_what_can_be_skipped(self, spark: Any, tmp_path: Path) -> None:
        df = written(spark, events(5, 20), tmp_path / "events", files=2)
        assert survey.can_skip(df, "ts")
        assert survey.can_skip(df.filter("x > 2").withColumn("more", df["x"] + 1), "ts")
        assert not survey.can_skip(df.withColumn("ts", df["ts"] + np.timedelta64(1, "s").item()), "ts")
        assert not survey.can_skip(df.join(df.select("key").distinct(), "key"), "ts")
        assert not survey.can_skip(df.limit(5), "ts")
        assert not survey.can_skip(spark.createDataFrame(events(5, 20)), "ts")
        df.write.json(str(tmp_path / "json"))
        assert not survey.can_skip(spark.read.schema(df.schema).json(str(tmp_path / "json")), "ts")

    def test_a_time_that_is_null_is_not_lost(self, spark: Any, tmp_path: Path) -> None:
        table = pa.table({"type": ["A"] * 8, "t": pa.array([*range(7), None], pa.int64())})
        df = written(spark, table, tmp_path / "events", files=4)
        with pytest.raises(Exception, match=r"'t' \(time\) is NULL in 1 or more rows"):
            stretto.spark.match(df, "SELECT * FROM S WHERE A ; A WITHIN 2 [t]", time="t", slices=2).count()

    def test_awkward_names(self, spark: Any, tmp_path: Path) -> None:
        table = pa.table({"my type": list("AB" * 40), "the time": pa.array(range(80), pa.int64())})
        df = written(spark, table, tmp_path / "events", files=8)
        query = "SELECT * FROM S WHERE A ; B WITHIN 2 [`the time`]"
        expected = stretto.match(query, table, type="my type", time="the time")
        options: dict[str, Any] = {"type": "my type", "time": "the time", "slices": 4}
        assert "its own part" in stretto.spark.explain(df, query, **options)
        assert bag(found_by_spark(df, query, **options)) == bag(expected)
