"""Why random automata have no output: what an answer names, judged by the definition.

Without what it names the automaton has an output, and without fewer it has none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pytest

from stretto.asking.afa_events import AfaEvents, AfaTrial
from stretto.asking.call import why_not
from stretto.asking.search import Search
from stretto.errors import DataError, LimitError
from stretto.query.afa import Afa
from stretto.query.constraints.afa import AfaChain
from stretto.query.constraints.model import Constraint
from tests.cases import afa as of_afa
from tests.reference.afa import Event, Insert, outputs

__all__ = ["Case", "case", "check", "check_event"]


@dataclass(frozen=True)
class Case:
    """An automaton, and events in the order of time."""

    afa: Afa
    events: pa.Table

    def __repr__(self) -> str:
        rows = "\n  ".join(map(str, self.events.to_pylist()))
        return f"{self.afa}\n  {rows}"


def case(seed: int) -> Case:
    """A case from a seed, over few events, so that many have no output.

    >>> case(7).events.num_rows <= 5
    True
    """
    one = of_afa.case(seed)
    rows = sorted((step.row for step in one.steps if isinstance(step, Insert)), key=lambda row: row.le)[: seed % 6]
    keys = one.automaton.partition_by
    given = [{**row.payload, **dict(zip(keys, row.key, strict=True)), "time": row.le} for row in rows]
    schema = pa.schema({**one.automaton.schema, "time": pa.int64()})
    return Case(one.automaton.afa, pa.Table.from_pylist(given, schema))


def found(afa: Afa, events: pa.Table, event: int | None = None) -> bool:
    """Whether an automaton has an output, or one from before an event of its key to behind it, by the definition."""
    rows = read(afa, events)
    there = outputs(afa, rows)
    if event is None:
        return bool(there)
    return any(one.first <= event <= one.last and one.partition == rows[event].key for one in there)


def read(afa: Afa, events: pa.Table) -> list[Event]:
    """Events as the definition takes them."""
    window = afa.window
    assert window is None or isinstance(window, int)
    return [
        Event(
            at,
            tuple(row[name] for name in afa.partition_by),
            row["time"],
            row,
            re=None if window is None else row["time"] + window,
        )
        for at, row in enumerate(events.to_pylist())
    ]


def check_event(one: Case, seed: int = 0) -> bool:
    """Raise an AssertionError unless the answer about an event is right; whether it is in an output."""
    size = one.events.num_rows
    if not size:
        return False
    event = seed * 7 % size
    try:
        there = found(one.afa, one.events, event)
        answer = why_not(one.afa, one.events, time="time", event=event)
    except (DataError, LimitError):
        return False
    told = f"seed {seed}, event {event}: {one!r}\n{answer}"
    assert answer.matches == there, told
    if there:
        return True
    assert answer.misses, told
    trial = AfaTrial(AfaEvents.of(one.afa, one.events, "time", None, None), event)
    try:
        for chain in AfaChain.of(one.afa):
            for way in Search(chain, trial).ways():
                if way.reached == len(chain.steps):
                    assert found(chain.relaxed(way.reached, way.dropped), one.events, event), (told, way)
                    for each in way.dropped:
                        rest = [other for other in way.dropped if other is not each]
                        assert not found(chain.relaxed(way.reached, rest), one.events, event), (told, each)
    except (DataError, LimitError):  # where a fence is left out, a transfer may get what it does not take
        return False
    return False


def check(one: Case, seed: int = 0) -> int:
    """Raise an AssertionError unless the answer is right; how many reasons the nearest miss has."""
    try:
        there = found(one.afa, one.events)
    except DataError:
        with pytest.raises(DataError):
            why_not(one.afa, one.events, time="time")
        return 0
    except LimitError:
        return 0
    answer = why_not(one.afa, one.events, time="time")
    assert answer.matches == there, (seed, one, str(answer), there)
    if there:
        return 0
    assert answer.misses, (seed, one)
    trial = AfaTrial(AfaEvents.of(one.afa, one.events, "time", None, None))
    try:
        for chain in AfaChain.of(one.afa):
            for way in Search(chain, trial).ways():
                _judge(chain, way.reached, way.dropped, one, seed)
    except (DataError, LimitError):  # where a fence is left out, a transfer may get what it does not take
        return 0
    return len(answer.reasons)


def _judge(chain: AfaChain, reached: int, dropped: tuple[Constraint, ...], one: Case, seed: int) -> None:
    """A smallest set of constraints without which there is an output, or a state to which no event leads."""
    told = f"seed {seed}: {one!r}\nreached {reached} of {len(chain.steps)}, dropped {[each.text for each in dropped]}"

    def matches(steps: int, without: Collection[Constraint]) -> bool:
        return found(chain.relaxed(steps, without), one.events)

    if reached < len(chain.steps):
        assert not matches(reached + 1, chain.constraints), told
        assert not reached or matches(reached, dropped), told
        return
    assert dropped, told
    assert matches(reached, dropped), told
    for each in dropped:
        assert not matches(reached, [other for other in dropped if other is not each]), (told, each)
