"""The same calls over Spark Connect, in a process of its own: a process has one kind of session."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.session]

SCRIPT = """
import random
import tempfile
from pathlib import Path

from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession, functions as F

import stretto
from stretto import spark
from stretto.columns.vectorized import mask
from stretto.spark.columns import may_be
from stretto.spark.frames import spark_schema
from stretto.spark.sessions import ensure_java
from tests.spark import test_behind, test_streaming
from tests.spark.streams import run
from tests.spark.test_batch import QUERIES, bag, random_events
from tests.spark.test_columns import SCHEMA, random_conditions, table_of

ensure_java()
session = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
assert type(session).__module__.startswith("pyspark.sql.connect")
assert spark.session() is session

# Batch: by key, in one task, in slices, several streams; explain.
table = random_events(1)
df = session.createDataFrame(table)
for name in ("plain", "kleene", "consume any", "no key", "no key, time"):
    expected = bag(stretto.match(QUERIES[name], table, time="ts", sequence="seq"))
    found = spark.match(df, QUERIES[name], time="ts", sequence="seq", slices=3 if "no key" in name else None)
    assert bag(found.toArrow()) == expected, name
text = spark.explain(df, QUERIES["no key, time"], time="ts", sequence="seq", slices=3)
assert "How it runs on Spark" in text
frames = {"S1": df.select("type", "ts", "seq"), "S2": df.select("type", "ts", "seq", "x")}
query = "SELECT * FROM S1, S2 WHERE S1>A ; S2>B WITHIN 2 seconds"
assert spark.match(frames, query, time="ts", sequence="seq").count() > 0

# SQL with MATCH_RECOGNIZE.
df.createOrReplaceTempView("events")
clause = "MATCH_RECOGNIZE (PARTITION BY type ORDER BY ts, seq MEASURES count(*) AS n PATTERN (A+))"
text = f"SELECT e.type, n FROM (SELECT * FROM events WHERE ts IS NOT NULL) AS e {clause} AS e WHERE n > 1 ORDER BY 1"
assert spark.sql(session, text).toArrow().to_pylist() == stretto.sql(text, events=table).to_pylist() != []
try:
    spark.sql(session, text.replace("e.type", "e.kind"))
except stretto.QueryError as error:
    assert str(error).startswith("line 1, column 8: [UNRESOLVED_COLUMN"), error

# The filter: conditions of every kind, on rows of all types.
rng = random.Random(3)
rows = table_of(rng, 30)
asked = [(predicate, may_be(True, predicate, stretto.Schema.of(SCHEMA))) for _, predicate in random_conditions(rng, 20)]
asked = [(predicate, condition) for predicate, condition in asked if not isinstance(condition, bool)]
columns = [condition.alias(f"c{i}") for i, (_, condition) in enumerate(asked)]
answer = session.createDataFrame(rows, spark_schema(SCHEMA)).select("time", *columns).toArrow().sort_by("time")
compared = 0
for i, (predicate, _) in enumerate(asked):
    try:
        expected = mask(predicate, rows)
    except stretto.DataError:  # a number overflows
        continue
    kept = answer.column(f"c{i}").fill_null(False).to_numpy()
    assert not (expected & ~kept).any(), predicate
    compared += expected.sum()
assert compared > 50, compared

# SQL.
spark.register(session)
spark.register(session, "plain", QUERIES["plain"], time="ts", sequence="seq")
spark.register(session, "fitted", QUERIES["plain"], time="ts", like=df)
df.createOrReplaceTempView("events")
expected = bag(stretto.match(QUERIES["plain"], table, time="ts", sequence="seq"))
ordered = "TABLE(events) PARTITION BY key ORDER BY (ts, seq)"
for call in (
    f"stretto_query(TABLE(events), '{QUERIES['plain']}', time => 'ts', sequence => 'seq')",
    f"stretto_match({ordered}, '{QUERIES['plain']}')",
    "plain(TABLE(events))",
    f"fitted({ordered})",
):
    assert bag(session.sql(f"SELECT * FROM {call}").toArrow()) == expected, call
try:
    session.sql("SELECT * FROM stretto_query(TABLE(events), 'SELECT * FROM S WHERE A AS a FILTER a[y > 3]')").collect()
except AnalysisException as error:
    assert "a[y > 3]\\n                                        ^\\nhint: " in str(error), error
else:
    raise AssertionError("no error")

# Streaming: the state, the metrics, the sink.
folder = Path(tempfile.mkdtemp())
events = test_streaming.random_events(5, 120)
watched = test_streaming.QUERIES["keyed"]
expected = bag(stretto.match(watched, events, time="ts", sequence="seq"))
stream = test_streaming.stream(session, folder / "in", events, batches=2)
found = spark.match(stream, watched, time="ts", sequence="seq", disorder="5 seconds", buckets=2)
running = run(found, folder / "checkpoint", folder / "out")
assert expected and bag(session.read.parquet(str(folder / "out")).toArrow()) == expected
assert sum(spark.metrics(progress).get("matches", 0) for progress in running.recentProgress) == len(expected)
assert {n for progress in running.recentProgress for n in spark.buckets(progress)["bucket"].to_pylist()} == {0, 1}

# Behind a match: windows; a second watermark is refused, also behind a view.
pairs = spark.match(
    test_behind.stream(session, folder / "pairs", test_behind.PAIRED, 7),
    test_behind.PAIRS, time="ts", disorder="5 seconds", buckets=2,
)
run(pairs.groupBy(F.window("end_time", "1 hour")).count(), folder / "c2", folder / "hours")
assert [row["count"] for row in session.read.parquet(str(folder / "hours")).collect()] == [3]
pairs.createOrReplaceTempView("pairs")
for matches in (pairs, session.table("pairs"), session.sql("SELECT * FROM pairs")):
    try:
        run(matches.withWatermark("end_time", "1 minute"), folder / "c3", folder / "none")
    except stretto.errors.OptionError as error:
        assert "stands behind a continuous query" in str(error), error
    else:
        raise AssertionError("no error")

# Errors when Spark runs.
try:
    spark.match(df.selectExpr("type", "CAST(NULL AS int) AS ts"), "SELECT * FROM S WHERE A", time="ts").collect()
except PythonException as error:
    assert "DataError: column 'ts' (time) is NULL" in str(error), error
else:
    raise AssertionError("no error")
print("as it should be")
"""


@pytest.mark.skipif(
    importlib.util.find_spec("grpc") is None or importlib.util.find_spec("pyspark") is None,
    reason="Spark Connect is not installed: pip install 'stretto[spark]'",
)
def test_connect(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    assert "as it should be" in answer.stdout
