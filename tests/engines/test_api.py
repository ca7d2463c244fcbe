"""Every engine is what ``engines/api.py`` says, and nothing that the other rooms ask for is missing."""

from __future__ import annotations

import inspect

import pyarrow as pa
import pytest

import stretto
from stretto.engines.afa.compiled import Roles
from stretto.engines.afa.program import AfaProgram
from stretto.engines.api import Program, Run
from stretto.engines.select import program_for
from stretto.events import Schema

SCHEMA = Schema.of({"type": pa.string(), "t": pa.int64(), "x": pa.int64()}, time="t")
ROWS = pa.RecordBatch.from_pydict({"type": ["A", "B", "B"], "t": [1, 2, 3], "x": [1, 5, 7]})


def tecs() -> Program:
    return program_for(stretto.compile("SELECT * FROM S WHERE A; B WITHIN 10 [t]", SCHEMA).bound, valuations=False)


def nfab() -> Program:
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x < b.x } WITHIN 10"
    return program_for(stretto.compile(text, SCHEMA).bound, valuations=False)


def afa() -> Program:
    made = stretto.AFA({"type": str}, window=10)
    made = made.arc("q0", "q1", when="e.type = 'A'").arc("q1", "q1", when="e.type = 'B'").final("q1")
    made = made.arc("q1", "q2", when="e.type = 'B'").final("q2")
    return AfaProgram(made.frozen, Roles(time="t", provenance=True))


ENGINES = pytest.mark.parametrize("engine", [tecs, nfab, afa])


def asked(protocol: type) -> set[str]:
    names = {name for one in protocol.__mro__ for name in vars(one) if not name.startswith("_")}
    return names | {name for one in protocol.__mro__ for name in inspect.get_annotations(one)}


@ENGINES
def test_programs_and_runs_have_all_that_is_asked(engine) -> None:
    program = engine()
    run = program.start(capacity=1)
    assert not [name for name in asked(Program) if not hasattr(program, name)]
    assert not [name for name in asked(Run) if not hasattr(run, name)]
    assert set(program.columns) <= {"type", "t", "x"}
    assert program.digest == engine().digest


@ENGINES
def test_a_run_lives(engine) -> None:
    run = engine().start(capacity=1)
    assert run.idle
    assert run.expires is None
    run.check(pa.table(ROWS.to_pydict()))
    if not run.program.revises:
        found = list(run.advance(ROWS, silent=True))
        assert not found
        run = engine().start(capacity=1)
    if run.program.revises:
        run.window, run.time_kind = 10, pa.int64()  # type: ignore[attr-defined]
    found = list(run.advance(ROWS))
    assert sum(one.start.size for one in found) >= 2
    for one in found:
        assert one.offset.size == one.start.size + 1 == one.end.size + 1
        assert one.offset[-1] == one.position.size
        assert (one.sign is not None) == run.program.revises
    assert run.rows == 3
    assert not run.idle
    assert run.expires in (11, 13)
    assert 0 in run.live().tolist()
    assert {"late", "partitions", "bytes"} <= set(run.stats)
    assert list(run.reach(1000)) == list(run.finish()) == []
    assert run.idle
    assert run.unlisted() is None
