"""What a :class:`~stretto.Matcher` hands its calls to: one executor, reorder? → run → reorder? → layout.

:class:`~stretto.matching.executors.in_order.InOrderExecutor` reads events in order, and
:class:`~stretto.matching.executors.retracting.RetractingExecutor` takes them in any order and may take back what it
gave. An executor refuses what it cannot do; its members mean what those of the matcher mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pyarrow as pa

from stretto.errors import OptionError
from stretto.events import Schema
from stretto.explaining.answer import Answer
from stretto.matching.compiled import Query, roles
from stretto.matching.inspection.partial_matches import refused
from stretto.matching.output.match_sets import MatchSet
from stretto.query.afa import Afa
from stretto.query.passes.bind import with_types_at

if TYPE_CHECKING:
    from stretto.matching.executors.arc_updates import Arcs


class Reading(NamedTuple):
    """How a query reads its columns and what it shows: options of a :class:`~stretto.Matcher`."""

    type: str | None = "type"
    time: str | None = None
    sequence: str | None = None
    stream: str | None = None
    time_unit: str | None = None
    sign: str | None = None
    output: str = "events"
    positions: bool = True
    at_end: str = "complete"
    timeouts: bool = False

    @property
    def completes(self) -> bool:
        """Whether the end of the data completes what waits for time to pass."""
        if self.at_end not in ("complete", "drop"):
            raise OptionError(f"at_end={self.at_end!r}: expected 'complete' or 'drop'")
        return self.at_end == "complete"

    @property
    def roles(self) -> dict[str, Any]:
        """The roles as a schema takes them."""
        return roles(self.type, self.time, self.stream, None, self.time_unit)

    @property
    def shown(self) -> dict[str, Any]:
        """The arguments of a layout; snapshots compare them, and those of before had no timeouts."""
        return {"output": self.output, "positions": self.positions} | ({"timeouts": True} if self.timeouts else {})

    def schema(self, given: Any) -> Schema:
        """The schema of events, which may be given as one."""
        found = given if isinstance(given, Schema) else Schema.of(given, **self.roles)
        return with_types_at((self.sequence, self.sign), found)


#: Where nothing is said.
AS_USUAL = Reading()


class Executor(ABC):
    """A query or an automaton over a stream that comes in batches."""

    @property
    @abstractmethod
    def query(self) -> Query: ...

    @property
    def afa(self) -> Afa:
        self._refuse_arcs("afa")

    @property
    @abstractmethod
    def position(self) -> int: ...

    @property
    @abstractmethod
    def late(self) -> int: ...

    @abstractmethod
    def late_events(self) -> pa.Table: ...

    @property
    @abstractmethod
    def punctuation(self) -> Any: ...

    @property
    @abstractmethod
    def stats(self) -> dict[str, int]: ...

    @property
    def idle(self) -> bool:
        return self.ends is None

    def partial_matches(self, most: int, by: Sequence[str]) -> pa.Table:
        raise OptionError(
            "partial_matches() follows the first events of CEQL and SASE+ queries on events in order, which this matcher does not "
            "run; matcher.stats counts what is held"
        )

    def why_not(self, key: Any, most: int) -> Answer:
        raise OptionError(refused("and this one runs what holds none apart", "query, events"))

    @abstractmethod
    def held(self, most: int, by: Sequence[str]) -> pa.Table: ...

    @property
    @abstractmethod
    def expires(self) -> int | float | None: ...

    @property
    @abstractmethod
    def ends(self) -> int | None: ...

    @abstractmethod
    def explain(self) -> str: ...

    @abstractmethod
    def draw(self) -> Any: ...

    @abstractmethod
    def push(self, events: Any, *, arcs: Any = None, punctuations: Any = ()) -> pa.Table: ...

    @abstractmethod
    def iter_push(self, events: Any) -> Iterator[pa.Table]: ...

    def push_sets(self, events: Any) -> Iterator[MatchSet]:
        self._refuse_revising("push_sets()")

    def prime(self, events: Any) -> None:
        self._refuse_revising("prime()")

    @abstractmethod
    def advance(self, time: Any, *, where: str | None = None) -> pa.Table: ...

    @abstractmethod
    def finish(self) -> pa.Table: ...

    def changing(self, what: str) -> Arcs:
        """The arcs of an automaton that runs, for a call of this name."""
        self._refuse_arcs(what)

    def given(self) -> pa.Table:
        """What a change of arcs gave."""
        return pa.table({})

    @abstractmethod
    def snapshot(self) -> bytes: ...

    @abstractmethod
    def restore(self, snapshot: bytes) -> None: ...

    def _refuse_arcs(self, what: str) -> NoReturn:
        raise OptionError(f"{what} is for AFAs, and this matcher runs a query")

    def _refuse_revising(self, what: str) -> NoReturn:
        raise OptionError(f"{what} is for queries on events in order, and this matcher takes back what it gives")
