"""Random small EQL queries and streams: the engine, cut in random pieces and saved between them, against the definition."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stretto.engines.programs import LatestProgram
from stretto.frame import Section
from stretto.matching.compiled import Query, compile_query
from stretto.query.passes.bind_eql import BoundEql
from tests.conformance.adapters import rows_of
from tests.conformance.vectors import Row
from tests.reference.eql import evaluate_eql

__all__ = ["Case", "case", "check", "expected"]

SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "t": pa.int64(),
        "k": pa.int64(),
        "u": pa.int32(),
        "v": pa.int64(),
        "name": pa.string(),
        "x": pa.float64(),
    }
)


@dataclass(frozen=True)
class Case:
    """A query's text and its events."""

    query: str
    events: pa.Table

    @property
    def compiled(self) -> Query:
        return compile_query(self.query, SCHEMA, time="t", time_unit="s", language="eql")

    def __repr__(self) -> str:
        rows = "\n  ".join(map(str, self.events.to_pylist()))
        return f"{self.query}\n  {rows}"


def case(seed: int) -> Case:
    """A case from a seed.

    >>> print(case(3).query.split()[0])
    sequence
    """
    choose = random.Random(seed)
    return Case(_query(choose), _events(choose))


def _query(choose: random.Random) -> str:
    mode = choose.choices(["event", "sequence", "sample", "join"], [1, 8, 2, 2])[0]
    if mode == "event":
        return _event(choose)
    keys = (
        choose.choice([("k",), ("?u",)])
        if mode == "sample"
        else choose.choice([(), ("k",), ("k", "u"), ("?k",), ("k", "?u")])
    )
    apart = choose.random() < 0.3 and not keys and mode != "sample"
    by = f" by {', '.join(keys)}" if keys else ""
    count = choose.randint(2, 4)
    if mode == "sample":
        return f"sample{by} " + " ".join(f"[{_event(choose)}]" for _ in range(count))
    parts: list[str] = []
    timed = mode == "sequence" and choose.random() < 0.6
    for at in range(count):
        missing = timed and choose.random() < 0.25 and (at or count > 1)
        runs = f" with runs={choose.randint(1, 3)}" if mode == "sequence" and choose.random() < 0.15 else ""
        own = f" by {choose.choice(['k', 'u'])}" if apart else ""
        parts.append(f"{'!' * bool(missing)}[{_event(choose)}]{own}{runs}")
    if all(one.startswith("!") for one in parts):
        parts[0] = parts[0].removeprefix("!")
    until = f" until [{_event(choose)}]{' by k' if apart else ''}" if choose.random() < 0.3 else ""
    maxspan = f" with maxspan={choose.randint(1, 8)}s" if timed else ""
    return f"{mode}{by}{maxspan} {' '.join(parts)}{until}"


def _event(choose: random.Random) -> str:
    category = choose.choices(["A", "B", "C", "any"], [3, 3, 2, 1])[0]
    conditions = [
        "true", "true", "v > 0", "not v > 0", "v != 1", "v == null", 'name : "a*"', 'not name : ("a*", "?b")', 'name in ("ab", "AB")',
        'name in~ ("ab")',
        'name like "*b"', 'name regex~ "a.?"', "length(name) > 1", "v / 2 == 0", '?lost == null',
        'startsWith(name, "a")',
        'indexOf~(name, "B") == 1', 'substring(name, -1) == "b"', 'concat(name, v) == "a1"', 'number(string(v)) == 1',
        "v + 1 > 1 and k == 0",
        'endsWith~(name, name)', 'between(name, "a", "b") == ""', 'v in (0, 2) or name != null', 'cidrMatch(name, "10.0.0.0/8")',
    ]  # fmt: skip
    return f"{category} where {choose.choice(conditions)}"


def pipes(choose: random.Random, events: int) -> str:
    """Some pipes behind a query whose matches have so many events."""

    def field() -> str:
        name = choose.choice(["k", "u", "v", "name", "type", "x"])
        return choose.choice([name, f"events[{choose.randrange(events)}].{name}"])

    def condition() -> str:
        one = f"events[{choose.randrange(events)}]"
        made = [
            f"{one}.v > 0",
            f"v == {one}.v",
            f'not {one}.name : "a*"',
            f"length({one}.name) > v",
            f"{one}.k == null",
            "?lost == null",
        ]
        return choose.choice([*made, "true", f"{one}.x < 1"])

    found = []
    for _ in range(choose.randint(1, 3)):
        match choose.choice(["filter", "filter", "head", "tail", "sort", "sort", "unique"]):
            case "filter":
                found.append(f"| filter {condition()}")
            case "head" | "tail" as name:
                found.append(f"| {name} {choose.randint(1, 5)}")
            case name:
                lacking = choose.choice([[], [], ["?lost"]])
                found.append(f"| {name} {', '.join([*(field() for _ in range(choose.randint(1, 2))), *lacking])}")
    return " ".join(found)


def _events(choose: random.Random) -> pa.Table:
    time, rows = 0, []
    for _ in range(choose.randint(0, 24)):
        time += choose.choice([0, 1, 1, 2, 4])
        rows.append(
            {
                "type": choose.choices(["A", "B", "C", "D", None], [4, 4, 3, 1, 0.3])[0],
                "t": time,
                "k": choose.choice([0, 0, 1, None]),
                "u": choose.choice([0, 1, 1, None]),
                "v": choose.choice([0, 1, 2, None]),
                "name": choose.choice(["a", "ab", "AB", "b", "", "10.1.2.3", None]),
                "x": choose.choice([0.0, -0.0, 1.5, float("nan"), None]),
            }
        )
    return pa.Table.from_pylist(rows, SCHEMA)


def expected(case: Case) -> list[Row]:
    """What the definition says."""
    bound = case.compiled.bound
    assert isinstance(bound, BoundEql)
    return [(one.start, one.end, one.positions) for one in evaluate_eql(bound, case.events)]


def check(case: Case, seed: int) -> int:
    """Compare the engine with the definition; how many matches there are."""
    wanted = expected(case)
    bound = case.compiled.bound
    assert isinstance(bound, BoundEql)
    chosen = case.compiled.program()
    for program in [LatestProgram(bound)] + [chosen] * (not isinstance(chosen, LatestProgram)):
        for cuts in (None, random.Random(seed)):
            found = _found(program, case.events, cuts)
            assert sorted(found) == sorted(wanted), f"{case}\n  expected {wanted}\n  found    {found}"
    return len(wanted)


def _found(program: Any, events: pa.Table, cuts: random.Random | None) -> Sequence[Any]:
    """The engine's matches: of the table at once, or of pieces with what is saved between them."""
    run = program.start(capacity=1 if cuts else 64)
    found: list[Row] = []
    read = list(program.columns) or events.column_names
    at = 0
    while at < events.num_rows:
        size = events.num_rows if cuts is None else cuts.choice([1, 1, 2, 5])
        batch = events.select(read).slice(at, size).combine_chunks().to_batches()[0]
        for matches in run.advance(batch):
            found += rows_of(matches)
        at += size
        if cuts and cuts.random() < 0.3:
            section = Section()
            held = run.live().tolist()
            run.save(section)
            run = program.start(capacity=1)
            run.load(section)
            assert run.live().tolist() == held
        if cuts and cuts.random() < 0.3:
            for matches in run.reach(events.column("t")[min(at, events.num_rows) - 1].as_py()):
                found += rows_of(matches)
    return [*found, *(row for matches in run.finish() for row in rows_of(matches))]
