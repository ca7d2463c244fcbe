"""Runs one query in pycer (CORE in C++). Started by the runner in an interpreter that has pycer; needs
nothing else.

Reads a job from the file named on the command line, prebuilds the events (not timed), times the processing,
prints a JSON line. Each run has a new server; the events are the same objects. pycer writes a log folder
where it runs and talks to the standard output, so the runner gives it a temporary directory and reads only
the last line.

``send_events`` only queues: threads of the server take the events from there, and ``get_output`` waits until
they are done. Processing is therefore timed from the call of the one to the return of the other, less what
``get_output`` takes on a server that got no event (it ends threads that sleep, about 0.1 s). Part of
that sleep can overlap with work, so the time is never taken to be less than the process kept its core busy.
"""

import csv
import json
import os
import sys
import time
from typing import Any

import pycer

Job = dict[str, Any]

CONSTRUCTORS = {"int": pycer.PyIntValue, "double": pycer.PyDoubleValue, "string": pycer.PyStringValue}
CONVERSIONS = {"int": int, "double": float, "string": str}


def declaration(job: Job) -> str:
    """The stream's declaration: every event type with all attributes, the window's attribute as the time."""
    attributes = ", ".join(
        f"{name}:{'primary_time' if name == job['time'] else kind}" for name, kind in job["attributes"]
    )
    events = ", ".join(f"EVENT {name} {{ {attributes} }}" for name in job["types"])
    return f"CREATE STREAM S {{ {events} }}"


def build_events(job: Job, stream: pycer.PyStreamInfo) -> list[Any]:
    """All events of the job's CSV file."""
    type_ids = {event.name: event.id for event in stream.events_info}
    makers = [(CONSTRUCTORS[kind], CONVERSIONS[kind]) for _, kind in job["attributes"]]
    names = [name for name, _ in job["attributes"]]
    events = []
    with open(job["events"], newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows)
        kind = header.index("type")
        columns = [header.index(name) for name in names]
        clock = names.index(job["time"])
        for row in rows:
            values = [make(convert(row[column])) for (make, convert), column in zip(makers, columns, strict=True)]
            events.append(pycer.PyEvent(type_ids[row[kind]], values, values[clock]))
    return events


def count(output: str) -> tuple[int, int]:
    """Complex events (a line each) and the events that completed them (neighbouring lines with the same
    last event).
    """
    lines = output.splitlines()
    triggers = 0
    before = None
    for line in lines:
        last = line[line.rfind("(id:") :]
        triggers += last != before
        before = last
    return len(lines), triggers


def status(field: str) -> int:
    """A line of /proc/self/status in bytes; 0 where there is none."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            found = [line for line in file if line.startswith(field + ":")]
        return int(found[0].split()[1]) * 1024
    except (OSError, IndexError):
        return 0


def reset_peak() -> None:
    """Forget the greatest resident set so far, where the system can."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


def process(job: Job, events: list[Any]) -> dict[str, Any]:
    """One run over ``events``: the output, and the seconds of ``send_events``, of ``get_output`` and of the processor."""
    server = pycer.PyOfflineServer()
    server.declare_stream(declaration(job))
    server.add_query(job["query"])
    start, busy = time.perf_counter(), time.process_time()
    server.send_events(events)
    sent = time.perf_counter()
    output = server.get_output()
    done = time.perf_counter()
    return {"output": output, "send": sent - start, "get": done - sent, "cpu": time.process_time() - busy}


def seconds(run: dict[str, Any], idle: dict[str, Any]) -> float:
    """The time of processing: without the sleep at the end, and at least what one core was busy."""
    elapsed = run["send"] + max(run["get"] - idle["get"], 0.0)
    return max(elapsed, run["cpu"] - idle["cpu"])


def run(job: Job) -> dict[str, Any]:
    """All timed runs of the job."""
    events = build_events(job, pycer.PyOfflineServer().declare_stream(declaration(job)))
    empty = [process(job, []) for _ in range(3)]
    idle = {name: min(run[name] for run in empty) for name in ("get", "cpu")}
    resident = status("VmRSS")
    reset_peak()
    runs: list[dict[str, Any]] = []
    output = ""
    begin = time.perf_counter()
    while not runs or (len(runs) < job["repeat"] and time.perf_counter() - begin < job["budget"]):
        runs.append(process(job, events))
        output = runs[-1].pop("output")
    matches, triggers = count(output)
    return {
        "seconds": [seconds(run, idle) for run in runs],
        "runs": runs,
        "idle": idle,
        "events": len(events),
        "matches": matches,
        "triggers": triggers,
        "resident_before": resident,
        "resident_peak": status("VmHWM"),
    }


def main() -> None:
    """Run the job on one core."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print("\n" + json.dumps(run(job)), flush=True)
    os._exit(0)  # pycer's background threads end with the process


if __name__ == "__main__":
    main()
