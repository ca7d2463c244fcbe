"""Which engine runs which query, and why none of the others does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.automata.shortcut import NO_EQL, OWN, core_of
from stretto.engines.programs import LatestProgram, NfabProgram, Program, TimedProgram, TotalsProgram
from stretto.errors import LimitError, OptionError, QueryError
from stretto.query.passes.bind import AnyBound, BoundQuery
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.bind_totals import BoundBest, BoundSample, BoundTotals
from stretto.query.query import AnyQuery, Keep, ParsedQuery, Strategy
from stretto.query.totals import Extent, Totals
from stretto.query.typing import kind_of

#: The machines of which some matches may be kept, and partial matches followed.
_Listing = Program | NfabProgram | TimedProgram
Machine = _Listing | LatestProgram | TotalsProgram

if TYPE_CHECKING:  # what is around a machine is imported where a query asks for it
    from stretto.engines.match_ops.after_match_skip import KeptProgram
    from stretto.engines.match_ops.aggregate import AddedProgram
    from stretto.engines.match_ops.timeouts import TimeoutProgram
    from stretto.engines.match_ops.top_k import PickedProgram

    AnyProgram = Machine | KeptProgram | TimeoutProgram | PickedProgram | AddedProgram


@dataclass(frozen=True)
class Choice:
    """An engine and the reason in words; for each other engine, why it is not taken."""

    engine: str
    why: str
    others: Mapping[str, str]

    def __str__(self) -> str:
        return "\n".join([f"{self.engine}: {self.why}", *(f"not {name}: {why}" for name, why in self.others.items())])


#: Why a query does not run on the engine of gaps: it has none, or is not CEQL.
_NO_GAPS = "it keeps the events of the window, for gaps, windows inside and NOT at an end, of which this query has none"
_NO_CEQL = "it runs CEQL, where conditions relate events only by equal keys and by how far apart they are"


#: Why EQL has an engine of its own.
_WHY_LATEST = "of each key it holds the latest partial match at each step, which is what sequences of EQL are"
_NO_STEPS = "it holds partial matches, and an event alone has none"

#: Why a query that needs no registers does not run on the engine that has them.
_NO_REGISTERS = "it has a run for each partial match, with registers that no condition of this query needs"

#: Why a query over events in order does not run on the operator that takes its output back.
_NO_REVISIONS = "it keeps what it needs to take output back, which events in order never ask for"


def _why_sase_not_afa(query: BoundSase) -> str:
    if query.time is None:
        return "it puts events in the order of a time column, and none is named"
    from stretto.automata.sase_afa import sase_afa

    try:
        sase_afa(query)
    except QueryError as error:
        return error.message
    except LimitError as error:
        return str(error).splitlines()[0]
    return f"{_NO_REVISIONS}; with speculation= it runs this query"


@dataclass(frozen=True)
class _Engine:
    """The engine of a language's queries that are not written for tECS, and why; ``others``: why none of the others is.

    ``in_core`` is for those of its queries that are: why they run on tECS, and why not elsewhere.
    """

    name: str
    program: Callable[..., Any]
    why: str
    others: dict[str, str]
    in_core: tuple[str, dict[str, str]]
    why_not_afa: Callable[[Any], str]


#: The engines of languages whose queries need more than the automata of CORE, by what is bound.
_ENGINES: Mapping[type, _Engine] = {
    BoundSase: _Engine(
        "nfab",
        NfabProgram,
        "a run for each partial match, with what later events are compared with in registers",
        {"timed": _NO_CEQL},
        ("", {"nfab": _NO_REGISTERS, "timed": _NO_GAPS}),
        _why_sase_not_afa,
    ),
    BoundEql: _Engine(
        "latest",
        LatestProgram,
        _WHY_LATEST,
        dict.fromkeys(("nfab", "timed"), NO_EQL),
        (
            "it asks single events, of which nothing is kept",
            dict.fromkeys(("nfab", "timed"), _NO_REGISTERS) | {"latest": _NO_STEPS},
        ),
        lambda query: NO_EQL,
    ),
}


def choose(parsed: AnyQuery, bound: AnyBound | None = None) -> Choice:
    """The engine of a query over events in order: conditions on single events and equality of attributes need no more than tECS.

    ``bound`` may be ``None`` for CEQL.

    >>> from stretto.languages.ceql import parse
    >>> choose(parse("SELECT * FROM S WHERE A; B")).engine
    'tecs'
    """
    if isinstance(parsed.asked, Totals):
        return _totals(parsed, bound)
    own = _ENGINES.get(type(bound))
    afa = {"afa": _NO_REVISIONS if own is None else own.why_not_afa(bound)}
    if parsed.keep is not None and (kept := _greedy(parsed, bound, afa)) is not None:
        return kept
    if parsed.needs_times:
        return _timed(parsed, afa)
    why_not = "" if bound is None else core_of(bound).why_not
    if own is not None and why_not:
        return Choice(own.name, own.why, {"tecs": why_not} | own.others | afa)
    why, others = ("", {"nfab": _NO_REGISTERS, "timed": _NO_GAPS}) if own is None else own.in_core
    relation = "no condition relates events"
    if parsed.partition_by:
        relation = f"conditions relate events only by equal {', '.join(parsed.partition_by)} ({parsed.equality})"
    return Choice(
        "tecs", why or f"{relation}: constant time per event whatever the window, output-linear delay", others | afa
    )


def _greedy(parsed: AnyQuery, bound: AnyBound | None, afa: dict[str, str]) -> Choice | None:
    """The engine that chooses while events are read, where it can; ``None``: all matches are listed first."""
    from stretto.engines.greedy.program import why_not_greedy

    core = None if bound is None else _told_by_types(bound)
    query = parsed if bound is None else core and core.parsed
    if not isinstance(query, ParsedQuery) or why_not_greedy(query):
        return None
    others = dict.fromkeys(("tecs", "nfab", "timed"), "it lists matches, of which KEEP and AFTER MATCH leave few")
    why = "of each start that is open it has the best match so far, and the best way to each step; no other match is listed"
    return Choice("greedy", why, others | afa)


def _totals(parsed: AnyQuery, bound: AnyBound | None) -> Choice:
    others = dict.fromkeys(("tecs", "nfab", "timed", "afa"), "it lists matches, of which there may be 2ⁿ")
    why_none = "" if bound is None else why_not_added_up(bound)
    if why_none:
        return Choice("none", "what it asks of all matches cannot be added up unlisted", {"totals": why_none} | others)
    if parsed.needs_times:
        del others["timed"]
        why = (
            "gaps, windows inside and NOT at an end are decided match by match, of which each is added up and forgotten"
        )
        held = "its states hold partial matches by their start, and do not know when the rest was"
        return Choice("timed", why, {"totals": held} | others)
    why_runs = "" if bound is None else core_of(bound).why_not
    if why_runs:
        del others["nfab"]
        why = "the lists of runs that it merges have what the matches in them add up to; no match is listed"
        if bound is not None and bound.plan.negates:
            why = "negations are decided match by match, of which each is added up and forgotten"
        return Choice("nfab", why, {"totals": why_runs} | others)
    why = "each state has the number of its partial matches and what they add up to, by start; no match is listed"
    return Choice("totals", why, others)


def why_not_added_up(query: AnyBound) -> str:
    """Why what a query asks of all matches is not added up, in words; empty when it is."""
    runs = "" if query.parsed.needs_times else core_of(query).why_not
    why = _windows_of_keys(query, listed=query.parsed.needs_times or bool(runs))
    if why or not runs or not isinstance(query.asked, BoundTotals):
        return why
    scope = query.asked.scope
    if scope.extent is not Extent.TABLE and any(one.only for one in query.plan.endings):
        return "with UNTIL … ONLY a match ends before the event that completes it: leave out EVERY"
    for one in () if query.plan.negates else scope.groups:
        kind = query.schema.attributes[one.attribute]
        if one.variable is not None and (kind_of(kind) == "other" or pa.types.is_uint64(kind)):
            return f"GROUP BY {one.variable}.{one.attribute} compares {kind} between events: group by another type"
    return ""


def _windows_of_keys(query: AnyBound, *, listed: bool) -> str:
    """Why windows of the events of each key cannot be had, in words; empty when they can, or there are none.

    ``listed``: matches are found by runs, or one by one.
    """
    panes = None if query.asked is None else query.asked.scope.panes
    if panes is None or panes.attribute is not None or not (query.partition_by or query.schema.stream is not None):
        return ""
    told = "WITHIN n EVENTS EVERY m EVENTS counts the events of each key, whose windows are over at times of their own"
    assert query.asked is not None
    groups = {(one.variable, one.attribute) for one in query.asked.scope.groups}
    if groups != {(None, name) for name in query.partition_by}:
        return f"{told}: leave GROUP BY out, so that each key is a group"
    if listed:
        why = "gaps, windows inside and NOT at an end" if query.parsed.needs_times else "conditions between events"
        return f"{told}, and with {why} matches are not held by window: write windows of time, or EVERY EVENT"
    return ""


def _timed(query: AnyQuery, afa: dict[str, str]) -> Choice:
    """The engine of gaps, of windows inside a formula, and of what must not come at its ends."""
    runs = "it has a run for each partial match, of which there may be 2ⁿ for n events"
    if any(query.spans):
        what = "the formula says how far apart events are"
        others = {
            "tecs": f"it knows of a partial match only when it began, and {what}",
            "nfab": f"{runs}, and measures no gaps",
        }
    else:
        what = "NOT stands at an end"
        others = {"tecs": f"it looks at the events between the first and the last one, and {what}", "nfab": runs}
    return Choice("timed", f"{what}; a match is a path in the graph of the events of its window", others | afa)


def choose_ahead() -> Choice:
    """The engine of a query that answers ahead of what is certain."""
    why = "answers go ahead of what is certain, and are taken back where an event that comes later says so"
    return Choice(
        "afa", why, dict.fromkeys(("tecs", "nfab", "timed"), "it reads events in order, and takes no answer back")
    )


#: Why one cannot be asked for all valuations of what is kept.
NO_VALUATIONS = "KEEP and AFTER MATCH choose a complex event, not a valuation: leave out valuations="


def program_for(query: AnyBound, *, valuations: bool, timeouts: bool = False) -> AnyProgram:
    """The compiled machine of a bound query.

    Raises
    ------
    OptionError
        Valuations are asked for of complex events of which one is kept, or timeouts of a query whose partial matches do not time out.
    """
    if isinstance(query.asked, BoundTotals):
        return _totals_program(query, query.asked, valuations=valuations)
    if isinstance(query.asked, BoundBest | BoundSample):
        return _choosing(query, query.asked, valuations=valuations, timeouts=timeouts)
    if timeouts:
        from stretto.engines.match_ops.timeouts import TimeoutProgram, refuse_timeouts

        refuse_timeouts(query.parsed)
    if timeouts:
        return TimeoutProgram(_machine_for(query, valuations=valuations), query)
    keep = query.parsed.keep
    if keep is None:
        return _machine_for(query, valuations=valuations)
    if valuations and type(query) not in _ENGINES:
        raise OptionError(NO_VALUATIONS)
    return _kept(query, keep)


def _totals_program(query: AnyBound, totals: BoundTotals, *, valuations: bool) -> TotalsProgram | AddedProgram:
    why = why_not_added_up(query)
    if why:
        raise OptionError(f"counts and sums over all matches cannot be had: {why}")
    from stretto.engines.match_ops.aggregate import AddedProgram

    core, own = core_of(query).query, _ENGINES.get(type(query))
    if core is not None and query.parsed.needs_times:
        return AddedProgram(TimedProgram(core, valuations=valuations, told=totals.variables), totals)
    if own is None:
        assert core is not None
        return TotalsProgram(core, totals, valuations=valuations)
    if core is not None:
        return TotalsProgram(core, totals, valuations=True, prefix=OWN)
    groups = () if query.plan.negates else totals.scope.groups
    told = [(one.variable, one.attribute) for one in groups if one.variable is not None]
    return AddedProgram(own.program(query, told=told), totals)


def _choosing(query: AnyBound, asked: BoundBest | BoundSample, *, valuations: bool, timeouts: bool) -> PickedProgram:
    """The machine of a query that takes the best of its matches, or a sample, and what chooses them."""
    what = "ORDER BY … LIMIT" if isinstance(asked, BoundBest) else "SAMPLE"
    if timeouts:
        raise OptionError(f"timeouts= has rows beside those of matches, and {what} chooses among matches: leave it out")
    ranked = bool(query.partition_by or query.schema.stream is not None)
    if asked.scope.panes is not None and asked.scope.panes.attribute is None and ranked:
        raise OptionError(
            f"EVERY … EVENTS with {what} counts the events of one stream, and here each key has its own, whose windows are over at "
            "times of their own: write windows of time, or EVERY EVENT"
        )
    from stretto.engines.match_ops.top_k import PickedProgram

    machine = _machine_for(query, valuations=valuations, told=asked.variables)
    program = PickedProgram(machine, asked, query.tested)
    several = asked.scope.panes is not None or (program.lists and asked.scope.extent is Extent.EVENT)
    if isinstance(machine, NfabProgram) and several and machine.machine.ways.only.any():
        raise OptionError(
            f"EVERY with UNTIL … ONLY and {what}: a match ends before the event that completes it, which may be in another window; "
            "use EVERY EVENT without negations and groups of variables"
        )
    return program


def _one_an_interval(query: BoundQuery) -> BoundQuery:
    """The query that gives of each interval the complex event that is kept before others, alone.

    NEXT prefers at the first difference the one that has the event, which is what the least positions are.
    """
    if query.parsed.strategy not in (Strategy.ALL, Strategy.MAX):
        return query
    return replace(query, parsed=replace(query.parsed, strategy=Strategy.NEXT))


def _told_by_types(query: AnyBound) -> BoundQuery | None:
    """The query as CORE has it, where an event's type tells which variable holds it; ``None``: it is none."""
    core = core_of(query).query
    if core is None or type(query) not in _ENGINES:
        return core
    types: dict[frozenset[str], set[str]] = {}
    for position in query.plan.held:
        types.setdefault(position.labels, set()).update(position.types)
    return core if sum(map(len, types.values())) == len(set().union(*types.values())) else None


def _kept(query: AnyBound, keep: Keep) -> KeptProgram:
    """What keeps some of the matches of a query: while events are read where that is possible, else from a list of them."""
    from stretto.engines.match_ops.after_match_skip import KeptProgram

    core = _told_by_types(query)
    order = query.parsed.variables if type(query) in _ENGINES else ()
    if core is None:
        return KeptProgram(_machine_for(query, valuations=True), keep, order)
    from stretto.engines.greedy.program import GreedyProgram, why_not_greedy

    def listing() -> _Listing:
        return _machine_for(_one_an_interval(core), valuations=False)

    if why_not_greedy(core.parsed):
        return KeptProgram(listing(), keep, order)
    return GreedyProgram(listing, keep, order, TimedProgram(core))


def _machine_for(query: AnyBound, *, valuations: bool, told: frozenset[str] = frozenset()) -> _Listing:
    core, own = core_of(query).query, _ENGINES.get(type(query))
    if valuations and own is not None and own.program is LatestProgram:
        raise OptionError("valuations= are those of CEQL: a match of EQL has one event for each step, by name")
    if core is None:
        assert own is not None
        listing: _Listing = own.program(query)
        return listing
    if query.parsed.needs_times:
        return TimedProgram(core, valuations=valuations, told=told)
    return Program(core, valuations=valuations or own is not None, told=told)
