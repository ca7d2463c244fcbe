"""``stretto.match`` of an AFA."""

from __future__ import annotations

from typing import Any

import pytest

import stretto

EVENTS = [{"t": 3, "kind": "b"}, {"t": 1, "kind": "a"}]


@pytest.fixture
def afa() -> stretto.AFA:
    built = stretto.AFA({"kind": str}, window=10)
    return built.arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'").final("q2")


def test_rows_are_those_of_the_input(afa: stretto.AFA) -> None:
    expected = [{"start": 1, "end": 0, "start_time": 1, "end_time": 3, "until": 11, "register": {}}]
    assert stretto.match(afa, EVENTS, time="t").to_pylist() == expected
    assert stretto.match(afa.frozen, EVENTS, time="t").to_pylist() == expected


@pytest.mark.parametrize(
    "option", [{"output": "positions"}, {"valuations": True}, {"time_unit": "s"}, {"language": "sase"}]
)
def test_options_of_queries_are_refused(afa: stretto.AFA, option: dict[str, Any]) -> None:
    with pytest.raises(stretto.OptionError, match=f"{next(iter(option))}=.* is for queries in CEQL or SASE"):
        stretto.match(afa, EVENTS, time="t", **option)


def test_unknown_options_are_refused(afa: stretto.AFA) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'late'"):
        stretto.match(afa, EVENTS, time="t", late="drop")
    with pytest.raises(TypeError, match="unexpected keyword argument 'bag'"):
        stretto.match("SELECT * FROM S WHERE b", EVENTS, type="kind", bag=True)


def test_time_is_needed(afa: stretto.AFA) -> None:
    with pytest.raises(stretto.OptionError, match="needs the column that orders the stream"):
        stretto.match(afa, EVENTS)
