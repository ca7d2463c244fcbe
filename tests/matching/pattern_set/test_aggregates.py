"""Sets of patterns of which some count and add up over all of their matches."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto import PatternSet
from stretto.errors import DataError, LimitError, OptionError, QueryError
from stretto.matching.pattern_set.with_metadata import AnnotatedPatternSet
from tests.cases import agree
from tests.cases import patterns as changing
from tests.conftest import cases

SCHEMA = {"type": "string", "t": "int64", "k": "string", "v": "int64"}
COUNT = "SELECT COUNT(*) AS n, SUM(b[v]) AS s FROM S WHERE A ; B AS b"


def new(**options: Any) -> PatternSet:
    return PatternSet(SCHEMA, **({"time": "t", "totals": True, "output": "positions"} | options))


def events(text: str) -> list[dict[str, Any]]:
    """``A@1/x=5``: type, time, key and value."""
    rows = []
    for word in text.split():
        kind, _, rest = word.partition("@")
        rest, _, value = rest.partition("=")
        time, _, key = rest.partition("/")
        rows.append({"type": kind, "t": int(time), "k": key or "x", "v": int(value or 1)})
    return rows


def short(table: pa.Table) -> list[tuple[Any, ...]]:
    return [
        (row["pattern"], row["end_time"], row["window_start"], dict(row["keys"]), row["totals"] and dict(row["totals"]))
        for row in table.to_pylist()
    ]


def test_random_patterns_that_add_up_beside_others() -> None:
    rows = sum(agree(changing, range(100_000, 100_000 + cases(1_000)), case=changing.adding))
    assert rows > cases(1_000)


def test_random_patterns_that_add_up_in_one_run() -> None:
    rows = sum(agree(changing, range(cases(1_000)), case=changing.alike))
    assert rows > cases(1_000)


ALIKE = "SELECT {i} FROM S WHERE A ; B+ AS b ; C FILTER b[v > {n}] PARTITION BY [k] WITHIN 10 [t] EVERY 10"


def alike(*items: str) -> list[dict[str, Any]]:
    """Patterns that differ in a constant and in what they ask for."""
    return [{"id": f"p{n}", "query": ALIKE.format(i=item, n=n)} for n, item in enumerate(items)]


def test_patterns_that_differ_in_conditions_and_items_have_one_run() -> None:
    patterns = new()
    patterns.change(alike("COUNT(*) AS n", "COUNT(*) AS n", "SUM(b[v]) AS s, COUNT(*) AS n"))
    patterns.push(events("A@0 B@1=1 B@2=2 B@3=3 C@4 A@5/y B@6/y=2 C@7/y"))
    assert patterns.stats["busy"] == 3
    assert patterns.stats["visited"] == 8  # events, not pairs of event and pattern
    assert patterns.costs.to_pydict() == {"id": ["p0", "p1", "p2"], "concerned": [8, 7, 5], "seconds": [None] * 3}
    again = new().restore(patterns.snapshot())
    right = [
        ("p0", None, 0, {"k": "x"}, {"n": "7"}),
        ("p0", None, 0, {"k": "y"}, {"n": "1"}),
        ("p1", None, 0, {"k": "x"}, {"n": "3"}),
        ("p1", None, 0, {"k": "y"}, {"n": "1"}),
        ("p2", None, 0, {"k": "x"}, {"s": "3", "n": "1"}),
    ]
    assert short(again.push(events("A@10"))) == short(patterns.push(events("A@10"))) == right


def test_who_leaves_a_run_takes_what_is_its_own() -> None:
    patterns = new()
    patterns.change(alike(*["COUNT(*) AS n"] * 3))
    patterns.change([{"id": "p0", "query": None, "since": 5}, {"id": "p2", "query": None, "since": 8}])
    patterns.push(events("A@0 B@1=1 B@2=2 C@3 B@4=3"))
    assert short(patterns.push(events("C@5"))) == [("p0", None, 0, {"k": "x"}, {"n": "3"})]
    assert short(patterns.push(events("A@6 C@9"))) == [("p2", None, 0, {"k": "x"}, {"n": "1"})]
    assert patterns.stats["busy"] == 1
    assert short(patterns.finish()) == [("p1", None, 0, {"k": "x"}, {"n": str(1 + 3 + 3)})]


def test_a_run_has_some_patterns_only() -> None:
    patterns = new()
    patterns.change(alike(*["COUNT(*) AS n"] * 100))
    patterns.push(events("A@0 B@1=1000 C@2"))
    assert patterns.stats["visited"] == 2 * 3
    assert patterns.finish().num_rows == 100


def test_errors_of_one_run_name_the_pattern() -> None:
    patterns = new()
    patterns.change(alike("COUNT(*)", "MAX(b[v]) AS m", "SUM(b[v]) AS s"))
    big = 1 << 62
    with pytest.raises(
        DataError, match=r"pattern 'p2': SUM\(b\[v\]\) of all matches of k = 'x' leaves 64 bits at row 3"
    ):
        patterns.push(events(f"A@0 B@1={big} B@2={big} C@3"))
    computed = [
        {"id": n, "query": f"SELECT COUNT(*) FROM S WHERE A AS a ; B FILTER a[v {n} 1 > 0]"} for n in ("+", "*")
    ]
    patterns = new()
    patterns.change(computed)
    with pytest.raises(DataError, match=r"pattern '\+': .* at row 1"):
        patterns.push(events(f"C@0 A@1={(1 << 63) - 1}"))


def test_patterns_that_may_be_switched_off_have_runs_of_their_own() -> None:
    patterns = new(on_limit="disable")
    patterns.change(alike(*["COUNT(*) AS n"] * 2))
    patterns.push(events("A@0 B@1=5 C@2"))
    assert patterns.stats["visited"] == 6
    assert patterns.finish().num_rows == 2


def test_rows_of_events_windows_tables_and_matches_in_one_result() -> None:
    patterns = new(positions=True)
    patterns.change(
        [
            {"id": "all", "query": COUNT},
            {"id": "each", "query": f"{COUNT} PARTITION BY [k] EVERY EVENT"},
            {"id": "list", "query": "SELECT * FROM S WHERE A ; B PARTITION BY [k]"},
            {"id": "window", "query": f"{COUNT} WITHIN 10 [t] GROUP BY b[k] EVERY 10"},
        ]
    )
    found = patterns.push(events("A@1 B@3=7 A@4/y B@9/y=2 C@10"))
    assert found.schema == patterns.output_schema
    assert short(found) == [
        ("each", 3, None, {"k": "x"}, {"n": "1", "s": "7"}),
        ("list", 3, None, {"k": "x"}, None),
        ("each", 9, None, {"k": "y"}, {"n": "1", "s": "2"}),
        ("list", 9, None, {"k": "y"}, None),
        ("window", None, 0, {"b_k": "x"}, {"n": "1", "s": "7"}),
        ("window", None, 0, {"b_k": "y"}, {"n": "2", "s": "4"}),
    ]
    assert found.column("start").to_pylist() == [0, 0, 2, 2, None, None]
    assert found.column("window_end").to_pylist() == [None] * 4 + [10, 10]
    again = new(positions=True).restore(patterns.snapshot())
    assert short(again.finish()) == short(patterns.finish()) == [("all", None, None, {}, {"n": "3", "s": "11"})]


def test_a_pattern_that_ends_gives_what_it_has_added_up() -> None:
    patterns = new()
    patterns.change(
        [
            {"id": "all", "query": COUNT},
            {"id": "all", "query": None, "since": 5},
            {"id": "window", "query": f"{COUNT} WITHIN 10 [t] EVERY 10"},
            {"id": "window", "query": f"{COUNT} WITHIN 10 [t] EVERY 10", "since": 5},
        ]
    )
    assert short(patterns.push(events("A@1 B@3=7"))) == []
    assert short(patterns.push(events("B@6 A@7"))) == [
        ("all", None, None, {}, {"n": "1", "s": "7"}),
        ("window", None, 0, {}, {"n": "1", "s": "7"}),
    ]
    assert short(patterns.push(events("B@8=2"))) == []
    assert short(patterns.advance(10)) == [("window", None, 0, {}, {"n": "1", "s": "2"})]
    assert short(patterns.finish()) == []


def test_nothing_that_concerns_a_pattern_is_a_count_of_0() -> None:
    patterns = new()
    patterns.change({"id": "all", "query": COUNT})
    patterns.push(events("C@1"))
    patterns = new().restore(patterns.snapshot())
    assert short(patterns.finish()) == [("all", None, None, {}, {"n": "0", "s": None})]


def test_values_are_told_exactly() -> None:
    kinds = {
        "d": pa.duration("ns"),
        "e": pa.decimal128(9, 2),
        "f": pa.float64(),
        "g": pa.timestamp("us"),
        "b": pa.bool_(),
    }
    schema = pa.schema([("type", pa.string()), ("t", pa.int64()), *kinds.items()])
    patterns = PatternSet(schema, time="t", totals=True)
    query = "SELECT SUM(a[d]) AS d, SUM(a[e]) AS e, SUM(a[f]) AS f, MAX(a[g]) AS g, COUNT(*) AS n FROM S WHERE A AS a GROUP BY a[b]"
    patterns.change({"id": "it", "query": query})
    values = {"d": [1, 7], "e": [Decimal(1), Decimal(7)], "f": [0.1, 0.2], "g": [0, 1], "b": [True, None]}
    rows = {name: pa.array(values[name], kind) for name, kind in kinds.items()}
    patterns.push(pa.table({"type": ["A", "A"], "t": [1, 2], **rows}, schema))
    told = {dict(row["keys"])["a_b"]: dict(row["totals"]) for row in patterns.finish().to_pylist()}
    assert told == {
        "true": {"d": "1", "e": "1.00", "f": "0.1", "g": "1970-01-01 00:00:00.000000", "n": "1"},
        None: {"d": "7", "e": "7.00", "f": "0.2", "g": "1970-01-01 00:00:00.000001", "n": "1"},
    }


@pytest.mark.parametrize(
    ("query", "options", "error", "message"),
    [
        (COUNT, {"totals": False}, OptionError, "totals=True"),
        (
            COUNT,
            {"totals": "every"},
            OptionError,
            "its row comes when the stream ends, which this one does not: EVERY EVENT",
        ),
        (f"{COUNT} PARTITION BY [k] GROUP BY ()", {"by": "k"}, QueryError, "these add up over several"),
        (f"{COUNT} WITHIN 10 EVENTS EVERY 5 EVENTS", {}, OptionError, "these count events"),
        (f"{COUNT} WITHIN 10 [v] EVERY 5", {}, OptionError, "these measure 'v'"),
        ("SELECT * FROM S WHERE A AS a ORDER BY SUM(a[v]) LIMIT 2", {}, OptionError, "match it on its own"),
        ("SELECT * FROM S WHERE A SAMPLE 2", {}, OptionError, "match it on its own"),
    ],
)
def test_what_is_refused(query: str, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"pattern 'it': .*{message}"):
        new(**options).change({"id": "it", "query": query})


def test_totals_are_had_or_not() -> None:
    with pytest.raises(OptionError, match="totals='all': expected True, False or 'every'"):
        new(totals="all")
    new(totals="every").change({"id": "it", "query": f"{COUNT} EVERY EVENT"})


def test_errors_name_the_pattern() -> None:
    patterns = new()
    patterns.change({"id": "sum", "query": "SELECT SUM(a[v]) FROM S WHERE A AS a EVERY EVENT"})
    patterns.change({"id": "big", "query": "SELECT SUM(a[v]) FROM S WHERE A+ AS a EVERY EVENT"})
    big = 1 << 62
    with pytest.raises(DataError, match=r"pattern 'big': SUM\(a\[v\]\) of all matches leaves 64 bits at row 2"):
        patterns.push(events(f"C@0 A@1={big} A@2={big}"))
    patterns = new()
    patterns.change({"id": "two", "query": "SELECT SUM(a[v]) FROM S WHERE A+ AS a ; A+ AS b"})
    with pytest.raises(
        QueryError, match="pattern 'two': after the same events one way to a match has one of them in a"
    ):
        patterns.push(events("A@1 A@2 A@3"))


def test_a_count_that_explodes_costs_no_list() -> None:
    patterns = new(budget=100)
    patterns.change(
        [
            {"id": "all", "query": "SELECT COUNT(*) AS n FROM S WHERE A+ ; B"},
            {"id": "list", "query": "SELECT * FROM S WHERE A+ ; B"},
        ]
    )
    given = events(" ".join(f"A@{t}" for t in range(50)))
    patterns.push(given)
    with pytest.raises(LimitError, match="pattern 'list'"):
        patterns.push(events("B@50"))
    patterns = new(budget=100)
    patterns.change({"id": "all", "query": "SELECT COUNT(*) AS n FROM S WHERE A+ ; B"})
    patterns.push([*given, *events("B@50")])
    assert short(patterns.finish())[0][-1] == {"n": str(2**50 - 1)}


def test_notes_leave_counts_alone() -> None:
    patterns = AnnotatedPatternSet(new(by=["k"]), ["title"])
    given = [
        {"id": "list", "query": "SELECT * FROM S WHERE A ; B PARTITION BY [k]", "every": 100, "title": "one"},
        {"id": "each", "query": f"{COUNT} PARTITION BY [k] EVERY EVENT", "title": "two"},
    ]
    patterns.change(given)
    found = patterns.push(events("A@1 B@2 B@3"))
    assert found.select(["pattern", "title", "end_time"]).to_pylist() == [
        {"pattern": "list", "title": "one", "end_time": 2},
        {"pattern": "each", "title": "two", "end_time": 2},
        {"pattern": "each", "title": "two", "end_time": 3},
    ]
    assert patterns.suppressed == {"list": 1}
    with pytest.raises(OptionError, match="pattern 'each': every= leaves out matches"):
        patterns.change([given[1] | {"every": 5}])


def test_snapshots_of_sets_with_and_without_totals_are_told_apart() -> None:
    with pytest.raises(stretto.SnapshotError, match="the options differ"):
        new().restore(new(totals=False).snapshot())


@pytest.mark.parametrize(("unit", "since"), [("s", 253_402_300_810), ("ns", 1_000_000_001)])
def test_patterns_that_add_up_hold_from_times_that_python_does_not_have(unit: str, since: int) -> None:
    """Times beyond the year 9999, and of nanoseconds."""
    kind = pa.timestamp(unit)
    patterns = PatternSet({"type": "string", "ts": kind}, time="ts", totals=True, output="positions")
    query = "SELECT COUNT(*) AS n FROM S WHERE A ; B WITHIN 5 seconds EVERY EVENT"
    patterns.change([stretto.Change("ab", query, since=pa.scalar(since, kind))])
    times = pa.array([since, since + 1], pa.int64()).cast(kind)
    found = patterns.push(pa.table({"type": ["A", "B"], "ts": times}))
    assert found.column("since").cast(pa.int64()).to_pylist() == [since]
    assert found.column("totals").to_pylist() == [[("n", "1")]]
