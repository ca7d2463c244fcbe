"""Compiled code that comes with the package, as in a wheel: it is taken where it fits, and it is said why where it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import stretto
from stretto._jit import bundle
from tests.conftest import COMPILED, compiling

PACKAGE = Path(stretto.__file__).parent

pytestmark = pytest.mark.skipif(
    not COMPILED or not bundle.target()[0], reason="nothing is compiled, or for no known target"
)

#: A small kernel of the package is called; how often something was compiled.
CALL = """
import numpy as np
from stretto._jit import internals
compiled = []
before = internals._Compiler._compile_core
internals._Compiler._compile_core = lambda self, *given: compiled.append(self.py_func.__name__) or before(self, *given)
from stretto.engines.tecs.collect import states_in
states_in(np.zeros(0, np.int64), np.zeros(1, np.bool_))
print(compiled)
"""


def run(path: Path, cache: Path, **environment: str) -> tuple[str, str]:
    """What a process prints that has the package on its path and an empty cache, and what it says."""
    cache.mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALL],
        env=compiling(STRETTO_CACHE_DIR=str(cache), PYTHONPATH=str(path), STRETTO_COMPILE="now", **environment),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of code of one kernel for the target of wheels."""
    cache = tmp_path_factory.mktemp("cache")
    told, _ = run(PACKAGE.parent, cache, NUMBA_CPU_NAME=bundle.target()[0], NUMBA_CPU_FEATURES="")
    assert told == "['states_in']"
    (edition,) = (cache / "kernels").iterdir()
    return edition


def installed(folder: Path, compiled: Path, name: str) -> Path:
    """A copy of the package, by links, with a folder of compiled code of this name."""
    (folder / "stretto" / "_jit").mkdir(parents=True)
    for source, target in ((PACKAGE, folder / "stretto"), (PACKAGE / "_jit", folder / "stretto" / "_jit")):
        for entry in source.iterdir():
            if entry.name not in ("_jit", bundle.FOLDER, "__pycache__"):
                (target / entry.name).symlink_to(entry)
    shutil.copytree(compiled, folder / "stretto" / "_jit" / bundle.FOLDER / name)
    return folder


def test_what_came_with_the_package_is_not_compiled(tmp_path: Path, compiled: Path) -> None:
    path = installed(tmp_path / "site", compiled, bundle.name())
    assert run(path, tmp_path / "cache") == ("[]", "")
    assert not list((tmp_path / "cache").rglob("*.nbc"))


def test_an_archive_holds_compiled_code_as_well(tmp_path: Path, compiled: Path) -> None:
    """As Spark's ``--py-files`` and artifacts send it to executors."""
    path = installed(tmp_path / "site", compiled, bundle.name())
    archive = tmp_path / "stretto.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for folder, _, files in os.walk(path, followlinks=True):
            for file in files:
                if not file.endswith(".pyc"):
                    whole = Path(folder, file)
                    made.write(whole, whole.relative_to(path))
    assert run(archive, tmp_path / "cache") == ("[]", "")


def test_code_of_other_sources_or_another_numba_is_not_taken(tmp_path: Path, compiled: Path) -> None:
    for name, why in [
        (f"0123456789ab-{bundle.name().partition('-')[2]}", "its sources have changed"),
        ("0123456789ab-numba0.1.2-plain-x86-64-v3", "it is of numba0.1.2, here is numba"),
    ]:
        path = installed(tmp_path / name, compiled, name)
        told, said = run(path, tmp_path / f"cache of {name}")
        assert told == "['states_in']"
        assert (
            said.count(f"the compiled code that came with stretto is not taken, and kernels are compiled anew: {why}")
            == 1
        )


def test_a_processor_without_the_features_compiles(tmp_path: Path, compiled: Path) -> None:
    if not bundle.target()[1]:
        pytest.skip("the target needs no features")
    path = installed(tmp_path / "site", compiled, bundle.name())
    told, said = run(path, tmp_path / "cache", NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="+sse4.2,+popcnt,-avx2")
    assert told == "['states_in']"
    assert "this processor lacks avx, avx2, bmi" in said


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_compiled_anew(tmp_path: Path, compiled: Path, ending: str) -> None:
    path = installed(tmp_path / "site", compiled, bundle.name())
    for file in path.rglob(f"*.{ending}"):
        file.write_bytes(file.read_bytes()[:-20])
    told, said = run(path, tmp_path / "cache")
    assert told == "['states_in']"
    assert "compiled code that came with stretto is damaged, and is compiled anew: " in said


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_of_the_cache_are_compiled_anew(tmp_path: Path, ending: str) -> None:
    cache = tmp_path / "cache"
    assert run(PACKAGE.parent, cache)[0] == "['states_in']"
    assert run(PACKAGE.parent, cache)[0] == "[]"
    for file in cache.rglob(f"*.{ending}"):
        file.write_bytes(file.read_bytes()[:-20])
    assert run(PACKAGE.parent, cache)[0] == "['states_in']"
    assert run(PACKAGE.parent, cache)[0] == "[]"


def test_nothing_is_compiled_where_code_came_with_the_package(tmp_path: Path, compiled: Path) -> None:
    path = installed(tmp_path / "site", compiled, bundle.name())
    (tmp_path / "cache").mkdir(mode=0o700)
    environment = compiling(STRETTO_CACHE_DIR=str(tmp_path / "cache"), PYTHONPATH=str(path))
    for command, told in [
        ("compile", "nothing to compile: compiled code came with this installation"),
        ("doctor", "all, with the package"),
    ]:
        code = [sys.executable, "-m", "stretto", command]
        done = subprocess.run(code, env=environment, capture_output=True, text=True, check=False)
        assert told in done.stdout


def test_no_file_of_a_kernel_holds_code_of_llvm(compiled: Path) -> None:
    """It would be twice as large as the machine's, which alone is run."""
    (file,) = compiled.rglob("*.nbc")
    assert b"BC\xc0\xde" in file.read_bytes()  # the names of what Python calls
    assert file.stat().st_size < 40_000
