"""Rules as rows of a table: what its cells are as keys of a rule file, and where something is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from stretto.errors import OptionError, hinted, suggestion
from stretto.events import as_table
from stretto.matching.input.files import kind_of, open_files
from stretto.pipelines.documents import File, Form, Text
from stretto.pipelines.places import Path as KeyPath
from stretto.pipelines.problems import Problem
from stretto.pipelines.rules import model

#: The keys of a rule that are columns; tests are in rule files only.
COLUMNS = tuple(name for name in model.Rule.model_fields if name != "test")


class Rows(File):
    """A table as a rule file: where something stands is a row and a column."""

    def __init__(self, name: str) -> None:
        super().__init__(name, Path(), "", Form("a table of rules"))

    def problem(self, path: KeyPath, message: str, hint: str | None = None, *, at_key: bool = False) -> Problem:
        """A mistake in a cell, or in a whole row."""
        return Problem(self.name, message, hint=hint, part=self.where(path))

    def label(self, path: KeyPath) -> str:
        """A column, or what a whole row is."""
        return ".".join(map(str, path[2:])) or "the rule"

    def where(self, path: KeyPath) -> str:
        """In which row."""
        return f"row {path[1]}"

    def text_at(self, path: KeyPath, value: str) -> Text:
        """The text of a cell."""
        return Text(value, self.name, value, range(len(value) + 1), f"{self.where(path)}, {path[-1]}")


def is_table(rules: Any) -> bool:
    """Whether rules are given as a table: one in memory, or files that hold one."""
    if not isinstance(rules, str | Path):
        return True
    path = Path(rules)
    if path.is_dir():
        return not any(path.rglob("*.toml")) and any(kind_of(one) is not None for one in path.rglob("*"))
    return kind_of(path) is not None


def rows_of(rules: Any, problems: list[Problem]) -> tuple[Rows, Iterator[dict[str, Any]]]:
    """The rows of a table of rules as tables of a rule file; cells without a value are left out.

    Raises
    ------
    OptionError
        There is no such file, or no column ``id`` or ``query``.
    DataError
        It is no table.
    """
    path = isinstance(rules, str | Path)
    table = open_files(rules).table() if path else as_table(rules)
    file = Rows(str(rules) if path else "the table of rules")
    for name in ("id", "query"):
        if name not in table.column_names:
            told = f"{file.name} has no column '{name}', which rules have"
            raise OptionError(hinted(told, name, table.column_names, kind="column"))
    for name in table.column_names:
        if name not in COLUMNS:
            problems.append(Problem(file.name, f"rules have no column '{name}'", hint=_instead(name)))
    known = table.select([name for name in table.column_names if name in COLUMNS])
    return file, _cells(known)


def _instead(name: str) -> str | None:
    if name in ("test", "tests"):
        return "tests are in rule files: [[rule.test]]"
    return suggestion(name, COLUMNS, kind="column")


def _cells(table: pa.Table) -> Iterator[dict[str, Any]]:
    for at, kind in enumerate(table.schema.types):
        if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
            table = table.set_column(at, table.column_names[at], table.column(at).cast(pa.string()))
    for row in table.to_pylist():
        given = {name: _cell(name, value) for name, value in row.items()}
        yield {name: value for name, value in given.items() if value is not None}


def _cell(name: str, value: Any) -> Any:
    """A cell as a rule file has it. Files of text guess types, and pandas makes whole numbers with gaps real ones."""
    if value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if name == "every" and isinstance(value, float) and value.is_integer():
        return int(value)
    if name == "tags" and isinstance(value, str):
        return [one.strip() for one in value.split(",") if one.strip()]
    if name in ("every", "enabled", "tags", "since", "until") or isinstance(value, bool):
        return value
    return str(value) if isinstance(value, int) else value
