"""Strings and keys that no run holds any more are forgotten, and nobody notices."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.engines.nfab import runner as nfab
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.programs import NfabProgram
from stretto.query.passes.bind_sase import BoundSase
from tests.reference.sase import evaluate_sase

SCHEMA = pa.schema([("type", pa.string()), ("name", pa.string()), ("other", pa.string()), ("v", pa.int64())])

BATCHES = 200
SIZE = 4

QUERIES = {
    "equal": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { c.name = a.name and b[i].other != b[i-1].name }",
    "ordered": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { a.name <= b[1].name and c.name >= b[b.LEN].name }",
    "every": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].name <= b.name and a[1].other != b.other }",
    "negation": "PATTERN SEQ(A a, ~(B n), C c) WHERE skip_till_next_match { n.name = a.name and c.other != a.other }",
    "negation, ordered": "PATTERN SEQ(A a, ~(B n), C c) WHERE skip_till_any_match { n.name > a.name }",
    "key": "PATTERN SEQ((A|B)+ a[], C c) WHERE strict_contiguity { [name] and c.v >= a[1].v }",
    "keys": "PATTERN SEQ((A|B) a, (B|C) b) WHERE strict_contiguity { [name, v] and a.other <= b.other }",
}


def rows(rng: random.Random, at: int) -> Iterator[dict[str, Any]]:
    """The events of a batch: strings that were never there before, some of which stay for the next batches."""
    recent = [f"{kind}{number:05}" for number in range(max(0, at - 1), at + 1) for kind in "éax"]
    for _ in range(SIZE):
        name, other = (None if rng.random() < 0.1 else rng.choice(recent) for _ in "no")
        yield {"type": rng.choice("ABC"), "name": name, "other": other, "v": rng.randrange(2)}


def batches(seed: object) -> list[pa.Table]:
    rng = random.Random(str(seed))
    return [pa.Table.from_pylist(list(rows(rng, at)), schema=SCHEMA) for at in range(BATCHES)]


def compiled(name: str) -> stretto.Query:
    return stretto.compile(QUERIES[name] + " WITHIN 6 EVENTS", SCHEMA)


@pytest.fixture
def forgets_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nfab, "FORGET_AT_LEAST", 8)


@pytest.mark.usefixtures("forgets_early")
@pytest.mark.parametrize("name", QUERIES)
def test_new_strings_for_ever(name: str) -> None:
    """Tables stay small over many batches, and the matches are those of the definition."""
    query = compiled(name)
    assert isinstance(query.bound, BoundSase)
    runner = NfabRunner(NfabProgram(query.bound), capacity=1)
    parts = batches(name)
    found, most, sizes = [], 0, []
    for part in parts:
        for one in runner.advance(part.select(query.bound.tested).combine_chunks().to_batches()[0]):
            found += [one.position[a:b].tolist() for a, b in zip(one.offset, one.offset[1:], strict=False)]
        most = max(most, runner.named)
        sizes.append(runner.nbytes)
    expected = [sorted(match.positions) for match in evaluate_sase(query.bound, pa.concat_tables(parts))]
    assert sorted(found) == sorted(expected)
    assert len(expected) > 10
    assert most < 200  # of some 600 that were there
    assert max(sizes) < 2 * max(sizes[: BATCHES // 4])


@pytest.mark.usefixtures("forgets_early")
@pytest.mark.parametrize("name", QUERIES)
def test_snapshots_hold_what_runs_hold(name: str) -> None:
    """Taken at every batch, they hold few strings, and both the matcher that goes on and the one restored give the same rows."""
    query = compiled(name)
    going, restored = (stretto.Matcher(query, output="positions", capacity=1) for _ in "gr")
    for part in batches(name)[: BATCHES // 2]:
        expected = going.push(part).to_pylist()
        assert restored.push(part).to_pylist() == expected
        going.snapshot()
        saved = restored.snapshot()
        for matcher in (going, restored):
            assert isinstance(matcher._executor.run, NfabRunner)
            assert matcher._executor.run.named <= 3 * SIZE  # of three batches at most
        restored = stretto.Matcher(query, output="positions", capacity=1).restore(saved)


@pytest.mark.parametrize("name", ["ordered", "negation"])
def test_what_runs_hold_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A string that an open run holds is known for as long as the run is there; without a window that is for ever."""
    monkeypatch.setattr(nfab, "FORGET_AT_LEAST", 8)
    matcher = stretto.Matcher(QUERIES[name], SCHEMA, capacity=1, output="positions")
    matcher.push([{"type": "A", "name": "held", "other": "held", "v": 0}])
    for at in range(50):
        kind = "C" if name == "negation" else "B"
        assert not matcher.push(
            [{"type": kind, "name": f"a{at}-{k}", "other": "held", "v": 0} for k in range(20)]
        ).num_rows
    if name == "ordered":
        matcher.push([{"type": "B", "name": "held", "other": None, "v": 0}])
    last = matcher.push([{"type": "C", "name": "z", "other": "new", "v": 0}])
    assert last.column("positions").to_pylist() == [[0, *([1001] if name == "ordered" else []), last["end"][0].as_py()]]


def test_forgetting_is_rare() -> None:
    """As often as the strings have doubled, not with every batch."""
    query = compiled("equal")
    assert isinstance(query.bound, BoundSase)
    runner = NfabRunner(NfabProgram(query.bound))
    times = 0
    forget = runner.forget

    def counted() -> None:
        nonlocal times
        times += 1
        forget()

    runner.forget = counted  # type: ignore[method-assign]
    for at in range(20):
        names = [f"{at}-{k}" for k in range(1_000)]
        part = pa.table({"type": ["A"] * 1_000, "name": names, "other": names, "v": [0] * 1_000}, schema=SCHEMA)
        for _ in runner.advance(part.select(query.bound.tested).to_batches()[0]):
            raise AssertionError
    assert 1 <= times <= 20_000 // nfab.FORGET_AT_LEAST


@pytest.mark.parametrize("window", ["WITHIN 6 [v]", "WITHIN 6 EVENTS"])
def test_negated_events_out_of_the_window_are_collected(window: str) -> None:
    """Those of a kind are in one list, the latest first; it is cut where the window ends."""
    text = f"PATTERN SEQ(A a, ~(B n), C c) WHERE skip_till_next_match {{ n.name = a.name }} {window}"
    query = stretto.compile(text, SCHEMA)
    assert isinstance(query.bound, BoundSase)
    runner = NfabRunner(NfabProgram(query.bound))

    def read(kinds: str, names: list[str], at: int) -> int:
        columns = {"type": list(kinds), "name": names, "other": names, "v": [at] * len(kinds)}
        [batch] = pa.table(columns, schema=SCHEMA).select(query.bound.tested).to_batches()
        return sum(one.start.size for one in runner.advance(batch))

    for at in range(100):
        kinds = "ABBBBC" if at % 2 else "BBBBBBBBBB"
        assert read(kinds, [str(at)] * len(kinds), at) == 0
        runner.forget()
        assert runner.nodes < 11 * 8
        assert runner.named <= 8
    assert read("ABC", ["x", "y", "x"], 100) == 1
