"""What a view is to its reader: text, something for a notebook, a file.

Pictures as PNG, drawn by matplotlib.
"""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.views.html import as_html, page
from stretto.views.scene import COLOURS, Box, Dot, Line, Scene, Shape
from stretto.views.text import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_DPI = 192  # two pixels for one of the scene
_POINTS = 72 / 96  # of one pixel of the scene


def png(scene: Scene, *, dark: bool = False) -> bytes:
    """Draw a scene on a light or a dark ground.

    Raises
    ------
    OptionError
        Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise OptionError("PNG needs matplotlib: pip install 'stretto[draw]'; .svg and .html need nothing") from error
    colours = {role: pair[dark] for role, pair in COLOURS.items()}
    figure = Figure(figsize=(scene.width / 96, scene.height / 96), dpi=_DPI, facecolor=colours["ground"])
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    for order, shape in enumerate(scene.shapes):
        _draw(axes, shape, colours, order)
    out = io.BytesIO()
    canvas.print_png(out)
    return out.getvalue()


def _draw(axes: Axes, shape: Shape, colours: dict[str, str], order: int) -> None:
    from matplotlib.patches import Circle, Rectangle

    if isinstance(shape, Line):
        ends = [shape.x, shape.to_x], [shape.y, shape.to_y]
        axes.plot(*ends, color=colours[shape.role], linewidth=shape.width * _POINTS, zorder=order)
    elif isinstance(shape, Box):
        corner = shape.x, shape.y
        box = Rectangle(corner, shape.width, shape.height, color=colours[shape.role], linewidth=0, zorder=order)
        box.set_alpha(shape.opacity)
        axes.add_patch(box)
    elif isinstance(shape, Dot):
        circle = Circle((shape.x, shape.y), shape.radius, color=colours[shape.role], linewidth=0, zorder=order)
        axes.add_patch(circle)
    else:
        sides = {"start": "left", "middle": "center", "end": "right"}
        axes.text(
            shape.x,
            shape.y,
            clean(shape.text),
            color=colours[shape.role],
            fontsize=shape.size * _POINTS,
            fontweight="bold" if shape.bold else "normal",
            ha=sides[shape.anchor],
            va="baseline",
            parse_math=False,
            zorder=order,
        )


@check_arguments
@dataclass(frozen=True)
class View:
    """Something to look at: prints as text, shows itself in notebooks, and saves itself as a file.

    >>> import stretto
    >>> matches = stretto.match("SELECT * FROM S WHERE A; B", [{"type": "A", "x": 5}, {"type": "B", "x": 7}])
    >>> print(stretto.show(matches, width=40))
    start  end  positions  A x  B x
        0    1  0, 1       5    7
    1 row
    """

    text: str
    make: Callable[[], ET.Element]  #: gives the view as a tree of HTML or SVG
    scene: Scene | None = None  #: the shapes, where it is a picture

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return as_html(self.make())

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        bundle = {"text/plain": self.text, "text/html": self._repr_html_()}
        return bundle | ({} if self.scene is None else {"image/svg+xml": self.svg()})

    def svg(self) -> str:
        """Write a picture as SVG, with the colours of a light and of a dark ground.

        Raises
        ------
        OptionError
            It is a table.
        """
        if self.scene is None:
            raise OptionError("a table is no picture: print it, or save it as .html or .txt")
        return ET.tostring(self.scene.svg(), encoding="unicode")

    def png(self, *, dark: bool = False) -> bytes:
        """Draw a picture as PNG, on a light or a dark ground.

        Raises
        ------
        OptionError
            It is a table, or matplotlib is not installed (``pip install 'stretto[draw]'``).
        """
        if self.scene is None:
            raise OptionError("a table is no picture: print it, or save it as .html or .txt")
        return png(self.scene, dark=dark)

    def save(self, path: str | Path) -> None:
        """Write ``.html`` or ``.txt``, and of a picture ``.svg`` or ``.png``, by the file's ending.

        Raises
        ------
        OptionError
            The ending is another one, or what draws it is not installed.
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".svg":
            path.write_text(self.svg(), encoding="utf-8")
        elif kind == ".png":
            path.write_bytes(self.png())
        elif kind == ".html":
            path.write_text(page(path.stem if self.scene is None else self.scene.title, self.make()), encoding="utf-8")
        elif kind == ".txt":
            path.write_text(self.text + "\n", encoding="utf-8")
        else:
            endings = ".html or .txt" if self.scene is None else ".svg, .png, .html or .txt"
            raise OptionError(f"cannot save to '{path.name}': end it in {endings}")
