"""The AFA operator for people: ``stretto.Matcher(afa, …)`` over a disordered stream with revisions and changing patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.budget import Budget
from stretto.engines.afa.changes import merge
from stretto.engines.afa.compiled import Roles, Texts
from stretto.engines.afa.intake import Changes
from stretto.engines.afa.program import AfaProgram
from stretto.engines.afa.runner import AfaRunner
from stretto.engines.afa.structure import (
    FOREVER,
    PUNCTUATE,
)
from stretto.errors import DataError, LimitError, OptionError, StrettoError, suggestion
from stretto.events import as_table, conform
from stretto.frame import Section
from stretto.languages.afa import Scope, read_fence
from stretto.languages.afa.builder import AFA, make_arc
from stretto.matching.arcs import ALONE, ArcChanges
from stretto.query.afa import Afa, Arc
from stretto.query.afa_text import shown
from stretto.query.predicate import Predicate, attributes
from stretto.times import as_times, check_clock, tick_of, ticks, width

__all__ = ["AfaMatcher", "iter_match_afa", "match_afa"]

I64 = NDArray[np.int64]

#: Rows that one call of the kernel reads.
CHUNK = 1 << 16

#: Columns of the output; a partition attribute of such a name gets a trailing underscore.
OWN = ("sign", "start", "end", "positions", "start_time", "end_time", "until", "register")


#: Options that a whole table does not need.
_OF_STREAMS = ("sign", "late", "ordered", "dynamic", "timer", "speculation", "bound", "cleanse")


class AfaMatcher:
    """An AFA over a stream that comes in batches, in any order, with retractions: ``stretto.Matcher(afa, time=…)``.

    Each row of input is a step, which gives the difference between the outputs before and after it: first those that it
    takes back (``sign`` −1), then new ones (+1), by last event, first event and register. A retraction with the insertion
    of the same place directly behind it, and no punctuation between them, is a revision, which is one step.

    Parameters
    ----------
    afa
        The automaton: :class:`stretto.AFA`.
    time
        The column that orders the stream (LE): integers, dates or timestamps.
    sequence
        A column of integers that orders events of the same time; ``None``: they are ordered as they arrive.
    until
        The column with the right end (RE) of each event's lifetime, NULL for ever; ``None``: time + window.
    sign
        The column that says +1 (insertion) or −1 (retraction of the event with the same partition, time and sequence; without
        a sequence: time and payload). ``None``: insertions only.
    numbered
        A column with sequence numbers that grow by one for each event of a partition. Then no match spans a gap, and no output
        is ever taken back because an event was late (AFA+O, section 5.3).
    late
        What is below the punctuation, or retracts the unknown: ``"error"``, ``"drop"`` (counted in :attr:`late`) or ``"side"``
        (handed over by :meth:`late_events`).
    bag
        An output for each computation (way through events), in place of one for each (first event, last event, register).
    provenance
        Output has ``positions`` (list<int64>): the rows of all events of the partition from the first to the last. Events are then
        kept as long as they live.
    ordered
        Events come in order: each is the punctuation of those before it, so that nothing of them is kept.
    dynamic
        Arcs added later are valid from the next time unit on (``"default"``), or have explicit lifetimes (``"explicit"``).
    timer
        A truth value among the AFA's attributes that stands for the end of a window (appendix E). At each :meth:`advance` to a
        later time, every partition with events gets an event of that time, before all others of it: this attribute is true,
        and all others but the time and the partition attributes are NULL. It has no row (``end`` is NULL), and input need not
        have the column.
    ignore
        Whether ignorable arcs make anchors (appendix D), which take less memory and time.
    budget
        How much output one call may give: rows, bytes such as ``"2 GiB"``, or ``math.inf``; ``None``: a quarter of the memory there
        is. It is looked at whenever a buffer of output is full: a row with which it would be
        more is not taken, nor are those behind it; ``push([])`` gives the output of those before.
    schema
        The types of the columns beside the AFA's own events; ``None``: as in the first batch.

    Examples
    --------
    >>> import stretto
    >>> afa = stretto.AFA({"kind": str}, window=10)
    >>> afa = afa.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")
    >>> matcher = stretto.Matcher(afa, time="t")
    >>> matcher.push([{"t": 1, "kind": "a"}, {"t": 3, "kind": "b"}]).select(["sign", "start", "end"]).to_pylist()
    [{'sign': 1, 'start': 0, 'end': 1}]
    >>> matcher.push([{"t": 2, "kind": "c"}]).select(["sign", "start", "end"]).to_pylist()
    [{'sign': -1, 'start': 0, 'end': 1}]
    """

    def __init__(
        self,
        afa: AFA | Afa,
        schema: Any = None,
        *,
        time: str | None = None,
        sequence: str | None = None,
        until: str | None = None,
        sign: str | None = None,
        numbered: str | None = None,
        late: str = "error",
        bag: bool = False,
        provenance: bool = False,
        ordered: bool = False,
        dynamic: str = "default",
        timer: str | None = None,
        ignore: bool = True,
        budget: int | float | str | None = None,
        capacity: int = 1 << 10,
    ) -> None:
        self.afa = afa.frozen if isinstance(afa, AFA) else afa
        if time is None:
            raise OptionError("an AFA needs the column that orders the stream: time='…'")
        for value, name, allowed in (
            (late, "late", ("error", "drop", "side")),
            (dynamic, "dynamic", ("default", "explicit")),
        ):
            if value not in allowed:
                raise OptionError(f"{name}={value!r}: expected {' or '.join(map(repr, allowed))}")
        if sequence is not None and numbered is not None:
            raise OptionError("numbered= orders events of one time as well: leave out sequence=")
        if ordered and sign is not None:
            raise OptionError(
                "an ordered stream keeps no event that could be retracted: leave out sign=, or ordered=True"
            )
        if timer is not None and (ordered or numbered is not None):
            raise OptionError("timer= puts events between others: leave out ordered= and numbered=")
        if timer is not None and self.afa.events.get(timer) != pa.bool_():
            hint = _hint(suggestion(timer, self.afa.events, kind="attribute"))
            raise OptionError(f"timer={timer!r}: the AFA's events need a truth value of that name{hint}")
        if ordered and dynamic == "explicit":
            raise OptionError("arcs with explicit lifetimes concern events that an ordered stream does not keep")
        self._options: dict[str, Any] = {
            "time": time,
            "sequence": sequence,
            "until": until,
            "sign": sign,
            "numbered": numbered,
            "late": late,
            "bag": bag,
            "provenance": provenance,
            "ordered": ordered,
            "dynamic": dynamic,
            "timer": timer,
            "ignore": ignore,
        }
        self._capacity = capacity
        self._budget = Budget(budget)
        self._runner: AfaRunner
        self._bound = self._guessed = False
        self._kinds: dict[str, pa.DataType] = {}
        self._finished = False
        self._nothing: tuple[pa.DataType, pa.Table] | None = None
        self._start(self.afa.events.get(time))
        if schema is not None:
            self._bind(schema if isinstance(schema, pa.Schema) else pa.schema(list(dict(schema).items())))

    def __repr__(self) -> str:
        stats = self.stats
        return f"<stretto.AfaMatcher: {stats['rows']} rows read, {stats['partial_matches']} partial matches>"

    # -- events -------------------------------------------------------------------------------------------------------

    def push(self, events: Any, *, arcs: Any = None, punctuations: Any = ()) -> pa.Table:
        """Take the next rows; the signed output of their steps.

        Parameters
        ----------
        events
            Rows with the AFA's attributes and the columns that play a role.
        arcs
            Changes of arcs between the rows, as a second stream: a table with the columns ``row`` (how many rows come before),
            ``action`` (``"add"`` or ``"retire"``), ``id``, and for additions ``source``, ``target``, ``when``, ``then``, ``kind``,
            ``final``, ``since`` and ``until`` (see :meth:`add_arc`); for retirements ``until`` is what ``at`` is in
            :meth:`retire_arc`. Each distinct arc is read and compiled once.
        punctuations
            Pairs ``(row, time)``: a punctuation after so many of the rows, as :meth:`advance` gives one. Not with ``timer=``.

        Raises
        ------
        DataError
            The rows do not fit the schema (nothing is taken then), or one cannot be taken: it is late, retracts the unknown, or
            a function of an arc fails. Rows before it have been taken, and the next call gives their output; it and the rows
            behind it have not. A change of arcs that is wrong by itself shows before anything is taken; one that fails for what
            was taken before (a function of an arc with an explicit lifetime) stops there in the same way.
        QueryError
            A fence or a transfer of ``arcs`` is wrong. Nothing is taken.
        LimitError
            An ε-cycle goes on without end, or the output goes over the ``budget``: as a function that fails.
        """
        punctuations = list(punctuations)
        table = self._conformed(events, alone=arcs is not None or bool(punctuations))
        if table is None:
            return self._table()
        self._refuse_marks(punctuations)
        stream = None if arcs is None else self._stream(arcs, table.num_rows)
        changes = Changes.none() if stream is None else stream.changes()
        if punctuations:
            changes = self._with_punctuations(changes, punctuations, table.num_rows)
        self._carry_out(table, changes, stream)
        return self._table()

    def _conformed(self, events: Any, alone: bool) -> pa.Table | None:
        """Events with the columns that the matcher reads; ``None``: there is nothing, nor what could stand ``alone``."""
        self._refuse_finished()
        table = as_table(events)
        if not table.num_columns and alone and self._bound:
            return pa.schema(list(self._kinds.items())).empty_table()
        if not table.num_columns:
            if alone:
                raise OptionError(
                    "the columns are not known before the first events, or schema=…: give punctuations by advance(), and arcs by "
                    "add_arc()"
                )
            return None
        timer = self._options["timer"]
        if timer is not None and timer not in table.column_names:
            table = table.append_column(timer, pa.nulls(table.num_rows, pa.bool_()))
        self._bind(table.schema)
        names = tuple(self._kinds)
        there = table.select([name for name in table.column_names if name in self._kinds])
        return conform(there, names, self._kinds, "the matcher expects")

    def _refuse_marks(self, punctuations: list[Any]) -> None:
        if punctuations and self._options["timer"] is not None:
            raise OptionError(
                "with timer=, punctuations are events of their own: give them by advance(), between pushes"
            )

    def _carry_out(
        self,
        table: pa.Table,
        changes: Changes,
        stream: ArcChanges | None,
        rows: I64 | None = None,
        refused: list[StrettoError] | None = None,
    ) -> None:
        """Rows with changes between them; ``rows`` and ``refused`` as for the runner."""
        runner = self._runner
        done = 0
        try:
            for begin, batch, piece, alone in self._parts(table, changes):
                own = None if rows is None else rows[begin : begin + batch.num_rows]
                try:
                    runner.push(batch, piece, own, refused)
                finally:
                    done += runner.changed
                if alone is not None:
                    assert stream is not None
                    stream.carry_out(alone)
                    done += 1
        finally:
            if stream is not None:
                stream.carried_out(int(np.count_nonzero(changes.what[:done] != PUNCTUATE)))

    def _parts(self, table: pa.Table, changes: Changes) -> Iterator[tuple[int, pa.RecordBatch, Changes, int | None]]:
        """Batches with their first rows, the changes that the kernel carries out, and one behind them that it does not."""
        first = done = 0
        for at in [*np.flatnonzero(changes.what == ALONE).tolist(), None]:
            last = table.num_rows if at is None else int(changes.at[at])
            for begin, batch in self._pieces(table.slice(first, last - first)):
                here = first + begin
                end = here + batch.num_rows
                ends = end == last
                until = int(np.searchsorted(changes.at[:at], end, side="left")) if not ends else changes.at[:at].size
                piece = Changes(changes.at[done:until] - here, changes.what[done:until], changes.which[done:until])
                done = until
                yield here, batch, piece, int(changes.which[at]) if ends and at is not None else None
            first, done = last, done if at is None else at + 1

    def _stream(self, arcs: Any, rows: int) -> ArcChanges:
        runner = self._runner
        runner.compact()
        size = runner.sizes
        try:
            return ArcChanges(arcs, self.afa, runner, rows, self._tick)
        finally:
            runner.refit(*size)

    def _with_punctuations(self, changes: Changes, pairs: Any, rows: int) -> Changes:
        """Changes of arcs with punctuations among them."""
        given = list(pairs)
        at = np.array([row for row, _ in given], np.int64)
        # Kernels compile once more for what is read-only.
        times = np.require(self._ticks([time for _, time in given]), requirements=("C", "W"))
        wrong = (at < 0) | (at > rows) | (np.diff(at, prepend=0) < 0)
        if wrong.any():
            here = int(wrong.argmax())
            raise DataError(
                f"punctuation {here} stands at row {at[here]}: rows go up, from 0 to the {rows} of the batch"
            )
        self._runner.refuse_back(times)
        if not changes.at.size:
            return Changes(at, np.full(at.size, PUNCTUATE), times)
        both = Changes(*(np.empty(changes.at.size + at.size, np.int64) for _ in changes))
        changes.at.flags.writeable = False  # as it is where it is a column of Arrow, so that the kernel compiles once
        merge(changes.at, changes.what, changes.which, at, times, both.at, both.what, both.which)
        return both

    def _pieces(self, table: pa.Table) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of bounded size with their first rows; they part no retraction from the insertion behind it."""
        whole = table.combine_chunks()
        signs = whole.column(self._options["sign"]) if self._options["sign"] else None
        begin, rows = 0, whole.num_rows
        while begin < rows or (begin == 0 and not rows):
            end = min(begin + CHUNK, rows)
            if signs is not None and end < rows and signs[end].as_py() == 1 and signs[end - 1].as_py() == -1:
                end += 1
            pieces = whole.slice(begin, end - begin).to_batches()
            yield begin, pieces[0] if pieces else _no_rows(whole.schema)
            if not rows:
                return
            begin = end

    def advance(self, time: Any, *, where: str | None = None) -> pa.Table:
        """A punctuation: no event before ``time`` will come. What depends on such events only is freed.

        An event at ``time`` is on time.

        Parameters
        ----------
        time
            Of the column that orders the stream.
        where
            A condition on the event, such as ``"e.floor <= 3"``: the punctuation is of the events that satisfy it (appendix F.2).
            Partial matches that none still to come can complete are freed; no output becomes final. For streams without
            retractions.

        Raises
        ------
        DataError
            The punctuation goes back.
        """
        self._refuse_finished()
        runner, tick = self._runner, self._tick(time)
        if where is not None:
            runner.advance_where(tick, runner.code.plain(self._condition(where)), where)
            return self._table()
        runner.refuse_back(np.array([tick]))
        if self._options["timer"] is not None:
            runner.mark(tick, self._options["timer"])
        runner.punctuate(tick)
        return self._table()

    def _condition(self, text: str) -> Predicate:
        """A condition on the event alone."""
        fence = read_fence(text, Scope(self.afa.events, self.afa.register))
        asked = [name for name in attributes(fence) if name.startswith("r.")]
        if asked:
            raise OptionError(f"a punctuation is about events: leave out {asked[0]}")
        return fence

    def _refuse_finished(self) -> None:
        if self._finished:
            raise OptionError("the matcher is finished; start a new one, or restore a snapshot")

    def finish(self) -> pa.Table:
        """The stream has ended: all output is final. What was not handed over yet."""
        self._finished = True
        return self._table()

    @property
    def punctuation(self) -> Any:
        """No output with a time before this one will be given or taken back; ``None``: none is final yet."""
        found = self._runner.punctuation
        return None if found is None else self._runner.shown_time(found)

    @property
    def idle(self) -> bool:
        """Whether no event so far can take part in a later output, nor be taken back: a new matcher would go on in the same way."""
        return self.ends is None

    @property
    def ends(self) -> int | None:
        """When the last event ends that can still matter, in ticks; the greatest integer: never. ``None``: there is none."""
        return None if self._finished else self._runner.expires

    @property
    def late(self) -> int:
        """How many rows were late or retracted the unknown."""
        return self._runner.late

    def late_events(self) -> pa.Table:
        """With ``late="side"``: the rows that were late or retracted the unknown, since the last call."""
        runner = self._runner
        side, runner.side = runner.side, []
        schema = pa.schema(list(self._kinds.items()))
        return pa.Table.from_batches([batch.cast(schema) for batch in side], schema=schema)

    # -- arcs ---------------------------------------------------------------------------------------------------------

    def arcs(self, *, retired: bool = False) -> list[Arc]:
        """The arcs with their lifetimes in ticks; those retired for all events are left out.

        Parameters
        ----------
        retired
            Also arcs whose id has gone to another one since, as long as they are kept: until a punctuation is past them. Given with
            these lifetimes to a matcher with ``dynamic="explicit"``, they give the same output (a replay).
        """
        tables = self._runner.tables
        numbers = range(1, tables.arcs.shape[0]) if retired else tables.known.values()
        return [arc for arc in map(tables.arc, numbers) if not _never(arc)]

    def add_arc(
        self,
        source: str,
        target: str,
        *,
        when: Any = None,
        then: Any = None,
        id: str,
        kind: str = "consume",
        since: Any = None,
        until: Any = None,
        final: str | None = None,
    ) -> pa.Table:
        """Add an arc while the query runs; states may be new. The output that it gives at once, with an explicit lifetime.

        Parameters
        ----------
        source, target, when, then, id, kind
            As for :meth:`stretto.AFA.arc`; ``kind`` is ``"consume"``, ``"epsilon"`` or ``"ignore"``.
        since, until
            With ``dynamic="explicit"``: the arc is valid for events with ``since <= time < until``; ``None``: unbounded. Else
            ``since`` may be a time behind all that were seen: a new function compiles while the other arcs go on, and no event
            from that time on is read before it is ready.
        final
            Make the target final, with this ``emit``.

        Raises
        ------
        OptionError
            An arc of this id is in force, or a lifetime is given without ``dynamic="explicit"``.
        DataError
            The lifetime begins before the arcs' punctuation, or a function fails for a stored event.
        """
        self._refuse_finished()
        runner = self._runner
        explicit = self._options["dynamic"] == "explicit"
        if not explicit and until is not None:
            raise OptionError("an arc has a lifetime of its own only with Matcher(…, dynamic='explicit')")
        if id in runner.tables.known and not self._is_retired(id):
            raise OptionError(f"there is an arc '{id}' already; retire_arc('{id}') first")
        bounds = [None if time is None else self._tick(time) for time in (since, until)]
        if not explicit and bounds[0] is not None and bounds[0] <= runner.seen:
            raise OptionError(f"since={since!r} concerns events that were seen: use Matcher(…, dynamic='explicit')")
        arc = make_arc(
            self.afa, source, target, when=when, then=then, id=id, kind=kind, since=bounds[0], until=bounds[1]
        )
        self._add(arc, final)
        return self._table()

    def _add(self, arc: Arc, final: str | None) -> None:
        """Carry out an addition; where it fails, nothing has changed."""
        runner = self._runner
        if final is not None:
            runner.check_final(arc.target, final)
        undo = runner.tables.finals_saved()
        if final is not None:
            runner.make_final(arc.target, final)
        try:
            runner.add_arc(arc)
        except StrettoError:
            runner.tables.load_finals(undo)
            raise

    def _is_retired(self, name: str) -> bool:
        arc = self._runner.tables.arc(self._runner.tables.known[name])
        if self._options["dynamic"] == "explicit":
            return _never(arc)
        return arc.until is not None

    def retire_arc(self, id: str, at: Any = None) -> pa.Table:
        """Retire an arc: no event with a time behind the greatest one seen takes it any more.

        With ``dynamic="explicit"`` no event from ``at`` on takes it (``None``: none at all, as if it had never been); what this takes
        back or gives comes at once.

        Raises
        ------
        OptionError
            No arc of this id is in force.
        """
        self._refuse_finished()
        runner = self._runner
        if id not in runner.tables.known or self._is_retired(id):
            known = [name for name in runner.tables.known if not self._is_retired(name)]
            raise OptionError(f"no arc '{id}' is in force" + _hint(suggestion(id, known, kind="arc")))
        if at is not None and self._options["dynamic"] != "explicit":
            raise OptionError("retire_arc(…, at=…) needs Matcher(…, dynamic='explicit')")
        runner.retire_arc(id, None if at is None else self._tick(at))
        return self._table()

    def advance_arcs(self, time: Any) -> pa.Table:
        """A punctuation of the arcs: no change of an arc will concern events before ``time`` (``dynamic="explicit"``)."""
        runner = self._runner
        runner.advance_arcs(self._tick(time))
        return self._table()

    # -- state --------------------------------------------------------------------------------------------------------

    @property
    def stats(self) -> dict[str, int]:
        """Counts: rows pushed, rows late, events out of order; events, partial matches and bytes held; partial matches ever made."""
        return self._runner.stats

    def snapshot(self) -> bytes:
        """The matcher's whole state, in a versioned format (``docs/snapshots.md``).

        Raises
        ------
        SnapshotError
            An arc has a Python function, which no snapshot holds, beside those that the automaton was made with.
        """
        from stretto.matching.snapshots import save_afa

        return save_afa(self)

    def restore(self, snapshot: bytes) -> AfaMatcher:
        """Take over the state of a snapshot of the same automaton and options.

        Raises
        ------
        SnapshotError
            The bytes are damaged, or of another version, automaton or option.
        """
        from stretto.matching.snapshots import load_afa

        load_afa(self, snapshot)
        return self

    def _take_over(self, section: Section) -> None:
        """The state of a snapshot."""
        header, kinds = section.values, section.schema("schema")
        self._start(None)
        if header["bound"]:
            self._bind(kinds)
        self._runner.load(section)
        if not header["bound"] and header["guessed"]:
            self._runner.time_kind = kinds.field(0).type
            self._guessed = True
        self._finished = header["finished"]

    def _save_buffers(self, section: Section) -> None:
        """Write what waits in front of the operator and behind it: none does here."""

    def _read_arc(self, given: Mapping[str, Any]) -> Arc:
        """An arc from its texts."""
        then = given.get("then")
        row = None if then is None else dict(zip(self.afa.register, then, strict=True))
        return make_arc(
            self.afa,
            given["source"],
            given["target"],
            when=given["when"],
            then=row or None,
            id=given["id"],
            kind=given["kind"],
        )

    def _identity(self) -> dict[str, Any]:
        """What a state depends on."""
        afa = self.afa
        return {
            "events": {name: str(kind) for name, kind in afa.events.items()},
            "register": {name: str(kind) for name, kind in afa.register.items()},
            "initial": [str(value) for value in afa.initial],
            "start": afa.start,
            "window": str(afa.window),
            "partition_by": list(afa.partition_by),
            "arcs": [shown(arc, afa.register) for arc in afa.arcs],
            "finals": {name: str(emit) for name, emit in afa.finals.items()},
            "options": self._options,
        }

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _time_kind(self) -> pa.DataType:
        return self._runner.time_kind or pa.int64()

    def _tick(self, time: Any) -> int:
        """A time in ticks. Before the first batch its own type tells the unit, which that batch may still change."""
        runner, name = self._runner, self._options["time"]
        if runner.time_kind is not None:
            return tick_of(time, runner.time_kind, name)
        kind = pa.int64() if isinstance(time, int | float) else pa.scalar(time).type
        found = tick_of(time, kind, name)
        runner.time_kind, self._guessed = kind, True
        return found

    def _ticks(self, times: list[Any]) -> I64:
        """Times in ticks; one call for all where they fit."""
        self._tick(times[0])
        assert self._runner.time_kind is not None
        try:
            for time in times:
                check_clock(time, self._runner.time_kind)
            return ticks(pa.array(times, self._runner.time_kind), self._options["time"], 0)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return np.array([self._tick(time) for time in times], np.int64)  # which says what is wrong

    def _bind(self, schema: pa.Schema) -> None:
        """Take the types of the columns that the first batch tells."""
        if self._bound:
            return
        given = dict(zip(schema.names, schema.types, strict=True))
        kinds = {}
        for name in self._needed():
            if name not in self.afa.events and name not in given:
                role = next(role for role, column in self._options.items() if column == name)
                hint = _hint(suggestion(name, given, kind="column"))
                raise DataError(f"the events have no column '{name}' ({role}){hint}")
            kinds[name] = self.afa.events.get(name) or given[name]
        until = self._options["until"]
        if until is not None and pa.types.is_null(kinds[until]):  # all live for ever, so far
            kinds[until] = kinds[self._options["time"]]
        self._set_time(kinds[self._options["time"]])
        self._kinds, self._bound = kinds, True

    def _needed(self) -> list[str]:
        """The columns that the matcher reads."""
        roles = (self._options[name] for name in ("time", "sequence", "until", "sign", "numbered"))
        return list(dict.fromkeys([*self.afa.events, *(name for name in roles if name is not None)]))

    def _start(self, kind: pa.DataType | None) -> None:
        self._runner = self._program().start(late=self._options["late"], capacity=self._capacity)
        self._runner.budget = self._budget
        self._bound = self._guessed = False
        if kind is not None:
            self._set_time(kind)

    def _program(self) -> AfaProgram:
        roles = Roles(**{name: value for name, value in self._options.items() if name != "late"})
        return AfaProgram(self.afa, roles, texts=Texts(self._read_arc, self._condition))

    def _set_time(self, kind: pa.DataType) -> None:
        window = width(self.afa.window, kind, self._options["time"])
        before = self._runner.time_kind
        if self._guessed and before is not None and before != kind:
            try:
                check_clock(as_times(np.zeros(1, np.int64), before)[0], kind)
            except ValueError:
                raise DataError(
                    f"'{self._options['time']}' is {kind}, and a time that was given before its first event is {before}: give both "
                    "with a time zone, or both without"
                ) from None
            self._runner.rescale(kind)
        self._runner.time_kind = kind
        self._runner.window = window

    def _schema(self) -> pa.Schema:
        """Of the output."""
        time = self._time_kind
        fields = [
            ("sign", pa.int8()),
            ("start", pa.int64()),
            ("end", pa.int64()),
            *([("positions", pa.list_(pa.int64()))] if self._options["provenance"] else []),
            ("start_time", time),
            ("end_time", time),
            ("until", time),
            *((free_name(name), _value_type(self.afa.events[name])) for name in self.afa.partition_by),
            ("register", pa.struct([(name, kind) for name, kind in self.afa.register.items()])),
        ]
        return pa.schema(fields)

    def _empty(self) -> pa.Table:
        kind = self._time_kind
        if self._nothing is None or self._nothing[0] != kind:
            self._nothing = kind, self._schema().empty_table()
        return self._nothing[1]

    def _table(self) -> pa.Table:
        """The output so far."""
        runner = self._runner
        if not runner.has_output:
            return self._empty()
        found = runner.take()
        outputs = found.outputs
        assert outputs is not None
        schema = self._schema()
        arrays: list[pa.Array] = [
            pa.array(found.sign),
            pa.array(found.start, mask=found.start < 0),
            pa.array(found.end, mask=found.end < 0),
        ]
        if self._options["provenance"]:
            arrays.append(pa.LargeListArray.from_arrays(found.offset, found.position))
        arrays += [outputs.start_time, outputs.end_time, outputs.until]
        if outputs.keys is not None:
            arrays += [outputs.keys.column(name) for name in self.afa.partition_by]
        register, fields = schema.field("register").type, outputs.register
        if fields:
            arrays.append(pa.StructArray.from_arrays(fields, fields=list(register)))
        else:
            arrays.append(pa.array([{}] * found.start.size, register))
        cast = [
            array if array.type == kind else array.cast(kind) for array, kind in zip(arrays, schema.types, strict=True)
        ]
        return pa.table(cast, schema=schema)


def match_afa(
    afa: AFA | Afa, events: Any, *, time: str | None = None, sequence: str | None = None, **options: Any
) -> pa.Table:
    """All outputs of an automaton over a table, whatever its order: ``stretto.match(afa, events, time=…)``.

    The columns of :class:`AfaMatcher`'s output without ``sign``, by last event, first event and register.

    >>> import stretto
    >>> afa = stretto.AFA({"kind": str}).arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")
    >>> stretto.match(afa, [{"t": 3, "kind": "b"}, {"t": 1, "kind": "a"}], time="t").select(["start", "end"]).to_pylist()
    [{'start': 1, 'end': 0}]
    """
    budget = Budget(options.get("budget"))
    pieces: list[pa.Table] = []
    rows = size = 0
    for piece in iter_match_afa(afa, events, time=time, sequence=sequence, **options):
        rows, size = rows + piece.num_rows, size + piece.nbytes
        if not budget.holds(rows, size):
            raise LimitError(
                f"the outputs go over the budget of {budget}, at {rows:,} rows\nhint: a narrower window or stricter fences give "
                "less; iter_matches() gives them in pieces; budget= allows more"
            )
        pieces.append(piece)
    return pa.concat_tables(pieces)


def iter_match_afa(
    afa: AFA | Afa, events: Any, *, time: str | None = None, sequence: str | None = None, **options: Any
) -> Iterator[pa.Table]:
    """As :func:`match_afa`, in pieces: the outputs of so many events each; at least one, which may be empty."""
    if time is None:
        raise OptionError("an AFA needs the column that orders the stream: time='…'")
    unknown = set(options) - {"until", "bag", "numbered", "ignore", "provenance", "budget"}
    if unknown:
        hint = ": it is for streams, stretto.Matcher(afa, time='…')" if min(unknown) in _OF_STREAMS else ""
        raise TypeError(f"match() of an AFA got an unexpected keyword argument '{min(unknown)}'{hint}")
    frozen = afa.frozen if isinstance(afa, AFA) else afa
    if not frozen.arcs:
        raise OptionError("the AFA has no arcs, so that nothing can match: afa.arc(source, target, when=…)")
    table = as_table(events)
    if time not in table.column_names:
        raise DataError(
            f"the events have no column '{time}' (time)" + _hint(suggestion(time, table.column_names, kind="column"))
        )
    keys = [(time, "ascending")]
    tie = sequence or options.get("numbered")
    if tie is not None and tie in table.column_names:
        keys.append((tie, "ascending"))
    order = None
    if not table.column(time).null_count:
        sorted_rows = pc.sort_indices(table, sort_keys=keys)
        table, order = table.take(sorted_rows), np.asarray(sorted_rows).astype(np.int64)
    matcher = AfaMatcher(frozen, table.schema, time=time, sequence=sequence, ordered=True, **options)
    return _pieces_of(matcher, table, order)


def _pieces_of(matcher: AfaMatcher, table: pa.Table, order: I64 | None) -> Iterator[pa.Table]:
    """The outputs of a table in order, whose rows had these numbers."""
    for begin in range(0, max(table.num_rows, 1), CHUNK):
        piece = matcher._conformed(table.slice(begin, CHUNK), alone=False)
        if piece is not None:
            matcher._carry_out(piece, Changes.none(), None, None if order is None else order[begin : begin + CHUNK])
        yield matcher._table().drop_columns(["sign"])


def _never(arc: Arc) -> bool:
    """Whether no event can take an arc: it was retired from the beginning of its lifetime on."""
    since = -FOREVER if arc.since is None else arc.since
    return arc.until is not None and arc.until <= since


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def free_name(name: str) -> str:
    """The output's column of a partition attribute."""
    return f"{name}_" if name in OWN else name


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _hint(text: str | None) -> str:
    return f"; {text}" if text else ""
