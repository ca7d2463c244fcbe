"""Difference, or anti-join: rows of the left where no row of the right agrees with them on the keys.

It is the left, less its join with the distinct keys of the right: so it is revised when a key comes or goes, and waits for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.dataflow.operators.join import Join
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.operators.reduce import Reduce
from stretto.dataflow.run.rows import LEVEL, PAYLOAD, VE, VS, WEIGHT, Rows, columns, moved

__all__ = ["Difference"]

_NONE = np.zeros(0, np.int64)


class Difference(Operator):
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

    def __init__(self, label: str, width: int, keys: tuple[Rows, Rows]) -> None:
        super().__init__(label, 2, width)
        self._chosen = np.array([VS, VE, WEIGHT, LEVEL, *keys[1]], np.int64)
        words = PAYLOAD + len(keys[1])
        self._present = Reduce(label, words, len(keys[1]), _NONE, _NONE)
        own = np.arange(PAYLOAD, words, dtype=np.int64)
        self._join = Join(label, (width, words), (keys[0], own), _NONE)

    def nest(self, bits: int) -> None:
        self._present.nest(bits)
        self._join.nest(bits)

    def receive(self, port: int, rows: Rows) -> Rows:
        if port == 0:
            return np.concatenate([rows, moved(self._join.receive(0, rows), sign=-1)])
        return moved(self._join.receive(1, self._present.receive(0, columns(rows, self._chosen))), sign=-1)

    def punctuate(self, port: int, time: int) -> int:
        self._join.punctuate(port, time)
        if port == 1:
            self._present.punctuate(0, time)
        return super().punctuate(port, time)

    @property
    def held(self) -> int:
        return self._join.held + self._present.held

    @property
    def bytes(self) -> int:
        return self._join.bytes + self._present.bytes

    def saved(self) -> dict[str, Any]:
        return self._join.saved() | self._present.saved()

    def load(self, state: dict[str, Any]) -> None:
        self._join.load(state)
        self._present.load(state)
        for port, time in enumerate(self.definite):
            self._join.definite[port] = time
        self._present.definite[0] = self.definite[1]
