"""The functions of arcs, some of which may compile in another thread while the others are used."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from stretto.engines.afa import structure as s
from stretto.engines.afa.code import AfaCode
from stretto.engines.afa.graph import GraphTables

_COMPILER = ThreadPoolExecutor(1, "stretto-compiler")


class Functions:
    """What the kernel calls for fences and transfers.

    Parameters
    ----------
    code
        The functions.
    tables
        The arcs that they are of.
    """

    def __init__(self, code: AfaCode, tables: GraphTables) -> None:
        self._code, self._tables = code, tables
        #: Arcs that are valid from a later time on; they are linked when an event comes that may take them.
        self.later: list[int] = []
        self._compiling: Future[tuple[int, Any]] | None = None
        self._linked: Any = None
        self._version = 0  # of the code that is being compiled

    def theta(self) -> Any:
        """The functions of all arcs that are linked."""
        if self._compiling is not None:
            # What has come since is needed at once.
            if not self._compiling.done() and self._code.version == self._version:
                return self._linked
            self._take()
        self._linked = self._code.theta()
        return self._linked

    def link_due(self, time: int) -> None:
        """Link the arcs that an event of this time may take, and wait for their functions."""
        due = [number for number in self.later if self._tables.arcs[number, s.SINCE] <= time]
        if due:
            self._take()
        for number in due:
            self._tables.link(number)
            self.later.remove(number)

    def compile_for(self, number: int) -> None:
        """Compile an arc's functions while the others go on; it is linked when an event comes that may take it."""
        self._take()
        self._linked = self._linked or self._code.theta()
        self.later.append(number)
        self._version = self._code.version
        self._compiling = _COMPILER.submit(self._code.compilation())

    def _take(self) -> None:
        """Wait for what compiles."""
        if self._compiling is not None:
            self._code.take(self._compiling.result())
            self._compiling = None
