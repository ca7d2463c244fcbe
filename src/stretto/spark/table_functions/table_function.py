"""The table functions behind :func:`stretto.spark.register`: a query over ``TABLE(…)`` in Spark SQL, at the speed of Arrow.

Spark asks :func:`analyze` for the result's columns while it plans, and hands the rows of each task, in Arrow batches, to a
:class:`Handler`. Such a class travels by value, as names and strings; everything that runs is this module's.

There are two ways to put the rows in order. In ``stretto_match`` the SQL around the function does: each SQL partition is
a stream of its own, with a handler of its own. ``stretto_query`` asks Spark for what the query needs: keys hashed into
buckets, of which a handler takes one, all of its keys in one pass.

Known of PySpark up to 4.3: the class of Arrow table functions refuses ``analyze``, although Spark itself does not; an
``udtf`` that is made an Arrow one afterwards has both (:func:`stretto.spark.register` does that).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, partialmethod
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import NullType, StructType, TimestampNTZType, TimestampType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, OrderingColumn, PartitioningColumn, SelectedColumn

from stretto.errors import DataError, OptionError, StrettoError, hinted
from stretto.events import require
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import compile_query
from stretto.matching.output.match_table import CHUNK
from stretto.query import functions
from stretto.query.functions import Paths
from stretto.spark import automata
from stretto.spark.batch.worker import bound_query, check_times, matcher_of, pieces
from stretto.spark.call import prepare
from stretto.spark.compat import cuts_partitions
from stretto.spark.frames import spark_schema
from stretto.spark.options import Continuous
from stretto.spark.prepared import Prepared
from stretto.spark.revised import AFA, Revised

#: Into how many buckets a function that arranges its rows hashes the keys: the most tasks that can share the work.
BUCKETS = 64

#: The named arguments that SQL may give, with their defaults and types.
OPTIONS: dict[str, tuple[Any, type]] = {
    "type": ("type", str),
    "time": (None, str),
    "sequence": (None, str),
    "stream": (None, str),
    "time_unit": (None, str),
    "output": ("events", str),
    "valuations": (False, bool),
    "language": (None, str),
    "budget": (None, str),
}


@dataclass
class Analyzed(AnalyzeResult):  # type: ignore[misc]
    """What Spark plans with, and what a handler must know."""

    name: str = ""
    arranged: bool = False
    task: dict[str, Any] = field(default_factory=dict)


def handler(name: str, *, arranged: bool, query: str | None, options: Mapping[str, Any]) -> type:
    """The class that Spark takes for a table function; only names and strings are its own.

    Parameters
    ----------
    name
        Of the function, for errors.
    arranged
        Whether the function asks Spark to partition and order its rows.
    query, options
        Fixed ones, which SQL then cannot give. The functions that are registered now may be called.
    """
    fixed = partial(analyze, name, arranged, query, dict(options), functions.importable())
    return type(name, (Handler,), {"analyze": staticmethod(fixed)})


def fitted(name: str, query: str, columns: StructType, options: Mapping[str, Any]) -> tuple[type, StructType]:
    """As :func:`handler` for a query over a table of known columns, and the columns of its result.

    Raises
    ------
    QueryError, DataError, OptionError
        As :func:`stretto.spark.match`.
    """
    found = _planned(_prepared(columns, query, options, name, arranged=False), columns, name, arranged=False)
    return type(name, (Handler,), {"__init__": partialmethod(Handler.__init__, found)}), found.schema


class Handler:
    """The rows of one SQL partition, or of one bucket of keys, through one :class:`stretto.Matcher`."""

    def __init__(self, result: Analyzed) -> None:
        self._name = result.name
        self._arranged = result.arranged
        self._task = result.task
        self._kinds = pa.ipc.read_schema(pa.py_buffer(result.task["schema"]))
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._matcher: Matcher | None = None
        self._revised = Revised(**result.task) if "ahead" in result.task else None

    def eval(self, *arguments: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        """Take the next rows."""
        rows = next((one for one in (*arguments, *named.values()) if isinstance(one, pa.RecordBatch)), None)
        if rows is None:
            raise OptionError(f"{self._name} needs the events: {self._name}(TABLE(…))")
        if not self._arranged and self._matcher is None and not self._waiting:
            self._check_partitioned()
        self._waiting.append(rows.select([column for column in rows.schema.names if column in self._kinds.names]))
        self._rows += rows.num_rows
        if self._rows >= CHUNK:
            yield from self._match()

    def terminate(self) -> Iterator[pa.RecordBatch]:
        """No more rows come."""
        if self._rows:
            yield from self._match()
        if self._matcher is not None:
            yield from pieces(self._shown(self._matcher.finish()))

    def _start(self) -> Matcher:
        task = self._task
        if self._revised is not None:
            return self._revised.start(ordered=True)
        query = bound_query(task["text"], task["schema"], task["roles"], task["language"], task["functions"])
        return matcher_of(query, task["output"], task["valuations"], task["budget"])

    def _shown(self, found: pa.Table) -> pa.Table:
        return found if self._revised is None else self._revised.shown(found)

    def _match(self) -> Iterator[pa.RecordBatch]:
        events = pa.Table.from_batches(self._waiting)
        self._waiting, self._rows = [], 0
        task = self._task
        time = task["roles"][1]
        require(events, time, "time")
        check_times(events, time)
        if self._matcher is None:
            self._matcher = self._start()
        try:
            for found in self._matcher.iter_push(events):
                yield from pieces(self._shown(found))
        except DataError as error:
            if " decreases from " in str(error):
                error.add_note(
                    f"{self._name} takes the rows in the order of SQL: TABLE(…) PARTITION BY … ORDER BY ({time})"
                )
            raise

    def _check_partitioned(self) -> None:
        """Refuse rows that are dealt out to tasks anyhow, where matches would be lost."""
        context = TaskContext.get()
        if context is not None and context.partitionId() and not cuts_partitions():
            raise OptionError(
                f"{self._name}: the rows of TABLE(…) are in several tasks, in no order. Write TABLE(…) PARTITION BY … "
                "ORDER BY (…), or TABLE(…) WITH SINGLE PARTITION ORDER BY (…); stretto_query needs neither"
            )


# -- planning ----------------------------------------------------------------------------------------------------------


def analyze(
    name: str,
    arranged: bool,
    query: str | None,
    fixed: Mapping[str, Any],
    known: Paths,
    /,
    *arguments: AnalyzeArgument,
    **named: AnalyzeArgument,
) -> Analyzed:
    """The columns of the result, and how Spark shall arrange the rows; as :func:`handler` says.

    Raises
    ------
    QueryError, DataError, OptionError
        As :func:`stretto.spark.match`; Spark shows them in an ``AnalysisException``.
    """
    try:
        return _analyzed(arguments, named, name, arranged, query, fixed, known)
    except StrettoError as error:
        raise error.with_traceback(None) from None  # Spark shows the traceback; the message says where the mistake is


def _analyzed(
    arguments: Sequence[AnalyzeArgument],
    named: Mapping[str, AnalyzeArgument],
    name: str,
    arranged: bool,
    query: str | None,
    fixed: Mapping[str, Any],
    known: Paths,
) -> Analyzed:
    given = _named(arguments, {key.lower(): value for key, value in named.items()}, name, query is not None)
    events = given.pop("events", None)
    if events is None or not events.isTable or not isinstance(events.dataType, StructType):
        raise OptionError(f"{name} needs the events: {name}(TABLE(…){'' if query else ', query'})")
    text = query if query is not None else _value("query", given.pop("query", None), str, name)
    if text is None:
        raise OptionError(f"{name} needs a query: {name}(TABLE(…), 'SELECT …')")
    options = dict(fixed) | {key: _value(key, one, OPTIONS[key][1], name) for key, one in given.items()}
    columns = events.dataType
    return _planned(_prepared(columns, text, options, name, arranged, known), columns, name, arranged)


def _prepared(
    columns: StructType, query: str, given: Mapping[str, Any], name: str, arranged: bool, known: Paths = ()
) -> Prepared | automata.Prepared:
    options = {key: default for key, (default, _) in OPTIONS.items()} | dict(given)
    if not arranged and options["sequence"] is not None:
        raise OptionError(f"{name} takes the rows in the order of SQL: ORDER BY (time, {options['sequence']})")
    if options["time"] is None:
        options["time"] = _only_time(columns, name)
    if options["language"] == AFA:
        return automata.prepare(_Columns(columns), query, Continuous(), **options)
    compiled = compile_query(query, language=options["language"])
    functions.import_functions(tuple(one for one in known if one[0] in compiled.calls))
    call = prepare(_Columns(columns), compiled, **options, continuous=Continuous())
    if arranged and call.adds_up:
        raise OptionError(
            f"{name} counts and adds up for some of the keys at a time: group by all keys of the query, and add up its rows in SQL"
        )
    return call


def _named(
    arguments: Sequence[AnalyzeArgument], named: dict[str, AnalyzeArgument], name: str, has_query: bool
) -> dict[str, AnalyzeArgument]:
    """All arguments by name."""
    places = ["events"] if has_query else ["events", "query"]
    if len(arguments) > len(places):
        raise OptionError(f"{name} takes {' and '.join(places)} by place; name the others: time => 'ts'")
    known = [*places, *OPTIONS]
    given = dict(zip(places, arguments, strict=False))
    for key, value in named.items():
        if key not in known:
            raise OptionError(hinted(f"{name} has no argument '{key}'", key, known, kind="argument"))
        if key in given:
            raise OptionError(f"{name}: argument '{key}' is given twice")
        given[key] = value
    return given


def _value(key: str, argument: AnalyzeArgument | None, kind: type, name: str) -> Any:
    if argument is None:
        return None
    if argument.isTable or not argument.isConstantExpression:
        raise OptionError(f"{name}: {key} must be a constant, which is known before the query runs")
    if argument.value is None and not isinstance(argument.dataType, NullType):
        raise OptionError(f"{name}: {key} is NULL")
    if argument.value is not None and not isinstance(argument.value, kind):
        wanted = "TRUE or FALSE" if kind is bool else "a string"
        raise OptionError(f"{name}: {key} => {argument.value!r}: give {wanted}")
    return argument.value


def _only_time(table: StructType, name: str) -> str:
    """The table's only timestamp, which is its time where none is named."""
    times: list[str] = [one.name for one in table.fields if isinstance(one.dataType, TimestampType | TimestampNTZType)]
    if len(times) == 1:
        return times[0]
    found = f"there are {len(times)} timestamps ({', '.join(times)})" if times else "there is no timestamp"
    raise OptionError(f"{name}: which column is the time? {found}: name it, time => '…'")


class _Columns:
    """A table argument as far as :func:`~stretto.spark.call.prepare` looks at a DataFrame: its columns."""

    isStreaming = False
    mapInArrow = None

    def __init__(self, schema: StructType) -> None:
        self.schema = schema
        self.columns = schema.names

    def with_kinds(self, kinds: Mapping[str, pa.DataType]) -> _Columns:
        """The same with more columns, which :func:`_expression` finds."""
        more = spark_schema(pa.schema(list(kinds.items()))).fields
        return _Columns(type(self.schema)([*self.schema.fields, *more]))


def _planned(call: Prepared | automata.Prepared, columns: StructType, name: str, arranged: bool) -> Analyzed:
    found = Analyzed(spark_schema(call.result), name=name, arranged=arranged, task=call.task)
    found.select = [
        SelectedColumn(_quoted(one)) if one in columns.names else SelectedColumn(_expression(one, columns), alias=one)
        for one in call.columns
    ]
    if not arranged:
        return found
    keys = [_expression(key, columns) for key in call.keys if key in call.columns]  # any of them keeps a key together
    bucket = "1" if not keys else f"pmod(xxhash64({', '.join(keys)}), {BUCKETS})"
    found.partitionBy = [PartitioningColumn(bucket)]
    found.orderBy = [OrderingColumn(_expression(column, columns)) for column in call.order]
    return found


def _expression(name: str, columns: StructType) -> str:
    """A column in SQL, or a field inside of one."""
    return _quoted(name) if name in columns.names else ".".join(map(_quoted, name.split(".")))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
