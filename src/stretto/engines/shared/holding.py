"""Matches that a run holds before it gives them: they are compared, or wait until they are decided."""

from __future__ import annotations

from stretto.budget import Budget
from stretto.errors import LimitError


class TooMany(LimitError):
    """With the matches of an event a run would hold, or look at, more than it may.

    A run knows the event by its position; who has the events says which one it is (``matching/metering.py``).

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
