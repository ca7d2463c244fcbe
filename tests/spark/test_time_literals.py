"""A time in a condition means the same to stretto and to Spark SQL, whatever the session's time zone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import stretto
from stretto.errors import QueryError
from tests.conftest import seeds

pytestmark = [pytest.mark.spark]

NOON = "2024-01-01 12:00:00"


@pytest.fixture
def rows(spark: Any) -> Iterator[Any]:
    """Five hours around noon, in a session that is not in UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        shift = "make_dt_interval(0, int(id) - 12)"
        columns = ["'A' AS type", "int(id) AS h", f"timestamp'{NOON}Z' + {shift} AS at"]
        columns += [f"timestamp_ntz'{NOON}' + {shift} AS local", "date'2024-01-01' AS day"]
        yield spark.range(10, 15).selectExpr(*columns).coalesce(1).cache()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def asked(rows: Any, condition: str, time: str = "at") -> list[int]:
    found = stretto.spark.match(rows, f"SELECT * FROM S WHERE A AS a FILTER a[{condition}]", time=time)
    return sorted(row.a[0].h for row in found.collect())


def test_with_a_zone(rows: Any) -> None:
    for literal in (f"{NOON}Z", "2024-01-01 17:30:00+05:30"):
        sql = [row.h for row in rows.where(f"at >= '{literal}'").sort("h").collect()]
        assert sql
        assert asked(rows, f"at >= '{literal}'") == sql


def test_without_a_zone_where_the_column_has_none(rows: Any) -> None:
    assert asked(rows, f"local >= '{NOON}'") == [row.h for row in rows.where(f"local >= '{NOON}'").sort("h").collect()]
    assert asked(rows, f"local >= '{NOON}'", time="local") == [12, 13, 14]
    assert asked(rows, "day = '2024-01-01'") == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("language", seeds("sase", "ceql"))
def test_what_the_two_would_read_differently_is_refused(rows: Any, spark: Any, language: str) -> None:
    """Spark SQL reads a literal without a zone in that of the session."""
    from pyspark.errors import AnalysisException

    text = {
        "ceql": "SELECT * FROM S WHERE A AS a FILTER a[{}]",
        "sase": "PATTERN SEQ(A a) WHERE skip_till_next_match {{ a.{} }}",
    }[language]
    for wrong in (f"at >= '{NOON}'", f"local >= '{NOON}Z'"):
        with pytest.raises(QueryError, match=r"(?s)\^\^\^.*hint: "):
            stretto.spark.match(rows, text.format(wrong), time="at")
    rows.createOrReplaceTempView("hours")
    stretto.spark.register(spark)
    query = text.format(f"at >= '{NOON}'").replace("'", "''")
    with pytest.raises(AnalysisException, match=r"(?s)\^\^\^.*hint: "):
        spark.sql(f"SELECT * FROM stretto_query(TABLE(hours), '{query}', time => 'at')").collect()
    query = text.format(f"at >= '{NOON}Z'").replace("'", "''")
    found = spark.sql(f"SELECT a[0].h AS h FROM stretto_query(TABLE(hours), '{query}', time => 'at')").collect()
    assert sorted(row.h for row in found) == [row.h for row in rows.where(f"at >= '{NOON}Z'").sort("h").collect()]
