"""The reference of MATCH_RECOGNIZE: words in the order of preferment, found by the definition itself."""

from __future__ import annotations

import itertools
import re

import pyarrow as pa
import pytest

from stretto.errors import DataError, LimitError
from stretto.languages.match_recognize import parse
from stretto.query import row_pattern as r
from stretto.query.passes.bind_rows import bind
from tests.cases import agree, rows
from tests.cases.choices import Seeded
from tests.conftest import blocks, cases
from tests.reference.match_recognize import evaluate


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


def _regex(pattern: r.RowPattern) -> str:
    """The same as a regular expression of Python's, which prefers as the standard does; a row is a letter."""
    match pattern:
        case r.Variable(name):
            return f"[{name}*]"
        case r.Empty():
            return "(?:)"
        case r.Anchor(start):
            return "^" if start else "\\Z"
        case r.Concatenation(parts):
            return "".join(map(_regex, parts))
        case r.Alternation(parts):
            return f"(?:{'|'.join(map(_regex, parts))})"
        case r.Permutation(parts):
            orders = itertools.permutations(map(_regex, parts))
            return f"(?:{'|'.join(map(''.join, orders))})"
        case r.Excluded(part):
            return _regex(part)
        case r.Quantified(part, least, most, reluctant):
            return f"(?:{_regex(part)}){{{least},{'' if most is None else most}}}{'?' * reluctant}"


def _takes_rows(pattern: r.RowPattern) -> bool:
    """Whether what a quantifier repeats takes a row each time; where it does not, Python's expressions go their own way."""
    inside = (one.part for one in r.parts_of(pattern) if isinstance(one, r.Quantified))
    return all(re.compile(_regex(part).replace("^", "").replace("\\Z", "")).fullmatch("") is None for part in inside)


@pytest.mark.parametrize("seeds", blocks(cases(1_500, compiled=60)), ids=str)
def test_matches_are_those_of_regular_expressions(seeds: range) -> None:
    compared = 0
    for seed in seeds:
        pattern = parse(rows.case(seed).clause, window=True).pattern
        if not _takes_rows(pattern):
            continue
        choose = Seeded(seed)
        letters = "".join(choose.one_of(["A", "B", "C", "D", "*"]) for _ in range(choose.integer(1, 8)))
        table = pa.table({"t": range(len(letters)), "x": list(letters)})
        variables = {one.name for one in r.parts_of(pattern) if isinstance(one, r.Variable)}
        define = ", ".join(f"{name} AS x IN ('{name}', '*')" for name in sorted(variables))
        text = (
            "MATCH_RECOGNIZE (ORDER BY t MEASURES FIRST(t) AS start, count(*) AS rows ONE ROW PER MATCH "
            f"AFTER MATCH SKIP TO NEXT ROW PATTERN ({pattern}){' DEFINE ' * bool(define)}{define})"
        )
        found = evaluate(bind(parse(text), table.schema), table).to_pylist()
        expression = re.compile(_regex(pattern))
        matches = [one for at in range(len(letters)) if (one := expression.match(letters, at)) is not None]
        expected = [{"start": one.start() if one.group() else None, "rows": len(one.group())} for one in matches]
        assert found == expected, f"seed {seed}: {pattern} on {letters}"
        compared += 1
    assert compared > 0


def test_a_match_that_takes_too_many_steps_is_refused() -> None:
    table = pa.table({"t": range(20)})
    text = "MATCH_RECOGNIZE (ORDER BY t PATTERN ((A | B)* C) DEFINE C AS FALSE)"
    with pytest.raises(LimitError, match="more than 1,000 steps"):
        evaluate(bind(parse(text), table.schema), table, most_steps=1000)


@pytest.mark.parametrize("seeds", blocks(cases(1_500, compiled=60)), ids=str)
def test_partitions_do_not_see_each_other(seeds: range) -> None:
    assert sum(agree(rows, seeds)) > 0
