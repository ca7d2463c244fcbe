"""CEQL under random input: any text is a query or a QueryError, and printed patterns read back."""

from __future__ import annotations

import re
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import QueryError
from stretto.languages.ceql import parse
from stretto.query import predicate as p
from stretto.query.algebra import As, Atom, Filter, Or, Pattern, Plus, Sequence, fold, variables
from stretto.query.query import ParsedQuery
from tests.conftest import cases
from tests.languages.mutating import LONG, check_place, mutations

QUERIES = [
    'SELECT * FROM Stock WHERE SELL as msft; SELL as intel; SELL as amzn FILTER msft[name="MSFT"] AND '
    'msft[price > 100] AND intel[name="INTC"] AND amzn[name="AMZN"] AND amzn[price < 2000]',
    "SELECT b FROM Stock WHERE (BUY or SELL) as s; (BUY or SELL) as b PARTITION BY [name], [volume] WITHIN 1 minute",
    "SELECT MAX * FROM Stock WHERE (BUY OR SELL) as low; (BUY OR SELL)+ as mid; (BUY OR SELL as) high "
    "FILTER low[price < 100] AND mid[price >= 100] AND mid[price <= 2000] AND high[price > 2000] PARTITION BY [name]",
    "SELECT * FROM S WHERE (SELL as msft; (BUY OR SELL)+ as qqq; SELL as amat) FILTER msft[name = ’MSFT’] AND "
    "qqq[name = ’QQQ’] and qqq[volume=4000] AND amat[name = ’AMAT’] WITHIN 30000 [stock_time] CONSUME BY ANY LIMIT 3",
    "SELECT NEXT a[x, `y z`], S>B FROM S, T WHERE ((A FILTER A[x NOT IN (1, -2.5e3)]) a : S>B:+) /* c */ c "
    "FILTER (a[x IS NOT NULL OR NOT y LIKE 'a''%'] OR c[-x * (y + 1) BETWEEN 1 AND 2]) WITHIN 1 h 30 min; -- end",
    "SELECT MAX COUNT(*), CAST(SUM(b[x * 2]) AS DOUBLE) AS n, MAX(`a`[y]), COUNT(DISTINCT a, b) AS m FROM S WHERE A AS a; B+ AS b "
    "PARTITION BY [k] GROUP BY [k], a[x, y] WITHIN 10 minutes EVERY 1 minute",
    "SELECT * FROM S WHERE A AS a; B+ AS b GROUP BY () EVERY EVENT ORDER BY - 2 * SUM(b[x]) + COUNT(a) * 3 DESC LIMIT 3",
    "SELECT NONE FROM S WHERE A; B SAMPLE 100 SEED 7",
]
TOKENS = re.compile(r"\w+|'[^']*'|’[^’]*’|\s+|.", re.DOTALL)


def read(text: str) -> ParsedQuery | None:
    """The query, or ``None`` where it is refused; anything but a QueryError fails the test."""
    try:
        query = parse(text)
    except QueryError as error:
        check_place(text, error)
        return None
    assert query.text == text
    return query


def test_the_seeds_are_queries() -> None:
    for text in QUERIES:
        assert read(text) is not None


@settings(max_examples=cases(500))
@given(st.text(max_size=80))
def test_random_text(text: str) -> None:
    read(text)
    read(f"SELECT * FROM S WHERE {text}")
    read(f"SELECT * FROM S WHERE A FILTER A[{text}]")
    read(f"SELECT {text} FROM S WHERE A WITHIN {text}")


WORDS = sorted(
    {token for text in QUERIES for token in TOKENS.findall(text)} | {'"', "'", "’", "/*", "--", "\0", "\ud800"}
)


@settings(max_examples=cases(500))
@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
def test_random_words(text: str) -> None:
    read(text)
    read(f"SELECT * FROM S WHERE A {text}")


@settings(max_examples=cases(1_000))
@given(mutations([TOKENS.findall(text) for text in QUERIES]))
def test_mutated_queries(text: str) -> None:
    query = read(text)
    if query is not None and "π" not in text:
        again = parse(f"SELECT * FROM S, T, Stock, {', '.join(_streams(query))} WHERE {query.pattern}")
        assert again.pattern == query.pattern


def _streams(query: ParsedQuery) -> list[str]:
    others = [f'"{stream}"' for stream in query.streams if stream not in ("S", "T", "Stock")]
    return others or ["other"]


# ---- Round trips


WORD_LIKE = st.sampled_from(["A", "B", "x", "limit", "NONE", "events", "by", "in", "like", "_1", "größe"])
NAMES = st.one_of(WORD_LIKE, st.sampled_from(["from", "AND", "filter", "a b", 'q"', "`", "1a", "a>b", ""]).filter(bool))
ATTRIBUTES = st.sampled_from(["x", "price", "größe", "from", "limit", "a b", 'q"', "`", "1a", "]", "'"]).map(
    p.Attribute
)
NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=3),
    st.sampled_from([Decimal("1E+5"), Decimal("1E-30"), Decimal("-0.1")]),
)
CONSTANTS = st.one_of(NUMBERS, st.text(max_size=5), st.booleans()).map(p.Constant)
OPERANDS: st.SearchStrategy[p.Operand] = st.recursive(
    st.one_of(ATTRIBUTES, CONSTANTS),
    lambda below: st.one_of(
        st.builds(p.Arithmetic, st.sampled_from("+-*/%"), below, below),
        below.filter(lambda operand: not isinstance(operand, p.Constant)).map(p.Negative),
    ),
    max_leaves=4,
)
SIMPLE = st.one_of(
    st.builds(p.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), OPERANDS, OPERANDS),
    st.builds(p.In, OPERANDS, st.lists(CONSTANTS, min_size=1, max_size=3).map(tuple)),
    st.builds(p.Between, OPERANDS, OPERANDS, OPERANDS),
    st.builds(p.Like, OPERANDS, st.text(max_size=5)),
    st.builds(p.IsNull, OPERANDS),
).filter(p.attributes)


def _flat(kind: type[p.And] | type[p.Or], parts: list[p.Predicate]) -> p.Predicate:
    flat: list[p.Predicate] = []
    for part in parts:
        flat += part.parts if isinstance(part, p.And | p.Or) and type(part) is kind else (part,)
    return kind(tuple(flat))


PREDICATES: st.SearchStrategy[p.Predicate] = st.recursive(
    SIMPLE,
    lambda below: st.one_of(
        st.lists(below, min_size=2, max_size=3).map(lambda parts: _flat(p.And, parts)),
        st.lists(below, min_size=2, max_size=3).map(lambda parts: _flat(p.Or, parts)),
        below.map(p.Not),
    ),
    max_leaves=4,
)


@settings(max_examples=cases(500))
@given(PREDICATES)
def test_predicates_read_back(predicate: p.Predicate) -> None:
    found = parse(f"SELECT * FROM S WHERE A FILTER A[{predicate}]").pattern
    assert found == Filter(Atom("A"), "A", predicate)


ATOMS = st.builds(Atom, NAMES, st.one_of(st.none(), st.sampled_from(["S", "my stream", "where"])))


def _sequence(parts: list[Pattern], joints: list[bool]) -> Sequence:
    return Sequence(tuple(parts), tuple(joints[: len(parts) - 1]))


@st.composite
def filtered(draw: st.DrawFn, below: st.SearchStrategy[Pattern]) -> Filter:
    body = draw(below)
    return Filter(body, draw(st.sampled_from(sorted(variables(body)))), draw(PREDICATES))


PATTERNS: st.SearchStrategy[Pattern] = st.recursive(
    ATOMS,
    lambda below: st.one_of(
        st.builds(As, below, NAMES),
        st.builds(Plus, below, st.booleans()),
        st.lists(below, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
        st.builds(
            _sequence,
            st.lists(below, min_size=2, max_size=3),
            st.lists(st.booleans(), min_size=2, max_size=2),
        ),
        filtered(below),
    ),
    max_leaves=8,
)


def flatten(pattern: Pattern) -> Pattern:
    """Chains as one node each, whatever their brackets."""
    return fold(pattern, _flatten)


def _flatten(node: Pattern) -> Pattern:
    if isinstance(node, Or):
        return Or(
            tuple(one for part in node.alternatives for one in (part.alternatives if isinstance(part, Or) else [part]))
        )
    if isinstance(node, Sequence):
        parts: list[Pattern] = []
        joints: list[bool] = []
        for part, joint in zip(node.parts, (*node.contiguous, False), strict=True):
            inner = part if isinstance(part, Sequence) else None
            parts += inner.parts if inner else (part,)
            joints += (*inner.contiguous, joint) if inner else (joint,)
        return Sequence(tuple(parts), tuple(joints[:-1]))
    return node


@settings(max_examples=cases(1_000))
@given(PATTERNS)
def test_patterns_read_back(pattern: Pattern) -> None:
    found = parse(f'SELECT * FROM S, "my stream", "where" WHERE {pattern}').pattern
    assert flatten(found) == flatten(pattern)


# ---- Depth and length


@settings(max_examples=cases(100))
@given(
    st.lists(
        st.sampled_from(
            ["(", ")", "A", ";", ":", "+", ":+", " AS x", " OR ", " FILTER ", "A[x]", "[", "x", "NOT ", "- ", "'", "1", " AND "]
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 3_000),
    st.sampled_from(["SELECT * FROM S WHERE ", "SELECT * FROM S WHERE A FILTER A[", "SELECT ", ""]),
)  # fmt: skip
def test_repetition(pieces: list[str], times: int, before: str) -> None:
    read(before + "".join(pieces) * times)
    read(before + "".join(pieces) * times + "A" + ")" * times)


@pytest.mark.parametrize(
    "piece",
    [
        *("(", ")", "'", "''", '"', "’", "`", "/*", "/* */", "--", "-- \n", ";", ";--\n", "A;", "A OR ", "A+", "+", ":", "x "),
        *("A[", "A[x] OR ", "A[x] AND ", "(A[x] OR A[y]) AND ", "x AND ", "NOT ", "-x", "1", ".", "e", "1 +", " ", "\n", "\0"),
        *("AS x ", "FILTER A[x]", "S>", "x,", "[x],", "1 s ", "as ) ", "as  ", "\ufeff", "𝄞"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "SELECT ", "SELECT * FROM S WHERE ", "SELECT * FROM S WHERE A FILTER A[x > "])
def test_a_very_long_text(before: str, piece: str) -> None:
    began = time.process_time()
    read(before + piece * (LONG // len(piece)))
    assert time.process_time() - began < 30 * LONG / 100_000
