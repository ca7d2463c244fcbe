"""How much may be listed: rows or bytes, of which the default is a share of the memory there is."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any

from stretto import memory
from stretto.errors import OptionError

#: Of the memory there is, a result may take so much where nothing is said.
SHARE = 0.25

#: Where the system does not say how much memory there is.
UNKNOWN_MEMORY = 4 << 30

#: A result of fewer bytes is never refused where nothing is said, nor is the system asked.
SMALL = 64 << 20

_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_BYTES = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def default_bytes() -> float:
    """The bytes that a result may take where nothing is said."""
    there = memory.available()
    return max(SMALL, SHARE * (UNKNOWN_MEMORY if there is None else there))


class Budget:
    """How much may be listed.

    Parameters
    ----------
    given
        A number of rows, a text such as ``"2 GiB"``, ``math.inf`` for no bound, or ``None``: a quarter of the memory there is.

    Examples
    --------
    >>> Budget(1000).rows, Budget("1.5 GiB").bytes
    (1000, 1610612736.0)
    >>> Budget("much")
    Traceback (most recent call last):
    stretto.errors.OptionError: budget='much': expected a number of rows, bytes such as '2 GiB', or math.inf
    """

    def __init__(self, given: int | float | str | None = None) -> None:
        self.given = self._said = given is not None
        self.rows: float = math.inf
        self._bytes: float | None = math.inf if self.given else None
        if isinstance(given, str):
            found = _BYTES.fullmatch(given)
            if found is None or found[2].lower() not in _UNITS or not float(found[1]):
                raise OptionError(_expected(given))
            self._bytes = float(found[1]) * _UNITS[found[2].lower()]
        elif given is not None and not (isinstance(given, float) and given == math.inf):
            if isinstance(given, bool) or not isinstance(given, numbers.Integral) or given < 1:
                raise OptionError(_expected(given))
            self.rows = int(given)

    @property
    def bytes(self) -> float:
        """The bytes that may be listed; asks the system where nothing was said."""
        if self._bytes is None:
            self._bytes = default_bytes()
        return self._bytes

    @classmethod
    def of_pieces(cls, given: int | float | str | None) -> Budget:
        """The budget of a call whose result is handed over in pieces: nothing said means no bound."""
        found = cls(math.inf if given is None else given)
        found._said = given is not None
        return found

    def part(self, of: int) -> Budget:
        """One of so many equal parts.

        >>> Budget(1000).part(4).rows
        250
        """
        found = Budget(math.inf)
        if not self.open:
            found.rows = self.rows if math.isinf(self.rows) else max(1, int(self.rows) // of)
            found._bytes = self.bytes / of
        return found

    @property
    def held(self) -> Budget:
        """The budget of what is held before it is listed, which takes bytes: those that were said, else as if nothing was.

        >>> Budget("1 GiB").held.bytes == Budget("1 GiB").bytes, Budget(10).held.given
        (True, False)
        """
        return self if self._said and self.rows == math.inf else Budget()

    def holds(self, rows: float, size: float) -> bool:
        """Whether so many rows, of so many bytes, are within it."""
        if self._bytes is None and size <= SMALL:
            return True
        return rows <= self.rows and size <= self.bytes

    @property
    def open(self) -> bool:
        """Whether it bounds nothing."""
        return self.given and math.isinf(self.rows) and self._bytes == math.inf

    def __str__(self) -> str:
        if self.rows < math.inf:
            return f"{self.rows:,} rows"
        text = described_bytes(self.bytes)
        return text if self.given else f"{text}, a quarter of the memory there is"


def _expected(given: Any) -> str:
    return f"budget={given!r}: expected a number of rows, bytes such as '2 GiB', or math.inf"


def described_bytes(size: float) -> str:
    """Bytes in the largest unit in which they are one or more."""
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}".replace(".0 ", " ")
    return f"{size:.0f} bytes"
