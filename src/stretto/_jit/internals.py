"""How Numba compiles kernels, keeps their code and calls them here: the one module that uses what Numba does not promise.

It is tested with the oldest and the newest Numba that ``pyproject.toml`` allows. Each part says what it does otherwise than Numba,
and why.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import caching, ccallback, cgutils, codegen, compiler, config, dispatcher
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.extending import _Intrinsic
from numba.np import arrayobj

from stretto._jit import background, bundle
from stretto._jit.directory import cache_directory

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("stretto")

CACHE_DIRECTORY = cache_directory()  #: where compiled kernels are kept; empty when nowhere is writable

#: Whether a kernel that is not compiled yet runs as Python, while another process compiles it.
TIERED = (
    bool(CACHE_DIRECTORY or bundle.there()) and not config.DISABLE_JIT and os.environ.get("STRETTO_COMPILE") != "now"
)


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Where the compiled code of a kernel lies: by module and line.

    The directory's name already tells the package's sources; a kernel outside the package is known by its own file as well.
    """

    def __init__(self, function: Callable[..., Any], path: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._module = function.__module__
        self._path = "" if _of_package(function) else path

    def get_cache_path(self) -> str:
        return str(Path(CACHE_DIRECTORY) / self._module)

    def get_source_stamp(self) -> str:
        return hashlib.sha256(Path(self._path).read_bytes()).hexdigest() if self._path else ""

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> _Locator:
        return cls(function, path)


def _of_package(function: Callable[..., Any]) -> bool:
    return function.__module__.startswith("stretto.")


class _Stored(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)

    def reduce(self, compiled: Any) -> Any:
        """What is kept of a compiled kernel: the machine's code, and neither LLVM's, twice as large, nor the types of its variables.

        A kernel that is compiled later and calls this one calls its code, which lies in the same process.
        """
        library, description = compiled.library, compiled.fndesc
        library._ensure_finalized()
        description.typemap = description.calltypes = None
        code = (
            library.name,
            "object",
            (library._get_compiled_object(), _stub(library.codegen, description.llvm_cpython_wrapper_name)),
        )
        environments = tuple(compiled._find_referenced_environments())
        kind = compiled.signature, compiled.objectmode, compiled.lifted
        return code, description, compiled.environment, *kind, "", compiled.reload_init, environments


def _stub(generator: Any, name: str) -> bytes:
    """LLVM's code of a module that has a function of this name, by which Python calls a kernel, and nothing that others call."""
    empty = str(generator._create_empty_module("stub"))
    stub = llvm.parse_assembly(f'{empty}\ndefine linkonce_odr void @"{name}"() {{\n  ret void\n}}\n')
    code: bytes = stub.as_bitcode()
    return code


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    """Compiled code of kernels, that does not depend on where the package lies.

    What came with the package is taken before what this machine's user has compiled.
    """

    _impl_class = _Stored

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code of a kernel for arguments of some types, if there is any."""
        # Numba's own refreshes the context, which is for what compiles, and takes longer than all else that is loaded.
        key = self._index_key(sig, target_context.codegen())
        kept = bundle.load(self._py_func.__module__, self._impl.filename_base, key)
        if kept is None and CACHE_DIRECTORY:
            with self._guard_against_spurious_io_errors():
                try:
                    kept = self._cache_file.load(key)
                except bundle.TORN:
                    self.flush()  # the kernel is compiled and kept anew
        return None if kept is None else self._impl.rebuild(target_context, kept)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code of a kernel, if there is a place for it."""
        if CACHE_DIRECTORY:
            super().save_overload(sig, data)


class _ConditionLocator(caching._CacheLocator):  # type: ignore[misc]
    """Where the compiled code of a :class:`Condition` lies: beside its source, whose file is named by its text."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def get_cache_path(self) -> str:
        return str(self._path.parent)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return ""

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> _ConditionLocator:
        return cls(path)


class _StoredCondition(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_ConditionLocator,)


class _ConditionCache(caching.FunctionCache):  # type: ignore[misc]
    """Compiled code of conditions, which is the same on machines that have the cache elsewhere, or got the files later."""

    _impl_class = _StoredCondition


class _NotYetError(Exception):
    """A kernel is not compiled yet."""


class _Thread(threading.local):
    """What this thread is doing."""

    interprets = False  #: a kernel runs as Python, and so do those that it calls
    asks = False  #: a kernel is looked for, but not compiled


_THREAD = _Thread()


class _Interpreting:
    """How many threads run a kernel as Python. While none does, a call need not ask."""

    threads = 0
    lock = threading.Lock()


class _Compiler(dispatcher._FunctionCompiler):  # type: ignore[misc, name-defined]
    """What Numba asks to compile a kernel whose code it did not find on disk."""

    def compile(self, args: Any, return_type: Any) -> Any:
        if _THREAD.asks:
            raise _NotYetError
        if not self._is_part:
            _tell()
        return super().compile(args, return_type)

    @property
    def _is_part(self) -> bool:
        """Whether the code is for other kernels alone."""
        return bool(self.targetoptions["no_cpython_wrapper"])

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        with _indexing(self.py_func.__module__):
            return self._compiled(args, return_type)

    def _compiled(self, args: Any, return_type: Any) -> Any:
        if not self._is_part:
            return super()._compile_core(args, return_type)
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        context = self.targetdescr.target_context
        library = _Part(context.codegen(), self.py_func.__qualname__)
        return compiler.compile_extra(
            self.targetdescr.typing_context,
            context,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=library,
            pipeline_class=self.pipeline_class,
        )


#: Packages whose kernels never index from an array's end.
FORWARD = ("stretto.engines.tecs", "stretto.engines.totals", "stretto.columns")


@contextlib.contextmanager
def _indexing(module: str) -> Iterator[None]:
    """Compile a kernel of a module: in :data:`FORWARD` packages, indices are taken as they are.

    To ask at each load and store whether an index is negative, and counts from the end, costs a tenth of a kernel. Numba has one
    function for that. It is replaced while the kernel is compiled, which nobody else does at the same time, and for code of the
    module alone: what the kernel calls of Numba may well index from an end.
    """
    with global_compiler_lock:
        before = arrayobj.fix_integer_index
        if module.startswith(FORWARD):
            mangled = "".join(f"{len(name)}{name}" for name in module.split("."))

            def index(context: Any, builder: Any, kind: Any, number: Any, size: Any) -> Any:
                if mangled in builder.function.name:
                    return context.cast(builder, number, kind, numba.types.intp)
                return _any_index(context, builder, kind, number, size)

            arrayobj.fix_integer_index = index
        else:
            arrayobj.fix_integer_index = _any_index
        try:
            yield
        finally:
            arrayobj.fix_integer_index = before


_any_index = arrayobj.fix_integer_index


class _Part(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that becomes part of kernels. It is optimized, and made into the machine's, in those kernels alone.

    Numba does both for each function by itself as well: code of helpers in helpers is optimized once a level, which took half of
    the time that kernels take to compile.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return _NoEnvironment


class _NoEnvironment:
    """What takes the environment of a part of a kernel, which is for functions that make Python objects."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        pass


@lru_cache(maxsize=1)
def _tell() -> None:
    """Say, once in a process, why it takes so long."""
    log.warning(
        "stretto compiles kernels for this machine, once: seconds for a plain query, up to a minute for all that an engine does"
    )


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel that runs as Python until it has been compiled, in another process."""

    python: Callable[..., Any]  #: what it is where it runs as Python
    _compiler: Any
    _there: bool  #: whether compiled code has been loaded, or nothing else will do

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self._there = not TIERED or not _of_package(function)  # those are never compiled elsewhere
        given = self._compiler
        self._compiler = _Compiler(function, given.targetdescr, given.targetoptions, given.locals, given.pipeline_class)

    def enable_caching(self) -> None:
        self._cache = _Cache(self.py_func)

    @cached_property
    def _part(self) -> Any:
        """What other kernels call: they hold the code of a kernel that they call, so that each can be kept by itself."""
        return _dispatcher(_Inlined, self.py_func, self.python)

    @property
    def _numba_type_(self) -> Any:
        return numba.types.Dispatcher(self._part)  # which it does not hold

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a kernel calls, for its types of arguments: a constant is a number like any other.

        Numba compiles a function anew where a constant is handed over, which took a third of the time of the largest kernels.
        """
        unliteral = numba.types.unliteral
        return super().get_call_template(tuple(map(unliteral, args)), {name: unliteral(kws[name]) for name in kws})

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel; a :class:`Condition` is its first argument."""
        if self._there and not _Interpreting.threads:
            if arguments and arguments[0].__class__ is Condition:
                return _run(self, arguments[0].address, *arguments[1:])
            return _run(self, *arguments)
        if _THREAD.interprets:
            return self.python(*arguments)
        words = tuple(0 if one.__class__ is Condition else one for one in arguments)
        if not self._there and not self._load(words):
            return self._as_python(arguments)
        return _run(self, *(one.address if one.__class__ is Condition else one for one in arguments))

    def _load(self, arguments: tuple[Any, ...]) -> bool:
        """Load compiled code for such arguments; it may not be there yet."""
        types = tuple(map(self.typeof_pyval, arguments))
        self._there = (
            self._found(types) or not CACHE_DIRECTORY or background.compiled(CACHE_DIRECTORY, self.py_func.__module__)
        )
        return self._there

    def _found(self, types: tuple[Any, ...]) -> bool:
        """Load compiled code, if it lies with the package or in the cache."""
        _THREAD.asks = True
        try:
            self.compile(types)
        except _NotYetError:
            return False
        finally:
            _THREAD.asks = False
        return True

    def _as_python(self, arguments: tuple[Any, ...]) -> Any:
        with _Interpreting.lock:
            _Interpreting.threads += 1
        _THREAD.interprets = True
        try:
            with np.errstate(all="ignore"):  # numbers wrap around, as they do in compiled code
                return self.python(*arguments)
        finally:
            _THREAD.interprets = False
            with _Interpreting.lock:
                _Interpreting.threads -= 1


class _Inlined(_Kernel):
    """A kernel's helper, which has no code of its own: where Python calls it, a kernel is made of it."""

    @property
    def _part(self) -> Any:
        return self

    @cached_property
    def _kernel(self) -> Any:
        return _kernel_of(self.py_func, self.python)

    def __call__(self, *arguments: Any) -> Any:
        return self._kernel(*arguments)


#: How a compiled kernel is called.
_run = CPUDispatcher.__call__


def jit(function: F) -> F:
    """Compile a kernel: no Python objects, cached on disk, wrap-around integers, IEEE division."""
    if config.DISABLE_JIT:
        return function
    return _kernel_of(function, function)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Do what :func:`jit` does, for a kernel's helper: it becomes part of its caller.

    A call that is not inlined counts references of every array that it hands over, which costs more than most helpers.
    """
    return inlined_unless_interpreted(function)(function)


def inlined_unless_interpreted(python: Callable[..., Any]) -> Callable[[F], F]:
    """Do what :func:`inlined` does, for a helper that has other values in a kernel that runs as Python: there it is ``python``."""
    if config.DISABLE_JIT:
        return lambda function: python  # type: ignore[return-value]
    return lambda function: _dispatcher(_Inlined, function, python, forceinline=True)


def _kernel_of(function: Callable[..., Any], python: Callable[..., Any]) -> Any:
    kernel = _dispatcher(_Kernel, function, python)
    if CACHE_DIRECTORY or bundle.there():
        kernel.enable_caching()
    return kernel


def _dispatcher(
    kind: type[_Kernel], function: Callable[..., Any], python: Callable[..., Any], *, forceinline: bool = False
) -> Any:
    options = {"nopython": True, "error_model": "numpy", "nogil": True, "forceinline": forceinline, "_nrt": False}
    # Wrappers, which unpack all arrays, are for calls from C and from Python.
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": kind is _Inlined}
    kernel = kind(function, targetoptions=options)
    kernel.python = python
    return kernel


class Condition:
    """A function of :func:`generated`: compiled when its address is asked for, and Python for a kernel that runs as Python."""

    def __init__(self, function: Callable[..., Any], signature: Any, *, keeps: bool) -> None:
        self._function, self._signature, self._keeps = function, signature, keeps

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """Numba's function, which has an address."""
        signature = self._signature.args, self._signature.return_type
        made: Any = ccallback.CFunc(self._function, signature, {}, {"nopython": True, "error_model": "numpy"})
        if self._keeps:
            made._cache = _ConditionCache(self._function)
        made.compile()
        return made

    @property
    def files(self) -> list[Path]:
        """Its source and, once it is :attr:`compiled`, its code; none if it is kept for this process only."""
        source = Path(self._function.__code__.co_filename)
        return sorted(source.parent.glob(f"{source.stem}.*")) if self._keeps else []

    @cached_property
    def address(self) -> int:
        """Where the compiled function begins."""
        return int(self.compiled.address)


def signature_of(numbers: int, matrices: int) -> Any:
    """How a function of :func:`generated` is called."""
    int64 = numba.types.int64
    return int64(*[int64] * numbers, *[numba.types.Array(int64, 2, "C", aligned=True)] * matrices)


def called(*, numbers: int, matrices: int) -> Any:
    """What a kernel calls first, with a function of :func:`generated` that it was given: it makes of it what can be called.

    A compiled kernel is given the function's address. It could be given the function itself: Numba then asks Python for its
    address, in the midst of unpacking arguments, and an exception that comes there from a signal (^C) is lost: what the caller
    sees is a TypeError about Numba's own functions.
    """
    kind = numba.types.FunctionType(signature_of(numbers, matrices))

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.c_addr = builder.inttoptr(arguments[0], made.c_addr.type)
        made.py_addr = cgutils.get_null_value(made.py_addr.type)
        made.jit_addr = cgutils.get_null_value(made.jit_addr.type)
        return made._getvalue()

    def typed(context: Any, address: Any) -> Any:
        return kind(numba.types.int64), build

    return intrinsic(typed, lambda function: function)


class _Both(_Intrinsic):  # type: ignore[misc]
    """An intrinsic that means something in Python, too."""

    python: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.python(*arguments)


def intrinsic(typed: Callable[..., Any], python: Callable[..., Any]) -> Any:
    """A function that compiled code inlines as LLVM's instructions.

    Parameters
    ----------
    typed
        As Numba's ``intrinsic`` takes it: from a typing context and types to a signature and what generates the instructions.
    python
        The same for a kernel that runs as Python.
    """
    if config.DISABLE_JIT:
        return python
    made = _Both(typed.__name__, typed)
    made.python = python
    made._register()
    return made


def _prefetched(context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        word = cgutils.int32_t
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [place, word(0), word(3), word(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64), generate


#: Have an element of an array loaded into the caches, and do not wait for it.
prefetch = intrinsic(_prefetched, lambda array, index: None)


def _word_at(context: Any, address: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(words, [arguments[1]]))

    return numba.types.int64(numba.types.int64, numba.types.int64), generate


#: A word of an array of int64 of which only the address is known. To hand over an address costs a ninth of what an array costs.
word_at = intrinsic(_word_at, lambda address, at: ctypes.c_int64.from_address(int(address) + 8 * at).value)
