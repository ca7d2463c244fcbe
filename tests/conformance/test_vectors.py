"""Every conformance vector on the reference evaluator and on the embedded engine, whole and event by event."""

from __future__ import annotations

from typing import Any

import pytest

import stretto
from stretto.query.passes.bind import BoundQuery
from stretto.reference.ceql import evaluate
from stretto.reference.sase import evaluate_sase
from tests.conformance.vectors import Vector, vectors

VECTORS = vectors()

Row = tuple[int, int, tuple[int, ...]]


def ids(vector: Vector) -> str:
    return vector.name


def as_rows(found: list[dict[str, Any]]) -> list[Row]:
    return sorted((row["start"], row["end"], tuple(row["positions"])) for row in found)


def test_names_are_unique() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(set(names)) == len(names)
    for language in ("ceql", "sase"):
        assert sum(vector.language == language for vector in VECTORS) >= 30


@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_reference(vector: Vector) -> None:
    query = stretto.compile(vector.text, vector.table.schema, time=vector.time).bound
    rows: list[Row]
    if isinstance(query, BoundQuery):
        rows = [(m.start, m.end, tuple(sorted(m.positions))) for m in evaluate(query, vector.table)]
    else:
        rows = [(m.start, m.end, tuple(sorted(m.positions))) for m in evaluate_sase(query, vector.table)]
    assert sorted(rows) == vector.expect


@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_match(vector: Vector) -> None:
    rows = stretto.match(vector.text, vector.table, time=vector.time, output="positions").to_pylist()
    assert as_rows(rows) == vector.expect


@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_event_by_event_through_snapshots(vector: Vector) -> None:
    rows = []
    matcher = stretto.Matcher(vector.text, vector.table.schema, time=vector.time, capacity=1)
    for position in range(vector.table.num_rows):
        rows += matcher.push(vector.table.slice(position, 1)).to_pylist()
        fresh = stretto.Matcher(vector.text, vector.table.schema, time=vector.time, capacity=1)
        matcher = fresh.restore(matcher.snapshot())
    assert as_rows(rows + matcher.finish().to_pylist()) == vector.expect
