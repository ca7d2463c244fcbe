"""The examples with dataflows, on their own small files and on real data, against what a few lines of Python find."""

from __future__ import annotations

import importlib
import random
from collections import Counter
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import COMPILED, size
from tests.programs import shown
from tests.reference.dataflow import FOREVER, history

FOLDER = Path(__file__).parents[2] / "examples" / "dataflow"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


# ---- Reachability


def paths(sources: set[int], links: set[tuple[int, int]]) -> set[tuple[int, int, str]]:
    """Every path that visits no node twice: where it begins and ends, and its bits."""
    found = set()

    def walk(way: list[int]) -> None:
        for src, dst in links:
            if src == way[-1] and dst not in way:
                bits = "".join("1" if node in (*way, dst) else "0" for node in range(1, 5))
                found.add((way[0], dst, bits))
                walk([*way, dst])

    for source in sources:
        walk([source])
    return found


def test_reachability_of_the_paper() -> None:
    """Section 2, times 1 to 4; then the link from n3 to n1 goes, and with it all that it carried."""
    reachability = load("reachability")
    flow = reachability.Dataflow(reachable=reachability.reachability())
    found = {time: (rows, certain) for time, rows, certain in reachability.figure_2(flow)}
    given = {
        time: {(row["vs"], row["source"], row["node"], f"{row['bv']:04b}") for row in rows if row["ve_new"] is None}
        for time, (rows, _) in found.items()
    }
    assert given == {
        1: set(),
        2: {(2, 3, 1, "1010")},
        3: {(3, 3, 2, "1110"), (3, 2, 3, "0110"), (3, 2, 1, "1110")},
        4: {(4, 3, 4, "0011"), (4, 2, 4, "0111")},
        5: set(),
    }
    taken = {
        (row["source"], row["node"], f"{row['bv']:04b}", row["ve_new"])
        for rows, _ in found.values()
        for row in rows
        if row["ve_new"] is not None
    }
    assert taken == {(3, 1, "1010", 5), (3, 2, "1110", 5), (2, 1, "1110", 5)}
    assert [certain for _, certain in found.values()] == [2, 3, 4, 5, 6]


def test_reachability_at_each_time() -> None:
    reachability = load("reachability")
    flow = reachability.Dataflow(reachable=reachability.reachability())
    tables = []
    for time, inputs in reachability.FIGURE_2.items():
        for name, payloads in inputs.items():
            for payload in payloads:
                reachability.pushed(flow, name, payload, time, None)
    reachability.pushed(flow, "links", (3, 1), 2, None, 5)
    flow.finish()
    flow.run_until_idle()
    tables.append(flow.output("reachable"))
    spans = history(pa.concat_tables(tables))
    links = {(3, 1): (2, 5), (1, 2): (3, 9), (2, 3): (3, 9), (3, 4): (4, 9)}
    for time in range(8):
        alive = {link for link, (vs, ve) in links.items() if vs <= time < ve}
        now = {
            (source, node, f"{bv:04b}")
            for (source, node, bv), stretches in spans.items()
            if any(vs <= time < ve for vs, ve, _ in stretches)
        }
        assert now == paths({2, 3} if time else set(), alive), time


def test_reachability_expires() -> None:
    found = {
        (row["source"], row["node"], f"{row['bv']:04b}", row["vs"], row["ve"])
        for row in load("reachability").expirations()
    }
    assert found == {(3, 1, "1010", 2, 6), (3, 2, "1110", 3, 6)}


def test_reachability_prints() -> None:
    lines = shown(FOLDER / "reachability.py", data=FOLDER)
    assert "  + (n3, n2, 1110) lives in [3, ∞)" in lines
    assert "  - (n3, n2, 1110) of [3, ∞) ends at 5" in lines
    assert "  + (n3, n2, 1110) lives in [3, 6)" in lines
    assert lines.index("  certain before 3") < lines.index("time 3")


# ---- Automata


def matched(text: str, arcs: set[tuple[str, str, str]], first: int = 1) -> set[tuple[int, int, str]]:
    """Partial matches, and starts, of a text whose symbols have numbers."""
    found = set()
    for begin in range(len(text)):
        states = {"S"}
        found.add((begin + first, begin + first - 1, "S"))
        for at in range(begin, len(text)):
            states = {dst for src, symbol, dst in arcs if src in states and symbol == text[at]}
            found |= {(begin + first, at + first, state) for state in states}
    return found


def test_automaton_of_figure_4() -> None:
    """A, AB, ABB, ABBA, and the A at the end; and a start at each symbol."""
    nfa = load("nfa")
    rows = nfa.read(nfa.started(), "ABBA", 1)
    found = [(row["begin"], row["end"], row["state"]) for row in rows]
    assert Counter(found) == Counter(
        [
            *((1, 0, "S"), (2, 1, "S"), (3, 2, "S"), (4, 3, "S")),
            *((1, 1, "1"), (1, 2, "1"), (1, 3, "1"), (1, 4, "F"), (4, 4, "1")),
        ]
    )
    assert set(found) == matched("ABBA", set(nfa.TRANSITIONS))


def test_automaton_that_changes() -> None:
    nfa = load("nfa")
    flow = nfa.started()
    rows = nfa.read(flow, "ABBA", 1)
    nfa.changed(flow, 5, ("1", "B", "1"), ("1", "C", "1"))
    rows += nfa.read(flow, "ACCA", 5)
    taken = {(row["begin"], row["end"], row["ve_new"]) for row in rows if row["ve_new"] is not None}
    assert taken == {(1, 2, 5), (1, 3, 5), (1, 4, 5)}
    alive = Counter((row["begin"], row["end"], row["state"]) for row in rows if row["ve_new"] is None)
    alive.subtract((row["begin"], row["end"], row["state"]) for row in rows if row["ve_new"] is not None)
    # From time 5 on it is as if there had never been a transition on B.
    assert set(+alive) == matched("ABBAACCA", {("S", "A", "1"), ("1", "C", "1"), ("1", "A", "F")})


def test_automata_over_random_texts() -> None:
    nfa = load("nfa")
    choose = random.Random(5)
    for _ in range(5):
        arcs = sorted({(choose.choice("S12"), choose.choice("AB"), choose.choice("12F")) for _ in range(7)})
        text = "".join(choose.choice("AB") for _ in range(12))
        rows = nfa.read(nfa.started(arcs), text, 1)
        assert {(row["begin"], row["end"], row["state"]) for row in rows} == matched(text, set(arcs)), (arcs, text)


def test_automaton_prints() -> None:
    lines = shown(FOLDER / "nfa.py", data=FOLDER)
    assert "  + 1..4: 'ABBA' in state F" in lines
    assert "  - 1..4: 'ABBA' in state F, ends at 5" in lines
    assert "  + 5..8: 'ACCA' in state F" in lines


# ---- The W query


def ws(tosses: str, window: int) -> Counter[tuple[int, int]]:
    """U, then two falls that rise again, the first not all the way, and the end as high as the start."""
    found: Counter[tuple[int, int]] = Counter()
    for begin, toss in enumerate(tosses):
        runs: list[tuple[str, int]] = []
        depth = 0
        if toss != "U":
            continue
        for end in range(begin + 1, min(begin + window, len(tosses))):
            symbol = tosses[end]
            depth += 1 if symbol == "D" else -1
            if runs and runs[-1][0] == symbol:
                runs[-1] = (symbol, runs[-1][1] + 1)
            else:
                runs.append((symbol, 1))
            if runs[0][0] != "D" or len(runs) > 4 or depth < 0:
                break
            if depth == 0:
                if len(runs) == 4:
                    found[begin, end] += 1
                break
    return found


@pytest.mark.parametrize("speculation", ["hybrid", "probing", "hwm"])
def test_ws(speculation: str) -> None:
    w_query = load("w_query")
    tosses = w_query.tossed(size(1500, 150), seed=3)
    found, flow = w_query.run(tosses, batch=97, speculation=speculation)
    assert found == ws(tosses, w_query.WINDOW)
    assert len(found) >= 1
    flow.finish()
    flow.run_until_idle()
    assert flow.punctuation("w") == FOREVER


def test_ws_print() -> None:
    w_query = load("w_query")
    count = size(20_000, 2_000)
    lines = shown(FOLDER / "w_query.py", str(count), data=FOLDER)
    right = ws(w_query.tossed(count, seed=1), w_query.WINDOW)
    assert lines[0].startswith(f"{count:,} tosses, {sum(right.values())} Ws")


# ---- Routes


def shortest(roads: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Floyd and Warshall."""
    places = sorted({one for road in roads for one in road})
    best = dict(roads)
    for via in places:
        for src in places:
            for dst in places:
                if (src, via) in best and (via, dst) in best:
                    through = best[src, via] + best[via, dst]
                    best[src, dst] = min(best.get((src, dst), through), through)
    return best


def costs_over_time(changes: list[tuple[int, str, str, int | None]]) -> dict[int, dict[tuple[str, str], int]]:
    """The least costs at each time of a change."""
    found = {}
    open_: dict[tuple[str, str], int] = {}
    for time in sorted({change[0] for change in changes}):
        for at, src, dst, cost in changes:
            if at == time:
                open_.pop((src, dst), None)
                if cost is not None:
                    open_[src, dst] = cost
        found[time] = shortest(open_)
    return found


def routes_at(steps: list[tuple[int, list[dict[str, Any]]]], time: int) -> dict[tuple[str, str], int]:
    spans = history(pa.Table.from_pylist([row for _, rows in steps for row in rows]))
    return {(src, dst): cost for (src, dst, cost), some in spans.items() if any(vs <= time < ve for vs, ve, _ in some)}


def test_routes() -> None:
    routes = load("routes")
    for query in (routes.routes(), routes.routes_in_datalog()):
        steps = routes.run(query, routes.CHANGES)
        for time, right in costs_over_time(routes.CHANGES).items():
            assert routes_at(steps, time) == right


@pytest.mark.parametrize("seed", range(3))
def test_routes_with_random_costs(seed: int) -> None:
    routes = load("routes")
    choose = random.Random(seed)
    changes = []
    for time in range(1, 12):
        roads = {(choose.choice("abcd"), choose.choice("abcd")) for _ in range(3)}
        changes += [(time, src, dst, choose.choice([None, 1, 2, 5, 9])) for src, dst in sorted(roads) if src != dst]
    steps = routes.run(routes.routes(), changes)
    for time, right in costs_over_time(changes).items():
        assert routes_at(steps, time) == right, (seed, time)


def test_routes_are_revised_as_roads_come() -> None:
    routes = load("routes")
    rows = routes.early(routes.routes())
    assert [(row["cost"], row["ve_new"] is None) for row in rows] == [(9, True), (7, True), (9, False)]


def test_routes_print() -> None:
    lines = shown(FOLDER / "routes.py", data=FOLDER)
    assert lines[-1] == "  the same"
    assert "  - from Ayr to Dover for 8" in lines


# ---- Contacts


def first_reached(contacts: list[dict[str, Any]], time: int, window: int) -> dict[tuple[int, int], int]:
    """Who reaches whom by contacts that count at a time, each after the one before; forward in time."""
    alive = sorted(
        ((row["at"], row["src"], row["dst"]) for row in contacts if row["at"] <= time < row["at"] + window),
    )
    best: dict[tuple[int, int], int] = {}
    for start in sorted({src for _, src, _ in alive}):
        there: dict[int, int] = {}
        for at, src, dst in alive:
            # Those that are at the same moment do not follow one another.
            if (src == start or there.get(src, at) < at) and dst != start:
                there.setdefault(dst, at)
        best |= {(start, dst): at for dst, at in there.items()}
    return best


def check_contacts(table: pa.Table) -> int:
    contacts = load("contacts")
    rows = table.to_pylist()
    found = contacts.Snapshot()
    checked = 0
    for time, output in contacts.run(table):
        found.take(output)
        for at in range(time - contacts.EVERY, time, 200):
            now = found.at(at)
            assert now == first_reached(rows, at, contacts.WINDOW), at
            checked += len(now)
        found.forget(time)
    return checked


def test_contacts_of_the_miniature() -> None:
    contacts = load("contacts")
    assert check_contacts(contacts.contacts_of(contacts.MINIATURE, 0, 3 * 3600)) > 1000


def test_contacts_of_a_hospital(data: Path) -> None:
    contacts = load("contacts")
    assert check_contacts(contacts.contacts_of(data / "rfid_hospital_contacts.csv.gz", 3600, size(7_200, 720))) > 100


def test_contacts_print() -> None:
    lines = shown(FOLDER / "contacts.py", "2", data=FOLDER)
    assert lines[0].startswith("contacts.csv: ")
    assert len(lines) > 3


# ---- Flights


def earliest(flights: list[Any], known: int, airport: str, start: int, least: int) -> dict[str, int]:
    """Arrivals by what is known at a time: flights by departure, until nothing gets earlier."""
    legs = []
    for one in flights:
        left = one.planned[0] if one.flown is None else max(one.flown[0], 1)
        times = one.planned if known < left else one.flown
        if times is not None:
            legs.append((*times, one.origin, one.dest))
    there = {airport: start - least}
    changed = True
    while changed:
        changed = False
        for departure, arrival, origin, dest in sorted(legs):
            if origin in there and departure >= there[origin] + least and arrival < there.get(dest, 10**6):
                there[dest] = arrival
                changed = True
    return there


def test_flights() -> None:
    flights = load("flights")
    every = flights.flights_of(flights.DAY)
    kept = [one for one in every if one.number % 3 == 0] if not COMPILED else every
    sizes = set()
    for now, there in flights.run(kept, "BOS", 7 * 60):
        assert there == earliest(kept, now, "BOS", 7 * 60, flights.CONNECTION), now
        sizes.add(len(there))
    assert len(sizes) > 1


def test_flights_back_are_between_two_from_new_york() -> None:
    flights = load("flights")
    every = flights.flights_of(date(2013, 1, 1))
    out = {one.number: one for one in every if one.number > 0}
    back = [one for one in every if one.number < 0]
    assert len(back) > 20
    for one in back:
        leg = out[-one.number]
        assert one.origin == leg.dest
        assert one.dest in ("EWR", "JFK", "LGA")
        assert one.planned[0] >= leg.planned[1] + flights.TURN_AROUND


def test_flights_print() -> None:
    lines = shown(FOLDER / "flights.py", "BOS", data=FOLDER)
    assert lines[0].startswith("2013-07-10: ")
    assert any("known at 12:00" in line for line in lines)


# ---- Money


def circles(transfers: list[dict[str, Any]], money: ModuleType) -> set[tuple[int, int, int]]:
    """First and last transfer of every circle, and how many there are."""
    found = set()
    by_payer: dict[str, list[dict[str, Any]]] = {}
    for one in transfers:
        by_payer.setdefault(one["payer"], []).append(one)

    def walk(chain: list[dict[str, Any]]) -> None:
        last = chain[-1]
        if last["payee"] == chain[0]["payer"]:
            if len(chain) >= 3:
                found.add((chain[0]["id"], last["id"], len(chain)))
            return
        if len(chain) == money.MOST_TRANSFERS:
            return
        for one in by_payer.get(last["payee"], []):
            in_time = last["at"] < one["at"] < chain[0]["at"] + money.WINDOW
            if in_time and last["amount"] * money.PASSED_ON <= one["amount"] < last["amount"]:
                walk([*chain, one])

    for one in transfers:
        walk([one])
    return found


@pytest.mark.parametrize("seed", [4, 5])
def test_circles_of_money(seed: int) -> None:
    money = load("money")
    transfers = money.transfers_of(seed, count=size(600, 60), accounts=20)
    right = circles(transfers, money)
    assert len(right) >= 6
    first = min(right, key=lambda one: one[1])
    at = transfers[first[1]]["at"] + 1000
    alive: Counter[tuple[int, int, int]] = Counter()
    for time, found in money.run(transfers, {first[1]: at}):
        for row in found.to_pylist():
            alive[row["first"], row["last"], row["length"]] += 1 if row["ve_new"] is None else -1
        if time - 600 <= at < time:
            assert not alive[first]
    # The one that was cancelled is in no circle any more.
    assert set(+alive) == circles([one for one in transfers if one["id"] != first[1]], money)


def test_money_prints() -> None:
    lines = shown(FOLDER / "money.py", data=FOLDER)
    assert sum("taken back" in line for line in lines) == 1
    assert sum(" circle " in line for line in lines) >= 6
