"""Patterns with notes: values that their matches show, and at most one match in a span of time for each key."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.columns.measured import values_of
from stretto.engines.api import Startable
from stretto.errors import OptionError, StrettoError
from stretto.events import as_table
from stretto.frame import Section, reading
from stretto.matching.pattern_set.changes import Change, Instant, instant_of
from stretto.matching.pattern_set.compile import parts_over
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.matching.pattern_set.throttle import NONE, Number, Repeats, ticks_of
from stretto.times import DAY

#: The column of changes that says in which span of time a pattern has one match at most.
EVERY = "every"

#: The column of changes that says from when on a pattern holds no more.
UNTIL = "until"

#: The column of results that says why a pattern was switched off.
DISABLED = "disabled"

#: The column of results that says how many matches of a pattern are not decided.
UNDECIDED = "undecided"

#: The frame of a snapshot begins so.
MAGIC = b"STRNOTE\0"


@dataclass
class _Note:
    """What is known of a pattern from one change to the next."""

    since: Number | None
    digest: str | None  #: of the query; ``None``: the pattern is retired
    every: Number
    wait: Number
    shown: list[str | None]


class AnnotatedPatternSet:
    """A :class:`stretto.PatternSet` that knows more of its patterns than their queries.

    Changes may have more columns: ``every``, a span of time (of a pattern's matches with the same keys, one that ends less than this
    after the last one that was given is left out and counted), ``until``, the first time at which the pattern holds no more, and
    columns of text, which matches show.

    Parameters
    ----------
    patterns
        The set, as it is made.
    shown
        The columns of changes that matches show, behind ``pattern``.
    valuations
        As the set has it.
    disables
        Whether results have a column ``disabled``: NULL in matches, and in a row for each pattern that was switched off the reason.
    counts
        Whether results have a column ``undecided``, NULL in matches, for :meth:`left`.
    """

    def __init__(
        self,
        patterns: PatternSet,
        shown: Sequence[str] = (),
        *,
        valuations: bool = False,
        disables: bool = False,
        counts: bool = False,
    ) -> None:
        self.patterns, self._valuations = patterns, valuations
        schema = patterns.schema
        assert schema.time is not None
        self._time, self._kind, self._unit = schema.time, schema.attributes[schema.time], schema.time_unit
        own = patterns.output_schema
        self._shown = list(shown)
        self._repeats = Repeats(own.names[own.names.index("end_time") + 1 : own.names.index("keys") + 1])
        self._notes: dict[str, list[_Note]] = {}
        self._told: set[str] = set()  # that they are switched off
        self._reached: Number | None = None
        #: How many matches were left out because they came too soon, since the set was made or restored: a round, or a call on Spark,
        #: tells of its own.
        self.suppressed: dict[str, int] = {}
        fields = [pa.field(_untaken(name, own.names), pa.string()) for name in self._shown]
        #: The column that tells of patterns that were switched off; ``None``: none is.
        self.off = _untaken(DISABLED, [*own.names, *self._shown]) if disables else None
        #: The column that tells how many matches are not decided.
        self.counted = _untaken(UNDECIDED, [*own.names, *self._shown]) if counts else None
        last = [] if self.off is None else [pa.field(self.off, pa.string())]
        last += [] if self.counted is None else [pa.field(self.counted, pa.int64())]
        self.output_schema = pa.schema([own.field(0), *fields, *list(own)[1:], *last])

    # -- changes ------------------------------------------------------------------------------------------------------

    def change(
        self, changes: pa.Table | Sequence[Mapping[str, Any]], *, renew: bool = True, now: pa.Scalar | None = None
    ) -> None:
        """Change patterns (:meth:`stretto.PatternSet.change`), and what is known of them.

        Parameters
        ----------
        changes
            Rows with ``id``, ``query``, and perhaps ``since``, ``until``, ``language``, ``every`` and what matches show.
        renew
            Whether a pattern whose query is the same begins anew; else it goes on, and what is known of it changes at once. Then rows
            with ``until`` are all that is to come of their patterns: what was to hold after ``now`` is taken back.
        now
            A time that no ``since`` is before; ``None``: the beginning.

        Raises
        ------
        QueryError, OptionError, LimitError, DataError
            As :meth:`stretto.PatternSet.change`; ``every`` is no span of time, or ``until`` does not come after
            ``since``. Changes before the wrong one hold.
        """
        for given in _rows(changes) if isinstance(changes, pa.Table) else changes:
            change = Change(given["id"], given["query"], given.get("since"), given.get("language"))
            self._change(change, given, renew, self._number(now, "now"))

    @property
    def reached(self) -> Instant | None:
        """The time to which the stream has come."""
        return None if self._reached is None else Instant.numbered(self._reached, self._kind)

    @property
    def machines(self) -> list[Startable[Any]]:
        """What the patterns run (:attr:`stretto.PatternSet.machines`)."""
        return self.patterns.machines

    @property
    def ids(self) -> list[str]:
        """The patterns that hold or will hold."""
        return [name for name, notes in self._notes.items() if any(one.digest is not None for one in notes)]

    def follow(self, given: Mapping[str, Any]) -> None:
        """Change a pattern from the next time on: one of the same query goes on, and what is given is all that is to come of it.

        Raises
        ------
        QueryError, OptionError, LimitError, DataError
            As :meth:`change`.
        """
        if self._reached is None:
            self.change([given])
            return
        now = Instant.numbered(_next(self._reached, self._kind), self._kind)
        since = self._number(given.get("since"), f"pattern '{given['id']}': since")
        given = {UNTIL: None, **given} | ({"since": now.shown} if _is_before(since, now.number) else {})
        self.change([given], renew=False, now=now.shown)

    def _number(self, time: Any, what: str) -> Number | None:
        """A time as the engine has it."""
        return None if time is None else instant_of(time, self._time, self._kind, what).number

    def _change(self, change: Change, given: Mapping[str, Any], renew: bool, now: Number | None) -> None:
        number = self._number(change.since, f"pattern '{change.id}': since")
        end = self._end(change, given.get(UNTIL), number, now)
        known, whole = self._notes.get(change.id, []), not renew and UNTIL in given
        if whole:
            known = [one for one in known if _is_before(one.since, now, inclusive=True)]
        later = whole and _is_before(now, number)
        note = self._note(change, given, number)
        coming = []
        if not renew and not later and known and self._is_same(known[-1], note, change):
            known[-1].every, known[-1].shown, known[-1].digest = note.every, note.shown, note.digest
        else:
            if later and known:  # until then it holds no more
                coming.append((Change(change.id, None, self._time_of(now)), self._none(now)))
            coming.append((change, note))
        if end is not None:
            coming.append((Change(change.id, None, end.shown), self._none(end.number)))
        self.patterns.change([one for one, _ in coming])
        if whole:
            self.patterns.withdraw(change.id, now, [new.since for _, new in coming])
        for _, new in coming:
            before = [one for one in known if _is_before(one.since, new.since)]
            known = [*before, new, *(one for one in known if _is_before(new.since, one.since))]
        self._notes[change.id] = known
        if note.every != NONE and change.query is not None:
            wait = self._wait(change)
            for one in self._notes[change.id]:
                one.wait = wait if one.digest == note.digest else one.wait
        self._forget(change.id)

    def _is_same(self, known: _Note, note: _Note, change: Change) -> bool:
        """Whether a pattern that is known is of the query of a change, perhaps written otherwise."""
        if known.digest == note.digest:
            return True
        if known.digest is None or change.query is None:
            return False
        try:
            part = self._part(change)
        except StrettoError:  # which the set raises as well, with the name of the pattern
            return False
        return self.patterns.has(change.id, known.since, part)

    def _time_of(self, number: Number | None) -> pa.Scalar | None:
        return None if number is None else Instant.numbered(number, self._kind).shown

    def _none(self, since: Number | None) -> _Note:
        """That there is no pattern from a time on."""
        return _Note(since, None, NONE, 0, [None] * len(self._shown))

    def _end(self, change: Change, until: Any, since: Number | None, now: Number | None) -> Instant | None:
        """When a pattern holds no more, which is not before ``now``."""
        if until is None or change.query is None:
            return None
        end = instant_of(until, self._time, self._kind, f"pattern '{change.id}': until")
        if not _is_before(now, end.number):
            assert now is not None
            return Instant.numbered(now, self._kind)
        if not _is_before(since, end.number):
            raise OptionError(
                f"pattern '{change.id}': it holds until {end}, which is not after its since, {change.since}"
            )
        return end

    def _note(self, change: Change, given: Mapping[str, Any], since: Number | None) -> _Note:
        if change.query is None:
            return self._none(since)
        every = given.get(EVERY)
        if every is not None:
            self._check_every(change)
            every = ticks_of(every, f"pattern '{change.id}': every", self._kind, self._time, self._unit)
        digest = hashlib.sha256(f"{change.language}\n{change.query}".encode()).hexdigest()[:16]
        return _Note(since, digest, NONE if every is None else every, 0, [given.get(name) for name in self._shown])

    def _part(self, change: Change) -> CompiledPattern:
        assert change.query is not None
        language = change.language or self.patterns.language
        return parts_over(self.patterns.schema, valuations=self._valuations).of(change.query, language)

    def _check_every(self, change: Change) -> None:
        """Raise an error where repeats of a pattern mean nothing, or do not come in the order of their ends."""
        try:
            part = self._part(change)
        except StrettoError:  # which the set raises as well, with the name of the pattern
            return
        if part.totals is not None:
            raise OptionError(
                f"pattern '{change.id}': every= leaves out matches that repeat others, and this query counts them"
            )
        if part.overlaps:
            raise OptionError(
                f"pattern '{change.id}': every= leaves out matches in the order of their ends, and those of this pattern may "
                "overlap: AFTER MATCH SKIP PAST LAST ROW"
            )

    def _wait(self, change: Change) -> Number:
        """How long after the end of a match one of an earlier end may still come."""
        assert change.query is not None
        return self._part(change).wait

    def _forget(self, name: str) -> None:
        """Forget what held before what holds now."""
        notes = self._notes[name]
        started = [
            place
            for place, one in enumerate(notes)
            if one.since is None or (self._reached is not None and one.since < self._reached)
        ]
        notes = notes[max(started, default=0) :]
        if notes[0].digest is None and notes[0].since is not None and started:
            notes = notes[1:]
        self._notes[name] = notes
        if not notes:
            del self._notes[name]

    # -- events -------------------------------------------------------------------------------------------------------

    def iter_push(self, events: Any) -> Iterator[pa.Table]:
        """Do what :meth:`stretto.PatternSet.iter_push` does, with notes."""
        table = as_table(events)
        found = self.patterns.iter_push(table)
        return self._pushed(found, table)

    def _pushed(self, found: Iterator[pa.Table], table: pa.Table) -> Iterator[pa.Table]:
        for piece in found:
            yield self._noted(piece)
        if table.num_rows:
            yield self._reach(pc.max(table.column(self._time)))

    def push(self, events: Any) -> pa.Table:
        """Do what :meth:`stretto.PatternSet.push` does, with notes."""
        table = as_table(events)
        return pa.concat_tables(list(self._pushed(iter([self.patterns.push(table)]), table)))

    def advance(self, time: int | float | dt.datetime | dt.date | str) -> pa.Table:
        """Do what :meth:`stretto.PatternSet.advance` does, with notes."""
        found = self._noted(self.patterns.advance(time))
        return pa.concat_tables([found, self._reach(time)])

    def finish(self) -> pa.Table:
        """Do what :meth:`stretto.PatternSet.finish` does, with notes; what was held back comes."""
        found = self.patterns.finish()
        self._reached = math.inf
        return self._noted(found)

    def settle(self) -> pa.Table:
        """Give what time alone has decided by now."""
        return self.output_schema.empty_table() if self.reached is None else self.advance(self.reached.shown)

    def undecided(self) -> dict[str, int | None]:
        """As :meth:`stretto.PatternSet.undecided`; with the matches that may still repeat one to come."""
        counts = self.patterns.undecided()
        for name in self._repeats.held:
            if (count := counts.get(name, 0)) is not None:
                counts[name] = count + 1
        return counts

    def left(self) -> pa.Table:
        """A row for each pattern with matches that are not decided, with their number, −1 where they are too many; the set ends."""
        counts = {name: -1 if count is None else count for name, count in self.undecided().items()}
        return self._told_of(self.counted, counts)

    def _reach(self, time: Any) -> pa.Table:
        """No event before ``time`` will come: what was held back and comes now."""
        reached = instant_of(time, self._time, self._kind, "time: it").number
        self._reached = reached if self._reached is None else max(self._reached, reached)
        return self._noted(self.patterns.output_schema.empty_table())

    def _noted(self, found: pa.Table) -> pa.Table:
        added = None  # counts and sums are no matches, of which some may be repeats
        if "totals" in found.column_names:
            known = found.column("totals").is_valid()
            added, found = found.filter(known), found.filter(pc.invert(known))
        every, wait, _ = self._of(found)
        found, left = self._repeats.take(found, every, wait, self._reached)
        for name, count in zip(*map(pa.Array.to_pylist, left.column("pattern").value_counts().flatten()), strict=True):
            self.suppressed[name] = self.suppressed.get(name, 0) + count
        shown = self._with_shown(found if added is None else pa.concat_tables([found, added]))
        return pa.concat_tables([shown, self._switched_off()]) if self.off is not None else shown

    def _with_shown(self, found: pa.Table) -> pa.Table:
        notes, which = self._versions(found)
        columns = list(found.columns)
        for number in range(len(self._shown)):
            values = pa.array([one.shown[number] for one in notes], pa.string())
            columns.insert(1 + number, values.take(pa.array(which)))
        columns += [pa.nulls(found.num_rows, field.type) for field in list(self.output_schema)[len(columns) :]]
        return pa.Table.from_arrays(columns, schema=self.output_schema)

    def _of(self, found: pa.Table) -> tuple[NDArray[Any], NDArray[Any], int]:
        """The span and the wait of each match."""
        notes, which = self._versions(found)
        real = pa.types.is_floating(self._kind)
        every = np.array([one.every for one in notes], np.float64 if real else np.int64)
        wait = np.array([one.wait for one in notes], every.dtype)
        return every[which], wait[which], len(notes)

    def _versions(self, found: pa.Table) -> tuple[list[_Note], NDArray[np.int64]]:
        """The distinct versions of patterns that have matches, and which of them each match is of."""
        names = pc.dictionary_encode(found.column("pattern").combine_chunks())
        ids = names.dictionary.to_pylist()
        since = found.column("since")
        missing = since.is_null().to_numpy()
        times = np.zeros(found.num_rows, np.float64 if pa.types.is_floating(since.type) else np.int64)
        times[~missing] = values_of(since.drop_null(), "since", 0)
        pairs = np.rec.fromarrays([np.asarray(names.indices), missing, times])
        distinct, which = np.unique(pairs, return_inverse=True)
        notes = []
        for id, from_the_beginning, at in distinct.tolist():
            wanted = None if from_the_beginning else at
            notes.append(next(one for one in self._notes[ids[id]] if one.since == wanted))
        return notes, which.astype(np.int64)

    def _switched_off(self) -> pa.Table:
        """A row for each pattern that was switched off since the last time."""
        off = self.patterns.disabled
        new = {name: why for name, why in off.items() if name not in self._told}
        self._told = set(off)
        return self._told_of(self.off, new)

    def _told_of(self, column: str | None, values: Mapping[str, Any]) -> pa.Table:
        """A row for each of some patterns, with what a column says of it."""
        rows = []
        for name, value in values.items():
            started = next(one for one in self._notes[name] if one.digest is not None)
            shown = dict(zip(self.output_schema.names[1 : 1 + len(self._shown)], started.shown, strict=True))
            rows.append({"pattern": name, column: value} | shown)
        return pa.Table.from_pylist(rows, self.output_schema)

    # -- what there is ------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """As that of the set."""
        return self.patterns.position

    @property
    def stats(self) -> dict[str, int]:
        """As those of the set."""
        return self.patterns.stats

    @property
    def disabled(self) -> dict[str, str]:
        """As that of the set."""
        return self.patterns.disabled

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to a later match."""
        return self.patterns.idle and self._repeats.idle and not self._told

    @property
    def expires(self) -> Number | None:
        """When something that is held is due, or matters no more, as the engine measures times; ``None``: nothing is held."""
        return min((time for time in (self.patterns.expires, self._repeats.expires) if time is not None), default=None)

    # -- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All that is held, as bytes."""
        notes = {
            name: [[one.since, one.digest, one.every, one.wait, one.shown] for one in notes]
            for name, notes in self._notes.items()
        }
        section = Section({"notes": notes, "told": sorted(self._told), "reached": self._reached})
        self._repeats.save(section.sub("repeats"))
        section.arrays["patterns"] = np.frombuffer(self.patterns.snapshot(), np.uint8)
        return section.to_bytes(MAGIC)

    @reading()
    def restore(self, snapshot: bytes) -> AnnotatedPatternSet:
        """Take over what :meth:`snapshot` gave.

        Raises
        ------
        SnapshotError
            The bytes are damaged, or of another set.
        """
        section = Section.of_bytes(snapshot, MAGIC)
        self.patterns.restore(section.arrays["patterns"].tobytes())
        self._notes = {name: [_Note(*one) for one in notes] for name, notes in section.values["notes"].items()}
        self._told, self._reached = set(section.values["told"]), section.values["reached"]
        self._repeats.load(section.sub("repeats"))
        self.suppressed = {}
        return self


def _rows(changes: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table; times stay Arrow values, as Python's have no nanoseconds."""
    times = [name for name in ("since", UNTIL) if name in changes.column_names]
    for number, row in enumerate(changes.to_pylist()):
        at = {name: changes.column(name)[number] for name in times}
        yield row | {name: value if value.is_valid else None for name, value in at.items()}


def _is_before(one: Number | None, other: Number | None, *, inclusive: bool = False) -> bool:
    """Whether a time comes before another one; ``None`` is the beginning."""
    if one is None or other is None:
        return (one is None) and (inclusive or other is not None)
    return one <= other if inclusive else one < other


def _next(number: Number, kind: pa.DataType) -> Number:
    """The time behind another one, both as the engine has them."""
    if pa.types.is_floating(kind):
        return math.nextafter(number, math.inf)
    return number + (DAY if pa.types.is_date32(kind) else 1000 * DAY if pa.types.is_date64(kind) else 1)


def _untaken(name: str, taken: Sequence[str]) -> str:
    """The name, with underscores behind it while a column has it."""
    while name in taken:
        name += "_"
    return name
