"""SASE+ on the AFA against the NFAb engine on random cases, in order and disordered.

``python -m tests.sase_afa_checks 0 100000`` checks a range of seeds at a desk, prints those that fail, and counts what is refused.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.automata.afa import Afa
from stretto.automata.reference_afa import Event, outputs
from stretto.automata.sase_afa import sase_afa
from stretto.disordered import AfaMatcher
from stretto.engines.afa.structure import SIGN
from stretto.engines.nfab.program import NfabProgram
from stretto.errors import StrettoError
from stretto.events import Schema
from stretto.pattern.query import Window
from tests.sase_cases import SaseCase, sase_case, text_of
from tests.sase_checks import found_by

__all__ = ["Found", "afa_of", "check", "disordered_case", "sase_afa_case"]

#: A match: the positions of each variable.
Found = tuple[tuple[str, tuple[int, ...]], ...]


def sase_afa_case(seed: int) -> SaseCase:
    """A random case, over the time ``t``, without what no disordered stream has: LIMIT, non-overlap, other windows."""
    case = sase_case(seed)
    window = case.query.window
    if window is not None:
        size = window.events or window.number or window.seconds
        window = Window(number=int(size or 0), attribute=random.Random(seed).choice([None, "t"]))
    query = replace(case.query, window=window, limit=None, non_overlap=False)
    query = replace(query, text=text_of(query))
    return SaseCase(query, Schema.of(case.events, time="t"), case.events)


def afa_of(case: SaseCase) -> Afa | None:
    """The automaton; ``None``: it is refused."""
    try:
        return sase_afa(case.bound)
    except StrettoError:
        return None


def wanted(case: SaseCase) -> Counter[Found]:
    """What the NFAb engine finds in the stream in order."""
    found = found_by(NfabProgram(case.bound), case, capacity=64, cuts=[])
    return Counter(bindings for _, _, bindings in found)


def in_order(afa: Afa, case: SaseCase, capacity: int) -> Counter[Found]:
    """What the AFA finds in the stream in order."""
    table = case.events.append_column("#", pa.array(range(case.events.num_rows)))
    matcher = AfaMatcher(afa, table.schema, time="t", sequence="#", ordered=True, capacity=capacity)
    matcher.push_only(table) if hasattr(matcher, "push_only") else _feed(matcher, table)
    return taken(matcher, case, np.arange(table.num_rows))


def _feed(matcher: AfaMatcher, table: pa.Table) -> None:
    """Rows into a matcher, whose output is left where it is."""
    kinds = list(matcher._kinds)
    for batch in table.select(kinds).combine_chunks().to_batches():
        matcher._runner.push(batch)


def taken(matcher: AfaMatcher, case: SaseCase, row_of: Any) -> Counter[Found]:
    """The output of a matcher: insertions minus retractions. ``row_of``: by arrival row the row of the case."""
    names = [one.variable for one in case.bound.parsed.positive]
    total: Counter[Found] = Counter()
    if not matcher._runner.has_output:
        return total
    rows, positions, labels = matcher._runner.take()
    for sign, events, marks in zip(rows[:, SIGN], positions.to_pylist(), labels.to_pylist(), strict=True):
        bindings = tuple(
            (name, tuple(int(row_of[row]) for row, mark in zip(events, marks, strict=True) if mark == at))
            for at, name in enumerate(names)
        )
        total[bindings] += int(sign)
        assert total[bindings] in (0, 1)
    return +total


def by_definition(afa: Afa, case: SaseCase) -> int:
    """How many (first, last, register) the reference evaluator of AFAs finds: it does not tell selected events apart."""
    keys = afa.partition_by
    events = [
        Event(
            row, tuple(payload[name] for name in keys), payload["t"], payload, row,
            None if afa.window is None else payload["t"] + afa.window,
        )
        for row, payload in enumerate(case.events.select(list(afa.events)).to_pylist())
    ]  # fmt: skip
    return len({(one.first, one.last) for one in outputs(afa, events)})


def check(seed: int) -> int:
    """Raise an AssertionError unless the engines agree on a case; how many matches it has, −1 where it is refused."""
    case = sase_afa_case(seed)
    afa = afa_of(case)
    if afa is None:
        return -1
    expected = wanted(case)
    shown = f"seed {seed}:\n{case.query.text}\n{case.events.to_pylist()}"
    found = in_order(afa, case, random.Random(seed).choice([1, 64]))
    assert found == expected, f"{shown}\nmissing {expected - found}\nwrong {found - expected}"
    if seed % 4 == 0:
        ends = {
            (min(row for _, own in one for row in own), max(row for _, own in one for row in own)) for one in expected
        }
        assert by_definition(afa, case) == len(ends), shown
    return sum(expected.values())


if __name__ == "__main__":
    first, last = int(sys.argv[1]), int(sys.argv[2])
    counts: Counter[str] = Counter()
    for number in range(first, last):
        try:
            matches = check(number)
            counts["refused" if matches < 0 else "agree"] += 1
            counts["matches"] += max(matches, 0)
        except Exception as error:
            counts["failed"] += 1
            if counts["failed"] <= int(sys.argv[3] if len(sys.argv) > 3 else 3):
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
                print(f"seed {number}: {error}", flush=True)
    print(dict(counts))
