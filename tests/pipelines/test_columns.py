"""Types of columns as Spark writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stretto.errors import OptionError
from stretto.pipelines.columns import column_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("string", pa.string()),
        ("  BIGINT ", pa.int64()),
        ("long", pa.int64()),
        ("integer", pa.int32()),
        ("byte", pa.int8()),
        ("real", pa.float32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("decimal", pa.decimal128(10, 0)),
        ("numeric(5)", pa.decimal128(5, 0)),
        ("decimal( 38 , 10 )", pa.decimal128(38, 10)),
        ("array<map<string,double>>", pa.list_(pa.field("element", pa.map_(pa.string(), pa.float64())))),
        ("struct<a: int, `b c` array<date>>", pa.struct([("a", pa.int32()), ("b c", pa.list_(pa.date32()))])),
    ],
)
def test_types(text: str, expected: pa.DataType) -> None:
    assert column_type(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strng", "'strng' is no type of a column; did you mean 'string'?"),
        ("int64", "'int64' is no type of a column; did you mean 'int'?"),
        ("array<strng>", "'strng' in 'array<strng>' is no type of a column; did you mean 'string'?"),
        ("array<int", "'array<int' is no type of a column: expected '>'"),
        ("map<int>", "'map<int>' is no type of a column: expected ','"),
        ("int int", "'int int' is no type of a column: it goes on with 'int' after a whole type"),
        ("decimal(x)", "'decimal(x)' is no type of a column: expected a number of digits"),
        ("decimal(3,4)", "'decimal(3,4)': a decimal has 1 to 38 digits, and not more behind the point"),
        ("decimal(39)", "'decimal(39)': a decimal has 1 to 38 digits, and not more behind the point"),
    ],
)
def test_what_is_no_type(text: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        column_type(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["", "int;", "a-b", "struct<>", "array<", "varchar(3)"])
def test_unlike_any_type(text: str) -> None:
    with pytest.raises(OptionError, match=r"is no type of a column; known types: string, boolean, .*struct<name: …>$"):
        column_type(text)


@pytest.mark.spark
@pytest.mark.parametrize(
    "text", ["tinyint", "decimal(7, 2)", "timestamp_ntz", "array<struct<a: int, b: string>>", "binary"]
)
def test_spark_reads_the_same(spark: object, text: str) -> None:
    from pyspark.sql.types import StructType

    from stretto.spark.frames import spark_schema

    ours = spark_schema(pa.schema([("x", column_type(text))]))
    assert ours.simpleString() == StructType.fromDDL(f"x {text}").simpleString()
