"""SASE+ queries whose conditions are equalities between events: split by keys, and not, against the reference evaluator.

Columns of several types may hold one key; some components are related by no equality, or by one that does not make a key.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from stretto.errors import QueryError
from stretto.events import Schema
from stretto.matching.api.match import match
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query, compile_query
from stretto.query.passes.bind_sase import BoundSase
from tests.reference.sase import evaluate_sase

__all__ = ["ApartCase", "case", "check"]

#: By the type of an event, the column that most conditions read as its key.
COLUMNS = {"A": "id", "B": "ref", "C": "id", "D": "s", "E": "w"}


@dataclass(frozen=True)
class ApartCase:
    """A query, the schema it is bound to, and events in stream order."""

    query: Query
    events: pa.Table

    @property
    def is_split(self) -> bool:
        return self.query.split is not self.query.bound

    def __repr__(self) -> str:
        rows = "\n".join(f"  {number}: {row}" for number, row in enumerate(self.events.to_pylist()))
        return f"{self.query.text}\n  {self.events.schema.types}\n  split: {self.query.split.partition_by}\n{rows}"


def case(seed: int) -> ApartCase:
    """A case from a seed."""
    draw = random.Random(seed)
    while True:
        text = _text(draw)
        events = _events(draw, re.findall(r"(?<![~(])\b([A-E])\+? [a-d]\b", text))
        try:
            query = compile_query(text, Schema.of(events.schema, time="t"))
            query.program()
        except QueryError:
            continue  # kinds that do not compare, or references that are not one value: drawn again
        return ApartCase(query, events)


def _text(draw: random.Random) -> str:
    variables = "abcd"[: draw.choice([1, 2, 2, 2, 3, 3, 4])]
    pool = draw.choice(["AB", "AC", "ABC", "ABC", "ABCD", "ABCDE"])
    columns = (
        dict(COLUMNS)
        if draw.random() < 0.7
        else dict.fromkeys(COLUMNS, draw.choice(["id", "id", "s", "w", "n", "day"]))
    )
    kinds = {name: draw.choice(pool) for name in variables}
    kleene = {name for name in variables if draw.random() < 0.4}
    parts = []
    conditions = []
    for at, name in enumerate(variables):
        for negated in "mn" if draw.random() < 0.15 else "":
            if (at or draw.random() < 0.3) and negated not in kinds and draw.random() < 0.6:
                kinds[negated] = draw.choice(pool)
                parts.append(f"~({kinds[negated]} {negated})")
                if draw.random() < 0.85:
                    other = draw.choice(variables)
                    shown = f"{other}[1]" if other in kleene else other
                    conditions.append(f"{negated}.{columns[kinds[negated]]} = {shown}.{columns[kinds[other]]}")
        two = f"({kinds[name]}|{draw.choice('XF')})" if draw.random() < 0.1 else kinds[name]
        parts.append(f"{two}+ {name}[]" if name in kleene else f"{two} {name}")
    for at, name in enumerate(variables):
        own = columns[kinds[name]]
        if name in kleene and draw.random() < 0.75:
            before = draw.choice(["i-1", "1"]) if not at or draw.random() < 0.6 else ""
            other = variables[draw.randrange(at)] if at else name
            end = f"{name}[{before}].{own}" if before else f"{_some(draw, other, kleene)}.{columns[kinds[other]]}"
            conditions.append(f"{name}[i].{own} = {end}")
        if at and draw.random() < 0.9:
            other = variables[draw.randrange(at)] if draw.random() < 0.9 else draw.choice(variables)
            mine = _some(draw, name, kleene, first=0.9)
            if other != name:
                conditions.append(f"{mine}.{own} = {_some(draw, other, kleene)}.{columns[kinds[other]]}")
    for name in variables:
        if draw.random() < 0.25:
            shown = f"{name}[{draw.choice(['1', 'i'])}]" if name in kleene else name
            conditions.append(draw.choice([f"{shown}.v > 0", f"{shown}.v IS NOT NULL", f"{shown}.v + 1 < 4"]))
        if name in kleene and draw.random() < 0.15:
            conditions.append(draw.choice([f"{name}.LEN < 3", f"{name}[i].v >= {name}[i-1].v", f"sum({name}[].v) < 6"]))
    if draw.random() < 0.2:
        conditions.append("[region]")
    draw.shuffle(conditions)
    strategy = draw.choice(
        ["skip_till_any_match"] * 4 + ["skip_till_next_match"] * 4 + ["strict_contiguity", "partition_contiguity"]
    )
    at_end = draw.random() < 0.08
    parts += [f"~({draw.choice(pool)} z)"] if at_end else []
    if at_end and draw.random() < 0.8:
        other = variables[0]
        conditions.append(f"z.{draw.choice(['id', 'ref'])} = {_some(draw, other, kleene)}.{columns[kinds[other]]}")
    window = draw.choice(
        ["WITHIN 4", "WITHIN 8"] if "~" in parts[0] + parts[-1] else ["", "WITHIN 4", "WITHIN 8", "WITHIN 6 EVENTS"]
    )
    returned = f"RETURN {_some(draw, variables[0], kleene, first=1)}.v AS v"
    more = draw.choice([""] * 12 + ["OUTPUT non_overlap", "KEEP LONGEST", returned])
    return f"PATTERN SEQ({', '.join(parts)}) WHERE {strategy} {{ {' AND '.join(conditions)} }} {window} {more}".strip()


def _some(draw: random.Random, name: str, kleene: set[str], first: float = 0.4) -> str:
    """A variable's event, or one or each of its events."""
    if name not in kleene:
        return name
    return f"{name}[1]" if draw.random() < first else draw.choice([f"{name}[i]", f"{name}[{name}.LEN]"])


def _events(draw: random.Random, kinds_of_match: Sequence[str]) -> pa.Table:
    few = draw.random() < 0.6
    keys = [1, 1, 1, 2] if few else [1, 2, None]
    script: list[str] = []
    rows: list[dict[str, Any]] = []
    now = 0
    for _ in range(draw.randint(4, 12)):
        now += draw.choice([0, 1, 1, 2])
        script = script or list(kinds_of_match)
        likely = script.pop(0) if script and draw.random() < 0.7 else draw.choice(["A", "B", "C", "D", "E", "X", None])
        rows.append(
            {
                "type": likely,
                "t": now,
                "id": draw.choice(keys),
                "ref": draw.choice(keys),
                "s": draw.choice(["1", "1", "2"] if few else ["1", "2", None]),
                "w": draw.choice([0.0, -0.0, 1.0, float("nan"), None]),
                "n": draw.choice([Decimal("1.0"), Decimal("1.0"), Decimal("2.5"), None]),
                "day": draw.choice([0, 0, 86_400_000, None]),
                "v": draw.choice([0, 1, 2, None]),
                "region": draw.choice(["x", "x", "y", None]),
            }
        )
    ints = [pa.int64(), pa.int32(), pa.uint8(), pa.int64()]
    texts = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
    kinds = {
        "type": draw.choice(texts[::2]),
        "t": pa.int64(),
        "id": draw.choice(ints),
        "ref": draw.choice([*ints, pa.float64(), pa.decimal128(9, 1)]),
        "s": draw.choice(texts),
        "w": pa.float64(),
        "n": pa.decimal128(6, 1),
        "day": pa.timestamp("ms"),
        "v": pa.int64(),
        "region": draw.choice(texts),
    }
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def check(case: ApartCase, seed: int = 0) -> int:
    """Raise an AssertionError unless the query gives what the definition says, split where it may be; how many matches it has."""
    draw = random.Random(seed)
    bound = case.query.bound
    assert isinstance(bound, BoundSase)
    if bound.parsed.keep is not None:  # the definition of what is kept is tried elsewhere
        assert not case.is_split
        return 0
    wanted = sorted(repr((one.start, one.end, one.bindings)) for one in evaluate_sase(bound, case.events))
    names = [one.variable for one in bound.parsed.positive]
    found = match(case.query, case.events)
    assert len(wanted) == found.num_rows, f"{case}\n{found.num_rows} rows\nwanted {wanted}"
    if bound.returns is None:
        whole = sorted(map(repr, found.select(["start", "end", "positions"]).to_pylist()))
        rows = [
            {"start": one.start, "end": one.end, "positions": sorted({at for _, held in one.bindings for at in held})}
            for one in evaluate_sase(bound, case.events)
        ]
        assert whole == sorted(map(repr, rows)), f"{case}\n{whole}"
        assert found.column_names[5:] == [*bound.partition_by, *names]
    late = draw.choice(["error", "drop"])
    matcher = Matcher(case.query, late=late, capacity=1)
    pieces, begin = [], 0
    while begin < case.events.num_rows:
        size = draw.choice([1, 2, 5])
        pieces.append(matcher.push(case.events.slice(begin, size)))
        matcher = Matcher(case.query, late=late, capacity=1).restore(matcher.snapshot())
        begin += size
    got = pa.concat_tables([*pieces, matcher.finish()]).to_pylist()
    assert sorted(map(repr, got)) == sorted(map(repr, found.to_pylist())), f"{case}\n{got}"
    ends = [row["end"] for row in got]
    assert ends == sorted(ends) or bound.parsed.last_negation is not None, f"{case}\n{ends}"
    whole = case.query.program()
    run = whole.start()
    batches = case.events.select(list(whole.columns)).combine_chunks().to_batches()
    count = sum(one.start.size for batch in batches for one in run.advance(batch)) + sum(
        one.start.size for one in run.finish()
    )
    assert count == len(wanted), f"{case}\nwhole: {count}"
    return len(wanted)
