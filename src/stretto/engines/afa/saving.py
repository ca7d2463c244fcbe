"""The state of the operator as a section of a snapshot, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.engines.afa import structure as s
from stretto.engines.afa.compiled import Compiled
from stretto.engines.afa.state import TRAIL_ARRAYS, AfaState
from stretto.engines.afa.stepping import AfaStepping
from stretto.errors import OptionError, SnapshotError
from stretto.frame import Section
from stretto.query.afa import Afa, Arc, Emit, UserFunction
from stretto.query.typing import kind_of

_COUNTERS = (s.PUNCTUATION, s.CLEAN, s.SEEN, s.LATE, s.OUT_OF_ORDER, s.MADE, s.PEAK, s.ARCS_CLEAN)
_FIELDS = (s.LE, s.SEQ, s.RE, s.ROW, s.OF, s.CLEANED)


def save(run: AfaStepping, section: Section) -> None:
    """Write the state: arcs as they are by now, live events and partial matches, output that was not given.

    Raises
    ------
    SnapshotError
        An arc that was added later has a Python function.
    """
    if not run.roles.ordered:
        run.sweep()
    if run.trail >= 0:
        run.forget_trails()
    state, tables = run.state, run.tables
    slots, partial = state.live_slots(), state.live_partial()
    section.arrays |= {
        "events.fields": state.events.X[slots][:, list(_FIELDS)].ravel(),
        "events.words": state.events.E[slots].ravel(),
        "events.sizes": state.events.X[slots, s.SIZE],
        "partial.fields": state.P[1 : s.REG + state.fields, partial].ravel(),
        "events.kept": _kept(state, slots),
        "counters": state.registers[list(_COUNTERS)],
        "pending": np.concatenate([rows.ravel() for rows, _ in run.found] or [np.zeros(0, np.int64)]),
        "pending.cells": np.concatenate([cells for _, cells in run.found] or [np.zeros(0, np.int64)]),
    }
    if run.trail >= 0:
        used = slice(1, int(state.registers[s.TRAILS]) + 1)
        section.arrays |= {name: getattr(state.work, name)[used] for name in TRAIL_ARRAYS}
    if state.ignores:
        extra = state.P[s.REG + state.fields :, partial]
        section.arrays |= {
            "until": extra[[s.UNTIL_LE, s.UNTIL_SEQ]].ravel(),
            "open": (extra[s.OPEN] >= 0).astype(np.int8),
        }
    names = dict(zip(tables.numbers.values(), tables.numbers, strict=True))
    section.values |= {
        "states": [
            [names.get(number, names.get(int(row[s.BASE]), "")), number not in names]
            for number, row in enumerate(tables.states)
        ],
        "finals": {name: str(emit) for name, emit in tables.finals.items()},
        "arcs": [_written(tables.arc(number), run.given_as) for number in range(1, tables.arcs.shape[0])],
        "columns": [f"{column.kind} {column}" for column in run.code.columns],
        "atoms": [str(atom) for atom in run.code.atoms],
        "ignores": state.ignores,
        "rows": run.rows,
        "predicated": [[time, text] for time, text in run.predicated.values()],
    }
    run.names.save(section)
    there = section.sub("tables")
    if run.keys is not None:
        run.keys.save(section.sub("keys"))
        there.put_table("keys", run.all_keys())
    for number, batch in enumerate(run.side):
        there.put_table(f"side.{number}", batch)


def load(run: AfaStepping, section: Section) -> None:
    """Take over what :meth:`save` wrote, of the same automaton.

    Raises
    ------
    LookupError, ValueError
        Something is missing or has another size.
    """
    values, arrays, program = section.values, section.arrays, run.program
    assert program.texts is not None
    afa = run.given_as
    own = {arc.id: arc for arc in afa.arcs}
    try:
        arcs = [
            replace(own[one["id"]] if one["own"] else program.texts.arc(one), since=one["since"], until=one["until"])
            for one in values["arcs"]
        ]
    except OptionError as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error
    finals = {name: Emit(emit) for name, emit in values["finals"].items()}
    now = replace(afa, arcs=tuple(arcs), finals=finals)
    run.begin(Compiled(now, program.roles, program.marks, program.texts), values["ignores"])
    run.given_as = afa
    state = run.state
    state.registers[list(_COUNTERS)] = arrays["counters"]
    run.rows = section.count("rows")
    there = section.sub("tables")
    sides = [name for name in (*there.values, *there.arrays) if name.startswith("side.")]
    run.side = [batch for name in sides for batch in there.table(name).to_batches()]
    if run.keys is not None:
        run.keys.load(section.sub("keys"))
        run.key_values = there.table("keys").to_batches()
        if sum(batch.num_rows for batch in run.key_values) != len(run.keys):
            raise ValueError("there are other keys than numbers of them")
        state.fit_partitions(len(run.keys))
    if arrays["pending"].size:
        run.found = [_pending(run, section)]
    old, new = run.names.load(section)
    if run.trail >= 0:
        trails = arrays["trail_row"].size
        section.numbers("trail_before", least=0, below=np.arange(1, arrays["trail_before"].size + 1))
        state.load_trails({name: section.numbers(name, size=trails) for name in TRAIL_ARRAYS})
    _load_events(run, section, old, new)
    _load_partial(run, section, old, new)
    for time, text in values["predicated"]:
        run.predicated[run.code.plain(program.texts.condition(text))] = time, text


def _pending(run: AfaStepping, section: Section) -> tuple[I64, I64]:
    """Output that was not handed over."""
    rows = section.numbers("pending").reshape(-1, run.state.out.rows.shape[1])
    # The end of a window has the row −1.
    cells = section.numbers("pending.cells", least=-1, below=run.rows)
    parts, length = 1 if run.keys is None else len(run.keys), rows[:, s.LENGTH]
    places = rows[:, [s.FROM, s.TO]]
    fits = ((rows[:, s.PART] >= 0) & (rows[:, s.PART] < parts)).all() and ((places >= -1) & (places < run.rows)).all()
    if not fits or (length < 0).any() or (length > cells.size).any() or length.sum() != cells.size:
        raise ValueError("output that was not handed over is of other events")
    return rows, cells


def _load_events(run: AfaStepping, section: Section, old: I64, new: I64) -> None:
    """Events at slots 1, 2, …; the words that this runner's code reads, wherever they stood."""
    state, arrays = run.state, section.arrays
    fields = arrays["events.fields"].astype(np.int64).reshape(-1, len(_FIELDS))
    count = len(fields)
    if not count:
        return
    state.reset_events(count)
    state.registers[s.LIVE_EVENTS] = count
    X, E = state.events.X, state.events.E
    slots = np.arange(1, count + 1)
    X[1 : count + 1, _FIELDS] = fields
    X[slots, s.OWN] = X[slots, s.LE]
    part = X[slots, s.OF]
    same = part[1:] == part[:-1]
    if part.min() < 0 or part.max() >= state.parts.first.size or np.count_nonzero(~same) != np.unique(part).size - 1:
        raise ValueError("events are of no partition")
    le, seq = X[slots, s.LE], X[slots, s.SEQ]
    if (X[slots, s.ROW] < -1).any() or (X[slots, s.ROW] >= run.rows).any():
        raise ValueError("events are of no row")
    if (same & ((le[1:] < le[:-1]) | ((le[1:] == le[:-1]) & (seq[1:] <= seq[:-1])))).any():
        raise ValueError("events of a partition are not in order")
    if run.roles.until is None:
        ends = X[slots, s.RE]
        wrong = (ends < le) | np.append(same & (ends[1:] < ends[:-1]), False)
        if wrong.any() or (run.window is not None and (ends != run.over(le, run.window)).any()):
            raise ValueError("events end at other times than their windows")
    X[slots[1:], s.PREV] = np.where(same, slots[:-1], s.NIL)
    X[slots[:-1], s.BEHIND] = np.where(same, slots[1:], s.NIL)
    X[1, s.PREV] = X[count, s.BEHIND] = s.NIL
    kept = section.numbers("events.kept", size=count) != 0
    state.parts.first[part[~kept][::-1]] = slots[~kept][::-1]
    state.parts.oldest[part[kept][::-1]] = slots[kept][::-1]
    state.parts.last[part] = slots
    words = arrays["events.words"].astype(np.int64).reshape(count, -1)
    known = {name: at for at, name in enumerate(section.values["columns"], 1)}
    for at, column in enumerate(run.code.columns, 1):
        was = known.get(f"{column.kind} {column}")
        if was is not None:
            values, told = words[:, was], (words[:, 0] >> was) & 1
            E[slots, at] = np.where(told, _renamed(values, old, new), 0) if column.kind == "string" else values
            E[slots, 0] |= told << at
    held = {name: at for at, name in enumerate(section.values["atoms"])}
    before, now = 1 + len(section.values["columns"]), 1 + len(run.code.columns)
    for at, atom in enumerate(run.code.atoms):
        was = held.get(str(atom))
        if was is not None:
            E[slots, now + (at >> 6)] |= ((words[:, before + (was >> 6)] >> (was & 63)) & 1) << (at & 63)


def _load_partial(run: AfaStepping, section: Section, old: I64, new: I64) -> None:
    """Partial matches behind the seed, in the order of their lists."""
    state, tables, values, arrays = run.state, run.tables, section.values, section.arrays
    held = arrays["events.fields"].size // len(_FIELDS)
    count = arrays["partial.fields"].size // (s.REG + state.fields - 1)
    sizes = section.numbers("events.sizes", size=held, least=0, below=count + 1)
    if int(sizes.sum()) != count:
        raise ValueError(f"events have not {count} partial matches")
    if not count:
        return
    state.reset_partial(count)
    state.registers[s.LIVE_PARTIAL] = count
    P, X = state.P, state.events.X
    numbers = np.arange(s.SEED + 1, s.SEED + 1 + count)
    P[1 : s.REG + state.fields, numbers] = arrays["partial.fields"].astype(np.int64).reshape(-1, count)
    places = np.zeros(len(values["states"]), np.int64)
    for number, (name, quiet) in enumerate(values["states"]):
        if name:
            plain = tables.state(name)
            places[number] = tables.quiet(plain) if quiet else plain
    if ((P[s.STATE, numbers] < 0) | (P[s.STATE, numbers] >= places.size)).any():
        raise ValueError("partial matches are in no state")
    first = P[s.START, numbers]
    if (first < -1).any() or (first >= run.rows).any():
        raise ValueError("partial matches begin with no row")
    if run.roles.provenance and not _begins_before(X, P[:, numbers], np.repeat(np.arange(1, held + 1), sizes)):
        raise ValueError("the first events of partial matches are not there")
    if run.trail >= 0:
        trails = P[s.REG + run.trail, numbers]
        if ((trails < 0) | (trails > state.registers[s.TRAILS])).any():
            raise ValueError("partial matches have no trail")
    P[s.STATE, numbers] = places[P[s.STATE, numbers]]
    for at, kind in enumerate(run.afa.register.values()):
        if kind_of(kind) == "string":
            P[s.REG + at, numbers] = _renamed(P[s.REG + at, numbers], old, new)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    full = np.flatnonzero(sizes)
    slots = full + 1
    X[slots, s.FIRST], X[slots, s.LAST], X[slots, s.SIZE] = (
        numbers[begins[full]],
        numbers[ends[full] - 1],
        sizes[full],
    )
    P[s.NEXT, numbers] = np.concatenate((numbers[1:], [s.NIL]))
    P[s.NEXT, numbers[ends[full] - 1]] = s.NIL
    if state.ignores:
        extra = s.REG + state.fields
        home = np.repeat(np.arange(1, sizes.size + 1), sizes)
        P[extra + s.HOME, numbers] = home
        le, seq = section.numbers("until", size=2 * count).reshape(2, -1)
        P[extra + s.UNTIL_LE, numbers], P[extra + s.UNTIL_SEQ, numbers] = le, seq
        P[extra + s.OPEN, numbers] = -1
        last = state.parts.last[X[home, s.OF]]
        goes_on = (le == X[last, s.LE]) & (seq == X[last, s.SEQ])
        # Those whose home is the last event are in its list, and would be met twice.
        is_open = section.numbers("open", size=count, least=0, below=2) != 0
        if (is_open != (goes_on & (home != last))).any():
            raise ValueError("other partial matches are open than those that go on at the last event")
        _reopen(state, numbers[is_open])


def _begins_before(X: I64, partial: I64, homes: I64) -> bool:
    """Whether the first events of partial matches come before, or are, those at slots, in the same partitions."""
    rows = partial[s.START]
    slots = 1 + np.argsort(X[1 : homes[-1] + 1, s.ROW], kind="stable")
    first = slots[np.minimum(np.searchsorted(X[slots, s.ROW], rows), slots.size - 1)]
    same = (X[first, s.ROW] == rows) & (X[first, s.OF] == X[homes, s.OF])
    same &= (X[first, s.LE] == partial[s.START_LE]) & (X[first, s.SEQ] == partial[s.START_SEQ])
    return bool((same & (first <= homes)).all())


def _kept(state: AfaState, slots: I64) -> NDArray[Any]:
    """Which events stand before the first of their partition, for provenance."""
    first = state.parts.first[state.events.X[slots, s.OF]]
    place = np.zeros(state.events.X.shape[0], np.int64)
    place[slots] = np.arange(slots.size)
    return np.asarray(np.arange(slots.size) < place[first], np.int8)


def _written(arc: Arc, afa: Afa) -> dict[str, Any]:
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


def _renamed(words: I64, old: I64, new: I64) -> I64:
    """Words of strings as this runner numbers them."""
    if not old.size:
        return words
    place = np.minimum(np.searchsorted(old, words), old.size - 1)
    return np.where(old[place] == words, new[place], 0)


def _reopen(state: AfaState, numbers: I64) -> None:
    """The open lists, by partition and first event."""
    if not numbers.size:
        return
    P, extra = state.P, s.REG + state.fields
    part = state.events.X[P[extra + s.HOME, numbers], s.OF]
    order = np.lexsort((P[s.START_SEQ, numbers], P[s.START_LE, numbers], part))
    numbers, part = numbers[order], part[order]
    same = np.concatenate((part[1:] == part[:-1], [False]))
    P[extra + s.OPEN, numbers] = np.where(same, np.concatenate((numbers[1:], [s.NIL])), s.NIL)
    state.parts.open[part[::-1]] = numbers[::-1]
