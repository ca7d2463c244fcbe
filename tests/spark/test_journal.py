"""The journal of a bucket's state: whatever fails, moves or is lost, a bucket goes on from what the store has."""

from __future__ import annotations

import copy
import math
import os
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import DataError
from stretto.spark.streaming.bucket import Bucket, microseconds
from stretto.spark.streaming.journal import Copies, Journal
from stretto.spark.streaming.keeping import AnyBucket, Settings
from stretto.spark.streaming.operator import RevisingBucket
from stretto.spark.streaming.packing import write_table
from tests.conftest import cases
from tests.spark import test_revising_bucket
from tests.spark.streams import bag
from tests.spark.test_bucket import QUERIES, cut, events, make


class Store:
    """What Spark keeps of one bucket: a value, and a map."""

    def __init__(self) -> None:
        self.value: tuple[bytes] | None = None
        self.map: dict[tuple[int], tuple[bytes]] = {}

    def get(self) -> tuple[bytes] | None:
        return self.value

    def update(self, value: tuple[bytes]) -> None:
        self.value = value

    def clear(self) -> None:
        self.value, self.map = None, {}

    @property
    def entries(self) -> Entries:
        return Entries(self.map)


class Entries:
    def __init__(self, values: dict[tuple[int], tuple[bytes]]) -> None:
        self.getValue = values.get
        self.updateValue = values.__setitem__
        self.clear = values.clear


def made(bucket: Bucket, settings: Settings, unbounded: bool) -> AnyBucket:
    if isinstance(bucket, RevisingBucket):
        return RevisingBucket(bucket.run, settings)
    return Bucket(bucket.run, settings)


class Executors:
    """Two executors, of which one may have lost its folder."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng = rng
        self.all: list[Copies | None] = [None]
        for name in ("one", "two"):
            (folder / name).mkdir()
            self.all.append(Copies(folder / name))

    def any(self) -> Copies | None:
        return self.rng.choices(self.all, [1, 5, 2])[0]


def call(store: Store, copies: Copies | None, empty: Bucket, rows: list[Any], watermark: int | None) -> list[pa.Table]:
    """What the operator does in a call."""
    journal = journal_of(store, copies, empty)
    bucket = journal.read()
    bucket.receive(rows, watermark)
    found = list(bucket.advance(watermark))
    if bucket.idle:
        journal.clear()
    else:
        journal.write(bucket, rows, watermark)
    return found


def through(
    rng: random.Random, folder: Path, empty: Bucket, table: pa.Table, unit: str | None
) -> tuple[list[pa.Table], int]:
    """What comes of micro-batches, some of which fail or move; and how often there was a journal."""
    folder.mkdir()
    executors, journals = Executors(rng, folder), 0
    store, found, greatest = Store(), list[pa.Table](), None
    for number, part in enumerate([*cut(rng, table), None]):
        watermark = None if greatest is None else greatest - 4_000_000
        rows: list[Any] = []
        if part is None:
            watermark = (greatest or 0) + 100_000_000
        else:
            rows = [(0, number, write_table(part))]
            greatest = max(greatest or 0, int(microseconds(part.column("ts"), unit).max()))
        while rng.random() < 0.2:  # the call is done, and what it wrote is lost; the copy is not
            call(copy.deepcopy(store), executors.any(), empty, rows, watermark)
        found += call(store, executors.any(), empty, rows, watermark)
        journals += len(store.map) > 1
    return found, journals


@pytest.mark.parametrize("text", QUERIES)
def test_calls_that_fail_and_move(text: str, tmp_path: Path) -> None:
    journals = 0
    for seed in range(cases(20)):
        rng = random.Random(seed)
        table = events(rng, rng.randrange(1, 120), "timestamp")
        expected = stretto.match(text, table, time="ts", sequence="seq")
        found, had = through(rng, tmp_path / str(seed), make(text, table), table, None)
        assert sorted(row for one in found for row in bag(one)) == bag(expected), f"seed {seed}: {text}"
        journals += had
    assert journals


@pytest.mark.parametrize("language", ["afa", "sase"])
def test_answers_ahead_of_what_is_certain(language: str, tmp_path: Path) -> None:
    journals = 0
    for seed in range(cases(20)):
        rng = random.Random(seed)
        table = events(rng, rng.randrange(1, 120), "seconds")
        run = test_revising_bucket.revised(language, table, math.inf if seed % 2 else 2)
        found, had = through(rng, tmp_path / str(seed), test_revising_bucket.make(run), table, "s")
        assert test_revising_bucket.net(found) == test_revising_bucket.expected(run, table), f"seed {seed}"
        journals += had
    assert journals


def journal_of(store: Store, copies: Copies | None, empty: Bucket) -> Journal:
    return Journal(store, store.entries, copies, partial(made, empty), empty.settings)


def filled(copies: Copies | None, store: Store, empty: Bucket) -> None:
    """Calls after which there is a journal."""
    table = events(random.Random(3), 404, "timestamp")
    for first, rows in ((0, 400), (400, 2), (402, 2)):
        call(store, copies, empty, [(0, 0, write_table(table.slice(first, rows)))], None)
    assert len(store.map) == 3


def test_what_is_written_grows_with_what_arrives(tmp_path: Path) -> None:
    table = events(random.Random(3), 4000, "timestamp")
    empty, store = make(QUERIES[0], table), Store()
    few = [(0, 0, write_table(table.slice(0, 4)))]
    call(store, None, empty, [(0, 0, write_table(table))], None)
    written = []
    for _ in range(60):
        journal = journal_of(store, None, empty)
        bucket = journal.read()
        bucket.receive(few, None)
        journal.write(bucket, few, None)
        written.append(bucket.counts.state_written)
        size = bucket.counts.state_bytes
    assert size > 100_000
    assert sum(written) <= 3 * 60 * min(written) + size


def test_a_copy_counts_once_and_only_for_its_call(tmp_path: Path) -> None:
    empty = make(QUERIES[0], events(random.Random(3), 9, "timestamp"))
    copies, store = Copies(tmp_path), Store()
    filled(copies, store, empty)
    (file,) = tmp_path.iterdir()
    kept = file.read_bytes()
    wanted = events(random.Random(3), 404, "timestamp")

    def held() -> list[str]:
        bucket = journal_of(store, copies, empty).read()
        assert isinstance(bucket, Bucket)
        assert bucket.held is not None
        return bag(bucket.held)

    assert held() == bag(wanted)
    assert not file.exists()  # taken
    for content in (b"", b"{}", kept[:100], kept[:-1], kept.replace(b'"stamp": "', b'"stamp": "0', 1)):
        file.write_bytes(content)
        assert held() == bag(wanted)  # from the store
    marked = kept.replace(b'"changed": false', b'"changed": true ', 1)
    file.write_bytes(marked)
    assert journal_of(store, copies, empty).read().changed  # type: ignore[attr-defined]


def test_a_journal_is_read_with_the_settings_of_its_time() -> None:
    table = events(random.Random(3), 9, "timestamp")
    empty, store = make(QUERIES[0], table), Store()
    filled(None, store, empty)
    late = [(0, 0, write_table(table.slice(0, 1)))]
    past = int(microseconds(table.column("ts"), None).max()) + 1
    call(store, None, empty, late, past)
    strict = make(QUERIES[0], table, late="error")
    journal = journal_of(store, None, strict)
    bucket = journal.read()
    with pytest.raises(DataError, match="late"):
        bucket.receive(late, past)
    journal = journal_of(store, None, strict)
    journal.write(journal.read(), [], past)
    assert len(store.map) == 1  # it begins anew


def test_the_folder_of_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert Copies.here() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'nowhere'},{tmp_path}")
    assert Copies.here() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    copies = Copies.here()
    assert copies is not None
    copies.leave("old", "1", {}, [])
    copies.leave("new", "2", {"a": 1}, [b"xy", b"", b"z"])
    os.utime(tmp_path / "stretto" / "old", (0, time.time() - 2 * 3600))
    copies = Copies.here()
    assert copies is not None
    assert copies.take("old", "1") is None
    assert copies.take("new", "2") == ({"a": 1}, [b"xy", b"", b"z"])
    assert copies.take("new", "2") is None
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1, "total": 1000}))
    copies.leave("new", "3", {}, [])
    assert not list((tmp_path / "stretto").iterdir())
