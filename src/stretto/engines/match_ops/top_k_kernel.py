"""The best matches of an event by a score that adds up over its events, without listing the others.

Greater scores are better; what comes first among equal ones: the match that begins later, then the one that has the latest event that
only one of two has. Both orders stay when the same event is added to two partial matches, so that the best match of a node is one of
the best of the nodes behind it: a node keeps it (*memo*), and an event looks only at nodes that are new or whose best match has
left the window. Those behind the best are found one by one (the recursive enumeration of Jiménez and Marzal): the next match of a
node is that of the node behind it, and the next of a union the better one of two, each asked only when the one before was taken.

Scores are added in the order of events. Rounding of floating scores keeps their order, and may make some equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._jit import DONE, GROW_STACK, GROW_TABLE, OVERFLOW, inlined
from stretto.engines.match_ops import top_k_arrays as k
from stretto.engines.match_ops.sample import pick_sample
from stretto.engines.match_ops.top_k_arrays import I64, Memo, Paths, Picker, is_union, other_way, write

MOST = np.iinfo(np.int64).max
GREATEST = float(np.finfo(np.float64).max)

#: Asks for the entry behind the last one: there is none.
OVER = -1
#: … it is not made yet.
UNMADE = 0


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


@inlined
def pick_best(paths: Paths, low: int, roots: I64, top: int, position: int, group: int, picker: Picker) -> int:
    """Write the best matches behind ``roots[:top]`` that begin at ``low`` or later, until they are as many as are asked for, or not
    good enough for their group. Cost: O(new nodes) and for each match O(length + roots), where its scores are not all equal.
    """
    registers, lists, scratch = picker.registers, picker.lists, picker.scratch
    memo = _memo_of(picker)
    place = registers[k.WINDOW] % registers[k.SETS]
    if not registers[k.BEGUN]:
        status = _begin_with(paths, low, roots, top, memo, picker)
        if status != DONE:
            return status
    bounded = registers[k.BOUNDED] and picker.bounds.window[group, place] == 2 * registers[k.WINDOW] + 1
    while registers[k.GIVEN] < registers[k.MOST]:
        status, best, entry = _best_root(paths, low, roots, top, memo, picker)
        if status != DONE:
            return status
        if best < 0:
            break
        slot = roots[best] & paths.mask
        score = lists.score[entry] if entry else memo.score[slot]
        if bounded and score < picker.bounds.score[group, place]:
            break
        if not entry:
            status = _produce(roots[best], low, paths, memo, picker)
            if status != DONE:
                return status
            entry = lists.first[slot]
        length = _trace(entry, paths, picker)
        if length < 0:
            return GROW_STACK
        status = write(length, _begin(entry, paths, picker), position, lists.score[entry], group, paths, picker)
        if status != DONE:
            return status
        scratch.cursor[best] = entry
    registers[k.BEGUN] = 0
    return DONE


@inlined
def _begin_with(paths: Paths, low: int, roots: I64, top: int, memo: Memo, picker: Picker) -> int:
    """Learn the best match behind each root, of which none is taken yet."""
    registers, scratch = picker.registers, picker.scratch
    if top > scratch.cursor.size:
        return GROW_STACK
    for at in range(top):
        scratch.cursor[at] = 0
        if paths.graph.start[roots[at] & paths.mask] >= low:
            status = _learn(roots[at], low, paths, memo, picker)
            if status != DONE:
                return status
    registers[k.ROUND] += 1
    registers[k.ENTRIES] = 1
    registers[k.BEGUN] = 1
    return DONE


@inlined
def _best_root(paths: Paths, low: int, roots: I64, top: int, memo: Memo, picker: Picker) -> tuple[int, int, int]:
    """A status, the root whose next match is the best (−1: there is none), and its entry, if it is made. O(roots)."""
    best, entry = -1, 0
    for at in range(top):
        root = roots[at]
        if paths.graph.start[root & paths.mask] < low:
            continue
        one = _after(root, picker.scratch.cursor[at], paths, picker)
        if one == UNMADE and picker.scratch.cursor[at]:
            status = _produce(root, low, paths, memo, picker)
            if status != DONE:
                return status, best, entry
            one = _after(root, picker.scratch.cursor[at], paths, picker)
        if one != OVER and (best < 0 or _is_better(root, one, roots[best], entry, paths, memo, picker)):
            best, entry = at, one
    return DONE, best, entry


@inlined
def _memo_of(picker: Picker) -> Memo:
    """The memo of the window at hand."""
    place = picker.registers[k.WINDOW] % picker.registers[k.SETS]
    memo = picker.memo
    return Memo(memo.node[place], memo.score[place], memo.start[place], memo.choice[place], memo.weighed, memo.weight)


@inlined
def _is_known(node: int, slot: int, low: int, memo: Memo) -> bool:
    """Whether the best match behind a node is known, and still in the window."""
    return bool(memo.node[slot] == node and memo.start[slot] >= low)


@inlined
def _leaves(a: Any, b: Any, picker: Picker) -> bool:
    """Whether a sum would leave 64 bits."""
    return leaves(a, b, bool(picker.registers[k.EXACT]))


@inlined
def leaves(a: Any, b: Any, exact: bool) -> bool:
    """Whether a sum would leave 64 bits. Minus infinity stands for a score that is no number, and stays."""
    if exact:
        return bool((b > 0 and a > MOST - b) or (b < 0 and a < k.LOST - b))
    return bool(np.isfinite(a) and np.isfinite(b) and abs(a / 2 + b / 2) > GREATEST / 2)


@inlined
def _weigh(node: int, slot: int, paths: Paths, memo: Memo, picker: Picker) -> int:
    """Note what the event of a node adds. O(items · log events), once for each node."""
    if memo.weighed[slot] == node:
        return DONE
    values, registers = picker.values, picker.registers
    mark = paths.mark[slot]
    if mark >= values.holds.shape[0]:
        return GROW_TABLE
    memo.weight[slot] = 0
    asked = False
    for item in range(values.value.shape[1]):
        asked = asked or values.holds[mark, item]
    if asked:
        at = np.searchsorted(values.position[: registers[k.EVENTS]], paths.graph.position[slot])
        for item in range(values.value.shape[1]):
            one = values.value[at, item]
            if values.holds[mark, item]:
                if one != one or (registers[k.EXACT] and one == k.LOST) or _leaves(memo.weight[slot], one, picker):
                    return OVERFLOW
                memo.weight[slot] += one
    memo.weighed[slot] = node
    return DONE


@inlined
def _learn(root: int, low: int, paths: Paths, memo: Memo, picker: Picker) -> int:
    """The best match behind a node, and behind all that it leads to. O(nodes that are not known)."""
    graph, waiting, registers = paths.graph, picker.scratch.waiting, picker.registers
    size = 1
    waiting[0] = root
    while size:
        node = waiting[size - 1]
        slot = node & paths.mask
        if _is_known(node, slot, low, memo):
            size -= 1
            continue
        registers[k.STEPS] += 1
        union = is_union(slot, paths)
        left = graph.left[slot]
        right = other_way(slot, low, paths)
        if size + 2 > waiting.size:
            return GROW_STACK
        ready = True
        if left and not _is_known(left, left & paths.mask, low, memo):
            waiting[size] = left
            size += 1
            ready = False
        if right and not _is_known(right, right & paths.mask, low, memo):
            waiting[size] = right
            size += 1
            ready = False
        if not ready:
            continue
        size -= 1
        if union:
            choice = left
            if right and _is_better(right, 0, left, 0, paths, memo, picker):
                choice = right
            memo.score[slot] = memo.score[choice & paths.mask]
            memo.start[slot] = memo.start[choice & paths.mask]
            memo.choice[slot] = choice
        else:
            status = _weigh(node, slot, paths, memo, picker)
            if status != DONE:
                return status
            memo.score[slot] = memo.weight[slot]
            memo.start[slot] = graph.start[slot]
            if left:
                if _leaves(memo.score[left & paths.mask], memo.weight[slot], picker):
                    return OVERFLOW
                memo.score[slot] += memo.score[left & paths.mask]
                memo.start[slot] = memo.start[left & paths.mask]
        memo.node[slot] = node
    return DONE


@inlined
def _after(node: int, entry: int, paths: Paths, picker: Picker) -> int:
    """The entry of a node that follows another one, or its first; UNMADE, or OVER."""
    lists = picker.lists
    slot = node & paths.mask
    if lists.stamp[slot] != picker.registers[k.ROUND]:
        return UNMADE
    found = lists.next[entry] if entry else lists.first[slot]
    if found == 0 and lists.over[slot]:
        return OVER
    return int(found)


@inlined
def _append(node: int, score: Any, start: int, below: int, paths: Paths, picker: Picker) -> None:
    """One more entry of a node. There is room."""
    lists, registers = picker.lists, picker.registers
    slot = node & paths.mask
    entry = registers[k.ENTRIES]
    registers[k.ENTRIES] = entry + 1
    lists.score[entry], lists.start[entry] = score, start
    lists.node[entry], lists.below[entry], lists.next[entry] = node, below, 0
    if lists.first[slot]:
        lists.next[lists.last[slot]] = entry
    else:
        lists.first[slot] = entry
    lists.last[slot] = entry


@inlined
def _produce(root: int, low: int, paths: Paths, memo: Memo, picker: Picker) -> int:  # noqa: C901, PLR0912, PLR0915 - what a node needs next
    """Make the next entry of a node, or say that there is none; what it needs of others is made first. O(length) of its match."""
    graph, lists, registers, waiting = paths.graph, picker.lists, picker.registers, picker.scratch.waiting
    size = 1
    waiting[0] = root
    while size:
        if size + 1 > waiting.size or registers[k.ENTRIES] + 1 > lists.node.size:
            return GROW_STACK
        node = waiting[size - 1]
        slot = node & paths.mask
        registers[k.STEPS] += 1
        if lists.stamp[slot] != registers[k.ROUND]:
            lists.stamp[slot] = registers[k.ROUND]
            lists.first[slot] = lists.last[slot] = lists.left[slot] = lists.right[slot] = 0
            lists.over[slot] = False
        left = graph.left[slot]
        if left == 0:  # the first event of a match
            if lists.first[slot]:
                lists.over[slot] = True
            else:
                _append(node, memo.weight[slot], graph.start[slot], 0, paths, picker)
            size -= 1
            continue
        one = _after(left, lists.left[slot], paths, picker)
        if not is_union(slot, paths):
            if one == UNMADE:
                waiting[size] = left
                size += 1
                continue
            if one == OVER:
                lists.over[slot] = True
            else:
                if _leaves(lists.score[one], memo.weight[slot], picker):
                    return OVERFLOW
                _append(node, lists.score[one] + memo.weight[slot], lists.start[one], one, paths, picker)
                lists.left[slot] = one
            size -= 1
            continue
        right = other_way(slot, low, paths)
        two = OVER
        if right:
            two = _after(right, lists.right[slot], paths, picker)
        # The first match of a node is known without its entry, those behind it are not.
        if one == UNMADE and lists.left[slot]:
            waiting[size] = left
            size += 1
            continue
        if two == UNMADE and lists.right[slot]:
            waiting[size] = right
            size += 1
            continue
        if one == OVER and two == OVER:
            lists.over[slot] = True
            size -= 1
            continue
        goes_right = one == OVER or (two != OVER and _is_better(right, two, left, one, paths, memo, picker))
        chosen, entry = (right, two) if goes_right else (left, one)
        if entry == UNMADE:
            waiting[size] = chosen
            size += 1
            continue
        _append(node, lists.score[entry], lists.start[entry], entry, paths, picker)
        if goes_right:
            lists.right[slot] = entry
        else:
            lists.left[slot] = entry
        size -= 1
    return DONE


@inlined
def _is_better(node: int, entry: int, other: int, second: int, paths: Paths, memo: Memo, picker: Picker) -> bool:
    """Whether one match comes before another: an entry, or (0) the best match of a node. O(1), or O(length) for equal scores."""
    lists = picker.lists
    a = lists.score[entry] if entry else memo.score[node & paths.mask]
    b = lists.score[second] if second else memo.score[other & paths.mask]
    if a != b:
        return bool(a > b)
    start = lists.start[entry] if entry else memo.start[node & paths.mask]
    start_of_other = lists.start[second] if second else memo.start[other & paths.mask]
    if start != start_of_other:
        return bool(start > start_of_other)
    while True:
        node, entry = _event_of(node, entry, paths, memo, picker)
        other, second = _event_of(other, second, paths, memo, picker)
        if (node == other and entry == second) or node == 0 or other == 0:
            return bool(node != 0 and other == 0)
        a_at, b_at = paths.graph.position[node & paths.mask], paths.graph.position[other & paths.mask]
        if a_at != b_at:
            return bool(a_at > b_at)
        node, entry = _behind(node, entry, paths, picker)
        other, second = _behind(other, second, paths, picker)


@inlined
def _event_of(node: int, entry: int, paths: Paths, memo: Memo, picker: Picker) -> tuple[int, int]:
    """The next node of a match that is an event of it, from a node on; 0: there is none."""
    while node and is_union(node & paths.mask, paths):
        if entry:
            entry = picker.lists.below[entry]
            node = picker.lists.node[entry]
        else:
            node = memo.choice[node & paths.mask]
    if node and paths.graph.left[node & paths.mask] == 0 and paths.mark[node & paths.mask] == paths.unmarked:
        return 0, 0
    return node, entry


@inlined
def _behind(node: int, entry: int, paths: Paths, picker: Picker) -> tuple[int, int]:
    """What a match goes on with behind an event."""
    if entry:
        entry = picker.lists.below[entry]
    return int(paths.graph.left[node & paths.mask]), entry


@inlined
def _begin(entry: int, paths: Paths, picker: Picker) -> int:
    """The position at which the match of an entry begins."""
    while picker.lists.below[entry]:
        entry = picker.lists.below[entry]
    return int(paths.graph.position[picker.lists.node[entry] & paths.mask])


@inlined
def _trace(entry: int, paths: Paths, picker: Picker) -> int:
    """The events of an entry into the scratch space, the last first; how many, or −1: there is no room."""
    lists, scratch = picker.lists, picker.scratch
    length = 0
    while entry:
        slot = lists.node[entry] & paths.mask
        first = paths.graph.left[slot] == 0
        if not is_union(slot, paths) and not (first and paths.mark[slot] == paths.unmarked):
            if length == scratch.spot.size:
                return -1
            scratch.spot[length], scratch.mark[length] = paths.graph.position[slot], paths.mark[slot]
            length += 1
        entry = lists.below[entry]
    return length
