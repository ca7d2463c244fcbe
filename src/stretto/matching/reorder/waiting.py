"""The buffer of a Cleanse: what waits, and in which order it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64, Bits
from stretto.errors import DataError
from stretto.frame import Section
from stretto.matching.reorder.annihilating import codes, first_rows, is_unclear, matched, one_by_one
from stretto.matching.reorder.columns import Columns
from stretto.matching.reorder.runs import Released, Run, ascends, concatenated, expanded, one_batch

#: Times as ticks, or real numbers.
Times = NDArray[Any]


class Buffer:
    """Events that wait, in runs of about twice the size of the next.

    Parameters
    ----------
    columns
        How events are read.
    strict
        Whether a retraction of the unknown is an error.
    """

    #: What a state says beside the runs, and how each is read.
    COUNTS: ClassVar[dict[str, Callable[[Section, str], Any]]] = {
        "released": Section.count,
        "annihilated": Section.count,
        "peak": Section.count,
        "revised": Section.flag,
    }

    def __init__(self, columns: Columns, *, strict: bool) -> None:
        self._columns, self._strict = columns, strict
        self.runs: list[Run] = []
        self.released = self.annihilated = self.peak = 0
        self.revised = False  # whether a buffered event has the row of another

    def saved(self) -> dict[str, Any]:
        """The state; runs never change."""
        return {name: getattr(self, name) for name in self.COUNTS} | {"runs": list(self.runs)}

    def go_back(self, saved: dict[str, Any]) -> None:
        """Go back to what :meth:`saved` gave, or a part of it."""
        for name, value in saved.items():
            setattr(self, name, value)

    @property
    def buffered(self) -> int:
        """How many events wait."""
        return sum(run.living for run in self.runs)

    def below(self, limit: Any) -> list[Run]:
        """What is below a limit, taken out of the buffer."""
        found, kept = [], []
        for run in self.runs:
            cut = int(np.searchsorted(run.time, limit, side="left"))
            if cut:
                part = (run if cut == run.size else run.part(0, cut)).plain()
                if part.size:
                    found.append(part)
            if cut < run.size:
                kept.append(run.part(cut, run.size).small() if cut else run)
        self.runs = kept
        return found

    def out(self, parts: list[Run], place: I64, *, by_place: bool) -> Released:
        """Parts in order of time, or of ``place`` before it."""
        run = Run(*concatenated(parts), parts[0].batch)
        table = pa.Table.from_batches([part.batch for part in parts])
        order = self.order(run, stable=not self.revised, place=place if place.size and by_place else None)
        rows = run.row
        if order is not None:
            table = table.combine_chunks().take(pa.array(order))
            rows = rows[order]
            place = place[order] if place.size else place
        self.released += rows.size
        if not self.runs:
            self.revised = False
        return Released(table, rows, place)

    def order(self, run: Run, *, stable: bool, place: I64 | None = None) -> I64 | None:
        """The order by (place, time, tie, row); ``None``: that is it already. ``stable``: equal ones are in order of rows."""
        stable &= not self.revised
        keys = [] if place is None else [place]
        keys.append(run.time)
        keys += [] if run.tie is None else [run.tie]
        keys += [] if stable else [run.row]
        if ascends(keys):
            return None
        if len(keys) == 1:
            return np.argsort(run.time, kind="stable")
        if place is None:
            order = np.argsort(run.time, kind="stable")
            found = run.time[order]
            if not (found[1:] == found[:-1]).any():
                return order
        return np.lexsort(keys[::-1])

    @property
    def waiting_rows(self) -> I64:
        """The rows of the events that wait, in any order."""
        return np.concatenate([run.row for run in self.runs] or [np.zeros(0, np.int64)])

    def wait(self, here: Run) -> None:
        """Events to the buffer: runs of about twice the size of the next, so that each event is merged O(log n) times."""
        order = self.order(here, stable=True)
        runs = self.runs
        runs.append(here if order is None else here.taken(order))
        while len(runs) > 1 and runs[-2].size < 2 * runs[-1].size:
            parts = [run for run in (runs[-2].plain(), runs[-1].plain()) if run.size]
            del runs[-2:]
            if not parts:
                break
            batch = one_batch(pa.Table.from_batches([part.batch for part in parts]))
            merged = Run(*concatenated(parts), batch)
            order = self.order(merged, stable=True)
            runs.append(merged if order is None else merged.taken(order))
        self.peak = max(self.peak, self.buffered)

    def let(self, here: Run, place: I64) -> Released:
        """Let all events through in the order in which they came."""
        self.released += here.size
        return Released(pa.Table.from_batches([here.batch]), here.row, place)

    def nothing(self) -> Released:
        """Let no event through."""
        none, schema = np.zeros(0, np.int64), self._columns.schema
        return Released(pa.table({}) if schema is None else schema.empty_table(), none, none)

    def joined(self, found: list[Released]) -> Released:
        """What several operations let through."""
        found = [one for one in found if one.rows.size]
        if not found:
            return self.nothing()
        if len(found) == 1:
            return found[0]
        return Released(
            pa.concat_tables([one.table for one in found]),
            np.concatenate([one.rows for one in found]),
            np.concatenate([one.places for one in found]),
        )

    def annihilate(self, here: Run, sign: I64, waits: Bits, passes: Bits, late: Bits) -> Run:
        """Retractions of events that wait take these away. Marks both in ``passes``, and retractions of the unknown in ``late``."""
        times = np.unique(here.time[waits & (sign < 0)])
        inside = np.flatnonzero(waits & np.isin(here.time, times))
        found = [expanded(run, times) for run in self.runs]
        older = one_batch(
            pa.Table.from_batches(
                [run.batch.take(pa.array(where)) for run, where in zip(self.runs, found, strict=True)],
                schema=self._columns.schema,
            )
        )
        waited = np.concatenate([run.row[where] for run, where in zip(self.runs, found, strict=True)] or [here.row[:0]])
        old = waited.size
        # The latest arrived of equals is meant, so that those that waited come in the order of their rows.
        by_row = np.argsort(waited, kind="stable")
        both = pa.Table.from_batches([older.take(pa.array(by_row)), here.batch.take(pa.array(inside))])
        signs = np.concatenate((np.ones(old, np.int64), sign[inside]))
        group = codes(both.select(self._columns.telling))
        match = matched(group, signs)
        rows = np.concatenate((waited[by_row], here.row[inside]))
        revises = self._columns.revisions(here, sign, inside) + old
        if is_unclear(group, signs, match, revises):
            match, rows = one_by_one(group, signs, rows, revises)
        else:
            rows = first_rows(rows, match, revises)
        unknown = (signs < 0) & (match < 0)
        if self._strict and unknown.any():
            at = int(inside[int(unknown.argmax()) - old])
            told = "time and payload" if self._columns.sequence is None else "time and sequence"
            raise DataError(
                f"row {here.row[at]} retracts an event that is not there: none that waits has its {told} "
                f"({self._columns.shown(here.time[at])})"
            )
        dead = np.zeros(signs.size, np.bool_)
        dead[match[match >= 0]] = True
        late[inside[unknown[old:]]] = True
        passes[inside[(signs < 0)[old:] | dead[old:]]] = False
        self.annihilated += 2 * int(np.count_nonzero(dead))
        row = here.row.copy()
        row[inside] = rows[old:]
        self.revised |= bool((row != here.row).any())
        lost = np.zeros(old, np.bool_)
        lost[by_row] = dead[:old]
        begin = 0
        for number, places in enumerate(found):
            gone = places[lost[begin : (begin := begin + places.size)]]
            if gone.size:
                run = self.runs[number]
                alive = np.ones(run.size, np.bool_) if run.alive is None else run.alive.copy()
                alive[gone] = False
                self.runs[number] = replace(run, alive=alive)
        self.runs = [run.plain() if 2 * run.living < run.size else run for run in self.runs if run.living]
        return replace(here, row=row)
