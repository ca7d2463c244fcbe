"""Random ``MATCH_RECOGNIZE`` clauses over streams: any batches, snapshots between them, against the whole table and what is final."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa

import stretto
from stretto.automata.rows import build
from stretto.column_types import with_fields
from stretto.columns.ordering import SortKey, sorted_rows
from stretto.engines.rows.runner import whole, without_dead_ends
from stretto.errors import DataError, QueryError
from stretto.matching.sql.row_pattern_table import recognize
from stretto.query.predicate import attributes
from stretto.query.row_pattern import BoundRows, Navigation
from tests.cases import rows
from tests.cases.rows import Case
from tests.reference.row_streams import final

__all__ = ["case", "check", "check_final"]


def case(seed: int) -> Case:
    """A clause, its rows, and where their stream is cut; a window takes no stream."""
    return rows.case(seed, windows=False)


def check(one: Case, seed: int) -> int:
    """Check that a stream gives what the table gives, in each partition in the same order. How many rows; −1: it is refused."""
    bound = rows.bound(one)
    rng = random.Random(seed)
    item = bound.parsed.order_by[0]
    first = with_fields(one.rows, bound.read).column(item.column)
    timed = not item.descending and not first.null_count and item.column in ("t", "ts")
    sorts = timed and rng.random() < 0.5
    table = one.rows if sorts else in_order(bound, one.rows)
    try:
        wanted: Any = by_partition(recognize(bound, table), bound)
    except QueryError:
        return -1
    except DataError as error:
        wanted = type(error).__name__
    options: dict[str, Any] = {"capacity": one.capacity, "schema": table.schema}
    if sorts:
        options["disorder"] = math.inf
    try:
        found: Any = by_partition(streamed(one.clause, table, one.cuts, rng, options), bound)
    except QueryError:
        return -1  # strings of several rows that are compared, and the like
    except DataError as error:
        found = type(error).__name__
    assert found == wanted, f"{found} != {wanted}\n{options}\n{one}"
    return 0 if isinstance(wanted, str) else sum(map(len, wanted.values()))


def streamed(
    clause: str, table: pa.Table, cuts: tuple[int, ...], rng: random.Random, options: dict[str, Any]
) -> pa.Table:
    """What a matcher gives in all, with snapshots between some of the batches."""
    matcher = stretto.Matcher(clause, **options)
    given = []
    for begin, end in zip((0, *cuts), (*cuts, table.num_rows), strict=True):
        given.append(matcher.push(table.slice(begin, end - begin)))
        if rng.random() < 0.5:
            matcher = stretto.Matcher(clause, **options).restore(matcher.snapshot())
    return pa.concat_tables([*given, matcher.finish()])


def in_order(bound: BoundRows, table: pa.Table) -> pa.Table:
    """The rows as a stream brings them."""
    read = with_fields(table, bound.read)
    order = [SortKey(whole(read, one.column), one.descending, one.nulls_first) for one in bound.parsed.order_by]
    at, _ = sorted_rows(np.zeros(table.num_rows, np.int64), 1, order)
    return table if at is None else table.take(pa.array(at))


def by_partition(table: pa.Table, bound: BoundRows) -> dict[str, list[str]]:
    """The rows of each partition as texts."""
    found: dict[str, list[str]] = {}
    for row in rows.as_texts(table):
        found.setdefault(repr([row[name] for name in bound.parsed.partition_by]), []).append(repr(row))
    return found


def check_final(one: Case, _seed: int) -> str:
    """Check that after each row of a partition no match was given that is not final, and where nothing reads ahead all that are."""
    bound = rows.bound(one)
    table = in_order(bound, one.rows)
    if bound.parsed.partition_by:
        keys = with_fields(table, bound.read).select(list(bound.parsed.partition_by)).to_pylist()
        same = [row == keys[0] for row in keys]
        table = table.filter(pa.array(same, pa.bool_()))
    measured = (bound.parsed.references[name] for part in bound.measures for name in attributes(part.value))
    if any(isinstance(one, Navigation) and one.shift > 0 for one in measured) or not bound.output.names:
        return "left out"  # measures wait as well; and nothing is shown
    # A way that never ends a match, as ``A ^``, the reference only knows of as many rows as it tries.
    automaton = build(bound.parsed)
    dead = repr(without_dead_ends(automaton)) != repr(automaton)
    exact = True
    try:
        matcher = stretto.Matcher(one.clause, schema=table.schema, capacity=1)
        given = 0
        for size in range(1, table.num_rows + 1):
            given += matcher.push(table.slice(size - 1, 1)).num_rows
            known = final(bound, table.slice(0, size).to_pylist())
            if known is None:
                return "long"
            wanted = sum(shown(bound, word) for _, word in known)
            assert given <= wanted or dead, f"after row {size}: {given} rows of {wanted} that are final\n{one}"
            exact = exact and given == wanted
    except QueryError:
        return "refused"
    except DataError:
        return "error"
    # A condition that reads ahead waits for its row, also where both answers come to the same; so does ``A $ | A`` for the end.
    waits = any(isinstance(one, Navigation) and one.shift > 0 for one in bound.parsed.references.values())
    assert exact or waits or "$" in one.clause or "^" in one.clause, one
    return "exact" if exact else "later"


def shown(bound: BoundRows, word: Any) -> int:
    """How many rows a match has in the result, or a row of none."""
    how = bound.parsed.rows
    if word is None or how.startswith("ONE"):
        return 1
    if not word:
        return int("OMIT" not in how)
    return sum(not excluded for _, excluded in word)
