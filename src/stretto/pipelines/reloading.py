"""Rules of a running stream: what has changed in their folder is written down, and the stream reads it from there.

Each time something has changed, a file of changes is added to a folder of the checkpoint, which is a source of the query as its
events are. So a micro-batch that is repeated reads the changes that it had read, and a query that is started again finds what it
knew.

The rules of a pipeline, on Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto import connectors
from stretto.errors import DataError, OptionError, warn
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.pipelines import model, sources
from stretto.pipelines.plan import Plan
from stretto.pipelines.queries import known_columns
from stretto.pipelines.rules import RuleSet, read_rules
from stretto.pipelines.rules.ruleset import SHOWN, noted
from stretto.spark import match_patterns
from stretto.spark.frames import arrow_fields, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: Tells the rules that do not fit the events: why, by id.
Fit = Callable[[RuleSet], dict[str, str]]


def alerts(
    plan: Plan, rules: model.Rules, events: Mapping[str, connectors.Events]
) -> tuple[DataFrame, Reloaded | None]:
    """The alerts of a folder or a table of rules: ``rule``, ``severity`` and ``title`` before what matches have.

    A rule that cannot be read, or that does not fit the columns, is told as a warning, and the others run. In a stream the rules are
    what the folder has by then; the second value looks what has changed.

    Raises
    ------
    OptionError
        No rule is left.
    """
    roles, df = plan.events, next(iter(events.values())).good
    columns = {name: kind for name, kind in arrow_fields(df).items() if kind is not None}
    fit = _fit(plan, rules, columns)
    options: dict[str, Any] = {"by": rules.by, **_roles(plan), "sequence": sources.common_sequence(events)}
    options |= {"event_id": roles.event_id, "output": rules.output, "valuations": rules.valuations}
    options |= {"shown": SHOWN, "measures": True, "budget": rules.budget, "on_limit": rules.on_limit}
    folder = plan.locate(rules.path)
    if not plan.streaming:
        known, at_end = _known(folder, rules.name, fit)[0], rules.at_end or "drop"
        found = match_patterns(df, known, partitions=rules.partitions, at_end=at_end, **options)
        return _named(found), None
    checkpoint = plan.locate(str(plan.pipeline.checkpoint))
    reloaded = Reloaded(
        df.sparkSession, rules.name, folder, f"{checkpoint}/rules/{rules.name}", columns[roles.time], fit
    )
    if wrong := reloaded.look()[1]:
        warn(wrong)
    found = match_patterns(
        df,
        reloaded.stream(),
        late=roles.late,
        disorder=roles.disorder,
        buckets=rules.buckets,
        late_changes="now",
        **options,
    )
    return _named(found), reloaded


def tell_of_rules(plan: Plan) -> int:
    """Warn of the rules that will not run, as far as the columns are known without Spark; gives how many mistakes that are.

    Raises
    ------
    OptionError
        No rule is left.
    """
    columns = known_columns(plan, plan.sources[0])
    wrong = 0
    for rules in plan.rules:
        fit: Fit = (lambda _: {}) if columns is None else _fit(plan, rules, columns)
        wrong += _known(plan.locate(rules.path), rules.name, fit)[1]
    return wrong


def _roles(plan: Plan) -> dict[str, Any]:
    """The roles of columns, as a set of patterns takes them."""
    roles = plan.events
    return {"type": roles.type or None, "time": roles.time, "stream": roles.stream, "time_unit": roles.time_unit}


def _fit(plan: Plan, rules: model.Rules, columns: Mapping[str, pa.DataType]) -> Fit:
    """What tells the rules that do not fit the columns."""

    def fit(read: RuleSet) -> dict[str, str]:
        return read.added_to(noted(PatternSet(columns, **_roles(plan), by=rules.by, measures=True)))

    return fit


def _known(folder: str, name: str, fit: Fit) -> tuple[pa.Table, int]:
    """The rules that can run, as a table of patterns; of the others a warning tells why they cannot; how many mistakes there are."""
    rules = read_rules(folder)
    for problem in rules.problems:
        warn(str(problem))
    errors = fit(rules)
    for rule, why in errors.items():
        warn(f"rules '{name}': rule '{rule}' does not run: {why}")
    running = [rule.change for rule in rules.enabled if rule.id not in errors]
    if not running:
        raise OptionError(f"rules '{name}': none of them can run")
    return pa.Table.from_pylist(running, CHANGES), len(rules.problems) + len(errors)


def _named(found: DataFrame) -> DataFrame:
    """Matches with what people call them by."""
    from pyspark.sql import functions as F

    names = (name for name in found.columns if name not in ("pattern", "since"))
    return found.select(F.col("pattern").alias("rule"), *(f"`{name}`" for name in names))


#: Seconds between two looks at a folder: file systems that count seconds tell the files of changes apart.
RELOAD = 2.0

#: What is known of a rule; a rule whose ``query`` is NULL has been retired.
CHANGES = pa.schema([(name, pa.string()) for name in ("id", "query", "language", "every", "since", "until", *SHOWN)])

#: Beside it: which file of changes a row is in, and from which file of rules it comes.
_WRITTEN = CHANGES.append(pa.field("number", pa.int64())).append(pa.field("file", pa.string()))


class Reloaded:
    """The rules of a stream, which follow those of a folder.

    Parameters
    ----------
    spark
        The session.
    name
        What the pipeline calls them.
    rules
        The folder of the rules, or a file; also of a table.
    log
        The folder of changes.
    time
        The type of the events' time.
    fit
        Tells which rules do not fit the columns, and why.
    """

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        rules: str,
        log: str,
        time: pa.DataType,
        fit: Callable[[RuleSet], dict[str, str]],
    ) -> None:
        self._kind_of_time = time
        self._spark, self._name, self._rules, self._log, self._fit = spark, name, Path(rules), log, fit
        self._seen: Any = ()
        #: How many rules are wrong in the folder as it is.
        self.wrong = 0
        self._number, self._known = self._written()

    def stream(self) -> DataFrame:
        """The changes as a stream, one file in a micro-batch: a later change of a rule comes later."""
        reader = self._spark.readStream.schema(spark_schema(CHANGES)).option("maxFilesPerTrigger", 1)
        return reader.json(self._log)

    def look(self) -> tuple[str, str]:
        """Look at the folder, and write down what has changed; tells what that is, and what is wrong, if there is anything.

        Raises
        ------
        OptionError
            There is no rule, and there never was one.
        """
        now = self._state()
        if now == self._seen:
            return "", ""
        self._seen = now
        try:
            rules = read_rules(self._rules)
        except (OptionError, DataError) as error:
            self.wrong = 1
            self._check([str(error)])
            return "", f"rules '{self._name}': {error}; the rules stay as they are"
        told = [*map(str, rules.problems)]
        wanted = {rule.id: {**self._timed(rule.change), "file": rule.file} for rule in rules.enabled}
        changed = [rule for rule in rules.enabled if self._known.get(rule.id) != wanted[rule.id]]
        errors = self._fit(replace(rules, rules=tuple(changed)))
        told += [f"rule '{name}' does not run: {why}" for name, why in errors.items()]
        self.wrong = len(told)
        rows = [wanted[rule.id] for rule in changed if rule.id not in errors]
        for name, row in self._known.items():
            if (
                row["query"] is not None
                and name not in wanted
                and name not in rules.unread
                and row["file"] not in rules.doubtful
            ):
                rows.append(dict.fromkeys(row) | {"id": name, "file": row["file"]})
        counts = Counter(map(self._kind, rows))
        self._write(rows)
        self._check(told)
        done = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
        wrong = [
            f"rules '{self._name}': {_number(len(told))} wrong; where there was one that is right, it goes on",
            *told,
        ]
        return f"rules: {done}" if done else "", "\n".join(wrong) if told else ""

    def _timed(self, change: dict[str, Any]) -> dict[str, Any]:
        """A change with its times as Spark reads them; those that are none are told where rules do not fit."""
        for name in ("since", "until"):
            if change[name] is not None:
                with suppress(pa.ArrowException):
                    change[name] = pa.scalar(change[name]).cast(self._kind_of_time).cast(pa.string()).as_py()
        return change

    def _check(self, told: list[str]) -> None:
        if not self._known:
            raise OptionError("\n".join([f"rules '{self._name}': none of them can run", *told]))

    def _kind(self, row: dict[str, Any]) -> str:
        if row["query"] is None:
            return "retired"
        known = self._known.get(row["id"])
        return "added" if known is None or known["query"] is None else "replaced"

    def _state(self) -> Any:
        """What tells whether files have changed."""
        try:
            files = sorted(self._rules.rglob("*")) if self._rules.is_dir() else [self._rules]
            stats = [file.stat() for file in files]
        except OSError:
            return None
        return [(str(file), stat.st_mtime_ns, stat.st_size) for file, stat in zip(files, stats, strict=True)]

    def _write(self, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        table = [tuple((row | {"number": self._number}).get(name) for name in _WRITTEN.names) for row in rows]
        written = self._spark.createDataFrame(table, spark_schema(_WRITTEN))
        written.coalesce(1).write.mode("append").json(self._log)
        self._number += 1
        self._known |= {row["id"]: row for row in rows}

    def _written(self) -> tuple[int, dict[str, dict[str, Any]]]:
        """How many files of changes there are, and what they come to."""
        from pyspark.errors import AnalysisException

        try:
            rows = self._spark.read.schema(spark_schema(_WRITTEN)).json(self._log).collect()
        except AnalysisException:  # there is no folder yet
            return 0, {}
        found: dict[str, dict[str, Any]] = {}
        for row in sorted(rows, key=lambda row: row.number):
            found[row.id] = {name: row[name] for name in _WRITTEN.names if name != "number"}
        return max((row.number + 1 for row in rows), default=0), found


def _number(rules: int) -> str:
    return "1 rule is" if rules == 1 else f"{rules:,} rules are"
