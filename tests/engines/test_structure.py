"""The invariants of the tECS (CORE, section 4.1), on random runs: time-ordered, 3-bounded, duplicate-free."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from stretto.engines.tecs.kernels import COUNT, HEADER, LENGTH, WORDS
from stretto.engines.tecs.runner import Runner
from stretto.engines.tecs.structure import HEAD, LOW, NIL, TAIL
from stretto.matching.compiled import compile_query

QUERIES = [
    "SELECT * FROM S WHERE A ; B ; C WITHIN 12 EVENTS",
    "SELECT * FROM S WHERE A ; (A OR B)+ ; C WITHIN 9 EVENTS",
    "SELECT * FROM S WHERE (A ; B+)+ ; C WITHIN 8 EVENTS",
    "SELECT * FROM S WHERE A ; (B OR C)+ : C WITHIN 10 EVENTS",
    "SELECT * FROM S WHERE (A+ ; B) OR (A ; B+ ; C)",
    "SELECT MAX * FROM S WHERE A ; B+ ; C WITHIN 12 EVENTS",
    "SELECT B FROM S WHERE A ; B+ ; (C OR A) WITHIN 7 EVENTS",
]


class Structure:
    """The tECS of a runner, read node by node."""

    def __init__(self, runner: Runner) -> None:
        self.nodes = runner.state.nodes
        self.registers = runner.state.registers
        self.records = runner.state.records
        self.mask = self.nodes.left.size - 1

    def lists(self) -> Iterator[list[int]]:
        """The union-lists of all records, without what has left the window."""
        arena = self.records.arena
        for at in self.records.head:
            word = at + HEADER
            for _ in range(arena[at + COUNT] if at else 0):
                length = int(arena[word]) & LENGTH
                nodes = [int(n) for n in arena[word + WORDS : word + WORDS + length]]
                live = [n for n in nodes if n > self.registers[TAIL] and self.start(n) >= self.registers[LOW]]
                if live:
                    yield live
                word += WORDS + length

    def start(self, node: int) -> int:
        return int(self.nodes.start[node & self.mask])

    def is_union(self, node: int) -> bool:
        return bool(self.nodes.right[node & self.mask] != NIL)

    def left(self, node: int) -> int:
        return int(self.nodes.left[node & self.mask])

    def right(self, node: int) -> int | None:
        """The right child, unless it has left the window."""
        if self.nodes.right_start[node & self.mask] < self.registers[LOW]:
            return None
        return int(self.nodes.right[node & self.mask])

    def depth(self, node: int) -> int:
        """odepth: unions in a row to the left."""
        count = 0
        while self.is_union(node):
            node = self.left(node)
            count += 1
        return count

    def opened(self, node: int) -> list[tuple[int, tuple[int, ...]]]:
        """⟦n⟧: the open complex events (start, positions) of the window."""
        slot = node & self.mask
        if self.start(node) < self.registers[LOW]:
            return []
        if self.is_union(node):
            right = self.right(node)
            return self.opened(self.left(node)) + ([] if right is None else self.opened(right))
        if self.left(node) == NIL:
            position = int(self.nodes.position[slot])
            return [(position, (position,) if self.nodes.mark[slot] else ())]
        return [(s, (*d, int(self.nodes.position[slot]))) for s, d in self.opened(self.left(node))]

    def reachable(self) -> set[int]:
        seen: set[int] = set()
        todo = [node for nodes in self.lists() for node in nodes]
        while todo:
            node = todo.pop()
            if node in seen or node == NIL:
                continue
            seen.add(node)
            assert self.registers[TAIL] < node < self.registers[HEAD], "a freed node is in reach"
            if self.is_union(node):
                right = self.right(node)
                todo += [self.left(node)] + ([] if right is None else [right])
            else:
                todo.append(self.left(node))
        return seen


def check_invariants(structure: Structure) -> None:
    for nodes in structure.lists():
        assert not structure.is_union(nodes[0]), "a union-list begins with a node that is no union"
        starts = [structure.start(node) for node in nodes]
        assert all(starts[0] >= start for start in starts)
        assert all(a > b for a, b in zip(starts[1:], starts[2:], strict=False)), "a union-list descends"
        for node in nodes:
            assert structure.depth(node) <= 1, "a node in a union-list is safe"
            opened = structure.opened(node)
            assert len(set(opened)) == len(opened), "duplicate-free"
            assert max(s for s, _ in opened) == structure.start(node), "max(n)"
    for node in structure.reachable():
        assert structure.depth(node) <= 3, "3-bounded"
        if structure.is_union(node):
            right = structure.right(node)
            if right is not None:
                assert structure.start(structure.left(node)) >= structure.start(right), "time-ordered"
                assert structure.nodes.right_start[node & structure.mask] == structure.start(right)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("capacity", [1, 4096])
def test_invariants(text: str, capacity: int) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        types = [rng.choice("AABBC") for _ in range(14)]
        table = pa.table({"type": types})
        query = compile_query(text, table.schema)
        runner = Runner(query.program(), labels=False, capacity=capacity)
        for batch in table.to_batches(max_chunksize=1):
            list(runner.advance(batch))
            check_invariants(Structure(runner))


def test_collecting_keeps_what_is_represented() -> None:
    table = pa.table({"type": list("ABBACABBCAB")})
    query = compile_query("SELECT * FROM S WHERE A ; B+ ; C", table.schema)
    runner = Runner(query.program(), labels=False)
    for batch in table.to_batches():
        list(runner.advance(batch))
    before = [[sorted(Structure(runner).opened(n)) for n in nodes] for nodes in Structure(runner).lists()]
    runner.state.collect()
    after = Structure(runner)
    check_invariants(after)
    assert [[sorted(after.opened(n)) for n in nodes] for nodes in after.lists()] == before
    assert int(after.registers[HEAD]) - 2 == len(after.reachable()), "nothing but what is reachable is kept"


def test_window_frees_nodes() -> None:
    """In a window the store does not grow with the stream."""
    rng = np.random.default_rng(0)
    table = pa.table({"type": pa.array(np.array(["A", "B", "C"])[rng.integers(0, 3, 20_000)])})
    query = compile_query("SELECT * FROM S WHERE A ; B ; C ; D WITHIN 50 EVENTS", table.schema)
    runner = Runner(query.program(), labels=False, capacity=1)
    sizes = []
    for batch in table.to_batches(max_chunksize=2_000):
        list(runner.advance(batch))
        sizes.append(runner.state.nodes.left.size)
    assert sizes[-1] == sizes[1] <= 4096
