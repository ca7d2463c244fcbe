"""Punctuations: of events, of events that satisfy a condition (appendix F), of arcs, and what they mark and free."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.engines.afa import structure as s
from stretto.engines.afa.aggressive import prune
from stretto.engines.afa.between import Changes
from stretto.engines.afa.intake import BEFORE_ALL, value_type
from stretto.engines.afa.stepping import AfaStepping
from stretto.engines.afa.structure import Batch
from stretto.errors import DataError, OptionError
from stretto.query import predicate
from stretto.query.implication import implies
from stretto.times import as_times
from stretto.times import ticks as ticks_of

I64 = NDArray[np.int64]


class AfaPunctuating(AfaStepping):
    """Takes promises about what will not come."""

    def punctuate(self, time: int) -> None:
        """A punctuation of the events."""
        self.refuse_back(np.array([time]))
        self.state.registers[s.PUNCTUATION] = time
        self._clean()

    def mark(self, time: int, timer: str) -> None:
        """The end-of-window indicator (appendix E): before all events of ``time``, every live partition gets an event with ``timer``
        true, its partition attributes and its time, and nothing else. It has no row.
        """
        first = self.state.parts.first
        parts = np.flatnonzero(first[: 1 if self.keys is None else len(self.keys)])
        if not parts.size or time <= self.state.registers[s.PUNCTUATION]:
            return
        assert self.time_kind is not None
        arrays = {name: pa.nulls(parts.size, value_type(kind)) for name, kind in self.afa.events.items()}
        arrays[timer] = pa.array(np.ones(parts.size, np.bool_))
        if self.roles.time in arrays:
            arrays[self.roles.time] = as_times(np.full(parts.size, time), self.time_kind)
        if self.keys is not None:
            values = self.partition_values(parts)
            arrays |= {name: values.column(name) for name in self.afa.partition_by}
        le = np.full(parts.size, time)
        re = le + self.window if self.window is not None else np.full(parts.size, s.FOREVER)
        zeros = np.zeros(parts.size, np.int64)
        W = self._event_words(pa.record_batch(arrays))
        self._run(Batch(zeros + s.INSERT, parts, le, zeros - s.FOREVER, re, zeros - 1, W, *Changes.none()), None)

    def advance_where(self, time: int, condition: predicate.Predicate, text: str) -> None:
        """A punctuation of the events that satisfy a condition (over attributes' own names), which was written so."""
        if self.roles.sign is not None:
            raise OptionError("a punctuation with a condition needs a stream without retractions: leave out sign=")
        known, _ = self.predicated.get(condition, (BEFORE_ALL, ""))
        if time < known:
            raise DataError(
                f"the punctuation of {condition} goes back from {self.shown_time(known)} to {self.shown_time(time)}"
            )
        self.predicated[condition] = time, text
        self.prune()

    def prune(self) -> int:
        """Drop partial matches that no event still to come can complete (appendix F.2); how many."""
        if self.roles.ordered:
            return 0
        m = self._memory()
        limit = m.registers[s.ARCS_CLEAN] if self.roles.dynamic == "explicit" else m.registers[s.SEEN] + 1
        bounds, arrival, done = (np.zeros(m.graph.states.shape[0], np.int64) for _ in range(3))
        pi = self._arc_punctuations()
        return int(prune(pi, int(limit), m.graph, m.P, m.events, m.parts, bounds, arrival, done, m.registers))

    def _arc_punctuations(self) -> I64:
        """By arc: no event still to come triggers it before this time."""
        arcs = self.tables.arcs
        found = np.full(arcs.shape[0], self.state.registers[s.PUNCTUATION])
        for condition, (time, _) in self.predicated.items():
            for number, atom in enumerate(self.code.atoms):
                if implies(atom, condition):
                    concerned = arcs[:, s.ATOM] == number
                    found[concerned] = np.maximum(found[concerned], time)
        return found

    def refuse_back(self, times: I64) -> None:
        """Raise a :class:`DataError` when a punctuation would go back."""
        before = np.concatenate((self.state.registers[s.PUNCTUATION : s.PUNCTUATION + 1], times[:-1]))
        if (times < before).any():
            at = int((times < before).argmax())
            raise DataError(
                f"the punctuation goes back from {self.shown_time(int(before[at]))} to {self.shown_time(int(times[at]))}"
            )

    def advance_arcs(self, time: int) -> None:
        """A punctuation of the arcs: no change of an arc concerns events before this time any more."""
        if self.roles.dynamic != "explicit":
            raise OptionError("arcs have explicit lifetimes only with dynamic='explicit'")
        if time < self.arc_punctuation:
            raise DataError(
                f"the arcs' punctuation goes back from {self.shown_time(self.arc_punctuation)} to {self.shown_time(time)}"
            )
        self.state.registers[s.ARCS_CLEAN] = time
        self._clean()

    def rescale(self, kind: pa.DataType) -> None:
        """Times that came before the first event are now of this type."""
        before, self.time_kind = self.time_kind, kind
        assert before is not None

        def moved(ticks: I64) -> I64:
            bounded = np.abs(ticks) < s.FOREVER - 1
            times = as_times(np.where(bounded, ticks, 0), before)
            return np.where(bounded, ticks_of(times.cast(kind, safe=False), "time", 0), ticks)

        registers, arcs = self.state.registers, self.tables.arcs
        registers[s.PUNCTUATION : s.CLEAN + 1] = moved(registers[s.PUNCTUATION : s.CLEAN + 1])
        arcs[1:, s.SINCE], arcs[1:, s.RETIRED] = moved(arcs[1:, s.SINCE]), moved(arcs[1:, s.RETIRED])
        registers[s.ARCS_CLEAN] = moved(registers[s.ARCS_CLEAN : s.ARCS_CLEAN + 1])[0]
