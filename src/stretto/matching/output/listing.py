"""What a run finds as tables: raw matches, counted by a meter and laid out as a result shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from stretto.columns.overflow import Order
from stretto.engines.api import Matches, Run
from stretto.matching.output.match_table import Layout, build_tables
from stretto.matching.output.memory_budget import Meter, Watch
from stretto.matching.output.return_clause import Rows


class Listing:
    """What a run lists in one call.

    Parameters
    ----------
    meter
        What the call may list.
    run
        What finds matches.
    layout
        The columns of the result.
    rows
        Where events are looked up.
    order
        Where the stream was sorted: the row of the input at each position of the stream.
    """

    def __init__(self, meter: Meter, run: Run, layout: Layout, rows: Rows, order: Order | None) -> None:
        self._watch = Watch(meter, run, layout, rows, order)
        self._layout, self._rows, self._marks, self._order = layout, rows, run.program.marks, order

    def tables(self, found: Iterable[Matches]) -> Iterator[pa.Table]:
        """The matches of some events, of whose last one all are there.

        Raises
        ------
        LimitError
            They go over the budget.
        IntegerOverflow
            A computation leaves 64 bits, in a row of the input as it was given.
        """
        return build_tables(self._watch.pieces(found), self._layout, self._rows, self._marks, self._order)
