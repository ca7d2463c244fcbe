"""How a pipeline's progress is shown."""

from __future__ import annotations

import io
import re

from rich.console import Console

from stretto.pipelines import Update
from stretto.pipelines.updates import LiveDisplay, LogDisplay, display

UPDATES = [
    Update("pairs", "waiting", step=False),
    Update("pairs", "running"),
    Update("pairs", "running", "3 of [8] tasks", step=False),
    Update("bad records of [x]", "running", "batch 1: 7 records, 2 bad"),
    Update("pairs", "done", "2 matches to out"),
    Update("bad records of [x]", "stopped", "1 batch, 2 bad records"),
]


def shown(terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80, color_system=None)
    with display(console) as show:
        assert isinstance(show, LiveDisplay if terminal else LogDisplay)
        for update in UPDATES:
            show(update)
    return out.getvalue()


def test_lines_of_a_log() -> None:
    lines = shown(terminal=False).splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d ", line) for line in lines)
    assert [line[9:] for line in lines] == [
        "pairs: running",
        "bad records of [x]: batch 1: 7 records, 2 bad",
        "pairs: done, 2 matches to out",
        "bad records of [x]: stopped, 1 batch, 2 bad records",
    ]


def test_a_table_in_a_terminal() -> None:
    text = re.sub(r"\x1b\[[0-9?]*[A-Za-z]", "", shown(terminal=True))
    last = [line.split() for line in text.splitlines()[-2:]]
    assert last == [
        ["✓", "pairs", "2", "matches", "to", "out"],
        ["■", "bad", "records", "of", "[x]", "1", "batch,", "2", "bad", "records"],
    ]


def test_a_failure_is_seen() -> None:
    out = io.StringIO()
    show = LogDisplay(Console(file=out, width=80))
    try:
        with show:
            show(Update("pairs", "failed", "no space left"))
            raise ValueError
    except ValueError:
        pass
    assert out.getvalue()[9:] == "pairs: failed, no space left\n"
