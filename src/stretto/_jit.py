"""The only Numba decorator of the package, and the status codes that kernels return.

Kernels never raise and never grow arrays: they return ``(status, …)``, Python acts on it and calls again.

Compiled code is cached on disk in one directory for each version of stretto and mode (bounds-checked or not), because
Numba's own index notices neither: a helper that changed in another module, nor ``NUMBA_BOUNDSCHECK``. ``STRETTO_CACHE_DIR``
moves it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import platformdirs
from numba.core import cgutils, config, event
from numba.extending import intrinsic

__all__ = [
    "DONE",
    "FAULTED",
    "GROW_ACTIVE",
    "GROW_ARENA",
    "GROW_NODES",
    "GROW_OUTPUT",
    "GROW_STACK",
    "GROW_TABLE",
    "HANDED_OVER",
    "OUTPUT_FULL",
    "OVERFLOW",
    "PAUSED",
    "TRANSITION_MISSING",
    "called",
    "compiled_by_user",
    "generated",
    "handed",
    "inlined",
    "interprets",
    "jit",
    "result_kind",
    "result_of_tuples",
]

DONE = 0  #: all events of the call are processed
OUTPUT_FULL = 1  #: drain the output buffers, then call again
TRANSITION_MISSING = 2  #: determinize (state, class) = the two words returned, then call again
GROW_NODES = 3  #: the node store is full: collect or double, then call again
GROW_ARENA = 4  #: the store of partition records is full
GROW_ACTIVE = 5  #: the scratch for active states or union-lists is too small
GROW_STACK = 6  #: the enumeration stack or path is too small
GROW_OUTPUT = 7  #: one match does not fit into the empty output buffers
GROW_TABLE = 8  #: a hash table is too full
PAUSED = 11  #: much work was done: let Python see to signals, then call again
OVERFLOW = 9  #: an integer left 64 bits
FAULTED = 12  #: something that is refused: the registers say what and where
HANDED_OVER = 10  #: an event completes matches, which are taken as a set; then call again

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("stretto")


def _sources_digest() -> str:
    """A digest of every module that may hold kernels, so that a changed helper gets a new cache directory."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        text = path.read_bytes()
        if b"@jit" in text or b"@inlined" in text or path.name == "_jit.py":
            digest.update(path.name.encode())
            digest.update(text)
    return digest.hexdigest()[:12]


def _cache_directory() -> str:
    mode = "checked" if config.BOUNDSCHECK else "plain"
    leaf = Path("kernels") / f"{_sources_digest()}-numba{numba.__version__}-{mode}"
    chosen = os.environ.get("STRETTO_CACHE_DIR")
    root = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("stretto"))
    for candidate in (root, Path(tempfile.gettempdir()) / f"stretto-{os.getuid() if hasattr(os, 'getuid') else 0}"):
        try:
            (candidate / leaf).mkdir(parents=True, exist_ok=True)
            if os.access(candidate / leaf, os.W_OK):
                return str(candidate / leaf)
        except OSError:
            continue
    return ""


CACHE_DIRECTORY = _cache_directory()  #: where compiled kernels are kept; empty when nowhere is writable


def jit(function: F) -> F:
    """Compile a kernel: no Python objects, cached on disk, wrap-around integers, IEEE division."""
    return _compiled(function, forceinline=False)


def inlined(function: F) -> F:
    """As :func:`jit`, for a kernel's helper: it becomes part of its caller.

    A call that is not inlined counts references of every array that it hands over, which costs more than most helpers.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool) -> F:
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_DIRECTORY
    try:
        options = {
            "cache": bool(CACHE_DIRECTORY),
            "error_model": "numpy",
            "nogil": True,
            "forceinline": forceinline,
            "_nrt": False,
        }
        compiled: F = numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before
    return compiled


def generated(
    function: ast.FunctionDef,
    helpers: Mapping[str, Any],
    *,
    numbers: int,
    matrices: int,
    own: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a function that was made as a syntax tree, for kernels to call through its address.

    It takes int64 ``numbers`` and then C-contiguous int64 ``matrices``, and gives an int64. ``helpers`` are what its names
    stand for beside its parameters: ``{name: function}``. Compiled code is kept on disk by the text of the function, so that
    the next process with the same query only loads it; with functions of the user's ``own``, by name, it is not kept.
    """
    signature = _signature(numbers, matrices)
    modules = sorted({(value.__module__, name) for name, value in helpers.items()})
    imports: list[ast.stmt] = [ast.ImportFrom(module, [ast.alias(name)], 0) for module, name in modules]
    tree = ast.fix_missing_locations(ast.Module([*imports, function], []))
    if bool(CACHE_DIRECTORY) and not own and not config.DISABLE_JIT:
        return _kept(ast.unparse(tree) + "\n", function.name, signature)
    space: dict[str, Any] = dict(own or {})
    exec(compile(tree, "<condition>", "exec"), space)
    made: Callable[..., Any] = space[function.name]
    return made if config.DISABLE_JIT else _called_by_address(made, signature, keeps=False)


def _signature(numbers: int, matrices: int) -> Any:
    """How a function of :func:`generated` is called."""
    int64 = numba.types.int64
    return int64(*[int64] * numbers, *[numba.types.Array(int64, 2, "C", aligned=True)] * matrices)


def handed(function: Any) -> Any:
    """A function of :func:`generated` as a kernel takes it: its address.

    A kernel could be handed the function itself. Numba then asks Python for its address, in the midst of unpacking arguments, and
    an exception that comes there from a signal (^C) is lost: what the caller sees is a TypeError about Numba's own functions.
    """
    return function if config.DISABLE_JIT else function.address


def called(*, numbers: int, matrices: int) -> Any:
    """What a kernel calls first, with what :func:`handed` gave: it makes a function of it that can be called."""
    if config.DISABLE_JIT:
        return lambda function: function
    kind = numba.types.FunctionType(_signature(numbers, matrices))

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.c_addr = builder.inttoptr(arguments[0], made.c_addr.type)
        made.py_addr = cgutils.get_null_value(made.py_addr.type)
        made.jit_addr = cgutils.get_null_value(made.jit_addr.type)
        return made._getvalue()

    def typed(context: Any, address: Any) -> Any:
        return kind(numba.types.int64), build

    return intrinsic(typed)


@lru_cache(maxsize=256)
def _kept(text: str, name: str, signature: Any) -> Callable[..., Any]:
    """The compiled function of a text; loading it once more would take 10 ms, and workers run a plan for many buckets."""
    return _called_by_address(getattr(_module(text), name), signature, keeps=True)


def _called_by_address(function: Callable[..., Any], signature: Any, *, keeps: bool) -> Callable[..., Any]:
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_DIRECTORY
    try:
        compiled: Callable[..., Any] = numba.cfunc(signature, cache=keeps, nopython=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
    return compiled


def compiled_by_user(function: Callable[..., Any], *, raises: bool = False) -> Any:
    """A user's function, for Numba to compile when code calls it; ``raises``: as Python does, also where it divides by zero."""
    if config.DISABLE_JIT:
        return function
    return numba.njit(error_model="python" if raises else "numpy", nogil=True)(function)


def interprets() -> bool:
    """Whether Numba is switched off, so that kernels run as Python."""
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
    folder = Path(CACHE_DIRECTORY) / "conditions"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.py"
    if not path.exists():
        fresh = folder / f"{name}.{os.getpid()}"
        fresh.write_text(source, encoding="utf-8")
        fresh.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where Numba looks it up
    spec.loader.exec_module(module)
    return module


class _Teller(event.Listener):  # type: ignore[misc]
    """Says, once in a process, that a kernel is being compiled: not when it is loaded from disk."""

    def on_start(self, happens: Any) -> None:
        kernel = happens.data["dispatcher"]
        mine = kernel.py_func.__module__.startswith("stretto.") and not kernel.targetoptions.get("forceinline")
        if mine:
            event.unregister("numba:compile", self)
            log.warning(
                "stretto compiles kernels for this machine, once: about half a minute for an engine, some minutes for automata"
            )

    def on_end(self, happens: Any) -> None:
        pass


event.register("numba:compile", _Teller())
