"""Reading queries and events from files, and writing matches to them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from stretto.errors import DataError, OptionError
from stretto.languages.sase import is_sase

__all__ = ["read_events", "read_query", "write_matches"]


def read_query(argument: str) -> str:
    """The text of a query: from a file, or the argument itself when it is a query."""
    path = Path(argument)
    begins_as_query = argument.lstrip()[:6].upper() == "SELECT" or is_sase(argument)
    if begins_as_query and not _names_a_file(argument):
        return argument
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise OptionError(
            f"'{argument}' is neither a file nor a query (a query begins with SELECT or PATTERN)"
        ) from error
    except UnicodeDecodeError as error:
        raise OptionError(f"'{argument}' is not UTF-8 text: {error}") from error


def _names_a_file(argument: str) -> bool:
    """Whether what begins as a query is a file's name all the same: ``pattern.sase``."""
    return len(argument) < 256 and not any(map(str.isspace, argument)) and Path(argument).is_file()


def read_events(path: Path) -> pa.Table:
    """Events from a Parquet, CSV or JSON-lines file (also compressed: ``.csv.gz``), by the file's ending."""
    kind = _kind(path)
    if not path.exists():
        raise OptionError(f"no such file: {path}")
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if kind == "csv":
            from pyarrow import csv

            return csv.read_csv(path)
        if kind in ("json", "jsonl", "ndjson"):
            from pyarrow import json as arrow_json

            return arrow_json.read_json(path)
        if kind in ("arrow", "feather"):
            from pyarrow import feather

            return feather.read_table(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: {error}") from error
    raise OptionError(f"cannot read '{path.name}': end it in .parquet, .csv, .json, .jsonl or .arrow")


def _kind(path: Path) -> str:
    suffixes = [suffix.removeprefix(".").lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in ("gz", "zst", "bz2", "lz4"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


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
    elif kind in ("json", "jsonl", "ndjson"):
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
