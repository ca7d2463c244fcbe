"""The reference evaluator of SASE+ against matches computed by hand, and against counts of the paper's experiments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from stretto.errors import QueryError
from stretto.events import Schema
from stretto.query.evaluate_sase import aggregate
from stretto.query.passes.bind_sase import bind_sase
from stretto.query.query import Window
from stretto.query.sase import WRITTEN, Selection
from tests.cases.sase import SaseCase, sase
from tests.cases.sase import case as drawn
from tests.conftest import cases
from tests.java_stocks import java_stocks
from tests.reference.sase import SaseMatch, evaluate_sase, returned

STRICT, PARTITION, NEXT, ANY = Selection.STRICT, Selection.PARTITION, Selection.NEXT, Selection.ANY
EVERY = WRITTEN

_EVENT = re.compile(r"([A-Z])(\d+|_)?(?:/(\w+))?(?:@(\d+))?")


def events(text: str) -> pa.Table:
    """``A3/x@5`` is an event of type A with v = 3, k = 'x' and t = 5; ``_`` is NULL. Else v = 0, k = 'k', t = its position."""
    rows = []
    for i, word in enumerate(text.split()):
        parts = _EVENT.fullmatch(word)
        assert parts is not None, word
        kind, v, k, t = parts.groups()
        number = None if v == "_" else int(v or 0)
        rows.append({"type": kind, "v": number, "k": None if k == "_" else k or "k", "t": int(t or i)})
    kinds = {"type": pa.string(), "v": pa.int64(), "k": pa.string(), "t": pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def shown(found: list[SaseMatch]) -> list[str]:
    return [" ".join(f"{variable}:{','.join(map(str, rows))}" for variable, rows in m.bindings) for m in found]


def matches(
    stream: str | pa.Table, components: str, where: str | None = None, selection: Selection = NEXT, **more: Any
) -> list[str]:
    """The matches of a query, each as ``a:0,1 b:2``; ``within`` is in units of t, ``events`` in positions."""
    table = events(stream) if isinstance(stream, str) else stream
    within, positions = more.pop("within", None), more.pop("events", None)
    if within is not None:
        more["window"] = Window(number=within, attribute="t")
    if positions is not None:
        more["window"] = Window(events=positions)
    query = sase(components.split(", "), where, selection, **more)
    found = evaluate_sase(bind_sase(query, Schema.of(table)), table)
    for match in found:
        assert (match.start, match.end) == (match.positions[0], match.positions[-1])
        assert all(one < two for one, two in pairwise(match.positions))
    return shown(found)


# ---- Selection strategies


def test_a_sequence_of_two() -> None:
    assert matches("A A B B", "A a, B b") == ["a:0 b:2", "a:1 b:2"]
    assert matches("A A B B", "A a, B b", selection=ANY) == ["a:0 b:2", "a:1 b:2", "a:0 b:3", "a:1 b:3"]
    assert matches("A A B B", "A a, B b", selection=STRICT) == ["a:1 b:2"]


def test_a_singleton_ignores_what_does_not_begin_it() -> None:
    assert matches("A B1 B2 B3", "A a, B b", "b.v > 1") == ["a:0 b:2"]
    assert matches("A B1 B2 B3", "A a, B b", "b.v > 1", ANY) == ["a:0 b:2", "a:0 b:3"]
    assert matches("A B1 B2 B3", "A a, B b", "b.v > 1", STRICT) == []


def test_partition_contiguity_is_contiguity_in_the_partition() -> None:
    stream = "A/x A/y B/x B/y"
    assert matches(stream, "A a, B b", selection=PARTITION, partition_by=("k",)) == ["a:0 b:2", "a:1 b:3"]
    assert matches(stream, "A a, B b", selection=STRICT, partition_by=("k",)) == []
    assert matches("A/y A/x B/x B/y", "A a, B b", selection=STRICT, partition_by=("k",)) == ["a:1 b:2"]


def test_every_event_of_a_partition_counts() -> None:
    stream = "A/x C/x B/x A/y C/x B/y"
    assert matches(stream, "A a, B b", selection=PARTITION, partition_by=("k",)) == ["a:3 b:5"]


@pytest.mark.parametrize("selection", [STRICT, PARTITION])
def test_partition_contiguity_without_tests_is_strict(selection: Selection) -> None:
    assert matches("A C B A B", "A a, B b", selection=selection) == ["a:3 b:4"]


@pytest.mark.parametrize("selection", EVERY)
def test_an_event_with_null_is_in_no_partition(selection: Selection) -> None:
    assert matches("A/_ B/_ A/x B/x", "A a, B b", selection=selection, partition_by=("k",)) == ["a:2 b:3"]
    assert matches("A/_ A/x", "A a", selection=selection, partition_by=("k",)) == ["a:1"]
    between = matches("A/x C/_ B/x", "A a, B b", selection=selection, partition_by=("k",))
    # It counts for strict contiguity only.
    assert between == ([] if selection is STRICT else ["a:0 b:2"])


@pytest.mark.parametrize("selection", EVERY)
def test_nan_is_one_key(selection: Selection) -> None:
    table = events("A B").append_column("w", pa.array([math.nan, math.nan]))
    assert matches(table, "A a, B b", selection=selection, partition_by=("w",)) == ["a:0 b:1"]
    assert matches(table, "A a, B b", "a.w = b.w", selection) == []


def test_two_tests_make_finer_partitions() -> None:
    stream = "A1/x A2/x B2/x B1/y"
    assert matches(stream, "A a, B b", partition_by=("k",)) == ["a:0 b:2", "a:1 b:2"]
    assert matches(stream, "A a, B b", partition_by=("k", "v")) == ["a:1 b:2"]


def test_events_at_one_time_are_in_sequence() -> None:
    assert matches("A@1 B@1 A@1", "A a, B b", within=0) == ["a:0 b:1"]


# ---- Kleene plus


def test_kleene_takes_what_it_can() -> None:
    assert matches("A A B", "A+ a[], B b") == ["a:0,1 b:2", "a:1 b:2"]
    assert matches("A A B", "A+ a[], B b", selection=ANY) == ["a:0,1 b:2", "a:0 b:2", "a:1 b:2"]


def test_a_run_does_not_wait_at_the_next_component() -> None:
    """Step 6: it proceeds with an event that begins the next component, and not before."""
    assert matches("A A C B", "A+ a[], B b") == ["a:0,1 b:3", "a:1 b:3"]
    assert matches("A A C B", "A+ a[], B b", selection=STRICT) == []
    assert matches("A C B B", "A+ a[], B b") == ["a:0 b:2", "a:0 b:3"]


@pytest.mark.parametrize("selection", [STRICT, PARTITION, NEXT])
def test_take_and_proceed(selection: Selection) -> None:
    """An event that satisfies both: the match is emitted and the run takes it."""
    assert matches("A A A", "A+ a[], A b", selection=selection) == ["a:0 b:1", "a:0,1 b:2", "a:1 b:2"]


def test_take_and_proceed_and_ignore() -> None:
    assert matches("A A A", "A+ a[], A b", selection=ANY) == ["a:0 b:1", "a:0,1 b:2", "a:0 b:2", "a:1 b:2"]


RISING = ("A1 A3 A2 A5 A4", "A+ a[], A b", "a[i].v > a[i-1].v and b.v < a[a.LEN].v")


def test_ignore_and_proceed() -> None:
    """An event that begins the next component and cannot be taken: emitted, and the run stays."""
    first, second = ["a:0,1 b:2", "a:1 b:2"], ["a:2,3 b:4", "a:3 b:4"]
    assert matches(*RISING, NEXT) == [*first, "a:0,1,3 b:4", "a:1,3 b:4", *second]


@pytest.mark.parametrize("selection", [STRICT, PARTITION])
def test_under_contiguity_the_run_dies_after_that(selection: Selection) -> None:
    assert matches(*RISING, selection) == ["a:0,1 b:2", "a:1 b:2", "a:2,3 b:4", "a:3 b:4"]


def test_kleene_as_the_last_component() -> None:
    """One match for each prefix, never on an ignored event."""
    assert matches("B A C A", "B b, A+ a[]") == ["b:0 a:1", "b:0 a:1,3"]
    assert matches("B A C A", "B b, A+ a[]", selection=STRICT) == ["b:0 a:1"]
    assert matches("B A C A", "B b, A+ a[]", selection=ANY) == ["b:0 a:1", "b:0 a:1,3", "b:0 a:3"]


@pytest.mark.parametrize("selection", [STRICT, PARTITION, NEXT])
def test_two_kleenes_share_events_in_two_ways(selection: Selection) -> None:
    """The same events under other variables are another match."""
    found = matches("A A A", "A+ a[], A+ b[]", selection=selection)
    assert found == ["a:0 b:1", "a:0 b:1,2", "a:0,1 b:2", "a:1 b:2"]


def test_kleene_in_the_middle() -> None:
    assert matches("A B B C", "A a, B+ b[], C c") == ["a:0 b:1,2 c:3"]
    assert matches("A B B C", "A a, B+ b[], C c", selection=ANY) == ["a:0 b:1,2 c:3", "a:0 b:1 c:3", "a:0 b:2 c:3"]


def test_alternatives() -> None:
    assert matches("A B C", "(A|B) a, C c") == ["a:0 c:2", "a:1 c:2"]
    assert matches("A D B C", "(A|B)+ a[], C c", selection=STRICT) == ["a:2 c:3"]


# ---- Conditions on the edges


def test_the_first_of_a_kleene() -> None:
    assert matches("A6 A1 B", "A+ a[], B b", "a[1].v > 5") == ["a:0,1 b:2"]


def test_a_further_one_is_from_the_second_on() -> None:
    found = matches("A1 A6 A2 A7", "A+ a[]", "a[i].v > 5")
    assert found == ["a:0", "a:0,1", "a:1", "a:2", "a:0,1,3", "a:1,3", "a:2,3", "a:3"]


def test_the_one_before() -> None:
    """``a[i-1]`` alone is a condition on taking the next one."""
    assert matches("A1 A3 A1 B", "A+ a[], B b", "a[i-1].v < 2", STRICT) == ["a:2 b:3"]
    assert matches("A1 A3 A1 B", "A+ a[], B b", "a[i-1].v < 2") == ["a:0,1 b:3", "a:1 b:3", "a:2 b:3"]


def test_length() -> None:
    assert matches("A A B A B", "A+ a[], B b", "a.LEN = 2") == ["a:0,1 b:2", "a:1,3 b:4"]
    assert matches("A A A", "A+ a[]", "a.LEN >= 2", STRICT) == ["a:0,1", "a:0,1,2", "a:1,2"]


def test_the_last_of_a_kleene() -> None:
    assert matches("A1 A3 A2", "A+ a[]", "a[a.LEN].v > a[1].v") == ["a:0,1", "a:0,1,2"]


def test_proceeding_is_decided_before_the_event() -> None:
    """The event that begins the next component is no part of the Kleene plus that the proceed edge asks about."""
    assert matches("A1 A2 A3", "A+ a[], A b", "a[a.LEN].v = 2") == ["a:0,1 b:2", "a:1 b:2"]
    assert matches("A1 A2 A3", "A+ a[], A b", "sum(a[].v) = 3") == ["a:0,1 b:2"]


def test_each_of_a_kleene_against_a_later_event() -> None:
    """A condition that relates a[i] to a later variable holds for every i, the first one included."""
    assert matches("A1 A2 B3 B2", "A+ a[], B b", "b.v > a[i].v") == ["a:0,1 b:2", "a:1 b:2"]
    assert matches("A1 A5 B3", "A+ a[], B b", "b.v > a[i].v") == []
    assert matches("A9 A1 B3", "A+ a[], B b", "b.v > a[i].v") == ["a:1 b:2"]


def test_each_under_or_and_not() -> None:
    assert matches("A9 A1 B3", "A+ a[], B b", "b.v > a[i].v or a[i].v = 9") == ["a:0,1 b:2", "a:1 b:2"]
    assert matches("A9 A5 B3", "A+ a[], B b", "b.v > a[i].v or a[i].v = 9") == []
    assert matches("A1 A5 B3", "A+ a[], B b", "not b.v > a[i].v") == ["a:1 b:2"]


def test_each_against_the_whole() -> None:
    """a[i] beside what is known of the same variable only later: for every i, when that is known."""
    found = matches("A3 A1 A4", "A+ a[]", "a[i].v <= a[a.LEN].v")
    assert found == ["a:0", "a:1", "a:0,1,2", "a:1,2", "a:2"]
    assert matches("A2 A2 A3", "A+ a[]", "a[i].v <= avg(a[].v)", STRICT) == ["a:0", "a:0,1", "a:1", "a:2"]


def test_each_against_the_first_is_tested_when_taken() -> None:
    assert matches("A2 A1 A3 B", "A+ a[], B b", "a[i].v > a[1].v") == ["a:0,2 b:3", "a:1,2 b:3", "a:2 b:3"]
    earlier = matches("C2 A1 A3 A1 B", "C c, A+ a[], B b", "a[i].v > c.v")
    assert earlier == ["c:0 a:1,2 b:4"]


def test_each_of_two_kleenes() -> None:
    # The condition is on taking b[i]; a run stays at a[i] with B2, and proceeds with B4 as well.
    expected = ["a:0,1 b:2", "a:1 b:2", "a:0,1 b:2,3", "a:0,1 b:3", "a:1 b:2,3", "a:1 b:3"]
    assert matches("A1 A3 B2 B4", "A+ a[], B+ b[]", "b[i].v > a[i].v") == expected
    assert matches("A1 A5 B2 B4", "A+ a[], B+ b[]", "b[i].v > a[i].v", STRICT) == ["a:0,1 b:2", "a:1 b:2"]


def test_a_later_kleene_against_an_earlier_one() -> None:
    assert matches("A1 A3 B2 B4", "A+ a[], B+ b[]", "b[1].v < a[i].v", STRICT) == ["a:1 b:2", "a:1 b:2,3"]
    assert matches("A A B B B", "A+ a[], B+ b[]", "b.LEN = a.LEN", STRICT) == ["a:1 b:2", "a:0,1 b:2,3"]


def test_or_over_variables_waits_for_the_last() -> None:
    assert matches("A1 A2 B1 B2", "A a, B b", "a.v = 1 or b.v = 2") == ["a:0 b:2", "a:1 b:3"]


def test_conditions_without_references() -> None:
    assert matches("A B", "A a, B b", "TRUE") == ["a:0 b:1"]
    assert matches("A B", "A a, B b", "FALSE") == []


def test_equal_strings() -> None:
    assert matches("A/x B/y B/x", "A a, B b", "b.k = a.k") == ["a:0 b:2"]


def test_null_compares_with_nothing() -> None:
    assert matches("A_ B1", "A a, B b", "b.v != a.v") == []
    assert matches("A_ B1", "A a, B b", "not b.v = a.v") == ["a:0 b:1"]
    assert matches("A_ B1", "A a, B b", "a.v IS NULL") == ["a:0 b:1"]
    # Division by zero is NULL.
    assert matches("A0 B1", "A a, B b", "b.v / a.v > 0 or b.v % a.v >= 0") == []


# ---- Aggregates


def test_average_of_those_before() -> None:
    found = matches("A2 A3 A2 A4 B0", "A+ a[], B b", "a[i].v > avg(a[..i-1].v)")
    assert found == ["a:0,1,3 b:4", "a:1,3 b:4", "a:2,3 b:4", "a:3 b:4"]


def test_up_to_the_current_one() -> None:
    assert matches("A2 A3 A1 B", "A+ a[], B b", "sum(a[..i].v) <= 5") == ["a:0,1 b:3", "a:1,2 b:3", "a:2 b:3"]
    assert matches("A A A B", "A+ a[], B b", "count(a[..i]) <= 2") == ["a:0,1 b:3", "a:1,2 b:3", "a:2 b:3"]


def test_aggregates_leave_null_out() -> None:
    found = matches("A_ A1 A2 B", "A+ a[], B b", "count(a[..i-1].v) < 1")
    assert found == ["a:0,1 b:3", "a:1 b:3", "a:2 b:3"]
    # The least of nothing is NULL, and compares with nothing.
    assert matches("A_ A1 B", "A+ a[], B b", "a[i].v >= min(a[..i-1].v)") == ["a:0 b:2", "a:1 b:2"]
    assert matches("A_ A3 B", "A+ a[], B b", "avg(a[].v) = 3 and count(a[]) = 2") == ["a:0,1 b:2"]


def test_whole_aggregates_of_an_earlier_component() -> None:
    assert matches("A1 A4 B3", "A+ a[], B b", "b.v > avg(a[].v)") == ["a:0,1 b:2"]


def test_aggregate_values() -> None:
    assert aggregate("sum", [Decimal("0.1"), Decimal("0.2")]) == 0.1 + 0.2
    assert isinstance(aggregate("sum", [Decimal(1)]), float)
    assert aggregate("avg", [Decimal(1), None, Decimal(2)]) == 1.5
    assert aggregate("max", [Decimal("0.1"), Decimal("0.2")]) == Decimal("0.2")
    assert aggregate("sum", [2**62, 2**62, 1]) == 2**63 + 1
    assert aggregate("avg", [2**53 + 1, 2**53 + 1]) == (2**54 + 2) / 2
    assert aggregate("sum", [1e16, 1.0, 1.0]) == 1e16  # from left to right, each sum rounded
    assert math.isnan(aggregate("min", [1.0, math.nan]))
    assert math.isnan(aggregate("max", [math.nan, 1.0]))


# ---- Windows


def test_windows_are_inclusive() -> None:
    assert matches("A@0 B@3", "A a, B b", within=3) == ["a:0 b:1"]
    assert matches("A@0 B@4", "A a, B b", within=3) == []
    assert matches("A C B", "A a, B b", events=2) == ["a:0 b:2"]
    assert matches("A C C B", "A a, B b", events=2) == []


def test_windows_cut_a_kleene() -> None:
    found = matches("A@0 A@1 A@3", "A+ a[]", within=2)
    assert found == ["a:0", "a:0,1", "a:1", "a:1,2", "a:2"]


def test_events_are_counted_in_the_partition() -> None:
    assert matches("A/x C/y C/y B/x", "A a, B b", events=1, partition_by=("k",)) == ["a:0 b:3"]
    assert matches("A/x C/x B/x", "A a, B b", events=1, partition_by=("k",)) == []


# ---- Negation


@pytest.mark.parametrize("selection", [NEXT, ANY])
def test_nothing_between(selection: Selection) -> None:
    """A match that is dropped still ends its run under skip till next match; with skip till any match others are dropped."""
    assert matches("A C B A B", "A a, ~(C n), B b", selection=selection) == ["a:3 b:4"]


def test_between_the_last_and_the_first() -> None:
    assert matches("A C A B", "A+ a[], ~(C n), B b") == ["a:0,2 b:3", "a:2 b:3"]
    assert matches("A A C B", "A+ a[], ~(C n), B b") == []
    assert matches("A B C B", "A a, ~(C n), B+ b[]") == ["a:0 b:1", "a:0 b:1,3"]


def test_between_is_about_positions() -> None:
    assert matches("A@1 C@1 B@1", "A a, ~(C n), B b") == []
    assert matches("C@1 A@1 B@1 C@1", "A a, ~(C n), B b") == ["a:1 b:2"]


def test_conditions_of_a_negation() -> None:
    kept = ["a:0 b:2"]
    assert matches("A2 C1 B", "A a, ~(C n), B b", "n.v > a.v") == kept
    assert matches("A2 C3 B", "A a, ~(C n), B b", "n.v > a.v") == []
    assert matches("A2 C_ B", "A a, ~(C n), B b", "n.v > a.v") == kept
    # With a later component too, and one that holds together with another.
    assert matches("A2 C3 B4", "A a, ~(C n), B b", "n.v > a.v and n.v > b.v") == kept
    assert matches("A2 C5 B4", "A a, ~(C n), B b", "n.v > a.v and n.v > b.v") == []
    assert matches("A2 C1 B", "A a, ~(C n), B b", "n.v > 4 or a.v = 2") == []


def test_each_beside_a_negation() -> None:
    assert matches("A1 A3 C2 B", "A+ a[], ~(C n), B b", "n.v > a[i].v") == ["a:0,1 b:3", "a:1 b:3"]
    assert matches("A1 A3 C4 B", "A+ a[], ~(C n), B b", "n.v > a[i].v") == []
    assert matches("A1 A3 C2 B", "A+ a[], ~(C n), B b", "n.v = a.LEN") == ["a:1 b:3"]


def test_negated_events_are_of_the_partition() -> None:
    assert matches("A/x C/y C/_ B/x", "A a, ~(C n), B b", partition_by=("k",)) == ["a:0 b:3"]
    assert matches("A/x C/x B/x", "A a, ~(C n), B b", partition_by=("k",)) == []
    before = "~(C n), A a, B b"
    assert matches("C/y A/x B/x", before, selection=STRICT, partition_by=("k",), within=5) == ["a:1 b:2"]
    assert matches("C/_ A/x B/x", before, selection=STRICT, partition_by=("k",), within=5) == ["a:1 b:2"]
    assert matches("C/x A/x B/x", before, selection=STRICT, partition_by=("k",), within=5) == []


def test_a_negated_event_can_be_selected() -> None:
    assert matches("A A B", "A a, ~(A n), B b") == ["a:1 b:2"]


@pytest.mark.parametrize(("time", "kept"), [(2, True), (3, False), (4, False), (5, False)])
def test_negation_at_the_start(time: int, kept: bool) -> None:
    """From last − d = 3 on, before the first event in the order of the stream."""
    assert matches(f"C@{time} A@5 B@7", "~(C n), A a, B b", within=4) == (["a:1 b:2"] if kept else [])


@pytest.mark.parametrize(("time", "kept"), [(3, False), (4, False), (5, False), (6, True)])
def test_negation_at_the_end(time: int, kept: bool) -> None:
    """After the last event in the order of the stream, up to first + d = 5."""
    assert matches(f"A@1 B@3 C@{time}", "A a, B b, ~(C n)", within=4) == (["a:0 b:1"] if kept else [])


def test_negation_beside_a_kleene_at_an_end() -> None:
    assert matches("C@0 A@3 A@5", "~(C n), A+ a[]", within=4) == ["a:1,2", "a:2"]
    assert matches("A@0 C@2 A@3", "A+ a[], ~(C n)", within=4) == ["a:0,2", "a:2"]


@pytest.mark.parametrize(("stream", "kept"), [("A D C B", 0), ("A D B", 0), ("A C B", 0), ("A E B", 1)])
def test_several_negations_are_independent(stream: str, kept: int) -> None:
    assert len(matches(stream, "A a, ~(C m), ~(D n), B b")) == kept


def test_a_condition_relates_one_negation() -> None:
    with pytest.raises(QueryError, match="two negated"):
        matches("A B", "A a, ~(C m), ~(D n), B b", "m.v = n.v")


# ---- Which matches are given


def test_non_overlap() -> None:
    """The earliest start wins, the other runs are dropped, and the next match starts later."""
    assert matches("A A B B A B", "A a, B b", selection=ANY, non_overlap=True) == ["a:0 b:2", "a:4 b:5"]
    assert matches("A A A A", "A a, A b", selection=STRICT, non_overlap=True) == ["a:0 b:1", "a:2 b:3"]
    assert matches("A A", "A+ a[]", non_overlap=True) == ["a:0", "a:1"]


def test_non_overlap_prefers_few_events_and_small_positions() -> None:
    assert matches("A A B", "A+ a[], B b", selection=ANY, non_overlap=True) == ["a:0 b:2"]
    assert matches("A B B C", "A a, B+ b[], C c", selection=ANY, non_overlap=True) == ["a:0 b:1 c:3"]


def test_non_overlap_is_of_a_partition() -> None:
    stream = "A/x A/y B/x B/y"
    assert matches(stream, "A a, B b", non_overlap=True, partition_by=("k",)) == ["a:0 b:2", "a:1 b:3"]
    assert matches(stream, "A a, B b", non_overlap=True) == ["a:0 b:2"]
    # Strict contiguity: the stream is one, whatever the tests.
    stream = "A/x A/y A/y A/x"
    assert matches(stream, "A+ a[]", "a.LEN > 1", STRICT, non_overlap=True, partition_by=("k",)) == ["a:1,2"]


def test_negation_comes_before_non_overlap() -> None:
    assert matches("A C A B B", "A a, ~(C n), B b", selection=ANY, non_overlap=True) == ["a:2 b:3"]


def test_limit() -> None:
    """Of each end, the latest starts; then the smallest positions."""
    assert matches("A A A B", "A a, B b", limit=2) == ["a:1 b:3", "a:2 b:3"]
    assert matches("A A B", "A+ a[], B b", selection=ANY, limit=2) == ["a:0,1 b:2", "a:1 b:2"]
    assert matches("A A B B", "A a, B b", selection=ANY, limit=1) == ["a:1 b:2", "a:1 b:3"]


def test_limit_counts_what_negation_leaves() -> None:
    assert matches("A A C A B", "A a, ~(C n), B b", limit=1) == ["a:3 b:4"]
    assert matches("A2 A3 C3 B", "A a, ~(C n), B b", "n.v <= a.v", limit=1) == ["a:0 b:3"]


def test_small_streams() -> None:
    assert matches("", "A a") == []
    assert matches("A", "A a") == ["a:0"]
    assert matches("B", "A+ a[]") == []


def test_the_stream_is_the_type_where_there_is_no_other() -> None:
    table = pa.table({"from": ["A", "B"]})
    query = sase(["A a", "B b"])
    bound = bind_sase(query, Schema.of(table, type=None, stream="from"))
    assert shown(evaluate_sase(bound, table)) == ["a:0 b:1"]


def test_returned() -> None:
    table = events("A1 A4 A_ B3").append_column("d", pa.array([Decimal("0.5"), Decimal("1.5"), None, Decimal(1)]))
    items = {
        "n": "a.LEN",
        "known": "count(a[].v)",
        "mean": "avg(a[].v)",
        "rise": "a[a.LEN].v - a[1].v",
        "first": "a[1].d",
        "paid": "sum(a[].d)",
        "more": "b.d + 1",
        "least": "min(a[].d)",
    }
    query = bind_sase(sase(["A+ a[]", "B b"], returns=list(items.items())), Schema.of(table))
    found = evaluate_sase(query, table)
    assert shown(found) == ["a:0,1,2 b:3", "a:1,2 b:3", "a:2 b:3"]
    rows = [returned(query, match, table.to_pylist()) for match in found]
    assert rows[0] == {
        "n": 3, "known": 2, "mean": 2.5, "rise": None, "first": Decimal("0.5"), "paid": 2.0, "more": 2.0,
        "least": Decimal("0.5"),
    }  # fmt: skip
    assert isinstance(rows[0]["more"], float)
    assert rows[2] | {"more": 0} == dict.fromkeys(items) | {"n": 1, "known": 0, "more": 0}


# ---- The paper


def test_query_1() -> None:
    """Shoplifting: from the shelf out of the store, without the register."""
    rows = [("Shelf", 1), ("Shelf", 2), ("Register", 2), ("Exit", 1), ("Exit", 2)]
    table = pa.table({"type": [row[0] for row in rows], "tag": [row[1] for row in rows]})
    components = "Shelf a, ~(Register b), Exit c"
    assert matches(table, components, partition_by=("tag",)) == ["a:0 c:3"]
    # In words the same, with a skip over exits of other tags.
    assert matches(table, components, "a.tag = b.tag and a.tag = c.tag") == ["a:0 c:3"]


def test_query_2() -> None:
    """Contamination: every series of shipments from the contaminated site."""
    rows = [("Alert", "X", "", ""), *(("Shipment", "", one, two) for one, two in ("XY", "XZ", "YW", "ZW", "WX"))]
    names = ("type", "site", "origin", "target")
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    where = "b[1].origin = a.site and b[i].origin = b[i-1].target"
    assert matches(table, "Alert a, Shipment+ b[]", where, ANY) == [
        "a:0 b:1",
        "a:0 b:2",
        "a:0 b:1,3",
        "a:0 b:2,4",
        "a:0 b:1,3,5",
        "a:0 b:2,4,5",
    ]
    # Skip till next match has to take the first one.
    assert matches(table, "Alert a, Shipment+ b[]", where) == ["a:0 b:1", "a:0 b:1,3", "a:0 b:1,3,5"]


def test_query_3() -> None:
    """Figures 3 to 5: a stream with their numbers where they tell them, and R1, R2, R3 as the text describes them.

    After e4 the run of e1 has taken 4 events, and that of e3 two whose prices sum up to 241, with a last volume of 999; both
    complete with e6 (R1, with e5; R2, without), and e1's takes e6 and completes with e8 (R3).
    """
    prices = [100, 120, 120, 121, 120, 125, 120, 120]
    volumes = [1010, 990, 1005, 999, 999, 750, 950, 590]
    table = pa.table({"type": ["Stock"] * 8, "symbol": ["GOOG"] * 8, "price": prices, "volume": volumes})
    where = "a[1].volume > 1000 and a[i].price > avg(a[..i-1].price) and b.volume < 80 * a[a.LEN].volume / 100"
    components = "Stock+ a[], Stock b"
    r1, r2, r3 = "a:0,1,2,3,4 b:5", "a:2,3 b:5", "a:0,1,2,3,4,5,6 b:7"
    assert matches(table, components, where, partition_by=("symbol",)) == [r1, r2, r3, "a:2,3,5 b:7"]
    # e3's run cannot take e5; the events are one partition.
    assert matches(table, components, where, PARTITION, partition_by=("symbol",)) == [r1, r3]


# ---- Section 6: the stock stream


WINDOW = 1000
PREDICATES = {
    "p1": None,
    "p2": "a[i].price > a[i-1].price",
    "p3 min": "a[i].price > min(a[..i-1].price)",
    "p3 avg": "a[i].price > avg(a[..i-1].price)",
}
#: (matches, summed lengths with b) on 100,000 events.
COUNTS = {
    (PARTITION, "p1"): (14_987, 3_765_008),
    (PARTITION, "p2"): (102, 440),
    (PARTITION, "p3 min"): (9_066, 2_278_928),
    (PARTITION, "p3 avg"): (6_321, 1_576_796),
    (NEXT, "p1"): (14_987, 3_765_008),
    (NEXT, "p2"): (14_987, 2_134_619),
    (NEXT, "p3 min"): (14_987, 3_748_429),
    (NEXT, "p3 avg"): (14_987, 3_735_824),
}


def by_loops(table: pa.Table, selection: Selection, predicate: str) -> Iterator[tuple[tuple[int, ...], int]]:
    """The matches of the template query: the events of a[] and that of b, by one loop for each start."""
    symbols, prices, volumes, times = (table[name].to_pylist() for name in ("symbol", "price", "volume", "ts"))
    for symbol in sorted(set(symbols)):
        members = [i for i, own in enumerate(symbols) if own == symbol]
        for rank, first in enumerate(members):
            if prices[first] % 500:
                continue
            taken, least, total = [first], prices[first], prices[first]
            for row in members[rank + 1 :]:
                if times[row] - times[first] > WINDOW:
                    break
                if volumes[row] < 150:
                    yield tuple(taken), row
                above = {"p1": -math.inf, "p2": prices[taken[-1]], "p3 min": least, "p3 avg": total / len(taken)}
                if prices[row] > above[predicate]:
                    taken.append(row)
                    least, total = min(least, prices[row]), total + prices[row]
                elif selection is PARTITION:
                    break


@cache
def whole_stream() -> pa.Table:
    """The stream of the experiments, which takes as long to draw as a query's matches to count."""
    table = java_stocks(100_000)
    assert sum(price % 500 == 0 for price in table["price"].to_pylist()) == 203
    return table


@pytest.mark.parametrize(("selection", "predicate"), COUNTS)
def test_stocks(selection: Selection, predicate: str) -> None:
    """Counts on the whole stream by loops, and the reference against the loops on its first events."""
    table = whole_stream()
    lengths = [len(taken) + 1 for taken, _ in by_loops(table, selection, predicate)]
    assert (len(lengths), sum(lengths)) == COUNTS[selection, predicate]

    few = table.slice(0, 2_500)
    parts = ["a[1].price % 500 = 0", PREDICATES[predicate], "b.volume < 150"]
    query = sase(
        ["stock+ a[]", "stock b"],
        " and ".join(filter(None, parts)),
        selection,
        partition_by=("symbol",),
        window=Window(number=WINDOW),
    )
    found = evaluate_sase(bind_sase(query, Schema.of(few, time="ts")), few)
    expected = {(("a", taken), ("b", (row,))) for taken, row in by_loops(few, selection, predicate)}
    assert {match.bindings for match in found} == expected
    assert len(found) == len(expected) > 0


# ---- What holds for every query


def test_random_cases_are_of_use() -> None:
    """Many have matches, and none so many that engines cannot be compared on them."""
    counts = [len(drawn(seed).matches()) for seed in range(cases(500))]
    assert max(counts) < 5_000
    assert sum(count > 0 for count in counts) > 0.4 * len(counts)


def test_skipping_more_finds_more() -> None:
    """What a strategy selects, skip till any match selects as well (but for what output formats choose of it)."""
    for seed in range(cases(500)):
        one = drawn(seed)
        if one.query.non_overlap or one.query.limit is not None:
            continue
        strict, partition, following, every = (set(_selected(one, selection)) for selection in EVERY)
        assert strict | partition | following <= every, one
        assert one.query.partition_by or strict == partition, one


def _selected(one: SaseCase, selection: Selection) -> list[SaseMatch]:
    """The matches of a case under another strategy, on fewer events: skip till any match selects very many."""
    query = bind_sase(replace(one.query, selection=selection), one.schema)
    return evaluate_sase(query, one.events.slice(0, 9))
