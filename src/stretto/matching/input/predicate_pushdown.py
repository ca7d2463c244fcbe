"""Which events can matter for a query: a necessary condition, for whatever reads events to leave the others out.

An event matters when it satisfies a transition of the query's automaton: type, stream, and the conditions on the one event. The
condition is *necessary*: an event that it drops satisfies none, so the matches stay the same. It need not be sufficient.
What it is asked of judges in its own way (three truth values, NaN, collations). So a :class:`Translator` asks of every part where
it *may be true* or *may be false*, never negates what it has, and gives ``True`` for what it leaves to the engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from stretto.columns.classes import condition_of
from stretto.columns.grid import on_grid, snapped
from stretto.matching.compiled import Query
from stretto.query import predicate as p
from stretto.query.evaluate import holds
from stretto.query.guard import Guard
from stretto.query.passes.bind import AnyBound
from stretto.query.typing import kind_of


def guards_of(bound: AnyBound) -> tuple[Guard, ...] | None:
    """What a query asks of single events; ``None`` where any event may matter: positions count, or events of all types."""
    plan = bound.plan
    if plan.looks_between or not all(one.types for one in plan.positions):
        return None
    return tuple(dict.fromkeys(guard for one in plan.positions for guard in one.guards()))


def relevant(query: Query) -> pc.Expression | None:
    """A condition on columns that every event fulfils that can matter for a bound query; ``None``: all may.

    Of a condition on events, only comparisons of a column with constants are asked, for the statistics of files to answer.
    """
    bound = query.bound
    schema = bound.schema
    plan, only = bound.plan, query.streams[0]
    if plan.looks_between:
        return None
    translator = _OfColumns(dict(schema.attributes))
    conditions = [condition_of(guard, schema, only, only) for one in plan.positions for guard in one.guards()]
    conditions += [one.condition for one in plan.positions if not one.types]
    found = any_of(translator.may_be(True, one) for one in conditions if one is not None)
    if isinstance(found, bool):
        return None if found else pc.scalar(False)
    expression: pc.Expression = found
    return expression


def all_of(parts: Iterable[Any]) -> Any:
    """Conditions joined by AND; what is known to be true is left out."""
    kept = [part for part in parts if part is not True]
    if any(part is False for part in kept):
        return False
    return _balanced(kept, lambda left, right: left & right) if kept else True


def any_of(parts: Iterable[Any]) -> Any:
    """Conditions joined by OR; what is known to be false is left out."""
    kept = [part for part in parts if part is not False]
    if any(part is True for part in kept):
        return True
    return _balanced(kept, lambda left, right: left | right) if kept else False


def _balanced(parts: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """All parts joined by a tree of little depth: readers go through conditions by recursion."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [join(left, right) for left, right in pairs] + parts[len(parts) // 2 * 2 :]
    return parts[0]


class Untranslatable(Exception):
    """Something that the reader of events is not asked."""


class Translator(p.Visitor, ABC):
    """Conditions of queries in the words of whatever reads events; each method is given the truth that is asked for, too."""

    takes = get_args(p.Predicate)

    def may_be(self, truth: bool, node: p.Predicate) -> Any:
        """Where a typed predicate may have a truth: a condition that holds wherever it has, or whether it may at all."""
        if p.moves(node) and not isinstance(node, p.And | p.Or | p.Not):
            return True
        if not p.attributes(node):
            return holds(node, {}) is truth
        try:
            return self.visit(node, truth)
        except (Untranslatable, OverflowError):
            return True

    def all_of(self, node: p.And, truth: bool) -> Any:
        return (all_of if truth else any_of)(self.may_be(truth, part) for part in node.parts)

    def any_of(self, node: p.Or, truth: bool) -> Any:
        return (any_of if truth else all_of)(self.may_be(truth, part) for part in node.parts)

    def negation(self, node: p.Not, truth: bool) -> Any:
        return self.may_be(not truth, node.part)

    def member(self, node: p.Member, truth: bool) -> Any:
        return True

    def rlike(self, node: p.Rlike, truth: bool) -> Any:
        return True

    @abstractmethod
    def comparison(self, node: p.Comparison, truth: bool) -> Any: ...

    @abstractmethod
    def like(self, node: p.Like, truth: bool) -> Any: ...

    @abstractmethod
    def is_null(self, node: p.IsNull, truth: bool) -> Any: ...


class _OfColumns(Translator):
    """Expressions of Arrow, for the statistics of files: columns of strings, whole numbers, floats and times against constants."""

    def __init__(self, attributes: dict[str, pa.DataType]) -> None:
        self.attributes = attributes

    def comparison(self, node: p.Comparison, truth: bool) -> Any:
        told = p.against_constant(node)
        if not truth or told is None or not isinstance(told[1], p.Attribute):
            return True
        return self._with_constant(told[0], told[1].name, told[2].value)

    def like(self, node: p.Like, truth: bool) -> Any:
        return True

    def is_null(self, node: p.IsNull, truth: bool) -> Any:
        return True

    def _with_constant(self, op: str, name: str, constant: Any) -> Any:
        if "." in name and name.partition(".")[0] in self.attributes:
            return True  # a field of a struct, or perhaps one
        kind = self.attributes[name]
        column = pc.field(name)
        match kind_of(kind):
            case "string" if isinstance(constant, str) and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                return COMPARE[op](column, pa.scalar(constant, kind)) if op != "!=" else True
            case "float" if op != "!=" and isinstance(constant, int | float) and float(constant) == constant:
                return COMPARE[op](column.cast(pa.float64()) if kind != pa.float64() else column, float(constant))
            case "int" | "time" if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
                signed = not pa.types.is_unsigned_integer(kind)
                least = -(1 << kind.bit_width - 1) if signed else 0
                found = snapped(op, on_grid(constant, kind), least, least + (1 << kind.bit_width) - 1)
                if isinstance(found, bool):
                    return found
                own = pa.scalar(found[1], pa.int64() if pa.types.is_timestamp(kind) else kind)
                return COMPARE[found[0]](column, own.cast(kind))
        return True


#: Comparisons of columns, of Arrow as of Spark.
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
