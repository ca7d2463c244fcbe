"""SASE+ on the AFA against the NFAb engine on random cases, in order and disordered."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

import stretto
from stretto.automata.sase_afa import sase_afa
from stretto.engines.programs import NfabProgram
from stretto.errors import StrettoError
from stretto.events import Schema
from stretto.languages.sase import parse
from stretto.matching.executors.retracting import RetractingExecutor
from stretto.query.afa import Afa
from stretto.query.query import Window
from stretto.query.sase import SaseQuery, Selection
from tests.cases import sase, variants
from tests.cases.sase import SaseCase, text_of
from tests.cases.sase.engines import found_by
from tests.reference.afa import Event, outputs

__all__ = ["Found", "afa_of", "case", "check"]

#: A match: the positions of each variable.
Found = tuple[tuple[str, tuple[int, ...]], ...]


def case(seed: int) -> SaseCase:
    """A random case, over the time ``t``, without what no disordered stream has: LIMIT, non-overlap, other windows."""
    if seed % 4 == 3:
        return _with_options(seed)
    drawn = sase.case(seed)
    window = drawn.query.window
    if window is not None:
        size = window.events or window.number or window.seconds
        window = Window(number=int(size or 0), attribute=random.Random(seed).choice([None, "t"]))
    query = replace(drawn.query, window=window, limit=None, non_overlap=False)
    query = replace(query, text=text_of(query))
    return _over_t(query, drawn.events)


def _over_t(query: SaseQuery, events: pa.Table) -> SaseCase:
    if pa.types.is_floating(events["t"].type):
        events = events.set_column(events.column_names.index("t"), "t", events["t"].cast(pa.int64()))
    return SaseCase(query, Schema.of(events, time="t"), events)


def _with_options(seed: int) -> SaseCase:
    """A case with parts that may be missing, of those that an automaton says."""
    for number in itertools.count(1_000 * seed):
        drawn = variants.case(number)
        lines = [line for line in drawn.query.text.split("\n") if not line.startswith(("LIMIT", "KEEP", "OUTPUT"))]
        query = parse("\n".join(line for line in lines if not line.endswith("EVENTS")))
        one = _over_t(query, drawn.events)
        if query.optional and afa_of(one) is not None:
            return one
    raise AssertionError


def afa_of(case: SaseCase) -> Afa | None:
    """The automaton; ``None``: it is refused."""
    try:
        return sase_afa(case.bound)
    except StrettoError:
        return None


def wanted(case: SaseCase) -> Counter[Found]:
    """What the NFAb engine finds in the stream in order."""
    found = found_by(NfabProgram(case.bound), case, capacity=64, cuts=[])
    return Counter(bindings for _, _, bindings in found)


def in_order(afa: Afa, case: SaseCase, capacity: int) -> Counter[Found]:
    """What the AFA finds in the stream in order."""
    table = case.events.append_column("#", pa.array(range(case.events.num_rows)))
    executor = RetractingExecutor(afa, table.schema, time="t", sequence="#", ordered=True, capacity=capacity)
    executor.take(table.slice(0, 0), None)
    names = [name for name in table.column_names if name in {*afa.events, "t", "#"}]
    for batch in table.select(names).combine_chunks().to_batches():
        executor.run.push(batch)
    if not executor.run.has_output:
        return Counter()
    matches = executor.run.take()
    names = [one.variable for one in case.bound.parsed.positive]
    return Counter(
        tuple(
            (name, tuple(int(row) for row, mark in zip(*cells, strict=True) if mark == at))
            for at, name in enumerate(names)
        )
        for cells in (
            (matches.position[first:last], matches.mark[first:last])
            for first, last in itertools.pairwise(matches.offset)
        )
    )


def by_definition(afa: Afa, case: SaseCase) -> int:
    """How many (first, last, register) the reference evaluator of AFAs finds: it does not tell selected events apart."""
    keys = afa.partition_by
    events = [
        Event(
            row, tuple("NaN" if value != value else value for value in map(payload.get, keys)), payload["t"], payload, row,
            None if afa.window is None else payload["t"] + afa.window,
        )
        for row, payload in enumerate(case.events.select(list(afa.events)).to_pylist())
    ]  # fmt: skip
    return len({(one.first, one.last) for one in outputs(afa, events)})


# ---- Disorder


@dataclass(frozen=True)
class Log:
    """Rows as they arrive, in pieces; a punctuation stands behind a piece where one is safe."""

    pieces: list[list[dict[str, Any]]]
    punctuations: list[int | None]
    final: list[dict[str, Any]]  #: the events that stay, in stream order
    place: dict[int, int]  #: by arrival row the place in it


def log_of(case: SaseCase, choose: random.Random, *, signed: bool, sequenced: bool) -> Log:
    """The events of a case in some order, with others that are taken back, and some that are revised.

    The attribute ``#`` tells events apart.
    """
    events = [{**row, "#": 10 * at} for at, row in enumerate(case.events.to_pylist())]
    delay = choose.choice([0, 1, 4, 30])
    steps: list[tuple[float, list[tuple[int, dict[str, Any]]]]] = []  # signed rows, by when they arrive
    for at, event in enumerate(events):
        comes = at + delay * choose.random()
        if signed and choose.random() < 0.2:
            old = {**choose.choice(events), **{name: event[name] for name in ("t", "#", *case.query.partition_by)}}
            steps.append((comes, [(1, old)]))
            steps.append((comes + delay * choose.random(), [(-1, old), (1, event)]))
        else:
            steps.append((comes, [(1, event)]))
        if signed and choose.random() < 0.3:
            noise = {**choose.choice(events), "t": event["t"], "#": event["#"] + 5}
            steps.append((comes := at + delay * choose.random(), [(1, noise)]))
            steps.append((comes + 3 * choose.random(), [(-1, noise)]))
    steps.sort(key=lambda one: one[0])
    pieces, punctuations = [], []
    begin = 0
    while begin < len(steps):
        end = min(len(steps), begin + choose.choice([1, 2, 5, 50]))
        pieces.append([{**event, "sign": sign} for _, many in steps[begin:end] for sign, event in many])
        least = min((event["t"] for _, many in steps[end:] for _, event in many), default=None)
        done = punctuations[-1] if punctuations else None
        punctuations.append(least if least is not None and choose.random() < 0.3 else done)
        begin = end
    place, row_of = _places(pieces, case)
    final = sorted(events, key=lambda event: (event["t"], event["#"] if sequenced else place[event["#"]]))
    return Log(pieces, punctuations, final, {row_of[event["#"]]: at for at, event in enumerate(final)})


def _places(pieces: list[list[dict[str, Any]]], case: SaseCase) -> tuple[dict[int, int], dict[int, int]]:
    """What orders events of one time without a sequence, and their rows: an insertion behind a retraction is a revision."""
    keys = () if case.query.selection is Selection.STRICT else case.query.partition_by
    place: dict[int, int] = {}
    row_of: dict[int, int] = {}
    row = 0
    for piece in pieces:
        before: dict[str, Any] | None = None
        for event in piece:
            revises = before is not None and before["sign"] < 0 < event["sign"]
            if before is not None and revises and all(before[name] == event[name] for name in ("t", *keys)):
                place[event["#"]] = place[before["#"]]
            elif event["sign"] > 0:
                place[event["#"]] = row
            row_of[event["#"]] = row if event["sign"] > 0 else row_of[event["#"]]
            before = event
            row += 1
    return place, row_of


def _check_disordered(case: SaseCase, seed: int) -> int:
    """Raise an AssertionError unless insertions minus retractions are the matches of the final stream; how many there are."""
    choose = random.Random(f"disorder {seed}")
    signed, sequenced, restores = choose.random() < 0.8, choose.random() < 0.5, choose.random() < 0.3
    log = log_of(case, choose, signed=signed, sequenced=sequenced)
    kinds = pa.schema([*case.events.schema, ("#", pa.int64())])
    options: dict[str, Any] = {"time": "t", "speculation": math.inf, "capacity": choose.choice([1, 64])}
    if signed:
        options["sign"] = "sign"
    if sequenced:
        options["sequence"] = "#"
    matcher = stretto.Matcher(case.query.text, kinds, **options)
    given = kinds.append(pa.field("sign", pa.int8())) if signed else kinds
    total: Counter[str] = Counter()
    kept: dict[str, dict[str, Any]] = {}
    for piece, time in zip(log.pieces, log.punctuations, strict=True):
        found = matcher.push(pa.Table.from_pylist(piece, given))
        if time is not None:
            found = pa.concat_tables([found, matcher.advance(time)])
            forget_all(matcher)
        for row in found.to_pylist():
            sign = row.pop("sign")
            total[repr(row)] += sign
            assert total[repr(row)] >= 0, f"{sign} {row}"
            kept[repr(row)] = row
        if restores:
            matcher = stretto.Matcher(case.query.text, kinds, **options).restore(matcher.snapshot())
    assert not matcher.finish().num_rows
    got = Counter(repr(_placed(kept[one], log.place)) for one in total.elements())
    ordered = pa.Table.from_pylist(log.final, kinds)
    bound = SaseCase(case.query, Schema.of(kinds, time="t"), ordered)
    expected = Counter(repr(row) for row in stretto.match(case.query.text, ordered, time="t").to_pylist())
    assert got == expected, (
        f"signed {signed}, sequenced {sequenced}:\n{bound}\nmissing {expected - got}\nwrong {got - expected}"
    )
    return sum(expected.values())


def _placed(row: dict[str, Any], place: dict[int, int]) -> dict[str, Any]:
    """A match with places in the final stream in place of arrival rows."""
    positions = sorted(place[one] for one in row["positions"])
    return {**row, "start": place[row["start"]], "end": place[row["end"]], "positions": positions}


def forget_all(matcher: stretto.Matcher) -> None:
    """Let a matcher forget what it can."""
    layout: Any = matcher._executor._layout
    layout._kept, layout._swept_to = -(1 << 17), None
    layout.drop(matcher._executor.run, matcher._executor._front)


def check(case: SaseCase, seed: int = 0) -> int:
    """Raise an AssertionError unless the engines agree on a case; how many matches both orders have, −1 where it is refused."""
    afa = afa_of(case)
    if afa is None:
        return -1
    expected = wanted(case)
    shown = f"{case.query.text}\n{case.events.to_pylist()}"
    found = in_order(afa, case, random.Random(seed).choice([1, 64]))
    assert found == expected, f"{shown}\nmissing {expected - found}\nwrong {found - expected}"
    if seed % 4 == 0:
        ends = {
            (min(row for _, own in one for row in own), max(row for _, own in one for row in own)) for one in expected
        }
        assert by_definition(afa, case) == len(ends), shown
    return sum(expected.values()) + _check_disordered(case, seed)
