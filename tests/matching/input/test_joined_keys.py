"""Keys that streams call differently: everywhere the same matches as over columns that are renamed before."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto
from stretto.column_types import with_fields
from stretto.dataflow import stream
from stretto.events import Schema
from stretto.matching.input.derived_columns import Derived
from tests.reference.ceql import evaluate

QUERY = "SELECT {} FROM orders, payments, parcels WHERE NEW AS n ; PAID+ AS p ; SENT AS s FILTER p[id > 1] PARTITION BY {} {}"
JOINED = "orders[id] = payments[order_id] = parcels[of.order]"


def streams(seed: int) -> dict[str, pa.Table]:
    """Orders by ``id``; payments by ``order_id``, with an own ``id``; parcels by a field; at times without a key."""
    draw = random.Random(seed)
    key, n = [None, 1, 2, 3], 14
    rows = [(name, at) for at in range(3 * n) for name in [draw.choice(["orders", "payments", "parcels"])]]
    kinds = {"orders": "NEW", "payments": "PAID", "parcels": "SENT"}

    def table(name: str, own: dict[str, pa.Array]) -> pa.Table:
        times = [at for one, at in rows if one == name]
        shared = {"type": pa.array([kinds[name]] * len(times), pa.string()), "at": pa.array(times, pa.int64())}
        shared["region"] = pa.array(draw.choices(["x", "y"], k=len(times)), pa.string())
        return pa.table({**shared, **{column: make(len(times)) for column, make in own.items()}})

    def keys(kind: pa.DataType):  # type: ignore[no-untyped-def]
        return lambda count: pa.array(draw.choices(key, k=count), kind)

    of = pa.struct([("order", pa.int64())])
    return {
        "orders": table("orders", {"id": keys(pa.int32())}),
        "payments": table("payments", {"id": keys(pa.int64()), "order_id": keys(pa.int64())}),
        "parcels": table(
            "parcels", {"of": lambda count: pa.array([{"order": draw.choice(key)} for _ in range(count)], of)}
        ),
    }


def renamed(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    found = dict(tables)
    found["orders"] = tables["orders"].append_column("key", tables["orders"]["id"].cast(pa.int64()))
    found["payments"] = tables["payments"].append_column("key", tables["payments"]["order_id"])
    of = tables["parcels"]["of"].combine_chunks()
    found["parcels"] = tables["parcels"].append_column(
        "key", of.field("order") if len(of) else pa.array([], pa.int64())
    )
    return found


def one(tables: dict[str, pa.Table]) -> pa.Table:
    parts = [
        table.append_column("from", pa.array([name] * table.num_rows, pa.string())) for name, table in tables.items()
    ]
    return pa.concat_tables(parts, promote_options="permissive").sort_by("at")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("more", ["", ", [region]"])
@pytest.mark.parametrize("rest", ["", "WITHIN 9 [at]", "CONSUME BY PARTITION"])
def test_everywhere_as_over_renamed_columns(seed: int, more: str, rest: str, tmp_path: Path) -> None:
    tables = streams(seed)
    text = QUERY.format("*", JOINED + more, rest)
    expected = stretto.match(QUERY.format("*", "[key]" + more, rest), renamed(tables), time="at")
    names = ["id", *(["region"] if more else [])]
    shared = ["start", "end", "positions", "start_time", "end_time"]
    found = stretto.match(text, tables, time="at")
    assert found.column_names == [*shared, *names, "n", "p", "s"]
    assert found.select(shared).equals(expected.select(shared))
    assert found["id"].equals(expected["key"])
    assert {field.name for field in found.schema.field("n").type.value_type} == {
        "type",
        "at",
        "region",
        "id",
        "order_id",
        "of",
        "stream",
    }

    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=3)
    files = {name: tmp_path / f"{name}.parquet" for name in tables}
    assert stretto.match(text, files, time="at").equals(found)

    table = one(tables)
    given = {"time": "at", "stream": "from"}
    whole = stretto.match(text, table, **given)
    assert whole["id"].equals(found["id"])
    assert whole.select(["start_time", "end_time"]).equals(found.select(["start_time", "end_time"]))
    pq.write_table(table, tmp_path / "all.parquet", row_group_size=4)
    assert stretto.match(text, tmp_path / "all.parquet", **given).equals(whole)

    # The definition, which reads each stream's own column.
    bound = stretto.compile(text, schema=Schema.of(table.schema, **given)).bound
    positions = sorted(sorted(match.positions) for match in evaluate(bound, with_fields(table, ["of.order"])))
    assert positions == sorted(whole["positions"].to_pylist())

    cut = random.Random(seed).randrange(table.num_rows)
    for schema in (None, table.schema):
        matcher = stretto.Matcher(text, schema, **given)
        rows = matcher.push(table.slice(0, cut)).to_pylist()
        resumed = stretto.Matcher(text, schema, **given).restore(matcher.snapshot())
        assert rows + resumed.push(table.slice(cut)).to_pylist() + resumed.finish().to_pylist() == whole.to_pylist()
    sorts = stretto.Matcher(text, table.schema, **given, disorder=5)
    rows = sorts.push(table.slice(0, cut)).to_pylist() + sorts.push(table.slice(cut)).to_pylist()
    assert len(rows + sorts.finish().to_pylist()) == whole.num_rows


def test_some_match_at_all() -> None:
    text = QUERY.format("*", JOINED, "")
    assert sum(stretto.match(text, streams(seed), time="at").num_rows for seed in range(6)) > 20


def test_own_columns_of_other_sorts() -> None:
    """The key is of one type, and a column of its name in another stream is of another."""
    orders = [{"type": "NEW", "at": 1, "id": 7}, {"type": "NEW", "at": 2, "id": 8}]
    payments = [{"type": "PAID", "at": 5, "order_id": 7, "id": "seven"}]
    text = "SELECT p[order_id] FROM orders, payments WHERE NEW ; PAID AS p PARTITION BY orders[id] = payments[order_id]"
    with pytest.warns(match="column 'id' is"):
        found = stretto.match(text, {"orders": orders, "payments": payments}, time="at")
    assert found.select(["positions", "id", "p"]).to_pylist() == [{"positions": [2], "id": 7, "p": [{"order_id": 7}]}]


def test_counts_and_nothing() -> None:
    text = QUERY.format("*", JOINED, "")
    found = stretto.match(text, streams(1), time="at", output="summary")
    assert found.column_names[-2:] == ["id", "matches"]
    nothing = stretto.match(text, {name: table.slice(0, 0) for name, table in streams(1).items()}, time="at")
    assert "id" in nothing.column_names
    assert nothing.num_rows == 0


def test_mistakes_in_columns() -> None:
    tables = streams(0)
    tables["payments"] = tables["payments"].rename_columns(["type", "at", "region", "id", "order_ids"])
    text = QUERY.format("*", JOINED, "").replace("parcels[of.order]", "parcels[of.orders]")
    with pytest.raises(
        stretto.DataError, match=r"'payments' have no column 'order_id' \(key\); did you mean 'order_ids'"
    ):
        stretto.match(QUERY.format("*", JOINED, ""), tables, time="at")
    with pytest.raises(stretto.QueryError, match=r"unknown attribute 'of\.orders' in PARTITION BY"):
        stretto.match(text, one(streams(0)), time="at", stream="from")
    kinds = {"type": str, "from": str, "id": int, "number": str}
    with pytest.raises(stretto.QueryError, match=r"a\[id\] is int64 and b\[number\] is string: they make no key"):
        stretto.compile("SELECT * FROM a, b WHERE A PARTITION BY a[id] = b[number]", kinds, stream="from")
    matcher = stretto.Matcher(QUERY.format("*", JOINED, ""), one(streams(0)).schema, time="at", stream="from")
    with pytest.raises(stretto.DataError, match=r"have no column 'order_id' \(key\)"):
        matcher.push(one(streams(0)).drop_columns(["order_id"]))
    odd = streams(0)
    odd["payments"] = odd["payments"].set_column(4, "order_id", pa.nulls(odd["payments"].num_rows, pa.string()))
    with pytest.raises(stretto.DataError, match=r"payments\[order_id\].* is int32 in stream 'orders', and string"):
        stretto.match(QUERY.format("*", JOINED, ""), odd, time="at")


def test_what_refuses_them() -> None:
    table, text = one(streams(0)), QUERY.format("*", JOINED, "WITHIN 9 [at]")
    hint = r"(?s)PARTITION BY orders\[id\] = .* does not run {}.*hint: rename columns .*PARTITION BY \[id\]"
    with pytest.raises(stretto.OptionError, match=hint.format("as an automaton")):
        stretto.Matcher(text, table.schema, time="at", stream="from", speculation=math.inf)
    patterns = stretto.PatternSet(table.schema, time="at", stream="from")
    with pytest.raises(stretto.OptionError, match=hint.format("beside other patterns")):
        patterns.change([{"id": "p", "query": text}])
    events = stream("s", {"type": str, "from": str, "id": int, "order_id": int, "of.order": int})
    with pytest.raises(stretto.OptionError, match=hint.format("in a dataflow")):
        events.recognize(text.replace("WITHIN 9 [at]", "WITHIN 9 [vs]"))


def test_a_column_of_the_name_of_a_key_is_not_taken_for_it(tmp_path: Path) -> None:
    text, tables = QUERY.format("*", JOINED, ""), streams(2)
    odd = tables | {"orders": tables["orders"].append_column(JOINED, pa.nulls(tables["orders"].num_rows, pa.int64()))}
    table = one(odd)
    pq.write_table(table, tmp_path / "all.parquet")
    given = {"time": "at", "stream": "from"}
    for events, roles in ((odd, {"time": "at"}), (table, given), (tmp_path / "all.parquet", given)):
        with pytest.raises(
            stretto.DataError, match=r"a column is called 'orders\[id\] = .*, as the key of the query is"
        ):
            stretto.match(text, events, **roles)
    with pytest.raises(stretto.DataError, match="as the key of the query is"):
        stretto.Matcher(text, table.schema, **given).push(table)
    with pytest.raises(stretto.DataError, match="as the key of the query is"):
        stretto.Matcher(text, **given).push(table)
    keys = stretto.compile(text).parsed.joined
    assert Derived((), keys, "from").added_to(one(tables)).column_names == [*one(tables).column_names, JOINED]
