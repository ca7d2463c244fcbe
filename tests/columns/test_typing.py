"""What fits a schema, what does not and what the error says, and what literals become."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from stretto.errors import QueryError, Span
from stretto.query import predicate as p
from stretto.query.typing import kind_of, typed

SCHEMA = {
    "price": pa.float64(),
    "volume": pa.int64(),
    "amount": pa.decimal128(10, 2),
    "name": pa.string(),
    "label": pa.dictionary(pa.int8(), pa.large_string()),
    "view": pa.string_view(),
    "flag": pa.bool_(),
    "at": pa.timestamp("ms"),
    "moment": pa.timestamp("us", "Europe/Berlin"),
    "day": pa.date32(),
    "blob": pa.binary(),
    "tags": pa.list_(pa.string()),
}

A, C = p.Attribute, p.Constant


def compared(left: p.Operand, right: p.Operand, op: str = "=") -> p.Predicate:
    return p.Comparison(op, left, right)


def literal(name: str, value: Any) -> Any:
    """What a literal becomes beside an attribute."""
    found = typed(compared(A(name), C(value)), SCHEMA)
    assert isinstance(found, p.Comparison)
    assert isinstance(found.right, p.Constant)
    mirrored = typed(compared(C(value), A(name)), SCHEMA)
    assert isinstance(mirrored, p.Comparison)
    assert mirrored.left == found.right
    return found.right.value


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("price", 3, 3.0),
        ("price", Decimal("0.1"), 0.1),
        ("volume", 3, 3),
        ("volume", Decimal("3.0"), 3),
        ("volume", Decimal("1e3"), 1000),
        ("volume", Decimal("9007199254740993.0"), 2**53 + 1),
        ("volume", Decimal("0.5"), 0.5),
        ("amount", Decimal("0.1"), Decimal("0.1")),
        ("amount", 3, Decimal(3)),
        ("name", "x", "x"),
        ("label", "x", "x"),
        ("view", "x", "x"),
        ("flag", True, True),
        ("at", "2013-01-31", dt.datetime(2013, 1, 31)),
        ("at", "2013-01-31T12:00:00.5", dt.datetime(2013, 1, 31, 12, 0, 0, 500000)),
        ("moment", "2013-01-31T00:00Z", dt.datetime(2013, 1, 31, tzinfo=dt.UTC)),
        ("moment", "2013-01-31T01:00+01:00", dt.datetime(2013, 1, 31, tzinfo=dt.UTC)),
        ("day", "2013-01-31", dt.date(2013, 1, 31)),
    ],
)
def test_literals_take_the_type_beside_them(name: str, value: Any, expected: Any) -> None:
    found = literal(name, value)
    assert found == expected
    assert type(found) is type(expected)


def test_literals_in_computations() -> None:
    def computed(*operands: p.Operand) -> Any:
        return typed(compared(p.Arithmetic("*", *operands), C(1), "<"), SCHEMA)

    assert repr(computed(A("volume"), C(2))) == repr(compared(p.Arithmetic("*", A("volume"), C(2)), C(1), "<"))
    assert repr(computed(A("volume"), C(Decimal("0.5")))) == repr(
        compared(p.Arithmetic("*", A("volume"), C(0.5)), C(1.0), "<")
    )
    assert repr(computed(A("amount"), C(2))) == repr(
        compared(p.Arithmetic("*", A("amount"), C(Decimal(2))), C(Decimal(1)), "<")
    )
    assert repr(computed(A("amount"), C(Decimal("0.5")))) == repr(
        compared(p.Arithmetic("*", A("amount"), C(Decimal("0.5"))), C(Decimal(1)), "<")
    )
    assert repr(computed(A("price"), C(2))) == repr(compared(p.Arithmetic("*", A("price"), C(2.0)), C(1.0), "<"))


def test_a_decimal_makes_its_comparison_exact() -> None:
    """Literals with a point are decimals in a comparison that reads one, but for those beside a float; elsewhere doubles."""

    def sum_of(*operands: p.Operand) -> p.Operand:
        return p.Arithmetic("+", *operands)

    def sides(left: p.Operand, right: p.Operand) -> str:
        return repr(typed(compared(left, right, "="), SCHEMA))

    tenth, same = C(Decimal("0.1")), repr
    assert sides(sum_of(A("volume"), tenth), A("amount")) == same(
        compared(sum_of(A("volume"), tenth), A("amount"), "=")
    )
    assert sides(sum_of(A("price"), tenth), A("amount")) == same(compared(sum_of(A("price"), C(0.1)), A("amount"), "="))
    assert sides(sum_of(A("volume"), tenth), A("volume")) == same(
        compared(sum_of(A("volume"), C(0.1)), A("volume"), "=")
    )
    both = p.And((compared(A("amount"), tenth, "="), compared(sum_of(A("volume"), tenth), C(3), "=")))
    assert repr(typed(both, SCHEMA)) == same(
        p.And((compared(A("amount"), tenth, "="), compared(sum_of(A("volume"), C(0.1)), C(3.0), "=")))
    )


def test_times_in_between() -> None:
    day = dt.datetime(2013, 1, 31)
    assert typed(p.Between(A("at"), C("2013-01-31"), A("at")), SCHEMA) == p.Between(A("at"), C(day), A("at"))
    assert typed(p.Between(C("2013-01-31"), C("2013-01-31"), A("at")), SCHEMA) == p.Between(C(day), C(day), A("at"))
    typed(p.Between(C("2013-01-31 00:00+01:00"), A("moment"), A("moment")), SCHEMA)
    assert typed(p.In(A("day"), (C("2013-01-31"),)), SCHEMA) == p.In(A("day"), (C(day.date()),))


@pytest.mark.parametrize(
    "predicate",
    [
        compared(C(1), C(2), "<"),
        compared(C("a"), C("b"), "<"),
        compared(A("price"), A("volume")),
        compared(A("amount"), A("price"), "<"),
        compared(A("name"), A("view"), "<"),
        compared(A("day"), A("at"), "<"),
        compared(A("flag"), A("flag"), "!="),
        p.Like(A("label"), "%"),
        p.IsNull(A("blob")),
        p.IsNull(A("tags")),
        p.IsNull(p.Negative(A("amount"))),
        p.Not(p.And((p.Or((p.IsNull(A("price")),)),))),
        p.In(A("volume"), (C(1), C(Decimal("2.5")))),
    ],
)
def test_what_fits(predicate: p.Predicate) -> None:
    assert typed(predicate, SCHEMA, None)


def test_spans_stay() -> None:
    spans = [Span(k, k + 1) for k in range(4)]
    node = p.Between(A("at", spans[0]), C("2013-01-31", spans[1]), C("2014-01-31", spans[2]), spans[3])
    found = typed(node, SCHEMA)
    assert isinstance(found, p.Between)
    assert [found.operand.span, found.low.span, found.high.span, found.span] == spans


@pytest.mark.parametrize(
    ("predicate", "message", "hint"),
    [
        (compared(A("prize"), C(1)), "unknown attribute 'prize'", "did you mean 'price'?"),
        (compared(A("price"), C("x"), ">"), "cannot compare price (double) with a string", "without quotes"),
        (compared(A("name"), C(1)), "cannot compare name (string) with a number", "strings in single quotes"),
        (compared(A("flag"), C(1)), "cannot compare flag (bool) with a number", None),
        (compared(A("flag"), C(True), "<"), "truth values are not ordered", "= or !="),
        (p.Between(A("flag"), C(False), C(True)), "truth values are not ordered", "= or !="),
        (compared(p.Arithmetic("+", A("name"), C(1)), C(1)), "cannot compute name (string) with '+'", None),
        (compared(p.Negative(A("at")), C(1)), "cannot compute at (timestamp[ms]) with '-'", None),
        (p.Like(A("price"), "a%"), "LIKE needs a string, not price (double)", None),
        (p.Like(C(1), "a%"), "LIKE needs a string, not a number", None),
        (p.In(A("price"), (C(1), C("x"))), "cannot compare price (double) with a string", "without quotes"),
        (p.In(C(1), (C("x"),)), "cannot compare a number with a string", None),
        (compared(A("blob"), C("x")), "cannot compare blob (binary)", "IS [NOT] NULL"),
        (compared(A("tags"), A("tags")), "cannot compare tags (list<", "IS [NOT] NULL"),
        (compared(A("at"), C(1)), "cannot compare at (timestamp[ms]) with a number", None),
        (compared(A("at"), A("name")), "cannot compare name (string) with at (timestamp[ms])", None),
        (compared(A("at"), C("soon")), "'soon' is no time", "write it like '2013-01-31'"),
        (compared(A("at"), C("2013-01-31 00:00:00.1234567")), "is finer than a microsecond", "six decimals"),
        (
            compared(A("at"), C("2013-01-31T00:00Z")),
            "has a time zone, and at (timestamp[ms]) has none",
            "'2013-01-31 00:00:00'",
        ),
        (compared(A("moment"), C("2013-01-31")), "has no time zone, and moment (", "'2013-01-31 00:00:00Z' is in UTC"),
        (p.In(A("moment"), (C("2013-01-31T01:00"),)), "has no time zone", "'2013-01-31 01:00:00+02:00'"),
        (p.Between(A("moment"), C("2013-01-31"), A("moment")), "has no time zone", None),
        (compared(p.Arithmetic("%", A("amount"), C(2)), C(1)), "'%' does not take decimals", "integers and floats"),
        (compared(A("moment"), C("0001-01-01T00:00+14:00")), "is out of range", "1 to 9999"),
        (compared(A("day"), C("2013-01-31 12:00")), "'2013-01-31 12:00' is no date", "2013-01-31"),
        (compared(A("at"), A("moment")), "only one has a time zone", None),
        (compared(A("day"), A("moment")), "only one has a time zone", None),
        (compared(A("price"), C(10**400)), "the number is too great", None),
        (compared(A("volume"), C(Decimal("1e9999"))), "the number is too great", "digits"),
        (compared(A("amount"), C(Decimal("1e-9999"))), "the number is too small", "digits"),
    ],
)
def test_what_does_not_fit(predicate: p.Predicate, message: str, hint: str | None) -> None:
    with pytest.raises(QueryError) as caught:
        typed(predicate, SCHEMA, "the query")
    assert message in caught.value.message
    assert caught.value.text == "the query"
    if hint is None:
        assert caught.value.hint is None or "digits" not in caught.value.hint
    else:
        assert caught.value.hint is not None
        assert hint in caught.value.hint


def test_the_caret() -> None:
    text = "A[prize > 3]"
    with pytest.raises(QueryError) as caught:
        typed(compared(A("prize", Span(2, 7)), C(3), ">"), SCHEMA, text)
    assert str(caught.value) == (
        "line 1, column 3: unknown attribute 'prize'\n  A[prize > 3]\n    ^^^^^\nhint: did you mean 'price'?"
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.uint8(), "int"),
        (pa.float16(), "float"),
        (pa.decimal256(40, 2), "decimal"),
        (pa.dictionary(pa.int8(), pa.int64()), "int"),
        (pa.date64(), "time"),
        (pa.time32("s"), "other"),
        (pa.null(), "other"),
    ],
)
def test_kinds(kind: pa.DataType, name: str) -> None:
    assert kind_of(kind) == name
