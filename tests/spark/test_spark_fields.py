"""Fields of structs that play a role, on Spark: batch, streams, sets of patterns, why there is no match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import stretto
from tests.matching.input.test_fields import NESTED
from tests.spark.streams import add_file, bag, read_stream, run

pytestmark = [pytest.mark.spark]

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


def test_roles_of_totals_statements_and_functions(spark: Any) -> None:
    from stretto import spark as stretto_spark

    df = spark.createDataFrame(NESTED)
    df.createOrReplaceTempView("nested")
    for totals in (
        "SELECT COUNT(*) AS n, MAX(b[event.seq]) AS last FROM S WHERE A AS a ; B AS b PARTITION BY [event.key] WITHIN 4 [event.at]",
        "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [event.key] } WITHIN 4 RETURN TOTAL count(*) AS n",
    ):
        assert bag(stretto_spark.match(df, totals, **TOLD).toArrow()) == bag(stretto.match(totals, NESTED, **TOLD))
    clause = (
        "PARTITION BY event.key ORDER BY event.at MEASURES a.event.at AS first, b.event.at AS last PATTERN (a b) "
        "DEFINE a AS event.category = 'A', b AS event.category = 'B'"
    )
    text = f"SELECT first, last FROM nested MATCH_RECOGNIZE ({clause}) ORDER BY 1"
    wanted = stretto.sql(text, nested=NESTED).to_pylist()
    assert stretto_spark.sql(spark, text).toArrow().to_pylist() == wanted != []
    stretto_spark.register(spark)
    stretto_spark.register(spark, "nested_pairs", QUERY, **TOLD)
    ends = bag(stretto.match(QUERY, NESTED, **TOLD), ["start_time", "end_time"])
    roles = ", ".join(f"{role} => '{name}'" for role, name in TOLD.items())
    for call in ("nested_pairs(TABLE(nested))", f"stretto_query(TABLE(nested), '{QUERY}', {roles})"):
        assert bag(spark.sql(f"SELECT * FROM {call}").toArrow(), ["start_time", "end_time"]) == ends


def test_roles_on_a_stream(spark: Any, tmp_path: Path) -> None:
    from stretto import spark as stretto_spark

    for number in range(3):
        add_file(tmp_path / "in", NESTED.slice(2 * number, 2), number)
    events = read_stream(spark, tmp_path / "in")
    running = {"time_unit": "s", "disorder": "1 second", "buckets": 2}
    found = stretto_spark.match(events, QUERY, **ROLES, **running)
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    sets = stretto_spark.match_patterns(events, {"ab": QUERY}, by=["event.key"], **ROLES, **running)
    run(sets, tmp_path / "checkpoint of sets", tmp_path / "sets")
    wanted = stretto.match(QUERY, NESTED, **ROLES)
    for folder in ("out", "sets"):
        given = spark.read.parquet(str(tmp_path / folder)).toArrow()
        assert isinstance(given, pa.Table)
        # The last events may wait for a watermark that no event moves any more.
        ended, given = (one.filter(pc.less(one.column("end_time"), 4)) for one in (wanted, given))
        assert bag(given, ["start_time", "end_time"]) == bag(ended, ["start_time", "end_time"])
        assert ended.num_rows
