"""``timeouts=`` on the random cases of CEQL and SASE+: every cut, saved or not, against the reference."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.engines.api import Matches
from stretto.errors import QueryError
from stretto.events import Schema
from stretto.frame import Section
from stretto.languages.ceql import parse
from stretto.matching.api.matcher import Matcher
from stretto.query.passes.bind import AnyBound
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.query import Consume
from tests.cases import ceql, sase, variants
from tests.cases.choices import Seeded
from tests.cases.keeping import Case
from tests.reference.ceql import evaluate
from tests.reference.sase import evaluate_sase
from tests.reference.timeouts import evaluate_timeouts, longest, measure

__all__ = ["Case", "case", "check"]

#: The definition tries all patterns that one with options and groups stands for.
MOST_PATTERNS = 300

#: … and all partial matches of so many events.
MOST_EVENTS = 7

#: A row: start, variable of the last event, last time, positions, events of each variable; of a match variable and time are None.
Row = tuple[int, str | None, Any, tuple[int, ...], tuple[tuple[str, tuple[int, ...]], ...]]


def case(seed: int) -> Case:
    """A case from a seed, with a window, and with all of its matches.

    >>> print(case(7).query)  # doctest: +ELLIPSIS
    PATTERN ... WITHIN ...
    """
    return (case_of_ceql if Seeded(seed).chance(50) else case_of_sase)(seed)


def case_of_ceql(seed: int) -> Case:
    """A case of CEQL from a seed."""
    choose = Seeded(seed)
    one = choose.one_of([ceql.case, ceql.timed_case])(seed)
    text = one.query.partition(" LIMIT ")[0]
    for mode in Consume:
        text = text.replace(f" CONSUME BY {mode}", "")
    if parse(text).window is None:
        text += f" WITHIN {choose.one_of(['1 EVENTS', '2 EVENTS', '2 [t]', '5 [t]'])}"
    roles: dict[str, Any] = {"time": one.time, "stream": one.stream}
    events = one.events.slice(0, MOST_EVENTS)
    if events.num_rows and choose.chance(70):
        events = pa.concat_tables([events, _behind(events)])
    return Case(text, Schema.of(one.events, **roles), events)


def _behind(events: pa.Table) -> pa.Table:
    """The last event once more, behind all windows."""
    last = events.slice(events.num_rows - 1)
    for name, more in (("t", pa.scalar(20, last.schema.field("t").type)), ("ts", pa.scalar(10_000, pa.duration("ms")))):
        last = last.set_column(last.column_names.index(name), name, pc.add(last.column(name), more))
    return last


def case_of_sase(seed: int) -> Case:
    """A case of SASE+ from a seed, or of its options and groups."""
    choose = Seeded(seed)
    while True:
        if choose.chance(60):
            one = sase.case(seed)
            text = sase.text_of(replace(one.query, limit=None, non_overlap=False))
        else:
            one = variants.case(seed)
            one = replace(one, events=one.events.slice(0, MOST_EVENTS))
            text = re.sub(r"\n(LIMIT|OUTPUT|KEEP|AFTER).*", "", one.query.text)
        if one.query.window is None:
            body, returned, rest = text.partition("RETURN")
            text = f"{body}\nWITHIN {choose.integer(1, 6)} {choose.one_of(['EVENTS', '[t]'])}\n{returned}{rest}"
        found = Case(text, one.schema, one.events)
        try:
            query = found.compiled.bound
        except QueryError:
            seed += 1_000_000  # what stands at an end asks for a time
            continue
        assert isinstance(query, BoundSase)
        # Counted, not listed: of many events and nested groups there are millions.
        if sum(variants.ways(query.parsed.parts, longest(query, one.events.num_rows))) <= MOST_PATTERNS:
            return found
        seed += 1_000_000


def check(one: Case, seed: int = 0) -> int:
    """Assert that the rows of a stream are those of the definition, in one order whatever the cuts; how many time out."""
    choose = random.Random(seed)
    query, size = one.compiled.bound, one.events.num_rows
    until = _punctuation(one, query, choose)
    timeouts = evaluate_timeouts(query, one.events, until)
    wanted: list[Row] = [(row.start, row.reached, row.expired, row.positions, row.bindings) for row in timeouts]
    others = _matches(query, one.events)
    orders = []
    for cuts in ([], list(range(1, size)), sorted(choose.sample(range(size + 1), min(2, size)))):
        capacity = choose.choice([1, 1, 64])
        found = _found(one, query, cuts, until, capacity=capacity, saves=choose.random() < 0.5)
        rows = [row for _, row in found]
        shown = f"capacity {capacity}, cuts {cuts}, until {until}:\n{one}\nfound    {rows}\nexpected {wanted} {others}"
        assert [row for row in rows if row[1]] == wanted, shown
        assert sorted(_known(query, row) for row in rows if not row[1]) == others, shown
        if cuts == list(range(1, size)):
            assert [at for at, row in found if row[1]] == [row.closed for row in timeouts], shown
        orders.append(rows)
    assert orders[0] == orders[1] == orders[2], f"{one}\n{orders}"
    whole, *cut = (_pushed(one, cuts) for cuts in ([], list(range(1, size))))
    # NaN differs from itself, and is written the same.
    assert [list(map(repr, rows)) for rows in cut] == [list(map(repr, whole))], f"{one}\n{whole}\n{cut}"
    return len(wanted)


def _matches(query: AnyBound, events: pa.Table) -> list[Any]:
    """What is known of each match, sorted."""
    if isinstance(query, BoundSase):
        return sorted(match.bindings for match in evaluate_sase(query, events))
    return sorted((match.start, tuple(sorted(match.positions))) for match in evaluate(query, events))


def _known(query: AnyBound, row: Row) -> Any:
    """What is known of the match of a row: which variable holds which event is not a complex event's to say."""
    return row[4] if isinstance(query, BoundSase) else (row[0], row[3])


def _punctuation(one: Case, query: AnyBound, choose: random.Random) -> int | float | None:
    """A time from the last event on; or none."""
    window, time = query.window, query.schema.time
    if window is None or time is None or window.attribute != time or not one.events.num_rows or choose.random() < 0.3:
        return None
    last = measure(query, one.events.slice(one.events.num_rows - 1).to_pylist()[0])
    return last + type(last)(window.size * choose.choice([0, 0.5, 1, 2]))


def _found(
    one: Case,
    query: AnyBound,
    cuts: Sequence[int],
    until: int | float | None,
    *,
    capacity: int,
    saves: bool,
) -> list[tuple[int, Row]]:
    """The rows of a stream in pieces that end at ``cuts``, each with the last event of its piece."""
    program = one.compiled.program(timeouts=True)
    run = program.start(capacity=capacity)
    table = one.events.select(list(query.tested))
    found: list[tuple[int, Row]] = []
    for begin, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        for batch in table.slice(begin, end - begin).combine_chunks().to_batches():
            found += [(end - 1, row) for piece in run.advance(batch) for row in _rows(piece, program.marks, query)]
        if saves:
            section = Section()
            run.save(section)
            run = program.start(capacity=capacity)
            run.load(Section.of_bytes(section.to_bytes()))
    if until is not None:
        found += [(table.num_rows, row) for piece in run.reach(until) for row in _rows(piece, program.marks, query)]
    return found + [(table.num_rows, row) for piece in run.finish() for row in _rows(piece, program.marks, query)]


def _rows(piece: Matches, marks: Sequence[frozenset[str]], query: AnyBound) -> Iterator[Row]:
    names = [name for name, _ in query.selected]
    if isinstance(query, BoundSase):
        names = [one.variable for one in query.parsed.positive]
    assert query.window is not None
    for row in range(piece.start.size):
        held: dict[str, list[int]] = {name: [] for name in names}
        cells = range(piece.offset[row], piece.offset[row + 1])
        for at in cells:
            for name in marks[piece.mark[at]] & set(names):
                held[name].append(int(piece.position[at]))
        bindings = tuple((name, tuple(own)) for name, own in held.items())
        positions = tuple(int(piece.position[at]) for at in cells)
        told = piece.timed_out
        if told is None or told.reached[row] < 0:
            yield int(piece.start[row]), None, None, positions, bindings
        else:
            [reached] = marks[told.reached[row]]
            expired = None if query.window.attribute is None else told.expired[row].item()
            yield int(piece.start[row]), reached, expired, positions, bindings


def _pushed(one: Case, cuts: Sequence[int]) -> list[dict[str, Any]]:
    """The rows of a matcher that goes through a snapshot at each cut."""
    matcher = Matcher(one.compiled, capacity=1, timeouts=True)
    rows: list[dict[str, Any]] = []
    for begin, end in zip([0, *cuts], [*cuts, one.events.num_rows], strict=True):
        rows += matcher.push(one.events.slice(begin, end - begin)).to_pylist()
        matcher = Matcher(one.compiled, capacity=1, timeouts=True).restore(matcher.snapshot())
    return rows + matcher.finish().to_pylist()
