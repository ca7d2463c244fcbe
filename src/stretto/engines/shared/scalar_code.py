"""Conditions and values as scalar code for kernels: what does not depend on where a value comes from.

Code is made as syntax trees whose names and indexes are this package's own; of a query it holds numbers only. The helpers that it
calls are those of :mod:`stretto.engines.shared.scalar`, :mod:`~stretto.engines.shared.scalar_functions` and, for decimals,
:mod:`~stretto.engines.shared.decimals`.
"""

from __future__ import annotations

import ast
import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from stretto import _jit
from stretto.engines.shared import decimals, scalar, scalar_functions
from stretto.engines.shared.decimals import DIGITS, words_of
from stretto.engines.shared.scalar_functions import OF_ONE
from stretto.errors import QueryError
from stretto.query import functions
from stretto.query import predicate as p
from stretto.query.evaluate import holds
from stretto.query.evaluate import value as value_of
from stretto.query.scalar_functions import FUNCTIONS
from stretto.query.typing import is_exact

_OPERATORS: dict[str, type[ast.cmpop]] = {
    "=": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
}

#: What ``compared(whole, real)`` may give for each operator; 2 is beside NaN.
_SIGNS = {"=": (0,), "!=": (-1, 1, 2), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}


#: What computes with wide integers: where the result fits, and where it may not.
_WIDE = {
    "+": ("wide_sum", "wide_added"),
    "-": ("wide_difference", "wide_subtracted"),
    "*": ("wide_product", "wide_multiplied"),
}

OVERFLOWED = 1  #: an integer left 64 bits
IS_NULL = 2  #: a value that is kept is NULL


@dataclass(frozen=True)
class Code:
    """An expression: its value, the tests that say whether it is known, and what kind of word it is.

    A ``decimal`` is a wide integer at a scale, with at most so many digits (:mod:`stretto.engines.shared.decimals`).
    """

    value: ast.expr
    known: tuple[ast.expr, ...]
    kind: str
    per_second: int = 0
    scale: int = 0
    digits: int = 0


def name(text: str) -> ast.expr:
    """A variable that is read."""
    return ast.Name(text, ast.Load())


def number(value: int | float) -> ast.expr:
    """The syntax tree of a literal."""
    if value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def call(function: str, *arguments: ast.expr) -> ast.expr:
    """``function(arguments)``."""
    return ast.Call(name(function), list(arguments), [])


def cell(array: str, row: str, at: int) -> ast.expr:
    """``array[row, at]``."""
    return ast.Subscript(name(array), ast.Tuple([name(row), ast.Constant(at)], ast.Load()), ast.Load())


def fault(context: ast.expr_context) -> ast.expr:
    """The word of F that says what went wrong; 0: nothing."""
    return ast.Subscript(name("F"), ast.Tuple([ast.Constant(0), ast.Constant(0)], ast.Load()), context)


def function_of(called: str, parameters: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """A function of some parameters."""
    arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    return ast.FunctionDef(called, arguments, body, [], None, None)


#: What code may call, by its name.
_HELPERS = {one: getattr(module, one) for module in (scalar, scalar_functions, decimals) for one in module.__all__}
_HELPERS["word_at"] = _jit.word_at


def compiled(
    function: ast.FunctionDef, *, numbers: int, matrices: int, called: Mapping[str, Any], **more: Any
) -> Callable[..., Any]:
    """Compile a function of numbers and matrices; ``called``: registered functions, and ``more`` helpers, by their names."""
    return _jit.generated(function, _HELPERS | more, numbers=numbers, matrices=matrices, own=called)


def faulty() -> ast.expr:
    """Something is noted in F."""
    return ast.Compare(fault(ast.Load()), [ast.NotEq()], [ast.Constant(0)])


def all_of(tests: tuple[ast.expr, ...] | list[ast.expr]) -> ast.expr:
    """The conjunction, each test once."""
    once = list({ast.dump(test): test for test in tests}.values())
    if not once:
        return ast.Constant(True)
    return once[0] if len(once) == 1 else ast.BoolOp(ast.And(), once)


class Lifted:
    """Constants beside the code, as words in a table: functions that differ in constants only are one.

    Parameters
    ----------
    word
        The code that reads the word with a number.
    """

    def __init__(self, word: Callable[[int], ast.expr]) -> None:
        self._word = word
        #: The words.
        self.words: list[int] = []

    def of(self, code: Code) -> Code:
        """A constant that is read from the table; a truth value stays in the code."""
        match code.value:
            case ast.Call(function, arguments):
                return replace(code, value=ast.Call(function, [self._cell(one) for one in arguments], []))
            case _ if code.kind == "bool":
                return code
            case literal:
                word = self._cell(literal)
                return replace(code, value=call("real", word) if code.kind == "float" else word)

    def _cell(self, literal: ast.expr) -> ast.expr:
        value = ast.literal_eval(literal)
        self.words.append(int(np.float64(value).view(np.int64)) if isinstance(value, float) else value)
        return self._word(len(self.words) - 1)


@dataclass(frozen=True)
class Test:
    """A condition as an expression: a truth value, or with ``three`` a number: 0 false, 1 not told by 64 bits, 2 true."""

    code: ast.expr
    three: bool = False


def joined(tests: list[Test], connective: ast.And | ast.Or) -> Test:
    """AND or OR of tests, in Kleene's logic: what one side decides needs nothing of the others."""
    plain = [test.code for test in tests if not test.three]
    three = [test.code for test in tests if test.three]
    conjunction = isinstance(connective, ast.And)
    if not three:
        return Test(all_of(plain) if conjunction else plain[0] if len(plain) == 1 else ast.BoolOp(connective, plain))
    code = _least(three) if conjunction else _greatest(three)
    if plain and conjunction:
        code = ast.IfExp(all_of(plain), code, ast.Constant(0))
    elif plain:
        code = ast.IfExp(ast.BoolOp(connective, plain) if len(plain) > 1 else plain[0], ast.Constant(2), code)
    return Test(code, three=True)


def _negated(test: Test) -> Test:
    if test.three:
        return Test(ast.BinOp(ast.Constant(2), ast.Sub(), test.code), three=True)
    return Test(ast.UnaryOp(ast.Not(), test.code))


def _least(codes: list[ast.expr]) -> ast.expr:
    return codes[0] if len(codes) == 1 else call("min", *codes)


def _greatest(codes: list[ast.expr]) -> ast.expr:
    return codes[0] if len(codes) == 1 else call("max", *codes)


def _two_if(test: ast.expr) -> ast.expr:
    return ast.IfExp(test, ast.Constant(2), ast.Constant(0))


class ScalarCode(p.Visitor, ABC):
    """Compiles conditions and values; a subclass says what an attribute's name stands for.

    Parameters
    ----------
    called
        Registered functions that code calls, by their names in the code; filled here.
    faults
        The matrix whose first word is set where an integer leaves 64 bits.
    text
        The text that conditions were written in, for errors.
    """

    def __init__(self, called: dict[str, Any], faults: str, text: str | None) -> None:
        self.called = called
        self.faults = faults
        self.text = text
        #: Whether the comparison at hand is one of decimals.
        self.exact = False

    @abstractmethod
    def reference(self, attribute: str) -> Code:
        """What an attribute's name stands for; a decimal is a double unless the comparison is exact."""

    def type_of(self, attribute: str) -> pa.DataType | None:
        """The type of an attribute, where decimals are kept exactly."""
        return None

    def atom(self, node: p.Predicate) -> ast.expr | None:
        """A condition that is tested elsewhere, as the word of its outcome: 1 true, 0 false, 2 where 64 bits do not tell.

        ``None``: it is tested here.
        """
        return None

    def strings(self, op: str, node: p.Predicate) -> None:
        """Strings are compared with an operator: a place to refuse what their words cannot tell."""
        if op not in ("=", "!="):
            raise self.mistake("strings of an event and a register are compared with = and != only", node)

    def string(self, value: str, node: p.Constant) -> Code:
        """A string constant."""
        raise self.mistake("a string stands beside attributes of several events", node)

    def lifted(self, constant: Code) -> Code:
        """A constant where the code finds it: in its place, unless a subclass keeps it beside the code."""
        return constant

    # -- predicates ---------------------------------------------------------------------------------------------------

    def predicate(self, node: p.Predicate) -> ast.expr:
        """A condition as an expression that is true or false; where integers of 64 bits do not tell, that is noted."""
        test = self.judged(node)
        return call("settled", test.code, name(self.faults)) if test.three else test.code

    def judged(self, node: p.Predicate) -> Test:
        """A condition as code."""
        if not p.attributes(node):
            return Test(ast.Constant(holds(node, {})))
        word = self.atom(node)
        if word is not None:
            held = ast.Compare(word, [ast.Eq()], [ast.Constant(1)])
            if not p.computes(node):
                return Test(held)
            unknown = ast.Compare(word, [ast.Eq()], [ast.Constant(2)])
            return Test(ast.IfExp(unknown, ast.Constant(1), _two_if(held)), three=True)
        kinds = {one: kind for one in p.attributes(node) if (kind := self.type_of(one)) is not None}
        self.exact = is_exact(node, kinds)
        found: Test = self.visit(node)
        return found

    def all_of(self, node: p.And) -> Test:
        return joined([self.judged(part) for part in node.parts], ast.And())

    def any_of(self, node: p.Or) -> Test:
        return joined([self.judged(part) for part in node.parts], ast.Or())

    def negation(self, node: p.Not) -> Test:
        return _negated(self.judged(node.part))

    def comparison(self, node: p.Comparison) -> Test:
        return self.compare(node.op, self.operand(node.left), self.operand(node.right), node)

    def among(self, node: p.In) -> Test:
        own = self.operand(node.operand)
        return joined([self.compare("=", own, self.operand(value), node) for value in node.values], ast.Or())

    def between(self, node: p.Between) -> Test:
        own = self.operand(node.operand)
        bounds = ((">=", node.low), ("<=", node.high))
        return joined([self.compare(op, own, self.operand(side), node) for op, side in bounds], ast.And())

    def is_null(self, node: p.IsNull) -> Test:
        own = self.operand(node.operand)
        there = call("exists", own.value) if self._notes(own.value) else ast.Constant(True)
        return _negated(self._sound(own.known, there))

    def like(self, node: p.Like) -> Test:
        raise self.mistake(f"{type(node).__name__.upper()} tests an attribute of one event", node)

    rlike = like

    def member(self, node: p.Member) -> Test:
        raise self.mistake("IN asks for a value in a list of the same event", node)

    def compare(self, op: str, left: Code, right: Code, node: p.Predicate) -> Test:
        """``left op right``; false where one of them is not known."""
        known = (*left.known, *right.known)
        if left.kind == "string":
            self.strings(op, node)
        if left.kind == "time":
            left, right = self._one_unit(left, right)
        if "decimal" in (left.kind, right.kind):
            scale = max(left.scale, right.scale)
            sides = (self._at_scale(left, scale).value, self._at_scale(right, scale).value)
            test: ast.expr = ast.Compare(call("wide_sign", *sides), [_OPERATORS[op]()], [ast.Constant(0)])
        elif (left.kind == "float") != (right.kind == "float"):
            if left.kind == "float":
                left, right, op = right, left, p.FLIPPED[op]
            sign = call("compared", left.value, right.value)
            tests: list[ast.expr] = [ast.Compare(sign, [ast.Eq()], [number(one)]) for one in _SIGNS[op]]
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        else:
            test = ast.Compare(left.value, [_OPERATORS[op]()], [right.value])
        return self._sound(known, test)

    def _sound(self, known: tuple[ast.expr, ...], test: ast.expr) -> Test:
        """A test of values that are known; where one of them is computed of an integer beyond 64 bits, it tells nothing."""
        noisy = [one for one in known if self._notes(one)]
        if not noisy and not self._notes(test):
            return Test(all_of([*known, test]))
        code = self._tested(test)
        if noisy:
            there = _least([self._tested(one) for one in noisy])
            code = ast.IfExp(ast.Compare(there, [ast.Eq()], [ast.Constant(2)]), code, there)
        quiet = [one for one in known if not self._notes(one)]
        return Test(ast.IfExp(all_of(quiet), code, ast.Constant(0)) if quiet else code, three=True)

    def _tested(self, test: ast.expr) -> ast.expr:
        """A test that may note an overflow as a truth of three values, with no note left."""
        return call("tested", call("mark", name(self.faults)), test, name(self.faults))

    def _notes(self, code: ast.expr) -> bool:
        """Whether code may note an overflow: it hands the matrix of faults to a function."""
        calls = (node for node in ast.walk(code) if isinstance(node, ast.Call))
        return any(isinstance(one, ast.Name) and one.id == self.faults for node in calls for one in node.args)

    def _one_unit(self, left: Code, right: Code) -> tuple[Code, Code]:
        """Two times in the finer of their units."""
        finest = max(left.per_second, right.per_second)
        return self._in_unit(left, finest), self._in_unit(right, finest)

    def _in_unit(self, time: Code, per_second: int) -> Code:
        if time.per_second == per_second:
            return time
        factor = ast.Constant(per_second // time.per_second)
        return Code(call("multiplied", time.value, factor, name(self.faults)), time.known, "time", per_second)

    # -- values -------------------------------------------------------------------------------------------------------

    def operand(self, node: p.Operand) -> Code:
        """A value as an expression."""
        found: Code = self.visit(node)
        return found

    def attribute(self, node: p.Attribute) -> Code:
        return self.reference(node.name)

    def constant(self, node: p.Constant) -> Code:
        if isinstance(node.value, str):
            return self.string(node.value, node)
        if self.exact and isinstance(node.value, Decimal):
            return self.lifted(self._decimal(node.value, node))
        return self.lifted(_constant(node.value))

    def negative(self, node: p.Negative) -> Code:
        own = self.operand(node.operand)
        if own.kind == "decimal":
            return self._exactly("-", Code(ast.Constant(0), (), "int"), own)
        if own.kind == "float":
            return Code(ast.UnaryOp(ast.USub(), own.value), own.known, "float")
        return Code(call("negated", own.value, name(self.faults)), own.known, "int")

    def ticks(self, node: p.Ticks) -> Code:
        if not p.attributes(node):
            return self.lifted(Code(number(value_of(node, {})), (), "int"))
        return replace(self._in_unit(self.operand(node.operand), node.per_second), kind="int", per_second=0)

    def function(self, node: p.Function) -> Code:
        """A function of the language; what it makes of strings is computed of columns before."""
        if p.reads_strings(node) or any(isinstance(getattr(one, "value", None), str) for one in node.arguments):
            found = self.of_one_event(node)
            if found is not None:
                return found
            if FUNCTIONS[node.name].reads_strings:
                hint = f"{node.name} takes strings of one event of the input"
                raise self.mistake(f"{node} is computed of strings that a kernel does not see", node, hint)
        first, *more = [self.operand(argument) for argument in node.arguments]
        match node.name:
            case "coalesce":
                return self._chosen([first, *more])
            case "abs" if first.kind == "int":
                value = call("absolute", first.value, name(self.faults))
            case "round":
                power = 10 ** value_of(node.arguments[1], {}) if more else 1
                value = call("rounded", first.value, number(float(power)))
            case _:
                value = call(OF_ONE[node.name], first.value)
        return replace(first, value=value)

    def _chosen(self, sides: list[Code]) -> Code:
        """The first value that is known."""
        first, *others = sides
        if not others or not first.known:
            return first
        other = self._chosen(others)
        value = ast.IfExp(all_of(first.known), first.value, other.value)
        both = (ast.BoolOp(ast.Or(), [all_of(first.known), all_of(other.known)]),) if other.known else ()
        return replace(first, value=value, known=both)

    def case(self, node: p.Case) -> Code:
        """The value of the first condition that holds; NULL is never known."""
        sides = [None if p.is_null(one) else self.operand(one) for one in node.values]
        kind = next(side for side in sides if side is not None)
        null = replace(kind, value=ast.Constant(0.0 if kind.kind == "float" else 0), known=(ast.Constant(False),))
        found = sides[-1] or null
        for condition, side in zip(reversed(node.conditions), reversed(sides[:-1]), strict=True):
            own, test = side or null, self.predicate(condition)
            value = ast.IfExp(test, own.value, found.value)
            known = (ast.IfExp(test, all_of(own.known), all_of(found.known)),) if own.known or found.known else ()
            found = replace(own, value=value, known=known)
        return found

    def of_one_event(self, node: p.Function) -> Code | None:
        """A word that is computed of strings of one event before the kernel; ``None``: they are of several, or none is kept."""
        return None

    def call(self, node: p.Call) -> Code:
        """A registered function, by a name of this package's own."""
        arguments = [self.operand(argument) for argument in node.arguments]
        function = functions.known()[node.name]
        kinds = tuple(one.kind for one in arguments)
        own = self.name_in_code(function.compiled)
        given = [
            ast.Compare(one.value, [ast.NotEq()], [ast.Constant(0)]) if one.kind == "bool" else one.value
            for one in arguments
        ]
        known = tuple(test for one in arguments for test in one.known)
        kind = function.result(kinds)
        value = call(own, *given)
        return Code(ast.IfExp(value, ast.Constant(1), ast.Constant(0)) if kind == "bool" else value, known, kind)

    def name_in_code(self, function: Any) -> str:
        """What a function is called in the code: one name for each."""
        own = next((one for one, other in self.called.items() if other is function), f"user_{len(self.called)}")
        self.called[own] = function
        return own

    def arithmetic(self, node: p.Arithmetic) -> Code:
        op, left, right = node.op, self.operand(node.left), self.operand(node.right)
        if "decimal" in (left.kind, right.kind):
            return self._exactly(op, left, right)
        known = (*left.known, *right.known)
        if op in ("/", "div", "%"):
            known = (*known, ast.Compare(right.value, [ast.NotEq()], [ast.Constant(0)]))
        if op == "/" or "float" in (left.kind, right.kind):
            first, second = (one.value if one.kind == "float" else call("float", one.value) for one in (left, right))
            if op == "%":
                return Code(call("remainder_real", first, second), known, "float")
            operators: dict[str, ast.operator] = {"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div()}
            return Code(ast.BinOp(first, operators[op], second), known, "float")
        if op == "%":
            return Code(call("remainder", left.value, right.value), known, "int")
        function = {"+": "added", "-": "subtracted", "*": "multiplied", "div": "quotient"}[op]
        return Code(call(function, left.value, right.value, name(self.faults)), known, "int")

    # -- decimals -----------------------------------------------------------------------------------------------------

    def _decimal(self, value: Decimal, node: p.Constant) -> Code:
        """The syntax tree of a literal."""
        digits = Fraction(value)
        scale = max(0, -int(value.as_tuple().exponent))
        unscaled = int(digits * 10**scale)
        if len(str(abs(unscaled))) > DIGITS:
            hint = f"{DIGITS} digits is what conditions between events compute with"
            raise QueryError(f"the number {value} has too many digits", text=self.text, span=node.span, hint=hint)
        words = [number(word) for word in words_of(unscaled)]
        return Code(call("wide_of_four", *words), (), "decimal", 0, scale, len(str(abs(unscaled))))

    def decimal(self, parts: list[Code], kind: pa.DataType) -> Code:
        """A decimal attribute of the words that it is kept in."""
        made = {1: "wide", 2: "wide_of_two", 4: "wide_of_four"}[len(parts)]
        value = call(made, *(part.value for part in parts))
        return Code(value, parts[0].known, "decimal", 0, kind.scale, kind.precision)

    def _at_scale(self, code: Code, scale: int) -> Code:
        """A decimal or an integer as a decimal of a scale that is no less."""
        if code.kind == "int":
            code = Code(call("wide", code.value), code.known, "decimal", 0, 0, 19)
        more = scale - code.scale
        if not more:
            return code
        if more >= DIGITS:
            raise QueryError(f"decimals of {scale} digits behind the point", text=self.text, hint="round them")
        factor = call("wide_of_four", *(number(word) for word in words_of(10**more)))
        power = Code(factor, (), "decimal", 0, more, more + 1)
        found = self._wide("*", code, power, code.digits + more)
        return replace(found, scale=scale)

    def _exactly(self, op: str, left: Code, right: Code) -> Code:
        """Arithmetic of decimals and integers."""
        if op == "*":
            left, right = (self._at_scale(one, one.scale) for one in (left, right))
            return replace(self._wide(op, left, right, left.digits + right.digits), scale=left.scale + right.scale)
        scale = max(left.scale, right.scale)
        left, right = self._at_scale(left, scale), self._at_scale(right, scale)
        return replace(self._wide(op, left, right, max(left.digits, right.digits) + 1), scale=scale)

    def _wide(self, op: str, left: Code, right: Code, digits: int) -> Code:
        """Of two wide integers; what may have more digits than fit notes it."""
        known = (*left.known, *right.known)
        quiet, noting = _WIDE[op]
        if digits <= DIGITS:
            return Code(call(quiet, left.value, right.value), known, "decimal", 0, 0, digits)
        return Code(call(noting, left.value, right.value, name(self.faults)), known, "decimal", 0, 0, DIGITS)

    def mistake(self, message: str, node: p.Expression, hint: str | None = None) -> QueryError:
        """An error at the place of the first attribute of a condition."""
        spans = [span for span in p.attributes(node).values() if span is not None]
        return QueryError(message, text=self.text, span=spans[0] if spans else None, hint=hint)


def _constant(value: Any) -> Code:
    if isinstance(value, bool):
        return Code(ast.Constant(int(value)), (), "bool")
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:  # beside whole numbers of 64 bits it is as good as infinite
            return Code(number(math.copysign(math.inf, value)), (), "float")
        return Code(number(value), (), "int")
    if isinstance(value, dt.date):
        micros = pa.scalar(value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day))
        return Code(number(micros.cast(pa.timestamp("us", tz=micros.type.tz)).value), (), "time", 10**6)
    return Code(number(float(value)) if isinstance(value, float | Decimal) else number(value), (), "float")
