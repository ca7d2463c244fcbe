"""What ``stretto.explain`` answers."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from stretto.explaining.dot import Drawing
from stretto.explaining.notebook import picture
from stretto.explaining.text import section


class Counts(Protocol):
    """How far events get."""

    @property
    def lines(self) -> Sequence[str]:
        """In words."""

    @property
    def table(self) -> pa.Table:
        """As a table."""

    def draw(self, of: str) -> Drawing:
        """As a picture; ``of`` says of how many events."""


@dataclass(frozen=True)
class Explanation:
    """What :func:`stretto.explain` answers. ``str()`` says it in words, and a notebook shows it.

    Parameters
    ----------
    text
        What the query means and how it runs, as :meth:`stretto.Query.explain` says it.
    looked_at
        How many events there were, after ``key=`` and ``between=``.
    counts
        The steps of the query, or the states and arcs of the automaton, with their numbers.
    warnings
        Types, conditions and keys of the query that no event has, and windows that are too short, in words.

    >>> import stretto
    >>> events = [{"type": "A", "x": 1}, {"type": "B", "x": 4}]
    >>> explained = stretto.explain("SELECT * FROM S WHERE A ; B AS b FILTER b[x > 5]", events)
    >>> explained.steps.select(["step", "events", "alone"]).to_pylist()
    [{'step': 'A', 'events': 1, 'alone': 1}, {'step': 'B AS b', 'events': 1, 'alone': 0}]
    """

    text: str
    looked_at: int
    counts: Counts
    warnings: tuple[str, ...] = ()

    @property
    def steps(self) -> pa.Table:
        """The steps as a table, one row for each.

        ``alternative`` (int64, from 1: of a formula that is a disjunction), ``step`` (string), and numbers of events (int64):
        ``events`` that have a type of the step, those that complete it by itself (``alone``), those that complete the steps up to
        it however long these last (``reached``), and in the windows of the query (``within``); NULL where that is no query.
        ``at_least`` (list<string>) names the columns whose number may be greater.

        Of an automaton a row for each state, and behind it one for each arc that leaves it: ``state`` (string), ``arc`` (string,
        NULL in the row of the state), ``target`` (string, of an arc), ``events`` (int64): those that lead to the state, or take the
        arc; NULL of the states in which it begins, and of arcs that take no event. ``at_least`` (bool): it may be greater.
        """
        return self.counts.table

    @property
    def _of(self) -> str:
        return f"of {in_words(self.looked_at)}"

    def __str__(self) -> str:
        shown = [self.text.rstrip(), section("counts", "\n".join([self._of, *self.counts.lines]))]
        return "\n".join([*shown, *([section("warnings", "\n".join(self.warnings))] if self.warnings else [])])

    def draw(self) -> Drawing:
        """The steps, or the automaton, with these numbers, as a Graphviz graph: thick where many events get to; steps that none gets
        to are dashed, states and arcs grey.

        >>> import stretto
        >>> print(stretto.explain("SELECT * FROM S WHERE A ; B", [{"type": "A"}, {"type": "A"}]).draw())
        digraph counts {
          rankdir=LR;
          node [shape=box, style=rounded, fontname="Helvetica", fontsize=11];
          start [shape=point, width=0.08];
          label="of 2 events"; fontname="Helvetica"; fontsize=10;
          s0_0 [label="A\\n2 events", penwidth=1.2];
          start -> s0_0 [penwidth=1.2];
          s0_1 [label="B\\n0 events\\nup to here: 0", style="rounded,dashed", peripheries=2];
          s0_0 -> s0_1 [style="dashed"];
        }
        <BLANKLINE>
        """
        return self.counts.draw(self._of)

    def _repr_html_(self) -> str:
        """The same text, for notebooks, and the picture."""
        return f"<pre>{html.escape(str(self))}</pre>{picture(self.draw)}"


def in_words(number: int) -> str:
    """A number of events, in words."""
    return f"{number:,} event{'' if number == 1 else 's'}"
