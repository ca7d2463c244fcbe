"""Live streams: what comes into a file that grows, while patterns change."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv
from pyarrow import parquet as pq

import stretto
from stretto.errors import DataError, OptionError
from stretto.studio import following, worker
from stretto.studio.following import ParquetFolder, TextFile, follow
from stretto.studio.replay import Replay
from stretto.studio.workbench import Roles, Workbench
from stretto.studio.worker import Live
from tests.conftest import cases

QUERY = "SELECT * FROM S WHERE A AS a; B AS b WITHIN 5 [t]"
SCHEMA = pa.schema({"type": pa.string(), "t": pa.int64()})


def all_of(source: following.Source) -> pa.Table:
    """What has come."""
    pieces = list(iter(source.more, None))
    return pa.concat_tables(pieces) if pieces else SCHEMA.empty_table()


def replay_of(path: Path, disorder: str = "", schema: pa.Schema = SCHEMA, **roles: Any) -> tuple[Replay, Live]:
    bench = Workbench(schema.empty_table(), Roles(**{"time": "t"} | roles))
    stream = Live(bench, follow(path, schema), disorder)
    return Replay(bench, stream), stream


def wrote(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


# ---- Files


def test_records_count_when_their_lines_have_ended(tmp_path: Path) -> None:
    for name, lines in [
        ("a.csv", ['"type",t', "A,1", '"B\nC, ""é""",2', "", "D,3"]),
        (
            "a.jsonl",
            ['{"type": "A", "t": 1}', '{"t": 2, "type": "B\\nC, \\"é\\"", "more": [1]}', "", '{"type": "D", "t": 3}'],
        ),
    ]:
        path = tmp_path / name
        path.touch()
        source = follow(path, SCHEMA)
        found = []
        for byte in "\n".join([*lines, ""]).encode():
            wrote(path, bytes([byte]))
            found += all_of(source).to_pylist()
        assert [tuple(one.values()) for one in found] == [("A", 1), ('B\nC, "é"', 2), ("D", 3)], name
        assert (source.bad, source.why) == (0, None)
        wrote(path, lines[-1])
        assert source.more() is None
        wrote(path, "\r\n")
        assert all_of(source).to_pylist() == [{"type": "D", "t": 3}]


def test_records_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    for seed in range(cases(20)):
        draw = random.Random(seed)
        good = draw.random()
        kinds = [draw.random() < good for _ in range(draw.randint(1, 40))]
        deep = f'{{"x": {"[" * 101 + "]" * 101}}}'
        for name, right, wrongs in [
            ("x.csv", "A,{}", ["A,x", "A", "A,1,2", "\udcff,1"]),
            ("x.json", '{{"type": "A", "t": {}}}', ['{"type": "A", "t": "x"}', "{", '{"t": 1.5}', deep]),
        ]:
            path = tmp_path / name
            lines = [right.format(i) if kind else draw.choice(wrongs) for i, kind in enumerate(kinds)]
            header = ["type,t"] if name == "x.csv" else []
            path.write_bytes("".join(f"{line}\n" for line in [*header, *lines]).encode(errors="surrogateescape"))
            source = follow(path, SCHEMA)
            found = all_of(source)
            assert found.column("t").to_pylist() == [i for i, kind in enumerate(kinds) if kind], (seed, lines)
            assert source.bad == kinds.count(False), (seed, lines)
            assert (source.why is None) == all(kinds), seed


def test_a_file_that_is_gone_cut_or_replaced(tmp_path: Path) -> None:
    def begun() -> tuple[Path, TextFile]:
        path = tmp_path / "a.csv"
        path.write_text("type,t\nA,1\n")
        source = TextFile(path, SCHEMA, csv=True)
        assert all_of(source).num_rows == 1
        return path, source

    path, source = begun()
    path.rename(tmp_path / "a.old")
    wrote(tmp_path / "a.old", "A,2\n")
    assert all_of(source.__class__(tmp_path / "a.old", SCHEMA, csv=True)).num_rows == 2
    assert source.more() is not None  # what was written into the one that was opened
    with pytest.raises(DataError, match=r"'a\.csv' has gone"):
        source.more()
    path, source = begun()
    path.write_text("type,t\n")
    with pytest.raises(DataError, match="has become shorter"):
        source.more()
    path, source = begun()
    path.unlink()
    path.symlink_to(tmp_path / "a.old")  # which is not followed
    with pytest.raises(DataError, match="another file has taken the place"):
        source.more()


def test_a_quote_that_is_not_closed_ends_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LONGEST_RECORD", 64)
    path = tmp_path / "a.csv"
    path.write_text('type,t\nA,1\nB,2\n"' + "A,3\n" * 40)
    source = follow(path, SCHEMA)
    found: list[Any] = []
    with pytest.raises(DataError, match="a record has more than 64 bytes: a quote is perhaps not closed"):
        found += iter(source.more, None)
    assert sum(one.num_rows for one in found) == 2


def test_files_that_come_into_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def put(name: str, times: list[int], **more: Any) -> None:
        pq.write_table(pa.table({"t": pa.array(times, pa.int32()), "type": ["A"] * len(times)} | more), folder / name)

    put("b.parquet", [3])
    put("a.parquet", [1, 2], extra=["x", "y"])
    put(".c.parquet", [9])
    put("_d.parquet", [9])
    put("e.txt", [9])
    (folder / "link.parquet").symlink_to(folder / "a.parquet")
    (folder / "dir.parquet").mkdir()
    source = follow(folder / "*.parquet", SCHEMA)
    assert isinstance(source, ParquetFolder)
    assert all_of(source).to_pylist() == [{"type": "A", "t": one} for one in (1, 2, 3)]
    put("a2.parquet", [4])
    whole = (folder / "a2.parquet").read_bytes()
    (folder / "a2.parquet").write_bytes(whole[:-9])
    put("z.parquet", [5])
    assert all_of(source).column("t").to_pylist() == [5]
    assert (source.bad, source.waiting) != (0, None)
    assert "'a2.parquet' is not whole yet" in str(source.waiting)
    (folder / "a2.parquet").write_bytes(whole)
    assert all_of(source).column("t").to_pylist() == [4]
    assert (source.bad, source.why, source.waiting) == (0, None, None)
    pq.write_table(pa.table({"type": ["A"]}), folder / "no.parquet")
    pq.write_table(pa.table({"type": ["A"], "t": ["x"]}), folder / "text.parquet")
    assert all_of(source).num_rows == 0
    assert (source.bad, "'text.parquet' was not read to its end" in str(source.why)) == (2, True)
    for path in folder.iterdir():
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    folder.rmdir()
    with pytest.raises(DataError, match="has gone"):
        source.more()


@pytest.mark.parametrize("name", ["a.parquet", "a.csv.gz", "a.arrow"])
def test_what_does_not_grow(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="does not grow: a CSV file is followed"):
        follow(tmp_path / name, SCHEMA)
    with pytest.raises(OptionError, match="cannot be read: No such file"):
        follow(tmp_path / "none.csv", SCHEMA)


# ---- Streams


def test_what_is_found_depends_on_the_events_alone(tmp_path: Path) -> None:
    """However the file grows and is read, the matches are those of the events that are not late."""
    for seed in range(cases(30)):
        draw = random.Random(seed)
        rows = [(draw.choice("AB"), draw.choice([*range(12), *range(12), None])) for _ in range(draw.randint(1, 16))]
        rows.sort(key=lambda row: (row[1] or 0) + draw.choice([0, 0, 3]))
        disorder = draw.choice(["", "0", "2", "4"])
        lines = "".join(f"{kind},{'' if at is None else at}\n" for kind, at in rows)
        path = tmp_path / "a.csv"
        path.write_text("type,t\n")
        replay, stream = replay_of(path, disorder)
        replay.put("p", QUERY)
        while lines:
            cut = draw.randint(1, 20)
            wrote(path, lines[:cut])
            lines = lines[cut:]
            state = replay.read(draw.choice([1e300, -1e300, 6.0]), draw.randint(0, 3))
        replay.read(1e300, 0)
        stream.close()
        state = replay.read(1e300, 0)
        kept: list[tuple[str, int]] = []
        late = untimed = 0
        greatest = -1
        for kind, at in rows:
            if at is None:
                untimed += 1
            elif at < greatest - int(disorder or 0):
                late += 1
            else:
                kept.append((kind, at))
                greatest = max(at, greatest)
        kept.sort(key=lambda row: row[1])
        said = state["live"]
        assert (said["late"], said["untimed"], said["held"], said["bad"]) == (late, untimed, 0, 0), seed
        assert (state["read"], state["ended"]) == (len(kept), True), seed
        columns = {"type": [kind for kind, _ in kept], "t": pa.array([at for _, at in kept], pa.int64())}
        expected = stretto.match(QUERY, columns, time="t").column("positions").to_pylist()
        found = [one["rows"] for one in state["matches"]]
        assert sorted(found) == sorted(expected), seed
        for number, (at, values) in state["events"].items():
            assert values == [*kept[int(number)]], seed
            assert at == values[1]


def test_patterns_change_while_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("type,t\n")
    replay, stream = replay_of(path)
    replay.put("p", QUERY)
    assert replay.read(1e300, 0)["read"] == 0
    wrote(path, "A,1\nB,1\nA,2\n")
    assert [one["rows"] for one in replay.read(1e300, 0)["matches"]] == [[0, 1]]
    replay.put("q", "SELECT * FROM S WHERE A AS a")
    replay.put("p", "")
    wrote(path, "A,2\nA,4\nB,5\n")
    state = replay.read(-1e300, 1)
    assert (state["read"], state["count"]) == (4, 1)  # of the time of the last one before
    state = replay.read(1e300, 0)
    assert [(one["rows"], one["values"]) for one in state["matches"]] == [
        ([4], {"pattern": "q", "since": 3}),
        ([0, 1], {"pattern": "p", "since": None}),
    ]
    path.unlink()
    assert "has gone" in replay.read(1e300, 0)["live"]["broken"]
    assert not replay.read(1e300, 0)["ended"]
    stream.close()
    assert replay.read(1e300, 0)["ended"]
    with pytest.raises(OptionError, match="the stream has ended"):
        replay.put("q", QUERY)


def test_what_is_held_comes_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"type": "B", "t": 9}\n{"type": "A", "t": 7}\n{"type": "A", "t": 1}\n{"type": "A"}\n{"t": \n')
    replay, stream = replay_of(path, "3")
    replay.put("p", QUERY)
    state = replay.read(1e300, 0)
    said = state["live"]
    assert (state["read"], said["held"], said["late"], said["untimed"], said["bad"]) == (0, 2, 1, 1, 1)
    assert said["why"].startswith('{"t":')
    stream.close()
    state = replay.read(1e300, 0)
    assert ([one["rows"] for one in state["matches"]], state["live"]["held"]) == ([[0, 1]], 0)


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (pa.timestamp("ns"), "2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00.000000002"),
        (pa.timestamp("s", "UTC"), "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"),
        (pa.date32(), "2024-02-29", "2024-03-01"),
        (pa.date64(), "2024-02-29", "2024-03-01"),
        (pa.float32(), "0.1", "0.2"),
        (pa.float64(), "1e300", "1.1e300"),
        (pa.int8(), "126", "127"),
    ],
)
def test_a_change_holds_from_the_next_time_on(tmp_path: Path, kind: pa.DataType, first: str, second: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"type,t\nA,{first}\n")
    schema = pa.schema({"type": pa.string(), "t": kind})
    replay, _ = replay_of(path, schema=schema)
    assert replay.read(1e308, 0)["read"] == 1
    replay.put("p", "SELECT * FROM S WHERE A AS a")
    wrote(path, f"A,{first}\nA,{second}\n")
    assert [one["rows"] for one in replay.read(1e308, 0)["matches"]] == [[2]]


def test_what_no_live_stream_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("type,t\nA,1\nA,2\nA,3\n")
    with pytest.raises(OptionError, match="needs a column of time"):
        replay_of(path, time=None)
    for wrong in ("soon", "-1", "5 seconds", "nan"):
        with pytest.raises(OptionError, match="disorder="):
            replay_of(path, wrong)
    with pytest.raises(OptionError, match="has decimals"):
        replay_of(path, schema=pa.schema({"type": pa.string(), "t": pa.decimal128(9, 2)}))
    replay_of(path, "5 seconds", time_unit="ms")
    monkeypatch.setattr(worker, "MOST_HELD", 2)
    assert "say a smaller disorder" in replay_of(path, "9")[0].read(1e300, 0)["live"]["broken"]


def test_only_the_last_events_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_KEPT", 300)
    path = tmp_path / "a.csv"
    csv.write_csv(pa.table({"type": ["B", *"A" * 30_000, "C"], "t": range(30_002)}), path)
    replay, stream = replay_of(path)
    replay.put("p", "SELECT * FROM S WHERE B AS b; C AS c")
    state = replay.read(1e300, 0)
    while state["late"]:
        state = replay.read(1e300, 0)
    assert stream._recent.num_rows <= 300 + 256
    assert state["matches"][0]["rows"] == [0, 30_001]
    assert state["events"] == {"30001": [30001.0, ["C", 30_001]]}
