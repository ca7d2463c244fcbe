"""Snapshots with the right checksum and an index out of its array are refused; ``make test-mutations`` tries many other changes."""

from __future__ import annotations

import pytest

import stretto
from stretto.frame import Section
from tests.snapshots.mutations import KINDS


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
