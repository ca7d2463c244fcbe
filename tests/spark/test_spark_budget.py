"""A budget for what a task lists: the exception holds the error of one process."""

from __future__ import annotations

from typing import Any

import pytest

import stretto.spark

EXPLODES = "SELECT * FROM S WHERE A+ AS a ; B PARTITION BY [k] WITHIN 1000 [t]"


def test_a_task_has_a_budget(spark: Any) -> None:
    rows = [("A", "x", t) for t in range(80)] + [("B", "x", 80)]
    many = spark.createDataFrame(rows, "type string, k string, t long")
    few = many.filter("t >= 74")

    def found(events: Any, **options: Any) -> int:
        return stretto.spark.match(events, EXPLODES, time="t", output="positions", **options).count()

    with pytest.raises(Exception, match=r"LimitError: the event \(t = 80, k = 'x'\) completes about 2\^80 matches"):
        found(many)
    assert found(few, budget=63) == 63
    with pytest.raises(Exception, match=r"completes 63 matches \(counted, not listed\): .* budget of 62 rows"):
        found(few, budget=62)
