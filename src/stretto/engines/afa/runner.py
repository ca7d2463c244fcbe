"""One stream through the AFA operator: batches of operations in, rows of signed output out; its arcs may change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.engines.afa import structure as s
from stretto.engines.afa.between import Changes, pieces
from stretto.engines.afa.intake import BEFORE_ALL, value_type
from stretto.engines.afa.kernels import recompute
from stretto.engines.afa.saving import Stored
from stretto.engines.afa.structure import Batch
from stretto.engines.api import Matches
from stretto.errors import DataError, OptionError, StrettoError
from stretto.query import predicate
from stretto.query.afa import Arc, Emit
from stretto.query.typing import kind_of

I64 = NDArray[np.int64]

#: Compiles functions of arcs that are valid later.
_COMPILER = ThreadPoolExecutor(1, "stretto-compiler")


class AfaRunner(Stored):
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
        """As :meth:`push`, at once, and the output so far."""
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
        self.punctuate(time)
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
            return np.unique(kept)
        before, row = state.work.trail_before, state.work.trail_row
        seen = np.zeros(int(state.registers[s.TRAILS]) + 1, np.bool_)
        at = np.unique(state.P[s.REG + self.trail, state.live_partial()])
        while (at := at[~seen[at]]).size:
            seen[at] = True
            at = np.unique(before[at])
        seen[0] = False
        return np.unique(np.concatenate((row[: seen.size][seen], kept)))

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

    def add_arc(self, arc: Arc) -> None:
        """A new arc. Without explicit lifetimes it is valid from the next time unit on."""
        explicit = self.roles.dynamic == "explicit"
        self.compact()
        size = self.sizes
        since = -s.FOREVER if arc.since is None else arc.since
        if explicit:
            self._refuse_late_arc(arc.id, since)
        known = self.tables.known.get(arc.id)
        number = self.tables.add(arc)
        self.refit(*size)
        if not explicit and arc.since is not None:
            self._compile_for(number)
            return
        if not explicit:
            self._change(Changes.of(s.ADD_ARC, number))
            return
        try:
            self.add_number(number, since, s.FOREVER if arc.until is None else arc.until)
        except StrettoError:
            if known is None:
                del self.tables.known[arc.id]
            else:
                self.tables.known[arc.id] = known
            raise

    def add_number(self, number: int, since: int, until: int) -> None:
        """An arc that the graph knows and does not use yet, with its lifetime.

        Raises
        ------
        OptionError
            Without explicit lifetimes, it is to be valid for events that were seen.
        """
        row = self.tables.arcs[number]
        if self.roles.dynamic == "explicit":
            row[s.SINCE] = row[s.RETIRED] = since
            self.tables.link(number)
            self._retired(number, until, since, until)
        elif since == -s.FOREVER:
            self._change(Changes.of(s.ADD_ARC, number))
        elif since <= self.seen:
            raise OptionError(
                f"since {self.shown_time(since)} concerns events that were seen: use Matcher(…, dynamic='explicit')"
            )
        else:
            row[s.SINCE] = since
            self.tables.link(number)

    def check_final(self, state: str, emit: str) -> None:
        """Whether a state can be made final while the query runs.

        Raises
        ------
        OptionError
            There is no such ``emit``, the state is final already with another one, or partial matches have reached it: they would be
            outputs that nothing gave.
        """
        if emit not in tuple(Emit):
            raise OptionError(f"final={emit!r}: expected 'every' or 'on_enter'")
        before = self.tables.finals.get(state)
        if before is not None and before != emit:
            raise OptionError(f"the state '{state}' is final already, with emit='{before}'")
        number = self.tables.numbers.get(state)
        if before is None and number is not None:
            if not self.roles.ordered:
                self.sweep()
            there = np.count_nonzero(self.state.P[s.STATE, self.state.live_partial()] == number)
            if there:
                waits = "a partial match waits" if there == 1 else f"{there} partial matches wait"
                raise OptionError(
                    f"the state '{state}' cannot become final: {waits} in it, whose output should have come before; lead the arc "
                    "to a new state"
                )

    def make_final(self, state: str, emit: str) -> None:
        """Output comes at a state from now on; as :meth:`check_final` allows."""
        self.tables.make_final(state, Emit(emit))

    def retire_arc(self, name: str, at: int | None) -> None:
        """An arc that is valid no more: after the greatest time seen, or from a time on."""
        number = self.tables.known[name]
        if self.roles.dynamic != "explicit":
            self._change(Changes.of(s.RETIRE_ARC, number))
            return
        since = int(self.tables.arcs[number, s.SINCE])
        at = max(since, since if at is None else at)
        if at < self.arc_punctuation:
            self._refuse_late_arc(name, at)
        self.retire_number(number, at)

    def retire_number(self, number: int, at: int) -> None:
        """No event from a time on takes an arc, with explicit lifetimes."""
        until = int(self.tables.arcs[number, s.RETIRED])
        self._retired(number, min(at, until), at, until)

    def _compile_for(self, number: int) -> None:
        """Compile an arc's functions while the others go on; it is linked when an event comes that may take it."""
        self._link_due(BEFORE_ALL)
        self._functions = self._functions or self.code.theta()
        self.later.append(number)
        self._compiles = self.code.version
        self._compiling = _COMPILER.submit(self.code.compilation())

    def _refuse_late_arc(self, name: str, since: int) -> None:
        if since < self.arc_punctuation:
            raise DataError(
                f"the change of arc '{name}' is late: it concerns events from {self.shown_time(since)} on, and the arcs' punctuation "
                f"stands at {self.shown_time(self.arc_punctuation)}"
            )

    def _change(self, changes: Changes) -> None:
        """Changes without events."""
        nothing = np.zeros(0, np.int64)
        W = np.zeros((0, self._words), np.int64)
        self._run(Batch(nothing, nothing, nothing, nothing, nothing, nothing, W, *changes), None)

    def _retired(self, number: int, at: int, since: int, until: int) -> None:
        """An arc is valid before ``at``, which concerns events in [since, until); where that fails, nothing has changed."""
        before = int(self.tables.arcs[number, s.RETIRED])
        earlier = [*self.found, self.state.drain()]
        self.found = []
        self.tables.retire(number, at)
        try:
            self._recompute(since, until)
        except StrettoError:
            self.tables.retire(number, before)
            self._recompute(since, until)
            self.found = earlier
            raise
        self.found = [*earlier, *self.found]

    def _recompute(self, since: int, until: int) -> None:
        """Derive events in [since, until) anew; the rows that come out are put in order."""
        registers = self.state.registers
        registers[s.CURSOR] = registers[s.FAULT] = 0
        registers[s.TAKEN] += 1
        theta = self.code.theta()
        while True:
            status = recompute(theta, since, until, self._memory())
            if status == _jit.DONE:
                break
            if status == _jit.FAULTED:
                fault = int(registers[s.FAULT])
                self.state.work.F[0, 0] = 0
                self.state.drain()
                self.found = []
                raise self._function_error(fault, "an event that it would concern")
            self._act(status)
        self.found.append(self.state.drain())
        rows = np.concatenate([rows for rows, _ in self.found])
        cells = np.concatenate([cells for _, cells in self.found])
        columns = [self._sortable(rows, at) for at in range(len(self.real))]
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
        self.found = [(rows[order], cells[moved + np.arange(cells.size)])]

    def _sortable(self, rows: I64, field: int) -> NDArray[Any]:
        column = np.ascontiguousarray(rows[:, s.FIELDS + field])
        return column.view(np.float64) if self.real[field] else column

    def compact(self) -> None:
        """Forget arcs that no event can take any more, when they are most."""
        if self.later:
            return
        registers = self.state.registers
        self.tables.compact(int(registers[s.SEEN if self.roles.ordered else s.CLEAN]))

    def refit(self, bits: int, atoms: int) -> None:
        """After new arcs: stored events get the words that they read.

        Parameters
        ----------
        bits, atoms
            The word where conditions began, and how many there were.
        """
        self._take_constants()
        if self.sizes == (bits, atoms):
            return
        old = self.state.events.E
        now = 1 + len(self.code.columns)
        fresh = np.zeros((old.shape[0], self._words), np.int64)
        fresh[:, :bits] = old[:, :bits]
        fresh[:, now : now + old.shape[1] - bits] = old[:, bits:]
        self.state.events = self.state.events._replace(E=fresh)
        # Without explicit lifetimes no stored event is asked anew: the arcs are valid behind all of them. But where the payload tells
        # which event is retracted, its words are compared.
        told = self.roles.sign is not None and not self.options["keyed"] and now > bits
        if told or (self.roles.dynamic == "explicit" and (now > bits or len(self.code.atoms) > atoms)):
            live = self.state.live_slots()
            if live.size:
                fresh[live] = self._event_words(self._stored(live))

    def _stored(self, slots: I64) -> pa.RecordBatch:
        """Stored events as columns again."""
        E = self.state.events.E[slots]
        read = {column.attribute: at for at, column in enumerate(self.code.columns, 1) if column.attribute is not None}
        arrays = {}
        for name, kind in self.afa.events.items():
            if name in read and kind_of(kind) != "decimal":
                at = read[name]
                arrays[name] = self.decoded(E[:, at], value_type(kind), (E[:, 0] >> at) & 1 == 0)
        asked = {name for atom in self.code.atoms for name in predicate.attributes(atom)}
        if asked - set(arrays):
            raise OptionError(
                f"'{min(asked - set(arrays))}' is not kept with stored events, so a new arc cannot ask them for it"
            )
        return pa.record_batch(arrays)

    @property
    def nbytes(self) -> int:
        """Bytes that the state takes."""
        keys = self.keys.nbytes if self.keys is not None else 0
        return int(self.state.nbytes + keys + self.names.nbytes + sum(batch.nbytes for batch in self.key_values))
