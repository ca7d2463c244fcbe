"""CEQL's syntax errors in words."""

from __future__ import annotations

import re

from lark import UnexpectedInput

from stretto.errors import Span
from stretto.languages.ceql.lowering import RELATES
from stretto.languages.expressions import diagnostics as d
from stretto.languages.expressions.tokens import Mistake

_KEYWORDS = (
    *["SELECT", "FROM", "WHERE", "FILTER", "PARTITION", "WITHIN", "CONSUME", "LIMIT", "KEEP", "BY", "AS", "OR", "AND"],
    *d.ASKING,
    *["NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"],
)
_STRATEGIES = ("ALL", "NEXT", "LAST", "MAX", "STRICT")
_CLAUSES = ("FILTER", "PARTITION", "WITHIN", "CONSUME", "LIMIT", "KEEP", *d.ASKING)

_GROUPS = d.groups(
    ("a strategy (ALL, NEXT, LAST, MAX, STRICT)", "STRATEGY", ""),
    d.COMPARISON,
    d.OPERATOR,
    ("an attribute or a constant", "ATTRIBUTE", "QUOTED STRING NUMBER TRUE FALSE NULL MINUS LPAR NOT"),
    d.NUMBER,
    d.SIGN,
    ("';'", "SEMICOLON", "COLON NAME QUOTED LPAR STAR"),
    *d.signs("STAR"),
    ("an attribute", "COLUMN", "QUOTED"),
    ("'+'", "PLUS", "COLON_PLUS QUESTION COLON_STAR LBRACE COLON_BRACE"),
    *d.signs("RBRACE"),
    *d.signs("COMMA"),
    *d.words("AS"),
    ("a name", "NAME", "QUOTED LPAR NOT"),
    ("a unit", "UNIT", ""),
    ("ANY, PARTITION or NONE", "MODE", ""),
    ("'['", "LSQB", "KEYED"),
    ("'='", "EQUAL", ""),
    *d.signs("RSQB RPAR LPAR"),
    ("a string", "STRING", ""),
    *d.words("OVER NOT NULL IN BETWEEN LIKE AND OR SELECT FROM WHERE BY FILTER WITHIN"),
    ("PARTITION BY", "PARTITION", ""),
    ("CONSUME BY", "CONSUME", ""),
    *d.words("LIMIT"),
    *d.CHOOSING,
    *d.ASKED,
)


def explain(text: str, error: UnexpectedInput, what: str) -> Mistake:
    """Say in words what a parser's error means, with its place and a hint; ``what`` is what the text should be."""
    found = d.Unexpected.of(text, error, what)
    return (
        found.unterminated()
        or _arrow(found)
        or _misspelt_before(found)
        or _aggregate(found)
        or _without_window(found)
        or _conditions_in_where(found)
        or _between_events(found)
        or _without_brackets(found)
        or found.interval()
        or _missing_clause(found)
        or found.mistake(_GROUPS, _eql_hint(found) or _keyword_hint(found) or _asking_hint(found) or _sign_hint(found))
    )


_WORD_BEFORE = re.compile(r"(?:(?<!\w)(?P<left>\w+)|[)+\"`])\s*(?<!\w)(?P<word>[^\W\d]\w*)\s*\Z")


def _misspelt_before(found: d.Unexpected) -> Mistake | None:
    """A misspelt keyword that was read as a variable, since AS may be missing: ``A FITLER A[x > 1]``."""
    before = found.before(_WORD_BEFORE)
    if before is None or before["word"].upper() in _KEYWORDS:
        return None
    left = (before["left"] or "").upper()
    if "SEMICOLON" in found.expected and left not in _KEYWORDS:
        return found.misspelt(before, (*_CLAUSES, "OR", "AS"))
    return found.misspelt(before, _STRATEGIES) if "FROM" in found.expected and left == "SELECT" else None


def _missing_clause(found: d.Unexpected) -> Mistake | None:
    """SELECT, FROM or WHERE that is not there: another keyword, or the end, stands in its place."""
    missing = next((keyword for keyword in ("SELECT", "FROM", "WHERE") if keyword in found.expected), None)
    if missing is None or (found.word and found.word.upper() not in _KEYWORDS):
        return None
    return Mistake(f"a query needs a {missing} clause", found.span, "SELECT * FROM stream WHERE formula")


_EQL = re.compile(r"\s*(?:(?:sequence|sample|join)\s*(?:\[|!|(?:by|with)\s)|[\w\"`]+\s+where\s)")


def _eql_hint(found: d.Unexpected) -> str | None:
    """What to say about a query of another language."""
    if found.expected == {"SELECT"} and _EQL.match(found.text):
        return 'this reads like EQL: say so with language="eql"'
    return None


_AGGREGATE = re.compile(r"(?<!\w)(?P<function>count|sum|avg|min|max)\s*(?:\(\s*)?\Z", re.IGNORECASE)


def _aggregate(found: d.Unexpected) -> Mistake | None:
    """``FILTER COUNT(a) > 1``, ``a[count(DISTINCT x) > 1]``: a condition on several events."""
    word, before = found.word, found.before(_AGGREGATE)
    opens = word == "(" and "LSQB" in found.expected
    distinct = found.text[: found.span.start].rstrip().upper().endswith("DISTINCT") and "RPAR" in found.expected
    if before is None and not distinct:
        return None
    if not (opens or distinct or word.upper() == "DISTINCT"):
        return None
    return Mistake(
        "CEQL asks each event by itself, and has no condition on what a repetition adds up to",
        found.span,
        "SASE+ has some: PATTERN SEQ(A+ a[], B b) WHERE … { count(a[]) > 1 and sum(a[].x) > 9 }, MATCH_RECOGNIZE also "
        "COUNT(DISTINCT A.x); in CEQL A{2,} counts events",
    )


def _without_window(found: d.Unexpected) -> Mistake | None:
    """``a[count(DISTINCT x) > 1]``: an aggregate that does not say of which events."""
    if found.expected != {"OVER"}:
        return None
    return Mistake(
        "CEQL asks each event by itself, and this aggregate does not say over which others it goes",
        found.span,
        "write count(x) OVER 1 minute, of the latest events of the step; SASE+ adds up over a repetition: PATTERN SEQ(A+ a[], B b) "
        "WHERE … { count(a[]) > 1 }",
    )


def _arrow(found: d.Unexpected) -> Mistake | None:
    """``A -> B``: a sequence of another language."""
    if not found.expected & {"SEMICOLON", "NAME"} or "AND" in found.expected:
        return None
    told, hint = "one event after another is A ; B", "A ; B for any events between, A : B for none"
    if found.word == "," and "SEMICOLON" in found.expected:
        return Mistake(f"unexpected ','; {told}", found.span, hint)
    return found.arrow(told, hint)


_OPERATOR = r"(?:==|!=|<>|<=|>=|=|<|>|\bIN\b|\bLIKE\b|\bBETWEEN\b|\bIS\b)"
_MEMBER_AHEAD = re.compile(
    rf"\.\s*(?P<attribute>\w+)\s*(?P<rest>{_OPERATOR}\s*(?P<other>[^\W\d]\w*\s*[.\[])?)", re.IGNORECASE
)


def _between_events(found: d.Unexpected) -> Mistake | None:
    """``b[price > a.price]``, ``a.price < b.price`` and the like."""
    word, expected = found.word, found.expected
    if "AND" in expected and "RSQB" in expected and word in (".", "["):
        relates = True
    elif word == "." and "LSQB" in expected:
        ahead = _MEMBER_AHEAD.match(found.text, found.span.start)
        relates = ahead is not None and bool(ahead["other"])
    else:
        relates = "FILTER" in expected and _is_operator(word) and found.text[: found.span.start].rstrip().endswith("]")
        relates = relates and "COMMA" not in expected  # behind a key of PARTITION BY
    return Mistake("CEQL has no conditions between events", found.span, RELATES) if relates else None


def _is_operator(word: str) -> bool:
    return re.fullmatch(_OPERATOR, word, re.IGNORECASE) is not None


#: Characters of a text in which conditions in WHERE are looked for.
_LOOKED_AT = 10_000

_IN_WHERE = re.compile(r"\bWHERE\s+(?P<formula>.*)\Z", re.IGNORECASE | re.DOTALL)
_COMPARED = re.compile(
    rf"(?:\w+\.)?(?<!\w)(?P<name>[^\W\d]\w*)\s*(?:\[\s*(?P<inside>\w+)\s*)?(?P<sign>{_OPERATOR}|\bNOT\b)\s*(?P<value>'[^'\n]*'|-?\d[\d.]*)?",
    re.IGNORECASE,
)


def _conditions_in_where(found: d.Unexpected) -> Mistake | None:
    """``WHERE event = 'X'``, ``WHERE (A ; B) AND a.x > 5``: conditions in the place of the formula."""
    text, span, expected = found.text, found.span, found.expected
    before = _IN_WHERE.search(text[: span.start]) if span.start < _LOOKED_AT else None
    if before is None or re.search(
        r"\b(?:FILTER|PARTITION|WITHIN|CONSUME|LIMIT|KEEP)\b", before["formula"], re.IGNORECASE
    ):
        return None
    told = "WHERE is a formula over types of events, such as A AS a ; B AS b; conditions on their attributes stand in FILTER"
    if found.word.upper() == "AND" and "SEMICOLON" in expected:
        return Mistake(told, span, "write WHERE A AS a ; B AS b FILTER a[price > 5] AND b[price < 3]")
    # What stands before may have been read as a type, or as a stream and a '>', or as a variable called LIKE.
    begin = before.start("formula")
    compared = next(
        (
            one
            for one in _COMPARED.finditer(text, max(begin, span.start - 100), span.start + 300)
            if one.start() <= span.start < one.end() + 1
        ),
        None,
    )
    if compared is None or not expected & {"SEMICOLON", "NAME", "LSQB"}:
        return None
    name, value = compared["inside"] or compared["name"], compared["value"] or "…"
    sign = compared["sign"].upper()
    asked = f"{name} {sign} {value}"
    hint = f"write WHERE A AS a FILTER a[{asked}]"
    if compared["inside"]:
        hint = f"write WHERE A AS {compared['name']} FILTER {compared['name']}[{asked}]"
    elif sign in ("=", "==") and re.fullmatch(r"'[^\W\d]\w*'", value):
        hint += f"; or WHERE {value[1:-1]}, if the column '{name}' tells the types of events (type='{name}')"
    return Mistake(told, Span(compared.start("sign"), compared.end("sign")), hint)


_NAME_BEFORE = re.compile(r"(?P<name>[^\W\d]\w*)\s*(?P<sign>>?)\s*\Z")
_VALUE = re.compile(r"\s*(?P<value>'[^'\n]*'|-?\d[\d.]*)")


def _without_brackets(found: d.Unexpected) -> Mistake | None:
    """``FILTER v > 2``, ``FILTER v.price > 2``: a condition that does not stand in brackets."""
    text, span, word, expected = found.text, found.span, found.word, found.expected
    before = found.before(_NAME_BEFORE)
    if before is None:
        return None
    name, attribute, sign, at = before["name"], "price", word, span.end
    if before["sign"] and expected and set(expected) <= {"NAME", "QUOTED"}:
        # A '>' may stand between a stream and a type, so that what follows it is what the parser could not take.
        equal = word == "="
        sign, at = ">=" if equal else ">", span.end if equal else span.start
        span = found.place(before, "sign") | span
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
    elif not _is_operator(word):
        return None
    value = _VALUE.match(text, at)
    asked = f"{sign} {value['value'] if value else '…'}"
    hint = f"write FILTER variable[attribute {asked}]: {name}[{attribute} {asked}]"
    return Mistake("a condition stands in brackets after its variable", span, hint)


def _keyword_hint(found: d.Unexpected) -> str | None:
    """What to say about a word that looks like a keyword, or is one."""
    word, expected = found.word, found.expected
    is_keyword, after_select = word.upper() in _KEYWORDS, "STRATEGY" in expected
    if is_keyword and after_select:
        return "SELECT * reports every variable, SELECT NONE reports none"
    instead = "; as a name it is written `{}`" if expected & {"NAME", "ATTRIBUTE"} else None
    hint = found.keyword(_KEYWORDS, instead, _STRATEGIES if after_select else ())
    return (
        f"write [{word}]"
        if hint is None and expected - {"KEYED"} == {"LSQB"} and word.isidentifier() and not is_keyword
        else hint
    )


_GROUPED = re.compile(r"\bby\s+(?:[^,]*,\s*)*(?P<word>\w+)\s*\Z", re.IGNORECASE)


def _asking_hint(found: d.Unexpected) -> str | None:
    """What to say about values of counts, sums, groups and scores that are written otherwise."""
    if found.word == "." and {"LSQB", "RPAR"} <= found.expected:
        return "an attribute stands in brackets: SUM(b[volume])"
    if {"FUNCTION", "NUMBER"} <= found.expected:
        return "scores are made of SUM and COUNT: ORDER BY SUM(b[volume]) DESC"
    grouped = found.before(_GROUPED) if found.expected == {"LSQB"} else None
    return f"[{grouped['word']}] for a key, a[{grouped['word']}] for an attribute of a variable" if grouped else None


_FORMULA_SIGNS = {";", ":", "+", ":+"}


def _sign_hint(found: d.Unexpected) -> str | None:
    """What to say about a sign that some bracket keeps out."""
    expected = found.expected
    if found.word in _FORMULA_SIGNS and "AND" in expected and "COMPARE" not in expected and "SLASH" not in expected:
        return "FILTER takes everything to its left; put it in parentheses: (A FILTER A[p]); B"
    return found.hint()
