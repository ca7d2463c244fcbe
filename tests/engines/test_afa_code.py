"""Fences and transfers as code for kernels, against the definitions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest

import stretto
from stretto import _jit
from stretto.columns.vectorized import mask
from stretto.engines.afa.code import FUNCTION_BITS, AfaCode, ArcCode
from stretto.engines.afa.python import RAISED, REG
from stretto.engines.shared.scalar import multiplied
from stretto.engines.shared.scalar_code import IS_NULL, OVERFLOWED
from stretto.engines.shared.values import Vocabulary, matrix
from stretto.errors import LimitError, OptionError, QueryError
from stretto.languages.afa import Scope, read_fence, read_function, read_transfer
from stretto.query import predicate as p
from stretto.query.afa import Arc, Kind, UserFunction
from stretto.query.evaluate import holds, value
from tests.cases.choices import Seeded
from tests.conftest import COMPILED, cases, seeds

EVENTS = {
    "i": pa.int64(),
    "j": pa.int32(),
    "f": pa.float64(),
    "g": pa.float32(),
    "s": pa.string(),
    "t": pa.dictionary(pa.int32(), pa.string()),
    "b": pa.bool_(),
    "at": pa.timestamp("us"),
    "on": pa.date32(),
    "late": pa.timestamp("ms"),
    "raw": pa.binary(),
    "of it": pa.int64(),
}
REGISTER = {
    "n": pa.int64(),
    "m": pa.int64(),
    "x": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "at": pa.timestamp("us"),
}
SCOPE = Scope(EVENTS, REGISTER)

EVENT = {
    "i": (None, -7, 0, 3, 4, 1 << 62, -(1 << 63)),
    "j": (None, -2, 3, 3, 5),
    "f": (None, -1.5, 0.0, 3.0, float(1 << 53), float("nan"), float("inf")),
    "g": (None, 0.5, 3.0),
    "s": (None, "a", "b", "", "é"),
    "t": (None, "a", "c"),
    "b": (None, True, False),
    "at": (None, dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 3, 4, 5, 6)),
    "on": (None, dt.date(2020, 1, 1), dt.date(2020, 1, 2)),
    "late": (None, dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 3)),
    "raw": (None, b"x"),
    "of it": (None, 1, 2),
}
FIRST: dict[str, tuple[Any, ...]] = {
    "n": (0, 3, -7, (1 << 63) - 1),
    "m": (1, 3, (1 << 53) + 1),
    "x": (0.0, 3.0, -2.5, float(1 << 53)),
    "s": ("", "a", "b"),
    "b": (True, False),
    "at": (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)),
}

NUMBERS = ["e.i", "e.j", "e.f", "e.g", "e.`of it`", "r.n", "r.m", "r.x"]
TIMES = ["e.at", "e.on", "e.late", "r.at"]
DAY, LIKE = "'2020-01-01'", "'a%'"


@stretto.function
def capped(a):  # type: ignore[no-untyped-def]
    return a if a < 5 else 5


#: A function, as a kernel is handed it: one kernel calls them all.
THETA_AT = _jit.called(numbers=4, matrices=3)


@_jit.jit
def run(theta, fn, event, E, P, F):  # type: ignore[no-untyped-def]
    """The function as kernels call it, for the partial match in column 0 and into column 1."""
    return THETA_AT(theta)(fn, event, 0, 1, E, P, F)


class World:
    """Events and registers as the words that code reads."""

    def __init__(self, code: AfaCode, events: list[dict[str, Any]], scope: Scope = SCOPE) -> None:
        self.code = code
        self.scope = scope
        columns = {name: pa.array([event[name] for event in events], kind) for name, kind in scope.events.items()}
        self.batch = pa.record_batch(columns)
        self.words = Vocabulary(ordered=False)
        self.words.of(pa.array(code.constants, pa.string()))
        rows = matrix(code.columns, self.batch, self.words, None)
        self.E = np.vstack([np.zeros((1, rows.shape[1]), np.int64), rows])
        self.atoms = [mask(atom, self.batch) for atom in code.atoms]
        self.F = code.faults()
        self.P = np.zeros((REG + len(scope.register), 2), np.int64)

    def put(self, register: Mapping[str, Any]) -> None:
        for at, (name, kind) in enumerate(self.scope.register.items()):
            first = register[name]
            if pa.types.is_floating(kind):
                first = int(np.float64(first).view(np.int64))
            elif pa.types.is_string(kind):
                first = int(self.words.of(pa.array([first]))[0][0])
            elif pa.types.is_timestamp(kind):
                first = pa.scalar(first, kind).value
            self.P[REG + at, 0] = int(first)

    def run(self, fn: int, event: int) -> tuple[int, int]:
        """What a function gives for an event, and the fault."""
        self.F[0, 0] = 0
        with np.errstate(all="ignore"):  # NumPy's own scalars warn where nothing is compiled
            found = run(self.code.theta(), fn, event + 1, self.E, self.P, self.F)
        return int(found), int(self.F[0, 0])

    def fence(self, code: ArcCode, event: int) -> tuple[bool, int]:
        """Whether an arc's fence holds for the register, and the fault."""
        if code.atom >= 0 and not self.atoms[code.atom][event]:
            return False, 0
        if code.fence < 0:
            return True, 0
        found, fault = self.run(code.fence, event)
        return found == 1, fault

    def register(self) -> list[Any]:
        """What a transfer has written."""
        found: list[Any] = []
        for at, kind in enumerate(self.scope.register.values()):
            word = self.P[REG + at, 1]
            if pa.types.is_floating(kind):
                found.append(float(word.view(np.float64)))
            elif pa.types.is_timestamp(kind):
                found.append(pa.scalar(int(word), kind).as_py())
            else:
                found.append(int(word))
        return found


# ---- Random expressions


def number(choice: Seeded, depth: int = 0) -> str:
    if depth > 2 or choice.chance(45):
        return choice.one_of([*NUMBERS, *NUMBERS, "3", "0", "2.5", "-1", "1e3"])
    kind = choice.integer(0, 9)
    if kind == 0:
        return f"-({number(choice, depth + 1)})"
    if kind == 1:
        return f"capped({number(choice, depth + 1)})"
    return f"({number(choice, depth + 1)} {choice.one_of('+-*/%')} {number(choice, depth + 1)})"


def condition(choice: Seeded, depth: int = 0) -> str:  # noqa: PLR0911 - one case after the other
    op = choice.one_of(["=", "!=", "<", "<=", ">", ">="])
    if depth < 3 and choice.chance(50):
        joint = choice.one_of([" AND ", " OR ", " AND ", "NOT "])
        if joint == "NOT ":
            return f"NOT ({condition(choice, depth + 1)})"
        return f"({condition(choice, depth + 1)}{joint}{condition(choice, depth + 1)})"
    equal = choice.one_of(["=", "!="])
    letter = choice.one_of(["'a'", "'b'", "'é'"])
    text = choice.one_of(["e.s", "e.t"])
    match choice.integer(0, 11):
        case 0:
            return f"e.s {op} {choice.one_of(['e.t', letter])}"
        case 1:
            return f"{choice.one_of([text, letter])} {equal} r.s"
        case 2:
            return f"{text} LIKE {choice.one_of([letter, LIKE])}"
        case 3:
            return f"{choice.one_of([text, 'r.s'])} IN ({letter}, 'c')"
        case 4:
            return f"e.`{choice.one_of(list(EVENTS))}` IS {choice.one_of(['', 'NOT '])}NULL"
        case 5:
            return f"{choice.one_of(['e.b', 'r.b'])} {equal} {choice.one_of(['TRUE', 'e.b', 'r.b'])}"
        case 6:
            return f"{choice.one_of(TIMES)} {op} {choice.one_of([*TIMES, DAY])}"
        case 7:
            return f"{number(choice, 2)} IN (3, 0, 2.5)"
        case 8:
            return f"{number(choice, 1)} BETWEEN {number(choice, 2)} AND {number(choice, 2)}"
        case _:
            return f"{number(choice)} {op} {number(choice)}"


def fences(choice: Seeded, wanted: int) -> list[p.Predicate]:
    found: list[p.Predicate] = []
    while len(found) < wanted:
        try:
            found.append(read_fence(condition(choice), SCOPE))
        except QueryError as error:  # an unlucky pair of kinds
            known = ("cannot compare", "compares constants", "only one has a time zone")
            if not any(one in str(error) for one in known):
                raise
    return found


def transfers(choice: Seeded, wanted: int) -> list[tuple[p.Operand, ...]]:
    found: list[tuple[p.Operand, ...]] = []
    while len(found) < wanted:
        given = {"x": number(choice), choice.one_of(["n", "m"]): number(choice)}
        if choice.chance(50):
            given |= {"s": choice.one_of(["e.s", "e.t", "'z'", "r.s"]), "at": choice.one_of(["e.at", "'2020-05-05'"])}
        if choice.chance(50):
            given["b"] = choice.one_of(["e.b", "TRUE"])
        try:
            found.append(read_transfer(given, SCOPE))
        except QueryError as error:
            if "cannot take" not in str(error):
                raise
    return found


def worlds(choice: Seeded, rows: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [
        (
            {name: choice.one_of(values) for name, values in EVENT.items()},
            {name: choice.one_of(values) for name, values in FIRST.items()},
        )
        for _ in range(rows)
    ]


def names(event: dict[str, Any], register: dict[str, Any]) -> dict[str, Any]:
    return {f"e.{name}": one for name, one in event.items()} | {f"r.{name}": one for name, one in register.items()}


def small(*expressions: p.Expression) -> bool:
    """Whether nothing is computed, so that nothing can overflow."""
    return not any(p.computes(one) or p.calls(one) for one in expressions)


#: Code that calls functions of the user's own is compiled by each process, which takes seconds: such arcs have code to themselves.
CALLS = pytest.mark.parametrize("calls", [False, True])


@CALLS
@pytest.mark.parametrize("keep_all", [False, True])
@pytest.mark.parametrize("seed", seeds(0, 1))
def test_fences_hold_as_they_are_defined(seed: int, keep_all: bool, calls: bool) -> None:
    choice = Seeded(seed)
    given = worlds(choice, 60)
    conditions = []
    half = fences(choice, 40)[keep_all::2]  # what all is kept for changes no condition's code
    for one in (one for one in half if bool(p.calls(one)) == calls):
        # What whole columns compute is no matter of this test, and an overflow there is an error of the whole batch.
        code = AfaCode(EVENTS, REGISTER)
        code.add(Arc("a", "q0", "q1", one))
        if all(small(atom) for atom in code.atoms):
            conditions.append(one)
    code = AfaCode(EVENTS, REGISTER, keep_all=keep_all)
    arcs = [code.add(Arc("a", "q0", "q1", one)) for one in conditions]
    world = World(code, [event for event, _ in given])
    faults = 0
    for at, (event, register) in enumerate(given):
        world.put(register)
        for one, arc in zip(conditions, arcs, strict=True):
            held, fault = world.fence(arc, at)
            if fault:
                assert (held, fault) == (False, OVERFLOWED)
                assert not small(one)
                faults += 1
            else:
                assert held == holds(one, names(event, register)), (str(one), event, register)
    assert faults < len(given) * len(arcs) / 5


@CALLS
@pytest.mark.parametrize("seed", seeds(1000, 1))
def test_transfers_give_what_they_are_defined_to(seed: int, calls: bool) -> None:
    choice = Seeded(seed)
    given = worlds(choice, 60)
    code = AfaCode(EVENTS, REGISTER)
    rows = [row for row in transfers(choice, 25) if any(map(p.calls, row)) == calls]
    arcs = [code.add(Arc("a", "q0", "q1", None, one)) for one in rows]
    world = World(code, [event for event, _ in given])
    for at, (event, register) in enumerate(given):
        world.put(register)
        for row, arc in zip(rows, arcs, strict=True):
            assert (arc.atom, arc.fence) == (-1, -1)
            done, fault = world.run(arc.transfer, at)
            wanted = [value(one, names(event, register)) for one in row]
            if fault == OVERFLOWED:
                assert not small(*row)
                continue
            assert done == (fault == 0)
            assert (fault == IS_NULL) == (None in wanted)
            if done:
                found = world.register()
                for field, kind, one, want in zip(REGISTER, REGISTER.values(), found, wanted, strict=True):
                    if pa.types.is_string(kind):
                        assert one == int(world.words.of(pa.array([want]))[0][0])
                    elif pa.types.is_floating(kind):
                        assert one == float(want) or np.isnan([one, float(want)]).all(), (field, str(row))
                    else:
                        assert one == want, (field, str(row))


# ---- What an arc is made of


def added(when: str | None = None, then: Any = None, *, kind: Kind = Kind.CONSUME, code: AfaCode | None = None) -> Any:
    epsilon = kind is Kind.EPSILON
    fence = None if when is None else read_fence(when, SCOPE, epsilon=epsilon)
    transfer = None if then is None else read_transfer(then, SCOPE, epsilon=epsilon)
    code = AfaCode(EVENTS, REGISTER) if code is None else code
    return code, code.add(Arc("a", "q0", "q1", fence, transfer, kind))


def test_what_a_fence_asks_of_the_event_alone_is_one_atom() -> None:
    code, arc = added("e.i > 3 AND r.n < 2 AND e.s LIKE 'a%' AND NOT (e.j = 2 OR e.f > r.x)")
    assert [str(atom) for atom in code.atoms] == ["i > 3 AND s LIKE 'a%' AND NOT (j = 2)"]
    assert arc == ArcCode(atom=0, fence=1 << FUNCTION_BITS)
    assert [str(column) for column in code.columns] == ["f"]


def test_atoms_of_several_arcs_are_told_apart_by_type() -> None:
    code, first = added("e.i = 1")
    _, second = added("e.f = 1", code=code)
    _, third = added("e.i = 1", code=code)
    assert (first, second, third) == (ArcCode(atom=0), ArcCode(atom=1), ArcCode(atom=0))
    assert code.version == 0
    assert code.columns == []
    assert World(code, [dict.fromkeys(EVENTS)]).run(0, 0) == (0, 0)  # no function


def test_a_constant_fence() -> None:
    assert added("TRUE")[1] == ArcCode()
    code, arc = added("FALSE")
    assert World(code, [dict.fromkeys(EVENTS)]).fence(arc, 0) == (False, 0)
    code, arc = added("r.n = 0 AND FALSE", kind=Kind.EPSILON)
    world = World(code, [])
    assert arc.atom == -1
    assert world.run(arc.fence, -1) == (0, 0)


def test_a_transfer_that_keeps_all_is_none() -> None:
    assert added(then="n = r.n, x = r.x")[1] == ArcCode()


def test_functions_that_are_known_add_nothing() -> None:
    code, first = added("r.n > e.i", "n = r.n + 1")
    before = code.version, code.theta()
    _, second = added("e.b AND r.n > e.i", {"n": "r.n + 1"}, code=code)
    assert (code.version, code.theta()) == before
    assert (first.fence, first.transfer) == (second.fence, second.transfer)
    _, third = added("r.n >= e.i", code=code)
    assert third.fence == 2
    assert code.version == 3
    assert code.theta() is not before[1]


def test_constants_are_no_part_of_the_code() -> None:
    code = AfaCode(EVENTS, REGISTER)
    arcs = []
    for limit, tag in ((3, "a"), (5, "b"), (3, "b")):
        given = {"n": f"r.n + {limit}", "x": f"{limit}.5", "s": f"'{tag}'", "at": f"'2020-01-0{limit}'"}
        arcs.append(added(f"e.i > r.n + {limit} AND r.s != '{tag}' AND r.at < '2020-01-0{limit}'", given, code=code)[1])
    assert code.version == 2
    assert code.size == code.faults().size == 1 + 3 * 3 + 3 * 4
    assert len({arc.fence for arc in arcs}) == len({arc.transfer for arc in arcs}) == 3
    assert added("e.i > r.n + 5 AND r.s != 'b' AND r.at < '2020-01-05'", code=code)[1].fence == arcs[1].fence
    world = World(code, [dict.fromkeys(EVENTS) | {"i": 9}])
    world.put({"n": 5, "m": 0, "x": 0.0, "s": "b", "b": False, "at": dt.datetime(2020, 1, 2)})
    assert [world.fence(arc, 0)[0] for arc in arcs] == [True, False, False]
    assert world.run(arcs[1].transfer, 0) == (1, 0)
    assert world.register() == [10, 0, 5.5, 1, 0, dt.datetime(2020, 1, 5)]


def test_a_refused_arc_leaves_no_trace() -> None:
    code = AfaCode(EVENTS, REGISTER)
    added("r.n = e.i AND r.s = 'a' AND e.f > 3", code=code)
    before = code.columns[:], code.atoms[:], code.constants[:], code.version, code.size
    ordered = p.Comparison("<", p.Attribute("r.s"), p.Constant("q"))
    alone = read_fence("e.f > 4 AND r.n = e.j + 7", SCOPE)
    with pytest.raises(QueryError, match="strings of an event and a register are compared with = and != only"):
        code.add(Arc("a", "q0", "q1", p.And((alone, ordered))))
    assert (code.columns, code.atoms, code.constants, code.version, code.size) == before
    assert added("e.f > 4", code=code)[1] == ArcCode(atom=1)


def test_string_constants_are_words() -> None:
    code, arc = added("r.s = 'b' OR r.s = e.s", "s = 'z'")
    assert code.constants == ["b", "z"]
    assert code.strings
    world = World(code, [dict.fromkeys(EVENTS) | {"s": "q"}])
    for first, held in (("b", True), ("q", True), ("z", False)):
        world.put({**{name: one[0] for name, one in FIRST.items()}, "s": first})
        assert world.fence(arc, 0) == (held, 0)
    world.run(arc.transfer, 0)
    assert world.register()[3] == 1


def test_string_constants_may_have_words_already() -> None:
    code = AfaCode(EVENTS, REGISTER, word_of=lambda text: 40 + len(text))
    added("r.s = 'abc'", code=code)
    assert code.faults().tolist() == [[0, 43]]


def test_every_attribute_has_a_word_where_that_is_wanted() -> None:
    code = AfaCode(EVENTS, REGISTER, keep_all=True)
    assert [str(column) for column in code.columns] == [name for name in EVENTS if name != "raw"]
    added("e.s = 'a' OR r.n > 3", code=code)
    assert len(code.columns) == len(EVENTS) - 1
    added("e.raw IS NULL OR r.n > 3", code=code)
    assert str(code.columns[-1]) == "raw IS NULL"


def test_decimals() -> None:
    events = {"d": pa.decimal128(20, 2), "e": pa.decimal128(20, 2)}
    scope = Scope(events, {"x": pa.float64()})
    code = AfaCode(events, scope.register)
    fence = read_fence("e.d = 0.1 OR e.d < e.e OR e.d < r.x", scope)
    arc = code.add(Arc("a", "q0", "q1", fence, read_transfer("x = e.d", scope)))
    given = [
        {"d": Decimal(one), "e": Decimal(two)} for one, two in (("0.10", "0"), ("1", "1.01"), ("1", "1"), ("3", "0"))
    ]
    world = World(code, given, scope)
    world.put({"x": 2.0})
    assert [world.fence(arc, at)[0] for at in range(4)] == [True, True, True, False]
    assert world.run(arc.transfer, 0) == (1, 0)
    assert world.register() == [0.1]


def test_times_of_two_units() -> None:
    code, arc = added("e.late > r.at")
    world = World(code, [dict.fromkeys(EVENTS) | {"late": one} for one in EVENT["late"]])
    world.put({name: one[0] for name, one in FIRST.items()})
    assert [world.fence(arc, at)[0] for at in range(3)] == [False, False, True]


def test_a_moment_in_the_unit_of_its_field() -> None:
    scope = Scope({}, {"at": pa.timestamp("ms")})
    code = AfaCode({}, scope.register)
    arc = code.add(Arc("a", "q0", "q1", None, read_transfer("at = '2020-01-01 00:00:00.003'", scope)))
    world = World(code, [{}], scope)
    assert world.run(arc.transfer, 0) == (1, 0)
    assert world.register() == [dt.datetime(2020, 1, 1, 0, 0, 0, 3000)]


def test_faults() -> None:
    row = dict.fromkeys(EVENTS) | {"i": 1 << 62, "f": 0.0}
    code, over = added("r.n + e.i > 0 OR NOT (e.i * 4 > 0)", "n = r.n + e.i, m = e.j")
    _, null = added(None, "n = r.n / e.f, x = 1" if False else "x = r.n / e.f", code=code)
    _, late = added(None, "m = e.j, n = r.n + e.i", code=code)
    world = World(code, [row])
    world.put({name: one[-1] for name, one in FIRST.items()})
    assert world.fence(over, 0) == (False, OVERFLOWED)
    assert world.run(over.transfer, 0) == (0, OVERFLOWED)  # the first fault, in the order of the fields
    assert world.run(null.transfer, 0) == (0, IS_NULL)
    assert world.run(late.transfer, 0) == (0, OVERFLOWED)
    assert world.P[REG:, 1].tolist() == [0] * len(REGISTER)
    world.F[:] = RAISED
    assert run(code.theta(), null.transfer, 1, world.E, world.P, world.F) == 0
    assert world.F[0, 0] == RAISED


@numba.njit
def product(a, b, F):  # type: ignore[no-untyped-def]
    return multiplied(a, b, F)


def test_products_at_the_end_of_the_range() -> None:
    choice = Seeded(1)
    most = 1 << 63
    F = np.zeros((1, 1), np.int64)
    for _ in range(cases(20_000)):
        a = choice.integer(1, (1 << choice.integer(1, 63)) - 1) * choice.one_of((1, -1))
        b = choice.one_of((1, -1)) * (most // a + choice.integer(-2, 2))
        a, b = choice.one_of(((a, b), (b, a), (-most, b), (a, 1), (-1, -most)))
        if -most <= b < most and -most <= a < most:
            F[:] = 0
            found = product(a, b, F)
            fits = -most <= a * b < most
            assert (F[0, 0] == 0) == fits, (a, b)
            assert found == (a * b if fits else 0)


def test_too_many_words() -> None:
    events = {f"c{at}": pa.int64() for at in range(70)}
    with pytest.raises(LimitError, match="more than 62 values"):
        AfaCode(events, REGISTER, keep_all=True)


# ---- Python functions


def function(given: Any, scope: Scope = SCOPE) -> UserFunction:
    return read_function(given, scope)


def test_python_functions() -> None:
    code = AfaCode(EVENTS, REGISTER)
    fence = function(lambda e, r: e.f > r.x and not e.b)
    transfer = function(lambda e, r: (r.n + e.j, r.m, e.i, not r.b, r.at + 1))
    arc = code.add(Arc("a", "q0", "q1", fence, transfer))
    assert code.add(Arc("b", "q1", "q1", fence, transfer)) == arc
    assert code.version == 2
    row = dict.fromkeys(EVENTS) | {"f": 3.0, "b": False, "i": 7, "j": 2}
    world = World(code, [row, row | {"b": True}, row | {"f": None}, row | {"j": None}])
    world.put({"n": 5, "m": 6, "x": 0.5, "s": "b", "b": False, "at": dt.datetime(2020, 1, 1)})
    assert [world.fence(arc, at) for at in range(4)] == [(True, 0), (False, 0), (False, 0), (True, 0)]
    assert world.run(arc.transfer, 0) == (1, 0)
    words = int(world.words.of(pa.array(["b"]))[0][0])
    assert world.register() == [7, 6, 7.0, words, 1, dt.datetime(2020, 1, 1, 0, 0, 0, 1)]
    assert world.run(arc.transfer, 3) == (0, IS_NULL)


def test_python_functions_that_raise() -> None:
    def careful(e, r):  # type: ignore[no-untyped-def]
        if e.i > 3:
            raise ValueError("too much")
        return 1.0 / r.x > 1

    def counted(e, r):  # type: ignore[no-untyped-def]
        return (r.n // e.i, r.m, r.x, r.b, r.at)

    code = AfaCode(EVENTS, REGISTER)
    arc = code.add(Arc("a", "q0", "q1", function(careful), function(counted)))
    world = World(code, [dict.fromkeys(EVENTS) | {"i": one} for one in (1, 4, 0)])
    world.put({name: one[0] for name, one in FIRST.items()} | {"x": 0.5})
    assert world.fence(arc, 0) == (True, 0)
    assert world.fence(arc, 1) == (False, RAISED)
    assert world.run(arc.transfer, 2) == (0, RAISED)
    world.put({name: one[0] for name, one in FIRST.items()})
    assert world.fence(arc, 0) == (False, RAISED)


def test_python_functions_of_epsilon_arcs() -> None:
    code = AfaCode(EVENTS, REGISTER)
    fence = read_function(lambda e, r: r.n > 0, SCOPE, epsilon=True)
    arc = code.add(Arc("a", "q0", "q1", fence, None, Kind.EPSILON))
    world = World(code, [])
    world.put({name: one[1] for name, one in FIRST.items()} | {"b": True})
    assert world.run(arc.fence, -1) == (1, 0)  # row 0 has no event


def test_a_named_tuple_in_another_order() -> None:
    from typing import NamedTuple

    class Turned(NamedTuple):
        low: float
        n: int

    scope = Scope({"price": pa.float64()}, {"n": pa.int64(), "low": pa.float64()})
    code = AfaCode(scope.events, scope.register)
    arc = code.add(Arc("a", "q0", "q1", None, function(lambda e, r: Turned(e.price, r.n + 1), scope)))
    world = World(code, [{"price": 2.5}], scope)
    assert world.run(arc.transfer, 0) == (1, 0)
    assert world.register() == [1, 2.5]


def test_what_is_fixed_when_a_function_is_compiled() -> None:
    limit = 3
    code = AfaCode(EVENTS, REGISTER)
    arc = code.add(Arc("a", "q0", "q1", function(lambda e, r: e.i > limit)))
    assert World(code, [dict.fromkeys(EVENTS) | {"i": 4}]).fence(arc, 0) == (True, 0)


REFUSED = [
    ("when", lambda e, r: r.n, "gives an integer, and a fence needs a truth value: compare it: … > 0"),
    ("when", lambda e, r: None, "gives nothing, and a fence needs a truth value: return True or False"),
    ("when", lambda e, r: "x", "gives a string, and a fence needs a truth value: return True or False"),
    ("then", lambda e, r: r.n, "gives an integer, and a transfer needs a tuple: return (n, x)"),
    ("then", lambda e, r: (1, 2, 3), "gives 3 values, and the register has 2: return (n, x)"),
    ("then", lambda e, r: (1.5, 2), "gives a float for the field 'n', which is an integer: round it: int(…)"),
    ("then", lambda e, r: (e.b, 2), "gives a truth value for the field 'n', which is an integer: round it: int(…)"),
    ("then", lambda e, r: e, "gives the fields (b), and the register has (n, x)"),
]


@pytest.mark.parametrize(("role", "given", "message"), REFUSED)
def test_results_that_do_not_fit(role: str, given: Any, message: str) -> None:
    scope = Scope(
        {"b": pa.bool_()} | ({"c": pa.bool_()} if "fields" not in message else {}), {"n": pa.int64(), "x": pa.float64()}
    )
    if "fields" in message:
        scope = Scope({"b": pa.bool_()}, {"n": pa.int64()})
        message = "gives the fields (b), and the register has (n,)"
    code = AfaCode(scope.events, scope.register)
    code.add(Arc("z", "q0", "q1", read_fence("r.n > 3", scope)))
    before = code.version, len(code.columns), dict(code.called)
    with pytest.raises(OptionError) as caught:  # noqa: PT012 - where Numba is switched off, only the result tells
        arc = code.add(Arc("a", "q0", "q1", **{role: UserFunction(given, "mine", ("b",))}))
        assert not COMPILED
        world = World(code, [dict.fromkeys(scope.events, True)], scope)
        world.run(max(arc.fence, arc.transfer), 0)
    assert str(caught.value) == f"mine {message}"
    if COMPILED:
        assert (code.version, len(code.columns), code.called) == before


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_functions_that_do_not_compile() -> None:
    code = AfaCode(EVENTS, REGISTER)
    with pytest.raises(OptionError, match=r"mine does not compile: Unknown attribute 'prize' of type Event\("):
        code.add(Arc("a", "q0", "q1", UserFunction(lambda e, r: e.prize > 3, "mine")))
    assert code.columns == []
    assert code.called == {}


def test_a_field_whose_name_is_none_for_a_tuple() -> None:
    scope = Scope({"x y": pa.int64(), "ok": pa.int64()}, {"a b": pa.int64()})
    code = AfaCode(scope.events, scope.register)
    with pytest.raises(OptionError, match="mine: the register's field 'a b' cannot be a named tuple's"):
        code.add(Arc("a", "q0", "q1", None, UserFunction(lambda e, r: (1,), "mine")))
    arc = code.add(Arc("a", "q0", "q1", function(lambda e, r: e.ok > 1, scope)))
    world = World(code, [{"x y": 1, "ok": 2}], scope)
    assert world.fence(arc, 0) == (True, 0)


def test_no_attribute_is_a_number() -> None:
    scope = Scope({"s": pa.string()}, {})
    code = AfaCode(scope.events, scope.register)
    arc = code.add(Arc("a", "q0", "q1", function(lambda e, r: True, scope), function(lambda e, r: (), scope)))
    world = World(code, [{"s": "x"}], scope)
    assert world.fence(arc, 0) == (True, 0)
    assert world.run(arc.transfer, 0) == (1, 0)
