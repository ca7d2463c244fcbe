"""The stateful operator of a continuous query, as Spark knows it: ``transformWithState`` over buckets of keys.

When a query starts, Spark's driver runs a Python process for :meth:`Buckets.init` alone. What works on events is therefore imported
by the first call (:mod:`stretto.spark.streaming.operator`): before it, this takes more time than all else that a start does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from stretto.spark.streaming import JOURNAL, STATE
from stretto.spark.workers import keep_loaded

if TYPE_CHECKING:
    from stretto.spark.streaming.keeping import Settings


class Buckets(StatefulProcessor):  # type: ignore[misc]
    """One call a bucket and micro-batch. The attributes are plain data: they travel to the workers."""

    def __init__(self, task: dict[str, Any], settings: Settings, *, copies: bool = True) -> None:
        self.task = task
        self.settings = dict(vars(settings))
        self.copied = copies
        self.operator: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.state = handle.getValueState(STATE, "state binary")
        self.entries = handle.getMapState(JOURNAL, "number int", "entry binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Take what arrived for the bucket, and match what the watermark has passed."""
        packed = [(row.source, row.number, row.data) for row in rows]
        return self._call(int(key[0]), packed, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """The watermark has passed what the bucket waited for, and nothing arrived."""
        return self._call(int(key[0]), [], timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def _call(self, number: int, packed: list[Any], timers: Any, fired: int | None = None) -> Iterator[Row]:
        if self.operator is None:
            from stretto.spark.kernels import receive
            from stretto.spark.streaming.keeping import Settings
            from stretto.spark.streaming.operator import Operator

            receive()
            settings = Settings(**self.settings)
            self.operator = Operator(self.task, settings, self.handle, self.state, self.entries, self.copied)
        found: Iterator[Row] = self.operator.call(number, packed, timers, fired)
        return found

    def close(self) -> None:
        """Nothing is held between calls."""
        keep_loaded()


class InPandas(StatefulProcessor):  # type: ignore[misc]
    """The operator of PySpark 4.0, which gets and gives pandas frames in place of rows."""

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = buckets

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.buckets.init(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        given = (row for frame in rows for row in frame.itertuples(index=False))
        return self._frames(self.buckets.handleInputRows(key, given, timerValues))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        return self._frames(self.buckets.handleExpiredTimer(key, timerValues, expiredTimerInfo))

    def _frames(self, rows: Iterator[Row]) -> Iterator[Any]:
        import pandas as pd

        return (pd.DataFrame([row.asDict()]) for row in rows)

    def close(self) -> None:
        self.buckets.close()
