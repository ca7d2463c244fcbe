"""What the arguments of public calls may be: one place checks them, by the annotations that the calls have anyway.

``@check_arguments`` above a function, or above a class for its constructor and its public methods, reads each parameter's annotation
once. An argument that is not of it is an :class:`~stretto.errors.OptionError`::

    match(time=5): expected a string (the name of a column) or None, and got an int

Annotations that say nothing (``Any``), and times, which depend on a column, are the call's own to check. Signatures stay as they are
written.
"""

from __future__ import annotations

import ast
import inspect
import numbers
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from inspect import formatannotation
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from stretto.array_types import INT64
from stretto.errors import OptionError, nearest

T = TypeVar("T", bound=Callable[..., Any])

#: Parameters that name columns, for words and hints.
_COLUMNS = {
    *(
        "type",
        "time",
        "sequence",
        "stream",
        "sign",
        "until",
        "numbered",
        "timer",
        "event_id",
        "by",
        "vs",
        "ve",
        "ve_new",
    ),
    *("key", "label", "partition_by", "payload", "shown"),
}

#: What names of the package's own annotations stand for.
_ALIASES = {"On": "str | Sequence[str] | Mapping[str, str]", "Number": "int | float", "S": "Relation"}

#: Parameters with a reader of their own, which says more: how much may be listed, and what a call on Spark is about.
_READ = frozenset({"budget", "df"})


class _Kind(NamedTuple):
    """One kind of value that an annotation names."""

    words: str
    has: Callable[[Any], bool]  #: whether a value is of it


class _Parameter(NamedTuple):
    """What a parameter takes."""

    name: str
    types: frozenset[type]  #: of each of these every value is right
    kinds: tuple[_Kind, ...]


@overload
def check_arguments(call: T, /) -> T: ...
@overload
def check_arguments(*, like: Callable[..., Any] | None = None, name: str | None = None) -> Callable[[T], T]: ...
def check_arguments(call: Any = None, /, *, like: Callable[..., Any] | None = None, name: str | None = None) -> Any:
    """Check the arguments of a function, or of a class's constructor and its public methods, against their annotations.

    Parameters
    ----------
    call
        The function or the class, which is given back as it is.
    like
        The call whose keywords the function passes on with ``**options``.
    name
        What users call the function; ``None``: its own name.

    Examples
    --------
    >>> @check_arguments
    ... def turn(angle: float, around: str | None = None) -> None: ...
    >>> turn("left")
    Traceback (most recent call last):
    stretto.errors.OptionError: turn(angle='left'): expected a number, and got a str
    """
    if call is None:
        return lambda one: _checked(one, name or one.__name__, like)
    if not inspect.isclass(call):
        return _checked(call, call.__name__, None)
    for own, member in list(vars(call).items()):
        told = f"{call.__name__}.{own}"
        if own == "__init__":
            setattr(call, own, _checked(member, call.__name__, None))
        elif own.startswith("_"):
            continue
        elif isinstance(member, classmethod):
            setattr(call, own, classmethod(_checked(member.__func__, told, None)))
        elif inspect.isfunction(member):
            setattr(call, own, _checked(member, told, None, call))
    return call


def refuse(call: str, name: str, value: Any, expected: str, hint: str = "") -> OptionError:
    """The error of an argument that a call cannot take."""
    text = f"{call}({name}={_shown(value)}): expected {expected}, and got {_type_of(value)}"
    return OptionError(f"{text}; {hint}" if hint else text)


def unexpected(told: str, given: Iterable[str], known: Iterable[str]) -> TypeError:
    """Python's error of an argument that a call does not have, with the nearest name that it has."""
    name = min(given)
    best = nearest(name, known)
    return TypeError(f"{told} '{name}'" + (f"; did you mean '{best}'?" if best else ""))


def _checked(function: Any, told: str, like: Callable[..., Any] | None, of: type | None = None) -> Any:
    """A function that checks its arguments, and as a method of a class (``of``) that it is not called of the class itself."""
    parameters = list(inspect.signature(function).parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [_parameter(one) for one in parameters if one.kind in plain]
    several = next((_parameter(one) for one in parameters if one.kind is inspect.Parameter.VAR_POSITIONAL), None)
    named = {one.name: _parameter(one) for one in parameters if one.kind is not inspect.Parameter.POSITIONAL_ONLY}
    others = next((named.pop(one.name) for one in parameters if one.kind is inspect.Parameter.VAR_KEYWORD), None)
    if several is not None:
        named = {name: one for name, one in named.items() if one is not several}
    known = {one.name for one in parameters} if all(one.kind is not one.VAR_KEYWORD for one in parameters) else None
    if like is not None:
        shared = inspect.signature(like).parameters.values()
        named = {one.name: _parameter(one) for one in shared if one.kind is inspect.Parameter.KEYWORD_ONLY} | named
    if not any((*positional, several, *named.values(), others)) and (of is None or len(positional) < 2):
        return function
    count = len(positional)

    @wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        if known is not None and not known.issuperset(options):
            raise unexpected(f"{told}() got an unexpected keyword argument", options.keys() - known, known - {"self"})
        if of is not None and given and not isinstance(given[0], of):
            raise OptionError(f"{told}() is a method: call it of what {of.__name__}(…) gives, and not of the class")
        for parameter, value in zip(positional, given, strict=False):
            if parameter is not None and type(value) not in parameter.types:
                _check(told, parameter, value)
        if several is not None:
            for value in given[count:]:
                if type(value) not in several.types:
                    _check(told, several, value)
        for name, value in options.items():
            parameter = named.get(name, others)
            if parameter is not None and type(value) not in parameter.types:
                _check(told, parameter, value, name)
        return function(*given, **options)

    return call


def _check(told: str, parameter: _Parameter, value: Any, name: str | None = None) -> None:
    """Raise an :class:`OptionError` for a value of none of the kinds."""
    if any(kind.has(value) for kind in parameter.kinds):
        return
    name = parameter.name if name is None else name
    words = [kind.words for kind in parameter.kinds if kind.words]
    if "a number" in words and "an integer" in words:
        words.remove("an integer")
    hint = ""
    if name in _COLUMNS and any("string" in one for one in words):
        words = [f"{one} (the name of a column)" if one == "a string" else one for one in words]
        column = getattr(value, "name", None)
        if isinstance(column, str):
            hint = f"give the column by its name, {name}={column!r}"
        elif hasattr(value, "dtype") or hasattr(value, "alias"):
            hint = f"give the column by its name, {name}='…'"
    elif isinstance(value, numbers.Integral) and "an integer" in words and not isinstance(value, bool):
        hint = "it does not fit into 64 bits"
    elif _is_a(value, "AFA") or _is_a(value, "Afa"):
        hint = "an AFA is no query: give it as it is to stretto.match(afa, events, time='…'), iter_matches or Matcher"
    raise refuse(told, name, value, " or ".join(filter(None, (", ".join(words[:-1]), words[-1]))), hint)


def _parameter(given: inspect.Parameter) -> _Parameter | None:
    """What a parameter takes; ``None``: anything."""
    annotation = given.annotation
    if annotation is inspect.Parameter.empty or given.name in _READ:
        return None
    kinds = _kinds(
        ast.parse(annotation if isinstance(annotation, str) else formatannotation(annotation), mode="eval").body
    )
    if kinds is None:
        return None
    types = {own for kind in kinds for own in _PLAIN.get(kind.words, ())}
    return _Parameter(given.name, frozenset(types), tuple(kinds))


def _kinds(node: ast.expr) -> list[_Kind] | None:
    """The kinds that an annotation names; ``None``: it says nothing."""
    if isinstance(node, ast.BinOp):
        left, right = _kinds(node.left), _kinds(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Constant) and node.value is None:
        return [_KINDS["None"]]
    if isinstance(node, ast.Subscript):
        kind = _container(node)
        return None if kind is None else [kind]
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if name in _KINDS:
        return [_KINDS[name]]
    if name in _ALIASES:
        return _kinds(ast.parse(_ALIASES[name], mode="eval").body)
    return [_Kind(_CLASSES[name], lambda value: _is_a(value, name))] if name in _CLASSES else None


def _container(node: ast.Subscript) -> _Kind | None:
    """A kind of many values; ``None``: it says nothing that could be looked at."""
    outer = node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id  # type: ignore[attr-defined]
    inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if outer == "Callable":
        return _KINDS["Callable"]
    if outer in ("Mapping", "dict"):
        keys, values = (_kinds(one) for one in inner)
        return _Kind(
            f"a dict of {_plural(values)} by {'name' if keys else 'value'}",
            lambda given: (
                isinstance(given, Mapping) and all(_has(keys, one) for one in given) and _all(values, given.values())
            ),
        )
    if outer == "tuple" and not any(isinstance(one, ast.Constant) for one in inner):
        return _Kind(
            f"a tuple of {len(inner)} values",
            lambda given: isinstance(given, tuple | list) and len(given) == len(inner),
        )
    if outer not in ("Iterable", "Sequence", "list", "tuple", "frozenset"):
        return None
    kinds = _kinds(inner[0])
    wanted: Any = Iterable if outer == "Iterable" else (list, tuple, set, frozenset, dict, Collection)
    return _Kind(
        f"a list of {_plural(kinds)}",
        lambda given: (
            isinstance(given, wanted)
            and not isinstance(given, str | bytes | Mapping | np.generic)
            and not hasattr(given, "dtype")
            and (not isinstance(given, Collection) or _all(kinds, given))
        ),
    )


def _plural(kinds: list[_Kind] | None) -> str:
    if kinds is None:
        return "values"
    return " or ".join(_PLURALS.get(kind.words, kind.words) for kind in kinds if kind.words)


def _has(kinds: list[_Kind] | None, value: Any) -> bool:
    return kinds is None or any(kind.has(value) for kind in kinds)


def _all(kinds: list[_Kind] | None, values: Iterable[Any]) -> bool:
    return kinds is None or all(_has(kinds, value) for value in values)


def _is_a(value: Any, name: str) -> bool:
    """Whether a value is of a class of this name: of this package, or where it has none, of PySpark."""
    return any(
        one.__name__ == name and one.__module__.partition(".")[0] in ("stretto", "pyspark", "pyarrow")
        for one in type(value).__mro__
    )


def _is_integer(value: Any) -> bool:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    return whole and INT64[0] <= int(value) <= INT64[-1]


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_) and value == value


def _shown(value: Any) -> str:
    """A value in a few letters of one line."""
    try:
        text = " ".join(_SHORT.repr(value).split())
    except Exception:
        text = object.__repr__(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _type_of(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


_LONGEST = 60
_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = _LONGEST

_KINDS = {
    "str": _Kind("a string", lambda value: isinstance(value, str)),
    "bool": _Kind("True or False", lambda value: isinstance(value, bool | np.bool_)),
    "int": _Kind("an integer", _is_integer),
    "float": _Kind("a number", _is_number),
    "None": _Kind("None", lambda value: value is None),
    "bytes": _Kind("bytes", lambda value: isinstance(value, bytes | bytearray)),
    "Path": _Kind("a path", lambda value: isinstance(value, os.PathLike)),
    "Callable": _Kind("a function", callable),
    "DuckDBPyConnection": _Kind(
        "a DuckDB connection", lambda value: hasattr(value, "execute") and hasattr(value, "sql")
    ),
    "Mapping": _Kind("a dict", lambda value: isinstance(value, Mapping)),
}

#: The exact types of which every value is of a kind.
_PLAIN: dict[str, tuple[type, ...]] = {
    "a string": (str,),
    "True or False": (bool,),
    "None": (type(None),),
    "bytes": (bytes,),
    "a dict": (dict,),
}

_PLURALS = {
    "a string": "strings",
    "an integer": "integers",
    "a number": "numbers",
    "a path": "paths",
    "a function": "functions",
    "a DataFrame of Spark": "DataFrames of Spark",
    "a stream": "streams",
    "an Arrow type": "Arrow types",
    "a compiled query": "compiled queries",
    "an AFA": "AFAs",
    "a stretto.Change": "stretto.Change objects",
}

#: Classes by what people call them; nothing: those that calls take from other files of the package. Any other name says nothing.
_CLASSES = {
    "DataFrame": "a DataFrame of Spark",
    "Table": "an Arrow table",
    "SparkSession": "a SparkSession",
    "StructType": "a schema of Spark",
    "StreamingQuery": "a query that runs (StreamingQuery)",
    "StreamingQueryListener": "what watch() gave",
    "DataType": "an Arrow type",
    "Relation": "a stream",
    "Stream": "a stream",
    "Schema": "a schema",
    "AFA": "an AFA",
    "Query": "a compiled query",
    "SqlQuery": "a statement of compile_sql",
    "Change": "a stretto.Change",
    "Afa": "",
    "Meter": "",
}
