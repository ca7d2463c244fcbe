"""Random conditions where exactness, NULL and 64 bits matter: decimals of several widths, great integers, guards."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

KINDS: dict[str, pa.DataType] = {
    "x": pa.int64(),
    "y": pa.int32(),
    "c": pa.decimal128(4, 2),
    "d": pa.decimal128(18, 4),
    "e": pa.decimal128(38, 18),
    "g": pa.decimal256(40, 6),
    "f": pa.float64(),
}

#: The same with a string, lists and times.
TYPES = {
    **KINDS,
    "s": pa.string(),
    "l": pa.list_(pa.int64()),
    "ss": pa.large_list(pa.string()),
    "tm": pa.timestamp("ms"),
    "tu": pa.timestamp("us"),
    "day": pa.date32(),
}

TIMES = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 5, 0, 1000), dt.datetime(2023, 12, 31, 23, 59), None]
DURATIONS = ["5 minutes", "1 day", "60000 ms", "1 minute 1 ms", "0.5 s", "1 us", "7 ns", "300 weeks"]

VALUES: dict[str, list[Any]] = {
    "x": [0, 1, -1, 2, 3, 10, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), 2**53 + 1, None],
    "y": [0, 1, -1, 2, 3, -(2**31), 2**31 - 1, None],
    "c": [Decimal(one) for one in ("0.10", "0.20", "0.30", "-0.10", "1.00", "99.99")] + [None],
    "d": [Decimal(one) for one in ("0.1000", "0.2000", "0.3000", "99999999999999.9999", "-1.5000")] + [None],
    "e": [Decimal(one) for one in ("0.1", "0.3", "0.300000000000000001", "-12345678901234567890.1", "3")] + [None],
    "g": [Decimal(one) for one in ("0.1", "0.2", "0.3", "-9999999999999999999999999999999999.999999")] + [None],
    "f": [0.0, 0.1, 0.3, -1.5, 3.0, 1e300, float("nan"), None],
}

TEXTS = ["", "a", "A", "ab", "aB", "ß", "SS", "ǆ", "😀", None]

LITERALS = [
    "0",
    "1",
    "3",
    "-2",
    "0.1",
    "0.2",
    "0.3",
    "0.30",
    "1.5",
    "-0.1",
    "2147483648",
    "4611686018427387904",
    "1e19",
    "9223372036854775808.0",
]


def operand(rng: random.Random, names: Sequence[str], depth: int = 2) -> str:
    """A value over some names, with brackets around what is computed."""
    if not depth or rng.random() < 0.4:
        return rng.choice(names) if rng.random() < 0.7 else rng.choice(LITERALS)
    if rng.random() < 0.15:
        return f"(-{rng.choice(names)})"
    if rng.random() < 0.2:
        return called(rng, names, depth - 1)
    if rng.random() < 0.12:
        other = rng.choice(["", " ELSE NULL", f" ELSE {operand(rng, names, depth - 1)}"])
        return f"(CASE WHEN {condition(rng, names, 0)} THEN {operand(rng, names, depth - 1)}{other} END)"
    sign = rng.choice("++--***/")
    sides = [rng.choice(names), operand(rng, names, depth - 1)]
    rng.shuffle(sides)
    return f"({sides[0]} {sign} {sides[1]})"


def called(rng: random.Random, names: Sequence[str], depth: int) -> str:
    """A function that gives a number."""
    name = rng.choice(["abs", "round", "round", "floor", "ceil", "coalesce", "length"])
    if name == "length":
        return f"length({text(rng, names)})"
    more = ""
    if name == "coalesce":
        more = "".join(f", {operand(rng, names, depth)}" for _ in range(rng.randint(1, 2)))
    elif name == "round" and rng.random() < 0.6:
        more = f", {rng.choice([0, 1, 2, 15])}"
    return f"{name}({operand(rng, names, depth)}{more})"


def text(rng: random.Random, names: Sequence[str], depth: int = 2) -> str:
    """A string of the event of one of the names."""
    own = rng.choice(names).rpartition(".")[0]
    own = f"{own}.s" if own else "s"
    if not depth or rng.random() < 0.3:
        return own
    name = rng.choice(["upper", "lower", "||", "coalesce"])
    inside = text(rng, [own], depth - 1)
    if name == "||":
        return f"({inside} || {rng.choice([own, chr(39) + 'b' + chr(39)])})"
    return f"coalesce({inside}, {rng.choice([own, chr(39) + chr(39)])})" if name == "coalesce" else f"{name}({inside})"


def time(rng: random.Random, names: Sequence[str], depth: int = 2) -> str:
    """A time of the event of one of the names."""
    own = rng.choice(names).rpartition(".")[0]
    one = rng.choice(["tm", "tu", "tu", "day"])
    one = f"{own}.{one}" if own else one
    return (
        f"({time(rng, [one], depth - 1)} {rng.choice('+-')} {duration(rng, [one], 0)})"
        if depth and rng.random() < 0.4
        else one
    )


def duration(rng: random.Random, names: Sequence[str], depth: int = 2) -> str:
    """A difference of times, a literal, or what is computed of these."""
    if not depth or rng.random() < 0.3:
        return rng.choice(DURATIONS)
    if rng.random() < 0.3:
        inside = duration(rng, names, depth - 1)
        return rng.choice([f"abs({inside})", f"(-{inside})", f"({inside} * 3)", f"coalesce({inside}, 1 s)"])
    return f"({time(rng, names, depth - 1)} - {time(rng, names, depth - 1)})"


def timed(rng: random.Random, names: Sequence[str]) -> str:
    """A condition that computes with times."""
    first, op = time(rng, names), rng.choice(["=", "!=", "<", "<=", ">", ">="])
    span = f"({first} - {time(rng, names)})"
    return rng.choice(
        [
            f"{first} {op} ({time(rng, names, 1)} + {rng.choice(DURATIONS)})",
            f"{span} {op} {duration(rng, names)}",
            f"{span} {op} {duration(rng, names)}",
            f"{span} BETWEEN {rng.choice(DURATIONS)} AND {rng.choice(DURATIONS)}",
            f"{span} / 1 minute {op} {rng.choice(LITERALS)}",
            f"({first} + 1 s) {op} '2024-01-01 00:04:59.001'",
            f"{span} IS NULL",
        ]
    )


def condition(rng: random.Random, names: Sequence[str], depth: int = 2) -> str:  # noqa: PLR0911 - one form after the other
    """A condition in which each comparison reads one of the names."""
    choice = rng.random()
    if depth and choice < 0.5:
        parts = [condition(rng, names, depth - 1) for _ in range(rng.randint(2, 3))]
        return "(" + f" {rng.choice(['AND', 'AND', 'OR'])} ".join(parts) + ")"
    if depth and choice < 0.6:
        return f"NOT ({condition(rng, names, depth - 1)})"
    other = rng.random()
    if other < 0.12:
        return timed(rng, names)
    if other < 0.24:
        left = text(rng, names)
        right = text(rng, names) if rng.random() < 0.5 else repr(rng.choice(TEXTS[:-1]))
        forms = [
            f"{rng.choice(['=', '!=', '<', '>='])} {right}",
            "IN ('a', 'AB', '')",
            "LIKE 'a%'",
            "IS NULL",
            "RLIKE '^(a|[^a])b*$'",
        ]
        return f"{left} {rng.choice(forms)}"
    if other < 0.3:
        own = rng.choice(names).rpartition(".")[0]
        own = f"{own}." if own else ""
        left, values = rng.choice([(f"{own}x", "l"), (operand(rng, [f"{own}y"]), "l"), (f"{own}s", "ss")])
        return f"{left} {rng.choice(['', 'NOT '])}IN {own}{values}"
    # Not more than two of the names, so that comparisons without a float are frequent.
    few = rng.sample(list(names), min(2, len(names)))
    left = f"({rng.choice(few)} {rng.choice('+-*')} {operand(rng, few)})" if rng.random() < 0.7 else rng.choice(few)
    if choice < 0.7:
        return f"{left} IS {rng.choice(['', 'NOT '])}NULL"
    if choice < 0.77:
        return f"{left} IN ({', '.join(rng.choice(LITERALS) for _ in range(2))})"
    if choice < 0.85:
        return f"{left} BETWEEN {operand(rng, few, 1)} AND {operand(rng, few, 1)}"
    return f"{left} {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {operand(rng, few)}"


def table(rng: random.Random, rows: int, types: str = "AABBC") -> pa.Table:
    """Random events; few in which a key is NULL."""
    columns = {name: pa.array([rng.choice(VALUES[name]) for _ in range(rows)], kind) for name, kind in KINDS.items()}
    return pa.table(
        {
            "type": pa.array([rng.choice(types) for _ in range(rows)]),
            "k": pa.array([rng.choice([1, 2, 2, None]) for _ in range(rows)], pa.int64()),
            "s": pa.array([rng.choice(TEXTS) for _ in range(rows)]),
            "l": _lists(rng, rows, VALUES["x"], TYPES["l"]),
            "ss": _lists(rng, rows, TEXTS, TYPES["ss"]),
            **{name: _times(rng, rows, TYPES[name]) for name in ("tm", "tu", "day")},
            **columns,
        }
    )


def _lists(rng: random.Random, rows: int, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([rng.choice([None, [], rng.choices(values, k=3)]) for _ in range(rows)], kind)


def _times(rng: random.Random, rows: int, kind: pa.DataType) -> pa.Array:
    """Some minutes around a new year, and times that nanoseconds of 64 bits do not reach."""
    ends = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)] if rng.random() < 0.3 else []
    found = [rng.choice(TIMES + ends) for _ in range(rows)]
    return pa.array([one and one.date() for one in found] if pa.types.is_date(kind) else found, kind)
