"""``MATCH_RECOGNIZE`` over a whole table: sorted, matched, and laid out as the clause says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.column_types import with_fields
from stretto.columns.keys import KeyTable
from stretto.columns.ordering import SortKey, sorted_rows
from stretto.columns.overflow import Order
from stretto.engines.rows.columns import Shifted
from stretto.engines.rows.measures import Points, measures
from stretto.engines.rows.program import RowProgram
from stretto.engines.rows.runner import Given, whole
from stretto.engines.rows.structure import Found
from stretto.matching.empty_result.row_patterns import unmet_rows
from stretto.query.row_pattern import BoundRows, RowsPerMatch

#: Rows that are matched at once, in whole partitions; fewer where the pattern is large.
PIECE = 1 << 20


def recognize(
    bound: BoundRows,
    table: pa.Table,
    *,
    capacity: int = 1 << 16,
    piece: int = PIECE,
    report: Callable[[int], object] = lambda rows: None,
) -> pa.Table:
    """Find all matches of a clause in a table.

    Parameters
    ----------
    bound
        The clause, bound to the table's schema.
    table
        The rows, in any order. Rows with equal keys are one partition, where NULL is equal to NULL.
    capacity
        Rows that buffers of matches hold at first.
    piece
        Rows that are matched at once, in whole partitions.
    report
        Is told, after each piece, how many rows are done.

    Returns
    -------
    pyarrow.Table
        The columns of ``bound.output``: partitions in the order of their first rows in the table, matches in order.

    Raises
    ------
    DataError
        AFTER MATCH SKIP cannot be followed, or integers leave 64 bits.
    LimitError
        The pattern, or the ways that conditions leave, are too many.
    """
    found = iter_recognized(bound, table, capacity=capacity, piece=piece, report=report)
    return pa.concat_tables([*found] or [bound.output.empty_table()])


def iter_recognized(
    bound: BoundRows,
    table: pa.Table,
    *,
    capacity: int = 1 << 16,
    piece: int = PIECE,
    report: Callable[[int], object] = lambda rows: None,
) -> Iterator[pa.Table]:
    """Do what :func:`recognize` does, in pieces of bounded size."""
    program = RowProgram(bound)
    for rows, seen in _sorted_pieces(program, table, piece):
        for found in _pieces(program, seen, capacity):
            yield found.cast(bound.output)
        report(rows)


def unmet(bound: BoundRows, table: pa.Table, *, piece: int = PIECE) -> list[str]:
    """Which conditions of DEFINE keep a clause from a match in a table (:mod:`~stretto.matching.empty_result.row_patterns`)."""
    program = RowProgram(bound)
    return unmet_rows(program, (seen for _, seen in _sorted_pieces(program, table, piece)))


def _sorted_pieces(program: RowProgram, table: pa.Table, piece: int) -> Iterator[tuple[int, Shifted]]:
    """The rows in order, in pieces of whole partitions, each with the number of rows up to its end."""
    columns = columns_of(program.bound)
    table = with_fields(table, columns)
    ordered, bounds = sorted_partitions(program.bound, table)
    most = max(1, piece // program.words)
    first = 0
    while first < bounds.size - 1:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + most, "right")) - 1)
        low, high = int(bounds[first]), int(bounds[last])
        chosen = table.select(columns)
        numbers: Order = range(low, high) if ordered is None else ordered[low:high]
        chosen = chosen.slice(low, high - low) if ordered is None else chosen.take(pa.array(numbers))
        yield high, Shifted(chosen, bounds[first : last + 1] - low, numbers)
        first = last


def columns_of(bound: BoundRows) -> list[str]:
    """The columns, and fields, that are read, and the columns that are shown, of which no measure has the name."""
    names = set(bound.schema.names) - {one.name for one in bound.measures}
    return list(dict.fromkeys((*bound.read, *(name for name in bound.output.names if name in names))))


def sorted_partitions(bound: BoundRows, table: pa.Table) -> tuple[I64 | None, I64]:
    """The rows in order, ``None`` where they are already, and the bounds of partitions."""
    query = bound.parsed
    keys: list[pa.Array] = []
    for name in query.partition_by:
        column = whole(table, name)
        if column.null_count:
            keys.append(column.is_null())
            known = column.drop_null()
            if not len(known):
                continue
            column = column.fill_null(known[0])
        keys.append(column)
    ids = KeyTable([one.type for one in keys])
    groups = ids.ids(keys) if keys else np.zeros(table.num_rows, np.int64)
    count = len(ids) if keys else min(1, table.num_rows)
    order = [SortKey(whole(table, one.column), one.descending, one.nulls_first) for one in query.order_by]
    return sorted_rows(groups, count, order)


def _pieces(program: RowProgram, seen: Shifted, capacity: int) -> Iterator[pa.Table]:
    """The result of some partitions, in order."""
    found = program.matches(seen, capacity=capacity)
    if program.bound.parsed.rows is RowsPerMatch.ONE:
        for one in found:
            yield laid_out(program, Given(seen, one, _NOTHING))
        return
    every = list(found)
    together = Found(*(np.concatenate(one) for one in zip(*every, strict=True))) if every else Found(*[_NOTHING] * 5)
    if program.bound.parsed.frame is not None:
        yield _framed(program, seen, together)
        return
    alone = _NOTHING
    if program.bound.parsed.rows is RowsPerMatch.WITH_UNMATCHED:
        touched = np.zeros(seen.rows + 1, np.int64)
        np.add.at(touched, together.start, 1)
        np.add.at(touched, together.start + np.maximum(together.length, 1), -1)
        alone = np.flatnonzero(np.cumsum(touched)[:-1] == 0)
    yield laid_out(program, Given(seen, together, alone))


_NOTHING = np.zeros(0, np.int64)


def laid_out(program: RowProgram, given: Given) -> pa.Table:
    """The rows that the clause shows of matches, and of rows in none."""
    rows = program.bound.parsed.rows
    seen, found, alone, _ = given
    if rows is RowsPerMatch.ONE:
        points = Points(np.arange(found.start.size), found.length)
        return _at_points(program, seen, found, points, found.start)
    offset = np.cumsum(found.length) - found.length
    match = np.repeat(np.arange(found.length.size), found.length)
    behind = np.arange(found.path.size) - offset[match] + 1
    shown = ~program.automaton.excluded[found.path]
    match, behind = match[shown], behind[shown]
    if rows is not RowsPerMatch.OMIT_EMPTY and not found.length.all():
        empty = np.flatnonzero(found.length == 0)
        match, behind = np.append(match, empty), np.append(behind, np.zeros(empty.size, np.int64))
        order = np.argsort(match, kind="stable")
        match, behind = match[order], behind[order]
    at = found.start[match] + np.maximum(behind, 1) - 1
    table = _at_points(program, seen, found, Points(match, behind), at)
    if not alone.size:
        return table
    order = np.argsort(np.append(found.start[match], alone), kind="stable")
    return pa.concat_tables([table, _unmatched(program.bound, seen, alone)]).take(pa.array(order))


def _framed(program: RowProgram, seen: Shifted, found: Found) -> pa.Table:
    """A WINDOW clause: each row with the measures of its match, NULL where it has none."""
    measured = measures(
        program.bound, program.automaton, seen, found, Points(np.arange(found.start.size), found.length)
    )
    match = np.full(seen.rows, -1, np.int64)
    match[found.number] = np.arange(found.number.size)
    at = pa.array(match, mask=match < 0)
    columns = [seen.column(f"0 {name}") for name in program.bound.schema.names]
    return pa.Table.from_arrays([*columns, *(one.take(at) for one in measured)], schema=program.bound.output)


def _at_points(program: RowProgram, seen: Shifted, found: Found, points: Points, rows: I64) -> pa.Table:
    """The columns of the result at some points, which are at some rows."""
    bound = program.bound
    computed = dict(
        zip((one.name for one in bound.measures), measures(bound, program.automaton, seen, found, points), strict=True)
    )
    at = pa.array(rows)
    columns = [
        computed[one.name] if one.name in computed else seen.column(f"0 {one.name}").take(at) for one in bound.output
    ]
    if not columns:
        return pa.table({})
    return pa.Table.from_arrays(columns, schema=bound.output)


def _unmatched(bound: BoundRows, seen: Shifted, rows: I64) -> pa.Table:
    """Rows of no match: their measures are NULL."""
    measured = {one.name for one in bound.measures}
    at = pa.array(rows)
    columns = [
        pa.nulls(rows.size, one.type) if one.name in measured else seen.column(f"0 {one.name}").take(at)
        for one in bound.output
    ]
    return pa.Table.from_arrays(columns, schema=bound.output)
