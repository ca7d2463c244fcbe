"""Whether two texts are one query: what they mean is compared, not white space, comments or the case of keywords."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from stretto.errors import SnapshotError, StrettoError

#: What fields of queries hold, in the words of their languages and in the order in which it is told; those that follow from others
#: are not told of.
_WORDS = {
    "strategy": "strategy",
    "items": "SELECT",
    "streams": "FROM",
    "pattern": "pattern",
    "components": "pattern",
    "selection": "strategy",
    "condition": "condition",
    "define": "DEFINE",
    "measures": "MEASURES",
    "partition_by": "PARTITION BY",
    "joined": "key",
    "order_by": "ORDER BY",
    "window": "WITHIN",
    "within": "WITHIN",
    "consume": "CONSUME BY",
    "limit": "LIMIT",
    "keep": "KEEP",
    "asked": "count or choice",
    "returns": "RETURN",
    "non_overlap": "OUTPUT",
    "compressed": "OUTPUT",
    "rows": "ROWS PER MATCH",
    "after": "AFTER MATCH",
    "after_variable": "AFTER MATCH",
    "subsets": "SUBSET",
    "mode": "kind",
    "stages": "sequence",
    "until": "until",
    "pipes": "last part",
    "language": "language",
}

#: Those whose words say no more than their text does.
_LONG = ("DEFINE", "MEASURES", "count or choice")

#: How long the words of what changed may be to be shown.
_SHOWN = 60


def check_same(text: Any, now: Any, parsed: Callable[[str], Any]) -> None:
    """Raise a :class:`SnapshotError` unless a snapshot's text means what a query does, which ``parsed`` reads."""
    if text == now.text:
        return
    told = changes(text, now, parsed)
    if told != []:
        what = ": " + "; ".join(told) if told else ""
        raise SnapshotError(f"the snapshot is of another query{what}\n  snapshot: {text}\n  matcher:  {now.text}")


def options_differ(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Which options are others, in words.

    >>> options_differ({"late": "drop", "output": "events"}, {"late": "side", "output": "events"})
    "late= was 'drop', is 'side'"
    """
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return "; ".join(f"{name}= was {before.get(name)!r}, is {now.get(name)!r}" for name in names)


def changes(text: Any, now: Any, parsed: Callable[[str], Any]) -> list[str] | None:
    """What differs in the meaning of a text and of a query, in words; empty: nothing does; ``None``: nobody knows.

    >>> from stretto.languages import ceql
    >>> query = "select * from S where A ; B within 10 [t]"
    >>> changes(query.upper().replace("[T]", "[t]"), ceql.parse(query), ceql.parse)
    []
    >>> changes("SELECT * FROM S WHERE A ; B WITHIN 20 [t]", ceql.parse(query), ceql.parse)
    ['its WITHIN was 20 [t], is 10 [t]']
    """
    try:
        before = parsed(text) if isinstance(text, str) else None
    except StrettoError:
        before = None
    if before is None:
        return None
    if type(before) is not type(now):
        return ["its language differs"]
    told: dict[str, str] = {}
    for name, old, new in _others(before, now):
        word = getattr(now, "words", {}).get(name) or _WORDS.get(name)
        if word is not None:
            told.setdefault(word, _told(word, old, new))
        elif not told:
            told[""] = "what it asks"
    if len(told) > 1:
        told.pop("", None)
    return list(told.values())


def are_one(one: Any, other: Any) -> bool:
    """Whether two queries, clauses or automata mean the same, however they are written.

    >>> from stretto.languages import ceql
    >>> are_one(ceql.parse("SELECT * FROM S WHERE A;B"), ceql.parse("select * from S where (A ; B) -- in order"))
    True
    """
    return type(one) is type(other) and not any(_others(one, other))


def _others(before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """The fields of two queries of one kind that are not the same, with what they have."""
    order = list(_WORDS)
    for one in sorted(fields(now), key=lambda own: order.index(own.name) if own.name in order else len(order)):
        old, new = getattr(before, one.name), getattr(now, one.name)
        if one.name != "text" and one.compare and not _same(old, new):
            yield one.name, old, new


def _same(old: Any, new: Any) -> bool:
    """Whether two parts of queries are the same, also in the types of their constants."""
    stack = [(old, new)]
    while stack:
        one, other = stack.pop()
        if one is other:
            continue
        if type(one) is not type(other):
            return False
        if is_dataclass(one):
            stack += [(getattr(one, own.name), getattr(other, own.name)) for own in fields(one) if own.compare]
        elif isinstance(one, Mapping):
            if list(one) != list(other):
                return False
            stack += zip(one.values(), other.values(), strict=True)
        elif isinstance(one, tuple | list):
            if len(one) != len(other):
                return False
            stack += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _told(word: str, old: Any, new: Any) -> str:
    shown = [", ".join(_shown(one)) or "none" for one in (old, new)]
    if word in _LONG or shown[0] == shown[1] or max(map(len, shown)) > _SHOWN:
        return f"its {word} differs"
    return f"its {word} was {shown[0]}, is {shown[1]}"


def _shown(value: Any) -> Iterator[str]:
    """A part of a query in words; nothing where it has none."""
    if isinstance(value, Mapping):
        yield from (f"{name} AS {one}" for name, one in value.items())
    elif isinstance(value, tuple):
        for one in value:
            yield from _shown(one)
    elif value is not None:
        bare = is_dataclass(value) and cast(Any, type(value)).__str__ is object.__str__
        yield type(value).__name__ if bare else str(value)
