"""Stock events as ``java.util.Random`` makes them: the stream of the SASE+ paper's experiments (section 6).

Per event a symbol, a price that goes up with probability 0.7 and down or stays with 0.15 each, by 1 to 3, and a volume from
1 to 1000. The time is the event's number.

>>> [tuple(row.values()) for row in java_stocks(2).to_pylist()]
[('stock', 1, 111, 457, 1), ('stock', 1, 110, 215, 2)]
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["JavaRandom", "java_stocks"]


class JavaRandom:
    """``java.util.Random``: a linear congruential generator of 48 bits, of which the upper ones are given.

    >>> random = JavaRandom(42)
    >>> [random.next_int(10) for _ in range(5)]
    [0, 3, 8, 4, 0]
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def _next_31(self) -> int:
        self._state = (self._state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        return self._state >> 17

    def next_int(self, bound: int) -> int:
        """``nextInt(bound)``: 0 to bound − 1, each as likely as the others."""
        if bound & -bound == bound:
            return bound * self._next_31() >> 31
        while True:
            bits = self._next_31()
            number = bits % bound
            # Java sees an overflow of 32 bits here: the last numbers, which do not make a whole round, are drawn again.
            if bits - number + bound - 1 < 1 << 31:
                return number


def java_stocks(events: int = 100_000, *, seed: int = 10, symbols: int = 2) -> pa.Table:
    """The first events of the stream, of type ``stock``, with ``symbol``, ``price``, ``volume`` and ``ts``."""
    random = JavaRandom(seed)
    prices = [random.next_int(1000) for _ in range(symbols)]
    rows: list[tuple[int, int, int, int]] = []
    for ts in range(1, events + 1):
        symbol = random.next_int(symbols)
        chance = random.next_int(100) + 1
        if chance <= 70:
            prices[symbol] += random.next_int(3) + 1
        elif chance > 85:
            prices[symbol] -= random.next_int(3) + 1
        rows.append((symbol + 1, prices[symbol], random.next_int(1000) + 1, ts))
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    named = zip(("symbol", "price", "volume", "ts"), columns, strict=True)
    numbers = {name: pa.array(column, pa.int64()) for name, column in named}
    return pa.table({"type": pa.array(["stock"] * events, pa.string()), **numbers})
