"""The rules of a pipeline, on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto import connectors
from stretto.errors import OptionError, warn
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.pipelines import model, sources
from stretto.pipelines.plan import Plan
from stretto.pipelines.queries import known_columns
from stretto.pipelines.reloading import CHANGES, Reloaded
from stretto.pipelines.rules import RuleSet, read_rules
from stretto.pipelines.rules.ruleset import SHOWN, noted
from stretto.spark import match_patterns
from stretto.spark.frames import arrow_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
