"""Snapshots: a matcher's state as bytes of a versioned, documented format (``docs/snapshots.md``). Never pickle.

Layout: the magic ``STRETTO\\0``, a version (u16), the header's length (u32), the header (JSON, UTF-8), the arrays one after
the other, and a CRC-32 of all before it (u32). Integers are little-endian. The header names the query, schema and options
that the state belongs to, so that a snapshot of anything else is refused with the reason.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.columns.keys import KeyTable
from stretto.engines.afa import saving as afa
from stretto.engines.nfab import saving as nfab
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.tecs.collect import pack, states_in, unpack
from stretto.engines.tecs.labels import Trace
from stretto.engines.tecs.runner import Runner
from stretto.engines.tecs.state import nodes_of
from stretto.engines.tecs.structure import ARENA, FIRST, FREE, HEAD, REGISTERS
from stretto.errors import DataError, SnapshotError
from stretto.events import Schema, conform
from stretto.matching.results import Arrivals

if TYPE_CHECKING:
    from stretto.matching.automaton import AfaMatcher
    from stretto.matching.matcher import Matcher
    from stretto.matching.reorder import Cleanse

__all__ = ["VERSION", "frame", "load", "load_afa", "load_cleanse", "save", "save_afa", "save_cleanse", "unframe"]

MAGIC = b"STRETTO\0"
VERSION = 1

Arrays = dict[str, NDArray[Any]]


def save(matcher: Matcher) -> bytes:
    """The state of a matcher."""
    runner = matcher._runner
    header: dict[str, Any] = {
        "query": matcher.query.text,
        "language": matcher.query.language,
        "started": runner is not None,
    }
    arrays: Arrays = {}
    if runner is not None:
        if runner.broken or matcher._inside:
            raise SnapshotError("the matcher was stopped in the middle of a batch: its state is not at an event")
        header |= _identity(matcher, runner) | {"finished": matcher._finished, "kept": matcher._history.kept}
        if matcher._unknown:
            header["unknown"] = sorted(matcher._unknown)
        header["schema"] = base64.b64encode(pa.schema(list(_fields(matcher))).serialize().to_pybytes()).decode()
        more, found = _saved(runner)
        header |= more
        arrays |= found
        _save_history(matcher, arrays)
        _save_sorter(matcher, header, arrays)
    return frame(header, arrays)


def load(matcher: Matcher, snapshot: bytes) -> None:
    """Give a matcher the state of a snapshot."""
    header, arrays = unframe(snapshot)
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
        found = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(header["schema"])))
        roles = {name: header["roles"][name] for name in ("type", "time", "stream", "time_unit")}
        own = {name: matcher._roles[name] for name in roles}
        if roles != own:
            raise SnapshotError(f"the snapshot's columns have other roles: {roles}, not {own}")
        matcher._bind(Schema.of(found, **roles))
    matcher._start()
    runner = matcher._runner
    assert runner is not None
    _check(header, _identity(matcher, runner))
    try:
        _load(runner, header, arrays)
        _load_history(matcher, arrays)
        if matcher._sorter is not None:
            matcher._sorter.from_arrays(header["sorter"], _group(arrays, "sorter."))
            matcher._arrivals = Arrivals(header["arrivals"], arrays["arrivals"].astype(np.int64))
    except (KeyError, IndexError, ValueError, pa.ArrowInvalid) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error
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
    if _shape(before, unknown) != _shape(after, unknown) or not _keys_fit(before, after):
        raise DataError("what is kept of them depends on it")
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
    header, arrays = unframe(frame(*_saved(before)))
    fresh, blank = unframe(frame(*_saved(after)))
    for name in ("keys", "tests"):  # an empty table of keys has the words of its types
        if not len(getattr(before, name, None) or ()):
            arrays = {key: array for key, array in arrays.items() if not key.startswith(f"{name}.")}
    _load(after, fresh | header, blank | arrays)


def _shape(runner: Any, unknown: frozenset[str]) -> list[Any]:
    """What a state depends on, apart from the literals of conditions and from types of columns that had no value."""

    if not isinstance(runner, NfabRunner):
        cea = runner.program.cea
        moves = [(one.source, one.guard, sorted(one.labels), one.target) for one in cea.transitions]
        return [cea.states, moves, sorted(cea.finals), len(cea.guards)]
    values = runner.program.conditions.values
    columns = [one.attribute if one.attribute in unknown else str((one.attribute, one.kind)) for one in values.columns]
    slots = [
        (
            one.component,
            one.op.name.removesuffix("_REAL") if one.column and columns[one.column - 1] in unknown else one.op.name,
            one.column,
        )
        for one in values.slots
    ]
    edges = len(runner.program.nfab.edges)
    return [edges, columns, slots]


def _keys_fit(before: Any, after: Any) -> bool:
    """Whether tables of keys and strings that hold something are read in the same way."""
    for name in ("keys", "tests"):
        old, new = getattr(before, name, None), getattr(after, name, None)
        if old is not None and len(old) and (new is None or old.types != new.types):
            return False
    old, new = getattr(before, "words", None), getattr(after, "words", None)
    return old is None or not len(old) or (new is not None and old.ordered == new.ordered)


def _saved(runner: Any) -> tuple[dict[str, Any], Arrays]:
    if isinstance(runner, NfabRunner):
        return nfab.saved(runner)
    header: dict[str, Any] = {}
    arrays: Arrays = {}
    _save_runner(runner, header, arrays)
    return header, arrays


def _load(runner: Any, header: dict[str, Any], arrays: Arrays) -> None:
    if isinstance(runner, NfabRunner):
        nfab.load(runner, header, arrays)
    else:
        _load_runner(runner, header, arrays)


def save_afa(matcher: AfaMatcher) -> bytes:
    """The state of a matcher of an AFA."""
    header, arrays = afa.saved(matcher._runner, matcher.afa)
    kinds = list(matcher._kinds.items()) if matcher._bound else [("time", matcher._time_kind)]
    header |= {
        "afa": matcher._identity(),
        "schema": base64.b64encode(pa.schema(kinds).serialize().to_pybytes()).decode(),
        "bound": matcher._bound,
        "guessed": matcher._guessed,
        "finished": matcher._finished,
    }
    more, found = matcher._buffers()
    return frame(header | more, arrays | found)


def load_afa(matcher: AfaMatcher, snapshot: bytes) -> None:
    """Give a matcher of an AFA the state of a snapshot."""
    header, arrays = unframe(snapshot)
    if "afa" not in header:
        raise SnapshotError("the snapshot is of a query, not of an AFA")
    own = matcher._identity()
    there = dict(header["afa"])
    own |= own.pop("options")
    there |= there.pop("options", {})
    for name, value in own.items():
        if there.get(name) != value:
            raise SnapshotError(
                f"the snapshot is of another automaton or other options: {name} is {there.get(name)} there, {value} here"
            )
    try:
        matcher._take_over(header, arrays)
    except (KeyError, IndexError, ValueError, pa.ArrowInvalid) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error


def save_cleanse(cleanse: Cleanse) -> bytes:
    """The state of a Cleanse."""
    header, arrays = cleanse.to_arrays()
    return frame({"cleanse": header}, arrays)


def load_cleanse(cleanse: Cleanse, snapshot: bytes) -> None:
    """Give a Cleanse the state of a snapshot."""
    header, arrays = unframe(snapshot)
    if set(header) != {"cleanse"}:
        raise SnapshotError("the snapshot is not of a Cleanse")
    try:
        cleanse.from_arrays(header["cleanse"], arrays)
    except (KeyError, IndexError, ValueError, pa.ArrowInvalid) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error


def _fields(matcher: Matcher) -> list[pa.Field]:
    return [pa.field(name, kind) for name, kind in matcher.query.bound.schema.attributes.items()]


def _identity(matcher: Matcher, runner: Any) -> dict[str, Any]:
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
            "late": runner.late_policy if matcher._disorder is None else matcher._late_policy,
        }
        | ({} if matcher._disorder is None else {"disorder": str(matcher._disorder), "sequence": matcher._sequence}),
        "automaton": runner.program.digest,
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


def _save_runner(runner: Runner, header: dict[str, Any], arrays: Arrays) -> None:
    state = runner.state
    state.collect()
    count = int(state.registers[HEAD])
    for name, array in state.nodes._asdict().items():
        arrays[f"nodes.{name}"] = np.take(array, np.arange(FIRST, count) & (array.size - 1))
    words = np.zeros(max(1, pack(state.records, np.zeros(0, np.int64))), np.int64)
    arrays["records"] = words[: pack(state.records, words)]
    seen = np.zeros(len(runner.program.determinizer.states), np.bool_)
    states_in(arrays["records"], seen)
    used = np.flatnonzero(seen)
    header["states"] = {int(s): [hex(mask) for mask in runner.program.determinizer.states[s]] for s in used}
    arrays["registers"] = state.registers.copy()
    arrays["registers"][FREE:] = 0  # made anew where it is loaded
    header["partitions"] = runner.partitions
    if runner.keys is not None:
        arrays |= {f"keys.{name}": array for name, array in runner.keys.arrays().items()}
    if runner.measured is not None:
        arrays |= {f"measured.{name}": array for name, array in runner.measured.arrays().items()}
    arrays["counter"] = runner.counter[: runner.partitions].copy()
    arrays |= {f"trace.{name}": array for name, array in runner.trace._asdict().items()}
    vectors = runner.program.classifier.vectors
    header["classes"] = {int(c): hex(vectors[c]) for c in np.unique(runner.trace.cls)}
    header["scalars"] = {
        name: getattr(runner, name) for name in ("rows", "late", "last_time", "last_measure", "swept_at", "traced")
    }


def _load_runner(runner: Runner, header: dict[str, Any], arrays: Arrays) -> None:
    program, state = runner.program, runner.state
    registers = arrays["registers"].astype(np.int64)
    if registers.size != REGISTERS:
        raise SnapshotError("the snapshot is damaged: registers")
    count = arrays["nodes.left"].size
    known = {name: arrays[f"nodes.{name}"] for name in state.nodes._fields}
    state.nodes = nodes_of(known, FIRST, least=state.nodes.left.size)
    renamed = {
        int(s): program.determinizer.intern(tuple(int(m, 16) for m in masks)) for s, masks in header["states"].items()
    }
    mapping = np.zeros(max(renamed, default=0) + 1, np.int64)
    for old, new in renamed.items():
        mapping[old] = new
    program.refresh()
    words = arrays["records"].astype(np.int64)
    state.fit_partitions(max(1, header["partitions"]))
    state.records = state.records._replace(arena=np.zeros(2 * words.size + 16, np.int64))
    registers[FREE:] = 0
    registers[ARENA] = unpack(words, np.arange(header["partitions"]), mapping, state.records, 8)
    registers[HEAD] = count + FIRST
    state.registers[:] = registers
    if runner.keys is not None:
        runner.keys = KeyTable.from_arrays(runner.keys.types, _group(arrays, "keys."))
    if runner.measured is not None:
        runner.measured.load(_group(arrays, "measured."))
    runner.counter = np.resize(arrays["counter"].astype(np.int64), max(1, header["partitions"]))
    trace = _group(arrays, "trace.")
    classes = {int(c): program.classifier.intern(int(v, 16)) for c, v in header["classes"].items()}
    program.refresh()
    of_class = np.zeros(max(classes, default=0) + 1, np.int32)
    for old, new in classes.items():
        of_class[old] = new
    runner.trace = Trace(trace["position"].astype(np.int64), trace["part"].astype(np.int64), of_class[trace["cls"]])
    for name, value in header["scalars"].items():
        setattr(runner, name, value)


def _group(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _save_history(matcher: Matcher, arrays: Arrays) -> None:
    matcher._forget()
    positions, table = matcher._history.joined()
    arrays["history.positions"] = positions
    if positions.size:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        arrays["history.table"] = np.frombuffer(sink.getvalue(), np.uint8)


def _save_sorter(matcher: Matcher, header: dict[str, Any], arrays: Arrays) -> None:
    """The events that wait, and the rows of those that were read."""
    if matcher._sorter is None or matcher._arrivals is None:
        return
    header["sorter"], found = matcher._sorter.to_arrays()
    arrays |= {f"sorter.{name}": array for name, array in found.items()}
    header["arrivals"], arrays["arrivals"] = matcher._arrivals.kept()


def _load_history(matcher: Matcher, arrays: Arrays) -> None:
    if "history.table" in arrays:
        table = pa.ipc.open_stream(pa.py_buffer(arrays["history.table"].tobytes())).read_all()
        matcher._history.append(arrays["history.positions"].astype(np.int64), table)


def frame(header: dict[str, Any], arrays: Arrays, magic: bytes = MAGIC, version: int = VERSION) -> bytes:
    """A header and arrays as bytes; of an array its words are kept, not its shape."""
    chunks = []
    listed = []
    for name, array in arrays.items():
        little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        listed.append([name, little.dtype.str, int(little.size)])
        chunks.append(little.tobytes())
    text = json.dumps(header | {"arrays": listed}, separators=(",", ":")).encode()
    body = b"".join([magic, struct.pack("<HI", version, len(text)), text, *chunks])
    return body + struct.pack("<I", zlib.crc32(body))


def unframe(snapshot: bytes, magic: bytes = MAGIC, version: int = VERSION) -> tuple[dict[str, Any], Arrays]:
    head = len(magic) + 6
    if len(snapshot) < head + 4 or snapshot[: len(magic)] != magic:
        raise SnapshotError("these bytes are not a stretto snapshot")
    found, length = struct.unpack_from("<HI", snapshot, len(magic))
    if found != version:
        raise SnapshotError(f"the snapshot has format version {found}; this stretto reads version {version}")
    if zlib.crc32(snapshot[:-4]) != struct.unpack("<I", snapshot[-4:])[0]:
        raise SnapshotError("the snapshot is damaged: its checksum does not match")
    header = json.loads(snapshot[head : head + length])
    arrays: Arrays = {}
    at = head + length
    for name, kind, size in header.pop("arrays"):
        dtype = np.dtype(kind)
        arrays[name] = np.frombuffer(snapshot, dtype, size, at)
        at += size * dtype.itemsize
    return header, arrays
