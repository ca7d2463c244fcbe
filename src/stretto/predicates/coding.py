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
from stretto.pattern.evaluate import COMPARE
from stretto.pattern.typing import kind_of
from stretto.predicates.vectorized import mask

__all__ = ["MOST_ATOMS", "Coder", "coder_for", "frozen", "single_column", "string_buffers"]

I64 = NDArray[np.int64]
Truth = NDArray[np.bool_]


class Coder(Protocol):
    """Codes one column (or one condition) of a batch."""

    column: str | None
    atoms: Sequence[p.Predicate]
    truth: Truth  #: [code, atom]

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


@jit
def _mix(key: int, length: int) -> int:
    """A hash without multiplication, so that it is the same compiled or not."""
    h = key ^ (length << 7)
    h ^= (h >> 33) & 0x7FFFFFFF
    h ^= (h >> 17) & 0x7FFFFFFFFFFF
    return h ^ ((h >> 7) & 0x1FFFFFFFFFFFFFF)


@jit
def _prefix(data: NDArray[np.uint8], begin: int, length: int) -> int:
    """The first eight bytes as an integer."""
    key = np.int64(0)
    for i in range(min(length, 8)):
        key = (key << 8) | np.int64(data[begin + i])
    return key


@jit
def _find(data: NDArray[np.uint8], begin: int, length: int, slots: I64, known: NDArray[np.uint8], bounds: I64) -> int:
    """The number of the constant that equals the bytes, from 1; 0: none. O(length) where one shares the hash slot."""
    wrap = slots.size - 1
    at = _mix(_prefix(data, begin, length), length) & wrap
    while slots[at]:
        number = slots[at]
        first = bounds[number - 1]
        if bounds[number] - first == length:
            i = 0
            while i < length and data[begin + i] == known[first + i]:
                i += 1
            if i == length:
                return number
        at = (at + 1) & wrap
    return 0


@jit
def _add_strings(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], valid: NDArray[np.bool_], slots: I64, known: NDArray[np.uint8],
    bounds: I64, lut: I64, cell: I64,
) -> None:
    """cell[row] += lut[number of the equal constant; 0: another string; last: NULL]. O(length of the string) a row."""
    null = lut.size - 1
    for row in range(cell.size):
        if valid.size and not valid[row]:
            cell[row] += lut[null]
        else:
            begin = np.int64(offsets[row])
            length = np.int64(offsets[row + 1]) - begin
            cell[row] += lut[_find(data, begin, length, slots, known, bounds)]


class StringCoder:
    """Codes: 0 another string, k the k-th constant, last NULL."""

    def __init__(self, column: str, atoms: Sequence[p.Predicate]) -> None:
        self.column = column
        self.atoms = atoms
        texts = list(dict.fromkeys(str(c) for atom in atoms for c in _constants(atom)))
        values: list[str | None] = [None, *texts, None]
        self.truth = np.array([[_equals(atom, code, values) for atom in atoms] for code in range(len(values))], np.bool_)
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._known = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
        self._bounds = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
        self._slots = np.zeros(1 << (2 * len(texts) + 1).bit_length(), np.int64)
        for number, text in enumerate(encoded, start=1):
            raw = np.frombuffer(text or b"\0", np.uint8)
            at = int(_mix(_prefix(raw, 0, len(text)), len(text))) & (self._slots.size - 1)
            while self._slots[at]:
                at = (at + 1) & (self._slots.size - 1)
            self._slots[at] = number

    def add(self, batch: pa.RecordBatch, lut: I64, cell: I64) -> None:
        array = batch.column(self.column)
        if pa.types.is_dictionary(array.type):
            codes = np.zeros(len(array.dictionary) + 1, np.int64)
            self._strings(array.dictionary, lut, codes[:-1])
            codes[-1] = lut[-1]
            # NULLs take the last code; so do values that are NULL in the dictionary, by the string kernel.
            cell += codes[_indices(array)]
        else:
            self._strings(array, lut, cell)

    def _strings(self, array: pa.Array, lut: I64, cell: I64) -> None:
        offsets, data, valid = string_buffers(array)
        _add_strings(offsets, data, valid, self._slots, self._known, self._bounds, lut, cell)


def _equals(atom: p.Predicate, code: int, values: Sequence[str | None]) -> bool:
    """An equality condition on a code. A string that is no constant differs from all of them."""
    null, value = code == len(values) - 1, values[code]
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
        self.column = column
        self.atoms = atoms
        self.truth = _all_truths(len(atoms))

    def add(self, batch: pa.RecordBatch, lut: I64, cell: I64) -> None:
        array = batch.column(self.column)
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        values = pa.record_batch([pa.concat_arrays([encoded.dictionary, pa.nulls(1, encoded.dictionary.type)])], [self.column])
        cell += lut[_base_two(self.atoms, values)][_indices(encoded)]


class MaskCoder:
    """Conditions that relate attributes, or compute: one boolean column each. Codes as in :class:`DictionaryCoder`."""

    column = None

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
        self.column = column
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
            return COMPARE[op](code, rank)

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
