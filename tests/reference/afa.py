"""The reference evaluator of the AFA operator: definition 2 by brute force, over all events and arcs at once.

AFA paper, sections 2.2 (instantaneous descriptions and the next-ID relation), 2.3 (lifetimes of arcs) and appendix D (ignorable
arcs); SEMANTICS.md (AFA) for what they leave open. Every contiguous subsequence of every partition is run on its own; nothing is
shared, indexed or kept. :class:`Replay` applies a log of inputs and tells what each of them changes, by computing everything
anew. It is the judge of the engine's tests, and slow.

>>> import pyarrow as pa
>>> from stretto.query.afa import Afa, Arc, Emit
>>> from stretto.query.predicate import Arithmetic, Attribute, Comparison, Constant
>>> more = (Arithmetic("+", Attribute("r.n"), Constant(1)),)
>>> big, small = (Comparison(op, Attribute("e.v"), Constant(5)) for op in (">", "<="))
>>> afa = Afa(
...     events={"v": pa.int64()}, register={"n": pa.int64()}, initial=(0,), start="q0", finals={"q1": Emit.EVERY},
...     arcs=(Arc("a0", "q0", "q1", when=big, then=more), Arc("a1", "q1", "q1", when=small, then=more)),
... )
>>> events = [Event(row, (), le=row, payload={"v": v}, re=row + 2) for row, v in enumerate([7, 3, 2, 9])]
>>> for output in sorted(outputs(afa, events)):
...     print(output.first, output.last, output.register, (output.le, output.re))
0 0 (1,) (0, 2)
0 1 (2,) (1, 2)
3 3 (1,) (3, 5)
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, overload

from stretto.errors import DataError, LimitError, OptionError
from stretto.query.afa import Afa, Arc, Emit, Kind
from stretto.query.evaluate_afa import MOST_STEPS, Description, Event, Register, initial, steps

#: A description in a closure over ε-arcs, and whether it ignored the event where that is not told.
Node = tuple[Description, bool]


class Output(NamedTuple):
    """An output event: the partition, the rows of the first and last event, the register, and the lifetime ``[le, re)``."""

    partition: tuple[Any, ...]
    first: int
    last: int
    register: Register
    le: int
    re: int | None


# ---- Definition 2


@overload
def outputs(
    afa: Afa, events: Iterable[Event], *, bag: Literal[False] = False, numbered: bool = False
) -> set[Output]: ...
@overload
def outputs(afa: Afa, events: Iterable[Event], *, bag: Literal[True], numbered: bool = False) -> Counter[Output]: ...
def outputs(
    afa: Afa, events: Iterable[Event], *, bag: bool = False, numbered: bool = False
) -> set[Output] | Counter[Output]:
    """The output of an AFA over a set of events.

    Parameters
    ----------
    afa
        The automaton; its arcs have their final lifetimes. Its window is not read: each event has its own lifetime.
    events
        All events, in any order.
    bag
        One output per computation in place of one per (partition, first event, last event, register). Computations differ in the
        arcs that take events; between two events, ε-arcs lead from one description to another or not, whatever the number of ways.
    numbered
        No transition between events whose numbers do not differ by exactly 1 (AFA+O).

    Raises
    ------
    DataError
        A transfer gives NULL, or a value that its field does not hold; a Python fence gives something else than a truth value.
    LimitError
        The ε-arcs reach ever new registers; the message names the cycle.
    """
    found = _counted(afa, events, bag=bag, numbered=numbered)
    return found if bag else set(found)


def _counted(afa: Afa, events: Iterable[Event], *, bag: bool, numbered: bool) -> Counter[Output]:
    found: Counter[Output] = Counter()
    for stream in _substreams(events).values():
        for begin in range(len(stream)):
            found.update(_matches(_Run(afa, bag), stream[begin:], numbered))
    return found


def _substreams(events: Iterable[Event]) -> dict[tuple[Any, ...], list[Event]]:
    """The events of each partition in stream order."""
    found: defaultdict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda one: one.place):
        if None not in event.key:
            found[event.key].append(event)
    return found


def _matches(run: _Run, stream: Sequence[Event], numbered: bool) -> Iterator[Output]:
    """The outputs of all subsequences that begin with a stream's first event."""
    first = stream[0]
    least = math.inf
    reached = run.started(first)
    for at, event in enumerate(stream):
        least = min(least, math.inf if event.re is None else event.re)
        if event.le >= least:
            return  # an empty lifetime, and longer subsequences have none either
        if numbered and at and event.number != _next(stream[at - 1].number):
            return
        entered, ignored = run.consumed(reached, event)
        reached = entered + ignored
        if not reached:
            return
        emitted = +Counter({one: count for one, count in entered.items() if one[0] in run.afa.finals})
        emitted += Counter({one: n for one, n in ignored.items() if run.afa.finals.get(one[0]) is Emit.EVERY})
        bag = Counter[Register]()
        for (_, register), count in emitted.items():
            bag[register] += count
        for register, count in bag.items():
            one = Output(first.key, first.row, event.row, register, event.le, None if least == math.inf else int(least))
            yield from [one] * (count if run.bag else 1)


def followed(afa: Afa, events: Iterable[Event]) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """The rows of the events that lead to each state, and that take each arc which takes events, in any computation."""
    run = _Run(replace(afa, finals={}), bag=False)
    states: defaultdict[str, set[int]] = defaultdict(set)
    arcs: defaultdict[str, set[int]] = defaultdict(set)
    for stream in _substreams(events).values():
        for begin in range(len(stream)):
            least, reached = math.inf, run.started(stream[begin])
            for event in stream[begin:]:
                least = min(least, math.inf if event.re is None else event.re)
                if event.le >= least:
                    break
                for description in reached:
                    for arc, _ in steps(run.afa, description, event, epsilon=False):
                        arcs[arc.id].add(event.row)
                entered, ignored = run.consumed(reached, event)
                for state, _ in entered:
                    states[state].add(event.row)
                reached = entered + ignored
    return dict(states), dict(arcs)


def _next(number: int | None) -> int | None:
    return None if number is None else number + 1


@dataclass
class _Run:
    """The next-ID relation of an AFA; descriptions are counted by the computations that lead to them (1 unless ``bag``)."""

    afa: Afa
    bag: bool

    def started(self, first: Event) -> Counter[Description]:
        """The descriptions before the first event is consumed; the ε-arcs must be valid at its time."""
        before: Counter[Description] = Counter({initial(self.afa): 1})
        return self._plain(before + self._by_epsilon(before, first))

    def consumed(
        self, reached: Counter[Description], event: Event
    ) -> tuple[Counter[Description], Counter[Description]]:
        """The descriptions after an event: those whose last transition enters the state, and those where it ignores the event."""
        entered: Counter[Description] = Counter()
        ignored: Counter[Description] = Counter()
        for description, count in reached.items():
            for arc, after in steps(self.afa, description, event, epsilon=False):
                (ignored if arc.kind is Kind.IGNORE else entered)[after] += count
        quiet = Counter({one: n for one, n in ignored.items() if self.afa.finals.get(one[0]) is Emit.ON_ENTER})
        entered += self._by_epsilon(entered + (ignored - quiet), event) + self._by_epsilon(quiet, event, quiet=True)
        return self._plain(entered), self._plain(ignored)

    def _plain(self, found: Counter[Description]) -> Counter[Description]:
        return found if self.bag else Counter(dict.fromkeys(found, 1))

    def _by_epsilon(self, found: Counter[Description], event: Event, *, quiet: bool = False) -> Counter[Description]:
        """What one or more ε-arcs lead to, over all computations; ``quiet``: also back to where they began, which enters it."""
        result: Counter[Description] = Counter()
        if any(arc.kind is Kind.EPSILON for arc in self.afa.arcs):
            for description, count in found.items():
                for after in self._closure(description, event, quiet):
                    result[after] += count
        return result

    def _closure(self, source: Description, event: Event, quiet: bool) -> set[Description]:
        """What a description reaches by ε-arcs, by a visited set."""
        trace: dict[Node, tuple[Node, str] | None] = {(source, quiet): None}
        waiting = [(source, quiet)]
        while waiting:
            before = waiting.pop()
            for arc, description in steps(self.afa, before[0], event, epsilon=True):
                after = (description, False)
                if after not in trace:
                    trace[after] = before, arc.id
                    waiting.append(after)
            if len(trace) > MOST_STEPS:
                raise _endless(_path_to(before, trace))
        del trace[source, quiet]
        return {description for description, _ in trace}


def _path_to(last: Node, trace: Mapping[Node, tuple[Node, str] | None]) -> list[tuple[str, str]]:
    """The states and arcs that lead to a description."""
    found = []
    step = trace[last]
    while step is not None:
        before, arc = step
        found.append((before[0][0], arc))
        step = trace[before]
    return found[::-1]


def _endless(path: Sequence[tuple[str, str]]) -> LimitError:
    """The error that names the cycle at the end of a path of ε-arcs."""
    last = path[-1][0]
    begin = max((i for i, (state, _) in enumerate(path[:-1]) if state == last), default=0)
    cycle = path[begin:-1] or path
    text = "".join(f"'{state}' -{arc}-> " for state, arc in cycle)
    return LimitError(
        f"the ε-arcs reach more than {MOST_STEPS} registers without an event: {text}'{cycle[0][0]}'\n"
        "hint: a fence on one of them must end the cycle"
    )


# ---- Logs of inputs


@dataclass(frozen=True)
class Row:
    """An input row: what an :class:`Event` has, before it has arrived."""

    key: tuple[Any, ...]
    le: int
    payload: Mapping[str, Any]
    sequence: int | None = None
    re: int | None = None
    number: int | None = None


@dataclass(frozen=True)
class Insert:
    """An event arrives."""

    row: Row


@dataclass(frozen=True)
class Retract:
    """An event is taken back: the one with the same partition, time and sequence; without a sequence, payload and lifetime."""

    row: Row


@dataclass(frozen=True)
class Revise:
    """A retraction and an insertion with the same partition, time and sequence, in one step; the event keeps its row."""

    old: Row
    new: Row


@dataclass(frozen=True)
class Punctuate:
    """No later event has a time below this one."""

    time: int


@dataclass(frozen=True)
class PunctuateArcs:
    """No later change of an arc with an explicit lifetime concerns a time below this one."""

    time: int


@dataclass(frozen=True)
class AddArc:
    """An arc is added; in the default mode it is valid after the greatest time seen. ``final`` makes its target final."""

    arc: Arc
    final: Emit | None = None


@dataclass(frozen=True)
class RetireArc:
    """An arc is valid before ``at`` only (``None``: never); in the default mode, up to and including the greatest time seen."""

    id: str
    at: int | None = None


Step = Insert | Retract | Revise | Punctuate | PunctuateArcs | AddArc | RetireArc


@dataclass(frozen=True)
class Change:
    """What a step changes: outputs that are no more, then new ones, each by (last event, first event, register)."""

    retracted: tuple[Output, ...] = ()
    inserted: tuple[Output, ...] = ()


@dataclass
class Replay:
    """A log of inputs applied one by one, each with the exact difference that it makes to the output.

    Parameters
    ----------
    afa
        The automaton; it changes as arcs do, and keeps retired arcs with the lifetimes that were recorded.
    window
        How long an event contributes, in ticks; ``None``: for ever. Not used with ``until``.
    until
        Whether rows bring the right ends of their lifetimes.
    sequenced
        Whether rows bring a sequence number that breaks ties of time; otherwise their numbers (with ``numbered``), or arrival, do.
    bag, numbered
        As in :func:`outputs`.
    dynamic
        ``default``: changes of arcs take effect after the greatest time seen. ``explicit``: when they say.
    late
        ``error``: a late row is a :class:`~stretto.errors.DataError`. ``drop``: it is kept in ``late_rows`` and changes nothing.
        Late are events below the punctuation, and retractions of what is not there. A row with a NULL in its key is in no
        substream: it is counted, and that is all.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from stretto.query.afa import Afa, Arc, Emit
    >>> from stretto.query.predicate import Attribute, Comparison, Constant
    >>> def sees(letter):
    ...     return Comparison("=", Attribute("e.x"), Constant(letter))
    >>> arcs = (Arc("a0", "q0", "q1", sees("a")), Arc("a1", "q1", "q2", sees("b")))
    >>> replay = Replay(Afa({"x": pa.string()}, {}, (), "q0", arcs, {"q2": Emit.EVERY}))
    >>> for time, letter in [(1, "a"), (5, "b"), (3, "c")]:
    ...     change = replay.step(Insert(Row((), time, {"x": letter})))
    ...     print([(one.first, one.last) for one in change.retracted], [(one.first, one.last) for one in change.inserted])
    [] []
    [] [(0, 1)]
    [(0, 1)] []
    """

    afa: Afa
    window: int | None = None
    until: bool = False
    sequenced: bool = False
    bag: bool = False
    numbered: bool = False
    dynamic: str = "default"
    late: str = "error"
    events: list[Event] = field(default_factory=list)
    late_rows: list[Row] = field(default_factory=list)
    rows: int = 0
    greatest: int | None = None
    event_punctuation: int | None = None
    arc_punctuation: int | None = None
    current: Counter[Output] = field(default_factory=Counter)

    @property
    def punctuation(self) -> int | None:
        """The time below which the output is final: with explicit lifetimes, arcs must be punctuated as well."""
        if self.dynamic == "default":
            return self.event_punctuation
        if self.event_punctuation is None or self.arc_punctuation is None:
            return None
        return min(self.event_punctuation, self.arc_punctuation)

    def step(self, step: Step) -> Change:
        """Apply one input. An error leaves everything as it was."""
        after = replace(self, events=list(self.events), late_rows=list(self.late_rows))
        after.apply(step)
        found = self.current
        if after.events != self.events or after.afa is not self.afa:
            found = _counted(after.afa, after.events, bag=self.bag, numbered=self.numbered)
        places = {event.row: event.place for event in (*self.events, *after.events)}
        change = Change(_ordered(self.current - found, places), _ordered(found - self.current, places))
        self.__dict__.update(after.__dict__)
        self.current = found
        return change

    def apply(self, step: Step) -> None:
        """Take one input in, without the change that it makes; an error may leave half of it."""
        match step:
            case Insert(row):
                self._insert(row)
            case Retract(row):
                self._retract(row)
            case Revise(old, new):
                at = self._retract(old)
                self._insert(new, at)
            case Punctuate(time):
                if self.event_punctuation is not None and time < self.event_punctuation:
                    raise DataError(f"a punctuation goes back from {self.event_punctuation} to {time}")
                self.event_punctuation = time
            case PunctuateArcs(time):
                if self.arc_punctuation is not None and time < self.arc_punctuation:
                    raise DataError(f"a punctuation of arcs goes back from {self.arc_punctuation} to {time}")
                self.arc_punctuation = time
            case AddArc(arc, final):
                self._add_arc(arc)
                if final is not None:
                    self.afa = replace(self.afa, finals={**self.afa.finals, arc.target: final})
            case RetireArc(name, at):
                self._retire_arc(name, at)

    # ---- Events

    def _insert(self, row: Row, revised: Event | None = None) -> None:
        number = self._arrived()
        if None in row.key or self._is_late(row, "the event's time is below the punctuation"):
            return
        self.greatest = row.le if self.greatest is None else max(self.greatest, row.le)
        re = row.re if self.until else None if self.window is None else row.le + self.window
        if revised is not None:
            number = revised.row
        sequence = row.sequence if self.sequenced else row.number if self.numbered else number
        assert sequence is not None
        if any((one.key, one.le, one.sequence) == (row.key, row.le, sequence) for one in self.events):
            raise DataError(f"row {number}: there is an event of time {row.le} and sequence number {sequence} already")
        if self.numbered and any(
            one.key == row.key and (one.le - row.le) * (one.sequence - sequence) <= 0 and one.le != row.le
            for one in self.events
        ):
            self._to_policy(row, f"its sequence number {sequence} contradicts its time")
            return
        self.events.append(Event(number, row.key, row.le, row.payload, sequence, re, row.number))

    def _retract(self, row: Row) -> Event | None:
        """Take an event back; which one it was, ``None`` if it was late or is not there."""
        self._arrived()
        if None in row.key or self._is_late(row, "the retracted event's time is below the punctuation"):
            return None
        event = self._meant(row)
        if event is None:
            self._to_policy(row, "the retracted event is not there")
            return None
        self.events.remove(event)
        return event

    def _meant(self, row: Row) -> Event | None:
        """The event that a retraction means: the last arrived one of equals."""
        there = [one for one in self.events if (one.key, one.le) == (row.key, row.le)]
        if self.sequenced or self.numbered:
            tie = row.sequence if self.sequenced else row.number
            there = [one for one in there if one.sequence == tie]
        else:
            there = [one for one in there if one.payload == row.payload]
        return max(there, key=lambda one: one.row, default=None)

    def _arrived(self) -> int:
        self.rows += 1
        return self.rows - 1

    def _is_late(self, row: Row, why: str) -> bool:
        late = self.event_punctuation is not None and row.le < self.event_punctuation
        if late:
            self._to_policy(row, why)
        return late

    def _to_policy(self, row: Row, why: str) -> None:
        if self.late == "error":
            raise DataError(f"row {self.rows - 1}, time {row.le}: {why}")
        self.late_rows.append(row)

    # ---- Arcs

    @property
    def _now(self) -> int | None:
        """The greatest time seen, of events and of punctuations (section 2.3: t_curr)."""
        seen = [one for one in (self.greatest, self.event_punctuation) if one is not None]
        return max(seen, default=None)

    def _in_force(self, name: str) -> Arc | None:
        """The arc of an id, unless it is retired; by default the id is free then."""
        for arc in self.afa.arcs:
            retired = arc.until is not None
            if self.dynamic == "explicit":
                retired = arc.until is not None and arc.since is not None and arc.until <= arc.since
            if arc.id == name and not retired:
                return arc
        return None

    def _add_arc(self, arc: Arc) -> None:
        if self._in_force(arc.id) is not None:
            raise OptionError(f"there is an arc '{arc.id}' already")
        if self.dynamic == "default":
            arc = replace(arc, since=None if self._now is None else self._now + 1, until=None)
        else:
            self._arc_is_in_time(arc.since)
        self.afa = replace(self.afa, arcs=(*self.afa.arcs, arc))

    def _retire_arc(self, name: str, at: int | None) -> None:
        arc = self._in_force(name)
        if arc is None:
            raise OptionError(f"there is no arc '{name}'")
        now = self._now
        if self.dynamic == "explicit":
            self._arc_is_in_time(arc.since if at is None else at)
        elif now is not None:
            at = now + 1
        # Without a time it is as if it had never been.
        left = () if at is None else (replace(arc, until=at),)
        self.afa = replace(self.afa, arcs=(*(one for one in self.afa.arcs if one is not arc), *left))

    def _arc_is_in_time(self, since: int | None) -> None:
        if self.arc_punctuation is not None and (since is None or since < self.arc_punctuation):
            raise DataError(f"the arc's lifetime changes before the punctuation of arcs, {self.arc_punctuation}")


def _ordered(found: Counter[Output], places: Mapping[int, tuple[int, int, int]]) -> tuple[Output, ...]:
    """Outputs by (last event, first event, register)."""
    return tuple(sorted(found.elements(), key=lambda one: (places[one.last], places[one.first], one.register)))
