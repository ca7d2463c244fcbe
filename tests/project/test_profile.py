"""One profile says how much is tried: tests say it in the words of tests/conftest.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
#: What only tests/conftest.py reads.
VARIABLES = re.compile(r"DISABLE_JIT|BOUNDSCHECK|STRETTO_CASES|max_examples=\d")
SHOWN = "from tests.conftest import *; from tests.conftest import cases, size; "
SHOWN += "print(cases(4000), cases(8), cases(12_000, compiled=800), size(70_000, 200), settings().max_examples)"


def test_nothing_else_asks_how_much_to_try() -> None:
    files = [path for path in HERE.rglob("*.py") if path not in (HERE / "conftest.py", Path(__file__))]
    found = [str(path.relative_to(HERE)) for path in files if VARIABLES.search(path.read_text(encoding="utf-8"))]
    assert not found, "say cases(n), cases(n, compiled=m) or size(n, m)"


@pytest.mark.parametrize(
    ("share", "interpreted", "expected"),
    [
        ("tenth", "0", "400 8 80 70000 10"),
        ("all", "0", "4000 8 800 70000 100"),
        ("tenth", "1", "40 8 1200 200 10"),
        ("all", "1", "400 8 12000 200 10"),
    ],
)
def test_the_profile(share: str, interpreted: str, expected: str) -> None:
    environment = os.environ | {"STRETTO_CASES": share, "NUMBA_DISABLE_JIT": interpreted}
    done = subprocess.run(
        [sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True, env=environment, cwd=HERE.parent
    )
    assert done.stdout.split("\n")[0] == expected


def test_names_choose_tests_of_files_that_draw_cases() -> None:
    """The mark of these files is no word that names of tests have: ``-k`` looks at marks, too."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-k",
            "not random",
            "tests/matching/pattern_set/test_pattern_set.py",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=HERE.parent,
    )
    assert "test_pattern_set.py::test_" in done.stdout


def test_another_share_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", __file__],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"STRETTO_CASES": "most"},
        cwd=HERE.parent,
    )
    assert done.returncode
    assert "STRETTO_CASES=most is none of tenth, all" in done.stdout + done.stderr
