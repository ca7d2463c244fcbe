"""What goes wrong while an AFA runs: the error says where and what to do, and the matcher goes on as if it had not been."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import StrettoError
from tests.conftest import cases

Row = dict[str, Any]

#: A value that the transfer of :func:`summing` cannot multiply.
BAD = 1 << 40


def summing(**options: Any) -> stretto.AFA:
    """Sums of products of neighbours; two great ones overflow, and so does one alone."""
    afa = stretto.AFA({"x": int}, {"n": int}, window=20, **options)
    afa.arc("q0", "q1", when="e.x > 0", then="n = e.x * e.x").arc(
        "q1", "q2", when="e.x > 0", then="n = r.n + e.x * e.x"
    )
    return afa.final("q2")


def outputs(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """What is left of signed output, by times and register."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        found[row["start_time"], row["end_time"], row["register"]["n"]] += row["sign"]
    return found


@pytest.mark.parametrize("seed", range(cases(60)))
def test_behind_a_cleanse_only_bad_rows_are_left_out(seed: int) -> None:
    choose = random.Random(seed)
    times = [at + choose.randint(0, 6) for at in range(25)]
    events: list[Row] = [{"t": t, "s": at, "x": choose.choice([1, 2, 3, -1]), "sign": 1} for at, t in enumerate(times)]
    for event in choose.sample(events, 4):
        event["x"] = BAD
    log: list[Row] = []
    for event in events:
        log.append(event)
        if choose.random() < 0.2:
            old = choose.choice(log)
            log += [old | {"sign": -1}, old | {"x": choose.choice([5, 7]), "sign": 1}]
    alive: dict[int, Row] = {}
    kept = []
    for row in log:  # retractions name what is there
        there = alive.get(row["s"])
        if row["sign"] < 0:
            if there is None or there["x"] == BAD:
                continue
            del alive[row["s"]]
        elif there is not None:
            continue
        else:
            alive[row["s"]] = row
        kept.append(row)
    speculation = choose.choice([0, 2, 5, math.inf])
    options: dict[str, Any] = {"time": "t", "sequence": "s", "sign": "sign", "speculation": speculation}
    if choose.random() < 0.5:
        options["disorder"] = 40  # nothing is late
    matcher = stretto.Matcher(summing(), **options)
    errors: list[StrettoError] = []
    found: Counter[tuple[Any, ...]] = Counter()

    def call(operation: Callable[[], pa.Table]) -> None:
        try:
            found.update(outputs(operation()))
        except StrettoError as error:
            errors.append(error)

    begin = 0
    while begin < len(kept):
        end = begin + choose.choice([1, 2, 7])
        call(lambda begin=begin, end=end: matcher.push(kept[begin:end]))  # type: ignore[misc]
        begin = end
    call(lambda: matcher.advance(100))
    call(matcher.finish)
    call(matcher.finish)  # gives what an error held back
    bad = [number for number, row in enumerate(kept) if row["x"] == BAD]
    words = " ".join(map(str, errors))
    assert all(f"at row {number}" in words or "more; the next" in words for number in bad)
    assert bool(bad) == bool(errors)
    assert all(isinstance(error, stretto.DataError) and "an integer leaves 64 bits" in str(error) for error in errors)
    final = [row for row in alive.values() if row["x"] != BAD]
    right = stretto.match(summing(), [{name: row[name] for name in "tsx"} for row in final], time="t", sequence="s")
    wanted = Counter((one["start_time"], one["end_time"], one["register"]["n"]) for one in right.to_pylist())
    assert +found == wanted
    assert not -found


def test_a_row_that_fails_behind_a_cleanse_is_named() -> None:
    matcher = stretto.Matcher(summing(), time="t", speculation=0)
    matcher.push([{"t": 3, "x": 2}, {"t": 2, "x": BAD}, {"t": 1, "x": 1}, {"t": 4, "x": BAD}])
    with pytest.raises(stretto.DataError) as error:
        matcher.advance(9)
    assert str(error.value).split("\n") == [
        "arc 'a1' (q1 -> q2): an integer leaves 64 bits at row 1 (and 1 more; the next: arc 'a1' (q1 -> q2): an integer leaves 64 "
        "bits at row 3)",
        "hint: bound it by a fence, or declare the field as float",
        "these rows were left out; all others were taken, and the next call gives their output",
    ]
    assert outputs(matcher.push([{"t": 9, "x": 3}])) == {(1, 3, 5): 1}
    assert matcher.punctuation == 9
    again = stretto.Matcher(summing(), time="t", speculation=0).restore(matcher.snapshot())
    assert outputs(again.finish()) == {(3, 9, 13): 1}


def test_of_a_revision_that_fails_neither_half_is_taken() -> None:
    for options in ({}, {"speculation": math.inf}):
        matcher = stretto.Matcher(summing(), time="t", sequence="s", sign="sign", **options)
        assert outputs(matcher.push([{"t": t, "s": 0, "x": 2, "sign": 1} for t in (1, 2)])) == {(1, 2, 8): 1}
        revision = [{"t": 2, "s": 0, "x": 2, "sign": -1}, {"t": 2, "s": 0, "x": BAD, "sign": 1}]
        with pytest.raises(stretto.DataError, match="an integer leaves 64 bits at row 3"):
            matcher.push(revision)
        assert outputs(matcher.push([{"t": 3, "s": 0, "x": 1, "sign": 1}])) == {(2, 3, 5): 1}
        assert outputs(matcher.push([{"t": 2, "s": 0, "x": 2, "sign": -1}])) == {
            (1, 2, 8): -1,
            (2, 3, 5): -1,
            (1, 3, 5): 1,
        }


def letters() -> stretto.AFA:
    afa = stretto.AFA({"kind": str, "x": int}, {"n": int, "m": float}, window=30)
    afa.arc("q0", "q1", when="e.kind = 'a'", then="n = e.x * e.x").ignore("q1", when="e.kind = 'c'")
    afa.arc("q1", "q2", when="e.kind = 'b'", then="m = 10 / e.x").arc("q1", "q3", when="e.kind = 'z'")
    return afa.epsilon("q3", "q3", then="n = r.n + 1").final("q2")


def row(t: Any, kind: Any, x: Any = 1, sign: Any = 1) -> Row:
    return {"t": t, "kind": kind, "x": x, "sign": sign}


#: What cannot be done after an a at 1, a c at 5 and the punctuation 3; the kind of error, and words of it.
REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda m: m.push([row(4, "b", sign=-1)]), stretto.DataError, "row 2 retracts an event that is not there"),
    (
        lambda m: m.push([row(2, "b")]),
        stretto.DataError,
        "its time is 2, and the punctuation stands at 3\nhint: late=",
    ),
    (lambda m: m.push([row(1, "a", sign=-1)]), stretto.DataError, "row 2 is late"),
    (lambda m: m.advance(2), stretto.DataError, "the punctuation goes back from 3 to 2"),
    (lambda m: m.advance(None), stretto.OptionError, "None is no time of 't', which is int64"),
    (lambda m: m.advance("noon"), stretto.OptionError, "'noon' is no time of 't', which is int64"),
    (lambda m: m.push([], punctuations=[(0, 4), (0, 3)]), stretto.DataError, "goes back from 4 to 3"),
    (lambda m: m.push([row(4, "z")]), stretto.LimitError, "its ε-cycle q3 -> q3 goes on without end at row 2"),
    (
        lambda m: m.push([row(4, "b", x=0)]),
        stretto.DataError,
        "would be NULL at row 2\nhint: a fence such as e.price IS NOT NULL",
    ),
    (
        lambda m: m.push([row(4, "a", x=BAD)]),
        stretto.DataError,
        "an integer leaves 64 bits at row 2\nhint: bound it by a fence",
    ),
    (
        lambda m: m.push([row(4, "a", x=None)]),
        stretto.DataError,
        "arc 'a0' (q0 -> q1): a field of the register would be NULL at r",
    ),
    (lambda m: m.push([row(None, "a")]), stretto.DataError, "'t' orders the stream and is NULL at row 2"),
    (
        lambda m: m.push([row(6, "a"), row(7, "a", x=1.5)]),
        stretto.DataError,
        "'x' is double, and the matcher expects int64",
    ),
    (lambda m: m.push([row(6, 3)]), stretto.DataError, "'kind' is int64, and the matcher expects string"),
    (lambda m: m.push([{"t": 6, "sign": 1}]), stretto.DataError, "the events have no column 'kind'"),
    (lambda m: m.push([row(6, "a", sign=0)]), stretto.DataError, "'sign' (sign) is 0 at row 2; it is +1 or −1"),
    (lambda m: m.push([row(6, "a", sign=None)]), stretto.DataError, "'sign' (sign) is NULL at row 2"),
    (
        lambda m: m.add_arc("q0", "q1", id="a0"),
        stretto.OptionError,
        "there is an arc 'a0' already; retire_arc('a0') first",
    ),
    (
        lambda m: m.add_arc("q1", "q2", id="n", when="e.x + 1"),
        stretto.QueryError,
        "a condition is needed here, not a value",
    ),
    (
        lambda m: m.add_arc("q1", "q2", id="n", final="on_enter"),
        stretto.OptionError,
        "'q2' is final already, with emit='every'",
    ),
    (
        lambda m: m.add_arc("q0", "q0", id="n", kind="ignore"),
        stretto.OptionError,
        "an ignorable arc on the start state 'q0'",
    ),
    (lambda m: m.add_arc("q0", "q9"), stretto.OptionError, "needs a name: id='…'"),
    (lambda m: m.add_arc("q0", "q9", id="n", since=2), stretto.OptionError, "since=2 concerns events that were seen"),
    (lambda m: m.retire_arc("a9"), stretto.OptionError, "no arc 'a9' is in force; known arcs: a0, a1"),
    (lambda m: m.advance_arcs(9), stretto.OptionError, "arcs have explicit lifetimes only with dynamic='explicit'"),
    (lambda m: m.restore(b"nothing"), stretto.SnapshotError, "these bytes are not a stretto snapshot"),
    (
        lambda m: m.restore(stretto.Matcher(summing(), time="t").snapshot()),
        stretto.SnapshotError,
        "of another automaton",
    ),
]


@pytest.mark.parametrize("which", range(len(REFUSED)))
def test_what_is_refused_leaves_no_trace(which: int) -> None:
    operation, kind, words = REFUSED[which]
    matcher, other = (stretto.Matcher(letters(), time="t", sign="sign") for _ in range(2))
    for one in (matcher, other):
        one.push([row(1, "a"), row(5, "c")])
        one.advance(3)
    with pytest.raises(kind) as error:
        operation(matcher)
    assert words in str(error.value)
    for log in ([row(4, "c"), row(8, "b")], [row(5, "c", sign=-1)], [row(4, "a", x=2), row(7, "b")]):
        assert matcher.push(log) == other.push(log)
    assert matcher.advance(9) == other.advance(9)
    assert matcher.arcs() == other.arcs()
    for name in ("rows", "late", "events", "partial_matches"):
        assert matcher.stats[name] == other.stats[name]
    assert (matcher.late, matcher.punctuation) == (0, 9)


def test_options_of_queries_say_what_an_afa_has() -> None:
    for options, words in (
        ({"output": "summary"}, "output=.summary. is for queries in CEQL or SASE"),
        ({"type": "kind"}, "type='kind' is for queries in CEQL or SASE"),
        ({"sets": True}, "sets=True is for queries in CEQL or SASE"),
    ):
        with pytest.raises(stretto.OptionError, match=words):
            stretto.Matcher(letters(), time="t", **options)
    with pytest.raises(
        TypeError, match=r"unexpected keyword argument 'late': it is for streams, stretto\.Matcher\(afa, time='…'\)"
    ):
        stretto.match(letters(), [row(1, "a")], time="t", late="drop")


def test_punctuations_and_arcs_may_come_without_rows() -> None:
    for options in ({}, {"speculation": 0}):
        matcher = stretto.Matcher(letters(), time="t", **options)
        with pytest.raises(stretto.OptionError, match="the columns are not known before the first events, or schema=…"):
            matcher.push([], punctuations=[(0, 4)])
        matcher.push([row(1, "a")])
        matcher.push([], punctuations=[(0, 4)], arcs=[{"action": "retire", "id": "a2"}])
        assert matcher.punctuation == 4
        assert all(arc.id != "a2" or arc.until == 2 for arc in matcher.arcs())
        assert matcher.push([row(5, "b")]).num_rows == 0


def test_sequence_numbers_grow_with_time() -> None:
    numbered = [row(1, "a") | {"n": 1}, row(5, "c") | {"n": 3}, row(9, "b") | {"n": 5}]
    for t, n in ((7, 2), (7, 6), (12, 4), (3, 3), (3, 5), (12, 5), (0, 1)):
        for late in ("error", "drop"):
            matcher = stretto.Matcher(letters(), time="t", numbered="n", late=late)
            matcher.push(numbered)
            wrong = [row(t, "b") | {"n": n}]
            if late == "drop":
                assert matcher.push(wrong).num_rows == 0
            else:
                with pytest.raises(
                    stretto.DataError, match=f"row 3: its sequence number {n} contradicts its time {t}: in a"
                ):
                    matcher.push(wrong)
            assert matcher.late == (late == "drop")
            found = matcher.push([row(3, "c") | {"n": 2}, row(9, "c") | {"n": 4}])
            assert outputs(found) == {(1, 9, 1): 1}
