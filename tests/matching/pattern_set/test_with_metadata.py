"""Patterns with notes: at most one match in a span of time, what matches show, and who was switched off."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import stretto
from stretto.errors import OptionError
from stretto.matching.pattern_set.throttle import ENDLESS, first_of_each_span
from stretto.matching.pattern_set.with_metadata import AnnotatedPatternSet
from tests.conftest import cases

SCHEMA = {"type": "string", "t": "int64", "key": "string", "other": "int64"}
QUERIES = {
    "pair": ("SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [key] WITHIN 9 [t]", "ceql", 0),
    "two keys": ("SELECT * FROM S WHERE A ; A PARTITION BY [key], [other] WITHIN 20 [t]", "ceql", 0),
    "alone": ("SELECT * FROM S WHERE C AS c PARTITION BY [key] WITHIN 1 [t]", "ceql", 0),
    "not": ("SELECT * FROM S WHERE A AS a ; NOT B PARTITION BY [key] WITHIN 7 [t]", "ceql", 7),
    "never": ("PATTERN SEQ(A+ a[], ~(C c)) WHERE skip_till_any_match { [key] } WITHIN 5", "sase", 5),
}
KINDS = pa.schema([(name, pa.string()) for name in ("id", "query")] + [("since", pa.int64())])
KINDS = pa.schema([*KINDS, *((name, pa.string()) for name in ("language", "every", "title"))])


def random_events(rng: random.Random) -> pa.Table:
    rows, t = [], 0
    for _ in range(rng.randrange(1, 60)):
        t += rng.randrange(4)
        rows.append({"type": rng.choice("ABC"), "t": t, "key": rng.choice("xy"), "other": rng.choice([1, 2])})
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.type_for_alias(kind)) for name, kind in SCHEMA.items()]))


def random_changes(rng: random.Random) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for name in rng.sample(sorted(QUERIES), rng.randrange(1, len(QUERIES) + 1)):
        query, language, _ = QUERIES[name]
        every = rng.choice([None, "1", "6", "15", "40", "inf"])
        since = rng.choice([None, None, rng.randrange(30)])
        rows.append(
            {"id": name, "query": query, "since": since, "language": language, "every": every, "title": name.upper()}
        )
        if rng.random() < 0.3:
            again = rng.randrange(1, 20) + (since or 0)
            rows.append(rows[-1] | {"since": again, "title": "again"} | rng.choice([{}, {"query": None}]))
    return pa.Table.from_pylist(rows, KINDS)


def new(changes: pa.Table, **options: Any) -> AnnotatedPatternSet:
    disables = options.get("on_limit") == "disable"
    made = AnnotatedPatternSet(
        stretto.PatternSet(SCHEMA, time="t", by=["key"], **options), ["title"], disables=disables
    )
    made.change(changes)
    return made


def pieces(rng: random.Random, table: pa.Table) -> Iterator[pa.Table]:
    at = 0
    while at < table.num_rows:
        size = rng.randrange(1, 9)
        yield table.slice(at, size)
        at += size


def naive(changes: pa.Table, events: pa.Table) -> list[str]:
    """The definition: all matches, and row by row in the order of their ends those that do not come too soon."""
    patterns = stretto.PatternSet(SCHEMA, time="t", by=["key"])
    patterns.change(changes.select(["id", "query", "since", "language"]))
    rows = pa.concat_tables([patterns.push(events), patterns.finish()]).to_pylist()
    notes = {(row["id"], row["since"]): row for row in changes.to_pylist()}
    last: dict[Any, tuple[int, float]] = {}
    found = []
    for place in sorted(range(len(rows)), key=lambda place: (rows[place]["end_time"], waiting(rows[place]), place)):
        row = rows[place]
        note = notes[row["pattern"], row["since"]]
        key = row["pattern"], row["key"], str(row["keys"])
        if note["every"] is not None:
            end, span = last.get(key, (0, -float("inf")))
            if row["end_time"] < end + span:
                continue
            last[key] = row["end_time"], float(note["every"])
        found.append(str({"pattern": row["pattern"], "title": note["title"], **row}))
    return sorted(found)


def waiting(row: dict[str, Any]) -> int:
    return row["start_time"] if QUERIES[row["pattern"]][2] else 0


def test_matches_are_those_of_the_definition_however_the_stream_is_cut() -> None:
    left_out = 0
    for seed in range(cases(600, compiled=60)):
        rng = random.Random(seed)
        events, changes = random_events(rng), random_changes(rng)
        patterns = new(changes)
        found = []
        for piece in pieces(rng, events):
            found += list(patterns.iter_push(piece)) if rng.random() < 0.5 else [patterns.push(piece)]
            if rng.random() < 0.3:
                found.append(patterns.advance(piece.column("t")[-1].as_py()))
            if rng.random() < 0.3:
                left_out += sum(patterns.suppressed.values())
                again = new(changes.slice(0, 0))
                patterns = again.restore(patterns.snapshot())
        found.append(patterns.finish())
        left_out += sum(patterns.suppressed.values())
        shown = sorted(str(row) for table in found for row in table.to_pylist())
        assert shown == naive(changes, events), f"seed {seed}"
    assert left_out > 100


def test_a_pattern_whose_query_stays_goes_on() -> None:
    """What is known of it changes at once; with another query it begins anew."""
    query, language, _ = QUERIES["pair"]
    rows = [{"id": "p", "query": query, "language": language, "title": "one", "every": "2"}]
    for goes_on in (True, False):
        patterns = new(pa.Table.from_pylist(rows, KINDS))
        patterns.push([{"type": "A", "t": 1, "key": "x", "other": 1}])
        change = rows[0] | {"title": "two", "since": 2, "query": query if goes_on else query.replace("9", "8")}
        patterns.change(pa.Table.from_pylist([change], KINDS), renew=False)
        found = patterns.push([{"type": "B", "t": 3, "key": "x", "other": 1}])
        assert found.column("title").to_pylist() == (["two"] if goes_on else [])


def test_a_pattern_holds_until_its_time() -> None:
    """As one that is retired then by another change."""
    for seed in range(cases(300, compiled=30)):
        rng = random.Random(seed)
        events, changes = random_events(rng), random_changes(rng)
        rows, both = [], []
        for row in changes.to_pylist():
            until = rng.choice([None, (row["since"] or 0) + rng.randrange(1, 40)])
            rows.append(row | {"until": until})
            both += [row, *([] if until is None else [{"id": row["id"], "since": until}])]
        one = new(changes.slice(0, 0))
        one.change(pa.Table.from_pylist(rows, KINDS.append(pa.field("until", pa.int64()))))
        other = new(pa.Table.from_pylist(both, KINDS))
        assert one.push(events).equals(other.push(events)), f"seed {seed}"
        assert one.finish().equals(other.finish()), f"seed {seed}"


def test_changes_with_an_end_are_all_that_is_to_come() -> None:
    """A pattern is what the last change before an event says of it; it goes on where it was there with the same query."""
    kinds = KINDS.append(pa.field("until", pa.int64()))
    for seed in range(cases(400, compiled=40)):
        rng = random.Random(seed)
        events = random_events(rng)
        at = sorted(rng.sample(range(70), rng.randrange(1, 6)))
        states = []
        for _ in range(len(at) + 1):
            query, language, _ = QUERIES[rng.choice(["pair", "pair", "two keys"])]
            since = rng.choice([None, None, rng.randrange(60)])
            until = rng.choice([None, None, (since or 0) + rng.randrange(1, 40)])
            states.append(
                {
                    "id": "p",
                    "query": query,
                    "language": language,
                    "since": since,
                    "until": until,
                    "title": str(len(states)),
                }
            )
            if rng.random() < 0.1:
                states[-1] |= {"query": None, "since": None, "until": None}
        patterns = new(pa.Table.from_pylist(states[:1], kinds))
        times, found, low = events.column("t").to_numpy(), [], 0
        for time, state in zip([*at, None], [*states[1:], None], strict=True):
            high = events.num_rows if time is None else int(np.searchsorted(times, time))
            for piece in pieces(rng, events.slice(low, high - low)):
                found.append(patterns.push(piece))
            low = high
            if time is None or state is None:
                continue
            if rng.random() < 0.5:
                found.append(patterns.advance(time))
            if rng.random() < 0.3:
                patterns = new(KINDS.empty_table()).restore(patterns.snapshot())
            since = time if state["since"] is None else max(time, state["since"])
            row = pa.Table.from_pylist([state | {"since": since}], kinds)
            patterns.change(row, renew=False, now=pa.scalar(time, pa.int64()))
        shown = sorted(spelled(row) for table in found for row in table.to_pylist())
        assert shown == sorted(of_states(states, at, events)), f"seed {seed}"


def spelled(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["start_time"], row["end_time"], row["key"], str(row["keys"]), str(row["events"])


def of_states(states: list[dict[str, Any]], at: list[int], events: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The matches of each stretch of time in which one query holds, on its events alone."""

    def holds(state: dict[str, Any], time: int) -> bool:
        late = state["until"] is not None and time >= state["until"]
        return state["query"] is not None and not late and (state["since"] is None or time >= state["since"])

    stretches: list[tuple[str, list[int]]] = []
    before: dict[str, Any] | None = None
    for time in range(200):
        changed = time in at
        state = states[sum(one <= time for one in at)]
        if holds(state, time):
            goes_on = before is not None and before["query"] == state["query"] and (not changed or holds(before, time))
            if not goes_on:
                stretches.append((state["query"], []))
            stretches[-1][1].append(time)
        before = state if holds(state, time) else None
    times = events.column("t")
    for query, held in stretches:
        patterns = stretto.PatternSet(SCHEMA, time="t", by=["key"])
        patterns.change(stretto.Change("p", query))
        own = events.filter(pc.is_in(times, pa.array(held, pa.int64())))
        yield from map(spelled, pa.concat_tables([patterns.push(own), patterns.finish()]).to_pylist())


def test_an_end_that_is_not_after_the_beginning() -> None:
    row = {"id": "p", "query": QUERIES["pair"][0], "since": 5, "until": 5}
    with pytest.raises(OptionError, match="pattern 'p': it holds until 5, which is not after its since, 5"):
        new(pa.Table.from_pylist([row], KINDS.append(pa.field("until", pa.int64()))))


def test_a_pattern_that_is_switched_off_has_a_row() -> None:
    many = {"id": "many", "query": "SELECT * FROM S WHERE A+ PARTITION BY [key]", "title": "Too many"}
    changes = pa.Table.from_pylist([many, {"id": "c", "query": QUERIES["alone"][0], "title": "C"}], KINDS)
    patterns = new(changes, budget=40, on_limit="disable")
    events = [{"type": kind, "t": t, "key": "x", "other": 1} for t, kind in enumerate("AAAAAAC")]
    with pytest.warns(stretto.StrettoWarning, match="'many'.* is switched off"):
        found = patterns.push(events).to_pylist()
    assert [(row["pattern"], row["title"], row["start_time"]) for row in found if row["disabled"] is None][-1] == (
        "c",
        "C",
        6,
    )
    (off,) = [row for row in found if row["disabled"] is not None]
    assert (off["pattern"], off["title"], off["start_time"]) == ("many", "Too many", None)
    assert "goes over the budget of 10 rows" in off["disabled"]
    again = new(changes.slice(0, 0), budget=40, on_limit="disable").restore(patterns.snapshot())
    assert again.push([{"type": "A", "t": 9, "key": "x", "other": 1}]).num_rows == 0  # told once


def repeated(query: str, every: str, rows: list[dict[str, Any]], language: str = "eql") -> tuple[list[Any], int]:
    """The keys and ends of matches that stay, and how many are left out."""
    events = pa.Table.from_pylist(rows)
    patterns = AnnotatedPatternSet(stretto.PatternSet(events.schema, time="t", time_unit="s"))
    patterns.change([{"id": "p", "query": query, "language": language, "every": every}])
    found = pa.concat_tables([patterns.push(events), patterns.finish()]).to_pylist()
    return [(*row["keys"], row["end_time"]) for row in found], patterns.suppressed.get("p", 0)


def test_a_key_that_may_be_null_is_a_key() -> None:
    rows = [{"type": "AB"[n % 2], "t": n, "u": u} for n, u in enumerate(["a", "a", None, None, "a", "a", None, None])]
    found, left = repeated("sequence by ?lacks, ?u [A where true] [B where true]", "50", rows)
    assert found == [(("u", "a"), 1), (("u", None), 3)]
    assert left == 2


def test_keys_that_steps_call_by_different_names_are_those_of_the_last_event() -> None:
    rows = [{"type": kind, "t": n, "p": p, "q": q} for n, (kind, p, q) in enumerate(
        [("A", 1, 9), ("A", 2, 9), ("B", 8, 1), ("B", 8, 2), ("A", 1, 9), ("B", 7, 1)]
    )]  # fmt: skip
    for text in (
        "sequence [A where true] by p [B where true] by q",
        "sequence with maxspan=9s [A where true] by p [B where true] by q ![C where true] by p",
    ):
        assert repeated(text, "50", rows) == ([(("q", "1"), 2), (("q", "2"), 3)], 1)
    assert repeated("sample [A where true] by p [B where true] by q", "50", rows) == ([(2,)], 1)


def test_both_zeros_are_one_key() -> None:
    rows = [{"type": "A", "t": n, "k": k} for n, k in enumerate([0.0, -0.0, 1.0, -0.0])]
    kept = [(("k", "0"), 0), (("k", "1"), 2)]
    assert repeated("SELECT * FROM S WHERE A PARTITION BY [k]", "9", rows, "ceql") == (kept, 2)
    events = pa.Table.from_pylist(rows)
    patterns = AnnotatedPatternSet(stretto.PatternSet(events.schema, time="t", by=["k"]))
    patterns.change([{"id": "p", "query": "SELECT * FROM S WHERE A PARTITION BY [k]", "every": "9"}])
    assert patterns.push(events).column("end_time").to_pylist() == [0, 2]


def test_keys_of_other_names_are_other_keys() -> None:
    rows = [{"type": "A", "t": n, "k": 1, "other": 1} for n in range(4)]
    events = pa.Table.from_pylist(rows)
    patterns = AnnotatedPatternSet(stretto.PatternSet(events.schema, time="t"))
    one = {"id": "p", "query": "SELECT * FROM S WHERE A PARTITION BY [k]", "every": "9", "since": None}
    patterns.change([one, one | {"query": "SELECT * FROM S WHERE A PARTITION BY [other]", "since": 2}])
    found = patterns.push(events).to_pylist()
    assert [(row["end_time"], *row["keys"]) for row in found] == [(0, ("k", "1")), (2, ("other", "1"))]


def test_names_that_are_taken() -> None:
    kinds = {"type": "string", "t": "int64", "title": "string"}
    patterns = AnnotatedPatternSet(stretto.PatternSet(kinds, time="t", by=["title"]), ["title"], disables=True)
    assert patterns.output_schema.names[:3] == ["pattern", "title_", "since"]
    assert patterns.output_schema.names[-1] == "disabled"


def test_a_span_that_is_none() -> None:
    row = {"id": "p", "query": QUERIES["pair"][0], "every": "often"}
    with pytest.raises(OptionError, match="pattern 'p': every='often': expected ticks"):
        new(pa.Table.from_pylist([row], KINDS))


def rows_that_stay(key: Any, time: Any, every: Any) -> list[bool]:
    """Row by row in the order of time."""
    last: dict[int, float] = {}
    kept = [False] * len(key)
    for row in sorted(range(len(key)), key=lambda row: time[row]):
        before = last.get(key[row])
        if before is None or (every != ENDLESS and time[row] >= before + every):
            kept[row], last[key[row]] = True, time[row]
    return kept


@pytest.mark.parametrize("seed", range(50))
def test_repeats_are_those_of_the_definition(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(0, 40))
    key = draw.integers(-2, 3, rows)
    time = draw.integers(0, 30, rows) if seed % 2 else draw.integers(0, 30, rows) / 4
    for every in (ENDLESS, 0, 1, 7):
        found = first_of_each_span(key, time, every).tolist()
        assert found == rows_that_stay(key, time, every), f"seed {seed}, every {every}"
