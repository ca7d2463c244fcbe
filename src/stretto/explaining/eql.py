"""What an EQL query means and how it runs, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stretto.engines.select import Machine, choose
from stretto.query import predicate as p
from stretto.query.eql import EqlQuery, Mode, Step
from stretto.query.passes.bind_eql import BoundEql

_MODES = {
    Mode.EVENT: "single events",
    Mode.SEQUENCE: "the latest partial match goes on with an event that fits, and those before it are forgotten",
    Mode.SAMPLE: "different events in any order, once for each key",
    Mode.JOIN: "the first event of each step in any order, again and again for each key",
}


def explain_eql(
    parsed: EqlQuery, bound: BoundEql | None, program: Callable[[], Machine], _: object
) -> list[tuple[str, str]]:
    """Write the parts of an explanation, title and text; none is like those of all languages."""
    sections = [
        ("query", parsed.text.strip()),
        ("steps", "\n".join(map(_step, parsed.stages))),
        ("selection", f"{parsed.mode}: {_MODES[parsed.mode]}"),
    ]
    asked = {str(one) for one in _conditions(parsed, bound)}
    sections.append(("conditions", "\n".join(sorted(asked)) or "none but the categories"))
    if parsed.until is not None:
        sections.append(("until", f"{_step(parsed.until)} ends the partial matches of its key"))
    window = "none" if parsed.window is None else f"{parsed.window} from the first event to the last"
    sections.append(("maxspan", window))
    sections += [("pipe", f"{one}: of the matches in their order") for one in parsed.pipes]
    if bound is None:
        return sections
    program()
    return [*sections, ("engine", str(choose(bound.parsed, bound)))]


def _step(step: Step) -> str:
    keys = ", ".join(map(str, step.keys))
    never = "no " if step.missing else ""
    return f"{never}{step.category or 'any'} {step.variable}" + (f" by {keys}" if keys else "")


def _conditions(parsed: EqlQuery, bound: BoundEql | None) -> Iterator[str]:
    for step, asked in zip(parsed.whole, parsed.conditions if bound is None else bound.conditions, strict=True):
        if asked != p.And(()):
            yield f"{step.variable}: {asked}"
