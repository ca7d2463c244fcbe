"""The arguments and options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

#: The data or a test, the arguments, the text of a query.
FAILED, MISUSED, BAD_QUERY = 1, 2, 3


class Language(StrEnum):
    """The languages of queries on the command line."""

    ceql = "ceql"
    sase = "sase"
    eql = "eql"


class AtEnd(StrEnum):
    """What becomes of matches that wait for time to pass when the events end."""

    complete = "complete"
    drop = "drop"


class Format(StrEnum):
    """What files may be, whatever their names."""

    parquet = "parquet"
    csv = "csv"
    jsonl = "jsonl"
    arrow = "arrow"


def _units() -> list[str]:
    from stretto.views.table import UNITS

    return [*UNITS]


QueryArgument = Annotated[str, typer.Argument(help="A file with the query, or the query itself.", metavar="QUERY")]
DataArgument = Annotated[
    list[str],
    typer.Argument(
        help="Events: .parquet, .csv, .json(l) or .arrow files, a directory of them, a pattern with *, or - for the standard "
        "input. NAME=FILES is a stream with its name, as often as needed; with --type '' this is the type of its events.",
        metavar="DATA",
    ),
]
LanguageOption = Annotated[
    Language | None,
    typer.Option("--language", help="The query's language, where its first word does not tell: ceql, sase or eql."),
]
TypesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        help="Column of the event type ('' for none); or column=string, a column and its type, as often as needed.",
        metavar="COLUMN",
    ),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="What DATA is, whatever its name: parquet, csv, jsonl or arrow.")
]
TimeOption = Annotated[str | None, typer.Option("--time", help="Column that orders the events.", metavar="COLUMN")]
SequenceOption = Annotated[
    str | None, typer.Option("--sequence", help="Column that orders events of one time.", metavar="COLUMN")
]
StreamOption = Annotated[
    str | None, typer.Option("--stream", help="Column that names an event's stream.", metavar="COLUMN")
]
TimeUnitOption = Annotated[
    str | None,
    typer.Option("--time-unit", help="Unit of an integer time: s, ms, us, ns.", metavar="UNIT", autocompletion=_units),
]
