"""``stretto studio``: a page in the browser to write queries and look at what they find."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.files import by_stream
from stretto.cli.options import LanguageOption, StreamOption, TimeOption, TimeUnitOption
from stretto.errors import OptionError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("studio")(studio)


def studio(
    data: Annotated[
        Path, typer.Argument(help="A file of events, or a folder with such files.", metavar="DATA")
    ] = Path(),
    type_: Annotated[
        str, typer.Option("--type", help="Column of the event type ('' for none).", metavar="COLUMN")
    ] = "type",
    time: TimeOption = None,
    stream: StreamOption = None,
    time_unit: TimeUnitOption = None,
    language: LanguageOption = None,
    rows: Annotated[int, typer.Option(help="How many events of a file are taken.", min=1, metavar="NUMBER")] = 100_000,
    seconds: Annotated[float, typer.Option(help="How long a query may run.", min=1, metavar="SECONDS")] = 30,
    port: Annotated[
        int, typer.Option(help="Port of this machine (0: any that is free).", min=0, max=65535, metavar="PORT")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Write queries in the browser, and look at what they find in DATA."""
    try:
        from stretto.studio.folder import Folder
        from stretto.studio.server import Studio, serve
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs the package {error.name}: pip install 'stretto[studio]'") from error
    if not data.exists():
        if isinstance(by_stream([str(data)]), dict):
            raise OptionError(
                f"the studio opens a file or a folder, and '{data}' is a stream with a name: leave the name out; SASE+ needs "
                "a column of types there"
            )
        raise OptionError(f"no such file or folder: {data}")
    folder = Folder(data if data.is_dir() else data.resolve().parent)
    roles = {
        "type": type_,
        "time": time,
        "stream": stream,
        "time_unit": time_unit,
        "language": None if language is None else str(language),
    }
    chosen = None if data.is_dir() else data.resolve().name
    made = Studio(folder, None if chosen is None else folder.data(chosen).name, roles, rows, seconds)
    serve(
        made,
        port,
        browser=browser,
        tell=lambda address: typer.echo(f"the studio is at {address} (^C ends it)", err=True),
    )
