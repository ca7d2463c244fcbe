"""Streams that are not certain: events with a probability, and events of which only probable values are known.

::

    python examples/afa/uncertain.py

Section 4 of the AFA paper. The probability of a match is a field of the register: an arc that takes an event multiplies it by the
probability that the event happened, and a self-loop by the probability that it did not. Neither operator nor automaton knows of
probabilities. Below a threshold a partial match is given up, because self-loops make many of them.

The readings are made up, and in this file.
"""

from __future__ import annotations

import pyarrow as pa

import stretto
from stretto.languages.afa.elements import Step

#: A pallet on its way, as readers see it; ``prob`` says how sure a reader is.
READINGS = pa.table(
    {
        "second": [0, 4, 7, 9, 15, 40],
        "pallet": ["P1", "P1", "P1", "P1", "P1", "P1"],
        "reader": ["dock", "belt", "dock", "belt", "truck", "truck"],
        "prob": [0.9, 0.8, 0.1, 0.6, 0.95, 0.5],
    }
)

#: What a camera takes the colour of a lamp for: value and probability (a multi-event).
LAMPS = pa.table(
    {
        "second": [0, 1, 2, 3, 4],
        "blue": [0.7, 0.6, 0.1, 0.0, 0.0],
        "indigo": [0.2, 0.3, 0.8, 0.4, 0.1],
        "green": [0.1, 0.1, 0.1, 0.6, 0.9],
    }
)


def journeys(readings: pa.Table, threshold: float) -> pa.Table:
    """Dock, belt and truck in a row within a minute, with the probability that these happened and nothing between them did."""
    afa = stretto.AFA(
        {"pallet": str, "reader": str, "prob": float},
        register={"rprob": float},
        initial={"rprob": 1.0},
        window=60,
        partition_by="pallet",
    )
    steps = [("q0", "q1", "dock"), ("q1", "q2", "belt"), ("q2", "q3", "truck")]
    for source, target, reader in steps:
        afa.arc(
            source,
            target,
            when=f"e.reader = '{reader}' AND r.rprob * e.prob >= {threshold}",
            then="rprob = r.rprob * e.prob",
        )
    for state in ("q1", "q2"):  # the event did not happen
        afa.arc(
            state,
            state,
            when=f"e.prob < 1 AND r.rprob * (1 - e.prob) >= {threshold}",
            then="rprob = r.rprob * (1 - e.prob)",
        )
    # Two computations over the same events are two ways in which it may have been: both count, also if equally probable.
    return stretto.match(afa.final("q3"), readings, time="second", bag=True)


def fades(lamps: pa.Table, threshold: float) -> pa.Table:
    """Blue, then indigo once or more, then green, in a row: ``e.colour = 'blue'`` has become ``e.blue > 0``."""
    afa = stretto.AFA(
        {"blue": float, "indigo": float, "green": float}, register={"rprob": float}, initial=(1.0,), window=60
    )

    def seen(colour: str) -> Step:
        return stretto.element(
            f"e.{colour} > 0 AND r.rprob * e.{colour} >= {threshold}", then=f"rprob = r.rprob * e.{colour}"
        )

    afa.pattern(seen("blue") >> seen("indigo").plus() >> seen("green"))
    return stretto.match(afa, lamps, time="second", bag=True)


def main() -> None:
    for row in journeys(READINGS, threshold=0.01).to_pylist():
        print(f"{row['pallet']} from {row['start_time']} to {row['end_time']} s: {row['register']['rprob']:.3f}")
    for row in fades(LAMPS, threshold=0.1).to_pylist():
        print(f"a lamp fades from {row['start_time']} to {row['end_time']} s: {row['register']['rprob']:.3f}")


if __name__ == "__main__":
    main()
