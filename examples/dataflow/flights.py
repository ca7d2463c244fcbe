"""Which airports can be reached from one airport in a day, and how early, as delays become known.

::

    python examples/dataflow/flights.py [airport]

A chain of flights leaves time to change between two of them. At midnight all that is known is the plan of the day; when an
aircraft has left, its flight is retracted and comes again with the time at which it will arrive, or not at all if it was cancelled.
The dataflow revises what it said: an arrival gets later or earlier, an airport is not reached any more.

The flights of 2013 that come with stretto are those from New York. An aircraft that leaves New York again must have come back: a
flight back is inferred, as long as the one out, after a turn-around and in time for the next departure. Times are New York's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow.compute as pc
import pyarrow.parquet as pq

from stretto.dataflow import Dataflow, Stream, fixpoint, stream

FLIGHTS = Path(__file__).parents[1] / "flights" / "flights2013.parquet"
NEW_YORK = ZoneInfo("America/New_York")

#: In minutes: to change from one flight to another, on the ground between two flights of an aircraft, and to taxi.
CONNECTION, TURN_AROUND, TAXI = 45, 35, 25

DAY = date(2013, 7, 10)  # of summer, with storms in the afternoon

#: No chain of a day has more flights: what is reached first decides what can be caught, so that the loop needs a bound.
MOST_FLIGHTS = 50

#: How often results are asked for, and the last time, in minutes.
EVERY, END = 60, 24 * 60


class Flight(NamedTuple):
    """Times are minutes since midnight."""

    number: int
    origin: str
    dest: str
    planned: tuple[int, int]  #: departure and arrival
    flown: tuple[int, int] | None  #: none: it was cancelled


def flights_of(day: date) -> list[Flight]:
    """The flights from New York on a day, and those back that they imply."""
    table = pq.read_table(FLIGHTS)
    midnight = datetime.combine(day, time(), NEW_YORK)
    of_day = pc.and_(
        pc.greater_equal(table["sched_dep"], midnight),
        pc.less(table["sched_dep"], datetime.combine(day, time(23, 59), NEW_YORK)),
    )
    found = []
    legs: dict[str, list[Flight]] = {}
    for row in table.filter(of_day).to_pylist():
        one = _out(row, midnight)
        if one is not None:
            found.append(one)
            legs.setdefault(row["tailnum"], []).append(one)
    for aircraft in legs.values():
        for leg, following in zip(aircraft, aircraft[1:], strict=False):
            back = _back(leg, following)
            if back is not None:
                found.append(back)
    return found


def _out(row: dict[str, Any], midnight: datetime) -> Flight | None:
    """A flight from New York; ``None``: it was diverted, or was cancelled and nobody knows how long it would have taken."""
    if row["air_time"] is None and row["type"] != "CANCELLED":
        return None
    planned = int((row["sched_dep"] - midnight).total_seconds()) // 60
    if row["air_time"] is None:
        usual = 35 + row["distance"] // 8
        return Flight(row["id"], row["origin"], row["dest"], (planned, planned + usual), None)
    departure = planned + row["dep_delay"]
    arrival = departure + row["air_time"] + TAXI
    plan = (planned, max(arrival - row["arr_delay"], planned + 1))
    return Flight(row["id"], row["origin"], row["dest"], plan, (departure, arrival))


def _back(leg: Flight, following: Flight) -> Flight | None:
    """The flight of an aircraft between two from New York, if there is time for one."""
    if leg.flown is None or following.flown is None:
        return None

    found = []
    least = 0
    for out, following_departure in ((leg.planned, following.planned[0]), (leg.flown, following.flown[0])):
        departure = max(out[1] + TURN_AROUND, least)
        arrival = departure + out[1] - out[0]
        if arrival + TURN_AROUND > following_departure:
            return None
        found.append((departure, arrival))
        least = departure
    planned, flown = found
    return Flight(-leg.number, leg.dest, following.origin, planned, flown)


def reached() -> Stream:
    """Airports, and the earliest arrival at each."""
    starts = stream("starts", {"airport": str, "at": int}, insert_only=True)
    flights = stream("flights", {"number": int, "origin": str, "dest": str, "departure": int, "arrival": int})

    def once(reached: Stream) -> Stream:
        caught = reached.join(flights, on={"airport": "origin"}, where=f"departure >= at + {CONNECTION}")
        return starts.union(caught.project(airport="dest", at="arrival")).aggregate("airport", at="min(at)")

    return fixpoint(once, schema=starts, bound=MOST_FLIGHTS, name="reached")


def changes(flights: list[Flight]) -> list[dict[str, Any]]:
    """The plan from time 0 on; what was flown, from departure on; in the order in which it becomes known."""
    found = []
    for one in flights:
        event = {"number": one.number, "origin": one.origin, "dest": one.dest}
        plan = {**event, "departure": one.planned[0], "arrival": one.planned[1], "vs": 0, "ve_new": None}
        found.append((0, plan))
        known = one.planned[0] if one.flown is None else max(one.flown[0], 1)
        found.append((known, {**plan, "ve_new": known}))
        if one.flown is not None:
            departure, arrival = one.flown
            found.append((known, {**plan, "departure": departure, "arrival": arrival, "vs": known}))
    found.sort(key=lambda change: change[0])
    return [{**change, "known": known} for known, change in found]


def run(flights: list[Flight], airport: str, start: int) -> Iterator[tuple[int, dict[str, int]]]:
    """At each hour the airports that are reached in the end, as far as is known then, with the time of arrival."""
    flow = Dataflow(reached=reached())
    flow.push("starts", [{"airport": airport, "at": start - CONNECTION, "vs": 0}])
    pending = changes(flights)
    alive: Counter[tuple[str, int]] = Counter()
    for now in range(0, END, EVERY):
        due = [change for change in pending if change["known"] <= now]
        pending = pending[len(due) :]
        flow.push("flights", [{name: value for name, value in change.items() if name != "known"} for change in due])
        flow.advance(now + 1)
        flow.run_until_idle()
        for row in flow.output("reached").to_pylist():
            if row["ve"] is None:  # what has an end has ended by now
                alive[row["airport"], row["at"]] += 1 if row["ve_new"] is None else -1
        yield now, dict((+alive).keys())


def clock(minute: int) -> str:
    return f"{minute // 60 % 24:02}:{minute % 60:02}" + ("+1" if minute >= 24 * 60 else "")


def main() -> None:
    airport = sys.argv[1] if len(sys.argv) > 1 else "BOS"
    flights = flights_of(DAY)
    back = sum(one.number < 0 for one in flights)
    print(f"{DAY}: {len(flights)} flights, {back} of them back to New York; from {airport} after 07:00")
    before: dict[str, int] = {}
    first: dict[str, int] | None = None
    for now, there in run(flights, airport, start=7 * 60):
        first = there if first is None else first
        later = sum(there[one] > at for one, at in before.items() if one in there)
        earlier = sum(there[one] < at for one, at in before.items() if one in there)
        lost = sorted(set(before) - set(there))
        print(
            f"  known at {clock(now)}: {len(there)} airports; since the hour before {later} later, {earlier} earlier"
            + (f", lost {' '.join(lost)}" if lost else "")
        )
        before = there
    assert first is not None
    worst = sorted(first, key=lambda one: before.get(one, END * 2) - first[one], reverse=True)[:5]
    print("arrival as planned, and in the end:")
    for one in worst:
        print(f"  {one} {clock(first[one])}, {clock(before[one]) if one in before else 'not on this day'}")


if __name__ == "__main__":
    main()
