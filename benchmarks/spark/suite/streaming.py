"""Continuous queries against states that only count, and buckets of keys against a state a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.data import MILLISECONDS_APART
from benchmarks.spark import process, queries
from benchmarks.spark.outcome import Comparison, Side
from benchmarks.spark.streams import Stream
from benchmarks.spark.suite.options import START_ROWS, Options
from stretto.spark.options import BUCKETS

__all__ = [
    "differing",
    "left_out",
    "per_key",
    "speculation",
    "state_size",
    "streaming",
    "streaming_job",
    "streaming_query",
    "streaming_side",
    "total",
    "warm",
]


def streaming_query(case: str, keys: int) -> str:
    """A query whose windows hold about as many events of a key whatever the number of keys."""
    span = max(keys, 1_000) * MILLISECONDS_APART
    if case == "v-shape":
        return f"{queries.V_SHAPE}\nWITHIN {10 * span} milliseconds"
    text = queries.sequence(3, 20 * span, keyed=True, consume="PARTITION")
    return text.replace("[millis]", "milliseconds")


#: The part of the events that come late where that is what is measured.
LATE = 0.05

COLUMNS = {
    "v-shape": ["type", "id", "account", "ts", "move"],
    "sequence": ["type", "id", "name", "account", "ts"],
}


def streaming(options: Options) -> Iterator[Comparison]:
    """A continuous query against states that only count, by number of keys."""
    rows = options.rows or 0
    batch_rows = min(options.batch_rows, max(rows // 10, 1))
    for case in ("v-shape", "sequence"):
        by_keys: dict[int, Side] = {}
        for keys in options.keys:
            name = f"{case}, {keys:,} keys"
            if not options.wants(name):
                continue
            found = _streaming_case(options, case, keys, Stream(rows, keys, batch_rows), name)
            by_keys[keys] = found.sides[0]
            yield found
        if {1_000, 1_000_000} <= set(by_keys):
            few, many = by_keys[1_000], by_keys[1_000_000]
            yield Comparison(
                "streaming",
                f"{case}, cost of an event at 1,000,000 keys over 1,000",
                sides=[few, many],
                value=few.rate / many.rate,
                goal=2.0,
                at_most=True,
            )


def _streaming_case(options: Options, case: str, keys: int, stream: Stream, name: str) -> Comparison:
    found = Comparison(
        "streaming", name, of="match", to=("count, packed", "count, packed, pandas", "count, frames"), goal=0.7
    )
    query = streaming_query(case, keys)
    job = streaming_job(options, stream, query, COLUMNS[case])
    result = process.run("stream", job | {"kind": "match"})
    found.sides.append(streaming_side("match", stream, result))
    found.sides[0].matches = total(result, "matches")
    size = state_size(result, min(keys + 1, options.buckets or BUCKETS))
    for kind in ("packed", "packed, pandas", "frames"):
        counted = process.run("stream", job | {"kind": kind, "state_size": size})
        found.sides.append(streaming_side(f"count, {kind}", stream, counted))
    found.note = f"state of a bucket: {size:,} bytes; the first two micro-batches are not timed"
    _check_stream(found, stream, query, result)
    return found


def speculation(options: Options) -> Iterator[Comparison]:
    """Queries that answer ahead of what is certain, on streams of which some events are late, against states that only count.

    A late event comes up to a micro-batch behind its time, and the queries wait as long where they answer in order.
    """
    rows, keys = options.rows or 0, 1_000
    batch_rows = min(options.batch_rows, max(rows // 10, 1))
    stream = Stream(rows, keys, batch_rows, late=LATE, behind=batch_rows)
    for case, (query, ordered, columns) in queries.speculative(keys * MILLISECONDS_APART).items():
        if options.wants(case):
            yield _speculative_case(options, stream, Comparison("speculation", case), query, ordered, columns)


def _speculative_case(
    options: Options, stream: Stream, found: Comparison, query: str, ordered: str, columns: list[str]
) -> Comparison:
    found.of, found.to, found.goal = "ahead", ("count, packed",), 0.5
    delay = f"{stream.behind * MILLISECONDS_APART} milliseconds"
    job = streaming_job(options, stream, query, columns) | {"disorder": delay, "automaton": query != ordered}
    waited = []
    for name, ahead in (("ahead", True), ("in order", False)):
        result = process.run("stream", job | {"kind": "match", "ahead": ahead})
        side = streaming_side(name, stream, result, untimed=3)
        given, back = total(result, "matches"), total(result, "revisions")
        side.matches = given - 2 * back
        # An event that the watermark has not passed in the end is in no answer that is certain.
        once = _one_pass(replace(stream, late=0.0), ordered, 0 if ahead else stream.behind + 1)
        found.wrong = found.wrong or left_out(result) or differing(once, side.matches, name)
        seconds = total(result, "waited_ms") / 1000 / max(given - back, 1)
        side.note += f", {back:,} matches taken back, answers {seconds:,.0f} s behind their last events"
        waited.append(seconds)
        found.sides.append(side)
    size = state_size(found.sides[0].raw, options.buckets or BUCKETS)
    counted = process.run("stream", job | {"kind": "packed", "state_size": size})
    found.sides.append(streaming_side("count, packed", stream, counted, untimed=3))
    found.note = (
        f"{stream.late:.0%} of the events come up to {delay} late, a micro-batch; answers ahead come after "
        f"{waited[0] / waited[1]:.0%} of the time of those in order; state of a bucket: {size:,} bytes"
    )
    return found


def per_key(options: Options) -> Iterator[Comparison]:
    """A state a key against buckets of keys."""
    rows = options.rows or 0
    for keys in [keys for keys in options.keys if keys <= rows]:
        name = f"{keys:,} keys"
        if not options.wants(name):
            continue
        stream = Stream(rows, keys, max(rows // 5, 1))
        found = Comparison("per-key", name, of="buckets", to=("a state a key",))
        job = streaming_job(options, stream, streaming_query("v-shape", keys), COLUMNS["v-shape"])
        for side, buckets in (("buckets", options.buckets), ("a state a key", 1 << 61)):
            result = process.run("stream", job | {"kind": "match", "buckets": buckets})
            found.sides.append(streaming_side(side, stream, result))
            found.sides[-1].matches = total(result, "matches")
        found.same_matches()
        yield found


def streaming_job(options: Options, stream: Stream, query: str, columns: list[str]) -> dict[str, Any]:
    """What a worker is told of a stream."""
    return {
        "events": str(stream.folder()),
        "query": query,
        "columns": columns,
        "buckets": options.buckets,
        "cores": options.cores,
        "driver_memory": options.driver_memory,
        "files": 1,
    }


def streaming_side(name: str, stream: Stream, result: dict[str, Any], untimed: int = 2) -> Side:
    """A query's warm micro-batches as one run."""
    timed = warm(result["batches"], untimed)
    read = sum(batch["rows"] for batch in result["batches"])
    if read != stream.rows:
        raise process.WorkerError(f"{name}: {read:,} of {stream.rows:,} events were read")
    return Side(
        name,
        sum(batch["rows"] for batch in timed),
        [sum(batch["seconds"] for batch in timed)],
        resident_peak=result["resident_peak"],
        note=f"{len(timed)} batches",
        raw=result,
        processor=_processor_time(result["batches"], untimed),
    )


def warm(batches: list[dict[str, Any]], untimed: int = 2) -> list[dict[str, Any]]:
    """The micro-batches to be timed: those with data, each of which matches the events of the one before.

    In the first two processes start and kernels load. The one without data at the end is that of a stream that ends.
    """
    return [batch for batch in batches[untimed:] if batch["rows"]] or batches


def _processor_time(batches: list[dict[str, Any]], untimed: int) -> list[float]:
    """What the timed micro-batches took, where each end was seen."""
    at = [batch["processor"] for batch in batches[untimed - 1 :] if batch["rows"]]
    return [at[-1] - at[0]] if len(at) > 1 and None not in at else []


def total(result: dict[str, Any], name: str) -> int:
    return int(sum(batch["metrics"].get(name, 0) for batch in result["batches"]))


def left_out(result: dict[str, Any]) -> str:
    """What is wrong when events took no part; empty when all did."""
    for name in ("late", "duplicates", "no_key", "no_time"):
        if number := total(result, name):
            return f"{number:,} events are counted as {name}"
    return ""


def state_size(result: dict[str, Any], states: int) -> int:
    """What a bucket's state takes in the middle of the stream, in bytes; bucket 0 has one in any case."""
    sizes = [batch["metrics"].get("state_bytes", 0) / states for batch in warm(result["batches"])]
    return int(sum(sizes) / len(sizes)) if sizes else 8


def _check_stream(found: Comparison, stream: Stream, query: str, result: dict[str, Any]) -> None:
    """The matches must be those of one pass over all events but the last, which the watermark does not pass."""
    found.wrong = left_out(result) or differing(_one_pass(stream, query, 1), found.sides[0].matches, "the stream")


def _one_pass(stream: Stream, query: str, but_last: int) -> int:
    """The matches of one pass over a stream in order, but for its last events."""
    job = {
        "events": str(stream.folder()),
        "warm": str(replace(stream, rows=START_ROWS).folder()),
        "query": query,
        "repeat": 1,
        "time": "ts",
        "but_last": but_last,
    }
    return int(process.run("embedded", job)["matches"])


def differing(once: int, matches: int | None, name: str) -> str:
    """What is wrong when these are not the matches of one pass; empty when they are."""
    return "" if once == matches else f"one pass over the events finds {once:,} matches, {name} {matches:,}"
