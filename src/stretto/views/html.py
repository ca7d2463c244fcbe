"""HTML as a tree of elements, whose texts are escaped when it is written."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

from stretto.views.text import lines

#: Colours are those of the reader's page; lines and remarks are a part of them.
_STYLE = (
    ".stretto-view{overflow-x:auto;font-size:13px}"
    ".stretto-view table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".stretto-view th,.stretto-view td{padding:4px 12px 4px 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid rgba(128,128,128,.35)}"
    ".stretto-view small{opacity:.7;font-weight:normal}.stretto-view td.number{text-align:right}"
    ".stretto-view pre{margin:0;white-space:pre-wrap}"
)


class Cell:
    """What stands in a cell: lines, each with the text that is shown where a pointer rests on it."""

    def __init__(self, lines: Sequence[str], titles: Sequence[str] = (), *, number: bool = False) -> None:
        self.lines, self.titles, self.number = lines, titles, number


def element(name: str, text: str = "", children: Iterable[ET.Element] = (), **attributes: str) -> ET.Element:
    """Make an element."""
    made = ET.Element(name, {key.rstrip("_"): lines(value) for key, value in attributes.items()})
    if text:
        made.text = lines(text)
    made.extend(children)
    return made


def framed(*children: ET.Element) -> ET.Element:
    """What a view shows in a notebook, with its style."""
    return element("div", "", [element("style", _STYLE), *children], class_="stretto-view")


def table(heads: Sequence[tuple[str, str]], rows: Iterable[Sequence[Cell]], remark: str = "") -> ET.Element:
    """Make a table: heads are a name and what is said under it."""
    first = [element("th", name, [element("br"), element("small", below)] if below else ()) for name, below in heads]
    body = [element("tr", "", [_cell(one) for one in row]) for row in rows]
    made = element("table", "", [element("thead", "", [element("tr", "", first)]), element("tbody", "", body)])
    return framed(made, element("small", remark)) if remark else framed(made)


def _cell(cell: Cell) -> ET.Element:
    made = element("td", class_="number") if cell.number else element("td")
    for number, line in enumerate(cell.lines):
        title = cell.titles[number] if number < len(cell.titles) else ""
        made.append(element("div", line, title=title) if title else element("div", line))
    return made


def named(pairs: Iterable[tuple[str, str]]) -> ET.Element:
    """Make a table of names with what they stand for; texts of several lines keep their form."""
    rows = [element("tr", "", [element("th", name), element("td", "", [element("pre", text)])]) for name, text in pairs]
    return framed(element("table", "", [element("tbody", "", rows)]))


def as_html(tree: ET.Element) -> str:
    """Write a tree as HTML, or as SVG where it is that."""
    svg = tree.tag == "svg"
    return ET.tostring(tree, encoding="unicode", method="xml" if svg else "html")


def page(title: str, tree: ET.Element) -> str:
    """Write a page of its own, light or dark as the reader's system is."""
    style = ":root{color-scheme:light dark}body{font-family:system-ui,sans-serif;margin:2em}"
    head = element("head", "", [element("meta", charset="utf-8"), element("title", title), element("style", style)])
    return "<!doctype html>\n" + as_html(element("html", "", [head, element("body", "", [tree])], lang="en")) + "\n"
