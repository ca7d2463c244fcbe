"""``at_end="drop"`` on Spark: the end of a batch is at the latest time of all its events, as in this process, whatever the tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import seeds
from tests.spark.streams import add_file, bag, read_stream
from tests.spark.test_batch import found_by_spark
from tests.spark.test_sase import SCHEMA, events

pytestmark = [pytest.mark.spark]

QUERIES = {
    "absence": "SELECT * FROM S WHERE A ; NOT B PARTITION BY [k] WITHIN 12 [t]",
    "absence, no key": "SELECT * FROM S WHERE A : C ; NOT D WITHIN 9 [t]",
    "negation": "PATTERN SEQ(A a, ~(B b)) WHERE skip_till_next_match { [k] AND b.v > a.v } WITHIN 12",
    "negation, key of conditions": "PATTERN SEQ(A a, C c, ~(B b)) WHERE skip_till_any_match { a.k = c.k AND b.k = a.k } WITHIN 12",
    "kept": "SELECT * FROM S WHERE A+ ; B PARTITION BY [k] WITHIN 15 [t] KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
    "kept, no window": "SELECT * FROM S WHERE A ; B+ PARTITION BY [k] KEEP LONGEST",
    "nothing waits": "SELECT * FROM S WHERE A ; B PARTITION BY [k] WITHIN 5 [t]",
}
GIVEN: dict[str, Any] = {"time": "t", "sequence": "seq"}


@pytest.mark.parametrize("name", QUERIES)
def test_same_matches_as_embedded(spark: Any, name: str) -> None:
    for seed in seeds(1, 2, 3):
        table = events(seed, 70)
        # The last event of each key comes at another time; behind all of them one that nothing asks for, and one without a key.
        ends = [{"type": "X", "t": 36, "seq": 98, "k": "z"}, {"type": "A", "t": 38, "seq": 99, "k": None}]
        table = pa.concat_tables([table, pa.Table.from_pylist(ends, SCHEMA)]).sort_by("seq")
        expected = stretto.match(QUERIES[name], table, **GIVEN, at_end="drop")
        if name not in (
            "nothing waits",
            "absence, no key",
            "negation, key of conditions",
        ):  # in which all events move time
            assert expected.num_rows < stretto.match(QUERIES[name], table, **GIVEN).num_rows
        df = spark.createDataFrame(table).repartition(3)
        found = found_by_spark(df, QUERIES[name], **GIVEN, at_end="drop", partitions=4)
        assert bag(found) == bag(expected), (name, seed)


def test_times_by_stream(spark: Any) -> None:
    """Streams that FROM does not list move nothing."""
    query = "SELECT * FROM a WHERE A ; NOT B WITHIN 1 minute"
    rows = [("a", "A", 1), ("a", "A", 100), ("b", "X", 1_000)]
    table = pa.table(
        {
            "type": [kind for _, kind, _ in rows],
            "s": [name for name, _, _ in rows],
            "t": pa.array([at * 1_000_000 for _, _, at in rows], pa.timestamp("us", "UTC")),
        }
    )
    df = spark.createDataFrame(table)
    for at_end, count in (("drop", 1), ("complete", 2)):
        assert stretto.match(query, table, time="t", stream="s", at_end=at_end).num_rows == count
        assert stretto.spark.match(df, query, time="t", stream="s", at_end=at_end).count() == count
    assert stretto.spark.match(df.filter("false"), query, time="t", stream="s", at_end="drop").count() == 0


def test_what_is_refused(spark: Any, tmp_path: Path) -> None:
    table = events(1, 20)
    df = spark.createDataFrame(table)
    query = QUERIES["absence"].replace("[t]", "[seq]")
    with pytest.raises(stretto.OptionError, match="asks how far 't' has come, and the window measures 'seq'"):
        stretto.spark.match(df, query, time="t", at_end="drop")
    add_file(tmp_path / "in", table, 0)
    with pytest.raises(stretto.OptionError, match="at_end= is for batches: a stream does not end"):
        stretto.spark.match(
            read_stream(spark, tmp_path / "in"),
            QUERIES["absence"],
            time="t",
            time_unit="s",
            disorder="1 second",
            at_end="drop",
        )
    assert "How it runs on Spark" in stretto.spark.explain(df, QUERIES["absence"], time="t", at_end="drop")
