"""The events, and a table function for the SQL beside this file."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from stretto.spark import register

SCHEMA = StructType.fromDDL("type string, ts timestamp, name string, price double, volume int")

spark = SparkSession.active()

# Fitted to the columns: a pipeline is planned without running Python.
register(spark, "profits", Path("queries/profits.ceql").read_text(encoding="utf-8"), like=SCHEMA)


@dp.materialized_view
def trades() -> DataFrame:
    """All trades."""
    return spark.read.csv("data/trades.csv", header=True, schema=SCHEMA)
