"""Fields of structs that play a role, on Spark: batch, streams, sets of patterns, why there is no match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import stretto
from tests.spark.streams import add_file, bag, read_stream, run
from tests.test_fields import NESTED

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROLES: dict[str, Any] = {"type": "event.category", "time": "event.at"}
TOLD = ROLES | {"sequence": "event.seq"}
QUERY = "SELECT a, b FROM S WHERE A AS a ; B AS b PARTITION BY [event.key] WITHIN 4 [event.at]"


def test_roles_in_batch_calls(spark: Any) -> None:
    from stretto import spark as stretto_spark

    df = spark.createDataFrame(NESTED)
    wanted = stretto.match(QUERY, NESTED, **TOLD)
    found = stretto_spark.match(df, QUERY, **TOLD).toArrow()
    assert bag(found, ["start_time", "end_time"]) == bag(wanted, ["start_time", "end_time"])
    assert set(found.schema.field("a").type.value_type.names) == {"event", "x"}
    sets = stretto_spark.match_patterns(df, {"ab": QUERY}, by=["event.key"], **TOLD).toArrow()
    assert bag(sets, ["start_time", "end_time"]) == bag(wanted, ["start_time", "end_time"])
    named = stretto_spark.match(df, QUERY, stream="event.log", **TOLD)
    assert named.count() == wanted.num_rows
    assert str(stretto_spark.why_not(df, QUERY, **TOLD)).startswith("It does match")
    assert "event.at" in stretto_spark.explain(df, QUERY, **TOLD)


def test_roles_on_a_stream(spark: Any, tmp_path: Path) -> None:
    from stretto import spark as stretto_spark

    for number in range(3):
        add_file(tmp_path / "in", NESTED.slice(2 * number, 2), number)
    events = read_stream(spark, tmp_path / "in")
    found = stretto_spark.match(events, QUERY, **ROLES, time_unit="s", disorder="1 second")
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    wanted = stretto.match(QUERY, NESTED, **ROLES)
    given = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert isinstance(given, pa.Table)
    # The last events may wait for a watermark that no event moves any more.
    wanted, given = (one.filter(pc.less(one.column("end_time"), 4)) for one in (wanted, given))
    assert bag(given, ["start_time", "end_time"]) == bag(wanted, ["start_time", "end_time"])
    assert wanted.num_rows
