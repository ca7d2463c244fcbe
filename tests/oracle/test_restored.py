"""A stream that goes through a snapshot after each event, against the same stream without any (see ``tests/cases/restored.py``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from stretto.events import Schema
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


@pytest.mark.parametrize("least", [0, 3])
def test_fewer_events_are_kept_than_when_last_some_were_let_go_of(least: int) -> None:
    """The number of then stood in the snapshot, which was refused."""
    text = "SELECT * FROM S WHERE A AS x ; B? AS y ; C AS z PARTITION BY [k] WITHIN 6 [t] GROUP BY [k] EVERY 4 SAMPLE 2 SEED 3"
    events = [("D", 4, 0), ("A", 24, 0), ("C", 26, 0), ("B", 37, 0), ("A", 60, 0), ("C", 61, 0), ("B", 80, 0)]
    table = pa.Table.from_pylist([{"type": kind, "t": time, "k": key} for kind, time, key in events])
    steps = tuple(("push", table.slice(row, 1)) for row in range(table.num_rows))
    schema = Schema.of(table.schema, time="t")
    case = restored.Case(text, schema, {"capacity": 1, "output": "positions"}, steps)
    right = restored.answers(case, snapshots=False)
    with restored.eager(least):
        assert restored.answers(case, snapshots=True) == right
    assert any(given[0] for given in right)
