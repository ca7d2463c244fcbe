"""Examples of other products' documentation, by the definition, by the engine, as SQL, and as streams."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

import stretto
from stretto.languages.sql import read_statement
from stretto.matching.sql.row_pattern_table import recognize
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import BoundRows
from tests.cases.row_streams import in_order, streamed
from tests.match_recognize.examples import Example, examples
from tests.reference.match_recognize import evaluate

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


#: What a stream does not take, and why.
NO_STREAMS = {"a condition does not know the classifier of the next row": "do not read classifiers of rows elsewhere"}


def test_as_streams() -> None:
    """What any batches give, with snapshots between them, where the statement is one clause."""
    refused = {}
    for seed, example in enumerate(ALL):
        statement = read_statement(example.query) if example.error is None and example.refused is None else None
        if statement is None or statement.only is None:
            continue
        rng = random.Random(seed)
        table = example.tables[statement.only]
        table = in_order(bind(statement.clauses[0].parsed, table.schema), table)
        cuts = tuple(sorted(rng.sample(range(table.num_rows + 1), min(3, table.num_rows))))
        try:
            found = streamed(example.query, table, cuts, rng, {"schema": table.schema, "capacity": 1})
        except stretto.QueryError as error:
            refused[example.name] = error.message
            continue
        try:
            example.check(found)
        except AssertionError as error:
            raise AssertionError(f"{example.name}: {error}") from error
    assert refused.keys() == NO_STREAMS.keys()
    assert all(reason in refused[name] for name, reason in NO_STREAMS.items())
