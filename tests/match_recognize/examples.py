"""The examples of ``*.toml``: a query, its tables, and the rows or the error that it must give."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).parent

_TYPES = {
    "timestamp": pa.timestamp("us"),
    "list<int64>": pa.list_(pa.int64()),
    "list<string>": pa.list_(pa.string()),
}


@dataclass(frozen=True)
class Example:
    """A case of a file."""

    name: str
    source: str
    query: str
    tables: dict[str, pa.Table]
    output: str | None
    expected: str | None
    error: str | None
    refused: str | None = None  #: the error of all but the definition: the engine does not take the clause
    further: bool = False  #: a further variant of the example before

    def check(self, found: pa.Table) -> None:
        """The rows are the expected ones, with their columns' names and types."""
        assert self.expected is not None, f"an error with '{self.error}' was expected"
        columns = [f"{own.name.replace(' ', '_')}:{_named(own.type)}" for own in found.schema]
        assert columns == str(self.output).split()
        rows = [" ".join(map(_shown, row.values())) for row in found.to_pylist()]
        assert Counter(rows) == Counter(self.expected.strip().splitlines())


def examples() -> list[Example]:
    """All examples of all files."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        file = tomllib.loads(path.read_text(encoding="utf-8"))
        tables = {name: _table(one["columns"], one["rows"]) for name, one in file["tables"].items()}
        for case in file["case"]:
            own = {name: table for name, table in tables.items() if name in case["query"]}
            asked = case["query"]
            texts = [(f": {text}", asked.replace("{}", text), rows) for text, rows in case.get("variants", {}).items()]
            for at, (text, query, rows) in enumerate(texts or [("", asked, case.get("expected"))]):
                parts = (case.get("output"), rows, case.get("error"), case.get("refused"))
                found.append(Example(case["name"] + text, case["source"], query, own, *parts, further=at > 0))
    return found


def _table(columns: str, rows: str) -> pa.Table:
    schema = pa.schema([(name, _type(kind)) for name, kind in (one.split(":") for one in columns.split())])
    values = [[None if cell == "-" else cell for cell in line.split()] for line in rows.strip().splitlines()]
    texts = {name: pa.array([row[i] for row in values], pa.string()) for i, name in enumerate(schema.names)}
    return pa.table(texts).cast(schema)


def _type(name: str) -> pa.DataType:
    return _TYPES.get(name) or pa.type_for_alias(name)


def _named(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list<{_named(kind.value_type)}>"
    return "timestamp" if pa.types.is_timestamp(kind) else {"date32[day]": "date32"}.get(str(kind), str(kind))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    if isinstance(value, dt.datetime):
        value = value.replace(tzinfo=None)  # Spark makes instants of times without a zone
    return value.isoformat() if isinstance(value, dt.date) else str(value)
