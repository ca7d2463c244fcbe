"""Guards: what one transition asks of the event that it reads."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.query.algebra import Atom
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
