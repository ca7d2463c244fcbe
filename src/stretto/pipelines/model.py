"""The tables and keys of a pipeline file, as Pydantic models: what may be there, of which type, and what it is by default.

What one key alone cannot tell (names that must be known, keys that go together) is in :mod:`stretto.pipelines.load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError


class Table(BaseModel):
    """A TOML table: no unknown keys, no value taken for one of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Text = Annotated[str, Field(min_length=1)]


class EnvironmentVariable(Table):
    """``{ env = "NAME" }``: a value that is taken from the environment when the pipeline runs."""

    env: Text


def _one_or_more(value: Any) -> Any:
    """A text stands for a list with that text."""
    return [value] if isinstance(value, str) else value


def _option(value: Any) -> Any:
    """One of several types; said in one error in place of one for each type."""
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str) and value["env"]:
        return EnvironmentVariable(env=value["env"])
    raise PydanticCustomError("option", 'expected a text, a number, true, false or { env = "NAME" }')


Texts = Annotated[list[Text], BeforeValidator(_one_or_more), Field(min_length=1)]
#: Part of a path or of a table's identity.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
#: Attributes with their Spark SQL types.
Columns = Annotated[dict[str, Text], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
#: A text, a number, a truth value or an :class:`EnvironmentVariable`.
Option = Any
Options = Annotated[dict[str, Annotated[Any, BeforeValidator(_option)]], Field(default_factory=dict)]


class Pipeline(Table):
    """``[pipeline]``: how it runs."""

    name: Name | None = None
    mode: Literal["batch", "streaming"] = "batch"
    checkpoint: Text | None = None
    trigger: Text | None = None


class _Source(Table):
    """What all sources have."""

    name: Name | None = None
    derived: Annotated[dict[str, Text], Field(default_factory=dict)]
    required: Annotated[list[Text], Field(default_factory=list)]
    options: Options


class ParquetSource(_Source):
    """``[source]`` of Parquet files, which say what their columns are."""

    kind: Literal["parquet"]
    path: Text
    columns: Columns | None = None


class TextSource(_Source):
    """``[source]`` of CSV or JSON-lines files."""

    kind: Literal["csv", "json"]
    path: Text
    columns: Columns


class DeltaSource(_Source):
    """``[source]`` of a Delta table."""

    kind: Literal["delta"]
    path: Text


class KafkaSource(_Source):
    """``[source]`` of one or more Kafka topics."""

    kind: Literal["kafka"]
    servers: Texts
    topic: Texts
    columns: Columns
    value: Literal["json", "csv", "text", "debezium"] = "json"
    pattern: Text | None = None
    value_options: Options
    starting: Literal["earliest", "latest"] = "earliest"


class Events(Table):
    """``[events]``: the roles of columns, and what becomes of events that are late or cannot be read."""

    type: str = "type"
    time: Text
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    sequence: Text | None = None
    stream: Text | None = None
    event_id: Text | None = None
    sign: Text | None = None
    disorder: Text | None = None
    late: Literal["drop", "error", "side"] = "drop"
    late_sink: Text | None = None
    bad_records: Literal["drop", "error", "side"] = "error"
    bad_records_sink: Text | None = None


class _Asked(Table):
    """What queries and rules have in common."""

    name: Name
    output: Literal["events", "positions"] = "events"
    valuations: bool = False
    sinks: Texts | None = None
    partitions: Count | None = None
    buckets: Count | None = None
    budget: Count | Text | None = None


class Query(_Asked):
    """``[[query]]``."""

    text: Text | None = None
    file: Text | None = None
    language: Literal["ceql", "sase", "eql", "afa", "sql"] | None = None
    speculation: Text | None = None
    timeouts: bool = False


class Rules(_Asked):
    """``[[rules]]``: a folder or a table of rules, whose alerts are the matches."""

    path: Text
    by: Annotated[list[Text], Field(default_factory=list)]
    on_limit: Literal["error", "disable"] = "error"
    at_end: Literal["drop", "complete"] | None = None


class FileSink(Table):
    """``[[sink]]`` of files."""

    name: Name
    kind: Literal["parquet", "csv", "json"]
    path: Text
    mode: Literal["error", "append", "overwrite"] = "error"
    options: Options


class DeltaSink(Table):
    """``[[sink]]`` of a Delta table."""

    name: Name
    kind: Literal["delta"]
    path: Text
    mode: Literal["error", "append"] = "error"
    options: Options


class KafkaSink(Table):
    """``[[sink]]`` to a Kafka topic."""

    name: Name
    kind: Literal["kafka"]
    servers: Texts
    topic: Text
    key: Text | None = None
    options: Options


class ConsoleSink(Table):
    """``[[sink]]`` to standard output."""

    name: Name
    kind: Literal["console"]
    rows: Annotated[int, Field(ge=0)] = 20


#: What is asked of the events.
Asked = Query | Rules
Source = ParquetSource | TextSource | DeltaSource | KafkaSource
Sink = FileSink | DeltaSink | KafkaSink | ConsoleSink

#: The models of sources and sinks by their ``kind``.
SOURCES: Mapping[str, type[Source]] = {
    "parquet": ParquetSource,
    "csv": TextSource,
    "json": TextSource,
    "kafka": KafkaSource,
    "delta": DeltaSource,
}
SINKS: Mapping[str, type[Sink]] = {
    "parquet": FileSink,
    "csv": FileSink,
    "json": FileSink,
    "kafka": KafkaSink,
    "delta": DeltaSink,
    "console": ConsoleSink,
}


class Document(Table):
    """A whole file. Sources and sinks come one by one, by their kind."""

    pipeline: Annotated[Pipeline, Field(default_factory=Pipeline)]
    source: Annotated[list[dict[str, Any]], Field(min_length=1)]
    events: Events
    query: Annotated[list[Query], Field(default_factory=list)]
    rules: Annotated[list[Rules], Field(default_factory=list)]
    sink: Annotated[list[dict[str, Any]], Field(min_length=1)]
    spark: Annotated[dict[str, Any], Field(default_factory=dict)]


#: Tables that may be written once, ``[source]``, or several times, ``[[source]]``.
REPEATED = ("source", "query", "rules", "sink")
