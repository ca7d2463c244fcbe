"""Match sets: counted, listed and sampled as the matches themselves are listed; handed over whatever their number."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import LimitError, OptionError
from tests.cases import sase, variants
from tests.cases.sase import text_of
from tests.conftest import cases

KLEENE = "PATTERN SEQ(A+ a[]) WHERE skip_till_any_match { }"


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("language", [sase, variants])
def test_sets_hold_the_matches(language: Any) -> None:
    """Over random cases: as many as are listed, the same, in tables and one by one, from a table and from batches."""
    tried, count = 0, cases(1_500, compiled=150)
    for seed in range(count):
        case = language.case(seed)
        query = case.query
        if query.limit is not None or len(query.positive) < len(query.components) or query.keep is not None:
            continue
        tried += 1
        text = text_of(query)
        bound = stretto.compile(text, case.schema)
        listed = stretto.match(bound, case.events)
        found = list(stretto.match_sets(bound, case.events))
        assert sum(one.count for one in found) == listed.num_rows, f"seed {seed}: {text}"
        got = [row for one in found for row in one]
        assert sorted(map(repr, got)) == rows(listed), f"seed {seed}: {text}"
        later = any(part.only for part in query.components)  # the end of a repetition completes them, and is in none
        assert all(row["end"] == one.end or (later and row["end"] < one.end) for one in found for row in one)
        matcher = stretto.Matcher(bound, sets=True, capacity=1)
        half = case.events.num_rows // 2
        kept = [
            one for part in (case.events.slice(0, half), case.events.slice(half)) for one in matcher.push_sets(part)
        ]
        # Sets stay what they were while the stream goes on.
        assert sorted(repr(row) for one in kept for row in one) == rows(listed), f"seed {seed}: {text}"
    assert tried > count // 5


def test_numbers_that_cannot_be_listed() -> None:
    sets = stretto.match_sets(KLEENE, [{"type": "A", "n": n} for n in range(10_000)])
    *_, last = sets
    assert last.count == 2**9_999
    with pytest.raises(OverflowError):
        len(last)
    few = last.first(3)
    assert few.num_rows == 3
    assert all(row["end"] == 9_999 for row in few.to_pylist())
    drawn = last.sample(4, seed=7)
    assert drawn.num_rows == 4
    # Each event but the last is in a match or not, as a coin falls.
    assert all(4_700 < len(row["positions"]) < 5_300 for row in drawn.to_pylist())
    assert last.sample(4, seed=7).equals(drawn)


@pytest.mark.parametrize("condition", ["b.n > a[1].n", "b.n > a.LEN", "b.n > max(a[].n)"])
def test_limit_takes_few_of_very_many(condition: str) -> None:
    """Runs that agree in what is still asked are one: 2^500 of them are a few hundred."""
    query = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match {{ {condition} }} LIMIT 3"
    events: list[dict[str, Any]] = [{"type": "A", "n": n} for n in range(500)] + [{"type": "B", "n": 5_000}]
    matcher = stretto.Matcher(query, output="positions")
    found = matcher.push(events)
    # LIMIT takes the latest starts: one match begins at the last event, two at the one before.
    assert sorted(found.column("start").to_pylist()) == [498, 498, 499]
    assert matcher.stats["bytes"] < 128 << 20


def test_too_many_partial_matches_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.engines.nfab.state.MOST_BYTES", 32 << 20)
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.n > sum(a[].n) }"
    events = [{"type": "A", "n": 2**n} for n in range(40)]
    with pytest.raises(LimitError, match="partial matches take more than 32 MiB"):
        stretto.match(query, events)


def test_samples_are_uniform() -> None:
    events = [{"type": "A"}] * 4
    *_, last = stretto.match_sets(KLEENE, events, output="positions")
    assert last.count == 8
    drawn = [tuple(last.sample(1, seed=seed).to_pylist()[0]["positions"]) for seed in range(800)]
    counts = {one: drawn.count(one) for one in set(drawn)}
    assert len(counts) == 8
    assert all(60 < count < 150 for count in counts.values())
    every = [tuple(row["positions"]) for row in last.sample(100).to_pylist()]
    assert sorted(every) == sorted((*chosen, 3) for n in range(4) for chosen in itertools.combinations(range(3), n))


def test_windows_hold_in_merged_lists() -> None:
    """Merged runs share lists that begin at different times: those out of the window are neither counted nor listed."""
    query = KLEENE + " WITHIN 3 [t]"
    events = [{"type": "A", "t": t} for t in (0, 1, 2, 3, 5)]
    counts = [found.count for found in stretto.match_sets(query, events, time="t")]
    listed = stretto.match(query, events, time="t", output="summary").column("matches").to_pylist()
    assert counts == listed == [1, 2, 4, 8, 4]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM S WHERE A+", "sets of matches are for SASE"),
        ("PATTERN SEQ(A a, ~(B n), C c) WHERE skip_till_any_match { }", "decided match by match"),
        (KLEENE + " LIMIT 3", "take set.first"),
    ],
)
def test_what_has_no_sets(query: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        stretto.match_sets(query, [{"type": "A"}])


def test_compressed_output_is_read_as_sets() -> None:
    query = KLEENE + " OUTPUT compressed"
    with pytest.raises(OptionError, match="match_sets"):
        stretto.match(query, [{"type": "A"}])
    with pytest.raises(OptionError, match="match_sets"):
        stretto.Matcher(query).push([{"type": "A"}])
    assert [found.count for found in stretto.match_sets(query, [{"type": "A"}] * 3)] == [1, 2, 4]
    assert stretto.match(query + " LIMIT 2", [{"type": "A"}] * 4).num_rows == 1 + 2 + 2 + 2
    with pytest.raises(OptionError, match="sets=True"):
        next(stretto.Matcher(KLEENE).push_sets([{"type": "A"}]))


@pytest.mark.parametrize("way", ["first", "sample"])
def test_a_list_that_takes_the_memory_is_refused(way: str) -> None:
    """By its number before anything is listed, and by what its matches take while they are."""
    *_, last = stretto.match_sets(KLEENE, [{"type": "A"}] * 60, output="positions")
    with pytest.raises(
        LimitError, match=r"^1,000,000,000,000 of the 576,460,752,303,423,488 matches that end at 59 go over"
    ):
        getattr(last, way)(10**12)
    assert getattr(last, way)(2_000).num_rows == 2_000
