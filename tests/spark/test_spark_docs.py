"""Every Python block of the pages about Spark runs, in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

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
