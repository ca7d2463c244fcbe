"""Input that is hard on what reads it: deep, wide, not in UTF-8, in little memory; and what errors say of what was taken."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto

QUERY = "SELECT * FROM S WHERE A AS a ; B AS b"


def test_duckdb_fails_at_run_time_below_a_clause() -> None:
    text = "SELECT * FROM (SELECT CAST(id AS INT) AS id\nFROM e) MATCH_RECOGNIZE (MEASURES A.id AS id PATTERN (A))"
    with pytest.raises(stretto.DataError, match="Could not convert string 'A' to INT32"):
        stretto.sql(text, e=[{"id": "A"}])


@pytest.mark.parametrize("query", [QUERY, "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { }"])
@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_column_of_types_that_are_null(query: str, kind: pa.DataType) -> None:
    events = pa.table({"type": pa.nulls(2, kind), "x": [1, 2]})
    assert [step.events for step in stretto.explain(query, events).counts.steps] == [0, 0]
    assert not stretto.why_not(query, events).matches


@pytest.mark.parametrize(("first", "last"), [("[", "]"), ('{"a":', "}")])
def test_json_that_is_nested_without_an_end(first: str, last: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"

    def written(depth: int) -> Path:
        plain = json.dumps({"type": "B", "x": None, "text": f'\\"{"[{" * 200}'})
        path.write_text(f'{plain}\n{{"type": "A", "x": {first * depth + "1" + last * depth}}}\n{plain}\n')
        return path

    assert stretto.match(QUERY, written(100)).num_rows == 1
    for depth in (101, 5_000, 50_000):  # Arrow alone takes 13 seconds for 5,000 lists
        told = (
            rf"deep\.jsonl, line 2: lists or objects lie {depth:,} deep inside of each other, and at most 100 are taken"
        )
        with pytest.raises(stretto.DataError, match=told):
            stretto.match(QUERY, written(depth))


def test_rows_that_are_nested_without_an_end() -> None:
    inside: Any = 1
    for _ in range(5_000):
        inside = [inside]
    with pytest.raises(stretto.DataError, match="nested more than 100 deep"):
        stretto.match(QUERY, [{"type": "A", "x": inside}])
    shallow = json.loads('{"a":' * 20 + "1" + "}" * 20)
    assert stretto.match(QUERY, [{"type": "A", "x": shallow}, {"type": "B", "x": shallow}]).num_rows == 1


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(b"type,name\nA,cafe\nB,caf\xe9\n")
    with pytest.raises(
        stretto.DataError, match=r"bad\.csv, line 3: column 'name' has bytes that are no UTF-8: .*iconv"
    ):
        stretto.match(QUERY, tmp_path / "bad.csv")
    (tmp_path / "bad.jsonl").write_bytes(b'{"type": "A", "x": "caf\xe9"}\n{"type": "B", "x": "b"}\n')
    with pytest.raises(stretto.DataError, match=r"bad\.jsonl: .*Invalid UTF8"):
        stretto.match(QUERY, tmp_path / "bad.jsonl")
    for name, text in (
        ("named.csv", b"type,caf\xe9\nA,1\nB,2\n"),
        ("named.jsonl", b'{"type": "A", "caf\xe9": 1}\n{"type": "B"}\n'),
    ):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(
            stretto.DataError, match=rf"{name}, line 1: the name of a column has bytes that are no UTF-8"
        ):
            stretto.match(QUERY, tmp_path / name)


def test_a_wide_disjunction_costs_what_it_has() -> None:
    def seconds(width: int) -> float:
        text = "SELECT * FROM S WHERE " + " OR ".join(f"T{width}x{number}" for number in range(width))
        begin = time.process_time()
        assert len(stretto.compile(text).variables) == width
        return time.process_time() - begin

    seconds(100)
    assert seconds(3_000) < 40 * max(seconds(300), 0.02)  # of a quadratic cost it is 100 times as much


@pytest.mark.parametrize(
    ("before", "rows", "told"),
    [
        (
            0,
            [1, 2, 2**40, 4],
            "rows 0 to 1 were taken, and the next call gives their output; row 2 and those behind it were not",
        ),
        (2, [1, 2**40, 4], "row 2 was taken, and the next call gives their output; row 3 and those behind it were not"),
        (1, [2**40, 4], "no row of this push was taken"),
        (1, [2**40], "the row was not taken"),
    ],
)
def test_an_overflow_of_an_automaton_says_what_was_taken(before: int, rows: list[int], told: str) -> None:
    afa = stretto.AFA({"x": int}, {"n": int}).arc("q0", "q1", then="n = e.x * e.x").final("q1")
    matcher = stretto.Matcher(afa, time="t")
    for number in range(before):
        matcher.push([{"t": number, "x": 1}])
    with pytest.raises(stretto.DataError) as caught:
        matcher.push([{"t": 10 + number, "x": x} for number, x in enumerate(rows)])
    assert str(caught.value).splitlines()[-1] == told
    taken = rows.index(2**40)
    assert matcher.position == before + taken
    assert matcher.push([]).num_rows == taken


def test_the_width_of_a_table_is_a_number_of_characters() -> None:
    for width in (0, -5, 2**62):
        with pytest.raises(stretto.OptionError, match=rf"show\(width={width}\): "):
            stretto.show([{"start": 1}], width=width)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are read on Linux")
def test_a_limit_of_the_process_is_a_limit_of_memory() -> None:
    code = """
import resource, stretto
from stretto import memory
stretto.match  # imported before the limit
from stretto.engines.tecs import runner
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20), -1))
assert memory.available() <= 400 << 20, memory.available()
query = "SELECT * FROM S WHERE A+"
try:
    stretto.match(query, [{"type": "A"}] * 30, output="positions")
except stretto.LimitError as error:
    print("LimitError", str(error).splitlines()[0])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert run.stdout.startswith("LimitError"), run.stderr[-2_000:]
