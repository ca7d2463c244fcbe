"""Reading a text with a grammar: an LALR parser with a contextual lexer, whose callbacks build the values directly.

It needs no recursion, so that neither a long formula nor a deeply nested one can exhaust the stack; how deep the values may
be nested is bounded in :mod:`~stretto.languages.expressions.transformer`.

A language is a package with ``grammar.lark``, ``transformer.py`` (``CALLBACKS`` and ``RESERVED``) and ``diagnostics.py``
(``explain``), which are loaded when a text is read or found wrong. Its ``parser.py`` says what kinds of texts there are.

Tables of grammars, kept: to make an LALR table of a grammar takes as long as all else that a first query needs.

They are kept as JSON beside the compiled kernels, under a digest of the grammar and of Lark's version. A wheel has those of all
languages.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto import _jit
from stretto._jit import bundle
from stretto.errors import QueryError, placed
from stretto.folders import replaced
from stretto.languages.expressions.tokens import Mistake, reserve

if TYPE_CHECKING:
    from lark import Lark


FOLDER = "grammars"  #: in the folder of compiled code

#: What stands for a dictionary whose keys are no texts: its pairs.
_PAIRS = "pairs"

#: Options that are functions, which whoever loads a table gives.
_GIVEN = ("transformer", "lexer_callbacks")


def lalr_parser(grammar: str, start: str, **given: Any) -> Lark:
    """The parser of a grammar with a contextual lexer; ``given``: Lark's ``transformer`` and ``lexer_callbacks``."""
    from lark import Lark, __version__

    name = hashlib.sha256("\0".join([__version__, start, grammar]).encode()).hexdigest()[:32] + ".json"
    kept = _kept(name)
    if kept is not None:
        loaded: Lark = Lark._load_from_dict(**kept, **given)  # type: ignore[no-untyped-call]
        return loaded
    made = Lark(grammar, start=start, parser="lalr", lexer="contextual", maybe_placeholders=False, **given)
    _keep(name, made)
    return made


def _kept(name: str) -> dict[str, Any] | None:
    data = bundle.read(FOLDER, name)
    if data is None and _jit.CACHE_DIRECTORY:
        try:
            data = Path(_jit.CACHE_DIRECTORY, FOLDER, name).read_bytes()
        except OSError:
            return None
    if data is None:
        return None
    try:
        kept: dict[str, Any] = json.loads(data, object_hook=_with_numbers)
    except ValueError:  # the file was cut off
        return None
    return kept


def _keep(name: str, parser: Lark) -> None:
    """Keep the table of a parser, if there is a place for it."""
    if not _jit.CACHE_DIRECTORY:
        return
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = parser.memo_serialize([TerminalDef, Rule])
    data["options"] = {option: value for option, value in data["options"].items() if option not in _GIVEN}
    folder = Path(_jit.CACHE_DIRECTORY, FOLDER)
    with contextlib.suppress(OSError):  # the disk is full, say: the parser is there all the same
        folder.mkdir(exist_ok=True)
        with replaced(folder / name) as draft:
            draft.write_text(json.dumps(_with_pairs({"data": data, "memo": memo})), encoding="utf-8")


def _with_pairs(value: Any) -> Any:
    """A value whose dictionaries have texts as keys, as JSON asks."""
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: _with_pairs(item) for key, item in value.items()}
        return {_PAIRS: [[key, _with_pairs(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple | set | frozenset):
        return [_with_pairs(item) for item in value]
    return value


def _with_numbers(value: dict[str, Any]) -> Any:
    """A dictionary as it was before :func:`_with_pairs`."""
    return dict(value[_PAIRS]) if value.keys() == {_PAIRS} else value


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
