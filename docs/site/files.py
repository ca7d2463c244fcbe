"""What is in each file of the package, as its first line says it: ``:::{files}``."""

from __future__ import annotations

import ast
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import stretto

ROOT = Path(stretto.__file__).parent


def folders() -> dict[str, dict[str, str]]:
    """For each folder the files with their first lines, but for those that say nothing."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(ROOT.rglob("*.py"), key=lambda path: (path.parent, path.name)):
        told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if told:
            folder = found.setdefault(f"{path.parent.relative_to(ROOT.parent).as_posix()}/", {})
            folder[path.name] = " ".join(told.split("\n\n")[0].replace("``", "").split())
    return found


class Files(SphinxDirective):
    """A section for each folder: its files, and what they say of themselves."""

    def run(self) -> list[nodes.Node]:
        return [self._section(name, files) for name, files in folders().items()]

    def _section(self, name: str, files: dict[str, str]) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(name)])
        section += nodes.title("", name)
        described = nodes.definition_list()
        for file, told in files.items():
            described += nodes.definition_list_item(
                "", nodes.term("", "", nodes.literal(text=file)), nodes.definition("", nodes.paragraph("", told))
            )
        section += described
        return section


def setup(app: object) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("files", Files)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
