"""A query that asks something of all matches together, answered ahead of what is certain: what it gave is taken back and given anew.

What is certain is read once, in order. The events that wait for certainty are read again with each step, behind a copy of that
state, as if the stream ended with them; what differs from the step before is given. So nothing is ever taken out of a least value, or
out of the best, which could not say what comes after it.

A query that answers ahead of what is certain, which runs as an automaton: it is lowered when its events' types are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.errors import OptionError, SnapshotError
from stretto.events import BEFORE, Schema, conform
from stretto.frame import Section, reading
from stretto.matching.compiled import Query, layout_of
from stretto.matching.executors.base import AS_USUAL, Executor, Reading
from stretto.matching.executors.in_order import InOrderExecutor
from stretto.matching.output.changelog import MatchLayout
from stretto.matching.output.match_table import Layout
from stretto.matching.reorder import check_span
from stretto.matching.reorder.annihilating import codes
from stretto.query.afa import Afa
from stretto.query.typing import kind_of
from stretto.times import FOREVER


class Lowering:
    """A query that is to run as an automaton."""

    def __init__(self, query: Query, schema: Any = None, reading: Reading = AS_USUAL) -> None:
        Layout.check(reading.output)
        if reading.output == "summary":
            raise OptionError("output='summary' counts the matches of an event, which late events change: list them")
        self.query, self.reading = query, reading
        self._inferred = schema is None and query.schema is None
        self.given: Schema | None = query.schema
        if schema is not None:
            self.given = reading.schema(schema)

    def lowered(self, schema: Schema) -> tuple[Afa, MatchLayout, str]:
        """The automaton, the layout of its matches, and the column that orders the stream."""
        self.query = self.query.bind(schema)
        bound = self.query.bound
        read = list(bound.tested)
        if self.reading.sign is not None and self.reading.sequence is None:
            # A retraction names the event by all that it says.
            read = [name for name, kind in bound.schema.attributes.items() if kind_of(kind) != "other"]
        afa, marks = self.query.automaton(tuple(read))
        assert bound.time is not None
        return afa, MatchLayout(layout_of(self.query, **self.reading.shown), marks), bound.time

    def schema_of(self, table: pa.Table) -> Schema:
        """Make the schema of what a first batch has."""
        return self.reading.schema(self._events(table).schema)

    def kept(self, table: pa.Table, layout: MatchLayout) -> pa.Table:
        """The events of a batch with all that matches read and show."""
        bound = self.query.bound
        told = BEFORE if self._inferred else ()
        names = (*bound.tested, *layout.layout.columns)
        return conform(self._events(table), names, bound.schema.attributes, *told)

    def _events(self, table: pa.Table) -> pa.Table:
        """The columns that are attributes of events."""
        sign = self.reading.sign
        return table.drop_columns([sign]) if sign in table.column_names else table

    def identity(self, layout: MatchLayout) -> dict[str, Any]:
        """What a state depends on, beside the automaton."""
        kinds = self.query.bound.schema.attributes
        columns = {name: str(kinds[name]) for name in layout.layout.columns}
        return {"query": self.query.text, "shown": self.reading.shown, "columns": columns}


class SpeculativeExecutor(InOrderExecutor):
    """What runs counts and sums over all matches, the best of them and samples with ``speculation=``.

    Each call is a step, which gives the difference that it makes: first what it takes back, then what is new, both in the order of
    the query's rows. All together it is what :func:`stretto.match` gives of the events that were let through. It goes on as its base
    does with the events that are certain.

    Parameters
    ----------
    speculation
        How far beyond the punctuation others are read.
    """

    partial_matches = Executor.partial_matches
    why_not = Executor.why_not
    push_sets = Executor.push_sets
    prime = Executor.prime

    def __init__(self, query: Query, schema: Any, reading: Reading, *, speculation: Any, **options: Any) -> None:
        self._speculation = speculation
        check_span(speculation, "speculation")
        self._given: pa.Table | None = None  #: the rows that were given and may be taken back
        self._settled: list[pa.Table] = []  #: those that are certain, of steps that failed before they could give them
        super().__init__(query, schema, reading, **{"disorder": math.inf, **options})

    # -- what it is ---------------------------------------------------------------------------------------------------

    def explain(self) -> str:
        told = "rows say what the events so far come to; those that wait are read again with each push, and rows are revised"
        return f"{super().explain().rstrip()}\nahead      {told}"

    @property
    def stats(self) -> dict[str, int]:
        found = super().stats
        kept = [*([] if self._given is None else [self._given]), *self._settled]
        found["bytes"] += sum(table.nbytes for table in kept)
        return found

    @property
    def idle(self) -> bool:
        given = self._given is not None and self._given.num_rows > 0
        return not (given or self._settled) and super().idle

    @property
    def ends(self) -> int | None:
        if self.idle:
            return None
        expires = None if self.stats.get("waiting") else self.expires
        return FOREVER if expires is None else int(expires) + 1

    # -- events -------------------------------------------------------------------------------------------------------

    def push(self, events: Any, *, arcs: Any = None, punctuations: Any = ()) -> pa.Table:
        return self._step(partial(super().push, events, arcs=arcs, punctuations=punctuations))

    def iter_push(self, events: Any) -> Iterator[pa.Table]:
        yield self.push(events)

    def advance(self, time: Any, *, where: str | None = None) -> pa.Table:
        self.life.refuse_finished()
        return self._step(partial(super().advance, time, where=where))

    def finish(self) -> pa.Table:
        return self._difference([]) if self.life.finished else self._step(super().finish)

    def _step(self, operation: Callable[[], pa.Table]) -> pa.Table:
        """What an operation makes certain, and what may be said beyond it: the difference to what was given."""
        settled = operation()
        if self.run is None:
            return settled
        if settled.num_rows:
            self._settled.append(settled)
        foreseen = self.shown.empty_table()
        if not self.life.finished:
            foreseen = self.foreseen(self._speculation)
        found = self._difference([*self._settled, foreseen])
        self._given, self._settled = foreseen, []
        return found

    def _difference(self, now: Sequence[pa.Table]) -> pa.Table:
        """What is taken back of what was given, and what is new."""
        schema = self.shown
        before = schema.empty_table() if self._given is None else self._given.cast(schema)
        after = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in now)])
        gone, new = _unlike(before, after)
        rows = pa.concat_tables([before.take(pa.array(gone)), after.take(pa.array(new))])
        signs = np.repeat(np.array([-1, 1], np.int8), [gone.size, new.size])
        names = ["sign_" if name == "sign" else name for name in schema.names]
        return pa.table([pa.array(signs), *rows.columns], ["sign", *names])

    # -- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        certain = super().snapshot()
        section = Section({"speculation": {"query": self.query.text}})
        section.arrays["certain"] = np.frombuffer(certain, np.uint8)
        if self._given is not None:
            schema = self.shown
            section.put_table("given", self._given.cast(schema))
            section.put_table("settled", pa.concat_tables([schema.empty_table(), *self._settled]))
        return section.to_bytes()

    @reading()
    def restore(self, snapshot: bytes) -> None:
        section = Section.of_bytes(snapshot)
        if "speculation" not in section.values or "certain" not in section.arrays:
            raise SnapshotError("the snapshot is not of a matcher with speculation= whose query counts or chooses")
        super().restore(section.arrays["certain"].tobytes())
        given, settled = None, []
        if "given" in section.arrays:
            schema = self.shown
            given, *settled = (section.table(name).cast(schema) for name in ("given", "settled"))
        self._given, self._settled = given, [table for table in settled if table.num_rows]


def _unlike(before: pa.Table, after: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of two tables that have none like them in the other one, where each goes with one."""
    count = before.num_rows
    numbers = codes(pa.concat_tables([before, after]))
    places = np.concatenate([_places(numbers[:count]), _places(numbers[count:])])
    both = numbers * (numbers.size + 1) + places
    return np.flatnonzero(~np.isin(both[:count], both[count:])), np.flatnonzero(~np.isin(both[count:], both[:count]))


def _places(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows with its number there are before each row."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(np.append(begins, ordered.size))
    found = np.empty(numbers.size, np.int64)
    found[order] = np.arange(numbers.size) - np.repeat(begins, sizes)
    return found
