"""How many matches there must be: plain loops over the definition of the template, without parser, automata or engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa

from benchmarks.papers.sase.queries import Case

__all__ = ["count"]

#: Rows of the first and the last event, and the number of events.
Found = tuple[int, int, int]


def count(case: Case, table: pa.Table, within: int) -> tuple[int, int]:
    """Matches of a case, and the sum of their lengths."""
    symbols, prices, volumes, times = (table[name].to_pylist() for name in ("symbol", "price", "volume", "ts"))
    matches = cells = 0
    for symbol in sorted(set(symbols)):
        rows = [i for i, own in enumerate(symbols) if own == symbol]
        found = _longer if case.longer else _pairs
        of_symbol = found(case, [prices[i] for i in rows], [volumes[i] for i in rows], [times[i] for i in rows], within)
        for _, _, length in _apart(of_symbol) if case.non_overlap else of_symbol:
            matches += 1
            cells += length
    return matches, cells


def _apart(found: Iterator[Found]) -> Iterator[Found]:
    """Non-overlap: what ends first, then begins first, then is shortest; then what begins after its end."""
    end = -1
    for one in sorted(found, key=lambda one: (one[1], one[0], one[2])):
        if one[0] > end:
            end = one[1]
            yield one


def _series(
    case: Case, prices: Sequence[int], times: Sequence[int], within: int
) -> Iterator[tuple[int, Iterator[tuple[int, int, int]]]]:
    """For each event that begins a series: its row, and the later events with the length and the last price before them."""
    for first, price in enumerate(prices):
        if price % 500 == 0:
            yield first, _steps(case, prices, times, within, first)


def _steps(
    case: Case, prices: Sequence[int], times: Sequence[int], within: int, first: int
) -> Iterator[tuple[int, int, int]]:
    length, last = 1, prices[first]
    value: float = last
    total = last
    for row in itertools.count(first + 1):
        if row == len(prices) or times[row] - times[first] > within:
            return
        yield row, length, last
        price = prices[row]
        if case.predicate == 1 or price > value:
            length, last, total = length + 1, price, total + price
            if case.predicate == 2 or (case.predicate == 3 and case.aggregate == "max"):
                value = price
            elif case.aggregate == "avg":
                value = total / length
        elif case.strategy == "s2":
            return


def _pairs(
    case: Case, prices: Sequence[int], volumes: Sequence[int], times: Sequence[int], within: int
) -> Iterator[Found]:
    """``SEQ(stock+ a[], stock b)``."""
    for first, steps in _series(case, prices, times, within):
        for row, length, _ in steps:
            if volumes[row] < 150:
                yield first, row, length + 1


def _longer(
    case: Case, prices: Sequence[int], volumes: Sequence[int], times: Sequence[int], within: int
) -> Iterator[Found]:
    """``SEQ(stock+ a[], stock b, stock c)``: each b waits for the first c, under contiguity for the next event only."""
    for first, steps in _series(case, prices, times, within):
        for row, length, last in steps:
            if volumes[row] >= 150:
                continue
            for later in range(row + 1, len(prices)):
                if times[later] - times[first] > within:
                    break
                if prices[first] < prices[later] < last:
                    yield first, later, length + 2
                    break
                if case.strategy == "s2":
                    break
