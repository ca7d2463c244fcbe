"""``stretto.spark.match`` of an automaton: over batches sorted by time, over streams through buckets that revise."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.budget import Budget
from stretto.errors import OptionError
from stretto.events import require
from stretto.languages.afa.written import function_paths, read_afa, write_afa
from stretto.matching.executors.choose import OF_QUERIES, refuse
from stretto.query.afa import Afa
from stretto.spark.batch.survey import tasks_for
from stretto.spark.batch.worker import check_times, pieces, whole_tables
from stretto.spark.compat import named, to_arrow
from stretto.spark.frames import (
    arrow_fields,
    check_dataframe,
    check_sign,
    column,
    ordered_by_key,
    settled_events,
    spark_schema,
)
from stretto.spark.kernels import ship
from stretto.spark.options import Continuous
from stretto.spark.revised import AFA, Revised
from stretto.spark.sessions import require_pyspark
from stretto.spark.streaming import query as streaming
from stretto.spark.streaming.packing import write_table
from stretto.spark.workers import worker_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("stretto")

#: The options of automata alone.
OWN = ("arcs", "until", "bag", "numbered")

#: The columns of changes of arcs, but for the times.
_ARCS = ("action", "id", "source", "target", "when", "then", "kind", "final")


@dataclass(frozen=True)
class Prepared:
    """A call, checked."""

    events: DataFrame
    afa: Afa
    run: Revised
    #: The columns that travel, in the order of the DataFrame.
    columns: Mapping[str, pa.DataType]
    #: Those that order the stream.
    order: tuple[str, ...]
    #: Changes of arcs that come as a stream.
    changes: DataFrame | None = None

    @property
    def task(self) -> dict[str, Any]:
        return self.run.plain

    @property
    def result(self) -> pa.Schema:
        return self.run.result

    @property
    def keys(self) -> tuple[str, ...]:
        return self.afa.partition_by


def prepare(  # noqa: PLR0913 - the options that users have
    df: DataFrame,
    query: Any,
    options: Continuous,
    *,
    time: str | None,
    sequence: str | None = None,
    time_unit: str | None = None,
    arcs: Any = None,
    until: str | None = None,
    bag: bool = False,
    numbered: str | None = None,
    budget: int | float | str | None = None,
    **others: Any,
) -> Prepared:
    """Check a call against its DataFrame; ``others`` are of queries alone, and must say nothing."""
    refuse(
        {name: value for name, value in others.items() if value and value not in ("type", "events", "complete", AFA)},
        (*OF_QUERIES, "slices"),
        "queries in CEQL or SASE+, and this is an AFA",
    )
    if isinstance(df, Mapping):
        raise OptionError(
            "an AFA reads one DataFrame: put its streams together by unionByName, with a column that tells them apart"
        )
    if time is None:
        raise OptionError("an AFA needs the column that orders the stream: time='…'")
    require_pyspark()
    check_dataframe(df, "df")
    Budget(budget)  # raises
    df = streaming.watermarked(df, time, time_unit, options.disorder)
    fields = arrow_fields(df)
    afa = (
        read_afa(query, {name: kind for name, kind in fields.items() if kind})
        if isinstance(query, str)
        else query.frozen
    )
    if not afa.arcs and arcs is None:
        raise OptionError("the AFA has no arcs, so that nothing can match: afa.arc(source, target, when=…), or arcs=…")
    named = {"time": time, "sequence": sequence, "until": until, "numbered": numbered, "event_id": options.event_id}
    for role, name in named.items():
        if name is not None:
            require(fields, name, role)
    for name in afa.events:
        require(fields, name, "attribute")
    check_sign(fields, options.sign)
    wanted = {*afa.events, *(name for name in named.values() if name is not None)}
    if options.late == "side" and df.isStreaming:
        wanted |= {name for name, kind in fields.items() if kind is not None}
    columns = {name: kind for name, kind in fields.items() if name in wanted and name != options.sign}
    if unreadable := [name for name, kind in columns.items() if kind is None]:
        raise OptionError(f"column '{unreadable[0]}' has a type that Arrow cannot carry: drop it, or cast it")
    known = {name: kind for name, kind in columns.items() if kind is not None}
    changes, static = (None, None) if arcs is None else _changes(arcs, known[time])
    own = {"until": until, "numbered": numbered, "bag": bag or None}
    if options.sign is not None and df.isStreaming:
        own["sign"] = options.sign
    run = Revised(
        write_afa(afa),
        AFA,
        pa.schema(list(known.items())).serialize().to_pybytes(),
        (None, time, None, time_unit),
        sequence,
        "events",
        streaming.ticks_ahead(options, known[time], time, time_unit) if df.isStreaming else 0,
        {name: value for name, value in own.items() if value is not None},
        static,
        budget,
        tuple((path, path) for path in function_paths(afa)),
    )
    run.result  # noqa: B018 - columns and options that do not fit show here
    order = tuple(dict.fromkeys(name for name in (time, sequence or numbered) if name is not None))
    return Prepared(df, afa, run, known, order, changes)


def match(call: Prepared, options: Continuous, partitions: int | None) -> DataFrame:
    """The outputs of a checked automaton as a DataFrame."""
    if not call.keys:
        log.warning(
            "the automaton relates all events (no partition_by): it runs in one ordered pass, in one task, on one core whatever "
            "the cluster has"
        )
    roles, sequence = call.run.roles, call.order[1] if len(call.order) > 1 else None
    if not call.events.isStreaming:
        if call.changes is not None:
            raise OptionError("the arcs are a stream, and the events are not: give a table of changes")
        ship(call.events.sparkSession, call.run.start)
        worker = named(partial(run_automaton, **call.run.plain), "an automaton")
        events = settled_events(call.events, call.columns, (), options)
        rows = ordered_by_key(events, call.columns, call.keys, call.order, tasks_for(events, partitions))
        return rows.mapInArrow(worker, spark_schema(call.run.result))
    columns = streaming.signed(call.columns, options.sign)
    keys = tuple(map(column, call.keys))
    lag = None if options.speculation else 0
    flow = streaming.Flow(call.events, columns, keys, None, call.run.plain, call.run.result, call.changes, lag=lag)
    return streaming.run(flow, streaming.settings_of(call.events, roles, sequence, options, alone=not call.keys))


@worker_task
def run_automaton(batches: Iterator[pa.RecordBatch], **task: Any) -> Iterator[pa.RecordBatch]:
    """An automaton over one task's rows, which come ordered by time."""
    run = Revised(**task)
    kinds = pa.ipc.read_schema(pa.py_buffer(run.schema))
    time = run.roles[1]
    matcher = None
    for table in whole_tables(batches, kinds):
        check_times(table, time)
        if matcher is None:
            matcher = run.start(ordered=True)
        yield from pieces(run.shown(matcher.push(table)))
        if run.changes is not None:  # the events are kept until nothing can concern them
            now = table.column(time)[-1].as_py()
            yield from pieces(run.shown(matcher.advance_arcs(now)))
            yield from pieces(run.shown(matcher.advance(now)))
    if matcher is not None:
        yield from pieces(run.shown(matcher.finish()))


def _changes(arcs: Any, kind: pa.DataType) -> tuple[DataFrame | None, bytes]:
    """Changes of arcs: the streaming DataFrame of them, and those that are known from the start."""
    schema = pa.schema([*((name, pa.string()) for name in _ARCS), ("since", kind), ("until", kind)])
    if not hasattr(arcs, "isStreaming"):
        raise OptionError(f"arcs= takes a DataFrame of changes, not {type(arcs).__name__}")
    typed = streaming.changes_of(arcs, "arcs", schema, ("action", "id"))
    if typed.isStreaming:
        return typed, write_table(schema.empty_table())
    return None, write_table(to_arrow(typed).cast(schema))
