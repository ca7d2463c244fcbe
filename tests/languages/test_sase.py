"""SASE+: what each construct means as a value, and every query that the SASE+ paper prints."""

from __future__ import annotations

import pickle
import threading
from decimal import Decimal
from itertools import permutations

import pytest

from stretto.errors import QueryError, Span
from stretto.languages.sase import is_sase, parse
from stretto.query import predicate as p
from stretto.query.query import Consume, Window
from stretto.query.sase import (
    WRITTEN,
    Aggregate,
    Component,
    Element,
    Index,
    Length,
    Range,
    Reference,
    Referred,
    ReturnItem,
    SaseQuery,
    Selection,
)

A, B = Component(("A",), "a", kleene=True), Component(("B",), "b")
NEXT = "WHERE skip_till_next_match"


def components(text: str) -> tuple[Component, ...]:
    return parse(f"PATTERN SEQ({text})").components


def where(conditions: str) -> SaseQuery:
    return parse(f"PATTERN SEQ(A+ a[], B b) {NEXT} {{ {conditions} }}")


def condition(text: str) -> p.Predicate:
    found = where(text).condition
    assert found is not None
    return found


def reference(text: str) -> Reference:
    (found,) = where(f"{text} > 1").references.values()
    return found


def window(text: str) -> Window | None:
    return parse(f"PATTERN SEQ(A a) WITHIN {text}").window


def returned(text: str) -> tuple[ReturnItem, ...]:
    items = parse(f"PATTERN SEQ(A+ a[], B b) RETURN {text}").returns
    assert items is not None
    return items


def refused(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert caught.value.text == text
    assert caught.value.span is not None
    return caught.value


def r(name: str) -> p.Attribute:
    return p.Attribute(name)


def n(value: int | str | Decimal | bool) -> p.Constant:
    return p.Constant(value)


# ---- PATTERN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B b", (B,)),
        ("A+ a[]", (A,)),
        ("A+ a[ ]", (A,)),
        ("A + a", (A,)),
        ("A+ a[], B b", (A, B)),
        ("(T|U) b", (Component(("T", "U"), "b"),)),
        ("( T | U | V )+ a[]", (Component(("T", "U", "V"), "a", kleene=True),)),
        ("(B) b", (B,)),
        ('"my type" b', (Component(("my type",), "b"),)),
        ('(`T`|"U ""2""")+ b[]', (Component(("T", 'U "2"'), "b", kleene=True),)),
        ("B b, ~(T n)", (B, Component(("T",), "n", negated=True))),
        ("B b, ~(T|U) n", (B, Component(("T", "U"), "n", negated=True))),
        ("B b, ~((T|U) n)", (B, Component(("T", "U"), "n", negated=True))),
        ("größe Ü, limit within", (Component(("größe",), "Ü"), Component(("limit",), "within"))),
        ("SEQ seq, PATTERN pattern", (Component(("SEQ",), "seq"), Component(("PATTERN",), "pattern"))),
    ],
)
def test_components(text: str, expected: tuple[Component, ...]) -> None:
    assert components(text) == expected
    assert parse(f"pattern({text});").components == expected


@pytest.mark.parametrize("sign", ["~", "!", "NOT ", "not", "¬", "∼"])
def test_signs_of_negation(sign: str) -> None:
    expected = (B, Component(("T",), "n", negated=True), A)
    assert components(f"B b, {sign}(T n), A+ a[]") == expected
    assert components(f"B b, {sign} T n, A+ a[]") == expected
    assert ", ".join(map(str, expected)) == "B b, ~(T n), A+ a[]"


def test_defaults() -> None:
    query = parse("PATTERN SEQ(B b)")
    assert query == SaseQuery("PATTERN SEQ(B b)", (B,), Selection.NEXT, {})
    assert (query.streams, query.partition_by, query.consume) == (("",), (), Consume.NONE)


def test_comments_and_space() -> None:
    text = "\ufeff/* SELECT */ PATTERN--\nSEQ(A+/**/a[],B b)WHERE strict_contiguity{b.x>1--and\n}WITHIN 3s ; -- end"
    query = parse(text)
    assert query.components == (A, B)
    assert query.condition == p.Comparison(">", r("b.x"), n(1))
    assert query.window == Window(seconds=Decimal(3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A a, B a", "twice"),
        ("~(A a)", "not negated"),
        ("~(A a), ~B b", "not negated"),
        ("B b, ~(A+ a[])", "no '+'"),
        ("B b, ~A+ a", "no '+'"),
        ("B b[]", "needs a '+'"),
        ('"" b', "empty"),
        ("B and", "unexpected 'and'"),
        ("B b,", "too early"),
    ],
)
def test_components_refused(text: str, message: str) -> None:
    assert message in refused(f"PATTERN SEQ({text}" + (")" if message != "too early" else "")).message


# ---- WHERE


@pytest.mark.parametrize("selection", WRITTEN)
def test_strategies(selection: Selection) -> None:
    for text in (selection, selection.upper(), f"{selection}()", f"{selection}(a[], b)", f"{selection} ( b )"):
        query = parse(f"PATTERN SEQ(A+ a[], B b) WHERE {text} {{}}")
        assert (query.selection, query.condition, query.partition_by) == (selection, None, ())


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("{}", "WHERE names no strategy", "one of strict_contiguity, partition_contiguity, skip_till_next_match, "),
        ("skip_till_match {}", "unknown strategy", "did you mean 'skip_till_any_match'?"),
        ("skip_till_any_match(a, c) {}", "unknown variable 'c'", "known variables: a, b"),
        ("skip_till_any_match(a, b[]) {}", "'b' is one event", "without brackets"),
        ("skip_till_any_match(a, a) {}", "twice", None),
        ("skip_till_any_match(a[] b) {}", "unexpected 'b'", None),
        ("skip_till_any_match", "too early", "WHERE strategy { conditions }"),
        ("b.x > 3", "unexpected '.'", "WHERE strategy { conditions }"),
        ("skip_till_any_match { b.x > 3, b.y > 3 }", "unexpected ','", "join conditions with AND"),
    ],
)
def test_strategies_refused(text: str, message: str, hint: str | None) -> None:
    error = refused(f"PATTERN SEQ(A+ a[], B b) WHERE {text}")
    assert message in error.message
    assert hint is None or hint in (error.hint or "")


def test_equivalence_tests() -> None:
    assert where("[x]").partition_by == ("x",)
    assert where("[x]").condition is None
    query = where("[x, y] and b.x > 1 and ([z] and [`a b`, x] and (b.y > 1 and b.z > 1)) and [and, y]")
    assert query.partition_by == ("x", "y", "z", "a b", "and")
    assert query.partition_by == query.partition_by
    assert [query.text[span.start : span.end] for span in query.partition_spans] == ["x", "y", "z", "`a b`", "and"]
    assert str(query.condition) == "b.x > 1 AND b.y > 1 AND b.z > 1"
    assert where("([x])").partition_by == ("x",)
    assert where("[x] and b.flag").condition == p.Comparison("=", r("b.flag"), n(True))


@pytest.mark.parametrize(
    "text",
    [
        "[x] or b.x > 1",
        "b.x > 1 or [x]",
        "not [x]",
        "b.x > 1 or (b.y > 1 and [x])",
        "[x] = 3",
        "b.x in ([x])",
        "-[x] > 1",
    ],
)
def test_equivalence_tests_are_conjuncts(text: str) -> None:
    error = refused(f"PATTERN SEQ(A+ a[], B b) {NEXT} {{ {text} }}")
    assert (
        error.message == "the equivalence test [x] is about all events of a match; it stands by itself, joined by AND"
    )
    assert error.text is not None
    assert error.span is not None
    assert error.text[error.span.start : error.span.end] == "x"


@pytest.mark.parametrize("text", ["[x] and NULL", "[x] and 3", "[x] and b.x + 1", "b.x + 1", "NULL", "'x'"])
def test_conditions_are_no_values(text: str) -> None:
    assert "a condition is needed" in refused(f"PATTERN SEQ(B b) {NEXT} {{ {text} }}").message


X, Y = r("b.x"), r("b.y")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b.x = 1", p.Comparison("=", X, n(1))),
        ("b.x == 1 ", p.Comparison("=", X, n(1))),
        ("b.x <> b.y", p.Comparison("!=", X, Y)),
        ("b.x >= -1.5", p.Comparison(">=", X, n(Decimal("-1.5")))),
        ("b.x = \"it's\"", p.Comparison("=", X, n("it's"))),
        ("b.x = 'it''s'", p.Comparison("=", X, n("it's"))),
        ("b.x = ’MSFT’", p.Comparison("=", X, n("MSFT"))),
        ("b.x in (1, 'a', 5%)", p.In(X, (n(1), n("a"), n(Decimal("0.05"))))),
        ("b.x NOT IN (1)", p.Not(p.In(X, (n(1),)))),
        ("b.x between 1 and 2 and b.y is null", p.And((p.Between(X, n(1), n(2)), p.IsNull(Y)))),
        ("b.x like 'a%' or b.y is not null", p.Or((p.Like(X, "a%"), p.Not(p.IsNull(Y))))),
        ("b.x ∧ b.y", p.And((p.Comparison("=", X, n(True)), p.Comparison("=", Y, n(True))))),
        ("b.x ∨ ¬ b.y", p.Or((p.Comparison("=", X, n(True)), p.Not(p.Comparison("=", Y, n(True)))))),
        ("True", p.Comparison("=", n(True), n(True))),
        ("not (b.x > 1 or b.y > 1)", p.Not(p.Or((p.Comparison(">", X, n(1)), p.Comparison(">", Y, n(1)))))),
        ("b.x - 1 > -b.y*2", p.Comparison(">", p.Arithmetic("-", X, n(1)), p.Arithmetic("*", p.Negative(Y), n(2)))),
    ],
)  # fmt: skip
def test_predicates(text: str, expected: p.Predicate) -> None:
    found = condition(text)
    assert found == expected
    assert hash(found) == hash(expected)
    assert condition(str(found)) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b.x < 80%*b.y", "b.x < (0.8 * b.y)"),
        ("b.x < 80% * b.y", "b.x < (0.8 * b.y)"),
        ("b.x < b.y*80%", "b.x < (b.y * 0.8)"),
        ("b.x < b.y/12.5%/* c */and b.y > 1", "b.x < (b.y / 0.125) AND b.y > 1"),
        ("80%<b.x", "0.8 < b.x"),
        ("(b.x + 5%) > 100%", "(b.x + 0.05) > 1"),
        ("b.x > 1000% or b.y", "b.x > 10 OR b.y = TRUE"),
        ("b.x > .5%∧b.y", "b.x > 0.005 AND b.y = TRUE"),
        ("b.x > -5%", "b.x > -0.05"),
        ("b.x between 1% and 2%", "b.x BETWEEN 0.01 AND 0.02"),
        ("b.x %500==0", "(b.x % 500) = 0"),
        ("b.x % 500 = 0", "(b.x % 500) = 0"),
        ("80%b.x = 0", "(80 % b.x) = 0"),
        ("80 %b.x = 0", "(80 % b.x) = 0"),
        ("80%(b.x) = 0", "(80 % b.x) = 0"),
        ("80%-b.x = 0", "(80 % (- b.x)) = 0"),
        ("80%7 = b.x", "(80 % 7) = b.x"),
    ],
)
def test_percentages(text: str, expected: str) -> None:
    assert str(condition(text)) == expected


def test_percentages_are_exact() -> None:
    digits = "1234567890" * 30
    found = condition(f"b.x = {digits}.5%")
    assert isinstance(found, p.Comparison)
    assert found.right == n(Decimal(f"{digits[:-2]}.{digits[-2:]}5"))
    assert "400 digits" in refused(f"PATTERN SEQ(B b) {NEXT} {{ b.x = {'1' * 401}% }}").message


def test_a_percentage_ends_before_a_clause() -> None:
    items = parse("PATTERN SEQ(B as) RETURN 5% AS x, 7%as.x AS y, 6% as z LIMIT 3").returns
    assert items is not None
    assert [str(item.value) for item in items] == ["0.05", "(7 % as.x)", "0.06"]


# ---- References


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b.x", Element("b", Index.ONLY, "x")),
        ("b.from", Element("b", Index.ONLY, "from")),
        ("b.and", Element("b", Index.ONLY, "and")),
        ("b . `a b`", Element("b", Index.ONLY, "a b")),
        ('b."a b"', Element("b", Index.ONLY, "a b")),
        ("b.`len`", Element("b", Index.ONLY, "len")),
        ("a[1].x", Element("a", Index.FIRST, "x")),
        ("a[i].x", Element("a", Index.EACH, "x")),
        ("a [ i - 1 ] . x", Element("a", Index.BEFORE, "x")),
        ("a[a.LEN].x", Element("a", Index.LAST, "x")),
        ("a[ a . len ].x", Element("a", Index.LAST, "x")),
        ("a[i].len", Element("a", Index.EACH, "len")),
        ("a.LEN", Length("a")),
        ("a.len", Length("a")),
        ("avg(a[..i-1].x)", Aggregate("avg", "a", Range.BEFORE, "x")),
        ("AVG (a[i-1].x)", Aggregate("avg", "a", Range.BEFORE, "x")),
        ("min(a[..i - 1].x)", Aggregate("min", "a", Range.BEFORE, "x")),
        ("Sum(a[..i].x)", Aggregate("sum", "a", Range.UP_TO, "x")),
        ("max(a[ ].x)", Aggregate("max", "a", Range.ALL, "x")),
        ("count(a[])", Aggregate("count", "a", Range.ALL, None)),
        ("count(a[..i-1])", Aggregate("count", "a", Range.BEFORE, None)),
        ("count(a[i-1])", Aggregate("count", "a", Range.BEFORE, None)),
        ("count(a[..i])", Aggregate("count", "a", Range.UP_TO, None)),
        ("count(a[].x)", Aggregate("count", "a", Range.ALL, "x")),
    ],
)
def test_references(text: str, expected: Reference) -> None:
    assert reference(text) == expected
    query = where(f"{text} > 1")
    assert list(query.references) == [str(expected)]
    assert query.condition == p.Comparison(">", r(str(expected)), n(1))
    assert reference(str(expected)) == expected


def test_variables_may_be_named_like_functions_and_clauses() -> None:
    query = parse(
        "PATTERN SEQ(A+ avg[], B count, C i, D len, E limit) "
        + NEXT
        + """ {
        avg(avg[].x) > count.x and i.x = avg[i].x and len.x = limit.y and avg[avg.len].x = avg.len } RETURN limit.x"""
    )
    assert list(query.references) == [
        "avg(avg[].x)", "count.x", "i.x", "avg[i].x", "len.x", "limit.y", "avg[avg.LEN].x", "avg.LEN", "limit.x",
    ]  # fmt: skip


def test_references_are_named_attributes() -> None:
    found = condition("a[i].price > avg(a[i-1].price) and b.`odd name` = 'x'")
    assert str(found) == "a[i].price > avg(a[..i-1].price) AND b.`odd name` = 'x'"
    assert found == p.And(
        (
            p.Comparison(">", r("a[i].price"), r("avg(a[..i-1].price)")),
            p.Comparison("=", r("b.`odd name`"), n("x")),
        )
    )
    assert list(p.attributes(found)) == ["a[i].price", "avg(a[..i-1].price)", "b.`odd name`"]
    again = pickle.loads(pickle.dumps(found))
    assert (again, str(again)) == (found, str(found))
    assert Referred("b.x") == r("b.x") == Referred("b.x")
    assert Referred("b.x") != r("b.y")
    assert Referred("b.x") != "b.x"


@pytest.mark.parametrize(
    ("text", "message", "place", "hint"),
    [
        ("c.x > 1", "unknown variable 'c'", "c", "known variables: b, a, n, m, k"),
        ("kk[i].x > 1", "unknown variable 'kk'", "kk", "did you mean 'k'?"),
        ("avg(kk[].x) > 1", "unknown variable 'kk'", "kk", "did you mean 'k'?"),
        ("b[1].x > 1", "'b' is one event, not several", "b[1].x", "write b.x"),
        ("b.LEN > 1", "'b' is one event, not several", "b.LEN", "an attribute of that name is b.`LEN`"),
        ("b[b.LEN].x > 1", "'b' is one event, not several", "b[b.LEN].x", "write b.x"),
        ("avg(b[].x) > 1", "'b' is one event, not several", "avg(b[].x)", "write b.x"),
        ("count(b[]) > 1", "'b' is one event, not several", "count(b[])", "count goes over"),
        ("n[i].x > 1", "'n' is negated and stands for one event, not several", "n[i].x", "write n.x"),
        ("sum(n[].x) > 1", "'n' is negated and stands for one event, not several", "sum(n[].x)", "write n.x"),
        ("a.x > 1", "'a' holds several events; which of them?", "a.x", "a[1].x, a[i].x, a[a.LEN].x or avg(a[].x)"),
        ("a[2].x > 1", "a[2] has no meaning", "[2]", "an index is one of a[1], a[i], a[i-1], a[a.LEN]"),
        ("a[i+1].x > 1", "a[i+1] has no meaning", "[i+1]", "an index is one of"),
        ("a[i-2].x > 1", "a[i-2] has no meaning", "[i-2]", "an index is one of"),
        ("a[j].x > 1", "a[j] has no meaning", "[j]", "an index is one of"),
        ("a[-1].x > 1", "a[-1] has no meaning", "[-1]", "an index is one of"),
        ("a[..].x > 1", "a[..] has no meaning", "[..]", "an index is one of"),
        ("a[a.LEN-1].x > 1", "a[a.LEN-1] has no meaning", "[a.LEN-1]", "an index is one of"),
        ("a[a.x].x > 1", "a[a.x] has no meaning", "[a.x]", "an index is one of"),
        ("a[LEN].x > 1", "a[LEN] has no meaning", "[LEN]", "did you mean a[a.LEN]?"),
        ("a[0].x > 1", "a[0] has no meaning", "[0]", "did you mean a[1]?"),
        ("a[k.LEN].x > 1", "the last event of 'a' is a[a.LEN], not a[k.LEN]", "[k.LEN]", "write a[a.LEN].x"),
        ("a[].x > 1", "a[] is any number of events, not one", "[]", "avg(a[].x)"),
        ("a[..i-1].x > 1", "a[..i-1] is any number of events, not one", "[..i-1]", "avg(a[..i-1].x)"),
        ("count(DISTINCT a[].x) > 1", "count(DISTINCT a[].x) stands in RETURN only", "count(DISTINCT a[].x)", "count(a[])"),
        ("sum(distinct a[].x) > 1", "DISTINCT is for count over all events", "distinct", "count(DISTINCT a[].x)"),
        ("mean(a[].x) > 1", "unknown function 'mean'", "mean", "did you mean 'avg'?"),
        ("median(a[].x) > 1", "unknown function 'median'", "median", "known functions: count, sum, avg, min, max"),
        ("avg(a[]) > 1", "avg needs an attribute", "a[]", "write avg(a[].price)"),
        ("avg(a[i].x) > 1", "avg goes over several events of a Kleene plus", "a[i]", "avg(a[..i].x)"),
        ("avg(a.x) > 1", "avg goes over several events of a Kleene plus", "a", "avg(a[].x)"),
        ("avg(b.x) > 1", "avg goes over several events of a Kleene plus", "b", "or b.x if 'b' is one event"),
        ("count(a) > 1", "count goes over several events of a Kleene plus", "a", "count(a[])"),
        ("count(*) > 1", "unexpected '*'; expected a variable", "*", "count(a[])"),
        ("x > 1", "'x' of which event?", "x", "name the variable: b.x"),
        ("b > 1", "'b' is an event, not a value", "b", "name an attribute: b.x"),
        ("a > 1", "'a' is several events, not a value", "a", "avg(a[].x)"),
        ("`x` > 1", "`x` names no event", "`x`", "a.`x`"),
        ("a[i].x > k[i].x", "a[i].x and k[i].x in one comparison", "k[i].x", "k[1].x, k[k.LEN].x or avg(k[].x)"),
        ("k[i].x > avg(a[..i].x)", "which i of 'k' goes with which of 'a'?", "avg(a[..i].x)", "'a': avg(a[].x)"),
        ("k[1].x > a[i-1].x", "a[i-1].x has no one value when 'k' comes", "a[i-1].x", "say a[1].x, a[a.LEN].x or avg(a[].x)"),
        ("avg(a[..i-1].x) < m.x", "avg(a[..i-1].x) has no one value when 'm' comes", "avg(a[..i-1].x)", "say avg(a[].x)"),
        ("count(a[..i]) < m.x", "count(a[..i]) has no one value when 'm' comes", "count(a[..i])", "say count(a[])"),
        ("n.x < k[i-1].x", "k[i-1].x has no one value when 'n' comes", "k[i-1].x", "say k[1].x, k[k.LEN].x"),
        ("a[i-1].x < a.LEN", "a[i-1].x has no one value when a.LEN is known", "a[i-1].x", "say a[1].x"),
        ("a[i-1].x < a[a.LEN].x", "has no one value when a[a.LEN].x is known", "a[i-1].x", "say a[1].x"),
        ("n.x < m.x", "'n' and 'm' are both negated", "m.x", "compare each with a component that is not negated"),
        ("n.x between 1 and m.x", "'n' and 'm' are both negated", "m.x", "compare each"),
    ],
)  # fmt: skip
def test_references_refused(text: str, message: str, place: str, hint: str) -> None:
    error = refused(f"PATTERN SEQ(B b, A+ a[], ~(N n), ~(M m), K+ k[]) {NEXT} {{ {text} }}")
    assert message in error.message
    assert error.text is not None
    assert error.span is not None
    assert error.text[error.span.start : error.span.end] == place
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "b.x < a[i-1].x",  # an earlier variable has its value all along
        "a[i].x < k[k.LEN].x",  # holds for every i, once k is known
        "a[i].x < n.x",
        "a[i].x < a[a.LEN].x",
        "a[i].x > a[i-1].x + avg(a[..i-1].x)",
        "a[i].x > 3 or k[i].x > 3",  # two comparisons: decided with the automaton
        "n.x > 1 and m.x > 1",
        "n.x = b.x and k[1].x = n.x",
        "k[i-1].x > count(a[])",
    ],
)
def test_references_together(text: str) -> None:
    assert parse(f"PATTERN SEQ(B b, A+ a[], ~(N n), ~(M m), K+ k[]) {NEXT} {{ {text} }}").condition is not None


# ---- The other clauses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 hours", Window(seconds=Decimal(43200))),
        ("1 hour 30 minutes", Window(seconds=Decimal(5400))),
        ("0 s", Window(seconds=Decimal(0))),
        ("1000", Window(number=1000)),
        ("2.5", Window(number=Decimal("2.5"))),
        ("500 EVENTS", Window(events=500)),
        ("1 minute [ts]", Window(seconds=Decimal(60), attribute="ts")),
        ("1000 [`stock time`]", Window(number=1000, attribute="stock time")),
    ],
)
def test_windows(text: str, expected: Window) -> None:
    assert window(text) == expected
    assert window(f"{text} LIMIT 3") == expected
    assert window(f"{text};") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1", "negative"),
        ("1 hour 30", "30 of what"),
        ("1 2", "1 of what"),
        ("1.5 EVENTS", "integer"),
        ("3 EVENTS [x]", "no attribute"),
        ("3 parsecs", "unknown unit"),
        ("3 s [a, b]", "one attribute"),
    ],
)
def test_windows_refused(text: str, message: str) -> None:
    assert message in refused(f"PATTERN SEQ(A a) WITHIN {text}").message


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("b.x", "b_x", "b.x"),
        ("(b.x)", "b_x", "b.x"),
        ("a[1].ts", "a_1_ts", "a[1].ts"),
        ("a[a.len].x", "a_last_x", "a[a.LEN].x"),
        ("a.LEN", "a_len", "a.LEN"),
        ("avg(a[].x)", "avg_a_x", "avg(a[].x)"),
        ("COUNT(a[])", "count_a", "count(a[])"),
        ("b.x AS y", "y", "b.x"),
        ("3 AS `the y`", "the y", "3"),
        ("'s' as and", "and", "'s'"),
        ("TRUE AS t", "t", "TRUE"),
        ("-(b.x + 10%) * a.LEN AS y", "y", "((- (b.x + 0.1)) * a.LEN)"),
    ],
)
def test_returns(text: str, name: str, value: str) -> None:
    (item,) = returned(text)
    assert (item.name, str(item.value)) == (name, value)


def test_returned_references_are_known() -> None:
    query = parse("PATTERN SEQ(A+ a[], B b) " + NEXT + " { b.x > 1 } RETURN b.x, avg(a[].x) / a.LEN AS y")
    assert query.references == {
        "b.x": Element("b", Index.ONLY, "x"),
        "avg(a[].x)": Aggregate("avg", "a", Range.ALL, "x"),
        "a.LEN": Length("a"),
    }
    assert query.returns is not None
    assert [query.text[item.span.start : item.span.end] for item in query.returns if item.span] == [
        "b.x",
        "avg(a[].x) / a.LEN AS y",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b.x + 1", "a computed item needs a name"),
        ("3", "a computed item needs a name"),
        ("b.x, b.x", "RETURN has the name 'b_x' twice"),
        ("b.x, b.y AS b_x", "RETURN has the name 'b_x' twice"),
        ("a[i].x", "a[i].x has no one value in a whole match"),
        ("a[i-1].x AS y", "a[i-1].x has no one value in a whole match"),
        ("1 + avg(a[..i].x) AS y", "avg(a[..i].x) has no one value in a whole match"),
        ("count(a[..i-1])", "count(a[..i-1]) has no one value in a whole match"),
        ("n.x", "'n' is negated"),
        ("c.x", "unknown variable"),
        ("a.x", "'a' holds several events"),
        ("b", "'b' is an event"),
        ("a[]", "expected '.'"),
        ("[x] AS y", "equivalence"),
        ("NULL AS y", "NULL is no value"),
        ("(b.x > 3) AS y", "a value is needed"),
        ("b.x > 3 AS y", "unexpected '>'"),
        ("b.x,", "too early"),
        ("b.x b.y", "unexpected 'b'"),
    ],
)
def test_returns_refused(text: str, message: str) -> None:
    assert message in refused(f"PATTERN SEQ(A+ a[], B b, ~(N n)) RETURN {text}").message


@pytest.mark.parametrize(
    ("text", "non_overlap", "compressed"),
    [
        ("all", False, False),
        ("verbose", False, False),
        ("NON_OVERLAP", True, False),
        ("compressed", False, True),
        ("compressed, non_overlap", True, True),
        ("non_overlap verbose", True, False),
        ("All Compressed", False, True),
    ],
)
def test_output(text: str, non_overlap: bool, compressed: bool) -> None:
    query = parse(f"PATTERN SEQ(A a) OUTPUT {text}")
    assert (query.non_overlap, query.compressed) == (non_overlap, compressed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("non-overlap", "unknown form of output 'non-overlap'"),
        ("some", "unknown form of output 'some'"),
        ("all non_overlap", "'non_overlap' beside another choice"),
        ("all, all", "'all' beside another choice"),
        ("verbose, compressed", "'compressed' beside another choice"),
        ("all,", "too early"),
        ("", "too early"),
    ],
)
def test_output_refused(text: str, message: str) -> None:
    assert message in refused(f"PATTERN SEQ(A a) OUTPUT {text}").message


def test_limit() -> None:
    assert parse("PATTERN SEQ(A a) LIMIT 4").limit == 4
    for number in ("0", "-1", "1.5", "1e2"):
        assert "positive" in refused(f"PATTERN SEQ(A a) LIMIT {number}").message


def test_the_clauses_come_in_any_order_once() -> None:
    clauses = ("WITHIN 1000", "RETURN b.x, 5% AS y", "OUTPUT non_overlap", "LIMIT 4")
    start = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { b.x > 1 }"
    for order in permutations(clauses):
        query = parse(" ".join([start, *order]))
        assert query.window == Window(number=1000)
        assert query.returns is not None
        assert [item.name for item in query.returns] == ["b_x", "y"]
        assert (query.non_overlap, query.limit) == (True, 4)
    for clause in clauses:
        assert "second" in refused(" ".join([start, *clauses, clause])).message
    assert refused(f"{start} WHERE strict_contiguity {{}}").hint == "WHERE stands once, right after PATTERN"


# ---- Places, size, threads


def test_spans() -> None:
    text = (
        "PATTERN SEQ((T|U)+ a[], ~(V n)) WHERE strict_contiguity { a[ 1 ].x > avg(a[].y) } WITHIN 3 s [ts] RETURN a.LEN"
    )
    query = parse(text)

    def written(span: Span | None) -> str:
        assert span is not None
        return text[span.start : span.end]

    assert [written(one.span) for one in query.components] == ["(T|U)+ a[]"[1:], "~(V n)"]
    assert [[written(span) for span in one.type_spans] for one in query.components] == [["T", "U"], ["V"]]
    assert query.condition is not None
    assert [written(node.span) for node in p.walk(query.condition)] == [
        "a[ 1 ].x > avg(a[].y)",
        "a[ 1 ].x",
        "avg(a[].y)",
    ]
    assert query.window is not None
    assert (written(query.window.span), written(query.window.attribute_span)) == ("3 s [ts]", "ts")


def test_thousands_of_components_and_conditions() -> None:
    query = parse(
        f"PATTERN SEQ({', '.join(f'A a{i}' for i in range(5_000))}) {NEXT} "
        f"{{ {' and '.join(f'a{i}.x > {i}' for i in range(5_000))} }}"
    )
    assert len(query.components) == len(query.references) == 5_000


@pytest.mark.parametrize(
    ("before", "middle", "after"),
    [
        ("(", "b.x > 1", ")"),
        ("not ", "b.x > 1", ""),
        ("- ", "b.x > 1", ""),
        ("", "b.x", " + 1"),
        ("(b.x > 1 and ", "[x]", ")"),
        ("1 * (", "b.x", ")"),
    ],
)
def test_nesting_is_bounded(before: str, middle: str, after: str) -> None:
    end = "" if ">" in middle or "[" in middle else " > 1"
    for depth in (201, 5_000):
        error = refused(f"PATTERN SEQ(B b) {NEXT} {{ {before * depth}{middle}{after * depth}{end} }}")
        assert error.message == "nested more than 200 levels deep"
    parse(f"PATTERN SEQ(B b) {NEXT} {{ {before * 99}{middle}{after * 99}{end} }}")


def test_a_query_of_more_than_a_million_characters() -> None:
    with pytest.raises(QueryError, match="1,000,000"):
        parse(" " * 1_000_001)


def test_threads_share_the_parser() -> None:
    found: list[SaseQuery] = []
    threads = [threading.Thread(target=lambda: found.append(where("a[i].x > 1"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [where("a[i].x > 1")] * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PATTERN SEQ(A a)", True),
        ("  pattern(", True),
        ("\ufeff-- SELECT\n/* * SELECT / */Pattern", True),
        ("PATTERNS SEQ(A a)", True),  # misspelt
        ("SELECT * FROM S WHERE PATTERN", False),
        ("/* PATTERN", False),
        ("-- PATTERN", False),
        ("", False),
    ],
)
def test_is_sase(text: str, expected: bool) -> None:
    assert is_sase(text) is expected


# ---- The SASE+ paper's queries


def test_figure_1_query_1() -> None:
    text = """PATTERN SEQ(Shelf a, ~(Register b), Exit c)
    WHERE skip_till_next_match(a, b, c) {
          a.tag_id = b.tag_id
          and a.tag_id = c.tag_id
          /* equivalently, [tag_id] */ }
    WITHIN 12 hours"""
    query = parse(text)
    assert query.components == (
        Component(("Shelf",), "a"),
        Component(("Register",), "b", negated=True),
        Component(("Exit",), "c"),
    )
    assert query.selection is Selection.NEXT
    assert str(query.condition) == "a.tag_id = b.tag_id AND a.tag_id = c.tag_id"
    assert query.window == Window(seconds=Decimal(43200))
    short = parse("PATTERN SEQ(Shelf a, ~(Register b), Exit c) WHERE skip_till_next_match(a, b, c) { [tag_id] }")
    assert short.partition_by == ("tag_id",)


def test_figure_1_query_2() -> None:
    query = parse(
        """PATTERN SEQ(Alert a, Shipment+ b[])
        WHERE skip_till_any_match(a, b[ ]) {
              a.type = 'contaminated'
              and b[1].from = a.site
              and b[i].from = b[i-1].to }
        WITHIN 3 hours"""
    )
    assert query.components == (Component(("Alert",), "a"), Component(("Shipment",), "b", kleene=True))
    assert query.selection is Selection.ANY
    assert str(query.condition) == "a.type = 'contaminated' AND b[1].from = a.site AND b[i].from = b[i-1].to"
    assert query.references == {
        "a.type": Element("a", Index.ONLY, "type"),
        "b[1].from": Element("b", Index.FIRST, "from"),
        "a.site": Element("a", Index.ONLY, "site"),
        "b[i].from": Element("b", Index.EACH, "from"),
        "b[i-1].to": Element("b", Index.BEFORE, "to"),
    }


def test_figure_1_query_3() -> None:
    query = parse(
        """PATTERN SEQ(Stock+ a[], Stock b)
        WHERE skip_till_next_match(a[], b) {
              [symbol]
              and a[1].volume > 1000
              and a[i].price > avg(a[i-1].price)
              and b.volume < 80%*a[a.LEN].volume }
        WITHIN 1 hour"""
    )
    assert query.partition_by == ("symbol",)
    assert str(query.condition) == (
        "a[1].volume > 1000 AND a[i].price > avg(a[..i-1].price) AND b.volume < (0.8 * a[a.LEN].volume)"
    )
    assert query.references["avg(a[..i-1].price)"] == Aggregate("avg", "a", Range.BEFORE, "price")


@pytest.mark.parametrize("strategy", ["partition_contiguity", "skip_till_next_match"])
@pytest.mark.parametrize(
    ("iterator", "printed"),
    [
        ("True", "TRUE = TRUE"),
        ("a[i].price > a[i-1].price", "a[i].price > a[i-1].price"),
        *(
            (f"a[i].price > {name}(a[i-1].price)", f"a[i].price > {name}(a[..i-1].price)")
            for name in ("max", "min", "avg")
        ),
    ],
)
def test_section_6_template(strategy: str, iterator: str, printed: str) -> None:
    query = parse(
        f"PATTERN(STOCK+ a[], STOCK b) WHERE {strategy} {{[symbol] ∧ a[1].price %500==0 ∧ {iterator} ∧ b.volume < 150}} "
        "WITHIN 500"
    )
    assert query.components == (Component(("STOCK",), "a", kleene=True), Component(("STOCK",), "b"))
    assert query.selection == strategy
    assert query.partition_by == ("symbol",)
    assert str(query.condition) == f"(a[1].price % 500) = 0 AND {printed} AND b.volume < 150"
    assert query.window == Window(number=500)


@pytest.mark.parametrize(
    ("counts", "asked"),
    [
        ("{2,5}", "a.LEN >= 2 and count(a[..i]) <= 5"),
        ("{3}", "a.LEN >= 3 and count(a[..i]) <= 3"),
        ("{2,}", "a.LEN >= 2"),
    ],
)
def test_counts_are_conditions(counts: str, asked: str) -> None:
    short = parse(f"PATTERN SEQ(A{counts} a[], B b) WHERE skip_till_any_match {{ b.x > 1 }}")
    long = parse(f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match {{ b.x > 1 and {asked} }}")
    assert short.condition == long.condition
    assert short.references == long.references
    assert str(short.components[0]) == f"A{counts} a[]"
