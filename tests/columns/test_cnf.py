"""Conjunctive normal form: it says the same as the condition, and NOT stays where two values need it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import LimitError, Span
from stretto.query import predicate as p
from stretto.query.evaluate import holds
from stretto.query.passes.cnf import MOST_CONJUNCTS, conjuncts
from tests.conftest import cases

A, C = p.Attribute, p.Constant
X, Y, Z = (p.Comparison(">", A(name), C(0)) for name in "xyz")
NAMES = ("x", "y", "z")
LEAF_TYPES = (p.Comparison, p.In, p.Between, p.IsNull)


def leaves() -> st.SearchStrategy[p.Predicate]:
    """Conditions on one of three numbers that may be NULL."""
    names, numbers = st.sampled_from(NAMES).map(A), st.integers(0, 2).map(C)
    return st.one_of(
        st.builds(p.Comparison, st.sampled_from(["=", "!=", "<", ">="]), names, st.one_of(numbers, names)),
        st.builds(p.In, names, st.lists(numbers, min_size=1, max_size=2).map(tuple)),
        st.builds(p.Between, names, numbers, numbers),
        st.builds(p.IsNull, names),
    )


def deeper(inner: st.SearchStrategy[p.Predicate]) -> st.SearchStrategy[p.Predicate]:
    parts = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(st.builds(p.And, parts), st.builds(p.Or, parts), st.builds(p.Not, inner))


EVENTS: list[dict[str, Any]] = [
    dict(zip(NAMES, values, strict=True)) for values in itertools.product((0, 1, 2, None), repeat=3)
]


@settings(max_examples=cases(400))
@given(st.recursive(leaves(), deeper, max_leaves=12))
def test_all_conjuncts_hold_where_the_condition_does(condition: p.Predicate) -> None:
    try:
        parts = conjuncts(condition)
    except LimitError:
        return
    assert len({repr(part) for part in parts}) == len(parts)
    for part in parts:
        for literal in part.parts if isinstance(part, p.Or) else (part,):
            assert isinstance(literal.part if isinstance(literal, p.Not) else literal, LEAF_TYPES)
    for event in EVENTS:
        assert all(holds(part, event) for part in parts) == holds(condition, event), (event, parts)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (X, (X,)),
        (p.Not(X), (p.Not(X),)),
        (p.Not(p.Not(X)), (X,)),
        (p.Not(p.Not(p.Not(X))), (p.Not(X),)),
        (p.And((X, p.And((Y, Z)))), (X, Y, Z)),
        (p.Or((X, p.Or((Y, Z)))), (p.Or((X, Y, Z)),)),
        (p.Or((p.And((X, Y)), Z)), (p.Or((X, Z)), p.Or((Y, Z)))),
        (p.Not(p.And((X, Y))), (p.Or((p.Not(X), p.Not(Y))),)),
        (p.Not(p.Or((X, p.And((Y, Z))))), (p.Not(X), p.Or((p.Not(Y), p.Not(Z))))),
        (p.And((X, Y, X)), (X, Y)),
        (p.And((p.Or((X, Y)), p.Or((Y, X)))), (p.Or((X, Y)),)),
        (p.Or((X, X)), (X,)),
        (p.Or((p.And((X, Y)), p.And((X, Y)))), (X, p.Or((X, Y)), Y)),
        (p.And(()), ()),
        (p.Or(()), (p.Or(()),)),
        (p.Or((X, p.And(()))), ()),
    ],
)
def test_forms(condition: p.Predicate, expected: tuple[p.Predicate, ...]) -> None:
    assert conjuncts(condition) == expected


def test_a_negated_comparison_is_not_turned_around() -> None:
    (found,) = conjuncts(p.Not(p.Comparison("<", A("x"), C(3))))
    assert holds(found, {"x": None})


def test_one_and_one_point_zero_are_two_conditions() -> None:
    def times(factor: float) -> p.Predicate:
        return p.Comparison("=", p.Arithmetic("*", A("x"), C(factor)), C(2**53))

    assert len(conjuncts(p.And((times(1), times(1.0))))) == 2


def pairs(count: int) -> p.Predicate:
    """An OR of ``count`` pairs, which is 2**count conjuncts."""
    return p.Or(tuple(p.And(tuple(p.Comparison(op, A(f"x{number}"), C(0)) for op in "<>")) for number in range(count)))


def test_a_limit() -> None:
    assert len(conjuncts(pairs(8))) == MOST_CONJUNCTS == 256
    for count in (9, 40):
        with pytest.raises(LimitError, match="more than 256 conditions that must all hold"):
            conjuncts(pairs(count))
    many = tuple(p.Comparison("=", A("x"), C(number)) for number in range(257))
    with pytest.raises(LimitError):
        conjuncts(p.And(many))
    assert len(conjuncts(p.Or(many))) == 1


def test_places() -> None:
    """A conjunct knows where its alternatives are written."""
    x, y, z = (p.Comparison(">", A(name), C(0), Span(10 * at, 10 * at + 5)) for at, name in enumerate("xyz"))
    found = conjuncts(p.Or((p.And((x, y)), p.Not(z))))
    assert [part.span for part in found] == [Span(0, 25), Span(10, 25)]
    assert conjuncts(X)[0].span is None
