"""``output="summary"``: what grouping the rows of ``output="positions"`` by their end gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.cli import main
from stretto.engines.api import Matches
from stretto.errors import OptionError
from stretto.matching.output.match_table import summaries
from tests.cases import sase
from tests.cases.ceql import Case, case, timed_case
from tests.conftest import cases

QUERIES = [
    "SELECT * FROM S WHERE A ; B+ WITHIN 8 EVENTS",
    "SELECT b FROM S WHERE A ; B+ AS b ; (A OR B) PARTITION BY [k] WITHIN 12 [t]",
    "SELECT MAX * FROM S WHERE A+ ; B WITHIN 6 EVENTS",
    "SELECT * FROM S WHERE A ; B+ PARTITION BY [k] WITHIN 9 [t] LIMIT 3",
    "SELECT NONE FROM S WHERE A+ ; B WITHIN 6 [t] CONSUME BY ANY",
    "SELECT * FROM S WHERE A AS x : (A OR B) AS y PARTITION BY [k]",
]


def events(seed: int, rows: int = 60) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "type": [rng.choice("ABC") for _ in range(rows)],
            "t": sorted(rng.randrange(rows) for _ in range(rows)),
            "k": pa.array([rng.choice([1, 2, None]) for _ in range(rows)], pa.int32()),
        }
    )


def grouped(table: pa.Table, whole: pa.Table, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of ``output="positions"``, one for each end, from the definition."""
    found: dict[int, dict[str, Any]] = {}
    for row in table.to_pylist():
        place = whole.column("t")[row["start"]].as_py(), row["start"]
        one = found.setdefault(row["end"], {"place": place, "row": row, "matches": 0})
        one["place"] = min(one["place"], place)
        one["matches"] += 1
    return [
        {
            "start": one["place"][1],
            "end": end,
            "start_time": one["place"][0],
            "end_time": one["row"]["end_time"],
            **{key: one["row"][key] for key in keys},
            "matches": one["matches"],
        }
        for end, one in found.items()
    ]


@pytest.mark.parametrize("valuations", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_agrees_with_positions(query: str, valuations: bool) -> None:
    total = 0
    for seed in range(8):
        table = events(seed)
        keys = stretto.compile(query).partition_by
        positions = stretto.match(query, table, time="t", output="positions", valuations=valuations)
        found = stretto.match(query, table, time="t", output="summary", valuations=valuations)
        assert found.to_pylist() == grouped(positions, table, keys), f"seed {seed}"
        total += positions.num_rows
    assert total > 0


@pytest.mark.parametrize("query", QUERIES)
def test_an_event_whose_matches_come_in_pieces_has_one_row(query: str) -> None:
    """Buffers that start with room for one row, and batches of any size."""
    for seed in range(4):
        rng = random.Random(seed)
        table = events(seed)
        expected = stretto.match(query, table, time="t", output="summary")
        matcher = stretto.Matcher(query, table.schema, time="t", output="summary", capacity=1)
        found, at = [], 0
        while at < table.num_rows:
            size = rng.randrange(1, 20)
            found += [row for piece in matcher.iter_push(table.slice(at, size)) for row in piece.to_pylist()]
            at += size
        assert found == expected.to_pylist(), f"seed {seed}"


def test_many_matches_of_one_event() -> None:
    """2^17 of the last event, which fill the output buffers many times."""
    found = stretto.match("SELECT * FROM S WHERE A+", [{"type": "A"}] * 18, output="summary")
    assert found.column("matches").to_pylist() == [2**n for n in range(18)]
    assert set(found.column("start").to_pylist()) == {0}


@pytest.mark.parametrize("seed", range(10))
def test_pieces_may_end_anywhere(seed: int) -> None:
    rng = random.Random(seed)
    ends = np.array(sorted(rng.choices(range(100, 112), k=40)))
    starts = np.array([rng.randrange(100) for _ in range(40)])
    cuts = sorted(rng.choices(range(41), k=rng.randrange(12)))
    pieces = []
    for low, high in zip([0, *cuts], [*cuts, 40], strict=True):
        empty = np.empty(0, np.int64)
        offset = np.zeros(high - low + 1, np.int64)
        pieces.append(Matches(starts[low:high], ends[low:high], offset, empty, empty.astype(np.int32)))
    found = [
        row
        for one in summaries(pieces)
        for row in zip(one.start.tolist(), one.end.tolist(), one.counts.tolist(), strict=True)
    ]
    expected = [(int(starts[ends == end].min()), int(end), int((ends == end).sum())) for end in np.unique(ends)]
    assert found == expected


def test_input_that_is_sorted_first() -> None:
    table = pa.table({"type": ["B", "A", "A"], "t": [9, 5, 2]})
    found = stretto.match("SELECT * FROM S WHERE A ; B", table, time="t", output="summary")
    assert found.to_pylist() == [{"start": 2, "end": 0, "start_time": 2, "end_time": 9, "matches": 2}]


def test_columns() -> None:
    schema = {"type": "string", "t": "int64", "matches": "string"}
    query = stretto.compile("SELECT * FROM S WHERE A AS start ; B PARTITION BY [matches]", schema, time="t")
    assert query.output_schema("summary").names == ["start", "end", "start_time", "end_time", "matches", "matches_"]
    assert query.output_schema("summary", positions=False).names == ["start_time", "end_time", "matches", "matches_"]
    matcher = stretto.Matcher("SELECT * FROM S WHERE A ; B", output="summary", positions=False)
    matcher.push([{"type": "A"}, {"type": "A"}])
    assert matcher.push([{"type": "B"}, {"type": "B"}]).to_pylist() == [{"matches": 2}, {"matches": 2}]


def test_a_snapshot_is_of_one_output() -> None:
    query = "SELECT * FROM S WHERE A ; B"
    matcher = stretto.Matcher(query, output="summary")
    matcher.push([{"type": "A"}])
    again = stretto.Matcher(query, output="summary").restore(matcher.snapshot())
    assert again.push([{"type": "B"}]).to_pylist() == [{"start": 0, "end": 1, "matches": 1}]
    with pytest.raises(stretto.StrettoError, match="output"):
        stretto.Matcher(query, matcher.query.schema, output="positions").restore(matcher.snapshot())
    with pytest.raises(OptionError, match="'events', 'positions' or 'summary'"):
        stretto.Matcher(query, output="sum")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"type": ["A", "A", "B", "B"]}), tmp_path / "events.parquet")

    def lines(*more: str) -> list[str]:
        with pytest.raises(SystemExit) as ended:
            main(
                ["match", "SELECT * FROM S WHERE A ; B", str(tmp_path / "events.parquet"), "--output", "summary", *more]
            )
        assert not ended.value.code
        return capsys.readouterr().out.splitlines()

    assert lines()[-1] == "2 events that complete matches"
    assert lines("--json") == ['{"start": 0, "end": 2, "matches": 2}', '{"start": 0, "end": 3, "matches": 2}']


# ---- Counted on the structure


def counted(rows: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """Listed rows as (start, end, matches) for each end, in its order."""
    found: dict[int, tuple[int, int]] = {}
    for row in rows:
        start, matches = found.get(row["end"], (row["start"], 0))
        found[row["end"]] = min(start, row["start"]), matches + 1
    return [(start, end, matches) for end, (start, matches) in found.items()]


def fed(one: Case, output: str) -> list[dict[str, Any]]:
    """What a matcher gives in the case's batches, through a snapshot between each two where the case says so."""
    query = stretto.compile(one.query, one.events.schema, time=one.time, stream=one.stream)
    options: dict[str, Any] = {"output": output, "valuations": one.valuations, "capacity": one.capacity}
    matcher = stretto.Matcher(query, **options)
    rows: list[dict[str, Any]] = []
    edges = [0, *one.cuts, one.events.num_rows]
    for low, high in zip(edges, edges[1:], strict=False):
        rows += matcher.push(one.events.slice(low, high - low)).to_pylist()
        if one.snapshot:
            matcher = stretto.Matcher(query, **options).restore(matcher.snapshot())
    return rows


@pytest.mark.parametrize("drawn", [case, timed_case])
def test_counts_are_those_of_lists(drawn: Callable[[int], Case]) -> None:
    """Strategies, projections, windows, gaps, keys, streams, valuations, CONSUME BY and LIMIT. A failure names its seed."""
    for seed in range(cases(1200)):
        one = drawn(seed)
        if stretto.compile(one.query).parsed.last_negation is not None:
            continue
        found = [(row["start"], row["end"], row["matches"]) for row in fed(one, "summary")]
        assert found == counted(fed(one, "positions")), f"seed {seed}: {one}"


def test_counts_of_sase_are_those_of_lists() -> None:
    """A query's conditions are compiled, which takes longer than a case. A failure names its seed."""
    for seed in range(cases(800, compiled=12)):
        one = sase.case(seed)
        if one.query.components[-1].negated:
            continue
        options = {"time": one.schema.time, "type": one.schema.type}
        listed = stretto.match(one.query.text, one.events, output="positions", **options).to_pylist()
        found = stretto.match(one.query.text, one.events, output="summary", **options).to_pylist()
        rows = [(row["start"], row["end"], row["matches"]) for row in found]
        assert rows == counted(listed), f"seed {seed}: {one}"


def test_counts_are_those_that_a_query_asks_for() -> None:
    """Another engine counts for ``COUNT(*) … EVERY EVENT``. A failure names its seed."""
    for seed in range(cases(1200)):
        one = case(seed)
        query = stretto.compile(one.query)
        if query.parsed.limit is not None:
            continue
        strategy = "" if query.parsed.strategy == "ALL" else f"{query.parsed.strategy} "
        names = [">".join(f"`{part}`" for part in item.variable.split(">")) for item in query.parsed.items or ()]
        if query.parsed.items == ():
            continue
        count = f"COUNT(DISTINCT {', '.join(names)})" if names else "COUNT(*)"
        asked = f"SELECT {strategy}{count} AS matches FROM {one.query.split(' FROM ', 1)[1]} EVERY EVENT"
        found = [(row["start"], row["end"], row["matches"]) for row in fed(replace(one, query=asked), "events")]
        right = [(row["start"], row["end"], row["matches"]) for row in fed(one, "summary")]
        assert found == right, f"seed {seed}: {one}"


#: For n events A in the window before a B: 2ⁿ − 1 matches, on tECS by CEQL and SASE+, and on NFAb.
EXPLOSIONS = {
    "tecs": "SELECT * FROM S WHERE A+ ; B WITHIN 100 [t]",
    "ranks": "SELECT * FROM S WHERE A+ ; B PARTITION BY [k] WITHIN 100 EVENTS",
    "sase": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { } WITHIN 100",
    "timed": "SELECT * FROM S WHERE A+ GAP 100 [t] ; B WITHIN 100 [t]",
    "absence": "SELECT * FROM S WHERE NOT C ; A+ ; B WITHIN 100 [t]",
    "nfab": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.k > a[1].k } WITHIN 100",
}


def explosion(rows: int, every: int) -> pa.Table:
    """Events A, and as many B in between; k is less in an A."""
    kinds = ["B" if at % every == every - 1 else "A" for at in range(rows)]
    return pa.table({"type": kinds, "t": range(rows), "k": [int(kind == "B") for kind in kinds]})


@pytest.mark.parametrize("batch", [1000, 7])
@pytest.mark.parametrize("name", EXPLOSIONS)
def test_an_explosion_is_counted(name: str, batch: int, caplog: pytest.LogCaptureFixture) -> None:
    """Windows move over it; what 64 bits do not hold is NULL, and said once."""
    events = explosion(500, 33)
    if name == "ranks":
        events = events.set_column(2, "k", pa.array([0] * 500))
    matcher = stretto.Matcher(EXPLOSIONS[name], output="summary", time="t")
    rows = [row for at in range(0, 500, batch) for row in matcher.push(events.slice(at, batch)).to_pylist()]
    kinds = events.column("type").to_pylist()
    right = []
    for end in (at for at in range(500) if kinds[at] == "B"):
        begin = max(0, end - 100)
        matches = 2 ** kinds[begin:end].count("A") - 1
        right.append((kinds.index("A", begin), end, matches if matches < 1 << 63 else None))
    assert [(row["start"], row["end"], row["matches"]) for row in rows] == right
    assert [row["matches"] for row in rows][:2] == [2**32 - 1, None]
    assert [one.message for one in caplog.records if "2^63" in one.message] == [
        "some events complete more than 2^63 - 1 matches: 'matches' is NULL for them, which sums and comparisons leave out"
    ]


@pytest.mark.parametrize(("events", "matches"), [(62, 2**62 - 1), (63, 2**63 - 1), (64, None)])
def test_the_greatest_number(events: int, matches: int | None) -> None:
    rows = [{"type": "A"}] * events + [{"type": "B"}]
    found = stretto.match("SELECT * FROM S WHERE A+ ; B", rows, output="summary")
    assert found.column("matches").to_pylist() == [matches]
