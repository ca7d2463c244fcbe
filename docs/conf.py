"""The documentation as a site: ``make site``."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "site"))

project = "stretto"
author = "The stretto authors"
version = release = version_of("stretto")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "railroads",
    "commands",
    "files",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
#: Pages show events, times and queries side by side; a block of a language that no lexer knows is shown as it is.
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "text"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
napoleon_numpy_docstring = True
napoleon_google_docstring = False
# Docstrings are written to be read in Python: `x` there is plain text.
default_role = None

html_theme = "furo"
html_title = "stretto"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"


#: A link to a folder of the repository, or to the page about one, which is no page of the site.
_FOLDER = re.compile(r"\[[^\]]+\]\(\.\./([\w/]+?)(?:/README\.md)?\)")


def _name_folders(app: Any, docname: str, source: list[str]) -> None:
    """Say where a folder of the repository is, as the site has no page of it."""
    source[0] = _FOLDER.sub(r"`\1` in the repository", source[0])


def _keep_colons(app: Any, what: str, name: str, it: object, options: object, lines: list[str]) -> None:
    """Napoleon takes what stands before the first colon of a property's docstring for its type."""
    if what in ("attribute", "data", "property") and lines:
        lines[0] = lines[0].replace(": ", " – ", 1)


def setup(app: Any) -> None:
    """Tell Sphinx, before Napoleon reads docstrings."""
    app.connect("source-read", _name_folders)
    app.connect("autodoc-process-docstring", _keep_colons, priority=400)
