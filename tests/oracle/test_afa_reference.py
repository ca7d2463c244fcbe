"""The AFA operator's reference evaluator against examples that were worked out by hand."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from stretto.errors import DataError, LimitError, OptionError
from stretto.query.afa import Afa, Arc, Emit, Kind, UserFunction
from tests.cases.afa.values import automaton, fence
from tests.reference.afa import (
    AddArc,
    Change,
    Event,
    Insert,
    Output,
    Punctuate,
    PunctuateArcs,
    Replay,
    RetireArc,
    Retract,
    Revise,
    Row,
    Step,
    outputs,
)

INT = pa.int64()
CONSUME, EPSILON, IGNORE = Kind.CONSUME, Kind.EPSILON, Kind.IGNORE


def letters(text: str, *, window: int | None = None, times: Iterable[int] | None = None) -> list[Event]:
    """An event a letter, a time unit apart."""
    return [
        Event(row, (), time, {"x": letter}, row, None if window is None else time + window)
        for row, (time, letter) in enumerate(zip(times or range(len(text)), text, strict=True))
    ]


def over_letters(arcs: Iterable[tuple[Any, ...]], finals: Any, **register: tuple[pa.DataType, Any]) -> Afa:
    return automaton({"x": pa.string()}, register, arcs, finals)


def short(found: Iterable[Output]) -> list[tuple[Any, ...]]:
    """First row, last row and the register's fields."""
    return sorted((one.first, one.last, *one.register) for one in found)


def difference(change: Change) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    return [(one.first, one.last, *one.register) for one in change.retracted], [
        (one.first, one.last, *one.register) for one in change.inserted
    ]


def is_letter(letter: str) -> str:
    return f"e.x = '{letter}'"


# ---- The paper's running example


def q1(k: int) -> Afa:
    """Figure 3: a drop, then k V-patterns with as many upticks as downticks."""
    down, up = "e.change < 0", "e.change > 0"
    return automaton(
        {"change": pa.float64()},
        {"r1": (INT, 0), "r2": (INT, 0)},
        [
            ("q0", "q1", "e.change < -0.25"),
            ("q1", "q1", down, {"r1": "r.r1 + 1"}),
            ("q1", "q2", down, {"r1": "r.r1 + 1"}),
            ("q2", "q2", f"{up} and r.r2 < {k}", {"r1": "r.r1 - 1"}),
            ("q2", "q1", f"{up} and r.r2 + 1 < {k}", {"r1": "r.r1 - 1", "r2": "r.r2 + 1"}),
            ("q2", "q3", f"{up} and r.r1 = 1 and r.r2 + 1 = {k}", {"r1": "r.r1 - 1", "r2": "r.r2 + 1"}),
        ],
        ["q3"],
        window=7,
    )


#: Figure 2: e1 to e8 as they arrive, each a time and a change of price; e8 comes late, at time 6, and e6 is at time 7.
FIGURE_2 = [(1, -0.4), (2, -0.1), (3, -0.1), (4, 0.1), (5, 0.1), (7, 0.2), (9, -0.1), (6, -0.2)]


def tick(time: int, change: float) -> Row:
    return Row((), time, {"change": change})


def test_figure_2() -> None:
    events = [Event(row, (), time, {"change": change}, re=time + 7) for row, (time, change) in enumerate(FIGURE_2)]
    assert outputs(q1(2), events) == {Output((), 0, 5, (0, 2), 7, 8)}
    assert outputs(q1(1), events) == {Output((), 0, 4, (0, 1), 5, 8)}


def test_example_3() -> None:
    """How many registers each prefix of s = e1 … e5 e8 e6 leads to; only s itself is accepted."""
    rows = [0, 1, 2, 3, 4, 7, 5]
    events = [Event(row, (), FIGURE_2[row][0], {"change": FIGURE_2[row][1]}) for row in rows]
    everywhere = replace(q1(2), finals=dict.fromkeys(["q1", "q2", "q3"], Emit.EVERY))
    by_last = Counter[int]()
    for one in outputs(everywhere, events):
        if one.first == 0:
            by_last[one.last] += 1
    # q1 and q2 share <1, 0> after e2 and <2, 0> after e3, and <1, 1> after e8: a set has one output for both.
    assert [by_last[row] for row in rows] == [1, 1, 1, 2, 2, 1, 2]
    assert outputs(q1(2), events) == {Output((), 0, 5, (0, 2), 7, None)}


def test_example_5() -> None:
    replay = Replay(q1(2), window=7)
    changes = [replay.step(Insert(tick(*one))) for one in FIGURE_2]
    assert changes[:7] == [Change()] * 7
    assert changes[7] == Change(inserted=(Output((), 0, 5, (0, 2), 7, 8),))
    # Without e8 there is no match, with e4 taken back neither; then e4 comes again.
    assert replay.step(Retract(tick(6, -0.2))).retracted == changes[7].inserted
    assert replay.step(Retract(tick(4, 0.1))) == Change()
    assert replay.step(Insert(tick(6, -0.2))) == Change()
    assert replay.step(Insert(tick(4, 0.1))) == changes[7]


def test_example_4() -> None:
    """k is 2 until time 6 and 1 from then on: events up to time 6 use the old arcs, whenever they arrive."""
    replay = Replay(q1(2), dynamic="default")
    stream = [(1, -0.4), (2, -0.1), (3, 0.1)]
    for one in stream:
        assert replay.step(Insert(tick(*one))) == Change()
    for name in ("a3", "a4", "a5"):
        assert replay.step(RetireArc(name)) == Change()
    for arc in q1(1).arcs[3:]:
        assert replay.step(AddArc(replace(arc, id=f"{arc.id} again"))) == Change()
    assert [(arc.id, arc.since, arc.until) for arc in replay.afa.arcs] == [
        ("a0", None, None), ("a1", None, None), ("a2", None, None), ("a3", None, 4), ("a4", None, 4), ("a5", None, 4),
        ("a3 again", 4, None), ("a4 again", 4, None), ("a5 again", 4, None),
    ]  # fmt: skip
    # The same events later: one V is enough.
    found = [difference(replay.step(Insert(tick(time + 10, change)))) for time, change in stream]
    assert found == [([], []), ([], []), ([], [(3, 5, 0, 1)])]
    # An event older than the change uses the arcs of its own time, at which one V is not enough.
    assert replay.step(Retract(tick(3, 0.1))) == Change()
    assert replay.step(Insert(tick(3, 0.1))) == Change()
    # A down- and an uptick after the change complete the second V for the arcs of old, which are no more.
    assert replay.step(Insert(tick(4, -0.1))) == Change()


# ---- Definition 2


def test_every_contiguous_subsequence() -> None:
    """a+ b: each start gives its own match."""
    afa = over_letters(
        [("q0", "q1", is_letter("a")), ("q1", "q1", is_letter("a")), ("q1", "q2", is_letter("b"))], ["q2"]
    )
    assert short(outputs(afa, letters("aabab"))) == [(0, 2), (1, 2), (3, 4)]


def test_lifetimes() -> None:
    afa = over_letters([("q0", "q0")], ["q0"])
    events = letters("abc", times=[0, 2, 4], window=4)
    assert outputs(afa, events) == {
        Output((), 0, 0, (), 0, 4), Output((), 1, 1, (), 2, 6), Output((), 2, 2, (), 4, 8),
        Output((), 0, 1, (), 2, 4), Output((), 1, 2, (), 4, 6),
    }  # fmt: skip
    # The least right end rules, whichever event brings it; the last of all is at its first event's end.
    events = [replace(events[0], re=9), replace(events[1], re=3), replace(events[2], re=None)]
    assert {(one.first, one.last, one.le, one.re) for one in outputs(afa, events)} == {
        (0, 0, 0, 9), (0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 4, None),
    }  # fmt: skip


def test_an_event_between_lives_shortly() -> None:
    """What passes through an event with a short lifetime ends with it, although the first event lives on."""
    afa = over_letters(
        [("q0", "q1", is_letter("a")), ("q1", "q1", None, None, IGNORE), ("q1", "q2", "e.x = 'b'")], ["q2"]
    )
    first, between, last = letters("axb", window=10)
    assert short(outputs(afa, [first, between, last])) == [(0, 2)]
    assert short(outputs(afa, [first, replace(between, re=2), last])) == []


def test_ties_go_by_sequence_then_by_row() -> None:
    afa = over_letters([("q0", "q1", is_letter("a")), ("q1", "q2", is_letter("b"))], ["q2"])
    a, b = letters("ab", times=[5, 5])
    assert short(outputs(afa, [b, a])) == [(0, 1)]
    assert short(outputs(afa, [replace(a, sequence=2), b])) == []
    assert short(outputs(afa, [replace(a, sequence=1), b])) == [(0, 1)]
    assert short(outputs(afa, [replace(a, row=3, sequence=1), b])) == []


def test_partitions() -> None:
    afa = over_letters([("q0", "q1", is_letter("a")), ("q1", "q2", is_letter("b"))], ["q2"])
    keys = [("m",), ("n",), (None,), ("n",), (None,), ("m",)]
    events = [replace(one, key=key) for one, key in zip(letters("aaabbb"), keys, strict=True)]
    assert {(one.partition, one.first, one.last) for one in outputs(afa, events)} == {
        (("m",), 0, 5), (("n",), 1, 3),
    }  # fmt: skip


def test_the_empty_sequence_never_matches() -> None:
    afa = over_letters([("q0", "q0", is_letter("a"))], ["q0"])
    assert short(outputs(afa, letters("b"))) == []
    assert short(outputs(afa, letters("ba"))) == [(1, 1)]
    assert outputs(afa, []) == set()


def test_registers_and_nulls() -> None:
    afa = automaton(
        {"v": INT, "w": pa.float64(), "s": pa.string(), "at": pa.timestamp("s")},
        {"n": (INT, 1), "w": (pa.float64(), 0.0), "s": (pa.string(), ""), "b": (pa.bool_(), False),
         "at": (pa.timestamp("s"), dt.datetime(2020, 1, 1))},
        [
            ("q0", "q1", "e.v is not null and e.w is not null",
             {"n": "r.n + 2 * e.v", "w": "r.w + e.w / 2", "s": "e.s", "b": "true", "at": "e.at"}),
            ("q1", "q2", "e.at > r.at and e.s != r.s and r.b = true", {"n": "r.n % 4"}),
        ],
        ["q1", "q2"],
    )  # fmt: skip
    one = {"v": 3, "w": 3, "s": "x", "at": dt.datetime(2021, 1, 1)}
    two = {"v": None, "w": 1.0, "s": "y", "at": dt.datetime(2021, 1, 2)}
    events = [Event(0, (), 0, one), Event(1, (), 1, two)]
    first = (7, 1.5, "x", True, dt.datetime(2021, 1, 1))
    assert short(outputs(afa, events)) == [(0, 0, *first), (0, 1, 3, *first[1:])]
    with pytest.raises(DataError, match=r"field 's' of the register \(arc 'a0'\) becomes NULL"):
        outputs(afa, [Event(0, (), 0, one | {"s": None})])
    with pytest.raises(DataError, match=r"field 'n' of the register \(arc 'a0'\) overflows: 9223372036854775809"):
        outputs(afa, [Event(0, (), 0, one | {"v": 2**62})])
    assert len(outputs(afa, [Event(0, (), 0, one | {"v": 2**62 - 1})])) == 1
    # What no computation reaches is not computed.
    assert outputs(afa, [Event(0, (), 0, one | {"v": None, "s": None})]) == set()


# ---- ε-arcs


def test_epsilon() -> None:
    """ab?c, the register counts; from the start state too."""
    afa = over_letters(
        [
            ("q0", "p", "r.n = 0", {"n": "10"}, EPSILON),
            ("p", "q1", is_letter("a"), {"n": "r.n + 1"}),
            ("q1", "q2", is_letter("b"), {"n": "r.n + 1"}),
            ("q1", "q2", "r.n = 11", None, EPSILON),
            ("q2", "q3", is_letter("c")),
        ],
        ["q3"],
        n=(INT, 0),
    )
    assert short(outputs(afa, letters("abcac"))) == [(0, 2, 12), (3, 4, 11)]


def test_an_epsilon_arc_to_a_final_state() -> None:
    afa = over_letters(
        [("q0", "q1", is_letter("a"), {"n": "1"}), ("q1", "q2", None, {"n": "2"}, EPSILON)], ["q1", "q2"], n=(INT, 0)
    )
    assert short(outputs(afa, letters("ba"))) == [(1, 1, 1), (1, 1, 2)]
    starts = over_letters([("q0", "q1", None, None, EPSILON)], ["q1"])
    assert outputs(starts, letters("a")) == set()


def test_an_epsilon_cycle_that_ends() -> None:
    afa = over_letters(
        [
            ("q0", "q1", is_letter("a")),
            ("q1", "q2", "r.n < 3", {"n": "r.n + 1"}, EPSILON),
            ("q2", "q1", None, None, EPSILON),
        ],
        ["q1"],
        n=(INT, 0),
    )
    assert short(outputs(afa, letters("a"))) == [(0, 0, n) for n in range(4)]
    same = over_letters([("q0", "q1"), ("q1", "q2", None, None, EPSILON), ("q2", "q1", None, None, EPSILON)], ["q2"])
    assert short(outputs(same, letters("a"))) == [(0, 0)]


@pytest.mark.parametrize("bag", [False, True])
def test_an_epsilon_cycle_that_grows(bag: bool) -> None:
    afa = over_letters(
        [
            ("q0", "q1", is_letter("a")),
            ("q1", "q2", None, {"n": "r.n + 1"}, EPSILON),
            ("q2", "q1", None, None, EPSILON),
        ],
        ["q1"],
        n=(INT, 0),
    )
    assert _found(afa, "b", bag=bag) == []
    with pytest.raises(LimitError, match=r"without an event: 'q[12]' -a[12]-> 'q[12]' -a[12]-> 'q[12]'\n"):
        _found(afa, "a", bag=bag)


def test_when_an_epsilon_arc_is_valid() -> None:
    """At the time of the event before it; at the start, of the first event."""
    arcs = [("q0", "p", None, None, EPSILON), ("p", "q1", is_letter("a")), ("q1", "q2", None, None, EPSILON)]
    afa = over_letters([*arcs, ("q2", "q3", is_letter("b"))], ["q3"])

    def lives(name: str, since: int, until: int) -> list[tuple[Any, ...]]:
        return short(
            outputs(afa.with_arc(replace(afa.arc(name), since=since, until=until)), letters("ab", times=[3, 5]))
        )

    assert lives("a0", 3, 4) == [(0, 1)]
    assert lives("a0", 4, 9) == []
    assert lives("a2", 3, 4) == [(0, 1)]
    assert lives("a2", 4, 9) == []
    assert lives("a3", 5, 6) == [(0, 1)]
    assert lives("a3", 0, 5) == []


# ---- Ignorable arcs


def ignoring(emit: Emit) -> Afa:
    return over_letters(
        [("q0", "q1", is_letter("a")), ("q1", "q1", is_letter("x"), None, IGNORE), ("q1", "q1", "e.x = 'b'")],
        {"q1": emit},
    )


def test_ignorable_events() -> None:
    assert short(outputs(ignoring(Emit.EVERY), letters("axxb"))) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert short(outputs(ignoring(Emit.ON_ENTER), letters("axxb"))) == [(0, 0), (0, 3)]


def test_ignorable_and_consuming() -> None:
    """Both are taken; where they lead to the same, the state is entered."""
    both = [("q0", "q1", is_letter("a")), ("q1", "q1", "e.x = 'x'", None, IGNORE)]
    afa = over_letters([*both, ("q1", "q1", "e.x = 'x'", {"n": "r.n + 1"})], {"q1": Emit.ON_ENTER}, n=(INT, 0))
    assert short(outputs(afa, letters("axx"))) == [(0, 0, 0), (0, 1, 1), (0, 2, 1), (0, 2, 2)]
    afa = over_letters([*both, ("q1", "q1", "e.x = 'x'")], {"q1": Emit.ON_ENTER}, n=(INT, 0))
    assert short(outputs(afa, letters("ax"))) == [(0, 0, 0), (0, 1, 0)]
    assert outputs(afa, letters("ax"), bag=True) == Counter(outputs(afa, letters("ax")))


def test_an_epsilon_arc_enters() -> None:
    """Ignored in q1, and from there into q2 without an event: q2 is entered anew, although the event is ignored there too."""
    afa = over_letters(
        [
            ("q0", "q1", is_letter("a")),
            ("q1", "q1", is_letter("x"), None, IGNORE),
            ("q1", "q2", None, None, EPSILON),
            ("q2", "q2", is_letter("y"), None, IGNORE),
            ("q2", "q2", is_letter("x"), None, IGNORE),
        ],
        {"q2": Emit.ON_ENTER},
    )
    assert short(outputs(afa, letters("axyx"))) == [(0, 0), (0, 1)]


# ---- Sets and bags


def _found(afa: Afa, text: str, *, bag: bool) -> list[tuple[Any, ...]]:
    found = outputs(afa, letters(text), bag=True).elements() if bag else iter(outputs(afa, letters(text)))
    return short(found)


def test_sets_and_bags() -> None:
    """Two parallel arcs, two final states: each a computation of its own; ε-arcs lead to a description or not."""
    parallel = over_letters([("q0", "q1"), ("q0", "q1"), ("q1", "q2")], ["q2"])
    assert _found(parallel, "ab", bag=False) == [(0, 1)]
    assert _found(parallel, "ab", bag=True) == [(0, 1), (0, 1)]
    finals = over_letters([("q0", "q1"), ("q0", "q2"), ("q0", "q3")], ["q1", "q2"])
    assert _found(finals, "a", bag=False) == [(0, 0)]
    assert _found(finals, "a", bag=True) == [(0, 0), (0, 0)]
    diamond = over_letters(
        [("q0", "p"), *(("p", side, None, None, EPSILON) for side in "mn"),
         *((side, "q", None, None, EPSILON) for side in "mn")], ["q"],
    )  # fmt: skip
    assert _found(diamond, "a", bag=False) == [(0, 0)]
    assert _found(diamond, "a", bag=True) == [(0, 0)]
    registers = over_letters([("q0", "q1", None, {"n": "1"}), ("q0", "q1", None, {"n": "2"})], ["q1"], n=(INT, 0))
    assert _found(registers, "a", bag=True) == _found(registers, "a", bag=False) == [(0, 0, 1), (0, 0, 2)]


def test_an_output_goes_with_the_last_computation() -> None:
    """a b? c by way of two arcs that end at different times."""
    afa = over_letters([("q0", "q1", "e.x = 'a'"), ("q0", "q1", "e.x <= 'a'"), ("q1", "q2")], ["q2"])
    replay, bag = (Replay(afa, dynamic="explicit", bag=one) for one in (False, True))
    for step in (Insert(Row((), 1, {"x": "a"})), Insert(Row((), 2, {"x": "b"}))):
        assert difference(replay.step(step))[0] == []
        bag.step(step)
    assert difference(replay.step(RetireArc("a0", 1))) == ([], [])
    assert difference(bag.step(RetireArc("a0", 1))) == ([(0, 1)], [])
    assert difference(replay.step(RetireArc("a1", 1))) == ([(0, 1)], [])
    assert difference(bag.step(RetireArc("a1", 1))) == ([(0, 1)], [])


# ---- AFA+O


def test_numbers() -> None:
    afa = over_letters([("q0", "q1", is_letter("a")), ("q1", "q2", is_letter("b"))], ["q1", "q2"])
    replay = Replay(afa, numbered=True)
    rows = [
        Row((), time, {"x": letter}, number=number) for time, letter, number in [(1, "a", 7), (4, "b", 9), (3, "a", 8)]
    ]
    assert [difference(replay.step(Insert(row))) for row in rows] == [
        ([], [(0, 0)]), ([], []), ([], [(2, 2), (2, 1)]),
    ]  # fmt: skip
    # Equal times: the numbers are the order.
    tied = [replace(row, le=1) for row in (rows[2], rows[1])]
    again = Replay(afa, numbered=True)
    assert [difference(again.step(Insert(row))) for row in reversed(tied)] == [([], []), ([], [(1, 1), (1, 0)])]


# ---- Python functions


def test_python_functions() -> None:
    afa = Afa(
        events={"v": INT, "x": pa.string()},
        register={"n": INT, "w": pa.float64()},
        initial=(0, 0.0),
        start="q0",
        arcs=(
            Arc("a0", "q0", "q1", UserFunction(lambda e, r: e.v > r.n, "f", ("v",)),
                UserFunction(lambda e, r: r._replace(n=r.n + e.v, w=e.v / 2), "g", ("v",))),
            Arc("a1", "q1", "q2", UserFunction(lambda e, r: r.n == 3, "h"), kind=EPSILON),
            Arc("a2", "q1", "q3", None, UserFunction(lambda e, r: (e.v, r.w), "i", ("v",))),
            Arc("a3", "q2", "q4", UserFunction(lambda e, r: e.v, "j", ("v",))),
        ),
        finals=dict.fromkeys(["q1", "q2", "q3", "q4"], Emit.EVERY),
    )  # fmt: skip

    def found(*values: int | None) -> list[tuple[Any, ...]]:
        return short(outputs(afa, [Event(i, (), i, {"v": v, "x": None}) for i, v in enumerate(values)]))

    assert found(2, 5) == [(0, 0, 2, 1.0), (0, 1, 5, 1.0), (1, 1, 5, 2.5)]
    assert found(None) == []
    with pytest.raises(DataError, match="the transfer of arc 'a2' reads NULL"):
        found(2, None)
    with pytest.raises(DataError, match="the fence j of arc 'a3' must give a truth value, not 1"):
        found(3, 1)


# ---- Logs


def abc(**options: Any) -> Replay:
    """a x* b: x can be ignored, and is counted by its twin."""
    return Replay(
        over_letters(
            [("q0", "q1", is_letter("a")), ("q1", "q1", is_letter("x"), None, IGNORE), ("q1", "q2", is_letter("b"))],
            ["q2"],
        ),
        **options,
    )


def row(letter: str, time: int, *key: Any, **more: Any) -> Row:
    return Row(key, time, {"x": letter}, **more)


def test_only_the_net_difference() -> None:
    replay = abc()
    changes = [replay.step(Insert(row(letter, time))) for letter, time in [("a", 1), ("b", 9), ("x", 5), ("y", 4)]]
    assert [difference(one) for one in changes] == [([], []), ([], [(0, 1)]), ([], []), ([(0, 1)], [])]
    assert difference(replay.step(Retract(row("x", 5)))) == ([], [])
    assert difference(replay.step(Retract(row("y", 4)))) == ([], [(0, 1)])
    assert difference(replay.step(Revise(row("b", 9), row("c", 9)))) == ([(0, 1)], [])
    # The revised event keeps its row; rows are counted over retractions too.
    assert difference(replay.step(Revise(row("c", 9), row("b", 9)))) == ([], [(0, 1)])
    assert difference(replay.step(Insert(row("a", 8)))) == ([(0, 1)], [(10, 1)])


def test_order_of_a_change() -> None:
    afa = over_letters(
        [("q0", "q1"), ("q1", "q1", None, {"n": "1"}), ("q1", "q1", None, {"n": "-1"})], ["q1"], n=(INT, 0)
    )
    replay = Replay(afa, window=3)
    for time in (4, 3, 2):
        change = replay.step(Insert(row("a", time)))
    assert difference(change) == (
        [], [(2, 2, 0), (2, 1, -1), (2, 1, 1), (2, 0, -1), (2, 0, 1)],
    )  # fmt: skip


def test_late_rows() -> None:
    steps = [row("a", 1), row("b", 3)]
    strict, lenient = abc(), abc(late="drop")
    for replay in (strict, lenient):
        for one in steps:
            replay.step(Insert(one))
        replay.step(Punctuate(3))
        with pytest.raises(DataError, match="a punctuation goes back from 3 to 2"):
            replay.step(Punctuate(2))
        # At the punctuation is on time.
        assert difference(replay.step(Revise(row("b", 3), row("b", 3)))) == ([], [])
    late: list[Step] = [
        Insert(row("y", 2)), Retract(row("a", 1)), Retract(row("b", 4)), Revise(row("a", 1), row("y", 1)),
    ]  # fmt: skip
    for step in late:
        assert lenient.step(step) == Change()
        rows = strict.rows
        with pytest.raises(DataError, match=r"below the punctuation|not there"):
            strict.step(step)
        assert strict.rows == rows
        assert len(strict.events) == 2
    assert (lenient.rows, len(lenient.late_rows), len(lenient.events)) == (9, 5, 2)
    # A revision of what is not there is an insertion like any other.
    assert difference(lenient.step(Revise(row("z", 4), row("z", 4)))) == ([], [])
    assert [event.row for event in lenient.events] == [0, 1, 10]


def test_which_event_is_retracted() -> None:
    """Sequences tell, or else payloads; the same payload: the last that arrived. A NULL in the key: no substream, nothing to find."""
    replay = abc(sequenced=True)
    for one in (row("a", 1, sequence=1), row("b", 1, sequence=3), row("b", 1, sequence=2)):
        replay.step(Insert(one))
    assert short(replay.current) == [(0, 2)]
    assert difference(replay.step(Retract(row("?", 1, sequence=2)))) == ([(0, 2)], [(0, 1)])
    plain = abc()
    for one in (row("a", 1), row("b", 1), row("b", 1), row("x", 1)):
        plain.step(Insert(one))
    plain.step(Retract(row("b", 1)))
    assert [event.row for event in plain.events] == [0, 1, 3]
    with pytest.raises(DataError, match="not there"):
        plain.step(Retract(row("z", 1)))
    assert plain.step(Retract(row("z", 1, None))) == Change()


def test_arcs_by_default() -> None:
    """The times that were given to arcs are recorded: another arrival order with the same arcs gives the same output."""
    replay = abc()
    replay.step(AddArc(Arc("more", "q1", "q2", fence("e.x = 'c'", replay.afa.scope))))  # nothing seen: always
    replay.step(Insert(row("a", 3)))
    replay.step(RetireArc("more"))
    replay.step(Punctuate(5))
    replay.step(AddArc(Arc("then", "q1", "q2", fence("e.x = 'c'", replay.afa.scope))))
    assert [(arc.id, arc.since, arc.until) for arc in replay.afa.arcs[3:]] == [("more", None, 4), ("then", 6, None)]
    assert difference(replay.step(Insert(row("c", 5)))) == ([], [])
    assert difference(replay.step(Revise(row("c", 5), row("x", 5)))) == ([], [])
    assert difference(replay.step(Insert(row("c", 6)))) == ([], [(0, 4)])
    with pytest.raises(OptionError, match="there is an arc 'then' already"):
        replay.step(AddArc(Arc("then", "q1", "q2")))
    replay.step(AddArc(Arc("more", "q1", "q2")))  # the id of a retired arc is free
    assert [(arc.since, arc.until) for arc in replay.afa.arcs if arc.id == "more"] == [(None, 4), (7, None)]
    with pytest.raises(OptionError, match="there is no arc 'less'"):
        replay.step(RetireArc("less"))


def test_arcs_with_lifetimes() -> None:
    replay = abc(dynamic="explicit")
    for one in (row("a", 1), row("c", 2), row("a", 3), row("c", 4), row("a", 5), row("c", 6)):
        replay.step(Insert(one))
    arc = Arc("more", "q1", "q2", fence("e.x = 'c'", replay.afa.scope), since=2, until=6)
    assert difference(replay.step(AddArc(arc))) == ([], [(0, 1), (2, 3)])
    assert difference(replay.step(RetireArc("more", 4))) == ([(2, 3)], [])
    replay.step(Punctuate(7))
    assert replay.punctuation is None
    replay.step(PunctuateArcs(3))
    assert replay.punctuation == 3
    assert difference(replay.step(AddArc(replace(arc, id="again", since=4)))) == ([], [(2, 3)])
    with pytest.raises(DataError, match="before the punctuation of arcs, 3"):
        replay.step(RetireArc("again", 2))
    assert difference(replay.step(RetireArc("again"))) == ([(2, 3)], [])
    with pytest.raises(OptionError, match="there is no arc 'again'"):
        replay.step(RetireArc("again", 9))
    with pytest.raises(DataError, match="before the punctuation of arcs, 3"):
        replay.step(RetireArc("more"))
    with pytest.raises(DataError, match="goes back from 3 to 2"):
        replay.step(PunctuateArcs(2))


def test_any_arrival_order() -> None:
    """The differences add up to the definition, whatever the order."""
    afa = over_letters(
        [("q0", "q1", is_letter("a"), {"n": "1"}), ("q1", "q1", "e.x >= 'b'", {"n": "(r.n + 1) % 3"}),
         ("q1", "q2", is_letter("b"))], ["q2"], n=(INT, 0),
    )  # fmt: skip
    rows = [
        row(letter, time, sequence=i) for i, (letter, time) in enumerate(zip("abcba", [1, 2, 2, 4, 5], strict=True))
    ]
    finals = set()
    for order in itertools.permutations(range(len(rows))):
        replay = Replay(afa, window=4, sequenced=True)
        total = Counter[Output]()
        for i in order:
            change = replay.step(Insert(rows[i]))
            total.update(change.inserted)
            total.subtract(change.retracted)
        assert +total == Counter(outputs(replay.afa, replay.events)) == replay.current
        assert min(total.values()) >= 0
        finals.add(frozenset((order[one.first], order[one.last], one.register, one.le, one.re) for one in +total))
    assert finals == {frozenset({(0, 1, (1,), 2, 5), (0, 3, (0,), 4, 5)})}
