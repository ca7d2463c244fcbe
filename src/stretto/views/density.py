"""How many matches there are over time, and of which keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.arguments import check_arguments
from stretto.errors import OptionError, hinted
from stretto.events import as_table
from stretto.views.clock import Clock, labels, share
from stretto.views.scene import Box, Line, Scene, Words
from stretto.views.table import Columns, dated, is_events, is_measure, is_time, one_array, python
from stretto.views.text import clean, ends, short, width
from stretto.views.view import View

WIDTH, BARS, ROW = 860, 160, 22
MOST_BINS = 1_000
_BLOCKS = " ▁▂▃▄▅▆▇█"


@check_arguments
def density(
    matches: Any, by: str | None = None, *, bins: int = 60, keys: int = 20, time_unit: str | None = None
) -> View:
    """Show how many matches end when: a histogram, or with ``by`` a row for each key, the most frequent first.

    Parameters
    ----------
    matches
        What :func:`stretto.match` gives. Where times are not known, matches are counted by ``end``. Rows with ``sign`` −1 take
        back, and are counted so.
    by
        A column, such as a partition attribute.
    bins
        How many parts the time is cut into.
    keys
        How many keys have a row; the others have one together.
    time_unit
        What integer times count since 1970: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; ``None``: they stay numbers.

    Returns
    -------
    View
        ``str()`` gives text, a notebook shows the picture, ``save()`` writes ``.svg``, ``.png``, ``.html`` or ``.txt``.

    Raises
    ------
    OptionError
        There is no column of this name, no such unit, or no column that says when a match ends.

    Examples
    --------
    >>> import stretto
    >>> matches = stretto.match("SELECT * FROM S WHERE A; B", [{"type": one} for one in "ABABAB"])
    >>> print(stretto.density(matches, bins=5))
    6 matches by end, from 1 to 5
    ▃ ▆ █
    """
    table = dated(as_table(matches), time_unit)
    if not (1 <= bins <= MOST_BINS and keys >= 1):
        raise OptionError(f"density(bins={bins}, keys={keys}): bins is from 1 to {MOST_BINS:,}, and keys at least 1")
    kinds = {field.name: field.type for field in table.schema}
    end = next((one for one in ("end_time", "end") if one in kinds and is_measure(kinds[one])), None)
    if end is None:
        raise OptionError(
            "density() counts matches by 'end_time' or 'end', and the table has neither as times or numbers"
        )
    if by is not None and by not in table.column_names:
        raise OptionError(hinted(f"by='{by}': there is no such column", by, table.column_names))
    if by is not None and pa.types.is_nested(table.schema.field(by).type):
        what = "the events of a variable" if is_events(table.schema.field(by).type) else "lists or groups of values"
        raise OptionError(f"by='{by}' holds {what}: name a column of single values, such as a partition attribute")
    column = table.column(end)
    table = table.filter(
        pc.fill_null(pc.is_finite(column), False) if pa.types.is_floating(column.type) else pc.is_valid(column)
    )
    clock = Clock(table.schema.field(end).type)
    signed = bool(Columns.of(table.schema).sign)
    weights = (
        np.asarray(one_array(table.column("sign"))).astype(np.int64) if signed else np.ones(table.num_rows, np.int64)
    )
    names, row = _rows(table, by, keys)
    if not table.num_rows:
        return _nothing(end)
    at = _as_floats(one_array(table.column(end)))
    low, high = float(at.min()), float(at.max())
    scale = 1.0 if math.isfinite(high - low) else 0.25  # of numbers whose distance is beyond the greatest double
    edges = (
        np.linspace(low * scale, (high if high > low else low + max(1.0, abs(low) / 10**9)) * scale, bins + 1) / scale
    )
    place = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, bins - 1)
    counts = np.zeros((len(names), bins), np.int64)
    np.add.at(counts, (row, place), weights)
    total = int(weights.sum())
    digits = clock.digits(edges.tolist()) if clock.per_second is None else max(-1, clock.digits([low, high]))
    told = [clock.text(int(edge) if clock.per_second else edge, digits) or short(edge) for edge in edges]
    span = f"from {told[0]} to {told[-1]}" if high > low else f"at {told[0]}"
    title = f"{total:,} match{'' if total == 1 else 'es'} by {end}, {span}"
    scene = _picture(counts, names, [clock, edges.tolist(), told], title, bars=by is None)
    return View("\n".join([title, *_lines(counts, names, bars=by is None)]), scene.svg, scene)


def _as_floats(column: pa.Array) -> NDArray[np.float64]:
    """Read a column without NULLs as numbers; the last digits of great ones do not matter in a picture."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif is_time(column.type):
        column = column.cast(pa.int64())
    return np.asarray(column.cast(pa.float64(), safe=False))


def _rows(table: pa.Table, by: str | None, most: int) -> tuple[list[str], NDArray[np.int64]]:
    """The rows of the picture by name, and the row of each match."""
    if by is None:
        return [""], np.zeros(table.num_rows, np.int64)
    own = one_array(table.column(by))
    if pa.types.is_null(own.type):
        return ["NULL"], np.zeros(table.num_rows, np.int64)
    coded = own.dictionary_encode(null_encoding="encode")
    code = np.asarray(coded.indices.fill_null(len(coded.dictionary))).astype(np.int64)
    count = np.bincount(code, minlength=len(coded.dictionary) + 1)
    order = np.argsort(-count, kind="stable")
    order = order[count[order] > 0]
    values = [*python(coded.dictionary), None]
    names = ["NULL" if values[one] is None else short(values[one], 200) for one in order[:most]]
    place = np.full(count.size, len(names), np.int64)
    place[order[:most]] = np.arange(len(names))
    rest = order.size - len(names)
    return names + [f"{rest:,} other{'s' * (rest > 1)}"] * (rest > 0), place[code]


def _nothing(end: str) -> View:
    scene = Scene(WIDTH, 60, "no matches", [Words(20, 34, f"no matches, so that none has {end}", "faint", size=13)])
    return View("no matches", scene.svg, scene)


def _lines(counts: NDArray[np.int64], names: Sequence[str], *, bars: bool) -> list[str]:
    """Rows of blocks, each as high as its count."""
    most = max(1, int(counts.max()))
    shown = [ends(name, 24) for name in names]
    room = max(map(len, shown), default=0)
    found = []
    for name, row in zip(shown, counts.tolist(), strict=True):
        blocks = "".join(_BLOCKS[0 if one <= 0 else max(1, -(-one * 8 // most))] for one in row)
        found.append(blocks if bars else f"{name:<{room}} {blocks} {sum(row):,}")
    return found


def _picture(counts: NDArray[np.int64], names: Sequence[str], axis: list[Any], title: str, *, bars: bool) -> Scene:
    clock, edges, told = axis
    left = 56.0 if bars else min(200.0, max(width(ends(name, 28)) for name in names)) + 28
    right, top = (24.0 if bars else 64.0), 44.0
    inner = WIDTH - left - right
    height = BARS if bars else ROW * len(names)
    step = inner / counts.shape[1]
    most = max(1, int(counts.max()))
    shapes: list[Any] = [Words(20, 26, title, size=13, bold=True)]
    marks = clock.marks(edges[0], edges[-1], 7)

    def x(value: float) -> float:
        return float(left + share(value, edges[0], edges[-1]) * inner)

    shapes.extend(Line(x(mark.value), top, x(mark.value), top + height, "grid") for mark in marks)
    shapes.extend(labels(marks, x, top + height + 18, WIDTH))
    if bars:
        for part in sorted({most, (most + 1) // 2}):
            y = top + height - height * part / most
            shapes.append(Line(left, y, left + inner, y, "grid"))
            shapes.append(Words(left - 8, y + 4, f"{part:,}", "faint", "end"))
    for number, row in enumerate(counts.tolist()):
        y = top + ROW * number
        if not bars:
            shapes.append(Words(left - 10, y + 15, ends(names[number], 28), anchor="end"))
            shapes.append(Words(left + inner + 8, y + 15, f"{sum(row):,}", "faint"))
            shapes.append(Box(left, y + 2, inner, ROW - 4, "band"))
        for at, count in enumerate(row):
            if count <= 0:
                continue
            hover = f"{clean(names[number]) + ': ' if names[number] else ''}{count:,}\n{told[at]} – {told[at + 1]}"
            if bars:
                tall = height * count / most
                shapes.append(Box(left + at * step + 0.5, top + height - tall, max(1, step - 1), tall, "lane0", hover))
            else:
                strong = min(1.0, 0.2 + 0.8 * count / most)
                shapes.append(Box(left + at * step, y + 2, max(1, step), ROW - 4, "heat", hover, strong))
    shapes.append(Line(left, top + height, left + inner, top + height, "faint"))
    bottom = top + height + 30
    if clock.zone:
        shapes.append(Words(left, bottom + 8, f"times in {clock.zone}", "faint"))
        bottom += 14
    return Scene(WIDTH, bottom + 6, title, shapes)
