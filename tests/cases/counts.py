"""How far random queries of CEQL, SASE+ and EQL get: the events that complete each step, counted by the definitions.

The cases are those of ``why.py``.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from stretto.asking.counts import StepCounts, explain
from stretto.asking.trying import Number
from stretto.errors import QueryError
from stretto.events import Schema
from stretto.matching.compiled import bound_apart, compile_query
from stretto.query.constraints.model import AnyParsed, Kind
from stretto.query.constraints.of_query import chains_of
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.passes.bind_sase import BoundSase
from tests.cases.why import Case, case
from tests.reference.ceql import evaluate
from tests.reference.eql import evaluate_eql
from tests.reference.sase import evaluate_sase

__all__ = ["Case", "case", "check"]


def check(one: Case, seed: int = 0) -> int:
    """Raise an AssertionError unless the numbers are right; how many events complete the steps."""
    query = compile_query(one.query, one.events.schema, language=one.language, **one.roles)
    try:
        query.program(split=True)
    except QueryError:
        with pytest.raises(QueryError):
            explain(query, one.events)
        return 0
    found = explain(query, one.events)
    assert str(found).startswith(query.explain()), one
    assert isinstance(found.counts, StepCounts)
    counted = iter(found.counts.steps)
    schema, total = query.bound.schema, 0
    for chain in chains_of(query.bound.parsed):
        for steps in range(1, len(chain.steps) + 1):
            given = next(counted)
            windows = [each for each in chain.constraints if each.kind in (Kind.WINDOW, Kind.GAP)]
            told = f"{one!r}\nstep {steps}: {given}"
            for number, parsed in (
                (given.within, chain.relaxed(steps, ())),
                (given.reached, chain.relaxed(steps, windows)),
                (given.alone, chain.alone(steps)),
            ):
                expected = _ends(parsed, schema, one.events)
                assert _agrees(number, expected), (told, number, expected)
            total += given.within.value if given.within is not None else 0
    assert next(counted, None) is None
    return total


def _agrees(number: Number | None, expected: int | None) -> bool:
    """Whether a number is what there is; where a number may be greater, whether it is no more."""
    if number is None or expected is None or number.exact:
        return (None if number is None else number.value) == expected
    return 0 < number.value <= expected or number.value == expected == 0


def _ends(parsed: AnyParsed | None, schema: Schema, events: pa.Table) -> int | None:
    """How many events complete a match of a query, by the definition, which has no LIMIT."""
    if parsed is None:
        return None
    try:
        query = bound_apart(replace(parsed, limit=None), schema)
        query.program(split=True)
    except QueryError:
        return None
    bound = query.bound
    if isinstance(bound, BoundEql):
        return len({max(one.positions) for one in evaluate_eql(bound, events)})
    if isinstance(bound, BoundSase):
        return len({one.end for one in evaluate_sase(bound, events)})
    assert isinstance(bound, BoundQuery)
    return len({one.end for one in evaluate(bound, events)})
