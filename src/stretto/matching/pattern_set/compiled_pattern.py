"""A part: a query, an automaton or a clause as a set of patterns sees it. Immutable; all sets and versions that have it share it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.columns.classes import Classifier, condition_of
from stretto.columns.coding import single_column
from stretto.columns.vectorized import mask
from stretto.engines.afa.program import AfaProgram
from stretto.engines.greedy.program import GreedyProgram
from stretto.engines.match_ops.after_match_skip import KeptProgram
from stretto.engines.match_ops.aggregate import AddedProgram
from stretto.engines.match_ops.timeouts import TimeoutProgram
from stretto.engines.match_ops.top_k import PickedProgram
from stretto.engines.programs import NfabProgram, Program
from stretto.engines.rows.program import RowProgram
from stretto.engines.select import Machine
from stretto.engines.shared.intake import both, keyed
from stretto.engines.totals.several import SeveralProgram
from stretto.errors import OptionError
from stretto.matching.compiled import Query
from stretto.matching.input.predicate_pushdown import guards_of
from stretto.matching.meaning import are_one
from stretto.matching.output.match_sets import refuse_unlisted
from stretto.matching.output.match_table import Layout
from stretto.matching.output.memory_budget import Columns
from stretto.matching.output.pipes import refuse_pipes
from stretto.matching.pattern_set.prefix_sharing import Asked, Prefix, excluding
from stretto.matching.pattern_set.throttle import WHENEVER
from stretto.query import predicate as p
from stretto.query.guard import Guard
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.bind_totals import BoundTotals
from stretto.query.query import AnyQuery, Consume, Skip, Strategy
from stretto.query.totals import Best, Extent, Sample

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Latest(Generic[K, V]):
    """The values used last, by key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made now if it is not known."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            value = self._values.setdefault(key, value)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def last(self, holds: Callable[[K], bool]) -> V | None:
        """The value that was used last of those whose key fulfils a condition."""
        with self._lock:
            return next((self._values[key] for key in reversed(self._values) if holds(key)), None)


class Living(Generic[K, V]):
    """Values by key as long as somebody has them, so that equal ones are one object."""

    def __init__(self) -> None:
        self._values: WeakValueDictionary[K, V] = WeakValueDictionary()
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made now if nobody has one."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                found = self._values[key] = make()
            return found


@dataclass(frozen=True)
class WholeEvents:
    """The columns of matches that show all attributes of their events (:class:`~stretto.matching.output.memory_budget.Columns`)."""

    language: str
    time: str | None
    partition_by: tuple[str, ...]
    kinds: Mapping[str, pa.DataType]
    variables: Sequence[tuple[str, tuple[str, ...]]]
    positions: bool
    summary: bool = False
    returns: tuple[Any, ...] = ()

    @property
    def keys(self) -> Sequence[str]:
        """What results call the partition attributes."""
        return self.partition_by


class CompiledPattern:
    """A query, an automaton or a clause with its machine, and what it asks of single events."""

    #: How it is written, and in which language.
    text: str
    language: str
    partition_by: tuple[str, ...]
    #: The attributes that its conditions, its window and its keys read.
    tested: Collection[str]
    #: Whether a match may come later than the event that completes it, and how long after the first event then.
    waits = False
    wait: int | float = 0
    #: What runs it.
    machine: Machine | KeptProgram | AfaProgram | RowProgram | SeveralProgram
    #: Whose marks its matches have: the machine of all queries that differ from this one in what their guards ask only.
    lister: Machine | KeptProgram | AfaProgram | RowProgram | SeveralProgram
    #: What each guard of the machine asks of an event; ``None``: it never holds.
    conditions: Sequence[p.Predicate | None] = ()
    #: Which events belong to the streams that it reads; ``None``: all do.
    source: p.Predicate | None = None
    #: The attribute other than the time that the window measures, if any.
    measures: str | None = None
    #: The variables that a result shows, each with the attributes of its events.
    selected: Sequence[tuple[str | None, tuple[str, ...]]]
    #: The query whose RETURN is computed of each match; ``None``: it has none.
    returned: BoundSase | None = None
    #: What its rows count and add up; ``None``: they are matches.
    totals: BoundTotals | None = None
    #: Whether matches of one key may come in another order than that of their ends, though none waits for its window.
    overlaps = False
    #: Whether something may be wrong with events of the right types, which only a look at each of them shows.
    doubtful = False
    #: Why no snapshot can hold it; ``None``: one can.
    unsaved: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes of a match's last event that tell its key."""
        return self.partition_by

    @property
    def skips(self) -> bool:
        """Whether an event that satisfies none of its guards changes nothing."""
        return False

    def columns(self, *, output: str, positions: bool) -> Columns:
        """The columns of its matches, as they are counted and told of where they are too many."""
        raise NotImplementedError

    def look(self, events: pa.Table) -> None:
        """Raise what is wrong with events that its conditions read.

        Raises
        ------
        DataError
            Arithmetic overflows.
        """
        raise NotImplementedError

    @property
    def program(self) -> Program:
        """What runs it, where that is the tECS engine."""
        assert isinstance(self.machine, Program)
        return self.machine

    @property
    def model(self) -> Program:
        """The machine of all queries on the tECS engine that differ from it in what their guards ask only."""
        assert isinstance(self.lister, Program)
        return self.lister

    @property
    def classifier(self) -> Classifier:
        """What numbers the classes of events for all that run together."""
        assert isinstance(self.lister, Program | NfabProgram)
        return self.lister.classifier

    @property
    def asking(self) -> int:
        """How many conditions it has."""
        return len(self.conditions)

    @property
    def ends(self) -> bool:
        """Whether its end gives rows: of all that it has seen, and of windows that are open."""
        return self.totals is not None and self.totals.scope.extent is not Extent.EVENT

    @property
    def always(self) -> bool:
        """Whether its end gives a row even if nothing concerned it: over nothing COUNT is 0."""
        return self.totals is not None and self.totals.scope.extent is Extent.TABLE and not self.totals.scope.groups

    @property
    def on_tecs(self) -> bool:
        """Whether the tECS engine runs it; on another one it has a run of its own."""
        return isinstance(self.machine, Program) and not self.moves

    @property
    def moves(self) -> bool:
        """Whether its conditions depend on events before, so that its run reads all events that its steps may take."""
        return False

    def classes(self, truth: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The classes of kinds of events, of which each guard holds or not; 0: none does."""
        if isinstance(self.machine, Program) and self.on_tecs:
            return self.machine.classifier.interned(truth)
        return np.asarray(truth.any(axis=1), np.int32)

    @cached_property
    def together(self) -> bool:
        """Whether it can run beside others in one call of the kernel.

        It cannot where it needs other engines than tECS and NFAb, where an event that satisfies none of its guards changes something,
        where its window counts the events of a partition or measures another attribute than the time, or where a match forgets
        those of all keys.
        """
        if isinstance(self.machine, NfabProgram):
            return self._alike
        if not self.on_tecs:
            return False
        query = self.program.query
        parsed, window = query.parsed, query.window
        counts = window is not None and window.attribute is None
        return (
            self.skips
            and len(self.conditions) <= GUARDS
            and self.measures is None
            and not (counts and (query.partition_by or query.schema.stream is not None))
            and not (parsed.consume is Consume.ANY and query.partition_by)
        )

    @property
    def _alike(self) -> bool:
        """Whether a pattern on the NFAb engine can run beside others: not where matches wait, or are looked at one by one."""
        machine = self.machine
        assert isinstance(machine, NfabProgram)
        return (
            self.skips
            and len(self.conditions) <= GUARDS
            and self.measures is None
            and not self.moves
            and not (self.waits or machine.query.parsed.non_overlap)
            and machine.alike is not None
        )

    @cached_property
    def terms(self) -> Hashable:
        """What patterns that run in one call have in common."""
        if isinstance(self.machine, NfabProgram):
            return self.machine.alike, bool(self.selected), self.returned is None
        query = self.program.query
        window = None if query.window is None else (query.window.attribute, query.window.size)
        consumes = query.parsed.consume is not Consume.NONE
        return (
            window,
            query.parsed.limit,
            consumes,
            query.partition_by,
            self.program.valuations,
            bool(self.selected),
            self.returned is None,
        )

    @cached_property
    def prefix(self) -> Prefix | None:
        """What its partial matches depend on, if events that end matches do nothing else; it asks for itself then.

        ``None`` also where an event may end some of the runs over the same events and lead others on: then the matches would be the
        same, but not their order.
        """
        if not self.together or not self.on_tecs or self.program.query.parsed.consume is not Consume.NONE:
            return None
        cea, conditions = self.model.cea, self.conditions
        pairs = cea.splitting
        if self.program.query.parsed.strategy is not Strategy.ALL:
            pairs = frozenset(product(cea.closing, set(range(len(conditions))) - cea.closing))
        if not cea.closing or not all(excluding(conditions[one], conditions[other]) for one, other in pairs):
            return None
        asked = tuple(one for one in self._asked_of_all() if one[0] not in cea.closing)
        texts = tuple((guard, text) for guard, text, _ in asked)
        return _PREFIXES.get((self.terms, self.model, texts), lambda: Prefix(self.model, asked))

    @cached_property
    def asked(self) -> list[Asked]:
        """What guards ask of an event, that it is of one of the streams included; without those of the prefix."""
        prefix = set() if self.prefix is None else {guard for guard, _, _ in self.prefix.asked}
        return [one for one in self._asked_of_all() if one[0] not in prefix]

    def _asked_of_all(self) -> list[Asked]:
        found = []
        for number, condition in enumerate(self.conditions):
            if condition is not None:
                whole = condition if self.source is None else p.And((condition, self.source))
                # By text: 1 and 1.0 are equal in Python, and integer and float arithmetic are not.
                found.append((number, repr(whole), whole))
        return found

    @property
    def meaning(self) -> Any:
        """The query as it was read, the clause or the automaton."""
        raise NotImplementedError

    def same(self, other: CompiledPattern) -> bool:
        """Whether both are of one query, however that is written."""
        if self.language != other.language:
            return False
        return self.text == other.text or are_one(self.meaning, other.meaning)

    @property
    def digest(self) -> str:
        """What a saved state belongs to."""
        raise NotImplementedError

    @cached_property
    def holders(self) -> list[list[int]]:
        """By mark: which of ``selected`` hold an event with it."""
        marks = self.lister.marks
        return [[k for k, (name, _) in enumerate(self.selected) if name in labels] for labels in marks]

    @cached_property
    def tests(self) -> dict[str, dict[str, int]]:
        """The conditions on single columns by column, others by their text: each with how many codes it adds to the column.

        :data:`DOUBLES` where the condition is evaluated on its own.
        """
        found: dict[str, dict[str, int]] = {}
        todo: list[p.Predicate] = [one for one in (*self.conditions, self.source) if one is not None]
        while todo:
            node = todo.pop()
            match node:
                case p.And(inner) | p.Or(inner):
                    todo.extend(inner)
                case p.Not(part):
                    todo.append(part)
                case _:
                    found.setdefault(single_column(node) or repr(node), {})[repr(node)] = _codes_of(node)
        return found


class CompiledQuery(CompiledPattern):
    """A bound query.

    Parameters
    ----------
    query
        The query.
    valuations
        As in :func:`stretto.match`.

    Raises
    ------
    OptionError
        The query reads several streams, and no column tells them apart, or it asks for what a set does not give.
    LimitError
        Its automaton is too large.
    """

    machine: Machine | KeptProgram
    #: What asks single events: its machine, or the one inside.
    reader: Machine

    def __init__(self, query: Query, *, valuations: bool) -> None:
        bound = query.bound
        schema = bound.schema
        if len(query.streams) > 1 and schema.stream is None:
            raise OptionError(
                f"the query reads {len(query.streams)} streams ({', '.join(query.streams)}): name the column that tells "
                "them apart with stream='…'"
            )
        self.query = query
        if bound.returns:
            self.returned = cast(BoundSase, bound)
        self.text, self.language, self.partition_by = query.text, query.language, query.partition_by
        self.tested, self.selected = bound.tested, bound.selected
        if isinstance(query.parsed.asked, Best | Sample):
            raise OptionError(
                "many patterns at once list every match, and ORDER BY … LIMIT and SAMPLE choose: match it on its own"
            )
        refuse_unlisted(query)
        refuse_pipes(query, "a set of patterns goes on", "take the rows that you want from what push() gives")
        # Keys that conditions say split the stream, unless columns would have to be made of them.
        program = query.program(valuations=valuations, split=not query.implied.keys)
        if isinstance(program, AddedProgram):
            raise OptionError(
                "counts and sums over all matches are those of one automaton beside other patterns, and this query has conditions "
                "between events, gaps, or a negation: match it on its own"
            )
        assert not isinstance(program, TimeoutProgram | PickedProgram)
        self.machine = program
        self.reader = program.reader if isinstance(program, KeptProgram) else program
        if isinstance(bound.asked, BoundTotals):
            self.totals = bound.asked
            _check_windows(self.totals, schema.time)
        only = query.streams[0]
        reader = self.reader
        guards = reader.cea.guards if isinstance(reader, Program) else reader.classifier.guards
        asked = [condition_of(guard, schema, only, only) if isinstance(guard, Guard) else guard for guard in guards]
        self.conditions = [None if one is None else p.weakened(one) for one in asked]
        if schema.stream is not None and not query.parsed.any_stream:
            names = [p.Comparison("=", p.Attribute(schema.stream), p.Constant(name)) for name in query.streams]
            self.source = names[0] if len(names) == 1 else p.Or(tuple(names))
        window = bound.window
        self.waits = query.waits
        self.wait = window.size if query.waits and window is not None else 0
        self.measures = window.attribute if window is not None and window.attribute != schema.time else None
        if isinstance(program, KeptProgram):
            self._keep(program)
        self.lister = program
        if isinstance(program, Program) and self.on_tecs:
            self.lister = _MODELS.get(program.alike, lambda: program)
        elif isinstance(program, NfabProgram) and program.alike is not None:
            self.lister = _ALIKE.get(program.alike, lambda: program)
        elif query.waits and self.measures is not None and not isinstance(program, GreedyProgram):
            raise OptionError(
                f"the matches wait until their window has passed, and a set of patterns waits for '{schema.time}', while the window "
                f"measures '{self.measures}': measure '{schema.time}', or match it on its own"
            )

    @property
    def moves(self) -> bool:
        return bool(self.query.bound.moving)

    @property
    def meaning(self) -> AnyQuery:
        """The query as it was read."""
        return self.query.parsed

    @property
    def digest(self) -> str:
        """What a saved state belongs to: the automaton, as this version of stretto builds it."""
        return self.machine.digest

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """What tells the key of a match, in its last event; of EQL also what may be NULL, or has other names in other steps."""
        told, attributes = self.query.parsed.told_keys, self.query.bound.schema.attributes
        return tuple(dict.fromkeys([*self.partition_by, *(name for name in told if name in attributes)]))

    @cached_property
    def skips(self) -> bool:
        """Whether an event that satisfies none of its guards changes nothing."""
        if isinstance(self.machine, Program) and self.on_tecs:
            return self.machine.skips
        return guards_of(self.reader.query) is not None

    def columns(self, *, output: str, positions: bool) -> Layout:
        """The columns of its matches where it is matched on its own."""
        return Layout(self.query.bound, output=output, positions=positions)

    def look(self, events: pa.Table) -> None:
        """Raise what is wrong with events of its streams and with keys."""

        if self.moves:  # its run says it
            return

        def among() -> NDArray[np.bool_] | None:
            inside = None if self.source is None else mask(self.source, events)
            return both(inside, keyed(events, self.query.bound.partition_by))

        self.reader.classifier.classify(events, among)

    def _keep(self, program: KeptProgram) -> None:
        """Time may decide which match stays. Those of a key come in the order of their ends where they do not overlap."""
        if isinstance(program, GreedyProgram):
            self.waits = self.waits or program.steps.query.clock == self.query.bound.schema.time
        if program.keep.skip is Skip.PAST:
            self.wait = WHENEVER
        elif not self.query.waits or self.measures is not None:
            self.overlaps = True


def _check_windows(totals: BoundTotals, time: str | None) -> None:
    """Raise an :class:`OptionError` unless windows that begin every so often are of the time of the set."""
    panes = totals.scope.panes
    if panes is not None and panes.attribute != time:
        what = "count events" if panes.attribute is None else f"measure '{panes.attribute}'"
        raise OptionError(
            f"windows of patterns in a set are over when '{time}' has come to their end, and these {what}: measure '{time}', or "
            "match it on its own"
        )


#: Parts with more guards run on their own.
GUARDS = 40

#: A condition that no place among constants answers.
DOUBLES = -1


def _codes_of(atom: p.Predicate) -> int:
    constants = [part.value for part in p.walk(atom) if isinstance(part, p.Constant)]
    ordered = isinstance(atom, p.Between) or (isinstance(atom, p.Comparison) and atom.op not in ("=", "!="))
    if single_column(atom) is None or isinstance(atom, p.Like):
        return DOUBLES
    return DOUBLES if ordered and any(isinstance(value, str) for value in constants) else len(constants)


#: The machines, by what they have in common with those of other queries.
_MODELS: Living[Hashable, Program] = Living()

_ALIKE: Living[Hashable, NfabProgram] = Living()

_PREFIXES: Living[Hashable, Prefix] = Living()
