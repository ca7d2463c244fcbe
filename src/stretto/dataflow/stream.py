"""Where streams begin, and loops; what can be made of a stream are its methods (:class:`~stretto.dataflow.plan.Stream`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.dataflow import plan
from stretto.dataflow.node import check_same, payload_type
from stretto.dataflow.operators.project import in_order
from stretto.dataflow.plan import Stream
from stretto.errors import OptionError
from stretto.events import Schema, as_table


@check_arguments
def stream(name: str, schema: Any, *, insert_only: bool = False) -> Stream:
    """Declare an external input of a dataflow.

    Parameters
    ----------
    name
        What :meth:`Dataflow.push <stretto.dataflow.Dataflow.push>` calls it.
    schema
        The columns of the payload: a mapping of names to Arrow or Python types, a ``pyarrow.Schema``, or a table. Numbers, strings,
        truth values and times.
    insert_only
        Whether events are never retracted. Then the dataflow need not remember them to check retractions.

    Raises
    ------
    OptionError
        A column cannot be part of a payload, or has a name that lifetimes have; or the input has no name.

    Examples
    --------
    >>> stream("links", {"src": str, "dst": str})
    Stream(src: string, dst: string)
    """
    if not isinstance(name, str) or not name:
        raise OptionError(f"an input needs a name: stream('links', …), not {name!r}")
    return Stream(plan.Source(_row(schema), name, insert_only))


@check_arguments
def constant(rows: Any) -> Stream:
    """Make a stream of rows that hold at all times.

    Parameters
    ----------
    rows
        Anything tabular: payloads, without lifetimes.

    Raises
    ------
    OptionError
        A column cannot be part of a payload, or a value is NULL.

    Examples
    --------
    >>> constant([{"kind": "truck", "wheels": 6}, {"kind": "car", "wheels": 4}])
    Stream(kind: string, wheels: int64)
    """
    table = as_table(rows)
    row = _row(table.schema)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise OptionError(f"column '{name}' has NULL; a payload has a value in every column")
    columns = [column.cast(kind).to_pylist() for column, kind in zip(table.columns, row.values(), strict=True)]
    return Stream(plan.Constant(row, tuple(zip(*columns, strict=True))))


_TIMES = ("vs", "ve", "ve_new")


def _row(schema: Any) -> dict[str, pa.DataType]:
    """The payload's columns, integers and floats in 64 bits."""
    if isinstance(schema, Stream):
        return dict(schema.schema)
    found: dict[str, pa.DataType] = {}
    for name, kind in Schema.of(schema, type=None).attributes.items():
        if name in _TIMES:
            raise OptionError(f"column '{name}': events have their lifetimes beside the payload; leave it out")
        kept = payload_type(kind)
        if kept is None:
            raise OptionError(
                f"column '{name}' is {kind}: a payload has integers, floats, strings, truth values, times"
            )
        found[name] = kept
    return found


# -- loops ------------------------------------------------------------------------------------------------------------


@check_arguments
def fixpoint(query: Callable[[Stream], Stream], schema: Any, *, bound: int | None = None, name: str = "r") -> Stream:
    """Solve a query that reads its own result: the fixed point of ``r = Q(external, r)``.

    Parameters
    ----------
    query
        Takes the recursive relation as a stream and gives ``Q`` of it.
    schema
        The relation's columns: as for :func:`stream`, or another stream with the same ones.
    bound
        The greatest number of times that anything may go around the loop. Needed where termination does not follow from the
        plan: without ``distinct()``, ``min`` or ``max`` in the loop, or with values that are computed in it.
    name
        What errors and drawings call the relation.

    Raises
    ------
    OptionError
        The query's columns are not those of the relation, or the loop is one that cannot be run (see docs/dataflow.md).

    Examples
    --------
    >>> links = stream("links", {"src": int, "dst": int})
    >>> fixpoint(
    ...     lambda r: links.union(links.join(r, on={"dst": "src"}).project(src="src", dst="dst_right")).distinct(),
    ...     schema=links,
    ... )
    Stream(src: int64, dst: int64)
    """
    return fixpoints(lambda only: (query(only),), {name: schema}, bound=bound)[0]


@check_arguments
def fixpoints(
    query: Callable[..., Sequence[Stream]], schemas: Mapping[str, Any], *, bound: int | None = None
) -> tuple[Stream, ...]:
    """Solve several relations that are defined by each other.

    Parameters
    ----------
    query
        Takes the relations as streams and gives ``Q`` of each, in the same order.
    schemas
        Their names with their columns.
    bound
        As for :func:`fixpoint`.
    """
    if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 1):
        raise OptionError(f"bound must be a positive integer, not {bound!r}")
    if not schemas:
        raise OptionError("fixpoints(query, schemas={}): name at least one relation, with its columns")
    loop = plan.Loop(", ".join(schemas), bound)
    loop.variables = tuple(plan.Recursion(_row(schema), loop, at) for at, schema in enumerate(schemas.values()))
    made = tuple(query(*map(Stream, loop.variables)))
    if len(made) != len(loop.variables) or not all(isinstance(one, Stream) for one in made):
        given = ", ".join(type(one).__name__ for one in made) or "nothing"
        wanted = "a stream" if len(loop.variables) == 1 else f"{len(loop.variables)} streams"
        raise OptionError(f"the query of '{loop.name}' must give {wanted}, not {given}")
    bodies = []
    for name, variable, one in zip(schemas, loop.variables, made, strict=True):
        check_same(one.schema, variable.schema, f"the relation '{name}' and its query")
        bodies.append(in_order(one.node, variable.schema))
    loop.bodies = tuple(bodies)
    loop.fixpoints = tuple(plan.Fixpoint(one.schema, loop, at) for at, one in enumerate(loop.variables))
    return tuple(map(Stream, loop.fixpoints))
