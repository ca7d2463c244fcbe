"""Distinct: each row once, wherever its weights come to more than 0 (FFP paper, section 6)."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.dataflow.node import S, Unary
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.operators.reduce import Reduce
from stretto.dataflow.run.values import Strings


def distinct(stream: S) -> S:
    """Keep each row once, wherever it occurs at all. In a loop this stops what is derived again from going around again."""
    return stream.of(Distinct(stream.node.schema, stream.node))


@dataclass(frozen=True, eq=False)
class Distinct(Unary):
    """Each row once, wherever it occurs at all."""

    by_level = True
    ending = "each row goes around once (distinct)"

    def operator(self, strings: Strings) -> Operator:
        # Groups of equal rows, without aggregates: the kept weights are the counts of derivations, level by level.
        return Reduce(self.label, len(self.schema))
