"""Pipeline files to spoil."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def ruled(path: str) -> str:
    """A pipeline of the rules in a file or folder, over files of events with times and users."""
    return f"""
[source]
kind = "parquet"
path = "events"

[events]
time = "t"

[[rules]]
name = "alerts"
path = "{path}"
by = ["user"]

[[sink]]
name = "alerts"
kind = "parquet"
path = "out"
"""


#: A pipeline in which every table has keys to spoil.
GOOD = '''\
[pipeline]
name = "trades"
mode = "streaming"
checkpoint = "state"
trigger = "5 seconds"

[source]
kind = "csv"
path = "trades.csv"
columns = { type = "string", ts = "timestamp", name = "string", price = "double" }
options = { sep = "," }

[events]
time = "ts"
disorder = "10 seconds"
late = "side"
late_sink = "late"

[[query]]
name = "pairs"
text = """
SELECT sold[price], bought[price] FROM trades
WHERE SELL AS sold ; BUY AS bought
PARTITION BY [name] WITHIN 5 seconds
"""
sinks = ["matches", "shown"]

[[query]]
name = "dear"
file = "dear.ceql"
sinks = "shown"

[[sink]]
name = "matches"
kind = "parquet"
path = "out/matches"

[[sink]]
name = "late"
kind = "delta"
path = "out/late"

[[sink]]
name = "shown"
kind = "console"
rows = 5

[spark]
sql.shuffle.partitions = 2
'''

TRADES = """\
type,ts,name,price
SELL,2024-01-01T00:00:01Z,INTC,80.0
SELL,2024-01-01T00:00:02Z,MSFT,101.0
BUY,2024-01-01T00:00:03Z,INTC,83.0
BUY,2024-01-01T00:00:05Z,MSFT,99.0
BUY,2024-01-01T00:00:09Z,INTC,85.0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what :data:`GOOD` needs, as the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("trades.csv").write_text(TRADES, encoding="utf-8")
    Path("dear.ceql").write_text("SELECT * FROM trades\nWHERE BUY AS b\nFILTER b[price > 90]\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Callable[..., Path]:
    """Write :data:`GOOD` with pieces replaced; every piece must be there."""

    def written(*pieces: tuple[str, str], text: str = GOOD) -> Path:
        for old, new in pieces:
            assert old in text, old
            text = text.replace(old, new, 1)
        Path("pipeline.toml").write_text(text, encoding="utf-8")
        return Path("pipeline.toml")

    return written
