"""The exact texts of errors (``errors/*.txt``), and what no text file shows."""

from __future__ import annotations

import pickle

import pytest

from stretto.dataflow import datalog
from stretto.errors import OptionError, QueryError, Span
from stretto.languages import ceql, sase
from tests.golden.errors import FOLDER, READERS, cases_of, error_of

CASES = [(name, *case) for name in READERS for case in cases_of(FOLDER / f"{name}.txt")]


@pytest.mark.parametrize(("name", "text", "expected"), CASES, ids=[f"{name}: {text}" for name, text, _ in CASES])
def test_the_text_of_an_error(name: str, text: str, expected: str) -> None:
    """Also where it has travelled from one process to another."""
    error = error_of(name, text)
    assert str(error) == expected
    assert str(pickle.loads(pickle.dumps(error))) == expected


def test_every_file_is_read() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(READERS)
    assert len(CASES) > 350


@pytest.mark.parametrize(
    ("reader", "before", "text", "after"),
    [
        (ceql.parse, "SELECT * FROM S WHERE ", "A", ""),
        (sase.parse, "PATTERN SEQ(A a) WHERE strict_contiguity { ", "a.x > 1", " }"),
    ],
    ids=["ceql", "sase"],
)
def test_nesting(reader, before: str, text: str, after: str) -> None:  # type: ignore[no-untyped-def]
    whole = before + "(" * 201 + text + ")" * 201 + after
    with pytest.raises(QueryError, match="nested more than 200 levels deep") as caught:
        reader(whole)
    assert caught.value.span == Span(len(before), len(whole) - len(after))


def test_copies() -> None:
    conditions = " AND ".join(["(A[x] OR A[y])"] * 11)
    with pytest.raises(QueryError) as caught:
        ceql.parse(f"SELECT * FROM S WHERE A FILTER {conditions}")
    assert caught.value.message == "OR in FILTER writes the formula out once for each choice, here 2048 times"
    assert caught.value.hint == "put the OR inside the brackets where it is about one variable: x[p OR q]"


def test_an_error_travels_with_its_place() -> None:
    error = error_of("ceql", "SELECT * FROM S WHERE A FITLER A[x > 1]")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, QueryError)
    assert (again.line, again.column) == (1, 25)


@pytest.mark.parametrize(
    ("name", "bound", "message"),
    [
        ("Link", None, "a program cannot name the source 'Link': names begin with a small letter, as 'link' does"),
        ("a b", None, "a program cannot name the source 'a b': names begin with a small letter, as 'link' does"),
        ("not", None, "a program cannot name the source 'not': names begin with a small letter, as 'link' does"),
        ("link", 0, "bound must be a positive integer, not 0"),
        ("link", True, "datalog(bound=True): expected an integer or None, and got a bool"),
    ],
)
def test_options_of_datalog(name: str, bound: int | None, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        datalog("p(X) :- link(X).", {name: {"x": int}}, bound=bound)
    assert str(caught.value) == message
