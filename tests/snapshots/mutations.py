"""Snapshots in which one number, length, text or byte is another one, with the right checksum: restored, and gone on from.

``python -m tests.snapshots.mutations [--count N] [--seed S] [--jobs J] [KIND …]`` tries so many of each kind, J kinds at once, in
processes with 2 GB of memory, and prints what goes wrong: a process that dies, an error that is none of stretto's, or nothing within
so many seconds (:data:`tests.children.MOST_SECONDS`). ``… --show KIND NUMBER`` does one of them in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

import stretto
from stretto.spark.streaming.bucket import Bucket
from tests import children
from tests.snapshots import kept, operators

#: Bytes of memory of a process that restores.
MOST_BYTES = 2 << 30

_HEAD = struct.Struct("<8sHI")

#: What a number becomes, beside one near it and one of any size.
_NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    255,
    1 << 15,
    1 << 20,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 40,
    (1 << 62) + 3,
    (1 << 63) - 1,
    -(1 << 63),
)


# -- kinds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """Something with a state: how a new one is made, how it takes a state over, and how it goes on."""

    make: Callable[[], Any]
    state: Callable[[], bytes]
    go_on: Callable[[Any], Any]

    def restored(self, state: bytes) -> Any:
        made = self.make()
        (made.load if hasattr(made, "dump") else made.restore)(state)
        return made


def _matcher(name: str) -> Kind:
    def state() -> bytes:
        matcher = kept.matcher_of(name)
        matcher.push(kept.stream().slice(0, kept.CUT))
        return matcher.snapshot()

    def go_on(matcher: Any) -> None:
        matcher.push(kept.stream().slice(kept.CUT))
        matcher.finish()

    return Kind(lambda: kept.matcher_of(name), state, go_on)


def _bucket(name: str) -> Kind:
    def make() -> Bucket:
        return kept.bucket_of(name)

    def state() -> bytes:
        bucket, table = make(), kept.stream()
        bucket.take(table.slice(0, kept.CUT), None)
        list(bucket.advance(kept.watermark_at(table, kept.CUT // 2)))
        return bucket.dump()

    return Kind(make, state, lambda bucket: list(operators.go_on_with_bucket(bucket)))


def _operator(name: str) -> Kind:
    case = operators.CASES[name]

    def state() -> bytes:
        made = case.make()
        case.before(made)
        written: bytes = made.dump() if hasattr(made, "dump") else made.snapshot()
        return written

    return Kind(case.make, state, lambda made: list(case.after(made)))


KINDS = {
    **{f"matcher-{name}": _matcher(name) for name in kept.CASES},
    **{f"bucket-{name}": _bucket(name) for name in kept.CASES if name not in kept.MATCHERS},
    **{name: _operator(name) for name in operators.CASES},
}


# -- mutations --------------------------------------------------------------------------------------------------------


def mutated(frame: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A frame in which one thing is another one, its checksum made anew, and what that is."""
    magic, version, length = _HEAD.unpack_from(frame)
    header = json.loads(frame[_HEAD.size : _HEAD.size + length])
    body = frame[_HEAD.size + length : -4]
    pieces = _pieces(header, body)
    if not pieces or rng.random() < 0.25:
        place, header = _other_header(header, rng)
        return _frame(magic, version, header, body), place
    name, kind, first, last, entry = rng.choice(pieces)
    piece = body[first:last]
    if piece[:7] == b"STRETTO" and rng.random() < 0.9:
        piece, place = mutated(piece, rng)
        place = f"{name} > {place}"
    elif kind.itemsize > 1 and piece and rng.random() < 0.9:
        words = np.frombuffer(piece, kind).copy()
        at = rng.randrange(words.size)
        old, words[at] = words[at].item(), _other_word(words, at, rng)
        piece, place = words.tobytes(), f"{name}[{at}] of {words.size}: {old} -> {words[at].item()}"
    elif piece and rng.random() < 0.7:
        at = rng.randrange(len(piece))
        changed = bytearray(piece)
        changed[at] = rng.randrange(256)
        piece, place = bytes(changed), f"byte {at} of {name}: {body[first + at]} -> {changed[at]}"
    else:
        size = len(piece) // kind.itemsize
        more = rng.choice([-1, 1, -size, size, rng.randrange(-size, 2 * size + 2)])
        piece = (piece + piece + bytes(2 * kind.itemsize))[: max(0, size + more) * kind.itemsize]
        place = f"size of {name}: {size} -> {len(piece) // kind.itemsize}"
    if isinstance(entry, list):
        entry[2] = len(piece) // kind.itemsize
    else:
        header["parts"][entry] = len(piece)
    return _frame(magic, version, header, body[:first] + piece + body[last:]), place


def _frame(magic: bytes, version: int, header: Any, body: bytes) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    whole = _HEAD.pack(magic, version, len(text)) + text + body
    return whole + struct.pack("<I", zlib.crc32(whole))


def _pieces(header: Any, body: bytes) -> list[tuple[str, np.dtype[Any], int, int, Any]]:
    """Name, type, begin and end of the pieces of a body, and where its size stands in the header."""
    found: list[tuple[str, np.dtype[Any], int, int, Any]] = []
    first = 0
    for entry in header.get("arrays", ()):
        kind = np.dtype(entry[3] if len(entry) > 3 else entry[1])
        last = first + entry[2] * kind.itemsize
        found.append((entry[0], kind, first, last, entry))
        first = last
    for number, size in enumerate(header.get("parts", ())):
        found.append((f"part {number}", np.dtype(np.uint8), first, first + size, number))
        first += size
    assert first == len(body) or not found
    return found


def _other_word(words: Any, at: int, rng: random.Random) -> Any:
    if words.dtype.kind == "f":
        return rng.choice([0.0, -1.0, float("nan"), float("inf"), 1e300, -float("inf")])
    if words.dtype.kind == "b":
        return not words[at]
    old = int(words[at])
    value = rng.choice(
        [*_NUMBERS, old + 1, old - 1, old + rng.randrange(-20, 20), old ^ 1 << rng.randrange(63), 3 * old]
    )
    bits = 8 * words.dtype.itemsize
    return np.array(value & (1 << bits) - 1, f"u{words.dtype.itemsize}").astype(words.dtype)


def _other_header(header: Any, rng: random.Random) -> tuple[str, Any]:
    """The header with one value of any depth another one."""
    places = list(_places(header, ()))
    place = rng.choice(places)
    above = header
    for step in place[:-1]:
        above = above[step]
    old = above[place[-1]]
    if rng.random() < 0.1:
        del above[place[-1]]
        return f"header {place}: gone", header
    above[place[-1]] = new = _other_value(old, rng)
    return f"header {place}: {old!r:.60} -> {new!r:.60}", header


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in inside:
        yield (*path, step)
        yield from _places(below, (*path, step))


def _other_value(old: Any, rng: random.Random) -> Any:
    if isinstance(old, bool):
        return not old
    if isinstance(old, int) and rng.random() < 0.8:
        return rng.choice([*_NUMBERS, 1 << 70, old + 1, old - 1, 2 * old + 1])
    if isinstance(old, str) and rng.random() < 0.8:
        at = rng.randrange(len(old) + 1)
        return rng.choice(
            ["", "x", old + "0", old[:at] + rng.choice("0Aüx<|") + old[at + 1 :], old[:at], "<f8", "|O", "|u1"]
        )
    if isinstance(old, list) and old and rng.random() < 0.8:
        return rng.choice([old[:-1], old[1:], old + old[-1:], list(reversed(old))])
    return rng.choice([None, 0, -1, 1 << 62, 1.5, float("nan"), "x", "", [], {}, [None], [0], {"x": 0}, True])


#: What may come of a mutation.
GOOD = ("refused", "works", "later", "same")


# -- one process ------------------------------------------------------------------------------------------------------


def tried(kind: Kind, state: bytes, name: str, number: int, seed: int) -> tuple[str, str]:
    """What comes of one mutation, with its place: ``refused``, ``works``, ``later`` (an error of stretto) or another error."""
    other, place = mutated(state, random.Random(f"{name} {number} {seed}"))
    if other == state:
        return "same", place
    try:
        made = kind.restored(other)
    except stretto.SnapshotError:
        return "refused", place
    except Exception as error:
        return children.told("restoring", error), place
    try:
        kind.go_on(made)
    except stretto.StrettoError:
        return "later", place
    except Exception as error:
        return children.told("going on", error), place
    return "works", place


def serve(name: str, first: int, last: int, seed: int) -> None:
    """The child: a line before each mutation, and one with what came of it."""
    warnings.simplefilter("ignore")
    kind = KINDS[name]
    state = kind.state()
    kind.go_on(kind.restored(state))
    children.serve(
        range(first, last),
        MOST_BYTES,
        lambda number: mutated(state, random.Random(f"{name} {number} {seed}"))[1],
        lambda number: tried(kind, state, name, number, seed),
    )


def try_some(kinds: int, count: int, seed: int) -> int:
    """So many mutations of each of so many random kinds in this process; how many go wrong."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    faults = 0
    for name in random.Random(seed).sample(list(KINDS), kinds):
        print(name, flush=True)
        state = KINDS[name].state()
        for number in range(count):
            what, place = tried(KINDS[name], state, name, number, seed)
            if what not in GOOD:
                print(f"  {number}: {what}\n      {place}", flush=True)
                faults += 1
    return faults


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--serve")
    parser.add_argument("--show", nargs=2)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--some", type=int, metavar="KINDS", help="try so many random kinds in this process")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.first, options.first + options.count, options.seed)
        return 0
    if options.some:
        return try_some(options.some, options.count, options.seed)
    if options.show:
        name, number = options.show
        kind = KINDS[name]
        other, place = mutated(kind.state(), random.Random(f"{name} {number} {options.seed}"))
        print(place, flush=True)
        kind.go_on(kind.restored(other))
        return 0
    wrong = 0
    names = options.kinds or list(KINDS)

    def outcome_of(name: str) -> children.Outcome:
        arguments = ["tests.snapshots.mutations", "--serve", name, "--seed", str(options.seed)]
        return children.run(arguments, options.first, options.count, GOOD)

    with ThreadPoolExecutor(options.jobs) as pool:
        for name, outcome in zip(names, pool.map(outcome_of, names), strict=True):
            print(name, dict(outcome.counts), flush=True)
            for number, what, place in outcome.faults:
                print(f"  {number}: {what}\n      {place}", flush=True)
            wrong += len(outcome.faults)
    print(f"{wrong} faults, seed {options.seed}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
