"""The files of the page and of the notebook's widget, which ``make studio`` builds from ``studio/`` and the repository keeps."""

from __future__ import annotations

from pathlib import Path

from stretto.errors import OptionError

#: Where they are.
STATIC = Path(__file__).parent / "static"

#: What the page loads beside itself.
FILES = ("studio.js", "studio.css", "views.js", "views.css")


def missing() -> list[str]:
    """The files of the page that are not there."""
    return [name for name in ("index.html", *FILES) if not (STATIC / name).is_file()]


def require_page() -> None:
    """Raise an :class:`OptionError` where files of the page are missing."""
    if names := missing():
        raise OptionError(
            f"this installation lacks files of the studio's page: {', '.join(names)}; install stretto anew"
        )
