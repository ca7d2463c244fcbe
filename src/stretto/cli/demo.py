"""``stretto demo``: real delays in real flights, through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Draw the longest chain into this file (.png or .svg).", metavar="FILE")
    ] = None,
    flights: Annotated[
        Path | None, typer.Option(help="The flights, where this is no clone of the repository.", metavar="FILE")
    ] = None,
) -> None:
    """Find delays that aircraft carried from flight to flight in 2013. It runs on local Spark."""
    from stretto.demo import FLIGHTS, run

    run(out, flights=flights or FLIGHTS)
