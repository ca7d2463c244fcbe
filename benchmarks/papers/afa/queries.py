"""The paper's queries: Q1 and Q2 of example 1, Q3 of section 6.1, and Q1 embedded in the register of a two-state automaton."""

from __future__ import annotations

from typing import Any

import numpy as np

import stretto

__all__ = ["DIRECTIONS", "embedded", "q1", "q2", "q3", "shape", "v"]

EVENTS = {"price": float, "change": float}

#: Fences of Q3.
DIRECTIONS = {True: "e.change > 0", False: "e.change < 0"}

#: An unchanged price is what a query ignores.
UNCHANGED = "e.change = 0"


def q1(window: int, *, k: int = 2, drop: float = 0.25, ignores: bool = False) -> stretto.AFA:
    """A drop, then k times downticks and as many upticks (figure 3)."""
    afa = stretto.AFA(EVENTS, register={"r1": int, "r2": int}, window=window)
    afa.arc("q0", "q1", when=f"e.change < {-drop}")
    afa.arc("q1", "q1", when="e.change < 0", then="r1 = r.r1 + 1")
    afa.arc("q1", "q2", when="e.change < 0", then="r1 = r.r1 + 1")
    afa.arc("q2", "q2", when="e.change > 0 AND r.r1 > 1", then="r1 = r.r1 - 1")
    afa.arc("q2", "q1", when=f"e.change > 0 AND r.r1 = 1 AND r.r2 < {k - 1}", then="(0, r.r2 + 1)")
    afa.arc("q2", "q3", when=f"e.change > 0 AND r.r1 = 1 AND r.r2 = {k - 1}", then="(0, r.r2 + 1)")
    if ignores:
        afa.ignore("q1", when=UNCHANGED).ignore("q2", when=UNCHANGED)
    return afa.final("q3")


def q2(window: int, *, drop: float = 0.25) -> stretto.AFA:
    """A drop, then the number of V-patterns until the price is what it was before the drop."""
    afa = stretto.AFA(EVENTS, register={"before": float, "found": int}, window=window)
    afa.arc("q0", "q1", when=f"e.change < {-drop}", then="before = e.price - e.change")
    afa.arc("q1", "q1", when="e.change < 0")
    afa.arc("q1", "q2", when="e.change > 0 AND e.price < r.before")
    afa.arc("q2", "q2", when="e.change > 0 AND e.price < r.before")
    afa.arc("q2", "q1", when="e.change < 0", then="found = r.found + 1")
    for state in ("q1", "q2"):
        afa.arc(state, "q3", when="e.change > 0 AND e.price >= r.before", then="found = r.found + 1")
    return afa.final("q3")


def v(window: int, *, drop: float = 0.25) -> stretto.AFA:
    """A drop, downticks and the first uptick after them: a V-pattern without counts."""
    afa = stretto.AFA(EVENTS, window=window).arc("q0", "q1", when=f"e.change < {-drop}")
    afa.arc("q1", "q2", when="e.change < 0").arc("q2", "q2", when="e.change < 0")
    return afa.arc("q2", "q3", when="e.change > 0").final("q3")


def shape(seed: int = 3) -> tuple[bool, ...]:
    """The directions of Q3's eight arcs, at random: whether each is an uptick."""
    return tuple(bool(up) for up in np.random.default_rng(seed).integers(2, size=8))


def q3(window: int, directions: tuple[bool, ...] | None = None) -> stretto.AFA:
    """Eight ticks in a row, each an uptick or a downtick; no register."""
    afa = stretto.AFA(EVENTS, window=window)
    for place, up in enumerate(shape() if directions is None else directions):
        afa.arc(f"q{place}", f"q{place + 1}", when=DIRECTIONS[up])
    return afa.final("q8")


def embedded(window: int, *, k: int = 2, drop: float = 0.25) -> stretto.AFA:
    """Q1 as a constrained automaton (CAN): two states, the functions of a self-loop run the automaton in the register (figure 4).

    ``active`` has a bit for each of Q1's states that the events so far may have led to; those that are active together have the
    same ``r1`` and ``r2``. The ignorable arc, which takes no event, gives the operator its structures for such arcs (AFA+ignore).
    """

    def goes_on(e: Any, r: Any) -> bool:
        if r.active == 1:
            return e.change < -drop
        if e.change < 0:
            return (r.active & 2) != 0
        if e.change > 0:
            return (r.active & 4) != 0 and (r.r1 > 1 or r.r2 < k - 1)
        return True

    def moves(e: Any, r: Any) -> tuple[int, int, int]:
        if r.active == 1:
            return (2, 0, 0)
        if e.change < 0:
            return (2 | 4, r.r1 + 1, r.r2)
        if e.change > 0 and r.r1 > 1:
            return (4, r.r1 - 1, r.r2)
        if e.change > 0:
            return (2, 0, r.r2 + 1)
        return (r.active, r.r1, r.r2)

    def ends(e: Any, r: Any) -> bool:
        return e.change > 0 and (r.active & 4) != 0 and r.r1 == 1 and r.r2 == k - 1

    def ended(e: Any, r: Any) -> tuple[int, int, int]:
        return (8, 0, r.r2 + 1)

    afa = stretto.AFA(
        EVENTS, register={"active": int, "r1": int, "r2": int}, initial=(1, 0, 0), start="s0", window=window
    )
    afa.arc("s0", "s0", when=goes_on, then=moves).arc("s0", "s1", when=ends, then=ended)
    afa.ignore("s1", when=UNCHANGED).final("s1", emit="on_enter")
    return afa
