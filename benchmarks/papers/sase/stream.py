"""The paper's event generator (section 6): stock events of two symbols whose prices go up with a given probability."""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["stocks"]

I64 = NDArray[np.int64]


@lru_cache(maxsize=4)
def stocks(events: int, *, rises: float = 0.7, seed: int = 10, symbols: int = 2) -> pa.Table:
    """Events of type ``stock`` with ``symbol``, ``price``, ``volume`` and ``ts``, which is the event's number.

    Draws are those of ``java.util.Random``: first a price below 1000 for each symbol; then for each event a symbol, a number
    from 1 to 100 that says where the price goes, by how much (1 to 3) where it does not stay, and a volume from 1 to 1000. It
    rises up to ``100 · rises``, and falls above the middle of the rest.
    """
    price, symbol, volume = np.zeros(events, np.int64), np.zeros(events, np.int64), np.zeros(events, np.int64)
    percent = round(100 * rises)
    state = np.array([(seed ^ 0x5DEECE66D) & (1 << 48) - 1], np.int64)
    _fill(state, symbols, percent, (percent + 100) / 2, symbol, price, volume)
    columns = {"symbol": symbol, "price": price, "volume": volume, "ts": np.arange(1, events + 1)}
    return pa.table({"type": pa.repeat("stock", events), **columns})


@numba.njit
def _next(state: I64, bound: int) -> int:
    """``nextInt(bound)``."""
    while True:
        # 48-bit arithmetic in 64: the product is taken modulo 2^64, of which the lower bits are right.
        bits = (int(state[0]) * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        state[0] = bits
        bits >>= 17
        if bound & -bound == bound:
            return (bound * bits) >> 31
        number = bits % bound
        if bits - number + bound - 1 < 1 << 31:
            return number


@numba.njit
def _fill(state: I64, symbols: int, up: int, down: float, symbol: I64, price: I64, volume: I64) -> None:
    now = np.zeros(symbols, np.int64)
    for one in range(symbols):
        now[one] = _next(state, 1000)
    for i in range(symbol.size):
        one = _next(state, symbols)
        chance = _next(state, 100) + 1
        if chance <= up:
            now[one] += _next(state, 3) + 1
        elif chance > down:
            now[one] -= _next(state, 3) + 1
        symbol[i], price[i], volume[i] = one + 1, now[one], _next(state, 1000) + 1
