"""``stretto explain``: what a query means and how it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.files import read_events, read_query
from stretto.compiling import compile_query

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(
    query: Annotated[str, typer.Argument(help="A file with the query, or the query itself.", metavar="QUERY")],
    data: Annotated[Path | None, typer.Argument(help="Events to check it against.", metavar="[DATA]")] = None,
    type_: Annotated[str, typer.Option("--type", help="Column of the event type ('' for none).")] = "type",
    time: Annotated[str | None, typer.Option(help="Column that orders the events.")] = None,
    stream: Annotated[str | None, typer.Option(help="Column that names an event's stream.")] = None,
    time_unit: Annotated[str | None, typer.Option(help="Unit of an integer time: s, ms, us, ns.")] = None,
    draw: Annotated[Path | None, typer.Option(help="Draw the automaton: .svg, .png, .pdf or .dot.")] = None,
) -> None:
    """Show what QUERY means and how it runs."""
    schema = None if data is None else read_events(data).schema
    compiled = compile_query(
        read_query(query), schema, type=type_ or None, time=time, stream=stream, time_unit=time_unit
    )
    typer.echo(compiled.explain())
    if draw is not None:
        compiled.draw().save(draw)
        typer.echo(f"automaton drawn to {draw}", err=True)
