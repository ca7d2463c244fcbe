"""``stretto.spark.match_patterns``: many patterns over one DataFrame in one pass, which may change while a query runs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.events import require
from stretto.frame import arrow_table
from stretto.languages.afa.builder import AFA, is_afa
from stretto.matching.compiled import Query
from stretto.matching.executors.base import Reading
from stretto.matching.pattern_set.afa_run import LANGUAGE, text_of
from stretto.matching.pattern_set.changes import Change
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.matching.pattern_set.with_metadata import EVERY, UNTIL, AnnotatedPatternSet
from stretto.query.afa import Afa
from stretto.spark.batch.run import latest_of
from stretto.spark.batch.survey import tasks_for
from stretto.spark.batch.worker import Roles, pieces, whole_tables
from stretto.spark.compat import named, to_arrow
from stretto.spark.frames import (
    arrow_fields,
    check_dataframe,
    column,
    ordered_by_key,
    spark_schema,
    with_role_fields,
    without_duplicates,
)
from stretto.spark.kernels import ship
from stretto.spark.options import Continuous
from stretto.spark.sessions import require_pyspark
from stretto.spark.streaming import query as streaming
from stretto.spark.streaming.packing import write_table
from stretto.spark.streaming.runs import ManyPatterns, rehearse
from stretto.spark.workers import worker_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The most buckets that changes are sent to.
MOST_BUCKETS = 4096


@check_arguments
def match_patterns(  # noqa: PLR0913 - the options that users have
    df: DataFrame,
    patterns: DataFrame | pa.Table | Mapping[str, str | Query | AFA | Afa] | Iterable[Change],
    *,
    by: str | Iterable[str] = (),
    type: str | None = "type",
    time: str,
    sequence: str | None = None,
    stream: str | None = None,
    time_unit: str | None = None,
    output: str = "events",
    valuations: bool = False,
    language: str | None = None,
    partitions: int | None = None,
    disorder: str | dt.timedelta | None = None,
    speculation: Any = 0,
    late: str = "drop",
    event_id: str | None = None,
    buckets: int | None = None,
    budget: int | float | str | None = None,
    on_limit: str = "error",
    shown: str | Iterable[str] = (),
    totals: bool = False,
    measures: bool = False,
    late_changes: str | None = None,
    at_end: str = "complete",
) -> DataFrame:
    """Find the complex events of many patterns in a DataFrame, batch or streaming.

    A pattern holds from the event time ``since`` of the change that gives it until that of the next change of its id, and sees
    exactly the events in between (:class:`stretto.PatternSet`). The patterns' conditions are evaluated once for all.

    Parameters
    ----------
    df
        The events.
    patterns
        Queries, automata (:class:`stretto.AFA`) and ``MATCH_RECOGNIZE`` clauses by id, or changes (:class:`stretto.Change`), or a
        DataFrame or Arrow table with a row for each change: ``id``, ``query`` (NULL retires the pattern), perhaps
        ``since`` (NULL: from the start),
        ``until`` (the first time at which it holds no more), ``language`` (``"afa"``: ``query`` is the text of an automaton,
        :func:`stretto.read_afa`) and
        ``every``, a span of time as text: of the pattern's matches with the same keys, one that ends less than this
        after the last one that was given is left out and counted. A streaming DataFrame changes the patterns of a continuous query
        while it runs; it must have no watermark. A change whose ``since`` the watermark of the events has passed is late, and goes
        the way of ``late``; so does one whose query is wrong. Both are counted (:func:`stretto.spark.metrics`).
    by
        Attributes that every pattern's ``PARTITION BY`` contains: the events are distributed by them. Without, all events
        go through one task.
    on_limit
        As in :class:`stretto.PatternSet`; by task, or by bucket of a stream. With ``"disable"`` the result has a column
        ``disabled``, NULL in matches; a pattern that is switched off has a row with the reason there.
    shown
        Columns of ``patterns`` with texts that matches show, such as a title.
    totals, measures
        As in :class:`stretto.PatternSet`; in a stream patterns that count and add up need EVERY.
    late_changes
        What becomes of changes whose ``since`` is missing, or passed by the watermark. ``None``: they are late. ``"now"``: they hold
        from the watermark of their micro-batch on, and a pattern whose query stays the same goes on. Where there is a column
        ``until``, a change is all that is to come of its pattern.
    at_end
        Of a batch. ``"complete"``: what waits for time to pass when the events end is complete. ``"drop"``: what the time of all
        events has not decided is left out, and the result has a column ``undecided``, NULL in matches; a pattern has a row there with
        the number of such matches, −1 where they are too many to be counted, for each task where it has some. A stream does not end.
    type, time, sequence, stream, time_unit, output, valuations, language, partitions, disorder, speculation, late, event_id, \
buckets, budget
        As in :func:`stretto.spark.match`; ``output`` is ``"events"`` or ``"positions"``.

    Returns
    -------
    pyspark.sql.DataFrame
        One row a match: ``pattern`` (its id), the columns ``shown``, ``since``, ``start_time``, ``end_time``, the attributes of
        ``by``, ``keys`` (other partition attributes as text, by name), and ``events``, an array of structs ``variable`` and
        ``event``.

    Raises
    ------
    QueryError
        A pattern is wrong, does not fit the columns, or is not partitioned by all of ``by``.
    DataError
        A column that was named is not there.
    OptionError
        An option does not fit.

    Examples
    --------
    >>> from stretto import spark
    >>> rows = [("A", 1, "x"), ("B", 2, "x"), ("C", 3, "x")]
    >>> events = spark.session().createDataFrame(rows, "type string, t int, k string")
    >>> patterns = {name: f"SELECT * FROM S WHERE A ; {name} PARTITION BY [k]" for name in ("B", "C")}
    >>> found = spark.match_patterns(events, patterns, by=["k"], time="t")
    >>> sorted(tuple(row) for row in found.select("pattern", "k", "start_time", "end_time").collect())
    [('B', 'x', 1, 2), ('C', 'x', 1, 3)]
    """
    require_pyspark()
    continuous = Continuous.of(disorder, late, event_id, buckets, speculation=speculation)
    if continuous.speculation:
        raise OptionError(
            f"speculation={speculation!r}: patterns wait for the watermark, for their engines read events in order; match() of one "
            "SASE+ query or automaton answers ahead"
        )
    if on_limit not in ("error", "disable"):
        raise OptionError(f"on_limit={on_limit!r}: expected 'error' or 'disable'")
    if late_changes not in (None, "now"):
        raise OptionError(f"late_changes={late_changes!r}: expected 'now' or None")
    completes = Reading(at_end=at_end).completes
    if not completes and df.isStreaming:
        raise OptionError(
            "at_end= is for batches: a stream does not end, and what waits comes when the watermark has passed it"
        )
    continuous = replace(continuous, changes_now=late_changes == "now")
    shown = (shown,) if isinstance(shown, str) else tuple(shown)
    check_dataframe(df, "df")
    by = (by,) if isinstance(by, str) else tuple(by)
    df = with_role_fields(df, (type, time, sequence, stream, event_id, *by))
    events = streaming.watermarked(df, time, time_unit, continuous.disorder)
    columns = _columns(
        events, {"time": time, "sequence": sequence, "stream": stream, "type": type, "event_id": event_id}
    )
    roles: Roles = (type, time, stream, time_unit)
    changes = None
    if (given := _dataframe(patterns)) is not None:
        kinds = _kinds(columns[time], given.columns, shown)
        given = streaming.changes_of(given, "patterns", pa.schema(list(kinds.items())), ("id", "query", *shown))
        if given.isStreaming:
            changes = given
        else:
            patterns = to_arrow(given)
    schema = pa.schema(list(columns.items())).serialize().to_pybytes()
    known = _known(patterns, changes, columns[time], shown)
    adds_up = "every" if totals and events.isStreaming else totals
    run = ManyPatterns(
        schema,
        roles,
        output,
        valuations,
        by,
        language,
        known,
        budget,
        shown,
        on_limit,
        adds_up,
        measures,
        not completes,
    )
    result = run.start().output_schema  # patterns that are wrong show here
    if not events.isStreaming:
        if changes is not None:
            raise OptionError("the patterns are a stream, and the events are not: give a table of patterns")
        return _batch(events, run, columns, sequence, event_id, partitions, result)
    settings = streaming.settings_of(events, roles, sequence, continuous, alone=not run.by)
    if changes is not None and settings.buckets > MOST_BUCKETS:
        raise OptionError(f"buckets={settings.buckets}: every change goes to every bucket; give at most {MOST_BUCKETS}")
    flow = streaming.Flow(events, columns, tuple(map(column, run.by)), None, run.plain, result, changes)
    return streaming.run(flow, settings)


def _dataframe(patterns: Any) -> Any:
    return patterns if hasattr(patterns, "isStreaming") else None


def _columns(df: DataFrame, named: Mapping[str, str | None]) -> dict[str, pa.DataType]:
    """The columns that travel: all that Arrow can carry, since any pattern may ask for any."""
    known = {name: kind for name, kind in arrow_fields(df).items() if kind is not None}
    for role, name in named.items():
        if name is not None:
            require(known, name, role)
    return known


def _kinds(time: pa.DataType, given: Iterable[str], shown: Sequence[str]) -> dict[str, pa.DataType]:
    """The columns of changes; ``every`` and ``until`` where they are among those that are given."""
    kinds = {"id": pa.string(), "query": pa.string(), "since": time, "language": pa.string()}
    noted = {name: kind for name, kind in ((EVERY, pa.string()), (UNTIL, time)) if name in given}
    return kinds | noted | dict.fromkeys(shown, pa.string())


def _known(patterns: Any, changes: DataFrame | None, kind: pa.DataType, shown: Sequence[str]) -> bytes:
    """The patterns that are known from the start, as a table in bytes."""
    if changes is not None:
        noted = EVERY in changes.columns or UNTIL in changes.columns
        rows = pa.table({name: [] for name in ("id", "query", *((EVERY,) if noted else ()))})
    elif isinstance(patterns, pa.Table):
        rows = patterns
    elif isinstance(patterns, Mapping):
        rows = pa.Table.from_pylist([_plain(Change(name, query)) for name, query in patterns.items()])
    else:
        listed = list(patterns)
        if wrong := [one for one in listed if not isinstance(one, Change)]:
            raise OptionError(f"patterns are queries by id, Changes or a DataFrame, not {wrong[0].__class__.__name__}")
        rows = pa.Table.from_pylist([_plain(change) for change in listed])
    if not rows.num_rows and changes is None:
        raise OptionError("there are no patterns: give one, or a stream of them")
    columns = _kinds(kind, rows.column_names, shown)
    given = {name: rows.column(name) if name in rows.column_names else None for name in columns}
    try:
        typed = {
            name: pa.nulls(rows.num_rows, kind) if value is None else value.cast(kind)
            for (name, value), kind in zip(given.items(), columns.values(), strict=True)
        }
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise OptionError(f"the patterns' columns do not fit: {error}") from error
    return write_table(pa.table(typed))


def _plain(change: Change) -> dict[str, Any]:
    query, language = None if change.query is None else str(change.query), change.language
    if is_afa(change.query):
        query, language = _written(change.id, change.query.frozen), LANGUAGE
    if isinstance(change.query, Query):
        language = change.query.language
    since = change.since.as_py() if isinstance(change.since, pa.Scalar) else change.since
    return {"id": change.id, "query": query, "since": since, "language": language}


def _written(name: str, afa: Afa) -> str:
    """An automaton as text, in which it travels."""
    found = text_of(afa)
    if found is None:
        raise OptionError(
            f"pattern '{name}': the AFA has a Python function, and patterns go to workers as texts: write it over e. and r., or "
            "give the automaton to stretto.spark.match"
        )
    return found


def _batch(
    events: DataFrame,
    run: ManyPatterns,
    columns: Mapping[str, pa.DataType],
    sequence: str | None,
    event_id: str | None,
    partitions: int | None,
    result: pa.Schema,
) -> DataFrame:
    if event_id is not None:
        events = without_duplicates(events, event_id)
    time = run.roles[1]
    order = [time] if sequence is None or sequence == time else [time, sequence]
    latest = None if not run.counts else latest_of(events, time, columns[time])
    ordered = ordered_by_key(events, columns, run.by, order, tasks_for(events, partitions))
    ship(events.sparkSession, lambda: rehearse(run))
    worker = named(partial(run_patterns, latest=latest, **run.plain), run.text)
    return ordered.mapInArrow(worker, spark_schema(result))


@worker_task
def run_patterns(
    batches: Iterator[pa.RecordBatch], latest: bytes | None = None, **task: Any
) -> Iterator[pa.RecordBatch]:
    """All patterns over one task's rows, which come ordered by time; ``latest``: the latest time of all tasks, where the end decides
    nothing."""
    run = ManyPatterns(**task)
    kinds = pa.ipc.read_schema(pa.py_buffer(run.schema))
    patterns: PatternSet | AnnotatedPatternSet | None = None
    for table in whole_tables(batches, kinds):
        if patterns is None:
            patterns = run.start()
        for found in patterns.iter_push(table):
            yield from pieces(found)
    if patterns is None:
        return
    if latest is None:
        yield from pieces(patterns.finish())
        return
    assert isinstance(patterns, AnnotatedPatternSet)
    yield from pieces(patterns.advance(arrow_table(latest).column(0)[0]))
    yield from pieces(patterns.left())
