"""What ``explain`` says of queries with exponentially many matches."""

from __future__ import annotations

import pytest

import stretto

CEQL = """\
warning    {}: every choice of its events is a match, 2ⁿ for n events that fit within the window
           LIMIT n, or SELECT NEXT, LAST or MAX, has fewer; output='summary' counts them"""
SASE = """\
warning    {}: every choice of its events is a match, 2ⁿ for n events that fit within the window
           LIMIT n or skip_till_next_match has fewer; output='summary' counts them, stretto.match_sets() hands them over unlisted"""


@pytest.mark.parametrize(
    ("query", "loops"),
    [
        ("SELECT * FROM S WHERE FAILED+ AS fails ; OK AS ok PARTITION BY [ip] WITHIN 10 minutes", "FAILED+"),
        ("SELECT fails FROM S WHERE FAILED+ AS fails ; OK", "FAILED+"),
        ("SELECT ALL * FROM S WHERE A+ ; (B ; C)+ ; A+", "A+, (B ; C)+"),
        ("PATTERN SEQ(A a, B+ b[], C+ c[]) WHERE skip_till_any_match { [k] } WITHIN 9", "B+ b[], C+ c[]"),
    ],
)
def test_a_warning(query: str, loops: str) -> None:
    found = stretto.compile(query).explain()
    assert (CEQL if query.startswith("SELECT") else SASE).format(loops) in found


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM S WHERE A ; B",
        "SELECT * FROM S WHERE A:+ ; B",
        "SELECT b FROM S WHERE A+ ; B AS b",
        "SELECT NONE FROM S WHERE A+",
        "SELECT MAX * FROM S WHERE A+ ; B",
        "SELECT * FROM S WHERE A+ ; B LIMIT 5",
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { }",
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { } LIMIT 2",
        "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { }",
    ],
)
def test_no_warning(query: str) -> None:
    assert "warning" not in stretto.compile(query).explain()
