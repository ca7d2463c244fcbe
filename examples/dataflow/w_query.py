"""The W query of the FFP paper (section 4) over tosses of a coin: an up, then two troughs that end where they began.

::

    python examples/dataflow/w_query.py [tosses]

``U D^i U^j D^k U^l`` with ``i + k = j + l``: a match counts in ``m`` how far it is below its start. The automaton is data: 7 states,
11 transitions, each with what it adds to ``m`` and the values of ``m`` for which it may be taken. No match is longer than the
window, as every toss expires.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pyarrow as pa

from stretto.dataflow import Dataflow, Stream, fixpoint, stream

#: How many tosses a match may span.
WINDOW = 30

ANY = 1000

#: State, symbol, next state, what is added to m, and the least and greatest m before.
TRANSITIONS = [
    ("S", "U", "start", 0, -ANY, ANY),
    ("start", "D", "fall", 1, -ANY, ANY),
    ("fall", "D", "fall", 1, -ANY, ANY),
    ("fall", "U", "rise", -1, 2, ANY),
    ("rise", "U", "rise", -1, 2, ANY),
    ("rise", "D", "fall again", 1, -ANY, ANY),
    ("fall again", "D", "fall again", 1, -ANY, ANY),
    ("fall again", "U", "rise again", -1, 2, ANY),
    ("rise again", "U", "rise again", -1, 2, ANY),
    ("fall again", "U", "F", -1, 1, 1),
    ("rise again", "U", "F", -1, 1, 1),
]
COLUMNS = ("src", "symbol", "dst", "dm", "low", "high")


def w_query() -> Stream:
    """Begin and end of each W."""
    tosses = stream("tosses", {"t": int, "symbol": str}, insert_only=True).window(WINDOW)
    kinds: dict[str, type] = dict(zip(COLUMNS, (str, str, str, int, int, int), strict=True))
    transitions = stream("transitions", kinds, insert_only=True)
    moves = tosses.join(transitions, on="symbol").project("t", "src", "dst", "dm", "low", "high", before="t - 1")
    starts = tosses.where("symbol = 'U'").project(begin="t", end="t - 1", state="'S'", m=0)

    def once(reach: Stream) -> Stream:
        moved = moves.join(reach, on={"before": "end", "src": "state"}, where="m BETWEEN low AND high")
        return starts.union(moved.project("begin", end="t", state="dst", m="m + dm"))

    reach = fixpoint(once, schema=starts, bound=WINDOW, name="reach")
    return reach.where("state = 'F'").project("begin", "end")


def tossed(count: int, seed: int) -> str:
    """U and D, evenly weighted."""
    return "".join(np.random.default_rng(seed).choice(["D", "U"], count))


def run(tosses: str, batch: int = 100, speculation: str = "hybrid") -> tuple[Counter[tuple[int, int]], Dataflow]:
    """Where Ws begin and end, and how often; and the dataflow."""
    flow = Dataflow(w=w_query(), speculation=speculation)
    arcs = {name: [one[at] for one in TRANSITIONS] for at, name in enumerate(COLUMNS)}
    flow.push("transitions", pa.table({**arcs, "vs": [0] * len(TRANSITIONS)}))
    flow.advance(2**63 - 1, "transitions")  # the pattern stays as it is
    found: Counter[tuple[int, int]] = Counter()
    for first in range(0, len(tosses), batch):
        times = list(range(first, min(first + batch, len(tosses))))
        events = pa.table({"t": times, "symbol": [tosses[time] for time in times], "vs": times})
        flow.push("tosses", events, punctuation=times[-1] + 1)
        flow.run_until_idle()
        output = flow.output("w")
        found.update(zip(output.column("begin").to_pylist(), output.column("end").to_pylist(), strict=True))
    return found, flow


def main() -> None:
    tosses = tossed(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, seed=1)
    found, flow = run(tosses)
    print(f"{len(tosses):,} tosses, {sum(found.values()):,} Ws of at most {WINDOW} tosses, the first of them:")
    for begin, end in sorted(found, key=lambda at: at[::-1])[:5]:
        print(f"  {begin:3}..{end:3}  {tosses[begin : end + 1]}")
    lengths = Counter(end - begin + 1 for begin, end in found.elements())
    print("by length: " + ", ".join(f"{length}: {lengths[length]}" for length in sorted(lengths)[:6]) + ", …")
    loop = flow.stats["loops"]["reach"]
    print(
        f"{loop['speculative']} speculative punctuations, {loop['definite']} definite; certain before {flow.punctuation('w')}"
    )


if __name__ == "__main__":
    main()
