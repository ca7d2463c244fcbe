"""A Delta table as a stream: Spark's Python data source over the table's log.

An offset is a version of the table. The first batch holds the rows of the version at its end; each further one what the
versions between its offsets add, by their commits.
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

_FILE = pa.struct([pa.field("file_path", pa.string()), pa.field("file_modification_time", pa.timestamp("us", "UTC"))])


@dataclass
class _File(InputPartition):  # type: ignore[misc]
    """A file of the table, and what its log says of it."""

    path: str
    modified: int
    partition: dict[str, Any]


class DeltaStream(DataSource):  # type: ignore[misc]
    """Options: ``path``, the table; ``storage``, the options of ``deltalake`` as JSON."""

    @classmethod
    def name(cls) -> str:
        return "stretto_delta"

    def schema(self) -> StructType:
        table = open_table(self.options["path"], json.loads(self.options["storage"]))
        found = pa.schema(table.schema().to_arrow())
        return arrow_as_struct(found.append(pa.field("file", _FILE)))

    def streamReader(self, schema: StructType) -> _Reader:
        return _Reader(self.options["path"], json.loads(self.options["storage"]))


class _Reader(DataSourceStreamReader):  # type: ignore[misc]
    def __init__(self, uri: str, storage: dict[str, str]):
        self.uri = uri
        self.storage = storage

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
            _File(unquote(row["path"]), row["modification_time"], row["partition"] if "partition" in names else {})
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
            if action.get("remove", {}).get("dataChange", False):
                raise DataError(
                    f"'{self.uri}': version {version} removes or changes rows, and events cannot be taken back"
                )
        added = [action["add"] for action in actions if action.get("add", {}).get("dataChange", False)]
        if not any(add["partitionValues"] for add in added):
            return [_File(unquote(add["path"]), add["modificationTime"], {}) for add in added]
        paths = {unquote(add["path"]) for add in added}
        return [file for file in self._all_files(version) if file.path in paths]  # which has typed values

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        kinds = pa.schema(open_table(self.uri, self.storage).schema().to_arrow())
        with filesystem(self.uri, self.storage).open_input_file(partition.path) as source:
            for batch in pq.ParquetFile(source).iter_batches():
                yield _with_file(batch, kinds, partition)


def _with_file(batch: pa.RecordBatch, kinds: pa.Schema, file: _File) -> pa.RecordBatch:
    """A file's rows with the table's columns: those that it lacks are its partition's, or NULL."""
    rows = batch.num_rows
    columns = []
    for field in kinds:
        if field.name in batch.schema.names:
            columns.append(batch.column(field.name).cast(field.type))
        else:
            value = file.partition.get(field.name)
            columns.append(pa.repeat(pa.scalar(value, field.type), rows))
    path = pa.repeat(pa.scalar(file.path), rows)
    modified = pa.repeat(pa.scalar(file.modified * 1000, pa.timestamp("us", "UTC")), rows)
    columns.append(pa.StructArray.from_arrays([path, modified], fields=list(_FILE)))
    return pa.RecordBatch.from_arrays(columns, schema=kinds.append(pa.field("file", _FILE)))
