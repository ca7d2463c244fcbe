"""Which texts are clauses of row patterns, told before anything of their language is imported."""

from __future__ import annotations

import itertools

#: What their language is called.
LANGUAGES = ("sql", "match_recognize")


def has_clause(text: str) -> bool:
    """Whether a text looks like SQL with ``MATCH_RECOGNIZE``, be it closed and right or not.

    >>> has_clause("SELECT * FROM t MATCH_RECOGNIZE (PATTERN"), has_clause("SELECT * FROM S WHERE A FILTER A[x = 'WINDOW PATTERN (']")
    (True, False)
    """
    words = text.upper()
    if "MATCH_RECOGNIZE" not in words and "WINDOW" not in words:
        return False
    from stretto.languages.sql.tokens import tokens

    parts = tokens(text, whole=False)
    opened = [one for one, after in itertools.pairwise(parts) if after.says("(")]
    if any(one.says("MATCH_RECOGNIZE") for one in opened):
        return True
    window = next((one.start for one in parts if one.says("WINDOW")), len(text))
    return any(one.says("PATTERN") and one.start > window for one in opened)


def is_clause(query: object, language: str | None) -> bool:
    """Whether a query is a clause, or SQL around one: by its language or, where none is said, by its text."""
    return isinstance(query, str) and (language in LANGUAGES or (language is None and has_clause(query)))
