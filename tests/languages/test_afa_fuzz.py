"""Fences and transfers under random input: any text is one or a QueryError, and what is printed reads back."""

from __future__ import annotations

import re
import time
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import QueryError
from stretto.languages.afa import Scope, read_fence, read_transfer, read_window
from stretto.languages.afa.parser import AFA
from stretto.languages.afa.scope import Assignments
from stretto.query import predicate as p
from stretto.query.afa import Field
from tests.conftest import cases
from tests.languages.mutating import LONG, check_place, mutations
from tests.languages.test_ceql_fuzz import OPERANDS, PREDICATES

SCOPE = Scope(
    {
        "price": pa.float64(),
        "kind": pa.string(),
        "ts": pa.timestamp("us"),
        "a b": pa.int64(),
        "cost": pa.decimal128(9, 2),
    },
    {"n": pa.int64(), "low": pa.float64(), "tag": pa.string(), "flag": pa.bool_(), "at": pa.timestamp("us")},
)
FENCES = [
    "e.price > r.low AND NOT (e.kind IN ('a', 'b') OR e.kind LIKE 'x%') AND e.`a b` IS NOT NULL",
    "r.n + 1 BETWEEN e.price * 2 AND -(r.low) % 3 OR r.tag = e.kind /* c */ AND r.flag",
    "e.ts >= '2020-01-01' AND e.cost < 0.10 AND e.price <> 1e3 -- end",
]
TRANSFERS = [
    "n = r.n + 1, low = e.price, tag = 'x', flag = TRUE, at = e.ts",
    "(r.n * 2, 0.5, e.kind, r.flag, '2020-01-01')",
    "r.n = 3, `low` := e.cost / 7",
]
WINDOWS = ["1 hour 30 minutes", "500", "0.25 ms"]
TOKENS = re.compile(r"\w+|'[^']*'|`[^`]*`|\s+|.", re.DOTALL)


def read(text: str) -> None:
    """Read a text as each of the forms; anything but a QueryError fails the test."""
    for form in (read_fence, read_transfer):
        for epsilon in (False, True):
            try:
                form(text, SCOPE, epsilon=epsilon)
            except QueryError as error:
                check_place(text, error)
    try:
        read_window(text)
    except QueryError as error:
        check_place(text, error)


def test_the_seeds_are_read() -> None:
    for text in FENCES:
        assert read_fence(text, SCOPE)
    for text in TRANSFERS:
        assert read_transfer(text, SCOPE)
    for text in WINDOWS:
        assert read_window(text)


@settings(max_examples=cases(500))
@given(st.text(max_size=60))
def test_random_text(text: str) -> None:
    read(text)
    read(f"e.price > {text}")
    read(f"n = {text}")
    read(f"({text})")


SEEDS = [TOKENS.findall(text) for text in (*FENCES, *TRANSFERS, *WINDOWS)]
WORDS = sorted(
    {token for tokens in SEEDS for token in tokens} | {'"', "'", "’", "/*", "--", "\0", "\ud800", "e.", "r."}
)


@settings(max_examples=cases(500))
@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_random_words(text: str) -> None:
    read(text)
    read(f"e.price {text}")


@settings(max_examples=cases(1_000))
@given(mutations(SEEDS))
def test_mutations(text: str) -> None:
    read(text)


@settings(max_examples=cases(500))
@given(st.sampled_from(FENCES).map(TOKENS.findall).flatmap(lambda tokens: mutations([tokens])))
def test_what_is_read_is_printed_and_read_again(text: str) -> None:
    try:
        found = read_fence(text, SCOPE)
    except QueryError:
        return
    assert read_fence(str(found), SCOPE) == found


# ---- Round trips


def sided(node: Any, side: str) -> Any:
    """An expression whose attributes have a side."""
    if isinstance(node, p.Attribute):
        return Field(f"{side}.{node.name}")
    if isinstance(node, tuple):
        return tuple(sided(part, side) for part in node)
    if not isinstance(node, p.Expression):
        return node
    return replace(node, **{one.name: sided(getattr(node, one.name), side) for one in fields(node) if one.init})


@settings(max_examples=cases(500))
@given(PREDICATES, st.sampled_from("er"))
def test_predicates_read_back(predicate: p.Predicate, side: str) -> None:
    wanted = sided(predicate, side)
    assert AFA.read(str(wanted), "fence") == wanted


NAMES = st.sampled_from(["x", "größe", "in", "AND", "a b", 'q"', "`", "1a", "r", "e"])


@settings(max_examples=cases(300))
@given(st.lists(st.tuples(NAMES, OPERANDS), min_size=1, max_size=3))
def test_assignments_read_back(pairs: list[tuple[str, p.Operand]]) -> None:
    wanted = [(name, sided(value, "r")) for name, value in pairs]
    found = AFA.read(", ".join(f"{p.Attribute(name)} = {value}" for name, value in wanted), "transfer")
    assert isinstance(found, Assignments)
    assert [(name.text, part.expression) for name, part in found.pairs] == wanted


# ---- Depth and length


@pytest.mark.parametrize(
    "piece",
    [
        *("(", ")", "'", "''", '"', "`", "/*", "/* */", "--", "-- \n", ",", "=", "n = 1,", "e.", "r.n + ", "NOT ", "-"),
        *("e.price > 1 AND ", "f(", "1 ", ".", "\0", "\ufeff", "𝄞", "(r.n, "),
    ],
)
@pytest.mark.parametrize("before", ["", "e.price > ", "n = ", "("])
def test_a_very_long_text(before: str, piece: str) -> None:
    began = time.process_time()
    read(before + piece * (LONG // len(piece)))
    assert time.process_time() - began < 60 * LONG / 100_000
