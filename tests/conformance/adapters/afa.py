"""The AFA operator: automata, and queries as automata. It answers at once, and takes back what was wrong."""

from __future__ import annotations

import math
from typing import Any

import stretto
from stretto.automata.ceql_afa import ceql_afa
from stretto.automata.sase_afa import sase_afa
from stretto.errors import StrettoError
from tests.conformance.adapters import cut, plain, remaining
from tests.conformance.vectors import Row, Vector

REFUSED = "no automaton says it"
SKIPS = {REFUSED: 228}


def why_not(vector: Vector) -> str:
    if vector.language == "eql":
        return REFUSED
    lowered = {"sase": sase_afa, "ceql": ceql_afa}.get(vector.language)
    if lowered is not None:
        try:
            lowered(stretto.compile(vector.query, vector.events.schema, time="t").bound)
        except StrettoError:
            return REFUSED
    return ""


def found(vector: Vector) -> list[Row]:
    if vector.language == "afa":
        kept, left_out = (_remains(vector, ignore=ignore) for ignore in (True, False))
        assert sorted(kept) == sorted(left_out), vector.name
        return kept
    return _remains(vector, speculation=math.inf)


def _remains(vector: Vector, **options: Any) -> list[Row]:
    query = vector.automaton if vector.language == "afa" else vector.query
    signed = vector.signed or vector.language == "afa"
    table = vector.table if signed else vector.events

    def make() -> Any:
        sign = "sign" if signed else None
        return stretto.Matcher(query, table.schema, time="t", sign=sign, capacity=1, **options)

    if vector.changes is not None:
        matcher = make()
        for row, wanted in enumerate(vector.changes):
            got = matcher.push(table.slice(row, 1)).to_pylist()
            assert sorted((one["sign"], *plain(one)) for one in got) == wanted, f"{vector.name}, event {row}"
    return remaining(cut(make, table, vector.name))
