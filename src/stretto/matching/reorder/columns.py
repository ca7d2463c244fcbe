"""What a Cleanse reads of its events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.engines.shared.windows import values_of
from stretto.errors import OptionError
from stretto.matching.lateness import check_late
from stretto.matching.reorder.runs import Run
from stretto.matching.reorder.spans import check_span
from stretto.times import as_times, check_clock, ticks

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: Times as ticks, or real numbers.
Times = NDArray[Any]

#: A time before all times, and one after them.
BEFORE_ALL = -((1 << 63) - 1)
AFTER_ALL = (1 << 63) - 1


class Columns:
    """The options of a :class:`~stretto.matching.reorder.Cleanse`, and the columns of events that play a role."""

    def __init__(
        self,
        *,
        time: str,
        sequence: str | None = None,
        sign: str | None = None,
        partition_by: Sequence[str] = (),
        payload: Sequence[str] | None = None,
        speculation: Any = 0,
        disorder: Any = None,
        late: str = "error",
        time_unit: str | None = None,
    ) -> None:
        check_late(late)
        self._time, self._sequence, self._sign = time, sequence, sign
        self._partition_by, self._payload = tuple(partition_by), None if payload is None else tuple(payload)
        self._speculation, self._bound = speculation, None if disorder == math.inf else disorder
        self._late_policy = late
        self._unit = time_unit
        check_span(speculation, "speculation")
        if disorder is not None:
            check_span(disorder, "disorder")
        self._schema: pa.Schema | None = None
        self._ahead: int | float | None = None  # ticks; None: without end
        self._slack: int | float | None = None
        self._before: Any = BEFORE_ALL
        self._after: Any = AFTER_ALL
        self._punctuation: Any = BEFORE_ALL
        self._greatest: Any = BEFORE_ALL  # time seen
        self._limit: Any = BEFORE_ALL  # what is below has passed
        self._dtype: Any = np.dtype(np.int64)
        self._told: Any = None  # a punctuation before the type of the time is known
        self._finished = False
        self._rows = self._late = self._released = self._annihilated = self._peak = 0
        self._side: list[pa.RecordBatch] = []
        self._runs: list[Run] = []
        self._revised = False  # whether a buffered event has the row of another

    @property
    def schema(self) -> pa.Schema | None:
        """Of the events, once it is known."""
        return self._schema

    def tick(self, time: Any) -> int | float:
        """One time as the operator counts."""
        assert self._schema is not None
        kind = self._schema.field(self._time).type
        try:
            check_clock(time, kind)
        except ValueError as error:
            raise OptionError(f"{time!r} is no time of '{self._time}', which is {kind}; {error}") from error
        try:
            found: int | float = self._ticks(pa.array([time], kind), 0)[0].item()
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
            raise OptionError(f"{time!r} is no time of '{self._time}', which is {kind}") from error
        return found

    def _ticks(self, column: pa.Array, first: int) -> Times:
        return (
            values_of(column, self._time, first)
            if pa.types.is_floating(column.type)
            else ticks(column, self._time, first)
        )

    def _shown(self, tick: int | float) -> Any:
        """A time as users write it."""
        assert self._schema is not None
        kind = self._schema.field(self._time).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return tick.item() if isinstance(tick, np.generic) else tick
        found = as_times(np.array([tick]), kind)[0]
        try:
            return found.as_py()
        except ValueError:  # nanoseconds, which Python's times do not have
            return found

    def _nowhere(self, batch: pa.RecordBatch) -> Bools | None:
        """Which rows are in no partition; ``None``: none."""
        found: Bools | None = None
        for name in self._partition_by:
            column = batch.column(name)
            if column.null_count:
                missing = np.asarray(column.is_null())
                found = missing if found is None else found | missing
        return found

    def _seen(self, time: Times, sign: I64 | None, nowhere: Bools | None) -> Times:
        """The times of events that come; of all else, a time before all."""
        if sign is not None:
            time = np.where(sign > 0, time, self._before)
        return time if nowhere is None else np.where(nowhere, self._before, time)

    @property
    def _telling(self) -> list[str]:
        """The columns that tell which event is retracted."""
        assert self._schema is not None
        if self._sequence is not None:
            return [*self._partition_by, self._time, self._sequence]
        payload = self._schema.names if self._payload is None else self._payload
        return list(dict.fromkeys([*self._partition_by, self._time, *(name for name in payload if name != self._sign)]))

    def _revisions(self, here: Run, sign: I64, inside: I64) -> I64:
        """The retractions among rows that have the insertion of the same place right behind them."""
        pair = (np.diff(inside) == 1) & (sign[inside[:-1]] < 0) & (sign[inside[1:]] > 0)
        first = np.flatnonzero(pair)
        names = [*self._partition_by, self._time, *([] if self._sequence is None else [self._sequence])]
        same = np.ones(first.size, np.bool_)
        for name in names:
            column = here.batch.column(name)
            one, two = column.take(pa.array(inside[first])), column.take(pa.array(inside[first + 1]))
            same &= np.asarray(pc.equal(one, two).fill_null(False))
        return first[same]
