"""Compiles the kernels once, before the workers of a test run would all do it at the same time: ``python -m tests.warm``.

On a clean clone that takes minutes of processor time, most of it for AFAs; so the engines are shared out among two processes.
Later it takes a few seconds. What only few tests need is left to them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from multiprocessing import get_context

import pyarrow as pa

import stretto
from stretto.dataflow import Dataflow, stream
from tests.conftest import MODE

EVENTS = pa.table(
    {"type": ["A", "B", "A", "B"], "v": [1, 2, 3, 4], "k": ["x", "x", "y", "y"], "ts": [1, 2, 3, 4]},
)


def automata() -> None:
    afa = stretto.AFA(events={"type": str, "v": int}, register={"n": int}, initial={"n": 0}, start="q0", window=6)
    afa.arc("q0", "q1", when="e.type = 'A'", then={"n": "e.v"}).ignore("q1")
    afa.arc("q1", "q2", when="e.type = 'B'", then={"n": "r.n + e.v"}).final("q2")
    stretto.match(afa, EVENTS, time="ts")


def queries() -> None:
    for text in (
        "SELECT * FROM S WHERE A ; B",
        "SELECT MAX * FROM S WHERE A AS a ; B FILTER a[v > 0] PARTITION BY [k] WITHIN 10 [ts]",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] and b[i].v > a.v } WITHIN 10",
    ):
        stretto.match(text, EVENTS, time="ts")


def dataflows() -> None:
    link = stream("link", {"src": int, "dst": int})
    two = link.join(link, on={"dst": "src"}, suffix="_right")
    flow = Dataflow(
        out=two.where("src > 0").aggregate(["src"], most="max(dst_right)", number="count()", sum="sum(dst)")
    )
    flow.push("link", [{"src": 1, "dst": 2, "vs": 1}, {"src": 2, "dst": 3, "vs": 2}])
    flow.run_until_idle()


def main() -> None:
    began = time.perf_counter()
    context = get_context("spawn")
    shares: list[tuple[Callable[[], None], ...]] = [(automata,), (queries, dataflows)]
    workers = [context.Process(target=in_turn, args=(share,)) for share in shares]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"kernels, {MODE}: there after {time.perf_counter() - began:.0f} s", flush=True)
    sys.exit(any(worker.exitcode for worker in workers))


def in_turn(share: tuple[Callable[[], None], ...]) -> None:
    for one in share:
        one()


if __name__ == "__main__":
    main()
