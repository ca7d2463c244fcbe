"""Dataflows over streaming DataFrames: micro-batches, a restart, late rows, and mistakes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stretto import spark as on_spark
from stretto.dataflow import Dataflow, Stream, datalog, fixpoint, stream
from stretto.dataflow.stream import keyed
from stretto.errors import DataError, OptionError
from tests.spark.streams import add_file, read_stream, run

pytestmark = [pytest.mark.spark]

LINKS = stream("links", {"src": str, "dst": str})
SOURCES = stream("sources", {"at": str})
MICROS = pa.timestamp("us", "UTC")
LIFETIME = [("since", MICROS), ("until", MICROS), ("to", MICROS)]
ROWS = {
    "links": pa.schema([("net", pa.string()), ("src", pa.string()), ("dst", pa.string()), *LIFETIME]),
    "sources": pa.schema([("net", pa.string()), ("at", pa.string()), *LIFETIME]),
}
SECOND = 10**6
FIRST = 1_700_000_000


def reach() -> Stream:
    return fixpoint(
        lambda r: SOURCES.project(node="at").union(LINKS.join(r, on={"src": "node"}).project(node="dst")).distinct(),
        schema={"node": str},
    )


def table(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows whose last three values are seconds of the test."""
    plain = [
        dict(
            zip(
                ROWS[name].names,
                [*row[:-3], *(None if t is None else (FIRST + t) * SECOND for t in row[-3:])],
                strict=True,
            )
        )
        for row in rows
    ]
    ticks = pa.schema([(f.name, pa.int64() if f.type == MICROS else f.type) for f in ROWS[name]])
    return pa.Table.from_pylist(plain, schema=ticks).cast(ROWS[name])


def micro_batches(seed: int, count: int = 4) -> list[dict[str, list[tuple[Any, ...]]]]:
    """Rows of both sources in pieces of 20 seconds; retractions come after what they take back."""
    choose = random.Random(seed)
    made: list[dict[str, list[tuple[Any, ...]]]] = [{"links": [], "sources": []} for _ in range(count)]
    for at in range(20 * count):
        net = choose.choice("xyz")
        if at % 20 in (0, 19):  # both sources reach every piece, so that neither holds the watermark back
            made[at // 20]["sources"].append((net, choose.choice("ab"), at, at + 50, None))
        ve = None if choose.random() < 0.2 else at + choose.randint(1, 40)
        row = (net, choose.choice("abcde"), choose.choice("abcde"), at, ve)
        made[at // 20]["links"].append((*row, None))
        to = at + choose.randint(0, 19)
        if choose.random() < 0.5 and to // 20 < count and (ve is None or to < ve):
            made[to // 20]["links"].append((*row, to))
    return made


def history(rows: list[dict[str, Any]], key: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """What insertions and retractions come to, by seconds of the test."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        vs, ve, to = (
            None if row[name] is None else int(row[name].timestamp()) - FIRST for name in ("vs", "ve", "ve_new")
        )
        for at in range(vs if to is None else to, 200 if ve is None else ve):
            found[*(row[name] for name in key), at] += 1 if to is None else -1
    return Counter({one: count for one, count in found.items() if count})


def expected(parts: list[dict[str, list[tuple[Any, ...]]]]) -> Counter[tuple[Any, ...]]:
    flow = Dataflow(result=keyed({"r": reach()}, {"net": pa.string()})["r"])
    for name, columns in ROWS.items():
        rows = [row for part in parts for row in part[name]]
        rows.sort(key=lambda row: (row[-1] is not None, -(2**40 if row[-2] is None else row[-2])))
        names = {"since": "vs", "until": "ve", "to": "ve_new"}
        flow.push(name, table(name, rows).rename_columns([names.get(one, one) for one in columns.names]))
    flow.finish()
    flow.run_until_idle()
    return history([{**row, "ve_new": None} for row in flow.history("result").to_pylist()], ("net", "node"))


def found_in(spark: Any, folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = spark.read.parquet(str(folder)).toArrow().to_pylist()
    return rows


@pytest.mark.usefixtures("two_partitions")
def test_micro_batches_and_a_restart_give_the_history_of_the_embedded_dataflow(spark: Any, tmp_path: Path) -> None:
    parts = micro_batches(5)

    def go(first: int, last: int) -> Any:
        for number in range(first, last):
            for name in ROWS:
                add_file(tmp_path / name, table(name, parts[number][name]), number)
        frames = {name: read_stream(spark, tmp_path / name) for name in ROWS}
        made = on_spark.dataflow(
            frames, reach(), by="net", vs="since", ve="until", ve_new="to", disorder="20 seconds", buckets=4
        )
        assert made.columns == ["net", "node", "vs", "ve", "ve_new"]
        return run(made, tmp_path / "checkpoint", tmp_path / "found")

    go(0, 2)
    query = go(2, 4)
    rows = found_in(spark, tmp_path / "found")
    assert history(rows, ("net", "node")) == expected(parts)
    assert any(row["ve_new"] is not None for row in rows)
    counts = [on_spark.metrics(progress) for progress in query.recentProgress]
    assert sum(count["events"] for count in counts) == sum(len(part[name]) for part in parts[2:] for name in ROWS)
    assert sum(count["late"] for count in counts) == 0
    assert sum(count["released"] for count in counts) == sum(count["relevant"] for count in counts)


def test_late_rows_are_shown_beside_the_result(spark: Any, tmp_path: Path) -> None:
    for number, rows in enumerate(
        (
            [("x", "a", 0, 5, None), (None, "k", 1, None, None)],
            [("x", "b", 60, None, None)],
            [
                ("x", "c", 10, None, None),
                ("x", "d", 61, None, None),
                ("x", "b", 60, None, 70),
                ("x", "q", 60, None, 71),
            ],
        )
    ):
        add_file(tmp_path / "in", table("sources", rows), number)
    made = on_spark.dataflow(
        read_stream(spark, tmp_path / "in"),
        SOURCES.distinct(),
        by="net",
        vs="since",
        ve="until",
        ve_new="to",
        disorder="10 seconds",
        late="side",
        buckets=2,
    )
    query = run(made, tmp_path / "checkpoint", tmp_path / "found")
    rows = found_in(spark, tmp_path / "found")
    shown = sorted((row["late"]["source"], row["late"]["sources"]["at"]) for row in rows if row["late"] is not None)
    assert shown == [("sources", "c"), ("sources", "q")]
    names = [(row["at"], row["ve_new"] is not None) for row in rows if row["late"] is None]
    assert sorted(names) == [("a", False), ("b", False), ("b", True), ("d", False)]
    counts = [on_spark.metrics(progress) for progress in query.recentProgress]
    assert sum(count["late"] for count in counts) == 2
    assert sum(count["no_key"] for count in counts) == 1


def test_mistakes_are_errors_of_the_call(spark: Any, tmp_path: Path) -> None:
    for name in ROWS:
        add_file(tmp_path / name, table(name, []), 0)
    frames = {name: read_stream(spark, tmp_path / name) for name in ROWS}
    with pytest.raises(OptionError, match="a continuous query needs a watermark: disorder='10 seconds'"):
        on_spark.dataflow(frames, reach(), by="net", vs="since")
    with pytest.raises(OptionError, match="late='keep': expected 'drop', 'error' or 'side'"):
        on_spark.dataflow(frames, reach(), by="net", vs="since", disorder="1 second", late="keep")
    static = {**frames, "links": spark.read.parquet(str(tmp_path / "links"))}
    with pytest.raises(OptionError, match="the source 'sources' is a stream and 'links' is none"):
        on_spark.dataflow(static, reach(), by="net", vs="since", disorder="1 second")
    with pytest.raises(DataError, match="no column 'nett'"):
        on_spark.dataflow(frames, reach(), by="nett", vs="since", disorder="1 second")
    other = frames["sources"].withColumn("seen", frames["sources"].since).withWatermark("seen", "1 second")
    with pytest.raises(OptionError, match="a watermark on 'seen', and the query's time is 'since'"):
        on_spark.dataflow(other, SOURCES.distinct(), by="net", vs="since")
    whole = frames["sources"].selectExpr("net", "at", "unix_seconds(since) AS since")
    with pytest.raises(OptionError, match="say what one unit of it is with time_unit='s'"):
        on_spark.dataflow(whole, SOURCES.distinct(), by="net", vs="since", disorder="1 second")
    facts = datalog("r('z'). r(X) :- sources(X).", {"sources": SOURCES})["r"]
    with pytest.raises(OptionError, match="the plan has constant rows that are in every group"):
        on_spark.dataflow(frames["sources"], facts, by="net", vs="since", disorder="1 second")
