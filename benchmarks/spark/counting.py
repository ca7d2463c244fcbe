"""What stretto is compared with where only the cost of the surroundings matters: functions and states that just count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

__all__ = ["CountFrames", "CountPacked", "CountPackedFrames", "count_batches", "same_plan"]


def count_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What every pass through Python costs at least."""
    yield pa.RecordBatch.from_pydict({"rows": pa.array([sum(batch.num_rows for batch in batches)])})


def same_plan(frame: Any) -> AbstractContextManager[Any]:
    """While this holds, ``stretto.spark.match`` plans as ever, but in Python only counts the rows that arrive.

    So the comparison is with stretto's own plan (columns, filters, exchange, sort, slices), whatever it is.
    """
    kind = type(frame)
    original = kind.mapInArrow

    def counting(self: Any, function: Any, schema: Any, *rest: Any, **options: Any) -> Any:
        return original(self, count_batches, "rows long", *rest, **options)

    return mock.patch.object(kind, "mapInArrow", counting)


def filler(size: int) -> bytes:
    """A state of ``size`` bytes that compresses about as a matcher's does: small numbers in 64-bit integers."""
    numbers = np.random.default_rng(3).integers(0, 1 << 24, size // 8 + 1)
    return numbers.astype(np.int64).tobytes()[:size]


class _Counter:
    """Reads a bucket's state, counts, writes the state, as large as the matcher's."""

    def __init__(self, size: int) -> None:
        self.size = size

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("count", "state binary")
        self.body = filler(self.size)

    def close(self) -> None:
        """Nothing is held."""

    def add(self, rows: int) -> None:
        known = self.state.get()
        before = int.from_bytes(bytes(known[0])[:8], "little") if known is not None else 0
        self.state.update(((before + rows).to_bytes(8, "little") + self.body,))


def _processor() -> type:
    from pyspark.sql.streaming import StatefulProcessor

    return StatefulProcessor  # type: ignore[no-any-return]


def CountPacked(size: int) -> Any:
    """A processor of rows that hold many events each, as Arrow bytes (:mod:`stretto.spark.streaming.packing`)."""
    from pyspark.sql import Row

    class Processor(_Counter, _processor()):  # type: ignore[misc]
        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            number = sum(pa.ipc.open_stream(row.data).read_all().num_rows for row in rows if row.data)
            self.add(number)
            yield Row(rows=number)

    return Processor(size)


def CountPackedFrames(size: int) -> Any:
    """As :func:`CountPacked`, in pandas frames."""
    import pandas as pd

    class Processor(_Counter, _processor()):  # type: ignore[misc]
        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            packed = [data for frame in rows for data in frame["data"] if data]
            number = sum(pa.ipc.open_stream(data).read_all().num_rows for data in packed)
            self.add(number)
            yield pd.DataFrame({"rows": [number]})

    return Processor(size)


def CountFrames(size: int) -> Any:
    """A processor of pandas frames."""
    import pandas as pd

    class Processor(_Counter, _processor()):  # type: ignore[misc]
        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            number = sum(len(frame) for frame in rows)
            self.add(number)
            yield pd.DataFrame({"rows": [number]})

    return Processor(size)
