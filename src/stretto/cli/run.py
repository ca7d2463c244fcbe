"""``stretto run``: a whole pipeline from a TOML file."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from stretto.cli.options import FAILED
from stretto.errors import OptionError, QueryError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    file: Annotated[Path, typer.Argument(help="The pipeline: a TOML file.", metavar="PIPELINE")],
    check: Annotated[bool, typer.Option("--check", help="Only check the file, its queries and rules.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Streaming: end when all that is there has been matched.")
    ] = False,
) -> None:
    """Run the pipeline of a TOML file, batch or streaming, on Spark."""
    try:
        from stretto import pipelines
        from stretto.pipelines.reloading import tell_of_rules
        from stretto.pipelines.updates import display
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs the package {error.name}: pip install 'stretto[spark]'") from error
    try:
        plan = pipelines.load(file)
        if check:
            wrong = tell_of_rules(plan)
            told = f"; {wrong:,} mistake{'' if wrong == 1 else 's'} in its rules" if wrong else ""
            typer.echo(f"{file} is well formed: {_counted(plan)}{told}")
            raise typer.Exit(FAILED if wrong else 0)
        with _terminable(), display() as show:
            pipelines.run(plan, once=once, report=show)
    except pipelines.PipelineError as error:
        if error.in_queries:  # a code of its own
            raise QueryError(str(error)) from error
        raise


def _counted(plan: Any) -> str:
    parts = [(plan.sources, "source", "sources"), (plan.queries, "query", "queries")]
    parts += [(plan.rules, "folder of rules", "folders of rules"), (plan.sinks, "sink", "sinks")]
    names = [f"{len(those)} {one if len(those) == 1 else several}" for those, one, several in parts if those]
    return f"{', '.join(names)}, {plan.pipeline.mode}"


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends a pipeline as Ctrl-C does."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
