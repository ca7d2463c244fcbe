"""A batch before it is read: cut where changes hold, checked, and classified. All that can be wrong with it shows here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.columns.measured import values_of
from stretto.columns.overflow import IntegerOverflow
from stretto.columns.vectorized import mask
from stretto.engines.shared.intake import FALLS
from stretto.errors import DataError
from stretto.events import Schema, conform
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern
from stretto.matching.pattern_set.predicate_index import Visits
from stretto.matching.pattern_set.result_table import Results
from stretto.matching.pattern_set.shared_predicates import Told
from stretto.matching.pattern_set.versions import InForce, Stretch, Version

Numbers = NDArray[Any]


class Checked(NamedTuple):
    """A stretch of a batch, ready to be read."""

    in_force: InForce
    tested: pa.Table  #: the columns that patterns read
    kept: pa.Table  #: the columns that results show
    measures: dict[str, Numbers]  #: by attribute: times, and what windows measure
    reached: dict[Version, int | float]  #: the last value of a window's attribute other than the time
    told: Told  #: what the patterns' conditions say of every event

    def visits(self, first: int, stop: int) -> tuple[int, Visits]:
        """Which patterns that run together events concern: up to which event they were found, and what they are."""
        return self.in_force.conditions.visits(self.told.codes, first, stop, self.in_force.owners)


def checked(
    table: pa.Table, times: Numbers, stretches: Sequence[Stretch], first: int, schema: Schema, results: Results
) -> list[Checked]:
    """Check a batch whose times ascend.

    Parameters
    ----------
    table, times
        The events, and their times as the engine measures them.
    stretches
        Which patterns hold where.
    first
        The position of the first event.
    schema, results
        The events' columns, and what is shown of them.

    Raises
    ------
    DataError
        A column is missing or of another type, the attribute of a pattern's window decreases or is NULL, or arithmetic
        overflows; the message names the pattern.
    """
    assert schema.time is not None
    shown = [results.columns(in_force.conditions.used) for _, _, in_force in stretches]
    needed = {schema.time, *results.by}
    for stretch, columns in zip(stretches, shown, strict=True):
        needed.update(stretch.in_force.conditions.tested, columns)
    table = conform(table, [name for name in schema.attributes if name in needed], schema.attributes)
    last: dict[Version, int | float] = {}
    found = []
    for (low, high, in_force), columns in zip(stretches, shown, strict=True):
        part = table.slice(low, high - low)
        tested = part.select(list(in_force.conditions.tested)).combine_chunks()
        measures: dict[str, Numbers] = {schema.time: times[low:high]}
        for version in in_force.versions:
            if version.part.measures is not None:
                _measure(version, version.part.measures, tested, first + low, measures, last)
        reached = {version: last[version] for version in in_force.versions if version in last}
        told = _classified(in_force, tested, first + low)
        found.append(Checked(in_force, tested, part.select(list(columns)), measures, reached, told))
    return found


def _measure(
    version: Version,
    name: str,
    events: pa.Table,
    first: int,
    measures: dict[str, Numbers],
    last: dict[Version, int | float],
) -> None:
    """Check that the attribute which a pattern's window measures does not decrease."""
    if name not in measures:
        try:
            measures[name] = values_of(events.column(name), name, first)
        except DataError as error:
            raise DataError(f"pattern '{version.id}': {error}") from error
    rows = np.arange(events.num_rows)
    if version.part.source is not None:
        rows = np.flatnonzero(mask(version.part.source, events))
    if not rows.size:
        return
    values = measures[name][rows]
    start = last.get(version, version.measure)
    before = np.concatenate((values[:1] if start is None else np.array([start], values.dtype), values[:-1]))
    falls = values < before
    if falls.any():
        at = int(falls.argmax())
        raise DataError(
            f"pattern '{version.id}': '{name}' decreases from {before[at]} to {values[at]} at row {first + rows[at]}; {FALLS}"
        )
    last[version] = values[-1].item()


def _classified(in_force: InForce, events: pa.Table, first: int) -> Told:
    _ask_each(in_force, in_force.doubtful, events, first)
    try:
        told = in_force.conditions.classify(events)
        if not in_force.conditions.doubtful(told):
            return told
    except DataError as error:
        _ask_each(in_force, in_force.parts, events, first)
        raise error
    _ask_each(in_force, in_force.parts, events, first)
    return told


def _ask_each(in_force: InForce, parts: Iterable[CompiledPattern], events: pa.Table, first: int) -> None:
    """Let some patterns look at the events, each by itself: an error is about its own conditions then, in an event that it reads."""
    for part in parts:
        try:
            part.look(events)
        except DataError as error:
            own = (
                error.renumbered(range(first, first + events.num_rows)) if isinstance(error, IntegerOverflow) else error
            )
            names = quoted(version.id for version in in_force.versions if version.part is part)
            raise DataError(f"pattern {names}: {own}") from error


def quoted(names: Any) -> str:
    """Names as a message shows them."""
    return ", ".join(f"'{name}'" for name in names)
