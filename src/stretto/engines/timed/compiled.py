"""A query compiled for the timed engine: immutable to the caller, with caches that only grow."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.automata.steps import Steps, steps_of
from stretto.columns.classes import Classifier
from stretto.engines.timed.structure import Machine
from stretto.query.algebra import is_timed
from stretto.query.guard import Guard
from stretto.query.passes.bind import BoundQuery, measure
from stretto.query.query import Strategy


class Compiled:
    """The machine of a bound query.

    Parameters
    ----------
    query
        What to find.
    valuations
        Report every valuation (CORE, section 2.2) in place of every complex event.
    told
        The variables of which it matters what they hold: a complex event of which two valuations disagree there is an error.
    """

    revises = False

    def __init__(self, query: BoundQuery, *, valuations: bool = False, told: frozenset[str] = frozenset()) -> None:
        self.query = query
        self.valuations = valuations
        self.told = frozenset[str]() if valuations else told
        steps = steps_of(query.pattern, query.size)
        self.steps: Steps = _strict(steps) if query.parsed.strategy is Strategy.STRICT else steps
        absent = dict.fromkeys(one for edge in self.steps.edges for one in sorted(edge.unless, key=str))
        own = [step.guard for step in self.steps.steps]
        ends = sorted(self.steps.before | self.steps.behind, key=str)
        self.guards: tuple[Guard, ...] = tuple(dict.fromkeys([*own, *absent, *ends]))
        only = query.parsed.streams[0]
        self.classifier = Classifier(self.guards, query.schema, default_type=only, default_stream=only)
        self.marks: Sequence[frozenset[str]] = list(
            dict.fromkeys([frozenset(), *(step.labels for step in self.steps.steps)])
        )
        #: What must not come between, by group.
        self.groups = list(dict.fromkeys(edge.unless for edge in self.steps.edges if edge.unless))
        self._lock = threading.Lock()
        self._classes = 0
        self._fixed = self._arrays()
        self.refresh()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions, windows and keys read."""
        return self.query.tested

    @cached_property
    def digest(self) -> str:
        """What the automaton is, in short: states are exchanged between programs of the same digest only."""
        return hashlib.sha256(str(self.steps).encode()).hexdigest()

    def begins(self, classes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which events may begin a match, by their classes."""
        machine = self.machine
        found = np.zeros(machine.begin.size - 1, np.bool_)
        for one in np.unique(classes):
            found[one] = machine.first[machine.step[machine.begin[one] : machine.begin[one + 1]]].any()
        return found[classes]

    def selecting(self, variable: str) -> NDArray[np.bool_]:
        """By class: whether a variable may hold its events."""
        number = {guard: at for at, guard in enumerate(self.guards)}
        mask = sum(1 << at for at in {number[step.guard] for step in self.steps.steps if variable in step.labels})
        return np.array([bool(vector & mask) for vector in self.classifier.vectors], np.bool_)

    def shape(self, unknown: frozenset[str]) -> Any:
        """What a state depends on, apart from the literals of conditions."""
        edges = [(one.source, one.target, one.contiguous, self._group(one.unless)) for one in self.steps.edges]
        return [len(self.steps.steps), edges, self.types[0].str, self.types[1].str]

    @cached_property
    def types(self) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """The types of the clock of gaps, and of what the query's window measures."""
        kinds = self.query.schema.attributes
        found = []
        for name in (self.query.clock, self.query.window.attribute if self.query.window else None):
            how = None if name is None else measure(kinds[name])
            found.append(np.dtype(np.float64 if how is not None and how.real else np.int64))
        return found[0], found[1]

    @cached_property
    def distinct(self) -> bool:
        """Whether several paths may be one match: neither from its first event nor from its last one do types tell the steps."""
        steps, edges = self.steps.steps, self.steps.edges
        if any(not step.labels for step in steps) or len({(e.source, e.target) for e in edges}) < len(edges):
            return True
        before, behind = [dict[int, list[int]]() for _ in range(2)]
        for edge in edges:
            before.setdefault(edge.target, []).append(edge.source)
            behind.setdefault(edge.source, []).append(edge.target)

        def told(choices: Iterable[Collection[int]]) -> bool:
            return all(len({steps[one].guard.type for one in them}) == len(them) for them in choices)

        return not told([*before.values(), self.steps.last]) and not told([*behind.values(), self.steps.first])

    @cached_property
    def greedy(self) -> bool:
        """Whether the match that NEXT keeps of each interval is found without listing others.

        It is found event by event from the end, which is wrong where a window inside asks what was chosen before.
        """
        alone = not self.steps.windows and all(step.labels for step in self.steps.steps)
        alone = alone and not (self.told and self.distinct)
        return alone and not self.valuations and self.query.parsed.strategy is Strategy.NEXT

    #: What its kernel does with the graph of an event's matches: it lists them (:attr:`~stretto.engines.api.Operator.inside`).
    inside = frozenset[str]()

    @cached_property
    def counts(self) -> bool:
        """Whether the matches of an event can be counted unlisted: each path is one, whatever lies on it, and none is chosen."""
        parsed = self.query.parsed
        whole = parsed.strategy in (Strategy.ALL, Strategy.STRICT) and not self.steps.behind
        return whole and not self.distinct and not self.steps.windows

    @cached_property
    def adjoins(self) -> bool:
        """Whether it matters which events are neighbours, or how many lie between."""
        counted = self.query.clock is None and is_timed(self.query.pattern)
        return counted or any(edge.contiguous for edge in self.steps.edges)

    def refresh(self) -> None:
        """Take in the classes that are known by now."""
        with self._lock:
            vectors = self.classifier.vectors
            if len(vectors) == self._classes:
                return
            self._classes = len(vectors)
            number = {guard: at for at, guard in enumerate(self.guards)}

            def among(guards: frozenset[Guard]) -> list[bool]:
                mask = sum(1 << number[one] for one in guards)
                return [bool(vector & mask) for vector in vectors]

            own = [number[step.guard] for step in self.steps.steps]
            steps = [[at for at, guard in enumerate(own) if vector >> guard & 1] for vector in vectors]
            begin = np.zeros(len(vectors) + 1, np.int64)
            np.cumsum([len(one) for one in steps], out=begin[1:])
            hits = np.array([among(one) for one in self.groups], np.bool_).T
            self.machine: Machine = self._fixed._replace(
                begin=begin,
                step=np.array([at for one in steps for at in one], np.int64),
                hits=np.ascontiguousarray(hits if self.groups else np.zeros((len(vectors), 0), np.bool_)),
                before=np.array(among(self.steps.before), np.bool_),
            )
            #: By class: whether an event must not come behind a match.
            self.behind: NDArray[np.bool_] = np.array(among(self.steps.behind), np.bool_)
            self.relevant: NDArray[np.bool_] = np.array([vector != 0 for vector in vectors], np.bool_)

    def _group(self, unless: frozenset[Guard]) -> int:
        return self.groups.index(unless) if unless else -1

    def _arrays(self) -> Machine:
        """What does not depend on classes."""
        steps, clock = self.steps, self.types[0]
        edges = sorted(steps.edges, key=lambda edge: edge.target)
        count = np.arange(len(steps.steps))
        leaving = sorted(range(len(edges)), key=lambda at: edges[at].source)
        late = np.array([bool(one.least) for one in edges], np.bool_)
        numbers, limits = np.arange(len(steps.steps) + 1), [one.most for one in edges]
        return Machine(
            begin=np.zeros(1, np.int64),
            step=np.zeros(0, np.int64),
            hits=np.zeros((0, 0), np.bool_),
            before=np.zeros(0, np.bool_),
            mark=np.array([self.marks.index(one.labels) for one in steps.steps], np.int32),
            told=_numbered(labels & self.told for labels in self.marks if self.told),
            first=np.isin(count, list(steps.first)),
            last=np.isin(count, list(steps.last)),
            inside=_bits(one.inside for one in steps.steps),
            into=np.searchsorted([one.target for one in edges], numbers).astype(np.int64),
            out=np.searchsorted([edges[at].source for at in leaving], numbers).astype(np.int64),
            leaving=np.array(leaving, np.int64),
            source=np.array([one.source for one in edges], np.int64),
            contiguous=np.array([one.contiguous for one in edges], np.bool_),
            group=np.array([self._group(one.unless) for one in edges], np.int64),
            opens=_bits(one.opens for one in edges),
            bounded=np.array([one is not None for one in limits], np.bool_),
            late=np.where(late, np.cumsum(late) - 1, -1),
            least=np.array([one.least or 0 for one in edges], clock),
            most=np.array([one or 0 for one in limits], clock),
            size=np.array(steps.windows, clock),
            window=np.array([self.query.window.size if self.query.window else 0], self.types[1]),
        )


def _strict(steps: Steps) -> Steps:
    """The steps of the matches that hold every event of their interval: neighbours all of them, and selected."""
    held = frozenset(at for at, step in enumerate(steps.steps) if step.labels)
    edges = (replace(one, contiguous=True) for one in steps.edges if {one.source, one.target} <= held)
    return replace(steps, edges=tuple(dict.fromkeys(edges)), first=steps.first & held, last=steps.last & held)


def _numbered(values: Iterable[frozenset[str]]) -> NDArray[np.int64]:
    """A number for each value, which equal ones share."""
    known: dict[frozenset[str], int] = {}
    return np.array([known.setdefault(one, len(known)) for one in values], np.int64)


def _bits(sets: Any) -> NDArray[np.int64]:
    return np.array([sum(1 << one for one in them) for them in sets], np.int64)
