"""Syntax errors of Datalog in words."""

from __future__ import annotations

from dataclasses import replace

from lark import UnexpectedInput

from stretto.errors import Span
from stretto.languages.expressions import diagnostics as d
from stretto.languages.expressions.tokens import Mistake

_GROUPS = d.groups(
    ("a relation or a comparison", "NOT", "NAME VARIABLE NUMBER STRING TRUE FALSE MINUS LPAR"),
    ("a variable or a constant", "VARIABLE", "NAME NUMBER STRING TRUE FALSE MINUS LPAR"),
    ("a rule", "NAME", ""),
    *d.signs("IMPLIES LPAR"),
    ("a comparison", "COMPARE", "LESS MORE"),
    d.OPERATOR,
    d.SIGN,
    *d.signs("COMMA RPAR MORE LESS DOT"),
)

_ARROWS = ("=", "<-", "←", ":", "=>", "->", "⇐", ":=", "-", "<=", "<")


def explain(text: str, error: UnexpectedInput, what: str) -> Mistake:
    """Say in words what a parser's error means, with its place and a hint; ``what`` is what the text should be."""
    found = d.Unexpected.of(text, error, what)
    if text.startswith(":-", found.span.start):
        found = replace(found, span=Span(found.span.start, found.span.start + 2))
    return _unclosed(found) or found.mistake(_GROUPS, _hint(found))


def _unclosed(found: d.Unexpected) -> Mistake | None:
    """A string or a comment that runs on to the end."""
    mistake = found.unterminated()
    if mistake is None or found.text.startswith("/*", found.span.start - 1):
        return mistake
    if found.word == '"':
        return Mistake("a string that is not closed", mistake.span, mistake.hint)
    return mistake if found.word in ("'", "/") else None


def _hint(found: d.Unexpected) -> str | None:  # noqa: C901, PLR0911, PLR0912 - one mistake after the other
    text, span, expected = found.text, found.span, found.expected
    word = found.word
    before = text[: span.start].rstrip()
    if _is_modulo_comment(before):
        return "after a value '%' is the remainder: write the comment with -- or //"
    if "IMPLIES" in expected:
        return found.hint() or _after_head(word, expected)
    if before.endswith(("NOT", "Not")):
        return "write not with small letters"
    if "LPAR" in expected and word in (":-", ".", ",") and "DOT" not in expected:
        return f"a relation has one column or more: {_word_before(before)}(X)"
    if word == "<" and before.endswith("="):
        return "write <="
    if "DOT" in expected and (not word or word == ":-" or (word[0].isalpha() and text[span.end : span.end + 1] == "(")):
        return "a rule ends with a dot, and its goals are joined by commas"
    if word == ":-":
        return (
            "the rule before it ends with a dot"
            if before
            else "a rule begins with what it derives: reachable(X, Y) :- …"
        )
    if word in ("&", ";", "∧") or word.upper() in ("AND", "OR"):
        alternative = word == ";" or word.upper() == "OR"
        return "write a second rule with the same head" if alternative else "goals are joined by commas"
    if word == "[":
        return "there are no lists: what a row carries stands in columns"
    if word in ("≠", "≤", "≥", "\\", "~"):
        return {"≠": "write !=", "≤": "write <=", "≥": "write >="}.get(word, "write !=, or 'not' before a relation")
    if word == "." and "NUMBER" in expected and text[span.end : span.end + 1].isdigit():
        return "write a zero before the point"
    if word == "." and before.endswith(","):
        return "after the last goal there is no comma"
    if word == ")" and before.endswith("("):
        return "a relation has one column or more"
    if word[:1].isupper() and "NAME" in expected and "VARIABLE" not in expected:
        return f"relations and functions begin with a small letter: {word[0].lower()}{word[1:]}"
    if word == "(" and _word_before(before)[:1].isupper():
        name = _word_before(before)
        return f"relations and functions begin with a small letter: {name[0].lower()}{name[1:]}"
    if word in ("=", "<", ">", "<=", ">=", "!=", "==") and "DOT" in expected:
        return "comparisons do not chain; write two, with a comma"
    return found.hint()


def _after_head(word: str, expected: frozenset[str]) -> str | None:
    if word in _ARROWS:
        return "write :- between the head and the body"
    return "a rule is written head :- body. and a fact head." if "DOT" in expected else None


def _is_modulo_comment(before: str) -> bool:
    """Whether a '%' that was read as the remainder stands earlier in the same line, after a blank."""
    line = before[before.rfind("\n") + 1 :]
    at = line.rfind("%")
    return at > 0 and line[at - 1].isspace()


def _word_before(before: str) -> str:
    start = len(before)
    while start and (before[start - 1].isalnum() or before[start - 1] == "_"):
        start -= 1
    return before[start:]
