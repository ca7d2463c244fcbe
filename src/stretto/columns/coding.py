"""Columns as small alphabets: one pass over a column says all that any number of conditions want to know of it.

A *coder* reads one column and adds a digit to the cell of each row: for a string which of the known constants it is, for a
number its place among the constants that it is compared with. Codes that no condition tells apart are one code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.columns.arrays import bits_of, frozen, numbers_of
from stretto.columns.grid import on_grid, snapped, snapped_real
from stretto.columns.vectorized import judged, mask
from stretto.query import predicate as p
from stretto.query.evaluate import holds, like_search
from stretto.query.typing import kind_of

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]
Truth = NDArray[np.bool_]

#: Fills the cells of rows [start, stop): ``fill(start, stop, cell)`` adds the digit of one column.
Fill = Callable[[int, int, I64], None]

NEAR = 1 << 12  #: integer constants that lie within so many are looked up in an array
GROUP = 10  #: conditions that make one digit of 2^n codes
COMPUTED = 6  #: … of 3^n codes, where they compute integers

_LOW32 = np.uint64(0xFFFFFFFF)
_SHIFT32 = np.uint64(32)
_MIX = np.uint64(0x9E3779B1)  # below 2^32: products of 32 bits never wrap, compiled or not
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_LEAST = -(1 << 63)
_MOST = (1 << 63) - 1


@inlined
def _is_null(bits: U8, at: int) -> Any:
    """Whether bit ``at`` of a validity bitmap is 0; an empty bitmap says that nothing is NULL."""
    return bits.size != 0 and (bits[at >> 3] >> (at & 7)) & 1 == 0


@jit
def _add_places(values: I64, real: bool, bits: U8, at: int, thresholds: I64, count: int, lut: I64, cell: I64) -> None:
    """``cell[i] += lut[place of values[i]]``: 2k between thresholds, 2k + 1 equal to threshold k, the last one NULL.

    ``thresholds`` ascend, padded with the greatest integer to a power of two above ``count``. ``at`` is the bit of
    ``values[0]`` in ``bits``. With ``real`` values are the bits of floats, read as integers of the same order (see
    :func:`_ranks`). Cost: log₂ of the thresholds, per row. Writes ``cell``.
    """
    half = thresholds.size >> 1
    null = lut[2 * count + 1]
    for i in range(cell.size):
        if _is_null(bits, at + i):
            cell[i] += null
            continue
        value = values[i]
        if real:
            value ^= (value >> 63) & _MOST
            value += value == -1  # −0.0
        low = 0
        step = half
        while step:
            low += step * (thresholds[low + step - 1] < value)
            step >>= 1
        cell[i] += lut[2 * low + ((low < count) & (thresholds[low] == value))]


@jit
def _add_near(values: I64, bits: U8, at: int, low: int, lut: I64, null: int, cell: I64) -> None:
    """``cell[i] += lut[values[i] - low]``; values beyond either end of ``lut`` have its first or last entry. O(1) a row."""
    last = low + lut.size - 1
    for i in range(cell.size):
        value = min(max(values[i], low), last) - low
        cell[i] += null if _is_null(bits, at + i) else lut[value]


@jit
def _add_coded(codes: I32, bits: U8, at: int, lut: I64, null: int, cell: I64) -> None:
    """``cell[i] += lut[codes[i]]``, or ``null``. O(1) a row; reads codes, bits, lut, writes ``cell``."""
    for i in range(cell.size):
        cell[i] += null if _is_null(bits, at + i) else lut[codes[i]]


class Known(NamedTuple):
    """The constants of a string column: open addressing by length and first eight bytes."""

    slot: I64  #: number + 1 of the constant, 0 empty; a power of two long
    word: U64  #: by number: the first eight bytes, little-endian, zero-padded
    start: I64  #: by number: where the bytes start; one more entry than constants
    data: U8  #: the bytes of all constants


@inlined
def _slot(word: Any, size: Any, wrap: int) -> Any:
    folded = (word ^ (word >> _SHIFT32) ^ np.uint64(size)) & _LOW32
    return np.int64((folded * _MIX) >> _SHIFT32) & wrap


@jit
def _place(known: Known) -> None:
    """Fill the empty slots."""
    wrap = known.slot.size - 1
    for number in range(known.word.size):
        at = _slot(known.word[number], known.start[number + 1] - known.start[number], wrap)
        while known.slot[at]:
            at = (at + 1) & wrap
        known.slot[at] = number + 1


@jit
def _add_strings(offsets: NDArray[Any], data: U8, bits: U8, at: int, known: Known, lut: I64, cell: I64) -> None:
    """``cell[i] += lut[number of the constant that row i is]``; ``lut`` ends with any other string, and NULL.

    ``offsets`` has one entry more than rows, into ``data`` (Arrow's layout). Cost per row: one load of eight bytes, one
    probe, and the rest of the bytes where a constant is longer. Writes ``cell``.
    """
    wrap = known.slot.size - 1
    other = lut[known.word.size]
    null = lut[known.word.size + 1]
    for i in range(cell.size):
        if _is_null(bits, at + i):
            cell[i] += null
            continue
        begin = np.int64(offsets[i])
        size = np.int64(offsets[i + 1]) - begin
        word = _ZERO
        if begin + 8 <= data.size:
            word = data[begin : begin + 8].view(np.uint64)[0]
            if size < 8:
                word &= (_ONE << np.uint64(8 * size)) - _ONE
        else:
            for k in range(size if size < 8 else 8):
                word |= np.uint64(data[begin + k]) << np.uint64(8 * k)
        slot = _slot(word, size, wrap)
        found = other
        while known.slot[slot]:
            number = known.slot[slot] - 1
            start = known.start[number]
            if known.word[number] == word and known.start[number + 1] - start == size:
                k = 8
                while k < size and known.data[start + k] == data[begin + k]:
                    k += 1
                if k >= size:
                    found = lut[number]
                    break
            slot = (slot + 1) & wrap
        cell[i] += found


# -- coders --------------------------------------------------------------------------------------------------------

_NO_BITS: U8 = frozen(np.zeros(0, np.uint8))


def _bitmap(array: pa.Array) -> U8:
    """The validity bitmap (from the buffer's start); empty when nothing is NULL."""
    buffer = array.buffers()[0] if array.null_count else None
    return _NO_BITS if buffer is None else frozen(np.frombuffer(buffer, np.uint8))


class Coder(ABC):
    """Reads one column, or some conditions, and gives each row a code.

    ``truth[code, k]`` says whether ``atoms[k]`` holds on rows of a code.
    """

    column: str | None = None

    def __init__(self, atoms: Sequence[p.Predicate | Unknown], truth: Truth) -> None:
        self.atoms = tuple(atoms)
        packed = np.packbits(truth, axis=1)
        _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        #: By code after those that no condition tells apart became one: [code, atom].
        self.truth: Truth = truth[first]
        self._reduced: I64 = inverse.reshape(-1).astype(np.int64)

    @property
    def radix(self) -> int:
        """The number of codes."""
        return int(self.truth.shape[0])

    def fill(self, batch: pa.RecordBatch, stride: int) -> Fill:
        """What adds ``stride`` times the code of each row to its cell."""
        assert self.column is not None
        return self._fill(batch.column(self.column), frozen(self._reduced * stride))

    def _fill(self, array: pa.Array, lut: I64) -> Fill:
        if not pa.types.is_dictionary(array.type):
            return self._fill_plain(array, lut)
        values = array.dictionary
        by_value = np.zeros(len(values), np.int64)
        self._fill_plain(values, lut)(0, len(values), by_value)
        return _gather(array, frozen(by_value), int(lut[self._null]))

    @property
    def _null(self) -> int:
        """The code of NULL, before reduction."""
        return self._reduced.size - 1

    @abstractmethod
    def _fill_plain(self, array: pa.Array, lut: I64) -> Fill:
        """For an array that is no dictionary array; ``lut`` is by code before reduction."""


def _gather(array: pa.DictionaryArray, by_value: I64, null: int) -> Fill:
    """A dictionary array's digit from that of its values."""
    indices, bits, offset = numbers_of(array.indices), _bitmap(array), array.offset

    def fill(start: int, stop: int, cell: I64) -> None:
        codes = frozen(indices[start:stop].astype(np.int32, copy=False))
        _add_coded(codes, bits, offset + start, by_value, null, cell)

    return fill


class _Strings(Coder):
    """Strings that are only asked whether they equal constants. Codes: each constant, any other string, NULL."""

    def __init__(self, column: str, atoms: Sequence[p.Predicate]) -> None:
        self.column = column
        sought = [_equal_to(atom) for atom in atoms]
        number = {text: k for k, text in enumerate(dict.fromkeys(text for texts in sought for text in texts))}
        count = len(number)
        truth = np.zeros((count + 2, len(atoms)), np.bool_)
        for k, (atom, texts) in enumerate(zip(atoms, sought, strict=True)):
            if isinstance(atom, p.IsNull):
                truth[count + 1, k] = True
                continue
            truth[[number[text] for text in texts], k] = True
            if isinstance(atom, p.Comparison) and atom.op == "!=":
                truth[: count + 1, k] ^= True
        super().__init__(atoms, truth)
        encoded = [text.encode("utf-8", "surrogatepass") for text in number]
        start = np.zeros(count + 1, np.int64)
        np.cumsum([len(text) for text in encoded], out=start[1:])
        word = np.array([int.from_bytes(text[:8], "little") for text in encoded], np.uint64)
        slots = np.zeros(1 << (4 * count + 1).bit_length(), np.int64)
        known = Known(slots, frozen(word), frozen(start), frozen(np.frombuffer(b"".join(encoded), np.uint8)))
        _place(known)
        self._known = known._replace(slot=frozen(slots))

    def _fill_plain(self, array: pa.Array, lut: I64) -> Fill:
        offsets, data = _strings(array)
        bits, offset, known = _bitmap(array), array.offset, self._known

        def fill(start: int, stop: int, cell: I64) -> None:
            _add_strings(offsets[start : stop + 1], data, bits, offset + start, known, lut, cell)

        return fill


def _strings(array: pa.Array) -> tuple[NDArray[Any], U8]:
    """Offsets of the rows (and one more) and bytes of a string array."""
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    wide = np.int64 if pa.types.is_large_string(array.type) else np.int32
    content = _NO_BITS if data is None else frozen(np.frombuffer(data, np.uint8))
    if offsets is None or not len(array):
        return frozen(np.zeros(len(array) + 1, wide)), content
    return frozen(np.frombuffer(offsets, wide, array.offset + len(array) + 1)[array.offset :]), content


def _equal_to(atom: p.Predicate) -> tuple[str, ...]:
    """The strings that an equality condition names."""
    if isinstance(atom, p.Like):
        return (atom.pattern,)
    told = map(p.against_constant, p.comparisons(atom))
    return tuple(str(one[2].value) for one in told if one is not None)


def _is_equality(atom: p.Predicate) -> bool:
    if isinstance(atom, p.Rlike):
        return False
    if isinstance(atom, p.Like):
        return like_search(atom.pattern)[0] == "equal"
    return isinstance(atom, p.IsNull) or all(
        isinstance(one, p.Comparison) and one.op in ("=", "!=") for one in p.comparisons(atom)
    )


class _Texts(Coder):
    """Strings under conditions on their order or form: each distinct string of a batch is looked at once.

    Codes are the truth of the conditions as a number in base two.
    """

    def __init__(self, column: str, atoms: Sequence[p.Predicate]) -> None:
        self.column = column
        self.conditions = tuple(atoms)
        super().__init__(atoms, _all_truths(len(atoms)))

    def _fill(self, array: pa.Array, lut: I64) -> Fill:
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        values = encoded.dictionary
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        by_value = lut[_base_two(self.conditions, pa.record_batch([values], [self.column]))]
        return _gather(encoded, frozen(by_value), int(by_value[-1]))

    def _fill_plain(self, array: pa.Array, lut: I64) -> Fill:
        return self._fill(array, lut)


def _all_truths(count: int) -> Truth:
    return (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(np.bool_)


def _base_two(atoms: Sequence[p.Predicate], batch: pa.RecordBatch) -> I64:
    code = np.zeros(batch.num_rows, np.int64)
    for bit, atom in enumerate(atoms):
        code |= mask(atom, batch).astype(np.int64) << bit
    return code


class _Masks(Coder):
    """Conditions that relate attributes or compute, each evaluated over whole columns. Codes as of :class:`_Texts`."""

    def __init__(self, atoms: Sequence[p.Predicate]) -> None:
        self.conditions = tuple(atoms)
        super().__init__(atoms, _all_truths(len(atoms)))

    def fill(self, batch: pa.RecordBatch, stride: int) -> Fill:
        lut = self._reduced * stride

        def fill(start: int, stop: int, cell: I64) -> None:
            cell += lut[self.codes(batch.slice(start, stop - start))]

        return fill

    def codes(self, batch: pa.RecordBatch) -> I64:
        """The code of each row, before reduction."""
        return _base_two(self.conditions, batch)

    def _fill_plain(self, array: pa.Array, lut: I64) -> Fill:
        raise AssertionError


@dataclass(frozen=True)
class Unknown:
    """Stands in the place of an atom, and says that integers of 64 bits do not tell whether it holds."""

    atom: p.Predicate


class _Computed(_Masks):
    """Conditions that compute integers. Codes are their truths as a number in base three: false, true, not told."""

    def __init__(self, atoms: Sequence[p.Predicate]) -> None:
        self.conditions = tuple(atoms)
        digits = np.arange(3 ** len(atoms))[:, None] // 3 ** np.arange(len(atoms)) % 3
        both = (*atoms, *(Unknown(atom) for atom in atoms))
        Coder.__init__(self, both, np.concatenate((digits == 1, digits == 2), axis=1))

    def codes(self, batch: pa.RecordBatch) -> I64:
        code = np.zeros(batch.num_rows, np.int64)
        for place, atom in enumerate(self.conditions):
            true, unknown = judged(atom, batch)
            code += 3**place * (true.astype(np.int64) if unknown is None else true + 2 * unknown)
        return code


class _Booleans(Coder):
    """Truth values. Codes: false, true, NULL."""

    def __init__(self, column: str, atoms: Sequence[p.Predicate]) -> None:
        self.column = column
        rows = [{column: value} for value in (False, True, None)]
        super().__init__(atoms, np.array([[holds(atom, row) for atom in atoms] for row in rows], np.bool_))

    def _fill_plain(self, array: pa.Array, lut: I64) -> Fill:
        values, bits, offset = array.buffers()[1], _bitmap(array), array.offset
        null = int(lut[self._null])

        def fill(start: int, stop: int, cell: I64) -> None:
            codes = bits_of(values, offset + start, stop - start).astype(np.int32)
            _add_coded(frozen(codes), bits, offset + start, lut, null, cell)

        return fill


class _Regions(Coder):
    """Numbers and times by their place among the constants that they are compared with.

    Codes: below the first constant, equal to it, between it and the second, …, above the last; NULL. Constants are brought
    onto the column's grid first, so that all are integers; floats are ranked as integers of the same order, with both
    infinities among the constants, so that what lies beyond them is NaN.
    """

    def __init__(self, column: str, kind: pa.DataType, atoms: Sequence[p.Predicate]) -> None:
        self.column = column
        self._kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._real = pa.types.is_floating(self._kind)
        #: What turns the order of unsigned integers into that of signed ones.
        self._shift = 1 << 63 if self._kind == pa.uint64() else 0
        terms = [self._terms(atom) for atom in atoms]
        constants = {term[1] for parts in terms for term in parts if isinstance(term, tuple)}
        if self._real:
            constants |= {-np.inf, np.inf}
        ordered = sorted(constants)
        count = self._count = len(ordered)
        place = {constant: 2 * k + 1 for k, constant in enumerate(ordered)}
        truth = np.zeros((2 * count + 2, len(atoms)), np.bool_)
        for k, (atom, parts) in enumerate(zip(atoms, terms, strict=True)):
            if isinstance(atom, p.IsNull):
                truth[-1, k] = True
                continue
            columns = [self._truth_of(term, place) for term in parts]
            join = np.logical_or if isinstance(atom, p.In) else np.logical_and
            truth[:-1, k] = join.reduce(columns)
        super().__init__(atoms, truth)
        whole = _ranks(np.array(ordered)) if self._real else [constant - self._shift for constant in ordered]
        thresholds = np.full(1 << count.bit_length(), _MOST)
        thresholds[:count] = whole
        self._thresholds = frozen(thresholds)

    def _terms(self, atom: p.Predicate) -> list[Any]:
        """The comparisons of an atom, each ``(op, constant)`` on the grid or its constant truth."""
        told = map(p.against_constant, p.comparisons(atom))
        return [self._term(one[0], one[2].value) for one in told if one is not None]

    def _term(self, op: str, constant: Any) -> Any:
        if not self._real:
            low = 0 if self._shift else _LEAST
            return snapped(op, on_grid(constant, self._kind), low, low + (1 << 64) - 1)
        op, near = snapped_real(op, constant)
        # Minus zero is zero, also as a key of ``place``.
        return op == "!=" if near != near else (op, near + 0.0)

    def _truth_of(self, term: Any, place: Mapping[Any, int]) -> Truth:
        """A comparison's truth on all codes but that of NULL."""
        last = 2 * self._count
        out = np.zeros(last + 1, np.bool_)
        if isinstance(term, bool):
            out[:] = term
            return out
        op, constant = term
        at = place[constant]
        if op in ("=", "!="):
            out[at] = True
        elif op[0] == "<":
            out[: at + (op == "<=")] = True
        else:
            out[at + (op == ">") :] = True
        if op == "!=":
            return ~out
        if self._real:  # NaN
            out[[0, last]] = False
        return out

    def _fill_plain(self, array: pa.Array, lut: I64) -> Fill:
        values, bits, offset = numbers_of(array), _bitmap(array), array.offset
        thresholds, count, real = self._thresholds, self._count, self._real
        near = self._near(lut)

        def fill(start: int, stop: int, cell: I64) -> None:
            piece = values[start:stop]
            if real:
                piece = piece.astype(np.float64, copy=False).view(np.int64)
            elif self._shift:
                piece = (piece ^ np.uint64(self._shift)).view(np.int64)
            whole = frozen(piece.astype(np.int64, copy=False))
            if near is not None:
                low, table = near
                _add_near(whole, bits, offset + start, low, table, int(lut[-1]), cell)
            else:
                _add_places(whole, real, bits, offset + start, thresholds, count, lut, cell)

        return fill

    def _near(self, lut: I64) -> tuple[int, I64] | None:
        """A table by value, and its first value, where the constants lie close together."""
        if self._real or not self._count:
            return None
        first, last = int(self._thresholds[0]), int(self._thresholds[self._count - 1])
        if last - first > NEAR or first == _LEAST or last == _MOST:
            return None
        codes = np.searchsorted(self._thresholds[: self._count], np.arange(first - 1, last + 2))
        equal = np.isin(np.arange(first - 1, last + 2), self._thresholds[: self._count])
        return first - 1, frozen(lut[2 * codes + equal])


def _ranks(values: NDArray[np.float64]) -> I64:
    """Integers in the order of floats, equal where they are: their bits, those of negative numbers but the sign turned."""
    bits = (values + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _MOST)


def coders_for(column: str | None, kind: pa.DataType | None, atoms: Sequence[p.Predicate]) -> list[Coder]:
    """Make what tells the conditions on one column (or on no single column) apart."""
    if column is not None and kind is not None:
        match kind_of(kind):
            case "string":
                equalities = [atom for atom in atoms if _is_equality(atom)]
                others = [atom for atom in atoms if not _is_equality(atom)]
                if others and all(isinstance(atom, p.IsNull) for atom in equalities):
                    equalities, others = [], [*others, *equalities]
                coders: list[Coder] = [_Strings(column, equalities)] if equalities else []
                return coders + [_Texts(column, group) for group in _groups(others)]
            case "int" | "float" | "time":
                return [_Regions(column, kind, atoms)]
            case "bool":
                return [_Booleans(column, atoms)]
    plain = [atom for atom in atoms if not p.computes(atom)]
    computing = [atom for atom in atoms if p.computes(atom)]
    return [*map(_Masks, _groups(plain)), *map(_Computed, _groups(computing, COMPUTED))]


def _groups(atoms: Sequence[p.Predicate], most: int = GROUP) -> list[Sequence[p.Predicate]]:
    return [atoms[at : at + most] for at in range(0, len(atoms), most)]


def single_column(atom: p.Predicate) -> str | None:
    """Find the one attribute that an atomic predicate compares with constants; ``None``: there is none."""
    if isinstance(atom, p.Like | p.IsNull):
        operand: p.Operand | None = atom.operand
    else:
        told = [p.against_constant(one) for one in p.comparisons(atom)]
        operands = {None if one is None else one[1] for one in told}  # two of ``5 BETWEEN low AND high``
        operand = operands.pop() if len(operands) == 1 else None
    return operand.name if isinstance(operand, p.Attribute) else None
