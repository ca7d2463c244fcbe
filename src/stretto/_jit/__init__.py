"""The only Numba decorator of the package (``internals.py``), and the status codes that kernels return.

Kernels never raise and never grow arrays: they return ``(status, …)``, Python acts on it and calls again.

Compiled code is cached on disk in one directory for each version of stretto and mode (bounds-checked or not), because
Numba's own index notices neither: a helper that changed in another module, nor ``NUMBA_BOUNDSCHECK``. ``STRETTO_CACHE_DIR``
moves it (``directory.py``). Nothing in it depends on where the package lies, so that one machine can hand it to another of the
same kind.

A kernel that has not been compiled on this machine yet answers at once, as Python, while another process compiles it
(``stretto compile``); the next call finds it compiled. ``STRETTO_COMPILE=now`` compiles it within the call instead.
"""

from __future__ import annotations

from stretto._jit.generated import (
    CONDITIONS,
    compiled_by_user,
    generated,
    interprets,
    recorded,
    result_kind,
    result_of_tuples,
    text_of,
)
from stretto._jit.internals import (
    CACHE_DIRECTORY,
    TIERED,
    Condition,
    called,
    inlined,
    inlined_unless_interpreted,
    intrinsic,
    jit,
    prefetch,
    word_at,
)

__all__ = [
    "CACHE_DIRECTORY",
    "CONDITIONS",
    "DONE",
    "FAULTED",
    "GROW_ACTIVE",
    "GROW_ARENA",
    "GROW_NODES",
    "GROW_OUTPUT",
    "GROW_STACK",
    "GROW_TABLE",
    "HANDED_OVER",
    "OUTPUT_FULL",
    "OVERFLOW",
    "PAUSED",
    "TIERED",
    "TRANSITION_MISSING",
    "Condition",
    "called",
    "compiled_by_user",
    "generated",
    "inlined",
    "inlined_unless_interpreted",
    "interprets",
    "intrinsic",
    "jit",
    "prefetch",
    "recorded",
    "result_kind",
    "result_of_tuples",
    "text_of",
    "word_at",
]

DONE = 0  #: all events of the call are processed
OUTPUT_FULL = 1  #: drain the output buffers, then call again
TRANSITION_MISSING = 2  #: determinize (state, class) = the two words returned, then call again
GROW_NODES = 3  #: the node store is full: collect or double, then call again
GROW_ARENA = 4  #: the store of partition records is full
GROW_ACTIVE = 5  #: the scratch for active states or union-lists is too small
GROW_STACK = 6  #: the enumeration stack or path is too small
GROW_OUTPUT = 7  #: one match does not fit into the empty output buffers
GROW_TABLE = 8  #: a hash table is too full
PAUSED = 11  #: much work was done: let Python see to signals, then call again
OVERFLOW = 9  #: an integer left 64 bits
FAULTED = 12  #: something that is refused: the registers say what and where
HANDED_OVER = 10  #: an event completes matches, which are taken as a set; then call again
