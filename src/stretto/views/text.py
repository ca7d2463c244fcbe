"""Values as short text. What could steer a terminal, or is no character of XML, is written as an escape."""

from __future__ import annotations

import math
import unicodedata
from typing import Any


def clean(text: str) -> str:
    r"""Write what is not printable as an escape.

    >>> print(clean("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def lines(text: str) -> str:
    """Clean a text of several lines."""
    return "\n".join(map(clean, text.splitlines()))


def cut(text: str, most: int) -> str:
    """Cut a text to so many characters.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def ends(text: str, most: int) -> str:
    """Cut the middle out of a text that is longer than ``most`` characters: long names often begin alike.

    >>> ends("https://example.org/a/17", 12)
    'https…g/a/17'
    """
    return text if len(text) <= most else f"{text[: (most - 1) // 2]}…{text[-(most // 2) :]}"


def short(value: Any, most: int = 40) -> str:
    """Write a value in few characters; nothing for NULL.

    >>> short(0.1 + 0.2), short(None), short([1, 2]), short(b"ab")
    ('0.3', '', '1, 2', '6162')
    """
    if value is None:
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.10g}"
    if isinstance(value, bytes):
        return cut(value[:most].hex(), most)
    if isinstance(value, dict):
        return cut(" ".join(part for part in (short(one, most) for one in value.values()) if part), most)
    if isinstance(value, tuple):  # of a map
        return "=".join(short(one, most) for one in value)
    if isinstance(value, list):
        return listed([short(one, most) for one in value[:6]], len(value), ", ")
    return cut(clean(str(value)), most)


def listed(parts: list[str], count: int, between: str, most: int = 5) -> str:
    """Join parts; of ``count``, those behind the first few are counted.

    >>> listed(["a", "b", "c"], 9, " ", most=2)
    'a b … 7 more'
    """
    more = [f"… {count - most:,} more"] if count > most else []
    return between.join(parts[:most] + more)


def width(text: str, size: float = 11) -> float:
    """Give the width of a text in a picture, in pixels, rather too great than too small."""
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return size * (0.62 * len(text) + 0.45 * wide)
