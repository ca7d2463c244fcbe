"""Kernels that are not compiled yet: queries answer at once, other processes compile, and it is said, once. Compiled ones are kept.

The processes of these tests start with an empty folder of compiled kernels.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stretto import _jit
from stretto._jit import background, internals
from stretto.cli.compile import compile_kernels
from stretto.cli.compiling import WORK
from tests.conftest import COMPILED, compiling, interpreting

TOLD = "stretto compiles kernels for this machine, once: seconds for a plain query, up to a minute for all that an engine does\n"

#: Small kernels of two engines, called twice.
TECS = """
from stretto.engines.tecs.collect import states_in
for _ in range(2):
    states_in(np.zeros(0, np.int64), np.zeros(1, np.bool_))
"""
NFAB = """
from stretto.engines.nfab.structure import Parts, Runs
from stretto.engines.nfab.cleaning import list_runs
none, table = np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
for _ in range(2):
    list_runs(0, Runs(none, none, none, none, none, table), Parts(none, none, table), none)
"""


#: A first query of each engine, which tells its result, and the kernels of which compiled code was used.
FIRST = """
import gc, json, sys
import stretto
from stretto import _jit
from stretto._jit import background, internals
from stretto.cli.compiling import EVENTS

class Child:
    def poll(self):
        return None

background._start = lambda group: Child()  # nobody compiles

def outcome():
    afa = stretto.AFA(events={"type": str, "v": int}, register={"n": int}, initial={"n": 0}, start="q0", window=6)
    afa.arc("q0", "q1", when="e.type = 'A'", then={"n": "e.v"}).arc("q1", "q2", when="e.v > r.n", then={"n": "r.n + e.v"}).final("q2")
    queries = [
        "SELECT * FROM S WHERE A ; B+ AS b PARTITION BY [k] WITHIN 10 [ts]",
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { b[i].v > a.v } WITHIN 10 RETURN sum(b[].v) AS s",
        "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.d + b.d > 0.3 } WITHIN 10",
        afa,
    ]
    import decimal
    import pyarrow as pa
    d = pa.array([decimal.Decimal("0.10"), decimal.Decimal("0.21"), decimal.Decimal("0.3"), None], pa.decimal128(38, 2))
    clause = "MATCH_RECOGNIZE (ORDER BY ts MEASURES sum(v) AS s PATTERN (A B+) DEFINE B AS v > PREV(v))"
    rows = stretto.sql(f"SELECT * FROM events {clause}", events=EVENTS)
    return [rows.to_pylist(), *(stretto.match(one, EVENTS.append_column("d", d), time="ts").to_pylist() for one in queries)]

def used():
    return sorted({one.py_func.__name__ for one in gc.get_objects() if isinstance(one, internals._Kernel) and one._there})

first = str(outcome()), used()
"""
GO_ON = """
import shutil
shutil.copytree(sys.argv[1], _jit.CACHE_DIRECTORY, dirs_exist_ok=True)
background.PAUSE = 0
print(json.dumps([*first, str(outcome()), used()]))
"""


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_first_answers_do_not_wait_for_compiled_code(tmp_path: Path) -> None:
    if not all((Path(_jit.CACHE_DIRECTORY) / f"{group}.compiled").exists() for group in background.GROUPS):
        subprocess.run([sys.executable, "-c", "from stretto.cli import main; main()", "compile"], check=True)
    environment = {name: value for name, value in compiling().items() if name != "STRETTO_COMPILE"}
    done = subprocess.run(
        [sys.executable, "-c", FIRST + GO_ON, _jit.CACHE_DIRECTORY],
        env=environment | {"STRETTO_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    first, used_first, second, used_then = json.loads(done.stdout)
    assert used_first == []
    assert {"advance"} <= set(used_then)
    assert first == second  # of Python, and of compiled code
    for engine in ("tecs", "nfab", "afa", "rows"):
        assert (
            done.stderr.count(f"stretto compiles the kernels of {engine} in the background, once for this machine") == 1
        )


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_what_is_inlined_has_no_code_of_its_own() -> None:
    from stretto.columns.keys import _hash, _mix

    state, word = np.uint64(2**63 + 3), np.uint64(2**40 + 5)
    with np.errstate(over="ignore"):
        expected = _mix.python(state, word)
    assert _mix(state, word) == expected, "Python may call it all the same"
    _hash(np.arange(9, dtype=np.uint64), 2, 9)
    for code in (found.library for found in _mix.overloads.values()):
        assert isinstance(code, internals._Part)
        assert code.get_pointer_to_function(code.name) == 0


def test_one_process_compiles_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    class Child:
        ended: int | None = None

        def poll(self) -> int | None:
            return self.ended

    child = Child()
    monkeypatch.setattr(background, "_start", lambda group: started.append(group) or child)
    monkeypatch.setattr(background, "_known", set())
    monkeypatch.setattr(background, "_looked", {})
    monkeypatch.setattr(background, "_children", {})
    monkeypatch.setattr(background, "PAUSE", 0.0)
    folder, module = str(tmp_path), "stretto.engines.nfab.cleaning"
    with background.compiling(folder, "nfab") as left:
        assert left
        if background.fcntl is not None:
            assert not background.compiled(folder, module)
            assert started == []  # another process is at it
    assert background.compiled(folder, module)  # and is done
    with background.compiling(folder, "nfab") as left:
        assert not left
    assert not background.compiled(folder, "stretto.engines.afa.kernels")
    assert not background.compiled(folder, "stretto.engines.afa.index")
    assert started == ["afa"]
    child.ended = 1
    assert background.compiled(folder, "stretto.engines.afa.index")  # it failed: this process compiles by itself


def test_all_groups_are_known_to_the_command() -> None:
    assert WORK.keys() == background.GROUPS.keys()
    told = inspect.signature(compile_kernels).parameters["engines"].annotation
    assert {name for name in WORK if not re.search(rf"(?<![\w-]){name}(?![\w-])", str(told))} == set()
    seconds = [one.seconds for one in WORK.values()]
    assert seconds == sorted(seconds, reverse=True)


def test_the_command(tmp_path: Path) -> None:
    environment = compiling(STRETTO_CACHE_DIR=str(tmp_path))
    Path(tmp_path / "kernels" / Path(_jit.CACHE_DIRECTORY).name).mkdir(parents=True)
    for group in background.GROUPS:
        (tmp_path / "kernels" / Path(_jit.CACHE_DIRECTORY).name / f"{group}.compiled").touch()
    command = [sys.executable, "-c", "from stretto.cli import main; main()", "compile"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    if COMPILED:
        assert sorted(done.stdout.splitlines()) == sorted(f"{group}: was there" for group in background.GROUPS)
    wrong = subprocess.run([*command, "nfa"], env=environment, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "there is no engine 'nfa'" in wrong.stderr
    interpreted = interpreting(STRETTO_CACHE_DIR=str(tmp_path))
    off = subprocess.run(command, env=interpreted, capture_output=True, text=True, check=True)
    assert off.stdout == "nothing to compile: Numba is switched off\n"


def test_one_engine_that_is_named_is_compiled_by_a_process_that_compiles(tmp_path: Path) -> None:
    """And not by the command itself, where kernels that are not there yet run as Python."""
    environment = compiling(STRETTO_CACHE_DIR=str(tmp_path))
    del environment["STRETTO_COMPILE"]
    code = """
import os, subprocess, sys
def run(args, env, **options):
    print(args[-2:], env["STRETTO_COMPILE"])
    return subprocess.CompletedProcess(args, 0, "rows: compiled in 9 s\\n")
subprocess.run = run
from stretto.cli import main
main(["compile", "rows"])
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "['compile', 'rows'] now\nrows: compiled in 9 s; 100% of all is done\n"


def test_engines_are_compiled_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if background.fcntl is None:
        pytest.skip("processes cannot lock files here")
    started: list[str] = []
    monkeypatch.setattr(background, "_start", started.append)
    for name in ("_known", "_looked", "_children"):
        monkeypatch.setattr(background, name, set() if name == "_known" else {})
    monkeypatch.setattr(background, "PAUSE", 0.0)
    with background.compiling(str(tmp_path), "nfab"):
        assert not background.compiled(str(tmp_path), "stretto.engines.afa.kernels")
        assert started == []
    assert not background.compiled(str(tmp_path), "stretto.engines.afa.kernels")
    assert started == ["afa"]


def said(folder: Path, *code: str) -> str:
    """What a process writes to stderr with this folder of compiled kernels."""
    done = subprocess.run(
        [sys.executable, "-c", "import numpy as np\n" + "".join(code)],
        env=compiling(STRETTO_CACHE_DIR=str(folder)),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


def test_it_is_said_where_something_compiles(tmp_path: Path) -> None:
    assert said(tmp_path, TECS) == TOLD
    assert said(tmp_path, TECS, NFAB) == TOLD  # another engine's kernels are there, this one's are not
    assert said(tmp_path, "import logging; logging.basicConfig()\n", TECS, NFAB) == ""


def test_a_function_of_the_user_says_nothing(tmp_path: Path) -> None:
    own = "import numba, stretto\nnumba.njit(lambda x: x + 1)(3)\n"
    assert said(tmp_path, own) == ""


OUTSIDE = """
from stretto._jit import inlined, jit
@inlined
def helper():
    return {}
@jit
def kernel():
    return helper() + 0
"""


def test_kernels_outside_the_package_compile_again_when_their_file_changes(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[-1]); import own; print(own.kernel(), sum(own.kernel.stats.cache_hits.values()))"
    seen = []
    for number in (1, 1, 2):
        text = OUTSIDE.format(number)
        if not (tmp_path / "own.py").exists() or (tmp_path / "own.py").read_text() != text:
            (tmp_path / "own.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env=compiling(STRETTO_CACHE_DIR=str(tmp_path / "kept"), PYTHONDONTWRITEBYTECODE="1"),
            capture_output=True,
            text=True,
            check=True,
        )
        seen.append(done.stdout.split())
    assert seen == [["1", "0"], ["1", "1"], ["2", "0"]]
