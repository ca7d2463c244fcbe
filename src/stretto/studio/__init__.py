"""The studio: a page in the browser to write queries, run them over a sample of events, and look at what they find.

The page asks the server, which only this machine reaches; the server asks worker processes, each of which has a workbench over the
events (``docs/studio.md``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.errors import OptionError
from stretto.events import as_table
from stretto.matching.compiled import Query
from stretto.studio.page import require_page
from stretto.studio.workbench import ROWS, Roles, Workbench

if TYPE_CHECKING:
    from stretto.studio.notebook import Views

__all__ = ["widget"]


def widget(
    query: str | Query,
    events: Any,
    *,
    type: str | None = "type",
    time: str | None = None,
    stream: str | None = None,
    time_unit: str | None = None,
    language: str | None = None,
    rows: int = ROWS,
) -> Views:
    """Run a query, and show its automaton and its matches in a notebook: as a table, and on the axis of time.

    A click on a match marks its way through the automaton and lets it fill the axis; a click on a dot shows the event.

    Parameters
    ----------
    query
        A query in CEQL, SASE+ or EQL: its text, or a compiled :class:`~stretto.Query`.
    events
        A table, or the path of a file. The first ``rows`` of them are taken, and sorted by ``time``.
    type, time, stream, time_unit, language
        As :func:`stretto.match` has them.
    rows
        How many events are held.

    Returns
    -------
    Views
        An :class:`anywidget.AnyWidget`, which the notebook shows. The first 10,000 matches are kept; its trait ``shown`` has a page
        of 100, and setting ``offset`` turns to another one.

    Raises
    ------
    OptionError
        The package anywidget is not there (``pip install 'stretto[notebook]'``), or the page was not built.
    QueryError, DataError
        As of :func:`stretto.match`.
    LimitError
        The automaton is too large to be drawn.

    Examples
    --------
    >>> import stretto
    >>> events = [{"type": "A", "t": 1}, {"type": "B", "t": 2}]
    >>> stretto.studio.widget("SELECT * FROM S WHERE A AS a; B AS b", events, time="t")  # doctest: +SKIP
    """
    require_page()
    try:
        from stretto.studio.notebook import Views
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs the package {error.name}: pip install 'stretto[notebook]'") from error
    if isinstance(query, Query):
        language = query.language if language is None else language
        type, time, stream, time_unit = query.roles(type, time, stream, time_unit)
    roles = Roles(type or None, time, stream, time_unit, language)
    if isinstance(events, str | Path):
        bench = Workbench.of_files(str(events), roles, rows)
    else:
        table = as_table(events)
        bench = Workbench(table.slice(0, rows), roles, more=table.num_rows > rows)
    return Views(bench, query if isinstance(query, str) else query.text)
