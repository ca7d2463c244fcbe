"""Which relations depend on each other, and that none depends on its own negation (stratification).

What depends on each other: the strongly connected components of a graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stretto.errors import QueryError, Span
from stretto.languages.datalog.ordering import Exclude, Ordered, Scan

N = TypeVar("N", bound=Hashable)


def components(reads: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """Find the strongly connected components (Tarjan), those that are read first; without recursion, as graphs may be deep.

    >>> components({"a": ["b"], "b": ["c", "a"], "c": []})
    [['c'], ['b', 'a']]
    """
    number: dict[N, int] = {}
    low: dict[N, int] = {}
    stack: list[N] = []
    on_stack: set[N] = set()
    found: list[list[N]] = []
    for root in reads:
        if root in number:
            continue
        work = [(root, iter(reads[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            step = next(rest, None)
            if step is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    component: list[N] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    found.append(component)
            elif step not in number:
                number[step] = low[step] = len(number)
                stack.append(step)
                on_stack.add(step)
                work.append((step, iter(reads[step])))
            elif step in on_stack:
                low[node] = min(low[node], number[step])
    return found


#: Aggregates whose value only gets better while a recursion goes on (section 6: aggregate selection).
SELECTIONS = ("min", "max")


@dataclass(frozen=True)
class Names:
    """Relations that depend on each other, by name."""

    names: tuple[str, ...]
    recursive: bool


def stratified(orders: Mapping[str, Sequence[Ordered]]) -> tuple[Names, ...]:
    """Put relations that depend on each other in groups, each group after those that it reads.

    Raises
    ------
    QueryError
        A relation depends on its own negation, or on its own count, sum or average.
    """
    reads = {name: list(dict.fromkeys(_read(rules))) for name, rules in orders.items()}
    reads = {name: [one for one in found if one in orders] for name, found in reads.items()}
    groups = []
    for component in components(reads):
        inside = set(component)
        names = tuple(name for name in orders if name in inside)
        recursive = len(names) > 1 or names[0] in reads[names[0]]
        if recursive:
            _check(names, reads, orders)
        groups.append(Names(names, recursive))
    return tuple(groups)


def _read(rules: Sequence[Ordered]) -> Iterator[str]:
    for rule in rules:
        for step in rule.steps:
            if isinstance(step, Scan | Exclude):
                yield step.atom.name


def _check(names: Sequence[str], reads: Mapping[str, list[str]], orders: Mapping[str, Sequence[Ordered]]) -> None:
    inside = set(names)
    for name in names:
        for rule in orders[name]:
            for step in rule.steps:
                if isinstance(step, Exclude) and step.atom.name in inside:
                    back = [name] if step.atom.name == name else _path(step.atom.name, name, reads, inside)
                    cycle = " → ".join([name, f"not {back[0]}", *back[1:]])
                    raise QueryError(
                        f"'{name}' depends on its own negation: {cycle}",
                        span=step.atom.span,
                        hint=f"'not' may stand before relations that do not depend on '{name}'",
                    )
            for _, aggregate in rule.rule.head.aggregates:
                if aggregate.function not in SELECTIONS:
                    raise _aggregated(name, aggregate.function, aggregate.span, _path(name, name, reads, inside))


def _aggregated(name: str, function: str, span: Span | None, cycle: Sequence[str]) -> QueryError:
    return QueryError(
        f"'{name}' depends on its own {function}: {' → '.join(cycle)}",
        span=span,
        hint=f"{function} changes with every row that the recursion adds; only min and max may be inside: "
        f"derive the rows first, and take {function} of them in another relation",
    )


def _path(start: str, end: str, reads: Mapping[str, list[str]], inside: set[str]) -> list[str]:
    """The shortest way along dependencies, of one step or more, both ends included."""
    ways = [[start]]
    seen: set[str] = set()
    for way in ways:  # grows while it is walked
        for one in reads[way[-1]]:
            if one == end:
                return [*way, one]
            if one in inside and one not in seen:
                seen.add(one)
                ways.append([*way, one])
    return [start, end]
