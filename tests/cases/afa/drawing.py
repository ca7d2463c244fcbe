"""Random cases for the AFA operator: an automaton, and a log of events, retractions, revisions, punctuations and changes of arcs.

Seeds come in groups: those of one group have the same automaton (which is compiled once) and different logs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import pyarrow as pa

from stretto.query.afa import Afa, Arc, Emit, Kind, UserFunction, reached
from tests.cases.afa.values import fence, transfer
from tests.cases.choices import Seeded
from tests.reference.afa import (
    AddArc,
    Change,
    Insert,
    Punctuate,
    PunctuateArcs,
    Replay,
    RetireArc,
    Retract,
    Revise,
    Row,
    Step,
)

__all__ = ["FUNCTIONS", "GROUP", "AfaCase", "Automaton", "Way", "automaton_of", "case"]

#: How many seeds share an automaton.
GROUP = 40


@dataclass(frozen=True)
class Way:
    """An arc as a user writes it; a fence or a transfer that is ``@name`` is a function of :data:`FUNCTIONS`."""

    id: str
    source: str
    target: str
    when: str | None = None
    then: Mapping[str, str] | str | None = None
    kind: Kind = Kind.CONSUME


#: Python functions, with their text and the event's fields that they use. They fit registers that have the fields.
FUNCTIONS: dict[str, tuple[str, Callable[[Any, Any], Any], tuple[str, ...]]] = {
    "@more": ("lambda e, r: e.a > r.i", lambda e, r: e.a > r.i, ("a",)),
    "@odd": ("lambda e, r: (e.a + r.i) % 2 == 1", lambda e, r: (e.a + r.i) % 2 == 1, ("a",)),
    "@near": ("lambda e, r: abs(e.f - r.g) <= 0.5", lambda e, r: abs(e.f - r.g) <= 0.5, ("f",)),
    "@few": ("lambda e, r: r.i < 2", lambda e, r: r.i < 2, ()),
    "@i": ("lambda e, r: (min(r.i + e.a, 5),)", lambda e, r: (min(r.i + e.a, 5),), ("a",)),
    "@i0": ("lambda e, r: ((r.i + 1) % 4,)", lambda e, r: ((r.i + 1) % 4,), ()),
    "@ig": ("lambda e, r: (e.a, r.g + 0.5)", lambda e, r: (e.a, r.g + 0.5), ("a",)),
    "@ig0": ("lambda e, r: ((r.i + 1) % 3, -1.5)", lambda e, r: ((r.i + 1) % 3, -1.5), ()),
}  # fmt: skip

#: Types of the event's fields, and of the register's with their first value.
EVENT_TYPES: dict[str, pa.DataType] = {
    "a": pa.int64(),
    "c": pa.int32(),
    "f": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "ts": pa.timestamp("us"),
}
REGISTER: dict[str, tuple[pa.DataType, Any]] = {
    "i": (pa.int64(), 0),
    "j": (pa.int64(), 1),
    "g": (pa.float64(), 0.0),
    "s": (pa.string(), ""),
    "b": (pa.bool_(), False),
    "at": (pa.timestamp("us"), dt.datetime(2020, 1, 1)),
}


TIME_TYPES = [pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.timestamp("ns"), pa.int32(), pa.date32()]


@dataclass(frozen=True)
class Automaton:
    """An AFA as a user writes it, with arcs that may be added later."""

    events: tuple[str, ...]
    register: tuple[str, ...]
    ways: tuple[Way, ...]
    finals: Mapping[str, Emit]
    window: int | None = None
    partition_by: tuple[str, ...] = ()
    key_types: tuple[pa.DataType, ...] = ()
    later: tuple[Way, ...] = ()

    @property
    def schema(self) -> dict[str, pa.DataType]:
        """The event's fields."""
        return {name: EVENT_TYPES[name] for name in self.events} | dict(
            zip(self.partition_by, self.key_types, strict=True)
        )

    @property
    def initial(self) -> tuple[Any, ...]:
        return tuple(REGISTER[name][1] for name in self.register)

    @cached_property
    def afa(self) -> Afa:
        """As a value, built without the builder."""
        made = Afa(
            events=self.schema,
            register={name: REGISTER[name][0] for name in self.register},
            initial=self.initial,
            start="q0",
            finals=dict(self.finals),
            window=self.window,
            partition_by=self.partition_by,
        )
        for way in self.ways:
            made = made.with_arc(self.arc(way, made.scope))
        return made

    def arc(
        self, way: Way, scope: Mapping[str, pa.DataType], since: int | None = None, until: int | None = None
    ) -> Arc:
        when = _function(way.when) if way.when and way.when.startswith("@") else fence(way.when, scope)
        then = _function(way.then) if isinstance(way.then, str) else transfer(way.then, self.register, scope)
        return Arc(way.id, way.source, way.target, when, then, way.kind, since, until)


def _function(name: str) -> UserFunction:
    _, python, uses = FUNCTIONS[name]
    return UserFunction(python, name[1:], uses)


@dataclass(frozen=True)
class AfaCase:
    """An automaton, a log, and how the matcher is asked to read it.

    ``ways`` gives the text of the arcs that the log adds, by id.
    """

    automaton: Automaton
    steps: tuple[Step, ...]
    until: bool = False
    sequenced: bool = False
    numbered: bool = False
    bag: bool = False
    dynamic: str = "default"
    late: str = "error"
    time_type: pa.DataType = field(default_factory=pa.int64)

    @property
    def ways(self) -> dict[str, Way]:
        return {way.id: way for way in (*self.automaton.ways, *self.automaton.later)}

    def replay(self) -> Replay:
        return Replay(
            self.automaton.afa,
            window=self.automaton.window,
            until=self.until,
            sequenced=self.sequenced,
            bag=self.bag,
            numbered=self.numbered,
            dynamic=self.dynamic,
            late=self.late,
        )

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What each step changes."""
        replay = self.replay()
        return tuple(replay.step(step) for step in self.steps)

    @property
    def signed(self) -> bool:
        """Whether there are retractions."""
        return any(isinstance(step, Retract | Revise) for step in self.steps)


# ---- Automata


@cache
def automaton_of(seed: int) -> Automaton:
    """The automaton of a group of seeds."""
    return _Drawing(Seeded(seed * 1_000_003 + 17)).automaton()


class _Drawing:
    """Draws an automaton, with expressions over the fields that it has."""

    def __init__(self, choose: Seeded) -> None:
        self.choose = choose
        self.events = tuple(name for name in EVENT_TYPES if name == "a" or choose.chance(45))
        many = choose.one_of([0, 1, 1, 2, 2, 3])
        fields = list(REGISTER)
        self.register = tuple(
            sorted({choose.one_of(fields) for _ in range(many)} if choose.chance(60) else set(["i", "g"][:many]),
                   key=fields.index)
        )  # fmt: skip
        self.states = [f"q{i}" for i in range(choose.one_of([1, 2, 2, 3, 3, 3, 4, 4, 5]))]
        # Transfers that may give NULL or overflow, and ε-cycles that may not end.
        self.faulty = choose.chance(6)

    def automaton(self) -> Automaton:
        return self.sequence() if self.choose.chance(20) else self.graph()

    def sequence(self) -> Automaton:
        """A sequence of values with others between that may be ignored, as people write it."""
        choose = self.choose
        last = choose.integer(1, 3)
        self.events, self.faulty = ("a", *[name for name in self.events if name != "a"][:1]), False
        self.states = [f"q{i}" for i in range(last + 1)]
        ways = []
        for i in range(last):
            when = choose.one_of([f"e.a = {i % 2}", f"e.a = {i % 2}", "e.a <= 1", "e.a < 1"])
            then = {
                one: text for one in self.register for text in [choose.one_of(self.values(one))] if "e." not in text
            }
            ways.append(Way(f"a{i}", f"q{i}", f"q{i + 1}", when, then or None))
            if i and choose.chance(25):
                ways.append(Way(f"b{i}", f"q{i}", f"q{i}", when, None))
        for i in range(1, last + 1):
            if choose.chance(85 if i < last else 40):
                noise = choose.one_of(["e.a > 1", "e.a > 1", "e.a != 0", "e.a != 1", None])
                ways.append(Way(f"x{i}", f"q{i}", f"q{i}", noise, None, Kind.IGNORE))
        finals = {f"q{last}": choose.one_of(list(Emit))}
        later = [
            Way("n0", "q0", "q1", "e.a = 2"), Way("n1", "q1", "q1", "e.a = 3", None, Kind.IGNORE),
            Way("n2", f"q{last - 1}", f"q{last}", "e.a = 2"), Way("n4", "q1", "new", "e.a = 3"),
        ]  # fmt: skip
        keys = choose.one_of([(), (), ("k",)])
        return Automaton(
            self.events, self.register, tuple(ways), finals, choose.one_of([None, 3, 4, 6, 10]), keys,
            tuple(pa.int64() for _ in keys), tuple(later),
        )  # fmt: skip

    def graph(self) -> Automaton:
        """Any arcs between any states."""
        choose = self.choose
        ways: list[Way] = []
        arcs = choose.integer(1, 2 + len(self.states))
        for i in range(arcs):
            # The first arcs are a path, so that something is reached.
            source, target = (
                (self.states[min(i, len(self.states) - 1)], self.states[min(i + 1, len(self.states) - 1)])
                if i < len(self.states) and choose.chance(70)
                else (choose.one_of(self.states), choose.one_of(self.states))
            )
            ways.append(self.consuming(f"a{i}", source, target))
        if choose.chance(40):
            for i in range(choose.integer(1, 3)):
                ways.append(self.epsilon(f"z{i}", choose.one_of(self.states), choose.one_of(self.states)))
        reached = sorted({way.target for way in ways})
        ignoring = [state for state in reached if state != "q0"]
        if choose.chance(50) and ignoring:
            for i in range(choose.integer(1, 2)):
                state = choose.one_of(ignoring)
                ways.append(Way(f"x{i}", state, state, self.fence(), None, Kind.IGNORE))
        finals = {state: choose.one_of(list(Emit)) for state in reached if choose.chance(30)}
        finals |= {choose.one_of(reached): Emit.EVERY, reached[-1]: choose.one_of(list(Emit))}
        if not _can_match(ways, finals):
            ways.append(Way(f"a{arcs}", "q0", next(iter(finals))))
        later = [
            self.consuming(f"n{i}", choose.one_of(self.states), choose.one_of(self.states))
            if choose.chance(70)
            else self.epsilon(f"n{i}", choose.one_of(self.states), choose.one_of(self.states))
            for i in range(2)
        ]
        later.append(replace(choose.one_of(ways), id="n2"))
        later.append(replace(self.consuming("n4", choose.one_of(reached), "new"), then=None))
        if ignoring:
            state = choose.one_of(ignoring)
            later.append(Way("n3", state, state, self.fence(), None, Kind.IGNORE))
        keys = choose.one_of([(), (), (), ("k",), ("k",), ("k", "k2")])
        return Automaton(
            events=self.events,
            register=self.register,
            ways=tuple(ways),
            finals={state: finals[state] for state in reached if state in finals},
            window=choose.one_of([None, None, 1, 2, 3, 4, 6, 10]),
            partition_by=keys,
            key_types=tuple(choose.one_of([pa.int64(), pa.string()]) for _ in keys),
            later=tuple(later),
        )

    def consuming(self, name: str, source: str, target: str) -> Way:
        when = self.fence()
        then = self.transfer()
        if isinstance(then, str):
            used = FUNCTIONS[then][2]
        else:
            used = tuple(field for field in self.events if any(f"e.{field}" in text.split() for text in then.values()))
        guards = "" if self.faulty else " and ".join(f"e.{field} is not null" for field in used)
        if guards and (when is None or when.startswith("@")):
            when = guards
        elif guards:
            when = f"{guards} and ({when})"
        return Way(name, source, target, when, then or None)

    def epsilon(self, name: str, source: str, target: str) -> Way:
        """An ε-arc; what it gives to fields comes from few values, so that cycles end."""
        then = {
            one: {
                "i": self.choose.one_of(["2", "(r.i + 1) % 3", "r.i % 2"]),
                "j": self.choose.one_of(["-1", "(r.j + 2) % 4"]),
                "g": "0.5",
                "s": "'y'",
                "b": "true",
            }[one]
            for one in self.register
            if one != "at" and self.choose.chance(40)
        }
        if self.faulty and "i" in then:
            then["i"] = "r.i + 1"
        return Way(name, source, target, self.fence(epsilon=True), then or None, Kind.EPSILON)

    # ---- Fences

    def fence(self, *, epsilon: bool = False) -> str | None:
        choose = self.choose
        kind = choose.integer(0, 9)
        if kind == 0 or (epsilon and kind < 4):
            return None
        if kind == 1 and not epsilon and choose.chance(40):
            fitting = [name for name, (text, _, _) in FUNCTIONS.items() if self.fits(text) and "(" not in name[1:]]
            fences = [name for name in fitting if name in ("@more", "@odd", "@near", "@few")]
            if fences:
                return choose.one_of(fences)
        if kind < 7:
            return self.atom(epsilon)
        first, second = self.atom(epsilon), self.atom(epsilon)
        if kind == 7:
            return f"{first} and {second}"
        if kind == 8:
            return f"{first} or {second}"
        return f"not ({first})" if choose.chance(50) else f"not ({first} and {second})"

    def fits(self, text: str) -> bool:
        """Whether a function's fields are there."""
        return all(f"e.{one}" not in text or one in self.events for one in EVENT_TYPES) and all(
            f"r.{one}" not in text or one in self.register for one in REGISTER
        )

    def atom(self, epsilon: bool) -> str:  # noqa: C901, PLR0911, PLR0912 - one case after the other
        choose = self.choose
        events = () if epsilon else self.events
        options = []
        if "a" in events or {"i", "j"} & set(self.register):
            options += ["int"] * 3
        if "f" in events or "g" in self.register:
            options.append("float")
        if "s" in events or "s" in self.register:
            options.append("string")
        if "b" in events or "b" in self.register:
            options.append("bool")
        if "ts" in events:
            options.append("time")
        if events and choose.chance(8):
            return f"e.{choose.one_of(events)} is {choose.one_of(['', 'not '])}null"
        match choose.one_of(options) if options else "none":
            case "int":
                one, other = self.integer(epsilon), self.integer(epsilon)
                while "." not in one:  # constants alone are refused
                    one = self.integer(epsilon)
                form = choose.integer(0, 9)
                if form == 0:
                    return f"{one} in (0, {choose.integer(1, 3)})"
                if form == 1:
                    return f"{one} between {choose.integer(-1, 1)} and {other}"
                if form == 2 and "f" in events:
                    return f"{one} <= e.f + 1"
                return f"{one} {choose.one_of(['=', '!=', '<', '<=', '>', '>=', '>='])} {other}"
            case "float":
                own = [f"e.{one}" for one in events if one == "f"] + [f"r.{one}" for one in self.register if one == "g"]
                return (
                    f"{choose.one_of(own)} {choose.one_of(['<', '<=', '>', '!='])} {choose.one_of([*own, '0.5', '1'])}"
                )
            case "string":
                own = [f"{prefix}.s" for prefix, names in (("e", events), ("r", self.register)) if "s" in names]
                one, other = choose.one_of(own), choose.one_of([*own, "'x'"])
                # Strings of the register are compared for equality only.
                ordered = "r.s" not in (one, other)
                if choose.chance(25):
                    return choose.one_of([f"{one} in ('x', 'é')", f"{one} like '%x%'"][: 1 + ordered])
                return f"{one} {choose.one_of(['=', '!=', '<', '>='][: 2 + 2 * ordered])} {other}"
            case "bool":
                own = [f"{prefix}.b" for prefix, names in (("e", events), ("r", self.register)) if "b" in names]
                return f"{choose.one_of(own)} {choose.one_of(['=', '!='])} {choose.one_of([*own, 'true'])}"
            case "time":
                other = "r.at" if "at" in self.register and choose.chance(70) else "'2020-01-01 00:00:02'"
                return f"e.ts {choose.one_of(['<=', '>', '!='])} {other}"
            case _:
                return "TRUE"

    def integer(self, epsilon: bool) -> str:
        """A value of type int64, by one to three operands."""
        choose = self.choose
        own = [] if epsilon else [f"e.{one}" for one in self.events if one in ("a", "c")] * 2
        own += [f"r.{one}" for one in self.register if one in ("i", "j")]
        own += [str(choose.integer(0, 2))]
        one = choose.one_of(own)
        form = choose.integer(0, 9)
        if form < 6:
            return one
        other = choose.one_of(own)
        return [f"{one} + {other}", f"{one} - {other}", f"({one} + 1) % 2", f"2 * {one} - {other}"][form - 6]

    # ---- Transfers

    def transfer(self) -> dict[str, str] | str:
        """Few values for each field, so that computations do not grow apart without end."""
        choose = self.choose
        if not self.register or choose.chance(20):
            return {}
        if choose.chance(12):
            named = {("i",): ["@i", "@i0"], ("i", "g"): ["@ig", "@ig0"]}.get(self.register, [])
            if named:
                return choose.one_of(named)
        found = {}
        for one in self.register:
            if choose.chance(65):
                found[one] = choose.one_of(self.values(one))
        return found

    def values(self, field: str) -> list[str]:
        """The expressions that a field may be given; names of attributes stand alone between blanks."""
        there = [one for one in ("a", "c") if one in self.events]
        integers = [f"e.{one}" for one in there] + ["( r.i + e.a ) % 5"] * ("i" in self.register)
        match field:
            case "i":
                return ["r.i + 1", "r.i + e.a", "0", "r.i - 2", *integers, "- r.i", *["r.j"] * ("j" in self.register)]
            case "j" if self.faulty:
                return ["r.j + 4611686018427387904", "r.j - 4611686018427387905", *integers]
            case "j":
                return ["r.j + 1", "( 3 * r.j - e.a ) % 7", "2", *integers]
            case "g":
                floats = ["e.f", "r.g + e.f"] if "f" in self.events else []
                return ["r.g + 0.5", "1", "e.a", "e.a / 2", *floats]
            case "s":
                return ["'x'", "'y'", *["e.s"] * 3 * ("s" in self.events)]
            case "b":
                return ["true", "false", *["e.b"] * 2 * ("b" in self.events)]
            case _:
                return ["e.ts"] if "ts" in self.events else ["r.at"]


# ---- Logs


def case(seed: int) -> AfaCase:
    """A case from a seed.

    >>> case(7) == case(7)
    True
    """
    choose = Seeded(seed)
    automaton = automaton_of(seed // GROUP)
    return _Log(choose, automaton).case()


class _Log:
    """Draws a log for an automaton."""

    def __init__(self, choose: Seeded, automaton: Automaton) -> None:
        self.choose = choose
        self.automaton = automaton
        self.until = automaton.window is None and choose.chance(35)
        self.numbered = choose.chance(12)
        self.sequenced = not self.numbered and choose.chance(40)
        self.dynamic = choose.one_of(["static", "static", "static", "default", "explicit"])
        self.late = choose.one_of(["error", "error", "drop"])
        self.time_type = choose.one_of([pa.int64()] * 6 + TIME_TYPES)
        # A time before zero, or a great one, now and then.
        great = 2**53 if pa.types.is_int64(self.time_type) else 10**15 if self.time_type == pa.timestamp("us") else 500
        self.begin = choose.one_of([0, 0, 0, 0, -4, great])
        self.keys = [
            tuple(self.key_value(kind, one) for kind, one in zip(automaton.key_types, ones, strict=True))
            for ones in [(0, 0), (1, 0), (1, 1)][: choose.integer(1, 3)]
        ] if automaton.key_types and len(automaton.key_types) == 2 else [
            tuple(self.key_value(kind, one) for kind in automaton.key_types) for one in range(choose.integer(1, 3))
        ]  # fmt: skip
        self.alive: list[Row] = []
        self.steps: list[Step] = []
        self.punctuation: int | None = None
        self.arc_punctuation: int | None = None
        self.arcs: dict[str, list[int | None]] = {way.id: [None, None] for way in automaton.ways}
        self.later = list(automaton.later)

    def case(self) -> AfaCase:
        choose = self.choose
        waiting = self.arrivals()
        drop = self.late == "drop"
        while waiting:
            action = choose.integer(0, 99)
            if action < 12 and self.alive:
                self.retract(waiting)
            elif action < 22 and self.alive:
                self.revise()
            elif action < 30:
                self.punctuate([row.le for row in waiting])
            elif action < 40 and self.dynamic != "static":
                self.change_arc([row.le for row in waiting])
            elif action < 44 and drop:
                self.unknown()
            else:
                row = waiting.pop(0)
                self.steps.append(Insert(row))
                if self.punctuation is None or row.le >= self.punctuation:
                    self.alive.append(row)
        for _ in range(choose.integer(0, 3)):
            if self.dynamic != "static" and choose.chance(60):
                self.change_arc([])
            elif self.alive and choose.chance(50):
                (self.revise if choose.chance(50) else lambda: self.retract([]))()
            else:
                self.punctuate([])
        return AfaCase(
            automaton=self.automaton,
            steps=tuple(self.steps),
            until=self.until,
            sequenced=self.sequenced,
            numbered=self.numbered,
            bag=choose.chance(12),
            dynamic="default" if self.dynamic == "static" else self.dynamic,
            late=self.late,
            time_type=self.time_type,
        )

    def key_value(self, kind: pa.DataType, one: int) -> Any:
        return one if pa.types.is_integer(kind) else "mno"[one]

    # ---- Events

    def arrivals(self) -> list[Row]:
        """Events in the order of their arrival."""
        choose = self.choose
        time, number = self.begin, choose.integer(0, 5)
        rows = []
        numbers: dict[Any, int] = {}
        letters = choose.integer(1, 3)
        many = choose.one_of([0, 1, 3, 5, 6, 7, 8, 9, 10, 11])
        if self.automaton.window in range(1, 5) and choose.chance(15):
            many = choose.integer(15, 35)  # a short window keeps the matches few
        for sequence in range(many):
            key = choose.one_of(self.keys)
            if key and choose.chance(6):
                key = (*key[:-1], None)
            numbers[key] = number = numbers.get(key, choose.integer(0, 3)) + choose.one_of([1, 1, 1, 1, 1, 1, 2])
            rows.append(self.row(key, time, sequence if self.sequenced else None, number, letters))
            time += choose.one_of([0, 1, 1, 1, 1, 2, 3])
        order = choose.integer(0, 3)
        if order == 1:
            place = {id(row): i + choose.one_of([0, 0, 1, 2, 3]) for i, row in enumerate(rows)}
            rows.sort(key=lambda row: place[id(row)])
        elif order == 2:
            rows.sort(key=lambda _: choose.integer(0, 10**9))
        elif order == 3 and choose.chance(50):
            rows.reverse()
        return rows

    def row(self, key: tuple[Any, ...], time: int, sequence: int | None, number: int, letters: int) -> Row:
        return Row(
            key,
            time,
            self.payload(letters) | dict(zip(self.automaton.partition_by, key, strict=True)),
            sequence,
            self.end(time) if self.until else None,
            number if self.numbered else None,
        )

    def end(self, time: int) -> int | None:
        return self.choose.one_of([None, time - 1, time + 1, *[time + self.choose.integer(1, 9)] * 5])

    def payload(self, letters: int) -> dict[str, Any]:
        choose = self.choose
        found: dict[str, Any] = {}
        for name in self.automaton.events:
            level = choose.integer(0, letters)
            found[name] = None if choose.chance(5) else {
                "a": level,
                "c": 2 - level,
                "f": level / 2,
                "s": ["x", "y", "xé", "é"][level],
                "b": level > 0,
                "ts": dt.datetime(2020, 1, 1, 0, 0, level),
            }[name]  # fmt: skip
        return found

    def to_change(self) -> Row | None:
        """An event that is there and may change."""
        rows = [row for row in self.alive if self.punctuation is None or row.le >= self.punctuation]
        if self.late == "drop" and self.choose.chance(15):
            rows = self.alive
        return self.choose.one_of(rows) if rows else None

    def retract(self, waiting: list[Row]) -> None:
        row = self.to_change()
        if row is None:
            return
        self.steps.append(Retract(self.named(row)))
        if self.punctuation is not None and row.le < self.punctuation:
            return
        self.alive.remove(row)
        if self.late == "drop" and self.choose.chance(20):
            # It comes again behind a punctuation, too late or just in time.
            self.punctuation = max(row.le + self.choose.integer(0, 1), self.punctuation or row.le)
            self.steps += [Punctuate(self.punctuation), Insert(row)]
            if self.punctuation <= row.le:
                self.alive.append(row)
        elif self.choose.chance(30):  # it comes again
            waiting.insert(self.choose.integer(0, len(waiting)), row)

    def named(self, row: Row) -> Row:
        """What a retraction says: the end of its lifetime does not matter, nor with a sequence its payload."""
        if self.until and self.choose.chance(20):
            row = replace(row, re=self.end(row.le))
        if (self.sequenced or self.numbered) and self.choose.chance(25):
            return replace(row, payload=row.payload | self.payload(3))
        return row

    def revise(self) -> None:
        row = self.to_change()
        if row is None:
            return
        new = replace(row, payload=row.payload | self.payload(3))
        if self.until and self.choose.chance(40):
            new = replace(new if self.choose.chance(50) else row, re=self.end(row.le))
        self.steps.append(Revise(self.named(row), new))
        if self.punctuation is None or row.le >= self.punctuation:
            self.alive[self.alive.index(row)] = new

    def unknown(self) -> None:
        """A retraction, or a revision, of what is not there."""
        time = self.begin + self.choose.integer(30, 40)
        row = self.row(self.keys[0], time, 99 if self.sequenced else None, 99, 3)
        self.steps.append(Retract(row))

    # ---- Punctuations

    def punctuate(self, times: Sequence[int]) -> None:
        """A promise that holds; under the drop policy now and then one that does not."""
        choose = self.choose
        seen = [row.le for row in self.alive]
        highest = min(times) if times else max(seen, default=self.begin) + choose.integer(0, 2)
        if self.late == "drop" and choose.chance(25):
            highest = choose.one_of([*times, *seen, highest])
        time = highest - choose.one_of([0, 0, 0, 1, 2])
        if self.punctuation is not None:
            time = max(time, self.punctuation)
        self.punctuation = time
        self.steps.append(Punctuate(time))

    # ---- Arcs

    def change_arc(self, times: Sequence[int]) -> None:
        choose = self.choose
        explicit = self.dynamic == "explicit"
        seen = [*times, *(row.le for row in self.alive), self.begin]
        action = choose.integer(0, 9)
        if action < 2 and explicit:
            time = choose.one_of(seen)
            self.arc_punctuation = time if self.arc_punctuation is None else max(time, self.arc_punctuation)
            self.steps.append(PunctuateArcs(self.arc_punctuation))
        elif action < 6 and self.later:
            way = self.later.pop(choose.integer(0, len(self.later) - 1))
            since: int | None = None
            until: int | None = None
            if explicit:
                since = choose.one_of([*seen, None])
                if self.arc_punctuation is not None:
                    since = self.arc_punctuation if since is None else max(since, self.arc_punctuation)
                if choose.chance(40):
                    until = (choose.one_of(seen) if since is None else since) + choose.integer(1, 6)
            self.arcs[way.id] = [since, until]
            final = Emit.EVERY if way.target == "new" else None
            self.steps.append(AddArc(self.automaton.arc(way, self.automaton.afa.scope, since, until), final))
        elif self.arcs:
            name = choose.one_of(sorted(self.arcs))
            since, until = self.arcs[name]
            at = None
            lately = since is not None and (self.arc_punctuation is None or since >= self.arc_punctuation)
            if explicit and choose.chance(15) and (lately or self.arc_punctuation is None):
                del self.arcs[name]  # for all times
                self.later += [way for way in self.automaton.later if way.id == name]
            elif explicit:
                lowest = max((one for one in (since, self.arc_punctuation) if one is not None), default=min(seen))
                at = max(choose.one_of(seen), lowest)
                if until is not None and at >= until:
                    return
                self.arcs[name][1] = at
                if choose.chance(50):
                    del self.arcs[name]
            else:
                del self.arcs[name]
                if choose.chance(60):  # its id is free
                    self.later += [way for way in (*self.automaton.ways, *self.automaton.later) if way.id == name]
            self.steps.append(RetireArc(name, at))


def _can_match(ways: Sequence[Way], finals: Mapping[str, Emit]) -> bool:
    """Whether a path with an event leads from q0 to a final state."""
    arcs = tuple(Arc(way.id, way.source, way.target, kind=way.kind) for way in ways)
    return not finals.keys().isdisjoint(reached(Afa({}, {}, (), "q0", arcs)))
