"""Random small queries and streams of CEQL, and the reference evaluator's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from stretto.languages.ceql import parse
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query, compile_query
from stretto.query.algebra import nullable
from stretto.query.passes.bind import BoundQuery
from tests.cases.choices import Choices, Drawn, Seeded
from tests.reference.ceql import Match, evaluate

__all__ = ["Case", "case", "check", "drawn", "expected", "rows_of"]


@dataclass(frozen=True)
class Case:
    """A query's text, events, the roles of columns, and how to feed them."""

    query: str
    events: pa.Table
    time: str | None
    stream: str | None
    cuts: tuple[int, ...]
    capacity: int
    valuations: bool
    snapshot: bool

    def __repr__(self) -> str:
        rows = "\n  ".join(map(str, self.events.to_pylist()))
        return f"{self.query}\n  time={self.time} stream={self.stream} cuts={self.cuts} capacity={self.capacity} " + (
            f"valuations={self.valuations} snapshot={self.snapshot}\n  {rows}"
        )


TYPES = ("A", "B", "C")
NAMES = ("x", "y", "z")
STREAMS = ("S1", "S2")


def case(seed: int) -> Case:
    """A case from a seed.

    >>> print(case(7).query)  # doctest: +ELLIPSIS
    SELECT ...
    """
    return _case(Seeded(seed))


def timed_case(seed: int) -> Case:
    """A case with gaps, windows inside, and NOT at the ends, from a seed.

    >>> print(timed_case(3).query)  # doctest: +ELLIPSIS
    SELECT ...
    """
    return _case(Seeded(seed), timed=True)


def drawn() -> Any:
    """A Hypothesis strategy for cases."""
    return st.composite(lambda draw: _case(Drawn(draw)))()


def _case(choose: Choices, *, timed: bool = False) -> Case:
    streams = choose.chance(15)
    bound: list[str] = []
    pattern = _pattern(choose, choose.integer(0, 3), bound, streams, _clock(choose) if timed else None)
    if nullable(parse(f"SELECT * FROM S1, S2 WHERE A ; ({pattern})").pattern.parts[1]):
        pattern = choose.one_of([f"({pattern}) ; A", f"C : ({pattern})"])
        bound.append("A" if pattern.endswith("A") else "C")
    if timed:  # so that a WITHIN behind it is the query's
        pattern = f"({pattern})"
    ends = timed and choose.chance(50)
    if ends:
        nots = [[_absent(choose) for _ in range(choose.one_of([0, 0, 1, 2]))] for _ in range(2)]
        pattern = " ; ".join([*nots[0], pattern, *nots[1]])
    text = f"SELECT {_select(choose, bound)} FROM {'S1, S2' if streams else 'S'} WHERE {pattern}"
    if choose.chance(40):
        text = text.replace(f"WHERE {pattern}", f"WHERE ({pattern}) FILTER {_filters(choose, bound)}")
    if choose.chance(40):
        text += " PARTITION BY " + choose.one_of(["[k]", "[name]", "[k], [name]"])
    last = ends and bool(nots[1])
    text += choose.one_of(
        [f" WITHIN {choose.integer(0, 6)} [t]", " WITHIN 2 seconds [ts]"]
        if ends
        else [
            "",
            "",
            f" WITHIN {choose.integer(0, 5)} EVENTS",
            f" WITHIN {choose.integer(0, 6)} [t]",
            " WITHIN 3 seconds [ts]",
        ]
    )
    text += "" if last else choose.one_of(["", "", "", " CONSUME BY ANY", " CONSUME BY PARTITION", " CONSUME BY NONE"])
    if not last and choose.chance(20):
        text += f" LIMIT {choose.integer(1, 3)}"
    events = _events(choose)
    size = events.num_rows
    return Case(
        query=text,
        events=events,
        time=choose.one_of([None, "t", "ts"]),
        stream="stream" if streams else None,
        cuts=tuple(sorted({choose.integer(0, size) for _ in range(choose.integer(0, 4))})),
        capacity=choose.one_of([1, 1 << 12]),
        valuations=choose.chance(25),
        snapshot=choose.chance(25),
    )


def _select(choose: Choices, bound: list[str]) -> str:
    strategy = choose.one_of(["", "", "ALL ", "NEXT ", "LAST ", "MAX ", "STRICT "])
    items = choose.one_of(["*", "*", "NONE", None])
    if items is None:
        chosen = [name for name in dict.fromkeys(bound) if choose.chance(50)]
        items = ", ".join(chosen) if chosen else "*"
    return strategy + items


def _clock(choose: Choices) -> str:
    """How gaps of a case are measured: what stands behind their number."""
    return choose.one_of(["[t]", "[t]", "EVENTS", "ms [ts]"])


def _gap(choose: Choices, clock: str, least: int = 0) -> str:
    size = choose.integer(least, least + 4) * (500 if clock == "ms [ts]" else 1)
    return f"{size} {clock}"


def _pattern(choose: Choices, depth: int, bound: list[str], streams: bool, clock: str | None = None) -> str:
    outer, bound = bound, []
    text = _operator(choose, depth, bound, streams, clock)
    outer += bound
    return text


def _operator(choose: Choices, depth: int, bound: list[str], streams: bool, clock: str | None) -> str:
    """A pattern; ``bound`` gets the variables that it binds, which are what its own filters may name."""
    kind = choose.integer(0, 9) if depth else 0
    if kind <= 2:
        name = choose.one_of(TYPES)
        bound.append(name)
        text = f"{choose.one_of(STREAMS)}>{name}" if streams and choose.chance(50) else name
        if choose.chance(50):
            bound.append(choose.one_of(NAMES))
            text += f" AS {bound[-1]}"
        return text
    parts = [f"({_pattern(choose, depth - 1, bound, streams, clock)})" for _ in range(2 if kind in (3, 4, 5, 6) else 1)]
    if kind == 3:
        return " OR ".join(parts)
    if clock is not None and kind != 3 and choose.chance(60):
        return _timed(choose, parts, clock)
    if kind <= 6 and choose.chance(25):
        return f"{parts[0]} ; {' ; '.join(_absent(choose) for _ in range(choose.integer(1, 2)))} ; {parts[1]}"
    if kind <= 6:
        return choose.one_of([" ; ", " ; ", " : "]).join(parts)
    if kind <= 8:
        return parts[0] + choose.one_of(
            ["+", "+", ":+", "?", "*", ":*", "{2}", "{1,3}", "{2,}", "{,2}", ":{2}", ":{1,2}"]
        )
    if choose.chance(50):
        return f"{parts[0]} FILTER {_filters(choose, bound)}"
    bound.append(choose.one_of(NAMES))
    return f"{parts[0]} AS {bound[-1]}"


def _timed(choose: Choices, parts: list[str], clock: str) -> str:
    """A sequence or a repetition with a gap, or with a window around it."""
    least = choose.integer(0, 2)
    if len(parts) == 1:
        sign = choose.one_of(["+", "+", ":+", "*", "{2}", "{1,3}", "{2,}"])
        return f"{parts[0]}{sign} GAP {_gap(choose, clock)}"
    if choose.chance(40):
        return f"({parts[0]} ; {parts[1]}) WITHIN {_gap(choose, clock)}" + choose.one_of(
            [" OR A", " ; A", "+", " OR B"]
        )
    most = f" WITHIN {_gap(choose, clock, least)}" if choose.chance(60) else ""
    joint = choose.one_of([" ; ", " ; ", " : ", f" ; {_absent(choose)} ; "])
    after = f"{least * (500 if clock == 'ms [ts]' else 1)} {clock}"
    return f"{parts[0]}{joint}{parts[1]} AFTER {after}{most}"


def _absent(choose: Choices) -> str:
    one = choose.one_of(["A", "B", "C", "(A OR B)", "({0} AS x FILTER x[{1}])"])
    return f"NOT {one.format(choose.one_of(TYPES), _condition(choose))}"


def _filters(choose: Choices, bound: list[str]) -> str:
    one = f"{choose.one_of(bound)}[{_condition(choose)}]"
    if choose.chance(35):
        one += f" {choose.one_of(['AND', 'OR'])} {choose.one_of(bound)}[{_condition(choose)}]"
    return one


_CONDITIONS = (
    "v > {0}", "v <= {0}", "v = {0}", "v != {0}", "v >= {0}.5", "v * 2 - w < {0}", "v < w", "v % 2 = 1", "v / w > 0.5",
    "v BETWEEN {0} AND {1}", "v IN ({0}, {1})", "v IS NULL", "w IS NOT NULL", "NOT v > {0}", "v > {0} AND w < {1}",
    "v = {0} OR name = 'bé'", "name = 'a'", "name LIKE '_é%'", "name != 'a'", "name < 'b'", "name IN ('a', 'ß')",
    "type = 'A'", "w > 1.5", "-v < {0}", "flag", "NOT flag = TRUE", "abs(v - {1}) <= {0}", "round(w) = {1}",
    "coalesce(v, {1}) > {0}", "length(name) > 1", "upper(name) = 'A'", "name || lower(type) = 'aa'", "name RLIKE '^(a|ß)$'",
    "CASE WHEN v > {0} THEN w ELSE v END >= {1}", "CASE name WHEN 'a' THEN v END < {1}",
)  # fmt: skip


def _condition(choose: Choices) -> str:
    return choose.one_of(_CONDITIONS).format(choose.integer(0, 3), choose.integer(1, 4))


def _events(choose: Choices) -> pa.Table:
    now = 0
    rows = []
    for _ in range(choose.integer(0, 9)):
        now += choose.one_of([0, 0, 1, 1, 2, 4])
        rows.append(
            {
                "type": choose.one_of([*TYPES, *TYPES, *TYPES, "D", None]),
                "stream": choose.one_of([*STREAMS, *STREAMS, "S3"]),
                "t": now,
                "ts": now * 500,
                "k": choose.one_of([0, 0, 1, 1, None]),
                "name": choose.one_of(["a", "a", "bé", "ß", None]),
                "v": choose.one_of([0, 1, 2, 3, None]),
                "w": choose.one_of([0.0, 1.0, 2.5, float("nan"), None]),
                "flag": choose.one_of([True, False, None]),
            }
        )
    name = choose.one_of([pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.large_string()])
    kinds = {
        "type": choose.one_of([pa.string(), pa.dictionary(pa.int8(), pa.string())]),
        "stream": pa.string(),
        "t": choose.one_of([pa.int64(), pa.int32(), pa.float64()]),
        "ts": pa.timestamp("ms"),
        "k": choose.one_of([pa.int64(), pa.int16()]),
        "name": name,
        "v": choose.one_of([pa.int64(), pa.int32()]),
        "w": pa.float64(),
        "flag": pa.bool_(),
    }
    return pa.table({column: pa.array([row[column] for row in rows], kind) for column, kind in kinds.items()})


def expected(query: Query, events: pa.Table) -> list[Match]:
    """The reference evaluator's answer."""
    bound = query.bound
    assert isinstance(bound, BoundQuery)
    return evaluate(bound, events)


def rows_of(one: Case) -> tuple[Query, list[dict[str, Any]]]:
    """The engine's answer, fed in the case's batches, through a snapshot between each two where the case says so."""
    options: dict[str, Any] = {"time": one.time, "stream": one.stream}
    query = compile_query(one.query, one.events.schema, **options)
    more: dict[str, Any] = {"valuations": one.valuations, "capacity": one.capacity}
    matcher = Matcher(query, **more)
    rows: list[dict[str, Any]] = []
    edges = [0, *one.cuts, one.events.num_rows]
    for low, high in zip(edges, edges[1:], strict=False):
        rows += matcher.push(one.events.slice(low, high - low)).to_pylist()
        if one.snapshot:
            matcher = Matcher(query, **more).restore(matcher.snapshot())
    rows += matcher.finish().to_pylist()
    return query, rows


def check(one: Case, seed: int = 0) -> int:
    """Assert that engine and reference agree on a case: intervals, positions, and which variable holds which event; how many matches.

    With LIMIT, ties are broken freely: then starts and ends must agree, and every row must be one that is right without it.
    """
    query, rows = rows_of(one)
    found = expected(query, one.events)
    if one.valuations:
        if query.limit is None:
            _same(_valuation_rows(query, found, one.events), [_plain(row) for row in rows], one)
        return len(rows)
    shown = sorted((row["start"], row["end"], tuple(row["positions"])) for row in rows)
    right = sorted((m.start, m.end, tuple(sorted(m.positions))) for m in found)
    if query.limit is None:
        _same(right, shown, one)
    else:
        _same([m[:2] for m in right], [m[:2] for m in shown], one)
        assert len(set(shown)) == len(shown), one
    ends = [row["end"] for row in rows]
    if query.parsed.last_negation is None:
        assert ends == sorted(ends), one
    if query.limit is None:
        _check_variables(query, found, rows, one)
    return len(rows)


def _check_variables(query: Query, found: list[Match], rows: list[dict[str, Any]], one: Case) -> None:
    """Every row shows one of the valuations of its complex event."""
    events = one.events.to_pylist()
    by_positions = {(m.start, m.end, tuple(sorted(m.positions))): m for m in found}
    for row in rows:
        match = by_positions[row["start"], row["end"], tuple(row["positions"])]
        names = _columns(query)
        possible = [
            {
                name: [events[i] for i in sorted(i for v, i in valuation.bindings if v == variable)]
                for variable, name in names
            }
            for valuation in match.valuations
        ]
        shown = {name: row[name] for _, name in names}
        assert repr(shown) in map(repr, possible), (one, shown, possible)


def _columns(query: Query) -> list[tuple[str, str]]:
    from stretto.matching.output.match_table import Layout

    layout = Layout(query.bound)
    return [(variable, name) for (variable, _), name in zip(layout.variables, layout.names, strict=True)]


def _valuation_rows(query: Query, found: list[Match], table: pa.Table) -> list[Any]:
    events = table.to_pylist()
    rows = []
    for match in found:
        distinct = set()
        for v in match.valuations:
            shown = [
                repr([events[i] for i in sorted(i for n, i in v.bindings if n == variable)])
                for variable, _ in _columns(query)
            ]
            positions = tuple(sorted(v.positions))
            bindings = tuple(tuple(sorted(i for n, i in v.bindings if n == name)) for name in _labels(v))
            distinct.add((v.start, v.end, positions, bindings, repr(shown)))
        rows += [(start, end, list(positions), text) for start, end, positions, _, text in distinct]
    return sorted(rows, key=repr)


def _labels(v: Any) -> list[str]:
    return sorted({name for name, _ in v.bindings})


def _plain(row: dict[str, Any]) -> Any:
    skipped = {"start", "end", "positions", "start_time", "end_time"}
    rest = [repr(value) for name, value in row.items() if name not in skipped and isinstance(value, list)]
    return (row["start"], row["end"], row["positions"], repr(rest))


def _same(right: list[Any], shown: list[Any], one: Case) -> None:
    right, shown = sorted(right, key=repr), sorted(shown, key=repr)
    assert right == shown, f"\n{one!r}\nexpected {right}\nfound    {shown}"
