"""Which nodes are reachable from the sources of a network that changes: figures 1 and 2 of the FFP paper.

::

    python examples/dataflow/reachability.py

A path carries a bit for each node that it has visited (``bv``), and is not extended to a node that it has been to: so every path
is found once, and none goes around for ever. Sources and links come, expire and are retracted while the loop turns; after each
definite punctuation nothing before it changes any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import stretto
from stretto.dataflow import Dataflow, Stream, fixpoint, stream

#: Nodes n1 to n4; n1 has the highest bit, so that bit vectors read as in the paper.
NODES = 4


@stretto.function
def only(node):
    """The bit vector of one node."""
    return 1 << (4 - node)


@stretto.function
def visits(bv, node):
    """Whether a bit vector has a node."""
    return (bv >> (4 - node)) & 1 == 1


@stretto.function
def visited(bv, node):
    """A bit vector with a node more."""
    return bv | (1 << (4 - node))


def reachability() -> Stream:
    """Figure 1: a source, a node that is reachable from it, and by which nodes."""
    sources = stream("sources", {"node": int})
    links = stream("links", {"src": int, "dst": int})
    starts = sources.project(source="node", node="node", bv="only(node)")

    def once(paths: Stream) -> Stream:
        steps = links.join(starts.union(paths), on={"src": "node"}, where="NOT visits(bv, dst)")
        return steps.project("source", node="dst", bv="visited(bv, dst)")

    return fixpoint(once, schema=starts, bound=NODES, name="reachable")


#: Figure 2, by the time at which it comes.
FIGURE_2: dict[int, dict[str, list[tuple[int, ...]]]] = {
    1: {"sources": [(2,), (3,)]},
    2: {"links": [(3, 1)]},
    3: {"links": [(1, 2), (2, 3)]},
    4: {"links": [(3, 4)]},
}

COLUMNS = {"sources": ("node",), "links": ("src", "dst")}


def pushed(
    flow: Dataflow, name: str, payload: tuple[int, ...], vs: int, ve: int | None, ve_new: int | None = None
) -> None:
    """One event, or one retraction."""
    event = dict(zip(COLUMNS[name], payload, strict=True))
    flow.push(name, [{**event, "vs": vs, "ve": ve, "ve_new": ve_new}])


def figure_2(flow: Dataflow) -> Iterator[tuple[int, list[dict[str, Any]], Any]]:
    """Times 1 to 4, then the retraction at time 5: each time with the output and the definite punctuation."""
    for time, inputs in FIGURE_2.items():
        for name, payloads in inputs.items():
            for payload in payloads:
                pushed(flow, name, payload, time, None)
        yield (time, *settled(flow, time + 1))
    pushed(flow, "links", (3, 1), 2, None, 5)
    yield (5, *settled(flow, 6))


def settled(flow: Dataflow, punctuation: int) -> tuple[list[dict[str, Any]], Any]:
    """What comes out once all is known before a time, and what is certain then."""
    flow.advance(punctuation)
    flow.run_until_idle()
    return flow.output("reachable").to_pylist(), flow.punctuation("reachable")


def expirations() -> list[dict[str, Any]]:
    """Lifetimes of paths are what those of their source and links have in common."""
    flow = Dataflow(reachable=reachability())
    pushed(flow, "sources", (3,), 1, 6)
    pushed(flow, "links", (3, 1), 2, 8)
    pushed(flow, "links", (1, 2), 3, 10)
    flow.finish()
    flow.run_until_idle()
    return flow.output("reachable").to_pylist()


def shown(row: dict[str, Any]) -> str:
    """An output event, as the paper writes it, with its lifetime."""
    until = "∞" if row["ve"] is None else row["ve"]
    text = f"(n{row['source']}, n{row['node']}, {row['bv']:0{NODES}b})"
    if row["ve_new"] is None:
        return f"+ {text} lives in [{row['vs']}, {until})"
    return f"- {text} of [{row['vs']}, {until}) ends at {row['ve_new']}"


def printed(rows: Iterable[dict[str, Any]]) -> None:
    for row in sorted(rows, key=lambda row: (row["vs"], row["bv"], row["source"])):
        print("  " + shown(row))


def main() -> None:
    flow = Dataflow(reachable=reachability())
    for time, rows, punctuation in figure_2(flow):
        print(f"time {time}" + (": the link from n3 to n1 is retracted" if time == 5 else ""))
        printed(rows)
        print(f"  certain before {punctuation}")
    loop = flow.stats["loops"]["reachable"]
    print(f"{loop['speculative']} speculative punctuations went around, {loop['definite']} became definite")
    print("n3 a source in [1, 6), a link from n3 to n1 in [2, 8) and from n1 to n2 in [3, 10)")
    printed(expirations())


if __name__ == "__main__":
    main()
