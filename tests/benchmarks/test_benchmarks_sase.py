"""The benchmarks of the SASE+ paper: the stream, the counts that they check, and a run on a tiny stream."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.papers.sase import oracle, report
from benchmarks.papers.sase.cli import main
from benchmarks.papers.sase.queries import case
from benchmarks.papers.sase.stream import stocks
from benchmarks.papers.sase.suite import DEFINITIONS, Plan, Row, Suite
from tests.conftest import COMPILED
from tests.java_stocks import java_stocks


def test_the_stream_is_that_of_the_tests() -> None:
    assert stocks(2_000).equals(java_stocks(2_000))
    assert stocks(100, symbols=3, seed=4).equals(java_stocks(100, symbols=3, seed=4))


def test_prices_rise_as_often_as_asked() -> None:
    table = stocks(20_000, rises=0.55, symbols=1)
    prices = table["price"].to_pylist()
    moves = [b - a for a, b in zip(prices, prices[1:], strict=False)]
    shares = [sum(test(move) for move in moves) / len(moves) for test in (lambda m: m > 0, lambda m: m < 0)]
    assert shares == pytest.approx([0.55, 0.23], abs=0.01)
    assert set(moves) == set(range(-3, 4))


@pytest.mark.parametrize("known", DEFINITIONS["known"], ids=lambda known: f"within {known['within']}")
def test_loops_give_the_known_counts(known: dict[str, list[int]]) -> None:
    if not COMPILED:
        pytest.skip("the stream takes a while uncompiled")
    table = stocks(100_000)
    for name in known.keys() - {"within", "starts"}:
        assert list(oracle.count(case(name), table, known["within"])) == known[name]


def test_a_name_that_is_none() -> None:
    with pytest.raises(ValueError, match="p4s2"):
        case("p4s2")


def test_a_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every query with every side on a tiny stream: counts are right, and what is written can be drawn."""
    pytest.importorskip("matplotlib")
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    out = tmp_path / "results.json"
    length, known = ("40", "3000") if COMPILED else ("20", "300")
    options = ["--windows", "40,60", "--length", length, "--repeat", "1", "--known", known]
    assert main(["run", "--quick", *options, "--out", str(out), "--figures", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "Table 2" in shown
    assert "Table 3" in shown
    record = json.loads(out.read_text(encoding="utf-8"))
    queries = DEFINITIONS["queries"]
    assert record["wrong"] == []
    assert len(record["rows"]) == sum(len(names) for names in queries.values())
    for row in record["rows"]:
        apart = row["query"].endswith("n")
        assert set(row["seconds"]) == set(report.SIDES if not apart else ("stretto", "basic", "backtrack"))
        assert row["matches"] > 0 or "s2" in row["query"]
        assert row["profile"]["engines"]["basic"]["live"] >= 0
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "figure8.svg", "figure8.png"}
    assert cores is None or os.sched_getaffinity(0) == cores


def test_some_queries_by_the_processor_s_time(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    options = ["--windows", "40", "--length", "20", "--repeat", "1", "--known", "300"]
    assert main(["run", *options, "--queries", "p2s2,p1s3", "--clock", "cpu", "--out", str(out)]) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["plan"]["clock"] == "cpu"
    assert [(row["query"], row["rises"]) for row in record["rows"]] == [
        ("p1s3", 0.7),
        ("p2s2", 0.7),
        ("p1s3", 0.55),
        ("p2s2", 0.55),
    ]


def test_a_wrong_count_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "count", lambda *_: (1, 2))
    row = next(Suite(Plan((20,), 5, 1, known=100)).rows())
    assert row.wrong.endswith("(0, 0) matches and events, expected (1, 2)")


def test_goals_are_said_as_reached_or_missed() -> None:
    seconds = {"stretto": [0.5, 0.1], "basic silent": [0.3], "merged silent": [0.15]}
    rows = [Row("p1s3", 0.7, 500, 200_000, 1, 1, 1, seconds), Row("p2s2", 0.7, 500, 200_000, 1, 1, 1, seconds)]
    assert report.goals(rows) == [
        "[green]reached[/green] p1s3 at W = 500: 2,000,000 events/s, at least 1,000,000",
        "[yellow]missed[/yellow] p2s2 at W = 500: 2,000,000 events/s, at least 3,000,000",
        "[green]reached[/green] p1s3 at W = 500: merged 2.00 times basic without construction, at least 1.5",
    ]
