"""Every Python block of the pages about Spark runs, in order."""

from __future__ import annotations

import doctest
import importlib
import inspect
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark]

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("spark.md", "streaming.md", "sql.md")


@pytest.mark.parametrize("page", PAGES)
def test_blocks(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = DOCS / page
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(path), "exec"), names)


def functions() -> Iterator[tuple[str, Any]]:
    """What is public of Spark, sources, sinks and pipelines, and may be called."""
    for package in ("stretto.spark", "stretto.connectors", "stretto.pipelines"):
        module = importlib.import_module(package)
        for name in module.__all__:
            if inspect.isfunction(found := getattr(module, name)):
                yield f"{package}.{name}", found


def test_examples_of_functions(spark: Any) -> None:
    """Each public function has an example, and all run in one session."""
    shown = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    without = []
    for name, function in functions():
        tests = doctest.DocTestFinder(recurse=False, exclude_empty=True).find(function, name)
        without += [name] * (not any(test.examples for test in tests))
        for test in tests:
            runner.run(test, out=shown.write)
    assert runner.failures == 0, shown.getvalue()
    assert not without
