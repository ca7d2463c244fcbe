"""``stretto why-not``: why a query has no match in files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stretto.cli.options import (
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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("why-not")(why_not)


def why_not(  # noqa: PLR0913 - the options of the command
    query: QueryArgument,
    data: DataArgument,
    key: Annotated[
        list[str] | None,
        typer.Option(
            help="Look only at this key: a value of the query's partition attribute, or column=value, once for each attribute.",
            metavar="VALUE",
        ),
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Look only at events of these times; '-' leaves a side open.", metavar="FROM TO"),
    ] = None,
    event: Annotated[
        int | None,
        typer.Option(
            help="Ask about this row, counted from 0: is it in a match, and if not, why?", min=0, metavar="ROW"
        ),
    ] = None,
    disorder: Annotated[
        str | None,
        typer.Option(
            help="The events are in the order in which they came, and what is later is left out: ticks, '5 s'.",
            metavar="SPAN",
        ),
    ] = None,
    most: Annotated[int, typer.Option(help="How many near misses to show.", min=1, metavar="NUMBER")] = 3,
    language: LanguageOption = None,
    type_: TypesOption = None,
    format: FormatOption = None,
    time: TimeOption = None,
    sequence: SequenceOption = None,
    stream: StreamOption = None,
    time_unit: TimeUnitOption = None,
) -> None:
    """Say why QUERY has no match in DATA. It shows the nearest misses, and what is in the way of each."""
    import stretto
    from stretto.cli.files import read_events, read_one, read_query, span_of, typed_columns
    from stretto.languages.clauses import has_clause
    from stretto.matching.compiled import compile_query

    text = read_query(query, language)
    compiled = text if has_clause(text) else compile_query(text, language=language)  # told before data is read
    column, types = typed_columns(type_ or ())
    pairs = [one.partition("=") for one in key or ()]
    keys: Any = {name: value for name, _, value in pairs} or None
    if len(pairs) == 1 and not pairs[0][1]:
        keys = pairs[0][0]
    times = None if between is None else (_bound(between[0]), _bound(between[1]))
    answer = stretto.why_not(
        compiled,
        read_one(data, format, types, "MATCH_RECOGNIZE") if has_clause(text) else read_events(data, format, types),
        key=keys,
        between=times,
        event=event,
        disorder=span_of(disorder),
        most=most,
        type=column or None,
        time=time,
        sequence=sequence,
        stream=stream,
        time_unit=time_unit,
    )
    typer.echo(str(answer))


def _bound(given: str) -> str | None:
    return None if given == "-" else given
