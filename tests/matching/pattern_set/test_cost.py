"""A set of patterns does no more work than its patterns one by one: work is counted, not timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.engines.rows.runner import RowRun
from stretto.engines.totals.telling import Telling
from stretto.languages.afa import written
from stretto.matching.pattern_set import compile as compiling
from stretto.matching.pattern_set import result_table as results
from stretto.matching.pattern_set.result_table import BLOCK, Results


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


@pytest.mark.parametrize("output", ["positions", "events"])
def test_matches_are_moved_only_where_patterns_mix(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns that have one run give matches in order; of others, what tells variables is moved where somebody asks for it."""
    moved: list[int] = []
    taken = results.lists_taken

    def noted(offset: Any, chosen: Any, arrays: Any) -> Any:
        moved.append(len(arrays))
        return taken(offset, chosen, arrays)

    monkeypatch.setattr(results, "lists_taken", noted)
    table = events(2_000, 3)
    options: dict[str, Any] = {"time": "t", "output": output}
    alike = "PATTERN SEQ(T0 a, T1+ b[], T2 c) WHERE skip_till_next_match {{ [k] AND b[i].t > {} }} WITHIN 60"
    patterns = stretto.PatternSet(table.schema, measures=True, **options)
    patterns.change([stretto.Change(f"q{number}", alike.format(number)) for number in range(5)])
    found = patterns.push(table)
    assert found.num_rows > 1_000
    assert found.column("measures").null_count == found.num_rows
    assert moved == []
    lists = "SELECT * FROM S WHERE T0 AS a ; T{} AS b PARTITION BY [k] WITHIN {} [t]"
    queries = [alike.format(7), lists.format(1, 20), lists.format(2, 30)]
    mixed = stretto.PatternSet(table.schema, **options)
    mixed.change([stretto.Change(f"q{number}", query) for number, query in enumerate(queries)])
    found = mixed.push(table)
    assert set(moved) == {1 if output == "positions" else 2}
    names, ends = found.column("pattern").to_pylist(), found.column("end_time").to_pylist()
    assert [*zip(ends, names, strict=True)] == sorted(zip(ends, names, strict=True))
    for number, query in enumerate(queries):
        alone = stretto.match(query, table, **options)
        mine = found.filter(pa.array(name == f"q{number}" for name in names))
        assert mine.column("end_time").to_pylist() == alone.column("end_time").to_pylist()
        assert mine.column("start_time").to_pylist() == alone.column("start_time").to_pylist()


def test_an_automaton_that_sets_know_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """That an automaton is what its text says is asked once; and of each that another one's text says."""
    table = events(300, 3)
    afa = stretto.AFA(
        {"type": "string", "t": "int64", "k": "int64"}, register={"n": "int64"}, initial={"n": 0}, window=40
    )
    afa.arc("q0", "q1", when="e.type = 'T0'", then="n = e.k").arc("q1", "q2", when="e.k > r.n").final("q2")
    rows = []
    for _ in range(2):
        patterns = stretto.PatternSet(table.schema, time="t", output="positions")
        patterns.change([stretto.Change(name, afa) for name in "ab"])
        rows.append(patterns.push(table).num_rows)
        read = counted(monkeypatch, written, "read_afa")
    assert rows[0] == rows[1] > 50
    assert read[0] == 0
    other = replace(afa.frozen, arcs=(afa.frozen.arcs[0], replace(afa.frozen.arcs[1], when=afa.frozen.arcs[0].when)))
    monkeypatch.setattr(compiling, "as_text", lambda _: written.as_text(afa.frozen))
    with pytest.raises(stretto.OptionError, match="pattern 'c': the automaton does not travel"):
        patterns.change(stretto.Change("c", other))
