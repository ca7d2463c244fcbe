"""The sides that are measured, each as a function that reads all events and counts what it finds, and their profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

import stretto
from benchmarks.papers.sase.backtrack.engine import Backtrack
from stretto.engines.api import Matches
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.nfab.structure import LIVE, MERGED
from stretto.engines.programs import NfabProgram

__all__ = ["SILENT", "Profile", "Side", "profile", "sides"]

#: Matches and the sum of their lengths; ``None`` where construction is off.
Side = Callable[[], tuple[int, int] | None]

SILENT = " silent"  #: at the end of a side's name: construction is off

CHUNK = 1 << 16  #: events of a batch, as in ``stretto.match``
SAMPLE = 64  #: events between two looks at a profile


def sides(text: str, table: pa.Table) -> dict[str, Side]:
    """What runs a query: the library's door, Arrow to Arrow, and the engines below it, whose matches are arrays.

    Queries are compiled before. Merging and silent runs are left out where output is non-overlapping, which does without.
    """
    query = stretto.compile(text, table.schema, time="ts")
    basic, merged = NfabProgram(query.bound, merges=False), NfabProgram(query.bound, merges=True)
    batches = table.select(list(query.bound.tested)).to_batches(max_chunksize=CHUNK)
    backtrack = Backtrack(basic, labels=False)
    found: dict[str, Side] = {
        "stretto": lambda: _through_the_door(query, table),
        "basic": lambda: _through(basic, batches),
        "backtrack": lambda: _size(backtrack.pieces(table)),
    }
    if merged.merges:
        found |= {
            "merged": lambda: _through(merged, batches),
            "basic" + SILENT: lambda: _silently(basic, batches),
            "merged" + SILENT: lambda: _silently(merged, batches),
        }
    return found


def _through_the_door(query: stretto.Query, table: pa.Table) -> tuple[int, int]:
    matches = cells = 0
    for piece in stretto.iter_matches(query, table, output="positions"):
        matches += piece.num_rows
        cells += pc.sum(pc.list_value_length(piece["positions"])).as_py() or 0
    return matches, cells


def _through(program: NfabProgram, batches: list[pa.RecordBatch]) -> tuple[int, int]:
    runner = NfabRunner(program, labels=False)
    return _size(matches for batch in batches for matches in runner.advance(batch))


def _silently(program: NfabProgram, batches: list[pa.RecordBatch]) -> None:
    runner = NfabRunner(program, labels=False)
    for batch in batches:
        for _ in runner.advance(batch, silent=True):
            raise AssertionError("a silent run gives no matches")


def _size(found: Iterable[Matches]) -> tuple[int, int]:
    matches = cells = 0
    for one in found:
        matches += one.start.size
        cells += int(one.offset[-1])
    return matches, cells


@dataclass
class Profile:
    """What one engine did on a stream, beside the time that it took."""

    #: Active runs after an event, in all partitions, on average.
    live: float = 0.0
    #: Runs that became part of another.
    merged: int = 0
    #: Nodes of the match buffer that were made, for an event.
    nodes: float = 0.0


@dataclass
class Profiles:
    """Profiles by engine; ``read`` says how often backtrack reads an event, ``returns`` to how many runs it goes back."""

    engines: dict[str, Profile] = field(default_factory=dict)
    read: float = 0.0
    returns: int = 0


def profile(text: str, table: pa.Table) -> Profiles:
    """The profile of each engine: a look every few events."""
    bound = stretto.compile(text, table.schema, time="ts").bound
    basic = NfabProgram(bound, merges=False)
    found = Profiles()
    for name, program in (("basic", basic), ("merged", NfabProgram(bound, merges=True))):
        if name == "basic" or program.merges:
            found.engines[name] = _watched(program, table)
    backtrack = Backtrack(basic, labels=False)
    for _ in backtrack.pieces(table):
        pass
    found.read, found.returns = backtrack.read / table.num_rows, backtrack.backtracks
    return found


def _watched(program: NfabProgram, table: pa.Table) -> Profile:
    runner = NfabRunner(program, labels=False, capacity=CHUNK)
    live = nodes = looks = steps = before = 0
    for batch in table.select(list(program.query.tested)).to_batches(max_chunksize=SAMPLE):
        # What is put out decides about later runs where matches must not overlap, and only there.
        for _ in runner.advance(batch, silent=not program.machine.single):
            pass
        live += int(runner.state.registers[LIVE])
        looks += 1
        if runner.nodes >= before:  # else the buffer was collected meanwhile
            nodes += runner.nodes - before
            steps += batch.num_rows
        before = runner.nodes
    return Profile(live / max(1, looks), int(runner.state.registers[MERGED]), nodes / max(1, steps))
