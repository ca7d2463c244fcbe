"""Showing how a pipeline goes: a table that changes in a terminal, lines of a log elsewhere. Both on standard error."""

from __future__ import annotations

import datetime as dt
import sys
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from stretto.pipelines.updates import Update


class Display(Protocol):
    """Takes updates inside a ``with`` block."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __call__(self, update: Update) -> None: ...


def display(console: Console | None = None) -> Display:
    """The display that fits where standard error goes."""
    console = console or Console(stderr=True)
    return LiveDisplay(console) if console.is_terminal else LogDisplay(console)


class LogDisplay:
    """A line for each step, with the time of day."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> LogDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, update: Update) -> None:
        if not update.step:
            return
        state = "" if update.state == "running" and update.line else update.state
        line = ", ".join(filter(None, [state, update.line]))
        now = dt.datetime.now().strftime("%H:%M:%S")
        self.console.print(f"{now} {update.name}: {line}", markup=False, highlight=False, soft_wrap=True)


_MARKS = {"waiting": "·", "done": "✓", "stopped": "■", "failed": "✗"}
_STYLES = {"waiting": "dim", "running": "cyan", "done": "green", "stopped": "yellow", "failed": "bold red"}


class LiveDisplay:
    """A row for each part of the pipeline."""

    def __init__(self, console: Console) -> None:
        self.updates: dict[str, Update] = {}
        # What the console sink prints stays above the table; where standard output is a file, it goes there.
        self.live = Live(console=console, refresh_per_second=4, redirect_stdout=sys.stdout.isatty())
        self.spinner = Spinner("dots", style="cyan")

    def __enter__(self) -> LiveDisplay:
        self.live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.__exit__(kind, error, trace)

    def __call__(self, update: Update) -> None:
        self.updates[update.name] = update
        self.live.update(self.table())

    def table(self) -> Table:
        """All parts, as they stand."""
        grid = Table.grid(padding=(0, 1))
        for update in self.updates.values():
            mark = self.spinner if update.state == "running" else Text(_MARKS[update.state], _STYLES[update.state])
            grid.add_row(mark, Text(update.name, _STYLES[update.state]), Text(update.line))
        return grid
