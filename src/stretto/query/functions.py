"""Functions of the user in conditions: Python functions over numbers, compiled into the kernel by Numba or refused with the reason.

To other processes, such as Spark's workers, they travel by their path, ``module:name``: a worker imports the module.
"""

from __future__ import annotations

import dis
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, TypeVar

from stretto import _jit
from stretto.arguments import check_arguments
from stretto.errors import OptionError, hinted

F = TypeVar("F", bound=Callable[..., Any])

#: Names that mean something else in a condition.
TAKEN = frozenset({"count", "sum", "avg", "min", "max", "average", "mean"})


@dataclass(frozen=True)
class Function:
    """A registered function."""

    name: str
    python: Callable[..., Any]
    parameters: int
    compiled: Any

    @cache  # noqa: B019 - as many as there are registered functions, which are few
    def result(self, kinds: tuple[str, ...]) -> str:
        """What it gives for arguments of these kinds: ``int``, ``float`` or ``bool``. Compiled once for each.

        Raises
        ------
        TypeError
            It does not compile for them; the message says why.
        """
        return _jit.result_kind(self.compiled, kinds)


_KNOWN: dict[str, Function] = {}
_VERSION = 0


@check_arguments
def function(given: F | None = None, *, name: str | None = None) -> Any:
    """Register a Python function for use in conditions of SASE+ queries; a decorator.

    It takes numbers or truth values (int64, float64, bool) and gives one; where an argument is NULL the result is NULL, and the
    function is not called. It is compiled by Numba when a query calls it. Registering a name again replaces the function
    for queries that are compiled from then on.

    Parameters
    ----------
    given
        The function.
    name
        What conditions call it; ``None``: its own name.

    Raises
    ------
    OptionError
        The name is taken or no name, the parameters are not plain ones, or the function raises: a condition cannot.

    Examples
    --------
    >>> import stretto
    >>> @stretto.function
    ... def relative(a, b):
    ...     return (b - a) / a
    >>> events = [{"type": "T", "price": price} for price in (10.0, 12.0, 12.1)]
    >>> query = "PATTERN SEQ(T a, T b) WHERE skip_till_any_match { relative(a.price, b.price) > 0.1 }"
    >>> stretto.match(query, events, output="positions").column("positions").to_pylist()
    [[0, 1], [0, 2]]
    """
    if given is None:
        return lambda one: function(one, name=name)
    global _VERSION
    called = name or str(getattr(given, "__name__", ""))
    if not called.isidentifier() or called.lower() in TAKEN:
        raise OptionError(f"a function cannot be called {called!r} in a condition: pass name='…'")
    _KNOWN[called] = Function(called, given, _parameters(given, called), _jit.compiled_by_user(given))
    _VERSION += 1
    return given


def known() -> dict[str, Function]:
    """Give the registered functions by name."""
    return dict(_KNOWN)


def version() -> int:
    """Give a number that changes whenever a function is registered."""
    return _VERSION


#: What a text may name: functions by name, or modules and paths.
Functions = Mapping[str, Callable[..., Any]] | str | Iterable[str]

#: For each function what conditions call it, and its path.
Paths = tuple[tuple[str, str], ...]


def paths(names: Iterable[str]) -> Paths:
    """Give the paths of registered functions, sorted.

    Raises
    ------
    OptionError
        A function has no path from which this process itself gets it, as one of a notebook or in another function.
    """
    found = []
    for name in sorted(set(names)):
        found.append((name, path_of(_KNOWN[name].python, f"the function '{name}'")))
    return tuple(found)


def importable() -> Paths:
    """Give the paths of all registered functions that have one."""
    found: Paths = ()
    for name in _KNOWN:
        with suppress(OptionError):
            found += paths([name])
    return found


def path_of(python: Any, what: str) -> str:
    """Give the path of a function; :class:`OptionError` as for :func:`paths`."""
    module, inside = str(python.__module__), str(python.__qualname__)
    try:
        same = module != "__main__" and _imported(f"{module}:{inside}") is python
    except (ImportError, AttributeError):
        same = False
    if not same:
        raise OptionError(
            f"{what} is known to this process only ({module}, {inside}): Spark's workers import functions by "
            "module and name. Write it into a module, import it from there, and give the module to the workers "
            "(session.addArtifacts('module.py', pyfile=True), or --py-files); or compute a column with it before"
        )
    return f"{module}:{inside}"


def import_functions(given: Paths) -> None:
    """Register the functions at these paths, unless they are.

    Raises
    ------
    OptionError
        There is no such module or function here.
    """
    for name, path in given:
        try:
            python = _imported(path)
        except (ImportError, AttributeError) as error:
            raise OptionError(
                f"the function '{name}' is {path.replace(':', '.')}, which this Python process cannot import ({error}): give the "
                "module to the workers, session.addArtifacts('module.py', pyfile=True), or --py-files"
            ) from error
        if name not in _KNOWN or _KNOWN[name].python is not python:
            function(python, name=name)


def named_in_text(path: str, allowed: Functions, where: str) -> Any:
    """Give the function that a text names, of those that the caller of Python allows; nothing else is imported for a text.

    Parameters
    ----------
    path
        The name in the text.
    allowed
        Functions by name; or names of modules, whose own functions a text may name as ``module:name``, or such paths.
    where
        What names it, for errors.

    Raises
    ------
    OptionError
        It is not allowed, or there is no such function.
    """
    if isinstance(allowed, Mapping):
        if path in allowed:
            return allowed[path]
        raise OptionError(
            hinted(f"{where} names the function '{path}', and functions= has none of this name", path, allowed)
        )
    allowed = {allowed} if isinstance(allowed, str) else set(allowed)
    module = path.partition(":")[0]
    if not allowed & {path, module}:
        told = ", ".join(f"'{one}'" for one in sorted(allowed)) or "none"
        raise OptionError(
            f"{where} names the function '{path}', and a text imports what its caller allows: {told}; write a text over e. and r., "
            f"or read it with functions=['{module}']"
        )
    try:
        found = _imported(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            f"{where}: this Python process cannot import '{path}' ({error}): give the module to the workers"
        ) from error
    if not callable(found) or getattr(found, "__module__", None) != module:
        raise OptionError(f"{where}: '{path}' is no function of the module '{module}' itself")
    return found


def _imported(path: str) -> Any:
    """Give the function at a path that this process has said itself."""
    module, _, inside = path.partition(":")
    return reduce(getattr, inside.split("."), importlib.import_module(module))


def _parameters(given: Callable[..., Any], called: str) -> int:
    """How many arguments a function takes."""
    try:
        found = list(inspect.signature(given).parameters.values())
        code = given.__code__
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(f"'{called}' is no Python function: register a def or a lambda") from error
    if any(one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in found) or not found:
        raise OptionError(f"'{called}' must take plain parameters, one or more: no *args, no keyword-only ones")
    if any(one.opname in ("RAISE_VARARGS", "LOAD_ASSERTION_ERROR") for one in dis.get_instructions(code)):
        raise OptionError(f"'{called}' raises or asserts, and a condition cannot: return False, or a number, instead")
    return len(found)
