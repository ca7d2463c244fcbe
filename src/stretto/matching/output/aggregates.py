"""Counts and sums over all matches as columns of a result.

A row of an event has ``start`` and ``end`` (of the match that begins first, as a summary has them), ``start_time`` and ``end_time``
where a time is known; a row of a window ``window_start`` and ``window_end``, in the type of what windows measure. Then come the
columns of groups, and the items. Rows of windows, and those of a table, are in the order of the window and then of the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import I64
from stretto.columns.measured import as_measured, measured_type
from stretto.engines.api import Totals
from stretto.query.passes.bind_totals import BoundTotals, Panes
from stretto.query.totals import Extent


class TotalsLayout:
    """The columns of counts and sums.

    Parameters
    ----------
    totals
        What is asked.
    attributes
        The types of the events' columns.
    free
        Gives a name that no column has.
    """

    def __init__(self, totals: BoundTotals, attributes: Mapping[str, pa.DataType], free: Callable[[str], str]) -> None:
        self.totals = totals
        self.panes = totals.scope.panes
        self._measured = window_type(self.panes, attributes)
        names = ["window_start", "window_end"] if self.panes is not None else []
        self._windows = [pa.field(free(name), self._measured) for name in names]
        self._groups = [pa.field(free(one.name), one.type) for one in totals.scope.groups]
        self._items = [pa.field(free(one.name), one.type) for one in totals.items]

    @property
    def of_events(self) -> bool:
        """Whether rows are about events, so that they have places."""
        return self.totals.scope.extent is Extent.EVENT

    @property
    def fields(self) -> list[pa.Field]:
        """The columns behind those of places and times."""
        return [*self._windows, *self._groups, *self._items]

    def columns(self, found: Totals) -> list[pa.Array]:
        """The columns of rows, in the order in which they are asked for: :meth:`order` may say another one of the rows."""
        windows = []
        if found.window is not None:
            windows = window_columns(found.window, self.panes, self._measured)
        return [*windows, *found.groups, *found.items]

    def order(self, columns: Sequence[pa.Array]) -> pa.Array | None:
        """The order of rows by window and group; ``None``: as they are."""
        keys = len(self._windows[:1]) + len(self._groups)
        if self.of_events or not keys or len(columns[0]) < 2:
            return None
        chosen = [*columns[: len(self._windows)][:1], *columns[len(self._windows) :][: len(self._groups)]]
        table = pa.table([_sortable(one) for one in chosen], [str(k) for k in range(len(chosen))])
        return pc.sort_indices(table, [(name, "ascending") for name in table.column_names])


def window_type(panes: Panes | None, attributes: Mapping[str, pa.DataType]) -> pa.DataType:
    """The type of the ends of windows."""
    return pa.int64() if panes is None or panes.attribute is None else measured_type(attributes[panes.attribute])


def window_columns(number: I64, panes: Panes | None, kind: pa.DataType) -> list[pa.Array]:
    """Where windows begin and end, by their numbers."""
    assert panes is not None
    begins, known = number * panes.slide, np.zeros(number.size, np.bool_)
    return [as_measured(one, known, kind) for one in (begins, begins + panes.size)]


def _sortable(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column
