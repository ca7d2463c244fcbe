"""Matches as lanes of events, drawn and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from stretto.views.clock import Clock, labels, share
from stretto.views.scene import LANES, Box, Dot, Line, Scene, Shape, Words
from stretto.views.table import Event
from stretto.views.text import clean, cut, width

WIDTH = 860
_RIGHT = 40  # pixels behind the lanes
_LEVELS, _LEVEL, _LANE = 3, 14, 26  # rows of labels over a lane, the height of one, and of a lane without any
_LABEL = 10.5  # size of labels
_COLUMN, _BAR = 2, 20  # pixels of a column of a band of events, and the height of the column with the most
_GROUND = _LANE / 2 - 4  # from the middle of a lane to the ground of a band
_FAR = 6  # matches that together take so many times as long as the longest of them have axes of their own


@dataclass
class Held:
    """An event of a lane: its place on the axis, and what is written beside it."""

    at: Any
    event: Event
    label: str = ""


@dataclass
class Lane:
    """The events of a variable, or those that were skipped; where they are too many to be told apart, their times alone."""

    name: str
    marks: list[Held] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    more: int = 0  #: events of which nobody knows where they are
    skipped: bool = False

    @property
    def places(self) -> list[Any]:
        """Where its events are on the axis."""
        return self.times or [mark.at for mark in self.marks]

    @property
    def counted(self) -> str:
        """How many events there are, where they are not drawn one by one."""
        return f"{len(self.times):,} events" if self.times else ""

    @property
    def shown(self) -> str:
        """The name, as short as a lane has room."""
        return cut(clean(self.name), 20)


@dataclass
class Block:
    """A match."""

    title: str
    low: Any
    high: Any
    lanes: list[Lane]


class _Axis:
    """Where values are in the picture."""

    def __init__(self, blocks: Sequence[Block], clock: Clock, left: float) -> None:
        self.left, self.right = left, WIDTH - _RIGHT
        self.low, self.high = clock.spread(min(block.low for block in blocks), max(block.high for block in blocks))
        self.marks = clock.marks(self.low, self.high, 7)
        self.grid = [self.x(mark.value) for mark in self.marks]

    def column(self, value: Any) -> int:
        """The column of a band in which a value is."""
        last = int((self.right - self.left) / _COLUMN) - 1
        return min(last, int((self.x(value) - self.left) / _COLUMN))

    def x(self, value: Any) -> float:
        return self.left + share(value, self.low, self.high) * (self.right - self.left)


def _together(blocks: Sequence[Block]) -> list[Sequence[Block]]:
    """Matches that have one axis: all, or where they are so far apart that their events would be one dot, each its own."""
    whole = max(block.high for block in blocks) - min(block.low for block in blocks)
    near = whole <= _FAR * max(block.high - block.low for block in blocks)
    return [blocks] if near else [[block] for block in blocks]


def text(blocks: Sequence[Block], left_out: int) -> Iterator[str]:
    """Write a line for each lane; several events in one place are a number."""
    room = max(len(lane.shown) for block in blocks for lane in block.lanes)
    for group in _together(blocks):
        low, high = min(one.low for one in group), max(one.high for one in group)
        for block in group:
            yield clean(block.title)
            yield from (f"{lane.shown:<{room}} │{_cells(lane, low, high)}" for lane in block.lanes)
    if left_out:
        yield f"… {left_out:,} more matches"


def _cells(lane: Lane, low: Any, high: Any, wide: int = 60) -> str:
    counts = [0] * wide
    for at in lane.places:
        place = 0 if high == low else int(share(at, low, high) * (wide - 1))
        counts[min(wide - 1, max(0, place))] += 1
    sign = "·" if lane.skipped else "●"
    cells = (" " if count == 0 else sign if count == 1 else str(count) if count < 10 else "+" for count in counts)
    told = ", ".join(one for one in (lane.counted, f"{lane.more:,} more" if lane.more else "") if one)
    return "".join(cells) + "│" + (f" {told}" if told else "")


def picture(blocks: Sequence[Block], clock: Clock, left_out: int) -> Scene:
    """Draw matches below each other, on one axis where they are near each other."""
    left = max(width(lane.shown, 12) for block in blocks for lane in block.lanes) + 32
    names = dict.fromkeys(lane.name for block in blocks for lane in block.lanes if not lane.skipped)
    colours = {name: f"lane{number % LANES}" for number, name in enumerate(names)}
    shapes: list[Shape] = []
    y = 14.0
    for group in _together(blocks):
        axis = _Axis(group, clock, left)
        for block in group:
            shapes.append(Words(20, y + 16, cut(block.title, 110), size=13, bold=True))
            y = _block(shapes, block, axis, y + 26, colours, clock)
        shapes.append(Line(axis.left, y, axis.right, y, "faint"))
        shapes.extend(labels(axis.marks, axis.x, y + 18, WIDTH))
        y += 30
    remarks = [f"times in {clock.zone}"] if clock.zone else []
    remarks += [f"{left_out:,} more matches are not drawn"] if left_out else []
    if remarks:
        shapes.append(Words(20, y + 6, "; ".join(remarks), "faint"))
        y += 16
    return Scene(WIDTH, y + 6, blocks[0].title, shapes)


def _block(shapes: list[Shape], block: Block, axis: _Axis, y: float, colours: dict[str, str], clock: Clock) -> float:
    """Draw a match; gives where it ends."""
    rows = []
    for lane in block.lanes:
        levels = _levels(lane, axis)
        above = 0 if lane.times else max((one for one in levels if one is not None), default=-1)
        tall = _LANE + _LEVEL * (1 + above)
        shapes.append(Box(axis.left, y + 2, axis.right - axis.left, tall - 4, "band"))
        rows.append((lane, levels, y + tall - _LANE / 2))
        for at in axis.grid:
            shapes.append(Line(at, y + 2, at, y + tall - 2, "grid"))
        y += tall
    path = sorted(place for lane, _, middle in rows if not lane.skipped for place in _path(lane, middle))
    for (at, here), (then, there) in pairwise(path):
        shapes.append(Line(axis.x(at), here, axis.x(then), there, "skipped", 1.2))
    for lane, levels, middle in rows:
        ink, role, radius = ("faint", "skipped", 3.5) if lane.skipped else ("ink", colours[lane.name], 6.0)
        shapes.append(Words(axis.left - 12, middle + 4, lane.shown, ink, "end", 12))
        if lane.more:
            shapes.append(Words(axis.right + 4, middle + 4, f"+{lane.more:,}", "faint", size=9))
        if lane.times:
            shapes.extend(_band(lane, axis, middle + _GROUND, role, clock))
            begin = min(axis.x(min(lane.times)), axis.right - width(lane.counted, _LABEL))
            shapes.append(Words(begin, middle - 15, lane.counted, ink, size=_LABEL))
        for mark, level in zip(lane.marks, levels, strict=True):
            shapes.append(Dot(axis.x(mark.at), middle, radius, role, f"{lane.name}\n{mark.event.title}"))
            if level is not None:
                place, anchor = _place(mark, axis)
                shapes.append(Words(place, middle - 11 - _LEVEL * level, mark.label, ink, anchor, _LABEL))
    return y + 8


def _path(lane: Lane, middle: float) -> list[tuple[Any, float]]:
    """Where the line through the events of a match meets a lane: at each event, or on the ground of a band at its ends."""
    if lane.times:
        return [(at, middle + _GROUND) for at in (min(lane.times), max(lane.times))]
    return [(mark.at, middle) for mark in lane.marks]


def _band(lane: Lane, axis: _Axis, bottom: float, role: str, clock: Clock) -> Iterator[Shape]:
    """Many events as a band: of each column of pixels a bar, the more events it has the higher."""
    columns: dict[int, list[Any]] = {}
    for at in lane.times:
        columns.setdefault(axis.column(at), []).append(at)
    most = max(map(len, columns.values()))
    for number, own in sorted(columns.items()):
        first, last = min(own), max(own)
        digits = clock.digits([first, last])
        span = " – ".join(dict.fromkeys(clock.text(one, digits) for one in (first, last)))
        told = f"{lane.name}: {len(own):,} event{'' if len(own) == 1 else 's'}\n{span}"
        tall = max(2.0, _BAR * len(own) / most)
        yield Box(axis.left + number * _COLUMN, bottom - tall, _COLUMN, tall, role, told)


def _place(mark: Held, axis: _Axis) -> tuple[float, str]:
    """Where a label stands: over its event, or left of the right edge."""
    at = axis.x(mark.at)
    right = axis.right + _RIGHT / 2
    return (right, "end") if at + width(mark.label, _LABEL) / 2 > right else (at, "middle")


def _levels(lane: Lane, axis: _Axis) -> list[int | None]:
    """Heights of labels so that none lies over another; ``None`` where there is no room, and the pointer alone shows it."""
    ends = [float("-inf")] * (1 if lane.skipped else _LEVELS)
    found: list[int | None] = [None] * len(lane.marks)
    for number in sorted(range(len(lane.marks)), key=lambda one: lane.marks[one].at):
        mark = lane.marks[number]
        if not mark.label:
            continue
        place, anchor = _place(mark, axis)
        wide = width(mark.label, _LABEL)
        begin = place - (wide if anchor == "end" else wide / 2)
        level = next((one for one, end in enumerate(ends) if end < begin), None)
        if level is not None:
            ends[level] = begin + wide + 6
            found[number] = level
    return found
