"""SASE+ on a disordered stream: ``stretto.Matcher(query, time=…, disorder="speculate")``.

Matches come out with the event that completes them, and are taken back where a late event, a retraction or a revision says that they
were none. The query runs as an AFA (:mod:`stretto.automata.sase_afa`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.automata.sase_afa import sase_afa
from stretto.engines.afa.runner import AfaRunner
from stretto.engines.api import Matches
from stretto.errors import OptionError, SnapshotError
from stretto.events import BEFORE, Schema, as_table, conform
from stretto.frame import Section
from stretto.matching.automaton import AfaMatcher
from stretto.matching.compiled import Query, compile_query, roles
from stretto.matching.results import History, Layout, build_tables
from stretto.query.afa import Afa
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.sase import SaseQuery
from stretto.query.typing import kind_of

__all__ = ["SpeculatingMatcher"]

I64 = NDArray[np.int64]

#: Events are looked through for those that no match holds any more when there are so many more of them.
CHUNK = 1 << 16


class SpeculatingMatcher:
    """A SASE+ query over a stream that comes in any order, with retractions: ``stretto.Matcher(query, disorder="speculate")``.

    Each row of input is a step, which gives the difference that it makes: first the matches that it takes back, with ``sign`` −1,
    then new ones, with +1. A retraction with the insertion of the same time and sequence directly behind it is a revision, which is
    one step. What is right of the punctuation (:meth:`advance`) may still be taken back.

    Parameters
    ----------
    query, schema, type, time, stream, time_unit, output, positions, language
        As for :class:`~stretto.Matcher`; ``time`` is needed, and integers, dates or timestamps. ``start``, ``end`` and ``positions``
        count the rows pushed so far, in the order in which they came, retractions included.
    sequence
        A column of integers that orders events of the same time; ``None``: they are ordered as they arrive.
    sign
        The column that says +1 (insertion) or −1 (retraction of the event with the same partition, time and sequence; without a
        sequence: of the latest with the same attributes). It is no attribute of the events. ``None``: insertions only.
    late
        What is below the punctuation, or retracts the unknown: ``"error"``, ``"drop"`` (counted in :attr:`late`) or ``"side"``
        (handed over by :meth:`late_events`).

    Raises
    ------
    OptionError
        The query is CEQL, or ``output="summary"``.
    QueryError
        It says what no AFA does: see ``docs/sase.md``.

    Examples
    --------
    >>> import stretto
    >>> query = "PATTERN SEQ(A a, ~(C n), B b) WHERE skip_till_next_match { } WITHIN 10"
    >>> matcher = stretto.Matcher(query, time="t", disorder="speculate", output="positions")
    >>> matcher.push([{"type": "A", "t": 1}, {"type": "B", "t": 3}]).select(["sign", "positions"]).to_pylist()
    [{'sign': 1, 'positions': [0, 1]}]
    >>> matcher.push([{"type": "C", "t": 2}]).select(["sign", "positions"]).to_pylist()
    [{'sign': -1, 'positions': [0, 1]}]
    """

    def __init__(
        self,
        query: str | Query,
        schema: Any = None,
        *,
        type: str | None = "type",
        time: str | None = None,
        stream: str | None = None,
        time_unit: str | None = None,
        output: str = "events",
        positions: bool = True,
        language: str | None = None,
        sequence: str | None = None,
        sign: str | None = None,
        late: str = "error",
        budget: int | float | str | None = None,
        capacity: int = 1 << 10,
    ) -> None:
        self._query = compile_query(query, language=language)
        if not isinstance(self._query.parsed, SaseQuery):
            raise OptionError(
                "disorder='speculate' needs an engine that revises its output, and CEQL runs on tECS, which reads events in order: "
                "sort with a bound, such as disorder='10 seconds'"
            )
        if late not in ("error", "drop", "side"):
            raise OptionError(f"late={late!r}: expected 'error' or 'drop' or 'side'")
        Layout.check(output)
        if output == "summary":
            raise OptionError("output='summary' counts the matches of an event, which late events change: list them")
        self._roles = roles(type, time, stream, None, time_unit)
        self._options = {"sequence": sequence, "sign": sign, "late": late}
        self._budget = budget
        self._shown = {"output": output, "positions": positions}
        self._capacity = capacity
        self._kept = 0
        self._swept_to: int | None = None
        self._operator: _Operator | None = None
        self._layout: Layout
        self._history: History
        self._schema: pa.Schema
        self._inferred = schema is None and self._query.schema is None
        if schema is not None:
            self._bind(schema if isinstance(schema, Schema) else Schema.of(schema, **self._roles))
        elif self._query.schema is not None:
            self._bind(self._query.schema)

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def query(self) -> Query:
        """The query; bound once the schema is known."""
        return self._query

    @property
    def afa(self) -> Afa:
        """The automaton that runs."""
        return self._running().afa

    @property
    def position(self) -> int:
        """How many rows were pushed."""
        return self._operator._runner.rows if self._operator else 0

    @property
    def late(self) -> int:
        """How many rows were late or retracted the unknown."""
        return self._operator.late if self._operator else 0

    @property
    def punctuation(self) -> Any:
        """No match that ends before this time will be given or taken back; ``None``: none is final yet."""
        return self._operator.punctuation if self._operator else None

    @property
    def stats(self) -> dict[str, int]:
        """As those of :class:`~stretto.matching.automaton.AfaMatcher`, with the events that are kept to be shown."""
        operator = self._running()
        found = operator.stats
        found["bytes"] += self._history.nbytes
        return found | {"kept": self._history.rows}

    def explain(self) -> str:
        """The automaton as text."""
        from stretto.explain.afa import explain_afa

        return explain_afa(self.afa)

    def draw(self) -> Any:
        """The automaton as a Graphviz graph."""
        from stretto.explain.afa import draw_afa

        return draw_afa(self.afa)

    # -- events -------------------------------------------------------------------------------------------------------

    def push(self, events: Any) -> pa.Table:
        """Take the next rows; the signed matches of their steps.

        Raises
        ------
        DataError
            The rows do not fit the schema (nothing is taken then), or one cannot be taken: it is late, or retracts the unknown. Rows
            before it have been taken, and the next call gives their matches; it and the rows behind it have not.
        """
        table = as_table(events)
        if self._operator is None:
            if not table.num_columns:
                return pa.table({})
            self._bind(Schema.of(self._events_of(table).schema, **self._roles))
        operator = self._running()
        if not table.num_columns:
            return self._schema.empty_table()
        first = operator._runner.rows
        kinds = self._query.bound.schema.attributes
        bound = self._query.bound
        told = BEFORE if self._inferred else ()
        shown = conform(self._events_of(table), (*bound.tested, *self._layout.columns), kinds, *told)
        shown = shown.select(list(self._layout.columns))
        if self._layout.columns and not operator._finished:
            self._history.append(np.arange(first, first + table.num_rows), shown)
        try:
            found = operator.push(table)
        except BaseException:
            known, _ = self._history.joined()
            self._history.retain(known[known < operator._runner.rows])
            raise
        self._forget()
        return found

    def _events_of(self, table: pa.Table) -> pa.Table:
        """The columns that are attributes of events."""
        sign = self._options["sign"]
        return table.drop_columns([sign]) if sign is not None and sign in table.column_names else table

    def advance(self, time: Any) -> pa.Table:
        """A punctuation: no event before ``time`` will come. Matches before it are final, and what only they need is freed.

        Raises
        ------
        DataError
            The punctuation goes back.
        """
        found = self._running().advance(time)
        self._forget()
        return found

    def finish(self) -> pa.Table:
        """The stream has ended: all matches are final."""
        return self._operator.finish() if self._operator else pa.table({})

    def late_events(self) -> pa.Table:
        """With ``late="side"``: the rows that were late or retracted the unknown, since the last call; the columns that are read."""
        return self._running().late_events()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _running(self) -> _Operator:
        if self._operator is None:
            raise OptionError("the matcher has no schema yet: pass schema=…, or push events first")
        return self._operator

    def _bind(self, schema: Schema) -> None:
        self._query = self._query.bind(schema)
        bound = self._query.bound
        assert isinstance(bound, BoundSase)
        attributes: Sequence[str] = bound.tested
        if self._options["sign"] is not None and self._options["sequence"] is None:
            # A retraction names the event by all that it says.
            attributes = [name for name, kind in bound.schema.attributes.items() if kind_of(kind) != "other"]
        afa = sase_afa(bound, attributes=attributes)
        self._layout = Layout(bound, **self._shown)  # type: ignore[arg-type]
        self._history = History(self._layout.columns)
        self._schema = self._output_schema()
        self._operator = _Operator(
            self, afa, time=bound.time, capacity=self._capacity, budget=self._budget, **self._options
        )

    def _output_schema(self) -> pa.Schema:
        rest = list(self._layout.schema())
        return pa.schema(
            [pa.field("sign", pa.int8()), *(field.with_name(_free(field.name)) for field in rest)],
        )

    def _table(self, runner: AfaRunner) -> pa.Table:
        """The output so far."""
        if not runner.has_output:
            return self._schema.empty_table()
        matches = runner.take()
        marks = [frozenset({one.variable}) for one in self._query.parsed.positive]  # type: ignore[union-attr]
        order = None if _ascends(matches) else _AsPushed()
        body = pa.concat_tables(build_tables([matches], self._layout, self._history, marks, order))
        sign = pa.chunked_array([pa.array(matches.sign)])
        return pa.table([sign, *body.columns], schema=self._schema)

    def _forget(self) -> None:
        """Forget events that no match can hold any more, when they may be most."""
        runner = self._running()._runner
        clean = runner.punctuation
        if self._history.rows > 2 * self._kept + CHUNK and clean != self._swept_to:
            self._history.retain(runner.live())
            self._kept, self._swept_to = self._history.rows, clean

    # -- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The matcher's whole state, in a versioned format (see ``docs/snapshots.md``)."""
        operator = self._running()
        section = Section({"speculation": self._identity()})
        section.arrays["operator"] = np.frombuffer(operator.snapshot(), np.uint8)
        self._history.save(section)
        return section.to_bytes()

    def restore(self, snapshot: bytes) -> SpeculatingMatcher:
        """Take over the state of a snapshot of the same query, schema and options.

        Raises
        ------
        SnapshotError
            The bytes are damaged, of another version, or of another query, schema or option.
        """
        section = Section.of_bytes(snapshot)
        header = section.values
        if "speculation" not in header:
            raise SnapshotError("the snapshot is not of a query on a disordered stream")
        operator = self._running()
        own = self._identity()
        for name, value in own.items():
            if header["speculation"].get(name) != value:
                there = header["speculation"].get(name)
                raise SnapshotError(
                    f"the snapshot is of another query or other options: {name} is {there} there, {value} here"
                )
        operator.restore(section.arrays["operator"].tobytes())
        self._history = History(self._layout.columns)
        self._history.load(section)
        return self

    def _identity(self) -> dict[str, Any]:
        """What a state depends on, beside the automaton."""
        schema = self._query.bound.schema
        return {
            "query": self._query.text,
            "shown": self._shown,
            "columns": {name: str(schema.attributes[name]) for name in self._layout.columns},
        }


class _AsPushed:
    """The row of each event of a match, which is its position already; ``positions`` ascend, the events of a match need not."""

    def __getitem__(self, positions: Any) -> Any:
        return positions


class _Operator(AfaMatcher):
    """The AFA operator, whose output is given as matches."""

    def __init__(self, owner: SpeculatingMatcher, afa: Afa, **options: Any) -> None:
        self._owner = owner
        super().__init__(afa, **options)

    def _table(self) -> pa.Table:
        return self._owner._table(self._runner)

    def _empty(self) -> pa.Table:
        return self._owner._schema.empty_table()


def _ascends(found: Matches) -> bool:
    """Whether the events of all matches came in their order, as most do: then nothing is to be sorted."""
    falls = np.diff(found.position) < 0
    falls[found.offset[1:-1] - 1] = False  # from one match to the next
    return not falls.any()


def _free(name: str) -> str:
    return "sign_" if name == "sign" else name
