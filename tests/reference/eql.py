"""EQL by its definition (``docs/semantics.md``, EQL): slow, and the judge of the engine.

A partial match of a sequence is a tuple of rows. Those of step j are listed for each event by itself, from the list of step j−1;
nothing is kept from one event to the next. Of joins, what the steps of a key hold is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from stretto.query.eql import Mode, Pipe, Step
from stretto.query.evaluate import holds
from stretto.query.passes.bind import number
from stretto.query.passes.bind_eql import BoundEql

Row = Mapping[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class EqlMatch:
    """The rows of a match, in the order of the steps; of sequences that is the order of the stream."""

    rows: tuple[int, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The rows in the order of the stream, each once."""
        return tuple(sorted(set(self.rows)))

    @property
    def start(self) -> int:
        return self.positions[0]

    @property
    def end(self) -> int:
        return self.positions[-1]


def evaluate_eql(query: BoundEql, events: pa.Table) -> list[EqlMatch]:
    """Every match over a table whose rows are in stream order, by their ends; without what the query's pipes do.

    A missing event at the end is decided by the rows that there are.
    """
    found = _Stream(query, events.to_pylist())
    match query.parsed.mode:
        case Mode.SAMPLE:
            matches = found.samples()
        case Mode.JOIN:
            matches = found.joins()
        case _:
            matches = found.sequences()
    return sorted(map(EqlMatch, matches), key=lambda match: (match.end, match.positions))


def pipe_eql(query: BoundEql, events: pa.Table, matches: Sequence[EqlMatch]) -> list[EqlMatch]:
    """What the query's pipes make of its matches, one pipe after the other."""
    rows, found = events.to_pylist(), list(matches)

    def read(pipe: Pipe, match: EqlMatch) -> Row:
        return {shown: rows[match.rows[number]].get(field.name) for shown, (number, field) in pipe.reads.items()}

    for pipe in query.pipes:
        values = [tuple(map(_ranked, read(pipe, match).values())) for match in found]
        match pipe.name:
            case "head":
                found = found[: pipe.most]
            case "tail":
                found = found[-pipe.most :]
            case "filter":
                assert pipe.condition is not None
                found = [match for match in found if holds(pipe.condition, read(pipe, match))]
            case "sort":
                found = [found[at] for at in sorted(range(len(found)), key=values.__getitem__)]
            case "unique":
                found = [match for at, match in enumerate(found) if values[at] not in values[:at]]
    return found


def _ranked(value: Any) -> tuple[int, Any]:
    """A value with its place in the order: NULL first, NaN last."""
    if value is None:
        return 0, 0
    return (2, 0) if value != value else (1, value)


class _Stream:
    """The rows, and for each step the keys of those that fulfil it."""

    def __init__(self, query: BoundEql, rows: Sequence[Row]) -> None:
        self.query, self.rows = query, rows
        steps, asked = query.parsed.stages, query.conditions
        self.keys = {
            step.variable: {
                at: key
                for at, row in enumerate(rows)
                if self._is(step, row, condition) and (key := _key(step, row)) is not None
            }
            for step, condition in zip(query.parsed.whole, asked, strict=True)
        }
        self.come = [step for step in steps if not step.missing]
        self.missing = [
            (sum(not one.missing for one in steps[:at]), step) for at, step in enumerate(steps) if step.missing
        ]

    def _is(self, step: Step, row: Row, condition: Any) -> bool:
        schema = self.query.schema
        column = schema.type or schema.stream
        kind = "" if column is None else row[column]
        return (step.category is None or kind == step.category) and holds(condition, row)

    def sequences(self) -> Iterator[tuple[int, ...]]:
        partial: list[tuple[int, ...]] = []
        for at, step in enumerate(self.come):
            own = self.keys[step.variable]
            if not at:
                partial = [(row,) for row in own]
                continue
            partial = [
                (*taken, row)
                for row, key in own.items()
                if (taken := self._taken(partial, row, key, at)) is not None
                and self._in_time(taken[0], row)
                and not any(taken[-1] <= one < row for one in self._with_key("until", key))
            ]
        yield from (rows for rows in partial if not any(self._came(rows, after, step) for after, step in self.missing))

    def _taken(self, partial: Iterable[tuple[int, ...]], row: int, key: Key, at: int) -> tuple[int, ...] | None:
        """The latest partial match before an event, unless an event of the same step has come after it."""
        before = self.keys[self.come[at - 1].variable]
        latest = max(
            (one for one in partial if one[-1] < row and before[one[-1]] == key), key=lambda one: one[-1], default=None
        )
        if latest is None or any(latest[-1] < one < row for one in self._with_key(self.come[at].variable, key)):
            return None
        return latest

    def _with_key(self, variable: str, key: Key) -> list[int]:
        return [row for row, own in self.keys.get(variable, {}).items() if own == key]

    def _came(self, rows: tuple[int, ...], after: int, step: Step) -> bool:
        """Whether an event came that must not, behind so many events of a match."""
        key = self.keys[self.come[0].variable][rows[0]]
        seen = self._with_key(step.variable, key)
        if after == len(rows):
            return any(one > rows[-1] and self._in_time(rows[0], one) for one in seen)
        if not after:
            return any(one < rows[0] and self._in_time(one, rows[-1]) for one in seen)
        return any(rows[after - 1] < one < rows[after] for one in seen)

    def _in_time(self, first: int, last: int) -> bool:
        window = self.query.window
        if window is None:
            return True
        name = window.attribute
        assert name is not None
        early, late = (number(self.rows[at][name], self.query, name) for at in (first, last))
        return bool(late - early <= window.size)

    def samples(self) -> Iterator[tuple[int, ...]]:
        done: set[Key] = set()
        for last in range(len(self.rows)):
            for key in dict.fromkeys(own[last] for step in self.come if last in (own := self.keys[step.variable])):
                if key in done:
                    continue
                seen = [[row for row in self._with_key(step.variable, key) if row <= last] for step in self.come]
                chosen = next((rows for rows in product(*seen) if len(set(rows)) == len(rows)), None)
                if chosen is not None:
                    done.add(key)
                    yield chosen

    def joins(self) -> Iterator[tuple[int, ...]]:
        held: defaultdict[Key, dict[str, int]] = defaultdict(dict)
        for row in range(len(self.rows)):
            ended = self.keys.get("until", {}).get(row)
            if ended is not None:
                held.pop(ended, None)
            for step in self.come:
                key = self.keys[step.variable].get(row)
                if key is None:
                    continue
                held[key].setdefault(step.variable, row)
                if len(held[key]) == len(self.come):
                    found = held.pop(key)
                    yield tuple(found[one.variable] for one in self.come)


def _key(step: Step, row: Row) -> Key | None:
    """The key of an event at a step; ``None``: it has none. Keys are equal as values, NaN as well."""
    found = []
    for key in step.keys:
        value = row.get(key.name)
        if value is None and not key.optional:
            return None
        found.append("NaN" if isinstance(value, float) and value != value else (value,))
    return tuple(found)
