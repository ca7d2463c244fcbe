"""Guards: what one transition asks of the event that it reads.

Whether one condition on an event implies another: found for conjunctions of comparisons with constants, else denied.

Used for punctuations with predicates (AFA paper, appendix F.2): from "no event with floor ≤ 3 comes before 20" follows the same for
"floor = 3 and temperature > 95".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stretto.query import predicate as p
from stretto.query.algebra import Atom
from stretto.query.evaluate import compare, holds
from stretto.query.predicate import Or, Predicate


@dataclass(frozen=True)
class Guard:
    """A type test and the conditions that FILTER put on the event: the conjunction of all of them.

    ``stream`` is ``None`` when the type may come from any stream. ``conditions`` has no duplicates, in order of writing.
    """

    type: str
    stream: str | None = None
    conditions: tuple[Predicate, ...] = ()

    def and_also(self, predicate: Predicate) -> Guard:
        """The guard with one more condition."""
        if predicate in self.conditions:
            return self
        return Guard(self.type, self.stream, (*self.conditions, predicate))

    def __str__(self) -> str:
        name = str(Atom(self.type, self.stream))
        if not self.conditions:
            return name
        return f"{name}[{' AND '.join(f'({c})' if isinstance(c, Or) else str(c) for c in self.conditions)}]"


def implies(given: p.Predicate, wanted: p.Predicate) -> bool:
    """Tell whether every event that satisfies ``given`` satisfies ``wanted``, as far as one can.

    Examples
    --------
    >>> x, y = p.Attribute("x"), p.Attribute("y")
    >>> given = p.And((p.Comparison("=", x, p.Constant(3)), p.Comparison(">", y, p.Constant(95))))
    >>> implies(given, p.Comparison("<=", x, p.Constant(3))), implies(given, p.Comparison("<", x, p.Constant(3)))
    (True, False)
    """
    return given == wanted or _implies(p.spelt_out(given), p.spelt_out(wanted))


def _implies(given: p.Predicate, wanted: p.Predicate) -> bool:
    """Of two conditions that are spelt out. A part of ``given`` may tell all that is wanted, or ``given`` a part of that."""
    if isinstance(wanted, p.And):
        return all(_implies(given, part) for part in wanted.parts)
    if isinstance(given, p.Or):
        return all(_implies(part, wanted) for part in given.parts)
    if isinstance(given, p.And) and any(_implies(part, wanted) for part in given.parts):
        return True
    if isinstance(wanted, p.Or):
        return any(_implies(given, part) for part in wanted.parts)
    return not isinstance(given, p.And) and _one(given, wanted)


def _one(given: p.Predicate, wanted: p.Predicate) -> bool:
    """Of two conditions that are neither conjunctions nor disjunctions."""
    if given == wanted:
        return True
    if isinstance(wanted, p.Not) and isinstance(wanted.part, p.IsNull):
        # A comparison with NULL is false.
        return isinstance(given, p.Comparison | p.Like) and wanted.part.operand in p.children(given)
    told = p.against_constant(given)
    if told is not None and told[0] == "=":
        return _holds(wanted, told[1], told[2])
    return _bounded(given, wanted)


def _holds(wanted: p.Predicate, operand: p.Operand, constant: p.Constant) -> bool:
    """Whether a condition on an operand and constants holds where the operand has a value; one on something else does not."""
    plain = wanted.part if isinstance(wanted, p.Not) else wanted
    told = p.against_constant(plain)
    if isinstance(plain, p.Like) and plain.operand == operand:
        found = isinstance(constant.value, str) and holds(replace(plain, operand=constant), {})
    elif told is not None and told[1] == operand:
        found = _compares(told[0], constant, told[2])
    else:
        return False
    return found is not isinstance(wanted, p.Not)


def _compares(op: str, left: p.Constant, right: p.Constant) -> bool:
    try:
        return compare(op, left.value, right.value)
    except TypeError:
        return False


def _bounded(given: p.Predicate, wanted: p.Predicate) -> bool:
    """Of two bounds on one operand."""
    first, second = p.against_constant(given), p.against_constant(wanted)
    if first is None or second is None or first[1] != second[1]:
        return False
    (op, _, bound), (asked, _, other) = first, second
    if op in ("<", "<="):
        if asked == "<":
            return _compares("<" if op == "<=" else "<=", bound, other)
        return asked in ("<=", "!=") and _compares("<" if asked == "!=" and op == "<=" else "<=", bound, other)
    if op in (">", ">="):
        if asked == ">":
            return _compares(">" if op == ">=" else ">=", bound, other)
        return asked in (">=", "!=") and _compares(">" if asked == "!=" and op == ">=" else ">=", bound, other)
    return False
