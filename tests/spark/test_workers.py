"""What a worker keeps between tasks."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from stretto.spark import workers


def test_what_a_task_has_loaded_is_put_aside_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(workers, "_loaded", 0)
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))

    @workers.worker_task
    def double(batches: Iterator[int], *, times: int) -> Iterator[int]:
        yield from (times * one for one in batches)

    assert list(double(iter([1, 2]), times=2)) == [2, 4]
    assert list(double(iter([3]), times=3)) == [9]
    assert calls == ["freeze"]
    monkeypatch.setitem(sys.modules, "stretto_loaded_later", ModuleType("stretto_loaded_later"))
    assert list(double(iter([]), times=1)) == []
    assert calls == ["freeze", "freeze"]


def test_a_task_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)

    @workers.worker_task
    def failing(batches: Iterator[int]) -> Iterator[int]:
        yield from (10 // one for one in batches)

    found = failing(iter([5, 0]))
    assert next(found) == 2
    with pytest.raises(ZeroDivisionError):
        next(found)
