"""Every operator is speculation-friendly (FFP paper, section 3.3), and forgets what definite punctuations let it forget.

S1: a speculative punctuation comes out, no later than it went in nor than what the other inputs have promised, and it holds if
the one that went in does. S2: data that comes out does not depend on punctuations. S3: nothing that comes out begins before what
made it.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, plan, stream
from stretto.dataflow.operators.aggregate import Aggregator
from stretto.dataflow.operators.compute import Compute
from stretto.dataflow.operators.difference import Subtractor
from stretto.dataflow.operators.join import Joiner
from stretto.dataflow.operators.lifetime import Alter
from stretto.dataflow.operators.operator import Operator, Pass
from stretto.dataflow.operators.recognize import Recognizer
from stretto.dataflow.operators.reduce import Reduce
from stretto.dataflow.run.code import Program
from stretto.dataflow.run.fixpoint import FlyingFixpoint
from stretto.dataflow.run.rows import LEVEL, NEVER, PAYLOAD, VE, VS, WEIGHT, Rows
from stretto.dataflow.run.values import Strings
from stretto.dataflow.run.vertex import Data, Definite, External, Message, Speculative, Vertex
from stretto.errors import LimitError, OptionError
from stretto.times import FOREVER
from tests.conftest import cases

A, B = PAYLOAD, PAYLOAD + 1
ROW = {"a": pa.int64(), "b": pa.int64()}
MODES = ("hybrid", "probing", "hwm")


def keys(*words: int) -> Rows:
    return np.array(words, np.int64)


def compute(*steps: tuple[str, Any]) -> Operator:
    made = stream("s", ROW)
    for method, given in steps:
        made = getattr(made, method)(given) if method == "where" else made.project(**given)
    nodes: list[plan.Node] = []
    node = made.node
    while isinstance(node, plan.Where | plan.Project):
        nodes.insert(0, node)
        node = node.input
    return Compute("Compute", Program(ROW, nodes, Strings()))


def recognizer(pattern: Any, kind: str) -> Operator:
    node = stream("s", {"a": int, kind: int if kind == "b" else str}).recognize(pattern).node
    assert isinstance(node, plan.Recognize)
    strings = Strings()
    strings.load("EFGH")  # so that the numbers of the rows are types
    return Recognizer(node, strings)


def ascending() -> stretto.AFA:
    """Two events, the second with the same a and a greater b, within 10."""
    afa = stretto.AFA(ROW, register={"a": int, "b": int}, start="0", window=10)
    afa.arc("0", "1", then="(e.a, e.b)")
    afa.ignore("1")
    afa.arc("1", "2", when="e.a = r.a AND e.b > r.b", then="(r.a, e.b)")
    return afa.final("2")


ITEMS = (
    plan.Item("many", "count"),
    plan.Item("total", "sum", "b"),
    plan.Item("least", "min", "b"),
    plan.Item("most", "max", "b"),
    plan.Item("mean", "avg", "b"),
)

#: By name: the operator, and whether it keeps rows.
OPERATORS: dict[str, Callable[[], Operator]] = {
    "source": lambda: Pass("Source s", 1, PAYLOAD + 2),
    "select": lambda: compute(("where", "b > a")),
    "project": lambda: compute(("project", {"a": "b", "b": "a + b"})),
    "select and project": lambda: compute(("project", {"a": "b", "b": "a + b"}), ("where", "b != 3")),
    "join": lambda: Joiner("Join", (PAYLOAD + 2, PAYLOAD + 2), (keys(A), keys(A)), keys(B)),
    "product": lambda: Joiner("Join", (PAYLOAD + 2, PAYLOAD + 2), (keys(), keys()), keys(A, B)),
    "union": lambda: Pass("Union", 3, PAYLOAD + 2),
    "aggregate": lambda: Aggregator("Aggregate", ROW, ("a",), ITEMS),
    "aggregate of all": lambda: Aggregator("Aggregate", ROW, (), ITEMS),
    "distinct": lambda: Reduce("Distinct", 2),
    "difference": lambda: Subtractor("Difference", PAYLOAD + 2, (keys(A), keys(A))),
}

#: Those that stand outside of loops only.
OUTSIDE: dict[str, Callable[[], Operator]] = {
    "lifetime": lambda: Alter("AlterLifetime", PAYLOAD + 2, [(5, None)]),
    "hopping lifetime": lambda: Alter("AlterLifetime", PAYLOAD + 2, [(6, 4)]),
    "recognize an automaton": lambda: recognizer(ascending(), "b"),
    "recognize a query": lambda: recognizer(
        "SELECT * FROM S WHERE E AS x; F AS y PARTITION BY [a] WITHIN 10 [vs]", "type"
    ),
}


# ---- What goes in


class Sink:
    """Collects what comes out, inside the loop or outside."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def accept(self, port: int, message: Message) -> None:
        if not isinstance(message, Data) or len(message.rows):
            self.messages.append(message)

    def rows(self) -> list[list[int]]:
        return [row for message in self.messages if isinstance(message, Data) for row in message.rows.tolist()]

    def times(self, kind: type) -> list[int]:
        return [message.time for message in self.messages if isinstance(message, kind)]  # type: ignore[union-attr]


class Bench(NamedTuple):
    """An operator with one of its ports on a loop."""

    vertex: Vertex
    inside: Sink
    outside: Sink


def bench(operator: Operator, looped: set[int], mode: str = "hybrid") -> Bench:
    vertex = Vertex(0, operator)
    if looped:
        vertex.loop = FlyingFixpoint("loop", mode, by_level=False)
        vertex.loop.flying = True  # it does not begin to speculate by itself
        vertex.looped = set(looped)
    inside, outside = Sink(), Sink()
    vertex.out.inside.append((inside, 0))  # type: ignore[arg-type]
    vertex.out.outside.append((outside, 0))  # type: ignore[arg-type]
    return Bench(vertex, inside, outside)


def hand(to: Bench, port: int, message: Message) -> None:
    to.vertex.accept(port, message)
    while to.vertex.waits:
        to.vertex.step()


def row(vs: int, ve: int, a: int, b: int, weight: int = 1, level: int = 0) -> list[int]:
    made = [0] * (PAYLOAD + 2)
    made[VS], made[VE], made[WEIGHT], made[LEVEL], made[A], made[B] = vs, ve, weight, level, a, b
    return made


def batch(*rows: list[int]) -> Rows:
    return np.array(rows, np.int64).reshape(-1, PAYLOAD + 2)


class Feed:
    """Random changes of one port, never below its punctuation; negative ones take away what is there."""

    def __init__(self, choose: random.Random, *, levels: bool = False) -> None:
        self.choose = choose
        self.definite = 0
        self.there: list[list[int]] = []
        self.levels = levels

    def rows(self, least: int, *, retract: bool = True) -> Rows:
        choose = self.choose
        made = []
        for _ in range(choose.randint(1, 4)):
            if retract and self.there and choose.random() < 0.4:
                one = self.there.pop(choose.randrange(len(self.there)))
                since = max(one[VS], least)
                if since < one[VE]:
                    made.append([since, *one[1:WEIGHT], -1, *one[LEVEL:]])
                continue
            vs = least + choose.randint(0, 8)
            ve = choose.choice((FOREVER, vs + choose.randint(1, 9)))
            level = choose.choice((0, 0, 1, 2)) if self.levels else 0
            one = row(vs, ve, choose.randint(0, 2), choose.randint(0, 3), level=level)
            self.there.append(one)
            made.append(one)
        return batch(*made)


def meaning(rows: list[list[int]]) -> Counter[tuple[int, ...]]:
    """A stream as what changes at each time and level: independent of how intervals are cut."""
    found: Counter[tuple[int, ...]] = Counter()
    for one in rows:
        found[(one[VS], *one[LEVEL:])] += one[WEIGHT]
        found[(one[VE], *one[LEVEL:])] -= one[WEIGHT]
    return Counter({key: count for key, count in found.items() if count})


def loops_of(operator: Operator) -> Iterator[set[int]]:
    """Which of its ports may lie on a loop: one of them, or all."""
    if isinstance(operator, Subtractor):
        yield {0}
    elif isinstance(operator, Joiner):
        yield from ({0}, {1}, {0, 1})
    elif operator.ports == 1:
        yield {0}
    else:
        yield from ({0}, {1, 2})


PLACED = [(name, looped) for name, made in OPERATORS.items() for looped in loops_of(made())]


# ---- S1


@pytest.mark.parametrize(("name", "looped"), PLACED, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_speculates_correctly(name: str, looped: set[int], mode: str) -> None:
    """S1, over random changes and punctuations of the inputs."""
    for seed in range(cases(25)):
        choose = random.Random(seed)
        one = bench(OPERATORS[name](), looped, mode)
        ports = range(one.vertex.operator.ports)
        outer = [port for port in ports if port not in looped]
        feeds = {port: Feed(choose, levels=port in looped) for port in ports}
        for port in ports:
            hand(one, port, Definite(0))
        promise: int | None = None  # what came out, while what went in holds
        guess = 0
        waiting = False
        for _ in range(30):
            port = choose.choice(ports)
            action = choose.random()
            external = min((feeds[other].definite for other in outer), default=FOREVER)
            if action < 0.55:
                least = max(feeds[port].definite, guess if port in looped else 0)
                before = len(one.inside.rows())
                hand(one, port, Data(feeds[port].rows(least)))
                if promise is not None:
                    late = [made for made in one.inside.rows()[before:] if made[VS] < promise]
                    assert not late, (seed, promise, late)
            elif action < 0.8:
                feeds[port].definite += choose.randint(1, 6)
                hand(one, port, Definite(feeds[port].definite))
            elif not waiting:
                guess = max(guess, *(feed.definite for feed in feeds.values())) + choose.choice((0, 1, 5, 30))
                for other in sorted(looped):
                    hand(one, other, Speculative(guess))
                waiting = True
            external = min((feeds[other].definite for other in outer), default=FOREVER)
            out = one.inside.times(Speculative)
            if waiting and (mode != "hwm" or external >= guess):
                assert len(out) == 1, (seed, "it comes out")
                assert out[0] == min(guess, external), (
                    seed,
                    "neither later than it went in nor than what others promise",
                )
                definite = max(one.inside.times(Definite), default=NEVER)
                assert out[0] >= min(guess, definite), (seed, "it does not back up")
                promise = out[0] if promise is None else max(promise, out[0])
                one.inside.messages[:] = [
                    message for message in one.inside.messages if not isinstance(message, Speculative)
                ]
                waiting = False
            else:
                assert not out, (seed, "lodged, or nothing was sent")
        assert not one.outside.times(Speculative), "speculative punctuations stay in their loop"


@pytest.mark.parametrize(("name", "looped"), PLACED, ids=str)
def test_definite_punctuations_hold(name: str, looped: set[int]) -> None:
    """The output's is the least of the inputs', comes at once, and nothing before it follows."""
    for seed in range(cases(20)):
        choose = random.Random(seed)
        one = bench(OPERATORS[name](), looped)
        feeds = [Feed(choose) for _ in range(one.vertex.operator.ports)]
        for _ in range(30):
            port = choose.randrange(len(feeds))
            if choose.random() < 0.6:
                before = len(one.outside.rows())
                hand(one, port, Data(feeds[port].rows(feeds[port].definite)))
                promised = max(one.outside.times(Definite), default=NEVER)
                assert all(made[VS] >= promised for made in one.outside.rows()[before:]), seed
            else:
                feeds[port].definite += choose.randint(1, 6)
                hand(one, port, Definite(feeds[port].definite))
                least = min(feed.definite for feed in feeds)
                assert max(one.outside.times(Definite), default=0) == least, seed


@pytest.mark.parametrize("mode", MODES)
def test_external_progress_is_told_by_ports_outside_the_loop(mode: str) -> None:
    """Hybrid hears of every definite punctuation from outside; the others only of the end of an input."""
    one = bench(OPERATORS["join"](), {1}, mode)
    hand(one, 0, Definite(3))
    hand(one, 1, Definite(2))
    hand(one, 0, Definite(FOREVER))
    told = [message for message in one.inside.messages if isinstance(message, External)]
    wanted = [External((0, 0), 3), External((0, 0), FOREVER)]
    assert told == (wanted if mode == "hybrid" else wanted[1:])
    assert not one.outside.times(External)


def test_a_union_waits_for_the_speculative_punctuation_at_all_its_looped_ports() -> None:
    one = bench(OPERATORS["union"](), {1, 2})
    hand(one, 0, Definite(7))
    hand(one, 1, Speculative(9))
    assert not one.inside.times(Speculative)
    hand(one, 2, Speculative(5))
    assert one.inside.times(Speculative) == [5]


def test_multicast_hands_everything_to_all_readers_inside_and_data_and_definite_ones_outside() -> None:
    one = bench(OPERATORS["source"](), {0})
    second = Sink()
    one.vertex.out.inside.append((second, 1))  # type: ignore[arg-type]
    hand(one, 0, Data(batch(row(1, 5, 0, 0, level=3))))
    hand(one, 0, Speculative(4))
    hand(one, 0, External((7, 0), 4))
    hand(one, 0, Definite(4))
    assert [type(message) for message in one.inside.messages] == [Data, Speculative, External, Definite]
    assert [type(message) for message in second.messages] == [Data, Speculative, External, Definite]
    assert [type(message) for message in one.outside.messages] == [Data, Definite]
    # Levels belong to the loop.
    assert [made[LEVEL] for made in one.inside.rows()] == [3]
    assert [made[LEVEL] for made in one.outside.rows()] == [0]


# ---- S2


def messages(operator: Operator, choose: random.Random) -> list[tuple[int, Message]]:
    """Random changes with punctuations that hold."""
    feeds = [Feed(choose, levels=isinstance(operator, Reduce)) for _ in range(operator.ports)]
    made: list[tuple[int, Message]] = []
    for _ in range(25):
        port = choose.randrange(len(feeds))
        if choose.random() < 0.3:
            feeds[port].definite += choose.randint(0, 6)
            made.append((port, Definite(feeds[port].definite)))
        made.append((port, Data(feeds[port].rows(feeds[port].definite))))
    return made


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
def test_groups_that_grow_by_few_rows_come_to_the_same(kind: pa.DataType) -> None:
    """Mostly behind the last step of their group, which is not seen again then; with what takes it back, is late, or ends."""
    for seed in range(cases(60)):
        choose = random.Random(seed)
        schema = {"a": pa.int64(), "b": kind}
        items = tuple(choose.sample(ITEMS, 3))
        few, once = (Aggregator("Aggregate", schema, ("a",), items) for _ in range(2))
        made: list[Rows] = []
        there: list[list[int]] = []
        found: list[list[int]] = []
        now = 0
        for _ in range(40):
            rows = []
            for _ in range(choose.randint(1, 5)):
                now += choose.randint(0, 2)
                if there and choose.random() < 0.05:
                    one = there.pop(choose.randrange(len(there)))
                    rows.append([max(now, one[VS]), *one[1:WEIGHT], -one[WEIGHT], *one[LEVEL:]])
                    continue
                value: float = choose.choice((choose.randint(-4, 4), 10**9))
                if kind == pa.float64():
                    value /= choose.choice((1, 3, 1e-300))
                    value = int(np.float64(choose.choice((value, value, math.inf))).view(np.int64))
                begin = now - (choose.randint(0, 5) if choose.random() < 0.02 else 0)
                one = row(begin, FOREVER, choose.randint(0, 1), int(value))
                if choose.random() < 0.05:
                    one[VE] = begin + choose.randint(1, 4)
                else:
                    there.append(one)
                rows.append(one)
            made.append(batch(*rows))
            found += few.receive(0, made[-1]).tolist()
            if choose.random() < 0.1:
                few.definite[0] = now - 6
                few.forget()
        assert meaning(found) == meaning(once.receive(0, np.concatenate(made)).tolist()), f"seed {seed}"


@pytest.mark.parametrize("name", OPERATORS)
def test_does_not_block_on_definite_punctuation(name: str) -> None:
    """S2: the same changes with all punctuations, with half of them, and with none give the same stream, and as early."""
    for seed in range(cases(30)):
        choose = random.Random(seed)
        every = messages(OPERATORS[name](), choose)
        streams = []
        for kept in (1.0, 0.5, 0.0):
            one = bench(OPERATORS[name](), set())
            seen = []
            for port, message in every:
                if isinstance(message, Definite) and choose.random() >= kept:
                    continue
                hand(one, port, Data(message.rows.copy()) if isinstance(message, Data) else message)
                if isinstance(message, Data):
                    seen.append(meaning(one.outside.rows()))
            streams.append(seen)
        assert streams[0] == streams[1] == streams[2], seed


@pytest.mark.parametrize("name", ["lifetime", "hopping lifetime", "recognize an automaton"])
def test_outside_of_loops_nothing_blocks_but_queries(name: str) -> None:
    """Without cleaning up, an automaton gives each match as soon as its last event is there."""
    with_, without = bench(OUTSIDE[name](), set()), bench(OUTSIDE[name](), set())
    for time in range(12):
        rows = batch(row(2 * time, FOREVER, time % 2, time), row(2 * time + 1, FOREVER, time % 2, time))
        for one in (with_, without):
            hand(one, 0, Data(rows.copy()))
        hand(with_, 0, Definite(2 * time + 2))
        assert meaning(with_.outside.rows()) == meaning(without.outside.rows())
    assert len(with_.outside.rows()) > 5


def test_recognizing_a_query_blocks_and_is_refused_in_loops() -> None:
    """Engines of CEQL and SASE+ want events in order: here the punctuation lets them out."""
    one = bench(OUTSIDE["recognize a query"](), set())
    hand(one, 0, Data(batch(row(4, FOREVER, 1, 1), row(1, FOREVER, 1, 0))))
    assert not one.outside.rows()
    hand(one, 0, Definite(4))
    assert not one.outside.rows()
    hand(one, 0, Definite(5))
    assert [made[VS] for made in one.outside.rows()] == [4]
    events = stream("s", ROW)
    looped = stretto.dataflow.fixpoint(
        lambda r: events.union(r.recognize(ascending()).project("a", "b")), ROW, name="r"
    )
    with pytest.raises(OptionError, match=r"the loop 'r' goes through Recognize AFA: a matcher looks back in time"):
        Dataflow(r=looped)


@pytest.mark.parametrize("name", ["recognize an automaton", "recognize a query"])
def test_events_that_occur_too_often_for_a_matcher_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matcher takes some times the memory of the rows: what is not there is told before."""
    monkeypatch.setattr("stretto.dataflow.run.rows.available", lambda: 128 << 20)
    one = bench(OUTSIDE[name](), set())

    def read() -> None:
        hand(one, 0, Data(batch(row(1, FOREVER, 0, 0, weight=300_000))))
        hand(one, 0, Definite(5))

    with pytest.raises(LimitError, match=r"1 rows occur 300,000 times together"):
        read()


# ---- S3


@pytest.mark.parametrize("name", [*OPERATORS, *OUTSIDE])
def test_is_forward_moving(name: str) -> None:
    """S3: what a batch makes does not begin before the batch does."""
    made = {**OPERATORS, **OUTSIDE}[name]
    for seed in range(cases(25)):
        choose = random.Random(seed)
        one = bench(made(), set())
        plain = name in OUTSIDE
        feeds = [Feed(choose, levels=not plain) for _ in range(one.vertex.operator.ports)]
        for _ in range(15):
            port = choose.randrange(len(feeds))
            rows = feeds[port].rows(choose.randint(0, 10), retract=not plain)
            if not len(rows):
                continue
            if plain:
                rows[:, VE] = FOREVER
                rows[:, VS] += feeds[port].definite
            before = len(one.outside.rows())
            hand(one, port, Data(rows.copy()))
            if name == "recognize a query":
                feeds[port].definite += 30
                hand(one, port, Definite(feeds[port].definite))
            new = one.outside.rows()[before:]
            assert all(fresh[VS] >= int(rows[:, VS].min()) for fresh in new), seed


# ---- State


def rounds(name: str, count: int, *, punctuated: bool) -> list[int]:
    """The rows held after each round of 20 short events at every port."""
    choose = random.Random(3)
    one = bench({**OPERATORS, **OUTSIDE}[name](), set())
    held = []
    for time in range(0, 10 * count, 10):
        for port in range(one.vertex.operator.ports):
            rows = [
                row(vs := time + choose.randint(0, 9), vs + choose.randint(1, 20), choose.randint(0, 9), 1)
                for _ in range(20)
            ]
            hand(one, port, Data(batch(*rows)))
            if punctuated:
                hand(one, port, Definite(time + 10))
        held.append(one.vertex.operator.held)
    return held


KEEPS = ("join", "product", "aggregate", "aggregate of all", "distinct", "difference")


@pytest.mark.parametrize("name", KEEPS)
def test_state_is_purged(name: str) -> None:
    """With punctuations an operator holds no more after 100 rounds than after 20; without them all of it."""
    held = rounds(name, 100, punctuated=True)
    assert max(held[20:]) <= 1.5 * max(held[5:20]), held
    assert max(held) <= 600
    assert rounds(name, 15, punctuated=False)[-1] >= 15 * 20


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in KEEPS] + ["lifetime", "hopping lifetime"])
def test_the_others_hold_nothing(name: str) -> None:
    assert set(rounds(name, 5, punctuated=False)) == {0}


def test_a_query_keeps_events_only_until_their_punctuation() -> None:
    assert set(rounds("recognize a query", 4, punctuated=True)) == {0}
    assert rounds("recognize a query", 4, punctuated=False) == [20, 40, 60, 80]


@pytest.mark.parametrize("name", KEEPS)
def test_rows_that_are_taken_back_are_forgotten(name: str) -> None:
    """Unbounded events that come and go leave nothing, though none of them has ended."""
    one = bench(OPERATORS[name](), set())
    held = []
    for time in range(0, 600, 10):
        for port in range(one.vertex.operator.ports):
            rows = [row(time, FOREVER, at % 5, at % 3) for at in range(10)]
            gone = [row(time + 5, FOREVER, at % 5, at % 3, weight=-1) for at in range(10)]
            hand(one, port, Data(batch(*rows)))
            hand(one, port, Data(batch(*gone)))
            hand(one, port, Definite(time + 10))
        held.append(one.vertex.operator.held)
    assert max(held[20:]) <= 1.5 * max(held[5:20]), held


# ---- The same in a plan: memory is flat


@pytest.mark.parametrize("speculation", MODES)
def test_a_plan_of_all_operators_holds_no_more_after_many_rounds(speculation: str) -> None:
    left = stream("left", ROW)
    right = stream("right", ROW).window(12)
    loop = stretto.dataflow.fixpoint(
        lambda r: left.union(r.join(right, on={"b": "a"}).project("a", b="b_right")).distinct(), ROW, name="loop"
    )
    flow = Dataflow(
        speculation=speculation,
        loop=loop,
        counted=loop.aggregate("a", many="count()", most="max(b)"),
        rest=left.difference(right, on="a"),
        found=right.recognize(ascending()),
    )
    choose = random.Random(8)
    held: list[int] = []
    kept: list[int] = []
    for time in range(0, 1200, 10):
        for name in ("left", "right"):
            events = [
                {
                    "a": choose.randint(0, 12),
                    "b": choose.randint(0, 12),
                    "vs": (vs := time + choose.randint(0, 9)),
                    "ve": vs + 9,
                }
                for _ in range(8)
            ]
            flow.push(name, events, punctuation=time + 10)
        flow.run_until_idle()
        for name in ("loop", "counted", "rest", "found"):
            flow.output(name)
        held.append(sum(flow.stats["held"].values()))
        kept.append(flow.stats["bytes"])
    assert max(held[60:]) <= 1.5 * max(held[10:60]), held
    assert max(kept[60:]) <= 2 * max(kept[10:60]), kept
