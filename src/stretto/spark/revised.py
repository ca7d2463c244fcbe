"""An automaton, or a query that answers ahead of what is certain, as it travels to workers and runs there.

What a signed stream of matches comes to: the matches that hold, and an id that a match and what takes it back share.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.events import require
from stretto.frame import arrow_table
from stretto.languages.afa.written import read_afa
from stretto.matching.api.matcher import Matcher
from stretto.query.afa import Afa
from stretto.query.functions import Paths
from stretto.spark.batch.worker import Roles, bound_query
from stretto.spark.frames import column, repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


ID = "match_id"

#: How often a match holds, less how often it did.
CHANGE = "change"

_SIGN = "sign"


@check_arguments
def with_match_id(matches: DataFrame) -> DataFrame:
    """Matches with a column ``match_id`` in front, which a match has in common with the row that takes it back.

    It is a SHA-256 of all that the match shows but its sign, the same in every run, batch or streaming. Matches that show the same
    have the same id: let them show a column that tells events apart.

    Raises
    ------
    OptionError
        There is a column ``match_id`` already.

    Examples
    --------
    >>> from stretto import spark
    >>> matches = spark.session().createDataFrame([(1, 1, 5), (-1, 1, 5), (1, 2, 6)], "sign int, start_time int, end_time int")
    >>> ids = [row.match_id for row in spark.with_match_id(matches).collect()]
    >>> len(ids[0]), ids[0] == ids[1], ids[0] == ids[2]
    (64, True, False)
    """
    from pyspark.sql import functions as F

    if ID in matches.columns:
        raise OptionError(f"the matches have a column '{ID}' already: rename it")
    shown = [column(name) for name in matches.columns if name != _SIGN]
    times = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS", "ignoreNullFields": "false"}
    identity = F.sha2(F.to_json(F.struct(*shown), times | {"timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}), 256)
    return matches.select(identity.alias(ID), *map(column, matches.columns))


def changes(matches: DataFrame) -> DataFrame:
    """What signed matches change: ``match_id``, ``change``, and what the match shows; without those that come to nothing."""
    from pyspark.sql import functions as F

    require(matches.columns, _SIGN, "sign")
    named = matches if ID in matches.columns else with_match_id(matches)
    shown = [name for name in named.columns if name not in (_SIGN, ID)]
    total = F.sum(column(_SIGN).cast("bigint")).alias(CHANGE)
    # Any of the rows will do: they show the same.
    summed = named.groupBy(ID).agg(total, *(F.any_value(column(name)).alias(f"_{at}") for at, name in enumerate(shown)))
    kept = summed.filter(column(CHANGE) != 0)
    return kept.select(ID, CHANGE, *(F.col(f"_{at}").alias(name) for at, name in enumerate(shown)))


@check_arguments
def current(matches: DataFrame) -> DataFrame:
    """The matches that hold: those of a signed DataFrame that are given and not taken back.

    Parameters
    ----------
    matches
        A batch with a column ``sign``, such as what a stream with ``speculation=`` has written. For a table that is kept while the
        stream runs, see :mod:`stretto.connectors.current`.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns but for the sign, with ``match_id`` in front.

    Raises
    ------
    DataError
        There is no column ``sign``. When Spark runs, a match is taken back that was not given.
    OptionError
        The DataFrame is a stream.

    Examples
    --------
    >>> from stretto import spark
    >>> matches = spark.session().createDataFrame([(1, 1, 5), (-1, 1, 5), (1, 2, 6)], "sign int, start_time int, end_time int")
    >>> spark.current(matches).drop("match_id").collect()
    [Row(start_time=2, end_time=6)]
    """
    from pyspark.sql import functions as F

    if matches.isStreaming:
        raise OptionError(
            "what holds of a stream changes with it: keep a table, writeStream.foreachBatch(connectors.current.writer(…))"
        )
    return repeated(changes(matches), CHANGE, F.concat(F.lit("a match is taken back that does not hold: "), column(ID)))


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
