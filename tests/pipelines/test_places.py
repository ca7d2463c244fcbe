"""The places of keys and values, against what ``tomllib`` reads."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.pipelines.places import find_places, offsets

WRITTEN = '''\
# a comment with [brackets] and "quotes
title = "a # b" # c
a . b."c d" = [1, [2, "]"], {q = 'r', "s".t = 2020-01-01T00:00:00Z}, # [
 "z",
]
at = 1979-05-27 07:32:00
[pipe.x]  # } ]
k = """
ab\\
   cd"é\\u00e9""\\"\\t"""
l = \'\'\'
it's''\'\'\'
m = """"two"" quotes"""""
n = ""
[[s]]
n=1
[s.columns]
ts = 'timestamp'
[[s]]
n = -1.5e3
[[s.t]]
q=true
[[s.t]]
empty = {}
none = [ ]
"é \\U0001F600" = 0x1F
'''


def at(document: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        document = document[part]
    return document


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], Any]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {} if isinstance(value, dict | list) else {path: value}
    for key, below in pairs:
        found |= leaves(below, (*path, key))
    return found


def check(text: str) -> None:
    """Every value is where its place says, every string's characters too, and no value is without a place."""
    document, places = tomllib.loads(text), find_places(text)
    for path, place in places.items():
        value = at(document, path)
        if place.value is not None:
            written = text[place.value.start : place.value.end]
            assert tomllib.loads(f"x = {written}")["x"] == value, path
        if isinstance(value, str):
            assert place.value is not None
            found, where = offsets(text, place.value)
            assert found == value
            assert len(where) == len(value) + 1
            assert all(text[w] in (c, "\\") for c, w in zip(value, where, strict=False))
            assert where == sorted(where)
        if place.key is not None:
            key = text[place.key.start : place.key.end]
            name = next(part for part in reversed(path) if isinstance(part, str))
            assert list(tomllib.loads(f"{key} = 1")) == [name]
    assert leaves(document).keys() <= places.keys()


def test_every_kind_of_value() -> None:
    check(WRITTEN)
    places = find_places(WRITTEN)
    assert [WRITTEN.count("\n", 0, places["s", i].key.start) + 1 for i in (0, 1)] == [15, 19]  # type: ignore[union-attr]


values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("ab.é \"'", max_size=3), below, max_size=3),
    max_leaves=12,
)
texts = st.text("ab'\"\\ \n#[]{}=,é", max_size=12)


def as_toml(value: Any, forms: Any) -> str:
    """A value in one of the ways in which TOML can write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return string(value, forms)
    if isinstance(value, list):
        gap = forms(["", "\n  ", ' # ] "\n'])
        return "[" + ",".join(gap + as_toml(item, forms) for item in value) + gap + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f" {quoted(key)} = {as_toml(item, forms)}" for key, item in value.items()) + "}"
    return str(value)


def quoted(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def string(value: str, forms: Any) -> str:
    ways = [quoted(value), f'""{quoted(value)}""']
    control = any(ord(c) < 32 or ord(c) == 127 for c in value if c not in "\t\n")
    if not control and "'''" not in value and not value.endswith("'"):
        ways.append(f"'''\n{value}'''")
    if not control and "'" not in value and "\n" not in value:
        ways.append(f"'{value}'")
    return str(forms(ways))


@given(st.dictionaries(st.text("ab.é \"'-1", max_size=4), values | texts, max_size=4), st.data())
def test_random_documents(document: dict[str, Any], data: st.DataObject) -> None:
    def forms(ways: list[str]) -> str:
        return data.draw(st.sampled_from(ways))

    text = "".join(f"{quoted(key)} = {as_toml(value, forms)} # {{\n" for key, value in document.items())
    assert tomllib.loads(text) == document
    check(text)


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "a = 1", "[a]"])
def test_short_documents(text: str) -> None:
    check(text)
