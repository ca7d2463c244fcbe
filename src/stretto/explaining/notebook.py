"""What a query, an automaton or something that runs shows in a notebook: its parts, its explanation folded, its picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stretto.errors import StrettoError
from stretto.explaining.dot import Drawing

#: Characters of a graph that is drawn unasked; Graphviz takes long for larger ones.
_MOST = 20_000


def html(
    parts: Iterable[tuple[str, str]],
    explain: Callable[[], str] | None = None,
    draw: Callable[[], Drawing] | None = None,
) -> str:
    """Write parts as a table of names and texts; what cannot be explained or drawn is left out, as a look must not fail."""
    from stretto.views.html import as_html, element, framed, named  # when something is shown

    written = as_html(named(parts))
    if explain is not None and (text := _tried(explain)):
        summary = element("summary", "how it runs")
        written += as_html(framed(element("details", "", [summary, element("pre", text)])))
    return written if draw is None else written + picture(draw)


def picture(draw: Callable[[], Drawing]) -> str:
    """A drawing as SVG inside of HTML; nothing where it cannot be drawn, or is too large to be drawn unasked."""
    drawing = _tried(draw)
    if drawing is None or len(drawing.source) > _MOST or not Drawing.can_draw():
        return ""
    svg: str = drawing.svg()
    return svg[svg.index("<svg") :]


def running(stats: Mapping[str, Any], **more: Any) -> list[tuple[str, str]]:
    """Write counts of what runs, and more that is not ``None``."""
    found = [(name, str(value)) for name, value in more.items() if value is not None]
    counts = {name: value for name, value in stats.items() if isinstance(value, int) and not isinstance(value, bool)}
    found.append(("counts", _joined(counts)))
    return found + [(name, _joined(value)) for name, value in stats.items() if isinstance(value, dict) and value]


def _joined(counts: Mapping[str, Any]) -> str:
    return "\n".join(f"{name.replace('_', ' ')}: {value:,}" for name, value in counts.items() if isinstance(value, int))


def _tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StrettoError:
        return None
