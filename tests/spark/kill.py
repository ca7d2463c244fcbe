"""Exactly once under ``kill -9``: a continuous query is killed at random moments, and its rows are those of one ordered pass.

Each life is a process of its own with its own JVM; the whole process group is killed: in turn some time after the start, as soon as
the sink has written a micro-batch that is not committed, and some time after this life committed one. Where kills fell is read from
the logs. Run more than the tests do::

    python -m tests.spark.kill sase --kills 100
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import stretto
from stretto import connectors
from stretto.dataflow import Dataflow, Stream, stream
from stretto.dataflow.stream import keyed
from stretto.matching.pattern_set.with_metadata import AnnotatedPatternSet
from tests.spark.sessions import SETTINGS
from tests.spark.streams import add_file, bag, read_stream, run

__all__ = ["KINDS", "killed_and_started_again"]

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ROWS = 60
KEYS = 12
COLUMNS: dict[str, Any] = {"time": "ts", "sequence": "seq"}
RUNNING: dict[str, Any] = {"disorder": "3 seconds", "buckets": 5}

#: The longest time in seconds that a life has after its query started: the first micro-batches take some seconds.
LONGEST = 9.0

#: What kills are aimed at, in turn.
AIMS = ("start", "write", "commit")

#: A change of a pattern holds so many seconds after the events beside it: further ahead than the query can have read.
AHEAD = 100


class Kind(NamedTuple):
    """What is killed."""

    #: The query over the files of a folder.
    query: Callable[[Any, Path], Any]
    #: What all its rows must come to, from all events in order.
    expected: Callable[[list[pa.Table]], Any]
    #: What the rows of the sink come to.
    found: Callable[[pa.Table], Any] = bag
    #: Changes of what runs, which come with the file of events of a number.
    changes: Callable[[int], pa.Table] | None = None
    #: Whether the sink is a table of current matches.
    current: bool = False


def _matching(text: str) -> Kind:
    return Kind(
        lambda spark, folder: stretto.spark.match(read_stream(spark, folder / "in"), text, **COLUMNS, **RUNNING),
        lambda files: bag(stretto.match(text, pa.concat_tables(files), **COLUMNS)),
    )


#: How many patterns there are, of which so many change with each file of events.
PATTERNS, CHANGED = 1_000, 10

CHANGES = pa.schema(
    [
        ("id", pa.string()),
        ("query", pa.string()),
        ("since", pa.timestamp("us", "UTC")),
        ("every", pa.string()),
        ("title", pa.string()),
    ]
)


def changes(number: int) -> pa.Table:
    """How patterns change with the file of events ``number``: some get another window, other keys and another title, or end."""
    since = START + dt.timedelta(seconds=number * ROWS / 10 + AHEAD) if number else None
    rows = []
    for pattern in range(PATTERNS) if number == 0 else range(number * CHANGED, (number + 1) * CHANGED):
        key, seconds = f"k{(pattern + number) % KEYS}", 1 + (pattern // KEYS + number) % 7
        text = f"SELECT a, b FROM S WHERE A AS a ; B AS b FILTER a[key = '{key}'] PARTITION BY [key] WITHIN {seconds} seconds"
        ends = number and pattern % 5 == 4
        row = {"id": f"p{pattern % PATTERNS}", "query": None if ends else text, "since": since}
        rows.append(row | {"every": "3 seconds" if pattern % 3 == 0 else None, "title": f"title {number}"})
    return pa.Table.from_pylist(rows, CHANGES)


def _patterns(spark: Any, folder: Path) -> Any:
    events, changing = (read_stream(spark, folder / name) for name in ("in", "changes"))
    return stretto.spark.match_patterns(events, changing, by=["key"], shown=["title"], **COLUMNS, **RUNNING)


def _expected_of_patterns(files: list[pa.Table]) -> list[str]:
    patterns = AnnotatedPatternSet(stretto.PatternSet(files[0].schema, time="ts", by=["key"]), ["title"])
    for number in range(len(files) - 1):
        patterns.change(changes(number))
    return bag(patterns.push(pa.concat_tables(files).sort_by([("ts", "ascending"), ("seq", "ascending")])))


def _counting() -> Stream:
    """How many events of each type lie within 10 seconds."""
    return stream("S", {"type": str}, insert_only=True).window(10).aggregate("type", n="count()")


AHEAD_OF_ALL = "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_next_match { [key] } WITHIN 12 seconds"


def _ahead(spark: Any, folder: Path) -> Any:
    events = read_stream(spark, folder / "in")
    return stretto.spark.match(events, AHEAD_OF_ALL, **COLUMNS, **RUNNING, speculation=math.inf)


def _expected_ahead(files: list[pa.Table]) -> list[str]:
    return net(stretto.match(AHEAD_OF_ALL, pa.concat_tables(files), **COLUMNS))


def net(table: pa.Table) -> list[str]:
    """Matches that are given and not taken back, in the sink or in a table of them."""
    total: Counter[str] = Counter()
    for row in table.to_pylist():
        count = row.pop("sign", 1) * row.pop("count", 1)
        shown = {name: row[name] for name in sorted(row) if name not in ("start", "end", "positions", "match_id")}
        total[repr(shown)] += count
    assert all(count >= 0 for count in total.values())
    return sorted(total.elements())


def _arcs(number: int) -> pa.Table:
    """An arc that comes with the file of events ``number`` and is valid for 20 seconds."""
    since = START + dt.timedelta(seconds=number * ROWS / 10 + AHEAD)
    row = {"action": "add", "id": f"c{number}", "source": "q1", "target": "q1", "when": "e.type = 'C'"}
    times = {"since": since, "until": since + dt.timedelta(seconds=20)}
    kinds = pa.schema([*((name, pa.string()) for name in row), *((name, pa.timestamp("us", "UTC")) for name in times)])
    return pa.Table.from_pylist([row | times], kinds)


def _automaton() -> stretto.AFA:
    made = stretto.AFA({"type": str, "key": str}, window="12 seconds", partition_by="key")
    return made.arc("q0", "q1", "e.type = 'A'").arc("q1", "q2", "e.type = 'B'").final("q2")


def _afa(spark: Any, folder: Path) -> Any:
    events, arcs = (read_stream(spark, folder / name) for name in ("in", "changes"))
    return stretto.spark.match(events, _automaton(), **COLUMNS, **RUNNING, arcs=arcs, speculation="1 second")


def _expected_of_the_automaton(files: list[pa.Table]) -> list[str]:
    matcher = stretto.Matcher(_automaton(), **COLUMNS, dynamic="explicit")
    arcs = pa.concat_tables([_arcs(number) for number in range(len(files) - 1)])
    matcher.push(files[0].schema.empty_table(), arcs=arcs)
    return net(matcher.push(pa.concat_tables(files)).drop_columns(["register"]))


CLAUSE = """MATCH_RECOGNIZE (
    PARTITION BY key ORDER BY ts, seq
    MEASURES FIRST(seq) AS first_seq, LAST(seq) AS last_seq, count(*) AS n, MATCH_NUMBER() AS number
    PATTERN (A B+ C*?) WITHIN INTERVAL '60' SECOND
    DEFINE A AS type = 'A', B AS seq > A.seq + 2 AND type <> 'C', C AS type = 'C'
)"""


def _clause(spark: Any, folder: Path) -> Any:
    read_stream(spark, folder / "in").withWatermark("ts", RUNNING["disorder"]).createOrReplaceTempView("killed")
    return stretto.spark.sql(spark, f"SELECT * FROM killed {CLAUSE}")


def _expected_of_the_clause(files: list[pa.Table]) -> list[str]:
    """The matches that are final when the watermark has passed all events but the last."""
    matcher = stretto.Matcher(CLAUSE, disorder=math.inf)
    end = files[-1].column("ts")[0].as_py()
    return bag(
        pa.concat_tables([matcher.push(pa.concat_tables(files[:-1])), matcher.advance(end - dt.timedelta(seconds=3))])
    )


def _dataflow(spark: Any, folder: Path) -> Any:
    rows = read_stream(spark, folder / "in").selectExpr("type", "key", "unix_seconds(ts) AS vs")
    return stretto.spark.dataflow(rows, _counting(), by="key", time_unit="s", **RUNNING)


def history(rows: Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """What holds in each second, from insertions and retractions."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        to = row.get("ve_new")
        for second in range(row["vs"] if to is None else to, row["ve"]):
            found[row["key"], row["type"], row["n"], second] += 1 if to is None else -1
    return +found


def _expected_of_the_dataflow(files: list[pa.Table]) -> Counter[tuple[Any, ...]]:
    flow = Dataflow(result=keyed({"r": _counting()}, {"key": pa.string()})["r"])
    rows = pa.concat_tables(files)
    seconds = rows.column("ts").cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())
    flow.push("S", rows.select(["type", "key"]).append_column("vs", seconds))
    flow.finish()
    flow.run_until_idle()
    return history(flow.history("result").to_pylist())


#: By name, each a lane of its own (``make test-kills-NAME``); ``ahead`` is SASE+ that does not wait for late events.
KINDS = {
    "ceql": _matching("SELECT a, b FROM S WHERE A AS a ; B+ AS b ; C PARTITION BY [key] WITHIN 12 seconds"),
    "sase": _matching(
        "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [key] and b[i].seq > a.seq + 9 } WITHIN 12 seconds"
    ),
    "clause": Kind(_clause, _expected_of_the_clause),
    "totals": _matching(
        "SELECT COUNT(*) AS n, SUM(b[seq]) AS total FROM S WHERE A AS a ; B+ AS b PARTITION BY [key] WITHIN 6 seconds EVERY 2 seconds"
    ),
    "ahead": Kind(_ahead, _expected_ahead, net),
    "afa": Kind(_afa, _expected_of_the_automaton, net, _arcs),
    "current": Kind(_ahead, _expected_ahead, net, current=True),
    "patterns": Kind(_patterns, _expected_of_patterns, changes=changes),
    "dataflow": Kind(_dataflow, _expected_of_the_dataflow, lambda rows: history(rows.to_pylist())),
}


def life(kind: Kind, folder: Path) -> None:
    """Run the query over the files that are there; the process may be killed at any moment."""
    spark = stretto.spark.session("kill", cores=2, **SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    found = kind.query(spark, folder)
    print("ready", flush=True)
    write = connectors.current.writer(folder / "out", "kill", format="parquet") if kind.current else None
    run(found, folder / "checkpoint", folder / "out", write)
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


def killed_and_started_again(name: str, folder: Path, kills: int, seed: int) -> Counter[str]:
    """Kill the query ``kills`` times, let it end, and compare.

    Returns
    -------
    Counter
        How often the process died before its query started, in a micro-batch before and after the sink had written it, and
        between micro-batches.

    Raises
    ------
    AssertionError
        What is in the sink is not exactly what one pass over all events gives.
    """
    rng, kind = random.Random(seed), KINDS[name]
    files: list[pa.Table] = []

    def feed(count: int) -> None:
        for _ in range(count):
            if kind.changes is not None:
                add_file(folder / "changes", kind.changes(len(files)), len(files))
            files.append(events(rng, len(files)))
            add_file(folder / "in", files[-1], len(files))

    feed(6)
    moments: Counter[str] = Counter()
    while sum(moments.values()) < kills:
        unread = len(files) - committed(folder)
        feed(max(0, 8 - unread))
        aim = AIMS[(seed + sum(moments.values())) % len(AIMS)]
        moments[killed(name, folder, aim, rng.uniform(0.0, LONGEST if aim == "start" else LONGEST / 3))] += 1
    end = events(rng, 10 * len(files)).slice(0, 1)  # far behind the others: the watermark passes them all
    files.append(end)
    add_file(folder / "in", end, len(files))
    child = start(name, folder)
    child.communicate(timeout=1800)
    assert child.returncode == 0, f"seed {seed}: {(folder / 'errors').read_text()[-4000:]}"
    expected, found = kind.expected(files), kind.found(sink(folder))
    assert expected
    assert found == expected, f"{name}, seed {seed}: {len(found)} rows, not {len(expected)}; {dict(moments)}"
    return moments


def sink(folder: Path) -> pa.Table:
    """The rows that the Parquet sink has committed, by its own log."""
    spark = stretto.spark.session("kill", cores=2, **SETTINGS)
    table: pa.Table = spark.read.parquet(str(folder / "out")).toArrow()
    return table


def start(name: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.spark.kill", name, "--life", str(folder)]
    with (folder / "errors").open("w") as errors:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            cwd=Path(__file__).parents[2],
        )


def killed(name: str, folder: Path, aim: str, seconds: float) -> str:
    """Start a life and kill it, so many seconds after its query or a commit or, aimed at a write, right then; tells when it died."""
    child, before = start(name, folder), committed(folder)
    assert child.stdout is not None
    line = child.stdout.readline().strip()
    if line != "ready":
        raise AssertionError(f"the process ended before its query started: {line!r} {(folder / 'errors').read_text()}")
    until = time.monotonic() + 10 * LONGEST
    waits: Callable[[], bool] = {
        "write": lambda: written(folder) <= max(before, committed(folder)),
        "commit": lambda: committed(folder) <= before,
        "start": lambda: False,
    }[aim]
    while child.poll() is None and waits() and time.monotonic() < until:
        time.sleep(0.0005)
    if aim != "write":
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    started, ended = latest(folder / "checkpoint" / "offsets"), committed(folder)
    if started < 0:
        return "before the first micro-batch"
    if started < ended:
        return "between micro-batches"
    return "between the sink's write and the commit" if written(folder) > ended else "in a micro-batch"


def latest(log: Path) -> int:
    """The last entry of one of Spark's logs; −1: none."""
    names = (path.name.removesuffix(".compact") for path in log.glob("*"))
    return max((int(name) for name in names if name.isdigit()), default=-1)


def committed(folder: Path) -> int:
    """How many micro-batches are done."""
    return latest(folder / "checkpoint" / "commits") + 1


def written(folder: Path) -> int:
    """How many micro-batches the sink has; of a table of current matches, up to which one a file of it goes."""
    if (folder / "out" / "_spark_metadata").exists():
        return latest(folder / "out" / "_spark_metadata") + 1
    known = [pq.read_schema(part).metadata[b"stretto"] for part in (folder / "out").glob("part-*.parquet")]
    return max((json.loads(one)["batch"] + 1 for one in known), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--life", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.life is not None:
        life(KINDS[arguments.kind], arguments.life)
        return
    with tempfile.TemporaryDirectory() as folder:
        moments = killed_and_started_again(arguments.kind, Path(folder), arguments.kills, arguments.seed)
    print(f"{arguments.kind}, seed {arguments.seed}: exact after {sum(moments.values())} kills ({dict(moments)})")


if __name__ == "__main__":
    main()
