"""Reading the conformance vectors (``*.toml``).

A case has events, a query in one language (``ceql``, ``sase``, ``eql``, ``afa``) and what it must give. Events are words
``[-]TYPE[@time][/key][=value]`` in the order in which they arrive; ``-`` before one takes an earlier event back, and as a key or a
value it is NULL. Without ``@`` an event's time is its position.

``expect`` lists ``[start, end, [positions]]``, for an automaton ``[start, end, [register]]``, where positions are places in order of
arrival and the order of matches does not matter. For events that arrive out of order or are taken back it is what remains in the end;
``changes`` may then list ``[sign, start, end, [...]]`` of every event, in order. An automaton is a table: ``arcs`` are lines
``p -> q [when …] [then …]``, ``p => q …`` (an ε-arc) and ``p [when …]`` (what is ignored there); ``final`` names states.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

import stretto

__all__ = ["KINDS", "Row", "Vector", "vectors"]

FOLDER = Path(__file__).parent

#: Start, end, and positions or register.
Row = tuple[int, int, tuple[Any, ...]]

#: What an event has; ``n`` is its position.
KINDS = {"type": pa.string(), "t": pa.int64(), "k": pa.int64(), "v": pa.int64(), "n": pa.int64(), "sign": pa.int8()}


@dataclass(frozen=True)
class Vector:
    """One case; equal ones are the same."""

    name: str
    language: str
    query: Any  #: a text, a query of EQL, or an automaton's table
    table: pa.Table  #: in order of arrival
    expect: list[Row]
    changes: list[list[tuple[int, int, int, tuple[Any, ...]]]] | None

    @property
    def time(self) -> str | None:
        """The column that orders the stream; most of CEQL's vectors are in arrival order and name it in their windows."""
        arrival = self.language == "ceql" and self.ordered and " OVER " not in self.query
        return None if arrival else "t"

    @property
    def signed(self) -> bool:
        """Whether events are taken back."""
        return -1 in self.table.column("sign").to_pylist()

    @property
    def ordered(self) -> bool:
        """Whether events come in the order of their times, and none is taken back."""
        times = self.table.column("t").to_pylist()
        return times == sorted(times) and not self.signed

    @property
    def events(self) -> pa.Table:
        """The events as an engine that takes none back reads them."""
        return self.table.drop_columns(["sign"])

    @cached_property
    def bound(self) -> Any:
        """A text, compiled and checked against the columns."""
        if self.language == "eql":
            return self.query.bound
        return stretto.compile(self.query, self.events.schema, time=self.time).bound

    @cached_property
    def automaton(self) -> Any:
        """An automaton's table as an automaton."""
        made = stretto.AFA(
            {"type": str, "v": int}, {name: {"int": int, "str": str}[kind] for name, kind in self.query["register"].items()}
            if "register" in self.query else None, window=self.query.get("window"),
        )  # fmt: skip
        for line in self.query["arcs"]:
            found = ARC.match(line)
            assert found, line
            given = {name: text for name in ("when", "then") if (text := found[name])}
            if found["arrow"] is None:
                made = made.ignore(found["source"], **given)
            else:
                made = (made.arc if found["arrow"] == "->" else made.epsilon)(found["source"], found["target"], **given)
        for state in self.query["final"]:
            name, _, emit = state.partition(" ")
            made = made.final(name, emit=emit or "every")
        return made


ARC = re.compile(r"(?P<source>\w+)( (?P<arrow>->|=>) (?P<target>\w+))?( when (?P<when>.*?))?( then (?P<then>.*))?$")


def vectors() -> list[Vector]:
    """All vectors, in order of files and of writing."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]:
            [language] = {"ceql", "sase", "eql", "afa"} & case.keys()
            expect = sorted((start, end, tuple(held)) for start, end, held in case["expect"])
            changes = case.get("changes") and [
                sorted((sign, start, end, tuple(held)) for sign, start, end, held in step) for step in case["changes"]
            ]
            query = case[language] if language != "eql" else eql(case[language])
            found.append(Vector(case["name"], language, query, table(case["events"]), expect, changes))
    return found


def eql(text: str) -> stretto.Query:
    """A query of EQL, whose times are seconds."""
    schema = pa.schema({name: kind for name, kind in KINDS.items() if name != "sign"})
    return stretto.compile(text, schema, time="t", time_unit="s", language="eql")


WORD = re.compile(r"(?P<sign>-)?(?P<type>[^@/=-]+)(@(?P<t>-?\d+))?(/(?P<k>-|\d+))?(=(?P<v>-|-?\d+))?$")


def table(words: str) -> pa.Table:
    """Events from words."""
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
                "sign": -1 if found["sign"] else 1,
            }
        )
    return pa.Table.from_pylist(rows, schema=pa.schema(KINDS))


def _number(text: str | None) -> int | None:
    return None if text in (None, "-") else int(text)
