"""Sums of floats that do not depend on the order: exact while they are added up, rounded once at the end.

A sum is kept as floats that do not overlap (Shewchuk, *Adaptive Precision Floating-Point Arithmetic*, 1997, section 2), so that
however rows arrive and leave, equal groups have equal sums to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit

#: More parts than floats that do not overlap can be: 2098 bits in parts of at least one.
MOST_PARTS = 2100

_SPLIT = 134217729.0  #: 2^27 + 1


@jit
def add(value: float, parts: NDArray[np.float64], count: int) -> int:
    """Add a finite float to ``parts[:count]``; gives the new count."""
    kept = 0
    for at in range(count):
        part = parts[at]
        if abs(value) < abs(part):
            value, part = part, value
        total = value + part
        rest = part - (total - value)
        if rest != 0.0:
            parts[kept] = rest
            kept += 1
        value = total
    parts[kept] = value
    return kept + 1


@inlined
def _halves(value: float) -> tuple[float, float]:
    scaled = _SPLIT * value
    high = scaled - (scaled - value)
    return high, value - high


@jit
def add_times(value: float, times: int, parts: NDArray[np.float64], count: int) -> int:
    """Add a finite float ``times`` times (it may be negative), exactly while the products are finite."""
    if times == 1:
        return add(value, parts, count)
    if times == -1:
        return add(-value, parts, count)
    if abs(value) > 1e280 or abs(times) >= 1 << 50:
        for _ in range(abs(times)):
            count = add(value if times > 0 else -value, parts, count)
        return count
    factor = float(times)
    product = value * factor
    a, b = _halves(value)
    c, d = _halves(factor)
    rest = ((a * c - product) + a * d + b * c) + b * d
    return add(rest, parts, add(product, parts, count))


@jit
def rounded(parts: NDArray[np.float64], count: int) -> float:
    """The sum, rounded once to the nearest float, ties to even.

    >>> import math
    >>> parts = np.zeros(MOST_PARTS)
    >>> count = 0
    >>> for one in (0.1, 0.2, 0.3, 1e100, -1e100):
    ...     count = add(one, parts, count)
    >>> rounded(parts, count) == math.fsum([0.1, 0.2, 0.3])
    True
    """
    if count == 0:
        return 0.0
    at = count - 1
    high = parts[at]
    low = 0.0
    while at > 0:
        at -= 1
        before = high
        high = before + parts[at]
        low = parts[at] - (high - before)
        if low != 0.0:
            break
    # Half a unit that was rounded to even, with more behind it in the same direction.
    if at > 0 and ((low < 0.0 and parts[at - 1] < 0.0) or (low > 0.0 and parts[at - 1] > 0.0)):
        twice = low * 2.0
        other = high + twice
        if twice == other - high:
            high = other
    return float(high)
