"""Fences, transfers, windows and Python functions of AFAs, as they are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numba
import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError, QueryError
from stretto.languages.afa import (
    Scope,
    read_fence,
    read_function,
    read_transfer,
    read_window,
)
from stretto.query import predicate as p
from stretto.query.afa import Arc, Field, Kind, UserFunction, fence_text, shown, transfer_text

EVENTS = {
    "price": pa.float64(),
    "size": pa.int64(),
    "kind": pa.dictionary(pa.int32(), pa.string()),
    "ok": pa.bool_(),
    "ts": pa.timestamp("us"),
    "on": pa.date32(),
    "seen": pa.timestamp("s"),
    "zone": pa.timestamp("us", tz="UTC"),
    "cost": pa.decimal128(9, 2),
    "raw": pa.binary(),
    "in": pa.int32(),
    "a b": pa.int64(),
    "e": pa.int64(),
}
REGISTER = {
    "n": pa.int64(),
    "low": pa.float64(),
    "tag": pa.string(),
    "flag": pa.bool_(),
    "at": pa.timestamp("us"),
    "day": pa.timestamp("s"),
    "and": pa.int64(),
}
SCOPE = Scope(EVENTS, REGISTER)


@stretto.function
def spread(a, b):  # type: ignore[no-untyped-def]
    return a - b


@stretto.function
def positive(a):  # type: ignore[no-untyped-def]
    return a > 0


# ---- Fences


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("e.price<3", "e.price < 3.0"),
        ("e.price == r.low", "e.price = r.low"),
        ("e.price <> 3 or r.n!=2", "e.price != 3.0 OR r.n != 2"),
        ("e.kind in ('a', 'b') and not (r.n > 3)", "e.kind IN ('a', 'b') AND NOT (r.n > 3)"),
        ('e.kind = "it\'s"', "e.kind = 'it''s'"),
        ("e.kind NOT LIKE 'a%'", "NOT (e.kind LIKE 'a%')"),
        ("e.size BETWEEN r.n AND r.n + 10", "e.size BETWEEN r.n AND (r.n + 10)"),
        ("e.raw IS NULL ∧ ¬ r.flag", "e.raw IS NULL AND NOT (r.flag = TRUE)"),
        ("e.in = 3 AND e.`in` = 4", "e.`in` = 3 AND e.`in` = 4"),
        ('e."a b" = r.and', "e.`a b` = r.`and`"),
        ("e . price -- of course\n > 3", "e.price > 3.0"),
        ("e.e > 1", "e.e > 1"),
        ("e.ts > '2020-01-01' OR r.at < e.on", "e.ts > '2020-01-01 00:00:00' OR r.at < e.on"),
        ("spread(e.price, r.low) * 2 > -(r.n) % 3", "(spread(e.price, r.low) * 2.0) > ((- r.n) % 3)"),
        ("positive(e.size)", "positive(e.size) = TRUE"),
        ("e.ok", "e.ok = TRUE"),
        ("TRUE", "TRUE = TRUE"),
        ("e.cost < 3.10 AND e.cost < r.low", "e.cost < 3.10 AND e.cost < r.low"),
    ],
)
def test_fences(text: str, read: str) -> None:
    found = read_fence(text, SCOPE)
    assert str(found) == read
    assert read_fence(str(found), SCOPE) == found
    assert set(p.attributes(found)) <= set(SCOPE.types)


def test_names_are_those_of_attributes() -> None:
    found = read_fence("e.`a b` > r.n", SCOPE)
    assert found == p.Comparison(">", p.Attribute("e.a b"), p.Attribute("r.n"))
    assert hash(Field("e.price")) == hash(p.Attribute("e.price"))
    assert Field("e.price") != "e.price"


def test_an_epsilon_fence_reads_the_register() -> None:
    assert str(read_fence("r.n > 3", SCOPE, epsilon=True)) == "r.n > 3"
    with pytest.raises(QueryError, match="an ε-arc consumes no event") as caught:
        read_fence("r.n > 3 AND e.price > 2", SCOPE, epsilon=True)
    assert caught.value.column == 13


# ---- Transfers


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ("n = r.n + 1", {"n": "(r.n + 1)"}),
        ("n := 1, r.low = e.price", {"n": "1", "low": "e.price"}),
        ("`and` = 3, tag == e.kind", {"tag": "e.kind", "and": "3"}),
        ("n = 3.0, low = 3", {"n": "3", "low": "3.0"}),
        ("low = 0.1", {"low": "0.1"}),
        ("low = e.cost * 2", {"low": "((e.cost / 1.0) * 2.0)"}),
        ("low = r.n", {"low": "r.n"}),
        ("tag = 'x', flag = e.ok", {"tag": "'x'", "flag": "e.ok"}),
        ("flag = positive(e.price)", {"flag": "positive(e.price)"}),
        ("flag = FALSE", {"flag": "FALSE"}),
        ("at = e.ts, day = e.on", {"at": "e.ts", "day": "e.on"}),
        ("day = '2020-01-02'", {"day": "'2020-01-02 00:00:00'"}),
        ("(1, 2, '', TRUE, r.at, r.day, r.n)", {"n": "1", "low": "2.0", "tag": "''", "flag": "TRUE", "and": "r.n"}),
        ("(1, 2, '', TRUE, r.at, r.day, r.n,)", {"n": "1", "low": "2.0", "tag": "''", "flag": "TRUE", "and": "r.n"}),
        ({"n": "r.n + e.size", "low": 2, "flag": True}, {"n": "(r.n + e.size)", "low": "2.0", "flag": "TRUE"}),
        ({"low": Decimal("0.5"), "at": dt.datetime(2020, 1, 2)}, {"low": "0.5", "at": "'2020-01-02 00:00:00'"}),
        ({"day": dt.date(2020, 1, 2)}, {"day": "'2020-01-02 00:00:00'"}),
        ({}, {}),
    ],
)
def test_transfers(given: Any, changed: dict[str, str]) -> None:
    found = read_transfer(given, SCOPE)
    assert len(found) == len(REGISTER)
    assert {
        field: str(value)
        for field, value in zip(REGISTER, found, strict=True)
        if str(value) != str(Field(f"r.{field}"))
    } == changed
    text = transfer_text(Arc("a", "p", "q", None, found), REGISTER)
    plain = {field: value[1:-1] if value.startswith("(") else value for field, value in changed.items()}
    assert text == ", ".join(f"{p.Attribute(field)} = {value}" for field, value in plain.items())
    if text:
        assert read_transfer(text, SCOPE) == found


def test_constants_have_the_type_of_their_field() -> None:
    values = read_transfer("n = 3.0, low = 3", SCOPE)
    assert [type(one.value) for one in values[:2] if isinstance(one, p.Constant)] == [int, float]


# ---- Windows


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("10 seconds", dt.timedelta(seconds=10)),
        ("1 h 30 min", dt.timedelta(minutes=90)),
        ("0.5 ms", dt.timedelta(microseconds=500)),
        ("2000 ns", dt.timedelta(microseconds=2)),
        ("500", 500),
    ],
)
def test_windows(text: str, window: Any) -> None:
    assert read_window(text) == window


# ---- Python functions


def of_both(e: Any, r: Any) -> Any:
    if e.price > r.low:
        return e.size + e.price > 3
    return e.ok


def handed_on(e: Any, r: Any) -> Any:
    return of_both(e, r)


def renamed(e: Any, r: Any) -> Any:
    x = e
    return x.price > 3


def inner(e: Any, r: Any) -> Any:
    return sum(e.price for _ in range(3)) > 3


NUMBERS = ("price", "size", "ok", "ts", "on", "seen", "zone", "cost", "in", "a b", "e")


@pytest.mark.parametrize(
    ("given", "uses"),
    [
        (lambda e, r: e.price > r.low, ("price",)),
        (lambda event, register: register.low < event.price, ("price",)),
        (lambda e, r: r.n > 3, ()),
        (lambda e, r: (r.n, e.size, e.price, e.size), ("size", "price")),
        (lambda e, r: r._replace(n=e.size), ("size",)),
        (of_both, ("price", "size", "ok")),
        (numba.njit(of_both), ("price", "size", "ok")),
        (handed_on, NUMBERS),
        (renamed, NUMBERS),
        (inner, NUMBERS),
        (lambda e, r: e, NUMBERS),
    ],
)
def test_what_a_function_reads(given: Callable[[Any, Any], Any], uses: tuple[str, ...]) -> None:
    assert read_function(given, SCOPE).uses == uses


def test_the_names_of_functions() -> None:
    assert str(read_function(of_both, SCOPE)) == "of_both"
    assert str(read_function(lambda e, r: True, SCOPE)).startswith("lambda at test_afa.py:")


class Callables:
    def method(self, e: Any, r: Any) -> Any:
        return True

    def __call__(self, e: Any, r: Any) -> Any:
        return True


def yields(e: Any, r: Any) -> Any:
    yield True


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda e: True, "must take two plain parameters: the event and the register"),
        (lambda *e: True, "must take two plain parameters"),
        (lambda e, *, r: True, "must take two plain parameters"),
        (yields, "yields is a generator or a coroutine: it must return its value"),
        (Callables(), "is no Python function: give a def or a lambda"),
        (max, "is no Python function"),
        (lambda e, r: e.prize > 3, r"the event has no attribute 'prize'; did you mean 'price'\?"),
        (lambda e, r: r.lo > 3, r"the register has no field 'lo'; did you mean 'low'\?"),
        (lambda e, r: e.kind == "a", r"reads e.kind \(dictionary.*\), and Python functions get numbers"),
        (lambda e, r: e.raw, r"reads e.raw \(binary\)"),
        (lambda e, r: r.tag, r"reads r.tag \(string\)"),
    ],
)
def test_functions_that_are_refused(given: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        read_function(given, SCOPE)


def test_functions_of_epsilon_arcs() -> None:
    assert read_function(lambda e, r: r.n > 3, SCOPE, epsilon=True).uses == ()
    for given in (lambda e, r: e.price > 3, handed_on):
        with pytest.raises(OptionError, match="an ε-arc consumes no"):
            read_function(given, SCOPE, epsilon=True)


# ---- Arcs as text


def test_arcs_as_text() -> None:
    fence = read_fence("e.price > r.low", SCOPE)
    transfer = read_transfer("n = 3, low = e.price", SCOPE)
    function = UserFunction(of_both, "of_both")
    arcs = {
        Arc("a", "p", "q"): "p -> q  a",
        Arc("a", "p", "q", fence, transfer): "p -> q  a  when e.price > r.low  then n = 3, low = e.price",
        Arc("a", "p", "q", function, function): "p -> q  a  when of_both  then of_both",
        Arc("a", "p", "q", None, read_transfer("n = r.n", SCOPE)): "p -> q  a",
        Arc("a", "p", "q", kind=Kind.EPSILON, since=3): "p -> q  a  ε  since 3",
        Arc("a", "p", "p", fence, kind=Kind.IGNORE, until=4): "p -> p  a  ignore when e.price > r.low  until 4",
    }
    assert [shown(arc, REGISTER) for arc in arcs] == list(arcs.values())
    assert fence_text(Arc("a", "p", "q")) == ""
