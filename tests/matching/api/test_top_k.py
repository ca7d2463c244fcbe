"""ORDER BY … LIMIT and SAMPLE: which matches are chosen, when they come, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError, LimitError, OptionError, QueryError
from tests.conftest import size

ALL = "SELECT * FROM S WHERE A AS a ; B+ AS b ; C AS c "


def events(kinds: str, **columns: list[Any]) -> list[dict[str, Any]]:
    named = [{name: column[at] for name, column in columns.items()} for at in range(len(kinds))]
    return [{"type": kind, "t": at} | named[at] for at, kind in enumerate(kinds)]


def held(table: pa.Table) -> list[list[int]]:
    found: list[list[int]] = table.column("positions").to_pylist()
    return found


STREAM = events("ABBCBC", x=[0, 5, 3, 0, -1, 0])


def test_the_best_of_each_event_come_first() -> None:
    assert held(stretto.match(ALL + "ORDER BY SUM(b[x]) DESC LIMIT 2 EVERY EVENT", STREAM)) == [
        [0, 1, 2, 3],
        [0, 1, 3],
        [0, 1, 2, 5],
        [0, 1, 2, 4, 5],
    ]
    assert held(stretto.match(ALL + "ORDER BY SUM(b[x]) LIMIT 1 EVERY EVENT", STREAM)) == [[0, 2, 3], [0, 4, 5]]


def test_without_every_the_best_of_all_come_at_the_end() -> None:
    matcher = stretto.Matcher(ALL + "ORDER BY SUM(b[x]) DESC LIMIT 2")
    assert matcher.push(STREAM).num_rows == 0
    assert held(matcher.finish()) == [[0, 1, 2, 5], [0, 1, 2, 3]]  # of the same score that which has the latest event


def test_groups_are_keys_unless_all_are_one() -> None:
    rows = events("ACAC", k=[1, 1, 2, 2], x=[7, 0, 9, 0])
    text = "SELECT * FROM S WHERE A AS a ; C AS c PARTITION BY [k] ORDER BY SUM(a[x]) LIMIT 1"
    assert held(stretto.match(text, rows)) == [[0, 1], [2, 3]]
    assert held(stretto.match(text + " GROUP BY ()", rows)) == [[0, 1]]


def test_windows_of_events_close_when_they_are_full() -> None:
    text = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 4 EVENTS ORDER BY SUM(b[x]) DESC LIMIT 1 EVERY 2 EVENTS"
    matcher = stretto.Matcher(text, {"type": "string", "t": "int64", "x": "int64"})
    found = [matcher.push(events(kind, x=[x])) for kind, x in zip("ABABB", [0, 1, 0, 5, 9], strict=True)]
    assert [held(one) for one in found] == [[], [[0, 1]], [], [[2, 3]], []]
    last = matcher.finish()
    assert held(last) == [[2, 4]]
    assert last.column("window_start").to_pylist() == [2]


def test_windows_give_what_lies_wholly_inside_when_they_close() -> None:
    text = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 4 [t] ORDER BY COUNT(a) LIMIT 1 EVERY 2 [t]"
    matcher = stretto.Matcher(text, time="t")
    rows = [{"type": kind, "t": t} for kind, t in (("A", 1), ("B", 3), ("A", 4), ("B", 5))]
    found = matcher.push(rows)
    assert (found.column("window_start").to_pylist(), held(found)) == ([0], [[0, 1]])
    found = matcher.advance(8)
    assert (found.column("window_start").to_pylist(), found.column("window_end").to_pylist()) == ([2, 4], [6, 8])
    assert held(found) == [[2, 3], [2, 3]]
    assert matcher.finish().num_rows == 0


def test_a_score_of_several_sums_with_factors() -> None:
    text = "SELECT * FROM S WHERE A AS a ; B AS b ORDER BY 2 * SUM(a[x]) - SUM(b[x]) + COUNT(b[y]) LIMIT 9"
    rows = events("AABB", x=[1, 2, 3, 5], y=[None, None, None, 1])
    assert held(stretto.match(text, rows)) == [[0, 3], [0, 2], [1, 3], [1, 2]]  # −2, −1, 0, 1


def test_a_value_that_is_null_adds_nothing() -> None:
    rows = events("ABBC", x=[None, None, -1, None])
    found = stretto.match(ALL + "ORDER BY SUM(b[x]) DESC LIMIT 9", rows)
    assert held(found) == [[0, 1, 3], [0, 1, 2, 3], [0, 2, 3]]


@pytest.mark.parametrize("order", ["", " DESC"])
def test_what_is_no_finite_number_comes_last(order: str) -> None:
    rows = events("ABBC", x=[0.0, math.nan, 2.0, 0.0])
    assert held(stretto.match(ALL + f"ORDER BY SUM(b[x]){order} LIMIT 1", rows)) == [[0, 2, 3]]


def test_decimals_are_exact() -> None:
    rows = pa.table(
        {
            "type": ["A", "B", "B", "C"],
            "x": pa.array([None, Decimal("0.1"), Decimal("0.2"), None], pa.decimal128(9, 1)),
            "y": pa.array([0, 0, 0, 0]),
        }
    )
    found = stretto.match(ALL + "ORDER BY SUM(b[x]) - 0.3 * COUNT(c) LIMIT 3", rows)
    assert held(found) == [[0, 1, 3], [0, 2, 3], [0, 1, 2, 3]]


def test_a_score_that_leaves_64_bits_is_an_error_only_in_a_match() -> None:
    big = (1 << 63) - 1
    rows = events("ABBC", x=[big, big, big, 0])
    text = ALL + "ORDER BY {} DESC LIMIT 1"
    with pytest.raises(DataError, match="a score leaves 64 bits in the match that ends at row 3"):
        stretto.match(text.format("SUM(b[x])"), rows)
    assert held(stretto.match(text.format("CAST(SUM(b[x]) AS DOUBLE)"), rows)) == [[0, 1, 2, 3]]
    assert held(stretto.match(text.format("SUM(c[x])"), rows)) == [[0, 1, 2, 3]]
    with pytest.raises(DataError, match="64 bits"):
        stretto.match(text.format("SUM(b[x * 2])"), rows)
    assert held(stretto.match(text.format("SUM(c[x * 2])"), rows)) == [[0, 1, 2, 3]]


def test_more_matches_than_64_bits_count() -> None:
    """The best, and a sample, of 2^200 matches of an event."""
    count = 200
    rows = events("A" + "B" * count + "C", x=[0, *range(count), 0])
    text = ALL + "ORDER BY SUM(b[x]) DESC LIMIT 3"
    best = stretto.match(text, rows, output="positions")
    assert [len(one) for one in held(best)] == [202, 201, 201]  # 0 and 1 are missing in the others
    drawn = held(stretto.match(ALL + "SAMPLE 20 SEED 5", rows, output="positions"))
    assert len({tuple(one) for one in drawn}) == 20
    assert all(60 < len(one) < 140 for one in drawn)  # about half of the events each


def test_a_condition_between_events_on_merged_runs() -> None:
    text = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { b[1].x > a.x } ORDER BY SUM(b[].x) DESC LIMIT 2"
    rows = events("ABBBC", x=[2, 1, 3, 4, 0])
    assert held(stretto.match(text, rows)) == [[0, 2, 3, 4], [0, 3, 4]]


def test_variables_that_runs_of_one_match_tell_apart_in_several_ways() -> None:
    text = "SELECT * FROM S WHERE A+ AS a ; A+ AS b ORDER BY SUM(a[x]) DESC LIMIT 1"
    rows = events("AAA", x=[1, 2, 4])
    with pytest.raises(QueryError, match="valuations=True takes each way by itself"):
        stretto.match(text, rows)
    assert held(stretto.match(text, rows, valuations=True)) == [[0, 1, 2]]


# ---- Samples

EVENT = "SELECT * FROM S WHERE A AS a ; B+ AS b ; C AS c "


def _chi_squared(counts: Counter[Any], among: int) -> float:
    expected = sum(counts.values()) / among
    return sum((count - expected) ** 2 / expected for count in counts.values()) + expected * (among - len(counts))


#: How many keys a stream of trials has: each has samples of its own, and a call costs more than a sample.
KEYS = 50


def _for_each_key(kinds: str) -> pa.Table:
    """The same events for each key, one key after the other."""
    return pa.table({"type": list(kinds) * KEYS, "k": [key for key in range(KEYS) for _ in kinds]})


def _drawn_by_key(text: str, kinds: str, seeds: int) -> Counter[Any]:
    """How often each set of matches of a key's events was drawn, of all keys with all seeds."""
    rows, drawn = _for_each_key(kinds), Counter[Any]()
    for seed in range(seeds):
        found = stretto.match(text.format(seed), rows, output="positions")
        own: dict[int, set[tuple[int, ...]]] = {}
        for positions in held(found):
            key, _ = divmod(positions[0], len(kinds))
            own.setdefault(key, set()).add(tuple(position - key * len(kinds) for position in positions))
        assert len(own) == KEYS
        drawn.update(map(frozenset, own.values()))
    return drawn


def test_each_set_of_matches_is_as_likely_as_the_others() -> None:
    """Two of the 3 matches of the first event and the 7 of the second: 45 pairs; chi-squared of 44 degrees is below 78.7 (99.9 %)."""
    pairs = _drawn_by_key(EVENT + "PARTITION BY [k] SAMPLE 2 SEED {}", "ABBCBC", size(45, 18))
    assert {len(pair) for pair in pairs} == {2}
    assert _chi_squared(pairs, math.comb(10, 2)) < 78.7


def test_the_matches_of_one_event_are_as_likely_as_each_other() -> None:
    """Of 15 matches one: chi-squared of 14 degrees is below 36.1 (99.9 %)."""
    drawn = _drawn_by_key(EVENT + "PARTITION BY [k] SAMPLE 1 SEED {} EVERY EVENT", "ABBBBC", size(30, 12))
    assert {len(matches) for matches in drawn} == {1}
    assert _chi_squared(drawn, 15) < 36.1


def test_where_the_count_is_beyond_64_bits_each_event_is_in_half_of_the_matches() -> None:
    count, most = 100, size(400, 100)
    rows = events("A" + "B" * count + "C")
    drawn = held(stretto.match(EVENT + f"SAMPLE {most} SEED 1", rows, output="positions"))
    there = Counter(itertools.chain.from_iterable(drawn))
    deviation = math.sqrt(most) / 2
    assert all(abs(there[at] - most / 2) < 4.5 * deviation for at in range(1, count + 1))


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    rows = events("ABBBBBC")
    first, again, other = (stretto.match(EVENT + f"SAMPLE 3 SEED {seed}", rows) for seed in (7, 7, 8))
    assert first == again
    assert first != other


# ---- Of what is listed


def test_the_best_of_each_group_of_a_variable() -> None:
    rows = events("AABB", x=[1, 2, 5, 3])
    text = "SELECT * FROM S WHERE A AS a ; B AS b GROUP BY a[x] ORDER BY SUM(b[x]) LIMIT 1"
    assert sorted(held(stretto.match(text, rows))) == [[0, 3], [1, 3]]
    assert sorted(held(stretto.match(text + " EVERY EVENT", rows))) == [[0, 2], [0, 3], [1, 2], [1, 3]]
    windows = text.replace("GROUP BY", "WITHIN 3 [t] GROUP BY") + " EVERY 1 [t]"
    assert sorted(held(stretto.match(windows, rows, time="t"))) == [[0, 2], [1, 2], [1, 3]]


def test_a_group_of_a_variable_that_a_match_lacks() -> None:
    rows = events("ABCAC", x=[1, 7, 0, 2, 0])
    text = "SELECT * FROM S WHERE A AS a ; B? AS b ; C GROUP BY b[x] ORDER BY SUM(a[x]) DESC LIMIT 1"
    assert sorted(held(stretto.match(text, rows))) == [[0, 1, 4], [3, 4]]


def test_the_best_with_gaps() -> None:
    rows = events("ABBCBC", x=[0, 5, 3, 0, -1, 0])
    text = ALL.replace("B+ AS b", "(B+ AS b GAP 1 EVENTS)") + "ORDER BY SUM(b[x]) DESC LIMIT 2"
    assert held(stretto.match(text, rows)) == [[0, 1, 2, 5], [0, 1, 2, 3]]
    assert held(stretto.match(text + " EVERY EVENT", rows)) == [[0, 1, 2, 3], [0, 1, 3], [0, 1, 2, 5], [0, 1, 5]]


def test_the_best_behind_which_nothing_comes() -> None:
    rows = events("ACXBACX", x=[5, 0, 0, 0, 1, 0, 0])
    text = "SELECT * FROM S WHERE A AS a ; C ; NOT B WITHIN 3 [t]"
    assert held(stretto.match(f"{text} SAMPLE 2", rows, time="t")) == [[4, 5]]
    assert held(stretto.match(f"{text} SAMPLE 2 EVERY EVENT", rows, time="t")) == [[4, 5]]


def test_the_best_with_a_negation_between_events() -> None:
    rows = events("ABACC", x=[1, 3, 2, 9, 8])
    text = "PATTERN SEQ(A a, ~(B b), C c) WHERE skip_till_any_match { b.x > a.x } ORDER BY SUM(c.x) DESC LIMIT 1"
    assert held(stretto.match(text, rows)) == [[2, 3]]
    assert held(stretto.match(f"{text} EVERY EVENT", rows)) == [[2, 3], [2, 4]]


@pytest.mark.parametrize("scope", ["", " EVERY EVENT", " WITHIN 8 [t] EVERY 8"])
def test_a_sample_of_what_is_listed_is_uniform(scope: str) -> None:
    """Each of ten matches of a group is drawn about as often as the others, whatever the group and the seed."""
    groups = range(KEYS)
    rows = [{"type": "A", "t": t, "x": group} for t in range(5) for group in groups]
    rows += [{"type": "C", "t": t, "x": 0} for t in (5, 6)] + [{"type": "X", "t": 15, "x": 0}]
    text = "SELECT * FROM S WHERE A AS a ; C GROUP BY a[x] SAMPLE 1 SEED {}"
    found = Counter[Any]()
    for seed in range(size(20, 4)):
        table = stretto.match(text.format(seed) + scope, rows, time="t", output="positions")
        found.update((first // KEYS, last) for first, last in held(table))
    rows_each = sum(found.values()) / 10
    assert len(found) == 10
    assert all(abs(one - rows_each) < 5 * math.sqrt(rows_each) for one in found.values()), found


def test_a_score_of_what_is_listed_that_leaves_64_bits() -> None:
    rows = events("AAB", x=[(1 << 63) - 1, 0, 1])
    text = "SELECT * FROM S WHERE A AS a ; B AS b GROUP BY a[x] ORDER BY SUM(a[x]) + SUM(b[x]) DESC LIMIT 1"
    with pytest.raises(DataError, match="a score leaves 64 bits in the match that ends at row 2"):
        stretto.match(text, rows)


def test_what_is_listed_is_not_held() -> None:
    text = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 20 EVENTS GROUP BY a[x] ORDER BY SUM(b[x]) LIMIT 1"
    matcher = stretto.Matcher(text, capacity=1)
    sizes = []
    for rounds in (size(10, 2), size(40, 4)):
        for _ in range(rounds):
            matcher.push(events("AAB" * 300, x=[1, 2, 3] * 300))
        sizes.append(matcher.stats["bytes"])
    assert sizes[1] < 1.5 * sizes[0] + (1 << 20)


# ---- What does not go together


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        (
            ALL + "PARTITION BY [x] WITHIN 5 EVENTS ORDER BY SUM(b[x]) LIMIT 1 EVERY 2 EVENTS",
            {},
            "here each key has its own, whose windows are over at times of their own: write windows of time",
        ),
        (ALL + "WITHIN 5 [t] SAMPLE 3", {"timeouts": True, "time": "t"}, "timeouts="),
    ],
)
def test_what_is_refused(text: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        stretto.match(text, STREAM, **options)


def test_so_many_are_no_choice() -> None:
    with pytest.raises(LimitError, match="no choice"):
        stretto.match(ALL + "SAMPLE 2000000", STREAM)


def test_windows_that_overlap_too_often() -> None:
    text = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 4000 [t] SAMPLE 3 EVERY 1 [t]"
    matcher = stretto.Matcher(text, time="t", capacity=1 << 14)
    with pytest.raises(LimitError, match="4,000 windows are open at once"):
        matcher.push(events("AB"))


def test_what_is_held_has_a_budget() -> None:
    text = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [k] SAMPLE 1"
    rows = events("AB" * 500, k=[at // 2 for at in range(1000)])
    with pytest.raises(LimitError, match="has a match to hold"):
        stretto.match(text, rows, budget="8 KiB")
    assert stretto.match(text, rows).num_rows == 500


def test_a_set_of_patterns_lists() -> None:
    with pytest.raises(OptionError, match="SAMPLE choose"):
        stretto.PatternSet({"type": "string", "t": "int64"}, time="t").change(stretto.Change("one", ALL + "SAMPLE 3"))


# ---- Streams


def test_what_is_held_is_kept_however_long_the_stream_is() -> None:
    text = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 3 EVENTS ORDER BY SUM(a[x]) DESC LIMIT 1"
    matcher = stretto.Matcher(text, capacity=1)
    matcher.push(events("AB", x=[9, 0]))
    taken = []
    for _ in range(2):
        for _ in range(size(150, 2)):
            matcher.push(events("AB" * 500, x=[1] * 1000))
        taken.append(matcher.stats["bytes"])
    assert taken[1] < 1.5 * taken[0] + (1 << 20)
    matcher = stretto.Matcher(text).restore(matcher.snapshot())
    (row,) = matcher.finish().to_pylist()
    assert row["a"][0]["x"] == 9


def test_events_that_are_sorted() -> None:
    text = "SELECT * FROM S WHERE A AS a ; B AS b ORDER BY SUM(a[x]) DESC LIMIT 1"
    matcher = stretto.Matcher(text, time="t", disorder=5)
    rows = [{"type": kind, "t": t, "x": x} for kind, t, x in (("B", 4, 0), ("A", 1, 3), ("A", 2, 5), ("A", 3, 4))]
    assert matcher.push(rows).num_rows == 0
    assert held(matcher.finish()) == [[0, 2]]


def test_samples_of_more_matches_than_doubles_count_are_the_same_compiled_or_not() -> None:
    """Numbers of matches above 2⁵³ stay integers in compiled code: mixed with unsigned ones they would be rounded."""
    rows = {"type": ["A", *"B" * 61, "C"], "x": [None, *range(61), None]}
    found = stretto.match("SELECT b[x] FROM S WHERE A ; B+ AS b ; C SAMPLE 2 SEED 0", rows).to_pylist()
    assert [(len(row["b"]), sum(event["x"] for event in row["b"])) for row in found] == [(29, 940), (35, 1177)]
