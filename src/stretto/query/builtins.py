"""The functions of the language: one table for all languages, of names, arguments, results and what they mean.

They mean what Spark's do. A decimal is taken as a double, and so is a number beside one. Where an argument is NULL the result is
NULL, but for ``coalesce``. ``a || b`` is ``concat(a, b)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

DIGITS = 15  #: a double keeps so many


@dataclass(frozen=True)
class Builtin:
    """A function: how many arguments it takes, of what, and what it gives."""

    least: int
    most: int | None
    takes: str  #: ``numbers``, ``strings``, or ``values`` of one kind
    gives: str | None  #: a kind; ``None``: that of the arguments
    python: Callable[..., Any]
    #: The arguments as they are shown.
    shown: str

    @property
    def reads_strings(self) -> bool:
        """Whether it is computed of strings themselves, which kernels do not see."""
        return self.takes == "strings"


def rounded(number: float, digits: int = 0) -> float:
    """Round to a number of digits; a half, as near as a double comes to it, goes away from zero.

    Up to 15 digits that is what rounding the number as it is written gives.

    >>> rounded(2.675, 2), rounded(-2.5), rounded(1e300, 3)
    (2.68, -3.0, 1e+300)
    """
    power = float(10**digits)
    scaled = abs(number) * power
    if not scaled < 2.0**51:  # as fine as it is already, infinite, or NaN
        return number
    whole = math.floor(scaled)
    if abs(number) >= (2.0 * whole + 1.0) / (2.0 * power):
        whole += 1
    return math.copysign(whole / power, number)


def _whole(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda number: float(function(number)) if math.isfinite(number) else number


def _first(*values: Any) -> Any:
    return next((one for one in values if one is not None), None)


TABLE: dict[str, Builtin] = {
    "abs": Builtin(1, 1, "numbers", None, abs, "x"),
    "round": Builtin(1, 2, "numbers", None, rounded, "x[, digits]"),
    "floor": Builtin(1, 1, "numbers", None, _whole(math.floor), "x"),
    "ceil": Builtin(1, 1, "numbers", None, _whole(math.ceil), "x"),
    "upper": Builtin(1, 1, "strings", "string", str.upper, "s"),
    "lower": Builtin(1, 1, "strings", "string", str.lower, "s"),
    "length": Builtin(1, 1, "strings", "int", len, "s"),
    "concat": Builtin(2, None, "strings", "string", lambda *texts: "".join(texts), "s, t, …"),
    "coalesce": Builtin(2, None, "values", None, _first, "x, y, …"),
}
