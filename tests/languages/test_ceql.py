"""CEQL: what each construct means as a value, and every query that the CORE paper prints."""

# ruff: noqa: E501 - queries and tables as they are

from __future__ import annotations

import threading
import time
from decimal import Decimal
from itertools import pairwise

import pytest

from stretto.errors import QueryError, Span
from stretto.languages.ceql import parse
from stretto.query import predicate as p
from stretto.query.algebra import As, Atom, Filter, Or, Pattern, Plus, Sequence, walk
from stretto.query.query import Consume, ParsedQuery, SelectItem, Strategy, Window

A, B, C = Atom("A"), Atom("B"), Atom("C")


def pattern(formula: str) -> Pattern:
    return parse(f"SELECT * FROM S WHERE {formula}").pattern


def predicate(text: str) -> p.Predicate:
    filtered = pattern(f"A FILTER A[{text}]")
    assert isinstance(filtered, Filter)
    return filtered.predicate


def window(text: str) -> Window | None:
    return parse(f"SELECT * FROM S WHERE A WITHIN {text}").window


def refused(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert caught.value.text == text
    assert caught.value.span is not None
    return caught.value


def chain(*parts: Pattern) -> Sequence:
    return Sequence(parts, (False,) * (len(parts) - 1))


def equals(name: str, value: str | int) -> p.Comparison:
    return p.Comparison("=", p.Attribute(name), p.Constant(value))


def filters(node: Pattern) -> tuple[list[tuple[str, p.Predicate]], Pattern]:
    """The filters of a formula, first applied first, and what they apply to."""
    found = []
    while isinstance(node, Filter):
        found.append((node.variable, node.predicate))
        node = node.body
    return found[::-1], node


# ---- Formulas


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("A", A),
        ("A;B;C", chain(A, B, C)),
        ("A:B;C", Sequence((A, B, C), (True, False))),
        ("A;(B;C)", chain(A, chain(B, C))),
        ("A OR B;C", Or((A, chain(B, C)))),
        ("(A OR B);C", chain(Or((A, B)), C)),
        ("A OR B OR C", Or((A, B, C))),
        ("A;B+", chain(A, Plus(B))),
        ("(A;B)+", Plus(chain(A, B))),
        ("A:+", Plus(A, contiguous=True)),
        ("A+:+", Plus(Plus(A), contiguous=True)),
        ("A : B", Sequence((A, B), (True,))),
        ("A AS x+", Plus(As(A, "x"))),
        ("A+ AS x", As(Plus(A), "x")),
        ("(A OR B)+ AS x", As(Plus(Or((A, B))), "x")),
        ("A AS x AS y", As(As(A, "x"), "y")),
        ("A AS x y", As(As(A, "x"), "y")),
        ("A x AS y", As(As(A, "x"), "y")),
        ("A OR B AS x", Or((A, As(B, "x")))),
        ("A;B AS x", chain(A, As(B, "x"))),
        ("A x", As(A, "x")),
        ("A x+", Plus(As(A, "x"))),
        ("A+ x", As(Plus(A), "x")),
        ("(A OR B) x", As(Or((A, B)), "x")),
        ("(A OR B AS) x", As(Or((A, B)), "x")),
        ("(A OR B as ) AS x", As(Or((A, B)), "x")),
        ("((A as) x; B as) y", As(chain(As(A, "x"), B), "y")),
        ("S>A", Atom("A", "S")),
        ("S > A AS x", As(Atom("A", "S"), "x")),
        ("((A))", A),
    ],
)
def test_formulas(formula: str, expected: Pattern) -> None:
    assert pattern(formula) == expected


def test_a_joint_between_a_postfix_operator_and_a_step() -> None:
    assert pattern("A:+:B+;C") == Sequence((Plus(A, contiguous=True), Plus(B), C), (True, False))


def test_formula_keywords_ignore_case_and_names_do_not() -> None:
    assert pattern("a Or B aS b") == Or((Atom("a"), As(B, "b")))


@pytest.mark.parametrize("word", ["limit", "next", "MAX", "events", "none", "minute", "by", "in", "like", "all", "any"])
def test_words_of_other_places_are_names(word: str) -> None:
    assert pattern(f"{word} AS x; A AS {word}") == chain(As(Atom(word), "x"), As(A, word))
    assert pattern(f"A AS {word} FILTER {word}[{word}_1 = 3]").variable == word  # type: ignore[union-attr]
    item = parse(f"SELECT {word}, A FROM {word} WHERE A AS {word}").items
    assert item is not None
    assert [one.variable for one in item] == [word, "A"]


@pytest.mark.parametrize(
    "word", ["limit", "from", "select", "within", "partition", "filter", "as", "max", "by", "where"]
)
def test_words_of_the_formula_are_attributes(word: str) -> None:
    assert predicate(f"{word} > 3 AND {word}") == p.And(
        (
            p.Comparison(">", p.Attribute(word), p.Constant(3)),
            p.Comparison("=", p.Attribute(word), p.Constant(True)),
        )
    )


@pytest.mark.parametrize("word", ["and", "IN", "is", "not", "null", "true"])
def test_every_word_is_a_column_outside_predicates_and_an_attribute_in_quotes(word: str) -> None:
    query = parse(f"SELECT A[{word}] FROM S WHERE A FILTER A[`{word}` = 3] PARTITION BY [{word}] WITHIN 1 [{word}]")
    assert query.items == (SelectItem("A", (word,)),)
    assert query.partition_by == (word,)
    assert query.window == Window(number=1, attribute=word)
    assert query.pattern == Filter(A, "A", equals(word, 3))


def test_names_may_be_any_text_in_quotes() -> None:
    query = parse('SELECT "a ""b" FROM `my stream` WHERE `my stream`>"FROM" AS "a ""b" FILTER "a ""b"[`π²``` = 1]')
    assert query.items == (SelectItem('a "b'),)
    assert query.streams == ("my stream",)
    atom = Atom("FROM", "my stream")
    assert query.pattern == Filter(As(atom, 'a "b'), 'a "b', equals("π²`", 1))


def test_names_are_unicode() -> None:
    assert pattern("Käufe AS größe_1; 買い") == chain(As(Atom("Käufe"), "größe_1"), Atom("買い"))


def test_comments_space_and_a_last_semicolon() -> None:
    text = "\ufeffSELECT * -- all\r\nFROM S /* one; */ WHERE A/**/;B -- c\n;\n-- the end; \n /* x */ "
    assert parse(text).pattern == chain(A, B)
    assert parse("SELECT * FROM S WHERE A WITHIN 3 EVENTS;").window == Window(events=3)


# ---- FILTER


def test_filter_has_everything_to_its_left() -> None:
    small, big = (
        p.Comparison("<", p.Attribute("x"), p.Constant(1)),
        p.Comparison(">", p.Attribute("x"), p.Constant(1)),
    )
    assert pattern("A;B OR C FILTER A[x > 1]") == Filter(Or((chain(A, B), C)), "A", big)
    assert pattern("(A FILTER A[x > 1]); B") == chain(Filter(A, "A", big), B)
    assert pattern("(A; B FILTER A[x > 1] FILTER B[x < 1])+") == Plus(Filter(Filter(chain(A, B), "A", big), "B", small))


def test_filter_and_or_are_written_out() -> None:
    def f(node: Pattern, number: int) -> Filter:
        return Filter(node, "A", equals("x", number))

    one, two, three = (f"A[x = {number}]" for number in (1, 2, 3))
    assert pattern(f"A FILTER {one} AND {two}") == f(f(A, 1), 2)
    assert pattern(f"A FILTER {one} OR {two}") == Or((f(A, 1), f(A, 2)))
    assert pattern(f"A FILTER {one} OR {two} AND {three}") == Or((f(A, 1), f(f(A, 2), 3)))
    assert pattern(f"A FILTER ({one} OR {two}) AND {three}") == f(Or((f(A, 1), f(A, 2))), 3)
    assert pattern(f"A FILTER {three} AND ({one} OR {two})") == Or((f(f(A, 3), 1), f(f(A, 3), 2)))
    assert pattern(f"A FILTER {one} OR {two} OR {three}") == Or((f(A, 1), f(A, 2), f(A, 3)))


def test_filter_knows_types_and_qualified_types() -> None:
    for name in ("A", "S>A"):
        found = pattern(f"S>A; B FILTER {name}[x = 1]")
        assert found == Filter(chain(Atom("A", "S"), B), name, equals("x", 1))
    assert "never binds" in refused("SELECT * FROM S WHERE A; B FILTER S>A[x = 1]").message


def test_filter_or_has_a_limit_of_copies() -> None:
    def choices(number: int) -> str:
        return " AND ".join(["(A[x] OR A[y])"] * number)

    assert sum(isinstance(node, Atom) for node in walk(pattern(f"A FILTER {choices(10)}"))) == 1024
    error = refused(f"SELECT * FROM S WHERE A FILTER {choices(11)}")
    assert "2048 times" in error.message
    assert error.hint is not None
    assert "x[p OR q]" in error.hint
    inner = f"(A FILTER {choices(6)})"
    assert "4096 times" in refused(f"SELECT * FROM S WHERE ({inner}; B FILTER {choices(6)})").message
    assert "million" in refused(f"SELECT * FROM S WHERE A FILTER {choices(40)}").message


def test_copies_side_by_side_do_not_multiply() -> None:
    step = "(A FILTER (A[x] OR A[y]) AND (A[x] OR A[y]))"
    assert len(pattern(";".join([step] * 200)).parts) == 200  # type: ignore[union-attr]


# ---- Predicates


X, Y = p.Attribute("x"), p.Attribute("y")


def n(value: int | str | Decimal | bool) -> p.Constant:
    return p.Constant(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", p.Comparison("=", X, n(1))),
        ("x == 1", p.Comparison("=", X, n(1))),
        ("x <> 1", p.Comparison("!=", X, n(1))),
        ("x != 1", p.Comparison("!=", X, n(1))),
        ("1<=x", p.Comparison("<=", n(1), X)),
        ("x>=y", p.Comparison(">=", X, Y)),
        ("x > 1.50", p.Comparison(">", X, n(Decimal("1.50")))),
        ("x > -1", p.Comparison(">", X, n(-1))),
        ("x > - 1e2", p.Comparison(">", X, n(Decimal("-1e2")))),
        ("x > -y", p.Comparison(">", X, p.Negative(Y))),
        ("x > - -1", p.Comparison(">", X, n(1))),
        ("x+1*2-y>0", p.Comparison(">", p.Arithmetic("-", p.Arithmetic("+", X, p.Arithmetic("*", n(1), n(2))), Y), n(0))),
        ("x/2%3=0", p.Comparison("=", p.Arithmetic("%", p.Arithmetic("/", X, n(2)), n(3)), n(0))),
        ("(x+1)*2 > ((y))", p.Comparison(">", p.Arithmetic("*", p.Arithmetic("+", X, n(1)), n(2)), Y)),
        ("-(x)*2 = 1", p.Comparison("=", p.Arithmetic("*", p.Negative(X), n(2)), n(1))),
        ("x IN (1, -2, 'a', TRUE)", p.In(X, (n(1), n(-2), n("a"), n(True)))),
        ("x not in (1)", p.Not(p.In(X, (n(1),)))),
        ("x BETWEEN 1 AND y + 1", p.Between(X, n(1), p.Arithmetic("+", Y, n(1)))),
        ("x NOT BETWEEN 1 AND 2 AND y", p.And((p.Not(p.Between(X, n(1), n(2))), p.Comparison("=", Y, n(True))))),
        ("x LIKE 'a%'", p.Like(X, "a%")),
        ("x NOT LIKE 'a''_'", p.Not(p.Like(X, "a'_"))),
        ("x IS NULL", p.IsNull(X)),
        ("x + 1 IS NOT NULL", p.Not(p.IsNull(p.Arithmetic("+", X, n(1))))),
        ("x", p.Comparison("=", X, n(True))),
        ("(x)", p.Comparison("=", X, n(True))),
        ("NOT x", p.Not(p.Comparison("=", X, n(True)))),
        ("x = FALSE", p.Comparison("=", X, n(False))),
        ("TRUE", p.Comparison("=", n(True), n(True))),
        ("NOT x = 1 AND y", p.And((p.Not(p.Comparison("=", X, n(1))), p.Comparison("=", Y, n(True))))),
        ("NOT NOT x", p.Not(p.Not(p.Comparison("=", X, n(True))))),
        ("x AND y AND x OR y OR x", p.Or((p.And((_x := p.Comparison("=", X, n(True)), _y := p.Comparison("=", Y, n(True)), _x)), _y, _x))),
        ("x AND (y OR x)", p.And((_x, p.Or((_y, _x))))),
        ("(x AND y) AND (x AND y)", p.And((_x, _y, _x, _y))),
        ("x = 'it''s'", p.Comparison("=", X, n("it's"))),
        ("x = ’it’’s’", p.Comparison("=", X, n("it’s"))),
        ("x = ‘a'b’", p.Comparison("=", X, n("a'b"))),
        ("x = ''", p.Comparison("=", X, n(""))),
        ("x = 'ü\n𝄞 -- /* '", p.Comparison("=", X, n("ü\n𝄞 -- /* "))),
        ("x = .5", p.Comparison("=", X, n(Decimal("0.5")))),
    ],
)  # fmt: skip
def test_predicates(text: str, expected: p.Predicate) -> None:
    found = predicate(text)
    assert found == expected
    assert predicate(str(found)) == found


def test_literals_are_exact() -> None:
    digits = "1234567890" * 40
    found = predicate(f"x = {digits}")
    assert isinstance(found, p.Comparison)
    assert found.right == n(int(digits))
    small = predicate("x = -0.10000000000000000000000000000000000000001")
    assert isinstance(small, p.Comparison)
    assert isinstance(small.right, p.Constant)
    assert str(small.right.value) == "-0.10000000000000000000000000000000000000001"
    for number, kind in (("1", int), ("1.0", Decimal), ("1e2", Decimal), ("1.", Decimal)):
        one = predicate(f"x = {number}")
        assert isinstance(one, p.Comparison)
        assert isinstance(one.right, p.Constant)
        assert type(one.right.value) is kind


@pytest.mark.parametrize(
    "number", ["1" * 401, "1e999999", "1e-999999", "0e" + "9" * 90_000, "1" * 90_000, "." + "1" * 500]
)
def test_numbers_out_of_range(number: str) -> None:
    assert "400 digits" in refused(f"SELECT * FROM S WHERE A FILTER A[x = {number}]").message
    assert "400 digits" in refused(f"SELECT * FROM S WHERE A WITHIN {number} EVENTS").message


# ---- Clauses


@pytest.mark.parametrize(
    "text", ["NOT IN (1, 2)", "in(1, 2)", "x > 1 AND like ('a')", "between (1) AND 2", "x + is (1) = 2", "or (x, 1)"]
)
def test_an_operator_without_its_value_is_no_function(text: str) -> None:
    error = refused(f"SELECT * FROM S WHERE A FILTER A[{text}]")
    assert error.span is not None
    assert error.text is not None
    word = error.text[error.span.start : error.span.end].upper()
    assert error.message == f"a value is needed before {word}"
    assert word in str(error.hint)


def test_a_condition_of_constants_reads_back() -> None:
    found = predicate("starts_with('ab', 'a')")
    assert predicate(str(found)) == found
    assert "constants only" in refused("SELECT * FROM S WHERE A FILTER A[abs(1) = 1]").message


def test_select() -> None:
    def select(text: str) -> tuple[Strategy, tuple[SelectItem, ...] | None]:
        query = parse(f"SELECT {text} FROM S, T WHERE (A AS max; B AS next; S>C AS none)+")
        return query.strategy, query.items

    assert select("*") == (Strategy.ALL, None)
    assert select("max *") == (Strategy.MAX, None)
    assert select("NONE") == (Strategy.ALL, ())
    assert select("MAX NONE") == (Strategy.MAX, ())
    assert select("none, A") == (Strategy.ALL, (SelectItem("none"), SelectItem("A")))
    assert select("none[x]") == (Strategy.ALL, (SelectItem("none", ("x",)),))
    assert select('"none"') == (Strategy.ALL, (SelectItem("none"),))
    assert select("max") == (Strategy.ALL, (SelectItem("max"),))
    assert select("MAX max") == (Strategy.MAX, (SelectItem("max"),))
    assert select("next, B") == (Strategy.ALL, (SelectItem("next"), SelectItem("B")))
    assert select("max[a, `b c`]") == (Strategy.ALL, (SelectItem("max", ("a", "b c")),))
    assert select("strict S>C, C[x]") == (Strategy.STRICT, (SelectItem("S>C"), SelectItem("C", ("x",))))
    for strategy in Strategy:
        assert select(f"{strategy} next") == (strategy, (SelectItem("next"),))


def test_the_clauses_come_in_any_order() -> None:
    clauses = ["FILTER A[x = 1]", "PARTITION BY [a], [b]", "WITHIN 3 EVENTS", "CONSUME BY any", "LIMIT 4"]
    one, other = (parse(" ".join(["SELECT * FROM S WHERE A", *order])) for order in (clauses, clauses[::-1]))
    for query in (one, other):
        assert query.pattern == Filter(A, "A", equals("x", 1))
        assert query.partition_by == ("a", "b")
        assert query.window == Window(events=3)
        assert query.consume is Consume.ANY
        assert query.limit == 4
    for clause in clauses:
        assert "second" in refused(" ".join(["SELECT * FROM S WHERE A", *clauses, clause])).message


def test_defaults() -> None:
    query = parse("select * from S where A")
    assert query == ParsedQuery("select * from S where A", Strategy.ALL, None, ("S",), A)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 EVENTS", Window(events=0)),
        ("1 event", Window(events=1)),
        ("10000 [stock_time]", Window(number=10000, attribute="stock_time")),
        ("2.5[t]", Window(number=Decimal("2.5"), attribute="t")),
        ("1 minute", Window(seconds=Decimal(60))),
        ("1 HOUR 30 Minutes", Window(seconds=Decimal(5400))),
        ("1h 30m 2.5s", Window(seconds=Decimal("5402.5"))),
        ("1 week 1 day", Window(seconds=Decimal(8 * 86400))),
        ("3 ns", Window(seconds=Decimal("3e-9"))),
        ("7 µs 1 μs 1 us", Window(seconds=Decimal("9e-6"))),
        ("250 ms [t]", Window(seconds=Decimal("0.25"), attribute="t")),
        ("0 s", Window(seconds=Decimal(0))),
        (f"{10**60} weeks 1 ns", Window(seconds=Decimal(f"{604800 * 10**60}.000000001"))),
    ],
)  # fmt: skip
def test_windows(text: str, expected: Window) -> None:
    assert window(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1 EVENTS", "negative"),
        ("1.5 EVENTS", "integer"),
        ("1e3 EVENTS", "integer"),
        ("3 EVENTS [x]", "no attribute"),
        ("3 EVENTS 2 s", "one number"),
        ("10", "of what"),
        ("1 hour 30 [x]", "30 of what"),
        ("1 fortnight", "unknown unit"),
        ("1 s [a, b]", "one attribute"),
    ],
)
def test_windows_refused(text: str, message: str) -> None:
    assert message in refused(f"SELECT * FROM S WHERE A WITHIN {text}").message


def test_partition_by() -> None:
    for text in ("[a], [b]", "[a, b]", "[a],[`b`]"):
        assert parse(f"SELECT * FROM S WHERE A PARTITION BY {text}").partition_by == ("a", "b")
    assert "twice" in refused("SELECT * FROM S WHERE A PARTITION BY [a], [b, a]").message


def test_consume_and_limit() -> None:
    for mode in Consume:
        assert parse(f"SELECT * FROM S WHERE A CONSUME BY {mode.lower()}").consume is mode
    for number in ("0", "-1", "1.5", "1e2"):
        assert "positive" in refused(f"SELECT * FROM S WHERE A LIMIT {number}").message


def test_names_must_be_bound_and_listed_once() -> None:
    assert refused("SELECT lwo FROM S WHERE A AS low").hint == "did you mean 'low'?"
    assert refused("SELECT low, low FROM S WHERE A AS low").span == Span(12, 15)
    assert "twice" in refused("SELECT A[x, x] FROM S WHERE A").message
    assert "twice" in refused("SELECT * FROM S, T, S WHERE A").message
    assert refused("SELECT * FROM Stock WHERE Stok>A").hint == "did you mean 'Stock'?"
    assert refused("SELECT * FROM S WHERE (A FILTER B[x = 1]); B").hint == "known variables: A"
    assert parse("SELECT BUY, SELL FROM S WHERE BUY AS x; SELL FILTER SELL[price > 3]").items is not None


def test_spans() -> None:
    text = "SELECT ab, S>C[d, e] FROM S WHERE A AS ab; S > C FILTER ab[x+1 > 'q'] PARTITION BY [f] WITHIN 1 min [g]"
    query = parse(text)

    def at(span: Span | None) -> str:
        assert span is not None
        return text[span.start : span.end]

    assert query.items is not None
    assert [at(item.span) for item in query.items] == ["ab", "S>C"]
    assert [at(span) for span in query.items[1].attribute_spans] == ["d", "e"]
    assert [at(span) for span in query.stream_spans] == ["S"]
    assert [at(span) for span in query.partition_spans] == ["f"]
    assert query.window is not None
    assert at(query.window.span) == "1 min [g]"
    assert at(query.window.attribute_span) == "g"
    spans = [at(node.span) for node in walk(query.pattern) if isinstance(node, Atom | As | Filter)]
    assert spans == ["ab[x+1 > 'q']", "ab", "A", "S > C"]
    assert isinstance(query.pattern, Filter)
    assert [at(node.span) for node in p.walk(query.pattern.predicate)] == [
        "x+1 > 'q'",
        "x+1",
        "x",
        "1",
        "'q'",
    ]


# ---- Size


def test_thousands_of_steps_need_no_stack() -> None:
    began = time.process_time()
    found = pattern(";".join(["A"] * 5_000) + " OR " + " OR ".join(["B"] * 5_000))
    assert time.process_time() - began < 10
    assert isinstance(found, Or)
    assert len(found.alternatives) == 5_001
    assert len(found.alternatives[0].parts) == 5_000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("before", "middle", "after"),
    [
        ("(", "A", ")"),
        ("(A;", "A", ")"),
        ("(A;B OR ", "A", ")+ AS x"),
        ("", "A", "+"),
        ("", "A", " AS x"),
        ("(", "A", " FILTER A[x])"),
    ],
)
def test_nesting_is_bounded(before: str, middle: str, after: str) -> None:
    def text(depth: int) -> str:
        return f"SELECT * FROM S WHERE {before * depth}{middle}{after * depth}"

    query = parse(text(49))
    assert hash(query.pattern) == hash(parse(text(49)).pattern)
    assert parse(f"SELECT * FROM S WHERE {query.pattern}").pattern == query.pattern
    for depth in (201, 5_000):
        assert "200" in refused(text(depth)).message


@pytest.mark.parametrize(
    ("before", "after"),
    [("(", ")"), ("NOT ", ""), ("- ", ""), ("", " + 1"), ("(x AND (y OR ", "))"), ("1 * (", ")")],
)
def test_nesting_of_expressions_is_bounded(before: str, after: str) -> None:
    close = " > 1" if before in ("", "- ", "1 * (") else ""
    for depth in (201, 5_000):
        text = f"SELECT * FROM S WHERE A FILTER A[{before * depth}x{after * depth}{close}]"
        if before == "- ":
            text = text.replace("- x", "- (y)")
        assert "200" in refused(text).message


def test_exactly_200_parentheses() -> None:
    assert pattern("(" * 200 + "A" + ")" * 200) == A
    assert "200" in refused("SELECT * FROM S WHERE " + "(" * 201 + "A" + ")" * 201).message


def test_a_thousand_filters_of_one_formula() -> None:
    query = parse("SELECT * FROM S WHERE A FILTER " + " AND ".join(["A[x]"] * 1000))
    assert str(query.pattern).count("A[x = TRUE]") == 1000


def test_a_query_of_more_than_a_million_characters() -> None:
    with pytest.raises(QueryError, match="1,000,000"):
        parse(" " * 1_000_001)


def test_threads_share_the_parser() -> None:
    found: list[Pattern] = []
    threads = [threading.Thread(target=lambda: found.append(pattern("A;B;C+"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [chain(A, B, Plus(C))] * 4


# ---- The CORE paper's queries


BUY, SELL, EITHER = Atom("BUY"), Atom("SELL"), Or((Atom("BUY"), Atom("SELL")))


def test_figure_1_q1() -> None:
    """Inside conditions double quotes are those of strings."""
    query = parse(
        """SELECT * FROM Stock
        WHERE SELL as msft; SELL as intel; SELL as amzn
        FILTER msft[name="MSFT"] AND msft[price > 100]
           AND intel[name="INTC"]
           AND amzn[name="AMZN"] AND amzn[price < 2000]"""
    )
    found, body = filters(query.pattern)
    assert body == chain(As(SELL, "msft"), As(SELL, "intel"), As(SELL, "amzn"))
    assert [variable for variable, _ in found] == ["msft", "msft", "intel", "amzn", "amzn"]
    assert found[0][1] == p.Comparison("=", p.Attribute("name"), p.Constant("MSFT"))
    assert found[4][1] == p.Comparison("<", p.Attribute("price"), n(2000))


def test_figure_1_q2() -> None:
    query = parse(
        """SELECT b FROM Stock
        WHERE (BUY or SELL) as s;
              (BUY or SELL) as b
        PARTITION BY [name], [volume]
        WITHIN 1 minute"""
    )
    assert query.items == (SelectItem("b"),)
    assert query.pattern == chain(As(EITHER, "s"), As(EITHER, "b"))
    assert query.partition_by == ("name", "volume")
    assert query.window == Window(seconds=Decimal(60))


def test_figure_1_q3() -> None:
    query = parse(
        """SELECT MAX * FROM Stock
        WHERE (BUY OR SELL) as low; (BUY OR SELL)+ as mid; (BUY OR SELL as) high
        FILTER low[price < 100] AND mid[price >= 100]
           AND mid[price <= 2000] AND high[price > 2000]
        PARTITION BY [name]"""
    )
    found, body = filters(query.pattern)
    assert query.strategy is Strategy.MAX
    assert query.streams == ("Stock",)
    assert body == chain(As(EITHER, "low"), As(Plus(EITHER), "mid"), As(EITHER, "high"))
    assert [(variable, str(one)) for variable, one in found] == [
        ("low", "price < 100"),
        ("mid", "price >= 100"),
        ("mid", "price <= 2000"),
        ("high", "price > 2000"),
    ]


STOCKS = "INTC RIMM QQQ IPIX AMAT CSCO YHOO DELL ORCL MSFT INTC RIMM INTC RIMM QQQ IPIX AMAT CSCO YHOO DELL ORCL MSFT INTC RIMM"  # fmt: skip
HOUSEHOLDS = (0, 2, 4, 6, 9, 10, 12, 14, 15, 4, 9, 10) * 2
_STOPS = [
    "East Harlem North",
    "Midwood",
    "Gravesend",
    "West Brighton",
    "Lincoln Square West",
    "Sutton Place/Turtle Bay North",
    "East Concourse/Concourse Village",
    "East Harlem North",
    "East Harlem North",
    "Gravesend",
    "Midwood",
    "Midwood",
    "Gravesend",
    "Midwood",
    "Gravesend",
    "West Brighton",
    "Lincoln Square West",
    "Sutton Place/Turtle Bay North",
    "East Concourse/Concourse Village",
    "East Harlem North",
    "East Harlem North",
    "Gravesend",
    "Midwood",
    "Midwood",
    "Gravesend",
]
SIZES = [(length, extended) for length in (3, 6, 9, 12, 24) for extended in (False, True)]


@pytest.mark.parametrize(("length", "extended"), SIZES)
def test_appendix_d_stock_market(length: int, extended: bool) -> None:
    kinds = ["SELL" if i % 3 == 0 else "BUY" for i in range(length)]
    steps = [f"{kind} as T{i + 1}" for i, kind in enumerate(kinds)] + ["BUY AS NE"] * extended
    names = STOCKS.split()[:length]
    conditions = [f"T{i + 1}[name = ’{name}’]" for i, name in enumerate(names)]
    conditions += ["NE[name = ’NotExists’]"] * extended
    query = parse(
        f"SELECT * FROM S\nWHERE ({'; '.join(steps)})\nFILTER {' AND '.join(conditions)}\nWITHIN 10000 [stock_time]"
    )
    found, body = filters(query.pattern)
    last = [As(BUY, "NE")] if extended else []
    assert body == chain(*(As(Atom(kind), f"T{i + 1}") for i, kind in enumerate(kinds)), *last)
    expected = [(f"T{i + 1}", equals("name", name)) for i, name in enumerate(names)]
    assert found == expected + [("NE", equals("name", "NotExists"))] * extended
    assert query.window == Window(number=10000, attribute="stock_time")


@pytest.mark.parametrize(("length", "extended"), SIZES)
def test_appendix_e_smart_homes(length: int, extended: bool) -> None:
    names = [f"L{i + 1}" for i in range(length)] + ["NE"] * extended
    houses = [*HOUSEHOLDS[:length], *([1000] * extended)]
    steps = "; ".join(f"LOAD as {name}" for name in names)
    conditions = " AND ".join(f"{name}[household_id = {house}]" for name, house in zip(names, houses, strict=True))
    query = parse(
        f"SELECT * FROM S WHERE ({steps}) as L FILTER L[value > 76] AND {conditions} WITHIN 10 [plug_timestamp]"
    )
    found, body = filters(query.pattern)
    assert body == As(chain(*(As(Atom("LOAD"), name) for name in names)), "L")
    assert found[0] == ("L", p.Comparison(">", p.Attribute("value"), n(76)))
    assert found[1:] == [(name, equals("household_id", house)) for name, house in zip(names, houses, strict=True)]


@pytest.mark.parametrize(("length", "extended"), SIZES)
def test_appendix_f_taxi_trips(length: int, extended: bool) -> None:
    steps = [f"TRIP as loc{i + 1}" for i in range(length)] + ["TRIP as NE"] * extended
    legs = list(pairwise(_STOPS))[:length]
    conditions = [
        f"loc{i + 1}[pickup_loc = ’{start}’ {'and' if i % 12 == 0 else 'AND'} dropoff_loc = ’{stop}’]"
        for i, (start, stop) in enumerate(legs)
    ] + ["NE[pickup_loc = ’NotExists’]"] * extended
    query = parse(
        f"SELECT * FROM S WHERE ({'; '.join(steps)}) FILTER {' AND '.join(conditions)} WITHIN 10000 [dropoff_datetime]"
    )
    found, body = filters(query.pattern)
    assert isinstance(body, Sequence)
    assert len(body.parts) == length + extended
    assert len(found) == length + extended
    assert found[:length] == [
        (f"loc{i + 1}", p.And((equals("pickup_loc", start), equals("dropoff_loc", stop))))
        for i, (start, stop) in enumerate(legs)
    ]


def test_appendix_d_verbatim() -> None:
    query = parse(
        """SELECT * FROM S
     WHERE (SELL as T1; BUY as T2; BUY as T3)
     FILTER T1[name = ’INTC’] AND T2[name = ’RIMM’] AND T3[name = ’QQQ’]
     WITHIN 10000 [stock_time]
"""
    )
    found, body = filters(query.pattern)
    assert found == [
        ("T1", equals("name", "INTC")),
        ("T2", equals("name", "RIMM")),
        ("T3", equals("name", "QQQ")),
    ]
    assert body == chain(As(SELL, "T1"), As(BUY, "T2"), As(BUY, "T3"))
    extended = parse(
        """SELECT * FROM S
      WHERE (SELL as T1; BUY as T2; BUY as T3; BUY as NE)
      FILTER T1[name = ’INTC’] AND T2[name = ’RIMM’] AND T3[name = ’QQQ’] AND NE[name = ’NotExists’]
      WITHIN 10000 [stock_time]
"""
    )
    assert isinstance(extended.pattern, Filter)
    assert (extended.pattern.variable, extended.pattern.predicate) == ("NE", equals("name", "NotExists"))
    for factor in (2, 3, 4):
        longer = parse(extended.text.replace("10000", f"{factor}0000"))
        assert longer.window == Window(number=factor * 10000, attribute="stock_time")
        assert longer.pattern == extended.pattern


def test_appendix_e_verbatim() -> None:
    query = parse(
        """SELECT * FROM S
     WHERE (LOAD as L1; LOAD as L2; LOAD as L3) as L
     FILTER L[value > 76] AND
            L1[household_id = 0] AND L2[household_id = 2] AND L3[household_id = 4]
     WITHIN 10 [plug_timestamp]
"""
    )
    found, body = filters(query.pattern)
    assert [variable for variable, _ in found] == ["L", "L1", "L2", "L3"]
    assert isinstance(body, As)
    assert body.variable == "L"
    assert query.window == Window(number=10, attribute="plug_timestamp")


def test_appendix_f_verbatim() -> None:
    query = parse(
        """SELECT * FROM S
     WHERE (TRIP as loc1; TRIP as loc2; TRIP as loc3)
     FILTER loc1[pickup_loc = ’East Harlem North’ and dropoff_loc = ’Midwood’] AND
            loc2[pickup_loc = ’Midwood’ AND dropoff_loc = ’Gravesend’] AND
            loc3[pickup_loc = ’Gravesend’ AND dropoff_loc = ’West Brighton’]
     WITHIN 10000 [dropoff_datetime]
"""
    )
    found, _ = filters(query.pattern)
    assert found[0] == (
        "loc1",
        p.And((equals("pickup_loc", "East Harlem North"), equals("dropoff_loc", "Midwood"))),
    )


G_FOUR = "SELECT * FROM S\n     WHERE (SELL as msft; BUY as oracle; BUY as csco; SELL as amat)\n"
G_EITHER = "SELECT * FROM S\n     WHERE (SELL as msft; (BUY OR SELL) as oracle; (BUY OR SELL) as csco; SELL as amat)\n"
G_NAMES = """     FILTER msft[name = ’MSFT’] AND oracle[name = ’ORCL’] AND
            csco[name = ’CSCO’] AND amat[name = ’AMAT’]
"""
G_PRICES = """     FILTER msft[name = ’MSFT’] AND msft[price > 26.0] AND
            oracle[name = ’ORCL’] AND oracle[price > 11.14] AND
            csco[name = ’CSCO’] AND amat[name = ’AMAT’] AND amat[price >= 18.92]
"""
G_PARTITION, G_WITHIN, G_CONSUME = (
    "     PARTITION BY [volume]\n",
    "     WITHIN 30000 [stock_time]\n",
    "     CONSUME BY ANY\n",
)


@pytest.mark.parametrize(
    ("text", "middle", "prices", "partitioned"),
    [
        (G_FOUR + G_NAMES + G_WITHIN, BUY, False, False),
        (G_FOUR + G_PRICES + G_WITHIN, BUY, True, False),
        (G_FOUR + G_NAMES + G_PARTITION + G_WITHIN + G_CONSUME, BUY, False, True),
        (G_EITHER + G_NAMES + G_WITHIN, EITHER, False, False),
        (G_EITHER + G_PRICES + G_WITHIN, EITHER, True, False),
        (G_EITHER + G_NAMES + G_PARTITION + G_WITHIN + G_CONSUME, EITHER, False, True),
    ],
    ids=["Q1", "Q2", "Q3", "Q4", "Q5", "Q6"],
)
def test_appendix_g(text: str, middle: Pattern, prices: bool, partitioned: bool) -> None:
    query = parse(text)
    found, body = filters(query.pattern)
    assert body == chain(As(SELL, "msft"), As(middle, "oracle"), As(middle, "csco"), As(SELL, "amat"))
    assert [str(one) for _, one in found if "name" in str(one)] == [
        "name = 'MSFT'",
        "name = 'ORCL'",
        "name = 'CSCO'",
        "name = 'AMAT'",
    ]
    assert [(variable, str(one)) for variable, one in found if "price" in str(one)] == (
        [("msft", "price > 26.0"), ("oracle", "price > 11.14"), ("amat", "price >= 18.92")] if prices else []
    )
    assert query.partition_by == (("volume",) if partitioned else ())
    assert query.consume is (Consume.ANY if partitioned else Consume.NONE)
    assert query.window == Window(number=30000, attribute="stock_time")


def test_appendix_g_q7() -> None:
    query = parse(
        """SELECT * FROM S
     WHERE (SELL as msft; (BUY OR SELL)+ as qqq; SELL as amat)
     FILTER msft[name = ’MSFT’] AND qqq[name = ’QQQ’] and
            qqq[volume=4000] AND amat[name = ’AMAT’]
     WITHIN 30000 [stock_time]
"""
    )
    found, body = filters(query.pattern)
    assert body == chain(As(SELL, "msft"), As(Plus(EITHER), "qqq"), As(SELL, "amat"))
    assert found[2] == ("qqq", equals("volume", 4000))


def test_keywords_are_ascii() -> None:
    """İ and ſ are i and s for a regular expression that ignores case, but not for a reader."""
    for text in (
        "SELECT ſtrict * FROM S WHERE A",
        "SELECT STRİCT * FROM S WHERE A",
        "ſELECT * FROM S WHERE A",
    ):
        refused(text)
