"""A progress bar for calls that take long."""

from __future__ import annotations

import time as clock
from typing import Any

from stretto.matching.output.match_table import CHUNK


class Progress:
    """A progress bar for long calls where somebody looks: it appears after a second, in a terminal or notebook."""

    def __init__(self, wanted: bool | None, total: int) -> None:
        self.wanted = wanted
        self.total = total
        self.bar: Any = None

    def __enter__(self) -> Any:
        self.began = clock.monotonic()
        return self.report if self.wanted is not False and self.total > CHUNK else lambda done: None

    def report(self, done: int) -> None:
        if self.bar is None:
            if clock.monotonic() - self.began < 1.0:
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

            console = Console(stderr=True)
            if not (self.wanted or console.is_terminal or console.is_jupyter):
                self.wanted = False
                self.began = float("inf")
                return
            self.bar = Progress(
                "matching",
                BarColumn(),
                MofNCompleteColumn(),
                "events",
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            self.bar.start()
            self.task = self.bar.add_task("", total=self.total)
        self.bar.update(self.task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
