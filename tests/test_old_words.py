"""The words of time that were used before are taken for one release, with a warning that says the new ones."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import stretto
from stretto.matching.reorder.late_policy import OLD_WORDS
from stretto.pipelines import PipelineError, load
from stretto.spark.options import Continuous
from tests.pipelines.conftest import GOOD

EVENTS = [{"t": 3}, {"t": 1}, {"t": 6}]
PAGE = Path(__file__).parent.parent / "docs" / "disorder.md"


def test_the_page_has_the_table_of_old_words() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for one in OLD_WORDS.values():
        assert f"| {one.where} | `{one.old}` | `{one.new}` |" in text


def test_cleanse() -> None:
    with pytest.warns(stretto.StrettoWarning, match=r"bound=… is an old word, .* say disorder=…"):
        old = stretto.Cleanse(time="t", bound=2)
    new = stretto.Cleanse(time="t", disorder=2)
    assert old.push(EVENTS) == new.push(EVENTS)
    assert stretto.Cleanse(time="t", disorder=2).restore(old.snapshot()).punctuation == new.punctuation == 4
    with pytest.raises(stretto.OptionError, match=r"bound=… is an old word for disorder=: give one of them"):
        stretto.Cleanse(time="t", bound=2, disorder=2)


def test_pipelines(tmp_path: Path) -> None:
    (tmp_path / "trades.csv").touch()
    path = tmp_path / "pipeline.toml"
    (tmp_path / "dear.ceql").write_text("SELECT * FROM trades WHERE SELL FILTER SELL[price > 3]", encoding="utf-8")
    path.write_text(GOOD.replace("disorder =", "watermark ="), encoding="utf-8")
    with pytest.warns(stretto.StrettoWarning, match=r"watermark = … is an old word, .* say disorder = …"):
        plan = load(path)
    assert plan.events.delay == ("watermark", "10 seconds")
    path.write_text(GOOD.replace("disorder =", 'disorder = "1 second"\nwatermark ='), encoding="utf-8")
    with (
        pytest.warns(stretto.StrettoWarning),
        pytest.raises(PipelineError, match="watermark is an old word for 'disorder': give one of them"),
    ):
        load(path)


def test_options_of_spark() -> None:
    with pytest.warns(stretto.StrettoWarning, match=r"watermark=… is an old word"):
        assert Continuous.of(None, "drop", watermark="2 seconds").disorder == "2 seconds"
    with pytest.warns(stretto.StrettoWarning, match=r"disorder='sort' is an old word"):
        assert Continuous.of("sort", "drop").disorder is None
    assert Continuous.of(dt.timedelta(seconds=2), "drop").disorder == "2000000 microseconds"
