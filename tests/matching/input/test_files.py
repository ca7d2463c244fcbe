"""Events in files: the same matches as from one table of all rows, whatever the format, the order and what the scan leaves out."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

import stretto
from stretto.errors import DataError, OptionError
from stretto.matching.api import match as call
from stretto.matching.input import files
from stretto.matching.input import ordered_input as inputs
from stretto.matching.input import ordered_input as merging
from stretto.matching.input.files import Source, open_files
from stretto.matching.input.predicate_pushdown import relevant
from stretto.matching.output import match_table as matches
from tests.conftest import cases

QUERY = "SELECT * FROM S WHERE A AS a; B AS b FILTER b[v > 2] PARTITION BY [k] WITHIN 6 [t]"
EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "C", "B", "B", "A", "B"],
        "k": ["x", "x", "y", "x", "y", "x", None, "x"],
        "t": [1, 2, 3, 4, 5, 6, 7, 8],
        "v": [1, 2, 3, 4, 5, 6, 7, 8],
        "note": [f"n{i}" for i in range(8)],
    }
)


def same(found: pa.Table, expected: pa.Table) -> None:
    assert found.schema == expected.schema
    assert found.to_pylist() == expected.to_pylist()


def write(table: pa.Table, path: str) -> None:
    match files.kind_of(path):
        case "parquet":
            pq.write_table(table, path, row_group_size=3)
        case "csv":
            csv.write_csv(table, path)
        case "arrow":
            feather.write_feather(table, path)
        case _:
            Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")
    if path.endswith(".gz"):
        Path(path).write_bytes(gzip.compress(Path(path).read_bytes()))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- Forms


def in_parts() -> None:
    Path("parts").mkdir()
    for number, begin in enumerate((0, 3, 6)):
        write(EVENTS.slice(begin, 3), f"parts/{number}.parquet")
    Path("parts/_SUCCESS").touch()
    Path("parts/.part.crc").touch()


FORMS: dict[str, Callable[[], Any]] = {
    "str": lambda: "e.parquet",
    "Path": lambda: Path("e.parquet"),
    "directory": lambda: "parts",
    "pattern": lambda: "parts/*.parquet",
    "list": lambda: [Path("parts/0.parquet"), "parts/1.parquet", "parts/2.parquet"],
    "dataset": lambda: ds.dataset("parts"),
    "dataset in memory": lambda: ds.dataset(EVENTS),
    "csv": lambda: "e.csv",
    "csv.gz": lambda: "e.csv.gz",
    "jsonl": lambda: "e.jsonl",
    "jsonl.gz": lambda: "e.jsonl.gz",
    "arrow": lambda: "e.arrow",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_files(form: str) -> None:
    in_parts()
    given = FORMS[form]()
    if isinstance(given, str) and given.startswith("e."):
        write(EVENTS.select(["type", "k", "t", "v"]), given)
    elif form == "Path":
        write(EVENTS, "e.parquet")
    events = open_files(given).table()
    assert events.num_rows == 8
    expected = stretto.match(QUERY, events)
    assert [row["positions"] for row in expected.to_pylist()] == [[2, 4], [0, 5]] or form.startswith("csv")
    same(stretto.match(QUERY, given), expected)
    same(pa.concat_tables(stretto.iter_matches(QUERY, given)), expected)


# ---- The same as from memory


QUERIES = [
    QUERY,
    "SELECT * FROM S WHERE A AS a; B+ AS b FILTER a[v > 3] WITHIN 3 [t]",
    "SELECT * FROM S WHERE A AS a : B AS b",
    "SELECT b FROM S WHERE A AS a; B AS b WITHIN 3 EVENTS",
    "SELECT * FROM S WHERE A AS a; B AS b FILTER b[k = 'x' OR v IN (1, 2)] PARTITION BY [k]",
    "SELECT * FROM S WHERE B AS b FILTER b[v <= 1 AND NOT k = 'y']",
    "PATTERN SEQ(A a, ~(C c), B+ b[]) WHERE skip_till_next_match { [k] AND b[i].v > a.v } WITHIN 5 "
    "RETURN a.k AS who, count(b[].v) AS n",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE skip_till_any_match { a.note != b.note } WITHIN 3",
]


def random_events(rng: random.Random) -> pa.Table:
    rows = rng.randint(1, 40)
    times = [rng.randint(0, 9) for _ in range(rows)]
    if rng.random() < 0.6:
        times.sort()
    kinds = [rng.choice("ABCD") for _ in range(rows)]
    if rng.random() < 0.5:
        kinds = sorted(kinds, key="CDAB".index)  # row groups without any event that matters
    return pa.table(
        {
            "type": pa.array(kinds, pa.string()),
            "k": pa.array([rng.choice(["x", "y", "é", None]) for _ in range(rows)], pa.string()),
            "t": times,
            "v": pa.array([rng.choice([0, 1, 2, 5, None]) for _ in range(rows)], pa.int64()),
            "note": pa.array([f"{i % 5} and more text than a code has" for i in range(rows)], pa.string()),
        }
    )


@pytest.mark.filterwarnings("ignore:no event has the type")
def test_matches_are_those_of_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PIECE", 3)
    monkeypatch.setattr(matches, "CHUNK", 3)
    passed_over = 0
    for seed in range(cases(300)):
        rng = random.Random(seed)
        events = random_events(rng)
        query = rng.choice(QUERIES)
        time = "t" if query.startswith("PATTERN") or rng.random() < 0.7 else None
        if time is None and events["t"].to_pylist() != sorted(events["t"].to_pylist()):
            time = "t"
        pq.write_table(events, "e.parquet", row_group_size=rng.randint(1, 9), use_dictionary=rng.random() < 0.7)
        source = open_files("e.parquet")
        output = rng.choice(["events", "positions", "summary"])
        if output == "summary" and query.endswith("WITHIN 3") and query.startswith("PATTERN"):
            output = "events"
        try:
            same(
                stretto.match(query, source, time=time, output=output),
                stretto.match(query, events, time=time, output=output),
            )
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {query}: {error}")
        passed_over += source.skipped
    assert passed_over


AFA = stretto.AFA({"type": str, "v": int, "k": str}, partition_by="k", window=4)
AFA = AFA.arc("q0", "q1", when="e.type = 'A'").arc("q1", "q2", when="e.type = 'B' AND e.v > 1").final("q2")
SETS = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] AND b[i].v > a.v } WITHIN 4"
STREAMS = [
    "SELECT * FROM P, Q WHERE P>A AS a; Q>B AS b FILTER b[v > 1] WITHIN 4 [t]",
    "SELECT b FROM P, Q WHERE P>A AS a; Q>B AS b PARTITION BY [k]",
    "SELECT * FROM Q WHERE A AS a; B AS b",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] AND b.v > a.v } WITHIN 4 RETURN a.only, b.k",
]


def all_sets(query: str, events: Any, **options: Any) -> list[Any]:
    """Each set, listed when all have been given."""
    found = list(stretto.match_sets(query, events, **options))
    return [(one.end, one.count, one.first(100).to_pylist()) for one in found]


@pytest.mark.filterwarnings("ignore:no event has the type")
def test_automata_sets_and_streams_are_those_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inputs, files, call):
        monkeypatch.setattr(module, "CHUNK" if module is call else "PIECE", 3)
    monkeypatch.setattr(matches, "CHUNK", 3)
    for seed in range(cases(200)):
        rng = random.Random(seed)
        given = {"P": random_events(rng), "Q": random_events(rng)}
        for name, events in given.items():
            order = pa.array(
                rng.sample(range(events.num_rows), events.num_rows), pa.int16() if name == "P" else pa.int64()
            )
            given[name] = events.append_column("n", order)
        given["P"] = given["P"].append_column("only", given["P"]["note"])
        for name, events in given.items():
            if rng.random() < 0.7:
                given[name] = events.sort_by([("t", "ascending"), ("n", "ascending")])
            pq.write_table(given[name], f"{name}.parquet", row_group_size=rng.randint(1, 9))
        output = rng.choice(["events", "positions"])
        options: dict[str, Any] = {"time": "t", "sequence": rng.choice([None, "n"])}
        query = rng.choice(STREAMS)
        paths = {"P": "P.parquet", "Q": Path("Q.parquet")}
        try:
            same(stretto.match(AFA, "P.parquet", **options), stretto.match(AFA, given["P"], **options))
            assert all_sets(SETS, "P.parquet", **options) == all_sets(SETS, given["P"], **options)
            same(
                stretto.match(query, paths, **options, output=output),
                stretto.match(query, given, **options, output=output),
            )
            if query.startswith("PATTERN"):
                assert all_sets(query, paths, **options) == all_sets(query, given, **options)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {query}: {error}")


def test_automata_sets_and_streams_hold_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PIECE", 50)
    monkeypatch.setattr(files, "PIECE", 50)
    rows = 5_000
    events = pa.table(
        {"type": ["A", "B"] * (rows // 2), "k": ["x"] * rows, "t": range(rows), "v": [2, 3] * (rows // 2)}
    )
    pq.write_table(events, "P.parquet", row_group_size=100)
    pq.write_table(events, "Q.parquet", row_group_size=170)
    held: list[int] = []

    keeps, orders = matches.History.append, merging.ordered

    def append(self: matches.History, *piece: Any) -> None:
        keeps(self, *piece)
        held.append(self.rows)

    def ordered(table: pa.Table, *by: str) -> Any:
        held.append(table.num_rows)
        return orders(table, *by)

    monkeypatch.setattr(matches.History, "append", append)
    monkeypatch.setattr(merging, "ordered", ordered)
    monkeypatch.setattr(inputs.InMemory, "__init__", lambda *_: pytest.fail("the files are read as a whole"))
    assert stretto.match(AFA, "P.parquet", time="t").num_rows == rows // 2
    assert all(len(one) for one in stretto.match_sets(SETS, "P.parquet", time="t"))
    streams = {"P": "P.parquet", "Q": "Q.parquet"}
    matched = stretto.match("SELECT * FROM P, Q WHERE P>A AS a; Q>B AS b WITHIN 4 [t]", streams, time="t")
    assert matched.num_rows == rows - 1
    assert len(held) > 300
    assert max(held) < 400


def test_only_the_columns_that_are_needed_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    write(EVENTS, "e.parquet")
    read: list[set[str]] = []
    own = Source.read

    def noted(self: Source, names: Any, *rest: Any, **options: Any) -> Any:
        read.append(set(names))
        return own(self, names, *rest, **options)

    monkeypatch.setattr(Source, "read", noted)
    stretto.match(QUERY, "e.parquet", output="positions")
    stretto.match("SELECT a[v] FROM S WHERE A AS a; B AS b", "e.parquet")
    assert read == [{"type", "k", "t", "v"}, {"type", "v"}]


def test_what_is_kept_in_memory_is_bounded_by_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PIECE", 50)
    rows = 5_000
    events = pa.table({"type": ["A", "B"] * (rows // 2), "t": range(rows), "text": [f"event {i}" for i in range(rows)]})
    pq.write_table(events, "e.parquet", row_group_size=100)
    kept: list[int] = []
    own = matches.History.let_go

    def noted(self: matches.History, *given: Any) -> int | None:
        found = own(self, *given)
        kept.append(self.rows)
        return found

    monkeypatch.setattr(matches.History, "let_go", noted)
    found = stretto.match("SELECT * FROM S WHERE A AS a; B AS b WITHIN 20 [t]", "e.parquet")
    same(found, stretto.match("SELECT * FROM S WHERE A AS a; B AS b WITHIN 20 [t]", events))
    assert len(kept) >= 100
    assert max(kept) < 200


def test_without_a_window_what_no_match_holds_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PIECE", 50)
    monkeypatch.setattr(inputs, "SPARE", 4_000)
    monkeypatch.setattr(matches, "CHUNK", 100)
    rows = 5_000
    events = pa.table({"type": ["A", "C", "C", "C", "B"] * (rows // 5), "n": range(rows)})
    pq.write_table(events, "e.parquet", row_group_size=100)
    kept: list[int] = []
    own = matches.History.let_go

    def noted(self: matches.History, *given: Any) -> int | None:
        found = own(self, *given)
        kept.append(self.rows)
        return found

    monkeypatch.setattr(matches.History, "let_go", noted)
    query = "SELECT * FROM S WHERE A AS a; B AS b CONSUME BY ANY"
    same(stretto.match(query, "e.parquet"), stretto.match(query, events))
    assert 100 < max(kept) < 200


def test_row_groups_that_cannot_matter_are_not_read_and_still_counted() -> None:
    pq.write_table(pa.table({"type": ["C"] * 6 + ["A"] * 3 + ["B"] * 3 + ["C"] * 3}), "e.parquet", row_group_size=3)
    source = open_files("e.parquet")
    found = stretto.match("SELECT * FROM S WHERE A; B", source, output="positions")
    assert (source.skipped, found["start"].to_pylist()[:3], found["end"].to_pylist()[-1]) == (3, [8, 7, 6], 11)
    contiguous = open_files("e.parquet")
    assert stretto.match("SELECT * FROM S WHERE A : B", contiguous).num_rows == 1
    assert contiguous.skipped == 0


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, !(B b)) WHERE skip_till_next_match { a.t > 0 } WITHIN 10",
        "SELECT * FROM S WHERE A AS a ; NOT B WITHIN 10 [t]",
    ],
    ids=["sase", "ceql"],
)
def test_row_groups_that_cannot_matter_close_windows(text: str) -> None:
    events = pa.table({"type": ["A", "A", "C", "C", "A"], "t": [1, 2, 100, 101, 102]})
    pq.write_table(events, "e.parquet", row_group_size=2)
    for at_end, count in (("drop", 2), ("complete", 3)):
        assert stretto.match(text, events, time="t", at_end=at_end).num_rows == count
        assert stretto.match(text, "e.parquet", time="t", at_end=at_end).num_rows == count


@pytest.mark.parametrize(
    ("text", "at_end", "skips"),
    [
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.t > 0 } WITHIN 10", "drop", True),
        ("SELECT * FROM S WHERE A ; B WITHIN 10 [t]", "drop", True),
        ("SELECT * FROM S WHERE A ; B AFTER 1 [t]", "drop", True),
        ("SELECT * FROM S WHERE A KEEP LONGEST", "drop", True),
        ("SELECT * FROM S WHERE A WITHIN 10 [t] KEEP SHORTEST", "drop", False),
        ("SELECT * FROM S WHERE A ; NOT B WITHIN 10 [t]", "drop", False),
        ("SELECT * FROM S WHERE A ; NOT B WITHIN 10 [t]", "complete", True),
    ],
)
def test_row_groups_are_skipped_where_nothing_waits_for_them(text: str, at_end: str, skips: bool) -> None:
    events = pa.table({"type": ["A", "B", "C", "C", "A", "B"], "t": [1, 2, 100, 101, 102, 103]})
    pq.write_table(events, "e.parquet", row_group_size=2)
    source = open_files("e.parquet")
    same(
        stretto.match(text, source, time="t", at_end=at_end),
        stretto.match(text, events, time="t", at_end=at_end),
    )
    assert (source.skipped > 0) is skips


def test_conditions_that_files_are_asked() -> None:
    query = "SELECT * FROM S WHERE A AS a; B AS b FILTER a[v > 2.5 AND k LIKE 'x%'] AND b[NOT v = 3]"
    asked = relevant(stretto.compile(query, EVENTS.schema))
    assert str(asked) == '(((type == "A") and (v > 2)) or (type == "B"))' or str(asked) == (
        '(((type == "A") and (v >= 3)) or (type == "B"))'
    )
    assert relevant(stretto.compile("SELECT * FROM S WHERE A : B", EVENTS.schema)) is None


# ---- CSV


def test_numbers_do_not_begin_with_a_zero() -> None:
    Path("e.csv").write_text("type,k,n,x\nA,7,1,0.5\nB,8,2,1\nB,007,-3,0\n", encoding="utf-8")
    kinds = open_files("e.csv").schema
    assert [kinds.field(name).type for name in ("k", "n", "x")] == [pa.string(), pa.int64(), pa.float64()]
    query = "SELECT * FROM S WHERE A; B PARTITION BY [k]"
    assert stretto.match(query, "e.csv").num_rows == 0
    told = open_files("e.csv", types={"k": pa.int64()})
    assert stretto.match(query, told).num_rows == 1


def test_a_zero_in_one_of_many_files() -> None:
    Path("1.csv").write_text("type,k\nA,7\n", encoding="utf-8")
    Path("2.csv").write_text("type,k\nB,07\nB,7\n", encoding="utf-8")
    found = stretto.match("SELECT * FROM S WHERE A; B PARTITION BY [k]", "*.csv")
    assert [(row["positions"], row["k"]) for row in found.to_pylist()] == [([0, 2], "7")]


def test_types_of_csv_hold_all_rows() -> None:
    many = "".join(f"A,{i},{i}\n" for i in range(200_000))
    Path("e.csv").write_text(f"type,n,m\n{many}A,2.5,x\n", encoding="utf-8")
    table = open_files("e.csv").table()
    assert (table.schema.field("n").type, table.schema.field("m").type) == (pa.float64(), pa.string())
    assert table.slice(200_000).to_pylist() == [{"type": "A", "n": 2.5, "m": "x"}]


# ---- Folders, several files


def test_folders_are_columns() -> None:
    for key in ("7", "007"):
        Path(f"d/k={key}").mkdir(parents=True)
        write(pa.table({"type": ["A", "B"], "t": [1, 2]}), f"d/k={key}/e.parquet")
    found = stretto.match("SELECT * FROM S WHERE A AS a; B AS b PARTITION BY [k]", "d", time="t")
    assert sorted((row["k"], row["positions"]) for row in found.to_pylist()) == [("007", [0, 1]), ("7", [2, 3])]
    Path("d/k=007").rename("d/k=8")
    assert open_files("d").schema.field("k").type == pa.int64()


def test_columns_of_several_files_unify() -> None:
    pq.write_table(pa.table({"type": ["A"], "v": pa.array([1], pa.int32())}), "1.parquet")
    pq.write_table(pa.table({"v": [2.5], "type": pa.array(["B"], pa.large_string()), "w": ["w"]}), "2.parquet")
    assert open_files("*.parquet").table().to_pylist() == [
        {"type": "A", "v": 1.0, "w": None},
        {"type": "B", "v": 2.5, "w": "w"},
    ]
    pq.write_table(pa.table({"type": [True]}), "3.parquet")
    with pytest.raises(DataError, match="no common types"):
        open_files("*.parquet")


# ---- Mistakes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("event.parquet", r"no such file: event\.parquet; did you mean 'events\.parquet'\?"),
        ("nothing*.csv", r"no file is named like 'nothing\*\.csv'"),
        ("events.xlsx", r"cannot read 'events\.xlsx': end it in \.parquet, \.csv"),
        ("empty", r"there are no events in 'empty'"),
        (["events.parquet", "events.csv"], "these are csv and parquet"),
        ("s3://bucket/events", r"give pyarrow\.dataset\.dataset\('s3://bucket/events', …\)"),
    ],
)
def test_mistakes(given: Any, message: str) -> None:
    for name in ("events.parquet", "events.csv"):
        write(EVENTS, name)
    Path("events.xlsx").touch()
    Path("empty").mkdir()
    with pytest.raises(OptionError, match=message):
        stretto.match(QUERY, given)


def test_files_that_are_not_what_they_say() -> None:
    Path("broken.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match=r"broken\.parquet"):
        stretto.match(QUERY, "broken.parquet")
    write(EVENTS, "e.parquet")
    with pytest.raises(OptionError, match=r"there is no column 'kk' to give a type"):
        open_files("e.parquet", types={"kk": pa.string()})
    with pytest.raises(DataError, match=r"'t' decreases from 8 to 1 at row 8"):
        stretto.match(QUERY, ["e.parquet", "e.parquet"])
    with pytest.raises(DataError, match=r"no column 'time' \(time\)"):
        stretto.match(QUERY, "e.parquet", time="time")


def test_types_that_no_event_of_the_files_has() -> None:
    write(EVENTS, "e.parquet")
    with pytest.warns(stretto.StrettoWarning, match=r"no event has the type 'AA' \(did you mean 'A'\?\)"):
        stretto.match("SELECT * FROM S WHERE AA; B", "e.parquet")


def test_a_list_of_texts_in_a_dict_is_a_column() -> None:
    found = stretto.match("SELECT * FROM S WHERE A ; B", {"type": ["A", "C", "B"]})
    assert found.column("positions").to_pylist() == [[0, 2]]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("a.jsonl", '{"type": "A", "t": 1}\n\n{"type": "B", "t": 2}\n  \t\n', '{"type": "B", "t": x}\n'),
        ("a.csv", 'type,t\nA,1\n\n"B",2\n  \t\n', "B,3,4\n"),
    ],
)
def test_blank_lines_are_passed_over_and_a_bad_record_has_its_line(
    tmp_path: Path, name: str, good: str, bad: str
) -> None:
    path = tmp_path / name
    path.write_text(good)
    assert stretto.match("SELECT * FROM S WHERE A ; B", path, time="t").num_rows == 1
    path.write_text(good + bad)
    with pytest.raises(DataError, match=rf"{name}, line {len((good + bad).splitlines())}: "):
        stretto.match("SELECT * FROM S WHERE A ; B", path, time="t")
