"""What plans as JSON text say by themselves: columns, values, conditions."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from stretto.column_types import type_named
from stretto.dataflow.node import Node, Pairs, Row
from stretto.errors import OptionError, StrettoError
from stretto.languages.relational import read_condition, read_value
from stretto.query import predicate as p

_KINDS = {str(kind): kind for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.date32(), pa.date64())}


def columns(row: Row) -> dict[str, str]:
    """The columns of a payload."""
    return {name: str(kind) for name, kind in row.items()}


def read_columns(written: Mapping[str, str]) -> dict[str, pa.DataType]:
    """What :func:`columns` wrote."""
    return {name: _kind(text) for name, text in written.items()}


def _kind(text: str) -> pa.DataType:
    """The Arrow type of a name; those that a payload can have."""
    if text in _KINDS:
        return _KINDS[text]
    kind = type_named(text)
    if not pa.types.is_timestamp(kind):
        raise ValueError(f"'{text}' is no type of a payload")
    return kind


def plain(value: Any) -> Any:
    """A constant as JSON has it; what JSON lacks is an object that names its kind."""
    match value:
        case float() if not math.isfinite(value):
            return {"float": str(value)}
        case dt.datetime() | dt.date():
            return {"time": value.isoformat()}
        case bool() | int() | float() | str():
            return value
    raise OptionError(f"the plan has the constant {value!r}, which JSON cannot say")


def read_plain(written: Any) -> Any:
    """What :func:`plain` wrote."""
    match written:
        case {"float": text}:
            return float(text)
        case {"time": text}:
            return dt.datetime.fromisoformat(text) if "T" in text else dt.date.fromisoformat(text)
    return written


def written_operand(value: p.Operand, node: Node, row: Row) -> Any:
    """A computed value as text; a constant as an object, because as a text it would be a column."""
    return {"constant": plain(value.value)} if isinstance(value, p.Constant) else written_text(value, node, row)


def read_operand(written: Any, row: Row) -> p.Operand:
    """What :func:`written_operand` wrote."""
    return p.Constant(read_plain(written["constant"])) if isinstance(written, dict) else read_value(written, row)


def written_text(expression: p.Expression, node: Node, row: Row) -> str:
    """An expression as text that means the same when it is read."""
    text = str(expression)
    read: Callable[[str, Row], p.Expression] = read_value if isinstance(expression, p.Operand) else read_condition
    try:
        same = str(read(text, row)) == text
    except StrettoError as error:
        raise OptionError(f"{node.label}: this does not travel, as it cannot be read again: {error}") from error
    if not same:
        raise OptionError(f"{node.label}: this does not travel, as its text has another meaning: {text}")
    return text


def read_pairs(written: Iterable[Iterable[str]], left: Row, right: Row) -> Pairs:
    """The keys of two streams, of which JSON has the names."""
    pairs = tuple((mine, its) for mine, its in written)
    for mine, its in pairs:
        if left[mine] != right[its]:
            raise ValueError(f"the keys '{mine}' and '{its}' have other types")
    return pairs
