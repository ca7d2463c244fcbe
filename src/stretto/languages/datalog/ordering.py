"""The order in which the goals of a body are looked at, and whether every variable gets its values (safety).

Relations are joined as they are written, left to right. Everything else is done as soon as its variables are known: a
comparison filters, an equation with one unknown variable gives that variable its value, a negated goal excludes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stretto.errors import QueryError, nearest
from stretto.languages.datalog.tree import ANY, Atom, Goal, Literal, Rule, bare, variables
from stretto.languages.expressions.transformer import DEEPEST
from stretto.query import predicate as p

LARGEST = 2_000
"""Values and operations in a value that a rule computes, written out down to the columns of relations."""


@dataclass(frozen=True)
class Scan:
    """The step that joins with a relation."""

    atom: Atom


@dataclass(frozen=True)
class Assign:
    """The step that gives a variable a value, computed from known ones."""

    variable: str
    value: p.Operand


@dataclass(frozen=True)
class Filter:
    """The step that compares known values."""

    comparison: p.Comparison


@dataclass(frozen=True)
class Exclude:
    """The step that asks that no row of a relation agrees with the known values."""

    atom: Atom


Step = Scan | Assign | Filter | Exclude


@dataclass(frozen=True)
class Ordered:
    """A rule with the steps of its body."""

    rule: Rule
    steps: tuple[Step, ...]

    @property
    def scans(self) -> Iterator[Atom]:
        """The relations that the rule joins."""
        return (step.atom for step in self.steps if isinstance(step, Scan))


def ordered(rule: Rule) -> Ordered:
    """Put the goals of a rule's body in order, as steps.

    Raises
    ------
    QueryError
        A variable gets no values.

    Examples
    --------
    >>> from stretto.languages.datalog.parser import read_program
    >>> found = ordered(read_program("p(X, D) :- D = C + 1, q(X, C), not r(X), C < 9.").rules[0])
    >>> [type(step).__name__ for step in found.steps]
    ['Scan', 'Assign', 'Exclude', 'Filter']
    """
    _refuse_wildcards(rule)
    known: set[str] = set()
    steps: list[Step] = []
    waiting = [goal for goal in rule.body if not _is_scan(goal)]
    scans = [goal.atom for goal in rule.body if isinstance(goal, Literal) and not goal.negated]
    # What needs no relation waits for the first one all the same, if there is one: only constants are known at once.
    _settle(waiting, known, steps, constants=bool(scans))
    for atom in scans:
        steps.append(Scan(atom))
        known |= set(variables(*atom.arguments))
        _settle(waiting, known, steps)
    if waiting:
        raise _unbound_goal(waiting[0], known)
    _check_head(rule, known)
    _check_size(steps)
    return Ordered(rule, tuple(steps))


def _is_scan(goal: Goal) -> bool:
    return isinstance(goal, Literal) and not goal.negated


def _is_constant(step: Step) -> bool:
    return isinstance(step, Assign) and isinstance(step.value, p.Constant)


def _settle(waiting: list[Goal], known: set[str], steps: list[Step], *, constants: bool = False) -> None:
    """Every goal that can be looked at by now, again and again, as equations make variables known."""
    progress = True
    while progress:
        progress = False
        for goal in list(waiting):
            step = _step(goal, known)
            if step is None or (constants and not _is_constant(step)):
                continue
            waiting.remove(goal)
            steps.append(step)
            if isinstance(step, Assign):
                known.add(step.variable)
                progress = True


def _step(goal: Goal, known: set[str]) -> Step | None:
    if isinstance(goal, Literal):
        return Exclude(goal.atom) if variables(*goal.atom.arguments).keys() <= known else None
    if variables(goal).keys() <= known:
        return Filter(goal)
    if goal.op == "=":
        for target, value in ((goal.left, goal.right), (goal.right, goal.left)):
            if isinstance(target, p.Attribute) and target.name not in known and variables(value).keys() <= known:
                return Assign(target.name, value)
    return None


def _check_size(steps: Iterable[Step]) -> None:
    """Values that are computed from computed ones stay short when they are written out: passes recurse into them."""
    sizes: dict[str, tuple[int, int]] = {}
    for step in steps:
        if not isinstance(step, Assign):
            continue
        inside = [sizes[one.name] for one in p.walk(step.value) if isinstance(one, p.Attribute) and one.name in sizes]
        size = sum(1 for _ in p.walk(step.value)) + sum(one for one, _ in inside)
        height = _height(step.value) + max((one for _, one in inside), default=0)
        if size > LARGEST or height > DEEPEST:
            message = (
                f"the value of '{step.variable}' is too long when the values that it is computed from are written out"
            )
            hint = "derive a relation for a part of it"
            raise QueryError(message, span=step.value.span, hint=hint)
        sizes[step.variable] = (size, height)


def _height(value: p.Operand) -> int:
    levels = 0
    front: list[p.Expression] = [value]
    while front:
        levels += 1
        front = [one for node in front for one in p.children(node)]
    return levels


# ---- Safety


def _refuse_wildcards(rule: Rule) -> None:
    """The anonymous variable stands in relations only."""
    for value in rule.values:
        for node in p.walk(value):
            if isinstance(node, p.Attribute) and node.name == ANY:
                raise QueryError("'_' stands for any value, and a head needs one", span=node.span)
    for goal in rule.body:
        if not isinstance(goal, Literal):
            for node in p.walk(goal):
                if isinstance(node, p.Attribute) and node.name == ANY:
                    raise QueryError("'_' stands for any value, and a comparison needs one", span=node.span)


def _unbound_goal(goal: Goal, known: set[str]) -> QueryError:
    found = variables(*goal.atom.arguments) if isinstance(goal, Literal) else variables(goal)
    name, span = next((name, span) for name, span in found.items() if name not in known)
    if isinstance(goal, Literal):
        message = f"no goal without 'not' gives the variable '{name}' a value"
        hint = _meant(name, known) or f"write _ if any value will do: not {_with_any(goal.atom, name)}"
    else:
        message = f"nothing gives the variable '{name}' a value"
        hint = _meant(name, known) or f"add a goal without 'not' that has {name}"
    return QueryError(message, span=span or goal.span, hint=hint)


def _with_any(atom: Atom, name: str) -> Atom:
    arguments = (p.Attribute(ANY) if one == p.Attribute(name) else one for one in atom.arguments)
    return Atom(atom.name, tuple(arguments))


def _check_head(rule: Rule, known: set[str]) -> None:
    if rule.head.aggregates and not rule.body:
        aggregate = rule.head.aggregates[0][1]
        raise QueryError(f"a fact has constants only, not {aggregate}", span=aggregate.span)
    for value in rule.values:
        for name, span in variables(value).items():
            if name in known:
                continue
            if not rule.body:
                hint = f"a word that begins with a capital is a variable: write '{name}' in quotes for the string"
                raise QueryError(f"a fact has constants only, and {name} is a variable", span=span, hint=hint)
            message = f"nothing in the body gives the variable '{name}' a value"
            raise QueryError(message, span=span, hint=_meant(name, known) or _add(name, rule))
        if not rule.body and not isinstance(value, p.Constant):
            raise QueryError(f"a fact has constants only, not {bare(value)}", span=value.span)


def _add(name: str, rule: Rule) -> str:
    under = any(isinstance(goal, Literal) and name in variables(*goal.atom.arguments) for goal in rule.body)
    return f"add a goal {'without ' + repr('not') + ' ' if under else ''}that has {name}"


def _meant(name: str, known: Iterable[str]) -> str | None:
    found = nearest(name, sorted(known)) if len(name) > 1 else None
    return f"did you mean '{found}'?" if found else None
