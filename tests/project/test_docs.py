"""Everything that the documentation shows runs, and prints what it says."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import io
import pkgutil
import re
import sys
import types
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import stretto
import tests.reference
from tests.conftest import COMPILED

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Runs with a Spark session, in tests/spark.
ELSEWHERE = {"connectors.md", "spark.md", "sql.md", "streaming.md"}
#: Has hundreds of thousands of events.
LARGE = {"tutorial.md"}

FENCE = re.compile(
    r"(?P<skip><!-- not run -->\s*\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A piece of Python of a page, and what the page says that it prints (``None``: it does not say)."""

    line: int
    code: str
    output: str | None


def blocks(page: Path) -> Iterator[Block]:
    """A plain block right after a Python block is its output."""
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for block, after in zip_longest(found, found[1:]):
        if block["language"] != "python" or block["skip"]:
            continue
        output = None
        if after is not None and not after["language"] and not text[block.end() : after.start()].strip():
            output = after["text"]
        yield Block(text.count("\n", 0, block.start("text")) + 1, block["text"], output)


def test_pages_are_found() -> None:
    names = [page.name for page in PAGES]
    assert names[0] == "README.md"
    assert "semantics.md" in names
    assert len(list(blocks(PAGES[0]))) >= 2


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in ELSEWHERE], ids=lambda page: page.name)
def test_blocks_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, with one set of names, where the examples of the repository are."""
    if page.name in LARGE and not COMPILED:
        pytest.skip("hundreds of thousands of events take minutes without JIT")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__docs__"}
    for block in blocks(page):
        shown = io.StringIO()
        code = "\n" * (block.line - 1) + block.code
        with contextlib.redirect_stdout(shown):
            exec(compile(code, str(page), "exec"), names)
        if block.output is not None:
            assert shown.getvalue() == block.output, f"{page.name}, line {block.line}"


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path = target.split("#")[0]
            if path and "://" not in path and not path.startswith("mailto:") and not (page.parent / path).exists():
                broken.append(f"{page.name}: {target}")
    assert not broken


def test_the_page_of_the_package_has_no_links_into_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = {
        "hatchling.metadata.plugin": "MetadataHookInterface",
        "hatchling.builders.hooks.plugin": "BuildHookInterface",
    }
    for package, hook in hooks.items():  # which is there only while the package is built
        parts = f"{package}.interface".split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.setattr(sys.modules[f"{package}.interface"], hook, type(hook, (), {}), raising=False)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = build.without_relative_links(text)
    assert [target for target in re.findall(r"\]\(([^)]+)\)", FENCE.sub("", found)) if "://" not in target] == []
    assert "![" not in found
    assert FENCE.findall(found) == FENCE.findall(text)
    assert len(found) > 0.9 * len(text)
    assert doctest.testmod(build).failed == 0


def test_the_files_that_contributing_names_are_there() -> None:
    named = re.findall(
        r"`([\w/.]+/|\w+/[\w/]+\.(?:py|lark|toml|md))`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    )
    assert len(named) > 30
    places = (ROOT, ROOT / "src" / "stretto")
    assert not [path for path in named if "NAME" not in path and not any((one / path).exists() for one in places)]


def modules() -> list[str]:
    packages = (stretto, tests.reference)
    return [
        name
        for package in packages
        for name in (
            package.__name__,
            *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
        )
    ]


@pytest.mark.parametrize("name", modules())
def test_doctests(name: str) -> None:
    if name.startswith("stretto.spark"):
        pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    report = io.StringIO()
    for test in finder.find(module, name):
        if test.examples and not _needs_spark(test):
            runner.run(test, out=report.write)
    assert runner.failures == 0, report.getvalue()


def _needs_spark(test: doctest.DocTest) -> bool:
    """Examples with a session run in tests/spark."""
    return any("spark" in example.source for example in test.examples if "import" in example.source)


def test_there_are_doctests() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    count = sum(
        len(test.examples)
        for name in ("stretto", "stretto.matching.api.match", "stretto.matching.api.matcher")
        for test in finder.find(importlib.import_module(name), name)
    )
    assert count >= 10


@pytest.mark.skipif(not COMPILED, reason="docstrings are the same uncompiled")
def test_what_is_public_says_what_it_does() -> None:
    for name in stretto.__all__:
        if name != "spark":
            assert (getattr(stretto, name).__doc__ or "").strip(), name
    for method in ("push", "iter_push", "advance", "finish", "snapshot", "restore", "stats", "late", "position"):
        assert getattr(stretto.Matcher, method).__doc__, method
