"""Arcs that come and go while an automaton runs, and what this does to stored events and given output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64
from stretto.engines.afa import structure as s
from stretto.engines.afa.between import Changes
from stretto.engines.afa.intake import value_type
from stretto.engines.afa.kernels import recompute
from stretto.engines.afa.stepping import AfaStepping, function_error
from stretto.engines.afa.structure import Batch
from stretto.errors import DataError, OptionError, StrettoError
from stretto.query import predicate
from stretto.query.afa import Arc, Emit
from stretto.query.typing import kind_of


class RunningArcs:
    """Changes the arcs of a run."""

    def __init__(self, run: AfaStepping) -> None:
        self._run = run

    def add(self, arc: Arc) -> None:
        """A new arc. Without explicit lifetimes it is valid from the next time unit on."""
        run = self._run
        explicit = run.roles.dynamic == "explicit"
        self.compact()
        size = run.sizes
        since = -s.FOREVER if arc.since is None else arc.since
        if explicit:
            self._refuse_late_arc(arc.id, since)
        known = run.tables.known.get(arc.id)
        number = run.tables.add(arc)
        self.refit(*size)
        if not explicit and arc.since is not None:
            run.functions.compile_for(number)
            return
        if not explicit:
            self._change(Changes.of(s.ADD_ARC, number))
            return
        try:
            self.add_number(number, since, s.FOREVER if arc.until is None else arc.until)
        except StrettoError:
            if known is None:
                del run.tables.known[arc.id]
            else:
                run.tables.known[arc.id] = known
            raise

    def add_number(self, number: int, since: int, until: int) -> None:
        """An arc that the graph knows and does not use yet, with its lifetime.

        Raises
        ------
        OptionError
            Without explicit lifetimes, it is to be valid for events that were seen.
        """
        run = self._run
        row = run.tables.arcs[number]
        if run.roles.dynamic == "explicit":
            row[s.SINCE] = row[s.RETIRED] = since
            run.tables.link(number)
            self._retired(number, until, since, until)
        elif since == -s.FOREVER:
            self._change(Changes.of(s.ADD_ARC, number))
        elif since <= run.seen:
            raise OptionError(
                f"since {run.shown_time(since)} concerns events that were seen: use Matcher(…, dynamic='explicit')"
            )
        else:
            row[s.SINCE] = since
            run.tables.link(number)

    def check_final(self, state: str, emit: str) -> None:
        """Whether a state can be made final while the query runs.

        Raises
        ------
        OptionError
            There is no such ``emit``, the state is final already with another one, or partial matches have reached it: they would be
            outputs that nothing gave.
        """
        run = self._run
        if emit not in tuple(Emit):
            raise OptionError(f"final={emit!r}: expected 'every' or 'on_enter'")
        before = run.tables.finals.get(state)
        if before is not None and before != emit:
            raise OptionError(f"the state '{state}' is final already, with emit='{before}'")
        number = run.tables.numbers.get(state)
        if before is None and number is not None:
            if not run.roles.ordered:
                run.sweep()
            there = np.count_nonzero(run.state.P[s.STATE, run.state.live_partial()] == number)
            if there:
                waits = "a partial match waits" if there == 1 else f"{there} partial matches wait"
                raise OptionError(
                    f"the state '{state}' cannot become final: {waits} in it, whose output should have come before; lead the arc "
                    "to a new state"
                )

    def make_final(self, state: str, emit: str) -> None:
        """Output comes at a state from now on; as :meth:`check_final` allows."""
        self._run.tables.make_final(state, Emit(emit))

    def retire(self, name: str, at: int | None) -> None:
        """An arc that is valid no more: after the greatest time seen, or from a time on."""
        run = self._run
        number = run.tables.known[name]
        if run.roles.dynamic != "explicit":
            self._change(Changes.of(s.RETIRE_ARC, number))
            return
        since = int(run.tables.arcs[number, s.SINCE])
        at = max(since, since if at is None else at)
        if at < run.arc_punctuation:
            self._refuse_late_arc(name, at)
        self.retire_number(number, at)

    def retire_number(self, number: int, at: int) -> None:
        """No event from a time on takes an arc, with explicit lifetimes."""
        until = int(self._run.tables.arcs[number, s.RETIRED])
        self._retired(number, min(at, until), at, until)

    def _refuse_late_arc(self, name: str, since: int) -> None:
        run = self._run
        if since < run.arc_punctuation:
            raise DataError(
                f"the change of arc '{name}' is late: it concerns events from {run.shown_time(since)} on, and the arcs' punctuation "
                f"stands at {run.shown_time(run.arc_punctuation)}"
            )

    def _change(self, changes: Changes) -> None:
        """Changes without events."""
        run = self._run
        nothing = np.zeros(0, np.int64)
        W = np.zeros((0, run.words), np.int64)
        run.carry(Batch(nothing, nothing, nothing, nothing, nothing, nothing, W, *changes), None)

    def _retired(self, number: int, at: int, since: int, until: int) -> None:
        """An arc is valid before ``at``, which concerns events in [since, until); where that fails, nothing has changed."""
        run = self._run
        before = int(run.tables.arcs[number, s.RETIRED])
        earlier = [*run.found, run.state.drain()]
        run.found = []
        run.tables.retire(number, at)
        try:
            self._recompute(since, until)
        except StrettoError:
            run.tables.retire(number, before)
            self._recompute(since, until)
            run.found = earlier
            raise
        run.found = [*earlier, *run.found]

    def _recompute(self, since: int, until: int) -> None:
        """Derive events in [since, until) anew; the rows that come out are put in order."""
        run = self._run
        registers = run.state.registers
        registers[s.CURSOR] = registers[s.FAULT] = 0
        registers[s.TAKEN] += 1
        theta = run.code.theta()
        while True:
            status = recompute(theta, since, until, run.memory())
            if status == _jit.DONE:
                break
            if status == _jit.FAULTED:
                fault = int(registers[s.FAULT])
                run.state.work.F[0, 0] = 0
                run.state.drain()
                run.found = []
                raise function_error(run, fault, "an event that it would concern")
            run.act(status)
        run.found.append(run.state.drain())
        rows = np.concatenate([rows for rows, _ in run.found])
        cells = np.concatenate([cells for _, cells in run.found])
        columns = [self._sortable(rows, at) for at in range(len(run.real))]
        keys = [
            *reversed(columns),
            *(rows[:, at] for at in (s.FROM, s.FROM_SEQ, s.FROM_LE, s.TO, s.TO_SEQ, s.TO_LE, s.SIGN)),
        ]
        order = np.lexsort(keys)
        sizes = rows[:, s.LENGTH]
        begins = np.cumsum(sizes) - sizes
        moved = (
            np.repeat(begins[order] - np.concatenate(([0], np.cumsum(sizes[order])[:-1])), sizes[order])
            if cells.size
            else cells
        )
        run.found = [(rows[order], cells[moved + np.arange(cells.size)])]

    def _sortable(self, rows: I64, field: int) -> NDArray[Any]:
        column = np.ascontiguousarray(rows[:, s.FIELDS + field])
        return column.view(np.float64) if self._run.real[field] else column

    def compact(self) -> None:
        """Forget arcs that no event can take any more, when they are most."""
        run = self._run
        if run.functions.later:
            return
        registers = run.state.registers
        run.tables.compact(int(registers[s.SEEN if run.roles.ordered else s.CLEAN]))

    def refit(self, bits: int, atoms: int) -> None:
        """After new arcs: stored events get the words that they read.

        Parameters
        ----------
        bits, atoms
            The word where conditions began, and how many there were.
        """
        run = self._run
        run.take_constants()
        if run.sizes == (bits, atoms):
            return
        old = run.state.events.E
        now = 1 + len(run.code.columns)
        fresh = np.zeros((old.shape[0], run.words), np.int64)
        fresh[:, :bits] = old[:, :bits]
        fresh[:, now : now + old.shape[1] - bits] = old[:, bits:]
        run.state.events = run.state.events._replace(E=fresh)
        # Without explicit lifetimes no stored event is asked anew: the arcs are valid behind all of them. But where the payload tells
        # which event is retracted, its words are compared.
        told = run.roles.sign is not None and not run.options["keyed"] and now > bits
        if told or (run.roles.dynamic == "explicit" and (now > bits or len(run.code.atoms) > atoms)):
            live = run.state.live_slots()
            if live.size:
                fresh[live] = run.event_words(self._stored(live))

    def _stored(self, slots: I64) -> pa.RecordBatch:
        """Stored events as columns again."""
        run = self._run
        E = run.state.events.E[slots]
        read = {column.attribute: at for at, column in enumerate(run.code.columns, 1) if column.attribute is not None}
        arrays = {}
        for name, kind in run.afa.events.items():
            if name in read and kind_of(kind) != "decimal":
                at = read[name]
                arrays[name] = run.decoded(E[:, at], value_type(kind), (E[:, 0] >> at) & 1 == 0)
        computed = [one for column in run.code.columns for one in (column.atom, column.value) if one is not None]
        asked = {name for one in (*run.code.atoms, *computed) for name in predicate.attributes(one)}
        if asked - set(arrays):
            raise OptionError(
                f"'{min(asked - set(arrays))}' is not kept with stored events, so a new arc cannot ask them for it"
            )
        return pa.record_batch(arrays)
