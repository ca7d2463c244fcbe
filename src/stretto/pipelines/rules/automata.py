"""Rules that are automata: texts, which are read once the types of events are known."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.languages.afa.written import read_keys


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
    language = "afa"

    def __post_init__(self) -> None:
        read_keys(self.text)

    def explain(self) -> str:
        """What it says."""
        return f"{self.text.strip()}\n"
