"""Datalog as it is read, ordered, grouped and typed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import stretto
from stretto.errors import QueryError
from stretto.languages.datalog import (
    Aggregate,
    Assign,
    Atom,
    Exclude,
    Filter,
    Head,
    Literal,
    Program,
    Rule,
    Scan,
    checked,
    read_program,
)
from stretto.languages.datalog.ordering import ordered
from stretto.query import predicate as p

SOURCES = {
    "link": {"src": pa.string(), "dst": pa.string()},
    "road": {"src": pa.string(), "dst": pa.string(), "cost": pa.int64()},
    "size": {"id": pa.int64(), "size": pa.float64()},
    "seen": {"id": pa.int64(), "at": pa.timestamp("us"), "good": pa.bool_()},
}


def one(text: str) -> Rule:
    program = read_program(text)
    assert len(program.rules) == 1
    return program.rules[0]


def rows(text: str) -> dict[str, dict[str, str]]:
    found = checked(read_program(text), SOURCES)
    return {
        relation.name: {name: str(kind) for name, kind in relation.row.items()}
        for group in found.groups
        for relation in group.relations
    }


# ---- Reading


def test_a_rule_is_read() -> None:
    assert one("far(X, 'a b', 3) :- road(X, _, C), not link(X, x), C * 2 >= 1.5e1, X != true.") == Rule(
        Head("far", (p.Attribute("X"), p.Constant("a b"), p.Constant(3))),
        (
            Literal(Atom("road", (p.Attribute("X"), p.Attribute("_"), p.Attribute("C")))),
            Literal(Atom("link", (p.Attribute("X"), p.Constant("x"))), negated=True),
            p.Comparison(">=", p.Arithmetic("*", p.Attribute("C"), p.Constant(2)), p.Constant(15)),
            p.Comparison("!=", p.Attribute("X"), p.Constant(True)),
        ),
    )


def test_aggregates_are_read() -> None:
    head = one("s(X, min<C>, count<*>, sum<C * 2>) :- road(X, _, C).").head
    assert head.arguments == (
        p.Attribute("X"),
        Aggregate("min", p.Attribute("C")),
        Aggregate("count", None),
        Aggregate("sum", p.Arithmetic("*", p.Attribute("C"), p.Constant(2))),
    )


@pytest.mark.parametrize(
    "text",
    [
        "p(X) :- q(X).",
        "p(X):-q(X).",
        "% about p\np(X) :- % every\n q(X). % ends",
        "-- about p\np(X) :- q(X). -- ends",
        "// about p\np(X) :- q(X). // ends",
        "/* about\np */ p(X) /* . */ :- q(X).",
        "\ufeffp ( X ) :-\n\tq ( X ) .\n",
        "p(X) :- q(X).% p(Y) :- q(Y).",
    ],
)
def test_blanks_and_comments(text: str) -> None:
    assert str(read_program(text)) == "p(X) :- q(X)."


def test_the_remainder_is_no_comment() -> None:
    text = "p(X) :- q(X), X % 2 = 1, f(X) % 3 < 2, % and so on\n X < 3."
    assert str(one(text)) == "p(X) :- q(X), X % 2 = 1, f(X) % 3 < 2, X < 3."


def test_a_dot_ends_a_rule_or_a_number() -> None:
    assert str(read_program("p(1.5).q(2).p(X):-q(X),X<3.q(4.0).")) == "p(1.5).\nq(2).\np(X) :- q(X), X < 3.\nq(4.0)."


def test_strings() -> None:
    program = read_program("""p('it''s', "a ""b"" %", ab, "").""")
    assert [one.value for one in program.rules[0].head.arguments] == ["it's", 'a "b" %', "ab", ""]
    assert str(program) == """p('it''s', 'a "b" %', 'ab', '')."""
    assert read_program(str(program)) == program


@pytest.mark.parametrize("sign", ["not ", "!", "¬", "! "])
def test_negation(sign: str) -> None:
    assert str(one(f"p(X) :- q(X), {sign}r(X).")) == "p(X) :- q(X), not r(X)."


def test_a_name_may_begin_with_a_word_of_the_language() -> None:
    assert str(one("nothing(X) :- notes(X), trueish(X, falsehood).")) == (
        "nothing(X) :- notes(X), trueish(X, 'falsehood')."
    )


def test_names_of_other_alphabets() -> None:
    assert str(one("größe(Änderung) :- été(Änderung).")) == "größe(Änderung) :- été(Änderung)."


def test_brackets_and_signs() -> None:
    rule = one("p(-X, - 3, (X + 1) * -(2 - X)) :- q(X), (X) = -1.")
    assert str(rule) == "p(- X, -3, (X + 1) * (- (2 - X))) :- q(X), X = -1."
    assert read_program(str(rule)) == Program((rule,))


# ---- Order


def steps(text: str) -> str:
    short = {Scan: "scan", Exclude: "not", Filter: "if", Assign: "set"}
    found = []
    for step in ordered(one(text)).steps:
        match step:
            case Scan(atom) | Exclude(atom):
                found.append(f"{short[type(step)]} {atom.name}")
            case Filter(comparison):
                found.append(f"if {comparison}")
            case Assign(variable, value):
                found.append(f"{variable} := {value}")
    return "; ".join(found)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("p(X) :- q(X), r(X).", "scan q; scan r"),
        ("p(X) :- X < 3, q(X, Y), r(Y).", "scan q; if X < 3; scan r"),
        ("p(X) :- not s(X), q(X, Y), r(Y).", "scan q; not s; scan r"),
        ("p(X) :- not s(_), q(X).", "scan q; not s"),
        ("p(X) :- q(Y), X = Y + 1.", "scan q; X := (Y + 1)"),
        ("p(Z) :- Z = X + 1, X = Y + 1, q(Y), Z < 9.", "scan q; X := (Y + 1); Z := (X + 1); if Z < 9"),
        ("p(X) :- q(Y), Y + 1 = X, r(X).", "scan q; X := (Y + 1); scan r"),
        ("p(X) :- q(X), r(Y), Y = X + 1.", "scan q; Y := (X + 1); scan r"),
        ("p(X) :- q(X, Y), Y = X.", "scan q; if Y = X"),
        ("p(X) :- q(X), X = 3.", "X := 3; scan q"),
        ("p(X) :- X = 3.", "X := 3"),
    ],
)
def test_order(text: str, wanted: str) -> None:
    assert steps(text) == wanted


# ---- Groups


def groups(text: str) -> list[tuple[str, ...]]:
    return [tuple(one.name for one in group.relations) for group in checked(read_program(text), SOURCES).groups]


def test_relations_come_after_those_that_they_read() -> None:
    text = "c(X) :- b(X). b(X) :- a(X), not d(X). a(X) :- link(X, _). d(X) :- a(X)."
    assert groups(text) == [("a",), ("d",), ("b",), ("c",)]


def test_relations_that_recur_together_are_a_group() -> None:
    text = """
    odd(X, Y) :- link(X, Y).
    even(X, Z) :- odd(X, Y), link(Y, Z).
    odd(X, Z) :- even(X, Y), link(Y, Z).
    both(X) :- odd(X, Y), even(X, Y).
    """
    assert groups(text) == [("odd", "even"), ("both",)]


def test_a_long_chain_of_relations() -> None:
    text = "\n".join(["p0(X) :- link(X, _)."] + [f"p{n + 1}(X) :- p{n}(X)." for n in range(3000)])
    assert len(groups(text)) == 3001


# ---- Types


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("p(X, C) :- road(X, _, C).", {"x": "string", "c": "int64"}),
        (
            "p(C / 2, C * 1.0, C % 2) :- road(_, _, C).",
            {"column_1": "double", "column_2": "double", "column_3": "int64"},
        ),
        ("p(X, X, X) :- link(X, _).", {"x": "string", "x_2": "string", "x_3": "string"}),
        ("p(_a, Vs, B_) :- road(_a, Vs, B_).", {"a": "string", "column_2": "string", "b": "int64"}),
        (
            "p(1, 'a', true, 2.5).",
            {"column_1": "int64", "column_2": "string", "column_3": "bool", "column_4": "double"},
        ),
        ("p(X) :- X = 3.", {"x": "int64"}),
        ("p(a, 1). p(X, C) :- road(X, _, C). p(Z, Z2) :- p(Z, Z2).", {"x": "string", "c": "int64"}),
        ("p(A) :- seen(_, A, _).", {"a": "timestamp[us]"}),
        (
            "p(X, min<C>, max<C>, sum<C>, avg<C>, count<C>, count<*>) :- road(X, _, C).",
            {"x": "string", "c": "int64", "c_3": "int64", "sum_c": "int64"}
            | {"avg_c": "double", "count_c": "int64", "count": "int64"},
        ),
        ("p(sum<S>, min<A>) :- size(I, S), seen(I, A, _).", {"sum_s": "double", "a": "timestamp[us]"}),
        ("p(count<*>, count<*>) :- link(_, _).", {"count": "int64", "count_2": "int64"}),
    ],
)
def test_columns(text: str, wanted: dict[str, str]) -> None:
    assert rows(text)["p"] == wanted


@pytest.mark.parametrize(
    "text",
    [
        "p(X, 0) :- link(X, _). p(X, S) :- link(X, _), size(_, S).",
        "p(X, S) :- link(X, _), size(_, S). p(X, Y) :- link(X, _), Y = 0.",
        "p(a, 0). p(X, S) :- p(X, _), size(_, S).",
    ],
)
def test_an_integer_that_is_written_out_becomes_a_float(text: str) -> None:
    assert list(rows(text)["p"].values()) == ["string", "double"]


def test_types_go_around_a_recursion() -> None:
    found = rows("q(X, Y) :- p(Y, X). p(X, Y) :- q(Y, X). p(X, Y) :- road(X, _, Y).")
    assert found == {"p": {"x": "string", "y": "int64"}, "q": {"x": "int64", "y": "string"}}


def test_constants_take_the_types_of_columns() -> None:
    found = checked(read_program("p(X) :- seen(X, '2020-01-31', true), size(X, 1), X < 2.0."), SOURCES)
    (rule,) = found.groups[0].relations[0].rules
    first, second, third = rule.steps
    assert isinstance(first, Scan)
    assert isinstance(second, Filter)
    assert isinstance(third, Scan)
    assert str(first.atom.arguments[1]) == "'2020-01-31 00:00:00'"
    assert repr(second.comparison.right) == "Constant(value=2)"
    assert repr(third.atom.arguments[1]) == "Constant(value=1.0)"


@stretto.function
def is_far(a, b):  # type: ignore[no-untyped-def]
    return a * b > 10.0


def test_a_function_may_stand_alone() -> None:
    text = "p(X, is_far(X, C)) :- size(X, C), is_far(X, C), not is_far(C, C)."
    assert rows(text)["p"] == {"x": "int64", "column_2": "bool"}
    (rule,) = checked(read_program(text), SOURCES).groups[0].relations[0].rules
    assert [type(step) for step in rule.steps] == [Scan, Filter, Filter]


def test_a_relation_goes_before_a_function() -> None:
    text = "is_far(X, Y) :- link(X, Y). p(X) :- is_far(X, _)."
    assert rows(text)["p"] == {"x": "string"}


# ---- Recursions that end


def ending(text: str, bound: int | None = None) -> str | None:
    found = checked(read_program(text), SOURCES, bound)
    return next((group.ending for group in found.groups if group.recursive), None)


ENDS = [
    ("p(X, Y) :- link(X, Y). p(X, Z) :- p(X, Y), p(Y, Z).", "no rule computes new values"),
    ("p(X, C) :- road(X, _, C). p(X, D) :- p(X, _), road(X, _, C), D = C * 2.", "no rule computes new values"),
    ("p(X, 0) :- link(X, _). p(X, N) :- p(X, M), N = M + 1, N < 9.", "N stays between bounds"),
    ("p(X, 0) :- link(X, _). p(X, N) :- p(X, M), 9 >= M, N = 1 + M.", "N stays between bounds"),
    ("p(X, 9) :- link(X, _). p(X, M - 2) :- p(X, M), M > 0.", "M - 2 stays between bounds"),
    ("p(X, 9) :- link(X, _). p(X, N) :- p(X, M), road(X, _, C), N = M + 1, N <= C.", "N stays between bounds"),
    ("p(X, 9) :- link(X, _). p(X, N) :- p(X, M), N = M * 3, N < 99, N > -5.", "N stays between bounds"),
    ("p(X, 9) :- link(X, _). p(X, N) :- p(X, M), N = M * 3 % 7.", "N stays between bounds"),
    (
        "p(X, min<C>) :- road(X, _, C). p(X, min<C>) :- road(X, Y, D), p(Y, E), D >= 0, C = D + E.",
        "min<C> is never less than the value that it is computed from",
    ),
    (
        "p(X, min<C>) :- road(X, _, C). p(X, min<C + 1>) :- road(X, Y, _), p(Y, C).",
        "min<C + 1> is never less than the value that it is computed from",
    ),
    (
        "p(X, max<C>) :- road(X, _, C). p(X, max<C>) :- road(X, Y, D), p(Y, E), D > 2, C = E - D.",
        "max<C> is never more than the value that it is computed from",
    ),
    (
        "p(X, max<C>) :- road(X, _, C). p(X, max<C>) :- p(X, D), C = D - 1, C > 9.",
        "max<C> is never more than the value that it is computed from",
    ),
]


@pytest.mark.parametrize(("text", "reason"), ENDS)
def test_endings(text: str, reason: str) -> None:
    assert ending(text) == f"each row is derived once, and {reason}"


ENDLESS = [
    "p(X, 0) :- link(X, _). p(X, N) :- p(X, M), N = M + 1.",
    "p(X, 0) :- link(X, _). p(X, N) :- p(X, M), N = M + 1, N > 9.",
    "p(X, 0) :- link(X, _). p(X, N) :- p(X, M), N = M - 1, N < 9.",
    "p(X, 0) :- link(X, _). p(X, N) :- p(X, M), N = M * 2, N < 9.",
    "p(X, 0) :- link(X, _). p(X, N) :- p(X, M), N = M + K, p(X, K), N < 9.",
    "p(X, 0) :- link(X, _). p(X, N) :- p(X, M), p(X, K), N = M + 1, N < K.",
    "p(X, 0.5) :- link(X, _). p(X, N) :- p(X, M), N = M + 0.1, N < 9.",
    "p(X, 0.5) :- link(X, _). p(X, N) :- p(X, M), N = M / 2, N < 9, N > 0.",
    "p(X, min<C>) :- road(X, _, C). p(X, min<C>) :- road(X, Y, D), p(Y, E), C = D + E.",
    "p(X, min<C>) :- road(X, _, C). p(X, min<C>) :- road(X, Y, D), p(Y, E), D >= -1, C = D + E.",
    "p(X, min<C>) :- road(X, _, C). p(X, min<C>) :- road(X, Y, D), p(Y, E), D <= 0, C = D + E.",
    "p(X, min<C>) :- road(X, _, C). p(X, min<C>) :- p(X, D), p(Y, E), C = D + E.",
    "p(X, min<C>) :- road(X, _, C). p(X, min<C - 1>) :- p(X, C).",
    "p(X, min<C>) :- road(X, _, C). p(X, min<C>) :- p(X, D), C = D * 2, C < 9.",
]


@pytest.mark.parametrize("text", ENDLESS)
def test_endless_recursions_need_a_bound(text: str) -> None:
    with pytest.raises(QueryError, match="this recursion may not end"):
        ending(text)
    assert ending(text, 7) == "bound: at most 7 times around"


WORSE = [
    "p(X, min<C>) :- p(X, D), C = 10 - D, C > 0.",
    "p(X, min<C>) :- p(X, C), C > 3.",
    "p(X, min<C>) :- p(X, C), C = 3.",
    "p(X, min<C>) :- p(X, 3), road(X, _, C).",
    "p(X, min<C>) :- p(X, C), road(_, X, C).",
    "p(X, min<C>) :- road(_, X, C), p(X, C).",
    "p(X, min<C>) :- p(X, C), p(_, C).",
    "p(X, min<C>) :- p(X, D), C = D % 2.",
    "p(X, min<C>) :- p(X, D), C = D * -1.",
    "p(X, min<C>) :- p(X, C), not road(X, _, C).",
    "p(X, min<C>) :- p(X, D), C = D + 1, road(_, X, C).",
    "q(X, C) :- p(X, C). p(X, min<C>) :- q(X, C).",
    "q(X, max<C>) :- p(X, C). p(X, min<C>) :- q(X, C).",
]


@pytest.mark.parametrize("text", WORSE)
def test_a_better_value_must_not_undo_anything(text: str) -> None:
    with pytest.raises(QueryError, match="inside its recursion"):
        ending(f"p(X, min<C>) :- road(X, _, C). {text}", 5)


@pytest.mark.parametrize(
    "text",
    [
        "p(X, min<C>) :- p(X, C), C < 3, 9 >= C.",
        "p(X, min<C>) :- p(X, D), C = D * 2 - 1, C < 9, D - 99 <= 1 - C.",
        "q(X, min<C>) :- p(X, C). p(X, min<C>) :- q(X, C).",
        "q(X) :- p(X, _). p(X, min<C>) :- q(X), road(X, _, C).",
        "q(X) :- p(X, C), C < 3. p(X, min<C>) :- q(X), road(X, _, C).",
    ],
)
def test_a_better_value_may_confirm(text: str) -> None:
    assert ending(f"p(X, min<C>) :- road(X, _, C). {text}", 5)
