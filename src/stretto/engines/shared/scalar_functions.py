"""The languages' functions of doubles in kernels: what they mean says :mod:`stretto.query.scalar_functions`.

Generated code calls them by their names here. The interpreter has one step for functions of a double, and one for those of two, and
knows each by its place in a table.
"""

from __future__ import annotations

import math

import numpy as np

from stretto._jit import inlined
from stretto.engines.shared.scalar import ceiling, floored, rounded

__all__ = ["exponential", "logarithm", "power", "root", "sign"]

#: What computes functions of a double, by their names in the languages.
OF_ONE = {
    "abs": "abs",
    "floor": "floored",
    "ceil": "ceiling",
    "sqrt": "root",
    "exp": "exponential",
    "ln": "logarithm",
    "sign": "sign",
}
#: … and functions of two.
OF_TWO = {"power": "power", "round": "rounded"}


@inlined
def root(a: float) -> float:
    """The square root; NaN of what is below 0."""
    return np.sqrt(a)  # type: ignore[no-any-return]


@inlined
def exponential(a: float) -> float:
    """A power of e."""
    return np.exp(a)  # type: ignore[no-any-return]


@inlined
def logarithm(a: float) -> float:
    """The natural logarithm: −∞ of 0, NaN of what is below it."""
    return np.log(a)  # type: ignore[no-any-return]


@inlined
def sign(a: float) -> float:
    """1 or −1; zeros and NaN as they are."""
    return a if a == 0.0 or np.isnan(a) else math.copysign(1.0, a)


@inlined
def power(a: float, b: float) -> float:
    """``a`` to the power of ``b``."""
    return np.power(a, b)  # type: ignore[no-any-return]


@inlined
def of_one(place: int, a: float) -> float:
    """The function at a place of :data:`OF_ONE`."""
    if place == 0:
        return abs(a)
    if place == 1:
        return floored(a)
    if place == 2:
        return ceiling(a)
    if place == 3:
        return root(a)
    if place == 4:
        return exponential(a)
    if place == 5:
        return logarithm(a)
    return sign(a)


@inlined
def of_two(place: int, a: float, b: float) -> float:
    """The function at a place of :data:`OF_TWO`."""
    if place == 0:
        return power(a, b)
    return rounded(a, b)
