"""From queries, automata and clauses to parts, which are compiled once for all sets of patterns over a schema."""

from __future__ import annotations

from collections.abc import Hashable

from stretto.events import Schema
from stretto.languages.afa.builder import AFA
from stretto.languages.afa.written import as_text, check_text, read_afa, write_afa
from stretto.languages.clauses import is_clause
from stretto.matching.compiled import Query, compile_query, language_of
from stretto.matching.many.automata import LANGUAGE, AutomatonPart, with_functions
from stretto.matching.many.clauses import ClausePart
from stretto.matching.many.parts import Latest, Part, QueryPart
from stretto.matching.recognizing import read_clause
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
        self._parts: Latest[tuple[str, str], Part] = Latest(1 << 12)

    def of(self, query: str | Query | AFA | Afa, language: str | None) -> Part:
        """The part of a query, an automaton or a clause.

        Raises
        ------
        QueryError, OptionError, LimitError
            It is none of these, does not fit the schema, or is too large.
        """
        if isinstance(query, AFA | Afa):
            return self._of_automaton(query.frozen)
        if language == LANGUAGE and isinstance(query, str):
            return self._parts.get((LANGUAGE, query), lambda: self._read(query))
        if isinstance(query, str) and is_clause(query, language):
            return self._parts.get(
                (ClausePart.language, query), lambda: ClausePart(read_clause(query), self._schema, query)
            )
        name = language_of(query, language)
        return self._parts.get((name, str(query)), lambda: self._compiled(query, name))

    def _of_automaton(self, afa: Afa) -> AutomatonPart:
        if with_functions(afa):
            return AutomatonPart(afa, self._schema)
        text = as_text(afa)
        part = self._parts.get((LANGUAGE, text), lambda: AutomatonPart(afa, self._schema, write_afa(afa)))
        assert isinstance(part, AutomatonPart)
        if part.afa.arcs != afa.arcs:
            check_text(text, afa)
        return part

    def _read(self, text: str) -> AutomatonPart:
        return AutomatonPart(read_afa(text, self._schema), self._schema, text)

    def _compiled(self, text: str | Query, language: str) -> QueryPart:
        return _bound(compile_query(text, language=language), self._schema, valuations=self._valuations)


#: Sets of patterns come and go (one for each bucket of keys on Spark); what is compiled stays.
_PARTS: Latest[Hashable, Parts] = Latest(8)


def parts_over(schema: Schema, *, valuations: bool) -> Parts:
    """The parts of queries, automata and clauses over a schema, which all sets of patterns over it share."""
    return _PARTS.get((schema.key, valuations), lambda: Parts(schema, valuations=valuations))


def _bound(query: Query, schema: Schema, *, valuations: bool) -> QueryPart:
    refuse_joined(query.parsed.joined, "beside other patterns")
    return QueryPart(query.bind(schema), valuations=valuations)
