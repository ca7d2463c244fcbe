"""Matches on a time axis."""

from __future__ import annotations

import random
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.views.scene import Box, Dot, Words
from stretto.views.text import width
from tests.conftest import cases

GOLDEN = Path(__file__).parents[1] / "golden" / "views" / "timeline.svg"
EVENTS = [
    {"type": kind, "t": at, "k": key, "v": value}
    for kind, at, key, value in [
        ("A", 0, "x", 1),
        ("C", 2, "x", 2),
        ("B", 3, "y", 3),
        ("B", 5, "x", 4),
        ("<&>", 6, "x", 5),
        ("B", 9, "x", 6),
    ]
]
QUERY = "SELECT MAX a, B FROM S WHERE A AS a; B+ PARTITION BY [k] WITHIN 100 [t]"


def found(**options: Any) -> pa.Table:
    return stretto.match(QUERY, EVENTS, time="t", **options)


def skipped(view: stretto.View) -> list[str]:
    """The titles of the events that a picture shows as skipped."""
    assert view.scene is not None
    return [one.title for one in view.scene.shapes if isinstance(one, Dot) and one.role == "skipped"]


def test_the_text() -> None:
    assert str(stretto.timeline(found(), EVENTS, 1)).splitlines() == [
        "match 1: k x, from 0 to 9",
        "a       │●                                                           │",
        "B       │                                ●                          ●│",
        "skipped │             ·                         ·                    │",
    ]


def test_times_and_keys_inside_of_structs() -> None:
    nested = [{"at": {"t": one["t"], "k": one["k"]}, "type": one["type"], "v": one["v"]} for one in EVENTS]
    query = QUERY.replace("[k]", "[at.k]").replace("[t]", "[at.t]")
    matches = stretto.match(query, nested, time="at.t")
    for options in ({}, {"time": "at.t"}):
        assert str(stretto.timeline(matches, nested, 1, **options)).splitlines() == [
            "match 1: at.k x, from 0 to 9",
            "a       │●                                                           │",
            "B       │                                ●                          ●│",
            "skipped │             ·                         ·                    │",
        ]


def test_the_picture() -> None:
    """``python -m tests.views.test_timeline`` writes it anew."""
    assert stretto.timeline(found(), EVENTS, 1).svg() + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_values_are_escaped() -> None:
    view = stretto.timeline(found(), EVENTS, 1, label="type")
    root = ET.fromstring(view.svg())
    words = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "<&>" in words
    assert view._repr_mimebundle_()["image/svg+xml"] == view.svg()


@pytest.mark.parametrize("options", [{}, {"positions": False}, {"output": "positions"}], ids=str)
def test_what_was_skipped_is_of_the_same_key(options: dict[str, Any]) -> None:
    if options.get("positions") is False:
        table = found().drop_columns(["start", "end", "positions"])  # as Spark gives it
    else:
        table = found(**options)
    view = stretto.timeline(table, EVENTS, 1, time="t")
    assert skipped(view) == [
        f"skipped\ntype: {kind}\nt: {at}\nk: x\nv: {value}" for kind, at, value in [("C", 2, 2), ("<&>", 6, 5)]
    ]


def test_a_column_of_return_is_no_key() -> None:
    """Its name is that of an attribute, and events of the match have other values there."""
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] } WITHIN 100 RETURN b.v AS v"
    table = stretto.match(query, EVENTS, time="t")
    assert len(skipped(stretto.timeline(table, EVENTS, 1, time="t"))) == 3


def test_without_a_time_places_are_the_axis() -> None:
    events = [{name: one[name] for name in ("type", "k")} for one in EVENTS]
    table = stretto.match("SELECT MAX * FROM S WHERE A; B+ PARTITION BY [k]", events)
    view = stretto.timeline(table, events, 1)
    assert str(view).splitlines()[0] == "match 1: k x, from 0 to 5"
    assert [one.title.splitlines()[1] for one in view.scene.shapes if isinstance(one, Dot)] == [
        "type: A",
        "type: B",
        "type: B",
        "type: C",
        "type: <&>",
    ]
    with pytest.raises(stretto.OptionError, match="do not say when they were"):
        stretto.timeline(table)


def test_matches_of_an_automaton_have_their_ends() -> None:
    afa = (
        stretto.AFA({"type": str}).arc("q0", "q1", when="e.type = 'A'").arc("q1", "q2", when="e.type = 'B'").final("q2")
    )
    matcher = stretto.Matcher(afa, time="t")
    given = [matcher.push([{"type": "A", "t": 1}, {"type": "B", "t": 3}]), matcher.push([{"type": "C", "t": 2}])]
    table = pa.concat_tables(given)
    assert str(stretto.timeline(table, row=[0, -1])).splitlines()[::2] == [
        "match 0: from 1 to 3",
        "match 1 (taken back): from 1 to 3",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"row": 7}, r"timeline\(row=7\): the table has 2 rows, counted from 0"),
        ({"row": []}, "no row is named"),
        ({"label": "w"}, "label='w': the events have no such attribute; known names: type, t, k, v"),
        ({"time": "when"}, "when"),
        ({"key": "z"}, "z"),
        ({"events": EVENTS[:3], "row": 1}, "the match has an event in row 5, and the events have 3 rows"),
        ({"events": EVENTS[::-1], "row": 1}, "the events are not those that were matched"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(stretto.StrettoError, match=message):
        stretto.timeline(found(), **({"events": EVENTS} | options))


def test_a_table_that_is_no_result() -> None:
    with pytest.raises(stretto.OptionError, match="needs the columns start_time and end_time, or positions"):
        stretto.timeline(pa.table({"n": [1]}))


def test_what_is_too_much_is_counted() -> None:
    events = [{"type": "A", "t": 0}] + [{"type": "C", "t": at} for at in range(1, 3_000)] + [{"type": "B", "t": 3_000}]
    table = stretto.match("SELECT * FROM S WHERE A; B", events, time="t")
    view = stretto.timeline(table, events)
    assert skipped(view) == []
    assert sum(number for _, _, number in bars(view, "skipped")) == 2_999
    assert str(view).endswith("│ 2,999 events")
    many = pa.concat_tables([table] * 60)
    assert str(stretto.timeline(many, row=range(60))).endswith("… 10 more matches")


def bars(view: stretto.View, name: str) -> list[tuple[Box, str, int]]:
    """The bars of a band: each with what it tells, and how many events that is."""
    assert view.scene is not None
    boxes = [one for one in view.scene.shapes if isinstance(one, Box) and one.title.startswith(f"{name}: ")]
    told = [one.title.removeprefix(f"{name}: ").split() for one in boxes]
    return [(box, words[1], int(words[0].replace(",", ""))) for box, words in zip(boxes, told, strict=True)]


@pytest.mark.parametrize("count", [3, 400, 401, 499, 20_000])
@pytest.mark.parametrize("positions", [True, False])
def test_all_events_are_drawn(count: int, positions: bool) -> None:
    """Up to 400 of a variable are dots; more are a band, to its last event."""
    rng = random.Random(count)
    times = sorted(rng.randrange(10, 10 * count) for _ in range(count))
    rows = [
        ("A", 0, 0),
        *(("B", at, 1) for at in times),
        *(("C", 10 * at, 2) for at in range(count)),
        ("D", 10 * count, 3),
    ]
    events = [
        {"type": kind, "t": at, "v": number + rng.random()} for kind, at, number in sorted(rows, key=lambda one: one[1])
    ]
    table = stretto.match("SELECT MAX * FROM S WHERE A AS a ; B+ AS b ; D AS d", events, time="t")
    row = max(range(table.num_rows), key=lambda one: len(table["b"][one]))
    assert len(table["b"][row]) == count
    view = stretto.timeline(table if positions else table.drop_columns("positions"), events, row)
    assert view.scene is not None
    band, dots = (
        bars(view, "b"),
        [one for one in view.scene.shapes if isinstance(one, Dot) and one.title.startswith("b\n")],
    )
    assert (len(dots), sum(number for _, _, number in band)) == ((0, count) if count > 400 else (count, 0))
    assert sum(number for _, _, number in bars(view, "skipped")) + len(skipped(view)) == count
    words = [one.text for one in view.scene.shapes if isinstance(one, Words)]
    assert (f"{count:,} events" in words) == (f"{count:,} events" in str(view)) == (count > 400)
    if not band:
        return
    left, right = (
        next(one.x for one in view.scene.shapes if isinstance(one, Dot) and one.role == role)
        for role in ("lane0", "lane2")
    )
    span = (right - left) / (10 * count)
    assert len(band) == len({box.x for box, _, _ in band}) <= 400
    for box, noun, number in band:
        inside = sum(box.x <= left + span * at < box.x + box.width for at in times)
        assert abs(inside - number) <= 1 + number // 5, (box, inside)  # what lies on an edge may round
        assert noun == ("event" if number == 1 else "events")
    assert max(box.height for box, _, _ in band) == 20
    assert abs(max(box.x for box, _, _ in band) - (left + span * times[-1])) <= 2


def test_labels_do_not_overlap() -> None:
    """Random events at random times."""
    for seed in range(cases(300)):
        rng = random.Random(seed)
        at, events = 0, []
        for _ in range(rng.randint(2, 40)):
            at += rng.choice([0, 0, 1, 1, 5, 200])
            events.append({"type": rng.choice("AB"), "t": at, "v": "w" * rng.randint(1, 12)})
        table = stretto.match("SELECT MAX * FROM S WHERE A+; B+", events, time="t")
        if not table.num_rows:
            continue
        view = stretto.timeline(table, events, rng.randrange(table.num_rows), label="v")
        assert view.scene is not None
        boxes = []
        for one in view.scene.shapes:
            if isinstance(one, Words):
                wide = width(one.text, one.size)
                left = one.x - {"start": 0, "middle": wide / 2, "end": wide}[one.anchor]
                boxes.append((left, left + wide, one.y - one.size, one.y, one.text))
                assert one.bold or left + wide <= view.scene.width, f"seed {seed}: {one}"
        for number, (left, right, top, bottom, text) in enumerate(boxes):
            for other in boxes[number + 1 :]:
                apart = right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top
                assert apart, f"seed {seed}: {text!r} lies over {other[4]!r}"


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    view = stretto.timeline(found(), EVENTS, 1, label="type")
    view.save(tmp_path / "t.png")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert view.png(dark=True) != view.png()
    for kind, begins in ((".svg", "<svg"), (".html", "<!doctype html>"), (".txt", "match 1: k x")):
        view.save(tmp_path / f"t{kind}")
        assert (tmp_path / f"t{kind}").read_text(encoding="utf-8").startswith(begins)
    with pytest.raises(stretto.OptionError, match=r"end it in \.svg, \.png, \.html or \.txt"):
        view.save(tmp_path / "t.gif")


def test_png_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(stretto.OptionError, match=r"PNG needs matplotlib: pip install 'stretto\[draw\]'"):
        stretto.timeline(found()).png()


if __name__ == "__main__":
    GOLDEN.write_text(stretto.timeline(found(), EVENTS, 1).svg() + "\n", encoding="utf-8")
