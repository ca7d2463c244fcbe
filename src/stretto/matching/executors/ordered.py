"""A stream whose run reads events in order: reorder? → run → layout → meter, whatever the run is of.

Who derives from it says what it binds, how a run's finds become tables, and what it keeps beside the run.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar

import pyarrow as pa

from stretto.errors import OptionError, StrettoError
from stretto.matching.executors.base import Executor
from stretto.matching.lifecycle import Life
from stretto.matching.output.memory_budget import Meter
from stretto.matching.reorder import Cleanse, Released, check_span
from stretto.matching.reorder.spans import check_late
from stretto.times import FOREVER, check_clock


class OrderedExecutor(Executor):
    """What sorts events, if they come out of order, and hands them to a run.

    Parameters
    ----------
    disorder, late, budget, capacity
        As of :class:`~stretto.Matcher`.
    """

    #: What is counted of a stream of which nothing is known yet.
    COUNTED: ClassVar[tuple[str, ...]]
    #: What the stream consists of.
    NOUN: ClassVar[str] = "events"
    run: Any

    def __init__(self, disorder: Any, late: str, budget: int | float | str | Meter | None, capacity: int) -> None:
        check_late(late, ("error", "drop") if disorder is None else ("error", "drop", "side"))
        if disorder is not None:
            check_span(disorder, "disorder")
        self.disorder, self.late_policy, self.budget, self.capacity = disorder, late, budget, capacity
        self.run = None
        self.sorter: Cleanse | None = None
        self.life = Life()
        self.meter = Meter.of_call(budget)  # of the call at hand

    # -- what it is ---------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"{self.position} rows read"

    @property
    def position(self) -> int:
        if self.sorter is not None:
            return self.sorter.position
        return self.run.rows if self.run else 0

    @property
    def late(self) -> int:
        if self.sorter is not None:
            return self.sorter.late
        return self.run.late if self.run else 0

    def late_events(self) -> pa.Table:
        return pa.table({}) if self.sorter is None else self.sorter.late_events()

    @property
    def punctuation(self) -> Any:
        return None if self.sorter is None else self.sorter.punctuation

    @property
    def stats(self) -> dict[str, int]:
        if self.run is None:
            return dict.fromkeys(self.COUNTED, 0)
        found = dict(self.run.stats)
        if self.sorter is not None:
            there = self.sorter.stats
            found |= {"events": there["rows"], "late": there["late"], "waiting": there["buffered"]}
            found["bytes"] += there["bytes"]
        return found

    @property
    def idle(self) -> bool:
        waits = self.sorter is not None and self.sorter.buffered > 0
        return not waits and (self.run is None or self.run.idle)

    @property
    def expires(self) -> int | float | None:
        found: int | float | None = self.run.expires if self.run else None
        return found

    @property
    def ends(self) -> int | None:
        return None if self.idle else FOREVER

    # -- what derives from it says --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def shown(self) -> pa.Schema:
        """The columns of the result, once they are known."""

    @abstractmethod
    def _read(self, events: Any, punctuations: list[tuple[int, Any]], *, silent: bool = False) -> Iterator[pa.Table]:
        """Take the next events, and give what they complete."""

    @abstractmethod
    def _through(self, operation: Callable[[], Released]) -> Iterator[pa.Table]:
        """Hand the run what an operation of the sorter lets through."""

    @abstractmethod
    def _clock(self, time: Any) -> tuple[str, pa.DataType]:
        """The column of the time that a punctuation is of, and its type."""

    @abstractmethod
    def _moment(self, time: pa.Array, name: str) -> Any:
        """A time, as a column of one, as the run measures it."""

    @abstractmethod
    def _reached(self, time: Any) -> Iterator[pa.Table]:
        """What is certain where no event before a time will come."""

    def _told(self) -> Iterator[pa.Table]:
        """What a punctuation decides beside the events that it lets through."""
        return iter(())

    @abstractmethod
    def _ended(self) -> Iterator[pa.Table]:
        """What the end of the stream completes of what was read."""

    # -- events ---------------------------------------------------------------------------------------------------------

    def push(self, events: Any, *, arcs: Any = None, punctuations: Any = ()) -> pa.Table:
        if arcs is not None:
            self._refuse_arcs("push(…, arcs=…)")
        tables = self._read(events, list(punctuations))
        self.meter = Meter.of_call(self.budget)
        return self._gathered(tables)

    def iter_push(self, events: Any) -> Iterator[pa.Table]:
        tables = self._read(events, [])
        self.meter = Meter.of_call(self.budget, pieces=True)
        return tables

    def advance(self, time: Any, *, where: str | None = None) -> pa.Table:
        if where is not None:
            self._refuse_arcs("advance(…, where=…)")
        self._running()
        name, kind = self._clock(time)
        self.meter = Meter.of_call(self.budget)
        sorter = self.sorter
        if sorter is not None:
            tick = sorter.tick(time)
            return self._gathered(chain(self._through(lambda: sorter.pass_on(tick)), self._told()))
        self.life.refuse_inside()
        try:
            check_clock(time, kind)
            value = self._moment(pa.array([time], kind), name)
        except StrettoError:
            raise
        except (ValueError, TypeError, OverflowError) as error:  # pa.ArrowInvalid is a ValueError
            raise OptionError(f"advance({time!r}): '{name}' is {kind}; {error}") from error
        return self._gathered(self._reached(value))

    def finish(self) -> pa.Table:
        self.meter = Meter.of_call(self.budget)
        return self._gathered(self._finished())

    def _finished(self) -> Iterator[pa.Table]:
        self.life.refuse_inside()
        if self.sorter is not None and not self.life.finished:
            yield from list(self._through(self.sorter.end))
        yield from self._ended()

    def _gathered(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Pieces as one table."""
        parts = list(tables)
        if self.run is None:
            return pa.table({})
        return pa.Table.from_batches([one for table in parts for one in table.to_batches()], schema=self.shown)

    def _running(self) -> Any:
        if self.run is None:
            raise OptionError(f"the matcher has no schema yet: pass schema=…, or push {self.NOUN} first")
        return self.run

    def _refuse_punctuations(self, given: list[tuple[int, Any]]) -> None:
        """Raise an :class:`OptionError` for punctuations between rows that nothing sorts."""
        if given:
            raise OptionError(
                f"punctuations= stand between rows where {self.NOUN} are sorted: give disorder=, or advance() between pushes"
            )
