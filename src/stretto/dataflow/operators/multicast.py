"""Multicast: one stream to several readers (FFP paper, section 2; the flying fixed point is a special case of it)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.dataflow.run.messages import Data, Definite, Message
from stretto.dataflow.run.rows import LEVEL, moved

if TYPE_CHECKING:
    from stretto.dataflow.run.vertex import Vertex

__all__ = ["Multicast"]


class Multicast:
    """Where a vertex's output goes.

    Levels belong to a loop: rows that leave it have none.
    """

    def __init__(self) -> None:
        self.inside: list[tuple[Vertex, int]] = []  #: readers in the same loop, with their ports
        self.outside: list[tuple[Vertex, int]] = []

    def send(self, message: Message) -> None:
        """Hand a message to all readers."""
        self.send_inside(message)
        self.send_outside(message)

    def send_inside(self, message: Message) -> None:
        """Hand a message to the readers in the same loop."""
        for vertex, port in self.inside:
            vertex.accept(port, message)

    def send_outside(self, message: Message) -> None:
        """Hand data or a definite punctuation to the readers outside; they see nothing else."""
        if not self.outside or not isinstance(message, Data | Definite):
            return
        if isinstance(message, Data) and message.rows[:, LEVEL].any():
            message = Data(moved(message.rows, level=0))
        for vertex, port in self.outside:
            vertex.accept(port, message)
