"""A budget for what is listed: an explosion ends in words, before it takes memory."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto import memory
from stretto.budget import SHARE, SMALL, UNKNOWN_MEMORY, Budget, default_bytes, described_bytes
from stretto.errors import EngineError, LimitError, OptionError, SnapshotError

EXPLODES = "SELECT * FROM S WHERE A+ AS a ; B PARTITION BY [k] WITHIN 1000 [t]"

#: The engines, each with 2ⁿ − 1 matches of n events A and a B.
QUERIES = {
    "tecs": EXPLODES,
    "sase": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [k] } WITHIN 1000",
    "nfab": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match { [k] AND b.v > a[1].v } WITHIN 1000",
}


def events(many: int, key: str = "x") -> list[dict[str, Any]]:
    """So many events A of a key and a B, behind a match of another key."""
    rows = [{"type": kind, "k": "other"} for kind in "AB"] + [{"type": kind, "k": key} for kind in "A" * many + "B"]
    return [row | {"t": 10 * at, "v": int(row["type"] == "B")} for at, row in enumerate(rows)]


# ---- How much there is


@pytest.mark.parametrize(
    ("given", "rows", "size"),
    [
        (7, 7, math.inf),
        ("2 GiB", math.inf, 2 << 30),
        ("1.5kib", math.inf, 1536),
        ("3 MB", math.inf, 3e6),
        (math.inf, math.inf, math.inf),
    ],
)
def test_budgets(given: Any, rows: float, size: float) -> None:
    assert (Budget(given).rows, Budget(given).bytes) == (rows, size)


@pytest.mark.parametrize("given", [0, -1, True, 2.5, "", "2", "much", "0 GiB", "2 Gb/s", math.nan])
def test_what_is_no_budget(given: Any) -> None:
    for call in (
        lambda: stretto.match(EXPLODES, events(2), time="t", budget=given),
        lambda: stretto.Matcher(EXPLODES, budget=given),
        lambda: stretto.iter_matches(EXPLODES, events(2), time="t", budget=given),
        lambda: stretto.PatternSet({"type": "string", "t": "int64"}, time="t", budget=given),
    ):
        with pytest.raises(OptionError, match=re.escape(f"budget={given!r}: expected a number of rows")):
            call()


def machine(root: Path, *, free: int, group: str = "/", **files: str) -> Path:
    """A made-up system; ``files`` are those of the control group, with dots as two underscores."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable: {free >> 10} kB\n")
    version_1 = "memory__limit_in_bytes" in files
    (root / "proc/self/cgroup").write_text(f"4:cpu,memory:{group}\n" if version_1 else f"0::{group}\n")
    folder = root / "sys/fs/cgroup" / ("memory" if version_1 else "") / group.lstrip("/")
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")
    return root


def test_memory_of_a_machine(tmp_path: Path) -> None:
    assert memory.available(machine(tmp_path, free=5 << 30)) == 5 << 30


@pytest.mark.parametrize("group", ["/", "/user/one"])
def test_memory_of_a_container(tmp_path: Path, group: str) -> None:
    stat = f"anon 5\ninactive_file {1 << 20}"
    root = machine(
        tmp_path, free=64 << 30, group=group, memory__max=str(2 << 30), memory__current=str(1 << 30), memory__stat=stat
    )
    assert memory.available(root) == (1 << 30) + (1 << 20)
    (root / "sys/fs/cgroup" / group.lstrip("/") / "memory.max").write_text("max\n")
    assert memory.available(root) == 64 << 30


def test_memory_of_a_container_of_version_1(tmp_path: Path) -> None:
    files = {"memory__limit_in_bytes": str(3 << 30), "memory__usage_in_bytes": str(1 << 30)}
    assert memory.available(machine(tmp_path, free=64 << 30, **files)) == 2 << 30


def test_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, size in ((8 << 30, SHARE * (8 << 30)), (0, SMALL), (None, SHARE * UNKNOWN_MEMORY)):
        monkeypatch.setattr(memory, "available", lambda there=there: there)
        assert default_bytes() == Budget().bytes == size


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert memory.available(tmp_path) is None


@pytest.mark.parametrize(
    ("size", "text"), [(3, "3 bytes"), (1024, "1 KiB"), (1 << 31, "2 GiB"), (1.5 * (1 << 20), "1.5 MiB")]
)
def test_bytes_in_words(size: float, text: str) -> None:
    assert described_bytes(size) == text


# ---- Explosions


@pytest.mark.parametrize("output", ["events", "positions"])
@pytest.mark.parametrize("name", QUERIES)
def test_an_explosion_ends_in_words(name: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    with pytest.raises(LimitError) as raised:
        stretto.match(QUERIES[name], events(80), time="t", output=output)
    assert str(raised.value).splitlines()[0] == (
        "the event in row 82 (t = 820, k = 'x') completes about 2^80 matches (counted, not listed), after 1 of earlier events: a "
        "list of them goes over the budget of 256 MiB, a quarter of the memory there is"
    )
    assert "output='summary'" in str(raised.value)
    assert "LIMIT" in str(raised.value)


def test_nothing_is_listed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not more than one piece of an event's matches is made before they are counted."""
    made: list[int] = []
    drain = stretto.engines.tecs.runner.Runner._drain

    def counted(self: Any) -> Any:
        found = drain(self)
        made.append(found.start.size)
        return found

    monkeypatch.setattr(stretto.engines.tecs.runner.Runner, "_drain", counted)
    with pytest.raises(LimitError, match=r"about 2\^501 matches"):
        stretto.match("SELECT * FROM S WHERE A+ ; B", events(500), time="t")
    assert len(made) == 1


@pytest.mark.parametrize(("budget", "fits"), [(1024, True), (1023, False), ("1 MiB", True), ("4 KiB", False)])
@pytest.mark.parametrize("name", QUERIES)
def test_a_budget_in_rows_and_in_bytes(name: str, budget: Any, fits: bool) -> None:
    if fits:
        assert stretto.match(QUERIES[name], events(10), time="t", budget=budget).num_rows == 1024
        return
    with pytest.raises(
        LimitError, match=r"row 12 \(t = 120, k = 'x'\) completes 1,023 matches .* after 1 of earlier events"
    ):
        stretto.match(QUERIES[name], events(10), time="t", budget=budget)


def test_what_an_exact_budget_counts() -> None:
    """Rows of several events: the one with which it goes over is named, and how many its own are."""
    rows = [{"type": "A"}] * 3 + [{"type": "B"}] * 4  # 3 matches for each B
    assert stretto.match("SELECT * FROM S WHERE A ; B", rows, budget=12).num_rows == 12
    with pytest.raises(LimitError, match=r"^the event in row 5 completes 3 matches .*, after 6 of earlier events"):
        stretto.match("SELECT * FROM S WHERE A ; B", rows, budget=7)
    with pytest.raises(LimitError, match=r"^the event in row 3 completes 3 matches \(counted, not listed\): a list"):
        stretto.match("SELECT * FROM S WHERE A ; B", rows, budget=2)


def test_a_row_is_that_of_the_input() -> None:
    rows = [{"type": "B", "t": 9}, {"type": "A", "t": 1}, {"type": "A", "t": 2}]
    with pytest.raises(LimitError, match=r"^the event in row 0 \(t = 9\) completes 2 matches"):
        stretto.match("SELECT * FROM S WHERE A ; B", rows, time="t", budget=1)


def test_limit_and_negations_bound_the_count() -> None:
    query = "SELECT * FROM S WHERE A+ ; B LIMIT 5000"
    with pytest.raises(LimitError, match=r"completes 5,000 matches"):
        stretto.match(query, events(80), time="t", budget="2 KiB")
    between = "PATTERN SEQ(A+ a[], ~(C c), B b) WHERE skip_till_any_match { [k] } WITHIN 1000"
    with pytest.raises(LimitError, match=r"completes about 2\^80 matches"):
        stretto.match(between, events(80), time="t", budget="1 MiB")
    negated = "PATTERN SEQ(~(C c), A+ a[], B b) WHERE skip_till_any_match { [k] } WITHIN 1000"
    with pytest.raises(LimitError, match=r"completes at most about 2\^80 matches"):
        stretto.match(negated, events(80), time="t", budget="1 MiB")
    with pytest.raises(LimitError, match=r"completes at most about 2\^80 matches"):  # listed to be counted
        stretto.match(negated, events(80), time="t", budget="1 MiB", output="summary")


def test_wide_texts_are_measured() -> None:
    """Long texts are not taken for short ones."""
    rows = [{"type": kind, "text": "x" * 50_000} for kind in ["A"] * 12 + ["B"]]
    assert (
        stretto.match("SELECT * FROM S WHERE A+ AS a ; B", rows, output="positions", budget="10 MiB").num_rows == 4095
    )
    with pytest.raises(LimitError, match="10 MiB"):
        stretto.match("SELECT * FROM S WHERE A+ AS a ; B", rows * 20, budget="10 MiB")


def test_pieces_have_no_bound_unless_it_is_said() -> None:
    pieces = stretto.iter_matches(EXPLODES, events(80), time="t", output="positions")
    rows = 0
    for piece in pieces:
        rows += piece.num_rows
        if rows > 20_000:
            break
    assert rows > 20_000
    with pytest.raises(LimitError, match=r"about 2\^80"):
        list(stretto.iter_matches(EXPLODES, events(80), time="t", budget=10**5))
    matcher = stretto.Matcher(EXPLODES, time="t", budget=100)
    with pytest.raises(LimitError, match=r"completes 127 matches"):
        list(matcher.iter_push(events(7)))


@pytest.mark.parametrize("disorder", [None, 5])
def test_a_matcher_stops_inside_the_batch_and_a_snapshot_goes_on(disorder: int | None) -> None:
    matcher = stretto.Matcher(EXPLODES, time="t", output="positions", budget=100, disorder=disorder)
    rows = events(9)
    matcher.push(rows[:8])
    before = matcher.snapshot()
    with pytest.raises(LimitError, match=r"row 11 \(t = 110, k = 'x'\) completes 511 matches"):
        _ = matcher.push(rows[8:]), matcher.finish()
    with pytest.raises(EngineError, match="stopped in the middle"):
        matcher.push(rows[8:])
    with pytest.raises(SnapshotError):
        matcher.snapshot()
    again = stretto.Matcher(EXPLODES, time="t", output="positions", disorder=disorder).restore(before)
    found = again.push(rows[8:]).num_rows + again.finish().num_rows
    assert found == 511
    matcher.restore(before)
    assert matcher.push([{"type": "B", "k": "other", "t": 200, "v": 1}]).num_rows + matcher.finish().num_rows == 1


def test_each_push_has_its_own_budget() -> None:
    matcher = stretto.Matcher("SELECT * FROM S WHERE A", budget=3)
    for _ in range(5):
        assert matcher.push([{"type": "A"}] * 3).num_rows == 3
    with pytest.raises(LimitError, match=r"row 18 completes 1 matches .* after 3 of earlier"):
        matcher.push([{"type": "A"}] * 4)


def test_many_patterns_share_a_budget() -> None:
    patterns = stretto.PatternSet({"type": "string", "k": "string", "t": "int64"}, time="t", budget=100)
    patterns.change([stretto.Change("few", "SELECT * FROM S WHERE B"), stretto.Change("many", EXPLODES)])
    table = pa.Table.from_pylist(events(9)).drop_columns(["v"])
    with pytest.raises(LimitError, match=r"^pattern 'many': the event \(t = 110, k = 'x'\) completes 511 matches"):
        patterns.push(table)
    with pytest.raises(EngineError, match="stopped in the middle"):
        patterns.push(table)


# ---- Automata


def pairs() -> stretto.AFA:
    """Every a with every b behind it."""
    afa = stretto.AFA({"kind": str}).arc("q0", "q1", when="e.kind = 'a'").ignore("q1")
    afa.arc("q1", "q2", when="e.kind = 'b'").final("q2")
    return afa


def kinds(text: str, begin: int = 0) -> list[dict[str, Any]]:
    return [{"t": at, "kind": kind} for at, kind in enumerate(text, begin)]


def test_output_of_an_automaton() -> None:
    """What goes over it is not taken; what comes before is given by the next call."""
    rows = kinds("a" * 60 + "b" * 4)
    assert stretto.match(pairs(), rows, time="t", budget=240).num_rows == 240
    with pytest.raises(LimitError, match="budget of 239 rows"):
        stretto.match(pairs(), rows, time="t", budget=239)
    matcher = stretto.Matcher(pairs(), time="t", budget=100, capacity=1)
    with pytest.raises(
        LimitError, match=r"^row 62 \(62\): gives .* after 120 of what comes before: .* budget of 100 rows"
    ):
        matcher.push(rows)
    assert matcher.push([]).num_rows == 120
    assert matcher.push(rows[62:]).num_rows == 120
    with pytest.raises(OptionError, match="budget='much'"):
        stretto.Matcher(pairs(), time="t", budget="much")
