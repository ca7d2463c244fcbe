"""What a query asks of all its matches together, as text."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.query.query import AnyQuery
from stretto.query.totals import Asked, Best, Extent, Sample, Total, Totals
from stretto.query.windows import Window


def asked_sections(query: AnyQuery) -> list[tuple[str, str]]:
    """Say what is counted, added up or chosen, and of which matches; nothing where matches are listed."""
    asked = query.asked
    if asked is None:
        return []
    return [("output", _output(asked)), ("rows", _rows(asked, query))]


def _output(asked: Asked) -> str:
    match asked:
        case Totals(items, _, distinct):
            lines = [f"{one.name}: {one}" for one in items]
            if distinct is not None:
                lines.append(f"matches are told apart by the events of {', '.join(distinct)}")
            return "\n".join(lines)
        case Best(score, factors, descending, most):
            which = "greatest" if descending else "least"
            matches = "the match" if most == 1 else f"the {most} matches"
            ties = "of equal ones the later start, the later end, the latest events"
            return f"{matches} with the {which} {_score(score, factors)}; {ties}"
        case Sample(most, seed):
            return f"{most} matches drawn at random, each set of so many as likely as any other (seed {seed})"


def _score(score: Sequence[Total], factors: Sequence[object]) -> str:
    terms = [str(one) if factor == 1 else f"{factor} * {one}" for one, factor in zip(score, factors, strict=True)]
    return " + ".join(terms).replace("+ -1 * ", "- ").replace("+ -", "- ")


def _rows(asked: Asked, query: AnyQuery) -> str:
    """Of which matches a row is made, or a choice."""
    scope = asked.scope
    keys = scope.group_by
    names = query.partition_by if keys is None else tuple(map(str, keys))
    by = f", by {', '.join(names)}" if names else ""
    one = "one row" if isinstance(asked, Totals) else "chosen"
    of = "for" if isinstance(asked, Totals) else "of"
    match scope.extent:
        case Extent.TABLE:
            return f"{one} {of} all matches{by}; of a stream when it ends"
        case Extent.EVENT:
            return f"{one} {of} the matches that an event completes{by}"
    assert scope.slide is not None
    assert query.window is not None
    size, slide = _size(query.window), _size(scope.slide)
    return f"{one} {of} the matches wholly inside a window of {size}, of which one begins every {slide}{by}"


def _size(window: Window) -> str:
    if window.events is not None:
        return f"{window.events} events"
    return f"{window.seconds:f} s" if window.seconds is not None else str(window.number)
