"""Snapshots of a running dataflow, at any step and with its queues as they are: the bytes of docs/snapshots.md."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.dataflow.run.fixpoint import FixpointVertex, FlyingFixpoint
from stretto.dataflow.run.graph import Graph, Input, Output
from stretto.dataflow.run.levels import BITS
from stretto.dataflow.run.messages import Data, Definite, External, Message, Speculative
from stretto.dataflow.run.rows import Rows
from stretto.dataflow.run.vertex import Vertex
from stretto.errors import SnapshotError
from stretto.frame import Section

if TYPE_CHECKING:
    from stretto.dataflow.run.flow import Dataflow

__all__ = ["load", "save"]

Arrays = dict[str, NDArray[Any]]


def save(flow: Dataflow) -> bytes:
    """The state of a dataflow."""
    if flow._broken is not None:
        raise SnapshotError(f"the dataflow has stopped ({flow._broken}): its state is not at a step")
    arrays: Arrays = {}
    graph = flow._graph
    header = {
        "dataflow": _plan(graph, flow._speculation),
        "time": None if flow._time is None else _kind(flow._time),
        "counts": [flow._steps, flow._events],
        "strings": flow._strings.texts,
        "inputs": {name: _saved_input(name, own, arrays) for name, own in graph.inputs.items()},
        "vertices": [_saved_vertex(vertex, arrays) for vertex in graph.vertices],
        "loops": [_saved_loop(flying) for flying in graph.flying],
    }
    return Section(header, arrays).to_bytes()


def load(flow: Dataflow, snapshot: bytes) -> None:
    """Give a dataflow that has just been made the state of a snapshot."""
    section = Section.of_bytes(snapshot)
    header, arrays = section.values, section.arrays
    if "dataflow" not in header:
        raise SnapshotError("the snapshot is of a matcher, not of a dataflow")
    graph = flow._graph
    own = _plan(graph, flow._speculation)
    if header["dataflow"] != own:
        raise SnapshotError(
            "the snapshot is of another plan:\n  snapshot: "
            + "\n            ".join(header["dataflow"])
            + "\n  here:     "
            + "\n            ".join(own)
        )
    try:
        flow._strings.load(header["strings"])
        flow._time = None if header["time"] is None else _kind_of(header["time"])
        flow._steps, flow._events = header["counts"]
        for name, input_ in graph.inputs.items():
            _load_input(name, input_, header["inputs"][name], arrays)
        for vertex, state in zip(graph.vertices, header["vertices"], strict=True):
            _load_vertex(vertex, state, arrays)
        for flying, state in zip(graph.flying, header["loops"], strict=True):
            _load_loop(flying, state)
    except (KeyError, IndexError, ValueError, pa.ArrowInvalid) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error


def _plan(graph: Graph, mode: str) -> list[str]:
    """What makes two plans the same: their vertices with types and readers."""
    lines = [f"speculation {mode}"]
    lines += [f"{flying.name}: levels of {flying.bits} bits" for flying in graph.flying if flying.bits != BITS]
    for name, own in graph.inputs.items():
        lines.append(f"{name}: {_row(own.source.schema)}{' insert_only' if own.source.insert_only else ''}")
    for vertex in graph.vertices:
        readers = [*vertex.out.inside, *vertex.out.outside]
        if isinstance(vertex, FixpointVertex):
            readers += [*vertex.recursive.inside, *vertex.recursive.outside]
        shown = ", ".join(f"{reader.number}.{port}" for reader, port in readers)
        lines.append(f"{vertex.number} {vertex.label} -> {shown}")
    for name, output in graph.outputs.items():
        lines.append(f"{name}: {_row(output.node.schema)}")
    return lines


def _row(schema: Any) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in schema.items())


def _kind(kind: pa.DataType) -> str:
    return base64.b64encode(pa.schema([("time", kind)]).serialize().to_pybytes()).decode()


def _kind_of(text: str) -> pa.DataType:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))).field(0).type


# -- inputs and outputs -----------------------------------------------------------------------------------------------


def _saved_input(name: str, own: Input, arrays: Arrays) -> dict[str, Any]:
    if own.events is not None:
        arrays[f"input.{name}"] = own.events.index.held
    return {"definite": own.definite}


def _load_input(name: str, own: Input, state: dict[str, Any], arrays: Arrays) -> None:
    own.definite = state["definite"]
    if own.events is not None:
        own.events.index.load(arrays[f"input.{name}"])


# -- vertices ---------------------------------------------------------------------------------------------------------


def _saved_vertex(vertex: Vertex, arrays: Arrays) -> dict[str, Any]:
    own = f"{vertex.number}"
    state: dict[str, Any] = {
        "definite": vertex.operator.definite,
        "promised": vertex.promised,
        "guessed": sorted(vertex.guessed.items()),
        "turn": vertex.turn,
        "queues": [
            [_saved_message(f"{own}.{port}.{at}", message, arrays) for at, message in enumerate(queue)]
            for port, queue in enumerate(vertex.queues)
        ],
        "operator": {},
    }
    for name, value in vertex.operator.saved().items():
        if isinstance(value, np.ndarray):
            arrays[f"{own}.operator.{name}"] = value
            state["operator"][name] = None
        else:
            state["operator"][name] = value
    if isinstance(vertex, FixpointVertex):
        state["waiting"] = {str(level): len(parts) for level, parts in vertex.waiting.items()}
        for level, parts in vertex.waiting.items():
            for at, rows in enumerate(parts):
                arrays[f"{own}.waiting.{level}.{at}"] = rows
    if isinstance(vertex, Output):
        arrays[f"{own}.events"] = vertex.events.index.held
        arrays[f"{own}.owed"] = vertex.events.owed
        state["collected"] = len(vertex.collected)
        for at, rows in enumerate(vertex.collected):
            arrays[f"{own}.collected.{at}"] = rows
    return state


def _load_vertex(vertex: Vertex, state: dict[str, Any], arrays: Arrays) -> None:
    own, width = f"{vertex.number}", vertex.operator.width
    vertex.operator.definite = list(state["definite"])
    vertex.promised = state["promised"]
    vertex.guessed = dict(state["guessed"])
    vertex.turn = state["turn"]
    for port, (queue, messages) in enumerate(zip(vertex.queues, state["queues"], strict=True)):
        queue.clear()
        queue.extend(_message(f"{own}.{port}.{at}", one, arrays) for at, one in enumerate(messages))
    kept = {
        name: arrays[f"{own}.operator.{name}"] if value is None else value for name, value in state["operator"].items()
    }
    vertex.operator.load(kept)
    if isinstance(vertex, FixpointVertex):
        vertex.waiting = {
            int(level): [_rows(arrays[f"{own}.waiting.{level}.{at}"], width) for at in range(count)]
            for level, count in state["waiting"].items()
        }
    if isinstance(vertex, Output):
        vertex.events.index.load(arrays[f"{own}.events"])
        vertex.events.owed = _rows(arrays[f"{own}.owed"], width)
        vertex.collected = [_rows(arrays[f"{own}.collected.{at}"], width) for at in range(state["collected"])]


def _rows(array: NDArray[Any], width: int) -> Rows:
    return np.array(array, np.int64).reshape(-1, width)  # a copy: what the snapshot has cannot be written to


def _saved_message(name: str, message: Message, arrays: Arrays) -> list[Any]:
    match message:
        case Data(rows):
            arrays[name] = rows
            return ["data", rows.shape[1]]
        case Definite(time):
            return ["dp", time]
        case Speculative(time):
            return ["sp", time]
        case External(port, time):
            return ["ep", *port, time]


def _message(name: str, saved: list[Any], arrays: Arrays) -> Message:
    match saved:
        case ["data", width]:
            return Data(_rows(arrays[name], width))
        case ["dp", time]:
            return Definite(time)
        case ["sp", time]:
            return Speculative(time)
        case ["ep", vertex, port, time]:
            return External((vertex, port), time)
    raise ValueError(f"no message: {saved}")


# -- loops ------------------------------------------------------------------------------------------------------------

_PLAIN = ("definite", "flying", "parked", "earliest", "highest", "again", "speculated", "promoted", "disturbed")


def _saved_loop(flying: FlyingFixpoint) -> dict[str, Any]:
    state: dict[str, Any] = {name: getattr(flying, name) for name in _PLAIN}
    state["external"] = [[*port, time] for port, time in flying.external.items()]
    state["back"] = sorted(flying.back.items())
    return state


def _load_loop(flying: FlyingFixpoint, state: dict[str, Any]) -> None:
    for name in _PLAIN:
        setattr(flying, name, state[name])
    flying.external = {(vertex, port): time for vertex, port, time in state["external"]}
    flying.back = dict(state["back"])
