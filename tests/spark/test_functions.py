"""Functions of the user on Spark: workers import them by module and name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import stream
from stretto.errors import OptionError
from stretto.query.functions import import_functions
from stretto.spark import register
from tests.spark.streams import add_file, bag, read_stream, run

pytestmark = [pytest.mark.spark]

MODULE = "conditions_of_a_user"
CODE = "import stretto\n\n\n@stretto.function\ndef steeper(a, b):\n    return b > 2 * a\n"
QUERY = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] and steeper(a.v, b.v) } WITHIN 20"
EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "A", "B", "Z"],
        "t": [1, 2, 3, 4, 5, 900],
        "k": ["x", "x", "x", "y", "y", "z"],
        "v": [3, 7, 6, 1, 9, 0],
    }
)


@pytest.fixture
def shipped(spark: Any, tmp_path: Path) -> Iterator[None]:
    """The module is here, and given to the workers."""
    (tmp_path / f"{MODULE}.py").write_text(CODE)
    sys.path.insert(0, str(tmp_path))
    importlib.import_module(MODULE)
    spark.addArtifacts(str(tmp_path / f"{MODULE}.py"), pyfile=True)
    yield
    sys.path.remove(str(tmp_path))
    del sys.modules[MODULE]


@pytest.mark.usefixtures("shipped")
def test_workers_import_functions_by_their_path(spark: Any, tmp_path: Path) -> None:
    expected = bag(stretto.match(QUERY, EVENTS, time="t"))
    assert len(expected) == 2  # 3 → 7 and 1 → 9
    df = spark.createDataFrame(EVENTS)
    assert bag(stretto.spark.match(df, QUERY, time="t").toArrow()) == expected

    register(spark)
    df.createOrReplaceTempView("to_compare")
    rows = spark.sql(f"SELECT * FROM stretto_query(TABLE(to_compare), '{QUERY}', time => 't')")
    assert bag(rows.toArrow()) == expected

    add_file(tmp_path / "in", EVENTS, 0)
    events = read_stream(spark, tmp_path / "in")
    found = stretto.spark.match(events, QUERY, time="t", time_unit="s", disorder="0 seconds", buckets=2)
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    assert bag(spark.read.parquet(str(tmp_path / "out")).toArrow()) == expected

    values = stream("values", {"k": str, "v": int})
    rows = spark.createDataFrame(EVENTS).withColumnRenamed("t", "vs").select("k", "v", "vs")
    steep = stretto.spark.dataflow(rows, values.where("steeper(3, v)"), by="k")
    assert sorted((row.k, row.v) for row in steep.collect()) == [("x", 7), ("y", 9)]


def test_a_function_without_a_path_is_refused(spark: Any) -> None:
    stretto.function(lambda a, b: a < b, name="below")
    df = spark.createDataFrame(EVENTS)
    calling = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { below(a.v, b.v) }"
    with pytest.raises(OptionError, match=r"'below' is known to this process only .*<lambda>.*addArtifacts"):
        stretto.spark.match(df, calling, time="t")
    values = stream("values", {"k": str, "v": int})
    with pytest.raises(OptionError, match="'below' is known to this process only"):
        stretto.spark.dataflow(df.withColumnRenamed("t", "vs"), values.where("below(v, 3)"), by="k")


def test_a_worker_without_the_module_says_how_to_give_it() -> None:
    with pytest.raises(
        OptionError, match=r"'f' is no_such_module\.f, which this Python process cannot import .*--py-files"
    ):
        import_functions((("f", "no_such_module:f"),))
