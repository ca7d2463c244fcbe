"""What is public is imported when it is first used, and the collector of garbage is as it was behind that."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import gc
{}
import stretto
before = gc.isenabled(), gc.get_freeze_count() > 0
stretto.match
try:
    stretto.nothing
except AttributeError:
    pass
print((gc.isenabled(), gc.get_freeze_count() > 0) == before)
"""


@pytest.mark.parametrize("way", ["", "gc.disable()", "gc.freeze()"])
def test_the_collector_is_as_it_was(way: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE.format(way)], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
