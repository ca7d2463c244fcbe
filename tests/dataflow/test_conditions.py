"""Conditions and values over rows that cannot be computed."""

from __future__ import annotations

import pytest

from stretto.dataflow import Dataflow, Stream, stream
from stretto.errors import DataError

ROWS = stream("rows", {"k": int, "v": int})


@pytest.mark.parametrize(
    "made",
    [
        ROWS.where("v * v > 10"),
        ROWS.where("v * v > 10").project(w="v"),
        ROWS.where("v * v < 0 OR k = 2"),
        ROWS.where("k = 1").where("v + v > 10"),
        ROWS.project(w="v * 2"),
        ROWS.project(w="v * 2").where("w = 2"),
    ],
)
def test_an_integer_that_leaves_64_bits_names_its_row(made: Stream) -> None:
    flow = Dataflow(made=made)
    flow.push("rows", [{"k": 1, "v": value, "vs": 0} for value in (1, 2**62, 7)])
    with pytest.raises(DataError, match=rf"an integer leaves 64 bits.* \(row k=1, v={2**62}"):
        flow.run_until_idle()


def test_what_is_not_asked_does_not_leave_64_bits() -> None:
    for guarded in ("v < 10 AND v * v > 10", "v * v > 10 AND v < 10", "NOT (v * v <= 10 OR v >= 10)"):
        flow = Dataflow(made=ROWS.where(guarded))
        flow.push("rows", [{"k": 1, "v": value, "vs": 0} for value in (2**62, 7)])
        flow.run_until_idle()
        assert flow.output("made").column("v").to_pylist() == [7]
