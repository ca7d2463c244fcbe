"""The benchmarks of the AFA paper: the streams, the counts that they check, and a run on a tiny stream."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.afa import flink, oracle, queries, report, speculation, streams
from benchmarks.papers.afa.cli import main
from benchmarks.papers.afa.sides import batches_with, run
from benchmarks.papers.afa.suite import EXPERIMENTS, Plan, Replacements, Row, Suite
from tests.conftest import size

COUNT = size(3_000, 400)


def _ticks(count: int, up: float = 0.5) -> streams.F64:
    return streams.ticks(count, up=up, mean=0.7, deviation=0.3, seed=1)


def test_ticks_are_those_of_the_paper() -> None:
    changes = _ticks(50_000, up=0.7)
    assert (changes > 0).mean() == pytest.approx(0.7, abs=0.01)
    assert (changes != 0).all()
    assert np.abs(changes).mean() == pytest.approx(0.71, abs=0.01)
    stream = streams.quotes(changes, ignorable=30)
    assert (stream.table["change"].to_numpy() == 0).mean() == pytest.approx(0.3, abs=0.01)
    assert stream.table["price"][-1].as_py() == pytest.approx(stream.table["change"].to_numpy().sum())


def test_events_come_late_by_as_much_as_asked() -> None:
    stream = streams.late(streams.quotes(_ticks(5_000)), 10, 50).punctuated(100)
    times = stream.table["t"].to_numpy()
    assert sorted(times.tolist()) == list(range(5_000))
    greatest = np.maximum.accumulate(times)
    assert 0 < (greatest - times).max() <= 50
    assert (times < greatest).mean() == pytest.approx(0.1, abs=0.02)
    for row, time in stream.punctuations:
        assert time == times[row:].min()
    parts = stream.batches(300)
    assert [(300 * at + row, time) for at, (_, pairs) in enumerate(parts) for row, time in pairs] == list(
        stream.punctuations
    )


def test_yahoos_prices_are_repeated(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("date,open\n1996-04-12,1\n1996-04-15,3\n1996-04-16,3\n2009-12-31,2\n2010-01-04,9\n")
    assert streams.yahoo(5, path).tolist() == [2, -1, 2, -1, 2]


@pytest.mark.parametrize("factor", [0, 30, 400])
def test_cleanse_hands_on_what_plain_loops_do(factor: int) -> None:
    stream = streams.late(streams.quotes(_ticks(1_000)), 5, 100).punctuated(60)
    times = stream.table["t"].to_numpy()
    wanted = oracle.cleansed(times, stream.punctuations, factor)
    found = speculation.cleansed(stream, factor)
    assert found.stream.table["t"].to_pylist() == [times[row] for row, _ in wanted]
    assert found.step.tolist() == [step for _, step in wanted]


def test_replaced_arcs_are_found_by_loops() -> None:
    changes = _ticks(COUNT)
    plan = Replacements.of(COUNT, 10)
    batches = [
        (table, pairs, plan.arcs(begin, begin + table.num_rows))
        for begin, (table, pairs) in zip(range(0, COUNT, 250), streams.quotes(changes).batches(250), strict=True)
    ]
    wanted = oracle.changing(changes, plan.directions(COUNT))
    assert run(queries.q3(100), batches).net == wanted != oracle.q3(changes, queries.shape())


def test_what_is_late_changes_nothing_in_the_end() -> None:
    ordered = streams.quotes(_ticks(COUNT, up=0.7))
    late = streams.late(ordered, 20, 80)
    afa = queries.q2(60)
    wanted = len(oracle.q2(*(ordered.table[name].to_pylist() for name in ("change", "price")), 60, drop=0.25))
    assert run(afa, batches_with(ordered), ordered=True).net == wanted > 0
    assert run(afa, batches_with(late.punctuated(50))).net == wanted
    numbered = run(afa, batches_with(late.punctuated(50)), numbered="number")
    assert numbered.net == numbered.rows == wanted


def test_flink_is_asked_for_the_same() -> None:
    found = flink.statements(2)
    assert "PATTERN (S D1+? U1*? E1 D2+? U2*? E2) WITHIN INTERVAL '2' SECOND" in found["Q1"]
    assert set(found) == {"V", "Q1, k = 1", "Q1"}


def test_a_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every experiment but Flink on a tiny stream: counts are right, and what is written can be drawn."""
    pytest.importorskip("matplotlib")
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    out, prices = tmp_path / "results.json", tmp_path / "none.csv.gz"
    options = ["--quick", "--events", str(COUNT), "--long", str(4 * COUNT), "--repeat", "1", "--flink", "0"]
    assert main(["run", *options, "--yahoo", str(prices), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "reached" in shown or "missed" in shown
    record = json.loads(out.read_text(encoding="utf-8"))
    assert len(record["skipped"]) == 2
    assert {row["experiment"] for row in record["rows"]} == EXPERIMENTS.keys() - {"flink"}
    assert not any(row["wrong"] for row in record["rows"])
    assert main(["figures", str(out), "--folder", str(tmp_path)]) == 0
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert drawn == {"figure8", "figure9", "figure10_11", "figure12_13", "figure16_17", "memory"}
    assert cores is None or os.sched_getaffinity(0) == cores


def test_a_wrong_count_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "q3", lambda *_: 12_345)
    plan = replace(Plan.of("quick"), events=200, repeat=1, prefix=100, yahoo=None, only=("8",))
    wrong = [row.wrong for row in Suite(plan).rows() if row.query == "Q3"]
    assert all(line.endswith("the loops find 12,345") for line in wrong)


def test_names_that_are_none_and_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--only", "7"]) == 2
    assert main(["list"]) == 0
    assert "q0 -> q1  a0  when e.change < -0.25" in capsys.readouterr().out


def test_goals_are_said_as_reached_or_missed() -> None:
    rows = [
        Row("9", "Q3", "static", None, 1_000_000, seconds=[0.2, 0.1]),
        Row("9", "Q3", "dynamic", 10, 1_000_000, seconds=[0.125]),
        Row("memory", "Q1", "AFA", None, 100, extra={"bytes": [(50, 10), (100, 10)]}),
        Row("flink", "V", "stretto, AFA", None, 1_000_000, seconds=[0.5]),
        Row("flink", "V", "Flink, batch", None, 1_000_000, seconds=[15.0], extra={"start": 5.0}),
    ]
    assert report.goals(rows) == [
        "[yellow]missed[/yellow] an arc replaced every 10 events: 0.800 of the static throughput, at least 0.9",
        "[green]reached[/green] memory over 100 events, Q1: 1.000 times what it was after a tenth, at most 1.05",
        "[green]reached[/green] V, stretto, AFA: 30.0 times Flink's rows/s, at least 20"
        " (20.0 times without what a job costs without data)",
    ]
