"""What is wrong with a pipeline file, each with its place::

pipeline.toml, line 7, column 1: [source] has no key 'pth'
  pth = "trades.csv"
  ^^^
hint: did you mean 'path'?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.errors import OptionError, QueryError, Span


@dataclass(frozen=True)
class Problem:
    """One mistake.

    Parameters
    ----------
    file
        The file that it is in, as the user named it.
    message
        What is wrong, in one line.
    text, span
        The file's text and where in it, if the mistake has a place.
    hint
        What to try instead.
    in_query
        Whether a query's text is wrong, and not the pipeline around it.
    part
        Where in the file ``text`` stands, where that is not the whole file: the row of a table.
    """

    file: str
    message: str
    text: str | None = None
    span: Span | None = None
    hint: str | None = None
    in_query: bool = False
    part: str | None = None

    @property
    def line(self) -> int | None:
        """1-based line of the mistake."""
        return self._drawn.line

    @property
    def column(self) -> int | None:
        """1-based column of the mistake, in characters."""
        return self._drawn.column

    @property
    def _drawn(self) -> QueryError:
        """Errors in queries know how to draw themselves."""
        return QueryError(self.message, text=self.text, span=self.span, hint=self.hint)

    def __str__(self) -> str:
        where = self.file if self.part is None else f"{self.file}, {self.part}"
        return f"{where}{': ' if self.line is None else ', '}{self._drawn}"


class PipelineError(OptionError):
    """A pipeline file that cannot run; ``problems`` has all that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n\n".join(map(str, self.problems)))

    @property
    def in_queries(self) -> bool:
        """Whether only texts of queries are wrong."""
        return all(problem.in_query for problem in self.problems)
