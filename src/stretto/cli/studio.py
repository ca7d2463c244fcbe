"""``stretto studio``: a page in the browser to write queries and look at what they find."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.options import LanguageOption, StreamOption, TimeOption, TimeUnitOption, TypesOption
from stretto.errors import OptionError


class Starting(StrEnum):
    """Where reading a topic begins."""

    earliest = "earliest"
    latest = "latest"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("studio")(studio)


def studio(  # noqa: PLR0913 - the options of the command
    data: Annotated[
        str,
        typer.Argument(
            help="A file of events, a folder with such files, or a topic: kafka://HOST:PORT/TOPIC.", metavar="DATA"
        ),
    ] = ".",
    type_: TypesOption = None,
    time: TimeOption = None,
    stream: StreamOption = None,
    time_unit: TimeUnitOption = None,
    language: LanguageOption = None,
    starting: Annotated[
        Starting,
        typer.Option(help="Of a topic: whether its first records are read, or its last ones and what comes then."),
    ] = Starting.earliest,
    options: Annotated[
        Path | None,
        typer.Option(help="Settings of Kafka's client, NAME=VALUE a line (librdkafka's names).", metavar="FILE"),
    ] = None,
    rows: Annotated[int, typer.Option(help="How many events of DATA are taken.", min=1, metavar="NUMBER")] = 100_000,
    seconds: Annotated[float, typer.Option(help="How long a query may run.", min=1, metavar="SECONDS")] = 30,
    port: Annotated[
        int, typer.Option(help="Port of this machine (0: any that is free).", min=0, max=65535, metavar="PORT")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Write queries in the browser, and look at what they find in DATA."""
    try:
        from stretto.cli.files import by_stream, typed_columns
        from stretto.studio.folder import Folder
        from stretto.studio.server import Studio, serve
        from stretto.studio.topic import KAFKA, Topic, options_of, require_client
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs the package {error.name}: pip install 'stretto[studio]'") from error
    column, known = typed_columns(type_ or [])
    types = {name: str(kind) for name, kind in known.items()}
    topic, path = None, Path(data)
    if data.startswith(KAFKA):
        require_client()
        given = {} if options is None else options_of(options)
        topic, path = Topic.of(data, starting=str(starting), types=types, options=given), Path()
    elif options is not None or starting != Starting.earliest:
        raise OptionError(f"--starting and --options are of a topic, {KAFKA}HOST:PORT/TOPIC, and '{data}' is none")
    elif not path.exists():
        if isinstance(by_stream([data]), dict):
            raise OptionError(
                f"the studio opens a file or a folder, and '{data}' is a stream with a name: leave the name out; SASE+ needs "
                "a column of types there"
            )
        raise OptionError(f"no such file or folder: {data}")
    folder = Folder(path if path.is_dir() else path.resolve().parent)
    roles = {
        "type": column,
        "time": time,
        "stream": stream,
        "time_unit": time_unit,
        "language": None if language is None else str(language),
    }
    chosen = topic.address if topic else None if path.is_dir() else folder.data(path.resolve().name).name
    made = Studio(folder, chosen, roles, types, topic, rows, seconds)
    serve(
        made,
        port,
        browser=browser,
        tell=lambda address: typer.echo(f"the studio is at {address} (^C ends it)", err=True),
    )
