"""Whether one condition on an event implies another: found for conjunctions of comparisons with constants, else denied.

Used for punctuations with predicates (AFA paper, appendix F.2): from "no event with floor ≤ 3 comes before 20" follows the same for
"floor = 3 and temperature > 95".
"""

from __future__ import annotations

from collections.abc import Iterable

from stretto.query import predicate as p
from stretto.query.evaluate import compare, like

__all__ = ["implies"]

_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def implies(given: p.Predicate, wanted: p.Predicate) -> bool:
    """Whether every event that satisfies ``given`` satisfies ``wanted``, as far as this can tell.

    Examples
    --------
    >>> x, y = p.Attribute("x"), p.Attribute("y")
    >>> given = p.And((p.Comparison("=", x, p.Constant(3)), p.Comparison(">", y, p.Constant(95))))
    >>> implies(given, p.Comparison("<=", x, p.Constant(3))), implies(given, p.Comparison("<", x, p.Constant(3)))
    (True, False)
    """
    if isinstance(wanted, p.And):
        return all(implies(given, part) for part in wanted.parts)
    if isinstance(given, p.Or):
        return all(implies(part, wanted) for part in given.parts)
    if isinstance(wanted, p.Or):
        return any(implies(given, part) for part in wanted.parts)
    return any(_one(part, wanted) for part in _parts(given))


def _parts(condition: p.Predicate) -> Iterable[p.Predicate]:
    return condition.parts if isinstance(condition, p.And) else (condition,)


def _one(given: p.Predicate, wanted: p.Predicate) -> bool:
    """Of two conditions that are no conjunctions."""
    if given == wanted:
        return True
    values = _values(given)
    if values is not None:
        operand, constants = values
        return all(_holds(wanted, operand, constant) for constant in constants)
    if isinstance(given, p.Between) and isinstance(given.low, p.Constant) and isinstance(given.high, p.Constant):
        bounds = (p.Comparison(">=", given.operand, given.low), p.Comparison("<=", given.operand, given.high))
        return any(_one(bound, wanted) for bound in bounds)
    if isinstance(wanted, p.Between):
        return False
    if isinstance(wanted, p.Not) and isinstance(wanted.part, p.IsNull):
        # A comparison with NULL is false.
        return isinstance(given, p.Comparison | p.In | p.Like) and wanted.part.operand in _operands(given)
    return _bounded(given, wanted)


def _operands(condition: p.Comparison | p.In | p.Like) -> tuple[p.Operand, ...]:
    if isinstance(condition, p.Comparison):
        return (condition.left, condition.right)
    return (condition.operand,)


def _values(condition: p.Predicate) -> tuple[p.Operand, tuple[p.Constant, ...]] | None:
    """The values that a condition leaves to an operand, if it names them."""
    if isinstance(condition, p.In):
        return condition.operand, condition.values
    told = _side(condition)
    return (told[1], (told[2],)) if told is not None and told[0] == "=" else None


def _side(condition: p.Predicate) -> tuple[str, p.Operand, p.Constant] | None:
    """A comparison with a constant, the constant to the right."""
    if isinstance(condition, p.Comparison):
        if isinstance(condition.right, p.Constant):
            return condition.op, condition.left, condition.right
        if isinstance(condition.left, p.Constant):
            return _FLIPPED[condition.op], condition.right, condition.left
    return None


def _holds(wanted: p.Predicate, operand: p.Operand, constant: p.Constant) -> bool:
    """Whether a condition holds where an operand has a value."""
    if isinstance(wanted, p.Not):
        return (
            not isinstance(wanted.part, p.And | p.Or | p.Not)
            and _is_about(wanted.part, operand)
            and not _holds(wanted.part, operand, constant)
        )
    if isinstance(wanted, p.In):
        return wanted.operand == operand and any(_compares("=", constant, one) for one in wanted.values)
    if isinstance(wanted, p.Like):
        return wanted.operand == operand and isinstance(constant.value, str) and like(constant.value, wanted.pattern)
    if isinstance(wanted, p.Between):
        low, high = wanted.low, wanted.high
        if wanted.operand != operand or not (isinstance(low, p.Constant) and isinstance(high, p.Constant)):
            return False
        return _compares(">=", constant, low) and _compares("<=", constant, high)
    told = _side(wanted)
    return told is not None and told[1] == operand and _compares(told[0], constant, told[2])


def _is_about(condition: p.Predicate, operand: p.Operand) -> bool:
    """Whether a condition compares this operand with constants and nothing else."""
    if isinstance(condition, p.In | p.Like):
        return condition.operand == operand
    if isinstance(condition, p.Between):
        constants = isinstance(condition.low, p.Constant) and isinstance(condition.high, p.Constant)
        return condition.operand == operand and constants
    told = _side(condition)
    return told is not None and told[1] == operand


def _compares(op: str, left: p.Constant, right: p.Constant) -> bool:
    try:
        return compare(op, left.value, right.value)
    except TypeError:
        return False


def _bounded(given: p.Predicate, wanted: p.Predicate) -> bool:
    """Of two bounds on one operand."""
    first, second = _side(given), _side(wanted)
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
