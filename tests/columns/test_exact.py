"""Conditions in all their forms against the definitions: exact decimals, and overflows that matter or do not."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import stretto
from stretto.columns.overflow import IntegerOverflow
from stretto.columns.vectorized import computed, judged, mask
from stretto.events import Schema
from stretto.languages.ceql import parse
from stretto.query import predicate as p
from stretto.query.algebra import Filter
from stretto.query.evaluate import Beyond, bounded, holds, truth
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.cnf import conjuncts
from stretto.query.typing import is_exact, type_of_operand, typed, typed_operand
from tests.columns.exact_cases import KINDS, TYPES, condition, operand, table
from tests.conftest import cases
from tests.reference.ceql import evaluate
from tests.reference.sase import evaluate_sase


def read(text: str) -> p.Predicate:
    pattern = parse(f"SELECT * FROM S WHERE A FILTER A[{text}]").pattern
    assert isinstance(pattern, Filter)
    return pattern.predicate


def fraction(operand: p.Operand, row: Mapping[str, Any]) -> Fraction | None:
    """What decimals, integers and literals come to by the rules of arithmetic."""
    match operand:
        case p.Attribute(name):
            return None if row[name] is None else Fraction(row[name])
        case p.Constant(constant):
            return Fraction(constant)  # type: ignore[arg-type]
        case p.Negative(inner):
            found = fraction(inner, row)
            return None if found is None else -found
        case p.Arithmetic(op, first, second):
            left, right = fraction(first, row), fraction(second, row)
            if left is None or right is None:
                return None
            return left + right if op == "+" else left - right if op == "-" else left * right
    raise AssertionError(operand)


@pytest.mark.parametrize("seed", range(cases(300)))
def test_masks_agree_with_the_definitions(seed: int) -> None:
    """Column-wise, row by row, and with fractions as the judge where a comparison is one of decimals."""
    rng = random.Random(seed)
    events = table(rng, 25)
    rows = events.to_pylist()
    for _ in range(4):
        text = condition(rng, list(KINDS))
        predicate = typed(read(text), TYPES, text)
        told = [truth(predicate, row) for row in rows]
        found, unknown = judged(predicate, events)
        assert [one is True for one in told] == found.tolist(), (seed, text)
        assert [isinstance(one, Beyond) for one in told] == ([False] * 25 if unknown is None else unknown.tolist()), (
            seed,
            text,
        )
        assert all(isinstance(one, Beyond) or one == holds(predicate, row) for one, row in zip(told, rows, strict=True))
        beyond = next((row for row, one in enumerate(told) if isinstance(one, Beyond)), None)
        if beyond is not None:
            with pytest.raises(IntegerOverflow, match=f"at row {beyond}: .* beyond 64 bits"):
                mask(predicate, events)
        for node in p.walk(predicate):
            if isinstance(node, p.Comparison) and is_exact(node, KINDS):
                for row in rows:
                    exact = fraction(node.left, row), fraction(node.right, row)
                    assert holds(p.Comparison("=", node.left, node.right), row) == (
                        None not in exact and exact[0] == exact[1]
                    )
                    assert holds(p.Comparison("<", node.left, node.right), row) == (
                        None not in exact and exact[0] < exact[1]  # type: ignore[operator]
                    )


@pytest.mark.parametrize("seed", range(cases(100)))
def test_ceql_agrees_with_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    events = table(rng, 14)
    first, second = condition(rng, list(KINDS)), condition(rng, list(KINDS), 1)
    text = f"SELECT * FROM S WHERE A AS a ; B AS b FILTER a[{first}] AND b[{second}]"
    text += rng.choice(["", " PARTITION BY [k]"])
    query = stretto.compile(text, schema=events.schema)
    asked = {"A": typed(read(first), TYPES), "B": typed(read(second), TYPES)}
    doubtful = [
        row
        for row, event in enumerate(events.to_pylist())
        if event["type"] in asked
        and ("PARTITION" not in text or event["k"] is not None)
        and isinstance(truth(asked[event["type"]], event), Beyond)
    ]
    if doubtful:
        with pytest.raises(IntegerOverflow, match=f"at row {doubtful[0]}:"):
            stretto.match(query, events)
        with pytest.raises(IntegerOverflow, match=f"at row {doubtful[0]}:"):
            stretto.Matcher(query).push(events)
        return
    found = stretto.match(query, events, output="positions")
    expected = evaluate(query.bound, events)
    assert sorted(found.column("positions").to_pylist()) == sorted(sorted(one.positions) for one in expected), (
        seed,
        text,
    )


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("seed", range(cases(200, compiled=1)))
def test_sase_agrees_with_the_reference(seed: int) -> None:
    """Conditions between events run as code; an overflow counts where the rest of its conditions does not decide."""
    rng = random.Random(seed)
    events = table(rng, 12)
    names = [f"{variable}.{name}" for variable in "ab" for name in KINDS]
    text = " AND ".join(condition(rng, names, 1) for _ in range(rng.randint(1, 2)))
    if "*" in text:  # products of wide decimals leave 76 digits
        text = text.replace(".e", ".d").replace(".g", ".c")
    text = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {text} }}"
    query = stretto.compile(text, schema=events.schema)
    bound = query.bound
    assert isinstance(bound, BoundSase)
    if _too_many(bound):
        return
    doubtful = _doubtful(bound, events.to_pylist())
    if doubtful:
        with pytest.raises(IntegerOverflow):
            stretto.match(query, events)
        return
    found = stretto.match(query, events, output="positions")
    expected = evaluate_sase(bound, events)
    assert sorted(found.column("positions").to_pylist()) == sorted(list(one.positions) for one in expected), (
        seed,
        text,
    )


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("seed", range(1, 1 + cases(100, compiled=1)))
def test_sase_on_a_disordered_stream_agrees_with_the_reference(seed: int) -> None:
    """Registers have no NULL, and know strings by their numbers: what is computed of them is kept in their place."""
    rng = random.Random(seed)
    events = table(rng, 12).append_column("t", pa.array(range(12)))
    names = [f"{variable}.{name}" for variable in "ab" for name in "xyf"]
    text = " AND ".join(condition(rng, names, 1) for _ in range(rng.randint(1, 2)))
    text = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {text} }} WITHIN 12"
    query = stretto.compile(text, schema=events.schema, time="t")
    bound = query.bound
    assert isinstance(bound, BoundSase)
    if _too_many(bound):
        return
    try:
        matcher = stretto.Matcher(query, speculation=math.inf, output="positions")
    except stretto.QueryError as error:
        assert "strings of" in str(error), text  # noqa: PT017
        return
    if _doubtful(bound, events.to_pylist()):
        return
    order = list(range(12))
    rng.shuffle(order)
    found: Counter[tuple[int, int]] = Counter()
    for part in (matcher.push(events.take(order)), matcher.finish()):
        for row in part.to_pylist():
            found[row["start_time"], row["end_time"]] += row.get("sign", 1)
    expected = Counter((one.start, one.end) for one in evaluate_sase(bound, events))
    assert +found == expected, (seed, text)


def _too_many(bound: BoundSase) -> bool:
    """Whether ORs, of CASE perhaps, multiply beyond what an automaton takes."""
    assert bound.condition is not None
    try:
        return len(conjuncts(bound.condition)) > 32
    except stretto.LimitError:
        return True


@pytest.mark.parametrize("seed", range(cases(200)))
def test_cases_are_the_values_that_they_give(seed: int) -> None:
    """Without CASE a condition says the same, and whole columns of values are those of single rows."""
    rng = random.Random(seed)

    def value(depth: int) -> p.Operand:
        if depth and rng.random() < 0.6:
            conditions = tuple(asked(depth - 1) for _ in range(rng.randint(1, 2)))
            return p.Case(conditions, tuple(value(depth - 1) for _ in range(len(conditions) + 1)))
        if depth and rng.random() < 0.5:
            inner = value(depth - 1)
            return p.Negative(inner) if rng.random() < 0.5 else p.Function("coalesce", (value(0), inner))
        leaves: list[p.Operand] = [p.Attribute("x"), p.Attribute("y"), p.Constant(1), p.Constant(2), p.NULL]
        return rng.choice(leaves)

    def asked(depth: int) -> p.Predicate:
        match rng.randint(0, 6) if depth else rng.randint(3, 6):
            case 0 | 1:
                parts = tuple(asked(depth - 1) for _ in range(rng.randint(0, 2)))
                return p.And(parts) if rng.random() < 0.5 else p.Or(parts)
            case 2:
                return p.Not(asked(depth - 1))
            case 3:
                return p.IsNull(value(depth))
            case 4:
                return p.In(value(depth), (p.Constant(1), p.Constant(3)))
            case _:
                return p.Comparison(rng.choice(["=", "!=", "<"]), value(depth), value(depth))

    rows = [{"x": x, "y": y} for x in (None, 1, 2, 3) for y in (None, -1, 1, 2)]
    node = asked(3)
    try:
        plain = p.without_cases(node)
    except stretto.LimitError:
        return
    assert not any(isinstance(one, p.Case) for one in p.walk(plain))
    assert [holds(plain, row) for row in rows] == [holds(node, row) for row in rows], str(node)
    events = table(rng, 20)
    text = operand(rng, list(KINDS), 3)
    if not p.attributes(own := read(f"{text} = x").left):  # type: ignore[union-attr]
        return
    shown = typed_operand(own, TYPES, text, exact=False)
    expected = [bounded(shown, row) for row in events.to_pylist()]
    if not any(isinstance(one, Beyond) for one in expected) and not isinstance(own, p.Attribute):
        kind = type_of_operand(shown, TYPES)
        found = computed(shown, events.combine_chunks().to_batches()[0], kind).to_pylist()
        assert [repr(one) for one in found] == [repr(one) for one in pa.array(expected, kind).to_pylist()], (seed, text)


def _doubtful(bound: BoundSase, rows: list[dict[str, Any]]) -> bool:
    """Whether 64 bits do not tell whether some event, or some pair of them, is asked for."""
    assert bound.condition is not None
    sides: dict[str, list[p.Predicate]] = {"a": [], "b": [], "ab": []}
    for one in conjuncts(bound.condition):
        sides["".join(sorted({name[0] for name in p.attributes(one)}))].append(one)
    if sides["ab"]:
        sides["ab"] += sides["b"]
        sides["b"] = []
    scopes = [{f"{variable}.{name}": row[name] for variable in "ab" for name in TYPES} for row in rows]
    for variable, kind in (("a", "A"), ("b", "B")):
        together = p.And(tuple(sides[variable]))
        if any(
            isinstance(truth(together, scope), Beyond)
            for row, scope in zip(rows, scopes, strict=True)
            if row["type"] == kind
        ):
            return True
    pairs = [
        {**scopes[i], **{name: scopes[j][name] for name in scopes[j] if name.startswith("b.")}}
        for i in range(len(rows))
        for j in range(i + 1, len(rows))
        if (rows[i]["type"], rows[j]["type"]) == ("A", "B") and truth(p.And(tuple(sides["a"])), scopes[i]) is True
    ]
    return any(isinstance(truth(p.And(tuple(sides["ab"])), pair), Beyond) for pair in pairs)


def test_decimals_are_compared_exactly() -> None:
    """0.10 + 0.2 is 0.3, also beyond what doubles hold, and in one event as between two."""
    with localcontext(prec=80):
        great = Decimal("98765432109876543210.100000000000000001")
        values = [Decimal("0.10"), great]
        events = pa.table(
            {
                "type": ["A", "B", "A", "B"],
                "d": pa.array(
                    [values[0], values[0] + Decimal("0.2"), great, great + Decimal("0.2")], pa.decimal128(38, 18)
                ),
            }
        )
    both = [[0, 1], [2, 3]]
    text = "PATTERN SEQ(A a, B b) WHERE partition_contiguity { a.d + 0.2 = b.d }"
    assert stretto.match(text, events, output="positions").column("positions").to_pylist() == both
    text = "PATTERN SEQ(A a, B b) WHERE partition_contiguity { b.d - a.d < 0.2 OR b.d - a.d > 0.2 }"
    assert not stretto.match(text, events).num_rows
    text = "SELECT * FROM S WHERE A AS a FILTER a[d + 0.2 = 0.3]"
    assert stretto.match(text, events, output="positions").column("positions").to_pylist() == [[0]]


def test_an_overflow_beyond_76_digits_is_named() -> None:
    kind = pa.decimal256(60, 0)
    events = pa.table({"type": ["A", "B"], "d": pa.array([Decimal(10**59), Decimal(10**59)], kind)})
    with pytest.raises(IntegerOverflow, match="at row 1"):
        stretto.match("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.d * b.d > 3 }", events)
    guarded = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.d * b.d > 3 AND a.d < b.d }"
    assert not stretto.match(guarded, events).num_rows


def test_null_in_events_that_are_in_no_stream() -> None:
    """A NULL time, or attribute of the window, of an event without a key or of a stream that is not in FROM."""
    events = pa.table(
        {
            "type": ["A", "A", "B"],
            "k": pa.array([1, None, 1], pa.int64()),
            "t": pa.array([1, None, 2], pa.int64()),
            "x": pa.array([1, None, 2], pa.int64()),
        }
    )
    for window in ("WITHIN 5 [t]", "WITHIN 5 [x]"):
        text = f"SELECT * FROM S WHERE A ; B PARTITION BY [k] {window}"
        matcher = stretto.Matcher(text, time="t", schema=Schema.of(events).attributes)
        assert matcher.push(events).num_rows == 1


GREAT = 2**62


@pytest.mark.parametrize(
    ("first", "second", "keys", "expected"),
    [
        # An event of another type, and one that another side of AND leaves out.
        ("e.type = 'A' AND e.x * 4 > 3 AND e.k = 1", "e.type = 'B'", [], [(1, 2)]),
        ("e.x * 4 > 3 AND e.type = 'A' AND e.x < 9", "e.type = 'B'", [], [(1, 2)]),
        # One without a key.
        ("e.type = 'A' AND e.x * 4 > 3", "e.type = 'B'", ["k"], [(1, 2)]),
        ("e.type = 'A' AND e.x * 4 > 3", "e.type = 'B'", [], "row 3"),
        # Beside the register.
        ("e.type = 'A' AND e.x < 9", "e.x * r.n * 2 > 3 AND r.n > 5", [], []),
        ("e.type = 'A' AND e.x < 9", "NOT (e.x * e.x <= 3 OR r.n < 5)", [], []),
        ("e.type = 'A' AND e.x < 9", "e.x * e.x > 3 AND r.n < 5", [], "row 2"),
        # Decimals.
        ("e.type = 'A' AND e.d + 0.2 = 0.3 AND e.x < 9", "e.d = r.n - 1.7", [], [(1, 2)]),
        ("e.type = 'A' AND e.d + 0.2 = 0.3 AND e.x < 9", "e.d * r.n = 0.6 AND -e.d < r.n", [], [(1, 2)]),
    ],
)
def test_afa(first: str, second: str, keys: list[str], expected: list[tuple[int, int]] | str) -> None:
    kinds = {"type": pa.string(), "x": pa.int64(), "d": pa.decimal128(10, 2), "k": pa.int64()}
    rows = [("X", GREAT, "1", 1), ("A", 2, "0.10", 1), ("B", GREAT, "0.30", 1), ("A", GREAT, "0.10", None)]
    columns = [pa.array(column) for column in zip(*((a, b, Decimal(c), d) for a, b, c, d in rows), strict=True)]
    events = pa.table(dict(zip(kinds, columns, strict=True))).cast(pa.schema(list(kinds.items())))
    events = events.append_column("t", pa.array(range(4)))
    afa = stretto.AFA(kinds, {"n": int}, window=9, partition_by=keys)
    afa.arc("q0", "q1", when=first, then="n = e.x").arc("q1", "q2", when=second).final("q2")
    if isinstance(expected, str):
        with pytest.raises(stretto.DataError, match=f"an integer leaves 64 bits at {expected}\n"):
            stretto.match(afa, events, time="t")
        return
    found = stretto.match(afa, events, time="t").to_pylist()
    assert [(row["start"], row["end"]) for row in found] == expected


@pytest.mark.parametrize("late", [{"disorder": 2}, {"speculation": math.inf}])
@pytest.mark.parametrize(
    ("condition", "rows", "expected"),
    [
        ("a.x * 4 > 3", 4, 2),
        ("a.x * b.x * 4 > 3 AND b.x < 9", 4, 1),
        ("a.x * 4 > 3", 5, None),
        ("a.x * 4 > 3 AND a.k IS NOT NULL", 5, 2),
    ],
)
def test_disordered(condition: str, rows: int, expected: int | None, late: dict[str, Any]) -> None:
    """An X whose product overflows, and an A without a key, which comes last."""
    query = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {condition} }} WITHIN 9"
    events = pa.table(
        {
            "type": list("XABBA"),
            "x": [GREAT, 2, 3, GREAT, GREAT],
            "k": pa.array([1, 1, 1, 1, None], pa.int64()),
            "t": range(5),
        }
    ).slice(0, rows)
    matcher = stretto.Matcher(query, time="t", **late, output="positions", schema=events.schema)

    def matches() -> int:
        tables = [matcher.push(events.take([1, 0, *range(2, rows)])), matcher.finish()]
        signs = [one.column("sign").to_pylist() if "sign" in one.column_names else [1] * one.num_rows for one in tables]
        return sum(map(sum, signs))

    if expected is None:
        with pytest.raises(stretto.DataError, match="64 bits"):
            matches()
    else:
        assert matches() == expected


def test_a_set_of_patterns() -> None:
    """Each pattern asks of its own events only: those with its types, its streams and its keys."""
    events = pa.table(
        {
            "type": list("XABAB"),
            "x": [GREAT, 2, 3, GREAT, 1],
            "k": pa.array([1, 1, 1, None, 1], pa.int64()),
            "t": range(5),
        }
    )
    query = "SELECT * FROM S WHERE A AS a ; B FILTER a[x * 4 > 3]"
    patterns = stretto.PatternSet(events.schema, time="t")
    patterns.change(stretto.Change("keyed", f"{query} PARTITION BY [k]"))
    assert patterns.push(events).num_rows == 2
    patterns = stretto.PatternSet(events.schema, time="t")
    patterns.change(stretto.Change("keyed", f"{query} PARTITION BY [k]"))
    patterns.change(stretto.Change("all", query))
    with pytest.raises(stretto.DataError, match=r"^pattern 'all': integer overflow in \(x \* 4\) at row 3: "):
        patterns.push(events)
