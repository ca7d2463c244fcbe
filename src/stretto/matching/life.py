"""Where a matcher stands: between batches, inside one, or behind the last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stretto.errors import EngineError, OptionError, SnapshotError


class Life:
    """What a matcher may be asked for now.

    Parameters
    ----------
    what
        What it is called in errors.
    """

    def __init__(self, what: str = "matcher") -> None:
        self._what = what
        self.inside = False  #: whether a batch is being read, or was left half read
        self.finished = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around the reading of a batch: who leaves it by an error, or does not read it to its end, has stopped inside."""
        self.inside = True
        yield
        self.inside = False

    def refuse_inside(self) -> None:
        """Raise an :class:`EngineError` inside a batch."""
        if self.inside:
            raise EngineError(
                f"this {self._what} was stopped in the middle of a batch; restore a snapshot or start a new one"
            )

    def refuse_finished(self) -> None:
        """Raise an :class:`OptionError` behind the last batch."""
        if self.finished:
            raise OptionError(f"the {self._what} is finished; start a new one, or restore a snapshot")

    def refuse_snapshot(self) -> None:
        """Raise a :class:`SnapshotError` inside a batch."""
        if self.inside:
            raise SnapshotError(f"the {self._what} was stopped in the middle of a batch: its state is not at an event")
