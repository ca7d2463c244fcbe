"""The states of many patterns in one section of a snapshot.

Arrays of one name and type of all patterns lie one after the other, so that hundreds of patterns make no more arrays than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.frame import Section

#: No set has more patterns that run together.
MOST_SLOTS = 1 << 24


def together(runs: Sequence[Section], section: Section) -> None:
    """Write the states of runs: arrays of one name and type as one, with whose they are and how long each is."""
    flat = [run.flat() for run in runs]
    section.values["own"] = [values for values, _ in flat]
    found: dict[str, list[tuple[int, NDArray[Any]]]] = {}
    for number, (_, arrays) in enumerate(flat):
        for name, array in arrays.items():
            found.setdefault(f"{name}:{array.dtype.str}", []).append((number, array))
    for key, parts in found.items():
        section.arrays[key] = np.concatenate([array.reshape(-1) for _, array in parts])
        section.arrays[key + ":of"] = np.array([number for number, _ in parts], np.int32)
        section.arrays[key + ":size"] = np.array([array.size for _, array in parts], np.int64)


def apart(section: Section) -> list[Section]:
    """The states that :func:`together` wrote."""
    values = section.values
    runs = [
        Section(one) for one in (values["own"] if "own" in values else values["voices"])
    ]  # as they were called once
    arrays = section.arrays
    for key in arrays:
        if not key.endswith(":of"):
            continue
        whole = key.removesuffix(":of")
        name, total = whole.rpartition(":")[0], arrays[whole].size
        sizes = section.numbers(whole + ":size", least=0, below=total + 1)
        stops = np.cumsum(sizes)
        if not sizes.size or stops[-1] != total:
            raise ValueError(f"'{whole}' holds {total} numbers, which are not those of its runs")
        numbers = section.numbers(key, size=sizes.size, least=0, below=len(runs), rising=True)
        for number, part in zip(numbers.tolist(), np.split(arrays[whole], stops[:-1]), strict=True):
            runs[number].arrays[name] = part
    return runs
