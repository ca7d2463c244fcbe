"""SASE+'s syntax errors in words."""

from __future__ import annotations

import re

from lark import UnexpectedInput

from stretto.errors import Span
from stretto.languages.diagnostics import (
    chain_hint,
    closing_hint,
    count_of,
    duration,
    expected_terminals,
    groups,
    keyword_like,
    place,
    unexpected,
    unterminated,
    written_out,
)
from stretto.languages.parts import Mistake
from stretto.query import predicate as p
from stretto.query.sase import Selection

__all__ = ["explain"]

_CLAUSES = ("WITHIN", "RETURN", "OUTPUT", "LIMIT")
_KEYWORDS = ("PATTERN", "SEQ", "WHERE", *_CLAUSES, "AS", *sorted(p.WORDS))

_GROUPS = groups(
    (
        ("a comparison", "COMPARE", "GT IN BETWEEN LIKE IS NOT"),
        ("an operator", "SLASH", "PLUS MINUS STAR PERCENT"),
        (
            "a reference or a constant",
            "TRUE",
            "VARIABLE QUOTED STRING NUMBER PERCENTAGE FALSE NULL MINUS LPAR LSQB NOT",
        ),
        ("an index (1, i, i-1, a.LEN)", "INTEGER", "VARIABLE MINUS DOTS"),
        ("a component", "TILDE", "TYPE QUOTED LPAR NOT"),
        ("SEQ", "SEQ", ""),
        ("a number", "NUMBER", "MINUS"),
        ("an operator", "MINUS", "PLUS"),
        ("an attribute", "COLUMN", "QUOTED"),
        ("a type", "TYPE", "QUOTED"),
        ("a strategy", "STRATEGY", "LBRACE"),
        ("'+'", "PLUS", ""),
        ("a variable", "VARIABLE", ""),
        ("a unit", "UNIT", ""),
        ("all, non_overlap, verbose or compressed", "MODE", ""),
        ("a string", "STRING", "QUOTED"),
        *((f"'{sign}'", name, "") for sign, name in (("{", "LBRACE"), ("|", "BAR"), (".", "DOT"), (",", "COMMA"))),
        *((f"'{sign}'", name, "") for sign, name in (("[", "LSQB"), ("]", "RSQB"), ("(", "LPAR"), (")", "RPAR"))),
        ("'}'", "RBRACE", ""),
        *((word, word, "") for word in ("NOT", "NULL", "IN", "BETWEEN", "LIKE", "AND", "OR", "AS", "PATTERN", "WHERE")),
        *((word, word, "") for word in _CLAUSES),
        ("the end", "$END", "SEMICOLON"),
    )
)


def explain(text: str, error: UnexpectedInput) -> Mistake:
    """A parser's error as a mistake with its place and a hint."""
    expected = expected_terminals(error)
    span = place(text, error)
    return (
        unterminated(text, span.start)
        or _misspelt_before(text, span.start, expected)
        or _quantifier(text, span, expected)
        or (duration(text, span) if "AND" in expected else None)
        or unexpected(text, span, expected, _GROUPS, _hint(text, span, expected))
    )


_NUMBER_AND_WORD = re.compile(r"(?<![\w.])[\d.]++\s*+(?P<word>[^\W\d]\w*+)\s*\Z")
_LOOK_BACK = 300


def _misspelt_before(text: str, start: int, expected: frozenset[str]) -> Mistake | None:
    """A misspelt clause that was read as a unit: ``WITHIN 1000 RETRUN b.x``."""
    begin = max(0, start - _LOOK_BACK)
    before = _NUMBER_AND_WORD.search(text[begin:start])
    if before is None or not {"NUMBER", "RETURN"} <= expected:
        return None
    meant = keyword_like(before["word"], _CLAUSES)
    if meant is None:
        return None
    span = Span(begin + before.start("word"), begin + before.end("word"))
    return Mistake(f"unexpected '{before['word']}'", span, f"did you mean '{meant}'?")


def _hint(text: str, span: Span, expected: frozenset[str]) -> str | None:
    word = text[span.start : span.end]
    return (
        _pattern_hint(text, span, expected)
        or _where_hint(word, expected)
        or _keyword_hint(word, expected)
        or _space_hint(text, span, expected)
        or chain_hint(word, expected)
        or closing_hint(text, span)
    )


_LAST_WORD = re.compile(r"(?P<dot>\.\s*)?(?<!\w)(?P<word>\w+)\s*\Z")


def _word_before(text: str, start: int) -> re.Match[str] | None:
    return _LAST_WORD.search(text[max(0, start - _LOOK_BACK) : start])


def _quantifier(text: str, span: Span, expected: frozenset[str]) -> Mistake | None:
    """``B?``, ``B*``, ``B{2}``, which the language does not have: how to write them."""
    word = text[span.start : span.end]
    before = _word_before(text, span.start)
    if before is None or word not in ("?", "*", "{") or not {"VARIABLE", "PLUS"} <= expected:
        return None
    step = before["word"]
    name = step[0].lower()
    if word == "?":
        return Mistake(
            "there are no optional components yet",
            span,
            f"ask two queries, without and with it: SEQ(A x, C y) and SEQ(A x, {step} {name}, C y)",
        )
    if word == "*":
        return Mistake(
            "there is no repetition of none or more yet",
            span,
            f"ask two queries, without it and with one or more: SEQ(A x, C y) and SEQ(A x, {step}+ {name}[], C y)",
        )
    counts = count_of(text, span.start)
    more = f"{step}+ {name}[]"
    sequences = written_out(counts, lambda k: f"{step} {name}{k}", more, ", ") if counts is not None else None
    if sequences is None:
        shown = f"{step}{{2}} is {step} {name}1, {step} {name}2"
    else:
        shown = (
            sequences[0] if len(sequences) == 1 else f"a query each: {' and '.join(f'SEQ({one})' for one in sequences)}"
        )
    return Mistake("there are no counted repetitions yet", span, f"write it out: {shown}")


def _pattern_hint(text: str, span: Span, expected: frozenset[str]) -> str | None:
    """What to say about components that are written otherwise."""
    word = text[span.start : span.end]
    before = _word_before(text, span.start)
    if before is None:
        return None
    last = before["word"]
    if {"VARIABLE", "PLUS"} <= expected and word.upper() not in _KEYWORDS:
        if word == "|":
            return f"alternatives stand in parentheses: ({last}|…)"
        name = last[0].lower()
        return f"name it: {last} {name}"
    if expected == {"COMMA", "LSQB", "RPAR"} and last.upper() == "AS":
        return "a variable follows its type without AS: Stock a"
    return None


def _where_hint(word: str, expected: frozenset[str]) -> str | None:
    """What to say about conditions that are not where they belong, or not joined."""
    if word == "," and "RBRACE" in expected:
        return "join conditions with AND"
    if "STRATEGY" in expected:
        return f"one of {', '.join(Selection)}"
    if "LBRACE" in expected:
        return "WHERE strategy { conditions }"
    if word == "*" and expected == {"VARIABLE"}:
        return "count(a[]) counts the events of a[]"
    if word.upper() == "WHERE" and "WITHIN" in expected:
        return "WHERE stands once, right after PATTERN"
    return None


def _keyword_hint(word: str, expected: frozenset[str]) -> str | None:
    """What to say about a word that looks like a keyword, or is one."""
    if word.upper() in _KEYWORDS:
        return f"'{word}' is a keyword and no variable" if "VARIABLE" in expected else None
    meant = keyword_like(word, [keyword for keyword in _KEYWORDS if keyword in expected])
    return None if meant is None else f"did you mean '{meant}'?"


def _space_hint(text: str, span: Span, expected: frozenset[str]) -> str | None:
    """What to say about ``a.tag id``."""
    word = text[span.start : span.end]
    before = _word_before(text, span.start)
    if before is None or before["dot"] is None or "COMPARE" not in expected or not word.isidentifier():
        return None
    return f"a name with a space stands in backticks: `{before['word']} {word}`"
