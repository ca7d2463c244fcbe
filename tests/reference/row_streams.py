"""Which matches of ``MATCH_RECOGNIZE`` are final when only the first rows of a partition have come: by trying what may come.

A row to come may be any: it may satisfy the condition of each variable or not, and the partition may end before it. What a
condition reads of rows to come (NEXT) is as open. The definition of all matches (:mod:`tests.reference.match_recognize`) runs
once for each way in which what it asks may be answered; what is final is the beginning that the results of all have in common.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from stretto.engines.rows.history import conjuncts, is_plain
from stretto.query import predicate as p
from stretto.query import row_pattern as r
from stretto.query.evaluate import holds
from tests.reference.match_recognize import MatchSoFar, Row, Seen, _ordered, _Partition, _with_fields

#: Where a match begins, and its word; ``None``: the row is in no match.
Item = tuple[int, tuple[tuple[str, bool], ...] | None]


class _TooLong(Exception):
    """More rows are asked for than may come."""


class _Answers:
    """The answers to what is open, of which each way is gone once."""

    def __init__(self) -> None:
        self.ways: list[bool] = []
        self.asked = 0
        self.known: dict[Hashable, bool] = {}

    def again(self) -> bool:
        """Begin the next way; false: there is none."""
        self.known, self.asked = {}, 0
        while self.ways and not self.ways[-1]:
            self.ways.pop()
        if not self.ways:
            return False
        self.ways[-1] = False
        return True

    def answer(self, question: Hashable) -> bool:
        if question not in self.known:
            if self.asked == len(self.ways):
                self.ways.append(True)
            self.known[question] = self.ways[self.asked]
            self.asked += 1
        return self.known[question]


class _Rows(Sequence[Row]):
    """Rows that have come, and those that may come: whether one does is asked when it is looked for."""

    def __init__(self, rows: Sequence[Row], answers: _Answers, most: int) -> None:
        self.came, self.answers, self.most = rows, answers, most

    def has(self, row: int) -> bool:
        for at in range(len(self.came), row + 1):
            if at >= len(self.came) + self.most:
                raise _TooLong
            if not self.answers.answer(("comes", at)):
                return False
        return True

    def __getitem__(self, row: Any) -> Any:
        return self.came[row]

    def __len__(self) -> int:
        return len(self.came)


class _Open(_Partition):
    """A partition of which the first rows have come."""

    def __init__(self, bound: r.BoundRows, rows: _Rows) -> None:
        super().__init__(bound, [], 1 << 62)
        self.open = rows
        self.rows = list(rows.came)

    def items(self) -> Iterator[Item]:
        """The matches in their order, and the rows of none."""
        start, number, behind = 0, 1, 0
        while self.open.has(start):
            match = self._first_match(start, number)
            if match is None:
                if self.query.rows is r.RowsPerMatch.WITH_UNMATCHED and start >= behind:
                    yield start, None
                start += 1
                continue
            number += 1
            yield start, match.word
            behind = max(behind, start + len(match.word))
            start = self._next_start(match) if match.word else start + 1

    def _told(self, pattern: r.RowPattern, start: int, *rest: Any) -> Iterator[Any]:
        if isinstance(pattern, r.Anchor) and not pattern.start:
            before = rest[1]
            if not self.open.has(start + len(before)):
                yield before
            return
        yield from super()._told(pattern, start, *rest)

    def _holds(self, variable: str, match: MatchSoFar) -> bool:
        last = match.start + len(match.word) - 1
        if not self.open.has(last):
            return False
        came = len(self.open.came)
        if self.query.within is not None:
            if last < came and not self._within(match.start, last):
                return False
            if last >= came and not self.open.answers.answer(("near", match.start, last)):
                return False
        condition = self.bound.conditions.get(variable)
        for at, part in enumerate(() if condition is None else conjuncts(condition)):
            if last + self._ahead(part) < came:
                if not holds(part, Seen(self.bound, self.rows, match, len(match.word))):
                    return False
            else:
                plain = is_plain(part, variable, self.query)
                where: Hashable = last if plain else (match.start, match.word)
                if not self._comes_true(part, last, match, variable, at, where):
                    return False
        return True

    def _comes_true(self, part: Any, last: int, match: MatchSoFar, variable: str, at: int, where: Hashable) -> bool:
        # Where the partition ends before the rows that it reads, it is known.
        if last < len(self.open.came):
            needed = last + self._ahead(part)
            if not self.open.has(len(self.open.came)):
                return holds(part, Seen(self.bound, self.rows, match, len(match.word)))
            if needed == len(self.open.came):
                return self.open.answers.answer(("holds", variable, at, where))
        return self.open.answers.answer(("holds", variable, at, where))

    def _ahead(self, part: p.Predicate) -> int:
        found = (self.query.references[name] for name in p.attributes(part))
        return max([0, *(one.shift for one in found if isinstance(one, r.Navigation))])


def final(bound: r.BoundRows, rows: Sequence[Row], *, most: int = 3, ways: int = 2_000) -> list[Item] | None:
    """The matches that are final after the first rows of one partition, in their order.

    Parameters
    ----------
    bound
        The clause.
    rows
        The rows that have come.
    most
        How many more may come, at most.
    ways
        How many ways may be gone.

    Returns
    -------
    list or None
        Of each match its first row and its word; of a row of no match ``None`` in place of a word. ``None``: there are more ways.
    """
    answers = _Answers()
    found: list[Item] | None = None
    given = _ordered([_with_fields(row, bound) for row in rows], bound.parsed.order_by)
    for _ in range(ways):
        items: list[Item] = []
        try:
            for item in _Open(bound, _Rows(given, answers, most)).items():
                items.append(item)
                if found is not None and (len(items) > len(found) or item != found[len(items) - 1]):
                    items.pop()
                    break
        except _TooLong:
            pass
        found = items
        if not answers.again():
            return found
    return None
