"""Runs one statement in Flink SQL, parallelism 1. Started by ``launch.py`` in an interpreter that has apache-flink; needs
nothing else.

Reads a job from the file named on the command line, runs the statement over each folder in turn in one JVM (so that all
but the first run are warm), prints a JSON line. A run is timed from handing the statement over to reading its last row.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

TABLE = """
CREATE TABLE {name} (
  `type` STRING, id BIGINT, name STRING, volume BIGINT, price DOUBLE, account BIGINT, millis BIGINT, `move` STRING,
  rt AS TO_TIMESTAMP_LTZ(millis, 3),
  WATERMARK FOR rt AS rt
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')
"""

SETTINGS = {
    "parallelism.default": "1",
    "pipeline.object-reuse": "true",
    # The sorts of batch jobs get room enough not to spill.
    "taskmanager.memory.managed.size": "2g",
}

#: The final count would otherwise be sent on after every match.
STREAMING = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "5 s",
    "table.exec.mini-batch.size": "100000",
}


def environment(job: dict[str, Any]) -> TableEnvironment:
    """A table environment of the job's mode with its jars."""
    configuration = Configuration()
    settings = SETTINGS | (STREAMING if job["mode"] == "streaming" else {})
    settings["pipeline.jars"] = ";".join(Path(jar).as_uri() for jar in job["jars"])
    for name, value in settings.items():
        configuration.set_string(name, value)
    builder = EnvironmentSettings.new_instance().with_configuration(configuration)
    builder = builder.in_streaming_mode() if job["mode"] == "streaming" else builder.in_batch_mode()
    return TableEnvironment.create(builder.build())


def run(tables: TableEnvironment, statement: str) -> tuple[int, float]:
    """The last row's first value, and the seconds it took."""
    start = time.perf_counter()
    value = 0
    with tables.execute_sql(statement).collect() as rows:
        for row in rows:
            value = row[0]
    return int(value), time.perf_counter() - start


def jvm_peak() -> int:
    """The most that a child process had resident (the JVM), in bytes; 0 where the system does not tell."""
    peak = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if fields.get("Name", "").strip() == "java" and _is_ours(int(fields["PPid"])):
            peak = max(peak, int(fields["VmHWM"].split()[0]) * 1024)
    return peak


def _is_ours(process: int) -> bool:
    """Whether a process is this one or a descendant of it."""
    own = Path("/proc/self").resolve().name
    while process > 1:
        if str(process) == own:
            return True
        try:
            text = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return False
        process = int(text.rsplit(")", 1)[1].split()[1])
    return False


def main() -> None:
    """Run the job that the command line names."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    start = time.perf_counter()
    tables = environment(job)
    for name, folder in job["folders"].items():
        tables.execute_sql((job.get("table") or TABLE).format(name=f"events_{name}", path=Path(folder).as_uri()))
    setup = time.perf_counter() - start
    runs = []
    for name in job["runs"]:
        matches, seconds = run(tables, job["statement"].replace("{events}", f"events_{name}"))
        runs.append({"name": name, "seconds": seconds, "matches": matches})
    print("\n" + json.dumps({"runs": runs, "setup": setup, "resident_peak": jvm_peak()}), flush=True)


if __name__ == "__main__":
    main()
