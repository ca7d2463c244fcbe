"""Source: an external input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.dataflow.json_values import columns, read_columns
from stretto.dataflow.node import Groups, Node


@dataclass(frozen=True, eq=False)
class Source(Node):
    """An external input."""

    name: str
    insert_only: bool = False  #: no event is ever retracted, so that none needs to be remembered

    shape = "plaintext"
    starts = True

    @property
    def label(self) -> str:
        return f"Source {self.name}"

    @property
    def takes_back(self) -> bool:
        return not self.insert_only

    def origins(self, column: str) -> list[tuple[Node, str]]:
        return []

    def written(self) -> dict[str, Any]:
        return {"name": self.name, "insert_only": self.insert_only, "columns": columns(self.schema)}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Source:
        return cls(read_columns(written["columns"]), written["name"], written["insert_only"])

    def keyed(self, groups: Groups) -> Node:
        return Source({**self.schema, **groups.keys}, self.name, self.insert_only)
