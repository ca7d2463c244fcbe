"""From queries, automata and clauses to parts, which are compiled once for all sets of patterns over a schema."""

from __future__ import annotations

from collections.abc import Hashable

from stretto.events import Schema
from stretto.languages.afa.builder import AFA, is_afa
from stretto.languages.afa.written import as_text, check_text, read_afa, write_afa
from stretto.languages.clauses import is_clause
from stretto.matching.compiled import Query, compile_query, language_of
from stretto.matching.executors.row_pattern import read_clause
from stretto.matching.pattern_set.afa_run import LANGUAGE, CompiledAutomaton, with_functions
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, CompiledQuery, Latest
from stretto.matching.pattern_set.row_pattern_run import CompiledRowPattern
from stretto.query.afa import Afa
from stretto.query.query import refuse_joined


class Parts:
    """The parts of queries, automata and clauses over one schema, compiled or as they were compiled before.

    Parameters
    ----------
    schema
        The columns of the events.
    valuations
        As in :func:`stretto.match`.
    """

    def __init__(self, schema: Schema, *, valuations: bool) -> None:
        self._schema, self._valuations = schema, valuations
        self._parts: Latest[tuple[str, str], CompiledPattern] = Latest(1 << 12)

    def of(self, query: str | Query | AFA | Afa, language: str | None) -> CompiledPattern:
        """The part of a query, an automaton or a clause.

        Raises
        ------
        QueryError, OptionError, LimitError
            It is none of these, does not fit the schema, or is too large.
        """
        if is_afa(query):
            return self._of_automaton(query.frozen)
        if language == LANGUAGE and isinstance(query, str):
            return self._parts.get((LANGUAGE, query), lambda: self._read(query))
        if isinstance(query, str) and is_clause(query, language):
            return self._parts.get(
                (CompiledRowPattern.language, query),
                lambda: CompiledRowPattern(read_clause(query), self._schema, query),
            )
        name = language_of(query, language)
        return self._parts.get((name, str(query)), lambda: self._compiled(query, name))

    def _of_automaton(self, afa: Afa) -> CompiledAutomaton:
        if with_functions(afa):
            return CompiledAutomaton(afa, self._schema)
        text = as_text(afa)
        part = self._parts.get((LANGUAGE, text), lambda: CompiledAutomaton(afa, self._schema, write_afa(afa)))
        assert isinstance(part, CompiledAutomaton)
        if part.afa.arcs != afa.arcs:
            check_text(text, afa)
        return part

    def _read(self, text: str) -> CompiledAutomaton:
        return CompiledAutomaton(read_afa(text, self._schema), self._schema, text)

    def _compiled(self, text: str | Query, language: str) -> CompiledQuery:
        return _bound(compile_query(text, language=language), self._schema, valuations=self._valuations)


#: Sets of patterns come and go (one for each bucket of keys on Spark); what is compiled stays.
_PARTS: Latest[Hashable, Parts] = Latest(8)


def parts_over(schema: Schema, *, valuations: bool) -> Parts:
    """The parts of queries, automata and clauses over a schema, which all sets of patterns over it share."""
    return _PARTS.get((schema.key, valuations), lambda: Parts(schema, valuations=valuations))


def _bound(query: Query, schema: Schema, *, valuations: bool) -> CompiledQuery:
    refuse_joined(query.parsed.joined, "beside other patterns")
    return CompiledQuery(query.bind(schema), valuations=valuations)
