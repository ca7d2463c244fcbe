"""The frame of sections that states are written into."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stretto.errors import DataError, SnapshotError
from stretto.frame import MAGIC, Section, reading


def whole() -> Section:
    section = Section({"rows": 3, "empty": {}})
    section.arrays["times"] = np.array([1.5, -2.0])
    inner = section.sub("front").sub("keys")
    inner.values["count"] = 2
    inner.arrays["words"] = np.arange(6, dtype=np.uint8).reshape(2, 3)
    inner.put_table("table", pa.table({"x": [1, None]}))
    inner.put_schema("schema", pa.schema([("t", pa.timestamp("us", "UTC"))]))
    section.sub("nothing")
    return section


def test_sections_come_back() -> None:
    again = Section.of_bytes(whole().to_bytes())
    assert again.values["rows"] == 3
    assert again.values["empty"] == {}
    assert "nothing" not in again.values
    assert again.arrays["times"].tolist() == [1.5, -2.0]
    inner = again.sub("front").sub("keys")
    assert inner.values["count"] == 2
    assert inner.arrays["words"].tolist() == list(range(6))
    assert inner.table("table").to_pydict() == {"x": [1, None]}
    assert inner.schema("schema").field("t").type == pa.timestamp("us", "UTC")
    assert again.to_bytes() == Section.of_bytes(again.to_bytes()).to_bytes()


def test_a_section_can_be_left_out() -> None:
    section = whole()
    section.drop("front")
    values, arrays = Section.of_bytes(section.to_bytes()).flat()
    assert values == {"rows": 3, "empty": {}}
    assert list(arrays) == ["times"]


@pytest.mark.parametrize("at", [0, 7, 8, 12, 40, -1])
def test_a_changed_byte_shows(at: int) -> None:
    data = bytearray(whole().to_bytes())
    data[at] ^= 0xFF
    with pytest.raises(SnapshotError):
        Section.of_bytes(bytes(data))


@pytest.mark.parametrize("data", [b"", MAGIC, b"STRPATS\0" + bytes(20)])
def test_other_bytes(data: bytes) -> None:
    with pytest.raises(SnapshotError, match="not a stretto snapshot"):
        Section.of_bytes(data)


def test_another_version() -> None:
    with pytest.raises(SnapshotError, match="format version 3; this stretto reads version 2: upgrade stretto"):
        Section.of_bytes(whole().to_bytes(version=3))


EDGE = 2**63 - 1


@pytest.mark.parametrize(
    ("numbers", "most"),
    [
        ([7] * 100, 1),
        ([*range(300)] * 2, 2),
        ([10**12 + 1000 * i for i in range(100)], 2),  # steps
        ([10**12 + (1 << i // 5) for i in range(100)], 4),
        ([5, *range(99)], 1),
        ([5, *range(300)], 2),
        ([-EDGE - 1, EDGE] * 50, 8),
        ([-EDGE - 1] * 50 + [EDGE] * 50, 8),
        ([-(2**61)] * 50 + [2**61 - 1] * 50, 8),
        ([3, -2], 8),
        ([], 8),
    ],
)
def test_numbers_take_the_bytes_that_they_need(numbers: list[int], most: int) -> None:
    data = Section({}, {"x": np.array(numbers, np.int64)}).to_bytes()
    assert len(data) < 120 + most * len(numbers)
    again = Section.of_bytes(data).arrays["x"]
    assert again.dtype == np.int64
    assert again.tolist() == numbers


@pytest.mark.parametrize(
    "error", [KeyError("x"), IndexError(), ValueError(), TypeError(), DataError("x"), pa.ArrowInvalid("x")]
)
def test_what_does_not_fit_is_damage(error: Exception) -> None:
    with pytest.raises(SnapshotError, match="damaged"), reading():
        raise error


def test_the_reason_is_kept() -> None:
    with pytest.raises(SnapshotError, match=r"^of another query$"), reading():
        raise SnapshotError("of another query")


def test_numbers_that_must_be_in_order_may_be_equal() -> None:
    assert Section(arrays={"time": np.array([1, 1, 4])}).numbers("time", ordered=True).tolist() == [1, 1, 4]
    with pytest.raises(SnapshotError, match="'time' holds 3 at place 2, where a number from 4 on is expected"):
        Section(arrays={"time": np.array([1, 4, 3])}).numbers("time", ordered=True)
