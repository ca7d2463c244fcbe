"""The sinks of a plan: as writers for ``foreachBatch``, and for the one batch of a pipeline that does not stream."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from stretto import connectors
from stretto.connectors.sinks import kept
from stretto.pipelines import model
from stretto.pipelines.plan import Plan
from stretto.pipelines.sources import options_of
from stretto.spark.compat import described
from stretto.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What bad records are called where the parts of a pipeline are named.
BAD_RECORDS = "bad records"


class Route:
    """What goes to a sink.

    Parameters
    ----------
    sink
        The sink.
    feeder
        The query, or the source of bad records, that the rows are from.
    label
        The column that tells feeders apart where several share the sink; ``None``: only one writes to it.
    """

    def __init__(self, plan: Plan, sink: model.Sink, feeder: str, label: str | None = None) -> None:
        self.plan, self.sink, self.feeder, self.label = plan, sink, feeder, label

    @property
    def path(self) -> str:
        """Where files go: feeders that share a sink have folders of their own."""
        assert isinstance(self.sink, model.FileSink | model.DeltaSink)
        path = self.plan.locate(self.sink.path)
        return f"{path}/{self.label}={self.feeder}" if self.label and isinstance(self.sink, model.FileSink) else path

    @property
    def identity(self) -> str:
        """Names the feeder to sinks that remember what they have."""
        return f"{self.plan.name}/{self.feeder}/{self.sink.name}"

    def shown(self, df: DataFrame) -> DataFrame:
        """The rows, with their feeder where rows of several meet."""
        return (
            df if self.label is None or isinstance(self.sink, model.FileSink) else labelled(df, self.label, self.feeder)
        )


def labelled(df: DataFrame, name: str, value: str) -> DataFrame:
    """The rows with a column in front that is the same for all; its name gets underscores while it is taken."""
    from pyspark.sql import functions as F

    while name in df.columns:
        name += "_"
    return df.select(F.lit(value).alias(name), *map(column, df.columns))


def routes_of(plan: Plan, asked: model.Asked) -> list[Route]:
    """Where the matches of a query or of rules go."""
    return [Route(plan, sink, asked.name, _label(plan, sink)) for sink in plan.sinks_of(asked)]


def _label(plan: Plan, sink: model.Sink) -> str | None:
    """The column that tells queries apart in a sink that several write to."""
    users = sum(sink in plan.sinks_of(asked) for asked in plan.asked)
    aside = sink.name in (plan.events.late_sink, plan.events.bad_records_sink)
    return "query" if users > 1 or aside else None


def stream_writer(route: Route) -> connectors.Writer:
    """A function for ``foreachBatch`` that leaves each batch once, however often Spark gives it.

    Kafka and the console cannot take anything back: there a batch that failed halfway comes again.
    """
    sink = route.sink
    match sink:
        case model.FileSink():
            write = connectors.files.writer(route.path, sink.kind, options=options_of(sink.options))
        case model.DeltaSink():
            storage = {name: str(value) for name, value in options_of(sink.options).items()}
            write = connectors.delta.writer(route.path, route.identity, storage_options=storage)
        case model.KafkaSink():
            options = options_of(sink.options)
            write = connectors.kafka.writer(sink.servers, sink.topic, route.identity, key=sink.key, options=options)
        case model.ConsoleSink():
            write = _console(sink.rows)

    def described_write(df: DataFrame, batch_id: int) -> None:
        with described(df.sparkSession, f"writing to {sink.name}"):
            write(route.shown(df), batch_id)

    return described_write


def batch_writer(route: Route) -> Callable[[DataFrame], None]:
    """A function that writes the rows of a batch pipeline."""
    sink = route.sink
    if isinstance(sink, model.FileSink):
        return partial(_write_files, sink=sink, path=route.path, options=options_of(sink.options))
    if isinstance(sink, model.DeltaSink):
        storage = {name: str(value) for name, value in options_of(sink.options).items()}
        # The table remembers identities: each run of a batch pipeline is a new one.
        write = connectors.delta.writer(route.path, f"{route.identity}/{uuid.uuid4()}", storage_options=storage)
        return lambda df: write(route.shown(df), 0)
    once = stream_writer(route)
    return lambda df: once(df, 0)


def _write_files(df: DataFrame, sink: model.FileSink, path: str, options: dict[str, Any]) -> None:
    if sink.kind == "csv":
        df, options = _flat(df), {"header": True, "escape": '"', **options}
    df.write.format(sink.kind).options(**options).mode(sink.mode).save(path)


def splitting(writer: connectors.Writer, late: str, *, aside: bool) -> connectors.Writer:
    """A writer of the matches in a batch, or of the late events that are beside them in the column ``late``."""

    def write(df: DataFrame, batch_id: int) -> None:
        if aside:
            rows = df.filter(column(late).isNotNull()).select(f"`{late}`.*")
        else:
            rows = df.filter(column(late).isNull()).drop(column(late))
        writer(rows, batch_id)

    return write


def _console(most: int) -> Callable[[DataFrame, int], None]:
    """JSON lines on standard output; ``most``: rows of a batch that are shown (0: all)."""

    def write(df: DataFrame, batch_id: int) -> None:
        from pyspark.sql import functions as F

        lines = df.select(F.to_json(F.struct(*map(column, df.columns))).alias("line"))
        with kept(lines) as rows:
            shown = rows.limit(most).collect() if most else rows.toLocalIterator()
            for row in shown:
                sys.stdout.write(row.line + "\n")
            if most and len(shown) == most and (count := rows.count()) > most:
                sys.stderr.write(f"… {count - most:,} more rows\n")
        sys.stdout.flush()

    return write


def _flat(df: DataFrame) -> DataFrame:
    """Nested columns as JSON text, for CSV has none."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    def shown(field: Any) -> Any:
        nested = isinstance(field.dataType, T.StructType | T.ArrayType | T.MapType)
        return F.to_json(column(field.name)).alias(field.name) if nested else column(field.name)

    return df.select(*map(shown, df.schema.fields))
