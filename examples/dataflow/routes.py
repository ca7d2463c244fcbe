"""Shortest routes over roads whose costs change: ``min`` in the loop, revised while it turns (section 6 of the FFP paper).

::

    python examples/dataflow/routes.py

The least cost from one place to another is the least over all roads that leave it; of dominated routes nothing follows. When a
road gets dearer, what was derived from its old cost is taken back, and the next best route comes in its place. Costs are
computed in the loop, so that nothing in the plan says that it ends: the bound does, which says how many roads a route may have.
Below a bound that is too small the dataflow says so and stops; a result is never cut short.

The same query as Datalog text gives the same output.
"""

from __future__ import annotations

from typing import Any

from stretto.dataflow import Dataflow, Stream, datalog, fixpoint, stream

ROADS = {"src": str, "dst": str, "cost": int}

#: No route takes more roads than this.
MOST_ROADS = 20

DATALOG = """
route(X, Y, min<C>) :- road(X, Y, C).
route(X, Z, min<C + D>) :- road(X, Y, C), route(Y, Z, D).
"""


def routes() -> Stream:
    """Origin, destination and the least cost from one to the other."""
    roads = stream("road", ROADS)

    def once(route: Stream) -> Stream:
        longer = roads.join(route, on={"dst": "src"}).project("src", dst="dst_right", cost="cost + cost_right")
        return roads.union(longer).aggregate(["src", "dst"], cost="min(cost)")

    return fixpoint(once, schema=roads, bound=MOST_ROADS, name="route")


def routes_in_datalog() -> Stream:
    """The same as rules; columns have the names of their variables."""
    route = datalog(DATALOG, {"road": ROADS}, bound=MOST_ROADS)["route"]
    src, dst, cost = route.schema
    return route.rename(**{src: "src", dst: "dst", cost: "cost"})


#: Time, road, its cost from then on; ``None``: it is closed.
CHANGES: list[tuple[int, str, str, int | None]] = [
    (1, "Ayr", "Bath", 4),
    (1, "Bath", "Cork", 3),
    (1, "Ayr", "Cork", 9),
    (1, "Cork", "Dover", 2),
    (1, "Dover", "Ayr", 1),
    (2, "Ayr", "Cork", 6),
    (3, "Bath", "Cork", 1),
    (4, "Ayr", "Bath", 8),
    (5, "Cork", "Dover", None),
]


class Roads:
    """The roads that are open, as what is pushed needs them: a retraction names the event that it ends."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.open: dict[tuple[str, str], tuple[int, int]] = {}

    def change(self, time: int, src: str, dst: str, cost: int | None) -> None:
        """A cost from a time on: the old event ends there, and another begins."""
        events: list[dict[str, Any]] = []
        road = {"src": src, "dst": dst}
        if (src, dst) in self.open:
            old, since = self.open.pop((src, dst))
            events.append({**road, "cost": old, "vs": since, "ve_new": time})
        if cost is not None:
            events.append({**road, "cost": cost, "vs": time, "ve_new": None})
            self.open[src, dst] = (cost, time)
        self.flow.push("road", events)


def run(query: Stream, changes: list[tuple[int, str, str, int | None]]) -> list[tuple[int, list[dict[str, Any]]]]:
    """The output at each time of a change."""
    flow = Dataflow(route=query)
    roads = Roads(flow)
    found = []
    for time in sorted({change[0] for change in changes}):
        for change in changes:
            if change[0] == time:
                roads.change(*change)
        flow.advance(time + 1)
        flow.run_until_idle()
        found.append((time, flow.output("route").to_pylist()))
    return found


def early(query: Stream) -> list[dict[str, Any]]:
    """What is said of routes from Ayr to Cork as the roads of time 1 come, one by one, and before any punctuation."""
    flow = Dataflow(route=query)
    roads = Roads(flow)
    found = []
    for change in sorted((change for change in CHANGES if change[0] == 1), key=lambda change: -(change[3] or 0)):
        roads.change(*change)
        flow.run_until_idle()
        rows = flow.output("route").to_pylist()
        found += [row for row in rows if (row["src"], row["dst"]) == ("Ayr", "Cork")]
    return found


def main() -> None:
    print("before the first punctuation, what is said is speculative:")
    for row in early(routes()):
        print(f"  {'+' if row['ve_new'] is None else '-'} from Ayr to Cork for {row['cost']}")
    steps = run(routes(), CHANGES)
    for time, rows in steps:
        print(f"time {time}: " + ", ".join(said(change) for change in CHANGES if change[0] == time))
        for row in sorted(rows, key=lambda row: (row["src"], row["dst"], row["ve_new"] is None)):
            if row["src"] == "Ayr" and row["dst"] != "Ayr":
                print(f"  {'+' if row['ve_new'] is None else '-'} from Ayr to {row['dst']} for {row['cost']}")
    same = [sorted(map(str, rows)) for _, rows in run(routes_in_datalog(), CHANGES)]
    print("the Datalog program" + DATALOG.rstrip() + "\ngives")
    print("  the same" if same == [sorted(map(str, rows)) for _, rows in steps] else "  something else")


def said(change: tuple[int, str, str, int | None]) -> str:
    _, src, dst, cost = change
    return f"{src} to {dst} " + ("is closed" if cost is None else f"costs {cost}")


if __name__ == "__main__":
    main()
