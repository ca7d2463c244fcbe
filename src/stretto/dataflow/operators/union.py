"""Union: all rows of all inputs (FFP paper, section 2)."""

from __future__ import annotations

from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.run.rows import Rows

__all__ = ["Union"]


class Union(Operator):
    """The union of inputs with the same columns; its punctuation is the least of theirs."""

    def receive(self, port: int, rows: Rows) -> Rows:
        return rows
