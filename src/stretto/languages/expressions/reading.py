"""Reading a text with a grammar: an LALR parser with a contextual lexer, whose callbacks build the values directly.

It needs no recursion, so that neither a long formula nor a deeply nested one can exhaust the stack; how deep the values may
be nested is bounded in :mod:`~stretto.languages.expressions.transformer`.

A language is a package with ``grammar.lark``, ``transformer.py`` (``CALLBACKS`` and ``RESERVED``) and ``diagnostics.py``
(``explain``), which are loaded when a text is read or found wrong. Its ``parser.py`` says what kinds of texts there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from stretto.errors import QueryError, placed
from stretto.languages.expressions.tables import lalr_parser
from stretto.languages.expressions.tokens import Mistake, reserve

if TYPE_CHECKING:
    from lark import Lark

LONGEST = 1_000_000
"""Characters that a query may have."""

#: The grammars that a language's own refers to, in ``expressions/``.
SHARED = ("predicates.lark", "values.lark")

#: … and that of counts, sums and the best matches.
TOTALS = "totals.lark"


@dataclass(frozen=True, eq=False)
class Language:
    """A language: its package, what each kind of text looks like, and the shared grammars that its own refers to."""

    package: str
    forms: Mapping[str, str]
    shared: tuple[str, ...] = SHARED

    def read(self, text: str, what: str = "query") -> Any:
        """Read a text of a kind, which is a rule of the grammar: what the callbacks make of it.

        Raises
        ------
        Mistake
            It is no such text.
        """
        from lark import UnexpectedInput

        if not text.strip("\ufeff \t\r\n"):
            raise Mistake(f"the {what} is empty", None, self.forms[what])
        try:
            return parser(self, what).parse(text)
        except UnexpectedInput as error:
            explain = import_module(f"{self.package}.diagnostics").explain
            raise explain(text, error, what) from None


def languages() -> Iterator[Language]:
    """All languages."""
    rooms = files("stretto.languages")
    for name in sorted(entry.name for entry in rooms.iterdir() if (entry / "parser.py").is_file()):
        module = import_module(f"stretto.languages.{name}.parser")
        yield from (value for value in vars(module).values() if isinstance(value, Language))


@lru_cache(maxsize=16)
def parser(language: Language, start: str, *, trees: bool = False) -> Lark:
    """Make the parser of a language's texts of one kind; with ``trees`` it gives Lark's own, without any callback."""
    callbacks = import_module(f"{language.package}.transformer")
    sources = [files("stretto.languages.expressions").joinpath(name) for name in language.shared]
    sources.append(files(language.package).joinpath("grammar.lark"))  # which may extend their rules
    return lalr_parser(
        "\n".join(source.read_text(encoding="utf-8") for source in sources),
        start,
        transformer=None if trees else callbacks.CALLBACKS,
        lexer_callbacks=dict.fromkeys(callbacks.RESERVED, partial(reserve, callbacks.RESERVED)),
    )


@contextmanager
def mistakes_of(text: str, what: str = "query") -> Iterator[None]:
    """Turn a mistake in a text into the error that shows its place; refuse a text that is too long."""
    if len(text) > LONGEST:
        raise QueryError(f"the {what} has {len(text):,} characters; at most {LONGEST:,} are allowed")
    with placed(text):
        try:
            yield
        except Mistake as mistake:
            raise QueryError(mistake.message, span=mistake.span, hint=mistake.hint) from None
