"""``stretto.match`` and ``stretto.iter_matches`` of clauses: the rows of ``stretto.sql``, without a name for the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.matching.sql import row_pattern_table

CLAUSE = """MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY x MEASURES LAST(x) AS until, count(*) AS n PATTERN (A F+) DEFINE F AS price < PREV(price)
)"""
EVERY_ROW = CLAUSE.replace("PATTERN", "ALL ROWS PER MATCH PATTERN")


def prices(rows: int) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table({"k": rng.integers(0, 20, rows), "x": np.arange(rows), "price": rng.integers(0, 9, rows)})


@pytest.mark.parametrize("clause", [CLAUSE, EVERY_ROW])
@pytest.mark.parametrize("around", ["{}", "SELECT * FROM anything {}"])
def test_the_rows_are_those_of_sql(clause: str, around: str, tmp_path: Path) -> None:
    table = prices(2000)
    expected = stretto.sql(f"SELECT * FROM t {clause}", t=table)
    assert expected.num_rows > 100
    pq.write_table(table, tmp_path / "t.parquet")
    for events in (table, table.to_pandas(), table.to_pylist(), table.to_pydict(), tmp_path / "t.parquet"):
        assert stretto.match(around.format(clause), events).equals(expected)


def test_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(row_pattern_table.iter_recognized.__kwdefaults__, "piece", 300)
    table = prices(2000)
    pieces = list(stretto.iter_matches(CLAUSE, table))
    assert len(pieces) > 2
    assert pa.concat_tables(pieces).equals(stretto.match(CLAUSE, table))


def test_no_match_has_columns_and_a_warning() -> None:
    table = pa.table({"k": [1, 1], "x": [1, 2], "price": [1, 2]})
    with pytest.warns(stretto.StrettoWarning, match="none fulfils F AS price < PREV"):
        found = stretto.match(CLAUSE, table)
    assert found.num_rows == 0
    assert found.schema == stretto.sql(f"SELECT * FROM t {CLAUSE}", t=prices(50)).schema


@pytest.mark.parametrize(
    "call", [stretto.match, lambda *given, **options: list(stretto.iter_matches(*given, **options))]
)
def test_options_of_queries_are_refused(call: Any) -> None:
    for options in ({"time": "x"}, {"output": "summary"}, {"type": None}, {"timeouts": True}):
        (name,) = options
        with pytest.raises(stretto.OptionError, match=f"{name}=.* this is a clause, whose text says it"):
            call(CLAUSE, prices(10), **options)
    with pytest.raises(TypeError, match="'buget'"):
        call(CLAUSE, prices(10), buget=1)
    with pytest.raises(stretto.LimitError, match="over the budget of 5 rows"):
        call(CLAUSE, prices(2000), budget=5)


def test_sql_around_a_clause_is_for_sql() -> None:
    with pytest.raises(
        stretto.QueryError, match=r"only SELECT \* FROM t MATCH_RECOGNIZE(?s:.*)stretto\.sql runs the whole"
    ):
        stretto.match(f"SELECT until + 1 FROM t {CLAUSE}", prices(10))
    with pytest.raises(stretto.QueryError, match=r"stretto\.match and stretto\.sql run it"):
        stretto.match_sets(CLAUSE, prices(10))


@pytest.mark.parametrize("rows", ["", "ALL ROWS PER MATCH "])
def test_a_sum_of_integers_is_refused_where_it_leaves_64_bits_itself(rows: str) -> None:
    """Not where one of fewer rows would, which nobody asked for."""
    most = 2**63 - 1
    clause = f"MATCH_RECOGNIZE (ORDER BY x MEASURES sum(v) AS s {rows}PATTERN (A+) DEFINE A AS x > 0)"
    events = pa.table({"x": [1, 2, 3], "v": [most, 1, -5]})
    if rows:  # where the sum of the first two rows is asked for
        with pytest.raises(stretto.DataError, match=r"sum\(v\) leaves 64 bits; compute with doubles"):
            stretto.match(clause, events)
    else:
        assert stretto.match(clause, events)["s"].to_pylist() == [most - 4]
    with pytest.raises(stretto.DataError, match="leaves 64 bits"):
        stretto.match(clause, events.slice(0, 2))
