"""Many patterns over one stream, which change while it runs: ``stretto.PatternSet``."""

from __future__ import annotations

import datetime as dt
import math
import time as clock
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import frame
from stretto.budget import Budget
from stretto.column_types import time_hint
from stretto.engines.api import Matches
from stretto.engines.shared.windows import values_of
from stretto.errors import (
    DataError,
    LimitError,
    OptionError,
    QueryError,
    SnapshotError,
    StrettoError,
    hinted,
    warn,
)
from stretto.events import Schema, as_table, conform, require
from stretto.explaining import notebook
from stretto.frame import Section, reading
from stretto.languages.afa.builder import AFA
from stretto.matching.compiled import Query, roles
from stretto.matching.dry_stream import WARN_AFTER, check_warn_after
from stretto.matching.held import check_columns, check_most, summary
from stretto.matching.lateness import check_late
from stretto.matching.life import Life
from stretto.matching.many.adding import AddingRun, SeveralRun, apart
from stretto.matching.many.automata import AfaRun, AutomatonPart
from stretto.matching.many.budgeting import Budgeted, Shares
from stretto.matching.many.changes import Instant, changes_of, instant_of
from stretto.matching.many.checking import Checked, Numbers, checked, quoted
from stretto.matching.many.clauses import ClausePart, ClauseRun
from stretto.matching.many.compiling import parts_over
from stretto.matching.many.handing import Handed
from stretto.matching.many.holding import PATTERN, held_by
from stretto.matching.many.index import Visits
from stretto.matching.many.joint import JointRun
from stretto.matching.many.keeping import Kept
from stretto.matching.many.keys import SharedKeys
from stretto.matching.many.lacking import Lacking
from stretto.matching.many.lacking import summary as lacking_summary
from stretto.matching.many.other import OtherRun
from stretto.matching.many.own import TecsRun, own_visits
from stretto.matching.many.parts import Part, QueryPart
from stretto.matching.many.prefixes import Lead
from stretto.matching.many.results import Results, in_order
from stretto.matching.many.saving import apart as sections_of
from stretto.matching.many.saving import together
from stretto.matching.many.several import SeveralPart, several
from stretto.matching.many.timeline import InForce, Number, OwnRun, Timeline, Version
from stretto.matching.metering import Meter
from stretto.matching.results import CHUNK
from stretto.query.afa import Afa
from stretto.query.passes.bind import check_roles, measure
from stretto.query.passes.bind_totals import BoundTotals
from stretto.query.totals import Extent
from stretto.views import show

#: Batches are kept as they came; after so many they are joined, so that a look-up stays quick.
PIECES = 64


class PatternSet:
    """Many patterns over one stream in one pass; they may be added, replaced and retired while it runs.

    A pattern holds from the event time of the change that gives it until that of the next change of its id: it sees exactly
    the events with ``since ≤ time < until``, beginning with nothing. What a set finds depends on the events and their times
    only, not on how they are cut into batches nor on when a change was given, as long as it was given in time.

    The patterns' conditions are evaluated once for all of them, and an event is handed only to those that it concerns. A pattern may
    be an automaton, a ``MATCH_RECOGNIZE`` clause with one row for each match, or any query in CEQL, SASE+ or EQL without ``KEEP``,
    ``AFTER MATCH``, ``OUTPUT compressed``, ``ORDER BY``, ``SAMPLE`` and pipes. A match that waits for time to pass (a negation or
    missing event at the end) comes when time has passed it, unless its pattern has ended before; one of a clause comes when no event
    to come can change it, or its pattern ends. Counts and sums over all matches come when a window is over, or the pattern ends.

    Parameters
    ----------
    schema
        What the events look like (see :func:`stretto.compile`); all patterns are checked against it.
    type, stream, time_unit
        As in :func:`stretto.match`.
    time
        The column that orders the events, and by which changes hold.
    output
        ``"events"``: with the events that variables hold. ``"positions"``: without.
    positions
        Whether rows have ``start``, ``end`` and ``positions``, which count the events of the stream, dropped ones left out.
    valuations
        One row for each valuation, as in :func:`stretto.match`.
    totals
        Whether patterns may count and add up over all of their matches (``SELECT COUNT(*), SUM(b[x]) …``). Rows have then
        ``window_start``, ``window_end`` and ``totals``, which are NULL in those of matches. ``"every"``: only those with EVERY may,
        where nobody calls :meth:`finish`.
    measures
        Whether rows show the ``MEASURES`` of clauses and what ``RETURN`` of SASE+ computes, by name as text; NULL for other patterns.
    by
        Attributes by which every pattern must be partitioned; each is a column of the result.
    late
        What comes too late — an event before the last one, a change that should hold already — is an ``"error"``, or is
        left out (``"drop"``) and counted in :attr:`late` and :attr:`late_changes`.
    language
        The language of queries, where neither their text nor their change tells.
    budget
        How much one call of :meth:`push` may list, of all patterns together, as in :func:`stretto.match`; for :meth:`iter_push`,
        which gives pieces, only if it is said. After a LimitError the set has stopped inside the batch: a snapshot goes on.
    on_limit
        What happens to a pattern that goes over its limit. ``"error"``: all patterns share the budget, and the LimitError names the
        pattern. ``"disable"``: a pattern that lists more than a quarter of the budget in one call, or that its engine cannot hold,
        gives no more until another change of its id holds; a warning and :attr:`disabled` tell it, and the others go on.
    warn_after
        After so many events one :class:`~stretto.StrettoWarning` tells which patterns have found nothing because none of these had
        what every match of theirs has an event of (:attr:`lacking`). ``None``: no warning. A set that goes on from a snapshot does
        not warn.
    capacity
        Initial size of a pattern's arrays.

    Raises
    ------
    OptionError
        An option that there is not, no column for the time, or a column that is not there.

    Examples
    --------
    >>> import stretto
    >>> patterns = stretto.PatternSet({"type": "string", "t": "int64"}, time="t", output="positions")
    >>> patterns.change(
    ...     [
    ...         stretto.Change("ab", "SELECT * FROM S WHERE A ; B"),
    ...         stretto.Change("bb", "SELECT * FROM S WHERE B ; B", since=3),
    ...         stretto.Change("ab", None, since=4),
    ...     ]
    ... )
    >>> events = [{"type": "A", "t": 1}, {"type": "B", "t": 2}, {"type": "B", "t": 3}, {"type": "B", "t": 4}]
    >>> for row in patterns.push(events).to_pylist():
    ...     print(row["pattern"], row["since"], row["start_time"], row["end_time"])
    ab None 1 2
    ab None 1 3
    bb 3 3 4
    """

    def __init__(  # noqa: PLR0913 - the options that users have
        self,
        schema: Any,
        *,
        type: str | None = "type",
        time: str | None = None,
        stream: str | None = None,
        time_unit: str | None = None,
        output: str = "events",
        positions: bool = False,
        valuations: bool = False,
        totals: bool | str = False,
        measures: bool = False,
        by: Iterable[str] = (),
        late: str = "error",
        language: str | None = None,
        budget: int | float | str | Meter | None = None,
        on_limit: str = "error",
        warn_after: float | None = WARN_AFTER,
        capacity: int = 1 << 8,
    ) -> None:
        given = schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ()
        if any(str(one).lstrip()[:7].upper() in ("SELECT ", "PATTERN") for one in given):
            raise OptionError(
                "a pattern set is made with the columns of the events: PatternSet(schema); then "
                "change([stretto.Change('name', query)]) adds a query"
            )
        if output not in ("events", "positions"):
            raise OptionError(f"output={output!r}: expected 'events' or 'positions'")
        if totals not in (False, True, "every"):
            raise OptionError(f"totals={totals!r}: expected True, False or 'every'")
        if on_limit not in ("error", "disable"):
            raise OptionError(f"on_limit={on_limit!r}: expected 'error' or 'disable'")
        check_late(late, ("error", "drop"))
        check_warn_after(warn_after)
        self._schema = Schema.of(schema, **roles(type, time, stream, None, time_unit))
        self._time, self._kind = _time_of(self._schema)
        self._by = _by_of(by, self._schema)
        self._parts = parts_over(self._schema, valuations=valuations)
        self._output = output
        self._positions = positions
        self._valuations = valuations
        self._totals = totals
        self._measures = measures
        self._late_policy = late
        self._language = language
        self._capacity = capacity
        self._budget = budget
        self._disables = on_limit == "disable"
        self._warn_after = warn_after
        self._meter = Meter.of_call(budget)  # of the call at hand
        self._shares: tuple[Sequence[Version], Shares] | None = None  # of the patterns at hand
        self._results = Results(
            self._schema,
            by=self._by,
            events=output == "events",
            positions=positions,
            totals=bool(totals),
            measures=measures,
        )
        self._clear()

    def _clear(self) -> None:
        # A pattern that is switched off leaves nothing behind in a run of its own.
        self._timeline = Timeline(self._schema, groups=not self._disables)
        self._keys: dict[tuple[str, ...], SharedKeys] = {}
        self._joint: dict[Hashable, JointRun] = {}
        self._history = Kept()
        self._kept = 0
        self._rows = 0
        self._late = 0
        self._late_changes = 0
        #: What the runs of single patterns that are gone have visited, and how often that had output.
        self._visited = 0
        self._triggers = 0
        #: The time of the last event, and the time before which none will come.
        self._last: Instant | None = None
        self._punctuation: Instant | None = None
        self._life = Life("set of patterns")
        #: The first events; ``None``: nothing more is looked for in them.
        self._first = None if self._warn_after is None else Lacking(self._schema)
        self._lacking: dict[str, list[str]] = {}

    # -- what there is ----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<stretto.PatternSet: {len(self.patterns)} patterns, {self.position} rows read>"

    def _repr_html_(self) -> str:
        counts = notebook.html(notebook.running(self.stats, read=f"{self.position} rows"))
        return counts + show(self.patterns)._repr_html_()

    @property
    def schema(self) -> Schema:
        """The events' columns and their roles."""
        return self._schema

    @property
    def language(self) -> str | None:
        """The language of queries, where neither their text nor their change tells."""
        return self._language

    @property
    def output_schema(self) -> pa.Schema:
        """The result's Arrow schema, the same for every pattern (see ``docs/patterns.md``)."""
        return self._results.schema

    @property
    def patterns(self) -> pa.Table:
        """The patterns that hold or will hold, by id and time.

        Columns: ``id``, ``query``, ``since`` (inclusive; NULL: from the beginning), ``until`` (exclusive; NULL: nothing ends it
        yet), and ``started``, whether the stream has come to ``since``.
        """
        return self._timeline.table(self._kind)

    @property
    def late(self) -> int:
        """How many late events were dropped."""
        return self._late

    @property
    def late_changes(self) -> int:
        """How many late changes were dropped."""
        return self._late_changes

    @property
    def disabled(self) -> dict[str, str]:
        """With ``on_limit="disable"``: the patterns in force that were switched off, by id, each with the reason."""
        return {version.id: version.off for version in self._timeline.in_force.versions if version.off is not None}

    @property
    def lacking(self) -> dict[str, list[str]]:
        """What the first events lack of what patterns without a match ask of single events: by id, in words (``docs/why-not.md``).

        Those of which the warning told; before it, those of which it would tell by now. Only of patterns that hold from the first
        event on.
        """
        return self._lacking if self._first is None else self._first.of(self._timeline.in_force.versions)

    def held(self, most: int = 1_000, *, by: str | Sequence[str] = ()) -> pa.Table:
        """What is held: a row that tells of all of it, or how many events there are by pattern or by key, the most first.

        It looks at all that is held, for ``"pattern"`` once for each pattern; nothing changes.

        Parameters
        ----------
        most
            How many rows at the most.
        by
            ``"pattern"`` (``"pattern_"`` where a column is called so), and columns of events that results show.

        Returns
        -------
        pyarrow.Table
            Without ``by`` one row: ``punctuation``, ``waiting`` (0), ``events`` (that partial matches may hold), ``partitions``,
            ``bytes`` (int64) and ``oldest``. With ``by`` those columns, ``events`` and ``oldest``, the time of the first of these. An
            event that several patterns may hold counts for each of them with ``"pattern"``, and once without.

        Raises
        ------
        OptionError
            ``by`` names another column, or the set has stopped.

        Examples
        --------
        >>> import stretto
        >>> patterns = stretto.PatternSet({"type": "string", "t": "int64", "id": "string"}, time="t")
        >>> query = "SELECT * FROM S WHERE A ; B PARTITION BY [id] WITHIN 9 [t]"
        >>> patterns.change([stretto.Change("ab", query), stretto.Change("a", "SELECT * FROM S WHERE A ; A")])
        >>> _ = patterns.push([{"type": "A", "t": t, "id": "xxy"[t]} for t in range(3)])
        >>> patterns.held(by="pattern").to_pylist()
        [{'pattern': 'a', 'events': 3, 'oldest': 0}, {'pattern': 'ab', 'events': 3, 'oldest': 0}]
        >>> patterns.held(1, by=["pattern", "id"]).to_pylist()
        [{'pattern': 'a', 'id': 'x', 'events': 2, 'oldest': 0}]
        """
        check_most("held", most)
        self._life.refuse_inside()
        self._retain()
        by = [by] if isinstance(by, str) else list(by)
        in_force = self._timeline.in_force
        columns = self._results.columns(in_force.conditions.used)
        name = PATTERN + "_" * (PATTERN in columns)
        check_columns("held", by, [name, *columns])
        kinds = {one: self._schema.attributes[one] for one in columns}
        found = held_by(in_force.versions, self._history, kinds, self._time, by, name)
        if by:
            return found.slice(0, most)
        punctuation = None if self._punctuation is None else self._punctuation.shown
        return summary(self.stats, self._history.rows, punctuation, found.column("oldest"))

    @property
    def costs(self) -> pa.Table:
        """What each pattern in force has cost since it is in force here (a snapshot begins to count anew), by id.

        Columns: ``id``; ``concerned``, how many events fulfilled one of its conditions on single events (all, where it reads all);
        and ``seconds``, which these took where it has a run of its own. NULL: it runs in one call with others, which take a step for
        each event that concerns them.
        """
        versions = self._timeline.in_force.versions
        own = [None if version.part.together or version.group is not None else version.seconds for version in versions]
        return pa.table(
            {
                "id": pa.array([version.id for version in versions], pa.string()),
                "concerned": pa.array([version.concerned for version in versions], pa.int64()),
                "seconds": pa.array(own, pa.float64()),
            }
        )

    @property
    def position(self) -> int:
        """How many events were read, dropped ones left out."""
        return self._rows

    @property
    def idle(self) -> bool:
        """Whether no event so far can take part in a later match."""
        return all(run.idle for run in self._runs())

    @property
    def expires(self) -> int | float | None:
        """The last time at which a window on the time is still open for a pushed event, as the engine measures times.

        Where matches wait for time to pass, when the first of them is due. ``None`` when there is none.
        """
        due = [run.expires for run in self._own() if run.waits]
        first = min((time for time in due if time is not None), default=None)
        if first is not None:
            return first
        found = [run.expires for run in self._runs()]
        return max((time for time in found if time is not None), default=None)

    @property
    def stats(self) -> dict[str, int]:
        """Counts: events, late events and changes; patterns in force, those of them that are switched off, and those that hold
        something; distinct conditions, and all that these patterns have; pairs of event and pattern that were visited, and that had
        output; nodes that hold partial matches; partitions; bytes.
        """
        distinct, asked = self._timeline.in_force.conditions.counts
        total = Counter({"visited": self._visited, "triggers": self._triggers, "bytes": self._history.nbytes})
        for run in self._runs():
            total.update(run.stats)
        return {
            "events": self._rows,
            "late": self._late,
            "late_changes": self._late_changes,
            "patterns": len(self._timeline.in_force.versions),
            "disabled": len(self.disabled),
            "busy": len(self._own()) + sum(joint.busy for joint in self._joint.values()),
            "conditions": distinct,
            "asked": asked,
            **{name: total[name] for name in ("visited", "triggers", "nodes", "partitions", "bytes")},
        }

    def _own(self) -> list[OwnRun]:
        return [version.own for version in self._timeline.in_force.versions if version.own is not None]

    def _runs(self) -> list[OwnRun | JointRun]:
        return [*dict.fromkeys(self._own()), *self._joint.values()]

    # -- changes ----------------------------------------------------------------------------------------------------

    def change(self, changes: Any) -> None:
        """Add, replace or retire patterns; all of the changes or, where one of them is wrong, none.

        Of two changes of one id at one time, the later given holds. A change that is in force already may be given again.

        Parameters
        ----------
        changes
            A :class:`Change`, a dict with ``id``, ``query`` and perhaps ``since`` and ``language``, several of them, or a table
            with these columns. ``query`` may be a :class:`stretto.AFA`, or with ``language="afa"`` the text of one. ``query`` None
            retires the pattern; that there is none then is no mistake.

        Raises
        ------
        QueryError
            A query is wrong, does not fit the schema, or is not partitioned by all of ``by``; the message names the pattern.
        OptionError
            What was given is no change, or ``since`` is no value of the time column.
        DataError
            A change is late: an event at or after its ``since`` has been pushed, or :meth:`advance` has passed it.
        """
        self._ready()
        found: list[tuple[str, Instant | None, Part | None]] = []
        late = 0
        for change in changes_of(changes):
            since = None
            if change.since is not None:
                since = instant_of(change.since, self._time, self._kind, f"pattern '{change.id}': since")
            part = None if change.query is None else self._compiled(change.id, change.query, change.language)
            if self._timeline.holds(change.id, since, part):
                continue
            if (why := self._too_late(since)) is None:
                found.append((change.id, since, part))
            elif self._late_policy == "error":
                when = "the beginning" if since is None else since
                raise DataError(
                    f"pattern '{change.id}': the change holds from {when} on, and {why}; give it earlier, or pass late='drop'"
                )
            else:
                late += 1
        self._late_changes += late
        for one in found:
            self._timeline.add(*one)

    def withdraw(self, name: str, after: Number | None, but: Sequence[Number | None] = ()) -> None:
        """Take back the changes of a pattern that are to hold after a time (``None``: the beginning), except at the times ``but``.

        Times are numbers as the engine has them (:func:`stretto.matching.many.changes.instant_of`).
        """
        self._timeline.withdraw(name, after, but)

    def _too_late(self, since: Instant | None) -> str | None:
        """Why a change is late; ``None`` if it is in time."""
        if self._last is not None and (since is None or since.number <= self._last.number):
            return f"an event of {self._last} has been read"
        if self._punctuation is not None and (since is None or since.number < self._punctuation.number):
            return f"the stream has come to {self._punctuation}"
        return None

    def _compiled(self, name: str, query: str | Query | AFA | Afa, language: str | None) -> Part:
        where = f"pattern '{name}'"
        try:
            part = self._parts.of(query, language or self._language)
        except QueryError as error:
            raise _named_error(error, where) from error
        except (OptionError, LimitError) as error:
            raise error.__class__(f"{where}: {error}") from error
        missing = [one for one in self._by if one not in part.partition_by]
        if missing:
            keys = [*missing, *part.partition_by]
            raise QueryError(
                f"{where}: the query is not partitioned by {quoted(missing)}, and every pattern of this set must be",
                hint=_partitioned(part, keys),
            )
        if part.totals is not None:
            self._check_totals(where, part.totals)
        return part

    def _check_totals(self, where: str, totals: BoundTotals) -> None:
        """Raise an error unless rows have a place for counts and sums, and each speaks of the matches of one key of the set."""
        if not self._totals:
            raise OptionError(
                f"{where}: it counts and adds up over all of its matches, and the rows of this set are matches: "
                "PatternSet(…, totals=True) has both, or match it on its own"
            )
        if self._totals == "every" and totals.scope.extent is Extent.TABLE:
            raise OptionError(
                f"{where}: its row comes when the stream ends, which this one does not: EVERY EVENT gives a row for each event, and "
                "WITHIN 10 minutes EVERY 1 minute for each window"
            )
        groups = [one.attribute for one in totals.scope.groups if one.variable is None]
        if missing := [one for one in self._by if one not in groups]:
            raise QueryError(
                f"{where}: each row of this set is of one {quoted(missing)}, and these add up over several",
                hint="GROUP BY "
                + ", ".join(f"[{name}]" for name in (*self._by, *(g for g in groups if g not in self._by))),
            )

    # -- events -----------------------------------------------------------------------------------------------------

    def push(self, events: Any) -> pa.Table:
        """Read the next events, and give the matches that they complete.

        Rows are ordered by the event at which the match is known, which is the one that completes it or, where it waits, the first
        that is later than its window; then by the pattern's id. What a pattern that ends still gives comes before the rows of the
        event with which it ends.

        Raises
        ------
        DataError
            The events do not fit the schema, come before the last ones in time, or are not what a pattern needs (a window on
            an attribute that decreases, arithmetic that overflows). Nothing of the batch was read then.
        """
        tables = self.iter_push(events)
        self._begin_call()
        return self._gathered(tables)

    def iter_push(self, events: Any) -> Iterator[pa.Table]:
        """Do what :meth:`push` does, in pieces. Must be read to the end before the next call."""
        self._ready()
        self._begin_call(pieces=True)
        table = as_table(events)
        if not table.num_rows:
            return iter(())
        table, times, late = self._in_time(table)
        found: list[Checked] = []
        if table.num_rows:
            stretches = self._timeline.stretches(times)
            found = checked(table, times, stretches, self._rows, self._schema, self._results)
        self._late += late
        self._life.inside = True
        return self._read(table, found)

    def _begin_call(self, *, pieces: bool = False) -> None:
        self._meter, self._shares = Meter.of_call(self._budget, pieces=pieces), None

    def _in_time(self, table: pa.Table) -> tuple[pa.Table, Numbers, int]:
        """The events that are not late, their times, and how many are late."""
        require(table, self._time, "time")
        column = conform(table, [self._time], self._schema.attributes).column(0)
        times: Numbers = values_of(column, self._time, self._rows)
        known = [one.number for one in (self._last, self._punctuation) if one is not None]
        start = np.array([max(known, default=times[0])], times.dtype)
        if times[0] >= start[0] and (times[1:] >= times[:-1]).all():
            return table, times, 0
        reached = np.maximum.accumulate(np.concatenate((start, times)))[:-1]
        late = times < reached
        if self._late_policy == "drop":
            return table.filter(pa.array(~late)), times[~late], int(np.count_nonzero(late))
        at = int(late.argmax())
        before = Instant.numbered(reached[at].item(), self._kind)
        raise DataError(
            f"'{self._time}' is {column[at]} at row {self._rows + at}, and the stream has come to {before}; events must come "
            "in the order of their time (or pass late='drop')"
        )

    def _read(self, table: pa.Table, found: list[Checked]) -> Iterator[pa.Table]:
        if (first := self._first) is None:
            yield from self._advance(found)
            return
        if found:
            first.read(table, found[0].in_force)
        for piece in self._advance(found):
            first.note(piece)
            yield piece
        if self._warn_after is not None and first.events >= self._warn_after:
            self._lacking, self._first = self.lacking, None
            if self._lacking:
                told = lacking_summary(self._lacking, len(self._timeline.in_force.versions), "pattern")
                warn(f"after {first.events:,} events of the stream: {told}")

    def _advance(self, found: list[Checked]) -> Iterator[pa.Table]:
        for stretch in found:
            time = stretch.measures[self._time]
            begin = 0
            yield from _by_id(self._reach(time[0].item(), inclusive=True, in_force=stretch.in_force))
            for batch in stretch.tested.to_batches(max_chunksize=stretch.in_force.piece(CHUNK)):
                low = 0
                while low < batch.num_rows:
                    first = begin + low
                    reached, visits = stretch.visits(first, begin + batch.num_rows)
                    piece = batch.slice(low, reached - first)
                    yield from self._piece(stretch, piece, first, visits)
                    self._rows += piece.num_rows
                    self._forget()
                    low += piece.num_rows
                begin += batch.num_rows
            for version, value in stretch.reached.items():
                version.measure = value
            self._last = Instant.numbered(time[-1].item(), self._kind)
        self._life.inside = False

    def _piece(self, stretch: Checked, batch: pa.RecordBatch, low: int, visits: Visits) -> Iterator[pa.Table]:
        """Some events of a stretch, from ``low`` on, through all of its patterns."""
        in_force, high = stretch.in_force, low + batch.num_rows
        if not in_force.versions:
            return
        self._history.append(np.arange(self._rows, self._rows + high - low), stretch.kept.slice(low, high - low))
        measures = {name: values[low:high] for name, values in stretch.measures.items()}
        streams = [
            *self._of_joint(in_force, batch, measures, visits),
            *self._of_own(in_force, batch, measures, [*in_force.conditions.hand_out(stretch.told, low, high)], visits),
        ]
        for block in in_order(streams):
            yield self._results.table(block, in_force.sources, self._history)

    def _of_joint(
        self, in_force: InForce, batch: pa.RecordBatch, measures: Mapping[str, Numbers], visits: Visits
    ) -> Iterator[Iterator[Matches]]:
        """The matches of the patterns that run together, run by run."""
        run_of, slot_of = in_force.slots
        lead_of = in_force.leads
        concerned = visits.concerned[: lead_of.size] + np.where(lead_of < 0, 0, visits.concerned[lead_of])
        off = np.array([version.off is not None for version in in_force.versions], np.bool_) if self._disables else None
        if off is not None and off.any():
            concerned[off] = 0
            on = np.zeros(run_of.size + 1, np.bool_)
            on[: off.size], on[lead_of[~off]] = ~off, True  # the last one stands for those that have no lead
            visits = visits.of(np.flatnonzero(on[visits.place]))
        for place in np.flatnonzero(concerned).tolist():
            in_force.versions[place].concerned += int(concerned[place])
        whose = None if in_force.in_one else run_of[visits.place]
        for number, (run, place_of) in enumerate(in_force.joint):
            mine = visits if whose is None else visits.of(np.flatnonzero(whose == number))
            found = run.follow(batch, self._rows, mine.row, slot_of[mine.place], mine.cls, measures)
            yield self._within(_placed(found, place_of), run, in_force.versions)

    def _of_own(
        self,
        in_force: InForce,
        batch: pa.RecordBatch,
        measures: Mapping[str, Numbers],
        handed_out: Sequence[tuple[Part, Handed]],
        visits: Visits,
    ) -> Iterator[Iterator[Matches]]:
        """The matches of the patterns on their own, one by one."""
        shared = self._shared_keys(batch, handed_out)
        told = []
        for part, handed in handed_out:
            if isinstance(part, SeveralPart):
                yield from self._of_several(in_force, part, batch, measures, handed)
            else:
                told += [(place, handed) for place in in_force.places(part)]
        told += [
            (place, own_visits(in_force.versions[place].part, visits, place, int(in_force.leads[place])))
            for place in in_force.restored
        ]
        for place, handed in told:
            version = in_force.versions[place]
            run = self._own_of(version, handed)
            if run is not None:
                version.concerned += handed.rows.size
                keys = shared.get(version.part.partition_by)
                found = run.follow(batch, self._rows, handed, measures, keys)
                yield self._of_one(found, run, place, in_force.versions)

    def _of_several(
        self,
        in_force: InForce,
        part: SeveralPart,
        batch: pa.RecordBatch,
        measures: Mapping[str, Numbers],
        handed: Handed,
    ) -> Iterator[Iterator[Matches]]:
        """The rows of patterns that have one run, by what they add up."""
        groups: dict[object, list[int]] = {}
        for place in in_force.places(part):
            groups.setdefault(in_force.versions[place].group, []).append(place)
        for places in groups.values():
            versions = [in_force.versions[place] for place in places]
            run = versions[0].own
            if run is None and (handed.rows.size or part.always):
                run = self._new_several(part, versions)
            if run is not None and (handed.rows.size or run.waits):
                assert isinstance(run, SeveralRun)
                found = self._blaming(
                    run.follow(batch, self._rows, handed, measures, None), run, places, in_force.versions
                )
                for rows in run.forms(found):
                    yield self._within(_placed(rows, np.array(places)), run, in_force.versions)

    def _blaming(
        self, found: Iterator[Matches], run: SeveralRun, places: Sequence[int], versions: Sequence[Version]
    ) -> Iterator[Matches]:
        """What patterns give that have one run; errors name the pattern."""
        try:
            yield from found
        except (DataError, LimitError) as error:
            raise self._budgeted(run, versions).refused(places[run.blamed], error) from error
        for place, concerned in zip(places, run.concerned(), strict=True):
            versions[place].concerned += concerned

    def _of_one(
        self, found: Iterator[Matches], run: OwnRun, place: int, versions: Sequence[Version]
    ) -> Iterator[Matches]:
        """Matches of a pattern on its own, within the budget of the call."""
        return self._within(self._named(found, run, place, versions), run, versions)

    def _named(
        self, found: Iterator[Matches], run: OwnRun, place: int, versions: Sequence[Version]
    ) -> Iterator[Matches]:
        """Matches with the place of their pattern; errors of its engine name the pattern."""
        began = clock.perf_counter()
        try:
            for piece in found:
                versions[place].seconds += clock.perf_counter() - began
                yield piece._replace(part=np.full(piece.end.size, place, np.int64))
                began = clock.perf_counter()
            versions[place].seconds += clock.perf_counter() - began
        except (DataError, LimitError) as error:
            told = self._budgeted(run, versions).refused(place, error)
            if not self._disables or isinstance(told, DataError):
                raise told from error
            self._switch_off(versions[place], told)
        except QueryError as error:  # what a query asks is not told by its events
            raise _named_error(error, f"pattern '{versions[place].id}'") from error

    def _within(
        self, found: Iterator[Matches], run: OwnRun | JointRun, versions: Sequence[Version]
    ) -> Iterator[Matches]:
        """Matches within the budget of the call."""
        first = next(found, None)
        if first is not None:  # few find something in a batch
            yield from self._budgeted(run, versions).pieces(chain([first], found))

    def _budgeted(self, run: OwnRun | JointRun, versions: Sequence[Version]) -> Budgeted:
        in_force = self._timeline.in_force
        sources = in_force.sources if versions is in_force.versions else [version.source for version in versions]
        return Budgeted(
            self._meter,
            run,
            sources,
            self._history,
            output=self._output,
            positions=self._positions,
            shares=self._shares_of(versions) if self._disables else None,
            switch_off=lambda place, error: self._switch_off(versions[place], error),
        )

    def _shares_of(self, versions: Sequence[Version]) -> Shares:
        """What each of some patterns has listed in the call at hand."""
        if self._shares is None or self._shares[0] is not versions:
            self._shares = versions, Shares(self._meter.budget, len(versions))
        return self._shares[1]

    def _switch_off(self, version: Version, error: StrettoError) -> bool:
        """The pattern gives no more; whether its run is at an end with that, as it has one of its own."""
        version.off = str(error).splitlines()[0]
        warn(f"{version.off}; the pattern is switched off until another change of its id holds")
        if version.own is not None:
            self._release([version])
            self._timeline.in_force.forget_slots()
            return True
        assert version.joint is not None
        version.joint.silence(version.slot)
        return False

    def _shared_keys(
        self, batch: pa.RecordBatch, handed_out: Sequence[tuple[Part, Handed]]
    ) -> dict[tuple[str, ...], SharedKeys]:
        """By partition attributes: the keys of the events, where patterns ask for as many of them as there are events."""
        asked: Counter[tuple[str, ...]] = Counter()
        for part, handed in handed_out:
            if part.totals is None:
                asked[part.partition_by] += handed.rows.size
        found = {}
        for names, count in asked.items():
            if names and count >= batch.num_rows and len(handed_out) > 1:
                if names not in self._keys:
                    self._keys[names] = SharedKeys(names, self._schema)
                if self._keys[names].read(batch):
                    found[names] = self._keys[names]
        return found

    def _own_of(self, version: Version, handed: Handed) -> OwnRun | None:
        """The run of a pattern on its own that some events concern; ``None`` while they leave no trace in it."""
        if version.off is not None:
            return None
        if version.own is None and (handed.rows.size or version.part.always):
            version.own = self._new_own(version.part)
        run = version.own
        return run if run is not None and (handed.rows.size or run.ranked or run.waits) else None

    def _labels(self, part: Part) -> bool:
        if part.returned is not None:
            return self._measures
        return self._output == "events" and bool(part.selected)

    def _new_own(self, part: Part) -> OwnRun:
        if part.on_tecs:
            return TecsRun(part.program, labels=self._labels(part), capacity=self._capacity)
        budget = Meter.of_call(self._budget).budget.held
        if isinstance(part, AutomatonPart):
            traces = self._output == "events" or self._positions
            return AfaRun(part, traces=traces, capacity=self._capacity, budget=budget)
        if isinstance(part, ClausePart):
            return ClauseRun(part, by=self._by, measured=self._measures, capacity=self._capacity)
        assert isinstance(part, QueryPart)
        kind = OtherRun if part.totals is None else AddingRun
        return kind(part, labels=self._labels(part), capacity=self._capacity, budget=budget)

    def _new_several(self, part: SeveralPart, versions: Sequence[Version]) -> SeveralRun:
        run = SeveralRun(part, [version.id for version in versions], **self._holding())
        for version in versions:
            version.own = run
        return run

    def _holding(self) -> _Holding:
        """How much a run of counts and sums may hold, and what it begins with."""
        return {"capacity": self._capacity, "budget": Meter.of_call(self._budget).budget.held}

    def _forget(self) -> None:
        """Drop the events that no partial match holds, now and then: the cost per event stays constant on average."""
        history = self._history
        if history.rows > 2 * self._kept + CHUNK:
            self._retain()
        elif len(history.pieces) > PIECES:
            history.joined()

    def _retain(self) -> None:
        """Keep only the patterns' state and the events that later matches may need."""
        live = [np.zeros(0, np.int64), *(joint.live() for joint in self._joint.values())]
        for run, versions in self._holders().items():
            held = run.live()
            if held.size:
                live.append(held)
            elif run.idle:  # a new one gives the same from here on
                self._release(versions)
                self._timeline.in_force.forget_slots()
        self._history.retain(np.unique(np.concatenate(live)))
        self._kept = self._history.rows

    def _reach(
        self, time: int | float, *, inclusive: bool, in_force: InForce | None = None
    ) -> list[tuple[Version, list[pa.Table]]]:
        """Put in force what was to come until ``time``; gives the matches whose windows have passed before their patterns ended."""
        before = self._timeline.in_force
        ended = self._timeline.reach(time, inclusive=inclusive, in_force=in_force)
        if self._timeline.in_force is before:
            return []
        gone = set(before.versions).difference(self._timeline.in_force.versions)
        found = []
        for version in gone:
            until = ended[version.id]
            if version.own is not None and until is not None:
                if isinstance(version.own, SeveralRun):
                    alone = version.own.narrowed([version.id], **self._holding())
                    found.append((version, self._given(version, alone.finish())))
                elif version.part.ends:
                    found.append((version, self._given(version, version.own.finish())))
                elif version.own.waits:
                    found.append((version, self._given(version, version.own.reach(until))))
        self._leave(gone)
        self._enter(self._timeline.in_force)
        return found

    def _given(self, version: Version, found: Iterator[Matches]) -> list[pa.Table]:
        """The rows of what time alone gives of a pattern."""
        assert version.own is not None
        versions, sources = [version], [version.source]
        pieces = self._of_one(found, version.own, 0, versions)
        # Those of a clause come partition by partition, and are put in order together.
        blocks = [[*pieces]] if isinstance(version.part, ClausePart) else ([piece] for piece in pieces)
        return [self._results.table(block, sources, self._history) for block in blocks]

    def _enter(self, in_force: InForce) -> None:
        """Give the patterns that come into force, and run together, their slots."""
        new = [one for one in in_force.versions if one.part.together and one.joint is None]
        many = Counter(one.part.terms for one in new)
        for version in new:
            terms = version.part.terms
            if terms not in self._joint:
                self._joint[terms] = self._new_joint(version.part, many[terms])
            version.joint = self._joint[terms]
            version.slot = version.joint.enter(version.part, version.lead)

    def _new_joint(self, part: Part, patterns: int) -> JointRun:
        return JointRun(part, labels=self._labels(part), capacity=self._capacity * min(patterns, 1 << 8))

    def _leave(self, versions: Iterable[Version]) -> None:
        """Forget what patterns that end have left."""
        gone: dict[JointRun, list[int]] = {}
        self._leave_several({version.own for version in versions if isinstance(version.own, SeveralRun)})
        for version in versions:
            if not isinstance(version.own, SeveralRun):
                self._release([version])
            if version.joint is not None:
                gone.setdefault(version.joint, []).append(version.slot)
        for joint, slots in gone.items():
            joint.leave(slots)

    def _leave_several(self, runs: Collection[SeveralRun]) -> None:
        """Let runs that some of their patterns leave go on with the others."""
        staying = {run: list[Version]() for run in runs}
        for version in self._timeline.in_force.versions if staying else ():
            if isinstance(version.own, SeveralRun) and version.own in staying:
                staying[version.own].append(version)
        for run, versions in staying.items():
            if versions:
                fewer = run.narrowed([version.id for version in versions], **self._holding())
                for version in versions:
                    version.own = fewer
            else:
                self._count(run)

    def _release(self, versions: Sequence[Version]) -> None:
        """Forget the run of a version, or of several that have one."""
        if versions[0].own is not None:
            self._count(versions[0].own)
        for version in versions:
            version.own = None

    def _count(self, run: OwnRun) -> None:
        """A run is gone."""
        stats = run.stats
        self._visited += stats["visited"]
        self._triggers += stats["triggers"]

    def advance(self, time: int | float | dt.datetime | dt.date | str) -> pa.Table:
        """No event before ``time`` will come: gives the matches that waited for that, and frees what no window reaches any more.

        Rows are ordered by the pattern's id. Earlier events are late from now on.
        So are changes that should hold before ``time``.

        Raises
        ------
        OptionError
            ``time`` is no value of the time column.
        """
        self._ready()
        reached = instant_of(time, self._time, self._kind, "advance(time): it")
        self._begin_call()
        found: list[tuple[Version, list[pa.Table]]] = []
        if self._punctuation is None or reached.number > self._punctuation.number:
            self._punctuation = reached
            self._life.inside = True
            found += self._reach(reached.number, inclusive=False)
            for run in self._runs():
                if not isinstance(run, OtherRun | ClauseRun):
                    run.rows = self._rows
            for joint in self._joint.values():
                joint.reach(reached.number)
            found += self._of_all(lambda run: run.reach(reached.number))
            self._life.inside = False
        return self._gathered(_by_id(found))

    def finish(self) -> pa.Table:
        """The stream has ended: gives the matches that still wait for time to pass, ordered by the pattern's id."""
        self._ready()
        self._begin_call()
        self._life.finished = True
        return self._gathered(_by_id(self._of_all(lambda run: run.finish())))

    def _of_all(self, give: Callable[[OwnRun], Iterator[Matches]]) -> list[tuple[Version, list[pa.Table]]]:
        """What the runs of patterns on their own give, version by version."""
        found = []
        for run, versions in self._holders().items():
            if isinstance(run, SeveralRun):
                pieces = apart(self._blaming(give(run), run, range(len(versions)), versions))
                found += [(one, self._given(one, iter(pieces.get(k, ())))) for k, one in enumerate(versions)]
            else:
                found.append((versions[0], self._given(versions[0], give(run))))
        return found

    def _holders(self) -> dict[OwnRun, list[Version]]:
        """The runs of patterns on their own, with the versions in force that have each."""
        found: dict[OwnRun, list[Version]] = {}
        for version in self._timeline.in_force.versions:
            if version.own is not None:
                found.setdefault(version.own, []).append(version)
        return found

    def _gathered(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Pieces as one table."""
        found = pa.Table.from_batches(
            [batch for table in tables for batch in table.to_batches()], schema=self.output_schema
        )
        if self._first is not None:
            self._first.note(found)
        return found

    # -- state ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The patterns with their times and all that they hold, in a versioned format (see ``docs/patterns.md``).

        Raises
        ------
        SnapshotError
            A pattern is an automaton with Python functions; or the set was stopped in the middle of a batch.
        """
        self._life.refuse_snapshot()
        for version in self._timeline.versions:
            if version.part.unsaved is not None:
                raise SnapshotError(f"pattern '{version.id}': {version.part.unsaved}")
        self._retain()
        sections: dict[OwnRun, Section] = {}
        joint = [run for run in self._joint.values() if run.busy]
        active = []
        for version in self._timeline.in_force.versions:
            number = slot = None
            if version.own is not None:
                if version.own not in sections:
                    digest = version.own.part.digest if isinstance(version.own, SeveralRun) else version.part.digest
                    own = Section(
                        {"automaton": digest} | ({"several": True} if isinstance(version.own, SeveralRun) else {})
                    )
                    version.own.save(own)
                    sections[version.own] = own
                number = list(sections).index(version.own)
            elif version.joint in joint:
                number, slot = joint.index(version.joint), version.slot
            part = version.part
            active.append(
                [version.id, part.text, part.language, _number(version.since), version.measure, number]
                + ([] if slot is None else [slot, part.digest])
            )
        section = Section(self._identity())
        together(list(sections.values()), section)
        section.values["joint"] = len(joint)
        for number, run in enumerate(joint):
            run.save(section.sub(f"joint{number}"))
        self._history.save(section.sub("history"))
        section.values |= {
            "active": active,
            "pending": [
                [since, name, *((version.part.text, version.part.language) if version else (None, None))]
                for since, step in self._timeline.steps()
                for name, version in step.versions.items()
            ],
            "last": _number(self._last),
            "punctuation": _number(self._punctuation),
            "counts": {name: getattr(self, f"_{name}") for name in _COUNTS},
            "finished": self._life.finished,
            "disabled": self.disabled,
        }
        return section.to_bytes(MAGIC)

    def restore(self, snapshot: bytes) -> PatternSet:
        """Take over the patterns and the state of a snapshot of a set with the same schema and options.

        Raises
        ------
        SnapshotError
            The bytes are damaged, of another version, or of a set with another schema or other options.
        """
        if snapshot.startswith(frame.MAGIC):
            raise SnapshotError("the snapshot is of a Matcher, not of a set of patterns")
        section = Section.of_bytes(snapshot, MAGIC)
        for name, value in self._identity().items():
            there = section.values.get(name)
            if there != value:
                raise SnapshotError(
                    f"the snapshot does not fit: {_NAMES[name]} differ (snapshot: {there}, here: {value})"
                )
        before = dict(self.__dict__)
        try:
            with reading():
                self._load(section)
        except BaseException:
            self.__dict__.update(before)
            raise
        return self

    def _load(self, section: Section) -> None:
        self._clear()
        try:
            self._load_all(section)
        except SnapshotError:
            raise
        except StrettoError as error:
            raise SnapshotError(f"the snapshot does not fit: {error}") from error

    def _load_all(self, section: Section) -> None:
        values = section.values
        self._first = None  # nobody knows what came before
        self._history.load(section.sub("history"))
        own = sections_of(section)
        instant = cache(self._instant)  # many patterns hold from the same times on
        versions = []
        slots: list[dict[int, Version]] = [{} for _ in range(values.get("joint", 0))]
        groups: dict[int, list[Version]] = {}
        for name, text, language, since, measured, number, *slotted in values["active"]:
            part = self._compiled(name, text, language)
            off = values.get("disabled", {}).get(name)
            version = Version(name, part, instant(since), off=off, measure=measured)
            if slotted:
                _check_automaton(name, part, slotted[1])
                slots[number][slotted[0]] = version
            elif number is not None and own[number].values.get("several"):
                groups.setdefault(number, []).append(version)
            elif number is not None:
                _check_automaton(name, part, own[number].values["automaton"])
                version.own = self._new_own(part)
                version.own.load(own[number])
            versions.append(version)
        for number, members in groups.items():
            self._load_several(own[number], members)
        for number, taken in enumerate(slots):
            self._load_joint(section.sub(f"joint{number}"), taken)
        self._timeline.start(versions)
        self._enter(self._timeline.in_force)
        for since, name, text, language in values["pending"]:
            self._timeline.add(name, instant(since), None if text is None else self._compiled(name, text, language))
        self._kept = self._history.rows
        for name in _COUNTS:
            setattr(self, f"_{name}", values["counts"][name])
        self._last, self._punctuation = self._instant(values["last"]), self._instant(values["punctuation"])
        self._life.finished = values["finished"]

    def _load_several(self, section: Section, versions: Sequence[Version]) -> None:
        """Take over what patterns that have one run have left."""
        part = several([version.part for version in versions if isinstance(version.part, QueryPart)])
        _check_automaton(versions[0].id, part, section.values["automaton"])
        self._new_several(part, versions).load(section)
        group = object()
        for version in versions:
            version.group = group

    def _load_joint(self, section: Section, taken: Mapping[int, Version]) -> None:
        """Take over what patterns that run together have left; ``taken``: who has which slot."""
        first = next(iter(taken.values())).part
        joint = self._joint[first.terms] = self._new_joint(first, len(taken))
        lead_of = joint.leads_of(section)
        leads: dict[Lead, int] = {}
        for slot, version in taken.items():
            if version.lead is not None and leads.setdefault(version.lead, lead_of[slot]) != lead_of[slot]:
                version.lead = version.lead._replace(id=version.id)
        slots = joint.resume(section, {slot: (version.part, version.lead) for slot, version in taken.items()})
        for slot, version in taken.items():
            version.joint, version.slot = joint, slots[slot]

    def _instant(self, number: int | float | None) -> Instant | None:
        return None if number is None else Instant.numbered(number, self._kind)

    def _identity(self) -> dict[str, Any]:
        """What a state depends on beside its patterns."""
        schema = self._schema
        return {
            "attributes": {name: str(kind) for name, kind in schema.attributes.items()},
            "roles": {"type": schema.type, "time": schema.time, "stream": schema.stream, "time_unit": schema.time_unit},
            "options": {"output": self._output, "valuations": self._valuations, "by": list(self._by)}
            | ({"totals": True} if self._totals else {})
            | ({"measures": True} if self._measures else {}),
        }

    def _ready(self) -> None:
        self._life.refuse_inside()
        self._life.refuse_finished()


class _Holding(TypedDict):
    """How much a run may hold, and what it begins with."""

    capacity: int
    budget: Budget


#: The frame of a snapshot begins so (``docs/patterns.md``).
MAGIC = b"STRPATS\0"

#: What a state counts.
_COUNTS = ("rows", "late", "late_changes", "visited", "triggers")

_NAMES = {"attributes": "the events' attributes", "roles": "the roles of columns", "options": "the options"}


def _number(instant: Instant | None) -> int | float | None:
    return None if instant is None else instant.number


def _time_of(schema: Schema) -> tuple[str, pa.DataType]:
    """The time column and its type."""
    name = schema.time
    if name is None:
        raise OptionError("changes hold from event times on: name the time column with time='…'")
    check_roles(schema)
    kind = schema.attributes[name]
    if measure(kind) is None:
        raise OptionError(f"time='{name}' is {kind}, not a number, timestamp or date{time_hint(name, kind)}")
    return name, kind


def _by_of(by: Iterable[str], schema: Schema) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(dict.fromkeys(by))
    for name in names:
        if name not in schema.attributes:
            raise OptionError(hinted(f"by: there is no column '{name}'", name, schema.attributes, kind="column"))
    return names


def _placed(found: Iterator[Matches], place_of: NDArray[np.int64]) -> Iterator[Matches]:
    """Matches of patterns that run together, with the places of those that have the slots."""
    return (piece._replace(part=place_of[piece.part]) for piece in found)


def _by_id(found: Iterable[tuple[Version, list[pa.Table]]]) -> Iterator[pa.Table]:
    """What was found of versions of patterns, by id and then by when they begin to hold."""

    def place(one: tuple[Version, list[pa.Table]]) -> tuple[str, int | float]:
        since = _number(one[0].since)
        return one[0].id, -math.inf if since is None else since

    for _, tables in sorted(found, key=place):
        yield from tables


def _partitioned(part: Part, keys: Sequence[str]) -> str:
    """How a query says that it is partitioned by some keys."""
    if isinstance(part, AutomatonPart):
        return f"partition_by={list(keys)}"
    if part.language == "eql":
        return f"sequence by {', '.join(keys)}: the fields by which all steps are joined, and which events may not lack"
    return "PARTITION BY " + ", ".join(keys if isinstance(part, ClausePart) else [f"[{name}]" for name in keys])


def _named_error(error: QueryError, where: str) -> QueryError:
    """An error of a query, with the name of its pattern."""
    return QueryError(f"{where}: {error.message}", text=error.text, span=error.span, hint=error.hint)


def _check_automaton(name: str, part: Part, digest: str) -> None:
    if digest != part.digest:
        raise SnapshotError(
            f"the snapshot does not fit: the automaton of pattern '{name}', as this version of stretto builds it, differs"
        )
