"""One local Spark session for all tests, as a plugin of pytest (tests/conftest.py loads it).

Its start takes seconds: a worker of ``pytest -n 3`` starts one for all of its files. Its Python processes are forks
(:mod:`tests.spark.forks`) in the short tests.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from tests.conftest import SHARE
from tests.spark import cluster
from tests.spark.forks import forking

#: Two sessions, their workers and two processes of tests share 8 GB.
SETTINGS = {"spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1g"}
#: Each partition of a stream has a store of its own, with files for each micro-batch.
PARTITIONS = 2 if SHARE == "all" else 1


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    from stretto.errors import OptionError
    from stretto.spark import session

    forked = SHARE != "all" and not cluster.MASTER and sys.platform == "linux"
    with forking(tmp_path_factory.mktemp("forks")) if forked else nullcontext(sys.executable) as python:
        with pytest.MonkeyPatch.context() as patched:  # a session keeps the Python that its start was told
            patched.setenv("PYSPARK_PYTHON", python)
            try:
                started = session("stretto tests", cores=2, **SETTINGS, **cluster.settings())
            except OptionError as error:  # no Java
                pytest.skip(str(error))
        started.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
        if forked:
            _write_without_processes(started)
        yield started
        started.stop()


def _write_without_processes(spark: Any) -> None:
    """Let files have no checksums beside them, and their drafts be renamed in one step: else each takes four processes, not one."""
    from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]

    spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration()).setWriteChecksum(False)
    manager = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    if isinstance(getattr(spark._jvm, manager), JavaClass):  # older versions have it elsewhere
        spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", manager)


@pytest.fixture
def two_partitions(spark: Any) -> Iterator[None]:
    """For tests of what partitions come to together."""
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    yield
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
