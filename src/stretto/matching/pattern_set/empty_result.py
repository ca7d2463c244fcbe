"""What the events of a stream lack of what patterns ask of single events: told once for a whole set, and not for each pattern.

The first events are kept as they came, and nothing is looked at before somebody asks: then those patterns that have found nothing
are asked, one by one, and a bounded number of them in full.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from stretto.errors import StrettoError
from stretto.events import Schema, conform
from stretto.matching.empty_result.queries import distinct, looked_of, says, too_far_apart, unmet_arcs
from stretto.matching.empty_result.streams import MOST_TYPES
from stretto.matching.empty_result.unsatisfied import Choices, counted, pieces, read
from stretto.matching.pattern_set.afa_run import CompiledAutomaton
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, CompiledQuery
from stretto.matching.pattern_set.row_pattern_run import CompiledRowPattern
from stretto.matching.pattern_set.versions import InForce, Version
from stretto.matching.sql.row_pattern_table import unmet

#: Events that are kept, among which conditions, keys and windows are looked for.
MOST_KEPT = 100_000

#: Patterns without a match that are looked at in full, those that the fewest events concerned first: queries, and all others.
MOST_QUERIES, MOST_OTHERS = 16, 8

#: Findings that a message has at most, and patterns that it names for each.
TOLD, NAMED = 8, 3


class Lacking:
    """Keeps the first events of a stream.

    Parameters
    ----------
    schema
        The columns of the events.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._column = schema.type or schema.stream
        if self._column not in schema.attributes:
            self._column = None
        self._types: dict[str | None, None] = {}
        self._kept: list[pa.Table] = []
        self._rows = 0
        self._first: Collection[Version] | None = None
        #: The ids of these that have found nothing.
        self._open: set[str] = set()
        self._tested: set[str] = set()  #: what those read that are asked
        self._choose = Choices()  #: what is asked of types while one of :meth:`of` runs
        self._pieces: dict[tuple[str, ...], list[pa.Table]] = {}  #: and the events, by the columns that are read
        self.events = 0  #: how many came
        self.without = 0  #: how many patterns had found nothing when that was asked last

    def read(self, table: pa.Table, in_force: InForce) -> None:
        """Keep events, and note their types; ``in_force``: the patterns that hold with the first of them."""
        if self._first is None:
            self._first = in_force.versions
            self._open = {version.id for version in in_force.versions}
        self.events += table.num_rows
        if (left := MOST_KEPT - self._rows) > 0:
            self._kept.append(table.slice(0, left))
            self._rows += self._kept[-1].num_rows
        if self._column is not None and self._column in table.column_names and len(self._types) <= MOST_TYPES:
            column = conform(table, [self._column], self._schema.attributes).column(0)
            self._types |= distinct(column, MOST_TYPES)

    def note(self, found: pa.Table) -> None:
        """Note the patterns of some rows of the result."""
        if found.num_rows and self._open:
            self._open.difference_update(str(name) for name in distinct(found.column("pattern")))

    def of(self, versions: Sequence[Version]) -> dict[str, list[str]]:
        """By id: what the events lack of what patterns ask that hold from the first one on, and have found nothing; in words."""
        since = set(self._first or ())
        asked = [one for one in versions if one in since and one.off is None and one.id in self._open]
        self.without = len(asked)
        self._tested = {name for one in asked for name in one.part.tested}
        found: dict[str, list[str]] = {}
        left = {True: MOST_QUERIES, False: MOST_OTHERS}
        for version in sorted(asked, key=lambda one: one.concerned):
            kind = isinstance(version.part, CompiledQuery)
            try:
                told = self._absent(version.part)
                if not told and left[kind]:
                    left[kind] -= 1
                    told = (
                        self._of_query(version.part)
                        if isinstance(version.part, CompiledQuery)
                        else self._says(version.part)
                    )
            except StrettoError:  # a computation that fails, of which the pattern itself tells
                continue
            if told:
                found[version.id] = told
        self._choose, self._pieces = Choices(), {}
        return {one.id: found[one.id] for one in asked if one.id in found}

    def _absent(self, part: CompiledPattern) -> list[str]:
        """Which types no event has that every match needs one of."""
        if not isinstance(part, CompiledQuery) or self._column is None or len(self._types) > MOST_TYPES:
            return []
        if all(name in self._types for name in part.query.parsed.wanted):
            return []
        looked = looked_of(part.query)
        return says([one for one in looked if one.types and not set(one.types) & self._types.keys()], self._types)

    def _says(self, part: CompiledPattern) -> list[str]:
        """What an automaton or a clause asks that none of the events that are kept fulfils."""
        events = self._events(part.tested)
        told = []
        if isinstance(part, CompiledAutomaton):
            told = unmet_arcs(part.afa, conform(events, part.afa.events, part.afa.events))
        elif isinstance(part, CompiledRowPattern):
            told = unmet(part.bound, events)
        return self._among(told)

    def _of_query(self, part: CompiledQuery) -> list[str]:
        """The same of a query, with keys and windows."""
        query = part.query
        events = query.implied.added_to(self._events(part.tested))
        known = [one for one in looked_of(query) if one.columns and one.columns <= set(events.column_names)]
        names = sorted({name for one in known for name in one.columns})
        if names:
            there = list(pieces(events, names))
            if not query.implied.keys:  # patterns that read the same columns ask the same types of the same tables
                there = self._pieces.setdefault((*names,), there)
            read(known, there, self._choose)
        apart = too_far_apart(query, events)
        # Types that came behind the events that are kept are none of theirs.
        occurring = [one for one in known if one.events]
        return self._among([*says(occurring, self._types), *([] if apart is None else [apart])])

    def _among(self, told: list[str]) -> list[str]:
        """What is said of the events that are kept, where there were others."""
        return told if self._rows == self.events else [f"of the first {self._rows:,}: {one}" for one in told]

    def _events(self, names: Collection[str]) -> pa.Table:
        """Some columns of the events that are kept, in one piece."""
        attributes = self._schema.attributes
        if len(self._kept) > 1:
            known = [name for name in attributes if name in self._tested]
            self._kept = [pa.concat_tables(conform(one, known, attributes) for one in self._kept).combine_chunks()]
        return conform(self._kept[0], [name for name in attributes if name in names], attributes)


def summary(found: Mapping[str, Sequence[str]], without: int, patterns: int, noun: str) -> str:
    """What patterns lack, in one message; ``patterns``: how many there are, ``without``: how many of them have no match.

    >>> found = {"a": ["no event has the type 'X'"], "b": ["no event has the type 'X'"]}
    >>> print(summary(found, 2, 9, "pattern"))
    no match of 2 of 9 patterns: 'a', 'b': no event has the type 'X'
    >>> print(summary(found, 5, 9, "pattern"))
    no match of 5 of 9 patterns; of 2 single events tell why: 'a', 'b': no event has the type 'X'
    """
    whose: dict[str, list[str]] = {}
    for name, told in found.items():
        whose.setdefault(told[0], []).append(name)
    listed = [f"{_named(names)}: {said}" for said, names in list(whose.items())[:TOLD]]
    more = [f"and {counted(len(whose) - TOLD, 'other reason')}"] if len(whose) > TOLD else []
    known = "" if len(found) == without else f"; of {len(found):,} single events tell why"
    return f"no match of {without:,} of {counted(patterns, noun)}{known}: {'; '.join([*listed, *more])}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(map(repr, names[:NAMED])) + more
