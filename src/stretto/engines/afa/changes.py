"""Changes of arcs as columns: what each is about, read in one pass (AFA paper, section 2.3: arcs as a second stream)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.engines.afa import structure as s

I64 = NDArray[np.int64]


@jit
def read(  # noqa: PLR0913 - three streams of columns are merged into one
    at: I64,
    rows: int,
    actions: I64,
    adds: I64,
    ids: I64,
    forms: I64,
    first: int,
    in_force: I64,
    form_of: I64,
    what: I64,
    which: I64,
    form: I64,
    named: I64,
    begins: I64,
    told: I64,
) -> bool:
    """What changes are about; false where one is wrong.

    Parameters
    ----------
    at, actions, ids, forms
        By change: how many of the ``rows`` come before it, and codes; −1: NULL.
    adds
        By action: 1: an addition; 0: the other; −1: neither.
    first
        The number of the first arc that is added.
    in_force
        By id: the arc in force before (NIL: none).
    form_of
        By form: −1.
    what, which
        By change: room for the operation, and the arc that it concerns.
    form, named
        By addition: room for the place of its form in ``begins``, and its id.
    begins
        By form that is there: room for the change where it comes first.
    told
        Room for how many additions and forms there are.
    """
    added = kinds = before = 0
    for i in range(at.size):
        identity, action = ids[i], actions[i]
        if at[i] < before or at[i] > rows or action < 0 or identity < 0 or adds[action] < 0:
            return False
        if (in_force[identity] == s.NIL) != (adds[action] == 1):
            return False
        before = at[i]
        if adds[action] == 0:
            what[i], which[i] = s.RETIRE_ARC, in_force[identity]
            in_force[identity] = s.NIL
            continue
        what[i], which[i] = s.ADD_ARC, first + added
        in_force[identity] = first + added
        if form_of[forms[i]] < 0:
            form_of[forms[i]] = kinds
            begins[kinds] = i
            kinds += 1
        form[added], named[added] = form_of[forms[i]], identity
        added += 1
    told[0], told[1] = added, kinds
    return True


@jit
def merge(at: I64, what: I64, which: I64, rows: I64, times: I64, all_at: I64, all_what: I64, all_which: I64) -> None:
    """Changes of arcs with punctuations, by row; punctuations come behind."""
    i = j = 0
    for k in range(all_at.size):
        if j == rows.size or (i < at.size and at[i] <= rows[j]):
            all_at[k], all_what[k], all_which[k] = at[i], what[i], which[i]
            i += 1
        else:
            all_at[k], all_what[k], all_which[k] = rows[j], s.PUNCTUATE, times[j]
            j += 1
