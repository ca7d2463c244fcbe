"""What a pipeline that runs tells: how its parts stand, and why one failed.

Showing how a pipeline goes: a table that changes in a terminal, lines of a log elsewhere. Both on standard error.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from stretto.errors import DataError, EngineError, OptionError, SnapshotError

#: Seconds between two looks at what Spark does.
LOOK = 0.5


@dataclass(frozen=True)
class Update:
    """How one part of a pipeline stands.

    Parameters
    ----------
    name
        A query, or what else runs.
    state
        ``"waiting"``, ``"running"``, ``"done"``, ``"stopped"`` or ``"failed"``.
    line
        What there is to say.
    step
        Whether something has come to an end, and not only a number has changed.
    """

    name: str
    state: str
    line: str = ""
    step: bool = True


Report = Callable[[Update], None]


@contextmanager
def failures_named(name: str, where: str = "") -> Iterator[None]:
    """Spark's errors, and those of checkpoints, as ours, with the part that failed and the line that says why.

    ``where`` the part stands in the pipeline's file, with a colon behind; our own errors of data and options show it as well.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise EngineError(f"{where}{name}: {reason(error)}") from error
    except SnapshotError as error:  # of a checkpoint that is another query's
        raise EngineError(f"{where}{name}: {error}") from error
    except (DataError, OptionError) as error:
        if not where or type(error) not in (DataError, OptionError):  # others have a place
            raise
        raise type(error)(f"{where}{name}: {error}") from error


def off_told(name: str, number: int) -> str:
    """What a warning says of rules that were switched off in the tasks of a batch, or in buckets of a stream."""
    times = "time" if number == 1 else "times"
    return (
        f"rules '{name}': {number:,} {times} a rule was switched off because it went over its limit; rows with the column "
        "'disabled' say which, and why"
    )


def reason(error: BaseException) -> str:
    """Why Spark failed, without its stack: what a Python function raised last, or else the first line."""
    text = re.sub(r"\AAn error occurred while calling .*\n: ", "", str(error))
    trace = text.rfind("Traceback (most recent call last)")
    lines = text[max(trace, 0) :].splitlines()
    if trace >= 0:
        # The frames are indented; what was raised is not, and may have several lines.
        lines = lines[1:]
        while lines and (not lines[0].strip() or lines[0].startswith(" ")):
            lines.pop(0)
    told: list[str] = []
    for line in lines:
        if told and (not line.strip() or line.lstrip().startswith(("SQLSTATE", "at "))):
            break
        if line.strip():
            told.append(line)
        if trace < 0 and told:
            break
    return re.sub(r"^stretto\.errors\.\w+: ", "", "\n".join(told)) or error.__class__.__name__


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
