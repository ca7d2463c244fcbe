"""What a loop knows of its own progress while it runs: lag, liveliness, speculative punctuations, synopses (section 5.2.1).

System time is counted in steps of the scheduler (one operator takes one batch), whether there is something to do or not: a
system of a constant speed that new events come to at a constant pace.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.papers.ffp.sides import final, flow_of
from benchmarks.papers.ffp.streams import Tick

__all__ = ["Progress", "follow", "lag"]

#: Moments with what was known then, in order.
Trace = list[tuple[int, int]]


@dataclass
class Progress:
    """A run, step by step."""

    matches: int  #: states F that were reached
    speculative: int
    definite: int
    lag: float  #: on average over system time
    held: float  #: rows of the loop's joins, on average
    longest: int  #: between two punctuations of the output, in system time
    used: float  #: the share of the steps in which there was something to do
    idle: bool  #: nothing was left in the end, and no speculative punctuation was under way
    seconds: float = 0.0
    outputs: Trace | None = None
    punctuations: Trace | None = None

    def record(self) -> dict[str, Any]:
        """For JSON."""
        kept = {
            name: value for name, value in self.__dict__.items() if name not in ("outputs", "punctuations", "seconds")
        }
        return kept | {"per_definite": self.speculative / max(1, self.definite)}


def follow(ticks: Sequence[Tick], window: int, mode: str, *, interval: int, look: int) -> Progress:
    """Run W over ticks that come at an interval of so many steps, with a look at the output every ``look`` steps.

    What is counted ends with the last interval. Then the input ends, and the loop runs out.
    """
    flow = flow_of(window, speculation=mode, partial=True)
    before = flow.stats["loops"]["reach"]
    now = worked = matches = held = looks = 0
    outputs: Trace = []
    known: Trace = [(0, 0)]
    for tick in ticks:
        if tick.table is not None:
            flow.push("symbols", tick.table, punctuation=tick.punctuation)
        elif tick.punctuation is not None:
            flow.advance(tick.punctuation, "symbols")
        until = now + interval
        while now < until:
            steps = min(look, until - now)
            worked += flow.run(steps)
            now += steps
            table = flow.output("reach")
            if table.num_rows:
                outputs.append((now, int(table["vs"].to_numpy().min())))
                matches += final(table)
            reached = flow.punctuation("reach")
            if reached is not None and reached > known[-1][1]:
                known.append((now, reached))
        held += sum(rows for name, rows in flow.stats["held"].items() if " Join " in name)
        looks += 1
    after = flow.stats["loops"]["reach"]
    flow.finish()
    flow.run_until_idle()
    table = flow.output("reach")
    # Where nothing comes any more, all is true up to the end of the input.
    least = int(table["vs"].to_numpy().min()) if table.num_rows else max(tick.punctuation or 0 for tick in ticks)
    stats = flow.stats
    return Progress(
        matches=matches + (final(table) if table.num_rows else 0),
        speculative=after["speculative"] - before["speculative"],
        definite=after["definite"] - before["definite"],
        lag=lag(outputs, known, now, least),
        held=held / max(1, looks),
        longest=max(later - earlier for (earlier, _), (later, _) in zip(known, [*known[1:], (now, 0)], strict=True)),
        used=worked / max(1, now),
        idle=stats["idle"] and not any(loop["in_flight"] for loop in stats["loops"].values()),
        outputs=outputs,
        punctuations=known,
    )


def lag(outputs: Trace, known: Trace, end: int, rest: int) -> float:
    """The time between what is true and what is known, on average over system time (figure 5).

    Parameters
    ----------
    outputs
        When something came out, and the least start of it.
    known
        When punctuations came out, and their times; the first at moment 0.
    end
        When the run ended.
    rest
        The least start of what came out later than that; if nothing did, the end of time.
    """
    # Real progress just before each output: the least start from there on. It holds since the output before.
    real: Trace = []
    least = rest
    for moment, start in reversed(outputs):
        least = min(least, start)
        real.append((moment, least))
    real.reverse()
    edges = sorted({0, end, *(moment for moment, _ in outputs), *(moment for moment, _ in known)})
    moments = [moment for moment, _ in real]
    times = [moment for moment, _ in known]
    total = 0
    for begin, stop in zip(edges, edges[1:], strict=False):
        at = bisect_right(moments, begin)  # outputs later than the beginning of the piece
        true = real[at][1] if at < len(real) else rest
        total += (true - known[bisect_right(times, begin) - 1][1]) * (stop - begin)
    return total / max(1, edges[-1])
