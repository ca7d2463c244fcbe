"""The queries: W as a cyclic plan and as an automaton with a register, and reachability."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

import stretto
from stretto.dataflow import Stream, fixpoint, stream

__all__ = [
    "FAR",
    "LINKS",
    "MACHINE",
    "SYMBOLS",
    "lines",
    "lines_of_package",
    "reachability",
    "transitions",
    "w_afa",
    "w_plan",
]

#: What a register without a bound is compared with.
FAR = 1 << 20

#: The automaton of W (section 5.1): symbol, state before and behind, what is added to M, and the M that the transition asks for.
#: From the second downticks on M must stay above 1 until it becomes 0.
MACHINE = [
    ("U", "S", "1", 0, -FAR, FAR),
    ("D", "1", "2", 1, -FAR, FAR),
    ("D", "2", "2", 1, -FAR, FAR),
    ("U", "2", "3", -1, -FAR, FAR),
    ("U", "3", "3", -1, -FAR, FAR),
    ("D", "3", "4", 1, -FAR, FAR),
    ("D", "4", "4", 1, -FAR, FAR),
    ("U", "4", "5", -1, 2, FAR),
    ("U", "5", "5", -1, 2, FAR),
    ("U", "4", "F", -1, 1, 1),
    ("U", "5", "F", -1, 1, 1),
]

COLUMNS = ("sym", "src", "dst", "dm", "low", "high")

SYMBOLS = {"t": int, "sym": str}
TRANSITIONS = {"sym": str, "src": str, "dst": str, "dm": int, "low": int, "high": int}
LINKS = {"src": int, "dst": int}


def transitions() -> pa.Table:
    """The automaton as events that have always been there."""
    columns = dict(zip(COLUMNS, zip(*MACHINE, strict=True), strict=True))
    return pa.table({name: list(values) for name, values in columns.items()} | {"vs": [-1] * len(MACHINE)})


def w_plan(window: int) -> Stream:
    """W as a cyclic plan: all states that are reached, with where they began and what M is (section 4, figure 4)."""
    symbols = stream("symbols", SYMBOLS, insert_only=True)
    machine = stream("transitions", TRANSITIONS, insert_only=True)
    now = symbols.project("sym", now="t", before="t - 1")
    seeds = symbols.project(b="t", t="t - 1", q="'S'", m=0)
    return fixpoint(
        lambda reach: seeds.union(
            reach.join(now, on={"t": "before"})
            .join(machine, on={"sym": "sym", "q": "src"}, where="m BETWEEN low AND high")
            .project(b="b", t="now", q="dst", m="m + dm")
        ),
        schema=seeds,
        bound=window + 1,
        name="reach",
    )


def w_afa(window: int) -> stretto.AFA:
    """W as an automaton with the register M."""
    afa = stretto.AFA(SYMBOLS, register={"m": int}, start="S", window=window)
    afa.arc("S", "1", when="e.sym = 'U'")
    afa.arc("1", "2", when="e.sym = 'D'", then="m = r.m + 1")
    afa.arc("2", "2", when="e.sym = 'D'", then="m = r.m + 1")
    afa.arc("2", "3", when="e.sym = 'U'", then="m = r.m - 1")
    afa.arc("3", "3", when="e.sym = 'U'", then="m = r.m - 1")
    afa.arc("3", "4", when="e.sym = 'D'", then="m = r.m + 1")
    afa.arc("4", "4", when="e.sym = 'D'", then="m = r.m + 1")
    afa.arc("4", "5", when="e.sym = 'U' AND r.m > 1", then="m = r.m - 1")
    afa.arc("5", "5", when="e.sym = 'U' AND r.m > 1", then="m = r.m - 1")
    afa.arc("4", "F", when="e.sym = 'U' AND r.m = 1", then="m = r.m - 1")
    afa.arc("5", "F", when="e.sym = 'U' AND r.m = 1", then="m = r.m - 1")
    return afa.final("F")


def reachability() -> Stream:
    """Which node can be reached from which one, over any number of links (section 2 without paths, with distinct)."""
    links = stream("links", LINKS)
    return fixpoint(
        lambda reach: links.union(links.join(reach, on={"dst": "src"}).project(src="src", dst="dst_right")).distinct(),
        schema=links,
        name="reach",
    )


def lines(written: Callable[..., Any] | ModuleType | Path) -> int:
    """Lines of code, without blank ones, comments and docstrings."""
    source = written.read_text(encoding="utf-8") if isinstance(written, Path) else inspect.getsource(written)
    tree = ast.parse(source)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            text = node.body[0]
            left_out.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    kept = [
        line
        for number, line in enumerate(source.splitlines(), 1)
        if number not in left_out and line.strip() and not line.strip().startswith("#")
    ]
    return len(kept)


def lines_of_package(package: ModuleType) -> int:
    """The same of all modules of a package."""
    assert package.__file__ is not None
    return sum(lines(path) for path in sorted(Path(package.__file__).parent.rglob("*.py")))
