"""Scripts as a user runs them, in this process: a process of their own would load everything again."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
from pathlib import Path
from unittest import mock

__all__ = ["shown"]


def shown(script: Path, *arguments: str, data: Path) -> list[str]:
    """What a script prints, with its own folder first among those of modules and ``data`` as that of events."""
    printed = io.StringIO()
    beside = [
        name for name, one in sys.modules.items() if Path(getattr(one, "__file__", None) or "").parent == script.parent
    ]
    with (
        mock.patch.dict(sys.modules),
        mock.patch.object(sys, "argv", [str(script), *arguments]),
        mock.patch.object(sys, "path", [str(script.parent), *sys.path]),
        mock.patch.dict(os.environ, {"STRETTO_DATA": str(data)}),
        contextlib.redirect_stdout(printed),
    ):
        for name in beside:  # they are imported anew, for they may read the environment
            del sys.modules[name]
        runpy.run_path(str(script), run_name="__main__")
    return printed.getvalue().splitlines()
