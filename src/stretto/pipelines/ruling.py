"""The rules of a pipeline, on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stretto import connectors
from stretto.engines.shared.windows import values_of
from stretto.errors import OptionError, warn
from stretto.matching.many.changes import Change
from stretto.matching.patterns import PatternSet
from stretto.matching.reorder.spans import span
from stretto.pipelines import sources
from stretto.pipelines.plan import Plan
from stretto.pipelines.rules import Rule, read_rules
from stretto.pipelines.rules.repeats import first_of_each_span
from stretto.spark import match_patterns
from stretto.spark.frames import arrow_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def alerts(plan: Plan, number: int, events: Mapping[str, connectors.Events]) -> DataFrame:
    """The alerts of a query that is a folder of rules: ``rule``, ``severity`` and ``title`` before what matches have.

    A rule that cannot be read, or that does not fit the columns, is told as a warning, and the others run.

    Raises
    ------
    OptionError
        No rule is left, or there are several sources.
    """
    query, roles = plan.queries[number], plan.events
    rules = read_rules(plan.locate(str(query.rules)))
    for problem in rules.problems:
        warn(str(problem))
    if len(events) > 1:
        raise OptionError(f"query '{query.name}': rules read one source, and there are {len(events)}")
    df = next(iter(events.values())).good
    named: dict[str, Any] = {
        "type": roles.type or None,
        "time": roles.time,
        "stream": roles.stream,
        "time_unit": roles.time_unit,
    }
    columns = {name: kind for name, kind in arrow_fields(df).items() if kind is not None}
    errors = rules.added_to(PatternSet(columns, **named, by=query.by))
    for name, why in errors.items():
        warn(f"query '{query.name}': rule '{name}' does not run: {why}")
    running = [rule for rule in rules.enabled if rule.id not in errors]
    if not running:
        raise OptionError(f"query '{query.name}': none of its rules can run")
    streaming: dict[str, Any] = (
        {"late": roles.late, "disorder": roles.delay[1], "buckets": query.buckets} if plan.streaming else {}
    )
    found = match_patterns(
        df,
        [Change(rule.id, rule.query.text, language=rule.query.language) for rule in running],
        by=query.by,
        **named,
        sequence=sources.common_sequence(events),
        event_id=roles.event_id,
        output=query.output,
        valuations=query.valuations,
        partitions=query.partitions,
        **streaming,
    )
    spans = {rule.id: rule.given.every for rule in running if rule.given.every is not None}
    return _named(_without_repeats(found, spans, plan, query.by) if spans else found, running)


def _named(found: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Matches with what people know their rules by."""
    from pyspark.sql import functions as F

    rule = F.col("pattern")
    columns = [rule.alias("rule")]
    for name in ("severity", "title"):
        given = {one.id: value for one in rules if (value := getattr(one.given, name)) is not None}
        known = F.create_map([F.lit(part) for pair in given.items() for part in pair]) if given else None
        columns.append((F.lit(None).cast("string") if known is None else known[rule]).alias(name))
    return found.select(*columns, *(name for name in found.columns if name not in ("pattern", "since")))


def _without_repeats(found: DataFrame, spans: Mapping[str, str | int], plan: Plan, by: Sequence[str]) -> DataFrame:
    """Matches without those that come too soon after one of the same rule and keys (:func:`first_of_each_span`)."""
    from pyspark.sql import functions as F

    time, unit = plan.events.time, plan.events.time_unit

    def kept(rows: pa.Table) -> pa.Table:
        rule = rows.column("pattern")[0].as_py()
        if rule not in spans:
            return rows
        end = rows.column("end_time")
        every = span(spans[rule], f"rule '{rule}': every", end.type, time, unit)
        same = np.zeros(rows.num_rows, np.int64)
        return rows.filter(pa.array(first_of_each_span(same, values_of(end, time, 0), every)))

    keys = [F.col("pattern"), *(F.col(f"`{name}`") for name in by), F.to_json("keys")]
    return found.groupBy(*keys).applyInArrow(kept, found.schema)
