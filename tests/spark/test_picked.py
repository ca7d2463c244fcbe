"""ORDER BY … LIMIT and SAMPLE on Spark: by key in batch, of each event in streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import stretto
from stretto.errors import OptionError
from tests.spark.streams import add_file, bag, read_stream, run
from tests.spark.test_batch import random_events

pytestmark = [pytest.mark.spark]

MATCHES = "SELECT a, b FROM S WHERE A AS a ; B+ AS b PARTITION BY [key] WITHIN 20 seconds "


@pytest.mark.parametrize(
    "text",
    [
        MATCHES + "ORDER BY SUM(b[x]) - COUNT(b) DESC LIMIT 3",
        MATCHES + "ORDER BY SUM(b[x]) LIMIT 2 EVERY 10 seconds",
        MATCHES + "SAMPLE 1000000",
        MATCHES + "GROUP BY [key], a[group] ORDER BY SUM(b[x]) DESC LIMIT 1",
        MATCHES.replace("B+ AS b", "(B+ AS b GAP 5 seconds)") + "ORDER BY SUM(b[x]) DESC LIMIT 2 EVERY EVENT",
        "SELECT a, b FROM S WHERE A AS a ; B AS b WITHIN 9 EVENTS ORDER BY SUM(b[x]) DESC LIMIT 1 EVERY 5 EVENTS",
    ],
)
def test_batch(spark: Any, text: str) -> None:
    table = random_events(3)
    expected = stretto.match(text, table, time="ts", sequence="seq")
    df = spark.createDataFrame(table).repartition(3)
    found = stretto.spark.match(df, text, time="ts", sequence="seq").toArrow()
    assert expected.num_rows > 4
    assert bag(found) == bag(expected)


def test_a_stream_gives_the_best_of_each_event(spark: Any, tmp_path: Path) -> None:
    table = random_events(4, 120).sort_by([("ts", "ascending"), ("seq", "ascending")])
    for number in range(3):
        add_file(tmp_path / "in", table.slice(40 * number, 40), number)
    text = MATCHES + "ORDER BY SUM(b[x]) DESC LIMIT 1 EVERY EVENT"
    stream = read_stream(spark, tmp_path / "in")
    found = stretto.spark.match(stream, text, time="ts", sequence="seq", disorder="0 seconds")
    run(found, tmp_path / "checkpoint", tmp_path / "out")
    expected = stretto.match(text, table, time="ts", sequence="seq")
    shown = spark.read.schema(found.schema).parquet(str(tmp_path / "out")).toArrow()
    last = table.column("ts")[-1]  # what comes at the watermark's own time waits for a later event
    known = expected.filter(pc.less(expected.column("end_time"), last))
    assert known.num_rows > 4
    assert bag(shown.filter(pc.less(shown.column("end_time"), last))) == bag(known)


def test_what_no_task_can_choose(spark: Any, tmp_path: Path) -> None:
    table = random_events(5, 20)
    with pytest.raises(OptionError, match="each task chooses for its own keys"):
        stretto.spark.match(spark.createDataFrame(table), MATCHES + "SAMPLE 3 GROUP BY ()", time="ts")
    with pytest.raises(OptionError, match="each task chooses for its own keys"):
        stretto.spark.match(spark.createDataFrame(table), MATCHES + "SAMPLE 3 GROUP BY a[group]", time="ts")
    add_file(tmp_path / "in", table, 0)
    with pytest.raises(OptionError, match="EVERY EVENT chooses among the matches of each event"):
        stretto.spark.match(read_stream(spark, tmp_path / "in"), MATCHES + "SAMPLE 3", time="ts", disorder="0 seconds")
