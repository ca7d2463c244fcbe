"""Draws the pictures of the documentation from the flights of the examples.

::

    python docs/images/pictures.py            # into docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

import stretto
from stretto.demo import FLIGHTS, QUERY


def draw(folder: Path) -> None:
    """Draw the longest chain of delays and the one after it as a timeline."""
    flights = pq.read_table(FLIGHTS)
    chains = stretto.match(QUERY, flights, time="sched_dep", sequence="id")
    longest = chains.take(pc.array_sort_indices(pc.list_value_length(chains["late"]), order="descending"))
    stretto.timeline(longest, row=[0, 1], label=["dep_delay", "dest"]).save(folder / "timeline.svg")


if __name__ == "__main__":
    draw(Path(*sys.argv[1:2]) if sys.argv[1:] else Path(__file__).parent)
