"""SASE+ queries bound to a schema: types of references, what does not fit, and where the error points."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from stretto.errors import QueryError
from stretto.events import Schema
from stretto.languages.sase import parse
from stretto.query import predicate as p
from stretto.query.passes.bind_sase import BoundSase, bind_sase
from stretto.query.windows import BoundWindow

COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us")),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("flag", pa.bool_()),
        ("list", pa.list_(pa.int64())),
    ]
)
START = "PATTERN SEQ(A+ a[], ~(N n), B b)"


def bound(text: str, **roles: Any) -> BoundSase:
    return bind_sase(parse(text), Schema.of(COLUMNS, **({"time": "ts"} | roles)))


def refused(text: str, place: str, **roles: Any) -> QueryError:
    """The error, which marks ``place``."""
    with pytest.raises(QueryError) as caught:
        bound(text, **roles)
    error = caught.value
    assert error.text == text
    assert error.span is not None
    assert text[error.span.start : error.span.end] == place
    assert str(error).split("\n")[2].count("^") == len(place)
    return error


def where(conditions: str, rest: str = "") -> str:
    return f"{START} WHERE skip_till_any_match {{ {conditions} }} {rest}"


# ---- What fits


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("b.n", pa.int32()),
        ("a[i].s", pa.string()),
        ("a.LEN", pa.int64()),
        ("count(a[])", pa.int64()),
        ("count(a[].s)", pa.int64()),
        ("sum(a[].n)", pa.int64()),
        ("sum(a[].x)", pa.float64()),
        ("sum(a[].d)", pa.float64()),
        ("avg(a[..i-1].n)", pa.float64()),
        ("min(a[..i].d)", pa.decimal128(10, 2)),
        ("max(a[].ts)", pa.timestamp("us")),
    ],
)
def test_types(reference: str, expected: pa.DataType) -> None:
    query = bound(where(f"{reference} is not null"))
    assert list(query.types.values()) == [expected]


def test_literals_take_the_type_beside_them() -> None:
    query = bound(where("a[1].x > 1 and b.d < 80%*a[a.LEN].d and n.ts > '2024-01-01' and max(a[].ts) < '2025-01-01'"))
    assert query.condition is not None
    values = [node.value for node in p.walk(query.condition) if isinstance(node, p.Constant)]
    assert [type(value).__name__ for value in values] == ["float", "Decimal", "datetime", "datetime"]
    assert values[1] == Decimal("0.8")  # beside a decimal, exactly
    assert query.tested == ("type", "ts", "x", "d")


def test_returns() -> None:
    query = bound(f"{START} RETURN b.s, a.LEN, avg(a[].n) / 2 AS half, 's' AS label, 5% AS rate, min(a[].ts) AS since")
    assert query.returns is not None
    assert [(item.name, item.type) for item in query.returns] == [
        ("b_s", pa.string()),
        ("a_len", pa.int64()),
        ("half", pa.float64()),
        ("label", pa.string()),
        ("rate", pa.float64()),
        ("since", pa.timestamp("us")),
    ]
    assert query.selected == ()


def test_without_returns_all_events_are_reported() -> None:
    assert bound(START).selected == (("a", tuple(COLUMNS.names)), ("b", tuple(COLUMNS.names)))


@pytest.mark.parametrize(
    ("within", "roles", "expected"),
    [
        ("0 seconds", {}, BoundWindow(0, "ts")),
        ("0", {}, BoundWindow(0, "ts")),
        ("2", {}, BoundWindow(2_000_000, "ts")),
        ("2", {"time": "n"}, BoundWindow(2, "n")),
        ("2", {"time": "n", "time_unit": "ms"}, BoundWindow(2, "n")),
        ("2 seconds", {"time": "n", "time_unit": "ms"}, BoundWindow(2_000, "n")),
        ("2.5", {"time": "x"}, BoundWindow(2.5, "x")),
        ("2.5", {"time": "d"}, BoundWindow(250, "d")),
        ("2 [n]", {}, BoundWindow(2, "n")),
        ("0 EVENTS", {}, BoundWindow(0, None)),
    ],
)
def test_windows(within: str, roles: dict[str, str], expected: BoundWindow) -> None:
    assert bound(f"{START} WITHIN {within}", **roles).window == expected


def test_negation_between_needs_no_window() -> None:
    assert bound(START).window is None
    assert bound(f"{START} WITHIN 3 EVENTS").window == BoundWindow(3, None)


@pytest.mark.parametrize("components", ["~(N n), B b", "B b, ~(N n)"])
def test_negation_at_an_end_needs_a_time(components: str) -> None:
    assert bound(f"PATTERN SEQ({components}) WITHIN 0").window == BoundWindow(0, "ts")
    for within in ("", " WITHIN 3 EVENTS"):
        error = refused(f"PATTERN SEQ({components}){within}", "~(N n)")
        assert error.message == "~(N n) at an end of the pattern needs a time until which it holds"
        assert error.hint == "add WITHIN with a duration"


# ---- What does not fit


@pytest.mark.parametrize(
    ("conditions", "place", "message", "hint"),
    [
        ("b.flagg", "b.flagg", "unknown attribute 'flagg'", "did you mean 'flag'?"),
        ("a[i].nn > a[1].n", "a[i].nn", "unknown attribute 'nn'", "did you mean 'n'?"),
        ("b.x > avg(a[].zz)", "avg(a[].zz)", "unknown attribute 'zz'", "known attributes: type, ts, n"),
        ("count(a[].zz) > 1", "count(a[].zz)", "unknown attribute 'zz'", "known attributes: type, ts, n"),
        ("sum(a[].s) > 1", "sum(a[].s)", "sum needs numbers, and 's' is string", "count(a[]) counts events of any kind"),
        ("avg(a[i-1].ts) > 1", "avg(a[i-1].ts)", "avg needs numbers, and 'ts' is timestamp[us]", "count(a[..i-1]) counts"),
        ("max(a[].flag)", "max(a[].flag)", "max needs numbers, times or strings, and 'flag' is bool", None),
        ("min(a[].list) > 1", "min(a[].list)", "min needs numbers, times or strings", None),
        ("b.s > 1", "b.s > 1", "cannot compare b.s (string) with a number", "write strings in single quotes"),
        ("a[i].s = a[i-1].n", "a[i].s = a[i-1].n", "cannot compare a[i].s (string) with a[i-1].n (int32)", None),
        ("a.LEN = 'x'", "a.LEN = 'x'", "cannot compare a.LEN (int64) with a string", None),
        ("b.list = 3", "b.list", "cannot compare b.list", None),
        ("b.s * 2 > 1", "b.s", "cannot compute b.s (string) with '*'", None),
        ("b.flag > a[1].flag", "b.flag > a[1].flag", "truth values are not ordered", None),
        ("b.n like 'x'", "b.n", "LIKE needs a string, not b.n (int32)", None),
        ("b.ts > 'soon'", "'soon'", "'soon' is no time", None),
        ("[s, ss]", "ss", "unknown attribute 'ss' in an equivalence test", "did you mean 's'?"),
        ("[list]", "list", "cannot partition by 'list'", None),
    ],
)  # fmt: skip
def test_conditions_refused(conditions: str, place: str, message: str, hint: str | None) -> None:
    error = refused(where(conditions), place)
    assert message in error.message
    assert hint is None or hint in (error.hint or "")


def test_the_place_of_an_unknown_attribute() -> None:
    assert str(refused(where("[s]\n  and a[i].x > avg(a[i-1].prize)"), "avg(a[i-1].prize)")).split("\n") == [
        "line 2, column 16: unknown attribute 'prize'",
        "    and a[i].x > avg(a[i-1].prize) } ",
        "                 ^^^^^^^^^^^^^^^^^",
        "hint: known attributes: type, ts, n, x, d, s, flag, list",
    ]


def test_returns_refused() -> None:
    assert "unknown attribute 'y'" in refused(f"{START} RETURN b.x, b.y", "b.y").message
    assert "cannot compute" in refused(f"{START} RETURN b.s + 1 AS z", "b.s").message


@pytest.mark.parametrize(
    ("components", "place"), [("(B|CC) b", "CC"), ("B b, ~(CC c)", "CC"), ('"CC"+ a[], B b', '"CC"')]
)
def test_types_that_no_stream_declares(components: str, place: str) -> None:
    error = refused(f"PATTERN SEQ({components}) WITHIN 1 s", place, types=frozenset({"A", "B", "C"}))
    assert error.message == "no stream declares the event type 'CC'"
    assert error.hint == "did you mean 'C'?"


def test_windows_refused() -> None:
    assert "no time column is named" in refused(f"{START} WITHIN 1000", "1000", time=None).message
    assert "no time column is named" in refused(f"{START} WITHIN 3 s", "3 s", time=None).message
    assert "unknown attribute 'tz'" in refused(f"{START} WITHIN 3 s [tz]", "tz").message
    assert "what is a second of it?" in refused(f"{START} WITHIN 3 s", "3 s", time="n").message
