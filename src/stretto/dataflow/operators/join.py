"""Join: pairs of rows that agree on their keys, where both lifetimes hold (FFP paper, sections 2 and 5.2: *synopses*).

Each side is kept. A new row meets what the other side holds: its lifetime is cut to the common one, weights multiply, and the
level is the least above both. Where the other side cannot change before its punctuation, what this side holds ended by then is
forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stretto._jit import DONE, OUTPUT_FULL, jit
from stretto.dataflow.json_values import read_pairs, written_text
from stretto.dataflow.node import Binary, Groups, Node, On, Pairs, Relation, S, keys_of
from stretto.dataflow.operators.operator import Operator, places
from stretto.dataflow.operators.where import Where
from stretto.dataflow.run.index import Chains, Index
from stretto.dataflow.run.levels import joined
from stretto.dataflow.run.rows import LEVEL, PAYLOAD, VE, VS, WEIGHT, Rows, counted, empty, hashed, same
from stretto.dataflow.run.values import Strings
from stretto.errors import OptionError
from stretto.languages.relational import read_condition
from stretto.query import predicate as p
from stretto.times import FOREVER

CAPACITY = 1 << 15  #: rows of the output buffer


def join(stream: S, other: Relation, on: On = (), *, where: str | None = None, suffix: str = "_right") -> S:
    """Pair the rows that agree on the keys and satisfy a condition; a pair lives where both of them live.

    Parameters
    ----------
    other
        The right side.
    on
        A column that both have, a list of them, or ``{left: right}``. A column of one name in ``on`` occurs once in the result.
    where
        A condition over the result's columns.
    suffix
        What a column of the right gets whose name the left has, too.

    Raises
    ------
    OptionError, QueryError
        A column is unknown, keys have different kinds, two columns have one name, or the condition is wrong.

    Examples
    --------
    >>> from stretto.dataflow import stream
    >>> links = stream("links", {"src": str, "dst": str})
    >>> links.join(links, on={"dst": "src"}, where="src != dst_right")
    Stream(src: string, dst: string, src_right: string, dst_right: string)
    """
    keys = keys_of(stream, other, on)
    shared = {right for left, right in keys if left == right}
    row = dict(stream.node.schema)
    names = []
    for name, kind in other.schema.items():
        if name in shared:
            continue
        called = name + suffix if name in row else name
        if called in row:
            raise OptionError(f"two columns of the join are named '{called}': rename() one, or choose another suffix")
        row[called] = kind
        names.append((name, called))
    condition = read_condition(where, row) if where is not None else None
    return stream.of(Join(row, stream.node, other.node, keys, tuple(names), condition))


@dataclass(frozen=True, eq=False)
class Join(Binary):
    """Pairs of rows that agree on the keys and satisfy a condition, where both lifetimes hold."""

    names: Pairs  #: columns taken over from the right, and what they are called
    where: p.Predicate | None = None  #: over the columns of the result

    @property
    def label(self) -> str:
        return f"Join {self.agreement or 'TRUE'}" + (f" AND {self.where}" if self.where is not None else "")

    def origins(self, column: str) -> list[tuple[Node, str]]:
        if column in self.left.schema:
            return [(self.left, column)]
        return [(self.right, next(own for own, called in self.names if called == column))]

    @property
    def decides(self) -> list[tuple[Node, str]]:
        keys = [one for left, right in self.on for one in ((self.left, left), (self.right, right))]
        return keys if self.where is None else [*keys, *((self, name) for name in p.attributes(self.where))]

    def operator(self, strings: Strings) -> Operator:
        widths = (PAYLOAD + len(self.left.schema), PAYLOAD + len(self.right.schema))
        return Joiner(
            self.label, widths, key_places(self), places(self.right.schema, [name for name, _ in self.names], PAYLOAD)
        )

    @property
    def behind(self) -> Where | None:
        return None if self.where is None else Where(self.schema, self, self.where)

    def written(self) -> dict[str, Any]:
        where = None if self.where is None else written_text(self.where, self, self.schema)
        return {"on": [list(pair) for pair in self.on], "names": [list(pair) for pair in self.names], "where": where}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Join:
        left, right = inputs
        on = read_pairs(written["on"], left.schema, right.schema)
        names = tuple((name, called) for name, called in written["names"])
        row = {**left.schema, **{called: right.schema[name] for name, called in names}}
        if len(row) < len(left.schema) + len(names):
            raise ValueError("two columns of a join have one name")
        where = None if written["where"] is None else read_condition(written["where"], row)
        return cls(row, left, right, on, names, where)

    def keyed(self, groups: Groups) -> Node:
        left, right = groups.made(self.left), groups.made(self.right)
        row = {**left.schema, **{called: right.schema[name] for name, called in self.names}}
        if not groups.has_key(self.right):
            return Join(row, left, right, self.on, self.names, self.where)
        if groups.has_key(self.left):
            return Join(row, left, right, (*self.on, *groups.pairs), self.names, self.where)
        return Join({**row, **groups.keys}, left, right, self.on, (*self.names, *groups.pairs), self.where)


def key_places(node: Binary) -> tuple[Rows, Rows]:
    """Where the keys lie in the rows of the left and of the right."""
    return (
        places(node.left.schema, [left for left, _ in node.on], PAYLOAD),
        places(node.right.schema, [right for _, right in node.on], PAYLOAD),
    )


class Joiner(Operator):
    """The join of two inputs.

    Parameters
    ----------
    label
        What errors call it.
    widths
        Words of the rows of the left and the right.
    keys
        The words that must be equal: of the left, of the right.
    taken
        The words of the right that the result has behind all of the left.
    """

    def __init__(self, label: str, widths: tuple[int, int], keys: tuple[Rows, Rows], taken: Rows) -> None:
        super().__init__(label, 2, widths[0] + len(taken))
        self.sides = tuple(Index(width, own) for width, own in zip(widths, keys, strict=True))
        self.synopses = dict(zip(("left", "right"), self.sides, strict=True))
        self.keys = keys
        self.taken = taken
        self._out = empty(self.width)

    def receive(self, port: int, rows: Rows) -> Rows:
        """The pairs of new rows with those that the other side holds."""
        own, other = self.sides[port], self.sides[1 - port]
        found = []
        if len(other):
            row, at = 0, -1
            chains = other.chains
            if not len(self._out):
                self._out = np.zeros((CAPACITY, self.width), np.int64)
            while True:
                status, row, at, count = _probe(rows, row, at, own.keys, chains, port, self.taken, self._out)
                found.append(counted(self._out[:count].copy()))
                if status == DONE:
                    break
        if self.definite[1 - port] < FOREVER:  # else nothing can meet them
            own.append(rows)
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else empty(self.width)

    def forget(self) -> None:
        for port in (0, 1):
            self.sides[port].sweep(self.definite[1 - port])


@jit
def _probe(
    rows: Rows,
    row: int,
    at: int,
    own_keys: Rows,
    other: Chains,
    port: int,
    taken: Rows,
    out: Rows,
) -> tuple[int, int, int, int]:
    """Write the pairs of rows from ``row`` on, where the search goes on at ``at`` (−1: from the head of its chain).

    Cost: one hash a row and one comparison for each row of its bucket, then the words of each pair. Returns a status, where to
    go on, and how many pairs were written.
    """
    held = other.rows
    mask = other.heads.size - 1
    count = 0
    while row < len(rows):
        if at < 0:
            at = other.heads[hashed(rows, row, own_keys) & mask]
        while at != 0:
            if (
                rows[row, VS] < held[at, VE]
                and held[at, VS] < rows[row, VE]
                and same(rows, row, own_keys, held, at, other.keys)
            ):
                if count == len(out):
                    return OUTPUT_FULL, row, at, count
                if port == 0:
                    _pair(rows, row, held, at, taken, out, count)
                else:
                    _pair(held, at, rows, row, taken, out, count)
                out[count, LEVEL] = joined(rows[row, LEVEL], held[at, LEVEL], other.bits)
                count += 1
            at = other.following[at]
        row += 1
        at = -1
    return DONE, row, at, count


@jit
def _pair(left: Rows, i: int, right: Rows, j: int, taken: Rows, out: Rows, to: int) -> None:
    """A row of the result, but for its level."""
    out[to, VS] = max(left[i, VS], right[j, VS])
    out[to, VE] = min(left[i, VE], right[j, VE])
    out[to, WEIGHT] = left[i, WEIGHT] * right[j, WEIGHT]
    width = left.shape[1]
    for word in range(PAYLOAD, width):
        out[to, word] = left[i, word]
    for word in range(taken.size):
        out[to, width + word] = right[j, taken[word]]
