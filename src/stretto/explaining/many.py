"""A warning of queries with exponentially many matches."""

from __future__ import annotations

from collections.abc import Set

from stretto.query.algebra import As, Atom, Pattern, Plus, Repeat, children, walk
from stretto.query.query import ParsedQuery, Strategy
from stretto.query.sase import SaseQuery, Selection


def warning(query: ParsedQuery | SaseQuery) -> str | None:
    """Say what may make 2ⁿ matches of n events, and the ways out; ``None`` where nothing does.

    An iteration that skips does, where every choice of its events is a match of its own.
    """
    if (
        query.asked is not None
        or query.limit is not None
        or (query.keep is not None and not isinstance(query, SaseQuery))
    ):
        return None
    if isinstance(query, SaseQuery):
        many = query.selection is Selection.ANY and not query.non_overlap and not query.compressed
        loops = [str(one) for one in query.positive if one.kleene] if many else []
        ways = "LIMIT n or skip_till_next_match has fewer"
        counts = "output='summary' counts them, stretto.match_sets() hands them over unlisted"
    else:
        chosen = None if query.items is None else {item.variable for item in query.items}
        loops = _loops(query.pattern, chosen) if query.strategy is Strategy.ALL else []
        ways = "LIMIT n, or SELECT NEXT, LAST or MAX, has fewer"
        counts = "output='summary' counts them"
    if not loops:
        return None
    return f"{', '.join(loops)}: every choice of its events is a match, 2ⁿ for n events that fit within the window\n{ways}; {counts}"


def _loops(pattern: Pattern, chosen: Set[str] | None) -> list[str]:
    """The iterations that skip and whose events are selected; ``chosen``: the selected variables, ``None``: all."""
    found: dict[str, None] = {}
    stack: list[tuple[Pattern, frozenset[str]]] = [(pattern, frozenset())]
    while stack:
        node, names = stack.pop()
        if isinstance(node, As):
            names |= {node.variable}
        if isinstance(node, Plus | Repeat) and not node.contiguous and getattr(node, "most", None) is None:
            inside = {one.variable for one in walk(node) if isinstance(one, As)}
            inside |= {one.type for one in walk(node) if isinstance(one, Atom)}
            if chosen is None or (names | inside) & chosen:
                found[str(node)] = None
                continue
        stack.extend((child, names) for child in reversed(children(node)))
    return list(found)
