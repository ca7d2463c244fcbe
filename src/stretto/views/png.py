"""Pictures as PNG, drawn by matplotlib."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from stretto.errors import OptionError
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
