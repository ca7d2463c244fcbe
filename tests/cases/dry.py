"""What is told of random queries of CEQL, SASE+ and EQL without a match, by the definitions: it keeps all matches away."""

from __future__ import annotations

import re

import pytest

from stretto.errors import QueryError
from stretto.matching.compiled import compile_query
from stretto.matching.empty_result.queries import ABSENT, findings
from stretto.query.algebra import Or, walk
from tests.cases.why import Case, case, matches

__all__ = ["Case", "case", "check"]


def check(one: Case, seed: int = 0) -> int:
    """Raise an AssertionError unless what is told is true of the events; how much it is."""
    query = compile_query(one.query, one.events.schema, language=one.language, **one.roles)
    try:
        query.program(split=True)
    except QueryError as error:
        with pytest.raises(QueryError, match=re.escape(error.message)):
            query.program(split=True)
        return 0
    # Of types it is told as well where the query does without them, as of conditions inside of alternatives.
    found = [text for text in findings(query, one.events) if not text.startswith(ABSENT)]
    chooses = any(isinstance(node, Or) for node in walk(query.bound.plan.formula))
    if found and not chooses:
        assert not matches(query, one.events), (one, found)
    return len(found)
