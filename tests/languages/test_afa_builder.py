"""``stretto.AFA`` and patterns of ``stretto.element``: what they make, and what they refuse."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stretto
from stretto.errors import DataError, LimitError, OptionError, QueryError
from stretto.languages.afa.builder import make_arc
from stretto.languages.afa.elements import Steps, positions_of
from stretto.query.afa import Afa, Emit, Kind
from stretto.query.evaluate import holds
from tests.conftest import cases
from tests.reference.afa import Event, outputs


class Count(NamedTuple):
    n: int
    low: float = 1.5
    tag: str = "x"
    ok: bool = True
    at: dt.datetime = dt.datetime(2020, 1, 1)


def small(**options: Any) -> stretto.AFA:
    return stretto.AFA({"change": float, "kind": str}, {"n": int}, **options)


# ---- Schemas


def test_schemas() -> None:
    afa = (
        stretto.AFA({"a": int, "b": "float", "c": pa.int8(), "t": dt.datetime}, Count)
        .arc("q0", "q1")
        .final("q1")
        .frozen
    )
    assert dict(afa.events) == {"a": pa.int64(), "b": pa.float32(), "c": pa.int8(), "t": pa.timestamp("us")}
    assert dict(afa.register) == {
        "n": pa.int64(),
        "low": pa.float64(),
        "tag": pa.string(),
        "ok": pa.bool_(),
        "at": pa.timestamp("us"),
    }
    assert afa.initial == (0, 1.5, "x", True, dt.datetime(2020, 1, 1))


def test_events_in_any_form() -> None:
    for events in ([{"a": 1}], pa.schema({"a": pa.int64()}), pa.table({"a": [1]}), stretto.Schema({"a": pa.int64()})):
        assert dict(stretto.AFA(events).arc("q0", "q1").final("q1").frozen.events) == {"a": pa.int64()}


def test_fields_are_kept_in_the_widest_type() -> None:
    kinds = {"a": pa.int8(), "b": pa.float32(), "c": pa.large_string(), "d": pa.dictionary(pa.int8(), pa.string())}
    afa = stretto.AFA({}, kinds).arc("q0", "q1").final("q1").frozen
    assert list(afa.register.values()) == [pa.int64(), pa.float64(), pa.string(), pa.string()]
    assert afa.initial == (0, 0.0, "", "")


@pytest.mark.parametrize(
    ("initial", "first"),
    [
        (None, (0, 1.5)),
        ({"n": 3}, (3, 1.5)),
        ((4, 2), (4, 2.0)),
        ([5, 2.5], (5, 2.5)),
        (Count(6, 3.0)[:2], (6, 3.0)),
    ],
)
def test_first_values(initial: Any, first: tuple[Any, ...]) -> None:
    class Two(NamedTuple):
        n: int
        low: float = 1.5

    made = stretto.AFA({}, register=_with_types(Two), initial=initial).arc("q0", "q1").final("q1").frozen
    assert made.initial == first
    assert [type(one) for one in made.initial] == [int, float]


def _with_types(made: Any) -> Any:
    made.__annotations__ = {"n": int, "low": float}
    return made


class Untyped(NamedTuple):
    n: "Missing"  # type: ignore[name-defined] # noqa: F821, UP037


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"register": {"n": "date32"}}, r"field 'n' cannot be date32\[day\]: use a timestamp"),
        ({"register": {"n": pa.decimal128(9, 2)}}, r"field 'n' cannot be decimal128\(9, 2\): use float"),
        ({"register": {"n": bytes}}, "field 'n' cannot be binary: use int, float, bool, str or a timestamp"),
        ({"register": {"n": list}}, "'n': <class 'list'> is not an Arrow type"),
        ({"register": Untyped}, "the types of Untyped are not known: name 'Missing' is not defined"),
        ({"initial": {"m": 1}}, r"the register has no field 'm'; known fields: n"),
        ({"initial": (1, 2)}, r"initial= has 2 values, and the register 1 fields \(n\)"),
        ({"initial": 3}, "initial= takes a dict or a tuple, not int"),
        ({"initial": {"n": 1.5}}, r"'n' \(int64\) cannot begin as 1.5"),
        ({"initial": {"n": True}}, "cannot begin as True"),
        ({"initial": {"n": 1 << 63}}, "cannot begin as 9223372036854775808"),
        ({"register": {"t": pa.timestamp("us")}, "initial": {"t": dt.datetime.now(dt.UTC)}}, "'t'.* cannot begin as"),
        (
            {"register": {"t": pa.timestamp("s")}, "initial": {"t": dt.datetime(2020, 1, 1, 0, 0, 0, 5)}},
            "'t'.* cannot begin as",
        ),
        ({"register": {"x": float}, "initial": (10**400,)}, "'x'.* cannot begin as a value so great"),
        ({"register": {"t": pa.timestamp("ns")}, "initial": (dt.datetime(9999, 1, 1),)}, "'t'.* a value so great"),
        ({"start": ""}, "a state is named by a text, not by ''"),
        ({"window": 0}, "window=0: nothing lives that long"),
        ({"window": dt.timedelta(-1)}, "nothing lives that long"),
        ({"window": 1.5}, "window=1.5: expected ticks as an integer, a text such as '10 seconds', or a timedelta"),
        ({"window": True}, "window=True: expected ticks"),
        ({"partition_by": "knd"}, r"there is no attribute 'knd'; did you mean 'kind'\?"),
        ({"partition_by": ("kind", "kind")}, "partition_by names 'kind' twice"),
        ({"partition_by": "all"}, r"partition_by: cannot partition by 'all' \(list<"),
    ],
)
def test_automata_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        stretto.AFA({"kind": str, "all": pa.list_(pa.int64())}, **({"register": {"n": int}} | options))


def test_what_is_no_schema() -> None:
    with pytest.raises(DataError, match="cannot read events from int"):
        stretto.AFA(3)


@pytest.mark.parametrize(
    ("window", "read"),
    [(None, None), (10, 10), ("10 seconds", dt.timedelta(seconds=10)), (dt.timedelta(1), dt.timedelta(1)), ("7", 7)],
)
def test_windows(window: Any, read: Any) -> None:
    assert small(window=window).arc("q0", "q1").final("q1").frozen.window == read


# ---- Arcs and states


def test_the_automaton_as_a_value() -> None:
    afa = small(start="s", partition_by="kind")
    assert afa.arc("s", "t", when="e.change > 0", then="n = r.n + 1") is afa
    made = afa.epsilon("t", "u", id="x").ignore("t", when="e.change = 0").final("u", emit="on_enter").frozen
    assert isinstance(made, Afa)
    assert made.states == ("s", "t", "u")
    assert [(arc.id, arc.source, arc.target, arc.kind) for arc in made.arcs] == [
        ("a0", "s", "t", Kind.CONSUME),
        ("x", "t", "u", Kind.EPSILON),
        ("a2", "t", "t", Kind.IGNORE),
    ]
    assert dict(made.finals) == {"u": Emit.ON_ENTER}
    assert made.partition_by == ("kind",)
    assert str(made.arc("a0").when) == "e.change > 0.0"
    assert afa.arc("u", "s").frozen.arcs[-1].id == "a3"
    assert len(made.arcs) == 3  # what was frozen stays
    assert repr(afa) == "<stretto.AFA: 4 arcs>"


def test_ids_skip_those_that_are_taken() -> None:
    made = small().arc("q0", "q1", id="a1").arc("q1", "q2").arc("q2", "q3").final("q3").frozen
    assert [arc.id for arc in made.arcs] == ["a1", "a2", "a3"]


def test_a_final_state_twice() -> None:
    afa = small().arc("q0", "q1").final("q1").final("q1")
    with pytest.raises(OptionError, match="the state 'q1' is final already, with emit='every'"):
        afa.final("q1", emit="on_enter")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: small().arc("q0", "q1").frozen, "no state is final, so there is no output"),
        (lambda: small().arc("q0", "q1").final("q11").frozen, r"'q11' is never reached: did you mean 'q1'\?"),
        (lambda: small().arc("q0", "q1").final("end").frozen, "'end' is never reached by any arc"),
        (lambda: small().arc("q0", "q1").final("q0").frozen, "'q0' is never reached by any arc"),
        (
            lambda: small().arc("q0", "q1").final("q1").ignore("q2").frozen,
            "the arc 'a1' ignores events in 'q2', which is never reached by any arc",
        ),
        (
            lambda: small().arc("s", "q1").arc("q1", "q2").final("q2").frozen,
            r"no arc leaves the start state 'q0', so that nothing ever begins: did you mean AFA\(…, start='s'\)\?",
        ),
        (
            lambda: small().arc("q0", "q1").arc("q2", "q3").final("q3").frozen,
            "no path leads from the start state 'q0' to the final state 'q3': computations reach 'q1' only, and it is reached from "
            "'q2' only",
        ),
        (
            lambda: small().epsilon("q0", "q1").final("q1").frozen,
            "only ε-arcs leave the start state 'q0', and no event is ever consumed",
        ),
        (lambda: small().ignore("q0"), "an ignorable arc on the start state 'q0' would begin a match at every event"),
        (lambda: small().arc("q0", "q1", id="x").arc("q1", "q2", id="x"), "there is an arc 'x' already: q0 -> q1  x"),
        (lambda: small().arc("q0", "q1", id=""), "an arc's id is a text, not ''"),
        (lambda: small().arc("q0", ""), "a state is named by a text"),
        (lambda: small().arc("q0", "q1", when=3), r"when= takes a condition as text, a Python function \(e, r\)"),
        (lambda: small().arc("q0", "q1", then=3), "then= takes a dict of expressions"),
        (
            lambda: stretto.AFA({}).arc("q0", "q1", then="n = 1"),
            "then= sets fields of the register, and there are none",
        ),
        (lambda: small().final("q1", emit="often"), "emit='often': expected 'every' or 'on_enter'"),
        (lambda: small().epsilon("q0", "q1", when=lambda e, r: e.change > 0), "an ε-arc consumes no event"),
        (lambda: small().arc("q0", "q1", when=lambda e, r: e.kind == "a"), "compare strings in a text"),
    ],
)
def test_arcs_that_are_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build()


def test_a_refused_arc_leaves_no_trace() -> None:
    afa = small().arc("q0", "q1").final("q1")
    before = afa.frozen
    for when in ("e.chnge > 0", lambda e, r: e.kind):
        with pytest.raises((QueryError, OptionError)):
            afa.arc("q1", "q2", when=when)
    with pytest.raises(QueryError):
        afa.pattern(stretto.element("e.change > 0", name="up") >> stretto.element("e.chnge > 0"))
    assert afa.frozen == before


def test_arcs_for_a_running_automaton() -> None:
    afa = small().arc("q0", "q1").final("q1").frozen
    arc = make_arc(afa, "q1", "q1", when="e.change > 0", id="x", kind="ignore", since=3, until=10)
    assert (arc.since, arc.until, arc.kind) == (3, 10, Kind.IGNORE)
    for options, message in (
        ({"kind": "ignored"}, "kind='ignored': expected 'consume', 'epsilon' or 'ignore'"),
        ({"kind": "ignore"}, "stays in its state, and this one leads from 'q1' to 'q2'"),
        ({"since": 1.5}, "since=1.5: an arc's lifetime is in ticks"),
        ({"until": True}, "until=True"),
        ({"since": 3, "until": 3}, "the arc 'x' would never be valid: since=3, until=3"),
    ):
        with pytest.raises(OptionError, match=message):
            make_arc(afa, "q1", "q2", id="x", **options)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="an ignorable arc keeps the register"):
        make_arc(afa, "q1", "q1", then="n = 3", id="x", kind="ignore")


# ---- Patterns

A, B, C = (stretto.element(f"e.kind = '{letter}'") for letter in "abc")


def test_patterns_as_text() -> None:
    assert (
        str(A >> (B | C).star() >> A.times(2))
        == "(e.kind = 'a') >> ((e.kind = 'b') | (e.kind = 'c'))* >> (e.kind = 'a'){2}"
    )
    named = stretto.element(name="x")
    assert str((named >> named | named).plus().optional()) == "(x >> x | x)+?"
    assert str(named.times(0, 3) >> named.times(2, None)) == "x{0,3} >> x{2,}"
    assert str(stretto.element()) == "(TRUE)"
    assert str(stretto.element(test_patterns_as_text)) == "(test_patterns_as_text)"


def test_chains_are_flat() -> None:
    pattern: Steps = A
    for _ in range(3_000):
        pattern = pattern >> B
    assert len(positions_of(pattern).steps) == 3_001


def test_names_of_states() -> None:
    up = stretto.element("e.change > 0", name="up")
    afa = small().arc("q0", "q2").pattern(A >> up >> B >> up, emit="on_enter").pattern(C >> up, prefix="p").final("q2")
    assert afa.frozen.states == ("q0", "q2", "q1", "up", "q3", "up2", "p1", "up3")
    assert dict(afa.frozen.finals) == {"up2": Emit.ON_ENTER, "up3": Emit.EVERY, "q2": Emit.EVERY}


def test_the_register_is_updated_at_each_element() -> None:
    down = stretto.element("e.change < 0", then="n = r.n + 1")
    up = stretto.element("e.change > 0", then=lambda e, r: (r.n - 1,))
    made = small().pattern(down.plus() >> up.plus(), ignore="e.change = 0").frozen
    assert {arc.target for arc in made.arcs if isinstance(arc.then, tuple)} == {"q1"}
    assert [arc.id for arc in made.arcs if arc.kind is Kind.IGNORE] == ["a4", "a5"]
    changes = [-1.0, 0.0, -2.0, 1.0, 0.0, 3.0]
    events = [
        Event(row, (), le=row, payload={"change": change, "kind": None}, re=100) for row, change in enumerate(changes)
    ]
    found = {(one.first, one.last, one.register) for one in outputs(made, events)}
    assert (0, 3, (1,)) in found
    assert (0, 5, (0,)) in found
    assert (2, 4, (0,)) in found


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: A.times(3, 2), r"times\(3, 2\): no such number of times"),
        (lambda: A.times(0), r"times\(0, 0\): no such number of times"),
        (lambda: A.times(-1), r"times\(-1, -1\): a number of times is an integer from 0 on"),
        (lambda: A.times(1.5), "a number of times is an integer"),  # type: ignore[arg-type]
        (lambda: A >> "e.kind = 'b'", "a pattern is joined with another one, not with str"),
        (lambda: A | None, "not with NoneType"),
        (lambda: stretto.element(name=""), "an element's name is a text, not ''"),
        (lambda: small().pattern("a b"), r"a pattern is made of stretto.element\(…\), not of str"),  # type: ignore[arg-type]
    ],
)
def test_patterns_that_are_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build()


def test_patterns_have_a_bound() -> None:
    optional: Steps = A
    for _ in range(200):
        optional = optional >> B.optional()
    for pattern in (A.times(200).times(100), optional):
        with pytest.raises(LimitError, match="more than 10,000 arcs: count in the register instead"):
            small().pattern(pattern)


# Patterns and the regular expressions that they are.
PATTERNS: st.SearchStrategy[tuple[Steps, str]] = st.recursive(
    st.sampled_from([(A, "a"), (B, "b"), (C, "c"), (stretto.element(), ".")]),
    lambda below: st.one_of(
        st.tuples(below, below).map(lambda pair: (pair[0][0] >> pair[1][0], f"(?:{pair[0][1]}{pair[1][1]})")),
        st.tuples(below, below).map(lambda pair: (pair[0][0] | pair[1][0], f"(?:{pair[0][1]}|{pair[1][1]})")),
        below.map(lambda one: (one[0].plus(), f"(?:{one[1]})+")),
        below.map(lambda one: (one[0].star(), f"(?:{one[1]})*")),
        below.map(lambda one: (one[0].optional(), f"(?:{one[1]})?")),
        st.tuples(below, st.integers(0, 2), st.integers(1, 2)).map(
            lambda one: (one[0][0].times(one[1], one[1] + one[2]), f"(?:{one[0][1]}){{{one[1]},{one[1] + one[2]}}}")
        ),
        st.tuples(below, st.integers(0, 2)).map(
            lambda one: (one[0][0].times(one[1], None), f"(?:{one[0][1]}){{{one[1]},}}")
        ),
    ),
    max_leaves=5,
)


def accepts(afa: Afa, text: str) -> bool:
    """Whether some computation takes the whole text to a final state."""
    states = {afa.start}
    for letter in text:
        event = {"e.kind": letter, "e.change": None}
        states = {
            arc.target
            for arc in afa.arcs
            if arc.source in states and (arc.when is None or holds(arc.when, event))  # type: ignore[arg-type]
        }
    return not states.isdisjoint(afa.finals)


@settings(max_examples=cases(300))
@given(PATTERNS, st.lists(st.text("abc", min_size=1, max_size=7), min_size=1, max_size=12))
def test_patterns_are_regular_expressions(pattern: tuple[Steps, str], texts: list[str]) -> None:
    steps, expression = pattern
    made = small().pattern(steps).frozen
    assert made.start not in {arc.target for arc in made.arcs}
    assert not any(arc.kind is Kind.EPSILON for arc in made.arcs)
    for text in texts:
        assert accepts(made, text) == (re.fullmatch(expression, text) is not None), (str(steps), text)
