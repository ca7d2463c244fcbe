"""What the patterns of a set hold, counted by pattern and by columns of events: the table of ``PatternSet.held``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.matching.inspection.state_tables import counted, plain
from stretto.matching.output.match_table import History
from stretto.matching.pattern_set.versions import Version

#: The column that names patterns.
PATTERN = "pattern"


def held_by(
    versions: Sequence[Version],
    history: History,
    kinds: Mapping[str, pa.DataType],
    time: str,
    by: Sequence[str],
    name: str,
) -> pa.Table:
    """How many events partial matches may hold, by columns, the most first, and the time of the oldest.

    Parameters
    ----------
    versions
        The patterns in force. An event that several may hold counts for each; by columns without ``name``, once.
    history, kinds, time
        The events, their columns with the types, and that of times.
    by, name
        The columns; ``name`` is that of the patterns' ids.
    """
    own = [_positions(version) for version in versions]
    number = np.repeat(np.arange(len(own)), [one.size for one in own])
    positions = np.concatenate([np.zeros(0, np.int64), *own])
    if name not in by:
        positions = np.unique(positions)
    columns = {one: _column(history, one, kinds[one], positions) for one in dict.fromkeys([*by, time]) if one != name}
    if name in by:
        ids = pa.array([version.id for version in versions], pa.string())
        columns[name] = ids.take(pa.array(number))
    return counted(plain(pa.table(columns)), by, "events", {time: "oldest"})


def _positions(version: Version) -> NDArray[np.int64]:
    if version.own is not None:
        return version.own.live()
    return np.zeros(0, np.int64) if version.joint is None else version.joint.held_by(version.slot)


def _column(history: History, name: str, kind: pa.DataType, positions: NDArray[np.int64]) -> pa.Array | pa.ChunkedArray:
    known, table = history.joined()
    if name not in table.column_names:  # nothing is kept that has it
        return pa.nulls(positions.size, kind)
    return table.column(name).take(pa.array(np.searchsorted(known, positions)))
