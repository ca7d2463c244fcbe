"""State as bytes: a versioned frame of sections, into which each object writes itself and from which it reads itself. Never pickle.

Layout (``docs/snapshots.md``): a magic, a version (u16), the header's length (u32), the header (JSON, UTF-8), the arrays one after
the other, and a CRC-32 of all before it (u32). Integers are little-endian.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.errors import EngineError, LimitError, OptionError, SnapshotError

MAGIC = b"STRETTO\0"

#: The version that is written; those before are read. The first has all numbers at their full width.
VERSION = 2

#: Arrays that are shorter keep their width: to say how they were narrowed would take as much.
_SHORT = 64

#: Magic, version, and the length of the header.
_HEAD = struct.Struct("<8sHI")

_CHECK = struct.Struct("<I")

#: The types of arrays, as NumPy writes them.
_KIND = re.compile("[<|][biuf][1248]")

#: What reading numbers, texts and tables that do not fit together ends in.
_NO_FIT = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
    MemoryError,
    OSError,
    pa.ArrowException,
)

Arrays = dict[str, NDArray[Any]]

#: A bound of numbers: one of all, one of each, or none.
Bound = int | NDArray[np.int64] | None


class Section:
    """What one object keeps: values, which JSON can write, and arrays, of which the words are kept, not the shape.

    A section within it is a part of its own, :meth:`sub`; in the header its values stand under its name, and its arrays have the name
    before theirs.

    >>> whole = Section({"rows": 3})
    >>> whole.sub("keys").arrays["words"] = np.array([1, 2])
    >>> again = Section.of_bytes(whole.to_bytes())
    >>> again.values["rows"], again.sub("keys").arrays["words"].tolist()
    (3, [1, 2])
    """

    def __init__(self, values: dict[str, Any] | None = None, arrays: Arrays | None = None) -> None:
        self.values: dict[str, Any] = {} if values is None else values
        self.arrays: Arrays = {} if arrays is None else arrays
        self._subs: dict[str, Section] = {}

    def sub(self, name: str) -> Section:
        """The section of this name; one that nothing was written into is empty."""
        if name not in self._subs:
            values = self.values.pop(name) if isinstance(self.values.get(name), dict) else {}
            begin = f"{name}."
            inside = [key for key in self.arrays if key.startswith(begin)]
            self._subs[name] = Section(values, {key.removeprefix(begin): self.arrays.pop(key) for key in inside})
        return self._subs[name]

    def drop(self, name: str) -> None:
        """Leave out the section of this name."""
        self._subs.pop(name, None)

    def flat(self) -> tuple[dict[str, Any], Arrays]:
        """All values and all arrays, those of sections within it included."""
        values, arrays = dict(self.values), dict(self.arrays)
        for name, one in self._subs.items():
            own, more = one.flat()
            if own:
                values[name] = own
            arrays |= {f"{name}.{key}": array for key, array in more.items()}
        return values, arrays

    # -- numbers ------------------------------------------------------------------------------------------------------

    def numbers(
        self,
        name: str,
        *,
        size: int | None = None,
        least: Bound = None,
        below: Bound = None,
        rising: bool = False,
        ordered: bool = False,
    ) -> NDArray[np.int64]:
        """The integers of an array that was kept.

        Parameters
        ----------
        size
            How many there must be.
        least, below
            The range in which they must lie: of all, or of each by itself.
        rising
            Whether each must be above the one before.
        ordered
            Whether none may be below the one before.

        Raises
        ------
        SnapshotError
            One is out of its range, or there are more or fewer.

        >>> Section(arrays={"head": np.array([0, 7])}).numbers("head", least=0, below=5)
        Traceback (most recent call last):
        stretto.errors.SnapshotError: the snapshot is damaged: 'head' holds 7 at place 1, where a number below 5 is expected
        """
        array = self.arrays[name]
        if array.dtype.kind not in "biu":
            raise SnapshotError(f"the snapshot is damaged: '{name}' holds {array.dtype}, where integers are expected")
        held: NDArray[np.int64] = array.astype(np.int64)
        if size is not None and held.size != size:
            raise SnapshotError(
                f"the snapshot is damaged: '{name}' holds {held.size} numbers, where {size} are expected"
            )
        if least is not None:
            _refuse(name, held, held < least, "a number from {} on", least)
        if below is not None:
            _refuse(name, held, held >= below, "a number below {}", below)
        if (rising or ordered) and held.size:
            before = np.roll(held, 1)
            wrong = held <= before if rising else held < before
            wrong[0] = False  # nothing is before the first
            _refuse(name, held, wrong, "a number above {}" if rising else "a number from {} on", before)
        return held

    def count(self, name: str, most: int | None = None) -> int:
        """A whole number of the header that is not negative, and not above ``most``.

        Raises
        ------
        SnapshotError
            It is another one.
        """
        held = self.values[name]
        if type(held) is not int or not 0 <= held < 1 << 62 or (most is not None and held > most):
            upto = "" if most is None else f" to {most}"
            raise SnapshotError(
                f"the snapshot is damaged: '{name}' is {held!r}, where a number from 0{upto} is expected"
            )
        return held

    def counts(self, name: str, size: int) -> list[int]:
        """So many whole numbers of the header, each as :meth:`count` has it."""
        numbered = Section({f"{name}.{at}": held for at, held in enumerate(self.values[name])})
        if len(numbered.values) != size:
            raise SnapshotError(
                f"the snapshot is damaged: '{name}' holds {len(numbered.values)} numbers, where {size} are expected"
            )
        return [numbered.count(own) for own in numbered.values]

    def measure(self, name: str, *, whole: bool = False) -> int | float | None:
        """A time or another number of the header that bounds what comes; ``None``: there is none yet.

        Integers are those of 64 bits. Doubles are in the order of numbers, so that NaN is none; with ``whole`` there are none at all.

        Raises
        ------
        SnapshotError
            It is another one.
        """
        held = self.values[name]
        if type(held) is int:
            fits = -(1 << 63) <= held < 1 << 63
        else:
            fits = held is None or (type(held) is float and not whole and not math.isnan(held))
        if fits:
            return held  # type: ignore[no-any-return]
        expected = "a whole number of 64 bits" if whole else "a number of 64 bits"
        raise SnapshotError(f"the snapshot is damaged: '{name}' is {held!r}, where {expected} is expected")

    def flag(self, name: str) -> bool:
        """A truth value of the header.

        Raises
        ------
        SnapshotError
            It is another one.
        """
        held = self.values[name]
        if type(held) is not bool:
            raise SnapshotError(f"the snapshot is damaged: '{name}' is {held!r}, where a truth value is expected")
        return held

    # -- tables -------------------------------------------------------------------------------------------------------

    def put_table(self, name: str, table: pa.Table | pa.RecordBatch) -> None:
        """Keep a table, as an array of bytes."""
        self.arrays[name] = np.frombuffer(arrow_bytes(table), np.uint8)

    def table(self, name: str) -> pa.Table:
        """A table that was kept; earlier versions kept some as text in the header."""
        if name in self.values:
            return kept_table(base64.b64decode(self.values[name]))
        return kept_table(self.arrays[name])

    def put_schema(self, name: str, schema: pa.Schema) -> None:
        """Keep names and types of columns."""
        self.values[name] = base64.b64encode(schema.serialize()).decode()

    def schema(self, name: str) -> pa.Schema:
        """Names and types of columns that were kept."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.values[name])))

    # -- bytes --------------------------------------------------------------------------------------------------------

    def to_bytes(self, magic: bytes = MAGIC, version: int = VERSION) -> bytes:
        """Write header, sections and checksum as bytes."""
        values, arrays = self.flat()
        chunks, listed = [], []
        for name, array in arrays.items():
            little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
            little, *how = _narrow(little.reshape(-1))
            listed.append([name, array.dtype.newbyteorder("<").str, int(little.size), *how])
            chunks.append(little.view(np.uint8).data)
        return framed(values | {"arrays": listed}, chunks, magic, version)

    @classmethod
    def of_bytes(cls, snapshot: bytes, magic: bytes = MAGIC, version: int = VERSION) -> Section:
        """The section that :meth:`to_bytes` wrote; its arrays are read-only.

        Raises
        ------
        SnapshotError
            The bytes are damaged, or of another kind or version.
        """
        values, at = unframed(snapshot, magic, *range(1, version + 1))
        arrays: Arrays = {}
        with reading():
            for name, kind, size, *how in values.pop("arrays"):
                its = how[0] if how else kind
                if not _KIND.fullmatch(its):
                    raise ValueError(f"there is no array {name!r} of {its!r}")
                dtype, room = np.dtype(its), len(snapshot) - _CHECK.size - at
                if not isinstance(name, str) or not 0 <= size * dtype.itemsize <= room:
                    raise ValueError(f"there is no array {name!r} of {size} times {dtype}")
                kept = np.frombuffer(snapshot, dtype, size, at)
                arrays[name] = _widen(kept, *how[1:]) if how else kept
                at += size * dtype.itemsize
        return cls(values, arrays)


def _refuse(name: str, held: NDArray[np.int64], wrong: NDArray[np.bool_], expected: str, bound: Bound) -> None:
    """Raise a :class:`SnapshotError` for the first number of an array that is wrong."""
    if wrong.any():
        place = int(np.argmax(wrong))
        wanted = expected.format(np.broadcast_to(np.asarray(bound), held.shape)[place])
        raise SnapshotError(
            f"the snapshot is damaged: '{name}' holds {held[place]} at place {place}, where {wanted} is expected"
        )


def _narrow(array: NDArray[Any]) -> tuple[Any, ...]:
    """Integers in as few bytes as they take, with the type, the least one, and whether steps are kept in place of the numbers.

    The array alone: it stays as it is.
    """
    if array.dtype != np.int64 or array.size < _SHORT:
        return (array,)
    low, spread = int(array.min()), int(array.max()) - int(array.min())
    kind = np.min_scalar_type(spread)
    if kind.itemsize > 1 and spread < 1 << 62:
        steps = np.diff(array, prepend=array[0])
        if int(array[0]) == low and int(steps.min()) >= 0:
            of_steps = np.min_scalar_type(int(steps.max()))
            if of_steps.itemsize < kind.itemsize:
                return steps.astype(of_steps.newbyteorder("<")), of_steps.newbyteorder("<").str, low, True
    if kind.itemsize == array.itemsize:
        return (array,)
    return (array - low).astype(kind.newbyteorder("<")), kind.newbyteorder("<").str, low, False


def _widen(array: NDArray[Any], low: int, steps: bool) -> NDArray[np.int64]:
    """What :func:`_narrow` was given."""
    wide: NDArray[np.int64] = np.cumsum(array, dtype=np.int64) if steps else array.astype(np.int64)
    wide += low
    return wide


def framed(header: dict[str, Any], chunks: Sequence[bytes | memoryview], magic: bytes, version: int) -> bytes:
    """A header and what follows it as a frame."""
    text = json.dumps(header, separators=(",", ":")).encode()
    chunks = [_HEAD.pack(magic, version, len(text)), text, *chunks]
    check = 0
    for chunk in chunks:
        check = zlib.crc32(chunk, check)
    return b"".join([*chunks, _CHECK.pack(check)])


def unframed(frame: bytes, magic: bytes, *versions: int) -> tuple[dict[str, Any], int]:
    """The header of a frame of one of the versions that are read, and where the chunks begin.

    Raises
    ------
    SnapshotError
        The bytes are damaged, or of another kind or version.
    """
    at = header_size(frame, magic, *versions)
    if len(frame) < at + _CHECK.size or zlib.crc32(memoryview(frame)[:-4]) != _CHECK.unpack(frame[-4:])[0]:
        raise SnapshotError("the snapshot is damaged: its checksum does not match")
    return header_of(frame, at), at


def header_size(start: bytes, magic: bytes, *versions: int) -> int:
    """How many bytes of a frame its header takes, with what stands before it."""
    if len(start) < _HEAD.size or not start.startswith(magic):
        raise SnapshotError("these bytes are not a stretto snapshot")
    _, found, length = _HEAD.unpack_from(start)
    if found not in versions:
        newer = ": upgrade stretto" if found > max(versions) else ""
        raise SnapshotError(
            f"the snapshot has format version {found}; this stretto reads version {versions[-1]}{newer}"
        )
    return _HEAD.size + int(length)


def header_of(start: bytes, size: int) -> dict[str, Any]:
    """The header, of the first bytes of a frame, of which it takes ``size``."""
    with reading():
        found = json.loads(start[_HEAD.size : size])
        if not isinstance(found, dict):
            raise ValueError("its header is no object")
        return found


@contextmanager
def reading() -> Iterator[None]:
    """Within it, what does not fit together is a damaged snapshot. It may be around a method that restores, as ``@reading()``.

    A matcher that cannot take a snapshot over now, and a bound that was reached, are told as they are.
    """
    try:
        yield
    except (SnapshotError, OptionError, EngineError, LimitError):
        raise
    except _NO_FIT as error:
        raise SnapshotError(f"the snapshot is damaged: {error or type(error).__name__}") from error


def arrow_bytes(table: pa.Table | pa.RecordBatch) -> pa.Buffer:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table.combine_chunks() if isinstance(table, pa.Table) else table)
    return sink.getvalue()


def arrow_table(data: Any) -> pa.Table:
    """The table of an Arrow IPC stream: bytes, or an array of them."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def check_kinds(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> None:
    """Raise unless a table that was kept has some columns, of types that can be joined with those that these have now.

    Raises
    ------
    LookupError, ArrowInvalid
        It has not.
    """
    for name, kind in kinds.items():
        held = table.column(name)
        both = ((one.value_type if pa.types.is_dictionary(one) else one) for one in (kind, held.type))
        joined = pa.unify_schemas([pa.schema([(name, one)]) for one in both], promote_options="permissive")
        if not pa.types.is_dictionary(held.type):
            held.cast(joined.field(0).type)


def kept_table(data: Any) -> pa.Table:
    """The table of an Arrow IPC stream that was kept, of which every offset is checked.

    Raises
    ------
    SnapshotError
        The bytes are damaged.
    """
    with reading():
        table = arrow_table(data)
        table.validate(full=True)
        return table
