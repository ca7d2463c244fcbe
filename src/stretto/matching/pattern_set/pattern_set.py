"""Many patterns over one stream, which change while it runs: ``stretto.PatternSet``."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from stretto import frame
from stretto.arguments import check_arguments
from stretto.column_types import time_hint, with_fields
from stretto.columns.measured import values_of
from stretto.engines.api import Startable
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
from stretto.matching.empty_result.streams import WARN_AFTER, check_warn_after
from stretto.matching.inspection.state_tables import check_columns, check_most, summary
from stretto.matching.lifecycle import Life, one_thread
from stretto.matching.output.memory_budget import Meter
from stretto.matching.pattern_set.afa_run import CompiledAutomaton
from stretto.matching.pattern_set.batch_validation import Checked, Numbers, checked, quoted
from stretto.matching.pattern_set.changes import Instant, changes_of, instant_of
from stretto.matching.pattern_set.compile import parts_over
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern
from stretto.matching.pattern_set.empty_result import Lacking
from stretto.matching.pattern_set.empty_result import summary as lacking_summary
from stretto.matching.pattern_set.executor import Running, by_id, number_of
from stretto.matching.pattern_set.limits import Options, named_error
from stretto.matching.pattern_set.result_table import Results
from stretto.matching.pattern_set.row_pattern_run import CompiledRowPattern
from stretto.matching.pattern_set.state_table import PATTERN, held_by
from stretto.matching.pattern_set.versions import Number, Version
from stretto.matching.reorder.spans import check_late
from stretto.query.afa import Afa
from stretto.query.passes.bind import check_roles, measure, with_types_at
from stretto.query.passes.bind_totals import BoundTotals
from stretto.query.totals import Extent
from stretto.times import shown_time
from stretto.views import show


@check_arguments
@one_thread(
    "set of patterns",
    *("push", "iter_push", "change", "withdraw", "advance", "finish", "snapshot", "restore", "held", "undecided"),
)
class PatternSet:
    """Many patterns over one stream in one pass; they may be added, replaced and retired while it runs.

    A pattern holds from the event time of the change that gives it until that of the next change of its id: it sees exactly
    the events with ``since ≤ time < until``, beginning with nothing. What a set finds depends on the events and their times
    only, not on how they are cut into batches nor on when a change was given, as long as it was given in time.

    The patterns' conditions are evaluated once for all of them, and an event is handed only to those that it concerns. A pattern may
    be an automaton, a ``MATCH_RECOGNIZE`` clause with one row for each match, or any query in CEQL, SASE+ or EQL without
    ``OUTPUT compressed``, ``ORDER BY``, ``SAMPLE`` and pipes. A match that waits for time to pass (a negation or missing event at the
    end, ``KEEP``) comes when time has passed it, unless its pattern has ended before; one of a clause comes when no event to come can
    change it, or its pattern ends. Counts and sums over all matches come when a window is over, or the pattern ends.

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
        by: str | Iterable[str] = (),
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
        by = (by,) if isinstance(by, str) else tuple(by)
        self._schema = with_types_at(by, Schema.of(schema, **roles(type, time, stream, None, time_unit)))
        self._time, self._kind = _time_of(self._schema)
        self._by = _by_of(by, self._schema)
        self._parts = parts_over(self._schema, valuations=valuations)
        self._valuations = valuations
        self._totals = totals
        self._late_policy = late
        #: What to do about events that are late, in the words of the call that a user makes.
        self.late_hint = "events come in the order of time, and none behind advance() (or pass late='drop')"
        self._language = language
        self._options = Options(output, positions, measures, self._by, capacity, budget, on_limit == "disable")
        self._warn_after = warn_after
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
        self._running = Running(self._schema.whole, self._options, self._results)
        self._late = 0
        self._late_changes = 0
        #: The time of the last event, and the time before which none will come.
        self._last: Instant | None = None
        self._punctuation: Instant | None = None
        self._life = Life("set of patterns")
        #: The first events; ``None``: nothing more is looked for in them.
        self._first = None if self._warn_after is None else Lacking(self._schema.whole)
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
        return self._running.timeline.table(self._kind)

    @property
    def machines(self) -> list[Startable[Any]]:
        """What the patterns that hold or will hold run, but for clauses of MATCH_RECOGNIZE."""
        machines = (version.part.machine for version in self._running.timeline.versions)
        return [machine for machine in machines if isinstance(machine, Startable)]

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
        return {version.id: version.off for version in self._running.versions if version.off is not None}

    @property
    def lacking(self) -> dict[str, list[str]]:
        """What the first events lack of what patterns without a match ask of single events: by id, in words (``docs/why-not.md``).

        Those of which the warning told; before it, those of which it would tell by now. Only of patterns that hold from the first
        event on.
        """
        return self._lacking if self._first is None else self._first.of(self._running.versions)

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
        self._running.retain()
        by = [by] if isinstance(by, str) else list(by)
        in_force = self._running.timeline.in_force
        columns = self._results.columns(in_force.conditions.used)
        name = PATTERN + "_" * (PATTERN in columns)
        check_columns("held", by, [name, *columns])
        kinds = {one: self._schema.whole.attributes[one] for one in columns}
        found = held_by(in_force.versions, self._running.history, kinds, self._time, by, name)
        if by:
            return found.slice(0, most)
        punctuation = None if self._punctuation is None else self._punctuation.shown
        return summary(self.stats, self._running.history.rows, punctuation, found.column("oldest"))

    @property
    def costs(self) -> pa.Table:
        """What each pattern in force has cost since it is in force here (a snapshot begins to count anew), by id.

        Columns: ``id``; ``concerned``, how many events fulfilled one of its conditions on single events (all, where it reads all);
        and ``seconds``, which these took where it has a run of its own. NULL: it runs in one call with others, which take a step for
        each event that concerns them.
        """
        versions = self._running.versions
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
        return self._running.rows

    @property
    def idle(self) -> bool:
        """Whether no event so far can take part in a later match."""
        return all(run.idle for run in self._running.runs())

    @property
    def expires(self) -> int | float | None:
        """The last time at which a window on the time is still open for a pushed event, as the engine measures times.

        Where matches wait for time to pass, when the first of them is due. ``None`` when there is none.
        """
        due = [run.expires for run in self._running.own() if run.waits]
        first = min((time for time in due if time is not None), default=None)
        if first is not None:
            return first
        found = [run.expires for run in self._running.runs()]
        return max((time for time in found if time is not None), default=None)

    @property
    def stats(self) -> dict[str, int]:
        """Counts: events, late events and changes; patterns in force, those of them that are switched off, and those that hold
        something; distinct conditions, and all that these patterns have; pairs of event and run that were visited, and that had
        output; nodes that hold partial matches; partitions; bytes.
        """
        distinct, asked = self._running.timeline.in_force.conditions.counts
        total = self._running.gone + Counter(bytes=self._running.history.nbytes)
        for run in self._running.runs():
            total.update(run.stats)
        return {
            "events": self._running.rows,
            "late": self._late,
            "late_changes": self._late_changes,
            "patterns": len(self._running.versions),
            "disabled": len(self.disabled),
            "busy": len(self._running.own()) + sum(joint.busy for joint in self._running.joint.values()),
            "conditions": distinct,
            "asked": asked,
            **{name: total[name] for name in ("visited", "triggers", "nodes", "partitions", "bytes")},
        }

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

        Examples
        --------
        >>> import stretto
        >>> patterns = stretto.PatternSet({"type": "string", "t": "int64"}, time="t")
        >>> patterns.change([stretto.Change("ab", "SELECT * FROM S WHERE A ; B"), stretto.Change("ab", None, since=5)])
        >>> events = [{"type": "A", "t": 1}, {"type": "B", "t": 4}, {"type": "B", "t": 5}]
        >>> patterns.push(events).column("end_time").to_pylist()
        [4]
        """
        self._ready()
        found: list[tuple[str, Instant | None, CompiledPattern | None]] = []
        late = 0
        for change in changes_of(changes):
            since = None
            if change.since is not None:
                since = instant_of(change.since, self._time, self._kind, f"pattern '{change.id}': since")
            part = None if change.query is None else self._compiled(change.id, change.query, change.language)
            if self._running.timeline.holds(change.id, since, part):
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
            self._running.timeline.add(*one)

    def withdraw(self, name: str, after: Number | None, but: Sequence[Number | None] = ()) -> None:
        """Take back the changes of a pattern that are to hold after a time (``None``: the beginning), except at the times ``but``.

        Times are numbers as the engine has them (:func:`stretto.matching.pattern_set.changes.instant_of`).
        """
        self._running.timeline.withdraw(name, after, but)

    def has(self, name: str, since: Number | None, part: CompiledPattern) -> bool:
        """Whether a pattern is of the query of a part from just this time on."""
        known = self._running.timeline.part(name, since)
        return known is not None and known.same(part)

    def _too_late(self, since: Instant | None) -> str | None:
        """Why a change is late; ``None`` if it is in time."""
        if self._last is not None and (since is None or since.number <= self._last.number):
            return f"an event of {self._last} has been read"
        if self._punctuation is not None and (since is None or since.number < self._punctuation.number):
            return f"the stream has come to {self._punctuation}"
        return None

    def _compiled(self, name: str, query: str | Query | AFA | Afa, language: str | None) -> CompiledPattern:
        where = f"pattern '{name}'"
        try:
            part = self._parts.of(query, language or self._language)
        except QueryError as error:
            raise named_error(error, where) from error
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

        Examples
        --------
        >>> import stretto
        >>> patterns = stretto.PatternSet({"type": "string", "t": "int64"}, time="t")
        >>> patterns.change([stretto.Change("ab", "SELECT * FROM S WHERE A ; B")])
        >>> patterns.push([{"type": "A", "t": 1}, {"type": "B", "t": 2}]).select(["pattern", "end_time"]).to_pylist()
        [{'pattern': 'ab', 'end_time': 2}]
        """
        tables = self.iter_push(events)
        self._running.limits.begin_call()
        return self._gathered(tables)

    def iter_push(self, events: Any) -> Iterator[pa.Table]:
        """Do what :meth:`push` does, in pieces. Must be read to the end before the next call."""
        self._ready()
        self._running.limits.begin_call(pieces=True)
        table = as_table(events)
        if not table.num_rows:
            return iter(())
        table, times, late = self._in_time(table)
        found: list[Checked] = []
        if table.num_rows:
            stretches = self._running.timeline.stretches(times)
            found = checked(table, times, stretches, self._running.rows, self._schema.whole, self._results)
        self._late += late
        self._life.inside = True
        return self._read(table, found)

    def _in_time(self, table: pa.Table) -> tuple[pa.Table, Numbers, int]:
        """The events that are not late, their times, and how many are late."""
        require(with_fields(table, [self._time]), self._time, "time")
        column = conform(table, [self._time], self._schema.attributes).column(0)
        times: Numbers = values_of(column, self._time, self._running.rows)
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
            f"'{self._time}' is {shown_time(column[at])} at row {self._running.rows + at}, and the stream has come to {before}: the "
            f"event is late; {self.late_hint}"
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
                told = lacking_summary(self._lacking, first.without, len(self._running.versions), "pattern")
                warn(f"after {first.events:,} events of the stream: {told}")

    def _advance(self, found: list[Checked]) -> Iterator[pa.Table]:
        for stretch in found:
            time = stretch.measures[self._time]
            yield from self._running.through(stretch, time[0].item())
            self._last = Instant.numbered(time[-1].item(), self._kind)
        self._life.inside = False

    def advance(self, time: int | float | dt.datetime | dt.date | str) -> pa.Table:
        """No event before ``time`` will come: gives the matches that waited for that, and frees what no window reaches any more.

        Rows are ordered by the pattern's id. Earlier events are late from now on.
        So are changes that should hold before ``time``.

        Raises
        ------
        OptionError
            ``time`` is no value of the time column.

        Examples
        --------
        >>> import stretto
        >>> patterns = stretto.PatternSet({"type": "string", "t": "int64"}, time="t")
        >>> patterns.change([stretto.Change("lost", "SELECT * FROM S WHERE A ; NOT B WITHIN 10 [t]")])
        >>> patterns.push([{"type": "A", "t": 1}]).num_rows, patterns.advance(20).num_rows
        (0, 1)
        """
        self._ready()
        reached = instant_of(time, self._time, self._kind, "advance(time): it")
        self._running.limits.begin_call()
        found: list[tuple[Version, list[pa.Table]]] = []
        if self._punctuation is None or reached.number > self._punctuation.number:
            self._punctuation = reached
            self._life.inside = True
            found = self._running.advance(reached.number)
            self._life.inside = False
        return self._gathered(by_id(found))

    def finish(self) -> pa.Table:
        """The stream has ended: gives the matches that still wait for time to pass, ordered by the pattern's id.

        >>> import stretto
        >>> patterns = stretto.PatternSet({"type": "string", "t": "int64"}, time="t")
        >>> patterns.change([stretto.Change("lost", "SELECT * FROM S WHERE A ; NOT B WITHIN 10 [t]")])
        >>> patterns.push([{"type": "A", "t": 1}]).num_rows, patterns.finish().num_rows
        (0, 1)
        """
        self._ready()
        self._running.limits.begin_call()
        self._life.finished = True
        return self._gathered(by_id(self._running.of_all(lambda run: run.finish())))

    def undecided(self) -> dict[str, int | None]:
        """How many matches :meth:`finish` would complete, by id; ``None``: too many to be counted. It ends the set, as that does.

        These are matches of which an event to come may still decide. A :meth:`snapshot` that is taken before carries them on.

        >>> import stretto
        >>> patterns = stretto.PatternSet({"type": "string", "t": "int64"}, time="t")
        >>> patterns.change([stretto.Change("lost", "SELECT * FROM S WHERE A ; NOT B WITHIN 10 [t]")])
        >>> patterns.push([{"type": "A", "t": 1}]).num_rows, patterns.undecided()
        (0, {'lost': 1})
        """
        self._ready()
        self._life.finished = True
        return self._running.undecided()

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

        Examples
        --------
        >>> import stretto
        >>> patterns, other = (stretto.PatternSet({"type": "string", "t": "int64"}, time="t") for _ in range(2))
        >>> patterns.change([stretto.Change("ab", "SELECT * FROM S WHERE A ; B")])
        >>> patterns.push([{"type": "A", "t": 1}]).num_rows
        0
        >>> other.restore(patterns.snapshot()).push([{"type": "B", "t": 2}]).num_rows
        1
        """
        self._life.refuse_snapshot()
        section = Section(self._identity())
        running = self._running
        running.save(section)
        section.values |= {
            "last": number_of(self._last),
            "punctuation": number_of(self._punctuation),
            "counts": {
                "rows": running.rows,
                "late": self._late,
                "late_changes": self._late_changes,
                "visited": running.gone["visited"],
                "triggers": running.gone["triggers"],
            },
            "finished": self._life.finished,
            "disabled": self.disabled,
        }
        return section.to_bytes(MAGIC)

    @reading()
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
        values, running = section.values, self._running
        self._first = None  # nobody knows what came before
        # many patterns hold from the same times on
        running.load(section, self._compiled, cache(self._instant))
        counts = Section(values["counts"])
        running.rows = counts.count("rows")
        running.gone.update({name: counts.count(name) for name in ("visited", "triggers")})
        self._late, self._late_changes = counts.count("late"), counts.count("late_changes")
        self._last, self._punctuation = self._instant(values["last"]), self._instant(values["punctuation"])
        self._life.finished = section.flag("finished")

    def _instant(self, number: int | float | None) -> Instant | None:
        """A time of a snapshot."""
        known = Section({"time": number}).measure("time")
        return None if known is None else Instant.numbered(known, self._kind)

    def _identity(self) -> dict[str, Any]:
        """What a state depends on beside its patterns."""
        schema = self._schema
        return {
            "attributes": {name: str(kind) for name, kind in schema.attributes.items()},
            "roles": {"type": schema.type, "time": schema.time, "stream": schema.stream, "time_unit": schema.time_unit},
            "options": {"output": self._options.output, "valuations": self._valuations, "by": list(self._by)}
            | ({"totals": True} if self._totals else {})
            | ({"measures": True} if self._options.measures else {}),
        }

    def _ready(self) -> None:
        self._life.refuse_inside()
        self._life.refuse_finished()


#: The frame of a snapshot begins so (``docs/patterns.md``).
MAGIC = b"STRPATS\0"

_NAMES = {"attributes": "the events' attributes", "roles": "the roles of columns", "options": "the options"}


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
    names = tuple(dict.fromkeys(by))
    for name in names:
        if name not in schema.attributes:
            raise OptionError(hinted(f"by: there is no column '{name}'", name, schema.attributes, kind="column"))
    return names


def _partitioned(part: CompiledPattern, keys: Sequence[str]) -> str:
    """How a query says that it is partitioned by some keys."""
    if isinstance(part, CompiledAutomaton):
        return f"partition_by={list(keys)}"
    if part.language == "eql":
        return f"sequence by {', '.join(keys)}: the fields by which all steps are joined, and which events may not lack"
    return "PARTITION BY " + ", ".join(keys if isinstance(part, CompiledRowPattern) else [f"[{name}]" for name in keys])
