"""Running a plan once, over all that is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stretto import connectors
from stretto.connectors.sinks import kept
from stretto.errors import warn
from stretto.pipelines import model
from stretto.pipelines.plan import Plan
from stretto.pipelines.sinks import BAD_RECORDS, Route, batch_writer, routes_of
from stretto.pipelines.updates import LOOK, Report, Update, failures_named, off_told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        with _watched(what, tell, spark):
            count = events[source].bad.count() if output is None else output.write(events[source].bad)
        tell(Update(what, "done", f"{count:,} {'dropped' if output is None else f'to {output.names}'}"))
    for asked, found, output in zip(plan.asked, matches, outputs, strict=True):
        with _watched(asked.name, tell, spark):
            count, off = _written(found, output, asked)
        tell(Update(asked.name, "done", f"{count:,} match{'' if count == 1 else 'es'} to {output.names}"))
        if off:
            warn(off_told(asked.name, off))


def _written(found: DataFrame, output: _Output, asked: model.Asked) -> tuple[int, int]:
    """Write what was found; how many matches there are, and how often a rule was switched off."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    if not isinstance(asked, model.Rules) or asked.on_limit == "error":
        return output.write(found), 0
    counted = Observation("off")
    rows = output.write(found.observe(counted, F.count(F.col(f"`{found.columns[-1]}`")).alias("off")))
    off = int(counted.get["off"])
    return rows - off, off


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
def _watched(name: str, tell: Report, spark: SparkSession) -> Iterator[None]:
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
        with failures_named(name):
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
