"""The benchmarks of the FFP paper: the streams, the counts that they check, what is measured of progress, and a tiny run."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.ffp import oracle, queries, report, streams
from benchmarks.papers.ffp.cli import main
from benchmarks.papers.ffp.progress import follow, lag
from benchmarks.papers.ffp.sides import flow_of, links, run_afa, run_flow, run_graph
from benchmarks.papers.ffp.suite import DEFINITIONS, EXPERIMENTS, MODES, Plan, Row, Suite
from benchmarks.peers.pathway import launch
from tests.conftest import size

COUNT = size(2_000, 300)


def _by_definition(ups: list[bool], times: list[int], window: int) -> int:
    """W step by step: every way through the automaton from every start."""
    found = 0
    for first, start in enumerate(times):
        states = {("S", 0)}
        for at, now in enumerate(times[first:]):
            if now != start + at or at >= window:
                break
            symbol = "U" if ups[first + at] else "D"
            states = {
                (behind, m + dm)
                for (state, m), (sym, before, behind, dm, low, high) in product(states, queries.MACHINE)
                if state == before and sym == symbol and low <= m <= high
            }
            found += sum(state == "F" for state, _ in states)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_loops_count_what_the_automaton_says(seed: int) -> None:
    ups = streams.tosses(400, seed)
    left = np.flatnonzero(streams.lulls(400, 25, 0.3, seed))
    for times in (np.arange(400), left):
        here = ups[times].tolist()
        for window in (12, 30):
            wanted = _by_definition(here, times.tolist(), window)
            assert oracle.count_w(here, times.tolist(), window) == wanted > 0


@pytest.mark.parametrize("mode", MODES)
def test_plan_and_operator_find_the_same(mode: str) -> None:
    ups = streams.tosses(COUNT, 1)
    wanted = oracle.count_w(ups.tolist(), range(COUNT), 30)
    ticks = streams.ticks(ups, window=30, span=100, batch=50)
    assert run_flow(flow_of(30, speculation=mode), ticks, 3).rows == wanted > 0
    table = streams.events(ups, np.arange(COUNT), 30)
    assert run_afa(queries.w_afa(30), table, 1 << 10).rows == wanted
    assert run_afa(queries.w_afa(30), table, 1 << 10, every=100).rows == wanted


def test_events_come_ahead_and_punctuations_stay() -> None:
    ups = streams.tosses(1000, 1)
    ticks = streams.ticks(ups, window=30, span=100, batch=10, places=streams.shifted(1000, 100, 300))
    assert [tick.punctuation for tick in ticks if tick.punctuation is not None] == list(range(100, 1001, 100))
    arrived, least = [], 0
    for tick in ticks:
        if tick.table is not None:
            times = tick.table["t"].to_pylist()
            assert min(times) >= least
            arrived += times
        least = tick.punctuation or least
    assert sorted(arrived) == list(range(1000))
    place = {time: at for at, time in enumerate(arrived)}
    assert place[499] == pytest.approx(199, abs=4)
    assert place[450] == pytest.approx(450, abs=4)


def test_lulls_leave_time_as_it_is() -> None:
    left = streams.lulls(1000, 100, 0.5, 3)
    ticks = streams.ticks(streams.tosses(1000, 1), window=30, span=100, batch=1, left=left)
    assert len(ticks) == 1000
    assert {int(at) // 100 for at in np.flatnonzero(left)} == {
        at // 100 for at, tick in enumerate(ticks) if tick.table is not None
    }
    assert [at for at, tick in enumerate(ticks) if tick.punctuation is not None] == list(range(99, 1000, 100))


def test_lag_is_what_figure_5_shows() -> None:
    # Until 2 the least start to come is 1, until 4 it is 3, then 4 (the 7 at 6 does not count: 4 comes later), from 8 on 9.
    outputs = [(2, 1), (4, 3), (6, 7), (8, 4)]
    known = [(0, 0), (3, 2), (9, 8)]
    assert lag(outputs, known, 10, 9) == (2 * 1 + 1 * 3 + 1 * 1 + 4 * 2 + 1 * 7 + 1 * 1) / 10


def test_hybrid_follows_closely_and_sends_little() -> None:
    count = 300
    ups = streams.tosses(count, 1)
    places = streams.shifted(count, 100, 200)
    ticks = streams.ticks(ups, window=30, span=100, batch=1, places=places)
    found = {mode: follow(ticks, 30, mode, interval=20, look=10) for mode in MODES}
    wanted = oracle.count_w(ups.tolist(), range(count), 30)
    assert all(one.matches == wanted and one.idle for one in found.values())
    assert found["hybrid"].lag < 60 < found["hwm"].lag
    assert found["hybrid"].speculative <= 2 * found["hybrid"].definite < found["probing"].speculative
    assert found["hybrid"].held <= found["hwm"].held


def test_links_that_come_and_go_leave_the_right_pairs() -> None:
    graph = streams.graph(COUNT, COUNT, 0.2, 5)
    wanted = oracle.reachable(graph.links())
    assert graph.removed.sum() > COUNT // 10
    assert links(run_graph(graph, COUNT // 5, keep=True).extra["tables"]) == wanted
    assert len(wanted) > COUNT // 2


def test_a_change_of_a_chain_changes_as_many_pairs_as_it_is_long() -> None:
    graph = streams.components(20, 6, 30, 1)
    outcome = run_graph(graph, 10, keep=True, skip=120)
    assert outcome.rows == 30 * 6
    assert links(outcome.extra["tables"]) == oracle.reachable(graph.links())
    assert len(oracle.reachable(graph.links())) == 20 * 21


def test_lines_of_code_leave_out_what_is_said_of_it(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(
        '"""A text."""\n\n# a comment\ndef f(x):\n    """More\n    of it."""\n\n    return "#"  # the last\n'
    )
    assert queries.lines(path) == 2
    assert queries.lines(queries.w_afa) == 14


def test_a_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every experiment but Pathway on tiny streams: counts are right, and what is written can be drawn."""
    pytest.importorskip("matplotlib")
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    out = tmp_path / "results.json"
    for name, along, points in (
        ("disorder", "ahead", [0, 2]),
        ("lulls", "likelihoods", [0.4]),
        ("inactivity", "intervals", [600]),
    ):
        monkeypatch.setitem(DEFINITIONS[name], along, points)
    few = ["--events", "2000", "--steps", "100", "--pushes", "1", "--long", "40000", "--changes", "300", "--peer", "0"]
    only = "native,disorder,inactivity,lulls,reachability,memory"
    assert main(["run", "--quick", "--only", only, *few, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "reached" in shown or "missed" in shown
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["skipped"] == ["Pathway: not asked for"]
    assert {row["experiment"] for row in record["rows"]} == EXPERIMENTS.keys() - {"cost"}
    assert not any(row["wrong"] for row in record["rows"])
    assert main(["figures", str(out), "--folder", str(tmp_path)]) == 0
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert drawn == {"figure6", "figure7", "figure8", "figure9", "figure10", "figure11", "memory"}
    assert cores is None or os.sched_getaffinity(0) == cores


def test_a_wrong_count_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "count_w", lambda *_: 12_345)
    plan = replace(Plan.of("quick"), events=500, repeat=0, only=("native",))
    assert all(row.wrong.endswith("the loops find 12,345") for row in Suite(plan).native())


def test_pathway_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STRETTO_BENCHMARK_CACHE", str(tmp_path))
    monkeypatch.setenv("STRETTO_PATHWAY_PYTHON", str(tmp_path / "no-python"))
    suite = Suite(replace(Plan.of("quick"), changes=50, only=("reachability",)))
    assert [row.side for row in suite.rows()] == ["stretto"]
    assert suite.skipped[0].startswith("Pathway: no environment could be made")
    assert launch.REQUIREMENT.startswith("pathway==")


def test_names_that_are_none_and_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--only", "figure12"]) == 2
    assert main(["list"]) == 0
    assert "FFP reach" in capsys.readouterr().out


def test_goals_are_said_as_reached_or_missed() -> None:
    followed = {"lag": 55.0, "span": 100, "per_definite": 1.5, "idle": True}
    rows = [
        Row("native", "cyclic plan, 100", 1000, 1_000_000, seconds=[5.0, 4.0]),
        Row("disorder", "hybrid", 2, 100, extra=followed),
        Row("reachability", "stretto", None, 1000, [0.5], extra={"pairs": 7, "wall": [1.0]}),
        Row("reachability", "Pathway", None, 1000, [2.5], extra={"wall": [3.0], "start": {"cpu": 0.5}}),
        Row("cost", "stretto", 10, 100, [1.0]),
        Row("cost", "stretto", 100, 100, [2.0]),
        Row("memory", "cyclic plan", None, 100, extra={"bytes": [(50, 10, 20), (100, 10, 30)]}),
    ]
    said = [
        line.replace("[green]", "").replace("[yellow]", "").replace("[/green]", "").replace("[/yellow]", "")
        for line in report.goals(rows)
    ]
    assert said == [
        "missed W, cyclic plan, 100 events between punctuations, 1,000 together: 250,000 events/s, at least 300,000",
        "reached disorder, hybrid: an average lag of 1.10 times d/2 at most, at most 1.2",
        "reached disorder, hybrid: 1.50 speculative punctuations for a definite one at most, at most 2",
        "reached disorder, hybrid: nothing is in flight when it is idle",
        "reached 1,000 changes to 7 pairs: 2,000 changes/s, 5.0 times Pathway's by processor time (4.0 without its start),"
        " 3.0 by the wall clock, at least 1",
        "missed a change takes 20,000 µs in a graph of 100 links, 2.00 times that in one of 10, at most 1.5",
        "reached memory over 100 events, all arrays: 0.0 MiB at most, 1.000 times what it was after a tenth, at most 1.1",
        "missed memory over 100 events, the process: 0.0 MiB at most, 1.500 times what it was after a tenth, at most 1.1",
    ]
