"""Imports go one way, down the list of rooms (docs/architecture.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import stretto
from stretto.languages.datalog.strata import components

ROOT = Path(stretto.__file__).parent

#: Rooms from the ground up: a module imports from its own room and from those before it.
ROOMS = [
    ["errors", "arguments", "folders", "_jit", "array_types", "column_types", "times", "memory", "budget", "frame"],
    ["events"],
    ["views"],
    ["query", "columns"],
    ["automata"],
    ["engines"],
    ["explaining"],
    ["languages"],
    ["matching"],
    ["dataflow"],
    ["asking"],
    ["spark", "connectors", "demo"],
    ["pipelines", "studio"],
    ["cli"],
    ["__main__"],
]


def room(module: str) -> str:
    return module.split(".")[1] if module.count(".") else "stretto"


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The import statements of a file."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path: Path) -> list[str]:
    """The stretto modules that a file imports."""
    found = []
    for node in statements(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] == "stretto"]
        elif node.module == "stretto":
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif node.module and node.module.split(".")[0] == "stretto":
            found.append(node.module)
    return found


def test_every_room_is_listed() -> None:
    rooms = {name for level in ROOMS for name in level}
    there = {
        p.stem if p.suffix == ".py" else p.name
        for p in ROOT.iterdir()
        if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert there - {"__init__", "__main__"} <= rooms


def test_imports_go_down() -> None:
    level = {name: number for number, names in enumerate(ROOMS) for name in names}
    wrong = []
    for path in ROOT.rglob("*.py"):
        if path.parent == ROOT and path.stem in ("__init__", "__main__"):
            continue
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for module in imports(path):
            other = room(module)
            if other in ("stretto", own) or other not in level:
                continue
            if level[other] > level[own]:
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not wrong


def test_no_circle_between_files() -> None:
    """All imports count, those inside functions and those for types, too."""
    files = {".".join(("stretto", *path.relative_to(ROOT).with_suffix("").parts)): path for path in ROOT.rglob("*.py")}
    files = {name.removesuffix(".__init__"): path for name, path in files.items()}
    reads = {name: [one for one in imported(path, set(files)) if one != name] for name, path in files.items()}
    assert [sorted(group) for group in components(reads) if len(group) > 1] == []


def imported(path: Path, files: set[str]) -> list[str]:
    """The files that a file imports, or imports from."""
    found = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in files else node.module for name in names}
    return sorted(found & files)


def test_the_judge_stands_apart() -> None:
    """No engine reads what conditions on several events mean by definition: the judge of the tests does, and why-not."""
    definitions = {f"stretto.query.evaluate_{name}" for name in ("sase", "rows", "afa")}
    readers = {path.parent.name for path in ROOT.rglob("*.py") if definitions & set(imports(path))}
    assert readers == {"asking"}
    judge = ROOT.parent.parent / "tests" / "reference"
    read = {module for path in judge.glob("*.py") for module in imports(path)}
    assert definitions <= read
    assert {module for module in read if room(module) == "engines"} <= {
        "stretto.engines.rows.history"
    }  # what a condition reads
    assert not [module for path in ROOT.rglob("*.py") for module in named(path) if module.split(".")[0] == "tests"]


def named(path: Path) -> list[str]:
    """The modules that a file imports, whosever they are."""
    nodes = statements(path)
    return [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names] + [
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module
    ]


def test_numba_has_one_door() -> None:
    users = {path.parent.name for path in ROOT.rglob("*.py") if "import numba" in path.read_text(encoding="utf-8")}
    assert users == {"_jit"}


def loaded(statement: str) -> set[str]:
    """The modules that a process has imported after a statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_imports_what_is_used() -> None:
    """The first answer comes sooner: what no query of this kind needs is not imported."""
    assert {name for name in loaded("import stretto") if name.startswith("stretto.")} == set()
    assert not loaded("import stretto") & {"numpy", "pyarrow", "numba", "lark", "rich"}
    there = loaded("import stretto; stretto.match('SELECT * FROM S WHERE A ; B', [{'type': 'A'}, {'type': 'B'}])")
    unused = ["engines.afa", "engines.rows", "engines.nfab.runner", "engines.timed.runner", "engines.totals.runner"]
    unused += [
        "engines.latest.runner",
        "languages.sql",
        "languages.sase.transformer",
        "matching.pattern_set",
        "matching.executors.retracting",
    ]
    unused += ["dataflow", "asking", "views", "spark", "pipelines", "studio"]
    assert not [name for name in there for module in unused if f"{name}.".startswith(f"stretto.{module}.")]
    assert not there & {"rich", "polars", "pyspark", "matplotlib"}


def test_help_imports_no_engine() -> None:
    """Help of the whole, and of each command, comes at once; completion asks for it at each key."""
    for arguments in (
        ["--help"],
        *([name, "--help"] for name in ("match", "sql", "explain", "why-not", "compile", "studio")),
    ):
        called = f"from stretto.cli import main\ntry:\n    main({arguments})\nexcept SystemExit as ended:\n    assert ended.code == 0"
        there = loaded(called)
        assert "stretto.cli.match" in there
        assert not there & {"numpy", "pyarrow", "numba", "lark", "stretto.matching", "stretto.asking"}, arguments


def test_the_start_of_a_stream_imports_no_engine() -> None:
    """Spark's driver runs a Python process for it alone, each time a query starts."""
    pytest.importorskip("pyspark.sql.streaming", reason="PySpark is not installed: pip install 'stretto[spark]'")
    there = loaded("import stretto.spark.streaming.processor")
    assert not there & {"numpy", "pyarrow", "pandas", "numba", "lark", "stretto.matching", "stretto._jit"}
