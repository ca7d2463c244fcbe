"""The files of the page and of the notebook's widget, which ``make studio`` builds."""

from __future__ import annotations

from pathlib import Path

from stretto.errors import OptionError

#: Where they are.
STATIC = Path(__file__).parent / "static"


def require_page() -> None:
    """Raise an :class:`OptionError` where the files were not built."""
    if not (STATIC / "index.html").is_file():
        raise OptionError("this installation has no page: in a checkout, 'make studio' builds it")
