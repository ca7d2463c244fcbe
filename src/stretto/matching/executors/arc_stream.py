"""Arcs as a second stream (AFA paper, section 2.3): changes of arcs between the rows of a batch, read column-wise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.engines.afa.between import Changes
from stretto.engines.afa.changes import read
from stretto.engines.afa.graph import GraphTables
from stretto.engines.afa.runner import AfaRunner
from stretto.errors import DataError, OptionError, QueryError, StrettoError, hinted, nearest, suggestion
from stretto.events import as_table
from stretto.languages.afa.builder import make_arc
from stretto.query.afa import Afa, Arc, Emit, Kind
from stretto.times import BEFORE_ALL, FOREVER, ticks

#: Arcs whose texts are not read again.
_MOST_WRITTEN = 1 << 12

_DEFINING = ("source", "target", "when", "then", "kind")
_TIMES = ("since", "until")
_COLUMNS = ("row", "action", "id", *_DEFINING, "final", *_TIMES)


class ArcChanges:
    """Changes of arcs as a table.

    Parameters
    ----------
    given
        Columns ``row`` (how many rows of the batch come before, ascending; 0 where it is missing), ``action`` (``"add"`` or
        ``"retire"``), ``id``, and for additions ``source``, ``target``, ``when``, ``then`` (texts), ``kind`` (``"consume"``) and
        ``final`` (``"every"`` or ``"on_enter"``: the target becomes final). ``since`` and ``until`` are times: with explicit
        lifetimes those of an added arc, and ``until`` of a retired one; else ``since`` is that of an arc which is valid later.
    afa
        The automaton.
    runner
        The stream, whose arcs these are; its graph takes in the new ones, which nothing uses yet.
    rows
        Of the batch.
    tick
        A time that a user gives, in ticks.

    Raises
    ------
    DataError
        A column is missing or of the wrong type, an arc is added that is in force, or one retired that is not, or a lifetime cannot
        be; with the change, by its place in the table and its id.
    QueryError
        A fence or a transfer is wrong; with the change and the place in the text.
    """

    def __init__(self, given: Any, afa: Afa, runner: AfaRunner, rows: int, tick: Callable[[Any], int]) -> None:
        table = _as_changes(given)
        self.runner = runner
        self.tables: GraphTables = runner.tables
        self.explicit = runner.roles.dynamic == "explicit"
        count = table.num_rows
        self.first = self.tables.arcs.shape[0]
        self.ids, self.names = _encoded(table, "id")
        self.texts = {name: _encoded(table, name) for name in _DEFINING if name in table.column_names}
        self.finals: dict[int, Emit] = {}
        #: Operations, where the kernel carries out all of them.
        self.what: I64 | None = None
        plain = not self.explicit and not {"final", *_TIMES} & set(table.column_names)
        if plain and self._read(table, afa, rows):
            return
        if (self.ids < 0).any():
            raise DataError(f"change {int((self.ids < 0).argmax())} of the arcs has no id: the column 'id' is NULL")
        self.at = self._rows(table, rows)
        self.adds = self._actions(table)
        self.finals = self._finals(table)
        self.since, self.until = (self._times(table, name, tick) for name in _TIMES)
        self.number = self.first + np.cumsum(self.adds) - 1
        self.which = self._of_lifetimes() if self.explicit else self._found()
        #: Which changes the kernel does not carry out by itself.
        self.alone = np.full(count, self.explicit) | (self.adds & (self.since > BEFORE_ALL))
        self._declare(table)
        places = np.flatnonzero(self.adds)
        for name in ("source", "target"):
            if places.size and name not in table.column_names:
                raise self._mistake(int(places[0]), f"an addition needs a column '{name}', the state", None)
        first, form = _distinct(self._forms()[0][places])
        self._define(places[first], form, self.ids[places], afa)
        if self.explicit and places.size:  # not valid before the change
            self.tables.suspend(self.number[places], self.since[places])

    def _read(self, table: pa.Table, afa: Afa, rows: int) -> bool:
        """As the constructor, in one pass, where nothing is said of lifetimes and finals; false where something is wrong, or odd."""
        tables, count = self.tables, table.num_rows
        if not {"row", "source", "target"} <= set(table.column_names) or not pa.types.is_integer(
            table.schema.field("row").type
        ):
            return False
        forms, distinct = self._forms()
        if distinct > 4 * count + 1024:
            return False
        self.at = _integers(table.column("row").combine_chunks())
        actions, words = _encoded(table, "action")
        adds = np.array([{"add": 1, "retire": 0}.get(word, -1) for word in words] or [-1], np.int64)
        in_force = tables.in_force(self.names)
        what, self.which, form, named = (np.empty(count, np.int64) for _ in range(4))
        begins, told = np.empty(min(distinct, count), np.int64), np.zeros(2, np.int64)
        form_of = np.full(distinct, -1)
        if not read(
            self.at, rows, actions, adds, self.ids, forms, self.first, in_force, form_of, what, self.which, form, named, begins, told
        ):  # fmt: skip
            return False
        added, kinds = told.tolist()
        self._define(begins[:kinds], form[:added], named[:added], afa)
        self.number, self.adds, self.alone = self.which, adds[actions] == 1, np.zeros(count, np.bool_)
        self.what = what
        return True

    def _mistake(self, at: int, what: str, column: str | None = None) -> DataError:
        return DataError(f"{self._place(at, column)}: {what}")

    def _place(self, at: int, column: str | None = None) -> str:
        """A change as messages name it."""
        return f"change {at} of the arcs ('{self.names[self.ids[at]]}')" + (f", column '{column}'" if column else "")

    def _rows(self, table: pa.Table, rows: int) -> I64:
        if "row" not in table.column_names:
            return np.zeros(table.num_rows, np.int64)
        column = table.column("row")
        if not pa.types.is_integer(column.type):
            raise DataError(
                f"the changes of arcs: column 'row' is {column.type}; it counts the rows before, as an integer"
            )
        if column.null_count:
            at = int(np.asarray(column.is_null()).argmax())
            raise self._mistake(at, f"is NULL; rows go from 0 to the {rows} of the batch", "row")
        found = np.asarray(column.cast(pa.int64()).to_numpy())
        wrong = (found < 0) | (found > rows) | (np.diff(found, prepend=0) < 0)
        if wrong.any():
            at = int(wrong.argmax())
            raise self._mistake(at, f"{found[at]}, where rows go up, from 0 to the {rows} of the batch", "row")
        return found

    def _actions(self, table: pa.Table) -> NDArray[np.bool_]:
        codes, names = _encoded(table, "action")
        for at in np.flatnonzero(codes < 0)[:1]:
            raise self._mistake(int(at), "NULL, expected 'add' or 'retire'", "action")
        for at, name in enumerate(names):
            if name not in ("add", "retire"):
                hint = suggestion(name, ("add", "retire"))
                raise self._mistake(
                    int((codes == at).argmax()), f"{name!r}, expected 'add' or 'retire'; {hint}", "action"
                )
        adding = np.array([name == "add" for name in names], np.bool_)
        return adding[codes] if len(names) else np.zeros(0, np.bool_)

    def _finals(self, table: pa.Table) -> dict[int, Emit]:
        """Which additions make their target final."""
        if "final" not in table.column_names:
            return {}
        codes, names = _encoded(table, "final")
        found = {}
        for at in np.flatnonzero(codes >= 0).tolist():
            name = names[codes[at]]
            if name not in tuple(Emit):
                raise self._mistake(at, f"{name!r}, expected 'every', 'on_enter' or NULL", "final")
            if not self.adds[at]:
                raise self._mistake(at, "an addition makes its target final, and this is a retirement", "final")
            found[at] = Emit(name)
        return found

    def _times(self, table: pa.Table, name: str, tick: Callable[[Any], int]) -> I64:
        """A time of each change, unbounded where it is NULL."""
        found = np.full(table.num_rows, BEFORE_ALL if name == "since" else FOREVER)
        if name not in table.column_names:
            return found
        column = table.column(name).combine_chunks()
        given = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        if name == "until" and not self.explicit and given.size:
            why = "an arc has an end of its own only with Matcher(…, dynamic='explicit')"
            raise self._mistake(int(given[0]), why, name)
        if name == "since" and not self.adds[given].all():
            at = int(given[~self.adds[given]][0])
            raise self._mistake(
                at, "a retirement says until when the arc is valid, in 'until', and not since when", name
            )
        try:
            values = column.drop_null()
            if values.type != self.runner.time_kind:
                values = pa.array([value.as_py() for value in values], self.runner.time_kind)
            found[given] = ticks(values, name, 0)
        except (pa.ArrowException, DataError, TypeError, ValueError, OverflowError):
            for at in given.tolist():  # which one it is
                try:
                    found[at] = tick(column[at].as_py())
                except StrettoError as error:
                    raise self._mistake(at, str(error), name) from error
        return found

    def _found(self) -> I64:
        """The arc that each change concerns."""
        tables, count = self.tables, self.adds.size
        # By id, in order: what is in force before a change is what the change before it left.
        order = np.argsort(_narrow(self.ids, len(self.names)), kind="stable")
        ids, adds = self.ids[order], self.adds[order]
        known = tables.in_force(self.names or [""])
        before = np.empty(count, np.int64)
        if count:
            opens = np.concatenate(([True], ids[1:] != ids[:-1]))
            earlier = np.where(adds[:-1], self.number[order][:-1], 0)
            before = np.where(opens, known[ids], np.concatenate(([0], earlier)))
        wrong = (before > 0) == adds
        if wrong.any():
            at = int(order[wrong].min())
            in_force = {
                name for name, number in zip(tables.known, tables.in_force(list(tables.known)), strict=True) if number
            }
            for code, adding in zip(self.ids[:at], self.adds[:at], strict=True):
                (in_force.add if adding else in_force.discard)(self.names[code])
            raise self._not_in_force(at, sorted(in_force))
        which = np.empty(count, np.int64)
        which[order] = before
        return np.where(self.adds, self.number, which)

    def _not_in_force(self, at: int, known: list[str]) -> DataError:
        name = self.names[self.ids[at]]
        if self.adds[at]:
            return self._mistake(at, f"there is an arc '{name}' in force already; retire it first, or give another id")
        return self._mistake(at, hinted(f"no arc '{name}' is in force", name, known, kind="arc"))

    def _of_lifetimes(self) -> I64:
        """The arc that each change concerns, where lifetimes are explicit; each change is in time."""
        lives = {name: (number, *self.tables.lifetime(number)) for name, number in self.tables.known.items()}
        which = np.zeros(self.adds.size, np.int64)
        clean = self.runner.arc_punctuation
        for at, code in enumerate(self.ids.tolist()):
            name = self.names[code]
            number, since, until = lives.get(name, (0, 0, 0))
            if (since < until) == self.adds[at]:
                raise self._not_in_force(at, [one for one, (_, begin, end) in lives.items() if begin < end])
            concerned = int(self.since[at])
            if self.adds[at]:
                number, since, until = int(self.number[at]), concerned, int(self.until[at])
                if until <= since:
                    shown = (self.runner.shown_time(one) for one in (since, until))
                    raise self._mistake(at, "the arc would never be valid: since {}, until {}".format(*shown))
            else:
                concerned = since if self.until[at] == FOREVER else max(since, int(self.until[at]))
                self.until[at] = concerned
                until = min(until, concerned)
            if concerned < clean:
                from_when = "the first on" if concerned == BEFORE_ALL else f"{self.runner.shown_time(concerned)} on"
                raise self._mistake(
                    at,
                    f"it is late, as it concerns events from {from_when}, and the arcs' punctuation stands at "
                    f"{self.runner.shown_time(clean)}",
                )
            lives[name] = number, since, until
            which[at] = number
        return which

    def _declare(self, table: pa.Table) -> None:
        """The kernel is left for a state that becomes final."""
        finals = dict(self.tables.finals)
        for at, emit in self.finals.items():
            state = table.column("target")[at].as_py() if "target" in table.column_names else None
            before = emit if state is None else finals.setdefault(state, emit)
            if before is not emit:
                raise self._mistake(at, f"the state '{state}' is final already, with emit='{before}'", "final")
            self.alone[at] |= state not in self.tables.finals

    def _forms(self) -> tuple[I64, int]:
        """By change a code of what is written of its arc, and a bound of these codes."""
        codes = np.zeros(self.ids.size, np.int64)
        for found, texts in self.texts.values():
            codes *= len(texts) + 1
            codes += found
            codes += 1
        return _frozen(codes), math.prod(len(texts) + 1 for _, texts in self.texts.values())

    def _define(self, begins: I64, form: I64, ids: I64, afa: Afa) -> None:
        """Take the arcs in, each distinct one, which comes first at a change of ``begins``, read and compiled once."""
        tables = self.tables
        forms, templates = [], []
        for at in begins.tolist():
            values = {name: texts[codes[at]] for name, (codes, texts) in self.texts.items() if codes[at] >= 0}
            written = tuple(values.get(name) for name in _DEFINING)
            known = tables.written.get(written)
            if known is not None:
                forms.append(tables.new_form(known[0]))
                templates.append(known[1])
                continue
            arc = self._arc(at, values, afa)
            number, row = tables.form_of(arc)
            forms.append(number)
            templates.append(row)
            if len(tables.written) == _MOST_WRITTEN:
                tables.written.clear()
            tables.written[written] = arc, row
        at_ids = np.array([tables.place(name) for name in self.names] or [0], np.int64)
        if forms:
            tables.extend(np.stack(templates), form, np.array(forms)[form], at_ids[ids])

    def _arc(self, at: int, values: dict[str, str | None], afa: Afa) -> Arc:
        """The arc of an addition."""
        given = {name: value for name, value in values.items() if value is not None}
        for name in ("source", "target"):
            if name not in given:
                raise self._mistake(at, "NULL, expected the name of a state", name)
        # A fence and a transfer are read once, wherever they stand.
        said = tuple(given.get(name) for name in ("when", "then", "kind"))
        like = self.tables.texts.get(said)
        if like is not None and given["source"] and given["target"]:
            return replace(like, id=self.names[self.ids[at]], source=given["source"], target=given["target"])
        column = None
        try:
            for column in ("when", "then"):  # one by one, so that it is known which one is wrong
                make_arc(afa, "?", "?", id="?", **_of_epsilon(given), **{column: given.get(column)})  # type: ignore[arg-type]
            column = None
            arc = make_arc(afa, given.pop("source"), given.pop("target"), id=self.names[self.ids[at]], **given)  # type: ignore[arg-type]
        except QueryError as error:
            message = f"{self._place(at, column)}: {error.message}"
            raise QueryError(message, text=error.text, span=error.span, hint=error.hint) from error
        except OptionError as error:
            raise self._mistake(at, str(error), column) from error
        if arc.kind is not Kind.IGNORE and len(self.tables.texts) < _MOST_WRITTEN:
            self.tables.texts[said] = arc
        return arc

    # -- carrying out -------------------------------------------------------------------------------------------------

    def changes(self) -> Changes:
        """List the changes as the runner takes them; one that is carried out alone has its place in place of its arc."""
        if self.what is not None:
            return Changes(self.at, self.what, self.which)
        return Changes.of_arcs(self.at, self.adds, self.alone, self.which)

    def carry_out(self, at: int) -> None:
        """One of those that are carried out alone.

        Raises
        ------
        DataError
            It cannot be, for what the stream has been so far; nothing has changed.
        """
        try:
            self._carry_out(at)
        except OptionError as error:
            raise self._mistake(at, str(error)) from error
        except StrettoError as error:
            raise type(error)(f"{self._place(at)}: {error}") from error

    def _carry_out(self, at: int) -> None:
        runner, number = self.runner, int(self.which[at])
        if not self.adds[at]:
            runner.arcs.retire_number(number, int(self.until[at]))
            return
        undo = self.tables.finals_saved()
        if at in self.finals:
            target = self.tables.arc(number).target
            runner.arcs.check_final(target, self.finals[at])
            runner.arcs.make_final(target, self.finals[at])
        try:
            runner.arcs.add_number(number, int(self.since[at]), int(self.until[at]))
        except StrettoError:
            self.tables.load_finals(undo)
            raise

    def carried_out(self, count: int) -> None:
        """The first ``count`` changes have been carried out: what each id stands for now."""
        adds = np.flatnonzero(self.adds[:count])
        latest = np.zeros(len(self.names), np.int64)
        latest[self.ids[adds]] = self.number[adds]  # of those of one id the last one, which is the greatest
        for name, number in zip(self.names, latest.tolist(), strict=True):
            if number:
                self.tables.known[name] = number


def _as_changes(given: Any) -> pa.Table:
    """The table, with the columns that it must have and no other."""
    try:
        table = as_table(given).combine_chunks()
    except DataError as error:
        raise DataError(f"the changes of arcs: {error}") from error
    for name in ("action", "id"):
        if name not in table.column_names:
            raise DataError(
                hinted(f"the changes of arcs have no column '{name}'", name, table.column_names, kind="column")
            )
    for field in table.schema:
        if field.name not in _COLUMNS:
            close = nearest(field.name, _COLUMNS)
            hint = f"did you mean '{close}'?" if close else f"they have {', '.join(_COLUMNS)}"
            raise DataError(f"the changes of arcs have a column '{field.name}', which says nothing; {hint}")
        if field.name not in ("row", *_TIMES) and not _holds_texts(field.type):
            raise DataError(f"the changes of arcs: column '{field.name}' is {field.type}; it holds texts")
    return table


def _of_epsilon(given: dict[str, str]) -> dict[str, str]:
    """Whether functions may read an event."""
    return {"kind": "epsilon"} if given.get("kind") == "epsilon" else {}


def _holds_texts(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))


def _narrow(codes: I64, count: int) -> NDArray[np.integer[Any]]:
    """Codes below ``count`` in a type that sorts in linear time, if they fit."""
    return codes.astype(np.int16) if count < 1 << 15 else codes


def _distinct(codes: I64) -> tuple[I64, I64]:
    """Where each distinct code comes first, and by place which of them it is."""
    most = int(codes.max(initial=0))
    if most > 4 * codes.size + 1024:
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        return first, which
    place = np.full(most + 1, -1)
    place[codes[::-1]] = np.arange(codes.size)[::-1]
    held = np.flatnonzero(place >= 0)
    first = place[held]
    place[held] = np.arange(held.size)
    return first, place[codes]


def _frozen(array: I64) -> I64:
    """Read-only, as columns of Arrow are: so kernels compile once."""
    array.flags.writeable = False
    return array


def _integers(column: pa.Array) -> I64:
    """A column of integers; −1: NULL."""
    if column.null_count:
        column = column.fill_null(-1)
    if column.type != pa.int64():
        column = column.cast(pa.int64())
    return _frozen(np.asarray(column.to_numpy(zero_copy_only=False)))


def _encoded(table: pa.Table, name: str) -> tuple[I64, list[Any]]:
    """A column as codes and what they stand for; −1: NULL."""
    column = table.column(name).combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return _integers(column.indices), column.dictionary.to_pylist()
