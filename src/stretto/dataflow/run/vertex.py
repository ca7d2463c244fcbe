"""Vertices of a running plan: an operator with its queues, and how punctuations pass it (FFP paper, sections 3.3 to 3.5, 5.3).

What flows between operators: data, and three kinds of punctuation (FFP paper, sections 3.1 and 5.3).
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from stretto.array_types import I64
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.run.levels import Scope
from stretto.dataflow.run.rows import LEVEL, NEVER, moved
from stretto.dataflow.run.values import checked_time, rows_of
from stretto.frame import Section
from stretto.times import FOREVER


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


class Multicast:
    """Where a vertex's output goes: one stream to several readers (FFP paper, section 2).

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


class Turning:
    """What a vertex knows of the loop that it lies on.

    Attributes
    ----------
    bits
        Of the field of each level.
    members
        The vertices that lie on it.
    """

    bits: int
    members: list[Vertex]

    def announces(self, time: int) -> bool:
        """Whether an operator tells external progress to this time."""
        raise NotImplementedError

    @property
    def lodges(self) -> bool:
        """Whether a guess waits for the inputs."""
        raise NotImplementedError

    def moved(self) -> None:
        """The inputs have come further."""
        raise NotImplementedError

    @property
    def waits(self) -> bool:
        """Whether rows wait for their level, and nothing else is under way in the loop."""
        raise NotImplementedError

    def release(self) -> None:
        """Let the rows of the least level go around."""
        raise NotImplementedError


class Vertex:
    """An operator in a running plan.

    Attributes
    ----------
    number
        Its rank: inputs before their readers, but for the streams that close a loop.
    operator
        What it does with data.
    loop
        The flying fixed point of the loop that it lies on, if any.
    looped
        Its ports that are fed from the same loop.
    scope
        Which of the loops that stand in each other it stands in.
    widths
        Of ports that other vertices feed: how many words their rows have.
    masks
        Of ports that are fed from a deeper loop than its own: which fields of their levels count here.
    out
        Its readers.
    """

    def __init__(self, number: int, operator: Operator) -> None:
        self.number = number
        self.operator = operator
        self.loop: Turning | None = None
        self.looped: set[int] = set()
        self.widths: dict[int, int] = {}
        self.masks: dict[int, int] = {}
        self.scope = Scope()
        self.out = Multicast()
        self.queues: list[deque[Message]] = [deque() for _ in range(operator.ports)]
        self.promised = NEVER  #: the last definite punctuation that it gave
        #: The speculative punctuation at each looped port that has one; it goes on when all have.
        self.guessed: dict[int, int] = {}
        self.turn = 0  #: the port that is looked at first

    def __repr__(self) -> str:
        return f"<{self.number} {self.operator.label}>"

    @property
    def label(self) -> str:
        """What errors call it."""
        return self.operator.label

    # -- messages -----------------------------------------------------------------------------------------------------

    def accept(self, port: int, message: Message) -> None:
        """Queue a message at a port."""
        if not isinstance(message, Data) or len(message.rows):
            self.queues[port].append(message)

    @property
    def waits(self) -> bool:
        """Whether there is something to do."""
        return any(self.queues)

    @property
    def ends(self) -> int:
        """When the last row ends that waits or is held here; NEVER: there is none. FOREVER also where that is not known."""
        return FOREVER if self.waits else self.operator.ends

    @property
    def has_data(self) -> bool:
        """Whether data waits at a port."""
        return any(isinstance(one, Data) for queue in self.queues for one in queue)

    def step(self) -> None:
        """Take what stands together at the port whose turn it is: data with its definite punctuations, or another message."""
        ports = len(self.queues)
        for ahead in range(ports):
            port = (self.turn + ahead) % ports
            if self.queues[port]:
                self.turn = (port + 1) % ports
                break
        queue = self.queues[port]
        match queue[0]:
            case Data() | Definite():
                self._take(port)
            case Speculative(time):
                queue.popleft()
                self.speculative(port, time)
            case External() as message:
                queue.popleft()
                self.out.send_inside(message)

    def _take(self, port: int) -> None:
        """Take data up to the next speculative punctuation, and the last of the definite ones.

        Data may go ahead of a definite punctuation: that promises no less if it comes later.
        """
        queue = self.queues[port]
        parts: list[I64] = []
        time = NEVER
        while queue:
            match queue[0]:
                case Data(rows):
                    parts.append(rows)
                case Definite(one):
                    time = max(time, one)
                case _:
                    break
            queue.popleft()
        if parts:
            rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
            if port in self.masks:
                rows = rows.copy()
                rows[:, LEVEL] &= self.masks[port]
            self.data(port, rows)
        if time > NEVER:
            self.definite(port, time)

    def data(self, port: int, rows: I64) -> None:
        """Let the operator take new rows, and hand on what follows from them."""
        self.out.send(Data(self.operator.receive(port, rows)))

    def definite(self, port: int, time: int) -> None:
        """A definite punctuation at a port: what can be said of the output is said at once."""
        if time <= self.operator.definite[port]:
            return
        promised = self.operator.punctuate(port, time)
        due = self.operator.due()
        if len(due):
            self.out.send(Data(due))
        if promised > self.promised:
            self.promised = promised
            self.out.send(Definite(promised))
        if self.loop is not None and port not in self.looped:
            if self.loop.announces(time):
                self.out.send_inside(External((self.number, port), time))
            self._pass_on()
            self.loop.moved()

    def speculative(self, port: int, time: int) -> None:
        """A speculative punctuation at a port of the loop (S1)."""
        self.guessed[port] = time
        self._pass_on()

    def _pass_on(self) -> None:
        """Let the speculative punctuation go on when it is there at all looped ports.

        It promises no more than the inputs from outside do: either it is lowered to that (probing, hybrid), or it lodges here until
        they have come so far (high-water mark).
        """
        if not self.guessed or len(self.guessed) < len(self.looped):
            return
        assert self.loop is not None
        guess = min(self.guessed.values())
        outside = self.external
        if self.loop.lodges and outside < guess:
            return
        self.guessed.clear()
        self.out.send_inside(Speculative(min(guess, outside)))

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write what it and its operator hold, and what waits in its queues."""
        section.values |= {
            "definite": self.operator.definite,
            "promised": self.promised,
            "guessed": sorted(self.guessed.items()),
            "turn": self.turn,
            "queues": [
                [_written(message, section, f"{port}.{at}") for at, message in enumerate(queue)]
                for port, queue in enumerate(self.queues)
            ],
        }
        self.operator.save(section.sub("operator"))

    def load(self, section: Section) -> None:
        """Take what :meth:`save` wrote."""
        state = section.values
        if len(state["definite"]) != self.operator.ports:
            raise ValueError(f"there are punctuations of {len(state['definite'])} ports")
        self.operator.definite = list(state["definite"])
        self.promised, self.turn, self.guessed = state["promised"], state["turn"], dict(state["guessed"])
        for one in (*self.operator.definite, self.promised, *self.guessed.values()):
            checked_time(one)
        if type(self.turn) is not int or not 0 <= self.turn < max(1, len(self.queues)):
            raise ValueError(f"there is no queue {self.turn!r}")
        if not self.looped.issuperset(self.guessed):
            raise ValueError(f"there are guesses at {sorted(self.guessed)}")
        for port, (queue, messages) in enumerate(zip(self.queues, state["queues"], strict=True)):
            queue.clear()
            width = self.widths.get(port, self.operator.width)
            queue.extend(_read(message, section, f"{port}.{at}", width) for at, message in enumerate(messages))
        self.operator.load(section.sub("operator"))

    def kept(self, section: Section, name: str) -> I64:
        """I64 that have the width of its operator's."""
        return rows_of(section, name, self.operator.width)

    @property
    def external(self) -> int:
        """The external progress: the least definite punctuation of the ports that are not on the loop."""
        return min(
            (time for port, time in enumerate(self.operator.definite) if port not in self.looped), default=FOREVER
        )


def _written(message: Message, section: Section, name: str) -> list[Any]:
    match message:
        case Data(rows):
            section.arrays[name] = rows
            return ["data", rows.shape[1]]
        case Definite(time):
            return ["dp", time]
        case Speculative(time):
            return ["sp", time]
        case External(port, time):
            return ["ep", *port, time]


def _read(written: list[Any], section: Section, name: str, width: int) -> Message:
    """A message that :func:`_written` wrote, of rows with so many words."""
    match written:
        case ["data", its] if its == width:
            return Data(rows_of(section, name, width))
        case ["dp", time]:
            return Definite(checked_time(time))
        case ["sp", time]:
            return Speculative(checked_time(time))
        case ["ep", int(vertex), int(port), time]:
            return External((vertex, port), checked_time(time))
    raise ValueError(f"no message: {written}")
