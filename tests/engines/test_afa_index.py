"""The event index of the AFA operator against a sorted list."""

from __future__ import annotations

import random
from bisect import bisect_right

import numpy as np
import pytest

from stretto.engines.afa import index, places
from stretto.engines.afa.state import AfaState
from stretto.engines.afa.structure import BEHIND, FREE_EVENTS, HIGH, LE, LEFT, NIL, OWN, PARENT, REACH, SEQ, Graph

EVENTS = 400


class Index:
    """Events of one partition, by slot, with the same in Python."""

    def __init__(self, *, every: bool, seed: int) -> None:
        self.every = every
        self.choose = random.Random(seed)
        self.state = AfaState(fields=0, words=1, ignores=every, capacity=2 * EVENTS)
        self.slots: dict[tuple[int, int], int] = {}
        arcs, real = np.zeros((1, 1), np.int64), np.zeros(0, np.bool_)
        self.graph = Graph(arcs, arcs, real, 0, 0, every, False, False, False, False, False, -1, False)

    @property
    def arrays(self) -> tuple[object, object]:
        return self.state.events, self.state.parts

    def find(self, le: int, seq: int) -> int:
        return int(index.find(0, le, seq, self.every, *self.arrays))

    def add(self, place: tuple[int, int]) -> None:
        before = self.find(*place)
        X, registers = self.state.events.X, self.state.registers
        slot = int(registers[FREE_EVENTS])
        registers[FREE_EVENTS] = X[slot, BEHIND]
        X[slot, [LE, SEQ]] = place
        X[slot, OWN] = place[0] + self.choose.randrange(50)
        places.link_event(slot, before, 0, self.graph, *self.arrays)
        self.slots[place] = slot

    def take_away(self, place: tuple[int, int]) -> None:
        slot = self.slots.pop(place)
        places.drop_event(slot, 0, self.graph, *self.arrays)
        X, registers = self.state.events.X, self.state.registers
        X[slot, BEHIND] = registers[FREE_EVENTS]
        registers[FREE_EVENTS] = slot

    def under(self, slot: int) -> list[int]:
        """The slots of a subtree in order; its heap, its links and its reach are right."""
        if slot == NIL:
            return []
        X = self.state.events.X
        left, right = int(X[slot, LEFT]), int(X[slot, HIGH])
        for below in (left, right):
            assert below == NIL or X[below, PARENT] == slot
            assert below == NIL or index._priority(below) <= index._priority(slot)
        found = [*self.under(left), slot, *self.under(right)]
        assert not self.every or X[slot, REACH] == max(X[found, OWN])
        return found

    def check(self) -> None:
        order = [self.slots[place] for place in sorted(self.slots)]
        X, parts = self.state.events.X, self.state.parts
        at, linked = int(parts.first[0]), []
        while at != NIL:
            linked.append(at)
            at = int(X[at, BEHIND])
        assert linked == order
        if parts.root[0] != NIL:
            assert X[parts.root[0], PARENT] == NIL
            assert self.under(int(parts.root[0])) == [slot for slot in order if index.is_indexed(slot, self.every)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("every", [False, True])
def test_events_come_and_go_anywhere(every: bool, seed: int) -> None:
    held = Index(every=every, seed=seed)
    choose = held.choose
    for step in range(3 * EVENTS):
        if held.slots and (len(held.slots) == EVENTS or choose.random() < 0.3):
            held.take_away(choose.choice(sorted(held.slots)))
        else:
            in_order = choose.random() < 0.5
            place = (step if in_order else choose.randrange(step + 1), choose.randrange(5))
            if place not in held.slots:
                held.add(place)
        if step % 50 == 0:
            held.check()
        order = sorted(held.slots)
        asked = (choose.randrange(-1, step + 2), choose.randrange(5))
        at = bisect_right(order, asked)
        assert held.find(*asked) == (held.slots[order[at - 1]] if at else NIL)


def test_one_slot_in_eight_is_in_the_treap() -> None:
    held = Index(every=False, seed=0)
    for le in range(EVENTS):
        held.add((le, 0))
    assert held.find(17, 0) == held.slots[17, 0]  # this builds it
    size = len(held.under(int(held.state.parts.root[0])))
    assert EVENTS / 16 < size < EVENTS / 4
    assert held.state.events.X.ctypes.data % 64 == 0
