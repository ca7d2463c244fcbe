"""The exact texts of SASE+'s errors."""

from __future__ import annotations

import pytest

from stretto.errors import QueryError, Span
from stretto.languages.sase import parse

CASES: list[tuple[str, list[str]]] = [
    (
        "",
        [
            "the query is empty",
            "hint: PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { a.x = b[i].x } WITHIN 1 hour",
        ],
    ),
    (
        "  \n",
        [
            "the query is empty",
            "hint: PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { a.x = b[i].x } WITHIN 1 hour",
        ],
    ),
    (
        "SELECT * FROM S",
        [
            "line 1, column 1: unexpected 'SELECT'; expected PATTERN",
            "  SELECT * FROM S",
            "  ^^^^^^",
        ],
    ),
    (
        "PATERN SEQ(A a)",
        [
            "line 1, column 1: unexpected 'PATERN'; expected PATTERN",
            "  PATERN SEQ(A a)",
            "  ^^^^^^",
            "hint: did you mean 'PATTERN'?",
        ],
    ),
    (
        "PATTERN",
        [
            "line 1, column 8: the query ends too early; expected SEQ or '('",
            "  PATTERN",
            "         ^",
        ],
    ),
    (
        "PATTERN SEQ",
        [
            "line 1, column 12: the query ends too early; expected '('",
            "  PATTERN SEQ",
            "             ^",
        ],
    ),
    (
        "PATTERN SQ(A a)",
        [
            "line 1, column 9: unexpected 'SQ'; expected SEQ or '('",
            "  PATTERN SQ(A a)",
            "          ^^",
            "hint: did you mean 'SEQ'?",
        ],
    ),
    (
        "PATTERN SEQ()",
        [
            "line 1, column 13: unexpected ')'; expected a component",
            "  PATTERN SEQ()",
            "              ^",
        ],
    ),
    (
        "PATTERN SEQ(A a, B)",
        [
            "line 1, column 19: unexpected ')'; expected '+' or a variable",
            "  PATTERN SEQ(A a, B)",
            "                    ^",
            "hint: name it: B b",
        ],
    ),
    (
        "PATTERN SEQ(A a B b)",
        [
            "line 1, column 17: unexpected 'B'; expected ',', '[' or ')'",
            "  PATTERN SEQ(A a B b)",
            "                  ^",
        ],
    ),
    (
        "PATTERN SEQ(A* a[])",
        [
            "line 1, column 14: unexpected '*'; expected '+' or a variable",
            "  PATTERN SEQ(A* a[])",
            "               ^",
            "hint: the only repetition is one or more: A+ a[]",
        ],
    ),
    (
        "PATTERN SEQ(A|B a)",
        [
            "line 1, column 14: unexpected '|'; expected '+' or a variable",
            "  PATTERN SEQ(A|B a)",
            "               ^",
            "hint: alternatives stand in parentheses: (A|…)",
        ],
    ),
    (
        "PATTERN SEQ(A as a)",
        [
            "line 1, column 18: unexpected 'a'; expected ',', '[' or ')'",
            "  PATTERN SEQ(A as a)",
            "                   ^",
            "hint: a variable follows its type without AS: Stock a",
        ],
    ),
    (
        "PATTERN SEQ(A or)",
        [
            "line 1, column 15: unexpected 'or'; expected '+' or a variable",
            "  PATTERN SEQ(A or)",
            "                ^^",
            "hint: 'or' is a keyword and no variable",
        ],
    ),
    (
        "PATTERN SEQ(A a, A a)",
        [
            "line 1, column 20: the pattern has the variable 'a' twice",
            "  PATTERN SEQ(A a, A a)",
            "                     ^",
        ],
    ),
    (
        "PATTERN SEQ(A a[])",
        [
            "line 1, column 15: a[] holds several events, so its type needs a '+'",
            "  PATTERN SEQ(A a[])",
            "                ^^^",
            "hint: write A+ a[], or A a for one event",
        ],
    ),
    (
        "PATTERN SEQ(~(A a))",
        [
            "line 1, column 13: a pattern needs a component that is not negated",
            "  PATTERN SEQ(~(A a))",
            "              ^^^^^^",
            "hint: SEQ(A a, ~(B b))",
        ],
    ),
    (
        "PATTERN SEQ(A a, ~(B+ b[]), C c)",
        [
            "line 1, column 20: a negated component takes no '+'",
            "  PATTERN SEQ(A a, ~(B+ b[]), C c)",
            "                     ^^^^^^",
            "hint: ~(B b) already means: not one such event",
        ],
    ),
    (
        "PATTERN SEQ(A a, ~B)",
        [
            "line 1, column 20: unexpected ')'; expected '+' or a variable",
            "  PATTERN SEQ(A a, ~B)",
            "                     ^",
            "hint: name it: B b",
        ],
    ),
    (
        "PATTERN SEQ(A a",
        [
            "line 1, column 16: the query ends too early; expected ',', '[' or ')'",
            "  PATTERN SEQ(A a",
            "                 ^",
        ],
    ),
    (
        "PATTERN SEQ(A a) WHER strict_contiguity {}",
        [
            "line 1, column 18: unexpected 'WHER'; expected WHERE, WITHIN, RETURN, OUTPUT, LIMIT or the end",
            "  PATTERN SEQ(A a) WHER strict_contiguity {}",
            "                   ^^^^",
            "hint: did you mean 'WHERE'?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE { b.x > 3 }",
        [
            "line 1, column 32: WHERE names no strategy",
            "  PATTERN SEQ(A+ a[], B b) WHERE { b.x > 3 }",
            "                                 ^",
            "hint: one of strict_contiguity, partition_contiguity, skip_till_next_match, skip_till_any_match",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_nxt_match { b.x > 3 }",
        [
            "line 1, column 32: unknown strategy 'skip_till_nxt_match'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_nxt_match { b.x > 3 }",
            "                                 ^^^^^^^^^^^^^^^^^^^",
            "hint: did you mean 'skip_till_next_match'?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE partition-contiguity {}",
        [
            "line 1, column 41: unexpected '-'; expected '{' or '('",
            "  PATTERN SEQ(A+ a[], B b) WHERE partition-contiguity {}",
            "                                          ^",
            "hint: WHERE strategy { conditions }",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE b.x > 3",
        [
            "line 1, column 33: unexpected '.'; expected '{' or '('",
            "  PATTERN SEQ(A+ a[], B b) WHERE b.x > 3",
            "                                  ^",
            "hint: WHERE strategy { conditions }",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE",
        [
            "line 1, column 31: the query ends too early; expected a strategy",
            "  PATTERN SEQ(A+ a[], B b) WHERE",
            "                                ^",
            "hint: one of strict_contiguity, partition_contiguity, skip_till_next_match, skip_till_any_match",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match",
        [
            "line 1, column 51: the query ends too early; expected '{' or '('",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match",
            "                                                    ^",
            "hint: WHERE strategy { conditions }",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a, c) {}",
        [
            "line 1, column 55: unknown variable 'c'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a, c) {}",
            "                                                        ^",
            "hint: known variables: a, b",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a, b[]) {}",
        [
            "line 1, column 55: 'b' is one event",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a, b[]) {}",
            "                                                        ^^^",
            "hint: write b, without brackets",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 3",
        [
            "line 1, column 61: the query ends too early; expected an operator, '}', AND or OR",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 3",
            "                                                              ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 3 adn b.y > 2 }",
        [
            "line 1, column 62: unexpected 'adn'; expected an operator, '}', AND or OR",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 3 adn b.y > 2 }",
            "                                                               ^^^",
            "hint: did you mean 'AND'?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 3, b.y > 2 }",
        [
            "line 1, column 61: unexpected ','; expected '}'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 3, b.y > 2 }",
            "                                                              ^",
            "hint: join conditions with AND",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 3 }  }",
        [
            "line 1, column 65: unexpected '}'; expected WITHIN, RETURN, OUTPUT, LIMIT or the end",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 3 }  }",
            "                                                                  ^",
            "hint: there is no '{' for it to close",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { (b.x > 3 }",
        [
            "line 1, column 63: unexpected '}'; expected ')'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { (b.x > 3 }",
            "                                                                ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { 1 < b.x < 3 }",
        [
            "line 1, column 62: unexpected '<'; expected an operator, '}', AND or OR",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { 1 < b.x < 3 }",
            "                                                               ^",
            "hint: comparisons do not chain; join them with AND",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x = }",
        [
            "line 1, column 60: unexpected '}'; expected a reference or a constant",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x = }",
            "                                                             ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x = and }",
        [
            "line 1, column 60: unexpected 'and'; expected a reference or a constant",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x = and }",
            "                                                             ^^^",
            "hint: 'and' is a keyword and no variable",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x = NULL }",
        [
            "line 1, column 60: no value compares with NULL",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x = NULL }",
            "                                                             ^^^^",
            "hint: write IS NULL",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x + 1 }",
        [
            "line 1, column 54: a condition is needed here, not a value",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x + 1 }",
            "                                                       ^^^^^^^",
            "hint: compare it: price > 3",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.tag id = 3 }",
        [
            "line 1, column 60: unexpected 'id'; expected a comparison, an operator, '}', AND or OR",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.tag id = 3 }",
            "                                                             ^^",
            "hint: a name with a space stands in backticks: `tag id`",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b. = 3 }",
        [
            "line 1, column 57: unexpected '='; expected an attribute",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b. = 3 }",
            "                                                          ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x = 'q }",
        [
            "line 1, column 60: a string that is not closed",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x = 'q }",
            "                                                             ^",
            "hint: close it with '",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 1 /* c }",
        [
            "line 1, column 62: a comment that is not closed",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > 1 /* c }",
            "                                                               ^^",
            "hint: close it with */",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x in (b.y) }",
        [
            "line 1, column 62: IN lists constants only",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x in (b.y) }",
            "                                                               ^^^",
            "hint: write x = a OR x = b for attributes",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x like 3 }",
        [
            "line 1, column 63: unexpected '3'; expected a string",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x like 3 }",
            "                                                                ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { price > 3 }",
        [
            "line 1, column 54: 'price' of which event?",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { price > 3 }",
            "                                                       ^^^^^",
            "hint: name the variable: a[1].price, a[i].price, a[a.LEN].price or avg(a[].price)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b > 3 }",
        [
            "line 1, column 54: 'b' is an event, not a value",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b > 3 }",
            "                                                       ^",
            "hint: name an attribute: b.x",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a > 3 }",
        [
            "line 1, column 54: 'a' is several events, not a value",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a > 3 }",
            "                                                       ^",
            "hint: name an attribute: a[1].x, a[i].x, a[a.LEN].x or avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { `x` > 3 }",
        [
            "line 1, column 54: `x` names no event",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { `x` > 3 }",
            "                                                       ^^^",
            "hint: an attribute follows its variable: a.`x`",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { c.x > 3 }",
        [
            "line 1, column 54: unknown variable 'c'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { c.x > 3 }",
            "                                                       ^",
            "hint: known variables: a, b",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b[1].x > 3 }",
        [
            "line 1, column 54: 'b' is one event, not several",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b[1].x > 3 }",
            "                                                       ^^^^^^",
            "hint: write b.x",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.len > 3 }",
        [
            "line 1, column 54: 'b' is one event, not several",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.len > 3 }",
            "                                                       ^^^^^",
            "hint: LEN counts the events of a Kleene plus; an attribute of that name is b.`LEN`",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { avg(b[].x) > 3 }",
        [
            "line 1, column 54: 'b' is one event, not several",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { avg(b[].x) > 3 }",
            "                                                       ^^^^^^^^^^",
            "hint: write b.x",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a.x > 3 }",
        [
            "line 1, column 54: 'a' holds several events; which of them?",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a.x > 3 }",
            "                                                       ^^^",
            "hint: a[1].x, a[i].x, a[a.LEN].x or avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) RETURN a.x",
        [
            "line 1, column 33: 'a' holds several events; which of them?",
            "  PATTERN SEQ(A+ a[], B b) RETURN a.x",
            "                                  ^^^",
            "hint: a[1].x, a[a.LEN].x or avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[2].x > 3 }",
        [
            "line 1, column 55: a[2] has no meaning",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[2].x > 3 }",
            "                                                        ^^^",
            "hint: an index is one of a[1], a[i], a[i-1], a[a.LEN]",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i+1].x > 3 }",
        [
            "line 1, column 55: a[i+1] has no meaning",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i+1].x > 3 }",
            "                                                        ^^^^^",
            "hint: an index is one of a[1], a[i], a[i-1], a[a.LEN]",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[LEN].x > 3 }",
        [
            "line 1, column 55: a[LEN] has no meaning",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[LEN].x > 3 }",
            "                                                        ^^^^^",
            "hint: did you mean a[a.LEN]?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[b.LEN].x > 3 }",
        [
            "line 1, column 55: the last event of 'a' is a[a.LEN], not a[b.LEN]",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[b.LEN].x > 3 }",
            "                                                        ^^^^^^^",
            "hint: write a[a.LEN].x",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[].x > 3 }",
        [
            "line 1, column 55: a[] is any number of events, not one",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[].x > 3 }",
            "                                                        ^^",
            "hint: aggregate them: avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[?].x > 3 }",
        [
            "line 1, column 56: unexpected '?'; expected an index (1, i, i-1, a.LEN) or ']'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[?].x > 3 }",
            "                                                         ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i }",
        [
            "line 1, column 58: unexpected '}'; expected an operator, '.' or ']'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i }",
            "                                                           ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { mean(a[].x) > 3 }",
        [
            "line 1, column 54: unknown function 'mean'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { mean(a[].x) > 3 }",
            "                                                       ^^^^",
            "hint: did you mean 'avg'?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { median(a[].x) > 3 }",
        [
            "line 1, column 54: unknown function 'median'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { median(a[].x) > 3 }",
            "                                                       ^^^^^^",
            "hint: known functions: count, sum, avg, min, max",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { sum(a[]) > 3 }",
        [
            "line 1, column 58: sum needs an attribute",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { sum(a[]) > 3 }",
            "                                                           ^^^",
            "hint: write sum(a[].price)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { avg(a.x) > 3 }",
        [
            "line 1, column 58: avg goes over several events of a Kleene plus",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { avg(a.x) > 3 }",
            "                                                           ^",
            "hint: write avg(a[].x), avg(a[..i-1].x) or avg(a[..i].x), or a.x if 'a' is one event",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { count(*) > 3 }",
        [
            "line 1, column 60: unexpected '*'; expected a variable",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { count(*) > 3 }",
            "                                                             ^",
            "hint: count(a[]) counts the events of a[]",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > a[i-1].x }",
        [
            "line 1, column 60: a[i-1].x has no one value when 'b' comes",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > a[i-1].x }",
            "                                                             ^^^^^^^^",
            "hint: say a[1].x, a[a.LEN].x or avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > avg(a[..i].x) }",
        [
            "line 1, column 60: avg(a[..i].x) has no one value when 'b' comes",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { b.x > avg(a[..i].x) }",
            "                                                             ^^^^^^^^^^^^^",
            "hint: say avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i-1].x < a.LEN }",
        [
            "line 1, column 54: a[i-1].x has no one value when a.LEN is known",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { a[i-1].x < a.LEN }",
            "                                                       ^^^^^^^^",
            "hint: say a[1].x, a[a.LEN].x or avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B+ b[]) WHERE skip_till_any_match { a[i].x < b[i].x }",
        [
            "line 1, column 66: a[i].x and b[i].x in one comparison: which i of 'a' goes with which of 'b'?",
            "  PATTERN SEQ(A+ a[], B+ b[]) WHERE skip_till_any_match { a[i].x < b[i].x }",
            "                                                                   ^^^^^^",
            "hint: say which event of 'b': b[1].x, b[b.LEN].x or avg(b[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A a, ~(B b), ~(C c), D d) WHERE skip_till_any_match { b.x < c.x }",
        [
            "line 1, column 73: 'b' and 'c' are both negated: no event of one is there to compare with the other",
            "  PATTERN SEQ(A a, ~(B b), ~(C c), D d) WHERE skip_till_any_match { b.x < c.x }",
            "                                                                          ^^^",
            "hint: compare each with a component that is not negated",
        ],
    ),
    (
        "PATTERN SEQ(A a, ~(B b), C c) WHERE skip_till_any_match { count(b[]) = 0 }",
        [
            "line 1, column 59: 'b' is negated and stands for one event, not several",
            "  PATTERN SEQ(A a, ~(B b), C c) WHERE skip_till_any_match { count(b[]) = 0 }",
            "                                                            ^^^^^^^^^^",
            "hint: count goes over the events of a Kleene plus",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [x] or b.x > 3 }",
        [
            "line 1, column 55: the equivalence test [x] is about all events of a match; it stands by itself, joined by AND",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [x] or b.x > 3 }",
            "                                                        ^",
            "hint: to compare two events, name them: a.x = b.x",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { not ([x] and [y]) }",
        [
            "line 1, column 60: the equivalence test [x, y] is about all events of a match; it stands by itself, joined by AND",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { not ([x] and [y]) }",
            "                                                             ^^^^^^^^^",
            "hint: to compare two events, name them: a.x = b.x",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [x y] }",
        [
            "line 1, column 57: unexpected 'y'; expected ',' or ']'",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [x y] }",
            "                                                          ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [] }",
        [
            "line 1, column 55: unexpected ']'; expected an attribute",
            "  PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [] }",
            "                                                        ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WITHIN 1 hour 30",
        [
            "line 1, column 40: WITHIN 30: 30 of what?",
            "  PATTERN SEQ(A+ a[], B b) WITHIN 1 hour 30",
            "                                         ^^",
            "hint: write 30 EVENTS, 30 SECONDS (or another unit), or 30 [attribute]",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WITHIN 3 minuts",
        [
            "line 1, column 35: unknown unit 'minuts'",
            "  PATTERN SEQ(A+ a[], B b) WITHIN 3 minuts",
            "                                    ^^^^^^",
            "hint: did you mean 'minutes'?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WITHIN -1",
        [
            "line 1, column 33: a window cannot be negative",
            "  PATTERN SEQ(A+ a[], B b) WITHIN -1",
            "                                  ^^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WITHIN 1000 RETRUN b.x",
        [
            "line 1, column 38: unexpected 'RETRUN'",
            "  PATTERN SEQ(A+ a[], B b) WITHIN 1000 RETRUN b.x",
            "                                       ^^^^^^",
            "hint: did you mean 'RETURN'?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WITHIN 3 hours RETRUN b.x",
        [
            "line 1, column 41: unexpected 'RETRUN'; expected a number, '[', WITHIN, RETURN, OUTPUT or the end",
            "  PATTERN SEQ(A+ a[], B b) WITHIN 3 hours RETRUN b.x",
            "                                          ^^^^^^",
            "hint: did you mean 'RETURN'?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WITHIN 3 hours WITHIN 2 hours",
        [
            "line 1, column 41: a second WITHIN clause",
            "  PATTERN SEQ(A+ a[], B b) WITHIN 3 hours WITHIN 2 hours",
            "                                          ^^^^^^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WITHIN 3 hours WHERE strict_contiguity {}",
        [
            "line 1, column 41: unexpected 'WHERE'; expected a number, '[', WITHIN, RETURN, OUTPUT or the end",
            "  PATTERN SEQ(A+ a[], B b) WITHIN 3 hours WHERE strict_contiguity {}",
            "                                          ^^^^^",
            "hint: WHERE stands once, right after PATTERN",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) RETURN",
        [
            "line 1, column 32: the query ends too early; expected a reference or a constant",
            "  PATTERN SEQ(A+ a[], B b) RETURN",
            "                                 ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) RETURN b.x + 1",
        [
            "line 1, column 33: a computed item needs a name",
            "  PATTERN SEQ(A+ a[], B b) RETURN b.x + 1",
            "                                  ^^^^^^^",
            "hint: write … AS name",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) RETURN b.x, b.x",
        [
            "line 1, column 38: RETURN has the name 'b_x' twice",
            "  PATTERN SEQ(A+ a[], B b) RETURN b.x, b.x",
            "                                       ^^^",
            "hint: give one of them another name with AS",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) RETURN a[i].x",
        [
            "line 1, column 33: a[i].x has no one value in a whole match",
            "  PATTERN SEQ(A+ a[], B b) RETURN a[i].x",
            "                                  ^^^^^^",
            "hint: say a[1].x, a[a.LEN].x or avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) RETURN avg(a[..i-1].x)",
        [
            "line 1, column 33: avg(a[..i-1].x) has no one value in a whole match",
            "  PATTERN SEQ(A+ a[], B b) RETURN avg(a[..i-1].x)",
            "                                  ^^^^^^^^^^^^^^^",
            "hint: say avg(a[].x)",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) RETURN b.x > 3",
        [
            "line 1, column 37: unexpected '>'; expected an operator, ',', AS, WITHIN, RETURN or the end",
            "  PATTERN SEQ(A+ a[], B b) RETURN b.x > 3",
            "                                      ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) RETURN b.x b.y",
        [
            "line 1, column 37: unexpected 'b'; expected an operator, ',', AS, WITHIN, RETURN or the end",
            "  PATTERN SEQ(A+ a[], B b) RETURN b.x b.y",
            "                                      ^",
        ],
    ),
    (
        "PATTERN SEQ(A a, ~(B b)) RETURN b.x",
        [
            "line 1, column 33: 'b' is negated: a match has no such event",
            "  PATTERN SEQ(A a, ~(B b)) RETURN b.x",
            "                                  ^^^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) OUTPUT non-overlap",
        [
            "line 1, column 33: unknown form of output 'non-overlap'",
            "  PATTERN SEQ(A+ a[], B b) OUTPUT non-overlap",
            "                                  ^^^^^^^^^^^",
            "hint: did you mean 'non_overlap'?",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) OUTPUT all, non_overlap",
        [
            "line 1, column 38: OUTPUT has 'non_overlap' beside another choice",
            "  PATTERN SEQ(A+ a[], B b) OUTPUT all, non_overlap",
            "                                       ^^^^^^^^^^^",
            "hint: choose all or non_overlap, and verbose or compressed",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) OUTPUT",
        [
            "line 1, column 32: the query ends too early; expected all, non_overlap, verbose or compressed",
            "  PATTERN SEQ(A+ a[], B b) OUTPUT",
            "                                 ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) LIMIT 0",
        [
            "line 1, column 32: LIMIT takes a positive integer",
            "  PATTERN SEQ(A+ a[], B b) LIMIT 0",
            "                                 ^",
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b)\nWHERE skip_till_next_match(a[], b) {\n\t[symbol]\n\tand a[i].prize > avg(a.price)\n}",
        [
            "line 4, column 23: avg goes over several events of a Kleene plus",
            "  \tand a[i].prize > avg(a.price)",
            "  \t                     ^",
            "hint: write avg(a[].price), avg(a[..i-1].price) or avg(a[..i].price), or a.price if 'a' is one event",
        ],
    ),
]


@pytest.mark.parametrize(("text", "lines"), CASES, ids=[text or "empty" for text, _ in CASES])
def test_error_text(text: str, lines: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value).split("\n") == lines


def test_nesting() -> None:
    text = "PATTERN SEQ(A a) WHERE strict_contiguity { " + "(" * 201 + "a.x > 1" + ")" * 201 + " }"
    with pytest.raises(QueryError, match="nested more than 200 levels deep") as caught:
        parse(text)
    assert caught.value.span == Span(43, len(text) - 2)
