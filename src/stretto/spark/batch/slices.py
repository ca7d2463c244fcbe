"""Time slices: how a stream is cut into parts that can be matched on their own. Arithmetic only, no Spark.

Slice i owns the times from ``begins[i]`` up to ``begins[i + 1]`` and reports the matches that *end* there. A match that ends in
a slice began at most one window earlier, so the slice also reads what lies that far back, as *context*. Context that
reaches further back than needed changes nothing, because the engine applies the window itself; so windows that count events,
or measure another column than the time, get context from the border of a *cell*, a small piece of the stream whose rows
were counted. Borders are compared with times only, so that events of the same time are never cut apart.

Numbers are as the engine measures times (:func:`stretto.columns.measured.values_of`).

Times as Spark sees them: numbers of the engine as literals of a column's type, and where a time lies between borders.

Columns are compared as they are; a cast could round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.matching.compiled import Query
from stretto.query.query import Consume
from stretto.times import DAY

if TYPE_CHECKING:
    from pyspark.sql import Column


_INT64 = 1 << 63
_WIDE = Context(prec=80)


def comparable(kind: pa.DataType) -> bool:
    """Whether times of a type can be compared with literals exactly."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date32(kind)
        or (types.is_timestamp(kind) and kind.unit == "us")
    )


def place(time: Column, kind: pa.DataType, borders: Sequence[int | float | None]) -> Column:
    """How many of the ascending ``borders`` a time is at or behind. ``None`` is before all times; NULL is before all borders.

    A tree of comparisons: its depth, and the work for a row, is the logarithm of their number.
    """
    columns = [None if border is None else _literal(kind, border) for border in borders]
    passed = sum(one is None for one in columns)
    return _search(time, [one for one in columns if one is not None], passed)


def behind(time: Column, kind: pa.DataType, border: int | float) -> Column:
    """Whether a time is at or behind a border; NULL is neither that nor before it."""
    from pyspark.sql import functions as F

    literal = _literal(kind, border)
    return F.lit(True) if literal is None else time >= literal


def _search(time: Column, borders: Sequence[Column], passed: int) -> Column:
    from pyspark.sql import functions as F

    if not borders:
        return F.lit(passed)
    half = len(borders) // 2
    behind = _search(time, borders[half + 1 :], passed + half + 1)
    return F.when(time >= borders[half], behind).otherwise(_search(time, borders[:half], passed))


def _literal(kind: pa.DataType, value: int | float) -> Column | None:
    """The literal of a time; ``None`` where it is before all times of the type. Between two times: the one before."""
    from pyspark.sql import functions as F

    if isinstance(value, float):
        return F.lit(value)
    if value < -_INT64:
        return None
    if pa.types.is_date32(kind):
        days = value // DAY
        return F.date_from_unix_date(F.lit(days)) if days >= -(1 << 31) else None
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            return F.timestamp_micros(F.lit(value).cast("bigint"))
        days, micros = divmod(value, DAY * 10**6)
        seconds = Decimal(micros).scaleb(-6, _WIDE)
        since = F.make_dt_interval(F.lit(days), F.lit(0), F.lit(0), F.lit(seconds))
        return F.lit("1970-01-01").cast("timestamp_ntz") + since
    if pa.types.is_decimal(kind):
        if value <= -(10**kind.precision):
            return None
        exact = Decimal(value).scaleb(-kind.scale, _WIDE)
        return F.lit(f"{exact:f}").cast(f"decimal({kind.precision},{kind.scale})")
    return F.lit(value).cast("bigint")


#: Slices that are chosen, not asked for, have at least so many rows: a task and the survey before it cost about as much as
#: matching some 100,000.
ROWS_A_SLICE = 500_000

#: Slicing is chosen when it is expected to take at most this part of the time of one pass.
WORTH = 0.75

#: What a row costs in a slice, in relation to one in a single task, by how slices get their rows. A single task reads files
#: on all cores, and its JVM and Python work side by side: it keeps about 1.4 cores busy. Slices that read their own part of the files
#: save the shuffle, the others shuffle more than a single task. The price where slices read their part of the files, …
SCANNED = 1.1
#: … of a key whose rows are shuffled at any rate, …
IN_PLACE = 1.0
#: … and otherwise.
SHUFFLED = 1.7

#: More slices are taken than are expected to be fastest if that costs at most this factor.
EVEN = 1.05

Number = int | float
#: int64 or float64.
Numbers = NDArray[Any]


@dataclass(frozen=True)
class Cells:
    """A stream in small pieces along its time: cell 0 lies before ``edges[0]``, cell k from ``edges[k - 1]`` on.

    ``rows`` counts their rows (estimated where a window does not count). ``least`` and ``most`` are the extremes of the
    window's attribute in each cell, where that is not the time.
    """

    edges: Numbers
    rows: Numbers
    least: Numbers | None = None
    most: Numbers | None = None

    @classmethod
    def of_times(cls, times: Numbers, cells: int, rows: int) -> Cells:
        """At most ``cells`` cells with about as many rows each, from a sample of the times of ``rows`` rows; ties make fewer.

        Cells begin at the quantiles of the probabilities (k + ½) / ``cells``.
        """
        at = ((2 * np.arange(cells) + 1) * times.size - 1) // (2 * cells)
        values, counts = np.unique(np.sort(times)[at], return_counts=True)
        return cls(values[1:], counts * (rows / cells))

    @property
    def before(self) -> Numbers:
        """How many rows lie before each edge."""
        return np.cumsum(self.rows)[:-1]

    def counted(self, cells: I64, rows: I64, least: Numbers | None = None, most: Numbers | None = None) -> Cells:
        """The cells that have rows, with exact counts: ``cells`` are their numbers, ascending."""
        return Cells(self.edges[cells[1:] - 1], rows, least, most)


@dataclass(frozen=True)
class Pieces:
    """Parts of files: the first and the last time in each, and how many rows it has in relation to the others."""

    least: Numbers
    most: Numbers
    rows: Numbers


@dataclass(frozen=True)
class Slices:
    """Where slices begin, and their contexts; the first slice begins with the stream and has no context."""

    begins: tuple[Number, ...]
    #: Beside each of ``begins``: the first time of the context; ``None``: all that is before.
    lows: tuple[Number | None, ...]
    #: About how many rows each slice owns, and reads as context.
    own: tuple[int, ...]
    context: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.begins) + 1

    @property
    def overlap(self) -> float:
        """Rows that are read as context, in relation to all rows."""
        return sum(self.context) / max(1, sum(self.own))

    def cost(self, slots: int) -> float:
        """How long the slices take on ``slots`` cores, in relation to one pass over all rows."""
        costs = [own + context for own, context in zip(self.own, self.context, strict=True)]
        return max(*costs, sum(costs) / slots) / max(1, sum(self.own))

    def reading(self, pieces: Pieces) -> float:
        """How much is read where each slice reads the parts of files that reach into it, in relation to all rows."""
        read = 0
        for low, end in zip([None, *self.lows], [*self.begins, None], strict=True):
            reaches = np.ones(pieces.rows.size, np.bool_) if low is None else pieces.most >= low
            if end is not None:
                reaches &= pieces.least < end
            read += int(pieces.rows[reaches].sum())
        return read / max(1, int(pieces.rows.sum()))


def are_few(rows: float) -> bool:
    """Whether rows are too few for slices to pay."""
    return rows < 2 * ROWS_A_SLICE


def unsliceable(query: Query, *, shows_events: bool = True) -> str | None:
    """Why a bound query cannot be cut in time; ``None`` if it can. ``shows_events``: results hold events of matches.

    >>> import stretto
    >>> query = stretto.compile("SELECT * FROM S WHERE A; B", {"type": "string", "ts": "int64"}, time="ts")
    >>> unsliceable(query)
    'without WITHIN a match may begin with the first event'
    """
    window = query.bound.window
    if window is None:
        return "without WITHIN a match may begin with the first event"
    if query.parsed.non_overlap or query.parsed.keep is not None:
        chosen = "OUTPUT non_overlap" if query.parsed.non_overlap else "KEEP or AFTER MATCH"
        return f"{chosen} makes a match depend on all matches before it"
    if query.parsed.last_negation is not None:
        return f"{query.parsed.last_negation} looks at the events after a match"
    if query.consume is not Consume.NONE:
        return f"CONSUME BY {query.consume} makes an event depend on all matches before it"
    if query.limit is not None and shows_events:
        return "among matches that begin together, LIMIT takes some that depend on what came before"
    if query.split.partition_by and window.attribute is None:
        return "WITHIN n EVENTS counts the events of each key on its own"
    if query.split.partition_by and window.attribute != query.bound.schema.time:
        return (
            f"the window is measured by '{window.attribute}', and the events are ordered by '{query.bound.schema.time}'"
        )
    return None


def cut(cells: Cells, count: int, query: Query) -> Slices | None:
    """At most ``count`` slices with about as many rows each; ``None``: the stream cannot be cut, or is better not."""
    edges = _balanced(cells, count)
    if not edges.size:
        return None
    window = query.bound.window
    assert window is not None
    before, total = cells.before, cells.rows.sum()
    lows: list[Number | None]
    if window.attribute is None:
        first = _back_by_rows(before, edges, window.size)
    elif window.attribute == query.bound.schema.time:
        lows = [_earliest(cells.edges[at].item(), window.size) for at in edges]
        first = np.searchsorted(cells.edges, np.array(lows), side="right") - 1
    elif (found := _back_by_measure(cells, edges, window.size)) is None:
        return None
    else:
        first = found
    if window.attribute is None or cells.least is not None:
        lows = [None if at < 0 else cells.edges[at].item() for at in first]
    reached = np.where(first < 0, 0, before[np.maximum(first, 0)])
    context = before[edges] - reached
    own = np.diff(before[edges], prepend=0, append=total)
    return Slices(
        tuple(cells.edges[at].item() for at in edges),
        tuple(lows),
        tuple(round(rows) for rows in own),
        (0, *(round(rows) for rows in context)),
    )


def cut_for(cells: Cells, slots: int, query: Query, price: float = SHUFFLED) -> Slices | None:
    """As many slices as pay on ``slots`` cores, at the price of a row in a slice; ``None``: one pass is better."""
    most = int(cells.rows.sum()) // ROWS_A_SLICE
    if are_few(cells.rows.sum()):
        return None
    counts = {min(most, slots * rounds) for rounds in (1, 2, 3)}
    found = [one for count in sorted(counts) if count > 1 and (one := cut(cells, count, query)) is not None]
    best = min((one.cost(slots) for one in found), default=1.0)
    if price * best > WORTH:
        return None
    # More slices even out what differs from one to the next.
    return [one for one in found if one.cost(slots) <= EVEN * best][-1]


def _balanced(cells: Cells, count: int) -> I64:
    """The edges, by number, that cut the cells into ``count`` parts of about as many rows."""
    before, total = cells.before, cells.rows.sum()
    if count < 2 or not before.size:
        return np.empty(0, np.int64)
    wanted = np.arange(1, count) * (total / count)
    after = np.minimum(np.searchsorted(before, wanted), before.size - 1)
    left = np.maximum(after - 1, 0)
    nearer = np.abs(before[left] - wanted) < np.abs(before[after] - wanted)
    return np.unique(np.where(nearer, left, after))


def _earliest(begin: Number, size: Number) -> Number:
    """A time from which on an event may be in the window of one at ``begin``."""
    if isinstance(begin, int) and isinstance(size, int):
        return begin - size
    # The engine subtracts floats, which rounds: a little more than the window.
    return begin - size - 1e-12 * (abs(begin) + abs(size))


def _back_by_rows(before: Numbers, edges: I64, rows: Number) -> I64:
    """For each edge the latest one that has at least ``rows`` rows between; −1: there is none."""
    return np.searchsorted(before, before[edges] - rows, side="right") - 1


def _back_by_measure(cells: Cells, edges: I64, size: Number) -> I64 | None:
    """For each edge the latest one whose cell begins before the window of what follows; −1: there is none.

    ``None``: the attribute decreases, and one pass will say where.
    """
    least, most = cells.least, cells.most
    assert least is not None
    assert most is not None
    if (most[:-1] > least[1:]).any():
        return None
    bounds = np.array([_earliest(least[at + 1].item(), size) for at in edges])
    # Cell k begins at edge k − 1: strictly before the bound, so that the context's first row can be seen to lie outside.
    return np.maximum(np.searchsorted(least, bounds, side="left") - 2, -1)
