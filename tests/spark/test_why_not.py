"""``stretto.spark.why_not``: what Spark selects is asked as a table in this process is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import stretto

pytestmark = [pytest.mark.spark]

QUERY = "SELECT * FROM S WHERE A AS a ; B AS b FILTER b[x > 5] PARTITION BY [k] WITHIN 10 [t]"
ROWS = [
    ("A", 0, "u", 1),
    ("B", 4, "u", 3),
    ("A", 6, "v", 1),
    ("B", 20, "v", 9),
    ("A", 21, "w", None),
]
EVENTS = pa.table(dict(zip(("type", "t", "k", "x"), map(list, zip(*ROWS, strict=True)), strict=True)))


@pytest.mark.parametrize(
    "chosen", [{}, {"key": "u"}, {"key": {"k": "v"}}, {"between": (6, None)}, {"between": (0, 6), "key": "u"}]
)
def test_the_answer_is_that_of_the_selected_rows(spark: Any, chosen: dict[str, Any]) -> None:
    df = spark.createDataFrame(ROWS[::-1], "type string, t long, k string, x long")
    found = stretto.spark.why_not(df, QUERY, time="t", **chosen)
    embedded = stretto.why_not(QUERY, EVENTS, time="t", **chosen)
    assert [(one.kind, one.text, one.values) for one in found.reasons] == [
        (one.kind, one.text, one.values) for one in embedded.reasons
    ]
    assert found.looked_at == embedded.looked_at
    if not chosen:
        assert str(found) == str(embedded)


def automaton() -> stretto.AFA:
    afa = stretto.AFA({"k": str, "x": int}, start="s", partition_by=["k"])
    return afa.arc("s", "u", when="e.x < 2").arc("u", "f", when="e.x > 9").final("f")


CLAUSE = (
    "SELECT * FROM e MATCH_RECOGNIZE (PARTITION BY K ORDER BY t PATTERN (u v) DEFINE u AS x < 2, v AS x > PREV(x) + 9)"
)


@pytest.mark.parametrize(
    "chosen", [{}, {"key": "u"}, {"key": {"k": "v"}}, {"between": (6, None)}, {"between": (0, 6), "key": "u"}]
)
def test_clauses_and_automata(spark: Any, chosen: dict[str, Any]) -> None:
    df = spark.createDataFrame(ROWS[::-1], "type string, t long, k string, x long")
    for query, roles in ((automaton(), {"time": "t"}), (CLAUSE, {})):
        found = stretto.spark.why_not(df, query, **roles, **chosen)
        embedded = stretto.why_not(query, EVENTS, **roles, **chosen)
        assert found.looked_at == embedded.looked_at
        assert [(one.kind, one.text, one.values) for one in found.reasons] == [
            (one.kind, one.text, one.values) for one in embedded.reasons
        ]
        assert found.reasons
        if not chosen:
            assert str(found) == str(embedded)


def test_what_is_refused(spark: Any, tmp_path: Any) -> None:
    df = spark.createDataFrame(ROWS, "type string, t long, k string, x long")
    with pytest.raises(stretto.LimitError, match="more than 4 rows are selected"):
        stretto.spark.why_not(df, QUERY, time="t", rows=4)
    with pytest.raises(stretto.OptionError, match="rows=0: one row at least"):
        stretto.spark.why_not(df, QUERY, time="t", rows=0)
    with pytest.raises(stretto.DataError, match="no column 'kk'"):
        stretto.spark.why_not(df, QUERY, time="t", key={"kk": 1})
    with pytest.raises(stretto.OptionError, match="rows of a DataFrame have no order"):
        stretto.spark.why_not(df, QUERY)
    with pytest.raises(stretto.OptionError, match="time='t' says nothing about MATCH_RECOGNIZE"):
        stretto.spark.why_not(df, CLAUSE, time="t")
    with pytest.raises(stretto.OptionError, match="time_unit='s' says nothing about an automaton"):
        stretto.spark.why_not(df, automaton(), time="t", time_unit="s")
    with pytest.raises(stretto.DataError, match="no column 'tt'"):
        stretto.spark.why_not(df, automaton(), time="tt")
    with pytest.raises(stretto.OptionError, match="not a Spark DataFrame"):
        stretto.spark.why_not(EVENTS, QUERY, time="t")
    streamed = spark.readStream.schema("type string, t long, k string, x long").json(str(tmp_path))
    with pytest.raises(stretto.OptionError, match="a stream does not keep its past"):
        stretto.spark.why_not(streamed, QUERY, time="t")
