"""The AFA operator with a Cleanse in front of it or behind it: whatever the speculation, the final result is the definition's."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import stretto
from stretto.errors import StrettoError
from tests.cases.afa import AfaCase
from tests.cases.afa import case as drawn
from tests.cases.afa.driving import Drive, built, misread, pieces, punctuation_of
from tests.conftest import cases
from tests.reference.afa import AddArc, Insert, Output, Punctuate, PunctuateArcs, RetireArc, Retract, Revise

COUNT = cases(80, compiled=80)
SPECULATIONS = (0, 1, 3, 8, math.inf)

Row = dict[str, Any]


def drives(case: AfaCase) -> bool:
    """Whether a case has no errors, and its result does not depend on how far the operator has come when an arc changes."""
    replay = case.replay()
    try:
        for step in case.steps:
            replay.step(step)
    except StrettoError:
        return False
    return not any(isinstance(one, AddArc | RetireArc) for one in case.steps)


def fed(case: AfaCase, afa: Any, seed: int, options: dict[str, Any]) -> list[Row]:
    """All output of a matcher; what is final is right at any time."""
    choose = random.Random(seed)
    drive = Drive(case, afa, ignore=choose.random() < 0.6, provenance=choose.random() < 0.3, capacity=64)

    def made() -> Any:
        return stretto.Matcher(afa, drive.table([]).schema, **drive.options(), **options)

    matcher, replay = made(), case.replay()
    found: list[Row] = []
    total = Counter[Output]()
    each = [choose.random() < 0.4 for _ in range(len(case.steps) + 1)]
    for _, piece in pieces(case.steps, lambda at: each[at] or misread(case.steps, at)):
        if choose.random() < 0.2:
            matcher = made().restore(matcher.snapshot())
        rows = drive.feed(matcher, piece)
        found += rows
        add(total, rows, drive)
        for step in piece:
            replay.step(step)
        punctuation = punctuation_of(matcher, case)
        if "disorder" not in options:
            assert punctuation == replay.punctuation, (seed, options, piece)
        if punctuation is not None:
            assert final(total, punctuation) == final(replay.current, punctuation), (seed, options, piece)
    rest = drive.in_ticks(matcher.finish()).to_pylist()
    add(total, rest, drive)
    right = replay.current
    assert +total == right, f"seed {seed}, {options}:\nexpected {right - total}\ngot      {total - right}"
    assert min(total.values(), default=0) >= 0
    assert matcher.stats["waiting"] == 0
    if case.late == "drop":
        assert matcher.late == len(replay.late_rows), (seed, options)
    return found + rest


def add(total: Counter[Output], rows: list[Row], drive: Drive) -> None:
    for row in rows:
        total[drive.output(row)] += row["sign"]


def final(total: Counter[Output], punctuation: int) -> Counter[Output]:
    return Counter({one: count for one, count in total.items() if one.le < punctuation and count})


def bounded(case: AfaCase) -> tuple[AfaCase, int]:
    """A case without punctuations, and by how much it is out of order."""
    steps = tuple(step for step in case.steps if not isinstance(step, Punctuate))
    greatest, bound = -math.inf, 0
    for step in steps:
        for row in (
            [step.row]
            if isinstance(step, Insert | Retract)
            else [step.old, step.new]
            if isinstance(step, Revise)
            else []
        ):
            if None not in row.key:
                greatest = max(greatest, row.le)
                bound = max(bound, int(greatest - row.le))
    return replace(case, steps=steps), bound


def test_any_speculation_gives_the_definition() -> None:
    sizes = Counter[Any]()
    behind = Counter[Any]()
    count, group, afa = 0, None, None
    for seed in range(COUNT):
        case = drawn(seed)
        if not drives(case):
            continue
        if case.automaton is not group:
            group, afa = case.automaton, built(case.automaton)
        count += 1
        for speculation in SPECULATIONS:
            for where in ("events", "results"):
                rows = fed(case, afa, seed, {"speculation": speculation, "hold": where})
                if speculation == 0 and (
                    where == "results" or not any(isinstance(one, PunctuateArcs) for one in case.steps)
                ):
                    assert all(row["sign"] > 0 for row in rows), (seed, where)
                (sizes if where == "events" else behind)[speculation] += len(rows)
        case, bound = bounded(case)
        for where in ("events", "results"):
            fed(case, afa, seed, {"speculation": seed % 4, "disorder": bound, "hold": where})
    assert count > COUNT // 3
    for found in (sizes, behind):
        grown = [found[one] for one in SPECULATIONS]
        assert grown == sorted(grown)
        assert grown[-1] > grown[0]
