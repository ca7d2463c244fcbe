"""Reading queries and events from files, and writing matches to them."""

from __future__ import annotations

import atexit
import glob
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from stretto.errors import OptionError, suggestion
from stretto.languages.clauses import has_clause
from stretto.languages.sase import is_sase
from stretto.matching.compiled import Query, compile_query
from stretto.matching.input.files import Source, kind_of, open_files
from stretto.matching.input.stream_union import one_table


def read_query(argument: str, language: str | None = None) -> str:
    """The text of a query: from a file, or the argument itself when it is a query."""
    what = "a query (a query begins with SELECT or PATTERN; one of EQL needs --language eql)"
    text = _text_of(argument, what, "events: the query comes first, and then the data")
    if (
        text is argument
        and language is None
        and not (argument.lstrip()[:6].upper() == "SELECT" or is_sase(argument) or has_clause(argument))
    ):
        raise _neither(argument, what)
    return text


def read_statement_text(argument: str) -> str:
    """The text of a SQL statement: from a file, or the argument itself."""
    misplaced = f"rows: the statement comes first, and then --table name={argument}"
    return _text_of(argument, "a statement (a statement begins with SELECT or WITH)", misplaced)


def _text_of(argument: str, what: str, misplaced: str) -> str:
    """The argument where it is several words or the first one of a query, and no file; else what is in the file."""
    path, words = Path(argument), argument.split()
    begins = bool(words) and words[0].upper() in ("SELECT", "PATTERN", "WITH")
    if (len(words) > 1 or begins) and not (len(argument) < LONGEST_NAME and path.is_file()):
        return argument
    if kind_of(path) is not None:
        raise OptionError(f"'{argument}' holds {misplaced}")
    return _read_text(path, what)


#: Longer arguments are no names of files.
LONGEST_NAME = 256


def _neither(given: object, what: str) -> OptionError:
    return OptionError(f"'{given}' is neither a file nor {what}")


def _read_text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise _neither(path, what) from error
    except UnicodeDecodeError as error:
        raise OptionError(f"'{path}' is not UTF-8 text: {error}") from error


def read_events(
    data: Sequence[str], format: str | None, types: Mapping[str, pa.DataType]
) -> Source | dict[str, Source]:
    """Events from files, or by stream where these have names (``NAME=FILES``)."""
    given = by_stream(data)
    if isinstance(given, dict):
        return {name: _read_files([files], format, types) for name, files in given.items()}
    return _read_files(given, format, types)


def read_one(data: Sequence[str], format: str | None, types: Mapping[str, pa.DataType], what: str) -> Source:
    """Events from files for something that reads one table."""
    events = read_events(data, format, types)
    if isinstance(events, dict):
        raise OptionError(
            f"{what} reads one table, and '{data[0]}' is a stream with a name: leave out '{next(iter(events))}='"
        )
    return events


def _read_files(files: Sequence[str], format: str | None, types: Mapping[str, pa.DataType]) -> Source:
    """Files, or with ``-`` the standard input, which is put into a file first: its rows may be read twice."""
    if list(files) != ["-"]:
        return open_files(list(files), format=format, types=types)
    with tempfile.NamedTemporaryFile(prefix="stretto-", delete=False) as spool:
        atexit.register(Path(spool.name).unlink, missing_ok=True)
        shutil.copyfileobj(sys.stdin.buffer, spool)
    return open_files(spool.name, format=format or "csv", types=types)


def by_stream(data: Sequence[str]) -> dict[str, str] | list[str]:
    """The files of each stream, where DATA says ``NAME=FILES``; else the files as they are."""
    if data.count("-") + sum(one.endswith("=-") for one in data) > 1 or ("-" in data and len(data) > 1):
        raise OptionError("'-', the standard input, is one stream or all of DATA: give it once, alone or as NAME=-")
    unnamed = [one for one in data if not _has_name(one)]
    if len(unnamed) == len(data):
        return unnamed
    if unnamed:
        one = next(one for one in data if _has_name(one))
        raise OptionError(
            f"'{unnamed[0]}' has no name, and '{one}' has one: give each stream its name, NAME={unnamed[0]}, or none"
        )
    return named_files(data, "stream")


def _has_name(given: str) -> bool:
    """Whether this is ``NAME=FILES`` and no path, such as ``year=2024`` or ``logs/day=1``."""
    name, equals, _ = given.partition("=")
    return bool(equals) and not {"/", os.sep} & set(name) and not Path(given).exists() and not glob.glob(given)


def named_files(given: Sequence[str], kind: str, option: str = "") -> dict[str, str]:
    """The files by their names, of what was given as ``NAME=FILES``; ``kind`` is what the names are of."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, files = one.partition("=")
        if not (name and equals and files):
            raise OptionError(f"{option}{one}: give a name and files, such as {option}events=events.parquet")
        if name in found:
            raise OptionError(
                f"{option}{one}: there is a {kind} '{name}' already; one {kind} of many files is a folder or a pattern"
            )
        found[name] = files
    return found


def bound_to(query: Query, events: Source | dict[str, Source], roles: Mapping[str, Any]) -> Query:
    """The query with the columns of files, whose roles are those of :func:`stretto.match`."""
    named = {name: roles[name] for name in ("type", "time", "stream", "time_unit")}
    if not isinstance(events, dict):
        return compile_query(query, events.schema, **named)
    type, time, stream, time_unit = query.roles(*named.values())
    empty = {name: event.schema.empty_table() for name, event in events.items()}
    table, stream = one_table(query, empty, type, time, roles.get("sequence"), stream)
    return compile_query(query, table.schema, type=type, time=time, stream=stream, time_unit=time_unit)


def budget_of(given: str | None) -> int | float | str | None:
    """What ``--budget`` says: rows, bytes, or no bound."""
    text = (given or "").strip().lower()
    return math.inf if text == "inf" else int(text) if text.isdecimal() else given


def span_of(given: str | None) -> Any:
    """A span of time as it is written on the command line."""
    if given is None or given.strip() == "inf":
        return given and math.inf
    return int(given) if given.strip().lstrip("+-").isdigit() else given


def typed_columns(given: Sequence[str]) -> tuple[str, dict[str, pa.DataType]]:
    """What ``--type`` said: the column of the event type, and the types of columns (``column=type``)."""
    column, types = "type", {}
    for one in given:
        name, equals, kind = one.rpartition("=")
        if not equals:
            column = one
            continue
        try:
            types[name] = pa.type_for_alias(kind)
        except ValueError as error:
            hint = suggestion(kind, ("string", "int64", "float64", "bool", "timestamp[us]", "date32"), kind="type")
            raise OptionError(
                f"--type {one}: '{kind}' is not an Arrow type; {hint or 'try string, int64, float64 or timestamp[us]'}"
            ) from error
    return column, types


def _kind(path: Path) -> str:
    return kind_of(path) or path.suffix.removeprefix(".").lower()


def write_matches(tables: Iterable[pa.Table], schema: pa.Schema, path: Path) -> int:
    """Write matches piece by piece, by the file's ending: ``.parquet``, ``.arrow``, ``.jsonl`` or ``.csv``. Gives the rows."""
    kind = _kind(path)
    rows = 0
    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(path, schema) as parquet:
            for table in tables:
                parquet.write_table(table)
                rows += table.num_rows
    elif kind == "arrow":
        with pa.ipc.new_file(path, schema) as arrow:
            for table in tables:
                arrow.write_table(table)
                rows += table.num_rows
    elif kind == "json":
        with path.open("w", encoding="utf-8") as stream:
            for table in tables:
                for row in table.to_pylist():
                    stream.write(as_json(row) + "\n")
                rows += table.num_rows
    elif kind == "csv":
        from pyarrow import csv

        with csv.CSVWriter(path, pa.schema([pa.field(f.name, _flat(f.type)) for f in schema])) as writer:
            for table in tables:
                writer.write_table(flatten(table))
                rows += table.num_rows
    else:
        raise OptionError(f"cannot write '{path.name}': end it in .parquet, .arrow, .jsonl or .csv")
    return rows


def as_json(row: dict[str, Any]) -> str:
    """One match as a line of JSON; times in ISO form."""
    return json.dumps(row, ensure_ascii=False, default=str)


def _flat(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_nested(kind) else kind


def flatten(table: pa.Table) -> pa.Table:
    """The table with nested columns as JSON text, for formats that have none."""
    columns = {}
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_nested(field.type):
            text = [json.dumps(value, ensure_ascii=False, default=str) for value in column.to_pylist()]
            column = pa.array(text, pa.string())
        columns[field.name] = column
    return pa.table(columns)
