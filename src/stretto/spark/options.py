"""The options of continuous queries."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

from stretto.errors import OptionError, suggestion
from stretto.matching.reorder import check_span
from stretto.times import SECONDS

#: Into how many buckets keys are hashed unless the caller says otherwise. It belongs to the state: not to be changed by what
#: machine a query runs on.
BUCKETS = 64


#: The name of the observation that carries a query's counts; a hash of the query follows.
METRICS = "stretto"


@dataclass(frozen=True)
class Continuous:
    """The options of a continuous query, as :func:`stretto.spark.match` takes them."""

    disorder: str | None = None
    late: str = "drop"
    event_id: str | None = None
    buckets: int | None = None
    #: How far answers go ahead of what is certain.
    speculation: int | float | dt.timedelta = 0
    #: The column that says whether a row takes an event back.
    sign: str | None = None
    #: Whether changes of patterns that are late hold from the watermark on.
    changes_now: bool = False

    @classmethod
    def of(
        cls,
        disorder: str | dt.timedelta | None,
        late: str,
        event_id: str | None = None,
        buckets: int | None = None,
        *,
        speculation: Any = 0,
        sign: str | None = None,
    ) -> Continuous:
        """The options of a call, checked.

        Raises
        ------
        OptionError
            An option does not fit, or cannot be on Spark.
        """
        if not isinstance(disorder, str | dt.timedelta | None):
            raise OptionError(
                f"disorder= is a {disorder.__class__.__name__}: expected such as '10 seconds', or a timedelta"
            )
        ahead = check_span(0 if speculation is None else speculation, "speculation")
        if isinstance(disorder, dt.timedelta):
            disorder = f"{disorder // dt.timedelta(microseconds=1)} microseconds"
        made = cls(disorder, late, event_id, buckets, ahead or 0, sign)
        made.check()
        return made

    def check(self) -> None:
        """Raise an :class:`OptionError` for what cannot be."""
        if self.late not in ("drop", "error", "side"):
            raise OptionError(f"late={self.late!r}: expected 'drop', 'error' or 'side'")
        if self.sign is not None and self.event_id is not None:
            raise OptionError("an event and what takes it back have the same id: leave out event_id=, or sign=")
        if self.buckets is not None and not 1 <= self.buckets < 2**62:
            raise OptionError(f"buckets={self.buckets}: give a positive number, or None for {BUCKETS}")


_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week")


def microseconds_of(delay: str) -> int:
    """A delay such as ``10 seconds`` or ``1 hour 30 minutes``."""
    text = delay.strip().lower()
    found = re.findall(r"(\d+)\s*([a-z]+)", text)
    if not found or re.sub(r"(\d+)\s*([a-z]+)|\s", "", text):
        raise OptionError(f"disorder={delay!r}: expected a number and a unit, such as '10 seconds'")
    total = 0
    for number, name in found:
        unit = name.removesuffix("s")
        if unit not in _UNITS:
            raise OptionError(
                f"disorder={delay!r}: '{name}' is no unit; {suggestion(name, _UNITS, kind='unit') or 'try seconds'}"
            )
        total += int(number) * int(SECONDS[unit] * 10**6)
    return total
