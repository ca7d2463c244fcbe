"""Aggregate, or group-and-apply: speculative, so that results are revised when their group changes (FFP paper, sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from stretto.dataflow.operators import running as r
from stretto.dataflow.operators.operator import places
from stretto.dataflow.operators.reduce import Reduce
from stretto.dataflow.plan import Item
from stretto.dataflow.run.rows import LEVEL, PAYLOAD, VE, VS, WEIGHT, Rows, columns
from stretto.query.typing import kind_of

__all__ = ["Aggregate"]

_WHOLE = {"count": r.COUNT, "sum": r.SUM, "avg": r.AVG, "min": r.MIN, "max": r.MAX}
_REAL = {"sum": r.SUM_REAL, "avg": r.AVG_REAL, "min": r.MIN_REAL, "max": r.MAX_REAL}


class Aggregate(Reduce):
    """Groups with their aggregates.

    Parameters
    ----------
    label
        What errors call it.
    schema
        The columns that come in.
    by, items
        The columns of the groups, and what is computed of each.
    """

    def __init__(self, label: str, schema: Mapping[str, pa.DataType], by: Sequence[str], items: Sequence[Item]) -> None:
        names = list(schema)
        used = [item.column for item in items if item.column is not None]
        self._chosen = np.concatenate(
            [
                np.array([VS, VE, WEIGHT, LEVEL], np.int64),
                places(names, tuple(by), PAYLOAD),
                places(names, used, PAYLOAD),
            ]
        )
        operations: list[int] = []
        of: list[int] = []
        for item in items:
            real = item.column is not None and kind_of(schema[item.column]) == "float"
            operations.append((_REAL if real else _WHOLE)[item.function])
            of.append(0 if item.column is None else PAYLOAD + len(by) + sum(at > 0 for at in of))
        width = PAYLOAD + len(by) + len(used)
        super().__init__(label, width, len(by), np.array(operations, np.int64), np.array(of, np.int64))

    def receive(self, port: int, rows: Rows) -> Rows:
        return super().receive(port, columns(rows, self._chosen))
