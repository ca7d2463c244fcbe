"""Running a plan once, over all that is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from stretto import connectors
from stretto.connectors.sinks import kept
from stretto.errors import warn
from stretto.matching.pattern_set.with_metadata import DISABLED
from stretto.pipelines import model
from stretto.pipelines.plan import Plan
from stretto.pipelines.rules.ruleset import undecided_words
from stretto.pipelines.sinks import BAD_RECORDS, Route, batch_writer, routes_of
from stretto.pipelines.updates import LOOK, Report, Update, failures_named, off_told
from stretto.spark.compat import described

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: What is told of rules at the end of a batch.
UNDECIDED_OF_RULES = pa.schema([("rule", pa.string()), ("undecided", pa.int64())])


def run_batch(
    plan: Plan, events: Mapping[str, connectors.Events], matches: list[DataFrame], tell: Report, spark: SparkSession
) -> None:
    # All outputs before the first is written: a sink that cannot be is found now.
    bad = _bad_outputs(plan, events)
    outputs = [_Output(routes_of(plan, asked)) for asked in plan.asked]
    for asked in plan.asked:
        tell(Update(asked.name, "waiting", step=False))
    for source, output in bad.items():
        what = f"{BAD_RECORDS} of {source}"
        with _watched(what, tell, spark, plan):
            count = events[source].bad.count() if output is None else output.write(events[source].bad)
        tell(Update(what, "done", f"{count:,} {'dropped' if output is None else f'to {output.names}'}"))
    for asked, found, output in zip(plan.asked, matches, outputs, strict=True):
        with _watched(asked.name, tell, spark, plan):
            count, told = _written(found, output, asked)
        tell(Update(asked.name, "done", f"{count:,} match{'' if count == 1 else 'es'} to {output.names}"))
        for one in told:
            warn(one)


def _written(found: DataFrame, output: _Output, asked: model.Asked) -> tuple[int, list[str]]:
    """Write what was found; how many matches there are, and what is to be told of rules: who was switched off, what is open."""
    from pyspark.sql import functions as F

    if not isinstance(asked, model.Rules) or (asked.on_limit == "error" and asked.at_end == "complete"):
        return output.write(found), []
    counts = F.col(f"`{found.columns[-1]}`") if asked.at_end != "complete" else F.lit(None).cast("long")
    off = F.col(f"`{DISABLED}`") if asked.on_limit == "disable" else F.lit(None).cast("string")
    told = []
    with kept(found) as rows:
        of_rules = rows.groupBy("rule").agg(
            F.count(off).alias("off"), F.sum(counts).alias("undecided"), F.min(counts).alias("least")
        )
        by_rule = sorted(of_rules.collect())
        matches = rows.filter(counts.isNull())
        written = output.write(matches if asked.at_end == "complete" else matches.drop(found.columns[-1]))
    switched_off = sum(row["off"] for row in by_rule)
    if switched_off:
        told.append(off_told(asked.name, switched_off))
    open_ones = [
        {"rule": row["rule"], "undecided": None if row["least"] < 0 else row["undecided"]}
        for row in by_rule
        if row["least"] is not None
    ]
    words = undecided_words(pa.Table.from_pylist(open_ones, UNDECIDED_OF_RULES))
    if words is not None:
        told.append(
            f"rules '{asked.name}': {words}, and left out; at_end = \"complete\" gives them, a stream with --once goes on with them"
        )
    return written - switched_off, told


def _bad_outputs(plan: Plan, events: Mapping[str, connectors.Events]) -> dict[str, _Output | None]:
    """Where each source's bad records go, unless they are errors; ``None``: they are counted."""
    if plan.events.bad_records == "error":
        return {}
    name = plan.events.bad_records_sink
    return {
        source: None if name is None else _Output([Route(plan, plan.sink(name), source, "stream")]) for source in events
    }


class _Output:
    """The sinks of a query, of rules, or of bad records, in a batch pipeline."""

    def __init__(self, routes: list[Route]) -> None:
        self.names = ", ".join(route.sink.name for route in routes)
        self.writers = [batch_writer(route) for route in routes]
        #: Written in one pass that reads every row; consoles and tables look at rows more than once.
        self.simple = len(routes) == 1 and isinstance(routes[0].sink, model.FileSink)

    def write(self, df: DataFrame) -> int:
        """Write rows to each sink, computed once; how many there are."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        if self.simple:
            counted = Observation("rows")
            self.writers[0](df.observe(counted, F.count(F.lit(1)).alias("rows")))
            return int(counted.get["rows"])
        with kept(df) as rows:
            count: int = rows.count()
            for write in self.writers:
                write(rows)
        return count


@contextmanager
def _watched(name: str, tell: Report, spark: SparkSession, plan: Plan) -> Iterator[None]:
    """Tell how many of Spark's tasks are done while a part runs."""
    tell(Update(name, "running"))
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(LOOK):
            if line := _tasks(spark):
                tell(Update(name, "running", line, step=False))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        with failures_named(name, plan.where(name)), described(spark, f"stretto run {plan.name}: {name}"):
            yield
    except BaseException:
        tell(Update(name, "failed", step=False))
        raise
    finally:
        ended.set()
        watcher.join()


def _tasks(spark: SparkSession) -> str:
    """What the stages that run have done; nothing through Spark Connect, which does not tell."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except Exception:
        return ""
    known = [stage for stage in stages if stage is not None]
    if not known:
        return ""
    return f"{sum(s.numCompletedTasks for s in known)} of {sum(s.numTasks for s in known)} tasks"
