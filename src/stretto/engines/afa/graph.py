"""The automaton as data: states and arcs by number, which change while the operator runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stretto.array_types import I64
from stretto.columns.arrays import longer
from stretto.engines.afa import structure as s
from stretto.engines.afa.arcs import link_all, link_arc, retire_arc, survivors
from stretto.engines.afa.code import AfaCode
from stretto.engines.afa.structure import Graph
from stretto.query.afa import Afa, Arc, Emit, Kind
from stretto.times import BEFORE_ALL

_KINDS = {Kind.CONSUME: s.CONSUMES, Kind.EPSILON: s.EPSILON, Kind.IGNORE: s.IGNORES}


class GraphTables:
    """States and arcs with their numbers, and the arrays that the kernel walks.

    A final state that gives no output at ignored events has a *quiet* twin with its arcs, which is not final: where no anchor
    stands for the ignored event, the match goes there.

    Parameters
    ----------
    afa
        The automaton.
    code
        Takes in the code of its arcs.
    """

    def __init__(self, afa: Afa, code: AfaCode) -> None:
        self.code = code
        self.numbers: dict[str, int] = {}
        self.finals: dict[str, Emit] = dict(afa.finals)
        self.states = np.zeros((1, s.STATE_FIELDS), np.int64)
        self.arcs = np.zeros((1, s.ARC_FIELDS), np.int64)
        #: What arcs were made of: one without its id and lifetime; and by number which of them an arc is.
        self.forms: list[Arc] = []
        self.form = np.zeros(1, np.int64)
        #: The latest arc of each id; and by number which id an arc has.
        self.known: dict[str, int] = {}
        self.ids: list[str] = []
        self.id = np.zeros(1, np.int64)
        self._places: dict[str, int] = {}
        #: Arcs as they were written, with what stands in their rows: so that each text is read and compiled once.
        self.written: dict[tuple[str | None, ...], tuple[Arc, I64]] = {}
        #: … and an arc with each fence, transfer and kind.
        self.texts: dict[tuple[str | None, ...], Arc] = {}
        for name in afa.states:
            self.state(name)
        for arc in afa.arcs:
            self.link(self.add(arc))
        self.start = self.numbers[afa.start]

    def state(self, name: str) -> int:
        """The number of a state, which may be new."""
        if name not in self.numbers:
            number = self._new_state()
            self.numbers[name] = number
            self.states[number, s.QUIET] = self.states[number, s.BASE] = number
            if name in self.finals:
                self.make_final(name, self.finals[name])
        return self.numbers[name]

    def _new_state(self) -> int:
        number = self.states.shape[0]
        self.states = longer(self.states, number + 1)
        return number

    def make_final(self, name: str, emit: Emit) -> None:
        """Output comes at a state from now on."""
        self.finals[name] = emit
        number = self.state(name)
        if self.states[number, s.FINAL]:
            return
        self.states[number, s.FINAL] = 1 if emit is Emit.EVERY else 2
        if emit is Emit.ON_ENTER:
            quiet = self._new_state()
            self.states[quiet, s.BASE] = number
            self.states[quiet, s.QUIET] = self.states[number, s.QUIET] = quiet

    def finals_saved(self) -> tuple[dict[str, Emit], I64]:
        """What :meth:`load_finals` goes back to."""
        return dict(self.finals), self.states[:, [s.FINAL, s.QUIET]].copy()

    def load_finals(self, saved: tuple[dict[str, Emit], I64]) -> None:
        """Which states were final, with no partial match in one that was made final since."""
        self.finals, columns = dict(saved[0]), saved[1]
        self.states[: len(columns), [s.FINAL, s.QUIET]] = columns
        for name in self.numbers.keys() - self.finals.keys():
            self.states[self.numbers[name], [s.FINAL, s.QUIET]] = 0, self.numbers[name]

    def quiet(self, state: int) -> int:
        """What stands for a state after an ignored event that gives no output."""
        return int(self.states[state, s.QUIET])

    def form_of(self, arc: Arc) -> tuple[int, I64]:
        """The number of an arc's form, and what stands in its row."""
        code = self.code.add(arc)
        row = np.zeros(s.ARC_FIELDS, np.int64)
        row[s.SOURCE], row[s.TARGET] = self.state(arc.source), self.state(arc.target)
        row[s.ATOM], row[s.FENCE], row[s.TRANSFER], row[s.KIND] = code.atom, code.fence, code.transfer, _KINDS[arc.kind]
        row[s.LABEL] = arc.label
        row[s.SINCE] = BEFORE_ALL if arc.since is None else arc.since
        row[s.RETIRED] = s.FOREVER if arc.until is None else arc.until
        return self.new_form(arc), row

    def new_form(self, arc: Arc) -> int:
        """The number of a form."""
        self.forms.append(arc)
        return len(self.forms) - 1

    def place(self, name: str) -> int:
        """The number of an id."""
        if name not in self._places:
            self._places[name] = len(self.ids)
            self.ids.append(name)
        return self._places[name]

    def extend(self, rows: I64, which: I64, forms: I64, ids: I64) -> int:
        """Take in arcs, not linked yet; the number of the first. ``which`` and ``forms``: the place in ``rows``, the form of each."""
        first = self.arcs.shape[0]
        arcs = np.empty((first + which.size, s.ARC_FIELDS), np.int64)
        arcs[:first] = self.arcs
        np.take(rows, which, axis=0, out=arcs[first:], mode="clip")  # other modes copy
        self.arcs = arcs
        self.form = np.concatenate((self.form, forms))
        self.id = np.concatenate((self.id, ids))
        return first

    def add(self, arc: Arc) -> int:
        """An arc's number; it is not linked yet."""
        form, row = self.form_of(arc)
        number = self.extend(row[None], np.zeros(1, np.int64), np.array([form]), np.array([self.place(arc.id)]))
        self.known[arc.id] = number
        return number

    def link(self, number: int) -> None:
        """Let computations take an arc."""
        link_arc(number, self.arcs, self.states)

    def retire(self, number: int, time: int) -> None:
        """Let an arc retire at a time."""
        retire_arc(number, time, self.arcs, self.states)

    def arc(self, number: int) -> Arc:
        """An arc with the lifetime that it has now."""
        since, until = self.lifetime(number)
        form = self.forms[int(self.form[number])]
        return replace(
            form,
            id=self.ids[int(self.id[number])],
            since=None if since <= BEFORE_ALL else since,
            until=None if until == s.FOREVER else until,
        )

    def in_force(self, names: Sequence[str]) -> I64:
        """By id, the arc that is in force; 0: none."""
        found = np.array([self.known.get(name, s.NIL) for name in names], np.int64)
        found[self.arcs[found, s.RETIRED] < s.FOREVER] = s.NIL
        return found

    def lifetime(self, number: int) -> tuple[int, int]:
        """From when on an arc is valid, and before when."""
        return int(self.arcs[number, s.SINCE]), int(self.arcs[number, s.RETIRED])

    def suspend(self, numbers: I64, since: I64) -> None:
        """Let arcs be valid for no event until their change comes."""
        self.arcs[numbers, s.SINCE] = self.arcs[numbers, s.RETIRED] = since

    def compact(self, least: int) -> None:
        """Forget arcs that no event from time ``least`` on can take, when they are most."""
        count = self.arcs.shape[0]
        place = np.zeros(count, np.int64)
        kept = survivors(least, self.arcs, place)
        if 2 * (count - 1 - kept) < count + 1024:
            return
        self.known = {name: int(place[number]) for name, number in self.known.items() if place[number] != s.NIL}
        alive = np.concatenate(([s.NIL], np.flatnonzero(place)))
        self.arcs, self.form, self.id = self.arcs[alive], self.form[alive], self.id[alive]
        used, self.form[1:] = np.unique(self.form[1:], return_inverse=True)
        self.forms = [self.forms[one] for one in used]
        names = [self.ids[one] for one in self.id[1:]]
        self.ids, self._places = [], {}
        self.id[1:] = [self.place(name) for name in names]
        self.states[:, [s.FIRST_ARC, s.FIRST_EPSILON]] = s.NIL
        link_all(self.arcs, self.states)

    def graph(self, **options: Any) -> Graph:
        """The automaton as the kernel reads it."""
        return Graph(arcs=self.arcs, states=self.states, start=self.start, **options)
