"""The exact texts of errors in conditions, which every language words alike."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from stretto import compile as compiled
from stretto.errors import QueryError
from stretto.languages.afa.parser import read_fence
from stretto.languages.afa.scope import Scope
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


# ---- What a language does not have, and how to write it today

BETWEEN = [
    "CEQL has no conditions between events",
    "hint: SASE+ has them: PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.price > a.price }",
]
LEAST = "one step must be there: leave out a '?', or write '+' in place of '*'"
AT_THE_ENDS = "A ; NOT B ; C, or with a window A ; NOT B … WITHIN 10 minutes"
FOR_HOW_LONG = "NOT at an end needs a window of time, which says for how long nothing may come"
BY_TIME = "looks at what an event completes, and NOT at the end is completed by time"
BRACKETS = "a condition stands in brackets after its variable"


def drawn(text: str) -> tuple[str, list[str]]:
    """The place of a query's error as it is underlined, and message and hint."""
    with pytest.raises(QueryError) as caught:
        compiled(text, schema=ROW)
    assert caught.value.span is not None
    place = text[caught.value.span.start : caught.value.span.end]
    return place, [caught.value.message, *([f"hint: {caught.value.hint}"] if caught.value.hint else [])]


@pytest.mark.parametrize(
    ("formula", "place", "expected"),
    [
        *(
            (formula, formula, ["the formula may hold no event at all", f"hint: {LEAST}"])
            for formula in ("A?", "A* ; (B? OR C)", "A{0,3}")
        ),
        *(
            (
                formula,
                "NOT B",
                ["NOT stands between two steps, or at an end of the whole formula", f"hint: {AT_THE_ENDS}"],
            )
            for formula in (
                "NOT B",
                "(NOT B) ; A",
                "A OR NOT B",
                "A ; (B ; NOT B) ; C",
                "(A ; NOT B) OR C",
                "(A ; NOT B)+",
            )
        ),
        *(
            (formula, "NOT B", [FOR_HOW_LONG, "hint: add WITHIN 10 minutes"])
            for formula in ("NOT B ; A", "A ; NOT B", "(A ; NOT B) FILTER A[price > 1]")
        ),
        ("A ; NOT B WITHIN 3 EVENTS", "3 EVENTS", [FOR_HOW_LONG, "hint: add WITHIN 10 minutes"]),
        ("A ; NOT B WITHIN 3 s LIMIT 1", "LIMIT", [f"LIMIT {BY_TIME}"]),
        ("A ; NOT B WITHIN 3 s CONSUME BY ANY", "CONSUME", [f"CONSUME BY {BY_TIME}"]),
        *(
            (
                formula,
                place,
                ["AFTER says how long after the step before: A ; B AFTER 10 seconds", "hint: put it behind a step"],
            )
            for formula, place in (("A AFTER 3 s ; B", "A AFTER 3 s"), ("A ; (B AFTER 3 s)", "B AFTER 3 s"))
        ),
        (
            "A GAP 5 minutes ; B",
            "GAP",
            [
                "GAP stands behind a repetition: the most that its neighbours are apart",
                "hint: A+ GAP 5 minutes; between two steps: A ; B AFTER 0 seconds WITHIN 5 minutes",
            ],
        ),
        (
            "A ; B WITHIN 5 minutes ; C",
            "WITHIN",
            [
                "WITHIN inside a formula is of steps in parentheses, and this is one event",
                "hint: write (A ; B) WITHIN 5 minutes ; C, or for the time between two steps: A ; B AFTER 0 seconds WITHIN 5 minutes",
            ],
        ),
        ("A : NOT B ; C", ":", ["nothing lies between neighbours, and NOT says what does not", "hint: write ';'"]),
        (
            "A ; NOT B+ ; C",
            "B+",
            ["NOT takes a single event", "hint: NOT T, NOT (T AS n FILTER n[x > 3]), NOT (T OR U)"],
        ),
        (
            "A ; NOT (B AS b) ; C FILTER b[x > 1]",
            "b",
            [
                "FILTER names the variable 'b', which its formula never binds",
                "hint: a condition on what must not come stands with it: NOT (T AS b FILTER b[…])",
            ],
        ),
        ("A ; B{2,1}", "2,1", ["a repetition of at least 2 and at most 1", "hint: write {1,2}"]),
        ("A ; B{0}", "0", ["a repetition of no time holds nothing", "hint: {0,2} is none to two times"]),
        ("A ; B{1.5}", "1.5", ["a repetition is counted in whole numbers, not 1.5"]),
        ("A ; B{x}", "x", ["unexpected 'x'; expected a number or ','"]),
        ("A AS a ; B AS b FILTER b[price > a.price]", "a.price", BETWEEN),
        ("A AS a ; B AS b FILTER a.price < b.price", ".", BETWEEN),
        ("A AS a ; B AS b FILTER a[price] < b[price]", "<", BETWEEN),
        ("A AS a ; B AS b FILTER b[price > a[price]]", "[", BETWEEN),
        *(
            (f"A AS v FILTER {condition}", place, [BRACKETS, f"hint: write FILTER variable[{shown}]: v[{own}]"])
            for condition, place, shown, own in (
                ("v > 2", "> 2", "attribute > 2", "price > 2"),
                ("v >= 2.5", ">=", "attribute >= 2.5", "price >= 2.5"),
                ("v.x > 2", ".", "attribute > 2", "x > 2"),
                ("v = 'x'", "=", "attribute = 'x'", "price = 'x'"),
                ("v[x > 1] AND v IN (1, 2)", "IN", "attribute IN …", "price IN …"),
            )
        ),
        (
            "A AS v FILTER v[x > INTERVAL '5 minutes']",
            "INTERVAL '5 minutes'",
            ["a duration is written without INTERVAL", "hint: write 5 minutes"],
        ),
    ],
)
def test_what_ceql_does_not_have(formula: str, place: str, expected: list[str]) -> None:
    assert drawn(f"SELECT * FROM S WHERE {formula}") == (place, expected)


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        (
            "SEQ(A? a, B* b[])",
            "A? a, B* b[]",
            [
                "the pattern may hold no event at all",
                "hint: a match has at least one event: take the '?' or '*' from a part, or count from 1",
            ],
        ),
        (
            "SEQ(A a, ~(B? b), C c)",
            "B? b",
            ["a negated component takes no '?'", "hint: ~(B b) already means: not one such event"],
        ),
        ("SEQ(A a, (~(B b))+)", "(~(B b))+", ["a group needs a component that is not negated"]),
        (
            "SEQ(A a UNTIL (B b))",
            "UNTIL (B b",
            ["'a' is one event, and UNTIL ends a repetition", "hint: write A+ a[] UNTIL (B b)"],
        ),
        (
            "SEQ(A+ a[] UNTIL (B+ b[]))",
            "B+ b[]",
            ["one event ends a repetition", "hint: write A+ a[] UNTIL (B b)"],
        ),
        ("SEQ(A a, B{3,2} b[])", "3,2", ["a repetition of at least 3 and at most 2", "hint: write {2,3}"]),
        ("SEQ(A a, B{1.5} b[])", "1.5", ["a repetition is counted in whole numbers, not 1.5"]),
        ("SEQ(A a, B{ b[])", "b", ["unexpected 'b'; expected a number or ','"]),
        (
            "SEQ(A a, ~(B{2} b[]), C c)",
            "B{2} b[]",
            ["a negated component takes no count", "hint: ~(B b) already means: not one such event"],
        ),
    ],
)
def test_what_sase_does_not_have(pattern: str, place: str, expected: list[str]) -> None:
    assert drawn(f"PATTERN {pattern}") == (place, expected)


@pytest.mark.parametrize("language", ["ceql", "sase", "afa", "relational"])
def test_durations_and_times(language: str) -> None:
    own = {"sase": "a.", "afa": "e."}.get(language, "")

    def wrong(condition: str) -> list[str]:
        first, *hints = error(language, condition.replace("$", own))
        return [first.partition(": ")[2].replace(own or "$", "$"), *hints]

    units = "hint: differences of times are durations; a number has its own unit"
    if language in ("ceql", "sase"):
        units = (
            "hint: a number has its own unit; time='…' and time_unit='s' (or 'ms', 'us', 'ns') say which one is a time"
        )
    x = "$x" if own else "x"
    assert wrong("$x > 5 minutes") == [f"cannot compare {x} (int64) with a duration", units]
    clock, at = ("$clock", "$at") if own else ("clock", "at")
    differ = "hint: a difference of two times is a duration: b.t - a.t > 5 minutes"
    assert wrong("$clock > 5m") == [f"cannot compare {clock} (timestamp[ms]) with a duration", differ]
    takes = "hint: times have differences, and take durations: b.t - a.t, t + 5 minutes"
    assert wrong("$clock + 5 > $clock") == [f"cannot compute {clock} (timestamp[ms]) + a number", takes]
    assert wrong("$clock - $at > 5 s") == [
        f"cannot compute {clock} (timestamp[ms]) - {at} (timestamp[us, tz=UTC]): only one has a time zone"
    ]
