"""The options of a matcher: which there are, and whose they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from stretto.errors import OptionError
from stretto.languages.afa.builder import AFA, is_afa
from stretto.languages.clauses import is_clause
from stretto.matching.compiled import Query, compile_query
from stretto.matching.executors.base import Executor, Reading
from stretto.matching.reorder import check_span
from stretto.query.afa import Afa

#: Options of queries alone, which say nothing about an AFA.
OF_QUERIES = (
    "type",
    "stream",
    "time_unit",
    "output",
    "positions",
    "valuations",
    "language",
    "sets",
    "at_end",
    "timeouts",
    "warn_after",
)

#: Options of automata alone.
OF_AUTOMATA = ("until", "numbered", "bag", "provenance", "ordered", "dynamic", "timer", "ignore")

#: Options of clauses of MATCH_RECOGNIZE, whose text says the others.
OF_CLAUSES = ("time_unit", "disorder", "late", "budget", "capacity")


def executor_for(query: str | Query | AFA | Afa, schema: Any, options: Mapping[str, Any]) -> Executor:
    """What runs a query, an automaton or a clause in a matcher, with the options that were said.

    Raises
    ------
    OptionError
        An option is for another kind of query, or does not go with another one.
    """
    given = dict(options)
    if is_afa(query):
        from stretto.matching.executors.retracting import RetractingExecutor

        refuse(given, OF_QUERIES, "queries in CEQL or SASE+, and this is an AFA")
        return RetractingExecutor(query.frozen, schema, **given)
    if is_clause(query, given.get("language")):
        from stretto.matching.executors.row_pattern import RowPatternExecutor

        given.pop("language", None)
        refuse(
            given,
            [name for name in given if name not in OF_CLAUSES],
            "queries in CEQL or SASE+ and AFAs, and this is a clause",
        )
        return RowPatternExecutor(str(query), schema, **given)
    refuse(given, OF_AUTOMATA, "AFAs, and this is a query")
    compiled = compile_query(query, language=given.pop("language", None))
    refuse(given, ("hold",), "AFAs, and this is a query")
    ahead = check_span(0 if given.get("speculation") is None else given["speculation"], "speculation")
    asks = compiled.parsed.asked is not None
    if ahead and asks:
        refuse(
            given,
            ("sign",),
            "queries that list matches: counts, sums and what is chosen of all of them have no retractions",
        )
    elif ahead:
        refuse(
            given,
            ("valuations", "sets", "timeouts", "warn_after"),
            "matches that are not taken back: leave out speculation=",
        )
    else:
        refuse(given, ("sign",), "streams with retractions: speculation=math.inf takes them")
    from stretto.matching.executors.in_order import InOrderExecutor

    reading = Reading(**{name: given.pop(name) for name in Reading._fields if name in given})
    if ahead and asks:
        from stretto.matching.executors.speculative_aggregates import SpeculativeExecutor

        return SpeculativeExecutor(compiled, schema, reading, **given)
    if ahead:
        from stretto.matching.executors.retracting import RetractingExecutor
        from stretto.matching.executors.speculative_aggregates import Lowering

        told: dict[str, Any] = {"time": reading.time, "sequence": reading.sequence, "sign": reading.sign}
        return RetractingExecutor(Lowering(compiled, schema, reading), **told, **given)
    if given.pop("speculation", None) is not None:
        given.setdefault("disorder", math.inf)
    return InOrderExecutor(compiled, schema, reading, **given)


def refuse(given: Mapping[str, Any], names: Iterable[str], whose: str) -> None:
    """Raise an :class:`OptionError` for the first option with one of some names."""
    for name in given:
        if name in names:
            raise OptionError(f"{name}={given[name]!r} is for {whose}")
