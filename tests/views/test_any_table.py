"""Tables of any types, with columns named as those of results: a view shows them, or refuses them in words."""

from __future__ import annotations

import datetime as dt
import decimal
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import stretto
from tests.conftest import cases

NAMES = ["start", "end", "positions", "start_time", "end_time", "k", "a", "b", "sign", "x y"]
FAR = 1 << 62

#: A type, and how a value of it is drawn.
KINDS: list[tuple[pa.DataType, Callable[[random.Random], Any]]] = [
    (pa.int64(), lambda rng: rng.randint(-9, 9)),
    (pa.uint64(), lambda rng: 2**64 - 1),
    (pa.float64(), lambda rng: rng.choice([1.5, float("nan"), float("inf"), -0.0, 1e300, -1.7e308, 1.7e308, 5e-324])),
    (pa.string(), lambda rng: "é\x1b\u202e<a>&"[: rng.randint(0, 7)]),
    (pa.dictionary(pa.int32(), pa.string()), lambda rng: rng.choice("xy")),
    (pa.decimal128(20, 3), lambda rng: decimal.Decimal("1.50")),
    (pa.timestamp("s", tz="Europe/Athens"), lambda rng: rng.randint(-FAR, FAR)),
    (pa.timestamp("ns"), lambda rng: rng.randint(-FAR, FAR)),
    (pa.date32(), lambda rng: dt.date(rng.choice([1, 2024, 9999]), 1, 1)),
    (pa.date64(), lambda rng: dt.date(2024, 1, 1)),
    (pa.duration("ns"), lambda rng: rng.randint(0, 10**6)),
    (pa.time32("s"), lambda rng: dt.time(rng.randint(0, 23))),
    (pa.null(), lambda rng: None),
    (pa.binary(), lambda rng: b"\x00\xff"),
    (pa.bool_(), lambda rng: True),
    (pa.map_(pa.string(), pa.int64()), lambda rng: [("a", 1)]),
    (pa.list_(pa.int64()), lambda rng: [rng.randint(0, 3)]),
    (pa.list_(pa.list_(pa.int8())), lambda rng: [[1], [2, 3]]),
    (pa.struct([("a", pa.int64())]), lambda rng: {"a": 1}),
    (pa.list_(pa.struct([("t", pa.int64()), ("s", pa.string())])), lambda rng: [{"t": rng.randint(0, 9)}] * rng.randint(0, 7)),
    (pa.large_list(pa.struct([("t", pa.timestamp("us"))])), lambda rng: [{"t": rng.randint(0, 10**15)}] * rng.randint(0, 7)),
    (pa.list_(pa.struct([])), lambda rng: [{}]),
]  # fmt: skip


def column(rng: random.Random, rows: int) -> pa.Array:
    kind, draw = rng.choice(KINDS)
    return pa.array([draw(rng) if rng.random() < 0.8 else None for _ in range(rows)], kind)


def table(rng: random.Random) -> pa.Table:
    rows = rng.choice([0, 1, 2, 5])
    made = pa.table({name: column(rng, rows) for name in rng.sample(NAMES, rng.randint(1, 8))})
    if "start_time" in made.column_names and rng.random() < 0.7:
        made = made.drop_columns([one for one in ["end_time"] if one in made.column_names])
        made = made.append_column("end_time", made.column("start_time"))
    return pa.concat_tables([made, made.slice(1)]) if rng.random() < 0.3 else made


@pytest.mark.filterwarnings("error")
def test_a_view_is_given_or_refused() -> None:
    given, count = 0, cases(2_000)
    for seed in range(count):
        rng = random.Random(seed)
        any_table = table(rng)
        for call in (
            lambda: stretto.show(any_table, width=80),  # noqa: B023 - called at once
            lambda: stretto.density(any_table, by=rng.choice([None, *NAMES])),  # noqa: B023
            lambda: stretto.timeline(any_table, row=rng.choice([0, -1])),  # noqa: B023
            lambda: stretto.timeline(any_table, any_table, time=rng.choice([None, "end_time"])),  # noqa: B023
        ):
            try:
                view = call()
                assert str(view).replace("\n", "").isprintable(), f"seed {seed}"
                ET.fromstring(view._repr_html_().replace("<br>", ""))
                given += 1
            except stretto.StrettoError:
                pass
            except Exception as error:
                raise AssertionError(f"seed {seed}: {any_table.schema}") from error
    assert given >= count, "a table is shown whatever it holds"
