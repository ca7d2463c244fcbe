"""What did not happen: between two events, and until the end of a window.

::

    python examples/afa/negation.py

Appendix E of the AFA paper. Between two events an automaton says it by what it lets pass. At the end somebody must say that time has
gone by: a punctuation does, which a matcher with ``timer=`` hands to the automaton as an event of its own, the end-of-window
indicator of figure 18.

The trades are made up, and in this file.
"""

from __future__ import annotations

import pyarrow as pa

import stretto

TRADES = pa.table(
    {
        "second": [0, 50, 80, 100, 350, 410, 700],
        "stock": ["A", "C", "B", "A", "A", "B", "C"],
    }
)

#: No trade of B within so many seconds.
SECONDS = 300


def between(trades: pa.Table) -> pa.Table:
    """A trade of A and the next one of B, without one of C between them."""
    afa = stretto.AFA({"stock": str}, window=600)
    afa.arc("q0", "q1", when="e.stock = 'A'")
    afa.ignore("q1", when="e.stock NOT IN ('B', 'C')")
    afa.arc("q1", "q2", when="e.stock = 'B'")
    return stretto.match(afa.final("q2"), trades, time="second")


def at_the_end() -> stretto.AFA:
    """A trade of A with none of B in the ``SECONDS`` after it; the register keeps until when (figure 18)."""
    afa = stretto.AFA(
        {"second": int, "stock": str, "eow": bool},
        register={"due": int},
        window=10 * SECONDS,
    )
    denied = "e.stock = 'B' AND e.second <= r.due"
    over = "e.eow AND e.second > r.due"
    afa.arc("q0", "q1", when="e.stock = 'A'", then=f"due = e.second + {SECONDS}")
    afa.ignore("q1", when=f"NOT ({denied}) AND NOT ({over})")
    afa.arc("q1", "q2", when=over)
    return afa.final("q2")


def without_b(trades: pa.Table, punctuations: list[int]) -> list[tuple[int, int]]:
    """The times of trades of A that no trade of B followed, each with the punctuation that showed it."""
    matcher = stretto.Matcher(at_the_end(), time="second", timer="eow")
    found = []
    times = trades.column("second").to_numpy()
    first = 0
    for time in punctuations:
        end = int(times.searchsorted(time))
        changes = [matcher.push(trades.slice(first, end - first)), matcher.advance(time)]
        for row in pa.concat_tables(changes).to_pylist():
            found.append((row["start_time"], row["end_time"]))
        first = end
    return found


def main() -> None:
    for row in between(TRADES).to_pylist():
        print(f"A at {row['start_time']}, B at {row['end_time']}, no C between them")
    for start, end in without_b(TRADES, punctuations=[60, 300, 401, 650, 660, 1000]):
        print(f"A at {start}, no B until {start + SECONDS}: known at {end}")


if __name__ == "__main__":
    main()
