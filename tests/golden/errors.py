"""The exact texts of errors: ``errors/*.txt``, a file for each thing that is read.

A case is the text, each line after ``> ``, and the error as it is printed; an empty line ends it. Texts are written anew by
``python -m tests.golden.errors``, for the difference to be read; a new case is its text alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stretto.dataflow import datalog
from stretto.errors import StrettoError
from stretto.languages import ceql, eql, match_recognize, sase
from stretto.languages.afa import read_fence, read_transfer, read_window
from stretto.matching.compiled import compile_query
from stretto.query.passes.bind_rows import bind
from tests.languages.test_afa import SCOPE

__all__ = ["FOLDER", "READERS", "cases_of", "error_of"]

FOLDER = Path(__file__).parent / "errors"

#: What the goals of the Datalog programs name.
SOURCES = {
    "link": {"src": str, "dst": str},
    "road": {"src": str, "dst": str, "cost": int},
    "size": {"id": int, "size": float},
    "seen": {"id": int, "ok": bool},
}

#: The rows of MATCH_RECOGNIZE clauses.
ROWS = pa.schema(
    {
        "symbol": pa.string(),
        "day": pa.timestamp("s"),
        "price": pa.float64(),
        "tax": pa.float64(),
        "size": pa.int64(),
        "Open": pa.bool_(),
        "open": pa.bool_(),
        "tags": pa.list_(pa.string()),
        "address": pa.struct([("city", pa.string()), ("Zip", pa.int64()), ("zip", pa.int64())]),
    }
)


#: The events of EQL queries.
EVENTS = pa.schema(
    {
        "type": pa.string(),
        "at": pa.timestamp("ms"),
        "host.name": pa.string(),
        "process.name": pa.string(),
        "process.pid": pa.int64(),
        "tags": pa.list_(pa.string()),
        "address": pa.struct([("city", pa.string()), ("Zip", pa.int64()), ("zip", pa.int64())]),
    }
)


#: The events of counts and sums.
VALUES = pa.schema(
    {
        "type": pa.string(),
        "at": pa.timestamp("ms"),
        "name": pa.string(),
        "volume": pa.int64(),
        "weight": pa.float64(),
        "wide": pa.decimal128(30, 2),
        "flag": pa.bool_(),
        "tags": pa.list_(pa.string()),
    }
)


def _transfer(text: str) -> Any:
    """A transfer as text, or as the dict that a JSON object stands for."""
    return read_transfer(json.loads(text) if text.startswith("{") else text, SCOPE)


#: What reads the texts of a file.
READERS: dict[str, Callable[[str], Any]] = {
    "ceql": ceql.parse,
    "sase": sase.parse,
    "eql": eql.parse,
    "eql_binding": lambda text: compile_query(text, EVENTS, time="at", language="eql"),
    "totals_binding": lambda text: compile_query(text, VALUES, time="at"),
    "match_recognize": lambda text: bind(match_recognize.parse(text), ROWS),
    "datalog": lambda text: datalog(text, SOURCES),
    "afa_fences": lambda text: read_fence(text, SCOPE),
    "afa_epsilon_fences": partial(read_fence, scope=SCOPE, epsilon=True),
    "afa_transfers": _transfer,
    "afa_windows": read_window,
}


def cases_of(path: Path) -> Iterator[tuple[str, str]]:
    """The cases of a file: text and error."""
    text: list[str] = []
    error: list[str] = []
    for line in [*path.read_text(encoding="utf-8").split("\n"), ">"]:
        if not line.startswith(">"):
            error.append(line)
            continue
        if error:
            yield "\n".join(text), "\n".join(error).rstrip("\n")
            text, error = [], []
        text.append(line[2:])


def error_of(name: str, text: str) -> StrettoError:
    """The error of a text in a file of this name."""
    with pytest.raises(StrettoError) as caught:
        READERS[name](text)
    return caught.value


def main() -> None:
    for name in READERS:
        path = FOLDER / f"{name}.txt"
        written = []
        for text, _ in cases_of(path):
            quoted = [f"> {line}" if line else ">" for line in text.split("\n")]
            written.append("\n".join([*quoted, str(error_of(name, text))]) + "\n")
        path.write_text("\n".join(written), encoding="utf-8")


if __name__ == "__main__":
    main()
