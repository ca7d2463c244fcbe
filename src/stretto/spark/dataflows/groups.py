"""What runs of a dataflow in Spark's Python workers: for each bucket of keys one plan, in which the keys go along with the rows.

The plan travels as JSON text (:mod:`stretto.dataflow.plan_json`), the columns as Arrow types: nothing is pickled by value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.columns.keys import KeyTable
from stretto.dataflow import Dataflow, Stream
from stretto.dataflow.cycles import ordered
from stretto.dataflow.plan import Constant, Recognize, Source
from stretto.dataflow.plan_json import from_json
from stretto.dataflow.run.rows import EVER
from stretto.dataflow.stream import GROUPS, keyed
from stretto.errors import DataError
from stretto.frame import arrow_table
from stretto.query.functions import Paths, import_functions
from stretto.spark.batch.worker import pieces
from stretto.spark.workers import worker_task
from stretto.times import FOREVER

#: Under which key an input's name is in the metadata of its packed tables.
INPUT = b"stretto.input"

#: About how many rows of a bucket go through one dataflow.
ROWS = 1 << 15

#: What the stream that is wanted is called in the plan that travels.
OUTPUT = "result"


@dataclass(frozen=True)
class Groups:
    """A plan by groups, as plain data that travels.

    Parameters
    ----------
    plan
        The plan as JSON text, without keys.
    keys
        The columns of the key, as a serialized Arrow schema: names that the plan does not have, and types of a payload.
    time
        The column ``vs`` as a serialized Arrow schema: it has the type of the times.
    result
        The result's columns in order, with the names that the plan has for them.
    kinds
        Their names and types outside, as a serialized Arrow schema.
    vs
        What the column of starts is called outside, for errors.
    functions
        The registered functions that the plan calls, by their paths.
    """

    plan: str
    keys: bytes
    time: bytes
    result: tuple[str, ...]
    kinds: bytes
    vs: str
    functions: Paths = ()

    @property
    def stream(self) -> Stream:
        """The stream that is wanted, with the keys."""
        return _stream(self.plan, self.keys, self.functions)

    @property
    def schema(self) -> pa.Schema:
        """The columns of results."""
        return pa.ipc.read_schema(pa.py_buffer(self.kinds))

    @property
    def key_names(self) -> list[str]:
        names: list[str] = pa.ipc.read_schema(pa.py_buffer(self.keys)).names
        return names

    @property
    def time_kind(self) -> pa.DataType:
        """The type of times."""
        return pa.ipc.read_schema(pa.py_buffer(self.time)).field("vs").type

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the key, and the type of times, in words."""
        kinds = pa.ipc.read_schema(pa.py_buffer(self.keys))
        return {name: str(kind) for name, kind in zip(kinds.names, kinds.types, strict=True)} | {
            "vs": str(self.time_kind)
        }

    @property
    def recognizes(self) -> bool:
        """Whether there is a matcher in the plan."""
        return any(isinstance(node, Recognize) for node in ordered([self.stream.node]))

    @property
    def keeps(self) -> bool:
        """Whether the state must stay although nothing lives: constant rows are given once."""
        return not self.key_names and any(isinstance(node, Constant) for node in ordered([self.stream.node]))

    @property
    def names_groups(self) -> bool:
        """Whether the plan has to be told what groups there are."""
        return any(isinstance(node, Source) and node.name == GROUPS for node in ordered([self.stream.node]))

    def start(self) -> Dataflow:
        """A dataflow at the beginning."""
        return Dataflow(result=self.stream)

    def shown(self, found: pa.Table) -> pa.Table:
        """Results as they are outside."""
        return found.select(list(self.result)).rename_columns(self.schema.names).cast(self.schema)


@lru_cache(maxsize=16)
def _stream(plan: str, keys: bytes, functions: Paths) -> Stream:
    import_functions(functions)
    kinds = pa.ipc.read_schema(pa.py_buffer(keys))
    made = from_json(plan)
    return (keyed(made, dict(zip(kinds.names, kinds.types, strict=True))) if len(kinds) else made)[OUTPUT]


@worker_task
def run_groups(batches: Iterator[pa.RecordBatch], *, task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """The final history of every bucket of a task: packed rows, those of a bucket one after the other."""
    groups = Groups(**task)
    for tables in _by_bucket(batches):
        for inputs in _parts(groups, by_input(tables)):
            yield from pieces(groups.shown(_run(groups, inputs)))


def _by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.Table]]:
    """The tables of each bucket."""
    tables: list[pa.Table] = []
    at = None
    for batch in batches:
        for bucket, data in zip(batch.column("bucket").to_pylist(), batch.column("data"), strict=True):
            if bucket != at and tables:
                yield tables
                tables = []
            at = bucket
            if len(data.as_buffer()):
                tables.append(arrow_table(data.as_buffer()))
    if tables:
        yield tables


def _parts(groups: Groups, inputs: dict[str, pa.Table]) -> Iterator[dict[str, pa.Table]]:
    """The rows of a bucket, a share of its groups at a time: a dataflow holds several times the memory of its rows."""
    parts = -(-sum(rows.num_rows for rows in inputs.values()) // ROWS) if groups.key_names else 1
    if parts == 1:
        yield inputs
        return
    kinds = pa.ipc.read_schema(pa.py_buffer(groups.keys))
    numbers = KeyTable(kinds.types)
    order, edges = {}, {}
    inputs = {name: rows.combine_chunks() for name, rows in inputs.items()}
    for name, rows in inputs.items():
        part = numbers.ids([rows.column(key) for key in kinds.names], np.arange(rows.num_rows)) % parts
        order[name] = np.argsort(part, kind="stable")
        edges[name] = np.searchsorted(part[order[name]], np.arange(parts + 1))
    for at in range(parts):
        own = {name: order[name][edges[name][at] : edges[name][at + 1]] for name in inputs}
        yield {name: inputs[name].take(pa.array(rows)) for name, rows in own.items()}


def _run(groups: Groups, inputs: dict[str, pa.Table]) -> pa.Table:
    """What some groups of a bucket come to."""
    flow = groups.start()
    if groups.names_groups:
        flow.push(GROUPS, _present(groups, inputs.values()))
    for name, rows in inputs.items():
        flow.push(name, in_order(rows, groups.vs, name))
    flow.finish()
    flow.run_until_idle()
    return flow.history(OUTPUT)


def by_input(tables: Iterable[pa.Table]) -> dict[str, pa.Table]:
    """The rows of each input."""
    found: dict[str, list[pa.Table]] = {}
    for table in tables:
        found.setdefault(table.schema.metadata[INPUT].decode(), []).append(table)
    return {name: pa.concat_tables(parts).replace_schema_metadata() for name, parts in found.items()}


def in_order(rows: pa.Table, vs: str, name: str) -> pa.Table:
    """Rows so that every retraction comes behind what it takes back: insertions, then retractions of ever earlier ends.

    Raises
    ------
    DataError
        A start is NULL.
    """
    if nulls := rows.column("vs").null_count:
        raise DataError(
            f"source '{name}': column '{vs}' (vs) is NULL in {nulls} or more rows: drop them, or give them a time"
        )
    if "ve_new" not in rows.column_names:
        return rows
    retracts = pc.is_valid(rows.column("ve_new"))
    taken = rows.filter(retracts)
    if not taken.num_rows:
        return rows
    unbounded = "ve" not in rows.column_names
    ends = (
        np.zeros(taken.num_rows) if unbounded else pc.fill_null(taken.column("ve").cast(pa.int64()), FOREVER).to_numpy()
    )
    order = np.argsort(ends, kind="stable")[::-1]
    return pa.concat_tables([rows.filter(pc.invert(retracts)), taken.take(pa.array(order))])


def _present(groups: Groups, inputs: Iterable[pa.Table]) -> pa.Table:
    """Every key that has a row, from the first time on."""
    names = groups.key_names
    keys = pa.concat_tables([rows.select(names) for rows in inputs]).group_by(names).aggregate([])
    return keys.append_column("vs", pa.array([EVER] * keys.num_rows, pa.int64()).cast(groups.time_kind))
