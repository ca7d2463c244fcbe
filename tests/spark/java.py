"""How Java runs Spark in tests, and an archive of the classes that it loads there: a JVM that starts with it need not read, check
and link them again.

``python -m tests.spark.java ARCHIVE`` makes the archive. A JVM that it was not made for leaves it aside.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["ARCHIVE", "options"]

#: Where the archive lies, if there is one.
ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

#: A JVM that lives for minutes has no use for the second compiler: without it, Spark takes half the processor time, and has less
#: room for compiled code than it fills. What is called a few hundred times is not worth compiling, which took a fifth of that time.
#: Hadoop changes modes of files by processes, which start by vfork at less cost.
_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:CompileThresholdScaling=4",
    "-XX:ReservedCodeCacheSize=240m",
    "-XX:+UseSerialGC",
    "-Djdk.lang.Process.launchMechanism=VFORK",
    "-Xlog:disable",
)

#: Settings of the short tests' Spark sessions, in any process: what Spark does is the same, in less time. The lanes that try all
#: cases leave them out. They are properties, since a folder with Spark's own file of them would keep Java from using an archive.
_OF_SHORT_TESTS = {
    # Rows of small micro-batches are projected by interpreted expressions: planning one compiles dozens of projections else.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Files of checkpoints have no checksums beside them: for each file written, one more is, and three processes are started.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}


def options(*, short: bool, archive: str = f"-XX:SharedArchiveFile={ARCHIVE}") -> str:
    """The options of Spark's JVM, for the short tests or those that try all cases."""
    properties = [f"-D{name}={value}" for name, value in _OF_SHORT_TESTS.items() if short]
    return " ".join([*_OPTIONS, *properties, archive])


def make(archive: Path) -> None:
    """Run queries as tests do, and let the JVM archive the classes that it has loaded when it ends."""
    from stretto.folders import replaced
    from stretto.spark import session
    from stretto.spark.sessions import find_java
    from tests.spark.sessions import SETTINGS

    if find_java() is None:
        print("no Java of version 17 or newer is here, and so no archive of Spark's classes")
        return
    with replaced(archive) as draft, tempfile.TemporaryDirectory() as folder:
        os.environ["SPARK_SUBMIT_OPTS"] = options(short=True, archive=f"-XX:ArchiveClassesAtExit={draft}")
        spark = session("classes", cores=2, **SETTINGS)
        java = spark.sparkContext._gateway.proc
        _load_classes(spark, Path(folder))
        spark.stop()
        java.stdin.close()
        java.wait()


def _load_classes(spark: Any, folder: Path) -> None:
    """Match a table, and a stream in two micro-batches."""
    from stretto.spark import match
    from tests.spark.streams import add_file, read_stream, run

    query = "SELECT a[t] FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 5 seconds"
    for number in range(2):
        add_file(folder / "in", pa.table({"type": ["A", "B"], "t": [number, number + 1], "key": ["k", "k"]}), number)
    match(spark.read.parquet(str(folder / "in")), query, time="t", time_unit="s").toArrow()
    matches = match(read_stream(spark, folder / "in"), query, time="t", time_unit="s", disorder="0 seconds")
    run(matches, folder / "checkpoint", folder / "out")
    spark.read.parquet(str(folder / "out")).toArrow()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
