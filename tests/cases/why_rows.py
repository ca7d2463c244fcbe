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
from stretto.asking.row_events import Rows, RowTrial
from stretto.asking.search import Search
from stretto.errors import DataError, LimitError, QueryError
from stretto.query import predicate as p
from stretto.query.constraints.model import Constraint
from stretto.query.constraints.row_pattern import RowsChain, as_written
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import MatchNumber, Measure, Navigation, RowQuery, RowsPerMatch, Side
from tests.cases.rows import MOST_STEPS, Case
from tests.cases.rows import case as of_rows
from tests.reference.match_recognize import evaluate

__all__ = ["case", "check", "check_event"]


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


def _holds(parsed: RowQuery | None, rows: pa.Table, event: int) -> bool:
    """Whether a match of a clause holds a row, by the definition."""
    if parsed is None:
        return False
    numbered = rows.append_column("#", pa.array(range(rows.num_rows), pa.int64()))
    ends = Navigation("", Side.FIRST, attribute="#"), Navigation("", Side.LAST, final=True, attribute="#")
    measures = tuple(Measure(p.Attribute(str(one)), name) for one, name in zip(ends, ("first", "last"), strict=True))
    asked = replace(
        parsed,
        measures=measures,
        rows=RowsPerMatch.ONE,
        references={**parsed.references, **{str(one): one for one in ends}},
    )
    bound = bind(asked, numbered.schema)
    own = Rows.of(bound, numbered, None).rows.tolist()
    found = evaluate(bound, numbered, most_steps=MOST_STEPS).select(["first", "last"]).to_pylist()
    spans = [(own.index(one["first"]), own.index(one["last"])) for one in found if one["first"] is not None]
    return any(first <= own.index(event) <= last for first, last in spans)


def _is_held(chain: RowsChain, dropped: Collection[Constraint], rows: pa.Table, event: int) -> bool:
    """Whether a match without some constraints holds a row, with repetitions as short as they can be, or as they are written."""
    relaxed = chain.relaxed(len(chain.steps), dropped)
    return relaxed is not None and any(
        _holds(each, rows, event) for each in (relaxed, as_written(relaxed, chain.parsed))
    )


def check_event(one: Case, seed: int = 0) -> bool:
    """Raise an AssertionError unless the answer about a row is right; whether it is in a match."""
    size = one.rows.num_rows
    try:
        parsed, rows = rows_of(one.clause, one.rows, None, None)
    except QueryError:
        return False
    if not size:
        return False
    event = seed * 7 % size
    try:
        there = _holds(parsed, one.rows, event)
        answer = why_not(one.clause, one.rows, event=event)
    except (DataError, LimitError):  # AFTER MATCH goes nowhere, or the definition takes too long
        return False
    told = f"seed {seed}, row {event}: {one!r}\n{answer}"
    try:
        assert answer.matches == there, told
        if answer.matches or answer.reasons[0].kind == "choice":
            return answer.matches
        assert answer.misses, told
        at = rows.rows.tolist().index(event)
        for chain in RowsChain.of(parsed):
            for way in Search(chain, RowTrial(rows, at)).ways():
                if way.reached == len(chain.steps):
                    assert _is_held(chain, way.dropped, one.rows, event), (told, way)
                    for each in way.dropped:
                        rest = [other for other in way.dropped if other is not each]
                        assert not _is_held(chain, rest, one.rows, event), (told, each)
    except LimitError:  # the definition takes too long
        return False
    return False


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
