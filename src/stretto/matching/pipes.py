"""``| head n`` and ``| tail n`` of EQL: the first and the last matches of a result."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa

from stretto.errors import OptionError
from stretto.matching.compiled import Query
from stretto.query.eql import EqlQuery, Pipe


def piped(query: Query, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The tables of a result after the query's pipes; ``tail`` holds what it gives until the end."""
    return reduce(_through, pipes_of(query), tables)


def pipes_of(query: Query) -> tuple[Pipe, ...]:
    """The pipes of a query; those of other languages have none."""
    return query.parsed.pipes if isinstance(query.parsed, EqlQuery) else ()


def refuse_pipes(query: Query, where: str, instead: str) -> None:
    """Raise an :class:`OptionError` for a query whose pipes cannot be followed."""
    for pipe in pipes_of(query):
        raise OptionError(
            f"the pipe '| {pipe.name} {pipe.most}' is of a whole result, and {where}: leave it out, and {instead}"
        )


def _through(tables: Iterator[pa.Table], pipe: Pipe) -> Iterator[pa.Table]:
    return (_head if pipe.name == "head" else _tail)(tables, pipe.most)


def _head(tables: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    """The first rows; nothing is read behind them."""
    for table in tables:
        yield table.slice(0, most)
        most -= table.num_rows
        if most <= 0:
            return


def _tail(tables: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    kept: list[pa.Table] = []
    rows = 0
    for table in tables:
        kept.append(table)
        rows += table.num_rows
        while rows - kept[0].num_rows >= most and len(kept) > 1:
            rows -= kept.pop(0).num_rows
    if kept:
        whole = pa.concat_tables(kept)
        yield whole.slice(max(0, rows - most))
