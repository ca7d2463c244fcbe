"""Which engine runs which query, and why none of the others does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from stretto.automata.nfab import build
from stretto.automata.shortcut import OWN, as_core, of_one_event, why_not
from stretto.engines.programs import LatestProgram, NfabProgram, Program, TimedProgram, TotalsProgram
from stretto.errors import LimitError, OptionError, QueryError
from stretto.query.algebra import is_timed
from stretto.query.eql import Mode
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.bind_totals import BoundBest, BoundSample, BoundTotals
from stretto.query.query import ParsedQuery, Strategy
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


def why_not_event(query: BoundEql) -> str:
    """Why an EQL query does not run on tECS, in words; empty when it does."""
    if query.eql.mode is not Mode.EVENT:
        return _NO_EQL
    if query.eql.stages[0].category is None:
        return "it tells events by their types, and this query takes every category"
    return "" if query.schema.stream is None else "events of several streams are told apart by types only"


#: Why EQL has an engine of its own.
_WHY_LATEST = "of each key it holds the latest partial match at each step, which is what sequences of EQL are"
_NO_STEPS = "it holds partial matches, and an event alone has none"
_NO_EQL = "it selects events as its own language does, where each partial match goes on by itself"

#: Why a query that needs no registers does not run on the engine that has them.
_NO_REGISTERS = "it has a run for each partial match, with registers that no condition of this query needs"


def choose(query: ParsedQuery | BoundSase) -> Choice:
    """The engine of a query over events in order: conditions on single events and equality of attributes need no more than tECS.

    >>> from stretto.languages.ceql import parse
    >>> choose(parse("SELECT * FROM S WHERE A; B")).engine
    'tecs'
    """
    parsed = query if isinstance(query, ParsedQuery) else query.parsed
    if isinstance(parsed.asked, Totals):
        return _totals(query)
    if isinstance(query, ParsedQuery) and query.needs_times:
        return _timed(query)
    if isinstance(query, BoundEql):
        why = why_not_event(query)
        if why:
            return Choice("latest", _WHY_LATEST, {"tecs": why} | dict.fromkeys(("nfab", "timed", "afa"), _NO_EQL))
        others = dict.fromkeys(("nfab", "timed"), _NO_REGISTERS) | {"latest": _NO_STEPS, "afa": _NO_EQL}
        return Choice("tecs", "it asks single events, of which nothing is kept", others)
    others = {"nfab": _NO_REGISTERS, "timed": _NO_GAPS, "afa": _why_not_afa(query)}
    if isinstance(query, BoundSase):
        why = why_not(build(query))
        if why:
            runs = "a run for each partial match, with what later events are compared with in registers"
            return Choice("nfab", runs, {"tecs": why, "timed": _NO_CEQL, "afa": others["afa"]})
    word = "PARTITION BY"
    if isinstance(query, BoundSase):
        word = "equalities" if query.parsed.implied else "equivalence test"
    relation = "no condition relates events"
    if query.partition_by:
        relation = f"conditions relate events only by equal {', '.join(query.partition_by)} ({word})"
    return Choice("tecs", f"{relation}: constant time per event whatever the window, output-linear delay", others)


def _totals(query: ParsedQuery | BoundSase) -> Choice:
    others = dict.fromkeys(("tecs", "nfab", "timed", "afa"), "it lists matches, of which there may be 2ⁿ")
    why_none = why_not_added_up(query) if isinstance(query, BoundSase) else ""
    if why_none:
        return Choice("none", "what it asks of all matches cannot be added up unlisted", {"totals": why_none} | others)
    if isinstance(query, ParsedQuery) and query.needs_times:
        del others["timed"]
        why = (
            "gaps, windows inside and NOT at an end are decided match by match, of which each is added up and forgotten"
        )
        held = "its states hold partial matches by their start, and do not know when the rest was"
        return Choice("timed", why, {"totals": held} | others)
    why = "each state has the number of its partial matches and what they add up to, by start; no match is listed"
    if isinstance(query, BoundSase) and (why_runs := why_not(build(query))):
        del others["nfab"]
        why = "the lists of runs that it merges have what the matches in them add up to; no match is listed"
        if build(query).negations:
            why = "negations are decided match by match, of which each is added up and forgotten"
        return Choice("nfab", why, {"totals": why_runs} | others)
    return Choice("totals", why, others)


def why_not_added_up(query: BoundQuery | BoundSase) -> str:
    """Why what a query asks of all matches is not added up, in words; empty when it is."""
    if isinstance(query, BoundQuery):
        return _windows_of_keys(query, listed=query.parsed.needs_times)
    nfab, asked = build(query), query.asked
    if why := _windows_of_keys(query, listed=bool(why_not(nfab))):
        return why
    if not why_not(nfab) or not isinstance(asked, BoundTotals):
        return ""
    if asked.scope.extent is not Extent.TABLE and any(pair.component.only for pair in nfab.pairs):
        return "with UNTIL … ONLY a match ends before the event that completes it: leave out EVERY"
    for one in () if nfab.negations else asked.scope.groups:
        kind = query.schema.attributes[one.attribute]
        if one.variable is not None and (kind_of(kind) == "other" or pa.types.is_uint64(kind)):
            return f"GROUP BY {one.variable}.{one.attribute} compares {kind} between events: group by another type"
    return ""


def _windows_of_keys(query: BoundQuery | BoundSase, *, listed: bool) -> str:
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
        why = "conditions between events" if isinstance(query, BoundSase) else "gaps, windows inside and NOT at an end"
        return f"{told}, and with {why} matches are not held by window: write windows of time, or EVERY EVENT"
    return ""


def _timed(query: ParsedQuery) -> Choice:
    """The engine of gaps, of windows inside a formula, and of what must not come at its ends."""
    runs = "it has a run for each partial match, of which there may be 2ⁿ for n events"
    if is_timed(query.pattern):
        what = "the formula says how far apart events are"
        others = {
            "tecs": f"it knows of a partial match only when it began, and {what}",
            "nfab": f"{runs}, and measures no gaps",
        }
    else:
        what = "NOT stands at an end"
        others = {"tecs": f"it looks at the events between the first and the last one, and {what}", "nfab": runs}
    others["afa"] = _why_not_afa(query)
    return Choice("timed", f"{what}; a match is a path in the graph of the events of its window", others)


def choose_ahead() -> Choice:
    """The engine of a query that answers ahead of what is certain."""
    why = "answers go ahead of what is certain, and are taken back where an event that comes later says so"
    return Choice(
        "afa", why, dict.fromkeys(("tecs", "nfab", "timed"), "it reads events in order, and takes no answer back")
    )


def _why_not_afa(query: ParsedQuery | BoundSase) -> str:
    """Why a query over events in order does not run on the operator that takes its output back."""
    if not isinstance(query, BoundSase):
        return "it keeps what it needs to take output back, which events in order never ask for"
    if query.time is None:
        return "it puts events in the order of a time column, and none is named"
    from stretto.automata.sase_afa import sase_afa

    try:
        sase_afa(query)
    except QueryError as error:
        return error.message
    except LimitError as error:
        return str(error).splitlines()[0]
    return "it keeps what it needs to take output back, which events in order never ask for; with speculation= it runs this query"


#: Why one cannot be asked for all valuations of what is kept.
NO_VALUATIONS = "KEEP and AFTER MATCH choose a complex event, not a valuation: leave out valuations="


def program_for(query: BoundQuery | BoundSase, *, valuations: bool, timeouts: bool = False) -> AnyProgram:
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
    if isinstance(query, BoundEql):
        return _eql_program(query, valuations=valuations)
    if timeouts:
        return TimeoutProgram(_machine_for(query, valuations=valuations), query)
    keep = query.parsed.keep
    if keep is None:
        return _machine_for(query, valuations=valuations)
    from stretto.engines.match_ops.after_match_skip import KeptProgram

    if isinstance(query, BoundSase):
        return KeptProgram(_one_by_one(query), keep, query.parsed.variables)
    if valuations:
        raise OptionError(NO_VALUATIONS)
    return KeptProgram(_machine_for(_one_an_interval(query), valuations=False), keep, ())


def _totals_program(
    query: BoundQuery | BoundSase, totals: BoundTotals, *, valuations: bool
) -> TotalsProgram | AddedProgram:
    why = why_not_added_up(query)
    if why:
        raise OptionError(f"counts and sums over all matches cannot be had: {why}")
    from stretto.engines.match_ops.aggregate import AddedProgram

    if isinstance(query, BoundQuery) and query.parsed.needs_times:
        return AddedProgram(TimedProgram(query, valuations=valuations, told=totals.variables), totals)
    if isinstance(query, BoundQuery):
        return TotalsProgram(query, totals, valuations=valuations)
    nfab = build(query)
    if not why_not(nfab):
        return TotalsProgram(as_core(nfab), totals, valuations=True, prefix=OWN)
    groups = () if nfab.negations else totals.scope.groups
    told = [(one.variable, one.attribute) for one in groups if one.variable is not None]
    return AddedProgram(NfabProgram(query, told=told), totals)


def _choosing(
    query: BoundQuery | BoundSase, asked: BoundBest | BoundSample, *, valuations: bool, timeouts: bool
) -> PickedProgram:
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

    if isinstance(query, BoundQuery) and query.parsed.needs_times:
        timed = TimedProgram(query, valuations=valuations, told=asked.variables)
        return PickedProgram(timed, asked, query.tested)
    machine = _machine_for(query, valuations=valuations)
    program = PickedProgram(machine, asked, query.tested)
    several = asked.scope.panes is not None or (program.lists and asked.scope.extent is Extent.EVENT)
    if isinstance(machine, NfabProgram) and several and machine.machine.ways.only.any():
        raise OptionError(
            f"EVERY with UNTIL … ONLY and {what}: a match ends before the event that completes it, which may be in another window; "
            "use EVERY EVENT without negations and groups of variables"
        )
    return program


def _eql_program(query: BoundEql, *, valuations: bool) -> AnyProgram:
    if valuations:
        raise OptionError("valuations= are those of CEQL: a match of EQL has one event for each step, by name")
    return LatestProgram(query) if why_not_event(query) else Program(of_one_event(query), valuations=True)


def _one_an_interval(query: BoundQuery) -> BoundQuery:
    """The query that gives of each interval the complex event that is kept before others, alone.

    NEXT prefers at the first difference the one that has the event, which is what the least positions are.
    """
    if query.parsed.strategy not in (Strategy.ALL, Strategy.MAX):
        return query
    return replace(query, parsed=replace(query.parsed, strategy=Strategy.NEXT))


def _one_by_one(query: BoundSase) -> _Listing:
    """The machine of a SASE+ query of which one match is kept for each interval."""
    nfab = build(query)
    if why_not(nfab):
        return NfabProgram(query)
    core = as_core(nfab)
    types: dict[str, set[str]] = {}
    for pair in nfab.pairs:
        types.setdefault(pair.component.variable, set()).update(pair.component.types)
    if sum(map(len, types.values())) == len(set().union(*types.values())):  # an event's type tells its variable
        return Program(_one_an_interval(core))
    return Program(core, valuations=True)


def _machine_for(query: BoundQuery | BoundSase, *, valuations: bool) -> _Listing:
    if isinstance(query, BoundQuery):
        return (TimedProgram if query.parsed.needs_times else Program)(query, valuations=valuations)
    nfab = build(query)
    return NfabProgram(query) if why_not(nfab) else Program(as_core(nfab), valuations=True)
