"""A stream that goes through a snapshot after each event, into a new matcher, against the same stream without any: in every language,
with every option.

Events are drawn from those of a case of the language, more of them than the definition could be asked of; keys come and are
seen no more. Whatever is looked through now and then is looked through at once in the run with snapshots, and never in the other.
"""

from __future__ import annotations

import contextlib
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from stretto.errors import OptionError, QueryError, StrettoError
from stretto.events import Schema
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query, compile_query
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.spark.streaming.bucket import Bucket
from stretto.spark.streaming.keeping import Settings
from stretto.spark.streaming.runs import OneQuery
from tests.cases import (
    afa,
    ceql,
    dataflow,
    eql,
    keeping,
    patterns,
    reorder,
    row_streams,
    rows,
    sase,
    timeouts,
    totals,
    variants,
)
from tests.cases.afa.driving import through_snapshots
from tests.cases.choices import Seeded
from tests.cases.dataflow.drawing import Restore

__all__ = ["Case", "case", "case_of", "check", "eager", "shown", "shrunk"]

#: ``("push", events)`` or ``("advance", time)``.
Step = tuple[str, Any]


@dataclass(frozen=True)
class Case:
    """A query's text, how its matcher is made, and what it is told."""

    text: str
    schema: Schema
    options: dict[str, Any]
    steps: tuple[Step, ...]

    def maker(self) -> Callable[[], Matcher]:
        """What makes matchers: a clause is compiled by each, a query once for all."""
        if self.schema.time is None and self.text.startswith("MATCH_RECOGNIZE"):
            kinds = pa.schema(list(self.schema.attributes.items()))
            return lambda: Matcher(self.text, schema=kinds, **self.options)
        return lambda: Matcher(self.query, warn_after=None, **self.options)

    @cached_property
    def query(self) -> Query:
        language = None if self.text.startswith(("SELECT", "PATTERN")) else "eql"
        return compile_query(self.text, self.schema, language=language)

    def __repr__(self) -> str:
        roles = f"time={self.schema.time} stream={self.schema.stream}"
        return "\n  ".join([self.text, roles, str(self.options), *map(_written, self.steps)])


def _written(step: Step) -> str:
    kind, what = step
    return f"{kind} {what.to_pylist() if kind == 'push' else what}"


# ---- Drawing


def case(seed: int) -> Case:
    """A case from a seed.

    >>> case(3).steps[0][0]
    'push'
    """
    return case_of(Seeded(seed).one_of(list(KINDS)), seed)


def case_of(kind: str, seed: int) -> Case:
    """A case of a kind from a seed."""
    choose = Seeded(seed)
    while True:
        text, schema, events, options = KINDS[kind](seed)
        events = events if kind == "rows" else _longer(choose, events, most=30 if kind in _LONG else 16)
        options |= _more(choose, text, schema, kind)
        found = Case(text, schema, options, _steps(choose, events, schema, options))
        try:
            found.maker()()
        except (OptionError, QueryError):  # it has a reason not to run so
            seed += 1_000_000_007
            continue
        return found


Drawn = tuple[str, Schema, pa.Table, dict[str, Any]]


def _of_ceql(draw: Callable[[int], ceql.Case]) -> Callable[[int], Drawn]:
    def drawn(seed: int) -> Drawn:
        one = draw(seed)
        schema = Schema.of(one.events, time=one.time, stream=one.stream)
        return one.query, schema, one.events, {"valuations": one.valuations}

    return drawn


def _of_sase(draw: Callable[[int], sase.SaseCase]) -> Callable[[int], Drawn]:
    def drawn(seed: int) -> Drawn:
        one = draw(seed)
        return sase.text_of(one.query), one.schema, one.events, {}

    return drawn


def _of_others(draw: Callable[[int], Any], **options: Any) -> Callable[[int], Drawn]:
    def drawn(seed: int) -> Drawn:
        one = draw(seed)
        more = {"valuations": True} if getattr(one, "valuations", False) else {}
        return one.query, one.schema, one.events, options | more

    return drawn


def _of_eql(seed: int) -> Drawn:
    one = eql.case(seed)
    return one.query, Schema.of(eql.SCHEMA, time="t", time_unit="s"), one.events, {}


def _of_rows(seed: int) -> Drawn:
    one = row_streams.case(seed)
    table = row_streams.in_order(rows.bound(one), one.rows)
    return one.clause, Schema.of(table.schema), table, {}


def _events(choose: Seeded) -> tuple[pa.Table, Schema, str | None]:
    """Events of few types and keys, most of which hold what is asked, with the column that orders them, or none."""
    time = choose.one_of(["t", "t", "ts", None])
    rows_ = [
        {"type": kind, "t": 0, "ts": 0, "k": 0, "name": name, "v": choose.integer(0, 3), "w": choose.one_of([0.5, 1.0])}
        for kind in "AABBCD"
        for name in "aab"
    ]
    kinds = {"type": pa.string(), "t": pa.int64(), "ts": pa.timestamp("ms"), "k": pa.int64(), "name": pa.string()}
    table = pa.Table.from_pylist(rows_, pa.schema({**kinds, "v": pa.int64(), "w": pa.float64()}))
    return table, Schema.of(table, time=time), time


def _windows(choose: Seeded) -> str:
    return choose.one_of(
        ["", f" WITHIN {choose.integer(1, 5)} EVENTS", f" WITHIN {choose.integer(1, 9)} [t]", " WITHIN 3 s [ts]"]
    )


def _shape_of_ceql(seed: int) -> Drawn:
    """A common pattern of CEQL with any clause behind it."""
    choose = Seeded(seed)
    events, schema, _ = _events(choose)
    unit = choose.one_of(["EVENTS", "EVENTS", "[t]"])
    least = choose.integer(0, 2)
    gap = choose.one_of([f"AFTER {least} {unit} WITHIN {least + choose.integer(0, 3)} {unit}", f"AFTER {least} {unit}"])
    most = f"{choose.integer(1, 4)} {unit}"
    pattern = choose.one_of(
        [
            "A AS x ; B AS y",
            "A AS x ; B+ AS y ; C AS z",
            "A AS x : B AS y",
            "A AS x ; (B AS y):+ ; C AS z",
            f"A AS x ; B AS y {gap}",
            f"A AS x ; B AS y {gap} ; C AS z",
            f"A AS x ; B+ AS y GAP {most}",
            f"A AS x ; (B AS y ; C AS z) WITHIN {most}",
            f"(A AS x ; B AS y) WITHIN {most} ; C AS z",
            "A AS x ; NOT C ; B AS y",
            f"A AS x ; NOT C ; B AS y {gap}",
            "NOT C ; A AS x ; B AS y",
            "A AS x ; B AS y ; NOT C",
            f"A AS x ; B AS y {gap} ; NOT C",
            "A AS x ; B? AS y ; C AS z",
            "A AS x ; (B AS y OR C AS y)",
            "(A AS x OR A AS y)+ ; B AS y",
        ]
    )
    ends = pattern.startswith("NOT") or pattern.endswith("NOT C")
    partition = choose.one_of(["", *[" PARTITION BY [k]"] * 4, " PARTITION BY [k], [name]"])
    window = choose.one_of([f" WITHIN {choose.integer(1, 9)} [t]", " WITHIN 3 s [ts]"]) if ends else _windows(choose)
    how = choose.one_of(["", "", "", "MAX ", "NEXT ", "LAST ", "STRICT "])
    asked = choose.one_of(["", "", " FILTER x[v > 0]", " FILTER y[v < 3]"])
    tail, items = "", "*"
    kind = choose.integer(0, 9)
    if kind <= 1:
        tail = choose.one_of(["", " KEEP LONGEST", " KEEP SHORTEST"])
        tail += f" AFTER MATCH SKIP {choose.one_of(['PAST LAST EVENT', 'TO NEXT EVENT', 'TO LAST x', 'TO FIRST y'])}"
    elif kind <= 3 and not pattern.endswith("NOT C"):
        tail = choose.one_of([" CONSUME BY ANY", " CONSUME BY PARTITION", f" LIMIT {choose.integer(1, 2)}"])
    elif kind <= 6:
        every = [" EVERY EVENT"] + (
            [f" EVERY {choose.integer(1, 4)}{window[window.index(' ', 9) :].split(' [')[0]}"] if window else []
        )
        scope = choose.one_of(["", " GROUP BY [k]"] if partition else [""]) + choose.one_of(["", *every, *every])
        if kind <= 5:
            items = "COUNT(*) AS n, SUM(y[v]) AS s, MAX(x[w]) AS m"
            tail = scope
        else:
            tail = scope + choose.one_of(
                [f" ORDER BY SUM(y[v]) DESC LIMIT {choose.integer(1, 3)}", f" SAMPLE 2 SEED {choose.integer(0, 9)}"]
            )
    text = f"SELECT {how}{items} FROM S WHERE ({pattern}){asked}{partition}{window}{tail}"
    return text, schema, events, {}


def _shape_of_sase(seed: int) -> Drawn:
    """A common pattern of SASE+ with any clause behind it."""
    choose = Seeded(seed)
    events, schema, _ = _events(choose)
    components, where = choose.one_of(
        [
            ("A a, B b", "a.v <= b.v"),
            ("A a, B+ b[], C c", "b[i].v >= b[i-1].v"),
            ("A a, B+ b[], C c", "sum(b[].v) >= c.v"),
            ("A+ a[], B b", "a[i].v <= b.v"),
            ("A a, B+ b[]", "b[i].v >= a.v"),
            ("A a, ~(C n), B b", "n.v >= a.v"),
            ("~(C n), A a, B b", "a.v <= b.v"),
            ("A a, B b, ~(C n)", "n.v >= a.v"),
            ("A a, B? b, C c", ""),
            ("A a, (B b | C c)", ""),
            ("A a, B{1,2} b[], C c", "b[i].v > 0"),
        ]
    )
    keys = choose.one_of(["", *["[k]"] * 4, "[k] and [name]"])
    asked = " and ".join(filter(None, [keys, where if choose.chance(70) else ""]))
    how = choose.one_of(["skip_till_next_match", "skip_till_any_match", "partition_contiguity", "strict_contiguity"])
    ends = components.startswith("~") or components.endswith("~(C n)")
    window = choose.one_of([f" WITHIN {choose.integer(1, 9)} [t]", " WITHIN 3 s [ts]"]) if ends else _windows(choose)
    tail = choose.one_of(
        ["", "", "", " OUTPUT non_overlap", f" LIMIT {choose.integer(1, 2)}", " KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT",
         " AFTER MATCH SKIP TO NEXT EVENT", " RETURN TOTAL count(*) AS n, sum(a.v) AS s", " RETURN TOTAL count(*) AS n EVERY EVENT",
         " SAMPLE 2 SEED 3", " ORDER BY SUM(a.v) LIMIT 2"]
    )  # fmt: skip
    if "A+" in components:
        tail = tail.replace("a.v", "a[].v")
    return f"PATTERN SEQ({components}) WHERE {how} {{ {asked} }}{window}{tail}", schema, events, {}


KINDS: dict[str, Callable[[int], Drawn]] = {
    "shapes of ceql": _shape_of_ceql,
    "shapes of sase": _shape_of_sase,
    "ceql": _of_ceql(ceql.case),
    "timed": _of_ceql(ceql.timed_case),
    "sase": _of_sase(sase.case),
    "variants": _of_sase(variants.case),
    "keeping": _of_others(keeping.case),
    "totals": _of_others(totals.case),
    "totals of gaps": _of_others(totals.case_of_gaps),
    "totals of keys": _of_others(totals.case_of_keys),
    "timeouts": _of_others(timeouts.case, timeouts=True),
    "eql": _of_eql,
    "rows": _of_rows,
}

#: Kinds that may have rows of timeouts.
_LISTED = ("shapes of ceql", "shapes of sase", "ceql", "timed", "sase", "variants", "keeping")

#: Kinds whose matches are few, or are not listed.
_LONG = ("eql", "totals of keys", "shapes of ceql", "shapes of sase")


def _longer(choose: Seeded, events: pa.Table, most: int) -> pa.Table:
    """More events like some: with times of their own, and with keys that are seen no more after a while."""
    like = events.to_pylist()
    if not like:
        return events
    made, now, phase, key = [], 0, 0, 0
    apart, shifts, stays = choose.one_of([1, 2, 3]), choose.chance(40), choose.one_of([0, 50, 75])
    for _ in range(choose.integer(most // 3, most)):
        now += choose.one_of([0, 0, 1, 1, 2, 4, 4])
        phase += shifts and choose.chance(20)
        row = dict(choose.one_of(like))
        row |= {"t": now, "ts": now * 500} if "ts" in row else {"t": now}
        if row["k"] is not None:
            key = key if choose.chance(stays) else choose.integer(0, apart)
            row["k"] = key + 3 * phase
        made.append(row)
    kinds = events.schema
    return pa.table({name: pa.array([row[name] for row in made], kinds.field(name).type) for name in kinds.names})


def _more(choose: Seeded, text: str, schema: Schema, kind: str) -> dict[str, Any]:
    """Options that any matcher may have."""
    found: dict[str, Any] = {"capacity": choose.one_of([1, 1, 64])}
    if kind == "rows":
        return found
    found["output"] = choose.one_of(["events", "positions", "positions"])
    time = schema.time
    if time is not None and {"t": "[ts]", "ts": "[t]"}[time] not in text:  # the other one must not decrease
        found |= choose.one_of(
            [
                {},
                {},
                {"late": "drop"},
                {"disorder": choose.one_of([0, 2, math.inf]), "late": choose.one_of(["drop", "side"])},
            ]
        )
        if "disorder" in found and time == "ts" and found["disorder"] == 2:
            found["disorder"] = "1 second"
        if "disorder" in found and choose.chance(40):
            found["speculation"] = choose.one_of([2, math.inf, math.inf])
    if not kind.startswith(("totals", "eql")) and choose.chance(20):
        found["at_end"] = "drop"
    if kind in _LISTED and "WITHIN" in text and choose.chance(15):
        found["timeouts"] = True
    return found


def _steps(choose: Seeded, events: pa.Table, schema: Schema, options: dict[str, Any]) -> tuple[Step, ...]:
    """Each event by itself, out of order where that is taken; now and then what the time is."""
    order = list(range(events.num_rows))
    if "disorder" in options or options.get("late") == "drop":  # what is too late is left out
        order.sort(key=lambda at: at + choose.one_of([0, 0, 0, 1.5, 3.5]))
    steps: list[Step] = []
    often = choose.one_of([0, 10, 30])
    reached: Any = None
    for at in order:
        event = events.slice(at, 1)
        steps.append(("push", event))
        if schema.time is None:
            continue
        time = event.column(schema.time)[0].as_py()
        reached = time if reached is None or time > reached else reached
        if choose.chance(often):
            steps.append(("advance", reached))
    return tuple(steps)


# ---- Judging


@contextlib.contextmanager
def eager(least: int = 0) -> Iterator[None]:
    """Whatever is looked through when enough has come is looked through as soon as ``least`` has."""
    there = [
        (module, name, value)
        for path, module in list(sys.modules.items())
        if path.startswith("stretto.")
        for name, value in list(vars(module).items())
        if name in ("SWEEP_AT_LEAST", "FORGET_AT_LEAST")
        or (path == "stretto.matching.output.match_table" and name == "CHUNK")
    ]
    try:
        for module, name, _ in there:
            setattr(module, name, least)
        yield
    finally:
        for module, name, value in there:
            setattr(module, name, value)


def answers(one: Case, *, snapshots: bool) -> list[Any]:
    """What each step gives, and the end: rows, and what is counted and set aside; the first error ends it."""
    make = one.maker()
    matcher = make()
    found: list[Any] = []
    try:
        for kind, what in one.steps:
            rows_ = matcher.push(what) if kind == "push" else matcher.advance(what)
            if snapshots:
                matcher = make().restore(matcher.snapshot())
            found.append((rows_.to_pylist(), matcher.position, matcher.late, repr(matcher.punctuation)))
        found.append((matcher.finish().to_pylist(), matcher.position, matcher.late, ""))
        if one.options.get("late") == "side":
            found.append(matcher.late_events().to_pylist())
    except StrettoError as error:
        found.append(f"{type(error).__name__}: {error}")
    return found


def check(one: Case, seed: int = 0) -> int:
    """Assert that snapshots change nothing; how many rows there are."""
    right = answers(one, snapshots=False)
    with eager(random.Random(seed).choice([0, 0, 3])):
        found = answers(one, snapshots=True)
    if isinstance(right[-1], str) and right[-1].startswith("QueryError"):
        # It is about states that partial matches come to; those of no use any more are let go of sooner here.
        right, found = right[:-1], found[: len(right) - 1]
    for at, (wanted, got) in enumerate(zip(right, found, strict=False)):
        assert _same(wanted, got), f"step {at}\nexpected {wanted}\nfound    {got}\n{one!r}"
    assert len(right) == len(found), f"{right[-1]}\n{found[-1]}\n{one!r}"
    return sum(len(given[0]) for given in right if isinstance(given, tuple))


def _same(left: Any, right: Any) -> bool:
    """Whether answers are alike; rows of groups come in any order."""
    if _alike(left, right):
        return True
    if not (isinstance(left, list | tuple) and isinstance(right, list | tuple)):
        return False
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    grouped = not any(isinstance(row, dict) and row.get("positions") for row in [*left, *right])
    return grouped and _alike(sorted(left, key=repr), sorted(right, key=repr))


def _alike(left: Any, right: Any) -> bool:
    """Whether answers are the same, but for the last digits of sums; NaN equals itself."""
    if isinstance(left, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(_alike, left, right))
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(_alike(left[name], right[name]) for name in left)
        )
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9) or (left != left and right != right)
    return bool(left == right)


def shrunk(one: Case, seed: int) -> Case:
    """The same with fewer steps, as long as it fails."""

    def fails(steps: Sequence[Step]) -> bool:
        try:
            check(replace(one, steps=tuple(steps)), seed)
        except AssertionError:
            return True
        return False

    steps = list(one.steps)
    smaller = True
    while smaller:
        smaller = False
        for at in reversed(range(len(steps))):
            left = steps[:at] + steps[at + 1 :]
            if fails(left):
                steps, smaller = left, True
    return replace(one, steps=tuple(steps))


def shown(one: Case) -> str:
    """The case as text."""
    return repr(one)


# ---- What is no matcher of one query


def check_set_of_shapes(seed: int) -> int:
    """Assert that a set of common patterns gives the same through a snapshot after each event; how many rows."""
    choose = Seeded(seed)
    shapes = [choose.one_of([_shape_of_ceql, _shape_of_sase])(choose.integer(0, 10**9)) for _ in range(4)]
    events = _longer(choose, shapes[0][2], most=30)
    by = choose.one_of([(), (), ("k",)])
    options = {"time": "t", "by": by, "positions": True, "totals": True, "capacity": choose.one_of([1, 64])}
    steps = _steps(choose, events, Schema.of(events, time="t"), {})

    def given(saves: bool) -> list[Any]:
        one = PatternSet(events.schema, output="positions", **options)
        for number, (text, *_) in enumerate(shapes):
            with contextlib.suppress(OptionError, QueryError):  # what cannot be in a set
                one.change({"id": f"p{number}", "query": text})
        found: list[Any] = []
        try:
            for kind, what in steps:
                found += one.push(what).to_pylist() if kind == "push" else one.advance(what).to_pylist()
                if saves:
                    one = PatternSet(events.schema, output="positions", **options).restore(one.snapshot())
            found += one.finish().to_pylist()
        except StrettoError as error:
            return [*patterns.in_order(found), f"{type(error).__name__}: {error}"]
        return patterns.in_order(found)

    right = given(False)
    with eager(choose.one_of([0, 0, 3])):
        found = given(True)
    shown = "\n  ".join([*(text for text, *_ in shapes), str(options), *map(_written, steps)])
    assert _same(right, found), f"{shown}\nexpected {right}\nfound    {found}"
    return len(right)


def check_set(seed: int) -> int:
    """Assert that a set of patterns gives the same through a snapshot after each event and each change; how many rows."""
    choose = Seeded(seed)
    draw = choose.one_of(
        [
            patterns.case,
            patterns.mixture,
            patterns.keeping,
            patterns.adding,
            patterns.alike,
            patterns.clauses,
            patterns.crowd,
            patterns.relating,
        ]
    )
    one = patterns.one_by_one(draw(seed))
    saved = [more for action in one.actions for more in (action, ("snapshot",))]
    right = patterns.found(one)
    with eager(choose.one_of([0, 0, 3])):
        found = patterns.found(replace(one, actions=saved))
    right, found = patterns.in_order(right), patterns.in_order(found)
    assert _same(right, found), f"{one}\nexpected {right}\nfound    {found}"
    return len(right)


def check_idle(seed: int) -> int:
    """Assert that a new matcher goes on for one that is idle, of which continuous queries keep nothing; how many rows."""
    choose = Seeded(seed)
    one = case_of(choose.one_of(["shapes of ceql", "shapes of sase", *KINDS]), seed)
    if one.options.keys() & {"late", "disorder"}:
        return 0  # what is late is for others to tell
    make = one.maker()

    def given(anew: bool) -> list[Any]:
        matcher, found = make(), list[Any]()
        try:
            for kind, what in one.steps:
                found += _placeless(matcher.push(what) if kind == "push" else matcher.advance(what))
                if anew and matcher.idle:
                    matcher = make()
            found += _placeless(matcher.finish())
        except StrettoError as error:
            found.append(type(error).__name__)
        return sorted(found, key=repr)  # a new one that knows of no earlier start may give a kept match sooner

    right, found = given(False), given(True)
    assert _same(right, found), f"{one}\nexpected {right}\nfound    {found}"
    return len(right)


def _placeless(found: pa.Table) -> list[Any]:
    """Rows without their places in the stream."""
    return found.drop_columns(
        [name for name in ("start", "end", "positions") if name in found.column_names]
    ).to_pylist()


def check_bucket(seed: int) -> int:
    """Assert that a bucket of a continuous query gives the same when its state is written after each event; how many rows."""
    choose = Seeded(seed)
    one = case_of(
        choose.one_of(["shapes of ceql", "shapes of sase", "timed", "totals", "keeping", "timeouts", "eql"]), seed
    )
    one = replace(one, schema=replace(one.schema, time="t", time_unit="s"))
    settings = Settings("t", None, "s", choose.one_of(["drop", "side"]), None, 2_000_000, 1)
    try:
        run = OneQuery(one.query, timeouts=one.options.get("timeouts", False))
    except (OptionError, QueryError):
        return 0
    events = [what for kind, what in one.steps if kind == "push"]

    def given(saves: bool) -> list[Any]:
        bucket, reached, found = Bucket(run, settings), None, list[Any]()
        try:
            for event in events:
                bucket.take(event, reached)
                for table in bucket.advance(reached):
                    found += table.to_pylist()
                if saves:
                    kept, bucket = bucket.dump(), Bucket(run, settings)
                    bucket.load(kept)
                latest = 1_000_000 * int(event.column("t")[0].as_py()) - choose_delay
                reached = latest if reached is None else max(reached, latest)
            for table in bucket.advance((reached or 0) + 10**9):
                found += table.to_pylist()
        except StrettoError as error:
            found.append(f"{type(error).__name__}: {error}")
        return found

    choose_delay = choose.one_of([0, 2_000_000])
    right = given(False)
    with eager(choose.one_of([0, 0, 3])):
        found = given(True)
    assert _same(right, found), f"{one}\nexpected {right}\nfound    {found}"
    return len(right)


def check_afa(seed: int) -> int:
    """Assert that an automaton gives what it must, through a snapshot before each step."""
    one = afa.case(seed)
    choose = random.Random(seed)
    with eager(choose.choice([0, 0, 3])):
        through_snapshots(one, choose)
    return 1


def check_dataflow(seed: int) -> int:
    """Assert that a dataflow gives what it must, through a snapshot after each action."""
    one = dataflow.case(seed)
    return dataflow.check(replace(one, actions=[more for action in one.actions for more in (action, Restore())]), seed)


def check_sorting(seed: int) -> int:
    """Assert that what sorts events gives the same through a snapshot after each."""
    one = reorder.case(seed)
    found, _ = reorder.given(reorder.made(one), one, lambda _: True, lambda _: False)
    through, _ = reorder.given(reorder.made(one), one, lambda _: True, lambda _: True)
    assert repr(found) == repr(through), one
    return len(found)
