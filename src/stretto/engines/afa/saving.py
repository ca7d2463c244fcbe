"""A runner's state as named arrays and numbers, for snapshots, and back."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.columns.keys import KeyTable
from stretto.engines.afa.compiled import Compiled
from stretto.engines.afa.runner import AfaRunner
from stretto.engines.afa.state import TRAIL_ARRAYS
from stretto.engines.afa.structure import (
    ARCS_CLEAN,
    BASE,
    BEHIND,
    CLEAN,
    CLEANED,
    FIRST,
    HOME,
    LAST,
    LATE,
    LE,
    LIVE_EVENTS,
    LIVE_PARTIAL,
    MADE,
    NEXT,
    NIL,
    OF,
    OPEN,
    OUT_OF_ORDER,
    OWN,
    PEAK,
    PREV,
    PUNCTUATION,
    RE,
    REG,
    ROW,
    SEED,
    SEEN,
    SEQ,
    SIZE,
    START_LE,
    START_SEQ,
    STATE,
    TRAILS,
    UNTIL_LE,
    UNTIL_SEQ,
)
from stretto.errors import SnapshotError
from stretto.query.afa import Afa, Arc, Emit, UserFunction
from stretto.query.typing import kind_of

__all__ = ["load", "saved"]

Arrays = dict[str, NDArray[Any]]
I64 = NDArray[np.int64]

_COUNTERS = (PUNCTUATION, CLEAN, SEEN, LATE, OUT_OF_ORDER, MADE, PEAK, ARCS_CLEAN)
_FIELDS = (LE, SEQ, RE, ROW, OF, CLEANED)


def saved(runner: AfaRunner, afa: Afa) -> tuple[dict[str, Any], Arrays]:
    """What :func:`load` makes the same state of; ``afa`` is the automaton as it was given.

    Raises
    ------
    SnapshotError
        An arc that was added later has a Python function.
    """
    if not runner.roles.ordered:
        runner.sweep()
    state, tables = runner.state, runner.tables
    slots = state.live_slots()
    partial = state.live_partial()
    arrays: Arrays = {
        "events.fields": state.events.X[slots][:, list(_FIELDS)].ravel(),
        "events.words": state.events.E[slots].ravel(),
        "events.sizes": state.events.X[slots, SIZE],
        "partial.fields": state.P[1 : REG + state.fields, partial].ravel(),
        "events.kept": _kept(runner, slots),
        "counters": state.registers[list(_COUNTERS)],
        "pending": np.concatenate([rows.ravel() for rows, _ in runner.found] or [np.zeros(0, np.int64)]),
        "pending.cells": np.concatenate([cells for _, cells in runner.found] or [np.zeros(0, np.int64)]),
        "words": runner.names.words,
    }
    if runner.trail >= 0:
        used = slice(1, int(state.registers[TRAILS]) + 1)
        arrays |= {name: getattr(state.work, name)[used] for name in TRAIL_ARRAYS}
    if state.ignores:
        extra = state.P[REG + state.fields :, partial]
        arrays |= {"until": extra[[UNTIL_LE, UNTIL_SEQ]].ravel(), "open": (extra[OPEN] >= 0).astype(np.int8)}
    names = dict(zip(tables.numbers.values(), tables.numbers, strict=True))
    header: dict[str, Any] = {
        "states": [
            [names.get(number, names.get(int(row[BASE]), "")), number not in names]
            for number, row in enumerate(tables.states)
        ],
        "finals": {name: str(emit) for name, emit in tables.finals.items()},
        "arcs": [_arc(tables.arc(number), afa) for number in range(1, tables.arcs.shape[0])],
        "columns": [f"{column.kind} {column}" for column in runner.code.columns],
        "atoms": [str(atom) for atom in runner.code.atoms],
        "ignores": state.ignores,
        "rows": runner.rows,
        "predicated": [[time, text] for time, text in runner.predicated.values()],
    }
    strings = pa.record_batch({"string": runner.names.strings(runner.names.words)})
    tables_of = {"strings": strings}
    if runner.keys is not None:
        arrays |= {f"keys.{name}": array for name, array in runner.keys.arrays().items()}
        tables_of["keys"] = runner.all_keys()
    for number, batch in enumerate(runner.side):
        tables_of[f"side.{number}"] = batch
    header["tables"] = {name: _written(table) for name, table in tables_of.items()}
    return header, arrays


def _kept(runner: AfaRunner, slots: I64) -> NDArray[Any]:
    """Which events stand before the first of their partition, for provenance."""
    first = runner.state.parts.first[runner.state.events.X[slots, OF]]
    place = np.zeros(runner.state.events.X.shape[0], np.int64)
    place[slots] = np.arange(slots.size)
    return np.asarray(np.arange(slots.size) < place[first], np.int8)


def _written(table: pa.Table | pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return base64.b64encode(sink.getvalue()).decode()


def _read(text: str) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(base64.b64decode(text))).read_all()


def _arc(arc: Arc, afa: Afa) -> dict[str, Any]:
    """An arc as JSON; the automaton's own ones by their ids, which may have Python functions."""
    own = any(_form(one) == _form(arc) for one in afa.arcs)
    if not own and (isinstance(arc.when, UserFunction) or isinstance(arc.then, UserFunction)):
        raise SnapshotError(
            f"the arc '{arc.id}', which was added later, has a Python function: no snapshot can hold it; write it as a text"
        )
    found: dict[str, Any] = {"id": arc.id, "own": own, "since": arc.since, "until": arc.until}
    if not own:
        found |= {"source": arc.source, "target": arc.target, "kind": str(arc.kind)}
        found["when"] = None if arc.when is None else str(arc.when)
        if isinstance(arc.then, tuple):
            found["then"] = [str(one) for one in arc.then]
    return found


def _form(arc: Arc) -> Arc:
    return replace(arc, since=None, until=None)


def load(
    program: Compiled,
    late: str,
    capacity: int,
    header: dict[str, Any],
    arrays: Arrays,
    read: Callable[[dict[str, Any]], Arc],
) -> AfaRunner:
    """A runner with a state that :func:`saved` wrote; ``read`` makes an arc of its texts."""
    afa = program.afa
    own = {arc.id: arc for arc in afa.arcs}
    arcs = [
        replace(own[one["id"]] if one["own"] else read(one), since=one["since"], until=one["until"])
        for one in header["arcs"]
    ]
    finals = {name: Emit(emit) for name, emit in header["finals"].items()}
    now = replace(afa, arcs=tuple(arcs), finals=finals)
    runner = AfaRunner(
        Compiled(now, program.roles, program.marks), late=late, capacity=capacity, ignores=header["ignores"]
    )
    tables = {name: _read(text) for name, text in header["tables"].items()}
    state = runner.state
    registers = state.registers
    registers[list(_COUNTERS)] = arrays["counters"]
    runner.rows = header["rows"]
    runner.side = [batch for name, table in tables.items() if name.startswith("side.") for batch in table.to_batches()]
    if arrays["pending"].size:
        rows = arrays["pending"].astype(np.int64).reshape(-1, state.out.rows.shape[1])
        runner.found = [(rows, arrays["pending.cells"].astype(np.int64))]
    if runner.keys is not None:
        kept = {name.removeprefix("keys."): array for name, array in arrays.items() if name.startswith("keys.")}
        runner.keys = KeyTable.from_arrays(runner.keys.types, kept)
        runner.key_values = tables["keys"].to_batches()
        state.fit_partitions(len(runner.keys))
    old = arrays["words"].astype(np.int64)
    new = runner.names.of(tables["strings"].column("string").combine_chunks())[0]
    if runner.trail >= 0:
        state.load_trails({name: arrays[name].astype(np.int64) for name in TRAIL_ARRAYS})
    _load_events(runner, header, arrays, old, new)
    _load_partial(runner, header, arrays, old, new)
    return runner


def _renamed(words: I64, old: I64, new: I64) -> I64:
    """Words of strings as this runner numbers them."""
    if not old.size:
        return words
    place = np.minimum(np.searchsorted(old, words), old.size - 1)
    return np.where(old[place] == words, new[place], 0)


def _load_events(runner: AfaRunner, header: dict[str, Any], arrays: Arrays, old: I64, new: I64) -> None:
    """Events at slots 1, 2, …; the words that this runner's code reads, wherever they stood."""
    state = runner.state
    fields = arrays["events.fields"].astype(np.int64).reshape(-1, len(_FIELDS))
    count = len(fields)
    if not count:
        return
    _take_events(runner, count)
    X, E = state.events.X, state.events.E
    slots = np.arange(1, count + 1)
    X[1 : count + 1, _FIELDS] = fields
    X[slots, OWN] = X[slots, LE]
    part = X[slots, OF]
    same = part[1:] == part[:-1]
    X[slots[1:], PREV] = np.where(same, slots[:-1], NIL)
    X[slots[:-1], BEHIND] = np.where(same, slots[1:], NIL)
    X[1, PREV] = X[count, BEHIND] = NIL
    kept = arrays["events.kept"] != 0
    state.parts.first[part[~kept][::-1]] = slots[~kept][::-1]
    state.parts.oldest[part[kept][::-1]] = slots[kept][::-1]
    state.parts.last[part] = slots
    words = arrays["events.words"].astype(np.int64).reshape(count, -1)
    known = {name: at for at, name in enumerate(header["columns"], 1)}
    for at, column in enumerate(runner.code.columns, 1):
        was = known.get(f"{column.kind} {column}")
        if was is not None:
            values, told = words[:, was], (words[:, 0] >> was) & 1
            E[slots, at] = np.where(told, _renamed(values, old, new), 0) if column.kind == "string" else values
            E[slots, 0] |= told << at
    held = {name: at for at, name in enumerate(header["atoms"])}
    before, now = 1 + len(header["columns"]), 1 + len(runner.code.columns)
    for at, atom in enumerate(runner.code.atoms):
        was = held.get(str(atom))
        if was is not None:
            E[slots, now + (at >> 6)] |= ((words[:, before + (was >> 6)] >> (was & 63)) & 1) << (at & 63)


def _take_events(runner: AfaRunner, count: int) -> None:
    """Slots 1 to ``count`` of a fresh state are in use."""
    state = runner.state
    state.reset_events(count)
    state.registers[LIVE_EVENTS] = count


def _load_partial(runner: AfaRunner, header: dict[str, Any], arrays: Arrays, old: I64, new: I64) -> None:
    """Partial matches behind the seed, in the order of their lists."""
    state, tables = runner.state, runner.tables
    sizes = arrays["events.sizes"].astype(np.int64)
    count = int(sizes.sum())
    if not count:
        return
    state.reset_partial(count)
    state.registers[LIVE_PARTIAL] = count
    P, X = state.P, state.events.X
    numbers = np.arange(SEED + 1, SEED + 1 + count)
    P[1 : REG + state.fields, numbers] = arrays["partial.fields"].astype(np.int64).reshape(-1, count)
    places = np.zeros(len(header["states"]), np.int64)
    for number, (name, quiet) in enumerate(header["states"]):
        if name:
            plain = tables.state(name)
            places[number] = tables.quiet(plain) if quiet else plain
    P[STATE, numbers] = places[P[STATE, numbers]]
    for at, kind in enumerate(runner.afa.register.values()):
        if kind_of(kind) == "string":
            P[REG + at, numbers] = _renamed(P[REG + at, numbers], old, new)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    full = np.flatnonzero(sizes)
    slots = full + 1
    X[slots, FIRST], X[slots, LAST], X[slots, SIZE] = (
        numbers[begins[full]],
        numbers[ends[full] - 1],
        sizes[full],
    )
    P[NEXT, numbers] = np.concatenate((numbers[1:], [NIL]))
    P[NEXT, numbers[ends[full] - 1]] = NIL
    if state.ignores:
        extra = REG + state.fields
        home = np.repeat(np.arange(1, sizes.size + 1), sizes)
        P[extra + HOME, numbers] = home
        P[extra + UNTIL_LE : extra + UNTIL_SEQ + 1, numbers] = arrays["until"].astype(np.int64).reshape(2, -1)
        P[extra + OPEN, numbers] = -1
        _reopen(state, numbers[arrays["open"] != 0])


def _reopen(state: Any, numbers: I64) -> None:
    """The open lists, by partition and first event."""
    if not numbers.size:
        return
    P, extra = state.P, REG + state.fields
    part = state.events.X[P[extra + HOME, numbers], OF]
    order = np.lexsort((P[START_SEQ, numbers], P[START_LE, numbers], part))
    numbers, part = numbers[order], part[order]
    same = np.concatenate((part[1:] == part[:-1], [False]))
    P[extra + OPEN, numbers] = np.where(same, np.concatenate((numbers[1:], [NIL])), NIL)
    state.parts.open[part[::-1]] = numbers[::-1]
