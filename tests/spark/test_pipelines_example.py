"""examples/pipelines runs, as its README says, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.session]

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipelines"


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("grpc", "yaml", "pyspark")),
    reason="Spark Declarative Pipelines are not installed: pip install 'pyspark[pipelines]'",
)
def test_pipeline(tmp_path: Path) -> None:
    from stretto.spark.sessions import ensure_java

    ensure_java()
    project = tmp_path / "pipelines"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("spark-warehouse", "__pycache__"))
    spec = project / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/tmp/stretto-pipeline", str(tmp_path / "storage")))
    binaries = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    answer = subprocess.run(
        ["spark-pipelines", "run", "--remote", "local[1]"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    found = pq.read_table(project / "spark-warehouse" / "profits").to_pylist()
    assert sorted((row["name"], row["paid"], row["got"]) for row in found) == [
        ("INTC", 42.1, 42.9),
        ("INTC", 43.0, 43.55),
        ("MSFT", 410.5, 412.0),
    ]
