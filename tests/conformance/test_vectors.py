"""Every conformance vector on every side that claims it; what a side leaves out is declared and counted."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import adapters
from tests.conformance.vectors import Row, Vector, vectors

VECTORS = vectors()

SIDES = {
    one.name: importlib.import_module(f"{adapters.__name__}.{one.name}")
    for one in pkgutil.iter_modules(adapters.__path__)
}
EMBEDDED = [name for name, side in SIDES.items() if hasattr(side, "found")]
ON_SPARK = [name for name, side in SIDES.items() if hasattr(side, "all_found")]


def test_names_are_unique() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(set(names)) == len(names)


def test_the_sides_and_their_vectors() -> None:
    assert [*EMBEDDED, *ON_SPARK] == [
        "afa", "backtrack", "latest", "match", "matcher", "nfab", "patterns", "reference", "tecs", "timed", "spark_batch",
        "spark_streaming",
    ]  # fmt: skip
    assert Counter(vector.language for vector in VECTORS) == {"ceql": 199, "sase": 171, "eql": 54, "afa": 29}


@pytest.mark.parametrize("name", SIDES)
def test_what_a_side_leaves_out(name: str) -> None:
    left_out = Counter(filter(None, map(SIDES[name].why_not, VECTORS)))
    assert left_out == SIDES[name].SKIPS


def claimed(side: Any) -> list[Vector]:
    return [vector for vector in VECTORS if not side.why_not(vector)]


def compare(vector: Vector, found: list[Row]) -> str:
    shown = f"{vector.name}:\n  expected {vector.expect}\n  found    {sorted(found)}"
    return "" if sorted(found) == vector.expect else shown


@pytest.mark.parametrize("name", EMBEDDED)
def test_in_process(name: str) -> None:
    side = SIDES[name]
    wrong = []
    for vector in claimed(side):
        try:
            wrong.append(compare(vector, side.found(vector)))
        except Exception as error:
            raise AssertionError(f"{vector.name}: {type(error).__name__}: {error}") from error
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_on_spark(name: str, spark: Any, tmp_path: Path) -> None:
    side = SIDES[name]
    these = claimed(side)
    found = side.all_found(these, spark, tmp_path)
    wrong = [compare(vector, rows) for vector, rows in zip(these, found, strict=True)]
    assert not any(wrong), "\n".join(filter(None, wrong))
