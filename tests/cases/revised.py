"""Counts, sums, the best matches and samples ahead of what is certain: events come late, and rows are taken back and given anew."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import stretto
from stretto.errors import LimitError, OptionError, QueryError, StrettoError
from stretto.query.passes.bind_totals import BoundTotals
from stretto.times import ticks
from tests.cases import totals
from tests.cases.choices import Seeded
from tests.cases.totals import Case
from tests.reference.totals import Overflow, Undecided

__all__ = ["case", "check"]

#: What engines may refuse by name.
_REFUSED = (OptionError, QueryError, LimitError)

#: Which events come first where they have the same time.
NUMBER = "number of the event"


def case(seed: int) -> Case:
    """A case of counts, sums and choices from a seed, whose events have a time.

    >>> case(7).schema.time
    't'
    """
    kind = Seeded(seed).integer(0, 9)
    drawn = (totals.case_of_gaps if kind < 2 else totals.case_of_keys if kind < 3 else totals.case)(seed)
    return replace(drawn, schema=replace(drawn.schema, time=drawn.schema.time or "t"))


def check(one: Case, seed: int = 0) -> int:
    """Assert that the rows that are left are the reference's, whatever comes late, and at each step those of the events so far.

    Returns how many rows were taken back, and −1 where the query is refused by name, or has no answer.
    """
    choose = random.Random(seed)
    try:
        one.compiled.program(valuations=one.valuations)
        right = totals.expected(one)
    except (*_REFUSED, Undecided, Overflow):
        return -1
    arrived = _arrivals(choose, one)
    time = _times(arrived, one)
    late = (np.maximum.accumulate(time) - time).max().item() if time.size else 0
    ahead = choose.choice([0, 1, 3, 1000, math.inf, math.inf, math.inf])
    options: dict[str, Any] = {
        "sequence": NUMBER,
        "valuations": one.valuations,
        "speculation": ahead,
        "disorder": choose.choice([late, math.inf]),
        "capacity": choose.choice([1, 64]),
    }
    schema = replace(one.schema, attributes={**one.schema.attributes, NUMBER: pa.int64()})
    query = stretto.compile(one.query, schema)
    matcher = stretto.Matcher(query, **options)
    left = Left(one, arrived.column(NUMBER).to_pylist())
    begin = 0
    try:
        while begin < arrived.num_rows:
            end = min(begin + choose.randint(1, 4), arrived.num_rows)
            left.take(matcher.push(arrived.slice(begin, end - begin)))
            begin = end
            if choose.random() < 0.3:
                matcher = stretto.Matcher(query, **options).restore(matcher.snapshot())
            if begin < arrived.num_rows and choose.random() < 0.3:
                left.take(matcher.advance(pc.min(arrived.slice(begin).column(schema.time)).as_py()))
            if ahead == math.inf and choose.random() < 0.3:
                left.judge(_matched(query, arrived.slice(0, begin), one))
        left.take(matcher.finish())
    except StrettoError as error:
        if "valuations=True" in str(error) or "64 bits" in str(error):
            return -1  # of the events so far, or of a part
        raise
    assert ahead or not left.taken_back
    if isinstance(one.compiled.bound.asked, BoundTotals):
        rows = pa.Table.from_pylist(left.rows, left.schema)
        totals.assert_rows(one, rows.sort_by("window_start") if "window_start" in rows.column_names else rows, right)
    else:
        left.judge(_matched(query, arrived, one))
    return left.taken_back


class Left:
    """The rows that were given and not taken back, which name events by their numbers.

    Parameters
    ----------
    one
        The case.
    numbers
        The number of each event, as they come.
    """

    def __init__(self, one: Case, numbers: list[int]) -> None:
        self._one, self._numbers = one, numbers
        self.rows: list[dict[str, Any]] = []
        self.schema = pa.schema([])
        self.taken_back = 0

    def take(self, found: pa.Table) -> None:
        """A step: first what is taken back, of what is there, and then what is new, which is something else."""
        signed = "sign" in found.column_names
        signs = found.column("sign").to_pylist() if signed else [1] * found.num_rows
        assert signs == sorted(signs), f"\n{self._one!r}\n{found.to_pylist()}"
        found = found.drop_columns(["sign"]) if signed else found
        self.schema = found.schema
        rows = [numbered(row, self._numbers) for row in found.to_pylist()]
        gone = [row for row, sign in zip(rows, signs, strict=True) if sign < 0]
        new = [row for row, sign in zip(rows, signs, strict=True) if sign > 0]
        assert not {repr(row) for row in gone} & {repr(row) for row in new}, f"\n{self._one!r}\n{gone}\n{new}"
        there = [repr(row) for row in self.rows]
        for row in gone:
            assert repr(row) in there, f"\n{self._one!r}\ntaken back {row}\nof {there}"
            at = there.index(repr(row))
            del there[at], self.rows[at]
        self.rows += new
        self.taken_back += len(gone)

    def judge(self, right: list[dict[str, Any]]) -> None:
        """Assert that these rows are there, doubles but for their last digits."""
        totals.assert_alike(
            [tuple(row.values()) for row in right], [tuple(row.values()) for row in self.rows], self._one
        )


def numbered(row: dict[str, Any], numbers: list[int]) -> dict[str, Any]:
    """A row with the numbers of its events in place of their rows."""
    places: dict[str, Any] = {name: numbers[row[name]] for name in ("start", "end") if name in row}
    if "positions" in row:
        places["positions"] = tuple(sorted(numbers[at] for at in row["positions"]))
    return row | places


def _matched(query: stretto.Query, events: pa.Table, one: Case) -> list[dict[str, Any]]:
    """What a matcher gives of events in order."""
    events = events.sort_by(NUMBER)
    numbers = events.column(NUMBER).to_pylist()
    found = totals.fed(query, replace(one, events=events), [], [], capacity=64)
    return [numbered(row, numbers) for row in found.to_pylist()]


def _arrivals(choose: random.Random, one: Case) -> pa.Table:
    """The events as they come, each with its number."""
    events = one.events.append_column(NUMBER, pa.array(range(one.events.num_rows), pa.int64()))
    order = sorted(range(events.num_rows), key=lambda at: at + choose.choice([0, 0, 0, 2, 5]) * choose.random())
    return events.take(pa.array(order, pa.int64()))


def _times(events: pa.Table, one: Case) -> Any:
    """The times of events as ticks, or as doubles."""
    assert one.schema.time is not None
    times = events.column(one.schema.time).combine_chunks()
    return np.asarray(times) if pa.types.is_floating(times.type) else ticks(times, one.schema.time, 0)
