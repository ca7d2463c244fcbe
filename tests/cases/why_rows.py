"""Why random clauses of MATCH_RECOGNIZE have no match: what an answer names, judged by the definition.

Without what it names the clause has a match, and without fewer it has none.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
import pytest

from stretto.asking.call import rows_of, why_not
from stretto.asking.constraints import Constraint
from stretto.asking.row_events import RowTrial
from stretto.asking.rows import RowsChain
from stretto.asking.search import Search
from stretto.errors import LimitError, QueryError
from stretto.query import predicate as p
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import MatchNumber, Measure, RowQuery, RowsPerMatch
from stretto.reference.match_recognize import evaluate
from tests.cases.rows import MOST_STEPS, Case
from tests.cases.rows import case as of_rows

__all__ = ["case", "check"]


def case(seed: int) -> Case:
    """A case from a seed, over few rows, so that many have no match.

    >>> case(7).rows.num_rows <= 6
    True
    """
    one = of_rows(seed, windows=False)
    return replace(one, rows=one.rows.slice(0, seed % 7))


def found(parsed: RowQuery | None, rows: pa.Table) -> bool:
    """Whether a clause has a match, by the definition."""
    if parsed is None:
        return False
    number = MatchNumber()
    measure = Measure(p.Attribute(str(number)), "match")
    asked = replace(
        parsed, measures=(measure,), rows=RowsPerMatch.ONE, references={**parsed.references, str(number): number}
    )
    return evaluate(bind(asked, rows.schema), rows, most_steps=MOST_STEPS).num_rows > 0


def check(one: Case, seed: int = 0) -> int:
    """Raise an AssertionError unless the answer is right; how many reasons the nearest miss has."""
    try:
        parsed, rows = rows_of(one.clause, one.rows, None, None)
    except QueryError as error:
        with pytest.raises(QueryError, match=re.escape(error.message)):
            why_not(one.clause, one.rows)
        return 0
    answer = why_not(one.clause, one.rows)
    chains = list(RowsChain.of(parsed))
    try:
        there = any(found(chain.relaxed(len(chain.steps), ()), one.rows) for chain in chains)
        assert answer.matches == there, (seed, one, str(answer), there)
        if there:
            return 0
        assert answer.misses, (seed, one)
        for chain in chains:
            for way in Search(chain, RowTrial(rows)).ways():
                _judge(chain, way.reached, way.dropped, one, seed)
    except LimitError:  # the definition takes too long
        return 0
    return len(answer.reasons)


def _judge(chain: RowsChain, reached: int, dropped: tuple[Constraint, ...], one: Case, seed: int) -> None:
    """A smallest set of constraints without which there is a match, or a step for which no row comes."""
    told = f"seed {seed}: {one!r}\nreached {reached} of {len(chain.steps)}, dropped {[each.text for each in dropped]}"

    def matches(steps: int, without: Collection[Constraint]) -> bool:
        return found(chain.relaxed(steps, without), one.rows)

    if reached < len(chain.steps):
        assert not matches(len(chain.steps), chain.constraints), told
        assert not reached or matches(reached, dropped), told
        return
    assert dropped, told
    assert matches(reached, dropped), told
    for each in dropped:
        assert not matches(reached, [other for other in dropped if other is not each]), (told, each)
