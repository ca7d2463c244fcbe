"""A ``MATCH_RECOGNIZE`` clause over a stream: what sorts its rows, if they come out of order, the run, and the rows that it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from stretto.column_types import with_fields
from stretto.columns.arrays import numbers_of
from stretto.columns.ordering import SortKey, sorted_rows
from stretto.engines.rows.program import RowProgram
from stretto.engines.rows.runner import Given, RowRun, whole
from stretto.errors import LimitError, OptionError, QueryError, SnapshotError
from stretto.events import BEFORE, Schema, as_table, conform
from stretto.explaining.answer import Answer
from stretto.explaining.rows import draw_clauses, explain_clause
from stretto.frame import Section, reading
from stretto.languages.match_recognize import parse
from stretto.languages.sql import read_statement
from stretto.languages.sql.tokens import tokens
from stretto.matching.executors.ordered import OrderedExecutor
from stretto.matching.inspection.partial_matches import refused
from stretto.matching.inspection.state_tables import check_columns, check_most, counted, plain, summary
from stretto.matching.lifecycle import Life
from stretto.matching.meaning import check_same, options_differ
from stretto.matching.output.memory_budget import Meter
from stretto.matching.reorder import Cleanse, Released
from stretto.matching.sql.row_pattern_table import columns_of, laid_out
from stretto.matching.sql.run import bound_to
from stretto.query.row_pattern import RowQuery
from stretto.times import DAY


@lru_cache(maxsize=256)
def read_clause(text: str, time_unit: str | None = None) -> RowQuery:
    """Read a clause, or a statement that is one clause over one table; ``time_unit``: of the number that its rows are ordered by.

    Raises
    ------
    QueryError
        The text is wrong, or has SQL around the clause.
    """
    first = tokens(text)[:1]
    if first and first[0].says("MATCH_RECOGNIZE"):
        return replace(parse(text), time_unit=time_unit)
    statement = read_statement(text, time_unit=time_unit)
    if statement.only is None:
        hint = (
            "give the clause alone, MATCH_RECOGNIZE ( … ), and do the rest with what it gives; over tables stretto.sql runs the "
            "whole statement"
        )
        raise QueryError("only SELECT * FROM t MATCH_RECOGNIZE ( … ) runs over events", text=text, hint=hint)
    return statement.clauses[0].parsed


class RowPatternExecutor(OrderedExecutor):
    """What runs a clause over a stream.

    Parameters
    ----------
    clause
        The clause, or its text.
    schema, time_unit, disorder, late, budget, capacity
        As of :class:`~stretto.Matcher`.
    sorts
        Each push has all rows of its times, which the clause's order then sorts; with ``disorder`` it is so.
    """

    COUNTED = ("events", "late", "partitions", "partial_matches", "held", "bytes")
    NOUN = "rows"
    run: RowRun | None

    def __init__(
        self,
        clause: str | RowQuery,
        schema: Any = None,
        *,
        time_unit: str | None = None,
        disorder: Any = None,
        late: str = "error",
        sorts: bool = False,
        budget: int | float | str | Meter | None = None,
        capacity: int = 1 << 12,
    ) -> None:
        super().__init__(disorder, late, budget, capacity)
        self.clause = read_clause(clause, time_unit) if isinstance(clause, str) else clause
        self.sorts = sorts or disorder is not None
        if disorder is not None:
            self._refuse_without_time("disorder= sorts rows by their time")
        if schema is not None:
            given = schema if isinstance(schema, Schema) else Schema.of(schema, type=None)
            self.bind(pa.schema(list(given.attributes.items())))

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def query(self) -> NoReturn:
        raise OptionError("this matcher runs a MATCH_RECOGNIZE clause, which is no query in CEQL or SASE+")

    def explain(self) -> str:
        return explain_clause(self.clause, None if self.run is None else self.program.bound)

    def draw(self) -> Any:
        return draw_clauses([("MATCH_RECOGNIZE over a stream", self.clause)])

    def why_not(self, key: Any, most: int) -> Answer:
        raise OptionError(refused("and this one runs a MATCH_RECOGNIZE clause, of which it holds rows", "clause, rows"))

    def held(self, most: int, by: Sequence[str]) -> pa.Table:
        check_most("held", most)
        run = self.run
        if run is None:
            return pa.table({})
        self.life.refuse_inside()
        variable = "variable" + "_" * ("variable" in self.columns)
        check_columns("held", by, [variable, *self.columns])
        slots, taken = run.live()
        items = self.program.bound.parsed.order_by
        time = items[0].column if items else None
        names = [name for name in dict.fromkeys([*by, time]) if name not in (None, variable)]
        table = plain(run.take(slots, names)) if names else pa.table({"\0row": slots})
        if variable in by:
            automaton = self.program.automaton
            number = np.array([*automaton.variable, 0], np.int64)[taken]
            names = pa.array(automaton.variables, pa.string())
            table = table.append_column(variable, names.take(pa.array(number, mask=taken < 0)))
        if by:
            return counted(table, by, "events", {} if time is None else {time: "oldest"}).slice(0, most)
        return summary(self.stats, slots.size, self.punctuation, None if time is None else table.column(time))

    @property
    def expires(self) -> int | float | None:
        last = super().expires
        if last is None or not pa.types.is_date(self.kinds[self.program.bound.parsed.order_by[0].column]):
            return last
        return DAY * (last + 1) - 1  # of dates windows are measured in seconds

    # -- types --------------------------------------------------------------------------------------------------------

    def bind(self, schema: pa.Schema) -> None:
        """Take the types of the columns, and begin a stream."""
        bound = bound_to(self.clause, schema)
        self.columns = columns_of(bound)
        self.attributes = dict(zip(schema.names, schema.types, strict=True))
        self.kinds = dict(zip(bound.columns.names, bound.columns.types, strict=True))
        self.program = RowProgram(bound)
        late = self.late_policy if self.disorder is None else "error"
        self.run = RowRun(self.program, self.columns, late=late, capacity=self.capacity)
        self.life = Life()
        if self.disorder is not None:
            # The clause's own names of columns are those of the schema.
            time = self._time("disorder= sorts rows by their time")
            shown = pa.schema([(name, self.kinds[name]) for name in self.columns])
            self.sorter = Cleanse(
                shown, time=time, disorder=self.disorder, late=self.late_policy, time_unit=self.clause.time_unit
            )

    def _refuse_without_time(self, why: str) -> None:
        items = self.clause.order_by
        if not items or items[0].descending:
            raise OptionError(f"{why}: let ORDER BY begin with it, upwards")

    def _time(self, why: str) -> str:
        """The column of the time, which is a number or a time."""
        self._refuse_without_time(why)
        name = self.program.bound.parsed.order_by[0].column
        kind = self.kinds[name]
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)):
            raise OptionError(f"{why}, and '{name}' is {kind}")
        return name

    # -- rows ---------------------------------------------------------------------------------------------------------

    def prime(self, events: Any) -> None:
        raise OptionError("prime() does not fit MATCH_RECOGNIZE, where matches depend on those before: push the rows")

    def push_sets(self, events: Any) -> Iterator[Any]:
        raise OptionError("push_sets() is for SASE+ queries, and this is a MATCH_RECOGNIZE clause")

    @property
    def shown(self) -> pa.Schema:
        return self.program.bound.output

    def _clock(self, time: Any) -> tuple[str, pa.DataType]:
        self.life.refuse_finished()
        name = self._time(f"advance({time!r}) needs a time")
        return name, self.kinds[name]

    def _moment(self, time: pa.Array, name: str) -> Any:
        value = numbers_of(time)[0].item()
        if math.isnan(value):
            raise ValueError("NaN is before and behind no time")
        return value

    def _reached(self, time: Any) -> Iterator[pa.Table]:
        return self._tables(self._running().reach(time))

    def _ended(self) -> Iterator[pa.Table]:
        was, self.life.finished = self.life.finished, True
        if self.run is not None and not was:
            with self.life.reading():
                yield from self._tables(self.run.finish())

    def _read(self, events: Any, punctuations: list[tuple[int, Any]], *, silent: bool = False) -> Iterator[pa.Table]:
        self.life.refuse_finished()
        self.life.refuse_inside()
        table = as_table(events)
        if self.run is None:
            if not table.num_columns:
                return iter(())
            self.bind(table.schema)
        sorter = self.sorter
        if sorter is not None:
            return self._through(lambda: sorter.let(table, punctuations))
        self._refuse_punctuations(punctuations)
        return self._advance(conform(table, self.columns, self.kinds, *BEFORE)) if table.num_columns else iter(())

    def _through(self, operation: Callable[[], Released]) -> Iterator[pa.Table]:
        """What the sorter lets through goes to the run, with all rows of its times."""
        sorter, run = self.sorter, self._running()
        assert sorter is not None
        self.life.refuse_inside()
        released = operation()
        if released.rows.size:
            yield from self._advance(released.table)
        if sorter.last_time is not None:
            yield from self._tables(run.reach(numbers_of(sorter.last_time)[0].item()))

    def _advance(self, table: pa.Table) -> Iterator[pa.Table]:
        run = self._running()
        if self.sorts:
            table = self._sorted(table)
        groups, table = run.accepted(table)
        with self.life.reading():
            yield from self._tables(run.advance(groups, table))

    def _sorted(self, table: pa.Table) -> pa.Table:
        """Rows in the order of ORDER BY."""
        order = [
            SortKey(whole(table, one.column), one.descending, one.nulls_first)
            for one in self.program.bound.parsed.order_by
        ]
        rows, _ = sorted_rows(np.zeros(table.num_rows, np.int64), 1, order)
        return table if rows is None else table.take(pa.array(rows))

    def _tables(self, found: Iterable[Given]) -> Iterator[pa.Table]:
        """What the run gives as tables, within the budget of the call."""
        for one in found:
            table = laid_out(self.program, one).cast(self.program.bound.output)
            self.meter.rows += table.num_rows
            self.meter.bytes += table.nbytes
            if not self.meter.budget.holds(self.meter.rows, self.meter.bytes):
                raise LimitError(
                    f"the call gives more than {self.meter.budget}: push fewer rows at a time, take iter_push(), or a larger budget="
                )
            yield table

    # -- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        run = self.run
        section = Section({"clause": self.clause.text, "started": run is not None})
        if run is None:
            return section.to_bytes()
        self.life.refuse_snapshot()
        section.values |= {"finished": self.life.finished, "options": self._options}
        section.put_schema("schema", pa.schema(list(self.attributes.items())))
        run.save(section.sub("run"))
        if self.sorter is not None:
            self.sorter.save(section.sub("sorter"))
        return section.to_bytes()

    @reading()
    def restore(self, snapshot: bytes) -> None:
        section = Section.of_bytes(snapshot)
        header = section.values
        check_same(header.get("clause"), self.clause, read_clause)
        if not header["started"]:
            if self.run is not None:
                self.bind(pa.schema(list(self.attributes.items())))
            return
        if header["options"] != self._options:
            raise SnapshotError(f"the snapshot does not fit: {options_differ(header['options'], self._options)}")
        schema = section.schema("schema")
        known = schema if self.run is None else pa.schema(list(self.attributes.items()))
        wanted = self._read_of(schema)
        given = with_fields(known.empty_table(), wanted).schema
        if any(name not in given.names or given.field(name).type != kind for name, kind in wanted.items()):
            raise SnapshotError("the snapshot does not fit: the columns that the clause reads have other types")
        self.bind(known)
        run = self._running()
        with reading():
            run.load(section.sub("run"))
            if self.sorter is not None:
                self.sorter.load(section.sub("sorter"))
        self.life.finished = header["finished"]

    def _read_of(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        """The columns that the clause reads or shows of rows of a schema, with their types."""
        bound = bound_to(self.clause, schema)
        return {name: bound.columns.field(name).type for name in columns_of(bound)}

    @property
    def _options(self) -> dict[str, Any]:
        """What a state depends on, beside the clause."""
        disorder = None if self.disorder is None else str(self.disorder)
        unit = {} if self.clause.time_unit is None else {"time_unit": self.clause.time_unit}
        return {"disorder": disorder, "late": self.late_policy, **unit}
