"""The dataflow against the reference evaluator on random cases, with every definite punctuation held to what comes later."""

from __future__ import annotations

import contextlib
import datetime as dt
import pprint
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from stretto.dataflow import Dataflow, plan
from stretto.dataflow.operators import join
from stretto.dataflow.run.index import Index
from stretto.errors import DataError, LimitError
from tests.cases.dataflow.drawing import (
    TYPES,
    VALUES,
    Advance,
    Case,
    Change,
    Loop,
    Push,
    Restore,
    Run,
    Step,
    Take,
    Wrong,
    at_once,
    built,
    final_events,
    program_of,
    rebatched,
    smaller,
)
from tests.reference.dataflow import FOREVER, History, before, evaluate, history

__all__ = ["check", "check_nested", "shown", "shrunk"]

#: No case has more rounds of a loop than this.
LEVELS = 300

#: Nor takes more steps than this to come to rest.
STEPS = 200_000

NEVER = -(2**63)


class Drive:
    """A dataflow that is fed with a case, and what came out so far.

    Parameters
    ----------
    case
        What is done.
    right
        What the outputs are in the end.
    """

    def __init__(self, case: Case, right: Mapping[str, History]) -> None:
        self.case = case
        self.right = right
        self.outputs = built(case)
        self.kind = pa.int64() if case.time == "int" else TYPES["time"]
        self.flow = self.made()
        self.tables: dict[str, list[pa.Table]] = {name: [] for name in self.outputs}
        self.punctuations: dict[str, int] = dict.fromkeys(self.outputs, NEVER)
        self.given: dict[str, int] = dict.fromkeys((one.name for one in case.sources), NEVER)

    def made(self) -> Dataflow:
        return Dataflow(**self.outputs, speculation=self.case.speculation)

    # -- in

    def table(self, push: Push) -> pa.Table:
        """The batch of a push. Columns that say nothing are left out."""
        source = next(one for one in self.case.sources if one.name == push.source)
        columns = {
            name: pa.array([change.row[at] for change in push.changes], TYPES[kind])
            for at, (name, kind) in enumerate(source.columns.items())
        }
        columns["vs"] = self.times([change.vs for change in push.changes])
        if any(change.ve != FOREVER for change in push.changes) or len(push.changes) % 2:
            columns["ve"] = self.times([None if change.ve == FOREVER else change.ve for change in push.changes])
        if any(change.ve_new is not None for change in push.changes):
            columns["ve_new"] = self.times([change.ve_new for change in push.changes])
        return pa.table(columns)

    def times(self, ticks: Iterable[int | None]) -> pa.Array:
        return pa.array(list(ticks), pa.int64()).cast(self.kind)

    def time(self, ticks: int) -> Any:
        """As the caller writes it."""
        return ticks if self.case.time == "int" else dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=ticks)

    # -- the case

    def run(self) -> None:
        for action in self.case.actions:
            self.do(action)
            self.look()
        self.flow.finish()
        self.given = dict.fromkeys(self.given, FOREVER)
        self.rest()
        for name in self.outputs:
            self.take(name)
            self.compare(name)

    def do(self, action: Any) -> None:
        match action:
            case Push(source, changes, time):
                if changes:
                    punctuation = None if time is None else self.time(time)
                    self.flow.push(source, self.table(action), punctuation=punctuation)
                elif time is not None:
                    self.flow.advance(self.time(time), source)
                if time is not None:
                    self.given[source] = time
            case Advance(time, source):
                self.flow.advance(self.time(time), source)
                self.given.update(dict.fromkeys(self.given if source is None else [source], time))
            case Run(None):
                self.rest()
            case Run(steps):
                done = self.flow.run(steps)
                assert 0 <= done <= steps, f"run({steps}) gives {done}"
            case Take(name):
                self.take(name)
            case Wrong(how, source):
                with pytest.raises(DataError, match=f"input '{source}'"):
                    self.wrong(how, source)
            case Restore():
                kept = self.flow.snapshot()
                self.flow = self.made()
                self.flow.restore(kept)
                # A matcher may tidy up as it restores.
                matches = any(isinstance(step, Step) and step.method == "recognize" for step in self.case.steps)
                assert matches or self.flow.snapshot() == kept, "another snapshot after restore()"

    def wrong(self, how: str, name: str) -> None:
        """Push or say what cannot be, behind something that can."""
        source = next(one for one in self.case.sources if one.name == name)
        row = tuple(VALUES[kind][0] for kind in source.columns.values())
        far = max(self.given[name], 0) + 10**6
        if how in ("late", "back") and self.given[name] == NEVER:
            self.given[name] = -(10**6)
            self.flow.advance(self.time(-(10**6)), name)
        wrong = {
            "late": Change(row, self.given[name] - 1),
            "unknown": Change(row, far, FOREVER, far + 5),
            "another end": Change(row, far, far + 9, far + 5),
            "longer": Change(row, far, far + 3, far + 3),
            "empty": Change(row, far, far),
        }
        if how == "back":
            self.flow.advance(self.time(self.given[name] - 1), name)
        else:
            known = (
                []
                if source.insert_only and how in ("unknown", "another end", "longer")
                else [Change(row, far, far + 3)]
            )
            self.flow.push(name, self.table(Push(name, (*known, wrong[how]))), punctuation=self.time(far))

    def rest(self) -> None:
        """Run until there is nothing to do, and see that nothing is left."""
        self.flow.run_until_idle()
        self.look()
        if self.case.speculation != "probing":
            assert self.flow.run(1) == 0, "there is something to do after run_until_idle()"
        stats = self.flow.stats
        assert stats["idle"], f"not idle: {stats}"
        if self.case.speculation == "hwm":
            return
        flying = [name for name, loop in stats["loops"].items() if loop["in_flight"]]
        assert not flying, f"in flight while idle: {flying}"
        # Without anything under way, the outputs are as far as the inputs.
        for name, made in self.outputs.items():
            reached, given = self.punctuations[name], progress(made.node, self.given, whole=True)
            assert reached >= given, (
                f"output {name} is at {_shown(reached)}, and all inputs at {_shown(given)} or later"
            )

    # -- out

    def look(self) -> None:
        """Punctuations only go on, and never ahead of the inputs."""
        for name, made in self.outputs.items():
            found = self.flow.punctuation(name)
            reached = NEVER if found is None else self.ticks(found)
            last = self.punctuations[name]
            assert reached >= last, f"the punctuation of {name} goes back from {_shown(last)} to {_shown(reached)}"
            self.punctuations[name] = reached
            most = progress(made.node, self.given, whole=False)
            assert reached <= most, f"output {name} is at {_shown(reached)}, and an input only at {_shown(most)}"

    def ticks(self, time: Any) -> int:
        if isinstance(time, dt.datetime):
            return int((time - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1))
        assert isinstance(time, int), f"a punctuation is {time!r}"
        return time

    def take(self, name: str) -> None:
        """What an output holds now is right up to its punctuation, and stays so."""
        reached = self.punctuations[name]
        taken = self.flow.output(name)
        wanted = [*self.outputs[name].schema, "vs", "ve", "ve_new"]
        assert taken.column_names == wanted, f"output {name} has the columns {taken.column_names}, not {wanted}"
        types = [*self.outputs[name].schema.values(), *[self.kind] * 3]
        assert taken.schema.types == types, f"output {name} has the types {taken.schema.types}, not {types}"
        self.tables[name].append(taken)
        now = before(self.history(name), reached)
        right = before(self.right[name], reached)
        assert now == right, f"output {name} before its punctuation {_shown(reached)}:\n{_difference(now, right)}"

    def history(self, name: str) -> History:
        return history(pa.concat_tables(self.tables[name]), self.outputs[name].schema)

    def compare(self, name: str) -> None:
        reached = self.punctuations[name]
        assert reached == FOREVER, f"output {name} ends at {_shown(reached)}, after the final punctuation of all inputs"
        found = self.history(name)
        flying = [name for name, loop in self.flow.stats["loops"].items() if loop["in_flight"]]
        assert not flying, f"in flight in the end: {flying}"
        assert found == self.right[name], f"output {name}:\n{_difference(found, self.right[name])}"


def progress(node: plan.Node, given: Mapping[str, int], *, whole: bool) -> int:
    """How far a stream can be, if its inputs are so far: what lies before cannot change any more.

    ``whole``: with all inputs of a loop that it comes out of, also those that other relations of the loop alone depend on, and
    without what a hop adds.
    """
    around: set[tuple[int, int]] = set()

    def at(node: plan.Node) -> int:
        match node:
            case plan.Source():
                return given[node.name]
            case plan.Lifetime():
                reached = at(node.input)
                if whole or node.every is None or reached in (NEVER, FOREVER):
                    return reached
                return min(-(-reached // node.every) * node.every, FOREVER)
            case plan.Fixpoint() | plan.Recursion():
                places = range(len(node.loop.bodies)) if whole else [node.index]
                fresh = [place for place in places if (id(node.loop), place) not in around]
                around.update((id(node.loop), place) for place in fresh)
                return min((at(node.loop.bodies[place]) for place in fresh), default=FOREVER)
            case _:
                return min(at(below) for below in node.inputs)

    return at(node)


def _shown(time: int) -> str:
    return "the end" if time == FOREVER else "no time" if time == NEVER else str(time)


def _difference(found: History, right: History) -> str:
    rows = [row for row in {**found, **right} if found.get(row) != right.get(row)]
    return "\n".join(f"  {row}: {_spans(found.get(row))}, not {_spans(right.get(row))}" for row in rows[:5])


def _spans(spans: Any) -> str:
    return ", ".join(f"{one.copies}x[{one.vs}, {_shown(one.ve)})" for one in spans or ()) or "never"


# ---- Checks


def check(case: Case, seed: int = 0) -> int:
    """Raise an AssertionError unless the dataflow is right on a case, also in other batches; how many rows there are."""
    right = evaluate(built(case), final_events(case), levels=LEVELS)
    for way, one in enumerate((case, rebatched(case, seed))):
        with _tight() if way == seed % 2 else contextlib.nullcontext():
            Drive(one, right).run()
    return sum(map(len, right.values()))


def check_nested(case: Case, seed: int = 0) -> str:
    """Raise an AssertionError unless the dataflow agrees with the reference on loops that stand in each other.

    They have a limit in the end or none, and the dataflow says which. On the way there may be none even so: then it stops.
    """
    try:
        right = evaluate(built(case), final_events(case), levels=LEVELS)
    except LimitError:
        with pytest.raises(LimitError):
            Drive(at_once(case), {name: {} for name in case.outputs}).run()
        return "none"
    try:
        Drive(at_once(case), right).run()
        with contextlib.suppress(LimitError), _tight() if seed % 2 else contextlib.nullcontext():
            Drive(case, right).run()
            return "right"
    except (AssertionError, LimitError) as error:
        raise AssertionError(f"{error}\n{program_of(case)}") from error
    return "stopped"


@contextlib.contextmanager
def _tight() -> Iterator[None]:
    """State is looked through at every punctuation, and buffers are as small as they can be."""
    always = property(lambda self: -32, lambda self, value: None)
    with mock.patch.object(Index, "swept", always, create=True), mock.patch.object(join, "CAPACITY", 1):
        yield


# ---- Small failures


def _failure(case: Case, seed: int) -> str | None:
    """How a case fails: the kind of failure, so that another one does not take its place."""
    try:
        check(case, seed)
    except AssertionError as error:
        return "".join(word for word in str(error).split("\n")[0] if not word.isdigit())[:25]
    except Exception as error:
        return f"{type(error).__name__} {str(error)[:20]}"
    return None


def shrunk(case: Case, seed: int) -> Case:
    """A smaller case that fails in the same way."""
    wanted = _failure(case, seed)
    assert wanted is not None
    found = True
    while found:
        found = False
        for one in smaller(case):
            if _weight(one) < _weight(case) and _failure(one, seed) == wanted:
                case, found = one, True
                break
    return case


def _weight(case: Case) -> tuple[int, ...]:
    """The lower, the simpler."""
    changes = [change for action in case.actions if isinstance(action, Push) for change in action.changes]

    def size(steps: Iterable[Any]) -> int:
        return sum(
            1 + size(step.steps) if isinstance(step, Loop) else len(step.inputs) + len(step.options) for step in steps
        )

    bounds = sum(isinstance(step, Loop) and step.bound is not None for step in case.steps)
    return (
        size(case.steps) + len(case.outputs) + len(case.sources),
        len(changes) + len(case.actions),
        sum(isinstance(action, Push) and action.punctuation is not None for action in case.actions),
        sum(change.ve != FOREVER for change in changes),
        sum(isinstance(action, Run) and action.steps != 1 for action in case.actions),
        bounds + (case.speculation != "hybrid") + (case.time != "int") + sum(one.insert_only for one in case.sources),
    )


def shown(case: Case) -> str:
    """A case as a program and as an expression."""
    text = pprint.pformat(case, width=120, compact=True, sort_dicts=False).replace("datetime.datetime", "dt.datetime")
    return f"{program_of(case)}\n{text}"
