"""Functions that are made when a query is read, or that are the user's own: conditions that kernels call."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config

from stretto._jit.internals import CACHE_DIRECTORY, Condition, signature_of
from stretto.folders import replaced


def generated(
    function: ast.FunctionDef,
    helpers: Mapping[str, Any],
    *,
    numbers: int,
    matrices: int,
    own: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a function that was made as a syntax tree, for kernels to call through its address.

    It takes int64 ``numbers`` and then C-contiguous int64 ``matrices``, and gives an int64. ``helpers`` are what its names may
    stand for beside its parameters: ``{name: function}``. Compiled code is kept on disk by the text of the function, so that
    the next process with the same query only loads it; with functions of the user's ``own``, by name, it is not. In a process
    functions of one text are one.
    """
    signature = signature_of(numbers, matrices)
    body = text_of(function)
    read = set(_NAME.findall(body))
    modules = sorted((helper.__module__, name) for name, helper in helpers.items() if name in read)
    text = "".join(f"from {module} import {name}\n" for module, name in modules) + f"\n{body}\n"
    called = tuple((name, function) for name, function in (own or {}).items() if name in read)
    if bool(CACHE_DIRECTORY) and not called and not config.DISABLE_JIT:
        condition = _kept(text, function.name, signature)
        if _RECORDER.conditions is not None:
            _RECORDER.conditions.append(condition)
        return condition
    return _held(text, function.name, signature, called)


_NAME = re.compile(r"[^\W\d]\w*")


def text_of(function: ast.FunctionDef) -> str:
    """A function that was made as a syntax tree, as text.

    Only statements need a place for that: :func:`ast.fix_missing_locations` would take as long as all the rest.
    """
    statements: list[Any] = [function]
    for statement in statements:
        statement.lineno = 1
        for part in ("body", "orelse", "handlers", "finalbody"):
            statements += getattr(statement, part, ())
    return ast.unparse(function)


#: What the folder of generated functions is called, in that of compiled code.
CONDITIONS = "conditions"


class _Recorder(threading.local):
    """What :func:`recorded` notes in this thread."""

    conditions: list[Condition] | None = None


_RECORDER = _Recorder()


@contextmanager
def recorded() -> Iterator[list[Condition]]:
    """Note the functions that :func:`generated` gives meanwhile, and whose code it keeps on disk."""
    before, _RECORDER.conditions = _RECORDER.conditions, []
    try:
        yield _RECORDER.conditions
    finally:
        _RECORDER.conditions = before


@lru_cache(maxsize=256)
def _kept(text: str, name: str, signature: Any) -> Condition:
    """The function of a text; loading its code once more would take 10 ms, and workers run a plan for many buckets."""
    return Condition(getattr(_module(text), name), signature, keeps=True)


@lru_cache(maxsize=256)
def _held(text: str, name: str, signature: Any, own: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    """The function of a text that calls these, in this process only."""
    space: dict[str, Any] = dict(own)
    exec(compile(text, "<condition>", "exec"), space)
    made: Callable[..., Any] = space[name]
    return made if config.DISABLE_JIT else Condition(made, signature, keeps=False)


def compiled_by_user(function: Callable[..., Any], *, raises: bool = False) -> Any:
    """A user's function, for Numba to compile when code calls it; ``raises``: as Python does, also where it divides by zero."""
    if config.DISABLE_JIT:
        return function
    return numba.njit(error_model="python" if raises else "numpy", nogil=True)(function)


def interprets() -> bool:
    """Whether Numba is switched off, so that kernels always run as Python."""
    return bool(config.DISABLE_JIT)


def result_kind(function: Any, kinds: tuple[str, ...]) -> str:
    """What a function of :func:`compiled_by_user` gives for arguments of some kinds: ``int``, ``float`` or ``bool``.

    Raises
    ------
    TypeError
        It does not compile, or gives something else.
    """
    checked = numba.core.registry.CPUDispatcher(
        getattr(function, "py_func", function), targetoptions={"nopython": True}
    )
    found = _result(checked, tuple(_KINDS[kind] for kind in kinds))
    if _kind(found) not in _KINDS:
        raise TypeError(f"it gives {found}, not a number or a truth value")
    return _kind(found)


def result_of_tuples(
    function: Any, arguments: Sequence[tuple[type, tuple[str, ...]]]
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What a function of :func:`compiled_by_user` gives for named tuples, each given as its class and the kinds of its fields.

    Returns
    -------
    tuple
        ``int``, ``float``, ``bool``, ``none``, ``tuple`` or Numba's name for anything else; the kinds of a tuple's parts; and
        their names, if it is a named one.

    Raises
    ------
    TypeError
        It does not compile.
    """
    found = _result(
        function,
        tuple(
            numba.types.BaseTuple.from_types(tuple(_KINDS[kind] for kind in kinds), made) for made, kinds in arguments
        ),
    )
    if not isinstance(found, numba.types.BaseTuple):
        return _kind(found), (), ()
    return "tuple", tuple(map(_kind, found)), tuple(getattr(found, "fields", ()))


_KINDS = {"int": numba.types.int64, "float": numba.types.float64, "bool": numba.types.boolean}


def _result(function: Any, arguments: tuple[Any, ...]) -> Any:
    """The Numba type that a function gives for arguments of some Numba types."""
    try:
        function.compile(arguments)
    except numba.core.errors.NumbaError as error:
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise TypeError(
            next((line for line in said if not line.startswith("Failed in")), "it does not compile")
        ) from error
    return function.overloads[arguments].signature.return_type


def _kind(found: Any) -> str:
    if isinstance(found, numba.types.Boolean):
        return "bool"
    if isinstance(found, numba.types.Integer):
        return "int"
    if isinstance(found, numba.types.Float):
        return "float"
    return str(found)


def _module(source: str) -> Any:
    """A module with this source, in a file of the cache: Numba keeps compiled code by file."""
    name = "condition_" + hashlib.sha256(source.encode()).hexdigest()[:32]
    folder = Path(CACHE_DIRECTORY) / CONDITIONS
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.py"
    if not path.exists():
        with replaced(path) as draft:
            draft.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where Numba looks it up
    spec.loader.exec_module(module)
    return module
