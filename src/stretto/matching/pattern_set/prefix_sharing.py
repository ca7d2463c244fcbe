"""What patterns that run together have in common up to their last step.

Which partial matches there are does not depend on what ends them. So patterns that differ there only, and hold from one time on,
have one state: their *prefix* moves it, and what ends matches of one of them looks at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stretto.columns.classes import Classifier
from stretto.engines.programs import Program
from stretto.query import predicate as p

#: What a guard asks of an event: its number, the text, the condition.
Asked = tuple[int, str, p.Predicate]


@dataclass(frozen=True, eq=False)
class Prefix:
    """Patterns without what ends their matches. Equal ones are one object."""

    #: The machine of the patterns as a whole.
    model: Program
    #: Without the guards of events that end matches.
    asked: tuple[Asked, ...]

    @property
    def classifier(self) -> Classifier:
        """What numbers the classes of events for all that run together."""
        return self.model.classifier


class Lead(NamedTuple):
    """Whose state patterns share: their prefix, and the time from which they hold."""

    prefix: Prefix
    since: int | float | None
    id: str | None = None  #: the pattern that does not share it: a snapshot has it so


def excluding(one: p.Predicate | None, other: p.Predicate | None) -> bool:
    """Whether no event fulfils both conditions, as far as texts tell that attributes must be equal to; ``None`` never holds."""
    if one is None or other is None:
        return True
    texts, others = _texts(one), _texts(other)
    return any(texts[name] != others[name] for name in texts.keys() & others)


def _texts(condition: p.Predicate) -> dict[str, str]:
    """The texts that attributes are equal to where a condition holds."""
    found: dict[str, str] = {}
    todo = [condition]
    while todo:
        match todo.pop():
            case p.And(parts):
                todo.extend(parts)
            case p.Comparison("=", p.Attribute(name), p.Constant(str() as text)) | p.Comparison(
                "=", p.Constant(str() as text), p.Attribute(name)
            ):
                found[name] = text
    return found
