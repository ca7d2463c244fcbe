"""Many events out of order in the AFA operator: they give what the same events give in order."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import stretto


def ticks(events: int, *, ignorable: float = 0.3, seed: int = 0) -> pa.Table:
    """Events in order: downs, ups, and those of no change."""
    choose = random.Random(seed)
    moves = [0 if choose.random() < ignorable else choose.choice([-2, -1, 1, 2]) for _ in range(events)]
    return pa.table({"t": range(events), "number": range(events), "move": moves})


def delayed(table: pa.Table, share: float, most: int, *, seed: int = 0) -> pa.Table:
    """Some of the events come up to ``most`` places later."""
    choose = random.Random(seed)
    place = [at + (choose.randint(1, most) + 0.5 if choose.random() < share else 0) for at in range(table.num_rows)]
    return table.take(pa.array(sorted(range(table.num_rows), key=place.__getitem__)))


def vees(window: int = 60, *, ignores: bool = True) -> stretto.AFA:
    """Downs and as many ups, whatever does not move in between."""
    afa = stretto.AFA({"move": int}, register={"down": int}, window=window)
    afa.arc("q0", "q1", when="e.move < 0", then="down = 1")
    afa.arc("q1", "q1", when="e.move < 0", then="down = r.down + 1")
    afa.arc("q1", "q2", when="e.move > 0 AND r.down > 1", then="down = r.down - 1")
    afa.arc("q2", "q2", when="e.move > 0 AND r.down > 1", then="down = r.down - 1")
    for state in ("q1", "q2"):
        afa.arc(state, "q3", when="e.move > 0 AND r.down = 1", then="down = 0")
        if ignores:
            afa.ignore(state, when="e.move = 0")
    return afa.final("q3")


def net(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """What is left when all is said, by times: rows are those of arrival."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        found[row["start_time"], row["end_time"], row["until"], tuple(row["register"].values())] += row["sign"]
    return +found


def run(afa: stretto.AFA, table: pa.Table, *, every: int = 97, **options: Any) -> tuple[pa.Table, Any]:
    """Pushed in pieces, with the best punctuation after each."""
    matcher = stretto.Matcher(afa, table.schema, time="t", **options)
    times = table["t"].to_pylist()
    found = []
    for begin in range(0, table.num_rows, every):
        found.append(matcher.push(table.slice(begin, every)))
        if begin + every < table.num_rows:
            matcher.advance(min(times[begin + every :]))
    return pa.concat_tables(found), matcher


@pytest.mark.parametrize("ignore", [True, False])
@pytest.mark.parametrize("numbered", [None, "number"])
def test_late_events_give_what_they_give_in_order(ignore: bool, numbered: str | None) -> None:
    """With ignorable arcs as anchors, and sequence numbers (AFA+O) too; where events are numbered, nothing is taken back."""
    table = ticks(2000)
    expected = net(run(vees(), table)[0])
    assert len(expected) > 100
    options = {} if numbered is None else {"numbered": numbered}
    found, matcher = run(vees(), delayed(table, 0.1, 300), ignore=ignore, **options)
    assert net(found) == expected
    assert matcher.stats["out_of_order"] > 150
    if numbered:
        assert pc.min(found["sign"]).as_py() == 1
        assert found.num_rows == sum(expected.values())
    else:
        assert pc.min(found["sign"]).as_py() == -1


def test_without_a_punctuation_in_any_order() -> None:
    table = ticks(1500, seed=4)
    expected = net(stretto.Matcher(vees(), table.schema, time="t").push(table))
    order = random.Random(4).sample(range(1500), 1500)
    for options in ({}, {"numbered": "number"}, {"ignore": False}, {"provenance": True}):
        found = stretto.Matcher(vees(), table.schema, time="t", **options).push(table.take(pa.array(order)))
        assert net(found) == expected


@pytest.mark.parametrize("ignores", [False, True])
def test_events_come_and_are_taken_back(ignores: bool) -> None:
    """Each other event is retracted again, in another order."""
    table = ticks(600, seed=5)
    choose = random.Random(5)
    coming = choose.sample(range(600), 600)
    going = choose.sample(range(0, 600, 2), 300)
    signs = pa.array([1] * 600 + [-1] * 300, pa.int8())
    log = table.take(pa.array(coming + going)).append_column("sign", signs)
    afa = vees(ignores=ignores)
    expected = net(run(afa, table.take(pa.array(range(1, 600, 2))))[0])
    assert expected
    found = stretto.Matcher(afa, log.schema, time="t", sign="sign", sequence="number").push(log)
    assert net(found) == expected


def test_an_event_is_late_after_a_punctuation_with_a_condition() -> None:
    """Anchors begun before that punctuation, which builds the event index, still reach over a later event."""
    afa = stretto.AFA({"kind": str}).arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'")
    afa.ignore("q1", when="e.kind = 'x'").final("q2")
    found = []
    for ignore in (True, False):
        matcher = stretto.Matcher(afa, time="t", ignore=ignore)
        given = [{"t": 10 * at, "kind": kind} for at, kind in enumerate("caxxxxxxc")]
        assert matcher.push(given).num_rows == 0
        matcher.advance(45, where="e.kind = 'b'")
        late = matcher.push([{"t": 45, "kind": "b"}])
        found.append(late.select(["sign", "start", "end"]).to_pylist())
    assert found[0] == found[1] == [{"sign": 1, "start": 1, "end": 9}]


def test_thousands_of_outputs_of_one_step_are_in_order() -> None:
    """4,096 registers of one first event, whose derivation gives them down and up again; and then taken back in one step."""
    afa = stretto.AFA({"bit": bool, "ends": bool}, register={"r": int, "f": float})
    afa.arc("q0", "q1", when="NOT e.bit AND NOT e.ends")
    for way in (1, 0):
        text = f"r = r.r * 2 + {way}, f = {1 - 2 * way}.5 * r.r"
        afa.arc("q1", "q1", when="e.bit", then=text)
    afa.arc("q1", "q2", when="e.ends", then="r = (r.r - 2048) * (r.r - 2048), f = r.f").final("q2")
    rows = [{"t": at, "bit": 0 < at < 13, "ends": at == 13} for at in range(14)]
    matcher = stretto.Matcher(afa, time="t")
    found = matcher.push(rows)
    registers = [tuple(row.values()) for row in found["register"].to_pylist()]
    assert len(registers) == 4096
    assert registers == sorted(registers)
    back = matcher.push([{"t": 12, "bit": False, "ends": False}])
    assert back["sign"].to_pylist() == [-1] * 4096 + [1]
    assert [tuple(row.values()) for row in back["register"].to_pylist()[:4096]] == registers
