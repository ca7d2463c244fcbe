"""An automaton, or a query that answers ahead of what is certain, as it travels to workers and runs there."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from stretto.frame import arrow_table
from stretto.languages.afa.written import read_afa
from stretto.matching.api.matcher import Matcher
from stretto.query.afa import Afa
from stretto.query.functions import Paths
from stretto.spark.batch.worker import Roles, bound_query

#: The language of automata that are texts.
AFA = "afa"

#: Columns of an automaton's output that mean nothing in a DataFrame.
_PLACES = ("start", "end", "positions")


class Plain:
    """A dataclass of plain data, which travels to workers; ``schema``: the events' columns as a serialized Arrow schema."""

    schema: bytes
    #: The column that tells rows of what timed out: these have none.
    reached: str | None = None

    @property
    def attributes(self) -> Mapping[str, pa.DataType]:
        """The columns of events."""
        kinds = pa.ipc.read_schema(pa.py_buffer(self.schema))
        return dict(zip(kinds.names, kinds.types, strict=True))

    @property
    def plain(self) -> dict[str, Any]:
        """The arguments."""
        return dict(vars(self))


@dataclass(frozen=True)
class Revised(Plain):
    """What revises its answers, as plain data.

    Parameters
    ----------
    text, language
        An automaton (:func:`stretto.write_afa`) or a query.
    schema
        The events' columns but for the sign, as a serialized Arrow schema.
    roles, sequence
        The columns for type, time and stream, and the unit of time; the one that orders events of the same time.
    ahead
        How far answers go ahead, in ticks of the time; infinite: nothing waits.
    options
        Of the matcher: ``sign``, ``until``, ``bag``, ``numbered``; of what counts or chooses ``valuations``.
    changes
        Changes of arcs that are known when the query starts, as an Arrow table in bytes; ``None``: arcs do not change.
    functions
        The registered functions that a query calls, or those of an automaton's arcs, by their paths.
    """

    text: str
    language: str
    schema: bytes
    roles: Roles
    sequence: str | None
    output: str
    ahead: int | float
    options: Mapping[str, Any]
    changes: bytes | None = None
    budget: int | float | str | None = None
    functions: Paths = ()

    @property
    def identity(self) -> dict[str, Any]:
        told = {name: self.plain[name] for name in ("language", "output", "options")}
        changes = None if self.changes is None else hashlib.sha256(self.changes).hexdigest()
        functions = (
            [] if self.language == AFA else [list(one) for one in self.functions]
        )  # an automaton's text has its own
        return told | {"speculation": str(self.ahead), "arcs": changes, "functions": functions}

    @property
    def result(self) -> pa.Schema:
        """The columns of what comes out."""
        columns = [*self.attributes.items(), *([(self.options["sign"], pa.int8())] if "sign" in self.options else [])]
        return self.shown(self.start().push(pa.schema(columns).empty_table())).schema

    def start(self, *, ordered: bool = False) -> Matcher:
        """A matcher at the beginning of the stream; ``ordered``: the events come in order, and none is taken back."""
        ahead = None if ordered or self.ahead == math.inf else self.ahead
        own = {"sequence": self.sequence, "late": "side", "budget": self.budget, **self.options}
        if self.language != AFA:
            query = bound_query(self.text, self.schema, self.roles, self.language, self.functions)
            return Matcher(query, output=self.output, positions=False, speculation=self.ahead, **own)
        kinds = list(self.attributes.items())
        if "sign" in self.options:
            kinds.append((self.options["sign"], pa.int8()))
        changing = self.changes is not None
        if changing:
            own["dynamic"] = "explicit"
        made = Matcher(
            automaton(self.text, self.functions),
            pa.schema(kinds),
            time=self.roles[1],
            speculation=ahead,
            ordered=ordered and not changing,
            **own,
        )
        if changing and (known := arrow_table(self.changes)).num_rows:
            made.push([], arcs=known)
        return made

    def shown(self, found: pa.Table) -> pa.Table:
        """A result without what means nothing in a DataFrame, and without signs where nothing is taken back."""
        gone = [name for name in _PLACES if self.language == AFA and name in found.column_names]
        if not self.ahead:
            gone.append("sign")
        if self.language == AFA and not found.schema.field("register").type.num_fields:
            gone.append("register")
        return found.drop_columns(gone)


@lru_cache(maxsize=16)
def automaton(text: str, functions: Paths) -> Afa:
    """The automaton of a task, with the functions that the driver's has, by their paths."""
    return read_afa(text, functions=[path for _, path in functions])
