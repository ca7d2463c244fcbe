"""The examples with SASE+ queries, on their own small files and on real data."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.programs import shown

FOLDER = Path(__file__).parents[2] / "examples" / "sase"


def test_guessing_on_the_small_file(tmp_path: Path) -> None:
    """Who logs in after all, fails twice only, or takes his time, is not among them."""
    assert shown(FOLDER / "ssh_guessing.py", data=tmp_path) == [
        "ssh.csv: 2 series from 1 addresses",
        "  192.0.2.7: 4 failures in 41 s, first for root, last for oracle",
        "  192.0.2.7: 3 failures in 10 s, first for pi, last for ubuntu",
    ]


def test_trend_on_the_small_file(tmp_path: Path) -> None:
    """Of BBB's volumes none drops within a minute."""
    assert shown(FOLDER / "stock_trend.py", data=tmp_path) == [
        "stocks.csv: 1 matches; of those that overlap the first, 1",
        "  AAA: 10.0 to 10.05 in 4 trades, 4.0 s; volume 12000, then 500",
    ]


def test_guessing_on_real_data(data: Path) -> None:
    series = guessing_by_hand(data / "auth_log_ssh.csv.gz")
    assert len(series) == 125
    assert len(set(series)) == 45
    assert shown(FOLDER / "ssh_guessing.py", data=data)[0] == "auth_log_ssh.csv.gz: 125 series from 45 addresses"


def guessing_by_hand(path: Path) -> list[str]:
    """The address of each series: at every end of a connection, what has failed since the last series."""
    failed: dict[str, list[int]] = defaultdict(list)
    accepted: dict[str, bool] = defaultdict(bool)
    found = []
    for event in rows(path):
        kind, address, time = event["event"], event["src_ip"], int(event["timestamp"])
        if not address:
            continue
        if kind == "FAILED_PASSWORD":
            failed[address].append(time)
            accepted[address] = False
        elif kind == "ACCEPTED":
            accepted[address] = True
        elif kind in ("MAX_AUTH_ATTEMPTS", "CONN_CLOSED", "DISCONNECT"):
            recent = [one for one in failed[address] if time - one <= 600]
            if len(recent) >= 3 and not accepted[address]:
                found.append(address)
                failed[address] = []
    return found


def test_trend_on_real_data(data: Path) -> None:
    assert trends_by_hand(data / "stocks_wpi_2004.csv.gz") == 10648
    last = "stocks_wpi_2004.csv.gz: 10648 matches; of those that overlap the first, 132"
    assert shown(FOLDER / "stock_trend.py", data=data)[0] == last


def trends_by_hand(path: Path) -> int:
    """How many matches there are: each start makes one run, which takes every price above its average."""
    runs: dict[str, list[Run]] = defaultdict(list)
    found = 0
    for event in rows(path):
        time, price, volume = int(event["stock_time"]), float(event["price"]), int(event["volume"])
        own = runs[event["name"]] = [run for run in runs[event["name"]] if time - run.start <= 60_000]
        for run in own:
            found += run.count >= 3 and volume < 0.8 * run.volume
            if price > run.total / run.count:
                run.total, run.count, run.volume = run.total + price, run.count + 1, volume
        if volume > 10_000:
            own.append(Run(time, price, 1, volume))
    return found


@dataclass
class Run:
    """Its first event's time, the sum and number of its prices, and its last volume."""

    start: int
    total: float
    count: int
    volume: int


def rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
