"""What is asked of all matches together, as CEQL and SASE+ write it, and as it is bound to a schema."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError, QueryError
from stretto.languages import ceql, sase
from stretto.query import predicate as p
from stretto.query.passes.bind_totals import BoundBest, BoundSample, BoundTotals, Panes
from stretto.query.totals import Best, Extent, Function, GroupKey, Sample, Scope, Total, Totals
from stretto.query.windows import Window

SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "ts": pa.timestamp("ms"),
        "t": pa.int64(),
        "k": pa.dictionary(pa.int32(), pa.string()),
        "v": pa.int32(),
        "w": pa.float64(),
        "d": pa.decimal128(9, 2),
        "e": pa.decimal128(9, 3),
        "long": pa.duration("us"),
    }
)
FROM = "FROM S WHERE A AS a; B+ AS b; C"
PATTERN = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { [k] }"


def asked(text: str) -> BoundTotals | BoundBest | BoundSample:
    found = stretto.compile(text, SCHEMA, time="ts").bound.asked
    assert found is not None
    return found


def totals(text: str) -> BoundTotals:
    found = asked(text)
    assert isinstance(found, BoundTotals)
    return found


def best(text: str) -> BoundBest:
    found = asked(text)
    assert isinstance(found, BoundBest)
    return found


def test_both_languages_mean_the_same() -> None:
    one = ceql.parse(f"SELECT COUNT(*), SUM(b[v * 2]) AS twice, COUNT(b), MAX(a[w]) {FROM} PARTITION BY [k]")
    two = sase.parse(f"{PATTERN} RETURN TOTAL count(*), sum(b[].v * 2) AS twice, count(b[]), max(a.w)")
    assert one.asked == two.asked
    twice = p.Arithmetic("*", p.Attribute("v"), p.Constant(2))
    assert one.asked == Totals(
        (
            Total(Function.COUNT, None, None, "count"),
            Total(Function.SUM, "b", twice, "twice"),
            Total(Function.COUNT, "b", p.Constant(1), "count_b"),
            Total(Function.MAX, "a", p.Attribute("w"), "max_a_w"),
        )
    )
    assert one.variables == two.variables == ()
    assert {"v", "w"} <= {*one.attributes} & {*two.attributes}


def test_max_is_a_strategy_and_a_function() -> None:
    assert ceql.parse("SELECT MAX a FROM S WHERE A AS a").asked is None
    query = ceql.parse(f"SELECT MAX MAX(b[v]) {FROM}")
    assert query.strategy == "MAX"
    assert query.asked == Totals((Total(Function.MAX, "b", p.Attribute("v"), "max_b_v"),))


def test_scopes() -> None:
    ending = "PARTITION BY [k] GROUP BY a[w], [k] WITHIN 10 minutes EVERY 1 minute"
    groups = (GroupKey("a", "w", "a_w"), GroupKey(None, "k", "k"))
    found = ceql.parse(f"SELECT COUNT(*) {FROM} {ending}").asked
    assert found is not None
    assert found.scope == Scope(Extent.WINDOW, Window(seconds=Decimal(60)), groups)
    other = sase.parse(f"{PATTERN} WITHIN 10 minutes RETURN TOTAL count(*) GROUP BY a.w, [k] EVERY 1 minute").asked
    assert other == found
    every = ceql.parse(f"SELECT COUNT(*) {FROM} GROUP BY () EVERY EVENT").asked
    assert every is not None
    assert every.scope == Scope(Extent.EVENT, None, ())


def test_the_best_and_a_sample() -> None:
    found = ceql.parse(f"SELECT * {FROM} ORDER BY 2 * SUM(b[v]) - COUNT(b) DESC LIMIT 3 EVERY EVENT")
    score = (Total(Function.SUM, "b", p.Attribute("v"), "score"), Total(Function.COUNT, "b", p.Constant(1), "score"))
    assert found.asked == Best(score, (2, -1), True, 3, Scope(Extent.EVENT))
    assert found.limit is None
    assert found.variables == ("a", "b", "C")
    assert sase.parse(f"{PATTERN} ORDER BY 2*sum(b[].v) - count(b[]) DESC LIMIT 3 EVERY EVENT").asked == found.asked
    assert sase.parse(f"{PATTERN} SAMPLE 7 SEED 5").asked == Sample(7, 5)


def test_names_that_are_words_of_the_new_clauses() -> None:
    """What is no clause of its own stays a name."""
    query = ceql.parse("SELECT group, total FROM every WHERE A group; B AS sample; order total; event WITHIN 3 EVENTS")
    assert query.variables == ("group", "total")
    assert sase.parse("PATTERN SEQ(A total, B every) RETURN total.x, every.y AS sample").asked is None


def test_distinct_says_what_tells_matches_apart() -> None:
    query = ceql.parse(f"SELECT COUNT(DISTINCT a, b) AS n, SUM(b[v]) {FROM}")
    assert isinstance(query.asked, Totals)
    assert query.asked.distinct == ("a", "b")
    assert [item.variable for item in query.items or ()] == ["a", "b"]


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("COUNT(*)", pa.int64()),
        ("CAST(COUNT(*) AS DOUBLE)", pa.float64()),
        ("SUM(b[v])", pa.int64()),
        ("SUM(b[w])", pa.float64()),
        ("SUM(b[d])", pa.decimal128(38, 2)),
        ("SUM(b[d * v]) AS x", pa.float64()),
        ("SUM(b[long])", pa.duration("us")),
        ("CAST(SUM(b[v]) AS DOUBLE)", pa.float64()),
        ("AVG(b[v])", pa.float64()),
        ("MIN(b[v])", pa.int32()),
        ("MAX(b[ts])", pa.timestamp("ms")),
        ("MIN(b[d])", pa.decimal128(9, 2)),
        ("COUNT(b[k])", pa.int64()),
    ],
)
def test_types(item: str, kind: pa.DataType) -> None:
    assert totals(f"SELECT {item} {FROM}").items[0].type == kind


def test_groups_are_the_keys_unless_said_otherwise() -> None:
    names = [one.name for one in totals(f"SELECT COUNT(*) {FROM} PARTITION BY [k]").scope.groups]
    assert names == ["k"]
    assert totals(f"SELECT COUNT(*) {FROM} PARTITION BY [k] GROUP BY ()").scope.groups == ()
    (group,) = totals(f"SELECT COUNT(*) {FROM} GROUP BY a[d]").scope.groups
    assert (group.variable, group.name, group.type) == ("a", "a_d", pa.decimal128(9, 2))


@pytest.mark.parametrize(
    ("selected", "clauses"),
    [
        ("a[w]", "GROUP BY a[w]"),
        ("a[w, d]", "GROUP BY a[w], a[d]"),
        ("a[w], a[d]", "GROUP BY a[w, d]"),
        ("k", "PARTITION BY [k]"),
        ("k, a[w]", "PARTITION BY [k] GROUP BY [k], a[w]"),
    ],
)
def test_select_may_name_the_groups_before_what_is_counted(selected: str, clauses: str) -> None:
    named = ceql.parse(f"SELECT {selected}, COUNT(*) {FROM} {clauses}")
    assert named.asked == ceql.parse(f"SELECT COUNT(*) {FROM} {clauses}").asked
    assert named.items is None


@pytest.mark.parametrize(
    ("selected", "clauses", "shown"),
    [
        ("COUNT(*), a[w]", "GROUP BY a[w]", "SELECT names all groups in their order, or none"),
        ("a[d], a[w], COUNT(*)", "GROUP BY a[w], a[d]", "SELECT names all groups in their order, or none"),
        ("a[w], COUNT(*)", "GROUP BY a[w], a[d]", "hint: SELECT a[w], a[d], …"),
        ("a[w], COUNT(*)", "", "'a[w]' is no group"),
        ("k, COUNT(*)", "PARTITION BY [k] GROUP BY ()", "'k' is no group"),
        ("k, COUNT(*)", "GROUP BY a[w]", "hint: a column for each key, or group"),
    ],
)
def test_select_names_all_groups_or_none(selected: str, clauses: str, shown: str) -> None:
    with pytest.raises(QueryError) as caught:
        ceql.parse(f"SELECT {selected} {FROM} {clauses}")
    assert shown in str(caught.value)


def test_keys_that_conditions_say_are_no_groups() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.k = b.k } RETURN TOTAL count(*)"
    query = stretto.compile(text, SCHEMA, time="ts")
    assert query.split.partition_by == ("k",)
    assert query.split.asked is not None
    assert query.split.asked.scope.groups == ()


def test_a_key_that_streams_call_differently() -> None:
    text = "SELECT COUNT(*) FROM s, t WHERE A; B PARTITION BY s[v] = t[t] GROUP BY [v]"
    schema = stretto.Schema(
        {"type": pa.string(), "stream": pa.string(), "v": pa.int64(), "t": pa.int64()}, stream="stream"
    )
    found = stretto.compile(text, schema).bound.asked
    assert found is not None
    assert [(one.attribute, one.name) for one in found.scope.groups] == [("s[v] = t[t]", "v")]


@pytest.mark.parametrize(
    ("clauses", "panes"),
    [
        ("WITHIN 10 minutes EVERY 1 minute", Panes("ts", 600_000, 60_000)),
        ("WITHIN 10 [t] EVERY 4", Panes("t", 10, 4)),
        ("WITHIN 10 [t] EVERY 4 [t]", Panes("t", 10, 4)),
        ("WITHIN 1.5 [d] EVERY 0.25", Panes("d", 150, 25)),
        ("WITHIN 100 EVENTS EVERY 30 EVENTS", Panes(None, 100, 30)),
    ],
)
def test_panes(clauses: str, panes: Panes) -> None:
    assert totals(f"SELECT COUNT(*) {FROM} {clauses}").scope.panes == panes


def test_a_slide_that_does_not_divide_the_window() -> None:
    panes = Panes("t", 10, 4)
    assert (panes.width, panes.count) == (2, 5)


def test_columns_that_are_null_throughout() -> None:
    """They get a type that fits their use."""
    schema = pa.schema({"type": pa.string(), **dict.fromkeys("abcde", pa.null())})
    text = "SELECT SUM(B[a]), MIN(B[b]), COUNT(B[c]), SUM(B[d * 2]) AS x FROM S WHERE A; B GROUP BY A[e]"
    query = stretto.compile(text, schema).bound
    assert isinstance(query.asked, BoundTotals)
    assert [one.type for one in query.asked.items] == [pa.int64()] * 4
    assert query.asked.scope.groups[0].type == pa.string()
    sums = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { a.b = 'x' } RETURN TOTAL sum(b[].a), max(b[].c)"
    assert isinstance(found := stretto.compile(sums, schema).bound.asked, BoundTotals)
    assert [one.type for one in found.items] == [pa.int64()] * 2


def test_scores_of_decimals_are_exact() -> None:
    found = best(f"SELECT * {FROM} ORDER BY SUM(b[d]) - 0.5 * SUM(b[e]) + 3 * COUNT(b) DESC LIMIT 2")
    assert (found.exact, found.factors) == (True, (100, -5, 30_000))
    found = best(f"SELECT * {FROM} ORDER BY SUM(b[d]) + 2 * SUM(b[w]) LIMIT 2")
    assert (found.exact, found.factors) == (False, (1.0, 2.0))


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B+ b[] UNTIL (C c) ONLY) WHERE skip_till_any_match { b[i].v > a.v } RETURN TOTAL count(*) EVERY EVENT",
        "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] and b.v > a.v } WITHIN 9 EVENTS RETURN TOTAL count(*) EVERY 3 EVENTS",
    ],
)
def test_what_no_engine_runs_yet(text: str) -> None:
    with pytest.raises(OptionError, match="counts and sums over all matches cannot be had"):
        stretto.compile(text, SCHEMA, time="ts").program()
