"""The names of code and files that the glossary and the page on architecture give are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import stretto

ROOT = Path(__file__).parents[2]
PACKAGE = Path(stretto.__file__).parent

#: A name, dotted or not, as far as it is one: what follows are arguments, an item, or a value.
NAME = re.compile(r"(\w+(?:\.\w+)*)(?=$|[(\[=])")
#: A file or a folder.
PATH = re.compile(r"[\w/-]+(?:\.(?:py|lark|toml|md)|/)$")
#: Where what a page names may lie.
PLACES = (PACKAGE, *(ROOT / name for name in (".", "docs", "tests", "benchmarks")))


def defined(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements define where they stand."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
        elif isinstance(node, ast.If | ast.Try):
            yield from defined(node.body)


def members(node: ast.ClassDef) -> set[str]:
    """The fields, methods and attributes of a class."""
    own = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self"}
    return own | set(defined(node.body))


@cache
def known() -> tuple[set[str], set[str]]:
    """All dotted names, of modules, what they define, and members of their classes, from ``stretto`` on; all parameters."""
    names, parameters = {"stretto"} | {f"stretto.{name}" for name in stretto.__all__}, set[str]()
    classes: list[tuple[str, ast.ClassDef]] = []
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "tests" / "reference").glob("*.py")]:
        inside = path.relative_to(PACKAGE.parent if PACKAGE in path.parents else ROOT / "tests")
        module = ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names |= {module} | {f"{module}.{name}" for name in defined(tree.body)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.append((module, node))
            elif isinstance(node, ast.FunctionDef):
                parameters |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    for module, node in classes:
        named = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        bases = [one for _, one in classes if one.name in named]
        names |= {f"{module}.{node.name}.{name}" for one in (node, *bases) for name in members(one)}
    return names, parameters


@cache
def endings() -> set[str]:
    """What is left of each dotted name without its first parts."""
    return {".".join(parts[i:]) for parts in (name.split(".") for name in known()[0]) for i in range(len(parts))}


def is_there(name: str) -> bool:
    """Whether something in the code is called so: ``kernels.advance``, ``sign=``, ``a/b.py``."""
    if PATH.search(name):
        return any((place / name).exists() for place in PLACES) or any(PACKAGE.rglob(f"**/{name}"))
    found = NAME.match(name)
    if found is None:
        return True
    if name[found.end() :].startswith("="):
        return found[1] in known()[1]
    return found[1] in endings()


def in_code_font(text: str) -> list[str]:
    return [name for name in re.findall(r"`([^`\n]+)`", text) if NAME.match(name) or PATH.search(name)]


def test_the_page_on_architecture_names_what_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = text.partition("```\n")[2].partition("```")[0]
    above, rooms = [ROOT], 0
    for line in drawn.splitlines():
        found = re.match(r"(?:  ){0,3}(?=\S)", line)
        if found is not None:
            rooms += 1
            depth = found.end() // 2
            above[depth + 1 :] = [above[depth] / line.split()[0]]
            assert above[-1].exists(), line
    assert rooms > 50
    named = [*re.findall(r"[\w/-]+\.(?:py|lark|md)\b", drawn), *filter(PATH.search, in_code_font(text))]
    assert len(named) > 30
    assert [name for name in named if not is_there(name)] == []


def test_the_glossary_names_what_is_there() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("\n## CORE\n")[2]
    named = [
        name for line in text.splitlines() if line.startswith("|") for name in in_code_font(line.rsplit("|", 2)[1])
    ]
    assert len(named) > 200
    assert [name for name in named if not is_there(name)] == []


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ('Matcher.stats["triggers"]', True),
        ("Matcher.statz", False),
        ("kernels.advance", True),
        ("kernels.advanced", False),
        ("sign=", True),
        ("signum=", False),
        ("afa.Arc.since", True),
        ("sase.Arc", False),
        ("afa/kernels.py", True),
        ("afa/kernel.py", False),
        ("no_such_name", False),
    ],
)
def test_a_dead_name_is_found(name: str, there: bool) -> None:
    assert is_there(name) is there
