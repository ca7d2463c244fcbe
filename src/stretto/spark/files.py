"""Event files as DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.spark.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
