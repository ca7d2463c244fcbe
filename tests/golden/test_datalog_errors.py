"""The exact texts of errors in Datalog programs."""

# ruff: noqa: E501 - texts as they are printed

from __future__ import annotations

import pickle

import pytest

import stretto
from stretto.dataflow import datalog
from stretto.errors import OptionError, QueryError

SOURCES = {
    "link": {"src": str, "dst": str},
    "road": {"src": str, "dst": str, "cost": int},
    "size": {"id": int, "size": float},
    "seen": {"id": int, "ok": bool},
}


@stretto.function
def spread(a, b):  # type: ignore[no-untyped-def]
    return a - b


ERRORS: list[tuple[str, list[str]]] = [
    (
        "",
        [
            "the program is empty",
            "hint: reachable(X, Y) :- link(X, Y). reachable(X, Z) :- link(X, Y), reachable(Y, Z).",
        ],
    ),
    (
        "  % nothing\n",
        [
            "the program is empty",
            "hint: reachable(X, Y) :- link(X, Y). reachable(X, Z) :- link(X, Y), reachable(Y, Z).",
        ],
    ),
    (
        "p(X) :- link(X, _)",
        [
            "line 1, column 19: the program ends too early; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- link(X, _)",
            "                    ^",
            "hint: a rule ends with a dot, and its goals are joined by commas",
        ],
    ),
    (
        "p(X) :- link(X, _)\nq(X) :- link(_, X).",
        [
            "line 2, column 1: unexpected 'q'; expected a comparison, an operator, ',' or '.'",
            "  q(X) :- link(_, X).",
            "  ^",
            "hint: a rule ends with a dot, and its goals are joined by commas",
        ],
    ),
    (
        "p(X) : link(X, _).",
        [
            "line 1, column 6: unexpected ':'; expected ':-' or '.'",
            "  p(X) : link(X, _).",
            "       ^",
            "hint: write :- between the head and the body",
        ],
    ),
    (
        "p(X) <- link(X, _).",
        [
            "line 1, column 6: unexpected '<'; expected ':-' or '.'",
            "  p(X) <- link(X, _).",
            "       ^",
            "hint: write :- between the head and the body",
        ],
    ),
    (
        "p(X) = link(X,_).",
        [
            "line 1, column 6: unexpected '='; expected ':-' or '.'",
            "  p(X) = link(X,_).",
            "       ^",
            "hint: write :- between the head and the body",
        ],
    ),
    (
        "p(X) :- link(X, _), .",
        [
            "line 1, column 21: unexpected '.'; expected a relation or a comparison",
            "  p(X) :- link(X, _), .",
            "                      ^",
            "hint: a relation has one column or more: (X)",
        ],
    ),
    (
        "p(X) :- .",
        [
            "line 1, column 9: unexpected '.'; expected a relation or a comparison",
            "  p(X) :- .",
            "          ^",
            "hint: a relation has one column or more: (X)",
        ],
    ),
    (
        "p() :- link(X, _).",
        [
            "line 1, column 3: unexpected ')'; expected a variable or a constant",
            "  p() :- link(X, _).",
            "    ^",
            "hint: a relation has one column or more",
        ],
    ),
    (
        "p :- link(X,_).",
        [
            "line 1, column 3: unexpected ':-'; expected '('",
            "  p :- link(X,_).",
            "    ^^",
            "hint: a relation has one column or more: p(X)",
        ],
    ),
    (
        "P(X) :- link(X, _).",
        [
            "line 1, column 1: unexpected 'P'; expected a rule or the end",
            "  P(X) :- link(X, _).",
            "  ^",
            "hint: relations and functions begin with a small letter: p",
        ],
    ),
    (
        "p(X) :- Link(X, _).",
        [
            "line 1, column 13: unexpected '('; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- Link(X, _).",
            "              ^",
            "hint: relations and functions begin with a small letter: link",
        ],
    ),
    (
        "p(X) :- link(X, _) & road(X, _, _).",
        [
            "line 1, column 20: unexpected '&'; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- link(X, _) & road(X, _, _).",
            "                     ^",
            "hint: goals are joined by commas",
        ],
    ),
    (
        "p(X) :- link(X, _) and road(X, _, _).",
        [
            "line 1, column 20: unexpected 'and'; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- link(X, _) and road(X, _, _).",
            "                     ^^^",
            "hint: goals are joined by commas",
        ],
    ),
    (
        "p(X) :- link(X, _); road(X, _, _).",
        [
            "line 1, column 19: unexpected ';'; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- link(X, _); road(X, _, _).",
            "                    ^",
            "hint: write a second rule with the same head",
        ],
    ),
    (
        "p(X) :- link(X, _) link(_, X).",
        [
            "line 1, column 20: unexpected 'link'; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- link(X, _) link(_, X).",
            "                     ^^^^",
            "hint: a rule ends with a dot, and its goals are joined by commas",
        ],
    ),
    (
        "p(X) :- NOT link(X, X), link(X, _).",
        [
            "line 1, column 13: unexpected 'link'; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- NOT link(X, X), link(X, _).",
            "              ^^^^",
            "hint: write not with small letters",
        ],
    ),
    (
        "p(X) :- \\+ link(X, X).",
        [
            "line 1, column 9: unexpected '\\'; expected a relation or a comparison",
            "  p(X) :- \\+ link(X, X).",
            "          ^",
            "hint: write !=, or 'not' before a relation",
        ],
    ),
    (
        "p(X) :- road(X, _, C), 1 < C < 3.",
        [
            "line 1, column 30: unexpected '<'; expected an operator, ',' or '.'",
            "  p(X) :- road(X, _, C), 1 < C < 3.",
            "                               ^",
            "hint: comparisons do not chain; write two, with a comma",
        ],
    ),
    (
        "p(X) :- road(X, _, C), C < .5.",
        [
            "line 1, column 28: unexpected '.'; expected a variable or a constant",
            "  p(X) :- road(X, _, C), C < .5.",
            "                             ^",
            "hint: a relation has one column or more: (X)",
        ],
    ),
    (
        "p(X) :- road(X, _, C), C <> 3, C =< 4.",
        [
            "line 1, column 35: unexpected '<'; expected a variable or a constant",
            "  p(X) :- road(X, _, C), C <> 3, C =< 4.",
            "                                    ^",
            "hint: write <=",
        ],
    ),
    (
        "p(X) :- link(X, 'a).",
        [
            "line 1, column 17: a string that is not closed",
            "  p(X) :- link(X, 'a).",
            "                  ^",
            "hint: close it with '",
        ],
    ),
    (
        'p(X) :- link(X, "a).',
        [
            "line 1, column 17: a string that is not closed",
            '  p(X) :- link(X, "a).',
            "                  ^",
            'hint: close it with "',
        ],
    ),
    (
        "p(X) :- link(X, Y). /* end",
        [
            "line 1, column 21: a comment that is not closed",
            "  p(X) :- link(X, Y). /* end",
            "                      ^^",
            "hint: close it with */",
        ],
    ),
    (
        "p(X) :- road(X, _, C), C + 1  % one more\n, link(X, _).",
        [
            "line 1, column 37: unexpected 'more'; expected '(', a comparison, an operator, ',' or '.'",
            "  p(X) :- road(X, _, C), C + 1  % one more",
            "                                      ^^^^",
            "hint: after a value '%' is the remainder: write the comment with -- or //",
        ],
    ),
    (
        "p(X) :- road(X, _, C), C = 1  % one more\n.",
        [
            "line 1, column 37: unexpected 'more'; expected '(', an operator, ',' or '.'",
            "  p(X) :- road(X, _, C), C = 1  % one more",
            "                                      ^^^^",
            "hint: after a value '%' is the remainder: write the comment with -- or //",
        ],
    ),
    (
        "p(X) :- link(X, _)  -- fine",
        [
            "line 1, column 28: the program ends too early; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- link(X, _)  -- fine",
            "                             ^",
            "hint: a rule ends with a dot, and its goals are joined by commas",
        ],
    ),
    (
        "p(X)) :- link(X, _).",
        [
            "line 1, column 5: unexpected ')'; expected ':-' or '.'",
            "  p(X)) :- link(X, _).",
            "      ^",
            "hint: there is no '(' for it to close",
        ],
    ),
    (
        "p(X) :- link(X, Y]. ",
        [
            "line 1, column 18: unexpected ']'; expected an operator, ',' or ')'",
            "  p(X) :- link(X, Y]. ",
            "                   ^",
            "hint: there is no '[' for it to close",
        ],
    ),
    (
        "p(X) :- link(X, _), X.",
        [
            "line 1, column 21: a relation or a comparison is needed here, not a value",
            "  p(X) :- link(X, _), X.",
            "                      ^",
            "hint: write link(X, Y), or X < Y",
        ],
    ),
    (
        "p(X) :- link(X, _), 3.",
        [
            "line 1, column 21: a relation or a comparison is needed here, not a value",
            "  p(X) :- link(X, _), 3.",
            "                      ^",
            "hint: write link(X, Y), or X < Y",
        ],
    ),
    (
        "p(X) :- link(X, _), (link(X, X)).",
        [
            "line 1, column 21: a relation or a comparison is needed here, not a value",
            "  p(X) :- link(X, _), (link(X, X)).",
            "                      ^^^^^^^^^^^^",
            "hint: leave out the brackets around it",
        ],
    ),
    (
        "p(X, avrg<C>) :- road(X, _, C).",
        [
            "line 1, column 6: unknown aggregate 'avrg'",
            "  p(X, avrg<C>) :- road(X, _, C).",
            "       ^^^^",
            "hint: did you mean 'avg'?",
        ],
    ),
    (
        "p(X, sum<*>) :- road(X, _, C).",
        [
            "line 1, column 10: sum<*> has nothing to compute with",
            "  p(X, sum<*>) :- road(X, _, C).",
            "           ^",
            "hint: name a variable of the body: sum<C>",
        ],
    ),
    (
        "p(X, min<C) :- road(X, _, C).",
        [
            "line 1, column 11: unexpected ')'; expected an operator or '>'",
            "  p(X, min<C) :- road(X, _, C).",
            "            ^",
        ],
    ),
    (
        "p(X, min(C)) :- road(X, _, C).",
        [
            "line 1, column 6: an aggregate has angle brackets",
            "  p(X, min(C)) :- road(X, _, C).",
            "       ^^^^^^",
            "hint: write min<C>",
        ],
    ),
    (
        "p(X, [X]) :- link(X, _).",
        [
            "line 1, column 6: unexpected '['; expected a variable or a constant",
            "  p(X, [X]) :- link(X, _).",
            "       ^",
            "hint: there are no lists: what a row carries stands in columns",
        ],
    ),
    (
        "p(X) :- link(X, _), X ≠ a.",
        [
            "line 1, column 23: unexpected '≠'; expected a comparison, an operator, ',' or '.'",
            "  p(X) :- link(X, _), X ≠ a.",
            "                        ^",
            "hint: write !=",
        ],
    ),
    (
        "p(X) :- lnk(X, _).",
        [
            "line 1, column 9: unknown relation 'lnk'",
            "  p(X) :- lnk(X, _).",
            "          ^^^",
            "hint: did you mean 'link'?",
        ],
    ),
    (
        "p(X) :- edges(X, _).",
        [
            "line 1, column 9: unknown relation 'edges'",
            "  p(X) :- edges(X, _).",
            "          ^^^^^",
            "hint: known relations: link, road, size, seen, p",
        ],
    ),
    (
        "p(X) :- link(X).",
        [
            "line 1, column 9: 'link' has 2 columns, not 1",
            "  p(X) :- link(X).",
            "          ^^^^^^^",
            "hint: its columns are src, dst",
        ],
    ),
    (
        "p(X) :- link(X, Y, Z).",
        [
            "line 1, column 9: 'link' has 2 columns, not 3",
            "  p(X) :- link(X, Y, Z).",
            "          ^^^^^^^^^^^^^",
            "hint: its columns are src, dst",
        ],
    ),
    (
        "p(X, Y) :- link(X, Y). q(X) :- p(X).",
        [
            "line 1, column 32: 'p' has 2 columns, not 1",
            "  p(X, Y) :- link(X, Y). q(X) :- p(X).",
            "                                 ^^^^",
            "hint: line 1: p(X, Y)",
        ],
    ),
    (
        "p(X) :- link(X, _). p(X, Y) :- link(X, Y).",
        [
            "line 1, column 21: 'p' has 2 columns here and 1 in its first rule",
            "  p(X) :- link(X, _). p(X, Y) :- link(X, Y).",
            "                      ^^^^^^^",
            "hint: line 1: p(X)",
        ],
    ),
    (
        "link(a, b).",
        [
            "line 1, column 1: 'link' is a source, and rules cannot add to it",
            "  link(a, b).",
            "  ^^^^",
            "hint: derive a relation of another name: link_2(…) :- link(…).",
        ],
    ),
    (
        "p(X) :- size(X, Y), sprad(X, Y) > 1.",
        [
            "line 1, column 21: unknown function 'sprad'",
            "  p(X) :- size(X, Y), sprad(X, Y) > 1.",
            "                      ^^^^^^^^^^^",
            "hint: did you mean 'spread'?",
        ],
    ),
    (
        "p(X) :- size(X, Y), spread(X) > 1.",
        [
            "line 1, column 21: 'spread' takes 2 arguments, not 1",
            "  p(X) :- size(X, Y), spread(X) > 1.",
            "                      ^^^^^^^^^",
        ],
    ),
    (
        "p(X, min<C>) :- road(X, _, C). p(X, max<C>) :- road(X, _, C).",
        [
            "line 1, column 37: the rules of 'p' aggregate differently: max<C> here, min<C> in the first",
            "  p(X, min<C>) :- road(X, _, C). p(X, max<C>) :- road(X, _, C).",
            "                                      ^^^^^^",
            "hint: line 1: p(X, min<C>)",
        ],
    ),
    (
        "p(X, min<C>) :- road(X, _, C). p(X, C) :- road(X, _, C).",
        [
            "line 1, column 37: the rules of 'p' aggregate differently: C here, min<C> in the first",
            "  p(X, min<C>) :- road(X, _, C). p(X, C) :- road(X, _, C).",
            "                                      ^",
            "hint: line 1: p(X, min<C>)",
        ],
    ),
    (
        "p(X) :- size(X + 1, _).",
        [
            "line 1, column 14: a relation's columns are variables and constants here, nothing computed",
            "  p(X) :- size(X + 1, _).",
            "               ^^^^^",
            "hint: compare it outside: size(V, _), V = X + 1",
        ],
    ),
    (
        "p(X) :- size(X, _), not size(X + 1, _).",
        [
            "line 1, column 30: a relation's columns are variables and constants here, nothing computed",
            "  p(X) :- size(X, _), not size(X + 1, _).",
            "                               ^^^^^",
            "hint: compare it outside: size(V, _), V = X + 1",
        ],
    ),
    (
        "p(X, Z) :- link(X, Y).",
        [
            "line 1, column 6: nothing in the body gives the variable 'Z' a value",
            "  p(X, Z) :- link(X, Y).",
            "       ^",
            "hint: add a goal that has Z",
        ],
    ),
    (
        "p(X, Source) :- link(X, Sourc).",
        [
            "line 1, column 6: nothing in the body gives the variable 'Source' a value",
            "  p(X, Source) :- link(X, Sourc).",
            "       ^^^^^^",
            "hint: did you mean 'Sourc'?",
        ],
    ),
    (
        "p(X) :- link(X, _), not link(X, Z).",
        [
            "line 1, column 33: no goal without 'not' gives the variable 'Z' a value",
            "  p(X) :- link(X, _), not link(X, Z).",
            "                                  ^",
            "hint: write _ if any value will do: not link(X, _)",
        ],
    ),
    (
        "p(X) :- link(X, _), not link(Y, X), Y = Z.",
        [
            "line 1, column 30: no goal without 'not' gives the variable 'Y' a value",
            "  p(X) :- link(X, _), not link(Y, X), Y = Z.",
            "                               ^",
            "hint: write _ if any value will do: not link(_, X)",
        ],
    ),
    (
        "p(X) :- link(X, _), Cost < 3.",
        [
            "line 1, column 21: nothing gives the variable 'Cost' a value",
            "  p(X) :- link(X, _), Cost < 3.",
            "                      ^^^^",
            "hint: add a goal without 'not' that has Cost",
        ],
    ),
    (
        "p(X) :- road(X, _, Cst), Cost < 3.",
        [
            "line 1, column 26: nothing gives the variable 'Cost' a value",
            "  p(X) :- road(X, _, Cst), Cost < 3.",
            "                           ^^^^",
            "hint: did you mean 'Cst'?",
        ],
    ),
    (
        "p(X) :- not link(X, X).",
        [
            "line 1, column 18: no goal without 'not' gives the variable 'X' a value",
            "  p(X) :- not link(X, X).",
            "                   ^",
            "hint: write _ if any value will do: not link(_, _)",
        ],
    ),
    (
        "p(X).",
        [
            "line 1, column 3: a fact has constants only, and X is a variable",
            "  p(X).",
            "    ^",
            "hint: a word that begins with a capital is a variable: write 'X' in quotes for the string",
        ],
    ),
    (
        "p(1 + 2).",
        [
            "line 1, column 3: a fact has constants only, not 1 + 2",
            "  p(1 + 2).",
            "    ^^^^^",
        ],
    ),
    (
        "p(_) :- link(_, _).",
        [
            "line 1, column 3: '_' stands for any value, and a head needs one",
            "  p(_) :- link(_, _).",
            "    ^",
        ],
    ),
    (
        "p(X) :- link(X, _), _ != X.",
        [
            "line 1, column 21: '_' stands for any value, and a comparison needs one",
            "  p(X) :- link(X, _), _ != X.",
            "                      ^",
        ],
    ),
    (
        "p(X, count<Y>).",
        [
            "line 1, column 6: a fact has constants only, not count<Y>",
            "  p(X, count<Y>).",
            "       ^^^^^^^^",
        ],
    ),
    (
        "p(X) :- X = Y, Y = X, link(Z, _).",
        [
            "line 1, column 9: nothing gives the variable 'X' a value",
            "  p(X) :- X = Y, Y = X, link(Z, _).",
            "          ^",
            "hint: add a goal without 'not' that has X",
        ],
    ),
    (
        "win(X) :- link(X, Y), not win(Y).",
        [
            "line 1, column 27: 'win' depends on its own negation: win → not win",
            "  win(X) :- link(X, Y), not win(Y).",
            "                            ^^^^^^",
            "hint: 'not' may stand before relations that do not depend on 'win'",
        ],
    ),
    (
        "p(X) :- link(X, _), q(X). q(X) :- r(X). r(X) :- link(X, _), not p(X).",
        [
            "line 1, column 65: 'r' depends on its own negation: r → not p → q → r",
            "  p(X) :- link(X, _), q(X). q(X) :- r(X). r(X) :- link(X, _), not p(X).",
            "                                                                  ^^^^",
            "hint: 'not' may stand before relations that do not depend on 'r'",
        ],
    ),
    (
        "p(X, count<Y>) :- link(X, Y). p(X, count<Y>) :- link(X, Z), p(Z, Y).",
        [
            "line 1, column 6: 'p' depends on its own count: p → p",
            "  p(X, count<Y>) :- link(X, Y). p(X, count<Y>) :- link(X, Z), p(Z, Y).",
            "       ^^^^^^^^",
            "hint: count changes with every row that the recursion adds; only min and max may be inside: derive the rows first, and take count of them in another relation",
        ],
    ),
    (
        "path(X, Y, C) :- road(X, Y, C).\npath(X, Z, C) :- road(X, Y, C1), path(Y, Z, C2), C = C1 + C2.",
        [
            "line 2, column 12: this recursion may not end: the rule computes new values of C from its own results",
            "  path(X, Z, C) :- road(X, Y, C1), path(Y, Z, C2), C = C1 + C2.",
            "             ^",
            "hint: limit the value in the rule on both sides (C > 0, C < 100), or state how often it may go around: datalog(…, bound=100)",
        ],
    ),
    (
        "path(X, Y, min<C>) :- road(X, Y, C).\npath(X, Z, min<C>) :- road(X, Y, C1), path(Y, Z, C2), C = C1 + C2.",
        [
            "line 2, column 12: this recursion may not end: the rule computes new values of min<C> from its own results",
            "  path(X, Z, min<C>) :- road(X, Y, C1), path(Y, Z, C2), C = C1 + C2.",
            "             ^^^^^^",
            "hint: add a condition that keeps what is added from being negative (as C1 >= 0 does), or state how often it may go around: datalog(…, bound=100)",
        ],
    ),
    (
        "path(X, Y, min<C>) :- road(X, Y, C).\npath(X, Z, min<C>) :- road(X, Y, C1), path(Y, Z, C2), C = C1 - C2.",
        [
            "line 2, column 16: inside its recursion min<C> may get worse while the values that it comes from get better",
            "  path(X, Z, min<C>) :- road(X, Y, C1), path(Y, Z, C2), C = C1 - C2.",
            "                 ^",
            "hint: a better value found later would undo what was derived: select with min or max there too, or use it outside",
        ],
    ),
    (
        "p(X, min<C>) :- road(X, _, C). p(X, min<C>) :- p(X, C), C > 3.",
        [
            "line 1, column 57: inside its recursion C > 3 may hold for a selected value and not for a better one",
            "  p(X, min<C>) :- road(X, _, C). p(X, min<C>) :- p(X, C), C > 3.",
            "                                                          ^^^^^",
            "hint: a better value found later would undo what was derived: select with min or max there too, or use it outside",
        ],
    ),
    (
        "p(X, min<C>) :- road(X, _, C). q(X, C) :- p(X, C). p(X, min<C>) :- q(X, C).",
        [
            "line 1, column 37: inside its recursion C comes from a selected value",
            "  p(X, min<C>) :- road(X, _, C). q(X, C) :- p(X, C). p(X, min<C>) :- q(X, C).",
            "                                      ^",
            "hint: a better value found later would undo what was derived: select with min or max there too, or use it outside",
        ],
    ),
    (
        "p(X, 1) :- link(X, _). p(X, N + 1) :- p(X, N).",
        [
            "line 1, column 29: this recursion may not end: the rule computes new values of N + 1 from its own results",
            "  p(X, 1) :- link(X, _). p(X, N + 1) :- p(X, N).",
            "                              ^^^^^",
            "hint: limit the value in the rule (N + 1 < 100), or state how often it may go around: datalog(…, bound=100)",
        ],
    ),
    (
        "p(X, Y) :- link(X, Y). p(X, C) :- road(X, _, C).",
        [
            "line 1, column 29: column 2 of 'p' is int64 here and string in another rule",
            "  p(X, Y) :- link(X, Y). p(X, C) :- road(X, _, C).",
            "                              ^",
            "hint: line 1: p(X, Y) :- link(X, Y).",
        ],
    ),
    (
        "p(X) :- size(X, _). p(X) :- size(_, X).",
        [
            "line 1, column 23: column 1 of 'p' is double here and int64 in another rule",
            "  p(X) :- size(X, _). p(X) :- size(_, X).",
            "                        ^",
            "hint: line 1: p(X) :- size(X, _). An integer times 1.0 is a float",
        ],
    ),
    (
        "p(X) :- link(X, _), size(X, _).",
        [
            "line 1, column 26: 'X' is string, and column id of 'size' is int64",
            "  p(X) :- link(X, _), size(X, _).",
            "                           ^",
            "hint: one variable stands for equal values: use two",
        ],
    ),
    (
        "p(X) :- link(X, 3).",
        [
            "line 1, column 17: cannot compare dst (string) with a number",
            "  p(X) :- link(X, 3).",
            "                  ^",
            "hint: write numbers without quotes",
        ],
    ),
    (
        "p(X) :- size(X, 'a').",
        [
            "line 1, column 17: cannot compare size (double) with a string",
            "  p(X) :- size(X, 'a').",
            "                  ^^^",
            "hint: write numbers without quotes",
        ],
    ),
    (
        "p(X) :- link(X, _), X > 3.",
        [
            "line 1, column 21: cannot compare X (string) with a number",
            "  p(X) :- link(X, _), X > 3.",
            "                      ^^^^^",
            "hint: write numbers without quotes",
        ],
    ),
    (
        "p(X) :- link(X, Y), Z = X + Y.",
        [
            "line 1, column 25: cannot compute X (string) with '+': it needs numbers",
            "  p(X) :- link(X, Y), Z = X + Y.",
            "                          ^",
        ],
    ),
    (
        "p(X, Y + 1) :- link(X, Y).",
        [
            "line 1, column 6: cannot compute Y (string) with '+': it needs numbers",
            "  p(X, Y + 1) :- link(X, Y).",
            "       ^",
        ],
    ),
    (
        "p(sum<X>) :- link(X, _).",
        [
            "line 1, column 3: sum is not defined for string",
            "  p(sum<X>) :- link(X, _).",
            "    ^^^^^^",
            "hint: it takes integers and floats",
        ],
    ),
    (
        "p(min<X>) :- link(X, _).",
        [
            "line 1, column 3: min is not defined for string",
            "  p(min<X>) :- link(X, _).",
            "    ^^^^^^",
            "hint: it takes integers, floats, times and truth values",
        ],
    ),
    (
        "p(X) :- size(_, X), not size(X, _).",
        [
            "line 1, column 30: 'X' is double, and column id of 'size' is int64",
            "  p(X) :- size(_, X), not size(X, _).",
            "                               ^",
            "hint: one variable stands for equal values: use two",
        ],
    ),
    (
        "p(X) :- size(X, _), not size(_, X).",
        [
            "line 1, column 33: 'X' is int64, and column size of 'size' is double",
            "  p(X) :- size(X, _), not size(_, X).",
            "                                  ^",
            "hint: look up a float: F = X * 1.0, not …(F)",
        ],
    ),
    (
        "p(X) :- p(X).",
        [
            "line 1, column 1: no rule gives column 1 of 'p' a value",
            "  p(X) :- p(X).",
            "  ^^^^",
            "hint: add a rule that does not read 'p'",
        ],
    ),
    (
        "p(X) :- q(X). q(X) :- p(X).",
        [
            "line 1, column 1: no rule gives column 1 of 'p' a value",
            "  p(X) :- q(X). q(X) :- p(X).",
            "  ^^^^",
            "hint: add a rule that does not read 'p'",
        ],
    ),
    (
        "p(99999999999999999999).",
        [
            "line 1, column 3: the number 99999999999999999999 does not fit into 64 bits",
            "  p(99999999999999999999).",
            "    ^^^^^^^^^^^^^^^^^^^^",
            "hint: integers reach from −2^63 to 2^63 − 1",
        ],
    ),
    (
        "p(X) :- size(X, _), X < 1e999.",
        [
            "line 1, column 25: a number of more than 400 digits",
            "  p(X) :- size(X, _), X < 1e999.",
            "                          ^^^^^",
        ],
    ),
    (
        "p(X) :- seen(X, B), B < true.",
        [
            "line 1, column 21: truth values are not ordered",
            "  p(X) :- seen(X, B), B < true.",
            "                      ^^^^^^^^",
            "hint: compare them with = or !=",
        ],
    ),
    (
        "p(X) :- seen(X, yes).",
        [
            "line 1, column 17: cannot compare ok (bool) with a string",
            "  p(X) :- seen(X, yes).",
            "                  ^^^",
        ],
    ),
    (
        "p(1e999).",
        [
            "line 1, column 3: a number of more than 400 digits",
            "  p(1e999).",
            "    ^^^^^",
        ],
    ),
    (
        "p(Z) :- size(A, _), B = A + A, C = B + B, D = C + C, E = D + D, F = E + E, G = F + F, H = G + G, I = H + H, J = I + I, K = J + J, L = K + K, M = L + L, N = M + M, O = N + N, P = O + O, Q = P + P, R = Q + Q, S = R + R, T = S + S, U = T + T, V = U + U, W = V + V, X = W + W, Y = X + X, Z = Y + Y.",
        [
            "line 1, column 124: the value of 'K' is too long when the values that it is computed from are written out",
            "  , G = F + F, H = G + G, I = H + H, J = I + I, K = J + J, L = K + K, M = L + L, N = M + M, O = N + N,",
            "                                                    ^^^^^",
            "hint: derive a relation for a part of it",
        ],
    ),
]


@pytest.mark.parametrize(("text", "lines"), ERRORS)
def test_errors(text: str, lines: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        datalog(text, SOURCES)
    assert str(caught.value).split("\n") == lines
    assert str(pickle.loads(pickle.dumps(caught.value))).split("\n") == lines


@pytest.mark.parametrize(
    ("name", "bound", "message"),
    [
        ("Link", None, "a program cannot name the source 'Link': names begin with a small letter, as 'link' does"),
        ("a b", None, "a program cannot name the source 'a b': names begin with a small letter, as 'link' does"),
        ("not", None, "a program cannot name the source 'not': names begin with a small letter, as 'link' does"),
        ("link", 0, "bound must be a positive integer, not 0"),
        ("link", True, "bound must be a positive integer, not True"),
    ],
)
def test_options(name: str, bound: int | None, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        datalog("p(X) :- link(X).", {name: {"x": int}}, bound=bound)
    assert str(caught.value) == message
