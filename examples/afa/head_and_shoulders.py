"""The chart pattern *head and shoulders*: figure 14 of the AFA paper.

::

    python examples/afa/head_and_shoulders.py

From p1 up to p2, down to p3 > p1, up to the head p4 > p2, down to p5 > p1, up to p6 < p4, and at last below p1. Three registers
keep p1, p2 and p4; the others are needed at the event that they belong to only.

Reads Yahoo's daily prices from ``STRETTO_DATA`` (``yhoo_daily_1996_2014.csv.gz``) where they are, else the small made-up file beside
this one.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import csv
from v_patterns import source

import stretto

#: Calendar days that the pattern may take.
WINDOW = "90 days"


def automaton() -> stretto.AFA:
    """Rises and falls are runs of days: a run's last day is the extreme."""
    afa = stretto.AFA(
        {"date": pa.date32(), "open": float, "before": float},
        register={"p1": float, "p2": float, "p4": float},
        window=WINDOW,
    )
    up, down = "e.open > e.before", "e.open <= e.before"
    afa.arc("q0", "q1", when=up, then={"p1": "e.before", "p2": "e.open"}, id="rises from p1")
    afa.arc("q1", "q1", when=up, then="p2 = e.open")
    afa.arc("q1", "q2", when=f"{down} AND e.open > r.p1", id="p2 was the left shoulder")
    afa.arc("q2", "q2", when=f"{down} AND e.open > r.p1")
    afa.arc("q2", "q3", when=up, then="p4 = e.open", id="rises from p3")
    afa.arc("q3", "q3", when=up, then="p4 = e.open")
    afa.arc("q3", "q4", when=f"{down} AND e.open > r.p1 AND r.p4 > r.p2", id="p4 was the head")
    afa.arc("q4", "q4", when=f"{down} AND e.open > r.p1")
    afa.arc("q4", "q5", when=f"{up} AND e.open < r.p4", id="rises from p5")
    afa.arc("q5", "q5", when=f"{up} AND e.open < r.p4")
    afa.arc("q5", "q6", when=f"{down} AND e.open >= r.p1", id="falls from p6")
    afa.arc("q6", "q6", when=f"{down} AND e.open >= r.p1")
    for state in ("q5", "q6"):
        afa.arc(state, "q7", when=f"{down} AND e.open < r.p1", id=f"below p1 from {state}")
    return afa.final("q7")


def days(path: Path) -> pa.Table:
    """Date, opening price, and that of the day before."""
    prices = csv.read_csv(path).select(["date", "open"])
    before = prices.column("open").combine_chunks()[:-1]
    return prices.slice(1).append_column("before", before)


def shoulders(table: pa.Table) -> pa.Table:
    """Every head with its shoulders; one that begins at each day of its first rise."""
    return stretto.match(automaton(), table, time="date")


def main() -> None:
    path = source()
    table = days(path)
    found = shoulders(table)
    print(f"{path.name}: {found.num_rows} times head and shoulders in {table.num_rows} days")
    for row in found.slice(0, 5).to_pylist():
        peaks = row["register"]
        print(
            f"  {row['start_time']} to {row['end_time']}: from {peaks['p1']:.2f} over {peaks['p2']:.2f} and {peaks['p4']:.2f}"
        )


if __name__ == "__main__":
    main()
