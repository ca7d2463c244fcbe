"""What a Cleanse reads of its events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64, Bits
from stretto.columns.measured import integers, values_of
from stretto.errors import OptionError
from stretto.events import require
from stretto.matching.reorder.runs import Run
from stretto.times import BEFORE_ALL, FOREVER, as_times, check_clock, shown_time, ticks

#: Times as ticks, or real numbers.
Times = NDArray[Any]


class Columns:
    """The columns of events that play a role in a :class:`~stretto.matching.reorder.Cleanse`, and how they are read."""

    def __init__(
        self,
        time: str,
        sequence: str | None,
        sign: str | None,
        partition_by: Sequence[str],
        payload: Sequence[str] | None,
    ) -> None:
        self.time, self.sequence, self.sign = time, sequence, sign
        self.partition_by, self.payload = tuple(partition_by), None if payload is None else tuple(payload)
        self.schema: pa.Schema | None = None  #: of the events, once it is known
        self.before: Any = BEFORE_ALL  #: all times
        self.after: Any = FOREVER
        self.dtype: Any = np.dtype(np.int64)

    @property
    def named(self) -> list[str]:
        """The columns that play a role."""
        roles = (self.time, self.sequence, self.sign)
        return [*(name for name in roles if name is not None), *self.partition_by, *(self.payload or ())]

    def bind(self, schema: pa.Schema) -> None:
        """Take the names and types of the columns."""
        roles = {"time": self.time, "sequence": self.sequence, "sign": self.sign}
        named = [(name, role) for role, name in roles.items() if name is not None]
        named += [(name, "partition_by") for name in self.partition_by]
        named += [(name, "payload") for name in self.payload or ()]
        for name, role in named:
            require(schema.names, name, role)
        self.schema = schema
        real = pa.types.is_floating(self.kind)
        self.dtype = np.dtype(np.float64 if real else np.int64)
        self.before, self.after = (-math.inf, math.inf) if real else (BEFORE_ALL, FOREVER)

    @property
    def kind(self) -> pa.DataType:
        """The type of times."""
        assert self.schema is not None
        return self.schema.field(self.time).type

    def read(self, batch: pa.RecordBatch, row: I64, first: int) -> Run:
        """Events of these rows; ``first`` is the number that errors give the first."""
        tie = None if self.sequence is None else integers(batch, self.sequence, "sequence", first)
        return Run(self._ticks(batch.column(self.time), first), tie, row, batch)

    def tick(self, time: Any) -> int | float:
        """One time as the operator counts."""
        kind = self.kind
        try:
            check_clock(time, kind)
        except ValueError as error:
            raise OptionError(f"{time!r} is no time of '{self.time}', which is {kind}; {error}") from error
        try:
            found: int | float = self._ticks(pa.array([time], kind), 0)[0].item()
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
            raise OptionError(f"{time!r} is no time of '{self.time}', which is {kind}") from error
        return found

    def _ticks(self, column: pa.Array, first: int) -> Times:
        return (
            values_of(column, self.time, first)
            if pa.types.is_floating(column.type)
            else ticks(column, self.time, first)
        )

    def shown(self, tick: int | float) -> Any:
        """A time as users write it."""
        kind = self.kind
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return tick.item() if isinstance(tick, np.generic) else tick
        return shown_time(as_times(np.array([tick]), kind)[0])

    def nowhere(self, batch: pa.RecordBatch) -> Bits | None:
        """Which rows are in no partition; ``None``: none."""
        found: Bits | None = None
        for name in self.partition_by:
            column = batch.column(name)
            if column.null_count:
                missing = np.asarray(column.is_null())
                found = missing if found is None else found | missing
        return found

    def seen(self, time: Times, sign: I64 | None) -> Times:
        """The times of events that come, those in no partition too; of retractions, a time before all."""
        return time if sign is None else np.where(sign > 0, time, self.before)

    @property
    def telling(self) -> list[str]:
        """The columns that tell which event is retracted."""
        assert self.schema is not None
        if self.sequence is not None:
            return [*self.partition_by, self.time, self.sequence]
        payload = self.schema.names if self.payload is None else self.payload
        return list(dict.fromkeys([*self.partition_by, self.time, *(name for name in payload if name != self.sign)]))

    def revisions(self, here: Run, sign: I64, inside: I64) -> I64:
        """The retractions among rows that have the insertion of the same place right behind them."""
        pair = (np.diff(inside) == 1) & (sign[inside[:-1]] < 0) & (sign[inside[1:]] > 0)
        first = np.flatnonzero(pair)
        names = [*self.partition_by, self.time, *([] if self.sequence is None else [self.sequence])]
        same = np.ones(first.size, np.bool_)
        for name in names:
            column = here.batch.column(name)
            one, two = column.take(pa.array(inside[first])), column.take(pa.array(inside[first + 1]))
            same &= np.asarray(pc.equal(one, two).fill_null(False))
        return first[same]
