"""``timeouts=`` on the random cases of SASE+: every cut, saved or not, against the reference."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from stretto.engines.api import Matches
from stretto.errors import QueryError
from stretto.frame import Section
from stretto.matching.matcher import Matcher
from stretto.query.passes.bind_sase import BoundSase
from stretto.reference.sase import evaluate_sase, measure
from stretto.reference.timeouts import evaluate_timeouts, patterns
from tests.cases import sase, variants
from tests.cases.choices import Seeded
from tests.cases.keeping import Case

__all__ = ["Case", "case", "check"]

#: The definition tries all patterns that one with options and groups stands for.
MOST_PATTERNS = 300

#: A row: start, variable of the last event, last time, events of each variable; of a match variable and time are None.
Row = tuple[int, str | None, Any, tuple[tuple[str, tuple[int, ...]], ...]]


def case(seed: int) -> Case:
    """A case from a seed: that of SASE+, or of its options and groups, with a window, and with all of its matches.

    >>> print(case(7).query)  # doctest: +ELLIPSIS
    PATTERN ... WITHIN ...
    """
    choose = Seeded(seed)
    while True:
        if choose.chance(60):
            one = sase.case(seed)
            text = sase.text_of(replace(one.query, limit=None, non_overlap=False))
        else:
            one = variants.case(seed)
            one = replace(one, events=one.events.slice(0, 7))
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
        # Event by event: those of all events may take long to write down.
        if all(len(patterns(query, events)) <= MOST_PATTERNS for events in range(one.events.num_rows + 1)):
            return found
        seed += 1_000_000


def check(one: Case, seed: int = 0) -> int:
    """Assert that the rows of a stream are those of the definition, in one order whatever the cuts; how many time out."""
    choose = random.Random(seed)
    query, size = one.compiled.bound, one.events.num_rows
    assert isinstance(query, BoundSase)
    until = _punctuation(one, query, choose)
    timeouts = evaluate_timeouts(query, one.events, until)
    matches = evaluate_sase(query, one.events)
    wanted: list[Row] = [(row.start, row.reached, row.expired, row.bindings) for row in timeouts]
    others: list[Row] = [(match.start, None, None, match.bindings) for match in matches]
    orders = []
    for cuts in ([], list(range(1, size)), sorted(choose.sample(range(size + 1), min(2, size)))):
        capacity = choose.choice([1, 1, 64])
        found = _found(one, query, cuts, until, capacity=capacity, saves=choose.random() < 0.5)
        rows = [row for _, row in found]
        shown = f"capacity {capacity}, cuts {cuts}, until {until}:\n{one}\nfound    {rows}\nexpected {wanted + others}"
        assert [row for row in rows if row[1]] == wanted, shown
        assert sorted(row[3] for row in rows if not row[1]) == sorted(row[3] for row in others), shown
        if len(cuts) == size - 1:
            assert [at for at, row in found if row[1]] == [row.closed for row in timeouts], shown
        orders.append(rows)
    assert orders[0] == orders[1] == orders[2], f"{one}\n{orders}"
    whole, *cut = (_pushed(one, cuts) for cuts in ([], list(range(1, size))))
    # NaN differs from itself, and is written the same.
    assert [list(map(repr, rows)) for rows in cut] == [list(map(repr, whole))], f"{one}\n{whole}\n{cut}"
    return len(wanted)


def _punctuation(one: Case, query: BoundSase, choose: random.Random) -> int | float | None:
    """A time from the last event on; or none."""
    window, time = query.window, query.schema.time
    if window is None or time is None or window.attribute != time or not one.events.num_rows or choose.random() < 0.3:
        return None
    last = measure(query, one.events.slice(one.events.num_rows - 1).to_pylist()[0])
    return last + type(last)(window.size * choose.choice([0, 0.5, 1, 2]))


def _found(
    one: Case, query: BoundSase, cuts: Sequence[int], until: int | float | None, *, capacity: int, saves: bool
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


def _rows(piece: Matches, marks: Sequence[frozenset[str]], query: BoundSase) -> Iterator[Row]:
    names = [one.variable for one in query.parsed.positive]
    assert query.window is not None
    for row in range(piece.start.size):
        held: dict[str, list[int]] = {name: [] for name in names}
        for at in range(piece.offset[row], piece.offset[row + 1]):
            for name in marks[piece.mark[at]] & set(names):
                held[name].append(int(piece.position[at]))
        bindings = tuple((name, tuple(own)) for name, own in held.items())
        told = piece.timed_out
        if told is None or told.reached[row] < 0:
            yield int(piece.start[row]), None, None, bindings
        else:
            [reached] = marks[told.reached[row]]
            expired = None if query.window.attribute is None else told.expired[row].item()
            yield int(piece.start[row]), reached, expired, bindings


def _pushed(one: Case, cuts: Sequence[int]) -> list[dict[str, Any]]:
    """The rows of a matcher that goes through a snapshot at each cut."""
    matcher = Matcher(one.compiled, capacity=1, timeouts=True)
    rows: list[dict[str, Any]] = []
    for begin, end in zip([0, *cuts], [*cuts, one.events.num_rows], strict=True):
        rows += matcher.push(one.events.slice(begin, end - begin)).to_pylist()
        matcher = Matcher(one.compiled, capacity=1, timeouts=True).restore(matcher.snapshot())
    return rows + matcher.finish().to_pylist()
