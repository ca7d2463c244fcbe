"""The functions that EQL has beside those of all languages, by the names that conditions have for them.

Where an argument is NULL the result is. ``folds`` says whether letters are equal to those of the other case.
"""

from __future__ import annotations

import ipaddress
import socket
from functools import lru_cache
from typing import Any

from stretto.query.sql_functions import SqlFunction


def _folded(folds: bool, *texts: str) -> tuple[str, ...]:
    return tuple(one.lower() for one in texts) if folds else texts


def _between(text: str, left: str, right: str, greedy: bool, folds: bool) -> str:
    """What stands between two texts: up to the first of the right one, or up to the last with ``greedy``; empty where one lacks."""
    own, first, last = _folded(folds, text, left, right)
    begin = own.find(first)
    if begin < 0:
        return ""
    begin += len(first)
    end = own.rfind(last, begin) if greedy else own.find(last, begin)
    return "" if end < 0 else text[begin:end]


def _index_of(text: str, part: str, start: int, folds: bool) -> int | None:
    own, sought = _folded(folds, text, part)
    found = own.find(sought, max(start, 0))
    return None if found < 0 else found


def _starts(text: str, part: str, folds: bool) -> bool:
    own, sought = _folded(folds, text, part)
    return own.startswith(sought)


def _ends(text: str, part: str, folds: bool) -> bool:
    own, sought = _folded(folds, text, part)
    return own.endswith(sought)


def _contains(text: str, part: str, folds: bool) -> bool:
    own, sought = _folded(folds, text, part)
    return sought in own


def _slice(text: str, start: int, end: int | None = None) -> str:
    return text[start:end]


def _string(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(text: str, base: int) -> float | None:
    try:
        return float(text) if base == 10 else float(int(text, base))
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=1024)
def _networks(texts: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
    """Versions, masks and bits of networks."""
    found = [ipaddress.ip_network(one) for one in texts]
    return tuple((one.version, int(one.netmask), int(one.network_address)) for one in found)


def _cidr_match(text: str, *networks: str) -> bool:
    version, family = (6, socket.AF_INET6) if ":" in text else (4, socket.AF_INET)
    try:
        own = int.from_bytes(socket.inet_pton(family, text), "big")
    except (OSError, ValueError):
        return False
    return any(version == other and own & mask == bits for other, mask, bits in _networks(networks))


_TEXT, _INT, _TRUTH = ("string",), ("int",), ("bool",)

EQL: dict[str, SqlFunction] = {
    "between": SqlFunction((*[_TEXT] * 3, _TRUTH, _TRUTH), "string", _between, "s, left, right, greedy, folds"),
    "cidrMatch": SqlFunction((_TEXT, _TEXT), "bool", _cidr_match, "s, network, …", more=True),
    "endsWith": SqlFunction((_TEXT, _TEXT, _TRUTH), "bool", _ends, "s, t, folds"),
    "indexOf": SqlFunction((_TEXT, _TEXT, _INT, _TRUTH), "int", _index_of, "s, t, start, folds"),
    "number": SqlFunction((_TEXT, _INT), "float", _number, "s, base"),
    "subString": SqlFunction((_TEXT, _INT, _INT), "string", _slice, "s, start, end", optional=1),
    "startsWith": SqlFunction((_TEXT, _TEXT, _TRUTH), "bool", _starts, "s, t, folds"),
    "string": SqlFunction((("int", "float", "decimal", "string", "bool"),), "string", _string, "x"),
    "stringContains": SqlFunction((_TEXT, _TEXT, _TRUTH), "bool", _contains, "s, t, folds"),
}
