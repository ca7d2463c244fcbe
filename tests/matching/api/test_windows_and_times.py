"""Times and windows that callers give: none is taken for another one, and none is made smaller silently."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.dataflow import Dataflow, stream

AB = "SELECT * FROM S WHERE A ; B"
SASE = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { }"
ZONED, PLAIN = pa.timestamp("us", tz="Europe/Athens"), pa.timestamp("us")
CLOCK = dt.datetime(2024, 1, 1)
MOMENT = CLOCK.replace(tzinfo=dt.UTC)


def afa(**options: Any) -> stretto.AFA:
    return stretto.AFA({"type": str}, **options).arc("q0", "q1", when="e.type = 'A'").final("q1")


def empty(kind: pa.DataType) -> pa.Table:
    return pa.schema([("type", pa.string()), ("t", kind)]).empty_table()


def flow(kind: pa.DataType) -> Dataflow:
    made = Dataflow(out=stream("in", {"type": str}))
    made.push("in", pa.table({"type": ["A"], "vs": pa.array([0], kind)}))
    return made


#: Whatever takes a punctuation of a stream with times of a type.
ADVANCES: dict[str, Callable[[pa.DataType, Any], object]] = {
    "ceql": lambda kind, time: stretto.Matcher(AB, empty(kind), time="t").advance(time),
    "sase": lambda kind, time: stretto.Matcher(SASE, empty(kind), time="t").advance(time),
    "sorting": lambda kind, time: stretto.Matcher(AB, empty(kind), time="t", disorder="1 day").advance(time),
    "speculating": lambda kind, time: stretto.Matcher(SASE, empty(kind), time="t", speculation=math.inf).advance(time),
    "cleanse": lambda kind, time: stretto.Cleanse(empty(kind), time="t").advance(time),
    "afa": lambda kind, time: stretto.Matcher(afa(), empty(kind).schema, time="t").advance(time),
    "afa punctuations": lambda kind, time: stretto.Matcher(afa(), time="t").push(
        empty(kind), punctuations=[(0, CLOCK.replace(tzinfo=kind.tz and dt.UTC)), (0, time)]
    ),
    "cleansed afa": lambda kind, time: stretto.Matcher(afa(), empty(kind).schema, time="t", speculation=0).advance(
        time
    ),
    "patterns": lambda kind, time: stretto.PatternSet(empty(kind).schema, time="t").advance(time),
    "dataflow": lambda kind, time: flow(kind).advance(time),
}


@pytest.mark.parametrize("name", ADVANCES)
def test_a_time_without_a_zone_is_no_moment(name: str) -> None:
    advance = ADVANCES[name]
    advance(ZONED, MOMENT)
    advance(PLAIN, CLOCK)
    with pytest.raises(stretto.OptionError) as caught:
        advance(ZONED, CLOCK)
    assert str(caught.value).endswith(
        "a time with a time zone expected, not a time without one: say which, as value.replace(tzinfo=datetime.UTC) does"
    )
    with pytest.raises(stretto.OptionError) as caught:
        advance(PLAIN, MOMENT)
    assert str(caught.value).endswith(
        "a time without a time zone expected, not one with a time zone: give what the column's clock shows, as "
        "value.astimezone(…).replace(tzinfo=None) does"
    )


def test_a_time_before_the_first_event() -> None:
    """The column's type is not known yet: it is compared when it is."""
    matcher = stretto.Matcher(afa(), time="t")
    matcher.advance(CLOCK)
    with pytest.raises(stretto.DataError) as caught:
        matcher.push(empty(ZONED))
    assert str(caught.value) == (
        "'t' is timestamp[us, tz=Europe/Athens], and a time that was given before its first event is timestamp[us]: give both with "
        "a time zone, or both without"
    )
    cleanse = stretto.Cleanse(time="t")
    cleanse.advance(CLOCK)
    for _ in range(2):  # the error does not half take the schema
        with pytest.raises(stretto.OptionError, match="a time with a time zone expected"):
            cleanse.push(empty(ZONED))


#: Windows of one tick more than the greatest.
TOO_WIDE: dict[str, tuple[Callable[[int], object], str]] = {
    "ceql": (
        lambda most: stretto.compile(f"{AB} WITHIN {most} [t]", empty(pa.int64()), time="t"),
        "line 1, column 36: the window is 4611686018427387905 units of 't' (int64), and the greatest is 2^62 (4611686018427387904)\n"
        "  SELECT * FROM S WHERE A ; B WITHIN 4611686018427387905 [t]\n"
        "                                     ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: without WITHIN there is no window",
    ),
    "ceql events": (
        lambda most: stretto.compile(f"{AB} WITHIN {most} EVENTS", empty(pa.int64())),
        "line 1, column 36: the window is 4611686018427387905 events, and the greatest is 2^62 (4611686018427387904)\n"
        "  SELECT * FROM S WHERE A ; B WITHIN 4611686018427387905 EVENTS\n"
        "                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: without WITHIN there is no window",
    ),
    "sase": (
        lambda most: stretto.compile(f"{SASE} WITHIN {most}", empty(pa.int64()), time="t"),
        "line 1, column 60: the window is 4611686018427387905 units of 't' (int64), and the greatest is 2^62 (4611686018427387904)\n"
        "  PATTERN SEQ(A a, B b) WHERE skip_till_any_match { } WITHIN 4611686018427387905\n"
        "                                                             ^^^^^^^^^^^^^^^^^^^\n"
        "hint: without WITHIN there is no window",
    ),
    "afa": (
        lambda most: stretto.Matcher(afa(window=most), empty(pa.int64()).schema, time="t"),
        "the window is 4611686018427387905 units of 't' (int64), and the greatest is 2^62 (4611686018427387904); window=None: there "
        "is none",
    ),
    "dataflow": (
        lambda most: stream("in", {"type": str}).window(most),
        "duration=4611686018427387905 units of the time, and the greatest is 2^62 (4611686018427387904); None is without end",
    ),
}


@pytest.mark.parametrize("name", TOO_WIDE)
def test_a_window_that_does_not_fit_is_refused(name: str) -> None:
    made, message = TOO_WIDE[name]
    made(1 << 62)
    with pytest.raises(stretto.StrettoError) as caught:
        made((1 << 62) + 1)
    assert str(caught.value) == message


def test_durations_that_do_not_fit_are_refused() -> None:
    with pytest.raises(stretto.QueryError, match="the window is 31557600000000000000 units of 't'"):
        stretto.compile(f"{AB} WITHIN 365250000000 days", empty(pa.timestamp("ms")), time="t")
    with pytest.raises(stretto.OptionError, match="the window is 86399999913600000000000 units of 't'"):
        stretto.Matcher(afa(window=dt.timedelta(days=999_999_999)), empty(pa.timestamp("ns")).schema, time="t")
    with pytest.raises(stretto.OptionError) as caught:
        stretto.Cleanse(empty(pa.int64()), time="t", disorder=1 << 62)
    assert str(caught.value) == (
        "disorder=4611686018427387904 is 4611686018427387904 units of 't' (int64), and at most 2^62 − 1 (4611686018427387903) fit; "
        "math.inf is without end"
    )
    stretto.Cleanse(empty(pa.float64()), time="t", disorder=1e300)
