"""Alter-lifetime: windows over the events of an input (FFP paper, sections 4 and 5).

It needs the start of each event, which changes that operators make do not have; so it stands where events come in, and the plan
moves it there past selections and projections, which do not look at time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stretto.array_types import I64
from stretto.dataflow.node import Node, S, Unary
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.operators.union import Union
from stretto.dataflow.run.code import Step
from stretto.dataflow.run.events import NEW
from stretto.dataflow.run.rows import LEVEL, NEVER, VE, VS, WEIGHT, combined
from stretto.errors import OptionError
from stretto.times import FOREVER, MOST

#: Duration (None: without end) and hop (None: none).
Window = tuple[int | None, int | None]


def window(stream: S, duration: int | None, *, every: int | None = None) -> S:
    """Alter lifetimes: an event lives for ``duration`` from its start.

    It applies to events of the inputs, before joins and loops: what operators derive has lifetimes, but is no event with a start
    of its own, and moving starts is not always forward (section 5).

    Parameters
    ----------
    duration
        In units of the time; ``None``: without end.
    every
        A hop: both ends move up to multiples of it, so that the relation changes only there.

    Raises
    ------
    OptionError
        A number is not positive, or the stream has no events of its own.
    """
    for name, value in (("duration", duration), ("every", every)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise OptionError(f"{name} must be a positive integer, in units of the time, not {value!r}")
        if value is not None and value > MOST:
            raise OptionError(
                f"{name}={value} units of the time, and the greatest is 2^62 ({MOST}); None is without end"
            )
    at = stream.node
    while isinstance(at, Step):
        at = at.input
    if isinstance(at, Union):
        raise OptionError("window the streams before their union")
    if not at.starts:
        raise OptionError(
            f"a window applies to events of an input, and this stream comes from {at.label}: window the inputs first"
        )
    return stream.of(Lifetime(stream.node.schema, stream.node, duration, every))


@dataclass(frozen=True, eq=False)
class Lifetime(Unary):
    """Alter-lifetime: ``[Vs, Ve)`` becomes ``[Vs, Vs + duration)``; with ``every``, both ends move up to multiples of it."""

    duration: int | None  #: ticks; ``None``: without end
    every: int | None = None

    starts = True

    @property
    def label(self) -> str:
        hop = f" every {self.every}" if self.every else ""
        return f"AlterLifetime {'∞' if self.duration is None else self.duration}{hop}"

    def problem(self, inside: set[int]) -> str | None:
        return "it moves starts, not always forward (section 5); window the events before the loop"

    def written(self) -> dict[str, Any]:
        return {"duration": self.duration, "every": self.every}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Lifetime:
        return cls(inputs[0].schema, inputs[0], written["duration"], written["every"])


def changes(events: I64, windows: Sequence[Window]) -> I64:
    """Events (:data:`~stretto.dataflow.run.events.NEW`) as changes, with their lifetimes altered by each window in turn.

    A retraction takes the altered lifetime away and gives the one that the event has now.
    """
    retracts = events[:, NEW] != NEVER
    if not windows:
        made = events.copy()
        made[:, VS] = np.where(retracts, events[:, NEW], events[:, VS])
        made[:, WEIGHT] = np.where(retracts, -1, 1)
        made[:, LEVEL] = 0
        return made[made[:, VS] < made[:, VE]]
    before = events.copy()
    before[:, WEIGHT] = np.where(retracts, -1, 1)
    after = events[retracts]
    after[:, VE] = after[:, NEW]
    after[:, WEIGHT] = 1
    made = np.concatenate([before, after])
    made[:, LEVEL] = 0
    made = _altered(made, windows)
    # A retraction that changes nothing of a window is nothing: it may name a start that is past its punctuation.
    if retracts.any():
        return combined(made)
    return made


def _altered(made: I64, windows: Sequence[Window]) -> I64:
    """Alter whole lifetimes by each window in turn."""
    for duration, every in windows:
        made = made[made[:, VS] < made[:, VE]]
        starts = made[:, VS]
        if duration is None:
            made[:, VE] = FOREVER
        else:
            made[:, VE] = np.where(starts > FOREVER - duration, FOREVER, starts + np.int64(duration))
        if every is not None:
            for word in (VS, VE):
                up = made[:, word]
                made[:, word] = np.where(up == FOREVER, FOREVER, -(-up // every) * every)
    return made[made[:, VS] < made[:, VE]]


class Alter(Operator):
    """Windows over matches: a matcher gives and takes back whole lifetimes, so that each change is altered by itself."""

    def __init__(self, label: str, width: int, windows: Sequence[Window]) -> None:
        super().__init__(label, 1, width)
        self.windows = tuple(windows)

    def receive(self, port: int, rows: I64) -> I64:
        return _altered(rows.copy(), self.windows)
