"""The views of the studio as a widget of notebooks; made with anywidget, which Jupyter, VS Code, Colab and marimo show."""

from __future__ import annotations

from typing import Any

import anywidget
import pyarrow as pa
import traitlets

from stretto.studio.page import STATIC
from stretto.studio.workbench import Workbench

#: Matches of a page.
PAGE = 100


class Views(anywidget.AnyWidget):  # type: ignore[misc] # the package's types are not needed to develop this one
    """The automaton and the matches of a query, as :func:`stretto.studio.widget` makes it.

    ``shown`` is what is drawn, a value of JSON; ``offset`` the first match of the page that is wanted, which the buttons set.
    """

    shown = traitlets.Dict(help="One page of matches, and what it takes to draw them.").tag(sync=True)
    offset = traitlets.Int(0, help="The number of the first match that is wanted.").tag(sync=True)

    def __init__(self, bench: Workbench, text: str) -> None:
        self._bench = bench
        found = bench.run(text)
        opened = bench.columns()
        time = bench.roles.time
        kind = None if time is None else bench.events.schema.field(time).type
        self._whole = {
            "dot": bench.draw(text)["dot"],
            "columns": [{"name": one["name"]} for one in opened["columns"]],
            "type": opened["roles"]["type"],
            "temporal": kind is not None and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)),
            "variables": found["variables"],
            "count": found["count"],
            "more": found["more"],
            "page": PAGE,
        }
        self._esm, self._css = ((STATIC / name).read_text(encoding="utf-8") for name in ("views.js", "views.css"))
        super().__init__(shown=self._page(0))
        self.observe(self._turn, "offset")

    def _turn(self, change: Any) -> None:
        self.shown = self._page(change["new"])

    def _page(self, offset: int) -> dict[str, Any]:
        return self._whole | self._bench.page(offset, PAGE)
