"""The page that the repository keeps, and every installation has, is the one that its source gives."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from stretto.studio.page import FILES, STATIC

SOURCE = Path(__file__).parents[2] / "studio"


def test_the_page_is_that_of_its_source(tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node, which builds the page, is not installed")
    source = tmp_path / "studio"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("node_modules"))
    for command in ([npm, "ci", "--no-audit", "--no-fund"], [node, "build.mjs", str(tmp_path / "static")]):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    built = {path.name: path.read_bytes() for path in (tmp_path / "static").iterdir()}
    kept = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert built.keys() == kept.keys() >= {"index.html", *FILES}
    differing = [name for name in built if built[name] != kept[name]]
    assert differing == [], "run 'make studio', and commit what it builds"
