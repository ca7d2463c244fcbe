"""A running dataflow: changes are pushed in, and outputs, with what is certain of them, are taken out (FFP paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.array_types import I64
from stretto.column_types import time_hint
from stretto.dataflow.explain import drawn, explained
from stretto.dataflow.plan import Stream
from stretto.dataflow.run.events import NEW
from stretto.dataflow.run.graph import Graph, Input, step
from stretto.dataflow.run.history import settled
from stretto.dataflow.run.rows import EVER, NEVER, PAYLOAD, VE, VS, empty
from stretto.dataflow.run.values import Strings, arrays, words
from stretto.errors import DataError, EngineError, OptionError, SnapshotError, StrettoError, hinted
from stretto.events import as_table
from stretto.explaining import notebook
from stretto.frame import Section, reading
from stretto.matching.lifecycle import one_thread
from stretto.query.typing import kind_of
from stretto.times import FOREVER, check_clock

#: The first time that Python can show, in ticks of a unit: constants begin there.
_FIRST = {"s": -62_135_596_800, "ms": -62_135_596_800_000, "us": -62_135_596_800_000_000}

MODES = ("hybrid", "probing", "hwm")


@check_arguments
@one_thread(
    "dataflow",
    *("push", "push_known", "advance", "finish", "run", "run_until_idle", "output", "history", "snapshot", "restore"),
)
class Dataflow:
    """A plan that runs: inputs are accepted at any moment, also while its loops still turn.

    Parameters
    ----------
    speculation
        How loops find out how far they have got: ``hybrid``, ``probing`` or ``hwm`` (high-water mark); sections 3.5 and 5.3.
    outputs
        The streams that are wanted, by name.

    Raises
    ------
    OptionError
        A loop cannot be run, or may not come to an end; or two inputs have one name.

    Examples
    --------
    >>> from stretto.dataflow import Dataflow, stream
    >>> prices = stream("prices", {"symbol": str, "price": float})
    >>> flow = Dataflow(high=prices.where("price > 100"))
    >>> flow.push("prices", [{"symbol": "A", "price": 101.5, "vs": 3, "ve": 8}], punctuation=5)
    >>> flow.run_until_idle()
    >>> flow.output("high").to_pylist(), flow.punctuation("high")
    ([{'symbol': 'A', 'price': 101.5, 'vs': 3, 've': 8, 've_new': None}], 5)
    """

    def __init__(self, *, speculation: str = "hybrid", **outputs: Stream) -> None:
        if speculation not in MODES:
            raise OptionError(f"speculation must be one of {', '.join(MODES)}, not {speculation!r}")
        if not outputs:
            raise OptionError("a dataflow needs an output: Dataflow(result=stream)")
        self._outputs = dict(outputs)
        self._speculation = speculation
        self._strings = Strings()
        self._graph = Graph({name: output.node for name, output in outputs.items()}, speculation, self._strings)
        self._time: pa.DataType | None = None
        self._broken: str | None = None
        self._steps = 0
        self._events = 0

    def __repr__(self) -> str:
        inputs = ", ".join(self._graph.inputs)
        outputs = ", ".join(f"{name}: {stream!r}" for name, stream in self._outputs.items())
        return f"Dataflow({inputs} -> {outputs})"

    def _repr_html_(self) -> str:
        return notebook.html([("dataflow", repr(self)), *notebook.running(self.stats)], self.explain, self.draw)

    # -- what comes in ------------------------------------------------------------------------------------------------

    def push(self, name: str, batch: Any, *, punctuation: Any = None) -> None:
        """Take events of an input. They wait until the dataflow runs.

        Parameters
        ----------
        name
            The input.
        batch
            Anything tabular: the columns of the payload, ``vs``, and where they are wanted ``ve`` (NULL: without end) and ``ve_new``
            (not NULL: a retraction of the event with this payload, ``vs`` and ``ve``, which ends at ``ve_new`` now).
        punctuation
            As :meth:`advance`, behind the batch.

        Raises
        ------
        DataError
            An event is wrong: the message names input, row and reason. None of the batch is taken.

        Examples
        --------
        >>> from stretto.dataflow import Dataflow, datalog
        >>> flow = Dataflow(**datalog("reach(X, Y) :- link(X, Y).", {"link": {"src": str, "dst": str}}))
        >>> flow.push("link", [{"src": "a", "dst": "b", "vs": 1}])
        >>> flow.run_until_idle()
        >>> flow.output("reach").to_pylist()
        [{'x': 'a', 'y': 'b', 'vs': 1, 've': None, 've_new': None}]
        """
        self._check()
        own = self._input(name)
        before = self._time
        try:
            events, time = self._taken(own, as_table(batch), punctuation)
        except StrettoError:
            self._time = before  # a batch that is refused says nothing about the type of times
            raise
        self._events += len(events)
        own.push(events)
        if time is not None:
            own.punctuate(time)

    def push_known(self, name: str, batch: Any) -> list[int]:
        """Do what :meth:`push` does, but retractions of what is not there are left out: the numbers of their rows."""
        self._check()
        own = self._input(name)
        before = self._time
        try:
            events = self._read(own, as_table(batch))
        except StrettoError:
            self._time = before
            raise
        missing = own.events.take_known(events) if own.events is not None else []
        known = np.delete(events, missing, axis=0)
        self._events += len(known)
        own.push(known)
        return missing

    def _taken(self, own: Input, table: pa.Table, punctuation: Any) -> tuple[I64, int | None]:
        """A batch that is right, noted among the events that can be retracted, and the punctuation behind it."""
        events = self._read(own, table)
        time = None if punctuation is None else self._moment(punctuation)
        if time is not None:
            self._check_forward(own, time)
        if own.events is not None:
            failed = own.events.take(events)
            if failed >= 0:
                raise DataError(self._unknown(own, events[failed], failed))
        return events, time

    def advance(self, time: Any, name: str | None = None) -> None:
        """A punctuation of an input, or of all: no later event begins, and no later retraction ends, before ``time``.

        Raises
        ------
        DataError
            It goes back.
        """
        self._check()
        chosen = list(self._graph.inputs.values()) if name is None else [self._input(name)]
        moment = self._moment(time)
        for own in chosen:
            self._check_forward(own, moment)
        for own in chosen:
            own.punctuate(moment)

    def finish(self) -> None:
        """The final punctuation of all inputs: nothing comes any more.

        >>> from stretto.dataflow import Dataflow, datalog
        >>> flow = Dataflow(**datalog("reach(X, Y) :- link(X, Y).", {"link": {"src": str, "dst": str}}))
        >>> flow.push("link", [{"src": "a", "dst": "b", "vs": 1}])
        >>> flow.finish()
        >>> flow.run_until_idle()
        >>> flow.output("reach").num_rows
        1
        """
        self._check()
        for own in self._graph.inputs.values():
            own.punctuate(FOREVER)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, steps: int) -> int:
        """Work for at most so many steps, each of one operator on one batch; how many there were."""
        if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
            raise OptionError(f"steps must be an integer from 0 on, not {steps!r}")
        self._check()
        self._poll(True)
        done = 0
        while done < steps and self._step():
            done += 1
        return done

    def run_until_idle(self) -> None:
        """Work until nothing is left to do.

        Raises
        ------
        LimitError
            Something goes around a loop more often than its bound.
        DataError
            A value cannot be computed.
        """
        self._check()
        self._poll(False)
        while self._step():
            pass

    def _poll(self, polls: bool) -> None:
        for flying in self._graph.flying:
            flying.polls = polls

    def _step(self) -> bool:
        try:
            worked = step(self._graph)
        except StrettoError as error:
            self._broken = str(error)
            raise
        except BaseException:
            self._broken = "it was interrupted"
            raise
        self._steps += worked
        return worked

    # -- what comes out -----------------------------------------------------------------------------------------------

    def output(self, name: str) -> pa.Table:
        """The events of an output since the last call.

        Returns
        -------
        pyarrow.Table
            The columns of the payload, ``vs``, ``ve`` (NULL: without end), and ``ve_new``: NULL for an insertion, else the event with
            this payload, ``vs`` and ``ve`` ends there now (at ``vs``: it is gone).

        >>> from stretto.dataflow import Dataflow, datalog
        >>> flow = Dataflow(**datalog("reach(X, Y) :- link(X, Y).", {"link": {"src": str, "dst": str}}))
        >>> flow.push("link", [{"src": "a", "dst": "b", "vs": 1}])
        >>> flow.run_until_idle()
        >>> flow.output("reach").num_rows, flow.output("reach").num_rows
        (1, 0)
        """
        vertex = self._output(name)
        rows = vertex.drain()
        columns = arrays(rows, vertex.node.schema, PAYLOAD, self._strings)
        columns += [
            self._times(rows[:, VS], NEVER),
            self._times(rows[:, VE], FOREVER),
            self._times(rows[:, NEW], NEVER),
        ]
        return pa.table(columns, names=[*vertex.node.schema, "vs", "ve", "ve_new"])

    def history(self, name: str) -> pa.Table:
        """What an output comes to (its canonical history): insertions alone, with lifetimes as long as they can be.

        It takes the place of :meth:`output` where all is asked for at once, as it takes the events of the output as well.

        Returns
        -------
        pyarrow.Table
            The columns of the payload, ``vs``, and ``ve`` (NULL: without end). A row that occurs more than once at a time has
            lifetimes inside of each other.

        Raises
        ------
        DataError
            Something ends that was taken before.

        Examples
        --------
        >>> from stretto.dataflow import Dataflow, datalog
        >>> flow = Dataflow(**datalog("reach(X, Y) :- link(X, Y).", {"link": {"src": str, "dst": str}}))
        >>> flow.push("link", [{"src": "a", "dst": "b", "vs": 1, "ve": None, "ve_new": None}])
        >>> flow.run_until_idle()
        >>> flow.history("reach").to_pylist()
        [{'x': 'a', 'y': 'b', 'vs': 1, 've': None}]
        """
        vertex = self._output(name)
        try:
            rows = settled(vertex.take())
        except ValueError as error:
            raise DataError(
                f"output '{name}': the history has begun before what came since the last call: {error}"
            ) from error
        columns = arrays(rows, vertex.node.schema, PAYLOAD, self._strings)
        columns += [self._times(rows[:, VS], NEVER), self._times(rows[:, VE], FOREVER)]
        return pa.table(columns, names=[*vertex.node.schema, "vs", "ve"])

    def punctuation(self, name: str) -> Any:
        """The definite punctuation of an output: nothing before it changes any more. ``None``: there is none yet.

        It holds for what :meth:`output` gives from now on.

        >>> from stretto.dataflow import Dataflow, datalog
        >>> flow = Dataflow(**datalog("reach(X, Y) :- link(X, Y).", {"link": {"src": str, "dst": str}}))
        >>> flow.push("link", [{"src": "a", "dst": "b", "vs": 1}], punctuation=5)
        >>> flow.run_until_idle()
        >>> flow.punctuation("reach")
        5
        """
        time = self._output(name).promised
        return None if time == NEVER else self._shown(time)

    @property
    def ends(self) -> int | None:
        """The time, in ticks, from which on nothing that came so far matters, so that the dataflow might as well begin anew there.

        ``None``: nothing that came matters. The greatest integer: something is without end, or waits for a punctuation.
        """
        inputs = max((own.ends for own in self._graph.inputs.values()), default=NEVER)
        time = max(inputs, *(vertex.ends for vertex in self._graph.vertices))
        return None if time == NEVER else time

    @property
    def stats(self) -> dict[str, Any]:
        """Counts: ``events``, ``steps``; rows and bytes ``held`` by each operator; and of each loop, what it speculated."""
        graph = self._graph
        return {
            "events": self._events,
            "steps": self._steps,
            "held": {f"{vertex.number} {vertex.label}": vertex.operator.held for vertex in graph.vertices},
            "bytes": sum(vertex.operator.bytes for vertex in graph.vertices),
            "idle": not any(vertex.waits for vertex in graph.vertices) and not any(one.waits for one in graph.flying),
            "loops": {
                one.name: {"speculative": one.speculated, "definite": one.promoted, "in_flight": one.flying}
                for one in graph.flying
            },
        }

    def snapshot(self) -> bytes:
        """The state as bytes of a versioned format, with all that is under way; the dataflow goes on.

        >>> from stretto.dataflow import Dataflow, datalog
        >>> flow, other = (Dataflow(**datalog("reach(X, Y) :- link(X, Y).", {"link": {"src": str, "dst": str}})) for _ in range(2))
        >>> flow.push("link", [{"src": "a", "dst": "b", "vs": 1}])
        >>> flow.run_until_idle()
        >>> other.restore(flow.snapshot())
        >>> other.output("reach").num_rows
        1
        """
        if self._broken is not None:
            raise SnapshotError(f"the dataflow has stopped ({self._broken}): its state is not at a step")
        counts = [self._steps, self._events]
        whole = Section({"dataflow": self._graph.identity, "counts": counts, "strings": self._strings.texts})
        if self._time is not None:
            whole.put_schema("time", pa.schema([("time", self._time)]))
        for one, section in self._graph.sections(whole):
            one.save(section)
        return whole.to_bytes()

    @reading()
    def restore(self, snapshot: bytes) -> None:
        """Take the state of a snapshot of a dataflow with the same plan, in place of the own one.

        Raises
        ------
        SnapshotError
            The bytes are no snapshot, or one of another plan; the state stays as it was.
        """
        whole, own = Section.of_bytes(snapshot), self._graph.identity
        if "dataflow" not in whole.values:
            raise SnapshotError("the snapshot is of a matcher, not of a dataflow")
        if (its := whole.values["dataflow"]) != own:
            shown = ("\n            ".join(lines) for lines in (its, own))
            raise SnapshotError("the snapshot is of another plan:\n  snapshot: {}\n  here:     {}".format(*shown))
        fresh = Dataflow(speculation=self._speculation, **self._outputs)
        with reading():
            fresh._load(whole)
        self.__dict__.update(fresh.__dict__)

    def _load(self, whole: Section) -> None:
        _as_sections(whole)
        self._strings.load(whole.values["strings"])
        self._time = None if whole.values.get("time") is None else whole.schema("time").field(0).type
        self._steps, self._events = whole.counts("counts", 2)
        for one, section in self._graph.sections(whole):
            one.load(section)

    def explain(self) -> str:
        """The plan as text: inputs, loops and why they end, and for each output the operators that make it."""
        return explained(self._outputs)

    def draw(self) -> Any:
        """The plan as in figures 1 and 4 of the paper, for Graphviz; shows itself as SVG in a notebook."""
        return drawn(self._outputs)

    # -- reading events -----------------------------------------------------------------------------------------------

    def _read(self, own: Input, table: pa.Table) -> I64:
        """A batch as rows of events.

        Raises
        ------
        DataError
            A column is missing, has the wrong type or NULL, or a lifetime is none.
        """
        source = own.source
        known = [*source.schema, "vs", "ve", "ve_new"]
        if not table.num_columns and not table.num_rows:  # what an empty list comes to
            return empty(own.width)
        for name in [*source.schema, "vs"]:
            if name not in table.column_names:
                raise DataError(
                    hinted(f"input '{source.name}' needs the column '{name}'", name, table.column_names, kind="column")
                )
        for name in table.column_names:
            if name not in known:
                raise DataError(f"input '{source.name}' has no column '{name}'; its columns: {', '.join(known)}")
        rows = np.zeros((table.num_rows, own.width), np.int64)
        for at, (name, kind) in enumerate(source.schema.items()):
            column = _whole(table, name, source.name)
            if not _takes(kind, column.type):
                raise DataError(f"input '{source.name}': column '{name}' is {column.type}, not {kind}")
            try:
                rows[:, PAYLOAD + at] = words(column, kind, self._strings)
            except (DataError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise DataError(
                    f"input '{source.name}': column '{name}' is {column.type}, not {kind}: {error}"
                ) from error
        rows[:, VS] = self._ticks(_whole(table, "vs", source.name), source.name, "vs", NEVER)
        for name, word, missing in (("ve", VE, FOREVER), ("ve_new", NEW, NEVER)):
            if name in table.column_names:
                column = table.column(name).combine_chunks()
                rows[:, word] = self._ticks(column, source.name, name, missing)
            else:
                rows[:, word] = missing
        self._check_lifetimes(own, rows)
        return rows

    def _check_lifetimes(self, own: Input, rows: I64) -> None:
        retracts = rows[:, NEW] != NEVER
        begins = rows[:, VS]
        if not retracts.any() and (begins < rows[:, VE]).all() and begins.min(initial=FOREVER) >= own.definite:
            return
        name = own.source.name
        wrong = (
            (rows[:, VE] < rows[:, VS], "ends (ve) before it begins (vs)"),
            ((rows[:, VE] == rows[:, VS]) & ~retracts, "is empty: ve = vs"),
            (retracts & (rows[:, NEW] < rows[:, VS]), "is retracted to before its start; ve_new = vs removes it"),
            (retracts & (rows[:, NEW] >= rows[:, VE]), "is retracted to no earlier end: ve_new must be less than ve"),
            (
                np.where(retracts, rows[:, NEW], rows[:, VS]) < own.definite,
                f"comes too late: {self._reached(own)}",
            ),
        )
        for where, why in wrong:
            if where.any():
                at = int(np.argmax(where))
                raise DataError(f"input '{name}', row {at}: the event {self._event(own, rows[at])} {why}")
        if own.events is None and retracts.any():
            at = int(np.argmax(retracts))
            raise DataError(f"input '{name}', row {at}: a retraction, and the input was declared insert_only")

    def _check_forward(self, own: Input, time: int) -> None:
        if time < own.definite:
            raise DataError(
                f"input '{own.source.name}': the punctuation {self._shown(time)} goes back: {self._reached(own)}"
            )

    def _reached(self, own: Input) -> str:
        """How far an input is, for messages."""
        return "the input has ended" if own.definite == FOREVER else f"the punctuation is {self._shown(own.definite)}"

    def _unknown(self, own: Input, event: I64, row: int) -> str:
        """Why a retraction cannot be carried out."""
        assert own.events is not None
        held = own.events.index.held
        alike = held[(held[:, PAYLOAD:] == event[PAYLOAD:]).all(axis=1) & (held[:, 2] > 0)]
        where = f"input '{own.source.name}', row {row}: a retraction of {self._event(own, event)}, which is not there"
        if not len(alike):
            return f"{where}: no such payload is alive"
        if (alike[:, [VS, VE]] == event[[VS, VE]]).all(axis=1).any():
            return f"{where} any more: an earlier row of the batch retracts it"
        shown = "; ".join(f"[{self._shown(int(one[VS]))}, {self._end(int(one[VE]))})" for one in alike[:3])
        return f"{where}: this payload lives in {shown}"

    def _event(self, own: Input, event: I64) -> str:
        columns = arrays(event.reshape(1, -1), own.source.schema, PAYLOAD, self._strings)
        payload = ", ".join(
            f"{name}={_text(column[0])}" for name, column in zip(own.source.schema, columns, strict=True)
        )
        return f"({payload}) [{self._shown(int(event[VS]))}, {self._end(int(event[VE]))})"

    # -- times --------------------------------------------------------------------------------------------------------

    def _ticks(self, column: pa.Array, source: str, name: str, missing: int) -> I64:
        """A column of times as integers; all inputs have one type."""
        kind = column.type
        if pa.types.is_null(kind):
            return np.full(len(column), missing, np.int64)
        if pa.types.is_integer(kind):
            kind = pa.int64()
        elif not pa.types.is_timestamp(kind):
            hint = time_hint(name, column.type)
            raise DataError(
                f"input '{source}': column '{name}' is {column.type}; times are integers or timestamps{hint}"
            )
        if self._time is None:
            self._time = kind
        if kind != self._time and pa.types.is_timestamp(kind) and kind.tz == getattr(self._time, "tz", kind):
            try:
                column, kind = column.cast(self._time), self._time
            except pa.ArrowInvalid as error:
                raise DataError(f"input '{source}': column '{name}' does not fit {self._time}: {error}") from error
        if kind != self._time:
            raise DataError(f"input '{source}': column '{name}' is {kind}, and times are {self._time} in this dataflow")
        column = column if column.type == pa.int64() else column.cast(pa.int64())
        found: I64 = (column.fill_null(missing) if column.null_count else column).to_numpy(zero_copy_only=False)
        if name == "vs" and ((found == NEVER) | (found == FOREVER)).any():
            raise DataError(f"input '{source}': column 'vs' has the least or the greatest integer, which mean no time")
        return found

    def _moment(self, time: Any) -> int:
        """A punctuation's time as an integer."""
        if isinstance(time, bool):
            raise OptionError(f"a punctuation is a time, not {time!r}")
        if isinstance(time, int | np.integer):
            if self._time is not None and self._time != pa.int64() and time != FOREVER:
                raise OptionError(f"the punctuation is an integer, and times are {self._time} in this dataflow")
            if not NEVER < time <= FOREVER:
                raise OptionError(f"the punctuation {time} does not fit into 64 bits")
            return int(time)
        if self._time is None or self._time == pa.int64():
            try:
                scalar = pa.scalar(time)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                scalar = None
            if scalar is None or not pa.types.is_timestamp(scalar.type):
                raise OptionError(f"a punctuation is an integer or a time, not {time!r}")
            if self._time is not None:
                raise OptionError(f"the punctuation is {time!r}, and times are integers in this dataflow")
            self._time = scalar.type
        try:
            check_clock(time, self._time)
        except ValueError as error:
            raise OptionError(f"the punctuation {time!r} is no {self._time}; {error}") from error
        try:
            return int(pa.scalar(time, self._time).cast(pa.int64()).as_py())
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise OptionError(f"the punctuation {time!r} is no {self._time}") from error

    def _shown(self, time: int) -> Any:
        """A time as its users have it."""
        if self._time is None or self._time == pa.int64() or time in (NEVER, FOREVER):
            return time
        return pa.scalar(time, pa.int64()).cast(self._time).as_py()

    def _end(self, time: int) -> str:
        """The end of a lifetime, for messages."""
        return "∞" if time == FOREVER else str(self._shown(time))

    def _times(self, ticks: I64, missing: int) -> pa.Array:
        mask = np.ascontiguousarray(ticks == missing)
        if self._time is not None and pa.types.is_timestamp(self._time):
            ticks = np.where(ticks == EVER, _FIRST.get(self._time.unit, EVER), ticks)
        made = pa.array(np.ascontiguousarray(ticks), mask=mask)
        return made if self._time is None else made.cast(self._time)

    # -- names --------------------------------------------------------------------------------------------------------

    def _input(self, name: str) -> Input:
        if name not in self._graph.inputs:
            raise OptionError(hinted(f"the dataflow has no input {name!r}", name, self._graph.inputs, kind="input"))
        return self._graph.inputs[name]

    def _output(self, name: str) -> Any:
        if name not in self._graph.outputs:
            raise OptionError(hinted(f"the dataflow has no output {name!r}", name, self._graph.outputs, kind="output"))
        return self._graph.outputs[name]

    def _check(self) -> None:
        if self._broken is not None:
            raise EngineError(f"the dataflow has stopped ({self._broken}); restore a snapshot, or make a new one")


def _as_sections(whole: Section) -> None:
    """Lists of earlier snapshots as sections."""
    values, arrays = whole.values, whole.arrays
    for at, (name, state) in enumerate(values.pop("inputs", {}).items()):
        values[f"input{at}"] = state
        if f"input.{name}" in arrays:
            arrays[f"input{at}.events"] = arrays.pop(f"input.{name}")
    values |= {f"{at}": state for at, state in enumerate(values.pop("vertices", ()))}
    values |= {f"loop{at}": state for at, state in enumerate(values.pop("loops", ()))}


def _whole(table: pa.Table, name: str, source: str) -> pa.Array:
    """A column in one piece, without NULL."""
    column = table.column(name)
    if column.null_count:
        at = column.is_null().index(True).as_py()
        why = "every event has a start" if name == "vs" else "a payload has a value in every column"
        raise DataError(f"input '{source}', row {at}: '{name}' is NULL; {why}")
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else found.chunk(0)


#: The kinds of columns that a column of a payload takes; a value that does not fit is refused by itself.
_TAKES = {"int": ("int", "float", "decimal"), "float": ("int", "float", "decimal")}


def _takes(kind: pa.DataType, given: pa.DataType) -> bool:
    """Whether a column of one type can be read as another one. A column without rows has no type of its own."""
    family = kind_of(kind)
    return pa.types.is_null(given) or kind_of(given) in _TAKES.get(family, (family,))


def _text(value: pa.Scalar) -> str:
    found = value.as_py()
    return repr(found) if isinstance(found, str | float) else str(found)
