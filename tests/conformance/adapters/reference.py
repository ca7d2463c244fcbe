"""The definitions, by brute force."""

from __future__ import annotations

from tests.conformance.adapters import in_sequence
from tests.conformance.vectors import Row, Vector
from tests.reference.afa import Event, outputs
from tests.reference.ceql import evaluate
from tests.reference.eql import evaluate_eql
from tests.reference.moving import with_moving
from tests.reference.sase import evaluate_sase

SKIPS: dict[str, int] = {}


def why_not(vector: Vector) -> str:
    return ""


def found(vector: Vector) -> list[Row]:
    table, arrived = in_sequence(vector)
    if vector.language == "afa":
        window = vector.query.get("window")
        events = [
            Event(row["n"], (), row["t"], {"type": row["type"], "v": row["v"]}, row["n"], window and row["t"] + window)
            for row in table.to_pylist()
        ]
        return [(one.first, one.last, one.register) for one in outputs(vector.automaton.frozen, events)]
    if vector.language == "eql":
        found = evaluate_eql(vector.bound, table)
        return [(arrived[m.start], arrived[m.end], tuple(arrived[one] for one in m.positions)) for m in found]
    table = with_moving(vector.bound, table)
    matches = (evaluate if vector.language == "ceql" else evaluate_sase)(vector.bound, table)
    return [(arrived[m.start], arrived[m.end], tuple(sorted(arrived[one] for one in m.positions))) for m in matches]
