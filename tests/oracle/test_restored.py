"""A stream that goes through a snapshot after each event, against the same stream without any (see ``tests/cases/restored.py``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.cases import agree, restored
from tests.conftest import cases

#: Of those whose conditions are compiled there are fewer.
COMPILES = ("shapes of sase", "sase", "variants", "keeping", "totals", "timeouts", "rows")

#: What is no matcher of one query, and how many cases of each there are, all and compiled.
OTHERS: dict[str, tuple[Callable[[int], int], int, int]] = {
    "set": (restored.check_set, 100, 20),
    "set of shapes": (restored.check_set_of_shapes, 100, 20),
    "idle": (restored.check_idle, 100, 20),
    "bucket": (restored.check_bucket, 100, 20),
    "afa": (restored.check_afa, 100, 5),
    "dataflow": (restored.check_dataflow, 100, 20),
    "sorting": (restored.check_sorting, 300, 300),
}


@pytest.mark.parametrize("kind", restored.KINDS)
def test_a_snapshot_after_each_event(kind: str) -> None:
    number = cases(100, compiled=20 if kind in COMPILES else 100)
    assert sum(agree(restored, range(number), case=partial(restored.case_of, kind))) > 0


@pytest.mark.parametrize("what", OTHERS)
def test_a_snapshot_after_each_step_of(what: str) -> None:
    check, number, compiled = OTHERS[what]
    seeds = range(cases(number, compiled=compiled))
    assert sum(agree(restored, seeds, case=lambda seed: seed, check=lambda _, seed: check(seed))) > 0
