"""An automaton, or a query that runs as one, over a stream that comes in any order: reorder? → run → reorder? → layout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.column_types import field_types, with_fields
from stretto.engines.afa.between import Changes
from stretto.engines.afa.compiled import Roles, Texts
from stretto.engines.afa.program import AfaProgram
from stretto.engines.afa.runner import AfaRunner
from stretto.errors import DataError, LimitError, OptionError, SnapshotError, StrettoError, hinted
from stretto.events import Schema, as_table, conform, require
from stretto.explaining.afa import draw_afa, explain_afa, explain_ahead
from stretto.explaining.answer import Answer
from stretto.frame import Section, reading
from stretto.languages.afa import Scope, read_fence
from stretto.languages.afa.builder import make_arc
from stretto.matching.compiled import Query, read
from stretto.matching.executors.arc_stream import ArcChanges
from stretto.matching.executors.arc_updates import Arcs
from stretto.matching.executors.base import Executor
from stretto.matching.executors.speculative_aggregates import Lowering
from stretto.matching.inspection.partial_matches import answered, late_words, refused, unsorted
from stretto.matching.inspection.partial_matches_afa import of_automaton
from stretto.matching.inspection.state_tables import check_columns, check_most, counted, plain, summary
from stretto.matching.lifecycle import Life
from stretto.matching.meaning import check_same
from stretto.matching.output.changelog import MatchLayout, OutputLayout, SignedLayout, free_name
from stretto.matching.output.match_table import CHUNK
from stretto.matching.reorder import Cleanse, Released, check_span
from stretto.matching.reorder.operator import together
from stretto.matching.reorder.spans import check_late
from stretto.query.afa import Afa, Arc, shown
from stretto.query.predicate import Predicate, attributes
from stretto.times import FOREVER, as_times, check_clock, tick_of, ticks, width

#: Why nothing can be asked.
NO_SCHEMA = "the matcher has no schema yet: pass schema=…, or push events first"


#: Which columns play a role, and how the run goes about its work, where nothing is said.
ROLES: dict[str, Any] = {one.name: None if one.default is MISSING else one.default for one in fields(Roles)}


class RetractingExecutor(Executor):
    """What runs an AFA, or a SASE+ query that speculates; the parameters are those of :class:`~stretto.Matcher`.

    Parameters
    ----------
    what
        The automaton, or the query.
    roles
        Those of :class:`~stretto.engines.afa.compiled.Roles`.
    """

    def __init__(
        self,
        what: Afa | Lowering,
        schema: Any = None,
        *,
        late: str = "error",
        disorder: Any = None,
        speculation: Any = None,
        hold: str | None = None,
        budget: int | float | str | None = None,
        capacity: int = 1 << 10,
        **roles: Any,
    ) -> None:
        check_late(late)
        self.options: dict[str, Any] = ROLES | roles | {"late": late}
        self.lowering = what if isinstance(what, Lowering) else None
        self._capacity = capacity
        self._budget = Budget(budget)
        self.life = Life()
        self._afa: Afa | None = None
        self._layout: SignedLayout
        self.run: AfaRunner
        self._bound = self._guessed = False
        self._kinds: dict[str, pa.DataType] = {}
        self._front: Cleanse | None = None  # in front of the run
        self._back: Cleanse | None = None  # behind it
        self._nothing: tuple[pa.DataType, pa.Table] | None = None
        self._reorders(disorder, speculation, hold)
        if isinstance(what, Afa):
            _check(what, self.options)
            self._afa, self._layout = what, OutputLayout(what, positions=self.options["provenance"])
            self._start(what.events.get(self.options["time"]))
            if schema is not None:
                self._bind(schema if isinstance(schema, pa.Schema) else pa.schema(list(dict(schema).items())))
        elif what.given is not None:
            self._lower(what.given)

    def _reorders(self, disorder: Any, speculation: Any, hold: str | None) -> None:
        """What waits for certainty, and how far ahead of it something may go."""
        if hold is not None and speculation is None and disorder is None:
            raise OptionError(f"hold={hold!r} needs speculation=…, how far beyond the punctuation")
        if hold not in (None, "events", "results"):
            raise OptionError(f"hold={hold!r}: expected 'events' or 'results'")
        if hold == "results" and self.lowering is not None:
            raise OptionError("hold='results' is for AFAs: of a query the events wait")
        self._waits = disorder is not None or speculation is not None
        self._speculation = 0 if speculation is None else speculation
        if disorder is not None:
            check_span(disorder, "disorder")
        self._disorder = None if disorder == math.inf else disorder
        self._behind = hold == "results"
        ahead = check_span(self._speculation, "speculation")
        if self.lowering is not None and ahead == math.inf and self._disorder is None:
            self._waits = False
        if not self._waits:
            return
        if self.lowering is not None and self.options["sign"] is not None:
            raise OptionError(
                "sign= takes events of a query that do not wait: speculation=math.inf, and no disorder=, so that advance() says what "
                "is certain"
            )
        if self.options["ordered"] and (self._behind or ahead):
            raise OptionError("ordered=True needs events in order: speculation=0 before the operator")
        if self.options["timer"] is not None and not self._behind:
            raise OptionError(
                "timer= marks the ends of windows in partitions that have events, and events that wait are not there yet: use "
                "hold='results'"
            )

    # -- types --------------------------------------------------------------------------------------------------------

    def _lower(self, schema: Schema) -> None:
        """Make the automaton of the query."""
        assert self.lowering is not None
        self._afa, self._layout, self.options["time"] = self.lowering.lowered(schema)
        self._start(self.afa.events.get(self.options["time"]))

    def _start(self, kind: pa.DataType | None) -> None:
        self.run = self._program().start(late=self.options["late"], capacity=self._capacity)
        self.run.budget = self._budget
        self._bound = self._guessed = False
        options, afa = self.options, self.afa
        self._front = self._back = None
        if self._waits and (not self._behind or self._disorder is not None):
            self._front = Cleanse(
                time=options["time"],
                sequence=options["sequence"] or options["numbered"],
                sign=options["sign"],
                partition_by=afa.partition_by,
                payload=list(afa.events),
                speculation=math.inf if self._behind else self._speculation,
                disorder=self._disorder,
                late=options["late"],
            )
        if self._waits and self._behind:
            keys = (free_name(name) for name in afa.partition_by)
            told = ["start", "end", "end_time", "until", *keys, "register"]
            self._back = Cleanse(time="end_time", sign="sign", payload=told, speculation=self._speculation)
        if kind is not None:
            self._set_time(kind)

    def _program(self) -> AfaProgram:
        own = {name: value for name, value in self.options.items() if name != "late"}
        return AfaProgram(self.afa, Roles(**own), texts=Texts(self._read_arc, self._condition))

    def _running(self) -> AfaRunner:
        if self._afa is None:
            raise OptionError(NO_SCHEMA)
        return self.run

    @property
    def _time_kind(self) -> pa.DataType:
        return self.run.time_kind or pa.int64()

    def _tick(self, time: Any) -> int:
        """A time in ticks. Before the first batch its own type tells the unit, which that batch may still change."""
        run, name = self.run, self.options["time"]
        if run.time_kind is not None:
            return tick_of(time, run.time_kind, name)
        try:
            kind = pa.int64() if isinstance(time, int | float) else pa.scalar(time).type
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise OptionError(f"{time!r} is no time of '{name}'") from error
        found = tick_of(time, kind, name)
        run.time_kind, self._guessed = kind, True
        return found

    def _ticks(self, times: list[Any]) -> I64:
        """Times in ticks; one call for all where they fit."""
        self._tick(times[0])
        assert self.run.time_kind is not None
        try:
            for time in times:
                check_clock(time, self.run.time_kind)
            return ticks(pa.array(times, self.run.time_kind), self.options["time"], 0)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return np.array([self._tick(time) for time in times], np.int64)  # which says what is wrong

    def _bind(self, schema: pa.Schema) -> None:
        """Take the types of the columns that the first batch tells."""
        if self._bound:
            return
        afa, given = self.afa, dict(zip(schema.names, schema.types, strict=True))
        given |= field_types(given, self.needed())
        kinds = {}
        for name in self.needed():
            if name not in afa.events:
                require(given, name, next(role for role, column in self.options.items() if column == name))
            kinds[name] = afa.events.get(name) or given[name]
        if self.options["late"] == "side":  # late events are shown whole
            kinds |= {name: kind for name, kind in given.items() if name not in kinds and not pa.types.is_null(kind)}
        until = self.options["until"]
        if until is not None and pa.types.is_null(kinds[until]):  # all live for ever, so far
            kinds[until] = kinds[self.options["time"]]
        self._set_time(kinds[self.options["time"]])
        self._kinds, self._bound = kinds, True
        if self._front is not None:
            self._front.bind(pa.schema(list(self._kinds.items())))
        if self._back is not None:
            self._back.bind(self._layout.schema(self._time_kind))

    def needed(self) -> list[str]:
        """The columns that the matcher reads."""
        named = (self.options[name] for name in ("time", "sequence", "until", "sign", "numbered"))
        return list(dict.fromkeys([*self.afa.events, *(name for name in named if name is not None)]))

    def _set_time(self, kind: pa.DataType) -> None:
        window = width(self.afa.window, kind, self.options["time"])
        before = self.run.time_kind
        if self._guessed and before is not None and before != kind:
            try:
                check_clock(as_times(np.zeros(1, np.int64), before)[0], kind)
            except ValueError:
                raise DataError(
                    f"'{self.options['time']}' is {kind}, and a time that was given before its first event is {before}: give both "
                    "with a time zone, or both without"
                ) from None
            self.run.punctuations.rescale(kind)
        self.run.time_kind = kind
        self.run.window = window

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def query(self) -> Query:
        if self.lowering is None:
            raise OptionError("the matcher runs an AFA, which is no query: see matcher.afa")
        return self.lowering.query

    @property
    def afa(self) -> Afa:
        if self._afa is None:
            raise OptionError(NO_SCHEMA)
        return self._afa

    def explain(self) -> str:
        return explain_afa(self.afa) if self.lowering is None else explain_ahead(self.query.text, self.afa)

    def draw(self) -> Any:
        return draw_afa(self.afa)

    def __str__(self) -> str:
        held = "" if self._afa is None else f", {self.run.stats['partial_matches']} partial matches"
        return f"{self.position} rows read{held}"

    @property
    def position(self) -> int:
        if self._afa is None:
            return 0
        return self.run.rows if self._front is None else self._front.position

    @property
    def late(self) -> int:
        if self._afa is None:
            return 0
        return self.run.late + (0 if self._front is None else self._front.late)

    def late_events(self) -> pa.Table:
        found, self._running().side = self._set_aside(), []
        if self._front is not None:
            self._front.late_events()
        return found

    def _set_aside(self) -> pa.Table:
        """What :meth:`late_events` would hand over now; it stays."""
        side = [pa.Table.from_batches([batch]) for batch in self._running().side]
        if self._front is not None and self._front.schema is not None:
            side.insert(0, self._front.set_aside)
        return together(side, pa.schema(list(self._kinds.items())))

    @property
    def punctuation(self) -> Any:
        found = None if self._afa is None else self.run.punctuation
        return None if found is None else self.run.shown_time(found)

    @property
    def ends(self) -> int | None:
        if self.life.finished or self._afa is None:
            return None
        return FOREVER if self._waiting else self.run.expires

    @property
    def expires(self) -> int | None:
        ends = self.ends
        return None if ends is None or ends == FOREVER else ends - 1

    @property
    def _waiting(self) -> int:
        """How many events and outputs wait."""
        return sum(one.buffered for one in (self._front, self._back) if one is not None)

    @property
    def stats(self) -> dict[str, int]:
        found = self._layout.stats(dict(self._running().stats))
        if not self._waits:
            return found
        found["waiting"] = self._waiting
        if self._front is not None:
            found |= {"rows": self._front.position, "late": self.late}
        found["bytes"] += sum(one.stats["bytes"] for one in (self._front, self._back) if one is not None)
        return found

    def held(self, most: int, by: Sequence[str]) -> pa.Table:
        check_most("held", most)
        run = self._running()
        state_name = "state_" if "state" in self.afa.partition_by else "state"
        check_columns("held", by, [state_name, *self.afa.partition_by])
        found = run.partial_matches()
        times = as_times(found.begin, self._time_kind)
        if not by:
            return summary(self.stats, run.stats["events"], self.punctuation, pa.chunked_array([times]))
        names = [*run.tables.numbers]
        keys = None if run.keys is None else run.partition_values(found.part)
        columns = [
            pa.array(names).take(pa.array(found.state)) if name == state_name or keys is None else keys.column(name)
            for name in by
        ]
        table = pa.table([*columns, times], [*by, "\0begin"])
        return counted(plain(table), by, "partial_matches", {"\0begin": "oldest"}).slice(0, most)

    def why_not(self, key: Any, most: int) -> Answer:
        if self.lowering is not None:
            raise OptionError(
                refused("and one that speculates follows none apart: give timeouts=True in its place", "query, events")
            )
        check_most("why_not", most)
        afa, run = self.afa, self._running()
        count, misses = of_automaton(afa, run, key, most)
        late = late_words(self.late, self._disorder, self.options["time"], self._set_aside())
        text = "\n".join(shown(arc, afa.register) for arc in afa.arcs)
        return answered(text, self.position, "event", count, misses, [*unsorted(self._waiting), *late])

    def changing(self, what: str) -> Arcs:
        if self.lowering is not None:
            self._refuse_arcs(what)
        return self._arcs

    @property
    def _arcs(self) -> Arcs:
        """The arcs of the run, which may change."""
        return Arcs(self.afa, self.run, self._tick, self.life)

    # -- events -------------------------------------------------------------------------------------------------------

    def push(self, events: Any, *, arcs: Any = None, punctuations: Any = ()) -> pa.Table:
        self._ready()
        pairs = list(punctuations)
        try:
            table = self._conformed(events, alone=arcs is not None or bool(pairs))
            if table is None:
                return self.given()
            if pairs and self.options["timer"] is not None:
                raise OptionError(
                    "with timer=, punctuations are events of their own: give them by advance(), between pushes"
                )
            if self._front is not None:
                self._push_behind(self._front, table, arcs, pairs, as_table(events))
            else:
                stream = None if arcs is None else self._arcs.changes(arcs, table.num_rows)
                changes = Changes.none() if stream is None else stream.changes()
                if pairs:
                    changes = self._with_punctuations(changes, pairs, table.num_rows)
                before = self.position
                try:
                    self._carry_out(table, changes, stream)
                except (DataError, LimitError) as error:
                    error.args = (f"{error}\n{_taken(before, self.position, table.num_rows)}",)
                    raise
        except BaseException:
            if self._afa is not None:
                self._layout.cut(self.position)
            raise
        return self.given()

    def iter_push(self, events: Any) -> Iterator[pa.Table]:
        table = as_table(events)
        return (self.push(table.slice(begin, CHUNK)) for begin in range(0, max(1, table.num_rows), CHUNK))

    def take(self, events: pa.Table, rows: I64 | None) -> pa.Table:
        """The output of rows with these numbers, in order (of a whole table)."""
        table = self._conformed(events, alone=False)
        if table is not None:
            self._carry_out(table, Changes.none(), None, rows)
        return self.given()

    def advance(self, time: Any, *, where: str | None = None) -> pa.Table:
        self._running()
        self._ready()
        front = self._front
        if front is not None and where is not None:
            raise OptionError(
                "a punctuation with a condition needs events that do not wait: hold='results', and no disorder="
            )
        if front is not None and front.schema is not None:
            self._let(front.pass_on(front.tick(time)), Changes.none(), None)
            return self.given()
        run, tick = self.run, self._tick(time)
        if where is not None:
            run.punctuations.advance_where(tick, run.code.plain(self._condition(where)), where)
            return self.given()
        run.punctuations.refuse_back(np.array([tick]))
        if self.options["timer"] is not None:
            run.punctuations.mark(tick, self.options["timer"])
        run.punctuations.punctuate(tick)
        found = self.given()
        if front is not None:
            front.advance(time)
        return found

    def finish(self) -> pa.Table:
        if self._afa is None:
            return pa.table({})
        if self._front is not None and not self.life.finished:
            self.life.refuse_inside()
            self._let(self._front.end(), Changes.none(), None)
        self.life.finished = True
        found = self.given()
        if self._back is None or not self._bound:
            return found
        return pa.concat_tables([found, self._back.finish()])

    def given(self) -> pa.Table:
        """The output so far that may be seen."""
        if self._afa is None:
            return pa.table({})
        run, back = self.run, self._back
        found = self._layout.table(run.take(), self._time_kind) if run.has_output else self._empty()
        self._layout.drop(run, self._front)
        if back is None or not self._bound:
            return found
        seen = [back.push(found)] if found.num_rows else []
        time, before = run.punctuation, back.last_punctuation
        if time is not None and (before is None or time > before):
            seen.append(back.pass_on(time).table)
        return pa.concat_tables(seen) if seen else self._empty()

    def _ready(self) -> None:
        self.life.refuse_finished()
        self.life.refuse_inside()

    def _conformed(self, events: Any, alone: bool) -> pa.Table | None:
        """Events with the columns that the run reads; ``None``: there is nothing, nor what could stand ``alone``."""
        table = as_table(events)
        if not table.num_columns and alone and self._bound:
            return pa.schema(list(self._kinds.items())).empty_table()
        if not table.num_columns:
            if alone:
                raise OptionError(
                    "the columns are not known before the first events, or schema=…: give punctuations by advance(), and arcs by "
                    "add_arc()"
                )
            return None
        if self.lowering is not None:
            if self._afa is None:
                self._lower(self.lowering.schema_of(table))
            assert isinstance(self._layout, MatchLayout)
            self._layout.keep(self.lowering.kept(table, self._layout), self.position)
        timer = self.options["timer"]
        if timer is not None and timer not in table.column_names:
            table = table.append_column(timer, pa.nulls(table.num_rows, pa.bool_()))
        self._bind(table.schema)
        names = tuple(self._kinds)
        table = with_fields(table, names)
        there = table.select([name for name in table.column_names if name in self._kinds])
        for name in set(names).difference(there.column_names, self.needed()):  # late events alone would show it
            there = there.append_column(name, pa.nulls(table.num_rows, self._kinds[name]))
        return conform(there, names, self._kinds, "the matcher expects")

    def _push_behind(
        self, front: Cleanse, table: pa.Table, arcs: Any, pairs: list[tuple[int, Any]], whole: pa.Table
    ) -> None:
        """Rows go through what reorders them; ``whole``: with all columns."""
        if arcs is not None and self._disorder is not None:
            raise OptionError("with disorder= arcs change between pushes: add_arc(), retire_arc()")
        stream = None if arcs is None else self._arcs.changes(arcs, table.num_rows)
        try:
            released = front.let(table, pairs, places=stream is not None, whole=whole if whole.num_columns else None)
        except StrettoError:
            if stream is not None:
                stream.carried_out(0)
            raise
        changes = Changes.none()
        if stream is not None:
            times = np.array([front.tick(time) for _, time in pairs], np.int64)
            at = np.array([row for row, _ in pairs], np.int64)
            changes = stream.changes().moved(Changes.punctuations(at, times), released.places)
        self._let(released, changes, stream)

    def _let(self, released: Released, changes: Changes, stream: ArcChanges | None) -> None:
        """Events that came through go to the run, and the punctuation follows them."""
        front, run = self._front, self.run
        assert front is not None
        refused: list[StrettoError] = []
        if released.rows.size or changes.at.size:
            with self.life.reading():
                self._carry_out(released.table, changes, stream, released.rows, refused)
        run.rows = front.position
        time = front.last_punctuation
        if time is not None:
            run.punctuations.punctuate(int(time))
        if refused:
            raise _left_out(refused)

    def _carry_out(
        self,
        table: pa.Table,
        changes: Changes,
        stream: ArcChanges | None,
        rows: I64 | None = None,
        refused: list[StrettoError] | None = None,
    ) -> None:
        """Rows with changes between them; ``rows`` and ``refused`` as for the run."""
        try:
            self.run.carry_out(table, changes, _refuse if stream is None else stream.carry_out, rows, refused)
        finally:
            if stream is not None:
                stream.carried_out(changes.arcs_among(self.run.carried))

    def _with_punctuations(self, changes: Changes, pairs: list[tuple[int, Any]], rows: int) -> Changes:
        """Changes of arcs with punctuations among them."""
        at = np.array([row for row, _ in pairs], np.int64)
        # Kernels compile once more for what is read-only.
        times = np.require(self._ticks([time for _, time in pairs]), requirements=("C", "W"))
        wrong = (at < 0) | (at > rows) | (np.diff(at, prepend=0) < 0)
        if wrong.any():
            here = int(wrong.argmax())
            raise DataError(
                f"punctuation {here} stands at row {at[here]}: rows go up, from 0 to the {rows} of the batch"
            )
        self.run.punctuations.refuse_back(times)
        return changes.and_then(Changes.punctuations(at, times))

    def _condition(self, text: str) -> Predicate:
        """A condition on the event alone."""
        afa = self.afa
        fence = read_fence(text, Scope(afa.events, afa.register, afa.clock))
        asked = [name for name in attributes(fence) if name.startswith("r.")]
        if asked:
            raise OptionError(f"a punctuation is about events: leave out {asked[0]}")
        return fence

    def _empty(self) -> pa.Table:
        kind = self._time_kind
        if self._nothing is None or self._nothing[0] != kind:
            self._nothing = kind, self._layout.schema(kind).empty_table()
        return self._nothing[1]

    # -- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        run = self._running()
        self.life.refuse_snapshot()
        section = Section()
        run.save(section)
        kinds = list(self._kinds.items()) if self._bound else [("time", self._time_kind)]
        section.put_schema("schema", pa.schema(kinds))
        section.values |= {
            "afa": self._identity(),
            "bound": self._bound,
            "guessed": self._guessed,
            "finished": self.life.finished,
        }
        for name, one in self._reordering().items():
            one.save(section.sub(name))
        if self.lowering is None:
            return section.to_bytes()
        assert isinstance(self._layout, MatchLayout)
        whole = Section({"speculation": self.lowering.identity(self._layout)})
        self._layout.trim(run, self._front)
        whole.arrays["operator"] = np.frombuffer(section.to_bytes(), np.uint8)
        self._layout.history.save(whole)
        return whole.to_bytes()

    @reading()
    def restore(self, snapshot: bytes) -> None:
        section = Section.of_bytes(snapshot)
        if self.lowering is None:
            self._load(section)
            return
        if "speculation" not in section.values:
            raise SnapshotError("the snapshot is not of a query on a disordered stream")
        self._running()
        assert isinstance(self._layout, MatchLayout)
        given = section.values["speculation"]
        check_same(given.get("query"), self.lowering.query.parsed, partial(read, language=self.lowering.query.language))
        for name, value in self.lowering.identity(self._layout).items():
            if name != "query" and given.get(name) != value:
                raise SnapshotError(
                    f"the snapshot is of other options: {name} is {given.get(name)} there, {value} here"
                )
        self._load(Section.of_bytes(section.arrays["operator"].tobytes()))
        self._layout = MatchLayout(self._layout.layout, self._layout.marks)
        self._layout.history.load(section, self.run.rows, self._layout.layout.kinds)

    def _load(self, section: Section) -> None:
        header = section.values
        if "afa" not in header:
            raise SnapshotError("the snapshot is of a query, not of an AFA")
        own, there = self._identity(), dict(header["afa"])
        own |= own.pop("options")
        there |= there.pop("options", {})
        for name, value in own.items():
            if there.get(name) != value:
                raise SnapshotError(
                    f"the snapshot is of another automaton or other options: {_WORDS.get(name, name)} is {there.get(name)} there, "
                    f"{value} here"
                )
        with reading():
            kinds = section.schema("schema")
            self._start(None)
            if header["bound"]:
                self._bind(kinds)
            self.run.load(section)
            if not header["bound"] and header["guessed"]:
                self.run.time_kind = kinds.field(0).type
                self._guessed = True
            self.life = Life()
            self.life.finished = header["finished"]
            for name, one in self._reordering().items():
                one.load(section.sub(name))

    def _reordering(self) -> dict[str, Cleanse]:
        both = {"front": self._front, "back": self._back}
        return {name: one for name, one in both.items() if one is not None}

    def _read_arc(self, given: Mapping[str, Any]) -> Arc:
        """An arc from its texts."""
        afa, then = self.afa, given.get("then")
        row = None if then is None else dict(zip(afa.register, then, strict=True))
        return make_arc(
            afa,
            given["source"],
            given["target"],
            when=given["when"],
            then=row or None,
            id=given["id"],
            kind=given["kind"],
        )

    def _identity(self) -> dict[str, Any]:
        """What a state depends on."""
        afa = self.afa
        own = {
            "speculation": str(self._speculation),
            "bound": str(self._disorder),
            "cleanse": "after" if self._behind else "before",
        }
        return {
            "events": {name: str(kind) for name, kind in afa.events.items()},
            "register": {name: str(kind) for name, kind in afa.register.items()},
            "initial": [str(value) for value in afa.initial],
            "start": afa.start,
            "window": str(afa.window),
            "partition_by": list(afa.partition_by),
            "arcs": [shown(arc, afa.register) for arc in afa.arcs],
            "finals": {name: str(emit) for name, emit in afa.finals.items()},
            "options": self.options | (own if self._waits else {}),
        }


#: Options that have another name in states.
_WORDS = {"bound": "disorder", "cleanse": "hold"}


def _check(afa: Afa, own: Mapping[str, Any]) -> None:
    """Whether the options of an automaton go together."""
    if own["time"] is None:
        raise OptionError("an AFA needs the column that orders the stream: time='…'")
    if own["dynamic"] not in ("default", "explicit"):
        raise OptionError(f"dynamic={own['dynamic']!r}: expected 'default' or 'explicit'")
    if own["sequence"] is not None and own["numbered"] is not None:
        raise OptionError("numbered= orders events of one time as well: leave out sequence=")
    if own["ordered"] and own["sign"] is not None:
        raise OptionError("an ordered stream keeps no event that could be retracted: leave out sign=, or ordered=True")
    timer = own["timer"]
    if timer is not None and (own["ordered"] or own["numbered"] is not None):
        raise OptionError("timer= puts events between others: leave out ordered= and numbered=")
    if timer is not None and afa.events.get(timer) != pa.bool_():
        told = f"timer={timer!r}: the AFA's events need a truth value of that name"
        raise OptionError(hinted(told, timer, afa.events, kind="attribute"))
    if own["ordered"] and own["dynamic"] == "explicit":
        raise OptionError("arcs with explicit lifetimes concern events that an ordered stream does not keep")


def _refuse(at: int) -> None:
    raise AssertionError(f"change {at} is of no arc")


def _taken(first: int, end: int, rows: int) -> str:
    """Which rows of a push an error has left behind it as taken, numbered as the matcher counts them."""
    if first == end:
        return "no row of this push was taken" if rows > 1 else "the row was not taken"
    told = f"row {first} was" if end == first + 1 else f"rows {first} to {end - 1} were"
    return f"{told} taken, and the next call gives their output; row {end} and those behind it were not"


def _left_out(refused: list[StrettoError]) -> StrettoError:
    """One error for all rows that the run could not take."""
    what, *hints = str(refused[0]).split("\n")
    done = "the row was"
    if len(refused) > 1:
        what += f" (and {len(refused) - 1} more; the next: {str(refused[1]).splitlines()[0]})"
        done = "these rows were"
    return type(refused[0])(
        "\n".join([what, *hints, f"{done} left out; all others were taken, and the next call gives their output"])
    )
