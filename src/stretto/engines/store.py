"""Bundles of arrays, as kernels take them: how one is made field by field, grows, and says what it takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stretto.columns.arrays import longer, roomy

B = TypeVar("B", bound=tuple[Any, ...])  #: a named tuple of arrays


def zeros(kind: type[B], size: int, **others: Any) -> B:
    """Arrays of one size for all fields: 64-bit integers, but for ``others``: a type of numbers, the width of a row, or the array.

    >>> from typing import NamedTuple
    >>> class Nodes(NamedTuple):
    ...     left: Any
    ...     mark: Any
    >>> zeros(Nodes, 2, mark=np.bool_)
    Nodes(left=array([0, 0]), mark=array([False, False]))
    """
    fields: Any = kind
    made: list[Any] = []
    for name in fields._fields:
        what = others.get(name, np.int64)
        if not isinstance(what, np.ndarray):
            what = np.zeros((size, what), np.int64) if isinstance(what, int) else np.zeros(size, what)
        made.append(what)
    found: B = fields(*made)
    return found


def grown(bundle: B, size: int) -> B:
    """The same with ``size`` rows in each array: zeros are behind what was there."""
    return type(bundle)(*[longer(array, size) for array in bundle])


def with_room(bundle: B, size: int) -> B:
    """The same with room for so many rows at least; where there is too little, for twice as many as there was."""
    return type(bundle)(*[roomy(array, size) for array in bundle])


def over(old: B, fresh: B) -> B:
    """The content of arrays at the beginning of longer ones, which are given."""
    for before, after in zip(old, fresh, strict=True):
        after[: before.shape[0]] = before
    return fresh


def of_partitions(bundle: B, survivors: NDArray[np.int64], partitions: int) -> B:
    """Some partitions' rows of flat arrays, each of which has as many for every partition, in this order."""
    return type(bundle)(*[array.reshape(partitions, -1)[survivors].ravel() for array in bundle])


def bytes_of(*bundles: Iterable[NDArray[Any]]) -> int:
    """What all their arrays take."""
    return int(sum([array.nbytes for bundle in bundles for array in bundle]))


def named(bundle: Any, prefix: str, rows: Any, leave: Iterable[str] = ()) -> dict[str, NDArray[Any]]:
    """Some rows of each array, flat, as a snapshot names them; without those of some fields."""
    return {f"{prefix}.{name}": array[rows].ravel() for name, array in bundle._asdict().items() if name not in leave}
