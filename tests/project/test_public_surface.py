"""What users see of the package: names, signatures, and that it has types."""

from __future__ import annotations

import importlib
import inspect
import math
from importlib import resources

import pytest

import stretto
from stretto.engines.afa.compiled import Roles
from stretto.matching.executors.base import Reading
from stretto.matching.executors.in_order import InOrderExecutor
from stretto.matching.executors.retracting import RetractingExecutor


@pytest.mark.parametrize("name", ["stretto", "stretto.spark", "stretto.dataflow"])
def test_dir_shows_what_is_public(name: str) -> None:
    module = importlib.import_module(name)
    assert [one for one in dir(module) if not one.startswith("__")] == sorted(module.__all__)
    assert all(hasattr(module, one) for one in dir(module))


def test_the_package_says_that_it_has_types() -> None:
    assert resources.files("stretto").joinpath("py.typed").is_file()


def test_the_signature_of_matcher_has_all_parameters() -> None:
    """Those of what runs queries and automata, with their defaults."""
    shown = inspect.signature(stretto.Matcher).parameters
    assert not any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in shown.values())
    for kind in (InOrderExecutor, RetractingExecutor, Reading, Roles):
        first = 0 if kind is Reading else 1 if kind is Roles else 2
        for one in list(inspect.signature(kind).parameters.values())[first:]:
            if one.name not in ("capacity", "reading", "roles"):
                assert shown[one.name].default == one.default


def test_every_matcher_is_one() -> None:
    afa = stretto.AFA({"kind": str}).arc("q0", "q1", when="e.kind = 'a'").final("q1")
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { }"
    for matcher in (
        stretto.Matcher("SELECT * FROM S WHERE A"),
        stretto.Matcher(query),
        stretto.Matcher(query, time="t", disorder=3),
        stretto.Matcher(query, time="t", speculation=math.inf),
        stretto.Matcher(afa, time="t"),
        stretto.Matcher(afa, time="t", disorder=3),
    ):
        assert type(matcher) is stretto.Matcher


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until": "t"}, "until='t' is for AFAs, and this is a query"),
        ({"hold": "events"}, "hold='events' is for AFAs, and this is a query"),
        ({"sign": "s"}, "sign='s' is for streams with retractions: speculation=math.inf takes them"),
    ],
)
def test_options_of_another_sort_of_matcher(options: dict[str, object], message: str) -> None:
    with pytest.raises(stretto.OptionError) as caught:
        stretto.Matcher("SELECT * FROM S WHERE A", time="t", **options)
    assert str(caught.value) == message
