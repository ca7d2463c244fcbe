"""Select and project: each row by itself, so that lifetimes, weights and levels stay as they are (FFP paper, section 2)."""

from __future__ import annotations

from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.run.code import Program
from stretto.dataflow.run.rows import Rows


class Compute(Operator):
    """A chain of selections and projections, compiled into one pass."""

    def __init__(self, label: str, program: Program) -> None:
        super().__init__(label, 1, program.width)
        self.program = program

    def receive(self, port: int, rows: Rows) -> Rows:
        return self.program(rows)
