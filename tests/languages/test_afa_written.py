"""Automata as text: what is written is read again as it was, and what cannot be is refused."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.errors import OptionError, StrettoError


def rising(e: Any, r: Any) -> bool:
    return bool(e.x > r.top)


def made() -> stretto.AFA:
    down = stretto.element("e.x < 0 AND e.name != 'it''s \" then'", then="n = r.n + 1, at = e.ts", name="down")
    up = stretto.element("e.x > 0 OR e.d = 1.5", name="up")
    events = {"x": float, "name": str, "ts": "timestamp[us, tz=UTC]", "d": pa.decimal128(10, 2)}
    register = {"n": int, "at": pa.timestamp("us", "UTC"), "word": str, "top": float}
    first = {"word": "ü", "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}
    afa = stretto.AFA(events, register, initial=first, window="3 minutes", partition_by="name")
    afa.pattern((down.plus() >> up.plus()).times(2), ignore="e.x = 0", emit="on_enter")
    return afa.epsilon("up2", "rest", when="r.n > 3", id="ε").final("rest")


def test_what_is_written_is_read_again() -> None:
    afa = made()
    assert stretto.read_afa(stretto.write_afa(afa)) == afa.frozen
    ticks = stretto.AFA({"x": int}, start="begin", window=7)
    assert stretto.read_afa(stretto.write_afa(ticks)) == ticks.frozen
    with_function = stretto.AFA({"x": int}, {"top": int}).arc("q0", "q1", when=rising, then="top = e.x").final("q1")
    text = stretto.write_afa(with_function)
    assert stretto.read_afa(text, functions=[__name__]) == with_function.frozen
    assert stretto.read_afa(text, functions=[f"{__name__}:rising"]) == with_function.frozen
    assert stretto.read_afa(text, functions={f"{__name__}:rising": rising}) == with_function.frozen
    with pytest.raises(
        OptionError, match=r"names the function '.*rising', and a text imports what its caller allows: none"
    ):
        stretto.read_afa(text)
    with pytest.raises(OptionError, match=r"functions= has none of this name"):
        stretto.read_afa(text, functions={"falling": rising})


def test_as_people_write_it() -> None:
    text = """
    window = "10 seconds"
    register = { n = "int64" }
    final = { q2 = "on_enter" }
    arcs = [
        { source = "q0", target = "q1", when = "e.kind = 'a'", then = "n = 1" },
        { source = "q1", kind = "ignore", when = "e.kind = 'c'" },
        { source = "q1", target = "q2", when = "e.kind = 'b'", id = "last" },
    ]
    """
    afa = stretto.AFA({"kind": str}, {"n": int}, window="10 seconds").arc("q0", "q1", "e.kind = 'a'", "n = 1")
    afa.ignore("q1", "e.kind = 'c'").arc("q1", "q2", "e.kind = 'b'", id="last").final("q2", "on_enter")
    assert stretto.read_afa(text, {"kind": str}) == afa.frozen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "no TOML"),
        ("{", "no JSON"),
        ("", "does not say the events' attributes"),
        ("evnts = {}", "has the key 'evnts'; did you mean 'events'"),
        ("events = {x = 'int6'}", "'int6' is not an Arrow type"),
        ("events = {x = 'int64'}\narcs = 3", "the automaton's text is wrong"),
        ("events = {x = 'int64'}\nfinal = {q1 = 'y'}", "'y' is not a valid Emit"),
        ("events = {x = 'int64'}\narcs = [{target = 'q1'}]", r"arcs\[0\] has no source"),
        ("events = {x = 'int64'}\narcs = ['q0 -> q1']", "an arc is a table"),
        ("events = {x = 'int64'}\narcs = [{source = 'q0', wen = 'TRUE'}]", "did you mean 'when'"),
        ("events = {x = 'int64'}\narcs = [{source = 'q0', target = 'q1'}]", "no state is final"),
        ("events = {x = 'int64'}\nfinal = ['q1']\narcs = [{source = 'q0', target = 'q1', when = 'e.y > 3'}]", "no attribute 'y'"),
    ],
)  # fmt: skip
def test_wrong_texts(text: str, message: str) -> None:
    with pytest.raises(StrettoError, match=message):
        stretto.read_afa(text)


def test_what_does_not_travel() -> None:
    afa = stretto.AFA({"x": int}).arc("q0", "q1", when=lambda e, r: e.x > 3).final("q1")
    with pytest.raises(OptionError, match=r"arc 'a0': the function lambda at .* is known to this process only"):
        stretto.write_afa(afa)
    text = "events = {x = 'int64'}\narcs = [{source = 'q0', when = {function = 'no_such_module:f'}}]"
    with pytest.raises(OptionError, match="cannot import 'no_such_module:f'"):
        stretto.read_afa(text, functions=["no_such_module"])


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that can be imported, and was not."""
    (tmp_path / "never_imported.py").write_text("from os import system\ndef rising(e, r):\n    return e.x > 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "never_imported"


@pytest.mark.parametrize(
    "named", ["never_imported:rising", "never_imported:system", "never_imported.system", "os:system"]
)
def test_no_text_imports_a_module_by_itself(module: str, named: str, tmp_path: Path) -> None:
    text = f"events = {{x = 'int64'}}\nfinal = ['q1']\narcs = [{{source = 'q0', target = 'q1', when = {{function = '{named}'}}}}]"
    fails: list[Any] = [
        lambda: stretto.read_afa(text),
        lambda: stretto.read_afa(text, functions=["tests.languages.test_afa_written"]),
        lambda: stretto.PatternSet({"x": "int64", "t": "int64"}, time="t", type=None).change(
            [stretto.Change("p", text, language="afa")]
        ),
        lambda: stretto.sql(
            f"SELECT * FROM e MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS {named}('ls') > 0)", e=[{"x": 1}]
        ),
        lambda: stretto.match(f"SELECT * FROM S WHERE A AS a FILTER a[{named}('ls') > 0]", [{"type": "A"}]),
        lambda: stretto.match(
            f"PATTERN SEQ(A a) WHERE skip_till_any_match {{ {named}(a.x) }}", [{"type": "A", "x": 1}]
        ),
    ]
    for fail in fails:
        with pytest.raises(StrettoError):
            fail()
    rules = stretto.read_rules([{"id": "p", "query": text, "language": "afa"}])
    try:
        report = rules.match([{"x": 1, "t": 1}], type=None, time="t").report
        assert report.column("error").null_count == 0
    except StrettoError:
        pass  # it is told at reading
    assert module not in sys.modules


def test_a_module_that_is_allowed_gives_its_own_functions_only(module: str) -> None:
    text = "events = {{x = 'int64'}}\nfinal = ['q1']\narcs = [{{source = 'q0', target = 'q1', when = {{function = '{}'}}}}]"
    with pytest.raises(
        OptionError, match="'never_imported:system' is no function of the module 'never_imported' itself"
    ):
        stretto.read_afa(text.format("never_imported:system"), functions=[module])
    afa = stretto.read_afa(text.format("never_imported:rising"), functions=[module])
    assert stretto.match(afa, [{"x": 1, "t": 1}, {"x": 2, "t": 2}], time="t").num_rows == 1
    sys.modules.pop(module)
