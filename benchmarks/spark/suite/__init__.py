"""The benchmarks: each yields comparisons, one a case."""

from benchmarks.spark.suite.batch import batch_keyed, batch_unkeyed, row_patterns, sase
from benchmarks.spark.suite.flink import flink
from benchmarks.spark.suite.options import Benchmark, Options
from benchmarks.spark.suite.patterns import patterns
from benchmarks.spark.suite.selfjoin import selfjoin
from benchmarks.spark.suite.soak import soak
from benchmarks.spark.suite.streaming import per_key, speculation, streaming

__all__ = ["BENCHMARKS", "Benchmark", "Options"]

BENCHMARKS = (
    Benchmark(
        "batch-keyed", "matching by key, against the same plan with a function that counts", 50_000_000, batch_keyed
    ),
    Benchmark("batch-unkeyed", "matching without a key in time slices, against one task", 50_000_000, batch_unkeyed),
    Benchmark(
        "sase", "SASE+ over 100,000 symbols, against the same plan with a function that counts", 10_000_000, sase
    ),
    Benchmark(
        "row-patterns",
        "MATCH_RECOGNIZE by key, against the same plan with a function that counts",
        10_000_000,
        row_patterns,
    ),
    Benchmark("flink", "one task, against MATCH_RECOGNIZE in Flink SQL with parallelism 1", 10_000_000, flink),
    Benchmark(
        "selfjoin", "against self-joins with time bounds and collect_list with a Python function", 1_000_000, selfjoin
    ),
    Benchmark(
        "streaming", "a continuous query, against states that only count, by number of keys", 10_000_000, streaming
    ),
    Benchmark(
        "speculation",
        "answers ahead of the watermark on late events, against states that only count",
        5_000_000,
        speculation,
    ),
    Benchmark(
        "patterns", "a thousand patterns that change every minute, against states that only count", 5_000_000, patterns
    ),
    Benchmark("per-key", "buckets of keys, against a state a key", 100_000, per_key),
    Benchmark("soak", "memory and state over a long stream", 1_000_000, soak),
)
