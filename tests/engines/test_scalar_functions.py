"""The languages' functions of doubles in kernels: the places by which the interpreter knows them are those of the tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stretto.engines.rows import interpreter, runner
from stretto.engines.shared import scalar, scalar_functions
from stretto.query.scalar_functions import FUNCTIONS

NUMBERS = [0.0, -0.0, 0.5, -0.5, 2.5, -2.5, 1e300, math.inf, -math.inf, math.nan]


def same(found: float, meant: float) -> bool:
    return (math.isnan(found) and math.isnan(meant)) or math.isclose(found, meant, rel_tol=1e-15)


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", scalar_functions.OF_ONE)
def test_a_function_of_a_double_is_at_its_place(name: str) -> None:
    place, helper = list(scalar_functions.OF_ONE).index(name), scalar_functions.OF_ONE[name]
    own = getattr(scalar_functions, helper, None) or getattr(scalar, helper, abs)
    for number in NUMBERS:
        meant = FUNCTIONS[name].python(number)
        assert same(scalar_functions.of_one(place, number), meant), number
        assert same(own(number), meant), number


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", scalar_functions.OF_TWO)
def test_a_function_of_two_doubles_is_at_its_place(name: str) -> None:
    place = list(scalar_functions.OF_TWO).index(name)
    for number in NUMBERS:
        meant = FUNCTIONS[name].python(number, 2)
        assert same(scalar_functions.of_two(place, number, 100.0 if name == "round" else 2.0), meant), number


def test_states_know_functions_that_come_later() -> None:
    """A function that is added has a number of its own in what states of clauses depend on."""
    one, two = len(scalar_functions.OF_ONE), len(scalar_functions.OF_TWO)
    steps = [[interpreter.OF_ONE, at, -1] for at in range(one + 2)]
    steps += [[interpreter.OF_TWO, at, -1] for at in range(max(one, two) + 2)]
    written = runner._as_written(np.array(steps))
    assert len({tuple(step) for step in written.tolist()}) == len(steps)
