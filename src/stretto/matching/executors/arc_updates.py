"""The arcs of an automaton that runs: which there are, and how they change between rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto.engines.afa.runner import AfaRunner
from stretto.errors import OptionError, StrettoError, hinted
from stretto.languages.afa.builder import make_arc
from stretto.matching.executors.arc_stream import ArcChanges
from stretto.matching.lifecycle import Life
from stretto.query.afa import Afa, Arc
from stretto.times import BEFORE_ALL


class Arcs:
    """The arcs of a run.

    Parameters
    ----------
    afa
        The automaton that it began with.
    run
        The run.
    tick
        A time that a user gives, in ticks.
    life
        Where the matcher stands.
    """

    def __init__(self, afa: Afa, run: AfaRunner, tick: Callable[[Any], int], life: Life) -> None:
        self._afa, self._run, self._tick, self._life = afa, run, tick, life
        self._explicit = run.roles.dynamic == "explicit"

    def known(self, *, retired: bool) -> list[Arc]:
        """The arcs with their lifetimes; see :meth:`stretto.Matcher.arcs`."""
        tables = self._run.tables
        numbers = range(1, tables.arcs.shape[0]) if retired else tables.known.values()
        return [arc for arc in map(tables.arc, numbers) if not _never(arc)]

    def changes(self, given: Any, rows: int) -> ArcChanges:
        """Changes between the rows of a batch."""
        run = self._run
        run.arcs.compact()
        size = run.sizes
        try:
            return ArcChanges(given, self._afa, run, rows, self._tick)
        finally:
            run.arcs.refit(*size)

    def add(
        self,
        source: str,
        target: str,
        *,
        when: Any,
        then: Any,
        id: str | None,
        kind: str,
        since: Any,
        until: Any,
        final: str | None,
    ) -> None:
        """Add an arc; see :meth:`stretto.Matcher.add_arc`."""
        self._life.refuse_finished()
        run = self._run
        if id is None:
            raise OptionError("an arc that comes while the automaton runs needs a name: id='…'")
        if not self._explicit and until is not None:
            raise OptionError("an arc has a lifetime of its own only with Matcher(…, dynamic='explicit')")
        if id in run.tables.known and not self._is_retired(id):
            raise OptionError(f"there is an arc '{id}' already; retire_arc('{id}') first")
        bounds = [None if time is None else self._tick(time) for time in (since, until)]
        if not self._explicit and bounds[0] is not None and bounds[0] <= run.seen:
            raise OptionError(f"since={since!r} concerns events that were seen: use Matcher(…, dynamic='explicit')")
        arc = make_arc(
            self._afa, source, target, when=when, then=then, id=id, kind=kind, since=bounds[0], until=bounds[1]
        )
        if final is not None:
            run.arcs.check_final(arc.target, final)
        undo = run.tables.finals_saved()
        if final is not None:
            run.arcs.make_final(arc.target, final)
        try:
            run.arcs.add(arc)
        except StrettoError:  # nothing has changed
            run.tables.load_finals(undo)
            raise

    def retire(self, id: str, at: Any) -> None:
        """Retire an arc; see :meth:`stretto.Matcher.retire_arc`."""
        self._life.refuse_finished()
        run = self._run
        if id not in run.tables.known or self._is_retired(id):
            known = [name for name in run.tables.known if not self._is_retired(name)]
            raise OptionError(hinted(f"no arc '{id}' is in force", id, known, kind="arc"))
        if at is not None and not self._explicit:
            raise OptionError("retire_arc(…, at=…) needs Matcher(…, dynamic='explicit')")
        run.arcs.retire(id, None if at is None else self._tick(at))

    def advance(self, time: Any) -> None:
        """A punctuation of the arcs; see :meth:`stretto.Matcher.advance_arcs`."""
        self._run.punctuations.advance_arcs(self._tick(time))

    def _is_retired(self, name: str) -> bool:
        arc = self._run.tables.arc(self._run.tables.known[name])
        return _never(arc) if self._explicit else arc.until is not None


def _never(arc: Arc) -> bool:
    """Whether no event can take an arc: it was retired from the beginning of its lifetime on."""
    since = BEFORE_ALL if arc.since is None else arc.since
    return arc.until is not None and arc.until <= since
