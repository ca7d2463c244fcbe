"""The backtrack algorithm against the NFAb engine: the same matches, all of them and non-overlapping ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import stretto
from benchmarks.papers.sase.backtrack.engine import Backtrack
from stretto.engines.api import Matches
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.programs import NfabProgram
from stretto.errors import DataError, OptionError
from stretto.query.sase import Selection
from tests.cases import sase
from tests.cases.sase import SaseCase
from tests.cases.sase.engines import found_by, rows
from tests.conftest import cases, size
from tests.java_stocks import java_stocks

SEEDS = cases(2000, compiled=100)


def program_of(text: str, table: pa.Table) -> NfabProgram:
    bound = stretto.compile(text, table.schema, time="ts").bound
    return NfabProgram(bound, merges=False)


def checked(case: SaseCase, seed: int) -> int | None:
    """How many matches both have; ``None`` where backtrack refuses the query."""
    program = NfabProgram(case.bound, merges=False)
    if why := Backtrack.why_not(program):
        with pytest.raises(OptionError, match=why):
            Backtrack(program)
        return None
    wanted = found_by(program, case, capacity=64, cuts=[])
    found = Backtrack(program, capacity=1 if seed % 2 else 64).match(case.events)
    got = rows([found], program, case.bound)
    assert sorted(got) == sorted(wanted), f"seed {seed}: {case}"
    assert [one[1] for one in got] == sorted(one[1] for one in wanted)
    return len(wanted)


def test_random_cases() -> None:
    counts: dict[bool, list[int]] = {True: [], False: []}  # by whether output is non-overlapping
    for seed in range(SEEDS):
        case = sase.case(seed)
        found = checked(case, seed)
        if found is not None:
            counts[case.query.non_overlap].append(found)
    assert len(counts[False]) > 0.3 * SEEDS
    assert SEEDS < 100 or len(counts[True]) > 0.03 * SEEDS
    for several in filter(None, counts.values()):
        assert sum(one > 0 for one in several) > 0.3 * len(several)


QUERY = """
PATTERN SEQ(stock+ a[], stock b, stock c)
WHERE {selection} {{ [symbol] and a[1].price % 500 = 0 and a[i].price > {aggregate}(a[..i-1].price)
    and b.volume < 150 and c.price > a[1].price and c.price < a[a.LEN].price }}
WITHIN 200
OUTPUT {output}
"""


@pytest.mark.parametrize("output", ["all", "non_overlap"])
@pytest.mark.parametrize("aggregate", ["min", "avg"])
@pytest.mark.parametrize("selection", [Selection.PARTITION, Selection.NEXT])
def test_stocks(selection: Selection, aggregate: str, output: str) -> None:
    """The query of the paper's experiment 4, which goes back far: events are read several times."""
    table = java_stocks(size(40_000, 4_000))
    program = program_of(QUERY.format(selection=selection, aggregate=aggregate, output=output), table)
    backtrack = Backtrack(program)
    found = backtrack.match(table)
    [batch] = table.to_batches()
    wanted = list(NfabRunner(program).advance(batch))
    assert as_set(found) == set().union(*map(as_set, wanted))
    assert found.start.size == sum(one.start.size for one in wanted) > 0
    assert (np.diff(found.end) >= 0).all()
    assert 0 < backtrack.backtracks < backtrack.read


def as_set(matches: Matches) -> set[bytes]:
    """Matches by their positions and the components of these."""
    pairs = zip(matches.offset, matches.offset[1:], strict=False)
    return {matches.position[a:b].tobytes() + matches.mark[a:b].tobytes() for a, b in pairs}


RISE = "PATTERN SEQ({}) WHERE skip_till_next_match {{ b.price > a.price }}"


def test_no_events() -> None:
    table = java_stocks(0)
    backtrack = Backtrack(program_of(RISE.format("stock a, stock b"), table))
    assert backtrack.match(table).start.size == 0
    assert backtrack.read == 0


def test_a_sum_that_leaves_64_bits() -> None:
    table = pa.table({"type": ["stock"] * 3, "ts": [1, 2, 3], "price": [2**62, 2**62, 1]})
    query = "PATTERN SEQ(stock+ a[]) WHERE skip_till_next_match { sum(a[..i].price) > 0 }"
    with pytest.raises(DataError, match="leaves 64 bits"):
        Backtrack(program_of(query, table)).match(table)


def test_what_it_refuses() -> None:
    table = java_stocks(1)
    with pytest.raises(OptionError, match="negated"):
        Backtrack(program_of(RISE.format("stock a, ~(stock n), stock b"), table))
    with pytest.raises(OptionError, match="LIMIT"):
        Backtrack(program_of(RISE.format("stock a, stock b") + " LIMIT 1", table))
