"""A local Spark session that works out of the box, on a machine with or without Java."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # The same answer on every machine: timestamps are shown, and text is read as timestamps, in UTC.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A micro-batch writes what changed in its state, not the files of RocksDB: half the time of a commit, where states are small.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@check_arguments
def session(app_name: str = "stretto", cores: int | None = None, **conf: Any) -> SparkSession:
    """The active Spark session, or else a new local one.

    A new session has no web UI, shows times in UTC, has as many shuffle partitions as cores, logs errors
    only, and runs its Python workers with this interpreter. It finds a Java by itself
    (:mod:`stretto.spark.java`). An active session is returned as it is, whatever the arguments say.

    Parameters
    ----------
    app_name
        Name of the application.
    cores
        How many threads to use; ``None``: all.
    conf
        Further settings: ``spark.`` is put in front and ``__`` stands for a dot, so that
        ``sql__shuffle__partitions=8`` sets ``spark.sql.shuffle.partitions``. A full name is taken as it is:
        ``**{"spark.sql.shuffle.partitions": 8}``.

    Raises
    ------
    OptionError
        PySpark is not installed, there is no usable Java, or ``cores`` is not a positive number.

    Examples
    --------
    >>> from stretto import spark
    >>> session = spark.session()
    >>> session.range(3).count(), spark.session() is session
    (3, True)
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    active: SparkSession | None = SparkSession.getActiveSession()
    if active is not None:
        return active
    if cores is not None and cores < 1:
        raise OptionError(f"cores={cores}: give a positive number, or None for all")
    ensure_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    threads = cores or os.cpu_count() or 1
    settings = {**_DEFAULTS, "spark.sql.shuffle.partitions": str(threads)}
    settings.update({_setting(name): str(value) for name, value in conf.items()})
    # Without this the workers run the first python3 on PATH, which need not be this environment's. Spark reads the setting itself in
    # spark-submit only.
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))
    builder = SparkSession.builder.master(f"local[{threads}]").appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    return spark


def _setting(name: str) -> str:
    return name if name.startswith("spark.") else "spark." + name.replace("__", ".")


def require_pyspark() -> None:
    """Raise an :class:`OptionError` that says what to install unless PySpark can be imported."""
    try:
        import pyspark.sql  # noqa: F401
    except ImportError as error:
        raise OptionError(f"this needs PySpark ({error}): pip install 'stretto[spark]'") from error
