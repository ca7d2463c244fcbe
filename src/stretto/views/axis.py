"""What is written under an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stretto.views.clock import Mark
from stretto.views.scene import Words
from stretto.views.text import width

_EDGE = 6  # pixels that are free at the borders of the picture, and between labels


def labels(marks: Iterable[Mark], x: Callable[[float], float], y: float, wide: float) -> Iterator[Words]:
    """Write the marks of an axis, but for those that would lie over the one before.

    Parameters
    ----------
    marks
        From left to right.
    x
        Where a value is.
    y, wide
        The base line of the labels, and the width of the picture.
    """
    free = float(_EDGE)
    for mark in marks:
        half = width(mark.label) / 2
        place = min(max(x(mark.value), half + _EDGE), wide - half - _EDGE)
        if place - half >= free:
            free = place + half + _EDGE
            yield Words(place, y, mark.label, "faint", "middle")
