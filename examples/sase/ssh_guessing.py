"""Addresses that guess passwords: several fail, none is accepted, and the connection ends.

::

    python examples/sase/ssh_guessing.py

Query 1 of the SASE+ paper in another trade: what did not happen in between is part of the pattern. Reads the log of an sshd
from ``STRETTO_DATA`` (``auth_log_ssh.csv.gz``) where it is, else the small made-up one beside this file.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

import stretto

HERE = Path(__file__).parent
DATA = Path(os.environ.get("STRETTO_DATA", HERE.parents[2] / "shared" / "data"))
MINIATURE = HERE / "data" / "ssh.csv"

QUERY = """
PATTERN SEQ(FAILED_PASSWORD+ tries[], ~(ACCEPTED login), (MAX_AUTH_ATTEMPTS|CONN_CLOSED|DISCONNECT) gone)
WHERE skip_till_next_match(tries[], login, gone) {
  [src_ip]
  and tries.LEN >= 3 }
WITHIN 10 minutes
RETURN 'guessing' AS type, tries.LEN AS failures, tries[1].user AS first, tries[tries.LEN].user AS last
OUTPUT non_overlap
"""


def source() -> Path:
    """The log to read."""
    real = DATA / "auth_log_ssh.csv.gz"
    return real if real.is_file() else MINIATURE


def guessing(path: Path) -> pa.Table:
    """The series of failures in a log, a row each."""
    events = csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    return stretto.match(QUERY, events, type="event", time="timestamp", time_unit="s")


def main() -> None:
    path = source()
    found = guessing(path)
    print(f"{path.name}: {found.num_rows} series from {len(found.column('src_ip').unique())} addresses")
    worst = found.sort_by([("failures", "descending")]).slice(0, 5)
    for row in worst.to_pylist():
        seconds = row["end_time"] - row["start_time"]
        print(
            f"  {row['src_ip']}: {row['failures']} failures in {seconds} s, first for {row['first']}, last for {row['last']}"
        )


if __name__ == "__main__":
    main()
