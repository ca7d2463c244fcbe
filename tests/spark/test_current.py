"""Tables that are kept equal to the matches that hold, whatever is written twice, and wherever the writer stops."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stretto import connectors
from stretto import spark as on_spark
from stretto.connectors import current as tables
from stretto.errors import DataError, OptionError

pytestmark = [pytest.mark.spark]

SCHEMA = pa.schema(
    [
        ("sign", pa.int8()),
        ("start_time", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("a", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.float64())]))),
    ]
)


def micro_batches(seed: int, count: int) -> tuple[list[pa.Table], Counter[str]]:
    """Matches that are given and taken back, some twice, and those that hold in the end."""
    rng = random.Random(seed)
    held: list[dict[str, Any]] = []
    found = []
    for _ in range(count):
        rows = []
        for _ in range(rng.randrange(0, 8)):
            if held and rng.random() < 0.4:
                rows.append(held.pop(rng.randrange(len(held))) | {"sign": -1})
            else:
                events = [
                    {"x": rng.choice([None, 1, 2]), "y": rng.choice([None, 0.5])} for _ in range(rng.randrange(2))
                ]
                one = {"start_time": rng.randrange(3) * 10**6, "key": rng.choice("ab"), "a": events}
                held.append(one)
                rows.append(one | {"sign": 1})
        found.append(pa.Table.from_pylist(rows, SCHEMA))
    whole = pa.Table.from_pylist([one | {"sign": 1} for one in held], SCHEMA)
    return found, Counter(map(repr, whole.drop_columns(["sign"]).to_pylist()))


def rows_of(table: pa.Table) -> Counter[str]:
    """The rows of a table of current matches, each as often as it holds."""
    found: Counter[str] = Counter()
    for row in table.cast(pa.schema([*SCHEMA.remove(0), ("count", pa.int64())])).to_pylist():
        found[repr({name: value for name, value in row.items() if name != "count"})] += row["count"]
    return found


def read(place: Path, format: str) -> pa.Table:
    if format == "parquet":
        found = pa.concat_tables(
            [pq.ParquetFile(path).read().replace_schema_metadata() for path in place.glob("*.parquet")]
        )
    else:
        from deltalake import DeltaTable

        found = DeltaTable(str(place)).to_pyarrow_table()
    assert len(set(found.column("match_id").to_pylist())) == found.num_rows
    return found.select(["start_time", "key", "a", "count"])


@pytest.mark.parametrize("format", ["delta", "parquet"])
def test_the_table_is_what_holds(spark: Any, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer is stopped in the middle of a batch, and batches come again, as after a restart."""
    if format == "delta":
        pytest.importorskip("deltalake")
    parts, wanted = micro_batches(3, 6)
    write = connectors.current.writer(tmp_path / "table", "test", format=format)
    replace, stops = os.replace, iter([False, True, False, False, False, True])

    def stopping(*paths: Any) -> None:
        replace(*paths)
        if next(stops, False):
            raise OSError("stopped")

    monkeypatch.setattr(tables.os, "replace", stopping)
    frames = [spark.createDataFrame(part) for part in parts]
    for number, part in enumerate(frames):
        for _ in range(2):
            try:
                write(part, number)
            except OSError:
                write(part, number)
    assert rows_of(read(tmp_path / "table", format)) == wanted
    whole = frames[0].unionAll(frames[1])
    for part in frames[2:]:
        whole = whole.unionAll(part)
    holding = on_spark.current(whole).toArrow()
    assert holding.column_names == ["match_id", "start_time", "key", "a"]
    assert (
        rows_of(holding.drop_columns(["match_id"]).append_column("count", pa.array([1] * holding.num_rows))) == wanted
    )
    back = pa.Table.from_pylist([{"sign": -1, "start_time": 9 * 10**6, "key": "z", "a": []}], SCHEMA)
    with pytest.raises(DataError, match="is taken back, and the table does not hold it"):
        write(spark.createDataFrame(back), len(frames))
    with pytest.raises(Exception, match="a match is taken back that does not hold"):
        on_spark.current(spark.createDataFrame(back)).collect()


def test_what_cannot_be(spark: Any, tmp_path: Path) -> None:
    df = spark.range(1)
    with pytest.raises(OptionError, match="format='csv': expected 'delta' or 'parquet'"):
        connectors.current.writer(tmp_path, "x", format="csv")
    with pytest.raises(OptionError, match="give the query a name"):
        connectors.current.writer(tmp_path, "")
    with pytest.raises(DataError, match=r"no column 'sign' \(sign\)"):
        on_spark.current(df)
    with pytest.raises(OptionError, match="a column 'match_id' already"):
        on_spark.with_match_id(df.withColumnRenamed("id", "match_id"))
    with pytest.raises(OptionError, match=r"keep a table, writeStream.foreachBatch"):
        on_spark.current(spark.readStream.format("rate").load())
    matches = spark.createDataFrame(micro_batches(3, 1)[0][0])
    connectors.current.writer(tmp_path / "one", "one", format="parquet")(matches, 0)
    with pytest.raises(OptionError, match="has batches of another query"):
        connectors.current.writer(tmp_path / "one", "other", format="parquet")(matches, 1)
