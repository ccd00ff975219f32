"""What is within some edges of one node, as compiled loops that cost little to call: a count, a sum, or the nodes.

The addresses of all arrays are written down once, in a `Nearby`, and a call passes three numbers (see `kernels`). A
`Nearby` keeps its arrays alive. It is right as long as they are those of the snapshot. `follow` may replace them, so a
`Nearby` is made anew afterwards.

Two hops look at about a hundred places that are anywhere in memory. The loops ask for them ahead (`fetch`), so that the
processor waits for many at a time. That, and going through the last edges without branches, makes them three times as
fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from adjoin.dataclass import dataclass
from adjoin.snapshots.arrays import Array
from adjoin.snapshots.kernels import addresses, fetch, numbers, pointer_to, small_numbers

LAST_SEARCH = 255
"""Searches are numbered in single bytes, so that those of a million nodes stay in the processor's cache."""
_AHEAD = 8
"""So many nodes ahead of the one that is looked at, its edges are fetched into the cache."""
_SOON = 3
"""So many nodes ahead, the values of its edges are."""

# The places in a room, which is shared by all: the addresses of `seen_in` and of the queue, and numbers.
_SEEN_IN, _QUEUE, _SIZE, _SEARCH = range(4)
# The places in a record: how many lanes there are, the room, and then of each lane the addresses of its arrays.
_COUNT, _ROOM, _LANES = range(3)
_STARTS, _ENDS, _ADDS, _FAR, _EDGES, _SKIPS, _VALUES, _WIDTH = range(8)


class Room:
    """Which nodes a search has seen, and a queue: for all searches of a snapshot, one after another.

    Searches are numbered, and a node has the number of the last one that has seen it. So nothing is cleared before the
    numbers are used up.
    """

    def __init__(self) -> None:
        self.seen_in, self.queue = np.zeros(0, np.uint8), np.zeros(0, np.int32)
        self.record = np.zeros(4, np.int64)

    def reserve(self, nodes: int) -> None:
        """Makes room for so many nodes."""
        if nodes > len(self.seen_in):
            size = nodes + nodes // 8 + 16
            self.seen_in, self.queue = np.zeros(size, np.uint8), np.zeros(size, np.int32)
            self.record[:] = self.seen_in.ctypes.data, self.queue.ctypes.data, size, 0

    def next_search(self) -> int:
        """The number of a new search, which no node has."""
        return int(_next_search(self.record.ctypes.data))


@dataclass(frozen=True, slots=True)
class NearLane:
    """The arrays of the edges of one class in one direction. They are never changed here."""

    starts: Array
    """Where the edges of each node begin."""
    ends: Array
    """Where they end; or how many there are, if `are_degrees`."""
    are_degrees: bool
    far: Array
    edges: Array
    skips_loops: bool
    """Whether edges of a node to itself are left out, because another lane has them."""
    values: Array | None = None
    """What is added up, by the number of the edge."""


class Nearby:
    """The edges of some classes, for questions about what is near a node. There must be room for all nodes."""

    def __init__(self, room: Room, lanes: Sequence[NearLane]) -> None:
        self._room, self._lanes = room, tuple(lanes)
        record = [len(lanes), room.record.ctypes.data]
        for lane in self._lanes:
            held = [lane.starts, lane.ends, lane.far, lane.edges]
            assert all(each.dtype == np.int32 and each.flags.c_contiguous for each in held)
            assert lane.values is None or lane.values.flags.c_contiguous
            starts, ends, far, edges = (each.ctypes.data for each in held)
            values = 0 if lane.values is None else lane.values.ctypes.data
            record += [starts, ends, lane.are_degrees, far, edges, lane.skips_loops, values]
        self._record = np.array(record, np.int64)
        self.at = int(self._record.ctypes.data)
        """The address of the record, which is what the loops take."""

    def within(self, start: int, hops: int) -> Array:
        """The nodes within so many edges of a node, the nearest first; the first is the node itself.

        They are in the queue of the room, which the next search uses again.
        """
        return self._room.queue[: nodes_near(self.at, start, hops)]

    def counts(self, nodes: Array, hops: int) -> Array:
        """How many other nodes are within so many edges of each of these nodes."""
        counts = np.empty(len(nodes), np.int64)
        count_each(self.at, nodes.astype(np.int64), hops, counts)
        return counts


# --- loops -------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _next_search(room_at: int) -> Any:
    """The number of a new search, which no node has."""
    room = addresses(room_at)
    if room[_SEARCH] == LAST_SEARCH:
        seen_in = small_numbers(room[_SEEN_IN])
        for place in range(room[_SIZE]):
            seen_in[place] = 0
        room[_SEARCH] = 0
    room[_SEARCH] += 1
    return room[_SEARCH]


@numba.njit(cache=True)
def _row(record: Any, lane: int, node: int) -> Any:
    """Where the edges of a node begin and end."""
    of = _LANES + lane * _WIDTH
    first = numbers(record[of + _STARTS])[node]
    return first, first * record[of + _ADDS] + numbers(record[of + _ENDS])[node]


@numba.njit(cache=True)
def _array(record: Any, lane: int, which: int) -> Any:
    return numbers(record[_LANES + lane * _WIDTH + which])


@numba.njit(cache=True)
def _fetch_row(record: Any, node: int, which: int) -> None:
    """Fetches the first edges of a node. Most nodes have no more than fit into two lines of the cache."""
    for lane in range(record[_COUNT]):
        first, array = _array(record, lane, _STARTS)[node], _array(record, lane, which)
        fetch(array, first)
        fetch(array, first + 15)


@numba.njit(cache=True)
def _spread(at: int, start: int, hops: int) -> Any:
    """Fills the queue with the nodes within so many edges, and returns where the last of them begin and end."""
    record = addresses(at)
    room = addresses(record[_ROOM])
    search = _next_search(record[_ROOM])
    seen_in, queue = small_numbers(room[_SEEN_IN]), numbers(room[_QUEUE])
    seen_in[start] = search
    queue[0] = start
    begin, end = 0, 1
    for _ in range(hops):
        last = end
        for place in range(begin, last):
            near = queue[place]
            if place + _AHEAD < last:
                _fetch_row(record, queue[place + _AHEAD], _FAR)
            for lane in range(record[_COUNT]):
                starts, ends, far = (
                    _array(record, lane, _STARTS),
                    _array(record, lane, _ENDS),
                    _array(record, lane, _FAR),
                )
                first, behind = _row(record, lane, near)
                for edge in range(first, behind):
                    other = far[edge]
                    fetch(starts, other)
                    fetch(ends, other)
                    # A queue has room for one more than there are nodes.
                    queue[end] = other
                    end += seen_in[other] != search
                    seen_in[other] = search
        begin = last
        if end == last:
            break
    return begin, end


@numba.njit(cache=True)
def nodes_near(at: int, start: int, hops: int) -> Any:
    """Fills the queue with the nodes within so many edges, the nearest first, and returns how many they are."""
    return _spread(at, start, hops)[1]


@numba.njit(cache=True)
def count_near(at: int, start: int, hops: int) -> Any:
    """How many nodes are within so many edges of a node, with the node itself. The last of them are not queued."""
    begin, end = _spread(at, start, hops - 1)
    record = addresses(at)
    room = addresses(record[_ROOM])
    seen_in, queue, search = small_numbers(room[_SEEN_IN]), numbers(room[_QUEUE]), room[_SEARCH]
    for place in range(begin, min(begin + _AHEAD, end)):
        _fetch_row(record, queue[place], _FAR)
    count = end
    for place in range(begin, end):
        if place + _AHEAD < end:
            _fetch_row(record, queue[place + _AHEAD], _FAR)
        for lane in range(record[_COUNT]):
            far = _array(record, lane, _FAR)
            first, behind = _row(record, lane, queue[place])
            for edge in range(first, behind):
                other = far[edge]
                count += seen_in[other] != search
                seen_in[other] = search
    return count


@numba.njit(cache=True)
def count_each(at: int, nodes: Any, hops: int, counts: Any) -> None:
    """How many other nodes are within so many edges of each of these nodes."""
    for place in range(len(nodes)):
        counts[place] = count_near(at, nodes[place], hops) - 1


@numba.njit(cache=True)
def add_near(at: int, start: int, hops: int, total: Any) -> Any:
    """Adds up the values of the edges at a node, and at all nodes that are fewer than so many edges away.

    `total` is 0 of the type that the values have.
    """
    _, end = _spread(at, start, hops - 1)
    record = addresses(at)
    queue = numbers(addresses(record[_ROOM])[_QUEUE])
    zero = total
    for place in range(end):
        if place + _AHEAD < end:
            _fetch_row(record, queue[place + _AHEAD], _EDGES)
        if place + _SOON < end:
            soon = queue[place + _SOON]
            for lane in range(record[_COUNT]):
                edges = _array(record, lane, _EDGES)
                values = pointer_to(record[_LANES + lane * _WIDTH + _VALUES], zero)
                first, behind = _row(record, lane, soon)
                for edge in range(first, behind):
                    fetch(values, edges[edge])
        near = queue[place]
        for lane in range(record[_COUNT]):
            of = _LANES + lane * _WIDTH
            far, edges, values = (
                _array(record, lane, _FAR),
                _array(record, lane, _EDGES),
                pointer_to(record[of + _VALUES], zero),
            )
            skips = record[of + _SKIPS] != 0
            first, behind = _row(record, lane, near)
            for edge in range(first, behind):
                if not (skips and far[edge] == near):
                    total += values[edges[edge]]
    return total
