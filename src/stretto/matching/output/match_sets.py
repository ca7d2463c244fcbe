"""Match sets: all matches that one event completes, counted, sampled and listed on request (SASE+ paper, section 4.2).

A set refers to the shared lists of the NFAb engine: it is handed over in O(1), whatever the number of matches, which may be
exponential in the window. Counting costs O(events in the lists), a sample or a listed match O(its length).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.budget import Budget
from stretto.columns.overflow import Order
from stretto.engines.api import Matches
from stretto.errors import LimitError, OptionError
from stretto.matching.compiled import Query
from stretto.matching.output.match_table import Layout, build_tables
from stretto.matching.output.return_clause import Rows
from stretto.query.passes.bind_sase import BoundSase

if TYPE_CHECKING:
    from stretto.engines.nfab.runner import HandedOver
    from stretto.engines.programs import NfabProgram

#: Matches are listed in tables of so many.
PIECE = 1 << 10

#: Bytes that a match takes in a table at least.
LEAST = 16


@check_arguments
class MatchSet:
    """The matches that one event completes.

    Made by :func:`stretto.match_sets` and :meth:`stretto.Matcher.push_sets`.

    >>> import stretto
    >>> events = [{"type": "A"}] * 100
    >>> *_, last = stretto.match_sets("PATTERN SEQ(A+ a[]) WHERE skip_till_any_match { }", events, output="positions")
    >>> last.count == 2**99
    True
    >>> last.first(2).to_pylist()[0]
    {'start': 98, 'end': 99, 'positions': [98, 99]}
    >>> last.sample(5, seed=1).num_rows
    5
    """

    def __init__(
        self, found: HandedOver, layout: Layout, rows: Rows, marks: list[frozenset[str]], order: Order | None = None
    ) -> None:
        self._found = found
        self._layout = layout
        self._rows = rows
        self._marks = marks
        self._order = order

    @property
    def end(self) -> int:
        """The position of the event that completes the matches."""
        return self._found.end if self._order is None else int(self._order[self._found.end])

    @cached_property
    def _counts(self) -> dict[int, int]:
        """By node: how many matches lie behind it that begin within the window. O(nodes behind the roots)."""
        nodes, low = self._found.nodes, self._found.low
        counts: dict[int, int] = {}
        waiting = self._found.roots.tolist()
        while waiting:
            node = waiting[-1]
            if node in counts:
                waiting.pop()
                continue
            if nodes.start[node] < low:
                counts[node] = 0
                continue
            behind = self._found.behind(node)
            unknown = [one for one in behind if one not in counts]
            if unknown:
                waiting += unknown
                continue
            counts[node] = sum(counts[one] for one in behind) if behind else 1
        return counts

    @cached_property
    def count(self) -> int:
        """How many matches there are; an integer of any size."""
        return sum(self._counts[root] for root in self._found.roots.tolist())

    def __len__(self) -> int:
        """Do what :attr:`count` does; an OverflowError beyond 2^63 − 1, as Python has it."""
        return self.count

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The matches as rows, one after the other; memory is bounded."""
        for table in self.tables():
            yield from table.to_pylist()

    def tables(self) -> Iterator[pa.Table]:
        """The matches in tables of bounded size.

        >>> import stretto
        >>> sets_of = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { }"
        >>> (one,) = stretto.match_sets(sets_of, [{"type": kind} for kind in "AAB"], output="positions")
        >>> [table.num_rows for table in one.tables()]
        [3]
        """
        paths = self._paths()
        while piece := list(islice(paths, PIECE)):
            yield self._table(piece)

    def first(self, n: int) -> pa.Table:
        """The first ``n`` matches, or all if they are fewer. The order is the same each time.

        Raises
        ------
        LimitError
            They take more than a quarter of the memory there is; :meth:`tables` gives them in pieces.

        Examples
        --------
        >>> import stretto
        >>> sets_of = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { }"
        >>> (one,) = stretto.match_sets(sets_of, [{"type": kind} for kind in "AAB"], output="positions")
        >>> one.first(2).column("positions").to_pylist()
        [[1, 2], [0, 1, 2]]
        """
        _refuse_negative("first", n)
        return self._listed(islice(self._paths(), n), min(n, self.count))

    def sample(self, n: int, seed: int | None = None) -> pa.Table:
        """``n`` different matches, each as likely as the others; all, in some order, if they are fewer.

        Raises
        ------
        LimitError
            They take more than a quarter of the memory there is.

        Examples
        --------
        >>> import stretto
        >>> sets_of = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { }"
        >>> (one,) = stretto.match_sets(sets_of, [{"type": kind} for kind in "AAB"], output="positions")
        >>> one.count, one.sample(2, seed=1).num_rows, one.sample(9).num_rows
        (3, 2, 3)
        """
        _refuse_negative("sample", n)
        self._refuse_beyond(Budget(), min(n, self.count), LEAST * min(n, self.count))
        choose = random.Random(seed)
        if n >= self.count:
            paths = list(self._paths())
            choose.shuffle(paths)
        elif self.count < 1 << 62:
            paths = [self._nth(number) for number in choose.sample(range(self.count), n)]
        else:  # too many for a range: the same one twice is drawn again
            drawn: dict[int, None] = {}
            while len(drawn) < n:
                drawn[choose.randrange(self.count)] = None
            paths = [self._nth(number) for number in drawn]
        return self._listed(iter(paths), len(paths))

    def _listed(self, paths: Iterator[list[int]], count: int) -> pa.Table:
        """``count`` matches in one table, which is refused as soon as it is known to be too large."""
        budget, tables = Budget(), [self._layout.schema().empty_table()]
        size, left = 0, count
        self._refuse_beyond(budget, count, LEAST * count)
        while piece := list(islice(paths, PIECE)):
            tables.append(self._table(piece))
            size, left = size + tables[-1].nbytes, left - len(piece)
            self._refuse_beyond(budget, count, size + LEAST * left)
        return pa.concat_tables(tables)

    def _refuse_beyond(self, budget: Budget, count: int, size: float) -> None:
        """Raise a :class:`LimitError` where ``count`` matches take ``size`` bytes, and that is too much."""
        if not budget.holds(count, size):
            raise LimitError(
                f"{count:,} of the {self.count:,} matches that end at {self.end} go over the budget of {budget}\n"
                "hint: tables() gives all of them in pieces; first(n) and sample(n) with a smaller n"
            )

    def _nth(self, number: int) -> list[int]:
        """The match with a number below ``count``, as nodes from the last to the first. O(its length and the unions on its way)."""
        counts = self._counts
        path: list[int] = []
        choices = self._found.roots.tolist()
        while True:
            for node in choices:
                if number < counts[node]:
                    break
                number -= counts[node]
            if not self._found.joins(node):
                path.append(node)
            choices = self._found.behind(node)
            if not choices:
                return path

    def _paths(self) -> Iterator[list[int]]:
        """All matches, as nodes from the last to the first."""
        nodes, low = self._found.nodes, self._found.low
        stack: list[tuple[int, int]] = [(root, 0) for root in reversed(self._found.roots.tolist())]
        path: list[int] = []
        while stack:
            node, length = stack.pop()
            if nodes.start[node] < low:
                continue
            del path[length:]
            behind = self._found.behind(node)
            if self._found.joins(node):
                stack += [(one, length) for one in reversed(behind)]
                continue
            path.append(node)
            if not behind:
                yield path.copy()
            stack += [(one, length + 1) for one in behind]

    def _table(self, paths: list[list[int]]) -> pa.Table:
        nodes = self._found.nodes
        schema = self._layout.schema()
        if not paths:
            return schema.empty_table()
        offset = np.zeros(len(paths) + 1, np.int64)
        np.cumsum([len(path) for path in paths], out=offset[1:])
        chain = np.array([node for path in paths for node in reversed(path)], np.int64)
        position = nodes.position[chain]
        found = Matches(
            position[offset[:-1]], position[offset[1:] - 1], offset, position, nodes.label[chain].astype(np.int32)
        )
        tables = build_tables([found], self._layout, self._rows, self._marks, self._order)
        return pa.Table.from_batches([batch for table in tables for batch in table.to_batches()], schema=schema)

    def __repr__(self) -> str:
        return f"<stretto.MatchSet of {self.count:,} matches that end at {self.end}>"


def program_of_sets(query: Query, *, timeouts: bool) -> NfabProgram:
    """The program that hands over sets of matches.

    Raises
    ------
    OptionError
        The query's matches cannot be handed over unlisted.
    """
    if timeouts:
        raise OptionError("timeouts= has rows beside those of matches, and sets have none: use match()")
    parsed = query.parsed
    if parsed.no_sets:
        raise OptionError(parsed.no_sets)
    if parsed.asked is not None:
        raise OptionError("a set holds all matches, and this query counts or chooses among them: use match()")
    if query.bound.plan.negates:
        raise OptionError(
            "a negation is decided match by match, so that they cannot be handed over unlisted: use match()"
        )
    if parsed.keep is not None:
        raise OptionError(
            "a set is handed over whole, and KEEP and AFTER MATCH leave one match for each start: use match()"
        )
    if parsed.limit is not None:
        raise OptionError("a set is handed over whole: leave out LIMIT, and take set.first(n)")
    from stretto.engines.programs import NfabProgram

    return NfabProgram(cast(BoundSase, query.split))


def refuse_unlisted(query: Query) -> None:
    """Matches that are to be handed over as sets are not listed, unless LIMIT bounds how many an event gives.

    Raises
    ------
    OptionError
        The query has OUTPUT compressed and no LIMIT.
    """
    if query.parsed.compressed and query.limit is None:
        raise OptionError(
            "OUTPUT compressed hands matches over as sets: read them with stretto.match_sets(query, events), or let LIMIT n list "
            "at most n for each event"
        )


def _refuse_negative(call: str, n: int) -> None:
    if n < 0:
        raise OptionError(f"{call}(n={n}): give a number of matches, 0 or more")
