"""``stretto explain``: what a query means and how it runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.options import QueryArgument, StreamOption, TimeOption, TimeUnitOption, TypesOption
from stretto.cli.sql import tables_of
from stretto.errors import OptionError

if TYPE_CHECKING:
    from stretto.asking.explanation import Explanation
    from stretto.matching.compiled import Query
    from stretto.matching.input.files import Source
    from stretto.matching.sql.compiled import SqlQuery
    from stretto.query.afa import Afa


class Explained(StrEnum):
    """The languages of what is explained."""

    ceql = "ceql"
    sase = "sase"
    eql = "eql"
    afa = "afa"


EXPLAINED_HELP = (
    "The query's language, where its first word does not tell: ceql, sase or eql; afa: the text of an automaton."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(  # noqa: PLR0913 - the options of the command
    query: QueryArgument,
    data: Annotated[
        list[str] | None, typer.Argument(help="Events to check it against, as for match.", metavar="DATA")
    ] = None,
    type_: TypesOption = None,
    time: TimeOption = None,
    stream: StreamOption = None,
    time_unit: TimeUnitOption = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="A table of a SQL statement with MATCH_RECOGNIZE, as for sql.", metavar="NAME=FILES"),
    ] = None,
    language: Annotated[Explained | None, typer.Option(help=EXPLAINED_HELP)] = None,
    counts: Annotated[
        bool,
        typer.Option("--counts", help="Read DATA, and count the events that complete each step, or get to each state."),
    ] = False,
    sequence: Annotated[
        str | None, typer.Option(help="Column that orders events of one time, for --counts.", metavar="COLUMN")
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            help="Draw the automaton, with --counts the steps with their numbers: .svg, .png, .pdf or .dot.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Show what QUERY means and how it runs.

    It is CEQL, SASE+, EQL, SQL with MATCH_RECOGNIZE, or an automaton (TOML or JSON).
    """
    import stretto
    from stretto.cli.files import bound_to, read_events, read_one, read_query, read_statement_text, typed_columns
    from stretto.explaining.afa import draw_afa, explain_afa
    from stretto.languages.clauses import has_clause
    from stretto.matching.pattern_set.afa_run import of_what_it_reads
    from stretto.query.afa import Afa

    if counts and not data:
        raise OptionError("--counts needs events: stretto explain QUERY DATA --counts")
    text = read_statement_text(query) if language is None and has_clause(query) else read_query(query, language)
    compiled: Afa | Query | SqlQuery
    found: Explanation | None = None
    events: Source | dict[str, Source] | None = None
    if language is None and has_clause(text):
        if counts:
            raise OptionError("--counts is for CEQL, SASE+, EQL and automata, and this is SQL with MATCH_RECOGNIZE")
        if data:
            raise OptionError(
                f"a SQL statement names its tables: --table {data[0] if '=' in data[0] else f'name={data[0]}'}"
            )
        compiled = stretto.compile_sql(text, time_unit=time_unit, **tables_of(table or ()))
    else:
        column, types = typed_columns(type_ or ())
        if language is Explained.afa:
            one = events = read_one(data, None, types, "an automaton") if data else None
            compiled = of_what_it_reads(stretto.read_afa(text, None if one is None else one.schema))
        else:
            roles = {
                "type": column or None,
                "time": time,
                "sequence": sequence,
                "stream": stream,
                "time_unit": time_unit,
            }
            compiled = stretto.compile(text, language=language)
            events = read_events(data, None, types) if data else None
            compiled = compiled if events is None else bound_to(compiled, events, roles)
        if counts:
            found = stretto.explain(compiled, events, time=time, sequence=sequence)
    typer.echo(found or (explain_afa(compiled) if isinstance(compiled, Afa) else compiled.explain()))
    if draw is not None:
        automaton = draw_afa(compiled) if isinstance(compiled, Afa) else compiled.draw()
        (automaton if found is None else found.draw()).save(draw)
        typer.echo(f"automaton drawn to {draw}", err=True)
