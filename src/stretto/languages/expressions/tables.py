"""Tables of grammars, kept: to make an LALR table of a grammar takes as long as all else that a first query needs.

They are kept as JSON beside the compiled kernels, under a digest of the grammar and of Lark's version. A wheel has those of all
languages.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto import _jit
from stretto._jit import bundle
from stretto.folders import replaced

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
