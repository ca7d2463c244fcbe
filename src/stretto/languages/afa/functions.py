"""Python functions at arcs: which attributes they read, and whether those are there."""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from stretto.errors import OptionError, hinted
from stretto.languages.afa.scope import Scope
from stretto.query.afa import UserFunction
from stretto.query.typing import kind_of

#: Kinds that a field of a named tuple has: Numba computes with numbers.
_KINDS = ("int", "float", "decimal", "bool", "time")


def read_function(given: Callable[..., Any], scope: Scope, *, epsilon: bool = False) -> UserFunction:
    """Check a Python function ``(e, r)``, and find what it reads of the event.

    Where the function hands ``e`` on as a whole, it reads all of it.

    Raises
    ------
    OptionError
        It is no Python function of two plain parameters, or names an attribute that is not there or holds no numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> scope = Scope({"price": pa.float64(), "size": pa.int64()}, {"low": pa.float64()})
    >>> read_function(lambda e, r: e.price < r.low, scope).uses
    ('price',)
    """
    python = getattr(given, "py_func", given)
    name = _name(python)
    try:
        code = python.__code__
        parameters = list(inspect.signature(python).parameters.values())
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(f"{given!r} is no Python function: give a def or a lambda (e, r)") from error
    if len(parameters) != 2 or any(
        one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters
    ):
        raise OptionError(f"{name} must take two plain parameters: the event and the register, (e, r)")
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise OptionError(f"{name} is a generator or a coroutine: it must return its value")
    event, register = parameters[0].name, parameters[1].name
    for side, own, names in (("e", event, scope.events), ("r", register, scope.register)):
        for read in dict.fromkeys(one for one in _read(code, own) if one is not None):
            if side == "r" and read.startswith("_"):  # methods of named tuples, for Numba to judge
                continue
            if epsilon and side == "e":
                raise OptionError(f"{name} reads {side}.{read}, and an ε-arc consumes no event: it reads r.")
            if read not in names:
                what = "event has no attribute" if side == "e" else "register has no field"
                raise OptionError(
                    hinted(f"{name}: the {what} '{read}'", read, names, kind="attribute" if side == "e" else "field")
                )
            if kind_of(names[read]) not in _KINDS:
                raise OptionError(
                    f"{name} reads {side}.{read} ({names[read]}), and Python functions get numbers, truth values and times: "
                    "compare strings in a text"
                )
    uses = list(_read(code, event))
    if None in uses:
        if epsilon:
            raise OptionError(f"{name} hands the event on, and an ε-arc consumes none: it reads r.")
        uses = [one for one, kind in scope.events.items() if kind_of(kind) in _KINDS]
    return UserFunction(python, name, tuple(dict.fromkeys(one for one in uses if one is not None)))


def _name(python: Any) -> str:
    """What a function is called; a lambda by its place."""
    name = str(getattr(python, "__name__", python))
    if name != "<lambda>":
        return name
    code = python.__code__
    return f"lambda at {code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{code.co_firstlineno}"


def _read(code: types.CodeType, parameter: str) -> Iterator[str | None]:
    """The attributes of a parameter that code reads; ``None`` where it does something else with the parameter."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    for at, step in enumerate(steps):
        loaded = _loaded(step)
        if parameter not in loaded:
            continue
        after = steps[at + 1] if at + 1 < len(steps) else None
        direct = after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD") and loaded[-1] == parameter
        if parameter in loaded[:-1] or not direct:
            yield None
        if direct:
            assert after is not None
            yield str(after.argval)


def _loaded(step: dis.Instruction) -> tuple[str, ...]:
    """The variables that an instruction puts on the stack, in order."""
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    if step.opname.startswith("LOAD_FAST"):
        return tuple(map(str, names))
    if step.opname == "STORE_FAST_LOAD_FAST":
        return (str(names[-1]),)
    # A variable that an inner function sees, and one that is set anew, may be read in ways that are not followed.
    if step.opname in ("LOAD_DEREF", "LOAD_CLOSURE", "MAKE_CELL", "STORE_FAST", "STORE_DEREF"):
        return (*map(str, names), "")
    return ()
