"""Types of columns as Spark's SQL writes them, read without Spark."""

from __future__ import annotations

import re

import pyarrow as pa

from stretto.errors import OptionError, suggestion

_PLAIN: dict[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
#: Spark's other names for them.
_ALIASES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float"}
_ALIASES |= {"timestamp_ltz": "timestamp", "dec": "decimal", "numeric": "decimal"}
_KNOWN = [*_PLAIN, "decimal(10, 2)", "array<…>", "map<…, …>", "struct<name: …>"]

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|\w+|[<>(),:])")


def column_type(text: str) -> pa.DataType:
    """The Arrow type of a Spark SQL type.

    Parameters
    ----------
    text
        Such as ``bigint``, ``timestamp``, ``decimal(10, 2)``, ``array<struct<a: int, b: string>>``.

    Raises
    ------
    OptionError
        It is none.

    >>> column_type("array<bigint>")
    ListType(list<element: int64>)
    """
    tokens = _tokens(text)
    found = _type(tokens, text)
    if tokens:
        raise OptionError(f"'{text}' is no type of a column: it goes on with '{tokens[0]}' after a whole type")
    return found


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise _wrong(text, text[at:].strip())
        tokens.append(found[1])
        at = found.end()
    return tokens


def _wrong(text: str, part: str) -> OptionError:
    of = "" if part == text else f" in '{text}'"
    hint = suggestion(part.lower(), [*_PLAIN, *_ALIASES])
    if hint is None or not hint.startswith("did"):
        hint = f"known types: {', '.join(_KNOWN)}"
    return OptionError(f"'{part}'{of} is no type of a column; {hint}")


def _type(tokens: list[str], text: str) -> pa.DataType:
    word = tokens.pop(0) if tokens else ""
    name = _ALIASES.get(word.lower(), word.lower())
    if name in _PLAIN:
        return _PLAIN[name]
    match name:
        case "decimal":
            return _decimal(tokens, text)
        case "array":
            _take(tokens, "<", text)
            item = _type(tokens, text)
            _take(tokens, ">", text)
            return pa.list_(pa.field("element", item))
        case "map":
            _take(tokens, "<", text)
            key = _type(tokens, text)
            _take(tokens, ",", text)
            value = _type(tokens, text)
            _take(tokens, ">", text)
            return pa.map_(key, value)
        case "struct":
            return _struct(tokens, text)
    raise _wrong(text, word or text)


def _take(tokens: list[str], wanted: str, text: str) -> None:
    if not tokens or tokens[0] != wanted:
        raise OptionError(f"'{text}' is no type of a column: expected '{wanted}'")
    tokens.pop(0)


def _decimal(tokens: list[str], text: str) -> pa.DataType:
    digits = [10, 0]
    if tokens and tokens[0] == "(":
        tokens.pop(0)
        for place in range(2):
            number = tokens.pop(0) if tokens else ""
            if not number.isascii() or not number.isdigit():
                raise OptionError(f"'{text}' is no type of a column: expected a number of digits")
            digits[place] = int(number)
            if place == 1 or not tokens or tokens[0] != ",":
                break
            tokens.pop(0)
        _take(tokens, ")", text)
    if not 0 <= digits[1] <= digits[0] <= 38 or digits[0] == 0:
        raise OptionError(f"'{text}': a decimal has 1 to 38 digits, and not more behind the point")
    return pa.decimal128(*digits)


def _struct(tokens: list[str], text: str) -> pa.DataType:
    _take(tokens, "<", text)
    fields = []
    while True:
        name = tokens.pop(0) if tokens else ""
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if tokens and tokens[0] == ":":
            tokens.pop(0)
        fields.append(pa.field(name, _type(tokens, text)))
        if not tokens or tokens[0] != ",":
            break
        tokens.pop(0)
    _take(tokens, ">", text)
    return pa.struct(fields)
