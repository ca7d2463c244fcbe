"""What is private in PySpark, of classic sessions and of Spark Connect, and what its versions do in different ways."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stretto.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


def needs(what: str, *least: int) -> None:
    """Raise an :class:`OptionError` where the installed PySpark is too old for something."""
    import pyspark

    if tuple(map(int, pyspark.__version__.split(".")[:2])) < least:
        raise OptionError(
            f"{what} needs PySpark {'.'.join(map(str, least))} or newer, and {pyspark.__version__} is installed: "
            "docs/spark.md has a table of what runs where"
        )


def to_arrow(df: Any) -> pa.Table:
    """The rows of a DataFrame in this process."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = df._collect_as_arrow()  # PySpark 3.5
    return pa.Table.from_batches(batches, batches[0].schema if batches else to_arrow_schema(df.schema))


def repartition_by_number(rows: Any, tasks: int, number: Any) -> Any:
    """The rows with each number below ``tasks`` in a partition of its own."""
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(tasks, number)
    from pyspark.sql import functions as F

    # Before PySpark 4.1 rows go where the hash of a value says: for each partition one value is looked for that goes there.
    tried = rows.sparkSession.range(64 * tasks).groupBy(F.pmod(F.hash("id"), F.lit(tasks)).alias("task"))
    value = {row[0]: row[1] for row in tried.agg(F.min("id")).collect()}
    values = F.array(*[F.lit(value[task]) for task in range(tasks)]).cast("array<bigint>")
    return rows.repartition(tasks, F.get(values, number.cast("int")))


def send_archive(session: Any, archive: str) -> None:
    """Hand an archive to the workers of a session, which unpack it under the name behind its ``#``."""
    import pyspark

    if pyspark.__version__ < "4":
        session.sparkContext.addArchive(archive)
    else:
        session.addArtifact(archive, archive=True)


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
    """The plan of a DataFrame in some form that has the names in it, also those in views."""
    if is_classic(df):
        text: str = df._jdf.queryExecution().analyzed().toString()
        return text.encode()
    plan = df._plan.to_proto(df.sparkSession.client)
    if _reads_names(plan):
        return _told_plan(df).encode()
    written: bytes = plan.SerializeToString()
    return written


def watermarked_behind(df: Any, name: str) -> bool:
    """Whether a watermark of a DataFrame's plan stands behind what has a name in it; ``""``: behind whatever."""
    if not is_classic(df):
        plan = df._plan.to_proto(df.sparkSession.client)
        return _marked_tree(_told_plan(df), name) if _reads_names(plan) else _marked(plan, name.encode())
    nodes = [df._jdf.queryExecution().analyzed()]
    while nodes:
        node = nodes.pop()
        if node.nodeName() == "EventTimeWatermark" and name in node.toString():
            return True
        children = node.children()
        nodes += [children.apply(number) for number in range(children.size())]
    return False


def _marked(plan: Any, name: bytes) -> bool:
    """The same of a plan of Spark Connect."""
    return any(part.DESCRIPTOR.name == "WithWatermark" and name in part.SerializeToString() for part in _parts(plan))


def _reads_names(plan: Any) -> bool:
    """Whether a plan of Spark Connect reads tables or views, of which only the server knows what they are."""
    return any(part.DESCRIPTOR.name in ("NamedTable", "SQL") for part in _parts(plan))


def _parts(message: Any) -> Iterator[Any]:
    """A part of a plan of Spark Connect, and the parts in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from _parts(part)


def _told_plan(df: Any) -> str:
    """The analyzed plan of a DataFrame of Spark Connect as the server writes it: a node a line, its children further to the right."""
    text: str = df._explain_string(extended=True)
    return text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]


def _marked_tree(plan: str, name: str) -> bool:
    """The same of a plan that the server has written."""
    within: int | None = None  # how far to the right a watermark stands, in whose part of the tree the line is
    for line in plan.splitlines():
        depth = len(line) - len(line.lstrip(" :+-~"))
        if within is None or depth <= within:
            within = depth if line.lstrip(" :+-~").startswith("EventTimeWatermark") else None
        if within is not None and name in line:
            return True
    return False


def hadoop_file(session: Any, folder: str, name: str) -> tuple[Any, Any]:
    """A file in a folder of any of Hadoop's file systems, and the file system; of a classic session."""
    path = session._jvm.org.apache.hadoop.fs.Path(folder, name)
    return path, path.getFileSystem(session._jsc.hadoopConfiguration())


def may_be_there(session: Any, folder: str) -> bool:
    """Whether a folder is there; through Spark Connect, which does not tell, it may be."""
    if getattr(session, "_jvm", None) is None:
        return True
    path, files = hadoop_file(session, folder, ".")
    return bool(files.exists(path))


@contextmanager
def described(session: Any, what: str) -> Iterator[None]:
    """Let Spark's UI name the jobs inside, of this thread; not through Spark Connect.

    Jobs that somebody has described keep that description in front.
    """
    if getattr(session, "_jvm", None) is None:
        yield
        return
    context, name = session.sparkContext, "spark.job.description"
    before = context.getLocalProperty(name)
    context.setLocalProperty(name, what if before is None else f"{before}: {what}")
    try:
        yield
    finally:
        context.setLocalProperty(name, before)


def in_short(text: str, most: int = 80) -> str:
    """A query in one line that is no longer than ``most``."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def named(worker: partial[T], what: str) -> partial[T]:
    """A worker's function that plans, and Spark's UI, show with what it runs: the stage of a query is told from others by that."""
    worker.__name__ = f"stretto: {in_short(what)}"  # type: ignore[attr-defined]
    return worker


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
