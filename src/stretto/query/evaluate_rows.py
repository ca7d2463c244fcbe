"""What a condition or a measure of ``MATCH_RECOGNIZE`` reads in the rows of a match, straight from the standard's definition.

ISO/IEC 19075-5: PREV, NEXT, FIRST, LAST and aggregates, of the rows of a match so far, in a partition in order. No engine reads this:
it is what they are judged by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from stretto.errors import DataError
from stretto.query import predicate as p
from stretto.query import row_pattern as r
from stretto.query.evaluate import holds, value
from stretto.query.passes.bind_rows import typed_arguments

Row = Mapping[str, Any]

#: The variables of the rows of a match so far, each with whether it is excluded from what is shown.
Word = tuple[tuple[str, bool], ...]


def key_of(cell: Any) -> Any:
    """What is equal for two cells that are equal as keys."""
    return "NaN" if isinstance(cell, float) and math.isnan(cell) else (cell,)


def rank(cell: Any) -> tuple[bool, Any]:
    unordered = isinstance(cell, float) and math.isnan(cell)
    return (unordered, 0 if unordered else cell)


@dataclass
class MatchSoFar:
    """A match, or its beginning: where it begins, its word, its number."""

    start: int
    word: Word
    number: int


class Seen(Mapping[str, Any]):
    """The values of references, by their names: those of a match at one of its rows, ``count`` rows after its begin."""

    def __init__(self, bound: r.BoundRows, rows: Sequence[Row], match: MatchSoFar, count: int) -> None:
        self.bound = bound
        self.rows = rows
        self.match = match
        self.count = count

    def __getitem__(self, name: str) -> Any:
        reference = self.bound.parsed.references[name]
        match reference:
            case r.Navigation():
                return self._navigated(reference)
            case r.Aggregated():
                return self._aggregated(reference)
            case _:
                return self.match.number

    def __len__(self) -> int:
        return len(self.bound.parsed.references)

    def __iter__(self) -> Iterator[str]:
        return iter(self.bound.parsed.references)

    def _places(self, reference: r.Navigation | r.Aggregated) -> list[int]:
        """Where the rows of a reference's variable are in the match, as far as it looks."""
        held = self.bound.parsed.holds(reference.variable)
        seen = self.match.word if reference.final else self.match.word[: self.count]
        return [at for at, (variable, _) in enumerate(seen) if variable in held]

    def _navigated(self, reference: r.Navigation) -> Any:
        places = self._places(reference)
        if reference.skip >= len(places):
            return None
        place = places[reference.skip] if reference.side is r.Side.FIRST else places[-1 - reference.skip]
        place += reference.shift
        if reference.attribute is None:
            seen = self.match.word if reference.final else self.match.word[: self.count]
            return seen[place][0] if 0 <= place < len(seen) else None
        row = self.match.start + place
        return self.rows[row][reference.attribute] if 0 <= row < len(self.rows) else None

    def _aggregated(self, reference: r.Aggregated) -> Any:
        places = self._places(reference)
        if not reference.arguments:
            return len(places)
        arguments = typed_arguments(reference, self.bound.columns)
        given = []
        for at in places:
            row = dict(self.rows[self.match.start + at])
            row[str(r.Classifier())] = self.match.word[at][0]
            row[str(r.MatchNumber())] = self.match.number
            given.append(tuple(computed(one, row) for one in arguments))
        if reference.distinct:
            given = list({tuple(map(key_of, one)): one for one in reversed(given)}.values())[::-1]
        return aggregate(reference.function, given)


def computed(operand: p.Operand, row: Mapping[str, Any]) -> Any:
    """The value of an operand; what is computed of decimals is a double."""
    found = value(operand, row)
    return float(found) if isinstance(found, Decimal) and not isinstance(operand, p.Attribute) else found


def unfulfilled(
    bound: r.BoundRows, rows: Sequence[Row], start: int, word: Sequence[str], variable: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows that a variable holds in a word from a row of a partition on, for which its condition does not hold.

    Each with the values that the condition reads. The rows have the fields of structs that the clause reads.
    """
    condition = bound.conditions[variable]
    for count, name in enumerate(word, 1):
        match = MatchSoFar(start, tuple((one, False) for one in word[:count]), 1)
        if name == variable and not holds(condition, seen := Seen(bound, rows, match, count)):
            yield start + count - 1, {name: seen[name] for name in p.attributes(condition)}


# ---- Aggregates


def aggregate(function: str, given: Sequence[tuple[Any, ...]]) -> Any:
    """What an aggregate gives for the arguments of some rows. All but ``array_agg`` and ``min_by`` leave NULLs out.

    >>> aggregate("sum", [(1,), (None,), (4,)]), aggregate("sum", []), aggregate("min_by", [("a", 3), ("b", 2), ("c", None)])
    (5, None, 'b')
    """
    if function == "array_agg":
        return [one for (one,) in given] or None
    if function in ("min_by", "max_by"):
        keyed = [(key, shown) for shown, key in given if key is not None]
        return _extreme(keyed, least=function == "min_by")[1] if keyed else None
    known = [one for (one,) in given if one is not None]
    if function in ("count", "count_if"):
        return sum(map(bool, known)) if function == "count_if" else len(known)
    return _OF_KNOWN[function](known) if known else None


def _extreme(keyed: Sequence[tuple[Any, ...]], *, least: bool) -> tuple[Any, ...]:
    """The first of those with the least, or greatest, key; NaN is greater than other numbers."""
    best = keyed[0]
    for one in keyed[1:]:
        if (rank(one[0]) < rank(best[0])) if least else (rank(one[0]) > rank(best[0])):
            best = one
    return best


def _deviation(known: Sequence[Any], less: int) -> float | None:
    """The variance, divided by the number of values less one or zero: with one row after the other, as Trino computes it."""
    if len(known) <= less:
        return None
    mean = squares = 0.0
    for count, one in enumerate(map(float, known), 1):
        before = one - mean
        mean += before / count
        squares += before * (one - mean)
    return squares / (len(known) - less)


def _root(number: float | None) -> float | None:
    return None if number is None else math.sqrt(number)


def _sum(known: Sequence[Any]) -> Any:
    if isinstance(known[0], Decimal):
        exact = Context(prec=100)
        exactly = Decimal(0)
        for one in known:
            exactly = exact.add(exactly, one)
        if len(exactly.as_tuple().digits) > 38:
            raise DataError("a sum of decimals leaves 38 digits")
        return exactly
    total = sum(known)
    if isinstance(total, int) and not -(1 << 63) <= total < 1 << 63:
        raise DataError("a sum of integers leaves 64 bits")
    return total


_OF_KNOWN: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": _sum,
    "avg": lambda known: float(sum(known)) / len(known),
    "min": lambda known: _extreme([(one,) for one in known], least=True)[0],
    "max": lambda known: _extreme([(one,) for one in known], least=False)[0],
    "any_value": lambda known: known[0],
    "bool_and": all,
    "bool_or": any,
    "var_samp": lambda known: _deviation(known, 1),
    "var_pop": lambda known: _deviation(known, 0),
    "stddev_samp": lambda known: _root(_deviation(known, 1)),
    "stddev_pop": lambda known: _root(_deviation(known, 0)),
}
