"""A Delta table as a stream: Spark's Python data source over the table's log.

An offset is a version of the table. The first batch holds the rows of the version at its end; each further one what the
versions between its offsets add, by their commits. As a feed of changes it holds what they take away, too: what a commit says of the
rows that it changes, and where it says nothing, all rows of the files that it removes, and of those that it adds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from stretto.connectors.delta_table import filesystem, open_table
from stretto.connectors.records import arrow_as_struct
from stretto.errors import DataError

#: The columns of a feed of changes, as Delta names them.
_CHANGES = [
    pa.field("_change_type", pa.string()),
    pa.field("_commit_version", pa.int64()),
    pa.field("_commit_timestamp", pa.timestamp("us", "UTC")),
]

_FILE = pa.struct([pa.field("file_path", pa.string()), pa.field("file_modification_time", pa.timestamp("us", "UTC"))])


@dataclass
class _File(InputPartition):  # type: ignore[misc]
    """A file of the table, and what its log says of it."""

    path: str
    modified: int
    partition: dict[str, Any]
    #: The version that the file is of, and what it did to the rows; ``None``: a column of the file tells.
    version: int = -1
    kind: str | None = "insert"


class DeltaStream(DataSource):  # type: ignore[misc]
    """Options: ``path``, the table; ``storage``, the options of ``deltalake`` as JSON; ``changes``, for a feed of changes."""

    @classmethod
    def name(cls) -> str:
        return "stretto_delta"

    def schema(self) -> StructType:
        table = open_table(self.options["path"], json.loads(self.options["storage"]))
        found = pa.schema(table.schema().to_arrow())
        more = _CHANGES if "changes" in self.options else [pa.field("file", _FILE)]
        return arrow_as_struct(pa.schema([*found, *more]))

    def streamReader(self, schema: StructType) -> _Reader:
        return _Reader(self.options["path"], json.loads(self.options["storage"]), "changes" in self.options)


class _Reader(DataSourceStreamReader):  # type: ignore[misc]
    def __init__(self, uri: str, storage: dict[str, str], changes: bool):
        self.uri = uri
        self.storage = storage
        self.changes = changes

    def initialOffset(self) -> dict[str, int]:
        return {"version": -1}

    def latestOffset(self, *_: Any) -> dict[str, int]:  # PySpark 4.1 gives no arguments
        return {"version": open_table(self.uri, self.storage).version()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start["version"] < 0:
            return self._all_files(end["version"])
        system = filesystem(self.uri, self.storage)
        return [
            file for version in range(start["version"] + 1, end["version"] + 1) for file in self._added(system, version)
        ]

    def _all_files(self, version: int) -> list[_File]:
        """The files of one version."""
        actions = pa.table(open_table(self.uri, self.storage, version).get_add_actions())
        names = actions.column_names
        return [
            _File(
                unquote(row["path"]),
                row["modification_time"],
                row["partition"] if "partition" in names else {},
                version,
            )
            for row in actions.to_pylist()
        ]

    def _added(self, system: Any, version: int) -> list[_File]:
        """The files with the rows that one version adds."""
        name = f"_delta_log/{version:020}.json"
        try:
            with system.open_input_stream(name) as stream:
                actions = [json.loads(line) for line in stream.read().splitlines() if line.strip()]
        except FileNotFoundError as error:
            raise DataError(
                f"'{self.uri}': the log of version {version} is gone (cleaned up before the query had read it): "
                "rows may be missing; start again with a new checkpoint"
            ) from error
        for action in actions:
            if "metaData" in action:
                raise DataError(f"'{self.uri}': version {version} changes the table's schema or settings: start again")
            if action.get("remove", {}).get("dataChange", False) and not self.changes:
                raise DataError(
                    f"'{self.uri}': version {version} removes or changes rows, and events cannot be taken back"
                )
        if self.changes:
            return list(_changed(actions, version))
        added = [action["add"] for action in actions if action.get("add", {}).get("dataChange", False)]
        return [_File(unquote(add["path"]), add["modificationTime"], add["partitionValues"]) for add in added]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        kinds = pa.schema(open_table(self.uri, self.storage).schema().to_arrow())
        with filesystem(self.uri, self.storage).open_input_file(partition.path) as source:
            for batch in pq.ParquetFile(source).iter_batches():
                yield (_with_change if self.changes else _with_file)(batch, kinds, partition)


def _changed(actions: Sequence[dict[str, Any]], version: int) -> Iterator[_File]:
    """The files with the rows that a commit changes."""
    names = {"cdc": None} if any("cdc" in action for action in actions) else {"remove": "delete", "add": "insert"}
    told = [(action[name], kind) for name, kind in names.items() for action in actions if name in action]
    moment = next((action["commitInfo"].get("timestamp", 0) for action in actions if "commitInfo" in action), 0)
    for file, kind in told:
        if kind is None or file.get("dataChange", False):
            yield _File(unquote(file["path"]), moment, file.get("partitionValues") or {}, version, kind)


def _with_change(batch: pa.RecordBatch, kinds: pa.Schema, file: _File) -> pa.RecordBatch:
    """A file's rows with the table's columns and those of a change."""
    rows = batch.num_rows
    kind = batch.column(_CHANGES[0].name).cast(pa.string()) if file.kind is None else pa.repeat(file.kind, rows)
    version = pa.repeat(pa.scalar(file.version, pa.int64()), rows)
    moment = pa.repeat(pa.scalar(file.modified * 1000, pa.timestamp("us", "UTC")), rows)
    return pa.RecordBatch.from_arrays(
        [*_of_table(batch, kinds, file), kind, version, moment], schema=pa.schema([*kinds, *_CHANGES])
    )


def _with_file(batch: pa.RecordBatch, kinds: pa.Schema, file: _File) -> pa.RecordBatch:
    """A file's rows with the table's columns, and the file."""
    rows = batch.num_rows
    columns = _of_table(batch, kinds, file)
    path = pa.repeat(pa.scalar(file.path), rows)
    modified = pa.repeat(pa.scalar(file.modified * 1000, pa.timestamp("us", "UTC")), rows)
    columns.append(pa.StructArray.from_arrays([path, modified], fields=list(_FILE)))
    return pa.RecordBatch.from_arrays(columns, schema=kinds.append(pa.field("file", _FILE)))


def _of_table(batch: pa.RecordBatch, kinds: pa.Schema, file: _File) -> list[pa.Array]:
    """The table's columns of a file: those that it lacks are its partition's, or NULL."""
    columns = []
    for field in kinds:
        if field.name in batch.schema.names:
            columns.append(batch.column(field.name).cast(field.type))
        else:
            columns.append(pa.repeat(_value(file.partition.get(field.name), field.type), batch.num_rows))
    return columns


def _value(value: Any, kind: pa.DataType) -> pa.Scalar:
    """The value of a partition, which a log has as text, empty for NULL."""
    if not isinstance(value, str):
        return pa.scalar(value, kind)
    if pa.types.is_timestamp(kind):  # in UTC, whether it says so or not
        return pa.scalar(value.removesuffix("Z") or None, pa.string()).cast(pa.timestamp("us")).cast(kind)
    return pa.scalar(value or None, pa.string()).cast(kind)
