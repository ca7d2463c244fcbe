"""Snapshots of earlier versions are read, and going on from them gives the rows that going on then gave."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import stretto
from tests.snapshots import operators
from tests.snapshots.kept import (
    CASES,
    CUT,
    FOLDER,
    MATCHERS,
    TIMEOUTS,
    bucket_of,
    expected_rows,
    matcher_of,
    query_of,
    stream,
    watermark_at,
)

#: What there is: folder and case.
KEPT = sorted((path.parent.name, path.stem) for path in FOLDER.glob("v*/*.matcher"))


def kept(version: str, name: str) -> tuple[Path, list[object]]:
    folder = FOLDER / version
    return folder, json.loads((folder / f"{name}.json").read_text())


def test_there_are_some() -> None:
    assert {name for _, name in KEPT} == set(CASES)
    assert {folder for folder, _ in KEPT} >= {"v1", "v1-sase"}


@pytest.mark.parametrize(("version", "name"), KEPT)
def test_matchers_go_on(version: str, name: str) -> None:
    folder, expected = kept(version, name)
    matcher = matcher_of(name).restore((folder / f"{name}.matcher").read_bytes())
    assert matcher.position == CUT
    assert expected
    assert expected_rows(matcher.push(stream().slice(CUT))) == expected
    if name in TIMEOUTS:
        assert {None} < {row["reached"] for row in expected if isinstance(row, dict)}


@pytest.mark.parametrize(("version", "name"), [one for one in KEPT if one[1] not in MATCHERS])
def test_states_of_continuous_queries_go_on(version: str, name: str) -> None:
    folder, _ = kept(version, name)
    bucket = bucket_of(name)
    bucket.load((folder / f"{name}.bucket").read_bytes())
    table = stream()
    assert bucket.held is not None
    assert bucket.held.num_rows == CUT - CUT // 2
    before = stretto.match(query_of(name), table.slice(0, CUT // 2), time="ts")
    bucket.take(table.slice(CUT), watermark_at(table, CUT // 2))
    after = pa.concat_tables(bucket.advance(watermark_at(table, 2 * CUT - 1) + 1))
    times = ["start_time", "end_time"]
    everything = stretto.match(query_of(name), table, time="ts").select(times)
    assert expected_rows(pa.concat_tables([before.select(times), after.select(times)])) == expected_rows(everything)


#: What there is beside matchers.
STATES = sorted((path.parent.name, path.stem) for path in FOLDER.glob("v*/*.state"))


def test_everything_that_has_a_state_is_kept() -> None:
    assert {name for _, name in STATES} == set(operators.CASES)


@pytest.mark.parametrize(("version", "name"), STATES)
def test_operators_go_on(version: str, name: str) -> None:
    expected = json.loads((FOLDER / version / f"{name}.json").read_text())
    assert expected
    assert operators.rows_after(operators.CASES[name], (FOLDER / version / f"{name}.state").read_bytes()) == expected
