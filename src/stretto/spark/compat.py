"""What is private in PySpark, of classic sessions and of Spark Connect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def is_classic(df: Any) -> bool:
    """Whether a DataFrame is of a session in a JVM of this process' own; else it is of Spark Connect."""
    return hasattr(df, "_jdf")


def optimized_plan(df: Any) -> Any:
    """The JVM's logical plan of a classic DataFrame, optimized."""
    return df._jdf.queryExecution().optimizedPlan()


def executed_plan(df: Any) -> Any:
    """The JVM's physical plan of a classic DataFrame, with the metrics of its last run."""
    return df._jdf.queryExecution().executedPlan()


def plan_bytes(df: Any) -> bytes:
    """The plan of a DataFrame in some form that has the names in it."""
    if is_classic(df):
        text: str = df._jdf.queryExecution().logical().toString()
        return text.encode()
    written: bytes = df._plan.to_proto(df.sparkSession.client).SerializeToString()
    return written


def hadoop_file(session: Any, folder: str, name: str) -> tuple[Any, Any]:
    """A file in a folder of any of Hadoop's file systems, and the file system; of a classic session."""
    path = session._jvm.org.apache.hadoop.fs.Path(folder, name)
    return path, path.getFileSystem(session._jsc.hadoopConfiguration())


def worker_files() -> Path | None:
    """In a worker: where the files of its session are."""
    pyspark = sys.modules.get("pyspark")
    if pyspark is None or not pyspark.SparkFiles._is_running_on_worker:
        return None
    return Path(pyspark.SparkFiles.getRootDirectory())


def cuts_partitions() -> bool:
    """In a worker: whether it cuts the rows at the borders of SQL partitions; the object that does so is on the stack."""
    frame = sys._getframe(1)
    while frame is not None:
        if hasattr(frame.f_locals.get("self"), "_partition_child_indexes"):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False
