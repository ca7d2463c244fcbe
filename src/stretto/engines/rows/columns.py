"""Columns of sorted rows as they are seen from a row: its own values, and those of rows at a fixed distance in its partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from stretto.array_types import I64, Bits
from stretto.columns.arrays import one_array
from stretto.columns.overflow import IntegerOverflow, Order
from stretto.query import predicate as p


def plain_name(attribute: str, shift: int = 0) -> str:
    """The name of a column as it is ``shift`` rows further.

    >>> plain_name("price", -1)
    '-1 price'
    """
    return f"{shift} {attribute}"


def shown_name(name: str) -> str:
    """How a query calls the column of a :func:`plain_name`.

    >>> shown_name("0 price"), shown_name("-1 price"), shown_name("2 price")
    ('price', 'PREV(price)', 'NEXT(price, 2)')
    """
    shift, attribute = name.split(" ", 1)
    own, rows = str(p.Attribute(attribute)), int(shift)
    more = f", {abs(rows)}" if abs(rows) > 1 else ""
    return f"{'PREV' if rows < 0 else 'NEXT'}({own}{more})" if rows else own


@contextmanager
def overflow_shown(expression: p.Expression, seen: Shifted) -> Iterator[None]:
    """Where the expression over :func:`plain_name` columns leaves 64 bits, the error calls columns and the row as the user does."""
    try:
        yield
    except IntegerOverflow as error:
        what = error.what
        for name in p.attributes(expression):
            what = what.replace(str(p.Attribute(name)), shown_name(name))
        raise seen.placed(IntegerOverflow(what, error.why, error.row)) from None


class Shifted:
    """Rows that are sorted, those of partition k from ``bounds[k]`` to ``bounds[k + 1]``.

    ``numbers``: the number of each row where it came from, for errors; ``None``: it is not known.

    >>> seen = Shifted(pa.table({"x": [1, 2, 3]}), np.array([0, 2, 3]))
    >>> seen.column("-1 x").to_pylist(), seen.column("0 x").to_pylist()
    ([None, 1, None], [1, 2, 3])
    """

    def __init__(self, table: pa.Table, bounds: I64, numbers: Order | None = None) -> None:
        self.table = table
        self.numbers = numbers
        self.bounds = bounds
        self.rows = table.num_rows
        self._columns: dict[str, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        """One column, by its :func:`plain_name`."""
        if name not in self._columns:
            shift, attribute = name.split(" ", 1)
            if shift == "0":
                self._columns[name] = one_array(self.table.column(attribute))
            else:
                self._columns[name] = self._shifted(self.column(plain_name(attribute)), int(shift))
        return self._columns[name]

    def placed(self, error: IntegerOverflow, rows: Order | None = None, of: str = "") -> IntegerOverflow:
        """An error of what was computed over rows (``None``: all), with the number of its row; ``of``: what lies at the row."""
        found = error.renumbered(rows)
        if found.row is None or self.numbers is None:
            return IntegerOverflow(found.what, found.why)
        return IntegerOverflow(found.what + of, found.why, found.row).renumbered(self.numbers)

    def _shifted(self, own: pa.Array, shift: int) -> pa.Array:
        at, outside = self.rows_at(np.arange(self.rows), shift)
        return own.take(pa.array(at, mask=outside))

    def rows_at(self, rows: I64, shift: int) -> tuple[I64, Bits]:
        """The rows at a distance, and where there are none in the same partition."""
        at = rows + shift
        partition = np.searchsorted(self.bounds, rows, "right")
        outside = (at < self.bounds[partition - 1]) | (at >= self.bounds[np.minimum(partition, self.bounds.size - 1)])
        return at, outside

    def table_of(self, names: Iterable[str], *, beyond: bool = False) -> pa.RecordBatch:
        """Columns by their names, with ``beyond`` one row more, in which all are NULL."""
        columns = {name: self.column(name) for name in names}
        if beyond:
            columns = {name: pa.concat_arrays([one, pa.nulls(1, one.type)]) for name, one in columns.items()}
        return pa.RecordBatch.from_pydict(columns | {"": pa.nulls(self.rows + beyond)})
