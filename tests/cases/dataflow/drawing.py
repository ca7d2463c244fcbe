"""Random iterative queries over random streams: plans, events with retractions, orders of arrival, punctuations and batches."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from stretto.dataflow import Stream, fixpoints, plan, stream
from stretto.dataflow.cycles import cycles, ordered
from stretto.errors import OptionError
from tests.reference.dataflow import FOREVER, Event, settled

__all__ = [
    "Action",
    "Advance",
    "Case",
    "Change",
    "Loop",
    "Push",
    "Restore",
    "Run",
    "Source",
    "Step",
    "Take",
    "Wrong",
    "at_once",
    "built",
    "case",
    "final_events",
    "nested_case",
    "program_of",
    "random_case",
    "rebatched",
    "smaller",
    "valid",
]

TYPES: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us"),
}

#: Few values, so that rows meet. The floats have sums that depend on the order where they are not exact.
VALUES: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, 2, 3),
    "float": (0.1, 0.2, 0.5, 2.0, 1e16, -1e16),
    "str": ("a", "b", "c", "ab"),
    "bool": (False, True),
    "time": tuple(dt.datetime(2024, 1, day) for day in (1, 2, 3)),
}


# ---- Programs


@dataclass(frozen=True)
class Source:
    """An external input: its columns and what they hold."""

    name: str
    columns: Mapping[str, str]
    insert_only: bool = False


@dataclass(frozen=True)
class Step:
    """``name = inputs[0].method(*inputs[1:], *args, **options)``."""

    name: str
    method: str
    inputs: tuple[str, ...]
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Loop:
    """Relations that are defined by each other: the last value of ``results[i]`` inside is ``names[i]`` outside."""

    names: tuple[str, ...]
    schemas: tuple[Mapping[str, str], ...]
    steps: tuple[Step | Loop, ...]
    results: tuple[str, ...]
    bound: int | None = None


class Change(NamedTuple):
    """An insertion, or with ``ve_new`` a retraction."""

    row: tuple[Any, ...]
    vs: int
    ve: int = FOREVER
    ve_new: int | None = None


@dataclass(frozen=True)
class Push:
    source: str
    changes: tuple[Change, ...]
    punctuation: int | None = None


@dataclass(frozen=True)
class Advance:
    time: int
    source: str | None = None


@dataclass(frozen=True)
class Run:
    """So many steps, or until there is nothing to do."""

    steps: int | None = None


@dataclass(frozen=True)
class Take:
    """Take what came out at an output."""

    output: str


@dataclass(frozen=True)
class Restore:
    """Go on in a new dataflow, from a snapshot."""


@dataclass(frozen=True)
class Wrong:
    """Push or say something that is refused, and changes nothing."""

    how: str
    source: str


#: What can be wrong.
WRONGS = ("late", "unknown", "another end", "longer", "empty", "back")

Action = Push | Advance | Run | Take | Restore | Wrong


@dataclass(frozen=True)
class Case:
    sources: tuple[Source, ...]
    steps: tuple[Step | Loop, ...]
    outputs: tuple[str, ...]
    actions: tuple[Action, ...]
    speculation: str = "hybrid"
    time: str = "int"


def built(case: Case) -> dict[str, Stream]:
    """The outputs of a case as streams."""
    return _built(case.sources, case.steps, case.outputs)


def _built(sources: Iterable[Source], steps: Iterable[Step | Loop], outputs: Iterable[str]) -> dict[str, Stream]:
    known = {one.name: _stream(one) for one in sources}
    _run(steps, known)
    return {name: known[name] for name in outputs}


def _fed(sources: Iterable[Source], streams: Iterable[Stream]) -> bool:
    """Whether every source is an input, and every loop has one: others are refused."""
    nodes = ordered([one.node for one in streams])
    try:
        cycles(nodes)
    except OptionError as error:
        if "has no input from outside" in str(error):
            return False
        raise
    return {one.name for one in sources} == {node.name for node in nodes if isinstance(node, plan.Source)}


def _stream(source: Source) -> Stream:
    return stream(source.name, _types(source.columns), insert_only=source.insert_only)


def _types(columns: Mapping[str, str]) -> dict[str, pa.DataType]:
    return {name: TYPES[kind] for name, kind in columns.items()}


def _run(steps: Iterable[Step | Loop], known: dict[str, Stream]) -> None:
    for step in steps:
        if isinstance(step, Loop):
            schemas = {name: _types(row) for name, row in zip(step.names, step.schemas, strict=True)}
            made = fixpoints(_query(step, known), schemas, bound=step.bound)
            known.update(zip(step.names, made, strict=True))
        else:
            first, *others = (known[name] for name in step.inputs)
            known[step.name] = getattr(first, step.method)(*others, *step.args, **step.options)


def _query(loop: Loop, known: Mapping[str, Stream]) -> Callable[..., list[Stream]]:
    def query(*variables: Stream) -> list[Stream]:
        inside = {**known, **dict(zip(loop.names, variables, strict=True))}
        _run(loop.steps, inside)
        return [inside[name] for name in loop.results]

    return query


def program_of(case: Case) -> str:
    """The plan of a case as Python code, for people."""
    lines = [
        f"{one.name} = stream({one.name!r}, {dict(one.columns)}{', insert_only=True' * one.insert_only})"
        for one in case.sources
    ]
    lines += _lines(case.steps, "")
    return "\n".join([*lines, f"# outputs: {', '.join(case.outputs)}"])


def _lines(steps: Iterable[Step | Loop], indent: str) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Loop):
            yield f"{indent}def loop({', '.join(step.names)}):"
            yield from _lines(step.steps, indent + "    ")
            yield f"{indent}    return {', '.join(step.results)}"
            schemas = ", ".join(f"{name}={dict(row)}" for name, row in zip(step.names, step.schemas, strict=True))
            yield f"{indent}{', '.join(step.names)}, = fixpoints(loop, dict({schemas}), bound={step.bound})"
        else:
            first, *others = step.inputs
            given = [*others, *map(repr, step.args), *(f"{name}={value!r}" for name, value in step.options.items())]
            yield f"{indent}{step.name} = {first}.{step.method}({', '.join(given)})"


def changes_of(case: Case, source: str) -> list[Change]:
    """All that is pushed into a source."""
    pushes = (action for action in case.actions if isinstance(action, Push) and action.source == source)
    return [change for push in pushes for change in push.changes]


def final_events(case: Case) -> dict[str, list[Event]]:
    """The events of each source with their lifetimes in the end."""
    return {one.name: settled(changes_of(case, one.name)) for one in case.sources}


# ---- Random plans


class _Maker:
    """Makes steps, and keeps the streams so far for their columns."""

    def __init__(self, choose: random.Random, known: dict[str, Stream], prefix: str = "") -> None:
        self.choose = choose
        self.known = known
        self.prefix = prefix
        self.steps: list[Step | Loop] = []

    # -- names and columns

    def fresh(self, letter: str = "x") -> str:
        at = 0
        while any(name.startswith(f"{letter}{self.prefix}{at}") for name in self.known):
            at += 1
        return f"{letter}{self.prefix}{at}"

    def row(self, name: str) -> dict[str, str]:
        """Columns and what they hold."""
        kinds = {value: key for key, value in TYPES.items()}
        return {column: kinds[kind] for column, kind in self.known[name].schema.items()}

    def of(self, name: str, *kinds: str) -> list[str]:
        return [column for column, kind in self.row(name).items() if kind in kinds]

    def add(self, method: str, *inputs: str, args: Sequence[Any] = (), **options: Any) -> str:
        step = Step(self.fresh(), method, inputs, tuple(args), options)
        _run([step], self.known)
        self.steps.append(step)
        return step.name

    def some(self, columns: Sequence[str], least: int = 1, most: int | None = None) -> list[str]:
        count = self.choose.randint(least, min(len(columns), most or len(columns)))
        return self.choose.sample(list(columns), count)

    # -- conditions and values

    def condition(self, name: str, depth: int = 1) -> str:
        draw = self.choose.random()
        if depth and draw < 0.15:
            return f"NOT ({self.condition(name, depth - 1)})"
        if depth and draw < 0.4:
            join = self.choose.choice([" AND ", " OR "])
            return join.join(self.condition(name, depth - 1) for _ in range(2))
        column = self.choose.choice(list(self.row(name)))
        kind = self.row(name)[column]
        other = self.choose.choice(self.of(name, kind))
        forms = {
            "int": ["{c} < 2", "{c} != {d}", "{c} >= {d}", "{c} IN (0, 2, 7)", "{c} BETWEEN 1 AND 2", "{c} % 2 = 1", "{c} + {d} > 2",
                    "6 / {c} > 2.5", "-{c} < {d}"],
            "float": ["{c} > 0.15", "{c} <= {d}", "{c} * 2 < 1", "{c} / 2 >= 0.1"],
            "str": ["{c} = 'a'", "{c} != {d}", "{c} LIKE 'a%'", "{c} IN ('b', 'c')", "{c} < 'b'"],
            "bool": ["{c} = TRUE", "{c} = {d}"],
            "time": ["{c} < '2024-01-02T00:00:01'", "{c} != {d}", "{c} >= '2024-01-02'"],
        }  # fmt: skip
        return self.choose.choice(forms[kind]).format(c=column, d=other)

    def computed(self, name: str) -> Any:
        ints, floats = self.of(name, "int"), self.of(name, "float")
        forms: list[Any] = [1, -2, 0.5, True, "'z'", *self.row(name)]
        if ints:
            c, d = self.choose.choice(ints), self.choose.choice(ints)
            forms += [f"{c} + 1", f"{c} - {d}", f"{c} * {d}", f"{c} / 2", f"{c} % 3", f"-{c}", f"{c} + 0.5"]
        if floats:
            c = self.choose.choice(floats)
            forms += [f"{c} * 0.1", f"{c} - {self.choose.choice(ints + floats)}", f"{c} / 3"]
        return self.choose.choice(forms)

    # -- operators

    def where(self, name: str) -> str:
        return self.add("where", name, args=[self.condition(name)])

    def project(self, name: str, *, computed: bool = True) -> str:
        kept = self.some(list(self.row(name)), 0 if computed else 1)
        made = (
            {f"n{at}": self.computed(name) for at in range(self.choose.randint(0 if kept else 1, 2))}
            if computed
            else {}
        )
        return self.add("project", name, args=kept, **{key: one for key, one in made.items() if key not in kept})

    def join(self, left: str, right: str, *, keyed: float = 0.95) -> str | None:
        first, second = self.row(left), self.row(right)
        pairs = [(a, b) for a, kind in first.items() for b, other in second.items() if kind == other and kind != "bool"]
        if not pairs:
            return None
        on = dict(self.some(pairs, 1, 2 if self.choose.random() < 0.2 else 1)) if self.choose.random() < keyed else {}
        suffix = f"_{len(self.known)}"
        made = self.add("join", left, right, on=on, suffix=suffix)
        if self.choose.random() < 0.3:
            self.steps.pop()
            where = self.condition(made)
            del self.known[made]
            made = self.add("join", left, right, on=on, suffix=suffix, where=where)
        return self.narrowed(made)

    def narrowed(self, name: str, most: int = 4) -> str:
        """Not too many columns."""
        row = self.row(name)
        return name if len(row) <= most else self.add("project", name, args=self.some(list(row), 2, most))

    def shaped(self, name: str, like: Mapping[str, str]) -> str | None:
        """A stream projected to other columns, by kind; ``None`` where it has none of a kind."""
        values: dict[str, str] = {}
        for column, kind in like.items():
            suited = self.of(name, kind)
            if not suited:
                return None
            values[column] = self.choose.choice(suited)
        if values == {column: column for column in self.row(name)} and list(values) == list(self.row(name)):
            return name
        same = {column for column, of in values.items() if column == of}
        order_kept = [column for column in values if column in same]
        return self.add("project", name, args=order_kept, **{c: of for c, of in values.items() if c not in same})

    def union(self, first: str, *others: str) -> str:
        shaped = [self.shaped(other, self.row(first)) for other in others]
        parts = [one for one in shaped if one is not None]
        return self.add("union", first, *parts) if parts else first

    def aggregate(self, name: str) -> str:
        by = self.some(list(self.row(name)), 0, 2)
        items = {}
        for at in range(self.choose.randint(1, 2)):
            numbers, ordered = self.of(name, "int", "float"), self.of(name, "int", "float", "time", "bool")
            functions = ["count"] + ["sum", "avg"] * bool(numbers) + ["min", "max"] * bool(ordered)
            function = self.choose.choice(functions)
            columns = {"count": [""], "sum": numbers, "avg": numbers}.get(function, ordered)
            items[f"g{at}_{len(self.known)}"] = f"{function}({self.choose.choice(columns)})"
        return self.add("aggregate", name, args=[by], **items)

    def difference(self, left: str, right: str) -> str | None:
        first, second = self.row(left), self.row(right)
        pairs = [(a, b) for a, kind in first.items() for b, other in second.items() if kind == other]
        if not pairs:
            return None
        return self.add("difference", left, right, on=dict(self.some(pairs, 1, 2)))

    def any(self) -> str:
        """A stream that is there; the later ones more often."""
        names = list(self.known)
        return self.choose.choice(names[-3:] if self.choose.random() < 0.5 else names)

    def grow(self) -> str | None:  # noqa: PLR0911 - one case after the other
        """One more operator outside loops."""
        way = self.choose.choices(
            ["where", "project", "join", "union", "distinct", "aggregate", "difference", "rename", "loop"],
            [3, 3, 3, 2, 2, 2, 2, 1, 5],
        )[0]
        name = self.any()
        match way:
            case "where":
                return self.where(name)
            case "project":
                return self.project(name)
            case "join":
                return self.join(name, self.any())
            case "union":
                return self.union(name, *(self.any() for _ in range(self.choose.randint(1, 2))))
            case "distinct":
                return self.add("distinct", name)
            case "aggregate":
                return self.aggregate(name)
            case "difference":
                return self.difference(name, self.any())
            case "rename":
                column = self.choose.choice(list(self.row(name)))
                return self.add("rename", name, **{column: column + "_"})
            case _:
                return self.loop()

    # -- loops

    def loop(self, depth: int = 0) -> str | None:
        ways: list[Callable[[], str | None]] = [
            self.reach,
            self.counted,
            self.best,
            self.chain,
            self.general,
            self.general,
        ]
        if depth == 0:
            ways += [self.nested, self.nested]
        return self.choose.choice(ways)()

    def pairs(self, *, weight: bool = False) -> tuple[str, str] | None:
        """A stream of two columns ``a`` and ``b`` of one kind, with a cost ``w`` that is not negative if wanted."""
        names = list(self.known)
        self.choose.shuffle(names)
        for name in names:
            row = self.row(name)
            columns = {kind: [c for c, one in row.items() if one == kind] for kind in ("int", "str", "time")}
            suited = [kind for kind, have in columns.items() if len(have) >= 2]
            if not suited and self.choose.random() < 0.3:
                suited = [kind for kind, have in columns.items() if have]
            if not suited:
                continue
            kind = self.choose.choice(suited)
            a, b = self.choose.choice(columns[kind]), self.choose.choice(columns[kind])
            if len(columns[kind]) >= 2:
                a, b = self.choose.sample(columns[kind], 2)
            made: dict[str, Any] = {"a": a, "b": b}
            if weight:
                rest = [c for c in self.of(name, "int") if c not in (a, b)] or self.of(name, "int")
                made["w"] = (
                    self.choose.choice(rest) if rest and self.choose.random() < 0.8 else self.choose.randint(0, 2)
                )
                projected = self.add("project", name, **made)
                return self.add("where", projected, args=["w >= 0 AND w < 100"]), kind
            return self.add("project", name, **made), kind
        return None

    def inside(self, names: Sequence[str], schemas: Sequence[Mapping[str, str]]) -> _Maker:
        """A maker for the body of a loop."""
        variables = tuple(
            Stream(plan.Recursion(_types(row), plan.Loop(name), at))
            for at, (name, row) in enumerate(zip(names, schemas, strict=True))
        )
        return _Maker(self.choose, {**self.known, **dict(zip(names, variables, strict=True))}, self.prefix + "_")

    def close(
        self,
        names: Sequence[str],
        schemas: Sequence[Mapping[str, str]],
        body: _Maker,
        results: Sequence[str],
        bound: int | None,
    ) -> str:
        made = Loop(tuple(names), tuple(dict(row) for row in schemas), tuple(body.steps), tuple(results), bound)
        _run([made], self.known)
        self.steps.append(made)
        return self.choose.choice(names)

    def bounded(self) -> int | None:
        return 100 if self.choose.random() < 0.2 else None

    def reach(self) -> str | None:
        """Which of a pair can be reached from which: a set."""
        found = self.pairs()
        if found is None:
            return None
        links, kind = found
        row = {"a": kind, "b": kind}
        name = self.fresh("r")
        body = self.inside([name], [row])
        before = name
        if self.choose.random() < 0.25:
            before = body.where(name)
        if self.choose.random() < 0.15:
            before = body.difference(before, self.any()) or before
        left, right = (links, before) if self.choose.random() < 0.5 else (before, links)
        if self.choose.random() < 0.2:
            left, right = before, name  # not linear
        joined = body.add("join", left, right, on={"b": "a"})
        longer = body.add("project", joined, args=["a"], b="b_right")
        if self.choose.random() < 0.2:
            longer = body.difference(longer, self.any()) or longer
        if self.choose.random() < 0.15:
            longer = body.add("distinct", longer)
        result = body.add("distinct", body.add("union", links, longer))
        return self.close([name], [row], body, [result], self.bounded())

    def counted(self) -> str | None:
        """Every way by itself, up to so many links: a bag."""
        found = self.pairs()
        if found is None:
            return None
        links, kind = found
        row = {"a": kind, "b": kind, "n": "int"}
        name = self.fresh("r")
        base = self.add("project", self.add("distinct", links), args=["a", "b"], n=1)
        body = self.inside([name], [row])
        most = self.choose.randint(1, 3)
        before = body.add("where", name, args=[f"n <= {most}"])
        once = self.choose.choice([base, links])
        joined = body.add("join", before, once, on={"b": "a"}, suffix="_2")
        longer = body.add("project", joined, args=["a"], b="b_2", n="n + 1")
        if self.choose.random() < 0.2:
            longer = body.difference(longer, self.any()) or longer
        return self.close([name], [row], body, [body.add("union", base, longer)], self.choose.choice([most + 1, 50]))

    def best(self) -> str | None:
        """Shortest or longest ways, by an aggregate in the loop that only improves."""
        found = self.pairs(weight=True)
        if found is None:
            return None
        links, kind = found
        least = self.choose.random() < 0.7
        row = {"a": kind, "b": kind, "w": "int"}
        base = links if least else self.add("project", links, args=["a", "b"], w="-w")
        name = self.fresh("r")
        body = self.inside([name], [row])
        before = name
        decides = False  # whether the best value decides what follows from it, which needs a bound
        if self.choose.random() < 0.2:
            before = body.add("where", name, args=["a != b"])
        elif decides := (self.choose.random() < 0.2):
            before = body.add("where", name, args=["w < 6" if least else "w > -6"])
        joined = body.add("join", before, base, on={"b": "a"}, suffix="_2")
        cost = self.choose.choice(["w + w_2", "w + w_2", "w"])
        longer = body.add("project", joined, args=["a"], b="b_2", w=cost)
        both = body.add("union", base, longer)
        result = body.add("aggregate", both, args=[["a", "b"]], w="min(w)" if least else "max(w)")
        return self.close([name], [row], body, [result], self.bounded() if cost == "w" and not decides else 100)

    def chain(self) -> str | None:
        """An automaton that reads numbered symbols (section 4): a bag, as numbers go up."""
        suited = [name for name in self.known if self.of(name, "int") and self.of(name, "str")]
        if not suited:
            return None
        name = self.choose.choice(suited)
        symbols = self.add(
            "project", name, at=self.choose.choice(self.of(name, "int")), on=self.choose.choice(self.of(name, "str"))
        )
        other = self.choose.choice(suited)
        strings = self.of(other, "str")
        moves = self.add(
            "project",
            other,
            on=self.choose.choice(strings),
            source=self.choose.choice(strings),
            target=self.choose.choice(strings),
        )
        row = {"begin": "int", "at": "int", "state": "str"}
        state = self.choose.choice(["'a'", "on"])
        seeds = self.add("project", symbols, begin="at", at="at - 1", state=state)
        variable = self.fresh("r")
        body = self.inside([variable], [row])
        step = body.add("join", symbols, moves, on=["on"])
        joined = body.add("join", step, variable, on={"source": "state"}, where="at = at_found + 1", suffix="_found")
        further = body.add("project", joined, args=["begin", "at"], state="target")
        seeded = body.add("union", seeds, further)
        return self.close([variable], [row], body, [seeded], 200)

    def general(self, depth: int = 0) -> str | None:
        """One to three sets that are defined by each other, by operators that never take anything back, of values that are there."""
        width = self.choose.choice([1, 1, 2, 2, 3])
        names = [f"{self.fresh('r')}{letter}" for letter in "pqs"[:width]]
        schemas: list[dict[str, str]] = []
        for _ in names:
            like = self.row(self.any())
            schemas.append({c: like[c] for c in self.some(list(like), 1, 3)})
        body = self.inside(names, schemas)
        results = []
        for schema in schemas:
            parts = [self._term(body, names, schema, external=at == 0) for at in range(self.choose.randint(2, 3))]
            terms = [one for one in parts if one is not None]
            if not terms:
                return None
            united = body.add("union", *terms) if len(terms) > 1 else terms[0]
            results.append(body.add("distinct", united))
        return self.close(names, schemas, body, results, self.bounded())

    def _term(self, body: _Maker, names: Sequence[str], schema: Mapping[str, str], external: bool) -> str | None:
        at = self.any() if external else self.choose.choice(names)
        for _ in range(self.choose.randint(0, 2)):
            way = self.choose.choice(["where", "join", "join", "distinct", "difference"])
            if way == "where":
                at = body.where(at)
            elif way == "distinct":
                at = body.add("distinct", at)
            elif way == "difference":
                at = body.difference(at, self.any()) or at
            else:
                sides = [at, self.choose.choice([*names, self.any(), self.any()])]
                self.choose.shuffle(sides)
                at = body.join(sides[0], sides[1], keyed=1.0) or at
        return body.shaped(at, schema)

    def nested(self) -> str | None:
        """A loop in the body of another, of which it uses what has been found."""
        near, far = self.pairs(), self.pairs()
        if near is None or far is None:
            return None
        kind = near[1]
        if far[1] != kind:
            return None
        outer, inner = self.fresh("r"), self.fresh("q")
        row = {"v": kind}
        start = self.add("project", self.choose.choice([near[0], far[0]]), v="a")
        if self.choose.random() < 0.5:
            start = self.where(start)
        body = self.inside([outer], [row])
        over = self._over(body, outer, far[0])
        begin = body.add("union", start, over)
        if self.choose.random() < 0.7:
            begin = body.add("distinct", begin)
        deep = body.inside([inner], [row])
        further = self._over(deep, inner, near[0])
        body_result = body.close(
            [inner], [row], deep, [deep.add("distinct", deep.add("union", begin, further))], self.bounded()
        )
        if self.choose.random() < 0.5:
            body_result = body.add("distinct", body.add("union", body_result, begin))
        return self.close([outer], [row], body, [body_result], self.bounded())

    def nest(self, around: Sequence[str], depth: int) -> str:
        """A loop in which others stand, whose best values may decide what they are derived from: it may have no limit."""
        choose = self.choose
        row = {"a": "int", "b": "int"}
        name = self.fresh("r")
        body = self.inside([name], [row])
        there = [*around, name]
        for _ in range(choose.choice([1, 1, 1, 2]) if depth > 1 else 0):
            there.append(body.nest(there, depth - 1))
        terms = [choose.choice(around[:2])]
        for _ in range(choose.choice([1, 1, 2])):
            left, right = choose.choice(there[2:]), choose.choice(there)
            if choose.random() < 0.2:
                terms.append(left)
                continue
            if choose.random() < 0.5:
                left, right = right, left
            mine, its = choose.choice("ab"), choose.choice("ab")
            joined = body.add("join", left, right, on={mine: its}, suffix="_2")
            other = "b_2" if its == "a" else "a_2"
            columns = [choose.choice(["a", "b", other]) for _ in range(2)]
            if columns == ["b", "a"] or choose.random() < 0.7:
                columns[choose.randrange(2)] = other
            terms.append(body.add("project", joined, **dict(zip("ab", columns, strict=True))))
            if choose.random() < 0.1:
                terms[-1] = body.add("where", terms[-1], args=[choose.choice(["a < 3", "a != b", "b > 0"])])
            elif choose.random() < 0.1:
                terms[-1] = body.add("difference", terms[-1], choose.choice(around[:2]), on={"a": "b"})
        united = body.add("union", *terms)
        way = choose.choice(["distinct", "max", "max", "min", "least", "both"])
        if way == "distinct":
            result = body.add("distinct", united)
        elif way == "both":
            result = body.add("aggregate", united, args=[[]], a="max(a)", b="min(b)")
        elif way == "least":
            result = body.add("project", body.add("aggregate", united, args=["b"], a="min(a)"), args=["a", "b"])
        else:
            result = body.add("aggregate", united, args=["a"], b=f"{way}(b)")
        if choose.random() < 0.2:
            result = body.add("distinct", body.add("union", result, choose.choice(there)))
        return self.close([name], [row], body, [result], choose.choice([3, 8, 20, 20]))

    def _over(self, body: _Maker, nodes: str, links: str) -> str:
        """Where links lead to from nodes."""
        if self.choose.random() < 0.5:
            return body.add("project", body.add("join", nodes, links, on={"v": "a"}), v="b")
        return body.add("project", body.add("join", links, nodes, on={"a": "v"}), v="b")


def _sources(choose: random.Random) -> tuple[Source, ...]:
    found = []
    insert_only = choose.random() < 0.15
    for at in range(choose.choice([1, 2, 2, 3])):
        shapes = [
            {"a": "int", "b": "int"},
            {"a": "str", "b": "str"},
            {"a": "int", "b": "int", "c": "int"},
            {"a": "str", "b": "str", "c": "int"},
            {"n": "int", "s": "str", "t": "str"},
            {"a": "int", "f": "float"},
            {"s": "str", "f": "float", "ok": "bool"},
            {"t": "time", "u": "time", "n": "int"},
            {"a": "int"},
        ]
        columns = choose.choices(shapes, [4, 3, 4, 3, 3, 2, 1, 1, 1])[0]
        found.append(Source(f"s{at}", columns, insert_only or choose.random() < 0.1))
    return tuple(found)


def _windows(choose: random.Random, maker: _Maker) -> None:
    for name in list(maker.known):
        if choose.random() < 0.2:
            begin = maker.where(name) if choose.random() < 0.3 else name
            every = choose.choice([None, None, 2, 5])
            made = maker.add("window", begin, args=[choose.choice([None, 1, 3, 8])], every=every)
            if choose.random() < 0.2:
                maker.add("window", made, args=[choose.choice([2, 4])])


# ---- Random streams


def _stream_of(choose: random.Random, source: Source, length: int, horizon: int) -> list[Change | int]:
    """What a source gives, in order: insertions, retractions, and numbers that are punctuations; all of them legal."""
    found: list[Change | int] = []
    live: list[Event] = []
    punctuation: int | None = None
    clock = choose.choice([0, 0, -5, 3])
    disorder = choose.choice([0, 1, 4, horizon])
    forever = choose.choice([0.0, 0.3, 1.0])
    retracting = 0 if source.insert_only else choose.choice([0.0, 0.15, 0.4])
    shrinking = choose.choice([0.1, 0.3])
    for _ in range(length):
        draw = choose.random()
        if draw < shrinking:
            upto = clock + choose.randint(-2, 2)
            if punctuation is None or upto > punctuation:
                punctuation = upto
                found.append(upto)
        elif draw < shrinking + retracting and live:
            event = choose.choice(live)
            low = event.vs if punctuation is None else max(event.vs, punctuation)
            if low >= event.ve:
                continue
            latest = min(event.ve - 1, max(low, clock + horizon // 2))
            ve_new = choose.choice([low, choose.randint(low, latest), event.vs if event.vs >= low else low])
            found.append(Change(event.row, event.vs, event.ve, ve_new))
            live.remove(event)
            if ve_new > event.vs:
                live.append(event._replace(ve=ve_new))
        else:
            low = clock - disorder if punctuation is None else max(punctuation, clock - disorder)
            vs = choose.randint(low, max(low, clock))
            ve = FOREVER if choose.random() < forever else vs + choose.choice([1, 2, 3, 6, 12])
            again = live and choose.random() < 0.15
            row = (
                choose.choice(live).row
                if again
                else tuple(choose.choice(VALUES[kind]) for kind in source.columns.values())
            )
            found.append(Change(row, vs, ve))
            live.append(Event(row, vs, ve))
        clock += choose.choice([0, 0, 1, 1, 2])
    return found


def _actions(
    choose: random.Random, sources: Sequence[Source], outputs: Sequence[str], length: int
) -> tuple[Action, ...]:
    queues = {one.name: _stream_of(choose, one, choose.randint(1, length), 12) for one in sources}
    biggest = choose.choice([1, 1, 3, 8, 1000])
    busy = choose.choice([0.1, 0.5, 0.9])
    lazy = choose.random() < 0.3  #: hardly any output is taken before the end
    actions: list[Action] = []
    while any(queues.values()):
        name = choose.choice([one for one, queue in queues.items() if queue])
        actions += _next_push(choose, name, queues[name], biggest)
        while choose.random() < busy:
            actions.append(_between(choose, outputs, lazy))
        if choose.random() < 0.03:
            actions.append(Wrong(choose.choice(WRONGS), name))
    return tuple(actions)


def _next_push(choose: random.Random, name: str, queue: list[Change | int], biggest: int) -> list[Action]:
    """Take a batch from the front of a queue, and the punctuation behind it, if any."""
    size = choose.randint(1, biggest)
    batch: list[Change] = []
    while queue and len(batch) < size and isinstance(queue[0], Change):
        batch.append(queue.pop(0))  # type: ignore[arg-type]
    punctuation = queue.pop(0) if queue and not isinstance(queue[0], Change) else None
    assert not isinstance(punctuation, Change)
    if batch and punctuation is not None and choose.random() < 0.5:
        return [Push(name, tuple(batch)), Advance(punctuation, name)]
    if not batch:
        assert punctuation is not None
        return [Advance(punctuation, name)]
    return [Push(name, tuple(batch), punctuation)]


def _between(choose: random.Random, outputs: Sequence[str], lazy: bool) -> Action:
    draw = choose.random()
    if draw < 0.55:
        return Run(choose.choice([1, 1, 2, 3, 7, 20]))
    if draw < 0.7:
        return Run()
    if draw < 0.95 and not lazy:
        return Take(choose.choice(outputs))
    return Restore() if draw > 0.97 or not lazy else Run(1)


def case(seed: int, plans: int | None = None) -> Case:
    """A random case. It is the same for the same arguments.

    ``plans``: of so many plans at most, as conditions and values are compiled for each one.
    """
    sources, steps, outputs = _plan(random.Random(seed if plans is None else seed % plans))
    case = random_case(sources, steps, outputs, seed)
    return replace(case, time=random.Random(seed).choice(["int"] * 5 + ["time"]))


def nested_case(seed: int) -> Case:
    """A random case of loops that stand in each other, with bounds; over some inputs they have no limit."""
    choose = random.Random(seed)
    sources = tuple(Source(name, {"a": "int", "b": "int"}, choose.random() < 0.2) for name in ("s", "t"))
    while True:
        maker = _Maker(choose, {one.name: _stream(one) for one in sources})
        outputs = (maker.nest(["s", "t"], choose.choice([2, 2, 3])),)
        steps = _needed(tuple(maker.steps), outputs)
        used = tuple(one for one in sources if one.name in _reads(steps))
        if used and _fed(used, _built(used, steps, outputs).values()):
            return random_case(used, steps, outputs, seed, choose.choice([4, 8, 12]))


def at_once(case: Case) -> Case:
    """The events that a case comes to, and nothing else."""
    pushes = tuple(
        Push(name, tuple(Change(*event) for event in events)) for name, events in final_events(case).items() if events
    )
    return replace(case, actions=pushes)


def random_case(
    sources: tuple[Source, ...],
    steps: tuple[Step | Loop, ...],
    outputs: tuple[str, ...],
    seed: int,
    length: int | None = None,
) -> Case:
    """Random streams for a plan, of up to ``length`` changes and punctuations each."""
    choose = random.Random(~seed)
    speculation = choose.choice(["hybrid", "hybrid", "probing", "hwm"])
    length = length or choose.choice([6, 12, 20, 30])
    return Case(sources, steps, outputs, _actions(choose, sources, outputs, length), speculation)


def _plan(choose: random.Random) -> tuple[tuple[Source, ...], tuple[Step | Loop, ...], tuple[str, ...]]:
    """Sources, steps and outputs."""
    while True:
        sources = _sources(choose)
        maker = _Maker(choose, {one.name: _stream(one) for one in sources})
        _windows(choose, maker)
        made = [maker.grow() for _ in range(choose.choice([1, 2, 2, 3, 4]))]
        if choose.random() < 0.7 and not any(isinstance(step, Loop) for step in maker.steps):
            made.append(maker.loop())
        found = [name for name in made if name is not None]
        if not found:
            continue
        outputs = tuple(sorted({found[-1], *(one for one in found if choose.random() < 0.3)}))
        steps = _needed(tuple(maker.steps), outputs)
        used = tuple(one for one in sources if one.name in _reads(steps) | set(outputs))
        if used and _fed(used, _built(used, steps, outputs).values()):
            return used, steps, outputs


def _reads(steps: Iterable[Step | Loop]) -> set[str]:
    return {name for step in steps for name in (_reads(step.steps) if isinstance(step, Loop) else step.inputs)} | {
        name for step in steps if isinstance(step, Loop) for name in step.results
    }


def _makes(step: Step | Loop) -> tuple[str, ...]:
    return step.names if isinstance(step, Loop) else (step.name,)


def _needed(steps: tuple[Step | Loop, ...], wanted: Iterable[str]) -> tuple[Step | Loop, ...]:
    """Without what nobody reads."""
    needed = set(wanted)
    kept: list[Step | Loop] = []
    for step in reversed(steps):
        if needed & set(_makes(step)):
            one = replace(step, steps=_needed(step.steps, step.results)) if isinstance(step, Loop) else step
            kept.append(one)
            needed |= _reads([one])
    return tuple(reversed(kept))


def rebatched(case: Case, seed: int) -> Case:
    """The same input for every source, in other batches, with the sources in another order and other work between."""
    choose = random.Random(seed)
    queues: dict[str, list[Change | int]] = {one.name: [] for one in case.sources}
    for action in case.actions:
        if isinstance(action, Push):
            queues[action.source] += action.changes
            queues[action.source] += [] if action.punctuation is None else [action.punctuation]
        elif isinstance(action, Advance):
            for name in queues if action.source is None else [action.source]:
                queues[name].append(action.time)
    biggest = choose.choice([1, 1000])
    actions: list[Action] = []
    while any(queues.values()):
        name = choose.choice([one for one, queue in queues.items() if queue])
        while queues[name]:
            actions += _next_push(choose, name, queues[name], biggest)
            if choose.random() < 0.7:
                break
        if choose.random() < 0.2:
            actions.append(_between(choose, case.outputs, lazy=False))
    return replace(case, actions=tuple(actions))


# ---- Small cases


def valid(case: Case) -> Case:
    """Without changes and punctuations that are not legal any more."""
    live: dict[str, list[Event]] = {one.name: [] for one in case.sources}
    punctuations: dict[str, int | None] = dict.fromkeys(live)
    insert_only = {one.name for one in case.sources if one.insert_only}
    actions: list[Action] = []
    for action in case.actions:
        match action:
            case Push(source, changes, time):
                if source not in live:
                    continue
                kept = tuple(
                    one for one in changes if _legal(one, live[source], punctuations[source], source in insert_only)
                )
                if time is not None and not _forward(time, punctuations[source]):
                    time = None
                if time is not None:
                    punctuations[source] = time
                if kept or time is not None:
                    actions.append(Push(source, kept, time))
            case Advance(time, source):
                names = [source] if source is not None else list(live)
                if all(name in live and _forward(time, punctuations[name]) for name in names):
                    punctuations.update((name, time) for name in names)
                    actions.append(action)
            case Take(output) if output not in case.outputs:
                pass
            case _:
                actions.append(action)
    return replace(case, actions=tuple(actions))


def _forward(time: int, punctuation: int | None) -> bool:
    return punctuation is None or time > punctuation


def _legal(change: Change, live: list[Event], punctuation: int | None, insert_only: bool) -> bool:
    """Whether a change may come now; if so it is done."""
    event = Event(change.row, change.vs, change.ve)
    since = change.vs if change.ve_new is None else change.ve_new
    if punctuation is not None and since < punctuation:
        return False
    if change.ve_new is None:
        live.append(event)
        return True
    if event not in live or insert_only or not change.vs <= change.ve_new < change.ve:
        return False
    live.remove(event)
    if change.ve_new > change.vs:
        live.append(event._replace(ve=change.ve_new))
    return True


def smaller(case: Case) -> Iterator[Case]:
    """Cases that are simpler by a little, legal ones."""
    for one in _simpler(case):
        try:
            built(one)
        except Exception:
            continue
        yield valid(one)


def _simpler(case: Case) -> Iterator[Case]:
    if len(case.outputs) > 1:
        for name in case.outputs:
            yield _pruned(replace(case, outputs=tuple(one for one in case.outputs if one != name)))
    size = len(case.actions)
    for length in sorted({size // 2, size // 4, 4, 2, 1} - {0}, reverse=True):
        for at in range(size - length, -1, -1):
            yield replace(case, actions=(*case.actions[:at], *case.actions[at + length :]))
    for steps in _fewer(case.steps, case.outputs):
        yield _pruned(replace(case, steps=steps))
    for step in case.steps:  # an output further down
        for name in step.inputs if isinstance(step, Step) else ():
            if len(case.outputs) == 1 and step.name == case.outputs[0]:
                yield _pruned(replace(case, outputs=(name,)))
    yield from _simpler_actions(case)
    if case.speculation != "hybrid":
        yield replace(case, speculation="hybrid")
    if case.time != "int":
        yield replace(case, time="int")
    for one in case.sources:
        if one.insert_only:
            plain = replace(one, insert_only=False)
            yield replace(case, sources=tuple(plain if one is other else other for other in case.sources))


def _pruned(case: Case) -> Case:
    """Without steps and sources that nobody reads."""
    steps = _needed(case.steps, case.outputs)
    reads = _reads(steps) | set(case.outputs)
    sources = tuple(one for one in case.sources if one.name in reads)
    names = {one.name for one in sources}
    kept = tuple(
        action
        for action in case.actions
        if not isinstance(action, Push | Advance | Wrong) or action.source in names | {None}
    )
    return replace(case, steps=steps, sources=sources, actions=kept)


def _fewer(steps: tuple[Step | Loop, ...], outputs: Iterable[str]) -> Iterator[tuple[Step | Loop, ...]]:
    """A step less (its input takes its place), or something simpler in one."""
    for at, step in enumerate(steps):
        if isinstance(step, Loop):
            for inner in _fewer(step.steps, step.results):
                yield (*steps[:at], replace(step, steps=inner), *steps[at + 1 :])
            if step.bound is not None:
                yield (*steps[:at], replace(step, bound=None), *steps[at + 1 :])
            continue
        for name in step.inputs:
            yield _renamed((*steps[:at], *steps[at + 1 :]), step.name, name)
        if step.method == "union" and len(step.inputs) > 2:
            for drop in range(len(step.inputs)):
                inputs = step.inputs[:drop] + step.inputs[drop + 1 :]
                yield (*steps[:at], replace(step, inputs=inputs), *steps[at + 1 :])
        if step.options.get("where"):
            options = {key: one for key, one in step.options.items() if key != "where"}
            yield (*steps[:at], replace(step, options=options), *steps[at + 1 :])
        if step.method == "aggregate" and len(step.options) > 1:
            for name in step.options:
                options = {key: one for key, one in step.options.items() if key != name}
                yield (*steps[:at], replace(step, options=options), *steps[at + 1 :])


def _renamed(steps: tuple[Step | Loop, ...], old: str, new: str) -> tuple[Step | Loop, ...]:
    def name(one: str) -> str:
        return new if one == old else one

    found: list[Step | Loop] = []
    for step in steps:
        if isinstance(step, Loop):
            inner = _renamed(step.steps, old, new)
            found.append(replace(step, steps=inner, results=tuple(map(name, step.results))))
        else:
            found.append(replace(step, inputs=tuple(map(name, step.inputs))))
    return tuple(found)


def _simpler_actions(case: Case) -> Iterator[Case]:
    for at, action in enumerate(case.actions):
        others: list[tuple[Action, ...]] = []
        if isinstance(action, Push):
            for drop in range(len(action.changes) if len(action.changes) > 1 else 0):
                others.append((replace(action, changes=action.changes[:drop] + action.changes[drop + 1 :]),))
            if action.punctuation is not None:
                others.append((replace(action, punctuation=None),))
            for place, change in enumerate(action.changes):
                if change.ve != FOREVER and change.ve_new is None:
                    longer = change._replace(ve=FOREVER)
                    others.append(
                        (replace(action, changes=(*action.changes[:place], longer, *action.changes[place + 1 :])),)
                    )
        elif isinstance(action, Run) and action.steps != 1:
            others.append((Run(1),))
        for other in others:
            yield replace(case, actions=(*case.actions[:at], *other, *case.actions[at + 1 :]))
