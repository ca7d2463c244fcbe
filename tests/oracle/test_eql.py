"""Random EQL queries over random streams: the engine against the definition (see ``tests/cases/eql.py``)."""

from __future__ import annotations

import random

import stretto
from stretto.query.eql import Mode
from stretto.query.passes.bind_eql import BoundEql
from tests.cases import agree, eql
from tests.conftest import cases
from tests.reference.eql import evaluate_eql, pipe_eql


def test_random_cases() -> None:
    found = agree(eql, range(cases(10_000, compiled=2_000)))
    assert sum(found) > len(found) // 4


def test_pipes() -> None:
    """Results after pipes, in their order, whatever is shown of the events."""
    found, number = 0, cases(3_000, compiled=300)
    for seed in range(number):
        choose = random.Random(seed)
        case = eql.case(seed)
        simple = [
            "any where true",
            "sequence by u [any where true] [any where v != 1]",
            "sample by k [A where true] [any where true]",
            "join by k [A where true] [any where v != 1]",
        ]
        query = choose.choice([case.query, *simple])
        events = len(stretto.compile(query, language="eql").parsed.variables)
        query += f" {eql.pipes(choose, events)}"
        roles = {"time": "t", "time_unit": "s", "language": "eql"}
        bound = stretto.compile(query, case.events.schema, **roles).bound
        assert isinstance(bound, BoundEql)
        if bound.parsed.last_negation is not None:
            continue  # these come when time has passed, in another order
        wanted = pipe_eql(bound, case.events, evaluate_eql(bound, case.events))
        output = choose.choice(["events", "positions"])
        table = stretto.match(query, case.events, output=output, **roles)
        assert table.column("positions").to_pylist() == [list(one.positions) for one in wanted], f"seed {seed}\n{query}"
        if output == "events":
            first = [row["e1"][0]["t"] for row in table.to_pylist()]
            assert first == [case.events.column("t")[one.rows[0]].as_py() for one in wanted], f"seed {seed}\n{query}"
        found += len(wanted) > 1 and bound.parsed.mode is not Mode.EVENT
    assert found > number // 15
