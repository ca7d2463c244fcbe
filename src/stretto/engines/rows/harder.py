"""Which value makes all conditions harder: one that programs read of the match so far, by where it goes in them.

A condition like ``C.p >= 1.2 * A.p`` is the harder the greater the value of A is: what failed for one fails for every greater one.
A program is gone through with what each value on its stack depends on, and in which direction.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stretto.engines.rows import interpreter as b
from stretto.engines.rows.structure import AS_IS, BESIDE_COLUMN, BESIDE_CONSTANT, FLAG, OTHERWISE, UNREAD, VALUE

#: Of each register: +1 where what is computed grows with it, −1 where it falls, 0 where neither is known.
Directions = dict[int, int]

#: A constant by which a double is multiplied is no larger, so that no product of ordinary values is infinite.
LARGEST_FACTOR = 1e20

#: Registers of one row, or value, of which each is classed in a key by two bits.
MOST_CLASSED = 30

#: Steps on one value that keep the order, and that turn it.
_SAME = frozenset((b.TO_REAL, b.FLOOR, b.CEILING))
_TURNED = frozenset((b.NEGATE, b.NEGATE_REAL, b.NOT))
_BOTH_GROW = frozenset((b.AND, b.OR, b.COALESCE, b.ADD, b.ADD_REAL, b.LEAST, b.LEAST_REAL, b.GREATEST, b.GREATEST_REAL))
#: What grows with the first value and falls with the second, and the other way round.
_APART = frozenset((b.SUBTRACT, b.SUBTRACT_REAL, b.COMPARED, b.COMPARED_LOW))
LESS = frozenset((b.LESS, b.LESS_EQUAL, b.LESS_REAL, b.LESS_EQUAL_REAL))
_SCALED = frozenset((b.MULTIPLY, b.MULTIPLY_REAL, b.DIVIDE, b.DIVIDE_REAL))
REAL = frozenset((b.SUM_REAL, b.MIN_REAL, b.MAX_REAL))
#: Aggregates that stay in order, whatever row comes.
ORDERED = REAL | frozenset((b.COUNT, b.SUM, b.MIN, b.MAX))


@dataclass
class _Value:
    """A value on the stack: what it depends on, and its word where it is a constant."""

    on: Directions = field(default_factory=dict)
    constant: int | None = None
    sign: bool = False  #: −1, 0, 1, or a number that no direction leads to


def _joined(*parts: Directions) -> Directions:
    """What is computed of several values: a register that leads them apart has no direction."""
    joined: Directions = {}
    for part in parts:
        for register, direction in part.items():
            joined[register] = direction if joined.get(register, direction) == direction else 0
    return joined


def _times(on: Directions, factor: int) -> Directions:
    """What is computed of one value and grows with it (1), falls (−1), or does neither (0)."""
    return {register: direction * factor for register, direction in on.items()}


def _factor(op: int, constant: int | None, *, divides: bool) -> int:
    """The sign of a constant factor; 0: there is none, or what it makes may not be ordered."""
    if constant is None:
        return 0
    if op in (b.MULTIPLY, b.DIVIDE):
        return int(np.sign(constant))
    value = float(np.int64(constant).view(np.float64))
    size = 1 / abs(value) if divides and value else abs(value)
    return int(math.copysign(1, value)) if value and size <= LARGEST_FACTOR else 0


@dataclass
class Reading:
    """What programs read of registers: of rows which columns, of aggregates whether as values."""

    constants: Sequence[int]
    columns: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    values: set[int] = field(default_factory=set)  #: registers that are read as they are
    directions: Directions = field(default_factory=dict)

    def of(self, code: Iterable[tuple[int, int, int]]) -> None:
        """Go through a condition."""
        code = list(code)
        stack: list[_Value] = []
        jumps = any(op in (b.JUMP, b.UNLESS) for op, _, _ in code)
        for op, first, second in code:
            if op <= b.MATCH:
                stack.append(self._put(op, first, second))
            elif not jumps:
                self._step(op, stack)
        for value in stack:
            self.directions = _joined(self.directions, _times(value.on, 0) if jumps else value.on)

    def _put(self, op: int, first: int, second: int) -> _Value:
        """The value that a step puts on the stack; what it reads is noted."""
        if op == b.CONSTANT:
            return _Value(constant=self.constants[first])
        if op == b.COLUMN and second >= 0:
            self.columns[second].add(first)
            return _Value({second: 1})
        if op in (b.REGISTER, b.LABEL):
            self.values.add(first)
            return _Value({first: 1 if op == b.REGISTER else 0})
        return _Value()

    def _step(self, op: int, stack: list[_Value]) -> None:
        """Put what a step computes of one or two values in their place."""
        top = stack.pop()
        if op < b.JUMP:
            factor = 1 if op in _SAME else -1 if op in _TURNED else 0
            stack.append(_Value({} if op == b.IS_NULL else _times(top.on, factor)))
            return
        under = stack.pop()
        x, y = under.on, top.on
        if op in _BOTH_GROW:
            on = _joined(x, y)
        elif op in _APART:
            on = _joined(x, _times(y, -1))
        elif op in LESS:
            on = _joined(_times(x, -1), y)
        elif op in _SCALED:
            divides = op in (b.DIVIDE, b.DIVIDE_REAL)
            right = _factor(op, top.constant, divides=divides)
            left = 0 if divides else _factor(op, under.constant, divides=False)
            on = _joined(_times(x, right), _times(y, left))
        elif op == b.EQUAL and under.sign and top.constant in (-1, 1):
            on = _times(x, top.constant)
        else:
            on = _joined(_times(x, 0), _times(y, 0))
        stack.append(_Value(on, sign=op in (b.COMPARED, b.COMPARED_LOW)))


def standing(reading: Reading, kinds: Sequence[int], tied: set[int], counted: set[int], shown: set[int]) -> list[int]:
    """Tell as what each register stands in keys: a column of its row, FLAG, VALUE or AS_IS.

    ``tied``: the registers that others read as they are; ``counted``: those of which it is read whether there is any;
    ``shown``: the columns whose words are those of numbers, and known when their row has come.
    """
    stands = [AS_IS] * len(kinds)
    classed = 0
    for register, kind in enumerate(kinds):
        if register in tied or classed == MOST_CLASSED:
            continue
        columns = reading.columns[register]
        if kind in (b.FIRST_ROW, b.LAST_ROW) and len(columns) == 1 and columns <= shown:
            stands[register] = next(iter(columns))
            classed += 1
        elif kind in ORDERED and register in reading.values and register not in counted:
            stands[register] = VALUE
            classed += 1
        elif kind == b.COUNT and register not in reading.values:
            stands[register] = FLAG
    return stands


def hardest(reading: Reading, stands: Sequence[int], live: Iterable[int]) -> int:
    """Choose the register whose value is left out of keys; −1: there is none."""
    wanted = [r for r in dict.fromkeys(live) if reading.directions.get(r) and (stands[r] >= 0 or stands[r] == VALUE)]
    return wanted[0] if wanted else -1


def limit(code: Sequence[tuple[int, int, int]], register: int) -> tuple[int, int, int]:
    """Tell how a condition reads a register, as a row of ``Programs.limits``.

    That is UNREAD, OTHERWISE or what the register is compared with; the number of that; and whether it holds of equal ones.
    """

    def is_read(step: tuple[int, int, int]) -> bool:
        op, first, second = step
        return register == (first if op in (b.REGISTER, b.LABEL) else second if op == b.COLUMN else -1)

    if register < 0 or not any(map(is_read, code)):
        return UNREAD, 0, 0
    if len(code) == 3 and code[2][0] in LESS and is_read(code[0]) != is_read(code[1]):
        op, first, second = code[1] if is_read(code[0]) else code[0]
        equal = int(code[2][0] in (b.LESS_EQUAL, b.LESS_EQUAL_REAL))
        if op == b.COLUMN and second < 0:
            return BESIDE_COLUMN, first, equal
        if op == b.CONSTANT:
            return BESIDE_CONSTANT, first, equal
    return OTHERWISE, 0, 0
