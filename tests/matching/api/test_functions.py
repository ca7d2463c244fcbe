"""Functions of the user in conditions: compiled into the kernel, with the meaning that Python gives them, or refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.engines.programs import NfabProgram
from stretto.errors import OptionError, QueryError
from stretto.events import Schema
from stretto.query import functions
from stretto.query.passes.bind_sase import BoundSase
from tests.conftest import COMPILED
from tests.reference.sase import evaluate_sase


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(functions, "_KNOWN", {})
    yield
    functions._VERSION += 1


EVENTS = pa.table(
    {
        "type": list("AABAB"),
        "x": pa.array([1.0, None, 2.5, 4.0, 0.5]),
        "n": pa.array([1, 2, 3, 4, None], pa.int64()),
        "ok": pa.array([True, False, None, True, True]),
    }
)


def found(condition: str, pattern: str = "A a, B b") -> list[Any]:
    """Positions by the engine, which are those of the definition."""
    text = f"PATTERN SEQ({pattern}) WHERE skip_till_any_match {{ {condition} }}"
    bound = stretto.compile(text, Schema.of(EVENTS.schema)).bound
    assert isinstance(bound, BoundSase)
    expected = sorted(sorted(match.positions) for match in evaluate_sase(bound, EVENTS))
    got = sorted(stretto.match(text, EVENTS, output="positions").column("positions").to_pylist())
    assert got == expected
    return got


def test_numbers_and_truth_values() -> None:
    @stretto.function
    def near(a, b, most):  # type: ignore[no-untyped-def]
        return abs(a - b) <= most

    stretto.function(lambda n: n * 2, name="twice")
    stretto.function(lambda ok, n: n if ok else -n, name="signed")
    stretto.function(lambda x: math.sqrt(x) + math.exp(-x), name="bent")
    assert found("near(a.x, b.x, 2)") == [[0, 2], [0, 4]]
    assert found("near(a.x, b.x, 0.5) or twice(a.n) = 4") == [[0, 4], [1, 2], [1, 4]]
    assert found("twice(a.n) > b.n") == [[1, 2]]
    assert found("signed(a.ok, a.n) < 0") == [[1, 2], [1, 4]]
    assert found("bent(a.x) < bent(b.x)") == [[0, 2]]
    assert found("not near(a.x, b.x, 2)") == [[1, 2], [1, 4], [3, 4]]  # NULL is not near: NOT is plain negation


def test_in_every_place() -> None:
    stretto.function(lambda a, b: b >= a, name="grows")
    assert found("grows(a[i-1].n, a[i].n)", "A+ a[]") == [[0], [0, 1], [0, 1, 3], [0, 3], [1], [1, 3], [3]]
    assert found("grows(2, a[1].n)", "A+ a[]") == [[1], [1, 3], [3]]
    assert found("grows(3.0, sum(a[].n))", "A+ a[]") == [[0, 1], [0, 1, 3], [0, 3], [1, 3], [3]]
    assert found("grows(b.n, a[i].n)", "A+ a[], B b") == []
    assert found("grows(a[i].n, b.n)", "A+ a[], B b") == [[0, 1, 2], [0, 2], [1, 2]]


def test_a_name_that_is_registered_again() -> None:
    stretto.function(lambda a: a > 1, name="rule")
    assert found("rule(a.n)") == [[1, 2], [1, 4], [3, 4]]
    stretto.function(lambda a: a < 2, name="rule")
    assert found("rule(a.n)") == [[0, 2], [0, 4]]


def test_queries_that_differ_in_constants_share_the_code_that_calls_a_function() -> None:
    @stretto.function
    def beyond(a, b):  # type: ignore[no-untyped-def]
        return a > b

    conditions = [f"beyond(a.x + b.x, {least})" for least in (1.25, 2.5, 6.0)]
    assert [found(one) for one in conditions] == [[[0, 2], [0, 4], [3, 4]], [[0, 2], [3, 4]], []]
    programs = [
        stretto.compile(
            f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {one} }}", Schema.of(EVENTS.schema)
        ).program(valuations=False)
        for one in conditions
    ]
    assert len({id(one.theta) for one in programs if isinstance(one, NfabProgram)}) == 1


def raising(a: int) -> bool:
    if a > 3:
        raise ValueError(a)
    return True


@pytest.mark.parametrize(
    ("function", "name", "reason"),
    [
        (raising, None, "'raising' raises or asserts"),
        (lambda *a: True, "many", "plain parameters"),
        (lambda: True, "none", "plain parameters"),
        (lambda a: True, None, "cannot be called '<lambda>'"),
        (lambda a: True, "avg", "cannot be called 'avg'"),
        (math.sqrt, "root", "no Python function"),
    ],
)
def test_what_is_not_registered(function: Any, name: str | None, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        stretto.function(function, name=name)


def test_mistakes_in_calls() -> None:
    stretto.function(lambda a, b: a > b, name="above")
    schema = Schema.of(EVENTS.schema)

    def mistake(condition: str) -> str:
        with pytest.raises(QueryError) as error:
            stretto.compile(f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {condition} }}", schema)
        return str(error.value)

    assert "unknown function 'abov'" in mistake("abov(a.x, b.x)")
    assert "did you mean 'above'?" in mistake("abov(a.x, b.x)")
    assert "takes 2 arguments, not 3" in mistake("above(a.x, b.x, 3)")
    assert "takes numbers and truth values, not a.type (string)" in mistake("above(a.type, b.x)")
    assert "cannot compare a computed truth value" in mistake("above(a.x, b.x) > 'x'")
    with pytest.raises(QueryError, match="RETURN"):
        stretto.compile("PATTERN SEQ(A a) RETURN above(a.x, 2) AS y", schema)


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled without JIT")
def test_what_does_not_compile_is_refused_with_the_reason() -> None:
    stretto.function(lambda a: {"a": a}["b"].append(3), name="odd")
    with pytest.raises(QueryError, match=r"'odd' does not compile for \(float\)"):
        stretto.compile("PATTERN SEQ(A a) WHERE skip_till_any_match { odd(a.x) }", Schema.of(EVENTS.schema))
    stretto.function(lambda a: (a, a), name="pair")
    with pytest.raises(QueryError, match="not a number or a truth value"):
        stretto.compile("PATTERN SEQ(A a) WHERE skip_till_any_match { pair(a.x) = 3 }", Schema.of(EVENTS.schema))
