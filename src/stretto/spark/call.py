"""``stretto.spark.match``: one call for batch and streaming DataFrames.

The call checks query, columns and options, and hands what it found to :mod:`stretto.spark.batch.run` or
:mod:`stretto.spark.streaming.query` as a :class:`~stretto.spark.prepared.Prepared`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from stretto.arguments import check_arguments, unexpected
from stretto.budget import Budget
from stretto.engines.select import NO_VALUATIONS
from stretto.errors import OptionError
from stretto.events import Schema, require
from stretto.languages.afa.builder import AFA, is_afa
from stretto.matching.compiled import Query, compile_query
from stretto.matching.compiled import roles as roles_of
from stretto.matching.executors.base import Reading
from stretto.matching.executors.choose import refuse
from stretto.matching.input.derived_columns import refuse_name_of
from stretto.matching.output.match_sets import refuse_unlisted
from stretto.matching.output.match_table import Layout
from stretto.matching.output.pipes import refuse_pipes
from stretto.query import functions
from stretto.query.afa import Afa
from stretto.query.totals import Best, Extent, Function, Totals
from stretto.spark import automata
from stretto.spark.batch import run as batch
from stretto.spark.batch.plan import check_slices
from stretto.spark.frames import arrow_fields, check_sign, one_dataframe, settled_events, with_fields, with_role_fields
from stretto.spark.options import Continuous
from stretto.spark.prepared import Prepared
from stretto.spark.revised import AFA as AUTOMATON
from stretto.spark.sessions import require_pyspark
from stretto.spark.streaming import query as streaming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


#: What a matcher takes and Spark does not, and what to do.
NOT_HERE = {
    "timer": "timer= needs punctuations while a window is open, and on Spark a key without events is looked at when its window "
    "closes: say what does not happen in SASE+, SEQ(A a, ~(B b)) WITHIN …, or put rows that mark time among the events",
    "watermark": "Spark's watermark is disorder= behind the latest event: give disorder='10 seconds', or df.withWatermark(…)",
}


@check_arguments
def match(  # noqa: PLR0913 - the options that users have
    df: DataFrame | Mapping[str, DataFrame],
    query: str | Query | AFA | Afa,
    *,
    type: str | None = "type",
    time: str | None = None,
    sequence: str | None = None,
    stream: str | None = None,
    time_unit: str | None = None,
    output: str = "events",
    partitions: int | None = None,
    valuations: bool = False,
    timeouts: bool = False,
    language: str | None = None,
    at_end: str = "complete",
    disorder: str | dt.timedelta | None = None,
    speculation: Any = 0,
    late: str = "drop",
    event_id: str | None = None,
    buckets: int | None = None,
    slices: int | None = None,
    budget: int | float | str | None = None,
    sign: str | None = None,
    arcs: DataFrame | None = None,
    until: str | None = None,
    bag: bool = False,
    numbered: str | None = None,
    **unknown: Any,
) -> DataFrame:
    """Find the complex events of ``query`` in a DataFrame, batch or streaming.

    The call checks the query against the DataFrame's columns; Spark runs it when the result is used. Before that, a large batch
    DataFrame is looked at for how its times and keys lie, with small jobs over these columns. Rows in which an attribute of
    ``PARTITION BY`` is NULL are in no partition: they go.

    Parameters
    ----------
    df
        The events, in any order; for a query ``FROM`` several streams a dict of DataFrames by stream name.
    query
        A query's text, a compiled :class:`stretto.Query`, or an automaton: a :class:`stretto.AFA`, or its text with
        ``language="afa"`` (:func:`stretto.read_afa`). Its arcs are texts; Python functions must be importable on the workers.
    type
        The column that holds the event type. ``None``: an event's type is the name of its stream.
    time
        The column that orders the events: integer, decimal, double, date or timestamp, never NULL. Needed,
        unless the query was compiled with one.
    sequence
        A column that orders events of the same time (a source's offset, a row number). Without one their
        order is not defined, and where a pattern depends on it two runs may differ.
    stream
        The column that names an event's stream, when one DataFrame holds several.
    time_unit
        What one unit of an integer ``time`` is (``s``, ``ms``, ``us``, ``ns``), for windows such as
        ``WITHIN 1 minute``.
    output
        ``"events"``: with the events that each selected variable holds. ``"positions"``: only times and
        partition attributes, which is cheaper; positions as such mean nothing in a DataFrame. ``"summary"``: one row for
        each event that completes matches, with their number in ``matches`` and the earliest ``start_time``.
    partitions
        Into how many tasks the keys are hashed; ``None``: ``spark.sql.shuffle.partitions``, of few events at most as many as run
        at a time. Queries that must run in one task ignore it.
    valuations
        One row for each valuation in place of each complex event.
    timeouts
        With ``WITHIN``: rows of partial matches as well, one for each first event whose window has closed without a match that
        begins with it, with columns ``reached`` and ``expired`` as in :func:`stretto.match`. A window is closed by the latest time of
        all events (which a small job asks for), or the watermark. It measures the time, or counts the events of a key.
    language
        The query's language, where the text does not tell: ``"ceql"``, ``"sase"``, ``"eql"``, ``"afa"``.
    at_end
        Batch: as in :func:`stretto.match`, what becomes of a match that waits for time to pass when the events end before, at their
        latest time, whatever key that is of. With ``"drop"`` Spark looks that time up first.
    disorder
        Streaming: how much later than the latest event one may still arrive, such as ``"10 seconds"``, or a timedelta. Events are
        held until Spark's watermark, which is so far behind the latest event, has passed them. ``None``: the events have a
        watermark on ``time`` already.
    speculation
        Streaming: how far answers go ahead of what is certain. 0: a match comes when the watermark has passed its last event, and
        stays. Else, of automata and queries that can be one, the result has a column ``sign``: a match comes (+1) with the
        micro-batch that brings its last event, if that is before the watermark plus so much (``"30 seconds"``, ticks;
        ``math.inf``: always), and is taken back (−1) when a late event says so; counts and sums over all matches are those of the
        events so far. A batch is certain.
    late
        Streaming: what becomes of events behind the watermark. ``"drop"`` counts them (see :func:`stretto.spark.metrics`),
        ``"error"`` ends the query, ``"side"`` shows them in a column ``late`` of the result, in rows of their own.
    event_id
        A column that tells duplicates: only the first event of an id is taken. Streaming: as long as the watermark has not
        passed the event by its delay; duplicates must have the same partition attributes.
    buckets
        Streaming: into how many buckets keys are hashed; each has one state. ``None``: 64. A checkpoint is bound to it.
    slices
        Batch: into how many time slices the events are cut, or those of each key that holds more than a fair share of them, so
        that several tasks match them. The result is the same. ``None``: as many as pay; 1: never.
        :func:`stretto.spark.explain` shows what comes of it.
    budget
        How much one task may list (streaming: for one bucket in one micro-batch): a number of rows, bytes such as ``"2 GiB"``, or
        ``math.inf``. ``None``: the matches of one event may take a quarter of the memory that its worker finds. What would be more
        ends the task; the text of the exception holds the ``LimitError``, as that of :func:`stretto.match`.
    sign
        A column that says +1 of an event that comes, and −1 of one that is taken back and shown as it was; an event that is revised
        is taken back and comes anew. In a batch, and in a micro-batch, the order of the rows means nothing. In a stream, what
        is taken back may have come before, and must not be late; a retraction of what is not there goes the way of ``late``, and
        in a batch is an error.
    arcs
        Automata: a DataFrame of changes of arcs, batch or streaming, with the columns ``action`` (``"add"`` or ``"retire"``),
        ``id``, ``source``, ``target``, ``when``, ``then``, ``kind``, ``final``, ``since`` and ``until``
        (:meth:`stretto.Matcher.push`): an arc holds for the events from ``since`` on and before ``until``.
    until, bag, numbered
        Automata: as in :class:`stretto.Matcher`.

    Returns
    -------
    pyspark.sql.DataFrame
        One row a match: ``start_time``, ``end_time``, the partition attributes, and for each selected
        variable an array of its events (structs); of an automaton ``until`` and ``register`` in their place; of a query that counts
        and adds up over all matches its columns. Streaming results are written in append mode.

    Raises
    ------
    QueryError
        The query is wrong or does not fit the columns.
    DataError
        A column that was named is not there. A NULL time is found when Spark runs, and then the text of the
        ``PythonException`` that Spark raises holds the ``DataError``.
    OptionError
        There is no time column or no watermark, an option does not fit, or PySpark is not installed.

    Examples
    --------
    >>> from stretto import spark
    >>> rows = [("A", 1, "x"), ("B", 2, "x"), ("B", 3, "y")]
    >>> events = spark.session().createDataFrame(rows, "type string, t int, k string")
    >>> found = spark.match(events, "SELECT * FROM S WHERE A ; B AS b PARTITION BY [k] WITHIN 60 [t]", time="t")
    >>> found.select("k", "start_time", "end_time", "b.t").collect()
    [Row(k='x', start_time=1, end_time=2, t=[2])]
    """
    if isinstance(df, str | Query) or is_afa(df):
        raise OptionError("on Spark the DataFrame comes first, and then the query: match(df, query)")
    if unknown:
        raise not_taken(unknown)
    if partitions is not None and partitions < 1:
        raise OptionError(f"partitions={partitions}: give a positive number, or None to let Spark decide")
    check_slices(slices)
    continuous = Continuous.of(disorder, late, event_id, buckets, speculation=speculation, sign=sign)
    shared: dict[str, Any] = {"time": time, "sequence": sequence, "time_unit": time_unit, "budget": budget}
    of_queries: dict[str, Any] = {"type": type, "stream": stream, "output": output, "valuations": valuations}
    of_queries |= {"language": language, "at_end": at_end, "timeouts": timeouts}
    of_automata: dict[str, Any] = {"arcs": arcs, "until": until, "bag": bag, "numbered": numbered}
    if is_automaton(query, language):
        automaton = automata.prepare(df, query, continuous, **shared, **of_automata, **of_queries, slices=slices)
        return automata.match(automaton, continuous, partitions)
    others = {name: value for name, value in of_automata.items() if value}
    refuse(others, automata.OWN, "AFAs, and this is a query")
    assert not is_afa(query)
    prepared = prepare(df, query, **shared, **of_queries, continuous=continuous)
    if prepared.events.isStreaming:
        return streaming.match(prepared, continuous)
    settled = settled_events(prepared.events, prepared.columns, prepared.order, continuous)
    return batch.match(replace(prepared, events=settled), partitions=partitions, slices=slices)


def not_taken(given: dict[str, Any], call: str = "match") -> Exception:
    """The error of arguments that there are not; of one that :class:`~stretto.Matcher` has, why, and what to do."""
    why = next((NOT_HERE[name] for name in given if name in NOT_HERE), None)
    if why is not None:
        return OptionError(why)
    return unexpected(f"{call}() got an unexpected keyword argument", given, signature(match).parameters)


def is_automaton(query: Any, language: str | None) -> bool:
    """Whether a call is of an automaton."""
    return is_afa(query) or language == AUTOMATON


def prepare(  # noqa: PLR0913 - the options that users have
    df: DataFrame | Mapping[str, DataFrame],
    query: str | Query,
    *,
    type: str | None,
    time: str | None,
    sequence: str | None,
    stream: str | None,
    time_unit: str | None,
    output: str,
    valuations: bool,
    language: str | None,
    continuous: Continuous,
    budget: int | float | str | None = None,
    at_end: str = "complete",
    timeouts: bool = False,
) -> Prepared:
    """Check a call against its DataFrame."""
    require_pyspark()
    completes = Reading(at_end=at_end).completes
    Budget(budget)  # raises
    compiled = compile_query(query, language=language)
    refuse_unlisted(compiled)
    refuse_pipes(compiled, "Spark finds matches side by side", "sort the result: matches.orderBy('end_time').limit(n)")
    if valuations and compiled.parsed.keep is not None:
        raise OptionError(NO_VALUATIONS)
    type, time, stream, time_unit = compiled.roles(type, time, stream, time_unit)
    if time is None:
        raise OptionError("name the time column, time='…': on Spark the order in which rows arrive means nothing")
    df = with_role_fields(df, (type, time, sequence, stream))
    events, stream = one_dataframe(streaming.with_watermark(df, time, time_unit, continuous.disorder), compiled, stream)
    parts = [attribute for key in compiled.parsed.joined for _, attribute in key.parts]
    events = with_fields(events, (*compiled.parsed.read, *parts, *filter(None, (type, sequence, stream))))
    fields = arrow_fields(events)
    for name, role in ((time, "time"), (sequence, "sequence"), (stream, "stream"), (type, "type")):
        if name is not None:
            require(fields, name, role)

    # Bind to all columns, so that mistakes show now; then again to those that the query and its result need.
    chosen = roles_of(type, time, stream, None, time_unit)
    check_sign(fields, continuous.sign)
    fields.pop(continuous.sign or "", None)
    known = {name: kind for name, kind in fields.items() if kind is not None}
    for key in compiled.parsed.joined:
        refuse_name_of(key, known)
    layout = Layout(compiled.bind(Schema(known, **chosen)).bound, output=output, positions=False, timeouts=timeouts)
    if timeouts:
        _check_timeouts(layout, time, continuous)
    wanted = {*layout.query.tested, *layout.columns, *parts}
    unreadable = [name for name in fields if name not in known]
    if unreadable and output == "events" and compiled.parsed.shows_everything:
        raise OptionError(f"column '{unreadable[0]}' has a type that Arrow cannot carry: drop it, or cast it")
    columns = {name: kind for name, kind in known.items() if name in wanted}
    bound = compiled.bind(Schema(columns, **chosen))
    call = Prepared(
        events,
        bound,
        columns,
        (type, time, stream, time_unit),
        sequence,
        output,
        valuations,
        budget,
        functions.paths(compiled.calls),
        # In a stream, events without a key that conditions say may be late, or taken back; and each first event may time out. What is
        # chosen is of the keys that are written.
        not timeouts
        and compiled.parsed.asked is None
        and (
            not events.isStreaming
            or (continuous.late == "drop" and continuous.sign is None and not continuous.speculation)
        ),
        completes,
        timeouts,
    )
    _check_asked(call, continuous)
    _check_end(call)
    return call


def _check_asked(call: Prepared, continuous: Continuous) -> None:
    """Raise an :class:`OptionError` where tasks that see some of the keys, or of a stream, cannot tell of all matches."""
    asked, streams = call.query.parsed.asked, call.events.isStreaming
    if asked is None:
        return
    call.query.program(valuations=call.valuations, timeouts=call.timeouts)  # what no engine does is refused here
    if isinstance(asked, Totals):
        _check_totals(call, ahead=bool(continuous.speculation))
        return
    what, scope = "ORDER BY … LIMIT" if isinstance(asked, Best) else "SAMPLE", asked.scope
    if scope.extent is Extent.EVENT:
        return
    if streams:
        raise OptionError(
            f"{what} in a stream on Spark, which has no end: EVERY EVENT chooses among the matches of each event, a Matcher among "
            "those of windows"
        )
    bound = call.query.bound.asked
    assert bound is not None
    if not set(call.keys) <= {one.attribute for one in bound.scope.groups if one.variable is None}:
        raise OptionError(
            f"{what} with GROUP BY on Spark: each task chooses for its own keys; leave GROUP BY out, and choose among the rows"
        )


def _check_totals(call: Prepared, *, ahead: bool) -> None:
    """Raise an :class:`OptionError` where the rows of tasks, or of buckets, are not those of the whole; ``ahead``: speculating."""
    assert call.totals is not None
    scope, time = call.totals.scope, call.roles[1]
    if call.adds_up and any(one.function is Function.AVG for one in call.totals.items):
        raise OptionError(
            "AVG with GROUP BY on Spark: each task has the mean of its own keys, of which no mean of all is made; write SUM and "
            "COUNT, and divide, or group by all keys"
        )
    if not call.events.isStreaming or scope.extent is Extent.EVENT:
        return
    if call.adds_up and (ahead or scope.extent is Extent.WINDOW):
        raise OptionError(
            "GROUP BY with windows of a stream on Spark, or with speculation=: each bucket adds up over its own keys; group by all "
            "keys, and add up the rows of a window, or those that hold"
        )
    if scope.extent is Extent.TABLE:
        if ahead:
            return
        raise OptionError(
            "counts and sums over all matches of a stream on Spark, which has no end: EVERY EVENT gives a row for each event, "
            "WITHIN 10 minutes EVERY 1 minute for each window, and speculation= what they come to so far"
        )
    if scope.panes is None or scope.panes.attribute != time:
        raise OptionError(
            f"windows of a stream on Spark end when the watermark has passed them: measure them by '{time}', or write EVERY EVENT"
        )


def _check_end(call: Prepared) -> None:
    """Raise an :class:`OptionError` where it is not known how far time has come when the events end, and that matters."""
    if call.events.isStreaming and not call.completes:
        raise OptionError(
            "at_end= is for batches: a stream does not end, and what waits comes when the watermark has passed it; leave it out"
        )
    window, time = call.query.bound.window, call.roles[1]
    if call.drops and window is not None and window.attribute not in (None, time):
        raise OptionError(
            f"at_end='drop' on Spark asks how far '{time}' has come, and the window measures '{window.attribute}': measure it by "
            f"'{time}', or name time='{window.attribute}'"
        )


def _check_timeouts(layout: Layout, time: str, continuous: Continuous) -> None:
    """Raise an :class:`OptionError` where tasks that see some of the events cannot tell which windows are closed."""
    window = layout.query.window
    if window is not None and window.attribute not in (None, time):
        raise OptionError(
            f"timeouts= on Spark needs a window of '{time}', and this one measures '{window.attribute}': no task sees how far it has "
            "come in the events of the others"
        )
    if continuous.speculation:
        raise OptionError("timeouts= is for matches that are not taken back: leave out speculation=")
