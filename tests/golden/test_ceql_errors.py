"""The exact texts of CEQL's errors."""

from __future__ import annotations

import pickle

import pytest

from stretto.errors import QueryError, Span
from stretto.languages.ceql import parse

CASES: list[tuple[str, list[str]]] = [
    (
        "",
        [
            "the query is empty",
            "hint: SELECT * FROM stream WHERE formula",
        ],
    ),
    (
        "  \n",
        [
            "the query is empty",
            "hint: SELECT * FROM stream WHERE formula",
        ],
    ),
    (
        "SELET * FROM S WHERE A",
        [
            "line 1, column 1: unexpected 'SELET'; expected SELECT",
            "  SELET * FROM S WHERE A",
            "  ^^^^^",
            "hint: did you mean 'SELECT'?",
        ],
    ),
    (
        "SELECT * FORM S WHERE A",
        [
            "line 1, column 10: unexpected 'FORM'; expected FROM",
            "  SELECT * FORM S WHERE A",
            "           ^^^^",
            "hint: did you mean 'FROM'?",
        ],
    ),
    (
        "SELECT * FROM S WHER A",
        [
            "line 1, column 17: unexpected 'WHER'; expected ',' or WHERE",
            "  SELECT * FROM S WHER A",
            "                  ^^^^",
            "hint: did you mean 'WHERE'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FITLER A[x > 1]",
        [
            "line 1, column 25: unexpected 'FITLER'",
            "  SELECT * FROM S WHERE A FITLER A[x > 1]",
            "                          ^^^^^^",
            "hint: did you mean 'FILTER'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE A; B WITHN 10 [x]",
        [
            "line 1, column 28: unexpected 'WITHN'",
            "  SELECT * FROM S WHERE A; B WITHN 10 [x]",
            "                             ^^^^^",
            "hint: did you mean 'WITHIN'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE (A OR B) PARTITON BY [x]",
        [
            "line 1, column 32: unexpected 'PARTITON'",
            "  SELECT * FROM S WHERE (A OR B) PARTITON BY [x]",
            "                                 ^^^^^^^^",
            "hint: did you mean 'PARTITION BY'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE A+ LIMT 3",
        [
            "line 1, column 26: unexpected 'LIMT'",
            "  SELECT * FROM S WHERE A+ LIMT 3",
            "                           ^^^^",
            "hint: did you mean 'LIMIT'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE A ORR B",
        [
            "line 1, column 25: unexpected 'ORR'",
            "  SELECT * FROM S WHERE A ORR B",
            "                          ^^^",
            "hint: did you mean 'OR'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE A CONSUM BY ANY",
        [
            "line 1, column 25: unexpected 'CONSUM'",
            "  SELECT * FROM S WHERE A CONSUM BY ANY",
            "                          ^^^^^^",
            "hint: did you mean 'CONSUME BY'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE A WITHIN 3 EVENTS PARTITON BY [x]",
        [
            "line 1, column 41: unexpected 'PARTITON'; expected a number, '[', FILTER, WITHIN, PARTITION BY or the end",
            "  SELECT * FROM S WHERE A WITHIN 3 EVENTS PARTITON BY [x]",
            "                                          ^^^^^^^^",
            "hint: did you mean 'PARTITION BY'?",
        ],
    ),
    (
        "SELECT MX * FROM S WHERE A",
        [
            "line 1, column 8: unexpected 'MX'",
            "  SELECT MX * FROM S WHERE A",
            "         ^^",
            "hint: did you mean 'MAX'?",
        ],
    ),
    (
        "FROM S WHERE A",
        [
            "line 1, column 1: a query needs a SELECT clause",
            "  FROM S WHERE A",
            "  ^^^^",
            "hint: SELECT * FROM stream WHERE formula",
        ],
    ),
    (
        "SELECT *",
        [
            "line 1, column 9: a query needs a FROM clause",
            "  SELECT *",
            "          ^",
            "hint: SELECT * FROM stream WHERE formula",
        ],
    ),
    (
        "SELECT * WHERE A",
        [
            "line 1, column 10: a query needs a FROM clause",
            "  SELECT * WHERE A",
            "           ^^^^^",
            "hint: SELECT * FROM stream WHERE formula",
        ],
    ),
    (
        "SELECT * FROM S",
        [
            "line 1, column 16: a query needs a WHERE clause",
            "  SELECT * FROM S",
            "                 ^",
            "hint: SELECT * FROM stream WHERE formula",
        ],
    ),
    (
        "SELECT * FROM S WITHIN 3 EVENTS",
        [
            "line 1, column 17: a query needs a WHERE clause",
            "  SELECT * FROM S WITHIN 3 EVENTS",
            "                  ^^^^^^",
            "hint: SELECT * FROM stream WHERE formula",
        ],
    ),
    (
        "SELECT FROM S WHERE A",
        [
            "line 1, column 8: unexpected 'FROM'; expected a strategy (ALL, NEXT, LAST, MAX, STRICT), '*' or a name",
            "  SELECT FROM S WHERE A",
            "         ^^^^",
            "hint: SELECT * reports every variable, SELECT NONE reports none",
        ],
    ),
    (
        "SELECT a b FROM S WHERE A",
        [
            "line 1, column 10: unexpected 'b'; expected ',', '[' or FROM",
            "  SELECT a b FROM S WHERE A",
            "           ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE",
        [
            "line 1, column 22: the query ends too early; expected a name",
            "  SELECT * FROM S WHERE",
            "                       ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A B C",
        [
            "line 1, column 27: unexpected 'C'; expected ';', '+', AS, OR, FILTER or the end",
            "  SELECT * FROM S WHERE A B C",
            "                            ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A; ;B",
        [
            "line 1, column 26: unexpected ';'; expected a name",
            "  SELECT * FROM S WHERE A; ;B",
            "                           ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A)",
        [
            "line 1, column 24: unexpected ')'; expected FILTER, WITHIN, PARTITION BY, CONSUME BY, LIMIT or the end",
            "  SELECT * FROM S WHERE A)",
            "                         ^",
            "hint: there is no '(' for it to close",
        ],
    ),
    (
        "SELECT * FROM S WHERE (A; B",
        [
            "line 1, column 28: the query ends too early; expected ')' or FILTER",
            "  SELECT * FROM S WHERE (A; B",
            "                             ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE ()",
        [
            "line 1, column 24: unexpected ')'; expected a name",
            "  SELECT * FROM S WHERE ()",
            "                         ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE (A as)",
        [
            "line 1, column 29: the query ends too early; expected AS or a name",
            "  SELECT * FROM S WHERE (A as)",
            "                              ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A; NOT B",
        [
            "line 1, column 26: unexpected 'NOT'; expected a name",
            "  SELECT * FROM S WHERE A; NOT B",
            "                           ^^^",
            "hint: CEQL has no negated steps; NOT stands inside brackets: x[NOT (price > 3)]",
        ],
    ),
    (
        "SELECT * FROM S WHERE A AS from",
        [
            "line 1, column 28: unexpected 'from'; expected a name",
            "  SELECT * FROM S WHERE A AS from",
            "                             ^^^^",
            "hint: 'from' is a keyword; as a name it needs quotes: \"from\"",
        ],
    ),
    (
        "SELECT * FROM S WHERE A $",
        [
            "line 1, column 25: unexpected '$'; expected ';', '+', AS, OR, FILTER or the end",
            "  SELECT * FROM S WHERE A $",
            "                          ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER",
        [
            "line 1, column 31: the query ends too early; expected a name",
            "  SELECT * FROM S WHERE A FILTER",
            "                                ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A",
        [
            "line 1, column 33: the query ends too early; expected '['",
            "  SELECT * FROM S WHERE A FILTER A",
            "                                  ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[",
        [
            "line 1, column 34: the query ends too early; expected an attribute or a constant",
            "  SELECT * FROM S WHERE A FILTER A[",
            "                                   ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x",
        [
            "line 1, column 35: the query ends too early; expected a comparison, an operator, ']', AND or OR",
            "  SELECT * FROM S WHERE A FILTER A[x",
            "                                    ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x >",
        [
            "line 1, column 37: the query ends too early; expected an attribute or a constant",
            "  SELECT * FROM S WHERE A FILTER A[x >",
            "                                      ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x > 3",
        [
            "line 1, column 39: the query ends too early; expected an operator, ']', AND or OR",
            "  SELECT * FROM S WHERE A FILTER A[x > 3",
            "                                        ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x > 3]; B",
        [
            "line 1, column 40: unexpected ';'; expected AND, OR, FILTER, WITHIN, PARTITION BY or the end",
            "  SELECT * FROM S WHERE A FILTER A[x > 3]; B",
            "                                         ^",
            "hint: FILTER takes everything to its left; put it in parentheses: (A FILTER A[p]); B",
        ],
    ),
    (
        "SELECT * FROM S WHERE (A FILTER A[x > 3]; B)",
        [
            "line 1, column 41: unexpected ';'; expected ')', AND, OR or FILTER",
            "  SELECT * FROM S WHERE (A FILTER A[x > 3]; B)",
            "                                          ^",
            "hint: FILTER takes everything to its left; put it in parentheses: (A FILTER A[p]); B",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER NOT A[x > 3]",
        [
            "line 1, column 32: FILTER has no NOT outside brackets",
            "  SELECT * FROM S WHERE A FILTER NOT A[x > 3]",
            "                                 ^^^",
            "hint: put it inside: x[NOT (price > 3)]",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[1 < x < 4]",
        [
            "line 1, column 40: unexpected '<'; expected an operator, ']', AND or OR",
            "  SELECT * FROM S WHERE A FILTER A[1 < x < 4]",
            "                                         ^",
            "hint: comparisons do not chain; join them with AND",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x = NULL]",
        [
            "line 1, column 38: no value compares with NULL",
            "  SELECT * FROM S WHERE A FILTER A[x = NULL]",
            "                                       ^^^^",
            "hint: write IS NULL",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x <> NULL]",
        [
            "line 1, column 39: no value compares with NULL",
            "  SELECT * FROM S WHERE A FILTER A[x <> NULL]",
            "                                        ^^^^",
            "hint: write IS NOT NULL",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x IN (1, NULL)]",
        [
            "line 1, column 43: NULL is no value to compute with",
            "  SELECT * FROM S WHERE A FILTER A[x IN (1, NULL)]",
            "                                            ^^^^",
            "hint: NULL stands only in IS NULL and IS NOT NULL",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x IN (1, y)]",
        [
            "line 1, column 43: IN lists constants only",
            "  SELECT * FROM S WHERE A FILTER A[x IN (1, y)]",
            "                                            ^",
            "hint: write x = a OR x = b for attributes",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x + 1]",
        [
            "line 1, column 34: a condition is needed here, not a value",
            "  SELECT * FROM S WHERE A FILTER A[x + 1]",
            "                                   ^^^^^",
            "hint: compare it: price > 3",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[(x = 1) + 1 = 2]",
        [
            "line 1, column 34: a value is needed here, not a condition",
            "  SELECT * FROM S WHERE A FILTER A[(x = 1) + 1 = 2]",
            "                                   ^^^^^^^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x LIKE 3]",
        [
            "line 1, column 41: unexpected '3'; expected a string",
            "  SELECT * FROM S WHERE A FILTER A[x LIKE 3]",
            "                                          ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x IS 3]",
        [
            "line 1, column 39: unexpected '3'; expected NOT or NULL",
            "  SELECT * FROM S WHERE A FILTER A[x IS 3]",
            "                                        ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x BETWEEN 3 OR 4]",
        [
            "line 1, column 46: unexpected 'OR'; expected an operator or AND",
            "  SELECT * FROM S WHERE A FILTER A[x BETWEEN 3 OR 4]",
            "                                               ^^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[and > 3]",
        [
            "line 1, column 34: unexpected 'and'; expected an attribute or a constant",
            "  SELECT * FROM S WHERE A FILTER A[and > 3]",
            "                                   ^^^",
            "hint: 'and' is a keyword; as a name it needs quotes: \"and\"",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[-'a' = x]",
        [
            "line 1, column 34: 'a' has no negative",
            "  SELECT * FROM S WHERE A FILTER A[-'a' = x]",
            "                                   ^^^^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x = 1e999999]",
        [
            "line 1, column 38: a number of more than 400 digits",
            "  SELECT * FROM S WHERE A FILTER A[x = 1e999999]",
            "                                       ^^^^^^^^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x = 'abc]",
        [
            "line 1, column 38: a string that is not closed",
            "  SELECT * FROM S WHERE A FILTER A[x = 'abc]",
            "                                       ^",
            "hint: close it with '",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x = ’abc']",
        [
            "line 1, column 38: a string that is not closed",
            "  SELECT * FROM S WHERE A FILTER A[x = ’abc']",
            "                                       ^",
            "hint: close it with ’",
        ],
    ),
    (
        'SELECT * FROM S WHERE "A',
        [
            "line 1, column 23: a quoted name that is not closed",
            '  SELECT * FROM S WHERE "A',
            "                        ^",
            'hint: close it with "',
        ],
    ),
    (
        "SELECT * FROM S WHERE A /* c",
        [
            "line 1, column 25: a comment that is not closed",
            "  SELECT * FROM S WHERE A /* c",
            "                          ^^",
            "hint: close it with */",
        ],
    ),
    (
        'SELECT * FROM S WHERE ""',
        [
            "line 1, column 23: a name cannot be empty",
            '  SELECT * FROM S WHERE ""',
            "                        ^^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER B[x > 1]",
        [
            "line 1, column 32: FILTER names the variable 'B', which its formula never binds",
            "  SELECT * FROM S WHERE A FILTER B[x > 1]",
            "                                 ^",
            "hint: known variables: A",
        ],
    ),
    (
        "SELECT hgih FROM S WHERE A AS high; B AS low",
        [
            "line 1, column 8: SELECT names the variable 'hgih', which WHERE never binds",
            "  SELECT hgih FROM S WHERE A AS high; B AS low",
            "         ^^^^",
            "hint: did you mean 'high'?",
        ],
    ),
    (
        "SELECT a, a FROM S WHERE A AS a",
        [
            "line 1, column 11: SELECT lists the variable 'a' twice",
            "  SELECT a, a FROM S WHERE A AS a",
            "            ^",
        ],
    ),
    (
        "SELECT * FROM S, S WHERE A",
        [
            "line 1, column 18: FROM lists the stream 'S' twice",
            "  SELECT * FROM S, S WHERE A",
            "                   ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE T>A",
        [
            "line 1, column 23: FROM does not list the stream 'T'",
            "  SELECT * FROM S WHERE T>A",
            "                        ^^^",
            "hint: known streams: S",
        ],
    ),
    (
        "SELECT * FROM S WHERE A FILTER A[x > 1] LIMIT 2 FILTER A[x > 2]",
        [
            "line 1, column 49: a second FILTER clause",
            "  SELECT * FROM S WHERE A FILTER A[x > 1] LIMIT 2 FILTER A[x > 2]",
            "                                                  ^^^^^^",
            "hint: join the conditions with AND",
        ],
    ),
    (
        "SELECT * FROM S WHERE A WITHIN 3",
        [
            "line 1, column 32: WITHIN 3: 3 of what?",
            "  SELECT * FROM S WHERE A WITHIN 3",
            "                                 ^",
            "hint: write 3 EVENTS, 3 SECONDS (or another unit), or 3 [attribute]",
        ],
    ),
    (
        "SELECT * FROM S WHERE A WITHIN 3 minuts",
        [
            "line 1, column 34: unknown unit 'minuts'",
            "  SELECT * FROM S WHERE A WITHIN 3 minuts",
            "                                   ^^^^^^",
            "hint: did you mean 'minutes'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE A WITHIN 3 fortnights",
        [
            "line 1, column 34: unknown unit 'fortnights'",
            "  SELECT * FROM S WHERE A WITHIN 3 fortnights",
            "                                   ^^^^^^^^^^",
            "hint: known units: events, seconds, minutes, hours, days, weeks, ms, us, ns",
        ],
    ),
    (
        "SELECT * FROM S WHERE A WITHIN -3 EVENTS",
        [
            "line 1, column 32: a window cannot be negative",
            "  SELECT * FROM S WHERE A WITHIN -3 EVENTS",
            "                                 ^^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A WITHIN 2.5 EVENTS",
        [
            "line 1, column 32: a number of EVENTS is an integer",
            "  SELECT * FROM S WHERE A WITHIN 2.5 EVENTS",
            "                                 ^^^^^^^^^^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A WITHIN 3 [a, b]",
        [
            "line 1, column 38: WITHIN takes one attribute",
            "  SELECT * FROM S WHERE A WITHIN 3 [a, b]",
            "                                       ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A WITHIN [a]",
        [
            "line 1, column 32: unexpected '['; expected a number",
            "  SELECT * FROM S WHERE A WITHIN [a]",
            "                                 ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A LIMIT 0",
        [
            "line 1, column 31: LIMIT takes a positive integer",
            "  SELECT * FROM S WHERE A LIMIT 0",
            "                                ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A LIMIT ten",
        [
            "line 1, column 31: unexpected 'ten'; expected a number",
            "  SELECT * FROM S WHERE A LIMIT ten",
            "                                ^^^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A CONSUME BY PARTITON",
        [
            "line 1, column 36: CONSUME BY takes ANY, PARTITION or NONE, not 'PARTITON'",
            "  SELECT * FROM S WHERE A CONSUME BY PARTITON",
            "                                     ^^^^^^^^",
            "hint: did you mean 'PARTITION'?",
        ],
    ),
    (
        "SELECT * FROM S WHERE A PARTITION [x]",
        [
            "line 1, column 35: unexpected '['; expected BY",
            "  SELECT * FROM S WHERE A PARTITION [x]",
            "                                    ^",
        ],
    ),
    (
        "SELECT * FROM S WHERE A PARTITION BY x",
        [
            "line 1, column 38: unexpected 'x'; expected '['",
            "  SELECT * FROM S WHERE A PARTITION BY x",
            "                                       ^",
            "hint: write [x]",
        ],
    ),
    (
        "SELECT * FROM S WHERE A PARTITION BY [x], [x]",
        [
            "line 1, column 44: PARTITION BY lists the attribute 'x' twice",
            "  SELECT * FROM S WHERE A PARTITION BY [x], [x]",
            "                                             ^",
        ],
    ),
    (
        "SELECT *\nFROM S\nWHERE A;\n\tB FITLER B[x > 1]\n",
        [
            "line 4, column 4: unexpected 'FITLER'",
            "  \tB FITLER B[x > 1]",
            "  \t  ^^^^^^",
            "hint: did you mean 'FILTER'?",
        ],
    ),
]


@pytest.mark.parametrize(("text", "lines"), CASES, ids=[text or "empty" for text, _ in CASES])
def test_error_text(text: str, lines: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value).split("\n") == lines


def test_nesting() -> None:
    text = "SELECT * FROM S WHERE " + "(" * 201 + "A" + ")" * 201
    with pytest.raises(QueryError, match="nested more than 200 levels deep") as caught:
        parse(text)
    assert caught.value.span == Span(22, len(text))


def test_copies() -> None:
    conditions = " AND ".join(["(A[x] OR A[y])"] * 11)
    with pytest.raises(QueryError) as caught:
        parse(f"SELECT * FROM S WHERE A FILTER {conditions}")
    assert caught.value.message == "OR in FILTER writes the formula out once for each choice, here 2048 times"
    assert caught.value.hint == "put the OR inside the brackets where it is about one variable: x[p OR q]"


def test_an_error_travels_with_its_place() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT * FROM S WHERE A FITLER A[x > 1]")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.line, again.column) == (1, 25)
