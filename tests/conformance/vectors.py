"""Reading the conformance vectors (``*.toml``)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Vector:
    """One case: ``events`` is a row of words ``TYPE[@time][/key][=value]``; ``-`` is NULL."""

    name: str
    language: str
    text: str
    table: pa.Table
    expect: list[tuple[int, int, tuple[int, ...]]]
    unordered: bool

    @property
    def time(self) -> str | None:
        """The column that orders the stream; CEQL's vectors are in arrival order and name it in their windows."""
        return "t" if self.language == "sase" else None


def vectors() -> list[Vector]:
    """All vectors, in order of files and of writing."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]:
            expect = sorted((start, end, tuple(positions)) for start, end, positions in case["expect"])
            language = "sase" if "sase" in case else "ceql"
            found.append(
                Vector(
                    case["name"], language, case[language], table(case["events"]), expect, case.get("unordered", False)
                )
            )
    return found


WORD = re.compile(r"(?P<type>[^@/=]+)(@(?P<t>-?\d+))?(/(?P<k>-|\d+))?(=(?P<v>-|-?\d+))?$")


def table(words: str) -> pa.Table:
    """Events from words. Without ``@`` an event's time is its position."""
    rows = []
    for position, word in enumerate(words.split()):
        found = WORD.match(word)
        assert found, word
        rows.append(
            {
                "type": found["type"],
                "t": position if found["t"] is None else int(found["t"]),
                "k": _number(found["k"]),
                "v": _number(found["v"]),
                "n": position,
            }
        )
    kinds = {"type": pa.string(), "t": pa.int64(), "k": pa.int64(), "v": pa.int64(), "n": pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def _number(text: str | None) -> int | None:
    return None if text in (None, "-") else int(text)
