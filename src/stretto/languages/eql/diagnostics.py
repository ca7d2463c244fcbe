"""EQL's syntax errors in words."""

from __future__ import annotations

import re

from lark import UnexpectedInput

from stretto.languages.eql.transformer import AGGREGATES, KEYWORDS, OF_SEVERAL
from stretto.languages.expressions import diagnostics as d
from stretto.languages.expressions.tokens import Mistake

#: The keywords by their terminals; they are written in small letters.
_WORDS = "SEQUENCE SAMPLE JOIN ANY WHERE UNTIL BY WITH MAXSPAN RUNS OR AND NOT IN LIKE REGEX"


def _word(name: str) -> d.Row:
    return (f"'{name.lower()}'", name, "")


_GROUPS = d.groups(
    ("a comparison", "COMPARE", "SEARCH LIKE REGEX IN NOT"),
    ("an operator", "SLASH", "PLUS MINUS STAR PERCENT"),
    ("a value", "FIELD", "OF_EVENT FUNCTION NUMBER STRING TRIPLE RAW SINGLE TRUE FALSE NULL MINUS PLUS LPAR NOT"),
    ("a constant", "TRIPLE", "NUMBER STRING RAW SINGLE TRUE FALSE NULL LPAR"),
    ("an event category", "CATEGORY", "ANY QUOTED STRING"),
    ("a field", "FIELD", ""),
    ("a pipe (filter, head, sort, tail or unique)", "PIPE", ""),
    ("a time such as 5m", "TIME", "NUMBER"),
    d.NUMBER,
    ("'='", "ASSIGN", ""),
    ("'['", "LSQB", "MISSING"),
    *d.signs("BAR COMMA RSQB LPAR RPAR"),
    *map(_word, _WORDS.split()),
)


def explain(text: str, error: UnexpectedInput, what: str) -> Mistake:
    """Say in words what a parser's error means, with its place and a hint; ``what`` is what the text should be."""
    found = d.Unexpected.of(text, error, what)
    return _unterminated(found) or _arrow(found) or _distinct(found) or found.mistake(_GROUPS, _hint(found))


def _arrow(found: d.Unexpected) -> Mistake | None:
    """``[A where true] -> [B where true]``: a sequence of another language."""
    before = found.text[: found.span.start].rstrip(" |-=>")
    if not before.endswith("]"):
        return None
    return found.arrow("steps stand one after the other", "write sequence [A where true] [B where true]")


_DISTINCT = re.compile(r"(?<!\w)(?P<function>\w+)\s*\(\s*distinct\s*\Z", re.IGNORECASE)


def _distinct(found: d.Unexpected) -> Mistake | None:
    """``count(distinct x) > 3``: a condition on several events."""
    before = found.before(_DISTINCT)
    if before is None or before["function"].lower() not in AGGREGATES:
        return None
    return Mistake(f"EQL has no {before['function']}", found.place(before, "function"), OF_SEVERAL)


def _unterminated(found: d.Unexpected) -> Mistake | None:
    """Find a string that does not end on its line, or a text in three quotes that is not closed."""
    if found.text.startswith('"""', found.span.start):
        return Mistake("a string that is not closed", found.span, 'close it with """')
    if found.word in ('"', "'"):
        return Mistake("a string that is not closed on its line", found.span, f"close it with {found.word}")
    return found.unterminated()


#: Words and signs of other languages, and of older ones: what to write, where this could stand.
_FOREIGN = {
    "=": ("COMPARE", "write =="),
    "<>": ("COMPARE", "write !="),
    "is": ("COMPARE", "write == null, != null"),
    "between": ("COMPARE", "write x >= a and x <= b"),
    "&": ("AND", "write and"),
    "!": ("NOT", "write not"),
    "of": (
        "COMPARE",
        "Elasticsearch has no lineage of processes: a sequence joins process.entity_id with process.parent.entity_id",
    ),
    "fork": ("BY", "Elasticsearch has no fork"),
}


def _hint(found: d.Unexpected) -> str | None:
    word, expected = found.word, found.expected
    small = word.lower()
    if word != small and small in KEYWORDS and small.upper() in expected:
        return f"keywords are written in small letters: {small}"
    place, hint = _FOREIGN.get(small, ("", ""))
    if place in expected:
        return hint
    if "SLASH" in expected and found.text[found.span.start - 1].isdigit() and word.isalpha():
        return "a condition compares a field with a number of its own units; times such as 5m are for maxspan"
    if small == "with" and "MISSING" in expected and "WITH" not in expected:
        return "a sequence has a maxspan, and nothing else"
    if "WHERE" in expected and "COMPARE" not in expected:
        return "an event is written: category where condition; any where … takes every category"
    if small in KEYWORDS and "FIELD" in expected:
        return f"'{word}' is a keyword; a field of that name is written `{word}`"
    if word in ("==", "!=", "<", "<=", ">", ">=") and "AND" in expected:
        return "comparisons do not chain; join them with and"
    meant = d.did_you_mean(word, [one.lower() for one in _WORDS.split() if one in expected])
    return meant or found.hint()
