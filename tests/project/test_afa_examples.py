"""The examples with AFAs, on their own small files and on real data, against what a few lines of Python find."""

from __future__ import annotations

import importlib
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import COMPILED
from tests.programs import shown

FOLDER = Path(__file__).parents[2] / "examples" / "afa"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


# ---- Uncertain streams


def test_probability_of_a_journey_is_that_of_its_worlds() -> None:
    """A world is a subset of the readings that happened; in a journey's, exactly dock, belt and truck are left of the interval."""
    uncertain = load("uncertain")
    rows = uncertain.READINGS.to_pylist()
    expected: Counter[tuple[int, int]] = Counter()
    for first, last in itertools.combinations(range(len(rows)), 2):
        for happened in itertools.product((True, False), repeat=last - first + 1):
            inside = rows[first : last + 1]
            left = [row["reader"] for row, here in zip(inside, happened, strict=True) if here]
            if happened[0] and happened[-1] and left == ["dock", "belt", "truck"]:
                chances = (row["prob"] if here else 1 - row["prob"] for row, here in zip(inside, happened, strict=True))
                expected[first, last] += math.prod(chances)
    found: Counter[tuple[int, int]] = Counter()
    for row in uncertain.journeys(uncertain.READINGS, threshold=0).to_pylist():
        found[row["start"], row["end"]] += row["register"]["rprob"]
    assert found == pytest.approx(expected)
    assert len(expected) == 4


def test_threshold_gives_up_what_is_improbable() -> None:
    uncertain = load("uncertain")
    every = uncertain.journeys(uncertain.READINGS, threshold=0)
    kept = uncertain.journeys(uncertain.READINGS, threshold=0.05)
    chances = [row["rprob"] for row in kept.column("register").to_pylist()]
    assert len(chances) == sum(row["rprob"] >= 0.05 for row in every.column("register").to_pylist())
    assert min(chances) >= 0.05


def test_fading_lamp() -> None:
    uncertain = load("uncertain")
    lamps = uncertain.LAMPS.to_pylist()
    expected = {}
    for first, last in itertools.combinations(range(len(lamps)), 2):
        between = [lamp["indigo"] for lamp in lamps[first + 1 : last]]
        chance = lamps[first]["blue"] * math.prod(between) * lamps[last]["green"]
        if between and chance >= 0.1:
            expected[first, last] = pytest.approx(chance)
    found = uncertain.fades(uncertain.LAMPS, threshold=0.1).to_pylist()
    assert {(row["start"], row["end"]): row["register"]["rprob"] for row in found} == expected
    assert len(found) == len(expected) == 3


# ---- Cleaning


def test_missing_steps_are_those_that_were_lost() -> None:
    missing = load("missing_steps")
    seen, unseen = missing.readings(books=300, lost=0.3, seed=5)
    found = {(row["book"], row["step"]): row["minute"] for row in missing.fill_ins(seen).to_pylist()}
    lost = {(row["book"], row["step"]): row["minute"] for row in unseen.to_pylist()}
    assert found.keys() == lost.keys()
    assert len(lost) > 60
    # The neighbours' times are whole minutes.
    assert all(abs(found[key] - lost[key]) <= 1.5 for key in lost)


# ---- V-patterns


def by_hand(name: str, ticks: list[dict[str, float]], days: int, drop: float) -> set[tuple[float, ...]]:
    """Days of first and last event, and number of V-patterns."""
    found: set[tuple[float, ...]] = set()
    for first, start in enumerate(ticks):
        if start["change"] >= -drop:
            continue
        rest = [tick for tick in ticks[first + 1 :] if tick["day"] < start["day"] + days]
        if name == "Q1":
            found |= {(start["day"], day, 2) for day in balanced(rest)}
        else:
            found |= {(start["day"], *one) for one in recovered(rest, start["price"] - start["change"])}
    return found


def balanced(rest: list[dict[str, float]]) -> Iterator[float]:
    """Where the second of two V-patterns ends, each of which has as many upticks as downticks."""
    signs = [1 if tick["change"] > 0 else -1 for tick in rest]
    ends = {0}
    for _ in range(2):
        after = set()
        for begin in ends:
            falls = next((n for n, sign in enumerate(signs[begin:]) if sign > 0), len(signs) - begin)
            if falls and signs[begin + falls : begin + 2 * falls] == [1] * falls:
                after.add(begin + 2 * falls)
        ends = after
    yield from (rest[end - 1]["day"] for end in ends)


def recovered(rest: list[dict[str, float]], before: float) -> Iterator[tuple[float, int]]:
    """When the price from before the drop is reached, and the valleys until then."""
    if not rest or rest[0]["change"] > 0:
        return
    valleys = 1
    for tick, after in zip(rest, [*rest[1:], None], strict=True):
        if tick["change"] > 0 and tick["price"] >= before:
            yield tick["day"], valleys
            return
        valleys += tick["change"] > 0 and after is not None and after["change"] < 0


@pytest.mark.parametrize("name", ["Q1", "Q2"])
@pytest.mark.parametrize("real", [False, True], ids=["small", "real"])
def test_v_patterns(name: str, real: bool, request: pytest.FixtureRequest) -> None:
    """In order as by hand; and as they come, what remains is the same, and what was final stays."""
    patterns = load("v_patterns")
    file = request.getfixturevalue("data") / "yhoo_daily_1996_2014.csv.gz" if real else patterns.MINIATURE
    ticks = patterns.ticks(file)
    afa = patterns.q1(2) if name == "Q1" else patterns.q2()
    expected = by_hand(name, ticks.to_pylist(), patterns.DAYS, patterns.DROP)
    assert {key(row) for row in stretto.match(afa, ticks, time="day").to_pylist()} == expected
    assert len(expected) > 10
    remaining: Counter[tuple[float, ...]] = Counter()
    final = None
    for changes, punctuation in patterns.run(afa, patterns.disordered(ticks, seed=3)):
        for row in changes.to_pylist():
            assert final is None or row["end_time"] >= final
            remaining[key(row)] += row["sign"]
        final = punctuation
    assert {one for one, count in remaining.items() if count} == expected
    assert set(remaining.values()) <= {0, 1}
    assert len(remaining) > len(expected)


def key(row: dict[str, Any]) -> tuple[float, ...]:
    return row["start_time"], row["end_time"], row["register"]["found"]


# ---- Head and shoulders


def heads(days: list[dict[str, Any]]) -> Iterator[tuple[Any, Any]]:
    """Dates of first and last event: from each day of a rise through three peaks and two valleys above its beginning."""
    for first, start in enumerate(days):
        floor, at, peaks = start["before"], first, []
        window = [day for day in days[first:] if (day["date"] - start["date"]).days < 90]
        at = 0
        while len(peaks) < 3:
            top = at
            while top < len(window) and window[top]["open"] > window[top]["before"]:
                top += 1
            if top == at or top == len(window):
                break
            peaks.append(window[top - 1]["open"])
            at = top
            while at < len(window) and window[at]["open"] <= window[at]["before"] and window[at]["open"] >= floor:
                at += 1
                if len(peaks) < 3 and window[at - 1]["open"] == floor:
                    at = len(window)
        else:
            if peaks[1] > peaks[0] and peaks[2] < peaks[1] and at < len(window) and window[at]["open"] < floor:
                yield start["date"], window[at]["date"]


@pytest.mark.parametrize("real", [False, True], ids=["small", "real"])
def test_head_and_shoulders(real: bool, request: pytest.FixtureRequest) -> None:
    charts = load("head_and_shoulders")
    patterns = load("v_patterns")
    file = request.getfixturevalue("data") / "yhoo_daily_1996_2014.csv.gz" if real else patterns.MINIATURE
    table = charts.days(file)
    found = [(row["start_time"], row["end_time"]) for row in charts.shoulders(table).to_pylist()]
    assert sorted(found) == sorted(heads(table.to_pylist()))
    assert len(found) == (63 if real else 5)


# ---- Rules that change


def alerts_by_hand(rows: list[dict[str, Any]]) -> Counter[tuple[str, str, int, int]]:
    """Rule, address, times of first and last event; hour by hour."""
    rules = load("rules")
    chains = {
        "guessing": (["FAILED_PASSWORD"], ["FAILED_PASSWORD"], ["MAX_AUTH_ATTEMPTS"]),
        "break-in": (["FAILED_PASSWORD"], ["FAILED_PASSWORD"], ["ACCEPTED"]),
    }
    tried = ["INVALID_USER", "FAILED_PASSWORD"]
    since: dict[str, float] = dict.fromkeys(chains, -math.inf)
    last: dict[str, int] = {}
    names: dict[str, set[str]] = {}
    waiting: list[tuple[str, str, int, int]] = []
    alerts: Counter[tuple[str, str, int, int]] = Counter()
    for _, group in itertools.groupby(rows, key=lambda row: row["timestamp"] // 3600):
        hour = list(group)
        for row in hour:
            now, goes_on = row["timestamp"], []
            for rule, ip, begin, step in waiting:
                if rule not in since or now >= begin + rules.SECONDS:
                    continue
                chain = chains.get(rule, (tried, tried))
                if row["src_ip"] != ip or row["event"] not in chain[step]:
                    goes_on.append((rule, ip, begin, step))
                elif step + 1 == len(chain):
                    alerts[rule, ip, begin, now] += 1
                    last[rule] = now
                else:
                    goes_on.append((rule, ip, begin, step + 1))
            waiting = goes_on
            for rule, after in since.items():
                named = rule in chains or row["user"] == rule.removeprefix("name ")
                if now > after and named and row["event"] in chains.get(rule, (tried,))[0]:
                    waiting.append((rule, row["src_ip"], now, 1))
        now = hour[-1]["timestamp"]
        for row in hour:
            if row["event"] in tried and row["user"]:
                names.setdefault(row["user"], set()).add(row["src_ip"])
        for user, addresses in names.items():
            if len(addresses) >= rules.ADDRESSES and f"name {user}" not in since:
                since[f"name {user}"] = last[f"name {user}"] = now
        for rule in [rule for rule in since if rule not in chains and now - last[rule] > 2 * rules.DAY]:
            del since[rule], names[rule.removeprefix("name ")]
    return alerts


@pytest.mark.parametrize("real", [False, True], ids=["small", "real"])
def test_rules(real: bool, request: pytest.FixtureRequest) -> None:
    rules = load("rules")
    table = rules.log(request.getfixturevalue("data") / "auth_log_ssh.csv.gz" if real else rules.MINIATURE)
    found: set[tuple[str, str, int, int]] = set()
    changes = []
    for _, alerts, changed in rules.run(table):
        for row in alerts.to_pylist():
            found.add((row["register"]["rule"], row["register"]["ip"], row["start_time"], row["end_time"]))
        changes += changed
    assert found == set(alerts_by_hand(table.to_pylist()))
    added = [change for change in changes if change.startswith("added")]
    assert len(added) == (11 if real else 1)
    assert len(changes) - len(added) == (9 if real else 1)


# ---- Negation


def test_negation_between() -> None:
    negation = load("negation")
    chance = random.Random(2)
    stocks = [chance.choice("ABCD") for _ in range(200)]
    trades = pa.table({"second": range(0, 4000, 20), "stock": stocks})
    expected = set()
    for first, stock in enumerate(stocks):
        after = next((n for n in range(first + 1, len(stocks)) if stocks[n] in "BC"), None)
        if stock == "A" and after is not None and stocks[after] == "B" and after - first < 30:
            expected.add((first, after))
    found = negation.between(trades)
    assert set(zip(*(found.column(name).to_pylist() for name in ("start", "end")), strict=True)) == expected


def test_negation_at_the_end() -> None:
    """Each punctuation shows what has become due since the one before."""
    negation = load("negation")
    chance = random.Random(4)
    times = sorted(chance.sample(range(10_000), 60))
    stocks = [chance.choice("AAB") for _ in times]
    expected = []
    for end in range(100, 12_000, 100):
        for time, stock in zip(times, stocks, strict=True):
            if stock == "A" and end - 100 <= time + negation.SECONDS < end:
                pairs = zip(times, stocks, strict=True)
                if not any(other == "B" and time < later <= time + negation.SECONDS for later, other in pairs):
                    expected.append((time, end))
    trades = pa.table({"second": times, "stock": stocks})
    assert negation.without_b(trades, list(range(100, 12_000, 100))) == expected
    assert expected


# ---- What they print


@pytest.mark.skipif(not COMPILED, reason="processes of their own, and the same code as above")
@pytest.mark.parametrize(
    ("script", "first"),
    [
        ("uncertain.py", "P1 from 0 to 15 s: 0.092"),
        ("missing_steps.py", "1161 readings of 200 books; 39 were lost, 39 are filled in"),
        ("v_patterns.py", "prices.csv: 293 ticks"),
        ("head_and_shoulders.py", "prices.csv: 5 times head and shoulders in 299 days"),
        ("rules.py", "ssh.csv: 15 events; the rules changed 2 times, first:"),
        ("negation.py", "A at 100, B at 410, no C between them"),
    ],
)
def test_programs_run(script: str, first: str, tmp_path: Path) -> None:
    assert shown(FOLDER / script, data=tmp_path)[0] == first
