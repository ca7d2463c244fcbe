"""The command line: ``python -m benchmarks.spark run`` and ``list``."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from benchmarks.spark.outcome import Comparison, print_comparison, save
from benchmarks.spark.process import WorkerError
from benchmarks.spark.suite import BENCHMARKS, Benchmark, Options

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong or a job failed."""
    chosen = _parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    if chosen.command == "list":
        for benchmark in BENCHMARKS:
            console.print(
                f"[bold]{benchmark.name}[/bold] ({benchmark.rows:,} rows): {benchmark.shows}", highlight=False
            )
        return 0
    return _run(console, _select(chosen.names), chosen)


def _parser() -> argparse.ArgumentParser:
    default = Options()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="say what there is to run")
    run = commands.add_parser("run", help="measure, and check counts")
    run.add_argument("names", nargs="*", help="benchmarks (default: all but soak)")
    run.add_argument("--rows", type=_number, help="events, such as 1e6 (default: the benchmark's own)")
    run.add_argument("--peer-rows", type=_number, default=default.peer_rows, help="events that Flink reads, at most")
    run.add_argument("--keys", type=_numbers, default=default.keys, help="numbers of keys of the streaming ones: 1,1e3")
    run.add_argument("--case", action="append", default=[], help="only cases with this in their name")
    run.add_argument("--repeat", type=int, default=default.repeat, help="timed runs of a batch job")
    run.add_argument("--cores", type=int, default=default.cores, help="tasks at the same time, local[n]")
    run.add_argument("--driver-memory", default=default.driver_memory, help="heap of Spark's JVM")
    run.add_argument("--batch-rows", type=_number, default=default.batch_rows, help="events of a micro-batch")
    run.add_argument("--buckets", type=int, help="buckets of keys (default: stretto's own)")
    run.add_argument("--minutes", type=float, default=default.minutes, help="how long soak runs")
    run.add_argument("--peer", action=argparse.BooleanOptionalAction, default=True, help="measure Flink as well")
    run.add_argument("--out", type=Path, help="write the results as JSON")
    return parser


def _number(text: str) -> int:
    number = float(text)
    if number != int(number) or number < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number from 1, such as 1000000 or 1e6")
    return int(number)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_number(part) for part in text.split(","))


def _select(names: list[str]) -> list[Benchmark]:
    if not names:
        return [benchmark for benchmark in BENCHMARKS if benchmark.name != "soak"]
    known = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"there is no benchmark '{unknown[0]}'; there are {', '.join(known)}")
    return [known[name] for name in names]


def _run(console: Console, benchmarks: list[Benchmark], chosen: argparse.Namespace) -> int:
    names = (
        "rows",
        "peer_rows",
        "keys",
        "repeat",
        "cores",
        "driver_memory",
        "batch_rows",
        "buckets",
        "minutes",
        "peer",
    )
    options = Options(
        **{name: getattr(chosen, name) for name in names},
        cases=tuple(chosen.case),
    )
    found: list[Comparison] = []
    failed = False
    load = os.getloadavg() if hasattr(os, "getloadavg") else ()
    if load:
        console.print(f"load before: {load[0]:.1f}", highlight=False)
    try:
        for benchmark in benchmarks:
            try:
                for comparison in benchmark.run(replace(options, rows=options.rows or benchmark.rows)):
                    found.append(comparison)
                    print_comparison(console, comparison)
            except WorkerError as error:
                failed = True
                console.print(f"[red]{benchmark.name} failed[/red]: {error}", highlight=False)
    finally:
        if chosen.out and found:
            save(chosen.out, found, asdict(options) | {"load_before": load})
    return 1 if failed or any(comparison.wrong for comparison in found) else 0
