"""A price that rises under a high volume, and then a trade of far less volume: query 3 of the SASE+ paper.

::

    python examples/sase/stock_trend.py

Reads the stock trace from ``STRETTO_DATA`` (``stocks_wpi_2004.csv.gz``) where it is, else the small made-up one beside this
file. Volumes are higher and windows shorter than in the paper, because a stock is traded several times a second here.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

import stretto

HERE = Path(__file__).parent
DATA = Path(os.environ.get("STRETTO_DATA", HERE.parents[2] / "shared" / "data"))
MINIATURE = HERE / "data" / "stocks.csv"

PATTERN = """
PATTERN SEQ((BUY|SELL)+ a[], (BUY|SELL) b)
WHERE skip_till_next_match(a[], b) {
  [name]
  and a[1].volume > 10000
  and a[i].price > avg(a[..i-1].price)
  and a.LEN >= 3
  and b.volume < 80% * a[a.LEN].volume }
WITHIN 1 minute
"""

#: Of those that overlap the first, as an event of its own.
TREND = f"""{PATTERN}
RETURN 'trend' AS type, a[1].price AS low, max(a[].price) AS high, a.LEN AS trades, a[1].volume AS before, b.volume AS after
OUTPUT non_overlap
"""


def source() -> Path:
    """The trace to read."""
    real = DATA / "stocks_wpi_2004.csv.gz"
    return real if real.is_file() else MINIATURE


def matches(path: Path) -> int:
    """How many matches there are, overlapping ones included: they are counted, not listed."""
    found = stretto.match(PATTERN, csv.read_csv(path), time="stock_time", time_unit="ms", output="summary")
    return sum(found.column("matches").to_pylist())


def trends(path: Path) -> pa.Table:
    """The trends in a trace, a row each."""
    return stretto.match(TREND, csv.read_csv(path), time="stock_time", time_unit="ms")


def main() -> None:
    path = source()
    found = trends(path)
    print(f"{path.name}: {matches(path)} matches; of those that overlap the first, {found.num_rows}")
    for row in found.slice(0, 5).to_pylist():
        seconds = (row["end_time"] - row["start_time"]) / 1000
        print(
            f"  {row['name']}: {row['low']} to {row['high']} in {row['trades']} trades, {seconds:.1f} s; "
            f"volume {row['before']}, then {row['after']}"
        )


if __name__ == "__main__":
    main()
