"""Matches that a run holds before it gives them: they are compared, or wait until they are decided."""

from __future__ import annotations

from stretto.budget import Budget
from stretto.errors import LimitError


class TooMany(LimitError):
    """With the matches of an event a run would hold, or look at, more than it may.

    A run knows the event by its position; who has the events says which one it is (``matching/output/memory_budget.py``).

    Parameters
    ----------
    event
        Its position.
    what
        What is too much of it, beginning with a verb.
    ways
        What has less.
    budget
        How much there may be, where that is said by ``budget=``.
    """

    def __init__(self, event: int, what: str, ways: str, budget: Budget | None = None) -> None:
        self.event = event
        if budget is not None:
            what, ways = f"{what}: they go over the budget of {budget}", f"{ways}; budget= allows more"
        self.what = f"{what}\nhint: {ways}"
        super().__init__(f"the event in row {event} {self.what}")


class Patience:
    """Bounds how long a kernel that pauses now and then looks for the next match of one event.

    Parameters
    ----------
    steps
        After how many steps it pauses.
    what
        What is said of the event, beginning with a verb.
    ways
        What takes fewer steps.
    """

    #: The next match is sought for so many pauses, which take some seconds.
    PAUSES = 32

    def __init__(self, steps: int, what: str, ways: str) -> None:
        self._steps, self._what, self._ways = steps, what, ways
        self._at, self._pauses = (-1, -1), 0

    def go_on(self, event: int, found: int) -> None:
        """Note a pause at the event in this position, which has completed so many matches.

        Raises
        ------
        TooMany
            There were too many pauses since the last match.
        """
        if (event, found) != self._at:
            self._at, self._pauses = (event, found), 0
        self._pauses += 1
        if self._pauses > self.PAUSES:
            raise TooMany(event, f"{self._what} in {self._steps * self.PAUSES:,} steps", self._ways)
