"""How a checked call runs over a batch DataFrame: by key, in time slices, or in one task, and why.

What is decided, in this order:

- Queries that relate all events run in one task, or are cut into time slices (:mod:`stretto.spark.batch.slices`) where that pays.
- Queries with ``PARTITION BY`` are hashed by their keys. A key that holds more than a fair share of the rows is cut in time.
- What cannot be cut, and what is too small to pay, is not; the reason is kept for :func:`stretto.spark.explain`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stretto.errors import OptionError
from stretto.matching.compiled import Query
from stretto.spark.batch import survey
from stretto.spark.batch.slices import (
    IN_PLACE,
    ROWS_A_SLICE,
    SCANNED,
    SHUFFLED,
    Cells,
    Pieces,
    Slices,
    are_few,
    comparable,
    cut,
    cut_for,
    unsliceable,
)
from stretto.spark.batch.survey import skips
from stretto.spark.columns import relevant
from stretto.spark.frames import column
from stretto.spark.prepared import Prepared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_SLICES = 4096

#: At most so many keys are cut in time.
MOST_HEAVY = 64

#: Slices are priced as if they were shuffled where at most this part of the events is left by the filter.
FEW_OF = 0.5

#: Slices read their own part of the files if all of them together read at most so many times what there is, …
MOST_READ = 1.5
#: … and if there are not too many: each is a part of Spark's plan, …
MOST_SCANS = 128
#: … and reads the footers of all files.
MOST_FOOTERS = 20_000

#: Context that does not end at one time is taken from cells, of which a slice has so many, and all slices together at most.
CELLS_A_SLICE = 16
MOST_CELLS = 1024


@dataclass(frozen=True)
class Heavy:
    """A key that is cut in time."""

    hash: int
    #: Its part of all rows, about.
    share: float
    slices: Slices


@dataclass(frozen=True)
class Plan:
    """How a call runs."""

    #: The events that can matter, with the columns that are read.
    rows: DataFrame
    #: Whether keys are hashed to tasks.
    keyed: bool
    #: The slices of all events, where there is no key.
    slices: Slices | None = None
    #: Whether each slice reads its own part of the files, so that nothing is shuffled.
    scans: bool = False
    #: The keys that are cut in time.
    heavy: tuple[Heavy, ...] = ()
    #: Into how many tasks keys are hashed; ``None``: Spark decides, or there are no keys.
    tasks: int | None = None
    #: Why nothing is cut in time.
    why: str = ""
    #: Why the query could not be cut, whatever its size, where that keeps it from scaling.
    bound: str = ""

    @property
    def cuts(self) -> bool:
        """Whether something is cut in time."""
        return self.slices is not None or bool(self.heavy)


def check_slices(slices: int | None) -> None:
    """Raise an :class:`OptionError` for a number of slices that cannot be."""
    if slices is None:
        return
    if not isinstance(slices, int) or isinstance(slices, bool) or not 1 <= slices <= MOST_SLICES:
        raise OptionError(
            f"slices={slices!r}: give a number from 1 (never cut) to {MOST_SLICES}, or None to let stretto decide"
        )


def make(call: Prepared, *, partitions: int | None, slices: int | None) -> Plan:
    """Decide how a call runs. May run small Spark jobs over the columns for time and keys."""
    condition = relevant(call.query)
    rows = call.events if condition is None else call.events.filter(condition)
    kept = list(dict.fromkeys([*call.columns, *call.order]))
    rows = rows.select(*map(column, kept), *(call.key_column(name).alias(name) for name in call.made_keys))
    for name in call.partition_by:
        rows = rows.filter(column(name).isNotNull())
    plan = Plan(rows, bool(call.keys), tasks=survey.tasks_for(rows, partitions) if call.keys else None)
    why = _uncut(call) or _unreadable(call, filtered=condition is not None)
    if why is not None:
        return replace(plan, why=why, bound=why)
    if slices == 1:
        return replace(plan, why="slices=1")
    if plan.keyed:
        return _with_heavy(plan, call, slices)
    return _with_slices(plan, call, slices, filtered=condition is not None)


def _uncut(call: Prepared) -> str | None:
    """Why the call cannot be cut in time."""
    if call.timeouts:
        return "timeouts= looks at the events after a first event, whether they complete a match or not"
    if call.query.parsed.asked is not None:
        return "what is asked of all matches of a key needs all of them in one task"
    return unsliceable(call.query, shows_events=bool(call.layout.variables))


def _unreadable(call: Prepared, *, filtered: bool) -> str | None:
    """Why the columns do not allow slices."""
    schema, window = call.query.bound.schema, call.query.bound.window
    time = call.roles[1]
    if not comparable(schema.attributes[time]):
        return f"'{time}' is {schema.attributes[time]}, which is not compared with single times"
    if window is not None and window.attribute != time and schema.stream is not None and not filtered:
        return f"events of other streams cannot be told apart by '{schema.stream}' in Spark"
    return None


def _too_small(plan: Plan, slices: int | None) -> tuple[str, int]:
    """Why nothing is to be gained, if that can be told without a job, and how many tasks run at a time."""
    if slices is not None:
        return "", 1
    size = survey.plan_bytes(plan.rows)
    if size is not None and size < survey.SMALL:
        return f"the events are few (about {size:,} bytes)", 1
    slots = survey.task_slots(plan.rows)
    return ("one task runs at a time" if slots < 2 else ""), slots


def _with_slices(plan: Plan, call: Prepared, slices: int | None, *, filtered: bool) -> Plan:
    why, slots = _too_small(plan, slices)
    if why:
        return replace(plan, why=why)
    surveyed = _survey(plan, call, slices, slots)
    if surveyed is None:
        return replace(plan, why="there are no events, or their times are not in order: one pass says where")
    cells, pieces = surveyed

    def cut_at(price: float) -> Slices | None:
        return cut(cells, slices, call.query) if slices else cut_for(cells, slots, call.query, price)

    found = cut_at(SCANNED if pieces is not None and not (filtered and _are_few_of(cells, call)) else SHUFFLED)
    if found is not None and pieces is not None:
        if _scans(plan, call, found, pieces):
            return replace(plan, slices=found, scans=True)
        found = cut_at(SHUFFLED)
    if found is None:
        return replace(plan, why=_why_one(cells, slices, slots, call.query))
    return replace(plan, slices=found)


def _are_few_of(cells: Cells, call: Prepared) -> bool:
    """Whether a filter leaves few of the events: most of the work is reading then, which one task's plan does on all cores, too."""
    return bool(cells.rows.sum() < FEW_OF * call.events.count())  # of files Spark reads their footers only


def _scans(plan: Plan, call: Prepared, slices: Slices, pieces: Pieces) -> bool:
    """Whether each slice is to read its own part of the files."""
    if slices.count > MOST_SCANS or slices.count * pieces.rows.size > MOST_FOOTERS:
        return False
    time = call.roles[1]
    least, most = pieces.least.min().item(), pieces.most.max().item()
    return slices.reading(pieces) <= MOST_READ and skips(
        plan.rows, time, call.columns[time], least - (most - least) - 1
    )


def _survey(plan: Plan, call: Prepared, slices: int | None, slots: int) -> tuple[Cells, Pieces | None] | None:
    schema, window = call.query.bound.schema, call.query.bound.window
    time = call.roles[1]
    found = survey.cells_along(plan.rows, time, _cells_for(slices or 3 * slots))
    if found is None or window is None or window.attribute == time:
        return found
    cells, pieces = found
    if slices is None and are_few(cells.rows.sum()):
        return found
    counted = survey.count_cells(plan.rows, time, schema.attributes[time], cells, window.attribute)
    return None if counted is None else (counted, pieces)


def _cells_for(slices: int) -> int:
    return max(slices, min(CELLS_A_SLICE * slices, MOST_CELLS))


def _why_one(cells: Cells, slices: int | None, slots: int, query: Query) -> str:
    rows = int(cells.rows.sum())
    if slices is not None:
        return "the events have one time, or the window's attribute decreases"
    if are_few(rows):
        return f"the events are few (about {rows:,})"
    if cut_for(cells, slots, query, SCANNED) is not None:
        return f"reading and filtering run on all cores as it is; slices do not pay where {slots} tasks run at a time"
    return f"the window reaches over too many of the events (about {rows:,}): slices would mostly read context"


def _with_heavy(plan: Plan, call: Prepared, slices: int | None) -> Plan:
    why, slots = _too_small(plan, slices)
    if why:
        return replace(plan, why=why)
    slots = slots if slices is None else survey.task_slots(plan.rows)
    share = 1 / (2 * slots)
    found = survey.frequent(
        plan.rows,
        call.keys,
        call.roles[1],
        share=share,
        least=2 * ROWS_A_SLICE if slices is None else 2,
        most=min(2 * slots, MOST_HEAVY),
        cells=_cells_for(slices or 3 * slots),
    )
    heavy = []
    for key in found:
        parts = cut(key.cells, slices, call.query) if slices else cut_for(key.cells, slots, call.query, IN_PLACE)
        if parts is not None:
            heavy.append(Heavy(key.hash, key.share, parts))
    if not heavy:
        return replace(plan, why=f"none holds more than {share:.0%} of the events, and enough of them to be worth it")
    return replace(plan, heavy=tuple(heavy), tasks=plan.tasks or slots)
