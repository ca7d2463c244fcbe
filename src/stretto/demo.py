"""The demo: delays that an aircraft carries from flight to flight, found in a year of flights by local Spark.

::

    python -m stretto.demo                                # prints the longest chains
    python -m stretto.demo docs/images/delay_chain.png    # and draws the first of them
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from stretto.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyspark.sql import DataFrame

SHOWN = 10

#: An aircraft leaves New York on time, then two or more times in a row late, until it leaves on time again. ``STRICT``: no flight of
#: the aircraft between them is left out, so that every chain is reported once.
QUERY = """
SELECT STRICT before, late, after
FROM flights
WHERE ON_TIME AS before ; (LATE ; LATE+) AS late ; ON_TIME AS after
PARTITION BY [tailnum]
WITHIN 36 hours
"""

#: Where a clone of the repository has the flights; they are too large to be installed with the library.
FLIGHTS = Path(__file__).parents[2] / "examples" / "flights" / "flights2013.parquet"

Chain = dict[str, Any]


def run(out: str | Path | None = None, *, flights: str | Path = FLIGHTS, console: Console | None = None) -> int:
    """Find the chains, print the longest ones, and draw the longest one into ``out`` (PNG, SVG or PDF).

    Parameters
    ----------
    out
        The picture's file.
    flights
        The Parquet file of the flights.
    console
        Where to print.

    Returns
    -------
    int
        How many chains there are.

    Raises
    ------
    OptionError
        PySpark or Java is missing, or the file of flights; the message says what to do.
    """
    from stretto.spark import session

    path = Path(flights)
    if not path.exists():
        raise OptionError(
            f"there are no flights at {path}: run the demo in a clone of stretto's repository, or name a copy of its "
            "examples/flights/flights2013.parquet with --flights"
        )
    console = console or Console()
    console.print("[bold]Delays that an aircraft carries from flight to flight[/bold], New York 2013\n")
    console.print(Syntax(QUERY.strip(), "sql", background_color="default"))
    console.print()
    with _phase(console, "compiling what the query needs, once for this machine"):
        _warm_up(path)
    with _phase(console, "starting Spark"):
        table = session("stretto demo").read.parquet(str(path))
        total = table.count()
    with _phase(console, f"matching {total:,} flights on Spark"):
        count, longest = find_chains(table)
    console.print(f"\n{count:,} chains. The longest:\n")
    console.print(_table(longest))
    if out is None:
        return count
    if importlib.util.find_spec("matplotlib") is None:
        console.print("\nNo picture: that needs matplotlib (pip install 'stretto\\[draw]').")
        return count
    console.print()
    with _phase(console, "drawing the first of them"):
        draw_chain(longest[0], out)
    console.print(f"The picture is {out}.")
    return count


@contextmanager
def _phase(console: Console, what: str) -> Iterator[None]:
    """Say what is being done, in a log as well, and then how long it took."""
    began = time.perf_counter()
    if console.is_terminal:
        with console.status(f"{what} …"):
            yield
    else:
        console.print(f"{what} …")
        yield
    console.print(f"{what}: {time.perf_counter() - began:.1f} s")


def _warm_up(path: Path) -> None:
    """Compile the kernels here, once, rather than in each of Spark's workers at the same time."""
    import pyarrow.parquet as pq

    import stretto

    few = pq.read_table(path).slice(0, 5000)
    stretto.match(QUERY, few, time="sched_dep", sequence="id")


def find_chains(flights: DataFrame, shown: int = SHOWN) -> tuple[int, list[Chain]]:
    """How many chains there are, and the longest of them: most late legs first, then most minutes."""
    from pyspark.sql import functions as F

    from stretto.spark import match
    from stretto.spark.compat import to_arrow

    chains = match(flights, QUERY, time="sched_dep", sequence="id").cache()
    try:
        minutes = F.expr("aggregate(late.dep_delay, 0, (sum, delay) -> sum + delay)")
        longest = chains.orderBy(F.size("late").desc(), minutes.desc(), "start_time").limit(shown)
        # Arrow keeps the times in UTC; rows would come in the machine's time zone.
        return chains.count(), to_arrow(longest).to_pylist()
    finally:
        chains.unpersist()


def legs(chain: Chain) -> list[dict[str, Any]]:
    """The flights of a chain, in order."""
    return [*chain["before"], *chain["late"], *chain["after"]]


def _table(chains: list[Chain]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("aircraft", no_wrap=True)
    table.add_column("from", no_wrap=True)
    table.add_column("late", justify="right")
    table.add_column("worst", justify="right", no_wrap=True)
    table.add_column("departures, with minutes of delay")
    for chain in chains:
        flown = legs(chain)
        worst = max(leg["dep_delay"] for leg in flown)
        table.add_row(
            f"{flown[0]['carrier']} {chain['tailnum']}",
            f"{_local(chain['start_time']):%d %b %H:%M}",
            str(len(chain["late"])),
            f"{worst} min",
            "  ".join(_leg(leg) for leg in flown),
        )
    return table


def _leg(leg: dict[str, Any]) -> str:
    color = "red" if leg["type"] == "LATE" else "green"
    return f"{leg['origin']}→{leg['dest']}\u00a0[{color}]{leg['dep_delay']:+d}[/{color}]"


def _local(when: dt.datetime) -> dt.datetime:
    """New York's time, or UTC on a machine without time zones."""
    try:
        return when.astimezone(ZoneInfo("America/New_York"))
    except ZoneInfoNotFoundError:
        return when.astimezone(dt.UTC)


_DAY = 24 * 60  # minutes
_INK, _PALE, _LATE, _AIR = "#222222", "#8a8f98", "#c0392b", "#5b7c99"


def draw_chain(chain: Chain, out: str | Path) -> None:
    """Draw a chain on a time axis: each leg's scheduled departure, its delay, and its time in the air."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.dates import DateFormatter, HourLocator
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    flown = legs(chain)
    first = _local(chain["start_time"])
    zone = first.tzinfo
    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15)
    figure = Figure(figsize=(10, 1.3 + 0.45 * len(flown)), dpi=160, layout=layout)
    FigureCanvasAgg(figure)
    axes: Axes = figure.add_subplot()
    for row, leg in enumerate(flown):
        _draw_leg(axes, row, leg)
    axes.set_yticks(range(len(flown)), [f"{leg['origin']} → {leg['dest']}" for leg in flown])
    axes.set_ylim(len(flown) - 0.4, -0.7)
    axes.xaxis_date(tz=zone)
    axes.xaxis.set_major_locator(HourLocator(byhour=range(0, 24, 3), tz=zone))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M", tz=zone))
    left, right = axes.get_xlim()
    axes.set_xlim(left, right + 0.04 * (right - left))  # room for the last leg's label
    _mark_midnights(axes, first, _local(chain["end_time"]))
    axes.tick_params(axis="y", length=0, labelcolor=_INK)
    axes.tick_params(axis="x", color=_PALE, labelcolor=_INK)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_PALE)
    axes.set_xlabel("New York time", color=_INK)
    aircraft = f"{flown[0]['carrier']} {chain['tailnum']}, {first.day} {first:%B %Y}"
    title = f"{aircraft}: {len(chain['late'])} late departures from New York in a row"
    axes.set_title(title, loc="left", color=_INK, fontsize=12, pad=12)
    _legend(axes)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)


def _draw_leg(axes: Axes, row: int, leg: dict[str, Any]) -> None:
    from matplotlib.dates import date2num

    late = leg["type"] == "LATE"
    scheduled = float(date2num(leg["sched_dep"]))  # in days
    left = scheduled + leg["dep_delay"] / _DAY
    landed = left + (leg["air_time"] or 0) / _DAY
    axes.plot([left, landed], [row, row], color=_AIR, linewidth=9, solid_capstyle="butt")
    if late:
        axes.plot([scheduled, left], [row, row], color=_LATE, linewidth=3, solid_capstyle="butt")
    axes.plot([scheduled], [row], marker="|", markersize=13, markeredgewidth=1.8, color=_INK)
    axes.annotate(
        f"{leg['dep_delay']:+d} min".replace("-", "\u2212"),
        (max(landed, scheduled), row),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=_LATE if late else _INK,
        fontweight="bold" if late else "normal",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )


def _mark_midnights(axes: Axes, first: dt.datetime, last: dt.datetime) -> None:
    from matplotlib.dates import date2num

    day = first.date()
    while (day := day + dt.timedelta(days=1)) <= last.date():
        midnight = float(date2num(dt.datetime.combine(day, dt.time(), tzinfo=first.tzinfo)))
        axes.axvline(midnight, color=_PALE, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0.9)
        axes.annotate(
            f"{day.day} {day:%B}",
            (midnight, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, -2),
            textcoords="offset points",
            va="top",
            fontsize=8,
            color=_PALE,
        )


def _legend(axes: Axes) -> None:
    from matplotlib.lines import Line2D

    axes.legend(
        handles=[
            Line2D([], [], color=_INK, marker="|", markersize=11, markeredgewidth=1.8, linestyle="none"),
            Line2D([], [], color=_LATE, linewidth=3),
            Line2D([], [], color=_AIR, linewidth=8),
        ],
        labels=["scheduled departure", "delay", "in the air"],
        loc="lower left",
        framealpha=1,
        edgecolor="white",
        fontsize=9,
        labelcolor=_INK,
    )


if __name__ == "__main__":
    run(*sys.argv[1:2])
