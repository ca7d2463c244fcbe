"""The pipeline of this folder from end to end, with a restart in the middle. One command:

    python examples/kafka/run.py

It starts a Kafka on this machine, produces logins to it, starts ``pipeline.py`` in a process of its own, kills that in
mid-run (``kill -9``), produces the rest, starts it again, and compares: the Delta table holds exactly the matches of one
pass over all events, and so does the topic once repeated messages are dropped by their id.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pipeline
import pyarrow as pa
from broker import Broker, connector
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import stretto

START = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)

#: Records that are no events: they must not stop the query, and must not be lost.
UNREAD = ["", "no JSON", '{"type":"LOGIN","ts":"soon","account":"a1"}', '{"type":"LOGIN","account":"a1"}']

#: How long the pipeline may take for what it does in seconds, on a busy machine.
PATIENCE = 240


def make_events(seed: int, number: int) -> list[dict[str, Any]]:
    """Logins and transfers of a few accounts, one a second, and at the end a time that closes all windows."""
    rng = random.Random(seed)
    kinds = ["FAILED"] * 4 + ["LOGIN"] * 2 + ["TRANSFER", "LOGOUT"]
    events = [
        {
            "type": rng.choice(kinds),
            "ts": (START + dt.timedelta(seconds=second)).isoformat(),
            "account": f"a{rng.randrange(30)}",
            "amount": float(rng.randrange(1, 4000)),
        }
        for second in range(number)
    ]
    late = START + dt.timedelta(seconds=number, hours=2)
    return [*events, {"type": "LOGOUT", "ts": late.isoformat(), "account": "nobody", "amount": 0.0}]


def produce(session: SparkSession, servers: str, values: Iterable[tuple[str, str]]) -> None:
    """Send messages with their keys: the events of an account are in one partition, in order."""
    df = session.createDataFrame(list(values), "key string, value string").coalesce(1)
    df.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "logins").save()


def consume(session: SparkSession, servers: str) -> list[dict[str, Any]]:
    """All messages of the topic of alarms."""
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "alarms")
    return [json.loads(row.value) for row in reader.load().collect()]


@contextmanager
def running(servers: str, out: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """``pipeline.py`` in a process group of its own, which is killed at the end whatever happens."""
    command = [sys.executable, str(Path(pipeline.__file__)), "--servers", servers, "--out", str(out), *more]
    with (out / "pipeline.log").open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True, start_new_session=True)
    try:
        yield process
    except BaseException:
        sys.stderr.write((out / "pipeline.log").read_text(errors="replace")[-4000:])
        raise
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def rows_of(path: Path) -> list[dict[str, Any]]:
    """A Delta table's rows; none when there is no table yet."""
    return DeltaTable(str(path)).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(str(path)) else []


def wait_for_rows(process: subprocess.Popen[str], path: Path) -> int:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the pipeline ended with status {process.returncode}")
        if rows := rows_of(path):
            return len(rows)
        time.sleep(0.5)
    raise RuntimeError(f"no match within {PATIENCE} seconds")


def expected(events: list[dict[str, Any]]) -> Counter[tuple[str, str, float]]:
    """The matches of one pass over all events, in this process."""
    table = pa.Table.from_pylist([event | {"ts": dt.datetime.fromisoformat(event["ts"])} for event in events])
    found = stretto.match(pipeline.QUERY, table, time="ts").to_pylist()
    return Counter(match_of(row) for row in found)


def match_of(row: dict[str, Any]) -> tuple[str, str, float]:
    """A match, from Arrow, Delta or JSON."""
    first, paid = row["first"][0], row["paid"][0]
    at = first["ts"] if isinstance(first["ts"], dt.datetime) else dt.datetime.fromisoformat(first["ts"])
    return row["account"], at.isoformat(), paid["amount"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    events = make_events(options.seed, options.events)
    sent = [(event["account"], json.dumps(event)) for event in events]
    sent[10:10] = [("?", text) for text in UNREAD]
    half = len(sent) // 2
    jars = ",".join(map(str, connector()))
    with Broker() as kafka, tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        session = stretto.spark.session("example", cores=2, **{"spark.jars": jars})
        produce(session, kafka.servers, sent[:half])
        print(f"Kafka at {kafka.servers}; {half} messages produced")
        with running(kafka.servers, out) as process:
            before = wait_for_rows(process, out / "alarms")
        print(f"the pipeline is killed; the table has {before} matches")
        produce(session, kafka.servers, sent[half:])
        with running(kafka.servers, out, "--once") as process:
            if process.wait(PATIENCE) != 0:
                raise RuntimeError(f"the pipeline ended with status {process.returncode}")
        messages = consume(session, kafka.servers)
        session.stop()
        told = {message["match_id"]: match_of(message) for message in messages}
        table, unread = rows_of(out / "alarms"), rows_of(out / "unread")

    wanted = expected(events)
    found = Counter(match_of(row) for row in table)
    assert found == wanted, f"the table lacks {wanted - found} and has {found - wanted} too much"
    assert Counter(told.values()) == wanted, "the topic"
    assert sorted(row["raw"] for row in unread) == sorted(UNREAD), "what could not be read"
    print(f"started again: {len(table)} matches in the table, as expected")
    print(f"{len(messages)} messages, {len(messages) - len(told)} of them repeated; {len(unread)} records to the side")


if __name__ == "__main__":
    main()
