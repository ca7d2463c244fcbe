"""What flows between operators: data, and three kinds of punctuation (FFP paper, sections 3.1 and 5.3)."""

from __future__ import annotations

from typing import NamedTuple

from stretto.array_types import I64


class Data(NamedTuple):
    """A batch of changes."""

    rows: I64


class Definite(NamedTuple):
    """``dp``: no later change begins before ``time``."""

    time: int


class Speculative(NamedTuple):
    """``sp``: the guess of a loop that the same holds for what is going around in it."""

    time: int


class External(NamedTuple):
    """``ep``: a port of the loop has got a definite punctuation from outside."""

    port: tuple[int, int]  #: number of the vertex, and its port
    time: int


Message = Data | Definite | Speculative | External
