"""The CEQL parser (see :mod:`stretto.languages.expressions.reading`).

Texts that differ in constants only are read once: what was read before is taken, with the constants of the text at hand.

Two texts have one *shape* if they are the same but for the letters of strings in single quotes and the digits of numbers, one for
one. So all places in them are the same, and so is what the parser makes of them, but for the values of constants. Of these only such
are put in that are compared with an attribute; all others (windows, counts, values of functions, …) must be the same as well.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from stretto.languages.expressions.reading import SHARED, TOTALS, Language, mistakes_of
from stretto.languages.expressions.tokens import exact, unquoted
from stretto.query import algebra as a
from stretto.query import predicate as p
from stretto.query.query import ParsedQuery

if TYPE_CHECKING:
    from stretto.languages.ceql.transformer import Draft


#: What stands in a text: strings and numbers, among what is neither. Terminals of the same forms are in ``predicates.lark``.
_LITERALS = re.compile(
    r"""--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|"[^"]*+"|`[^`]*+`|[’‘][^’]*+’|[^\W\d]\w*+"""
    r"""|(?P<string>'[^']*+(?:''[^']*+)*+')|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)"""
)
_DIGIT = re.compile("[0-9]")

#: So many are kept.
_MOST = 512


class Shape(NamedTuple):
    """A text without its constants, and these: where each begins, and what it is."""

    text: str
    literals: dict[int, str]


def shape_of(text: str) -> Shape:
    """The shape of a text.

    >>> shape_of("x[name='ABC' AND v > 1.5] WITHIN 10 EVENTS").text
    "x[name='???' AND v > 0.0] WITHIN 00 EVENTS"
    """
    found: dict[int, str] = {}

    def without(match: re.Match[str]) -> str:
        if match["string"]:
            found[match.start()] = match[0]
            return f"'{'?' * (len(match[0]) - 2)}'"
        if match["number"]:
            found[match.start()] = match[0]
            return _DIGIT.sub("0", match[0])
        return match[0]

    return Shape(_LITERALS.sub(without, text), found)


class Known:
    """The queries that were read last, by shape."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By shape: where the constants begin that may be others.
        self._free: OrderedDict[str, frozenset[int]] = OrderedDict()
        #: By shape and the constants that may not: the query.
        self._queries: OrderedDict[tuple[str, tuple[str, ...]], ParsedQuery] = OrderedDict()

    def find(self, shape: Shape, text: str) -> ParsedQuery | None:
        """The query of a text, if one of its shape is known."""
        with self._lock:
            free = self._free.get(shape.text)
            query = None if free is None else self._queries.get(_key(shape, free))
        return None if query is None or free is None else _with_constants(query, text, shape, free)

    def add(self, shape: Shape, query: ParsedQuery) -> None:
        """Remember the query of a text."""
        comparisons = (
            one for node in a.walk(query.pattern) if isinstance(node, a.Filter) for one in _comparisons(node.predicate)
        )
        free = frozenset(start for one in comparisons for start in _compared(one, shape))
        with self._lock:
            if self._free.setdefault(shape.text, free) == free:
                self._queries[_key(shape, free)] = query
            for kept in (self._free, self._queries):
                while len(kept) > _MOST:
                    kept.popitem(last=False)


def _compared(node: p.Comparison, shape: Shape) -> Iterator[int]:
    """Where the constants begin that a comparison compares with an attribute; durations and negative numbers are none of the text."""
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(one, p.Constant) and one.span is not None and isinstance(other, p.Attribute):
            written = shape.literals.get(one.span.start)
            if written is not None and len(written) == one.span.end - one.span.start:
                yield one.span.start


def _key(shape: Shape, free: frozenset[int]) -> tuple[str, tuple[str, ...]]:
    return shape.text, tuple(text for at, text in shape.literals.items() if at not in free)


def _comparisons(node: p.Predicate) -> Iterator[p.Comparison]:
    """The comparisons that a condition joins."""
    if isinstance(node, p.Comparison):
        yield node
    elif isinstance(node, p.And | p.Or):
        for part in node.parts:
            yield from _comparisons(part)
    elif isinstance(node, p.Not):
        yield from _comparisons(node.part)


def _with_constants(query: ParsedQuery, text: str, shape: Shape, free: frozenset[int]) -> ParsedQuery:
    """A query with the constants of another text of its shape."""

    def value(side: p.Operand) -> p.Operand:
        if not isinstance(side, p.Constant) or side.span is None or side.span.start not in free:
            return side
        written = shape.literals[side.span.start]
        return p.Constant(unquoted(written) if written[0] == "'" else exact(written), side.span)

    def changed(node: p.Predicate) -> p.Predicate:
        if isinstance(node, p.Comparison):
            return p.Comparison(node.op, value(node.left), value(node.right), node.span)
        return p.rebuilt(node, changed) if isinstance(node, p.And | p.Or | p.Not) else node

    def visit(node: a.Pattern) -> a.Pattern:
        if not isinstance(node, a.Filter):
            return node
        return a.Filter(node.body, node.variable, changed(node.predicate), node.span)

    return replace(query, text=text, pattern=a.fold(query.pattern, visit))


CEQL = Language("stretto.languages.ceql", {"query": "SELECT * FROM stream WHERE formula"}, (*SHARED, TOTALS))


def parse(text: str) -> ParsedQuery:
    """Read a CEQL query.

    Raises
    ------
    QueryError
        With the place, what was expected there and, where there is one, a suggestion.

    >>> parse("SELECT a FROM S WHERE A AS a; B").items[0].variable
    'a'
    """
    from stretto.languages.ceql.lowering import lower

    with mistakes_of(text):
        shape = shape_of(text)
        query = _KNOWN.find(shape, text)
        if query is None:
            draft: Draft = CEQL.read(text)
            query = lower(text, draft.selection, draft.streams, draft.formula, draft.clauses)
            _KNOWN.add(shape, query)
        return query


#: Sets have thousands of queries that are much alike.
_KNOWN = Known()
