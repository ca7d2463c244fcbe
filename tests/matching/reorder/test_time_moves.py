"""Every event of a stream moves its time on: of any type and key, and without one."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import seeds

SCHEMA = pa.schema({"type": pa.string(), "ts": pa.int64(), "k": pa.string()})
LATE = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 10 [ts]"
ABSENT = {
    "ceql": "SELECT * FROM S WHERE C ; NOT B PARTITION BY [k] WITHIN 2 [ts]",
    "sase": "PATTERN SEQ(C c, ~(B b)) WHERE skip_till_any_match { [k] } WITHIN 2",
    "eql": "sequence by k with maxspan=2s [C where true] ![B where true]",
}
TIMED_OUT = {
    "ceql": "SELECT * FROM S WHERE C AS a : C AS b PARTITION BY [k] WITHIN 2 [ts]",
    "sase": "PATTERN SEQ(C a, C b) WHERE partition_contiguity { [k] } WITHIN 2",
}


def events(*rows: tuple[str, int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def pushed(query: str, rows: pa.Table, *, each: bool = True, **options: Any) -> tuple[list[Any], int]:
    """What a matcher gives before the stream ends, and how many events are late; ``each``: one event a push."""
    matcher = stretto.Matcher(query, SCHEMA, time="ts", **options)
    size = 1 if each else rows.num_rows
    tables = [matcher.push(rows.slice(at, size)) for at in range(0, rows.num_rows, size)]
    return [row for table in tables for row in table.to_pylist()], matcher.late


@pytest.mark.parametrize("other", [("Z", 20, None), ("Z", 20, "u"), ("A", 20, "v")])
@pytest.mark.parametrize("options", [{}, {"disorder": 3}, {"disorder": 3, "speculation": 1}])
@pytest.mark.parametrize("each", [True, False])
def test_what_is_earlier_is_late(other: Any, options: dict[str, Any], each: bool) -> None:
    rows = events(("A", 10, "u"), other, ("B", 12, "u"))
    assert pushed(LATE, rows, each=each, late="drop", **options) == ([], 1)
    with pytest.raises(stretto.DataError, match=r"row 2"):
        pushed(LATE, rows, each=each, **options)


@pytest.mark.parametrize("other", [("Z", 17, None), ("Z", 17, "u"), ("C", 17, "v")])
@pytest.mark.parametrize("language", ABSENT)
@pytest.mark.parametrize("each", [True, False])
def test_absence_is_decided(other: Any, language: str, each: bool) -> None:
    rows, query = events(("C", 14, "u"), other), ABSENT[language]
    own = {"language": language, "time_unit": "s"} if language == "eql" else {}
    assert len(pushed(query, rows, each=each, **own)[0]) == 1
    assert stretto.match(query, rows, time="ts", at_end="drop", **own).num_rows == 1
    assert stretto.match(query, rows.slice(0, 1), time="ts", at_end="drop", **own).num_rows == 0


@pytest.mark.parametrize("other", [("Z", 17, None), ("Z", 17, "u"), ("C", 17, "v")])
@pytest.mark.parametrize("language", TIMED_OUT)
@pytest.mark.parametrize("each", [True, False])
def test_windows_time_out(other: Any, language: str, each: bool) -> None:
    rows, query = events(("C", 14, "u"), other), TIMED_OUT[language]
    [row] = pushed(query, rows, each=each, timeouts=True)[0]
    assert (row["start_time"], row["expired"], row["k"]) == (14, 16, "u")
    assert stretto.match(query, rows, time="ts", timeouts=True).num_rows == 1


def test_windows_of_totals_close() -> None:
    query = "SELECT COUNT(*) FROM S WHERE A ; B PARTITION BY [k] WITHIN 10 [ts] EVERY 10 [ts]"
    rows = events(("A", 1, "u"), ("B", 2, "u"), ("Z", 25, None))
    assert [row["count"] for row in pushed(query, rows)[0]] == [1]


def test_sets() -> None:
    patterns = stretto.PatternSet(SCHEMA, time="ts")
    patterns.change([stretto.Change("lost", ABSENT["ceql"])])
    found = [patterns.push(events(row)).num_rows for row in [("C", 14, "u"), ("Z", 16, None), ("Z", 17, None)]]
    assert found == [0, 0, 1]


def test_events_without_a_key_or_a_time_move_nothing() -> None:
    rows = pa.Table.from_pylist([{"type": "C", "ts": 14, "k": "u"}, {"type": "Z", "ts": None, "k": None}], SCHEMA)
    assert pushed(ABSENT["ceql"], rows)[0] == []


@pytest.mark.parametrize("seed", seeds(1, 2, 3, 4))
@pytest.mark.parametrize("language", ["ceql", "sase"])
def test_absence_by_definition(seed: int, language: str) -> None:
    """C without B behind it: times are often equal, keys often NULL, and other types come between."""
    draw = random.Random(seed)
    for _ in range(25):
        time, drawn = 0, []
        for _ in range(draw.randint(1, 14)):
            time += draw.choice([0, 0, 1, 2])
            drawn.append((draw.choice("BCZ"), time, draw.choice(["u", "v", None])))
        wanted = [
            at
            for at, (kind, begun, key) in enumerate(drawn)
            if kind == "C"
            and key is not None
            and time > begun + 2
            and not any(one == ("B", when, key) and when <= begun + 2 for one in drawn[at + 1 :] for when in [one[1]])
        ]
        rows = events(*drawn)
        got = [row["positions"] for row in pushed(ABSENT[language], rows, each=draw.random() < 0.5)[0]]
        assert sorted(got) == [[at] for at in wanted], (seed, drawn)
        kept = stretto.match(ABSENT[language], rows, time="ts", at_end="drop").column("positions").to_pylist()
        assert sorted(kept) == [[at] for at in wanted], (seed, drawn)
