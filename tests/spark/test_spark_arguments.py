"""Each argument of each call of stretto.spark takes what it is for, or raises an error of stretto."""

from __future__ import annotations

from typing import Any

import pytest

import stretto
from tests.project.test_arguments import EVENTS, QUERY, WRONG, public_calls, raw_errors

SQL = "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS n PATTERN (A B) DEFINE B AS v > 1)"

pytestmark = [pytest.mark.spark]


@pytest.fixture(scope="module")
def calls(spark: Any) -> dict[str, dict[str, Any]]:
    """The arguments with which each call works; none of them starts a job that takes long."""
    from stretto import spark as stretto_spark
    from stretto.dataflow import stream

    df = spark.createDataFrame([tuple(event.values()) for event in EVENTS], "type string, t int, k int, v int")
    df.createOrReplaceTempView("e")
    rows = spark.createDataFrame([(1, 2, 1)], "src int, dst int, vs int")
    matches = stretto_spark.match(df, QUERY, time="t")
    progress = {"name": "q", "batchId": 1, "stateOperators": []}
    return {
        "buckets": {"progress": progress},
        "compile_sql": {"session": spark, "text": SQL},
        "current": {"matches": matches},
        "dataflow": {"df": rows, "stream": stream("links", {"src": "int32", "dst": "int32"}).distinct()},
        "explain": {"df": df, "query": QUERY, "time": "t"},
        "match": {"df": df, "query": QUERY, "time": "t"},
        "match_patterns": {"df": df, "patterns": {"ab": QUERY}, "time": "t"},
        "metrics": {"progress": progress},
        "progress_line": {"progress": progress},
        "read": {"path": "/nowhere/at/all.toml"},
        "register": {"spark": spark},
        "session": {},
        "sql": {"session": spark, "text": SQL},
        "status": {"query": None},
        "unwatch": {"spark": spark, "listener": None},
        "watch": {"spark": spark},
        "why_not": {"df": df, "query": QUERY, "time": "t"},
        "with_match_id": {"matches": matches},
    }


def test_wrong_arguments(spark: Any, calls: dict[str, dict[str, Any]]) -> None:
    from stretto import spark as stretto_spark

    assert {f"stretto.spark.{name}" for name in calls} == set(public_calls("stretto.spark"))
    values = WRONG | {"column of Spark": calls["match"]["df"]["t"]}
    found = []
    for name, given in calls.items():
        function = getattr(stretto_spark, name)
        found += [f"{name}: {one}" for one in raw_errors(lambda function=function: function, given, values)]
    assert not found, "\n".join(found)


def test_a_column_of_spark_is_given_by_its_name(spark: Any, calls: dict[str, dict[str, Any]]) -> None:
    from stretto import spark as stretto_spark

    with pytest.raises(stretto.OptionError, match=r"and got a Column; give the column by its name, time='…'"):
        stretto_spark.match(**calls["match"] | {"time": calls["match"]["df"]["t"]})
