"""A query or an automaton over a stream of batches: ``stretto.Matcher``.

It hands its calls to a :class:`~stretto.matching.executors.base.Executor`, of which there is one for each way to take events.
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.explaining import notebook
from stretto.explaining.answer import Answer
from stretto.languages.afa.builder import AFA
from stretto.matching.compiled import Query
from stretto.matching.empty_result.streams import WARN_AFTER
from stretto.matching.executors.choose import executor_for
from stretto.matching.lifecycle import one_thread
from stretto.matching.output.match_sets import MatchSet
from stretto.matching.output.memory_budget import Meter
from stretto.query.afa import Afa, Arc


@check_arguments
@one_thread(
    "matcher",
    *("push", "iter_push", "push_sets", "prime", "advance", "finish", "snapshot", "restore", "late_events"),
    *("arcs", "add_arc", "retire_arc", "advance_arcs", "partial_matches", "held", "why_not"),
)
class Matcher:
    """A query or an automaton over a stream that comes in batches.

    Any split of the stream into batches gives the same rows in the same order. With an AFA, and with ``speculation`` beyond 0, rows
    may be taken back later: a column ``sign`` says +1 or −1. Each row of input is a step then, which gives the difference that it
    makes: first what it takes back, then what is new, by last event, first event and register. Of counts, sums, the best matches and
    samples each call is a step. A retraction with the insertion of
    the same place directly behind it, and no punctuation between them, is a revision, which is one step.

    Parameters
    ----------
    query
        A query's text, a compiled :class:`~stretto.Query`, or a :class:`stretto.AFA`; or a clause ``MATCH_RECOGNIZE ( … )``, or
        a statement that is one over one table, of which the text says all but ``disorder``, ``late`` and ``budget``.
    schema
        What the events look like (see :func:`stretto.compile`; for an AFA the types of the columns beside its own events); ``None``:
        as in the first batch.
    type, stream, time_unit, output, valuations, language, at_end, timeouts
        Queries: as in :func:`match`.
    time
        The column that orders the stream. An AFA needs one of integers, dates or timestamps.
    sequence
        A column of integers that orders events of the same time, where a matcher reorders; ``None``: they are ordered as they come.
    positions
        Queries: whether rows have ``start``, ``end`` and ``positions``, which count the events pushed so far.
    sets
        Queries: matches are taken as sets (:meth:`push_sets`), not listed.
    disorder
        How late events may be: ticks of the time column, ``'5 seconds'``, a timedelta, or ``math.inf``. The punctuation follows the
        data, as the greatest time seen minus so much; with ``math.inf`` only :meth:`advance` and :meth:`finish` tell it. Events are
        sorted before they are read, and wait until they are certain. ``start``, ``end`` and ``positions`` still count the events as
        they were pushed. ``None``: events of a query come in order; those of an AFA come in any, and :meth:`advance` tells the
        punctuation.
    speculation
        How far answers go ahead of what is certain (AFA paper, section 5.3): events with a time below the punctuation plus so much do
        not wait. 0 where ``disorder`` is given: nothing is ever taken back; ``math.inf``: nothing waits. Whatever it is, the final
        result is the same. More than 0 is for AFAs, which without ``disorder`` never let anything wait, for queries
        that can be automata, and for counts, sums, the best matches and samples, of which each call reads what is not certain again.
    hold
        AFAs: what waits. ``"events"``: events, in front of the automaton, so that it sees them in order beyond what is speculated.
        ``"results"``: the automaton reads events as they come, and its output waits; what is taken back in the meantime is never
        seen.
    late
        An event that is later than that, or (with ``sign``) retracts the unknown: ``"error"``, ``"drop"``, which counts it in
        :attr:`late`, or where events come out of order ``"side"``: :meth:`late_events` hands them over.
    sign
        The column that says +1 (insertion) or −1 (retraction of the event with the same partition, time and sequence; without a
        sequence: time and payload). ``None``: insertions only. For AFAs, and for queries that list matches with
        ``speculation=math.inf``.
    until
        AFAs: the column with the right end (RE) of each event's lifetime, NULL for ever; ``None``: time + window.
    numbered
        AFAs: a column with sequence numbers that grow by one for each event of a partition. Then no match spans a gap, and no output
        is ever taken back because an event was late (AFA+O, section 5.3).
    bag
        AFAs: an output for each computation (way through events), in place of one for each (first event, last event, register).
    provenance
        AFAs: output has ``positions`` (list<int64>): the rows of all events of the partition from the first to the last. Events are
        then kept as long as they live.
    ordered
        AFAs: events come in order: each is the punctuation of those before it, so that nothing of them is kept.
    dynamic
        AFAs: arcs added later are valid from the next time unit on (``"default"``), or have explicit lifetimes (``"explicit"``).
    timer
        AFAs: a truth value among the AFA's attributes that stands for the end of a window (appendix E). At each :meth:`advance` to a
        later time, every partition with events gets an event of that time, before all others of it: this attribute is true, and all
        others but the time and the partition attributes are NULL. It has no row (``end`` is NULL), and input need not have the
        column.
    ignore
        AFAs: whether ignorable arcs make anchors (appendix D), which take less memory and time.
    budget
        As in :func:`match`, for what one call lists; for :meth:`iter_push`, which gives pieces, only if it is said. After a
        LimitError a query's matcher has stopped inside the batch, and takes no more: a snapshot goes on, or a new matcher. That of an
        AFA looks whenever a buffer of output is full: a row with which it would be more is not taken, nor are those behind it;
        ``push([])`` gives the output of those before.
    warn_after
        Queries: after so many events a :class:`~stretto.StrettoWarning` tells, once, what none of them had that every match has an
        event of: a type, conditions on one event, a key. Nothing more is looked at once everything was found. ``None``: no warning.
        A matcher that goes on from a snapshot, or with wider types of columns, does not warn.

    Examples
    --------
    >>> import stretto
    >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A AS x; B AS y", output="positions")
    >>> matcher.push([{"type": "A"}]).num_rows
    0
    >>> matcher.push([{"type": "B"}]).to_pylist()
    [{'start': 0, 'end': 1, 'positions': [0, 1]}]
    >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A AS x; B AS y", output="positions", time="t", disorder=5)
    >>> matcher.push([{"type": "B", "t": 4}, {"type": "A", "t": 3}]).num_rows
    0
    >>> matcher.finish().to_pylist()
    [{'start': 1, 'end': 0, 'positions': [0, 1], 'start_time': 3, 'end_time': 4}]

    A query in SASE+ that answers at once:

    >>> query = "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_next_match { } WITHIN 10"
    >>> matcher = stretto.Matcher(query, time="t", speculation=float("inf"), output="positions")
    >>> matcher.push([{"type": "A", "t": 1}, {"type": "B", "t": 3}]).select(["sign", "positions"]).to_pylist()
    [{'sign': 1, 'positions': [0, 1]}]
    >>> matcher.push([{"type": "C", "t": 2}]).select(["sign", "positions"]).to_pylist()
    [{'sign': -1, 'positions': [0, 1]}]

    A clause of SQL:

    >>> matcher = stretto.Matcher("MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS n PATTERN (A+ B) DEFINE B AS x < PREV(x))")
    >>> matcher.push([{"t": 1, "x": 5}, {"t": 2, "x": 6}]).num_rows
    0
    >>> matcher.push([{"t": 3, "x": 4}, {"t": 4, "x": 5}]).to_pylist(), matcher.finish().to_pylist()
    ([], [{'n': 3}])

    An automaton:

    >>> afa = stretto.AFA({"kind": str}, window=10)
    >>> afa = afa.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")
    >>> matcher = stretto.Matcher(afa, time="t")
    >>> matcher.push([{"t": 1, "kind": "a"}, {"t": 3, "kind": "b"}]).select(["sign", "start", "end"]).to_pylist()
    [{'sign': 1, 'start': 0, 'end': 1}]
    >>> matcher.push([{"t": 2, "kind": "c"}]).select(["sign", "start", "end"]).to_pylist()
    [{'sign': -1, 'start': 0, 'end': 1}]
    """

    def __init__(  # noqa: PLR0913 - the options that users have
        self,
        query: str | Query | AFA | Afa,
        schema: Any = None,
        *,
        type: str | None = "type",
        time: str | None = None,
        sequence: str | None = None,
        stream: str | None = None,
        time_unit: str | None = None,
        output: str = "events",
        positions: bool = True,
        at_end: str = "complete",
        timeouts: bool = False,
        valuations: bool = False,
        language: str | None = None,
        sets: bool = False,
        disorder: Any = None,
        speculation: Any = None,
        hold: str | None = None,
        late: str = "error",
        sign: str | None = None,
        until: str | None = None,
        numbered: str | None = None,
        bag: bool = False,
        provenance: bool = False,
        ordered: bool = False,
        dynamic: str = "default",
        timer: str | None = None,
        ignore: bool = True,
        budget: int | float | str | Meter | None = None,
        capacity: int | None = None,
        warn_after: int | None = WARN_AFTER,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in _DEFAULTS and _is_said(name, value)}
        self._executor = executor_for(query, schema, given)

    def __repr__(self) -> str:
        return f"<stretto.Matcher: {self._executor}>"

    def _repr_html_(self) -> str:
        told = notebook.running(self.stats, read=str(self._executor), punctuation=self.punctuation)
        return notebook.html(told, self.explain, self.draw)

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def query(self) -> Query:
        """The query; bound once the schema is known. An OptionError where it is an automaton: see :attr:`afa`."""
        return self._executor.query

    @property
    def afa(self) -> Afa:
        """The automaton that runs. An OptionError for a query on tECS or NFAb, and before one that speculates knows its schema."""
        return self._executor.afa

    @property
    def position(self) -> int:
        """How many rows were pushed."""
        return self._executor.position

    @property
    def late(self) -> int:
        """How many events were late, or retracted the unknown, and were left out."""
        return self._executor.late

    def late_events(self) -> pa.Table:
        """With ``late="side"``: the late events since the last call, whole: with all columns that they had.

        >>> import stretto
        >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A ; B", time="t", disorder=5, late="side")
        >>> matcher.push([{"type": "A", "t": 10}, {"type": "B", "t": 3}]).num_rows, matcher.late_events().to_pylist()
        (0, [{'type': 'B', 't': 3}])
        """
        return self._executor.late_events()

    @property
    def punctuation(self) -> Any:
        """No event before it waits or will be read, and no match before it will be given or taken back; ``None``: none is known."""
        return self._executor.punctuation

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what was read and what is held.

        Of a query: events pushed, visited by the kernel, late, with output; partitions; nodes that hold partial matches; bytes. Of an
        AFA, and with speculation: rows pushed, rows late, events out of order; events, partial matches and bytes held; the most
        partial matches, and how many there were ever; of a query also the events that are kept to be shown. Where something waits for
        certainty, ``waiting`` is how much.
        """
        return self._executor.stats

    def partial_matches(self, most: int = 1_000, *, by: str | Sequence[str] = ()) -> pa.Table:
        """What is under way, of a matcher with ``timeouts=True``: a row for each first event whose window is open, and with which no
        match begins so far; or how many there are by how far they got, or by key.

        Parameters
        ----------
        most
            How many rows at the most, the oldest first events first.
        by
            Count them by these columns: ``"reached"``, attributes of the partition, or several. All of them are read then; the
            budget of the matcher holds for that, too.

        Returns
        -------
        pyarrow.Table
            The columns are those that :meth:`push` gives. A row shows the partial match that got furthest, as that of a timeout does:
            ``reached`` is the variable of its last event, ``expired`` the last time of its window, ``start_time`` says how old it is.
            Nothing changes. Events that still wait to be sorted are in none.

            With ``by`` these columns, ``partial_matches`` (int64: how many), and where the time is known ``oldest`` and
            ``expires``: when the first of them began, and when the first window closes. The most partial matches come first.

        Raises
        ------
        LimitError
            With ``by``: they go over the budget.
        OptionError
            ``by`` names another column. The matcher was made without ``timeouts=True``, or runs an automaton, EQL or
            MATCH_RECOGNIZE; ``stats`` counts what it holds.

        Examples
        --------
        >>> import stretto
        >>> query = "SELECT * FROM S WHERE ORDER AS o ; PAID AS p ; SENT AS s PARTITION BY [id] WITHIN 24 [t]"
        >>> matcher = stretto.Matcher(query, time="t", timeouts=True)
        >>> _ = matcher.push([{"type": one, "id": id, "t": id} for id, one in [(1, "ORDER"), (2, "ORDER"), (2, "PAID")]])
        >>> matcher.partial_matches().select(["id", "positions", "reached", "expired"]).to_pylist()
        [{'id': 1, 'positions': [0], 'reached': 'o', 'expired': 25}, {'id': 2, 'positions': [1, 2], 'reached': 'p', 'expired': 26}]
        >>> matcher.partial_matches(1, by="reached").to_pylist()
        [{'reached': 'o', 'partial_matches': 1, 'oldest': 1, 'expires': 25}]
        """
        return self._executor.partial_matches(most, [by] if isinstance(by, str) else list(by))

    def held(self, most: int = 1_000, *, by: str | Sequence[str] = ()) -> pa.Table:
        """What is held: a row that tells of all of it, or how much there is by key, type or state, the most first.

        It looks at all that is held, which costs about as much as a snapshot; nothing changes.

        Parameters
        ----------
        most
            How many rows at the most.
        by
            Columns. Of a query: those that results show or read, such as partition attributes and the type. Of an automaton, and
            of a query that speculates: partition attributes, and ``"state"`` (``"state_"`` where a partition attribute is called so).
            Of a clause: those that it reads or shows, and ``"variable"``, as which a row is taken by now (NULL: as none).

        Returns
        -------
        pyarrow.Table
            Without ``by`` one row: ``punctuation`` and ``oldest``, where there is a time, and as int64 ``waiting`` (events or output
            that wait for certainty), ``events`` (that partial matches may hold), ``partitions`` and ``bytes``. Before the types of
            events are known it has no columns.

            With ``by`` those columns, ``events`` of a query or a clause and ``partial_matches`` of an automaton (int64), and where
            there is a time ``oldest``: that of the first event, or when the first partial match began. A name that is taken ends
            with ``_``.

        Raises
        ------
        OptionError
            ``by`` names another column.

        Examples
        --------
        >>> import stretto
        >>> query = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [id] WITHIN 24 [t]"
        >>> matcher = stretto.Matcher(query, time="t")
        >>> _ = matcher.push([{"type": "A", "id": id, "t": t} for t, id in enumerate("xyy")])
        >>> matcher.held(by="id").to_pylist()
        [{'id': 'y', 'events': 2, 'oldest': 1}, {'id': 'x', 'events': 1, 'oldest': 0}]
        >>> matcher.held().select(["waiting", "events", "partitions", "oldest"]).to_pylist()
        [{'waiting': 0, 'events': 3, 'partitions': 2, 'oldest': 0}]
        """
        return self._executor.held(most, [by] if isinstance(by, str) else list(by))

    def why_not(self, key: Any = None, *, most: int = 3) -> Answer:
        """Say what is under way and what it waits for: of a stream, which keeps no past, that is all that is known of near misses.

        Parameters
        ----------
        key
            Look only at partial matches of this key: the value of the query's partition attribute, or a dict of columns and their
            values.
        most
            How many partial matches to tell of: those with the fewest steps to go, of these the oldest.

        Returns
        -------
        Answer
            As :func:`stretto.why_not` gives it. ``under_way`` is how many partial matches there are. ``misses`` has some of them with
            the rows that each variable holds; their reason is what they wait for, and until when their window is open. Of automata
            a state has the rows of the first and the last event. ``notes`` say how many events came too late, and what is not
            known. ``match`` is None, whatever the matcher has given.

        Raises
        ------
        OptionError
            The matcher runs CEQL or SASE+ and was made without ``timeouts=True``; or it runs a sample or a join of EQL,
            MATCH_RECOGNIZE, or a query that speculates, of which no partial matches are listed. The key is not one of the query's.

        Examples
        --------
        >>> import stretto
        >>> query = "SELECT * FROM S WHERE ORDER AS o ; PAID AS p ; SENT AS s PARTITION BY [id] WITHIN 24 [t]"
        >>> matcher = stretto.Matcher(query, time="t", timeouts=True)
        >>> _ = matcher.push([{"type": one, "id": id, "t": id} for id, one in [(1, "ORDER"), (2, "ORDER"), (2, "PAID")]])
        >>> for miss in matcher.why_not().misses:
        ...     print(miss.held(), "-", miss.reasons[0])
        o: row 1; p: row 2 - it waits for SENT AS s: none that fits has come; its window is open until 26
        o: row 0 - it waits for PAID AS p: none that fits has come; its window is open until 25
        """
        return self._executor.why_not(key, most)

    @property
    def idle(self) -> bool:
        """Whether no event so far can take part in a later match, nor be taken back: a new matcher would go on in the same way."""
        return self._executor.idle

    @property
    def expires(self) -> int | float | None:
        """The last time, as the engine measures it, at which a window is open; ``None``: none is, or time does not close them."""
        return self._executor.expires

    @property
    def ends(self) -> int | None:
        """When the last event ends that can still matter, in ticks. ``None``: none does; the greatest integer: it is not known."""
        return self._executor.ends

    def explain(self) -> str:
        """What runs, as text."""
        return self._executor.explain()

    def draw(self) -> Any:
        """The automaton as a Graphviz graph."""
        return self._executor.draw()

    # -- events -------------------------------------------------------------------------------------------------------

    def push(self, events: Any, *, arcs: Any = None, punctuations: Iterable[tuple[int, Any]] = ()) -> pa.Table:
        """Read the next events, and give the matches that they complete, or the signed output of their steps.

        Parameters
        ----------
        events
            Rows with the attributes and the columns that play a role. For a query on events in order also a dict of such tables by
            stream, as :func:`match` takes one: the events of one push are merged by time, and ``positions`` count them so. A stream
            without events may be left out; without a ``schema`` the first push tells the columns of all of them.
        arcs
            AFAs: changes of arcs between the rows, as a second stream: a table with the columns ``row`` (how many rows come before),
            ``action`` (``"add"`` or ``"retire"``), ``id``, and for additions ``source``, ``target``, ``when``, ``then``, ``kind``,
            ``final``, ``since`` and ``until`` (see :meth:`add_arc`); for retirements ``until`` is what ``at`` is in
            :meth:`retire_arc`. Each distinct arc is read and compiled once. What waits sees the arcs of when it is let through.
        punctuations
            Pairs ``(row, time)``: a punctuation after so many of the rows, as :meth:`advance` gives one. Not with ``timer=``, nor
            for a query that reads its events as they come.

        Raises
        ------
        DataError
            The events do not fit the schema, or come before the last ones in time, or are late: nothing of the batch was read then,
            but where events go to an automaton as they come those before the late one were, and the next call gives their output. Or
            a computation leaves 64 bits. A query in order has stopped inside the batch then, if it is one between events, and a
            snapshot goes on. Where events wait, and of an AFA, the event for which it does (which may have come before) is left out,
            or it and all behind it; the others are taken, and the next call gives their matches.
        QueryError, LimitError
            A fence or a transfer of ``arcs`` is wrong (nothing is taken); more than the budget allows; an ε-cycle without end.

        >>> import stretto
        >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A ; B", output="positions")
        >>> matcher.push([{"type": "A"}]).num_rows, matcher.push([{"type": "B"}, {"type": "B"}]).column("positions").to_pylist()
        (0, [[0, 1], [0, 2]])
        """
        return self._executor.push(events, arcs=arcs, punctuations=punctuations)

    def iter_push(self, events: Any) -> Iterator[pa.Table]:
        """Do what :meth:`push` does, in pieces of bounded size, to be read to the end; for an AFA, a piece is of so many events.

        >>> import stretto
        >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A ; B", output="positions")
        >>> [piece.num_rows for piece in matcher.iter_push([{"type": "A"}, {"type": "B"}])]
        [1]
        """
        return self._executor.iter_push(events)

    def push_sets(self, events: Any) -> Iterator[MatchSet]:
        """Do what :meth:`push` does, with the matches of each event that completes some as a set (see :func:`match_sets`).

        The matcher must have been made with ``sets=True``. Must be read to the end before the next call.

        >>> import stretto
        >>> matcher = stretto.Matcher("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { }", sets=True)
        >>> [one.count for one in matcher.push_sets([{"type": kind} for kind in "AAAB"])]
        [7]
        """
        return self._executor.push_sets(events)

    def prime(self, events: Any) -> None:
        """Read the next events without what they complete: they only may begin or prolong matches that later events complete.

        For the events before the part of a stream whose matches are wanted. Costs less than :meth:`push`, which lists matches. Not
        with ``CONSUME BY``, where what an event forgets depends on the matches that it completes, nor where events come out of order.

        >>> import stretto
        >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A; B", output="positions")
        >>> matcher.prime([{"type": "A"}, {"type": "B"}])
        >>> matcher.push([{"type": "B"}]).to_pylist()
        [{'start': 0, 'end': 2, 'positions': [0, 2]}]
        """
        self._executor.prime(events)

    def advance(self, time: int | float | dt.datetime | dt.date, *, where: str | None = None) -> pa.Table:
        """A punctuation: no event before ``time`` will come; one at ``time`` is on time. Gives the matches that waited for it.

        What is before it is final, and what only depends on it is freed. Earlier events are late from now on.

        Parameters
        ----------
        time
            Of the column that orders the stream; it never goes back.
        where
            AFAs: a condition on the event, such as ``"e.floor <= 3"``: the punctuation is of the events that satisfy it (appendix
            F.2). Partial matches that none still to come can complete are freed; no output becomes final. For streams without
            retractions.

        >>> import stretto
        >>> lost = "SELECT * FROM S WHERE SENT AS s ; NOT BACK WITHIN 10 [t]"
        >>> matcher = stretto.Matcher(lost, time="t", output="positions")
        >>> matcher.push([{"type": "SENT", "t": 0}]).num_rows, matcher.advance(10).num_rows, matcher.advance(11).num_rows
        (0, 0, 1)
        """
        return self._executor.advance(time, where=where)

    def finish(self) -> pa.Table:
        """The stream has ended, and all is final: gives what waited, and the matches that only the end completes (for CEQL, none).

        >>> import stretto
        >>> matcher = stretto.Matcher("SELECT * FROM S WHERE SENT AS s ; NOT BACK WITHIN 10 [t]", time="t", output="positions")
        >>> matcher.push([{"type": "SENT", "t": 0}]).num_rows, matcher.finish().num_rows
        (0, 1)
        """
        return self._executor.finish()

    # -- arcs ---------------------------------------------------------------------------------------------------------

    def arcs(self, *, retired: bool = False) -> list[Arc]:
        """The arcs of an AFA with their lifetimes in ticks; those retired for all events are left out.

        ``retired``: also arcs whose id has gone to another one since, until a punctuation is past them. Given with these lifetimes to
        a matcher with ``dynamic="explicit"``, they give the same output (a replay).
        """
        return self._executor.changing("arcs()").known(retired=retired)

    def add_arc(
        self,
        source: str,
        target: str,
        *,
        when: Any = None,
        then: Any = None,
        id: str | None = None,
        kind: str = "consume",
        since: Any = None,
        until: Any = None,
        final: str | None = None,
    ) -> pa.Table:
        """Add an arc while an AFA runs; states may be new. The output that it gives at once, with an explicit lifetime.

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
        OptionError, DataError
            An arc of this id is in force, or a lifetime is given without ``dynamic="explicit"``; or it begins before the arcs'
            punctuation, or a function fails for a stored event.
        """
        self._executor.changing("add_arc()").add(
            source, target, when=when, then=then, id=id, kind=kind, since=since, until=until, final=final
        )
        return self._executor.given()

    def retire_arc(self, id: str, at: Any = None) -> pa.Table:
        """Retire an arc of an AFA that is in force: no event with a time behind the greatest one seen takes it any more.

        With ``dynamic="explicit"`` no event from ``at`` on takes it (``None``: none at all, as if it had never been); what this takes
        back or gives comes at once.

        >>> import stretto
        >>> afa = stretto.AFA({"kind": str}).arc("q0", "q1", when="e.kind = 'a'", id="first").final("q1")
        >>> matcher = stretto.Matcher(afa, time="t", dynamic="default")
        >>> matcher.push([{"t": 1, "kind": "a"}]).num_rows
        1
        >>> matcher.retire_arc("first").num_rows, matcher.push([{"t": 2, "kind": "a"}]).num_rows
        (0, 0)
        """
        self._executor.changing("retire_arc()").retire(id, at)
        return self._executor.given()

    def advance_arcs(self, time: Any) -> pa.Table:
        """A punctuation of the arcs: no change of an arc will concern events before ``time`` (``dynamic="explicit"``)."""
        self._executor.changing("advance_arcs()").advance(time)
        return self._executor.given()

    # -- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The matcher's whole state, in a versioned format (see ``docs/snapshots.md``); small for a small state.

        A SnapshotError where the matcher has stopped inside a batch, or has matches to give; or where an arc has a Python function,
        which no snapshot holds, beside those that the automaton was made with.

        >>> import stretto
        >>> query = "SELECT * FROM S WHERE A ; B"
        >>> matcher, other = (stretto.Matcher(query, {"type": "string"}, output="positions") for _ in range(2))
        >>> matcher.push([{"type": "A"}]).num_rows
        0
        >>> other.restore(matcher.snapshot()).push([{"type": "B"}]).to_pylist()
        [{'start': 0, 'end': 1, 'positions': [0, 1]}]
        """
        return self._executor.snapshot()

    def restore(self, snapshot: bytes) -> Matcher:
        """Take over the state of a snapshot of the same query or automaton, schema and options; of any other, a SnapshotError.

        >>> import stretto
        >>> ab, ba = (stretto.Matcher(f"SELECT * FROM S WHERE {one}", {"type": "string"}) for one in ("A ; B", "B ; A"))
        >>> try:
        ...     ab.restore(ba.snapshot())
        ... except stretto.SnapshotError as error:
        ...     print(str(error).splitlines()[0])
        the snapshot is of another query: its pattern was (B ; A), is (A ; B)
        """
        self._executor.restore(snapshot)
        return self


def _is_said(name: str, value: Any) -> bool:
    """Whether an option has another value than where nothing is said; a value may be anything, with an ``==`` of its own."""
    default = _DEFAULTS[name]
    return value is not default and (type(value) is not type(default) or value != default)


#: Options with the values that they have where nothing is said.
_DEFAULTS = {
    name: one.default
    for name, one in inspect.signature(Matcher.__init__).parameters.items()
    if one.kind is inspect.Parameter.KEYWORD_ONLY
}
