"""What the conditions of a clause keep of the match so far: registers, which their programs read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from stretto.array_types import I64, Bits
from stretto.automata.rows import RowAutomaton
from stretto.engines.rows import interpreter as b
from stretto.engines.rows.columns import plain_name
from stretto.engines.rows.harder import REAL, Read, Reading, hardest, limits_of, standing
from stretto.engines.rows.structure import AS_IS
from stretto.engines.rows.words import Columns
from stretto.query import predicate as p
from stretto.query import row_pattern as r

#: An operator and its arguments.
Step = tuple[int, int, int]

_E = TypeVar("_E", bound=p.Expression)


#: The row that an expression is about: a set of variables, an end and how many rows from there; ``None``: the current row.
Base = tuple[frozenset[str], r.Side, int] | None


@dataclass(frozen=True)
class Register:
    """What is known of the match so far (:mod:`~stretto.engines.rows.interpreter` says what the kinds mean).

    ``source``: by variable, what a row gives: a column, ``b.NOTHING``, or a program of its own; empty: nothing.
    """

    kind: int
    held: frozenset[str]  #: variables
    continues: int = -1
    counted: int = -1
    among: int = -1
    shift: int = 0
    source: tuple[int, ...] = ()


def base_of(reference: r.RowReference, variable: str, query: r.RowQuery) -> Base:
    """The row that a navigation starts at, in the condition of a variable."""
    assert isinstance(reference, r.Navigation)
    held = query.holds(reference.variable)
    if reference.side is r.Side.LAST and not reference.skip and variable in held:
        return None
    return held, reference.side, reference.skip


def is_plain(condition: p.Expression, variable: str, query: r.RowQuery) -> bool:
    """Whether a condition reads rows at a fixed distance from the current one only."""
    found = (query.references[name] for name in p.attributes(condition))
    return all(
        isinstance(one, r.Navigation)
        and one.attribute is not None
        and base_of(one, variable, query) is None
        and not (one.shift and query.frame is not None)
        for one in found
    )


def conjuncts(condition: p.Predicate) -> tuple[p.Predicate, ...]:
    """The conditions that must all hold."""
    return condition.parts if isinstance(condition, p.And) else (condition,)


def as_plain(expression: _E, query: r.RowQuery) -> _E:
    """An expression about one row, over columns of the table that is seen from that row."""
    names = {}
    for name in p.attributes(expression):
        reference = query.references[name]
        assert isinstance(reference, r.Navigation)
        assert reference.attribute is not None
        names[name] = plain_name(reference.attribute, reference.shift)
    return p.renamed(expression, names)


@dataclass
class History:
    """The programs of a clause, and what they need."""

    query: r.RowQuery
    schema: pa.Schema
    types: dict[str, pa.DataType]
    automaton: RowAutomaton
    columns: Columns = field(default_factory=Columns)
    registers: list[Register] = field(default_factory=list)
    depends: dict[int, tuple[int, ...]] = field(default_factory=dict)  #: of a register: others that change it, too
    arguments: list[list[Step]] = field(default_factory=list)  #: programs of what aggregates are given
    constants: list[int | str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  #: names that classifiers are compared with
    by_number: bool = False
    by_frame: bool = False  #: a condition reads rows around one of the match, which the begin of the frame may cut off
    asked: dict[str, list[p.Predicate]] = field(default_factory=dict)  #: conditions by variable
    references: dict[str, r.RowReference] = field(init=False)

    def __post_init__(self) -> None:
        self.references = dict(self.query.references)
        self.columns.frame = self.query.frame

    def register(self, kind: int, held: frozenset[str], **more: Any) -> int:
        """The number of a register, a new one where there is none."""
        wanted = Register(kind, held, **more)
        if wanted not in self.registers:
            self.registers.append(wanted)
        return self.registers.index(wanted)

    def row_register(self, kind: int, held: frozenset[str], skip: int, begin: int = -1) -> int:
        """The register of a row some rows from an end, which continues those of the rows between, and ``begin``."""
        found = begin
        for _ in range(skip + 1):
            found = self.register(kind, held, continues=found)
        return found

    def label_register(self, reference: r.Navigation) -> int:
        """The register of the classifier of a row."""
        held, skip, shift = self.query.holds(reference.variable), reference.skip, reference.shift
        if reference.side is r.Side.LAST and shift <= 0:
            every = self.query.holds("")
            begin = self.row_register(b.LAST_LABEL, every, -shift - 1) if shift else -1
            return self.row_register(b.LAST_LABEL, held, skip, begin)
        kind = b.LAST_ROW if reference.side is r.Side.LAST else b.FIRST_ROW
        return self.label_at(self.row_register(kind, held, skip), self._labels_behind(reference), shift)

    def _labels_behind(self, reference: r.Navigation) -> tuple[int, ...]:
        """The registers that say the classifier once the row that a reference is about has become another one of those before."""
        if reference.side is r.Side.LAST and reference.skip:
            return (self.label_register(replace(reference, skip=reference.skip - 1)),)
        if reference.shift < 0:
            return (self.row_register(b.LAST_LABEL, self.query.holds(""), -reference.shift - 1),)
        return ()

    def label_at(self, row: int, depends: tuple[int, ...] = (), shift: int = 0) -> int:
        """The register of the classifier of a row that is in another register."""
        found = self.register(b.AT_LABEL, self.query.holds(""), among=row, shift=shift)
        self.depends[found] = depends
        return found

    def constant(self, bits: int | str) -> int:
        self.constants.append(bits)
        return len(self.constants) - 1

    def programs(self, conditions: Mapping[str, list[Step]], *, window: bool) -> b.Programs:
        """All programs as arrays, those of conditions by variable."""
        of = [self.automaton.variables[v] for v in self.automaton.variable]
        codes = [conditions.get(name, []) for name in of]
        live, fails = self._live(codes, window=window)
        every = [*codes, *self.arguments]
        names = sorted({*self.automaton.variables, *self.labels})
        constants = [names.index(one) if isinstance(one, str) else one for one in self.constants]
        reach = [self.columns.reach(one.expression) for one in self.columns.columns]
        member = np.array([[name in one.held for name in of] for one in self.registers], np.bool_)
        reading, reads = self._standing(codes, constants)
        live_reads = [[number for number, read in enumerate(reads) if read[0] in one] for one in live]
        every_live = [number for one in live_reads for number in one]
        harder = hardest(reading, reads, every_live)
        limits = [limits_of(code, [reads[number] for number in harder]) for code in codes]
        left = np.full(len(reads), -1, np.int64)
        left[harder] = np.arange(len(harder))
        return b.Programs(
            self.automaton.variable,
            _begins(every),
            np.array([step for code in every for step in code], np.int64).reshape(-1, 3),
            np.array([*constants, 0], np.int64),
            np.array([names.index(name) for name in self.automaton.variables], np.int64),
            np.array([one.kind for one in self.registers], np.int64),
            np.array([one.continues for one in self.registers], np.int64),
            np.array([one.counted for one in self.registers], np.int64),
            np.array([one.among for one in self.registers], np.int64),
            np.array([one.shift for one in self.registers], np.int64),
            self._sources(),
            np.cumsum([one.kind == b.SEEN for one in self.registers], dtype=np.int64) - 1,
            member.reshape(len(self.registers), len(of)),
            _begins(live_reads),
            np.array(every_live, np.int64),
            fails,
            np.array([register for register, _ in reads], np.int64),
            np.array([stands for _, stands in reads], np.int64),
            left,
            np.array(harder, np.int64),
            np.array([reading.directions[reads[number]] > 0 for number in harder], np.bool_),
            np.array([self._is_real(reads[number]) for number in harder], np.bool_),
            _begins([rows for rows, _ in limits]),
            np.array([row for rows, _ in limits for row in rows], np.int64).reshape(-1, 4),
            np.array([of for _, of in limits], np.bool_).reshape(len(codes), len(harder)),
            self.by_number,
            window or self.by_frame,
            self.query.frame is not None,
            self.query.frame is not None and self.query.frame.seeks,
            max((back for back, _ in reach), default=0),
            np.array([back for back, _ in reach], np.int64),
            np.array([ahead for _, ahead in reach], np.int64),
        )

    def _live(self, codes: list[list[Step]], *, window: bool) -> tuple[list[list[int]], Bits]:
        """Of each position: the registers that conditions behind it may read, and whether there are any.

        From the end: what a position's condition reads and what those behind it read, before the position's row has
        changed registers.
        """
        followers = self.automaton.followers
        of = [self.automaton.variables[v] for v in self.automaton.variable]
        reads = [self._reads(code) for code in codes]
        after = [0] * len(codes)
        fails = [window] * len(codes)
        callers: list[list[int]] = [[] for _ in codes]
        for position, to in enumerate(followers):
            for q in to:
                if q >= 0:
                    callers[q].append(position)
        work = list(range(len(codes)))
        while work:
            q = work.pop()
            before = self._before(reads[q] | after[q], of[q])
            failing = bool(codes[q]) or fails[q]
            for position in callers[q]:
                if before & ~after[position] or (failing and not fails[position]):
                    after[position] |= before
                    fails[position] = fails[position] or failing
                    work.append(position)
        count = len(self.registers)
        return [[k for k in range(count) if after_one >> k & 1] for after_one in after], np.array(fails, np.bool_)

    def _standing(self, codes: list[list[Step]], constants: list[int]) -> tuple[Reading, list[Read]]:
        """What programs read of registers, and what is in the key of a configuration that failed."""
        reading = Reading(constants)
        for code in codes:
            reading.of(code)
        if self.query.frame is not None:  # which column is read depends on the frame
            return reading, [(register, AS_IS) for register in range(len(self.registers))]
        kinds = [one.kind for one in self.registers]
        tied, counted = {-1}, {-1}
        for at, one in enumerate(self.registers):
            tied |= {one.continues, one.among, *self.depends.get(at, ())}
            (tied if one.kind in (b.MEAN, b.SQUARES) else counted).add(one.counted)
        for code in codes:
            counted |= {second for op, _, second in code if op == b.REGISTER}
        for code in self.arguments:
            tied |= {k for k in range(len(self.registers)) if self._reads(code) >> k & 1}
        return reading, standing(reading, kinds, tied, counted, self.columns.numbers())

    def _is_real(self, read: Read) -> bool:
        """Whether the value of a read is a double."""
        register, column = read
        if column < 0:
            return self.registers[register].kind in REAL
        return bool(pa.types.is_floating(self.columns.columns[column].type))

    def _sources(self) -> I64:
        """What a row gives each register, by position; programs stand behind those of positions."""
        positions = len(self.automaton.variable)
        found = np.full((len(self.registers), positions), b.NOTHING, np.int64)
        for k, one in enumerate(self.registers):
            for position, variable in enumerate(self.automaton.variable):
                source = one.source[variable] if one.source else b.NOTHING
                found[k, position] = source - positions if source < b.NOTHING else source
        return found

    def _reads(self, code: list[Step]) -> int:
        found = 0
        for op, first, second in code:
            if op in (b.REGISTER, b.LABEL):
                found |= 1 << first
            if op in (b.REGISTER, b.COLUMN) and second >= 0:
                found |= 1 << second
        return found

    def _before(self, wanted: int, variable: str) -> int:
        """The registers that must be known before a row of a variable, for others to be known behind it."""
        found = 0
        for k in range(len(self.registers) - 1, -1, -1):
            if not wanted >> k & 1:
                continue
            one = self.registers[k]
            if variable not in one.held:
                found |= 1 << k
                continue
            if one.kind not in (b.LAST_ROW, b.LAST_LABEL):
                found |= 1 << k
            if one.among >= 0:  # as it is behind the row
                wanted |= 1 << one.among
            for other in (one.continues, one.counted, *self.depends.get(k, ())):
                found |= 1 << other if other >= 0 else 0
        return found

    def initial(self) -> I64:
        """The registers before the first row of a match."""
        none = (b.LAST_ROW, b.FIRST_ROW, b.LAST_LABEL, b.AT_LABEL, b.ANY_ROW, b.LEAST_ROW, b.GREATEST_ROW)
        return np.array([-1 if one.kind in none else 0 for one in self.registers], np.int64)

    def first(self, values: b.Values) -> I64:
        """Room for where values came first, for the registers of values."""
        ranks = [source for one in self.registers if one.kind == b.SEEN for source in one.source if source >= 0]
        most = max((int(values.words[at].max()) for at in ranks), default=-1)
        return np.zeros((sum(one.kind == b.SEEN for one in self.registers), most + 1), np.int64)


def _begins(lists: Sequence[Sequence[object]]) -> I64:
    """Where each of some lists begins, one behind the other, and where the last one ends."""
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)
