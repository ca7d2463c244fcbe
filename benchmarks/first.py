"""``python -m benchmarks.first``: how long a stranger waits for the first answer, in a new process, beside other libraries.

Each side runs the funnel of ``benchmarks/users`` over a Parquet file twice in a process of its own: the first answer is counted from
the start of Python, imports and all; the second is what a further call takes. ``--python`` names an interpreter with an installed
wheel, as users have it; its caches are empty each time. Processor seconds are those of the process and its children.
pycer (CORE in C++) reads no files: Python reads it the same events from CSV, and makes an object of each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.peers import launch
from benchmarks.users.suite import CASES, clicks

FUNNEL = CASES["cases"]["funnel"]

#: What defines ``answer`` of each side, which gives a count of keys.
SIDES = {
    "stretto": """
import stretto, pyarrow.compute as pc
def answer():
    return pc.count_distinct(stretto.match(QUERY, EVENTS)["k"]).as_py()
""",
    "DuckDB": """
import duckdb
connection = duckdb.connect()
connection.execute("SET threads = 1")
def answer():
    return connection.execute(DUCKDB).fetchall()[0][0]
""",
    "polars": """
import polars as pl
def last(kind, value):
    return pl.when(pl.col("type") == kind).then(pl.col(value)).forward_fill().over("k")
def answer():
    rows = pl.scan_parquet(EVENTS).filter(pl.col("type").is_in(["view", "cart", "buy"])).select("k", "ts", "type")
    rows = rows.with_columns(began=last("view", "ts")).with_columns(began=last("cart", "began"))
    found = rows.filter((pl.col("type") == "buy") & (pl.col("ts") - pl.col("began") <= 600_000))
    return found.select(pl.col("k").n_unique()).collect().item()
""",
    "chdb": """
import chdb
def answer():
    return int(str(chdb.query(CHDB + " SETTINGS max_threads = 1", "CSV")).strip())
""",
    "pycer": """
import atexit, csv, os, re, sys
import pycer
KINDS = ("view", "cart", "buy")
def answer():
    server = pycer.PyOfflineServer()
    declared = ", ".join(f"EVENT {kind} {{ k:int, ts:primary_time }}" for kind in KINDS)
    stream = server.declare_stream("CREATE STREAM S { " + declared + " }")
    ids = {kind.name: kind.id for kind in stream.events_info}
    server.add_query(QUERY)
    events = []
    with open(EVENTS.replace("parquet", "csv"), newline="") as file:
        for row in csv.DictReader(file):
            if row["type"] in ids:
                at = pycer.PyIntValue(int(row["ts"]))
                events.append(pycer.PyEvent(ids[row["type"]], [pycer.PyIntValue(int(row["k"])), at], at))
    server.send_events(events)
    return len(set(re.findall(r"attributes: .(\\d+)", server.get_output())))
atexit.register(lambda: (sys.stdout.flush(), os._exit(0)))  # its threads end with the process
""",
    "PySpark, a count": """
from pyspark.sql import SparkSession
def answer():
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    return spark.read.parquet(EVENTS).where("type = 'buy'").select("k").distinct().count()
""",
}

CALLS = """
import json, time
first = answer()
at, spent = time.time(), time.process_time()
second = answer()
assert first == second
print(json.dumps([first, at, time.time() - at, time.process_time() - spent]))
"""


def measured(python: str, code: str, events: Path) -> dict[str, float]:
    """Seconds from the start of Python to the first answer and of the second one, and of the processor in all."""
    names = {
        "EVENTS": str(events),
        "QUERY": FUNNEL["query"],
        "CHDB": FUNNEL["chdb"].format(events=events),
        "DUCKDB": FUNNEL["duckdb"].format(events=events),
    }
    text = "".join(f"{name} = {value!r}\n" for name, value in names.items()) + code + CALLS
    with tempfile.TemporaryDirectory() as cache:
        Path(cache).chmod(0o700)
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "PYTHON", "STRETTO"))
        }
        began, before = time.time(), os.times()
        done = subprocess.run(
            [python, "-c", text],
            env=kept | {"STRETTO_CACHE_DIR": cache},
            cwd=cache,
            capture_output=True,
            text=True,
            check=False,
        )
        after = os.times()
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-400:])
    count, at, second, own = json.loads(done.stdout.strip().splitlines()[-1])
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return {"count": count, "first": at - began, "processor": spent - own, "second": second}


def _interpreter(side: str, options: argparse.Namespace) -> str:
    """The Python that has what a side needs."""
    if side == "pycer":
        return str(launch.prepare())
    return str(options.spark_python if "Spark" in side else options.python)


def main() -> int:
    """Show a table of all sides."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first", description=__doc__)
    parser.add_argument("sides", nargs="*", choices=[*SIDES, []], help="which sides; all if none is named")
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose packages are measured")
    parser.add_argument("--spark-python", default=sys.executable, help="the interpreter that has PySpark")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print("| side | first answer, s | of the processor, s | second answer, s | keys |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events.parquet"
        table = clicks(options.events, max(1, options.events // 100), 100)
        pq.write_table(table, events, row_group_size=1 << 20)
        pyarrow.csv.write_csv(table, events.with_suffix(".csv"))
        for side in options.sides or SIDES:
            try:
                python = _interpreter(side, options)
                runs = [measured(python, SIDES[side], events) for _ in range(options.repeat)]
            except (RuntimeError, launch.PeerUnavailableError) as error:
                print(f"| {side} | {str(error).splitlines()[-1]} | | | |")
                continue
            least = {name: min(run[name] for run in runs) for name in runs[0]}
            shown = " | ".join(f"{least[name]:.2f}" for name in ("first", "processor", "second"))
            print(f"| {side} | {shown} | {least['count']:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
