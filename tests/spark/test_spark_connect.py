"""The same call over Spark Connect, in a process of its own: a process has one kind of session."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SCRIPT = """
from pyspark.sql import SparkSession
from stretto import spark
from stretto.spark.java import ensure_java

ensure_java()
session = SparkSession.builder.remote("local[1]").getOrCreate()
assert type(session).__module__.startswith("pyspark.sql.connect")
assert spark.session() is session
df = session.createDataFrame([("B", 2, "k"), ("A", 1, "k"), ("B", 3, None)], "type string, ts int, k string")
found = spark.match(df, "SELECT b FROM S WHERE A ; B AS b PARTITION BY [k]", time="ts").collect()
assert [(row.start_time, row.end_time, row.k, row.b[0].ts) for row in found] == [(1, 2, "k", 2)], found
print("as it should be")
"""


@pytest.mark.skipif(
    importlib.util.find_spec("grpc") is None or importlib.util.find_spec("pyspark") is None,
    reason="Spark Connect is not installed: pip install 'stretto[spark]'",
)
def test_connect(tmp_path: Path) -> None:
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    assert "as it should be" in answer.stdout
