"""Near misses: a query with a match planted for it, in which one thing is broken; the answer of ``why_not`` is taken at its word.

What it names is taken out of the query's text, or changed in the rows that it names, and the match must appear; with less it must
not; and what was broken must be among what it names. Only ``docs/why-not.md`` says what an answer means here: nothing is imported
from ``stretto.asking``.
"""

from __future__ import annotations

import datetime
import itertools
import random
import re
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

import stretto
from stretto.explaining.answer import Answer, NearMiss, Reason

__all__ = ["Case", "case", "check"]

Event = dict[str, Any]

FIELDS = ("x", "y", "s")
#: The step, or the part, of what is relaxed for itself: the strategy that takes the next event, and the type of a row.
EITHER = -2
KINDS = "ABCDE"
SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("t", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("s", pa.string()),
        ("k", pa.string()),
    ]
)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">": lambda one, other: one > other,
    "<": lambda one, other: one < other,
    ">=": lambda one, other: one >= other,
    "<=": lambda one, other: one <= other,
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
}


@dataclass(frozen=True)
class Atom:
    """A field of an event, compared with a constant, or with a field of an earlier step's event."""

    field: str
    operator: str
    value: Any
    other: int | None = None  #: the step whose ``x`` is compared, with ``value`` added to it

    def holds(self, event: Event, bound: Sequence[Event]) -> bool:
        value = self.value
        if self.other is not None:
            value += bound[self.other]["x"]
        return event[self.field] is not None and OPERATORS[self.operator](event[self.field], value)


@dataclass(frozen=True)
class Step:
    """A step of a query: a type, a variable, conditions each of which is atoms joined by OR, and how often it comes."""

    type: str
    name: str
    conditions: tuple[tuple[Atom, ...], ...] = ()
    times: int = 1
    counted: bool = False  #: ``{times}``, or once or more
    open: bool = False  #: ``{times,}``

    @property
    def sign(self) -> str:
        """How often it comes, as it is written."""
        if self.times == 1:
            return ""
        return f"{{{self.times}{',' * self.open}}}" if self.counted else "+"


@dataclass(frozen=True)
class Asked:
    """What a query asks, in no language."""

    steps: tuple[Step, ...]
    strict: frozenset[int] = frozenset()  #: steps right behind the one before
    absent: tuple[tuple[int, Step], ...] = ()  #: what must not come before a step
    window: int | None = None
    keyed: bool = False
    until: Step | None = None
    gaps: tuple[tuple[int, int], ...] = ()  #: steps that begin at least so much later
    strategy: str = "skip_till_next_match"
    anchors: str = ""


@dataclass(frozen=True)
class Hole:
    """Something a query asks: its kind and its names in an answer."""

    kind: str
    names: tuple[str, ...]
    step: int = -1
    part: int = -1


class Language:
    """How a query is written, what of it may be taken out, and its matches."""

    name: str = ""
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def holes(self) -> list[Hole]:
        """All that may be in the way."""
        raise NotImplementedError

    def query(self, dropped: Collection[Hole]) -> Any:
        """The query without some of it."""
        raise NotImplementedError

    def rows(self, dropped: Collection[Hole], events: Sequence[Event], **options: Any) -> list[tuple[int, ...]]:
        """The rows of all matches."""
        table = pa.Table.from_pylist(list(events), SCHEMA)
        found = stretto.match(self.query(dropped), table, output="positions", **self.options, **options)
        return [tuple(own) for own in found.column("positions").to_pylist()]

    def why(self, events: Sequence[Event], **options: Any) -> Answer:
        """The answer."""
        return stretto.why_not(
            self.query(()), pa.Table.from_pylist(list(events), SCHEMA), most=20, **self.options, **options
        )

    def part(self, atoms: Sequence[Atom], reference: str) -> str:
        """A condition, whose fields are called ``reference`` and the name."""
        return " OR ".join(
            f"{reference}{one.field} {one.operator} {self.literal(one.value)}"
            if one.other is None
            else f"{reference}{one.field} {one.operator} {self.earlier(one.other)} + {one.value}"
            for one in atoms
        )

    def earlier(self, step: int) -> str:
        return f"{self.asked.steps[step].name}.x"

    def literal(self, value: Any) -> str:
        return f"'{value}'" if isinstance(value, str) else str(value)

    def spelled(self, text: str, before: str, behind: str) -> tuple[str, ...]:
        """A condition as it may be called: with parentheses around all of it, or around a sum."""
        summed = re.sub(r"(\S+ \+ \d+)", r"(\1)", text)
        return tuple(f"{before}{one}{behind}" for one in (text, f"({text})", summed))

    def find(self, reason: Reason) -> Hole:
        """What a reason names."""
        for one in self.holes():
            if one.kind == reason.kind and reason.text in one.names:
                return one
        raise AssertionError(f"{reason.kind} {reason.text!r} is none of {self.holes()}")

    def conditions(self) -> list[Hole]:
        """Conditions on the events of steps."""
        return [
            Hole("condition", self.named(at, step, atoms), at, part)
            for at, step in enumerate(self.asked.steps)
            for part, atoms in enumerate(step.conditions)
        ]

    def named(self, at: int, step: Step, atoms: Sequence[Atom]) -> tuple[str, ...]:
        raise NotImplementedError

    def kept(self, step: int, dropped: Collection[Hole]) -> list[tuple[Atom, ...]]:
        gone = {(one.step, one.part) for one in dropped if one.kind == "condition"}
        return [own for part, own in enumerate(self.asked.steps[step].conditions) if (step, part) not in gone]


class Ceql(Language):
    name = "ceql"
    options: ClassVar = {"time": "t"}

    def named(self, at: int, step: Step, atoms: Sequence[Atom]) -> tuple[str, ...]:
        return (f"{step.name}[{self.part(atoms, '')}]",)

    def written(self, at: int) -> str:
        step = self.asked.steps[at]
        return f"{step.type}{step.sign} AS {step.name}"

    def holes(self) -> list[Hole]:
        asked, found = self.asked, self.conditions()
        gaps = dict(asked.gaps)
        for at in asked.strict:
            before, behind = self.written(at - 1), self.written(at)
            names = (f"{before} : {behind}", f"({before}) AFTER {gaps.get(at - 1)} [t] : {behind}")
            found.append(Hole("contiguity", names, at))
        for place, (at, own) in enumerate(asked.absent):
            found.append(Hole("negation", (self.missing(own),), at, place))
        for at, least in asked.gaps:
            found.append(Hole("gap", (f"AFTER {least} [t]",), at))
        for at, own in enumerate(asked.steps):
            if own.counted and own.times > 1:
                found.append(Hole("count", (f"{own.type}{own.sign}",), at))
        if asked.window is not None:
            found.append(Hole("window", (f"WITHIN {asked.window} [t]",)))
        if asked.keyed:
            found.append(Hole("key", ("PARTITION BY [k]", "[k]")))
        return found

    def missing(self, own: Step) -> str:
        if not own.conditions:
            return f"NOT {own.type}"
        return f"NOT ({own.type} AS {own.name} FILTER {self.named(0, own, own.conditions[0])[0]})"

    def query(self, dropped: Collection[Hole]) -> str:
        asked, formula, filters = self.asked, "", []
        gone = {(one.kind, one.step, one.part if one.kind == "negation" else -1) for one in dropped}
        for at, step in enumerate(asked.steps):
            written = self.written(at)
            if ("count", at, -1) in gone:
                written = f"{step.type}+ AS {step.name}"
            if at:
                strict = at in asked.strict and ("contiguity", at, -1) not in gone
                formula += " : " if strict else " ; "
            for place, (where, own) in enumerate(asked.absent):
                if where == at and ("negation", at, place) not in gone:
                    formula += f"{self.missing(own)} ; "
            formula += written
            for where, least in asked.gaps:
                if where == at and ("gap", at, -1) not in gone:
                    formula += f" AFTER {least} [t]"
            filters += [f"{step.name}[{self.part(own, '')}]" for own in self.kept(at, dropped)]
        text = f"SELECT * FROM S WHERE ({formula})"
        if filters:
            text += f" FILTER {' AND '.join(filters)}"
        if asked.keyed and ("key", -1, -1) not in gone:
            text += " PARTITION BY [k]"
        if asked.window is not None and ("window", -1, -1) not in gone:
            text += f" WITHIN {asked.window} [t]"
        return text


class Sase(Language):
    name = "sase"
    options: ClassVar = {"time": "t"}

    def reference(self, step: Step) -> str:
        return f"{step.name}[1]." if step.times > 1 else f"{step.name}."

    def earlier(self, step: int) -> str:
        return f"{self.reference(self.asked.steps[step])}x"

    def named(self, at: int, step: Step, atoms: Sequence[Atom]) -> tuple[str, ...]:
        text = self.part(atoms, self.reference(step))
        return self.spelled(text, "", "")

    def written(self, at: int) -> str:
        step = self.asked.steps[at]
        if step.times == 1:
            return f"{step.type} {step.name}"
        return f"{step.type}{step.sign} {step.name}[]"

    def holes(self) -> list[Hole]:
        asked, found = self.asked, self.conditions()
        for place, (at, own) in enumerate(asked.absent):
            found.append(Hole("negation", (f"~({own.type} {own.name})",), at, place))
        for at, own in enumerate(asked.steps):
            if own.counted and own.times > 1:
                found.append(Hole("count", (self.written(at),), at))
        if asked.window is not None:
            found.append(Hole("window", (f"WITHIN {asked.window} [t]",)))
        if asked.keyed:
            found.append(Hole("key", ("[k]",)))
        if asked.strategy.endswith("contiguity"):
            found.append(Hole("strategy", (asked.strategy,)))
        if asked.strategy != "skip_till_any_match":
            found.append(Hole("strategy", ("skip_till_next_match",), EITHER))
        return found

    def query(self, dropped: Collection[Hole]) -> str:
        asked, parts, conditions = self.asked, [], []
        gone = {(one.kind, one.step, one.part if one.kind == "negation" else -1) for one in dropped}
        if asked.keyed and ("key", -1, -1) not in gone:
            conditions.append("[k]")
        for at, step in enumerate(asked.steps):
            for place, (where, own) in enumerate(asked.absent):
                if where == at and ("negation", at, place) not in gone:
                    parts.append(f"~({own.type} {own.name})")
                    conditions += [self.part(each, f"{own.name}.") for each in own.conditions]
            parts.append(f"{step.type}+ {step.name}[]" if ("count", at, -1) in gone else self.written(at))
            for own in self.kept(at, dropped):
                text = self.part(own, self.reference(step))
                conditions.append(f"({text})" if len(own) > 1 else text)
        strategy = asked.strategy
        if strategy.endswith("contiguity") and ("strategy", -1, -1) in gone:
            strategy = "skip_till_next_match"
        if ("strategy", EITHER, -1) in gone:
            strategy = "skip_till_any_match"
        text = f"PATTERN SEQ({', '.join(parts)}) WHERE {strategy} {{ {' and '.join(conditions)} }}"
        if asked.window is not None and ("window", -1, -1) not in gone:
            text += f" WITHIN {asked.window} [t]"
        return text


class Eql(Language):
    name = "eql"
    options: ClassVar = {"time": "t", "time_unit": "s", "language": "eql"}

    def literal(self, value: Any) -> str:
        return f'"{value}"' if isinstance(value, str) else str(value)

    def named(self, at: int, step: Step, atoms: Sequence[Atom]) -> tuple[str, ...]:
        text = self.part(atoms, "")
        return (f"{step.name}[{text}]", f"{step.name}[{text}]".replace('"', "'"))

    def holes(self) -> list[Hole]:
        asked, found = self.asked, self.conditions()
        for place, (at, own) in enumerate(asked.absent):
            text = self.part(own.conditions[0], "") if own.conditions else "true"
            found.append(Hole("negation", (f"![{own.type} where {text}]",), at, place))
        if asked.window is not None:
            found.append(Hole("window", (f"maxspan={asked.window} seconds", f"maxspan={asked.window} second")))
        if asked.keyed:
            found.append(Hole("key", ("by k", "[k]")))
        if asked.until is not None:
            text = self.part(asked.until.conditions[0], "") if asked.until.conditions else "true"
            found.append(Hole("until", (f"until [{asked.until.type} where {text}]",)))
        return found

    def equal(self, text: str) -> str:
        return re.sub(r" = ", " == ", text)

    def query(self, dropped: Collection[Hole]) -> str:
        asked, text = self.asked, "sequence"
        gone = {(one.kind, one.step, one.part if one.kind == "negation" else -1) for one in dropped}
        if asked.keyed and ("key", -1, -1) not in gone:
            text += " by k"
        if asked.window is not None:  # what must not come needs one
            text += f" with maxspan={9999 if ('window', -1, -1) in gone else asked.window}s"
        for at, step in enumerate(asked.steps):
            for place, (where, own) in enumerate(asked.absent):
                if where == at and ("negation", at, place) not in gone:
                    text += f" ![{own.type} where {self.part(own.conditions[0], '') if own.conditions else 'true'}]"
            parts = [self.part(own, "") for own in self.kept(at, dropped)]
            parts = [f"({one})" if " OR " in one else one for one in parts]
            text += f" [{step.type} where {' and '.join(parts) or 'true'}]"
        if asked.until is not None and ("until", -1, -1) not in gone:
            own = asked.until
            text += f" until [{own.type} where {self.part(own.conditions[0], '') if own.conditions else 'true'}]"
        return self.equal(text).replace(" OR ", " or ")


class RowPattern(Language):
    """A clause; the type of a row is one condition more, which is asked as the others are."""

    name = "rows"

    def named(self, at: int, step: Step, atoms: Sequence[Atom]) -> tuple[str, ...]:
        text = self.part(atoms, "")
        return self.spelled(text, f"{step.name.upper()} AS ", "")

    def earlier(self, step: int) -> str:
        return f"{self.asked.steps[step].name.upper()}.x"

    def quantified(self, at: int) -> str:
        step = self.asked.steps[at]
        return f"{step.name.upper()}{step.sign}"

    def holes(self) -> list[Hole]:
        asked, found = self.asked, self.conditions()
        for at, own in enumerate(asked.steps):
            found.append(Hole("condition", (f"{own.name.upper()} AS type = '{own.type}'",), at, EITHER))
            if own.counted and own.times > 1:
                found.append(Hole("count", (self.quantified(at),), at))
        found += [Hole("anchor", (one,), place) for place, one in enumerate(asked.anchors)]
        if asked.window is not None:
            text = f"WITHIN INTERVAL '{asked.window}' SECOND"
            found.append(Hole("window", (text, f"WITHIN {asked.window} seconds", f"WITHIN {asked.window} second")))
        return found

    def query(self, dropped: Collection[Hole], asked_rows: bool = False) -> str:
        asked, defined = self.asked, []
        gone = {(one.kind, one.names[0]) for one in dropped}
        names = []
        for at, step in enumerate(asked.steps):
            hole = ("count", self.quantified(at))
            names.append(f"{step.name.upper()}+" if hole in gone else self.quantified(at))
            kept = {(one.step, one.part) for one in dropped}
            parts = [] if (at, EITHER) in kept else [f"type = '{step.type}'"]
            for own in self.kept(at, dropped):
                text = self.part(own, "")
                parts.append(f"({text})" if len(own) > 1 else text)
            if parts:
                defined.append(f"{step.name.upper()} AS {' AND '.join(parts)}")
        pattern = " ".join(names)
        if "^" in asked.anchors and ("anchor", "^") not in gone:
            pattern = f"^ {pattern}"
        if "$" in asked.anchors and ("anchor", "$") not in gone:
            pattern += " $"
        window = ""
        if asked.window is not None and not any(one.kind == "window" for one in dropped):
            window = f" WITHIN INTERVAL '{asked.window}' SECOND"
        return (
            f"SELECT * FROM e MATCH_RECOGNIZE ({'PARTITION BY k ' if asked.keyed else ''}ORDER BY t "
            f"{'MEASURES FIRST(row) AS start, LAST(row) AS stop AFTER MATCH SKIP TO NEXT ROW ' if asked_rows else ''}"
            f"PATTERN ({pattern}){window}{f' DEFINE {chr(44).join(defined)}' if defined else ''})"
        )

    def table(self, events: Sequence[Event]) -> pa.Table:
        begin = datetime.datetime(2026, 1, 1)
        timed = [
            {**one, "t": begin + datetime.timedelta(seconds=one["t"]), "row": row} for row, one in enumerate(events)
        ]
        schema = SCHEMA.set(1, pa.field("t", pa.timestamp("us"))).append(pa.field("row", pa.int64()))
        return pa.Table.from_pylist(timed, schema)

    def rows(self, dropped: Collection[Hole], events: Sequence[Event], **options: Any) -> list[tuple[int, ...]]:
        found = stretto.sql(self.query(dropped, asked_rows=True), e=self.table(events))
        return [(one["start"], one["stop"]) for one in found.to_pylist()]

    def why(self, events: Sequence[Event], **options: Any) -> Answer:
        return stretto.why_not(self.query(()), self.table(events), most=20, **options)


class Automaton(Language):
    """A chain of states; what is compared with an earlier event is kept in the register."""

    name = "afa"
    options: ClassVar = {"time": "t"}

    def arc(self, at: int) -> str:
        return f"of the arc a{at} (q{at} -> q{at + 1})"

    def earlier(self, step: int) -> str:
        return f"r.x{step}"

    def named(self, at: int, step: Step, atoms: Sequence[Atom]) -> tuple[str, ...]:
        text = self.part(atoms, "e.")
        return self.spelled(text, "", f" {self.arc(at)}")

    def holes(self) -> list[Hole]:
        asked, found = self.asked, self.conditions()
        for at, own in enumerate(asked.steps):
            found.append(Hole("condition", (f"e.type = '{own.type}' {self.arc(at)}",), at, EITHER))
        if asked.window is not None:
            found.append(Hole("window", (f"window={asked.window}",)))
        if asked.keyed:
            found.append(Hole("key", ("partition_by k", "[k]", "partition_by=('k',)", "partition_by=['k']")))
        return found

    def query(self, dropped: Collection[Hole]) -> stretto.AFA:
        asked = self.asked
        keyed = asked.keyed and not any(one.kind == "key" for one in dropped)
        window = None if any(one.kind == "window" for one in dropped) else asked.window
        compared = sorted(
            {one.other for own in asked.steps for c in own.conditions for one in c if one.other is not None}
        )
        made = stretto.AFA(
            {"type": str, "x": int, "y": int, "s": str, "k": str},
            register={f"x{step}": int for step in compared} or {"n": int},
            window=window,
            partition_by=("k",) if keyed else (),
        )
        gone = {(one.step, one.part) for one in dropped}
        for at, step in enumerate(asked.steps):
            parts = [] if (at, EITHER) in gone else [f"e.type = '{step.type}'"]
            for own in self.kept(at, dropped):
                text = self.part(own, "e.")
                parts.append(f"({text})" if len(own) > 1 else text)
            then = f"x{at} = COALESCE(e.x, 0)" if at in compared else None
            made.arc(f"q{at}", f"q{at + 1}", when=" AND ".join(parts) or None, then=then, id=f"a{at}")
            if at not in asked.strict and at:
                made.ignore(f"q{at}", id=f"i{at}")
        return made.final(f"q{len(asked.steps)}")

    def rows(self, dropped: Collection[Hole], events: Sequence[Event], **options: Any) -> list[tuple[int, ...]]:
        table = pa.Table.from_pylist(list(events), SCHEMA)
        found = stretto.match(self.query(dropped), table, **self.options, **options)
        return list(zip(found.column("start").to_pylist(), found.column("end").to_pylist(), strict=True))


LANGUAGES: tuple[type[Language], ...] = (Ceql, Sase, Eql, RowPattern, Automaton)


@dataclass(frozen=True)
class Case:
    """A query, its events with a match, and the same ones with one thing broken: ``hole``, if it is one that the query asks."""

    language: Language
    whole: tuple[Event, ...]
    events: tuple[Event, ...]
    broken: str
    hole: Hole | None = None

    def __repr__(self) -> str:
        rows = "\n  ".join(f"{row}: {tuple(one.values())}" for row, one in enumerate(self.events))
        return f"{self.language.query(())}\n  broken: {self.broken} {self.hole}\n  {rows}"


def _atom(rng: random.Random, event: Event) -> Atom:
    """An atom that an event fulfils."""
    name = rng.choice(FIELDS)
    value = event[name]
    if name == "s":
        return rng.choice([Atom("s", "=", value), Atom("s", "!=", "zz")])
    operator = rng.choice(["=", ">", "<", ">=", "<=", "!="])
    by = {"=": 0, ">": -rng.randint(1, 3), "<": rng.randint(1, 3), ">=": -rng.randint(0, 2), "<=": rng.randint(0, 2)}
    return Atom(name, operator, max(value + by.get(operator, 7), 0) if operator != "=" else value)


def _event(rng: random.Random, kind: str, key: str) -> Event:
    return {
        "type": kind,
        "t": 0,
        "x": rng.randint(1, 9),
        "y": rng.randint(1, 9),
        "s": rng.choice(["p", "q", "r"]),
        "k": key,
    }


def _condition(rng: random.Random, at: int, planted: Sequence[Event], related: bool) -> tuple[Atom, ...]:
    """A condition that the event of a step fulfils."""
    event = planted[at]
    if related and at and rng.random() < 0.5:
        other = rng.randrange(at)
        apart = event["x"] - planted[other]["x"]
        operator = rng.choice([">=", "<="])
        value = apart - rng.randint(0, 1) if operator == ">=" else apart + rng.randint(0, 1)
        if value >= 0:
            return (Atom("x", operator, value, other),)
    one = _atom(rng, event)
    if rng.random() < 0.15:
        return one, Atom("y", ">", 100)
    return (one,)


def _planted(rng: random.Random, which: type[Language]) -> tuple[Asked, list[list[Event]]]:
    """What is asked, and for each step the events that are its match."""
    count = rng.randint(2, 4)
    firsts = [_event(rng, rng.choice(KINDS), "a") for _ in range(count)]
    steps, events = [], []
    for at, first in enumerate(firsts):
        many = which in (Ceql, Sase, RowPattern) and rng.random() < 0.25
        times = rng.randint(2, 5) if many else 1
        related = which in (Sase, RowPattern, Automaton)
        own = {_condition(rng, at, firsts, related): None for _ in range(rng.choice([0, 1, 1, 2]))}
        name = f"e{at + 1}" if which is Eql else "abcd"[at]
        counted = (
            many and rng.random() < 0.6 and not any((one.type, one.times) == (first["type"], times) for one in steps)
        )
        steps.append(Step(first["type"], name, tuple(own), times, counted, counted and rng.random() < 0.5))
        events.append([dict(first) for _ in range(times)])
    asked = Asked(tuple(steps), keyed=rng.random() < 0.5, window=rng.choice([None, 30, 30]))
    if which is Ceql:
        single = [at for at in range(1, count) if steps[at].times == steps[at - 1].times == 1]
        strict = frozenset(at for at in single if rng.random() < 0.4)
        gaps = tuple((at, 2 + at) for at in range(1, count) if at not in strict and rng.random() < 0.15)
        asked = replace(asked, strict=strict, gaps=gaps)
    if which is Automaton:
        asked = replace(asked, strict=frozenset(at for at in range(1, count) if rng.random() < 0.5))
    if which is Sase:
        strategies = ["skip_till_next_match", "skip_till_any_match", "strict_contiguity", "partition_contiguity"]
        asked = replace(asked, strategy=rng.choice(strategies))
        if asked.strategy == "partition_contiguity":
            asked = replace(asked, keyed=True)
    if which in (Ceql, Sase, Eql) and rng.random() < 0.5 and not asked.strategy.endswith("contiguity"):
        places = [
            at for at in range(1, count) if at not in asked.strict and not any(at == own for own, _ in asked.gaps)
        ]
        if places:
            condition = ((Atom("x", ">", 4),),) if rng.random() < 0.5 else ()
            asked = replace(asked, absent=((rng.choice(places), Step("N", "n", condition)),))
            if which is Eql:
                asked = replace(asked, window=30)
    if which is Eql and rng.random() < 0.4:
        asked = replace(asked, until=Step("U", "u", ((Atom("x", ">", 4),),) if rng.random() < 0.5 else ()))
    if which is RowPattern:
        asked = replace(asked, anchors=rng.choice(["", "", "^", "$", "^$"]))
    return asked, events


def _laid(rng: random.Random, language: Language, events: list[list[Event]]) -> list[Event]:
    """The events of the match with their times, and others between them where there may be."""
    asked, found, now = language.asked, [], 0
    gaps = dict(asked.gaps)
    tight = asked.strategy.endswith("contiguity") or isinstance(language, RowPattern)
    for at, own in enumerate(events):
        for number, one in enumerate(own):
            if at + number and not tight and not (number == 0 and at in asked.strict):
                kinds = "ZN" if number == 0 and not any(at == place for place, _ in asked.absent) else "Z"
                for _ in range(rng.choice([0, 0, 1, 2])):
                    now += 1
                    found.append({**_event(rng, rng.choice(kinds), rng.choice("ab")), "t": now})
            now += gaps.get(at, 0) + 1 if not number else 1
            found.append({**one, "t": now, "own": at})
    if not asked.anchors:
        for _ in range(rng.randint(0, 3)):
            now += 1
            found.append({**_event(rng, rng.choice("ZABC"), "b" if asked.keyed else "a"), "t": now})
    return found


@dataclass
class Break:
    """Events of a match, in which one thing is to be broken."""

    rng: random.Random
    language: Language
    events: list[Event]

    @property
    def mine(self) -> list[int]:
        """The rows of the match."""
        return [row for row, one in enumerate(self.events) if "own" in one]

    def rows(self, hole: Hole) -> list[int]:
        """The rows of a step."""
        return [row for row in self.mine if self.events[row]["own"] == hole.step]

    def unasked(self) -> str:
        """A type that the query does not ask, or a field without a value."""
        row = self.rng.choice(self.mine)
        if self.rng.random() < 0.5:
            self.events[row]["type"] = self.rng.choice(["Q", self.events[row]["type"].lower()])
            return "type"
        self.events[row][self.rng.choice(FIELDS)] = None
        return "null"

    def condition(self, hole: Hole) -> bool:
        """A value for which a condition does not hold, and the others of the step do; whether there is one."""
        rows, asked = self.rows(hole), self.language.asked
        if hole.part < 0:
            for row in rows:
                self.events[row]["type"] = "Q"
            return True
        conditions = asked.steps[hole.step].conditions
        atoms, rest = conditions[hole.part], (*conditions[: hole.part], *conditions[hole.part + 1 :])
        name = atoms[0].field
        if name == "x" and any(
            each.other == hole.step for step in asked.steps for one in step.conditions for each in one
        ):
            return False
        bound = [next(one for one in self.events if one.get("own") == at) for at in range(len(asked.steps))]
        values = [None, *range(13)] if name != "s" else [None, "p", "q", "r", "zz"]
        for value in self.rng.sample(values, len(values)):
            changed = {**self.events[rows[0]], name: value}
            if not _holds(atoms, changed, bound) and all(_holds(one, changed, bound) for one in rest):
                for row in rows:
                    self.events[row][name] = value
                return True
        return False

    def window(self, hole: Hole) -> bool:
        """A step that comes too late."""
        for one in self.events[self.rng.choice(self.mine[1:]) :]:
            one["t"] += 40
        return True

    def gap(self, hole: Hole) -> bool:
        """A step that comes too early; whether nothing lies before it."""
        row = self.rows(hole)[0]
        before = self.events[max(one for one in self.mine if one < row)]["t"]
        if any(before < one["t"] < self.events[row]["t"] for one in self.events):
            return False
        shift = self.events[row]["t"] - before - 1
        for one in self.events[row:]:
            one["t"] -= shift
        return True

    def came(self, hole: Hole) -> bool:
        """An event that must not come, or not there."""
        if hole.kind == "strategy" and hole.step == EITHER:
            return False
        steps = len(self.language.asked.steps)
        at = hole.step if hole.step >= 0 else self.rng.randrange(1, steps)
        row = self.rows(replace(hole, step=at))[0]
        kind = {"negation": "N", "until": "U"}.get(hole.kind, "Z")
        self.events.insert(row, {**_event(self.rng, kind, "a"), "x": 9, "t": self.events[row]["t"]})
        for one in self.events[row + 1 :]:
            one["t"] += 1
        return True

    def key(self, hole: Hole) -> bool:
        """An event of another key."""
        self.events[self.rng.choice(self.mine)]["k"] = self.rng.choice("bc")
        return True

    def count(self, hole: Hole) -> bool:
        """Fewer events, and one at least."""
        rows = self.rows(hole)
        for row in sorted(self.rng.sample(rows, self.rng.randrange(1, len(rows))), reverse=True):
            del self.events[row]
        return True

    def anchor(self, hole: Hole) -> bool:
        """A row before the match, or behind it."""
        first = hole.names == ("^",)
        at = self.events[0]["t"] - 1 if first else self.events[-1]["t"] + 1
        self.events.insert(0 if first else len(self.events), {**_event(self.rng, "Z", "a"), "t": at})
        return True


BREAKS: dict[str, Callable[[Break, Hole], bool]] = {
    "condition": Break.condition,
    "window": Break.window,
    "gap": Break.gap,
    "negation": Break.came,
    "until": Break.came,
    "contiguity": Break.came,
    "strategy": Break.came,
    "key": Break.key,
    "count": Break.count,
    "anchor": Break.anchor,
}


def _holds(atoms: Sequence[Atom], event: Event, bound: Sequence[Event]) -> bool:
    return any(one.holds(event, bound) for one in atoms)


def case(seed: int) -> Case:
    """A case from a seed.

    >>> case(0).language.name
    'ceql'
    """
    which, rng = LANGUAGES[seed % len(LANGUAGES)], random.Random(seed)
    for _ in itertools.count():
        asked, planted = _planted(rng, which)
        language = which(asked)
        laid = _laid(rng, language, planted)
        made = Break(rng, language, [dict(one) for one in laid])
        holes = language.holes()
        hole = rng.choice(holes) if holes and rng.random() < 0.8 else None
        if hole is None or BREAKS[hole.kind](made, hole):
            broken = made.unasked() if hole is None else hole.kind
            whole, events = (
                tuple({key: one[key] for key in SCHEMA.names} for one in own) for own in (laid, made.events)
            )
            return Case(language, whole, events, broken, hole)
    raise AssertionError


def check(one: Case, seed: int = 0) -> int:
    """Raise an AssertionError unless the answer is right; how many near misses were judged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stretto.StrettoWarning)  # of results without rows
        return _check(one, seed)


def _check(one: Case, seed: int) -> int:
    language = one.language
    assert language.rows((), one.whole), f"nothing planted\n{one!r}"
    there = language.rows((), one.events)
    rng = random.Random(seed)
    answer = language.why(one.events)
    told = f"{one!r}\n{answer}"
    assert answer.matches == bool(there), told
    if there:
        return _about(one, rng, told)
    assert answer.misses, told
    assert not answer.notes, told
    seen = set[tuple[str, ...]]()
    for miss in answer.misses:
        _judge(one, miss, told, None)
        names = tuple(reason.text for reason in miss.reasons)
        if len(names) == 1 and names not in seen and miss.reasons[0].kind != "absent":  # the nearest of its constraint
            _alone(one, miss, miss.reasons[0], language.find(miss.reasons[0]), told)
        seen.add(names)
    if one.hole is not None and language.rows((one.hole,), one.events):
        alone = [
            language.find(miss.reasons[0])
            for miss in answer.misses
            if len(miss.reasons) == 1 and miss.reasons[0].kind != "absent"
        ]
        assert one.hole in alone, f"what was broken is not named\n{told}"
    return len(answer.misses) + _about(one, rng, told)


def _about(one: Case, rng: random.Random, told: str) -> int:
    """Ask about one event; how many near misses were judged."""
    row = rng.randrange(len(one.events))
    answer = one.language.why(one.events, event=row)
    told = f"event {row}: {told}\n{answer}"
    held = any(_has(one.language, rows, row, one) for rows in one.language.rows((), one.events))
    if isinstance(one.language, RowPattern):
        assert held or not answer.matches, told
        if not answer.matches and held:
            assert [reason.kind for reason in answer.reasons] == ["choice"], told
            return 1
    else:
        assert answer.matches == held, told
    if held or answer.matches:
        return 0
    assert answer.misses, told
    for miss in answer.misses:
        _judge(one, miss, told, row)
    return len(answer.misses)


def _has(language: Language, rows: tuple[int, ...], row: int, one: Case) -> bool:
    """Whether a match holds a row."""
    if not isinstance(language, RowPattern | Automaton):
        return row in rows
    same = not language.asked.keyed or one.events[row]["k"] == one.events[rows[0]]["k"]
    return rows[0] <= row <= rows[1] and same


def _judge(one: Case, miss: NearMiss, told: str, event: int | None) -> None:
    """Without the reasons of a near miss there is a match, which it shows; without fewer there is none."""
    language, events = one.language, one.events
    told = f"{[str(reason) for reason in miss.reasons]}\n{told}"
    kinds = [reason.kind for reason in miss.reasons]

    def found(dropped: Collection[Hole], own: Sequence[Event] = events) -> list[tuple[int, ...]]:
        there = language.rows(dropped, own)
        if event is None:
            return there
        key = any(hole.kind == "key" for hole in dropped)
        spans = isinstance(language, Automaton | RowPattern)
        return [
            rows
            for rows in there
            if (rows[0] <= event <= rows[1] if key and spans else _has(language, rows, event, one))
        ]

    if "absent" in kinds or "type" in kinds:
        # What is contiguous is relaxed to what skips to the next event, and that no further.
        kept = language.asked.strategy.endswith("contiguity") and event is not None
        assert not found([hole for hole in language.holes() if hole.step != EITHER or not kept]), told
        return
    if "choice" in kinds:
        return
    dropped = [language.find(reason) for reason in miss.reasons]
    rows = found(dropped)
    assert rows, f"without what is named there is no match\n{told}"
    shown = tuple(sorted({row for own in miss.events.values() for row in own}))
    if isinstance(language, RowPattern | Automaton):
        shown = shown[0], shown[-1]
    if isinstance(language, RowPattern):  # another match may be preferred to the nearest one
        assert shown[0] in [own[0] for own in rows], f"no match begins as the one that is shown\n{told}"
    else:
        assert shown in rows, f"the match that is shown is none: {shown} of {rows}\n{told}"
    held = (
        shown[0] <= event <= shown[-1]
        if event is not None and isinstance(language, RowPattern | Automaton)
        else event in shown
    )
    assert event is None or held, f"it does not show the event\n{told}"
    for each in dropped:
        rest = [other for other in dropped if other != each]
        assert not found(rest), f"less is enough: without {each}\n{told}"


def _nearest_count(
    language: Language, events: Sequence[Event], miss: NearMiss, values: dict[str, Any], hole: Hole, told: str
) -> None:
    """No other number of events is nearer to what is asked."""
    asked = language.asked.steps[hole.step]
    (own,) = (len(own) for name, own in miss.events.items() if name.lower() == asked.name)
    assert own in values.values(), told
    for times in range(asked.times - 1, 1, -1):
        if asked.times - times < abs(asked.times - own):
            steps = list(language.asked.steps)
            steps[hole.step] = replace(asked, times=times, open=False)
            other = type(language)(replace(language.asked, steps=tuple(steps)))
            assert not other.rows((), events), f"{times} are nearer than {own}\n{told}"


def _alone(one: Case, miss: NearMiss, reason: Reason, hole: Hole, told: str) -> None:
    """One reason alone: what it names, changed as little as it says."""
    language, events = one.language, list(one.events)
    values, held = dict(reason.values), {row for own in miss.events.values() for row in own}
    if hole.kind == "window":
        more = 1 if isinstance(language, RowPattern | Automaton) else 0  # less than so long
        lasts = (
            values["lasts"]
            if not isinstance(values["lasts"], datetime.timedelta)
            else int(values["lasts"].total_seconds())
        )
        for long, there in ((lasts + more, True), (lasts + more - 1, False)):
            other = type(language)(replace(language.asked, window=long))
            assert bool(other.rows((), events)) == there, f"window {long}\n{told}"
    if hole.kind == "count":
        _nearest_count(language, events, miss, values, hole, told)
    if hole.kind in ("negation", "contiguity", "until", "strategy") and not held & set(reason.rows):
        kept = [row for row in range(len(events)) if row not in reason.rows]
        assert reason.rows, told
        assert language.rows((), [events[row] for row in kept]), f"without the rows {reason.rows}\n{told}"
        for each in reason.rows:  # each of them is in the way of this match
            rest = sorted([*kept, each])
            found = [tuple(rest[at] for at in own) for own in language.rows((), [events[row] for row in rest])]
            assert tuple(sorted(held)) not in found, f"row {each} is not in the way\n{told}"
    if hole.kind == "gap":
        for least, there in ((values["apart"], True), (values["apart"] + 1, False)):
            gaps = {**dict(language.asked.gaps), hole.step: least}
            other = type(language)(replace(language.asked, gaps=tuple(gaps.items())))
            if there or all(
                own.times == 1 for own in language.asked.steps
            ):  # else an event completes other matches, too
                assert bool(other.rows((), events)) == there, f"a gap of {least}\n{told}"
    if hole.kind == "condition" and len(reason.rows) == 1 and hole.part >= 0:
        row = reason.rows[0]
        atoms = language.asked.steps[hole.step].conditions[hole.part]
        for name in {own.field for own in atoms}:
            written = [value for key, value in reason.values if key.split(".")[-1] == name or key == name]
            assert events[row][name] in written, f"{name} is {events[row][name]}\n{told}"
        if any(own.other is not None and value is None for own in atoms for _, value in reason.values):
            return  # the other event has no value
        names = sorted({own.field for own in atoms})
        numbers = [*range(14), *range(14, 24, 3)]
        for tried in itertools.product(*(["p", "q", "r"] if name == "s" else numbers for name in names)):
            if language.rows(
                (), [*events[:row], {**events[row], **dict(zip(names, tried, strict=True))}, *events[row + 1 :]]
            ):
                return
        raise AssertionError(f"no other value of {names} in row {row} makes it match\n{told}")
