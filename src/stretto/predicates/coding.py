"""Columns as small alphabets: one pass over a column says all that any number of conditions want to know of it.

A *coder* reads one column and gives each row a code; :attr:`Coder.truth` says which of the column's conditions hold on
each code. Strings are coded by the few constants that they are compared with, numbers by the intervals between constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.pattern import predicate as p
from stretto.pattern.evaluate import compare as compared
from stretto.pattern.typing import kind_of
from stretto.predicates.vectorized import mask

__all__ = ["MOST_ATOMS", "Coder", "coder_for", "frozen", "single_column", "string_buffers"]

I64 = NDArray[np.int64]
Truth = NDArray[np.bool_]


class Coder(Protocol):
    """Codes one column (or one condition) of a batch."""

    @property
    def column(self) -> str | None:
        """The column, or ``None`` for conditions that read several."""

    @property
    def atoms(self) -> Sequence[p.Predicate]:
        """The conditions that the codes tell apart."""

    @property
    def truth(self) -> Truth:
        """[code, atom]: which conditions hold on which code."""

    def add(self, batch: pa.RecordBatch, lut: I64, cell: I64) -> None:
        """``cell[row] += lut[code of row]``."""


def single_column(atom: p.Predicate) -> str | None:
    """The one attribute that an atomic predicate compares with constants, or ``None``."""
    match atom:
        case p.Comparison(_, p.Attribute(name), p.Constant()) | p.Comparison(_, p.Constant(), p.Attribute(name)):
            return name
        case p.In(p.Attribute(name)) | p.Like(p.Attribute(name)) | p.IsNull(p.Attribute(name)):
            return name
        case p.Between(p.Attribute(name), p.Constant(), p.Constant()):
            return name
    return None


def coder_for(column: str | None, kind: pa.DataType | None, atoms: Sequence[p.Predicate]) -> Coder:
    """The cheapest coder that can tell ``atoms`` apart."""
    if column is not None and kind is not None:
        match kind_of(kind):
            case "string" if all(_is_equality(atom) for atom in atoms):
                return StringCoder(column, atoms)
            case "string":
                return DictionaryCoder(column, atoms)
            case "int" if kind != pa.uint64() and all(_is_exact(c) for atom in atoms for c in _constants(atom)):
                return RegionCoder(column, atoms, real=False)
            case "float":
                return RegionCoder(column, atoms, real=True)
    return MaskCoder(atoms)


def _constants(atom: p.Predicate) -> list[p.Value]:
    return [node.value for node in p.walk(atom) if isinstance(node, p.Constant)]


def _is_equality(atom: p.Predicate) -> bool:
    return isinstance(atom, p.In | p.IsNull) or (isinstance(atom, p.Comparison) and atom.op in ("=", "!="))


def _is_exact(value: p.Value) -> bool:
    """Whether comparing with it as a double says the same as comparing exactly, for any 64-bit integer."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, float) and abs(value) < 2**53


# -- strings ------------------------------------------------------------------------------------------------------------


class StringCoder:
    """Codes: k the k-th constant, then NULL, then any other string. Arrow's hash lookup finds the constants."""

    def __init__(self, column: str, atoms: Sequence[p.Predicate]) -> None:
        self.column: str | None = column
        self.atoms = atoms
        texts = list(dict.fromkeys(str(c) for atom in atoms for c in _constants(atom)))
        self._null = len(texts)
        self._known = pa.array([*texts, None], pa.string())
        values: list[str | None] = [*texts, None, None]
        self.truth = np.array(
            [[_equals(atom, value, code == self._null) for atom in atoms] for code, value in enumerate(values)],
            np.bool_,
        )

    def add(self, batch: pa.RecordBatch, lut: I64, cell: I64) -> None:
        array = batch.column(self.column)
        if pa.types.is_dictionary(array.type):
            codes = np.append(lut[self._codes(array.dictionary)], lut[self._null])
            cell += codes[_indices(array)]
        else:
            cell += lut[self._codes(array)]

    def _codes(self, array: pa.Array) -> NDArray[np.int32]:
        known = self._known
        if pa.types.is_string_view(array.type):
            array = array.cast(pa.large_string())
        if array.type != known.type:
            known = known.cast(array.type)
        found = pc.fill_null(pc.index_in(array, value_set=known), self._null + 1)
        return np.asarray(found.to_numpy(zero_copy_only=False))


def _equals(atom: p.Predicate, value: str | None, null: bool) -> bool:
    """An equality condition on a constant, NULL, or (``None``) a string that differs from all constants."""
    match atom:
        case p.IsNull():
            return null
        case p.In(_, constants):
            return value is not None and any(constant.value == value for constant in constants)
        case p.Comparison(op):
            equal = value is not None and _constants(atom)[0] == value
            return not null and (equal if op == "=" else not equal)
    raise AssertionError(atom)


def _indices(array: pa.DictionaryArray) -> I64:
    """The indices of a dictionary array, −1 for NULL."""
    return np.asarray(pc.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False))


def string_buffers(array: pa.Array) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.uint8], NDArray[np.bool_]]:
    """Offsets (one more than rows), bytes and validity (empty: all valid) of a string array, without copying the bytes."""
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        array = array.cast(pa.large_binary() if pa.types.is_binary(array.type) else pa.large_string())
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    kind = np.int64 if wide else np.int32
    if offsets is None or not len(array):
        starts = np.zeros(len(array) + 1, kind)
    else:
        starts = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    valid = np.zeros(0, np.bool_)
    if array.null_count:
        valid = np.array(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    return frozen(starts), frozen(content), valid


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: Numba compiles a kernel anew for writable arrays, so all that only are read look alike."""
    view = array.view()
    view.flags.writeable = False
    return view


class DictionaryCoder:
    """Strings under conditions that need their order or form: each distinct string of a batch is looked at once.

    Codes are the truth of the conditions themselves, as a number in base 2.
    """

    def __init__(self, column: str, atoms: Sequence[p.Predicate]) -> None:
        self.column: str | None = column
        self.atoms = atoms
        self.truth = _all_truths(len(atoms))

    def add(self, batch: pa.RecordBatch, lut: I64, cell: I64) -> None:
        array = batch.column(self.column)
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        values = pa.record_batch(
            [pa.concat_arrays([encoded.dictionary, pa.nulls(1, encoded.dictionary.type)])], [self.column]
        )
        cell += lut[_base_two(self.atoms, values)][_indices(encoded)]


class MaskCoder:
    """Conditions that relate attributes, or compute: one boolean column each. Codes as in :class:`DictionaryCoder`."""

    column: str | None = None

    def __init__(self, atoms: Sequence[p.Predicate]) -> None:
        self.atoms = atoms
        self.truth = _all_truths(len(atoms))

    def add(self, batch: pa.RecordBatch, lut: I64, cell: I64) -> None:
        cell += lut[_base_two(self.atoms, batch)]


#: A coder of this kind takes at most so many conditions: it has 2^n codes.
MOST_ATOMS = 8


def _all_truths(count: int) -> Truth:
    codes = np.arange(1 << count)
    return (codes[:, None] >> np.arange(count)[None, :] & 1).astype(np.bool_)


def _base_two(atoms: Sequence[p.Predicate], batch: pa.RecordBatch) -> I64:
    code = np.zeros(batch.num_rows, np.int64)
    for bit, atom in enumerate(atoms):
        code |= mask(atom, batch).astype(np.int64) << bit
    return code


# -- numbers ------------------------------------------------------------------------------------------------------------


@jit
def _add_regions(values: NDArray[Any], valid: NDArray[np.bool_], thresholds: NDArray[Any], lut: I64, cell: I64) -> None:
    """cell[row] += lut[region]: 2k below threshold k, 2k+1 equal to it; then NaN, then NULL. O(log thresholds) a row."""
    count = thresholds.size
    for row in range(cell.size):
        value = values[row]
        if valid.size and not valid[row]:
            code = 2 * count + 2
        elif value != value:  # NaN
            code = 2 * count + 1
        else:
            low = 0
            high = count
            while low < high:
                middle = (low + high) >> 1
                if thresholds[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            code = 2 * low
            if low < count and thresholds[low] == value:
                code += 1
        cell[row] += lut[code]


class RegionCoder:
    """Numbers by the intervals between the constants that they are compared with."""

    def __init__(self, column: str, atoms: Sequence[p.Predicate], *, real: bool) -> None:
        self.column: str | None = column
        self.atoms = atoms
        self.real = real
        found = {c for atom in atoms for c in _constants(atom) if c == c}
        numbers = {float(c) for c in found} if real else {t for c in found for t in _whole(c)}  # type: ignore[arg-type]
        ordered = sorted(numbers)
        self._thresholds = np.array(ordered, np.float64 if real else np.int64)
        codes = 2 * len(ordered) + 3
        self.truth = np.array([[self._holds(atom, code, ordered) for atom in atoms] for code in range(codes)], np.bool_)

    def _holds(self, atom: p.Predicate, code: int, ordered: Sequence[float | int]) -> bool:
        """An atom on a region; a value between two thresholds compares with every constant alike."""
        if code == 2 * len(ordered) + 2:
            return isinstance(atom, p.IsNull)
        if isinstance(atom, p.IsNull):
            return False
        nan = code == 2 * len(ordered) + 1

        def compare(op: str, constant: float | int) -> bool:
            if nan or constant != constant:
                return op == "!="
            # The sign of (value − constant); a fraction between integers c and c + 1 lies between their regions.
            rank = self._rank(constant, ordered)
            return compared(op, code, rank)

        match atom:
            case p.Comparison(op, p.Attribute(), p.Constant(value)):
                return compare(op, value)  # type: ignore[arg-type]
            case p.Comparison(op, p.Constant(value), _):
                return compare({"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op), value)  # type: ignore[arg-type]
            case p.In(_, constants):
                return any(compare("=", c.value) for c in constants)  # type: ignore[arg-type]
            case p.Between(_, p.Constant(low), p.Constant(high)):
                return compare(">=", low) and compare("<=", high)  # type: ignore[arg-type]
        raise AssertionError(atom)

    def _rank(self, constant: float | int, ordered: Sequence[float | int]) -> float:
        """Where a constant stands among the codes: on its own region, or between those of the integers around it."""
        if self.real:
            return 2 * ordered.index(float(constant)) + 1
        whole = math.floor(constant)
        if whole == constant:
            return 2 * ordered.index(whole) + 1
        return 2 * ordered.index(whole) + 1.5

    def add(self, batch: pa.RecordBatch, lut: I64, cell: I64) -> None:
        array = batch.column(self.column)
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        array = array.cast(pa.float64() if self.real else pa.int64())
        valid = np.zeros(0, np.bool_)
        if array.null_count:
            valid = np.array(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
            array = array.fill_null(0)
        _add_regions(frozen(np.asarray(array.to_numpy(zero_copy_only=False))), valid, self._thresholds, lut, cell)


def _whole(constant: float | int) -> tuple[int, ...]:
    """The integer thresholds that place a constant: itself, or the integers below and above a fraction."""
    whole = math.floor(constant)
    return (whole,) if whole == constant else (whole, whole + 1)
