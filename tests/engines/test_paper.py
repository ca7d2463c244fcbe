"""The CORE paper's running example: figures 1 (Q1), 3, 4 and 6."""

from __future__ import annotations

import pyarrow as pa

import stretto
from stretto.engines.tecs.runner import Runner
from stretto.engines.tecs.structure import HEAD
from tests.engines.test_structure import Structure, check_invariants

Q1 = """SELECT * FROM Stock
WHERE SELL as msft; SELL as intel; SELL as amzn
FILTER msft[name="MSFT"] AND msft[price > 100]
   AND intel[name="INTC"]
   AND amzn[name="AMZN"] AND amzn[price < 2000]"""

#: A stream with the runs that the paper names: MSFT at 0 and 1, INTC at 2 and 5, AMZN at 4 and 6.
STREAM = pa.table(
    {
        "type": ["SELL", "SELL", "SELL", "SELL", "SELL", "SELL", "SELL"],
        "name": ["MSFT", "MSFT", "INTC", "AMZN", "AMZN", "INTC", "AMZN"],
        "price": [101.0, 102.0, 80.0, 2001.0, 1900.0, 81.0, 1920.0],
    }
)


def test_complex_events_of_figure_3() -> None:
    rows = stretto.match(Q1, STREAM).to_pylist()
    assert {(r["start"], r["end"], tuple(r["positions"])) for r in rows} == {
        (0, 4, (0, 2, 4)),
        (1, 4, (1, 2, 4)),
        (0, 6, (0, 2, 6)),
        (0, 6, (0, 5, 6)),
        (1, 6, (1, 2, 6)),
        (1, 6, (1, 5, 6)),
    }
    assert rows[0]["msft"] == [{"type": "SELL", "name": "MSFT", "price": 102.0}], "the latest start comes first"


def test_compact_set_of_figure_4() -> None:
    """After position 5: what waits for INTC, and what waits for AMZN, with the open complex events of example 4.2."""
    query = stretto.compile(Q1, STREAM.schema)
    runner = Runner(query.program(), labels=False)
    for batch in STREAM.slice(0, 6).to_batches(max_chunksize=1):
        list(runner.advance(batch))
    structure = Structure(runner)
    check_invariants(structure)
    held = sorted(sorted(open_ for node in nodes for open_ in structure.opened(node)) for nodes in structure.lists())
    assert held == [
        [(0, (0,)), (1, (1,))],
        [(0, (0, 2)), (0, (0, 5)), (1, (1, 2)), (1, (1, 5))],
    ]
    # Two bottoms with their marks, a union of them for each INTC with an output above, and what figure 4 shares it shares:
    # the node of position 2 stands once, though it is part of every match at 4 and 6.
    assert int(runner.state.registers[HEAD]) < 22
