"""V-patterns after a large drop, over prices that come late and are corrected: queries Q1 and Q2 of the AFA paper.

::

    python examples/afa/v_patterns.py

Q1: a drop, then k V-patterns (downticks, then upticks) with as many upticks as downticks in all. Q2: how many V-patterns it takes
until the price from before the drop is reached again; nobody knows that number in advance.

Reads Yahoo's daily prices from ``STRETTO_DATA`` (``yhoo_daily_1996_2014.csv.gz``; opening prices of 1996 to 2009, as the paper)
where they are, else the small made-up file beside this one. Some days come late, some come with a wrong price first. Every batch
ends with a punctuation: what lies before it is final.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import stretto

HERE = Path(__file__).parent
DATA = Path(os.environ.get("STRETTO_DATA", HERE.parents[2] / "shared" / "data"))
MINIATURE = HERE / "data" / "prices.csv"

#: A drop in dollars that counts as large, and how many days a pattern may take.
DROP, DAYS = 0.05, 60


def source() -> Path:
    """The prices to read."""
    real = DATA / "yhoo_daily_1996_2014.csv.gz"
    return real if real.is_file() else MINIATURE


def ticks(path: Path) -> pa.Table:
    """Day number, opening price and its change; days without a change are no ticks."""
    prices = csv.read_csv(path).select(["date", "open"])
    prices = prices.filter(pc.less(prices.column("date"), pa.scalar(date(2010, 1, 1))))
    price = prices.column("open").combine_chunks()
    change = pc.subtract(price[1:], price[:-1])
    table = pa.table({"price": price[1:], "change": change})
    table = table.filter(pc.not_equal(table.column("change"), 0))
    return table.add_column(0, "day", pa.array(range(table.num_rows), pa.int64()))


def q1(k: int) -> stretto.AFA:
    """The automaton of figure 3."""
    afa = stretto.AFA({"price": float, "change": float}, register={"balance": int, "found": int}, window=DAYS)
    afa.arc("q0", "q1", when=f"e.change < -{DROP}", id="a0")
    afa.arc("q1", "q1", when="e.change < 0", then="balance = r.balance + 1", id="a1")
    afa.arc("q1", "q2", when="e.change < 0", then="balance = r.balance + 1", id="a2")
    afa.arc("q2", "q2", when="e.change > 0 AND r.balance > 1", then="balance = r.balance - 1", id="a3")
    closes = "e.change > 0 AND r.balance = 1"
    afa.arc("q2", "q1", when=f"{closes} AND r.found < {k - 1}", then="(0, r.found + 1)", id="a4")
    afa.arc("q2", "q3", when=f"{closes} AND r.found = {k - 1}", then="(0, r.found + 1)", id="a5")
    return afa.final("q3")


def q2() -> stretto.AFA:
    """The register keeps the price before the drop, and counts."""
    afa = stretto.AFA({"price": float, "change": float}, register={"before": float, "found": int}, window=DAYS)
    afa.arc("q0", "q1", when=f"e.change < -{DROP}", then="before = e.price - e.change", id="drop")
    afa.arc("q1", "down", when="e.change < 0")
    afa.arc("down", "down", when="e.change < 0")
    afa.arc("down", "up", when="e.change > 0 AND e.price < r.before")
    afa.arc("up", "up", when="e.change > 0 AND e.price < r.before")
    afa.arc("up", "down", when="e.change < 0", then="found = r.found + 1")
    for state in ("down", "up"):
        afa.arc(state, "back", when="e.change > 0 AND e.price >= r.before", then="found = r.found + 1")
    return afa.final("back")


def disordered(table: pa.Table, seed: int, late: int = 10) -> Iterator[tuple[pa.Table, int]]:
    """Batches with a column ``sign``, and after each the time of a punctuation.

    One day in twenty comes up to ``late`` days late. One in fifty comes with a price that is a dollar too high, and is corrected
    as many days after: a retraction of the wrong event, directly followed by the right one.
    """
    chance = random.Random(seed)
    arrivals: list[tuple[float, list[dict[str, float]]]] = []
    for row in table.to_pylist():
        at = float(row["day"])
        if chance.random() < 0.02:
            wrong = {**row, "price": row["price"] + 1, "change": row["change"] + 1}
            arrivals.append((at, [{**wrong, "sign": 1}]))
            right = [{**wrong, "sign": -1}, {**row, "sign": 1}]
            arrivals.append((at + late + 0.5, right))
        else:
            delay = chance.randint(1, late) + 0.5 if chance.random() < 0.05 else 0
            arrivals.append((at + delay, [{**row, "sign": 1}]))
    arrivals.sort(key=lambda arrival: arrival[0])
    for first in range(0, table.num_rows, 250):
        due = [rows for at, rows in arrivals if first <= at < first + 250]
        if first + 250 >= table.num_rows:
            due = [rows for at, rows in arrivals if at >= first]
        batch = pa.Table.from_pylist([row for rows in due for row in rows])
        yield batch, first + 250 - late - 1


def run(afa: stretto.AFA, batches: Iterator[tuple[pa.Table, int]]) -> Iterator[tuple[pa.Table, int]]:
    """The signed output of each batch, and up to where all output is final."""
    matcher = stretto.Matcher(afa, time="day", sign="sign")
    for batch, punctuation in batches:
        changes = matcher.push(batch)
        matcher.advance(punctuation)
        yield changes, matcher.punctuation


def main() -> None:
    path = source()
    table = ticks(path)
    print(f"{path.name}: {table.num_rows} ticks")
    for name, afa in (("Q1", q1(2)), ("Q2", q2())):
        print(f"{name}, in order: {stretto.match(afa, table, time='day').num_rows} matches")
        steps = list(run(afa, disordered(table, seed=1)))
        signs = [sign for changes, _ in steps for sign in changes.column("sign").to_pylist()]
        given, taken = signs.count(1), signs.count(-1)
        changes, final = steps[-1]
        print(f"{name}, as they come: {given} given, {taken} taken back, {given - taken} remain; final to day {final}")
        for row in changes.slice(0, 3).to_pylist():
            print(f"  {row['sign']:+d} days {row['start_time']} to {row['end_time']}: {row['register']}")


if __name__ == "__main__":
    main()
