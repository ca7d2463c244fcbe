"""Difference, or anti-join: rows of the left where no row of the right agrees with them on the keys.

It is the left, less its join with the distinct keys of the right: so it is revised when a key comes or goes, and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stretto.array_types import I64
from stretto.dataflow.json_values import read_pairs
from stretto.dataflow.node import Binary, Groups, Node, On, Relation, S, check_same, keys_of
from stretto.dataflow.operators.join import Joiner, key_places
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.operators.reduce import Reduce
from stretto.dataflow.run.rows import LEVEL, PAYLOAD, VE, VS, WEIGHT, columns, moved
from stretto.dataflow.run.values import Strings
from stretto.errors import OptionError
from stretto.frame import Section


def difference(stream: S, other: Relation, on: On | None = None) -> S:
    """Keep the rows at the times when no row of another stream agrees with them on the keys (anti-join).

    Parameters
    ----------
    other
        What must not be there.
    on
        As for ``join``; ``None``: all columns, which both must have.
    """
    if on is None:
        check_same(other.schema, stream.schema, "the streams of a difference on all columns")
        on = list(stream.schema)
    keys = keys_of(stream, other, on)
    if not keys:
        raise OptionError("difference() needs a key: difference(other, on='id')")
    return stream.of(Difference(stream.node.schema, stream.node, other.node, keys))


@dataclass(frozen=True, eq=False)
class Difference(Binary):
    """Anti-join: rows of the left, where no row of the right agrees on the keys."""

    by_level = True

    @property
    def label(self) -> str:
        return f"Difference {self.agreement}"

    @property
    def takes_back(self) -> bool:
        return True

    @property
    def decides(self) -> list[tuple[Node, str]]:
        return [(self.left, left) for left, _ in self.on]

    def problem(self, inside: set[int]) -> str | None:
        if id(self.right) not in inside:
            return None
        return (
            "what it takes away depends on its own result (negation is not stratified); subtract a stream from outside"
        )

    def operator(self, strings: Strings) -> Operator:
        return Subtractor(self.label, PAYLOAD + len(self.schema), key_places(self))

    def written(self) -> dict[str, Any]:
        return {"on": [list(pair) for pair in self.on]}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Difference:
        left, right = inputs
        return cls(left.schema, left, right, read_pairs(written["on"], left.schema, right.schema))

    def keyed(self, groups: Groups) -> Node:
        left = groups.with_key(self.left)
        on = (*self.on, *groups.pairs) if groups.has_key(self.right) else self.on
        return Difference(left.schema, left, groups.made(self.right), on)


class Subtractor(Operator):
    """The difference of two inputs.

    Parameters
    ----------
    label
        What errors call it.
    width
        Words of the rows of the left.
    keys
        The words that must not agree: of the left, of the right.
    """

    def __init__(self, label: str, width: int, keys: tuple[I64, I64]) -> None:
        super().__init__(label, 2, width)
        self._chosen = np.array([VS, VE, WEIGHT, LEVEL, *keys[1]], np.int64)
        words = PAYLOAD + len(keys[1])
        self._present = Reduce(label, len(keys[1]))
        own = np.arange(PAYLOAD, words, dtype=np.int64)
        self._join = Joiner(label, (width, words), (keys[0], own), np.zeros(0, np.int64))
        self.synopses = self._join.synopses | self._present.synopses

    def nest(self, bits: int) -> None:
        self._present.nest(bits)
        self._join.nest(bits)

    def receive(self, port: int, rows: I64) -> I64:
        if port == 0:
            return np.concatenate([rows, moved(self._join.receive(0, rows), sign=-1)])
        return moved(self._join.receive(1, self._present.receive(0, columns(rows, self._chosen))), sign=-1)

    def punctuate(self, port: int, time: int) -> int:
        self._join.punctuate(port, time)
        if port == 1:
            self._present.punctuate(0, time)
        return super().punctuate(port, time)

    def load(self, section: Section) -> None:
        super().load(section)
        for port, time in enumerate(self.definite):
            self._join.definite[port] = time
        self._present.definite[0] = self.definite[1]
