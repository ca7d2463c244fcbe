"""The demo, its data and its picture."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

import stretto
from stretto import demo

pytestmark = [pytest.mark.spark]

CHAINS = 1352


@pytest.fixture(scope="module")
def flights() -> Any:
    return pq.read_table(demo.FLIGHTS)


def test_data(flights: Any) -> None:
    assert flights.num_rows == 336_776
    kinds = flights.column("type").value_counts().to_pylist()
    assert {row["values"]: row["counts"] for row in kinds} == {
        "ON_TIME": 255_607,
        "LATE": 72_914,
        "CANCELLED": 8_255,
    }


def test_chains_by_regular_expression(flights: Any) -> None:
    """The query's meaning, told another way: a regular expression over each aircraft's row of letters."""
    aircraft = defaultdict(list)
    for row in flights.select(["id", "type", "sched_dep", "tailnum"]).to_pylist():
        if row["tailnum"] is not None:
            aircraft[row["tailnum"]].append(row)
    expected = set()
    for rows in aircraft.values():
        letters = "".join(row["type"][0] for row in rows)
        for found in re.finditer("(?=(OLL+O))", letters):
            chain = rows[found.start() : found.end(1)]
            if (chain[-1]["sched_dep"] - chain[0]["sched_dep"]).total_seconds() <= 36 * 3600:
                expected.add(tuple(row["id"] for row in chain))
    found_chains = stretto.match(demo.QUERY, flights, time="sched_dep", sequence="id").to_pylist()
    assert {tuple(leg["id"] for leg in demo.legs(chain)) for chain in found_chains} == expected
    assert len(found_chains) == len(expected) == CHAINS


def test_run(spark: Any, tmp_path: Path) -> None:
    console = Console(record=True, width=140, quiet=True)
    picture = tmp_path / "new" / "chain.png"
    console.quiet = False
    with console.capture() as capture:
        assert demo.run(picture, console=console) == CHAINS
    text = capture.get()
    for phase in ("compiling what the query needs, once", "starting Spark", "matching 336,776 flights on Spark"):
        assert re.search(rf"^{phase}.* …\n(.*\n)*?{phase}.*: \d+\.\d s$", text, re.MULTILINE), (
            "a log has its begin and end"
        )
    assert "1,352 chains. The longest:" in text
    first = next(line for line in text.splitlines() if "N946UW" in line)
    assert "LGA→BOS\u00a0+162" in first
    assert picture.read_bytes().startswith(b"\x89PNG")
