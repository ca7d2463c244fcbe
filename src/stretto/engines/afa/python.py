"""Python functions of arcs as code for kernels: they get named tuples of an event's and a register's fields.

A fence must give a truth value, a transfer a tuple with a value for each field that is no string; strings keep their value. What
they give is checked when Numba compiles them, or where it is switched off, at each call.

Statements and places of the code of fences and transfers.
"""

from __future__ import annotations

import ast
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cached_property
from keyword import iskeyword
from typing import Any, Protocol

import pyarrow as pa

from stretto import _jit
from stretto.engines.shared.scalar_code import IS_NULL, Code, all_of, call, fault, faulty, name
from stretto.engines.shared.values import Column, column_for
from stretto.errors import OptionError
from stretto.query.afa import UserFunction
from stretto.query.typing import kind_of

REG = 6  #: the row of P that holds the register's first field

RAISED = 3  #: a Python function raised, or divided by zero


def fails(why: int) -> list[ast.stmt]:
    """Note why, unless something is noted already, and return 0."""
    note = ast.Assign([fault(ast.Store())], ast.Constant(why))
    return [ast.If(ast.UnaryOp(ast.Not(), faulty()), [note], []), returned(0)]


def returned(value: int) -> ast.stmt:
    return ast.Return(ast.Constant(value))


def place(field: int, match: str, context: ast.expr_context | None = None) -> ast.expr:
    """The word of a register's field: of the partial match ``old`` or ``new``."""
    at = ast.Tuple([ast.Constant(REG + field), name(match)], ast.Load())
    return ast.Subscript(name("P"), at, context or ast.Load())


def word_of(code: Code, kind: str) -> ast.expr:
    """A value as the word of a field of this kind."""
    if kind == "float":
        return call("word", code.value if code.kind == "float" else call("float", code.value))
    return code.value


def stored(found: list[tuple[ast.expr, ast.expr]]) -> list[ast.stmt]:
    """Write a register: for each field whether its value is known, and its word. All are computed before one is written."""
    body: list[ast.stmt] = []
    for at, (known, value) in enumerate(found):
        if not isinstance(known, ast.Constant):
            body.append(ast.If(ast.UnaryOp(ast.Not(), known), fails(IS_NULL), []))
        body.append(ast.Assign([ast.Name(f"w{at}", ast.Store())], value))
    if any(notes(known) or notes(value) for known, value in found):
        body.append(ast.If(faulty(), [returned(0)], []))
    body += [ast.Assign([place(at, "new", ast.Store())], name(f"w{at}")) for at in range(len(found))]
    return [*body, returned(1)]


def notes(code: ast.expr) -> bool:
    """Whether code may note a fault."""
    return any(isinstance(node, ast.Name) and node.id == "F" for node in ast.walk(code))


#: The kinds that a field of a named tuple has, by those of words.
_KINDS = {"int": "int", "time": "int", "float": "float", "bool": "bool"}

_SHOWN = {
    "int": "an integer",
    "float": "a float",
    "bool": "a truth value",
    "none": "nothing",
    "tuple": "a tuple",
    "unicode_type": "a string",
}


class Words(Protocol):
    """The words of events and registers, and what code calls, by its names there."""

    called: dict[str, Any]
    events: dict[str, pa.DataType]
    register: dict[str, pa.DataType]

    def of_event(self, column: Column) -> Code:
        """A word of the event."""

    def field(self, field: str) -> Code:
        """A field of the register."""


class PythonCode:
    """Calls Python functions.

    Parameters
    ----------
    owner
        Knows the words of events and registers.
    """

    def __init__(self, owner: Words) -> None:
        self.owner = owner
        self._bodies: dict[tuple[str, int], tuple[UserFunction, list[ast.stmt]]] = {}

    def fence(self, function: UserFunction) -> list[ast.stmt]:
        """The statements of a fence.

        Raises
        ------
        OptionError
            It does not compile, or gives no truth value.
        """
        return self._known("fence", function, self._fence)

    def transfer(self, function: UserFunction) -> list[ast.stmt]:
        """The statements of a transfer.

        Raises
        ------
        OptionError
            It does not compile, or does not give a value for each field.
        """
        return self._known("transfer", function, self._transfer)

    def _known(
        self, role: str, function: UserFunction, make: Callable[[UserFunction], list[ast.stmt]]
    ) -> list[ast.stmt]:
        """What was made for a function; which is kept, so that its identity stays its own."""
        key = (role, id(function.python))
        if key not in self._bodies:
            self._bodies[key] = (function, make(function))
        return self._bodies[key][1]

    def _fence(self, function: UserFunction) -> list[ast.stmt]:
        compiled = _jit.compiled_by_user(function.python, raises=True)

        def checked(found: Any) -> bool:
            kind = _kind_of_value(found)
            if kind != "bool":
                raise OptionError(_no_truth(function, kind))
            return bool(found)

        if not _jit.interprets():
            kind, _, _ = self._result(function, compiled)
            if kind != "bool":
                raise OptionError(_no_truth(function, kind))
        found = self._name(compiled, "found")
        unknown = [returned(0)]
        holds = ast.Return(ast.IfExp(name(found), ast.Constant(1), ast.Constant(0)))
        return [*self._called(function, compiled, found, unknown, checked), holds]

    def _transfer(self, function: UserFunction) -> list[ast.stmt]:
        compiled = _jit.compiled_by_user(function.python, raises=True)
        fields = self._fields(function)
        kinds = tuple(_KINDS[kind_of(self.owner.register[field])] for field in fields)

        def checked(found: Any) -> tuple[Any, ...]:
            parts = tuple(map(_kind_of_value, found)) if isinstance(found, tuple) else ()
            names = getattr(found, "_fields", ())
            order = _order(function, _kind_of_value(found), parts, names, fields, kinds)
            turned = tuple(found[at] for at in order)
            return tuple(_wrapped(one) if kind == "int" else one for one, kind in zip(turned, kinds, strict=True))

        order: Sequence[int] = range(len(fields))
        if not _jit.interprets():
            order = _order(function, *self._result(function, compiled), fields, kinds)
        found = self._name(compiled, "found")
        words: list[tuple[ast.expr, ast.expr]] = []
        given = dict(zip(fields, zip(order, kinds, strict=True), strict=True))
        for at, field in enumerate(self.owner.register):
            words.append((ast.Constant(True), _part(found, *given[field]) if field in given else place(at, "old")))
        return [*self._called(function, compiled, found, fails(IS_NULL), checked), *stored(words)]

    def _fields(self, function: UserFunction) -> list[str]:
        """The register's fields that a transfer gives."""
        fields = [one for one, kind in self.owner.register.items() if kind_of(kind) in _KINDS]
        odd = next((one for one in fields if not _is_name(one)), None)
        if odd is not None:
            raise OptionError(
                f"{function}: the register's field '{odd}' cannot be a named tuple's; give it another name, or write expressions"
            )
        return fields

    def _result(self, function: UserFunction, compiled: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        arguments = [self._event, self._register]
        try:
            kinds = [(made, tuple(_KINDS[code.kind] for code in codes.values())) for made, codes in arguments]
            return _jit.result_of_tuples(compiled, kinds)
        except TypeError as error:
            raise OptionError(f"{function} does not compile: {error}") from error

    # -- code ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _event(self) -> tuple[type, dict[str, Code]]:
        """The class of ``e``, and what its fields are in the code."""
        owner = self.owner
        fields = {
            one: owner.of_event(column_for(one, kind))
            for one, kind in owner.events.items()
            if _is_name(one) and column_for(one, kind).kind in _KINDS
        }
        made = namedtuple("Event", fields)  # type: ignore[misc]
        owner.called["Event"] = made
        return made, fields

    @cached_property
    def _register(self) -> tuple[type, dict[str, Code]]:
        """The class of ``r``, and what its fields are in the code."""
        owner = self.owner
        fields = {
            one: owner.field(one) for one, kind in owner.register.items() if _is_name(one) and kind_of(kind) in _KINDS
        }
        made = namedtuple("Register", fields)  # type: ignore[misc]
        owner.called["Register"] = made
        return made, fields

    def _name(self, function: Any, prefix: str) -> str:
        """A name of its own for something about a function."""
        called = self.owner.called
        own = next((one for one, other in called.items() if other is function), f"user_{len(called)}")
        called[own] = function
        return f"{prefix}_{own}"

    def _called(
        self,
        function: UserFunction,
        compiled: Any,
        found: str,
        unknown: list[ast.stmt],
        checked: Callable[[Any], Any],
    ) -> list[ast.stmt]:
        """``found`` as what the function gives; where an attribute that it uses is NULL, the statements ``unknown``."""
        event = self._event[1]
        body: list[ast.stmt] = []
        known = [test for one in function.uses if one in event for test in event[one].known]
        if known:
            body.append(ast.If(ast.UnaryOp(ast.Not(), all_of(known)), unknown, []))
        value = call(
            self._name(compiled, "x")[2:], self._tuple("Event", event), self._tuple("Register", self._register[1])
        )
        handler = ast.ExceptHandler(name("Exception"), None, fails(RAISED))
        body.append(ast.Try([ast.Assign([ast.Name(found, ast.Store())], value)], [handler], [], []))
        if _jit.interprets():
            check = self._name(checked, "x")[2:]
            body.append(ast.Assign([ast.Name(found, ast.Store())], call(check, name(found))))
        return body

    def _tuple(self, made: str, fields: dict[str, Code]) -> ast.expr:
        types = {"int": "int", "time": "int", "float": "float"}
        values = [
            call(types[one.kind], one.value)
            if one.kind in types
            else ast.Compare(one.value, [ast.NotEq()], [ast.Constant(0)])
            for one in fields.values()
        ]
        return call(made, *values)


def _is_name(text: str) -> bool:
    """Whether a named tuple may have such a field."""
    return text.isidentifier() and not iskeyword(text) and not text.startswith("_")


def _part(found: str, at: int, kind: str) -> ast.expr:
    """A part of a tuple as a word."""
    part = ast.Subscript(name(found), ast.Constant(at), ast.Load())
    if kind == "bool":
        return ast.IfExp(part, ast.Constant(1), ast.Constant(0))
    return call("int", part) if kind == "int" else call("word", call("float", part))


# ---- What functions give


def _shown(kind: str) -> str:
    return "a string" if kind.startswith("Literal[str]") else _SHOWN.get(kind, kind)


def _no_truth(function: UserFunction, kind: str) -> str:
    hint = "compare it: … > 0" if kind in ("int", "float") else "return True or False"
    return f"{function} gives {_shown(kind)}, and a fence needs a truth value: {hint}"


def _order(
    function: UserFunction,
    kind: str,
    parts: tuple[str, ...],
    names: tuple[str, ...],
    fields: list[str],
    kinds: tuple[str, ...],
) -> list[int]:
    """Where each field is in the tuple that a transfer gives.

    Raises
    ------
    OptionError
        It is no tuple, or not with a value for each field.
    """
    wanted = f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"
    if kind != "tuple":
        raise OptionError(f"{function} gives {_shown(kind)}, and a transfer needs a tuple: return {wanted}")
    if len(parts) != len(fields):
        raise OptionError(f"{function} gives {len(parts)} values, and the register has {len(fields)}: return {wanted}")
    if names and set(names) != set(fields):
        raise OptionError(f"{function} gives the fields ({', '.join(names)}), and the register has {wanted}")
    order = [names.index(one) for one in fields] if names else list(range(len(fields)))
    for field, at, want in zip(fields, order, kinds, strict=True):
        if parts[at] != want and (parts[at], want) != ("int", "float"):
            hints = {"int": "round it: int(…)", "float": "float(…)", "bool": "compare it: … > 0"}
            raise OptionError(
                f"{function} gives {_shown(parts[at])} for the field '{field}', which is {_SHOWN[want]}: {hints[want]}"
            )
    return order


def _kind_of_value(found: Any) -> str:
    if found is None:
        return "none"
    kinds = {bool: "bool", int: "int", float: "float", str: "unicode_type", tuple: "tuple"}
    own = found.item() if hasattr(found, "item") else found
    return next((kind for known, kind in kinds.items() if isinstance(own, known)), type(found).__name__)


def _wrapped(whole: int) -> int:
    """An integer in 64 bits, as compiled code has it."""
    return (int(whole) + (1 << 63)) % (1 << 64) - (1 << 63)
