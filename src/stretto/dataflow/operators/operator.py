"""What all operators have in common."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stretto.array_types import I64
from stretto.dataflow.run.history import last_end
from stretto.dataflow.run.index import Index
from stretto.dataflow.run.rows import NEVER, empty
from stretto.dataflow.run.values import rows_of
from stretto.frame import Section


class Operator:
    """A node of a running plan.

    Attributes
    ----------
    ports
        How many inputs it has.
    width
        Words of the rows that it gives.
    label
        What errors call it.
    synopses
        The rows that it keeps, by the names that they have in snapshots.
    """

    def __init__(self, label: str, ports: int, width: int) -> None:
        self.label = label
        self.ports = ports
        self.width = width
        #: The definite punctuation at each port: no later row begins before it.
        self.definite = [NEVER] * ports
        self.synopses: dict[str, Index] = {}

    def nest(self, bits: int) -> None:
        """I64 come with levels that have a field of so many bits for each of the loops that stand in each other."""
        for kept in self.synopses.values():
            kept.bits = bits

    def receive(self, port: int, rows: I64) -> I64:
        """What follows from new rows at a port."""
        raise NotImplementedError

    def forget(self) -> None:
        """Drop state that nothing after the definite punctuations can concern."""

    def punctuate(self, port: int, time: int) -> int:
        """A definite punctuation comes in; what can be said of the output."""
        self.definite[port] = max(self.definite[port], time)
        self.forget()
        return self.promised()

    def due(self) -> I64:
        """What the last punctuation let out."""
        return empty(self.width)

    def promised(self) -> int:
        """The definite punctuation of the output: the least of all inputs."""
        return min(self.definite)

    @property
    def held(self) -> int:
        """I64 that it holds."""
        return sum(map(len, self.synopses.values()))

    @property
    def ends(self) -> int:
        """When the last row that it holds ends; NEVER: it holds none. FOREVER also where that is not known."""
        return max((last_end(kept.held) for kept in self.synopses.values()), default=NEVER)

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        return sum(kept.bytes for kept in self.synopses.values())

    def save(self, section: Section) -> None:
        """Write its state, but for the punctuations."""
        for name, kept in self.synopses.items():
            section.arrays[name] = kept.held

    def load(self, section: Section) -> None:
        """Take a state that :meth:`save` wrote; the punctuations are known."""
        for name, kept in self.synopses.items():
            kept.load(rows_of(section, name, kept.rows.shape[1]))


class Pass(Operator):
    """What hands its rows on as they are."""

    def receive(self, port: int, rows: I64) -> I64:
        return rows


def places(names: Iterable[str], chosen: Iterable[str], offset: int) -> I64:
    """Where columns lie in a row."""
    at = {name: offset + place for place, name in enumerate(names)}
    return np.array([at[name] for name in chosen], np.int64)
