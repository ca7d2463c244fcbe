"""Punctuations: of events, of events that satisfy a condition (appendix F), of arcs, and what they mark and free."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.engines.afa import structure as s
from stretto.engines.afa.aggressive import prune
from stretto.engines.afa.between import Changes
from stretto.engines.afa.intake import value_type
from stretto.engines.afa.stepping import AfaStepping
from stretto.engines.afa.structure import Batch
from stretto.errors import DataError, OptionError
from stretto.query import predicate
from stretto.query.implication import implies
from stretto.times import BEFORE_ALL, as_times
from stretto.times import ticks as ticks_of


class Punctuations:
    """Takes promises about what will not come, for a run."""

    def __init__(self, run: AfaStepping) -> None:
        self._run = run

    def punctuate(self, time: int) -> None:
        """A punctuation of the events."""
        run = self._run
        self.refuse_back(np.array([time]))
        run.state.registers[s.PUNCTUATION] = time
        run.clean()

    def mark(self, time: int, timer: str) -> None:
        """The end-of-window indicator (appendix E): before all events of ``time``, every live partition gets an event with ``timer``
        true, its partition attributes and its time, and nothing else. It has no row.
        """
        run = self._run
        first = run.state.parts.first
        parts = np.flatnonzero(first[: 1 if run.keys is None else len(run.keys)])
        if not parts.size or time <= run.state.registers[s.PUNCTUATION]:
            return
        assert run.time_kind is not None
        arrays = {name: pa.nulls(parts.size, value_type(kind)) for name, kind in run.afa.events.items()}
        arrays[timer] = pa.array(np.ones(parts.size, np.bool_))
        if run.roles.time in arrays:
            arrays[run.roles.time] = as_times(np.full(parts.size, time), run.time_kind)
        if run.keys is not None:
            values = run.partition_values(parts)
            arrays |= {name: values.column(name) for name in run.afa.partition_by}
        le = np.full(parts.size, time)
        re = le + run.window if run.window is not None else np.full(parts.size, s.FOREVER)
        zeros = np.zeros(parts.size, np.int64)
        W = run.event_words(pa.record_batch(arrays))
        run.carry(Batch(zeros + s.INSERT, parts, le, zeros - s.FOREVER, re, zeros - 1, W, *Changes.none()), None)

    def advance_where(self, time: int, condition: predicate.Predicate, text: str) -> None:
        """A punctuation of the events that satisfy a condition (over attributes' own names), which was written so."""
        run = self._run
        if run.roles.sign is not None:
            raise OptionError("a punctuation with a condition needs a stream without retractions: leave out sign=")
        known, _ = run.predicated.get(condition, (BEFORE_ALL, ""))
        if time < known:
            raise DataError(
                f"the punctuation of {condition} goes back from {run.shown_time(known)} to {run.shown_time(time)}"
            )
        run.predicated[condition] = time, text
        self.prune()

    def prune(self) -> int:
        """Drop partial matches that no event still to come can complete (appendix F.2); how many."""
        run = self._run
        if run.roles.ordered:
            return 0
        m = run.memory()
        limit = m.registers[s.ARCS_CLEAN] if run.roles.dynamic == "explicit" else m.registers[s.SEEN] + 1
        bounds, arrival, done = (np.zeros(m.graph.states.shape[0], np.int64) for _ in range(3))
        pi = self._arc_punctuations()
        return int(prune(pi, int(limit), m.graph, m.P, m.events, m.parts, bounds, arrival, done, m.registers))

    def _arc_punctuations(self) -> I64:
        """By arc: no event still to come triggers it before this time."""
        run = self._run
        arcs = run.tables.arcs
        found = np.full(arcs.shape[0], run.state.registers[s.PUNCTUATION])
        for condition, (time, _) in run.predicated.items():
            for number, atom in enumerate(run.code.atoms):
                if implies(atom, condition):
                    concerned = arcs[:, s.ATOM] == number
                    found[concerned] = np.maximum(found[concerned], time)
        return found

    def refuse_back(self, times: I64) -> None:
        """Raise a :class:`DataError` when a punctuation would go back."""
        run = self._run
        before = np.concatenate((run.state.registers[s.PUNCTUATION : s.PUNCTUATION + 1], times[:-1]))
        if (times < before).any():
            at = int((times < before).argmax())
            raise DataError(
                f"the punctuation goes back from {run.shown_time(int(before[at]))} to {run.shown_time(int(times[at]))}"
            )

    def advance_arcs(self, time: int) -> None:
        """A punctuation of the arcs: no change of an arc concerns events before this time any more."""
        run = self._run
        if run.roles.dynamic != "explicit":
            raise OptionError("arcs have explicit lifetimes only with dynamic='explicit'")
        if time < run.arc_punctuation:
            raise DataError(
                f"the arcs' punctuation goes back from {run.shown_time(run.arc_punctuation)} to {run.shown_time(time)}"
            )
        run.state.registers[s.ARCS_CLEAN] = time
        run.clean()

    def rescale(self, kind: pa.DataType) -> None:
        """Times that came before the first event are now of this type."""
        run = self._run
        before, run.time_kind = run.time_kind, kind
        assert before is not None

        def moved(ticks: I64) -> I64:
            bounded = np.abs(ticks) < s.FOREVER - 1
            times = as_times(np.where(bounded, ticks, 0), before)
            return np.where(bounded, ticks_of(times.cast(kind, safe=False), "time", 0), ticks)

        registers, arcs = run.state.registers, run.tables.arcs
        registers[s.PUNCTUATION : s.CLEAN + 1] = moved(registers[s.PUNCTUATION : s.CLEAN + 1])
        arcs[1:, s.SINCE], arcs[1:, s.RETIRED] = moved(arcs[1:, s.SINCE]), moved(arcs[1:, s.RETIRED])
        registers[s.ARCS_CLEAN] = moved(registers[s.ARCS_CLEAN : s.ARCS_CLEAN + 1])[0]
