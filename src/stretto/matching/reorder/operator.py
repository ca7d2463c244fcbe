"""The Cleanse operator: punctuations, and what they let through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.arguments import check_arguments
from stretto.array_types import I64, Bits
from stretto.column_types import field_types, wider, with_fields
from stretto.columns.measured import signs
from stretto.errors import DataError, OptionError, SnapshotError, StrettoError
from stretto.events import BEFORE, Schema, as_table, conform
from stretto.frame import Section, reading
from stretto.matching.lifecycle import one_thread
from stretto.matching.reorder.columns import Columns
from stretto.matching.reorder.runs import Released, Run, one_batch, segments
from stretto.matching.reorder.spans import check_late, check_span, span
from stretto.matching.reorder.waiting import Buffer
from stretto.times import BEFORE_ALL, as_times

#: Times as ticks, or real numbers.
Times = NDArray[Any]


@check_arguments
@one_thread("Cleanse", "push", "advance", "finish", "snapshot", "restore", "late_events")
class Cleanse:
    """Puts a disordered stream in order, as far as is wished (AFA paper, section 5.3).

    With the latest punctuation at t, only events with a time below t + ``speculation`` are let through; others wait, in order, until
    a punctuation lets them go. With ``speculation=0`` what comes out is in order; with ``math.inf`` everything passes at once.

    What one operation lets through comes in the order of time, sequence and arrival; an event that need not wait comes out as
    soon as it comes in. Any split of the stream into pushes gives the same rows.

    Parameters
    ----------
    schema
        Names and types of the columns; ``None``: as in the first push.
    time
        The column that orders the stream: integers, floats, dates or timestamps.
    sequence
        A column of integers that orders events of the same time; ``None``: they are ordered as they arrive.
    sign
        The column that says +1 (insertion) or −1 (retraction). A retraction whose event still waits annihilates with it: neither is
        ever seen; otherwise it passes. An insertion right behind the retraction of an event with the same partition, time and
        sequence is its revision, and takes its place.
    partition_by
        Columns that, with time and sequence, tell which event is retracted. An event with a NULL in one of them is in no
        partition: it moves time on, and is left out.
    payload
        The columns that tell it where there is no sequence; ``None``: all.
    speculation
        How far beyond the punctuation events pass: ticks of the time column, ``'5 seconds'``, a timedelta, or ``math.inf``.
    disorder
        How late events may be at most (as ``speculation``): the punctuation follows the data, as the greatest time seen minus so much
        (k-slack). ``None`` or ``math.inf``: punctuations come by :meth:`advance` only.
    late
        What comes before the punctuation, or retracts an event that should wait and does not: ``"error"``, ``"drop"`` (counted in
        :attr:`late`) or ``"side"`` (handed over by :meth:`late_events`).
    time_unit
        What one unit of an integer time is (``s``, ``ms``, ``us``, ``ns``), for durations.

    Examples
    --------
    >>> import stretto
    >>> cleanse = stretto.Cleanse(time="t")
    >>> cleanse.push([{"t": 3}, {"t": 1}]).num_rows
    0
    >>> cleanse.advance(3).to_pylist()
    [{'t': 1}]
    >>> cleanse.finish().to_pylist()
    [{'t': 3}]
    >>> cleanse = stretto.Cleanse(time="t", disorder=2)
    >>> cleanse.push([{"t": 1}, {"t": 3}, {"t": 2}, {"t": 5}]).to_pylist(), cleanse.punctuation
    ([{'t': 1}, {'t': 2}], 3)
    """

    def __init__(
        self,
        schema: Any = None,
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
        check_span(speculation, "speculation")
        if disorder is not None:
            check_span(disorder, "disorder")
        self._columns = Columns(time, sequence, sign, partition_by, payload)
        self._buffer = Buffer(self._columns, strict=late == "error")
        self._speculation, self._bound = speculation, None if disorder == math.inf else disorder
        self._late_policy, self._unit = late, time_unit
        self._ahead: int | float | None = None  # ticks; None: without end
        self._slack: int | float | None = None
        self._punctuation: Any = BEFORE_ALL
        self._greatest: Any = BEFORE_ALL  # time seen
        self._limit: Any = BEFORE_ALL  # what is below has passed
        self._told: Any = None  # a punctuation before the type of the time is known
        self._finished = False
        self._rows = self._late = 0
        self._side: list[pa.Table] = []
        self._inferred = schema is None
        if schema is not None:
            attributes = Schema.of(schema).attributes
            self.bind(pa.schema([*attributes.items(), *field_types(attributes, self._columns.named).items()]))

    # -- operations ---------------------------------------------------------------------------------------------------

    def push(self, events: Any) -> pa.Table:
        """Take the next events; those that go through.

        Raises
        ------
        DataError
            The events do not fit the schema, a time is NULL, or an event is late (with ``late="error"``). Nothing of them was taken.
        """
        return self.let(events).table

    def advance(self, time: Any) -> pa.Table:
        """A punctuation: no event before ``time`` will come. The events that it lets through; the punctuation itself follows them.

        An event at ``time`` is on time. With ``disorder=`` a punctuation below the derived one says nothing new.

        Raises
        ------
        DataError
            The punctuation goes back.
        """
        if self.schema is None:
            if self._told is not None and time < self._told:
                raise DataError(f"the punctuation goes back from {self._told} to {time}")
            self._told = time
            return pa.table({})
        return self._advance(self.tick(time), 0).table

    def finish(self) -> pa.Table:
        """The stream has ended: all events that still wait."""
        return self.end().table

    @property
    def punctuation(self) -> Any:
        """No event before this time will come out any more; ``None``: none is known."""
        if self.schema is None:
            return self._told
        return None if self._punctuation == self._columns.before else self._columns.shown(self._punctuation)

    @property
    def late(self) -> int:
        """How many events were late, or retracted the unknown."""
        return self._late

    def late_events(self) -> pa.Table:
        """With ``late="side"``: the events that were late or retracted the unknown, since the last call."""
        if self.schema is None:
            return pa.table({})
        found, self._side = self.set_aside, []
        return found

    @property
    def set_aside(self) -> pa.Table:
        """What :meth:`late_events` would hand over now; it stays."""
        return pa.table({}) if self.schema is None else together(self._side, self.schema)

    @property
    def stats(self) -> dict[str, int]:
        """Counts: rows pushed, late, released, annihilated (with their retractions); rows that wait, at most, and bytes."""
        return {
            "rows": self._rows,
            "late": self._late,
            "released": self._buffer.released,
            "annihilated": self._buffer.annihilated,
            "buffered": self.buffered,
            "peak": self._buffer.peak,
            "bytes": sum(run.batch.nbytes + 16 * run.size for run in self._buffer.runs),
        }

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the events, once they are known."""
        return self._columns.schema

    @property
    def buffered(self) -> int:
        """How many events wait."""
        return self._buffer.buffered

    @property
    def waiting_rows(self) -> I64:
        """The rows of the events that wait, in any order."""
        return self._buffer.waiting_rows

    def tick(self, time: Any) -> int | float:
        """One time as the operator counts."""
        return self._columns.tick(time)

    def retype(self, schema: pa.Schema) -> None:
        """Go on with other types of columns, other than those that play a role.

        Raises
        ------
        DataError
            A value that waits does not fit.
        """
        try:
            runs = [replace(run, batch=run.batch.cast(schema)) for run in self._buffer.runs]
        except pa.ArrowInvalid as error:
            raise DataError(f"an event that waits does not fit: {error}") from error
        self._buffer.runs, self._columns.schema = runs, schema

    def let(
        self,
        events: Any,
        punctuations: Sequence[tuple[int, Any]] = (),
        *,
        places: bool = False,
        whole: pa.Table | None = None,
    ) -> Released:
        """Do what :meth:`push` does, with the rows of the events.

        Parameters
        ----------
        punctuations
            Pairs of a row of the push, ascending, and the time before it.
        places
            Whether to tell after which operation each event goes.
        whole
            The same events with all columns, for those that are late; ``None``: they have all.
        """
        if self._finished:
            raise OptionError("the stream is finished; start a new Cleanse, or restore a snapshot")
        table = as_table(events)
        if not table.num_columns:
            return self._buffer.nothing()
        table = with_fields(table, self._columns.named)
        self.bind(table.schema)
        assert self.schema is not None
        if self._inferred:
            self._widen(table)
        kinds = dict(zip(self.schema.names, self.schema.types, strict=True))
        whole = table if whole is None else whole
        table = conform(table, kinds, kinds, *(BEFORE if self._inferred else ("the schema says",)))
        batch = one_batch(table)
        before = self.saved()
        try:
            found = []
            for begin, end, time in segments(batch.num_rows, [(row, self.tick(time)) for row, time in punctuations]):
                if time is not None:
                    found.append(self._advance(time, 2 * begin))
                elif end > begin:
                    size = end - begin
                    found.append(self._take(batch.slice(begin, size), whole.slice(begin, size), begin, places))
        except DataError:
            self.go_back(before)
            raise
        return self._buffer.joined(found)

    def pass_on(self, time: int | float) -> Released:
        """Do what :meth:`advance` does, of a time as the operator counts, with the rows."""
        return self._advance(time, 0)

    def end(self) -> Released:
        """Do what :meth:`finish` does, with the rows."""
        self._finished = True
        if self.schema is None:
            return self._buffer.nothing()
        self._limit = self._columns.after
        return self._flush(0)

    def waiting(self, ahead: Any) -> Released:
        """The events that wait with a time below the punctuation plus ``ahead``, in order. They go on waiting."""
        if self.schema is None:
            return self._buffer.nothing()
        columns = self._columns
        beyond = span(ahead, "speculation", columns.kind, columns.time, self._unit)
        limit = columns.after if beyond is None else columns.before
        if beyond is not None and self._punctuation != columns.before:
            limit = self._punctuation + beyond
        before = self._buffer.saved()
        parts = self._buffer.below(limit)
        found = self._buffer.out(parts, np.zeros(0, np.int64), by_place=False) if parts else self._buffer.nothing()
        self._buffer.go_back(before)
        return found

    @property
    def last_punctuation(self) -> int | float | None:
        """The punctuation as the operator counts; ``None``: none is known."""
        found: int | float = self._punctuation
        return None if found == self._columns.before else found

    @property
    def last_time(self) -> pa.Array | None:
        """The punctuation as a column of one time; ``None``: none is known."""
        found = self.last_punctuation
        if found is None or self.schema is None:
            return None
        kind = self._columns.kind
        if pa.types.is_integer(kind):  # it may be less than any time that a type of few bits, or without a sign, has
            kind = pa.int64()
        return pa.array([found], kind) if pa.types.is_floating(kind) else as_times(np.array([found]), kind)

    @property
    def position(self) -> int:
        """How many rows were pushed."""
        return self._rows

    def _take(self, batch: pa.RecordBatch, whole: pa.Table, first: int, placed: bool) -> Released:
        """Rows of a push, from its row ``first`` on; ``whole``: the same with all columns."""
        count = batch.num_rows
        columns = self._columns
        row = np.arange(self._rows, self._rows + count)
        here = columns.read(batch, row, self._rows)
        time = here.time
        sign = None if columns.sign is None else signs(batch, columns.sign, self._rows)
        # The punctuation before each row and behind the last, and what each row lets through.
        nowhere = columns.nowhere(batch)
        punctuation = self._punctuations(time, sign)
        limits = self._beyond(punctuation[1:]) if self._slack is not None else np.full(1, self._limit, time.dtype)
        late = time < punctuation[:-1]
        if self._late_policy == "error" and late.any():
            at = int(late.argmax())
            raise DataError(
                f"row {row[at]} is late: its time is {self._columns.shown(time[at])}, and the punctuation stands at "
                f"{self._columns.shown(punctuation[at])}"
            )
        passes = ~late if nowhere is None else ~(late | nowhere)
        if sign is not None:
            waits = passes & (time >= limits)
            if (sign[waits] < 0).any():
                here = self._buffer.annihilate(here, sign, waits, passes, late)
        self._rows += count
        self._set_aside(batch, whole, late)
        if self._slack is not None:
            self._punctuation, self._limit = punctuation[-1].item(), limits[-1].item()
            self._greatest = max(self._greatest, columns.seen(time, sign).max(initial=columns.before).item())
        return self._split(here, passes, limits, first, placed)

    def _punctuations(self, time: Times, sign: I64 | None) -> Times:
        """The punctuation before each row, and behind the last."""
        if self._slack is None:
            return np.full(time.size + 1, self._punctuation, time.dtype)
        seen = np.empty(time.size + 1, time.dtype)
        seen[0] = self._greatest
        seen[1:] = self._columns.seen(time, sign)
        np.maximum.accumulate(seen, out=seen)
        if self._greatest == self._columns.before:
            known = seen != self._columns.before
            seen = np.where(known, np.where(known, seen, 0) - self._slack, self._columns.before)
        else:
            seen -= self._slack
        told: Times = np.maximum(seen, self._punctuation)
        return told

    def _beyond(self, punctuation: Times) -> Times:
        """Times below this pass."""
        if self._ahead is None:
            return np.full_like(punctuation, self._columns.after)
        if not self._ahead:
            return punctuation
        known = punctuation != self._columns.before
        return np.where(known, np.where(known, punctuation, 0) + self._ahead, self._columns.before)

    def _split(self, here: Run, passes: Bits, limits: Times, first: int, placed: bool) -> Released:
        """Let through what is certain enough; the rest waits."""
        place = np.arange(2 * first + 1, 2 * (first + here.size), 2)
        if not passes.all():
            at = np.flatnonzero(passes)
            here, place = here.taken(at), place[at]
        if self._ahead is None:
            return self._buffer.let(here, place)
        if self._slack is None:
            # Nothing that waits goes by a row.
            through = here.time < self._limit
            if through.all():
                return self._buffer.let(here, place)
            at = np.flatnonzero(through)
            found = self._buffer.let(here.taken(at), place[at]) if at.size else self._buffer.nothing()
            self._buffer.wait(here.taken(np.flatnonzero(~through)) if at.size else here)
            return found
        order = self._buffer.order(here, stable=True)
        if order is not None:
            here, place = here.taken(order), place[order]
        cut = int(np.searchsorted(here.time, self._limit, side="left"))
        parts = self._buffer.below(self._limit)
        waited = sum(part.size for part in parts)
        if cut:
            parts.append(here if cut == here.size else here.part(0, cut))
        if cut < here.size:
            self._buffer.wait(here.part(cut, here.size).small() if cut else here)
        if not parts:
            return self._buffer.nothing()
        if not (self._ahead or placed):
            return self._buffer.out(parts, np.zeros(0, np.int64), by_place=False)
        # Row i lets go what is below its limit.
        time = np.concatenate([part.time for part in parts])
        lets = 2 * (first + np.searchsorted(limits, time, side="right")) + 1
        own = np.concatenate((np.full(waited, -1), place[:cut]))
        return self._buffer.out(parts, np.maximum(lets, own), by_place=bool(self._ahead))

    def _advance(self, time: int | float, place: int) -> Released:
        if time < self._punctuation:
            if self._slack is not None:
                return self._buffer.nothing()
            raise DataError(
                f"the punctuation goes back from {self._columns.shown(self._punctuation)} to {self._columns.shown(time)}"
            )
        self._punctuation = time
        self._limit = self._beyond(np.array([time], self._columns.dtype))[0].item()
        return self._flush(place)

    def _flush(self, place: int) -> Released:
        """What waited and need not any more."""
        parts = self._buffer.below(self._limit)
        if not parts:
            return self._buffer.nothing()
        return self._buffer.out(parts, np.full(sum(part.size for part in parts), place), by_place=bool(self._ahead))

    def _set_aside(self, batch: pa.RecordBatch, whole: pa.Table, late: Bits) -> None:
        count = int(np.count_nonzero(late))
        self._late += count
        if count and self._late_policy == "side":
            columns = dict(zip(whole.column_names, whole.columns, strict=True))
            columns |= zip(batch.schema.names, batch.columns, strict=True)
            self._side.append(pa.table(columns).filter(pa.array(late)))

    def _widen(self, table: pa.Table) -> None:
        """Take wider types where a batch contradicts those before it."""
        assert self.schema is not None
        known = dict(zip(self.schema.names, self.schema.types, strict=True))
        nulls = [name for name, kind in known.items() if pa.types.is_null(kind)]
        own = self._columns
        fixed = {own.time, own.sequence, own.sign, *own.partition_by}
        if found := wider(table, known, nulls, fixed):
            try:
                self.retype(pa.schema(list((known | found).items())))
            except DataError as error:
                name = min(found, key=lambda one: one in nulls)
                raise DataError(
                    f"column '{name}' is {found[name]}, and {BEFORE[0]} {known[name]}: {error}{BEFORE[1]}"
                ) from error

    def bind(self, schema: pa.Schema) -> None:
        """Take the names and types of the columns, unless they are known."""
        if self.schema is not None:
            return
        columns = self._columns
        columns.bind(schema)
        try:
            ahead = span(self._speculation, "speculation", columns.kind, columns.time, self._unit)
            slack = (
                None if self._bound is None else span(self._bound, "disorder", columns.kind, columns.time, self._unit)
            )
            told = None if self._told is None else self.tick(self._told)
        except StrettoError:
            columns.schema = None
            raise
        self._ahead, self._slack = ahead, slack
        self._punctuation = self._greatest = columns.before
        self._limit = columns.after if ahead is None else columns.before
        if told is not None:
            self._advance(told, 0)

    # -- state --------------------------------------------------------------------------------------------------------

    _STATE = ("_told", "_finished", "_rows", "_late")
    _TIMES = ("_punctuation", "_greatest", "_limit")

    def saved(self) -> dict[str, Any]:
        """Give the state, to go back to."""
        own = {name: getattr(self, name) for name in (*self._STATE, *self._TIMES)}
        return {"own": own | {"_side": list(self._side)}, "buffer": self._buffer.saved()}

    def go_back(self, saved: dict[str, Any]) -> None:
        """Go back to what :meth:`saved` gave."""
        for name, value in saved["own"].items():
            setattr(self, name, value)
        self._buffer.go_back(saved["buffer"])

    def snapshot(self) -> bytes:
        """The whole state, in a versioned format (``docs/snapshots.md``)."""
        own = Section()
        self.save(own)
        return Section({"cleanse": own.values}, own.arrays).to_bytes()

    @reading()
    def restore(self, snapshot: bytes) -> Cleanse:
        """Take over the state of a snapshot with the same options.

        Raises
        ------
        SnapshotError
            The bytes are damaged, or of another version or option.
        """
        whole = Section.of_bytes(snapshot)
        if set(whole.values) != {"cleanse"}:
            raise SnapshotError("the snapshot is not of a Cleanse")
        with reading():
            self.load(Section(whole.values["cleanse"], whole.arrays))
        return self

    def save(self, section: Section) -> None:
        """Write the state."""
        values, arrays = section.values, section.arrays
        values["options"] = self._identity()
        values["state"] = {name: getattr(self, name) for name in self._STATE if name != "_told"}
        values["state"] |= {f"_{name}": getattr(self._buffer, name) for name in self._buffer.COUNTS}
        values["bound"] = self.schema is not None
        if self.schema is None:
            if self._told is not None:
                section.put_table("told", pa.table({"time": pa.array([self._told], pa.scalar(self._told).type)}))
            return
        section.put_schema("schema", self.schema)
        arrays["times"] = np.array([getattr(self, name) for name in self._TIMES], self._columns.dtype)
        runs = [run.plain() for run in self._buffer.runs]
        arrays["sizes"] = np.array([run.size for run in runs], np.int64)
        arrays["row"] = np.concatenate([run.row for run in runs] or [np.zeros(0, np.int64)])
        section.put_table("table", pa.Table.from_batches([run.batch for run in runs], schema=self.schema))
        section.put_table("side", self.set_aside)

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote.

        Raises
        ------
        SnapshotError
            It is of other options.
        """
        values, arrays = section.values, section.arrays
        for name, value in self._identity().items():
            there = values["options"].get(name)
            if there != value:
                raise SnapshotError(
                    f"the snapshot is of a Cleanse with other options: {_WORDS.get(name, name)} is {there} there, {value} here"
                )
        state = Section(values["state"])
        counts = {name: read(state, f"_{name}") for name, read in self._buffer.COUNTS.items()}
        own = {"_finished": state.flag("_finished"), "_rows": state.count("_rows"), "_late": state.count("_late")}
        self.go_back({"own": own | {"_told": None, "_side": []}, "buffer": counts | {"runs": []}})
        if not section.flag("bound"):
            self._columns.schema = None
            if "told" in arrays or values.get("told") is not None:
                self._told = section.table("told")["time"][0].as_py()
            return
        schema = section.schema("schema")
        if self.schema is not None and self.schema != schema:
            raise SnapshotError(
                f"the snapshot is of events with other columns: {schema.names}, not {self.schema.names}"
            )
        self.bind(schema)
        if arrays["times"].dtype != self._columns.dtype or np.isnan(arrays["times"]).any():
            raise ValueError("the times of the punctuation are of another type")
        for name, value in zip(self._TIMES, arrays["times"].tolist(), strict=True):
            setattr(self, name, value)
        table = section.table("table")
        sizes, rows = section.numbers("sizes", least=0, below=table.num_rows + 1), section.numbers("row", least=0)
        if table.schema != self.schema or not sizes.sum() == rows.size == table.num_rows:
            raise ValueError("the events that wait have other columns, or there are more or fewer")
        begin = 0
        for size in sizes.tolist():
            run = self._columns.read(one_batch(table.slice(begin, size)), rows[begin : begin + size], 0)
            if (run.time[1:] < run.time[:-1]).any():
                raise ValueError("the events that wait are not in order")
            self._buffer.runs.append(run)
            begin += size
        side = section.table("side")
        self._side = [side] if side.num_rows else []

    def _identity(self) -> dict[str, Any]:
        """What a state depends on."""
        roles = ("time", "sequence", "sign", "partition_by", "payload")
        own = ("speculation", "bound", "late_policy", "unit")
        found = {name: getattr(self._columns, name) for name in roles} | {
            name: getattr(self, f"_{name}") for name in own
        }
        return {name: _plain(value) for name, value in found.items()}


#: Options that have another name in states.
_WORDS = {"bound": "disorder", "late_policy": "late", "unit": "time_unit"}


def _plain(value: Any) -> Any:
    """Turn a time into what JSON can hold."""
    return list(value) if isinstance(value, tuple) else value if isinstance(value, int | None) else str(value)


def together(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Late events as one table: the columns of a schema with its types, and whatever others they had, NULL where there was none.

    Of a column that no type fits, the values are shown as texts.
    """
    kinds = dict(zip(schema.names, schema.types, strict=True))
    columns: dict[str, pa.ChunkedArray] = {}
    for name in dict.fromkeys([*(name for table in tables for name in table.column_names), *schema.names]):
        parts = [
            table.column(name) if name in table.column_names else pa.chunked_array([pa.nulls(table.num_rows)])
            for table in tables
        ]
        columns[name] = _one_column(parts, kinds.get(name))
    return pa.table(columns)


def _one_column(parts: Sequence[pa.ChunkedArray], kind: pa.DataType | None) -> pa.ChunkedArray:
    """The values of some columns as one."""
    if kind is not None:
        return pa.chunked_array([chunk for part in parts for chunk in part.cast(kind).chunks], kind)
    try:
        found = pa.concat_tables([pa.table({"": part}) for part in parts], promote_options="permissive")
    except pa.ArrowException:
        texts = [None if value is None else str(value) for part in parts for value in part.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return found.column(0)
