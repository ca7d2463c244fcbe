"""Public correlation rules, said as rules of ours: each of their tests gives what they expect.

A rule is a group of events of one key within a time, in any order (a test of one that says «chronological» expects a match out of
order, too): some so often, and some that must not be there. The rules are read where real data lie (``STRETTO_DATA``).
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import stretto


def orders(wanted: list[tuple[str, int]]) -> Iterator[list[str]]:
    """Orders in which so many events of each type may come: one beside many stands anywhere, many beside many before or behind."""
    if len(wanted) == 2 and 1 in (wanted[0][1], wanted[1][1]):
        (one, _), (other, count) = sorted(wanted, key=lambda item: item[1])
        for before in range(count + 1):
            yield [*[other] * before, one, *[other] * (count - before)]
        return
    for order in permutations(wanted):
        yield [name for name, count in order for _ in range(count)]


def query_of(group: list[Mapping[str, Any]], minutes: int, keyed: bool) -> str:
    """The group as CEQL: alternatives, one for each order, with what must not be there between all events and at the ends."""
    names = {one["ID"]: f"T{number}" for number, one in enumerate(group)}
    wanted = [(names[one["ID"]], one.get("MinMatchCount", 1)) for one in group if not one.get("Absence")]
    absent = [names[one["ID"]] for one in group if one.get("Absence")]
    if absent:
        ((name, _),) = wanted
        formula = f"NOT {absent[0]} ; {name} ; NOT {absent[0]}"
    else:
        formula = " OR ".join(f"({' ; '.join(order)})" for order in orders(wanted))
    key = " PARTITION BY [key]" if keyed else ""
    return f"SELECT * FROM S WHERE {formula}{key} WITHIN {minutes} minutes"


def seconds(given: Any) -> int:
    """Tests say minutes, or a time."""
    return 60 * given if isinstance(given, int) else int(dt.datetime.fromisoformat(given).timestamp())


def events_of(test: Mapping[str, Any], names: Mapping[str, str], minutes: int) -> list[dict[str, Any]]:
    """The events of a test, and one behind all windows: rules leave out what is not decided."""
    found = [
        {"type": names[output["ID"]], "t": seconds(at), "key": key}
        for output in test["RuleOutputs"]
        for by_key in output["Matches"].values()
        for key, times in by_key.items()
        for at in times
    ]
    found.sort(key=lambda event: event["t"])
    return [*found, {"type": "later", "t": found[-1]["t"] + 60 * minutes + 1, "key": "none"}] if found else found


def written(case: Mapping[str, Any]) -> str:
    """A rule and its tests as TOML."""
    (detection,) = case["detection"]
    group = detection["Group"]
    names = {one["ID"]: f"T{number}" for number, one in enumerate(group)}
    query = query_of(
        group,
        detection["LookbackWindowMinutes"],
        "MatchCriteria" in detection,
    )
    lines = ["[[rule]]", f"id = {json.dumps(case['id'])}", f"query = {json.dumps(query)}"]
    for test in case["tests"]:
        rows = [
            "{" + ", ".join(f"{name} = {json.dumps(value)}" for name, value in event.items()) + "}"
            for event in events_of(test, names, detection["LookbackWindowMinutes"])
        ]
        lines += [
            "[[rule.test]]",
            f"name = {json.dumps(test['Name'])}",
            f"matches = {json.dumps(test['ExpectedResult'])}",
        ]
        lines.append(f"events = [{', '.join(rows)}]")
    return "\n".join(lines) + "\n"


def test_correlation_rules(data: Path, tmp_path: Path) -> None:
    cases = json.loads((data / "rules" / "panther_correlation_rules.json").read_text(encoding="utf-8"))["cases"]
    head = '[events]\ntime = "t"\ntime_unit = "s"\ncolumns = { type = "string", t = "bigint", key = "string" }\n'
    (tmp_path / "rules.toml").write_text(head, encoding="utf-8")
    for number, case in enumerate(cases):
        (tmp_path / f"{number}.toml").write_text(written(case), encoding="utf-8")
    rules = stretto.read_rules(tmp_path)
    assert not rules.problems
    found = rules.test()
    assert (len(rules.rules), found.num_rows) == (28, 82)
    assert [(row["rule"], row["test"], row["why"]) for row in found.to_pylist() if not row["passed"]] == []


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([("A", 1), ("B", 1)], ["AB", "BA"]),
        ([("A", 1), ("B", 2)], ["ABB", "BAB", "BBA"]),
        ([("A", 2), ("B", 2)], ["AABB", "BBAA"]),
        ([("A", 1), ("B", 1), ("C", 1)], ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"]),
    ],
)
def test_orders(wanted: list[tuple[str, int]], expected: list[str]) -> None:
    assert sorted({"".join(one) for one in orders(wanted)}) == expected
