"""The definitions of predicates, case by case: they judge everything else."""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.query import predicate as p
from stretto.query.evaluate import compare, holds, like, like_pattern, value

A, C = p.Attribute, p.Constant
X, NULL = {"x": 3}, {"x": None}
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_a_comparison_with_null_is_false(op: str) -> None:
    assert not holds(p.Comparison(op, A("x"), C(3)), NULL)
    assert not holds(p.Comparison(op, A("x"), A("x")), NULL)


def test_null_has_two_truth_values() -> None:
    equal = p.Comparison("=", A("x"), C(3))
    for predicate in (p.In(A("x"), (C(3),)), p.Between(A("x"), C(1), C(5)), p.Like(A("x"), "%"), equal):
        assert not holds(predicate, NULL)
        assert holds(p.Not(predicate), NULL)
    assert holds(p.IsNull(A("x")), NULL)
    assert not holds(p.IsNull(A("x")), X)
    assert holds(p.Or((equal, p.Not(equal))), NULL)
    assert not holds(p.And((equal, p.Not(equal))), NULL)


@pytest.mark.parametrize(
    ("op", "left", "right", "expected"),
    [
        ("+", 2**63 - 1, 1, 2**63),
        ("-", 1, 3, -2),
        ("*", 2**40, 2**40, 2**80),
        ("/", 1, 2, 0.5),
        ("/", 1, 0, None),
        ("/", 0.0, -0.0, None),
        ("/", Decimal(1), Decimal(4), 0.25),
        ("%", 7, 3, 1),
        ("%", -7, 3, -1),
        ("%", 7, -3, 1),
        ("%", -7, -3, -1),
        ("%", 7, 0, None),
        ("%", -(2**63), -1, 0),
        ("%", -7.5, 2.0, -1.5),
        ("%", 7.5, INF, 7.5),
        ("%", 7.5, 0.0, None),
        ("%", Decimal("-7.5"), Decimal(2), Decimal("-1.5")),
        ("+", 1, 0.5, 1.5),
        ("+", Decimal("0.1"), Decimal("0.2"), Decimal("0.3")),
        ("+", Decimal("0.1"), 1, Decimal("1.1")),
        ("*", Decimal("1." + "1" * 30), Decimal(10) ** 10, Decimal("11111111111.11111111111111111111")),
        ("+", Decimal("0.5"), 0.25, 0.75),
        ("*", 1e300, 1e300, INF),
        ("*", 10**200, 1e300, INF),
        ("+", 10**400, 0.5, INF),
        ("-", -(10**400), 0.5, -INF),
        ("div", 7, 2, 3),
        ("div", -7, 2, -3),
        ("div", 7, -2, -3),
        ("div", -(2**63), 2**62 + 1, -1),
        ("div", 1, 0, None),
        ("+", None, 1, None),
        ("+", 1, None, None),
    ],
)
def test_arithmetic(op: str, left: Any, right: Any, expected: Any) -> None:
    found = value(p.Arithmetic(op, A("x"), A("y")), {"x": left, "y": right})
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("op", "left", "right"), [("-", INF, INF), ("*", INF, 0.0), ("%", INF, 2.0), ("%", NAN, 2.0), ("%", 2.0, NAN)]
)
def test_arithmetic_without_a_result_is_nan(op: str, left: float, right: float) -> None:
    assert math.isnan(value(p.Arithmetic(op, C(left), C(right)), {}))


def test_negation() -> None:
    assert value(p.Negative(A("x")), NULL) is None
    assert value(p.Negative(A("x")), X) == -3
    long = Decimal("0." + "1" * 38)
    assert value(p.Negative(C(long)), {}) == long.copy_negate()


def test_nan() -> None:
    for other in (NAN, 1.0, 1, INF):
        assert compare("!=", NAN, other)
        assert not any(compare(op, NAN, other) or compare(op, other, NAN) for op in ("=", "<", "<=", ">", ">="))


@pytest.mark.parametrize(
    ("left", "op", "right"),
    [
        (2**53 + 1, ">", 2.0**53),
        (2**63 - 1, "<", 2.0**63),
        (1, "=", 1.0),
        (Decimal("0.1"), "=", 0.1),
        (0.1, "=", Decimal("0.1")),
        (Decimal("0.5"), "<", 1),
        ("a", "<", "é"),
        ("\uffff", "<", "\U0001f600"),
        (dt.date(2020, 1, 1), "=", dt.datetime(2020, 1, 1)),
        (dt.date(2020, 1, 1), "<", dt.datetime(2020, 1, 1, 1)),
        (False, "!=", True),
    ],
)
def test_comparisons(left: Any, op: str, right: Any) -> None:
    assert compare(op, left, right)


def test_moments_in_the_hour_that_occurs_twice() -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    first = dt.datetime(2020, 10, 25, 2, 45, tzinfo=berlin, fold=0)
    second = dt.datetime(2020, 10, 25, 2, 15, tzinfo=berlin, fold=1)
    assert compare("<", first, second)
    assert compare("=", first, dt.datetime(2020, 10, 25, 0, 45, tzinfo=dt.UTC))


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("abc", "abc", True),
        ("abc", "ABC", False),
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "%b%", True),
        ("abc", "a_c", True),
        ("abc", "__", False),
        ("a\nb", "a_b", True),
        ("a\nb\n", "a%", True),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("a\\b", "a\\_", True),
        ("%", "%", True),
        ("😀", "_", True),
        ("aXbXc", "a%X%c", True),
        ("ab", "a%%b", True),
        ("aab", "%ab", True),
        ("a%", "a%", True),
    ],
)
def test_like(text: str, pattern: str, expected: bool) -> None:
    assert like(text, pattern) is expected
    assert holds(p.Like(A("x"), pattern), {"x": text}) is expected


@given(st.text("ab%\n", max_size=8), st.text("ab%_\n", max_size=6))
def test_like_is_its_regular_expression(text: str, pattern: str) -> None:
    assert like(text, pattern) == bool(like_pattern(pattern).fullmatch(text))


def test_like_takes_no_exponential_time() -> None:
    assert not like("a" * 500, "%a" * 20 + "b")


def test_connectives() -> None:
    true, false = p.Comparison("=", A("x"), C(3)), p.Comparison("=", A("x"), C(4))
    assert holds(p.And((true, true)), X)
    assert not holds(p.And((true, false)), X)
    assert holds(p.Or((false, true)), X)
    assert not holds(p.Or((false, false)), X)
    assert holds(p.Between(A("x"), C(3), C(3)), X)
    assert not holds(p.Between(A("x"), C(4), C(3)), X)
    assert holds(p.In(A("x"), (C(1), C(3.0))), X)
