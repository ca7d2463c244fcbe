"""Which cyclic plans may run: what lies on a cycle, and whether it comes to an end (FFP paper, sections 3.2, 3.3 and 6)."""

from __future__ import annotations

from collections.abc import Iterable

from stretto.dataflow.node import Fixpoint, Loop, Node, Recursion
from stretto.errors import OptionError
from stretto.languages.datalog.strata import components


class Cycle:
    """A strongly connected part of a plan: loops that depend on each other.

    Attributes
    ----------
    nodes
        Its nodes, inputs before readers.
    loops
        The loops that it is made of.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        found = {id(node.loop): node.loop for node in nodes if isinstance(node, Recursion)}
        self.loops = list(found.values())

    @property
    def name(self) -> str:
        """What errors call it."""
        return ", ".join(loop.name for loop in self.loops)

    @property
    def by_level(self) -> bool:
        """Whether it holds an operator whose result is no sum over its rows."""
        return any(node.by_level for node in self.nodes)

    @property
    def bound(self) -> int | None:
        """The greatest level of its rows; ``None``: there is none."""
        bounds = [loop.bound for loop in self.loops if loop.bound is not None]
        return max(bounds) if bounds else None

    def bound_of(self, loop: Loop) -> int | None:
        """How often anything may go around one of its loops; one that does not say it has the bound of the others."""
        return self.bound if loop.bound is None else loop.bound

    @property
    def outermost(self) -> Loop:
        """The loop that all others of it stand in: they are defined before it is."""
        return [node.loop for node in self.nodes if isinstance(node, Fixpoint)][-1]

    @property
    def inner(self) -> list[Cycle]:
        """The cycles that are left where the outermost loop does not turn, those that are read first."""
        outermost = self.outermost
        place = {id(node): at for at, node in enumerate(self.nodes)}
        reads = {
            at: []
            if isinstance(node, Recursion) and node.loop is outermost
            else [place[id(edge)] for edge in edges(node) if id(edge) in place]
            for at, node in enumerate(self.nodes)
        }
        return [Cycle([self.nodes[at] for at in sorted(part)]) for part in components(reads) if len(part) > 1]

    @property
    def depth(self) -> int:
        """How many loops stand in each other."""
        return 1 + max((cycle.depth for cycle in self.inner), default=0)

    @property
    def nests(self) -> bool:
        """Whether levels are counted for each loop that stands in another.

        Where rows only ever come, and as often as they like, the limit does not depend on the order in which loops turn.
        """
        depends = self.bound is not None or any(node.chosen for node in self.nodes)
        return depends and bool(self.inner)


def edges(node: Node) -> tuple[Node, ...]:
    """What a node reads, around the loop too."""
    return (node.loop.fixpoints[node.index],) if isinstance(node, Recursion) else node.inputs


def ordered(outputs: Iterable[Node]) -> list[Node]:
    """Every node that an output depends on, inputs before their readers but for the streams that close a loop."""
    found: list[Node] = []
    done: set[int] = set()
    waiting = list(outputs)
    while waiting:
        stack: list[tuple[Node, bool]] = [(waiting.pop(0), False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                found.append(node)
                continue
            if id(node) in done:
                continue
            done.add(id(node))
            if isinstance(node, Recursion):
                if not node.loop.fixpoints:
                    raise OptionError(f"the relation '{node.loop.name}' is used outside of its definition")
                waiting += edges(node)
            stack.append((node, True))
            stack += [(one, False) for one in reversed(node.inputs)]
    return found


def ordered_with_loops(outputs: list[Node]) -> list[Node]:
    """Do what :func:`ordered` does, with the relations of loops that nothing reads: they are part of a definition all the same."""
    nodes = ordered(outputs)
    there = {id(node) for node in nodes}
    parts = [one for loop in loops_of(nodes) for one in (*loop.variables, *loop.bodies, *loop.fixpoints)]
    missing = [part for part in parts if id(part) not in there]
    return ordered_with_loops([*outputs, *missing]) if missing else nodes


def loops_of(nodes: Iterable[Node]) -> list[Loop]:
    """The loops whose relations are among nodes."""
    found = {id(node.loop): node.loop for node in nodes if isinstance(node, Recursion | Fixpoint)}
    return list(found.values())


def cycles(nodes: list[Node]) -> list[Cycle]:
    """The strongly connected parts that are cycles (Tarjan), in the order of their first nodes."""
    place = {id(node): at for at, node in enumerate(nodes)}
    parts = components({at: [place[id(edge)] for edge in edges(node)] for at, node in enumerate(nodes)})
    cyclic = sorted(sorted(part) for part in parts if len(part) > 1)
    made = [Cycle([nodes[at] for at in part]) for part in cyclic]
    for cycle in made:
        _check(cycle)
    return made


def _check(cycle: Cycle) -> None:
    """Refuse a loop that would not give its fixed point, or perhaps never.

    Raises
    ------
    OptionError
        With the operator, the reason and what to do.
    """
    inside = {id(node) for node in cycle.nodes}
    if not any(id(edge) not in inside for node in cycle.nodes for edge in edges(node)):
        raise OptionError(f"the loop '{cycle.name}' has no input from outside: nothing can ever be in it")
    # A matcher before the window that belongs to it, which nobody wrote.
    for node in sorted(cycle.nodes, key=lambda node: node.given == node.inputs):
        problem = node.problem(inside)
        if problem:
            raise OptionError(f"the loop '{cycle.name}' goes through {node.label}: {problem}")
    found = None if all(loop.ends for loop in cycle.loops) else reasons(cycle)
    if found and cycle.bound is None:
        raise OptionError(
            f"the loop '{cycle.name}' may not come to an end: {found}; state how often anything may go around: bound=…"
        )


def reasons(cycle: Cycle) -> str | None:
    """Why a loop may turn forever; ``None``: it cannot."""
    inside = {id(node) for node in cycle.nodes}
    for node in cycle.nodes:
        if node.creates:
            return node.creates
    decided = _decided(cycle)
    if decided is not None:
        return f"what goes on in it depends on '{decided}', which a min or max of it revises: it may swing for ever"
    filters = {id(node) for node in cycle.nodes if node.ending}
    # Without them, is there still a cycle?
    rest = {one for one in inside if one not in filters}
    by_id = {id(node): node for node in cycle.nodes}
    while True:
        free = {one for one in rest if not any(id(read) in rest for read in edges(by_id[one]))}
        if not free:
            break
        rest -= free
    return "rows that are derived again go around again (it has a cycle without distinct)" if rest else None


def _decided(cycle: Cycle) -> str | None:
    """A column of a min or max of the loop that a condition, a key or a group in the loop reads; ``None``: there is none.

    Such a column may get worse and better by turns: its value decides what it is itself derived from. Elsewhere a better value only
    replaces a worse one.
    """
    revised = _revised(cycle)
    for node in cycle.nodes:
        read = [column for one, column in node.decides if column in revised.get(id(one), ())]
        if read:
            return min(read)
    return None


def _revised(cycle: Cycle) -> dict[int, set[str]]:
    """For each node of a loop, the columns whose values come from a min or max of the loop."""
    found = {id(node): set(node.chosen) for node in cycle.nodes}
    changed = any(found.values())
    while changed:
        changed = False
        for node in cycle.nodes:
            own = found[id(node)]
            for column in node.schema:
                if column not in own and any(its in found.get(id(one), ()) for one, its in node.origins(column)):
                    own.add(column)
                    changed = True
    return found
