"""Reading a text with a grammar: an LALR parser with a contextual lexer, whose callbacks build the values directly.

It needs no recursion, so that neither a long formula nor a deeply nested one can exhaust the stack; how deep the values may
be nested is bounded in :mod:`~stretto.languages.parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from stretto.errors import QueryError
from stretto.languages.parts import Mistake, reserve

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput

__all__ = ["LONGEST", "make_parser", "mistakes_of", "read"]

LONGEST = 1_000_000
"""Characters that a query may have."""


def make_parser(
    package: str,
    transformer: Any,
    reserved: Mapping[str, frozenset[str]],
    *,
    start: str = "query",
    shared: bool = True,
) -> Lark:
    """The parser of ``grammar.lark`` in a package, together with the grammar of conditions that most languages share."""
    from lark import Lark

    sources = [files(package).joinpath("grammar.lark")]
    if shared:
        sources.append(files("stretto.languages").joinpath("predicates.lark"))
    return Lark(
        "\n".join(source.read_text(encoding="utf-8") for source in sources),
        start=start,
        parser="lalr",
        lexer="contextual",
        transformer=transformer,
        lexer_callbacks=dict.fromkeys(reserved, partial(reserve, reserved)),
        maybe_placeholders=False,
    )


@contextmanager
def mistakes_of(text: str, what: str = "query") -> Iterator[None]:
    """A mistake in a text as the error that shows its place; a text that is too long is refused."""
    if len(text) > LONGEST:
        raise QueryError(f"the {what} has {len(text):,} characters; at most {LONGEST:,} are allowed")
    try:
        yield
    except Mistake as mistake:
        raise QueryError(mistake.message, text=text, span=mistake.span, hint=mistake.hint) from None


def read(
    text: str,
    parser: Callable[[], Lark],
    explain: Callable[[str, UnexpectedInput], Mistake],
    form: str,
    what: str = "query",
) -> Any:
    """What the callbacks make of a text; ``form`` shows what such a text looks like."""
    from lark import UnexpectedInput

    if not text.strip("\ufeff \t\r\n"):
        raise Mistake(f"the {what} is empty", None, form)
    try:
        return parser().parse(text)
    except UnexpectedInput as error:
        raise explain(text, error) from None
