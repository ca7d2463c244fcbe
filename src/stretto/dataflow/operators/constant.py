"""Constant: rows that are there from the beginning, and that nothing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.dataflow.json_values import columns, plain, read_columns, read_plain
from stretto.dataflow.node import Node
from stretto.dataflow.run.rows import EVER, PAYLOAD, VE, VS, WEIGHT
from stretto.dataflow.run.values import Strings, words
from stretto.query import predicate as p
from stretto.times import FOREVER


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """I64 that hold at all times: they begin at the first one, and have no end."""

    rows: tuple[tuple[Any, ...], ...]

    shape = "plaintext"

    @property
    def label(self) -> str:
        shown = [f"({', '.join(str(p.Constant(value)) for value in row)})" for row in self.rows[:3]]
        return f"Constant {', '.join(shown)}{', …' if len(self.rows) > 3 else ''}"

    def origins(self, column: str) -> list[tuple[Node, str]]:
        return []

    def copies(self, column: str) -> bool:
        return False

    def changes(self, strings: Strings) -> I64:
        """Its rows as changes."""
        rows = np.zeros((len(self.rows), PAYLOAD + len(self.schema)), np.int64)
        rows[:, VS], rows[:, VE], rows[:, WEIGHT] = EVER, FOREVER, 1
        for at, kind in enumerate(self.schema.values()):
            rows[:, PAYLOAD + at] = words(pa.array([row[at] for row in self.rows], kind), kind, strings)
        return rows

    def written(self) -> dict[str, Any]:
        return {"columns": columns(self.schema), "rows": [list(map(plain, row)) for row in self.rows]}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Constant:
        return cls(read_columns(written["columns"]), tuple(tuple(map(read_plain, row)) for row in written["rows"]))
