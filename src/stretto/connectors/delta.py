"""Delta tables as events, and matches into Delta tables, through the Python package ``deltalake``.

The package reads and writes a table's log. The files themselves are read by Spark or its Python workers and written by the
workers, so no row passes through the driver. Spark's own ``delta`` format is not needed.
"""

from __future__ import annotations

import json
import time as clock
import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from stretto.connectors.changes import delta as signed
from stretto.connectors.delta_table import Batches, filesystem, open_table, require_deltalake, uri_of
from stretto.connectors.records import ARRIVED, FAULT, PLACE, RAW, SOURCE, Events, arrow_as_struct, split
from stretto.connectors.sinks import Writer, query_id
from stretto.errors import DataError, OptionError, hinted
from stretto.spark.compat import needs
from stretto.spark.frames import arrow_fields, column, or_raise

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

_META = "file"
_END, _KNOWN = "__stretto_end", "__stretto_known"

#: What a table may ask of its writers beyond the first versions of the format.
_WRITABLE = frozenset({"timestampNtz", "appendOnly", "invariants"})

#: What a worker tells of each file that it wrote.
_WRITTEN = "path string, size bigint, rows bigint"


def read(  # noqa: PLR0913 - the options of the source
    spark: SparkSession,
    path: str | Path,
    *,
    time: str,
    type: str | None = "type",
    sequence: str | None = None,
    columns: Mapping[str, str] | None = None,
    required: Iterable[str] = (),
    streaming: bool = False,
    changes: bool = False,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    bad_records: str = "side",
    name: str | None = None,
) -> Events:
    """A Delta table's rows as events.

    As a stream, the rows of the table as it is at the start come in one batch, and then those that each new version
    adds. A version that removes or changes rows stops the query with an error, unless ``changes`` are wanted; one that only moves
    them to other files (``OPTIMIZE``) does not.

    Parameters
    ----------
    spark
        The session.
    path
        The table: a directory, or a URL that ``deltalake`` knows and Spark can read.
    time, type, sequence
        The columns that play these roles; always required where they are named.
    columns
        Attributes to add or to replace: name to Spark SQL expression. Metadata are fields of ``file``:
        ``file_path``, ``file_modification_time``.
    required
        Further attributes that no event may lack.
    streaming
        A streaming DataFrame; ``False``: the table as it is.
    changes
        With ``streaming=True``: rows that are removed or changed are read as well, and events have a ``sign``
        (:func:`stretto.connectors.changes.delta`). Where the table keeps no change data, all rows of the files that a version writes
        anew are taken back and given again.
    version
        With ``streaming=False``: the version to read; ``None``: the newest.
    storage_options
        Options of ``deltalake`` for object stores.
    bad_records
        ``"side"``: rows that are no event are in ``Events.bad``. ``"error"``: reading fails at the first one.
    name
        Names the source in ``Events.metrics``; ``None``: the path.

    Raises
    ------
    OptionError
        ``deltalake`` is not installed, or the table uses a feature that is not read here.
    DataError
        There is no table, or a column that plays a role is not there.
    """
    if streaming and version is not None:
        raise OptionError("version= is for streaming=False: a stream begins with the newest version")
    if changes and not streaming:
        raise OptionError(
            "changes= is for streaming=True: give what DeltaTable.load_cdf reads to connectors.changes.delta"
        )
    uri, storage = uri_of(path), dict(storage_options or {})
    table = open_table(uri, storage, version)
    shared: dict[str, Any] = {
        "time": time,
        "type": type,
        "sequence": sequence,
        "columns": columns,
        "required": required,
    }
    shared |= {"bad_records": bad_records, "name": name or str(path)}
    if changes:
        return signed(_stream(spark, uri, storage, changes="true"), **shared)
    kinds = pa.schema(table.schema().to_arrow())
    if _META in kinds.names:
        raise OptionError(f"the name '{_META}' is taken by the file's metadata: rename the column")
    rows = _stream(spark, uri, storage) if streaming else _files(spark, table, kinds)
    return split(_records(rows, kinds.names), attributes=kinds.names, counted=streaming, **shared)


def _files(spark: SparkSession, table: DeltaTable, kinds: pa.Schema) -> DataFrame:
    """A version's files through Spark's own Parquet reader, which filters as it reads."""
    from pyspark.sql import functions as F

    struct = arrow_as_struct(kinds)
    files = table.file_uris()
    if not files:
        file = "struct<file_path:string,file_modification_time:timestamp>"
        return spark.createDataFrame([], struct).withColumn(_META, F.lit(None).cast(file))
    partitioned = table.metadata().partition_columns
    shown = F.struct("_metadata.file_path", "_metadata.file_modification_time").alias(_META)
    stored = [field for field in struct.fields if field.name not in partitioned]
    source = spark.read.schema(type(struct)(stored)).parquet(*files)
    if not partitioned:
        return source.select(*map(column, kinds.names), shown)
    rows = source.select(*[column(field.name) for field in stored], shown)
    return _with_partitions(spark, rows, table).select(*map(column, [*kinds.names, _META]))


def _with_partitions(spark: SparkSession, rows: DataFrame, table: DeltaTable) -> DataFrame:
    """The columns that are not in the files, from the log: the files' paths have them in an encoding of the writer's."""
    from pyspark.sql import functions as F

    actions = pa.table(table.get_add_actions())
    values = actions.column("partition").combine_chunks()
    ends = pa.array([path.rsplit("/", 1)[-1] for path in actions.column("path").to_pylist()])
    if len(ends.unique()) < len(ends):
        raise OptionError(f"'{table.table_uri}': files of two partitions have one name, which is not read here")
    names = table.metadata().partition_columns
    by_file = pa.table([ends, *[values.field(name) for name in names]], names=[_END, *names])
    end = F.element_at(F.split(column(_META)["file_path"], "/"), -1)
    joined = rows.withColumn(_END, end).join(
        F.broadcast(spark.createDataFrame(by_file).withColumn(_KNOWN, F.lit(True))), _END, "left"
    )
    lost = F.concat(F.lit("a file of the Delta table is not in its log: "), column(_END))
    return joined.filter(or_raise(column(_KNOWN).isNotNull(), lost))


def _stream(spark: SparkSession, uri: str, storage: dict[str, str], **more: str) -> DataFrame:
    needs("a Delta table as a stream", 4, 0)
    from stretto.connectors.delta_stream import DeltaStream

    spark.dataSource.register(DeltaStream)
    options = {"path": uri, "storage": json.dumps(storage), **more}
    return spark.readStream.format(DeltaStream.name()).options(**options).load()


def _records(rows: DataFrame, names: list[str]) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.select(
        *map(column, names),
        F.col(_META),
        F.lit(None).cast("string").alias(FAULT),
        F.to_json(F.struct(*map(column, names))).alias(RAW),
        F.col(f"{_META}.file_path").alias(SOURCE),
        F.lit(None).cast("string").alias(PLACE),
        F.col(f"{_META}.file_modification_time").alias(ARRIVED),
    )


def writer(
    path: str | Path,
    app_id: str,
    *,
    files: int | None = 1,
    storage_options: Mapping[str, str] | None = None,
) -> Writer:
    """Matches into a Delta table, **exactly once**.

    A batch is one commit that holds the rows and, as Delta's application transaction, the batch's number; a batch
    whose number is in the table already is not written again. Files that a failed batch left are no part of the
    table; ``DeltaTable.vacuum`` removes them. The table is made when there is none; batches without rows leave no
    commit.

    Parameters
    ----------
    path
        The table: a directory that the workers share, or a URL that ``deltalake`` knows.
    app_id
        Names the query in the table, for good. A query with another checkpoint counts its batches from 0 again and
        needs another id; it is refused when a batch would be taken for written. (Not through Spark Connect, where a
        batch does not tell its query.)
    files
        Into how many files a batch goes; ``None``: one for each of its partitions.
    storage_options
        Options of ``deltalake`` for object stores.

    Returns
    -------
    Writer
        A function for ``foreachBatch``. It raises :class:`stretto.DataError` when the rows' columns are not the
        table's.

    Raises
    ------
    OptionError
        ``deltalake`` is not installed, or an argument is wrong.
    """
    require_deltalake()
    if not app_id:
        raise OptionError("app_id: give the query a name; the table remembers its batches by it")
    if files is not None and files < 1:
        raise OptionError(f"files={files}: give a positive number, or None")
    uri, storage = uri_of(path), dict(storage_options or {})

    def write(df: DataFrame, batch_id: int) -> None:
        from deltalake import CommitProperties

        query = Batches(app_id, query_id(df))
        schema = _arrow_schema(df)
        table = _writable(uri, schema, storage)
        if query.has(table, uri, batch_id, other="app_id"):
            return
        rows = df if files is None else df.repartition(files)
        task = partial(_write_file, uri=uri, schema=schema.serialize().to_pybytes(), storage=storage, batch_id=batch_id)
        written = rows.mapInArrow(task, _WRITTEN).collect()
        if not written:
            return
        table.create_write_transaction(
            [_added(file) for file in written],
            mode="append",
            schema=table.schema(),
            commit_properties=CommitProperties(app_transactions=query.transactions(batch_id)),
        )

    return write


def _writable(uri: str, schema: pa.Schema, storage: dict[str, str]) -> DeltaTable:
    """The table, made when there is none, if rows of ``schema`` fit it."""
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(uri, storage):
        # Another writer may be making it at the same time.
        DeltaTable.create(uri, schema, mode="ignore", storage_options=storage)
    table = open_table(uri, storage)
    protocol = table.protocol()
    version, unwritten = protocol.min_writer_version, sorted(set(protocol.writer_features or ()) - _WRITABLE)
    if unwritten or 2 < version < 7:
        what = ", ".join(unwritten) or f"version {version} of the format for writers"
        raise OptionError(f"'{uri}': the Delta table uses {what}, which is not written here")
    if partitioned := table.metadata().partition_columns:
        raise OptionError(
            f"'{uri}' is partitioned by {', '.join(partitioned)}: partitioned tables are not written here"
        )
    there = _without_names(pa.schema(table.schema().to_arrow()))
    for name in schema.names:
        if name not in there.names:
            raise DataError(hinted(f"'{uri}': the table has no column '{name}'", name, there.names, kind="column"))
        if there.field(name).type != schema.field(name).type:
            have, want = schema.field(name).type, there.field(name).type
            raise DataError(f"'{uri}': column '{name}' is {have}, and in the table it is {want}")
    if missing := [name for name in there.names if name not in schema.names]:
        raise DataError(f"'{uri}': the table has a column '{missing[0]}', and the matches have not")
    return table


def _arrow_schema(df: DataFrame) -> pa.Schema:
    kinds = arrow_fields(df)
    for name, kind in kinds.items():
        if kind is None:
            raise OptionError(f"column '{name}' has a type that Arrow cannot carry: drop it, or cast it")
    return _without_names(pa.schema(list(kinds.items())))


def _without_names(schema: pa.Schema) -> pa.Schema:
    """A schema in which types that hold the same values are equal."""
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([pa.field(kind.field(i).name, _plain(kind.field(i).type)) for i in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    return kind


def _write_file(
    batches: Iterator[pa.RecordBatch], *, uri: str, schema: bytes, storage: dict[str, str], batch_id: int
) -> Iterator[pa.RecordBatch]:
    """In a worker: one task's rows as one file beside the table's own, which is no part of it before the commit."""
    kinds = pa.ipc.read_schema(pa.py_buffer(schema))
    path = f"batch-{batch_id}-{uuid.uuid4()}.parquet"
    sink: pq.ParquetWriter | None = None
    stream, rows = None, 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if sink is None:
            stream = filesystem(uri, storage).open_output_stream(path)
            sink = pq.ParquetWriter(stream, kinds, compression="zstd")
        table = pa.Table.from_batches([batch])
        sink.write_table(table if table.schema == kinds else table.cast(kinds))
        rows += batch.num_rows
    if sink is None or stream is None:
        return
    sink.close()
    size = stream.tell()
    stream.close()
    yield pa.RecordBatch.from_pydict({"path": [path], "size": [size], "rows": [rows]})


def _added(file: Any) -> Any:
    from deltalake.transaction import AddAction

    statistics = json.dumps({"numRecords": file.rows})
    return AddAction(file.path, file.size, {}, int(clock.time() * 1000), True, statistics)
