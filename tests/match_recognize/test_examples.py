"""Examples of other products' documentation, by the definition, by the engine, and as SQL."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import stretto
from stretto.languages.sql import read_statement
from stretto.matching.rows import recognize
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import BoundRows
from stretto.reference.match_recognize import evaluate
from tests.match_recognize.examples import Example, examples

ALL = examples()


@pytest.mark.parametrize("example", ALL, ids=lambda one: one.name)
def test_as_sql(example: Example) -> None:
    refused = example.error or example.refused
    if refused is None:
        example.check(stretto.sql(example.query, **example.tables))
        return
    with pytest.raises(stretto.StrettoError, match=refused):
        stretto.sql(example.query, **example.tables)


@pytest.mark.parametrize("judge", [evaluate, recognize], ids=["definition", "engine"])
@pytest.mark.parametrize("example", ALL, ids=lambda one: one.name)
def test_alone(example: Example, judge: Callable[[BoundRows, pa.Table], pa.Table]) -> None:
    """Where the statement is one clause, what it says over the table as it is."""

    def found() -> pa.Table | None:
        statement = read_statement(example.query)
        if statement.only is None:
            return None
        table = example.tables[statement.only]
        return judge(bind(statement.clauses[0].parsed, table.schema), table)

    refused = example.error or (example.refused if judge is recognize else None)
    if refused is None:
        if (rows := found()) is not None:
            example.check(rows)
        return
    with pytest.raises(stretto.StrettoError, match=refused):
        found()
