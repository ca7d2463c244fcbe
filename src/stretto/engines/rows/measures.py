"""Measures of matches, whole columns at a time.

An expression is evaluated at *points*: a match, and how many of its rows are behind. The rows that a variable holds lie
one behind the other, match by match, so that at each point a reference is about a piece of them: its last or first row,
or an aggregate of it, which is a running one looked up at the piece's end.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.automata.rows import RowAutomaton
from stretto.columns.arrays import decoded, numbers_of, reals_of_decimals
from stretto.columns.ordering import ordered_words
from stretto.columns.overflow import IntegerOverflow
from stretto.columns.segments import Segments, known_of, taken
from stretto.columns.vectorized import computed
from stretto.engines.rows.columns import Shifted
from stretto.engines.rows.structure import I64, Bits, Found
from stretto.errors import DataError, LimitError
from stretto.query import predicate as p
from stretto.query import row_pattern as r
from stretto.query.passes.bind_rows import row_types, typed_arguments
from stretto.query.typing import type_of_operand

#: Values in lists, for all measures of a call.
MOST_LISTED = 1 << 28


class Points(NamedTuple):
    """Where measures are evaluated."""

    match: I64  #: by its place among the matches found
    behind: I64  #: rows of the match up to the current one; 0 in an empty match


def measures(
    bound: r.BoundRows, automaton: RowAutomaton, seen: Shifted, found: Found, points: Points
) -> list[pa.Array]:
    """The measures at some points, one array each.

    Raises
    ------
    DataError
        Integers leave 64 bits.
    LimitError
        Lists of all rows so far would take too much.
    """
    matches = _Matches(bound, automaton, seen, found, points)
    names = dict.fromkeys(name for one in bound.measures for name in p.attributes(one.value))
    columns = {name: matches.value(bound.parsed.references[name], bound.types[name]) for name in names}
    batch = pa.RecordBatch.from_pydict(columns | {"": pa.nulls(points.match.size)})
    try:
        arrays = [computed(one.value, batch, one.type) for one in bound.measures]
    except IntegerOverflow as error:
        raise seen.placed(error, found.start[points.match], " in the match that begins") from None
    return [
        array if array.type == one.type else array.cast(one.type)
        for array, one in zip(arrays, bound.measures, strict=True)
    ]


class _Matches:
    """The matches found, and values of references at points."""

    def __init__(
        self, bound: r.BoundRows, automaton: RowAutomaton, seen: Shifted, found: Found, points: Points
    ) -> None:
        self.bound, self.seen, self.found, self.points = bound, seen, found, points
        self.names = [automaton.variables[v] for v in automaton.variable]
        self.offset = np.zeros(found.length.size + 1, np.int64)
        np.cumsum(found.length, out=self.offset[1:])
        self._held: dict[tuple[frozenset[str], bool], Segments] = {}

    @cached_property
    def rows(self) -> I64:
        """The row at each place of the path."""
        return np.repeat(self.found.start - self.offset[:-1], self.found.length) + np.arange(self.found.path.size)

    @cached_property
    def classifiers(self) -> pa.DictionaryArray:
        """The names of the positions."""
        return pa.array(self.names, pa.string())

    def held(self, variable: str, *, final: bool) -> Segments:
        """The places of the path that a variable holds, match by match, and the piece of them at each point."""
        held = self.bound.parsed.holds(variable)
        if (held, final) not in self._held:
            mine = np.array([name in held for name in self.names], np.bool_)[self.found.path]
            self._held[held, final] = self._pieces(mine, final=final)
        return self._held[held, final]

    def _pieces(self, mine: Bits, *, final: bool) -> Segments:
        match = self.points.match
        return Segments.of(mine, self.offset, match, None if final else self.offset[match] + self.points.behind)

    def value(self, reference: r.RowReference, kind: pa.DataType) -> pa.Array:
        """A reference at all points."""
        match reference:
            case r.Navigation():
                return self._navigated(reference)
            case r.Aggregated():
                return self._aggregated(reference, kind)
            case _:
                return pa.array(self.found.number[self.points.match])

    # -- one row ------------------------------------------------------------------------------------------------------

    def _navigated(self, reference: r.Navigation) -> pa.Array:
        held = self.held(reference.variable, final=reference.final)
        at = held.begin + reference.skip if reference.side is r.Side.FIRST else held.end - 1 - reference.skip
        there = (at >= held.begin) & (at < held.end)
        if not there.any():
            kind = (
                pa.string() if reference.attribute is None else self.seen.table.schema.field(reference.attribute).type
            )
            return pa.nulls(at.size, kind)
        path = held.path[np.where(there, at, held.begin[there.argmax()])]
        if reference.attribute is None:
            path = path + reference.shift
            match = self.points.match
            last = self.offset[match] + (self.found.length[match] if reference.final else self.points.behind)
            there &= (path >= self.offset[match]) & (path < last)
            positions = self.found.path[np.where(there, path, 0)]
            return self.classifiers.take(pa.array(positions, mask=~there))
        rows = self.rows[path]
        if reference.shift:
            rows, outside = self.seen.rows_at(rows, reference.shift)
            there &= ~outside & self._in_frame(rows)
        return self.seen.column(f"0 {reference.attribute}").take(pa.array(rows, mask=None if there.all() else ~there))

    def _in_frame(self, rows: I64) -> Bits:
        """Whether rows are in the frames of their points, if the clause is a window."""
        frame = self.bound.parsed.frame
        if frame is None:
            return np.ones(rows.size, np.bool_)
        begin = self.found.number[self.points.match]
        return (rows >= begin) & (frame.following is None or rows - begin <= frame.following)

    # -- several rows -------------------------------------------------------------------------------------------------

    def _aggregated(self, reference: r.Aggregated, kind: pa.DataType) -> pa.Array:
        held = self.held(reference.variable, final=reference.final)
        if not reference.arguments:
            return pa.array(held.sizes)
        values = self._arguments(reference, held)
        if reference.distinct:
            kept = held.first_of_equal(values)
            mine = np.zeros(self.found.path.size, np.bool_)
            mine[held.path[kept]] = True
            held = self._pieces(mine, final=reference.final)
            values = [one.filter(pa.array(kept)) for one in values]
        function, own = reference.function, values[0]
        if function == "array_agg":
            self._check(held)
            return held.lists(own, kind, null=True)
        if function in ("min", "max", "bool_and", "bool_or", "any_value", "min_by", "max_by"):
            key = values[-1]
            words = np.zeros(len(key), np.int64) if function == "any_value" else ordered_words(key)
            if function in ("max", "max_by", "bool_or"):
                words = ~words
            return taken(own, held.least(words, known_of(key)))
        known = known_of(own)
        if function == "count_if":
            known = known & numbers_of(own)
        counts = held.counts(known)
        if function in ("count", "count_if"):
            return pa.array(counts)
        if pa.types.is_decimal(own.type):
            if function == "sum":
                return self._sum_of_decimals(reference, held, own, counts, kind)
            own = reals_of_decimals(own)
        numbers = numbers_of(own)
        if function in ("sum", "avg"):
            return self._summed(reference, held, numbers, known, counts, kind)
        less = int(function.endswith("_samp"))
        deviations = held.squares(numbers.astype(np.float64), known) / np.maximum(counts - less, 1)
        if function.startswith("stddev"):
            deviations = np.sqrt(deviations)
        return pa.array(deviations, mask=counts <= less)

    def _arguments(self, reference: r.Aggregated, held: Segments) -> list[pa.Array]:
        """The arguments for the rows that are held."""
        types = row_types(self.bound.columns)
        arguments = typed_arguments(reference, self.bound.columns)
        rows = self.rows[held.path]
        columns: dict[str, Any] = {}
        for name in dict.fromkeys(name for one in arguments for name in p.attributes(one)):
            if name == str(r.Classifier()):
                columns[name] = self.classifiers.take(pa.array(self.found.path[held.path]))
            elif name == str(r.MatchNumber()):
                columns[name] = pa.array(np.repeat(self.found.number, np.diff(held.bounds)))
            else:
                columns[name] = self.seen.column(f"0 {name}").take(pa.array(rows))
        batch = pa.RecordBatch.from_pydict(columns | {"": pa.nulls(len(rows))})
        try:
            found = [computed(one, batch, type_of_operand(one, types)) for one in arguments]
        except IntegerOverflow as error:
            raise self.seen.placed(error, rows) from None
        return list(map(decoded, found))

    def _summed(
        self,
        reference: r.Aggregated,
        held: Segments,
        numbers: NDArray[Any],
        known: Bits,
        counts: I64,
        kind: pa.DataType,
    ) -> pa.Array:
        if numbers.dtype.kind == "f":
            total: NDArray[Any] = held.real_sums(numbers, known)
        else:
            high, low = held.whole_sums(numbers, known)
            if (high.astype(np.int32) != high).any():
                raise DataError(f"{reference} leaves 64 bits; compute with doubles")
            total = (high << 32) + low
        if reference.function == "avg":
            total = total / np.maximum(counts, 1)
        return pa.array(total, kind, mask=counts == 0)

    def _sum_of_decimals(
        self, reference: r.Aggregated, held: Segments, own: pa.Array, counts: I64, kind: pa.DataType
    ) -> pa.Array:
        """Exact sums: integers of 128 bits as four digits of 32 bits, of which only the last has a sign."""
        wide = own.cast(kind)
        digits = np.frombuffer(wide.buffers()[1], np.uint32).reshape(-1, 4)[wide.offset : wide.offset + len(wide)]
        known = known_of(own)
        found = np.zeros((counts.size, 4), np.uint32)
        total = np.zeros(counts.size, np.int64)
        until = np.zeros(len(own) + 1, np.int64)
        for at in range(4):
            own_digits = digits[:, at] if at < 3 else digits[:, at].view(np.int32)
            np.cumsum(np.where(known, own_digits.astype(np.int64), 0), out=until[1:])
            total = (total >> 32) + until[held.end] - until[held.begin]
            found[:, at] = total & 0xFFFFFFFF
        valid = pa.array(counts > 0).buffers()[1]
        sums = pa.Array.from_buffers(kind, counts.size, [valid, pa.py_buffer(found)])
        try:
            sums.validate(full=True)
            fits = bool((np.abs(total) < 1 << 31).all())
        except pa.ArrowInvalid:
            fits = False
        if not fits:
            raise DataError(f"{reference} leaves 38 digits; compute with doubles")
        return sums

    def _check(self, held: Segments) -> None:
        if (listed := int(held.sizes.sum())) > MOST_LISTED:
            raise LimitError(
                f"an aggregate over all rows so far, at each row, looks at {listed:,} values, and {MOST_LISTED:,} at most: "
                "ask for it with FINAL, or with ONE ROW PER MATCH"
            )
