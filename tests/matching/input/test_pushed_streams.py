"""A dict of streams in ``Matcher.push``: the events of a push are merged by time, at any cut as in one call of ``match``."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import stretto
from tests.conftest import cases
from tests.matching.input.test_joined_keys import JOINED, QUERY, streams

QUERIES = {
    "keys": QUERY.format("*", JOINED, "WITHIN 9 [at]"),
    "no key": "SELECT n, p[id] FROM orders, payments WHERE orders>NEW AS n : PAID+ AS p WITHIN 9 [at]",
    "one stream": "SELECT * FROM payments WHERE PAID ; PAID WITHIN 2 [at]",
    "SASE+": "PATTERN SEQ(NEW n, PAID p, SENT s) WHERE skip_till_any_match { n.id = p.order_id } WITHIN 6",
}


def shown(table: pa.Table) -> list[str]:
    names = [name for name in table.column_names if name not in ("start", "end", "positions")]
    return sorted(map(repr, table.select(names).to_pylist()))


@pytest.mark.parametrize("name", QUERIES)
def test_at_any_cut(name: str) -> None:
    text, found = QUERIES[name], 0
    for seed in range(cases(60, compiled=10)):
        tables, draw = streams(seed), random.Random(seed)
        if name != "SASE+":
            tables = {one: tables[one] for one in stretto.compile(text).streams}
        expected = stretto.match(text, tables, time="at")
        found += expected.num_rows
        matcher = stretto.Matcher(text, time="at")
        schemas = {one: table.slice(0, 0) for one, table in tables.items()}
        rows = [matcher.push(schemas)]
        begin = 0
        while begin < 45:
            end = begin + draw.choice([1, 3, 10])
            parts: dict[str, Any] = {}
            for one, table in tables.items():
                inside = pc.and_(pc.greater_equal(table["at"], begin), pc.less(table["at"], end))
                part = table.filter(inside)
                if part.num_rows:
                    parts[one] = part
                elif draw.random() < 0.5:
                    parts[one] = draw.choice([[], part])
            if parts:
                rows.append(matcher.push(parts))
            matcher = stretto.Matcher(text, time="at").restore(matcher.snapshot())
            begin = end
        got = pa.concat_tables([*rows, matcher.finish()])
        assert shown(got) == shown(expected), seed
    assert found > 10


def test_positions_are_those_of_the_merged_events() -> None:
    text = "SELECT * FROM a, b WHERE a>X ; b>Y"
    matcher = stretto.Matcher(text, time="t")
    given = {"a": [{"type": "X", "t": 2}, {"type": "X", "t": 5}], "b": [{"type": "Y", "t": 1}, {"type": "Y", "t": 5}]}
    assert matcher.push(given)["positions"].to_pylist() == [[2, 3], [1, 3]]
    assert matcher.push({"b": [{"type": "Y", "t": 6}]})["positions"].to_pylist() == [[2, 4], [1, 4]]
    with pytest.raises(stretto.DataError, match="decreases from 6 to 4"):
        matcher.push({"a": [{"type": "X", "t": 4}]})
    sorts = stretto.Matcher(text, time="t", disorder=9)
    sorts.push(given)
    sorts.push({"a": [{"type": "X", "t": 4}], "b": []})
    assert sorts.finish()["positions"].to_pylist() == [[2, 3], [3, 4], [1, 3]]


def test_mistakes() -> None:
    text = "SELECT * FROM orders, payments WHERE NEW ; PAID FILTER PAID[order_id > 1]"
    orders = [{"type": "NEW", "at": 1, "id": 7}]
    payments = [{"type": "PAID", "at": 2, "order_id": 7}]
    matcher = stretto.Matcher(text, time="at")
    with pytest.raises(
        stretto.DataError, match="the first events tell the columns, and there are none of stream 'payments'"
    ):
        matcher.push({"orders": orders})
    assert matcher.push({"orders": [], "payments": []}).num_rows == 0
    with pytest.raises(stretto.DataError, match="does not read the stream 'payment'; did you mean 'payments'"):
        matcher.push({"orders": orders, "payment": payments})
    assert matcher.push({"orders": orders, "payments": payments}).num_rows == 1
    with pytest.raises(stretto.DataError, match="no column 'order_id'"):
        matcher.push({"orders": [{"type": "NEW", "at": 3}], "payments": [{"type": "PAID", "at": 4}]})
    with pytest.raises(stretto.DataError, match="several streams are merged by time"):
        stretto.Matcher(text).push({"orders": orders, "payments": payments})
    kinds = {"type": str, "at": int, "id": int, "order_id": int, "from": str}
    given = {"orders": orders, "payments": payments}
    assert stretto.Matcher(text, kinds, time="at", stream="from").push(given).num_rows == 1
    assert stretto.Matcher(text, kinds, time="at", stream="from").push({"orders": orders}).num_rows == 0
