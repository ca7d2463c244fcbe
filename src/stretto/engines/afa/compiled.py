"""An automaton with the roles of columns: what a run of the AFA operator is of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from stretto.query.afa import Afa, Arc, Transfer
from stretto.query.predicate import Predicate


@dataclass(frozen=True)
class Roles:
    """Which columns play a role, and how the operator goes about its work."""

    time: str
    sequence: str | None = None
    until: str | None = None
    sign: str | None = None
    numbered: str | None = None
    bag: bool = False
    provenance: bool = False
    ordered: bool = False
    ignore: bool = True
    dynamic: str = "default"
    timer: str | None = None


class Texts(NamedTuple):
    """How what an automaton says is read, which may come to it while it runs."""

    arc: Callable[[Mapping[str, Any]], Arc]  #: of its states, functions as texts, id and kind
    condition: Callable[[str], Predicate]  #: of a punctuation


class Compiled:
    """An automaton and the roles of columns. Functions become code in each run, whose arcs may change.

    Parameters
    ----------
    afa
        The automaton.
    roles
        Of the events' columns, and the options.
    marks
        The variables of each mark, where arcs select events for variables.
    texts
        Reads what a state has as texts; ``None``: its states cannot be loaded.
    """

    def __init__(
        self, afa: Afa, roles: Roles, marks: Sequence[frozenset[str]] = (), texts: Texts | None = None
    ) -> None:
        self.afa = afa
        self.roles = roles
        self.marks = marks
        self.texts = texts

    @property
    def revises(self) -> bool:
        """Not where events come in order, of which none is kept."""
        return not self.roles.ordered

    @property
    def columns(self) -> tuple[str, ...]:
        """The automaton's attributes, and the columns that play a role."""
        own = self.roles
        names = (own.time, own.sequence, own.until, own.sign, own.numbered)
        return tuple(dict.fromkeys([*self.afa.events, *(name for name in names if name is not None)]))

    @cached_property
    def digest(self) -> str:
        """What the automaton is, in short."""
        afa = self.afa
        arcs = [(one.id, one.source, one.target, str(one.when), _written(one.then), str(one.kind)) for one in afa.arcs]
        kinds = [sorted((name, str(kind)) for name, kind in own.items()) for own in (afa.events, afa.register)]
        rest = (afa.initial, afa.start, sorted(afa.finals.items()), str(afa.window), afa.partition_by, self.roles)
        return hashlib.sha256(repr((kinds, arcs, rest)).encode()).hexdigest()


def _written(transfer: Transfer) -> str:
    return ", ".join(map(str, transfer)) if isinstance(transfer, tuple) else str(transfer)
