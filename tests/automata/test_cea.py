"""The construction of theorem 2, and determinization on the fly."""

from __future__ import annotations

import pytest

from stretto.automata.cea import TRUE, build
from stretto.automata.determinize import AMBIGUOUS, SKIP, Determinizer
from stretto.errors import LimitError
from stretto.languages.ceql import parse
from stretto.query.algebra import Atom, Plus
from stretto.query.passes import rewrite
from stretto.query.query import Strategy


def cea(formula: str):  # type: ignore[no-untyped-def]
    return build(rewrite(parse(f"SELECT * FROM S WHERE {formula}").pattern))


def test_figure_3() -> None:
    """Q1's automaton: four states, a skipping loop on those that wait."""
    automaton = cea("SELL AS msft; SELL AS intel; SELL AS amzn FILTER msft[price > 100] AND amzn[price < 2000]")
    assert str(automaton) == (
        "states 0..3, initial 0, final {3}\n"
        "  0 → 1  SELL[price > 100] / • {SELL, msft}\n"
        "  1 → 2  SELL / • {SELL, intel}\n"
        "  1 → 1  TRUE / ∘\n"
        "  2 → 3  SELL[price < 2000] / • {SELL, amzn}\n"
        "  2 → 2  TRUE / ∘"
    )
    assert automaton.waits


@pytest.mark.parametrize(
    ("formula", "waits"), [("A ; B+", True), ("A : B", False), ("A ; B:+ ; C", False), ("A OR B", True), ("A+", True)]
)
def test_waits(formula: str, waits: bool) -> None:
    assert cea(formula).waits is waits


def test_no_transition_enters_the_initial_state() -> None:
    for formula in ("A+", "(A ; B)+", "((A OR B:+)+ ; C)+", "A:+"):
        assert all(t.target != 0 for t in cea(formula).transitions)


def test_nested_iterations_stay_small() -> None:
    pattern = Atom("A")
    for depth in range(40):
        pattern = Plus(pattern, contiguous=bool(depth % 2))  # type: ignore[assignment]
    assert len(build(pattern).transitions) < 50


def test_a_step_is_a_state() -> None:
    automaton = cea(" ; ".join(f"T{i}" for i in range(300)))
    assert automaton.states == 301
    assert sum(t.guard == TRUE for t in automaton.transitions) == 299


def test_determinizing_tells_marks_apart() -> None:
    machine = Determinizer(cea("A ; A"), Strategy.ALL)
    ((mark, first),) = machine.step(0, 1)
    assert machine.marks[mark] == {"A"}
    # An A after the first is taken as the second, or skipped: two transitions, told apart by the mark.
    steps = machine.step(first, 1)
    assert [m == SKIP for m, _ in steps] == [False, True]
    assert [machine.is_final(state) for _, state in steps] == [True, False]
    assert machine.step(first, 0) == [(SKIP, first)]


def test_marks_that_runs_disagree_on_are_ambiguous() -> None:
    formula = "A+ AS a ; A+ AS b"
    machine = Determinizer(cea(formula), Strategy.ALL)
    state = machine.step(0, 1)[0][1]
    assert machine.step(state, 1)[0][0] == AMBIGUOUS
    both = Determinizer(cea(formula), Strategy.ALL, valuations=True)
    state = both.step(0, 1)[0][1]
    assert sorted(sorted(both.marks[m]) for m, _ in both.step(state, 1) if m) == [["A", "a"], ["A", "b"]]


@pytest.mark.parametrize("strategy", [Strategy.MAX, Strategy.NEXT, Strategy.LAST])
def test_a_worse_run_dies(strategy: Strategy) -> None:
    """Skipping an event that every better run takes leaves nothing to hope for, or only what LAST can still repair."""
    machine = Determinizer(cea("A ; B+"), strategy)
    state = machine.step(0, 1)[0][1]
    taken = machine.step(state, 2)[0][1]
    assert machine.is_final(taken)
    after = machine.step(taken, 2)
    finals = [machine.is_final(s) for _, s in after]
    assert finals.count(True) == 1, "after another B, only the run that took it outputs"


def test_strict_has_no_skips() -> None:
    machine = Determinizer(cea("A ; B"), Strategy.STRICT)
    state = machine.step(0, 1)[0][1]
    assert machine.step(state, 0) == []


def test_a_limit_on_states() -> None:
    machine = Determinizer(cea("A ; B ; C ; D"), Strategy.ALL, most=3)
    state = machine.step(machine.step(0, 1)[0][1], 2)[0][1]
    with pytest.raises(LimitError, match="made more than 3 states"):
        machine.step(state, 4)
