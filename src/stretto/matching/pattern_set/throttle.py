"""Matches that come again too soon: at most one in a span of time for each pattern and key."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64, Bits
from stretto.columns.keys import one_zero
from stretto.columns.measured import values_of
from stretto.errors import OptionError
from stretto.frame import Section
from stretto.matching.reorder.spans import LONGEST, span
from stretto.times import DAY

Number = int | float

#: A span without end, and none at all.
ENDLESS, NONE = -1, -2

#: As a wait: matches come in the order of their ends, and how long after these nobody knows.
WHENEVER = -1

#: Columns of matches that are kept: the span behind them, and for how long an earlier one may still come. Users have other names.
_EVERY, _WAIT = "\0every", "\0wait"


def ticks_of(every: Any, what: str, kind: pa.DataType, time: str, unit: str | None) -> Number:
    """A span, or a number of ticks as text, as the engine measures times of type ``kind``; :data:`ENDLESS`: without end.

    Raises
    ------
    OptionError
        It is no span of such times.

    >>> ticks_of("2 days", "every", pa.date32(), "day", None), ticks_of("5 minutes", "every", pa.timestamp("ms"), "t", None)
    (172800, 300000)
    >>> ticks_of("2.5", "every", pa.decimal128(10, 2), "t", None)
    250
    """
    ticks = span(number_of(every), what, kind, time, unit)
    if ticks is None:
        return ENDLESS
    if pa.types.is_decimal(kind):
        return _without_point(ticks, every, what, kind, time)
    return ticks * DAY if pa.types.is_date32(kind) else ticks


def _without_point(ticks: Number, every: Any, what: str, kind: pa.DataType, time: str) -> int:
    """Ones of a decimal as the engine measures it."""
    units = Decimal(str(ticks)).scaleb(kind.scale)
    if units != int(units) or units > LONGEST:
        raise OptionError(f"{what}={every!r} is no span of '{time}', which is {kind}")
    return int(units)


def number_of(text: Any) -> Any:
    """The number that a text is; anything else as it is.

    >>> number_of("5"), number_of("5.0"), number_of("0.5"), number_of("5 minutes")
    (5, 5, 0.5, '5 minutes')
    """
    if isinstance(text, str):
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                number = kind(text)
                return int(number) if isinstance(number, float) and number.is_integer() else number
    return text


def first_of_each_span(key: I64, time: NDArray[Any], every: Any, tie: NDArray[Any] | None = None) -> Bits:
    """Which rows stay when, for each key, a row that stays leaves out those that come less than ``every`` after it.

    Parameters
    ----------
    key, time
        Of each row, in any order; rows of one time stay in their order.
    every
        Of each row or of all, in the unit of ``time``; :data:`ENDLESS`: without end.
    tie
        What orders rows of one time before their own order does.

    >>> first_of_each_span(np.array([1, 1, 2, 1, 1]), np.array([0, 4, 5, 10, 12]), 10).tolist()
    [True, False, True, True, False]
    """
    order = np.lexsort((time, key) if tie is None else (tie, time, key))
    values = np.unique(time)
    keys = np.unique(key[order], return_inverse=True)[1]
    every = np.broadcast_to(np.asarray(every), time.shape)[order]
    # A row as one number: its key, then the rank of its time. No row has a rank beyond the last one.
    width = values.size + 1
    rows = keys * width + np.searchsorted(values, time[order])
    late = np.where(every == ENDLESS, values.size, np.searchsorted(values, time[order] + every))
    after = np.searchsorted(rows, keys * width + late)
    ends = np.searchsorted(keys, np.arange(keys[-1] + 1 if keys.size else 0), side="right")
    kept = np.zeros(key.size, np.bool_)
    at = np.concatenate(([0], ends[:-1])).astype(np.int64) if ends.size else np.zeros(0, np.int64)
    while at.size:  # one row of each key that has one left
        kept[order[at]] = True
        after_at = np.maximum(after[at], at + 1)  # a span of 0 leaves out nothing
        going = after_at < ends
        at, ends = after_at[going], ends[going]
    return kept


def codes_of(columns: Iterable[pa.ChunkedArray], rows: int) -> I64:
    """A number for each row, equal where all columns are; a map is equal where its names and values are, in their order."""
    found = np.zeros(rows, np.int64)
    for column in columns:
        for part in _parts_of_map(column) if pa.types.is_map(column.type) else [column]:
            codes = pc.dictionary_encode(one_zero(part), null_encoding="encode")
            indices = codes.combine_chunks().indices if isinstance(codes, pa.ChunkedArray) else codes.indices
            own = np.asarray(indices).astype(np.int64)
            found = np.unique(found * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
    return found


def _parts_of_map(column: pa.ChunkedArray) -> list[pa.Array]:
    """The first name and value of each map, then the second, and so on; NULL where there are fewer."""
    maps = column.combine_chunks()
    maps = pa.concat_arrays(maps.chunks) if isinstance(maps, pa.ChunkedArray) else maps
    offsets = np.asarray(maps.offsets).astype(np.int64)
    counts = np.diff(offsets)
    found: list[pa.Array] = [pa.array(counts)]
    for number in range(int(counts.max(initial=0))):
        place = pa.array(offsets[:-1] + number, mask=counts <= number)
        found += [part.take(place) for part in (maps.keys, maps.items)]
    return found


class Repeats:
    """At most one match in a span of time, of a stream of matches.

    Of the matches of a pattern with the same key, in the order of their ends, one is left out that ends less than the span after
    the last one that was not. The span is that of the earlier one. Of several that end at once the first to come stays; where matches
    wait for time to pass, so that they do not come in the order of their ends, the one that begins first.

    Parameters
    ----------
    by
        The columns of matches that make a key, beside ``pattern``.
    """

    def __init__(self, by: Sequence[str]) -> None:
        self._columns = ["pattern", *by]
        #: The last match of each key, as long as its span is not over: the columns above, the end, and the span.
        self._last: pa.Table | None = None
        #: Matches before which others may still come.
        self._held: pa.Table | None = None

    def take(
        self, found: pa.Table, every: NDArray[Any], wait: NDArray[Any], reached: Number | None
    ) -> tuple[pa.Table, pa.Table]:
        """Take the next matches; gives those that stay, and those that are left out.

        Parameters
        ----------
        found
            Matches, as :class:`stretto.PatternSet` gives them.
        every
            The span of each; :data:`NONE`: it stays in any case.
        wait
            How long after its end an earlier match may still come, of each; 0: they come in the order of their ends, with these;
            :data:`WHENEVER`.
        reached
            No match before this time less its wait is still to come; ``math.inf``: none at all; ``None``: it is not known.
        """
        if self._held is None and (every == NONE).all():
            self._forget(reached)
            return found, found.slice(0, 0)
        rows = found.append_column(_EVERY, pa.array(every)).append_column(_WAIT, pa.array(wait))
        rows = rows if self._held is None else pa.concat_tables([self._held, rows])
        every, wait = rows.column(_EVERY).to_numpy(), rows.column(_WAIT).to_numpy()
        end = _numbers(rows, "end_time")
        opened = (
            (every != NONE) & (wait > 0) if reached is None else (every != NONE) & (wait > 0) & (end + wait >= reached)
        )
        self._held = rows.filter(pa.array(opened)) if opened.any() else None
        rows, every, end, wait = rows.filter(pa.array(~opened)), every[~opened], end[~opened], wait[~opened]
        kept = every == NONE
        asked = np.flatnonzero(~kept)
        kept[asked] = self._first(rows.take(pa.array(asked)), end[asked], every[asked], wait[asked])
        self._forget(reached)
        given = rows.drop_columns([_EVERY, _WAIT])
        return given.filter(pa.array(kept)), given.filter(pa.array(~kept))

    def _first(self, rows: pa.Table, end: NDArray[Any], every: NDArray[Any], wait: NDArray[Any]) -> Bits:
        """Which of some matches stay, each of which has a span; remembers the last ones."""
        if not rows.num_rows:
            return np.zeros(0, np.bool_)
        tie = np.where(wait > 0, _numbers(rows, "start_time"), 0)
        own = rows.select([*self._columns, "end_time", _EVERY, _WAIT])
        before = 0
        if self._last is not None:
            before = self._last.num_rows
            own = pa.concat_tables([self._last, own])
            ends = _numbers(self._last, "end_time")
            end, every = np.concatenate((ends, end)), np.concatenate((self._last.column(_EVERY).to_numpy(), every))
            tie = np.concatenate((np.full(before, np.iinfo(np.int64).min), tie))  # they were given
        key = codes_of((own.column(name) for name in self._columns), own.num_rows)
        kept = first_of_each_span(key, end, every, tie)
        stays = np.flatnonzero(kept)
        latest = stays[np.lexsort((end[stays], key[stays]))]
        latest = latest[np.append(key[latest][1:] != key[latest][:-1], True)]
        self._last = own.take(pa.array(np.sort(latest)))
        return kept[before:]

    def _forget(self, reached: Number | None) -> None:
        """Forget the matches whose spans are over."""
        if self._last is None or reached is None or reached == math.inf:
            return
        every, wait = self._last.column(_EVERY).to_numpy(), self._last.column(_WAIT).to_numpy()
        goes_on = (every == ENDLESS) | (wait == WHENEVER) | (_numbers(self._last, "end_time") + every + wait > reached)
        self._last = self._last.filter(pa.array(goes_on)) if goes_on.any() else None

    @property
    def held(self) -> list[str]:
        """The patterns of the matches before which others may still come, once for each match."""
        return [] if self._held is None else self._held.column("pattern").to_pylist()

    @property
    def idle(self) -> bool:
        """Whether nothing is remembered."""
        return self._held is None and self._last is None

    @property
    def expires(self) -> Number | None:
        """When the first match that is held back comes; if there is none, when the last span is over; ``None``: never."""
        if self._held is not None:
            due: Number = (_numbers(self._held, "end_time") + self._held.column(_WAIT).to_numpy()).min().item()
            return due
        if self._last is None:
            return None
        every, wait = self._last.column(_EVERY).to_numpy(), self._last.column(_WAIT).to_numpy()
        over = (_numbers(self._last, "end_time") + every + wait)[(every != ENDLESS) & (wait != WHENEVER)]
        return over.max().item() if over.size else None

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write what is remembered."""
        for name, table in (("last", self._last), ("held", self._held)):
            if table is not None:
                section.put_table(name, table)

    def load(self, section: Section) -> None:
        """Take what :meth:`save` wrote."""
        self._last, self._held = (section.table(name) if name in section.arrays else None for name in ("last", "held"))


def _numbers(rows: pa.Table, name: str) -> NDArray[Any]:
    return values_of(rows.column(name), name, 0)
