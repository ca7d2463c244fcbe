"""Who could have been reached by whom: chains of contacts in a hospital, over time.

::

    python examples/dataflow/contacts.py [hours]

Badges that meet are contacts between two people. What someone carries at a time passes on with every later contact; a chain's
contacts come one after the other, and all of them within the last hour. The dataflow keeps for each chain of people the first
time at which the other one is reached: the least of the times of contact, from outside the loop or through somebody who was
reached before.

Reads ``rfid_hospital_contacts.csv.gz`` from ``STRETTO_DATA`` where it is, else the small made-up file beside this one.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from stretto.dataflow import Dataflow, Stream, fixpoint, stream

HERE = Path(__file__).parent
DATA = Path(os.environ.get("STRETTO_DATA", HERE.parents[2] / "shared" / "data"))
MINIATURE = HERE / "data" / "contacts.csv"

#: How long a contact counts, and how often punctuations come, in seconds.
WINDOW, EVERY = 3600, 600

#: No chain has more people: what is reached at first decides what comes next, so that the loop needs a bound.
MOST_PEOPLE = 1000

#: How often something is printed.
SHOWN = 1800


def source() -> Path:
    """The contacts to read."""
    real = DATA / "rfid_hospital_contacts.csv.gz"
    return real if real.is_file() else MINIATURE


def contacts_of(path: Path, first: int, length: int) -> pa.Table:
    """Contacts of some hours, in both directions: ``src``, ``dst``, ``at`` in seconds since the first one, and their lifetime."""
    table = csv.read_csv(path)
    at = pc.subtract(table.column("timestamp"), pc.min(table.column("timestamp")))
    pairs = [pa.table({"src": table.column(a), "dst": table.column(b), "at": at}) for a, b in (("i", "j"), ("j", "i"))]
    both = pa.concat_tables(pairs)
    both = both.filter(pc.and_(pc.greater_equal(both["at"], first), pc.less(both["at"], first + length)))
    both = both.sort_by([("at", "ascending"), ("src", "ascending"), ("dst", "ascending")])
    return both.append_column("vs", both["at"]).append_column("ve", pc.add(both["at"], WINDOW))


def roles_of(path: Path) -> dict[int, str]:
    """What the people do: PAT (patient), NUR (nurse), MED (doctor), ADM."""
    table = csv.read_csv(path)
    ends = (table.select([f"{end}", f"role_{end}"]).to_pydict() for end in "ij")
    return {who: role for columns in ends for who, role in zip(*columns.values(), strict=True)}


def chains() -> Stream:
    """Who, whom, and when at first."""
    contacts = stream("contacts", {"src": int, "dst": int, "at": int}, insert_only=True)

    def once(reached: Stream) -> Stream:
        later = reached.join(contacts, on={"dst": "src"}, where="at < at_right AND src != dst_right")
        onward = later.project("src", dst="dst_right", at="at_right")
        return contacts.union(onward).aggregate(["src", "dst"], at="min(at)")

    return fixpoint(once, schema=contacts, bound=MOST_PEOPLE, name="reached")


def run(contacts: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The punctuations, and what came out before each of them."""
    flow = Dataflow(reached=chains())
    for time in range(0, pc.max(contacts["at"]).as_py() + EVERY, EVERY):
        rows = contacts.filter(pc.and_(pc.greater_equal(contacts["vs"], time), pc.less(contacts["vs"], time + EVERY)))
        flow.push("contacts", rows, punctuation=time + EVERY)
        flow.run_until_idle()
        yield time + EVERY, flow.output("reached")


class Snapshot:
    """What is true at a time, of events as they come."""

    def __init__(self) -> None:
        self._events: Counter[tuple[int, int, int, int, int]] = Counter()

    def take(self, events: pa.Table) -> None:
        """A retraction takes an event away, and gives the part of it that is left."""
        for row in events.to_pylist():
            *key, ve, ve_new = row.values()
            self._events[(*key, ve)] += 1 if ve_new is None else -1
            if ve_new is not None:
                self._events[(*key, ve_new)] += 1

    def forget(self, time: int) -> None:
        """What ended before a time is never asked for again."""
        self._events = Counter({one: count for one, count in self._events.items() if count and one[4] > time})

    def at(self, time: int) -> dict[tuple[int, int], int]:
        """Who could have been reached by whom, and when at first."""
        alive = (one for one, count in self._events.items() if count > 0 and one[3] <= time < one[4])
        return {(src, dst): first for src, dst, first, _, _ in alive}


def main() -> None:
    hours = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    path = source()
    contacts = contacts_of(path, 0, hours * 3600)
    roles = roles_of(path)
    print(f"{path.name}: {contacts.num_rows // 2} contacts of {hours} hours")
    found = Snapshot()
    for time, output in run(contacts):
        found.take(output)
        now = found.at(time - 1)
        found.forget(time)
        if time % SHOWN:
            continue
        direct = contacts.filter(pc.and_(pc.less(contacts["vs"], time), pc.greater_equal(contacts["ve"], time)))
        met = len(set(zip(direct["src"].to_pylist(), direct["dst"].to_pylist(), strict=True)))
        by: dict[int, int] = defaultdict(int)
        for src, _ in now:
            by[src] += 1
        most = max(by, key=lambda who: (by[who], who), default=None)
        far = f"; from {most} ({roles[most]}) to {by[most]} people" if most is not None else ""
        print(f"  {time // 3600}:{time // 60 % 60:02}  {met:3} met, {len(now):4} reached, by chains too{far}")


if __name__ == "__main__":
    main()
