"""The answer: the nearest misses, each with the reasons for which it is no match, as values, as a table and as text."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from stretto.errors import Span


@dataclass(frozen=True)
class Reason:
    """What is in the way of a match.

    Parameters
    ----------
    kind
        ``condition``, ``window``, ``gap``, ``contiguity``, ``negation``, ``key``, ``strategy``, ``count``, ``anchor``, ``until``; or
        ``absent`` where no event comes that a step waits for, ``late`` where events came too late. Of a given event also ``type``,
        where no step takes it, and ``choice``, where other matches are chosen.
    text
        The constraint, as the query asks it, or for ``absent`` the step.
    found
        What there was in its place, in words.
    rows
        The rows of the input that it names.
    values
        What the condition reads, or the window measures: names with values.
    variables
        The variables that it is about.
    span
        Where it stands in the query's text, where that is known.
    """

    kind: str
    text: str
    found: str
    rows: tuple[int, ...] = ()
    values: tuple[tuple[str, Any], ...] = ()
    variables: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.kind == "absent":
            return f"it waits for {self.text}: {self.found}"
        return f"{self.text}{' does not hold' if self.kind == 'condition' else ''}: {self.found}"


@dataclass(frozen=True)
class NearMiss:
    """Events that would be a match, or the beginning of one, but for some reasons.

    ``events`` are the rows of the input that each variable holds; ``times`` those of the first and the last of them, where a time is
    known.
    """

    reasons: tuple[Reason, ...]
    events: Mapping[str, tuple[int, ...]]
    times: tuple[Any, Any] | None = None
    excess: float = field(default=0.0, repr=False)

    def held(self) -> str:
        """The rows of each variable, in words."""
        return "; ".join(
            f"{name}: row{'s' * (len(rows) > 1)} {', '.join(map(str, rows[:_ROWS]))}{', …' * (len(rows) > _ROWS)}"
            for name, rows in self.events.items()
        )


#: Rows of a variable that are shown.
_ROWS = 8


@dataclass(frozen=True)
class Answer:
    """What :func:`stretto.why_not` answers. ``str()`` says it in words, and a notebook shows it.

    Parameters
    ----------
    query
        The query's text.
    looked_at
        How many events there were, after ``key=`` and ``between=``.
    misses
        The nearest misses, the nearest first.
    match
        The rows of each variable of the first match; ``None``: there is no match.
    notes
        What else there is to know.
    noun
        What the query reads: ``event`` or ``row``.
    event
        The row of the input that is asked about; ``None``: all are. Then ``match`` and ``misses`` are those that hold it.
    under_way
        Of a stream (:meth:`stretto.Matcher.why_not`): how many partial matches are under way. ``misses`` are those of them that got
        furthest, and ``match`` is ``None``, whatever the stream has given. ``None``: the answer is about events.

    >>> import stretto
    >>> answer = stretto.why_not("SELECT * FROM S WHERE A ; B AS b FILTER b[x > 5]", [{"type": "A", "x": 1}, {"type": "B", "x": 4}])
    >>> answer.matches, [(one.kind, one.text, one.rows, one.values) for one in answer.reasons]
    (False, [('condition', 'b[x > 5]', (1,), (('x', 4),))])
    """

    query: str
    looked_at: int
    misses: tuple[NearMiss, ...] = ()
    match: Mapping[str, tuple[int, ...]] | None = None
    notes: tuple[str, ...] = ()
    noun: str = field(default="event", repr=False)
    event: int | None = None
    under_way: int | None = None

    @property
    def matches(self) -> bool:
        """Whether the query has a match among the events, or one that holds the event that is asked about."""
        return self.match is not None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons of the nearest miss: without all of them, there is a match."""
        return self.misses[0].reasons if self.misses else ()

    @cached_property
    def near_misses(self) -> pa.Table:
        """The near misses as a table, one row for each reason.

        ``miss`` (int64, from 1), ``kind``, ``asked`` and ``found`` (string), ``rows`` (list<int64>) that the reason names, and
        ``events`` (list<struct<variable, rows>>) that the miss holds.
        """
        rows: list[dict[str, Any]] = []
        for number, miss in enumerate(self.misses, 1):
            held = [{"variable": name, "rows": list(own)} for name, own in miss.events.items()]
            for one in miss.reasons:
                own = {"miss": number, "kind": one.kind, "asked": one.text, "found": one.found, "rows": list(one.rows)}
                rows.append(own | {"events": held})
        return pa.Table.from_pylist(rows, _SCHEMA)

    def __str__(self) -> str:
        events = f"{self.looked_at:,} {self.noun}{'' if self.looked_at == 1 else 's'}"
        whole = f"No match in {events}" if self.event is None else f"Row {self.event} is in no match"
        nearest = f"The nearest miss{'es' * (len(self.misses) > 1)}"
        if self.under_way is not None:
            whole = f"{self.under_way or 'No'} partial match{'es are' if self.under_way > 1 else ' is'} under way after {events}"
            nearest = "The furthest"
        if self.match is not None:
            held = NearMiss((), self.match).held() or "the first match holds no variable"
            whole = f"It does match in {events}" if self.event is None else f"Row {self.event} is in a match"
            lines = [f"{whole}: {held}"]
        elif not self.misses:
            lines = [f"{whole}."]
        else:
            lines = [f"{whole}. {nearest}:"]
            for number, miss in enumerate(self.misses, 1):
                sign = f"{number}. "
                for one in miss.reasons:
                    lines.append(f"{sign}{one}")
                    sign = " " * len(sign)
                if miss.events:
                    times = "" if miss.times is None else f" ({miss.times[0]} to {miss.times[1]})"
                    lines.append(f"{' ' * len(sign)}{miss.held()}{times}")
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        """The same as a list, for notebooks."""
        first, *_ = str(self).splitlines()
        items = "".join(
            f"<li>{'<br>'.join(html.escape(str(one)) for one in miss.reasons)}<br><small>{html.escape(miss.held())}</small></li>"
            for miss in self.misses
        )
        notes = "".join(f"<p>{html.escape(one)}</p>" for one in self.notes)
        query = f"<pre>{html.escape(self.query)}</pre>"
        return f"<div>{query}<p>{html.escape(first)}</p><ol>{items}</ol>{notes}</div>"


_SCHEMA = pa.schema(
    [
        ("miss", pa.int64()),
        ("kind", pa.string()),
        ("asked", pa.string()),
        ("found", pa.string()),
        ("rows", pa.list_(pa.int64())),
        ("events", pa.list_(pa.struct([("variable", pa.string()), ("rows", pa.list_(pa.int64()))]))),
    ]
)


def nearest_first(misses: Sequence[NearMiss], most: int) -> tuple[NearMiss, ...]:
    """The nearest of some misses: those of fewest reasons first, of these one for each constraint, and the least far first."""
    found: dict[Any, tuple[int, int, float, NearMiss]] = {}
    ranks: dict[Any, int] = {}
    for miss in sorted(misses, key=lambda one: (len(one.reasons), one.excess)):
        asked = tuple(one.text for one in miss.reasons)
        key = asked, tuple(one.rows[:1] for one in miss.reasons)
        if key not in found:
            ranks[asked] = ranks.get(asked, 0) + 1
            found[key] = len(miss.reasons), ranks[asked], miss.excess, miss
    return tuple(one[-1] for one in sorted(found.values(), key=lambda one: one[:3])[:most])
