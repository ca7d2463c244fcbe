"""The reference of MATCH_RECOGNIZE: words in the order of preferment, found by the definition itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stretto.errors import DataError, LimitError
from stretto.languages.match_recognize import parse
from stretto.query.passes.bind_rows import bind
from stretto.reference.match_recognize import evaluate
from tests.cases import agree, rows
from tests.conftest import blocks, cases


def words(pattern: str, letters: str, rest: str = "") -> list[str]:
    """The classifiers of each match over rows that satisfy those variables only which their letter names, ``*`` all of them."""
    table = pa.table({"t": range(len(letters)), "x": list(letters)})
    names = [name for name in "ABC" if name in pattern.replace("PERMUTE", "")]
    define = ", ".join(f"{name} AS x IN ('{name}', '*')" for name in names)
    text = (
        f"MATCH_RECOGNIZE (ORDER BY t MEASURES array_agg(CLASSIFIER()) AS word ONE ROW PER MATCH {rest} "
        f"PATTERN ({pattern}){' DEFINE ' * bool(names)}{define})"
    )
    found = evaluate(bind(parse(text), table.schema), table)
    return ["".join(one or ()) for one in found.column("word").to_pylist()]


@pytest.mark.parametrize(
    ("pattern", "letters", "expected"),
    [
        ("A B", "ABAB", ["AB", "AB"]),
        ("A | A B", "AB", ["A"]),
        ("A B | A", "AB", ["AB"]),
        ("A*", "AAB", ["AA", ""]),
        ("A*?", "AA", ["", ""]),
        ("A+?", "AA", ["A", "A"]),
        ("A+? B", "AAB", ["AAB"]),
        ("A? B?", "AB", ["AB"]),
        ("A?? B", "AB", ["AB"]),
        ("A{2}", "AAAAA", ["AA", "AA"]),
        ("A{2,3}", "AAAAA", ["AAA", "AA"]),
        ("A{2,3}?", "AAAAA", ["AA", "AA"]),
        ("A{,2}", "AAA", ["AA", "A"]),
        ("A{2,}", "AAAAA", ["AAAAA"]),
        ("PERMUTE(A, B, C)", "CAB", ["CAB"]),
        ("PERMUTE(A, B)", "**", ["AB"]),
        ("PERMUTE(A, B, C)", "B**", ["BAC"]),
        ("(A | B)*", "**", ["AA"]),
        ("(A*)*", "AA", ["AA"]),
        ("(A??)*", "A", ["A"]),
        ("(A??){0,1}", "A", ["A"]),
        ("(A??){1,2}", "A", ["A"]),
        ("(A??)+?", "A", [""]),
        ("^ A", "AA", ["A"]),
        ("A $", "AA", ["A"]),
        ("^ $", "A", []),
        ("()", "AA", ["", ""]),
        ("A (B | ()) C", "ACABC", ["AC", "ABC"]),
    ],
)
def test_order_of_preferment(pattern: str, letters: str, expected: list[str]) -> None:
    assert words(f"{pattern}", letters) == expected


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ("", ["ABBC", "ABC"]),
        ("AFTER MATCH SKIP TO NEXT ROW", ["ABBC", "BBC", "BC", "ABC", "BC"]),
        ("AFTER MATCH SKIP TO FIRST B", ["ABBC", DataError]),
        ("AFTER MATCH SKIP TO LAST C", ["ABBC", "ABC"]),
        ("AFTER MATCH SKIP TO A", [DataError]),
    ],
)
def test_where_the_next_match_begins(skip: str, expected: list[object]) -> None:
    if DataError in expected:
        with pytest.raises(DataError, match="AFTER MATCH SKIP TO"):
            words("A? B+ C", "ABBCABC", skip)
    else:
        assert words("A? B+ C", "ABBCABC", skip) == expected


def test_a_match_that_takes_too_many_steps_is_refused() -> None:
    table = pa.table({"t": range(20)})
    text = "MATCH_RECOGNIZE (ORDER BY t PATTERN ((A | B)* C) DEFINE C AS FALSE)"
    with pytest.raises(LimitError, match="more than 1,000 steps"):
        evaluate(bind(parse(text), table.schema), table, most_steps=1000)


@pytest.mark.parametrize("seeds", blocks(cases(1_500, compiled=60)), ids=str)
def test_partitions_do_not_see_each_other(seeds: range) -> None:
    assert sum(agree(rows, seeds)) > 0
