"""What a stream's first events lack of what a query asks of single events: a warning once so many have come.

It looks at events until one has been found for everything that is asked, and at so many of them at the most: after that nothing is
done. Few events wait until there are enough to be looked at together.
"""

from __future__ import annotations

import pyarrow as pa

from stretto.errors import OptionError, StrettoError
from stretto.matching.compiled import Query
from stretto.matching.empty_result.queries import TOLD, distinct, looked_of, says

#: Events of a stream after which a warning tells what none of them had.
WARN_AFTER = 100_000

#: Events that are looked at together, unless more come at once.
TOGETHER = 1 << 10

#: Different types among which the nearest is looked for.
MOST_TYPES = 1_000


def check_warn_after(warn_after: float | None) -> None:
    """Raise an :class:`OptionError` for a number of events that is none."""
    if warn_after is not None and not warn_after >= 1:
        raise OptionError(f"warn_after={warn_after!r}: a number of events, or None for no warning")


class Lacking:
    """Looks at the events of a stream.

    Parameters
    ----------
    query
        It is bound.
    most
        After so many events it tells what none of them had.
    """

    def __init__(self, query: Query, most: int) -> None:
        self.most, self.events = most, 0
        self._looked = looked_of(query)
        self._types = query.bound.schema.type or query.bound.schema.stream
        self._columns = sorted({name for one in self._looked for name in one.columns})
        self._known: set[str | None] = set()
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self.done = not self._columns  #: there is nothing to look at any more

    def read(self, table: pa.Table) -> list[str]:
        """Look at the next events, whose columns have the types of the query's; what to warn of."""
        if not self._rows and not set(self._columns) <= set(table.column_names):
            self.done = True
            return []
        self._waiting.append(table.select(self._columns))
        self._rows += table.num_rows
        left = self.most - self.events
        if self._rows < min(TOGETHER, left):
            return []
        piece = pa.concat_tables(self._waiting).slice(0, left)
        self._waiting, self._rows = [], 0
        try:
            self._look(piece)
        except StrettoError:  # a computation that fails, of which the query itself tells
            self.done = True
            return []
        over = self.events >= self.most
        self.done = over or all(one.met for one in self._looked)
        return (
            [f"after {self.events:,} events of the stream: {said}" for said in says(self._looked, self._known)[:TOLD]]
            if over
            else []
        )

    def _look(self, piece: pa.Table) -> None:
        self.events += piece.num_rows
        for one in self._looked:
            if not one.met:
                one.look(piece)
        if self._types in piece.column_names and len(self._known) <= MOST_TYPES:
            self._known.update(distinct(piece.column(self._types), MOST_TYPES))
