"""Recognize: a matcher in a plan. A match lives from its last event on.

The AFA operator takes events in any order and revises what it gave. The engines of CEQL and SASE+ queries want them in order: there
events wait for the definite punctuation, which is why a loop cannot hold a matcher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.dataflow.node import Groups, Node, S, Unary, payload_type
from stretto.dataflow.operators.lifetime import Lifetime
from stretto.dataflow.operators.operator import Operator
from stretto.dataflow.run.rows import LEVEL, NEVER, PAYLOAD, VE, VS, WEIGHT, combined, each, empty
from stretto.dataflow.run.values import Strings, arrays, rows_of, words
from stretto.errors import OptionError
from stretto.events import Schema
from stretto.frame import Section
from stretto.languages.afa.builder import is_afa
from stretto.languages.afa.written import read_afa, write_afa
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query, compile_query
from stretto.query.afa import Afa, UserFunction
from stretto.query.query import refuse_joined
from stretto.times import FOREVER

#: Columns of a matcher's result that say where a match lies, not what it is.
_PLACES = ("sign", "start", "end", "positions", "until", "register")


def recognize(stream: S, pattern: Any, **options: Any) -> S:
    """Find the matches of a pattern, as a stream.

    Parameters
    ----------
    pattern
        A CEQL or SASE+ query (text or compiled), or an AFA. The event's start is its time: the column ``vs``.
    options
        As for :class:`~stretto.Matcher`.

    Raises
    ------
    OptionError
        The stream has no events of its own, has a column ``sign`` or ``start_time``, or the matcher refuses pattern or options.
    """
    return stream.of(_recognized(stream.node, pattern, options))


def _recognized(node: Node, pattern: Any, options: Mapping[str, Any]) -> Recognize:
    """The node of a matcher over a stream of events."""
    own = {"time", "sign", "schema", "output"} | (set() if is_afa(pattern) else {"disorder", "speculation"})
    given = own & set(options)
    if given:
        raise OptionError(f"recognize() sets {', '.join(sorted(given))} itself: events come with vs as their time")
    taken = {"sign", "start_time", "end_time"} & set(node.schema)
    if taken:
        raise OptionError(f"column '{min(taken)}' has the name of one that a matcher gives; rename() it")
    if is_afa(pattern):
        frozen: Afa | Query = pattern.frozen
    else:
        frozen = compile_query(pattern, schema=_roles(node, options))
        refuse_joined(frozen.parsed.joined, "in a dataflow")
    events = Lifetime(node.schema, node, None)
    made = _result(_matcher(frozen, options), frozen, node.schema)
    return Recognize(made, events, frozen, dict(options))


@dataclass(frozen=True, eq=False)
class Recognize(Unary):
    """A matcher in the plan: a match lives from its last event to the end of its window."""

    pattern: Any  #: a :class:`~stretto.Query` or a frozen AFA
    options: Mapping[str, Any] = field(default_factory=dict)

    starts = True

    @property
    def given(self) -> tuple[Node, ...]:
        return self.input.inputs  # the window before it is its own

    @property
    def label(self) -> str:
        return "Recognize " + " ".join(str(getattr(self.pattern, "text", "") or "AFA").split())

    @property
    def takes_back(self) -> bool:
        return True

    def origins(self, column: str) -> list[tuple[Node, str]]:
        return []

    def copies(self, column: str) -> bool:
        return False

    def problem(self, inside: set[int]) -> str | None:
        return "a matcher looks back in time; recognize before the loop or behind it"

    def operator(self, strings: Strings) -> Operator:
        return Recognizer(self, strings)

    def written(self) -> dict[str, Any]:
        pattern = self.pattern
        for name, value in self.options.items():
            if not isinstance(value, str | int | float | bool | None):
                raise OptionError(
                    f"{self.label}: the option {name}={value!r} does not travel: it is no text, number or truth value"
                )
        if isinstance(pattern, Afa):
            with_functions = [arc.id for arc in pattern.arcs if UserFunction in (type(arc.when), type(arc.then))]
            if with_functions:
                raise OptionError(
                    f"{self.label}: the arc '{with_functions[0]}' has a Python function, which does not travel in a plan: write it "
                    "as a text"
                )
            return {"text": write_afa(pattern), "language": "afa", "options": dict(self.options)}
        return {"text": pattern.text, "language": pattern.language, "options": dict(self.options)}

    @classmethod
    def read(cls, written: Mapping[str, Any], inputs: Sequence[Node]) -> Recognize:
        text, language = written["text"], written["language"]
        pattern = read_afa(text) if language == "afa" else compile_query(text, language=language)
        return _recognized(inputs[0], pattern, written["options"])

    def keyed(self, groups: Groups) -> Node:
        return _recognized(groups.made(self.given[0]), self._partitioned(groups.keys), self.options)

    def _partitioned(self, keys: Mapping[str, pa.DataType]) -> Query | Afa:
        """The matcher's query or automaton, partitioned by the key as well."""
        if isinstance(self.pattern, Afa):
            return self.pattern.by_groups(keys)
        try:
            return Query(self.pattern.parsed.by_groups(keys))
        except OptionError as error:
            raise OptionError(f"{self.label}: {error}") from None


def _roles(node: Node, options: Mapping[str, Any]) -> Schema:
    own = {name: options[name] for name in ("type", "stream", "time_unit") if name in options}
    return Schema.of({**node.schema, "vs": pa.int64()}, time="vs", **own)


def _matcher(pattern: Query | Afa, options: Mapping[str, Any]) -> Any:
    """A matcher for events with the time ``vs``."""
    if isinstance(pattern, Afa):
        return Matcher(pattern, time="vs", sign="sign", **options)
    own = {name: value for name, value in options.items() if name not in ("type", "stream", "time_unit")}
    return Matcher(pattern, positions=False, warn_after=None, **own)


def _events(pattern: Query | Afa, schema: Mapping[str, pa.DataType]) -> pa.Schema:
    fields = [*schema.items(), ("vs", pa.int64())]
    return pa.schema([*fields, ("sign", pa.int8())] if isinstance(pattern, Afa) else fields)


def _result(matcher: Any, pattern: Query | Afa, schema: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """The columns of matches that a payload can have."""
    table = _flat(matcher.push(_events(pattern, schema).empty_table()))
    kinds = {one.name: payload_type(one.type) for one in table.schema if one.name not in _PLACES}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _flat(table: pa.Table) -> pa.Table:
    """Matches with the fields of their register as columns."""
    if "register" not in table.column_names:
        return table
    register = table.column("register").combine_chunks()
    for own in register.type:
        name = own.name if own.name not in table.column_names else f"register_{own.name}"
        table = table.append_column(name, register.field(own.name))
    return table


class Recognizer(Operator):
    """A matcher as an operator.

    Parameters
    ----------
    node
        Pattern, options and columns.
    strings
        The dictionary of strings.
    """

    def __init__(self, node: Recognize, strings: Strings) -> None:
        super().__init__(node.label, 1, PAYLOAD + len(node.schema))
        self.node = node
        self.strings = strings
        self.revises = isinstance(node.pattern, Afa)
        self._matcher = _matcher(node.pattern, node.options)
        #: Events that wait for their punctuation.
        self.waiting = empty(PAYLOAD + len(node.input.schema))
        self._due = empty(self.width)
        #: What an event takes as a row, in order, as columns and in the matcher.
        self._words = 4 * self.waiting.shape[1] + 16

    def receive(self, port: int, rows: I64) -> I64:
        """Matches that begin or cease to be, where the matcher revises; else events wait."""
        if self.revises:
            changes = each(rows, np.abs(rows[:, WEIGHT]), self._words)
            signs = np.sign(changes[:, WEIGHT]).astype(np.int8)
            return self._rows(self._matcher.push(self._table(changes).append_column("sign", pa.array(signs))))
        self.waiting = np.concatenate([self.waiting, rows])
        return empty(self.width)

    def punctuate(self, port: int, time: int) -> int:
        if self.revises:
            found = self._matcher.finish() if time == FOREVER else self._matcher.advance(time)
            self._due = self._rows(found)
        else:
            events = combined(self.waiting)
            ready = events[events[:, VS] < time]
            self.waiting = events[events[:, VS] >= time]
            ready = each(ready, np.maximum(ready[:, WEIGHT], 0), self._words)
            ready = ready[np.argsort(ready[:, VS], kind="stable")]
            parts = [self._matcher.push(self._table(ready))] if len(ready) else []
            if time == FOREVER:
                parts.append(self._matcher.finish())
            self._due = np.concatenate([empty(self.width), *map(self._rows, parts)])
        return super().punctuate(port, time)

    def due(self) -> I64:
        found, self._due = self._due, empty(self.width)
        return found

    def _table(self, rows: I64) -> pa.Table:
        columns = arrays(rows, self.node.input.schema, PAYLOAD, self.strings)
        names = [*self.node.input.schema, "vs"]
        return pa.table([*columns, pa.array(np.ascontiguousarray(rows[:, VS]))], names=names)

    def _rows(self, found: pa.Table) -> I64:
        """Matches as changes."""
        table = _flat(found)
        rows = np.zeros((table.num_rows, self.width), np.int64)
        if not len(rows):
            return rows
        rows[:, VS] = table.column("end_time").to_numpy()
        rows[:, VE] = FOREVER
        if "until" in table.column_names:
            rows[:, VE] = table.column("until").fill_null(FOREVER).to_numpy()
        rows[:, WEIGHT] = table.column("sign").to_numpy() if "sign" in table.column_names else 1
        rows[:, LEVEL] = 0
        for at, (name, kind) in enumerate(self.node.schema.items()):
            rows[:, PAYLOAD + at] = words(table.column(name).combine_chunks(), kind, self.strings)
        return rows[rows[:, VS] < rows[:, VE]]

    @property
    def held(self) -> int:
        return len(self.waiting)

    @property
    def ends(self) -> int:
        if self.revises:
            ends = self._matcher.ends
            return NEVER if ends is None else ends
        return NEVER if not len(self.waiting) and self._matcher.idle else FOREVER

    def save(self, section: Section) -> None:
        section.arrays["waiting"] = self.waiting
        section.arrays["matcher"] = np.frombuffer(self._matcher.snapshot(), np.uint8)

    def load(self, section: Section) -> None:
        self.waiting = rows_of(section, "waiting", self.waiting.shape[1])
        self._matcher.restore(section.arrays["matcher"].tobytes())
