"""An NFAb query compiled: edges as bits of events, conditions as code, the operations on V and the masks M."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import text_of
from stretto.array_types import I64
from stretto.automata.nfab import MODES, Edge, Negation, Nfab, build, own_index
from stretto.columns.classes import Classifier, condition_of
from stretto.engines.nfab.conditions import Conditions
from stretto.engines.nfab.structure import Machine, Ways
from stretto.engines.shared.scalar_code import compiled
from stretto.engines.shared.values import Op, column_for, decimal_columns
from stretto.errors import LimitError
from stretto.query import predicate as p
from stretto.query.guard import Guard
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.plain import plain
from stretto.query.sase import Component
from stretto.query.totals import Extent

MOST_EDGES = 62  #: bits of an event

_ANY_NUMBER = 1 << 62


class Compiled:
    """What a query is to the kernel. Immutable, shared by all runs of the query.

    Parameters
    ----------
    query
        The bound query.
    merges
        Whether equivalent runs become one (section 5.2.2).
    told
        Variables and attributes: runs whose matches differ in one of them do not become one.
    """

    def __init__(self, query: BoundSase, *, merges: bool = True, told: Iterable[tuple[str, str]] = ()) -> None:
        self.query = query
        self.nfab: Nfab = build(query)
        self.conditions = Conditions(self.nfab)
        self.wants_merges = merges
        self._told = {slot for variable, attribute in told for slot in self._slots(variable, attribute)}
        guards = self._guards()
        if len(guards) > MOST_EDGES:
            raise LimitError(f"the pattern has more than {MOST_EDGES} edges that select events: use fewer components")
        stream = "" if query.schema.stream is None else None
        self.classifier = Classifier(guards, query.schema, default_type=stream, default_stream=stream)
        self._bits = np.zeros(1, np.int64)
        self._lock = threading.Lock()

    @cached_property
    def digest(self) -> str:
        """What the automaton is, in short: states are exchanged between programs of the same digest only."""
        values = self.conditions.values
        parts = [
            str(self.nfab.selection),
            *map(str, self.nfab.edges),
            *map(str, values.columns),
            # As they were before there were carries: their snapshots are read (see saving.py).
            *(
                str(replace(one, op=Op.SUM) if one.op is Op.WIDE_SUM else one)
                for one in values.slots
                if one.op is not Op.CARRY
            ),
        ]
        if not self.query.parsed.plain:
            parts += [*map(str, self.query.parsed.parts), *map(str, self._ways.mode)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _slots(self, variable: str, attribute: str) -> list[int]:
        """The slots that tell an attribute of a variable's first event."""
        conditions, kind = self.conditions, self.query.schema.attributes[attribute]
        exact = pa.types.is_decimal(kind)
        columns = decimal_columns(attribute, kind) if exact else [column_for(attribute, kind)]
        number, values = conditions.numbers[variable], conditions.values
        return [values.slot(number, Op.FIRST, values.column(one)) for one in columns]

    revises = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions, windows and keys read."""
        return self.query.tested

    @property
    def marks(self) -> list[frozenset[str]]:
        """The variable of each mark in raw matches."""
        return [frozenset((pair.component.variable,)) for pair in self.nfab.pairs]

    def shape(self, unknown: frozenset[str]) -> Any:
        """What a state depends on, apart from the literals of conditions and from the types of ``unknown`` columns."""
        values = self.conditions.values
        columns = [
            one.attribute if one.attribute in unknown else str((one.attribute, one.kind)) for one in values.columns
        ]
        slots = [
            (
                one.component,
                one.op.name.removesuffix("_REAL") if one.column and columns[one.column - 1] in unknown else one.op.name,
                one.column,
            )
            for one in values.slots
        ]
        plain = self.query.parsed.plain
        own = [] if plain else [[*map(str, self.query.parsed.parts)], self._ways.mode.tolist()]
        return [len(self.nfab.edges), columns, slots, *own]

    @property
    def merges(self) -> bool:
        """Whether equivalent runs are merged."""
        return self.wants_merges and not self.why_apart

    @property
    def why_apart(self) -> str:
        """What keeps equivalent runs apart, in words; empty when nothing does."""
        if self.query.parsed.non_overlap:
            return "OUTPUT non_overlap compares the matches of single runs"
        if any(edge.each for edge in self.nfab.edges):
            return "a condition on every a[i] looks at the events of single runs"
        if self._pending:
            return "a negation at the end is decided for single runs"
        return ""

    @property
    def why_single(self) -> str:
        """What keeps partial matches apart that are followed, in words; empty when nothing does."""
        if any(edge.each for edge in self.nfab.edges):
            return "a condition on every a[i] looks at their events"
        if any(one.left >= 0 and one.right < len(self.nfab.pairs) for one in self.nfab.negations):
            return "a negation between components looks at where their events lie"
        return ""

    @property
    def _pending(self) -> bool:
        return self.query.parsed.last_negation is not None

    @property
    def by_end(self) -> bool:
        """Whether the matches that wait come by their ends, as rows of events do, and not by their starts."""
        asked = self.query.asked
        return self._pending and asked is not None and asked.scope.extent is Extent.EVENT

    @property
    def inside(self) -> frozenset[str]:
        """What its kernel does with the graph of an event's matches (:attr:`~stretto.engines.api.Operator.inside`)."""
        return frozenset({"choosing", "adding"} if self.counts else ())

    @property
    def counts(self) -> bool:
        """Whether matches can be counted without listing them: not where each is looked at."""
        return self.query.parsed.limit is None and not self.nfab.negations and not self.query.parsed.non_overlap

    def selecting(self, variable: str) -> int:
        """The bits of the edges with which a variable selects an event."""
        return sum(
            3 << 2 * number for number, pair in enumerate(self.nfab.pairs) if pair.component.variable == variable
        )

    @property
    def beginning(self) -> int:
        """The bits of the edges that begin a run."""
        places = self.nfab.places
        return sum(1 << 2 * places.component[step.place] for step in places.first)

    def _guards(self) -> list[Guard | p.Predicate]:
        """What each edge asks of its own event alone, by bit."""
        found = []
        for pair in self.nfab.pairs:
            for edge in (pair.begin, pair.take):
                found.append(self._guard(edge, pair.component))
        found += [self._guard(one.edge, one.component) for one in self.nfab.negations]
        return [*found, *(self._guard(one.edge, one.component) for one in self.nfab.endings)]

    def _guard(self, edge: Edge | None, component: Component) -> Guard | p.Predicate:
        schema = self.query.schema
        never = p.Or(())
        if edge is None:
            return never
        default = "" if schema.stream is None else None
        kinds = [condition_of(Guard(kind), schema, default, default) for kind in component.types]
        types = [one for one in kinds if one is not None]
        if not types:
            return never
        own = own_index(edge.kind, component)
        alone = tuple(plain(one, self.query.parsed, own) for one in edge.alone)
        return p.And((types[0] if len(types) == 1 else p.Or(tuple(types)), *alone))

    def bits(self, classes: NDArray[np.int32]) -> I64:
        """The edges that each event's class allows."""
        vectors = self.classifier.vectors
        if self._bits.size < len(vectors):
            with self._lock:
                self._bits = np.array(vectors, np.int64)
        return self._bits[classes]

    @cached_property
    def theta(self) -> Any:
        """What edges ask of events and runs, as code."""
        conditions = self.conditions
        return compiled(conditions.function(), numbers=6, matrices=3, called=conditions.functions)

    @cached_property
    def constants(self) -> I64:
        """What theta compares and computes with; it lives as long as the program, as kernels read it by its address."""
        return np.array(self.conditions.constants.words, np.int64)

    @cached_property
    def alike(self) -> Hashable | None:
        """What all programs have in common that differ in constants, and in what they ask of single events, only.

        ``None``: it calls functions of the user's own.
        """
        conditions, query = self.conditions, self.query
        if conditions.functions:
            return None
        window = None if query.window is None else (query.window.attribute, query.window.size)
        return (
            text_of(conditions.function()),
            tuple(map(repr, conditions.values.columns)),
            tuple(conditions.values.slots),
            conditions.orders_strings,
            query.schema.key,
            query.partition_by,
            self.nfab.partitioned,
            window,
            tuple(self.marks),
            _as_values(self.machine),
        )

    @cached_property
    def machine(self) -> Machine:
        """The program's arrays."""
        conditions, pairs, negations = self.conditions, self.nfab.pairs, self.nfab.negations
        each_first = np.zeros(len(conditions.each) + 1, np.int64)
        np.cumsum([len(each) for each in conditions.each], out=each_first[1:])
        operations = [self._operations(number) for number in range(3 * len(pairs))]
        op_first = np.zeros(len(operations) + 1, np.int64)
        np.cumsum([len(one) for one in operations], out=op_first[1:])
        rows = np.array([op for one in operations for op in one], np.int64).reshape(-1, 3)
        masks = [self.mask(state) for state in range(2 * len(self.nfab.places.component))]
        mask_first = np.zeros(len(masks) + 1, np.int64)
        np.cumsum([len(mask) for mask in masks], out=mask_first[1:])
        parsed = self.query.parsed
        between = np.zeros((len(negations), len(pairs), len(pairs)), np.bool_)
        for number, negation in enumerate(negations):
            for before, after in negation.between:
                between[number, before, after] = True
        return Machine(
            kleene=np.array([pair.component.kleene for pair in pairs], np.bool_),
            asks=np.array([code is not None for code in conditions.codes], np.bool_),
            each_first=each_first,
            each_component=np.array([at for each in conditions.each for at, _ in each], np.int64),
            op_first=op_first,
            op_kind=rows[:, 0].copy(),
            op_slot=rows[:, 1].copy(),
            op_column=rows[:, 2].copy(),
            mask_first=mask_first,
            mask_slot=np.array([slot for mask in masks for slot in mask], np.int64),
            left=np.array([one.left for one in negations], np.int64),
            right=np.array([one.right for one in negations], np.int64),
            between=between,
            ways=self._ways,
            fan=self._fan,
            merges=self.merges,
            single=parsed.non_overlap,
            limit=parsed.limit or 0,
            silent=False,
            hands=False,
            marks=True,
            keeps=bool(conditions.values.columns) and (bool(negations) or any(conditions.each)),
            pending=self._pending,
            by_end=self.by_end,
            counts=False,
        )

    def named(self, negation: Negation) -> int:
        """The last component that the conditions of a negation between components name; −1: none."""
        order = {pair.component.variable: number for number, pair in enumerate(self.nfab.pairs)}
        edge, references = negation.edge, self.query.parsed.references
        conditions = (*edge.alone, *edge.related, *(one for _, one in edge.each))
        named = [references[name].variable for one in conditions for name in p.attributes(one)]
        return max((order.get(variable, -1) for variable in named), default=-1)

    @cached_property
    def _ways(self) -> Ways:
        """What follows what."""
        nfab, conditions = self.nfab, self.conditions
        places, pairs = nfab.places, nfab.pairs
        steps = [(at, step.place) for at, steps in enumerate(places.follow) for step in steps]
        follow_first = np.zeros(len(places.component) + 1, np.int64)
        np.cumsum([len(one) for one in places.follow], out=follow_first[1:])
        edges = len(pairs) * 3 + len(nfab.negations)

        def leave(at: int, after: int | None) -> int:
            number = places.component[at]
            behind = None if after is None else places.component[after]
            if nfab.left_with(number, behind) is not None:
                return edges + nfab.round_of[number]
            inside = pairs[number].component.kleene and nfab.round_of[number] < 0
            return 3 * number + 2 if inside else -1

        def by_component(known: Mapping[int, int], other: int = 0) -> I64:
            return np.array([known.get(number, other) for number in range(len(pairs))], np.int64)

        own = [pair.component for pair in pairs]
        mode = np.array(
            [MODES[selection] for at in places.component for selection in (nfab.step(at), nfab.loop(at))], np.int64
        )
        endings = dict(enumerate(nfab.endings))
        return Ways(
            plain=self.query.parsed.plain,
            component=np.array(places.component, np.int64),
            first=np.array([step.place for step in places.first], np.int64),
            follow_first=follow_first,
            follow_place=np.array([after for _, after in steps], np.int64),
            follow_edge=np.array([leave(*step) for step in steps], np.int64),
            eager=np.array(
                [nfab.waits_apart(places.component[at], places.component[after]) for at, after in steps],
                np.bool_,
            ),
            final=np.array(places.final, np.bool_),
            final_edge=np.array([leave(at, None) for at in range(len(places.component))], np.int64),
            mode=mode,
            strict=bool((mode == 0).any()),
            any=bool((mode == 2).any()),
            held=by_component({at: slot for at, slot in conditions.held.items() if own[at].again}),
            round=by_component(conditions.rounds),
            least=np.array([one.least for one in own], np.int64),
            most=np.array([_ANY_NUMBER if one.most is None else one.most for one in own], np.int64),
            until=by_component({one.of: edges + len(nfab.leaves) + at for at, one in endings.items()}, -1),
            until_bit=by_component({one.of: 2 * len(pairs) + len(nfab.negations) + at for at, one in endings.items()}),
            ended=by_component(conditions.ended),
            only=np.array([one.only for one in own], np.bool_),
        )

    @cached_property
    def _fan(self) -> int:
        """How many runs an event may make of one, and nodes: one for each step behind each event that it may select."""
        widest = max(map(len, (self.nfab.places.first, *self.nfab.places.follow)))
        return 4 if self.query.parsed.plain else (widest + 2) * (widest + 3)

    def _operations(self, number: int) -> list[tuple[int, int, int]]:
        """What a begin (2c) or take (2c + 1) of component c does to V: (operation, slot, column)."""
        component, takes = number // 3, number % 3
        return [
            (int(slot.op), at, slot.column)
            for at, slot in enumerate(self.conditions.values.slots, 1)
            if slot.component == component
            and slot.op not in (Op.CARRY, Op.ENDED)
            and not (takes and slot.op is Op.FIRST)
        ]

    def mask(self, state: int) -> list[int]:
        """The slots that matter in a state and behind it (section 5.2.2: M), but for those that are set anew before."""
        conditions = self.conditions
        if not self.query.parsed.plain:
            return sorted({*self._all_behind(state // 2), *self._told})
        component, further = state // 2, state % 2
        later = range(3 * component + further, len(conditions.reads))
        read = set().union(*(conditions.reads[edge] for edge in later)) if later else set()
        slots = conditions.values.slots
        return sorted(self._told | {slot for slot in read if slots[slot - 1].component < component + further})

    def _all_behind(self, place: int) -> list[int]:
        """The slots that what may come from a place on reads."""
        conditions, places, pairs = self.conditions, self.nfab.places, self.nfab.pairs
        reached, open_ones = {place}, [place]
        while open_ones:
            new = {step.place for step in places.follow[open_ones.pop()]} - reached
            reached |= new
            open_ones += new
        components = {places.component[at] for at in reached}
        edges = {3 * at + kind for at in components for kind in range(3)}
        read = set().union(*(conditions.reads[at] for at in (*edges, *range(3 * len(pairs), len(conditions.reads)))))
        states = (conditions.held, conditions.rounds, conditions.ended)
        return sorted(read | {slot for known in states for at, slot in known.items() if at in components})


def _as_values(part: Any) -> Hashable:
    """A program's arrays as something that can be compared."""
    if isinstance(part, np.ndarray):
        return part.dtype.str, part.shape, part.tobytes()
    return tuple(map(_as_values, part)) if isinstance(part, tuple) else part
