"""An automaton that is data: figure 4 of the FFP paper, and a pattern that changes while it runs.

::

    python examples/dataflow/nfa.py

Transitions are a stream like any other. A partial match says where it begins, where it ends and in which state it is; the loop
extends it by one symbol. The pattern is ``AB*A``, the input ``ABBA``: four starts, and A, AB, ABB, ABBA and the A at the end.

A match lives as long as the transitions that made it. When the transition on B is taken back at time 5, what used it ends there;
another one, on C, is added in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto.dataflow import Dataflow, Stream, fixpoint, stream

#: AB*A, from S to F.
TRANSITIONS = [("S", "A", "1"), ("1", "B", "1"), ("1", "A", "F")]


def matches() -> Stream:
    """``Reach(B, B-1, start).  Reach(B, T, Q) :- Reach(B, T-1, R), Input(T, A), Transition(R, Q, A).``"""
    symbols = stream("symbols", {"t": int, "symbol": str}, insert_only=True)
    transitions = stream("transitions", {"src": str, "symbol": str, "dst": str})
    starts = symbols.project(begin="t", end="t - 1", state="'S'")
    moves = symbols.join(transitions, on="symbol").project("t", "src", "dst", before="t - 1")

    def once(reach: Stream) -> Stream:
        moved = moves.join(reach, on={"before": "end", "src": "state"})
        return starts.union(moved.project("begin", end="t", state="dst"))

    # Every round consumes a symbol, so that there are no more rounds than symbols.
    return fixpoint(once, schema=starts, bound=1000, name="reach")


def started(transitions: Sequence[tuple[str, str, str]] = TRANSITIONS) -> Dataflow:
    flow = Dataflow(reach=matches())
    flow.push("transitions", [arc(one, 0) for one in transitions])
    return flow


def arc(transition: tuple[str, str, str], vs: int, ve_new: int | None = None) -> dict[str, Any]:
    """A transition from a time on, or its end."""
    return {**dict(zip(("src", "symbol", "dst"), transition, strict=True)), "vs": vs, "ve_new": ve_new}


def read(flow: Dataflow, text: str, first: int) -> list[dict[str, Any]]:
    """The symbols of a text at times from ``first`` on, and what comes out."""
    events = [{"t": time, "symbol": symbol, "vs": time} for time, symbol in enumerate(text, first)]
    flow.push("symbols", events)
    flow.advance(first + len(text))
    flow.run_until_idle()
    return flow.output("reach").to_pylist()


def changed(flow: Dataflow, time: int, old: tuple[str, str, str], new: tuple[str, str, str]) -> None:
    """One transition in the place of another, from a time on."""
    flow.push("transitions", [arc(old, 0, ve_new=time), arc(new, time)])


def printed(rows: list[dict[str, Any]], text: str) -> None:
    for row in sorted(rows, key=lambda row: (row["ve_new"] is None, row["end"], row["begin"])):
        part = text[row["begin"] - 1 : row["end"]]
        says = "starts here" if not part else f"'{part}' in state {row['state']}"
        end = f", ends at {row['ve_new']}" if row["ve_new"] is not None else ""
        print(f"  {'+' if row['ve_new'] is None else '-'} {row['begin']}..{row['end']}: {says}{end}")


def main() -> None:
    flow = started()
    print("AB*A over ABBA")
    printed(read(flow, "ABBA", 1), "ABBA")
    print("from time 5 on AC*A: what used the transition on B ends, and ACCA follows")
    changed(flow, 5, ("1", "B", "1"), ("1", "C", "1"))
    printed(read(flow, "ACCA", 5), "ABBAACCA")
    print(f"certain before {flow.punctuation('reach')}")


if __name__ == "__main__":
    main()
