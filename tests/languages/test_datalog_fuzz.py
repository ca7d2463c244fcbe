"""Datalog under random input: any text is a program or a QueryError, and what is printed reads back."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.dataflow import datalog
from stretto.errors import QueryError
from stretto.languages.datalog import Aggregate, Atom, Head, Literal, Program, Rule, read_program
from stretto.languages.datalog.transformer import AGGREGATES
from stretto.query import predicate as p
from tests.cases.datalog import SOURCES, program_of
from tests.conftest import cases
from tests.languages.mutating import LONG, check_place, mutations

PROGRAMS = [
    "reach(X, Y) :- e(X, Y). reach(X, Z) :- e(X, Y), reach(Y, Z). % all",
    "way(X, Y, min<C>) :- w(X, Y, C). way(X, Z, min<C>) :- w(X, Y, A), A >= 0, way(Y, Z, B), C = A + B, not f(X, 'it''s').",
    'n(X, count<*>, avg<S>) :- x(X, S), S * 2 - 1 < 3.5, ok(X, true). /* c */ m(1, -2, abc, "d"). // end',
    "odd(X) :- e(X, _), X % 2 = 1, !even(X). even(X) :- e(X, Y), 0 != Y, X = Y + 1. -- end",
]
TOKENS = re.compile(r"\w+|'[^']*'|:-|[<>!]=|\s+|.", re.DOTALL)


def read(text: str) -> None:
    """Read and check a program; anything but a QueryError fails the test."""
    try:
        datalog(text, SOURCES, bound=10)
    except QueryError as error:
        check_place(text, error)


def test_the_seeds_are_read() -> None:
    for text in PROGRAMS:
        assert datalog(text, SOURCES)


@settings(max_examples=cases(500))
@given(st.text(max_size=60))
def test_random_text(text: str) -> None:
    read(text)
    read(f"p(X) :- e(X, {text}")
    read(f"p({text}).")


SEEDS = [TOKENS.findall(text) for text in PROGRAMS]
WORDS = sorted({token for tokens in SEEDS for token in tokens} | {'"', "'", "/*", "\0", "\ud800", "_", "<", "."})


@settings(max_examples=cases(500))
@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_random_words(text: str) -> None:
    read(text)
    read(f"p(X) :- e(X, Y), {text}.")


@settings(max_examples=cases(1_000))
@given(mutations(SEEDS))
def test_mutations(text: str) -> None:
    read(text)


@settings(max_examples=cases(500))
@given(mutations(SEEDS))
def test_what_is_read_is_printed_and_read_again(text: str) -> None:
    try:
        found = read_program(text)
    except QueryError:
        return
    assert read_program(str(found)) == found


def test_random_programs_read_back() -> None:
    for seed in range(cases(200)):
        found = read_program(program_of(seed))
        assert read_program(str(found)) == found, seed


# ---- Programs as values


NAMES = st.sampled_from(["p", "q", "größe", "nothing", "min", "_x"[1:]])
VARIABLES = st.sampled_from(["X", "Y2", "_", "_v", "NOT", "Ärger"]).map(p.Attribute)
CONSTANTS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000),
    st.booleans(),
    st.text(max_size=5),
).map(p.Constant)


def _more(values: st.SearchStrategy[p.Operand]) -> st.SearchStrategy[p.Operand]:
    several = st.lists(values, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(p.Arithmetic, st.sampled_from("+-*/%"), values, values),
        st.builds(p.Negative, values.filter(lambda one: not isinstance(one, p.Constant))),
        st.builds(p.Call, NAMES, several),
    )


VALUES = st.recursive(st.one_of(VARIABLES, CONSTANTS), _more, max_leaves=6)
ATOMS = st.builds(Atom, NAMES, st.lists(VALUES, min_size=1, max_size=3).map(tuple))
GOALS = st.one_of(
    st.builds(Literal, ATOMS, st.booleans()),
    st.builds(p.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), VALUES, VALUES).filter(p.attributes),
)
HEADS = st.builds(
    Head,
    NAMES,
    st.lists(
        st.one_of(
            VALUES.filter(lambda one: not (isinstance(one, p.Call) and one.name in AGGREGATES)),
            st.builds(Aggregate, st.sampled_from(AGGREGATES), VALUES),
            st.just(Aggregate("count", None)),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
)
RULES = st.builds(Rule, HEADS, st.lists(GOALS, max_size=4).map(tuple))


@settings(max_examples=cases(500))
@given(st.lists(RULES, min_size=1, max_size=3).map(tuple))
def test_programs_read_back(rules: tuple[Rule, ...]) -> None:
    assert read_program(str(Program(rules))) == Program(rules)


# ---- Depth and length


@pytest.mark.parametrize(
    "piece",
    [
        *("(", ")", "'", "''", '"', "/*", "/* */", "--", "-- \n", "%", "% \n", ",", ".", ":-", "p(X).", "e(X, Y), "),
        *("not ", "!", "X + ", "-", "f(", "1 ", "1.", "X < ", "min<", "\0", "\ufeff", "𝄞", "_", "p(X) :- e(X, _). "),
    ],
)
@pytest.mark.parametrize("before", ["", "p(X) :- ", "p("])
def test_a_very_long_text(before: str, piece: str) -> None:
    began = time.process_time()
    read(before + piece * (LONG // len(piece)))
    assert time.process_time() - began < 60 * LONG / 100_000
