"""The AFA operator with controlled speculation (AFA paper, section 5.3): a Cleanse in front of it, or behind it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.engines.afa.intake import Changes
from stretto.engines.afa.structure import FOREVER, PUNCTUATE
from stretto.errors import EngineError, OptionError, SnapshotError, StrettoError
from stretto.frame import Section
from stretto.languages.afa.builder import AFA
from stretto.matching.arcs import ArcChanges
from stretto.matching.automaton import AfaMatcher, free_name
from stretto.matching.reorder import Cleanse, Released, check_span
from stretto.query.afa import Afa

__all__ = ["CleansedMatcher"]

I64 = NDArray[np.int64]


class CleansedMatcher(AfaMatcher):
    """An :class:`~stretto.AfaMatcher` that speculates as far as it is told: ``stretto.Matcher(afa, speculation=…)``.

    Whatever the speculation, the final result is the same. With 0 nothing that was given is ever taken back; the more, the earlier
    output comes, and the more of it is taken back.

    Parameters
    ----------
    afa, schema, options
        As for the :class:`~stretto.AfaMatcher`. With ``ordered=True`` and ``speculation=0`` the operator itself keeps no
        events.
    speculation
        How far beyond the punctuation: ticks of the time column, ``'5 seconds'``, a timedelta, or ``math.inf``.
    bound
        The punctuation follows the data, as the greatest time seen minus the bound (k-slack); ``None``: :meth:`advance` gives it.
    cleanse
        ``"before"``: events wait in front of the operator until their time is below punctuation + speculation, so that it sees
        them in order (beyond what is speculated). ``"after"``: the operator reads events as they come, and its output waits until
        its time is below punctuation + speculation; what is taken back in the meantime is never seen.

    Examples
    --------
    >>> import stretto
    >>> afa = stretto.AFA({"kind": str}, window=10)
    >>> afa = afa.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")
    >>> matcher = stretto.Matcher(afa, time="t", speculation=0)
    >>> matcher.push([{"t": 1, "kind": "a"}, {"t": 3, "kind": "b"}, {"t": 2, "kind": "c"}, {"t": 4, "kind": "a"}]).num_rows
    0
    >>> matcher.push([{"t": 5, "kind": "b"}]).num_rows
    0
    >>> matcher.advance(6).select(["sign", "start", "end"]).to_pylist()
    [{'sign': 1, 'start': 3, 'end': 4}]
    """

    def __init__(
        self,
        afa: AFA | Afa,
        schema: Any = None,
        *,
        speculation: Any = None,
        bound: Any = None,
        cleanse: str | None = None,
        **options: Any,
    ) -> None:
        if speculation is None and bound is None:
            raise OptionError(f"cleanse={cleanse!r} needs speculation=…, how far beyond the punctuation")
        if cleanse not in (None, "before", "after"):
            raise OptionError(f"cleanse={cleanse!r}: expected 'before' or 'after'")
        speculation = 0 if speculation is None else speculation
        ahead = check_span(speculation, "speculation")
        if bound is not None:
            check_span(bound, "bound")
        self._speculation, self._disorder = speculation, bound
        self._behind = cleanse == "after"
        if options.get("ordered") and (self._behind or ahead):
            raise OptionError("ordered=True needs events in order: speculation=0 before the operator")
        if options.get("timer") is not None and not self._behind:
            raise OptionError(
                "timer= marks the ends of windows in partitions that have events, and events that wait are not there yet: use "
                "cleanse='after'"
            )
        self._stopped = False
        super().__init__(afa, schema, **options)

    def _start(self, kind: pa.DataType | None) -> None:
        super()._start(kind)
        options = self._options
        self._front: Cleanse | None = None  # in front of the operator
        self._back: Cleanse | None = None  # behind it
        if not self._behind or self._disorder is not None:
            self._front = Cleanse(
                time=options["time"],
                sequence=options["sequence"] or options["numbered"],
                sign=options["sign"],
                partition_by=self.afa.partition_by,
                payload=list(self.afa.events),
                speculation=math.inf if self._behind else self._speculation,
                disorder=self._disorder,
                late=options["late"],
            )
        if self._behind:
            keys = (free_name(name) for name in self.afa.partition_by)
            told = ["start", "end", "end_time", "until", *keys, "register"]
            self._back = Cleanse(time="end_time", sign="sign", payload=told, speculation=self._speculation)

    def _bind(self, schema: pa.Schema) -> None:
        super()._bind(schema)
        if self._front is not None:
            self._front.bind(pa.schema(list(self._kinds.items())))
        if self._back is not None:
            self._back.bind(self._schema())

    # -- events -------------------------------------------------------------------------------------------------------

    def push(self, events: Any, *, arcs: Any = None, punctuations: Any = ()) -> pa.Table:
        """Take the next rows; the signed output that may be seen. As :meth:`AfaMatcher.push`.

        Changes of arcs concern what the operator sees: with a Cleanse in front of it and ``dynamic="default"``, the greatest time
        seen is that of the events let through.

        Raises
        ------
        DataError
            The rows do not fit the schema, or one is late, or retracts an event that should wait and does not: nothing is taken
            then. Or, behind a Cleanse, a function of an arc fails for a row, which may have come before, or an event is retracted
            that is not there: such rows are left out, all others are taken, and the next call gives their output. The same may
            happen where :meth:`advance` and :meth:`finish` let events through.
        LimitError
            An ε-cycle does not end for a row, which is left out in the same way.
        """
        front = self._front
        if front is None:
            return super().push(events, arcs=arcs, punctuations=punctuations)
        self._refuse_stopped()
        if arcs is not None and self._disorder is not None:
            raise OptionError("with bound= arcs change between pushes: add_arc(), retire_arc()")
        pairs = list(punctuations)
        table = self._conformed(events, alone=arcs is not None or bool(pairs))
        if table is None:
            return self._table()
        self._refuse_marks(pairs)
        stream = None if arcs is None else self._stream(arcs, table.num_rows)
        try:
            released = front.let(table, pairs, places=stream is not None)
        except StrettoError:
            if stream is not None:
                stream.carried_out(0)
            raise
        changes = Changes.none() if stream is None else self._moved(stream.changes(), pairs, released.places)
        self._let(released, changes, stream)
        return self._table()

    def _moved(self, changes: Changes, pairs: list[tuple[int, Any]], places: I64) -> Changes:
        """Changes of arcs, and punctuations, among the rows that are let through."""
        rows = np.array([row for row, _ in pairs], np.int64)
        assert self._front is not None
        times = np.array([self._front.tick(time) for _, time in pairs], np.int64)
        at = np.concatenate((np.searchsorted(places, 2 * changes.at), np.searchsorted(places, 2 * rows, side="right")))
        # At one row, arcs change before the punctuation.
        order = np.argsort(np.concatenate((2 * changes.at, 2 * rows + 1)), kind="stable")
        what = np.concatenate((changes.what, np.full(rows.size, PUNCTUATE)))
        return Changes(at[order], what[order], np.concatenate((changes.which, times))[order])

    def _let(self, released: Released, changes: Changes, stream: ArcChanges | None) -> None:
        """Events that came through go to the operator, and the punctuation follows them."""
        front, runner = self._front, self._runner
        assert front is not None
        refused: list[StrettoError] = []
        if released.rows.size or changes.at.size:
            self._stopped = True
            self._carry_out(released.table, changes, stream, released.rows, refused)
            self._stopped = False
        runner.rows = front.position
        time = front.last_punctuation
        if time is not None:
            runner.punctuate(int(time))
        if refused:
            raise _left_out(refused)

    def advance(self, time: Any, *, where: str | None = None) -> pa.Table:
        """A punctuation, as :meth:`AfaMatcher.advance`; what waited for it goes on."""
        front = self._front
        if front is None:
            return super().advance(time, where=where)
        self._refuse_finished()
        self._refuse_stopped()
        if where is not None:
            raise OptionError(
                "a punctuation with a condition needs events that do not wait: cleanse='after', and no bound="
            )
        if front.schema is None:
            found = super().advance(time)
            front.advance(time)
            return found
        self._let(front.pass_on(front.tick(time)), Changes.none(), None)
        return self._table()

    def finish(self) -> pa.Table:
        """The stream has ended: nothing waits any more, and all output is final."""
        if self._front is not None and not self._finished:
            self._refuse_stopped()
            self._let(self._front.end(), Changes.none(), None)
        found = super().finish()
        if self._back is None or not self._bound:
            return found
        return pa.concat_tables([found, self._back.finish()])

    def _refuse_stopped(self) -> None:
        if self._stopped:
            raise EngineError(
                "this matcher was stopped in the middle of a batch; restore a snapshot or start a new one"
            )

    def _table(self) -> pa.Table:
        """The output so far that may be seen."""
        found = super()._table()
        if self._back is None or not self._bound:
            return found
        seen = [self._back.push(found)] if found.num_rows else []
        time, before = self._runner.punctuation, self._back.last_punctuation
        if time is not None and (before is None or time > before):
            seen.append(self._back.pass_on(time).table)
        return pa.concat_tables(seen) if seen else self._empty()

    # -- state --------------------------------------------------------------------------------------------------------

    @property
    def ends(self) -> int | None:
        """As of :class:`AfaMatcher`; of what waits it is not known."""
        waits = not self._finished and any(one is not None and one.buffered for one in (self._front, self._back))
        return FOREVER if waits else super().ends

    @property
    def late(self) -> int:
        """How many rows were late or retracted the unknown."""
        return super().late + (0 if self._front is None else self._front.late)

    def late_events(self) -> pa.Table:
        """With ``late="side"``: the rows that were late or retracted the unknown, since the last call."""
        found = super().late_events()
        if self._front is None or self._front.schema is None:
            return found
        return pa.concat_tables([self._front.late_events(), found])

    @property
    def stats(self) -> dict[str, int]:
        """As of :class:`AfaMatcher`, and ``waiting``: how many events and outputs wait."""
        there = [one for one in (self._front, self._back) if one is not None]
        found = super().stats | {"waiting": sum(one.buffered for one in there)}
        if self._front is not None:
            found |= {"rows": self._front.position, "late": self.late}
        found["bytes"] += sum(one.stats["bytes"] for one in there)
        return found

    def snapshot(self) -> bytes:
        """As :meth:`AfaMatcher.snapshot`; what waits is part of it."""
        if self._stopped:
            raise SnapshotError("the matcher was stopped in the middle of a batch: its state is not at an event")
        return super().snapshot()

    def _save_buffers(self, section: Section) -> None:
        for name, one in (("front", self._front), ("back", self._back)):
            if one is not None:
                one.save(section.sub(name))

    def _take_over(self, section: Section) -> None:
        super()._take_over(section)
        for name, one in (("front", self._front), ("back", self._back)):
            if one is not None:
                one.load(section.sub(name))
        self._stopped = False

    def _identity(self) -> dict[str, Any]:
        found = super()._identity()
        own = {
            "speculation": str(self._speculation),
            "bound": str(self._disorder),
            "cleanse": "after" if self._behind else "before",
        }
        return found | {"options": found["options"] | own}


def _left_out(refused: list[StrettoError]) -> StrettoError:
    """One error for all rows that the operator could not take."""
    what, *hints = str(refused[0]).split("\n")
    done = "the row was"
    if len(refused) > 1:
        what += f" (and {len(refused) - 1} more; the next: {str(refused[1]).splitlines()[0]})"
        done = "these rows were"
    return type(refused[0])(
        "\n".join([what, *hints, f"{done} left out; all others were taken, and the next call gives their output"])
    )
