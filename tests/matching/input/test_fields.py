"""Fields of structs by their paths: conditions, keys, windows, results, files, matchers at any cut."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stretto

ADDRESS = pa.struct([("city", pa.string()), ("at", pa.struct([("lat", pa.float64())])), ("n", pa.int64())])
EVENTS = pa.table(
    {
        "type": list("ABABB"),
        "address": pa.array(
            [
                {"city": "X", "at": {"lat": 1.0}, "n": 1},
                {"city": "X", "at": None, "n": 2},
                None,
                {"city": "Y", "at": {"lat": 5.0}, "n": 3},
                {"city": "X", "at": {"lat": 9.0}, "n": 9},
            ],
            ADDRESS,
        ),
        "t": range(5),
    }
)

QUERIES = {
    """SELECT * FROM S WHERE A AS a ; B FILTER a[address.city = 'X' AND address.at.lat < 3]
       PARTITION BY [address.city] WITHIN 3""": [[0, 1], [0, 4]],
    "SELECT b[address.at.lat] FROM S WHERE B AS b FILTER b[address.at.lat IS NULL] WITHIN 5": [[1]],
    """PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.address.city = b.address.city AND b.address.n > 1 } WITHIN 4
       RETURN a.address.city, b.address.n - a.address.n AS d""": [[0, 1], [0, 4]],
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [address.city] AND max(c[].address.n) > 3 } WITHIN 5".replace(
        "A a, B b", "A a, B+ c[]"
    ): [[0, 1, 4], [0, 4]],
}


@pytest.mark.parametrize("text", QUERIES)
def test_everywhere_alike(text: str, tmp_path: Path) -> None:
    text, expected = text.replace("WITHIN 3", "WITHIN 3 EVENTS").replace("WITHIN 5", "WITHIN 5 [t]"), QUERIES[text]
    whole = stretto.match(text, EVENTS, time="t")
    assert sorted(whole.column("positions").to_pylist()) == expected
    pq.write_table(EVENTS, tmp_path / "events.parquet", row_group_size=2)
    assert stretto.match(text, tmp_path / "events.parquet", time="t").equals(whole)
    rows = sorted(map(repr, whole.to_pylist()))
    for schema in (None, EVENTS.schema):
        matcher = stretto.Matcher(text, time="t", schema=schema)
        found = matcher.push(EVENTS.slice(0, 3)).to_pylist()
        resumed = stretto.Matcher(text, time="t", schema=schema)
        resumed.restore(matcher.snapshot())
        found += resumed.push(EVENTS.slice(3)).to_pylist() + resumed.finish().to_pylist()
        assert sorted(map(repr, found)) == rows
    late = stretto.Matcher(text, time="t", schema=EVENTS.schema, disorder=5)
    found = late.push(EVENTS.take([4, 2, 0, 1, 3])).to_pylist() + late.finish().to_pylist()
    assert len(found) == len(rows)


def test_on_a_disordered_stream() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [address.city] AND a.address.n < b.address.n } WITHIN 4"
    matcher = stretto.Matcher(text, time="t", schema=EVENTS.schema, speculation=math.inf)
    found = matcher.push(EVENTS.take([4, 2, 0, 1, 3])).to_pylist() + matcher.finish().to_pylist()
    assert sorted((row["start_time"], row["end_time"], row["address.city"]) for row in found) == [
        (0, 1, "X"),
        (0, 4, "X"),
    ]


def test_streams_and_columns_called_so() -> None:
    text = "SELECT * FROM U, V WHERE A ; B PARTITION BY [address.city]"
    streams = {"U": EVENTS.slice(0, 1), "V": EVENTS.slice(1)}
    assert stretto.match(text, streams, time="t").num_rows == 2
    named = EVENTS.drop_columns(["address"]).append_column("address.city", pa.array(list("XXYYX")))
    found = stretto.match(text.replace("U, V", "U"), named)
    assert found.column("positions").to_pylist() == [[0, 1], [2, 3], [0, 4]]
    assert found.to_pylist()[0]["A"][0]["address.city"] == "X"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM S WHERE A AS a FILTER a[address.town = 'X']", "unknown attribute 'address.town'"),
        ("SELECT * FROM S WHERE A PARTITION BY [address.at]", "cannot partition by 'address.at'"),
        ("SELECT * FROM S WHERE A AS a ; B AS b FILTER b[t > a.t]", "CEQL has no conditions between events"),
        ("PATTERN SEQ(A a) WHERE skip_till_any_match { a.address.n = 'x' }", "cannot compare a.`address.n`"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(stretto.QueryError) as caught:
        stretto.match(text, EVENTS)
    assert message in str(caught.value)


CLAUSE = """MATCH_RECOGNIZE (
    PARTITION BY Address.City ORDER BY {}
    MEASURES b.address.at.lat AS lat, sum(address.n) AS n, PREV(address.n) AS before, t AS last_t
    {} ROW{} PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS address.N > a.address.n
)"""


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (("ONE", ""), [("X", None, 3, 1, 1), ("X", 9.0, 11, 2, 4)]),
        (
            ("ALL", "S"),
            [("X", 0, None, 1, None, 0), ("X", 1, None, 3, 1, 1), ("X", 1, None, 2, 1, 1), ("X", 4, 9.0, 11, 2, 4)],
        ),
    ],
)
def test_patterns_of_rows(rows: tuple[str, str], expected: list[tuple[object, ...]], tmp_path: Path) -> None:
    clause = CLAUSE.format("t", *rows)
    whole = stretto.sql(f"SELECT * FROM e {clause}", e=EVENTS)
    names = [name for name in whole.schema.names if name not in ("type", "address")]
    assert names[0] == "address.city"
    assert [tuple(row.values()) for row in whole.select(names).to_pylist()] == expected
    around = stretto.sql(f"SELECT * FROM (SELECT * FROM e) AS u {clause} WHERE \"address.city\" = 'X'", e=EVENTS)
    assert around.select(names).to_pylist() == whole.select(names).to_pylist()
    pq.write_table(EVENTS, tmp_path / "events.parquet", row_group_size=2)
    assert stretto.sql(f"SELECT * FROM e {clause}", e=tmp_path / "events.parquet").equals(whole)
    matcher = stretto.Matcher(clause, schema=EVENTS.schema, disorder=5)
    found = matcher.push(EVENTS.take([4, 2, 0, 1])).to_pylist()
    resumed = stretto.Matcher(clause, schema=EVENTS.schema, disorder=5).restore(matcher.snapshot())
    assert found + resumed.push(EVENTS.slice(3, 1)).to_pylist() + resumed.finish().to_pylist() == whole.to_pylist()


def test_patterns_of_rows_in_the_order_of_a_field() -> None:
    found = stretto.sql(f"SELECT * FROM e {CLAUSE.format('address.n DESC', 'ALL', 'S')}", e=EVENTS)
    assert found.num_rows == 0
    assert found.schema.names[:3] == ["address.city", "address.n", "lat"]
    matcher = stretto.Matcher(CLAUSE.format("address.n", "ONE", ""), disorder=5)
    given = EVENTS.filter([True, True, False, True, True])
    found = matcher.push(given.take([1, 0, 2, 3])).to_pylist() + matcher.advance(20).to_pylist()
    assert [row["n"] for row in found] == [3, 11]


def test_variables_and_columns_go_before_fields() -> None:
    table = pa.table({"a": [{"x": 1}], "x": [2], "b": [{"x": 3}], "b.x": [4]})
    clause = "MATCH_RECOGNIZE (MEASURES a.x AS v, A.a.x AS f, b.x AS c PATTERN (A))"
    assert stretto.sql(f"SELECT * FROM e {clause}", e=table).to_pylist() == [{"v": 2, "f": 1, "c": 4}]


@pytest.mark.parametrize("text", QUERIES)
def test_sets_of_patterns_read_them(text: str) -> None:
    text = text.replace("WITHIN 3", "WITHIN 3 EVENTS").replace("WITHIN 5", "WITHIN 5 [t]")
    patterns = stretto.PatternSet(EVENTS.schema, time="t", positions=True, measures=True)
    patterns.change([stretto.Change("p", text)])
    found = patterns.push(EVENTS.slice(0, 3)).to_pylist()
    other = stretto.PatternSet(EVENTS.schema, time="t", positions=True, measures=True).restore(patterns.snapshot())
    found += other.push(EVENTS.slice(3)).to_pylist() + other.finish().to_pylist()
    assert sorted(row["positions"] for row in found) == QUERIES[next(one for one in QUERIES if one[:40] == text[:40])]
    assert all(set(entry["event"]) == {"type", "address", "t"} for row in found for entry in row["events"])


def test_fields_are_added_up_grouped_by_and_ranked() -> None:
    items = "COUNT(*) AS n, SUM(b[address.n]) AS s, MAX(b[address.at.lat]) AS m"
    query = f"SELECT {items} FROM S WHERE A AS a ; B+ AS b GROUP BY a[address.city]"
    assert stretto.match(query, EVENTS).sort_by("n").to_pylist() == [
        {"a_address_city": None, "n": 3, "s": 24, "m": 9.0},
        {"a_address_city": "X", "n": 7, "s": 56, "m": 9.0},
    ]
    best = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { } ORDER BY sum(b[].address.n) LIMIT 1"
    assert stretto.match(best, EVENTS).column("positions").to_pylist() == [[0, 1]]


#: Everything that tells what an event is lies in one struct, and the same as columns.
FLAT = pa.table(
    {
        "category": list("ABCABB"),
        "at": range(6),
        "seq": range(6),
        "key": list("uuuvuv"),
        "log": ["S"] * 6,
        "x": range(6),
    }
)
NESTED = pa.table({"event": FLAT.drop_columns(["x"]).to_struct_array().combine_chunks(), "x": FLAT["x"]})

#: A query, and what it is called on: with % before each name that is a field in one of the two.
ROLES = {
    "SELECT a, b FROM S WHERE A AS a ; B AS b PARTITION BY [%key] WITHIN 4 [%at]": {},
    "PATTERN SEQ(A a, ~(C c), B b) WHERE skip_till_any_match { [%key] AND a.x < b.x } WITHIN 4": {},
    "SELECT COUNT(*), SUM(b[x]) FROM S WHERE A AS a ; B AS b WITHIN 4 [%at] EVERY 2 [%at]": {},
    "sequence by %key with maxspan=4s [A where x >= 0] [B where x >= 0]": {"language": "eql", "time_unit": "s"},
}


def _rows(table: pa.Table) -> list[str]:
    """Rows without what is called differently."""
    kept = [
        name for name in table.column_names if pa.types.is_integer(table.schema.field(name).type) or name == "positions"
    ]
    return sorted(map(repr, table.select(kept).to_pylist()))


def _named(text: str, prefix: str) -> str:
    return text.replace("%", prefix)


@pytest.mark.parametrize("query", ROLES)
def test_fields_play_roles_in_every_call(query: str, tmp_path: Path) -> None:
    given = {"flat": (FLAT, ""), "nested": (NESTED, "event.")}
    found: dict[str, dict[str, object]] = {}
    for name, (events, prefix) in given.items():
        text, options = _named(query, prefix), ROLES[query]
        roles = {"type": f"{prefix}category", "time": f"{prefix}at"}
        told = roles | {"sequence": f"{prefix}seq", "stream": f"{prefix}log"}
        path = tmp_path / f"{name}.parquet"
        pq.write_table(events, path)
        rows = found[name] = {}
        rows["match"] = _rows(stretto.match(text, events, **told, **options))
        rows["files"] = _rows(stretto.match(text, path, **told, **options))
        rows["compile"] = stretto.compile(text, events.schema, **roles, **options).columns and None
        rows["iter"] = _rows(pa.concat_tables(stretto.iter_matches(text, events, **told, **options)))
        more: list[dict[str, object]] = [{}, {"disorder": 2, "sequence": told["sequence"]}, {"stream": told["stream"]}]
        if "COUNT" not in query and not options:
            more += [{"timeouts": True}, {"speculation": math.inf, "sequence": told["sequence"]}]
            rows["why_not"] = str(stretto.why_not(text, events, **told, disorder=2)).replace(prefix, "")
        if not options:
            rows["explain"] = str(stretto.explain(text, events, **told)).splitlines()[-2:]
        for chosen in more:
            for schema in (None, events.schema):
                matcher = stretto.Matcher(text, schema, **roles, **options, **chosen)
                tables = [matcher.push(events.slice(0, 2))]
                resumed = stretto.Matcher(text, matcher.query.schema, **roles, **options, **chosen)
                resumed.restore(matcher.snapshot())
                tables += [resumed.push(events.slice(2)), resumed.finish()]
                rows[f"Matcher {chosen.keys()} {schema is None}"] = _rows(pa.concat_tables(tables))
        patterns = stretto.PatternSet(events.schema, **roles, **options, positions=True, totals=True)
        patterns.change([stretto.Change("p", text)])
        rows["PatternSet"] = _rows(pa.concat_tables([patterns.push(events), patterns.finish()]))
        rules = stretto.read_rules([{"id": "p", "query": text, **({"language": "eql"} if options else {})}])
        if "COUNT" not in query and not options:
            rows["rules"] = _rows(rules.match(events, **told).matches)
            assert len(rows["rules"]) == len(rows["match"]) > 0
            assert len(rules.match(path, **told).matches) == len(rows["match"])
        assert rows["match"]
        assert rows["PatternSet"]
    assert found["nested"] == found["flat"]


def test_fields_play_roles_for_automata_and_what_reorders() -> None:
    afa = stretto.AFA({"x": int}).arc("q0", "q1", when="e.x = 1").arc("q1", "q2", when="e.x = 2").final("q2")
    shuffled = [3, 1, 0, 5, 2, 4]
    found = []
    for events, prefix in ((FLAT, ""), (NESTED, "event.")):
        roles = {"time": f"{prefix}at", "sequence": f"{prefix}seq"}
        matcher = stretto.Matcher(afa, **roles, disorder=9)
        late = pa.concat_tables([matcher.push(events.take(shuffled)), matcher.finish()])
        cleanse = stretto.Cleanse(**roles, disorder=9, partition_by=[f"{prefix}key"])
        sorted_rows = pa.concat_tables([cleanse.push(events.take(shuffled)), cleanse.finish()])
        found.append(
            [
                _rows(stretto.match(afa, events, **roles)),
                _rows(late),
                sorted_rows.column("x").to_pylist(),
                str(stretto.why_not(afa, events, **roles)),
                str(stretto.explain(afa, events, time=roles["time"])),
            ]
        )
    assert found[0] == found[1]
    assert found[0][0]
    matches = stretto.match("SELECT * FROM S WHERE A ; B", NESTED, type="event.category", time="event.at")
    assert "A" in str(stretto.timeline(matches, NESTED, time="event.at"))
