"""stretto: complex event recognition on Spark and in this process.

>>> import stretto
>>> events = [{"type": "A"}, {"type": "B"}, {"type": "A"}, {"type": "B"}]
>>> stretto.match("SELECT * FROM S WHERE A; B WITHIN 1 EVENTS", events, output="positions").to_pylist()
[{'start': 0, 'end': 1, 'positions': [0, 1]}, {'start': 2, 'end': 3, 'positions': [2, 3]}]
"""

import gc
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stretto.asking.call import why_not
    from stretto.asking.counts import explain
    from stretto.asking.explanation import Explanation
    from stretto.errors import (
        DataError,
        EngineError,
        LimitError,
        OptionError,
        QueryError,
        SnapshotError,
        StrettoError,
        StrettoWarning,
    )
    from stretto.events import Schema
    from stretto.explaining.answer import Answer
    from stretto.languages.afa.builder import AFA
    from stretto.languages.afa.elements import element
    from stretto.languages.afa.written import read_afa, write_afa
    from stretto.matching.api.match import iter_matches, match, match_sets
    from stretto.matching.api.matcher import Matcher
    from stretto.matching.compiled import Query
    from stretto.matching.compiled import compile_query as compile
    from stretto.matching.output.match_sets import MatchSet
    from stretto.matching.pattern_set.changes import Change
    from stretto.matching.pattern_set.pattern_set import PatternSet
    from stretto.matching.reorder import Cleanse
    from stretto.matching.sql.compiled import SqlQuery, compile_sql
    from stretto.matching.sql.run import sql
    from stretto.pipelines.rules import RuleSet, read_rules
    from stretto.query.functions import function
    from stretto.views import View, density, show, timeline

__all__ = [
    "AFA",
    "Answer",
    "Change",
    "Cleanse",
    "DataError",
    "EngineError",
    "Explanation",
    "LimitError",
    "MatchSet",
    "Matcher",
    "OptionError",
    "PatternSet",
    "Query",
    "QueryError",
    "RuleSet",
    "Schema",
    "SnapshotError",
    "SqlQuery",
    "StrettoError",
    "StrettoWarning",
    "View",
    "compile",
    "compile_sql",
    "dataflow",
    "density",
    "element",
    "explain",
    "function",
    "iter_matches",
    "match",
    "match_sets",
    "read_afa",
    "read_rules",
    "show",
    "spark",
    "sql",
    "studio",
    "timeline",
    "why_not",
    "write_afa",
]

try:
    __version__ = version("stretto")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0"

#: Where what is public lies, in this package. It is imported when it is first used: one call needs a part of it.
_HOMES = {
    "asking.call": ["why_not"],
    "asking.counts": ["explain"],
    "asking.explanation": ["Explanation"],
    "errors": [name for name in __all__ if name.startswith("Stretto") or name.endswith("Error")],
    "events": ["Schema"],
    "explaining.answer": ["Answer"],
    "languages.afa.builder": ["AFA"],
    "languages.afa.elements": ["element"],
    "languages.afa.written": ["read_afa", "write_afa"],
    "matching.api.match": ["iter_matches", "match", "match_sets"],
    "matching.api.matcher": ["Matcher"],
    "matching.compiled": ["Query", "compile"],
    "matching.output.match_sets": ["MatchSet"],
    "matching.pattern_set.changes": ["Change"],
    "matching.pattern_set.pattern_set": ["PatternSet"],
    "matching.reorder": ["Cleanse"],
    "matching.sql.compiled": ["SqlQuery", "compile_sql"],
    "matching.sql.run": ["sql"],
    "pipelines.rules": ["RuleSet", "read_rules"],
    "query.functions": ["function"],
    "views": ["View", "density", "show", "timeline"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

#: What is called otherwise where it lies.
_NAMES = {"compile": "compile_query"}


def _imported(name: str) -> ModuleType:
    """A module of the package, which is imported without looking for garbage.

    What Numba and the package import stays. To look through it for cycles, again and again as it grows, takes a tenth of the time
    to the first answer; so it goes to the oldest generation unseen.
    """
    if not gc.isenabled() or gc.get_freeze_count():
        return import_module(f"stretto.{name}")
    gc.disable()
    try:
        module = import_module(f"stretto.{name}")
        gc.freeze()
        gc.unfreeze()
    finally:
        gc.enable()
    return module


def __getattr__(name: str) -> object:
    """What is public is imported when it is first used, which takes time."""
    if name in ("spark", "dataflow", "studio"):
        return _imported(name)
    if name not in _HOME:
        raise AttributeError(f"module 'stretto' has no attribute '{name}'")
    try:
        module = _imported(_HOME[name])
    except ModuleNotFoundError as error:
        if _HOME[name] != "pipelines.rules":
            raise
        from stretto.errors import OptionError

        raise OptionError(f"rules need the package {error.name}: pip install 'stretto[rules]'") from error
    found = globals()[name] = getattr(module, _NAMES.get(name, name))
    return found


def __dir__() -> list[str]:
    """What is public, and no module that happens to be imported."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
