"""Why a recursion ends (section 6: convergent queries), and that what min and max select only gets better in it.

Each row is derived once. So a recursion ends if its rules make finitely many values from finitely many rows: if they only take
values over; or if each value that they compute stays between bounds; or if it is a cost of which ``min`` keeps the least, and a
rule only adds to it. Otherwise the recursion needs a bound from the caller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from stretto.errors import QueryError
from stretto.languages.datalog.ordering import Assign, Exclude, Filter, Ordered, Scan
from stretto.languages.datalog.tree import ANY, Aggregate, Atom, bare, shown, variables
from stretto.query import predicate as p
from stretto.query.typing import kind_of

#: How a value changes while a recursion goes on.
FIXED, FALLS, RISES = "fixed", "falls", "rises"


def ending(
    names: Sequence[str],
    orders: Mapping[str, Sequence[Ordered]],
    rows: Mapping[str, Mapping[str, pa.DataType]],
    bound: int | None,
) -> str:
    """Say why the recursion of some relations ends.

    Raises
    ------
    QueryError
        It may not end, and there is no bound; or a value that ``min`` or ``max`` selects is used in a way in which a better one
        would undo what was derived.
    """
    said: list[str] = []
    for name in names:
        for rule in orders[name]:
            body = _Body.of(rule, names, orders, rows)
            if body is None:
                continue
            body.check_selections()
            for argument in rule.rule.head.arguments:
                reason = body.reason(argument)
                if reason is None and bound is None:
                    raise body.endless(argument)
                if reason and reason not in said:
                    said.append(reason)
    if bound is not None:
        return f"bound: at most {bound} times around"
    return ", and ".join(["each row is derived once", *(said or ["no rule computes new values"])])


@dataclass
class _Body:
    """The body of a recursive rule.

    Attributes
    ----------
    kinds
        The types of the variables of relations.
    inside
        Variables that get their values from the recursion only.
    trends
        Those that stand for a selected value, and how it changes.
    assigned
        What variables are computed from, written out down to variables of relations.
    """

    rule: Ordered
    kinds: Mapping[str, pa.DataType]
    inside: frozenset[str]
    trends: Mapping[str, str]
    assigned: Mapping[str, p.Operand]

    @classmethod
    def of(
        cls,
        rule: Ordered,
        names: Sequence[str],
        orders: Mapping[str, Sequence[Ordered]],
        rows: Mapping[str, Mapping[str, pa.DataType]],
    ) -> _Body | None:
        """The body, if it reads the recursion."""
        kinds: dict[str, pa.DataType] = {}
        inside: set[str] = set()
        trends: dict[str, str] = {}
        outside: set[str] = set()
        for atom in rule.scans:
            for argument, kind in zip(atom.arguments, rows[atom.name].values(), strict=True):
                if isinstance(argument, p.Attribute):
                    kinds.setdefault(argument.name, kind)
            if atom.name not in names:
                outside |= set(variables(*atom.arguments))
                continue
            inside |= set(variables(*atom.arguments))
            for at, selection in orders[atom.name][0].rule.head.aggregates:
                selected = atom.arguments[at]
                if isinstance(selected, p.Attribute):
                    trends[selected.name] = FALLS if selection.function == "min" else RISES
                elif isinstance(selected, p.Constant):
                    raise _not_monotone(f"{selection} is compared with {bare(selected)}", selected)
        if not any(atom.name in names for atom in rule.scans):
            return None
        assigned: dict[str, p.Operand] = {}
        for step in rule.steps:
            if isinstance(step, Assign):
                assigned[step.variable] = p.substituted(step.value, assigned)
        trends.pop(ANY, None)
        return cls(rule, kinds, frozenset(inside - outside), trends, assigned)

    def endless(self, argument: p.Operand | Aggregate) -> QueryError:
        """The error of a rule that may compute new values for ever."""
        name = str(argument) if isinstance(argument, Aggregate) else bare(argument)
        step = self._step(p.substituted(_value(argument), self.assigned))
        if isinstance(argument, Aggregate):
            sign = "negative (as C1 >= 0 does)" if argument.function == "min" else "positive (as C1 <= 0 does)"
            hint = f"add a condition that keeps what is added from being {sign}"
        elif step is not None:
            hint = f"limit the value in the rule ({name} {'<' if step[1] > 0 else '>'} 100)"
        else:
            hint = f"limit the value in the rule on both sides ({name} > 0, {name} < 100)"
        return QueryError(
            f"this recursion may not end: the rule computes new values of {name} from its own results",
            span=argument.span or self.rule.rule.head.span,
            hint=f"{hint}, or state how often it may go around: datalog(…, bound=100)",
        )

    # ---- Selections only get better

    def check_selections(self) -> None:
        """What min and max select is used so that a better value undoes nothing."""
        joined = Counter(name for atom in self.rule.scans for name in _names(atom))
        for step in self.rule.steps:
            if isinstance(step, Filter):
                self._check_filter(step.comparison)
            elif not isinstance(step, Assign):
                for argument in step.atom.arguments:
                    if not isinstance(argument, p.Attribute) or argument.name == ANY:
                        continue
                    name = argument.name
                    selected = name in self.trends or self.trend(argument) != FIXED
                    if selected and (isinstance(step, Exclude) or joined[name] > 1 or name in self.assigned):
                        what = "is joined" if isinstance(step, Scan) else "stands under 'not'"
                        what = f"{bare(argument)} comes from a selected value, and {what}"
                        raise _not_monotone(what, argument)
        for one in self.rule.rule.head.arguments:
            wanted = FIXED
            if isinstance(one, Aggregate):
                wanted = FALLS if one.function == "min" else RISES
            if self.trend(_value(one)) not in (FIXED, wanted):
                if isinstance(one, Aggregate):
                    what = f"{one} may get worse while the values that it comes from get better"
                else:
                    what = f"{bare(one)} comes from a selected value"
                raise _not_monotone(what, _value(one))

    def _check_filter(self, comparison: p.Comparison) -> None:
        left, right = self.trend(comparison.left), self.trend(comparison.right)
        if left == right == FIXED:
            return
        falls, rises = (FIXED, FALLS), (FIXED, RISES)
        wanted = {"<": (falls, rises), "<=": (falls, rises), ">": (rises, falls), ">=": (rises, falls)}.get(
            comparison.op
        )
        if wanted is None or left not in wanted[0] or right not in wanted[1]:
            what = f"{shown(comparison)} may hold for a selected value and not for a better one"
            raise _not_monotone(what, comparison)

    def trend(self, value: p.Operand) -> str | None:
        """How a value changes as selected ones get better; ``None``: in no one direction."""
        value = p.substituted(value, self.assigned)
        if not variables(value).keys() & self.trends.keys():
            return FIXED
        match value:
            case p.Attribute(name):
                return self.trends[name]
            case p.Negative(operand):
                return _turned(self.trend(operand))
            case p.Arithmetic("+" | "-" as op, left, right):
                other = self.trend(right)
                return _joined(self.trend(left), other if op == "+" else _turned(other))
            case p.Arithmetic("*" | "/", operand, p.Constant(factor)) | p.Arithmetic("*", p.Constant(factor), operand):
                assert isinstance(factor, int | float)
                if factor == 0:
                    return None
                return self.trend(operand) if factor > 0 else _turned(self.trend(operand))
        return None

    # ---- Finitely many values

    def reason(self, argument: p.Operand | Aggregate) -> str | None:
        """Why there are finitely many values of a column: empty if they are only taken over, ``None`` if nothing says so."""
        name = str(argument) if isinstance(argument, Aggregate) else bare(argument)
        value = p.substituted(_value(argument), self.assigned)
        if isinstance(value, p.Attribute | p.Constant) or not variables(value).keys() & self.inside:
            return ""
        if isinstance(argument, Aggregate) and self._only_adds(value, 1 if argument.function == "min" else -1):
            worse = "less" if argument.function == "min" else "more"
            return f"{name} is never {worse} than the value that it is computed from"
        if self._is_integer(value) and self._has_bounds(value):
            return f"{name} stays between bounds"
        return None

    def _only_adds(self, value: p.Operand, sign: int) -> bool:
        """Whether a sum is one value of the recursion and terms that are not negative (for ``sign`` −1: not positive)."""
        terms = list(_terms(value, 1))
        own = [(term, one) for term, one in terms if variables(term).keys() & self.inside]
        if len(own) != 1 or not isinstance(own[0][0], p.Attribute) or own[0][1] != 1:
            return False
        return all(self._is_not_negative(term, one * sign) for term, one in terms if term is not own[0][0])

    def _is_not_negative(self, value: p.Operand, sign: int) -> bool:
        """Whether ``sign · value ≥ 0`` follows from the rule."""
        if isinstance(value, p.Constant):
            return isinstance(value.value, int | float) and value.value * sign >= 0
        wanted = ">" if sign > 0 else "<"
        return any(
            op[0] == wanted and isinstance(limit, p.Constant) and self._is_not_negative(limit, sign)
            for op, limit in self._limits(value)
        )

    def _limits(self, value: p.Operand) -> Iterator[tuple[str, p.Operand]]:
        """What the rule compares a value with: the operator and the other side."""
        for step in self.rule.steps:
            if isinstance(step, Filter):
                one = step.comparison
                left, right = p.substituted(one.left, self.assigned), p.substituted(one.right, self.assigned)
                if left == value:
                    yield one.op, right
                if right == value:
                    yield p.FLIPPED[one.op], left

    def _is_limited(self, value: p.Operand, wanted: str) -> bool:
        """Whether a value stays below (``<``) or above (``>``) one that is not from the recursion."""
        return any(op[0] == wanted and not variables(limit).keys() & self.inside for op, limit in self._limits(value))

    def _is_integer(self, value: p.Operand) -> bool:
        for node in p.walk(value):
            if isinstance(node, p.Call) or (isinstance(node, p.Arithmetic) and node.op == "/"):
                return False
            if isinstance(node, p.Constant) and not isinstance(node.value, int):
                return False
            if isinstance(node, p.Attribute) and kind_of(self.kinds[node.name]) != "int":
                return False
        return True

    def _has_bounds(self, value: p.Operand) -> bool:
        """Whether an integer has a least and a greatest value: stated, or because it only grows (falls) from where it starts."""
        if isinstance(value, p.Arithmetic) and value.op == "%" and isinstance(value.right, p.Constant):
            return True
        step = self._step(value)
        above, below = self._is_limited(value, "<"), self._is_limited(value, ">")
        if step is not None:
            source, by = step
            above, below = above or self._is_limited(source, "<"), below or self._is_limited(source, ">")
            return (above or by < 0) and (below or by > 0)
        return above and below

    def _step(self, value: p.Operand) -> tuple[p.Operand, int] | None:
        """``M + 1`` as ``(M, 1)``."""
        terms = list(_terms(value, 1))
        sources = [term for term, one in terms if isinstance(term, p.Attribute) and one == 1]
        by = sum(
            int(term.value) * one for term, one in terms if isinstance(term, p.Constant) and isinstance(term.value, int)
        )
        return (sources[0], by) if len(terms) == 2 and len(sources) == 1 and by else None


def _names(atom: Atom) -> Iterator[str]:
    return (argument.name for argument in atom.arguments if isinstance(argument, p.Attribute))


def _value(argument: p.Operand | Aggregate) -> p.Operand:
    """What is selected, or taken as it is; ``count`` is not inside recursions."""
    value = argument.value if isinstance(argument, Aggregate) else argument
    assert value is not None
    return value


def _not_monotone(what: str, place: p.Operand | p.Comparison) -> QueryError:
    return QueryError(
        f"inside its recursion {what}",
        span=place.span,
        hint="a better value found later would undo what was derived: select with min or max there too, or use it outside",
    )


def _turned(trend: str | None) -> str | None:
    return {FALLS: RISES, RISES: FALLS}.get(trend or "", trend)


def _joined(one: str | None, other: str | None) -> str | None:
    if one == FIXED:
        return other
    return one if other in (FIXED, one) else None


def _terms(value: p.Operand, sign: int) -> list[tuple[p.Operand, int]]:
    """The terms of a sum with their signs."""
    match value:
        case p.Arithmetic("+", left, right):
            return _terms(left, sign) + _terms(right, sign)
        case p.Arithmetic("-", left, right):
            return _terms(left, sign) + _terms(right, -sign)
        case p.Negative(operand):
            return _terms(operand, -sign)
    return [(value, sign)]
