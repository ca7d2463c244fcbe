"""``stretto.pipelines.run``: a plan, on Spark.

What Spark's JVM writes on standard error while a pipeline runs, without lines in which PySpark's workers tell of themselves.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto import connectors
from stretto.errors import EngineError, OptionError, QueryError, suggestion
from stretto.pipelines import model, sources
from stretto.pipelines.batch import run_batch
from stretto.pipelines.documents import PipelineError
from stretto.pipelines.plan import Plan
from stretto.pipelines.queries import SQL, query_problem, query_text
from stretto.pipelines.reloading import Reloaded, alerts
from stretto.pipelines.streams import Streams
from stretto.pipelines.updates import Report, Update, failures_named
from stretto.spark import match, session, sql
from stretto.spark.streaming.query import watermarked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: What a worker tells that prepares the state of a stream, whatever the level of the log.
_TOLD = re.compile(rb"(Starting )?Streaming \w+ Python worker\b")


@contextmanager
def quiet_workers() -> Iterator[None]:
    """A JVM that is started inside writes through a pipe, of which a thread hands on all lines but those."""
    try:
        own = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(write)
    threading.Thread(target=_hand_on, args=(read, own), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(own, 2)  # the thread goes on as long as the JVM has its end


def _hand_on(read: int, to: int) -> None:
    with os.fdopen(read, "rb") as lines, os.fdopen(to, "wb", buffering=0) as out:
        blank = False  # behind each of those lines is an empty one
        for line in lines:
            told = _TOLD.match(line) is not None
            if not told and not (blank and not line.strip()):
                out.write(line)
            blank = told


def run(plan: Plan, *, once: bool = False, report: Report | None = None) -> None:
    """Run a pipeline: in batch mode to its end, streaming until it is interrupted (``KeyboardInterrupt``) or fails.

    Parameters
    ----------
    plan
        From :func:`stretto.pipelines.load`.
    once
        Streaming: end when all that is there now has been matched.
    report
        Called with each :class:`Update`, from the caller's thread or another one.

    Raises
    ------
    PipelineError
        A query does not fit the columns, or a sink of a batch pipeline is there already.
    EngineError
        Spark failed; the message says where and why. Streaming queries beside the one that failed have been stopped.
    OptionError
        ``once`` was asked of a batch pipeline, PySpark or Java is missing, or a source or sink cannot be used.
    DataError
        A source's columns are not what the file says.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from stretto import pipelines
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "events.csv").write_text("type,t\\nA,1\\nB,2\\n")
    >>> _ = (folder / "pipeline.toml").write_text('''
    ... source = {kind = "csv", path = "events.csv", columns = {type = "string", t = "int"}}
    ... events = {time = "t"}
    ... query = {name = "pairs", text = "SELECT * FROM S WHERE A ; B"}
    ... sink = {name = "found", kind = "parquet", path = "found"}
    ... [pipeline]
    ... name = "example"
    ... mode = "batch"
    ... ''')
    >>> pipelines.run(pipelines.load(folder / "pipeline.toml"))
    >>> from stretto import spark
    >>> spark.session().read.parquet(str(folder / "found")).select("start_time", "end_time").collect()
    [Row(start_time=1, end_time=2)]
    """
    tell = report or (lambda update: None)
    if once and not plan.streaming:
        raise OptionError('once is for streaming pipelines, and this one has mode = "batch": it ends by itself')
    _check_targets(plan)
    spark = _spark(plan, tell)
    events = sources.read(plan, spark)
    reloaded: dict[str, Reloaded] = {}
    matches = []
    for number, query in enumerate(plan.queries):
        with failures_named(query.name, plan.where(query.name)):
            matches.append(_match(plan, number, events))
    for rules in plan.rules:
        with failures_named(rules.name, plan.where(rules.name)):
            matches.append(_alerts(plan, rules, events, reloaded))
    _check_keys(plan, matches)
    if plan.streaming:
        Streams(plan, once, tell, reloaded).run(events, matches)
    else:
        run_batch(plan, events, matches, tell, spark)


def _spark(plan: Plan, tell: Report) -> SparkSession:
    """A session with the plan's settings; one that is active is taken as it is."""
    tell(Update("Spark", "running", "starting"))
    conf: dict[str, Any] = sources.settings(plan)
    try:
        with failures_named("Spark"), quiet_workers():
            spark = session(plan.name, **conf)
    except EngineError as error:
        tell(Update("Spark", "failed", step=False))
        packages = conf.get("spark.jars.packages")
        hint = (
            f"\nhint: is there a way to {packages} on Maven Central? [spark] jars takes files instead"
            if packages
            else ""
        )
        raise EngineError(f"{error}{hint}") from error
    tell(Update("Spark", "done", f"version {spark.version}"))
    return spark


def _check_targets(plan: Plan) -> None:
    """Sinks that must not be there yet, before anything is computed."""
    if plan.streaming:
        return
    problems = [
        plan.file.problem(
            ("sink", number, "path"),
            f'{plan.file.label(("sink", number, "path"))} = "{sink.path}" is there already',
            'mode = "append" adds to it' + (', mode = "overwrite" replaces it' if sink.kind != "delta" else ""),
        )
        for number, sink in enumerate(plan.sinks)
        if isinstance(sink, model.FileSink | model.DeltaSink)
        and sink.mode == "error"
        and Path(plan.locate(sink.path)).exists()
    ]
    if problems:
        raise PipelineError(problems)


def _check_keys(plan: Plan, matches: list[DataFrame]) -> None:
    """The keys of Kafka messages are columns of the matches."""
    problems = []
    for asked, found in zip(plan.asked, matches, strict=True):
        for sink in plan.sinks_of(asked):
            if isinstance(sink, model.KafkaSink) and sink.key is not None and sink.key not in found.columns:
                path = ("sink", plan.sinks.index(sink), "key")
                told = f"{plan.file.label(path)} = \"{sink.key}\": the matches of '{asked.name}' have no such column"
                problems.append(plan.file.problem(path, told, suggestion(sink.key, found.columns, kind="column")))
    if problems:
        raise PipelineError(problems)


def _alerts(
    plan: Plan, rules: model.Rules, events: Mapping[str, connectors.Events], reloaded: dict[str, Reloaded]
) -> DataFrame:
    """The alerts of rules as a DataFrame; to ``reloaded`` those are added that may change while they run."""
    found, changing = alerts(plan, rules, events)
    if changing is not None:
        reloaded[rules.name] = changing
    return found


def _match(plan: Plan, number: int, events: Mapping[str, connectors.Events]) -> DataFrame:
    """The matches of a query as a DataFrame."""
    query, roles = plan.queries[number], plan.events
    good = {name: source.good for name, source in events.items()}
    text = query_text(plan, number)
    arguments: dict[str, Any] = {"late": roles.late, "disorder": roles.disorder, "buckets": query.buckets}
    ahead = query.speculation or 0
    arguments["speculation"] = math.inf if ahead == "inf" else ahead
    try:
        if query.language == SQL:
            for name, rows in good.items():
                # Rows of a batch stay as they are.
                watermarked(rows, roles.time, roles.time_unit, roles.disorder, spare=0).createOrReplaceTempView(name)
            late = roles.late if plan.streaming else "drop"
            return sql(next(iter(good.values())).sparkSession, text.text, late=late)
        return match(
            good if len(good) > 1 else next(iter(good.values())),
            text.text,
            type=roles.type or None,
            time=roles.time,
            sequence=sources.common_sequence(events),
            stream=roles.stream,
            time_unit=roles.time_unit,
            event_id=roles.event_id,
            sign=roles.sign,
            language=query.language,
            output=query.output,
            valuations=query.valuations,
            timeouts=query.timeouts,
            partitions=query.partitions,
            budget=query.budget,
            **(arguments if plan.streaming else {}),
        )
    except QueryError as error:
        raise PipelineError([query_problem(text, query, error)]) from error
