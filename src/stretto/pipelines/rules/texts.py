"""Rules that are automata and clauses of SQL: texts, which are read in full once the types of events are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stretto.explaining.rows import explain_clause
from stretto.languages.afa.written import read_keys
from stretto.matching.executors.row_pattern import read_clause


@dataclass(frozen=True)
class AutomatonText:
    """The text of an automaton, in the place of a query.

    Parameters
    ----------
    text
        TOML or JSON (:func:`stretto.read_afa`).

    Raises
    ------
    OptionError
        It is neither, or has a key that automata have not. What is wrong with its arcs shows when it meets events.
    """

    text: str
    language: ClassVar = "afa"

    def __post_init__(self) -> None:
        read_keys(self.text)

    def explain(self) -> str:
        """What it says."""
        return f"{self.text.strip()}\n"


@dataclass(frozen=True)
class ClauseText:
    """The text of a ``MATCH_RECOGNIZE`` clause, in the place of a query.

    Parameters
    ----------
    text
        The clause, or ``SELECT * FROM`` a table with it.

    Raises
    ------
    QueryError
        It is none. What is wrong with its columns shows when it meets events.
    """

    text: str
    language: ClassVar = "sql"

    def __post_init__(self) -> None:
        read_clause(self.text)

    def explain(self) -> str:
        """What it says."""
        return explain_clause(read_clause(self.text), None)
