"""From text to a query: ``stretto.compile`` and the :class:`Query` that it gives."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.engines.select import program_for
from stretto.errors import OptionError, QueryError, suggestion
from stretto.events import Schema
from stretto.languages import ceql, eql, sase
from stretto.languages.clauses import has_clause
from stretto.matching.input.derived_columns import Derived
from stretto.matching.output.match_table import Layout
from stretto.query import functions
from stretto.query import predicate as p
from stretto.query.afa import Afa
from stretto.query.passes.bind import AnyBound, BoundQuery, bind, with_field_types
from stretto.query.passes.bind_eql import BoundEql, bind_eql
from stretto.query.passes.bind_sase import BoundSase, bind_sase
from stretto.query.passes.infer_partition_keys import split_by_equalities
from stretto.query.passes.nulls import with_types_of_nulls
from stretto.query.query import AnyQuery, Consume
from stretto.query.windows import Window

if TYPE_CHECKING:
    from stretto.engines.select import AnyProgram, Machine


#: Why an EQL query takes nothing back.
NO_REVISIONS = (
    "EQL reads events in the order of time, and takes no answer back: leave out speculation= and sign=; disorder= sorts events that "
    "come late"
)


def _afa_of_ceql(bound: BoundQuery, attributes: tuple[str, ...]) -> tuple[Afa, Sequence[frozenset[str]]]:
    from stretto.automata.ceql_afa import ceql_afa

    return ceql_afa(bound, attributes=attributes)


def _afa_of_sase(bound: BoundSase, attributes: tuple[str, ...]) -> tuple[Afa, Sequence[frozenset[str]]]:
    from stretto.automata.sase_afa import sase_afa

    return sase_afa(bound, attributes=attributes), [frozenset({one.variable}) for one in bound.parsed.positive]


def _afa_of_eql(bound: BoundEql, attributes: tuple[str, ...]) -> NoReturn:
    raise OptionError(NO_REVISIONS)


class _Language(NamedTuple):
    """What each language does in its own way.

    ``afa`` gives the automaton over events with some attributes, and the variables of its marks; ``split`` the query with the keys
    that its conditions say. ``typed``: its automaton depends on a schema.
    """

    parse: Callable[[str], AnyQuery]
    bind: Callable[[Any, Schema], AnyBound]
    afa: Callable[[Any, tuple[str, ...]], tuple[Afa, Sequence[frozenset[str]]]]
    split: Callable[[Any], AnyBound] = lambda bound: bound
    typed: bool = False


LANGUAGES = {
    "ceql": _Language(ceql.parse, bind, _afa_of_ceql),
    "sase": _Language(sase.parse, bind_sase, _afa_of_sase, split_by_equalities, typed=True),
    "eql": _Language(eql.parse, bind_eql, _afa_of_eql),
}

#: The bound queries used last, by language, text and schema.
_BOUND: OrderedDict[tuple[Any, ...], Query] = OrderedDict()
_BOUND_LOCK = threading.Lock()
_MOST_BOUND = 32


@check_arguments
class Query:
    """A query: immutable, printable, and used with as many streams as one likes.

    Made by :func:`stretto.compile`. Without a schema it is only parsed; :meth:`bind` checks it against one.

    >>> import stretto
    >>> query = stretto.compile("SELECT * FROM S WHERE A AS x; B AS y WITHIN 3 EVENTS")
    >>> query.variables
    ('x', 'y')
    """

    def __init__(self, parsed: AnyQuery, bound: AnyBound | None = None) -> None:
        self._parsed = parsed
        self._bound = bound
        self._own = LANGUAGES[parsed.language]
        self._split = None if bound is None else self._own.split(bound)
        self._programs: dict[tuple[bool, bool, bool], AnyProgram] = {}
        self._automata: dict[tuple[str, ...], tuple[Afa, Sequence[frozenset[str]]]] = {}
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """The text that the query was compiled from."""
        return self._parsed.text

    @property
    def parsed(self) -> AnyQuery:
        """The query before a schema was known."""
        return self._parsed

    @property
    def bound(self) -> AnyBound:
        """The query with its schema.

        Raises
        ------
        OptionError
            The query was compiled without a schema.
        """
        if self._bound is None:
            raise OptionError("the query has no schema yet: compile(text, schema=…), or query.bind(schema)")
        return self._bound

    @property
    def split(self) -> AnyBound:
        """The same with the keys that equalities between its events say, where it is of SASE+ and they say some."""
        return self.bound if self._split is None else self._split

    @property
    def implied(self) -> Derived:
        """The keys of :attr:`split` that are no columns yet, as types of events call them differently."""
        split = self.split
        keys = tuple(key for key in split.parsed.joined if key.name in split.parsed.implied)
        return Derived((), keys, split.schema.type or split.schema.stream)

    @property
    def schema(self) -> Schema | None:
        """The schema that the query is bound to, if any."""
        return self._bound.schema if self._bound else None

    def roles(
        self, type: str | None, time: str | None, stream: str | None, time_unit: str | None
    ) -> tuple[str | None, str | None, str | None, str | None]:
        """The roles of a call's columns: as the query's schema names them, where it has one, else as given."""
        own = self.schema
        if own is None:
            return type, time, stream, time_unit
        return own.type, time or own.time, stream or own.stream, time_unit or own.time_unit

    @property
    def language(self) -> str:
        """The language of the text: ``"ceql"`` or ``"sase"``."""
        return self._parsed.language

    @property
    def strategy(self) -> StrEnum:
        """The selection strategy, as the query's language names it."""
        return self._parsed.strategy

    @property
    def calls(self) -> list[str]:
        """The registered functions that its conditions call."""
        return [call.name for one in self._parsed.conditions for call in p.calls(one)]

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of FROM."""
        return self._parsed.streams

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The attributes by which matches are sought apart; empty: there are none."""
        return self._parsed.partition_by

    @property
    def window(self) -> Window | None:
        """How far apart the events of a match may be; ``None``: as far as one likes."""
        return self._parsed.window

    @property
    def consume(self) -> Consume:
        """What an output forgets (CONSUME BY)."""
        return self._parsed.consume

    @property
    def limit(self) -> int | None:
        """How many matches an event may complete at the most; ``None``: any number."""
        return self._parsed.limit

    @property
    def waits(self) -> bool:
        """Whether a match may come later than the event that completes it: when time has passed its window."""
        parsed = self._parsed
        timed = parsed.window is not None and parsed.window.events is None
        return timed and (parsed.last_negation is not None or parsed.keep is not None)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that a result reports, in order."""
        return self._parsed.variables

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that the query reads to find its matches (results may show more)."""
        return self.bound.tested

    def bind(self, schema: Any, **roles: Any) -> Query:
        """The query checked against a schema (see :func:`stretto.compile`).

        The latest bound queries are kept, so that calling with the same text and columns again compiles nothing.

        Raises
        ------
        QueryError
            Something in the query does not fit the schema; the error shows where.

        Examples
        --------
        >>> import stretto
        >>> query = stretto.compile("SELECT * FROM S WHERE A AS a FILTER a[x > 5]")
        >>> str(query.bind({"type": "string", "x": "int64"})) == str(query)
        True
        """
        known = Schema.of(schema, **roles)
        key = (self._parsed.language, self._parsed.text, known.key, functions.version())
        with _BOUND_LOCK:
            if key in _BOUND:
                _BOUND.move_to_end(key)
                return _BOUND[key]
        query = bound_apart(self._parsed, known)
        with _BOUND_LOCK:
            _BOUND[key] = query
            while len(_BOUND) > _MOST_BOUND:
                _BOUND.popitem(last=False)
        return query

    def output_schema(self, output: str = "events", positions: bool = True, timeouts: bool = False) -> pa.Schema:
        """The Arrow schema of results.

        >>> import stretto
        >>> query = stretto.compile("SELECT * FROM S WHERE A ; B", {"type": "string"})
        >>> query.output_schema(positions=True).names
        ['start', 'end', 'positions', 'A', 'B']
        """
        return layout_of(self, output, positions=positions, timeouts=timeouts).schema()

    def program(self, *, valuations: bool = False, split: bool = False, timeouts: bool = False) -> AnyProgram:
        """The compiled machine (made once), which asks for the columns of :attr:`bound`, or of :attr:`split`.

        ``timeouts``: it follows partial matches, of which a first event without the key of a split has one as well, so that it is of
        :attr:`bound`.
        """
        with self._lock:
            bound = self.split if split and not timeouts else self.bound
            key = valuations, bound is not self._bound, timeouts
            if key not in self._programs:
                self._programs[key] = program_for(bound, valuations=valuations, timeouts=timeouts)
            return self._programs[key]

    def _machine(self) -> Machine:
        """What finds the matches, of which perhaps some are kept."""
        from stretto.engines.match_ops.wrapper import AroundProgram

        program = self.program(split=True)
        return program.machine if isinstance(program, AroundProgram) else program

    def automaton(self, attributes: tuple[str, ...]) -> tuple[Afa, Sequence[frozenset[str]]]:
        """The AFA over events with these attributes, and the variables of its marks (made once)."""
        with self._lock:
            if attributes not in self._automata:
                self._automata[attributes] = self._own.afa(self.bound, attributes)
            return self._automata[attributes]

    def explain(self, *, timeouts: bool = False) -> str:
        """What the query means and how it runs: pattern, predicates with their event classes, automaton, engine and why.

        ``timeouts``: also what follows its partial matches, for ``timeouts=``.

        >>> import stretto
        >>> print(stretto.compile("SELECT * FROM S WHERE A AS a ; B").explain().splitlines()[0])
        query      SELECT * FROM S WHERE A AS a ; B
        """
        from stretto.explaining import explain

        if not timeouts or self._bound is None:
            return explain(self._parsed, self._split, self._machine)
        from stretto.engines.match_ops.timeouts import TimeoutProgram

        program = self.program(timeouts=True)
        assert isinstance(program, TimeoutProgram)
        text = explain(self._parsed, self._bound, lambda: program.machine)
        return f"{text.rstrip()}\ntimeouts   {program.told}"

    def draw(self) -> Any:
        """The automaton as a Graphviz graph that shows itself as SVG in a notebook.

        That of a SASE+ query without a schema is drawn as over columns of types that fit its conditions; the keys that conditions say
        depend on the types, and are left out.
        """
        from stretto.explaining import draw

        bound = self._without_types() if self._split is None and self._own.typed else self._split
        return draw(self._parsed, bound, self._machine)

    def _without_types(self) -> AnyBound:
        """The query over columns of which nothing is known but how it reads them."""
        window, time = self._parsed.window, "\0time"  # no name of a column
        kinds = dict.fromkeys(self._parsed.read, pa.null())
        kinds |= dict.fromkeys(("type",), pa.string()) | {time: pa.int64()}
        if window is not None and window.attribute is not None:
            kinds[window.attribute] = pa.int64()
        schema = Schema(kinds, time=time, time_unit="s")
        return self._own.bind(self._parsed, with_types_of_nulls(self._parsed, schema))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<stretto.Query {self.text!r}>"

    def _repr_html_(self) -> str:
        from stretto.explaining import notebook

        return notebook.html([("query", self.text.strip())], self.explain, self.draw)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.text, self.language, self._bound.schema if self._bound else None)


def layout_of(query: Query, output: str = "events", *, positions: bool = True, timeouts: bool = False) -> Layout:
    """The columns of a query's results (found once), for one stream or call."""
    return copy.copy(_layout(query, output, positions, timeouts))


@lru_cache(maxsize=2 * _MOST_BOUND)
def _layout(query: Query, output: str, positions: bool, timeouts: bool) -> Layout:
    found = Layout(query.bound, output=output, positions=positions, timeouts=timeouts)
    found.fix()
    return found


def bound_apart(query: AnyQuery, schema: Schema) -> Query:
    """A parsed query bound to a schema by itself, kept nowhere: also one whose text is that of another query."""
    schema = with_types_of_nulls(query, with_field_types(query, schema))
    return Query(query, LANGUAGES[query.language].bind(query, schema))


def _rebuild(text: str, language: str, schema: Schema | None) -> Query:
    query = Query(_parse(text, language))
    return query if schema is None else query.bind(schema)


@check_arguments(name="compile")
def compile_query(
    text: str | Query,
    schema: Any = None,
    *,
    type: str | None = "type",
    time: str | None = None,
    stream: str | None = None,
    types: Iterable[str] | None = None,
    time_unit: str | None = None,
    language: str | None = None,
) -> Query:
    """Compile a query.

    Parameters
    ----------
    text
        The query: CEQL, SASE+ (which begins with PATTERN), or EQL with ``language="eql"``.
    schema
        What the events look like: a :class:`stretto.Schema`, a ``pyarrow.Schema``, a mapping of names to types, or events. With
        a schema, attributes and types are checked now; without one, when the query meets its events.
    type, time, stream, types, time_unit
        The roles of the columns, as in :class:`stretto.Schema`; ignored when ``schema`` is one.
    language
        ``"ceql"``, ``"sase"`` or ``"eql"``; ``None`` recognises the first two.

    Raises
    ------
    QueryError
        The text is no query, or does not fit the schema. It names line and column, and hints at what was meant.

    Examples
    --------
    >>> import stretto
    >>> stretto.compile("SELECT * FROM S WHERE A; B").streams
    ('S',)
    """
    if isinstance(text, Query):
        query = text
    else:
        query = Query(read(text, language))
    if schema is None:
        return query
    return query.bind(schema, **({} if isinstance(schema, Schema) else roles(type, time, stream, types, time_unit)))


def roles(
    type: str | None, time: str | None, stream: str | None, types: Iterable[str] | None, time_unit: str | None
) -> dict[str, Any]:
    """The roles of columns as arguments of :class:`Schema`."""
    known = None if types is None else frozenset(types)
    return {"type": type, "time": time, "stream": stream, "types": known, "time_unit": time_unit}


@lru_cache(maxsize=256)
def schema_of(
    columns: pa.Schema, type: str | None, time: str | None, stream: str | None, time_unit: str | None
) -> Schema:
    """The schema of a table's columns, of which some have roles."""
    return Schema.of(columns, **roles(type, time, stream, None, time_unit))


def language_of(text: str | Query, language: str | None) -> str:
    """The language of a query: what the caller says, or what its text tells.

    Raises
    ------
    OptionError
        There is no such language, or the query is no text.
    QueryError
        It is SQL.
    """
    if isinstance(text, Query):
        return text.language
    if not isinstance(text, str):
        raise OptionError(f"a query is a string, not {text.__class__.__name__}")
    if language is None:
        return _language_told(text)
    if language == "sql":
        raise OptionError(
            "language='sql': stretto.sql runs statements of SQL, stretto.match a clause over events, stretto.Matcher over a stream"
        )
    if language not in LANGUAGES:
        hint = suggestion(language, LANGUAGES, kind="language")
        raise OptionError(f"language={language!r} is not known; {hint}")
    return language


@lru_cache(maxsize=256)
def _language_told(text: str) -> str:
    """The language that a text tells."""
    if has_clause(text):
        ways = (
            "stretto.match and stretto.sql run it, stretto.spark.sql on Spark, stretto.Matcher over a stream, and "
            "stretto.compile_sql says what it means"
        )
        raise QueryError("this is SQL with MATCH_RECOGNIZE, and no query of events", text=text, hint=ways)
    return "sase" if sase.is_sase(text) else "ceql"


def read(text: str, language: str | None) -> AnyQuery:
    """A text as it was parsed; ``language`` is that of :func:`compile_query`."""
    return _parse(text, language_of(text, language))


@lru_cache(maxsize=256)
def _parse(text: str, language: str) -> AnyQuery:
    return LANGUAGES[language].parse(text)
