"""Compile all kernels, and the tables of all grammars, for a platform wheel: ``python packaging/kernels.py FOLDER``.

Engines that are named behind the folder are compiled alone, to look at them.

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


def grammars() -> None:
    """Keep the tables of all grammars."""
    for language in languages():
        for form in language.forms:
            parser(language, form)


if __name__ == "__main__":
    if sys.argv[1:] == ["--grammars"]:
        grammars()
    else:
        main(Path(sys.argv[1]), sys.argv[2:] or list(WORK))
