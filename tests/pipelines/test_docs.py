"""docs/pipelines.md and examples/pipeline: their files are well formed, every key is told, the example runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.pipelines import PipelineError, load, model

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

QUERY = "SELECT sold[price], bought[price] FROM trades WHERE SELL AS sold ; BUY AS bought PARTITION BY [name] WITHIN 1 minute"


def test_the_pipelines_of_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_LOGIN", "…")
    Path("pairs.ceql").write_text(QUERY, encoding="utf-8")
    modes = []
    for block in BLOCKS:
        Path("pipeline.toml").write_text(block, encoding="utf-8")
        modes.append(load("pipeline.toml").pipeline.mode)
    assert modes == ["batch", "streaming"]


def test_the_mistakes_of_the_page(folder: Path) -> None:
    shown = re.findall(r"^```\n(pipeline\.toml, .*?)\n```", PAGE, re.MULTILINE | re.DOTALL)
    for text, (right, wrong) in zip(shown, [("time =", "tme ="), ("sold[price]", "sold[prize]")], strict=True):
        Path("pipeline.toml").write_text(BLOCKS[0].replace(right, wrong), encoding="utf-8")
        with pytest.raises(PipelineError) as caught:
            load("pipeline.toml")
        assert str(caught.value) == text


@pytest.mark.parametrize(
    ("section", "models"),
    [
        ("[pipeline]", [model.Pipeline]),
        ("[source]", [*model.SOURCES.values()]),
        ("[events]", [model.Events]),
        ("[[query]]", [model.Query]),
        ("[[sink]]", [*model.SINKS.values()]),
    ],
    ids=str,
)
def test_every_key_is_on_the_page(section: str, models: list[type[model.Table]]) -> None:
    part = PAGE.split(f"### `{section}`\n")[1].split("\n### ")[0]
    keys = {key for row in re.findall(r"^\| (`[^|]*)\|", part, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert keys == {key for one in models for key in one.model_fields}


@pytest.mark.parametrize("name", ["pipeline.toml", "streaming.toml"])
def test_the_examples_are_well_formed(name: str) -> None:
    assert load(ROOT / "examples" / "pipeline" / name).queries[0].name == "small_then_large"


@pytest.mark.spark
@pytest.mark.session
def test_the_example_runs_by_itself(tmp_path: Path, spark: object) -> None:
    """In a process of its own, as a user runs it."""
    here = tmp_path / "examples" / "pipeline"
    shutil.copytree(ROOT / "examples" / "pipeline", here)
    command = [sys.executable, "-c", "from stretto.cli import main; main()", "run", str(here / "pipeline.toml")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted((row["card"], row["large"][0]["amount"]) for row in rows if row["query"] == "small_then_large") == [
        *[("a", 950.0), ("c", 640.0)],
        *[("d", 820.0), ("d", 820.0)],
    ]
    assert sorted(row["card"] for row in rows if row["query"] == "often") == ["a", "d"]
    assert re.search(r"\d\d:\d\d:\d\d bad records of events: done, 1 to bad\n", done.stderr)
    assert re.search(r"\d\d:\d\d:\d\d small_then_large: done, 4 matches to matches, shown\n", done.stderr)
    assert list((tmp_path / "out" / "cards" / "bad").glob("stream=events/*.json"))
