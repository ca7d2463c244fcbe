"""Fences and transfers as scalar code for kernels (AFA paper, definition 1), compiled by Numba.

All arcs share one function ``theta(fn, event, old, new, E, P, F)`` of int64 numbers and matrices: it runs function number *fn* on
the event in row *event* of E and on the register of the partial match in column *old* of P, and a transfer writes that of column
*new*. A fence gives 1 or 0, a transfer 1. Where it cannot be computed, F[0, 0] says why, and the result is 0.

Constants are no part of the code: number *fn* has the function in its lower 32 bits and in the others the place in F at which the
constants begin, so that functions which differ in these only are one.

What a fence asks of the event alone is no part of it: that is an *atom*, tested column-wise when the event comes. An arc whose
functions are known adds nothing, so that the kernel needs no compilation.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.engines.afa.python import PythonCode, notes, place, returned, stored, word_of
from stretto.engines.shared.scalar_code import (
    Code,
    Lifted,
    ScalarCode,
    all_of,
    call,
    cell,
    compiled,
    faulty,
    function_of,
    name,
    number,
)
from stretto.engines.shared.values import MOST_WORDS, Column, column_for, computed_column, decimal_columns
from stretto.errors import LimitError, StrettoError
from stretto.query import predicate as p
from stretto.query.afa import Arc, Kind, Transfer, UserFunction
from stretto.query.evaluate import holds
from stretto.query.typing import kind_of, may_overflow

_E = TypeVar("_E", bound=p.Expression)

#: Bits of the number of a function in ``fn``.
FUNCTION_BITS = 32

PARAMETERS = ("fn", "event", "old", "new", "E", "P", "F")


@dataclass(frozen=True)
class ArcCode:
    """What an arc runs: the number of its atom, and those that ``theta`` takes; −1: none."""

    atom: int = -1
    fence: int = -1  #: −1: it always holds
    transfer: int = -1  #: −1: the register is copied


class AfaCode:
    """The code of an automaton's arcs, and the words of events that it reads.

    Parameters
    ----------
    events, register
        Name and Arrow type of each attribute and field.
    keep_all
        Whether every attribute that fits a word gets one, read or not: where arcs may come later that concern stored events.
    word_of
        The word of a string constant; ``None``: its place in :attr:`constants`.
    """

    def __init__(
        self,
        events: Mapping[str, pa.DataType],
        register: Mapping[str, pa.DataType],
        *,
        keep_all: bool = False,
        word_of: Callable[[str], int] | None = None,
    ) -> None:
        self.events = dict(events)
        self._given = _Itself(events)
        self.register = dict(register)
        self.keep_all = keep_all
        self.word_of = word_of
        #: The words of an event, numbered from 1.
        self.columns: list[Column] = []
        #: Conditions on the event alone, over its attributes' own names.
        self.atoms: list[p.Predicate] = []
        #: String constants; the word of each is its place.
        self.constants: list[str] = []
        #: Functions of the user that code calls, and what it makes their arguments of, by their names in the code.
        self.called: dict[str, Any] = {}
        self._places = {one: at for at, one in enumerate(self.register)}
        self._bodies: list[list[ast.stmt]] = []
        # The numbers of atoms, string constants and functions, by what they are.
        self._atoms: dict[str, int] = {}
        self._words: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        #: Where the constants of functions begin in F, and how many words it has.
        self._begins: dict[tuple[int, ...], int] = {}
        self.size = 1
        self._compiled: tuple[int, Any] | None = None
        self._python = PythonCode(self)
        if keep_all:
            for one, kind in self.events.items():
                if kind_of(kind) != "other":
                    self.column(column_for(one, kind))

    @property
    def version(self) -> int:
        """Grows with every new function: then :meth:`theta` compiles."""
        return len(self._bodies)

    def faults(self) -> I64:
        """F, without a fault, and with the constants of functions behind it."""
        return np.array([[0, *(word for words in self._begins for word in words)]], np.int64)

    @property
    def strings(self) -> bool:
        """Whether words of strings are read."""
        texts = any(kind_of(kind) == "string" for kind in self.register.values())
        return texts or bool(self.constants) or any(column.kind == "string" for column in self.columns)

    def add(self, arc: Arc) -> ArcCode:
        """An arc's code.

        Raises
        ------
        OptionError
            A Python function does not compile, or gives something else than its place needs.
        QueryError
            A condition that scalar code cannot tell.
        LimitError
            More than 62 words of an event are read.
        """
        known = (
            len(self.columns),
            len(self.atoms),
            len(self.constants),
            len(self._bodies),
            self.size,
            dict(self.called),
        )
        try:
            atom, fence = self._fence(arc)
            return ArcCode(atom, fence, self._transfer(arc.then))
        except StrettoError:
            self._forget(*known)
            raise

    def _forget(self, columns: int, atoms: int, constants: int, bodies: int, size: int, called: dict[str, Any]) -> None:
        """Go back to what was known before an arc that was refused."""
        del self.columns[columns:], self.atoms[atoms:], self.constants[constants:], self._bodies[bodies:]
        for numbers, most in ((self._atoms, atoms), (self._words, constants), (self._numbers, bodies)):
            for key in [key for key, at in numbers.items() if at >= most]:
                del numbers[key]
        self._begins = {words: begin for words, begin in self._begins.items() if begin < size}
        self.size = size
        self.called.clear()
        self.called.update(called)
        self._python = PythonCode(self)

    def theta(self) -> Any:
        """The function of all arcs, compiled; as a Python function where Numba is switched off."""
        if self._compiled is None or self._compiled[0] != self.version:
            self.take(self.compilation()())
        assert self._compiled is not None
        return self._compiled[1]

    def compilation(self) -> Callable[[], tuple[int, Any]]:
        """What compiles the functions as they are now, for another thread; :meth:`take` its result."""
        version, function, called = self.version, self._function(), dict(self.called)
        return lambda: (version, compiled(function, numbers=4, matrices=3, called=called))

    def take(self, compiled: tuple[int, Any]) -> None:
        """Use what a :meth:`compilation` gave."""
        self._compiled = compiled

    def _function(self) -> ast.FunctionDef:
        """``theta`` as a syntax tree."""
        body: list[ast.stmt] = [ast.If(faulty(), [returned(0)], [])]
        if self._begins:
            low = ast.BinOp(name("fn"), ast.BitAnd(), ast.Constant((1 << FUNCTION_BITS) - 1))
            begin = ast.BinOp(name("fn"), ast.RShift(), ast.Constant(FUNCTION_BITS))
            body.append(ast.Assign([ast.Name("begin", ast.Store())], begin))
            body.append(ast.Assign([ast.Name("fn", ast.Store())], low))
        for at, statements in enumerate(self._bodies):
            chosen = ast.Compare(name("fn"), [ast.Eq()], [ast.Constant(at)])
            body.append(ast.If(chosen, statements, []))
        body.append(returned(0))
        return function_of("theta", PARAMETERS, body)

    def _number(self, body: list[ast.stmt], constants: tuple[int, ...] = ()) -> int:
        """The number of a function with its constants; equal ones have the same."""
        begin = 0
        if constants:
            begin = self._begins.setdefault(constants, self.size)
            self.size += len(constants) if begin == self.size else 0
        key = _key(body)
        if key not in self._numbers:
            self._numbers[key] = len(self._bodies)
            self._bodies.append(body)
        return self._numbers[key] | begin << FUNCTION_BITS

    # -- fences -------------------------------------------------------------------------------------------------------

    def _fence(self, arc: Arc) -> tuple[int, int]:
        """The numbers of an arc's atom and fence."""
        if arc.when is None:
            return -1, -1
        if isinstance(arc.when, UserFunction):
            return -1, self._number(self._python.fence(arc.when))
        parted = _parted(_Itself(arc.when), arc.kind is Kind.EPSILON, self._given)
        return self._atom(parted), self._fence_of(parted.rest)

    def _atom(self, parted: _Parted) -> int:
        if parted.atom is None:
            return -1
        number = self._atoms.setdefault(parted.text, len(self.atoms))
        if number == len(self.atoms):
            self.atoms.append(parted.atom)
        return number

    def _fence_of(self, parts: list[p.Predicate]) -> int:
        if not parts:
            return -1

        def body(scope: _Scope) -> list[ast.stmt]:
            test = scope.predicate(p.And(tuple(parts)))
            if notes(test):
                test = ast.BoolOp(ast.And(), [test, ast.UnaryOp(ast.Not(), faulty())])
            return [ast.Return(ast.IfExp(test, ast.Constant(1), ast.Constant(0)))]

        return self._made(body)

    def _made(self, body: Callable[[_Scope], list[ast.stmt]]) -> int:
        """The number of a function that is made of conditions and values."""
        scope = _Scope(self)
        return self._number(body(scope), tuple(scope.constants.words))

    # -- transfers ----------------------------------------------------------------------------------------------------

    def _transfer(self, transfer: Transfer) -> int:
        if transfer is None:
            return -1
        if isinstance(transfer, UserFunction):
            return self._number(self._python.transfer(transfer))
        kept = [p.Attribute(f"r.{one}") for one in self.register]
        if all(value == own for value, own in zip(transfer, kept, strict=True)):
            return -1

        def body(scope: _Scope) -> list[ast.stmt]:
            found: list[tuple[ast.expr, ast.expr]] = []
            for value, kind in zip(transfer, self.register.values(), strict=True):
                code = scope.moment(value, kind) or scope.operand(value)
                found.append((all_of(code.known), word_of(code, kind_of(kind))))
            return stored(found)

        return self._made(body)

    # -- words --------------------------------------------------------------------------------------------------------

    @staticmethod
    def plain(condition: _E) -> _E:
        """A condition or a value of the event, over its attributes' own names."""
        return p.renamed(condition, {one: one.removeprefix("e.") for one in p.attributes(condition)})

    def column(self, column: Column) -> int:
        """The number of a word of events, which is read from now on."""
        known = [repr(one) for one in self.columns]
        if repr(column) in known:
            return known.index(repr(column)) + 1
        if len(known) == MOST_WORDS:
            raise LimitError(
                f"more than {MOST_WORDS} values of an event are read: declare fewer attributes, or say less"
            )
        self.columns.append(column)
        return len(known) + 1

    def word(self, constant: str) -> int:
        """The word of a string constant."""
        number = self._words.setdefault(constant, len(self.constants))
        if number == len(self.constants):
            self.constants.append(constant)
        return number if self.word_of is None else self.word_of(constant)

    def attribute(self, attribute: str) -> Code:
        """An attribute of the event."""
        return self.of_event(column_for(attribute, self.events[attribute]))

    def of_event(self, column: Column) -> Code:
        """A word of the event."""
        at = self.column(column)
        known = call("holds", cell("E", "event", 0), ast.Constant(at))
        found = cell("E", "event", at)
        return Code(call("real", found) if column.real else found, (known,), column.kind, column.per_second)

    def field(self, field: str) -> Code:
        """A field of the register, which always has a value."""
        column = column_for(field, self.register[field])
        found = place(self._places[field], "old")
        return Code(call("real", found) if column.real else found, (), column.kind, column.per_second)


def _key(body: list[ast.stmt]) -> str:
    return "\n".join(map(ast.dump, body))


def _constant(at: int) -> ast.expr:
    """``F[0, begin + at]``."""
    place = ast.BinOp(name("begin"), ast.Add(), ast.Constant(at))
    return ast.Subscript(name("F"), ast.Tuple([ast.Constant(0), place], ast.Load()), ast.Load())


class _Scope(ScalarCode):
    """Compiles expressions over ``e.`` and ``r.`` names."""

    def __init__(self, owner: AfaCode) -> None:
        super().__init__(owner.called, "F", None)
        self.owner = owner
        self.constants = Lifted(_constant)

    def lifted(self, constant: Code) -> Code:
        return self.constants.of(constant)

    def type_of(self, attribute: str) -> pa.DataType:
        side, _, own = attribute.partition(".")
        return self.owner.events[own] if side == "e" else self.owner.register[own]

    def reference(self, attribute: str) -> Code:
        side, _, own = attribute.partition(".")
        kind = self.type_of(attribute)
        if self.exact and pa.types.is_decimal(kind):
            return self.decimal([self.owner.of_event(one) for one in decimal_columns(own, kind)], kind)
        return self.owner.attribute(own) if side == "e" else self.owner.field(own)

    def string(self, value: str, node: p.Constant) -> Code:
        return self.lifted(Code(ast.Constant(self.owner.word(value)), (), "string"))

    def of_one_event(self, node: p.Function) -> Code | None:
        if not _is_alone(node):
            return None
        return self.owner.of_event(computed_column(self.owner.plain(node)))

    def moment(self, value: p.Operand, kind: pa.DataType) -> Code | None:
        """A constant in the ticks of a field that keeps times; ``None``: it is something else."""
        if not isinstance(value, p.Constant) or kind_of(kind) != "time":
            return None
        ticks = pa.scalar(value.value, pa.timestamp("us", tz=kind.tz)).cast(kind).value
        return self.lifted(Code(number(ticks), (), "time"))

    def atom(self, node: p.Predicate) -> ast.expr | None:
        """A condition on the event alone that words cannot tell, or not exactly, is a word of its own."""
        if isinstance(node, p.And | p.Or | p.Not) or not _is_alone(node):
            return None
        kinds = {kind_of(self.owner.events[one.removeprefix("e.")]) for one in p.attributes(node)}
        if not kinds & {"string", "other", "decimal"}:
            return None
        if p.reads_strings(node):
            return self.owner.of_event(Column(atom=self.owner.plain(node))).value
        equal = isinstance(node, p.In | p.IsNull) or (isinstance(node, p.Comparison) and node.op in ("=", "!="))
        if self.owner.keep_all and kinds == {"string"} and equal:
            return None
        return self.owner.of_event(Column(atom=self.owner.plain(node))).value


class _Itself(NamedTuple):
    """A thing that is equal to no other one, whatever it says."""

    it: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


class _Parted(NamedTuple):
    """A fence in its two parts."""

    atom: p.Predicate | None  #: what it asks of the event alone, over attributes' own names
    text: str  #: of the atom, with its types: 1 and 1.0 are equal in Python
    rest: list[p.Predicate]


@lru_cache(maxsize=256)
def _parted(fence: _Itself, epsilon: bool, events: _Itself) -> _Parted:
    """A fence in parts, which stay the same from run to run: a run of an automaton that is known reads none of them again."""
    parts = [part for part in _conjuncts(fence.it) if p.attributes(part) or not holds(part, {})]
    alone = [
        part for part in parts if not epsilon and _is_alone(part) and not may_overflow(AfaCode.plain(part), events.it)
    ]
    rest = [part for part in parts if not any(part is one for one in alone)]
    plain = [AfaCode.plain(part) for part in alone]
    atom = (plain[0] if len(plain) == 1 else p.And(tuple(plain))) if plain else None
    return _Parted(atom, repr(atom), rest)


def _conjuncts(node: p.Predicate) -> list[p.Predicate]:
    """What must all hold, by AND and by De Morgan's law."""
    match node:
        case p.And(parts):
            return [one for part in parts for one in _conjuncts(part)]
        case p.Not(p.Not(part)):
            return _conjuncts(part)
        case p.Not(p.Or(parts)):
            return [one for part in parts for one in _conjuncts(p.Not(part))]
        case _:
            return [node]


def _is_alone(node: p.Expression) -> bool:
    """Whether a condition or a value is of the event alone, and whole columns tell it."""
    return not p.calls(node) and all(one.startswith("e.") for one in p.attributes(node))
