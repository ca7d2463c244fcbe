"""A runner's state as named arrays and numbers, for snapshots, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.columns.keys import KeyTable
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.nfab.structure import HEAD, NIL, REGISTERS, TIMERS, Parts
from stretto.engines.shared.values import Op, Slot

__all__ = ["load", "saved"]

Arrays = dict[str, NDArray[Any]]

SCALARS = ("rows", "late", "last_time", "last_measure", "swept_at", "last_tie")


def saved(runner: NfabRunner) -> tuple[dict[str, Any], Arrays]:
    """What :func:`load` makes the same state of. Runs are written partition by partition, in the order of their lists."""
    runner.forget()
    state = runner.state
    used = slice(1, int(state.registers[HEAD]))
    arrays: Arrays = {f"nodes.{name}": array[used] for name, array in state.nodes._asdict().items() if name != "P"}
    if state.columns:
        arrays["nodes.P"] = state.nodes.P[used].ravel()
    numbers, sizes = state.listed(runner.partitions), state.parts.size[: runner.partitions].copy()
    arrays |= {f"runs.{name}": array[numbers].ravel() for name, array in state.runs._asdict().items() if name != "next"}
    arrays["parts.size"] = sizes
    arrays["parts.negated"] = state.parts.negated[: runner.partitions].ravel()
    timers = int(state.registers[TIMERS])
    place = np.zeros(state.runs.state.size, np.int64)
    place[numbers] = np.arange(1, numbers.size + 1)
    waiting = place[state.scratch.timer[:timers]]
    arrays["timers.run"] = waiting[waiting != NIL]
    arrays["timers.serial"] = state.scratch.serial[:timers][waiting != NIL]
    arrays["registers"] = state.registers.copy()
    arrays["counter"] = runner.counter[: runner.partitions].copy()
    words = None if runner.words is None else runner.words.table
    for name, table in (("keys", runner.keys), ("tests", runner.tests), ("words", words)):
        if table is not None:
            arrays |= {f"{name}.{part}": array for part, array in table.arrays().items()}
    if runner.measured is not None:
        arrays |= {f"measured.{name}": array for name, array in runner.measured.arrays().items()}
    header = {"scalars": {name: getattr(runner, name) for name in SCALARS}, "partitions": runner.partitions}
    if runner.words is not None and runner.words.ordered:
        header["strings"] = runner.words.strings.to_pylist()
        arrays["words.order"] = runner.words.words.copy()
    return header, arrays


def load(runner: NfabRunner, header: dict[str, Any], arrays: Arrays) -> None:
    """Give a fresh runner a state that :func:`saved` wrote.

    Raises
    ------
    KeyError, ValueError
        Something is missing or has another size.
    """
    state = runner.state
    registers = arrays["registers"].astype(np.int64)
    if registers.size != REGISTERS:
        raise ValueError("registers")
    nodes = arrays["nodes.previous"].size
    for name, array in state.nodes._asdict().items():
        if name != "P" or state.columns:
            longer = np.zeros((max(array.shape[0], 2 * nodes + 2), *array.shape[1:]), np.int64)
            longer[0] = array[0]
            longer[1 : nodes + 1] = arrays[f"nodes.{name}"].reshape((nodes, *array.shape[1:]))
            state.nodes = state.nodes._replace(**{name: longer})
    runs = {name: arrays[f"runs.{name}"].astype(np.int64) for name in state.runs._fields if name != "next"}
    runs["V"] = _with_carries(runs["V"], runs["state"].size, runner.program.conditions.values.slots)
    state.restore_runs(runs)
    partitions = max(1, int(header["partitions"]))
    negated = arrays["parts.negated"].astype(np.int64).reshape(int(header["partitions"]), state.negations)
    state.parts = Parts(*(np.zeros((partitions, *array.shape[1:]), np.int64) for array in state.parts))
    state.parts.negated[: negated.shape[0]] = negated
    state.link(arrays["parts.size"].astype(np.int64))
    state.restore_timers(arrays["timers.run"].astype(np.int64), arrays["timers.serial"].astype(np.int64))
    state.restore_registers(registers, nodes + 1)
    runner.counter = np.resize(arrays["counter"].astype(np.int64), partitions)
    _load_tables(runner, header, arrays)
    for name in SCALARS:
        value = header["scalars"][name]
        setattr(runner, name, tuple(value) if isinstance(value, list) else value)


def _with_carries(V: NDArray[np.int64], count: int, slots: list[Slot]) -> NDArray[np.int64]:
    """The value vectors of ``count`` runs; where they come from a version whose averages had no carries, with carries of 0."""
    had = [number for number, slot in enumerate(slots, 1) if slot.op is not Op.CARRY]
    if not count or V.size != count * (len(had) + 1):
        return V
    old = V.reshape(count, len(had) + 1)
    found = np.zeros((count, len(slots) + 1), np.int64)
    found[:, had] = old[:, 1:]
    for before, number in enumerate(had, 1):
        known = (old[:, 0] >> before) & 1
        found[:, 0] |= known << number
        if slots[number - 1].op is Op.WIDE_SUM:
            found[:, 0] |= known << (number + 1)
    return found


def _load_tables(runner: NfabRunner, header: dict[str, Any], arrays: Arrays) -> None:
    def table_of(prefix: str, types: Any) -> KeyTable:
        return KeyTable.from_arrays(
            types, {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        )

    if runner.keys is not None:
        runner.keys = table_of("keys.", runner.keys.types)
    if runner.tests is not None:
        runner.tests = table_of("tests.", runner.tests.types)
    if runner.words is not None:
        order = arrays.pop("words.order", None)
        runner.words.table = table_of("words.", runner.words.table.types)
        if order is not None:
            runner.words.strings = pa.array(header["strings"], pa.string())
            runner.words.words = order.astype(np.int64)
    if runner.measured is not None:
        runner.measured.load(
            {name.removeprefix("measured."): array for name, array in arrays.items() if name.startswith("measured.")}
        )
