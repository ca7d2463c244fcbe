"""Random Datalog programs, and what they mean, by naive evaluation of every rule over sets of tuples."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from stretto.dataflow import Dataflow, datalog
from stretto.errors import QueryError
from stretto.languages.datalog import read_program
from stretto.languages.datalog.tree import Aggregate, Goal, Literal, Program, Rule, variables
from stretto.query import predicate as p

__all__ = ["SOURCES", "DatalogCase", "case", "check", "program_of", "rows_of"]

Row = tuple[Any, ...]
Relations = dict[str, set[Row]]

SOURCES: dict[str, dict[str, type]] = {
    "e": {"src": int, "dst": int},
    "w": {"src": int, "dst": int, "cost": int},
    "f": {"id": int, "tag": str},
    "x": {"id": int, "size": float},
    "ok": {"id": int, "good": bool},
}

VALUES: dict[type, tuple[Any, ...]] = {
    int: (0, 1, 2, 3, 4),
    str: ("a", "b", "it's"),
    float: (0.5, 1.0, 2.0),
    bool: (False, True),
}


# ---- Meaning


class Unstratified(Exception):
    """A relation depends on its own negation or aggregate."""


def meaning_of(program: Program, sources: Mapping[str, set[Row]]) -> Relations:
    """All relations of a program: stratum by stratum, each to its fixed point, every rule again in each round."""
    level = _levels(program, set(sources))
    found: Relations = {name: set(rows) for name, rows in sources.items()} | {name: set() for name in level}
    for stratum in sorted(set(level.values())):
        names = [name for name in level if level[name] == stratum]
        for _ in range(1000):
            before = {name: found[name] for name in names}
            fresh = {name: _derived([one for one in program.rules if one.head.name == name], found) for name in names}
            found |= fresh
            if fresh == before:
                break
        else:
            raise AssertionError("no fixed point")
    return found


def _levels(program: Program, sources: set[str]) -> dict[str, int]:
    level = {rule.head.name: 0 for rule in program.rules}
    for _ in range(len(level) ** 2 + 2):
        changed = False
        for rule in program.rules:
            hard = any(one.function not in ("min", "max") for _, one in rule.head.aggregates)
            for goal in rule.body:
                if isinstance(goal, Literal) and goal.atom.name in level:
                    least = level[goal.atom.name] + (hard or goal.negated)
                    if level[rule.head.name] < least:
                        level[rule.head.name], changed = least, True
        if not changed:
            return level
    raise Unstratified


def _derived(rules: list[Rule], found: Relations) -> set[Row]:
    if not rules[0].head.aggregates:
        return {
            tuple(_value(one, given) for one in rule.head.arguments)  # type: ignore[arg-type]
            for rule in rules
            for given in _solutions(rule, found)
        }
    groups: dict[Row, list[Row]] = {}
    places = [at for at, _ in rules[0].head.aggregates]
    for rule in rules:
        named = [name for goal in rule.body if isinstance(goal, Literal) and not goal.negated for name in _names(goal)]
        for solution in {tuple(sorted((name, given[name]) for name in named)) for given in _solutions(rule, found)}:
            # Assigned variables follow from those of the relations.
            given = next(one for one in _finished(rule, dict(solution)))
            values = [
                (1 if one.value is None else _value(one.value, given))
                if isinstance(one, Aggregate)
                else _value(one, given)
                for one in rule.head.arguments
            ]
            key = tuple(value for at, value in enumerate(values) if at not in places)
            groups.setdefault(key, []).append(tuple(values[at] for at in places))
    made = set()
    for key, rows in groups.items():
        rest, columns = iter(key), iter(zip(*rows, strict=True))
        made.add(
            tuple(
                _aggregate(one.function, list(next(columns))) if isinstance(one, Aggregate) else next(rest)
                for one in rules[0].head.arguments
            )
        )
    return made


def _aggregate(function: str, values: list[Any]) -> Any:
    if function == "avg":
        return sum(values) / len(values)
    return {"count": len, "sum": sum, "min": min, "max": max}[function](values)


def _names(literal: Literal) -> list[str]:
    return list(variables(*literal.atom.arguments))


def _solutions(rule: Rule, found: Relations) -> Iterator[dict[str, Any]]:
    """Values of the variables for which the body holds."""
    atoms = [goal.atom for goal in rule.body if isinstance(goal, Literal) and not goal.negated]

    def joined(at: int, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if at == len(atoms):
            yield from _finished(rule, given)
            return
        for row in found[atoms[at].name]:
            fits = _matched(atoms[at].arguments, row, given)
            if fits is not None:
                yield from joined(at + 1, fits)

    for given in joined(0, {}):
        if not any(
            _matched(goal.atom.arguments, row, given) is not None
            for goal in rule.body
            if isinstance(goal, Literal) and goal.negated
            for row in found[goal.atom.name]
        ):
            yield given


def _matched(arguments: tuple[p.Operand, ...], row: Row, given: dict[str, Any]) -> dict[str, Any] | None:
    made = dict(given)
    for argument, value in zip(arguments, row, strict=True):
        if isinstance(argument, p.Constant):
            if argument.value != value:
                return None
        else:
            assert isinstance(argument, p.Attribute)
            if argument.name != "_" and made.setdefault(argument.name, value) != value:
                return None
    return made


def _finished(rule: Rule, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same with what equations assign, if all comparisons hold."""
    made = dict(given)
    waiting: list[Goal] = [goal for goal in rule.body if not isinstance(goal, Literal)]
    while waiting:
        for goal in waiting:
            assert isinstance(goal, p.Comparison)
            if variables(goal).keys() <= made.keys():
                if not _holds(goal.op, _value(goal.left, made), _value(goal.right, made)):
                    return
                break
            sides = [(goal.left, goal.right), (goal.right, goal.left)]
            pair = next(
                ((a, b) for a, b in sides if isinstance(a, p.Attribute) and variables(b).keys() <= made.keys()), None
            )
            if goal.op == "=" and pair is not None:
                made[pair[0].name] = _value(pair[1], made)
                break
        waiting.remove(goal)
    yield made


def _holds(op: str, left: Any, right: Any) -> bool:
    return bool(
        {
            "=": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[op]
    )


def _value(value: p.Operand, given: Mapping[str, Any]) -> Any:
    match value:
        case p.Attribute(name):
            return given[name]
        case p.Constant(constant):
            return float(constant) if not isinstance(constant, int | str | bool) else constant  # type: ignore[arg-type]
        case p.Negative(operand):
            return -_value(operand, given)
        case p.Arithmetic(op, left, right):
            a, b = _value(left, given), _value(right, given)
            return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}.get(
                op, lambda: a % b
            )()
    raise AssertionError(value)


# ---- Programs


@dataclass
class _Variables:
    """The variables of a rule while it is made, by type."""

    choose: random.Random
    known: dict[type, list[str]]

    def argument(self, kind: type, fresh: bool = True) -> str:
        roll = self.choose.random()
        if self.known[kind] and (roll < 0.45 or not fresh):
            return self.choose.choice(self.known[kind])
        if fresh and roll < 0.85:
            name = f"{self.choose.choice('XYZ')}{len(self.known[kind])}{kind.__name__[0]}"
            if name not in self.known[kind]:
                self.known[kind].append(name)
            return name
        if fresh and roll < 0.93:
            return "_"
        return _literal(self.choose.choice(VALUES[kind]))


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def program_of(seed: int) -> str:
    """A program over :data:`SOURCES`: every rule fits the types, and recursion only computes under a limit."""
    choose = random.Random(seed)
    rows = {name: list(row.values()) for name, row in SOURCES.items()}
    derived: dict[str, list[type]] = {}
    for name in "pqrst"[: choose.randint(1, 5)]:
        derived[name] = [choose.choice((int, int, int, str, float, bool)) for _ in range(choose.randint(1, 3))]
    rules: list[str] = []
    before_of = {name: list(derived)[:number] for number, name in enumerate(derived)}
    # What aggregates give decides on their types, so they are made before anything reads them.
    for name, row in derived.items():
        if choose.random() < 0.25:
            before = {**rows, **{other: derived[other] for other in before_of[name]}}
            rules.append(_aggregating(choose, name, row, before, derived))
    if choose.random() < 0.3:
        derived["m"] = [int, int, int]
        rules += _selecting(choose)
    aggregated = {rule.split("(")[0] for rule in rules}
    for name, row in derived.items():
        if name in aggregated:
            continue
        before = {**rows, **{other: derived[other] for other in before_of[name]}}
        everything = {**rows, **derived}
        rules += [_rule(choose, name, row, before, {}) for _ in range(choose.randint(1, 2))]
        rules += [_rule(choose, name, row, before, everything) for _ in range(choose.choice((0, 0, 1, 2)))]
        if choose.random() < 0.2:
            rules.append(f"{name}({', '.join(_literal(choose.choice(VALUES[kind])) for kind in row)}).")
    if choose.random() < 0.5:
        choose.shuffle(rules)
    return "\n".join(rules)


def _rule(
    choose: random.Random, name: str, row: list[type], before: dict[str, list[type]], more: dict[str, list[type]]
) -> str:
    known = _Variables(choose, {kind: [] for kind in VALUES})
    goals = _goals(choose, known, before, more, set(row))
    arguments = []
    for kind in row:
        if kind is int and not more and known.known[int] and choose.random() < 0.2:
            arguments.append(f"{choose.choice(known.known[int])} {choose.choice(('+', '*'))} {choose.randint(1, 3)}")
        elif kind is int and known.known[int] and choose.random() < 0.15:
            goals.append(f"N = {choose.choice(known.known[int])} + 1")
            goals.append("N < 6")
            arguments.append("N")
        else:
            arguments.append(known.argument(kind, fresh=False))
    return f"{name}({', '.join(arguments)}) :- {', '.join(goals)}."


def _goals(
    choose: random.Random,
    known: _Variables,
    before: dict[str, list[type]],
    more: dict[str, list[type]],
    needed: set[type],
) -> list[str]:
    goals = []
    for _ in range(choose.randint(1, 3)):
        pool = more if more and choose.random() < 0.6 else before
        other = choose.choice(list(pool))
        goals.append(f"{other}({', '.join(known.argument(kind) for kind in pool[other])})")
    if choose.random() < 0.35:
        other = choose.choice(list(before))
        arguments = []
        for kind in before[other]:
            constant = choose.choice(("_", _literal(choose.choice(VALUES[kind]))))
            held = known.known[kind]
            arguments.append(choose.choice(held) if held and choose.random() < 0.7 else constant)
        goals.append(f"{choose.choice(('not ', '!'))}{other}({', '.join(arguments)})")
    if choose.random() < 0.4:
        kind = choose.choice([int, int, float, str])
        if known.known[kind]:
            op = choose.choice(("=", "!=") if kind is str else ("=", "!=", "<", "<=", ">", ">="))
            left = choose.choice(known.known[kind])
            right = choose.choice([*known.known[kind], _literal(choose.choice(VALUES[kind]))])
            goals.append(f"{left} {op} {right}")
    if choose.random() < 0.15 and known.known[int]:
        goals.append(f"{choose.choice(known.known[int])} % 2 = 1")
    if choose.random() < 0.3:
        choose.shuffle(goals)
    return goals


def _aggregating(
    choose: random.Random, name: str, row: list[type], before: dict[str, list[type]], derived: dict[str, list[type]]
) -> str:
    known = _Variables(choose, {kind: [] for kind in VALUES})
    goals = _goals(choose, known, before, {}, set(row))
    arguments: list[str] = []
    kinds: list[type] = []
    at = choose.randrange(len(row))
    for place, kind in enumerate(row):
        if place != at:
            arguments.append(known.argument(kind, fresh=False))
            kinds.append(kind)
            continue
        numbers = known.known[int] + known.known[float]
        function = choose.choice(("count", "sum", "avg", "min", "max")) if numbers else "count"
        over = choose.choice(numbers) if numbers else "*"
        arguments.append(f"{function}<{over}>")
        if function == "count":
            kinds.append(int)
        else:
            kinds.append(float if function == "avg" or over in known.known[float] else int)
    derived[name] = kinds
    return f"{name}({', '.join(arguments)}) :- {', '.join(goals)}."


def _selecting(choose: random.Random) -> list[str]:
    """Cheapest ways, or the longest ones up to a limit."""
    if choose.random() < 0.5:
        sum_of = choose.choice(("C = C1 + C2", "C = C2 + C1", "C1 + C2 = C"))
        limit = choose.choice(("C1 >= 0", "0 <= C1", "C1 > 0", "C1 > 1, C < 7"))
        step = choose.choice(("w(X, Y, C1), m(Y, Z, C2)", "m(Y, Z, C2), w(X, Y, C1)"))
        return ["m(X, Y, min<C>) :- w(X, Y, C).", f"m(X, Z, min<C>) :- {step}, {limit}, {sum_of}."]
    return [
        "m(X, Y, max<C>) :- w(X, Y, C).",
        "m(X, Y, max<C>) :- m(Y, X, C).",
        f"m(X, Z, max<C>) :- m(X, Y, C2), e(Y, Z), C2 > {choose.randint(0, 3)}, C = C2 - {choose.randint(0, 2)}.",
    ]


def rows_of(choose: random.Random) -> Row:
    """A row of a source, with its name first."""
    name = choose.choice(list(SOURCES))
    return (name, *(choose.choice(VALUES[kind]) for kind in SOURCES[name].values()))


# ---- Checks


FOREVER = 1 << 63
HORIZON = 6


class DatalogCase(NamedTuple):
    """A program, and the rows of its sources, each with its start and end."""

    text: str
    events: tuple[tuple[Any, ...], ...]


def events_of(choose: random.Random) -> list[tuple[Any, ...]]:
    """Rows of sources, each with its start and end."""
    found = []
    for _ in range(choose.randint(0, 25)):
        start = choose.randrange(HORIZON)
        end = choose.choice((FOREVER, start + 1, choose.randint(start + 1, HORIZON + 1)))
        found.append((rows_of(choose), start, end))
    return found


def pushed(flow: Dataflow, events: Sequence[tuple[Any, ...]], choose: random.Random, read: set[str]) -> None:
    """The events, out of order and in batches; some are first given with another end."""
    changes: list[tuple[str, dict[str, Any]]] = []
    late: list[tuple[str, dict[str, Any]]] = []
    for (name, *values), start, end in events:
        if name not in read:
            continue
        row = dict(zip(SOURCES[name], values, strict=True)) | {"vs": start, "ve": None if end == FOREVER else end}
        if end != FOREVER and choose.random() < 0.4:
            changes.append((name, row | {"ve": None, "ve_new": None}))
            late.append((name, row | {"ve": None, "ve_new": end}))
        else:
            changes.append((name, row | {"ve_new": None}))
        if choose.random() < 0.2:  # one that never was
            changes.append((name, row | {"ve_new": None}))
            late.append((name, row | {"ve_new": start}))
    choose.shuffle(changes)
    choose.shuffle(late)
    for name, row in changes + late:
        flow.push(name, [row])
        if choose.random() < 0.5:
            flow.run(choose.randint(1, 20))
    flow.finish()
    flow.run_until_idle()


def snapshots(flow: Dataflow, name: str) -> list[Counter[tuple[Any, ...]]]:
    """An output at each time."""
    found: list[Counter[tuple[Any, ...]]] = [Counter() for _ in range(HORIZON + 2)]
    for row in flow.output(name).to_pylist():
        start, end, cut = row.pop("vs"), row.pop("ve"), row.pop("ve_new")
        last = FOREVER if end is None else end
        for time in range(HORIZON + 2):
            if start <= time < last and (cut is None or time >= cut):
                found[time][tuple(row.values())] += 1 if cut is None else -1
    return found


def case(seed: int) -> DatalogCase:
    """A case from a seed."""
    return DatalogCase(program_of(seed), tuple(events_of(random.Random(seed))))


def check(one: DatalogCase, seed: int = 0) -> int:
    """Raise an AssertionError unless a program means what naive evaluation says at every time; how many relations were compared."""
    text, events = one.text, one.events
    program = read_program(text)
    choose = random.Random(f"order {seed}")
    given = [
        {name: {row[1:] for row, start, end in events if row[0] == name and start <= time < end} for name in SOURCES}
        for time in range(HORIZON + 2)
    ]
    try:
        right = [meaning_of(program, one) for one in given]
    except Unstratified:
        with pytest.raises(QueryError, match="depends on its own"):
            datalog(text, SOURCES)
        return 0
    try:
        relations = datalog(text, SOURCES)
    except QueryError as error:
        if re.search("may not end|no rule gives column|inside its recursion", str(error)):
            return 0
        raise
    flow = Dataflow(**relations)
    pushed(flow, events, choose, set(flow._graph.inputs))
    for name in relations:
        found = snapshots(flow, name)
        for time in range(HORIZON + 2):
            assert +found[time] == Counter(right[time][name]), (name, time)
        assert flow.punctuation(name) == FOREVER - 1
    return len(relations)
