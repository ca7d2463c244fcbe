"""Which values make all conditions harder: those that programs read of the match so far, by where they go in them.

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
from stretto.engines.rows.structure import AS_IS, BESIDE_COLUMN, BESIDE_CONSTANT, FLAG, VALUE
from stretto.engines.shared.scalar_functions import OF_ONE

#: A *read*: a register, and the column of its row that is read; or what else it stands for in keys (VALUE, FLAG, AS_IS).
Read = tuple[int, int]

#: Of each read: +1 where what is computed grows with it, −1 where it falls, 0 where neither is known.
Directions = dict[Read, int]

#: An operator and its arguments.
Step = tuple[int, int, int]

#: So many values may be left out of keys: a bound has a word for each.
MOST_HARDER = 4

#: A constant by which a double is multiplied is no larger, so that no product of ordinary values is infinite.
LARGEST_FACTOR = 1e20

#: Reads of one column, or value, of which each is classed in a key by two bits.
MOST_CLASSED = 30

#: Steps on one value that turn the order; and functions of a double that keep it.
_TURNED = frozenset((b.NEGATE, b.NEGATE_REAL, b.NOT))
_ROUNDED = frozenset(list(OF_ONE).index(name) for name in ("floor", "ceil"))
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


def _read(op: int, first: int, second: int) -> Read | None:
    """What a step reads of the match so far."""
    if op == b.COLUMN and second >= 0:
        return second, first
    return (first, VALUE) if op in (b.REGISTER, b.LABEL) else None


def _joined(*parts: Directions) -> Directions:
    """What is computed of several values: a read that leads them apart has no direction."""
    joined: Directions = {}
    for part in parts:
        for read, direction in part.items():
            joined[read] = direction if joined.get(read, direction) == direction else 0
    return joined


def _times(on: Directions, factor: int) -> Directions:
    """What is computed of one value and grows with it (1), falls (−1), or does neither (0)."""
    return {read: direction * factor for read, direction in on.items()}


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

    def of(self, code: Iterable[Step]) -> None:
        """Go through a condition."""
        code = list(code)
        stack: list[_Value] = []
        jumps = any(op in (b.JUMP, b.UNLESS) for op, _, _ in code)
        for op, first, second in code:
            if op <= b.MATCH:
                stack.append(self._put(op, first, second))
            elif not jumps:
                self._step(op, first, stack)
        for value in stack:
            self.directions = _joined(self.directions, _times(value.on, 0) if jumps else value.on)

    def _put(self, op: int, first: int, second: int) -> _Value:
        """The value that a step puts on the stack; what it reads is noted."""
        if op == b.CONSTANT:
            return _Value(constant=self.constants[first])
        if op == b.COLUMN and second >= 0:
            self.columns[second].add(first)
        if op in (b.REGISTER, b.LABEL):
            self.values.add(first)
        if (read := _read(op, first, second)) is not None:
            return _Value({read: 0 if op == b.LABEL else 1})
        return _Value()

    def _step(self, op: int, argument: int, stack: list[_Value]) -> None:
        """Put what a step computes of one or two values in their place."""
        top = stack.pop()
        if op < b.JUMP:
            same = op == b.TO_REAL or (op == b.OF_ONE and argument in _ROUNDED)
            factor = 1 if same else -1 if op in _TURNED else 0
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


def standing(reading: Reading, kinds: Sequence[int], tied: set[int], counted: set[int], shown: set[int]) -> list[Read]:
    """Tell as what registers stand in keys: each as columns of its row, FLAG, VALUE or AS_IS.

    ``tied``: the registers that others read as they are; ``counted``: those of which it is read whether there is any;
    ``shown``: the columns whose words are those of numbers, and known when their row has come.
    """
    reads: list[Read] = []
    classed = 0
    for register, kind in enumerate(kinds):
        columns = sorted(reading.columns[register]) if kind in (b.FIRST_ROW, b.LAST_ROW) else []
        stands = [AS_IS]
        if register not in tied and classed + max(1, len(columns)) <= MOST_CLASSED:
            if columns and shown.issuperset(columns):
                stands = columns
            elif kind in ORDERED and register in reading.values and register not in counted:
                stands = [VALUE]
            elif kind == b.COUNT and register not in reading.values:
                stands = [FLAG]
        classed += sum(one >= 0 or one == VALUE for one in stands)
        reads += [(register, one) for one in stands]
    return reads


def hardest(reading: Reading, reads: Sequence[Read], live: Iterable[int]) -> list[int]:
    """Choose the reads whose values are left out of keys, by their numbers."""
    return [number for number in dict.fromkeys(live) if reading.directions.get(reads[number])][:MOST_HARDER]


def conjuncts(code: Sequence[Step]) -> list[list[Step]]:
    """Split a condition into those that must all hold.

    >>> p, q = [(b.COLUMN, 0, -1), (b.COLUMN, 0, 1), (b.LESS, -1, -1)], [(b.CONSTANT, 0, -1), (b.COLUMN, 1, 1), (b.LESS, -1, -1)]
    >>> conjuncts([*p, *q, (b.AND, -1, -1)]) == [p, q]
    True
    """
    if not code:
        return []
    if any(op in (b.JUMP, b.UNLESS) for op, _, _ in code):
        return [[*code]]
    stack: list[tuple[list[Step], list[list[Step]]]] = []
    for step in code:
        if step[0] <= b.MATCH:
            whole = [step]
            stack.append((whole, [whole]))
            continue
        above = stack.pop()
        below = ([], []) if step[0] < b.JUMP else stack.pop()
        whole = [*below[0], *above[0], step]
        stack.append((whole, below[1] + above[1] if step[0] == b.AND else [whole]))
    return stack[-1][1]


def limits_of(code: Sequence[Step], harder: Sequence[Read]) -> tuple[list[tuple[int, int, int, int]], list[bool]]:
    """Tell how a condition reads the values that are left out of keys.

    Gives a row of ``Programs.limits`` for each of those that must all hold which compares one of the values: its number, whether
    with a column of the current row or a constant, the number of that, and whether it holds of equal ones. And of each value
    whether the condition reads it at all.
    """
    found: list[tuple[int, int, int, int]] = []
    for part in conjuncts(code):
        if len(part) != 3 or part[2][0] not in LESS:
            continue
        sides = [harder.index(read) if (read := _read(*step)) in harder else -1 for step in part[:2]]
        if (sides[0] < 0) == (sides[1] < 0):
            continue
        op, first, second = part[1 if sides[0] >= 0 else 0]
        equal = int(part[2][0] in (b.LESS_EQUAL, b.LESS_EQUAL_REAL))
        if op == b.CONSTANT or (op == b.COLUMN and second < 0):
            found.append((max(sides), BESIDE_CONSTANT if op == b.CONSTANT else BESIDE_COLUMN, first, equal))
    reads = {_read(*step) for step in code}
    return found, [one in reads for one in harder]
