"""The event streams of the benchmarks, each as one Arrow table whose rows are in stream order.

Real traces come from the folder that the environment variable ``STRETTO_DATA`` names (default:
``../shared/data`` beside the checkout). Generated streams depend on nothing but their parameters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

__all__ = [
    "STOCK_NAMES",
    "DataMissingError",
    "DataSpec",
    "data_folder",
    "generate_stocks",
    "load",
    "stock_batches",
]

STOCK_NAMES = ("AMAT", "CSCO", "DELL", "INTC", "IPIX", "MSFT", "ORCL", "QQQ", "RIMM", "YHOO")
EVENTS_A_SECOND = 100
MILLISECONDS_APART = 1000 // EVENTS_A_SECOND
#: Generated streams are made in pieces of this many events, each from its own random state, so that a stream
#: does not depend on the sizes in which it is asked for.
PIECE = 1 << 20


class DataMissingError(Exception):
    """A real trace is not where it should be."""


@dataclass(frozen=True)
class DataSpec:
    """Which stream, and how much of it. ``copies`` repeats a trace, each copy ``gap`` time units after the
    one before.
    """

    source: str
    copies: int = 1
    gap: int = 1
    rows: int = 0
    keys: int = 0
    dictionary: bool = False
    peer_rows: int = 0

    @property
    def slug(self) -> str:
        """A name for files made from this stream."""
        parts = [
            self.source,
            f"x{self.copies}",
            f"r{self.rows}",
            f"k{self.keys}",
            "dict" if self.dictionary else "plain",
        ]
        return "-".join(parts)


def data_folder() -> Path:
    """The folder of the real traces."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("STRETTO_DATA", default))


def load(spec: DataSpec) -> pa.Table:
    """The stream that ``spec`` describes."""
    if spec.source == "generated":
        table = generate_stocks(spec.rows, keys=spec.keys)
    else:
        table = _repeat(_TRACES[spec.source](), spec)
        table = table.slice(0, spec.rows) if spec.rows else table
    return _encode_strings(table) if spec.dictionary else table


def pieces(spec: DataSpec) -> Iterator[pa.Table | pa.RecordBatch]:
    """The stream that ``spec`` describes, never wholly in memory when it is generated."""
    if spec.source == "generated":
        yield from stock_batches(spec.rows, keys=spec.keys)
    else:
        yield load(spec)


def time_column(source: str) -> str:
    """The attribute that windows of a stream's queries measure."""
    return {"homes": "plug_timestamp", "taxi": "dropoff_datetime"}.get(source, "stock_time")


# --- real traces --------------------------------------------------------------------------------------------


def _read(name: str, types: dict[str, pa.DataType]) -> pa.Table:
    path = data_folder() / f"{name}.csv.gz"
    if not path.exists():
        raise DataMissingError(
            f"{path.name} is not in {path.parent}; set STRETTO_DATA to the folder that holds the real traces"
        )
    options = csv.ConvertOptions(column_types=types, include_columns=list(types), strings_can_be_null=True)
    return csv.read_csv(path, convert_options=options).combine_chunks()


def _stocks() -> pa.Table:
    """The stock trace of one day that the CORE paper used."""
    types: dict[str, pa.DataType] = {
        "type": pa.string(),
        "id": pa.int64(),
        "name": pa.string(),
        "volume": pa.int64(),
        "price": pa.float64(),
        "stock_time": pa.int64(),
    }
    return _read("stocks_wpi_2004", types)


def _homes() -> pa.Table:
    """Power load of one house, a reading a plug a minute."""
    types: dict[str, pa.DataType] = {
        "id": pa.int64(),
        "timestamp": pa.int64(),
        "value": pa.float64(),
        "plug_id": pa.int64(),
        "household_id": pa.int64(),
    }
    table = _read("debs2014_house0_load_1min", types)
    table = table.rename_columns(["id", "plug_timestamp", *table.column_names[2:]])
    return table.add_column(0, "type", pa.array(["LOAD"] * len(table)))


def _taxi() -> pa.Table:
    """The first taxi trips of 2013, with zones; times in whole seconds."""
    types: dict[str, pa.DataType] = {
        "id": pa.int64(),
        "pickup_zone": pa.string(),
        "dropoff_zone": pa.string(),
        "trip_distance": pa.float64(),
        "total_amount": pa.float64(),
        "dropoff_datetime": pa.timestamp("s"),
    }
    table = _read("debs2015_taxi_10k", types)
    table = table.rename_columns(["id", "pickup_loc", "dropoff_loc", *table.column_names[3:]])
    seconds = pc.cast(table["dropoff_datetime"], pa.int64())
    table = table.set_column(table.column_names.index("dropoff_datetime"), "dropoff_datetime", seconds)
    return table.add_column(0, "type", pa.array(["TRIP"] * len(table)))


_TRACES: dict[str, Callable[[], pa.Table]] = {"stocks": _stocks, "homes": _homes, "taxi": _taxi}


def _repeat(table: pa.Table, spec: DataSpec) -> pa.Table:
    """The trace again and again, times shifted so that they never decrease."""
    if spec.copies == 1:
        return table
    name = time_column(spec.source)
    column = table.column_names.index(name)
    times = table[name].to_numpy()
    step = int(times[-1] - times[0]) + spec.gap
    copies = [table.set_column(column, name, pa.array(times + copy * step)) for copy in range(spec.copies)]
    return pa.concat_tables(copies).combine_chunks()


# --- generated streams --------------------------------------------------------------------------------------


def generate_stocks(rows: int, *, keys: int = 0) -> pa.Table:
    """``rows`` events of a stock stream: ten names, BUY and SELL, a hundred events a second.

    With ``keys``, a column ``account`` spreads the events evenly over that many values.
    """
    return pa.Table.from_batches(list(stock_batches(rows, keys=keys))).combine_chunks()


def stock_batches(rows: int, *, keys: int = 0, first: int = 0) -> Iterator[pa.RecordBatch]:
    """The generated stream, piece by piece."""
    for start in range(first, first + rows, PIECE):
        yield _stock_piece(start, min(PIECE, first + rows - start), keys)


def _stock_piece(start: int, rows: int, keys: int) -> pa.RecordBatch:
    rng = np.random.default_rng([20040603, start])
    types = _pick(rng.integers(0, 2, rows), ("BUY", "SELL"))
    names = _pick(rng.integers(0, len(STOCK_NAMES), rows), STOCK_NAMES)
    ids = np.arange(start, start + rows, dtype=np.int64)
    columns: dict[str, pa.Array] = {
        "type": types,
        "id": pa.array(ids),
        "name": names,
        "volume": pa.array(rng.integers(1, 100, rows) * 100),
        "price": pa.array(np.round(rng.normal(30.0, 5.0, rows), 2)),
        "stock_time": pa.array(ids * MILLISECONDS_APART),
    }
    if keys:
        columns["account"] = pa.array(rng.integers(0, keys, rows))
    return pa.RecordBatch.from_pydict(columns)


def _pick(codes: np.ndarray, values: tuple[str, ...]) -> pa.StringArray:
    """A plain string column from codes."""
    return pa.array(values).take(pa.array(codes))


def _encode_strings(table: pa.Table) -> pa.Table:
    """The same table with dictionary-encoded string columns."""
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(index, field.name, pc.dictionary_encode(table[field.name]))
    return table
