"""stretto.Cleanse: what passes, what waits, and what is late."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import stretto
from tests.cleanse_cases import CleanseCase, Row, Slow, cleanse_case
from tests.conftest import cases as at_most

SCHEMA = pa.schema([("t", pa.int64()), ("s", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("sign", pa.int8())])


def made(case: CleanseCase) -> stretto.Cleanse:
    return stretto.Cleanse(SCHEMA, time="t", **case.options)


def expected(case: CleanseCase) -> tuple[list[list[tuple[int, Row]]], int]:
    """What each step gives, and the end; and how many are late."""
    slow, found = Slow(case.options), []
    before: Row | None = None
    retracted: int | None = None
    for one in case.log:
        if isinstance(one, int):
            found.append(slow.advance(one))
            before = None
            continue
        earlier = before if before is not None and before["sign"] < 0 < one["sign"] else None
        rows, retracted = slow.row(one, earlier, retracted)
        found.append(rows)
        before = one
    return [*found, slow.advance(math.inf)], slow.late


def given(
    cleanse: stretto.Cleanse, case: CleanseCase, cuts: Callable[[int], bool], saves: Callable[[int], bool]
) -> Any:
    """What comes out of pieces of the log, with the number of steps of each."""
    found: list[tuple[int, list[tuple[int, Row]]]] = []
    rows: list[Row] = []
    pairs: list[tuple[int, int]] = []
    steps = 0
    for number, one in enumerate((*case.log, None)):
        if rows and isinstance(one, dict) and rows[-1]["sign"] < 0 < one["sign"]:
            pass  # a revision is not parted
        elif steps and (one is None or cuts(number)):
            if saves(number):
                cleanse = made(case).restore(cleanse.snapshot())
            got = cleanse.let(pa.Table.from_pylist(rows, SCHEMA), pairs, places=True)
            assert (np.diff(got.places) >= 0).all()
            found.append((steps, list(zip(got.rows.tolist(), got.table.to_pylist(), strict=True))))
            rows, pairs, steps = [], [], 0
        if isinstance(one, int):
            pairs.append((len(rows), max([one, *(time for _, time in pairs)])))
        elif one is not None:
            rows.append(one)
        steps += one is not None
    got = cleanse.end()
    return [*found, (1, list(zip(got.rows.tolist(), got.table.to_pylist(), strict=True)))], cleanse


def check(seed: int) -> int:
    case = cleanse_case(seed)
    right, late = expected(case)
    choose = random.Random(seed)
    each = [choose.random() < 0.3 for _ in range(len(case.log) + 1)]
    for cuts, saves in [
        (lambda _: True, lambda _: False),
        (lambda _: False, lambda _: False),
        (lambda at: each[at], lambda at: each[-at]),
    ]:
        found, cleanse = given(made(case), case, cuts, saves)
        at = 0
        for steps, rows in found:
            wanted = [one for step in right[at : at + steps] for one in step]
            assert rows == wanted, (
                f"seed {seed}, steps {at} to {at + steps} of {case}:\nexpected {wanted}\ngot      {rows}"
            )
            at += steps
        assert at == len(right)
        assert cleanse.late == late, (seed, case)
        assert len(cleanse.late_events()) == (late if case.options["late"] == "side" else 0)
        assert cleanse.stats["rows"] == sum(isinstance(one, dict) for one in case.log)
        assert cleanse.buffered == 0
    return sum(map(len, right))


def test_what_passes_and_what_waits() -> None:
    """Any split, with snapshots; a failure names its seed."""
    assert sum(check(seed) for seed in range(at_most(500))) > 1_000
