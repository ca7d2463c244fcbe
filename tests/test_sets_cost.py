"""A set of patterns does no more work than its patterns one by one: work is counted, not timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.engines.rows.runner import RowRun
from stretto.engines.totals.telling import Telling
from stretto.matching.many.results import BLOCK, Results


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """Count the calls of a method from now on."""
    calls, real = [0], getattr(owner, name)

    def call(self: Any, *given: Any, **named: Any) -> Any:
        calls[0] += 1
        return real(self, *given, **named)

    monkeypatch.setattr(owner, name, call)
    return calls


def events(rows: int, kinds: int) -> pa.Table:
    choose = np.random.default_rng(7)
    types = np.array([f"T{number}" for number in range(kinds)])[choose.integers(0, kinds, rows)]
    return pa.table({"type": types, "t": np.arange(rows), "k": choose.integers(0, 5, rows)})


QUERIES = {
    "of events": "SELECT COUNT(*) AS n FROM S WHERE T0 ; T1+ AS b ; T{} WITHIN 40 [t] EVERY EVENT",
    "of windows": "SELECT COUNT(*) AS n FROM S WHERE T0 ; T{} PARTITION BY [k] WITHIN 40 [t] EVERY 10 [t]",
}


@pytest.mark.parametrize("name", QUERIES)
def test_rows_of_many_patterns_are_made_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of tables goes with that of the rows. It went with the pieces of all patterns, times the patterns."""
    table = events(4_000, 22)
    queries = [QUERIES[name].format(number) for number in range(2, 22)]
    patterns = stretto.PatternSet(table.schema, time="t", totals=True, output="positions")
    patterns.change([stretto.Change(f"q{number:02}", query) for number, query in enumerate(queries)])
    made = counted(monkeypatch, Results, "_added_up")
    found = pa.concat_tables([patterns.push(table), patterns.finish()])
    assert found.num_rows > 1_000
    assert made[0] <= 12 + found.num_rows // BLOCK
    alone = [stretto.match(query, table, time="t", output="positions") for query in queries]
    names = found.column("pattern").to_pylist()
    assert [names.count(f"q{number:02}") for number in range(20)] == [one.num_rows for one in alone]


def test_full_output_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of a set begin small, as they may be thousands. Where one gives much it is not emptied every few rows."""
    table = events(4_000, 3)
    clause = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY t PATTERN (A) DEFINE A AS type = 'T1')"
    patterns = stretto.PatternSet(table.schema, time="t", output="positions")
    patterns.change(stretto.Change("clause", clause))
    emptied = counted(monkeypatch, RowRun, "_drained")
    found = patterns.push(table)
    assert found.num_rows > 1_000
    assert emptied[0] < 16
    many = "SELECT COUNT(*) AS n FROM S WHERE T0 ; T1 PARTITION BY [k] WITHIN 40 [t] EVERY 1 [t]"
    windows = stretto.PatternSet(table.schema, time="t", output="positions", totals=True, capacity=1)
    windows.change(stretto.Change("windows", many))
    emptied = counted(monkeypatch, Telling, "drained")
    assert windows.push(table).num_rows > 4_000
    assert emptied[0] < 100
