"""Matches as a readable table."""

from __future__ import annotations

import datetime as dt
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError

DAY = dt.datetime(2026, 3, 1, 23, 50)
EVENT = pa.struct([("type", pa.string()), ("t", pa.timestamp("us")), ("k", pa.string()), ("v", pa.float64())])


def event(kind: str, minutes: int, key: str, value: float | None) -> dict[str, Any]:
    return {"type": kind, "t": DAY + dt.timedelta(minutes=minutes), "k": key, "v": value}


def matches(*rows: tuple[str, list[Any], list[Any]]) -> pa.Table:
    """A table as ``match`` gives it, of a key and the events of ``a`` and ``Many``."""
    columns = {
        "start": pa.array([0] * len(rows)),
        "end": pa.array([1] * len(rows)),
        "positions": pa.array([[0, 1]] * len(rows), pa.list_(pa.int64())),
        "start_time": pa.array([first[0]["t"] for _, first, _ in rows], pa.timestamp("us")),
        "end_time": pa.array([many[-1]["t"] for _, _, many in rows], pa.timestamp("us")),
        "k": pa.array([key for key, _, _ in rows]),
        "a": pa.array([first for _, first, _ in rows], pa.list_(EVENT)),
        "Many": pa.array([many for _, _, many in rows], pa.list_(EVENT)),
    }
    return pa.table(columns)


SMALL = matches(
    ("x", [event("A", 0, "x", 1.5)], [event("Many", 5, "x", 2.0), event("Many", 15, "x", None)]),
    ("<y>", [event("A", 20, "<y>", 0.1 + 0.2)], [event("Many", minutes, "<y>", 3.0) for minutes in range(30, 90)]),
)


def test_the_text_of_a_table() -> None:
    assert str(stretto.show(SMALL, width=120)).splitlines() == [
        "k    start_time        end_time          a t v      Many t v",
        "x    2026-03-01 23:50  2026-03-02 00:05  23:50 1.5  23:55 2",
        "                                                    2026-03-02 00:05",
        "<y>  2026-03-02 00:10  01:19             00:10 0.3  00:20 3",
        "                                                    00:21 3",
        "                                                    00:22 3",
        "                                                    00:23 3",
        "                                                    00:24 3",
        "                                                    … 55 more",
        "2 rows",
    ]


def test_keys_come_first_and_places_where_nothing_else_tells_the_match() -> None:
    found = stretto.match("SELECT * FROM S WHERE A; B", [{"type": "A", "x": 5}, {"type": "B", "x": 7}])
    assert str(stretto.show(found, width=80)).splitlines()[0].split() == [
        "start",
        "end",
        "positions",
        "A",
        "x",
        "B",
        "x",
    ]


def test_rows_and_events_are_cut_with_a_count() -> None:
    text = str(stretto.show(SMALL, rows=1, events=1, width=120))
    assert "… 1 more" in text
    assert text.endswith("2 rows, 1 shown")
    assert str(stretto.show(SMALL, rows=0, events=100, width=120)).count("\n") == 63


@pytest.mark.parametrize("given", [{"rows": -1}, {"events": 0}])
def test_bounds_that_are_none(given: dict[str, int]) -> None:
    with pytest.raises(stretto.OptionError, match="rows is 0 or more, and events at least 1"):
        stretto.show(SMALL, **given)


def test_slices_and_pieces_and_nulls() -> None:
    """Lists whose offsets do not begin at 0, columns in several pieces, and lists that are NULL."""
    whole = pa.concat_tables([SMALL, SMALL.slice(1)]).slice(1)
    assert str(stretto.show(whole, width=120)).count("<y>") == 2
    nothing = pa.table({"x": pa.array([None, [{"v": 1}]], pa.list_(pa.struct([("v", pa.int64())])))})
    assert str(stretto.show(nothing, width=40)).splitlines() == ["x v", "", "1", "2 rows"]


def test_a_table_without_rows_or_columns() -> None:
    assert str(stretto.show(SMALL.slice(0, 0))) == "0 rows"
    assert str(stretto.show(pa.table({}))) == "0 rows"


def test_html_is_escaped_and_whole() -> None:
    evil = "</td><script>alert(1)</script>\x1b[2J\x00\u202e"
    html = stretto.show(pa.table({evil: [evil]}))._repr_html_()
    assert "<script" not in html
    assert "\\x1b[2J\\x00\\u202e" in html
    assert ET.fromstring(html) is not None
    assert "\x1b" not in str(stretto.show(pa.table({evil: [evil]}), width=200))


def test_all_attributes_are_where_the_pointer_rests() -> None:
    html = stretto.show(SMALL)._repr_html_()
    assert 'title="type: A\nt: 2026-03-01 23:50\nk: x\nv: 1.5"' in html


def test_nanoseconds_and_days_and_zones() -> None:
    table = pa.table(
        {
            "ns": pa.array([1], pa.timestamp("ns")),
            "day": pa.array([20_000], pa.int32()).cast(pa.date32()),
            "zone": pa.array([0], pa.timestamp("s", tz="Asia/Tokyo")),
            "far": pa.array([1 << 61], pa.timestamp("s")),
        }
    )
    line = str(stretto.show(table, width=150)).splitlines()[1]
    assert line.split("  ") == ["1970-01-01 00:00:00.000000001", "2024-10-04", "1970-01-01 09:00", str(1 << 61)]


def test_saving(tmp_path: Path) -> None:
    view = stretto.show(SMALL, width=100)
    view.save(tmp_path / "m.txt")
    assert (tmp_path / "m.txt").read_text(encoding="utf-8") == f"{view}\n"
    view.save(tmp_path / "m.html")
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "&lt;y&gt;" in page
    with pytest.raises(stretto.OptionError, match=r"cannot save to 'm.pdf': end it in \.html or \.txt"):
        view.save(tmp_path / "m.pdf")
    with pytest.raises(stretto.OptionError, match="a table is no picture"):
        view.save(tmp_path / "m.svg")
    assert set(view._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_integer_times_with_a_unit_are_dates() -> None:
    """In a table, on a time axis and in a histogram; without a unit they stay numbers."""
    events = [{"type": one, "t": 1_772_442_000 + 60 * at, "n": at} for at, one in enumerate("ACB")]
    matches = stretto.match("SELECT * FROM S WHERE A; B", events, time="t")
    assert "1772442000" in str(stretto.show(matches, width=100))
    shown = str(stretto.show(matches, width=100, time_unit="s"))
    assert shown.splitlines()[1].split() == ["2026-03-02", "09:00", "09:02", "09:00", "0", "09:02", "2"]
    assert "0 rows" in str(stretto.show(matches.slice(0, 0), time_unit="ms"))
    drawn = str(stretto.timeline(matches, events, time_unit="s"))
    assert drawn.startswith("match 0: from 2026-03-02 09:00 to 09:02\n")
    assert drawn.splitlines()[-1].count("·") == 1
    assert "2026-03-02" in str(stretto.density(matches, time_unit="s"))
    silent = stretto.match("SELECT * FROM S WHERE A; C; C WITHIN 90 [t]", events, time="t", timeouts=True)
    windows = stretto.match("SELECT COUNT(*) FROM S WHERE A; B WITHIN 300 [t] EVERY 300 [t]", events, time="t")
    assert "2026-03-02 09:01:30" in str(stretto.show(silent.select(["expired"]), time_unit="s"))
    assert "2026-03-02 09:00  2026-03-02 09:05" in str(stretto.show(windows, width=100, time_unit="s"))
    with pytest.raises(OptionError, match="time_unit='min': the units of integer times are s, ms, us, ns"):
        stretto.show(matches, time_unit="min")


def test_what_tells_rows_apart_is_shown() -> None:
    """Of many attributes those that differ, and the places of matches that would look the same."""
    same = {"a": 1, "b": 1, "c": 1, "d": 1}
    events = [{"type": "A", **same, "n": 7}, {"type": "A", **same, "n": 8}, {"type": "B", **same, "n": 9}]
    matches = stretto.match("SELECT A FROM S WHERE A; B", events)
    shown = str(stretto.show(matches, width=100)).splitlines()
    assert shown[0].split()[-7:] == ["A", "a", "b", "c", "n", "…", "1", "more"][-7:]
    assert sorted(row.split()[-1] for row in shown[1:3]) == ["7", "8"]
    alike = pa.table({"t": [1, 1], "type": ["A", "A"]})
    found = stretto.match("SELECT * FROM S WHERE A", alike, time="t")
    assert (
        str(stretto.show(found, width=100)).splitlines()[1:3]
        != [str(stretto.show(found, width=100)).splitlines()[1]] * 2
    )
