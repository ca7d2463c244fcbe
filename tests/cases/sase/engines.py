"""The engines against the reference evaluator on random SASE+ cases."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stretto.automata.nfab import build
from stretto.automata.shortcut import why_not
from stretto.engines.api import Matches, Program
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.programs import NfabProgram
from stretto.engines.select import program_for
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import compile_query
from stretto.query.passes.bind_sase import BoundSase
from tests.cases.sase.queries import SaseCase, text_of
from tests.reference.sase import evaluate_sase

__all__ = ["check", "found_by", "programs", "rows"]

#: A match: start, end, and the positions of each variable.
Found = tuple[int, int, tuple[tuple[str, tuple[int, ...]], ...]]


def rows(found: Iterable[Matches], program: Program, query: BoundSase) -> list[Found]:
    """Raw matches as comparable values, in the order in which they came."""
    marks = program.marks
    names = [one.variable for one in query.parsed.positive]
    result = []
    for matches in found:
        for row in range(matches.start.size):
            held: dict[str, list[int]] = {name: [] for name in names}
            for at in range(matches.offset[row], matches.offset[row + 1]):
                for name in marks[matches.mark[at]] & set(names):
                    held[name].append(int(matches.position[at]))
            bindings = tuple((name, tuple(held[name])) for name in names)
            result.append((int(matches.start[row]), int(matches.end[row]), bindings))
    return result


def found_by(program: Program, case: SaseCase, *, capacity: int, cuts: list[int]) -> list[Found]:
    """What a program finds when the events come in pieces that end at ``cuts``; of capacity 1 it forgets what it can at each."""
    runner = program.start(labels=True, capacity=capacity)
    table = case.events.select(list(case.bound.tested))
    result: list[Found] = []
    for begin, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        batch = table.slice(begin, end - begin).combine_chunks().to_batches()
        for one in batch:
            result += rows(runner.advance(one), program, case.bound)
        if capacity == 1 and isinstance(runner, NfabRunner):
            runner.forget()
    return result + rows(runner.finish(), program, case.bound)


def through_snapshots(case: SaseCase, cuts: list[int]) -> list[dict[str, Any]]:
    """Rows of a matcher that is saved and restored at each cut."""
    query = compile_query(text_of(case.query), case.schema)
    matcher = Matcher(query, capacity=1)
    result: list[dict[str, Any]] = []
    table = case.events
    for begin, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        result += matcher.push(table.slice(begin, end - begin)).to_pylist()
        matcher = Matcher(query, capacity=1).restore(matcher.snapshot())
    return result + matcher.finish().to_pylist()


def _check_snapshots(case: SaseCase) -> None:
    """Raise an AssertionError unless a matcher that goes through a snapshot before each event gives the rows of one that does not."""
    whole = through_snapshots(case, [])
    cut = through_snapshots(case, list(range(1, case.events.num_rows)))
    # NaN differs from itself, and is written the same.
    assert list(map(repr, cut)) == list(map(repr, whole)), f"{text_of(case.query)}\n{case.events.to_pylist()}"


def programs(case: SaseCase) -> dict[str, Program]:
    """Everything that may run the query."""
    found: dict[str, Program] = {
        "merged": NfabProgram(case.bound, merges=True),
        "basic": NfabProgram(case.bound, merges=False),
    }
    if not why_not(build(case.bound)):
        found["tecs"] = program_for(case.bound, valuations=False)
    return found


def expected(case: SaseCase) -> list[Found]:
    """What the definition says."""
    return [(match.start, match.end, match.bindings) for match in evaluate_sase(case.bound, case.events)]


def check(case: SaseCase, seed: int = 0) -> int:
    """Raise an AssertionError unless all engines agree with the definition on a case; how many matches it has."""
    _check_snapshots(case)
    choose = random.Random(seed)
    wanted = expected(case)
    limit = case.bound.parsed.limit
    for name, program in programs(case).items():
        capacity = choose.choice([1, 1, 64])
        size = case.events.num_rows
        cuts = sorted(choose.sample(range(size + 1), choose.choice([0, 1, 2]))) if size else []
        got = found_by(program, case, capacity=capacity, cuts=cuts)
        shown = f"{name}, capacity {capacity}, cuts {cuts}:\n{text_of(case.query)}\n{case.events.to_pylist()}"
        if limit is not None:
            _same_but_for_ties(got, wanted, case, shown)
        else:
            missing = sorted(set(wanted) - set(got))
            more = sorted(set(got) - set(wanted))
            assert sorted(got) == sorted(wanted), f"{shown}\nmissing {missing}\nwrong {more}\n"
    return len(wanted)


def _same_but_for_ties(got: list[Found], wanted: list[Found], case: SaseCase, shown: str) -> None:
    """LIMIT: matches that one event completes and that have the same start may stand for each other.

    The end of a repetition completes matches with several ends, of which each may stand for another; all are matches without LIMIT.
    """
    parsed = case.bound.parsed
    columns = slice(0, 1) if any(one.only for one in parsed.components) else slice(0, 2)
    assert sorted(one[columns] for one in got) == sorted(one[columns] for one in wanted), f"{shown}\n{got}\n{wanted}"
    assert len(set(got)) == len(got), shown
    whole = evaluate_sase(replace(case.bound, parsed=replace(parsed, limit=None)), case.events)
    assert set(got) <= {(match.start, match.end, match.bindings) for match in whole}, f"{shown}\n{got}"
