"""A run around another one, which finds the matches: what both say is said here once."""

from __future__ import annotations

import pyarrow as pa

from stretto.engines.api import Run


class AroundRun:
    """What a :class:`~stretto.engines.api.Run` answers for the run inside of it.

    Parameters
    ----------
    run
        The run inside.
    """

    counts = False
    run: Run

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def rows(self) -> int:
        """How many rows it was given."""
        return self.run.rows

    @rows.setter
    def rows(self, rows: int) -> None:
        self.run.rows = rows

    @property
    def broken(self) -> bool:
        """Whether it was stopped in the middle of a batch."""
        return self.run.broken

    @property
    def late_policy(self) -> str:
        """What happens to a row that comes too late."""
        return self.run.late_policy

    @property
    def late(self) -> int:
        """How many rows came too late."""
        return self.run.late

    def check(self, table: pa.Table) -> None:
        """Raise what :meth:`advance` would raise for these rows, and change nothing."""
        self.run.check(table)

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what was read and what is held."""
        return self.run.stats | {"bytes": self.nbytes}

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        raise NotImplementedError
