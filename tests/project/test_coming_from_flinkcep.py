"""The table of docs/coming-from-flinkcep.md: every row, as what both languages find on a small stream.

What FlinkCEP gives is what its documentation says: loops wait for the next step after each event, `greedy()` takes what it can, and
`followedBy` takes the first event only. Where CEQL finds more combinations, these are among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import stretto

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-flinkcep.md"
SECONDS = 600  # of ten minutes


class Case(NamedTuple):
    """A stream of types, with columns; queries, and the positions of their matches."""

    types: str
    flink: list[list[int]]  #: what FlinkCEP finds
    queries: dict[str, list[list[int]] | None]  #: what is found; ``None``: what FlinkCEP finds
    columns: dict[str, list[Any]] = {}  # noqa: RUF012 - nobody changes it


def ceql(formula: str, tail: str = "") -> str:
    return f"SELECT * FROM S WHERE {formula} {tail}".strip()


def sase(components: str, strategies: str = "skip_till_next_match", conditions: str = "", tail: str = "") -> str:
    return f"PATTERN SEQ({components}) WHERE {strategies} {{ {conditions} }} {tail}".strip()


def after(choice: str) -> dict[str, list[list[int]] | None]:
    """A loop and what follows it, with a choice among the matches."""
    return {ceql("B+ AS b ; C", f"KEEP LONGEST {choice}"): None, sase("B+ b[], C c", tail=choice): None}


NEXT = "skip_till_next_match, "
CASES = {
    '`begin("a").where(…)`': Case(
        "AAB",
        [[0]],
        {ceql("A AS a FILTER a[v > 3]"): None, sase("A a", conditions="a.v > 3"): None},
        {"v": [5, 1, 9]},
    ),
    "`.or(…)`, `.subtype(…)`": Case(
        "AAAB",
        [[0], [2]],
        {
            ceql("A AS a FILTER a[v > 3 OR w = 1]"): None,
            sase("A a", conditions="a.v > 3 or a.w = 1"): None,
            ceql("A OR B"): [[0], [1], [2], [3]],
            sase("(A|B) a"): [[0], [1], [2], [3]],
        },
        {"v": [5, 1, 1, 9], "w": [0, 0, 1, 1]},
    ),
    'iterative condition over `ctx.getEventsForPattern("a")`': Case(
        "AAAB",
        [[0, 1, 3], [0, 3], [1, 3], [2, 3]],
        {
            sase("(A a)+, B b", conditions="a[i].v > a[i-1].v AND sum(a[..i].v) < 9"): None,
            sase("A+ a[], B b", conditions="b.v > avg(a[].v)"): [[0, 1, 2, 3], [1, 2, 3], [2, 3]],
        },
        {"v": [1, 4, 3, 5]},
    ),
    '`.next("b")`': Case(
        "ABACB",
        [[0, 1]],
        {
            ceql("A : B"): None,
            sase("A a, B b", f"{NEXT}strict_contiguity(b)"): None,
            sase("A a, B b", f"{NEXT}partition_contiguity(b)", "[k]"): [[0, 1], [2, 4]],
        },
        {"k": [1, 1, 1, 2, 1]},
    ),
    '`.followedBy("b")`': Case(
        "ACBB", [[0, 2]], {sase("A a, B b", "skip_till_next_match(b)"): None, sase("A a, B b"): None}
    ),
    '`.followedByAny("b")`': Case(
        "ACBB", [[0, 2], [0, 3]], {ceql("A ; B"): None, sase("A a, B b", "skip_till_any_match(b)"): None}
    ),
    '`.notFollowedBy("n")` between two': Case(
        "ANBAB", [[3, 4]], {ceql("A ; NOT N ; B"): None, sase("A a, ~(N n), B b"): None}
    ),
    '`.notNext("n").followedBy("b")`': Case(
        "ANBACBAB",
        [[3, 5], [6, 7]],  # and the event between is no part of the match
        {
            ceql("A : (B OR (C OR D) ; B)"): [[3, 4, 5], [3, 4, 7], [6, 7]],
            sase("A a, (B b | SEQ((C|D) x, B c))", f"{NEXT}strict_contiguity(b, x)"): [[3, 4, 5], [6, 7]],
        },
    ),
    "`.optional()`": Case("CAD", [[0, 1, 2], [0, 2]], {ceql("C ; A? ; D"): None, sase("C c, A? a, D d"): None}),
    "`.oneOrMore()`": Case("CAXAD", [[0, 1, 3, 4], [0, 1, 4]], {sase("C c, (A a)+, D d"): None}),
    "`.oneOrMore().greedy()`": Case("CAXAD", [[0, 1, 3, 4]], {sase("C c, A+ a[], D d"): None}),
    "`.oneOrMore().consecutive()`": Case(
        "CAAXAD",
        [[0, 1, 2, 5], [0, 1, 5]],
        {
            ceql("C ; A:+ ; D"): [[0, 1, 2, 5], [0, 1, 5], [0, 2, 5], [0, 4, 5]],
            sase("C c, A+ a[], D d", f"{NEXT}strict_contiguity(a[])"): None,
        },
    ),
    "`.oneOrMore().allowCombinations()`": Case(
        "CAXAAD",
        [[0, 1, 3, 4, 5], [0, 1, 3, 5], [0, 1, 4, 5], [0, 1, 5]],
        {
            ceql("C ; A+ ; D"): [
                [0, 1, 3, 4, 5],
                [0, 1, 3, 5],
                [0, 1, 4, 5],
                [0, 1, 5],
                [0, 3, 4, 5],
                [0, 3, 5],
                [0, 4, 5],
            ],
            sase("C c, A+ a[], D d", f"{NEXT}skip_till_any_match(a[])"): None,
        },
    ),
    "`.oneOrMore().optional()`, `….greedy()`": Case(
        "CAAD",
        [[0, 1, 2, 3], [0, 1, 3], [0, 3]],
        {
            ceql("C ; A* ; D"): [[0, 1, 2, 3], [0, 1, 3], [0, 2, 3], [0, 3]],
            sase("C c, (A a)*, D d"): None,
            sase("C c, A* a[], D d"): [[0, 1, 2, 3], [0, 3]],
        },
    ),
    "`.times(3)`, `.times(2, 4)`, `.timesOrMore(2)`": Case(
        "CAAXAD",
        [[0, 1, 2, 4, 5]],
        {
            ceql("C ; A{3} ; D"): None,
            ceql("C ; A{2,4} ; D"): [[0, 1, 2, 4, 5], [0, 1, 2, 5], [0, 1, 4, 5], [0, 2, 4, 5]],
            ceql("C ; A{2,} ; D"): [[0, 1, 2, 4, 5], [0, 1, 2, 5], [0, 1, 4, 5], [0, 2, 4, 5]],
            sase("C c, (A a){3}, D d"): None,
            sase("C c, (A a){2,4}, D d"): [[0, 1, 2, 4, 5], [0, 1, 2, 5]],
            sase("C c, (A a){2,}, D d"): [[0, 1, 2, 4, 5], [0, 1, 2, 5]],
        },
    ),
    "`.times(2, 4).greedy()`": Case("CAAXAD", [[0, 1, 2, 4, 5]], {sase("C c, A{2,4} a[], D d"): None}),
    "`.times(2, 4).optional()`": Case(
        "CAAD", [[0, 1, 2, 3], [0, 3]], {ceql("C ; (A{2,4})? ; D"): None, sase("C c, ((A a){2,4})?, D d"): None}
    ),
    '`begin(Pattern.begin("a").followedBy("b")).times(2)`': Case(
        "AXBAB", [[0, 2, 3, 4]], {ceql("(A ; B){2}"): None, sase("(A a, B b){2}"): None}
    ),
    "… `.oneOrMore()`, `.optional()`": Case(
        "ABABC",
        [[0, 1, 2, 3, 4], [0, 1, 4], [2, 3, 4]],
        {
            ceql("(A ; B)+ ; C"): [[0, 1, 2, 3, 4], [0, 1, 4], [0, 3, 4], [2, 3, 4]],
            sase("(A a, B b)+, C c"): None,
            ceql("(A ; B)? ; C"): [[0, 1, 4], [0, 3, 4], [2, 3, 4], [4]],
            sase("(A a, B b)?, C c"): [[0, 1, 4], [2, 3, 4], [4]],
        },
    ),
    "`.oneOrMore().until(…)`": Case(
        "AAUUA",
        [[0], [0, 1], [1], [4]],
        {
            sase("A+ a[] UNTIL (U u)"): None,
            # A condition on the end: the first U is none.
            sase("A+ a[] UNTIL (U u)", conditions="u.v > 3"): None,
        },
        {"v": [0, 0, 1, 9, 0]},
    ),
    '`.notFollowedBy("n")` at the end, with `within`': Case(
        "ANAX",
        [[2]],
        {ceql("A ; NOT N", "WITHIN 10 minutes"): None, sase("A a, ~(N n)", tail="WITHIN 10 minutes"): None},
        {"t": [0, 60, 120, 10_000]},
    ),
    "`.within(Duration.ofMinutes(10))`": Case(
        "ABAB",
        [[0, 1]],
        {
            # FlinkCEP's window is open at its end.
            ceql("A : B", "WITHIN 10 minutes"): [[0, 1], [2, 3]],
            sase("A a, B b", tail="WITHIN 10 minutes"): [[0, 1], [2, 3]],
            ceql("A : B", "WITHIN 599 seconds"): None,
        },
        {"t": [0, SECONDS - 1, 5_000, 5_000 + SECONDS]},
    ),
    "`.within(…, PREVIOUS_AND_CURRENT)`": Case(
        "AABB",
        [[1, 2]],
        {
            ceql("A ; B AFTER 0 minutes WITHIN 10 minutes"): None,
            sase("A a, B b", conditions="b.t - a.t <= 10 minutes"): None,
            ceql("A+ GAP 10 minutes ; B AFTER 0 minutes WITHIN 10 minutes"): None,
            sase("A+ a[]", conditions="a[i].t - a[i-1].t <= 10 minutes"): [[0], [1]],
            ceql("B+ GAP 10 minutes"): [[2], [3]],
        },
        {"t": [0, SECONDS + 1, 700, 2_000]},
    ),
    "`noSkip()`": Case("BBC", [[0, 1, 2], [1, 2]], {sase("B+ b[], C c"): None}),
    "`skipToNext()`": Case(
        "BBC",
        [[0, 1, 2], [1, 2]],
        {
            **after("AFTER MATCH SKIP TO NEXT EVENT"),
            sase("B+ b[], C c", tail="KEEP SHORTEST"): None,
        },
    ),
    "`skipPastLastEvent()`": Case("BBC", [[0, 1, 2]], after("AFTER MATCH SKIP PAST LAST EVENT")),
    '`skipToFirst("b")`, `skipToLast("b")`': Case(
        "BBBC",
        [[0, 1, 2, 3], [2, 3]],
        {
            **after("AFTER MATCH SKIP TO LAST b"),
            sase("A? a, B+ b[], C c", tail="AFTER MATCH SKIP TO FIRST b"): [[0, 1, 2, 3], [1, 2, 3], [2, 3]],
        },
    ),
    "`keyBy(k)`": Case(
        "AABB",
        [[0, 3], [1, 2]],
        {ceql("A ; B", "PARTITION BY [k]"): None, sase("A a, B b", conditions="[k]"): None},
        {"k": [1, 2, 2, 1]},
    ),
    "`TimedOutPartialMatchHandler`, `processTimedOutMatch`": Case(
        "ABAX",
        [[0, 1]],
        {ceql("A ; B", "WITHIN 10 minutes"): None, sase("A a, B b", tail="WITHIN 10 minutes"): None},
        {"t": [0, 60, 120, 10_000]},
    ),
    "`select`, `process`": Case(
        "AXB",
        [[0, 2]],
        {
            ceql("A AS a ; B AS b").replace("*", "a, b"): None,
            sase("A a, B b", tail="RETURN b.t - a.t AS took"): None,
        },
        {"t": [0, 1, 5]},
    ),
}


def table(case: Case) -> pa.Table:
    return pa.table({"type": list(case.types), "t": list(range(len(case.types))), **case.columns})


def found(query: str, case: Case, **options: Any) -> list[list[int]]:
    rows = stretto.match(query, table(case), time="t", time_unit="s", output="positions", **options)
    return sorted(rows.column("positions").to_pylist())


def rows_of_page() -> Iterator[list[str]]:
    """The cells of the page's first table."""
    lines = PAGE.read_text(encoding="utf-8").split("| --- |", 1)[1].splitlines()[1:]
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_every_row_has_a_case() -> None:
    assert [first for first, *_ in rows_of_page()] == list(CASES)


@pytest.mark.parametrize("row", CASES)
def test_what_a_row_finds(row: str) -> None:
    case = CASES[row]
    for query, expected in case.queries.items():
        assert found(query, case) == (case.flink if expected is None else expected), query


@pytest.mark.parametrize("row", list(rows_of_page()), ids=lambda row: row[0])
def test_the_case_has_the_forms_of_the_row(row: list[str]) -> None:
    """What stands in the cells is what the queries say; parts around an ellipsis are looked for one by one."""
    queries = " ".join(CASES[row[0]].queries)
    for cell in row[1:]:
        for form in re.findall(r"`([^`]+)`", cell):
            for part in form.replace(r"\|", "|").split("…"):
                plain = part.strip().strip("{}").strip() if "…" in form or part.startswith("{ [") else part.strip()
                assert plain in queries or plain in NO_QUERY, (plain, queries)


#: Forms that are no part of a query's text.
NO_QUERY = ("timeouts=True", "reached", "expired", "WHERE", "u")


def test_combinations_have_what_flinkcep_finds() -> None:
    """Where CEQL finds more, FlinkCEP's matches are a part of what its queries find."""
    rows = 0
    for row, case in CASES.items():
        more = [expected for query, expected in case.queries.items() if query.startswith("SELECT") and expected]
        if more and "notNext" not in row and "PREVIOUS" not in row:  # which show another event, or ask something else
            rows += 1
            assert {*map(tuple, case.flink)} <= {tuple(match) for expected in more for match in expected}, row
    assert rows >= 6


def test_timed_out_rows() -> None:
    case = CASES["`TimedOutPartialMatchHandler`, `processTimedOutMatch`"]
    for query in case.queries:
        rows = stretto.match(query, table(case), time="t", time_unit="s", timeouts=True).to_pylist()
        assert [(row["start_time"], row["reached"] is None, row["expired"]) for row in rows] == [
            (0, True, None),
            (120, False, 120 + SECONDS),
        ]


def test_what_is_shown() -> None:
    case = CASES["`select`, `process`"]
    chosen, returned = (stretto.match(query, table(case), time="t", time_unit="s") for query in case.queries)
    assert [chosen.column(name).to_pylist()[0][0]["type"] for name in ("a", "b")] == ["A", "B"]
    assert returned.column("took").to_pylist() == [5]
