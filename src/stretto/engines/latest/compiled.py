"""An EQL query as its engine reads it."""

from __future__ import annotations

import hashlib
import threading
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.columns.arrays import frozen
from stretto.columns.classes import Classifier, condition_of
from stretto.engines.latest.structure import Machine
from stretto.errors import LimitError
from stretto.query import predicate as p
from stretto.query.eql import Mode, Step
from stretto.query.guard import Guard
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.plan import Key

#: Different conditions of steps, which are bits of a word.
MOST_CONDITIONS = 63


class Compiled:
    """What a query is to the kernels. Immutable, shared by all runs of the query."""

    revises = False

    def __init__(self, query: BoundEql) -> None:
        self.query = query
        eql = query.parsed
        guards: dict[p.Predicate, int] = {}
        self._bit_of = [guards.setdefault(one, len(guards)) for one in conditions_of(query)]
        if len(guards) > MOST_CONDITIONS:
            raise LimitError(f"the steps have {len(guards)} different conditions, and {MOST_CONDITIONS} at most")
        #: The keys of the steps, each way to write them once.
        groups: dict[tuple[Key, ...], int] = {}
        self._group_of = [groups.setdefault(step.keys, len(groups)) for step in eql.whole]
        self.groups = tuple(groups)
        default = "" if query.schema.stream is None else None
        self.classifier = Classifier(list(guards), query.schema, default_type=default, default_stream=default)
        self._bits = np.zeros(1, np.int64)
        self._lock = threading.Lock()

    @cached_property
    def machine(self) -> Machine:
        """The query as arrays."""
        stages = self.query.parsed.stages
        come = [at for at, step in enumerate(stages) if not step.missing]
        missing = [at for at, step in enumerate(stages) if step.missing]
        behind = [sum(one < at for one in come) - 1 for at in missing]
        bit, group = (np.array(one, np.int64) for one in (self._bit_of, self._group_of))
        until = self.query.parsed.until is not None
        return Machine(
            frozen(bit[come]),
            frozen(group[come]),
            frozen(bit[missing]),
            frozen(group[missing]),
            frozen(np.array(behind, np.int64)),
            int(bit[-1]) if until else -1,
            int(group[-1]) if until else 0,
            silent=False,
        )

    @cached_property
    def digest(self) -> str:
        """What the query is, in short: states are exchanged between programs of the same digest only."""
        parts = [
            str(self.query.parsed.mode),
            *map(str, self.query.parsed.whole),
            *map(str, self.groups),
            str(self._group_of),
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions, windows and keys read."""
        return self.query.tested

    @property
    def marks(self) -> list[frozenset[str]]:
        """The variables of each mark in raw matches: one, or those of a set of steps, where an event may be of several."""
        names = self.query.parsed.variables
        if self.query.parsed.mode is not Mode.JOIN:
            return [frozenset((one,)) for one in names]
        return [frozenset(one for at, one in enumerate(names) if mark >> at & 1) for mark in range(1 << len(names))]

    def shape(self, unknown: frozenset[str]) -> Any:
        """What a state depends on, apart from the literals of conditions and from the types of ``unknown`` columns."""
        machine = [one.tolist() for one in self.machine[:5]]
        return [str(self.query.parsed.mode), machine, [[str(key) for key in group] for group in self.groups]]

    def bits(self, classes: NDArray[np.int32]) -> NDArray[np.int64]:
        """The conditions that each event's class fulfils."""
        vectors = self.classifier.vectors
        if self._bits.size < len(vectors):
            with self._lock:
                self._bits = np.array(vectors, np.int64)
        return self._bits[classes]


def conditions_of(query: BoundEql) -> list[p.Predicate]:
    """What each step asks of an event, its category included, that of ``until`` last; a step that no event can be asks ``Or(())``."""
    return [_guard(query, step, asked) for step, asked in zip(query.parsed.whole, query.conditions, strict=True)]


def _guard(query: BoundEql, step: Step, asked: p.Predicate) -> p.Predicate:
    if step.category is None:
        return asked
    default = "" if query.schema.stream is None else None
    found = condition_of(Guard(step.category, None, (asked,)), query.schema, default, default)
    return p.Or(()) if found is None else found
