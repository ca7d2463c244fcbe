"""Parquet, JSON and CSV files as events, and matches as files, one directory a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.connectors.records import (
    ARRIVED,
    FAULT,
    PLACE,
    RAW,
    SOURCE,
    Events,
    as_struct,
    parse,
    required_of,
    split,
    texts,
)
from stretto.connectors.sinks import Writer, kept, query_id
from stretto.errors import OptionError
from stretto.spark.compat import hadoop_file
from stretto.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "json", "csv")

_ENDINGS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy")

_META = "file"
_VALUE = "__stretto_value"
_CORRUPT = "__stretto_corrupt"

#: Which query's batches a directory holds. Spark does not read names that begin with an underscore.
_OWNER = "_stretto_query"


def read(  # noqa: PLR0913 - the options of the source
    spark: SparkSession,
    path: str | Path | Iterable[str | Path],
    *,
    time: str,
    type: str | None = "type",
    sequence: str | None = None,
    format: str | None = None,
    schema: Any = None,
    columns: Mapping[str, str] | None = None,
    required: Iterable[str] = (),
    streaming: bool = False,
    options: Mapping[str, Any] | None = None,
    bad_records: str = "side",
    name: str | None = None,
) -> Events:
    """Files as events.

    A JSON file has one object a line; lines that are blank are passed over. A CSV file has a header that must name the
    schema's attributes in order (``options={"header": False}``: it has none); records with line breaks inside quotes
    need ``options={"multiLine": True}``. Values that do not fit the schema make a record bad whether or not the query
    reads them.

    Parameters
    ----------
    spark
        The session.
    path
        A file, a directory, a pattern (``events/*.json``), or several; a streaming source takes one.
    time, type, sequence
        The attributes that play these roles; always required where they are named.
    format
        ``"parquet"``, ``"json"`` or ``"csv"``; ``None``: by the ending of the path.
    schema
        The attributes: DDL text, a ``StructType`` or an Arrow schema. Parquet files that are there already need none.
    columns
        Attributes to add or to replace: name to Spark SQL expression. The file's metadata are fields of ``file``:
        ``file_path``, ``file_name``, ``file_size``, ``file_modification_time``.
    required
        Further attributes that no event may lack.
    streaming
        A streaming DataFrame, which reads files as they come; ``False``: what is there now.
    options
        Options of Spark's reader: ``{"maxFilesPerTrigger": 10, "timestampFormat": "…", "sep": ";"}``.
    bad_records
        ``"side"``: records that are no event are in ``Events.bad``. ``"error"``: reading fails at the first one.
    name
        Names the source in ``Events.metrics``; ``None``: the path.

    Raises
    ------
    OptionError
        The format is not known, or there is no schema where one is needed.
    DataError
        A column that plays a role is not there.
    """
    paths = [str(path)] if isinstance(path, str | Path) else [str(each) for each in path]
    if not paths:
        raise OptionError("path: name at least one")
    if streaming and len(paths) > 1:
        raise OptionError("a streaming source reads one path: name a directory or a pattern")
    chosen = _format(format, paths[0])
    if schema is None and (streaming or chosen != "parquet"):
        reason = "its files may not be there yet" if chosen == "parquet" else "a guess would depend on the data"
        raise OptionError(f"name the schema of the {chosen} files, schema='type string, …': {reason}")
    struct = None if schema is None else as_struct(schema)
    reader: Any = spark.readStream if streaming else spark.read
    given = texts(options)
    target: Any = paths[0] if streaming else paths
    rows, attributes = _READERS[chosen](reader, target, struct, given)
    return split(
        rows,
        attributes=attributes,
        columns=columns,
        type=type,
        time=time,
        sequence=sequence,
        required=[*required, *(required_of(struct) if struct is not None else ())],
        bad_records=bad_records,
        name=name or ",".join(paths),
        # Counting would keep Spark from filtering Parquet files as it reads them.
        counted=streaming or chosen != "parquet",
    )


def _format(given: str | None, path: str) -> str:
    if given is not None:
        if given not in FORMATS:
            raise OptionError(f"format={given!r}: expected one of {', '.join(map(repr, FORMATS))}")
        return given
    endings = [ending.lower() for ending in Path(path).suffixes if ending.lower() not in _PACKED]
    if endings and endings[-1] in _ENDINGS:
        return _ENDINGS[endings[-1]]
    raise OptionError(f"name the format of '{path}', format='parquet' (or 'json', 'csv'): its ending does not tell")


def _parquet(reader: Any, path: Any, schema: Any, options: dict[str, str]) -> tuple[DataFrame, list[str]]:
    from pyspark.sql import functions as F

    if schema is not None:
        reader = reader.schema(schema)
    source: DataFrame = reader.options(**options).format("parquet").load(path)
    names = source.columns
    _not_taken(names)
    shown = F.to_json(F.struct(*map(column, names)))
    return source.select(
        *map(column, names), F.lit(None).cast("string").alias(FAULT), shown.alias(RAW), *_places()
    ), names


def _json(reader: Any, path: Any, schema: Any, options: dict[str, str]) -> tuple[DataFrame, list[str]]:
    from pyspark.sql import functions as F

    source: DataFrame = reader.options(**options).format("text").load(path)
    lines = source.select(F.col("value").alias(_VALUE), *_places()).filter(
        F.trim(column(_VALUE), F.lit(" \t\r\n")) != ""
    )
    return parse(lines, _VALUE, schema, "json", options=options), schema.names


def _csv(reader: Any, path: Any, schema: Any, options: dict[str, str]) -> tuple[DataFrame, list[str]]:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    names = schema.names
    _not_taken(names)
    own = {
        "header": "true",
        "escape": '"',
        **options,
        # The header is compared with the schema.
        "enforceSchema": "false",
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        "columnPruning": "false",
    }
    fields = [T.StructField(field.name, field.dataType, True) for field in schema.fields]
    frame = T.StructType([*fields, T.StructField(_CORRUPT, T.StringType())])
    source: DataFrame = reader.schema(frame).options(**own).format("csv").load(path)
    kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
    # Spark looks at the values of those columns only that a query reads, and by these a record would be good or bad: so
    # read all. (The optimizer does not see that the second condition is never true.)
    reads_all = F.hash(*map(column, names)).bitwiseAND(F.lit(0)) != 0
    fault = F.when(column(_CORRUPT).isNotNull() | reads_all, F.lit(f"not one CSV record of {kinds}"))
    # Records that lack an attribute are no corrupt ones, and then Spark does not keep their text.
    raw = F.coalesce(column(_CORRUPT), F.to_csv(F.struct(*map(column, names))))
    return source.select(*map(column, names), fault.alias(FAULT), raw.alias(RAW), *_places()), names


_READERS = {"parquet": _parquet, "json": _json, "csv": _csv}


def _places() -> list[Any]:
    """Where a record is from."""
    from pyspark.sql import functions as F

    return [
        F.col("_metadata").alias(_META),
        F.col("_metadata.file_path").alias(SOURCE),
        F.concat(F.lit("block at "), F.col("_metadata.file_block_start")).alias(PLACE),
        F.col("_metadata.file_modification_time").alias(ARRIVED),
    ]


def _not_taken(names: Iterable[str]) -> None:
    if _META in names:
        raise OptionError(f"the name '{_META}' is taken by the file's metadata: rename the attribute")


def writer(
    path: str | Path,
    format: str = "parquet",
    *,
    files: int | None = 1,
    options: Mapping[str, Any] | None = None,
) -> Writer:
    """Matches as files, **exactly once**: the rows of batch ``N`` are in ``path/batch=N``.

    A batch that is given again replaces its directory. Spark writes aside and moves the files in at the end; a reader
    that must never see half a batch looks for ``_SUCCESS``. Batches without rows leave no directory.

    Parameters
    ----------
    path
        The directory of all batches. It belongs to one query (one checkpoint): another one is refused, for it would
        replace this one's batches. (Not through Spark Connect, where a batch does not tell its query.)
    format
        ``"parquet"``, ``"json"`` or ``"csv"``; in CSV, lists of events are JSON text.
    files
        Into how many files a batch goes; ``None``: one for each of its partitions.
    options
        Options of Spark's writer.

    Returns
    -------
    Writer
        A function for ``foreachBatch``.
    """
    if format not in FORMATS:
        raise OptionError(f"format={format!r}: expected one of {', '.join(map(repr, FORMATS))}")
    if files is not None and files < 1:
        raise OptionError(f"files={files}: give a positive number, or None")
    given = texts(options)
    if format == "csv":
        given = {"header": "true", "escape": '"', **given}
    root = str(path).rstrip("/")

    def write(df: DataFrame, batch_id: int) -> None:
        _claim(df, root)
        with kept(df) as rows:
            if rows.isEmpty():
                return
            flat = _flat(rows) if format == "csv" else rows
            placed = flat if files is None else flat.repartition(files)
            placed.write.format(format).options(**given).mode("overwrite").save(f"{root}/batch={batch_id}")

    return write


def _flat(df: DataFrame) -> DataFrame:
    """Nested columns as JSON text, for CSV has none."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    nested = (T.StructType, T.ArrayType, T.MapType)
    return df.select(
        *[
            F.to_json(column(field.name)).alias(field.name)
            if isinstance(field.dataType, nested)
            else column(field.name)
            for field in df.schema.fields
        ]
    )


def _claim(df: DataFrame, root: str) -> None:
    """Note in the directory which query it belongs to, or see that it is this one."""
    query = query_id(df)
    if query is None:
        return
    note, system = hadoop_file(df.sparkSession, root, _OWNER)
    if not system.exists(note):
        stream = system.create(note, False)
        try:
            stream.write(bytearray(query.encode("ascii")))
        finally:
            stream.close()
        return
    stream = system.open(note)
    try:
        owner = bytes(stream.readNBytes(len(query) + 1)).decode("ascii", "replace")
    finally:
        stream.close()
    if owner != query:
        raise OptionError(
            f"'{root}' holds the batches of another query (id {owner or 'unknown'}, this one is {query}): its batches "
            "would be replaced. Write to another directory, or start from that query's checkpoint"
        )
