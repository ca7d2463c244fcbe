"""The reference evaluator of iterative stream queries: the fixed point of every snapshot, from scratch.

FFP paper, section 3.1 (snapshots and canonical histories) and section 3.2 (``Q*`` of a snapshot). Time is cut wherever an event
begins or ends. Between two cuts nothing changes, so the plan is one query over bags of rows, and a loop is what the sequence
``r_0 = {}``, ``r_i = Q(r_{i-1})`` comes to. Nothing is indexed, kept or shared between snapshots, and neither the order of arrival
nor punctuation has a part in it. It is the judge of the engine's tests, and slow.

>>> from stretto.dataflow import fixpoint, stream
>>> links = stream("links", {"src": str, "dst": str})
>>> reach = fixpoint(
...     lambda reach: links.union(
...         links.join(reach, on={"dst": "src"}).project(src="src", dst="dst_right")
...     ).distinct(),
...     schema=links,
... )
>>> found = evaluate({"reach": reach}, {"links": [Event(("a", "b"), 1), Event(("b", "c"), 3, 7)]})
>>> for row, spans in sorted(found["reach"].items()):
...     print(row, *((vs, "forever" if ve == FOREVER else ve, count) for vs, ve, count in spans))
('a', 'b') (1, 'forever', 1)
('a', 'c') (3, 7, 1)
('b', 'c') (3, 7, 1)
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

from stretto.dataflow import plan
from stretto.dataflow.plan import Stream
from stretto.errors import DataError, LimitError, OptionError
from stretto.query import predicate as p
from stretto.query.evaluate import holds, value

FOREVER = 2**63 - 1  #: the end of what has none
EVER = -(2**63) + 1  #: the start of constants

Row = tuple[Any, ...]
Bag = Counter[Row]
Variable = tuple[plan.Loop, int]  #: one of a loop's relations


class Event(NamedTuple):
    """A payload with its lifetime ``[vs, ve)``, in ticks."""

    row: Row
    vs: int
    ve: int = FOREVER


class Span(NamedTuple):
    """A stretch ``[vs, ve)`` of time in which a row occurs so many times; as long as it can be."""

    vs: int
    ve: int
    copies: int


#: What a stream means: for every row the stretches of time in which it occurs, in order.
History = dict[Row, list[Span]]


def evaluate(
    outputs: Mapping[str, Stream | plan.Node],
    events: Mapping[str, Iterable[tuple[Row, int, int] | Event]],
    *,
    levels: int = 10_000,
) -> dict[str, History]:
    """The canonical history of each output.

    Parameters
    ----------
    outputs
        Streams by name, as for :class:`~stretto.dataflow.Dataflow`.
    events
        For each source all its events with the lifetimes that they have in the end (see :func:`settled`). A payload is a tuple of
        Python values in the order of the source's columns; a source without events may be left out.
    levels
        The greatest level (section 3.2) in a loop that states no bound of its own.

    Returns
    -------
    dict
        For each output, what :data:`History` says.

    Raises
    ------
    DataError
        A value that has no place in its column: a division by zero, a sum beyond 64 bits; a lifetime that ends before it begins.
    LimitError
        A loop has rows beyond its bound.

    Examples
    --------
    >>> from stretto.dataflow import stream
    >>> ticks = stream("ticks", {"price": int})
    >>> events = {"ticks": [Event((3,), 0, 10), Event((5,), 4, 6)]}
    >>> evaluate({"most": ticks.aggregate(most="max(price)")}, events)["most"]
    {(3,): [Span(vs=0, ve=4, copies=1), Span(vs=6, ve=10, copies=1)], (5,): [Span(vs=4, ve=6, copies=1)]}
    """
    nodes = {name: made.node if isinstance(made, Stream) else made for name, made in outputs.items()}
    given = {name: [Event(_one(row), vs, ve) for row, vs, ve in some] for name, some in events.items()}
    query = _Query(nodes.values(), levels)
    inputs = {node: list(_events(node, given)) for node in query.inputs}
    cuts = sorted({time for some in inputs.values() for event in some for time in event[1:]} - {FOREVER})
    if query.has_constants:
        cuts = sorted({EVER, *cuts})
    found: dict[str, History] = {name: {} for name in nodes}
    for vs, ve in zip(cuts, [*cuts[1:], FOREVER], strict=False):
        bags = {
            node: Counter(event.row for event in some if event.vs <= vs < event.ve) for node, some in inputs.items()
        }
        snapshot = query.snapshot(bags)
        for name, node in nodes.items():
            for row, count in snapshot(node).items():
                _extend(found[name].setdefault(row, []), Span(vs, ve, count))
    return found


def _one(row: Row) -> Row:
    """The row with one and the same NaN: as part of a payload it is equal to itself."""
    return tuple(math.nan if one != one else one for one in row)


def _extend(spans: list[Span], span: Span) -> None:
    """Append a stretch, or make the last one longer."""
    if spans and spans[-1].ve == span.vs and spans[-1].copies == span.copies:
        spans[-1] = spans[-1]._replace(ve=span.ve)
    else:
        spans.append(span)


# -- events of the inputs ---------------------------------------------------------------------------------------------


def _events(node: plan.Node, given: Mapping[str, list[Event]]) -> Iterator[Event]:
    """The events of a stream that has events of its own: an input, maybe selected, projected and windowed."""
    match node:
        case plan.Source(name=name):
            for event in given.get(name, ()):
                if event.ve < event.vs:
                    raise DataError(f"Source {name}: {event.row} ends at {event.ve}, before it begins at {event.vs}")
                if event.ve > event.vs:
                    yield event
        case plan.Where(input=below, condition=condition):
            for event in _events(below, given):
                if holds(condition, _named(below, event.row)):
                    yield event
        case plan.Project(input=below):
            for event in _events(below, given):
                yield event._replace(row=_projected(node, event.row))
        case plan.Lifetime(input=below, duration=duration, every=every):
            for row, vs, _ in _events(below, given):
                ve = FOREVER if duration is None else min(vs + duration, FOREVER)
                moved = Event(row, _next(vs, every), _next(ve, every))
                if moved.ve > moved.vs:
                    yield moved
        case plan.Recognize(input=below):
            yield from _matches(node, list(_events(below, given)))
        case _:
            raise OptionError(f"{node.label} has no events of its own")


def _matches(node: plan.Recognize, events: list[Event]) -> Iterator[Event]:
    """The matches in all events at once, which are taken as a sequence in the order of their starts.

    A match lives from its last event on: until the window of one of its events ends, or for ever.
    """
    from stretto.matching.api.match import match

    events = sorted(events, key=lambda event: event.vs)
    columns = {
        name: pa.array([event.row[at] for event in events], kind)
        for at, (name, kind) in enumerate(node.input.schema.items())
    }
    table = pa.table({**columns, "vs": pa.array([event.vs for event in events], pa.int64())})
    for one in match(node.pattern, table, **{"time": "vs", **node.options}).to_pylist():
        register = one.get("register") or {}
        named = {**register, **{f"register_{name}": value for name, value in register.items()}, **one}
        until = one.get("until")
        found = Event(tuple(named[name] for name in node.schema), one["end_time"], FOREVER if until is None else until)
        if found.ve > found.vs:
            yield found


def _next(time: int, every: int | None) -> int:
    """The first multiple that is not before a time; no end stays no end."""
    return time if every is None or time == FOREVER else min(-(-time // every) * every, FOREVER)


# -- a snapshot -------------------------------------------------------------------------------------------------------


class _Query:
    """A plan as a relational query: which relations are defined by each other, and in which order they can be had."""

    def __init__(self, outputs: Iterable[plan.Node], levels: int) -> None:
        self.levels = levels
        self.inputs: set[plan.Node] = set()
        self.has_constants = False
        first = {variable for node in outputs for variable in self._read(node)}
        reads: dict[Variable, set[Variable]] = {}
        while first:
            variable = first.pop()
            reads[variable] = self._read(_body(variable))
            first |= reads[variable] - reads.keys()
        self.parts = self._parts(set(reads), reads, None)

    def _parts(
        self, variables: set[Variable], reads: Mapping[Variable, set[Variable]], bound: int | None
    ) -> list[_Part]:
        """What some relations are made of, if all others are known: those that are read first come first.

        A loop that stands in another one, of which it reads what has been found so far, is inside of its part. Loops that state no
        bound of their own have the greatest of those they depend on.
        """
        among = {variable: reads[variable] & variables for variable in variables}
        reach = {variable: _closure(variable, among) for variable in variables}
        found: list[_Part] = []
        left = set(variables)
        while left:
            # What a relation needs, and is not needed by, reaches less than it does.
            first = min(left, key=lambda variable: len(reach[variable] | {variable}))
            together = {first} | {one for one in left if one in reach[first] and first in reach[one]}
            left -= together
            bounds = [loop.bound for loop, _ in together if loop.bound is not None]
            common = bound if bound is not None else max(bounds, default=None)
            outermost = next(loop for loop, _ in together if not any(_stands_in(loop, other) for other, _ in together))
            own = [variable for variable in together if variable[0] is outermost]
            own_bound = outermost.bound if outermost.bound is not None else common
            found.append(
                _Part(
                    own,
                    self._parts(together - set(own), reads, common),
                    recursive=first in reach[first],
                    bound=self.levels if own_bound is None else own_bound,
                )
            )
        return found

    def _read(self, node: plan.Node) -> set[Variable]:
        """The loops' relations that a node is made of without going around any; notes the inputs on the way."""
        found: set[Variable] = set()
        seen: set[plan.Node] = set()
        path = [node]
        while path:
            node = path.pop()
            if node in seen:
                continue
            seen.add(node)
            match node:
                case plan.Fixpoint() | plan.Recursion():
                    found.add((node.loop, node.index))
                case plan.Source() | plan.Lifetime() | plan.Recognize():
                    self.inputs.add(node)
                case plan.Constant():
                    self.has_constants = True
                case _:
                    path += node.inputs
        return found

    def snapshot(self, inputs: Mapping[plan.Node, Bag]) -> Callable[[plan.Node], Bag]:
        """The relation of every node, at a time when the inputs are these."""
        values: dict[Variable, Bag] = {}
        self._limits(self.parts, values, inputs)
        return _Level(inputs, values)

    def _limits(self, parts: list[_Part], values: dict[Variable, Bag], inputs: Mapping[plan.Node, Bag]) -> None:
        for part in parts:
            self._fixed_point(part, values, inputs)

    def _fixed_point(self, part: _Part, values: dict[Variable, Bag], inputs: Mapping[plan.Node, Bag]) -> None:
        """``r_0 = {}``, ``r_i = Q(r_{i-1})``, for the relations of a loop at once; loops inside have their limits for ``r_{i-1}``."""
        values.update((variable, Counter()) for variable in part.own)
        level = 0
        while True:
            self._limits(part.inner, values, inputs)
            at = _Level(inputs, dict(values))
            following = {variable: at(_body(variable)) for variable in part.own}
            if all(following[variable] == values[variable] for variable in part.own):
                return
            if level > part.bound:
                raise LimitError(
                    f"FFP {part.own[0][0].name}: there are rows that went around the loop more than {part.bound} times"
                )
            values.update(following)
            if not part.recursive:
                return
            level += 1


class _Part(NamedTuple):
    """Relations of a loop that are defined by each other, and what stands inside."""

    own: list[Variable]
    inner: list[_Part]
    recursive: bool
    bound: int


def _stands_in(loop: plan.Loop, other: plan.Loop) -> bool:
    """Whether a loop was made for the definition of another one."""
    if loop is other:
        return False
    path: list[plan.Node] = list(other.bodies)
    seen: set[plan.Node] = set()
    while path:
        node = path.pop()
        if isinstance(node, plan.Fixpoint) and node.loop is loop:
            return True
        if node not in seen:
            seen.add(node)
            path += node.inputs
    return False


def _body(variable: Variable) -> plan.Node:
    loop, index = variable
    return loop.bodies[index]


def _closure(variable: Variable, reads: Mapping[Variable, set[Variable]]) -> set[Variable]:
    """The relations that one is made of, also by way of others."""
    found: set[Variable] = set()
    path = list(reads[variable])
    while path:
        one = path.pop()
        if one not in found:
            found.add(one)
            path += reads[one]
    return found


class _Level:
    """The relation of every node for given inputs and given values of the loops' relations."""

    def __init__(self, inputs: Mapping[plan.Node, Bag], values: Mapping[Variable, Bag]) -> None:
        self.inputs = inputs
        self.values = values
        self.known: dict[plan.Node, Bag] = {}

    def __call__(self, node: plan.Node) -> Bag:
        if node not in self.known:
            self.known[node] = self._relation(node)
        return self.known[node]

    def _relation(self, node: plan.Node) -> Bag:  # noqa: PLR0911 - one operator after the other
        match node:
            case plan.Source() | plan.Lifetime() | plan.Recognize():
                return self.inputs[node]
            case plan.Constant():
                return Counter(node.rows)
            case plan.Fixpoint() | plan.Recursion():
                return self.values[node.loop, node.index]
            case plan.Where():
                rows = self(node.input).items()
                return Counter({row: n for row, n in rows if holds(node.condition, _named(node.input, row))})
            case plan.Project():
                return _summed((_projected(node, row), n) for row, n in self(node.input).items())
            case plan.Union():
                return _summed(item for part in node.parts for item in self(part).items())
            case plan.Distinct():
                return Counter(dict.fromkeys(self(node.input), 1))
            case plan.Join():
                return _summed(_joined(node, self(node.left), self(node.right)))
            case plan.Difference():
                out = {_key(node.right, row, (right for _, right in node.on)) for row in self(node.right)}
                rows = self(node.left).items()
                return Counter(
                    {row: n for row, n in rows if _key(node.left, row, (left for left, _ in node.on)) not in out}
                )
            case plan.Aggregate():
                return _aggregated(node, self(node.input))
            case _:
                raise OptionError(f"the reference does not know {node.label}")


def _summed(rows: Iterable[tuple[Row, int]]) -> Bag:
    found: Bag = Counter()
    for row, count in rows:
        found[row] += count
    return found


def _named(node: plan.Node, row: Row) -> dict[str, Any]:
    return dict(zip(node.schema, row, strict=True))


def _key(node: plan.Node, row: Row, names: Iterable[str]) -> Row:
    named = _named(node, row)
    return tuple(named[name] for name in names)


def _projected(node: plan.Project, row: Row) -> Row:
    named = _named(node.input, row)
    return tuple(_computed(node, name, operand, named) for name, operand in node.values)


def _computed(node: plan.Project, name: str, operand: p.Operand, named: Mapping[str, Any]) -> Any:
    found, kind = value(operand, named), node.schema[name]
    if found is None:
        raise DataError(f"{node.label}: '{name}' is NULL for {dict(named)}, as it divides by zero")
    if pa.types.is_floating(kind):
        return _one((float(found),))[0]
    return _checked(node, name, found) if pa.types.is_integer(kind) else found


def _checked(node: plan.Node, name: str, number: int) -> int:
    if not -FOREVER - 1 <= number <= FOREVER:
        raise DataError(f"{node.label}: '{name}' would be {number}, which is beyond 64 bits")
    return number


def _joined(node: plan.Join, left: Bag, right: Bag) -> Iterator[tuple[Row, int]]:
    partners: dict[Row, list[tuple[Row, int]]] = defaultdict(list)
    for row, count in right.items():
        taken = _key(node.right, row, (name for name, _ in node.names))
        partners[_key(node.right, row, (name for _, name in node.on))].append((taken, count))
    for row, count in left.items():
        for taken, times in partners.get(_key(node.left, row, (name for name, _ in node.on)), ()):
            pair = row + taken
            if node.where is None or holds(node.where, _named(node, pair)):
                yield pair, count * times


def _aggregated(node: plan.Aggregate, bag: Bag) -> Bag:
    groups: dict[Row, list[dict[str, Any]]] = defaultdict(list)
    for row in bag.elements():
        groups[_key(node.input, row, node.by)].append(_named(node.input, row))
    found: Bag = Counter()
    for group, rows in groups.items():
        found[group + tuple(_aggregate(node, item, rows) for item in node.items)] += 1
    return found


def _aggregate(node: plan.Aggregate, item: plan.Item, rows: list[dict[str, Any]]) -> Any:
    if item.column is None:
        return len(rows)
    values = [row[item.column] for row in rows]
    if item.function in ("min", "max"):
        numbers = [one for one in values if one == one] or values
        return min(numbers) if item.function == "min" else max(numbers)
    if all(isinstance(one, int) for one in values):
        # An integer over an integer is rounded once, however great the two are.
        return _checked(node, item.name, sum(values)) if item.function == "sum" else sum(values) / len(values)
    total = _sum(values)
    return _one((total if item.function == "sum" else total / len(values),))[0]


def _sum(values: list[float]) -> float:
    """The sum of floats, rounded once, so that it does not depend on their order."""
    if not all(map(math.isfinite, values)):
        return sum(values)
    try:
        return math.fsum(values)
    except OverflowError:
        # A sum on the way is too great, or the sum itself.
        exact = sum(map(Fraction, values))
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


# -- streams of changes -----------------------------------------------------------------------------------------------


def settled(changes: Iterable[tuple[Row, int, int, int | None]]) -> list[Event]:
    """The events that are left of insertions and retractions.

    Parameters
    ----------
    changes
        ``(row, vs, ve, ve_new)`` in order: an insertion where ``ve_new`` is ``None``, else the retraction of the event
        ``(row, vs, ve)``, which from then on ends at ``ve_new``.

    Raises
    ------
    DataError
        A retraction of what is not there, or one that makes a lifetime longer; an event that ends before it begins.

    Examples
    --------
    >>> settled([(("a",), 1, 9, None), (("b",), 2, 5, None), (("a",), 1, 9, 4), (("b",), 2, 5, 2)])
    [Event(row=('a',), vs=1, ve=4)]
    """
    found: Counter[Event] = Counter()
    for row, vs, ve, ve_new in changes:
        event = Event(row, vs, ve)
        if ve < vs:
            raise DataError(f"{row} ends at {ve}, before it begins at {vs}")
        if ve_new is None:
            found[event] += 1
            continue
        if not found[event]:
            raise DataError(f"the retraction of {row} at [{vs}, {ve}) to {ve_new} names no event that is there")
        if not vs <= ve_new < ve:
            raise DataError(f"the retraction of {row} at [{vs}, {ve}) to {ve_new} does not make it shorter")
        found[event] -= 1
        found[event._replace(ve=ve_new)] += 1
    return [event for event in found.elements() if event.ve > event.vs]


def history(table: pa.Table, schema: Mapping[str, pa.DataType] | None = None) -> History:
    """The canonical history of a stream of insertions and retractions.

    Parameters
    ----------
    table
        Payload columns, ``vs``, and where they occur ``ve`` (NULL: without end) and ``ve_new`` (NULL: an insertion), in order of
        arrival: what :meth:`Dataflow.output <stretto.dataflow.Dataflow.output>` gives, all of it.
    schema
        The columns of the payload in order; ``None``: those of the table.

    Raises
    ------
    DataError
        A retraction of what is not there.

    Examples
    --------
    >>> history(pa.table({"x": ["a", "a", "a"], "vs": [1, 2, 1], "ve": [None, 5, None], "ve_new": [None, None, 3]}))
    {('a',): [Span(vs=1, ve=2, copies=1), Span(vs=2, ve=3, copies=2), Span(vs=3, ve=5, copies=1)]}
    """
    times = ("vs", "ve", "ve_new")
    names = list(schema) if schema is not None else [name for name in table.column_names if name not in times]
    columns = [table.column(name).to_pylist() for name in names]
    rows: Iterable[Row] = zip(*columns, strict=True) if columns else [()] * table.num_rows
    ticks = {
        name: _ticks(table.column(name)) if name in table.column_names else [None] * table.num_rows for name in times
    }
    changes = [
        (_one(row), int(vs or 0), FOREVER if ve is None else ve, ve_new)
        for row, vs, ve, ve_new in zip(rows, *ticks.values(), strict=True)
    ]
    return _canonical(settled(changes))


def _ticks(column: pa.ChunkedArray) -> list[int | None]:
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return column.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def _canonical(events: Iterable[Event]) -> History:
    """The history of events."""
    changes: dict[Row, Counter[int]] = defaultdict(Counter)
    for row, vs, ve in events:
        changes[row][vs] += 1
        changes[row][ve] -= 1
    found: History = {}
    for row, weights in changes.items():
        spans: list[Span] = []
        count = 0
        times = sorted(weights)
        for vs, ve in zip(times, times[1:], strict=False):
            count += weights[vs]
            if count:
                _extend(spans, Span(vs, ve, count))
        found[row] = spans
    return found


def before(found: History, time: int) -> History:
    """What a history says of the times before one: what a definite punctuation at that time makes certain.

    Examples
    --------
    >>> before({("a",): [Span(1, 5, 1), Span(5, 9, 2)], ("b",): [Span(6, 8, 1)]}, 6)
    {('a',): [Span(vs=1, ve=5, copies=1), Span(vs=5, ve=6, copies=2)]}
    """
    cut = {
        row: [span._replace(ve=min(span.ve, time)) for span in spans if span.vs < time] for row, spans in found.items()
    }
    return {row: spans for row, spans in cut.items() if spans}
