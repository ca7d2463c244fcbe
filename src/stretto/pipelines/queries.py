"""The queries of a pipeline, checked as far as their columns are known without Spark."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from stretto.connectors.changes import SIGN
from stretto.errors import DataError, OptionError, QueryError, StrettoError, suggestion
from stretto.languages.afa.written import read_afa
from stretto.languages.sql import read_statement
from stretto.matching.compiled import Query, compile_query
from stretto.matching.input.stream_union import STREAM_COLUMN
from stretto.pipelines import model
from stretto.pipelines.columns import column_type
from stretto.pipelines.documents import Problem, Text
from stretto.pipelines.places import Path as KeyPath
from stretto.pipelines.plan import Plan
from stretto.pipelines.rules import read_rules
from stretto.spark.revised import AFA

#: The language of statements of Spark SQL, with ``MATCH_RECOGNIZE``.
SQL = "sql"


def query_text(plan: Plan, number: int) -> Text:
    """The text of a query.

    Raises
    ------
    OptionError
        Its file cannot be read.
    """
    query = plan.queries[number]
    if query.text is not None:
        return plan.file.text_at(("query", number, "text"), query.text)
    path = Path(plan.locate(str(query.file)))
    try:
        whole = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise OptionError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"{path} is not UTF-8 text: {error}") from error
    return Text(whole, str(path), whole, range(len(whole) + 1))


def check_queries(plan: Plan) -> list[Problem]:
    """What is wrong with the queries: their text, the streams and columns that they name, the columns' roles."""
    streams = {source.name or str(number): known_columns(plan, source) for number, source in enumerate(plan.sources)}
    known = _together(streams)
    problems = [] if known is None else _role_problems(plan, known)
    for number, query in enumerate(plan.queries):
        path: KeyPath = ("query", number)
        label = f"query '{query.name}'"
        if (query.text is None) == (query.file is None):
            continue  # told elsewhere
        try:
            text = query_text(plan, number)
        except OptionError as error:
            problems.append(plan.file.problem((*path, "file"), f"{label}: {error}"))
            continue
        try:
            if query.language == AFA:
                if known is not None and not problems:
                    read_afa(text.text, known)
                continue
            if query.language == SQL:
                read_statement(text.text, spark=True)
                continue
            compiled = compile_query(text.text, language=query.language)
            problems += _stream_problems(plan, compiled, text, label)
            if known is not None and not problems:
                _bind(plan, compiled, query, known)
        except QueryError as error:
            problems.append(query_problem(text, query, error))
        except StrettoError as error:
            problems.append(plan.file.problem((*path, "name"), f"{label}: {error}"))
    return problems


def check_rules(plan: Plan) -> Iterator[Problem]:
    """What keeps rules from running at all: that there are none, or no column by which they are partitioned. What is wrong with some
    of them is told when the others run."""
    known = known_columns(plan, plan.sources[0])
    for number, rules in enumerate(plan.rules):
        for at, name in enumerate(rules.by):
            if known is not None and name not in known:
                told = f"rules '{rules.name}': by: there is no column '{name}'"
                yield plan.file.problem(("rules", number, "by", at), told, suggestion(name, known, kind="column"))
        try:
            read_rules(plan.locate(rules.path))
        except (OptionError, DataError) as error:
            yield plan.file.problem(("rules", number, "path"), f"rules '{rules.name}': {error}")


def query_problem(text: Text, query: model.Query, error: QueryError) -> Problem:
    """A mistake in a query's text, with its place in the file."""
    told = f"query '{query.name}': {error.message}"
    return Problem(text.file, told, text.whole, text.span(error.span), error.hint, True)


def _bind(plan: Plan, compiled: Query, query: model.Query, known: Mapping[str, pa.DataType]) -> None:
    """Check a query against the columns, and that its result has a schema."""
    events = plan.events
    stream = STREAM_COLUMN if len(plan.sources) > 1 else events.stream
    columns = {**known, STREAM_COLUMN: pa.string()} if len(plan.sources) > 1 else known
    bound = compile_query(
        compiled, columns, type=events.type or None, time=events.time, stream=stream, time_unit=events.time_unit
    )
    bound.output_schema(query.output, positions=False)


def _stream_problems(plan: Plan, compiled: Query, text: Text, label: str) -> list[Problem]:
    """Streams behind FROM that no source gives."""
    found: list[Problem] = []
    names = [source.name for source in plan.sources if source.name is not None]
    if compiled.parsed.any_stream:
        return found
    spans = compiled.parsed.stream_spans
    for number, stream in enumerate(compiled.streams):
        span = text.span(spans[number]) if number < len(spans) else None
        if len(plan.sources) > 1 and stream not in names:
            told = f"{label}: there is no [[source]] '{stream}'"
            hint = suggestion(stream, names, kind="source")
            found.append(Problem(text.file, told, text.whole, span, hint, True))
        elif len(plan.sources) == 1 and len(compiled.streams) > 1 and plan.events.stream is None:
            told = f"{label}: reads {len(compiled.streams)} streams, and there is one source"
            hint = (
                "give each stream a [[source]] with its name, or name the column that tells them apart: [events] stream"
            )
            found.append(Problem(text.file, told, text.whole, span, hint, True))
            break
    return found


def _role_problems(plan: Plan, known: Mapping[str, pa.DataType]) -> list[Problem]:
    """Roles that no column plays."""
    found = []
    for role in ("type", "time", "sequence", "stream", "event_id", "sign"):
        name = getattr(plan.events, role)
        if not name:
            continue
        told = f'[events] {role} = "{name}"'
        if name not in known:
            told += ": the events have no such column"
            if role == "type" and not plan.file.place(("events", "type")):
                told += ' (that is the default; type = "" says that there is none)'
            found.append(plan.file.problem(("events", role), told, suggestion(name, known, kind="column")))
        elif role in ("type", "stream") and not pa.types.is_string(known[name]):
            found.append(plan.file.problem(("events", role), f"{told} is {known[name]}, not text"))
    time = known.get(plan.events.time)
    if time is not None and not _orders(time):
        told = f'[events] time = "{plan.events.time}" is {time}, not a number, timestamp or date'
        found.append(plan.file.problem(("events", "time"), told))
    if time is not None and pa.types.is_integer(time) and plan.streaming and plan.events.time_unit is None:
        told = f"[events] time = \"{plan.events.time}\" is {time}: the watermark needs 'time_unit'"
        found.append(plan.file.problem(("events", "time"), told, 'time_unit = "s", "ms", "us" or "ns"'))
    return found


def _orders(kind: pa.DataType) -> bool:
    """Whether values of a type can be times."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_timestamp, pa.types.is_date)
    return any(test(kind) for test in tests)


def _together(streams: Mapping[str, Mapping[str, pa.DataType] | None]) -> dict[str, pa.DataType] | None:
    """The columns of all streams; ``None`` if those of one are not known."""
    found: dict[str, pa.DataType] = {}
    for columns in streams.values():
        if columns is None:
            return None
        found = {**columns, **found}
    return found


def known_columns(plan: Plan, source: model.Source) -> Mapping[str, pa.DataType] | None:
    """A source's columns, if the pipeline file or a Parquet file on this machine tells them.

    Derived columns have types that only Spark knows, and so has a Delta table.
    """
    if source.derived or isinstance(source, model.DeltaSource):
        return None
    if source.columns is not None:
        try:
            found = {name: column_type(kind) for name, kind in source.columns.items()}
        except OptionError:  # told where the columns are
            return None
        if isinstance(source, model.KafkaSource):
            if source.value == "debezium":
                found[SIGN] = pa.int32()
            elif plan.events.sequence is None:
                found["sequence"] = pa.int64()
        return found
    return _parquet_columns(plan.locate(source.path)) if isinstance(source, model.ParquetSource) else None


def _parquet_columns(path: str) -> Mapping[str, pa.DataType] | None:
    import pyarrow.parquet as pq

    if ":/" in path:
        return None
    where = Path(path)
    files = sorted(map(str, where.glob("**/*.parquet"))) if where.is_dir() else sorted(glob.glob(path))
    if not files or "=" in str(Path(files[0]).relative_to(path) if where.is_dir() else ""):
        return None  # folders that are named column=value add columns
    try:
        schema = pq.read_schema(files[0])
    except (pa.ArrowInvalid, OSError):
        return None
    return dict(zip(schema.names, map(_as_in_spark, schema.types), strict=True))


def _as_in_spark(kind: pa.DataType) -> pa.DataType:
    """The type that Spark gives a column of Parquet."""
    if pa.types.is_dictionary(kind):
        return _as_in_spark(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if pa.types.is_large_string(kind):
        return pa.string()
    return kind
