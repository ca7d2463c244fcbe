"""Vectors of counts, sums, the best matches and samples (``totals/*.toml``): the definition, ``match``, and a ``Matcher``."""

from __future__ import annotations

import math
import random
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import StrettoError
from stretto.query.passes.bind_totals import BoundBest, BoundTotals
from tests.cases.revised import numbered
from tests.conformance.vectors import table
from tests.reference.totals import Overflow, Undecided, best_of, parts, total_rows

FOLDER = Path(__file__).parent / "totals"
CASES = [
    (case, language)
    for path in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    for language in ("ceql", "sase")
    if language in case
]
NAMES = [f"{case['name']} ({language})" for case, language in CASES]


def options(case: dict[str, Any]) -> dict[str, Any]:
    return {"time": "t", "valuations": case.get("valuations", False)}


def defined(query: stretto.Query, case: dict[str, Any], events: pa.Table) -> Any:
    """What the definition gives, as a vector has it."""
    bound, valuations = query.bound, case.get("valuations", False)
    asked = bound.asked
    if isinstance(asked, BoundTotals):
        return rows_of(total_rows(bound, events, valuations=valuations))
    assert asked is not None
    if isinstance(asked, BoundBest):
        found = best_of(bound, events, valuations=valuations)
    else:
        found = parts(bound, events, valuations=valuations)
    windows = asked.scope.panes is not None
    return sorted(
        [*(part.place if windows else ()), one.start, one.end, list(one.positions)]
        for part in found
        for one in part.matches
    )


def rows_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without NULLs, and without times, which the definition does not name."""
    return [
        {name: value for name, value in row.items() if value is not None and name not in ("start_time", "end_time")}
        for row in rows
    ]


def shown(case: dict[str, Any], found: pa.Table) -> Any:
    """A result as a vector has it."""
    rows = found.to_pylist()
    if "rows" in case:
        return sorted(rows_of(rows), key=repr)
    windows = ["window_start"] if "window_start" in found.column_names else []
    return sorted([row[name] for name in (*windows, "start", "end", "positions")] for row in rows)


def agrees(case: dict[str, Any], found: Any) -> bool:
    """Whether a result is what a vector says."""
    if "of" in case:
        return len(found) == case["number"] and all(one in case["of"] for one in found)
    return bool(found == (sorted(case["rows"], key=repr) if "rows" in case else sorted(case["matches"])))


def pushed(query: stretto.Query, case: dict[str, Any], events: pa.Table, seed: int) -> pa.Table:
    """What a matcher gives that is fed in random pieces, and goes through a snapshot between two."""
    choose = random.Random(seed)
    own = {"valuations": case.get("valuations", False), "capacity": 1}
    matcher, tables, low = stretto.Matcher(query, **own), [], 0
    while low < events.num_rows:
        size = choose.choice([1, 1, 2, 5])
        tables.append(matcher.push(events.slice(low, size)))
        matcher = stretto.Matcher(query, **own).restore(matcher.snapshot()) if choose.random() < 0.5 else matcher
        low += size
    return pa.concat_tables([*tables, matcher.finish()])


@pytest.mark.parametrize(("case", "language"), CASES, ids=NAMES)
def test_the_definition(case: dict[str, Any], language: str) -> None:
    events = table(case["events"]).drop_columns(["sign"])
    query = stretto.compile(case[language], events.schema, time="t")
    if "refused" in case:
        with pytest.raises((Undecided, Overflow)):
            defined(query, case, events)
        return
    found = defined(query, case, events)
    if "of" in case:
        assert found == case["of"]
    else:
        assert found == (case["rows"] if "rows" in case else sorted(case["matches"]))


@pytest.mark.parametrize(("case", "language"), CASES, ids=NAMES)
def test_here(case: dict[str, Any], language: str) -> None:
    events = table(case["events"]).drop_columns(["sign"])
    query = stretto.compile(case[language], events.schema, time="t")
    if "refused" in case:
        with pytest.raises(StrettoError, match=case["refused"]):
            stretto.match(query, events, **options(case))
        return
    found = shown(case, stretto.match(query, events, **options(case)))
    assert agrees(case, found), found
    for seed in range(4):
        found = shown(case, pushed(query, case, events, seed))
        assert agrees(case, found), (seed, found)


@pytest.mark.parametrize(("case", "language"), CASES, ids=NAMES)
def test_ahead_of_what_is_certain(case: dict[str, Any], language: str) -> None:
    """Events come in any order; what is given and not taken back is what the vector says."""
    if "refused" in case:
        return
    events = table(case["events"]).drop_columns(["sign"])
    choose = random.Random(len(case["events"]))
    order = choose.sample(range(events.num_rows), events.num_rows)
    matcher = stretto.Matcher(
        stretto.compile(case[language], events.schema, time="t"),
        valuations=case.get("valuations", False),
        sequence="n",
        speculation=math.inf,
        capacity=1,
    )
    left: list[dict[str, Any]] = []
    given = [matcher.push(events.take(pa.array([at], pa.int64()))) for at in order]
    for row in (row for found in (*given, matcher.finish()) for row in found.to_pylist()):
        sign = row.pop("sign")
        if sign > 0:
            left.append(numbered(row, order))
        else:
            left.remove(numbered(row, order))
    found = shown(case, pa.Table.from_pylist(left)) if left else []
    assert agrees(case, found), found
