"""Durations in conditions, beside numbers that count the stream's time: so many units of ``time_unit=``.

The judge is the same text over timestamps: an integer time with a unit is a timestamp without the type.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto import Change, PatternSet
from stretto.errors import QueryError
from stretto.events import Schema
from stretto.explaining.rows import explain_clause
from stretto.languages import ceql, match_recognize, sase
from stretto.query.passes.bind import bind
from stretto.query.passes.bind_rows import bind as bind_clause
from stretto.query.passes.bind_sase import bind_sase
from stretto.query.typing import Clock
from tests.conftest import cases
from tests.reference.ceql import evaluate
from tests.reference.match_recognize import evaluate as evaluate_clause
from tests.reference.sase import evaluate_sase

COLUMNS = ("type", "ts", "sent", "n")
ROWS = [("A", 0, 0, 1), ("B", 3, 1, 2), ("B", 9, 2, 3), ("A", 10, 9, 1), ("B", 16, 15, 2)]
SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {} }} WITHIN 20 seconds"
CEQL = "SELECT * FROM S WHERE A AS a ; B AS b FILTER b[{}] WITHIN 20 seconds"
CLAUSE = "MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) DEFINE A AS type = 'A', B AS B.ts - A.ts > INTERVAL '5' SECOND)"


def table(rows: list[tuple[Any, ...]], kind: pa.DataType | None = None) -> pa.Table:
    """The events, with numbers as times, or with times of a type."""
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    times = {name: pa.array(columns[name], pa.int64()) for name in ("ts", "sent")}
    if kind is not None:
        times = {name: column.cast(kind) for name, column in times.items()}
    return pa.table(columns | times)


def matched(query: str, events: pa.Table, **options: Any) -> list[list[int]]:
    found = stretto.match(query, events, time="ts", output="positions", **options)
    return sorted(found.column("positions").to_pylist())


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("b.ts - a.ts > 5 seconds", [[0, 2], [0, 4], [3, 4]]),
        ("b.ts - a.ts > 8999 ms", [[0, 2], [0, 4]]),
        ("b.ts - a.ts >= 9001 milliseconds", [[0, 4]]),
        ("b.ts > a.ts + 5 seconds", [[0, 2], [0, 4], [3, 4]]),
        ("b.ts - a.ts BETWEEN 3 s AND 6 s", [[0, 1], [3, 4]]),
        ("b.ts - a.ts IN (3 s, 9 s)", [[0, 1], [0, 2]]),
        ("b.ts - b.sent < 2 * 1 second + 500 ms - 500 ms OR b.ts - a.ts = 3 s * a.n", [[0, 1], [0, 4], [3, 4]]),
        ("abs(a.ts - b.ts) <= 6 s", [[0, 1], [3, 4]]),
        ("(b.ts - a.ts) / 1 minute > 0.15", [[0, 4]]),
        ("coalesce(b.ts - a.ts, 4 s) = 3 s", [[0, 1]]),
        ("CASE WHEN b.ts - a.ts > 5 s THEN b.ts - a.ts ELSE 1 minute END > 10 s", [[0, 1], [0, 4]]),
    ],
)
def test_durations_are_numbers_of_units(condition: str, found: list[list[int]]) -> None:
    query = SASE.format(condition)
    assert matched(query, table(ROWS), time_unit="s") == found
    in_ms = table([(kind, ts * 1000, sent * 1000, n) for kind, ts, sent, n in ROWS])
    assert matched(query, in_ms, time_unit="ms") == found


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(25, 3)])
def test_any_number_may_count_the_time(kind: pa.DataType) -> None:
    """A fraction of a unit is one where the numbers have fractions."""
    events = table(ROWS)
    events = events.set_column(1, "ts", events.column("ts").cast(kind))
    assert matched(SASE.format("b.ts - a.ts > 8999 ms"), events, time_unit="s") == [[0, 2], [0, 4]]
    if kind in (pa.float64(), pa.decimal128(25, 3)):
        assert matched(SASE.format("b.ts < a.ts + 3001 ms"), events, time_unit="s") == [[0, 1]]


def test_what_a_query_returns() -> None:
    query = (
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { max(b[].ts) - a.ts >= 9 s } WITHIN 12 seconds "
        "RETURN a.ts + 1 minute AS later, CASE WHEN b[1].ts - a.ts > 2 s THEN 'slow' ELSE 'fast' END AS speed"
    )
    found = stretto.match(query, table(ROWS), time="ts", time_unit="s")
    assert found.schema.field("later").type == pa.int64()
    assert found.select(["later", "speed"]).to_pylist() == [{"later": 60, "speed": "slow"}]


def test_totals_of_values() -> None:
    query = "SELECT MAX(b[ts - 2 seconds]) AS last FROM S WHERE A AS a ; B AS b FILTER b[ts - sent < 3 s]"
    assert stretto.match(query, table(ROWS), time="ts", time_unit="s").to_pylist() == [{"last": 14}]


# ---- Every way to run a query


def test_streams() -> None:
    events, query = table(ROWS), SASE.format("b.ts - a.ts > 5 seconds")
    for options in ({}, {"disorder": 0}, {"disorder": 3, "speculation": 1}):
        matcher = stretto.Matcher(query, events.schema, time="ts", time_unit="s", **options)
        pieces = [matcher.push(events.slice(at, 1)) for at in range(events.num_rows)]
        found = [row for piece in [*pieces, matcher.finish()] for row in piece.to_pylist()]
        assert sorted((row["start"], row["end"]) for row in found) == [(0, 2), (0, 4), (3, 4)], options
    revising = stretto.Matcher(query, events.schema, time="ts", time_unit="s", speculation=math.inf)
    assert revising.push(events).num_rows == 3


def test_sets_and_rules() -> None:
    """Clauses in sets and rules have a unit, too."""
    texts = {
        "sase": SASE.format("b.ts - a.ts > 5 seconds"),
        "ceql": CEQL.format("ts - sent > 5 seconds"),
        "clause": CLAUSE.replace("(A B)", "(A C* B)").replace("B AS", "C AS type = 'B', B AS type = 'B' AND"),
    }
    patterns = PatternSet(table(ROWS).schema, time="ts", time_unit="s")
    patterns.change([Change(name, text) for name, text in texts.items()])
    found = pa.concat_tables([patterns.push(table(ROWS)), patterns.finish()]).to_pylist()
    expected = [
        ("ceql", 0, 9),
        ("clause", 0, 9),
        ("clause", 10, 16),
        ("sase", 0, 9),
        ("sase", 0, 16),
        ("sase", 10, 16),
    ]
    assert sorted((row["pattern"], row["start_time"], row["end_time"]) for row in found) == expected
    rules = stretto.read_rules([{"id": name, "query": text} for name, text in texts.items()])
    alerts = rules.match(table(ROWS), time="ts", time_unit="s", at_end="complete").matches.to_pylist()
    assert sorted((row["rule"], row["start_time"], row["end_time"]) for row in alerts) == expected


WINDOW = (
    "MATCH_RECOGNIZE (PARTITION BY n ORDER BY ts MEASURES first(ts) AS low, last(ts) AS high AFTER MATCH SKIP TO NEXT ROW "
    "PATTERN (A B+) WITHIN INTERVAL '{}' SECOND DEFINE A AS type = 'A')"
)


def test_the_window_of_a_clause_is_a_number_of_units() -> None:
    rows = [("A", 0, 0, 1), ("B", 3, 0, 1), ("B", 5, 0, 1), ("A", 6, 0, 1), ("B", 9, 0, 1)]
    for size, found in [
        ("5", [(0, 3), (6, 9)]),
        ("5.001", [(0, 5), (6, 9)]),
        ("3", []),
        ("1000000000000", [(0, 9), (6, 9)]),
    ]:
        assert recognized(WINDOW.format(size), table(rows), time_unit="s") == found
    text = WINDOW.format("5.5")
    rules = stretto.read_rules([{"id": "clause", "query": text}])
    alerts = rules.match(table(rows), time="ts", time_unit="ms", at_end="complete").matches.to_pylist()
    assert [(row["start_time"], row["end_time"]) for row in alerts] == [(0, 9), (6, 9)]
    patterns = PatternSet(table(rows).schema, time="ts", time_unit="s")
    patterns.change([Change("clause", text)])
    bound = bind_clause(
        match_recognize.parse(text), table(rows).schema, Clock.of(Schema.of(table(rows), time="ts", time_unit="ms"))
    )
    assert "the last row's ts is less than the first one's and 5500" in explain_clause(bound.parsed, bound)
    patterns.push(table([("A", 0, 0, 1), ("B", 3, 0, 1)]))
    # Time closes the window, whose next row would have come.
    assert patterns.advance(5).num_rows == 0
    assert patterns.advance(6).column("end_time").to_pylist() == [3]


def test_random_windows_of_clauses_mean_what_they_mean_of_timestamps() -> None:
    matches = 0
    for seed in range(cases(60, compiled=10)):
        choose = random.Random(seed)
        unit = choose.choice(list(UNITS))
        scale, now, rows = 1 if unit == "s" else 500, 0, []
        for _ in range(choose.randint(2, 12)):
            now += choose.randint(0, 3)
            rows.append((choose.choice("AB"), now * scale, 0, choose.randint(0, 1)))
        text, counted = WINDOW.format(choose.choice(["1", "1.5", "2", "4", "7.25"])), table(rows)
        found = recognized(text, counted, time_unit=unit)
        told = f"seed {seed}: {text} in {unit} over {rows}"
        assert recognized(text, table(rows, UNITS[unit])) == found, told
        schema = Schema.of(counted, type=None, time="ts", time_unit=unit)
        by_definition = evaluate_clause(
            bind_clause(match_recognize.parse(text), counted.schema, Clock.of(schema)), counted
        )
        assert sorted((row["low"], row["high"]) for row in by_definition.to_pylist()) == found, told
        matches += len(found)
    assert matches


def recognized(text: Any, events: pa.Table, **options: Any) -> list[tuple[int, int]]:
    """Begin and end of the matches of a pattern in a set, as numbers."""
    patterns = PatternSet(events.schema, time="ts", **options)
    afa = "afa" if isinstance(text, str) and "arcs" in text else None
    patterns.change([Change("given", text, language=afa)])
    found = pa.concat_tables([patterns.push(events), patterns.finish()])
    times = (found.column(name).cast(pa.int64()).to_pylist() for name in ("start_time", "end_time"))
    return sorted(zip(*times, strict=True))


AUTOMATON = """
register = {{ begun = "int64" }}
final = ["end"]
arcs = [
    {{ source = "q0", target = "open", when = "e.type = 'A'", then = "begun = e.ts" }},
    {{ source = "open", target = "open", when = "e.type != 'B'" }},
    {{ source = "open", target = "end", when = "e.type = 'B' AND {}", then = "begun = e.ts + 1 minute" }},
]
"""


def test_automata() -> None:
    """In sets, whose events have a unit, and where the automaton is given a schema that has one."""
    events = table(ROWS)
    for condition, found in [
        ("e.ts - r.begun > 5 seconds", [(10, 16)]),
        ("e.ts - e.sent <= 1 s + 1 s AND e.ts > r.begun", [(0, 3), (10, 16)]),
        ("e.ts BETWEEN r.begun + 3 s AND r.begun + 6 s", [(0, 3), (10, 16)]),
    ]:
        text = AUTOMATON.format(condition)
        for own in ("", 'events = { type = "string", ts = "int64", sent = "int64" }\n'):
            assert recognized(own + text, events, time_unit="s") == found, (own, condition)
        afa = stretto.read_afa(text, Schema.of(events, time="ts", time_unit="s"))
        whole = stretto.match(afa, events, time="ts")
        assert list(zip(whole["start_time"].to_pylist(), whole["end_time"].to_pylist(), strict=True)) == found
        assert {row["begun"] for row in whole["register"].to_pylist()} == {end + 60 for _, end in found}
        again = stretto.read_afa(stretto.write_afa(afa))
        assert stretto.match(again, events, time="ts").equals(whole)
    with pytest.raises(stretto.OptionError, match="the AFA has 'ts' in s, and time_unit='ms' in ms"):
        recognized(afa, events, time_unit="ms")
    text = AUTOMATON.format("e.ts - r.begun > 5 seconds")
    rules = stretto.read_rules([{"id": "automaton", "query": text, "language": "afa"}])
    alerts = rules.match(events, time="ts", time_unit="s").matches.to_pylist()
    assert [(row["start_time"], row["end_time"]) for row in alerts] == [(10, 16)]


def test_arcs_that_come_later() -> None:
    made = stretto.AFA(Schema.of(table(ROWS), time="ts", time_unit="s"), {"begun": int})
    made = made.arc("q0", "q1", when="e.type = 'A'", then="begun = e.ts").arc("q1", "q2", when="e.ts = 0 s").final("q2")
    matcher = stretto.Matcher(made, time="ts")
    matcher.add_arc("q1", "q2", when="e.type = 'B' AND e.ts - r.begun > 5 s", id="late")
    assert matcher.push(table(ROWS[3:])).column("end_time").to_pylist() == [16]


def test_an_automaton_without_a_unit() -> None:
    for roles, hint in [
        ({}, "differences of times are durations; a number has its own unit"),
        (
            {"time": "ts"},
            "time_unit='s' (or 'ms', 'us', 'ns') says what one unit of 'ts' is, and then a duration counts them",
        ),
    ]:
        events = Schema.of(table(ROWS), **roles) if roles else dict(Schema.of(table(ROWS)).attributes)
        with pytest.raises(QueryError, match="cannot compare a computed number with a duration") as caught:
            stretto.AFA(events, {"begun": int}).arc("q0", "q1", when="e.ts - r.begun > 5 s")
        assert caught.value.hint == hint


def test_what_aggregates_of_a_clause_read() -> None:
    text = (
        "MATCH_RECOGNIZE (ORDER BY ts MEASURES max(B.ts + INTERVAL '1' MINUTE) AS last, max(B.ts) - INTERVAL '1' SECOND AS before "
        "PATTERN (A B+) DEFINE A AS type = 'A', B AS greatest(max(B.ts) - A.ts, INTERVAL '1' SECOND) < 2 * INTERVAL '5' SECOND "
        "AND (B.ts - A.ts) / INTERVAL '1' MINUTE < 1)"
    )
    patterns = PatternSet(table(ROWS).schema, time="ts", time_unit="s", measures=True)
    patterns.change([Change("clause", text)])
    found = pa.concat_tables([patterns.push(table(ROWS)), patterns.finish()])
    assert [dict(one) for one in found.column("measures").to_pylist()] == [
        {"last": "69", "before": "8"},
        {"last": "76", "before": "15"},
    ]


def test_why_not_and_explain() -> None:
    query = SASE.format("b.ts - a.ts > 1 minute")
    answer = stretto.why_not(query, table(ROWS), time="ts", time_unit="s")
    assert "b.ts - a.ts" in str(answer)
    assert "> 60" in str(answer)
    compiled = stretto.compile(query, table(ROWS).schema, time="ts", time_unit="s")
    assert "60" in compiled.explain()
    assert "5" in str(stretto.why_not(CEQL.format("ts > 5 minutes"), table(ROWS), time="ts", time_unit="s"))


def test_a_column_that_is_null_throughout_beside_them() -> None:
    """It is a number, as the time is."""
    events = table(ROWS).set_column(2, "sent", pa.nulls(len(ROWS)))
    assert matched(SASE.format("b.ts - b.sent > 5 s OR b.ts - a.ts = 3 s"), events, time_unit="s") == [[0, 1]]
    assert matched(CEQL.format("ts - sent > 5 s OR ts = 3 s"), events, time_unit="s") == [[0, 1]]


# ---- What has no unit


@pytest.mark.parametrize(
    ("roles", "condition", "message", "hint"),
    [
        (
            {"time": "ts"},
            "b.ts - a.ts > 5 seconds",
            "cannot compare a computed number with a duration",
            "time_unit='s' (or 'ms', 'us', 'ns') says what one unit of 'ts' is, and then a duration counts them",
        ),
        (
            {},
            "b.ts - a.ts > 5 seconds",
            "cannot compare a computed number with a duration",
            "a number has its own unit; time='…' and time_unit='s' (or 'ms', 'us', 'ns') say which one is a time",
        ),
        (
            {"time": "ts", "time_unit": "s"},
            "b.n > 5 seconds",
            "cannot compare b.n (int64) with a duration",
            "a number has its own unit, and only 'ts' is a time",
        ),
        (
            {"time": "ts", "time_unit": "s"},
            "b.n > a.n + 5 seconds",
            "cannot compute a.n (int64) + a duration",
            "a number has its own unit, and only 'ts' is a time",
        ),
        (
            {"time": "ts", "time_unit": "s"},
            "b.ts > a.ts + 1500 ms",
            "'ts' is in s, and 1500 ms is no whole number of them",
            "compare it with a difference, b.ts - a.ts, or write whole units",
        ),
    ],
)
def test_a_duration_beside_another_number(roles: dict[str, Any], condition: str, message: str, hint: str) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {condition} }}"
    with pytest.raises(QueryError) as caught:
        stretto.compile(query, table(ROWS).schema, **roles)
    assert caught.value.message == message
    assert caught.value.hint == hint
    assert caught.value.span is not None


CLAUSES = [
    *(WINDOW.format(size) for size in (4, 5, "5.5")),
    CLAUSE.replace("PATTERN (A B)", "MEASURES A.ts AS low, B.ts AS high PATTERN (A C* B)"),
]


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 1_000)])
def test_a_clause_by_itself_is_told_what_its_numbers_count(clause: str, unit: str, scale: int) -> None:
    rows = [("A", 0, 0, 1), ("B", 3, 0, 1), ("B", 5, 0, 1), ("A", 6, 0, 1), ("B", 9, 0, 1)]
    times, numbers = table(rows, pa.timestamp("s")), table([(a, b * scale, c, n) for a, b, c, n in rows])
    statement = f"SELECT low, high FROM t {clause}"
    found = stretto.sql(statement, t=times)
    assert found.num_rows
    columns = {name: found.column(name).cast(pa.int64()).to_pylist() for name in found.column_names}
    expected = [{name: scale * values[at] for name, values in columns.items()} for at in range(found.num_rows)]

    def shown(given: pa.Table) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = given.select(["low", "high"]).to_pylist()
        return rows

    def matcher(unit: str) -> stretto.Matcher:
        return stretto.Matcher(clause, numbers.schema, time_unit=unit, disorder="2 seconds")

    assert shown(stretto.sql(statement, t=numbers, time_unit=unit)) == expected
    assert shown(stretto.sql(f"SELECT * FROM t {clause}", t=numbers, time_unit=unit)) == expected
    assert shown(stretto.match(clause, numbers, time_unit=unit)) == expected
    assert shown(pa.concat_tables(stretto.iter_matches(clause, numbers, time_unit=unit))) == expected
    running = matcher(unit)
    first = shown(running.push(numbers.slice(0, 2)))
    snapshot = running.snapshot()
    running = matcher(unit).restore(snapshot)
    assert first + shown(running.push(numbers.slice(2))) + shown(running.finish()) == expected
    with pytest.raises(stretto.SnapshotError, match=f"time_unit= was '{unit}', is 'us'"):
        matcher("us").restore(snapshot)


def test_asking_about_a_clause_with_a_unit() -> None:
    clause = CLAUSE.replace("'5' SECOND", "'500' SECOND")
    compiled = stretto.compile_sql(
        f"SELECT * FROM t {clause.replace('PATTERN', 'MEASURES A.ts AS x PATTERN')}", t=table(ROWS), time_unit="s"
    )
    for query, options in ((clause, {"time_unit": "s"}), (clause, {"time_unit": "s", "disorder": 2}), (compiled, {})):
        assert "(B.ts - A.ts) > 500 s does not hold" in str(stretto.why_not(query, table(ROWS), **options))
    assert "B.ts - A.ts" in compiled.explain()
    with pytest.raises(stretto.OptionError, match="time_unit='min': expected 's', 'ms', 'us' or 'ns'"):
        stretto.compile_sql(f"SELECT * FROM t {clause}", t=table(ROWS), time_unit="min")


def test_an_interval_of_a_clause_beside_a_number() -> None:
    with pytest.raises(QueryError) as caught:
        stretto.sql(f"SELECT * FROM t {CLAUSE.replace('PATTERN', 'MEASURES B.ts AS last PATTERN')}", t=table(ROWS))
    assert caught.value.hint == (
        "intervals stand beside times; a number has its own unit: write B.t - A.t > 5, or give stretto.sql time_unit='s'"
    )


@pytest.mark.parametrize(
    ("roles", "kind", "hint"),
    [
        (
            {"time": "ts"},
            pa.int64(),
            "time_unit='s' (or 'ms', 'us', 'ns') says what one unit of 'ts' is, and then a duration counts them",
        ),
        ({"time": "ts", "time_unit": "s"}, pa.float64(), "ORDER BY a column of times first"),
    ],
)
def test_the_window_of_a_clause_over_another_number(roles: dict[str, Any], kind: pa.DataType, hint: str) -> None:
    patterns = PatternSet(table(ROWS, kind).schema, **roles)
    with pytest.raises(
        QueryError, match=f"WITHIN measures time, and the rows are ordered by 'ts', which is {kind}"
    ) as caught:
        patterns.change([Change("clause", WINDOW.format(5))])
    assert caught.value.hint == hint


def test_a_duration_in_a_condition_of_eql() -> None:
    with pytest.raises(QueryError) as caught:
        stretto.compile("any where ts > 5m", table(ROWS).schema, time="ts", time_unit="s", language="eql")
    assert (
        caught.value.hint
        == "a condition compares a field with a number of its own units; times such as 5m are for maxspan"
    )


# ---- Against timestamps, at random

UNITS = {"s": pa.timestamp("s"), "ms": pa.timestamp("ms")}
DURATIONS = ("1 s", "2 s", "2500 ms", "3 seconds", "1 s 500 ms", "4 s", "0 s")
BETWEEN = (
    "b.ts - a.ts {op} {d}",
    "b.ts - a.ts {op} {d} + {e}",
    "b.ts - a.ts {op} 2 * {d}",
    "b.ts - a.sent {op} {d}",
    "{d} {op} b.ts - a.ts",
    "b.ts - a.ts BETWEEN {d} AND {e}",
    "NOT (b.ts - a.ts {op} {d} OR b.ts - b.sent > {e})",
    "b.ts - a.ts {op} {d} * b.n",
    "abs(a.ts - b.ts) {op} {d}",
    "b.ts {op} a.ts + {w}",
    "b.ts - {w} {op} a.sent",
    "(b.ts - a.ts) / {w} {op} 1.5",
)
ALONE = ("ts - sent {op} {d}", "ts - sent BETWEEN {d} AND {e}", "ts {op} sent + {w}", "abs(ts - sent) {op} {d} + {e}")


def test_random_conditions_mean_what_they_mean_of_timestamps() -> None:
    found = sum(same_as_timestamps(seed) for seed in range(cases(100, compiled=10)))
    assert found > cases(100, compiled=10) // 2


def same_as_timestamps(seed: int) -> int:
    """Check a random condition; how many matches there are."""
    choose = random.Random(seed)
    unit = choose.choice(list(UNITS))
    scale = 1 if unit == "s" else 500
    now, rows = 0, []
    for _ in range(choose.randint(2, 9)):
        now += choose.randint(0, 3)
        rows.append((choose.choice("AB"), now * scale, (now - choose.randint(0, 4)) * scale, choose.randint(0, 2)))
    one_event = choose.random() < 0.4
    filled = {"op": choose.choice(["<", "<=", ">", ">=", "=", "!="]), "w": choose.choice(["1 s", "2 s", "3 s"])}
    filled |= {"d": choose.choice(DURATIONS), "e": choose.choice(DURATIONS)}
    condition = choose.choice(ALONE if one_event else BETWEEN).format(**filled)
    query = (CEQL if one_event else SASE).format(condition)
    counted, timed = table(rows), table(rows, UNITS[unit])
    wanted = matched(query, timed)
    told = f"seed {seed}: {query} in {unit} over {rows}"
    assert matched(query, counted, time_unit=unit) == wanted, told
    schema = Schema.of(counted, time="ts", time_unit=unit)
    if one_event:
        by_definition = [sorted(one.positions) for one in evaluate(bind(ceql.parse(query), schema), counted)]
    else:
        by_definition = [sorted(one.positions) for one in evaluate_sase(bind_sase(sase.parse(query), schema), counted)]
    assert sorted(by_definition) == wanted, told
    return len(wanted)
