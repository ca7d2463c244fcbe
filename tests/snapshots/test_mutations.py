"""Snapshots with the right checksum and a number that cannot be are refused; ``make test-mutations`` tries many other changes."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest

import stretto
from stretto.frame import Section
from tests.snapshots.mutations import KINDS

FAR = 1 << 40

#: A kind, one of its arrays, a place in it, and a number that no such place has.
WORDS = [
    # An index that leads from one part of the state to another.
    ("matcher-window", "nodes.left", 0, FAR),
    ("matcher-trend", "nodes.previous", 0, FAR),
    ("matcher-gaps", "nodes.older", 0, FAR),
    ("matcher-totals", "records", 0, FAR),
    ("clause", "run.row.after", 0, FAR),
    # A position that the stream has not come to.
    ("matcher-window", "nodes.position", -1, FAR),
    ("matcher-gaps", "nodes.position", -1, FAR),
    ("matcher-trend", "nodes.position", -1, FAR),
    ("matcher-sequence", "positions", 0, FAR),
    ("matcher-sample", "samples.position", 0, FAR),
    ("matcher-join", "joined.position", 0, FAR),
    ("matcher-best", "choice.position", -1, FAR),
    ("matcher-late", "partial.log.position", -1, FAR),
    ("matcher-late-sase", "partial.nodes.position", -1, FAR),
    ("disordered", "arrivals", 0, -1),
    ("automaton", "events.fields", 3, FAR),
    # A mark that no event has: how much memory is taken goes by it.
    ("matcher-window", "nodes.marks", 0, (1 << 31) - 1),
    # Starts that are those of no child, with which a choice does not end.
    ("matcher-best", "nodes.start", -1, FAR),
    # A bottom of nodes with a second child.
    ("matcher-best", "nodes.right", 0, 1),
    # Panes that are far from the next window to close, which are gone through one by one.
    ("matcher-totals", "latest", 0, FAR),
    ("matcher-totals", "live", 0, FAR),
    # Times of a window that fall.
    ("matcher-window", "measured.values", 0, 1 << 62),
    # Lengths and counts.
    ("matcher-late-sase", "partial.firsts.length", 0, (1 << 31) - 1),
    ("clause", "run.part.came", 0, FAR),
    ("clause", "run.part.number", 0, -3),
    ("clause", "run.row.ordinal", 1, FAR),
    ("clause", "run.part.tip", 0, 2),
    ("automaton", "events.sizes", 0, FAR),
    # A partial match at the last event, whose list has it, is called open; and something that is neither yes nor no.
    ("automata-patterns", "run.open:|i1", -1, 1),
    ("automata-patterns", "run.open:|i1", 0, 24),
    # The time of an event that a partial match begins with is another one than the match has.
    ("automata-patterns", "run.events.fields:<i8", 36, 1704067223999999),
    # An event that a run has selected is called one that a negation keeps.
    ("matcher-absence", "nodes.label", 17, 2),
    # An event whose window ended before, which is cleaned while partial matches begin with it.
    ("automata-patterns", "run.events.fields:<i8", 74, 1048576),
    ("automata-patterns", "run.events.fields:<i8", 2, 1704067277999990),
    ("automaton", "events.fields", 2, -1),
    # An event that a partial match begins with is not among those that are kept.
    ("automata-patterns", "history.positions", 0, 35),
    # A child on the left that has left the window, which no collection leaves.
    ("matcher-best", "nodes.left", 3, 1),
    # A start of partial matches that no cell has: windows are closed up to it.
    ("matcher-totals", "records", 63, (1 << 63) - 1),
    # A row of the match so far, which a condition reads.
    ("clause", "run.row.registers", 28, FAR),
    ("clause", "run.row.registers", 24, FAR),
    ("reach", "1.operator.left", 3, -1),
    ("recognize", "1.operator.waiting", 2, 1 << 31),
    # More numbers of one pattern's run than there are, so that it has those of the next one; and a run that is not there.
    ("adding-patterns", "run.records:<i8:size", 1, 156),
    ("adding-patterns", "run.records:<i8:of", 2, 3),
    # A start of partial matches at an event that has not come, or after a later start.
    ("adding-patterns", "run.records:<i8", 63, FAR),
    ("matcher-totals-events", "records", 5, FAR),
    ("matcher-totals-events", "records", 4, 59),
]

#: The same of the header: a path to a value, and a value that it cannot have.
VALUES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("matcher-window", ("scalars", "late"), []),
    ("matcher-window", ("scalars", "rows"), 1.5),
    ("matcher-window", ("scalars", "swept_at"), None),
    ("matcher-window", ("scalars", "last_time"), float("nan")),
    ("matcher-window", ("kept",), -FAR),
    ("matcher-window", ("finished",), "x"),
    ("matcher-totals", ("scalars", "last_time"), "x"),
    ("matcher-late", ("scalars", "now"), []),
    ("clause", ("run", "late"), None),
    ("clause", ("run", "reached"), 1e308),
    ("cleanse", ("cleanse", "state", "_late"), [0]),
    ("cleanse", ("cleanse", "state", "_peak"), "x"),
    ("disordered", ("arrivals",), -1),
    ("automaton", ("arcs", 3, "when"), True),
    ("automaton", ("rows",), -1),
    ("automata-patterns", ("pending", 0, 1), 0),
    ("automata-patterns", ("pending", 0, 0), "x"),
    ("adding-patterns", ("active", 0, 3), True),
    ("adding-patterns", ("active", 0, 4), "x"),
    ("adding-patterns", ("counts", "late"), None),
    ("adding-patterns", ("counts", "visited"), 1.5),
    ("adding-patterns", ("finished",), 2),
    ("adding-patterns", ("last",), 1e300),
    ("adding-patterns", ("disabled",), {"all": 0}),
    # A place that only events have that a match to come may not name any more.
    ("adding-patterns", ("own", 1, "places", "first"), 16),
    ("reach", ("1", "definite"), []),
    ("reach", ("1", "turn"), True),
    ("reach", ("loop0", "earliest"), "x"),
    ("reach", ("counts",), [1]),
    ("reach", ("strings", 4), True),
    ("reach", ("strings", 1), "a"),
    ("recognize", ("input0", "definite"), None),
]


@pytest.mark.parametrize(("name", "array", "place", "number"), WORDS)
def test_a_number_that_cannot_be_is_refused(name: str, array: str, place: int, number: int) -> None:
    section = _section(name)
    changed = section.arrays[array].copy()
    assert changed[place] != number
    changed[place] = number
    section.arrays[array] = changed
    with pytest.raises(stretto.SnapshotError, match="damaged"):
        KINDS[name].restored(section.to_bytes(_magic(name)))


@pytest.mark.parametrize(("name", "path", "value"), VALUES)
def test_a_value_of_the_header_that_cannot_be_is_refused(name: str, path: tuple[Any, ...], value: Any) -> None:
    section = _section(name)
    above: Any = section.values
    for step in path[:-1]:
        above = above[step]
    assert above[path[-1]] != value
    above[path[-1]] = value
    with pytest.raises(stretto.SnapshotError, match="damaged"):
        KINDS[name].restored(section.to_bytes(_magic(name)))


def _section(name: str) -> Section:
    """The state of a kind, all of whose arrays and values stand at the top."""
    return Section.of_bytes(KINDS[name].state(), _magic(name))


def _magic(name: str) -> bytes:
    """What states of a kind begin with."""
    return KINDS[name].state()[:8]


def test_some_mutations_of_some_kinds() -> None:
    """Random changes of states of random kinds are refused, or what goes on from them works; a process of its own may die of one."""
    seed = random.randrange(1 << 30)
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.snapshots.mutations", "--some", "5", "--count", "8"]
    told = subprocess.run([*command, "--seed", str(seed)], capture_output=True, text=True, timeout=300, check=False)
    assert not told.returncode, f"seed {seed}\n{told.stdout}\n{told.stderr[-2000:]}"
