"""Texts that differ in constants only: what is read of the second is what is read of it alone, all places included."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import stretto
from stretto.errors import QueryError
from stretto.languages.ceql import parser
from stretto.languages.ceql.parser import Known, shape_of
from tests.cases import ceql
from tests.cases.choices import Seeded
from tests.conftest import cases

SCHEMA = {"type": "string", "name": "string", "v": "int64", "price": "double", "t": "timestamp[ms]"}


def whole(value: Any) -> Any:
    """A value with all that it holds, which equality and texts leave out: places and the types of constants."""
    if is_dataclass(value):
        return type(value).__name__, {one.name: whole(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple | list):
        return [whole(one) for one in value]
    return type(value).__name__, value


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a text is, or its error, if nothing was read before."""

    def read(text: str) -> Any:
        monkeypatch.setattr(parser, "_KNOWN", Known())
        return told(text)

    return read


def told(text: str) -> Any:
    try:
        return whole(parser.parse(text))
    except QueryError as error:
        return str(error)


def other(text: str, choose: Seeded) -> str:
    """The text with other letters in its strings and other digits in its numbers, here and there."""

    def drawn(match: re.Match[str]) -> str:
        return match[0] if choose.chance(40) else choose.one_of("0123456789" if match[0].isdigit() else "abxyz ,")

    in_strings = re.sub(r"'[^']*'", lambda one: "'" + re.sub(r"[a-z]", drawn, one[0][1:-1]) + "'", text)
    return re.sub(r"(?<![\w])[0-9]", drawn, in_strings)


def test_random_texts_are_what_they_are_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several texts of one shape, one after the other."""
    taken = 0
    for seed in range(cases(400)):
        choose = Seeded(seed)
        text = ceql.case(seed).query
        texts = [text, *(other(text, choose) for _ in range(4))]
        right = []
        for one in texts:
            monkeypatch.setattr(parser, "_KNOWN", Known())
            right.append(told(one))
        known = Known()
        monkeypatch.setattr(parser, "_KNOWN", known)
        for one, expected in zip(texts, right, strict=True):
            taken += known.find(shape_of(one), one) is not None
            assert told(one) == expected, (seed, one, texts)
    assert taken > cases(400)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x[name = 'a''b' AND v > 10]", "x[name = 'cccc' AND v > 99]"),
        ("x[v > 1.5]", "x[v > 2.0]"),
        ("x[v > 1e5]", "x[v > 2e3]"),
        ("x[v > -5]", "x[v > -7]"),
        ("x[name LIKE 'a%']", "x[name LIKE 'b_']"),
        ("x[v IN (1, 2)]", "x[v IN (1, 1)]"),
        ("x[v + 1 > 2]", "x[v + 3 > 4]"),
        ("x[v = CASE WHEN v > 1 THEN 2 ELSE 3 END]", "x[v = CASE WHEN v > 5 THEN 6 ELSE 7 END]"),
        ("x[v = 1 -- 2\n]", "x[v = 3 -- 2\n]"),
        ("x[v = 1 -- 2\n]", "x[v = 1 -- 3\n]"),
        ("x[v = 1 /* ' */ AND name = 'b']", "x[v = 2 /* ' */ AND name = 'c']"),
        ('x[name = "b1" AND v = 1]', 'x[name = "b2" AND v = 2]'),
        ("x[name = 'b' AND `v` = 1]", "x[name = 'c' AND `w` = 2]"),
        ("x[NOT (v = 1 OR 2 < v)]", "x[NOT (v = 2 OR 1 < v)]"),
        ("x[v = 1 OR v = 2]", "x[v = 1 OR v = 1]"),
        ("x[t > '2024-01-01']", "x[t > '2024-99-01']"),
        ("x[round(price, 1) = 1]", "x[round(price, 2) = 2]"),
        ("x[1 = v]", "x[1 = 1]"),
    ],
)
def test_constants_of_all_kinds(first: str, second: str, alone: Any) -> None:
    for end in ("", " WITHIN 10 EVENTS", " LIMIT 1"):
        texts = [f"SELECT * FROM S WHERE A AS x ; B AS y FILTER {one}{end}" for one in (first, second)]
        right = [alone(text) for text in texts]
        alone(texts[0])
        assert told(texts[1]) == right[1]
        alone(texts[1])
        assert told(texts[0]) == right[0]


def test_windows_counts_and_limits_are_no_constants_that_may_differ() -> None:
    for text in (
        "WHERE A{2} ; B",
        "WHERE A ; B WITHIN 2 EVENTS",
        "WHERE A ; B LIMIT 2",
        "WHERE A ; B AFTER 2 seconds [t]",
    ):
        other_text = text.replace("2", "3")
        both = [stretto.compile(f"SELECT * FROM S {one}") for one in (text, other_text)]
        said = [(one.parsed.pattern, one.window, one.limit) for one in both]
        assert said[0] != said[1]


def test_errors_of_a_schema_have_their_own_places_and_values() -> None:
    text = "SELECT * FROM S WHERE A AS x ; B AS y FILTER x[name = 'ab'] AND y[t > '2024-01-01']"
    stretto.compile(text, SCHEMA)
    with pytest.raises(QueryError) as raised:
        stretto.compile(text.replace("2024-01-01", "2024-31-01"), SCHEMA)
    assert "2024-31-01" in str(raised.value)
    assert raised.value.span is not None
    assert text[raised.value.span.start : raised.value.span.end] == "'2024-01-01'"


def test_a_text_that_was_not_read_is_read() -> None:
    parser.parse("SELECT * FROM S WHERE A AS x FILTER x[v = 1]")
    with pytest.raises(QueryError, match="the query ends"):
        parser.parse("SELECT * FROM S WHERE A AS x FILTER x[v = 1")
