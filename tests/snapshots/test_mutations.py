"""Snapshots with another number in them and the right checksum are refused or go on; ``make test-mutations`` tries many."""

from __future__ import annotations

import random

import pytest

import stretto
from stretto.frame import Section
from tests.snapshots.mutations import KINDS, run

#: Kinds of all ways to restore that take no time; the process that restores may die.
FEW = ("matcher-window", "matcher-keyed", "automaton")


@pytest.mark.parametrize("name", FEW)
def test_another_number_is_refused_or_goes_on(name: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    outcome = run(name, 40, seed)
    assert not outcome.faults, f"seed {seed}: {outcome.faults}"
    assert outcome.counts.total() == 40


@pytest.mark.parametrize("name", ["matcher-window", "matcher-trend", "matcher-gaps", "matcher-totals", "clause"])
def test_an_index_out_of_its_array_is_refused(name: str) -> None:
    """Of each engine, the array that leads from one part of the state to another."""
    array = {
        "matcher-window": "nodes.left",
        "matcher-trend": "nodes.previous",
        "matcher-gaps": "nodes.older",
        "matcher-totals": "records",
        "clause": "run.row.after",
    }[name]
    kind = KINDS[name]
    section = Section.of_bytes(kind.state())
    changed = section.arrays[array].copy()
    changed[0] = 1 << 40
    section.arrays[array] = changed
    with pytest.raises(stretto.SnapshotError, match="damaged"):
        kind.restored(section.to_bytes())
