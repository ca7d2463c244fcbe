"""A few matches of an event, a window, a group or a whole stream, in place of all: the best by a score, or a sample.

An engine hands over the structure that holds the matches of an event, and :func:`pick` writes those that may be among the ones asked
for. What a group has so far bounds what is good enough, so that most events write nothing.
"""

from __future__ import annotations

import numpy as np

from stretto._jit import DONE, inlined
from stretto.engines.shared import picks as k
from stretto.engines.shared.best import pick_best
from stretto.engines.shared.picks import I64, Paths, Picker
from stretto.engines.shared.sampling import pick_sample


@inlined
def pick(paths: Paths, low: int, roots: I64, top: int, position: int, time: int, group: int, picker: Picker) -> int:
    """Write what is chosen of the matches of the event at hand, which lie behind ``roots[:top]`` and begin at ``low`` or later.

    Each window of the event is looked at by itself. On any status but DONE the caller makes room and calls again.
    """
    registers, values = picker.registers, picker.values
    if not registers[k.OPEN]:
        registers[k.OPEN] = 1
        registers[k.WINDOW] = registers[k.LAST] = registers[k.GIVEN] = registers[k.BEGUN] = 0
        if registers[k.SIZE]:
            registers[k.WINDOW] = (time - registers[k.SIZE]) // registers[k.SLIDE] + 1
            registers[k.LAST] = time // registers[k.SLIDE]
    while registers[k.WINDOW] <= registers[k.LAST]:
        least = low
        if registers[k.SIZE]:
            begin = registers[k.WINDOW] * registers[k.SLIDE]
            first = np.searchsorted(values.time[: registers[k.EVENTS]], begin)
            least = max(low, values.position[first])
        if registers[k.SAMPLING]:
            status = pick_sample(paths, least, roots, top, position, group, picker)
        else:
            status = pick_best(paths, least, roots, top, position, group, picker)
        if status != DONE:
            return status
        registers[k.WINDOW] += 1
        registers[k.GIVEN] = 0
    registers[k.OPEN] = 0
    return DONE
