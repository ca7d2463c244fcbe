"""RETURN: computed columns of matches, from the events that their variables hold (SASE+ paper, section 2).

Whole columns at a time: the events of a variable in all matches lie one after the other, so that first, last, number and
aggregates are those of segments (:mod:`stretto.columns.segments`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.columns.arrays import decoded, numbers_of, one_array, reals_of_decimals
from stretto.columns.overflow import IntegerOverflow, Order, located
from stretto.columns.segments import Segments, known_of, taken
from stretto.columns.vectorized import computed
from stretto.engines.api import Matches
from stretto.query import predicate as p
from stretto.query.passes.bind_sase import BoundReturn, BoundSase
from stretto.query.sase import DISTINCT, LIST, Element, Index, Length, Reference


class Rows(Protocol):
    """Where the events of a match are looked up by position."""

    def take(self, positions: I64, columns: Sequence[str]) -> pa.Table:
        """The named columns of the events at ``positions``, in that order."""


def computed_columns(
    found: Matches, query: BoundSase, rows: Rows, marks: Sequence[frozenset[str]], order: Order | None = None
) -> list[pa.Array]:
    """The columns of RETURN, one value a match.

    Parameters
    ----------
    found, query, rows, marks
        The matches, and where and how their events are looked up.
    order
        Where the stream was sorted: the row of the input at each position of the stream.

    Raises
    ------
    IntegerOverflow
        A sum or a product of integers leaves 64 bits; the error names the row of the first such match's last event.
    """
    try:
        return _columns(found, query, rows, marks)
    except IntegerOverflow as error:
        raise error.renumbered(found.end).renumbered(order) from None


def _columns(found: Matches, query: BoundSase, rows: Rows, marks: Sequence[frozenset[str]]) -> list[pa.Array]:
    """Do what :func:`computed_columns` does, with errors that name the match by its number."""
    every = np.arange(found.start.size)
    held: dict[str, Segments] = {}
    columns: dict[str, pa.Array] = {}
    for item in query.returns or ():
        for name in p.attributes(item.value):
            if name not in columns:
                reference = query.parsed.references[name]
                variable = reference.variable
                if variable not in held:
                    holds = np.array([variable in labels for labels in marks], np.bool_)
                    held[variable] = Segments.of(holds[found.mark], found.offset, every)
                columns[name] = _value(reference, held[variable], found, rows, query.types[name])
    # A column of its own keeps the number of rows where nothing is referred to.
    batch = pa.RecordBatch.from_pydict(columns | {"": pa.nulls(every.size)})
    return [located(partial(_computed, item), batch, of=" in the match that ends") for item in query.returns or ()]


def _computed(item: BoundReturn, batch: pa.RecordBatch) -> pa.Array:
    return computed(item.value, batch, item.type)


def _value(reference: Reference, held: Segments, found: Matches, rows: Rows, kind: pa.DataType) -> pa.Array:
    """What a reference means in each match; where one lacks the variable, its value is NULL, its number 0, its list empty."""
    if isinstance(reference, Length) or reference.attribute is None:
        return pa.array(held.sizes)
    positions = found.position[held.path]
    if isinstance(reference, Element):
        at = held.end - 1 if reference.index is Index.LAST else held.begin
        there = held.end > held.begin
        one = _taken(rows, positions[at[there]], reference.attribute)
        return one if there.all() else taken(one, np.where(there, np.cumsum(there) - 1, -1))
    values = decoded(_taken(rows, positions, reference.attribute))
    if reference.function == LIST:
        return held.lists(values, kind)
    known = known_of(values)
    if reference.function == DISTINCT:
        return pa.array(held.counts(known & held.first_of_equal([values])))
    counts = held.counts(known)
    if reference.function == "count":
        return pa.array(counts)
    if reference.function in ("min", "max"):
        return held.extreme(values, greatest=reference.function == "max", nan_wins=True).cast(kind)
    if pa.types.is_decimal(values.type):
        values = reals_of_decimals(values)
    data = numbers_of(values)
    if data.dtype.kind == "f":
        total: NDArray[Any] = held.real_sums(data, known)
        if reference.function == "avg":
            total /= np.maximum(counts, 1)
    else:
        high, low = held.whole_sums(data, known)
        total = _means(high, low, counts) if reference.function == "avg" else _whole(high, low, str(reference))
    return pa.array(total, kind, mask=counts == 0)


def _taken(rows: Rows, positions: I64, attribute: str) -> pa.Array:
    return one_array(rows.take(positions, [attribute]).column(0))


def _whole(high: I64, low: I64, what: str) -> I64:
    """Sums in 64 bits."""
    beyond = (high < -(1 << 31)) | (high >= 1 << 31)
    if beyond.any():
        raise IntegerOverflow(
            f"{what} leaves 64 bits in the match that ends", "compute with floats", int(beyond.argmax())
        )
    return (high << 32) + low


def _means(high: I64, low: I64, counts: I64) -> NDArray[np.float64]:
    """Sums by counts, rounded once: floats hold small sums exactly, and Python divides the others exactly."""
    found: NDArray[np.float64] = ((high << 32) + low) / np.maximum(counts, 1)
    for k in np.flatnonzero((high < -(1 << 21)) | (high >= 1 << 21)):
        found[k] = ((int(high[k]) << 32) + int(low[k])) / int(counts[k])
    return found
