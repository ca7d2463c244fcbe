"""An EQL query as a plan: steps are positions, each with its own keys."""

from __future__ import annotations

from collections.abc import Iterable

from stretto.query import predicate as p
from stretto.query.algebra import Not, Pattern, Sequence
from stretto.query.eql import EqlQuery, Mode, Step
from stretto.query.plan import Conjunct, Ending, PatternPlan, Position
from stretto.query.windows import BoundWindow


def plan_of(eql: EqlQuery, conditions: Iterable[p.Predicate], window: BoundWindow | None) -> PatternPlan:
    """The plan of a query; ``conditions`` are those of its steps, with their types, that of ``until`` last."""
    found = [_position(step, asked) for step, asked in zip(eql.whole, conditions, strict=True)]
    stages: list[Pattern] = [Not(one) if step.missing else one for step, one in zip(eql.stages, found, strict=False)]
    formula = Sequence(tuple(stages), (False,) * (len(stages) - 1)) if len(stages) > 1 else stages[0]
    return PatternPlan(
        formula=formula,
        selection=f"{eql.mode} of {eql.strategy}",
        window=window,
        partition_by=eql.partition_by,
        endings=() if eql.until is None else (Ending("", found[-1]),),
        ordered=eql.mode in (Mode.EVENT, Mode.SEQUENCE),
        chosen=tuple(map(str, eql.pipes)),
    )


def _position(step: Step, asked: p.Predicate) -> Position:
    types = () if step.category is None else (step.category,)
    conditions = tuple(
        Conjunct(f"{step.variable}[{one}]", one, getattr(one, "span", None)) for one in p.conjuncts(asked)
    )
    return Position(step.category or "", None, step.span, types, frozenset({step.variable}), conditions, step.keys)
