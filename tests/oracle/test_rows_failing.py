"""Failures that are kept from one start of a match to the next: right whatever is read of the rows before, few, and forgotten."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto.engines.rows import backtracking, failing, program, reading, runner
from stretto.engines.rows.columns import Shifted
from stretto.errors import LimitError
from stretto.languages.match_recognize import parse
from stretto.matching.sql.row_pattern_table import recognize
from stretto.query.passes.bind_rows import bind
from tests.conftest import COMPILED, blocks, cases
from tests.engines.test_rows_cost import Counting
from tests.reference.match_recognize import evaluate

PATTERNS = ["A B*? C", "A+ B* C", "(A | B)+ C", "A (B | C)* D", "A B+ (A | C) D", "(A B?)+ C D?", "A B* C B* D"]
VALUES = [
    "{}.x",
    "{}.y",
    "2 * {}.x",
    "1.2 * {}.y",
    "200 + {}.x",
    "0.7 * {}.x",
    "FIRST({}.x)",
    "LAST({}.y, 1)",
    "- FIRST({}.y)",
]
VALUES += [
    "max({}.x)",
    "0.7 * max({}.y)",
    "min({}.y) + 1",
    "sum({}.x)",
    "-2 * sum({}.y)",
    "count({}.*)",
    "avg({}.x)",
    "FIRST(x)",
]
VALUES += [
    "PREV({}.x)",
    "NEXT({}.y)",
    "greatest({}.x, 2)",
    "(CASE WHEN {}.x > 1 THEN {}.y ELSE 0 END)",
    "abs({}.y - x)",
]
OWN = ["x", "y", "x + 1", "y * 2", "3", "2.5"]


def condition(rng: random.Random, names: str) -> str:
    value = rng.choice(VALUES).replace("{}", rng.choice(names))
    simple = f"{rng.choice(OWN)} {rng.choice(['<', '<=', '>', '>=', '=', '<>'])} {value}"
    if rng.random() < 0.7:
        return simple
    other = condition(rng, names)
    return rng.choice([f"({simple} AND {other})", f"({simple} OR {other})", f"NOT ({simple})", f"x - {value} > y"])


def several(rng: random.Random, names: str) -> str:
    """Two or three comparisons that must all hold: what makes them harder is left out, whatever they read."""
    plain = [one for one in VALUES if not one.startswith(("greatest", "(CASE", "abs"))]
    chosen = [rng.choice(plain).replace("{}", rng.choice(names)) for _ in range(rng.randint(2, 3))]
    parts = [f"{rng.choice(['x', 'y', 'x + 1'])} {rng.choice(['<', '<=', '>', '>='])} {value}" for value in chosen]
    return " AND ".join(parts)


def rows(rng: random.Random, count: int) -> pa.Table:
    x = [rng.choice([None, 0, 1, 2, 3, 5, -4, 200, 1 << 53, 7]) for _ in range(count)]
    y = [
        rng.choice([None, 0.0, -0.0, 0.5, 1.0, 2.5, -3.0, float("nan"), float("inf"), 1e60, 7.0]) for _ in range(count)
    ]
    return pa.table({"t": range(count), "x": pa.array(x, pa.int64()), "y": pa.array(y, pa.float64())})


@pytest.mark.parametrize("seeds", blocks(cases(400)), ids=str)
def test_what_is_kept_is_right(seeds: range) -> None:
    """The engine, and a stream in random batches, against the reference: with values that make conditions harder, and others."""
    for seed in seeds:
        rng = random.Random(seed)
        pattern = rng.choice(PATTERNS)
        names = [one for one in "ABCD" if one in pattern]
        asked = rng.choice([condition, several])
        define = ", ".join(f"{one} AS {asked(rng, ''.join(names))}" for one in names[1:] if rng.random() < 0.8)
        skip = rng.choice(["PAST LAST ROW", "TO NEXT ROW"])
        clause = f"ORDER BY t MEASURES FIRST(t) AS b, LAST(t) AS e AFTER MATCH SKIP {skip} PATTERN ({pattern})"
        clause = f"MATCH_RECOGNIZE ({clause} DEFINE {define or 'B AS x > A.x'})"
        table = rows(rng, rng.randint(2, 11))
        bound = bind(parse(clause), table.schema)
        try:
            wanted = evaluate(bound, table, most_steps=20_000).to_pylist()
        except LimitError:
            continue
        told = f"seed {seed}: {clause} {table.to_pylist()}"
        assert recognize(bound, table, capacity=rng.choice([1, 1 << 10])).to_pylist() == wanted, told
        matcher, given, at = stretto.Matcher(clause, schema=table.schema, capacity=1), [], 0
        while at < table.num_rows:
            size = rng.randint(1, 4)
            given += matcher.push(table.slice(at, size)).to_pylist()
            at += size
            if rng.random() < 0.3:
                matcher = stretto.Matcher(clause, schema=table.schema, capacity=1).restore(matcher.snapshot())
        assert given + matcher.finish().to_pylist() == wanted, told


def walk(count: int) -> pa.Table:
    """A random walk of prices, which never rises by a fifth, and falls in the end; and other columns."""
    rng = np.random.default_rng(5)
    steps = np.concatenate([rng.normal(0, 1e-3, count // 2), np.full(count - count // 2, -1e-3)])
    columns = {"i": np.arange(count), "p": 100 * np.exp(np.cumsum(steps)), "v": rng.integers(0, 150, count)}
    columns |= {"k": rng.integers(0, 100, count), "q": rng.integers(0, 100, count)}
    return pa.table({**columns, "s": columns["q"].astype(str)})


@pytest.mark.parametrize(
    "clause",
    [
        "PATTERN (A B*? C) DEFINE C AS p >= 1.2 * A.p",
        "PATTERN (A B* C) DEFINE C AS p >= 1.2 * A.p",
        "PATTERN (A B*? C) DEFINE C AS v >= 200 + A.v",
        "PATTERN (A+ B) DEFINE A AS p > 0, B AS p < 0.07 * max(A.p)",
        "PATTERN (A B+ C) DEFINE C AS k > 100 + FIRST(B.k)",
        "PATTERN (A B*? C) DEFINE C AS i < FIRST(i)",
        "PATTERN (A B*? C) DEFINE C AS p >= 1.2 * A.p AND q < A.q",
        "PATTERN (A B* C) DEFINE C AS q < A.q AND p >= 1.2 * A.p AND v > A.v",
        "PATTERN (A B+ C) DEFINE C AS p >= 1.2 * A.p AND k > FIRST(B.k)",
        "PATTERN (A+ B) DEFINE A AS p > 0, B AS p < 0.07 * max(A.p) AND v > min(A.v)",
    ],
)
@pytest.mark.skipif(COMPILED, reason="counts what interpreted kernels read")
def test_what_failed_from_one_start_fails_from_others(clause: str) -> None:
    """Steps grow with the rows, and not with their square: a bound that all starts share is enough for all of them."""

    def steps(count: int) -> int:
        table = walk(count)
        bound = bind(parse(f"MATCH_RECOGNIZE (ORDER BY i MEASURES FIRST(i) AS b {clause})"), table.schema)
        ran = program.RowProgram(bound)
        to = Counting(ran.machine.to)
        ran.machine = ran.machine._replace(to=to)
        assert list(ran.matches(Shifted(table, np.array([0, count])))) == []
        return to.reads

    few = steps(100)
    assert steps(400) <= 6 * few
    assert few <= 100 * 8


@pytest.mark.skipif(COMPILED, reason="counts what interpreted kernels read")
@pytest.mark.parametrize("define", ["p >= 1.004 * A.p AND q < 0.99 * A.q", "q < 0.99 * A.q AND p >= 1.004 * A.p"])
def test_starts_of_a_random_walk_share_what_failed(define: str) -> None:
    """Two columns that walk: each start goes through a few rows, in whatever order they are asked; some have matches."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p, q = (100 * np.exp(np.cumsum(rng.normal(0, 1e-3, 1_000))) for _ in range(2))
        table = pa.table({"i": np.arange(p.size), "p": p, "q": q})
        clause = f"MATCH_RECOGNIZE (ORDER BY i MEASURES FIRST(i) AS b PATTERN (A B*? C) DEFINE C AS {define})"
        ran = program.RowProgram(bind(parse(clause), table.schema))
        to = Counting(ran.machine.to)
        ran.machine = ran.machine._replace(to=to)
        matches = sum(found.start.size for found in ran.matches(Shifted(table, np.array([0, p.size]))))
        assert to.reads <= 60 * p.size, f"seed {seed}: {to.reads} steps, {matches} matches"


def test_a_match_keeps_each_of_its_failures() -> None:
    """One start comes to a row with values of which none is the hardest: each is gone through once, and not each way to it."""
    count = 24
    x = [(7 * at) % 11 for at in range(count)]
    table = pa.table(
        {"i": range(count), "x": x, "y": [11 - one for one in x], "z": [(5 * at) % 7 for at in range(count)]}
    )
    define = "D AS x > LAST(A.x) + 20 AND x > LAST(B.x) AND y > LAST(B.y) AND z > LAST(C.z)"
    clause = f"MATCH_RECOGNIZE (ORDER BY i MEASURES FIRST(i) AS b PATTERN (A (B | C)* D) DEFINE {define})"
    ran = program.RowProgram(bind(parse(clause), table.schema))
    assert ran.programs is not None
    assert ran.programs.harder.size == 4
    assert list(ran.matches(Shifted(table, np.array([0, count])), failing=2 * count**2)) == []


@pytest.mark.parametrize("stream", [False, True])
def test_the_bound_is_one_matchs(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of A makes failures depend on the start: they are forgotten with it, and counted for it alone."""
    table = walk(60)
    for module in (program, runner):
        monkeypatch.setattr(module, "MOST_FAILED", 70)
    monkeypatch.setattr(failing, "LARGEST_TABLE", 128)
    clause = "PATTERN (A B*? C) DEFINE C AS p >= 1.2 * A.p AND s = A.s"
    clause = f"MATCH_RECOGNIZE (ORDER BY i MEASURES FIRST(i) AS b {clause})"

    def found(rows: pa.Table) -> list[dict[str, Any]]:
        if not stream:
            return recognize(bind(parse(clause), table.schema), rows, capacity=2).to_pylist()
        matcher = stretto.Matcher(clause, schema=table.schema, capacity=2)
        return matcher.push(rows).to_pylist() + matcher.finish().to_pylist()

    assert found(table) == []  # 60 · 59 / 2 ways, of which one start has 59
    with pytest.raises(LimitError, match="at row 0: more than 70 ways were gone through without a match"):
        found(walk(80))


@pytest.mark.skipif(COMPILED, reason="a bound of the kernel is made small")
@pytest.mark.parametrize(("stream", "kernel"), [(False, "walk_back"), (True, "read")])
def test_a_long_search_pauses(stream: bool, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two pauses few configurations fail, and what is found is the same: ^C acts, and nothing ends with an error."""
    table = walk(60).append_column("r", pa.array([at % 50 for at in range(60)]))
    clause = "PATTERN (A B*? C) DEFINE C AS p >= 1.2 * A.p AND s = A.s OR r = A.r"
    clause = f"MATCH_RECOGNIZE (ORDER BY i MEASURES FIRST(i) AS b, LAST(i) AS e AFTER MATCH SKIP TO NEXT ROW {clause})"
    module = runner if stream else program
    called, calls = getattr(module, kernel), [0]

    def counted(*arguments: Any) -> Any:
        calls[0] += 1
        return called(*arguments)

    def found() -> list[dict[str, Any]]:
        calls[0] = 0
        if not stream:
            return recognize(bind(parse(clause), table.schema), table).to_pylist()
        matcher = stretto.Matcher(clause, schema=table.schema)
        return matcher.push(table).to_pylist() + matcher.finish().to_pylist()

    monkeypatch.setattr(module, kernel, counted)
    assert found() == [{"b": at, "e": at + 50} for at in range(10)]
    few = calls[0]
    for paused in (backtracking, reading):
        monkeypatch.setattr(paused, "PAUSE_AFTER", 100)
    assert found() == [{"b": at, "e": at + 50} for at in range(10)]
    failures = sum(59 - at for at in range(60)) - 10
    assert failures // 200 <= calls[0] - few <= failures // 100


@pytest.mark.parametrize("stream", [False, True])
def test_failures_that_the_memory_does_not_hold(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other starts are forgotten first; where those of one match are too many, the error says so before memory is taken."""
    table = walk(60)
    monkeypatch.setattr(failing, "UNASKED", 0)
    monkeypatch.setattr(failing, "SMALL_TABLE", 1)
    clause = "PATTERN (A B*? C) DEFINE C AS p >= 1.2 * A.p AND s = A.s"
    clause = f"MATCH_RECOGNIZE (PARTITION BY g ORDER BY i MEASURES FIRST(i) AS b {clause})"

    def found(rows: pa.Table) -> list[dict[str, Any]]:
        rows = rows.append_column("g", pa.array([7] * rows.num_rows))
        if not stream:
            return recognize(bind(parse(clause), rows.schema), rows, capacity=2).to_pylist()
        matcher = stretto.Matcher(clause, schema=rows.schema, capacity=2)
        return matcher.push(rows).to_pylist() + matcher.finish().to_pylist()

    slot = 8 * failing.words_of_key(_programs(clause, table.append_column("g", pa.array([7] * 60)))) + 1
    monkeypatch.setattr(failing, "available", lambda: 2 * 128 * slot)
    assert found(table) == []  # 59 failures of one start, of which a table of 128 slots holds 63
    with pytest.raises(
        LimitError, match=r"begins at row 0 of the partition g = 7: more ways than the memory holds .* of C .*PREV"
    ):
        found(walk(80))


def _programs(clause: str, table: pa.Table) -> Any:
    return program.RowProgram(bind(parse(clause), table.schema)).programs


@pytest.mark.parametrize("path", ["table", "matcher", "set"])
def test_kept_failures_are_those_of_one_start(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 · 79 / 2 failures, which no bound joins, those that no start can come to again are forgotten."""
    sizes: list[int] = []
    table_of = failing.table_of

    def noted(programs: Any, keys: Any, size: int) -> failing.Failed:
        sizes.append(size)
        return table_of(programs, keys, size)

    for module in (program, runner):
        monkeypatch.setattr(module, "table_of", noted)
    monkeypatch.setattr(failing, "SMALL_TABLE", 1)
    monkeypatch.setattr(runner, "SMALL_TABLE", 1)
    table = walk(80)
    clause = "PATTERN (A B*? C) DEFINE C AS p >= 1.2 * A.p AND s = A.s"
    clause = f"MATCH_RECOGNIZE (ORDER BY i MEASURES FIRST(i) AS b {clause})"
    pieces = [table.slice(at, 30) for at in (0, 30, 60)]
    if path == "table":
        assert recognize(bind(parse(clause), table.schema), table, capacity=2).num_rows == 0
    elif path == "matcher":
        matcher = stretto.Matcher(clause, schema=table.schema, capacity=2)
        assert [matcher.push(piece).num_rows for piece in pieces] == [0, 0, 0]
        assert matcher.finish().num_rows == 0
    else:
        patterns = stretto.PatternSet(table.schema, type=None, time="i", capacity=2)
        patterns.change(stretto.Change("c", clause))
        assert [patterns.push(piece).num_rows for piece in pieces] == [0, 0, 0]
        assert patterns.finish().num_rows == 0
    assert 160 <= max(sizes) <= 512
