"""A picture as shapes, which are written as SVG or drawn by matplotlib (``png.py``).

Shapes have a role in place of a colour; each role has a colour on a light and on a dark ground. SVG is an XML tree, so that no text
of a value can become markup.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import NamedTuple

from stretto.views.text import clean, lines

#: Colours of roles on a light and on a dark ground; those of lanes differ in lightness too.
COLOURS = {
    "ground": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "faint": ("#656d76", "#8d96a0"),
    "grid": ("#e4e8ec", "#262c36"),
    "band": ("#f3f5f8", "#161b22"),
    "skipped": ("#9aa4af", "#5b6571"),
    "heat": ("#0550ae", "#58a6ff"),
    "lane0": ("#0969da", "#58a6ff"),
    "lane1": ("#bc4c00", "#f0883e"),
    "lane2": ("#1a7f37", "#3fb950"),
    "lane3": ("#8250df", "#bc8cff"),
    "lane4": ("#bf3989", "#f778ba"),
    "lane5": ("#7d6000", "#d5b11f"),
}
LANES = 6


class Box(NamedTuple):
    """A rectangle; ``opacity`` is how strong its colour is."""

    x: float
    y: float
    width: float
    height: float
    role: str
    title: str = ""
    opacity: float = 1.0


class Line(NamedTuple):
    """A line from one point to another."""

    x: float
    y: float
    to_x: float
    to_y: float
    role: str
    width: float = 1.0


class Dot(NamedTuple):
    """A circle."""

    x: float
    y: float
    radius: float
    role: str
    title: str = ""


class Words(NamedTuple):
    """A text; ``y`` is its base line, ``anchor`` what of it is at ``x``: ``start``, ``middle`` or ``end``."""

    x: float
    y: float
    text: str
    role: str = "ink"
    anchor: str = "start"
    size: float = 11
    bold: bool = False


Shape = Box | Line | Dot | Words


@dataclass
class Scene:
    """Shapes from back to front, in pixels from the upper left corner; ``title`` says what the picture shows."""

    width: float
    height: float
    title: str
    shapes: list[Shape] = field(default_factory=list)

    def svg(self) -> ET.Element:
        """Write the picture as an XML tree."""
        size = {"width": _number(self.width), "height": _number(self.height)}
        root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "class": "stretto",
                **size,
                "viewBox": f"0 0 {size['width']} {size['height']}",
                "style": "max-width:100%;height:auto",  # as wide as a narrow page has room
                "role": "img",
                "font-family": "Helvetica, Arial, 'DejaVu Sans', sans-serif",
            },
        )
        ET.SubElement(root, "title").text = clean(self.title)
        ET.SubElement(root, "style").text = _style()
        ET.SubElement(root, "rect", {"class": "ground", **size, "rx": "6", "fill": "currentColor"})
        for shape in self.shapes:
            _draw(root, shape)
        return root


def _draw(root: ET.Element, shape: Shape) -> None:
    """Add a shape to the tree."""
    if isinstance(shape, Line):
        places = {"x1": shape.x, "y1": shape.y, "x2": shape.to_x, "y2": shape.to_y, "stroke-width": shape.width}
        made = ET.SubElement(root, "line", {"class": shape.role, **_numbers(places), "stroke": "currentColor"})
    elif isinstance(shape, Words):
        own = {"class": shape.role, **_numbers({"x": shape.x, "y": shape.y, "font-size": shape.size})}
        own |= {"fill": "currentColor"} | ({"text-anchor": shape.anchor} if shape.anchor != "start" else {})
        own |= {"font-weight": "bold"} if shape.bold else {}
        made = ET.SubElement(root, "text", own)
        made.text = clean(shape.text)
    elif isinstance(shape, Dot):
        places = {"cx": shape.x, "cy": shape.y, "r": shape.radius}
        made = ET.SubElement(root, "circle", {"class": shape.role, **_numbers(places), "fill": "currentColor"})
    else:
        places = {"x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height}
        own = {"class": shape.role, **_numbers(places), "fill": "currentColor"}
        own |= {"fill-opacity": _number(shape.opacity)} if shape.opacity < 1 else {}
        made = ET.SubElement(root, "rect", own)
    if isinstance(shape, Dot | Box) and shape.title:
        ET.SubElement(made, "title").text = lines(shape.title)


def _numbers(places: dict[str, float]) -> dict[str, str]:
    return {name: _number(value) for name, value in places.items()}


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _style() -> str:
    """The colours of roles; the dark ones where the reader's system asks for them."""
    light, dark = (
        " ".join(f".stretto .{role}{{color:{colours[which]}}}" for role, colours in COLOURS.items()) for which in (0, 1)
    )
    return f"{light} @media (prefers-color-scheme: dark){{{dark}}}"
