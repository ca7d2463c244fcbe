"""The notebooks of examples/ run from the first cell to the last, and show what they tell."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import COMPILED

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


def shown(name: str) -> list[Any]:
    """What each cell of code shows: the value of its last expression; ``None`` where it ends otherwise."""
    cells = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))["cells"]
    assert not [cell for cell in cells if cell.get("outputs")], "a notebook is kept without its output"
    names: dict[str, Any] = {"__name__": "__notebook__"}
    found = []
    for cell in cells:
        if cell["cell_type"] == "code":
            body = ast.parse("".join(cell["source"])).body
            last = body.pop() if isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), name, "exec"), names)
            found.append(None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), names))
    return found


@pytest.mark.skipif(not COMPILED, reason="hundreds of thousands of events take minutes without JIT")
def test_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NOTEBOOKS)
    _, drawing, chains, lengths, growing = shown("flights.ipynb")
    assert "before" in drawing.source
    assert len(chains) == 5
    assert sum(lengths.values()) == 1352
    assert max(lengths) == 5
    assert len(growing) == 28
    assert (growing["last"] > growing["first"]).all()


def test_streams() -> None:
    first, second, restored, late = shown("streams.ipynb")
    assert (first, late) == (0, 1)
    assert second["card"].tolist() == ["a"]
    assert restored["card"].tolist() == ["b"]


def test_every_notebook_is_run() -> None:
    assert {one.name for one in NOTEBOOKS.glob("*.ipynb")} == {"flights.ipynb", "streams.ipynb"}
