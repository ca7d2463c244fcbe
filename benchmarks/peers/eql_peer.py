"""PyPI's ``eql`` over rules and events that a file holds: run by ``benchmarks.rules`` in an environment that has it.

It knows nothing of this project, which does not import it.
"""

import json
import sys
import time

import eql
from eql.engine import PythonEngine
from eql.events import Event
from eql.parser import elasticsearch_syntax, parse_query

TICKS = 10_000  # of 100 nanoseconds, in a millisecond


def nested(row: dict) -> dict:
    """An event whose fields have dots, as objects in objects; a field that is also the beginning of others is left out."""
    found: dict = {}
    for name, value in sorted(row.items(), key=lambda pair: -pair[0].count(".")):
        *path, last = name.split(".")
        inner = found
        for word in path:
            inner = inner.setdefault(word, {})
        if last not in inner:
            inner[last] = value
    return found


def main() -> None:
    """Print how many rules it takes, how many rows it finds, and events a second of processor time."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    engine = PythonEngine()
    rows = []
    engine.add_output_hook(lambda one: rows.append(None))
    refused = 0
    with elasticsearch_syntax:
        for rule in job["rules"]:
            try:
                engine.add_query(parse_query(rule))
            except eql.EqlError:
                refused += 1
    events = [Event(row["event.category"], row["@timestamp"] * TICKS, nested(row)) for row in job["events"]]
    start = time.process_time()
    engine.stream_events(events, finalize=True)
    seconds = time.process_time() - start
    print(f"{len(job['rules']) - refused:,} rules, {len(rows):,} rows, {len(events) / seconds:,.0f} events/s")


if __name__ == "__main__":
    main()
