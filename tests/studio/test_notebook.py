"""The studio's views as a widget: what it shows, and how its pages are turned. How it looks, the browser's tests say."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import stretto
from stretto.errors import DataError, OptionError, QueryError
from stretto.studio import page

PAIRS = "SELECT * FROM S WHERE A AS a; B AS b WITHIN 2 [t]"


@pytest.fixture
def widgets() -> None:
    """What shows widgets."""
    pytest.importorskip("anywidget", reason="pip install 'stretto[notebook]'")


@pytest.mark.usefixtures("widgets")
def test_a_widget_has_the_automaton_and_a_page_of_matches() -> None:
    events = pa.table({"t": [2, 1], "type": ["B", "A"], "v": [1.5, None]})
    views = stretto.studio.widget(PAIRS, events, time="t")
    assert "export" in views.get_state()["_esm"]
    shown = views.shown
    assert json.loads(json.dumps(shown)) == shown
    assert shown["dot"].startswith("digraph")
    assert [one["name"] for one in shown["columns"]] == ["t", "type", "v"]
    assert (shown["type"], shown["temporal"], shown["variables"]) == ("type", False, ["a", "b"])
    assert (shown["count"], shown["more"], shown["offset"], shown["page"]) == (1, False, 0, 100)
    assert shown["matches"][0]["variables"] == {"a": [0], "b": [1]}
    assert shown["events"] == {"0": [1.0, [1, "A", None]], "1": [2.0, [2, "B", 1.5]]}


@pytest.mark.usefixtures("widgets")
def test_its_pages_are_turned(tmp_path: Path) -> None:
    day = dt.datetime(2026, 1, 1)
    times = [day + dt.timedelta(seconds=one) for one in range(250)]
    pq.write_table(pa.table({"type": ["A"] * 250, "t": pa.array(times, pa.timestamp("us"))}), tmp_path / "e.parquet")
    query = stretto.compile("SELECT * FROM S WHERE A AS a", {"type": str, "t": "timestamp[us]"}, time="t")
    made = stretto.studio.widget(query, tmp_path / "e.parquet", rows=240)
    assert made.shown["temporal"]
    assert (made.shown["count"], len(made.shown["matches"])) == (240, 100)
    made.offset = 200
    assert (made.shown["offset"], [one["rows"] for one in made.shown["matches"]]) == (
        200,
        [[row] for row in range(200, 240)],
    )
    made.offset = -5
    assert made.shown["offset"] == 0


@pytest.mark.usefixtures("widgets")
def test_mistakes_are_errors() -> None:
    events = [{"type": "A", "t": 1}]
    with pytest.raises(QueryError, match="unknown attribute 'u'"):
        stretto.studio.widget("SELECT * FROM S WHERE A AS a FILTER a[u > 1]", events)
    with pytest.raises(DataError, match="no column 'when'"):
        stretto.studio.widget(PAIRS, events, time="when")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "STATIC", tmp_path)
    with pytest.raises(OptionError, match="lacks files of the studio's page: index"):
        stretto.studio.widget(PAIRS, [{"type": "A", "t": 1}])
    for name in ("index.html", *page.FILES):
        (tmp_path / name).write_text("")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "stretto.studio.notebook", raising=False)
    with pytest.raises(OptionError, match=r"stretto\[notebook\]"):
        stretto.studio.widget(PAIRS, [{"type": "A", "t": 1}])
