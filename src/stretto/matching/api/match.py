"""One call over a whole table: ``stretto.match``, ``stretto.iter_matches`` and ``stretto.match_sets``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from stretto.arguments import check_arguments, unexpected
from stretto.budget import Budget
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Program
from stretto.errors import LimitError, OptionError
from stretto.events import as_table, require
from stretto.languages.afa.builder import AFA, is_afa
from stretto.languages.clauses import is_clause
from stretto.matching.compiled import Query, compile_query, layout_of, schema_of
from stretto.matching.empty_result.queries import findings, unmet_arcs, with_warnings
from stretto.matching.executors.base import Reading
from stretto.matching.executors.choose import OF_QUERIES, refuse
from stretto.matching.input.derived_columns import Derived
from stretto.matching.input.files import Source, are_files, are_files_of_stream, open_files, table_of
from stretto.matching.input.ordered_input import Input, Streams, input_of
from stretto.matching.input.predicate_pushdown import relevant
from stretto.matching.input.stream_union import nothing, one_table, streams_of, with_types_of_nulls
from stretto.matching.lifecycle import gives_in_turn
from stretto.matching.output.match_sets import MatchSet, program_of_sets, refuse_unlisted
from stretto.matching.output.match_table import CHUNK
from stretto.matching.output.memory_budget import Listing, Meter
from stretto.matching.output.pipes import piped, reads_events
from stretto.matching.output.progress import Progress
from stretto.query.afa import Afa

if TYPE_CHECKING:
    from stretto.matching.executors.retracting import RetractingExecutor


@check_arguments
def match(  # noqa: PLR0913 - the options that users have
    query: str | Query | AFA | Afa,
    events: Any,
    *,
    type: str | None = "type",
    time: str | None = None,
    sequence: str | None = None,
    stream: str | None = None,
    time_unit: str | None = None,
    output: str = "events",
    valuations: bool = False,
    language: str | None = None,
    at_end: str = "complete",
    timeouts: bool = False,
    budget: int | float | str | None = None,
    progress: bool | None = None,
    **options: Any,
) -> pa.Table:
    """Find the complex events of ``query`` in ``events``.

    Parameters
    ----------
    query
        A query's text, a compiled :class:`~stretto.Query`, or a :class:`stretto.AFA`. Or a clause ``MATCH_RECOGNIZE ( … )``, also as
        ``SELECT * FROM events MATCH_RECOGNIZE ( … )``, whose text says all but ``budget`` and ``progress``.
    events
        Anything with ``__arrow_c_stream__`` (pyarrow, pandas, polars, DuckDB, …), a list of dicts, a dict of columns, or for a
        query ``FROM`` several streams a dict of such tables by stream name. Or files: a path to a Parquet, CSV, JSON-lines or Arrow
        file, to a directory of such files, or with ``*`` in it; a list of paths; a :class:`pyarrow.dataset.Dataset`. Of files only
        the columns that are needed are read, piece by piece; if they do not lie in the order of ``time``, what can matter of them
        is sorted in memory.
    type
        The column that holds the event type. ``None``: an event's type is the name of its stream.
    time
        The column that orders the stream (stably; NULLs are an error). ``None``: the order in which events are given.
    sequence
        A column that orders events of the same time.
    stream
        The column that names an event's stream, when one table holds several.
    time_unit
        What one unit of an integer ``time`` is (``s``, ``ms``, ``us``, ``ns``), for windows such as ``WITHIN 1 minute``, and for
        conditions such as ``b.t - a.t > 1 minute``.
    output
        ``"events"``: with the events that each selected variable holds. ``"positions"``: without (faster, smaller).
        ``"summary"``: one row for each event that completes matches, with their number.
    valuations
        One row for each valuation (which variable holds which event) in place of each complex event.
    language
        The query's language, where the text does not tell: ``"eql"``.
    at_end
        What becomes of a match that waits for time to pass (for what must not come behind it, or with KEEP for a longer one) when
        the events end before: it is ``"complete"``, or ``"drop"``: it is left out.
    timeouts
        With ``WITHIN``: rows of partial matches as well, one for each first event whose window has closed without a match that
        begins with it (``docs/semantics.md``). They have ``reached``, the variable of their last event, and ``expired``, the last
        time of their window; both are NULL for matches. What the end of the events leaves open has not timed out.
    budget
        How much may be listed: a number of rows, bytes such as ``"2 GiB"``, or ``math.inf``. ``None``: a quarter of the memory there
        is. What would be more ends in a :class:`~stretto.errors.LimitError` before it is listed. With ``output="summary"`` nothing is
        listed, except where LIMIT or a negation decides match by match: there it bounds each event by itself.
    progress
        Show a progress bar; ``None``: for long calls in a terminal or notebook.
    options
        For an AFA, beside ``time`` and ``sequence``: ``until``, ``numbered``, ``bag``, ``provenance`` and ``ignore``
        (:class:`stretto.Matcher`). Its output has the columns of that matcher without ``sign``, by last event, first event and
        register.

    Returns
    -------
    pyarrow.Table
        One row a match: ``start``, ``end`` (int64) and ``positions`` (list<int64>, ascending), which are 0-based rows of the
        input as it was given; ``start_time`` and ``end_time`` where a time is known; the partition attributes; and for each
        selected variable the list of its events (list<struct>). Ordered by the event that completes the match.

        With ``output="summary"`` one row for each event that completes matches: ``start`` (of the match that begins first) and
        ``end``; ``start_time`` and ``end_time`` of these; the partition attributes; and ``matches`` (int64), how many there are:
        NULL where 64 bits do not hold the number, of which a warning tells.

        Of a clause: the rows that it says, as of :func:`stretto.sql`.

    Raises
    ------
    LimitError
        The matches go over the ``budget``; the message names the event, its key and how many it completes.
    QueryError
        The query is wrong or does not fit the events' columns.
    DataError
        The events are not what the query needs: a missing column, a NULL or decreasing time.

    Examples
    --------
    >>> import stretto
    >>> events = [{"type": "A", "x": 1}, {"type": "B", "x": 2}, {"type": "B", "x": 9}]
    >>> stretto.match("SELECT b FROM S WHERE A; B AS b FILTER b[x > 5]", events).to_pylist()
    [{'start': 0, 'end': 2, 'positions': [2], 'b': [{'type': 'B', 'x': 9}]}]
    >>> stretto.match("SELECT * FROM S WHERE A; B+", events, output="summary").to_pylist()
    [{'start': 0, 'end': 1, 'matches': 1}, {'start': 0, 'end': 2, 'matches': 2}]
    """
    named = {
        "type": type,
        "time": time,
        "sequence": sequence,
        "stream": stream,
        "time_unit": time_unit,
        "output": output,
        "valuations": valuations,
        "language": language,
        "at_end": at_end,
        "timeouts": timeouts,
        "budget": budget,
        "progress": progress,
    }
    found = result_of(query, events, named | options, whole=True)
    return pa.Table.from_batches([one for piece in found.pieces for one in piece.to_batches()], schema=found.schema)


@check_arguments(like=match)
@gives_in_turn
def iter_matches(query: str | Query | AFA | Afa, events: Any, **options: Any) -> Iterator[pa.Table]:
    """Do what :func:`match` does, in pieces of bounded size: results may exceed memory, and none is refused without ``budget``.

    Of an AFA, a piece is what so many events give.

    >>> import stretto
    >>> pieces = stretto.iter_matches("SELECT * FROM S WHERE A+", [{"type": "A"}] * 10, output="positions")
    >>> sum(piece.num_rows for piece in pieces)
    1023
    """
    return result_of(query, events, options).pieces


class Result(NamedTuple):
    """What a call gives."""

    schema: pa.Schema
    pieces: Iterator[pa.Table]


def result_of(
    query: str | Query | AFA | Afa, events: Any, options: Mapping[str, Any], *, whole: bool = False
) -> Result:
    """The rows that a query, an automaton or a clause gives over events, in tables of bounded size.

    Parameters
    ----------
    options
        Those of :func:`match`.
    whole
        The caller keeps all pieces: they have a budget where none is said.
    """
    given = dict(options)
    progress, budget = given.pop("progress", None), given.pop("budget", None)
    if is_afa(query):
        found = _of_afa(query.frozen, events, _said(given), budget)
    elif is_clause(query, given.get("language")):
        found = _of_clause(str(query), events, _said(given), progress)
    else:
        call = _Call(query, events, given)
        return Result(call.shown.schema(), call.piped(progress, Meter.of_call(budget, pieces=not whole)))
    return found._replace(pieces=_within(found.pieces, Budget(budget))) if whole or budget is not None else found


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that are no defaults of :func:`match`."""
    parameters = signature(match).parameters
    return {
        name: value for name, value in options.items() if name not in parameters or value != parameters[name].default
    }


def _of_clause(text: str, events: Any, said: dict[str, Any], progress: bool | None) -> Result:
    """The rows of a clause of MATCH_RECOGNIZE; of the options of queries ``time_unit`` alone may be said."""
    from stretto.matching.executors.row_pattern import read_clause
    from stretto.matching.sql.run import match_clause

    known = ("language", "time_unit", "budget", "progress")
    if unknown := set(said) - signature(match).parameters.keys():
        raise unexpected(UNEXPECTED, unknown, known)
    refuse(
        said,
        set(said).difference(known),
        "queries in CEQL, SASE+ or EQL and for AFAs, and this is a clause, whose text says it",
    )
    return Result(*match_clause(read_clause(text, said.get("time_unit")), events, progress))


@check_arguments(like=match)
@gives_in_turn
def match_sets(query: str | Query, events: Any, **options: Any) -> Iterator[MatchSet]:
    """Do what :func:`match` does, with the matches of each event that completes some as one set, which lists none until it is asked.

    For SASE+ queries (``OUTPUT compressed`` or not), whose matches may be exponentially many. Always the NFAb engine, whose
    merged runs hold them in as many nodes as events were selected.

    Raises
    ------
    OptionError
        The query is CEQL, has a negation (which is decided match by match), or a LIMIT (take ``set.first(n)``).

    Examples
    --------
    >>> import stretto
    >>> query = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { }"
    >>> events = [{"type": kind} for kind in "ABBB"]
    >>> [len(found) for found in stretto.match_sets(query, events)]
    [1, 2, 4]
    """
    call = _Call(query, events, options, sets=True)
    return with_warnings(call.sets(), call.findings)


#: What of a :class:`Reading` a call over a whole table is told.
_READ = {"type", "time", "sequence", "stream", "time_unit", "output", "at_end", "timeouts"}

#: What Python says of an argument that there is not.
UNEXPECTED = "match() got an unexpected keyword argument"


class _Call:
    """One call of :func:`match`: the query bound to the table, and the table in stream order."""

    def __init__(self, query: str | Query, events: Any, options: dict[str, Any], *, sets: bool = False) -> None:
        if unknown := options.keys() - _READ - {"valuations", "language"}:
            raise unexpected(UNEXPECTED, unknown, signature(match).parameters)
        reading = Reading(**{name: options[name] for name in _READ & options.keys()})
        sequence, timeouts = reading.sequence, reading.timeouts
        compiled = compile_query(query, language=options.get("language"))
        if not sets:
            refuse_unlisted(compiled)
        type, time, stream, time_unit = compiled.roles(reading.type, reading.time, reading.stream, reading.time_unit)
        source, given = _opened(events)
        table, stream = one_table(compiled, given, type, time, sequence, stream)
        if not table.num_rows and set(table.column_names) <= {stream}:
            # Nothing at all, such as an empty list: it has no columns either, so only the query's own names are known.
            table = nothing(compiled, type, time, stream)
        schema = schema_of(table.schema, type, time, stream, time_unit)
        for name, role in ((time, "time"), (sequence, "sequence"), (stream, "stream"), (type, "type")):
            if name is not None:
                require(table, name, role)
        if compiled.schema != schema:
            compiled = compiled.bind(schema)
        table = with_types_of_nulls(table, compiled.bound.schema)
        implied = Derived() if timeouts else compiled.implied
        if source is None:
            table = implied.added_to(table) if implied.keys else table
        else:
            named = (*compiled.parsed.read, *filter(None, (type, time, sequence, stream)))
            made = Derived(named, compiled.parsed.joined, stream)
            if isinstance(source, dict):
                chosen = {name: source[name].deriving(made.of_stream(name)) for name in streams_of(compiled, source)}
                several = len(chosen) > 1 or compiled.parsed.any_stream
                source = Streams(chosen, table.schema, str(stream), implied) if several else next(iter(chosen.values()))
            else:
                source = source.deriving(replace(implied, paths=made.paths) if implied.keys else made)
        self.query = compiled
        #: The columns of results, and those of the tables of matches, of which pipes read the events.
        self.shown = self.layout = layout_of(compiled, reading.output, timeouts=timeouts)
        if reads_events(compiled) and reading.output != "events":
            if self.shown.summary:
                raise OptionError(
                    "output='summary' counts matches, and the pipes of this query read their events: list them, and count the rows"
                )
            self.layout = layout_of(compiled, timeouts=timeouts)
        self.completes = reading.completes or self.layout.at_end
        self.program: Program = (
            program_of_sets(compiled, timeouts=timeouts)
            if sets
            else compiled.program(valuations=options.get("valuations", False), split=True, timeouts=timeouts)
        )
        self.events = table if source is None else source
        tested, shown = self.program.columns, self.layout.columns
        # Where it is to be known which windows have closed, every event may close one.
        closes = timeouts or (compiled.waits and not reading.completes)
        asked = None if source is None or closes else relevant(compiled)
        self.input = input_of(self.events, tested, shown, time, sequence, asked)

    def sets(self) -> Iterator[MatchSet]:
        """The matches, in a set for each event that completes some."""
        from stretto.engines.nfab.runner import NfabRunner
        from stretto.engines.programs import NfabProgram

        assert isinstance(self.program, NfabProgram)
        runner = NfabRunner(self.program)
        for batch in self.input.batches(self.program.columns, runner):
            try:
                for found in runner.sets(batch):
                    rows, order = self.input.kept()
                    yield MatchSet(found, self.layout, rows, self.program.marks, order)
            except IntegerOverflow as error:
                raise error.renumbered(self.input.order) from None

    def tables(self, progress: bool | None, meter: Meter) -> Iterator[pa.Table]:
        """The matches, in tables of bounded size."""
        labels, counts = self.layout.labels, self.layout.summary
        runner = self.program.start(labels=labels, counts=counts, budget=meter.budget.held)
        listed = Listing(meter, runner, self.layout, self.input.rows, self.input.order)
        with Progress(progress, self.input.total) as report:
            for batch in self.input.batches(self.program.columns, runner):
                yield from listed.tables(runner.advance(batch))
                report(runner.rows)
            if self.completes:
                yield from listed.tables(runner.finish())

    def piped(self, progress: bool | None, meter: Meter) -> Iterator[pa.Table]:
        """The matches after the query's pipes."""
        found = piped(self.query, self.layout, with_warnings(self.tables(progress, meter), self.findings))
        return (table.select(self.shown.schema().names) for table in found) if self.shown is not self.layout else found

    def findings(self) -> list[str]:
        """What keeps matches away, where there are none."""
        return findings(self.query, self.events)


def _opened(events: Any) -> tuple[Source | dict[str, Source] | None, Any]:
    """Files that are read in pieces, alone or by stream, and the columns that they have.

    Or ``None`` and events in memory: there are no files, or their types depend on the query.
    """
    if are_files(events):
        sources = {"": open_files(events)}
    elif isinstance(events, Mapping) and events and all(map(are_files_of_stream, events.values())):
        sources = {name: open_files(one) for name, one in events.items()}
    elif isinstance(events, Mapping):
        return None, {name: table_of(one) if are_files_of_stream(one) else one for name, one in events.items()}
    else:
        return None, events
    typed = not any(pa.types.is_null(kind) for one in sources.values() for kind in one.schema.types)
    given = {name: one.schema.empty_table() if typed else one.table() for name, one in sources.items()}
    if isinstance(events, Mapping):
        return (sources, given) if typed else (None, given)
    return (sources[""] if typed else None), given[""]


#: Options that a whole table does not need.
_OF_STREAMS = ("sign", "late", "ordered", "dynamic", "timer", "speculation", "disorder", "hold")


def _within(pieces: Iterator[pa.Table], budget: Budget) -> Iterator[pa.Table]:
    """The pieces of a result that a budget allows."""
    rows = size = 0
    for piece in pieces:
        rows, size = rows + piece.num_rows, size + piece.nbytes
        if not budget.holds(rows, size):
            raise LimitError(
                f"the outputs go over the budget of {budget}, at {rows:,} rows\nhint: a narrower window or stricter conditions give "
                "less; iter_matches() gives them in pieces; budget= allows more"
            )
        yield piece


def _of_afa(afa: Afa, events: Any, said: dict[str, Any], budget: int | float | str | None) -> Result:
    """All outputs of an automaton over a table, whatever its order: a piece is what so many events give; there is one at least."""
    refuse(said, OF_QUERIES, "queries in CEQL or SASE+, and this is an AFA")
    known = ("time", "sequence", "until", "bag", "numbered", "ignore", "provenance")
    if unknown := said.keys() - set(known):
        told = "match() of an AFA got an unexpected keyword argument"
        if min(unknown) in _OF_STREAMS:
            raise TypeError(f"{told} '{min(unknown)}': it is for streams, stretto.Matcher(afa, time='…')")
        raise unexpected(told, unknown, (*known, "budget"))
    time = said.get("time")
    if time is None:
        raise OptionError("an AFA needs the column that orders the stream: time='…'")
    if not afa.arcs:
        raise OptionError("the AFA has no arcs, so that nothing can match: afa.arc(source, target, when=…)")
    paths = filter(None, (said.get(name) for name in ("time", "sequence", "until", "numbered")))
    made = Derived((*paths, *afa.events))
    given = open_files(events).deriving(made) if are_files(events) else made.added_to(as_table(events))
    require(given.schema.names, time, "time")
    for name in afa.events:
        require(given.schema.names, name, "attribute")
    from stretto.matching.executors.retracting import RetractingExecutor

    executor = RetractingExecutor(afa, given.schema, ordered=True, budget=budget, **said)
    if isinstance(given, pa.Table):
        given = given.select(executor.needed())
    tie = said.get("sequence") or said.get("numbered")
    pieces = _outputs(executor, input_of(given, executor.needed(), (), time, tie, None))
    return Result(_unsigned(executor.given()).schema, with_warnings(pieces, lambda: unmet_arcs(afa, given)))


def _outputs(executor: RetractingExecutor, events: Input) -> Iterator[pa.Table]:
    rows, order, names = 0, events.order, executor.needed()
    for batch in events.batches(names, executor.run):
        for begin in range(0, batch.num_rows, CHUNK):
            part = pa.Table.from_batches([batch.slice(begin, CHUNK)])
            numbers = None if order is None else order[rows : rows + part.num_rows]
            rows += part.num_rows
            yield _unsigned(executor.take(part, numbers))
    if not rows:
        yield _unsigned(executor.given())


def _unsigned(outputs: pa.Table) -> pa.Table:
    """Outputs of which none is ever taken back."""
    return outputs.drop_columns(["sign"])
