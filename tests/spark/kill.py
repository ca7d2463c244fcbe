"""Exactly once under ``kill -9``: a continuous query is killed at random moments, and its rows are those of one ordered pass.

Each life is a process of its own with its own JVM; the whole process group is killed. Run more kills than the tests do::

    python -m tests.spark.kill --kills 100
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa

import stretto
from tests.spark.conftest import SETTINGS
from tests.spark.streams import add_file, bag, read_stream, run

__all__ = ["killed_and_started_again"]

QUERY = "SELECT a, b FROM S WHERE A AS a ; B+ AS b ; C PARTITION BY [key] WITHIN 12 seconds"
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ROWS = 60
KEYS = 12

#: The longest time in seconds that a life has after its query started: the first micro-batches take some seconds.
LONGEST = 9.0


def life(folder: Path) -> None:
    """Run the query over the files that are there; the process may be killed at any moment."""
    spark = stretto.spark.session("kill", cores=2, **SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    matches = stretto.spark.match(
        read_stream(spark, folder / "in"), QUERY, time="ts", sequence="seq", disorder="3 seconds", buckets=5
    )
    print("ready", flush=True)
    run(matches, folder / "checkpoint", folder / "out")
    print("done", flush=True)


def events(rng: random.Random, number: int) -> pa.Table:
    """The events of micro-batch ``number``: out of order by less than the watermark's delay."""
    first = number * ROWS
    seconds = [i / 10 + rng.random() * 2 for i in range(first, first + ROWS)]
    return pa.table(
        {
            "type": [rng.choice("ABCD") for _ in seconds],
            "ts": pa.array([START + dt.timedelta(seconds=s) for s in seconds], pa.timestamp("us", tz="UTC")),
            "seq": list(range(first, first + ROWS)),
            "key": [f"k{rng.randrange(KEYS)}" for _ in seconds],
        }
    )


def killed_and_started_again(folder: Path, kills: int, seed: int) -> Counter[str]:
    """Kill the query ``kills`` times, let it end, and compare.

    Returns
    -------
    Counter
        How often the process died before its query started, in a micro-batch, and between micro-batches.

    Raises
    ------
    AssertionError
        The rows of the sink are not exactly those of one pass over all events.
    """
    rng = random.Random(seed)
    files: list[pa.Table] = []

    def feed(count: int) -> None:
        for _ in range(count):
            files.append(events(rng, len(files)))
            add_file(folder / "in", files[-1], len(files))

    feed(6)
    moments: Counter[str] = Counter()
    while sum(moments.values()) < kills:
        unread = len(files) - committed(folder)
        feed(max(0, 8 - unread))
        moments[killed(folder, rng.uniform(0.0, LONGEST))] += 1
    end = events(rng, 10 * len(files)).slice(0, 1)  # far behind the others: the watermark passes them all
    files.append(end)
    add_file(folder / "in", end, len(files))
    child = start(folder)
    child.communicate(timeout=1800)
    assert child.returncode == 0, f"seed {seed}: {(folder / 'errors').read_text()[-4000:]}"
    expected = stretto.match(QUERY, pa.concat_tables(files), time="ts", sequence="seq")
    found = sink(folder).select(["start_time", "end_time", "key", "a", "b"])
    assert expected.num_rows > 0
    assert bag(found) == bag(expected), f"seed {seed}: {found.num_rows} rows, not {expected.num_rows}"
    return moments


def sink(folder: Path) -> pa.Table:
    """The rows that the Parquet sink has committed, by its own log."""
    spark = stretto.spark.session("kill", cores=2, **SETTINGS)
    table: pa.Table = spark.read.parquet(str(folder / "out")).toArrow()
    return table


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.spark.kill", "--life", str(folder)]
    with (folder / "errors").open("w") as errors:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            cwd=Path(__file__).parents[2],
        )


def killed(folder: Path, seconds: float) -> str:
    """Start a life and kill it so long after its query started; tells when it died."""
    child = start(folder)
    assert child.stdout is not None
    line = child.stdout.readline().strip()
    if line != "ready":
        raise AssertionError(f"the process ended before its query started: {line!r}")
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    started, ended = latest(folder / "checkpoint" / "offsets"), latest(folder / "checkpoint" / "commits")
    if started < 0:
        return "before the first micro-batch"
    return "in a micro-batch" if started > ended else "between micro-batches"


def latest(log: Path) -> int:
    """The last entry of one of Spark's logs; −1: none."""
    return max((int(path.name) for path in log.glob("*") if path.name.isdigit()), default=-1)


def committed(folder: Path) -> int:
    return latest(folder / "checkpoint" / "commits") + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--life", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.life is not None:
        life(arguments.life)
        return
    with tempfile.TemporaryDirectory() as folder:
        moments = killed_and_started_again(Path(folder), arguments.kills, arguments.seed)
    print(f"seed {arguments.seed}: exact after {sum(moments.values())} kills ({dict(moments)})")


if __name__ == "__main__":
    main()
