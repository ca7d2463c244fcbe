"""The documentation as a site: it is built without a warning, which a link that leads nowhere is, and nothing public is missing."""

from __future__ import annotations

import fcntl
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("sphinx", reason="Sphinx is not installed: it is in the dependency group 'site'")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The site, which takes seconds to build: workers of one run share it, and the first that needs it builds it."""
    folder = tmp_path_factory.getbasetemp()
    out = (folder if worker_id == "master" else folder.parent) / "site"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(out / "trees"), str(ROOT / "docs")]
    with out.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "built").exists():
            done = subprocess.run([*command, str(out / "html")], check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            (out / "built").touch()
    return out / "html"


def public() -> Iterator[str]:
    for name in ("stretto", "stretto.dataflow", "stretto.spark"):
        module = importlib.import_module(name)
        modules = {one for one in module.__all__ if f"{name}.{one}" in sys.modules}
        yield from (f"{name}.{one}" for one in module.__all__ if one not in modules | {"dataflow", "spark"})


def test_every_public_name_is_on_the_page_of_python(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    missing = [name for name in public() if f'id="{name}"' not in page and f">{name.rpartition('.')[2]}<" not in page]
    assert not missing


def test_every_command_and_every_grammar_has_its_place(site: Path) -> None:
    commands = (site / "cli.html").read_text(encoding="utf-8")
    for name in ("match", "sql", "explain", "run", "rules-test", "compile"):
        assert f'id="stretto-{name}"' in commands
    grammars = (site / "grammars.html").read_text(encoding="utf-8")
    assert grammars.count("<svg") > 100
    assert "Traceback" not in grammars


def test_every_page_can_be_reached(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert not [page for page in sorted(pages) if f'href="{page}.html"' not in front]


def test_every_file_says_what_it_holds(site: Path) -> None:
    page = (site / "architecture.html").read_text(encoding="utf-8")
    for path in (ROOT / "src" / "stretto").rglob("*.py"):
        assert path.name == "__init__.py" or f">{path.name}<" in page or f'pre">{path.name}' in page, path
