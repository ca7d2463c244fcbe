"""The options of a matcher: which there are, whose they are, and what they were called before."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any

from stretto.errors import OptionError
from stretto.matching.lateness import renamed, tell_of
from stretto.matching.reorder import check_span

#: Options of queries alone, which say nothing about an AFA.
OF_QUERIES = ("type", "stream", "time_unit", "output", "positions", "valuations", "language", "sets")

#: Options of automata alone.
OF_AUTOMATA = ("until", "numbered", "bag", "provenance", "ordered", "dynamic", "timer", "ignore")

_HOLD = {"before": "events", "after": "results"}


def with_new_words(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the words of today.

    Raises
    ------
    OptionError
        An option is given by its old word and its new one.
    """
    found = dict(given)
    disorder = found.get("disorder")
    if isinstance(disorder, str) and disorder == "speculate":
        tell_of("speculate")
        found["disorder"] = None
        found["speculation"] = math.inf
    if "bound" in found:
        found["disorder"] = renamed("bound", found.pop("bound"), "disorder", disorder)
    if "cleanse" in found:
        old = found.pop("cleanse")
        if old not in _HOLD:
            raise OptionError(f"cleanse={old!r}: expected 'before' or 'after'")
        found["hold"] = renamed(f"cleanse={old}", _HOLD[old], "hold", found.get("hold"))
    if found.get("disorder", 0) is None:
        del found["disorder"]
    return found


def ahead_of(given: Mapping[str, Any]) -> int | float | dt.timedelta | None:
    """How far answers go ahead of what is certain, as far as that is said."""
    value = given.get("speculation")
    return None if value is None else check_span(value, "speculation")


def refuse_others(given: Mapping[str, Any], *, automaton: bool) -> None:
    """Raise an :class:`OptionError` for an option of queries given for an AFA, or the reverse."""
    if automaton:
        refuse(given, OF_QUERIES, "queries in CEQL or SASE+, and this is an AFA")
    else:
        refuse(given, OF_AUTOMATA, "AFAs, and this is a query")


def refuse(given: Mapping[str, Any], names: tuple[str, ...], whose: str) -> None:
    """Raise an :class:`OptionError` for the first option with one of some names."""
    for name in given:
        if name in names:
            raise OptionError(f"{name}={given[name]!r} is for {whose}")
