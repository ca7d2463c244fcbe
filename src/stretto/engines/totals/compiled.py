"""A query whose matches are counted and added up: its automaton, and what is kept."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property

from stretto.automata.cea import CEA, build
from stretto.engines.tecs.compiled import Compiled
from stretto.engines.totals.plan import Asked
from stretto.engines.totals.structure import Plan
from stretto.query import predicate as p
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_totals import BoundTotals
from stretto.query.query import Consume


class TotalsCompiled(Compiled):
    """The machine of a query whose rows are counts and sums.

    Parameters
    ----------
    query
        The matches.
    totals
        What is asked of them.
    valuations
        Count every valuation, in place of every complex event.
    prefix
        What stands before the names of variables in labels.
    """

    def __init__(self, query: BoundQuery, totals: BoundTotals, *, valuations: bool = False, prefix: str = "") -> None:
        self.totals = totals
        window = query.window
        counted = window is not None and window.attribute is None
        ranked = counted and bool(query.partition_by or query.schema.stream is not None)
        #: Whether starts are told apart, because they leave the window one by one.
        self.apart = window is not None
        #: Whether windows are of the events of each key.
        self.own = ranked and totals.scope.panes is not None
        self.asked = Asked(totals, prefix=prefix, starts=ranked or window is None)
        super().__init__(query, valuations=valuations)
        self.added_up = self.asked.variables

    def _built(self) -> CEA:
        """The automaton, whose labels tell apart what is counted; in valuations, all variables."""
        cea = self.whole
        if self.valuations:
            return cea
        kept = self.counted
        other = frozenset({""})
        return replace(
            cea,
            transitions=tuple(
                replace(one, labels=(one.labels & kept) or other if one.labels else one.labels)
                for one in cea.transitions
            ),
        )

    @cached_property
    def whole(self) -> CEA:
        """The automaton whose labels tell all variables apart."""
        return build(self.query.pattern)

    @property
    def counted(self) -> frozenset[str]:
        """The variables of which it matters which events they hold."""
        return self.asked.variables

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions, windows, keys, values and groups read."""
        used = {*self.query.tested, *(one.attribute for one in self.totals.scope.groups)}
        used.update(name for one in self.asked.slots for name in p.attributes(one.value))
        return tuple(name for name in self.query.schema.attributes if name in used)

    @cached_property
    def digest(self) -> str:
        """What the automaton is and what is kept of matches, in short."""
        kept = self.asked.columns
        slots = [(one.variable, str(one.value)) for one in kept.values]
        groups = [(one.variable, one.attribute) for one in self.totals.scope.groups]
        what = (str(self.cea), kept.kinds, kept.slots, slots, groups, str(self.totals.scope.panes), self.asked.extent)
        return hashlib.sha256(repr(what).encode()).hexdigest()

    def plan(self) -> Plan:
        """What the kernel keeps and when it gives it."""
        return self.asked.plan(
            self.determinizer.marks, apart=self.apart, consume=self.query.parsed.consume, own=self.own
        )

    def guards_of(self, variable: str) -> frozenset[int]:
        """The guards under which an event may be one of a variable."""
        label = self.asked.prefix + variable
        return frozenset(one.guard for one in self.cea.transitions if label in one.labels)

    @property
    def consumes(self) -> bool:
        """Whether what an event completes ends partial matches."""
        return self.query.parsed.consume is not Consume.NONE
