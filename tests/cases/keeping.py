"""KEEP and AFTER MATCH on the random cases of CEQL and SASE+: every machine, cut and saved, against the reference."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from stretto.engines.match_ops.after_match_skip import KeptProgram
from stretto.engines.programs import NfabProgram
from stretto.events import Schema
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query, compile_query
from stretto.query.passes.bind import AnyBound, BoundQuery
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.query import Consume
from tests.cases import ceql, sase
from tests.cases.choices import Seeded
from tests.cases.sase.engines import found_by
from tests.reference.ceql import evaluate
from tests.reference.sase import evaluate_sase

__all__ = ["Case", "case", "case_of_ceql", "case_of_sase", "check"]


@dataclass(frozen=True)
class Case:
    """A query's text, events, and the roles of columns."""

    query: str
    schema: Schema
    events: pa.Table

    @property
    def compiled(self) -> Query:
        return compile_query(self.query, self.schema)

    def __repr__(self) -> str:
        rows = "\n  ".join(map(str, self.events.to_pylist()))
        return f"{self.query}\n  time={self.schema.time} stream={self.schema.stream}\n  {rows}"


def case(seed: int) -> Case:
    """A case from a seed: that of CEQL or of SASE+, and what it keeps.

    >>> print(case(7).query)  # doctest: +ELLIPSIS
    SELECT ... AFTER MATCH SKIP ...
    """
    return (case_of_ceql if Seeded(seed).chance(50) else case_of_sase)(seed)


def case_of_ceql(seed: int) -> Case:
    """A case of CEQL from a seed, and what it keeps."""
    choose = Seeded(seed)
    one = choose.one_of([ceql.case, ceql.timed_case])(seed)
    roles: dict[str, Any] = {"time": one.time, "stream": one.stream}
    schema = Schema.of(one.events, **roles)
    text = one.query.partition(" LIMIT ")[0]
    for mode in Consume:
        text = text.replace(f" CONSUME BY {mode}", "")
    query = compile_query(text, schema)
    names = query.variables
    assert isinstance(query.bound, BoundQuery)
    if any(len(match.valuations) > 1 for match in evaluate(query.bound, one.events)):
        names = ()  # which event a variable holds is not the complex event's to say
    return Case(text + _keep(choose, names), schema, one.events)


def case_of_sase(seed: int) -> Case:
    """A case of SASE+ from a seed, and what it keeps; its conditions are compiled."""
    one = sase.case(seed)
    text = sase.text_of(replace(one.query, limit=None, non_overlap=False))
    return Case(text + _keep(Seeded(seed), one.query.variables), one.schema, one.events)


def _keep(choose: Seeded, names: Sequence[str]) -> str:
    skips = ["SKIP PAST LAST EVENT", "SKIP PAST LAST ROW", "SKIP TO NEXT EVENT"]
    skips += [f"SKIP TO {end} `{name}`" for name in names for end in ("FIRST", "LAST")]
    return choose.one_of(["", " KEEP LONGEST", " KEEP SHORTEST"]) + f" AFTER MATCH {choose.one_of(skips)}"


def check(one: Case, seed: int = 0) -> int:
    """Assert that the engines give what the reference does, in one order whatever the cuts; how many matches."""
    choose = random.Random(seed)
    query, size = one.compiled, one.events.num_rows
    bound = query.bound
    right = _expected(bound, one.events)
    whole = _fed(query, one, [], snapshots=False)
    shown = sorted((row["start"], row["end"], tuple(row["positions"])) for row in whole)
    assert shown == sorted(match[:3] for match in right), f"\n{one!r}\nexpected {right}\nfound    {shown}"
    each = list(range(1, size))
    for cuts, snapshots in ((each, False), (each, True), (_cuts(choose, size), False)):
        cut = _fed(query, one, cuts, snapshots=snapshots)
        # NaN differs from itself, and is written the same.
        assert list(map(repr, cut)) == list(map(repr, whole)), f"\n{one!r}\n{cuts} {snapshots}\n{cut}\n{whole}"
    if isinstance(bound, BoundSase):
        again = sase.SaseCase(bound.parsed, one.schema, one.events)
        keep, names = bound.parsed.keep, bound.parsed.variables
        assert keep is not None
        programs: list[Any] = [query.program()]
        programs += [KeptProgram(NfabProgram(bound, merges=merges), keep, names) for merges in (True, False)]
        for program in programs:
            got = found_by(program, again, capacity=choose.choice([1, 64]), cuts=_cuts(choose, size))
            wanted = [(start, end, bindings) for start, end, _, bindings in right]
            assert sorted(got) == sorted(wanted), f"\n{one!r}\n{program.machine}\n{got}\n{wanted}"
    return len(right)


def _cuts(choose: random.Random, size: int) -> list[int]:
    return sorted(choose.sample(range(size + 1), choose.choice([0, 1, 2]))) if size > 1 else []


def _expected(bound: AnyBound, events: pa.Table) -> list[tuple[int, int, tuple[int, ...], Any]]:
    if isinstance(bound, BoundSase):
        return [(m.start, m.end, tuple(sorted(m.positions)), m.bindings) for m in evaluate_sase(bound, events)]
    return [(m.start, m.end, tuple(sorted(m.positions)), None) for m in evaluate(bound, events)]


def _fed(query: Query, one: Case, cuts: list[int], *, snapshots: bool) -> list[dict[str, Any]]:
    matcher = Matcher(query, capacity=1)
    rows: list[dict[str, Any]] = []
    for begin, end in zip([0, *cuts], [*cuts, one.events.num_rows], strict=True):
        rows += matcher.push(one.events.slice(begin, end - begin)).to_pylist()
        if snapshots:
            matcher = Matcher(query, capacity=1).restore(matcher.snapshot())
    return rows + matcher.finish().to_pylist()
