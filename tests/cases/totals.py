"""Counts, sums, the best matches and samples on the random cases of CEQL and SASE+: cut and saved, against the reference."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.columns.measured import as_measured, measured_type
from stretto.errors import LimitError, OptionError, QueryError, StrettoError
from stretto.events import Schema
from stretto.languages import ceql as ceql_language
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query, compile_query
from stretto.query import algebra as a
from stretto.query.passes.bind_totals import BoundBest, BoundSample, BoundTotals
from stretto.query.totals import Extent
from stretto.query.windows import Window
from tests.cases import ceql, sase, variants
from tests.cases.choices import Choices, Seeded
from tests.reference.totals import Overflow, Part, Undecided, best_of, parts, total_rows

__all__ = [
    "Case",
    "assert_alike",
    "assert_rows",
    "case",
    "case_of_ceql",
    "case_of_gaps",
    "case_of_keys",
    "case_of_sase",
    "case_of_variants",
    "check",
    "expected",
]


@dataclass(frozen=True)
class Case:
    """A query's text, events, and the roles of columns."""

    query: str
    schema: Schema
    events: pa.Table
    valuations: bool = False

    @property
    def compiled(self) -> Query:
        return compile_query(self.query, self.schema)

    def __repr__(self) -> str:
        rows = "\n  ".join(map(str, self.events.to_pylist()))
        roles = f"time={self.schema.time} stream={self.schema.stream} valuations={self.valuations}"
        return f"{self.query}\n  {roles}\n  {rows}"


# ---- Drawing


def case(seed: int) -> Case:
    """A case from a seed: that of CEQL or of SASE+, and what it asks of all matches.

    >>> print(case(7).query)  # doctest: +ELLIPSIS
    SELECT ...
    """
    if Seeded(seed).chance(65):
        return case_of_ceql(seed)
    return (case_of_variants if seed % 3 == 0 else case_of_sase)(seed)


def case_of_ceql(seed: int) -> Case:
    """A case of CEQL from a seed, and what it asks of all matches."""
    return _of_ceql(Seeded(seed), ceql.case(seed))


def case_of_gaps(seed: int) -> Case:
    """A case of CEQL with gaps, windows inside, and NOT at the ends, and what it asks of all matches."""
    return _of_ceql(Seeded(seed), ceql.timed_case(seed))


def case_of_keys(seed: int) -> Case:
    """A case of CEQL whose windows are of the events of each key."""
    choose, one = Seeded(seed), ceql.case(seed)
    own = re.split(r" (?:PARTITION BY|WITHIN|CONSUME BY|LIMIT) ", one.query)[0]
    key = choose.one_of(["[k]", "[k]", "[name]", "[k], [name]"])
    window = f" PARTITION BY {key} WITHIN {choose.integer(1, 6)} EVENTS"
    drawn = _of_ceql(choose, replace(one, query=own + window))
    text = re.split(r" (?:GROUP BY|EVERY|ORDER BY|SAMPLE) ", drawn.query)[0]
    if text.partition(" FROM ")[0].count("(") == 0:  # which has drawn a list
        text = f"SELECT COUNT(*) FROM {text.partition(' FROM ')[2]}"
    return replace(drawn, query=f"{text} EVERY {choose.integer(1, 4)} EVENTS")


def _of_ceql(choose: Seeded, one: ceql.Case) -> Case:
    text = one.query.partition(" LIMIT ")[0]
    query = ceql_language.parse(text)
    chosen = None if query.items is None else [item.variable for item in query.items]
    bound = list(a.variables(query.pattern)) if chosen is None else chosen
    several = a.holding_several(query.pattern)
    single = [name for name in bound if name not in several]
    select, rest = text.split(" FROM ", 1)
    strategy = "" if query.strategy == "ALL" else f"{query.strategy} "
    window = query.window if query.consume == "NONE" and not any(a.ends(query.pattern)) else None
    schema = Schema.of(one.events, time=one.time, stream=one.stream)
    scope = _scope(choose, query.partition_by, [f"{_name(name)}[{{}}]" for name in single], _slides(window, schema))
    terms = [f"{_name(name)}[{{}}]" for name in bound]
    kind = choose.integer(0, 9)
    if kind <= 6:
        items = _items(choose, terms, [f"COUNT({_name(name)})" for name in bound])
        if chosen:
            items = [f"COUNT(DISTINCT {', '.join(map(_name, chosen))})" if one == "COUNT(*)" else one for one in items]
            if not any("DISTINCT" in one for one in items):
                items.insert(0, f"COUNT(DISTINCT {', '.join(map(_name, chosen))})")
        elif chosen is not None:
            items = [one for one in items if "*" in one] or ["COUNT(*)"]
        named = (f"{one} AS n{number}" for number, one in enumerate(items))
        whole = f"SELECT {strategy}{', '.join(named)} FROM {rest}{scope}"
    else:
        whole = f"{select} FROM {rest}{scope}{_choice(choose, terms if kind < 9 else [])}"
    return Case(whole, schema, one.events, one.valuations)


def case_of_sase(seed: int) -> Case:
    """A case of SASE+ from a seed, and what it asks of all matches; its conditions are compiled."""
    choose = Seeded(seed)
    one = sase.case(seed)
    kind = choose.integer(0, 9)
    query = replace(one.query, limit=None, non_overlap=False, returns=None if kind <= 6 else one.query.returns)
    text = sase.text_of(query)
    single = [f"{one.variable}.{{}}" for one in query.positive if not one.many]
    ends = query.components[0].negated or query.components[-1].negated
    scope = _scope(choose, query.partition_by, single, [] if ends else _slides(query.window, one.schema))
    terms = [f"{one.variable}{'[]' * one.many}.{{}}" for one in query.positive]
    if kind <= 6:
        counts = [f"count({one.variable}{'[]' * one.many})" for one in query.positive]
        named = (f"{one} AS n{number}" for number, one in enumerate(_items(choose, terms, counts)))
        text += f"\nRETURN TOTAL {', '.join(named)}{scope}"
    else:
        text += f"{scope}{_choice(choose, terms if kind < 9 else [])}"
    return Case(text, one.schema, one.events)


def case_of_variants(seed: int) -> Case:
    """A case of SASE+ with options and groups from a seed, and what it counts and adds up."""
    choose = Seeded(seed)
    one = variants.case(seed)
    query = one.query
    lines = [line for line in query.text.splitlines() if line.startswith(("PATTERN", "WHERE", "WITHIN"))]
    single = [f"{one.variable}.{{}}" for one in query.positive if not one.many]
    scope = _scope(choose, query.partition_by, single, [] if "~" in lines[0] else _slides(query.window, one.schema))
    terms = [f"{one.variable}{'[]' * one.many}.{{}}" for one in query.positive]
    counts = [f"count({one.variable}{'[]' * one.many})" for one in query.positive]
    named = (f"{one} AS n{number}" for number, one in enumerate(_items(choose, terms, counts)))
    text = "\n".join([*lines, f"RETURN TOTAL {', '.join(named)}{scope}"])
    return Case(text, one.schema, one.events)


def _name(variable: str) -> str:
    return ">".join(f"`{part}`" for part in variable.split(">"))


#: Values over one event; the last overflows when a few are added up.
_VALUES = ("v", "v", "w", "t", "ts", "d", "{0} * 2 + {1}", "v * 2305843009213693952")
_GROUPED = ("v", "w", "name", "flag")


def _value(choose: Choices, term: str, *, only: Sequence[str] = _VALUES) -> str:
    """``b[v * 2 + t]``, or ``b[].v * 2 + b[].t`` in SASE+."""
    written = choose.one_of(
        [one for one in only if one != "d" or "[{}]" not in term]
    )  # which CEQL's events do not have
    if written.startswith("{"):
        written = written.format("v", "t")
    if "[{}]" in term:
        return term.format(written)
    names = ("ts", "v", "w", "t", "d")
    return " ".join(term.format(word) if word in names else word for word in written.split())


def _items(choose: Choices, terms: Sequence[str], counts: Sequence[str]) -> list[str]:
    found = ["COUNT(*)"] if choose.chance(70) or not terms else []
    for _ in range(choose.integer(0 if found else 1, 3) if terms else 0):
        function = choose.one_of(["COUNT", "SUM", "SUM", "AVG", "MIN", "MAX"])
        summed = function in ("SUM", "AVG")
        own = _value(choose, choose.one_of(terms), only=[one for one in _VALUES if one != "ts"] if summed else _VALUES)
        item = choose.one_of(counts) if function == "COUNT" and choose.chance(50) else f"{function}({own})"
        found.append(f"CAST({item} AS DOUBLE)" if function in ("COUNT", "SUM") and choose.chance(15) else item)
    return found


def _choice(choose: Choices, terms: Sequence[str]) -> str:
    """The best ones by a score, or a sample where there are no terms."""
    if not terms:
        return f" SAMPLE {choose.integer(1, 4)} SEED {choose.integer(0, 9)}"
    score = ""
    for _ in range(choose.integer(1, 2)):
        own = _value(choose, choose.one_of(terms), only=("v", "w", "t", "{0} * 2 + {1}"))
        factor = choose.one_of(["", "", "2 * ", "0.5 * "])
        score += (
            f"{choose.one_of([' + ', ' - ']) if score else ''}{factor}{choose.one_of(['SUM', 'SUM', 'COUNT'])}({own})"
        )
    return f" ORDER BY {score}{choose.one_of([' DESC', ' ASC', ''])} LIMIT {choose.integer(1, 4)}"


def _scope(choose: Choices, keys: Sequence[str], single: Sequence[str], slides: Sequence[str]) -> str:
    """GROUP BY and EVERY."""
    text = ""
    if choose.chance(35):
        groups = [f"[{name}]" for name in keys if choose.chance(50)]
        groups += [one.format(choose.one_of(_GROUPED)) for one in single if choose.chance(35)]
        text += f" GROUP BY {', '.join(dict.fromkeys(groups)) or '()'}"
    if choose.chance(30):
        return f"{text} EVERY EVENT"
    return f"{text} EVERY {choose.one_of(slides)}" if slides and choose.chance(70) else text


def _slides(window: Window | None, schema: Schema) -> list[str]:
    """How often windows of a size may begin."""
    if window is None or 0 in (window.events, window.number):
        return []
    if window.events is not None:
        return [f"{number} EVENTS" for number in range(1, 5)]
    if window.seconds is not None:
        return [f"{number} ms" for number in (500, 1000, 1500, 3000, 4000)]
    real = window.attribute is None or pa.types.is_floating(schema.attributes[window.attribute])
    return [] if real else list(map(str, range(1, 6)))


# ---- Judging


def expected(one: Case) -> list[dict[str, Any]] | list[Part]:
    """The reference's answer: rows of totals, or for the best and for samples the matches of each window or event and group.

    Raises
    ------
    Undecided, Overflow
        As the reference says.
    """
    bound = one.compiled.bound
    asked = bound.asked
    if isinstance(asked, BoundTotals):
        return total_rows(bound, one.events, valuations=one.valuations)
    if isinstance(asked, BoundBest):
        return best_of(bound, one.events, valuations=one.valuations)
    assert isinstance(asked, BoundSample)
    return parts(bound, one.events, valuations=one.valuations)


def assert_rows(one: Case, table: pa.Table, right: Sequence[Any] | None = None) -> None:
    """Assert that a result is the reference's (which ``right`` is, where it is known): rows in the order of their windows or events,
    those of one in any order of groups; doubles but for their last digits.

    Columns of ``start`` and ``end`` are compared where the result has them.
    """
    right = expected(one) if right is None else right
    bound = one.compiled.bound
    asked = bound.asked
    assert asked is not None
    if asked.scope.extent is Extent.WINDOW and not (bound.partition_by and asked.scope.panes.attribute is None):
        starts = table.column("window_start").cast(pa.int64()).to_pylist() if table.num_rows else []
        assert starts == sorted(starts), f"\n{one!r}\n{starts}"
    if isinstance(asked, BoundTotals):
        wanted = [_with_times(one, row) for row in right]
        names = [name for name in (wanted[0] if wanted else {}) if name in table.column_names]
        assert_alike([_values(row, names) for row in wanted], [_values(row, names) for row in table.to_pylist()], one)
        for name in (item.name for item in asked.items):
            assert name in table.column_names, f"\n{one!r}\n{table.schema}"
        return
    found = Counter(_place(row) for row in table.to_pylist())
    if isinstance(asked, BoundBest):
        best = Counter(_place_of(one, part, match) for part in right for match in part.matches)
        assert found == best, f"\n{one!r}\nexpected {best}\nfound    {found}"
        places = [_place(row) for row in table.to_pylist()]
        for part in right:
            ranked = [_place_of(one, part, match) for match in part.matches]
            own = [place for place in places if place in ranked]
            assert own == ranked, f"\n{one!r}\nexpected {ranked}\nfound    {own}"
        return
    left = Counter(found)
    for part in right:
        own = Counter(_place_of(one, part, match) for match in part.matches)
        drawn = sum((left & own).values())
        wanted_rows = min(asked.most, len(part.matches))
        # Groups of one window share places only where valuations of one match are apart.
        assert drawn >= wanted_rows, f"\n{one!r}\n{part}\nfound    {found}"
    known = Counter(_place_of(one, part, match) for part in right for match in part.matches)
    total = sum(min(asked.most, len(part.matches)) for part in right)
    assert not left - known, f"\n{one!r}\nno match  {left - known}"
    assert sum(found.values()) == total, f"\n{one!r}\n{total} rows, found {found}"


def _with_times(one: Case, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose windows are times of the column that they measure."""
    asked = one.compiled.bound.asked
    assert asked is not None
    panes = asked.scope.panes
    if panes is None or panes.attribute is None:
        return dict(row)
    kind = one.schema.attributes[panes.attribute]
    ends = {name: _time(row[name], kind) for name in ("window_start", "window_end")}
    return {**row, **ends}


def _time(ticks: int, kind: pa.DataType) -> Any:
    return as_measured(np.array([ticks]), np.zeros(1, np.bool_), measured_type(kind)).to_pylist()[0]


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row.get("window_start"), row["start"], row["end"], tuple(row["positions"])


def _place_of(one: Case, part: Part, match: Any) -> tuple[Any, ...]:
    asked = one.compiled.bound.asked
    assert asked is not None
    panes = asked.scope.panes
    begin = None
    if panes is not None:
        begin = (
            part.place[0] if panes.attribute is None else _time(part.place[0], one.schema.attributes[panes.attribute])
        )
    return begin, match.start, match.end, match.positions


def _values(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def assert_alike(right: list[tuple[Any, ...]], found: list[tuple[Any, ...]], one: Case) -> None:
    """Assert that the rows are the same, in any order: each has one like it."""
    rest = list(found)
    for row in right:
        like = next((other for other in rest if all(map(_alike, row, other))), None)
        assert like is not None, f"\n{one!r}\nexpected {right}\nfound    {found}"
        rest.remove(like)
    assert not rest, f"\n{one!r}\nexpected {right}\nfound    {found}"


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float | int) and not isinstance(right, bool):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9) or (left != left and right != right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return left == right
    if isinstance(left, list):
        return repr(left) == repr(right)  # of which one NaN equals another
    return type(left) is type(right) and left == right


#: What engines may refuse by name.
_REFUSED = (OptionError, QueryError, LimitError)


def check(one: Case, seed: int = 0) -> int:
    """Assert that the engine gives what the reference does, whatever the cuts; how many rows, and −1 where it is refused by name."""
    choose = random.Random(seed)
    query, size = one.compiled, one.events.num_rows
    try:
        query.program(valuations=one.valuations)
    except _REFUSED:
        return -1
    try:
        right = expected(one)
    except Undecided:
        return _refused(query, one)
    except Overflow:
        return _refused(query, one)
    each, some = range(1, size), _cuts(choose, size)
    every_other = range(1 + choose.randrange(2), size + 1, 2)
    count, rows = 0, None
    for cuts, saves in (([], []), (each, every_other), (some, choose.choice([[], [*some, size]]))):
        try:
            found = fed(query, one, cuts, saves, capacity=choose.choice([1, 64]))
        except _REFUSED as error:
            if "valuations=True" in str(error):
                return -1  # what the automaton cannot tell may still not matter to these events
            raise
        assert_rows(one, found, right)
        shown = found
        if isinstance(query.bound.asked, BoundTotals):  # in floating point the last digits may be others
            shown = found.select(
                [name for name in ("window_start", "end", *query.partition_by) if name in found.column_names]
            )
        rows = rows or shown.to_pylist()
        assert repr(shown.to_pylist()) == repr(rows), f"\n{one!r}\n{cuts} {saves}"
        count = found.num_rows
    return count


def _refused(query: Query, one: Case) -> int:
    """What has no answer is refused, and not answered."""
    try:
        found = fed(query, one, [], [], capacity=64)
    except StrettoError:
        return -1
    raise AssertionError(f"\n{one!r}\nan answer where there is none: {found.to_pylist()}")


def _cuts(choose: random.Random, size: int) -> list[int]:
    return sorted(choose.sample(range(size + 1), choose.choice([0, 1, 2]))) if size > 1 else []


def fed(query: Query, one: Case, cuts: Sequence[int], saves: Sequence[int], *, capacity: int) -> pa.Table:
    """What a matcher gives of the events in pieces, through a snapshot behind those that end there."""
    options: dict[str, Any] = {"valuations": one.valuations, "capacity": capacity}
    matcher = Matcher(query, **options)
    tables = []
    for begin, end in zip([0, *cuts], [*cuts, one.events.num_rows], strict=True):
        tables.append(matcher.push(one.events.slice(begin, end - begin)))
        if end in saves:
            matcher = Matcher(query, **options).restore(matcher.snapshot())
    tables.append(matcher.finish())
    return pa.concat_tables(tables)
