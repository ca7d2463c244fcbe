"""``stretto.sql``: SQL with ``MATCH_RECOGNIZE`` over tables of this process; DuckDB runs what is around the clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import DataError, OptionError, QueryError, Span, suggestion
from stretto.events import as_table
from stretto.languages.sql import Clause, Rewritten, Statement, read_statement
from stretto.matching.empty_result.queries import with_warnings
from stretto.matching.input.files import Source, are_files, open_files
from stretto.matching.output.progress import Progress
from stretto.matching.sql.row_pattern_table import iter_recognized, unmet
from stretto.query import functions
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import BoundRows, RowQuery, RowsPerMatch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@check_arguments
def sql(
    text: str,
    /,
    *,
    con: DuckDBPyConnection | None = None,
    time_unit: str | None = None,
    progress: bool | None = None,
    **tables: Any,
) -> pa.Table:
    """Run a SQL statement in which tables may be followed by ``MATCH_RECOGNIZE ( … )``.

    The clauses are matched here, and DuckDB runs the SQL around them (``pip install 'stretto[sql]'``). A statement that is one
    clause over one table, ``SELECT * FROM t MATCH_RECOGNIZE ( … )``, needs no DuckDB.

    Parameters
    ----------
    text
        One statement. Clauses may stand in subqueries, WITH queries, joins and unions, and behind each other's results.
    con
        A DuckDB connection, whose tables the statement may read as well. ``None``: a new one for this call.
    time_unit
        What the numbers count by which clauses order their rows: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``. Intervals then stand beside
        them, and ``WITHIN`` over them.
    progress
        Show a progress bar for each clause over many rows. ``None``: in a terminal or notebook, when it takes longer than a second.
    tables
        By the name that the statement has for it (in any case): an Arrow, pandas, polars or DuckDB table, a list of dicts, or
        files, as :func:`stretto.match` takes them.

    Returns
    -------
    pyarrow.Table
        The rows of the statement. Behind a clause these are its ``PARTITION BY`` columns and measures; with ``ALL ROWS PER MATCH``
        its ``PARTITION BY`` and ``ORDER BY`` columns, the measures, and the other columns of its table.

    Raises
    ------
    QueryError
        The statement is wrong, with the place in it, in a clause or around it.
    DataError
        A table is not one.
    OptionError
        DuckDB is needed and not installed, or two tables have one name.
    LimitError
        Conditions on what was matched before make a search that is too long.

    Examples
    --------
    >>> import stretto
    >>> ticker = [{"day": day, "price": price} for day, price in enumerate([9, 7, 5, 8, 9])]
    >>> stretto.sql('''
    ...     SELECT * FROM ticker MATCH_RECOGNIZE (
    ...         ORDER BY day
    ...         MEASURES FIRST(down.day) AS first_day, LAST(down.price) AS bottom, LAST(up.day) AS last_day
    ...         PATTERN (down+ up+)
    ...         DEFINE down AS price < PREV(price), up AS price > PREV(price)
    ...     )
    ... ''', ticker=ticker).to_pylist()
    [{'first_day': 1, 'bottom': 5, 'last_day': 4}]
    """
    statement = read_statement(text, time_unit=time_unit)
    given = _by_name(tables)
    if con is None and statement.only is not None:
        return _alone(statement, statement.clauses[0], given, progress)
    return _Run(statement, given, con, progress).result()


def bound_clauses(statement: Statement, given: Mapping[str, pa.Table], con: Any = None) -> dict[Clause, BoundRows]:
    """The clauses of a statement, bound to tables; no row of them is read.

    Raises
    ------
    QueryError, OptionError
        As of :func:`sql`.
    """
    tables = _by_name(given)
    if con is None and statement.only is not None:
        clause = statement.clauses[0]
        table = _opened(_named(statement, clause, tables))
        with statement.placing(clause):
            return {clause: bound_to(clause.parsed, table.schema)}
    return _Run(statement, tables, con, False).bound()


def selected(bound: BoundRows) -> list[str]:
    """The columns of its table that a clause needs: all of them only where each row is shown."""
    return bound.roots if bound.parsed.rows is RowsPerMatch.ONE else bound.schema.names


def bound_to(clause: RowQuery, schema: pa.Schema) -> BoundRows:
    """A clause bound to the columns that it reads.

    Raises
    ------
    QueryError
        The clause does not fit them, or gives no columns, so that its rows could not be counted.
    """
    bound = _bound(clause, clause.time_unit, schema.serialize().to_pybytes(), functions.version())
    if not bound.output.names:
        hint = "add MEASURES, such as MATCH_NUMBER() AS match, or ALL ROWS PER MATCH"
        raise QueryError("the rows of the clause have no columns", text=clause.text, hint=hint)
    return bound


@lru_cache(maxsize=64)
def _bound(clause: RowQuery, time_unit: str | None, schema: bytes, version: int) -> BoundRows:
    """A clause bound to columns, kept for the calls to come; ``version``: of the registered functions."""
    return bind(clause, pa.ipc.read_schema(pa.py_buffer(schema)))


def _by_name(tables: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, one in tables.items():
        if name.casefold() in found:
            raise OptionError(f"two tables are named '{name}': SQL does not tell capital letters from small ones")
        found[name.casefold()] = one
    return found


def _named(statement: Statement, clause: Clause, given: Mapping[str, Any]) -> Any:
    """The table of a statement that is one clause over one table."""
    name = str(statement.only)
    if name.casefold() not in given:
        by_name = f"give it by its name: sql(text, {name}=…), or --table {name}=FILES in the shell"
        hint = suggestion(name, given, kind="table") or by_name
        raise QueryError(f"there is no table '{name}'", text=statement.text, span=clause.operand, hint=hint)
    return given[name.casefold()]


def _alone(statement: Statement, clause: Clause, given: Mapping[str, Any], progress: bool | None) -> pa.Table:
    """The rows of a statement that is one clause over one table."""
    table = _opened(_named(statement, clause, given))
    with statement.placing(clause):
        bound = bound_to(clause.parsed, table.schema)
        return _recognized(clause, _rows_read(bound, table), progress)


def _recognized(clause: Clause, rows: pa.Table, progress: bool | None) -> pa.Table:
    bound = bound_to(clause.parsed, rows.schema)
    return pa.concat_tables([*_told(bound, rows, progress)] or [bound.output.empty_table()])


def match_clause(clause: RowQuery, events: Any, progress: bool | None) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """What a clause gives over events: its columns, and its rows, in pieces of bounded size.

    Raises
    ------
    QueryError
        The clause does not fit the columns.
    """
    table = _opened(events)
    rows = _rows_read(bound_to(clause, table.schema), table)
    bound = bound_to(clause, rows.schema)
    return bound.output, _told(bound, rows, progress)


def _rows_read(bound: BoundRows, table: pa.Table | Source) -> pa.Table:
    """The columns of a table, or of files, that a clause reads."""
    names = selected(bound)
    return table.table(names) if isinstance(table, Source) else table.select(names)


def _told(bound: BoundRows, rows: pa.Table, progress: bool | None) -> Iterator[pa.Table]:
    """The rows of a clause, with warnings where there are none."""
    return with_warnings(_shown(bound, rows, progress), lambda: unmet(bound, rows))


def _shown(bound: BoundRows, rows: pa.Table, progress: bool | None) -> Iterator[pa.Table]:
    """The rows of a clause, beside a progress bar."""
    with Progress(progress, rows.num_rows) as report:
        yield from iter_recognized(bound, rows, report=report)


def _opened(table: Any) -> pa.Table | Source:
    return open_files(table) if are_files(table) else as_table(table)


class _Run:
    """A statement that DuckDB runs."""

    def __init__(self, statement: Statement, given: Mapping[str, Any], con: Any, progress: bool | None) -> None:
        self._statement, self._given, self._progress = statement, given, progress
        self._names: dict[Clause, str] = {}
        self._shared = con is not None
        self._con = con if con is not None else _duckdb().connect()

    def result(self) -> pa.Table:
        """The rows of the statement."""
        with self._tables() as registered:
            for clause in self._statement.clauses:
                self._register(clause, self._rows(clause), registered)
            rest = self._statement.rest(self._names)
            with self._told(rest):
                found = self._con.sql(str(rest))
                return pa.table({}) if found is None else found.to_arrow_table()

    def bound(self) -> dict[Clause, BoundRows]:
        """The clauses, bound to what they read; no row of it is computed."""
        found = {}
        with self._tables() as registered:
            for clause in self._statement.clauses:
                _, found[clause] = self._operand(clause)
                self._register(clause, found[clause].output.empty_table(), registered)
        return found

    @contextmanager
    def _tables(self) -> Iterator[list[str]]:
        """Give DuckDB the tables that the statement names; take them back behind it, with all that is added to the list."""
        registered: list[str] = []
        with self._without_variables():
            try:
                for name in self._given.keys() & self._statement.names:
                    self._refuse_taken(name)
                    table = _opened(self._given[name])
                    try:
                        self._con.register(name, table.table() if isinstance(table, Source) else table)
                    except _duckdb().Error as error:
                        raise DataError(f"DuckDB does not read the table '{name}': {_message(error)}") from error
                    registered.append(name)
                yield registered
            finally:
                for name in registered:
                    self._con.unregister(name)
                if not self._shared:
                    self._con.close()

    def _register(self, clause: Clause, rows: pa.Table, registered: list[str]) -> None:
        """Give DuckDB the rows of a clause as a table."""
        self._names[clause] = self._fresh()
        self._con.register(self._names[clause], rows)
        registered.append(self._names[clause])

    def _operand(self, clause: Clause) -> tuple[Any, BoundRows]:
        """What a clause reads, as a relation of DuckDB, and the clause bound to its columns."""
        asked = self._statement.operand(clause, self._names)
        with self._told(asked):
            operand = self._con.sql(str(asked))
            schema = as_table(operand.limit(0)).schema
        with self._statement.placing(clause):
            return operand, bound_to(clause.parsed, schema)

    def _rows(self, clause: Clause) -> pa.Table:
        """What a clause gives."""
        operand, bound = self._operand(clause)
        with self._told(self._statement.operand(clause, self._names)):
            rows = as_table(operand.project(", ".join(map(_quoted, selected(bound)))))
        with self._statement.placing(clause):
            return _recognized(clause, rows, self._progress)

    def _fresh(self) -> str:
        number = len(self._names) + 1
        while f"matched_{number}" in self._statement.names or f"matched_{number}" in self._names.values():
            number += 1
        return f"matched_{number}"

    def _refuse_taken(self, name: str) -> None:
        """The tables of a connection of the user's stay as they are."""
        asked = "SELECT 1 FROM information_schema.tables WHERE lower(table_name) = ?"
        if self._shared and self._con.execute(asked, [name]).fetchall():
            raise OptionError(f"the connection has a table '{name}' already: give yours another name")

    @contextmanager
    def _without_variables(self) -> Iterator[None]:
        """Without DuckDB's way to take Python's variables for tables: those here are not the user's."""
        option = "python_enable_replacements"
        before = self._con.execute("SELECT current_setting(?)", [option]).fetchall()[0][0]
        self._con.execute(f"SET {option} = false")
        try:
            yield
        finally:
            if self._shared:
                self._con.execute(f"SET {option} = {'true' if before else 'false'}")

    @contextmanager
    def _told(self, asked: Rewritten) -> Iterator[None]:
        """DuckDB's errors as ours, in the user's words and at the place in the user's text."""
        duckdb = _duckdb()
        try:
            yield
        except duckdb.Error as error:
            message, span = _read_error(str(error), asked, self._statement)
            for clause, name in self._names.items():
                line = self._statement.text.count("\n", 0, clause.body.start) + 1
                message = message.replace(f'"{name}"', name).replace(name, f"MATCH_RECOGNIZE (line {line})")
            if not isinstance(error, duckdb.ProgrammingError):
                raise DataError(message) from error
            raise QueryError(message, text=self._statement.text, span=span) from error


#: DuckDB's excerpt of the line with the mistake, and the caret below it.
_EXCERPT = re.compile(r"\n*LINE (\d+): (?P<line>.*)\n(?P<caret> *)\^")


def _read_error(told: str, asked: Rewritten, statement: Statement) -> tuple[str, Span | None]:
    """The message of an error of DuckDB, and its place in the user's text."""
    found = _EXCERPT.search(told)
    message = _message(told if found is None else told[: found.start()])
    if found is None:
        named = re.search(r'"([^"]+)"|name (\w+)', message)
        return message, None if named is None else statement.place(named[1] or named[2])
    text = str(asked)
    lines = text.splitlines(keepends=True)
    begin = sum(map(len, lines[: int(found[1]) - 1]))  # DuckDB may speak of a text of its own, which is longer
    shown, caret = found["line"], len(found["caret"]) - len(f"LINE {found[1]}: ")
    if shown.startswith("..."):
        shown, caret = shown[3:], caret - 3
    at = text.find(shown.removesuffix("..."), begin)
    return message, None if at < 0 or caret < 0 else asked.place(at + caret)


def _message(told: Any) -> str:
    """What DuckDB says, without the kind of error."""
    message = str(told).strip()
    return message.partition(" Error: ")[2] or message


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise OptionError(
            f"SQL around MATCH_RECOGNIZE is run by DuckDB ({error}): pip install 'stretto[sql]'; "
            "SELECT * FROM t MATCH_RECOGNIZE ( … ) alone runs without it"
        ) from error
    return duckdb
