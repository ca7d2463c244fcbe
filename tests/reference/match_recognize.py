"""``MATCH_RECOGNIZE`` by brute force, from the standard's definition: the words of a pattern in the order of preferment.

ISO/IEC 19075-5. A word is a sequence of variables, one for each row from where the match begins. A pattern has its words in an order:

- alternatives: those of the first one, then those of the next;
- a concatenation: those with the first word of its first part, each with the words of the rest, then those with the second one, …;
- ``PERMUTE``: alternatives, all orders of its parts, in the lexicographic order of their places in the list;
- a quantifier: so many rounds as it has at least; then, if it is greedy, those words with a further round before the one
  without; if it is reluctant, that one first. A further round that takes no row is none.

The match of a row is the first word for which every row satisfies the condition of its variable, as it is when the row is the last
one. A word whose beginning fails is not looked at any further, nor is one that has come before: that is all that is saved here.

Rows of one partition have equal keys, where NULLs are equal, and NaN is equal to itself. They stand in the order of ORDER BY, those
that are equal there in the order of the input; NaN is greater than other numbers. Partitions come in the order of their first
rows in the input.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from stretto.errors import DataError, LimitError
from stretto.query import row_pattern as r
from stretto.query.evaluate import holds
from stretto.query.evaluate_rows import MatchSoFar, Row, Seen, Word, computed, key_of, rank

MOST_STEPS = 1_000_000
"""Rows that are tried for one match."""


def evaluate(bound: r.BoundRows, table: pa.Table, *, most_steps: int = MOST_STEPS) -> pa.Table:
    """All rows that a clause gives, in the order of partitions, matches and rows.

    Parameters
    ----------
    bound, table
        The clause, and rows of the schema that it is bound to.
    most_steps
        How many rows may be tried for one match.

    Raises
    ------
    DataError
        AFTER MATCH SKIP leads to the first row of the match, or to a variable without any row.
    LimitError
        A match takes more than ``most_steps`` steps to find.
    """
    query = bound.parsed
    rows = [_with_fields(row, bound) for row in table.to_pylist()]
    partitions: dict[Any, list[Row]] = {}
    for row in rows:
        partitions.setdefault(tuple(key_of(row[name]) for name in query.partition_by), []).append(row)
    shown: list[Row] = []
    for partition in partitions.values():
        shown += _Partition(bound, _ordered(partition, query.order_by), most_steps).shown()
    columns = [pa.array([row[one.name] for row in shown], one.type) for one in bound.output]
    return pa.Table.from_arrays(columns, schema=bound.output)


def _with_fields(row: Row, bound: r.BoundRows) -> Row:
    """A row with the fields of structs that the clause reads; those of a NULL are NULL."""
    found = dict(row)
    for path in bound.columns.names[len(bound.schema.names) :]:
        root, *names = path.split(".")
        found[path] = row[root]
        for name in names:
            found[path] = None if found[path] is None else found[path][name]
    return found


def _ordered(rows: Sequence[Row], items: Sequence[r.OrderItem]) -> list[Row]:
    found = list(rows)
    for item in reversed(items):
        known = [row for row in found if row[item.column] is not None]
        nulls = [row for row in found if row[item.column] is None]
        known.sort(key=lambda row: rank(row[item.column]), reverse=item.descending)
        found = nulls + known if item.nulls_first else known + nulls
    return found


class _Partition:
    """The rows of a partition, in order."""

    def __init__(self, bound: r.BoundRows, rows: Sequence[Row], most_steps: int) -> None:
        self.most_steps = most_steps
        self.bound = bound
        self.query = bound.parsed
        self.rows = rows
        self.steps = 0

    # ---- What is shown

    def shown(self) -> Iterator[Row]:
        """The rows of the result."""
        query = self.query
        if query.frame is not None:
            yield from self._framed(query.frame)
            return
        start, number, behind = 0, 1, 0  # behind: the rows before it are shown, or matched
        while start < len(self.rows):
            match = self._first_match(start, number)
            if match is None:
                if query.rows is r.RowsPerMatch.WITH_UNMATCHED and start >= behind:
                    yield {**self.rows[start], **{one.name: None for one in self.bound.measures}}
                start += 1
                continue
            number += 1
            if not match.word:
                if query.rows is not r.RowsPerMatch.OMIT_EMPTY:
                    yield self._row(match, start, 0)
                start += 1
                continue
            if query.rows is r.RowsPerMatch.ONE:
                yield self._row(match, start, len(match.word))
            else:
                for at, (_, excluded) in enumerate(match.word):
                    if not excluded:
                        yield self._row(match, start + at, at + 1)
            behind = max(behind, start + len(match.word))
            start = self._next_start(match)

    def _framed(self, frame: r.Frame) -> Iterator[Row]:
        """A WINDOW clause: the match of a row is that of a partition that is its frame."""
        skipped = 0  # rows before it are not looked at
        for row, own in enumerate(self.rows):
            end = None if frame.following is None else row + frame.following + 1
            inside = _Partition(self.bound, self.rows[row:end], self.most_steps)
            starts = range(len(inside.rows)) if frame.seeks else (0,)
            matches = (inside._first_match(start, 0) for start in starts) if row >= skipped else ()
            match = next((one for one in matches if one is not None), None)
            if match is None:
                yield {**own, **{one.name: None for one in self.bound.measures}}
                continue
            yield inside._row(match, 0, len(match.word))
            later = match.word and self.query.after is not r.AfterMatch.NEXT
            skipped = row + (inside._next_start(match) if later else 1)

    def _row(self, match: MatchSoFar, row: int, count: int) -> Row:
        """A row with the measures of a match of which ``count`` rows are behind, the current one included."""
        seen = Seen(self.bound, self.rows, match, count)
        return {**self.rows[row], **{one.name: computed(one.value, seen) for one in self.bound.measures}}

    def _next_start(self, match: MatchSoFar) -> int:
        query = self.query
        if query.after is r.AfterMatch.PAST:
            return match.start + len(match.word)
        if query.after is r.AfterMatch.NEXT:
            return match.start + 1
        assert query.after_variable is not None
        held = query.holds(query.after_variable)
        places = [at for at, (variable, _) in enumerate(match.word) if variable in held]
        if not places:
            raise DataError(f"AFTER MATCH SKIP TO {query.after_variable}: the match has no row of that variable")
        place = places[0] if query.after is r.AfterMatch.FIRST else places[-1]
        if place == 0:
            raise DataError(
                f"AFTER MATCH SKIP TO {query.after_variable}: that is the first row of the match, which would be found again"
            )
        return match.start + place

    # ---- Words

    def _first_match(self, start: int, number: int) -> MatchSoFar | None:
        self.steps = 0
        word = next(self._words(self.query.pattern, start, number, ()), None)
        return None if word is None else MatchSoFar(start, word, number)

    def _words(
        self, pattern: r.RowPattern, start: int, number: int, before: Word, excluded: bool = False
    ) -> Iterator[Word]:
        """The words of a pattern behind another word, in the order of preferment: both together."""
        found = self._told(pattern, start, number, before, excluded)
        seen: set[Word] = set()
        for word in found:
            if word not in seen:
                seen.add(word)
                yield word

    def _told(self, pattern: r.RowPattern, start: int, number: int, before: Word, excluded: bool) -> Iterator[Word]:
        match pattern:
            case r.Variable(name):
                word = (*before, (name, excluded))
                if self._holds(name, MatchSoFar(start, word, number)):
                    yield word
            case r.Empty():
                yield before
            case r.Anchor(at_start):
                row = start + len(before)
                if row == (0 if at_start else len(self.rows)):
                    yield before
            case r.Excluded(part):
                yield from self._words(part, start, number, before, True)
            case r.Alternation(parts):
                for part in parts:
                    yield from self._words(part, start, number, before, excluded)
            case r.Concatenation(parts):
                yield from self._one_after_the_other(parts, start, number, before, excluded)
            case r.Permutation(parts):
                for order in itertools.permutations(parts):
                    yield from self._one_after_the_other(order, start, number, before, excluded)
            case r.Quantified():
                yield from self._rounds(pattern, 0, start, number, before, excluded)

    def _one_after_the_other(
        self, parts: Sequence[r.RowPattern], start: int, number: int, before: Word, excluded: bool
    ) -> Iterator[Word]:
        if not parts:
            yield before
            return
        for word in self._words(parts[0], start, number, before, excluded):
            yield from self._one_after_the_other(parts[1:], start, number, word, excluded)

    def _rounds(
        self, pattern: r.Quantified, done: int, start: int, number: int, before: Word, excluded: bool
    ) -> Iterator[Word]:
        """The words of the rounds that are left, of which ``done`` are behind."""
        enough = done >= pattern.least
        if enough and pattern.reluctant:
            yield before
        if pattern.most is None or done < pattern.most:
            for word in self._words(pattern.part, start, number, before, excluded):
                if not enough or len(word) > len(before):
                    yield from self._rounds(pattern, done + 1, start, number, word, excluded)
        if enough and not pattern.reluctant:
            yield before

    def _holds(self, variable: str, match: MatchSoFar) -> bool:
        """Whether the last row of a word satisfies the condition of its variable."""
        last = match.start + len(match.word) - 1
        self.steps += 1
        if self.steps > self.most_steps:
            raise LimitError(
                f"the definition takes more than {self.most_steps:,} steps for the match at row {match.start} of a partition"
            )
        if last >= len(self.rows) or not self._within(match.start, last):
            return False
        condition = self.bound.conditions.get(variable)
        return condition is None or holds(condition, Seen(self.bound, self.rows, match, len(match.word)))

    def _within(self, first: int, last: int) -> bool:
        """Whether a row is near enough to the first one, by the first column of ORDER BY."""
        window = self.query.within
        if window is None:
            return True
        item = self.query.order_by[0].column
        begin, end = self.rows[first][item], self.rows[last][item]
        if begin is None or end is None:
            return False
        if window.number is not None:
            return bool(end - begin < window.number)
        assert window.seconds is not None
        return bool((end - begin).total_seconds() < window.seconds)
