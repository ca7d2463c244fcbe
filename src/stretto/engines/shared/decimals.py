"""Decimals in compiled conditions: integers of 256 bits at a scale that the code knows, so that nothing is rounded.

Decimals of at most 18 digits are one word of an event, others two or four, the lowest first. Code makes a *wide* integer of them:
four words as a tuple; a Python integer where a kernel runs as Python. 256 bits hold every number of 76 digits; where code cannot know
that a result has no more, it notes in ``V[0, 0]`` one that does not fit, as :mod:`~stretto.engines.shared.scalar` does.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from stretto._jit import inlined, inlined_unless_interpreted, intrinsic

__all__ = [
    "DIGITS",
    "wide",
    "wide_added",
    "wide_difference",
    "wide_multiplied",
    "wide_of_four",
    "wide_of_two",
    "wide_product",
    "wide_sign",
    "wide_subtracted",
    "wide_sum",
    "words_of",
]

DIGITS = 76  #: numbers of so many digits fit

Words = NDArray[np.int64]

_WIDE = types.UniTuple(types.int64, 4)
_RESULT = types.UniTuple(types.int64, 5)
_WORD = ir.IntType(64)


def words_of(number: int) -> tuple[int, int, int, int]:
    """The words of an integer of 256 bits, the lowest first.

    >>> words_of(-1), words_of(1 << 64)
    ((-1, -1, -1, -1), (0, 1, 0, 0))
    """
    low, second, third, high = ((number >> 64 * place) & (1 << 64) - 1 for place in range(4))
    return _signed(low), _signed(second), _signed(third), _signed(high)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _of(words: Any) -> int:
    """The integer of some words."""
    found = int(words[-1])
    for word in reversed(words[:-1]):
        found = found << 64 | int(word) & (1 << 64) - 1
    return found


def _packed(builder: Any, words: Any, width: int) -> Any:
    """A tuple of words as an LLVM integer."""
    kind = ir.IntType(width)
    parts = cgutils.unpack_tuple(builder, words)
    found = builder.sext(parts[-1], kind)
    for part in reversed(parts[:-1]):
        found = builder.or_(builder.shl(found, ir.Constant(kind, 64)), builder.zext(part, kind))
    return found


def _operation(name: str, width: int) -> Any:
    """``name`` of two wide integers in ``width`` bits: four words, and whether they are too few."""

    def typed(context: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            first, second = (_packed(builder, one, width) for one in arguments)
            found = getattr(builder, name)(first, second)
            low = builder.trunc(found, ir.IntType(256))
            lost = builder.icmp_signed("!=", builder.sext(low, found.type), found)
            shifted = (builder.lshr(low, ir.Constant(low.type, 64 * place)) for place in range(4))
            words = [builder.trunc(one, _WORD) for one in shifted]
            return context.make_tuple(builder, _RESULT, [*words, builder.zext(lost, _WORD)])

        return _RESULT(_WIDE, _WIDE), generate

    compute = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[name]

    def python(left: int, right: int) -> tuple[int, int]:
        found = compute(left, right)
        lost = not -(1 << 255) <= found < 1 << 255
        return (0 if lost else found), int(lost)

    return intrinsic(typed, python)


def _comparison(context: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, second = (_packed(builder, one, 256) for one in arguments)
        above = builder.zext(builder.icmp_signed(">", first, second), _WORD)
        return builder.sub(above, builder.zext(builder.icmp_signed("<", first, second), _WORD))

    return types.int64(_WIDE, _WIDE), generate


_add, _subtract, _multiply = _operation("add", 320), _operation("sub", 320), _operation("mul", 512)
_sign = intrinsic(_comparison, lambda left, right: (left > right) - (left < right))


@inlined_unless_interpreted(lambda *words: _of(words))
def _wide(low: int, second: int, third: int, high: int) -> Any:
    return (low, second, third, high)


@inlined_unless_interpreted(lambda result: result[0])
def _kept(result: Any) -> Any:
    return (result[0], result[1], result[2], result[3])


@inlined
def _noted(result: Any, V: Words) -> Any:
    """The words of a result; notes one that does not fit."""
    if result[-1] != 0:
        V[0, 0] = V[0, 0] | 1
    return _kept(result)


@inlined
def wide(word: int) -> Any:
    """An integer of 64 bits."""
    sign = word >> 63
    return _wide(word, sign, sign, sign)


@inlined
def wide_of_two(low: int, high: int) -> Any:
    """An integer of 128 bits."""
    sign = high >> 63
    return _wide(low, high, sign, sign)


@inlined
def wide_of_four(low: int, second: int, third: int, high: int) -> Any:
    """An integer of 256 bits."""
    return _wide(low, second, third, high)


@inlined
def wide_sum(a: Any, b: Any) -> Any:
    """``a + b``, which fits."""
    return _kept(_add(a, b))


@inlined
def wide_added(a: Any, b: Any, V: Words) -> Any:
    """``a + b``; notes a result that does not fit."""
    return _noted(_add(a, b), V)


@inlined
def wide_subtracted(a: Any, b: Any, V: Words) -> Any:
    """``a − b``; notes a result that does not fit."""
    return _noted(_subtract(a, b), V)


@inlined
def wide_difference(a: Any, b: Any) -> Any:
    """``a − b``, which fits."""
    return _kept(_subtract(a, b))


@inlined
def wide_product(a: Any, b: Any) -> Any:
    """``a · b``, which fits."""
    return _kept(_multiply(a, b))


@inlined
def wide_multiplied(a: Any, b: Any, V: Words) -> Any:
    """``a · b``; notes a result that does not fit."""
    return _noted(_multiply(a, b), V)


@inlined
def wide_sign(a: Any, b: Any) -> Any:
    """−1, 0 or 1 as ``a`` is less than ``b``, equal to it or greater."""
    return _sign(a, b)
