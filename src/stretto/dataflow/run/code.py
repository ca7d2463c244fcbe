"""Select and project as compiled code: a chain of them is one function over whole batches.

The function goes over the rows once. A condition leaves a row out; a projection computes each value and keeps it in a variable, so
that what follows reads it there. Strings are told apart by their numbers; what asks more of them (``<``, LIKE, …) is asked once of
each string and looked up.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import called, inlined, jit
from stretto.columns.grid import ticks_of
from stretto.columns.vectorized import computed, mask
from stretto.dataflow.node import Unary
from stretto.dataflow.run.rows import PAYLOAD, Rows, empty
from stretto.dataflow.run.values import NAN, Strings, arrays
from stretto.engines.shared import scalar
from stretto.engines.shared.scalar_code import (
    OVERFLOWED,
    Code,
    ScalarCode,
    call,
    cell,
    compiled,
    faulty,
    function_of,
    name,
)
from stretto.errors import DataError, QueryError
from stretto.query import predicate as p
from stretto.query.scalar_functions import FUNCTIONS
from stretto.query.typing import kind_of


@inlined
def float_word(value: float) -> int:
    """The word of a float: one zero, one NaN."""
    if value != value:
        return NAN
    return scalar.word(value + 0.0)


class Step(Unary):
    """An operator that looks at each row by itself: a chain of them is compiled into one pass.

    What it gives has the lifetimes, weights and levels of the rows that it took.
    """

    def code(self, columns: Columns, number: int) -> list[ast.stmt]:
        """The statements for a row, as step ``number`` of a program: they leave it out, or say what the columns are now."""
        raise NotImplementedError


class Program:
    """A chain of steps.

    Parameters
    ----------
    schema
        The columns that come in.
    steps
        The nodes, first to last.
    strings
        The dictionary of strings.
    """

    def __init__(self, schema: Mapping[str, pa.DataType], steps: Sequence[Step], strings: Strings) -> None:
        self.schema = dict(schema)
        self.steps = tuple(steps)
        self.strings = strings
        self.result = dict(steps[-1].schema if steps else schema)
        self.width = PAYLOAD + len(self.result)
        self._tables: list[tuple[str, p.Predicate | p.Function]] = []
        self._truths = np.zeros((1, 0), np.int64)
        self._faults = np.zeros((1, 1), np.int64)
        self._function = self._compiled()

    def __call__(self, rows: Rows) -> Rows:
        """The rows that pass, with their values.

        Raises
        ------
        DataError
            An integer leaves 64 bits, or a value is NULL: divided by zero.
        """
        if not len(rows):
            return empty(self.width)
        self._look_up()
        made = np.empty((len(rows), self.width), np.int64)
        count = _run(self._function, len(rows), np.ascontiguousarray(rows), made, self._truths, self._faults)
        if count < 0:
            why, self._faults[0, 0] = int(self._faults[0, 0]), 0
            raise DataError(self._complaint(why, rows[-1 - count]))
        return made if count == len(made) else made[:count].copy() if 2 * count < len(made) else made[:count]

    def _complaint(self, fault: int, row: Rows) -> str:
        """What went wrong, and in which row."""
        payload = arrays(row.reshape(1, -1), self.schema, PAYLOAD, self.strings)
        shown = ", ".join(f"{one}={column[0].as_py()!r}" for one, column in zip(self.schema, payload, strict=True))
        why = "an integer leaves 64 bits; compute with floats" if fault == OVERFLOWED else "a value is divided by zero"
        return f"{' / '.join(step.label for step in self.steps)}: {why} (row {shown})"

    def _look_up(self) -> None:
        """Ask what is asked of each string about those that are new, and about what is made of these."""
        while self._tables and (known := self._truths.shape[1]) < len(self.strings):
            fresh = pa.array(self.strings.texts[known:], pa.string())
            found = [self._asked(node, pa.record_batch({column: fresh})) for column, node in self._tables]
            self._truths = np.ascontiguousarray(np.concatenate([self._truths, np.stack(found)], axis=1))

    def _asked(self, node: p.Predicate | p.Function, fresh: pa.RecordBatch) -> NDArray[np.int64]:
        """The truth, the length, or the number of what is made of each string."""
        if not isinstance(node, p.Function):
            return mask(node, fresh).astype(np.int64)
        if FUNCTIONS[node.name].gives == "int":
            return np.asarray(computed(node, fresh, pa.int64()), np.int64)
        made = computed(node, fresh, pa.string()).to_pylist()
        return np.array([self.strings.number(text) for text in made], np.int64)

    # -- code ---------------------------------------------------------------------------------------------------------

    def _compiled(self) -> Any:
        columns = Columns(self)
        body: list[ast.stmt] = []
        for number, step in enumerate(self.steps):
            body += step.code(columns, number)
        body.append(given_up_if(faulty()))
        for word in range(PAYLOAD):
            body.append(_stored(word, cell("X", "row", word)))
        for at, column in enumerate(self.result):
            code = columns.reference(column)
            own = code.value
            if code.kind == "float":
                own = _bits_of(code.value) or call("float_word", code.value)
            body.append(_stored(PAYLOAD + at, own))
        body.append(ast.AugAssign(ast.Name("made", ast.Store()), ast.Add(), ast.Constant(1)))
        loop = ast.For(ast.Name("row", ast.Store()), call("range", name("n")), body, [], None)
        statements: list[ast.stmt] = [
            ast.Assign([ast.Name("made", ast.Store())], ast.Constant(0)),
            loop,
            ast.Return(name("made")),
        ]
        self._truths = np.zeros((max(1, len(self._tables)), 0), np.int64)
        function = function_of("rows", ("n", "X", "Y", "T", "F"), statements)
        return compiled(function, numbers=1, matrices=4, called=columns.called, float_word=float_word)

    def table(self, column: str, node: p.Predicate | p.Function) -> int:
        """The number of a condition, or a function, that is asked of each string."""
        entry = (column, node)
        if entry not in self._tables:
            self._tables.append(entry)
        return self._tables.index(entry)


def _bits_of(code: ast.expr) -> ast.expr | None:
    """The word that a float is read from; ``None``: it is computed."""
    is_read = isinstance(code, ast.Call) and isinstance(code.func, ast.Name) and code.func.id == "real"
    return code.args[0] if is_read and isinstance(code, ast.Call) else None


def _per_second(kind: pa.DataType) -> int:
    """Ticks of a column of times; dates are kept in seconds."""
    return int(ticks_of(kind)) if pa.types.is_timestamp(kind) else 1


def given_up_if(test: ast.expr, *before: ast.stmt) -> ast.stmt:
    """Give up at this row where a test holds, after some statements."""
    minus_row = ast.BinOp(ast.UnaryOp(ast.USub(), ast.Constant(1)), ast.Sub(), name("row"))
    return ast.If(test, [*before, ast.Return(minus_row)], [])


def _stored(word: int, value: ast.expr) -> ast.stmt:
    place = ast.Subscript(name("Y"), ast.Tuple([name("made"), ast.Constant(word)], ast.Load()), ast.Store())
    return ast.Assign([place], value)


class Columns(ScalarCode):
    """Conditions and values over the columns of a row, as steps find them."""

    def __init__(self, owner: Program) -> None:
        super().__init__({}, "F", None)
        self.owner = owner
        #: What the columns are since the last projection; ``None``: those that came in.
        self.known: dict[str, Code] | None = None

    def reference(self, attribute: str) -> Code:
        if self.known is not None:
            return self.known[attribute]
        kind = self.owner.schema[attribute]
        word = cell("X", "row", PAYLOAD + list(self.owner.schema).index(attribute))
        family = kind_of(kind)
        if family == "float":
            return Code(call("real", word), (), "float")
        return Code(word, (), family, _per_second(kind) if family == "time" else 0)

    def string(self, value: str, node: p.Constant) -> Code:
        return Code(ast.Constant(self.owner.strings.number(value)), (), "string")

    def atom(self, node: p.Predicate) -> ast.expr | None:
        """What is asked of a string by itself is looked up, unless numbers tell it."""
        if isinstance(node, p.And | p.Or | p.Not | p.In | p.IsNull):
            return None
        if isinstance(node, p.Comparison) and node.op in ("=", "!="):
            return None
        return self._looked_up(node)

    def _looked_up(self, node: p.Predicate | p.Function) -> ast.expr | None:
        names = list(p.attributes(node))
        codes = [self.reference(one) for one in names]
        if len(names) != 1 or codes[0].kind != "string":
            return None
        at = self.owner.table(names[0], node)
        return ast.Subscript(name("T"), ast.Tuple([ast.Constant(at), codes[0].value], ast.Load()), ast.Load())

    def of_one_event(self, node: p.Function) -> Code | None:
        # What joins strings makes ever longer ones of those that it has made.
        joins = any(isinstance(one, p.Function) and one.name == "concat" for one in p.walk(node))
        word = None if joins else self._looked_up(node)
        return None if word is None else Code(word, (), FUNCTIONS[node.name].gives or "string")

    def strings(self, op: str, node: p.Predicate) -> None:
        if op not in ("=", "!="):
            raise QueryError("strings of two columns are compared with = and != only")


#: A program, as the kernel is handed it.
_program_at = called(numbers=1, matrices=4)


@jit
def _run(program: int, n: int, X: Rows, Y: Rows, T: Rows, F: Rows) -> int:
    """Call a program; how many rows it wrote, or −1 less the row where it failed."""
    return int(_program_at(program)(n, X, Y, T, F))
