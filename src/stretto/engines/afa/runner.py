"""One stream through the AFA operator: batches of operations in, rows of signed output out; its arcs may change.

Punctuations: of events, of events that satisfy a condition (appendix F), of arcs, and what they mark and free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.engines.afa import structure as s
from stretto.engines.afa.aggressive import prune
from stretto.engines.afa.between import Changes, pieces
from stretto.engines.afa.changing import RunningArcs
from stretto.engines.afa.compiled import Compiled
from stretto.engines.afa.intake import value_type
from stretto.engines.afa.listing import list_partial
from stretto.engines.afa.saving import load, save
from stretto.engines.afa.stepping import AfaStepping
from stretto.engines.afa.structure import Batch
from stretto.engines.api import Matches
from stretto.errors import DataError, OptionError, StrettoError
from stretto.frame import Section
from stretto.query import predicate
from stretto.query.guard import implies
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


class Partial(NamedTuple):
    """Partial matches: their states, their partitions, and when they began."""

    state: I64
    part: I64
    begin: I64


class UnderWay(NamedTuple):
    """Partial matches that the next event may go on with, by first event."""

    state: list[str]
    part: I64  #: partition
    first: I64  #: row of the first event
    last: I64  #: row of the last event that an arc took
    begin: I64  #: when the first event was …
    end: I64  #: … and the last one
    until: I64  #: an event must come before this time; the greatest integer: at any time
    register: list[pa.Array]


class AfaRunner(AfaStepping):
    """The operator over one stream.

    Parameters
    ----------
    program
        The automaton, and the roles of columns.
    late
        What to do with a row that comes too late: ``"error"``, ``"drop"`` (and count it) or ``"side"`` (and keep it).
    capacity
        Initial size of the growing arrays (tests use 1).
    ignores
        Whether ignorable arcs make anchors; ``None``: where the automaton has such arcs.
    """

    counts = broken = False
    carried = 0

    def begin(self, program: Compiled, ignores: bool | None) -> None:
        super().begin(program, ignores)
        self.punctuations, self.arcs = Punctuations(self), RunningArcs(self)

    def save(self, section: Section) -> None:
        save(self, section)

    def load(self, section: Section) -> None:
        load(self, section)

    def check(self, table: pa.Table) -> None:
        """What is wrong shows row by row: those before it are taken."""

    def advance(
        self,
        batch: pa.RecordBatch,
        *,
        silent: bool = False,
        changes: Changes | None = None,
        rows: I64 | None = None,
        refused: list[StrettoError] | None = None,
    ) -> Iterator[Matches]:
        """Do what :meth:`push` does, at once, and the output so far."""
        self.push(batch, changes, rows, refused)
        if silent:
            self.state.drain()
            self.found = []
        return self.given()

    def carry_out(
        self,
        table: pa.Table,
        changes: Changes,
        alone: Callable[[int], None],
        rows: I64 | None = None,
        refused: list[StrettoError] | None = None,
    ) -> None:
        """Rows of any number with changes between them, as :meth:`push`; ``alone`` carries out those that are left to the caller.

        :attr:`carried` says how many changes were carried out, also when it fails.
        """
        self.carried = 0
        for first, batch, own, behind in pieces(table, changes, self.roles.sign):
            numbers = None if rows is None else rows[first : first + batch.num_rows]
            try:
                self.push(batch, own, numbers, refused)
            finally:
                self.carried += int(self.state.registers[s.CHANGED])
            if behind is not None:
                alone(behind)
                self.carried += 1

    def reach(self, time: int) -> Iterator[Matches]:
        """A punctuation of the events, and the output so far."""
        self.punctuations.punctuate(time)
        return self.given()

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: the output so far, of which all is final now."""
        return self.given()

    def given(self) -> Iterator[Matches]:
        """The output so far, if there is any."""
        return iter((self.take(),) if self.has_output else ())

    def take_over(self, old: AfaRunner, unknown: frozenset[str]) -> None:
        """An automaton says the types of its attributes: there are no narrower ones."""
        raise DataError("an automaton reads them")

    def unlisted(self) -> None:
        """All output is listed before any is given."""

    @property
    def late(self) -> int:
        """How many rows were late or retracted the unknown."""
        return int(self.state.registers[s.LATE])

    @property
    def idle(self) -> bool:
        """Whether no event so far can take part in a later output, nor be taken back."""
        return self.expires is None

    @property
    def expires(self) -> int | None:
        """When the last event ends that later ones can meet, in ticks; the greatest integer: never. ``None``: there is none."""
        ends = self.state.events.X[self.state.live_slots(), s.RE]
        ends = ends[ends > self.state.registers[s.CLEAN]]
        return int(ends.max()) if ends.size else None

    oldest = None

    def live(self) -> I64:
        """The rows of the events that are kept, and of those that a match to come or to be taken back may hold (sorted)."""
        state = self.state
        if not self.roles.ordered:
            self.sweep()
        kept = state.events.X[state.live_slots(), s.ROW]
        if self.trail < 0:
            return np.unique(np.concatenate((kept, state.P[s.START, state.live_partial()])))
        before, row = state.work.trail_before, state.work.trail_row
        seen = np.zeros(int(state.registers[s.TRAILS]) + 1, np.bool_)
        at = np.unique(state.P[s.REG + self.trail, state.live_partial()])
        while (at := at[~seen[at]]).size:
            seen[at] = True
            at = np.unique(before[at])
        seen[0] = False
        return np.unique(np.concatenate((row[: seen.size][seen], kept)))

    def partial_matches(self) -> Partial:
        """Those that are held, with the places of their states in ``tables.numbers``."""
        state, tables = self.state, self.tables
        slots, partial = state.live_slots(), state.live_partial()
        place = np.zeros(tables.states.shape[0], np.int64)
        place[[*tables.numbers.values()]] = np.arange(len(tables.numbers))
        base = tables.states[state.P[s.STATE, partial], s.BASE]
        part = np.repeat(state.events.X[slots, s.OF], state.events.X[slots, s.SIZE])
        return Partial(place[base], part, state.P[s.START_LE, partial])

    def under_way(self) -> UnderWay:
        """What is live at the last event of each partition."""
        state, tables, graph = self.state, self.tables, self.memory().graph
        X, P = state.events.X, state.P
        slots = state.parts.last[state.parts.last != s.NIL]
        found = np.zeros(P.shape[1], np.int64)
        found = found[: list_partial(slots, state.events, P, found)]
        home = np.repeat(slots, X[slots, s.SIZE])
        if graph.ignores:
            extra, every = s.REG + graph.real.size, state.live_partial()
            more = np.setdiff1d(every[P[extra + s.OPEN, every] >= 0], found)
            found, home = np.concatenate((found, more)), np.concatenate((home, P[extra + s.HOME, more]))
        there = P[s.LEAST, found] > state.registers[s.SEEN]
        found, home = found[there], home[there]
        order = np.argsort(P[s.START, found], kind="stable")
        found, home = found[order], home[order]
        names = {number: name for name, number in tables.numbers.items()}
        base = tables.states[P[s.STATE, found], s.BASE]
        register = [self.decoded(P[s.REG + at, found], kind) for at, kind in enumerate(self.afa.register.values())]
        return UnderWay(
            [names[one] for one in base.tolist()],
            X[home, s.OF],
            P[s.START, found],
            X[home, s.ROW],
            P[s.START_LE, found],
            X[home, s.LE],
            P[s.LEAST, found],
            register,
        )

    @property
    def stats(self) -> dict[str, int]:
        """Counts: rows given, rows late, events out of order; events, partial matches and bytes held; partial matches ever made."""
        registers = self.state.registers
        events, partial = self.state.live
        return {
            "rows": self.rows,
            "late": self.late,
            "out_of_order": int(registers[s.OUT_OF_ORDER]),
            "events": events,
            "partial_matches": partial,
            "peak": int(registers[s.PEAK]),
            "made": int(registers[s.MADE]),
            "partitions": 1 if self.keys is None else len(self.keys),
            "bytes": self.nbytes,
        }

    @property
    def nbytes(self) -> int:
        """Bytes that the state takes."""
        keys = self.keys.nbytes if self.keys is not None else 0
        return int(self.state.nbytes + keys + self.names.nbytes + sum(batch.nbytes for batch in self.key_values))
