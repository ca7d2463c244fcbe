"""Query texts from the structured form that the definitions give.

All queries of the CORE paper's experiments are sequences of components, each an event type (or several) under
a variable with a condition on single events, the middle ones possibly repeated. Keeping that structure,
rather than text alone, lets :mod:`benchmarks.oracle` count matches without going through a parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Sequence", "Step", "peer_text"]


@dataclass(frozen=True)
class Step:
    """One component of a sequence."""

    types: tuple[str, ...]
    variable: str
    where: tuple[str, ...] = ()
    plus: bool = False

    @classmethod
    def parse(cls, raw: dict[str, Any], variable: str) -> Step:
        """From a table of a definition: ``type``, ``where`` (a string or several), ``as``, ``plus``."""
        where = raw.get("where", [])
        conditions = (where,) if isinstance(where, str) else tuple(where)
        return cls(tuple(raw["type"].split("|")), raw.get("as", variable), conditions, raw.get("plus", False))

    def pattern(self) -> str:
        """The component in the WHERE clause."""
        formula = " OR ".join(self.types)
        formula = f"({formula})" if len(self.types) > 1 else formula
        return f"{formula}{'+' if self.plus else ''} as {self.variable}"

    def filters(self) -> list[str]:
        """The component's conditions in the FILTER clause."""
        return [f"{self.variable}[{condition}]" for condition in self.where]


@dataclass(frozen=True)
class Sequence:
    """A query: a sequence of steps, a condition on all of them, a window, and what happens at an output."""

    steps: tuple[Step, ...]
    window: int
    attribute: str
    strategy: str = ""
    over: tuple[str, str] | None = None
    partition: str = ""
    consume: str = "ANY"
    limit: int = 1000
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The query in CEQL."""
        head = f"SELECT {self.strategy} *" if self.strategy else "SELECT *"
        lines = [f"{head} FROM S", f"WHERE ({'; '.join(step.pattern() for step in self.steps)}){self._as()}"]
        filters = [f"{self.over[0]}[{self.over[1]}]"] if self.over else []
        filters += [text for step in self.steps for text in step.filters()]
        if filters:
            lines.append(f"FILTER {' AND '.join(filters)}")
        if self.partition:
            lines.append(f"PARTITION BY [{self.partition}]")
        lines.append(f"WITHIN {self.window} [{self.attribute}]")
        if self.consume:
            lines.append(f"CONSUME BY {self.consume}")
        if self.limit:
            lines.append(f"LIMIT {self.limit}")
        return "\n".join(lines)

    def _as(self) -> str:
        return f" as {self.over[0]}" if self.over else ""

    def with_window(self, window: int) -> Sequence:
        """The same query over another window."""
        return replace(self, window=window)


def peer_text(text: str) -> str:
    """The query in the peer's dialect: no strategies, and windows that leave out their far edge.

    Windows here are inclusive; the peer's ``WITHIN n [attribute]`` finds ``end - start < n``, so that over
    whole numbers ``n + 1`` asks it for the same matches.
    """
    text = re.sub(r"SELECT (ALL|NEXT|LAST|MAX|STRICT) ", "SELECT ", text)
    return re.sub(r"WITHIN (\d+) \[", lambda found: f"WITHIN {int(found[1]) + 1} [", text)
