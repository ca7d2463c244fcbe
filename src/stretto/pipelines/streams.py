"""Running a plan continuously, or over all that is there and has not been read before."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stretto import connectors
from stretto.errors import EngineError, warn
from stretto.pipelines import model
from stretto.pipelines.plan import Plan
from stretto.pipelines.reloading import RELOAD, Reloaded
from stretto.pipelines.sinks import BAD_RECORDS, Route, routes_of, splitting, stream_writer
from stretto.pipelines.updates import LOOK, Report, Update, failures_named, off_told, reason
from stretto.spark import metrics, progress_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Streams:
    """The streaming queries of a pipeline: one for each query or folder of rules, and for the bad records of each source."""

    def __init__(self, plan: Plan, once: bool, tell: Report, reloaded: Mapping[str, Reloaded]) -> None:
        self.plan, self.once, self.tell, self.reloaded = plan, once, tell, reloaded
        self.running: dict[str, Any] = {}
        self.counts: dict[str, Counts] = {}

    def run(self, events: Mapping[str, connectors.Events], matches: list[DataFrame]) -> None:
        """Start all, and wait for the end."""
        from pyspark.sql import functions as F

        parts = [
            (asked.name, found, self.writer(asked, found), f"queries/{asked.name}")
            for asked, found in zip(self.plan.asked, matches, strict=True)
        ]
        if self.plan.events.bad_records_sink is not None:
            sink = self.plan.sink(self.plan.events.bad_records_sink)
            for source, found_events in events.items():
                bad = found_events.bad.observe(BAD_RECORDS, F.count(F.lit(1)).alias("bad"))
                writer = stream_writer(Route(self.plan, sink, source, "stream"))
                parts.append((f"{BAD_RECORDS} of {source}", bad, writer, f"bad-records/{source}"))
        try:
            for part in parts:
                self.start(*part)
            looked = time.monotonic()
            while self.look():
                if not self.ends and time.monotonic() > looked + RELOAD:
                    self.reload()
                    looked = time.monotonic()
                time.sleep(LOOK)
        except KeyboardInterrupt:
            self.stop()
        except BaseException:
            self.stop()
            raise

    def writer(self, asked: model.Asked, found: DataFrame) -> connectors.Writer:
        """All sinks of a query or of rules as one."""
        plan = self.plan
        writers = [stream_writer(route) for route in routes_of(plan, asked)]
        if plan.events.late_sink is not None:
            late = found.columns[-1]
            aside = stream_writer(Route(plan, plan.sink(plan.events.late_sink), asked.name, "query"))
            writers = [splitting(writer, late, aside=False) for writer in writers]
            writers.append(splitting(aside, late, aside=True))
        return connectors.together(*writers)

    def start(self, name: str, df: DataFrame, write: connectors.Writer, folder: str) -> None:
        """Start a part, with a checkpoint of its own."""
        checkpoint = f"{self.plan.locate(str(self.plan.pipeline.checkpoint))}/{folder}"
        trigger = self.plan.pipeline.trigger
        writer = df.writeStream.queryName(f"{self.plan.name}/{name}").option("checkpointLocation", checkpoint)
        if self.ends:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        with failures_named(name, self.plan.where(name)):
            self.running[name] = writer.foreachBatch(write).start()
        self.counts[name] = Counts(self.reloaded[name].wrong if name in self.reloaded else 0)
        self.tell(Update(name, "running", "waiting for the first batch"))

    @property
    def ends(self) -> bool:
        """Whether the queries end when all that is there has been matched."""
        return self.once or self.plan.pipeline.trigger == "available-now"

    def reload(self) -> None:
        """Tell what has changed in folders of rules, and hand it to the queries."""
        for name, rules in self.reloaded.items():
            with failures_named(name, self.plan.where(name)):
                done, wrong = rules.look()
            if done:
                self.tell(Update(name, "running", done))
            if wrong:
                warn(wrong)
            if done or wrong:
                self.counts[name].wrong(rules.wrong)

    def look(self) -> bool:
        """Tell what is new; whether anything still runs."""
        for name, query in list(self.running.items()):
            counts = self.counts[name]
            active = query.isActive  # before the progress, so that the last one is not missed
            if counts.is_new(query.lastProgress):
                off = counts.total.get("disabled", 0)
                for progress in query.recentProgress:
                    if line := counts.add(progress):
                        self.tell(Update(name, "running", line))
                if number := counts.total.get("disabled", 0) - off:
                    warn(off_told(name, number))
            if active:
                continue
            del self.running[name]
            error = query.exception()
            if error is not None:
                self.tell(Update(name, "failed", step=False))
                raise EngineError(f"{self.plan.where(name)}{name}: {reason(error)}") from error
            self.tell(Update(name, "done", counts.line))
        return bool(self.running)

    def stop(self) -> None:
        """Stop what still runs. A batch that is cut short comes again after a restart."""
        for name, query in self.running.items():
            query.stop()
            self.tell(Update(name, "stopped", self.counts[name].line))
        self.running = {}


class Counts:
    """A streaming query's counts, over all batches since its start."""

    def __init__(self, wrong: int = 0) -> None:
        #: The last progress report that was counted.
        self.last = ("", -1)
        self.total: dict[str, int] = {}
        self.batches = 0
        self.wrong(wrong)

    def wrong(self, rules: int) -> None:
        """Count the rules that are wrong at the time."""
        self.total["wrong_rules"] = rules

    def is_new(self, progress: Any) -> bool:
        """Whether there is a report that has not been counted."""
        return progress is not None and (progress.timestamp, progress.batchId) > self.last

    def add(self, progress: Any) -> str:
        """Count a progress report; its line, or nothing if it is known or says nothing."""
        if not self.is_new(progress):
            return ""
        self.last = (progress.timestamp, progress.batchId)
        found: dict[str, float] = metrics(progress)
        for name, row in (progress.observedMetrics or {}).items():
            if name == BAD_RECORDS or name.startswith("records:"):
                found["bad"] = found.get("bad", 0) + (row["bad"] or 0)
        self.batches += bool(progress.numInputRows)
        for name in _SUMMED:
            if name in found:
                self.total[name] = self.total.get(name, 0) + int(found[name])
        line = progress_line(progress)
        if not line and progress.numInputRows:
            line = f"batch {progress.batchId}: {progress.numInputRows:,} records"
        return f"{line}, {int(found['bad']):,} bad" if line and found.get("bad") else line

    @property
    def line(self) -> str:
        """Show the sums in one line."""
        parts = [f"{self.batches:,} batch{'' if self.batches == 1 else 'es'}"]
        shown = [name for name, number in self.total.items() if number or name in ("events", "matches")]
        return ", ".join(parts + [f"{self.total[name]:,} {_SUMMED[name]}" for name in shown])


#: The counts that are summed, and what they are called.
_SUMMED = {"events": "events", "matches": "matches", "late": "late", "duplicates": "duplicates"}
_SUMMED |= {"no_key": "without a key", "bad": "bad records", "suppressed": "suppressed", "disabled": "switched off"}
_SUMMED |= {"wrong_rules": "wrong rules"}
