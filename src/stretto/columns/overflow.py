"""Integers that leave 64 bits: the error, and in which row it happened.

Columns are computed as a whole, so the error itself says only that some row is wrong. Which one is looked for when there is an
error, and costs nothing before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

from stretto.errors import DataError

T = TypeVar("T")


class Order(Protocol):
    """Rows by position: an array, or what looks them up."""

    def __getitem__(self, positions: Any, /) -> Any: ...


class Sliced(Protocol):
    """A table or a batch."""

    @property
    def num_rows(self) -> int: ...

    def slice(self, offset: int, length: int, /) -> Self: ...


S = TypeVar("S", bound=Sliced)


class IntegerOverflow(DataError):
    """An integer left 64 bits.

    Parameters
    ----------
    what
        What is beyond 64 bits.
    why
        Its values, or what to do.
    row
        Where that was; ``None``: somewhere in the columns.

    >>> print(IntegerOverflow("integer overflow in (x + 1)", "compute with floats", 7))
    integer overflow in (x + 1) at row 7: compute with floats
    """

    def __init__(self, what: str, why: str, row: int | None = None) -> None:
        super().__init__(what, why, row)
        self.what = what
        self.why = why
        self.row = row

    def __str__(self) -> str:
        place = "" if self.row is None else f" at row {self.row}"
        return f"{self.what}{place}: {self.why}"

    def renumbered(self, rows: Order | None) -> IntegerOverflow:
        """The error with its row looked up in ``rows``; ``None``: as it is."""
        if rows is None or self.row is None:
            return self
        return IntegerOverflow(self.what, self.why, int(rows[self.row]))


def located(compute: Callable[[S], T], table: S, first: int = 0, of: str = "") -> T:
    """``compute(table)``, which works row by row; where an integer leaves 64 bits, the error names the first such row.

    Costs twice as much when it fails, by halving: the part before the row is never computed again.

    Parameters
    ----------
    compute, table
        What is computed, and of what.
    first
        The number of the table's first row.
    of
        What a row is, where it is no event.

    Raises
    ------
    IntegerOverflow
        An integer leaves 64 bits.
    """
    try:
        return compute(table)
    except IntegerOverflow as error:
        found = error
    begin, end = 0, table.num_rows  # the first such row is in between
    while end - begin > 1:
        middle = (begin + end) // 2
        try:
            compute(table.slice(begin, middle - begin))
            begin = middle
        except IntegerOverflow:
            end = middle
    try:
        compute(table.slice(begin, 1))
    except IntegerOverflow as error:
        found = error  # what is beyond 64 bits in that very row
    raise IntegerOverflow(found.what + of, found.why, first + begin)
