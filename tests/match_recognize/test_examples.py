"""Examples of other products' documentation, by the definition."""

from __future__ import annotations

import pyarrow as pa
import pytest

import stretto
from stretto.languages.sql import read_statement
from stretto.query.passes.bind_rows import bind
from stretto.reference.match_recognize import evaluate
from tests.match_recognize.examples import Example, examples


@pytest.mark.parametrize("example", examples(), ids=lambda one: one.name)
def test_by_the_definition(example: Example) -> None:
    """Where the statement is one clause, what it says over the table as it is."""
    if example.error is None:
        if (found := _found(example)) is not None:
            example.check(found)
        return
    with pytest.raises(stretto.StrettoError, match=example.error):
        _found(example)


def _found(example: Example) -> pa.Table | None:
    statement = read_statement(example.query)
    if statement.only is None:
        return None
    table = example.tables[statement.only]
    return evaluate(bind(statement.clauses[0].parsed, table.schema), table)
