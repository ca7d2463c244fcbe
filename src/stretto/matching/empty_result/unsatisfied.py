"""Looking at events until there is one for everything that is asked of single events, and saying what none fulfils."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.columns.vectorized import judged
from stretto.errors import QueryError, Span, nearest
from stretto.matching.input.files import Source
from stretto.query import predicate as p
from stretto.query.plan import Conjunct

#: Rows of the first piece, and of those behind it.
FIRST, PIECE = 1 << 16, 1 << 20

#: Different texts of a column among which the nearest is looked for, and those that a message lists.
MOST_TEXTS, LISTED = 1_000, 5


#: Gives the rows of a table that fulfil a condition.
Choice = Callable[[p.Predicate, pa.Table], pa.Table]


def pieces(events: pa.Table | Source, columns: list[str]) -> Iterator[pa.Table]:
    """Some columns of events, piece by piece, a small one first."""
    if isinstance(events, Source):
        for piece in events.read(columns):
            if not isinstance(piece, int):
                yield pa.Table.from_batches([piece])
        return
    chosen, begin = events.select(columns), 0
    while begin < chosen.num_rows:
        size = PIECE if begin else FIRST
        yield chosen.slice(begin, size)
        begin += size


def those(condition: p.Predicate, piece: pa.Table) -> pa.Table:
    """The rows that fulfil a condition."""
    return piece if condition == p.And(()) else piece.filter(pa.array(judged(condition, piece).true))


def read(looked: Sequence[Looked], events: Iterable[pa.Table], choose: Choice = those) -> None:
    """Look at events until there is one for everything that is asked; ``choose`` gives those that fulfil a condition."""
    left = list(looked)
    for piece in events:
        for one in left:
            one.look(piece, choose)
        left = [one for one in left if not one.met]
        if not left:
            return


class Choices:
    """The rows of pieces that fulfil conditions (:func:`those`), each looked for once."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, p.Predicate], tuple[pa.Table, pa.Table]] = {}

    def __call__(self, condition: p.Predicate, piece: pa.Table) -> pa.Table:
        """Those rows. The piece is kept, so that no other one has its identity."""
        key = id(piece), condition
        if key not in self._found:
            self._found[key] = piece, those(condition, piece)
        return self._found[key][1]


@dataclass
class _Values:
    """The values that a column has, where some condition does not hold."""

    name: str
    nulls: int = 0
    rows: int = 0
    least: Any = None
    most: Any = None
    texts: dict[str, None] = field(default_factory=dict)

    def read(self, column: pa.ChunkedArray) -> None:
        """Note the values of some rows."""
        self.rows += len(column)
        self.nulls += column.null_count
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            if len(self.texts) <= MOST_TEXTS:
                here = pc.unique(column).cast(kind).drop_null()
                self.texts |= dict.fromkeys(here.slice(0, MOST_TEXTS + 1).to_pylist())
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind):
            here = pc.min_max(column).as_py()
            if here["min"] is not None:
                self.least = here["min"] if self.least is None else min(self.least, here["min"])
                self.most = here["max"] if self.most is None else max(self.most, here["max"])

    def says(self, condition: p.Predicate, shown: Callable[[str], str]) -> str:
        """What there is in place of what is asked; nothing where that would say nothing."""
        name = shown(self.name)
        if self.nulls == self.rows:
            return f": {name} is always NULL"
        if self.texts:
            for text in (one for one in _equal_to(condition) if one not in self.texts):
                best = nearest(text, [*self.texts][:MOST_TEXTS])
                if best is not None:
                    return f": {name} is never {p.Constant(text)}; did you mean {p.Constant(best)}?"
            listed = ", ".join(str(p.Constant(one)) for one in [*self.texts][:LISTED])
            return f": {name} is {listed}{', …' if len(self.texts) > LISTED else ''}"
        if self.least is None:
            return ""
        if self.least == self.most:
            return f": {name} is always {self.least}"
        return f": {name} is from {self.least} to {self.most}"


def _equal_to(condition: p.Predicate) -> Iterator[str]:
    """The texts that a condition compares with for equality."""
    for node in p.walk(condition):
        told = p.against_constant(node) if isinstance(node, p.Comparison) and node.op == "=" else None
        constants = node.values if isinstance(node, p.In) else () if told is None else (told[2],)
        yield from (one.value for one in constants if isinstance(one.value, str))


class Looked:
    """What has been found so far of one thing that is asked of single events.

    Parameters
    ----------
    asked, keys
        What an event must fulfil, and the keys that it must have.
    chosen
        Which events are looked at, and ``types``, which they have, to tell of.
    noun, shown
        What one of them is called, and how the name of a column is shown.
    source
        The text of the query, for places in it.
    """

    def __init__(
        self,
        asked: tuple[Conjunct, ...],
        keys: tuple[Conjunct, ...] = (),
        chosen: p.Predicate = p.And(()),  # noqa: B008 - it does not change
        types: tuple[str, ...] = (),
        noun: str = "event",
        source: str = "",
        shown: Callable[[str], str] = str,
    ) -> None:
        self.types, self.noun, self.source, self._shown = types, noun, source, shown
        self._chosen, self._conditions = chosen, len(asked)
        self._asked = (*asked, *keys)
        names = [p.attributes(one) for one in (self._chosen, *(one.condition for one in self._asked))]
        self.columns = {name for own in names for name in own}
        self.events = 0
        self.met = False  #: an event has everything
        self._fulfilled = [False] * len(self._asked)
        self._values = {
            number: _Values(only)
            for number, one in enumerate(asked)
            for only in p.attributes(one.condition)
            if len(p.attributes(one.condition)) == 1
        }

    def look(self, piece: pa.Table, choose: Choice = those) -> None:
        """Look at further events; ``choose`` gives those that fulfil a condition."""
        piece = choose(self._chosen, piece)
        self.events += piece.num_rows
        together = np.ones(piece.num_rows, np.bool_)
        for number, one in enumerate(self._asked):
            true, unknown = judged(one.condition, piece)
            may = true if unknown is None else true | unknown
            self._fulfilled[number] |= bool(may.any())
            together &= may
            if number in self._values and not self._fulfilled[number]:
                self._values[number].read(piece.column(self._values[number].name))
        self.met = bool(together.any())

    def says(self) -> list[str]:
        """Which conditions no event fulfils; nothing where there are no events of the types, of which something else tells."""
        if self.met or not self.events:
            return []
        keys = self._conditions
        lacking = [number for number, there in enumerate(self._fulfilled) if not there]
        none = f"of {counted(self.events, self.noun)}{of_types(self.types)} none"
        if not lacking:
            every = [one.text if at < keys else f"has the key '{one.text}'" for at, one in enumerate(self._asked)]
            return [f"{none} fulfils all of these together, though some fulfil each: {', '.join(every)}"]
        told = []
        for number in (one for one in lacking if one < keys):
            asked = self._asked[number]
            values = self._values[number].says(asked.condition, self._shown) if number in self._values else ""
            told.append(f"{none} fulfils {asked.text}{at(self.source, asked.span)}{values}")
        return told

    @property
    def without(self) -> list[Conjunct]:
        """The keys that none of its events has."""
        keys = self._conditions
        lacking = [] if self.met or not self.events else range(keys, len(self._asked))
        return [self._asked[number] for number in lacking if not self._fulfilled[number]]


def smallest(found: Sequence[str], enough: Callable[[Collection[str]], bool]) -> list[str]:
    """Those of some things that cannot be left out if they are to be enough; nothing where all of them are not.

    >>> smallest("abc", lambda own: {"a", "c"} <= set(own))
    ['a', 'c']
    """
    if not enough(found):
        return []
    kept = list(found)
    for one in found:
        rest = [other for other in kept if other != one]
        if enough(rest):
            kept = rest
    return kept


def of_types(types: Sequence[str]) -> str:
    """Some types, behind a number of events."""
    return f" of type {' or '.join(map(repr, types))}" if types else ""


def at(text: str, span: Span | None) -> str:
    """A place in a query's text, in brackets; nothing where it is not known.

    >>> at("SELECT *\\nFROM S", Span(9, 13))
    ' (line 2, column 1)'
    """
    where = QueryError("", text=text, span=span)
    return "" if where.line is None else f" (line {where.line}, column {where.column})"


def counted(number: int, noun: str = "event") -> str:
    """A number of events."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
