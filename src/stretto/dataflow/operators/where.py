"""Where, or select: the rows for which a condition holds (FFP paper, section 2)."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.dataflow.json_values import written_text
from stretto.dataflow.node import Node, S
from stretto.dataflow.run.code import Columns, Step, given_up_if
from stretto.engines.shared.scalar_code import faulty, name
from stretto.languages.relational import read_condition
from stretto.query import predicate as p


def where(stream: S, condition: str) -> S:
    """Select the rows for which a condition holds.

    Raises
    ------
    QueryError
        The text is no condition over the columns, with the place.

    Examples
    --------
    >>> from stretto.dataflow import stream
    >>> stream("roads", {"src": str, "dst": str, "cost": int}).where("cost < 10 AND src != dst")
    Stream(src: string, dst: string, cost: int64)
    """
    return stream.of(Where(stream.node.schema, stream.node, read_condition(condition, stream.node.schema)))


@dataclass(frozen=True, eq=False)
class Where(Step):
    """Select: the rows for which a condition holds."""

    condition: p.Predicate

    @property
    def label(self) -> str:
        return f"Select {self.condition}"

    @property
    def decides(self) -> list[tuple[Node, str]]:
        return [(self.input, column) for column in p.attributes(self.condition)]

    def code(self, columns: Columns, number: int) -> list[ast.stmt]:
        holds = f"c{number}"
        return [
            ast.Assign([ast.Name(holds, ast.Store())], columns.predicate(self.condition)),
            given_up_if(faulty()),
            ast.If(ast.UnaryOp(ast.Not(), name(holds)), [ast.Continue()], []),
        ]

    def written(self) -> dict[str, Any]:
        return {"condition": written_text(self.condition, self, self.input.schema)}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Where:
        row = inputs[0].schema
        return cls(row, inputs[0], read_condition(written["condition"], row))
