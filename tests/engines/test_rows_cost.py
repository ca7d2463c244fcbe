"""What row patterns cost, as a number of steps: linear in the rows where conditions read rows at fixed distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stretto.engines.rows import kernels
from stretto.engines.rows import structure as s
from stretto.engines.rows.columns import Shifted
from stretto.engines.rows.program import RowProgram
from stretto.languages.match_recognize import parse
from stretto.query.passes.bind_rows import bind
from tests.conftest import COMPILED

#: Steps are counted at the array of followers, which compiled code does not go through.
pytestmark = pytest.mark.skipif(COMPILED, reason="counts what interpreted kernels read")


class Counting:
    """An array that counts how often it is read."""

    def __init__(self, array: Any) -> None:
        self.array, self.reads = array, 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return self.array[at]


def steps(clause: str, rows: int) -> tuple[int, int]:
    """Followers that the walk looks at, and edges, over rows whose x is 1."""
    table = pa.table({"t": range(rows), "x": [1] * rows})
    program = RowProgram(bind(parse(f"MATCH_RECOGNIZE (ORDER BY t MEASURES 1 AS one {clause})"), table.schema))
    assert program.programs is None
    bounds = np.array([0, rows], np.int64)
    bits = program.possible(Shifted(table, bounds))
    to = Counting(program.machine.to)
    registers = np.zeros(s.WALK_REGISTERS, np.int64)
    machine: Any = program.machine._replace(to=to)
    kernels.walk(bits, bounds, machine, program.mode, registers, s.found(rows, rows * 2))
    return to.reads, program.automaton.edges


DEAD = "PATTERN (A+ B+ C+ E) DEFINE A AS x > 0, B AS x > 0, C AS x > 0, E AS x < 0"


@pytest.mark.parametrize(
    "clause",
    [
        DEAD,
        "PATTERN ((A* B*)* E) DEFINE E AS x < 0",
        "PATTERN ((A | A B | A B C)+ $ E)",
        "PATTERN (A+ B+) DEFINE B AS PREV(x) = 1",
        "AFTER MATCH SKIP TO NEXT ROW PATTERN (A{3} B) DEFINE A AS x = PREV(x)",
    ],
)
def test_steps_grow_with_the_rows(clause: str) -> None:
    few, edges = steps(clause, 200)
    many, _ = steps(clause, 400)
    assert many <= 2 * few + edges
    assert many <= 4 * 400 * edges


def test_where_nothing_is_possible_a_row_costs_what_may_come_first() -> None:
    found, _ = steps(DEAD, 300)
    assert found == 300  # A, at each row
