"""SASE+ under random input: any text is a query or a QueryError, and printed conditions read back."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stretto.errors import QueryError
from stretto.languages.sase import is_sase, parse
from stretto.query import predicate as p
from stretto.query.sase import Component, Element, Index, SaseQuery
from tests.conftest import cases
from tests.languages.mutating import LONG, check_place, mutations

QUERIES = [
    "PATTERN SEQ(Shelf a, ~(Register b), Exit c) WHERE skip_till_next_match(a, b, c) { a.tag_id = b.tag_id "
    "and a.tag_id = c.tag_id /* equivalently, [tag_id] */ } WITHIN 12 hours",
    "PATTERN SEQ(Alert a, Shipment+ b[]) WHERE skip_till_any_match(a, b[ ]) { a.type = 'contaminated' "
    "and b[1].from = a.site and b[i].from = b[i-1].to } WITHIN 3 hours OUTPUT compressed, all",
    "PATTERN SEQ(Stock+ a[], Stock b) WHERE skip_till_next_match(a[], b) { [symbol] and a[1].volume > 1000 "
    "and a[i].price > avg(a[i-1].price) and b.volume < 80%*a[a.LEN].volume } WITHIN 1 hour LIMIT 3",
    "PATTERN(STOCK+ a[], STOCK b) WHERE partition_contiguity {[symbol] ∧ a[1].price %500==0 ∧ True ∧ b.volume < 150} "
    "WITHIN 500 RETURN a.LEN, avg(a[].x) * 5% AS y, b.x, a[a.LEN].`odd name` OUTPUT non_overlap;",
    'PATTERN (("T 1"|U)+ a, NOT V n, B b) WHERE strict_contiguity { ([x, `y z`] and n.x IN (1, -2.5e3)) and '
    "not (count(a[..i]) >= 3 or a[i].s LIKE 'a''%' or n.x is not null) and b.x between -b.y and b.z } -- end",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] } WITHIN 10 minutes RETURN TOTAL count(*), "
    "cast(sum(b[].x * b[].y) as double) AS n, min(a.x), count(b[]) GROUP BY a.x, [k] EVERY 1 minute",
    "PATTERN SEQ(A a, B+ b[]) RETURN a.x ORDER BY sum(b[].x) - 2 * count(b[]) DESC LIMIT 3 EVERY EVENT GROUP BY ()",
    "PATTERN SEQ(A a) SAMPLE 100 SEED 7",
]
TOKENS = re.compile(r"\w+|'[^']*'|’[^’]*’|\s+|.", re.DOTALL)


def read(text: str) -> SaseQuery | None:
    """The query, or ``None`` where it is refused; anything but a QueryError fails the test."""
    try:
        query = parse(text)
    except QueryError as error:
        check_place(text, error)
        return None
    assert query.text == text
    assert is_sase(text)
    _check_query(query)
    return query


def _check_query(query: SaseQuery) -> None:
    """Every name of the expressions is a reference to a component that it suits."""
    trees: list[p.Expression] = [
        *([query.condition] if query.condition else []),
        *(i.value for i in query.returns or ()),
    ]
    names = {name for tree in trees for name in p.attributes(tree)}
    assert names == set(query.references)
    components = {one.variable: one for one in query.components}
    assert len(components) == len(query.components)
    assert query.positive
    for name, reference in query.references.items():
        assert str(reference) == name
        single = isinstance(reference, Element) and reference.index is Index.ONLY
        assert components[reference.variable].kleene is not single


def test_the_seeds_are_queries() -> None:
    for text in QUERIES:
        assert read(text) is not None


START = "PATTERN SEQ(A+ a[], B b, ~(N n))"
INSIDE = f"{START} WHERE skip_till_any_match {{ "


@settings(max_examples=cases(500))
@given(st.text(max_size=80))
def test_random_text(text: str) -> None:
    read(text)
    read(f"PATTERN SEQ({text})")
    read(f"{INSIDE}{text}}}")
    read(f"{INSIDE}b.x > {text}}}")
    read(f"{START} RETURN {text}")
    read(f"{START} WITHIN {text}")


WORDS = sorted(
    {token for text in QUERIES for token in TOKENS.findall(text)}
    | {'"', "'", "’", "/*", "--", "\0", "\ud800", "%", "..", "["}
)


@settings(max_examples=cases(500))
@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
@example("* /")
def test_random_words(text: str) -> None:
    read(text)
    read(f"{START} {text}")
    read(f"{INSIDE}{text} }}")


def _written(component: Component) -> str:
    """A component with its types in quotes, whatever their names."""
    types = "|".join("`" + name.replace("`", "``") + "`" for name in component.types)
    return f"{'~' * component.negated}({types}){'+' * component.kleene} {component.variable}"


@settings(max_examples=cases(1_500))
@given(mutations([TOKENS.findall(text) for text in QUERIES]))
def test_mutated_queries(text: str) -> None:
    query = read(text)
    if query is not None and query.condition is not None:
        pattern = ", ".join(map(_written, query.components))
        again = parse(f"PATTERN SEQ({pattern}) WHERE strict_contiguity {{ {query.condition} }}")
        assert again.condition == query.condition
        assert again.references.items() <= query.references.items()


@settings(max_examples=cases(100))
@given(
    st.lists(
        st.sampled_from(
            [
                *("(", ")", "a[i].x", "b.x", "[x]", "[", "]", "avg(", "a[..i]", ".", "..", " and ", " or ", "not "),
                *("- ", "'", "1%", "%", ",", "> 1", "}"),
            ]
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 3_000),
    st.sampled_from([INSIDE, "PATTERN SEQ(", f"{START} RETURN ", ""]),
)  # fmt: skip
def test_repetition(pieces: list[str], times: int, before: str) -> None:
    read(before + "".join(pieces) * times)
    read(before + "".join(pieces) * times + "b.x" + ")" * times + " }")


@pytest.mark.parametrize(
    "piece",
    [
        *("(", ")", "'", "''", '"', "’", "`", "/*", "/* */", "--", "-- \n", ";", "A a,", "~", "~(", "(A|", "+", "x ", "{", "}"),
        *("[", "[x] and ", "[x,", "b.x and ", "not ", "-b.x", "b.", "a[", "a[i].x + ", "a[i-1].x > ", "avg(", "avg(a[].x),", "1%"),
        *("1%/*", "1% ", "1%--\n", "1", ".", "..", "e", "1 +", " ", "\n", "\0", "1 s ", "all ", "all,", "a-", "\ufeff", "𝄞"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "before", ["", "PATTERN SEQ(", INSIDE, f"{INSIDE}b.x > ", f"{START} RETURN ", f"{START} OUTPUT "]
)
def test_a_very_long_text(before: str, piece: str) -> None:
    began = time.process_time()
    text = before + piece * (LONG // len(piece))
    read(text)
    is_sase(text)
    assert time.process_time() - began < 30 * LONG / 100_000


def test_a_broad_comparison() -> None:
    """Sums of sums: 2^13 references in one comparison."""
    sums = [f"a[i-1].x{number}" for number in range(2**13)]
    while len(sums) > 1:
        sums = [f"({left}+{right})" for left, right in zip(sums[::2], sums[1::2], strict=True)]
    began = time.process_time()
    assert read(f"{INSIDE}{sums[0]} > 1 }}") is not None
    assert read(f"{INSIDE}{sums[0]} > b.x }}") is None
    assert time.process_time() - began < 30
