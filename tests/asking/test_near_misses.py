"""A match of which one thing is broken: the answer names it, and when that is undone, the match is there.

A failure names its seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest

import stretto
from stretto.explaining.answer import Answer, Reason
from tests.conftest import cases

BREAKS = ("value", "null", "time", "type", "key", "between")
KINDS = {
    "value": "condition",
    "null": "condition",
    "time": "window",
    "type": "absent",
    "key": "key",
    "between": "negation",
}


@dataclass(frozen=True)
class Near:
    """A query with one match among its events; ``rows`` are those of the match."""

    language: str
    window: int
    bound: int
    events: list[dict[str, Any]]
    rows: tuple[int, ...]

    @property
    def query(self) -> str:
        if self.language == "ceql":
            return (
                f"SELECT * FROM S WHERE (A AS a ; NOT D ; B AS b ; C AS c) FILTER b[x > {self.bound}] AND c[x > 0] "
                f"PARTITION BY [k] WITHIN {self.window} [t]"
            )
        if self.language == "sase":
            return (
                "PATTERN SEQ(A a, ~(D d), B b, C c) WHERE skip_till_any_match "
                f"{{ [k] AND b.x > {self.bound} AND c.x > 0 }} WITHIN {self.window}"
            )
        return f"sequence by k with maxspan={self.window}s [A where true] ![D where true] [B where x > {self.bound}] [C where x > 0]"

    @property
    def options(self) -> dict[str, Any]:
        more = {"language": "eql"} if self.language == "eql" else {}
        return {"time": "t", "time_unit": "s", **more}

    def matches(self) -> bool:
        return stretto.match(self.query, self.events, **self.options).num_rows > 0

    def answer(self) -> Answer:
        return stretto.why_not(self.query, self.events, **self.options)


def near(choose: random.Random) -> Near:
    """A match of three events among others of no account."""
    events: list[dict[str, Any]] = []
    rows: list[int] = []
    now, bound, key = 0, choose.randint(1, 9), choose.randint(0, 3)
    for step in "ABC":
        for _ in range(choose.randint(0, 3)):
            now += choose.randint(0, 2)
            events.append(
                {"type": choose.choice("NM"), "t": now, "k": choose.randint(0, 3), "x": choose.randint(0, 20)}
            )
        now += choose.randint(1, 3)
        rows.append(len(events))
        events.append({"type": step, "t": now, "k": key, "x": bound + choose.randint(1, 5)})
    for _ in range(choose.randint(0, 2)):
        events.append({"type": "N", "t": now, "k": key, "x": None})
    lasts = events[rows[-1]]["t"] - events[rows[0]]["t"]
    return Near(choose.choice(["ceql", "sase", "eql"]), lasts + choose.randint(0, 3), bound, events, tuple(rows))


def broken(one: Near, how: str, choose: random.Random) -> Near:
    events = [dict(event) for event in one.events]
    first, middle, last = one.rows
    match how:
        case "value":
            events[middle]["x"] = one.bound - choose.randint(0, 3)
        case "null":
            events[middle]["x"] = None
        case "time":
            more = one.window - (events[last]["t"] - events[first]["t"]) + choose.randint(1, 5)
            for event in events[last:]:
                event["t"] += more
        case "type":
            events[last]["type"] = "X"
        case "key":
            events[choose.choice([first, middle, last])]["k"] = 9
        case "between":
            events.insert(middle, {"type": "D", "t": events[middle]["t"], "k": events[first]["k"], "x": None})
    return replace(one, events=events)


def undone(one: Near, reason: Reason) -> Near:
    """The query and its events without what a reason names."""
    events = [dict(event) for event in one.events]
    if reason.kind == "window":
        return replace(one, window=int(dict(reason.values)["lasts"]))
    if reason.kind == "negation":
        return replace(one, events=[event for at, event in enumerate(events) if at not in reason.rows])
    if reason.kind == "absent":
        last = dict(events[-1])
        return replace(one, events=[*events, last | {"type": "C", "k": events[one.rows[0]]["k"], "x": 1}])
    for row in reason.rows:
        if reason.kind == "condition":
            events[row]["x"] = one.bound + 1
        else:
            events[row]["k"] = 7
    return replace(one, events=events)


@pytest.mark.parametrize("how", BREAKS)
def test_what_is_broken_is_named(how: str) -> None:
    for seed in range(cases(200, compiled=40)):
        choose = random.Random(f"{how} {seed}")
        whole = near(choose)
        assert whole.matches(), seed
        one = broken(whole, how, choose)
        assert not one.matches(), seed
        answer = one.answer()
        assert not answer.matches, seed
        reasons = [miss.reasons[0] for miss in answer.misses if len(miss.reasons) == 1]
        told = f"seed {seed}: {one.query}\n{one.events}\n{answer}"
        assert KINDS[how] in [reason.kind for reason in reasons], told
        for reason in reasons:
            if reason.kind != "absent" or how == "type":
                assert undone(replace(one, window=one.window + 9 * (how == "type")), reason).matches(), (told, reason)
