"""What runs the conformance vectors: a module a side. A new engine is a new file here, and nothing else.

A side has ``SKIPS``, the reasons for which it leaves out vectors and how many of each; ``why_not(vector)``, such a reason or an empty
string; and ``found(vector)``, its matches in any order. A side on Spark has ``all_found(vectors, spark, folder)`` in its place.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from stretto.engines.api import Matches
from tests.conformance.vectors import Row, Vector

__all__ = ["DISORDERED", "cut", "in_sequence", "remaining", "rows_of", "through"]

DISORDERED = "its events must come in order"


def through(program: Any, vector: Vector, tested: Iterable[str]) -> list[Row]:
    """What an engine's program finds in a vector's events, read one by one, with arrays that begin as small as they can be."""
    run = program.start(labels=True, capacity=1)
    found: list[Matches] = []
    columns = list(tested) or vector.events.column_names
    for batch in vector.events.select(columns).to_batches(max_chunksize=1):
        found += run.advance(batch)
    return [row for matches in [*found, *run.finish()] for row in rows_of(matches)]


def rows_of(matches: Matches) -> list[Row]:
    """An engine's matches as rows."""
    edges = matches.offset.tolist()
    return [
        (int(start), int(end), tuple(sorted(matches.position[low:high].tolist())))
        for start, end, low, high in zip(matches.start, matches.end, edges, edges[1:], strict=False)
    ]


def plain(row: dict[str, Any]) -> Row:
    """A result table's row."""
    held = row["register"].values() if "register" in row else sorted(row["positions"])
    return row["start"], row["end"], tuple(held)


def cut(make: Callable[[], Any], table: pa.Table, seed: object) -> list[list[dict[str, Any]]]:
    """The rows of each push, where a matcher is fed in random pieces and goes through a snapshot between two; the end last."""
    choose = random.Random(str(seed))
    matcher = make()
    found = []
    low = 0
    while low < table.num_rows:
        size = choose.choice([1, 1, 2, 5])
        found.append(matcher.push(table.slice(low, size)).to_pylist())
        low += size
        if choose.random() < 0.5:
            matcher = make().restore(matcher.snapshot())
    return [*found, matcher.finish().to_pylist()]


def remaining(found: Iterable[Sequence[dict[str, Any]]]) -> list[Row]:
    """What is given and not taken back."""
    total: Counter[Row] = Counter()
    for row in (row for piece in found for row in piece):
        total[plain(row)] += row.get("sign", 1)
    assert all(count >= 0 for count in total.values()), total
    return list(total.elements())


def in_sequence(vector: Vector) -> tuple[pa.Table, list[int]]:
    """The events that stay, in the order of the stream, and where each arrived."""
    rows: list[dict[str, Any]] = []
    for row in vector.table.to_pylist():
        if row["sign"] > 0:
            rows.append(row)
        else:
            same = [one for one in rows if all(one[name] == row[name] for name in ("type", "t", "k", "v"))]
            rows.remove(same[-1])
    if not vector.ordered:
        rows.sort(key=lambda row: row["t"])
    return pa.Table.from_pylist(rows, vector.table.schema).drop_columns(["sign"]), [row["n"] for row in rows]
