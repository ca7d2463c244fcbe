"""Compiled kernels are kept until their code changes, and what is said before any compile: once in a process, on every engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import compiling

TOLD = "stretto compiles kernels for this machine, once: about half a minute for an engine, some minutes for automata\n"

#: Small kernels of two engines, called twice.
TECS = """
from stretto.engines.tecs.collect import states_in
for _ in range(2):
    states_in(np.zeros(0, np.int64), np.zeros(1, np.bool_))
"""
NFAB = """
from stretto.engines.nfab.structure import Parts, Runs
from stretto.engines.nfab.kernels import list_runs
none, table = np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
for _ in range(2):
    list_runs(0, Runs(none, none, none, none, none, table), Parts(none, none, table), none)
"""


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
