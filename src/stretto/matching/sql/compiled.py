"""``stretto.compile_sql``: what a SQL statement with ``MATCH_RECOGNIZE`` means and how it runs, without running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import QueryError
from stretto.events import as_table
from stretto.explaining import notebook
from stretto.explaining.dot import Drawing
from stretto.explaining.rows import draw_clauses, explain_clause
from stretto.explaining.text import section
from stretto.languages.sql import Clause, Statement, read_statement
from stretto.matching.input.files import are_files, open_files
from stretto.matching.sql.run import bound_clauses
from stretto.query.row_pattern import BoundRows, RowQuery

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class SqlQuery:
    """A SQL statement with ``MATCH_RECOGNIZE`` clauses: immutable, printable, and to be looked at before it runs.

    Made by :func:`stretto.compile_sql`. :func:`stretto.sql` runs the text.

    >>> import stretto
    >>> query = stretto.compile_sql("SELECT * FROM e MATCH_RECOGNIZE (ORDER BY t PATTERN (A B) DEFINE B AS x < PREV(x))")
    >>> print(str(query)[:15])
    SELECT * FROM e
    """

    def __init__(
        self,
        statement: Statement,
        bound: Mapping[Clause, BoundRows],
        around: str,
        plan: Callable[[BoundRows], str] | None = None,
    ) -> None:
        """``around`` names what runs the SQL around the clauses; ``plan`` says how it runs a clause, where that is told."""
        self._statement, self._bound, self._around, self._plan = statement, bound, around, plan

    @property
    def text(self) -> str:
        """The statement."""
        return self._statement.text

    @property
    def clauses(self) -> tuple[RowQuery, ...]:
        """Its clauses as values, in the order in which they run."""
        return tuple(one.parsed for one in self._statement.clauses)

    def explain(self) -> str:
        """What each clause means and how it is matched: pattern, automaton, conditions by how they are computed, and the cost.

        >>> import stretto
        >>> text = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES A.x AS x PATTERN (A B+) DEFINE B AS x > PREV(x))"
        >>> print(stretto.compile_sql(text, t={"d": "int64", "x": "double"}).explain().splitlines()[1])
        clause     line 1: MATCH_RECOGNIZE over t
        """
        names = {clause: f"matched_{number}" for number, clause in enumerate(self._statement.clauses, 1)}
        parts = [section("query", self.text.strip())]
        for clause in self._statement.clauses:
            with self._statement.placing(clause):
                means = explain_clause(clause.parsed, self._bound.get(clause))
            parts += [section("clause", self._title(clause)), means]
            if self._plan is not None:
                parts.append(section("plan", self._plan(self._bound[clause])))
        rest = " ".join(str(self._statement.rest(names)).split())
        alone = self._statement.only is not None and self._plan is None
        parts.append(
            section("around", "nothing: the clause is the statement" if alone else f"{self._around} runs: {rest}")
        )
        return "\n".join(parts)

    def draw(self) -> Drawing:
        """The automata of the clauses as a Graphviz graph that shows itself as SVG in a notebook; edges tell what is preferred."""
        return draw_clauses([(self._title(one), one.parsed) for one in self._statement.clauses])

    def _title(self, clause: Clause) -> str:
        line = self.text.count("\n", 0, clause.body.start) + 1
        operand = " ".join(self.text[clause.operand.start : clause.operand.end].split())
        what = "MATCH_RECOGNIZE" if clause.written is None else "WINDOW"
        return f"line {line}: {what} over {operand}"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<stretto.SqlQuery {self.text!r}>"

    def _repr_html_(self) -> str:
        return notebook.html([("statement", self.text.strip())], self.explain, self.draw)


@check_arguments
def compile_sql(
    text: str, /, *, con: DuckDBPyConnection | None = None, time_unit: str | None = None, **tables: Any
) -> SqlQuery:
    """Read a SQL statement with ``MATCH_RECOGNIZE`` clauses, check it against its tables, and run nothing.

    Parameters
    ----------
    text
        One statement, as :func:`stretto.sql` takes it.
    con
        A DuckDB connection, whose tables the statement may read as well.
    time_unit
        What the numbers count by which clauses order their rows, as :func:`stretto.sql` takes it.
    tables
        By name: tables or files, as :func:`stretto.sql` takes them, or only what they look like: a ``pyarrow.Schema``, or a
        mapping of columns to types. If there are none, columns are not checked.

    Returns
    -------
    SqlQuery
        The statement as a value: ``explain()`` says what it means and how it runs, ``draw()`` shows the automata.

    Raises
    ------
    QueryError
        The statement is wrong, with the place in it, or it has no clause.
    OptionError
        DuckDB is needed to read the SQL around the clauses, and not installed.

    Examples
    --------
    >>> import stretto
    >>> query = stretto.compile_sql("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY d PATTERN (A B+) DEFINE B AS x > PREV(x))")
    >>> str(query.clauses[0].pattern)
    'A B+'
    """
    statement = read_statement(text, time_unit=time_unit)
    if not statement.clauses:
        raise QueryError(
            "there is no MATCH_RECOGNIZE in the statement", text=text, hint="stretto.compile reads CEQL and SASE+"
        )
    bound = (
        bound_clauses(statement, {name: _empty(one) for name, one in tables.items()}, con)
        if tables or con is not None
        else {}
    )
    return SqlQuery(statement, bound, "DuckDB")


def _empty(table: Any) -> pa.Table:
    """A table without rows."""
    if isinstance(table, pa.Schema):
        return table.empty_table()
    if isinstance(table, Mapping) and table and all(isinstance(one, str | pa.DataType) for one in table.values()):
        return pa.schema(table).empty_table()
    schema: pa.Schema = open_files(table).schema if are_files(table) else as_table(table).schema
    return schema.empty_table()
