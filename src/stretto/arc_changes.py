"""Arcs as a second stream (AFA paper, section 2.3): changes of arcs between the rows of a batch, read column-wise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.afa import make_arc
from stretto.automata.afa import Afa
from stretto.engines.afa.graph import GraphTables
from stretto.engines.afa.intake import Changes
from stretto.engines.afa.structure import ADD_ARC, FOREVER, RETIRE_ARC, RETIRED
from stretto.errors import DataError, suggestion
from stretto.events import as_table

__all__ = ["ArcChanges"]

I64 = NDArray[np.int64]

#: Arcs whose texts are not read again.
_MOST_WRITTEN = 1 << 12

_DEFINING = ("source", "target", "when", "then", "kind")
_COLUMNS = ("row", "action", "id", *_DEFINING)


class ArcChanges:
    """Changes of arcs as a table.

    Parameters
    ----------
    given
        Columns ``row`` (how many rows of the batch come before, ascending; 0 where it is missing), ``action`` (``"add"`` or
        ``"retire"``), ``id``, and for additions ``source``, ``target``, ``when``, ``then`` (texts) and ``kind`` (``"consume"``).
    afa, tables
        The automaton, and its arcs as they are.
    rows
        Of the batch.

    Raises
    ------
    DataError
        A column is missing, an arc is added that is in force, or one retired that is not; with its row.
    QueryError
        A fence or a transfer is wrong.
    """

    def __init__(self, given: Any, afa: Afa, tables: GraphTables, rows: int) -> None:
        table = as_table(given).combine_chunks()
        for name in ("action", "id"):
            if name not in table.column_names:
                hint = suggestion(name, table.column_names, kind="column")
                raise DataError(f"the changes of arcs have no column '{name}'" + (f"; {hint}" if hint else ""))
        for field in table.schema:
            if field.name not in _COLUMNS:
                known = ", ".join(_COLUMNS)
                raise DataError(
                    f"the changes of arcs have a column '{field.name}', which says nothing; they have {known}"
                )
            if field.name != "row" and not _holds_texts(field.type):
                raise DataError(f"the changes of arcs: column '{field.name}' is {field.type}; it holds texts")
        self.tables = tables
        self.at = self._rows(table, rows)
        self.adds = self._actions(table)
        self.ids, self.names = _encoded(table, "id")
        self.first = tables.arcs.shape[0]
        self.number = self.first + np.cumsum(self.adds) - 1
        self.which = self._found()
        self._define(table, afa)

    def _rows(self, table: pa.Table, rows: int) -> I64:
        if "row" not in table.column_names:
            return np.zeros(table.num_rows, np.int64)
        found = np.asarray(table.column("row").cast(pa.int64()).to_numpy())
        wrong = (found < 0) | (found > rows) | (np.diff(found, prepend=0) < 0)
        if wrong.any():
            at = int(wrong.argmax())
            raise DataError(
                f"change {at} of the arcs stands at row {found[at]}: rows go up, from 0 to the {rows} of the batch"
            )
        return found

    def _actions(self, table: pa.Table) -> NDArray[np.bool_]:
        codes, names = _encoded(table, "action")
        for at, name in enumerate(names):
            if name not in ("add", "retire"):
                where = int((codes == at).argmax())
                raise DataError(f"change {where} of the arcs: action {name!r}, expected 'add' or 'retire'")
        adding = np.array([name == "add" for name in names], np.bool_)
        return adding[codes] if len(names) else np.zeros(0, np.bool_)

    def _found(self) -> I64:
        """The arc that each change concerns."""
        tables, count = self.tables, self.adds.size
        # By id, in order: what is in force before a change is what the change before it left.
        order = np.argsort(_narrow(self.ids, len(self.names)), kind="stable")
        ids, adds = self.ids[order], self.adds[order]
        known = np.array([tables.known.get(name, 0) for name in self.names] or [0], np.int64)
        known[tables.arcs[known, RETIRED] < FOREVER] = 0
        before = np.empty(count, np.int64)
        if count:
            opens = np.concatenate(([True], ids[1:] != ids[:-1]))
            earlier = np.where(adds[:-1], self.number[order][:-1], 0)
            before = np.where(opens, known[ids], np.concatenate(([0], earlier)))
        wrong = (before > 0) == adds
        if wrong.any():
            at = int(order[wrong].min())
            name = self.names[self.ids[at]]
            what = "is in force already; retire it first" if self.adds[at] else "is not in force"
            raise DataError(f"change {at} of the arcs: arc '{name}' {what}")
        which = np.empty(count, np.int64)
        which[order] = before
        return np.where(self.adds, self.number, which)

    def _define(self, table: pa.Table, afa: Afa) -> None:
        """Take the arcs in, each distinct one read and compiled once."""
        tables = self.tables
        rows = table.filter(pa.array(self.adds))
        for name in ("source", "target"):
            if name not in table.column_names:
                raise DataError(f"the changes of arcs have no column '{name}'")
        columns = [name for name in _DEFINING if name in rows.column_names]
        codes = np.zeros(rows.num_rows, np.int64)
        for name in columns:
            found, names = _encoded(rows, name)
            codes = codes * (len(names) + 1) + found + 1
        first, form = _distinct(codes)
        forms, templates = [], []
        ids = self.ids[self.adds]
        texts = [rows.column(name).take(pa.array(first)).to_pylist() for name in columns]
        for at, *given in zip(first.tolist(), *texts, strict=True):
            values = dict(zip(columns, given, strict=True))
            written = tuple(values.get(name) for name in _DEFINING)
            known = tables.written.get(written)
            if known is not None:
                forms.append(tables.new_form(known[0]))
                templates.append(known[1])
                continue
            values = {name: value for name, value in values.items() if value is not None}
            source, target = values.pop("source", None), values.pop("target", None)
            arc = make_arc(afa, source, target, id=self.names[ids[at]], **values)
            number, row = tables.form_of(arc)
            forms.append(number)
            templates.append(row)
            if len(tables.written) == _MOST_WRITTEN:
                tables.written.clear()
            tables.written[written] = arc, row
        places = np.array([tables.place(name) for name in self.names] or [0], np.int64)
        if forms:
            tables.extend(np.stack(templates)[form], np.array(forms)[form], places[ids])

    def changes(self) -> Changes:
        """For the runner."""
        return Changes(self.at, np.where(self.adds, ADD_ARC, RETIRE_ARC), self.which)

    def carried_out(self, count: int) -> None:
        """The first ``count`` changes have been carried out: what each id stands for now."""
        adds = np.flatnonzero(self.adds[:count])
        latest = np.zeros(len(self.names), np.int64)
        latest[self.ids[adds]] = self.number[adds]  # of those of one id the last one, which is the greatest
        for name, number in zip(self.names, latest.tolist(), strict=True):
            if number:
                self.tables.known[name] = number


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


def _encoded(table: pa.Table, name: str) -> tuple[I64, list[Any]]:
    """A column as codes and what they stand for; −1: NULL."""
    column = table.column(name).combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = column.indices.fill_null(-1).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.asarray(codes), column.dictionary.to_pylist()
