"""Compile all kernels, and the tables of all grammars, for a platform wheel: ``python packaging/kernels.py FOLDER``.

Engines that are named behind the folder are compiled alone, to look at them. ``--table FOLDER`` prints the table of docs/kernels.md.

The folder gets what the package looks for beside ``stretto/_jit/bundle.py``. It is the same code that ``stretto compile`` makes,
but for a kind of processors in place of this one (``TARGETS`` in ``bundle.py``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stretto._jit import bundle
from stretto.cli.compiling import WORK
from stretto.languages.expressions.reading import languages, parser


def main(folder: Path, engines: Sequence[str]) -> None:
    """Fill the folder anew."""
    processor, _ = bundle.target()
    if not processor:
        raise SystemExit("no target is known for this kind of machine: build a pure wheel")
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        told = {"STRETTO_CACHE_DIR": made, "STRETTO_COMPILE": "now", "PYTHONHASHSEED": "0"}
        told |= {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
        for engine in engines:
            command = [sys.executable, "-W", "ignore", "-m", "stretto", "compile", engine]
            subprocess.run(command, env=os.environ | told, check=True)
        subprocess.run([sys.executable, __file__, "--grammars"], env=os.environ | told, check=True)
        (edition,) = Path(made, "kernels").iterdir()
        shutil.copytree(
            edition, folder / bundle.name(), ignore=shutil.ignore_patterns("*.lock", "*.compiled", "condition*")
        )
    files = [path for path in folder.rglob("*") if path.is_file()]
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB in {folder}")


def table(folder: Path) -> str:
    """Kernels, for how many combinations of types each is compiled and the bytes of that, the largest first, in Markdown."""
    known: dict[tuple[str, str], list[int]] = {}
    for path in sorted(folder.rglob("*.nbc")):
        name = path.name.split("-", 1)[0].split(".", 1)[1]
        known.setdefault((path.parent.name, name), []).append(path.stat().st_size)
    rows = sorted(known.items(), key=lambda item: -sum(item[1]))
    lines = [
        f"| `{module.removeprefix('stretto.')}` | `{name}` | {len(of)} | {sum(of):,} |" for (module, name), of in rows
    ]
    every = [size for of in known.values() for size in of]
    head = ["| module | kernel | types | bytes |", "|---|---|--:|--:|"]
    return "\n".join([*head, *lines, f"| all | {len(known)} kernels | {len(every)} | {sum(every):,} |"])


def grammars() -> None:
    """Keep the tables of all grammars."""
    for language in languages():
        for form in language.forms:
            parser(language, form)


if __name__ == "__main__":
    if sys.argv[1:] == ["--grammars"]:
        grammars()
    elif sys.argv[1] == "--table":
        print(table(Path(sys.argv[2])))
    else:
        main(Path(sys.argv[1]), sys.argv[2:] or list(WORK))
