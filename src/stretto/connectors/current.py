"""Tables that are kept equal to the matches that hold: a Delta table, or a folder of Parquet files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stretto.connectors.delta_table import Batches, open_table, require_deltalake, uri_of
from stretto.connectors.sinks import Writer, query_id
from stretto.errors import DataError, OptionError
from stretto.spark.compat import to_arrow
from stretto.spark.revised import CHANGE, ID, changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How often a match holds: matches that show the same are one row.
COUNT = "count"

FORMATS = ("delta", "parquet")

#: Into how many files the matches of a folder are hashed.
FILES = 16

#: Where a Parquet file says up to which batch of which query it goes.
_KNOWN = b"stretto"


def writer(
    path: str | Path, app_id: str, *, format: str = "delta", storage_options: Mapping[str, str] | None = None
) -> Writer:
    """Keep a table equal to the matches that hold, **exactly once**: the sink of a stream with a column ``sign``.

    The table has the columns of the matches but for the sign, ``match_id`` (:func:`stretto.spark.with_match_id`) and ``count``: how
    often a match holds, which is 1 unless others show the same. What a micro-batch changes is put together by Spark and written by
    the driver.

    ``"delta"``: each micro-batch is one commit, a merge by ``match_id`` with the batch's number as application transaction.
    ``"parquet"``: a folder of 16 files on a file system that all see, each replaced as a whole where a match of its own changes, with
    the batch's number in it; for a moment a reader may see a batch in one file and not yet in another. A batch that is given again
    changes nothing, wherever the writer was stopped.

    Parameters
    ----------
    path
        The table.
    app_id
        Names the query in the table, for good; as for :func:`stretto.connectors.delta.writer`.
    format
        ``"delta"`` or ``"parquet"``.
    storage_options
        Delta: options of ``deltalake`` for object stores.

    Returns
    -------
    Writer
        A function for ``foreachBatch``. It raises :class:`stretto.DataError` when a match is taken back that does not hold.

    Raises
    ------
    OptionError
        The format is not known, or ``deltalake`` is not installed.
    """
    if format not in FORMATS:
        raise OptionError(f"format={format!r}: expected 'delta' or 'parquet'")
    if not app_id:
        raise OptionError("app_id: give the query a name; the table remembers its batches by it")
    if format == "delta":
        require_deltalake()
        uri, storage = uri_of(path), dict(storage_options or {})
        return lambda df, batch_id: _merge(df, batch_id, uri, storage, app_id)
    return lambda df, batch_id: _replace(df, batch_id, Path(path), app_id)


def _changes(df: DataFrame) -> pa.Table:
    """What a micro-batch changes, with the count in place of the change."""
    found = to_arrow(changes(df))
    return found.rename_columns([COUNT if name == CHANGE else name for name in found.column_names])


# -- Delta ------------------------------------------------------------------------------------------------------------


def _merge(df: DataFrame, batch_id: int, uri: str, storage: dict[str, str], app_id: str) -> None:
    from deltalake import CommitProperties, DeltaTable

    query = Batches(app_id, query_id(df))
    table = open_table(uri, storage) if DeltaTable.is_deltatable(uri, storage) else None
    if table is not None and query.has(table, uri, batch_id, other="table"):
        return
    found = _changes(df)
    if not found.num_rows:
        return
    if table is None:
        DeltaTable.create(uri, found.schema, mode="ignore", storage_options=storage)
        table = open_table(uri, storage)
    _check_held(found, lambda: table.to_pyarrow_table(columns=[ID, COUNT]))
    shown = {name: f"s.`{name}`" for name in found.column_names}
    total = f"t.`{COUNT}` + s.`{COUNT}`"
    (
        table.merge(
            found,
            f"t.{ID} = s.{ID}",
            source_alias="s",
            target_alias="t",
            commit_properties=CommitProperties(app_transactions=query.transactions(batch_id)),
        )
        .when_matched_delete(f"{total} = 0")
        .when_matched_update({f"`{COUNT}`": total})
        .when_not_matched_insert({f"`{name}`": text for name, text in shown.items()})
        .execute()
    )


# -- Parquet ----------------------------------------------------------------------------------------------------------


def _replace(df: DataFrame, batch_id: int, folder: Path, app_id: str) -> None:
    query = query_id(df)
    found = _changes(df)
    folder.mkdir(parents=True, exist_ok=True)
    # The first digits of a SHA-256 are as good as any hash of it.
    digits = pc.utf8_slice_codeunits(found.column(ID), 0, 2).to_pylist()
    parts = pa.array([int(digit, 16) % FILES for digit in digits], pa.int64())
    for part in pc.unique(parts).to_pylist():
        path = folder / f"part-{part:02}.parquet"
        before, known = _read(path)
        if known.get("app_id", app_id) != app_id or (query and known.get("query") not in (query, None)):
            raise OptionError(
                f"'{folder}' has batches of another query with app_id={known['app_id']!r}: take another folder, or start from "
                "that query's checkpoint"
            )
        if known.get("batch", -1) >= batch_id:
            continue
        now = _together(before, found.filter(pc.equal(parts, part)))
        told = {_KNOWN: json.dumps({"app_id": app_id, "query": query, "batch": batch_id}).encode()}
        draft = folder / f".part-{part:02}.draft"
        pq.write_table(now.replace_schema_metadata(told), draft)
        os.replace(draft, path)


def _read(path: Path) -> tuple[pa.Table | None, dict[str, Any]]:
    """The matches of a file, and up to which batch of which query they go."""
    if not path.exists():
        return None, {}
    table = pq.ParquetFile(path).read()
    known = (table.schema.metadata or {}).get(_KNOWN)
    if known is None:
        raise OptionError(f"'{path}' is no file of current matches: give the table a folder of its own")
    return table, json.loads(known)


def _together(before: pa.Table | None, change: pa.Table) -> pa.Table:
    """The matches that hold after a change."""
    if before is None:
        before = change.slice(0, 0)
    if before.schema.names != change.schema.names or before.schema.types != change.schema.types:
        raise DataError(f"the matches have the columns {change.schema.names}, and the table {before.schema.names}")
    _check_held(change, lambda: before)
    rows = pa.concat_tables([before.replace_schema_metadata(None), change.replace_schema_metadata(None)])
    places = pa.table({ID: rows.column(ID), COUNT: rows.column(COUNT), "row": pa.array(range(rows.num_rows))})
    summed = places.group_by(ID, use_threads=False).aggregate([(COUNT, "sum"), ("row", "min")])
    summed = summed.filter(pc.not_equal(summed.column(f"{COUNT}_sum"), 0))
    kept = rows.take(summed.column("row_min"))
    return kept.set_column(kept.column_names.index(COUNT), COUNT, summed.column(f"{COUNT}_sum"))


def _check_held(change: pa.Table, held: Callable[[], pa.Table]) -> None:
    """Raise a :class:`DataError` where a match is taken back more often than it holds; ``held`` gives the matches before."""
    back = change.filter(pc.less(change.column(COUNT), 0))
    if not back.num_rows:
        return
    before = held()
    ids = back.column(ID).combine_chunks().cast(before.schema.field(ID).type)
    before = before.filter(pc.is_in(before.column(ID), value_set=ids))
    known = dict(zip(before.column(ID).to_pylist(), before.column(COUNT).to_pylist(), strict=True))
    for name, count in zip(back.column(ID).to_pylist(), back.column(COUNT).to_pylist(), strict=True):
        if known.get(name, 0) + count < 0:
            raise DataError(
                f"match '{name}' is taken back, and the table does not hold it: it is another query's table"
            )
