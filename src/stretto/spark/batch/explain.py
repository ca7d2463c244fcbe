"""``stretto.spark.explain``: what a query means and how Spark runs it, as text."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.explaining.afa import explain_afa
from stretto.spark import automata
from stretto.spark.batch import plan as plans
from stretto.spark.batch.plan import Heavy, Plan
from stretto.spark.batch.slices import Slices
from stretto.spark.batch.survey import key_hash
from stretto.spark.call import is_automaton, match, not_taken, prepare
from stretto.spark.columns import relevant_text
from stretto.spark.frames import column, settled_events
from stretto.spark.options import BUCKETS, Continuous
from stretto.spark.prepared import Prepared
from stretto.spark.streaming import query as streaming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: So many borders of slices are shown.
SHOWN = 8


@check_arguments(like=match)
def explain(df: DataFrame | Mapping[str, DataFrame], query: Any, **options: Any) -> str:
    """What a query means, and how :func:`stretto.spark.match` would run it over these events.

    Looks at the events as ``match`` does, with small Spark jobs where they are many, and matches nothing.

    Parameters
    ----------
    df, query
        As for :func:`stretto.spark.match`.
    options
        As for :func:`stretto.spark.match`.

    Returns
    -------
    str
        The text of :meth:`stretto.Query.explain`, then "How it runs on Spark": the columns that are read, the filter before
        the shuffle, which events meet in a task, the borders of time slices, and why nothing is cut where nothing is.

    Raises
    ------
    QueryError, DataError, OptionError
        As :func:`stretto.spark.match`.

    Examples
    --------
    >>> from stretto import spark
    >>> events = spark.session().createDataFrame([("A", 1), ("B", 2)], "type string, t int")
    >>> text = spark.explain(events, "SELECT * FROM S WHERE A ; B WITHIN 60 [t]", time="t")
    >>> "How it runs on Spark" in text
    True
    """
    arguments = inspect.signature(match).bind(df, query, **options)
    arguments.apply_defaults()
    given = dict(arguments.arguments)
    if unknown := given.pop("unknown"):
        raise not_taken(unknown, "explain")
    del given["df"], given["query"]
    partitions, slices = given.pop("partitions"), given.pop("slices")
    plans.check_slices(slices)
    names = [name for name in inspect.signature(Continuous.of).parameters if name in given]
    continuous = Continuous.of(**{name: given.pop(name) for name in names})
    if is_automaton(query, given["language"]):
        automaton = automata.prepare(df, query, continuous, **given, slices=slices)
        return "\n".join([explain_afa(automaton.afa), "", "How it runs on Spark", *_automaton(automaton, continuous)])
    of_queries = {name: value for name, value in given.items() if name not in automata.OWN}
    call = prepare(df, query, **of_queries, continuous=continuous)
    means: Callable[[], str] = partial(call.query.explain, timeouts=call.timeouts)
    if call.events.isStreaming:
        lines = _streaming(call, continuous)
        if continuous.speculation:
            means = streaming.ahead(streaming.with_columns(call, continuous), continuous).start().explain
    else:
        call = replace(call, events=settled_events(call.events, call.columns, call.order, continuous))
        lines = _batch(call, plans.make(call, partitions=partitions, slices=slices))
    return "\n".join([means(), "", "How it runs on Spark", *lines])


def _section(title: str, *body: str) -> Iterator[str]:
    for number, line in enumerate(body):
        yield f"{'' if number else title:<11}{line}"


def _common(call: Prepared | automata.Prepared) -> Iterator[str]:
    read = [*call.columns, *(name for name in call.order if name not in call.columns)]
    yield from _section("columns", f"{', '.join(read)} ({len(read)} of {len(call.events.columns)})")


def _automaton(call: automata.Prepared, continuous: Continuous) -> Iterator[str]:
    yield from _common(call)
    if call.events.isStreaming:
        yield from _continuously(continuous, bool(call.keys))
    else:
        tasks = f"hashed by {', '.join(call.keys)}" if call.keys else "one task for all events"
        yield from _section("tasks", f"{tasks}, in the order of time; an automaton is not cut in time")


def _streaming(call: Prepared, continuous: Continuous) -> Iterator[str]:
    yield from _common(call)
    yield from _continuously(continuous, bool(call.keys))


def _continuously(continuous: Continuous, keyed: bool) -> Iterator[str]:
    buckets = continuous.buckets or BUCKETS
    whole = f"keys hashed into {buckets} buckets with one state each" if keyed else "one state, in one task"
    when = "events are held until the watermark has passed them"
    if continuous.speculation:
        when = "answers go ahead of the watermark, and are taken back where a late event says so"
    yield from _section("tasks", f"continuously: {when}; {whole}")


def _batch(call: Prepared, plan: Plan) -> Iterator[str]:
    yield from _common(call)
    yield from _section("filter", relevant_text(call.query) or "none: every event can matter")
    kind = call.columns[call.roles[1]]
    if plan.slices is not None:
        how = "each reads its own part of the files, nothing is shuffled" if plan.scans else "shuffled by slice"
        yield from _section("tasks", *_slices(plan.slices, call, kind), how)
        return
    if not plan.keyed:
        yield from _section("tasks", "one task for all events, in the order of time", f"not cut in time: {plan.why}")
        return
    tasks = "as many tasks as Spark decides" if plan.tasks is None else f"{plan.tasks} tasks"
    yield from _section("tasks", f"hashed by {', '.join(call.keys)} into {tasks}, each in the order of time")
    if not plan.heavy:
        yield from _section("", f"no key is cut in time: {plan.why}")
    if call.adds_up:
        yield from _section("", "Spark adds up the rows of all tasks")
    for heavy in plan.heavy:
        yield from _section("", *_heavy(heavy, plan, call, kind))


def _slices(slices: Slices, call: Prepared, kind: pa.DataType) -> Iterator[str]:
    window = call.query.bound.window
    exactly = window is not None and window.attribute == call.roles[1]
    context = "one window" if exactly else "at least one window"
    yield f"cut into {slices.count} time slices; each reads {context} before it as context,"
    yield f"about {slices.overlap:.1%} of the events once more, and reports the matches that end in it"
    yield f"they begin at: the first event, {_borders(slices, kind)}"


def _heavy(heavy: Heavy, plan: Plan, call: Prepared, kind: pa.DataType) -> Iterator[str]:
    first, *rest = _slices(heavy.slices, call, kind)
    yield f"{_example(heavy, plan, call)}, with about {heavy.share:.0%} of the events, is {first}"
    yield from rest


def _example(heavy: Heavy, plan: Plan, call: Prepared) -> str:
    """A key with the hash."""
    from pyspark.sql import functions as F

    keys = call.keys
    found = plan.rows.filter(key_hash(keys) == heavy.hash).select(F.to_json(F.struct(*map(column, keys)))).take(1)
    return str(found[0][0]) if found else "a key"


def _borders(slices: Slices, kind: pa.DataType) -> str:
    shown = [_time(value, kind) for value in slices.begins[:SHOWN]]
    more = len(slices.begins) - len(shown)
    return ", ".join([*shown, f"… {more} more"] if more else shown)


def _time(value: int | float, kind: pa.DataType) -> str:
    """A time as its column shows it."""
    if pa.types.is_decimal(kind):
        return str(Decimal(int(value)).scaleb(-kind.scale))
    try:
        if pa.types.is_date(kind):
            return str(dt.date(1970, 1, 1) + dt.timedelta(seconds=value))
        if pa.types.is_timestamp(kind):
            return str(dt.datetime(1970, 1, 1, tzinfo=dt.UTC if kind.tz else None) + dt.timedelta(microseconds=value))
    except OverflowError:  # years that Python does not know
        pass
    return str(value)
