"""The sources of a plan as events."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto import connectors
from stretto.pipelines import model
from stretto.pipelines.columns import column_type
from stretto.pipelines.plan import Plan
from stretto.pipelines.updates import failures_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(plan: Plan, spark: SparkSession) -> dict[str, connectors.Events]:
    """Every source's events, by the source's name."""
    found = {}
    for source in plan.sources:
        name = source_name(source)
        with failures_named(name, plan.where(name)):
            found[name] = _read(plan, source, spark)
    return found


def source_name(source: model.Source) -> str:
    """A source's name; the only source of a pipeline needs none."""
    return source.name or "events"


def common_sequence(events: Mapping[str, connectors.Events]) -> str | None:
    """The column that orders events of the same time, if all sources have it."""
    names = {source.sequence for source in events.values()}
    return names.pop() if len(names) == 1 else None


def settings(plan: Plan) -> dict[str, str]:
    """Settings of the Spark session: those of the plan, and the Kafka connector if it is needed."""
    # A failure is told in a line, not in a log between those of the display.
    found = {"spark.log.level": "FATAL", **plan.spark}
    if any(item.kind == "kafka" for item in (*plan.sources, *plan.sinks)):
        packages = found.get("spark.jars.packages", "")
        if "spark-sql-kafka" not in packages + found.get("spark.jars", ""):
            found["spark.jars.packages"] = ",".join(filter(None, [packages, connectors.kafka.package()]))
    return found


def options_of(options: Mapping[str, model.Option]) -> dict[str, Any]:
    """Options with the values of environment variables in their places."""
    return {
        name: os.environ[value.env] if isinstance(value, model.EnvironmentVariable) else value
        for name, value in options.items()
    }


def _read(plan: Plan, source: model.Source, spark: SparkSession) -> connectors.Events:
    events = plan.events
    shared: dict[str, Any] = {
        "time": events.time,
        "type": events.type or None,
        "sequence": events.sequence,
        "columns": source.derived,
        "required": source.required,
        "streaming": plan.streaming,
        "bad_records": "error" if events.bad_records == "error" else "side",
        "name": source_name(source),
    }
    options = options_of(source.options)
    match source:
        case model.KafkaSource():
            return connectors.kafka.read(
                spark,
                source.servers,
                source.topic,
                schema=_schema(source.columns),
                value=source.value,
                value_options=options_of(source.value_options),
                pattern=source.pattern,
                starting=source.starting,
                options=options,
                **shared,
            )
        case model.DeltaSource():
            storage = {name: str(value) for name, value in options.items()}
            return connectors.delta.read(spark, plan.locate(source.path), storage_options=storage, **shared)
    return connectors.files.read(
        spark,
        plan.locate(source.path),
        format=source.kind,
        schema=None if source.columns is None else _schema(source.columns),
        options=options,
        **shared,
    )


def _schema(columns: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, column_type(kind)) for name, kind in columns.items()])
