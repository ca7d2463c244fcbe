"""Snapshots of matchers (``docs/snapshots.md``): whose state it is, and the sections of what a matcher is made of.

The header names the query, schema and options that the state belongs to, so that a snapshot of anything else is refused with the
reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.engines.api import Run
from stretto.errors import SnapshotError
from stretto.events import Schema, conform
from stretto.frame import Section, reading
from stretto.matching.results import Arrivals

if TYPE_CHECKING:
    from stretto.matching.automaton import AfaMatcher
    from stretto.matching.matcher import Matcher

__all__ = ["load", "load_afa", "save", "save_afa"]


def save(matcher: Matcher) -> bytes:
    """The state of a matcher."""
    run = matcher._runner
    section = Section(
        {"query": matcher.query.text, "language": matcher.query.language, "started": run is not None},
    )
    if run is not None:
        if run.broken or matcher._inside:
            raise SnapshotError("the matcher was stopped in the middle of a batch: its state is not at an event")
        section.values |= _identity(matcher, run) | {"finished": matcher._finished, "kept": matcher._history.kept}
        if matcher._unknown:
            section.values["unknown"] = sorted(matcher._unknown)
        section.put_schema("schema", pa.schema(list(matcher.query.bound.schema.attributes.items())))
        run.save(section)
        matcher._forget()
        matcher._history.save(section.sub("history"))
        if matcher._sorter is not None and matcher._arrivals is not None:
            matcher._sorter.save(section.sub("sorter"))
            matcher._arrivals.save(section)
    return section.to_bytes()


def load(matcher: Matcher, snapshot: bytes) -> None:
    """Give a matcher the state of a snapshot."""
    section = Section.of_bytes(snapshot)
    header = section.values
    if "afa" in header:
        raise SnapshotError("the snapshot is of an AFA, not of a query")
    if header.get("query") != matcher.query.text:
        raise SnapshotError(
            f"the snapshot is of another query:\n  snapshot: {header.get('query')}\n  matcher:  {matcher.query.text}"
        )
    if not header["started"]:
        if matcher._runner is not None and matcher._runner.rows:
            matcher._start()
        return
    if matcher.query.schema is None:
        roles = {name: header["roles"][name] for name in ("type", "time", "stream", "time_unit")}
        own = {name: matcher._roles[name] for name in roles}
        if roles != own:
            raise SnapshotError(f"the snapshot's columns have other roles: {roles}, not {own}")
        matcher._bind(Schema.of(section.schema("schema"), **roles))
    matcher._start()
    run = matcher._runner
    assert run is not None
    _check(header, _identity(matcher, run))
    with reading():
        run.load(section)
        matcher._history.load(section.sub("history"))
        if matcher._sorter is not None:
            matcher._sorter.load(section.sub("sorter"))
            matcher._arrivals = Arrivals.of(section)
    matcher._finished = header["finished"]
    matcher._history.kept = header["kept"]
    matcher._unknown = frozenset(header.get("unknown", ()))


def carry_over(old: Matcher, new: Matcher, unknown: frozenset[str]) -> None:
    """Give a fresh matcher the state of one whose columns have narrower types.

    Parameters
    ----------
    unknown
        Columns that had nothing but NULL so far.

    Raises
    ------
    DataError
        The state depends on the types that the columns had.
    """
    before, after = old._runner, new._runner
    assert before is not None
    assert after is not None
    after.take_over(before, unknown)
    positions, table = old._history.joined()
    if positions.size:
        attributes = new.query.bound.schema.attributes
        for name in unknown & set(table.column_names):
            table = table.set_column(table.column_names.index(name), name, pa.nulls(table.num_rows, attributes[name]))
        new._history.append(positions, conform(table, table.column_names, attributes, "it becomes"))
        new._history.kept = old._history.kept
    if old._sorter is not None and new._sorter is not None:
        assert new._sorter.schema is not None
        old._sorter.retype(new._sorter.schema)
        new._sorter, new._arrivals = old._sorter, old._arrivals


def save_afa(matcher: AfaMatcher) -> bytes:
    """The state of a matcher of an AFA."""
    section = Section()
    matcher._runner.save(section)
    kinds = list(matcher._kinds.items()) if matcher._bound else [("time", matcher._time_kind)]
    section.put_schema("schema", pa.schema(kinds))
    section.values |= {
        "afa": matcher._identity(),
        "bound": matcher._bound,
        "guessed": matcher._guessed,
        "finished": matcher._finished,
    }
    matcher._save_buffers(section)
    return section.to_bytes()


def load_afa(matcher: AfaMatcher, snapshot: bytes) -> None:
    """Give a matcher of an AFA the state of a snapshot."""
    section = Section.of_bytes(snapshot)
    if "afa" not in section.values:
        raise SnapshotError("the snapshot is of a query, not of an AFA")
    own = matcher._identity()
    there = dict(section.values["afa"])
    own |= own.pop("options")
    there |= there.pop("options", {})
    for name, value in own.items():
        if there.get(name) != value:
            raise SnapshotError(
                f"the snapshot is of another automaton or other options: {name} is {there.get(name)} there, {value} here"
            )
    with reading():
        matcher._take_over(section)


def _identity(matcher: Matcher, run: Run) -> dict[str, Any]:
    """What a state depends on. Two matchers with the same identity can take over each other's states."""
    schema = matcher.query.bound.schema
    used = sorted({*matcher.query.bound.tested, *matcher._layout.columns})
    return {
        "attributes": {name: str(schema.attributes[name]) for name in used},
        "roles": {
            "type": schema.type,
            "time": schema.time,
            "stream": schema.stream,
            "time_unit": schema.time_unit,
        },
        "options": {
            "output": matcher._options["output"],
            "valuations": matcher._valuations,
            "late": run.late_policy if matcher._disorder is None else matcher._late_policy,
        }
        | ({} if matcher._disorder is None else {"disorder": str(matcher._disorder), "sequence": matcher._sequence}),
        "automaton": run.program.digest,
    }


def _check(header: dict[str, Any], own: dict[str, Any]) -> None:
    names = {
        "attributes": "the attributes that the query uses",
        "roles": "the roles of columns",
        "options": "the matcher's options",
        "automaton": "the automaton, as this version of stretto builds it",
    }
    for key, what in names.items():
        if header.get(key) != own[key]:
            raise SnapshotError(
                f"the snapshot does not fit: {what} differ (snapshot: {header.get(key)}, here: {own[key]})"
            )
