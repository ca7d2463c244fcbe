"""Every conformance vector on the reference evaluator and on the embedded engine, whole and event by event."""

from __future__ import annotations

import pytest

import stretto
from stretto.pattern.reference import evaluate
from tests.conformance.vectors import Vector, vectors

VECTORS = vectors()


def ids(vector: Vector) -> str:
    return vector.name


def test_names_are_unique() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(set(names)) == len(names) >= 30


@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_reference(vector: Vector) -> None:
    query = stretto.compile(vector.ceql, vector.table.schema)
    found = evaluate(query.bound, vector.table)
    assert sorted((m.start, m.end, tuple(sorted(m.positions))) for m in found) == vector.expect


@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_match(vector: Vector) -> None:
    rows = stretto.match(vector.ceql, vector.table, output="positions").to_pylist()
    assert sorted((row["start"], row["end"], tuple(row["positions"])) for row in rows) == vector.expect


@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_event_by_event_through_snapshots(vector: Vector) -> None:
    rows = []
    matcher = stretto.Matcher(vector.ceql, vector.table.schema, capacity=1)
    for position in range(vector.table.num_rows):
        rows += matcher.push(vector.table.slice(position, 1)).to_pylist()
        matcher = stretto.Matcher(vector.ceql, vector.table.schema, capacity=1).restore(matcher.snapshot())
    assert sorted((row["start"], row["end"], tuple(row["positions"])) for row in rows) == vector.expect
