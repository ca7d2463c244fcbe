"""The functions of EQL over whole columns: exactly the meaning of :mod:`stretto.query.eql_functions`.

They are computed of the different values of columns, in Python; what most rules ask is a regular expression in place of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.query.eql_functions import EQL

_GIVES = {"string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def compute(name: str, sides: Sequence[Any]) -> pa.Array:
    """Compute a function of at least one column, once of each combination of values that occurs."""
    coded = [one.dictionary_encode(null_encoding="encode") for one in sides if isinstance(one, pa.Array)]
    code = np.zeros(len(coded[0]), np.int64)
    for one in coded:
        code = code * max(1, len(one.dictionary)) + one.indices.to_numpy(zero_copy_only=False)
    alone = len(coded) == 1
    cells, rows = (np.arange(len(coded[0].dictionary)), code) if alone else np.unique(code, return_inverse=True)
    given: list[list[Any]] = []
    for one in reversed(coded):
        size = max(1, len(one.dictionary))
        given.append(one.dictionary.take(pa.array(cells % size)).to_pylist())
        cells = cells // size
    lists = [given.pop() if isinstance(side, pa.Array) else [side] * len(cells) for side in sides]
    known = EQL[name]
    values = [None if None in some else known.python(*some) for some in zip(*lists, strict=True)]
    return pa.array(values, _GIVES[str(known.gives)]).take(pa.array(rows))
