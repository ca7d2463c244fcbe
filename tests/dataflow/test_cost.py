"""What work costs as groups grow: near linear in their rows, by the ratio of processor time in one run."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from stretto.dataflow import Dataflow, Stream, fixpoint, stream
from tests.conftest import size

#: Rows of the smaller run; the greater one has four times as many. Linear cost gives 4, quadratic 16.
ROWS = size(5000, 250)
MOST = 10


def seconds(made: Stream, events: pa.Table, batch: int | None = None) -> float:
    """Processor time that a query takes over events in one batch, or in batches of so many rows."""
    flow = Dataflow(found=made)
    rows = 0
    begin = time.process_time()
    for first in range(0, events.num_rows, batch or events.num_rows):
        flow.push("s", events.slice(first, batch))
        flow.run_until_idle()
        rows += flow.output("found").num_rows
    assert rows
    return time.process_time() - begin


def ratio(made: Stream, events: Any, batch: int | None = None) -> float:
    """How many times as long four times as many rows take: the least of each, measured again while a busy machine blurs it."""
    seconds(made, events(10))  # compiles
    few, many = events(ROWS), events(4 * ROWS)
    once = whole = float("inf")
    for at in range(8):
        once, whole = min(once, seconds(made, few, batch)), min(whole, seconds(made, many, batch))
        if at >= 2 and whole / once < MOST:
            break
    return whole / once


@pytest.mark.parametrize("function", ["sum", "min", "max", "avg"])
@pytest.mark.parametrize("kind", [int, float])
def test_a_group_that_only_grows(function: str, kind: type) -> None:
    def events(rows: int) -> pa.Table:
        values = [kind(7919 * at % 10007) for at in range(rows)]
        return pa.table({"v": values, "vs": range(rows)})

    made = stream("s", {"v": kind}).aggregate(found=f"{function}(v)")
    assert ratio(made, events) < MOST
    assert ratio(made, events, batch=10) < MOST


LINKS = {"a": int, "b": int}


@pytest.mark.parametrize("query", ["as it is", "reachable"])
def test_a_link_that_comes_and_goes(query: str) -> None:
    def events(rows: int) -> pa.Table:
        comes = [time for time in range(rows // 2) for _ in range(2)]
        goes = [None if at % 2 == 0 else at // 2 + 1 for at in range(2 * (rows // 2))]
        never = pa.nulls(len(comes), pa.int64())
        return pa.table(
            {"a": [1] * len(comes), "b": [2] * len(comes), "vs": [2 * one for one in comes], "ve": never}
        ).append_column("ve_new", pa.array([None if one is None else 2 * one - 1 for one in goes], pa.int64()))

    links = stream("s", LINKS)
    made = links.where("a < b")
    if query == "reachable":
        made = fixpoint(
            lambda r: links.union(links.join(r, on={"b": "a"}).project("a", b="b_right")).distinct(), schema=LINKS
        )
    assert ratio(made, events) < MOST
