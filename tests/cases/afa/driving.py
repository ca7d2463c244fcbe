"""The AFA engine against the reference evaluator on random cases, step by step."""

from __future__ import annotations

import contextlib
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

import stretto
from stretto.errors import StrettoError
from stretto.query.afa import Afa, Arc, Kind, UserFunction
from stretto.query.evaluate_afa import steps
from tests.cases.afa.drawing import FUNCTIONS, AfaCase, Automaton
from tests.conftest import COMPILED
from tests.reference.afa import (
    AddArc,
    Change,
    Event,
    Insert,
    Output,
    Punctuate,
    PunctuateArcs,
    Replay,
    RetireArc,
    Retract,
    Revise,
    Row,
    Step,
    outputs,
)

__all__ = ["Drive", "check", "check_reference", "shown", "shrunk"]


# ---- The reference by itself


def check_reference(case: AfaCase, seed: int = 0) -> int:
    """Raise an AssertionError unless the replay's differences add up, and what a punctuation finalized stays; how many outputs.

    Also that the reference agrees with a search for single computations, which shares nothing.
    """
    replay = case.replay()
    total = Counter[Output]()
    for step in case.steps:
        before = replay.punctuation
        try:
            change = replay.step(step)
        except StrettoError:
            continue
        for one in (*change.retracted, *change.inserted):
            assert before is None or one.le >= before, f"seed {seed}: {step} changes {one}, which was final"
        total.subtract(change.retracted)
        total.update(change.inserted)
        assert min(total.values(), default=0) >= 0, f"seed {seed}: {step}"
    assert +total == replay.current, f"seed {seed}"
    searched = Counter(_searched(replay))
    bag = outputs(replay.afa, replay.events, bag=True, numbered=case.numbered)
    assert bag == searched, f"seed {seed}:\n{bag - searched}\n{searched - bag}"
    assert outputs(replay.afa, replay.events, numbered=case.numbered) == set(searched), f"seed {seed}"
    return len(searched)


def _searched(replay: Replay) -> Iterator[Output]:
    """The outputs of all computations, found one by one."""
    streams: dict[Any, list[Event]] = {}
    for event in sorted(replay.events, key=lambda one: one.place):
        if None not in event.key:
            streams.setdefault(event.key, []).append(event)
    for stream in streams.values():
        for begin in range(len(stream)):
            for end in range(begin, len(stream)):
                piece = stream[begin : end + 1]
                ends = [event.re for event in piece if event.re is not None]
                numbers = [event.number for event in piece]
                gap = replay.numbered and any(b != a + 1 for a, b in zip(numbers, numbers[1:], strict=False))  # type: ignore[operator]
                if gap or (ends and min(ends) <= piece[-1].le):
                    continue
                for register in _accepted(replay.afa, piece):
                    yield Output(
                        piece[0].key, piece[0].row, piece[-1].row, register, piece[-1].le, min(ends, default=None)
                    )


def _accepted(afa: Any, piece: Sequence[Event]) -> Iterator[tuple[Any, ...]]:
    """The register at the end of every computation that accepts a sequence."""

    def there(here: Any, event: Event) -> list[Any]:
        """Where ε-arcs lead to, with whether the last transition is told; each once."""
        found, path = [here], [here]
        while path:
            for _, after in steps(afa, path.pop()[0], event, epsilon=True):
                if (after, True) not in found:
                    found.append((after, True))
                    path.append((after, True))
        return found

    def go(at: int, here: Any) -> Iterator[tuple[Any, ...]]:
        for (state, register), told in there(here, piece[max(at - 1, 0)]):
            if at == len(piece) and state in afa.finals and told:
                yield register
            if at < len(piece):
                for arc, after in steps(afa, (state, register), piece[at], epsilon=False):
                    # Where an ignored event is not told, an ε-arc back to the state tells it.
                    silent = arc.kind is Kind.IGNORE and afa.finals.get(after[0]) == "on_enter"
                    yield from go(at + 1, (after, not silent))

    yield from go(0, ((afa.start, afa.initial), True)) if piece else ()


# ---- The engine


def as_times(ticks: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Ticks as a column of times."""
    return pa.array(ticks, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)


def ticks_of(times: pa.Array) -> pa.Array:
    """A column of times as ticks."""
    return (times.cast(pa.int32()) if pa.types.is_date32(times.type) else times).cast(pa.int64())


def built(automaton: Automaton) -> Any:
    """The automaton by way of the builder."""
    made = stretto.AFA(
        events=automaton.schema,
        register={name: automaton.afa.register[name] for name in automaton.register},
        initial=automaton.initial,
        start="q0",
        window=automaton.window,
        partition_by=automaton.partition_by,
    )
    for way in automaton.ways:
        if way.kind is Kind.EPSILON:
            made.epsilon(way.source, way.target, when=_given(way.when), then=_given(way.then), id=way.id)
        elif way.kind is Kind.IGNORE:
            made.ignore(way.source, when=_given(way.when), id=way.id)
        else:
            made.arc(way.source, way.target, when=_given(way.when), then=_given(way.then), id=way.id)
    for state, emit in automaton.finals.items():
        made.final(state, emit=str(emit))
    return made


def _given(text: Any) -> Any:
    """A fence or a transfer as the user gives it."""
    return FUNCTIONS[text][1] if isinstance(text, str) and text.startswith("@") else text


@dataclass
class Drive:
    """Feeds a log to a matcher."""

    case: AfaCase
    afa: Any
    ignore: bool = True
    provenance: bool = False
    late: str | None = None
    dictionaries: bool = False
    capacity: int = 1

    def options(self) -> dict[str, Any]:
        """What the matcher is asked for."""
        case = self.case
        found: dict[str, Any] = {"time": "time"}
        if case.sequenced:
            found["sequence"] = "seq"
        if case.until:
            found["until"] = "until"
        if case.signed:
            found["sign"] = "sign"
        if case.numbered:
            found["numbered"] = "number"
        return found | {
            "late": self.late or case.late,
            "bag": case.bag,
            "provenance": self.provenance,
            "dynamic": case.dynamic,
            "ignore": self.ignore,
        }

    def matcher(self) -> Any:
        return stretto.Matcher(self.afa, self.table([]).schema, capacity=self.capacity, **self.options())

    def table(self, steps: Sequence[Step]) -> pa.Table:
        """Rows of consecutive steps as a batch."""
        case = self.case
        rows: list[tuple[Row, int]] = []
        for step in steps:
            match step:
                case Insert(row):
                    rows.append((row, 1))
                case Retract(row):
                    rows.append((row, -1))
                case Revise(old, new):
                    rows += [(old, -1), (new, 1)]
        arrays = {
            name: pa.array([row.payload[name] for row, _ in rows], kind) for name, kind in case.automaton.schema.items()
        }
        if self.dictionaries:
            strings = [name for name, array in arrays.items() if pa.types.is_string(array.type)]
            arrays |= {name: arrays[name].dictionary_encode() for name in strings}
        arrays["time"] = as_times([row.le for row, _ in rows], case.time_type)
        if case.sequenced:
            arrays["seq"] = pa.array([row.sequence for row, _ in rows], pa.int64())
        if case.until:
            arrays["until"] = as_times([row.re for row, _ in rows], case.time_type)
        if case.numbered:
            arrays["number"] = pa.array([row.number for row, _ in rows], pa.int64())
        if case.signed:
            arrays["sign"] = pa.array([sign for _, sign in rows], pa.int8())
        return pa.table(arrays)

    def feed(self, matcher: Any, steps: Sequence[Step]) -> list[dict[str, Any]]:
        """Rows of consecutive steps in one push, or one other step; what comes out."""
        case = self.case
        match steps[0]:
            case _ if len(steps) > 1 and not all(isinstance(one, Insert | Retract | Revise) for one in steps):
                table = self.feed_streams(matcher, steps)
            case Punctuate(time):
                table = matcher.advance(self.time(time))
            case PunctuateArcs(time):
                table = matcher.advance_arcs(self.time(time))
                table = pa.table({}) if table is None else table
            case AddArc(arc, final):
                way = case.ways[arc.id]
                table = matcher.add_arc(
                    way.source, way.target, when=_given(way.when), then=_given(way.then), id=way.id, kind=str(way.kind),
                    since=self.time(arc.since), until=self.time(arc.until), final=final and str(final),
                )  # fmt: skip
            case RetireArc(name, at):
                table = matcher.retire_arc(name, at=self.time(at))
            case _:
                table = matcher.push(self.table(steps))
        found: list[dict[str, Any]] = self.in_ticks(table).to_pylist()
        return found

    def in_ticks(self, table: pa.Table) -> pa.Table:
        """Output with times as ticks."""
        for name in ("start_time", "end_time", "until"):
            if name in table.column_names:
                cast = pa.chunked_array([ticks_of(piece) for piece in table[name].chunks], pa.int64())
                table = table.set_column(table.column_names.index(name), name, cast)
        return table

    def feed_streams(self, matcher: Any, steps: Sequence[Step]) -> pa.Table:
        """Rows, punctuations and changes of arcs in one push."""
        arcs: list[dict[str, Any]] = []
        punctuations = []
        row = 0
        for step in steps:
            match step:
                case Punctuate(time):
                    punctuations.append((row, self.time(time)))
                case AddArc(arc, final):
                    way = self.case.ways[arc.id]
                    names = ("id", "source", "target", "when", "then")
                    arcs.append(
                        {"row": row, "action": "add", "kind": str(way.kind), "final": final and str(final)}
                        | {n: getattr(way, n) for n in names}
                        | {n: getattr(arc, n) for n in ("since", "until") if self.case.dynamic == "explicit"}
                    )
                    if isinstance(way.then, dict):
                        arcs[-1]["then"] = ", ".join(f"{name} = {text}" for name, text in way.then.items())
                case RetireArc(name, at):
                    arcs.append({"row": row, "action": "retire", "id": name, "until": at})
                case _:
                    row += len(_rows(step))
        changes = pa.Table.from_pylist(arcs, ARCS) if arcs else None
        for name in ("since", "until") if changes is not None else ():
            times = as_times(changes.column(name).to_pylist(), self.case.time_type)
            changes = changes.set_column(changes.column_names.index(name), name, times)
        return matcher.push(self.table(steps), arcs=changes, punctuations=punctuations)

    def time(self, ticks: int | None) -> Any:
        return ticks if ticks is None or ticks % 1000 else as_times([ticks], self.case.time_type)[0].as_py()

    def output(self, row: dict[str, Any]) -> Output:
        automaton = self.case.automaton
        register = tuple((row.get("register") or {})[name] for name in automaton.register)
        key = tuple(row[name] for name in automaton.partition_by)
        return Output(key, row["start"], row["end"], register, row["end_time"], row["until"])


ARCS = pa.schema(
    [
        ("row", pa.int64()),
        *((name, pa.string()) for name in ("action", "id", "source", "target", "when", "then", "kind", "final")),
        *((name, pa.int64()) for name in ("since", "until")),
    ]
)


def pieces(
    steps: Sequence[Step], cuts: Callable[[int], bool], streams: bool = False
) -> Iterator[tuple[int, Sequence[Step]]]:
    """Calls to the matcher: rows together until a cut, other steps alone; with the number of the first step.

    With ``streams``, punctuations and changes of arcs stand between the rows of a call.
    """
    begin = 0
    for at in range(len(steps)):
        together = at + 1 < len(steps) and not cuts(at + 1)
        if together and not streams:
            together = all(isinstance(one, Insert | Retract | Revise) for one in steps[at : at + 2])
        elif together:
            together = all(_in_stream(one) for one in steps[at : at + 2]) and not (
                # Changes of arcs come before punctuations where both stand at one row.
                isinstance(steps[at], Punctuate) and isinstance(steps[at + 1], AddArc | RetireArc)
            )
        if not together:
            yield begin, steps[begin : at + 1]
            begin = at + 1


def _in_stream(step: Step) -> bool:
    """Whether a step can stand among the rows of a push."""
    if isinstance(step, AddArc):
        return not _has_function(step.arc)
    return not isinstance(step, PunctuateArcs)


def misread(steps: Sequence[Step], at: int) -> bool:
    """Whether a step and the one before it are a revision if they come in one batch."""
    before, after = steps[at - 1], steps[at]
    if not (isinstance(before, Retract) and isinstance(after, Insert)):
        return False
    places = [(row.key, row.le, row.sequence, row.number) for row in (before.row, after.row)]
    return places[0] == places[1]


def run(
    case: AfaCase, *, cuts: Callable[[int], bool], saves: Callable[[int], bool], drive: Drive, streams: bool = False
) -> None:
    """Raise an AssertionError unless each step gives exactly what the reference says."""
    expected, rows, late = _expected(case, drive.late or case.late)
    matcher = drive.matcher()
    steps = case.steps
    counted = 0
    for begin, piece in pieces(steps, lambda at: cuts(at) or misread(steps, at), streams):
        if saves(begin) and not any(isinstance(one, AddArc) and _has_function(one.arc) for one in steps[:begin]):
            matcher = drive.matcher().restore(matcher.snapshot())
            nothing = matcher.push(drive.table([])).num_rows
            assert nothing == 0, f"an empty push gives {nothing} rows"
        wanted = expected[begin : begin + len(piece)]
        error = next((one for one in wanted if isinstance(one, Exception)), None)
        where = f"step {begin}, {piece}"
        if error is not None:
            assert len(piece) == 1, "steps that fail are fed alone"
            here: StrettoError | None = None
            try:
                got = drive.feed(matcher, piece)
            except StrettoError as found:
                here = found
            assert here is not None, f"{where}: {error!r} expected, got {got}"
            assert type(here) is type(error), f"{where}: {error!r} expected, got {here!r}"
            continue
        got = drive.feed(matcher, piece)
        _compare(got, [one for one in wanted if isinstance(one, Change)], rows[begin + len(piece) - 1], drive, where)
        punctuation = punctuation_of(matcher, case)
        assert punctuation == rows[begin + len(piece) - 1][1], (
            f"{where}: punctuation {punctuation}, expected {rows[begin + len(piece) - 1][1]}"
        )
        counted += len(got)
    assert drive.late == "error" or case.late == "error" or matcher.late == late, (
        f"{matcher.late} late, expected {late}"
    )
    rest = matcher.finish()
    assert rest.num_rows == 0, f"finish gives {rest.to_pylist()}"


def _has_function(arc: Arc) -> bool:
    """Whether no snapshot holds an arc that was added later."""
    return isinstance(arc.when, UserFunction) or isinstance(arc.then, UserFunction)


def punctuation_of(matcher: Any, case: AfaCase) -> int | None:
    found = matcher.punctuation
    if found is None or isinstance(found, int):
        return found
    return int(ticks_of(pa.array([found], case.time_type))[0].as_py())


Expected = tuple[list[Change | StrettoError], list[tuple[dict[int, Event], int | None]], int]
_EXPECTED: list[tuple[AfaCase, str, Expected]] = []


def _expected(case: AfaCase, late: str) -> Expected:
    """What each step gives, the events and the punctuation after it, and the number of late rows."""
    for known, policy, answer in _EXPECTED:
        if known is case and policy == late:
            return answer
    answer = _replayed(case, late)
    _EXPECTED[:] = [*_EXPECTED[-1:], (case, late, answer)]
    return answer


def _replayed(case: AfaCase, late: str) -> Expected:
    replay = replace(case, late=late).replay()
    found: list[Change | StrettoError] = []
    states = []
    for step in case.steps:
        try:
            found.append(replay.step(step))
        except StrettoError as error:
            found.append(error)
        states.append(({event.row: event for event in replay.events}, replay.punctuation))
    return found, states, len(replay.late_rows)


def _compare(
    got: list[dict[str, Any]],
    wanted: list[Change],
    state: tuple[dict[int, Event], int | None],
    drive: Drive,
    where: str,
    rows: bool = True,
) -> None:
    begin = 0
    shown = [(row["sign"], drive.output(row)) for row in got]
    for change in wanted:
        lost = shown[begin : (begin := begin + len(change.retracted))]
        won = shown[begin : (begin := begin + len(change.inserted))]
        right_lost = [(-1, one) for one in change.retracted]
        right_won = [(1, one) for one in change.inserted]
        everything = [(-1 if one in change.retracted else 1, one) for one in (*change.retracted, *change.inserted)]
        difference = f"{where}:\n  expected {everything}\n  got      {shown}"
        assert Counter(lost) == Counter(right_lost), difference
        assert won == right_won, difference
    assert begin == len(shown), f"{where}: more than expected: {shown[begin:]}"
    if rows and len(wanted) == 1:
        for row in got:
            if row["sign"] == 1:
                _check_row(row, state[0], drive, where)


def _check_row(row: dict[str, Any], events: dict[int, Event], drive: Drive, where: str) -> None:
    first, last = events[row["start"]], events[row["end"]]
    assert row["start_time"] == first.le, f"{where}: {row}"
    if drive.provenance:
        between = [one for one in events.values() if one.key == first.key and first.place <= one.place <= last.place]
        positions = [one.row for one in sorted(between, key=lambda one: one.place)]
        assert row["positions"] == positions, f"{where}: {row}, positions should be {positions}"


def _plain(afa: Afa) -> Afa:
    """With Python functions that have no name."""

    def plain(one: Any) -> Any:
        return replace(one, name="") if isinstance(one, UserFunction) else one

    return replace(afa, arcs=tuple(replace(arc, when=plain(arc.when), then=plain(arc.then)) for arc in afa.arcs))


_BUILT: dict[int, Any] = {}


def _built(automaton: Automaton) -> Any:
    """Built once for the cases that share it."""
    found = _BUILT.get(id(automaton))
    if found is None:
        _BUILT.clear()
        found = _BUILT[id(automaton)] = built(automaton)
    return found


#: A case takes no longer than this, in seconds of the processor, where kernels run uncompiled.
LONGEST = 20


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Raise a TimeoutError in a loop without end; compiled code is left alone, which is first compiled."""
    if COMPILED:
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {LONGEST} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check(case: AfaCase, seed: int = 0, *, thorough: bool = True) -> int:
    """Raise an AssertionError unless the engine is right on a case: however it is fed, or else in one way; how many changes."""
    afa = _built(case.automaton)
    assert _plain(afa.frozen) == _plain(case.automaton.afa), f"the builder reads {afa.frozen}, not {case.automaton.afa}"
    with _bounded():
        for way, feed in enumerate(FEEDS):
            if thorough or way == seed % len(FEEDS):
                feed(case, afa, random.Random(seed))
    return sum(
        len(one.retracted) + len(one.inserted) for one in _expected(case, case.late)[0] if isinstance(one, Change)
    )


def through_snapshots(case: AfaCase, choose: random.Random) -> None:
    """Raise an AssertionError unless the engine is right on a case that goes through a snapshot before each step."""
    drive = Drive(case, _built(case.automaton), ignore=choose.random() < 0.6, capacity=choose.choice([1, 64]))
    with _bounded():
        run(case, cuts=lambda _: True, saves=lambda _: True, drive=drive)


def _one_by_one(case: AfaCase, afa: Any, choose: random.Random) -> None:
    drive = Drive(case, afa, ignore=choose.random() < 0.6, provenance=choose.random() < 0.5)
    run(case, cuts=lambda _: True, saves=lambda _: False, drive=drive)
    if case.late == "drop":
        run(case, cuts=lambda _: True, saves=lambda _: False, drive=replace(drive, late="error"))


def _with_snapshots(case: AfaCase, afa: Any, choose: random.Random) -> None:
    each = [choose.random() < 0.4 or _fails(case) for _ in range(len(case.steps) + 1)]
    saved = [choose.random() < 0.3 for _ in range(len(case.steps) + 1)]
    drive = Drive(
        case, afa, ignore=choose.random() < 0.6, provenance=choose.random() < 0.2,
        dictionaries=choose.random() < 0.3, capacity=choose.choice([1, 64]),
    )  # fmt: skip
    run(case, cuts=lambda at: each[at], saves=lambda at: saved[at], drive=drive)


def _at_once(case: AfaCase, afa: Any, choose: random.Random) -> None:
    if not _fails(case):
        drive = Drive(case, afa, ignore=choose.random() < 0.6, capacity=choose.choice([1, 64]))
        streams = choose.random() < 0.7
        run(case, cuts=lambda _: False, saves=lambda _: False, drive=drive, streams=streams)


def _in_order(case: AfaCase, afa: Any, choose: random.Random) -> None:
    """The final events through :func:`stretto.match`, in any order: the definition itself."""
    if _fails(case) or case.dynamic != "default" or any(isinstance(one, AddArc | RetireArc) for one in case.steps):
        return
    replay = case.replay()
    for step in case.steps:
        replay.step(step)
    events = sorted(replay.events, key=lambda one: one.place)
    if not case.sequenced and not case.numbered:
        order = events  # arrival breaks ties
    else:
        order = choose.sample(events, len(events))
    rows = {event.row: at for at, event in enumerate(order)}
    drive = Drive(case, afa)
    table = drive.table([
        Insert(Row(one.key, one.le, one.payload, one.sequence if case.sequenced else None, one.re, one.number))
        for one in order
    ])  # fmt: skip
    names = {"sequence": case.sequenced, "until": case.until, "numbered": case.numbered}
    columns = {"sequence": "seq", "until": "until", "numbered": "number"}
    options = {name: columns[name] for name, wanted in names.items() if wanted}
    if case.signed:
        table = table.drop_columns(["sign"])
    found = stretto.match(afa, table, time="time", bag=case.bag, ignore=choose.random() < 0.6, **options)
    right = [one._replace(first=rows[one.first], last=rows[one.last]) for one in replay.current.elements()]
    at = {event.row: event.place for event in events}
    right.sort(key=lambda one: (at[order[one.last].row], at[order[one.first].row], one.register))
    got = [drive.output(row) for row in drive.in_ticks(found).to_pylist()]
    assert got == right, f"match: expected {right}\n  got {got}"


def _in_any_pushes(case: AfaCase, afa: Any, choose: random.Random) -> None:
    """Whatever stands in a push, and whichever of its rows are refused: the same as step by step, for each late policy."""
    for late in ("error", "drop", "side"):
        drive = Drive(case, afa, ignore=choose.random() < 0.6, late=late, capacity=choose.choice([1, 64]))
        _pushed(drive, _expected(case, late)[0], choose)


def _pushed(drive: Drive, expected: list[Change | StrettoError], choose: random.Random) -> None:
    """Feed a case in pushes that are cut anywhere; behind a step that fails, the rest of its push comes again."""
    steps = drive.case.steps
    often = choose.choice([0.0, 0.2, 0.5])

    def alone(at: int) -> bool:
        """Whether a step is wrong whatever was taken before, so that nothing of its push is taken."""
        wrong = any(isinstance(expected[one], Exception) and not _rows(steps[one]) for one in (at - 1, at))
        return wrong or misread(steps, at) or choose.random() < often

    matcher = drive.matcher()
    for begin, whole in pieces(steps, alone, streams=True):
        where = f"late={drive.late}, step {begin} and on, {whole}"
        wanted = expected[begin : begin + len(whole)]
        piece = whole
        got: list[dict[str, Any]] = []
        while piece:
            failed: StrettoError | None = None
            try:
                got += drive.feed(matcher, piece)
            except StrettoError as error:
                failed = error
                got += drive.in_ticks(matcher.push(drive.table([]))).to_pylist()  # what came before it
            rest = expected[begin + len(wanted) - len(piece) :][: len(piece)]
            wrong = next((at for at, one in enumerate(rest) if isinstance(one, Exception)), None)
            right = None if wrong is None else rest[wrong]
            assert type(failed) is type(right), f"{where}: {right!r} expected, got {failed!r}"
            piece = () if wrong is None else piece[wrong + 1 :]
        _compare(got, [one for one in wanted if isinstance(one, Change)], ({}, None), drive, where, rows=False)


FEEDS = (_one_by_one, _with_snapshots, _at_once, _in_order, _in_any_pushes)


def _fails(case: AfaCase) -> bool:
    """Whether a step is an error."""
    return any(isinstance(one, Exception) for one in _expected(case, case.late)[0])


# ---- Small failures


def _failure(case: AfaCase, seed: int) -> str | None:
    """How a case fails: the kind of failure, so that another one does not take its place."""
    try:
        check(case, seed)
    except AssertionError as error:
        text = str(error)
        return "builder" if "the builder reads" in text else "wrong"
    except Exception as error:
        return type(error).__name__
    return None


def shrunk(case: AfaCase, seed: int) -> AfaCase:
    """A smaller case that fails in the same way."""
    wanted = _failure(case, seed)
    assert wanted is not None
    smaller = True
    while smaller:
        smaller = False
        for one in _smaller(case):
            try:
                fails = _failure(one, seed) == wanted
            except Exception:
                fails = False
            if fails:
                case, smaller = one, True
                break
    return case


def _smaller(case: AfaCase) -> Iterator[AfaCase]:  # noqa: C901, PLR0912 - one case after the other
    size = len(case.steps)
    for length in sorted({size // 2, size // 4, 2, 1} - {0}, reverse=True):
        for at in range(size - length, -1, -1):
            yield replace(case, steps=(*case.steps[:at], *case.steps[at + length :]))
    automaton = case.automaton
    for way in automaton.ways:
        yield _with(case, ways=tuple(one for one in automaton.ways if one is not way))
    for state in automaton.finals:
        if len(automaton.finals) > 1:
            yield _with(case, finals={one: emit for one, emit in automaton.finals.items() if one != state})
    for way in automaton.ways:
        for other in (replace(way, when=None), replace(way, then=None)):
            if other != way:
                yield _with(case, ways=tuple(other if one is way else one for one in automaton.ways))
        if isinstance(way.then, dict) and len(way.then) > 1:
            for name in way.then:
                then = {one: text for one, text in way.then.items() if one != name}
                yield _with(case, ways=tuple(replace(way, then=then) if one is way else one for one in automaton.ways))
    if automaton.window is not None:
        yield _with(case, window=None)
    for name in ("until", "bag", "sequenced", "numbered"):
        if getattr(case, name):
            yield replace(case, **{name: False})
    for name in automaton.events:
        yield _with(case, events=tuple(one for one in automaton.events if one != name))
    for name in automaton.register:
        yield _with(case, register=tuple(one for one in automaton.register if one != name))
    if not pa.types.is_int64(case.time_type):
        yield replace(case, time_type=pa.int64())
    yield from _earlier(case)
    for at, step in enumerate(case.steps):
        if isinstance(step, Revise):
            for one in (Insert(step.new), Retract(step.old)):
                yield replace(case, steps=(*case.steps[:at], one, *case.steps[at + 1 :]))


def _earlier(case: AfaCase) -> Iterator[AfaCase]:
    """Times that begin at zero."""
    times = [row.le for step in case.steps for row in _rows(step)]
    if not times or min(times) == 0:
        return
    back = min(times)

    def shifted(one: Any) -> Any:
        if isinstance(one, Row):
            return replace(one, le=one.le - back, re=None if one.re is None else one.re - back)
        return one

    steps: list[Step] = []
    for step in case.steps:
        match step:
            case Punctuate(time) | PunctuateArcs(time):
                steps.append(replace(step, time=time - back))
            case RetireArc(_, at):
                steps.append(replace(step, at=None if at is None else at - back))
            case AddArc(arc):
                moved = {name: getattr(arc, name) for name in ("since", "until") if getattr(arc, name) is not None}
                steps.append(AddArc(replace(arc, **{name: time - back for name, time in moved.items()})))
            case Revise(old, new):
                steps.append(Revise(shifted(old), shifted(new)))
            case Insert(row) | Retract(row):
                steps.append(replace(step, row=shifted(row)))
    yield replace(case, steps=tuple(steps))


def _rows(step: Step) -> tuple[Row, ...]:
    match step:
        case Insert(row) | Retract(row):
            return (row,)
        case Revise(old, new):
            return old, new
        case _:
            return ()


def _with(case: AfaCase, **changed: Any) -> AfaCase:
    automaton = replace(case.automaton, **changed)
    return replace(case, automaton=automaton)


def shown(case: AfaCase) -> str:
    """A case as a program, with what each call should give."""
    automaton = case.automaton
    kinds = {name: _type(kind) for name, kind in automaton.schema.items()}
    register = ", ".join(f"{name!r}: {_type(automaton.afa.register[name])}" for name in automaton.register)
    lines = [
        "import datetime", "import pyarrow as pa", "import stretto",
        f"afa = stretto.AFA(events={{{', '.join(f'{n!r}: {k}' for n, k in kinds.items())}}}, register={{{register}}}, "
        f"initial={automaton.initial!r}, start='q0', window={automaton.window!r}, partition_by={automaton.partition_by!r})",
    ]  # fmt: skip
    for way in automaton.ways:
        call = {Kind.EPSILON: "epsilon", Kind.IGNORE: "ignore"}.get(way.kind, "arc")
        states = repr(way.source) if way.kind is Kind.IGNORE else f"{way.source!r}, {way.target!r}"
        then = "" if way.kind is Kind.IGNORE else f", then={_text(way.then)}"
        lines.append(f"afa.{call}({states}, when={_text(way.when)}{then}, id={way.id!r})")
    lines += [f"afa.final({state!r}, emit={str(emit)!r})" for state, emit in automaton.finals.items()]
    drive = Drive(case, None)
    options = ", ".join(f"{name}={value!r}" for name, value in drive.options().items())
    schema = ", ".join(f"({one.name!r}, {_type(one.type)})" for one in drive.table([]).schema)
    lines.append(f"m = stretto.Matcher(afa, pa.schema([{schema}]), {options})")
    expected = _expected(case, case.late)[0]
    for step, change in zip(case.steps, expected, strict=True):
        match step:
            case Punctuate(at):
                call = f"m.advance({drive.time(at)!r})"
            case PunctuateArcs(at):
                call = f"m.advance_arcs({drive.time(at)!r})"
            case AddArc(arc, final):
                way = case.ways[arc.id]
                call = (
                    f"m.add_arc({way.source!r}, {way.target!r}, when={_text(way.when)}, then={_text(way.then)}, "
                    f"id={way.id!r}, kind={str(way.kind)!r}, since={drive.time(arc.since)!r}, "
                    f"until={drive.time(arc.until)!r}, final={final and str(final)!r})"
                )
            case RetireArc(name, at_):
                call = f"m.retire_arc({name!r}, at={drive.time(at_)!r})"
            case _:
                table = drive.table([step])
                columns = ", ".join(
                    f"{one.name!r}: pa.array({table[one.name].to_pylist()!r}, {_type(one.type)})"
                    for one in table.schema
                )
                call = f"m.push(pa.table({{{columns}}}))"
        if isinstance(change, Exception):
            lines.append(f"# {type(change).__name__}: {change}\n{call}")
        else:
            lines.append(f"print({call}.to_pylist())")
            lines += [f"#   -1 {tuple(one)}" for one in change.retracted]
            lines += [f"#   +1 {tuple(one)}" for one in change.inserted]
    return "\n".join(lines)


def _type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return f"pa.timestamp({kind.unit!r}, {kind.tz!r})"
    names = {pa.bool_(): "bool_", pa.date32(): "date32", pa.float64(): "float64"}
    return f"pa.{names.get(kind, kind)}()"


def _text(one: Any) -> str:
    return FUNCTIONS[one][0] if isinstance(one, str) and one.startswith("@") else repr(one)
