"""Batch jobs of stretto against plans that only count, and time slices against one task."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.data import MILLISECONDS_APART
from benchmarks.spark import queries
from benchmarks.spark.outcome import Comparison
from benchmarks.spark.streams import Stream
from benchmarks.spark.suite.options import KEYS, Options
from benchmarks.spark.suite.sides import check_embedded, entry, spark_sides

__all__ = ["batch_keyed", "batch_unkeyed", "row_patterns", "sase"]

#: The keys of the SASE+ queries.
SYMBOLS = 100_000

SEQUENCE_KEYED = queries.sequence(3, 100 * KEYS * MILLISECONDS_APART, keyed=True)


def batch_keyed(options: Options) -> Iterator[Comparison]:
    """Matching by key against stretto's own plan with a function that counts."""
    for case, query in (("sequence", SEQUENCE_KEYED), ("v-shape", queries.V_SHAPE)):
        if options.wants(case):
            yield _against_counting(options, Comparison("batch-keyed", case, goal=0.6), query, KEYS)


def row_patterns(options: Options) -> Iterator[Comparison]:
    """``MATCH_RECOGNIZE`` by key against stretto's own plan with a function that counts."""
    clauses = {
        "v-shape": queries.v_shape_clause("millis"),
        "v-shape of prices": queries.v_shape_of_prices_clause("millis"),
    }
    for case, clause in clauses.items():
        if options.wants(case):
            found = Comparison("row-patterns", case, of="match", to=("count, same plan",), goal=0.5)
            entries = [entry("match", "sql", query=clause), entry("count, same plan", "count_sql", query=clause)]
            found.sides = spark_sides(options, Stream(options.rows or 0, KEYS), entries)
            counter = found.sides[1]
            counter.note, counter.matches = f"{counter.matches:,} rows reach Python", None
            yield found


def sase(options: Options) -> Iterator[Comparison]:
    """SASE+ queries over many symbols against stretto's own plan with a function that counts."""
    for case, query in queries.SASE.items():
        if options.wants(case):
            yield _against_counting(options, Comparison("sase", case, goal=0.5), query, SYMBOLS)


def _against_counting(options: Options, found: Comparison, query: str, keys: int) -> Comparison:
    """A comparison with its sides: matching, and the same plan with a function that counts."""
    found.of, found.to = "match", ("count, same plan",)
    stream = Stream(options.rows or 0, keys)
    entries = [entry("match", "match", query=query), entry("count, same plan", "count_same_plan", query=query)]
    found.sides = spark_sides(options, stream, entries)
    counter = found.sides[1]
    counter.note, counter.matches = f"{counter.matches:,} rows reach Python", None
    check_embedded(found, stream, query)
    return found


def batch_unkeyed(options: Options) -> Iterator[Comparison]:
    """Time slices against one task."""
    cases = (
        ("sequence", queries.sequence(3, 1_000)),
        ("contiguous", queries.contiguous(10_000)),
    )
    for case, query in cases:
        if not options.wants(case):
            continue
        found = Comparison("batch-unkeyed", case, of="slices", to=("one task",), goal=1.6)
        stream = Stream(options.rows or 0, KEYS)
        entries = [
            entry("slices", "match", query=query, slices=None),
            entry("one task", "match", query=query, slices=1),
        ]
        found.sides = spark_sides(options, stream, entries)
        found.same_matches()
        check_embedded(found, stream, query)
        yield found
