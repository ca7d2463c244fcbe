"""``MATCH_RECOGNIZE`` clauses in sets of patterns: what they find, what is refused, and what a set keeps of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from stretto import Change, PatternSet
from stretto.engines.rows.runner import RowRun
from stretto.errors import DataError, LimitError, OptionError, QueryError, SnapshotError, StrettoWarning
from stretto.matching.pattern_set.with_metadata import AnnotatedPatternSet
from tests.cases import agree
from tests.cases import patterns as changing
from tests.conftest import cases

SCHEMA = {"type": "string", "t": "int64", "k": "string", "v": "int64"}
RISING = """MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY t MEASURES FIRST(A.v) AS low, LAST(v) AS high, count(*) AS n
  PATTERN (A B+) DEFINE A AS type = 'A', B AS v > PREV(v)
)"""
AB = "SELECT * FROM S WHERE A ; B PARTITION BY [k]"


def new(**options: Any) -> PatternSet:
    return PatternSet(SCHEMA, **({"time": "t"} | options))


def event(kind: str, t: int, k: str | None = "p", v: int | None = 1) -> dict[str, Any]:
    return {"type": kind, "t": t, "k": k, "v": v}


def short(table: pa.Table) -> list[tuple[Any, ...]]:
    return [(row["pattern"], row["since"], row["start_time"], row["end_time"]) for row in table.to_pylist()]


def test_matches_of_a_push_come_in_one_piece_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    drained = RowRun._drained
    monkeypatch.setattr(RowRun, "_drained", lambda run: (pieces.append(1), drained(run))[1])
    patterns = new(capacity=1)
    patterns.change(Change("up", RISING))
    assert patterns.push([event("AB"[n % 2], n, v=n) for n in range(600)]).num_rows == 0
    assert patterns.push([event("AB"[n % 2], n, v=n % 2) for n in range(600, 1_200)]).num_rows == 300
    assert len(pieces) == 2


# ---- Against single matchers


def test_random_clauses_with_windows_and_advances() -> None:
    rows = sum(agree(changing, range(cases(200)), case=changing.clauses))
    assert rows > cases(200)


def test_random_clauses_that_read_rows_to_come() -> None:
    """Their rows come in an order that cuts do not change."""
    rows = sum(changing.check_ahead(changing.clauses(seed, ahead=True)) for seed in range(cases(100)))
    assert rows > cases(100)


def test_where_a_match_comes_that_reads_rows_to_come() -> None:
    """In one batch it is known with the second row that no B follows; row by row only with the third. The set waits for it."""
    clause = "MATCH_RECOGNIZE (PATTERN (A B?) DEFINE A AS type = 'A', B AS type = 'A' AND NEXT(v) > 5)"
    events = [event("A", 1), event("B", 2), event("D", 3), event("A", 4)]

    def found(pieces: list[list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
        patterns = new()
        patterns.change(
            [Change("next", clause), Change("d", "SELECT * FROM S WHERE D"), Change("b", "SELECT * FROM S WHERE B")]
        )
        return [row for piece in pieces for row in short(patterns.push(piece))]

    assert found([events]) == found([[one] for one in events])
    assert found([events]) == [("b", None, 2, 2), ("d", None, 3, 3), ("next", None, 1, 1)]


# ---- The shape of the result


def test_one_shape_for_all_languages() -> None:
    patterns = new(positions=True, measures=True)
    patterns.change([Change("rising", RISING), Change("ab", AB)])
    rows = patterns.push([event("A", 1, v=1), event("B", 2, v=2), event("B", 3, v=5), event("D", 4, v=0)]).to_pylist()
    assert [(row["pattern"], row["start"], row["end"], row["positions"], row["measures"]) for row in rows] == [
        ("ab", 0, 1, [0, 1], None),
        ("ab", 0, 2, [0, 2], None),
        ("rising", 0, 2, [0, 1, 2], [("low", "1"), ("high", "5"), ("n", "3")]),
    ]
    assert rows[2]["keys"] == [("k", "p")]
    assert [(entry["variable"], entry["event"]["v"]) for entry in rows[2]["events"]] == [("A", 1), ("B", 2), ("B", 5)]
    assert "measures" not in new().output_schema.names
    assert patterns.costs.to_pylist()[1]["concerned"] == 4
    assert patterns.costs.to_pylist()[1]["seconds"] > 0


def test_a_statement_and_the_words_for_its_language() -> None:
    patterns = new()
    statement = "SELECT * FROM events MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v > 1)"
    patterns.change([Change("one", statement), Change("two", statement, language="sql")])
    patterns.change(Change("three", statement, language="match_recognize"))
    assert [row[0] for row in short(patterns.push([event("A", 1, v=2)]))] == ["one", "three", "two"]
    assert patterns.patterns.column("query").to_pylist() == [statement] * 3


def test_an_empty_match_is_at_the_row_at_which_it_was_found() -> None:
    patterns = new(positions=True, measures=True)
    patterns.change(Change("none", "MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A*) DEFINE A AS type = 'A')"))
    rows = patterns.push([event("B", 1), event("A", 2), event("B", 3)]).to_pylist()
    assert [(row["start"], row["end"], row["positions"], row["events"], row["measures"]) for row in rows[::2]] == [
        (0, 0, [], [], [("n", "0")]),
        (2, 2, [], [], [("n", "0")]),
    ]
    assert rows[1]["positions"] == [1]


def test_null_is_a_key_but_not_in_by() -> None:
    """Of attributes of ``by``, on which Spark distributes events, a NULL is none for any language."""
    events = [event("A", 1, None, 1), event("B", 2, None, 2), event("D", 3, None, 0)]
    apart, by = new(), new(by=["k"])
    for patterns in (apart, by):
        patterns.change(Change("rising", RISING))
    assert apart.push(events).column("keys").to_pylist() == [[("k", None)]]
    assert by.push(events).num_rows == 0


def test_measures_are_texts() -> None:
    schema = SCHEMA | {"at": "timestamp[ms]", "x": "decimal128(9, 2)"}
    patterns = PatternSet(schema, time="t", measures=True)
    measures = "LAST(at) - FIRST(at) AS took, avg(v) AS mean, v > 3 AS great, sum(x) AS paid, NEXT(v) AS then_, CLASSIFIER() AS c"
    patterns.change(Change("m", f"MATCH_RECOGNIZE (MEASURES {measures} PATTERN (A A))"))
    rows = [{"type": "A", "t": t, "k": "p", "v": t, "at": 250 * t, "x": None} for t in range(2)]
    assert patterns.push(pa.Table.from_pylist(rows, patterns_schema(patterns))).num_rows == 0  # NEXT waits
    [row] = patterns.finish().to_pylist()
    assert dict(row["measures"]) == {
        "took": "250000", "mean": "0.5", "great": "false", "paid": None, "then_": None, "c": "A",
    }  # fmt: skip


def patterns_schema(patterns: PatternSet) -> pa.Schema:
    return pa.schema(list(patterns.schema.attributes.items()))


# ---- Time and changes


def test_a_pattern_that_ends_gives_what_the_clause_gives_of_its_events() -> None:
    """What is greedy has no further row, and ``$`` holds."""
    patterns = new()
    last = "MATCH_RECOGNIZE (PATTERN (A $))"
    patterns.change(
        [Change("rising", RISING), Change("rising", None, since=3), Change("last", last), Change("last", None, 5)]
    )
    patterns.change(Change("d", "SELECT * FROM S WHERE D"))
    assert short(patterns.push([event("A", 1, v=1), event("B", 2, v=2)])) == []
    found = patterns.push([event("D", 3, v=3), event("D", 4), event("D", 6)])
    assert short(found) == [
        ("rising", None, 1, 2),
        ("d", None, 3, 3),
        ("d", None, 4, 4),
        ("last", None, 4, 4),
        ("d", None, 6, 6),
    ]


def test_what_time_ends_and_frees() -> None:
    schema = {"type": "string", "ts": "timestamp[s]", "k": "string"}
    pattern = "PATTERN (A B*) WITHIN INTERVAL '5' SECOND DEFINE A AS type = 'A', B AS type = 'B'"
    clause = f"MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {pattern})"
    patterns = PatternSet(schema, time="ts", positions=True)
    patterns.change(Change("within", clause))
    rows = [("A", 1, "p"), ("A", 2, "q"), ("B", 3, "p"), ("D", 9, "r")]
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("type", "ts", "k"))})
    assert patterns.push(table.set_column(1, "ts", table["ts"].cast("timestamp[s]"))).num_rows == 0
    assert patterns.expires == 6
    again = PatternSet(schema, time="ts", positions=True).restore(patterns.snapshot())
    for one in (patterns, again):
        assert one.advance("1970-01-01T00:00:06").column("positions").to_pylist() == [[0, 2]]
        assert one.advance("1970-01-01T00:00:07").column("positions").to_pylist() == [[1]]
        one.snapshot()
        assert not one.idle  # the last row of r, with which rows to come are compared
        one.advance("1970-01-01T00:00:10")
        one.snapshot()  # looks for what nobody needs
        assert one.idle
        assert one.stats["nodes"] == one.stats["busy"] == 0


def test_dates_and_what_time_is_none() -> None:
    patterns = PatternSet({"d": "date32", "v": "int64"}, time="d", type=None)
    patterns.change(
        Change("w", "MATCH_RECOGNIZE (ORDER BY d PATTERN (A B*) WITHIN INTERVAL '2' DAY DEFINE B AS v > 1)")
    )
    days = pa.table({"d": pa.array([1, 2], pa.date32()), "v": [1, 2]})
    assert patterns.push(days).num_rows == 0
    assert patterns.expires == 3 * 86_400 - 1
    assert patterns.advance("1970-01-03").num_rows == 0
    assert patterns.advance("1970-01-04").num_rows == 1
    decimals = PatternSet({"d": "decimal128(9, 2)"}, time="d", type=None)
    with pytest.raises(OptionError, match="order events by integers, doubles, dates or timestamps"):
        decimals.change(Change("c", "MATCH_RECOGNIZE (PATTERN (A))"))


def test_a_snapshot_belongs_to_the_clause_and_to_measures() -> None:
    patterns = new(measures=True)
    patterns.change(Change("rising", RISING))
    patterns.push([event("A", 1, v=1), event("B", 2, v=2)])
    state = patterns.snapshot()
    assert [dict(row["measures"])["n"] for row in new(measures=True).restore(state).finish().to_pylist()] == ["2"]
    with pytest.raises(SnapshotError, match="options differ"):
        new().restore(state)


# ---- What is refused, and what goes wrong


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("ALL ROWS PER MATCH PATTERN (A)", "gives one row for each match, and the clause has ALL ROWS PER MATCH"),
        ("ORDER BY v PATTERN (A)", "reads events in the order of 't', and those of one time as they come"),
        ("ORDER BY t DESC PATTERN (A)", "reads events in the order of 't'"),
        ("ORDER BY t, v PATTERN (A)", "reads events in the order of 't'"),
        ("PARTITION BY q PATTERN (A)", "unknown column 'q' in PARTITION BY"),
        ("PATTERN (A B) DEFINE B AS B.k > A.k", "known over a stream for numbers and times only"),
    ],
)
def test_what_a_set_does_not_take(clause: str, message: str) -> None:
    patterns = new()
    with pytest.raises(QueryError) as caught:
        patterns.change(Change("c", f"MATCH_RECOGNIZE ({clause})"))
    assert "pattern 'c'" in str(caught.value)
    assert message in str(caught.value)
    assert caught.value.hint
    assert patterns.patterns.num_rows == 0


def test_what_a_set_does_not_take_of_columns_and_options() -> None:
    with pytest.raises(QueryError, match="not partitioned by 'k'") as caught:
        new(by=["k"]).change(Change("c", "MATCH_RECOGNIZE (PARTITION BY v PATTERN (A))"))
    assert caught.value.hint == "PARTITION BY k, v"


def test_a_clause_that_cannot_go_on_is_named() -> None:
    patterns = new()
    patterns.change(Change("skip", "MATCH_RECOGNIZE (AFTER MATCH SKIP TO LAST B PATTERN (A B?) DEFINE B AS v > 3)"))
    with pytest.raises(DataError, match="pattern 'skip': the match that begins at row 0 has no row of B"):
        patterns.push([event("A", 1), event("A", 2)])
    large = new()
    large.change(Change("sum", "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v + v > 0)"))
    with pytest.raises(DataError, match="pattern 'sum': integer overflow"):
        large.push([event("A", 1, v=1 << 62)])


MANY = "MATCH_RECOGNIZE (AFTER MATCH SKIP TO NEXT ROW PATTERN (A+ D) DEFINE A AS type = 'A', D AS type = 'D')"
ASTRAY = """MATCH_RECOGNIZE (
  PATTERN ((A | B)+ D) DEFINE A AS type = 'A' AND sum(v) > 0, B AS type = 'A' AND sum(v) > 0, D AS sum(v) > 1000
)"""


@pytest.mark.parametrize(
    ("clause", "why"),
    [
        (MANY, "'many': the event .* completes .* matches"),
        (ASTRAY, "'many': .* ways were gone through without a match"),
    ],
)
def test_a_clause_that_explodes_is_switched_off(clause: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.engines.rows.runner.MOST_FAILED", 8)
    events = [*(event("A", t) for t in range(60)), event("D", 60)]
    patterns, loud = new(on_limit="disable", budget=40), new(budget=40)
    for one in (patterns, loud):
        one.change([Change("many", clause), Change("d", "SELECT * FROM S WHERE D")])
    with pytest.warns(StrettoWarning, match=why):
        found = patterns.push(events)
    assert "d" in found.column("pattern").to_pylist()
    assert list(patterns.disabled) == ["many"]
    with pytest.raises(LimitError, match="pattern 'many'"):
        loud.push(events)


def test_repeats_of_a_clause() -> None:
    """A match that comes long after its end is a repeat all the same."""
    noted = AnnotatedPatternSet(new())
    runs = "MATCH_RECOGNIZE (PARTITION BY k PATTERN (A+) DEFINE A AS type = 'A')"
    noted.change([{"id": "runs", "query": runs, "every": "10"}])
    first = noted.push([event("A", 1), event("B", 2), event("A", 5), event("A", 99, "q")])
    assert short(first) == [("runs", None, 1, 1)]
    assert short(noted.push([event("B", 100), event("A", 101), event("B", 102)])) == [("runs", None, 101, 101)]
    assert noted.suppressed == {"runs": 1}
    overlapping = runs.replace("PATTERN", "AFTER MATCH SKIP TO NEXT ROW PATTERN")
    with pytest.raises(OptionError, match="may overlap: AFTER MATCH SKIP PAST LAST ROW"):
        noted.change([{"id": "over", "query": overlapping, "every": "10"}])


def test_repeats_of_patterns_in_the_language_of_the_set() -> None:
    noted = AnnotatedPatternSet(new(time_unit="s", language="eql"))
    noted.change([{"id": "ab", "query": "sequence by k [A where true] [B where true]", "every": "5 seconds"}])
    assert short(noted.push([event("A", 1), event("B", 2), event("A", 3), event("B", 4)])) == [("ab", None, 1, 2)]
    assert noted.suppressed == {"ab": 1}


@pytest.mark.parametrize(
    ("clause", "what"),
    [
        ("MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS v * 4 > 0)", r"\(v \* 4\)"),
        ("MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS v + PREV(v) > 0)", r"\(v \+ PREV\(v\)\)"),
        ("MATCH_RECOGNIZE (PATTERN (A B) DEFINE A AS NEXT(v, 2) * v > 0)", r"\(NEXT\(v, 2\) \* v\)"),
        ("MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS v * 2 > FIRST(A.v))", r"\(v \* 2\)"),
        ("MATCH_RECOGNIZE (MEASURES LAST(v) * 4 AS x PATTERN (A B) DEFINE B AS v > 0)", r"\(FINAL LAST\(v\) \* 4\)"),
    ],
)
def test_an_overflow_names_the_columns_of_the_query(clause: str, what: str) -> None:
    patterns = new(measures=True)
    patterns.change([Change("sum", clause)])

    def run() -> None:
        patterns.push([event("A", at, v=2**62) for at in range(4)])
        patterns.finish()

    with pytest.raises(DataError, match=rf"pattern 'sum': integer overflow in {what}"):
        run()
