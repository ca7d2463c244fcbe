"""``stretto match``: find a query's complex events in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.options import (
    AtEnd,
    DataArgument,
    FormatOption,
    LanguageOption,
    QueryArgument,
    SequenceOption,
    StreamOption,
    TimeOption,
    TimeUnitOption,
    TypesOption,
)
from stretto.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from stretto.matching.compiled import Query
    from stretto.matching.input.files import Source


class Engine(StrEnum):
    embedded = "embedded"
    spark = "spark"


class Late(StrEnum):
    error = "error"
    drop = "drop"


class Output(StrEnum):
    events = "events"
    positions = "positions"
    summary = "summary"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("match")(match)


def match(  # noqa: PLR0913 - the options of the command
    query: QueryArgument,
    data: DataArgument,
    out: Annotated[
        Path | None, typer.Option(help="Write the matches: .parquet, .arrow, .jsonl or .csv.", metavar="FILE")
    ] = None,
    language: LanguageOption = None,
    engine: Annotated[Engine, typer.Option(help="Run in this process, or on Spark.")] = Engine.embedded,
    type_: TypesOption = None,
    format: FormatOption = None,
    time: TimeOption = None,
    sequence: SequenceOption = None,
    stream: StreamOption = None,
    time_unit: TimeUnitOption = None,
    output: Annotated[
        Output, typer.Option(help="With the events of each variable, without, or only counts.")
    ] = Output.events,
    at_end: Annotated[
        AtEnd, typer.Option(help="Matches that wait for time to pass when DATA ends: they are complete, or left out.")
    ] = AtEnd.complete,
    timeouts: Annotated[
        bool,
        typer.Option(
            "--timeouts",
            help="With WITHIN: rows of partial matches as well, of first events whose window closed without a match.",
        ),
    ] = False,
    disorder: Annotated[
        str | None,
        typer.Option(
            help="Read DATA as a stream, row by row, whose events are late by at most so much: ticks, '5 s', or 'inf'.",
            metavar="SPAN",
        ),
    ] = None,
    speculation: Annotated[
        str | None,
        typer.Option(
            help="How far matches go ahead of what is certain, as --disorder; 'inf': they come at once. A column 'sign' says "
            "-1 where one is taken back.",
            metavar="SPAN",
        ),
    ] = None,
    late: Annotated[
        Late | None,
        typer.Option(help="With --disorder or --speculation: what becomes of events that come later still."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="How much may be listed: rows, bytes such as '2 GiB', or 'inf'. Without it a table that is shown may take a quarter "
            "of the memory; files and --json are written piece by piece, and have no bound.",
            metavar="AMOUNT",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    rows: Annotated[int, typer.Option(help="Print at most so many matches (0: all).", min=0, metavar="NUMBER")] = 20,
) -> None:
    """Find the complex events of QUERY in DATA."""
    import stretto
    from stretto.cli.files import bound_to, read_events, read_one, read_query, span_of, typed_columns
    from stretto.cli.output import give
    from stretto.languages.clauses import is_clause
    from stretto.matching.api.match import result_of

    text = read_query(query, language)
    column, types = typed_columns(type_ or ())
    roles: dict[str, Any] = {
        "type": column or None,
        "time": time,
        "sequence": sequence,
        "stream": stream,
        "time_unit": time_unit,
        "output": str(output),
        "at_end": str(at_end),
        "timeouts": timeouts,
    }
    allowed = _budget(budget, shown=out is None and not json)
    schema: pa.Schema
    tables: Iterable[pa.Table]
    if is_clause(text, language):
        if engine is Engine.spark or disorder is not None or speculation is not None or late is not None:
            raise OptionError(
                "a clause of MATCH_RECOGNIZE runs over files in this process: leave out --engine, --disorder, --speculation and "
                "--late; 'stretto run' reads streams"
            )
        events = read_one(data, format, types, "MATCH_RECOGNIZE")
        schema, tables = result_of(text, events, roles | {"type": column, "language": language, "budget": allowed})
        give(schema, tables, partial(_rows, noun="row"), out, json=json, rows=rows, time_unit=None)
        return
    compiled = stretto.compile(text, language=language)  # a wrong query is told before data is read
    if late is not None and disorder is None and speculation is None:
        raise OptionError("--late is for streams: give --disorder as well")
    if disorder is not None or speculation is not None:
        if engine is Engine.spark:
            raise OptionError("--disorder reads a stream in this process; on Spark, 'stretto run' reads streams")
        schema, tables = _as_stream(
            compiled,
            read_events(data, format, types),
            roles | {"budget": allowed, "disorder": span_of(disorder), "speculation": span_of(speculation)},
            late or Late.error,
        )
    elif engine is Engine.spark:
        if roles.pop("at_end") != AtEnd.complete:
            raise OptionError("--at-end drop is for matches in this process: leave out --engine")
        if types or format or any(one == "-" or one.endswith("=-") for one in data):
            raise OptionError(
                "--type column=…, --format and '-' are for files that are read in this process: leave out --engine"
            )
        schema, tables = _on_spark(compiled, data, roles | ({} if budget is None else {"budget": allowed}))
    else:
        files = read_events(data, format, types)
        schema, tables = result_of(bound_to(compiled, files, roles), files, roles | {"budget": allowed})
    told = partial(_counted, query=compiled, output=output, schema=schema, timeouts=timeouts)
    give(schema, tables, told, out, json=json, rows=rows, time_unit=time_unit)


def _budget(given: str | None, *, shown: bool) -> int | float | str | None:
    """What ``--budget`` says; a table that is shown is counted to its end, so that it has the bound of a list."""
    from stretto.budget import default_bytes
    from stretto.cli.files import budget_of

    if given is None:
        return f"{default_bytes():.0f} B" if shown else None
    return budget_of(given)


def _as_stream(
    query: Query, events: Source | dict[str, Source], roles: dict[str, Any], late: Late
) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The rows of files one after the other, as they came."""
    import stretto
    from stretto.matching.input.stream_union import STREAM_COLUMN, files_by_stream

    if isinstance(events, dict) and len(events) > 1:
        raise OptionError(
            "--disorder reads rows in the order in which they came, which the files of several streams do not say: give one file "
            "of all streams, and with --stream the column that tells them apart"
        )
    if isinstance(events, dict):
        roles = roles | {"stream": roles["stream"] or STREAM_COLUMN}
        events = files_by_stream(events, roles["stream"], set())
    matcher = stretto.Matcher(query, events.schema, late=str(late), **roles)
    schema = matcher.push(events.schema.empty_table()).schema

    def found() -> Iterator[pa.Table]:
        for piece in events.read(events.schema.names):
            yield matcher.push(piece)
        yield matcher.finish()
        if matcher.late:
            typer.echo(f"{matcher.late:,} late event{'' if matcher.late == 1 else 's'} left out", err=True)

    return schema, found()


def _on_spark(query: Query, data: list[str], roles: dict[str, Any]) -> tuple[pa.Schema, Iterable[pa.Table]]:
    from stretto import spark
    from stretto.cli.files import by_stream
    from stretto.spark.compat import to_arrow

    given = by_stream(data)
    if isinstance(given, list) and len(given) > 1:
        raise OptionError(
            "on Spark several files are a pattern in quotes, such as 'logs/*.parquet', or streams with names"
        )
    events = (
        {name: spark.read(files) for name, files in given.items()} if isinstance(given, dict) else spark.read(*given)
    )
    found = spark.match(events, query, **roles)
    table = to_arrow(found)
    return table.schema, [table]


def _rows(count: int, noun: str, plural: str = "") -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _counted(count: int, query: Query, output: Output, schema: pa.Schema, timeouts: bool) -> str:
    from stretto.query.totals import Totals

    if isinstance(query.parsed.asked, Totals):
        return _rows(count, "row")
    if schema.names[:1] == ["sign"]:
        return _rows(count, "change of matches", "changes of matches")
    if output is Output.summary:
        return _rows(count, "event that completes matches", "events that complete matches")
    if timeouts:
        return _rows(count, "row of matches and timeouts", "rows of matches and timeouts")
    return _rows(count, "match", "matches")
