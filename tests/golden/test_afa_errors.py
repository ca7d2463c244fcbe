"""The exact texts of errors in fences, transfers and windows of AFAs."""

# ruff: noqa: E501 - texts as they are printed

from __future__ import annotations

import pickle
from typing import Any

import pytest

from stretto.errors import QueryError, StrettoError
from stretto.languages.afa import read_fence, read_transfer, read_window
from tests.languages.test_afa import SCOPE

FENCES: list[tuple[str, list[str]]] = [
    (
        "",
        [
            "the fence is empty",
            "hint: e.price > 3 AND r.count < 10",
        ],
    ),
    (
        "  \n",
        [
            "the fence is empty",
            "hint: e.price > 3 AND r.count < 10",
        ],
    ),
    (
        "e.price <",
        [
            "line 1, column 10: the fence ends too early; expected e.name, r.name or a constant",
            "  e.price <",
            "           ^",
        ],
    ),
    (
        "e.prize < 3",
        [
            "line 1, column 1: the event has no attribute 'prize'",
            "  e.prize < 3",
            "  ^^^^^^^",
            "hint: did you mean 'price'?",
        ],
    ),
    (
        "e.lowest < 3",
        [
            "line 1, column 1: the event has no attribute 'lowest'",
            "  e.lowest < 3",
            "  ^^^^^^^^",
            "hint: did you mean 'cost'?",
        ],
    ),
    (
        "r.lo > 3",
        [
            "line 1, column 1: the register has no field 'lo'",
            "  r.lo > 3",
            "  ^^^^",
            "hint: did you mean 'low'?",
        ],
    ),
    (
        "e.n > 3",
        [
            "line 1, column 1: the event has no attribute 'n'",
            "  e.n > 3",
            "  ^^^",
            "hint: did you mean 'r.n'?",
        ],
    ),
    (
        "r.price > 3",
        [
            "line 1, column 1: the register has no field 'price'",
            "  r.price > 3",
            "  ^^^^^^^",
            "hint: did you mean 'e.price'?",
        ],
    ),
    (
        "price < 3",
        [
            "line 1, column 1: 'price' stands alone",
            "  price < 3",
            "  ^^^^^",
            "hint: did you mean 'e.price'?",
        ],
    ),
    (
        "n > 3",
        [
            "line 1, column 1: 'n' stands alone",
            "  n > 3",
            "  ^",
            "hint: did you mean 'r.n'?",
        ],
    ),
    (
        "foo",
        [
            "line 1, column 1: 'foo' stands alone",
            "  foo",
            "  ^^^",
            "hint: e.foo is the event's, r.foo the register's",
        ],
    ),
    (
        "e",
        [
            "line 1, column 1: 'e' stands alone",
            "  e",
            "  ^",
            "hint: a name follows it: e.price",
        ],
    ),
    (
        "r > 3",
        [
            "line 1, column 1: 'r' stands alone",
            "  r > 3",
            "  ^",
            "hint: a name follows it: r.n",
        ],
    ),
    (
        "E.price > 3",
        [
            "line 1, column 1: unknown name 'E'",
            "  E.price > 3",
            "  ^",
            "hint: did you mean 'e'?",
        ],
    ),
    (
        "x.price > 3",
        [
            "line 1, column 1: unknown name 'x'",
            "  x.price > 3",
            "  ^",
            "hint: e.price is the event's, r.price the register's",
        ],
    ),
    (
        "`price` > 3",
        [
            "line 1, column 1: `price` stands alone",
            "  `price` > 3",
            "  ^^^^^^^",
            "hint: e.`price` is the event's, r.`price` the register's",
        ],
    ),
    (
        "e.price + 1",
        [
            "line 1, column 1: a condition is needed here, not a value",
            "  e.price + 1",
            "  ^^^^^^^^^^^",
            "hint: compare it: price > 3",
        ],
    ),
    (
        "e.price = NULL",
        [
            "line 1, column 11: no value compares with NULL",
            "  e.price = NULL",
            "            ^^^^",
            "hint: write IS NULL",
        ],
    ),
    (
        "e.price = 'x'",
        [
            "line 1, column 1: cannot compare e.price (double) with a string",
            "  e.price = 'x'",
            "  ^^^^^^^^^^^^^",
            "hint: write numbers without quotes",
        ],
    ),
    (
        "e.kind > 3",
        [
            "line 1, column 1: cannot compare e.kind (dictionary<values=string, indices=int32, ordered=0>) with a number",
            "  e.kind > 3",
            "  ^^^^^^^^^^",
            "hint: write numbers without quotes",
        ],
    ),
    (
        "e.raw = 'x'",
        [
            "line 1, column 1: cannot compare e.raw (binary)",
            "  e.raw = 'x'",
            "  ^^^^^",
            "hint: such an attribute only takes IS [NOT] NULL",
        ],
    ),
    (
        "e.ok < r.flag",
        [
            "line 1, column 1: truth values are not ordered",
            "  e.ok < r.flag",
            "  ^^^^^^^^^^^^^",
            "hint: compare them with = or !=",
        ],
    ),
    (
        "1 < e.price < 3",
        [
            "line 1, column 13: unexpected '<'; expected an operator, AND, OR or the end",
            "  1 < e.price < 3",
            "              ^",
            "hint: comparisons do not chain; join them with AND",
        ],
    ),
    (
        "e.price & 3",
        [
            "line 1, column 9: unexpected '&'; expected a comparison, an operator, AND, OR or the end",
            "  e.price & 3",
            "          ^",
            "hint: write AND",
        ],
    ),
    (
        "e.price > 3 && r.n > 3",
        [
            "line 1, column 13: unexpected '&'; expected an operator, AND, OR or the end",
            "  e.price > 3 && r.n > 3",
            "              ^",
            "hint: write AND",
        ],
    ),
    (
        "!e.ok",
        [
            "line 1, column 1: unexpected '!'; expected e.name, r.name or a constant",
            "  !e.ok",
            "  ^",
            "hint: write NOT",
        ],
    ),
    (
        "e.price > 3)",
        [
            "line 1, column 12: unexpected ')'; expected the end",
            "  e.price > 3)",
            "             ^",
            "hint: there is no '(' for it to close",
        ],
    ),
    (
        "(e.price > 3",
        [
            "line 1, column 13: the fence ends too early; expected ')'",
            "  (e.price > 3",
            "              ^",
        ],
    ),
    (
        "e.price > 3;",
        [
            "line 1, column 12: unexpected ';'; expected an operator, AND, OR or the end",
            "  e.price > 3;",
            "             ^",
        ],
    ),
    (
        "e.price 3",
        [
            "line 1, column 9: unexpected '3'; expected a comparison, an operator, AND, OR or the end",
            "  e.price 3",
            "          ^",
        ],
    ),
    (
        "e.price > 3 r.n > 2",
        [
            "line 1, column 13: unexpected 'r'; expected an operator, AND, OR or the end",
            "  e.price > 3 r.n > 2",
            "              ^",
        ],
    ),
    (
        "e.kind = 'abc",
        [
            "line 1, column 10: a string that is not closed",
            "  e.kind = 'abc",
            "           ^",
            "hint: close it with '",
        ],
    ),
    (
        "e.price > 3 ANDD r.n",
        [
            "line 1, column 13: unexpected 'ANDD'; expected an operator, AND, OR or the end",
            "  e.price > 3 ANDD r.n",
            "              ^^^^",
            "hint: did you mean 'AND'?",
        ],
    ),
    (
        "sum(e.price) > 3",
        [
            "line 1, column 1: 'sum' goes over several events, and an arc sees one",
            "  sum(e.price) > 3",
            "  ^^^^^^^^^^^^",
            "hint: keep it in the register: then='total = r.total + e.price'",
        ],
    ),
    (
        "avg(e.price) > 3",
        [
            "line 1, column 1: 'avg' goes over several events, and an arc sees one",
            "  avg(e.price) > 3",
            "  ^^^^^^^^^^^^",
            "hint: keep it in the register: then='total = r.total + e.price'",
        ],
    ),
    (
        "spred(e.price, 3) > 3",
        [
            "line 1, column 1: unknown function 'spred'",
            "  spred(e.price, 3) > 3",
            "  ^^^^^^^^^^^^^^^^^",
            "hint: did you mean 'spread'?",
        ],
    ),
    (
        "spread(e.price) > 3",
        [
            "line 1, column 1: 'spread' takes 2 arguments, not 1",
            "  spread(e.price) > 3",
            "  ^^^^^^^^^^^^^^^",
        ],
    ),
    (
        "spread(e.kind, 3) > 3",
        [
            "line 1, column 8: 'spread' takes numbers and truth values, not e.kind (dictionary<values=string, indices=int32, ordered=0>)",
            "  spread(e.kind, 3) > 3",
            "         ^^^^^^",
        ],
    ),
    (
        "spread(e.price > 3, 1) > 3",
        [
            "line 1, column 16: unexpected '>'; expected an operator, ',' or ')'",
            "  spread(e.price > 3, 1) > 3",
            "                 ^",
            "hint: a value is needed here, not a condition",
        ],
    ),
    (
        "r.tag < 'x'",
        [
            "line 1, column 1: strings of the register are compared with = and != only",
            "  r.tag < 'x'",
            "  ^^^^^^^^^^^",
            "hint: keep what is needed of them as a number, or a truth value",
        ],
    ),
    (
        "e.kind >= r.tag",
        [
            "line 1, column 1: strings of the register are compared with = and != only",
            "  e.kind >= r.tag",
            "  ^^^^^^^^^^^^^^^",
            "hint: keep what is needed of them as a number, or a truth value",
        ],
    ),
    (
        "r.tag LIKE 'a%'",
        [
            "line 1, column 1: strings of the register are compared with = and != only",
            "  r.tag LIKE 'a%'",
            "  ^^^^^^^^^^^^^^^",
            "hint: keep what is needed of them as a number, or a truth value",
        ],
    ),
    (
        "e.kind BETWEEN r.tag AND 'z'",
        [
            "line 1, column 1: strings of the register are compared with = and != only",
            "  e.kind BETWEEN r.tag AND 'z'",
            "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
            "hint: keep what is needed of them as a number, or a truth value",
        ],
    ),
    (
        "e.price IN (r.low)",
        [
            "line 1, column 13: IN lists constants only",
            "  e.price IN (r.low)",
            "              ^^^^^",
            "hint: write x = a OR x = b for attributes",
        ],
    ),
    (
        "e.ts > '2020-13-01'",
        [
            "line 1, column 8: '2020-13-01' is no time",
            "  e.ts > '2020-13-01'",
            "         ^^^^^^^^^^^^",
            "hint: write it like '2013-01-31' or '2013-01-31 12:00:00'",
        ],
    ),
    (
        "e.ts > e.zone",
        [
            "line 1, column 1: cannot compare e.ts (timestamp[us]) with e.zone (timestamp[us, tz=UTC]): only one has a time zone",
            "  e.ts > e.zone",
            "  ^^^^^^^^^^^^^",
        ],
    ),
    (
        "e.price > 1e999",
        [
            "line 1, column 11: a number of more than 400 digits",
            "  e.price > 1e999",
            "            ^^^^^",
        ],
    ),
    (
        "e.size > 99999999999999999999",
        [
            "line 1, column 10: the number 99999999999999999999 does not fit into 64 bits",
            "  e.size > 99999999999999999999",
            "           ^^^^^^^^^^^^^^^^^^^^",
            "hint: integers reach from −2^63 to 2^63 − 1",
        ],
    ),
    (
        "e.in.x = 3",
        [
            "line 1, column 5: unexpected '.'; expected a comparison, an operator, AND, OR or the end",
            "  e.in.x = 3",
            "      ^",
        ],
    ),
    (
        "e.price >\n  3 AND\n  r.lo > 1",
        [
            "line 3, column 3: the register has no field 'lo'",
            "    r.lo > 1",
            "    ^^^^",
            "hint: did you mean 'low'?",
        ],
    ),
]

EPSILON: list[tuple[str, list[str]]] = [
    (
        "e.price > 3",
        [
            "line 1, column 1: an ε-arc consumes no event, so it cannot read one",
            "  e.price > 3",
            "  ^^^^^^^",
            "hint: it reads the register: r.name",
        ],
    ),
    (
        "r.n > e.size",
        [
            "line 1, column 7: an ε-arc consumes no event, so it cannot read one",
            "  r.n > e.size",
            "        ^^^^^^",
            "hint: it reads the register: r.name",
        ],
    ),
]

TRANSFERS: list[tuple[Any, list[str]]] = [
    (
        "",
        [
            "the transfer is empty",
            "hint: count = r.count + 1, last = e.price",
        ],
    ),
    (
        "n",
        [
            "line 1, column 2: the transfer ends too early; expected '=' or '.'",
            "  n",
            "   ^",
            "hint: a transfer is field = value, …, or a row with a value for each field: (…, …)",
        ],
    ),
    (
        "n 3",
        [
            "line 1, column 3: unexpected '3'; expected '=' or '.'",
            "  n 3",
            "    ^",
            "hint: a transfer is field = value, …, or a row with a value for each field: (…, …)",
        ],
    ),
    (
        "n = ",
        [
            "line 1, column 4: the transfer ends too early; expected e.name, r.name or a constant",
            "  n = ",
            "     ^",
        ],
    ),
    (
        "n = NULL",
        [
            "line 1, column 5: NULL is no value to keep",
            "  n = NULL",
            "      ^^^^",
            "hint: a field of a register always has a value",
        ],
    ),
    (
        "m = 3",
        [
            "line 1, column 1: the register has no field 'm'",
            "  m = 3",
            "  ^",
            "hint: known fields: n, low, tag, flag, at, day, and",
        ],
    ),
    (
        "e.n = 3",
        [
            "line 1, column 1: an event's attributes cannot be set",
            "  e.n = 3",
            "  ^^^",
            "hint: a field of the register stands here: n = …",
        ],
    ),
    (
        "x.n = 3",
        [
            "line 1, column 1: unknown name 'x'",
            "  x.n = 3",
            "  ^",
            "hint: e.n is the event's, r.n the register's",
        ],
    ),
    (
        "n = 1, n = 2",
        [
            "line 1, column 8: 'n' is assigned twice",
            "  n = 1, n = 2",
            "         ^",
        ],
    ),
    (
        "n < 3",
        [
            "line 1, column 3: a transfer sets fields, '<' compares",
            "  n < 3",
            "    ^",
            "hint: write n = …",
        ],
    ),
    (
        "n = 3 > 2",
        [
            "line 1, column 7: unexpected '>'; expected an operator, ',' or the end",
            "  n = 3 > 2",
            "        ^",
            "hint: a value is needed here, not a condition",
        ],
    ),
    (
        "n = 1 AND 2",
        [
            "line 1, column 7: unexpected 'AND'; expected an operator, ',' or the end",
            "  n = 1 AND 2",
            "        ^^^",
            "hint: a value is needed here, not a condition",
        ],
    ),
    (
        "flag = e.price > 3",
        [
            "line 1, column 16: unexpected '>'; expected an operator, ',' or the end",
            "  flag = e.price > 3",
            "                 ^",
            "hint: a value is needed here, not a condition",
        ],
    ),
    (
        "r.n + 1",
        [
            "line 1, column 5: unexpected '+'; expected '='",
            "  r.n + 1",
            "      ^",
            "hint: a transfer is field = value, …, or a row with a value for each field: (…, …)",
        ],
    ),
    (
        "e.price",
        [
            "line 1, column 8: the transfer ends too early; expected '='",
            "  e.price",
            "         ^",
            "hint: a transfer is field = value, …, or a row with a value for each field: (…, …)",
        ],
    ),
    (
        "(1, 2)",
        [
            "line 1, column 1: the row has 2 values, and the register 7 fields",
            "  (1, 2)",
            "  ^^^^^^",
            "hint: in this order: (n, low, tag, flag, at, day, and)",
        ],
    ),
    (
        "(1, 2, 3, 4, 5, 6, 7, 8)",
        [
            "line 1, column 1: the row has 8 values, and the register 7 fields",
            "  (1, 2, 3, 4, 5, 6, 7, 8)",
            "  ^^^^^^^^^^^^^^^^^^^^^^^^",
            "hint: in this order: (n, low, tag, flag, at, day, and)",
        ],
    ),
    (
        "(r.n + 1) * 2",
        [
            "line 1, column 11: unexpected '*'; expected the end",
            "  (r.n + 1) * 2",
            "            ^",
        ],
    ),
    (
        "()",
        [
            "line 1, column 2: unexpected ')'; expected e.name, r.name or a constant",
            "  ()",
            "   ^",
        ],
    ),
    (
        "n = 1.5",
        [
            "line 1, column 5: the field 'n' (int64) cannot take 1.5",
            "  n = 1.5",
            "      ^^^",
            "hint: declare 'n' as float",
        ],
    ),
    (
        "n = e.price",
        [
            "line 1, column 5: the field 'n' (int64) cannot take a float",
            "  n = e.price",
            "      ^^^^^^^",
            "hint: declare 'n' as float",
        ],
    ),
    (
        "n = r.n / 2",
        [
            "line 1, column 5: the field 'n' (int64) cannot take a float",
            "  n = r.n / 2",
            "      ^^^^^^^",
            "hint: declare 'n' as float",
        ],
    ),
    (
        "n = 9223372036854775808",
        [
            "line 1, column 5: the field 'n' (int64) cannot take 9223372036854775808",
            "  n = 9223372036854775808",
            "      ^^^^^^^^^^^^^^^^^^^",
            "hint: integers reach from −2^63 to 2^63 − 1",
        ],
    ),
    (
        "low = 1e400",
        [
            "line 1, column 7: the field 'low' (double) cannot take 1E+400",
            "  low = 1e400",
            "        ^^^^^",
            "hint: no double is as great",
        ],
    ),
    (
        "low = 'x'",
        [
            "line 1, column 7: the field 'low' (double) cannot take 'x'",
            "  low = 'x'",
            "        ^^^",
            "hint: write numbers without quotes",
        ],
    ),
    (
        "n = 'x'",
        [
            "line 1, column 5: the field 'n' (int64) cannot take 'x'",
            "  n = 'x'",
            "      ^^^",
            "hint: write numbers without quotes",
        ],
    ),
    (
        "tag = 3",
        [
            "line 1, column 7: the field 'tag' (string) cannot take 3",
            "  tag = 3",
            "        ^",
            "hint: write strings in single quotes",
        ],
    ),
    (
        "tag = e.size",
        [
            "line 1, column 7: the field 'tag' (string) cannot take an integer",
            "  tag = e.size",
            "        ^^^^^^",
        ],
    ),
    (
        "n = e.kind",
        [
            "line 1, column 5: the field 'n' (int64) cannot take a string",
            "  n = e.kind",
            "      ^^^^^^",
        ],
    ),
    (
        "flag = 1",
        [
            "line 1, column 8: the field 'flag' (bool) cannot take 1",
            "  flag = 1",
            "         ^",
            "hint: write TRUE or FALSE",
        ],
    ),
    (
        "flag = e.size",
        [
            "line 1, column 8: the field 'flag' (bool) cannot take an integer",
            "  flag = e.size",
            "         ^^^^^^",
        ],
    ),
    (
        "at = e.seen",
        [
            "line 1, column 6: the field 'at' (timestamp[us]) cannot take e.seen (timestamp[s])",
            "  at = e.seen",
            "       ^^^^^^",
            "hint: declare 'at' as timestamp[s]",
        ],
    ),
    (
        "at = e.zone",
        [
            "line 1, column 6: the field 'at' (timestamp[us]) cannot take e.zone (timestamp[us, tz=UTC])",
            "  at = e.zone",
            "       ^^^^^^",
            "hint: declare 'at' as timestamp[us, tz=UTC]",
        ],
    ),
    (
        "at = e.price",
        [
            "line 1, column 6: the field 'at' (timestamp[us]) cannot take a float",
            "  at = e.price",
            "       ^^^^^^^",
        ],
    ),
    (
        "at = 'noon'",
        [
            "line 1, column 6: 'noon' is no time",
            "  at = 'noon'",
            "       ^^^^^^",
            "hint: write it like '2013-01-31' or '2013-01-31 12:00:00'",
        ],
    ),
    (
        "day = '2020-01-01 00:00:00.5'",
        [
            "line 1, column 7: the field 'day' (timestamp[s]) cannot take '2020-01-01 00:00:00.5'",
            "  day = '2020-01-01 00:00:00.5'",
            "        ^^^^^^^^^^^^^^^^^^^^^^^",
            "hint: its unit is s",
        ],
    ),
    (
        "n = e.ts",
        [
            "line 1, column 5: the field 'n' (int64) cannot take a time",
            "  n = e.ts",
            "      ^^^^",
            "hint: declare 'n' as timestamp[us]",
        ],
    ),
    (
        "n = 1; low = 2",
        [
            "line 1, column 6: unexpected ';'; expected an operator, ',' or the end",
            "  n = 1; low = 2",
            "       ^",
            "hint: assignments are separated by commas",
        ],
    ),
    (
        "n = 1 low = 2",
        [
            "line 1, column 7: unexpected 'low'; expected an operator, ',' or the end",
            "  n = 1 low = 2",
            "        ^^^",
            "hint: assignments are separated by commas",
        ],
    ),
    (
        "n = e.price >",
        [
            "line 1, column 13: unexpected '>'; expected an operator, ',' or the end",
            "  n = e.price >",
            "              ^",
            "hint: a value is needed here, not a condition",
        ],
    ),
    (
        {"n": "r.n +"},
        [
            "line 1, column 6: the value ends too early; expected e.name, r.name or a constant",
            "  r.n +",
            "       ^",
        ],
    ),
    (
        {"n": "r.m"},
        [
            "line 1, column 1: the register has no field 'm'",
            "  r.m",
            "  ^^^",
            "hint: known fields: n, low, tag, flag, at, day, and",
        ],
    ),
    (
        {"n": 2.5},
        [
            "the field 'n' (int64) cannot take 2.5",
            "hint: declare 'n' as float",
        ],
    ),
    (
        {"q": "1"},
        [
            "the register has no field 'q' (known fields: n, low, tag, flag, at, day, and)",
        ],
    ),
    (
        {"n": None},
        [
            "the field 'n' is set by an expression or a number, not by NoneType",
        ],
    ),
    (
        {"low": float("nan")},
        [
            "the field 'low' cannot be set to nan: a number is needed",
        ],
    ),
    (
        {"n": "1 > 2"},
        [
            "line 1, column 3: unexpected '>'; expected an operator or the end",
            "  1 > 2",
            "    ^",
            "hint: a value is needed here, not a condition",
        ],
    ),
    (
        {"n": True},
        [
            "the field 'n' (int64) cannot take TRUE",
        ],
    ),
    (
        {"tag": "abc"},
        [
            "line 1, column 1: 'abc' stands alone",
            "  abc",
            "  ^^^",
            "hint: 'abc' is read as an expression; for the string itself write 'tag': \"'abc'\"",
        ],
    ),
    (
        {"tag": "two words"},
        [
            "line 1, column 5: unexpected 'words'; expected an operator, '.' or the end",
            "  two words",
            "      ^^^^^",
            "hint: 'two words' is read as an expression; for the string itself write 'tag': \"'two words'\"",
        ],
    ),
    (
        {"tag": ""},
        [
            "the value is empty",
            "hint: '' is read as an expression; for the string itself write 'tag': \"''\"",
        ],
    ),
    (
        {"tag": "price"},
        [
            "line 1, column 1: 'price' stands alone",
            "  price",
            "  ^^^^^",
            "hint: did you mean 'e.price'?",
        ],
    ),
    (
        "n = 1, tag = abc",
        [
            "line 1, column 14: 'abc' stands alone",
            "  n = 1, tag = abc",
            "               ^^^",
            "hint: in single quotes it is a string: 'abc'",
        ],
    ),
    (
        {"at": "now"},
        [
            "line 1, column 1: 'now' stands alone",
            "  now",
            "  ^^^",
            "hint: e.now is the event's, r.now the register's",
        ],
    ),
    (
        {"flag": "NULL"},
        [
            "line 1, column 1: NULL is no value to compute with",
            "  NULL",
            "  ^^^^",
            "hint: NULL stands only in IS NULL and IS NOT NULL",
        ],
    ),
]

WINDOWS: list[tuple[str, list[str]]] = [
    (
        "",
        [
            "the window is empty",
            "hint: 10 seconds",
        ],
    ),
    (
        "10 EVENTS",
        [
            "line 1, column 1: an AFA's window is a time, not a number of events",
            "  10 EVENTS",
            "  ^^^^^^^^^",
            "hint: write 10 seconds, or 10",
        ],
    ),
    (
        "10 parsecs",
        [
            "line 1, column 4: unknown unit 'parsecs'",
            "  10 parsecs",
            "     ^^^^^^^",
            "hint: did you mean 'secs'?",
        ],
    ),
    (
        "1 ns",
        [
            "line 1, column 1: a window is not finer than a microsecond",
            "  1 ns",
            "  ^^^^",
            "hint: give it in ticks, as an integer",
        ],
    ),
    (
        "1.5",
        [
            "line 1, column 1: a window in ticks of the time attribute is an integer",
            "  1.5",
            "  ^^^",
        ],
    ),
    (
        "-3 s",
        [
            "line 1, column 1: a window cannot be negative",
            "  -3 s",
            "  ^^",
        ],
    ),
    (
        "10 seconds ago",
        [
            "line 1, column 12: unexpected 'ago'; expected a number or the end",
            "  10 seconds ago",
            "             ^^^",
        ],
    ),
    (
        "99999999999999 weeks",
        [
            "line 1, column 1: the window is too long",
            "  99999999999999 weeks",
            "  ^^^^^^^^^^^^^^^^^^^^",
            "hint: leave it out",
        ],
    ),
    (
        "ten seconds",
        [
            "line 1, column 1: unexpected 'ten'; expected a number",
            "  ten seconds",
            "  ^^^",
        ],
    ),
]


@pytest.mark.parametrize(("text", "lines"), FENCES)
def test_fences(text: str, lines: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        read_fence(text, SCOPE)
    assert str(caught.value).split("\n") == lines
    assert str(pickle.loads(pickle.dumps(caught.value))).split("\n") == lines


@pytest.mark.parametrize(("text", "lines"), EPSILON)
def test_fences_of_epsilon_arcs(text: str, lines: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        read_fence(text, SCOPE, epsilon=True)
    assert str(caught.value).split("\n") == lines


@pytest.mark.parametrize(("given", "lines"), TRANSFERS)
def test_transfers(given: Any, lines: list[str]) -> None:
    with pytest.raises(StrettoError) as caught:
        read_transfer(given, SCOPE)
    assert str(caught.value).split("\n") == lines


@pytest.mark.parametrize(("text", "lines"), WINDOWS)
def test_windows(text: str, lines: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        read_window(text)
    assert str(caught.value).split("\n") == lines
