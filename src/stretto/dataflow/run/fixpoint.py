"""The flying fixed point: how a loop knows how far it has got (FFP paper, sections 3.4, 3.5 and 5.3).

All relations of a loop share one speculation. It sends a speculative punctuation around from every recursive output and waits until
it has come back to every flying fixed point. What came in meanwhile is what was under way when it was sent; if all of it begins
at ``eet`` or later, and so will all that the inputs still bring, then nothing before that can go around any more, and the guess
becomes definite.

- **High-water mark**: the guess is the greatest start seen; it lodges where inputs have not come so far.
- **Probing**: the guess is +∞ and each operator lowers it; sent again whenever it is back, also if nothing else is to do.
- **Hybrid**: as probing, but only when the inputs are known to be further than the output, by events of external progress.

Where a loop holds ``distinct``, ``min`` or ``max``, rows go around level by level: all of level i before any of level i + 1. A row
that loses its reason is then taken back before anything follows from it anew, and history does not diverge (section 6).
Elsewhere levels are only counted, and all goes around at once.

Loops that stand in each other share one speculation, and have a level each (levels.py): an inner loop turns until nothing changes
before the outer one turns again. What leaves it has its level in the outer loop alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.dataflow.operators.operator import Pass
from stretto.dataflow.run.levels import BITS, Scope
from stretto.dataflow.run.rows import LEVEL, NEVER, VS, WEIGHT, combined
from stretto.dataflow.run.values import checked_time
from stretto.dataflow.run.vertex import Data, Definite, External, Multicast, Speculative, Turning, Vertex
from stretto.errors import LimitError
from stretto.frame import Section
from stretto.times import FOREVER


class FlyingFixpoint(Turning):
    """How far one loop has got, and how it finds out.

    Parameters
    ----------
    name
        What errors call it.
    mode
        ``hybrid``, ``probing`` or ``hwm``.
    by_level
        Whether rows go around level by level.
    bits
        Of the field of each level.
    """

    def __init__(self, name: str, mode: str, *, by_level: bool, bits: int = BITS) -> None:
        self.name = name
        self.mode = mode
        self.by_level = by_level
        self.bits = bits
        self.fixpoints: list[FixpointVertex] = []
        self.members: list[Vertex] = []
        #: External progress by port of the loop.
        self.external: dict[tuple[int, int], int] = {}
        self.definite = NEVER  #: the last definite punctuation
        self.flying = False  #: whether a speculative punctuation is under way
        self.parked = False  #: probing: nothing has changed since it came back
        self.polls = True  #: probing: whether to send it again even so
        self.earliest = FOREVER  #: eet: the least start of what came in since it was sent
        self.highest = NEVER  #: hwm: the greatest start seen
        self.again = NEVER  #: hwm: the guess (cst) that did not hold yet
        self.speculated = 0  #: how many were sent
        self.promoted = 0  #: how many became definite
        #: The guess by flying fixed point that it has come back to.
        self.back: dict[int, int] = {}
        self.disturbed = False  #: whether anything has happened since it was sent

    def announces(self, time: int) -> bool:
        """Whether an operator tells external progress to this time: the end of an input always."""
        return self.mode == "hybrid" or time == FOREVER

    @property
    def lodges(self) -> bool:
        """Whether a guess waits for the inputs."""
        return self.mode == "hwm"

    # -- what comes in ------------------------------------------------------------------------------------------------

    def saw(self, rows: I64) -> None:
        """I64 came in at a flying fixed point."""
        starts = rows[:, VS]
        self.earliest = min(self.earliest, int(starts.min()))
        self.highest = max(self.highest, int(starts.max()))
        self.disturbed = True

    def disturb(self) -> None:
        """Something has happened: begin to speculate, if the mode says so."""
        self.disturbed = True
        if not self.flying and self._wants():
            self._speculate()

    def poll(self) -> bool:
        """Send it again when there is nothing else to do; whether it is sent."""
        if not (self.polls and self.parked):
            return False
        self.disturb()
        return True

    def moved(self) -> None:
        """The inputs have come further, which probing finds out by itself."""
        if self.mode == "probing":
            self.disturb()

    def heard(self, message: External) -> None:
        """Note how far the input at a port has come."""
        if message.time > self.external.get(message.port, NEVER):
            self.external[message.port] = message.time
            if len(self.external) == self.ports and min(self.external.values()) == FOREVER:
                self.highest = FOREVER  # all inputs have ended
            self.disturb()

    def returned(self, fixpoint: int, time: int) -> None:
        """The speculative punctuation is back at one of the flying fixed points."""
        self.back[fixpoint] = time
        if len(self.back) < len(self.fixpoints):
            return
        guess = min(*self.back.values(), FOREVER)
        reached = min(self.earliest, self.held_back)
        self.again = NEVER
        if reached < guess:
            if self.mode == "hwm":  # it holds as a whole or not at all: the same goes around again
                self.again = guess
                guess = NEVER
            else:
                guess = reached
        self.back.clear()
        self.flying = False
        if guess > self.definite:
            self.definite = guess
            self.promoted += 1
            self.disturbed = True
            for one in self.fixpoints:
                one.promote(guess)
        if self._wants():
            self._speculate()

    # -- speculation --------------------------------------------------------------------------------------------------

    def _wants(self) -> bool:
        """Whether to send a speculative punctuation."""
        if self.mode == "hwm":
            return self._guess() > self.definite
        if self.mode == "probing":
            self.parked = not self.disturbed and self.definite < FOREVER
            return not self.parked and self.definite < FOREVER
        return min(self.external.values(), default=NEVER) > self.definite and len(self.external) == self.ports

    def _guess(self) -> int:
        """The time that the next speculative punctuation carries."""
        if self.mode != "hwm":
            return FOREVER
        if self.again > NEVER:
            return self.again
        return self.highest if self.highest in (NEVER, FOREVER) else self.highest + 1

    def _speculate(self) -> None:
        self.flying = True
        self.disturbed = False
        self.earliest = FOREVER
        self.speculated += 1
        guess = self._guess()
        for fixpoint in self.fixpoints:
            fixpoint.recursive.send_inside(Speculative(guess))
            fixpoint.out.send_inside(Speculative(guess))  # to the loop around this one

    @property
    def ports(self) -> int:
        """How many ports are fed from outside."""
        return sum(vertex.operator.ports - len(vertex.looped) for vertex in self.members)

    # -- levels -------------------------------------------------------------------------------------------------------

    @property
    def held_back(self) -> int:
        """The least start of the rows that wait for their level."""
        return min((fixpoint.least for fixpoint in self.fixpoints), default=FOREVER)

    @property
    def waits(self) -> bool:
        """Whether rows wait for their level, and nothing else is under way in the loop."""
        return (
            self.by_level
            and any(fixpoint.waiting for fixpoint in self.fixpoints)
            and not any(vertex.has_data for vertex in self.members)
        )

    def release(self) -> None:
        """Let the rows of the least level go around."""
        self.disturbed = True
        least = min(fixpoint.turn_of(level) for fixpoint in self.fixpoints for level in fixpoint.waiting)
        for fixpoint in self.fixpoints:
            for level in [level for level in fixpoint.waiting if fixpoint.turn_of(level) == least]:
                rows = combined(np.concatenate(fixpoint.waiting.pop(level)))
                if len(rows):
                    fixpoint.check(rows[:, LEVEL] - (1 << fixpoint.shift))
                    # They are under way again, behind the speculative punctuation.
                    self.earliest = min(self.earliest, int(rows[:, VS].min()))
                    fixpoint.recursive.send_inside(Data(rows))

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write how far it has got, and what is under way."""
        section.values |= {name: getattr(self, name) for name in _PLAIN}
        section.values["external"] = [[*port, time] for port, time in self.external.items()]
        section.values["back"] = sorted(self.back.items())

    def load(self, section: Section) -> None:
        """Take what :meth:`save` wrote."""
        for name, read in _PLAIN.items():
            setattr(self, name, read(section, name))
        ports = {(vertex.number, port) for vertex in self.members for port in range(vertex.operator.ports)}
        self.external = {(vertex, port): checked_time(time) for vertex, port, time in section.values["external"]}
        self.back = {place: checked_time(time) for place, time in section.values["back"]}
        if not ports.issuperset(self.external) or not set(range(len(self.fixpoints))).issuperset(self.back):
            raise ValueError("a loop knows of vertices that it does not have")


def _time(section: Section, name: str) -> int:
    return checked_time(section.values[name])


#: What a loop knows that JSON can write as it is, and how it is read.
_PLAIN: dict[str, Callable[[Section, str], Any]] = {
    **dict.fromkeys(("definite", "earliest", "highest", "again"), _time),
    **dict.fromkeys(("speculated", "promoted"), Section.count),
    **dict.fromkeys(("flying", "parked", "disturbed"), Section.flag),
}


class FixpointVertex(Vertex):
    """The flying fixed point of one relation: its body comes in, the relation goes out, and around again.

    Parameters
    ----------
    number, label, width, flying
        As of any vertex, and the loop that it lies on.
    scope
        Where it stands: see :class:`Scope`.
    bound
        How often anything may go around; ``None``: any number of times.
    """

    def __init__(
        self, number: int, label: str, width: int, flying: FlyingFixpoint, scope: Scope, bound: int | None
    ) -> None:
        super().__init__(number, Pass(label, 1, width))
        self.loop = self.flying = flying
        self.scope = scope
        self.bound = bound
        self.bits = flying.bits
        self.shift = scope.shift(flying.bits)  #: of the field of its level
        self.place = len(flying.fixpoints)
        flying.fixpoints.append(self)
        self.recursive = Multicast()  #: O_R
        #: I64 that wait until all of lower levels have gone around, by level.
        self.waiting: dict[int, list[I64]] = {}

    def data(self, port: int, rows: I64) -> None:
        """Hand rows out (F1), and around again a level higher (F2)."""
        if rows[:, WEIGHT].min() < 0:
            # What cancels out would meet all that cancels out in every join, and be more each time around.
            rows = combined(rows.copy())
            if not len(rows):
                return
        self.flying.saw(rows)
        self.out.send(Data(rows))
        again = rows
        if self.scope.turns:
            again = rows.copy()
            again[:, LEVEL] += 1 << self.shift
        if not self.flying.by_level or not self.scope.turns:
            if self.scope.turns:
                self.check(rows[:, LEVEL])
            self.recursive.send_inside(Data(again))
        elif self.recursive.inside:
            levels = again[:, LEVEL]
            for level in np.unique(levels).tolist():
                self.waiting.setdefault(level, []).append(again[levels == level])
        self.recursive.send_outside(Data(rows))
        self.flying.disturb()

    def check(self, levels: NDArray[np.int64]) -> None:
        """Raise a :class:`LimitError` where rows went around more often than the bound, or than there are levels."""
        most = (1 << self.bits) - 2
        highest = int(((levels >> self.shift) & ((1 << self.bits) - 1)).max())
        bound = most if self.bound is None else self.bound
        if highest > bound:
            raise LimitError(
                f"the loop '{self.flying.name}' goes around more than {bound} times, which is its bound: the query may have no fixed "
                "point for these events; give a greater bound= if it has"
            )

    def turn_of(self, level: int) -> tuple[int, ...]:
        """When rows that wait go around: after all of lower levels, and of the loops that are read in the same turn."""
        return self.scope.turn(level, self.bits)

    def definite(self, port: int, time: int) -> None:
        """The body's own promise is no news: it follows from what was promised to the loop."""

    def speculative(self, port: int, time: int) -> None:
        """Note that the speculative punctuation is back here (F3)."""
        self.flying.returned(self.place, time)

    def step(self) -> None:
        """As any vertex, but external progress ends here."""
        queue = self.queues[0]
        if isinstance(queue[0], External):
            message = queue.popleft()
            assert isinstance(message, External)
            self.flying.heard(message)
            return
        super().step()

    def promote(self, time: int) -> None:
        """Nothing before ``time`` can go around any more."""
        self.promised = time
        self.operator.definite[0] = time
        self.out.send(Definite(time))
        self.recursive.send(Definite(time))

    @property
    def least(self) -> int:
        """The least start of what waits here."""
        return min((int(rows[:, VS].min()) for parts in self.waiting.values() for rows in parts), default=FOREVER)

    def save(self, section: Section) -> None:
        super().save(section)
        section.values["waiting"] = {str(level): len(parts) for level, parts in self.waiting.items()}
        for level, parts in self.waiting.items():
            for at, rows in enumerate(parts):
                section.arrays[f"waiting.{level}.{at}"] = rows

    def load(self, section: Section) -> None:
        super().load(section)
        self.waiting = {
            int(level): [self.kept(section, f"waiting.{level}.{at}") for at in range(count)]
            for level, count in section.values["waiting"].items()
        }
