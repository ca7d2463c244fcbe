"""What depends on each other: the strongly connected components of a graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

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
