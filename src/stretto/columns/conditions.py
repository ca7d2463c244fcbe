"""Conditions over columns: the atoms that they are made of, and the columns that tell these apart."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from stretto.array_types import Bits
from stretto.columns.coding import Coder, Unknown, coders_for, single_column
from stretto.columns.vectorized import Judged
from stretto.errors import DataError
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.evaluate import holds
from stretto.query.typing import kind_of

#: From the truth of all atoms to that of a condition, for any number of cells; scalars where it is the same on all.
Formula = Callable[[Sequence[Bits]], Judged]


class Conditions:
    """Typed conditions, their distinct atoms, and a coder for each column that these read.

    Parameters
    ----------
    conditions
        Typed conditions (:func:`stretto.query.typing.typed`); ``None``: one that never holds.
    schema
        The columns.
    most
        How many atoms one coder tells apart at most: its truth table grows with their square.
    """

    def __init__(self, conditions: Sequence[p.Predicate | None], schema: Schema, *, most: int | None = None) -> None:
        self.schema = schema
        self._most = most
        self._atoms: dict[str, p.Predicate] = {}
        self._numbers: dict[str, int] = {}
        self._conditions = list(conditions)
        self._formulas = [None if one is None else self._formula(one) for one in self._conditions]
        self._coders = self._make_coders()
        self._order = [self._numbers[repr(atom)] for coder in self._coders for atom in coder.atoms]
        self._columns = list(dict.fromkeys(name for atom in self._atoms.values() for name in p.attributes(atom)))

    def _formula(self, predicate: p.Predicate) -> Formula:
        match predicate:
            case p.And(parts) | p.Or(parts):
                inner = [self._formula(part) for part in parts]
                start = Judged(np.array(isinstance(predicate, p.And)), None)
                join = operator.and_ if isinstance(predicate, p.And) else operator.or_
                return lambda truth: reduce(join, (one(truth) for one in inner), start)
            case p.Not(part):
                negated = self._formula(part)
                return lambda truth: ~negated(truth)
        names = p.attributes(predicate)
        if any(pa.types.is_null(self.schema.attributes[name]) for name in names) or not names:
            # With one NULL a condition is what it is with NULLs only.
            constant = Judged(np.array(holds(predicate, dict.fromkeys(names))), None)
            return lambda truth: constant
        # By text: 1 and 1.0 are equal in Python, and integer and float arithmetic are not.
        name = repr(predicate)
        number = self._numbers.setdefault(name, len(self._numbers))
        self._atoms[name] = predicate
        if not p.computes(predicate):
            return lambda truth: Judged(truth[number], None)
        untold = self._numbers.setdefault(repr(Unknown(predicate)), len(self._numbers))
        return lambda truth: Judged(truth[number], truth[untold])

    def _make_coders(self) -> list[Coder]:
        by_column: dict[str, list[p.Predicate]] = {}
        others: list[p.Predicate] = []
        for atom in self._atoms.values():
            column = single_column(atom)
            if column is None or kind_of(self.schema.attributes[column]) in ("decimal", "other"):
                others.append(atom)
            else:
                by_column.setdefault(column, []).append(atom)
        coders = [
            coder
            for column, atoms in by_column.items()
            for low in range(0, len(atoms), self._most or len(atoms))
            for coder in coders_for(
                column, self.schema.attributes[column], atoms[low : low + (self._most or len(atoms))]
            )
        ]
        return coders + coders_for(None, None, others)

    def _check(self, batch: pa.RecordBatch) -> None:
        for name in self._columns:
            found, expected = batch.schema.field(name).type, self.schema.attributes[name]
            if found != expected and _plain(found) != _plain(expected):
                raise DataError(f"column '{name}' is {found}, expected {expected}")


def _plain(kind: pa.DataType) -> str:
    """A type without its encoding: dictionaries, and the layouts of strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    return str(kind)
