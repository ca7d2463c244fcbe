"""One vocabulary of time: ``disorder=``, ``speculation=``, ``late=`` and ``advance()``; and the words that were used before.

``disorder`` says how late events may be, ``speculation`` how far answers go ahead of what is certain, ``late`` what becomes of events
that are later still, and ``advance(t)`` that none before t will come. They mean the same everywhere (``docs/disorder.md``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stretto.errors import OptionError, warn

#: What may become of late events.
LATE = ("error", "drop", "side")


class OldWord(NamedTuple):
    """An option as it was said before, which is accepted for one release with a warning."""

    where: str
    old: str
    new: str


#: What was said before, and what is said now. The table in ``docs/disorder.md`` is this one.
OLD_WORDS = {
    "bound": OldWord("`Matcher(afa)`, `Cleanse`", "bound=…", "disorder=…"),
    "cleanse=before": OldWord("`Matcher(afa)`", "cleanse='before'", "hold='events'"),
    "cleanse=after": OldWord("`Matcher(afa)`", "cleanse='after'", "hold='results'"),
    "speculate": OldWord("`Matcher(query)`", "disorder='speculate'", "speculation=math.inf"),
    "watermark": OldWord("`spark.match`, `match_patterns`, `dataflow`", "watermark=…", "disorder=…"),
    "sort": OldWord("`spark.match`, `match_patterns`", "disorder='sort'", "speculation=0"),
    "watermark in TOML": OldWord("pipelines, `[events]`", "watermark = …", "disorder = …"),
    "--disorder speculate": OldWord("`stretto match`", "--disorder speculate", "--speculation inf"),
}


def tell_of(word: str) -> None:
    """Warn that an option was given by an old word, and say the new one."""
    one = OLD_WORDS[word]
    warn(f"{one.old} is an old word, accepted for this release only: say {one.new}")


def renamed(word: str, given: Any, new: str, value: Any) -> Any:
    """The value of the option ``new``, which may have been ``given`` by an old word.

    Raises
    ------
    OptionError
        Both were given.
    """
    if given is None:
        return value
    if value is not None:
        raise OptionError(f"{OLD_WORDS[word].old} is an old word for {new}=: give one of them")
    tell_of(word)
    return given


def check_late(late: str, allowed: tuple[str, ...] = LATE) -> None:
    """Raise an :class:`OptionError` unless ``late`` says what becomes of late events."""
    if late not in allowed:
        raise OptionError(f"late={late!r}: expected {' or '.join(map(repr, allowed))}")
