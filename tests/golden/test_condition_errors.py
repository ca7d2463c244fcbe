"""The exact texts of errors in conditions, which every language words alike."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from stretto import compile as compiled
from stretto.errors import QueryError
from stretto.languages.afa.checking import Scope
from stretto.languages.afa.parser import read_fence
from stretto.languages.datalog.parser import read_program
from stretto.languages.relational import read_condition

ROW = {
    "type": pa.string(),
    "k": pa.string(),
    "x": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "clock": pa.timestamp("ms"),
}

READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "ceql": ("SELECT * FROM S WHERE A AS a FILTER a[{}]", lambda text: compiled(text, schema=ROW)),
    "sase": ("PATTERN SEQ(A a) WHERE skip_till_any_match { {} }", lambda text: compiled(text, schema=ROW)),
    "afa": ("{}", lambda text: read_fence(text, Scope(ROW, {"n": pa.int64()}))),
    "relational": ("{}", lambda text: read_condition(text, ROW)),
    "datalog": ("far(X) :- road(X, _, C), {}.", read_program),
}


def error(language: str, condition: str) -> list[str]:
    """The lines of the error, without those that draw the text."""
    form, read = READERS[language]
    with pytest.raises(QueryError) as caught:
        read(form.replace("{}", condition, 1) if language != "sase" else form.replace("{}", condition))
    return [line for line in str(caught.value).splitlines() if not line.startswith("  ")]


CONSTANTS = "this compares constants only, and no attribute"


@pytest.mark.parametrize(
    ("language", "condition", "expected"),
    [
        *(
            (language, condition, [f"line 1, column {column}: {CONSTANTS}", hint])
            for language, column, own in (("ceql", 39, ""), ("sase", 46, "a."), ("afa", 1, "e."), ("relational", 1, ""))
            for condition, hint in (
                (
                    "\"k\" = 'x'",
                    f'hint: double quotes make a string, "k"; the attribute of that name is written {own}`k`',
                ),
                (
                    "\"a`b\" IN ('x')",
                    f'hint: double quotes make a string, "a`b"; the attribute of that name is written {own}`a``b`',
                ),
                ("'k' = 'x'", "hint: name an attribute, as in price > 3"),
                ("1 + 1 BETWEEN 0 AND 3", "hint: name an attribute, as in price > 3"),
                ("'k' NOT LIKE 'k%'", "hint: name an attribute, as in price > 3"),
                ("1 IS NOT NULL", "hint: name an attribute, as in price > 3"),
            )
        ),
        (
            "datalog",
            "c > 9",
            [
                "line 1, column 26: this compares constants only, and no variable",
                "hint: 'c' is a string; a variable begins with a capital letter: C",
            ],
        ),
        (
            "datalog",
            "1 + 1 = 3",
            [
                "line 1, column 26: this compares constants only, and no variable",
                "hint: a variable begins with a capital letter: Cost > 3",
            ],
        ),
    ],
)
def test_a_condition_without_an_attribute(language: str, condition: str, expected: list[str]) -> None:
    assert error(language, condition) == expected


@pytest.mark.parametrize(("language", "own"), [("ceql", ""), ("sase", "a."), ("afa", "e."), ("relational", "")])
def test_times_need_the_zone_that_the_attribute_has(language: str, own: str) -> None:
    no_zone = [
        f"'2024-01-01' has no time zone, and {own}at (timestamp[us, tz=UTC]) has one",
        "hint: say which: '2024-01-01 00:00:00Z' is in UTC, '2024-01-01 00:00:00+02:00' two hours east of it",
    ]
    zone = [
        f"'2024-01-01 12:00+01:00' has a time zone, and {own}clock (timestamp[ms]) has none",
        "hint: write what its clock shows: '2024-01-01 12:00:00'",
    ]
    for condition, expected in (
        (f"{own}at > '2024-01-01'", no_zone),
        (f"{own}at BETWEEN '2024-01-01' AND '2024-02-01 00:00Z'", no_zone),
        (f"{own}at IN ('2024-02-01 00:00Z', '2024-01-01')", no_zone),
        (f"{own}clock = '2024-01-01 12:00+01:00'", zone),
    ):
        found = error(language, condition)
        assert [found[0].partition(": ")[2], *found[1:]] == expected
