"""One local Spark session for all tests of this folder.

Its start takes seconds: a worker of ``pytest -n 3`` starts one for all of its files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import SHARE
from tests.spark import cluster

#: Two sessions, their workers and two processes of tests share 8 GB.
SETTINGS = {"spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1g"}
#: Each partition of a stream has a store of its own, with files for each micro-batch.
PARTITIONS = 2 if SHARE == "all" else 1


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    from stretto.errors import OptionError
    from stretto.spark import session

    try:
        started = session("stretto tests", cores=2, **SETTINGS, **cluster.settings())
    except OptionError as error:  # no Java
        pytest.skip(str(error))
    started.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    yield started
    started.stop()


@pytest.fixture
def two_partitions(spark: Any) -> Iterator[None]:
    """For tests of what partitions come to together."""
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    yield
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
