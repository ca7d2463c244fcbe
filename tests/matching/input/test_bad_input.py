"""Bad input gives a clear error or the right answer, and a matcher that refused a batch is as it was."""

from __future__ import annotations

import datetime as dt
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from math import comb, inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto import DataError, EngineError, LimitError, OptionError, QueryError, StrettoError
from tests.conftest import COMPILED, size

AB = "SELECT * FROM S WHERE A; B"

Row = dict[str, Any]


def found(query: str, events: Any, **options: Any) -> list[list[int]]:
    rows = stretto.match(query, events, output="positions", **options).to_pylist()
    return [row["positions"] for row in rows]


def events(types: str, **columns: Any) -> pa.Table:
    return pa.table({"type": list(types), **columns})


def refused(kind: type[Exception], call: Callable[[], object], *texts: str) -> Exception:
    with pytest.raises(kind) as caught:
        call()
    for text in texts:
        assert text in str(caught.value), str(caught.value)
    return caught.value


# ---- Names that do not fit


def test_a_type_that_no_stream_declares() -> None:
    refused(
        QueryError,
        lambda: stretto.compile("SELECT * FROM S WHERE A; Buy", {"type": "string"}, types=["A", "BUY"]),
        "line 1, column 26: no stream declares the event type 'Buy'",
        "did you mean 'BUY'?",
    )


def test_a_type_that_does_not_occur_matches_nothing() -> None:
    assert found("SELECT * FROM S WHERE A; NEVER", events("AB")) == []
    assert found("SELECT * FROM S WHERE A OR NEVER", events("AB")) == [[0]]


@pytest.mark.parametrize(
    ("role", "name", "hint"),
    [("type", "kind", "Kind"), ("time", "tme", "time"), ("sequence", "n", "columns"), ("stream", "strem", "stream")],
)
def test_a_missing_role_names_the_nearest_column(role: str, name: str, hint: str) -> None:
    table = pa.table({"type": ["A"], "Kind": ["A"], "time": [1], "stream": ["S"]})
    refused(DataError, lambda: stretto.match(AB, table, **{role: name}), f"no column '{name}' ({role})", hint)


def test_a_type_column_that_is_no_text() -> None:
    refused(StrettoError, lambda: stretto.match(AB, {"type": [1, 2]}), "type", "int64")


def test_a_stream_column_that_is_no_text() -> None:
    refused(StrettoError, lambda: stretto.match(AB, events("AB", s=[1, 2]), stream="s"), "'s'", "int64")


def test_several_streams_need_to_be_told_apart() -> None:
    query = "SELECT * FROM S1, S2 WHERE A; B"
    refused(DataError, lambda: stretto.match(query, events("AB")), "2 streams (S1, S2)", "stream='…'")
    refused(OptionError, lambda: stretto.Matcher(query).push(events("AB")), "2 streams (S1, S2)", "stream='…'")
    refused(DataError, lambda: stretto.match(query, {"S1": events("A")}), "no events for stream 'S2'")
    refused(DataError, lambda: stretto.match(query, {"S1": events("A"), "S2": events("B")}), "time='…'")
    wrong = {"S1": events("A", t=[1], v=[1]), "S2": events("B", t=[2], v=["x"])}
    asked = f"{query} FILTER B[v > 1]"
    refused(DataError, lambda: stretto.match(asked, wrong, time="t"), "int64 in stream 'S1', and string in stream 'S2'")


def test_two_columns_of_one_name() -> None:
    names = ["type", "v", "v"]
    table = pa.Table.from_arrays([pa.array(["A", "B"]), pa.array([1, 2]), pa.array([3, 4])], names=names)
    refused(DataError, lambda: stretto.match(AB, table), "two columns are named 'v'")
    refused(DataError, lambda: stretto.compile(AB, table.schema), "two columns are named 'v'")
    matcher = stretto.Matcher(AB, {"type": "string", "v": "int64"})
    refused(DataError, lambda: matcher.push(table), "two columns are named 'v'")
    refused(DataError, lambda: matcher.push(table.to_batches()[0]), "two columns are named 'v'")


@pytest.mark.parametrize("given", [5, b"A", None, [1, 2], [{"type": "A"}, "B"]], ids=repr)
def test_what_is_no_table(given: Any) -> None:
    refused(DataError, lambda: stretto.match(AB, given), "event" if isinstance(given, list) else "cannot read events")


def test_values_of_different_types() -> None:
    rows = [{"type": "A", "v": 1}, {"type": "B", "v": "x"}]
    refused(DataError, lambda: stretto.match(AB, rows), "'v' has values of different types")


def test_columns_of_different_lengths() -> None:
    refused(DataError, lambda: stretto.match(AB, {"type": ["A", "B"], "v": [1]}), "do not make a table")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"output": "rows"}, "output='rows'"),
        ({"language": "cypher"}, "language='cypher'"),
        ({"time_unit": "h"}, "time_unit='h'"),
    ],
)
def test_options(options: dict[str, Any], text: str) -> None:
    refused(OptionError, lambda: stretto.match(AB, events("AB"), **options), text)
    refused(OptionError, lambda: stretto.Matcher(AB, events("AB"), **options), text)


def test_options_of_matcher_only() -> None:
    refused(OptionError, lambda: stretto.Matcher(AB, late="skip"), "late='skip'")
    refused(TypeError, lambda: stretto.iter_matches(AB, events("AB"), outpt="positions"), "'outpt'")
    refused(OptionError, lambda: stretto.Matcher(AB, events("AB")).advance(3), "time='…'")
    refused(OptionError, lambda: stretto.Matcher(AB, time="t").advance(3), "no schema yet")
    matcher = stretto.Matcher(AB, events("AB", t=[1, 2]), time="t")
    refused(OptionError, lambda: matcher.advance("noon"), "'noon'", "int64")
    matcher.finish()
    refused(OptionError, lambda: matcher.push(events("A", t=[1])), "finished")


def test_columns_that_are_no_lists() -> None:
    for value in (5, None, "AB"):
        told = f"column 'type' of the events is a {type(value).__name__}, and no list of values"
        refused(DataError, lambda value=value: stretto.Matcher(AB).push({"type": value}), told)
    refused(DataError, lambda: stretto.Matcher(AB).push({5: ["A"]}), "a column of the events is named 5")


# ---- NULL, NaN, order


@pytest.mark.parametrize("query", [f"{AB} WITHIN 3 [t]", AB])
def test_null_in_what_orders_the_stream(query: str) -> None:
    table = events("AAB", t=[1, 2, None])
    options = {} if "WITHIN" in query else {"time": "t"}
    refused(DataError, lambda: stretto.match(query, table, **options), "'t'", "NULL at row 2")
    matcher = stretto.Matcher(query, table.schema, **options)
    matcher.push(table.slice(0, 1))
    refused(DataError, lambda: matcher.push(table.slice(1)), "NULL at row 2")


def test_null_keys_are_in_no_substream() -> None:
    table = events("AABBAB", k=[1, None, None, 1, None, None], j=["x", "x", "x", "x", None, None])
    assert found(f"{AB} PARTITION BY [k]", table) == [[0, 3]]
    assert found(f"{AB} PARTITION BY [k], [j]", table) == [[0, 3]]
    assert found(f"{AB} PARTITION BY [j]", table) == [[1, 2], [0, 2], [1, 3], [0, 3]]
    # They do not count in the window of a substream either.
    assert found(f"{AB} PARTITION BY [k] WITHIN 1 EVENTS", table) == [[0, 3]]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.date32(), [dt.date(2020, 1, 1), None]),
        (pa.date64(), [dt.date(2020, 1, 1), None]),
        (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]),
        (pa.time32("s"), [dt.time(1), None]),
        (pa.duration("ms"), [dt.timedelta(1), None]),
        (pa.bool_(), [True, None]),
        (pa.float32(), [nan, None]),
        (pa.float64(), [nan, None]),
        (pa.uint64(), [2**64 - 1, None]),
        (pa.int8(), [-1, None]),
        (pa.decimal128(30, 4), [Decimal("1.5"), None]),
        (pa.string(), ["é", None]),
        (pa.large_string(), ["", None]),
        (pa.binary(), [b"\0", None]),
        (pa.binary(2), [b"\0a", None]),
        (pa.dictionary(pa.int8(), pa.string()), ["x", None]),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_keys_of_every_type_with_nulls(kind: pa.DataType, values: list[Any]) -> None:
    value, null = values
    column = pa.array(
        [value, null, null, value],
        pa.dictionary(pa.int8(), pa.string()).value_type if (pa.types.is_dictionary(kind)) else kind,
    )
    table = events("AABB", k=column.cast(kind) if column.type != kind else column, n=[1, 1, 1, 1])
    assert found(f"{AB} PARTITION BY [k]", table) == [[0, 3]]
    assert found(f"{AB} PARTITION BY [n], [k]", table) == [[0, 3]]


def test_a_decreasing_window_attribute_names_both_values() -> None:
    table = events("AAB", t=[3, 7, 5])
    query = f"{AB} WITHIN 3 [t]"
    refused(DataError, lambda: stretto.match(query, table), "'t' decreases from 7 to 5 at row 2")
    # Also between batches, and where the rows do not take part.
    matcher = stretto.Matcher(query)
    matcher.push(table.slice(0, 2))
    refused(DataError, lambda: matcher.push(table.slice(2)), "'t' decreases from 7 to 5 at row 2")
    other = pa.table({"type": ["D", "D"], "t": [2.5, 1.25], "k": [None, 1]}, schema=None)
    refused(DataError, lambda: stretto.match(f"{query.replace('3 [', '3 [')}", other), "decreases from 2.5 to 1.25")


def test_nan_and_infinity_in_a_window() -> None:
    query = f"{AB} WITHIN 2 [t]"
    refused(DataError, lambda: stretto.match(query, events("AB", t=[1.0, nan])), "'t'", "NaN at row 1")
    refused(
        DataError, lambda: stretto.match(query, events("AABB", t=[-inf, 1.0, 3.0, 4.0])), "'t'", "infinite at row 0"
    )
    assert found(f"{AB} WITHIN 0.1 [t]", events("AB", t=[0.5, 0.6])) == [[0, 1]]


# ---- Nothing


def test_no_events_at_all() -> None:
    schema = stretto.match(AB, []).schema
    assert schema.names == ["start", "end", "positions", "A", "B"]
    assert stretto.match(AB, []).num_rows == 0
    refused(DataError, lambda: stretto.match(f"{AB} FILTER A[v > 1]", []), "give an empty table with columns")
    empty = events("AB", v=[1, 2]).slice(0, 0)
    full = events("AB", v=[1, 2])
    for query in (AB, f"{AB} FILTER A[v > 1] PARTITION BY [v] WITHIN 2 [v]", "SELECT MAX A[v] FROM S WHERE A+"):
        nothing = stretto.match(query, empty)
        assert nothing.num_rows == 0
        assert nothing.schema == stretto.match(query, full).schema


def test_batches_of_no_rows() -> None:
    table = events("AB", v=[1, 2])
    matcher = stretto.Matcher(AB)
    assert matcher.push([]).num_rows == 0
    assert matcher.push(table.slice(0, 0)).num_rows == 0
    assert matcher.push(table.slice(0, 1)).num_rows == 0
    assert matcher.push(table.slice(0, 0)).schema.names == ["start", "end", "positions", "A", "B"]
    assert matcher.push([]).num_rows == 0
    assert [row["positions"] for row in matcher.push(table.slice(1)).to_pylist()] == [[0, 1]]
    assert stretto.Matcher(AB).finish().num_rows == 0
    chunks = pa.chunked_array([pa.array([], pa.string()), pa.array(["A"]), pa.array([], pa.string()), pa.array(["B"])])
    assert found(AB, pa.table({"type": chunks})) == [[0, 1]]


def test_columns_of_nulls_only() -> None:
    table = pa.table({"type": pa.nulls(2), "v": pa.nulls(2)})
    assert found(AB, table) == []
    typed = events("AB", v=pa.nulls(2))
    assert found(AB, typed) == [[0, 1]]
    assert found(f"{AB} FILTER A[v IS NULL]", typed) == [[0, 1]]
    assert found(f"{AB} FILTER A[v IS NOT NULL]", typed) == []
    assert found(f"{AB} FILTER A[v > 1]", typed) == []
    assert found(f"{AB} PARTITION BY [v]", typed) == []
    refused(QueryError, lambda: stretto.match(f"{AB} WITHIN 3 [v]", typed), "cannot measure a window by 'v' (null)")
    ints = typed.set_column(1, "v", typed.column("v").cast(pa.int64()))
    assert found(f"{AB} FILTER A[v > 1 OR NOT v > 1]", ints) == [[0, 1]]  # NOT is plain negation
    assert found(f"{AB} PARTITION BY [v]", ints) == []


# ---- Columns that come and go


def test_extra_and_missing_columns() -> None:
    matcher = stretto.Matcher("SELECT A[v], B[v] FROM S WHERE A; B FILTER A[v > 1]")
    matcher.push([{"type": "A", "v": 2, "more": 1}])
    rows = matcher.push([{"extra": "x", "v": 5, "type": "B"}]).to_pylist()
    assert rows == [{"start": 0, "end": 1, "positions": [0, 1], "A": [{"v": 2}], "B": [{"v": 5}]}]
    refused(DataError, lambda: matcher.push([{"type": "B"}]), "no column 'v'", "known columns: type")
    refused(DataError, lambda: matcher.push([{"v": 3}]), "no column 'type'")
    assert matcher.position == 2


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array(["x"]), "is string"),
        (pa.array([True]), "is bool"),
        (pa.array([2**63], pa.uint64()), "is uint64"),
        (pa.array([[1]]), "is list"),
    ],
    ids=str,
)
def test_another_type_in_a_later_batch(column: pa.Array, text: str) -> None:
    matcher = stretto.Matcher(f"{AB} FILTER A[v > 1]")
    matcher.push(events("A", v=[2]))
    before = matcher.snapshot()
    refused(DataError, lambda: matcher.push(events("B", v=column)), "column 'v'", text, "batches before had int64")
    assert matcher.snapshot() == before


@pytest.mark.parametrize(
    "column", [pa.array([3], pa.int8()), pa.array([3.0]), pa.nulls(1), pa.array([3], pa.uint64())], ids=str
)
def test_another_width_in_a_later_batch(column: pa.Array) -> None:
    matcher = stretto.Matcher(AB)
    matcher.push(events("A", v=[2]))
    rows = matcher.push(events("B", v=column)).to_pylist()
    assert rows[0]["B"] == [{"type": "B", "v": column.to_pylist()[0]}]


BAD = {
    "missing column": events("B").append_column("t", pa.array([9])),
    "wrong type": events("B", v=["x"], t=[9]),
    "NULL time": events("ABB", v=[1, 1, 1], t=[9, 9, None]),
    "time falls": events("ABB", v=[1, 1, 1], t=[9, 10, 8]),
    "time falls behind": events("B", v=[1], t=[1]),
    "no table": 7,
    "overflow": events("AB", v=[2**63 - 1, 1], t=[9, 9]),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("capacity", [1, 1 << 12])
def test_a_refused_batch_changes_nothing(name: str, capacity: int) -> None:
    query = f"{AB} FILTER A[v + 1 > 0] PARTITION BY [k] WITHIN 5 [t]"
    table = events("ABAB", v=[1, 2, 3, 4], t=[4, 5, 6, 7], k=["x", "y", "y", "x"])
    right = stretto.match(query, table, time="t").to_pylist()
    assert [row["positions"] for row in right] == [[0, 3]]
    matcher = stretto.Matcher(query, time="t", capacity=capacity)
    rows: list[Row] = []
    for position in range(table.num_rows):
        rows += matcher.push(table.slice(position, 1)).to_pylist()
        before, stats = matcher.snapshot(), matcher.stats
        bad = BAD[name]
        if isinstance(bad, pa.Table):
            bad = bad.append_column("k", pa.array(["z"] * bad.num_rows))
        refused(StrettoError, lambda bad=bad: matcher.push(bad))
        assert matcher.snapshot() == before
        assert matcher.stats["events"] == stats["events"]
    assert rows == right


def test_a_refused_long_batch_changes_nothing() -> None:
    """The mistake is behind the first piece that the matcher reads."""
    rows = size(70_000, 200)
    query = f"{AB} WITHIN 5 EVENTS"
    types = ["D"] * rows
    types[0] = types[1] = "A"
    table = pa.table({"type": types, "t": pa.array([*range(rows - 1), 0])})
    matcher = stretto.Matcher(query, time="t")
    refused(DataError, lambda: matcher.push(table), f"decreases from {rows - 2} to 0 at row {rows - 1}")
    assert matcher.position == 0
    assert matcher.push(events("B", t=[0])).num_rows == 0
    assert matcher.position == 1


def test_an_overflow_in_a_later_piece_changes_nothing() -> None:
    rows = size(70_000, 200)
    query = "SELECT * FROM S WHERE A FILTER A[v + 1 > 0]"
    table = pa.table({"type": ["A"] * rows, "v": [1] * (rows - 1) + [2**63 - 1]})
    matcher = stretto.Matcher(query)
    refused(DataError, lambda: matcher.push(table), "overflow", f"at row {rows - 1}: ")
    assert matcher.position == 0
    assert matcher.push(table.slice(0, 2)).column("start").to_pylist() == [0, 1]


# ---- Output that explodes


def explosion(count: int) -> tuple[str, pa.Table]:
    return "SELECT * FROM S WHERE A AS x; B AS y; C AS z", events("A" * count + "B" * count + "C")


def test_explosions_come_in_pieces() -> None:
    """More than 10⁵ matches of one event."""
    count = size(330, 40)
    query, table = explosion(count)
    sizes, last = [], None
    for piece in stretto.iter_matches(query, table, output="positions"):
        sizes.append(piece.num_rows)
        assert piece.nbytes < 8_000_000
        last = piece
    assert sum(sizes) == count * count
    assert max(sizes) <= 1 << 16
    assert last is not None
    if COMPILED:
        assert len(sizes) > 1
    assert stretto.match(query, table, output="positions").num_rows == count * count
    assert stretto.match(query, table).column("z").combine_chunks().flatten().field(0).unique().to_pylist() == ["C"]


def test_explosions_of_long_matches() -> None:
    """Few matches a piece where each is long: pieces are bounded in positions, not in rows."""
    count = size(17, 9)
    rows = 0
    for piece in stretto.iter_matches("SELECT * FROM S WHERE A+; B", events("A" * count + "B"), output="positions"):
        rows += piece.num_rows
        assert piece.nbytes < 16_000_000
    assert rows == 2**count - 1


def test_explosions_with_limit_cost_the_limit() -> None:
    """2^500 matches, of which three are wanted: the latest starts."""
    table = events("A" * 500 + "C")
    rows = stretto.match("SELECT * FROM S WHERE A+; C LIMIT 3", table, output="positions").to_pylist()
    assert [row["start"] for row in rows] == [499, 498, 498]
    assert len({tuple(row["positions"]) for row in rows}) == 3
    query, _ = explosion(1)
    rows = stretto.match(f"{query} LIMIT 4", events("AAABC"), output="positions").to_pylist()
    assert [row["positions"] for row in rows] == [[2, 3, 4], [1, 3, 4], [0, 3, 4]]


def test_a_first_piece_comes_before_the_last_match() -> None:
    pieces = stretto.iter_matches("SELECT * FROM S WHERE A+; C", events("A" * 60 + "C"), output="positions")
    first = next(pieces)
    assert 0 < first.num_rows <= 1 << 16
    assert first.column("end").unique().to_pylist() == [60]
    pieces.close()  # type: ignore[attr-defined]


def test_a_matcher_that_was_stopped_has_no_counts_at_the_end() -> None:
    """They would be those of a part of the stream."""
    given = pa.table({"type": ["A", "B"], "t": [1, 2], "v": [2**63 - 1, 1]})
    matcher = stretto.Matcher("SELECT COUNT(*), SUM(v[v * 2]) AS s FROM S WHERE (A; B) AS v", given.schema, time="t")
    refused(StrettoError, lambda: matcher.push(given), "leaves 64 bits")
    refused(EngineError, matcher.finish, "stopped in the middle of a batch", "restore")
    refused(EngineError, lambda: matcher.advance(5), "stopped in the middle of a batch", "restore")


def test_a_matcher_that_was_interrupted_refuses_to_go_on() -> None:
    query = "SELECT * FROM S WHERE A+; C"
    matcher = stretto.Matcher(query, output="positions")
    matcher.push(events("AA"))
    snapshot = matcher.snapshot()

    def interrupted() -> None:
        for piece in matcher.iter_push(events("A" * 58 + "C")):
            assert piece.num_rows
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    refused(EngineError, lambda: matcher.push(events("C")), "stopped in the middle of a batch", "restore")
    refused(EngineError, matcher.finish, "stopped in the middle of a batch", "restore")
    refused(StrettoError, matcher.snapshot, "middle of a batch")
    matcher.restore(snapshot)
    assert sorted(row["positions"] for row in matcher.push(events("C")).to_pylist()) == [[0, 1, 2], [0, 2], [1, 2]]
    assert matcher.position == 3


def test_a_matcher_that_was_left_between_two_pieces_refuses_to_go_on() -> None:
    """Half a batch is no state to go on from, nor to save."""
    rows = (1 << 16) + 10
    matcher = stretto.Matcher("SELECT * FROM S WHERE A", output="positions")
    matcher.push(events("D"))
    snapshot = matcher.snapshot()
    names = ["A" if position in (5, rows - 5) else "D" for position in range(rows)]
    pieces = matcher.iter_push(pa.table({"type": names}))
    assert next(pieces).column("start").to_pylist() == [6]
    assert next(pieces).column("start").to_pylist() == [rows - 4]
    pieces.close()  # type: ignore[attr-defined]
    refused(EngineError, lambda: matcher.push(events("A")), "middle of a batch")
    refused(stretto.SnapshotError, matcher.snapshot, "middle of a batch")
    assert matcher.restore(snapshot).push(events("A")).column("start").to_pylist() == [1]


INTERRUPTED = """
import signal
import sys
import stretto

matcher = stretto.Matcher(sys.argv[1], output="positions")
matcher.push([{"type": "A", "v": 1}] * 2)
snapshot = matcher.snapshot()

def ring(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 2.0)
try:
    for piece in matcher.iter_push([{"type": "A", "v": 1}] * 58 + [{"type": "C", "v": 2}]):
        pass
except KeyboardInterrupt:
    print("interrupted")
try:
    matcher.push([{"type": "C", "v": 2}])
except stretto.EngineError as error:
    print("refused")
print(matcher.restore(snapshot).push([{"type": "C", "v": 2}]).num_rows)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM S WHERE A+; C",
        "PATTERN SEQ(A+ a[], C c) WHERE skip_till_any_match { c.v > 1 }",
        "PATTERN SEQ(A+ a[], C c) WHERE skip_till_any_match { c.v > a[1].v }",
    ],
    ids=["ceql", "tecs", "nfab"],
)
def test_control_c_stops_an_explosion(query: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, query], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["interrupted", "refused", "3"], done.stderr


ENTERED = """
import os
import signal
os.environ["STRETTO_COMPILE"] = "now"
import numpy as np
from numba import types
from stretto import _jit

program_at = _jit.called(numbers=1, matrices=1)

@_jit.jit
def kernel(program, n, m):
    return program_at(program)(n, m)

import ast
parameters = ast.arguments([], [ast.arg("n"), ast.arg("m")], None, [], [], None, [])
made = ast.FunctionDef("program", parameters, [ast.Return(ast.Name("n", ast.Load()))], [], None, None)
program = _jit.generated(made, {}, numbers=1, matrices=1)
m = np.zeros((1, 1), np.int64)
assert kernel(program, 7, m) == 7

def ring(*_):
    raise KeyboardInterrupt

interrupted = 0
signal.signal(signal.SIGALRM, ring)
while interrupted < 300:
    try:
        signal.setitimer(signal.ITIMER_REAL, 2e-4)
        while True:
            kernel(program, 7, m)
    except KeyboardInterrupt:
        interrupted += 1
print("always a KeyboardInterrupt")
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
def test_control_c_while_a_kernel_is_entered(tmp_path: Path) -> None:
    """A signal may come at any time, also while Numba unpacks the arguments of a call."""
    script = tmp_path / "entered.py"
    script.write_text(ENTERED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "always a KeyboardInterrupt\n", done.stderr


# ---- Long and nested queries


@pytest.mark.parametrize("joint", [";", ":"])
def test_queries_of_500_steps(joint: str) -> None:
    steps = size(500, 150)
    formula = f" {joint} ".join(f"T{i} AS x{i}" for i in range(steps))
    table = pa.table({"type": [f"T{i}" for i in range(steps)]})
    rows = stretto.match(f"SELECT x0, x{steps - 1} FROM S WHERE {formula}", table).to_pylist()
    ends = {"x0": [{"type": "T0"}], f"x{steps - 1}": [{"type": f"T{steps - 1}"}]}
    assert rows == [{"start": 0, "end": steps - 1, "positions": [0, steps - 1], **ends}]
    assert found(f"SELECT * FROM S WHERE {formula}", table.slice(1)) == []


def test_500_steps_of_one_type() -> None:
    steps = size(500, 100)
    formula = "; ".join(["A"] * steps)
    rows = found(f"SELECT * FROM S WHERE {formula}", pa.table({"type": ["A"] * (steps + 1)}))
    assert len(rows) == steps + 1
    assert {len(row) for row in rows} == {steps}


def test_500_alternatives() -> None:
    formula = " OR ".join(f"T{i}" for i in range(500))
    assert found(f"SELECT * FROM S WHERE {formula}", pa.table({"type": ["T499", "X", "T0"]})) == [[0], [2]]


def test_nested_iterations() -> None:
    """(((A+)+)+)+ is A+."""
    formula = "A"
    for _ in range(60):
        formula = f"({formula})+"
    assert len(found(f"SELECT * FROM S WHERE {formula}", events("AAAA"))) == 15
    formula = "A"
    for _ in range(5):
        formula = f"({formula}; A)+"
    rows = found(f"SELECT * FROM S WHERE {formula}", events("A" * 8))
    assert len(rows) == len({tuple(row) for row in rows})
    # Two, four, …; then one more and any number of them, five times: six, eight, nine, …
    assert {len(row) for row in rows} == {6, 8}
    assert len(rows) == comb(8, 6) + comb(8, 8)


def test_parentheses_beyond_all_measure() -> None:
    refused(QueryError, lambda: stretto.compile(f"SELECT * FROM S WHERE {'(' * 5000}A{')' * 5000}"), "nested")
    refused(
        QueryError, lambda: stretto.compile(f"SELECT * FROM S WHERE A FILTER A[{'(' * 5000}v=1{')' * 5000}]"), "nested"
    )


@pytest.mark.parametrize("count", [12, 40])
def test_filters_that_double_the_pattern_are_refused(count: int) -> None:
    """(φ FILTER p) OR (φ FILTER q), for each OR once more."""
    conditions = " AND ".join("(x[v = 1] OR x[v = 2])" for _ in range(count))
    query = f"SELECT * FROM S WHERE (A; B; C; A; B; C; A; B; C)+ AS x FILTER {conditions}"
    schema = {"type": str, "v": int}
    began = time.process_time()
    with pytest.raises((QueryError, LimitError), match=r"OR in FILTER|FILTER … OR …|OR") as caught:
        stretto.compile(query, schema)
    assert time.process_time() - began < 20
    if isinstance(caught.value, QueryError):
        assert "x[p OR q]" in str(caught.value)


@pytest.mark.parametrize("strategy", ["", "MAX", "STRICT"])
def test_determinization_that_explodes_is_refused(strategy: str) -> None:
    """The event 20 before the end must have v = 1: any deterministic automaton has to remember 20 events."""
    query = f"SELECT {strategy} * FROM S WHERE (T:+ : T AS a{' : T' * 20}) FILTER a[v = 1] WITHIN 100 EVENTS LIMIT 1"
    choose = random.Random(1)
    table = pa.table({"type": ["T"] * 40_000, "v": [choose.randrange(2) for _ in range(40_000)]})
    began = time.process_time()
    refused(LimitError, lambda: stretto.match(query, table, output="positions"), "32,768 states", "nested iterations")
    assert time.process_time() - began < size(20, 60)


# ---- Text

TEXTS = [
    "é",
    "e\u0301",
    "日本",
    "\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "שלום",
    "\u202eabc\u202c",
    "a\0b",
    "'",
    "''",
    '"',
    "`",
    "\\",
    "%",
    "_",
    " ",
    "\n",
    "\ufeff",
    "ſ",
    "İ",
    "--",
    "/*",
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_any_text_as_type_name_value_and_key(text: str) -> None:
    quoted = "`" + text.replace("`", "``") + "`"
    value = "'" + text.replace("'", "''") + "'"
    table = pa.table(
        {
            "type": [text, f"{text}{text}", text, "B", text],
            f"{text} ": [text, text, f"{text}x", text, None],
        }
    )
    name = quoted[:-1] + " `"
    query = (
        f"SELECT {quoted} FROM {quoted} WHERE {quoted} AS {quoted}; B FILTER {quoted}[{name} = {value}] "
        f"PARTITION BY [{name}]"
    )
    rows = stretto.match(query, table).to_pylist()
    shown = {f"{text} ": text, text: [{"type": text, f"{text} ": text}]}
    assert rows == [{"start": 0, "end": 3, "positions": [0], **shown}]
    assert stretto.compile(query).variables == (text,)


@pytest.mark.parametrize("text", ["é", "\U0001f600", "שלום", "a\0b"], ids=ascii)
def test_like_counts_characters(text: str) -> None:
    table = events("AAA", v=[f"x{text[-1]}y", f"{text[-1]}", f"x{text[-1]}{text[-1]}y"])
    assert found("SELECT * FROM S WHERE A FILTER A[v LIKE 'x_y']", table) == [[0]]
    assert found(f"SELECT * FROM S WHERE A FILTER A[v LIKE '%{text[-1]}%']", table) == [[0], [1], [2]]


def test_texts_are_compared_as_they_are() -> None:
    """No normalization: é is not e and an accent; no case folding."""
    table = events("AAA", v=["é", "e\u0301", "É"])
    assert found("SELECT * FROM S WHERE A FILTER A[v = 'é']", table) == [[0]]
    assert found("SELECT * FROM S WHERE A FILTER A[v = 'e\u0301']", table) == [[1]]
    assert len(found("SELECT * FROM S WHERE A; A PARTITION BY [v]", table)) == 0


def test_a_caret_under_wide_text() -> None:
    error = refused(QueryError, lambda: stretto.compile("SELECT * FROM S WHERE `日本` ;; B"))
    assert "column 29" in str(error)


# ---- Numbers at the edge


def test_integers_at_the_edge_of_64_bits() -> None:
    table = events("AB", v=[2**63 - 1, -(2**63)])
    assert found(f"{AB} FILTER A[v = {2**63 - 1}] AND B[v = -{2**63}]", table) == [[0, 1]]
    assert found(f"{AB} FILTER A[v > {2**63 - 1}]", table) == []
    assert found(f"{AB} PARTITION BY [v]", table) == []
    refused(DataError, lambda: stretto.match(f"{AB} FILTER A[v + 1 > 0]", table), "overflow")
    unsigned = events("ABB", v=pa.array([2**64 - 1, 2**64 - 2, 2**64 - 1], pa.uint64()))
    assert found(f"{AB} PARTITION BY [v]", unsigned) == [[0, 2]]


@pytest.mark.parametrize("constant", [2**63, -(2**63) - 1, 2**64, 10**40, -(10**40)])
def test_constants_beyond_64_bits(constant: int) -> None:
    """The right answer, or an error of the query; never an answer that wrapped around."""
    table = events("AA", v=[2**63 - 1, -(2**63)])
    try:
        rows = found(f"SELECT * FROM S WHERE A FILTER A[v < {constant}]", table)
    except QueryError as error:
        assert str(abs(constant)) in str(error)  # noqa: PT017
    else:
        assert rows == ([[0], [1]] if constant > 0 else [])


def test_times_at_the_edge() -> None:
    query = f"{AB} WITHIN 2 [t]"
    refused(DataError, lambda: stretto.match(query, events("AB", t=[2**63 - 2, 2**63 - 1])), "'t'", "row 0", "±2^62")
    refused(DataError, lambda: stretto.match(query, events("AB", t=[-(2**63), 0])), "'t'", str(-(2**63)))
    assert found(query, events("AAB", t=[2**62 - 3, 2**62 - 2, 2**62])) == [[1, 2]]
    assert found(query, events("AAB", t=[-(2**62), -(2**62) + 1, -(2**62) + 3])) == [[1, 2]]
    assert found(f"{AB} WITHIN {2**62} [t]", events("AAB", t=[-(2**62), 0, 2**62])) == [[1, 2]]
    big = pa.array([2**64 - 2, 2**64 - 1], pa.uint64())
    refused(DataError, lambda: stretto.match(query, events("AB", t=big)), "'t' does not fit into 64 bits")
    refused(QueryError, lambda: stretto.match(f"{AB} WITHIN -2 [t]", events("AB", t=[1, 2])), "cannot be negative")


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_all_units_and_zones(unit: str, zone: str | None) -> None:
    """Windows measure instants, also over a change to winter time (New York, 6 November 2022, 06:00 UTC)."""
    begin = dt.datetime(2022, 11, 6, 5, 59, 59, tzinfo=dt.UTC)
    moments = [begin + dt.timedelta(seconds=s) for s in (0, 1, 3)]
    if zone is None:
        moments = [moment.replace(tzinfo=None) for moment in moments]
    table = events("AAB", t=pa.array(moments, pa.timestamp(unit, zone)))
    for window in ("2 seconds", "2 [t]", "2 seconds [t]"):
        rows = stretto.match(f"{AB} WITHIN {window}", table, time="t")
        assert [row["positions"] for row in rows.select(["positions"]).to_pylist()] == [[1, 2]], window
        assert rows.schema.field("start_time").type == pa.timestamp(unit, zone)
        assert rows.column("end_time").cast(pa.int64()).to_pylist() == [table.column("t").cast(pa.int64())[2].as_py()]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_dates_as_window(kind: pa.DataType) -> None:
    days = pa.array([dt.date(2020, 2, 27), dt.date(2020, 2, 28), dt.date(2020, 3, 1)], kind)
    assert found(f"{AB} WITHIN 2 days [t]", events("AAB", t=days)) == [[1, 2]]
    assert found(f"{AB} WITHIN 3 days [t]", events("AAB", t=days)) == [[1, 2], [0, 2]]
    falling = events("AB", t=pa.array([dt.date(2020, 1, 2), dt.date(2020, 1, 1)], kind))
    refused(DataError, lambda: stretto.match(f"{AB} WITHIN 3 days [t]", falling), "'t' decreases")


@pytest.mark.parametrize(
    "kind",
    [pa.decimal128(5, 2), pa.decimal128(20, 2), pa.decimal128(38, 2), pa.decimal128(38, 18), pa.decimal256(50, 2)],
    ids=str,
)
def test_decimals_as_window(kind: pa.DataType) -> None:
    values = pa.array([Decimal("1.25"), Decimal("1.26"), Decimal("2.76")], kind)
    assert found(f"{AB} WITHIN 1.5 [t]", events("AAB", t=values)) == [[1, 2]]
    assert found(f"{AB} WITHIN 1.51 [t]", events("AAB", t=values)) == [[1, 2], [0, 2]]


def test_decimals_too_great_for_a_window() -> None:
    values = pa.array([Decimal("1.00"), Decimal("1e30")], pa.decimal128(38, 2))
    refused(DataError, lambda: stretto.match(f"{AB} WITHIN 1 [t]", events("AB", t=values)), "'t'", "64 bits")


# ---- Snapshots


def test_snapshots_that_are_none() -> None:
    matcher = stretto.Matcher(AB, events("AB"))
    matcher.push(events("A"))
    good = matcher.snapshot()
    refused(stretto.SnapshotError, lambda: matcher.restore(b""), "not a stretto snapshot")
    refused(stretto.SnapshotError, lambda: matcher.restore(b"x" * 100), "not a stretto snapshot")
    refused(stretto.SnapshotError, lambda: matcher.restore(good[:-1]), "damaged")
    refused(stretto.SnapshotError, lambda: matcher.restore(good[:20]))
    for at in (30, len(good) // 2, len(good) - 2):
        broken = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        refused(stretto.SnapshotError, lambda broken=broken: matcher.restore(broken), "damaged")
    other = good[:8] + b"\xff\x7f" + good[10:]
    refused(stretto.SnapshotError, lambda: matcher.restore(other), "format version 32767")
    # The matcher is as it was.
    assert matcher.push(events("B")).num_rows == 1


def test_snapshots_of_something_else() -> None:
    matcher = stretto.Matcher(AB, events("AB", v=[1, 2], t=[1, 2]))
    matcher.push(events("A", v=[1], t=[1]))
    good = matcher.snapshot()

    def into(query: str, table: pa.Table, **options: Any) -> Callable[[], object]:
        return lambda: stretto.Matcher(query, table, **options).restore(good)

    same = events("AB", v=[1, 2], t=[1, 2])
    error = stretto.SnapshotError
    refused(error, into(f"{AB} WITHIN 3 EVENTS", same), "of another query", AB)
    refused(error, into(AB, events("AB", v=["x", "y"], t=[1, 2])), "attributes")
    refused(error, into(AB, same, time="t"), "differ")
    refused(error, into(AB, same, output="positions"), "output= was 'events', is 'positions'")
    refused(error, into(AB, same, valuations=True), "valuations= was False, is True")
    refused(error, into(AB, same, late="drop"), "late= was 'error', is 'drop'")


# ---- What is written wrong first


SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.v < b.v } WITHIN 10"
AFA = stretto.AFA({"type": str, "v": int}, window=10).arc("q0", "q1", when="e.type = 'A'").final("q1")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda rows: stretto.match(SASE, rows, tim="t"), TypeError, "keyword argument 'tim'; did you mean 'time'?"),
        (lambda rows: stretto.match(AFA, rows, tim="t"), TypeError, "keyword argument 'tim'; did you mean 'time'?"),
        (lambda rows: stretto.iter_matches(SASE, rows, tim="t"), TypeError, "argument 'tim'; did you mean 'time'?"),
        (
            lambda rows: stretto.match(AFA, [{"typ": "A", "v": 1, "t": 1}], time="t"),
            DataError,
            "the events have no column 'type' (attribute); did you mean 'typ'?",
        ),
        (
            lambda rows: stretto.match(SASE.replace("b.v", "'3'"), rows, time="t"),
            QueryError,
            "hint: write numbers without quotes",
        ),
        (
            lambda rows: stretto.match(SASE.replace("a.v < b.v", "a.k = 3"), rows, time="t"),
            QueryError,
            "hint: write strings in single quotes",
        ),
        (lambda rows: stretto.PatternSet({"p": SASE}, time="t"), OptionError, "PatternSet(schema); then change("),
        (lambda rows: stretto.PatternSet([SASE], time="t"), OptionError, "PatternSet(schema); then change("),
        (
            lambda rows: stretto.match("SELECT * FROM S WHERE A ; B WITHIN 5 [t]", rows[::-1]),
            DataError,
            "'t' decreases from 2 to 1 at row 1; a window needs an attribute that does not: sort the events by it before",
        ),
    ],
)
def test_first_mistakes_show_the_way_out(call: Any, error: type[Exception], message: str) -> None:
    rows = [{"type": "A", "v": 1, "t": 1, "k": "x"}, {"type": "B", "v": 2, "t": 2, "k": "x"}]
    with pytest.raises(error, match=re.escape(message)):
        call(rows)


def test_first_mistakes_on_spark_show_the_way_out() -> None:
    pytest.importorskip("pyspark")
    for query in (SASE, AFA):
        refused(OptionError, lambda query=query: stretto.spark.match(query, query), "the DataFrame comes first")
    for call in (stretto.spark.match, stretto.spark.explain):
        refused(TypeError, lambda call=call: call(None, AFA, time="t", budgets=5), "'budgets'; did you mean 'budget'?")
    refused(OptionError, lambda: stretto.spark.match(None, AFA, time="t", timer="eow"), "SEQ(A a, ~(B b)) WITHIN")
    refused(
        OptionError, lambda: stretto.spark.match(None, AFA, time="t", at_end="drop"), "at_end='drop' is for queries"
    )
    refused(
        OptionError, lambda: stretto.spark.match(None, SASE, time="t", at_end="keep"), "expected 'complete' or 'drop'"
    )
