"""Scalar operations of compiled conditions: what Python's operators do not say exactly in 64 bits.

Words are int64; a float travels as the word of the same bits. Bit 0 of ``V[0, 0]`` is set where an integer leaves 64 bits: the
kernel looks at it after each event. A condition sets it only where its own truth depends on such an integer: what is computed for
it is *tested*, which takes the note back and gives a truth of three values (0 false, 1 not told, 2 true), and the outcome *settled*.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import inlined, jit

__all__ = [
    "absolute",
    "added",
    "ceiling",
    "compared",
    "exists",
    "floored",
    "greatest",
    "holds",
    "least",
    "mark",
    "mean",
    "multiplied",
    "negated",
    "quotient",
    "real",
    "remainder",
    "remainder_real",
    "rounded",
    "settled",
    "subtracted",
    "tested",
    "word",
]

Words = NDArray[np.int64]

LEAST = -(1 << 63)
MOST = (1 << 63) - 1
EXACT = 1 << 53  #: integers up to here are floats
HALF = 1 << 52
LOW = (1 << 32) - 1


@inlined
def real(bits: int) -> float:
    """The float with these bits."""
    return np.int64(bits).view(np.float64)


@inlined
def word(value: float) -> int:
    """The bits of a float."""
    return np.float64(value).view(np.int64)


@inlined
def mark(V: Words) -> int:
    """Take away what is noted, for :func:`tested` to put it back."""
    before = V[0, 0]
    V[0, 0] = 0
    return before


@inlined
def tested(before: int, test: bool, V: Words) -> int:
    """The truth of a test that was made since ``before`` was marked: 1 where it noted an overflow, else 2 or 0."""
    noted = V[0, 0]
    V[0, 0] = before
    if noted != 0:
        return 1
    return 2 if test else 0


@inlined
def settled(truth: int, V: Words) -> bool:
    """A truth of three values as one of two; notes where it is not told."""
    if truth == 1:
        V[0, 0] = V[0, 0] | 1
    return truth == 2


@inlined
def exists(value: float) -> bool:
    """True of any value; it is there so that the value is computed."""
    return True


@inlined
def added(a: int, b: int, V: Words) -> int:
    """``a + b``; notes an overflow."""
    if (b > 0 and a > MOST - b) or (b < 0 and a < LEAST - b):
        V[0, 0] = 1
        return 0
    return a + b


@inlined
def subtracted(a: int, b: int, V: Words) -> int:
    """``a − b``; notes an overflow."""
    if (b < 0 and a > MOST + b) or (b > 0 and a < LEAST + b):
        V[0, 0] = 1
        return 0
    return a - b


@inlined
def negated(a: int, V: Words) -> int:
    """``−a``; notes an overflow."""
    if a == LEAST:
        V[0, 0] = 1
        return 0
    return -a


@inlined
def absolute(a: int, V: Words) -> int:
    """``|a|``; notes an overflow."""
    return negated(a, V) if a < 0 else a


@inlined
def floored(a: float) -> float:
    """The greatest whole number that is not above ``a``."""
    return np.floor(a)


@inlined
def ceiling(a: float) -> float:
    """The least whole number that is not below ``a``."""
    return np.ceil(a)


@inlined
def rounded(a: float, power: float) -> float:
    """``a`` in whole parts of ``1 / power``; as :func:`stretto.query.builtins.rounded`."""
    size = abs(a)
    scaled = size * power
    if not scaled < 2.0**51:
        return a
    whole = np.floor(scaled)
    if size >= (2.0 * whole + 1.0) / (2.0 * power):
        whole += 1.0
    return np.copysign(whole / power, a)


@inlined
def multiplied(a: int, b: int, V: Words) -> int:
    """``a · b``; notes an overflow."""
    if a == 0 or b == 0:
        return 0
    if (a == -1 and b == LEAST) or (b == -1 and a == LEAST):
        V[0, 0] = 1
        return 0
    # Halves of the range are enough for nearly all products; others are divided back.
    if -(1 << 31) < a < (1 << 31) and -(1 << 31) < b < (1 << 31):
        return a * b
    big = float(a) * float(b)
    if -9.2e18 < big < 9.2e18:
        return a * b
    # Near the end of the range quotients decide: a product that has left it is nothing that compiled code may look at.
    if big > 9.3e18 or big < -9.3e18:
        leaves = True
    elif big > 0:
        leaves = abs(a) > MOST // abs(b)
    else:
        least, most = (a, b) if a < 0 else (b, a)
        quotient = LEAST // most
        leaves = least < quotient or (least == quotient and LEAST % most != 0)
    if leaves:
        V[0, 0] = 1
        return 0
    return a * b


@inlined
def mean(total: int, carry: int, more: int, count: int) -> float:
    """``(carry · 2^64 + total + more) / count``, rounded once. ``total`` and ``more`` are any integers, ``count`` is positive."""
    if carry == 0 and -HALF <= total <= HALF and -HALF <= more <= HALF:
        return float(total + more) / float(count)
    return _mean_of_many(total, carry, more, count)


@jit
def _mean_of_many(total: int, carry: int, more: int, count: int) -> float:
    """Do what :func:`mean` does, by long division in words of 32 bits. At most 2^31 integers were added."""
    high = (carry << 32) + (total >> 32) + (more >> 32)
    low = (total & LOW) + (more & LOW)
    high, low = high + (low >> 32), low & LOW
    sign = 1.0
    if high < 0:
        sign = -1.0
        high, low = (-high - 1, (1 << 32) - low) if low else (-high, low)
    if high // count >> 31:  # the mean of the least integer alone
        return sign * 9223372036854775808.0
    rest = ((high % count) << 32) + low
    found = ((high // count) << 32) + rest // count
    rest %= count
    scale = 1.0
    while found < 1 << 54:  # 55 bits at least, and what is left as one more, round as all bits do
        if found == 0 and rest == 0:
            return 0.0
        rest <<= 8
        found = (found << 8) + rest // count
        rest %= count
        scale /= 256.0
    if rest:
        found |= 1
    return sign * float(found) * scale


@inlined
def quotient(a: int, b: int, V: Words) -> int:
    """``a / b`` towards zero; b is not 0. What leaves 64 bits is told as by :func:`multiplied`."""
    if b == -1:
        if a == LEAST:
            V[0, 0] = 1
            return 0
        return -a
    found = a // b
    if found < 0 and a % b != 0:
        found += 1
    return found


@inlined
def remainder(a: int, b: int) -> int:
    """``a % b`` with the sign of ``a``, as SQL has it; b is not 0."""
    if b == -1:  # the least integer divided by it leaves 64 bits
        return 0
    rest = a % b
    if rest != 0 and (a < 0) != (rest < 0):
        rest -= b
    return rest


@inlined
def remainder_real(a: float, b: float) -> float:
    """Do what :func:`remainder` does, for floats."""
    if not np.isfinite(a):
        return np.nan
    return np.fmod(a, b)


@inlined
def least(a: float, b: float) -> float:
    """The smaller one; NaN beside NaN."""
    return a if a < b or a != a else b


@inlined
def greatest(a: float, b: float) -> float:
    """The greater one; NaN beside NaN."""
    return a if a > b or a != a else b


@inlined
def holds(bits: int, at: int) -> bool:
    """Whether bit ``at`` is set."""
    return (bits >> at) & 1 == 1


@inlined
def compared(whole: int, other: float) -> int:
    """−1, 0 or 1 as an integer is less than, equal to or greater than a float, exactly; 2 beside NaN."""
    if other != other:
        return 2
    if -EXACT <= whole <= EXACT:
        near = float(whole)
        return -1 if near < other else 1 if near > other else 0
    if other >= 9223372036854775808.0:
        return -1
    if other < -9223372036854775808.0:
        return 1
    floor = np.int64(np.floor(other))
    if whole != floor:
        return -1 if whole < floor else 1
    return -1 if other > np.floor(other) else 0
