"""Random small ``MATCH_RECOGNIZE`` clauses and tables, and the reference evaluator's answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from stretto.column_types import with_fields
from stretto.errors import DataError, LimitError, QueryError
from stretto.languages.match_recognize import parse
from stretto.matching.sql.row_pattern_table import recognize
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import BoundRows
from tests.cases.choices import Choices, Drawn, Seeded
from tests.reference.match_recognize import evaluate

__all__ = ["Case", "answer", "bound", "case", "check", "compared", "drawn", "expected", "pattern_of"]

#: Rows that the reference may try for one match: a case takes some milliseconds.
MOST_STEPS = 2_000


@dataclass(frozen=True)
class Case:
    """A clause's text, its rows, and where a stream of them is cut."""

    clause: str
    rows: pa.Table
    cuts: tuple[int, ...]
    capacity: int

    def __repr__(self) -> str:
        rows = "\n  ".join(map(str, self.rows.to_pylist()))
        return f"{self.clause}\n  cuts={self.cuts} capacity={self.capacity}\n  {rows}"


def case(seed: int, *, windows: bool = True) -> Case:
    """A case from a seed; with ``windows`` some are definitions of windows.

    >>> print(case(7).clause)  # doctest: +ELLIPSIS
    MATCH_RECOGNIZE (...
    """
    return _case(Seeded(seed), windows)


def drawn() -> Any:
    """A Hypothesis strategy for cases."""
    return st.composite(lambda draw: _case(Drawn(draw)))()


def bound(given: Case) -> BoundRows:
    """The clause of a case, bound to its rows."""
    return bind(parse(given.clause, window=True), given.rows.schema)


def answer(given: Callable[[BoundRows, pa.Table], pa.Table], one: Case) -> list[str] | str:
    """What an evaluator gives for a case: its rows as texts, or the name of its error.

    In texts NaN is equal to itself. Doubles have 12 digits: deviations are summed up in several ways.
    """
    try:
        found = given(bound(one), one.rows)
    except DataError as error:
        return type(error).__name__
    assert found.schema.equals(bound(one).output)
    return list(map(repr, as_texts(found)))


def as_texts(table: pa.Table) -> list[dict[str, Any]]:
    """Rows whose doubles are texts."""
    return [{name: _shown(cell) for name, cell in row.items()} for row in table.to_pylist()]


def _shown(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_shown(one) for one in cell]
    return f"{cell + 0.0:.12g}" if isinstance(cell, float) else cell


def expected(one: Case) -> list[str] | str | None:
    """The answer of the reference; ``None``: that takes too long."""
    try:
        return answer(lambda query, rows: evaluate(query, rows, most_steps=MOST_STEPS), one)
    except LimitError:
        return None


def compared(one: Case, wanted: list[str] | str | None) -> str:
    """Check that the engine gives what the reference gives, or refuses the clause by name; what it gave, in a word."""
    if wanted is None:
        return "long"
    try:
        found = answer(lambda query, table: recognize(query, table, capacity=one.capacity, piece=one.capacity), one)
    except QueryError:
        return "refused"
    assert found == wanted, f"{found} != {wanted}\n{one}"
    return "error" if isinstance(wanted, str) else "rows" if wanted else "nothing"


def check(one: Case, seed: int) -> int:
    """Check the engine, and that the answer to all partitions is those to each of them, one after the other. How many rows it has."""
    found = expected(one)
    compared(one, found)
    keys = bound(one).parsed.partition_by
    if found is None or isinstance(found, str) or not keys:
        return 0 if found is None or isinstance(found, str) else len(found)
    parts: dict[str, list[int]] = {}
    for at, row in enumerate(with_fields(one.rows, keys).select(list(keys)).to_pylist()):
        parts.setdefault(repr(row), []).append(at)
    apart = [Case(one.clause, one.rows.take(part), (), 1) for part in parts.values()]
    together = [row for part in apart for row in expected(part) or ()]
    assert found == together, f"{found} != {together}\n{one}"
    return len(found)


# ---- Clauses


VARIABLES = ("A", "B", "C", "D")


def _case(choose: Choices, windows: bool = True) -> Case:
    partition = choose.one_of(["", "PARTITION BY k ", "PARTITION BY k ", "PARTITION BY K, b ", "PARTITION BY f.g.S "])
    order = choose.one_of(
        [
            "t",
            "t DESC",
            "ts",
            "t NULLS FIRST, y",
            "t DESC NULLS FIRST",
            "y DESC, t",
            "s, t",
            "ts, x DESC",
            "f.n DESC, t",
        ]
    )
    excludes = choose.chance(20)
    pattern = pattern_of(choose, choose.integer(0, 3), excludes)
    variables = [one for one in VARIABLES if one in pattern.replace("PERMUTE", "")]
    if not variables:
        pattern, variables = f"A? {pattern}", ["A"]
    subsets = []
    if choose.chance(30):
        subsets.append(("U", [one for one in variables if choose.chance(60)] or variables[:1]))
    labels = [*variables, *(name for name, _ in subsets)]
    rows = choose.one_of(
        ["ONE ROW", "ONE ROW", "ALL ROWS", "ALL ROWS", "ALL ROWS ! SHOW EMPTY MATCHES", "ALL ROWS ! OMIT EMPTY MATCHES"]
        + ["ALL ROWS ! WITH UNMATCHED ROWS"] * (2 * ("{-" not in pattern))
    )
    rows = rows.replace(" !", " PER MATCH") if "!" in rows else f"{rows} PER MATCH"
    skip = choose.one_of(
        ["", "PAST LAST ROW", "PAST LAST ROW", "TO NEXT ROW", "TO NEXT ROW", "TO FIRST", "TO LAST", "TO LAST"]
    )
    if skip in ("TO FIRST", "TO LAST"):
        skip = f"{choose.one_of([skip, 'TO'])} {choose.one_of([*labels, labels[-1]])}"
    measures = [f"{_measure(choose, labels)} AS m{at}" for at in range(choose.integer(0, 3))]
    define = [f"{one} AS {_condition(choose, one, labels, 1)}" for one in variables if choose.chance(75)]
    within = " WITHIN INTERVAL '3' SECOND" if order.startswith("ts") and choose.chance(50) else ""
    search = ""
    if windows and choose.chance(25) and "MATCH_NUMBER" not in f"{measures} {define}":  # a window's definition
        end = choose.one_of(["UNBOUNDED FOLLOWING", "UNBOUNDED FOLLOWING", "2 FOLLOWING", "CURRENT ROW"])
        rows, within = f"ROWS BETWEEN CURRENT ROW AND {end}", ""
        search = choose.one_of(["", "INITIAL ", "SEEK ", "SEEK "])
        pattern = pattern.replace("^", "A").replace("$", "A")
    text = (
        f"MATCH_RECOGNIZE ({partition}ORDER BY {order}\n"
        + (f"  MEASURES {', '.join(measures)}\n" if measures else "")
        + f"  {rows}{' AFTER MATCH SKIP ' + skip if skip else ''}\n"
        + f"  {search}PATTERN ({pattern}){within}\n"
        + "".join(f"  SUBSET {name} = ({', '.join(members)})\n" for name, members in subsets)
        + (f"  DEFINE {', '.join(define)}" if define else "")
        + ")"
    )
    table = _rows(choose)
    cuts = tuple(sorted({choose.integer(0, table.num_rows) for _ in range(choose.integer(0, 4))}))
    return Case(text, table, cuts, choose.one_of([1, 1 << 12]))


def pattern_of(choose: Choices, depth: int, excludes: bool) -> str:
    """A pattern of the variables; ``excludes``: some of its parts are not shown."""
    kind = choose.integer(0, 12) if depth else choose.integer(0, 2)
    if kind <= 1:
        return choose.one_of(VARIABLES)
    if kind == 2:
        return choose.one_of([*VARIABLES, *VARIABLES, "()", "^", "$"])
    inner = [pattern_of(choose, depth - 1, excludes) for _ in range(choose.integer(2, 3))]
    if kind <= 5:
        return " ".join(f"({one})" if "|" in one else one for one in inner)
    if kind <= 7:
        return f"({' | '.join(inner)})"
    if kind == 8:
        return f"PERMUTE({', '.join(inner)})"
    if kind == 9 and excludes:
        return f"{{- {inner[0]} -}}"
    sign = choose.one_of(["*", "+", "?", "*", "+", "{2}", "{0,1}", "{1,2}", "{,2}", "{2,}", "{0,3}"])
    return f"({inner[0]}){sign}{choose.one_of(['', '', '?'])}"


def _column(choose: Choices, label: str) -> str:
    return (
        f"{label}.{choose.one_of(['x', 'x', 'y', 't', 'f.n'])}"
        if label
        else choose.one_of(["x", "x", "y", "X", "t", "F.n"])
    )


def _navigation(choose: Choices, labels: list[str], measures: bool = False) -> str:
    """A number of one row."""
    label = choose.one_of(["", "", *labels])
    column = _column(choose, label)
    final = choose.one_of(["", "", "FINAL ", "RUNNING "]) if measures else choose.one_of(["", "", "", "RUNNING "])
    inner = f"{final}{choose.one_of(['FIRST', 'LAST'])}({column}{choose.one_of(['', '', ', 1', ', 2', ', 0'])})"
    outer = f"{choose.one_of(['PREV', 'NEXT', 'PREV'])}({{}}{choose.one_of(['', '', ', 2', ', 0'])})"
    return choose.one_of([column, column, inner, outer.format(column), outer.format(column), outer.format(inner)])


def _total(choose: Choices, labels: list[str], measures: bool = False) -> str:
    """A number of several rows."""
    label = choose.one_of(["", *labels])
    column = _column(choose, label)
    final = choose.one_of(["", "", "FINAL ", "RUNNING "]) if measures else ""
    function = choose.one_of(["sum", "avg", "min", "max", "count", "sum", "count"])
    if choose.chance(25):
        counted = final + choose.one_of(["count(*)", f"count({label}.*)" if label else "count(*)"])
        return choose.one_of([counted, counted, "MATCH_NUMBER()"])
    argument = choose.one_of([column, column, f"{column} * 2", f"{column} + MATCH_NUMBER()"])
    distinct = "DISTINCT " if choose.chance(15) else ""
    return f"{final}{function}({distinct}{argument})"


def _value(choose: Choices, labels: list[str], measures: bool = False) -> str:
    one = _total(choose, labels, measures) if choose.chance(25) else _navigation(choose, labels, measures)
    kind = choose.integer(0, 7)
    if kind == 0:
        return f"{one} {choose.one_of(['+', '-', '*', '/', '%'])} {_navigation(choose, labels, measures)}"
    if kind == 1:
        return f"COALESCE({one}, 1)"
    if kind == 2:
        return f"{choose.one_of(['abs', 'abs', 'sign', 'floor', 'round', 'sqrt', 'exp'])}({one})"
    if kind == 3:
        other = _navigation(choose, labels, measures)
        return f"{choose.one_of(['least', 'greatest', 'power', 'mod', 'nullif'])}({one}, {other})"
    return one


def _condition(choose: Choices, own: str, labels: list[str], depth: int, measures: bool = False) -> str:
    kind = choose.integer(0, 14 if depth else 10)
    if kind >= 11:
        inner = [_condition(choose, own, labels, depth - 1, measures) for _ in range(2)]
        return choose.one_of([f"({inner[0]} AND {inner[1]})", f"({inner[0]} OR {inner[1]})", f"NOT ({inner[0]})"])
    value = _value(choose, labels, measures)
    number = choose.integer(-1, 3)
    if kind <= 3:
        return f"{value} {choose.one_of(['<', '>', '<=', '>=', '=', '<>'])} {number}"
    if kind <= 5:
        return f"{value} {choose.one_of(['<', '>', '<=', '>='])} {_value(choose, labels, measures)}"
    if kind == 6:
        return f"{value} IS {choose.one_of(['', 'NOT '])}NULL"
    if kind == 7:
        return f"{value} {choose.one_of(['', 'NOT '])}BETWEEN {number} AND {_navigation(choose, labels, measures)}"
    if kind == 8:
        return f"{value} {choose.one_of(['', 'NOT '])}IN ({number}, {number + 1})"
    label = choose.one_of(["", "", *labels])
    dot = f"{label}." if label else ""
    return choose.one_of(
        [
            f"{dot}s LIKE 'u%'",
            f"{dot}f.g.s = 'u'",
            f"{dot}s NOT IN ('u', 'v')",
            f"PREV({dot}s) <> {dot}s",
            f"{dot}b",
            f"NOT {dot}b",
            f"CLASSIFIER({label}) = '{choose.one_of(labels)}'",
            f"{choose.one_of(['PREV', 'PREV', 'NEXT'])}(CLASSIFIER({label})) = '{choose.one_of(labels)}'",
            f"{_classifier(choose, label)} <> {_classifier(choose, choose.one_of(['', *labels]))}",
            f"{_chosen(choose, dot, label)} {choose.one_of(['=', '<>', '<', '>='])} 'u'",
            f"{choose.one_of(['stddev', 'var_pop', 'stddev_pop', 'variance', 'avg'])}"
            f"({choose.one_of(['', 'DISTINCT '])}{dot}{choose.one_of(['x', 'y'])}) {choose.one_of(['<', '>'])} 0.7",
            f"{choose.one_of(['bool_and', 'bool_or'])}({dot}x {choose.one_of(['>', '<>'])} 0)",
            f"count_if({dot}x > {choose.one_of(['0', 'MATCH_NUMBER()'])}) {choose.one_of(['=', '>'])} 1",
            f"sum(CASE CLASSIFIER({label}) WHEN '{choose.one_of(labels)}' THEN {dot}x ELSE MATCH_NUMBER() END) > 1",
            f"count(DISTINCT CLASSIFIER({label})) {choose.one_of(['<', '='])} 2",
            f"array_agg({dot}s) IS NOT NULL",
            f"{value} IS {choose.one_of(['', 'NOT '])}DISTINCT FROM {_value(choose, labels, measures)}",
            f"{value} {choose.one_of(['', 'NOT '])}IN ({_navigation(choose, labels, measures)}, {number})",
            f"{dot}ts - {choose.one_of(['PREV', 'FIRST', 'LAST'])}({dot}ts) > INTERVAL '1' SECOND",
            f"ts < FIRST({dot}ts) + INTERVAL '{choose.one_of(['3 SECOND', '1 MONTH'])}".replace("3 ", "3' ").replace(
                "1 ", "1' "
            ),
            f"date_diff('{choose.one_of(['second', 'minute'])}', FIRST({dot}ts), ts) > 1",
            f"extract({choose.one_of(['second', 'dow'])} FROM {dot}ts) > 3",
            f"date_trunc('minute', {dot}ts) = date_trunc('minute', ts)",
            f"{choose.one_of(['starts_with(#, ', 'regexp_like(#, ', 'trim(#) IN ('])}'u')".replace("#", f"{dot}s"),
            f"substr({dot}s, {choose.one_of([1, 2, -1])}) = 'w'",
            f"{choose.one_of(['', 'TRY_'])}CAST({dot}{choose.one_of(['x', 'b'])} AS {choose.one_of(['bigint', 'double'])}) > 0",
            f"TRY_CAST({dot}{choose.one_of(['y', 's'])} AS bigint) IS NULL",
            f"{dot}x::{choose.one_of(['varchar', 'integer', 'boolean::varchar'])}::varchar > '0'",
            f"IF({dot}b, {dot}x, {number}) > 0",
            "TRUE",
            f"CASE WHEN {dot}b THEN {dot}x ELSE 1 END > 0",
            f"count(DISTINCT {dot}s) < 2",
        ]
    )


def _classifier(choose: Choices, label: str) -> str:
    """The variable of some row."""
    inner = f"{choose.one_of(['FIRST', 'LAST'])}(CLASSIFIER({label}){choose.one_of(['', ', 1'])})"
    outer = f"{choose.one_of(['PREV', 'NEXT'])}({inner}{choose.one_of(['', ', 2', ', 0'])})"
    return choose.one_of([f"CLASSIFIER({label})", inner, outer, f"max(CLASSIFIER({label}))"])


def _chosen(choose: Choices, dot: str, label: str) -> str:
    """A string of one of several rows."""
    key = choose.one_of([f"{dot}x", f"{dot}y", f"{dot}ts", f"CLASSIFIER({label})"])
    return choose.one_of(
        [
            f"{choose.one_of(['min', 'max', 'any_value'])}({dot}s)",
            f"{choose.one_of(['min_by', 'max_by'])}({dot}s, {key})",
            f"max_by(CLASSIFIER({label}), {dot}{choose.one_of(['x', 'y'])})",
        ]
    )


def _measure(choose: Choices, labels: list[str]) -> str:
    kind = choose.integer(0, 11)
    if kind <= 3:
        return _value(choose, labels, measures=True)
    if kind <= 5:
        return _total(choose, labels, measures=True)
    label = choose.one_of(["", "", *labels])
    dot = f"{label}." if label else ""
    final = choose.one_of(["", "", "FINAL ", "RUNNING "])
    return choose.one_of(
        [
            "MATCH_NUMBER()",
            f"CLASSIFIER({label})",
            f"CLASSIFIER({label})",
            f"{choose.one_of(['PREV', 'NEXT'])}(CLASSIFIER({label}))",
            f"{final}FIRST(CLASSIFIER({label}), 1)",
            f"{final}array_agg({dot}{choose.one_of(['x', 's', 'ts'])})",
            f"{final}array_agg(CLASSIFIER({label}))",
            f"{final}min_by({dot}s, {dot}x)",
            f"{final}max_by({dot}x, {dot}y)",
            f"{final}{choose.one_of(['min', 'max', 'any_value'])}({dot}{choose.one_of(['s', 'ts', 'b'])})",
            f"{final}{choose.one_of(['stddev', 'var_pop', 'stddev_pop', 'variance'])}({dot}x)",
            f"{final}{choose.one_of(['bool_and', 'bool_or', 'count_if'])}({dot}x > 0)",
            f"{final}count(DISTINCT {dot}s)",
            f"{final}sum({choose.one_of(['', '', 'DISTINCT '])}{dot}d{choose.one_of(['', '', ' * 2'])})"
            f"{choose.one_of(['', ' * 2', ' > 1.5', ' > y'])}",
            f"{dot}{choose.one_of(['s', 'ts', 'b'])}",
            f"{final}LAST({dot}ts) - {final}FIRST({dot}ts)",
            _condition(choose, "", labels, 1, measures=True),
            f"{choose.one_of(['day', 'year', 'hour', 'week'])}({dot}ts)",
            f"TRY_CAST({dot}s AS bigint)",
            f"upper(replace({dot}s, 'u', 'ab'))",
            f"to_unixtime({final}LAST({dot}ts))",
            f"{dot}ts + INTERVAL '13' MONTH",
        ]
    )


# ---- Rows


_NESTED = pa.struct([("n", pa.int64()), ("g", pa.struct([("s", pa.string())]))])


def _rows(choose: Choices) -> pa.Table:
    """Few rows of few values: NULLs, ties in every order, and several partitions."""
    size = choose.one_of([0, 1, 3, 5, 7, 8, 8, 9])
    start = datetime(2020, 1, 1)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([choose.one_of(values) for _ in range(size)], kind)

    names = column(["u", "v", "uw", None], pa.string())
    return pa.table(
        {
            "k": column(["p", "p", "q", None] if choose.chance(60) else ["p"], pa.string()),
            "t": column([0, 1, 2, 3, 4, 5, None], pa.int64())
            if choose.chance(60)
            else pa.array(range(size), pa.int64()),
            "ts": column([start + timedelta(seconds=at) for at in range(6)], pa.timestamp("us")),
            "x": column([-1, 0, 1, 2, 3, None], pa.int64()),
            "y": column([0.0, 0.5, 1.0, 2.25, None, float("nan")], pa.float64()),
            "s": names.dictionary_encode() if choose.chance(30) else names,
            "b": column([True, False, None], pa.bool_()),
            "d": column([None, *map(Decimal, ("-0.25", "0.00", "1.10", "2.00"))], pa.decimal128(12, 2)),
            "f": column(
                [None, *({"n": n, "g": g} for n in (0, 1, None) for g in (None, {"s": "u"}, {"s": None}))], _NESTED
            ),
        }
    )
