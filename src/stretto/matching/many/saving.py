"""Snapshots of sets of patterns: bytes of a versioned format (``docs/patterns.md``). Never pickle.

The frame is that of a matcher's snapshot (:mod:`stretto.frame`) with another magic. Arrays of one name and type of all
patterns lie one after the other, so that hundreds of patterns make no more arrays than one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stretto import frame
from stretto.errors import SnapshotError, StrettoError
from stretto.frame import Section, reading
from stretto.matching.many.changes import Change, Instant
from stretto.matching.many.timeline import Version

if TYPE_CHECKING:
    from stretto.matching.patterns import PatternSet

__all__ = ["MAGIC", "VERSION", "load", "save"]

MAGIC = b"STRPATS\0"
VERSION = 1

Arrays = dict[str, NDArray[Any]]


def save(patterns: PatternSet) -> bytes:
    """The state of a set of patterns."""
    if patterns._inside:
        raise SnapshotError("the set of patterns was stopped in the middle of a batch: its state is not at an event")
    versions = patterns._timeline.lineup.versions
    patterns._retain()
    voices: list[dict[str, Any]] = []
    held: list[Arrays] = []
    active = []
    for version in versions:
        number = None
        if version.voice is not None:
            number = len(voices)
            voice = Section({"automaton": version.part.digest})
            version.voice.save(voice)
            header, arrays = voice.flat()
            voices.append(header)
            held.append(arrays)
        query = version.part.query
        active.append([version.id, query.text, query.language, _number(version.since), version.measure, number])
    section = Section(arrays=_together(held))
    section.values |= _identity(patterns) | {
        "active": active,
        "pending": [
            [since, name, *((version.part.query.text, version.part.query.language) if version else (None, None))]
            for since, step in patterns._timeline.steps()
            for name, version in step.versions.items()
        ],
        "voices": voices,
        "last": _number(patterns._last),
        "punctuation": _number(patterns._punctuation),
        "counts": {name: getattr(patterns, f"_{name}") for name in _COUNTS},
        "finished": patterns._finished,
    }
    patterns._history.save(section.sub("history"))
    return section.to_bytes(MAGIC, VERSION)


def load(patterns: PatternSet, snapshot: bytes) -> None:
    """Give a set of patterns the state of a snapshot; a snapshot that cannot be read leaves it as it is."""
    if snapshot.startswith(frame.MAGIC):
        raise SnapshotError("the snapshot is of a Matcher, not of a set of patterns")
    section = Section.of_bytes(snapshot, MAGIC, VERSION)
    header = section.values
    for name, value in _identity(patterns).items():
        if header.get(name) != value:
            raise SnapshotError(
                f"the snapshot does not fit: {_NAMES[name]} differ (snapshot: {header.get(name)}, here: {value})"
            )
    fresh = patterns._fresh()
    with reading():
        try:
            _load(fresh, section)
        except SnapshotError:
            raise
        except StrettoError as error:
            raise SnapshotError(f"the snapshot does not fit: {error}") from error
    patterns.__dict__.update(fresh.__dict__)


def _load(patterns: PatternSet, section: Section) -> None:
    header = section.values
    patterns._history.load(section.sub("history"))
    held = _apart(section.arrays, len(header["voices"]))
    versions = []
    for name, text, language, since, measure, number in header["active"]:
        part = patterns._compiled(Change(name, text, language=language))
        version = Version(name, part, _instant(patterns, since), measure=measure)
        if number is not None:
            saved = header["voices"][number]
            if saved["automaton"] != part.digest:
                raise SnapshotError(
                    f"the snapshot does not fit: the automaton of pattern '{name}', as this version of stretto builds it, differs"
                )
            version.voice = patterns._new_voice(part)
            version.voice.load(Section(saved, held[number]))
        versions.append(version)
    patterns._timeline.start(versions)
    for since, name, text, language in header["pending"]:
        coming = None if text is None else patterns._compiled(Change(name, text, language=language))
        patterns._timeline.add(name, _instant(patterns, since), coming)
    patterns._kept = patterns._history.rows
    for name in _COUNTS:
        setattr(patterns, f"_{name}", header["counts"][name])
    patterns._last = _instant(patterns, header["last"])
    patterns._punctuation = _instant(patterns, header["punctuation"])
    patterns._finished = header["finished"]


_COUNTS = ("rows", "late", "late_changes", "visited", "triggers")

_NAMES = {
    "attributes": "the events' attributes",
    "roles": "the roles of columns",
    "options": "the options",
}


def _identity(patterns: PatternSet) -> dict[str, Any]:
    """What a state depends on beside its patterns."""
    schema = patterns.schema
    return {
        "attributes": {name: str(kind) for name, kind in schema.attributes.items()},
        "roles": {"type": schema.type, "time": schema.time, "stream": schema.stream, "time_unit": schema.time_unit},
        "options": {"output": patterns._output, "valuations": patterns._valuations, "by": list(patterns._by)},
    }


def _number(instant: Instant | None) -> int | float | None:
    return None if instant is None else instant.number


def _instant(patterns: PatternSet, number: int | float | None) -> Instant | None:
    return None if number is None else Instant.numbered(number, patterns._kind)


def _together(held: list[Arrays]) -> Arrays:
    """The arrays of all voices, those of one name and type as one, with whose they are and how long each is."""
    found: dict[str, list[tuple[int, NDArray[Any]]]] = {}
    for number, arrays in enumerate(held):
        for name, array in arrays.items():
            found.setdefault(f"{name}:{array.dtype.str}", []).append((number, array))
    joined: Arrays = {}
    for key, parts in found.items():
        joined[key] = np.concatenate([array for _, array in parts])
        joined[key + ":of"] = np.array([number for number, _ in parts], np.int32)
        joined[key + ":size"] = np.array([array.size for _, array in parts], np.int64)
    return joined


def _apart(arrays: Arrays, count: int) -> list[Arrays]:
    held: list[Arrays] = [{} for _ in range(count)]
    for key in arrays:
        if not key.endswith(":of"):
            continue
        whole = key.removesuffix(":of")
        name = whole.rpartition(":")[0]
        stops = np.cumsum(arrays[whole + ":size"])
        for number, part in zip(arrays[key], np.split(arrays[whole], stops[:-1]), strict=True):
            held[int(number)][name] = part
    return held
