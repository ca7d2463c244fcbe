"""Results that may be taken back as tables: outputs of an automaton, and matches of a query that runs as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from stretto.engines.afa.runner import AfaRunner
from stretto.engines.api import Matches
from stretto.matching.output.match_table import CHUNK, History, Layout, build_tables
from stretto.matching.reorder import Cleanse
from stretto.query.afa import Afa

#: Columns of an automaton's output; a partition attribute of such a name gets a trailing underscore.
OWN = ("sign", "start", "end", "positions", "start_time", "end_time", "until", "register")


class SignedLayout(Protocol):
    """Which columns a result has, and what of the events it needs."""

    def schema(self, time: pa.DataType) -> pa.Schema:
        """The schema of the result, where the times have this type."""

    def table(self, found: Matches, time: pa.DataType) -> pa.Table:
        """What a run gives."""

    def keep(self, table: pa.Table, first: int) -> None:
        """Keep what results may show of rows that begin with this number."""

    def cut(self, end: int) -> None:
        """Drop all rows from this one on: they were not taken."""

    def drop(self, run: AfaRunner, front: Cleanse | None) -> None:
        """Drop what no result can show any more, when that may be most; rows may wait in front of the run."""

    def stats(self, found: dict[str, int]) -> dict[str, int]:
        """Counts of a run, and of what is kept here."""


class OutputLayout:
    """The output of an automaton.

    Parameters
    ----------
    afa
        The automaton.
    positions
        Whether rows have the positions of all events between the first and the last (``provenance=``).
    """

    def __init__(self, afa: Afa, *, positions: bool) -> None:
        self._afa, self._positions = afa, positions

    def schema(self, time: pa.DataType) -> pa.Schema:
        afa = self._afa
        return pa.schema(
            [
                ("sign", pa.int8()),
                ("start", pa.int64()),
                ("end", pa.int64()),
                *([("positions", pa.list_(pa.int64()))] if self._positions else []),
                ("start_time", time),
                ("end_time", time),
                ("until", time),
                *((free_name(name), _value_type(afa.events[name])) for name in afa.partition_by),
                ("register", pa.struct([(name, kind) for name, kind in afa.register.items()])),
            ]
        )

    def table(self, found: Matches, time: pa.DataType) -> pa.Table:
        outputs = found.outputs
        assert outputs is not None
        schema = self.schema(time)
        arrays: list[pa.Array] = [
            pa.array(found.sign),
            pa.array(found.start, mask=found.start < 0),
            pa.array(found.end, mask=found.end < 0),
        ]
        if self._positions:
            arrays.append(pa.LargeListArray.from_arrays(found.offset, found.position))
        arrays += [outputs.start_time, outputs.end_time, outputs.until]
        if outputs.keys is not None:
            arrays += [outputs.keys.column(name) for name in self._afa.partition_by]
        register, fields = schema.field("register").type, outputs.register
        if fields:
            arrays.append(pa.StructArray.from_arrays(fields, fields=list(register)))
        else:
            arrays.append(pa.array([{}] * found.start.size, register))
        cast = [
            array if array.type == kind else array.cast(kind) for array, kind in zip(arrays, schema.types, strict=True)
        ]
        return pa.table(cast, schema=schema)

    def keep(self, table: pa.Table, first: int) -> None:
        """Outputs show no events."""

    def cut(self, end: int) -> None:
        """Nothing is kept."""

    def drop(self, run: AfaRunner, front: Cleanse | None) -> None:
        """Nothing is kept."""

    def stats(self, found: dict[str, int]) -> dict[str, int]:
        return found


class MatchLayout:
    """The matches of a query, with their signs.

    Parameters
    ----------
    layout
        The columns of its matches.
    marks
        The variables of each label.
    """

    def __init__(self, layout: Layout, marks: Sequence[frozenset[str]]) -> None:
        self.layout = layout
        self.history = History(layout.columns)
        self.marks = marks
        own = [field.with_name("sign_") if field.name == "sign" else field for field in layout.schema()]
        self._schema = pa.schema([pa.field("sign", pa.int8()), *own])
        self._kept = 0
        self._swept_to: int | None = None

    def schema(self, time: pa.DataType) -> pa.Schema:
        return self._schema

    def table(self, found: Matches, time: pa.DataType) -> pa.Table:
        order = None if _ascends(found) else _AsPushed()
        body = pa.concat_tables(build_tables([found], self.layout, self.history, self.marks, order))
        sign = pa.chunked_array([pa.array(found.sign)])
        return pa.table([sign, *body.columns], schema=self._schema)

    def keep(self, table: pa.Table, first: int) -> None:
        if self.layout.columns:
            shown = table.select(list(self.layout.columns))
            self.history.append(np.arange(first, first + table.num_rows), shown)

    def cut(self, end: int) -> None:
        known, _ = self.history.joined()
        self.history.retain(known[known < end])

    def drop(self, run: AfaRunner, front: Cleanse | None) -> None:
        if self.history.rows > 2 * self._kept + CHUNK:
            self.trim(run, front)

    def trim(self, run: AfaRunner, front: Cleanse | None) -> None:
        """Keep the events alone that matches to come, or to be taken back, may hold."""
        if run.punctuation != self._swept_to:
            live = run.live()
            self.history.retain(live if front is None else np.union1d(live, front.waiting_rows))
            self._kept, self._swept_to = self.history.rows, run.punctuation

    def stats(self, found: dict[str, int]) -> dict[str, int]:
        found["bytes"] += self.history.nbytes
        return found | {"kept": self.history.rows}


class _AsPushed:
    """The row of each event of a match, which is its position already; ``positions`` ascend, the events of a match need not."""

    def __getitem__(self, positions: Any) -> Any:
        return positions


def _ascends(found: Matches) -> bool:
    """Whether the events of all matches came in their order, as most do: then nothing is to be sorted."""
    falls = np.diff(found.position) < 0
    falls[found.offset[1:-1] - 1] = False  # from one match to the next
    return not falls.any()


def free_name(name: str) -> str:
    """The output's column of a partition attribute."""
    return f"{name}_" if name in OWN else name


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
