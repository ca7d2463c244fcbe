"""What users see of the package: names, signatures, and that it has types."""

from __future__ import annotations

import importlib
import inspect
from importlib import resources

import pytest

import stretto
from stretto.matching.automaton import AfaMatcher
from stretto.matching.cleansed import CleansedMatcher
from stretto.matching.speculating import SpeculatingMatcher


@pytest.mark.parametrize("name", ["stretto", "stretto.spark", "stretto.dataflow"])
def test_dir_shows_what_is_public(name: str) -> None:
    module = importlib.import_module(name)
    assert [one for one in dir(module) if not one.startswith("__")] == sorted(module.__all__)
    assert all(hasattr(module, one) for one in dir(module))


def test_the_package_says_that_it_has_types() -> None:
    assert resources.files("stretto").joinpath("py.typed").is_file()


@pytest.mark.parametrize("kind", [stretto.Matcher, SpeculatingMatcher, AfaMatcher, CleansedMatcher])
def test_the_signature_of_matcher_has_all_parameters(kind: type) -> None:
    """Those of each sort of matcher, with its defaults."""
    shown = inspect.signature(stretto.Matcher).parameters
    assert not any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in shown.values())
    own = list(inspect.signature(kind.__init__).parameters.values())[2:]
    for one in own:
        if one.kind is not one.VAR_KEYWORD and one.name != "capacity":
            assert shown[one.name].default == one.default


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until": "t"}, "until='t' is for AFAs, and this is a query"),
        ({"bound": 3}, "bound=3 is for AFAs, and this is a query: disorder= says how late events of a query may be"),
        (
            {"speculation": 3},
            "speculation=3 is for AFAs, and this is a query: disorder='speculate' answers at once (SASE+)",
        ),
        ({"sign": "s"}, "sign='s' is for streams with retractions: disorder='speculate' takes them (SASE+)"),
    ],
)
def test_options_of_another_sort_of_matcher(options: dict[str, object], message: str) -> None:
    with pytest.raises(stretto.OptionError) as caught:
        stretto.Matcher("SELECT * FROM S WHERE A", time="t", **options)
    assert str(caught.value) == message
