"""CEQL's syntax errors in words."""

from __future__ import annotations

import re
from collections.abc import Collection

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

__all__ = ["explain"]

_KEYWORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "FILTER",
        "PARTITION",
        "WITHIN",
        "CONSUME",
        "LIMIT",
        "BY",
        "AS",
        "OR",
        "AND",
    ),
    *("NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"),
)
_STRATEGIES = ("ALL", "NEXT", "LAST", "MAX", "STRICT")
_CLAUSES = ("FILTER", "PARTITION", "WITHIN", "CONSUME", "LIMIT")

_GROUPS = groups(
    (
        ("a strategy (ALL, NEXT, LAST, MAX, STRICT)", "STRATEGY", ""),
        ("a comparison", "COMPARE", "GT IN BETWEEN LIKE IS NOT"),
        ("an operator", "SLASH", "PLUS MINUS STAR PERCENT"),
        ("an attribute or a constant", "ATTRIBUTE", "QUOTED STRING NUMBER TRUE FALSE NULL MINUS LPAR NOT"),
        ("a number", "NUMBER", "MINUS"),
        ("an operator", "MINUS", "PLUS"),
        ("'*'", "STAR", ""),
        ("';'", "SEMICOLON", "COLON NAME QUOTED LPAR"),
        ("an attribute", "COLUMN", "QUOTED"),
        ("'+'", "PLUS", "COLON_PLUS"),
        ("','", "COMMA", ""),
        ("AS", "AS", ""),
        ("a name", "NAME", "QUOTED LPAR NOT"),
        ("a unit", "UNIT", ""),
        ("ANY, PARTITION or NONE", "MODE", ""),
        ("'['", "LSQB", ""),
        ("']'", "RSQB", ""),
        ("')'", "RPAR", ""),
        ("'('", "LPAR", ""),
        ("a string", "STRING", ""),
        *(
            (word, word, "")
            for word in ("NOT", "NULL", "IN", "BETWEEN", "LIKE", "AND", "OR", "SELECT", "FROM", "WHERE", "BY")
        ),
        ("FILTER", "FILTER", ""),
        ("WITHIN", "WITHIN", ""),
        ("PARTITION BY", "PARTITION", ""),
        ("CONSUME BY", "CONSUME", ""),
        ("LIMIT", "LIMIT", ""),
        ("the end", "$END", ""),
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
        or _between_events(text, span, expected)
        or _without_brackets(text, span, expected)
        or (duration(text, span) if "AND" in expected else None)
        or _missing_clause(text, span, expected)
        or unexpected(text, span, expected, _GROUPS, _hint(text, span, expected))
    )


_WORD_BEFORE = re.compile(r"(?:(?<!\w)(?P<left>\w+)|[)+\"`])\s*(?<!\w)(?P<word>[^\W\d]\w*)\s*\Z")
_LOOK_BACK = 300


def _misspelt_before(text: str, start: int, expected: Collection[str]) -> Mistake | None:
    """A misspelt keyword that was read as a variable, since AS may be missing: ``A FITLER A[x > 1]``."""
    begin = max(0, start - _LOOK_BACK)
    before = _WORD_BEFORE.search(text[begin:start])
    if before is None or before["word"].upper() in _KEYWORDS:
        return None
    left = (before["left"] or "").upper()
    candidates: tuple[str, ...] = ()
    if "SEMICOLON" in expected and left not in _KEYWORDS:
        candidates = (*_CLAUSES, "OR", "AS")
    elif "FROM" in expected and left == "SELECT":
        candidates = _STRATEGIES
    meant = keyword_like(before["word"], candidates)
    if meant is None:
        return None
    span = Span(begin + before.start("word"), begin + before.end("word"))
    return Mistake(f"unexpected '{before['word']}'", span, f"did you mean '{_full(meant)}'?")


def _missing_clause(text: str, span: Span, expected: Collection[str]) -> Mistake | None:
    """SELECT, FROM or WHERE that is not there: another keyword, or the end, stands in its place."""
    missing = next((keyword for keyword in ("SELECT", "FROM", "WHERE") if keyword in expected), None)
    if missing is None:
        return None
    word = text[span.start : span.end]
    if word and word.upper() not in _KEYWORDS:
        return None
    return Mistake(f"a query needs a {missing} clause", span, "SELECT * FROM stream WHERE formula")


_STEP_BEFORE = re.compile(r"(?P<step>\w+|[`\")])\s*(?P<contiguous>:?)(?P<plus>\+?)\s*\Z")


def _quantifier(text: str, span: Span, expected: Collection[str]) -> Mistake | None:
    """``B?``, ``B*``, ``B{2}``, which the language does not have: how to write them."""
    word = text[span.start : span.end]
    before = _STEP_BEFORE.search(text[max(0, span.start - _LOOK_BACK) : span.start])
    if before is None or word not in ("?", "*", "{"):
        return None
    if "SEMICOLON" not in expected and not before["contiguous"]:
        return None
    step = before["step"] if before["step"][-1] not in '`")' else "B"
    plus = ":+" if before["contiguous"] else "+"
    if word == "?" and not before["plus"]:
        alone = f"(A ; C) OR (A ; {step} ; C)"
        return Mistake("there are no optional steps yet", span, f"write the pattern without and with it: {alone}")
    if word != "{":
        both = f"(A ; C) OR (A ; {step}{plus} ; C)"
        return Mistake(
            "there is no repetition of none or more yet",
            span,
            f"write the pattern without it and with one or more: {both}",
        )
    counts = count_of(text, span.start)
    joint = " : " if before["contiguous"] else " ; "
    sequences = written_out(counts, lambda _: step, f"{step}{plus}", joint) if counts is not None else None
    shown = f"{step}{{2}} is {step} ; {step}, and {step}{{2,}} is {step} ; {step}+"
    if sequences is not None:
        shown = (
            sequences[0]
            if len(sequences) == 1
            else " OR ".join(f"({one})" if joint in one else one for one in sequences)
        )
    return Mistake("there are no counted repetitions yet", span, f"write it out: {shown}")


_RELATES = "SASE+ has them: PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.price > a.price }"
_OPERATOR = r"(?:==|!=|<>|<=|>=|=|<|>|\bIN\b|\bLIKE\b|\bBETWEEN\b|\bIS\b)"
_MEMBER_AHEAD = re.compile(
    rf"\.\s*(?P<attribute>\w+)\s*(?P<rest>{_OPERATOR}\s*(?P<other>[^\W\d]\w*\s*[.\[])?)", re.IGNORECASE
)


def _between_events(text: str, span: Span, expected: Collection[str]) -> Mistake | None:
    """``b[price > a.price]``, ``a.price < b.price`` and the like."""
    word = text[span.start : span.end]
    inside = "AND" in expected and "RSQB" in expected
    found = Mistake("CEQL has no conditions between events", span, _RELATES)
    if inside and word in (".", "["):
        return found
    if word == "." and "LSQB" in expected:
        ahead = _MEMBER_AHEAD.match(text, span.start)
        return found if ahead is not None and ahead["other"] else None
    if (
        re.fullmatch(_OPERATOR, word, re.IGNORECASE)
        and text[: span.start].rstrip().endswith("]")
        and "FILTER" in expected
    ):
        return found
    return None


_NAME_BEFORE = re.compile(r"(?P<name>[^\W\d]\w*)\s*(?P<sign>>?)\s*\Z")
_VALUE = re.compile(r"\s*(?P<value>'[^'\n]*'|-?\d[\d.]*)")


def _without_brackets(text: str, span: Span, expected: Collection[str]) -> Mistake | None:
    """``FILTER v > 2``, ``FILTER v.price > 2``: a condition that does not stand in brackets."""
    word = text[span.start : span.end]
    begin = max(0, span.start - _LOOK_BACK)
    before = _NAME_BEFORE.search(text[begin : span.start])
    if before is None:
        return None
    name, attribute, sign, at = before["name"], "price", word, span.end
    if before["sign"] and expected and set(expected) <= {"NAME", "QUOTED"}:
        # A '>' may stand between a stream and a type, so that what follows it is what the parser could not take.
        equal = word == "="
        sign, at = ">=" if equal else ">", span.end if equal else span.start
        span = Span(begin + before.start("sign"), span.end)
        if not equal and _VALUE.match(text, at) is None:
            return None
    elif "LSQB" not in expected or "AND" in expected:
        return None
    elif word == ".":
        ahead = _MEMBER_AHEAD.match(text, span.start)
        if ahead is None:
            return None
        attribute, at = ahead["attribute"], ahead.end("rest")
        sign = ahead["rest"].strip()
    elif not re.fullmatch(_OPERATOR, word, re.IGNORECASE):
        return None
    value = _VALUE.match(text, at)
    asked = f"{sign} {value['value'] if value else '…'}"
    hint = f"write FILTER variable[attribute {asked}]: {name}[{attribute} {asked}]"
    return Mistake("a condition stands in brackets after its variable", span, hint)


def _hint(text: str, span: Span, expected: frozenset[str]) -> str | None:
    return _keyword_hint(text[span.start : span.end], expected) or _sign_hint(text, span, expected)


def _keyword_hint(word: str, expected: frozenset[str]) -> str | None:
    """What to say about a word that looks like a keyword, or is one."""
    if word.upper() in _KEYWORDS:
        if "STRATEGY" in expected:
            return "SELECT * reports every variable, SELECT NONE reports none"
        if word.upper() == "NOT" and "NAME" in expected:
            return "CEQL has no negated steps; NOT stands inside brackets: x[NOT (price > 3)]"
        return f"'{word}' is a keyword; as a name it is written `{word}`" if expected & _NAMES else None
    keywords = [keyword for keyword in _KEYWORDS if keyword in expected]
    meant = keyword_like(word, keywords + list(_STRATEGIES if "STRATEGY" in expected else ()))
    if meant is not None:
        return f"did you mean '{_full(meant)}'?"
    return f"write [{word}]" if expected == {"LSQB"} and word.isidentifier() else None


_NAMES = {"NAME", "ATTRIBUTE"}
_FORMULA_SIGNS = {";", ":", "+", ":+"}


def _sign_hint(text: str, span: Span, expected: frozenset[str]) -> str | None:
    """What to say about a sign that some bracket keeps out."""
    word = text[span.start : span.end]
    if word in _FORMULA_SIGNS and "AND" in expected and "COMPARE" not in expected and "SLASH" not in expected:
        return "FILTER takes everything to its left; put it in parentheses: (A FILTER A[p]); B"
    return chain_hint(word, expected) or closing_hint(text, span)


def _full(keyword: str) -> str:
    return f"{keyword} BY" if keyword in {"PARTITION", "CONSUME"} else keyword
