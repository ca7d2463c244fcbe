"""What an EQL query asks, and the query without some of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from stretto.query import predicate as p
from stretto.query.constraints.model import TOGETHER, Constraint, Kind, span_of
from stretto.query.constraints.model import Step as Asks
from stretto.query.eql import EqlQuery, Mode, Step, shared_keys


@dataclass(frozen=True)
class EqlChain:
    """An EQL query as a chain of steps; those of a sample and of a join have no order."""

    parsed: EqlQuery

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        """The stages that hold events."""
        return tuple(at for at, one in enumerate(self.parsed.stages) if not one.missing)

    @cached_property
    def steps(self) -> tuple[Asks, ...]:
        """The steps that hold events, in order."""
        stages = [self.parsed.stages[at] for at in self._numbers]
        return tuple(
            Asks(f"[{one.category or 'any'}]", (one.variable,), () if one.category is None else (one.category,))
            for one in stages
        )

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints, in the order of the text."""
        parsed, found = self.parsed, list[Constraint]()
        for at, stage in enumerate(parsed.stages):
            if stage.missing:
                text = f"![{_written(stage)}]"
                found.append(Constraint(Kind.NEGATION, text, (stage.variable,), stage.span, stage, ("missing", at)))
                continue
            for number, part in enumerate(p.conjuncts(stage.condition)):
                text = f"{stage.variable}[{_told(part)}]"
                found.append(Constraint(Kind.CONDITION, text, (stage.variable,), span_of(part), part, (at, number)))
        for number, keys in enumerate(zip(*(one.keys for one in parsed.whole), strict=True)):
            names = dict.fromkeys(one.name for one in keys)
            found.append(Constraint(Kind.KEY, f"by {' = '.join(names)}", (), keys[0].span, number, ("key", number)))
        if (window := parsed.window) is not None:
            text = f"maxspan={window}"
            found.append(Constraint(Kind.WINDOW, text, (), window.span, window, ("window",)))
        if parsed.until is not None:
            text = f"until [{_written(parsed.until)}]"
            found.append(Constraint(Kind.UNTIL, text, (), parsed.until.span, parsed.until, ("until",)))
        return tuple(found)

    def _prefix(self, steps: int) -> tuple[int, ...]:
        if steps == len(self._numbers):
            return tuple(range(len(self.parsed.stages)))
        return tuple(range(self._numbers[0], self._numbers[steps - 1] + 1))

    def asks(self, steps: int) -> tuple[Constraint, ...]:
        """The constraints that the first so many steps ask."""
        stages = self._prefix(steps)

        def asked(one: Constraint) -> bool:
            match one.place:
                case (int() as at, _) | ("missing", int() as at):
                    return at in stages
                case _:  # an event alone has nothing that it could differ from
                    return steps > 1 or len(self._numbers) == 1

        return tuple(filter(asked, self.constraints))

    def relaxed(self, steps: int, dropped: Collection[Constraint]) -> EqlQuery | None:
        """The query of the first so many steps without some constraints; ``None``: that is no query."""
        return self._relaxed(self._prefix(steps), dropped)

    def alone(self, step: int) -> EqlQuery | None:
        """The query of one step by itself, counted from 1, with what it asks of its own event."""
        return self._relaxed((self._numbers[step - 1],), [one for one in self.constraints if one.kind in TOGETHER])

    def only(self, one: Constraint) -> EqlQuery | None:
        """The step that a condition is about by itself, with nothing else asked; ``None``: it is no condition."""
        if one.kind is not Kind.CONDITION:
            return None
        return self._relaxed((one.place[0],), [other for other in self.constraints if other != one])

    def _relaxed(self, numbers: Collection[int], dropped: Collection[Constraint]) -> EqlQuery | None:
        """The query of some stages without some constraints."""
        parsed, places = self.parsed, {one.place for one in dropped}
        stages = tuple(_without(parsed.stages[at], at, places) for at in numbers if ("missing", at) not in places)
        mode = parsed.mode
        if len(stages) == 1:
            mode, stages = Mode.EVENT, tuple(replace(one, keys=()) for one in stages)
        window = None if ("window",) in places or mode is Mode.EVENT else parsed.window
        if window is None and (stages[0].missing or stages[-1].missing):
            return None
        until = None
        if mode is not Mode.EVENT and parsed.until is not None and ("until",) not in places:
            until = _without(parsed.until, -1, places)
        whole = (*stages, *(() if until is None else (until,)))
        return replace(
            parsed,
            mode=mode,
            stages=stages,
            until=until,
            window=window,
            partition_by=shared_keys(whole),
            partition_spans=(),
            pipes=(),
        )


def _told(condition: p.Predicate) -> str:
    """A condition, in which ``x != y`` is the NOT of an equation."""

    def told(node: Any) -> Any:
        if isinstance(node, p.Not) and isinstance(equation := node.part, p.Comparison) and equation.op == "=":
            return replace(equation, op="!=")
        return p.rebuilt(node, told)

    return str(told(condition))


def _written(stage: Step) -> str:
    told = "true" if stage.condition == p.And(()) else _told(stage.condition)
    return f"{stage.category or 'any'} where {told}"


def _without(stage: Step, at: int, places: Collection[tuple[object, ...]]) -> Step:
    kept = [part for number, part in enumerate(p.conjuncts(stage.condition)) if (at, number) not in places]
    keys = tuple(key for number, key in enumerate(stage.keys) if ("key", number) not in places)
    condition = stage.condition if stage.missing or at < 0 else p.joined(kept) or p.And(())
    return replace(stage, condition=condition, keys=keys)
