"""Random logs for Cleanse, and what it should give, event by event."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import stretto
from tests.cases.choices import Seeded

__all__ = ["CleanseCase", "case", "check"]

SCHEMA = pa.schema([("t", pa.int64()), ("s", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("sign", pa.int8())])

Row = dict[str, Any]


@dataclass(frozen=True)
class CleanseCase:
    """Options, and a log of rows and punctuations (integers)."""

    options: dict[str, Any]
    log: tuple[Row | int, ...]


@dataclass
class Slow:
    """Cleanse as its documentation says, one event at a time."""

    options: dict[str, Any]
    waiting: list[tuple[int, int, int, Row]] = field(default_factory=list)  #: (time, sequence, row, event)
    punctuation: float = -math.inf
    greatest: float = -math.inf
    rows: int = 0
    late: int = 0

    @property
    def limit(self) -> float:
        return self.punctuation + self.options["speculation"] if self.options["speculation"] < math.inf else math.inf

    def row(self, event: Row, before: Row | None, revised: int | None) -> tuple[list[tuple[int, Row]], int | None]:
        """What a row lets through, with rows; and the row of the event that it retracts, if that waited."""
        number, self.rows = self.rows, self.rows + 1
        time, sign = event["t"], event.get("sign", 1)
        if time < self.punctuation:
            self.late += 1
            return [], None
        bound = self.options.get("disorder")
        if bound is not None and sign > 0:
            self.greatest = max(self.greatest, time)
            self.punctuation = max(self.punctuation, self.greatest - bound)
        if before is not None and all(before[name] == event[name] for name in self.place):
            number = number if revised is None else revised
        found = []
        retracted = None
        if time < self.limit:
            found.append((time, self.tie(event), number, event))
        elif sign > 0:
            self.waiting.append((time, self.tie(event), number, event))
        else:
            same = [one for one in self.waiting if all(one[3][name] == event[name] for name in self.telling)]
            if same:
                latest = max(same, key=lambda one: one[2])
                self.waiting.remove(latest)
                retracted = latest[2]
            else:
                self.late += 1
        found += [one for one in self.waiting if one[0] < self.limit]
        self.waiting = [one for one in self.waiting if one[0] >= self.limit]
        return [(one[2], one[3]) for one in sorted(found, key=lambda one: one[:3])], retracted

    def tie(self, event: Row) -> int:
        return event["s"] if "sequence" in self.options else 0

    @property
    def place(self) -> list[str]:
        """What a revision has in common with what it revises."""
        return ["k", "t", *(["s"] if "sequence" in self.options else [])]

    @property
    def telling(self) -> list[str]:
        return self.place if "sequence" in self.options else ["k", "t", *self.options.get("payload", ["s", "v"])]

    def advance(self, time: float) -> list[tuple[int, Row]]:
        self.punctuation = max(self.punctuation, time)
        limit = self.limit if time < math.inf else math.inf
        found = sorted((one for one in self.waiting if one[0] < limit), key=lambda one: one[:3])
        self.waiting = [one for one in self.waiting if one[0] >= limit]
        return [(one[2], one[3]) for one in found]


def case(seed: int) -> CleanseCase:
    """A case from a seed.

    >>> case(3) == case(3)
    True
    """
    choose = Seeded(seed)
    signed, sequenced = choose.chance(50), choose.chance(50)
    options: dict[str, Any] = {
        "speculation": choose.one_of([0, 0, 1, 2, 5, 20, math.inf]),
        "disorder": choose.one_of([None, None, 0, 1, 3, 8]),
        "late": choose.one_of(["drop", "side"]),
    }
    options |= {"sign": "sign", "partition_by": ["k"]} if signed else {}
    options |= {"sequence": "s"} if sequenced else {}
    options |= {"payload": ["v"]} if signed and choose.chance(60) else {}
    apart = choose.one_of([0, 1, 3, 9])
    log: list[Row | int] = []
    alive: list[Row] = []
    punctuation = -10
    for i in range(choose.one_of([0, 1, 5, 20, 60])):
        time = i // choose.one_of([1, 1, 2, 4]) - choose.integer(0, apart)
        action = choose.integer(0, 99)
        if action < 6:
            punctuation = max(punctuation, time - choose.integer(0, apart))
            log.append(punctuation)
        elif action < 35 and signed:
            event = choose.one_of(alive) if alive and choose.chance(90) else event_of(choose, time, i)
            log.append(event | {"sign": -1})
            if event in alive:
                alive.remove(event)
            if choose.chance(50):
                new = event | {"v": choose.integer(0, 1)}
                log.append(new)
                alive.append(new)
        else:
            event = event_of(choose, time, i)
            log.append(event)
            alive.append(event)
    return CleanseCase(options, tuple(log))


def event_of(choose: Seeded, time: int, number: int) -> Row:
    return {
        "t": time,
        "s": choose.integer(0, 3) * 100 + number,
        "k": choose.one_of(["a", "b"]),
        "v": choose.integer(0, 1),
        "sign": 1,
    }


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


def check(case: CleanseCase, seed: int = 0) -> int:
    """Raise an AssertionError unless a Cleanse gives what it should, however it is fed; how many events pass."""
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
            assert rows == wanted, f"steps {at} to {at + steps} of {case}:\nexpected {wanted}\ngot      {rows}"
            at += steps
        assert at == len(right)
        assert cleanse.late == late, case
        assert len(cleanse.late_events()) == (late if case.options["late"] == "side" else 0)
        assert cleanse.stats["rows"] == sum(isinstance(one, dict) for one in case.log)
        assert cleanse.buffered == 0
    return sum(map(len, right))
