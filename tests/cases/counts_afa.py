"""How far events get in random automata: those that lead to each state, and take each arc, counted by the definition.

The cases are those of ``why_afa.py``, with more events.
"""

from __future__ import annotations

import pytest

from stretto.asking.afa_counts import ArcCounts
from stretto.asking.counts import explain
from stretto.errors import DataError, LimitError
from stretto.query.afa import Kind, beginning
from tests.cases.why_afa import Case, case, read
from tests.reference.afa import followed

__all__ = ["Case", "case", "check"]


def check(one: Case, seed: int = 0) -> int:
    """Raise an AssertionError unless the numbers are right; how many events lead to states."""
    try:
        states, arcs = followed(one.afa, read(one.afa, one.events))
    except DataError:
        with pytest.raises(DataError):
            explain(one.afa, one.events, time="time")
        return 0
    except LimitError:
        return 0
    counts = explain(one.afa, one.events, time="time").counts
    assert isinstance(counts, ArcCounts)
    told = f"seed {seed}: {one!r}\n{counts}\n{states}\n{arcs}"
    counted = [name for name in one.afa.states if name not in beginning(one.afa)]
    assert {name: len(states.get(name, ())) for name in counted} == {
        name: number.value for name, number in counts.states.items()
    }, told
    taking = [arc.id for arc in one.afa.arcs if arc.kind is not Kind.EPSILON]
    assert {name: len(arcs.get(name, ())) for name in taking} == {
        name: number.value for name, number in counts.arcs.items()
    }, told
    assert all(number.exact for number in (*counts.states.values(), *counts.arcs.values())), told
    return sum(number.value for number in counts.states.values())
