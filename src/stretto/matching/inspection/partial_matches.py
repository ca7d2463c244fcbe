"""What is under way in a stream, as an answer: ``Matcher.why_not``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from stretto.explaining.answer import Answer, NearMiss, Reason
from stretto.query.constraints.model import Chain, Kind, Step, by_step
from stretto.query.sase import Selection

#: Partial matches that are looked at, the oldest ones.
LOOKED_AT = 10_000

#: Late events whose times are told.
NAMED = 5

_PAST = (
    "What ended partial matches, and which events went on with none, a stream does not know: it keeps no past. "
    "stretto.why_not(query, events) looks at events."
)


class Partial(NamedTuple):
    """A partial match: the rows of each variable, the variable that it reached, and its times.

    ``expires``: the last time at which its window is open; ``None``: time closes none. ``until`` says it in words.
    ``certain``: no event that came has ended it.
    """

    held: Mapping[str, Sequence[int]]
    reached: str
    times: tuple[Any, Any] | None
    until: str
    expires: Any = None
    certain: bool = True


class Left(NamedTuple):
    """What a partial match waits for, and how many steps that is from a match."""

    reason: Reason
    steps: int


def refused(what: str, call: str) -> str:
    """The text of an error: nothing of this matcher is listed, and another call answers."""
    return f"why_not() of a matcher tells of the partial matches that it follows, {what}; stretto.why_not({call}) looks at events"


def unsorted(count: int) -> list[str]:
    """How many events of a stream are not sorted yet."""
    one = count == 1
    told = f"{count:,} event{'' if one else 's'} wait{'s' * one} to be sorted, and {'is' if one else 'are'} in none."
    return [told] if count else []


def answered(text: str, read: int, noun: str, count: int, found: Sequence[NearMiss], notes: Sequence[str]) -> Answer:
    """The answer of a stream of which so many rows were read, with so many partial matches; the furthest are found."""
    more = (f"Only the {LOOKED_AT:,} oldest were looked at.",) if count > LOOKED_AT else ()
    return Answer(text, read, tuple(found), None, (*more, *notes, _PAST), noun, under_way=count)


def near_misses(chains: Sequence[Chain], partial: Sequence[Partial], most: int) -> list[NearMiss]:
    """The partial matches of a query that got furthest, of these the oldest first."""
    found: list[tuple[int, NearMiss]] = []
    for one in partial:
        chain = _chain_of(chains, one)
        left = _left(chain, one)
        found.append((left.steps, NearMiss((left.reason,), by_step(chain.steps, one.held), one.times)))
    return [miss for _, miss in sorted(found, key=lambda each: each[0])[:most]]


def _chain_of(chains: Sequence[Chain], one: Partial) -> Chain:
    """The alternative that has the variables of a partial match."""
    for chain in chains:
        if {*one.held} <= {name for step in chain.steps for name in step.variables}:
            return chain
    return chains[0]


def _left(chain: Chain, one: Partial) -> Left:
    steps = chain.steps
    at = max((number for number, step in enumerate(steps) if one.reached in step.variables), default=0)
    few = len(one.held.get(one.reached, ())) < steps[at].least
    goes_on = few or steps[at].composed
    wanted = [f"the rest of {steps[at].text}"] if goes_on else []
    variables = list(steps[at].variables) if goes_on else []
    for number, step in enumerate([] if few else steps[at + 1 :], at + 1):
        wanted.append(_asked(chain, number, step))
        variables += step.variables
        if not step.optional:
            break
    values = () if one.expires is None else (("expires", one.expires),)
    denied = [each for each in chain.constraints if each.kind is Kind.NEGATION]
    if not wanted and denied:
        told = f"none has come, and there is a match if none comes: {one.until}"
        return Left(Reason("negation", denied[-1].text, told, values=values, variables=denied[-1].variables), 0)
    text = " or ".join(wanted) or f"the rest of {steps[at].text}"
    told = f"none that fits has come; {one.until}"
    ending = [] if one.certain or at + 1 >= len(steps) else _ending(chain, at + 1)
    if ending:
        told += f", unless {' or '.join(ending)} has ended it"
    return Left(Reason("absent", text, told, values=values, variables=tuple(dict.fromkeys(variables))), len(steps) - at)


def _ending(chain: Chain, number: int) -> list[str]:
    """What asks of the events before a step comes, in words, so that one of them may have ended what waits for it."""
    before = set(chain.asks(number))
    found = list[str]()
    for one in chain.asks(number + 1):
        new = one not in before and (
            one.kind in (Kind.CONTIGUITY, Kind.NEGATION, Kind.UNTIL)
            or (one.kind is Kind.GAP and one.what[1] is not None)
        )
        strict = one.what in (Selection.STRICT, Selection.PARTITION) or one.place == ("strict",)
        found += [one.text] if new or strict else []
    return found


def _asked(chain: Chain, number: int, step: Step) -> str:
    """A step with the conditions that it adds."""
    before = set(chain.asks(number)) if number else set()
    added = [each.text for each in chain.asks(number + 1) if each.kind is Kind.CONDITION and each not in before]
    return f"{step.text} with {' and '.join(added)}" if added else step.text


def late_words(count: int, disorder: Any, time: str | None, kept: pa.Table) -> list[str]:
    """How many events came too late for a stream; with the times of those that are kept."""
    if not count:
        return []
    why = "as events come in order" if disorder is None else f"for disorder={disorder!r}"
    told = f"{count:,} event{'' if count == 1 else 's'} came too late {why}, and {'was' if count == 1 else 'were'} left out"
    if kept.num_rows and time in kept.column_names:
        times = ", ".join(str(one) for one in kept.column(time).slice(0, NAMED).to_pylist())
        told += f"; late_events() has {kept.num_rows:,}: {time} is {times}{', …' * (kept.num_rows > NAMED)}"
    return [told + "."]
