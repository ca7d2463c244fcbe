"""A snapshot goes on with a query that means the same, however it is written; what is another one is named."""

from __future__ import annotations

from typing import Any

import pytest

import stretto
from stretto.errors import SnapshotError

SCHEMA = {"type": "string", "t": "int64", "x": "int64", "k": "string"}
FIRST, THEN = ({"type": kind, "t": t, "x": t, "k": "u"} for t, kind in enumerate("AB", 1))

CEQL = "SELECT * FROM S WHERE (A AS a ; B AS b) FILTER b[x > 1] PARTITION BY [k] WITHIN 10 [t]"
SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] and b.x > a.x } WITHIN 10 [t]"
KLEENE = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { avg(a[..i-1].x) <= a[i].x } WITHIN 10 [t]"
EQL = "sequence by k with maxspan=10s [A where true] [B where x > 1]"
CLAUSE = "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY t MEASURES A.x AS ax PATTERN (A B) DEFINE B AS x > A.x)"
COUNT = "SELECT COUNT(*) FROM S WHERE A ; B WITHIN 10 [t]"


def goes_on(before: str, now: str, options: dict[str, Any] | None = None, **more: Any) -> int:
    """How many rows the event behind a snapshot gives; ``more``: options of the second matcher."""
    given: dict[str, Any] = {"schema": SCHEMA, **(options or {})}
    if "MATCH_RECOGNIZE" not in before:
        given["time"] = "t"
    if before.startswith("sequence"):
        given |= {"language": "eql", "time_unit": "s"}
    first = stretto.Matcher(before, **given)
    rows = first.push([FIRST]).num_rows
    second = stretto.Matcher(now, **{**given, **more}).restore(first.snapshot())
    return rows + second.push([THEN]).num_rows + second.finish().num_rows


SAME = [
    (CEQL, "select *\n from S -- of all\nwhere (A as a;B as b) filter b[ x>1 ] partition by [k] within 10 [t]"),
    (SASE, "pattern seq(A a,B b)\nwhere SKIP_TILL_NEXT_MATCH {[k] AND b.x>a.x} -- it rises\n within 10 [t]"),
    (KLEENE, "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { AVG( a[..i-1].x )<=a[i].x } WITHIN  10 [t]"),
    (EQL, "sequence by k // of one\nwith  maxspan=10s [A where true] [B where x>1]"),
    (EQL, EQL.replace("10s", "10s").replace("] [", "]\n\n[")),
    (
        CLAUSE,
        "select * from e match_recognize (order by t measures A.x as ax pattern (A   B) define B as x>A.x /* ! */)",
    ),
    (COUNT, "select count( * ) from S where A;B within 10 [t]"),
    (CEQL.replace("10 [t]", "2 minutes"), CEQL.replace("10 [t]", "120 SECONDS")),
]


@pytest.mark.parametrize(("before", "now"), SAME)
def test_the_same_in_other_words(before: str, now: str) -> None:
    options = {"time_unit": "s"} if "minutes" in before else {}
    assert goes_on(before, now, options) == 1
    if "MATCH_RECOGNIZE" not in before and before not in (EQL, COUNT):
        assert goes_on(before, now, {"speculation": 1, **options}) == 1


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (CEQL, CEQL.replace("10", "20"), "its WITHIN was 10 [t], is 20 [t]"),
        (CEQL, CEQL.replace("[k]", "[x]"), "its PARTITION BY was k, is x"),
        (CEQL, CEQL.replace(" WITHIN 10 [t]", ""), "its WITHIN was 10 [t], is none"),
        (
            CEQL.replace(" FILTER b[x > 1]", ""),
            CEQL.replace(" FILTER b[x > 1]", "").replace("B AS", "C AS"),
            "its pattern was",
        ),
        (CEQL, CEQL.replace("> 1", "> 1.0"), "its pattern was"),
        (CEQL, CEQL.replace("SELECT *", "SELECT MAX *"), "its strategy was ALL, is MAX"),
        (CEQL, CEQL + " LIMIT 1", "its LIMIT was none, is 1"),
        (SASE, SASE.replace("next", "any"), "its strategy was skip_till_next_match, is skip_till_any_match"),
        (SASE, SASE.replace("b.x > a.x", "b.x < a.x"), "its condition was b.x > a.x, is b.x < a.x"),
        (SASE, SASE.replace("[k]", "[x]"), "its key was k, is x"),
        (EQL, EQL.replace("10s", "20s"), "its WITHIN was 10 seconds, is 20 seconds"),
        (EQL, EQL.replace("> 1", "> 2"), "its sequence was"),
        (CLAUSE, CLAUSE.replace("A B", "A B+"), "its pattern was A B, is A B+"),
        (CLAUSE, CLAUSE.replace("x > ", "x < "), "its DEFINE differs"),
        (COUNT, COUNT.replace("COUNT(*)", "COUNT(A)"), "its count or choice differs"),
    ],
)
def test_another_query_is_named(before: str, now: str, told: str) -> None:
    with pytest.raises(SnapshotError) as error:
        goes_on(before, now)
    assert str(error.value).splitlines()[0].startswith(f"the snapshot is of another query: {told}")


@pytest.mark.parametrize("query", ["SELECT * FROM S WHERE A ; B", CEQL, SASE, CLAUSE, COUNT])
def test_an_option_is_named(query: str) -> None:
    """Late events that are kept come with columns that the query does not read: what changed is the option, not the columns."""
    with pytest.raises(SnapshotError, match="late= was 'drop', is 'side'"):
        goes_on(query, query, {"disorder": 3, "late": "drop"}, late="side")


def test_an_option_of_a_query_that_answers_ahead_is_named() -> None:
    query = "SELECT * FROM S WHERE A ; B"
    with pytest.raises(SnapshotError, match="late is drop there, side here"):
        goes_on(query, query, {"speculation": 3, "late": "drop"}, late="side")
