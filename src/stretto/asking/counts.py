"""``stretto.explain``: what a query means, and how far it gets in some events, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.arguments import check_arguments
from stretto.asking.afa_counts import arc_counts
from stretto.asking.afa_events import AfaTrial
from stretto.asking.call import afa_events_of, events_of, refuse_said
from stretto.asking.explanation import Explanation, in_words
from stretto.asking.search import Search
from stretto.asking.trying import Events, Number, Trial
from stretto.errors import OptionError
from stretto.explaining.afa import explain_afa
from stretto.explaining.dot import Drawing, Stage, about, draw_stages
from stretto.languages.afa.builder import AFA, is_afa
from stretto.languages.clauses import has_clause
from stretto.matching.compiled import Query
from stretto.matching.empty_result.queries import findings, unmet_arcs
from stretto.query.afa import Afa
from stretto.query.constraints.model import Chain, Kind
from stretto.query.constraints.model import Step as Asks
from stretto.query.constraints.of_query import chains_of
from stretto.query.row_pattern import RowQuery


@dataclass(frozen=True)
class Counted:
    """How far events get in one step of a query. A number that is ``None`` is that of no query."""

    alternative: int
    first: bool  #: whether it is the first step
    step: str
    events: int  #: that have a type of the step
    alone: Number | None  #: events that complete the step by itself
    reached: Number | None  #: events that complete the steps up to it, however long these last
    within: Number | None  #: … in the windows and gaps of the query, which is the same where it has none
    windowed: bool  #: whether it has some up to here

    def __str__(self) -> str:
        return f"{self.step}: {'; '.join(self.told)}"

    @property
    def told(self) -> list[str]:
        """The numbers that say something new, in words."""
        told = [in_words(self.events)]
        own = Number(self.events) if self.alone is None else self.alone
        shown = (
            ("by itself", self.alone, own != Number(self.events)),
            ("up to here", self.reached, not self.first or self.reached != own),
            ("in the window", self.within, self.windowed and not (self.first and self.within == self.reached)),
        )
        for name, number, differs in shown:
            if number is not None and differs:
                told.append(f"{name}: {'' if number.exact else 'at least '}{number.value:,}")
        return told

    @property
    def stage(self) -> Stage:
        """The step as it is drawn, by how many events complete the steps up to it."""
        number = next((one for one in (self.within, self.reached, self.alone) if one is not None), None)
        return Stage((self.step, *self.told), None if number is None else number.value)


_SCHEMA = pa.schema(
    [
        ("alternative", pa.int64()),
        ("step", pa.string()),
        ("events", pa.int64()),
        ("alone", pa.int64()),
        ("reached", pa.int64()),
        ("within", pa.int64()),
        ("at_least", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class StepCounts:
    """How far events get in the steps of a query; ``about`` says its partition and window in words."""

    steps: tuple[Counted, ...]
    about: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """In words."""
        several = any(one.alternative > 1 for one in self.steps)
        lines, number = list[str](), 0
        for one in self.steps:
            if one.first:
                number = 0
                lines += [f"alternative {one.alternative}"] * several
            number += 1
            lines.append(f"{number}. {one}")
        return lines

    @property
    def table(self) -> pa.Table:
        """As a table."""
        rows = []
        for one in self.steps:
            numbers = {"alone": one.alone, "reached": one.reached, "within": one.within}
            row: dict[str, Any] = {"alternative": one.alternative, "step": one.step, "events": one.events}
            row |= {name: None if number is None else number.value for name, number in numbers.items()}
            row["at_least"] = [name for name, number in numbers.items() if number is not None and not number.exact]
            rows.append(row)
        return pa.Table.from_pylist(rows, _SCHEMA)

    def draw(self, of: str) -> Drawing:
        """As a picture; ``of`` says of how many events."""
        ways: dict[int, list[Stage]] = {}
        for one in self.steps:
            ways.setdefault(one.alternative, []).append(one.stage)
        return draw_stages(ways.values(), [of, *self.about])


@check_arguments
def explain(
    query: str | Query | AFA | Afa,
    events: Any,
    *,
    key: Any = None,
    between: tuple[Any, Any] | None = None,
    type: str | None = "type",
    time: str | None = None,
    sequence: str | None = None,
    stream: str | None = None,
    time_unit: str | None = None,
    language: str | None = None,
) -> Explanation:
    """Say what a query means, and how far it gets in some events: for each step, how many events complete it.

    An event completes some steps when it is the last one of a match of them. LIMIT, KEEP and CONSUME, OUTPUT non_overlap, and the
    strategies MAX, NEXT and LAST of CEQL choose among matches, and are left out.

    Of an automaton: for each state, how many events lead to it, and for each arc, how many events take it.

    Parameters
    ----------
    query
        A query in CEQL, SASE+ or EQL: its text, or a compiled :class:`~stretto.Query`; or a :class:`stretto.AFA`.
    events
        As :func:`stretto.match` takes them; files are read into memory.
    key, between
        Count only among events of this key and of these times, as :func:`stretto.why_not` does.
    type, time, sequence, stream, time_unit, language
        As :func:`stretto.match` has them.

    Returns
    -------
    Explanation
        ``str()`` of it is the text of :meth:`stretto.Query.explain` with the numbers below, and behind them what no event has;
        ``steps`` is a table of the numbers, ``warnings`` are the lines of what no event has; ``draw()`` is a picture.

    Raises
    ------
    QueryError, DataError
        As of :func:`stretto.match`.
    OptionError
        The query is SQL; the key is not one of the query's; there is no time for ``between``.

    Examples
    --------
    >>> import stretto
    >>> events = [{"type": "A", "x": 1}, {"type": "B", "x": 4}, {"type": "B", "x": 7}]
    >>> query = "SELECT * FROM S WHERE A; B AS b FILTER b[x > 5] WITHIN 1 EVENTS"
    >>> for line in str(stretto.explain(query, events)).splitlines()[-3:]:
    ...     print(line)
    counts     of 3 events
               1. A: 1 event
               2. B AS b: 2 events; by itself: 1; up to here: 1; in the window: 0
    """
    if is_afa(query):
        refuse_said("an automaton", {"stream": stream, "time_unit": time_unit, "language": language})
        asked = afa_events_of(query.frozen, events, key, between, time, sequence)
        unmet = unmet_arcs(asked.afa, asked.table)
        return Explanation(explain_afa(asked.afa), asked.table.num_rows, arc_counts(AfaTrial(asked)), tuple(unmet))
    if isinstance(query, str) and has_clause(query):
        raise OptionError(
            "explain counts for CEQL, SASE+, EQL and automata, and this is SQL with MATCH_RECOGNIZE: "
            "stretto.compile_sql(…).explain() has no counts"
        )
    compiled, there = events_of(query, events, key, between, type, time, sequence, stream, time_unit, language)
    trial = Trial(there)
    steps = [
        one
        for number, chain in enumerate(chains_of(compiled.bound.parsed), 1)
        for one in _counted(number, chain, trial)
    ]
    counts = StepCounts(tuple(steps), tuple(about(compiled.parsed)))
    warnings = findings(compiled, compiled.implied.added_to(there.table))
    return Explanation(compiled.explain(), there.table.num_rows, counts, tuple(warnings))


def _counted(alternative: int, chain: Chain, trial: Trial) -> Iterator[Counted]:
    """The numbers of each step; the query itself comes first, as it says how long the others may take."""
    search = Search(chain, trial)
    found = [_numbers(search, trial, steps) for steps in range(search.whole, 0, -1)]
    for at, (step, (reached, within, windowed)) in enumerate(zip(chain.steps, reversed(found), strict=True), 1):
        alone = _completing(trial, search.compiled(chain.alone(at)))
        events = _of_types(step, trial.events, chain)
        yield Counted(alternative, at == 1, step.text, events, alone, reached, within, windowed)


def _numbers(search: Search, trial: Trial, steps: int) -> tuple[Number | None, Number | None, bool]:
    """How many events complete the first so many steps, without and with windows; and whether there are any."""
    within = _completing(trial, search.query(steps, ()))
    windows = [one for one in search.chain.asks(steps) if one.kind in (Kind.WINDOW, Kind.GAP)]
    return _completing(trial, search.query(steps, windows)) if windows else within, within, bool(windows)


def _completing(trial: Trial, query: Query | None) -> Number | None:
    if query is None:
        return None
    found = trial.completing(query)
    parsed = query.parsed
    # The end of a repetition with UNTIL … ONLY completes matches of several last events, of which LIMIT 1 lists one.
    only = any(one.only for one in query.bound.plan.endings)
    return replace(found, exact=False) if only and parsed.limit is not None else found


def _of_types(step: Asks, events: Events, chain: Chain) -> int:
    """How many events of the query's streams have a type of a step."""
    schema, parsed = events.schema, chain.parsed
    assert not isinstance(parsed, RowQuery | Afa)
    read: Any = pa.scalar(True)
    if schema.stream is not None and not parsed.any_stream:
        read = pc.is_in(events.table.column(schema.stream).cast(pa.string()), pa.array(parsed.streams))
    typed: Any = pa.scalar(True)
    if step.types and events.kinds is not None:
        typed = pc.is_in(events.kinds.cast(pa.string()), pa.array(step.types))
    elif step.types and not parsed.any_stream:
        typed = pa.scalar(not {*step.types}.isdisjoint(parsed.streams))
    both = pc.and_(read, typed)
    if isinstance(both, pa.Scalar):
        return events.table.num_rows if both.as_py() else 0
    return int(pc.sum(both).as_py() or 0)
