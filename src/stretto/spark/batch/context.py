"""Slices in a worker: rows that are read as context, before the rows whose matches are wanted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stretto.columns.measured import values_of
from stretto.errors import DataError
from stretto.query.passes.bind import AnyBound

# The lowest bits of the column that tells context from a slice's own rows; the others are the slice's number.
MARK_BITS = 2
CONTEXT = 1  #: the row is context
REACHES = 2  #: the context of the row's slice is known to reach beyond the window; it does not begin with the stream


class Context:
    """Takes a slice's rows, which come in the order of time, apart; context comes first.

    Where a window does not measure the time, contexts were planned from counts of an earlier reading. If the events are no
    longer the same, matches could be missed: that is seen here, and an error.
    """

    def __init__(self, query: AnyBound) -> None:
        window = query.window
        self.window = window if window is not None and window.attribute != query.schema.time else None
        self.rows = 0
        self.first: int | float | None = None
        self.checked = False

    def split(self, table: pa.Table, marks: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
        """The context and the own rows of the next rows of a slice.

        Raises
        ------
        DataError
            The context does not reach as far back as planned.
        """
        bits = np.asarray(marks.to_numpy())
        count = int(np.count_nonzero(bits & CONTEXT))
        context, own = table.slice(0, count), table.slice(count)
        if self.window is not None and not self.checked:
            self._note(context)
            if own.num_rows:
                self.checked = True
                if bits[count] & REACHES and not self._reaches(own):
                    raise DataError(
                        "the events are not the same as when slices were planned, and matches could be missed: write the "
                        "events (or cache() them) before they are matched, or pass slices=1"
                    )
        return context, own

    def _note(self, context: pa.Table) -> None:
        assert self.window is not None
        if context.num_rows and not self.rows and self.window.attribute is not None:
            self.first = self._value(context)
        self.rows += context.num_rows

    def _reaches(self, own: pa.Table) -> bool:
        window = self.window
        assert window is not None
        if window.attribute is None:
            return self.rows >= window.size
        return self.first is not None and self._value(own) - self.first > window.size

    def _value(self, table: pa.Table) -> int | float:
        """The window's attribute in the first row."""
        assert self.window is not None
        assert self.window.attribute is not None
        found: int | float = values_of(table.slice(0, 1).column(self.window.attribute), self.window.attribute, 0)[
            0
        ].item()
        return found
