"""Threads and processes: one object takes one thread at a time and says so; everything else may be shared."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, stream

QUERY = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 5 [t]"
SCHEMA = {"type": "string", "t": "int64", "k": "int64"}
EVENTS = [{"type": "AB"[n % 2], "t": n, "k": n % 3} for n in range(60)]
WANTED = stretto.match(QUERY, EVENTS, time="t").num_rows


class Slow:
    """A table that waits while it is read, so that a second thread comes in between."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.table = pa.Table.from_pylist(rows)
        self.read, self.go_on = threading.Event(), threading.Event()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.read.set()
        assert self.go_on.wait(60)
        return self.table.__arrow_c_stream__(requested_schema)


def _patterns() -> stretto.PatternSet:
    found = stretto.PatternSet(SCHEMA, time="t")
    found.change([stretto.Change("ab", QUERY)])
    return found


def _flow() -> Dataflow:
    return Dataflow(links=stream("links", {"src": int}).distinct())


LINK = [{"src": 1, "vs": 1}]

#: By what it is called: how it is made, how it takes events, and other calls of it.
OBJECTS: dict[
    str, tuple[Callable[[], Any], Callable[[Any, Any], Any], list[Callable[[Any], Any]], list[dict[str, Any]]]
] = {
    "matcher": (
        lambda: stretto.Matcher(QUERY, SCHEMA, time="t"),
        lambda one, events: one.push(events),
        [
            lambda one: one.push(EVENTS),
            lambda one: one.advance(3),
            lambda one: one.finish(),
            lambda one: one.snapshot(),
            lambda one: one.restore(b""),
            lambda one: list(one.iter_push(EVENTS)),
            lambda one: one.held(),
        ],
        EVENTS,
    ),
    "set of patterns": (
        _patterns,
        lambda one, events: one.push(events),
        [
            lambda one: one.push(EVENTS),
            lambda one: one.change([stretto.Change("c", QUERY)]),
            lambda one: one.advance(3),
            lambda one: one.finish(),
            lambda one: one.snapshot(),
            lambda one: one.held(),
        ],
        EVENTS,
    ),
    "Cleanse": (
        lambda: stretto.Cleanse(SCHEMA, time="t", disorder=3),
        lambda one, events: one.push(events),
        [lambda one: one.push(EVENTS), lambda one: one.advance(3), lambda one: one.snapshot()],
        EVENTS,
    ),
    "dataflow": (
        _flow,
        lambda one, events: one.push("links", events),
        [
            lambda one: one.push("links", LINK),
            lambda one: one.run_until_idle(),
            lambda one: one.snapshot(),
            lambda one: one.output("links"),
        ],
        LINK,
    ),
}


@pytest.mark.parametrize("what", OBJECTS)
def test_a_second_thread_is_told_and_changes_nothing(what: str) -> None:
    make, push, others, events = OBJECTS[what]
    shared, alone, slow = make(), make(), Slow(events)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(push, shared, slow)
        assert slow.read.wait(60)
        try:
            for other in others:
                with pytest.raises(stretto.EngineError, match=rf"another thread is inside a call of this {what}"):
                    other(shared)
        finally:
            slow.go_on.set()
        first.result()
    push(alone, events)
    assert shared.snapshot() == alone.snapshot()  # and the first thread has gone on as if nothing had been


def test_an_iterator_is_read_by_one_thread_at_a_time() -> None:
    started, go_on = threading.Event(), threading.Event()

    def pieces() -> Iterator[int]:
        started.set()
        assert go_on.wait(60)
        yield 1

    from stretto.matching.lifecycle import InTurn, Turn

    shared = InTurn(pieces(), Turn("iterator"))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(next, shared)
        assert started.wait(60)
        with pytest.raises(stretto.EngineError, match="another thread is inside a call of this iterator"):
            next(shared)
        go_on.set()
        assert first.result() == 1
    assert sum(piece.num_rows for piece in stretto.iter_matches(QUERY, EVENTS, time="t")) == WANTED


def test_many_threads_push_without_a_lock_and_get_clear_errors_only() -> None:
    matcher = stretto.Matcher("SELECT * FROM S WHERE A ; B", SCHEMA, output="summary")
    pushed, other = [], []

    def run() -> None:
        for _ in range(40):
            try:
                matcher.push(EVENTS[:2])
                pushed.append(1)
            except stretto.EngineError:
                time.sleep(0)
            except Exception as error:
                other.append(repr(error))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert other == []
    assert matcher.position == 2 * len(pushed) > 0


def test_queries_rules_and_calls_are_shared() -> None:
    query = stretto.compile(QUERY)
    rules = stretto.read_rules([{"id": "ab", "query": QUERY}])

    def work(number: int) -> list[int]:
        matcher = stretto.Matcher(query, SCHEMA, time="t")
        pieces = [matcher.push(EVENTS[: 20 + number]), matcher.push(EVENTS[20 + number :])]
        return [
            stretto.match(query, EVENTS, time="t").num_rows,
            sum(one.num_rows for one in pieces),
            rules.match(EVENTS, type="type", time="t").matches.num_rows,
        ]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(12))) == [[WANTED] * 3] * 12


def test_asyncio_gives_its_calls_to_a_thread() -> None:
    async def run() -> int:
        matcher, lock = stretto.Matcher(QUERY, SCHEMA, time="t"), asyncio.Lock()
        found = 0

        async def push(event: dict[str, Any]) -> None:
            nonlocal found
            async with lock:
                found += (await asyncio.to_thread(matcher.push, [event])).num_rows

        for event in EVENTS:
            await push(event)
        return found

    assert asyncio.run(run()) == WANTED


@pytest.mark.parametrize("what", OBJECTS)
def test_what_reads_a_stream_does_not_travel(what: str) -> None:
    with pytest.raises(stretto.OptionError, match="send its snapshot"):
        pickle.dumps(OBJECTS[what][0]())


def _in_process(events: list[dict[str, Any]]) -> int:
    return stretto.match(QUERY, events, time="t").num_rows


@pytest.mark.parametrize("how", [one for one in ("spawn", "fork") if one in multiprocessing.get_all_start_methods()])
def test_processes(how: str) -> None:
    with multiprocessing.get_context(how).Pool(1) as pool:
        assert pool.map(_in_process, [EVENTS] * 2) == [WANTED] * 2
