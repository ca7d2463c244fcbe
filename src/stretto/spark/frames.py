"""DataFrames as stretto sees them: their columns' Arrow types, several streams as one, names taken literally.

Event files as DataFrames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.column_types import field_type, unified
from stretto.errors import DataError, OptionError, hinted
from stretto.events import require
from stretto.matching.compiled import Query
from stretto.matching.input.stream_union import STREAM_COLUMN
from stretto.query.query import JoinedKey
from stretto.spark.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from stretto.spark.options import Continuous


@check_arguments
def read(path: str | Path) -> DataFrame:
    """A Parquet, CSV (with a header; types are inferred) or JSON-lines file as a DataFrame, by its ending.

    Raises
    ------
    OptionError
        The ending is none of these.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from stretto import spark
    >>> path = pathlib.Path(tempfile.mkdtemp(), "events.csv")
    >>> _ = path.write_text("type,t\\nA,1\\nB,2\\n")
    >>> spark.read(path).collect()
    [Row(type='A', t=1), Row(type='B', t=2)]
    """
    path = Path(path)
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in (".gz", ".bz2", ".zst", ".lz4")]
    reader = session().read
    match endings[-1:]:
        case [".parquet"]:
            return reader.parquet(str(path))
        case [".csv"]:
            return reader.csv(str(path), header=True, inferSchema=True)
        case [".json" | ".jsonl" | ".ndjson"]:
            return reader.json(str(path))
    raise OptionError(f"cannot read '{path.name}' on Spark: end it in .parquet, .csv or .json")


def one_dataframe(
    df: DataFrame | Mapping[str, DataFrame], query: Query, stream: str | None
) -> tuple[DataFrame, str | None]:
    """One DataFrame of all streams, and the column that tells them apart."""
    if not isinstance(df, Mapping):
        check_dataframe(df, "df")
        if stream is None and len(query.streams) > 1:
            raise DataError(
                f"the query reads {len(query.streams)} streams ({', '.join(query.streams)}): give a dict of "
                "DataFrames by stream, or name the column that tells them apart with stream='…'"
            )
        return df, stream
    from pyspark.sql import functions as F

    name_column = stream or STREAM_COLUMN
    parts = []
    for name in df if query.parsed.any_stream else query.streams:  # some languages read whatever there is
        if name not in df:
            raise DataError(hinted(f"there are no events for stream '{name}'", name, df, kind="stream"))
        check_dataframe(df[name], f"df['{name}']")
        parts.append(df[name].withColumn(name_column, F.lit(name)))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts), name_column


def check_dataframe(df: Any, what: str) -> None:
    """Raise an :class:`OptionError` unless this is a DataFrame of Spark whose columns have different names."""
    # Both hold of classic and Spark Connect DataFrames; a column has every attribute, as a field of its own.
    if not hasattr(df, "mapInArrow") or not isinstance(df.isStreaming, bool):
        kind = df.__class__.__name__
        raise OptionError(f"{what} is a {kind}, not a Spark DataFrame: use stretto.match for other tables")
    for name, times in Counter(df.columns).items():
        if times > 1:
            raise OptionError(f"{what} has {times} columns named '{name}': rename or drop all but one")


def arrow_fields(df: DataFrame) -> dict[str, pa.DataType | None]:
    """The Arrow type of each column; ``None`` for types that Arrow cannot carry."""
    return {field.name: _arrow_type(field.dataType) for field in df.schema.fields}


def _arrow_type(kind: Any) -> pa.DataType | None:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        try:
            found: pa.DataType = to_arrow_type(kind, timezone="UTC")
        except TypeError:  # before PySpark 4.2
            found = to_arrow_type(kind)
    except (PySparkException, NotImplementedError):
        return None
    return found


def with_fields(df: DataFrame, paths: Iterable[str]) -> DataFrame:
    """A DataFrame with columns for those paths that lead to fields inside of its columns."""
    if not any("." in path for path in paths):
        return df
    known = {name: kind for name, kind in arrow_fields(df).items() if kind is not None}
    found = {path: kind for path in paths if (kind := field_type(known, path)) is not None}
    if hasattr(df, "with_kinds"):  # the columns of SQL's table, without the DataFrame
        return df.with_kinds(found)
    for path in found:
        root, *names = path.split(".")
        df = df.withColumn(path, reduce(lambda own, name: own.getField(name), names, column(root)))
    return df


def with_role_fields(df: Any, roles: Iterable[str | None]) -> Any:
    """A DataFrame, or those of several streams, with columns for fields of structs that play a role."""
    paths = [name for name in roles if name is not None and "." in name]
    if not paths:
        return df
    if isinstance(df, Mapping):
        return {name: with_role_fields(one, paths) for name, one in df.items()}
    if not hasattr(df, "with_kinds"):
        check_dataframe(df, "df")
    return with_fields(df, paths)


def key_column(key: JoinedKey, told_by: str, columns: Mapping[str, pa.DataType]) -> Column:
    """A key that streams, or types, call differently, by the column that tells these apart; ``columns`` are their types."""
    from pyspark.sql import functions as F

    kind = unified(columns[attribute] for _, attribute in key.parts)
    cast = spark_schema(pa.schema([("", kind)])).fields[0].dataType
    arms = [(column(told_by) == F.lit(name), column(attribute).cast(cast)) for name, attribute in key.parts]
    return reduce(lambda found, arm: F.when(*arm).otherwise(found), arms, F.lit(None).cast(cast))


def without_duplicates(df: DataFrame, event_id: str) -> DataFrame:
    """The rows with one of each id; rows without an id (NULL) all stay."""
    require(df.columns, event_id, "event_id")
    named = column(event_id).isNotNull()
    return df.filter(named).dropDuplicates([event_id]).union(df.filter(~named))


def check_sign(fields: Mapping[str, pa.DataType | None], sign: str | None) -> None:
    """Raise a :class:`DataError` unless the column of signs is there, and holds integers."""
    if sign is None:
        return
    require(fields, sign, "sign")
    if (kind := fields[sign]) is None or not pa.types.is_integer(kind):
        raise DataError(
            f"column '{sign}' (sign) is {kind}, and it says 1 of an event that comes, -1 of one that is taken back"
        )


def settled_events(df: DataFrame, columns: Iterable[str], order: Iterable[str], options: Continuous) -> DataFrame:
    """The events of a batch without duplicates, and without what is taken back."""
    if options.event_id is not None:
        df = without_duplicates(df, options.event_id)
    return df if options.sign is None else _without_signs(df, options.sign, dict.fromkeys([*columns, *order]))


def or_raise(condition: Column, error: Column) -> Column:
    """A filter's condition; a row that it does not hold for ends what runs, with a text.

    Spark asks of rows first what it infers from filters behind this one, such as that a type is not NULL, and would pass over wrong
    rows that have none. It does not do so where a filter is not the same for every partition.
    """
    from pyspark.sql import functions as F

    return F.when(condition, F.spark_partition_id() >= 0).otherwise(F.raise_error(error).cast("boolean"))


def _without_signs(df: DataFrame, sign: str, names: Iterable[str]) -> DataFrame:
    """The events of a batch that stay, in these columns. A retraction says what it takes back in all of them; one of what never was
    is an error when Spark runs.
    """
    from pyspark.sql import functions as F

    total = "__stretto_total"
    one = column(sign).cast("bigint")
    wrong = F.raise_error(F.lit(f"column '{sign}' (sign) says 1 or -1, and nothing else"))
    summed = df.groupBy(*map(column, names)).agg(F.sum(F.when(one.isin(1, -1), one).otherwise(wrong)).alias(total))
    unknown = F.concat(F.lit("a retraction of an event that is not there: "), F.to_json(F.struct(*map(column, names))))
    return repeated(summed, total, unknown)


def repeated(df: DataFrame, total: str, unknown: Column) -> DataFrame:
    """Each row as often as its column ``total`` says, without this column; less than 0 is an error, ``unknown``, when Spark runs."""
    from pyspark.sql import functions as F

    times = F.when(column(total) < 0, F.raise_error(unknown)).otherwise(column(total)).cast("int")
    return df.withColumn(total, F.explode(F.array_repeat(F.lit(1), times))).drop(total)


def ordered_by_key(
    df: DataFrame, columns: Iterable[str], keys: Sequence[str], order: Sequence[str], partitions: int | None
) -> DataFrame:
    """Each key in one partition, or all rows in one, in order; the columns that travel, by number. Rows without a key go."""
    for name in keys:
        df = df.filter(column(name).isNotNull())
    if not keys:
        df = df.repartition(1)
    else:
        by = [column(name) for name in keys]
        df = df.repartition(*by) if partitions is None else df.repartition(partitions, *by)
    shown = [column(name).alias(f"_{i}") for i, name in enumerate(columns)]
    return df.sortWithinPartitions(*map(column, order)).select(*shown)


def spark_schema(schema: pa.Schema) -> Any:
    """An Arrow schema as a Spark ``StructType``."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def column(name: str) -> Column:
    """A top-level column by its literal name, dots and all."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")
