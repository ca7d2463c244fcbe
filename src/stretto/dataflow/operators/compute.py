"""Select and project: each row by itself, so that lifetimes, weights and levels stay as they are (FFP paper, section 2)."""

from __future__ import annotations

from stretto.array_types import I64
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.run.code import Program


class Compute(Operator):
    """A chain of selections and projections, compiled into one pass."""

    def __init__(self, label: str, program: Program) -> None:
        super().__init__(label, 1, program.width)
        self.program = program

    def receive(self, port: int, rows: I64) -> I64:
        return self.program(rows)
