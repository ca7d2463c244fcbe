"""The options of continuous queries."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stretto.errors import OptionError, suggestion
from stretto.times import SECONDS

__all__ = ["BUCKETS", "METRICS", "Continuous", "microseconds_of"]

#: Into how many buckets keys are hashed unless the caller says otherwise. It belongs to the state: not to be changed by what
#: machine a query runs on.
BUCKETS = 64


#: The name of the observation that carries a query's counts; a hash of the query follows.
METRICS = "stretto"


@dataclass(frozen=True)
class Continuous:
    """The options of a continuous query, as :func:`stretto.spark.match` takes them."""

    watermark: str | None = None
    disorder: str = "sort"
    late: str = "drop"
    event_id: str | None = None
    buckets: int | None = None

    def check(self) -> None:
        """Raise an :class:`OptionError` for what cannot be."""
        if self.disorder == "speculate":
            raise OptionError(
                "disorder='speculate' needs an engine that revises its output, and on Spark queries run on tECS or NFAb, which "
                "read events in order: use disorder='sort', or for SASE+ in one process stretto.Matcher(…, disorder='speculate')"
            )
        if self.disorder != "sort":
            raise OptionError(f"disorder={self.disorder!r}: expected 'sort' or 'speculate'")
        if self.late not in ("drop", "error", "side"):
            raise OptionError(f"late={self.late!r}: expected 'drop', 'error' or 'side'")
        if self.buckets is not None and not 1 <= self.buckets < 2**62:
            raise OptionError(f"buckets={self.buckets}: give a positive number, or None for {BUCKETS}")


_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week")


def microseconds_of(delay: str) -> int:
    """A delay such as ``10 seconds`` or ``1 hour 30 minutes``."""
    text = delay.strip().lower()
    found = re.findall(r"(\d+)\s*([a-z]+)", text)
    if not found or re.sub(r"(\d+)\s*([a-z]+)|\s", "", text):
        raise OptionError(f"watermark={delay!r}: expected a number and a unit, such as '10 seconds'")
    total = 0
    for number, name in found:
        unit = name.removesuffix("s")
        if unit not in _UNITS:
            raise OptionError(
                f"watermark={delay!r}: '{name}' is no unit; {suggestion(name, _UNITS, kind='unit') or 'try seconds'}"
            )
        total += int(number) * int(SECONDS[unit] * 10**6)
    return total
