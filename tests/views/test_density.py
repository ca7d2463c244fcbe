"""Matches over time, and of which keys."""

from __future__ import annotations

import datetime as dt
import random
import xml.etree.ElementTree as ET

import pyarrow as pa
import pytest

import stretto
from stretto.views.clock import Clock
from stretto.views.scene import Box
from tests.conftest import cases


def table(times: list[int | None], keys: list[str | None] | None = None, sign: list[int] | None = None) -> pa.Table:
    columns = {} if sign is None else {"sign": pa.array(sign, pa.int8())}
    columns |= {"start_time": pa.array(times, pa.int64()), "end_time": pa.array(times, pa.int64())}
    return pa.table(columns | ({} if keys is None else {"k": pa.array(keys, pa.string())}))


def test_a_histogram_as_text() -> None:
    view = stretto.density(table([0, 0, 0, 5, 10, None]), bins=5)
    assert str(view).splitlines() == ["5 matches by end_time, from 0 to 10", "█ ▃ ▃"]
    assert ET.fromstring(view.svg()) is not None


def test_keys_by_their_number_and_the_others_together() -> None:
    view = stretto.density(table([0, 1, 2, 3, 4, 5], ["<a>", None, "b", "b", "c", "d"]), by="k", bins=6, keys=2)
    lines = str(view).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["b", "<a>", "3"]
    assert [line.split()[-1] for line in lines[1:]] == ["2", "1", "3"]
    assert "&lt;a&gt;" in view.svg()


def test_rows_that_take_back() -> None:
    view = stretto.density(table([0, 0, 10, 10], sign=[1, -1, 1, 1]), bins=2)
    assert str(view).splitlines() == ["2 matches by end_time, from 0 to 10", " █"]


def test_all_matches_are_counted_in_a_part() -> None:
    """Against a count by hand, of random times, numbers of parts and keys."""
    for seed in range(cases(200)):
        rng = random.Random(seed)
        times = [rng.randint(-50, 50) * 10 ** rng.randint(0, 9) for _ in range(rng.randint(1, 60))]
        keys = [rng.choice("abcdef") for _ in times]
        bins, most = rng.randint(1, 20), rng.randint(1, 7)
        view = stretto.density(table(times, keys), by="k", bins=bins, keys=most)
        assert view.scene is not None
        shown = [
            int(one.title.splitlines()[0].rpartition(": ")[2].replace(",", ""))
            for one in view.scene.shapes
            if isinstance(one, Box) and one.role == "heat"
        ]
        assert sum(shown) == len(times), f"seed {seed}"
        ordered = sorted({keys.count(one) for one in keys}, reverse=True)
        assert str(view).splitlines()[1].split()[-1] == str(ordered[0]), f"seed {seed}"


@pytest.mark.parametrize("empty", [table([]), table([None])])
def test_no_matches(empty: pa.Table) -> None:
    assert str(stretto.density(empty)) == "no matches"


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (table([1], ["a"]), {"by": "key"}, "by='key': there is no such column"),
        (pa.table({"n": [1]}), {}, "the table has neither"),
        (table([1]), {"bins": 0}, "bins is from 1 to 1,000"),
        (table([1]), {"bins": 10**9}, "bins is from 1 to 1,000"),
        (pa.table({"end": [1], "x": [[1]]}), {"by": "x"}, "name a column of single values"),
    ],
)
def test_mistakes(given: pa.Table, options: dict, message: str) -> None:
    with pytest.raises(stretto.OptionError, match=message):
        stretto.density(given, **options)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Athens", "Asia/Kathmandu"])
def test_marks_of_an_axis(unit: str, zone: str | None) -> None:
    """They ascend, lie in the range, are few, and their labels name them."""
    clock = Clock(pa.timestamp(unit, tz=zone))
    for seed in range(cases(200)):
        rng = random.Random(seed)
        low = int(rng.uniform(-(10**9), 4 * 10**9) * clock.per_second)
        high = low + max(1, int(10 ** rng.uniform(-9, 9.5) * clock.per_second))
        marks = clock.marks(low, high, 7)
        values = [one.value for one in marks]
        assert values == sorted(set(values)), f"seed {seed}"
        assert len(marks) <= 9, f"seed {seed}"
        slack = 1e-6 * (high - low) + 1e-9 * abs(high)
        assert all(low - slack <= one <= high + slack for one in values), f"seed {seed}"
        assert len({one.label for one in marks}) == len(marks) or high - low < clock.per_second, f"seed {seed}"


def test_marks_are_at_round_places_of_the_zone() -> None:
    clock = Clock(pa.timestamp("s", tz="Asia/Kathmandu"))
    noon = int(dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC).timestamp())
    assert [one.label for one in clock.marks(noon, noon + 6 * 3_600, 7)] == [
        "2026-03-01 18:00",
        "19:00",
        "20:00",
        "21:00",
        "22:00",
        "23:00",
    ]
    assert [one.label for one in Clock(pa.int64()).marks(0, 97, 5)] == ["0", "20", "40", "60", "80"]
    years = Clock(pa.date32()).marks(0, 20_000, 7)
    assert [one.label for one in years] == ["1970", "1980", "1990", "2000", "2010", "2020"]


def test_long_keys_are_told_apart_by_their_ends() -> None:
    keys: list[str | None] = [f"https://example.org/a/long/path/of/a/key/{one}" for one in (17, 18, 18)]
    view = stretto.density(table([0, 1, 2], keys), by="k", bins=3)
    shown = [line.split()[0] for line in str(view).splitlines()[1:]]
    assert shown == ["https://exa…/of/a/key/18", "https://exa…/of/a/key/17"]
    assert view.scene is not None
    assert f"{keys[0]}: 1\n0 – 0.6666666667" in [one.title for one in view.scene.shapes if isinstance(one, Box)]


def test_one_time_alone() -> None:
    assert str(stretto.density(table([5, 5]), bins=2)).splitlines() == ["2 matches by end_time, at 5", "█ "]


@pytest.mark.parametrize("ends", [(-1.7e308, 1.7e308), (0.0, 1.7e308), (0.0, 5e-324), (2.0**62, 2.0**62)])
def test_numbers_at_the_ends_of_doubles(ends: tuple[float, float]) -> None:
    table = pa.table({"start_time": [min(ends)] * 2, "end_time": list(ends), "a": [[{"t": end}] for end in ends]})
    view = stretto.density(table, bins=4)
    assert str(view).count("█") == 1 + (ends[0] < ends[1])
    for picture in (view.svg(), stretto.timeline(table, row=[0, 1]).svg()):
        assert "nan" not in picture
        assert "inf" not in picture
